"""HANNA's stories by eleven writers, judged by five models in four prompt forms."""

from __future__ import annotations

import ast

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from rubricnb.core.frames import Items, Judgments
from rubricnb.files.elsewhere import judgments
from rubricnb.files.fetch import fetch
from rubricnb.sets.sets import sets

_JUDGES = ("ChatGPT", "Llama-13B", "Beluga-13B", "OrcaPlatypus", "Mistral-7B")
_SHORT = ("RE", "CH", "EM", "SU", "EG", "CX")  # the columns' names of the criteria


def load() -> Judgments:
    """Load them; ``raw`` keeps a score that is off the scale."""
    table = pd.read_csv(fetch(sets()["hanna"]["files"][1])).set_index("Model")
    items = _items(table)
    frame = pd.concat(
        [
            items[["item_id", "dataset"]].assign(
                judge=judge,
                form=f"prompt-{form}",
                raw=_scores(table, f"{judge} {{}} {form}"),
            )
            for judge in _JUDGES
            for form in "1234"
        ],
        ignore_index=True,
    )
    off = ~frame["raw"].between(1, 5)
    frame["score"] = frame["raw"].mask(off)
    frame["status"] = np.where(off, "out_of_range", "ok")
    frame["reason"] = np.where(off, "off 1–5: −1 seems to mark a failed read", "")
    return judgments(frame, items, scale=(1, 5))


def _items(table: pd.DataFrame) -> Items:
    """96 stories of each writer × six criteria, three raters; prompts are clusters."""
    stories = [f"hanna/{n:03d}" for n in range(1, 97)]
    keys = pd.MultiIndex.from_product(
        [table.index, stories, sets()["hanna"]["criteria"]],
        names=["writer", "story", "criterion"],
    ).to_frame(index=False)
    writer, story, criterion = (keys[name] for name in keys)
    # The stories by people are those of the dataset hanna, and have its ids.
    text = story.where(writer == "Human", story + "/" + writer)
    raters = np.stack([_scores(table, f"Human {n} {{}}") for n in (1, 2, 3)], axis=1)
    return Items(
        {
            "item_id": text + "/" + criterion,
            "dataset": "hanna",
            "text_id": text,
            "group_id": story + "/" + criterion,
            "cluster_id": story,
            "candidate": writer.str.lower(),
            "criterion": criterion,
            "human": raters.sum(axis=1) / 3,
            "human_ratings": [*map(tuple, raters.tolist())],
        }
    )


def _scores(table: pd.DataFrame, column: str) -> NDArray[np.float64]:
    """Every story under every criterion; a cell lists a writer's 96 stories."""
    cells = table[[column.format(short) for short in _SHORT]].map(ast.literal_eval)
    return np.stack([np.concatenate([*cells[name]]) for name in cells], axis=1).ravel()
