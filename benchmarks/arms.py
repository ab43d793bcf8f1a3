"""What an engine gives for one plan in three ways: the floor, ours, ``rb.run``.

The *floor* is vLLM's ``LLM.generate`` on tokens and parameters that are ready: the
engine without any work of ours. *ours* renders, tokenizes, asks and reads the answers.
*run* also keys, stores and parses. Repeats are interleaved, since a machine that slows
down must slow all three. A full garbage collection, which takes as long as hundreds of
requests and comes when it likes, is kept out of the floor as `VLLMJudge.answer` keeps
it out of the others.
"""

from __future__ import annotations

import gc
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median
from typing import Any

import psutil

import rubricnb as rb
from benchmarks.sharing import distinct
from rubricnb.core.rendering import rendered
from rubricnb.engines.vllm import Asked

WAYS = ("floor", "ours", "run")


def measured(
    judge: Any, plan: Any, repeats: int = 3, ways: Sequence[str] = WAYS
) -> list[dict]:
    """Measure a plan in each way.

    Returns
    -------
    list of dict
        One row a way: ``judgments``; ``seconds``, the median of the repeats, and the
        fastest and slowest; ``cpu`` and ``cpu_engine``, processor seconds of this
        process and of the engine's; ``sent`` and ``computed`` prompt tokens and their
        least number ``limit``; ``answered`` tokens; ``longest`` answer; ``at_limit``,
        the share of answers cut at their token limit.
    """
    asked = list(rendered(plan, judge, walked=True))
    prompts, sampling = [], []
    for request in asked:
        first = Asked(judge, request, 0)
        prompts.append({"prompt_token_ids": first.prompt})
        sampling.append(first.sampling)

    limit = distinct(prompt["prompt_token_ids"] for prompt in prompts)

    def floor() -> dict[str, Any]:
        gc.freeze()
        try:
            outputs = judge._llm.generate(prompts, sampling, use_tqdm=False)
        finally:
            gc.unfreeze()
        lengths = [len(output.outputs[0].token_ids) for output in outputs]
        cached = sum(output.num_cached_tokens or 0 for output in outputs)
        cut = [output.outputs[0].finish_reason == "length" for output in outputs]
        return _facts(prompts, cached, lengths, cut)

    def ours() -> dict[str, Any]:
        replies = list(judge.answer(rendered(plan, judge, walked=True)))
        failed = [reply.error for reply in replies if reply.finish == "error"]
        if failed:
            raise RuntimeError(
                f"{len(failed)} of {len(replies)} requests failed: {failed[0]}"
            )
        cached = sum(reply.cached_tokens for reply in replies)
        lengths = [reply.completion_tokens for reply in replies]
        return _facts(
            prompts, cached, lengths, [reply.finish == "length" for reply in replies]
        )

    def run() -> dict[str, Any]:
        with tempfile.TemporaryDirectory() as folder:
            table = rb.run(
                plan, judge, store=Path(folder) / "answers.sqlite", fresh=True
            )
        cut = (table["status"] == "truncated").tolist()
        lengths = table["completion_tokens"].tolist()
        return _facts(prompts, int(table["cached_tokens"].sum()), lengths, cut)

    calls: dict[str, Callable[[], dict[str, Any]]] = {
        "floor": floor,
        "ours": ours,
        "run": run,
    }
    times: dict[str, list[tuple[float, float, float]]] = {way: [] for way in ways}
    facts: dict[str, dict[str, Any]] = {}
    for turn in range(repeats + 1):  # the first turn warms up
        for way in ways:
            judge._llm.reset_prefix_cache()
            start, own, engine = (
                time.perf_counter(),
                time.process_time(),
                children_seconds(),
            )
            facts[way] = calls[way]()
            if turn:
                times[way].append(
                    (
                        time.perf_counter() - start,
                        time.process_time() - own,
                        children_seconds() - engine,
                    )
                )
    return [
        {"arm": way, "judgments": len(asked), "limit": limit}
        | facts[way]
        | _seconds(times[way])
        for way in ways
    ]


def _facts(
    prompts: Sequence[Any], cached: int, lengths: Sequence[int], cut: Sequence[bool]
) -> dict[str, Any]:
    sent = sum(len(prompt["prompt_token_ids"]) for prompt in prompts)
    return {
        "sent": sent,
        "computed": sent - cached,
        "answered": int(sum(lengths)),
        "longest": int(max(lengths)),
        "at_limit": round(sum(cut) / len(cut), 4),
    }


def _seconds(turns: Sequence[tuple[float, float, float]]) -> dict[str, Any]:
    wall, own, engine = zip(*turns, strict=True)
    return {
        "seconds": round(median(wall), 3),
        "fastest": round(min(wall), 3),
        "slowest": round(max(wall), 3),
        "cpu": round(median(own), 3),
        "cpu_engine": round(median(engine), 3),
    }


def children_seconds() -> float:
    """Processor seconds of this process's children: vLLM's engine is one of them."""
    total = 0.0
    for child in psutil.Process().children(recursive=True):
        used = child.cpu_times()
        total += used.user + used.system
    return total
