"""The overall score of a text: the weighted mean of its criteria."""

from __future__ import annotations

import numpy as np
import pandas as pd

from rubricnb.core.estimates import reads as arrays
from rubricnb.core.frames import CONDITIONS, Items, Judgments
from rubricnb.core.support.counting import binned

_READ = (
    "judge",
    "dataset",
    "item_id",
    "design",
    "ordering_index",
    "replicate",
    *CONDITIONS,
)
_OF_TEXT = (
    "dataset",
    "item_id",
    "group_id",
    "cluster_id",
    "candidate",
    "criterion",
    "human",
)


def overall(judgments: pd.DataFrame, items: Items) -> Judgments:
    """Combine each text's criteria into one score, weighted as the rubrics say.

    Parameters
    ----------
    judgments
        Judgments of several criteria per text.
    items
        The items that were judged; the weights are the column ``weight`` of their
        rubrics, or 1.

    Returns
    -------
    Judgments
        One row per text and read: ``item_id`` is the text's, ``criterion`` is
        ``overall``, ``score`` and ``expected_score`` are weighted means; there is no
        position. A read has no score if one of its criteria has none. The texts are
        ``.rated``; their ``human`` is the weighted mean of the ratings.

    Raises
    ------
    ValueError
        A text, or one of its reads, was not judged by all criteria.

    Examples
    --------
    >>> import rubricnb as rb
    >>> items = rb.load("minibench")
    >>> judgments = rb.simulate(rb.plan(items, rb.fixed(5)), items, "unbiased")
    >>> whole = rb.statistics.overall(judgments, items)
    >>> len(items), len(whole), int(rb.agreement(whole, whole.rated).n_items.item())
    (180, 60, 60)
    """
    weight = pd.Series(1.0, items.index)
    if "weight" in items.rubrics:
        known = items.rubrics.drop_duplicates("rubric_id").set_index("rubric_id")[
            "weight"
        ]
        weight = items["rubric_id"].astype(object).map(known).fillna(1.0)
    weighted = Items(items.assign(weight=weight))
    frame = pd.DataFrame(judgments).assign(
        **{
            c: arrays.matched(judgments, weighted, c).to_numpy()
            for c in ("text_id", "weight")
        },
        score=arrays.values_of(judgments),
        position=np.nan,
    )
    frame["item_id"] = frame["text_id"]
    keys = [c for c in _READ if c in frame and c != "n_options"]
    if "ordering" in frame:  # orderings of single criteria do not apply to the whole
        reads = frame.groupby(keys, observed=True, dropna=False)
        frame["ordering"] = frame["ordering"].where(
            reads["ordering"].transform("nunique") == 1
        )
    lost = frame.columns[
        frame.columns.str.match("probability_|label_mass|criterion_position")
    ]
    out = Judgments(_means(frame.drop(columns=lost), keys, ["score", "expected_score"]))
    texts = pd.DataFrame(weighted).assign(item_id=items["text_id"])
    texts = texts[[*(c for c in _OF_TEXT if c in texts), "text_id", "weight"]]
    out.rated = Items(_means(texts, ["dataset", "item_id"], ["human"]))
    return out


def _means(frame: pd.DataFrame, keys: list[str], values: list[str]) -> pd.DataFrame:
    """Return a row for each key, with the weighted means of values over criteria."""
    group = (
        frame.groupby(keys, observed=True, sort=False, dropna=False).ngroup().to_numpy()
    )
    lacking = binned(group) != frame["criterion"].nunique()
    if lacking.any():
        raise ValueError(
            f"text {frame['item_id'].iloc[int(np.argmax(lacking[group]))]!r} does not "
            f"have all of the criteria {', '.join(frame['criterion'].unique())}: drop "
            "this text, or complete it"
        )
    weight = arrays.floats(frame["weight"])
    total = binned(group, weight)
    found = [c for c in values if c in frame]
    means = {c: binned(group, weight * arrays.floats(frame[c])) / total for c in found}
    # A criterion without a score is the row that is kept:
    # its status is that of the whole.
    order = np.argsort(
        frame[[*found, "criterion"][0]].notna().to_numpy(), kind="stable"
    )
    first = order[np.unique(group[order], return_index=True)[1]]
    out = frame.iloc[first].drop(columns=["text_id", "weight"])
    return out.assign(criterion="overall", **means).reset_index(drop=True)
