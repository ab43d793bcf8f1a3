"""HANNA's stories by eleven writers, judged by five models in four prompt forms."""

from __future__ import annotations

import ast

import numpy as np
import pandas as pd

from rubricnb.data.elsewhere import judgments
from rubricnb.data.fetch import fetch
from rubricnb.data.sets import sets
from rubricnb.frames import Items, Judgments

_JUDGES = ("ChatGPT", "Llama-13B", "Beluga-13B", "OrcaPlatypus", "Mistral-7B")
_SHORT = ("RE", "CH", "EM", "SU", "EG", "CX")  # the columns' names of the criteria


def load() -> Judgments:
    """Load them; ``raw`` keeps a score that is off the scale."""
    table = pd.read_csv(fetch(sets()["hanna"]["files"][1])).set_index("Model")
    items = _items(table)
    parts = []
    for judge in _JUDGES:
        for form in "1234":
            score = np.stack(
                [_scores(table[f"{judge} {short} {form}"]) for short in _SHORT], axis=1
            )
            part = pd.DataFrame({"item_id": items["item_id"], "raw": score.ravel()})
            parts.append(part.assign(judge=judge, form=f"prompt-{form}"))
    frame = pd.concat(parts, ignore_index=True).assign(dataset="hanna")
    off = ~frame["raw"].between(1, 5)
    frame["score"] = frame["raw"].mask(off)
    frame["status"] = np.where(off, "out_of_range", "ok")
    frame["reason"] = np.where(off, "off 1–5: −1 seems to mark a failed read", "")
    return judgments(frame, items, scale=(1, 5))


def _items(table: pd.DataFrame) -> Items:
    """96 stories of each writer × six criteria, with three raters; a prompt is a cluster."""
    raters = np.stack(
        [[_scores(table[f"Human {n} {short}"]) for short in _SHORT] for n in (1, 2, 3)]
    )  # raters, criteria, stories of all writers
    rows = []
    for place, (writer, number) in enumerate((w, n) for w in table.index for n in range(1, 97)):
        story = f"hanna/{number:03d}"
        # The stories by people are those of the dataset hanna, and have its ids.
        text = story if writer == "Human" else f"{story}/{writer}"
        for c, criterion in enumerate(sets()["hanna"]["criteria"]):
            ratings = tuple(raters[:, c, place].tolist())
            rows.append({
                "item_id": f"{text}/{criterion}", "dataset": "hanna", "text_id": text,
                "group_id": f"{story}/{criterion}", "cluster_id": story,
                "candidate": writer.lower(), "criterion": criterion,
                "human": sum(ratings) / 3, "human_ratings": ratings,
            })  # fmt: skip
    return Items(rows)


def _scores(cells: pd.Series) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """A cell is the list of a writer's 96 stories."""
    return np.array([ast.literal_eval(cell) for cell in cells], dtype=np.float64).ravel()
