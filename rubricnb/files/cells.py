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
from contextlib import suppress
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from rubricnb.core.rubrics import label_scores
from rubricnb.core.support.types import Ends as Scale
from rubricnb.core.support.types import FloatArray, IntArray, Mask
from rubricnb.files.reading import KINDS, Reading

EMPTY, MISSING, NUMBER, LABEL, SHARE, WORD, FAILED, UNREAD, OFF = range(len(KINDS))
GAPS = ("nan", "na", "n/a", "none", "null", "<na>", "#n/a")
_NUMBER = r"-?\d+(?:[.,]\d+)?"
_COMMAS = r"-?\d+(?:\.\d+)?(?:, ?\d+(?:\.\d+)?)+"  # 3,5: one number or two
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
    n: int = 0
    """How many scores there are, 0 where it is not known."""


class Scales(NamedTuple):
    """What each cell may be, and the reading that is asked where it is open."""

    which: IntArray
    """The number of each cell's levels."""
    levels: Sequence[Levels]
    reading: Reading

    @property
    def ends(self) -> FloatArray:
        """Each cell's lowest and highest score."""
        return np.array([own[:2] for own in self.levels], np.float64)[self.which]


def scales_of(
    rated: pd.DataFrame,
    rubrics: pd.DataFrame | None,
    reading: Reading,
    scale: Scale | Mapping[str, Scale] | None = None,
    words: Mapping[str, float] = MappingProxyType({}),
    by_value: bool = False,
) -> Scales:
    """Return the scale of each item: that given for its criterion, else its rubric's.

    `by_value` says that numbers are scores also where they are labels.

    Examples
    --------
    >>> items = pd.DataFrame({"criterion": ["tone", "wit"]})
    >>> given = {"tone": (1, 5), "wit": (0, 1)}
    >>> scales_of(items, None, Reading("it"), given).ends.tolist()
    [[1.0, 5.0], [0.0, 1.0]]
    """
    if scale is None and rubrics is None:
        raise ValueError(
            "judgments need scale=(lowest, highest), or items with rubrics (--scale 0 "
            "3)"
        )
    keys = pd.DataFrame({"criterion": rated["criterion"].astype("str"), "rubric": ""})
    labels: Mapping[str, Mapping[str, float]] = {}
    if rubrics is not None:
        keys["rubric"] = rated["rubric_id"].astype("str")
        labels = label_scores(rubrics)
    levels = []
    for criterion, rubric in keys.drop_duplicates().itertuples(index=False):
        own = labels.get(rubric, {})
        scores = sorted({*own.values()})
        if scale is None:
            low, high, n = scores[0], scores[-1], len(scores)
        else:
            low, high, n = _ends(scale, criterion)
        if by_value:
            numbers = as_numbers(pd.Series([*own], [*own], dtype="object"))
            own = {word: own[word] for word in numbers.index[numbers.isna()]}
        levels.append(Levels(low, high, own, rubric, words, n))
    return Scales(cells_of(keys), levels, reading)


def _ends(scale: Any, criterion: str) -> tuple[float, float, int]:
    """Return a criterion's lowest and highest score, and how many there are, or 0."""
    pair = scale.get(criterion, ()) if isinstance(scale, Mapping) else scale
    try:
        low, high = map(float, () if isinstance(pair, str) else pair)
    except (TypeError, ValueError):
        low = high = np.nan
    if not -np.inf < low < high < np.inf:
        raise ValueError(
            f"scale of {criterion!r} is {pair or 'missing'}; give (lowest, highest), "
            "such as (1, 5), or a dictionary with one for each criterion"
        )
    return low, high, 0 if (high - low) % 1 else int(high - low) + 1


def understand(cells: pd.Series, scales: Scales) -> tuple[FloatArray, IntArray]:
    """Read scores or single ratings: numbers, labels, and ``4/5`` on a scale up to 5.

    Returns the number in each cell, and what kind of cell it is (`reading.KINDS`).

    Parameters
    ----------
    cells
        One number or word each.
    scales
        Of each cell. A label that is a number counts as its score (grades from 1, the
        best, to 6); numbers between such labels lie between their scores. The reading
        says what separates the values of the file (after ``;`` a comma is a decimal
        one), and is asked what is open.

    Examples
    --------
    >>> five = Levels(1, 5, {"good": 4})
    >>> cells = pd.Series(["2,5", "4/5", "Good", "nan"])
    >>> reading = Reading("a table")
    >>> reading.separator = ";"
    >>> understand(cells, Scales(np.zeros(4, int), [five], reading))[0].tolist()
    None: 2 values are not plain numbers, such as '4/5', which is read as 4
    [2.5, 4.0, 4.0, nan]
    """
    reading = scales.reading
    place, each, scales = each_once(cells, scales)
    own, levels, _ = scales
    if each.dtype == "str":
        # Phoenix writes an object
        each = each.map(
            lambda t: as_text(value_in(literal(t) or t)) if t[:1] == "{" else t
        )
    value = as_numbers(each).to_numpy(np.float64, copy=True)
    value[are_lists(each, scales)] = np.nan
    kind = np.where(np.isin(value, reading.failed), FAILED, NUMBER)
    for row in np.flatnonzero(np.isnan(value)):
        text = as_text(each.iloc[row]).strip()
        kind[row], value[row] = _word(text, levels[own[row]])
    value[kind == FAILED] = np.nan
    _read_numbers_as_labels(value, kind, scales, cells.name)
    low, high = scales.ends.T
    is_off = ((value < low) | (value > high))[place]
    value, kind = value[place], kind[place]
    if (others := np.isin(kind, (LABEL, SHARE, WORD))).any():
        row = others.argmax()
        print(
            f"{cells.name}: {others.sum():,} values are not plain numbers, such as "
            f"{as_text(cells.iloc[row])!r}, which is read as {value[row]:g}"
        )
    lost = {word for one in levels for word in one.labels if word in GAPS}
    if lost and not reading.separator and (kind == EMPTY).any():
        print(
            f"{reading.who}: cells of {cells.name!r} are missing, and a level is "
            f"called {min(lost)!r}: if that was written there, read the file with "
            "pd.read_csv(…, keep_default_na=False)"
        )
    kind[is_off] = OFF
    return value, kind


def each_once(cells: pd.Series, scales: Scales) -> tuple[IntArray, pd.Series, Scales]:
    """Return the number of each cell's value, and these values with their scales.

    A value is there once for each scale, under the name of its first row.
    """
    code, found = distinct(cells)
    n = len(scales.levels)
    place, pairs = pd.factorize(code * n + scales.which)
    names = cells.index[~pd.Series(place).duplicated()]
    values = found.iloc[pairs // n].set_axis(names)
    return place, values, scales._replace(which=pairs % n)


def distinct(cells: pd.Series) -> tuple[IntArray, pd.Series]:
    """Return the number of each cell's value, and the values in their order.

    Numbers stay numbers; all else becomes text, and a gap an empty one.
    """
    if pd.api.types.is_numeric_dtype(cells) and cells.dtype != bool:
        numbers = cells.to_numpy(np.float64, na_value=np.nan)
        code, values = pd.factorize(numbers, use_na_sentinel=False)
        return code, pd.Series(values, name=cells.name)
    if isinstance(cells.dtype, pd.CategoricalDtype):
        code, used = pd.factorize(cells.cat.codes)
        names = pd.Series(cells.cat.categories, name=cells.name)
        inner, found = distinct(names.reindex(used))  # -1 is a gap
        return inner[code], found
    texts = cells.fillna("") if cells.dtype == "str" else cells.map(as_text)
    code, found = pd.factorize(texts.astype("str"))
    return code, pd.Series(found, dtype="str", name=cells.name).str.strip()


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
    if pd.api.types.is_numeric_dtype(values) and values.dtype != bool:
        return values.astype("float64")
    code, texts = distinct(values)
    numbers = pd.to_numeric(texts, errors="coerce").astype("float64")
    others = numbers.isna() & (texts != "")
    if others.any():
        texts = texts[others].map(_ascii)
        texts = texts.str.replace(r"^\s*(-?\d+),(\d+)\s*$", r"\1.\2", regex=True)
        numbers[others] = pd.to_numeric(texts, errors="coerce").to_numpy(np.float64)
    return pd.Series(numbers.to_numpy()[code], values.index)


def _ascii(text: str) -> str:
    """Return a text with digits and signs of other scripts in ASCII."""
    if text.isascii():
        return text
    digits = (str(unicodedata.decimal(c)) if c.isdecimal() else c for c in text)
    return "".join(digits).translate(_MARKS)


def _read_numbers_as_labels(
    value: FloatArray, kind: IntArray, scales: Scales, column: Any
) -> None:
    """Turn numbers into the scores of the labels that they are, where these differ."""
    for number, own in enumerate(scales.levels):
        named = pd.Series(own.labels, dtype="float64")
        known = named.set_axis(as_numbers(pd.Series(named.index)))
        known = known[known.index.notna()].sort_index()
        rows = np.flatnonzero((scales.which == number) & (kind == NUMBER))
        if not len(rows) or (known == known.index).all():
            continue
        if len(known) == len(named) and (
            known.is_monotonic_increasing or known.is_monotonic_decreasing
        ):
            # means, too
            read = np.interp(value[rows], known.index, known, np.nan, np.nan)
        else:
            read = known.reindex(value[rows]).to_numpy()
        # What is no label stays off every scale, so that it is counted or refused.
        value[rows] = np.where(np.isnan(read), np.inf, read)
        listed = ", ".join(f"{point:g} = {score:g}" for point, score in known.items())
        print(f"{column}: the numbers are labels of rubric {own.rubric!r}: {listed}")


def are_lists(texts: pd.Series, scales: Scales, several: bool = False) -> Mask:
    """Tell which texts hold several numbers between commas, not a decimal comma.

    `several` says that a cell of the column may hold the ratings of several people. A
    column is read in one way: as decimals if some cell cannot be a list (``0,5`` on a
    scale from 1), as lists if some cell cannot be a decimal (``3,4,4``). Where both are
    possible, it is a question, except for single numbers between semicolons.

    Examples
    --------
    >>> cells, five = pd.Series(["3,4,4", "3,4", "5"]), Levels(1, 5, {})
    >>> are_lists(cells, Scales(np.zeros(3, int), [five], Reading("t"))).tolist()
    [True, True, False]
    """
    which, levels, reading = scales
    if pd.api.types.is_numeric_dtype(texts):
        return np.zeros(len(texts), bool)
    plain = texts.map(_ascii).str.replace(r"\s*,\s+", ", ", regex=True)
    has = plain.str.fullmatch(_COMMAS).to_numpy(bool)
    rows = np.flatnonzero(has)
    is_list = is_decimal = False
    for text, number in zip(plain.iloc[rows], which[rows], strict=True):
        low, high = levels[number][:2]
        one = re.fullmatch(r"-?\d+,\d+", text)
        is_list |= not (one and low <= float(text.replace(",", ".")) <= high)
        is_decimal |= not all(low <= float(part) <= high for part in text.split(","))
    if is_list != is_decimal or not len(rows):
        return has & is_list
    if reading.separator == ";" and not (several or is_list):
        return has & False
    first = plain.iloc[rows[0]]
    one, two = first.replace(",", ".", 1), first.replace(",", " and ")
    names = ", ".join(str(texts.index[row]) for row in rows[:3])
    meaning = reading.ask(
        str(texts.name),
        "comma",
        f"{reading.who}: rows {names}, column {str(texts.name)!r}: {first!r} may be "
        f"{one} or {two}: write a decimal with a point (3.5), and several ratings with "
        "spaces between them (3 5), or say which",
        {"decimal": f"{first} is {one}", "list": f"{first} is {two}"},
    )
    return has & (meaning == "list")


def literal(text: str) -> Any:
    """Parse JSON or a literal of Python, as other tools write lists into a CSV."""
    for parse in (json.loads, ast.literal_eval):
        with suppress(ValueError, SyntaxError, MemoryError, RecursionError):
            return parse(text)
    return None


def value_in(cell: Any) -> Any:
    """Return the rating in an object that has one under a known name.

    Examples
    --------
    >>> value_in({"user": "al", "value": 4}), value_in(3)
    (4, 3)
    """
    if not isinstance(cell, Mapping):
        return cell
    known = {str(key).casefold(): value for key, value in cell.items()}
    values = [known[key] for key in _RATING_KEYS if key in known]
    return next((v for v in values if v is not None), None) if values else cell


_RATING_KEYS = ("rating", "score", "value", "label", "response")


def cells_of(keys: pd.DataFrame) -> IntArray:
    """Number the rows' combinations of values, in the order of their first rows.

    Examples
    --------
    >>> cells_of(pd.DataFrame({"item": ["b", "a", "b"], "read": [1, 1, None]})).tolist()
    [0, 1, 2]
    """
    by: Any = [*keys] or np.zeros(len(keys))
    cells = keys.groupby(by, sort=False, dropna=False, observed=True)
    return cells.ngroup().to_numpy(np.int64)


def differs(cells: IntArray, values: pd.Series) -> Mask:
    """Tell which rows have another value than the first row of their cell.

    Examples
    --------
    >>> differs(np.array([0, 0, 1]), pd.Series([2, 3, 2])).tolist()
    [False, True, False]
    """
    code = pd.Series(distinct(values)[0])
    return np.asarray(code != code.groupby(cells).transform("first"))


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


def clean_names(names: pd.Series, what: str) -> pd.Series:
    """Read names as text, without the spaces around them, which would make two of one.

    Ids that are all numbers lose the decimal that a spreadsheet gave them (``7.0``).

    Examples
    --------
    >>> clean_names(pd.Series(["7.0", "8.0"], name="item_id"), "a table").tolist()
    a table: 2 names in 'item_id' are shortened: '7.0' is read as '7'
    ['7', '8']
    """
    column = str(names.name)
    texts = (names if names.dtype == "str" else names.map(as_text)).astype("str")
    bare = texts.str.strip()
    if (padded := bare != texts).any():
        bare[padded] = bare[padded].str.split().str.join(" ")
    if column.endswith("_id") and bare.str.fullmatch(r"\d+(?:\.0)?").all():
        short = bare.str.removesuffix(".0")
        for one in short[(short != bare) & short.isin(bare)][:1]:
            raise ValueError(
                f"{what}: column {column!r} has the ids {one!r} and '{one}.0', which "
                "are the same number; write the id of an item in one way only"
            )
        bare = short
    is_changed = (texts != bare).to_numpy()
    if is_changed.any():
        row = is_changed.argmax()
        print(
            f"{what}: {texts[is_changed].nunique()} names in {column!r} are shortened: "
            f"{texts.iloc[row]!r} is read as {bare.iloc[row]!r}"
        )
    return bare


def as_text(value: object) -> str:
    """Write a cell as text: whole numbers without decimals, lists as JSON."""
    if isinstance(value, str):
        return value
    if isinstance(value, float):
        if value != value:
            return ""
        return str(int(value)) if value.is_integer() else repr(float(value))
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if isinstance(value, list | tuple | dict):
        return json.dumps(value, ensure_ascii=False, default=str)
    return "" if value is None or value is pd.NA or value is pd.NaT else str(value)
