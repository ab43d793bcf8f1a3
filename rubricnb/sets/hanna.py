"""HANNA: the stories that people wrote, with the mean ratings of three raters."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from rubricnb.core.support.types import Records
from rubricnb.sets.sets import sets


def read(files: Sequence[Path]) -> Records:
    """Join the 96 stories of one file and the ratings of the other, in their order."""
    stories = pd.read_csv(files[0]).drop_duplicates("Prompt")
    scores = pd.read_csv(files[1]).set_index("Model").loc["Human"]
    ratings = pd.DataFrame(
        {
            criterion: ast.literal_eval(scores[criterion.capitalize()])
            for criterion in sets()["hanna"]["criteria"]
        }
    )
    return pd.DataFrame(
        {
            "number": range(1, len(stories) + 1),
            "prompt": stories["Prompt"],
            "story": stories["Human"],
            "ratings": ratings.to_dict("records"),
        }
    ).to_dict("records")
