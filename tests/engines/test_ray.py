"""A judge in every actor of a Ray cluster:
two nodes on this machine, one actor killed.
"""

import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from contextlib import suppress
from itertools import chain
from pathlib import Path
from tempfile import gettempdir, mkdtemp

import psutil
import pytest
from endpoint import completion, endpoint

import rubricnb as rb
from rubricnb.core.judge import describe
from rubricnb.core.rendering import rendered
from rubricnb.core.run import RunInterrupted
from rubricnb.core.store import Store
from rubricnb.engines.openai import JudgeError
from rubricnb.engines.ray import RayJudge, _Actor

pytestmark = [
    pytest.mark.in_turn,
    pytest.mark.skipif(
        not (os.access(Path.home(), os.W_OK) and gettempdir().isascii()),
        reason="Ray writes into the home, and takes temporary folders in ASCII only",
    ),
]

pytest.importorskip("ray", reason="Ray is not installed: make env")

KEY = "a-key-that-must-be-nowhere"
# a server on this machine gets a key only when named
KEYED = {"key_variable": "OPENAI_API_KEY"}


class Endpoint:
    """An endpoint that counts what it is asked, and can hold its answers back."""

    def __init__(self):
        self.asked = Counter()
        self.status = 200
        self.flagged = ""
        self.refuse_from = self.hold_from = None
        self.held = threading.Semaphore(0)
        self.go_on = threading.Event()

    def __call__(self, payload, headers):
        refused = (
            self.refuse_from is not None and self.asked.total() >= self.refuse_from
        )
        if refused or self.status != 200 or headers["Authorization"] != f"Bearer {KEY}":
            return (
                401,
                {"error": {"message": f"wrong key: {headers['Authorization']}"}},
                {},
            )
        prompt = payload["messages"][0]["content"]
        if prompt == self.flagged:
            return 403, {"error": {"message": "flagged by moderation"}}, {}
        self.asked[prompt] += 1
        if self.hold_from is not None and self.asked.total() >= self.hold_from:
            self.held.release()
            self.go_on.wait(120)
        return 200, completion("Fine. [RESULT] 2"), {}


def delivered(stream):
    """All replies of a block, and what ended it."""
    replies, problems = zip(*stream, strict=True)
    return list(chain(*replies)), "".join(problems)


def test_an_actor_returns_what_was_answered_before_a_problem(monkeypatch):
    """The actor itself, without a cluster: the ninth answer is its last."""
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    answer = Endpoint()
    answer.refuse_from = 9
    requests = rb.plan(
        rb.load("minibench", n_items=5), rb.balanced(5), readout="feedback"
    )
    with endpoint(answer) as (url, _):
        spec, options = f"openai:m@{url}", {"concurrency": 1, **KEYED}
        asked = list(rendered(requests.head(12), rb.open_judge(spec, **KEYED)))
        replies, problem = delivered(_Actor(spec, options).answer(asked, False, 0))
        answer.refuse_from, answer.flagged = None, asked[0].messages[0].content
        first = [
            delivered(_Actor(spec, options).answer(asked[:1], works, 0))
            for works in (False, True)
        ]
    assert [r.request_id for r in replies] == [r.request_id for r in asked[:9]]
    assert "refused" in problem
    # A first answer that is a refusal stops the run,
    # unless the judge has answered elsewhere.
    assert [(len(replies), "403" in problem) for replies, problem in first] == [
        (0, True),
        (1, False),
    ]
    assert (
        "has no option 'speed'" in _Actor("simulated:unbiased", {"speed": 3}).facts()[1]
    )


def test_a_host_is_known_where_the_actors_are_started():
    facts, _ = _Actor(
        "openai:m@http://judge.example.org/v1", {"server": "vllm"}
    ).facts()
    assert (facts["host"], facts["model"]) == ("judge.example.org", "m")


def patiently(start, attempts=3):
    """Start a node; Ray gives it 30 s, which a busy machine may need twice."""
    for _ in range(attempts - 1):
        with suppress(Exception):
            return start()
    return start()


@pytest.fixture(scope="module")
def cluster():
    """Two nodes of one CPU each; their logs must
    not hold the key that their judges use.
    """
    from ray._private import ray_constants
    from ray.cluster_utils import Cluster

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OPENAI_API_KEY", KEY)
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        # As on macOS: loopback is not replaced by an address
        # that other machines can reach.
        patch.setattr(ray_constants, "ENABLE_RAY_CLUSTER", False)
        node = {
            "num_cpus": 1,
            "node_ip_address": "127.0.0.1",
            "include_dashboard": False,
            "no_monitor": True,
            "include_log_monitor": False,
        }
        cluster = patiently(lambda: Cluster(initialize_head=True, head_node_args=node))
        try:
            patiently(lambda: cluster.add_node(**node))
            patch.setenv("RAY_ADDRESS", cluster.address)
            yield cluster
        finally:
            cluster.shutdown()


@pytest.fixture(scope="module")
def judged(cluster):
    answer = Endpoint()
    with endpoint(answer) as (url, _):
        judge = RayJudge(f"openai:m@{url}", block=10, concurrency=1, **KEYED)
        try:
            yield judge, answer, url
        finally:
            judge.close()


def actors():
    found = []
    for process in psutil.Process().children(recursive=True):
        with suppress(psutil.NoSuchProcess):  # others come and go
            if "_Actor" in process.name():
                found.append(process)
    return found


def test_a_killed_actor_s_block_is_asked_again_and_nothing_else_is(judged, tmp_path):
    judge, answer, url = judged
    requests = rb.plan(
        rb.load("minibench", n_items=15), rb.balanced(5), readout="feedback"
    )
    plain = rb.open_judge(f"openai:m@{url}", **KEYED)
    assert (judge.slug, judge.identity) == (plain.slug, plain.identity)
    assert (judge.readouts, judge.deterministic) == (
        plain.readouts,
        plain.deterministic,
    )
    with Store(tmp_path / "replies.sqlite") as store:
        with pytest.raises(RunInterrupted):  # begun without Ray …
            rb.run(requests, plain, store, max_calls=20)
        plain.close()
        answer.hold_from = 60
        killed = threading.Thread(target=kill_one, args=[answer])
        killed.start()
        judgments = rb.run(requests, judge, store)  # … and gone on with on two nodes
        killed.join()
        assert len(store) == len(requests) == 150
    assert judgments.status.eq("ok").all()
    assert len(answer.asked) == 150
    twice = {prompt for prompt, times in answer.asked.items() if times > 1}
    assert 1 <= len(twice) <= judge.block
    assert max(answer.asked.values()) == 2


def kill_one(answer):
    """Kill an actor while both wait for the endpoint, so both are amid a block."""
    for _ in range(2):
        answer.held.acquire(timeout=120)
    actors()[0].send_signal(signal.SIGKILL)
    answer.go_on.set()


def test_the_next_run_finds_the_judges_open(judged):
    judge, _, _ = judged
    before = {actor.pid for actor in actors()}
    requests = rb.plan(
        rb.load("minibench", n_items=5), rb.fixed(5, 1), readout="feedback"
    )
    for _ in range(2):
        assert rb.run(requests, judge, ":memory:", fresh=True).status.eq("ok").all()
    assert {actor.pid for actor in actors()} == before
    assert len(before) == 2


def test_what_was_answered_before_an_endpoint_refuses_is_kept(judged, tmp_path):
    judge, answer, _ = judged
    requests = rb.plan(
        rb.load("minibench", n_items=30), rb.balanced(5), readout="feedback"
    )
    answer.asked.clear()
    # amid the first blocks of both actors: a text has thirty requests
    answer.refuse_from = 45
    with Store(tmp_path / "replies.sqlite") as store:
        with pytest.raises(JudgeError, match=r"ray:openai:m.* refused"):
            rb.run(requests, judge, store)
        answer.refuse_from = None
        assert len(store) >= 43
        assert rb.run(requests, judge, store).status.eq("ok").all()
    assert len(answer.asked) == len(requests)
    assert answer.asked.total() - len(requests) <= 2  # what was under way


def test_what_is_wrong_in_an_actor_is_said_here_without_the_key(judged, capfd):
    judge, answer, _ = judged
    answer.status = 401
    requests = rb.plan(
        rb.load("minibench", n_items=5), rb.fixed(5, 1), readout="feedback"
    )
    with pytest.raises(JudgeError, match=r"ray:openai:m.* refused") as caught:
        rb.run(requests, judge, ":memory:")
    assert KEY not in str(caught.value)
    assert "Traceback" not in "".join(capfd.readouterr())


def test_a_limit_of_money_holds_on_a_cluster_too(judged, tmp_path):
    judge, answer, _ = judged
    asked = answer.asked.total()
    requests = rb.plan(rb.load("minibench", n_items=15), rb.balanced(5), seed=9)
    with pytest.raises(ValueError, match="max_cost needs a price"):
        rb.run(requests, judge, tmp_path / "replies.sqlite", max_cost=1.0)
    assert answer.asked.total() == asked
    known = describe("openai:gpt-4.1")
    judge.host, judge.model = known.host, known.model
    assert describe(judge).price == known.price
    judge.host, judge.model = "", "m"


def test_no_log_of_the_cluster_holds_the_key(cluster, judged):
    folder = Path(cluster.head_node.get_session_dir_path())
    files = [path for path in folder.rglob("*") if path.is_file()]
    assert len(files) > 5
    assert [path.name for path in files if KEY.encode() in path.read_bytes()] == []


@pytest.mark.in_turn
def test_more_actors_than_fit_are_refused(judged):
    with pytest.raises(
        JudgeError, match="3 actors of 0 GPUs do not fit: the cluster has 0 GPUs"
    ):
        RayJudge("simulated:unbiased", num_actors=3)
    with pytest.raises(JudgeError, match="1 actors of 2 GPUs do not fit"):
        RayJudge("simulated:unbiased", num_gpus=2)


ALONE = """
import os, psutil, rubricnb as rb
items = rb.load("minibench", n_items=5)
{page}
assert os.environ["RAY_USAGE_STATS_ENABLED"] == "0"  # no statistics are sent
alone = rb.run(requests, "simulated:first-biased", ":memory:")
assert judgments.score.equals(alone.score)
psutil.wait_procs(psutil.Process().children(recursive=True), timeout=60)
print([p.name() for p in psutil.Process().children(recursive=True)])
"""
LISTENING = """
import psutil
family = [psutil.Process(), *psutil.Process().children(recursive=True)]
sockets = [s for p in family for s in p.net_connections("tcp") if s.status == "LISTEN"]
print("listening:", *{s.laddr.ip.removeprefix("::ffff:") for s in sockets})
judge.close()
"""


def test_without_an_address_ray_starts_here_says_nothing_and_stops(tmp_path):
    environment = {k: v for k, v in os.environ.items() if not k.startswith("RAY_")}
    environment["RUBRICNB_STORE"] = str(tmp_path / "replies.sqlite")
    text = (Path(__file__).parents[2] / "book/running-a-study.md").read_text("utf-8")
    (page,) = re.findall(r"```python\n((?:(?!```).)*ray:simulated.*?)```", text, re.S)

    def start():
        done = subprocess.run(
            [
                sys.executable,
                "-c",
                ALONE.format(page=page.replace("judge.close()", LISTENING)),
            ],
            capture_output=True,
            text=True,
            timeout=300,
            env=environment,
        )
        if "timed out during startup" in done.stderr:
            raise TimeoutError(done.stderr)
        return done

    done = patiently(start)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[-1] == "[]"  # no process of Ray is left
    assert [line for line in lines if line.startswith("listening")] == [
        "listening: 127.0.0.1"
    ]
    said = ("simulated:", "listening:")
    assert [line for line in lines[:-1] if not line.startswith(said)] == []
    assert [line for line in done.stderr.splitlines() if "simulated:" not in line] == []


ASKED = """
import sys, rubricnb as rb
url, store = sys.argv[1:]
items = rb.load("minibench", n_items=60)
requests = rb.plan(items, rb.balanced(5), readout="feedback")
judge = rb.open_judge(f"ray:openai:m@{url}", num_actors=2, concurrency=8)
print("begun", flush=True)
rb.run(requests, judge, store)
"""


@pytest.fixture(scope="module")
def head(tmp_path_factory):
    """The address of a cluster that ``ray start --head`` has started."""
    folder = Path(mkdtemp(prefix="ray"))  # a socket's path is short
    environment = {k: v for k, v in os.environ.items() if not k.startswith("RAY_")}
    environment |= ON_LOOPBACK
    command = [Path(sys.executable).with_name("ray"), "start", "--head", "--block"]
    command += ["--node-ip-address=127.0.0.1", "--port=0", "--num-cpus=2"]
    command += ["--include-dashboard=false", f"--temp-dir={folder}"]
    process = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL)
    address, deadline = folder / "ray_current_cluster", time.monotonic() + 120
    while not address.exists():
        assert process.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.1)
    yield address.read_text().strip()
    started = psutil.Process(process.pid).children(recursive=True)
    process.terminate()
    process.wait(60)
    for child in started:
        with suppress(psutil.NoSuchProcess):
            child.kill()
    shutil.rmtree(folder, ignore_errors=True)


# As on macOS: else Ray takes this machine's address that others can reach. Its command
# asks for a token once a local Ray has written one.
ON_LOOPBACK = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",
    "RAY_AUTH_MODE": "disabled",
}


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_a_signal_ends_what_the_actors_send(number, tmp_path):
    stopped_by(number, tmp_path / "replies.sqlite", {})


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_a_signal_ends_what_the_actors_of_a_cluster_send(number, head, tmp_path):
    """The cluster lives on, and so would actors whose run has died."""
    cluster = ON_LOOPBACK | {"RAY_ADDRESS": head}
    stopped_by(number, tmp_path / "replies.sqlite", cluster)


def stopped_by(number, path, cluster):
    """Send a signal to a run of two actors, and count at their endpoint."""
    asked, enough = Counter(), threading.Event()

    def answer(payload, headers):
        asked[str(payload["messages"])] += 1
        if asked.total() == 40:
            enough.set()
        time.sleep(0.1)
        return 200, completion("Fine. [RESULT] 2"), {}

    in_flight = 16
    environment = {k: v for k, v in os.environ.items() if not k.startswith("RAY_")}
    with endpoint(answer) as (url, _):
        command = [sys.executable, "-c", ASKED, url, str(path)]
        process = subprocess.Popen(command, env=environment | cluster)
        assert enough.wait(200)
        process.send_signal(number)
        at_signal = asked.total()
        process.wait(60)
        time.sleep(2)  # whatever an actor would still send
        sent = asked.total()
        with Store(path) as store:
            stored = len(store)
    assert sent - at_signal <= in_flight + 2 * 2 * (number == signal.SIGKILL)
    if number == signal.SIGTERM:
        assert stored == sent  # all that was sent was waited for and kept
    # answers that wait for this process, two in each actor, are lost with it
    assert sent - stored <= in_flight + 2 * 2 * (number == signal.SIGKILL)
    assert max(asked.values()) == 1


def test_an_engine_of_vllm_has_its_actors_process_unless_told_otherwise(monkeypatch):
    name = "VLLM_ENABLE_V1_MULTIPROCESSING"
    for given, found in (("", "0"), ("1", "1")):
        monkeypatch.setenv(name, given)
        if not given:
            monkeypatch.delenv(name)
        _Actor("simulated:unbiased", {})
        assert os.environ[name] == found
    monkeypatch.delenv(name)
