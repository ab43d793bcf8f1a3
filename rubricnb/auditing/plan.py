"""What an audit may ask: every item in many ways."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from rubricnb.auditing.draw import first_look, some_items
from rubricnb.auditing.terms import MARGINS, USUAL_SPAN
from rubricnb.core.frames import Items, Requests, scales_of
from rubricnb.core.permutation import Design, balanced, decode, fixed, placebo
from rubricnb.core.plan import labels_there_are, plan
from rubricnb.core.support.hashing import hash64

EDITS, EDITS_TOGETHER = 5, 3
"""Neutral edits of a prompt about one criterion, and about several."""
FULL_MARK = "reference of full mark"
"""Condition whose reference has the highest score of its scale."""


def audit_requests(
    items: Items, looks: int = 2, edits: int | None = None, **settings: Any
) -> list[Requests]:
    """Plan an audit: Setting 1, and Setting 2 if all texts have the same criteria.

    All that may be asked; with two looks, the second asks a part of it. The neutral
    edits are dealt out over the items, each of which gets so many `edits`; by default,
    as many as their margin needs (`edit_reads`).

    Examples
    --------
    >>> import rubricnb as rb
    >>> [len(requests) for requests in audit_requests(rb.load("minibench", n_items=15))]
    [336, 55]
    >>> [len(requests) for requests in audit_requests(rb.load("minibench"))]
    [3312, 540]
    """
    return requests_for(items, looks, edits, **settings)[1]


def requests_for(
    items: Items, looks: int, edits: int | None = None, **settings: Any
) -> tuple[Items, list[Requests]]:
    """Items of the first look, and all that may be asked, as in `audit_requests`."""
    first = first_look(items, looks, settings.get("seed", 0))
    which, scales = scales_of(items)
    first_scale = which[items["item_id"].isin(first["item_id"]).to_numpy()]
    parts = []
    for number, scale in enumerate(scales):
        own, n_first = some_items(items, which == number), (first_scale == number).sum()
        levels, n = scale.tolist(), len(scale)
        reads = edits or edit_reads(int(n_first), levels, EDITS)
        # Setting 1: orders, edits, labels and references
        orders = [fixed(n, 2), Design("descending", n), placebo(n, EDITS), balanced(n)]
        every = plan(own, orders, reference="none", **settings)
        parts.append(_dealt(every, reads, EDITS))
        if labels := labels_there_are(own, ["letter", "roman"], n):
            named = plan(own, fixed(n, 1), labels=labels, reference="none", **settings)
            parts.append(named)
        if shown := _graded(own, levels) or ("auto" if "reference" in own else None):
            parts.append(plan(own, fixed(n, 1), reference=shown, **settings))
    # Concatenation loses the categories, which differ between scales.
    coded = dict.fromkeys(parts[0].select_dtypes("category"), "category")
    asked = [Requests(pd.concat(parts, ignore_index=True).astype(coded))]
    asked[0].source = items
    criteria = items.groupby("text_id", observed=True).size().unique()
    if len(criteria) == 1 < criteria[0] and len(scales) == 1:
        # Setting 2: the k criteria of each text in one call, in balanced orders
        k, scale = int(criteria[0]), scales[0].tolist()
        designs = [fixed(k, 2), placebo(k, EDITS_TOGETHER), balanced(k)]
        how = settings | {"template": "criteria", "n_options": len(scale)}
        reads = edits or edit_reads(len(first), scale, EDITS_TOGETHER)
        asked.append(_dealt(plan(items, designs, **how), reads, EDITS_TOGETHER))
    return first, asked


def edit_reads(n_items: int, scale: Sequence[float], most: int) -> int:
    """Number of neutral edits that each item needs.

    The mean effect of the edits is subtracted from every shift, so its standard error
    should be at most half of the margin m. An edit that moves a quarter of the scores,
    the largest share that does not matter, by one step d has σ = d √0.25; over n items
    with k edits each σ / √(n k) ≤ m / 2, so n k ≥ (d / m)².

    Examples
    --------
    >>> [edit_reads(n, [1, 2, 3, 4, 5], 5) for n in (15, 40, 60, 120)]
    [5, 3, 2, 1]
    """
    margin = MARGINS["score points"] * (scale[-1] - scale[0]) / USUAL_SPAN
    needed = (np.diff(scale).min() / margin) ** 2
    return int(np.clip(np.ceil(round(needed / n_items, 6)), 1, most))


def _dealt(requests: Requests, reads: int, most: int) -> Requests:
    """Keep so many neutral edits of each item, starting from one that its name picks.

    What is kept has the same request ids as in a plan with all edits, so that an answer
    in a store is found.
    """
    start = hash64(requests["item_id"].astype("object").to_numpy()) % most
    turn = (
        requests["ordering_index"].to_numpy(np.int64) - 1 - start.astype(int)
    ) % most
    kept = (requests["design"] != "placebo").to_numpy() | (turn < reads)
    out: Requests = requests[kept].reset_index(drop=True)
    return out


def _graded(items: Items, scale: Sequence[float]) -> list[int]:
    """Choose scores with references for all items: two inner ones, and the last."""
    there = [
        int(k)
        for k in scale
        if (c := f"reference_{k:g}") in items and items[c].notna().all()
    ]
    inner = [k for k in there if scale[0] < k < scale[-1]]
    two = inner if len(inner) > 1 else there
    return sorted({*two[:1], *two[-1:], *there[-1:]})


def references_of(
    asked: pd.DataFrame, auto: str = "of full mark"
) -> tuple[pd.Series, pd.Series]:
    """Name the reference that each prompt shows; and the highest score that it lists.

    `auto`: what the reference is whose score is not named.
    """
    orders = asked["ordering"]
    highest = {order: max(decode(order)) for order in orders.dropna().unique()}
    top = orders.map(highest).astype(float)
    shown = asked["reference_score"].astype("str").replace("auto", auto)
    number = shown.map({s: pd.to_numeric(s, errors="coerce") for s in shown.unique()})
    return shown.mask(number == top, "of full mark"), top
