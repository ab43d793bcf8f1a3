"""The client of every endpoint, against a small server on loopback."""

import asyncio
import json
import math

import pytest
from endpoint import completion, endpoint

import rubricnb as rb
from rubricnb.core.address import headers_for
from rubricnb.core.contract import Message, Request
from rubricnb.core.parsing import read
from rubricnb.engines.batch import export_batch, import_batch
from rubricnb.engines.client import OpenAIPosts
from rubricnb.engines.openai import JudgeError, OpenAIJudge, _steps

CHOICES = ("3", "1", "2")


def request(readout, number=1, **options):
    return Request(
        number,
        "k",
        (Message("user", "Judge."),),
        ("[RESULT]",),
        CHOICES,
        readout,
        ordering=(3, 1, 2),
        **options,
    )


def ask(url, *requests, **options):
    judge = OpenAIJudge("m", url, retries=1, timeout=60, **options)
    try:
        return list(judge.answer(requests))
    finally:
        judge.close()


def always(body, status=200, headers=None):
    return lambda payload, received: (status, body, headers or {})


def test_feedback_is_free_text_with_its_tokens():
    with endpoint(always(completion("Fine. [RESULT] 2"))) as (url, received):
        (reply,) = ask(url, request("feedback", temperature=0.5, seed=11, effort="low"))
    assert (reply.text, reply.finish) == ("Fine. [RESULT] 2", "stop")
    assert (reply.prompt_tokens, reply.cached_tokens, reply.completion_tokens) == (
        100,
        64,
        7,
    )
    sent = received[0]
    assert sent["messages"] == [{"role": "user", "content": "Judge."}]
    assert (sent["temperature"], sent["seed"], sent["reasoning_effort"]) == (
        0.5,
        11,
        "low",
    )


def test_the_score_alone_is_asked_for_in_a_schema():
    with endpoint(always(completion('{"RESULT": "1"}'))) as (url, received):
        (reply,) = ask(url, request("score"))
    assert reply.text == "[RESULT] 1"
    schema = received[0]["response_format"]["json_schema"]["schema"]
    assert schema["properties"]["RESULT"]["enum"] == list(CHOICES)


def test_without_prefill_the_probabilities_are_read_where_the_feedback_has_its_score():
    tops = [
        ("3 facts. ", {"3 facts. ": 1.0}),
        ("[RESULT]", {"[RESULT]": 1.0}),
        (" ", {" ": 1.0}),
        ("1", {"1": 0.5, "3": 0.3, "2": 0.1}),
    ]
    with endpoint(always(completion("3 facts. [RESULT] 1", tops=tops))) as (
        url,
        received,
    ):
        (reply,) = ask(url, request("logprobs"))
    assert reply.probabilities == (pytest.approx((0.3, 0.5, 0.1)),)
    assert received[0]["logprobs"] is True


@pytest.mark.parametrize(
    ("tokens", "finish", "status", "position"),
    [
        (["<think>", "Hm. [RESULT]", " 2", ", or"], "stop", "unparsed", None),
        (["[RESULT]", " 2", "</think>", "Fine. [RESULT]", " 1"], "stop", "ok", 2),
        (["[RESULT]", " 2", "</think>", "Fine."], "stop", "unparsed", None),
        (["[RESULT]", " 2", ".5"], "stop", "out_of_range", None),
        (["[RESULT]", " 2", "0"], "stop", "out_of_range", None),
    ],
)
def test_probabilities_in_free_text_are_those_of_a_score_that_is_one(
    tokens, finish, status, position
):
    tops = [(token, {token: 0.7, " 3": 0.1}) for token in tokens]
    with endpoint(always(completion("".join(tokens), finish, tops=tops))) as (url, _):
        (reply,) = ask(url, request("logprobs"))
    (reading,) = read(request("logprobs"), reply)
    assert (reading.status, reading.position) == (status, position)
    assert (reading.probabilities is None) == (status != "ok")


def test_a_server_that_continues_a_beginning_is_asked_for_the_label_only():
    answer = always(completion(" 1", tops=[(" 1", {" 1": 0.6, " 2": 0.2, " 3": 0.1})]))
    with endpoint(answer, owned_by="vllm") as (url, received):
        (reply,) = ask(url, request("logprobs"))
    assert reply.probabilities == (pytest.approx((0.1, 0.6, 0.2)),)
    sent = received[0]
    assert sent["messages"][-1] == {"role": "assistant", "content": "[RESULT]"}
    assert sent["continue_final_message"] is True
    assert sent["structured_outputs"] == {"choice": [" 3", " 1", " 2"]}


@pytest.mark.parametrize(
    ("body", "finish"),
    [
        (completion("I will not.", refusal="I will not."), "refusal"),
        (completion("", finish="content_filter"), "refusal"),
        (completion("well,", finish="length"), "length"),
    ],
)
def test_refusals_and_cut_answers_are_told_apart(body, finish):
    with endpoint(always(body)) as (url, _):
        (reply,) = ask(url, request("feedback"))
    assert reply.finish == finish


AZURE = {  # as Azure OpenAI writes it
    "message": (
        "The response was filtered due to the prompt triggering Azure OpenAI's content "
        "management policy. Please modify your prompt and retry."
    ),
    "type": None,
    "param": "prompt",
    "code": "content_filter",
    "status": 400,
    "innererror": {
        "code": "ResponsibleAIPolicyViolation",
        "content_filter_result": {"hate": {"filtered": True, "severity": "high"}},
    },
}


@pytest.mark.parametrize(
    ("status", "error"),
    [
        (400, AZURE),
        (
            400,
            {
                "code": "400",
                "message": "filtered",
                "innererror": {"code": "content_filter"},
            },
        ),
        (
            403,
            {
                "code": 403,
                "message": "Input was flagged",
                "metadata": {"flagged_input": "kill"},
            },
        ),
        (
            400,
            {"code": "invalid_prompt", "message": "flagged: against our usage policy"},
        ),
    ],
)
def test_a_text_that_a_content_filter_stops_is_refused_and_the_next_is_asked(
    status, error
):
    def answer(payload, headers):
        filtered = payload["messages"][0]["content"] == "Judge."
        return (
            (status, {"error": error}, {})
            if filtered
            else (200, completion("[RESULT] 1"), {})
        )

    other = Request(
        2, "k2", (Message("user", "Other."),), ("[RESULT]",), CHOICES, "feedback"
    )
    with endpoint(answer) as (url, received):
        replies = {
            r.request_id: r for r in ask(url, request("feedback"), other, concurrency=1)
        }
    assert [read(request("feedback"), r)[0].status for r in replies.values()] == [
        "refused",
        "ok",
    ]
    assert error["message"] in replies[1].text
    assert len(received) == 2


def test_a_batch_names_what_a_content_filter_stopped(tmp_path):
    requests = rb.plan(
        rb.load("minibench", n_items=5), rb.fixed(5, 1), readout="feedback"
    )
    files = export_batch(
        requests, "openai:gpt-4.1", tmp_path / "b.jsonl", tmp_path / "s.sqlite"
    )
    keys = [json.loads(line)["custom_id"] for line in files[0].read_text().splitlines()]
    lines = [
        {"custom_id": key, "response": {"status_code": 400, "body": {"error": AZURE}}}
        for key in keys
    ]
    (tmp_path / "out.jsonl").write_text("\n".join(map(json.dumps, lines)))
    import_batch(
        requests, "openai:gpt-4.1", tmp_path / "out.jsonl", tmp_path / "s.sqlite"
    )
    found = rb.run(requests, "openai:gpt-4.1", store=tmp_path / "s.sqlite", max_calls=0)
    assert found.status.tolist() == ["refused"] * len(keys)


@pytest.mark.parametrize(
    ("spec", "variable"),
    [
        ("openai:gpt-4.1", "OPENAI_API_KEY"),
        ("openai:qwen@https://openrouter.ai/api/v1", "OPENROUTER_API_KEY"),
    ],
)
def test_a_hosted_endpoint_without_a_key_says_which_variable_to_set(
    monkeypatch, spec, variable
):
    monkeypatch.delenv(variable, raising=False)
    judge = rb.open_judge(spec)  # what is stored already needs no key
    with pytest.raises(ValueError, match=f"set the environment variable {variable}"):
        list(judge.answer([request("feedback")]))


def test_a_key_goes_to_its_own_host_only(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "of-openai")
    monkeypatch.setenv("MY_KEY", "of-mine")
    own = {
        "openai:m": "of-openai",
        "openai:m@http://localhost:1/v1": None,
        "openai:m@https://example.org/v1": None,
        "openai:m@https://api.openai.com.example.org/v1": None,
    }
    assert {spec: rb.open_judge(spec)._key() for spec in own} == own
    other = rb.open_judge("openai:m@https://example.org/v1", key_variable="MY_KEY")
    assert other._key() == "of-mine"


def test_what_is_sent_is_what_a_call_needs_and_nothing_else(monkeypatch):
    """No header of a client's own, of OpenAI's in the environment,
    or of an earlier answer.
    """
    for name in ("API_KEY", "ADMIN_KEY", "ORG_ID", "PROJECT_ID", "WEBHOOK_SECRET"):
        monkeypatch.setenv(f"OPENAI_{name}", "of-openai-0123")
    monkeypatch.setenv(
        "OPENAI_CUSTOM_HEADERS", "Authorization: Bearer gateway\nX-Gateway: mine"
    )
    monkeypatch.setenv("OPENAI_BASE_URL", "http://localhost:1/v1")
    monkeypatch.setenv("MY_KEY", "of-mine")
    assert headers_for("api.openai.com", "k") == {
        "Authorization": "Bearer k",
        "OpenAI-Organization": "of-openai-0123",
        "OpenAI-Project": "of-openai-0123",
    }
    answer = always(completion("[RESULT] 1"), headers={"Set-Cookie": "who=you; Path=/"})
    with endpoint(answer) as (url, received):
        ask(url, *(request("feedback", n) for n in range(3)), concurrency=1)
        ask(url, request("feedback"), key_variable="MY_KEY")
    host = url.removeprefix("http://").removesuffix("/v1")
    keys = [{}, {}, {}, {"authorization": "Bearer of-mine"}]
    for headers, body, key in zip(received.headers, received, keys, strict=True):
        assert int(headers.pop("content-length")) == len(json.dumps(body).encode())
        assert headers == key | {
            "host": host,
            "user-agent": "rubricnb",
            "accept": "application/json",
            "accept-encoding": "gzip, deflate",
            "connection": "keep-alive",
            "content-type": "application/json",
        }


@pytest.mark.parametrize("place", ["path", "host", "scheme"])
def test_a_call_that_would_go_elsewhere_is_stopped(place):
    answered = always(completion("[RESULT] 1"))
    with endpoint(answered) as (url, received), endpoint(answered) as (stranger, seen):
        elsewhere = {
            "path": f"{stranger}/chat/completions",
            "host": url.replace("127.0.0.1", "localhost") + "/chat/completions",
            "scheme": url.replace("http:", "https:") + "/chat/completions",
        }[place]

        async def asked():
            headers = headers_for("", "the-key")
            calls = OpenAIPosts(url, headers, redact=str, timeout=9, proxies=False)
            async with calls:
                await calls.ask(elsewhere, {"model": "m"})

        with pytest.raises(ValueError, match="was blocked"):
            asyncio.run(asked())
    assert (seen, received) == ([], [])


def test_a_proxy_is_used_for_hosts_on_the_internet_and_for_no_other(monkeypatch):
    """The proxy here answers itself; nobody else could: the host does not exist."""
    with endpoint(always(completion("[RESULT] 2"))) as (proxy, through):
        monkeypatch.setenv("HTTP_PROXY", proxy.removesuffix("/v1"))
        (reply,) = ask("http://judge.invalid/v1", request("feedback"), server="other")
        assert reply.text == "[RESULT] 2"
        assert through.paths == ["http://judge.invalid/v1/chat/completions"]
        with endpoint(always(completion("[RESULT] 1"))) as (url, _):
            (reply,) = ask(url, request("feedback"))
        assert reply.text == "[RESULT] 1"
        assert len(through) == 1


def test_a_text_with_half_a_character_is_sent():
    odd = Request(
        1, "k", (Message("user", "half \ud83e, whole 🦀"),), (), (), "feedback"
    )
    with endpoint(always(completion("Fine."))) as (url, received):
        (reply,) = ask(url, odd)
    assert reply.text == "Fine."
    assert received[0]["messages"][0]["content"] == odd.messages[0].content


def test_thoughts_that_stand_in_the_total_only_are_counted():
    """So at xAI and Google, where they are paid as everywhere."""
    usage = {"prompt_tokens": 32, "completion_tokens": 9, "total_tokens": 135}
    with endpoint(always(completion("[RESULT] 1") | {"usage": usage})) as (url, _):
        (reply,) = ask(url, request("feedback"))
    assert (reply.prompt_tokens, reply.completion_tokens) == (32, 103)


def body(server, readout="feedback", model="m", extra=None, **options):
    judge = OpenAIJudge(model, "http://localhost:1/v1", server=server, extra=extra)
    return judge.first_call(request(readout, **{"max_tokens": 0} | options))[1]


def test_each_server_is_asked_in_its_own_words():
    assert "max_completion_tokens" in body("openai")
    assert "max_tokens" in body("other")
    assert body("openai", effort="high")["reasoning_effort"] == "high"
    sent = body("openrouter", effort="low", thinking="on")
    assert sent["reasoning"] == {"effort": "low", "enabled": True}
    assert sent["provider"] == {"require_parameters": True}
    assert body("vllm", thinking="off")["chat_template_kwargs"] == {
        "enable_thinking": False
    }
    assert body("llama.cpp", "score")["grammar"] == 'root ::= " 3" | " 1" | " 2"'
    assert body("openai", "logprobs")["top_logprobs"] == 20
    with pytest.raises(
        JudgeError, match="thinking='on' cannot be asked of this endpoint"
    ):
        body("openai", thinking="on")


def test_who_thinks_is_given_room_for_it():
    short = body("openai")["max_completion_tokens"]
    for options in ({"effort": "low"}, {"model": "o4-mini"}, {"model": "gpt-5-mini"}):
        assert body("openai", **options)["max_completion_tokens"] >= short + 8000
    assert (
        body("openrouter", model="deepseek/deepseek-r1-0528")["max_tokens"]
        >= short + 8000
    )
    for model in ("gpt-4o", "gpt-5-chat-latest"):
        assert body("openai", model=model)["max_completion_tokens"] == short
    assert body("openai", effort="high", max_tokens=99)["max_completion_tokens"] == 99


def test_parameters_of_an_endpoint_s_own_are_sent_and_change_who_answers():
    extra = {"provider": {"order": ["a"]}}
    both = {"require_parameters": True, "order": ["a"]}
    assert body("openrouter", extra=extra)["provider"] == both
    own = {"provider": {"require_parameters": False}}
    assert body("openrouter", extra=own)["provider"] == own["provider"]
    judges = [
        OpenAIJudge("m", extra=e) for e in (None, extra, {"provider": {"order": ["b"]}})
    ]
    assert len({judge.identity for judge in judges}) == 3


@pytest.mark.parametrize(
    ("asked", "answered", "same"),
    [
        ("gpt-4.1", "gpt-4.1-2025-04-14", True),
        ("gpt-4o", "gpt-4o-mini", False),
        ("gpt-4.1-mini", "gpt-4.1", False),
        ("deepseek/deepseek-chat:free", "deepseek/deepseek-chat-v3-0324:free", True),
        ("/models/Qwen3-8B", "Qwen3-8B", True),
    ],
)
def test_an_alias_may_answer_under_its_dated_name_but_not_as_another_model(
    asked, answered, same
):
    judge = OpenAIJudge(asked, "http://localhost:1/v1", server="other")
    reply = judge.read(
        request("feedback"), completion("[RESULT] 1") | {"model": answered}
    )
    assert (reply.finish == "stop") == same
    assert same or repr(answered) in reply.error


@pytest.mark.parametrize("server", ["llama.cpp", "vllm", "openai"])
def test_repeats_at_temperature_0_are_asked_of_a_server_not_copied(server):
    plan = rb.plan(rb.load("minibench", n_items=1), rb.fixed(5, 3), readout="feedback")
    with endpoint(always(completion("[RESULT] 1"))) as (url, received):
        judge = OpenAIJudge("m", url, server=server)
        found = rb.run(plan, judge, ":memory:")
        judge.close()
    assert len(received) == found.key.nunique() == len(plan) == 3


def test_the_limit_of_an_account_is_kept():
    options = {"requests_per_minute": 600, "concurrency": 1}
    with endpoint(always(completion("[RESULT] 1"))) as (url, received):
        assert (
            len(ask(url, *(request("feedback", i) for i in range(8)), **options)) == 8
        )
    assert received.times[-1] - received.times[0] >= 7 * 0.09


def test_part_of_a_character_is_not_taken_for_the_text_it_is_shown_as():
    space, part = {"token": " ", "logprob": -1.0}, {"token": " ", "logprob": -9.0}
    shown = [space | {"bytes": [32]}, part | {"bytes": [32, 195]}]
    content = [{"token": " ", "top_logprobs": order} for order in (shown, shown[::-1])]
    assert [step.alternatives for step in _steps({"content": content})] == [
        {" ": math.exp(-1)}
    ] * 2


def test_none_leaves_a_parameter_out_that_a_host_refuses():
    sent = body("other", extra={"temperature": None})
    assert "temperature" not in sent
    assert "messages" in sent


THOUGHT = ["Of", " 3", ": [RESULT]", " 2", ". But"]
ANSWER = ["Kühl", " 🧊. ", "[RESULT]", " 1", "<|im_end|>"]


@pytest.mark.parametrize(
    ("tokens", "content", "finish", "status", "position"),
    [
        (THOUGHT, None, "length", "truncated", None),
        (THOUGHT + ANSWER, "Kühl 🧊. [RESULT] 1", "stop", "ok", 2),
        (THOUGHT, "Kühl. [RESULT] 1", "stop", "ok", 2),
    ],
)
def test_tokens_of_a_thought_that_a_server_took_out_give_no_score(
    tokens, content, finish, status, position
):
    """The list of log-probabilities may span the thought, and `content` does not."""
    sent = completion(content, finish, tops=[(t, {t: 0.7}) for t in tokens])
    with endpoint(always(sent)) as (url, _):
        (reply,) = ask(url, request("logprobs"))
    (reading,) = read(request("logprobs"), reply)
    assert (reading.status, reading.position) == (status, position)
    assert (reading.probabilities is None) == ("<|im_end|>" not in tokens)


def test_tokens_are_spelt_by_their_bytes():
    parts = "🧊".encode()[:2], "🧊".encode()[2:]
    content = [{"token": "\\x..", "bytes": [*part]} for part in parts]
    assert [step.token for step in _steps({"content": content})] == ["", "🧊"]


@pytest.mark.parametrize("tops", [{}, {'":': 1.0}])
def test_scores_without_probabilities_are_counted_at_once(tops, capsys):
    tokens = [("[RESULT]", {"[RESULT]": 1.0}), (" 4", tops)]
    sent = completion("[RESULT] 4", tops=tokens)
    items = rb.load("minibench", n_items=3)
    with endpoint(always(sent)) as (url, _):
        judge = rb.open_judge(f"openai:m@{url}", server="other")
        plan = rb.plan(items, rb.fixed(5, 1), readout="logprobs")
        assert rb.run(plan, judge, store=":memory:").score.tolist() == [4, 4, 4]
        judge.close()
    assert "0 of 3 scores have probabilities" in capsys.readouterr().out
