"""Judgments per second of one GPU: by readout, prompt layout and prefix cache, and plain loops.

    python -m benchmarks gpu

Every arm asks about whole articles of SummEval under the ten orderings of balanced(5). The loops
give vLLM's own ``LLM.chat`` the same prompts, one by one and 64 at a time, without a prefix cache:
what a script does that does not know which prompts share what. The card and the versions go into
``results/gpu/throughput.csv`` with the figures.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import closing
from itertools import product
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pandas as pd

import rubricnb as rb
from benchmarks import row
from benchmarks.sharing import distinct
from rubricnb.judging.contract import Request
from rubricnb.judging.rendering import rendered
from rubricnb.judging.results import results_folder
from rubricnb.judging.vllm import gpus

MODEL = os.environ.get("GPU_MODEL", "checkpoints/qwen2.5-coder-1.5b-instruct")
N_ITEMS = int(os.environ.get("GPU_ITEMS", "208"))  # 13 articles: 4 systems, 4 criteria
READOUTS = ("score", "logprobs", "feedback")
LAYOUTS = ("rubric-last", "rubric-first")
TOGETHER, ALONE = 64, 24  # requests of a loop at once; requests of the loop that sends one
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
    rows: list[dict[str, Any]] = []
    for arm in _arms():
        rows.append(arm | {"card": found[0]["name"], "driver": found[0]["driver"]})
        _write(rows)  # at once: the second engine may not start
        what = f"{arm['arm']}, {arm['readout']}, {arm['layout']}, cache {arm['cache']}"
        yield row(f"{what}: judgments", round(arm["judgments"] / arm["seconds"], 1), "/s")
        if arm["arm"] == "rubricnb" and arm["cache"] == "on":
            ratio = round(arm["computed"] / arm["limit"], 3)
            bound = "<= 1.1" if arm["layout"] == "rubric-last" else ""
            yield row(f"{what}: prompt tokens computed ÷ limit", ratio, "", bound)
    table = pd.DataFrame(rows)
    speed = (table["judgments"] / table["seconds"]).groupby(
        [table["arm"], table["readout"], table["layout"], table["cache"]]
    ).max()  # fmt: skip
    ours = speed[("rubricnb", "logprobs", "rubric-last", "on")]
    loop = speed[(f"loop of {TOGETHER}", "feedback", "rubric-last", "off")]
    yield row(f"rubricnb / feedback loop, {TOGETHER} at once", round(ours / loop, 1), "x", ">= 5")
    text = speed[("rubricnb", "feedback", "rubric-last", "on")]
    yield row(f"rubricnb feedback / feedback loop, {TOGETHER} at once", round(text / loop, 2), "x")


def _arms() -> Iterator[dict[str, Any]]:
    """Measure with and without the prefix cache: two processes, since each frees its memory."""
    for cache in (True, False):
        with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
            yield from pool.submit(arms_with, cache).result()


def arms_with(cache: bool) -> list[dict[str, Any]]:
    """Measure every readout and layout with one engine; without the cache, the loops too."""
    items = rb.load("summeval", n_items=N_ITEMS)
    judge: Any = rb.open_judge(f"vllm:{MODEL}", enable_prefix_caching=cache, **ENGINE)
    common = {
        "model": Path(MODEL).name, "identity": judge.identity, "cache": "on" if cache else "off",
    }  # fmt: skip
    arms = []
    with closing(judge):
        for readout, layout in product(READOUTS, LAYOUTS):
            plan = rb.plan(items, rb.balanced(5), readout=readout, layout=layout)
            asked = list(rendered(plan, judge, walked=True))
            facts = common | {"readout": readout, "layout": layout}
            if not arms:
                _ours(judge, asked[:256])  # the kernels are compiled and warm
            limit = {"limit": distinct(map(judge.tokens, asked))}
            arms.append(facts | {"arm": "rubricnb"} | limit | _ours(judge, asked))
            if not cache and layout == LAYOUTS[0] and readout != "logprobs":
                part = asked[:: max(1, len(asked) // (10 * TOGETHER))][: 10 * TOGETHER]
                for size, sent in ((1, part[:ALONE]), (TOGETHER, part)):
                    limit = {"limit": distinct(map(judge.tokens, sent))}
                    arms.append(
                        facts | {"arm": f"loop of {size}"} | limit | _loop(judge, sent, size)
                    )
    return arms


def _ours(judge: Any, asked: Sequence[Request]) -> dict[str, Any]:
    judge._llm.reset_prefix_cache()
    start = time.perf_counter()
    replies = list(judge.answer(asked))
    seconds = time.perf_counter() - start
    failed = [reply.error for reply in replies if reply.finish == "error"]
    if failed:
        raise RuntimeError(f"{len(failed)} of {len(replies)} requests failed: {failed[0]}")
    sent = sum(reply.prompt_tokens for reply in replies)
    return {
        "judgments": len(asked),
        "seconds": round(seconds, 3),
        "sent": sent,
        "computed": sent - sum(reply.cached_tokens for reply in replies),
        "answered": sum(reply.completion_tokens for reply in replies),
    }


def _loop(judge: Any, asked: Sequence[Request], size: int) -> dict[str, Any]:
    """Time vLLM's own chat call, `size` requests at a time."""
    from vllm import SamplingParams
    from vllm.sampling_params import StructuredOutputsParams

    options: dict[str, Any] = {"temperature": 0, "max_tokens": judge.room(asked[0])}
    if asked[0].readout == "score":
        structured = StructuredOutputsParams(choice=list(asked[0].choices))
        options |= {"max_tokens": 4, "structured_outputs": structured}
    sampling = SamplingParams(**options)
    prompts = [[{"role": m.role, "content": m.content} for m in a.messages] for a in asked]
    start = time.perf_counter()
    outputs: list[Any] = []
    for part in _parts(prompts, size):
        outputs += judge._llm.chat(part, sampling, use_tqdm=False)
    seconds = time.perf_counter() - start
    sent = sum(len(output.prompt_token_ids) for output in outputs)
    return {
        "judgments": len(asked),
        "seconds": round(seconds, 3),
        "sent": sent,
        "computed": sent - sum(output.num_cached_tokens or 0 for output in outputs),
        "answered": sum(len(output.outputs[0].token_ids) for output in outputs),
    }


def _parts(prompts: Sequence[Any], size: int) -> Iterator[list[Any]]:
    for start in range(0, len(prompts), size):
        yield list(prompts[start : start + size])


def _write(rows: Sequence[dict[str, Any]]) -> None:
    folder = results_folder() / "gpu"
    folder.mkdir(parents=True, exist_ok=True)
    pd.DataFrame(rows).to_csv(folder / "throughput.csv", index=False)
