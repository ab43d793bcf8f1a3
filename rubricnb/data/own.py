"""Own data: a table of texts and a file of rubrics."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from rubricnb.data.rubrics import read_rubrics
from rubricnb.data.validate import check_items, check_text, nearest
from rubricnb.frames import Items

_NUMBERS = ("human", "gold")
_NAMES = ["text_id", "item_id", "cluster_id", "group_id", "candidate", "criterion", "rubric_id"]


def load_csv(path: str | Path, rubric: str | Path) -> Items:
    r"""Load own data.

    Parameters
    ----------
    path
        A file as `read_table` reads it. Needed: ``instruction`` and ``response``. Read where
        present:

        * ``criterion`` (or ``rubric_id``): what this row is judged by. Without it every row is
          judged by every criterion of the rubric file.
        * ``human_CRITERION``, or ``human`` where there is one criterion per row: mean rating; an
          empty cell is a text that nobody rated. ``human_ratings``: the single ones, ``3 4 4``.
        * ``text_id``: a name for the response; default: ``item_id``, or a number.
        * ``item_id``: a name for the row.
        * ``candidate``: who wrote the response; those of one instruction then compete.
        * ``group_id``: whose candidates compete, where the instruction does not say it.
        * ``cluster_id``: what shares a text. Default: ``group_id``; else the instruction; where
          all rows have the same one (essays on one task), the response.
        * ``category``, ``reference``, ``reference_1``, …, and any further column: kept.
    rubric
        A file as `read_rubrics` reads it.

    Returns
    -------
    Items
        ``dataset`` is the file's stem; ids begin with it. Texts are kept as they are.

    Raises
    ------
    ValueError
        The file cannot be read, a column is missing, a text is empty, a rating is not a number or
        off the scale, a criterion has no rubric, or an id stands twice. Rows count from 1, without
        the header.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     rubric, table = Path(folder, "kind.yml"), Path(folder, "mails.csv")
    ...     _ = rubric.write_text(
    ...         "criterion: tone\ndefinition: Is it kind?\nlevels: {1: Rude., 2: Kind.}"
    ...     )
    ...     _ = table.write_text("instruction,response,human\nSay no.,No!,1\nSay no.,Sorry.,2\n")
    ...     load_csv(table, rubric)[["item_id", "response", "human"]]
            item_id response  human
    1  mails/1/tone      No!    1.0
    2  mails/2/tone   Sorry.    2.0
    """
    path = Path(path)
    rubrics = read_rubrics(rubric)
    table = read_table(path, ["instruction", "response"], [])
    for column in table.columns.intersection(_NAMES, sort=False):
        check_text(table[column], path.name)
    items = _by_criterion(table, rubrics, path.name)
    _check_numbers(items, path.name)
    per_criterion = "criterion" in table or "rubric_id" in table
    return check_items(_with_ids(items, path.stem, per_criterion), rubrics, allow_unrated=True)


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
    """Read records, each of which has what is `needed` (``info.id``: inside ``info``)."""
    if path.suffix.lower() in (".json", ".jsonl", ".ndjson"):
        rows = read_json(path)
    else:
        rows = read_rows(path).to_dict("records")
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


def _by_criterion(table: pd.DataFrame, rubrics: pd.DataFrame, file: str) -> pd.DataFrame:
    """Give every row its criterion, rubric and rating; several rows where it has several."""
    known = rubrics[["criterion", "rubric_id"]].astype("str").drop_duplicates()
    ratings = [c for c in table if c.startswith("human_") and c != "human_ratings"]
    for column in ratings:
        if column.removeprefix("human_") not in set(known["criterion"]):
            raise ValueError(
                f"{file}: the column {column!r} names no criterion of the rubric file"
                f"{nearest(column.removeprefix('human_'), known['criterion'])} "
                f"It has: {', '.join(known['criterion'])}"
            )
    key = next((c for c in ("rubric_id", "criterion") if c in table), None)
    if key is None and "human" in table and len(known) > 1:
        names = ", ".join(f"human_{c}" for c in known["criterion"])
        raise ValueError(
            f"{file}: the column 'human' does not say which of {len(known)} criteria it rates; "
            f"name the columns {names}, or add a column 'criterion'"
        )
    if key is None:
        rows = table.merge(known, how="cross").set_axis(table.index.repeat(len(known)))
    else:
        _check_known(table[key], known[key], file)
        other = table.drop(columns=[c for c in known if c in table and c != key])
        rows = other.merge(known, on=key, how="left").set_axis(table.index)
    if ratings:
        named = "human_" + rows["criterion"]
        rows["human"] = [
            row.get(column, "") for row, column in zip(rows.to_dict("records"), named, strict=True)
        ]
    return rows.drop(columns=ratings)


def _check_known(values: pd.Series, known: pd.Series, file: str) -> None:
    if known.duplicated().any():
        twice = known[known.duplicated()].iloc[0]
        raise ValueError(
            f"{file}: two rubrics have the {known.name} {twice!r}; add a column 'rubric_id' that "
            "says which one a row is judged by"
        )
    unknown = ~values.isin(known)
    if unknown.any():
        value = values[unknown].iloc[0]
        raise ValueError(
            f"{file}: row {unknown.idxmax()}, column {values.name!r}: there is no rubric for "
            f"{value!r}{nearest(value, known)} There are: {', '.join(known)}"
        )


def _check_numbers(items: pd.DataFrame, file: str) -> None:
    for column in _NUMBERS:
        if column not in items:
            continue
        numbers = as_numbers(items[column])
        bad = numbers.isna() & (items[column].str.strip() != "")
        if bad.any():
            criterion = items["criterion"][bad].iloc[0]
            raise ValueError(
                f"{file}: row {bad.idxmax()}, column {column!r} ({criterion}): "
                f"{items[column][bad].iloc[0]!r} is not a number; leave the cell of a text that "
                "nobody rated empty"
            )
        items[column] = numbers
    if "human_ratings" in items:
        parts = items["human_ratings"].str.findall(r"-?\d+(?:\.\d+)?")
        items["human_ratings"] = [tuple(map(float, own)) or None for own in parts]


def _with_ids(items: pd.DataFrame, dataset: str, per_criterion: bool) -> pd.DataFrame:
    """Fill the ids; `per_criterion` says that a row of the file is one text under one criterion."""
    prompts = _number(items, ["instruction"])
    if "text_id" in items:
        texts = items["text_id"]
    elif per_criterion:
        texts = _number(
            items, ["instruction", "response", *items.columns.intersection(["candidate"])]
        )
    else:
        texts = items.get("item_id", items.index.astype("str").to_series(index=items.index))
    # Essays on one task share their instruction; what they share then says nothing.
    clusters = texts if prompts.nunique() == 1 else "prompt-" + prompts
    names = texts + "/" + items["criterion"]
    out = items.assign(
        dataset=dataset,
        item_id=f"{dataset}/" + (items.get("item_id", names) if per_criterion else names),
        text_id=f"{dataset}/" + texts,
        cluster_id=f"{dataset}/" + items.get("cluster_id", items.get("group_id", clusters)),
    )
    if "group_id" in items or "candidate" in items:
        group = items.get("group_id", "prompt-" + prompts)
        out["group_id"] = f"{dataset}/" + group + "/" + items["criterion"]
    return out


def _number(items: pd.DataFrame, columns: list[str]) -> pd.Series:
    """Number distinct texts in their order, from 1."""
    return (items.groupby(columns, sort=False).ngroup() + 1).astype("str")
