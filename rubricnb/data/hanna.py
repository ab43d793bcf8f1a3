"""HANNA: 96 stories by people, six criteria, mean ratings of three raters."""

from __future__ import annotations

import ast

import pandas as pd

from rubricnb.data.fetch import fetch
from rubricnb.data.rubrics import bundled_rubrics, rated_criteria
from rubricnb.data.validate import check_items, ids
from rubricnb.frames import Items

FOLDER = "github/dig-team/hanna-benchmark-asg/282f27536a5d05ad4ce14298abcd70c45668fed2"
STORIES = f"{FOLDER}/hanna_llm_stories.csv"
RATINGS = f"{FOLDER}/hanna_metric_scores_llm.csv"
CRITERIA = ("Relevance", "Coherence", "Empathy", "Surprise", "Engagement", "Complexity")
_INSTRUCTION = "Write a short story that follows from this prompt.\n\n{prompt}"


def load(name: str, rubrics: pd.DataFrame | None = None) -> Items:
    """Load the stories of HANNA that were written by people.

    Parameters
    ----------
    name
        ``hanna``.
    rubrics
        Other rubrics than ours; items are loaded for their criteria.

    Returns
    -------
    Items
        96 stories × 6 criteria; ``human`` is the mean of three raters. A story is a cluster.
        Nothing competes, so ``group_id`` is missing. The sentence that makes an instruction of
        the story prompt is ours, and so are the five-level rubrics: the papers' are not public.

    Raises
    ------
    ValueError, ConnectionError, FileNotFoundError
        As `rubricnb.data.fetch.fetch`; or a criterion of the rubrics is not one of HANNA's.

    Notes
    -----
    Chhun, Suchanek and Clavel 2024, TACL 12.

    Examples
    --------
    >>> load("hanna", bundled_rubrics("minibench"))
    Traceback (most recent call last):
    ...
    ValueError: hanna has no ratings for the criterion 'accuracy'; it has: relevance, coherence, \
empathy, surprise, engagement, complexity
    """
    rubrics = bundled_rubrics(name) if rubrics is None else rubrics
    judged = rated_criteria(rubrics, list(map(str.lower, CRITERIA)), name)
    stories = pd.read_csv(fetch(STORIES)).drop_duplicates("Prompt")
    scores = pd.read_csv(fetch(RATINGS)).set_index("Model").loc["Human"]
    ratings = {one.lower(): ast.literal_eval(scores[one]) for one in CRITERIA}
    texts = enumerate(zip(stories["Prompt"], stories["Human"], strict=True), 1)
    rows = [
        {
            **ids(name, f"hanna/{number:03d}", criterion=criterion.lower()),
            "candidate": "human",
            "instruction": _INSTRUCTION.format(prompt=prompt),
            "response": story,
            "criterion": criterion,
            "rubric_id": rubric_id,
            "human": ratings[criterion.lower()][number - 1],
        }
        for number, (prompt, story) in texts
        for criterion, rubric_id in judged
    ]
    return check_items(pd.DataFrame(rows), rubrics)
