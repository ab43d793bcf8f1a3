"""What conditions and ratings are called, and judgments that cannot be described."""

from __future__ import annotations

import re
from collections import Counter

import pandas as pd


class CannotShow(ValueError):
    """What a page cannot show, and why: a notebook prints this line alone, and ends."""

    def _render_traceback_(self) -> list[str]:
        return [f"This page ends here: {self}"]


def check_answered(*judgments: pd.DataFrame) -> None:
    """Refuse judgments without a single score: no page could describe their judge.

    Raises
    ------
    CannotShow
        Says whose they are, and what became of them.
    """
    if any(frame["score"].notna().any() for frame in judgments):
        return
    every = pd.concat(judgments)
    statuses = Counter(every.get("status", ()))
    outcomes = (
        ", ".join(f"{count:,} {name}" for name, count in statuses.most_common())
        or "no status"
    )
    judge_names = join_distinct(every["judge"])
    judge = "the judge" if judge_names == "unknown" else judge_names
    noted = every.get("server_note", pd.Series(dtype=object)).dropna()
    said = f"; its server notes {noted.iloc[0]!r}" if len(noted) else ""
    raise CannotShow(
        f"{judge} gave no score in any of {len(every):,} judgments "
        f"({outcomes}{said}): "
        "see the line that the run printed; this page cannot say anything about the "
        "judge"
    )


def check_rated(items: pd.DataFrame) -> None:
    """Refuse items without a rating, where scores are compared with ratings.

    Raises
    ------
    CannotShow
        Says which columns give ratings.
    """
    if "human" not in items or items["human"].isna().all():
        raise CannotShow(
            "what follows compares scores with ratings, and these items have none (a "
            "file gives them as columns human_CRITERION)"
        )


def truth_of(items: pd.DataFrame) -> str:
    """Name what items are compared with, for the head of a row or a legend.

    Parameters
    ----------
    items
        From `rubricnb.load`.

    Returns
    -------
    str
        ``designed`` (minibench: nobody rated), ``people``, ``gold`` (scores of a
        stronger judge) or ``nothing``.

    Examples
    --------
    >>> import rubricnb as rb
    >>> truth_of(rb.load("minibench"))
    'designed'
    """
    if items["dataset"].astype(str).str.startswith("minibench").all():
        return "designed"
    return next(
        (name for column, name in _TRUTH_NAMES.items() if column in items), "nothing"
    )


def as_markdown(name: object) -> str:
    """Write a name so that nothing in it acts as markup."""
    return re.sub(r"([\\`<\[{$&*])", r"\\\1", " ".join(str(name).split()))


_TRUTH_NAMES = {"human": "people", "gold": "gold"}


_CONDITION_COLUMNS = ("design", "labels", "reference_score", "exemplar", "layout")


_CONDITION_NAMES = {
    "shuffled": "random order",
    "letter": "letters",
    "roman": "Roman numerals",
}


def condition_names(frame: pd.DataFrame) -> pd.Series:
    """Name each row's condition by its changes to the baseline of arXiv:2506.22316.

    Parameters
    ----------
    frame
        Requests, judgments or statistics; the columns design, labels, reference_score,
        exemplar and layout are read where present.

    Returns
    -------
    Series of category
        ``baseline`` for ascending, numeric, without reference and example.

    Examples
    --------
    >>> condition_names(pd.DataFrame({
    ...     "design": ["fixed", "descending"], "labels": ["numeric", "letter"],
    ...     "reference_score": "5"})).tolist()
    ['reference 5', 'descending, letters, reference 5']
    """
    columns = [name for name in _CONDITION_COLUMNS if name in frame]
    kind = frame.groupby(columns, sort=False, dropna=False, observed=True).ngroup()
    names = [
        ", ".join(filter(None, map(_condition_part, columns, values))) or "baseline"
        for values in frame.loc[~kind.duplicated(), columns]
        .astype(str)
        .itertuples(index=False)
    ]
    return pd.Series(pd.Categorical(names).take(kind), frame.index)


def _condition_part(column: str, value: str) -> str:
    if value in ("fixed", "numeric", "none", "auto", "rubric-last"):
        return ""
    prefixes = {"reference_score": "reference ", "exemplar": "example "}
    name = _CONDITION_NAMES.get(value) or prefixes.get(column, "") + value
    return name.replace("-", " ") if column == "layout" else name


def join_distinct(column: pd.Series) -> str:
    """Join the different values of a column with "and"."""
    return " and ".join(map(as_markdown, column.unique()))
