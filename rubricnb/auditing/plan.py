"""What an audit asks: which items, in how many ways, and at what cost."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from rubricnb.data.rubrics import scales_of
from rubricnb.frames import Items, Requests
from rubricnb.hashing import hash64, mix64
from rubricnb.judging.cost import estimate_cost
from rubricnb.judging.judge import JudgeLike, describe
from rubricnb.judging.plan import labels_there_are, plan
from rubricnb.judging.rendering import askable
from rubricnb.permutation import Design, balanced, fixed, placebo


def audit_requests(items: Items, **settings: Any) -> list[Requests]:
    """Plan an audit: Setting 1, and Setting 2 if all texts have the same criteria.

    Examples
    --------
    >>> import rubricnb as rb
    >>> [len(requests) for requests in audit_requests(rb.load("minibench", n_items=15))]
    [336, 55]
    """
    which, scales = scales_of(items)
    parts = []
    for number, scale in enumerate(scales):
        n, own = len(scale), some_items(items, which == number)
        one = fixed(n, 1)
        orders = [fixed(n, 2), Design("descending", n), placebo(n, 5), balanced(n)]
        shown = _graded(own, scale.tolist()) or ("auto" if "reference" in own else None)
        parts.append(plan(own, orders, reference="none", **settings))
        if labels := labels_there_are(own, ["letter", "roman"], n):
            parts.append(plan(own, one, labels=labels, reference="none", **settings))
        parts += [plan(own, one, reference=shown, **settings)] if shown else []
    coded = dict.fromkeys(
        parts[0].select_dtypes("category"), "category"
    )  # on each scale
    asked = [Requests(pd.concat(parts, ignore_index=True).astype(coded))]
    asked[0].source = items
    criteria = items.groupby("text_id", observed=True).size().unique()
    if len(criteria) == 1 < criteria[0] and len(scales) == 1:
        k = int(criteria[0])
        designs = [fixed(k, 2), placebo(k, 3), balanced(k)]
        asked.append(plan(items, designs, template="criteria", n_options=n, **settings))
    return asked


def _graded(items: Items, scale: Sequence[float]) -> list[int]:
    """Choose scores with references for all items: two inner ones, and the last."""
    there = [
        int(k)
        for k in scale
        if (c := f"reference_{k:g}") in items and items[c].notna().all()
    ]
    inner = [k for k in there if scale[0] < k < scale[-1]]
    two = inner if len(inner) > 1 else there
    return sorted({*two[:1], *two[-1:], *there[-1:]} if len(two) > 1 else there)


def audit_cost(
    judge: JudgeLike,
    items: Items,
    price: tuple[float, float, float] | None = None,
    **how: Any,
) -> pd.DataFrame:
    """Estimate what an audit would cost, as `estimate_cost`, before anything is sent.

    Examples
    --------
    >>> import rubricnb as rb
    >>> cost = audit_cost("openai:gpt-4.1", rb.load("minibench", n_items=15))
    >>> int(cost.requests.sum())
    391
    """
    described = describe(judge, price)
    parts = (askable(part, described)[0] for part in audit_requests(items, **how))
    return pd.concat([estimate_cost(part, described) for part in parts if len(part)])


def drawn(
    items: Items, n_items: int | None, n_prompts: int | None = None, seed: int = 0
) -> Items:
    """Draw whole texts, evenly from random clusters; a larger draw holds a smaller one.

    Examples
    --------
    >>> import rubricnb as rb
    >>> few = drawn(rb.load("minibench"), 36)
    >>> len(few), few.cluster_id.nunique()
    (36, 12)
    """
    for name, n in (("n_items", n_items), ("n_prompts", n_prompts)):
        if n is not None and n < 1:
            raise ValueError(f"{name} is {n}: give 1 or more, or None for all")
    texts = items.groupby("text_id", observed=True, sort=False).agg(
        cluster=("cluster_id", "first"), size=("item_id", "size")
    )
    names = texts["cluster"].unique()
    place = np.argsort(np.argsort(mix64(hash64(names), seed), kind="stable"))
    texts["place"] = texts["cluster"].map(dict(zip(names, place, strict=True)))
    texts["chance"] = mix64(hash64(texts.index.to_numpy()), seed)
    texts["turn"] = texts.groupby("cluster", observed=True)["chance"].rank(
        method="first"
    )
    texts = texts[texts["place"] < (n_prompts or np.inf)].sort_values(["turn", "place"])
    before = texts["size"].cumsum() - texts["size"]
    return some_items(
        items, items["text_id"].isin(texts.index[before < (n_items or np.inf)])
    )


def some_items(items: Items, kept: Any) -> Items:
    """Keep some items, and their rubrics."""
    out = Items(items[np.asarray(kept)].reset_index(drop=True))
    out.rubrics = items.rubrics[items.rubrics["rubric_id"].isin(out["rubric_id"])]
    return out
