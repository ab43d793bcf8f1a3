"""Runs that are killed, run out of disk or meet on one store,
counted at the endpoint.
"""

import os
import subprocess
import sys
import time
import zlib

import pandas as pd
import pytest
from endpoint import completion, endpoint

import rubricnb as rb
from rubricnb.core.rendering import rendered
from rubricnb.core.store import Store, StoreError

CONCURRENCY = 4
# Everything is imported once; every run is a fork,
# so that it can be killed often in little time.
PROGRAM = f"""
import os, random, signal, sys, time
import rubricnb as rb
from rubricnb.core import run, store
from rubricnb.engines import openai
import httpx2, sqlite3, pandas

url, path, what, n_items = sys.argv[1:]
items = rb.load("minibench", n_items=int(n_items))
requests = rb.plan(items, rb.balanced(5), readout="feedback")

def begin(name):
    if not (child := os.fork()):
        judge = rb.open_judge(
            f"openai:m@{{url}}", concurrency={CONCURRENCY}, server="other"
        )
        rb.run(requests, judge, store=path).to_parquet(f"{{path}}.{{name}}.parquet")
        os._exit(0)
    return child

def ended(child):
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])

if what == "killed":
    random.seed(1)
    hit = 0
    for _ in range(10):
        child = begin("killed")
        time.sleep(random.uniform(0.02, 0.5))
        os.kill(child, signal.SIGKILL)
        hit += ended(child) == -signal.SIGKILL
    print("hit", hit)
    assert ended(begin("last")) == 0
else:
    assert [ended(child) for child in [begin("one"), begin("two")]] == [0, 0]
"""


def score_of(prompt):
    return 1 + zlib.crc32(prompt.encode()) % 5


def counted(tmp_path, what, n_items):
    """Run the program; returns how often every prompt was answered,
    and what it printed.
    """

    def answer(payload, headers):
        time.sleep(0.02)
        return (
            200,
            completion(f"Fine. [RESULT] {score_of(payload['messages'][0]['content'])}"),
            {},
        )

    with endpoint(answer) as (url, received):
        done = subprocess.run(
            [
                sys.executable,
                "-c",
                PROGRAM,
                url,
                tmp_path / "s.sqlite",
                what,
                str(n_items),
            ],
            capture_output=True,
            text=True,
            timeout=300,
            env=os.environ
            | {"OPENBLAS_NUM_THREADS": "1", "RUBRICNB_RESULTS": str(tmp_path)},
        )
    assert done.returncode == 0, done.stdout + done.stderr
    return received.prompts(), done.stdout


def test_killed_ten_times_nothing_is_lost_and_little_is_asked_twice(tmp_path):
    calls, printed = counted(tmp_path, "killed", 50)
    assert int(printed.split("hit")[1].split()[0]) >= 7
    judgments = pd.read_parquet(tmp_path / "s.sqlite.last.parquet")
    assert (judgments["status"] == "ok").all()
    assert len(judgments) == len(calls) == 500
    requests = rb.plan(
        rb.load("minibench", n_items=50), rb.balanced(5), readout="feedback"
    )
    asked = rendered(requests, rb.open_judge("simulated:unbiased"))
    scores = [score_of(request.messages[0].content) for request in asked]
    assert judgments["score"].tolist() == scores  # each answer is its own request's
    with Store(tmp_path / "s.sqlite") as store:
        assert len(store) == 500  # one reply for every key
    assert calls.total() - len(calls) <= 10 * CONCURRENCY


def test_two_runs_on_one_store_send_nothing_twice(tmp_path):
    calls, _ = counted(tmp_path, "together", 40)
    assert len(calls) == 400
    assert calls.total() == 400
    one, two = (
        pd.read_parquet(tmp_path / f"s.sqlite.{n}.parquet") for n in ("one", "two")
    )
    assert one.equals(two)
    assert (one["status"] == "ok").all()


def test_a_full_disk_stops_the_run_and_with_room_it_goes_on(tmp_path):
    answers = [(200, completion("x" * 20_000 + " [RESULT] 2"), {})]
    requests = rb.plan(
        rb.load("minibench", n_items=10), rb.balanced(5), readout="feedback"
    )
    with endpoint(answers) as (url, received):
        judge = rb.open_judge(f"openai:m@{url}", concurrency=CONCURRENCY)
        with Store(tmp_path / "s.sqlite") as store:
            pages = store._db.execute("PRAGMA page_count").fetchone()[0]
            store._db.execute(f"PRAGMA max_page_count={pages + 200}")
            with pytest.raises(StoreError, match=r"no disk space left.*run again"):
                rb.run(requests, judge, store=store)
            kept = len(store)
        assert 10 <= kept <= 100
        before = len(received)
        assert before - kept <= CONCURRENCY
        judgments = rb.run(requests, judge, store=tmp_path / "s.sqlite")
        judge.close()
    assert (judgments["status"] == "ok").all()
    assert len(received) - before == 100 - kept
    assert len(received.prompts()) == 100


def test_two_containers_with_one_host_name_and_one_number_pay_for_nothing_twice(
    tmp_path,
):
    """Each run is among the first processes of its own namespace;
    they share the store alone.
    """
    apart = ["unshare", "--user", "--map-root-user", "--pid", "--fork", "--mount-proc"]
    try:
        subprocess.run([*apart, "true"], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("no namespaces here; tests/core/test_store.py has two processes")

    def answer(payload, headers):
        time.sleep(0.02)
        return 200, completion("Fine. [RESULT] 2"), {}

    program = PROGRAM.replace(
        '[begin("one"), begin("two")]', '[begin(f"run-{what}")]'
    ).replace(
        "== [0, 0]",
        "== [0]; from socket import gethostname; print(gethostname(), os.getpid())",
    )
    environment = os.environ | {
        "OPENBLAS_NUM_THREADS": "1",
        "RUBRICNB_RESULTS": str(tmp_path),
    }
    with endpoint(answer) as (url, received):
        runs = [
            subprocess.Popen(
                [
                    *apart,
                    sys.executable,
                    "-c",
                    program,
                    url,
                    tmp_path / "s.sqlite",
                    name,
                    "40",
                ],
                stdout=subprocess.PIPE,
                text=True,
                env=environment,
            )
            for name in ("one", "two")
        ]
        names = [run.communicate(timeout=300)[0].splitlines()[-1] for run in runs]
    assert names[0] == names[1]
    one, two = (
        pd.read_parquet(tmp_path / f"s.sqlite.run-{n}.parquet") for n in ("one", "two")
    )
    assert len(one) == len(two) == len(received.prompts()) == len(received) == 400
