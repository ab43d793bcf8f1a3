"""Own data: a table of texts and a file of rubrics."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

import pandas as pd

from rubricnb.data.rubrics import label_scores, read_rubrics
from rubricnb.data.tables import as_ids, read_ratings, read_table
from rubricnb.data.validate import check_items, check_known, check_text, nearest
from rubricnb.frames import Items

_NAMES = ["text_id", "item_id", "cluster_id", "group_id", "candidate", "criterion", "rubric_id"]


def load_csv(
    path: str | Path,
    rubric: str | Path,
    columns: Mapping[str, str] | None = None,
) -> Items:
    r"""Load own data.

    Parameters
    ----------
    path
        A file as `rubricnb.data.tables.read_table` reads it. Needed: ``instruction`` and
        ``response``. Read where present:

        * ``criterion`` (or ``rubric_id``): what this row is judged by. Without it every row is
          judged by every criterion of the rubric file.
        * ``human_CRITERION``, or ``human`` where there is one criterion per row: mean rating, a
          number, a label of the rubric, or ``4/5`` on a scale up to 5; an empty cell is a text
          that nobody rated. ``human_ratings``: the single ones, ``3 4 4``, or a column for each
          rater (see `columns`); their mean is ``human`` where that is not given.
        * ``text_id``: a name for the response; default: ``item_id``, or a number.
        * ``item_id``: a name for the row.
        * ``candidate``: who wrote the response; those of one instruction then compete.
        * ``group_id``: whose candidates compete, where the instruction does not say it.
        * ``cluster_id``: what shares a text. Default: ``group_id``; else the instruction; where
          all rows have the same one (essays on one task), the response.
        * ``category``, ``reference``, ``reference_1``, …, and any further column: kept.
    rubric
        A file as `read_rubrics` reads it.
    columns
        The file's names of columns → those above. Several columns may be ``human_ratings``.

    Returns
    -------
    Items
        ``dataset`` is the file's stem; ids begin with it. Texts are kept as they are.

    Raises
    ------
    ValueError
        The file cannot be read, a column is missing, a text is empty, a rating is not a number or
        off the scale, a criterion has no rubric, or an id appears twice. Rows count from 1, without
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
    table = read_table(path, ["instruction", "response"], [], columns)
    for column in table.columns.intersection(_NAMES, sort=False):
        check_text(table[column], path.name)
        if column.endswith("_id") and column != "rubric_id":
            table[column] = as_ids(table[column], column, path.name)
    _name_raters(table, path.name)
    items = _by_criterion(table, rubrics, path.name)
    labels = label_scores(rubrics)
    top = [max(labels[rubric_id].values()) for rubric_id in items["rubric_id"]]
    items = read_ratings(items, top, labels, path.name)
    per_criterion = "criterion" in table or "rubric_id" in table
    return check_items(_with_ids(items, path.stem, per_criterion), rubrics, allow_unrated=True)


def _by_criterion(table: pd.DataFrame, rubrics: pd.DataFrame, file: str) -> pd.DataFrame:
    """Give each row its criterion, rubric and rating; a row with several becomes several rows."""
    known = rubrics[["criterion", "rubric_id"]].astype("str").drop_duplicates()
    ratings = [c for c in table if c.startswith("human_") and c != "human_ratings"]
    for column in ratings:
        if column.removeprefix("human_") not in set(known["criterion"]):
            raise ValueError(
                f"{file}: the column {column!r} does not name a criterion of the rubric file"
                f"{nearest(column.removeprefix('human_'), known['criterion'])} "
                f"It has: {', '.join(known['criterion'])}"
            )
    key = next((c for c in ("rubric_id", "criterion") if c in table), None)
    mean = next((c for c in ("human", "human_ratings") if c in table), None)
    if key is None and mean and len(known) > 1:
        names = ", ".join(f"human_{c}" for c in known["criterion"])
        raise ValueError(
            f"{file}: the column {mean!r} does not say which of {len(known)} criteria it rates; "
            f"name the columns {names}, or add a column 'criterion'"
        )
    if key is None:
        rows = table.merge(known, how="cross").set_axis(table.index.repeat(len(known)))
    else:
        check_known(table[key], known[key], file)
        other = table.drop(columns=[c for c in known if c in table and c != key])
        rows = other.merge(known, on=key, how="left", validate="m:1").set_axis(table.index)
    if ratings:
        named = "human_" + rows["criterion"]
        rows["human"] = [
            row.get(column, "") for row, column in zip(rows.to_dict("records"), named, strict=True)
        ]
    return rows.drop(columns=ratings)


def _name_raters(table: pd.DataFrame, file: str) -> None:
    """Say which columns look like one rater's ratings each, where no column is a rating."""
    names = [c for c in table if re.fullmatch(r"(?i)(rater|annotator|expert|rating)s?[ _-]?\w+", c)]
    if len(names) > 1 and not any(c.startswith("human") for c in table):
        said = ", ".join(f"{name!r}: 'human_ratings'" for name in names)
        print(f"{file}: no ratings are read; if these columns are ratings: columns={{{said}}}")


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
