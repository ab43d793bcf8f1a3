"""Means of sixteen systems from few labels, and a thousand draws of labels."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd

import rubricnb as rb
from benchmarks import row, timed
from studies import labels

SYSTEMS, PROMPTS, EACH = 16, 100, 4


def measure() -> Iterator[dict[str, Any]]:
    cell, judgments, people = recorded()
    mean, systems = timed(
        lambda: rb.mean_with_labels(judgments, people),
        lambda: rb.statistics.systems_with_labels(judgments, people),
    )
    yield row("texts", len(judgments))
    for name, spent in (("mean_with_labels", mean), ("systems_with_labels", systems)):
        yield row(name, 1000 * spent.wall, "ms", "< 50")
        yield row(f"{name}, processor time", 1000 * spent.cpu, "ms")
    (study,) = timed(lambda: labels.compute(of=[cell]), repeats=3)
    yield row("draws a size and plan", labels.DRAWS, "", ">= 1000")
    yield row(
        "the study, a judge and criterion", study.wall, "s", "< 10"
    )  # 8,000 estimates
    yield row("the study, processor time", study.cpu, "s")


def recorded() -> tuple[labels.Cell, pd.DataFrame, pd.DataFrame]:
    """A judge's scores of every text and its ratings, as the package takes them."""
    rng = np.random.default_rng(0)
    truth = rng.normal(3, 0.8, (PROMPTS, SYSTEMS))
    human = np.round(np.clip(truth, 1, 5) * 3) / 3
    score = np.round(np.clip(truth + rng.normal(0, 0.8, truth.shape), 1, 5))
    prompts = [f"p{i:03d}" for i in range(PROMPTS)]
    names = [f"{p}/s{s:02d}" for p in prompts for s in range(SYSTEMS)]
    judgments = pd.DataFrame(
        {
            "item_id": names,
            "cluster_id": np.repeat(prompts, SYSTEMS),
            "judge": "j",
            "candidate": [name[5:] for name in names],
            "design": "fixed",
            "ordering_index": 1,
            "ordering": "1-2-3-4-5",
            "score": score.ravel(),
        }
    )
    rated = np.arange(EACH * SYSTEMS)  # all texts of the first prompts
    people = pd.DataFrame(
        {"item_id": np.array(names)[rated], "human": human.ravel()[rated]}
    )
    return labels.Cell("j", "d", "c", human, score, tuple(prompts)), judgments, people
