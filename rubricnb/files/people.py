"""Ratings by people: (item, person, value), in whatever form they were written.

Columns, lists, mappings and rows for each person become one mapping a text, of persons
to cells, before anything is joined. So a person keeps one place in every text, and a gap
stays one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from rubricnb.core.frames import refuse
from rubricnb.core.support.counting import binned, repeated
from rubricnb.files.cells import (
    EMPTY,
    FAILED,
    MISSING,
    FloatArray,
    IntArray,
    Levels,
    as_numbers,
    as_text,
    comma_in,
    distinct,
    is_missing,
    literal,
    understand,
)
from rubricnb.files.reading import Reading

_RATERS = r"(?:rater|annotator|expert|coder|person|user|r|a)?[ _-]?\d+"
_PERSON_KEYS = ("user", "annotator", "rater", "name", "annotator_id", "user_id")
_RATING_KEYS = ("rating", "score", "value", "label", "response")
_MOST_CELLS = 50_000_000
"""Most ratings, gaps among them, of all texts by all persons."""


def join_columns(
    table: pd.DataFrame, columns: Mapping[str, Sequence[str]]
) -> pd.DataFrame:
    """Join columns that hold one person's ratings each, into mappings by person.

    Examples
    --------
    >>> table = pd.DataFrame({"r1": [3], "r2": [None]})
    >>> join_columns(table, {"human_ratings": ["r1", "r2"]}).human_ratings.tolist()
    [{'r1': 3, 'r2': None}]
    """
    for name, people in columns.items():
        cells = [table[c].astype(object).where(table[c].notna(), None) for c in people]
        rows = zip(*cells, strict=True)
        ratings = [dict(zip(people, row, strict=True)) for row in rows]
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
    >>> columns_of_people(pd.DataFrame(columns=["human_1", "human_2", "human"]), ["tone"])
    {'human_ratings': ['human_1', 'human_2']}
    """
    wanted = {f"human_{c}": f"human_{c}" for c in criteria}
    if len(criteria) <= 1:
        wanted = dict.fromkeys(["human", *wanted], "human_ratings")
    found = {}
    for start, name in wanted.items():
        people = [
            str(c)
            for c in table
            if re.fullmatch(rf"(?i){re.escape(start)}[ _-]{_RATERS}", str(c))
            and str(c).removeprefix("human_") not in criteria
        ]
        if people and name not in table:
            found[name] = people
    return found


def in_rows(
    text: IntArray, cells: Sequence[Any], people: Sequence[Any] | None
) -> list[Any]:
    """Join the ratings that the rows of one text give, a row for each person.

    Parameters
    ----------
    text
        The number of each row's text.
    cells, people
        The rating in each row, and who gave it; None if nobody is named.

    Returns
    -------
    list
        Of each text in the order of its first row, a mapping by person, or a list.

    Examples
    --------
    >>> in_rows(np.array([0, 1, 0]), [4, 3, 5], ["al", "al", "bo"])
    [{'al': 4, 'bo': 5}, {'al': 3}]
    """
    if people is not None and len(
        {*zip(text.tolist(), map(as_text, people), strict=True)}
    ) < len(cells):
        people = None  # one person rated a text twice: no name tells the rows apart
    found: dict[int, Any] = {}
    for row, (one, cell) in enumerate(zip(text.tolist(), cells, strict=True)):
        if people is not None:
            found.setdefault(one, {})[as_text(people[row])] = cell
        elif isinstance(cell, list | dict) or as_text(cell).strip():
            found.setdefault(one, []).append(cell)
        else:
            found.setdefault(one, [])
    alone = ([""] if own == [] else own for own in found.values())
    return [own[0] if isinstance(own, list) and len(own) == 1 else own for own in alone]


def read_ratings(
    items: pd.DataFrame, which: IntArray, levels: Sequence[Levels], reading: Reading
) -> pd.DataFrame:
    """Read mean and single ratings; a mean that is not given is that of the single.

    Parameters
    ----------
    items
        With ``human``, ``gold`` and ``human_ratings`` as they were written, where
        given. A cell of several ratings is a text (``3 4 4``), a list, an array, or a
        mapping by person. A column ``gold`` of texts is renamed, with a line.
    which, levels
        As `understand` takes them, of each item.
    reading
        Names the table; its rows are named by the index.

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
    >>> found = read_ratings(items, np.zeros(2, int), [Levels(1, 5, {})], Reading("a"))
    >>> found[["human", "human_ratings"]].values.tolist()
    [[4.0, (5.0, 3.0)], [4.0, (nan, 4.0)]]
    """
    out = items
    if "gold" in out and _is_text(out["gold"], levels):
        reading.say(
            f"{reading.who}: the column 'gold' holds texts, not ratings, and is kept "
            f"as "
            "'gold_text'; if it is the right answer, name it: columns={'gold': "
            "'reference'}"
        )
        out = out.rename(columns={"gold": "gold_text"})
    for mean in out.columns.intersection(["human", "gold"], sort=False):
        several = f"{mean}_ratings"
        if several not in out and _holds_several(out[mean], which, levels, reading):
            out = out.rename(columns={mean: several})
        else:
            out = out.assign(**{mean: _read(out[mean], which, levels, reading)})
    for several in ("human_ratings", "gold_ratings"):
        if several not in out:
            continue
        ratings, means = _single(out[several], which, levels, reading)
        out = out.assign(**{several: ratings})
        mean = several.removesuffix("_ratings")
        given = out[mean].to_numpy(np.float64) if mean in out else means
        lacks = np.isnan(given) & ~np.isnan(means)
        if lacks.any():
            reading.say(
                f"{reading.who}: {lacks.sum():,} texts have single ratings and no "
                f"{mean!r}: there it is their mean"
            )
        out = out.assign(**{mean: np.where(lacks, means, given)})
    return out


_NOT_A_RATING = (
    "is not a number, nor a label of its rubric; write it as a number (yes as 1, no as "
    "0), or leave the cell of an unrated text empty; several ratings of a text belong "
    "in 'human_ratings', and a column of something else needs another name: "
    "columns={'human': 'other'}"
)


def _read(
    cells: pd.Series, which: IntArray, levels: Sequence[Levels], reading: Reading
) -> FloatArray:
    """Read cells of one rating each; refuse what is none."""
    value, kind = understand(cells, which, levels, reading)
    marked = np.isin(value, reading.failed) | (kind == FAILED)
    value = np.where(marked, np.nan, value)
    reading.note(str(cells.name), np.where(marked, FAILED, kind), cells)
    gaps = marked | (kind == EMPTY) | (kind == MISSING)
    refuse(reading.who, cells, np.isnan(value) & ~gaps, _NOT_A_RATING)
    low, high = np.array([own[:2] for own in levels], np.float64)[which].T
    outside = (value < low) | (value > high)
    if outside.any():
        own = levels[which[outside.argmax()]]
        whose = f", the levels of rubric {own.rubric!r}" if own.rubric else ""
        why = (
            f"is outside {own.low:g}..{own.high:g}{whose}; rescale the ratings, and "
            "leave the cell of a text that nobody rated empty (in a log, failed=99 "
            "names the number that stands for it)"
        )
        refuse(reading.who, cells, outside, why)
    return value


def _single(
    cells: pd.Series, which: IntArray, levels: Sequence[Levels], reading: Reading
) -> tuple[list[Any], FloatArray]:
    """Return each item's single ratings as a tuple, or None, and their mean."""
    if cells.map(lambda cell: isinstance(cell, tuple)).all():
        table = pd.DataFrame(cells.tolist(), dtype="float64")
        return cells.tolist(), table.mean(axis=1).to_numpy()
    parts = _spread(cells, which, levels, reading)
    rows = repeated(np.arange(len(cells)), [*map(len, parts)])
    persons = [name for part in parts for name in part]
    written = pd.Series(
        [cell for part in parts for cell in part.values()],
        cells.index[rows],
        dtype="object",
        name=cells.name,
    )
    value = _read(written, which[rows], levels, reading)
    names = sorted(set(persons), key=_natural)
    if len(cells) * len(names) > _MOST_CELLS:
        reading.say(
            f"{reading.who}: {len(names):,} people rated {len(cells):,} texts: their "
            "ratings are kept without the names"
        )
        names = []
        place = pd.Series(rows).groupby(rows).cumcount().to_numpy()
    else:
        place = pd.Index(names).get_indexer(persons)
    wide = np.full((len(cells), int(place.max(initial=0)) + 1), np.nan)
    wide[rows, place] = value
    count = binned(rows, minlength=len(cells))
    if names and not all(re.fullmatch(r"\d+", name) for name in names):
        count[:] = len(names)
    rated = ~np.isnan(wide)
    ratings = [
        tuple(row[:n].tolist()) if any_ else None
        for row, n, any_ in zip(wide, count, rated.any(axis=1), strict=True)
    ]
    with np.errstate(invalid="ignore"):
        return ratings, np.where(rated, wide, 0).sum(axis=1) / rated.sum(axis=1)


def _natural(name: str) -> list[tuple[int, str]]:
    """Order names by the numbers in them: r2 before r10."""
    return [(int(p), "") if p.isdigit() else (-1, p) for p in re.split(r"(\d+)", name)]


def _spread(
    cells: pd.Series, which: IntArray, levels: Sequence[Levels], reading: Reading
) -> list[dict[str, Any]]:
    """Return each cell's ratings, by the name of the person, or by their number."""
    written = cells.map(lambda cell: cell if isinstance(cell, str) else "")
    texts = written.astype("str").str.strip(" ()[]")
    commas = comma_in(texts, which, levels, reading, cells.name, several=True)
    listed = commas.is_list | ~commas.has
    known = {}
    out = []
    for cell, number, commas_ in zip(cells, which, listed, strict=True):
        if isinstance(cell, str):
            key = (cell, number, commas_)
            if key not in known:
                known[key] = _by_person(_parts(cell, levels[number].labels, commas_))
            out.append(known[key])
        else:
            out.append(_by_person(cell))
    return out


def _by_person(cell: Any) -> dict[str, Any]:
    """Return the ratings in a cell by person; by their number if nobody is named."""
    if isinstance(cell, np.ndarray | pd.Series | set):
        cell = [*cell]
    if isinstance(cell, Mapping):
        if (value := _value_in(cell)) is not cell:
            return _by_person(value)
        return {as_text(name): _value_in(one) for name, one in cell.items()}
    if not isinstance(cell, list | tuple):
        return {"1": cell}
    names = [_person(one) for one in cell]
    if all(names) and len(set(names)) == len(names):
        return {name: _value_in(one) for name, one in zip(names, cell, strict=True)}
    flat = [part for one in cell for part in _by_person(one).values()]
    return {str(number): one for number, one in enumerate(flat, 1)}


def _person(one: Any) -> str:
    """Return who gave a rating that is an object of an annotation tool."""
    if not isinstance(one, Mapping):
        return ""
    return next((as_text(one[key]) for key in _PERSON_KEYS if key in one), "")


def _value_in(cell: Any) -> Any:
    """Return the rating in an object that has one under a known name."""
    if not isinstance(cell, Mapping):
        return cell
    named = {str(key).casefold(): value for key, value in cell.items()}
    return next((named[key] for key in _RATING_KEYS if key in named), cell)


def _parts(text: str, labels: Mapping[str, float], commas: bool) -> Any:
    """Return the ratings in a text: a list or mapping, or one number or label."""
    text = text.strip()
    if text.casefold() in labels:
        return text
    if text[:1] in ("[", "{", "(") and (parsed := literal(text)) is not None:
        return parsed
    mark = r"[,;|]" if commas else r"[;|]|,(?!\d)|(?<!\d),"
    parts = [part.strip() for part in re.split(mark, text.strip("()[]"))]
    if not all(part.casefold() in labels for part in parts if part):
        parts = re.split(rf"(?:{mark}|[\s()\[\]])+", text)
    return [_point(part, commas) for part in parts]


def _point(part: str, commas: bool) -> str:
    return part if commas else part.replace(",", ".")


def _holds_several(
    cells: pd.Series, which: IntArray, levels: Sequence[Levels], reading: Reading
) -> bool:
    """Whether some cell of a column holds the ratings of several people."""
    if pd.api.types.is_numeric_dtype(cells):
        return False
    if cells.dtype == object and cells.map(_is_several).any():
        return True
    code, texts = distinct(cells)
    if texts.map(_is_several).any():
        return True
    place, pairs = pd.factorize(code * len(levels) + which)
    first = np.full(len(pairs), len(place))
    np.minimum.at(first, place, np.arange(len(place)))
    own = texts.iloc[pairs // len(levels)].set_axis(cells.index[first])
    return bool(
        comma_in(own, pairs % len(levels), levels, reading, cells.name).is_list.any()
    )


def _is_several(cell: Any) -> bool:
    if isinstance(cell, str) and cell.strip()[:1] in ("[", "{"):
        cell = literal(cell.strip())
    return isinstance(cell, list | tuple | set | dict | np.ndarray | pd.Series)


def _is_text(cells: pd.Series, levels: Iterable[Levels]) -> bool:
    """Whether no cell of a column is a number, a label or a list."""
    labels = set().union(*(own.labels for own in levels))
    written = cells[~is_missing(cells)]
    if not len(written) or not written.map(type).eq(str).all():
        return False
    words = written.str.strip().str.casefold()
    is_rating = as_numbers(written).notna() | words.isin(labels)
    return not (is_rating | words.str.contains(r"/|^[\[{]")).any()
