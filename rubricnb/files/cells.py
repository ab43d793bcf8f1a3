"""How a cell of a table is understood: a number, a label,
a rating by several people, a gap.

Scores and ratings are read here and nowhere else, by the same rules: a label of the
rubric comes first, then a number; a word for "missing" is one only where the rubric has
no such level; a decimal comma is one where the file leaves no other reading.
"""

from __future__ import annotations

import ast
import json
import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from rubricnb.core.frames import refuse

Labels = Mapping[str, Mapping[str, float]]
FloatArray = NDArray[np.float64]
_MISSING = ("", "nan", "na", "n/a", "none", "null", "<na>", "#n/a")
_NUMBER = r"-?\d+(?:[.,]\d+)?"
_COMMAS = r"-?\d+(?:\.\d+)?(?:,\d+(?:\.\d+)?)+"  # 3,5: one number or two
_RATING_KEYS = ("rating", "score", "value", "label", "response")
_DECIMALS = ("0", "00", "5", "50", "25", "75")  # of ratings in halves and quarters
_MARKS = str.maketrans("，．／−–", ",./--")


def as_numbers(values: pd.Series) -> pd.Series:
    """Parse numbers, also with a decimal comma; NaN for anything else,
    True and False included.

    Examples
    --------
    >>> as_numbers(pd.Series(["2,5", "٤", "x", True])).tolist()
    [2.5, 4.0, nan, nan]
    """
    if pd.api.types.is_bool_dtype(values):
        return pd.Series(np.nan, values.index)
    if pd.api.types.is_numeric_dtype(values):
        return values.astype("float64")
    numbers = pd.to_numeric(texts_of(values), errors="coerce").astype("float64")
    others = numbers.isna()
    if others.any():
        texts = _plain(values[others])
        texts = texts.str.replace(r"^\s*(-?\d+),(\d+)\s*$", r"\1.\2", regex=True)
        numbers[others] = pd.to_numeric(texts, errors="coerce").to_numpy(np.float64)
    return numbers


def texts_of(values: pd.Series) -> pd.Series:
    """Return cells as text, a gap as an empty one."""
    return values.astype("str").fillna("")


def _plain(values: pd.Series) -> pd.Series:
    """Return cells as text, with digits and signs of other scripts in ASCII."""
    texts = texts_of(values)
    foreign = ~texts.map(str.isascii).astype(bool)
    if foreign.any():
        texts = texts.copy()
        texts[foreign] = texts[foreign].map(_ascii_digits)
    return texts


def _ascii_digits(text: str) -> str:
    digits = (str(unicodedata.decimal(c)) if c.isdecimal() else c for c in text)
    return "".join(digits).translate(_MARKS)


def is_missing(
    values: pd.Series, labels: Labels | None = None, rubric_id: Iterable[str] = ()
) -> pd.Series:
    """Tell which cells are missing: empty, or NaN, None, n/a, … written out.

    Such a word is not missing where it is a label of the cell's rubric.
    """
    if pd.api.types.is_numeric_dtype(values):
        return values.isna()
    words = texts_of(values).str.strip().str.casefold()
    gaps = values.isna() | words.isin(_MISSING)
    named = {
        r for r, own in (labels or {}).items() if not set(_MISSING).isdisjoint(own)
    }
    if named and gaps.any():
        rows = np.flatnonzero(gaps & values.notna())
        own = np.array([*rubric_id], dtype=object)[rows]
        pairs = zip(own, words.iloc[rows], strict=True)
        is_level = [r in named and w in (labels or {})[r] for r, w in pairs]
        gaps.iloc[rows[is_level]] = False
    return gaps


def as_scores(
    values: pd.Series,
    low: ArrayLike,
    high: ArrayLike,
    labels: Labels | None = None,
    rubric_id: Iterable[str] = (),
    separator: str = ";",
    what: str = "the table",
) -> pd.Series:
    """Read scores or ratings: labels of the rubric, numbers,
    and ``4/5`` on a scale up to 5.

    Parameters
    ----------
    values
        The cells; one number or label each.
    low, high
        The lowest and the highest score, one for each cell or one for all.
    labels, rubric_id
        Rubric → label in lower case → score, and the rubric of each cell. A label that
        is a number counts as its score (grades from 1, the best, to 6); numbers between
        such labels lie between their scores.
    separator
        What separates the values of the file: after ``;`` a comma is a decimal one;
        otherwise ``3,5`` is refused if it may be 3 and 5 as well.
    what
        The table, as an error names it.

    Returns
    -------
    Series
        float64; NaN for anything else.

    Raises
    ------
    ValueError
        A comma may separate decimals or ratings.

    Examples
    --------
    >>> as_scores(pd.Series(["2,5", "4/5", "4/10", "nan"], name="score"), 1, 5).tolist()
    score: 1 values are not plain numbers, such as '4/5', which is read as 4
    [2.5, 4.0, nan, nan]
    >>> grades = {"grade": {"1": 3.0, "2": 2.0, "3": 1.0}}
    >>> as_scores(pd.Series([1, 3, 1.5], name="human"), 1, 3, grades, ["grade"] * 3).tolist()
    human: the numbers are labels of rubric 'grade': 1 = 3, 2 = 2, 3 = 1
    [3.0, 1.0, 2.5]
    """
    out = as_numbers(values)
    if (listed := is_listed(values, low, high, separator, what)).any():
        out[listed] = np.nan
    ids = np.array([*rubric_id], dtype=object) if labels else np.array([], dtype=object)
    if labels:
        _read_numbers_as_labels(out, labels, ids, str(values.name))
    if not (gaps := out.isna()).any():
        return out
    if not separator and labels:
        _name_lost_labels(values, labels, what)
    left = np.flatnonzero(gaps & ~is_missing(values, labels, ids))
    texts = _plain(values.iloc[left]).str.strip()
    shares = texts.str.extract(rf"^({_NUMBER})\s*/\s*({_NUMBER})$").apply(as_numbers)
    tops = np.broadcast_to(np.asarray(high, dtype=np.float64), len(out))[left]
    found = shares[0].where(shares[1] == tops)
    if labels:
        words = texts_of(values.iloc[left]).str.strip().str.casefold()
        named = [labels[r].get(t) for r, t in zip(ids[left], words, strict=True)]
        found = found.fillna(pd.Series(named, texts.index, dtype="float64"))
    if some := int(found.notna().sum()):
        first = found.notna().to_numpy().argmax()
        print(
            f"{values.name}: {some:,} values are not plain numbers, "
            f"such as {texts.iloc[first]!r}, which is read as {found.iloc[first]:g}"
        )
    out.iloc[left] = found.to_numpy(dtype=np.float64)
    return out


def _name_lost_labels(values: pd.Series, labels: Labels, what: str) -> None:
    """Say that cells of a frame may have been labels
    that pandas takes for missing ones.
    """
    words = {word for own in labels.values() for word in own if word in _MISSING}
    if words and (lost := int((values.isna() | (texts_of(values) == "")).sum())):
        print(
            f"{what}: {lost} cells of {values.name!r} are missing, and a level is "
            f"called {min(words)!r}: if that was written there, read the file with "
            "pd.read_csv(…, keep_default_na=False)"
        )


def _read_numbers_as_labels(
    out: pd.Series, labels: Labels, ids: NDArray[Any], column: str
) -> None:
    """Turn numbers into the scores of the labels that they are, where these differ."""
    for rubric_id, levels in labels.items():
        numbers = _numeric(levels)
        if all(number == score for number, score in numbers.items()):
            continue
        rows = np.flatnonzero((ids == rubric_id) & out.notna())
        if not len(rows):
            continue
        given = out.iloc[rows].to_numpy()
        points = sorted(numbers)
        scores = [numbers[point] for point in points]
        steps = np.sign(np.diff(scores))
        if len(numbers) == len(levels) and (steps == steps[0]).all():
            read = np.interp(given, points, scores, np.nan, np.nan)  # a mean of grades
        else:
            read = np.array([numbers.get(one, np.nan) for one in given])
        is_off = np.isnan(read)
        # What is not between labels stays off every scale,
        # so that it is counted or refused.
        read[is_off] = np.where(np.isfinite(given[is_off]), np.inf, given[is_off])
        out.iloc[rows] = read
        listed = ", ".join(f"{point:g} = {numbers[point]:g}" for point in points)
        print(f"{column}: the numbers are labels of rubric {rubric_id!r}: {listed}")


def word_labels(labels: Labels | None) -> Labels | None:
    """Return the labels that are no numbers, for scores that are numbers already."""
    if labels is None:
        return None
    return {
        rubric_id: {
            word: score for word, score in own.items() if word not in _number_words(own)
        }
        for rubric_id, own in labels.items()
    }


def _number_words(own: Mapping[str, float]) -> set[str]:
    is_number = as_numbers(pd.Series([*own], dtype="object")).notna()
    return {word for word, number in zip(own, is_number, strict=True) if number}


def _numeric(own: Mapping[str, float]) -> dict[float, float]:
    """Return the labels of a rubric that are numbers, with their scores."""
    numbers = as_numbers(pd.Series([*own], dtype="object"))
    return {n: s for n, s in zip(numbers, own.values(), strict=True) if n == n}


def is_listed(
    values: pd.Series,
    low: ArrayLike,
    high: ArrayLike,
    separator: str,
    what: str,
    may_be_several: bool = False,
) -> pd.Series:
    """Tell which cells hold several numbers between commas,
    and not one with a decimal comma.

    `may_be_several` says that a cell of the column may hold the ratings of several
    people. A column is read in one way: as decimals if some cell cannot be a list
    (``0,5`` on a scale from 1), as lists if some cell cannot be a decimal (``3,4,4``).

    Raises
    ------
    ValueError
        Both are possible, or neither is for all cells.

    Examples
    --------
    >>> cells = pd.Series(["3,4,4", "3,4", "5"], name="human_ratings")
    >>> is_listed(cells, 1, 5, ";", "a table", may_be_several=True).tolist()
    [True, True, False]
    """
    none = pd.Series(False, values.index)
    if pd.api.types.is_numeric_dtype(values) or pd.api.types.is_bool_dtype(values):
        return none
    texts = _plain(values).str.strip().str.replace(r"\s*,\s*", ",", regex=True)
    has = texts.str.fullmatch(_COMMAS)
    if not has.any():
        return none
    rows = np.flatnonzero(has)
    ends = [
        np.broadcast_to(np.asarray(end, dtype=np.float64), len(values))
        for end in (low, high)
    ]
    pairs = pd.DataFrame(
        {
            "text": texts.iloc[rows].to_numpy(),
            "low": ends[0][rows],
            "high": ends[1][rows],
        }
    ).drop_duplicates()
    decimal = [_may_be_decimal(*row) for row in pairs.itertuples(index=False)]
    listed = [_may_be_list(*row) for row in pairs.itertuples(index=False)]
    spaced = texts_of(values.iloc[rows]).str.contains(r",\s").any()
    is_list, is_decimal = not all(decimal) or spaced, not all(listed)
    if is_list != is_decimal:
        return has if is_list else none
    is_open = not is_list
    if is_open and separator == "," and may_be_several:
        return has
    in_halves = pairs["text"].str.split(",").str[-1].isin(_DECIMALS).all()
    if is_open and separator == ";" and (in_halves or not may_be_several):
        return none
    first = texts.iloc[rows[0]]
    either = f"{first.replace(',', '.', 1)} or {first.replace(',', ' and ')}"
    refuse(what, values, has, f"may be {either}: {_WRITE_COMMAS}")
    raise AssertionError("some cell has a comma")


_WRITE_COMMAS = (
    "write a decimal with a point (3.5), and several ratings with spaces between them "
    "(3 5) in a column human_ratings"
)


def _may_be_decimal(text: str, low: float, high: float) -> bool:
    return (
        text.count(",") == 1
        and "." not in text
        and low <= float(text.replace(",", ".")) <= high
    )


def _may_be_list(text: str, low: float, high: float) -> bool:
    return all(low <= float(part) <= high for part in text.split(","))


def read_ratings(
    items: pd.DataFrame,
    low: ArrayLike,
    high: ArrayLike,
    labels: Labels | None,
    what: str,
    separator: str = ";",
    failed: Sequence[float] = (),
) -> pd.DataFrame:
    """Read mean and single ratings;
    the mean is that of the single ones where it is not given.

    Parameters
    ----------
    items
        With ``human``, ``gold`` and ``human_ratings`` as they were written, where
        given. A cell of several ratings is a text (``3 4 4``), a list, an array, or a
        mapping by rater. A column ``gold`` of texts is renamed, with a line.
    low, high, labels, separator
        As `as_scores` takes them, of each item.
    what
        The table, as an error names it; its rows are named by the index.
    failed
        Numbers that mark an item that nobody rated.

    Raises
    ------
    ValueError
        A rating is not a number, nor a label of the rubric, or is off the scale.

    Examples
    --------
    >>> items = pd.DataFrame({"criterion": ["tone"], "human_ratings": ["3 5"]})
    >>> read_ratings(items, 1, 5, None, "a table")[["human", "human_ratings"]].values.tolist()
    [[4.0, (3.0, 5.0)]]
    """
    every = np.arange(len(items))
    lows, highs = (np.broadcast_to(np.asarray(end), len(items)) for end in (low, high))
    ids = (
        items.get("rubric_id", pd.Series("", items.index))
        .astype("str")
        .to_numpy(dtype=object)
    )
    out = items
    if "gold" in out and _is_text(out["gold"], labels, ids):
        print(
            f"{what}: the column 'gold' holds texts, not ratings, and is kept as "
            "'gold_text'; if it is the right answer, name it: columns={'gold': "
            "'reference'}"
        )
        out = out.rename(columns={"gold": "gold_text"})

    def read(cells: pd.Series, row: NDArray[np.int64]) -> pd.Series:
        if cells.map(np.ndim).any():
            return pd.Series(np.nan, cells.index)
        own = labels if labels and len(row) else None
        numbers = as_scores(
            cells, lows[row], highs[row], own, ids[row], separator, what
        )
        numbers = numbers.mask(numbers.isin([*failed]))
        named = cells.set_axis(items.index[row])
        marked = as_numbers(cells).isin([*failed]).to_numpy()
        bad = (
            numbers.isna().to_numpy()
            & ~marked
            & ~is_missing(cells, own, ids[row]).to_numpy()
        )
        refuse(what, named, bad, _NOT_A_RATING)
        outside = ((numbers < lows[row]) | (numbers > highs[row])).to_numpy()
        if outside.any():
            first = outside.argmax()
            scale = f"{lows[row][first]:g}..{highs[row][first]:g}"
            whose = (
                f", the levels of rubric {ids[row][first]!r}" if ids[row][first] else ""
            )
            refuse(what, named, outside, _OFF_SCALE.format(scale=scale, whose=whose))
        return numbers

    for column in out.columns.intersection(["human", "gold"], sort=False):
        cells, several = out[column], f"{column}_ratings"
        is_several = cells.map(_is_several) | is_listed(
            cells, lows, highs, separator, what
        )
        if is_several.any() and several not in out:
            out = out.rename(columns={column: several})
        else:
            out = out.assign(**{column: read(cells, every).to_numpy()})
    for several in out.columns.intersection(
        ["human_ratings", "gold_ratings"], sort=False
    ):
        out = _with_means(
            out, several, read, labels, ids, (lows, highs, separator, what)
        )
    return out


_NOT_A_RATING = (
    "is not a number, nor a label of its rubric; write it as a number (yes as 1, no as "
    "0), or leave the cell of an unrated text empty; several ratings of a text belong "
    "in 'human_ratings', and a column of something else needs another name: "
    "columns={'human': 'other'}"
)
_OFF_SCALE = (
    "is outside {scale}{whose}; rescale the ratings, and leave the cell of a text that "
    "nobody rated empty (in a log, failed=99 names the number that stands for it)"
)


def _is_text(cells: pd.Series, labels: Labels | None, ids: NDArray[Any]) -> bool:
    """Whether no cell of a column is a number, a label or a list."""
    label_names = set().union(*map(set, (labels or {}).values()))
    written = cells[~is_missing(cells, labels, ids)]
    if (
        written.map(_is_several).any()
        or not len(written)
        or not written.map(type).eq(str).all()
    ):
        return False
    words = written.str.strip().str.casefold()
    return not (
        as_numbers(written).notna() | words.isin(label_names) | words.str.contains("/")
    ).any()


def _with_means(
    items: pd.DataFrame,
    several: str,
    read: Any,
    labels: Labels | None,
    ids: NDArray[Any],
    how: tuple[FloatArray, FloatArray, str, str],
) -> pd.DataFrame:
    """Read single ratings as tuples, and their mean where none is given."""
    mean, every = several.removesuffix("_ratings"), np.arange(len(items))
    cells = items[several].set_axis(every)
    if cells.map(lambda cell: isinstance(cell, tuple)).all() and mean in items:
        return items
    written = cells.map(lambda cell: cell if isinstance(cell, str) else "")
    written = written.str.strip(" ()[]").rename(several).set_axis(items.index)
    listed = is_listed(written, *how, may_be_several=True).to_numpy()
    parts = [
        ratings_in(cell, (labels or {}).get(r, {}), commas)
        for cell, r, commas in zip(cells, ids, listed, strict=True)
    ]
    single = pd.Series(parts, every, dtype="object").explode().rename(several)
    row = single.index.to_numpy()
    rated = read(single, row).set_axis(row).dropna().groupby(level=0)
    found = rated.agg(tuple).to_dict()
    out = items.assign(**{several: [found.get(k) for k in every]})
    if mean not in out:
        out[mean] = rated.mean().reindex(every).to_numpy()
    return out


def _is_several(cell: Any) -> bool:
    if isinstance(cell, str) and cell.strip()[:1] in ("[", "{"):
        cell = _literal(cell.strip())
    return isinstance(cell, list | tuple | set | dict | np.ndarray | pd.Series)


def ratings_in(
    cell: Any, labels: Mapping[str, float], commas: bool = True
) -> list[Any]:
    """Return the single ratings in a cell, in whatever form they were written.

    Examples
    --------
    >>> [ratings_in(cell, {}) for cell in ("3 4", {"ann": 4, "bob": None}, "{'ann': 4}", 5)]
    [[3.0, 4.0], [4, None], [4], [5]]
    """
    if isinstance(cell, str):
        text = cell.strip()
        if text.casefold() in labels:
            return [text]
        if text[:1] in ("[", "{", "(") and (parsed := _literal(text)) is not None:
            return ratings_in(parsed, labels)
        mark = r"[,;|]" if commas else r"[;|]|,(?!\d)|(?<!\d),"
        parts = [part.strip() for part in re.split(mark, text.strip("()[]"))]
        if not all(part.casefold() in labels for part in parts if part):
            parts = re.split(rf"(?:{mark}|[\s()\[\]])+", text)
        return [_number(part, commas) for part in parts]
    if isinstance(cell, dict):
        named = {str(key).casefold(): value for key, value in cell.items()}
        for key in _RATING_KEYS:
            if key in named:
                return ratings_in(named[key], labels)
        return [one for value in cell.values() for one in ratings_in(value, labels)]
    if _is_several(cell):
        return [one for part in cell for one in ratings_in(part, labels)]
    return [cell]


def _literal(text: str) -> Any:
    """Parse JSON or a literal of Python, as other tools write lists into a CSV."""
    try:
        return json.loads(text)
    except ValueError:
        pass
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return None


def _number(text: str, commas: bool) -> Any:
    """Return a number in a list as one; its comma,
    if it has one, is a decimal comma.
    """
    text = text if commas else text.replace(",", ".")
    return float(text) if re.fullmatch(r"-?\d+(?:\.\d+)?", text) else text


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
    """Read ids as text; numbers that were saved with a decimal (``7.0``)
    lose it, with a line.

    So do names their spaces at both ends, which would make two of one.

    Examples
    --------
    >>> as_ids(["7.0", "8.0"], "item_id", "a table")
    a table: the ids in 'item_id' look like decimal numbers: '7.0' is read as '7'
    ['7', '8']
    """
    texts = without_spaces([as_text(name) for name in names], column, what)
    whole = [text.removesuffix(".0") for text in texts]
    if whole == texts or not all(re.fullmatch(r"\d+(\.0)?", text) for text in texts):
        return texts
    changed = [text.removesuffix(".0") for text in texts if text.endswith(".0")]
    for one in set(changed) & set(texts):
        raise ValueError(
            f"{what}: column {column!r} has the ids {one!r} and '{one}.0', which are "
            "the same number; write the id of an item in one way only"
        )
    one = changed[0]
    print(
        f"{what}: the ids in {column!r} look like decimal numbers: '{one}.0' is read "
        f"as {one!r}"
    )
    return whole


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
    """Write a cell as text: a whole number without a decimal,
    a list or mapping as JSON.
    """
    if isinstance(value, float):
        return (
            ""
            if value != value
            else str(int(value))
            if value.is_integer()
            else repr(value)
        )
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if isinstance(value, list | tuple | dict):
        return json.dumps(value, ensure_ascii=False, default=str)
    return "" if value is None or value is pd.NA or value is pd.NaT else str(value)
