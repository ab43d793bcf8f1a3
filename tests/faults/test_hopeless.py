"""An endpoint that cannot answer anything is not sent the whole plan,
and the reason is said.

Also a model that changes, a date in ``Retry-After``, and a clock that is set back.
"""

import json
import re
import sqlite3
import threading
import time
from collections import Counter
from email.utils import formatdate

import pytest
from endpoint import completion, endpoint

import rubricnb as rb
from rubricnb.core import store as store_module
from rubricnb.core.contract import Reply
from rubricnb.core.run import RunInterrupted
from rubricnb.core.store import Store, StoreError
from rubricnb.engines.connection import retry_after
from rubricnb.engines.openai import JudgeError, OpenAIJudge
from rubricnb.engines.same_model import same_model

GOOD = completion("Fine. [RESULT] 2")
STREAM = b'data: {"choices": [{"delta": {"content": "Fine"}}]}\n\ndata: [DONE]\n\n'
USELESS = {
    "a login page": (
        200,
        b"<!doctype html><title>Log in</title>",
        "web page: give the address",
    ),
    "a stream": (200, STREAM, r"this is a stream, .*extra={'stream': False}"),
    "no choice": (200, GOOD | {"choices": []}, "sent no answer.*log of the endpoint"),
    "nothing at all": (
        200,
        b"",
        "an empty body. the answer is empty: look into the log",
    ),
    "a list": (200, b"[]", "sent no JSON object: \\[\\]"),
    "an empty answer": (200, completion(""), "sent an empty answer"),
    "no text": (200, completion({"value": "Fine."}), "sent no text"),
    "a broken answer": (200, completion("Fine.", finish="error"), "broke off"),
    "an error under 200": (
        200,
        {"error": {"message": "no such route"}},
        "no such route",
    ),
    "a bad request": (
        400,
        {"error": {"message": "system messages are not known"}},
        "system mess",
    ),
    "not to be processed": (
        422,
        {"detail": [{"msg": "field required"}]},
        "field required",
    ),
}


@pytest.fixture(scope="module")
def many():
    """300 requests about some ten texts."""
    items = rb.load("minibench", n_items=30)
    return rb.plan(items, rb.balanced(5), readout="feedback")


@pytest.mark.parametrize("name", USELESS)
def test_an_endpoint_that_answers_nothing_is_sent_as_much_as_runs_at_once(
    name, many, asking, stored
):
    status, body, said = USELESS[name]
    # of three texts
    most = 8 if status == 200 and name != "an error under 200" else 150
    with endpoint(lambda p, h: (status, body, {})) as (url, received):
        for run in (1, 2):  # the next one is no wiser, and as careful
            with pytest.raises(
                JudgeError, match=rf"not one answer so far could be used.*{said}"
            ):
                asking(url, many, concurrency=8, server="other")
            assert len(received) <= run * most
        # kept with the reason, as they may have been paid
        assert len(stored("error")) >= 8
        body = GOOD
        status = 200
        assert (
            asking(url, many.head(40), concurrency=8, server="other")["status"] == "ok"
        ).all()


@pytest.mark.parametrize("concurrency", [1, 8])
def test_a_function_that_always_fails_is_not_called_for_the_whole_plan(
    concurrency, many, tmp_path
):
    calls = []

    def gateway(messages):
        calls.append(1)
        if fails:
            raise RuntimeError("302 to a login page")
        return "Fine. [RESULT] 2"

    fails = True
    judge = rb.open_judge(gateway, name="gateway", concurrency=concurrency)
    with pytest.raises(
        JudgeError, match=r"gateway: all of the first .* calls failed; .*login page"
    ):
        rb.run(many, judge, tmp_path / "s.sqlite")
    assert len(calls) <= 16
    fails = False
    assert (rb.run(many.head(20), judge, tmp_path / "s.sqlite")["status"] == "ok").all()


def test_money_is_not_spent_on_answers_without_a_choice(many, asking):
    empty = GOOD | {
        "choices": [],
        "usage": {"prompt_tokens": 900, "completion_tokens": 900},
    }
    with (
        endpoint(lambda p, h: (200, empty, {})) as (url, received),
        pytest.raises(JudgeError),
    ):
        asking(
            url,
            many,
            {"max_cost": 5, "price": (1, 1, 10)},
            concurrency=16,
            server="other",
        )
    assert len(received) <= 16


def test_one_text_that_is_never_answered_keeps_no_run_from_the_others(many, asking):
    """All its requests come first, one at a time or many at once;
    the run goes on to the rest.
    """
    bad = many.source["response"].iloc[0]

    def answer(payload, headers):
        empty = bad in payload["messages"][-1]["content"]
        return (
            (400, {"error": {"message": "too long"}}, {}) if empty else (200, GOOD, {})
        )

    for concurrency in (1, 16):
        with endpoint(answer) as (url, _):
            status = asking(url, many, concurrency=concurrency, server="other")[
                "status"
            ]
        assert 0 < (status == "error").sum() <= 40
        assert (status == "ok").sum() >= 260


def test_an_endpoint_that_breaks_in_the_middle_is_not_sent_the_rest(
    many, asking, stored
):
    seen, lock = [], threading.Lock()

    def answer(payload, headers):
        with lock:
            seen.append(1)
            return (
                (200, GOOD, {})
                if len(seen) <= 60
                else (200, b"<html>Log in</html>", {})
            )

    with endpoint(answer) as (url, received):
        with pytest.raises(
            JudgeError, match=r"no answer since then could be used.*web page"
        ):
            asking(url, many, concurrency=4, server="other")
        assert len(received) < 200
        assert stored("finish").count("stop") == 60


@pytest.mark.parametrize("skew", [0, -86_400, 86_400])
def test_a_date_to_come_back_at_is_kept_to_by_the_clock_of_the_endpoint(
    skew, plan, asking
):
    """The endpoint's clock may be a day off: both dates are its own."""
    failed, lock = Counter(), threading.Lock()

    def answer(payload, headers):
        prompt = payload["messages"][0]["content"]
        with lock:
            failed[prompt] += 1
            first = failed[prompt] == 1
        now = time.time() + skew
        dates = {
            "Retry-After": formatdate(now + 1, usegmt=True),
            "Date": formatdate(now, usegmt=True),
        }
        return (
            (429, {"error": {"message": "later"}}, dates) if first else (200, GOOD, {})
        )

    with endpoint(answer) as (url, received):
        judgments = asking(url, plan.head(4), retries=1, server="other")
    assert (judgments["status"] == "ok").all()
    assert max(received.times) - min(received.times) >= 1


@pytest.mark.parametrize(
    ("told", "seconds"),
    [
        ("Fri, 27 Nov 2026 12:00:30 GMT", 30),
        ("Friday, 27-Nov-26 12:00:30 GMT", 30),
        ("Fri, 27 Nov 2026 11:00:00 GMT", 0),
        ("7.5", 7.5),
        ("-3", 0),
        ("nan", 0),
        ("inf", 0),
        ("soon", 0),
        ("", 0),
        ("Fri, 99 Nov 2026", 0),
        ("Thu, 01 Jan 99999 00:00:00 GMT", 0),
    ],
)
def test_what_retry_after_says(told, seconds):
    date = "Fri, 27 Nov 2026 12:00:00 GMT"
    assert retry_after({"retry-after": told, "date": date}) == seconds
    soon = {"retry-after": formatdate(time.time() + 60, usegmt=True), "date": "no date"}
    assert 50 < retry_after(soon) <= 60


@pytest.mark.parametrize(
    ("asked", "answered", "same"),
    [
        ("gpt-4", "gpt-4-0613", True),
        ("gpt-4.1", "gpt-4.1-2025-04-14", True),
        ("claude-3-5-haiku", "claude-3-5-haiku-20241022", True),
        ("claude-sonnet-4", "claude-sonnet-4@20250514", True),
        ("mistral-large", "mistral-large-2411", True),
        ("command-r", "command-r-08-2024", True),
        ("llama3", "llama3:latest", True),
        ("openai/gpt-4.1", "gpt-4.1-2025-04-14", True),
        ("meta-llama/Llama-3.1-8B", "meta-llama/llama-3.1-8b", True),
        ("a/b:free", "a/b", True),
        ("o3", "o3-2025-04-16", True),
        ("gpt-4", "gpt-4-32k", False),
        ("gpt-4", "gpt-4-32k-0613", False),
        ("gpt-4", "gpt-4-1106-preview", False),
        ("claude-3", "claude-3-5-sonnet", False),
        ("claude-3", "claude-3-5-sonnet-20241022", False),
        ("qwen2.5", "qwen2.5-0.5b", False),
        ("qwen2.5:7b", "qwen2.5:0.5b", False),
        ("qwen2.5:7b", "qwen2.5", False),
        ("gpt-4", "evil/gpt-4", False),
        ("openai/gpt-4", "evil/gpt-4", False),
        ("gpt-4", "gpt-4-7777", False),
        ("gpt-4", "gpt-40613", False),
        ("llama-3", "llama-3-8b", False),
        ("gpt-4-0613", "gpt-4-1106", False),
        ("o1", "o1-mini", False),
        ("m", "", False),
    ],
)
def test_only_a_date_may_stand_behind_a_models_name(asked, answered, same):
    assert same_model(asked, answered) == same


def test_a_model_that_changes_in_the_middle_is_said_once_and_kept_with_each_answer(
    plan, asking, stored, capsys
):
    seen, lock = [], threading.Lock()

    def answer(payload, headers):
        with lock:
            seen.append(1)
            day = "14" if len(seen) <= 20 else "28"
        return 200, GOOD | {"model": f"m-2025-04-{day}"}, {}

    with endpoint(answer) as (url, _):
        asking(url, plan.head(30), concurrency=1, server="other")
        said = capsys.readouterr().out
        assert (
            said.count("some answers are by 'm-2025-04-14' and some by 'm-2025-04-28'")
            == 1
        )
        assert sorted(Counter(stored("model")).items()) == [
            ("m-2025-04-14", 20),
            ("m-2025-04-28", 10),
        ]
        # those in the store count
        asking(url, plan.head(35), concurrency=1, server="other")
        assert capsys.readouterr().out.count("some answers are by") == 1


def test_a_model_that_changes_in_a_batch_is_kept_and_said(plan, tmp_path, capsys):
    judge = OpenAIJudge("m", "http://localhost:1/v1", server="other")
    [file] = rb.export_batch(
        plan.head(4), judge, tmp_path / "b.jsonl", tmp_path / "s.sqlite"
    )
    keys = [json.loads(line)["custom_id"] for line in file.read_text().splitlines()]
    names = ["m-2025-04-14", "m-2025-04-14", "m-2025-04-28", "evil/m"]
    lines = [
        {
            "custom_id": key,
            "response": {"status_code": 200, "body": GOOD | {"model": name}},
        }
        for key, name in zip(keys, names, strict=True)
    ]
    (output := tmp_path / "o.jsonl").write_text(
        "".join(json.dumps(line) + "\n" for line in lines)
    )
    counts = rb.import_batch(plan.head(4), judge, output, tmp_path / "s.sqlite")
    assert (counts["answered"], counts["failed"]) == (3, 1)
    said = capsys.readouterr().out
    assert "the answers are by 'm-2025-04-14', 'm-2025-04-28', 'evil/m'" in said
    assert (
        "1 of 1 failed requests: Unusable: asked for 'm', but the model 'evil/m'"
        in said
    )
    with Store(tmp_path / "s.sqlite") as store:
        assert sorted(reply.model for reply in store.get(keys).values()) == sorted(
            names
        )


def test_a_clock_that_is_set_back_costs_no_answer_of_a_fresh_run(
    plan, asking, monkeypatch
):
    """While it runs, and between its stop and its going on."""
    now = [2e9]
    monkeypatch.setattr(store_module.time, "time", lambda: now[0])
    seen, lock = [], threading.Lock()

    def answer(payload, headers):
        with lock:
            seen.append(payload["messages"][0]["content"])
            now[0] -= 3600
        return 200, GOOD, {}

    requests = plan.head(60)
    with endpoint(answer) as (url, _):
        asking(url, requests, server="other")
        seen.clear()
        with pytest.raises(RunInterrupted) as stopped:
            asking(url, requests, {"fresh": True, "max_calls": 25}, server="other")
        number = int(re.search(r"with fresh=(\d+)", str(stopped.value))[1])
        assert len(seen) == 25
        now[0] -= 1e6
        asking(url, requests, {"fresh": number}, server="other")
        assert len(seen) == len(set(seen)) == 60  # each once, and all of them anew
        asking(url, requests, {"fresh": number}, server="other")
        assert len(seen) == 60
        asking(url, requests, {"fresh": True}, server="other")
        assert len(seen) == 120
    with pytest.raises(ValueError, match="a time no longer names one"):
        asking(url, requests, {"fresh": 1790000000.5}, server="other")


def test_a_drift_test_that_was_stopped_goes_on_though_the_clock_was_set_back(
    tmp_path, monkeypatch
):
    now = [2e9]
    monkeypatch.setattr(store_module.time, "time", lambda: now[0])
    with Store(tmp_path / "s.sqlite") as store:
        first = store.run_begun("drift", 86_400)
        now[0] -= 7200
        assert store.run_begun("drift", 86_400) == first
        assert store.run_begun("another", 86_400) != first
        now[0] += 100_000
        assert store.run_begun("drift", 86_400) != first


OLD_SCHEMA = """
CREATE TABLE replies (
    key TEXT PRIMARY KEY, judge TEXT NOT NULL, text TEXT NOT NULL, finish TEXT NOT NULL,
    probabilities TEXT, prompt_tokens INTEGER NOT NULL, cached_tokens INTEGER NOT NULL,
    completion_tokens INTEGER NOT NULL, seconds REAL NOT NULL, error TEXT,
    time REAL NOT NULL, checksum INTEGER
) WITHOUT ROWID;
CREATE TABLE leases (key TEXT PRIMARY KEY, owner TEXT NOT NULL) WITHOUT ROWID;
PRAGMA user_version=2;
PRAGMA journal_mode=WAL;
"""
# A row as the version before wrote it, its checksum included.
OLD_ROW = (
    "k1",
    "m",
    "Fine. [RESULT] 2",
    "stop",
    "[[0.25, 0.5]]",
    100,
    64,
    7,
    0.5,
    None,
    1790000000.25,
    2934304848,
)


def old_store(path, *rows):
    with sqlite3.connect(path) as db:
        db.executescript(OLD_SCHEMA)
        db.executemany(f"INSERT INTO replies VALUES ({'?,' * 11} ?)", rows)
    db.close()


def test_a_store_of_the_version_before_is_opened_and_its_answers_are_found(tmp_path):
    path = tmp_path / "s.sqlite"
    old_store(path, OLD_ROW)
    with Store(path) as store:
        assert store.answered(["k1", "k2"]) == {"k1"}
        reply = store.get(["k1"])["k1"]
        assert (reply.text, reply.probabilities, reply.model) == (
            OLD_ROW[2],
            ((0.25, 0.5),),
            "",
        )
        assert store.check() == 1
        store.put("k2", "m", Reply(1, "x", model="m-2025-04-14"), run=7)
        assert store.answered(["k1", "k2"], run=7) == {"k2"}
    with Store(path) as store:
        assert store.check() == 2
        assert store.get(["k2"])["k2"].model == "m-2025-04-14"
    with sqlite3.connect(path) as db:
        db.execute("UPDATE replies SET model = 'another' WHERE key = 'k2'")
        db.execute("UPDATE replies SET model = 'another' WHERE key = 'k1'")
    db.close()
    with (
        Store(path) as store,
        pytest.raises(StoreError, match="2 of 2 answers have changed"),
    ):
        store.check()
