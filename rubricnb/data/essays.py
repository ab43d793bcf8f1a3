"""Essay sets: tables with an essay a row, whose columns ``essays.yml`` maps to items."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import pandas as pd
import yaml

from rubricnb.data.fetch import fetch
from rubricnb.data.own import read_table
from rubricnb.data.rubrics import bundled_rubrics
from rubricnb.data.validate import check_items, ids
from rubricnb.frames import Items


def load(name: str, path: str | Path | None = None) -> Items:
    r"""Load an essay set of ``essays.yml``.

    Parameters
    ----------
    name
        ``asap-2``: set 2 of ASAP, rated as a whole from 1 to 6. ``asap-7`` and ``asap-8``: sets 7
        and 8, rated by four and six traits. ``asap-2.0`` and ``dress``: from a file of one's own;
        not yet met real data: written from their descriptions.
    path
        ``asap-2.0``: a CSV with ``essay_id``, ``full_text`` and ``score`` (1 to 6) and, where
        present, ``assignment``, what was asked for (put the sources of the essays into it for a
        judge to see them). ``dress``: a table (CSV, or TSV by its name) with ``id``, ``prompt``,
        ``essay``, ``content``, ``organization`` and ``language`` (each 1 to 5 in half points).

    Returns
    -------
    Items
        One item per essay and criterion; an essay is a cluster and nothing competes.
        ``human_ratings`` are the two raters' of ASAP. ``human`` is, in set 2, the score that the
        competition resolved (it equals rater 1's), else the mean of the two; set 7 is rated from
        0 to 3, here from 1 to 4. Names in the essays are masked (``@PERSON1``). The sentences that
        say what was asked for in ASAP are ours, and so are the rubrics. The papers' total of DREsS
        (3 to 15) is the sum of the three.

    Raises
    ------
    ValueError, ConnectionError, FileNotFoundError
        As `rubricnb.data.fetch.fetch`; or not such a table, a text is empty, or a score is out of
        range.

    Notes
    -----
    Shermis and Hamner 2012; set 2 stands in for ASAP 2.0, which the RULERS paper uses. Crossley,
    Baffour, Burleigh and King 2025. Yoo, Han, Ahn and Oh 2025, ACL.

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
    facts = _sets()[name]
    # Criterion → its column, or the columns of several raters.
    columns = {
        criterion: [one] if isinstance(one, str) else one
        for criterion, one in facts["criteria"].items()
    }
    ratings = [column for several in columns.values() for column in several]
    file = fetch(facts["file"]) if path is None else path
    table = read_table(file, [facts["id"], facts["response"], *facts.get("needs", ()), *ratings],
                       ratings)  # fmt: skip
    rows = [
        _item(name, facts, essay, criterion, several)
        for essay in table.to_dict("records")
        for criterion, several in columns.items()
    ]
    rubrics = bundled_rubrics(facts["rubrics"])
    own = rubrics[rubrics["rubric_id"].astype(str).str.startswith(f"{name}-")]
    return check_items(pd.DataFrame(rows), own)


def _item(
    name: str, facts: dict[str, Any], essay: dict[Any, Any], criterion: str, columns: list[str]
) -> dict[str, object]:
    # Rubrics begin at 1; the raters' scale may not.
    scores = [essay[column] + 1 - facts.get("lowest", 1) for column in columns]
    resolved = essay.get(facts.get("resolved"))
    item = {
        **ids(name, f"{name}/{essay[facts['id']]}", criterion=criterion),
        "candidate": "student",
        "instruction": essay.get(facts.get("asked")) or facts.get("instruction"),
        "response": essay[facts["response"]].strip(),
        "criterion": criterion,
        "human": float(resolved) if resolved else sum(scores) / len(scores),
    }
    if len(scores) > 1:
        item["human_ratings"] = tuple(map(int, scores))
    return item | {"rubric_id": f"{name}-{criterion.replace(' ', '-')}"}


@cache
def _sets() -> dict[str, dict[str, Any]]:
    sets: dict[str, dict[str, Any]] = yaml.safe_load(
        Path(__file__).with_name("essays.yml").read_text(encoding="utf-8")
    )
    return sets
