"""Judgments per second of vLLM whose model costs 6 ms a step: our own work.

    .venv-vllm/bin/python -m benchmarks host_work

`benchmarks.stand_in` is the model, so this runs on a processor; `benchmarks.arms` has
the ways that are compared. A ratio to the floor holds elsewhere, a rate does not.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import closing
from itertools import product
from pathlib import Path
from typing import Any

import rubricnb as rb
from benchmarks import row

ROOT = Path(__file__).parents[1]
MODEL = os.environ.get(
    "HOST_WORK_MODEL",
    str(ROOT / ".venv-vllm" / "checkpoints" / "smollm2-135m-instruct"),
)
N_ITEMS = int(os.environ.get("HOST_WORK_ITEMS", "208"))  # 2,080 requests
ENGINE: dict[str, Any] = {
    "worker_cls": "benchmarks.stand_in.Worker",
    "max_model_len": 4096,
    "max_num_seqs": 1024,
    "max_num_batched_tokens": 16384,
    "enable_chunked_prefill": True,
    "concurrency": 4096,
}


def measure() -> Iterator[dict[str, Any]]:
    from benchmarks.arms import measured  # needs vLLM's environment

    if not Path(MODEL).exists():
        raise FileNotFoundError(f"no checkpoint at {MODEL}: `make bench` makes it")
    # as on a GPU: the engine has a process
    os.environ["VLLM_ENABLE_V1_MULTIPROCESSING"] = "1"
    items = rb.load("summeval", n_items=N_ITEMS)
    judge: Any = rb.open_judge(f"vllm:{MODEL}", **ENGINE)
    with closing(judge):
        for readout, layout in product(
            ("logprobs", "feedback"), ("rubric-last", "rubric-first")
        ):
            length = 16 if readout == "feedback" else 0
            plan = rb.plan(
                items, rb.balanced(5), readout=readout, layout=layout, max_tokens=length
            )
            what = f"{readout}, {layout}"
            rates = {}
            for arm in measured(judge, plan):
                rates[arm["arm"]] = arm["judgments"] / arm["seconds"]
                own = 1e3 * arm["cpu"] / arm["judgments"]
                yield row(f"{what}: {arm['arm']}", round(rates[arm["arm"]], 1), "/s")
                yield row(
                    f"{what}: {arm['arm']}, this process", round(own, 2), "ms each"
                )
            limit = ">= 0.8" if readout == "logprobs" else ""
            yield row(
                f"{what}: ours / floor",
                round(rates["ours"] / rates["floor"], 2),
                "x",
                limit,
            )
            yield row(
                f"{what}: rb.run / floor", round(rates["run"] / rates["floor"], 2), "x"
            )
