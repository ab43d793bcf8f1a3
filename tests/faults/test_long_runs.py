"""A run of 20,000 requests, 64 at once, at an endpoint
that refuses, fails and hangs up.
"""

import os
import subprocess
import sys
import zlib
from itertools import permutations
from threading import Lock

import pandas as pd
import pytest
from endpoint import completion, endpoint

import rubricnb as rb
from rubricnb.core.permutation import single
from rubricnb.core.rendering import rendered
from rubricnb.core.store import Store

SIZE = 20_000
PROGRAM = """
import sys, threading, time
import pandas as pd
import rubricnb as rb

url, folder = sys.argv[1:]
requests = pd.read_pickle(f"{folder}/plan")
held, ended = [], threading.Event()

def watch():
    while not ended.wait(0.1):
        with open("/proc/self/statm") as file:
            held.append((time.monotonic(), int(file.read().split()[1]) * 4096 / 1e6))

judge = rb.open_judge(f"openai:m@{url}", concurrency=64, server="other")
watcher = threading.Thread(target=watch)
watcher.start()
judgments = rb.run(requests, judge, store=f"{folder}/s.sqlite")
ended.set()
watcher.join()
judge.close()
judgments.to_parquet(f"{folder}/judgments.parquet")
pd.DataFrame(held, columns=["time", "megabytes"]).to_csv(f"{folder}/held.csv")
"""


def score_of(prompt):
    return 1 + zlib.crc32(prompt.encode()) % 5


TROUBLES = {
    0: (429, {"error": {"message": "slow down"}}, {"Retry-After": "0"}),
    1: (500, {"error": {"message": "sorry"}}, {}),
    2: (200, None, {}),  # hangs up
}


def kind_of(prompt):
    """One prompt of a hundred has a kind of trouble."""
    return zlib.crc32(prompt.encode()) % 300


def answering():
    """An endpoint's answers: trouble the first time, and a score of its own for each
    prompt.
    """
    seen, lock = set(), Lock()

    def answer(payload, headers):
        prompt = payload["messages"][0]["content"]
        with lock:
            is_first = prompt not in seen
            seen.add(prompt)
        if is_first and kind_of(prompt) in TROUBLES:
            return TROUBLES[kind_of(prompt)]
        return 200, completion(f"Fine. [RESULT] {score_of(prompt)}"), {}

    return answer


def grown(held):
    """Megabytes between a quarter and three quarters of a run."""
    progress = (held.time - held.time.min()) / (held.time.max() - held.time.min())
    quarter, three_quarters = (
        held.megabytes[progress.between(least, least + 0.1)].median()
        for least in (0.2, 0.7)
    )
    return three_quarters - quarter


@pytest.mark.slow
@pytest.mark.skipif(
    not os.path.exists("/proc/self/statm"), reason="memory is read from /proc"
)
def test_20000_requests_64_at_once_lose_nothing_and_stay_flat_in_memory(tmp_path):
    every_order = [single(order) for order in permutations(range(1, 6))]
    requests = rb.plan(rb.load("minibench"), every_order, readout="feedback")
    requests = requests.head(SIZE)
    requests.to_pickle(tmp_path / "plan")
    with endpoint(answering()) as (url, received):
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM, url, tmp_path],
            capture_output=True,
            text=True,
            timeout=1_200,
            env=os.environ | {"OPENBLAS_NUM_THREADS": "1"},
        )
    assert done.returncode == 0, done.stdout + done.stderr
    prompts = received.prompts()
    in_trouble = sum(kind_of(p) in TROUBLES for p in prompts)
    assert in_trouble > 100
    assert len(prompts) == SIZE
    assert prompts.total() == SIZE + in_trouble  # each was asked again, and once

    judgments = pd.read_parquet(tmp_path / "judgments.parquet")
    assert (judgments["status"] == "ok").all()
    asked = rendered(requests, rb.open_judge("simulated:unbiased"))
    scores = [score_of(request.messages[0].content) for request in asked]
    assert judgments["score"].tolist() == scores  # each answer is its own request's
    with Store(tmp_path / "s.sqlite") as store:
        assert len(store) == SIZE

    # 10,000 answers later: less than a kilobyte each, of which the judgments keep some
    assert grown(pd.read_csv(tmp_path / "held.csv")) < 10
