"""LLM-Rubric: probabilities of four options on dialogues (Hashemi et al. 2024)."""

from __future__ import annotations

import numpy as np
import pandas as pd

from rubricnb.data.elsewhere import judgments
from rubricnb.data.fetch import pinned
from rubricnb.frames import Items, Judgments

FOLDER = "github/microsoft/LLM-Rubric/70d56fc4e9a26e60642bc14b62b96d2d0a500edd/data"
_QUESTIONS = [f"Q{q}" for q in range(9)]
_SETS = {"real": "llm-rubric-real", "synth": "llm-rubric-synthetic"}


def load() -> Judgments:
    """Load both sets; a dialogue is judged under nine questions."""
    tables: list[pd.DataFrame] = []
    people: list[pd.DataFrame] = []
    for name, file in pinned(FOLDER).items():
        dataset = _SETS[name.split("_")[0]]
        table = pd.read_csv(file, sep="\t", dtype={"text_id": "str"})
        (tables if "criterion" in table else people).append(table.assign(dataset=dataset))
    judged = pd.concat(tables, ignore_index=True).rename(
        columns={f"answer{k}_prob": f"probability_{k}" for k in range(1, 5)}
        | {"sample_llm": "sampled"}
    )
    options = judged[[f"probability_{k}" for k in range(1, 5)]]
    judged["score"] = options.to_numpy().argmax(axis=1) + 1
    return judgments(judged.assign(judge="gpt-3.5-turbo-16k"), _items(people), scale=(1, 4))


def _items(people: list[pd.DataFrame]) -> Items:
    """Every dialogue under every question; 0 and blanks are answers not given."""
    answers = pd.concat(people).melt(
        ["dataset", "text_id", "annotator_id", "dialogue_system"], _QUESTIONS, "criterion", "rating"
    )
    answers["rating"] = answers["rating"].where(answers["rating"] > 0)
    given = answers.dropna(subset="rating").groupby(["dataset", "text_id", "criterion"])
    items = answers.drop_duplicates(["dataset", "text_id", "criterion"]).join(
        given.agg(
            human=("rating", "mean"),
            human_ratings=("rating", tuple),
            raters=("annotator_id", tuple),
        ),
        on=["dataset", "text_id", "criterion"],
    )
    # V1_10 to V5_10 are five systems' dialogues on one topic; the real ones have a number.
    system, topic = items["text_id"].str.partition("_")[[0, 2]].to_numpy().T
    number = "system-" + items["dialogue_system"].astype("Int8").astype("str")
    return Items(
        items.drop(columns=["annotator_id", "dialogue_system", "rating"]).assign(
            item_id=items["dataset"] + "/" + items["text_id"] + "/" + items["criterion"],
            cluster_id=items["dataset"] + "/" + np.where(topic == "", system, topic),
            candidate=np.where(topic == "", number, system),
        )
    )
