"""Files of tables and records: CSV, JSON, JSON lines, Parquet, spreadsheets."""

from __future__ import annotations

import io
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from difflib import get_close_matches
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import pandas as pd
from charset_normalizer import from_bytes

from rubricnb.core.frames import refuse
from rubricnb.core.support.extras import extra
from rubricnb.core.support.shown import shown
from rubricnb.core.support.spelling import one_of
from rubricnb.core.support.types import Options, Records
from rubricnb.core.validate import check_text
from rubricnb.files.cells import as_numbers, as_text
from rubricnb.files.logs import log_of, parsed, unpacked
from rubricnb.files.people import columns_of_people, join_columns
from rubricnb.files.reading import ROLES, Reading, written_out

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
_NO_TEXT = re.compile(
    "(?i)points possible|overall average|grand total|sd|std|standard deviation|average"
    "|avg|mean|total|sum|median|mittelwert|durchschnitt|summe|gesamt|moyenne|somme"
    '|promedio|media|suma|.*"ImportId".*'
)
"""Words in place of a name in a row that sums up the others; a header of Qualtrics."""
_SEPARATORS = ",;\t"
# share of zero bytes from which a text is UTF-16: of English it has half
_ZEROS_OF_UTF_16 = 0.1
_MOST_COLUMNS, _MOST_CELLS, _MOST_BYTES = 5_000, 50_000_000, 2 * 2**30  # of a table


def read_table(
    path: str | Path,
    needed: Sequence[str],
    numbers: Sequence[str],
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

    Raises
    ------
    ValueError
        Not such a table; the message names row and column. Rows count from 1.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     file = Path(folder, "a.tsv")
    ...     _ = file.write_text("Item_ID\tscore\n007\t3.5\n")
    ...     read_table(file, ["item_id", "score"], ["score"]).values.tolist()
    [['007', 3.5]]
    """
    path = Path(path)
    table = read_rows(path).map(as_text).astype("str")
    table = name_columns(table, path.name, None, Reading(path.name))
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
    reading: Reading,
    renamed: Mapping[str, str] = MappingProxyType({}),
) -> pd.DataFrame:
    """Give a table's columns our names: those of `columns`, or in lower case.

    Parameters
    ----------
    table, what
        The table, and how an error names it.
    columns, renamed
        The table's names, and names of ours, → the wanted names.
    reading
        What the table means; its decisions name columns too.

    Raises
    ------
    ValueError
        A name in `columns` is not the table's, or two columns get one name (only
        several ``human_ratings`` are joined: one column a rater).

    Examples
    --------
    >>> table = pd.DataFrame({"Value": [4], "r1": [3], "r2": [5]})
    >>> names = {"Value": "score", "r1": "human_ratings", "r2": "human_ratings"}
    >>> name_columns(table, "a table", names, Reading("it")).to_dict("records")
    a table: r1, r2 are read as the ratings of one person each
    [{'score': 4, 'human_ratings': {'r1': 3, 'r2': 5}}]
    """
    spelled = {str(name).strip().casefold(): name for name in table}
    columns = {
        name if name in table else spelled.get(name.strip().casefold(), name): new
        for name, new in {**(columns or {}), **reading.roles(table)}.items()
    }
    for name in columns:
        one_of("column", name, table)
    ours = {c: str(c).strip().lower() for c in table}
    named = {c: new if new in ROLES else str(c) for c, new in ours.items()} | columns
    named = {c: renamed.get(name, name) for c, name in named.items()}
    names = [named[c] for c in table]
    reading.begin(table, what, names)
    raters = [c for c in named if named[c] == "human_ratings"]
    if len(raters) > 1:
        table = join_columns(table, {"human_ratings": raters}, what)
        names = [named.get(c, c) for c in table]
    for name, often in Counter(names).items():
        if often > 1:
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
        near = [get_close_matches(name, has, 1, 0.75) or ["…"] for name in lost]
        columns = {own[0]: name for own, name in zip(near, lost, strict=True)}
        raise ValueError(
            f"{what} lacks {' and '.join(map(repr, lost))}. Its columns: "
            f"{', '.join(has)}. If one of these holds it, name it: {columns=!r}"
            + ("; of one column a criterion: scores=['…', '…']" * ("score" in lost))
        )


def read_rows(path: Path) -> pd.DataFrame:
    """Read a table or a log: a CSV as text, other files as they are typed; from row 1.

    ``attrs`` has its ``name``, and the ``separator`` of its values.
    """
    about: Options = {}
    with reading(path):
        match path.suffix.lower():
            case ".csv" | ".tsv" | ".txt":
                table, about = _read_csv(path)
            case ".parquet":
                table = read_parquet(path)
            case ".jsonl" | ".json" | ".eval":
                log = log_of(_document(path), path.name)
                widest = max(map(len, log.rows), default=0)
                _refuse_large(path, widest, _MOST_COLUMNS, "columns")
                table = pd.DataFrame(log.rows)
                about = {"scale": log.scale, "words": dict(log.words)}
            case suffix:
                raise ValueError(
                    f"{path.name or path}: a table is a .csv, .tsv, .txt, .json, "
                    f".jsonl or .parquet, not {suffix or 'a file without an ending'}; "
                    "save a sheet as CSV UTF-8"
                )
        table.index = pd.RangeIndex(1, len(table) + 1)
        names = [shown(str(name).strip()) for name in table.columns]
        table = table.set_axis(names, axis=1)
        gaps = pd.DataFrame({k: are_gaps(table.iloc[:, k]) for k in range(len(names))})
        is_unnamed = (table.columns == "") & gaps.all().to_numpy()
        rows = table.loc[~gaps.all(axis=1), ~is_unnamed]
        if len(rows) == 0:
            raise ValueError(
                f"{path.name} has no rows below its header ({', '.join(names)})"
            )
        if (rows.columns == "").sum() > 1:
            raise ValueError(
                f"{path.name}: several columns have no name: give every column a name "
                "of its own; if the names are in a later row, delete the rows above it"
            )
    rows.attrs = {"name": path.name, "separator": ","} | about
    return rows


def _document(path: Path) -> Any:
    match path.suffix.lower():
        case ".eval":
            return unpacked(path)
        case ".json":
            return parsed(read_text(path), path)
    # Not splitlines(): texts hold other separators than "\n".
    lines = enumerate(read_text(path).split("\n"), 1)
    read = (parsed(line, path, number) for number, line in lines)
    return [row for row in read if row is not None]


def are_gaps(cells: pd.Series) -> pd.Series:
    """Tell which cells are missing, or an empty text."""
    # "==" would compare an array in a cell by its elements.
    if cells.dtype == object:
        is_empty = cells.map(lambda cell: isinstance(cell, str) and cell == "")
        return cells.isna() | is_empty.astype(bool)
    return cells.isna() | (cells == "" if cells.dtype == "str" else False)


def named_table(
    source: Any,
    columns: Mapping[str, str] | None,
    reading: Reading,
    criteria: Sequence[str],
    renamed: Mapping[str, str] = MappingProxyType({}),
) -> pd.DataFrame:
    """Return a table with our names of columns; each text's ratings are one column.

    ``attrs`` are those of `table_of`.
    """
    raw = table_of(source)
    what = raw.attrs["name"]
    reading.separator = raw.attrs["separator"]
    rows = without_summary(raw, reading)
    table = name_columns(rows, what, columns, reading, renamed)
    table = join_columns(table, columns_of_people(table, criteria), what)
    table.attrs = raw.attrs
    return table


def table_of(source: Any) -> pd.DataFrame:
    """Return the raw rows of a file, log, frame or list.

    ``attrs`` has its ``name`` and ``separator``, and of a tool's log ``scale`` and
    ``words``.

    Raises
    ------
    ValueError
        It is something else, or a file that cannot be read.

    Examples
    --------
    >>> table_of([{"item_id": "a", "score": 4}]).to_dict("records")
    [{'item_id': 'a', 'score': 4}]
    """
    if isinstance(source, str | Path):
        return read_rows(Path(source).expanduser())
    frame = source.to_pandas() if hasattr(source, "to_pandas") else source
    listed = frame if isinstance(frame, list | tuple) else [frame]
    if all(isinstance(row, Mapping) for row in listed):
        frame = pd.DataFrame(frame)
    if not isinstance(frame, pd.DataFrame):
        raise ValueError(
            f"a table is a file, a DataFrame or a list of rows ({{column: value, …}}), "
            f"not {type(source).__name__}"
        )
    table = frame.rename(columns=lambda name: shown(str(name)))
    table.attrs = {"name": "the table", "separator": ""}
    return table


def without_summary(table: pd.DataFrame, reading: Reading) -> pd.DataFrame:
    """Ask about rows at both ends that are no texts: further headers, averages.

    Examples
    --------
    >>> table = pd.DataFrame({"item_id": ["a", "b", "Mean"], "score": [1, 3, 2]})
    >>> reading = Reading("t", ["rows summary: left out"])
    >>> without_summary(table, reading).item_id.tolist()
    ['a', 'b']
    """
    rows = range(len(table))
    ends = {
        row: [as_text(cell).strip().rstrip(":. ") for cell in table.iloc[row]]
        for row in sorted({*rows[:2], *rows[-3:]})
    }
    none = [row for row in ends if any(map(_NO_TEXT.fullmatch, ends[row]))]
    if not none:
        return table
    first = ", ".join(ends[none[-1]])[:60]
    if "ImportId" in first:  # a second header of Qualtrics, below the first one
        none = sorted({0, *none})
    names = ", ".join(map(str, table.index[none]))
    meaning = reading.ask(
        "rows",
        "summary",
        f"{reading.who}: rows {names} may be no texts ({first})",
        {
            "left out": "they are headers, or sum up the others",
            "texts": "they are texts",
        },
    )
    return table[~np.isin(rows, none)] if meaning == "left out" else table


@contextmanager
def reading(*files: Path) -> Iterator[None]:
    """Turn the errors of a malformed file into one ValueError that names the file."""
    with written_out():
        try:
            yield
        except (FileNotFoundError, PermissionError, ConnectionError, ImportError):
            raise
        except Exception as error:
            names = tuple(file.name for file in files)
            if not names or (
                isinstance(error, ValueError) and str(error).startswith(names)
            ):
                raise
            why = " ".join(str(error).split())[:200]
            said = f"it is damaged, or has another form ({type(error).__name__}: {why})"
            said = str(error) if isinstance(error, ValueError) else said
            raise ValueError(f"{names[0]}: {said}") from error


def read_text(path: Path) -> str:
    """Read a text file in UTF-8, or in the encoding that its bytes suggest."""
    raw = path.read_bytes()
    with suppress(UnicodeError):
        text = raw.decode("utf-8-sig")
        if text.count("\0") < _ZEROS_OF_UTF_16 * len(text) or not text:
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


def read_records(path: Path) -> Records:
    """Read JSON lines, a JSON list, or Parquet."""
    if path.suffix.lower() == ".parquet":
        return read_rows(path).to_dict("records")
    return log_of(_document(path), path.name).rows


def read_parquet(path: Path) -> pd.DataFrame:
    """Read a Parquet file, once its head and its values say that it fits into memory.

    A few kilobytes of it may stand for gigabytes: texts are repeated by number. So the
    texts are counted as they are stored, part by part, before they are written out.
    """
    parquet = extra("pyarrow.parquet", "parquet", path.name, "save it as CSV, or ")
    head = parquet.read_metadata(path)
    _refuse_large(path, head.num_columns, _MOST_COLUMNS, "columns")
    # A text that begins like the one before it has no number. Yet none is longer than
    # the part that it is in; in a list, a row may have any number of them.
    whole: set[str] = set()
    cells = longest = size = 0
    for group in map(head.row_group, range(head.num_row_groups)):
        for k, one in enumerate(head.schema):
            part = group.column(k)
            stored, width = part.total_uncompressed_size, one.length
            encodings = " ".join(part.encodings)
            if "BYTE_ARRAY" in encodings:
                whole.add(one.path)
                if one.max_repetition_level and re.search("DELTA_BYTE|DICT", encodings):
                    width = stored
            cells += part.num_values  # those in lists, too
            size += max(stored, part.num_values * width)
            longest = max(longest, stored)
    _refuse_large(path, cells, _MOST_CELLS, "values")
    _refuse_large(path, size, _MOST_BYTES, "bytes of values, as its head allows")
    rows = int(np.clip(2**28 // longest, 1, 4096)) if whole else 2**16
    texts = {one.path for one in head.schema if one.physical_type == "BYTE_ARRAY"}
    with parquet.ParquetFile(path, read_dictionary=[*(texts - whole)]) as file:
        size = 0
        # pyarrow joins no lists of texts that are numbered in two parts
        for group in range(head.num_row_groups):
            for batch in file.iter_batches(rows, row_groups=[group]):
                size += sum(map(_n_bytes, batch.columns))
                _refuse_large(path, size, _MOST_BYTES, "bytes of values, or more")
    return pd.read_parquet(path)


def _n_bytes(cells: Any, text: int = 0) -> int:
    """Return the bytes of an array of Arrow, with each text written out.

    Lists, texts in them, decimals and dates become objects of Python, which take more.
    """
    from pyarrow import compute, types

    kind = cells.type
    if types.is_nested(kind):
        if types.is_map(kind):
            parts = [cells.keys, cells.items]
        elif types.is_struct(kind):
            parts = cells.flatten()
        else:
            parts = [cells.flatten()]
        own = 100 * (1 + len(parts)) * len(cells)
        return own + sum(_n_bytes(part, 60) for part in parts)
    if not hasattr(cells, "dictionary"):
        as_objects = (
            types.is_decimal(kind) or types.is_date(kind) or types.is_time(kind)
        )
        return int(cells.nbytes) + 100 * as_objects * len(cells)
    lengths = compute.binary_length(cells.dictionary)
    of_cells = compute.sum(compute.take(lengths, cells.indices)).as_py() or 0
    return int(cells.indices.nbytes + of_cells + text * len(cells))


def _refuse_large(path: Path, number: int, most: int, what: str) -> None:
    """Refuse what would fill the memory; of columns, what would take minutes."""
    if number > most:
        raise ValueError(
            f"{path.name} has {number:,} {what}, more than {most:,}: keep the columns "
            "and rows that are needed"
        )


def _read_csv(path: Path) -> tuple[pd.DataFrame, dict[str, str]]:
    """Read a CSV, all of it as text: someone may have written "NA", "None" or "007"."""
    text = read_text(path)
    # a line for Excel
    found = re.match(r'"?sep=(.)"?[^\S\n]*\r?\n', text, re.IGNORECASE)
    text = text[found.end() :] if found else text
    if not text.strip():
        raise ValueError(f"{path.name} is empty")
    first, second = [*text.split("\n", 2), ""][:2]
    # the mark that is most often in the first line, and in the second one
    counts = {mark: (first.count(mark), second.count(mark)) for mark in _SEPARATORS}
    usual = max(counts, key=lambda mark: (min(counts[mark]), counts[mark]))
    separator = found[1] if found else usual
    how: Any = {"sep": separator, "dtype": "str", "na_filter": False}
    try:
        table = pd.read_csv(io.BytesIO(text.encode()), header=None, **how)
    except pd.errors.ParserError as error:
        raise ValueError(
            f"{path.name} is not a CSV whose first line names all columns: "
            f"{str(error).strip()}; put "
            f"a text that holds {separator!r} between double quotes, and close every "
            "quote"
        ) from error
    header = table.iloc[0].str.strip().tolist()
    _refuse_large(path, len(header), _MOST_COLUMNS, "columns")
    for name, often in Counter(filter(None, header)).items():
        if often > 1:
            raise ValueError(
                f"{path.name} has two columns {name!r}; rename or delete one"
            )
    return table.iloc[1:].set_axis(header, axis=1), {"separator": separator}
