"""FLASK as Prometheus ships it: twelve skills, rated by people; from a file of one's own."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd

from rubricnb.data.prometheus import levels_of, parse_prompt
from rubricnb.data.validate import check_items
from rubricnb.frames import Items

_NEEDED = ("idx", "response_source", "criteria", "instruction", "human_score")


def load_flask(path: str | Path) -> Items:
    """Load FLASK's evaluation set. Not yet met real data: written from its description.

    Parameters
    ----------
    path
        ``flask_eval.json`` of the Prometheus repository: a list of records with ``idx``,
        ``response_source``, ``criteria`` (the skill), ``instruction`` (a whole judge prompt, as
        `rubricnb.data.prometheus.parse_prompt` takes it apart), ``human_score`` and
        ``gpt4_score`` (numbers or lists of them).

    Returns
    -------
    Items
        One item per response and skill. A prompt is a cluster; the responses to it compete within
        a skill. ``human`` is the mean of ``human_ratings``; ``gold_ratings`` are GPT-4's scores
        that come with the data, and ``gold`` their median. A skill is a rubric; ``reference``, and
        ``reference_5``, the full-mark answer in the prompt.

    Raises
    ------
    ValueError
        Not such a list, a prompt in another format, or a rating out of range.

    Notes
    -----
    Ye et al. 2024, *FLASK*; arXiv:2506.22316, Table 1: 2,001 responses to 200 prompts, 12 rubrics.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from rubricnb.data.prometheus import render_prompt
    >>> parts = dict.fromkeys(["task", "instruction", "response", "reference", "definition"], "…")
    >>> prompt = render_prompt(parts | {f"level_{k}": f"L{k}" for k in range(1, 6)})
    >>> row = {"idx": 3, "response_source": "m", "criteria": "Factuality", "instruction": prompt,
    ...        "human_score": [4, 5, 4], "gpt4_score": [5]}
    >>> with TemporaryDirectory() as folder:
    ...     file = Path(folder, "flask_eval.json")
    ...     _ = file.write_text(json.dumps([row]))
    ...     load_flask(file)[["item_id", "human", "gold"]].round(2)
                    item_id  human  gold
    0  flask/3/m/factuality   4.33   5.0
    """
    path = Path(path)
    rows = _read(path)
    parts = [parse_prompt(row["instruction"]) for row in rows]
    skills = [str(row["criteria"]).strip().lower() for row in rows]
    rubric_ids = _rubric_ids(skills, parts)
    items = pd.DataFrame(
        [_item(*facts) for facts in zip(rows, parts, skills, rubric_ids, strict=True)]
    )
    rubrics = pd.DataFrame(
        level
        for part, skill, rubric_id in zip(parts, skills, rubric_ids, strict=True)
        for level in levels_of(part, rubric_id, skill)
    ).drop_duplicates(["rubric_id", "score"])
    return check_items(items, rubrics, allow_unrated=True)


def _read(path: Path) -> list[dict[str, Any]]:
    try:
        rows = json.loads(path.read_text(encoding="utf-8"))
    except json.JSONDecodeError as error:
        raise ValueError(f"{path.name} is no JSON: {error}") from error
    if not isinstance(rows, list):
        raise ValueError(f"{path.name} holds no list of records but a {type(rows).__name__}")
    for number, row in enumerate(rows, start=1):
        lacking = [n for n in _NEEDED if not isinstance(row, dict) or n not in row]
        if lacking:
            raise ValueError(f"{path.name}: record {number} lacks {lacking[0]!r}")
    return rows


def _rubric_ids(skills: list[str], parts: list[dict[str, str]]) -> list[str]:
    """Name the rubrics by skill; a skill that is worded in several ways has several."""
    wordings: dict[str, list[list[dict[str, object]]]] = {}
    ids = []
    for skill, part in zip(skills, parts, strict=True):
        known, text = wordings.setdefault(skill, []), levels_of(part, "", skill)
        if text not in known:
            known.append(text)
        number = known.index(text) + 1
        ids.append(f"flask-{skill}" + (f"-{number}" if number > 1 else ""))
    return ids


def _item(
    row: dict[str, Any], parts: dict[str, str], skill: str, rubric_id: str
) -> dict[str, object]:
    prompt = f"flask/{row['idx']}"
    text = f"{prompt}/{row['response_source']}"
    human, gold = _ratings(row["human_score"]), _ratings(row.get("gpt4_score"))
    return {
        "item_id": f"{text}/{skill}",
        "dataset": "flask",
        "text_id": text,
        "group_id": f"{prompt}/{skill}",
        "cluster_id": prompt,
        "candidate": str(row["response_source"]),
        "instruction": parts["instruction"],
        "response": parts["response"],
        "reference": parts["reference"],
        "reference_5": parts["reference"],
        "criterion": skill,
        "rubric_id": rubric_id,
        "human": sum(human) / len(human) if human else float("nan"),
        "human_ratings": human or None,
        "gold": float(pd.Series(gold).median()) if gold else float("nan"),
        "gold_ratings": gold or None,
    }


def _ratings(scores: Any) -> tuple[float, ...]:
    listed = scores if isinstance(scores, list) else [scores]
    return tuple(s for s in listed if isinstance(s, int | float) and not pd.isna(s))
