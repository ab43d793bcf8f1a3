"""Which items are asked about: a draw of whole texts, and the first look's part."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from rubricnb.core.estimates.intervals import effective_clusters
from rubricnb.core.frames import Items
from rubricnb.core.support.hashing import hash64, mix64

FIRST_LOOK = 40
"""Prompts of the first look, at least; the second must have as many."""


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
    chance = pd.Series(mix64(hash64(texts.index.to_numpy()), seed), texts.index)
    texts["turn"] = chance.groupby(texts["cluster"], observed=True).rank("first")
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


def first_look(items: Items, looks: int = 2, seed: int = 0) -> Items:
    """Draw the items of the first look: all, if there are too few for a second one.

    Examples
    --------
    >>> import rubricnb as rb
    >>> items = rb.load("minibench")
    >>> len(first_look(items)) == len(items)  # twelve prompts are too few to share
    True
    """
    if looks not in (1, 2):
        raise ValueError(f"looks = {looks}: give 1 or 2")
    enough = effective_clusters(pd.factorize(items["cluster_id"])[0]) >= 2 * FIRST_LOOK
    if looks == 1 or not enough:
        return items
    third = int(np.ceil(items["cluster_id"].nunique() / 3))
    return drawn(items, None, max(FIRST_LOOK, third), seed)
