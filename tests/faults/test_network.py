"""What an endpoint may do with a connection: redirect, never end, answer in odd ways, say slow."""

import gzip
import json
import re
import threading
import time
import tracemalloc
from collections import Counter

import pytest
from endpoint import completion, endpoint
from typer.testing import CliRunner

import rubricnb as rb
from rubricnb.cli import app
from rubricnb.judging.openai import JudgeError
from rubricnb.judging.run import RunInterrupted

GOOD = completion("Fine. [RESULT] 2")
REDIRECTS = (301, 302, 303, 307, 308)


@pytest.fixture(scope="module")
def plan():
    return rb.plan(rb.load("minibench", n_items=10), rb.balanced(5), readout="feedback")


def asking(url, requests, tmp_path, model="m", limits=None, **options):
    judge = rb.open_judge(f"openai:{model}@{url}", **{"retries": 0, "timeout": 60} | options)
    try:
        return rb.run(requests, judge, store=tmp_path / "replies.sqlite", **limits or {})
    finally:
        judge.close()


def stored(tmp_path, column):
    import sqlite3

    with sqlite3.connect(tmp_path / "replies.sqlite") as db:
        return [v for (v,) in db.execute(f"SELECT {column} FROM replies")]


@pytest.fixture
def stranger():
    """A second server that would answer, and what it is sent."""
    seen = []

    def listing():
        seen.append("GET")
        return 200, {"object": "list", "data": []}, {}

    def answer(payload, headers):
        seen.append((payload, dict(headers)))
        return 200, GOOD, {}

    with endpoint(answer, listing=listing) as (url, _):
        yield url.replace("127.0.0.1", "localhost"), seen


@pytest.mark.parametrize("status", REDIRECTS)
def test_prompt_and_key_never_follow_a_redirect(status, plan, tmp_path, stranger, monkeypatch):
    monkeypatch.setenv("MY_KEY", "correct horse battery")
    other, seen = stranger
    target = f"{other}/chat/completions"

    def answer(payload, headers):
        return status, b"", {"Location": f"{target}?token=secret"}

    with (
        endpoint(answer) as (url, received),
        pytest.raises(JudgeError, match=re.escape(target)) as caught,
    ):
        asking(url, plan.head(4), tmp_path, key_variable="MY_KEY", concurrency=1, retries=3)
    assert (seen, len(received)) == ([], 1)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("status", REDIRECTS)
def test_a_list_of_models_is_not_looked_for_elsewhere(status, plan, tmp_path, stranger):
    other, seen = stranger
    with (
        endpoint(lambda p, h: (200, GOOD, {}),
                 listing=lambda: (status, b"", {"Location": f"{other}/models"})) as (url, received),
        pytest.raises(JudgeError, match=re.escape(f"{other}/models")),
    ):  # fmt: skip
        asking(url, plan.head(4), tmp_path)
    assert (seen, received) == ([], [])


def test_a_redirect_in_the_middle_of_a_run_stops_it(plan, tmp_path, stranger):
    other, seen = stranger
    asked = []

    def answer(payload, headers):
        asked.append(1)
        return (307, b"", {"Location": other}) if len(asked) > 3 else (200, GOOD, {})

    with endpoint(answer) as (url, _), pytest.raises(JudgeError, match="redirects"):
        asking(url, plan.head(9), tmp_path, concurrency=1)
    assert (seen, stored(tmp_path, "finish")) == ([], ["stop"] * 3)


@pytest.mark.parametrize("status", [200, 400])
def test_an_answer_without_end_is_read_to_a_limit(status, plan, tmp_path):
    sent = [0]

    def endless():
        piece = b" " * 65536
        while True:
            yield piece
            sent[0] += len(piece)

    with endpoint(lambda p, h: (status, endless, {"Content-Length": "1" + "0" * 12})) as (url, _):
        judgments = asking(url, plan.head(2), tmp_path, timeout=20, server="other")
    assert (judgments["status"] == "error").all()
    assert sent[0] < 2 * 40 * 2**20  # 16 MiB each, and what the system holds between the two
    assert "TimeoutError" not in stored(tmp_path, "error")[0]


def test_a_small_answer_that_swells_costs_little_memory(plan, tmp_path):
    bomb = gzip.compress(b" " * 400_000_000)
    with endpoint(lambda p, h: (200, bomb, {"Content-Encoding": "gzip"})) as (url, _):
        tracemalloc.start()
        judgments = asking(url, plan.head(1), tmp_path, server="other")
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    assert (judgments["status"] == "error").all()
    assert peak < 200e6


STREAM = b'data: {"choices": [{"delta": {"content": "Fine. [RESULT] 2"}}]}\n\ndata: [DONE]\n\n'
PARTS = [
    {"type": "thinking", "thinking": [{"type": "text", "text": "Hm. [RESULT] 1"}]},
    {"type": "text", "text": "Fine. "},
    {"type": "text", "text": "[RESULT] 2"},
]
READABLE = {
    "JSON as text": (json.dumps(GOOD).encode(), "text/plain"),
    "JSON as nothing": (json.dumps(GOOD).encode(), "application/octet-stream"),
    "parts": (completion(PARTS), "application/json"),
}


@pytest.mark.parametrize("name", READABLE)
def test_an_answer_in_another_form_is_read_and_paid_once(name, plan, tmp_path):
    body, kind = READABLE[name]
    with endpoint(lambda p, h: (200, body, {"Content-Type": kind})) as (url, received):
        for _ in range(2):
            judgments = asking(url, plan.head(3), tmp_path)
            assert (judgments["status"] == "ok").all()
    assert len(received) == 3
    assert set(stored(tmp_path, "text")) == {"Fine. [RESULT] 2"}
    assert set(stored(tmp_path, "completion_tokens")) == {7}


@pytest.mark.parametrize(
    "body",
    [b"Thank you [RESULT] 2", STREAM, b"[" * 100_000,
     json.dumps(GOOD | {"choices": "Thank you"}).encode()],
)  # fmt: skip
def test_what_cannot_be_read_is_kept_as_it_came(body, plan, tmp_path):
    with endpoint(lambda p, h: (200, body, {})) as (url, _):
        judgments = asking(url, plan.head(1), tmp_path)
    assert (judgments["status"] == "error").all()
    [kept] = stored(tmp_path, "text")
    assert kept.strip()[:50] == body.decode().strip()[:50]


SECRET = "PW0123456789"


@pytest.mark.parametrize(
    "address",
    [f"user:{SECRET}@host", f"https:/user:{SECRET}@host/v1", f"https:///user:{SECRET}@host/v1",
     f"https://host/v1;key={SECRET}", f"https://host/v1#{SECRET}", f"https://host/v1?key={SECRET}",
     f"https://user:{SECRET}@host/v1", f"https://{SECRET}@host/v1", f"https://host:{SECRET}/v1",
     f"ftp://u:{SECRET}@host/v1", f"https://host\\@{SECRET}/v1", f"https://[{SECRET}/v1"],
)  # fmt: skip
def test_an_address_with_more_than_an_address_in_it_is_refused_without_repeating_it(address):
    with pytest.raises(ValueError, match="an endpoint's address") as caught:
        rb.open_judge(f"openai:m@{address}")
    assert SECRET not in str(caught.value)


@pytest.mark.parametrize(
    ("address", "fix"),
    [("localhost:8899/v1", "http://localhost:8899/v1"), ("10.0.0.7:80/v1", "http://10.0.0.7:80/v1"),
     ("gpu.example.org/v1", "https://gpu.example.org/v1"), ("https:/api.x.org/v1", "https://HOST"),
     ("http://api.openai.com/v1", "https://api.openai.com/v1")],
)  # fmt: skip
def test_an_address_that_lacks_something_is_named_at_once_with_the_fix(address, fix):
    with pytest.raises(ValueError, match=re.escape(fix)):
        rb.open_judge(f"openai:m@{address}")


def test_a_missing_v1_is_named(plan, tmp_path):
    with endpoint(lambda p, h: (404, {"detail": "Not Found"}, {})) as (url, _):
        bare = url.removesuffix("/v1")
        with pytest.raises(
            JudgeError, match=re.escape(f"404 Not Found; most addresses end in /v1: {url}")
        ):
            asking(bare, plan.head(1), tmp_path)


def test_a_server_that_is_down_is_named_at_once_with_how_to_start_one(plan, tmp_path):
    began = time.monotonic()
    with pytest.raises(
        JudgeError, match=r"nobody answers.*llama-server -m .*vllm serve m --port 9"
    ) as caught:
        asking("http://127.0.0.1:9/v1", plan.head(1), tmp_path, retries=6)
    assert time.monotonic() - began < 5
    assert "127.0.0.1:9/v1" in str(caught.value)


def test_a_server_that_speaks_no_tls_is_no_server_that_is_down(plan, tmp_path):
    with endpoint(lambda p, h: (200, GOOD, {})) as (url, received):
        with pytest.raises(
            JudgeError, match=r"no encrypted connection to https://.*http://"
        ) as caught:
            asking(url.replace("http:", "https:"), plan.head(1), tmp_path)
        assert "start" not in str(caught.value)
    assert received == []


def test_an_address_for_a_version_of_azure_is_named_with_one_that_needs_none():
    with pytest.raises(ValueError, match="/openai/v1 needs no api-version"):
        rb.open_judge("openai:m@https://x.openai.azure.com/openai?api-version=1")


def test_this_machine_is_sent_no_key_but_the_one_named(plan, tmp_path, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "of-openai-1234")
    sent = []
    with endpoint(lambda p, h: sent.append(h.get("Authorization")) or (200, GOOD, {})) as (url, _):
        asking(url, plan.head(1), tmp_path)
        asking(url, plan.head(2), tmp_path, key_variable="OPENAI_API_KEY")
        monkeypatch.delenv("OPENAI_API_KEY")
        with pytest.raises(ValueError, match="set the environment variable OPENAI_API_KEY"):
            asking(url, plan.head(3), tmp_path, key_variable="OPENAI_API_KEY")
    assert sent == [None, "Bearer of-openai-1234"]


FAILURES = {
    "402 under 200": ((200, {"error": {"code": 402, "message": "no credit left"}}, {}), None),
    "always 400": ((400, {"error": {"message": "no such field"}}, {}), "400 no such field"),
    "a login page": ((200, b"<html>Please log in", {"Content-Type": "text/html"}), "Please log in"),
    "odd content": ((200, completion({"a": 1}), {}), "sent no text"),
}


@pytest.mark.parametrize("name", FAILURES)
def test_a_run_that_fails_says_why(name, plan, tmp_path, capsys):
    answer, reason = FAILURES[name]
    with endpoint(lambda p, h: answer) as (url, _):
        if reason is None:
            with pytest.raises(JudgeError, match="402 no credit left"):
                asking(url, plan.head(8), tmp_path)
            return
        asking(url, plan.head(8), tmp_path)
    [line] = [line for line in capsys.readouterr().out.splitlines() if line.startswith("m: ")]
    assert line.startswith("m: 8 of 8 in")
    assert "8 failed: " in line
    assert reason in line


def test_the_commonest_of_several_reasons_is_said(plan, tmp_path, capsys):
    seen = Counter()

    def answer(payload, headers):
        seen["all"] += 1
        return (400, {"error": {"message": "too long" if seen["all"] % 4 else "odd"}}, {})

    with endpoint(answer) as (url, _):
        asking(url, plan.head(8), tmp_path, concurrency=1)
    assert "8 failed, 6 of them: 400 too long" in capsys.readouterr().out


def test_answers_none_of_which_can_be_read_are_shown_by_an_example(plan, tmp_path, capsys):
    with endpoint(lambda p, h: (200, completion("Bewertung: 3 von 4"), {})) as (url, _):
        asking(url, plan.head(8), tmp_path)
    out = capsys.readouterr().out
    assert "no score in any of 8 answers" in out
    assert "'Bewertung: 3 von 4'" in out


@pytest.mark.parametrize(
    "answer", [(400, {"error": {"message": "no such field"}}, {}), (200, completion("Gut."), {})]
)
def test_a_judge_that_never_answers_gets_no_page(answer, plan, tmp_path, monkeypatch):
    monkeypatch.setenv("RUBRICNB_STORE", str(tmp_path / "s.sqlite"))
    page = tmp_path / "audit.html"
    with endpoint(lambda p, h: answer) as (url, _):
        command = ["audit", "--judge", f"openai:m@{url}", "--n-items", "15"]
        options = ["--readout", "feedback", "--output", str(page)]
        done = CliRunner().invoke(app, [*command, *options])
        judgments = asking(url, plan.head(8), tmp_path)
    assert done.exit_code == 1
    assert not page.exists()
    assert "error: m gave no score in any of 21 judgments" in done.output
    with pytest.raises(ValueError, match="m gave no score in any of 8 judgments"):
        rb.pages.numbers_of(judgments)


def test_max_cost_holds_on_this_machine_or_says_that_it_cannot(plan, tmp_path):
    long = GOOD | {"usage": {"prompt_tokens": 100, "completion_tokens": 512}}
    with endpoint(lambda p, h: (200, long, {})) as (url, received):
        with pytest.raises(ValueError, match=r"max_cost needs a price.*this machine"):
            asking(url, plan, tmp_path, limits={"max_cost": 1.0})
        assert received == []
        with pytest.raises(RunInterrupted, match="max_cost"):
            asking(url, plan, tmp_path, limits={"max_cost": 3, "price": (0, 0, 1000)})
        assert 1 < len(received) < 6  # of 51 cents
        assert asking(url, plan, tmp_path, limits={"max_cost": 0, "price": (0, 0, 0)}) is not None


def test_an_answer_that_was_paid_and_cannot_be_read_is_counted(plan, tmp_path):
    bad = GOOD | {"usage": {}, "choices": "what"}
    with endpoint(lambda p, h: (200, bad, {})) as (url, received):
        with pytest.raises(RunInterrupted, match="max_cost"):
            asking(url, plan, tmp_path, concurrency=1,
                   limits={"max_cost": 5, "price": (0, 0, 1000)})  # fmt: skip
        assert len(received) == 4  # 1,024 tokens at most: 1.02 dollars each


def test_what_leaves_this_machine_in_the_clear_is_said(plan, tmp_path, capsys, monkeypatch):
    with endpoint(lambda p, h: (200, GOOD, {})) as (url, _):
        monkeypatch.setattr("rubricnb.judging.address.is_here", lambda host: False)
        asking(url, plan.head(1), tmp_path, server="other")
    said = "127.0.0.1 is sent the texts of 1 requests for m, unencrypted (http://): "
    assert said in capsys.readouterr().out


def test_the_line_of_an_endpoint_guesses_at_no_cache(plan, tmp_path, capsys):
    with endpoint(lambda p, h: (200, GOOD, {})) as (url, _):
        asking(url, plan.head(2), tmp_path)
    out = capsys.readouterr().out
    assert "200 tokens sent, 128 of them from the cache" in out
    assert "needed" not in out
    assert "computed" not in out


class Limited:
    """An endpoint with so many requests a second, a few at once, that says so or does not."""

    def __init__(self, rate, burst, says):
        self.rate, self.burst, self.left, self.says = rate, burst, float(burst), says
        self.at, self.lock, self.refused, self.good = time.monotonic(), threading.Lock(), 0, 0

    def __call__(self, payload, headers):
        with self.lock:
            now = time.monotonic()
            self.left = min(self.burst, self.left + (now - self.at) * self.rate)
            self.at = now
            told = {}
            if self.says:
                told = {
                    "x-ratelimit-remaining-requests": str(int(self.left)),
                    "x-ratelimit-reset-requests": f"{(self.burst - self.left) / self.rate:.3f}s",
                }
            if self.left < 1:
                self.refused += 1
                wait = {"Retry-After": f"{(1 - self.left) / self.rate:.3f}"} if self.says else {}
                return 429, {"error": {"message": "slow down"}}, told | wait
            self.left -= 1
            self.good += 1
            return 200, GOOD, told


@pytest.mark.parametrize("says", [True, False])
def test_the_sender_slows_down_to_what_the_endpoint_allows(says, plan, tmp_path):
    limited = Limited(rate=25, burst=5, says=says)
    began = time.monotonic()
    with endpoint(limited) as (url, _):
        judgments = asking(url, plan, tmp_path, retries=6, concurrency=32, server="other")
    assert (judgments["status"] == "ok").all()
    assert limited.good == 100
    assert limited.refused < 60
    assert time.monotonic() - began < 30


def test_a_probability_above_one_is_refused(tmp_path):
    requests = rb.plan(rb.load("minibench", n_items=5), rb.balanced(5), readout="logprobs").head(2)
    answer = completion("[RESULT] 2", tops=[("[RESULT]", {}), (" 2", {" 2": 148.0})])
    with (
        endpoint(lambda p, h: (200, answer, {})) as (url, _),
        pytest.raises(JudgeError, match="log-probabilities"),
    ):
        asking(url, requests, tmp_path)


def test_a_name_without_a_latin_letter_has_a_slug():
    slugs = {rb.open_judge(f"openai:{name}").slug for name in ("模型", "модель", "🦀")}
    assert len(slugs) == 3
    assert all(re.fullmatch(r"model-[0-9a-f]{8}", slug) for slug in slugs)


def test_a_number_that_is_a_word_is_named():
    with pytest.raises(ValueError, match="n_items is 'four'"):
        rb.load("minibench", n_items="four")
