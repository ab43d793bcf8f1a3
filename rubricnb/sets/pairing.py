"""Pairs of responses: the pair-wise paradigm as a rubric with two options."""

from __future__ import annotations

import numpy as np
import pandas as pd

from rubricnb.core.frames import Items
from rubricnb.core.validate import check_items

_QUESTION = "Which of the two responses is better under the criterion {criterion}?"
_KEPT = (
    "dataset",
    "group_id",
    "cluster_id",
    "category",
    "instruction",
    "reference",
    "criterion",
)


def pairs(items: Items) -> Items:
    """Pair each group's candidates, so that a judge can say which is better.

    A pair is an item whose rubric has two levels, and the description of each is a
    whole response: score 1 is the first-named candidate's, score 2 the other's. So a
    design over two options is the classical swap, `position_bias` measures the
    classical position bias, and the template ``pairwise`` shows the instruction and the
    two responses in the order asked.

    Parameters
    ----------
    items
        Items whose ``group_id`` says whose candidates compete (not HANNA).

    Returns
    -------
    Items
        One item per group, criterion and pair of candidates, in the order of the items:

        * ``item_id`` ``GROUP/FIRST-vs-SECOND``; ``text_id`` and ``rubric_id`` are the
          same;
        * ``candidate_1``, ``candidate_2``: the two names; ``candidate`` is
          ``FIRST-vs-SECOND``;
        * ``response``: the question that is asked (the responses are in ``.rubrics``);
        * ``human``, ``gold``: 1 if the first response is rated higher, 2 if the second,
          missing at a tie;
        * dataset, group_id, cluster_id, category, instruction, reference, criterion as
          before.

    Raises
    ------
    ValueError
        No group has two candidates.

    Notes
    -----
    arXiv:2602.02219v2, Figure 1 (pair-wise) and §3.1 (the swap).

    Examples
    --------
    >>> from rubricnb.data import load
    >>> both = pairs(load("minibench", n_items=15))
    >>> len(both), both.candidate.iloc[0]
    (30, 'A-vs-B')
    >>> both.rubrics.groupby("rubric_id", observed=True).size().unique()
    array([4])
    """
    couples = _couples(items)
    if couples.empty:
        raise ValueError(
            "these items have no competing candidates (columns group_id and "
            "candidate), so there are no pairs; try minibench, mt-bench, vicuna or "
            "summeval"
        )
    first, second = (couples[c].astype("str") for c in ("candidate", "candidate_2"))
    versus = first + "-vs-" + second
    name = couples["group_id"].astype("str") + "/" + versus
    paired = {
        **dict.fromkeys(("item_id", "text_id", "rubric_id"), name),
        "candidate": versus,
        "candidate_1": first,
        "candidate_2": second,
        "response": [_QUESTION.format(criterion=c) for c in couples["criterion"]],
        **couples.filter(_KEPT),
    }
    for rating in couples.columns.intersection(["human", "gold"]):
        one, two = couples[rating], couples[f"{rating}_2"]
        paired[rating] = np.select([one > two, one < two], [1.0, 2.0], np.nan)
    rubrics = _rubrics(couples.assign(name=name), items.rubrics)
    return check_items(pd.DataFrame(paired), rubrics, allow_unrated=True)


def _couples(items: Items) -> pd.DataFrame:
    """Two candidates of a group a row, the columns of the second with ``_2``."""
    if not {"group_id", "candidate"} <= set(items.columns):
        return pd.DataFrame()
    keys = ["group_id", "criterion"]
    rows = pd.DataFrame(items).assign(row=range(len(items))).dropna(subset="group_id")
    rows["group"] = rows.groupby(keys, observed=True)["row"].transform("min")
    both = rows.merge(rows.drop(columns="group"), on=keys, suffixes=("", "_2"))
    both = both[both["row"] < both["row_2"]]
    return both.sort_values(["group", "row", "row_2"], ignore_index=True)


def _rubrics(couples: pd.DataFrame, rubrics: pd.DataFrame) -> pd.DataFrame:
    """In every wording, level 1 is the first response and level 2 the other."""
    wordings = rubrics.drop_duplicates(["rubric_id", "variant"]).astype(
        {"rubric_id": "str"}
    )
    shown = couples[["name", "rubric_id", "response", "response_2"]].astype(
        {"rubric_id": "str"}
    )
    worded = shown.merge(wordings, on="rubric_id")
    levels = [
        worded.assign(
            rubric_id=worded["name"], score=score, description=worded[response]
        )
        for score, response in enumerate(("response", "response_2"), 1)
    ]
    return (
        pd.concat(levels)
        .sort_index(kind="stable")[rubrics.columns]
        .reset_index(drop=True)
    )
