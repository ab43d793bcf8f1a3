"""Datasets whose records ``sets.yml`` maps to items: one entry for each."""

from __future__ import annotations

import math
from functools import cache
from importlib import import_module
from pathlib import Path
from statistics import mean, median
from typing import Any

import pandas as pd
from jinja2 import ChainableUndefined, Environment

from rubricnb.core.frames import Items
from rubricnb.core.support.settings import read_yaml
from rubricnb.core.support.types import Records, Row
from rubricnb.core.validate import check_items, ids
from rubricnb.files.fetch import fetch
from rubricnb.files.rubrics import read_rubrics
from rubricnb.files.tables import read_records, read_table

_compiled = cache(Environment(undefined=ChainableUndefined).compile_expression)


def load(
    name: str, path: str | Path | None = None, rubrics: pd.DataFrame | None = None
) -> Items:
    r"""Load a dataset of ``sets.yml``.

    Parameters
    ----------
    name
        Its name there.
    path
        Your own file, if the set needs one.
    rubrics
        Other rubrics than the set's; items are loaded for their criteria.

    Returns
    -------
    Items
        One item per text and criterion; comments in ``sets.yml`` say what is ours.

    Raises
    ------
    ValueError, ConnectionError, FileNotFoundError
        As `rubricnb.files.fetch.fetch`; or a file lacks something, a text is empty, a
        rating is out of range, or a criterion of the rubrics was not rated.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     file = Path(folder, "dress.tsv")
    ...     _ = file.write_text("id\tprompt\tessay\tcontent\torganization\tlanguage\n"
    ...                         "7\tIs it?\tIt is.\t3.5\t3\t4\n")
    ...     load("dress", file).human.tolist()
    [3.5, 3.0, 4.0]
    """
    facts, records = sets()[name], rows(name, path)
    if own_rubric := facts.get("rubric"):
        judged, rubrics = _own_rubrics(name, records, own_rubric)
    else:
        place = {criterion: n for n, criterion in enumerate(facts["criteria"], 1)}
        if rubrics is None:
            rubrics = bundled_rubrics(facts["rubrics"])
            rubrics = rubrics[rubrics["criterion"].str.lower().isin(place)]
        pairs = rubrics[["criterion", "rubric_id"]].astype("str").drop_duplicates()
        pairs = pairs[pairs["rubric_id"].str.startswith(facts.get("starting", ""))]
        for criterion in pairs["criterion"]:
            if criterion.lower() not in place:
                raise ValueError(
                    f"{name} has no ratings for the criterion {criterion!r}; "
                    f"it has: {', '.join(place)}"
                )
        judged = [
            (row | {"criterion": low, "n": place[low], "row": row}, name, low, rubric)
            for row in records
            for name, rubric in pairs.itertuples(index=False)
            for low in [name.lower()]
        ]
    items = pd.DataFrame([_item(name, facts, *one) for one in judged])
    empty = items.filter(regex="^reference_").isna().all()
    items = items.drop(columns=empty.index[empty])
    return check_items(items, rubrics, allow_unrated=bool(own_rubric))


@cache
def sets() -> dict[str, Row]:
    """Read ``sets.yml``."""
    return read_yaml(Path(__file__).with_name("sets.yml"))


def rows(name: str, path: str | Path | None = None) -> Records:
    """Read the records of a set."""
    facts = sets()[name]
    files = [Path(path)] if path else [fetch(file) for file in facts.get("files", [])]
    needs, numbers = facts.get("needs", []), facts.get("numbers")
    if "reads" in facts:
        found = import_module(f"rubricnb.sets.{facts['reads']}").read(files)
    elif numbers:
        found = read_table(files[0], [*needs, *numbers], numbers).to_dict("records")
    else:
        found = [row for file in files for row in read_records(file)]
        if not found:
            raise ValueError("the file has no records")
        for number, row in enumerate(found, 1):
            for need in needs:
                if _value(need, row) in (None, ""):
                    raise ValueError(f"record {number} lacks {need}")
    if "rows" in facts:
        found = import_module(f"rubricnb.sets.{facts['rows']}").rows(found)
    if "sort" in facts:
        found.sort(key=lambda row: str(row[facts["sort"]]))
    return [row | {"dataset": name} for row in found]


def _own_rubrics(
    name: str, found: Records, rubric: Row
) -> tuple[list[tuple[Row, str, str, str]], pd.DataFrame]:
    """Take each record's rubric; one that is worded in several ways is several."""
    wordings: dict[str, list[list[Any]]] = {}
    judged, rows = [], []
    for row in found:
        rubric_id, criterion = (
            _value(rubric[part], row) for part in ("id", "criterion")
        )
        parts = (rubric["definition"], *rubric["levels"])
        wording = [_value(part, row) for part in parts]
        if None in wording:
            lost = parts[wording.index(None)]
            raise ValueError(f"{name}: the rubric {rubric_id!r} lacks {lost!r}")
        wordings_of_id = wordings.setdefault(rubric_id, [])
        if wording not in wordings_of_id:
            wordings_of_id.append(wording)
        if number := wordings_of_id.index(wording):
            rubric_id += f"-{number + 1}"
        judged.append(
            (row, criterion, "" if criterion == "overall" else criterion, rubric_id)
        )
        for score, description in enumerate(wording[1:], 1):
            level = {"rubric_id": rubric_id, "variant": "standard", "score": score}
            level |= {"criterion": criterion, "definition": wording[0]}
            rows.append(level | {"description": description})
    return judged, pd.DataFrame(rows).drop_duplicates()


def _item(
    name: str, facts: Row, row: Row, criterion: str, ending: str, rubric_id: str
) -> Row:
    item = {column: _value(text, row) for column, text in facts["columns"].items()}
    for column, middle in (("human", mean), ("gold", median)):
        if (singles := f"{column}_ratings") in item:
            known = [
                r for r in item[singles] or () if isinstance(r, int | float) and r == r
            ]
            item[singles] = tuple(known) or None
            if item.get(column) is None:
                item[column] = float(middle(known)) if known else math.nan
    text = str(_value(facts["text"], row)) if "text" in facts else ""
    named = ids(name, str(_value(facts["cluster"], row)), text, ending)
    return named | item | {"criterion": criterion, "rubric_id": rubric_id}


def _value(expression: str, row: Row) -> Any:
    return _compiled(expression)(row)


def bundled_rubrics(name: str) -> pd.DataFrame:
    """Read the rubrics that come with this package.

    Parameters
    ----------
    name
        ``minibench``, ``hanna`` or ``summeval``; all are ours.

    Examples
    --------
    >>> sorted(bundled_rubrics("minibench").criterion.unique())
    ['accuracy', 'clarity', 'helpfulness', 'overall']
    """
    return read_rubrics(Path(__file__).with_name("rubrics") / f"{name}.yml")
