"""The four frames that functions hand to one another, and their contracts.

    items ──design──▶ requests ──judge──▶ replies ──read out──▶ judgments
    ──statistics──▶ results

Columns and dtypes are in ``frames.csv`` only; the API page is generated from it.
Positions, scores and ranks count from 1. ``category`` columns hold text, ``Int8`` is
pandas' integer with a missing value.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from rubricnb.core.permutation import code
from rubricnb.core.support.counting import binned
from rubricnb.core.support.types import FloatArray, IntArray


@dataclass(frozen=True)
class Column:
    """One column of a frame. A name such as ``reference_{k}`` means k = 1, 2, …"""

    name: str
    dtype: str
    meaning: str
    required: bool = True

    def matches(self, column: str) -> bool:
        """Whether `column` is this column, or one of its numbered family."""
        return bool(re.fullmatch(self.name.replace("{k}", r"\d+"), column))


def _contracts() -> dict[str, tuple[Column, ...]]:
    """The frames' columns, in order; judgments hold their request's columns too."""
    found: dict[str, tuple[Column, ...]] = {}
    text = (files("rubricnb.core") / "frames.csv").read_text(encoding="utf-8")
    for row in csv.DictReader(text.splitlines()):
        column = Column(
            row["name"], row["dtype"], row["meaning"], row["required"] == "yes"
        )
        found[row["frame"]] = (*found.get(row["frame"], ()), column)
    found["requests"] += found["conditions"]
    found["judgments"] = found["requests"] + found["judgments"]
    return found


FRAMES = _contracts()
CONDITION_COLUMNS = FRAMES.pop("conditions")
REQUESTS, JUDGMENTS = FRAMES["requests"], FRAMES["judgments"]
STATUSES = ("ok", "unparsed", "out_of_range", "truncated", "refused", "error")
CONDITIONS = tuple(
    c.name for c in CONDITION_COLUMNS if c.name not in ("seed", "max_tokens")
)
"""Columns that statistics group by, with judge, dataset and design,
wherever they are present.
"""


def places(item: IntArray, kind: IntArray) -> IntArray:
    """Number the reads of every item from 0, whatever order their rows are in.

    `kind` is the code of what tells an item's reads apart, such as their ordering.
    Reads of one kind get one number in all items, unless items have kinds of their own.
    """
    kinds, code = np.unique(kind, return_inverse=True)
    most = binned(item).max(initial=0)
    if len(kinds) <= most and binned(item * len(kinds) + code).max(initial=0) <= 1:
        return np.asarray(code, dtype=np.int64)
    rows = np.lexsort((code, item))
    _, first, which = np.unique(item[rows], return_index=True, return_inverse=True)
    rank = np.empty(len(item), dtype=np.int64)
    rank[rows] = np.arange(len(item)) - first[which]
    return rank


def conform(frame: pd.DataFrame, name: str) -> pd.DataFrame:
    """Check a frame against its contract, and cast its columns.

    Parameters
    ----------
    frame
        The frame to check; more columns than the contract's are welcome.
    name
        ``items``, ``rubrics``, ``requests`` or ``judgments``.

    Returns
    -------
    DataFrame
        A copy with the contract's dtypes.

    Raises
    ------
    ValueError
        A required column is missing, or a value cannot be cast: names column and first
        row.

    Examples
    --------
    >>> conform(pd.DataFrame({"rubric_id": ["r"]}), "rubrics")
    Traceback (most recent call last):
    ...
    ValueError: rubrics lack the column 'variant' (standard or paraphrased); they \
have: rubric_id
    """
    contract = FRAMES[name]
    columns = list(frame.columns)
    for column in contract:
        if column.required and column.name not in columns:
            raise ValueError(
                f"{name} lack the column {column.name!r} ({column.meaning}); "
                f"they have: {', '.join(map(str, columns))}"
            )
    casts = {
        c: column.dtype
        for column in contract
        for c in columns
        if column.matches(c) and str(frame[c].dtype) != column.dtype
    }
    out = frame.copy()
    for c, dtype in casts.items():
        values, dtype = frame[c], score_dtype(frame[c]) if c == "score" else dtype
        try:
            out[c] = values.astype(dtype)
        except (ValueError, TypeError):
            bad = pd.to_numeric(values, errors="coerce").isna() & (
                values.notna() | ("int" in dtype)
            )
            refuse(name, values, bad, f"is not {dtype}")
            raise
    return out


def score_dtype(scores: pd.Series, dtype: str = "int8") -> str:
    """Return `dtype`, or float64 where scores are not whole or too large for it."""
    numbers = pd.to_numeric(scores, errors="coerce").to_numpy(
        np.float64, na_value=np.nan
    )
    fits = np.isnan(numbers) | (
        (np.trunc(numbers) == numbers) & (np.abs(numbers) < 128)
    )
    return dtype if fits.all() else "float64"


def refuse(frame: str, values: pd.Series, bad: ArrayLike, why: str) -> None:
    """Raise a ValueError that names the first rows with bad values, if any.

    Examples
    --------
    >>> ratings = pd.Series([3, 9], name="human")
    >>> refuse("items", ratings, [False, True], "is off the scale")
    Traceback (most recent call last):
    ...
    ValueError: items: row 1, column 'human': 9 is off the scale
    """
    rows = np.flatnonzero(np.asarray(bad, dtype=bool))
    if len(rows) == 0:
        return
    names = ", ".join(str(values.index[row]) for row in rows[:3])
    more = f" and {len(rows) - 3:,} more" if len(rows) > 3 else ""
    value = values.iloc[rows[0]]
    value = value.item() if isinstance(value, np.generic) else value
    raise ValueError(
        f"{frame}: row{'s' if len(rows) > 1 else ''} {names}{more}, column "
        f"{values.name!r}: {value!r} {why}"
    )


class _Attached(pd.DataFrame):
    """A frame that keeps one other frame through filtering and ``pd.concat``."""

    _attribute: str
    _keys: tuple[str, ...]  # rows of the attached frame, which several frames may share

    @property
    def _constructor(self) -> Any:
        return type(self)

    def __finalize__(self, other: Any, method: str | None = None, **kwargs: Any) -> Any:
        if method != "concat":
            out = super().__finalize__(other, method=method, **kwargs)
            if getattr(other, self._attribute, None) is None:
                # pandas sets None where there is none
                out.__dict__.pop(self._attribute, None)
            return out
        objs = getattr(other, "input_objs", None) or getattr(other, "objs", [])
        attached = [getattr(o, self._attribute, None) for o in objs]
        distinct = list({id(a): a for a in attached if a is not None}.values())
        if distinct:
            joined = distinct[0]
            if len(distinct) > 1:
                joined = pd.concat(distinct, ignore_index=True)
                joined = joined.drop_duplicates(list(self._keys), ignore_index=True)
            object.__setattr__(self, self._attribute, joined)
        return self


class Items(_Attached):
    """Items, with the rubrics they are judged by as ``.rubrics``."""

    _metadata = ["rubrics"]  # noqa: RUF012
    _attribute, _keys = "rubrics", ("rubric_id", "variant", "score")
    rubrics: pd.DataFrame


class Judgments(_Attached):
    """Judgments made elsewhere, with the items they are about as ``.rated``."""

    _metadata = ["rated"]  # noqa: RUF012
    _attribute, _keys = "rated", ("dataset", "item_id", "criterion")
    rated: Items


class Requests(_Attached):
    """Requests, with the items they ask about as ``.source``."""

    _metadata = ["source"]  # noqa: RUF012
    _attribute, _keys = "source", ("item_id",)
    source: Items


def require(frame: Any, names: Iterable[str], what: str) -> None:
    """Refuse what is no table, or lacks a column: a judge or a path in its place.

    Examples
    --------
    >>> require("my_data.csv", ["item_id"], "items (from rb.load)")
    Traceback (most recent call last):
    TypeError: items (from rb.load) are a table, not this str 'my_data.csv'
    >>> require(pd.DataFrame({"id": [1]}), ["item_id"], "items")
    Traceback (most recent call last):
    ValueError: items lack the column 'item_id'; they have: id
    """
    if not isinstance(frame, pd.DataFrame):
        raise TypeError(
            f"{what} are a table, not this {type(frame).__name__}"
            f"{f' {frame!r}' if isinstance(frame, str | Path) else ''}"
        )
    for name in names:
        if name not in frame:
            raise ValueError(
                f"{what} lack the column {name!r}; they have: "
                f"{', '.join(map(str, frame.columns))}"
            )


class Scales(NamedTuple):
    """The scales of items; the same scores with other labels are another scale."""

    which: IntArray
    """Per item, the number of its scale, from 0."""
    scores: list[FloatArray]
    """Per scale, its scores, ascending."""


def scales_of(items: pd.DataFrame) -> Scales:
    """Find the scales of the rubrics that items have; 1 to 5 where they have none.

    Examples
    --------
    >>> items = Items({"rubric_id": ["b", "a", "b"]})
    >>> items.rubrics = pd.DataFrame({"rubric_id": [*"aabb"], "score": [0, 1, 1, 3]})
    >>> scales_of(items)
    Scales(which=array([0, 1, 0]), scores=[array([1., 3.]), array([0., 1.])])
    """
    rubrics = getattr(items, "rubrics", None)
    if rubrics is None:
        return Scales(np.zeros(len(items), np.int64), [np.arange(1.0, 6.0)])
    levels_of: dict[str, set[tuple[float, str]]] = {}
    columns = rubrics["rubric_id"], rubrics["score"], level_labels(rubrics)
    for rubric, score, label in zip(*columns, strict=True):
        levels_of.setdefault(rubric, set()).add((score, label))
    scale_of = {rubric: frozenset(levels) for rubric, levels in levels_of.items()}
    which, scales = pd.factorize(items["rubric_id"].astype(object).map(scale_of))
    scores = [np.unique([float(score) for score, _ in scale]) for scale in scales]
    return Scales(which, scores)


def level_labels(rubrics: pd.DataFrame) -> pd.Series:
    """Return what each level is called: its label, or its score."""
    numbers = pd.Series(code(rubrics[["score"]]), rubrics.index, dtype="str")
    return rubrics["label"].fillna(numbers) if "label" in rubrics else numbers


def scale_with(scale: FloatArray, n: int) -> FloatArray:
    """Return the scores of a scale that is shown with n options."""
    return scale if len(scale) == n else scale[0] + np.arange(n)
