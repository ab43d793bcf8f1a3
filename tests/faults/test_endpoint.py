"""Everything an endpoint can do wrong: a run completes or stops clearly,
and a resume finishes it.

Every fault is met alone (the endpoint does nothing else), mixed with good answers, and
passing (gone when the call is sent again).
"""

import hashlib
import json
import threading
import time
from collections import Counter, defaultdict
from itertools import count

import pytest
from endpoint import completion, endpoint
from typer.testing import CliRunner

import rubricnb as rb
from rubricnb.cli.commands import app
from rubricnb.core.contract import Message, Request
from rubricnb.core.run import RunInterrupted, ask
from rubricnb.engines.openai import JudgeError
from studies.recording import record

GOOD = completion(
    "Fine. [RESULT] 2", tops=[("[RESULT]", {}), (" 2", {" 2": 0.7, " 1": 0.2})]
)
ODD = "\ud83e\udd80\u0000\u202e \ud800 é́ [RESULT] 2"


def fault(status=200, body=GOOD, **headers):
    return (
        status,
        body,
        {name.replace("_", "-"): value for name, value in headers.items()},
    )


FAULTS = {
    "429": fault(429, {"error": {"message": "slow down"}}),
    "429 that says when": fault(
        429, {"error": {"message": "slow down"}}, Retry_After="0.05"
    ),
    "429 for an hour": fault(
        429, {"error": {"message": "slow down"}}, Retry_After="3600"
    ),
    "500": fault(500, {"error": {"message": "boom"}}),
    "400": fault(
        400, {"error": {"message": "too long", "code": "context_length_exceeded"}}
    ),
    "a dead connection": fault(200, None),
    "a cut body": fault(200, b'{"id": "x", "choices": [', Content_Length="500"),
    "a page": fault(200, b"<html>welcome</html>", Content_Type="text/html"),
    "an error under 200": fault(200, {"error": {"message": "provider is down"}}),
    "no choice": fault(200, GOOD | {"choices": []}),
    "no text": fault(200, completion({"value": "Fine."})),
    "an empty answer": fault(200, completion("")),
    "another model": fault(200, GOOD | {"model": "some-other"}),
    "an answer that broke off": fault(200, completion("Fine. [RES", finish="error")),
    "a choice with an error": fault(
        200,
        GOOD
        | {
            "choices": [
                GOOD["choices"][0] | {"error": {"code": 502, "message": "gone"}}
            ]
        },
    ),
}
# What may be gone when the call is sent again, beside some of these.
PASSING = {
    "a provider's error under 200": fault(
        200, {"error": {"code": 502, "message": "down"}}
    ),
    "402 that says when": fault(
        402, {"error": {"message": "in flight"}}, Retry_After="0.05"
    ),
}
# The statuses after a run; all others are errors that are asked again.
HARMLESS = {
    "100 kB": (fault(200, completion("x" * 100_000 + " [RESULT] 2")), "ok"),
    "odd text": (fault(200, completion(ODD)), "ok"),
    "odd counts": (
        fault(200, completion("[RESULT] 2") | {"usage": {"prompt_tokens": "?"}}),
        "ok",
    ),
    "no score": (fault(200, completion("I liked it.")), "unparsed"),
    "a cut answer": (fault(200, completion("Well", finish="length")), "truncated"),
}
# when met at first contact
STOPS = {"a dead connection", "a cut body", "another model"}


def prompt_of(payload):
    return hashlib.sha256(payload["messages"][0]["content"].encode()).hexdigest()


@pytest.mark.parametrize("name", FAULTS)
def test_an_endpoint_that_does_nothing_right_and_then_recovers(
    name, plan, asking, stored
):
    requests = plan.head(6)
    answers = [FAULTS[name]]
    with endpoint(lambda payload, headers: answers[-1]) as (url, received):
        if name in STOPS:
            with pytest.raises(JudgeError, match=r"no server answers at|asked for 'm'"):
                asking(url, requests)
        else:
            judgments = asking(url, requests)
            assert (judgments["status"] == "error").all()
            assert len(received) == len(requests)  # where all fail, none is asked again
            assert all(len(error) > 5 for error in stored("error"))
        answers.append(fault())
        assert (asking(url, requests)["status"] == "ok").all()


@pytest.mark.parametrize("name", HARMLESS)
def test_an_answer_that_is_odd_is_kept_and_not_paid_again(name, plan, asking):
    answer, status = HARMLESS[name]
    with endpoint(lambda payload, headers: answer) as (url, received):
        for _ in range(2):
            judgments = asking(url, plan.head(3))
            assert (judgments["status"] == status).all()
        assert len(received) == 3


def test_all_faults_at_once_hit_only_their_own_requests(plan, asking):
    """Every other prompt meets a fault, each another one,
    for as long as the endpoint is ill.
    """
    # One that asks for an hour would hold back the others for a while.
    faults = [fault for name, fault in FAULTS.items() if name != "429 for an hour"]
    ill, fates = [True], defaultdict(count().__next__)

    def answer(payload, headers):
        number = fates[prompt_of(payload)]
        return faults[number // 2 % len(faults)] if ill[0] and number % 2 else fault()

    requests = plan.head(2 * len(faults))
    with endpoint(answer) as (url, received):
        first = asking(url, requests)
        asked = received.prompts()
        assert first["status"].value_counts().to_dict() == dict.fromkeys(
            ("ok", "error"), len(faults)
        )
        # what failed was asked once more, the rest was not
        assert set(asked.values()) == {1, 2}
        ill[0] = False
        second = asking(url, requests)
    assert (second["status"] == "ok").all()
    again = received.prompts() - asked
    assert len(again) == len(faults)
    assert all(asked[prompt] == 2 for prompt in again)
    assert first[first.status == "ok"].key.isin(second.key).all()


def test_faults_that_pass_leave_no_trace(plan, asking):
    passing = [
        FAULTS[n]
        for n in ("429 that says when", "500", "a dead connection", "a cut body")
    ]
    passing += PASSING.values()
    calls, lock = Counter(), threading.Lock()

    def answer(payload, headers):
        with lock:
            calls[prompt_of(payload)] += 1
            first = calls[prompt_of(payload)] == 1
            failed = passing[len(calls) % len(passing)]
        return failed if first and len(calls) > 1 else fault()

    with endpoint(answer) as (url, _):
        judgments = asking(url, plan.head(9), retries=2)
    assert (judgments["status"] == "ok").all()
    assert sorted(calls.values()) == [1, *[2] * 8]


def test_the_endpoint_is_left_alone_for_as_long_as_it_asks(plan, asking):
    busy = fault(429, {"error": {"message": "slow down"}}, Retry_After="0.7")
    with endpoint([busy, fault()]) as (url, received):
        asking(url, plan.head(1), retries=1)
    assert received.times[1] - received.times[0] >= 0.7


def test_an_answer_that_takes_too_long_is_given_up_and_asked_again(
    plan, asking, stored
):
    slow, done = [], threading.Event()

    def answer(payload, headers):
        slow.append(prompt_of(payload))
        if slow[0] == slow[-1]:
            done.wait(60)
        return fault()

    with endpoint(answer) as (url, _):
        judgments = asking(url, plan.head(4), timeout=2, concurrency=1)
        assert judgments["status"].tolist() == ["error", "ok", "ok", "ok"]
        (error,) = filter(None, stored("error"))
        assert "TimeoutError: no complete response within 2 s" in error
        done.set()
        assert (asking(url, plan.head(4))["status"] == "ok").all()


def drip():
    """An answer that never ends, and never pauses for long."""
    while True:
        yield b" "
        time.sleep(0.05)


DRIPPING = fault(200, drip, Content_Length="5000")  # the whole of it would take 250 s


def test_an_answer_that_only_drips_is_given_up_as_one_that_does_not_come(plan, asking):
    with endpoint([fault(), DRIPPING, fault()]) as (url, received):
        started = time.monotonic()
        judgments = asking(url, plan.head(3), timeout=3, retries=1, concurrency=1)
        assert time.monotonic() - started < 120
    assert (judgments["status"] == "ok").all()
    assert len(received) == 4


def test_patience_ends_while_a_call_is_still_under_way(plan, asking):
    with endpoint([fault(), DRIPPING]) as (url, _):
        started = time.monotonic()
        with pytest.raises(JudgeError, match="has not answered for 0 min"):
            asking(url, plan.head(4), timeout=60, patience=1)
        assert time.monotonic() - started < 50


def test_an_endpoint_that_asks_for_more_than_patience_is_not_asked_in_the_meantime(
    plan, asking
):
    """The client itself would not send it again at all."""

    def answer(payload, headers):
        # so patience, which began before it, ends well before a pause as long
        time.sleep(0.5)
        return FAULTS["429 for an hour"]

    with (
        endpoint(answer) as (url, received),
        pytest.raises(
            JudgeError, match=r"has not answered for .*; the last attempt: .*slow down"
        ),
    ):
        asking(url, plan.head(4), retries=6, concurrency=2, patience=2)
    assert len(received) == 2


@pytest.mark.parametrize(
    ("readout", "refusal"),
    [
        ("feedback", fault(403, {"error": {"message": "flagged by moderation"}})),
        ("feedback", fault(200, GOOD | {"model": "some-other"})),
        ("logprobs", fault(200, completion("[RESULT] 2"))),  # without log-probabilities
    ],
)
@pytest.mark.parametrize("kept", ["in the store", "recorded"])
def test_when_only_what_is_refused_is_left_the_run_still_ends(
    readout, refusal, kept, plan, asking, tmp_path, monkeypatch
):
    """A later run asks nothing but what the first was refused: no reason to stop it."""
    monkeypatch.setenv("RUBRICNB_RESULTS", str(tmp_path / "results"))
    requests = rb.plan(plan.source, rb.balanced(5), readout=readout).head(5)
    seen, flagged = [], []

    def answer(payload, headers):
        seen.append(prompt_of(payload))
        if len(seen) == 3:
            flagged.append(seen[2])
        return refusal if seen[-1] in flagged else fault()

    with endpoint(answer) as (url, _):
        first = asking(url, requests, concurrency=1)
        assert sorted(first["status"]) == ["error", *["ok"] * 4]
        if kept == "recorded":
            judge = rb.open_judge(f"openai:m@{url}")
            record(
                first, judge, "study", model="m", licence="none", spec=f"openai:m@{url}"
            )
            (tmp_path / "replies.sqlite").unlink()
        seen[3:] = []
        second = asking(url, requests, concurrency=1)
        assert seen[3:] == flagged
    assert second["status"].tolist() == first["status"].tolist()


def test_a_list_of_models_that_is_late_does_not_change_what_the_server_is():
    late = fault(503, {"error": {"message": "loading"}})
    models = fault(200, {"object": "list", "data": [{"id": "m", "owned_by": "vllm"}]})
    for answers, server in (
        ([late, models], "vllm"),
        ([fault(404, b"<html>")], "other"),
    ):
        with endpoint([fault()], listing=iter(answers).__next__) as (url, _):
            assert rb.open_judge(f"openai:m@{url}", retries=1).server == server
    with endpoint([fault()], listing=lambda: late) as (url, _):
        judge = rb.open_judge(f"openai:m@{url}", retries=0)
        with pytest.raises(JudgeError, match="refused: 503 loading"):
            _ = judge.server


def test_an_endpoint_that_falls_silent_stops_the_run(plan, asking, tmp_path):
    seen = []

    def answer(payload, headers):
        seen.append(1)
        if len(seen) <= 10:
            return fault()
        time.sleep(0.2)  # so the forty are not through before patience ends
        return FAULTS["500"]

    with (
        endpoint(answer) as (url, _),
        pytest.raises(
            JudgeError, match=r"has not answered for .* min; the last attempt: .*boom"
        ),
    ):
        asking(url, plan.head(40), concurrency=1, patience=2)
    with endpoint(lambda p, h: fault()) as (url2, received):
        judge = rb.open_judge(f"openai:m@{url2}")
        judge.identity = f"{url} m"  # the same endpoint, up again
        judgments = rb.run(plan.head(40), judge, store=tmp_path / "replies.sqlite")
        judge.close()
    assert (judgments["status"] == "ok").all()
    assert len(received) == 30


OTHER_READOUTS = "choose readout 'score' or 'feedback', or a model that"
UNSUPPORTED = {"message": "no", "code": "unsupported_parameter"}
TOO_PROBABLE = completion("[RESULT] 2", tops=[("[RESULT]", {}), (" 2", {" 2": 148.0})])


@pytest.mark.parametrize(
    ("readout", "status", "body", "advice"),
    [
        (
            "feedback",
            401,
            {"message": "wrong key"},
            "401 wrong key; key_variable= names the env",
        ),
        ("feedback", 402, {"message": "no credit"}, "no credit"),
        ("feedback", 403, {"message": "not you"}, "refused: 403 not you"),
        (
            "feedback",
            429,
            {"message": "pay first", "code": "insufficient_quota"},
            "pay first",
        ),
        (
            "feedback",
            400,
            {"message": "no", "code": "unsupported_value", "param": "temperature"},
            r"plan with temperature=1\.0",
        ),
        (
            "feedback",
            400,
            UNSUPPORTED | {"param": "max_tokens"},
            'with server="openai"',
        ),
        ("logprobs", 400, UNSUPPORTED | {"param": "logprobs"}, OTHER_READOUTS),
        (
            "logprobs",
            403,
            {"message": "You are not allowed to request logprobs"},
            OTHER_READOUTS,
        ),
        (
            "logprobs",
            200,
            completion("[RESULT] 2"),
            f"no log-probabilities: {OTHER_READOUTS}",
        ),
        ("logprobs", 200, TOO_PROBABLE, "invalid log-probabilities"),
    ],
)
def test_what_no_request_will_survive_stops_the_run_with_what_to_do(
    plan, asking, readout, status, body, advice
):
    answer = fault(status, body if "choices" in body else {"error": body})
    requests = rb.plan(plan.source, rb.balanced(5), readout=readout)
    with (
        endpoint(lambda p, h: answer) as (url, received),
        pytest.raises(JudgeError, match=advice),
    ):
        asking(url, requests, concurrency=4)
    assert len(received) <= 4


@pytest.mark.parametrize(("server", "bounded"), [("openai", False), ("vllm", True)])
def test_a_schema_is_sent_without_what_strict_mode_refuses(server, bounded, tmp_path):
    """OpenAI refuses lengths of strings;
    a schema may name its properties as it likes.
    """

    def schema(lengths):
        text = {"type": "string"} | lengths
        names = {"maxLength": {"type": "array", "items": text, "maxItems": 2}}
        return {"type": "object", "properties": names, "required": ["maxLength"]}

    full = schema({"minLength": 1, "maxLength": 400})
    request = Request(
        1, "", (Message("user", "Judge."),), (), (), "json", schema=json.dumps(full)
    )
    with endpoint([fault(200, completion('{"maxLength": ["yes"]}'))]) as (
        url,
        received,
    ):
        judge = rb.open_judge(f"openai:m@{url}", server=server, retries=0)
        [reply] = ask([request], judge, store=tmp_path / "replies.sqlite")
        judge.close()
    assert reply.finish == "stop"
    sent = received[0]["response_format"]["json_schema"]["schema"]
    assert sent == (full if bounded else schema({}))


@pytest.mark.parametrize("concurrency", [1, 64])
def test_max_cost_holds_for_long_thoughts_and_many_calls_at_once(
    concurrency, plan, tmp_path
):
    long = GOOD | {"usage": {"prompt_tokens": 1000, "completion_tokens": 8000}}
    with endpoint(lambda p, h: fault(200, long)) as (url, received):
        judge = rb.open_judge(
            f"openai:gpt-5@{url}", concurrency=concurrency, check_model=False
        )
        with pytest.raises(
            RunInterrupted, match=r"stopped at \$1\.87 .* max_cost=\$2\.00 allows"
        ):
            rb.run(
                plan, judge, tmp_path / "s.sqlite", max_cost=2, price=(1.25, 0.125, 10)
            )
        judge.close()
    assert len(received) == 23  # of 8.1 cents; the next might take 17.7


def test_what_is_under_way_when_the_run_must_stop_is_kept(plan, asking, stored):
    """A call that is paid is stored,
    though another one has just shown that the key is void.
    """
    started, lock, void = [], threading.Lock(), threading.Event()

    def answer(payload, headers):
        with lock:
            started.append(prompt_of(payload))
            place = len(started)
        if place == 4:
            void.set()
            return fault(401, {"error": {"message": "the key has run out"}})
        assert void.wait(60)
        time.sleep(1)  # by then the run has been told
        return fault()

    with endpoint(answer) as (url, _):
        with pytest.raises(JudgeError, match="has run out"):
            asking(url, plan.head(20), concurrency=4)
        assert len(started) == 4
        assert len(stored("key")) == 3


@pytest.mark.slow
def test_an_audit_keeps_to_its_allowance_and_goes_on_from_there(tmp_path, monkeypatch):
    """As a user types it, to an endpoint that is busy every seventh time."""
    monkeypatch.setenv("RUBRICNB_STORE", str(tmp_path / "s.sqlite"))
    seen, answered = [], Counter()

    def answer(payload, headers):
        seen.append(1)
        if len(seen) % 7 == 0:
            return FAULTS["429 that says when"]
        answered[prompt_of(payload)] += 1
        return fault()

    with endpoint(answer) as (url, _):
        command = [
            "audit",
            "--judge",
            f"openai:m@{url}",
            "--n-items",
            "15",
            "--readout",
            "feedback",
            "--output",
            str(tmp_path / "a.html"),
        ]
        calls = CliRunner().invoke(app, [*command, "--max-calls", "30"])
        assert (calls.exit_code, answered.total()) == (1, 30)
        assert "stopped after 30 calls: every answer so far is kept in" in calls.output
        assert "run it again to continue" in calls.output
        # Seven tokens an answer: $0.00007, once it is seen that no answer takes more.
        dollars = CliRunner().invoke(
            app, [*command, "--max-cost", "0.0125", "--price", *"009"]
        )
        assert dollars.exit_code == 1
        assert "the next might cost more than max_cost=$0.01 allows" in dollars.output
        spent = answered.total()
        assert not (tmp_path / "a.html").exists()
        done = CliRunner().invoke(app, command)
    # always the same score
    assert (done.exit_code, (tmp_path / "a.html").exists()) == (3, True)
    assert done.output.startswith(f"{answered.total()} calls, ")  # none of them twice
    assert 30 < spent < answered.total()
