"""Pairs of responses: the pair-wise paradigm as a rubric with two options."""

from __future__ import annotations

from itertools import combinations

import pandas as pd

from rubricnb.data.validate import check_items
from rubricnb.frames import Items

_QUESTION = "Which of the two responses is better under the criterion {criterion}?"
_KEPT = ("dataset", "group_id", "cluster_id", "category", "instruction", "reference", "criterion")
_RATINGS = ("human", "gold")


def pairs(items: Items) -> Items:
    """Pair the candidates of each group, so that a judge can say which response is better.

    A pair is an item whose rubric has two levels, and the description of each is a whole response:
    score 1 is the first-named candidate's, score 2 the other's. So a design over two options is
    the classical swap, `position_bias` measures the classical position bias, and the template
    ``pairwise`` shows the instruction and the two responses in the order asked.

    Parameters
    ----------
    items
        Items whose ``group_id`` says whose candidates compete (not HANNA).

    Returns
    -------
    Items
        One item per group, criterion and pair of candidates, in the order of the items:

        * ``item_id`` ``GROUP/FIRST-vs-SECOND``; ``text_id`` and ``rubric_id`` are the same;
        * ``candidate_1``, ``candidate_2``: the two names; ``candidate`` is ``FIRST-vs-SECOND``;
        * ``response``: the question that is asked (the responses stand in ``.rubrics``);
        * ``human``, ``gold``: 1 if the first response is rated higher, 2 if the second, missing at
          a tie; ``human_1``, ``human_2``, ``gold_1``, ``gold_2``: the two ratings;
        * dataset, group_id, cluster_id, category, instruction, reference, criterion as before.

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
    if not couples:
        raise ValueError(
            "these items hold no two candidates that compete (columns group_id and candidate), so "
            "there are no pairs; try minibench, mt-bench, vicuna or summeval"
        )
    wordings = {
        str(rubric_id): rubric.drop_duplicates("variant").to_dict("records")
        for rubric_id, rubric in items.rubrics.groupby("rubric_id", observed=True)
    }
    rubrics = [
        level
        for first, second in couples
        for wording in wordings[str(first["rubric_id"])]
        for level in _levels(wording, first, second)
    ]
    return check_items(
        pd.DataFrame([_pair(*couple) for couple in couples]),
        pd.DataFrame(rubrics),
        allow_unrated=True,
    )


def _couples(items: Items) -> list[tuple[dict[str, object], dict[str, object]]]:
    if not {"group_id", "candidate"} <= set(items.columns):
        return []
    groups = items.groupby(["group_id", "criterion"], sort=False, observed=True)
    return [couple for _, group in groups for couple in combinations(group.to_dict("records"), 2)]


def _pair(first: dict[str, object], second: dict[str, object]) -> dict[str, object]:
    name = _name(first, second)
    return {
        "item_id": name,
        "text_id": name,
        "rubric_id": name,
        "candidate": name.rsplit("/", 1)[1],
        "candidate_1": first["candidate"],
        "candidate_2": second["candidate"],
        "response": _QUESTION.format(criterion=first["criterion"]),
        **{column: first[column] for column in _KEPT if column in first},
        **{
            column: value
            for rating in _RATINGS
            if rating in first
            for column, value in _ratings(rating, first[rating], second[rating]).items()
        },
    }


def _ratings(name: str, first: object, second: object) -> dict[str, object]:
    better = float("nan")
    if first < second:  # type: ignore[operator]
        better = 2.0
    elif first > second:  # type: ignore[operator]
        better = 1.0
    return {name: better, f"{name}_1": first, f"{name}_2": second}


def _levels(
    wording: dict[str, object], first: dict[str, object], second: dict[str, object]
) -> list[dict[str, object]]:
    rubric = wording | {"rubric_id": _name(first, second)}
    return [
        rubric | {"score": score, "description": side["response"]}
        for score, side in enumerate((first, second), 1)
    ]


def _name(first: dict[str, object], second: dict[str, object]) -> str:
    return f"{first['group_id']}/{first['candidate']}-vs-{second['candidate']}"
