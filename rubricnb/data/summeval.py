"""SummEval: summaries of 100 articles, four criteria, three experts each."""

from __future__ import annotations

import json
from statistics import mean
from typing import Any

import pandas as pd

from rubricnb.data.fetch import fetch
from rubricnb.data.rubrics import bundled_rubrics, rated_criteria
from rubricnb.data.validate import check_items, ids
from rubricnb.frames import Items

FOLDER = (
    "github/DAMO-NLP-SG/LLM_summeval/bd7dde15817a88940c17574973ff03e750356daa"
    "/model_output_annotations"
)
SYSTEMS = ("M8", "M9", "M10", "M11", "M12", "M13", "M14", "M15", "M17", "M20", "M22", "M23")
FOUR = ("M11", "M20", "M13", "M22")
CRITERIA = ("coherence", "consistency", "fluency", "relevance")
_INSTRUCTION = "Summarise the following article.\n\n{article}"


def load(name: str, rubrics: pd.DataFrame | None = None) -> Items:
    """Load SummEval.

    Parameters
    ----------
    name
        ``summeval``: four systems (M11, M20, M13, M22: weak, mixed, middle, strong; the papers
        take four and do not name them), 1,600 items. ``summeval-all``: all twelve, 4,800.
    rubrics
        Other rubrics than ours; items are loaded for their criteria.

    Returns
    -------
    Items
        One item per article, system and criterion. ``human_ratings`` are the three experts',
        ``human`` is their mean. Cluster: the article; group: article × criterion. The sentence
        above the article is ours, and so are the five-level rubrics.

    Raises
    ------
    ValueError, ConnectionError, FileNotFoundError
        As `rubricnb.data.fetch.fetch`; or a criterion of the rubrics is not one of SummEval's.

    Notes
    -----
    Fabbri et al. 2021, TACL 9; article texts: CNN/DailyMail.

    Examples
    --------
    >>> load("summeval", bundled_rubrics("minibench"))
    Traceback (most recent call last):
    ...
    ValueError: summeval has no ratings for the criterion 'accuracy'; it has: coherence, \
consistency, fluency, relevance
    """
    rubrics = bundled_rubrics("summeval") if rubrics is None else rubrics
    judged = rated_criteria(rubrics, CRITERIA, "summeval")
    rows = [
        _item(name, system, text, criterion, rubric_id)
        for article in zip(*map(texts, FOUR if name == "summeval" else SYSTEMS), strict=True)
        for system, text in article
        for criterion, rubric_id in judged
    ]
    return check_items(pd.DataFrame(rows), rubrics)


def texts(system: str) -> list[tuple[str, dict[str, Any]]]:
    """List a system's (name, row), sorted by article."""
    file = fetch(f"{FOLDER}/{system}_outputs_annotations.jsonl")
    # Not splitlines(): the texts hold other separators than "\n".
    lines = file.read_text(encoding="utf-8").strip().split("\n")
    rows = [json.loads(line) for line in lines]
    return [(system, row) for row in sorted(rows, key=lambda row: str(row["id"]))]


def _item(
    name: str, system: str, text: dict[str, Any], criterion: str, rubric_id: str
) -> dict[str, object]:
    ratings = tuple(expert[criterion.lower()] for expert in text["expert_annotations"])
    return {
        **ids(name, f"summeval/{text['id']}", system, criterion.lower()),
        "candidate": system,
        "instruction": _INSTRUCTION.format(article=text["text"]),
        "response": text["decoded"],
        "criterion": criterion,
        "rubric_id": rubric_id,
        "human": mean(ratings),
        "human_ratings": ratings,
    }
