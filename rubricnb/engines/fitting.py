"""Items with the structure of the papers' datasets, for simulated judges."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.special import ndtri

from rubricnb.core.frames import Items, conform
from rubricnb.core.support.hashing import hash64, uniform
from rubricnb.core.support.settings import read_yaml
from rubricnb.core.support.spelling import one_of
from rubricnb.core.support.types import Row

_SETS = read_yaml(Path(__file__).with_name("stand_ins.yml"))
STAND_INS: dict[str, str] = {dataset: facts["name"] for dataset, facts in _SETS.items()}


def stand_in(dataset: str) -> Items:
    """Return items with the structure of a dataset but without its texts and ratings.

    For simulated judges, which read no text. Ratings are drawn where the dataset has
    some.

    Parameters
    ----------
    dataset
        ``hanna``, ``summeval``, ``mt-bench`` or ``vicuna``.

    Returns
    -------
    Items
        As many items, texts and clusters as Table 1 of arXiv:2602.02219 counts;
        five-level rubrics.

    Examples
    --------
    >>> [len(stand_in(name)) for name in STAND_INS]
    [576, 1600, 320, 320]
    """
    one_of("stand-in", dataset, STAND_INS)
    facts = _SETS[dataset]
    first, last = facts["prompts"]
    criteria = facts.get("criteria", ["overall"])
    parts = product(range(first, last + 1), facts["candidates"], criteria)
    frame = pd.DataFrame([_row(dataset, *part) for part in parts]).assign(
        dataset=dataset, instruction="(stand-in)", response="(stand-in)"
    )
    if "criteria" in facts:
        # as of three people: normal around 3, half their variance in the text
        text, item = (
            ndtri(uniform(hash64(frame[name]))) for name in ("text_id", "item_id")
        )
        raw = 3 + 0.9 * (np.sqrt(0.5) * text + np.sqrt(0.5) * item)
        frame["human"] = np.clip(np.round(3 * raw) / 3, 1, 5)
    levels = pd.DataFrame({"score": range(1, 6)})
    rubrics = frame[["rubric_id", "criterion"]].drop_duplicates()
    rubrics = rubrics.merge(levels, how="cross").assign(
        variant="standard", definition="(stand-in)", description="(stand-in)"
    )
    items = Items(conform(frame, "items"))
    items.rubrics = conform(rubrics, "rubrics")
    return items


def _row(dataset: str, number: int, candidate: str, criterion: str) -> Row:
    name, is_rated = criterion.lower(), "criteria" in _SETS[dataset]
    prompt = f"{dataset}/{number:03d}" if is_rated else f"{dataset}/{number}"
    text = prompt if candidate == "human" else f"{prompt}/{candidate}"
    return {
        "item_id": f"{text}/{name}" if is_rated else text,
        "text_id": text,
        "cluster_id": prompt,
        "group_id": {"hanna": None, "summeval": f"{prompt}/{name}"}.get(
            dataset, prompt
        ),
        "candidate": candidate,
        "criterion": criterion,
        "rubric_id": f"{dataset}/{name}" if is_rated else prompt,
    }
