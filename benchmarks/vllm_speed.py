"""Judgments per second on vLLM: rubricnb, and plain loops over its server.

    .venv-vllm/bin/python -m benchmarks vllm_speed

SmolLM2 on the bundled items, every item under the ten orderings of balanced(5).
rubricnb reads the labels' probabilities in its own process; the loops send the same
prompts through the OpenAI client to vLLM's server, which has the same engine settings,
prefix caching included. "200-token feedback" is exactly that; "score only" is one
constrained label. With prometheus-eval installed in .venv-prometheus, its own grading
loop (its prompt, a score asked for again up to ten times) is measured beside. Every
call begins with an empty cache.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks import row, timed

ROOT = Path(__file__).parents[1]
PYTHON = ROOT / ".venv-vllm" / "bin" / "python"
PROMETHEUS = ROOT / ".venv-prometheus" / "bin" / "python"
MODEL = ROOT / ".venv-vllm" / "checkpoints" / "smollm2-135m-instruct"
ENGINE = {"max_model_len": 4096, "max_num_seqs": 64, "block_size": 32}
CONCURRENCY = 64
# Already a quarter of an hour on two cores; a GPU can do more of both.
N_ITEMS = int(os.environ.get("VLLM_SPEED_ITEMS", "2"))
REPEATS = int(os.environ.get("VLLM_SPEED_REPEATS", "1"))
ALONE = 2  # requests of a loop that sends one at a time: each takes some seconds
FEEDBACK = {"max_tokens": 200, "extra_body": {"ignore_eos": True}}
SCORE = {
    "max_tokens": 4,
    "extra_body": {"structured_outputs": {"choice": ["1", "2", "3", "4", "5"]}},
}


def measure() -> Iterator[dict[str, Any]]:
    if not MODEL.exists():
        raise FileNotFoundError(
            f"no {MODEL.relative_to(ROOT)}: run `make bench`, which makes it"
        )
    # vLLM is in the other one
    if Path(sys.prefix).resolve() != PYTHON.parents[1].resolve():
        command = [PYTHON, "-c", "import benchmarks.vllm_speed as b; b.main()"]
        yield from json.loads(
            subprocess.check_output(command, cwd=ROOT).splitlines()[-1]
        )
        return
    arms = []
    for arm in _arms():
        arms.append(arm)
        yield row(f"{arm.name}: judgments", arm.speed, "/s")
        yield row(f"{arm.name}: computed", arm.computed, "tokens each")
    ours, alone, together = (arm.speed for arm in arms[:3])
    yield row("rubricnb / feedback loop, one by one", ours / alone, "x", ">= 5")
    yield row(
        f"rubricnb / feedback loop, {CONCURRENCY} at once",
        ours / together,
        "x",
        ">= 2.5",
    )


def main() -> None:
    print(json.dumps(list(measure())))


@dataclass
class Arm:
    """One way to judge: what it is called, its calls, and what they cost."""

    name: str
    call: Callable[[], object]
    judgments: int
    tokens: list[int]  # computed, one entry per judgment of every turn
    speed: float = 0.0

    @property
    def computed(self) -> float:
        return sum(self.tokens) / len(self.tokens)


def _arms() -> Iterator[Arm]:
    """All arms, timed in turns."""
    import rubricnb as rb
    from rubricnb.core.rendering import rendered

    judge: Any = rb.open_judge(f"vllm:{MODEL}", **ENGINE)
    items = rb.load("minibench", n_items=N_ITEMS)
    plan = rb.plan(items, rb.balanced(5), readout="logprobs")
    asked = list(rendered(plan, judge))
    prompts = [
        [{"role": m.role, "content": m.content} for m in a.messages] for a in asked
    ]
    with _server() as url:
        arms = [
            _rubricnb(judge, asked),
            _loop("feedback, 1 by 1", url, prompts[:ALONE], 1, FEEDBACK),
            _loop(
                f"feedback, {CONCURRENCY} at once", url, prompts, CONCURRENCY, FEEDBACK
            ),
            _loop("score only, 1 by 1", url, prompts, 1, SCORE),
            _loop(
                f"score only, {CONCURRENCY} at once", url, prompts, CONCURRENCY, SCORE
            ),
        ]
        for arm, seconds in zip(
            arms, timed(*(a.call for a in arms), repeats=REPEATS), strict=True
        ):
            arm.speed = arm.judgments / seconds.wall
            yield arm
        if PROMETHEUS.exists():
            turns = [_prometheus(url, items) for _ in range(REPEATS)]
            turns.sort(key=lambda arm: arm.speed)
            yield turns[len(turns) // 2]
    judge.close()


def _rubricnb(judge: Any, asked: Sequence[Any]) -> Arm:
    tokens: list[int] = []

    def call() -> None:
        judge._llm.reset_prefix_cache()
        for reply in judge.answer(asked):
            assert reply.finish == "stop", reply.error
            tokens.append(
                reply.prompt_tokens - reply.cached_tokens + reply.completion_tokens
            )

    return Arm("rubricnb", call, len(asked), tokens)


def _loop(
    name: str,
    url: str,
    prompts: Sequence[Any],
    concurrency: int,
    options: dict[str, Any],
) -> Arm:
    from openai import OpenAI

    client = OpenAI(base_url=f"{url}/v1", api_key="none", timeout=600)
    tokens: list[int] = []

    def ask(messages: Any) -> None:
        answer = client.chat.completions.create(
            model="judge", messages=messages, temperature=0, **options
        )
        used = answer.usage
        cached = (
            used.prompt_tokens_details.cached_tokens
            if used.prompt_tokens_details
            else 0
        )
        tokens.append(used.prompt_tokens - (cached or 0) + used.completion_tokens)

    def call() -> None:
        _post(f"{url}/reset_prefix_cache")
        with ThreadPoolExecutor(concurrency) as pool:
            list(pool.map(ask, prompts))

    return Arm(name, call, len(prompts), tokens)


GRADE = """
import json, sys, time
from prometheus_eval import PrometheusEval
from prometheus_eval.litellm import LiteLLM
from prometheus_eval.prompts import SCORE_RUBRIC_TEMPLATE
work = json.load(sys.stdin)
judge = PrometheusEval(model=LiteLLM("hosted_vllm/judge", api_base=work["url"]))
rubrics = [SCORE_RUBRIC_TEMPLATE.format(**levels) for levels in work["rubrics"]]
start = time.perf_counter()
judge.absolute_grade(instructions=work["instructions"], responses=work["responses"],
    rubric=rubrics, params={"max_tokens": 200, "temperature": 1.0, "top_p": 0.9})
print(len(rubrics) / (time.perf_counter() - start))
"""


def _prometheus(url: str, items: Any) -> Arm:
    """prometheus-eval's loop over a few items; its tokens are the server's count."""
    few = items.head(2)  # each is asked up to eleven times
    rubrics = [_levels(items.rubrics, name) for name in few["rubric_id"]]
    work = {
        "url": f"{url}/v1",
        "instructions": list(few["instruction"]),
        "responses": list(few["response"]),
        "rubrics": rubrics,
    }
    _post(f"{url}/reset_prefix_cache")
    before = _computed(url)
    environment = os.environ | {
        "LITELLM_LOCAL_MODEL_COST_MAP": "True",
        "HOSTED_VLLM_API_KEY": "-",
    }
    answer = subprocess.run(
        [PROMETHEUS, "-c", GRADE],
        input=json.dumps(work),
        text=True,
        env=environment,
        stdout=subprocess.PIPE,
        check=True,
    )
    tokens = [int((_computed(url) - before) / len(few))]
    return Arm(
        "prometheus-eval", int, len(few), tokens, float(answer.stdout.splitlines()[-1])
    )


def _levels(rubrics: Any, name: str) -> dict[str, str]:
    own = rubrics[(rubrics["rubric_id"] == name) & (rubrics["variant"] == "standard")]
    levels = {
        f"score{s}_description": d
        for s, d in zip(own["score"], own["description"], strict=True)
    }
    return {"criteria": str(own["definition"].iloc[0]), **levels}


@contextmanager
def _server() -> Iterator[str]:
    """vLLM's OpenAI server on loopback, with the engine settings of the judge."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    options = ["--dtype=bfloat16", "--enforce-eager", "--kv-cache-memory-bytes=2G"]
    options += [f"--{name.replace('_', '-')}={value}" for name, value in ENGINE.items()]
    options += ["--enable-prompt-tokens-details", "--served-model-name=judge"]
    # it has /reset_prefix_cache
    environment = os.environ | {"VLLM_SERVER_DEV_MODE": "1"}
    process = subprocess.Popen(
        [
            sys.executable,
            "-m",
            "vllm.entrypoints.openai.api_server",
            f"--model={MODEL}",
            "--host=127.0.0.1",
            f"--port={port}",
            *options,
        ],
        env=environment,
        stdout=subprocess.DEVNULL,
    )
    try:
        _wait(f"http://127.0.0.1:{port}", process)
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait()


def _wait(url: str, process: subprocess.Popen[bytes]) -> None:
    while process.poll() is None:
        try:
            urllib.request.urlopen(f"{url}/health").close()
            return
        except OSError:
            time.sleep(0.5)
    raise RuntimeError("vLLM's server did not start; its messages are above")


def _post(url: str) -> None:
    urllib.request.urlopen(urllib.request.Request(url, method="POST")).close()


def _computed(url: str) -> float:
    """Tokens that the server has computed so far: uncached prompts, and answers."""
    counted = {"prompt_tokens": 1, "prefix_cache_hits": -1, "generation_tokens": 1}
    total = 0.0
    with urllib.request.urlopen(f"{url}/metrics") as page:
        for line in page.read().decode().splitlines():
            for name, sign in counted.items():
                if line.startswith(f"vllm:{name}_total{{"):
                    total += sign * float(line.rsplit(" ", 1)[1])
    return total
