"""``every-order``: three answers under all 120 orders of their rubric, for the reader to move.

The recorded scores come from ``results/every-order``; without scripts the page shows a picture of
one answer's scores.
"""

from __future__ import annotations

import json
import sys
from html import escape
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from rubricnb.judging.results import recorded, results_folder

sys.path.append(str(Path(__file__).parents[1]))  # where studies/ is

from studies.study import items_of, read_study

STUDY = "every-order"
SHOWN = "C"  # the answer that the page opens with
ORDERS = ("12345", "12354", "23451")  # a score each: the first is told, the last is guessed


class EveryOrder(SphinxDirective):
    def run(self) -> list[nodes.Node]:
        for path in (results_folder() / STUDY).rglob("*.*"):
            self.env.note_dependency(str(path))
        data = experiment()
        carried = json.dumps(data, ensure_ascii=False, allow_nan=False).replace("<", "\\u003c")
        html = (
            '<div class="explorable" data-name="orders">'
            f'<script type="application/json">{carried}</script>'
            f'<div class="fallback">{_picture(data)}</div></div>'
        )
        return [nodes.raw("", html, format="html")]


def experiment() -> dict[str, Any]:
    """Return what the page needs; ``scores``: order, such as "31254", → a score for each answer.

    Raises
    ------
    ValueError
        Two of `ORDERS` give the answer shown one score: their buttons would change nothing.
    """
    study = read_study(STUDY)
    items = items_of(study["plans"][0]).sort_values("candidate")
    judgments = recorded(study["judges"][0]["spec"], "minibench", study=STUDY)
    given = judgments.assign(order=judgments["ordering"].str.replace("-", ""))
    table = given.pivot(index="order", columns="item_id", values="score")[items["item_id"]]
    rubric = items.rubrics[items.rubrics["rubric_id"] == items["rubric_id"].iloc[0]]
    rubric = rubric[rubric["variant"] == "standard"].sort_values("score")
    shown = items["candidate"].tolist().index(SHOWN)
    if table.iloc[:, shown][list(ORDERS)].duplicated().any():
        raise ValueError(
            f"answer {SHOWN} does not get different scores under {', '.join(ORDERS)}: choose "
            "different ORDERS in _ext/every_order.py"
        )
    return {
        "judge": "Qwen2.5-Coder-1.5B",
        "question": items["instruction"].iloc[0],
        "answers": items["response"].tolist(),
        "shown": shown,
        "orders": list(ORDERS),
        "criterion": rubric["definition"].iloc[0],
        "levels": rubric["description"].tolist(),
        "scores": {order: row.astype(int).tolist() for order, row in table.iterrows()},
    }


def _picture(data: dict[str, Any]) -> str:
    """Draw how often the first answer shown gets each score, for readers without scripts."""
    scores = [row[data["shown"]] for row in data["scores"].values()]
    levels = range(1, len(data["levels"]) + 1)
    counts = {level: scores.count(level) for level in levels}
    most = max(counts.values())
    said = ", ".join(f"{level} under {counts[level]}" for level in levels if counts[level])
    text = (
        f"“{data['answers'][data['shown']]}” under all {len(scores)} orders of its rubric: "
        f"score {said} of them."
    )
    bars = "".join(
        f'<rect x="{60 * level - 20}" y="{110 - 90 * counts[level] / most:.0f}" width="40" '
        f'height="{90 * counts[level] / most:.0f}" class="mark"></rect>'
        f'<text x="{60 * level}" y="130" text-anchor="middle">{level}</text>'
        for level in levels
    )
    return (
        f'<svg viewBox="0 0 {60 * len(levels) + 60} 140" role="img" aria-label="{escape(text)}">'
        f"{bars}</svg><p>{escape(text)}</p>"
    )


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_directive("every-order", EveryOrder)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
