"""Files of tables and records: CSV, JSON, JSON lines, Parquet, spreadsheets."""

from __future__ import annotations

import csv
import io
import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from difflib import get_close_matches
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from charset_normalizer import from_bytes

from rubricnb.core.frames import refuse
from rubricnb.core.support.extras import extra
from rubricnb.core.support.shown import shown
from rubricnb.core.support.spelling import one_of
from rubricnb.core.validate import check_text
from rubricnb.files.cells import as_numbers, as_text
from rubricnb.files.logs import Log, log_of, parsed, unpacked
from rubricnb.files.people import join_columns
from rubricnb.files.reading import ROLES, Reading

# Encodings that spreadsheets save, beside UTF-8; cp1252 wins a tie.
_ENCODINGS = [
    "utf_16",
    "utf_16_le",
    "utf_16_be",
    "cp1252",
    "cp1250",
    "cp1251",
    "cp1253",
    "cp1254",
    "cp932",
    "cp949",
    "gb18030",
    "big5",
]
# Words in place of a name in a row below a table that sums up the others.
_SUMMARIES = frozenset(
    [
        "points possible",
        "overall average",
        "grand total",
        "sd",
        "standard deviation",
        "std",
        "average",
        "avg",
        "mean",
        "total",
        "sum",
        "median",
        "mittelwert",
        "durchschnitt",
        "summe",
        "gesamt",
        "moyenne",
        "somme",
        "promedio",
        "media",
        "suma",
    ]
)
_MOST_POINTS = "Points Possible"  # a row of Canvas below its header
_SEPARATORS, _LOOKED_AT = ",;\t", 50  # rows that show how a file separates its values
# share of zero bytes from which a text is UTF-16: of English it has half
_ZEROS_OF_UTF_16 = 0.1
_MOST_COLUMNS, _MOST_CELLS, _MOST_BYTES = 5_000, 50_000_000, 2 * 2**30  # of a table
_HALVES = re.compile("[\ud800-\udfff]")


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
        A CSV with a header, its values separated by commas, semicolons or tabs; or
        ``.jsonl`` or ``.parquet``. Rows and columns without a value are left out.
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
    reading: Reading | None = None,
) -> pd.DataFrame:
    """Give a table's columns our names: those of `columns`, or in lower case.

    Parameters
    ----------
    table, what
        The table, and how an error names it.
    columns, renamed
        The table's names, and names of ours, → the wanted names.

    Raises
    ------
    ValueError
        A name in `columns` is not the table's, or two columns get one name (only
        several ``human_ratings`` are joined: one column a rater).

    Examples
    --------
    >>> table = pd.DataFrame({"Value": [4], "r1": [3], "r2": [5]})
    >>> names = {"Value": "score", "r1": "human_ratings", "r2": "human_ratings"}
    >>> name_columns(table, "a table", names).to_dict("records")
    [{'score': 4, 'human_ratings': {'r1': 3, 'r2': 5}}]
    """
    spelled = {str(name).strip().casefold(): name for name in table}
    decided = {} if reading is None else reading.roles(table)
    columns = {
        name if name in table else spelled.get(name.strip().casefold(), name): new
        for name, new in {**(columns or {}), **decided}.items()
    }
    ours = [name for name in columns if name not in table and columns[name] in table]
    if ours:
        raise ValueError(
            f"columns= names the table's column first: {what} has "
            f"{columns[ours[0]]!r}, so write columns={{{columns[ours[0]]!r}: "
            f"{ours[0]!r}}}"
        )
    for name in columns:
        one_of("column", name, table)
    names = [columns[c] if c in columns else _folded(str(c)) for c in table]
    names = [(renamed or {}).get(name, name) for name in names]
    if reading is not None:
        reading.begin(table, what, names)
    raters = [
        c for c, name in zip(table, names, strict=True) if name == "human_ratings"
    ]
    if len(raters) > 1:
        table = join_columns(table, {"human_ratings": raters})
        names = [*(name for name in names if name != "human_ratings"), "human_ratings"]
    often = Counter(names)
    for name in names:
        if often[name] > 1:
            two = [str(c) for c, own in zip(table, names, strict=True) if own == name]
            raise ValueError(
                f"{what} has two columns that could be {name!r}: "
                f"{', '.join(map(repr, two))}; drop one, or rename it, for example "
                f"columns={{{two[-1]!r}: 'other'}}"
            )
    return table.set_axis(names, axis=1)


def require(table: pd.DataFrame, needed: Sequence[str], what: str) -> None:
    """Raise a ValueError that names the columns missing, and how to name them."""
    has = [str(name) for name in table]
    if lost := [name for name in needed if name not in has]:
        near = [(get_close_matches(name, has, 1, 0.75) or ["…"])[0] for name in lost]
        said = ", ".join(
            f"{own!r}: {name!r}" for own, name in zip(near, lost, strict=True)
        )
        more = (
            "; of one column a criterion: scores=['…', '…']" if "score" in lost else ""
        )
        raise ValueError(
            f"{what} lacks {' and '.join(map(repr, lost))}. Its columns: "
            f"{', '.join(has)}. If one of these holds it, name it: "
            f"columns={{{said}}}{more}"
        )


def _folded(column: str) -> str:
    """Return the name that a column has in a contract, whatever its case."""
    name = column.strip().lower()
    return name if name in ROLES else column


def read_rows(path: Path) -> pd.DataFrame:
    """Read a table or a log: a CSV as text, other files as they are typed; from row 1.

    ``attrs["separator"]`` says what separates its values.
    """
    log = Log([])
    with reading(path):
        match path.suffix.lower():
            case ".csv" | ".tsv" | ".txt":
                table = _read_csv(path)
            case ".jsonl" | ".json" | ".eval":
                log = log_of(_document(path), path.name)
                _check_columns(path, max(map(len, log.rows), default=0))
                refuse_half_characters(log.rows, path)
                table = pd.DataFrame(log.rows)
            case ".parquet":
                table = _read_parquet(path)
            case suffix:
                raise ValueError(
                    f"{path.name or path}: a table is a .csv, .tsv, .txt, .json, "
                    f".jsonl or .parquet, not {suffix or 'a file without an ending'}; "
                    "save a sheet as CSV UTF-8"
                )
        separator = table.attrs.get("separator", ",")
        table = as_rows(table, path.name)
        table.attrs = {
            "separator": separator,
            "scale": log.scale,
            "words": dict(log.words),
        }
    return table


def _document(path: Path) -> Any:
    if path.suffix.lower() == ".eval":
        return unpacked(path)
    if path.suffix.lower() == ".json":
        return parsed(read_text(path), path)
    return _records(path)


def as_rows(table: pd.DataFrame, what: str) -> pd.DataFrame:
    """Number the rows from 1, and leave out blank rows and unnamed columns."""
    names = [shown(str(name).strip()) for name in table.columns]
    table = table.set_axis(names, axis=1)
    table.index = pd.RangeIndex(1, len(table) + 1)
    is_blank = np.ones(len(table), bool)
    unnamed = []
    for place, name in enumerate(names):
        gaps = are_gaps(table.iloc[:, place]).to_numpy()
        is_blank &= gaps
        unnamed.append(name == "" and bool(gaps.all()))
    if is_blank.any() or any(unnamed):
        table = table.loc[~is_blank, ~np.array(unnamed, bool)]
    if len(table) == 0:
        raise ValueError(
            f"{what} has no rows below its header ({', '.join(table.columns)})"
        )
    return without_other_rows(table, what)


def are_gaps(cells: pd.Series) -> pd.Series:
    """Tell which cells are missing, or an empty text."""
    # "==" would compare an array in a cell by its elements.
    if cells.dtype == object:
        is_empty = cells.map(lambda cell: isinstance(cell, str) and cell == "")
        return cells.isna() | is_empty.astype(bool)
    return cells.isna() | (cells == "" if cells.dtype == "str" else False)


def table_of(source: Any) -> tuple[pd.DataFrame, str, str]:
    """Return the raw rows of a file, log, frame or list, its name and separator.

    ``attrs`` has the ``scale`` and the ``words`` of a tool's log.

    Raises
    ------
    ValueError
        It is something else, or a file that cannot be read.

    Examples
    --------
    >>> table_of([{"item_id": "a", "score": 4}])[0].to_dict("records")
    [{'item_id': 'a', 'score': 4}]
    """
    if isinstance(source, str | Path):
        path = Path(source).expanduser()
        table = read_rows(path)
        return table, path.name, str(table.attrs["separator"])
    frame = source.to_pandas() if hasattr(source, "to_pandas") else source
    if isinstance(frame, Mapping) or (
        isinstance(frame, list | tuple)
        and all(isinstance(row, Mapping) for row in frame)
    ):
        frame = pd.DataFrame(frame)
    if not isinstance(frame, pd.DataFrame):
        raise ValueError(
            f"a table is a file, a DataFrame or a list of rows ({{column: value, …}}), "
            f"not {type(source).__name__}"
        )
    frame = frame.rename(columns=lambda name: shown(str(name)))
    return without_other_rows(frame, "the table"), "the table", ""


def without_other_rows(table: pd.DataFrame, what: str) -> pd.DataFrame:
    """Leave out rows that belong to no table: further headers, averages at the end."""
    return _without_summary(_without_headers(table, what), what)


def _without_headers(table: pd.DataFrame, what: str) -> pd.DataFrame:
    """Leave out the two further header rows of a Qualtrics export; a line says so."""
    first = table.iloc[:2].map(
        lambda cell: isinstance(cell, str) and '"ImportId"' in cell
    )
    ids = np.flatnonzero(first.any(axis=1))
    if not len(ids):
        return table
    headers = table.index[: ids[0] + 1]
    print(
        f"{what}: rows {', '.join(map(str, headers))} are further headers (of "
        "Qualtrics) and are left out"
    )
    rest = table.drop(index=headers)
    if not len(rest):
        raise ValueError(
            f"{what} has no rows below its header ({', '.join(table.columns)})"
        )
    return rest


def _without_summary(table: pd.DataFrame, what: str) -> pd.DataFrame:
    """Leave out rows at the end that sum up the others; a line says so."""
    if len(table) > 2 and _summary_word(table.iloc[0]) == _MOST_POINTS:
        row = table.index[0]
        print(f"{what}: row {row} ({_MOST_POINTS!r}) is no text and is left out")
        table = table.iloc[1:]
    while len(table) > 2 and (word := _summary_word(table.iloc[-1])):
        columns = [
            as_numbers(table[c]) for c in table if not table[c].map(np.ndim).any()
        ]
        same = [
            any(
                abs(column.iloc[-1] - f(column.iloc[:-1])) <= 0.051
                for f in (np.mean, np.sum)
            )
            for column in columns
            if column.notna().iloc[-1] and column.iloc[:-1].notna().any()
        ]
        filled = sum(as_text(cell).strip() != "" for cell in table.iloc[-1])
        row = table.index[-1]
        if not (all(same) if same else filled == 1):
            print(
                f"{what}: row {row} is called {word!r}: if it sums up the others, "
                "delete it, since it is read as a text of its own"
            )
            break
        print(f"{what}: row {row} ({word!r}) sums up the others and is left out")
        table = table.iloc[:-1]
    return table


def _summary_word(row: pd.Series) -> str:
    words = [as_text(cell).strip() for cell in row]
    return next((w for w in words if w.casefold().rstrip(":. ") in _SUMMARIES), "")


@contextmanager
def reading(path: Path, *others: Path) -> Iterator[None]:
    """Turn the errors of a malformed file into one ValueError that names the file."""
    try:
        yield
    except (FileNotFoundError, PermissionError, ConnectionError, ImportError):
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
            print(
                f"{path.name}: characters that are zero bytes, {zeros:,} of them, are "
                "left out"
            )
            return text.replace("\0", "")
    found = [*from_bytes(raw, cp_isolation=_ENCODINGS)]
    likely = [guess for guess in found if guess.chaos <= found[0].chaos + 0.05]
    if not likely:
        raise ValueError(
            f"{path.name} is not in UTF-8, and its encoding cannot be recognised; save "
            "it in UTF-8"
        )
    western = any("cp1252" in guess.could_be_from_charset for guess in likely)
    name = "cp1252" if western else likely[0].encoding
    print(
        f"{path.name} is not in UTF-8 and is read as {name}; if that is wrong, save it "
        "in UTF-8"
    )
    return raw.decode(name).removeprefix("\ufeff")


def read_records(path: Path) -> list[dict[str, Any]]:
    """Read JSON lines, a JSON list, or Parquet."""
    if path.suffix.lower() == ".parquet":
        return read_rows(path).to_dict("records")
    rows = _records(path)
    refuse_half_characters(rows, path)
    return rows


def _records(path: Path) -> list[dict[str, Any]]:
    text, whole = read_text(path), path.suffix.lower() == ".json"
    # Not splitlines(): texts hold other separators than "\n".
    lines = enumerate([text] if whole else text.split("\n"), 1)
    read = [parsed(line, path, number) for number, line in lines]
    rows = read[0] if whole else [row for row in read if row is not None]
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise ValueError(
            f"{path.name} does not hold JSON objects only: {{column: value, …}}, …"
        )
    return rows


def refuse_half_characters(rows: Sequence[dict[str, Any]], path: Path) -> None:
    """Raise a ValueError that names the row and the column of an emoji cut in two."""
    if not _HALVES.search(json.dumps(rows, ensure_ascii=False)):
        return
    for number, row in enumerate(rows, 1):
        for column, part in row.items():
            if half := _HALVES.search(json.dumps([column, part], ensure_ascii=False)):
                raise ValueError(
                    f"{path.name}: row {number}, column {column!r}: {half[0]!r} is "
                    "half a character (an emoji cut in two); write the whole "
                    "character, or delete it"
                )


def _read_parquet(path: Path) -> pd.DataFrame:
    """Read a Parquet file, once its head and texts say that it fits into memory.

    A few kilobytes of it may stand for gigabytes: texts are repeated by number.
    """
    parquet, compute, types = (
        extra(f"pyarrow.{name}", "parquet", path.name, "save it as CSV, or ")
        for name in ("parquet", "compute", "types")
    )

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
                lengths = compute.take(
                    compute.binary_length(chunk.dictionary), chunk.indices
                )
                size += compute.sum(lengths).as_py() or 0
    if size > _MOST_BYTES:
        raise ValueError(
            _too_large(
                path, f"{size / 2**30:,.1f} GiB of values", f"{_MOST_BYTES / 2**30:g}"
            )
        )
    return pd.read_parquet(path)


def _check_columns(path: Path, number: int) -> None:
    """Refuse a table so wide that each column by itself would take minutes."""
    if number > _MOST_COLUMNS:
        raise ValueError(_too_large(path, f"{number:,} columns", f"{_MOST_COLUMNS:,}"))


def _too_large(path: Path, has: str, most: str) -> str:
    return (
        f"{path.name} has {has}, more than {most}: keep the columns and rows that are "
        "needed"
    )


def _read_csv(path: Path) -> pd.DataFrame:
    """Read a CSV, all of it as text: someone may have written "NA", "None" or "007"."""
    text = read_text(path)
    told, separator = 0, ""
    # a line for Excel
    if found := re.match(r'"?sep=(.)"?[^\S\n]*\r?\n', text, re.IGNORECASE):
        told, separator = found.end(), found[1]
    text = text[told:]
    separator = separator or _separator(text)
    header = [name.strip() for name in next(_cells(text, separator), [])]
    if not header:
        raise ValueError(f"{path.name} is empty; its first line must name the columns")
    _check_columns(path, len(header))
    _refuse_merged_header(header, text, separator, path.name)
    often = Counter(header)
    for name in filter(None, header):
        if often[name] > 1:
            raise ValueError(
                f"{path.name} has two columns {name!r}; rename or delete one"
            )
    advice = (
        f"put a text that holds {separator!r} between double quotes, and close every "
        "quote"
    )
    try:
        table = pd.read_csv(
            io.StringIO(text, newline=""),
            sep=separator,
            dtype="str",
            keep_default_na=False,
        )
    except pd.errors.ParserError as error:
        raise ValueError(
            f"{path.name} is not a CSV with a header: {error}; {advice}"
        ) from error
    # pandas takes surplus values for an index
    if not isinstance(table.index, pd.RangeIndex):
        raise ValueError(
            f"{path.name}: every row has more values than the header has columns "
            f"({', '.join(header)}); name all columns, and {advice}"
        )
    table = table.set_axis(header, axis=1)
    table.attrs["separator"] = separator
    return table


def _cells(text: str, separator: str) -> Iterator[list[str]]:
    return csv.reader(io.StringIO(text, newline=""), delimiter=separator)


def _separator(text: str) -> str:
    """Return the mark that gives most rows as many cells as the header has."""

    def fit(mark: str) -> tuple[float, int]:
        try:
            rows = [row for row in islice(_cells(text, mark), _LOOKED_AT) if row]
        except csv.Error:
            rows = []
        if len(rows) == 0 or len(rows[0]) < 2:
            return (0.0, 0)
        return (sum(len(row) == len(rows[0]) for row in rows) / len(rows), len(rows[0]))

    return max(_SEPARATORS, key=fit)


def _refuse_merged_header(
    header: list[str], text: str, separator: str, file: str
) -> None:
    """Refuse a first row whose cells were merged over the names in the second one."""
    second = [name.strip() for name in next(islice(_cells(text, separator), 1, 2), [])]
    blank = [
        name for name, below in zip(header, second, strict=False) if not name and below
    ]
    known = {_folded(name) for name in second} & ROLES
    if (
        blank
        and len(set(filter(None, second))) > len(set(filter(None, header)))
        and (known or all(not re.search(r"\d", name) for name in second))
    ):
        raise ValueError(
            f"{file}: {len(blank)} columns have no name, and the names seem to be in "
            f"row 2 ({', '.join(second[:6])}): delete the first row, and give every "
            "column a name of its own (rater 1 under two headings: 'clarity rater 1')"
        )
