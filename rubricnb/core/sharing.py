"""The order of requests: a walk over what their prompts share.

An engine with a prefix cache computes what two prompts begin with once, if the second
comes while the first is still in the cache. The least that any engine can compute for a
set of prompts is the number of distinct nodes of the trie of their tokens; a walk that
finishes one branch of that trie before the next comes to this number with a cache that
holds one prompt.

What shares what
----------------
``rubric-last``
    text → reference → criterion → ordering. All criteria of a text share the text, all
    orderings of an item share text and criterion as well, and orderings with the same
    first options share these. Texts share the task description only.
``rubric-first``
    reference → criterion → ordering → text. The other way round: all texts share a
    rubric in one ordering (without references), but two orderings of one item share
    nothing of the item.
``criteria`` (Setting 2)
    order of the criteria → text: nothing of a text is shared between two orders.
``pointwise``, ``pairwise``
    The text; the two responses of a pair come last, so a swap shares their instruction.

Labels, number of options, presence of a reference and prompt format change the first
lines of a prompt: requests that differ in one of these share next to nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from rubricnb.core.frames import Requests

IntArray = NDArray[np.signedinteger[Any]]

_HEAD = (
    "template",
    "layout",
    "prompt_format",
    "labels",
    "n_options",
    "reference_score",
    "exemplar",
    "effort",
    "thinking",
)
# What a prompt says after its head, in this order:
# columns of its item or of its request.
_RUBRIC = ("rubric_id", "variant", "ordering")
_PARTS: dict[str, tuple[str, ...]] = {
    "rubric-last": ("bare", "instruction", "response", "reference", *_RUBRIC),
    "rubric-first": ("bare", "reference", *_RUBRIC, "instruction", "response"),
    "criteria": (
        "criteria",
        "variant",
        "criterion_ordering",
        "instruction",
        "response",
    ),
    "pointwise": ("instruction", "response"),
    "pairwise": ("response", "instruction", *_RUBRIC),
}


def walk(requests: Requests) -> IntArray:
    """Order requests as a walk over shared prefixes, from their columns alone.

    Parameters
    ----------
    requests
        From `plan`, in any order.

    Returns
    -------
    ndarray of int64, shape (requests,)
        Row numbers. Between two requests that share a prefix come only others that
        share it.

    Examples
    --------
    >>> import rubricnb as rb
    >>> requests = rb.plan(rb.load("minibench", n_items=15), rb.fixed(5, 2)).sample(
    ...     frac=1, random_state=0)
    >>> texts = requests.item_id.iloc[walk(requests)].str.rsplit("/", n=1).str[0]
    >>> int((texts != texts.shift()).sum()) == texts.nunique()
    True
    """
    rubrics = requests.source.groupby("text_id", sort=False)["rubric_id"].agg("\n".join)
    items = pd.DataFrame(requests.source)
    items = items.assign(criteria=rubrics.reindex(items["text_id"]).to_numpy())
    # in most plans, none
    varying = [name for name in _HEAD if requests[name].nunique() > 1]
    heads = (
        pd.DataFrame(requests)
        .groupby(varying or _HEAD[0], observed=True, sort=False)
        .indices
    )
    parts = [rows[_order(requests.iloc[rows], items)] for rows in heads.values()]
    return np.concatenate([np.empty(0, np.int64), *parts])


def _order(requests: Requests, items: pd.DataFrame) -> IntArray:
    """Order requests of one head by the parts of their prompts."""
    template, layout, score = (
        requests[name].iloc[0] for name in ("template", "layout", "reference_score")
    )
    id_column = "text_id" if template == "criteria" else "item_id"
    items = items.drop_duplicates(id_column).set_index(id_column)
    reference = items.get("reference" if score == "auto" else f"reference_{score}")
    items = items.assign(reference=reference)
    items = items.assign(bare=items["reference"].isna())
    ids = requests["item_id"].astype("category").cat
    item = items.index.get_indexer(ids.categories)[ids.codes]
    shape = layout if template == "rubric" else template
    ranks = [
        _rank(requests[name]) if name in requests else _rank(items[name])[item]
        for name in _PARTS.get(shape, _PARTS["rubric-last"])
    ]
    return np.lexsort(ranks[::-1])


def _rank(column: pd.Series) -> IntArray:
    return pd.factorize(column.astype(object), sort=True)[0]


def common_prefix(a: Sequence[Any], b: Sequence[Any]) -> int:
    """Return how many leading elements two sequences of one type share."""
    low, high = 0, min(len(a), len(b))
    while low < high:  # slices compare in C: a binary search beats a loop over tokens
        middle = (low + high + 1) // 2
        low, high = (
            (middle, high) if a[low:middle] == b[low:middle] else (low, middle - 1)
        )
    return low
