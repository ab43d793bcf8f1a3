"""Files of tables and records: CSV, JSON, JSON lines, Parquet, spreadsheets."""

from __future__ import annotations

import csv
import io
import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from charset_normalizer import from_bytes
from numpy.typing import ArrayLike, NDArray

from rubricnb.data.validate import check_text, one_of
from rubricnb.frames import FRAMES, refuse

Labels = Mapping[str, Mapping[str, float]]
# Encodings that spreadsheets save, beside UTF-8; cp1252 wins a tie.
_ENCODINGS = ["utf_16", "utf_16_le", "utf_16_be", "cp1252", "cp1250", "cp1251", "cp1253", "cp1254",
              "cp932", "cp949", "gb18030", "big5"]  # fmt: skip
_MISSING = ("", "nan", "na", "n/a", "none", "null", "<na>", "#n/a")
_KNOWN = {"read", "form"}.union(
    *({column.name for column in FRAMES[frame]} for frame in ("items", "judgments", "rubrics"))
)
_ZEROS_OF_UTF_16 = 0.1  # share of zero bytes from which a text is UTF-16: of English it has half
_MOST_COLUMNS, _MOST_CELLS, _MOST_BYTES = 5_000, 50_000_000, 2 * 2**30  # of a table
_HALVES = re.compile("[\ud800-\udfff]")
_NUMBER = r"-?\d+(?:[.,]\d+)?"


def read_table(
    path: str | Path,
    needed: Sequence[str],
    numbers: Sequence[str],
    columns: Mapping[str, str] | None = None,
) -> pd.DataFrame:
    r"""Read a table with a known schema; everything but numbers is text.

    Parameters
    ----------
    path
        A CSV with a header, its values separated by commas, semicolons or tabs; or ``.jsonl`` or
        ``.parquet``. Rows and columns without a value are left out.
    needed
        Columns it must have, without a gap. Upper and lower case do not matter.
    numbers
        Those of them that hold numbers.
    columns
        The file's names of columns → the names wanted.

    Raises
    ------
    ValueError
        Not such a table; the message names row and column. Rows count from 1.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     file = Path(folder, "a.tsv")
    ...     _ = file.write_text("Item_ID\tpoints\n007\t3.5\n")
    ...     read_table(file, ["item_id", "score"], ["score"], {"points": "score"}).values.tolist()
    [['007', 3.5]]
    """
    path = Path(path)
    table = read_rows(path)
    for column in table.select_dtypes(exclude="str"):
        table[column] = [as_text(value) for value in table[column]]
    table = name_columns(table.fillna(""), path.name, columns)
    require(table, needed, path.name)
    for column in needed:
        check_text(table[column], path.name)
    for column in numbers:
        values = as_numbers(table[column])
        refuse(path.name, table[column], values.isna(), "is not a number")
        table[column] = values
    return table


def name_columns(
    table: pd.DataFrame,
    what: str,
    columns: Mapping[str, str] | None,
    renamed: Mapping[str, str] | None = None,
) -> pd.DataFrame:
    """Give a table's columns our names: those of `columns`, or what they are in lower case.

    Parameters
    ----------
    table, what
        The table, and how an error names it.
    columns, renamed
        The table's names, and names of ours, → the wanted names.

    Raises
    ------
    ValueError
        A name in `columns` is not the table's, or two columns get one name (only several
        ``human_ratings`` are joined: one column a rater).

    Examples
    --------
    >>> table = pd.DataFrame({"Value": [4], "r1": [3], "r2": [5]})
    >>> names = {"Value": "score", "r1": "human_ratings", "r2": "human_ratings"}
    >>> name_columns(table, "a table", names).to_dict("records")
    [{'score': 4, 'human_ratings': [3, 5]}]
    """
    columns = columns or {}
    for name in columns:
        one_of("column", name, table)
    names = [columns[c] if c in columns else _folded(str(c)) for c in table]
    names = [(renamed or {}).get(name, name) for name in names]
    raters = [c for c, name in zip(table, names, strict=True) if name == "human_ratings"]
    if len(raters) > 1:
        ratings = table[raters].to_numpy(dtype=object).tolist()
        table = table.drop(columns=raters).assign(human_ratings=ratings)
        names = [*(name for name in names if name != "human_ratings"), "human_ratings"]
    often = Counter(names)
    for name in names:
        if often[name] > 1:
            two = [str(c) for c, own in zip(table, names, strict=True) if own == name]
            raise ValueError(
                f"{what} has two columns that could be {name!r}: {', '.join(map(repr, two))}; drop "
                f"one, or rename it, for example columns={{{two[-1]!r}: 'other'}}"
            )
    return table.set_axis(names, axis=1)


def require(table: pd.DataFrame, needed: Sequence[str], what: str) -> None:
    """Raise a ValueError that names the columns missing, and how to name them."""
    has = [str(name) for name in table]
    if lost := [name for name in needed if name not in has]:
        near = [(get_close_matches(name, has, 1, 0.75) or ["…"])[0] for name in lost]
        said = ", ".join(f"{own!r}: {name!r}" for own, name in zip(near, lost, strict=True))
        more = "; of one column a criterion: scores=['…', '…']" if "score" in lost else ""
        raise ValueError(
            f"{what} lacks {' and '.join(map(repr, lost))}. Its columns: {', '.join(has)}. If "
            f"one of these holds it, name it: columns={{{said}}}{more}"
        )


def _folded(column: str) -> str:
    """Return the name that a column has in a contract, whatever its case."""
    name = column.strip().lower()
    return name if name in _KNOWN else column


def read_rows(path: Path) -> pd.DataFrame:
    """Read a table: a CSV all as text, other files as they are typed; row 1 is the first one."""
    with reading(path):
        match path.suffix.lower():
            case ".csv" | ".tsv" | ".txt":
                table = _read_csv(path)
            case ".jsonl":
                records = read_records(path)
                _check_columns(path, max(map(len, records), default=0))
                table = pd.DataFrame(records)
            case ".parquet":
                table = _read_parquet(path)
            case suffix:
                raise ValueError(
                    f"{path.name or path}: a table is a .csv, .tsv, .txt, .jsonl or .parquet, not "
                    f"{suffix or 'a file without an ending'}; save a sheet as CSV UTF-8"
                )
        table.columns = table.columns.astype("str").str.strip()
        table.index = pd.RangeIndex(1, len(table) + 1)
        gaps = table.isna() | table.eq("")
        unnamed = (table.columns == "") & gaps.all(axis=0).to_numpy()
        table = table.loc[~gaps.all(axis=1), ~unnamed]
    if len(table) == 0:
        raise ValueError(f"{path.name} has no rows below its header ({', '.join(table.columns)})")
    return table


@contextmanager
def reading(path: Path, *others: Path) -> Iterator[None]:
    """Turn the errors of a malformed file into one ValueError that names the file."""
    try:
        yield
    except (FileNotFoundError, PermissionError, ConnectionError):
        raise
    except Exception as error:
        names = tuple(file.name for file in (path, *others))
        if isinstance(error, ValueError) and str(error).startswith(names):
            raise
        why = " ".join(str(error).split())[:200]
        said = f"it is damaged, or has another form ({type(error).__name__}: {why})"
        said = str(error) if isinstance(error, ValueError) else said
        raise ValueError(f"{path.name}: {said}") from error


def read_text(path: Path) -> str:
    """Read a text file in UTF-8, or in the encoding that its bytes suggest."""
    raw = path.read_bytes()
    with suppress(UnicodeError):
        text = raw.decode("utf-8-sig")
        if not (zeros := text.count("\0")):
            return text
        if zeros < _ZEROS_OF_UTF_16 * len(text):
            print(f"{path.name}: characters that are zero bytes, {zeros:,} of them, are left out")
            return text.replace("\0", "")
    found = [*from_bytes(raw, cp_isolation=_ENCODINGS)]
    likely = [guess for guess in found if guess.chaos <= found[0].chaos + 0.05]
    if not likely:
        raise ValueError(
            f"{path.name} is not in UTF-8, and its encoding cannot be recognised; save it in UTF-8"
        )
    western = any("cp1252" in guess.could_be_from_charset for guess in likely)
    name = "cp1252" if western else likely[0].encoding
    print(f"{path.name} is not in UTF-8 and is read as {name}; if that is wrong, save it in UTF-8")
    return raw.decode(name).removeprefix("\ufeff")


def read_records(path: Path) -> list[dict[str, Any]]:
    """Read JSON lines, a JSON list, or Parquet."""
    if path.suffix.lower() == ".parquet":
        return read_rows(path).to_dict("records")
    text, whole = read_text(path), path.suffix.lower() == ".json"
    # Not splitlines(): texts hold other separators than "\n".
    lines = enumerate([text] if whole else text.split("\n"), 1)
    read = [parsed(line, path, number) for number, line in lines]
    rows = read[0] if whole else [row for row in read if row is not None]
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise ValueError(f"{path.name} does not hold JSON objects only: {{column: value, …}}, …")
    refuse_half_characters(rows, path)
    return rows


def parsed(text: str, path: Path, line: int = 1) -> Any:
    """Parse one JSON document that begins at this line of a file; nothing if it is blank."""
    try:
        return json.loads(text) if text.strip() else None
    except (json.JSONDecodeError, RecursionError) as error:
        at = line + getattr(error, "lineno", 1) - 1
        said = getattr(error, "msg", "it is nested too deeply")
        raise ValueError(f"{path.name}: line {at} is not JSON: {said}") from error


def refuse_half_characters(rows: Sequence[dict[str, Any]], path: Path) -> None:
    """Raise a ValueError that names the row and the column of an emoji cut in two."""
    if not _HALVES.search(json.dumps(rows, ensure_ascii=False)):
        return
    for number, row in enumerate(rows, 1):
        for column, part in row.items():
            if half := _HALVES.search(json.dumps([column, part], ensure_ascii=False)):
                raise ValueError(
                    f"{path.name}: row {number}, column {column!r}: {half[0]!r} is half a "
                    "character (an emoji cut in two); write the whole character, or delete it"
                )


def as_numbers(values: pd.Series) -> pd.Series:
    """Parse numbers, also with a decimal comma; NaN for anything else, True and False included."""
    if pd.api.types.is_bool_dtype(values):
        return pd.Series(np.nan, values.index)
    if pd.api.types.is_numeric_dtype(values):
        return values.astype("float64")
    texts = values.astype("str").str.replace(r"^\s*(-?\d+),(\d+)\s*$", r"\1.\2", regex=True)
    return pd.to_numeric(texts, errors="coerce").astype("float64")


def is_missing(values: pd.Series) -> pd.Series:
    """Tell which cells are missing: empty, or NaN, None, n/a, … written out."""
    if pd.api.types.is_numeric_dtype(values):
        return values.isna()
    return values.isna() | values.astype("str").str.strip().str.lower().isin(_MISSING)


def as_scores(
    values: pd.Series,
    top: ArrayLike,
    labels: Labels | None = None,
    rubric_id: Iterable[str] = (),
) -> pd.Series:
    """Read scores or ratings: numbers, labels of the rubric, and ``4/5`` on a scale up to 5.

    Parameters
    ----------
    values
        The cells.
    top
        The highest score, one for each cell or one for all.
    labels, rubric_id
        Rubric → label in lower case → score, and the rubric of each cell.

    Returns
    -------
    Series
        float64; NaN for anything else.

    Examples
    --------
    >>> as_scores(pd.Series(["2,5", "4/5", "4/10", "nan"], name="score"), 5).tolist()
    score: 1 values are not plain numbers, such as '4/5', which is read as 4
    [2.5, 4.0, nan, nan]
    """
    out = as_numbers(values)
    if not (gaps := out.isna()).any():
        return out
    left = np.flatnonzero(gaps & ~is_missing(values))
    texts = values.iloc[left].astype("str").str.strip()
    shares = texts.str.extract(rf"^({_NUMBER})\s*/\s*({_NUMBER})$").apply(as_numbers)
    tops = np.broadcast_to(np.asarray(top, dtype=np.float64), len(out))[left]
    found = shares[0].where(shares[1] == tops)
    if labels:
        own = np.array([*rubric_id], dtype=object)[left]
        named = [labels[r].get(t) for r, t in zip(own, texts.str.casefold(), strict=True)]
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
    items: pd.DataFrame, top: ArrayLike, labels: Labels | None, what: str
) -> pd.DataFrame:
    """Read mean and single ratings; the mean is that of the single ones where it is not given.

    Parameters
    ----------
    items
        With ``human``, ``gold`` and ``human_ratings`` as they were written, where given.
    top, labels
        The highest rating of each item, and the labels of rubrics, as `as_scores` takes them.
    what
        The table, as an error names it; its rows are named by the index.

    Raises
    ------
    ValueError
        A rating is not a number, nor a label of the rubric.

    Examples
    --------
    >>> items = pd.DataFrame({"criterion": ["tone"], "human_ratings": ["3 5"]})
    >>> read_ratings(items, 5, None, "a table")[["human", "human_ratings"]].values.tolist()
    [[4.0, (3.0, 5.0)]]
    """
    every = np.arange(len(items))
    tops = np.broadcast_to(np.asarray(top), len(items))

    def read(cells: pd.Series, row: NDArray[np.int64]) -> pd.Series:
        own = items.iloc[row]
        numbers = as_scores(cells, tops[row], labels, own.get("rubric_id", ()))
        bad = numbers.isna() & ~is_missing(cells)
        why = "is not a number, nor a label of its rubric; write it as a number (yes as 1, no as "
        why += "0), or leave the cell of an unrated text empty"
        refuse(what, cells.set_axis(own.index), bad, why)
        return numbers

    means = items.columns.intersection(["human", "gold"], sort=False)
    out = items.assign(**{column: read(items[column], every).to_numpy() for column in means})
    if "human_ratings" in items and items["human_ratings"].map(type).isin([str, list]).any():
        split = items["human_ratings"].map(
            lambda r: re.split(r"[\s,;|()\[\]]+", r) if isinstance(r, str) else r
        )
        single = split.set_axis(every).explode()
        row = single.index.to_numpy()
        rated = read(single, row).set_axis(row).dropna().groupby(level=0)
        found = rated.agg(tuple).to_dict()
        out["human_ratings"] = [found.get(k) for k in every]
        if "human" not in items:
            out["human"] = rated.mean().reindex(every).to_numpy()
    return out


def as_ids(names: Sequence[object], column: str, what: str) -> list[str]:
    """Read ids as text; numbers that were saved with a decimal (``7.0``) lose it, with a line.

    Examples
    --------
    >>> as_ids(["7.0", "8.0"], "item_id", "a table")
    a table: the ids in 'item_id' look like decimal numbers: '7.0' is read as '7'
    ['7', '8']
    """
    texts = [as_text(name) for name in names]
    whole = [text.removesuffix(".0") for text in texts]
    if whole == texts or not all(re.fullmatch(r"\d+(\.0)?", text) for text in texts):
        return texts
    changed = [text.removesuffix(".0") for text in texts if text.endswith(".0")]
    for one in set(changed) & set(texts):
        raise ValueError(
            f"{what}: column {column!r} has the ids {one!r} and '{one}.0', which are the same "
            "number; write the id of an item in one way only"
        )
    one = changed[0]
    print(f"{what}: the ids in {column!r} look like decimal numbers: '{one}.0' is read as {one!r}")
    return whole


def as_text(value: object) -> str:
    """Write a cell as text: a whole number without a decimal, a list or mapping as JSON."""
    if isinstance(value, float):
        return "" if value != value else str(int(value)) if value.is_integer() else repr(value)
    if isinstance(value, list | tuple | dict):
        return json.dumps(value, ensure_ascii=False)
    return "" if value is None or value is pd.NA or value is pd.NaT else str(value)


def _read_parquet(path: Path) -> pd.DataFrame:
    """Read a Parquet file, once its head and its texts say that the table fits into the memory.

    A few kilobytes of it may stand for gigabytes: texts are repeated by number.
    """
    from pyarrow import compute, parquet, types

    with parquet.ParquetFile(path) as file:
        head, schema = file.metadata, file.schema_arrow
        groups = [head.row_group(number) for number in range(head.num_row_groups)]
        size = sum(group.total_byte_size for group in groups)
        parts = (group.column(k) for group in groups for k in range(group.num_columns))
        cells = sum(part.num_values for part in parts)  # those in lists, too
    _check_columns(path, head.num_columns)
    if cells > _MOST_CELLS:
        raise ValueError(_too_large(path, f"{cells:,} values", f"{_MOST_CELLS:,}"))
    texts = [field.name for field in schema if types.is_string(field.type)]
    if size <= _MOST_BYTES:
        table = parquet.read_table(path, read_dictionary=texts)
        for column in table.columns:  # a text takes its length for each row that has it
            for chunk in column.chunks if types.is_dictionary(column.type) else ():
                if not types.is_string(column.type.value_type):
                    continue
                lengths = compute.take(compute.binary_length(chunk.dictionary), chunk.indices)
                size += compute.sum(lengths).as_py() or 0
    if size > _MOST_BYTES:
        raise ValueError(
            _too_large(path, f"{size / 2**30:,.1f} GiB of values", f"{_MOST_BYTES / 2**30:g}")
        )
    return pd.read_parquet(path)


def _check_columns(path: Path, number: int) -> None:
    """Refuse a table so wide that each column by itself would take minutes."""
    if number > _MOST_COLUMNS:
        raise ValueError(_too_large(path, f"{number:,} columns", f"{_MOST_COLUMNS:,}"))


def _too_large(path: Path, has: str, most: str) -> str:
    return f"{path.name} has {has}, more than {most}: keep the columns and rows that are needed"


def _read_csv(path: Path) -> pd.DataFrame:
    """Read a CSV, all of it as text: someone may have written "NA", "None" or "007"."""
    text = read_text(path)
    headers = {
        mark: next(csv.reader(io.StringIO(text, newline=""), delimiter=mark), []) for mark in ",;\t"
    }
    separator = max(headers, key=lambda mark: len(headers[mark]))
    header = [name.strip() for name in headers[separator]]
    if not header:
        raise ValueError(f"{path.name} is empty; its first line must name the columns")
    _check_columns(path, len(header))
    often = Counter(header)
    for name in filter(None, header):
        if often[name] > 1:
            raise ValueError(f"{path.name} has two columns {name!r}; rename or delete one")
    advice = f"put a text that holds {separator!r} between double quotes, and close every quote"
    try:
        table = pd.read_csv(
            io.StringIO(text, newline=""), sep=separator, dtype="str", keep_default_na=False
        )
    except pd.errors.ParserError as error:
        raise ValueError(f"{path.name} is not a CSV with a header: {error}; {advice}") from error
    if not isinstance(table.index, pd.RangeIndex):  # pandas takes surplus values for an index
        raise ValueError(
            f"{path.name}: every row has more values than the header has columns "
            f"({', '.join(header)}); name all columns, and {advice}"
        )
    return table.set_axis(header, axis=1)
