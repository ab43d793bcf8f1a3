"""Rubrics as frames: their wordings, their labels, and scales of another length."""

from __future__ import annotations

import numpy as np
import pandas as pd

from rubricnb.core.frames import level_labels
from rubricnb.core.validate import check_rubrics

IDENTICAL = "identical"
"""A wording for control: one text for all levels."""


def in_wording(rubrics: pd.DataFrame, variant: str) -> pd.DataFrame:
    """Return rubrics in one wording; ``identical`` repeats the middle level's text.

    Examples
    --------
    >>> levels = pd.DataFrame({
    ...     "rubric_id": "r", "variant": "standard", "score": [1, 2, 3],
    ...     "description": ["Wrong.", "Partly right.", "Right."]})
    >>> in_wording(levels, "identical")["description"].tolist()
    ['Partly right.', 'Partly right.', 'Partly right.']
    """
    if variant != IDENTICAL:
        return rubrics[rubrics["variant"] == variant]
    levels = rubrics[rubrics["variant"] == "standard"].sort_values(
        ["rubric_id", "score"]
    )
    of_rubric = levels.groupby("rubric_id", sort=False, observed=True)["description"]
    return levels.assign(
        description=of_rubric.transform(lambda texts: texts.iloc[len(texts) // 2])
    )


def label_scores(rubrics: pd.DataFrame) -> dict[str, dict[str, float]]:
    """Return rubric_id → label (in lower case) → score, for ratings given as labels.

    Examples
    --------
    >>> from rubricnb.sets.sets import bundled_rubrics
    >>> label_scores(bundled_rubrics("minibench"))["minibench-clarity"]
    {'1': 1.0, '2': 2.0, '3': 3.0, '4': 4.0, '5': 5.0}
    """
    named = rubrics.assign(label=level_labels(rubrics).str.casefold())
    return {
        str(rubric_id): dict(zip(own["label"], own["score"].astype(float), strict=True))
        for rubric_id, own in named.groupby("rubric_id", observed=True)
    }


def resample(rubrics: pd.DataFrame, n: int) -> pd.DataFrame:
    """Show rubrics on a scale of n levels (arXiv:2602.02219v2, §5.4).

    Parameters
    ----------
    rubrics
        A rubrics frame.
    n
        Number of levels. A rubric that has n levels is returned as it is. A five-level
        rubric becomes 2 (its levels 1 and 5), 3 (1, 3 and 5) or up to 10 levels. The
        paper does not say how it makes 9 of 5; here the five are spread over the scale
        as evenly as whole scores allow, and a level between them says that it lies
        between its neighbours.

    Returns
    -------
    DataFrame
        A rubrics frame with the same rubric_ids, variants, definitions and lowest
        scores.

    Raises
    ------
    ValueError
        A rubric has no scale of n levels, or gaps or labels of its own and not n
        levels.

    Examples
    --------
    >>> from rubricnb.sets.sets import bundled_rubrics
    >>> rubrics = bundled_rubrics("minibench").query("variant == 'standard'")
    >>> five = rubrics[rubrics.criterion == "clarity"]
    >>> for description in resample(five, 3).description[1:]:
    ...     print(description)
    Partly clear; some of the answer confuses.
    Clear and definite from start to finish.
    >>> resample(five, 9).description.iloc[1]
    'Between score 1 and score 3: better than score 1, not as good as score 3.'
    """
    check_length(rubrics, n)
    shown = []
    for _, own in rubrics.groupby(["rubric_id", "variant"], sort=False, observed=True):
        levels = own.sort_values("score")
        if len(own) != n:
            levels = _on_other_length(levels, n)
        shown.append(levels)
    return check_rubrics(pd.concat(shown, ignore_index=True))


def _on_other_length(levels: pd.DataFrame, n: int) -> pd.DataFrame:
    """Show the levels of one rubric, ascending, on n levels."""
    scores = levels["score"].iloc[0] + np.arange(n)
    if n < len(levels):
        kept = np.rint(np.linspace(0, len(levels) - 1, n)).astype(int)
        return levels.iloc[kept].assign(score=scores)
    described = np.rint(np.linspace(0, n - 1, len(levels)))
    below = np.searchsorted(described, np.arange(n), side="right") - 1
    between = ~np.isin(np.arange(n), described)
    texts = [
        f"Between score {k - 1} and score {k + 1}: better than score {k - 1}, "
        f"not as good as score {k + 1}."
        for k in scores
    ]
    shown = levels.iloc[below].assign(score=scores)
    return shown.assign(description=np.where(between, texts, shown["description"]))


def check_length(rubrics: pd.DataFrame, n: int, described: bool = True) -> None:
    """Check that rubrics can be shown with n options; `described`: each with a text."""
    worded = rubrics["label"].notna() if "label" in rubrics else False
    facts = rubrics.assign(own=worded | (rubrics["score"] % 1 != 0))
    facts = facts.groupby("rubric_id", observed=True)
    size, reach = facts["score"].nunique(), facts["score"].max() - facts["score"].min()
    rigid = facts["own"].any() | (reach != size - 1)  # has its own labels, or gaps
    bad = (size != n) & (rigid | (described & ((size != 5) | (n not in _LENGTHS))))
    if bad.any():
        rubric_id = bad.idxmax()
        own = size[rubric_id]
        scales = "2 to 10" if own == 5 and not rigid[rubric_id] else f"{own}"
        raise ValueError(
            f"rubric {rubric_id!r} has {own} levels and cannot be shown on {n}; "
            f"choose n_options {scales}"
        )


_LENGTHS = range(2, 11)  # lengths of the scales on which five levels can be shown
