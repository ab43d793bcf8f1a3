"""Ratings by people: (item, person, value), in whatever form they were written.

Columns, lists, mappings and rows for each person become one mapping a text, of persons
to cells, before anything is joined. So a person keeps one place in every text, and a
gap stays one.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from rubricnb.core.frames import refuse
from rubricnb.core.support.counting import repeated
from rubricnb.core.support.types import FloatArray, IntArray, Row
from rubricnb.files.cells import (
    EMPTY,
    FAILED,
    MISSING,
    OFF,
    Scales,
    are_lists,
    as_text,
    differs,
    each_once,
    literal,
    names_people,
    understand,
    value_in,
)
from rubricnb.files.reading import ROLES

_RATERS = r"(?:rater|annotator|expert|coder|person|user|r|a)?[ _-]?\d+"
_PERSON_KEYS = ("user", "annotator", "rater", "name", "annotator_id", "user_id")
_BRACKETS = " ()[]"
_MOST_CELLS = 50_000_000
"""Most ratings, gaps among them, of all texts by all persons."""


def join_columns(
    table: pd.DataFrame, columns: Mapping[str, Sequence[str]], what: str
) -> pd.DataFrame:
    """Join columns that hold one person's ratings each, into mappings by person.

    Examples
    --------
    >>> table = pd.DataFrame({"r1": [3], "r2": [None]})
    >>> join_columns(table, {"human": ["r1", "r2"]}, "a table").human.tolist()
    a table: r1, r2 are read as the ratings of one person each
    [{'r1': 3, 'r2': None}]
    """
    for name, people in columns.items():
        print(f"{what}: {', '.join(people)} are read as the ratings of one person each")
        cells = table[[*people]].astype(object)
        # one who rates several criteria is one person
        cells.columns = cells.columns.str.removeprefix(name)
        ratings = cells.where(cells.notna(), None).to_dict("records")
        table = table.drop(columns=[*people]).assign(**{name: ratings})
    return table


def columns_of_people(
    table: pd.DataFrame, criteria: Sequence[str]
) -> dict[str, list[str]]:
    """Find columns such as ``human_1`` or ``human_tone_2``: the ratings of one person.

    Returns
    -------
    dict
        The column that their ratings together have (``human_ratings``, or
        ``human_CRITERION``) → those.

    Examples
    --------
    >>> table = pd.DataFrame(columns=["human_1", "human_2", "human"])
    >>> columns_of_people(table, ["tone"])
    {'human_ratings': ['human_1', 'human_2']}
    """
    criterion = [f"human_{c}" for c in criteria]
    starts = {name: name for name in criterion}
    if len(criteria) <= 1 or "criterion" in table or "rubric_id" in table:
        starts = dict.fromkeys(["human", *criterion], "human_ratings")
    found = {}
    for start, name in starts.items():
        is_person = table.columns.astype("str").str.fullmatch(
            rf"(?i){re.escape(start)}[ _-]{_RATERS}"
        )
        people = [str(c) for c in table.columns[is_person] if c not in criterion]
        if people and name not in table:
            found[name] = people
    return found


def join_rows(
    table: pd.DataFrame, unit: IntArray, ratings: Sequence[str], what: str
) -> pd.DataFrame:
    """Keep one row a unit, with the ratings that all of its rows gave, by person.

    Columns that are not ours are left out where the rows of a unit differ in them.

    Parameters
    ----------
    unit
        The number of each row's text, from 0 in the order of their first rows.
    ratings
        The columns of ratings. A column such as ``rater`` has the names of people.

    Examples
    --------
    >>> table = pd.DataFrame({"human": [4, 3, 5], "rater": ["al", "al", "bo"]})
    >>> join_rows(table, np.array([0, 1, 0]), ["human"], "a table").human.tolist()
    a table: 3 rows hold 2 texts or scores: the ratings of repeated rows are joined \
(rater)
    [{'al': 4, 'bo': 5}, {'al': 3}]
    """
    own = [c for c in table if c not in ROLES and c not in ratings]
    differ = [c for c in own if differs(unit, table[c]).any()]
    names = (pd.Series(unit).groupby(unit).cumcount() + 1).astype("str")
    for people in [c for c in differ if names_people(str(c))][:1]:
        by = table[people].map(as_text).reset_index(drop=True)
        # of one who rated a text twice, no name tells the rows apart
        is_twice = pd.DataFrame({"unit": unit, "name": by}).duplicated().any()
        names = names if is_twice else by
    out = table[~pd.Series(unit).duplicated().to_numpy()].drop(columns=differ)
    for column in ratings:
        by_name = table[column].astype("object").set_axis(names)
        out[column] = by_name.groupby(unit).agg(dict).to_list()
    print(
        f"{what}: {len(table):,} rows hold {len(out):,} texts or scores: the ratings "
        f"of repeated rows are joined ({', '.join(map(str, differ))})"
    )
    return out


def read_ratings(items: pd.DataFrame, scales: Scales) -> pd.DataFrame:
    """Read mean and single ratings; a mean that is not given is that of the single.

    Parameters
    ----------
    items
        With ``human``, ``gold`` and ``human_ratings`` as they were written, where
        given. A cell of several ratings is a text (``3 4 4``), a list, an array, or a
        mapping by person.
    scales
        Of each item. Rows are named by the index.

    Returns
    -------
    DataFrame
        ``human_ratings`` are tuples, in which a person who is named has one place in
        every item; NaN where that person gave no rating.

    Raises
    ------
    ValueError
        A rating is not a number, nor a label of the rubric, or is off the scale.

    Examples
    --------
    >>> items = pd.DataFrame({"human_ratings": [{"bo": 3, "al": 5}, {"bo": 4}]})
    >>> from rubricnb.files.cells import Levels
    >>> from rubricnb.files.reading import Reading
    >>> five = Scales(np.zeros(2, int), [Levels(1, 5, {})], Reading("a table"))
    >>> found = read_ratings(items, five)
    >>> found[["human", "human_ratings"]].values.tolist()
    [[4.0, (5.0, 3.0)], [4.0, (nan, 4.0)]]
    """
    out = items.copy()
    for mean in ("human", "gold"):
        several = f"{mean}_ratings"
        given = np.full(len(out), np.nan)
        is_alone = mean in out and several not in out
        if is_alone and _hold_several(out[mean], scales):
            out = out.rename(columns={mean: several})
            known = scales.reading.original
            known[several] = known.get(mean, mean)
        if mean in out:
            given = out[mean] = _read(out[mean], scales)
        if several in out:
            out[several], means = _single(out[several], scales)
            lacks = np.isnan(given) & ~np.isnan(means)
            if mean in out and lacks.any():
                print(
                    f"{scales.reading.who}: {lacks.sum():,} texts have single ratings "
                    f"and no {mean!r}: there it is their mean"
                )
            out[mean] = np.where(lacks, means, given)
    return out


_NOT_A_RATING = (
    "is not a number, nor a label of its rubric; write it as a number (yes as 1, no as "
    "0), or leave the cell of an unrated text empty; several ratings of a text belong "
    "in 'human_ratings', an answer worth full marks in 'reference', and a column of "
    "something else needs another name: columns={{{!r}: 'other'}}"
)


def _read(cells: pd.Series, scales: Scales) -> FloatArray:
    """Read cells of one rating each; refuse what is none."""
    which, levels, reading = scales
    value, kind = understand(cells, scales)
    reading.note(str(cells.name), kind, cells)
    is_gap = np.isin(kind, (EMPTY, MISSING, FAILED))
    why = _NOT_A_RATING.format(reading.original.get(str(cells.name), cells.name))
    refuse(reading.who, cells, np.isnan(value) & ~is_gap, why)
    outside = kind == OFF
    if outside.any():
        own = levels[which[outside.argmax()]]
        whose = f", the levels of rubric {own.rubric!r}" if own.rubric else ""
        names = ", ".join(map(str, cells.index[outside][:3]))
        meaning = reading.ask(
            str(cells.name),
            "outside",
            f"{reading.who}: rows {names}, column {cells.name!r}: "
            f"{as_text(cells[outside].iloc[0])} is outside {own.low:g}..{own.high:g}"
            f"{whose}; rescale the ratings, and leave the cell of a text that nobody "
            "rated empty (in a log, failed=99 names the number that stands for it), or "
            "say which",
            {
                "unrated": "these cells are no ratings",
                "foreign": "the ratings of these criteria are on another scale",
            },
        )
        none = outside if meaning == "unrated" else np.isin(which, which[outside])
        value[none] = np.nan
    return value


def _single(cells: pd.Series, scales: Scales) -> tuple[list[Any], FloatArray]:
    """Return each item's single ratings as a tuple, or None, and their mean."""
    texts = cells.map(lambda cell: cell if isinstance(cell, str) else "").astype("str")
    listed = are_lists(texts.str.strip(_BRACKETS), scales, True)
    parts = [
        _by_person(_parts(cell, scales.levels[n].labels, is_list))
        for cell, n, is_list in zip(cells, scales.which, listed, strict=True)
    ]
    rows = repeated(np.arange(len(cells)), [*map(len, parts)])
    written = [cell for part in parts for cell in part.values()]
    written = pd.Series(written, cells.index[rows], dtype="object", name=cells.name)
    people = [name for part in parts for name in part]
    value = _read(written, scales._replace(which=scales.which[rows]))
    table = pd.DataFrame({"item": rows, "person": people, "value": value})
    is_named = not table["person"].str.fullmatch(r"\d+").all()
    if table["person"].nunique() * len(cells) > _MOST_CELLS:
        print(
            f"{scales.reading.who}: {table['person'].nunique():,} people rated "
            f"{len(cells):,} texts: their ratings are kept without the names"
        )
        table["person"] = table.groupby("item").cumcount().astype("str")
        is_named = False
    wide = table.pivot(index="item", columns="person", values="value")
    # by the numbers in the names: r2 before r10
    order = wide.columns.str.replace(r"\d+", lambda m: m[0].zfill(9), regex=True)
    wide = wide.iloc[:, order.argsort()].reindex(range(len(cells)))
    count = [len(wide.columns) if is_named else len(part) for part in parts]
    means = wide.mean(axis=1).to_numpy()
    ratings = [
        None if np.isnan(mean) else tuple(row[:n])
        for row, n, mean in zip(wide.to_numpy().tolist(), count, means, strict=True)
    ]
    return ratings, means


def _hold_several(cells: pd.Series, scales: Scales) -> bool:
    """Whether some cell of a column is a list, or a mapping by person."""
    if pd.api.types.is_numeric_dtype(cells):
        return False
    _, texts, scales = each_once(cells, scales)
    is_begun = texts.str[:1].isin(["[", "{"])
    return bool(is_begun.any() or are_lists(texts.str.strip(_BRACKETS), scales).any())


def _by_person(cell: Any) -> Row:
    """Return the ratings in a cell by person; by their number if nobody is named."""
    if isinstance(cell, np.ndarray | pd.Series | set):
        cell = [*cell]
    cell = value_in(cell)
    if not isinstance(cell, Mapping):
        listed = cell if isinstance(cell, list | tuple) else [cell]
        names = [_person(one) for one in listed]
        if not all(names) or len(set(names)) < len(names):
            names = [*range(1, len(listed) + 1)]
        cell = dict(zip(names, listed, strict=True))
    return {as_text(name): value_in(one) for name, one in cell.items()}


def _person(one: Any) -> Any:
    """Return who gave a rating that is an object of an annotation tool."""
    known = one if isinstance(one, Mapping) else {}
    return next((known[key] for key in _PERSON_KEYS if key in known), "")


def _parts(cell: Any, labels: Mapping[str, float], is_list: bool) -> Any:
    """Return the ratings in a text: a list or mapping, or one number or label."""
    if not isinstance(cell, str) or cell.strip().casefold() in labels:
        return cell
    text = cell.strip()
    if text[:1] in ("[", "{", "(") and (parsed := literal(text)) is not None:
        return parsed
    mark = r"[,;|]" if is_list else r"[;|]|,(?!\d)|(?<!\d),"
    parts = [part.strip() for part in re.split(mark, text.strip("()[]"))]
    if not all(part.casefold() in labels for part in parts if part):
        parts = re.split(rf"(?:{mark}|[\s()\[\]])+", text)
    return parts if is_list else [part.replace(",", ".") for part in parts]
