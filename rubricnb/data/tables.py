"""Files of tables and records: CSV, JSON, JSON lines, Parquet, spreadsheets."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from rubricnb.data.validate import check_text, nearest


def read_table(path: str | Path, needed: Sequence[str], numbers: Sequence[str]) -> pd.DataFrame:
    r"""Read a table in a known schema: all as text but its numbers.

    Parameters
    ----------
    path
        A CSV in UTF-8 with a header, its values separated by commas, semicolons or tabs (a first
        line ``sep=;`` is understood); or ``.jsonl``, ``.parquet``, or ``.xlsx`` where
        openpyxl is installed. Rows and columns without a value are left out.
    needed
        Columns it must have, without a gap.
    numbers
        Those of them that hold numbers.

    Raises
    ------
    ValueError
        Not such a table; the message names row and column. Rows count from 1.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     file = Path(folder, "a.tsv")
    ...     _ = file.write_text("id\tscore\n007\t3.5\n")
    ...     read_table(file, ["id", "score"], ["score"]).values.tolist()
    [['007', 3.5]]
    """
    path = Path(path)
    table = read_rows(path)
    for column in table.select_dtypes(exclude="str"):
        table[column] = [_as_text(value) for value in table[column]]
    table = table.fillna("")
    for column in needed:
        if column not in table:
            raise ValueError(
                f"{path.name} lacks the column {column!r}{nearest(column, table.columns)} "
                f"It has: {', '.join(table.columns)}"
            )
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


def read_rows(path: Path) -> pd.DataFrame:
    """Read a table: a CSV all as text, other files as they are typed; row 1 is the first one."""
    match path.suffix.lower():
        case ".csv" | ".tsv" | ".txt":
            table = _read_csv(path)
        case ".jsonl" | ".ndjson":
            table = pd.DataFrame(read_json(path))
        case ".parquet":
            table = pd.read_parquet(path)
        case ".xlsx":
            try:
                table = pd.read_excel(path, engine="openpyxl", keep_default_na=False)
            except ImportError as error:
                raise ValueError(
                    f"{path.name}: to read .xlsx, install openpyxl (pip install openpyxl); or save "
                    "the sheet as CSV UTF-8"
                ) from error
        case suffix:
            raise ValueError(
                f"{path.name}: a table is a .csv, .tsv, .jsonl, .parquet or .xlsx, not "
                f"{suffix or 'a file without an ending'}"
            )
    table.columns = table.columns.astype("str").str.strip()
    table.index = pd.RangeIndex(1, len(table) + 1)
    gaps = table.isna() | table.eq("")
    unnamed = table.columns.str.match(r"(Unnamed: \d+)?$")
    table = table.loc[~gaps.all(axis=1), ~(unnamed & gaps.all(axis=0).to_numpy())]
    if len(table) == 0:
        raise ValueError(f"{path.name} has no rows below its header ({', '.join(table.columns)})")
    return table


def read_records(path: Path, needed: Sequence[str]) -> list[dict[str, Any]]:
    """Read JSON or Parquet, where each record has what is `needed` (``info.id``: in ``info``)."""
    parquet = path.suffix.lower() == ".parquet"
    rows = read_rows(path).to_dict("records") if parquet else read_json(path)
    if not rows:
        raise ValueError(f"{path.name} holds no record; each needs {', '.join(needed)}")
    for number, row in enumerate(rows, 1):
        for name in needed:
            part: Any = row
            for key in name.split("."):
                if not isinstance(part, dict) or key not in part:
                    raise ValueError(
                        f"{path.name}: record {number} lacks {name!r}; it needs {', '.join(needed)}"
                    )
                part = part[key]
    return rows


def read_json(path: Path) -> list[dict[str, Any]]:
    """Read JSON lines, or a JSON list."""
    text, whole = path.read_text(encoding="utf-8-sig"), path.suffix.lower() == ".json"
    # Not splitlines(): texts hold other separators than "\n".
    lines = enumerate([text] if whole else text.split("\n"), 1)
    read = [parsed(line, path, number) for number, line in lines]
    rows = read[0] if whole else read
    if not isinstance(rows, list):
        raise ValueError(f"{path.name} holds no list of records but a {type(rows).__name__}")
    for number, row in enumerate(rows, 1):
        if not isinstance(row, dict | None):
            raise ValueError(f"{path.name}: line {number} is no JSON object, {{column: value, …}}")
    return [row for row in rows if row]


def parsed(text: str, path: Path, line: int = 1) -> Any:
    """Read one JSON document of a file, which begins at this line; nothing where it is blank."""
    try:
        return json.loads(text) if text.strip() else None
    except json.JSONDecodeError as error:
        at = line + error.lineno - 1
        raise ValueError(f"{path.name}: line {at} is not JSON: {error.msg}") from error


def as_numbers(values: pd.Series) -> pd.Series:
    """Read numbers, also with a decimal comma; NaN for what is none."""
    if pd.api.types.is_numeric_dtype(values):
        return values.astype("float64")
    texts = values.astype("str").str.replace(r"^\s*(-?\d+),(\d+)\s*$", r"\1.\2", regex=True)
    return pd.to_numeric(texts, errors="coerce").astype("float64")


def _as_text(value: object) -> str:
    if isinstance(value, float):
        return "" if value != value else f"{value:g}" if value.is_integer() else repr(value)
    if isinstance(value, list | tuple | dict):
        return json.dumps(value, ensure_ascii=False)
    return "" if value is None or value is pd.NA or value is pd.NaT else str(value)


def _read_csv(path: Path) -> pd.DataFrame:
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            first = file.readline()
            named = re.fullmatch(r'"?sep=(.)"?\s*', first)  # what Excel writes and reads
            header = file.readline() if named else first
        split = {mark: len(next(csv.reader([header], delimiter=mark), [])) for mark in ",;\t"}
        separator = named[1] if named else max(split, key=lambda mark: split[mark])
        # All as text: "NA", "None" and "007" are texts someone wrote.
        return pd.read_csv(
            path,
            sep=separator,
            dtype="str",
            keep_default_na=False,
            encoding="utf-8-sig",
            skiprows=1 if named else 0,
        )
    except UnicodeDecodeError as error:
        raise ValueError(f"{path.name} is not in UTF-8 ({error}); save it as CSV UTF-8") from error
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
