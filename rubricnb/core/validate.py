"""Check items and rubrics; every message names row and column, and the way out."""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np
import pandas as pd

from rubricnb.core.frames import Items, conform, refuse
from rubricnb.core.support.spelling import nearest


def check_items(
    items: pd.DataFrame, rubrics: pd.DataFrame, allow_unrated: bool = False
) -> Items:
    """Check items against their contract and their rubrics.

    Parameters
    ----------
    items
        Columns as in ``rubricnb.core.frames.FRAMES["items"]``.
    rubrics
        The rubrics that ``rubric_id`` refers to.
    allow_unrated
        Whether single items may lack a ``human`` rating that others have.

    Returns
    -------
    Items
        A copy with the contract's dtypes, and the rubrics it uses as ``.rubrics``.

    Raises
    ------
    ValueError
        A column is missing; an item_id appears twice; a text is empty; a rating is
        missing or outside the levels of its rubric; a rubric_id has no rubric.

    Examples
    --------
    >>> from rubricnb.data import load
    >>> items = load("minibench", n_items=3)
    >>> check_items(items.assign(human=[1.0, 6.0, 2.0]), items.rubrics)
    Traceback (most recent call last):
    ...
    ValueError: items: row 1, column 'human': 6.0 is outside 1..5, the levels of \
rubric 'minibench-helpfulness'
    """
    out = conform(items, "items")
    rubrics = check_rubrics(rubrics)
    twice = out["item_id"].duplicated(keep=False)
    refuse("items", out["item_id"], twice, "appears twice; give every item its own id")
    for column in ("item_id", "text_id", "cluster_id", "instruction", "response"):
        check_text(out[column], "items")
    check_known(out["rubric_id"], rubrics["rubric_id"], "items")
    levels = rubrics.groupby("rubric_id", observed=True)["score"].agg(["min", "max"])
    ends = levels.loc[out["rubric_id"].astype("str")].to_numpy(float)
    for column in out.columns.intersection(["human", "gold"], sort=False):
        # A criterion of a dataset that nobody rated has no ratings;
        # one that was rated has a gap.
        if not (allow_unrated or column == "gold"):
            of_criterion = out.groupby(["dataset", "criterion"], observed=True)[column]
            missing = out[column].isna() & (of_criterion.transform("count") > 0)
            why = "is missing (NaN); rate the item or leave it out"
            refuse("items", out[column], missing, why)
        for name in (name for name in (column, f"{column}_ratings") if name in out):
            single = (
                out[name].set_axis(range(len(out))).dropna().explode().astype("float64")
            ).dropna()  # a person who gave no rating
            low, high = ends[single.index].T
            outside = single.index[~single.between(low, high)]
            if len(outside):
                low, high = ends[outside[0]]
                rubric_id = out["rubric_id"].iloc[outside[0]]
                why = (
                    f"is outside {low:g}..{high:g}, the levels of rubric {rubric_id!r}"
                )
                refuse("items", out[name], np.isin(range(len(out)), outside), why)
    used = rubrics[rubrics["rubric_id"].isin(out["rubric_id"].astype(str))]
    result = Items(out)
    result.rubrics = used.reset_index(drop=True)
    return result


def check_rubrics(rubrics: pd.DataFrame) -> pd.DataFrame:
    """Check rubrics: unique, described, and with the same levels in every wording.

    Parameters
    ----------
    rubrics
        Columns as in ``rubricnb.core.frames.FRAMES["rubrics"]``.

    Returns
    -------
    DataFrame
        A copy with the contract's dtypes.

    Raises
    ------
    ValueError
        A column is missing, a level appears twice, a rubric has one level, a
        description is empty, or the variants of a rubric have different levels.

    Examples
    --------
    >>> levels = pd.DataFrame({"score": [1, 2, 2, 5], "description": list("abde")})
    >>> check_rubrics(levels.assign(
    ...     rubric_id="coherence", variant="standard", criterion="coherence",
    ...     definition="Does it hang together?"))
    Traceback (most recent call last):
    ...
    ValueError: rubric 'coherence' has the levels 1, 2, 2, 5: give at least two \
levels, each once and with a finite score
    """
    out = conform(rubrics, "rubrics")
    for column in ("criterion", "definition", "description"):
        check_text(out[column].astype("str"), "rubrics")
    scales: dict[str, list[float]] = {}
    groups = out.groupby(["rubric_id", "variant"], observed=True)["score"]
    for (rubric_id, _), own in groups:
        scores = sorted(own)
        if (
            len(scores) < 2
            or len(set(scores)) < len(scores)
            or not all(map(math.isfinite, scores))
        ):
            raise ValueError(
                f"rubric {rubric_id!r} has the levels "
                f"{', '.join(f'{s:g}' for s in scores)}: give at least two levels, "
                "each once and with a finite score"
            )
        if scales.setdefault(rubric_id, scores) != scores:
            raise ValueError(
                f"rubric {rubric_id!r} has other levels in one of its variants"
            )
    return out


def check_text(values: pd.Series, frame: str) -> None:
    """Check that a column of texts has no gap.

    Raises
    ------
    ValueError
        A value is missing or blank.

    Examples
    --------
    >>> check_text(pd.Series(["a", " "], index=[1, 2], name="response"), "items")
    Traceback (most recent call last):
    ...
    ValueError: items: row 2, column 'response': ' ' is empty
    """
    refuse(frame, values, values.isna() | (values.str.strip() == ""), "is empty")


def ids(
    dataset: str, cluster: str, text: str = "", criterion: str = ""
) -> dict[str, object]:
    """Return an item's ids; `text` names one of a prompt's competing responses.

    Examples
    --------
    >>> ids("mine", "mine/prompt", "system", "tone")["group_id"]
    'mine/prompt/tone'
    """
    text_id = f"{cluster}/{text}" if text else cluster
    ending = f"/{criterion}" if criterion else ""
    return {
        "item_id": text_id + ending,
        "dataset": dataset,
        "text_id": text_id,
        "group_id": cluster + ending if text else None,
        "cluster_id": cluster,
    }


def check_known(values: pd.Series, known: Iterable[str], what: str) -> None:
    """Raise a ValueError that names the first rows with an unknown rubric."""
    known = list(dict.fromkeys(map(str, known)))
    unknown = ~values.astype("str").isin(known)
    if unknown.any():
        near = nearest(values[unknown].iloc[0], known)
        why = f"has no rubric{near} There are: {', '.join(known[:10])}"
        refuse(what, values, unknown, why)
