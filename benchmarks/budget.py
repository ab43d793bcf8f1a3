"""The budget curve over all 1,023 subsets of ten reads of 1,600 items."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import rubricnb as rb
from benchmarks import row, timed
from rubricnb.engines.fitting import stand_in


def measure() -> Iterator[dict[str, Any]]:
    items = stand_in("summeval")
    judgments = rb.simulate(rb.plan(items, rb.balanced(5)), items, "first-biased")
    alone = judgments.assign(cluster_id=judgments["item_id"])
    shared, single = timed(
        lambda: rb.budget_curve(judgments, items), lambda: rb.budget_curve(alone, items)
    )
    curve = rb.budget_curve(judgments, items)
    yield row("items", int(curve["n_items"].iloc[0]))
    yield row("subsets", int(curve["n_subsets"].sum()), "", ">= 1023")
    yield row("100 clusters", shared.wall, "s", "< 1")
    yield row("100 clusters, processor time", shared.cpu, "s")
    yield row("1,600 clusters", single.wall, "s", "< 1")
    yield row("1,600 clusters, processor time", single.cpu, "s")
