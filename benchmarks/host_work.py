"""Judgments per second of vLLM where the model costs 6 ms a step: what our own work leaves of it.

    .venv-vllm/bin/python -m benchmarks host_work

The floor is vLLM's ``LLM.generate`` on tokens that are ready. Ours renders, tokenizes, asks and
reads the answers of the same plan; ``rb.run`` also keys, stores and parses. All take turns in one
run, since a busy machine slows all alike; a ratio to the floor holds elsewhere, a rate does not.
`benchmarks.stand_in` is the model.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from itertools import product
from pathlib import Path
from statistics import median
from typing import Any

import rubricnb as rb
from benchmarks import row
from rubricnb.judging.rendering import rendered

ROOT = Path(__file__).parents[1]
MODEL = os.environ.get(
    "HOST_WORK_MODEL", str(ROOT / ".venv-vllm" / "checkpoints" / "smollm2-135m-instruct")
)
N_ITEMS = int(os.environ.get("HOST_WORK_ITEMS", "208"))  # 2,080 requests
REPEATS = 3
ENGINE: dict[str, Any] = {
    "worker_cls": "benchmarks.stand_in.Worker",
    "max_model_len": 4096,
    "max_num_seqs": 1024,
    "max_num_batched_tokens": 16384,
    "enable_chunked_prefill": True,
    "concurrency": 4096,
}


def measure() -> Iterator[dict[str, Any]]:
    if not Path(MODEL).exists():
        raise FileNotFoundError(f"no checkpoint at {MODEL}: make env-vllm, then make bench")
    os.environ["VLLM_ENABLE_V1_MULTIPROCESSING"] = "1"  # as on a GPU: the engine has a process
    items = rb.load("summeval", n_items=N_ITEMS)
    judge: Any = rb.open_judge(f"vllm:{MODEL}", **ENGINE)
    with closing(judge):
        for readout, layout in product(("logprobs", "feedback"), ("rubric-last", "rubric-first")):
            tokens = 16 if readout == "feedback" else 0
            plan = rb.plan(items, rb.balanced(5), readout=readout, layout=layout, max_tokens=tokens)
            found = _rates(judge, plan)
            what = f"{readout}, {layout}"
            for name, rate in found.items():
                yield row(f"{what}: {name}", round(rate, 1), "/s")
            limit = ">= 0.8" if readout == "logprobs" else ""
            yield row(f"{what}: ours ÷ floor", round(found["ours"] / found["floor"], 2), "x", limit)
            yield row(f"{what}: rb.run ÷ floor", round(found["run"] / found["floor"], 2), "x")


def _rates(judge: Any, plan: Any) -> dict[str, float]:
    """Judgments a second of each way: medians of repeats that take turns."""
    asked = list(rendered(plan, judge, walked=True))
    prompts = [{"prompt_token_ids": judge.tokens(request)} for request in asked]
    sampling = _sampling(judge, asked[0])

    def floor() -> None:
        judge._llm.generate(prompts, sampling, use_tqdm=False)

    def ours() -> None:
        replies = list(judge.answer(rendered(plan, judge, walked=True)))
        assert [reply.error for reply in replies] == [None] * len(asked)

    def run() -> None:
        with tempfile.TemporaryDirectory() as folder:
            rb.run(plan, judge, store=Path(folder) / "answers.sqlite", fresh=True)

    ways: dict[str, Callable[[], None]] = {"floor": floor, "ours": ours, "run": run}
    seconds: dict[str, list[float]] = {name: [] for name in ways}
    for turn in range(REPEATS + 1):  # the first turn warms up
        for name, way in ways.items():
            judge._llm.reset_prefix_cache()
            start = time.perf_counter()
            way()
            if turn:
                seconds[name].append(time.perf_counter() - start)
    return {name: len(asked) / median(times) for name, times in seconds.items()}


def _sampling(judge: Any, request: Any) -> Any:
    """The sampling of one request, for all: the floor makes it once."""
    from vllm import SamplingParams
    from vllm.sampling_params import RequestOutputKind

    if request.readout == "logprobs":
        return judge.choice(tuple(f" {label}" for label in request.choices)).sampling
    return SamplingParams(
        temperature=0,
        max_tokens=request.max_tokens,
        output_kind=RequestOutputKind.FINAL_ONLY,
        skip_clone=True,
    )
