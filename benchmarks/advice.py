"""Advice and budget curve of 200,000 judgments of rated texts, in three shapes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd

import rubricnb as rb
from benchmarks import row, timed
from rubricnb.core.permutation import code

SHAPES = {
    "20,000 prompts × 10 orders": (20_000, 1, 5, 1),
    "3,334 prompts × 6 texts × 10 orders": (3_334, 6, 5, 1),
    "10,000 prompts × 10 orders × 2 reads": (10_000, 1, 5, 2),
}


def measure() -> Iterator[dict[str, Any]]:
    for name, shape in SHAPES.items():
        judgments, items = study(*shape)
        advice, curve = timed(
            lambda j=judgments, i=items: rb.advise(j, i),
            lambda j=judgments, i=items: rb.budget_curve(j, i),
            repeats=3,
        )
        yield row(f"advise, {name}", advice.cpu, "s", "< 5")
        yield row(f"budget_curve, {name}", curve.cpu, "s", "< 5")


def study(
    prompts: int, texts: int, n: int, repeats: int
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Judgments of some texts of each prompt in balanced orders, all of them rated."""
    rng = np.random.default_rng(0)
    orders = np.tile(code(rb.balanced(n).orderings()), repeats)
    quality = rng.normal(size=(prompts, 1)) + rng.normal(size=(prompts, texts))
    reads = quality[..., None] + rng.normal(size=(prompts, texts, len(orders)))
    prompt, text, read = (a.ravel() for a in np.indices(reads.shape))
    judgments = pd.DataFrame(
        {
            "item_id": prompt * texts + text,
            "cluster_id": prompt,
            "candidate": text,
            "design": "balanced",
            "ordering_index": read % (2 * n) + 1,
            "replicate": read // (2 * n) + 1,
            "ordering": orders[read],
            "score": np.clip(np.round(3 + reads.ravel()), 1, 5),
        }
    )
    human = quality.ravel() + rng.normal(size=quality.size)
    return judgments, pd.DataFrame({"item_id": np.arange(human.size), "human": human})
