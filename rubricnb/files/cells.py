"""What a cell means: a number, a label of the rubric, a word for "missing", a gap.

Scores and ratings are understood here and nowhere else, each distinct cell once, with
the levels of its rubric at hand: a label comes first, then a number; a word for
"missing" is one only where the rubric has no such level; a decimal comma is one where
the file leaves no other reading.
"""

from __future__ import annotations

import ast
import json
import re
import unicodedata
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from rubricnb.files.reading import KINDS, Reading

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
EMPTY, MISSING, NUMBER, LABEL, SHARE, WORD, FAILED, UNREAD = range(len(KINDS))
GAPS = ("nan", "na", "n/a", "none", "null", "<na>", "#n/a")
_NUMBER = r"-?\d+(?:[.,]\d+)?"
_COMMAS = r"-?\d+(?:\.\d+)?(?:,\d+(?:\.\d+)?)+"  # 3,5: one number or two
_DECIMALS = ("0", "00", "5", "50", "25", "75")  # of ratings in halves and quarters
_MARKS = str.maketrans("，．／−–", ",./--")
_YES = {"yes": 1.0, "true": 1.0, "no": 0.0, "false": 0.0}


class Levels(NamedTuple):
    """What a score may be: the ends of a scale, and the labels of its rubric."""

    low: float
    high: float
    labels: Mapping[str, float]
    """In lower case → score."""
    rubric: str = ""
    words: Mapping[str, float] = MappingProxyType({})
    """Words with which the tool that wrote the file names scores; labels go first."""


class Understood(NamedTuple):
    """The number in each cell, and what kind of cell it is (`reading.KINDS`)."""

    value: FloatArray
    kind: NDArray[np.int8]


def understand(
    cells: pd.Series, which: IntArray, levels: Sequence[Levels], reading: Reading
) -> Understood:
    """Read scores or single ratings: numbers, labels, and ``4/5`` on a scale up to 5.

    Parameters
    ----------
    cells
        One number or word each.
    which, levels
        The number of each cell's levels, and those. A label that is a number counts as
        its score (grades from 1, the best, to 6); numbers between such labels lie
        between their scores.
    reading
        Says what separates the values of the file (after ``;`` a comma is a decimal
        one), and is asked what is open.

    Examples
    --------
    >>> five, cells = Levels(1, 5, {"good": 4}), pd.Series(["2,5", "4/5", "Good", "nan"])
    >>> reading = Reading("a table")
    >>> reading.separator = ";"
    >>> understand(cells, np.zeros(4, int), [five], reading).value.tolist()
    None: 2 values are not plain numbers, such as '4/5', which is read as 4
    [2.5, 4.0, 4.0, nan]
    """
    if pd.api.types.is_numeric_dtype(cells) and cells.dtype != bool:
        value = cells.to_numpy(np.float64, na_value=np.nan, copy=True)
        kind = np.where(np.isnan(value), EMPTY, NUMBER).astype(np.int8)
        _read_numbers_as_labels(value, which, levels, reading, cells.name)
        _name_lost_labels(cells, kind, levels, reading)
        return Understood(value, kind)
    code, texts = distinct(cells)
    place, pairs = pd.factorize(code * len(levels) + which)
    text, of_levels = pairs // len(levels), pairs % len(levels)
    each = _each(texts.iloc[text], of_levels, levels, reading, cells.name)
    value, kind = each.value[place], each.kind[place]
    if (others := np.isin(kind, (LABEL, SHARE, WORD))).any():
        first = others.argmax()
        reading.say(
            f"{cells.name}: {others.sum():,} values are not plain numbers, such as "
            f"{as_text(cells.iloc[first])!r}, which is read as {value[first]:g}"
        )
    _name_lost_labels(cells, kind, levels, reading)
    return Understood(value, kind)


def distinct(cells: pd.Series) -> tuple[IntArray, pd.Series]:
    """Return the number of each cell's text, and the texts; a gap is an empty one."""
    if isinstance(cells.dtype, pd.CategoricalDtype):
        cells = cells.astype("object")
    texts = cells.map(as_text).astype("str") if cells.dtype != "str" else cells
    code, found = pd.factorize(texts)
    found = pd.Series([*found, ""], dtype="str")
    return np.where(code < 0, len(found) - 1, code), found.str.strip()


def _each(
    texts: pd.Series,
    which: IntArray,
    levels: Sequence[Levels],
    reading: Reading,
    column: Any,
) -> Understood:
    """Understand distinct texts."""
    value = as_numbers(texts).to_numpy(np.float64).copy()
    commas = comma_in(texts, which, levels, reading, column)
    value[commas.is_list] = np.nan
    kind = np.full(len(value), NUMBER, np.int8)
    for row in np.flatnonzero(np.isnan(value)):
        kind[row], value[row] = _word(texts.iloc[row], levels[which[row]])
    kind[np.isin(value, reading.failed)] = FAILED
    value[kind == FAILED] = np.nan
    numbers = np.where(kind == NUMBER, value, np.nan)
    _read_numbers_as_labels(numbers, which, levels, reading, column)
    return Understood(np.where(kind == NUMBER, numbers, value), kind)


def _word(text: str, own: Levels) -> tuple[int, float]:
    """Return the kind and the score of a text that is no number."""
    word = text.casefold()
    if word in own.labels:
        return LABEL, own.labels[word]
    if word in own.words:
        return WORD, own.words[word]
    if (own.low, own.high) == (0, 1) and not own.labels and word in _YES:
        return WORD, _YES[word]
    if word in ("", *GAPS):
        return (MISSING if word else EMPTY), np.nan
    if share := re.fullmatch(rf"({_NUMBER})\s*/\s*({_NUMBER})", _ascii(text)):
        part, top = (float(part.replace(",", ".")) for part in share.groups())
        if top == own.high:
            return SHARE, part
    return UNREAD, np.nan


def as_numbers(values: pd.Series) -> pd.Series:
    """Parse numbers, also with a decimal comma; anything else is NaN, True too.

    Examples
    --------
    >>> as_numbers(pd.Series(["2,5", "٤", "x", True])).tolist()
    [2.5, 4.0, nan, nan]
    """
    if pd.api.types.is_bool_dtype(values):
        return pd.Series(np.nan, values.index)
    if pd.api.types.is_numeric_dtype(values):
        return values.astype("float64")
    texts = values.astype("str").fillna("")
    numbers = pd.to_numeric(texts, errors="coerce").astype("float64")
    others = numbers.isna() & (texts != "")
    if others.any():
        texts = texts[others].map(_ascii)
        texts = texts.str.replace(r"^\s*(-?\d+),(\d+)\s*$", r"\1.\2", regex=True)
        numbers[others] = pd.to_numeric(texts, errors="coerce").to_numpy(np.float64)
    return numbers


def _ascii(text: str) -> str:
    """Return a text with digits and signs of other scripts in ASCII."""
    if text.isascii():
        return text
    digits = (str(unicodedata.decimal(c)) if c.isdecimal() else c for c in text)
    return "".join(digits).translate(_MARKS)


def is_missing(values: pd.Series) -> pd.Series:
    """Tell which cells are missing: empty, or NaN, None, n/a, … written out."""
    if pd.api.types.is_numeric_dtype(values):
        return values.isna()
    words = values.astype("str").fillna("").str.strip().str.casefold()
    return values.isna() | words.isin(["", *GAPS])


def _name_lost_labels(
    cells: pd.Series,
    kind: NDArray[np.int8],
    levels: Sequence[Levels],
    reading: Reading,
) -> None:
    """Say that gaps may have been labels that pandas takes for missing ones."""
    words = {word for own in levels for word in own.labels if word in GAPS}
    lost = int((kind == EMPTY).sum())
    if words and lost and not reading.separator:
        reading.say(
            f"{reading.who}: {lost} cells of {cells.name!r} are missing, and a level "
            f"is called {min(words)!r}: if that was written there, read the file with "
            "pd.read_csv(…, keep_default_na=False)"
        )


def _read_numbers_as_labels(
    value: FloatArray,
    which: IntArray,
    levels: Sequence[Levels],
    reading: Reading,
    column: Any,
) -> None:
    """Turn numbers into the scores of the labels that they are, where these differ."""
    for number, own in enumerate(levels):
        scores = numeric_labels(own.labels)
        if all(label == score for label, score in scores.items()):
            continue
        rows = np.flatnonzero((which == number) & ~np.isnan(value))
        if not len(rows):
            continue
        given, points = value[rows], sorted(scores)
        tops = [scores[point] for point in points]
        steps = np.sign(np.diff(tops))
        if len(scores) == len(own.labels) and (steps == steps[0]).all():
            read = np.interp(given, points, tops, np.nan, np.nan)  # a mean of grades
        else:
            read = np.array([scores.get(one, np.nan) for one in given])
        # What is not between labels stays off every scale,
        # so that it is counted or refused.
        value[rows] = np.where(np.isnan(read), np.inf, read)
        listed = ", ".join(f"{point:g} = {scores[point]:g}" for point in points)
        reading.say(
            f"{column}: the numbers are labels of rubric {own.rubric!r}: {listed}"
        )


def numeric_labels(labels: Mapping[str, float]) -> dict[float, float]:
    """Return the labels of a rubric that are numbers, with their scores."""
    numbers = as_numbers(pd.Series([*labels], dtype="object"))
    return {n: s for n, s in zip(numbers, labels.values(), strict=True) if n == n}


class Commas(NamedTuple):
    """Which cells hold numbers with commas between them, and whether they are lists."""

    has: NDArray[np.bool_]
    is_list: NDArray[np.bool_]


def comma_in(
    texts: pd.Series,
    which: IntArray,
    levels: Sequence[Levels],
    reading: Reading,
    column: Any,
    several: bool = False,
) -> Commas:
    """Tell which texts hold several numbers between commas, not a decimal comma.

    `several` says that a cell of the column may hold the ratings of several people. A
    column is read in one way: as decimals if some cell cannot be a list (``0,5`` on a
    scale from 1), as lists if some cell cannot be a decimal (``3,4,4``). Where both are
    possible, it is a question.

    Examples
    --------
    >>> cells, five = pd.Series(["3,4,4", "3,4", "5"]), Levels(1, 5, {})
    >>> comma_in(cells, np.zeros(3, int), [five], Reading("a table"), "h").is_list.tolist()
    [True, True, False]
    """
    plain = texts.map(_ascii).str.strip().str.replace(r"\s*,\s*", ",", regex=True)
    has = plain.str.fullmatch(_COMMAS).to_numpy(bool)
    none = np.zeros(len(has), bool)
    if not has.any():
        return Commas(has, none)
    rows = np.flatnonzero(has)
    both = [(plain.iloc[row], levels[which[row]]) for row in rows]
    spaced = texts.iloc[rows].str.contains(r",\s").any()
    is_list = spaced or not all(_may_be_decimal(*one) for one in both)
    is_decimal = not all(_may_be_list(*one) for one in both)
    if is_list != is_decimal:
        return Commas(has, has if is_list else none)
    if not is_list and reading.separator == "," and several:
        return Commas(has, has)
    in_halves = all(text.split(",")[-1] in _DECIMALS for text, _ in both)
    if not is_list and reading.separator == ";" and (in_halves or not several):
        return Commas(has, none)
    first = both[0][0]
    one, two = first.replace(",", ".", 1), first.replace(",", " and ")
    names = ", ".join(str(texts.index[row]) for row in rows[:3])
    meaning = reading.ask(
        str(column),
        "comma",
        f"{reading.who}: rows {names}, column {column!r}: {first!r} may be {one} or "
        f"{two}: write a decimal with a point (3.5), and several ratings with spaces "
        "between them (3 5), or say which",
        {"decimal": f"{first} is {one}", "list": f"{first} is {two}"},
    )
    return Commas(has, has if meaning == "list" else none)


def _may_be_decimal(text: str, own: Levels) -> bool:
    if text.count(",") != 1 or "." in text:
        return False
    return own.low <= float(text.replace(",", ".")) <= own.high


def _may_be_list(text: str, own: Levels) -> bool:
    return all(own.low <= float(part) <= own.high for part in text.split(","))


def literal(text: str) -> Any:
    """Parse JSON or a literal of Python, as other tools write lists into a CSV."""
    try:
        return json.loads(text)
    except ValueError:
        pass
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return None


def names_people(column: str) -> bool:
    """Whether a column says who rated a row.

    Examples
    --------
    >>> [names_people(name) for name in ("annotator_id", "Rater", "score")]
    [True, True, False]
    """
    return bool(re.search(_PEOPLE, column.casefold()))


_PEOPLE = (
    "annotator|rater|coder|label+er|worker|expert|reviewer|assessor|evaluator_id|user"
)


def as_ids(names: Sequence[object], column: str, what: str) -> list[str]:
    """Read ids as text; numbers saved with a decimal (``7.0``) lose it, with a line.

    So do names their spaces at both ends, which would make two of one.

    Examples
    --------
    >>> as_ids(["7.0", "8.0"], "item_id", "a table")
    a table: the ids in 'item_id' look like decimal numbers: '7.0' is read as '7'
    ['7', '8']
    """
    texts = without_spaces([as_text(name) for name in names], column, what)
    if not all(map(_DECIMAL_ID.fullmatch, texts)):
        return texts
    changed = [text.removesuffix(".0") for text in texts if text.endswith(".0")]
    for one in set(changed) & set(texts):
        raise ValueError(
            f"{what}: column {column!r} has the ids {one!r} and '{one}.0', which are "
            "the same number; write the id of an item in one way only"
        )
    if changed:
        print(
            f"{what}: the ids in {column!r} look like decimal numbers: "
            f"'{changed[0]}.0' is read as {changed[0]!r}"
        )
    return [text.removesuffix(".0") for text in texts]


_DECIMAL_ID = re.compile(r"\d+(?:\.0)?")


def without_spaces(names: Sequence[str], column: str, what: str) -> list[str]:
    """Remove spaces around names; a line says so.

    Examples
    --------
    >>> without_spaces(["a", "a "], "judge", "a table")
    a table: 1 names in 'judge' lose the spaces around them, such as 'a '
    ['a', 'a']
    """
    bare = [" ".join(name.split()) if name != name.strip() else name for name in names]
    if changed := [name for name, own in zip(names, bare, strict=True) if name != own]:
        number = len(set(changed))
        print(
            f"{what}: {number} names in {column!r} lose the spaces around them, such "
            f"as {changed[0]!r}"
        )
    return bare


def as_text(value: object) -> str:
    """Write a cell as text: whole numbers without decimals, lists as JSON."""
    if isinstance(value, str):
        return value
    if isinstance(value, float):
        if value != value:
            return ""
        return str(int(value)) if value.is_integer() else repr(value)
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if isinstance(value, list | tuple | dict):
        return json.dumps(value, ensure_ascii=False, default=str)
    return "" if value is None or value is pd.NA or value is pd.NaT else str(value)
