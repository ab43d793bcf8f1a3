"""Files of tables and records: CSV, JSON, JSON lines, Parquet, spreadsheets."""

from __future__ import annotations

import csv
import io
import json
import re
import struct
import zipfile
import zlib
from collections.abc import Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
from charset_normalizer import from_bytes
from numpy.typing import ArrayLike, NDArray

from rubricnb.data.validate import check_text, nearest
from rubricnb.frames import FRAMES

# What spreadsheets save, beside UTF-8; cp1252 is taken wherever it is as likely as another.
_ENCODINGS = ["utf_16", "utf_16_le", "utf_16_be", "cp1252", "cp1250", "cp1251", "cp1253", "cp1254",
              "cp932", "cp949", "gb18030", "big5"]  # fmt: skip
_MISSING = ("", "nan", "na", "n/a", "none", "null", "<na>", "#n/a")
_OFTEN = {
    "instruction": ("question", "prompt", "input", "query", "user_input"),
    "response": ("answer", "output", "completion", "prediction"),
    "score": ("value", "rating", "grade", "preference"),
    "item_id": ("id", "traceid", "trace_id", "question_id", "request_id", "user_input"),
}
_NUMBER = r"-?\d+(?:[.,]\d+)?"


def read_table(
    path: str | Path,
    needed: Sequence[str],
    numbers: Sequence[str],
    columns: Mapping[str, str] | None = None,
    encoding: str | None = None,
) -> pd.DataFrame:
    r"""Read a table in a known schema: all as text but its numbers.

    Parameters
    ----------
    path
        A CSV with a header, its values separated by commas, semicolons or tabs (a first line
        ``sep=;`` is understood); or ``.jsonl``, ``.parquet``, or ``.xlsx`` where openpyxl is
        installed. Rows and columns without a value are left out.
    needed
        Columns it must have, without a gap. Upper and lower case do not matter.
    numbers
        Those of them that hold numbers.
    columns
        The file's names of columns → the names wanted.
    encoding
        Of a text file. Default: UTF-8, or the encoding that its bytes suggest, with a line.

    Raises
    ------
    ValueError
        Not such a table; the message names row and column. Rows count from 1.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     file = Path(folder, "a.tsv")
    ...     _ = file.write_text("ID\tpoints\n007\t3.5\n")
    ...     read_table(file, ["id", "score"], ["score"], {"points": "score"}).values.tolist()
    [['007', 3.5]]
    """
    path = Path(path)
    table = read_rows(path, encoding)
    for column in table.select_dtypes(exclude="str"):
        table[column] = [as_text(value) for value in table[column]]
    table = name_columns(table.fillna(""), path.name, columns, needed)
    for column in needed:
        check_text(table[column], path.name)
    for column in numbers:
        values = as_numbers(table[column])
        if values.isna().any():
            row = values.isna().idxmax()
            raise ValueError(
                f"{path.name}: row {row}, column {column!r}: {table[column][row]!r} is not a number"
            )
        table[column] = values
    return table


def name_columns(
    table: pd.DataFrame, what: str, columns: Mapping[str, str] | None, needed: Sequence[str] = ()
) -> pd.DataFrame:
    """Give a table's columns the names that are needed or known, whatever their case.

    Raises
    ------
    ValueError
        A name in `columns` is not the table's, two columns get one name (only several
        ``human_ratings`` are joined: one column a rater), or a column is missing.

    Examples
    --------
    >>> table = pd.DataFrame({"Value": [4], "r1": [3], "r2": [5]})
    >>> names = {"Value": "score", "r1": "human_ratings", "r2": "human_ratings"}
    >>> name_columns(table, "a table", names, ["score"]).to_dict("records")
    [{'score': 4, 'human_ratings': [3, 5]}]
    """
    columns = columns or {}
    for name in columns:
        if name not in table:
            has = ", ".join(map(repr, table))
            raise ValueError(
                f"{what} has no column {name!r}, which columns= names{nearest(name, table)} "
                f"It has: {has}"
            )
    known = {*needed, "score", "read", "form"}
    names = [str(columns[c]) if c in columns else _folded(str(c), known) for c in table]
    raters = [name == "human_ratings" for name in names]
    if sum(raters) > 1:
        ratings = table.loc[:, raters]
        table, names = table.loc[:, [not r for r in raters]], [*np.array(names)[~np.array(raters)]]
        table = table.assign(human_ratings=list(map(list, ratings.to_numpy(dtype=object))))
        names.append("human_ratings")
    for name in names:
        if names.count(name) > 1:
            two = [str(c) for c, own in zip(table, names, strict=True) if own == name]
            raise ValueError(
                f"{what} has two columns that could be {name!r}: {', '.join(map(repr, two))}; drop "
                f"one, or rename it, such as columns={{{two[-1]!r}: 'other'}}"
            )
    out = table.set_axis(names, axis=1)
    require(out, needed, what)
    return out


def require(table: pd.DataFrame, needed: Sequence[str], what: str) -> None:
    """Raise a ValueError that names the columns missing, and how to name them."""
    names = [str(name) for name in table]
    if lost := [name for name in needed if name not in names]:
        lower = {name.lower(): name for name in names}
        hints = {n: next((lower[o] for o in _OFTEN.get(n, ()) if o in lower), "…") for n in lost}
        near = [nearest(name, names) for name in lost if hints[name] == "…"]
        said = next((text for text in near if text != "."), ".")
        raise ValueError(
            f"{what} lacks the column{'s' if len(lost) > 1 else ''} "
            f"{' and '.join(map(repr, lost))}{said} It has: {', '.join(names)}. Say which of them "
            f"it is: columns={{{', '.join(f'{own!r}: {n!r}' for n, own in hints.items())}}}"
        )


def _folded(column: str, known: set[str]) -> str:
    """Return the name that a column has in a contract or among those known, without its case."""
    name = column.strip().lower()
    contracts = (c for frame in ("items", "judgments", "rubrics") for c in FRAMES[frame])
    return name if name in known or any(c.matches(name) for c in contracts) else column


def read_rows(path: Path, encoding: str | None = None) -> pd.DataFrame:
    """Read a table: a CSV all as text, other files as they are typed; row 1 is the first one."""
    with reading(path):
        match path.suffix.lower():
            case ".csv" | ".tsv" | ".txt":
                table = _read_csv(path, encoding)
            case ".jsonl" | ".ndjson":
                table = pd.DataFrame(read_json(path, encoding))
            case ".parquet":
                table = pd.read_parquet(path)
            case ".xlsx":
                table = _read_sheet(path)
            case suffix:
                raise ValueError(
                    f"{path.name}: a table is a .csv, .tsv, .txt, .jsonl, .parquet or .xlsx, not "
                    f"{suffix or 'a file without an ending'}"
                )
        table.columns = table.columns.astype("str").str.strip()
        table.index = pd.RangeIndex(1, len(table) + 1)
        gaps = table.isna() | table.eq("")
        unnamed = table.columns.str.match(r"(Unnamed: \d+)?$")
        table = table.loc[~gaps.all(axis=1), ~(unnamed & gaps.all(axis=0).to_numpy())]
    if len(table) == 0:
        has = ", ".join(table.columns)
        raise ValueError(f"{path.name} has no rows below its header ({has})")
    return table


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Turn what a malformed file raises into one ValueError that names it."""
    try:
        yield
    except (
        *(ValueError, LookupError, TypeError, AttributeError, RecursionError, ArithmeticError),
        *(EOFError, OSError, csv.Error, zipfile.BadZipFile, zlib.error, struct.error),
        pa.ArrowException,
    ) as error:
        is_named = isinstance(error, ValueError) and str(error).startswith(path.name)
        if is_named or (isinstance(error, OSError) and error.filename):
            raise
        if isinstance(error, RecursionError):
            raise ValueError(f"{path.name} is nested too deeply to be read") from None
        raise ValueError(
            f"{path.name} is damaged, or not what its ending says "
            f"({type(error).__name__}: {str(error)[:200]})"
        ) from error


def read_text(path: Path, encoding: str | None = None) -> str:
    """Read a text file in UTF-8, in a named encoding, or in the one that its bytes suggest."""
    raw = path.read_bytes()
    try:
        text = raw.decode(encoding or "utf-8-sig")
        if encoding or "\0" not in text:
            return text.removeprefix("\ufeff")
    except (UnicodeError, LookupError) as error:
        if encoding:
            raise ValueError(
                f"{path.name} cannot be read as {encoding!r} ({error}); leave encoding= out, or "
                "save the file in UTF-8"
            ) from error
    found = [*from_bytes(raw, cp_isolation=_ENCODINGS)]
    likely = [m for m in found if m.chaos <= found[0].chaos + 0.05]
    if not likely:
        raise ValueError(
            f"{path.name} is not in UTF-8, nor in another encoding that can be told; save it in "
            "UTF-8, or name the encoding: encoding='…'"
        )
    best = next((m for m in likely if "cp1252" in m.could_be_from_charset), likely[0])
    name = "cp1252" if "cp1252" in best.could_be_from_charset else best.encoding
    others = [m.encoding for m in likely if m is not best]
    doubt = f"it could be {' or '.join(others)}; " if others else ""
    print(f"{path.name} is not in UTF-8 and is read as {name}; {doubt}encoding='…' decides")
    return raw.decode(name).removeprefix("\ufeff")


def read_records(path: Path, needed: Sequence[str]) -> list[dict[str, Any]]:
    """Read JSON or Parquet, where each record has what is `needed`.

    ``info.id`` is the ``id`` in ``info``; of ``a|b`` one is enough.
    """
    parquet = path.suffix.lower() == ".parquet"
    rows = read_rows(path).to_dict("records") if parquet else read_json(path)
    if not rows:
        raise ValueError(f"{path.name} holds no record; each needs {', '.join(needed)}")
    for number, row in enumerate(rows, 1):
        for names in needed:
            if not any(_holds(row, name.split(".")) for name in names.split("|")):
                raise ValueError(
                    f"{path.name}: record {number} lacks {names.replace('|', ' or ')!r}; it needs "
                    f"{', '.join(needed)}"
                )
    return rows


def _holds(part: Any, keys: list[str]) -> bool:
    return not keys or (
        isinstance(part, dict) and keys[0] in part and _holds(part[keys[0]], keys[1:])
    )


def read_json(path: Path, encoding: str | None = None) -> list[dict[str, Any]]:
    """Read JSON lines, or a JSON list."""
    text, whole = read_text(path, encoding), path.suffix.lower() == ".json"
    # Not splitlines(): texts hold other separators than "\n".
    lines = enumerate([text] if whole else text.split("\n"), 1)
    read = [parsed(line, path, number) for number, line in lines]
    rows = read[0] if whole else read
    if not isinstance(rows, list):
        raise ValueError(f"{path.name} holds no list of records but a {type(rows).__name__}")
    for number, row in enumerate(rows, 1):
        if not isinstance(row, dict | None):
            raise ValueError(f"{path.name}: line {number} is no JSON object, {{column: value, …}}")
        if row and re.search(r"\\u[dD][89a-fA-F]", text):
            _refuse_half_characters(row, path, number)
    return [row for row in rows if row]


def parsed(text: str, path: Path, line: int = 1) -> Any:
    """Read one JSON document of a file, which begins at this line; nothing where it is blank."""
    try:
        return json.loads(text) if text.strip() else None
    except json.JSONDecodeError as error:
        at = line + error.lineno - 1
        raise ValueError(f"{path.name}: line {at} is not JSON: {error.msg}") from error
    except RecursionError:
        raise ValueError(f"{path.name}: line {line} is nested too deeply to be read") from None


def _refuse_half_characters(row: dict[str, Any], path: Path, number: int) -> None:
    for column, part in row.items():
        if half := re.search("[\ud800-\udfff]", json.dumps([column, part], ensure_ascii=False)):
            raise ValueError(
                f"{path.name}: row {number}, column {column!r}: {half[0]!r} is half a character (an "
                "emoji cut in two); write the whole one, or leave it out"
            )


def as_numbers(values: pd.Series) -> pd.Series:
    """Read numbers, also with a decimal comma; NaN for what is none, as True and False."""
    if pd.api.types.is_bool_dtype(values):
        return pd.Series(np.nan, values.index)
    if pd.api.types.is_numeric_dtype(values):
        return values.astype("float64")
    texts = values.astype("str").str.replace(r"^\s*(-?\d+),(\d+)\s*$", r"\1.\2", regex=True)
    return pd.to_numeric(texts, errors="coerce").astype("float64")


def is_missing(values: pd.Series) -> pd.Series:
    """Say where there is no value: an empty cell, or NaN, None, n/a, … written out."""
    if pd.api.types.is_numeric_dtype(values):
        return values.isna()
    return values.isna() | values.astype("str").str.strip().str.lower().isin(_MISSING)


def as_scores(
    values: pd.Series,
    top: ArrayLike,
    rubric_id: Sequence[Hashable] | None = None,
    rubrics: pd.DataFrame | None = None,
) -> pd.Series:
    """Read scores or ratings: numbers, labels of the rubric, and ``4/5`` on a scale up to 5.

    Parameters
    ----------
    values
        The cells.
    top
        The highest score, one for each cell or one for all.
    rubric_id
        The rubric of each cell.
    rubrics
        Their levels, with a column ``label`` where these are not numbers.

    Returns
    -------
    Series
        float64; NaN for what is none of these.

    Examples
    --------
    >>> as_scores(pd.Series(["2,5", "4/5", "4/10", "nan"], name="score"), 5).tolist()
    score: 1 cells are missing: they say 'nan'
    score: 1 values are not plain numbers, such as '4/5', which is read as 4
    [2.5, 4.0, nan, nan]
    """
    out = as_numbers(values)
    if not (gaps := out.isna()).any():
        return out
    missing = is_missing(values)
    words = values[missing].dropna().astype("str").str.strip()
    if (words != "").any():
        words = words[words != ""]
        print(f"{values.name}: {len(words):,} cells are missing: they say {words.iloc[0]!r}")
    left = np.flatnonzero(gaps & ~missing)
    texts = values.iloc[left].astype("str").str.strip()
    shares = texts.str.extract(rf"^({_NUMBER})\s*/\s*({_NUMBER})$").apply(as_numbers)
    tops = np.broadcast_to(np.asarray(top, dtype=np.float64), len(out))[left]
    found = shares[0].where(shares[1] == tops)
    if rubrics is not None and "label" in rubrics and rubric_id is not None:
        labels = rubrics["label"].astype("str").str.casefold()
        known = dict(
            zip(zip(rubrics["rubric_id"], labels, strict=True), rubrics["score"], strict=True)
        )
        ids = np.asarray(rubric_id, dtype=object)[left]
        named = [known.get(key) for key in zip(ids, texts.str.casefold(), strict=True)]
        found = found.fillna(pd.Series(named, texts.index, dtype="float64"))
    if some := int(found.notna().sum()):
        first = found.notna().to_numpy().argmax()
        print(
            f"{values.name}: {some:,} values are not plain numbers, "
            f"such as {texts.iloc[first]!r}, which is read as {found.iloc[first]:g}"
        )
    out.iloc[left] = found.to_numpy(dtype=np.float64)
    return out


def read_ratings(
    items: pd.DataFrame,
    top: ArrayLike,
    what: str,
    rubrics: pd.DataFrame | None = None,
    rows: Sequence[object] | None = None,
) -> None:
    """Read mean and single ratings; the mean is that of the single ones where it is not given.

    Parameters
    ----------
    items
        Its columns ``human``, ``gold`` and ``human_ratings`` are replaced.
    top, rubrics
        The highest rating of each item; its rubric, whose labels may be ratings.
    what, rows
        The table and its rows, as an error names them; default: the index.

    Raises
    ------
    ValueError
        A rating is not a number, nor a label of the rubric.

    Examples
    --------
    >>> items = pd.DataFrame({"criterion": ["tone"], "human_ratings": ["3 5"]})
    >>> read_ratings(items, 5, "a table")
    >>> items.human.tolist(), items.human_ratings.tolist()
    ([4.0], [(3.0, 5.0)])
    """
    every = np.arange(len(items))
    tops, rows = np.broadcast_to(np.asarray(top), len(items)), items.index if rows is None else rows

    def read(cells: pd.Series, row: NDArray[np.int64]) -> pd.Series:
        rubric_id = items["rubric_id"].iloc[row] if "rubric_id" in items else None
        numbers = as_scores(cells, tops[row], rubric_id, rubrics)
        bad = np.flatnonzero(numbers.isna() & ~is_missing(cells))
        if len(bad):
            at = row[bad[0]]
            raise ValueError(
                f"{what}: row {[*rows][at]}, column {cells.name!r} "
                f"({items['criterion'].iloc[at]}): {cells.iloc[bad[0]]!r} is not a number, nor a "
                "label of the rubric; leave the cell of a text that nobody rated empty"
            )
        return numbers

    for column in items.columns.intersection(["human", "gold"], sort=False):
        items[column] = read(items[column], every).to_numpy()
    if "human_ratings" in items and items["human_ratings"].map(type).isin([str, list]).any():
        cells = [
            re.split(r"[\s,;|]+", c) if isinstance(c, str) else c for c in items["human_ratings"]
        ]
        cells = [[*c] if isinstance(c, list | tuple) else [] for c in cells]
        row = np.repeat(every, [*map(len, cells)])
        single = pd.Series(
            [c for parts in cells for c in parts], name="human_ratings", dtype=object
        )
        single = single.map(lambda c: c.strip("()[]") if isinstance(c, str) else c)
        rated = read(single, row).set_axis(row).dropna().groupby(level=0)
        found = rated.agg(tuple).to_dict()
        items["human_ratings"] = [found.get(k) for k in every]
        if "human" not in items:
            items["human"] = rated.mean().reindex(every).to_numpy()


def as_ids(names: Sequence[object], column: str, what: str) -> list[str]:
    """Read ids as text; numbers that were saved with a decimal (``7.0``) lose it, with a line.

    Examples
    --------
    >>> as_ids(["7.0", "8.0"], "item_id", "a table")
    a table: the ids in 'item_id' look like decimal numbers: '7.0' is read as '7'
    ['7', '8']
    """
    texts = [as_text(name) for name in names]
    if not any(text.endswith(".0") for text in texts):
        return texts
    if not all(re.fullmatch(r"\d+(\.0)?", text) for text in texts):
        return texts
    whole, known = [text.removesuffix(".0") for text in texts], set(texts)
    for one, other in zip(whole, texts, strict=True):
        if one != other and one in known:
            raise ValueError(
                f"{what}: column {column!r} has the ids {one!r} and {other!r}, which are one "
                "number; write an item's id in one way, or give another item another id"
            )
    one, other = next((o, t) for o, t in zip(whole, texts, strict=True) if o != t)
    print(f"{what}: the ids in {column!r} look like decimal numbers: {other!r} is read as {one!r}")
    return whole


def as_text(value: object) -> str:
    """Write a cell as text: a whole number without a decimal, a list or mapping as JSON."""
    if isinstance(value, float):
        return "" if value != value else str(int(value)) if value.is_integer() else repr(value)
    if isinstance(value, list | tuple | dict):
        return json.dumps(value, ensure_ascii=False)
    return "" if value is None or value is pd.NA or value is pd.NaT else str(value)


def _read_csv(path: Path, encoding: str | None) -> pd.DataFrame:
    text = read_text(path, encoding)
    first, _, rest = text.partition("\n")
    named = re.fullmatch(r'"?sep=(.)"?\s*', first)  # what Excel writes and reads
    text = rest if named else text
    headers = {
        mark: next(csv.reader(io.StringIO(text, newline=""), delimiter=mark), [])
        for mark in (named[1] if named else ",;\t")
    }
    separator = max(headers, key=lambda mark: len(headers[mark]))
    _refuse_two_names(headers[separator], path)
    try:
        # All as text: "NA", "None" and "007" are texts someone wrote.
        return pd.read_csv(
            io.StringIO(text, newline=""), sep=separator, dtype="str", keep_default_na=False
        )
    except pd.errors.EmptyDataError as error:
        raise ValueError(f"{path.name} is empty; its first line must name the columns") from error
    except pd.errors.ParserError as error:
        at = re.search(r"Expected (\d+) fields in line (\d+), saw (\d+)", str(error))
        said = (
            f"line {at[2]} has {at[3]} values and the header {at[1]}; put a text that holds "
            f"{separator!r} between double quotes"
            if at
            else f"{error}; is a double quote left open?"
        )
        raise ValueError(f"{path.name} is not a CSV with a header: {said}") from error


def _read_sheet(path: Path) -> pd.DataFrame:
    try:
        cells = pd.read_excel(path, engine="openpyxl", header=None, keep_default_na=False)
    except ImportError as error:
        raise ValueError(
            f"{path.name}: to read .xlsx, install openpyxl (pip install openpyxl); or save "
            "the sheet as CSV UTF-8"
        ) from error
    header = [as_text(name) for name in cells.iloc[0]] if len(cells) else []
    _refuse_two_names(header, path)
    return cells.iloc[1:].set_axis(header, axis=1).infer_objects()


def _refuse_two_names(header: Sequence[str], path: Path) -> None:
    names = [name.strip() for name in header]
    for name in filter(None, names):
        if names.count(name) > 1:
            raise ValueError(
                f"{path.name} has two columns {name!r}; rename or delete one, so that it is clear "
                "which is meant"
            )
