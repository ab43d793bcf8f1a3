"""DREsS: essays by learners of English, rated by three traits; from a file of one's own."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from rubricnb.data.own import read_table
from rubricnb.data.rubrics import bundled_rubrics
from rubricnb.data.validate import check_items
from rubricnb.frames import Items

CRITERIA = ("content", "organization", "language")


def load_dress(path: str | Path) -> Items:
    r"""Load DREsS_New from its file. Not yet met real data: written from its description.

    Parameters
    ----------
    path
        A table (CSV, or TSV by its name) with ``id``, ``prompt``, ``essay``, ``content``,
        ``organization`` and ``language`` (each 1 to 5 in half points).

    Returns
    -------
    Items
        One item per essay and trait; an essay is a cluster. The rubrics are ours, after the
        criteria of the authors. The papers' total (3 to 15) is the sum of the three.

    Raises
    ------
    ValueError
        Not such a table, a text is empty, or a score is out of range.

    Notes
    -----
    Yoo, Han, Ahn and Oh 2025, ACL; on request from https://haneul-yoo.github.io/dress.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     file = Path(folder, "dress.tsv")
    ...     _ = file.write_text("id\tprompt\tessay\tcontent\torganization\tlanguage\n"
    ...                         "7\tIs it?\tIt is.\t3.5\t3\t4\n")
    ...     load_dress(file).human.tolist()
    [3.5, 3.0, 4.0]
    """
    table = read_table(path, ["id", "prompt", "essay", *CRITERIA], list(CRITERIA))
    rows = [
        {
            "item_id": f"dress/{essay['id']}/{criterion}",
            "dataset": "dress",
            "text_id": f"dress/{essay['id']}",
            "group_id": None,
            "cluster_id": f"dress/{essay['id']}",
            "candidate": "student",
            "instruction": essay["prompt"],
            "response": essay["essay"],
            "criterion": criterion,
            "rubric_id": f"dress-{criterion}",
            "human": essay[criterion],
        }
        for essay in table.to_dict("records")
        for criterion in CRITERIA
    ]
    return check_items(pd.DataFrame(rows), bundled_rubrics("dress"))
