"""SummEval judged by GPT-3.5, GPT-4, Llama-2 and six later judges."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from statistics import mean
from typing import Any

import pandas as pd

from rubricnb.core.frames import Items, Judgments
from rubricnb.core.support.types import Row
from rubricnb.core.validate import ids
from rubricnb.files.elsewhere import judgments
from rubricnb.files.fetch import pinned
from rubricnb.files.tables import read_records
from rubricnb.sets import sets

FOLDER = "github/DAMO-NLP-SG/LLM_summeval/bd7dde15817a88940c17574973ff03e750356daa"
SIX = "github/nitaytech/AltTest/18428b1f4f34ac61c4978bc180263b90111e7337/data/summeval"
_DATASET = "summeval-all"
_WORDS = {"one": 1.0, "two": 2.0, "three": 3.0, "four": 4.0, "five": 5.0}
_OPTIONS = {"a": 1.0, "b": 2.0, "c": 3.0, "d": 4.0, "e": 5.0}
_N = r"(?<![\w.,/-])([1-5](?:\.\d+)?|one|two|three|four|five)(?![\w%]|[.,]\d|-)"
_NAMED = (
    r"\b(?:scor(?:e|es|ing)|rating|give|gets)\b"
    r"(?:(?!\d|\b(?:one|two|three|four|five)\b)[^.\n]){0,60}?" + _N
)
_FINAL = rf"\bfinal (?:score|rating)\W{{0,5}}(?:(?:is|of)\W{{1,3}})?(?:an? )?{_N}"
_OF_FIVE = rf"{_N}\s*(?:/|out of)\s*(?:5|five)\b"
_BARE = rf"(?:^|[.!?;:]\s+|\(){_N}\W*$"


# by prompt form: the ways in which an answer names its score, the clearest first
_WAYS = {
    "rts": [[_FINAL], [_NAMED, _OF_FIVE, _BARE]],
    "stareval": [[rf"{_N}[\s-]*(?:out of (?:5|five) )?stars?\b", _OF_FIVE]],
    "mcq": [[r"\A((?-i:[A-E]))\Z"]],  # altmcq too ran with A = 1 … E = 5
}


def scores_in(text: str, form: str) -> set[float]:
    """All scores that an answer names in the clearest way that it uses."""
    known = _WORDS | _OPTIONS
    for ways in _WAYS[form.removeprefix("alt")]:
        names = [m[1].lower() for w in ways for m in re.finditer(w, text, re.I)]
        if names:
            return {known[n] if n in known else float(n) for n in names}
    return set()


def load_gpt() -> Judgments:
    """Load the raw answers, read by a parser per prompt form."""
    form = r"eval_model_generations/(.+)/eval_(M\d+)_generations/([a-z]+)_([a-z]+)\.txt"
    rows = []
    for (judge, system, criterion, kind), answer in _answers(".txt", form):
        scores = scores_in(answer["resp"].strip(), kind)
        reason = "several scores named" if scores else "no score named"
        score, reason = (scores.pop(), "") if len(scores) == 1 else (None, reason)
        rows.append(
            (judge, kind, _item(answer["id"], system, criterion), score, reason)
        )
    frame = pd.DataFrame(rows, columns=["judge", "form", "item_id", "score", "reason"])
    frame["read"] = frame.groupby(["judge", "form", "item_id"]).cumcount() + 1
    return judgments(frame.assign(dataset=_DATASET), sets.load(_DATASET), scale=(1, 5))


def load_pairs() -> Judgments:
    """Load the verdicts on pairs; ``ordering`` says whose summary stood first."""
    name_of = r"comp_res/(.+)/(M\d+)-(M\d+)_([a-z]+?)(_toggle)?\.result"
    rows = []
    for (judge, first, other, criterion, toggled), answer in _answers(
        ".result", name_of
    ):
        article, pair = f"summeval/{answer['id']}", f"{first}-vs-{other}"
        score = {"A": 1.0, "B": 2.0, "C": 1.5}.get(answer["resp"].split(":")[0])
        human = answer["human_score_1"], answer["human_score_2"]
        rows.append(
            {
                "judge": judge,
                "item_id": f"{article}/{criterion}/{pair}",
                "dataset": "summeval-pairs",
                "criterion": criterion,
                "cluster_id": article,
                "group_id": f"{article}/{criterion}",
                "candidate": pair,
                "ordering": "2-1" if toggled else "1-2",
                "score": 3 - score if toggled and score else score,
                "human": None if human[0] == human[1] else 1 + (human[1] > human[0]),
            }
        )
    return judgments(pd.DataFrame(rows), scale=(1, 2))


def _answers(ending: str, pattern: str) -> Iterator[tuple[tuple[str, ...], Row]]:
    """Each answer, with what the name of its file says by this pattern."""
    for name, file in pinned(FOLDER, ending).items():
        said = re.fullmatch(pattern, name).groups()  # type: ignore[union-attr]
        for answer in read_records(file):
            yield said, answer


def load_six() -> Judgments:
    """Load one read each by six judges, and the three experts."""
    files = pinned(SIX)
    people = pd.DataFrame(json.loads(files["human_annotations.json"].read_text()))
    scores = pd.DataFrame(json.loads(files["llm_annotations.json"].read_text()))
    rated = Items([_rated(key, tuple(row)) for key, *row in people.itertuples()])
    table = scores.melt(var_name="judge", value_name="score", ignore_index=False)
    table["item_id"] = [_item(*key.split("__")) for key in table.index]
    return judgments(
        table.reset_index(drop=True).assign(dataset=_DATASET), rated, (1, 5)
    )


def _item(article: str, system: str, criterion: str) -> str:
    return f"summeval/{article}/{system}/{criterion}"


def _rated(key: str, ratings: tuple[Any, ...]) -> Row:
    article, system, criterion = key.split("__")
    return {
        **ids(_DATASET, f"summeval/{article}", system, criterion),
        "candidate": system,
        "criterion": criterion,
        "human": mean(ratings),
        "human_ratings": ratings,
    }
