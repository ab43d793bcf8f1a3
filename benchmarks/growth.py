"""Time against size: a study's steps for 160, 1,600 and 4,800 items."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pandas as pd

import rubricnb as rb
from benchmarks import row, timed
from rubricnb.core.frames import Items
from rubricnb.engines.fitting import stand_in

DESIGNS = [rb.balanced(5), rb.fixed(5, 10)]


def measure() -> Iterator[dict[str, Any]]:
    studies = [steps(items) for items in (tenth(), stand_in("summeval"), threefold())]
    for name in studies[0]:
        small, one, three = (
            t.cpu for t in timed(*(s[name] for s in studies), repeats=5)
        )
        yield row(f"{name}, 160 items", small, "s")
        yield row(f"{name}, 1,600 items", one, "s")
        yield row(f"{name}, 4,800 items", three, "s")
        yield row(f"{name}: ×10", one / small, "times", "<= 15")
        yield row(f"{name}: ×3", three / one, "times", "<= 4.5")


def tenth() -> Items:
    items = stand_in("summeval")
    return items[items["cluster_id"].isin(items["cluster_id"].unique()[:10])]


def threefold() -> Items:
    """Three times the texts, each under names of its own."""
    items = stand_in("summeval")
    names = ["item_id", "text_id", "cluster_id", "group_id"]
    parts = [items.assign(**{n: items[n] + f"/{i}" for n in names}) for i in range(3)]
    return pd.concat(parts, ignore_index=True)


def steps(items: Items) -> dict[str, Callable[[], object]]:
    requests = rb.plan(items, DESIGNS)
    judgments = rb.simulate(requests, items, "first-biased")
    balanced = judgments[judgments["design"] == "balanced"]
    return {
        "plan": partial(rb.plan, items, DESIGNS),
        "simulate": partial(rb.simulate, requests, items, "first-biased"),
        "position_bias": partial(rb.position_bias, balanced),
        "agreement": partial(rb.agreement, judgments, items),
        "strategy_contrast": partial(rb.strategy_contrast, judgments, items),
        "budget_curve": partial(rb.budget_curve, balanced, items),
        "rank_reversal": partial(rb.rank_reversal, judgments),
    }
