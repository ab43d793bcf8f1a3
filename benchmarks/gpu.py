"""Judgments per second of one GPU: by readout, prompt layout and length of the answer.

    python -m benchmarks gpu

Every arm asks about whole articles of SummEval under the ten orderings of balanced(5),
2,080 requests, in the ways of `benchmarks.arms`, three times in turns. The card, the
versions, the commit and a fingerprint of the engine's code go into
``results/gpu/throughput.csv`` with the figures. ``GPU_LOOPS=1`` also gives vLLM's own
``LLM.chat`` the same prompts, one by one and 64 at a time, without a prefix cache: what
a script does that does not know which prompts share what. That takes three minutes
more.
"""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import closing
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pandas as pd

import rubricnb as rb
from benchmarks import row
from rubricnb.core.contract import Request
from rubricnb.core.rendering import rendered
from rubricnb.core.results import results_folder
from rubricnb.engines.vllm import gpus
from tools.engine_code import engine_texts, fingerprint

ROOT = Path(__file__).parents[1]
MODEL = os.environ.get("GPU_MODEL", "checkpoints/qwen2.5-coder-1.5b-instruct")
N_ITEMS = int(os.environ.get("GPU_ITEMS", "208"))  # 13 articles: 4 systems, 4 criteria
LOOPS = os.environ.get("GPU_LOOPS") == "1"
REPEATS = 3
# What a machine that is lent for minutes is used for first comes first. Written answers
# that never end take half of all tokens at 1,024, so they are measured once, and at 256
# beside it.
ARMS: tuple[dict[str, Any], ...] = (
    {
        "readout": "logprobs",
        "layout": "rubric-last",
        "max_tokens": 0,
        "repeats": REPEATS,
    },
    {
        "readout": "logprobs",
        "layout": "rubric-first",
        "max_tokens": 0,
        "repeats": REPEATS,
    },
    {"readout": "feedback", "layout": "rubric-last", "max_tokens": 256, "repeats": 1},
    {"readout": "feedback", "layout": "rubric-last", "max_tokens": 1024, "repeats": 1},
    {"readout": "score", "layout": "rubric-last", "max_tokens": 0, "repeats": REPEATS},
)
# requests of a loop at once; requests of the loop that sends one
TOGETHER, ALONE = 64, 24
ENGINE: dict[str, Any] = {
    "max_model_len": 8192,
    "max_num_seqs": 1024,
    "concurrency": 4096,
    "gpu_memory_utilization": 0.85,
}


def measure() -> Iterator[dict[str, Any]]:
    found = gpus()
    if not found:
        raise FileNotFoundError("no NVIDIA GPU: nvidia-smi shows none")
    facts = {
        "card": found[0]["name"],
        "driver": found[0]["driver"],
        "commit": _commit(),
        "code": fingerprint(engine_texts(ROOT)),
        "replaced": "",
    }
    rows: list[dict[str, Any]] = []
    for arm in _arms():
        rows.append(arm | facts)
        _write(rows)  # at once: a later arm may not fit into the time that is left
        what = (
            f"{arm['arm']}, {arm['readout']} {arm['max_tokens'] or ''}, {arm['layout']}"
        )
        yield row(
            f"{what}: judgments", round(arm["judgments"] / arm["seconds"], 1), "/s"
        )
        if arm["arm"] == "ours" and arm["cache"] == "on":
            ratio = round(arm["computed"] / arm["limit"], 3)
            bound = "<= 1.1" if arm["layout"] == "rubric-last" else ""
            yield row(f"{what}: prompt tokens computed / limit", ratio, "", bound)
    table = pd.DataFrame(rows)
    speed = (
        (table["judgments"] / table["seconds"])
        .groupby([table["arm"], table["readout"], table["layout"]])
        .max()
    )
    ratio = (
        speed["ours", "logprobs", "rubric-last"]
        / speed["floor", "logprobs", "rubric-last"]
    )
    yield row("logprobs, rubric-last: ours / floor", round(ratio, 2), "x", ">= 0.8")


def _arms() -> Iterator[dict[str, Any]]:
    """Measure with the prefix cache, on request also without, in separate processes."""
    for arms in (with_cache, loops) if LOOPS else (with_cache,):
        with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
            yield from pool.submit(arms).result()


def with_cache() -> list[dict[str, Any]]:
    """Measure every arm of `ARMS` with one engine."""
    from benchmarks.arms import measured

    items = rb.load("summeval", n_items=N_ITEMS)
    judge: Any = rb.open_judge(f"vllm:{MODEL}", **ENGINE)
    rows = []
    with closing(judge):
        for arm in ARMS:
            settings = {name: arm[name] for name in ("readout", "layout", "max_tokens")}
            plan = rb.plan(items, rb.balanced(5), **settings)
            facts = _facts(judge, "on") | settings
            rows += [facts | found for found in measured(judge, plan, arm["repeats"])]
    return rows


def loops() -> list[dict[str, Any]]:
    """Time plain loops over vLLM's own chat call, without a prefix cache."""
    items = rb.load("summeval", n_items=N_ITEMS)
    judge: Any = rb.open_judge(f"vllm:{MODEL}", enable_prefix_caching=False, **ENGINE)
    rows = []
    with closing(judge):
        for readout in ("score", "feedback"):
            plan = rb.plan(items, rb.balanced(5), readout=readout)
            asked = list(rendered(plan, judge, walked=True))
            part = asked[:: max(1, len(asked) // (10 * TOGETHER))][: 10 * TOGETHER]
            facts = _facts(judge, "off")
            facts |= {"readout": readout, "layout": "rubric-last", "max_tokens": 0}
            for size, sent in ((1, part[:ALONE]), (TOGETHER, part)):
                rows.append(
                    facts | {"arm": f"loop of {size}"} | _loop(judge, sent, size)
                )
    return rows


def _facts(judge: Any, cache: str) -> dict[str, Any]:
    return {"model": Path(MODEL).name, "identity": judge.identity, "cache": cache}


def _loop(judge: Any, asked: Sequence[Request], size: int) -> dict[str, Any]:
    """Time vLLM's own chat call, `size` requests at a time."""
    from vllm import SamplingParams
    from vllm.sampling_params import StructuredOutputsParams

    options: dict[str, Any] = {"temperature": 0, "max_tokens": judge.room(asked[0])}
    if asked[0].readout == "score":
        structured = StructuredOutputsParams(choice=list(asked[0].choices))
        options |= {"max_tokens": 4, "structured_outputs": structured}
    sampling = SamplingParams(**options)
    prompts = [
        [{"role": m.role, "content": m.content} for m in a.messages] for a in asked
    ]
    start = time.perf_counter()
    outputs: list[Any] = []
    for first in range(0, len(prompts), size):
        outputs += judge._llm.chat(
            prompts[first : first + size], sampling, use_tqdm=False
        )
    seconds = time.perf_counter() - start
    sent = sum(len(output.prompt_token_ids) for output in outputs)
    return {
        "judgments": len(asked),
        "seconds": round(seconds, 3),
        "sent": sent,
        "computed": sent - sum(output.num_cached_tokens or 0 for output in outputs),
        "answered": sum(len(output.outputs[0].token_ids) for output in outputs),
    }


def _commit() -> str:
    """The commit that was measured; empty outside a repository."""
    done = subprocess.run(
        ["git", "rev-parse", "--short=10", "HEAD"],
        capture_output=True,
        text=True,
        cwd=ROOT,
    )
    return done.stdout.strip()


def _write(rows: Sequence[dict[str, Any]]) -> None:
    folder = results_folder() / "gpu"
    folder.mkdir(parents=True, exist_ok=True)
    pd.DataFrame(rows).to_csv(folder / "throughput.csv", index=False)
