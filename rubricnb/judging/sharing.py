"""The order of requests: a walk over what their prompts share.

An engine with a prefix cache computes what two prompts begin with once, if the second comes while
the first is still in the cache. The least that any engine can compute for a set of prompts is the
number of distinct nodes of the trie of their tokens; a walk that finishes one branch of that trie
before the next comes to this number with a cache that holds one prompt.

What shares what
----------------
``rubric-last``
    text → reference → criterion → ordering. All criteria of a text share the text, all orderings of
    an item share text and criterion as well, and orderings with the same first options share these.
    Texts share the task description only.
``rubric-first``
    reference → criterion → ordering → text. The other way round: all texts share a rubric in one
    ordering (without references), but two orderings of one item share nothing of the item.
``criteria`` (Setting 2)
    order of the criteria → text: nothing of a text is shared between two orders.
``pointwise``, ``pairwise``
    The text; the two responses of a pair come last, so a swap shares their instruction.

Labels, number of options, presence of a reference and prompt format change the first lines of a
prompt: requests that differ in one of these share next to nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from rubricnb.frames import Items, Requests
from rubricnb.prompts.render import PLACEBO_EDITS

IntArray = NDArray[np.signedinteger[Any]]

_HEAD = (
    "template", "layout", "prompt_format", "labels", "n_options", "reference_score", "exemplar",
    "effort", "thinking",
)  # fmt: skip
_TEXT = ("instruction", "response")
# What a prompt says after its head, in this order: columns of an item (a tuple) or of a request.
_RUBRIC = (("rubric_id",), "variant", "edits", "ordering")
_PREFIX: dict[str, tuple[tuple[str, ...] | str, ...]] = {
    "rubric-last": (("bare", *_TEXT, "reference"), *_RUBRIC),
    "rubric-first": (("bare", "reference"), *_RUBRIC, _TEXT),
    "criteria": (("criteria",), "variant", "criterion_ordering", _TEXT),
    "pointwise": (_TEXT,),
    "pairwise": (("response", "instruction"), *_RUBRIC),
}


def walk(requests: Requests) -> IntArray:
    """Order requests as a walk over shared prefixes, from their columns: no prompt is rendered.

    Parameters
    ----------
    requests
        From `plan`, in any order.

    Returns
    -------
    ndarray of int64, shape (requests,)
        Row numbers. Between two requests that share a prefix come only others that share it.

    Examples
    --------
    >>> import rubricnb as rb
    >>> requests = rb.plan(rb.load("minibench", n_items=15), rb.fixed(5, 2)).sample(
    ...     frac=1, random_state=0)
    >>> texts = requests.item_id.iloc[walk(requests)].str.rsplit("/", n=1).str[0]
    >>> int((texts != texts.shift()).sum()) == texts.nunique()
    True
    """
    items = _with_criteria(requests.source)
    varying = [name for name in _HEAD if requests[name].nunique() > 1]  # in most plans, none
    heads = pd.DataFrame(requests).groupby(varying or _HEAD[0], observed=True, sort=False).indices
    return np.concatenate(
        [np.empty(0, np.int64)]
        + [rows[np.argsort(_keys(requests.iloc[rows], items), kind="stable")]
           for rows in heads.values()]
    )  # fmt: skip


@dataclass
class Limit:
    """Counts the distinct nodes of a trie while one walks over it, holding one prompt at a time."""

    distinct: int = 0  # nodes of their trie; too many if the prompts do not come as a walk
    _before: Sequence[Any] = ()

    def add(self, prompt: Sequence[Any]) -> None:
        """Walk on to this prompt."""
        self.distinct += len(prompt) - common_prefix(self._before, prompt)
        self._before = prompt


def common_prefix(a: Sequence[Any], b: Sequence[Any]) -> int:
    """Return how many leading elements two sequences of one type share."""
    low, high = 0, min(len(a), len(b))
    while low < high:  # slices compare in C: a binary search beats a loop over tokens
        middle = (low + high + 1) // 2
        low, high = (middle, high) if a[low:middle] == b[low:middle] else (low, middle - 1)
    return low


def _keys(requests: Requests, items: pd.DataFrame) -> IntArray:
    """A number to sort requests of one head by: a rank for each part of the prompt."""
    condition = {name: requests[name].iloc[0] for name in _HEAD}
    id_column = "text_id" if condition["template"] == "criteria" else "item_id"
    items = _with_reference(items, condition["reference_score"]).drop_duplicates(id_column)
    ids = requests["item_id"].astype("category").cat
    item = pd.Index(items[id_column]).get_indexer(ids.categories).astype(np.int32)[ids.codes]
    keys = np.zeros(len(requests), np.int64)
    shape = condition["layout"] if condition["template"] == "rubric" else condition["template"]
    for part in _PREFIX.get(shape, _PREFIX["rubric-last"]):
        if isinstance(part, tuple):
            rank = items.groupby(list(part), dropna=False).ngroup().to_numpy(np.int32)[item]
        elif part == "edits":
            rank = _edits(requests)
        else:
            rank = _rank(requests[part])
        keys *= int(rank.max()) + 1
        keys += rank
    return keys


def _with_criteria(items: Items) -> pd.DataFrame:
    rubrics = items.groupby("text_id", sort=False)["rubric_id"].agg(lambda ids: "\n".join(ids))
    return pd.DataFrame(items).assign(criteria=rubrics.reindex(items["text_id"]).to_numpy())


def _with_reference(items: pd.DataFrame, score: str) -> pd.DataFrame:
    column = "reference" if score == "auto" else f"reference_{score}"
    text = items[column] if column in items else pd.Series(None, items.index, dtype="str")
    return items.assign(reference=text, bare=text.isna())


def _rank(column: pd.Series) -> IntArray:
    values = column.astype("category").cat
    rank = np.argsort(np.argsort(np.asarray(values.categories, dtype=object)))
    return rank.astype(np.int32)[values.codes]


def _edits(requests: pd.DataFrame) -> IntArray:
    """Rank of a placebo edit by where in the prompt it stands; 0 for none."""
    placebo = requests["design"] == "placebo"
    if not placebo.any():
        return np.zeros(1, np.int32)
    at = ("blank line", "header", "trailing space", "colon")
    marks = [tuple(edit in edits for edit in at) for edits in (frozenset(), *PLACEBO_EDITS)]
    rank = np.argsort(sorted(range(len(marks)), key=marks.__getitem__))
    return rank[np.where(placebo, requests["ordering_index"], 0)]
