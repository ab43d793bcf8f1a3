"""Runs that are told to stop: what is under way is paid for,
so it is waited for and kept.
"""

import os
import signal
import subprocess
import sys
import threading
import time

import pytest
from endpoint import completion, endpoint

import rubricnb as rb
from rubricnb.core.store import Store

CONCURRENCY = 64
PROGRAM = f"""
import sys
import rubricnb as rb

requests = rb.plan(rb.load("minibench"), rb.balanced(5), readout="feedback")
url, store = sys.argv[1:]
judge = rb.open_judge(f"openai:m@{{url}}", concurrency={CONCURRENCY}, server="other")
try:
    rb.run(requests, judge, store=store)
except rb.judging.RunInterrupted as why:
    print("interrupted:", why)
"""


class Run:
    """A run in a process of its own,
    and how many of its requests came and were answered.
    """

    def __init__(self, url, store):
        self.process = subprocess.Popen(
            [sys.executable, "-c", PROGRAM, url, store],
            stdout=subprocess.PIPE,
            text=True,
            env=os.environ | {"OPENBLAS_NUM_THREADS": "1"},
            # A shell's background job is born deaf to Ctrl-C,
            # and so would be what it starts.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        )

    def tell(self, number):
        self.process.send_signal(number)

    def end(self):
        return self.process.communicate(timeout=60)[0]


def slow(seconds, last=None):
    """An endpoint's answers, after a while, and the counts of requests and of answers.

    All but as many as are in flight at once wait for the event `last`.
    """
    counts, lock = {"came": 0, "answered": 0}, threading.Lock()

    def answer(payload, headers):
        with lock:
            counts["came"] += 1
            is_last = last is not None and counts["came"] > CONCURRENCY
        if is_last:
            last.wait(60)
        else:
            time.sleep(seconds)
        with lock:
            counts["answered"] += 1
        return 200, completion("Fine. [RESULT] 2"), {}

    return answer, counts


def wait_for(counts, what, number):
    deadline = time.monotonic() + 60
    while counts[what] < number:
        assert time.monotonic() < deadline, counts
        time.sleep(0.01)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_first_signal_sends_nothing_more_and_keeps_what_is_under_way(
    tmp_path, number
):
    told = threading.Event()
    answer, counts = slow(0.1, told)
    store = tmp_path / "s.sqlite"
    with endpoint(answer) as (url, received):
        run = Run(url, store)
        sent = 2 * CONCURRENCY
        wait_for(counts, "came", sent)
        run.tell(number)
        printed = ""
        while "sending no more" not in printed:
            line = run.process.stdout.readline()
            assert line, printed
            printed += line
        told.set()
        printed += run.process.stdout.read()
        run.end()
        assert counts["came"] == counts["answered"] == sent
        with Store(store) as kept:
            assert len(kept) == sent
        assert f"waiting for up to {CONCURRENCY} answers under way" in printed
        name = {signal.SIGINT: "Ctrl-C", signal.SIGTERM: "SIGTERM"}[number]
        assert f"interrupted: stopped by {name}: every answer so far is kept" in printed
        received.clear()
        requests = rb.plan(rb.load("minibench"), rb.balanced(5), readout="feedback")
        judge = rb.open_judge(f"openai:m@{url}", server="other")
        with pytest.raises(rb.judging.RunInterrupted):
            rb.run(requests, judge, store=store, max_calls=1)
        assert len(received) == 1  # it goes on, from there


def test_the_second_signal_stops_at_once(tmp_path):
    answer, counts = slow(50)
    with endpoint(answer) as (url, _):
        for number in (signal.SIGINT, signal.SIGTERM):
            run = Run(url, tmp_path / f"{number}.sqlite")
            wait_for(counts, "came", CONCURRENCY)
            counts["came"] = 0
            run.tell(number)
            time.sleep(1)
            assert run.process.poll() is None  # it waits
            told = time.monotonic()
            run.tell(number)
            run.end()
            assert time.monotonic() - told < 20


def test_signals_do_what_they_did_before_once_a_run_has_ended():
    before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    requests = rb.plan(
        rb.load("minibench", n_items=5), rb.balanced(5), readout="feedback"
    )
    rb.run(requests, "simulated:unbiased", store=":memory:")
    assert [
        signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)
    ] == before


def test_a_run_in_another_thread_leaves_signals_alone():
    requests = rb.plan(
        rb.load("minibench", n_items=5), rb.balanced(5), readout="feedback"
    )
    found = []
    thread = threading.Thread(
        target=lambda: found.append(
            rb.run(requests, "simulated:unbiased", store=":memory:")
        )
    )
    thread.start()
    thread.join()
    assert len(found[0]) == len(requests)
