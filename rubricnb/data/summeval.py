"""SummEval: summaries of 100 articles, four criteria, three experts each."""

from __future__ import annotations

import json
from statistics import mean
from typing import Any

import pandas as pd

from rubricnb.data.fetch import fetch
from rubricnb.data.rubrics import bundled_rubrics, rated_criteria
from rubricnb.data.validate import check_items
from rubricnb.frames import Items

FOLDER = (
    "github/DAMO-NLP-SG/LLM_summeval/bd7dde15817a88940c17574973ff03e750356daa"
    "/model_output_annotations"
)
SHA256 = {
    "M8": "42fc0beefc741046a45d6b0b275f53d4a8dacf6d8fad61018dd2749cf6cae55f",
    "M9": "d535fd61bc458e738d4bbeeb9b99306e6c5305f8895bd7d9e7cc919d4092b1ff",
    "M10": "97fcbe959263a1194c12ec68de0779d121aa0d8b626355406dad332d97cdb647",
    "M11": "316d600477d1ddcc734a2e0495414befa7f9561fe272e16a007bf1adadd9dd85",
    "M12": "41e1fabd1326f4e6dbfaee5df74abbd3f93abb4aa70d80b06201ba64518a61a8",
    "M13": "6e54a047c75810271ce2ffe67351d0739f71976ef634583e5ab3564594d988de",
    "M14": "f340a99d998602c1f7a044c0cc8d7115a3ed6ffe940c1c5174eb35da6a051b40",
    "M15": "853c9d61f904bfdfa43fea7c22a2b7b54460484a47cff8fcc127c6434d1ed6d0",
    "M17": "9186137414e04595b3974a191c0cc590508087bc9ccd3f9edca891539308e75d",
    "M20": "b8a7d20201445c37b0351b587d5918fbe5501910f088bb752d14adcf86e272a6",
    "M22": "055c5ca4e051b95697a85332a2d43bd4cc49a7b20db44297fded88edec4db3b3",
    "M23": "a6c765629284a22731ceda3bf0bf2316dc60371a0d9def141ba7f4b688dbdd60",
}
FOUR = ("M11", "M20", "M13", "M22")
CRITERIA = ("coherence", "consistency", "fluency", "relevance")
_INSTRUCTION = "Summarise the following article.\n\n{article}"


def load_summeval(name: str, rubrics: pd.DataFrame | None = None) -> Items:
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
    >>> load_summeval("summeval", bundled_rubrics("minibench"))
    Traceback (most recent call last):
    ...
    ValueError: summeval has no ratings for the criterion 'accuracy'; it has: coherence, \
consistency, fluency, relevance
    """
    rubrics = bundled_rubrics("summeval") if rubrics is None else rubrics
    judged = rated_criteria(rubrics, CRITERIA, "summeval")
    rows = [
        _item(name, system, text, criterion, rubric_id)
        for article in zip(*map(texts, FOUR if name == "summeval" else SHA256), strict=True)
        for system, text in article
        for criterion, rubric_id in judged
    ]
    return check_items(pd.DataFrame(rows), rubrics)


def texts(system: str) -> list[tuple[str, dict[str, Any]]]:
    """List a system's (name, row), sorted by article."""
    file = fetch(f"{FOLDER}/{system}_outputs_annotations.jsonl", SHA256[system])
    # Not splitlines(): the texts hold other separators than "\n".
    lines = file.read_text(encoding="utf-8").strip().split("\n")
    rows = [json.loads(line) for line in lines]
    return [(system, row) for row in sorted(rows, key=lambda row: str(row["id"]))]


def _item(
    name: str, system: str, text: dict[str, Any], criterion: str, rubric_id: str
) -> dict[str, object]:
    article = f"summeval/{text['id']}"
    ratings = tuple(expert[criterion.lower()] for expert in text["expert_annotations"])
    return {
        "item_id": f"{article}/{system}/{criterion.lower()}",
        "dataset": name,
        "text_id": f"{article}/{system}",
        "group_id": f"{article}/{criterion.lower()}",
        "cluster_id": article,
        "candidate": system,
        "instruction": _INSTRUCTION.format(article=text["text"]),
        "response": text["decoded"],
        "criterion": criterion,
        "rubric_id": rubric_id,
        "human": mean(ratings),
        "human_ratings": ratings,
    }
