"""The overall score of a text: the weighted mean of its criteria."""

from __future__ import annotations

import numpy as np
import pandas as pd

from rubricnb.frames import CONDITIONS, Items, Judgments
from rubricnb.statistics import _reads as arrays

_READ = ("judge", "dataset", "item_id", "design", "ordering_index", "replicate", *CONDITIONS)
_OF_TEXT = ["dataset", "text_id", "group_id", "cluster_id", "candidate", "instruction", "response"]


def overall(judgments: pd.DataFrame, items: Items) -> Judgments:
    """Combine the criteria of each text into one score: their mean, weighted as the rubrics say.

    Parameters
    ----------
    judgments
        Judgments of several criteria per text.
    items
        The items that were judged; the weights are the column ``weight`` of their rubrics, or 1.

    Returns
    -------
    Judgments
        One row per text and read: ``item_id`` is the text's, ``criterion`` is ``overall``,
        ``score`` and ``expected_score`` are weighted means; there is no position. A read has no
        score if one of its criteria has none. The texts are ``.rated``; their ``human`` is the
        weighted mean of the ratings.

    Raises
    ------
    ValueError
        A text, or one of its reads, was not judged by all criteria.

    Examples
    --------
    >>> import rubricnb as rb
    >>> items = rb.load("minibench")
    >>> whole = rb.overall(rb.simulate(rb.plan(items, rb.fixed(5)), items, "unbiased"), items)
    >>> len(items), len(whole), int(rb.agreement(whole, whole.rated).n_items.item())
    (180, 60, 60)
    """
    frame = pd.DataFrame(judgments).assign(
        item_id=arrays.matched(judgments, items, "text_id").to_numpy(),
        rubric_id=arrays.matched(judgments, items, "rubric_id").to_numpy(),
        score=arrays.values_of(judgments),
        position=np.nan,
    )
    keys = [c for c in _READ if c in frame and c != "n_options"]
    if "ordering" in frame:  # an ordering of each criterion's own is none of the whole
        reads = frame.groupby(keys, observed=True, dropna=False)
        frame["ordering"] = frame["ordering"].where(reads["ordering"].transform("nunique") == 1)
    out = Judgments(_weighted(frame, keys, ["score", "expected_score"], items))
    lost = out.columns[out.columns.str.match("probability_|label_mass|criterion_position")]
    columns = [*_OF_TEXT, "criterion", "rubric_id", "human"]
    texts = pd.DataFrame(items)[[c for c in columns if c in items]]
    rated = _weighted(texts, ["dataset", "text_id"], ["human"], items)
    out = out.drop(columns=lost)
    out.rated = Items(rated.assign(item_id=rated["text_id"]))
    return out


def _weighted(
    frame: pd.DataFrame, keys: list[str], values: list[str], items: Items
) -> pd.DataFrame:
    """Return one row for each of the keys, with the weighted means of values over criteria."""
    group = frame.groupby(keys, observed=True, sort=False, dropna=False).ngroup().to_numpy()
    lacking = np.bincount(group) != frame["criterion"].nunique()
    if lacking.any():
        row = frame.iloc[int(np.argmax(lacking[group]))]
        raise ValueError(
            f"text {row['item_id' if 'item_id' in keys else 'text_id']!r} does not have all of the "
            f"criteria {', '.join(frame['criterion'].unique())}: keep texts and reads that do"
        )
    weight = np.ones(len(frame))
    if "weight" in items.rubrics:
        known = items.rubrics.drop_duplicates("rubric_id").set_index("rubric_id")["weight"]
        weight = arrays.floats(frame["rubric_id"].astype(object).map(known).fillna(1.0))
    means = {
        c: np.bincount(group, weight * arrays.floats(frame[c])) / np.bincount(group, weight)
        for c in values if c in frame
    }  # fmt: skip
    # A criterion without a score is the row that is kept: its status is that of the whole.
    order = np.argsort(frame[values[0]].notna(), kind="stable") if values[0] in frame else group
    first = order[np.unique(group[order], return_index=True)[1]]
    out = frame.iloc[first].drop(columns="rubric_id")
    return out.assign(criterion="overall", **means).reset_index(drop=True)
