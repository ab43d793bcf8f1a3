"""Own data: a table of texts and a file of rubrics."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import pandas as pd

from rubricnb.core.frames import Items, refuse
from rubricnb.core.support.spelling import nearest
from rubricnb.core.validate import check_items, check_known, check_text
from rubricnb.files.cells import (
    Scales,
    as_text,
    cells_of,
    clean_names,
    names_people,
    scales_of,
)
from rubricnb.files.people import join_rows, read_ratings
from rubricnb.files.reading import Decisions, Reading
from rubricnb.files.rubrics import read_rubrics
from rubricnb.files.tables import named_table, require

_NAMES = [
    "text_id",
    "item_id",
    "cluster_id",
    "group_id",
    "candidate",
    "criterion",
    "rubric_id",
]


def load_csv(
    path: Any,
    rubric: Any,
    columns: Mapping[str, str] | None = None,
) -> Items:
    r"""Load own data.

    Parameters
    ----------
    path
        A CSV (its values separated by commas, semicolons or tabs), ``.jsonl``,
        ``.json`` (a list of rows) or ``.parquet``; or a DataFrame or a list of rows.
        Needed: ``instruction`` and ``response``; rows without a response are left out,
        with a line. Read where present:

        * ``criterion`` (or ``rubric_id``): what this row is judged by. Without it every
          row is judged by every criterion of the rubric file.
        * ``human_CRITERION``, or ``human`` where there is one criterion per row: mean
          rating, a number, a label of the rubric, or ``4/5`` on a scale up to 5; an
          empty cell is a text that nobody rated. ``human_ratings``: the single ones,
          ``3 4 4``, a list or a mapping by rater, or a column for each rater (see
          `columns`; ``human_1``, ``human_2`` are known); their mean is ``human`` where
          that is not given. Rows that repeat a text with a rating each are one text
          with several ratings.
        * ``text_id``: a name for the response; default: ``item_id``, or a number.
        * ``item_id``: a name for the row.
        * ``candidate``: who wrote the response; those of one instruction then compete.
        * ``group_id``: whose candidates compete, where the instruction does not say it.
        * ``cluster_id``: what shares a text. Default: ``group_id``; else the
          instruction; where all rows have the same one (essays on one task), the
          response.
        * ``reference`` (an answer worth full marks), ``reference_1``, … (one worth this
          level, named by its label, or by its score where labels are words);
        * ``category`` and any further column: kept.
    rubric
        A file as `read_rubrics` reads it, or its content as a mapping or a list of
        them.
    columns
        The file's names of columns → those above. Several columns may be
        ``human_ratings``.

    Returns
    -------
    Items
        ``dataset`` is the file's stem (``own`` without a file); ids begin with it.
        Texts are kept as they are.

    Raises
    ------
    ValueError
        The file cannot be read, a column is missing, a text is empty, a rating is not a
        number or off the scale, a criterion has no rubric, or an id appears twice. Rows
        count from 1, without the header.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     rubric, table = Path(folder, "kind.yml"), Path(folder, "mails.csv")
    ...     _ = rubric.write_text(
    ...         "criterion: tone\ndefinition: Is it kind?\nlevels: {1: Rude., 2: Kind.}"
    ...     )
    ...     _ = table.write_text(
    ...         "instruction,response,human\nSay no.,No!,1\nSay no.,Sorry.,2\n"
    ...     )
    ...     load_csv(table, rubric)[["item_id", "response", "human"]]
            item_id response  human
    1  mails/1/tone      No!    1.0
    2  mails/2/tone   Sorry.    2.0
    """
    is_read = isinstance(path, Reading)
    known = path if is_read else read_texts(path, rubric, columns)
    return cast(Items, known.result())


def read_texts(
    path: Any,
    rubric: Any,
    columns: Mapping[str, str] | None = None,
    decide: Decisions = (),
) -> Reading:
    """Read a table of texts; return what it means (see `load_csv`)."""
    what, stem = "the table", "own"
    if isinstance(path, str | Path):
        what, stem = Path(path).name, Path(path).stem

    def items_of(reading: Reading) -> Items:
        rubrics = read_rubrics(rubric)
        criteria = list(dict.fromkeys(rubrics["criterion"].astype("str")))
        table = _texts_of(named_table(path, columns, reading, criteria), what)
        people = [c for c in table if names_people(c)]
        if people and not any(c.startswith("human") for c in table):
            print(
                f"{what}: no ratings are read; if these are some: columns="
                f"{_as_people(people, criteria)}"
            )
        table = _with_one_row_a_text(table, what)
        items = _by_criterion(table, rubrics, what)
        scales = scales_of(items, rubrics, reading)
        items = read_ratings(_with_references_by_score(items, scales), scales)
        # An id that several criteria share is the text's.
        per_criterion = ("criterion" in table or "rubric_id" in table) and (
            "item_id" not in items or items["item_id"].is_unique
        )
        items = _with_ids(items, stem, per_criterion)
        return check_items(items, rubrics, allow_unrated=True)

    return Reading(what, decide).read(items_of)


def _as_people(columns: Sequence[str], criteria: Sequence[str]) -> dict[str, str]:
    """Name columns as one person's ratings each, of the criterion in the name."""
    return dict.fromkeys(columns, "human_ratings") | {
        column: f"human_{own}_{k}"
        for own in criteria
        for k, column in enumerate([c for c in columns if own in c], 1)
    }


def _texts_of(table: pd.DataFrame, file: str) -> pd.DataFrame:
    """Make every cell but ratings a text, and check those."""
    plain = table.columns[~table.columns.str.startswith(("human", "gold"))]
    table[plain] = table[plain].map(as_text).astype("str")
    require(table, ["instruction", "response"], file)
    blank, silent = (table[c].str.strip() == "" for c in ("instruction", "response"))
    why = (
        "is empty; if cells of the sheet are merged, write the instruction into every "
        "row; if the texts answer no instruction, write what they are, such as 'An "
        "essay'"
    )
    refuse(file, table["instruction"], blank, why)
    why = (
        "is empty; if the texts are in another column (a list of tool calls, say), "
        "name it: columns={'tool_calls': 'response', 'response': 'other'}"
    )
    refuse(file, table["response"], silent & (silent.mean() > 0.5), why)
    if silent.any():
        print(
            f"{file}: {silent.sum()} of {len(table)} rows have no response and are "
            f"left out (row {', '.join(map(str, table.index[silent]))[:60]}); the page "
            "on audits says how to ask a judge about empty texts"
        )
    table = table[~silent].copy()
    for column in table.columns.intersection(_NAMES, sort=False):
        check_text(table[column], file)
        table[column] = clean_names(table[column], file)
    return table


def _with_one_row_a_text(table: pd.DataFrame, file: str) -> pd.DataFrame:
    """Join the ratings of rows that repeat a text; a line says so."""
    texts = {c: table[c].str.split().str.join(" ") for c in ("instruction", "response")}
    names = table.columns.intersection(_NAMES, sort=False)
    keys = table[names].assign(**texts)
    text = cells_of(keys)
    ratings = [c for c in table if c == "human" or c.startswith("human_")]
    n_texts = len(
        keys.drop(columns=["item_id", "text_id"], errors="ignore").drop_duplicates()
    )
    if n_texts == len(table):
        return table
    if text.max() + 1 == len(table) or not ratings:
        print(
            f"{file}: {len(table)} rows hold {n_texts} texts, and each row is judged; "
            "delete the copies; if they are ratings of one text, give them one text_id"
        )
        return table
    if "human" in ratings and "human_ratings" in ratings:
        ratings.remove("human")  # a mean that each row repeats
    return join_rows(table, text, ratings, file)


def _by_criterion(
    table: pd.DataFrame, rubrics: pd.DataFrame, file: str
) -> pd.DataFrame:
    """Give each row its criterion, rubric and rating; split rows that have several."""
    known = rubrics[["criterion", "rubric_id"]].astype("str").drop_duplicates()
    ratings = [c for c in table if c.startswith("human_") and c != "human_ratings"]
    criteria = known["criterion"].tolist()
    others = [c for c in ratings if c.removeprefix("human_") not in criteria]
    if others:
        raise ValueError(
            f"{file}: the column {others[0]!r} does not name a criterion of the rubric "
            f"file{nearest(others[0].removeprefix('human_'), criteria)} It has: "
            f"{', '.join(criteria)}. If people's ratings: "
            f"columns={_as_people(others, criteria)}; if something else: "
            f"columns={{{others[0]!r}: 'other'}}"
        )
    key = next((c for c in ("rubric_id", "criterion") if c in table), None)
    mean = next((c for c in ("human", "human_ratings") if c in table), None)
    if key is None and mean and len(known) > 1:
        names = ", ".join(f"human_{c}" for c in known["criterion"])
        raise ValueError(
            f"{file}: the column {mean!r} does not say which of {len(known)} criteria "
            f"it rates; name the columns {names}, or add a column 'criterion'"
        )
    if key is None:
        rows = table.merge(known, how="cross").set_axis(table.index.repeat(len(known)))
    else:
        check_known(table[key], known[key], file)
        other = table.drop(columns=[c for c in known if c in table and c != key])
        rows = other.merge(known, on=key, how="left", validate="m:1").set_axis(
            table.index
        )
    if ratings:
        named = "human_" + rows["criterion"]
        rows["human"] = [
            row.get(column, "")
            for row, column in zip(rows.to_dict("records"), named, strict=True)
        ]
    return rows.drop(columns=ratings)


def _with_references_by_score(items: pd.DataFrame, scales: Scales) -> pd.DataFrame:
    """Name the columns ``reference_LABEL`` by the level's score in each rubric."""
    columns = [c for c in items if str(c).startswith("reference_")]
    out = items.drop(columns=columns)
    for column in columns:
        label = column.removeprefix("reference_").casefold()
        scores = [own.labels.get(label) for own in scales.levels]
        named = [column if s is None else f"reference_{as_text(s)}" for s in scores]
        if set(named) != {column}:
            listed = ", ".join(dict.fromkeys(named))
            print(f"{scales.reading.who}: by scores, {column} = {listed}")
        # A text under several criteria has as many rows of one index,
        # so these are masks, not labels.
        names = pd.Series(named).to_numpy()[scales.which]
        for name in sorted(set(names)):
            written = (names == name) & (items[column] != "")
            known = out.get(name, pd.Series("", out.index))
            if (known[written] != "").any():
                raise ValueError(
                    f"{scales.reading.who}: the column {column!r} and another one both "
                    "hold the reference of score "
                    f"{name.removeprefix('reference_')}; leave out one of them"
                )
            out[name] = known.mask(written, items[column])
    return out


def _with_ids(items: pd.DataFrame, dataset: str, per_criterion: bool) -> pd.DataFrame:
    """Fill the ids; `per_criterion`: a row is one text under one criterion."""
    # A space at the end of a prompt does not make it another one.
    bare = items.assign(
        **{c: items[c].str.strip() for c in ("instruction", "response")}
    )
    prompts = _number(bare, ["instruction"])
    if "text_id" in items:
        texts = items["text_id"]
    elif per_criterion:
        texts = _number(
            bare,
            ["instruction", "response", *items.columns.intersection(["candidate"])],
        )
    else:
        texts = items.get(
            "item_id", items.index.astype("str").to_series(index=items.index)
        )
    # Essays on one task share their instruction; what they share then says nothing.
    clusters = texts if prompts.nunique() == 1 else "prompt-" + prompts
    names = texts + "/" + items["criterion"]
    named = {
        "item_id": items.get("item_id", names) if per_criterion else names,
        "text_id": texts,
        "cluster_id": items.get("cluster_id", items.get("group_id", clusters)),
    }
    if "group_id" in items or "candidate" in items:
        group = items.get("group_id", "prompt-" + prompts)
        named["group_id"] = group + "/" + items["criterion"]
    whole = {name: f"{dataset}/" + bare for name, bare in named.items()}
    return items.assign(dataset=dataset, **whole)


def _number(items: pd.DataFrame, columns: list[str]) -> pd.Series:
    """Number distinct texts in their order, from 1."""
    return (items.groupby(columns, sort=False).ngroup() + 1).astype("str")
