"""BiGGen Bench: a rubric for every instance, ratings by people; from a file of one's own."""

from __future__ import annotations

import math
from itertools import chain
from pathlib import Path
from typing import Any

import pandas as pd

from rubricnb.data.records import records
from rubricnb.data.rubrics import levels
from rubricnb.data.validate import check_items, ids
from rubricnb.frames import Items

_NEEDED = (
    "capability", "task", "instance_idx", "input", "reference_answer", "score_rubric", "model_name",
    "response", "human_score",
)  # fmt: skip
_RUBRIC = ("criteria", *(f"score{k}_description" for k in range(1, 6)))


def load(name: str, path: str | Path) -> Items:
    """Load BiGGen Bench's human evaluation. Not yet met real data: written from its description.

    Parameters
    ----------
    name
        ``biggen``.
    path
        The split ``human_eval`` of the dataset BiGGen-Bench-Results, as ``.parquet`` or JSON lines.
        Columns: capability, task, instance_idx, system_prompt (may be missing), input,
        reference_answer, score_rubric (criteria, score1_description … score5_description),
        model_name, response, human_score and, where present, gpt4_score; a score of −1 is none.

    Returns
    -------
    Items
        One item per response; ``gold`` is the score by GPT-4 that comes with the data, and the
        only one of ``gold_ratings``. An instance is a cluster with a rubric of its own, and its
        responses compete; ``reference``, and ``reference_5``, is its full-mark answer. A system
        prompt stands before the input.

    Raises
    ------
    ValueError
        A record lacks something, a rubric lacks a level, or a rating is out of range.

    Notes
    -----
    Kim et al. 2024, *The BiGGen Bench*; arXiv:2506.22316, Table 1: 2,780 responses to 695
    instances.

    Examples
    --------
    >>> import json
    >>> from tempfile import TemporaryDirectory
    >>> rubric = {"criteria": "Right?"} | {f"score{k}_description": f"L{k}" for k in range(1, 6)}
    >>> row = {"capability": "planning", "task": "travel", "instance_idx": 0, "input": "Plan it.",
    ...        "reference_answer": "A plan.", "score_rubric": rubric, "model_name": "m",
    ...        "response": "No.", "human_score": 2, "gpt4_score": 3}
    >>> with TemporaryDirectory() as folder:
    ...     file = Path(folder, "human_eval.jsonl")
    ...     _ = file.write_text(json.dumps(row))
    ...     load("biggen", file)[["text_id", "human", "gold"]]
                          text_id  human  gold
    0  biggen/planning/travel/0/m    2.0   3.0
    """
    rows = records(path, *_NEEDED)
    rubrics = {_instance(row): _rubric(row, Path(path).name) for row in rows}
    items = pd.DataFrame([_item(row) for row in rows])
    return check_items(items, pd.DataFrame(chain(*rubrics.values())), allow_unrated=True)


def _instance(row: dict[str, Any]) -> str:
    return f"biggen/{row['capability']}/{row['task']}/{row['instance_idx']}"


def _item(row: dict[str, Any]) -> dict[str, object]:
    instance = _instance(row)
    system = row.get("system_prompt")
    system = system if isinstance(system, str) else ""  # a missing one is None, in Parquet NaN
    return {
        **ids("biggen", instance, row["model_name"]),
        "candidate": str(row["model_name"]),
        "category": str(row["capability"]),
        "instruction": f"{system}\n\n{row['input']}".strip(),
        "response": row["response"],
        "reference": row["reference_answer"],
        "reference_5": row["reference_answer"],
        "criterion": "overall",
        "rubric_id": instance,
        "human": _score(row["human_score"]),
        "gold": (gold := _score(row.get("gpt4_score"))),
        "gold_ratings": None if math.isnan(gold) else (gold,),
    }


def _score(value: Any) -> float:
    return math.nan if value is None or pd.isna(value) or value == -1 else float(value)


def _rubric(row: dict[str, Any], file: str) -> list[dict[str, object]]:
    rubric = row["score_rubric"]
    missing = [n for n in _RUBRIC if not isinstance(rubric, dict) or not rubric.get(n)]
    if missing:
        raise ValueError(f"{file}: score_rubric of {_instance(row)!r} lacks {missing[0]!r}")
    return levels(_instance(row), "overall", rubric["criteria"], [rubric[n] for n in _RUBRIC[1:]])
