"""``every-order``: one answer under all 120 orders of its rubric,
for the reader to try.

The recorded scores come from ``results/every-order``; without scripts the page shows a
table of three orders and how often each score is given.
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

from rubricnb.core.results import recorded, results_folder

sys.path.append(str(Path(__file__).parents[1]))  # where studies/ is

from studies.study import items_of, read_study

STUDY = "every-order"
SHOWN = "C"  # the answer on the page
ORDERS = {  # a button each: the answer gets a different score under each of them
    "12345": "the usual order",
    "12354": "the last two lines swapped",
    "23451": "the first line moved to the end",
}


class EveryOrder(SphinxDirective):
    def run(self) -> list[nodes.Node]:
        for path in (results_folder() / STUDY).rglob("*.*"):
            self.env.note_dependency(str(path))
        data = experiment()
        carried = json.dumps(data, ensure_ascii=False, allow_nan=False).replace(
            "<", "\\u003c"
        )
        html = (
            '<div class="explorable" data-name="orders">'
            f'<script type="application/json">{carried}</script>'
            f'<div class="fallback">{_table(data)}</div></div>'
        )
        return [nodes.raw("", html, format="html")]


def experiment() -> dict[str, Any]:
    """Return what the page needs.

    ``scores`` maps an order, such as "31254", to the score under it; ``probabilities``
    maps it to the probability of each score, from 1 up.

    Raises
    ------
    ValueError
        Two of `ORDERS` give the answer the same score: their buttons would change
        nothing.
    """
    study = read_study(STUDY)
    items = items_of(study["plans"][0])
    item = items[items["candidate"] == SHOWN].iloc[0]
    judgments = recorded(study["judges"][0]["spec"], "minibench", study=STUDY)
    judgments = judgments[judgments["candidate"] == SHOWN].sort_values("ordering")
    rubric = items.rubrics[items.rubrics["rubric_id"] == item["rubric_id"]]
    rubric = rubric[rubric["variant"] == "standard"].sort_values("score")
    scores, probabilities = {}, {}
    for read in judgments.to_dict("records"):
        order = read["ordering"].replace("-", "")
        scores[order] = int(read["score"])
        at_position = [read[f"probability_{k}"] for k in range(1, len(order) + 1)]
        by_score = dict(zip(order, at_position, strict=True))
        probabilities[order] = [round(by_score[score], 4) for score in sorted(order)]
    if len({scores[order] for order in ORDERS}) < len(ORDERS):
        raise ValueError(
            f"answer {SHOWN} does not get different scores under {', '.join(ORDERS)}: "
            "choose different ORDERS in _ext/every_order.py"
        )
    return {
        "judge": "Qwen2.5-Coder-1.5B",
        "question": item["instruction"],
        "answer": item["response"],
        "criterion": rubric["definition"].iloc[0],
        "levels": rubric["description"].tolist(),
        "named": ORDERS,
        "scores": scores,
        "probabilities": probabilities,
    }


def _table(data: dict[str, Any]) -> str:
    """Tabulate the score under three orders,
    for readers without scripts and for paper.
    """
    scores = data["scores"]
    rows = "".join(
        f"<tr><td>{'-'.join(order)}, {name}</td><td>{scores[order]}</td></tr>"
        for order, name in data["named"].items()
    )
    counts = {
        score: list(scores.values()).count(score)
        for score in sorted({*scores.values()})
    }
    said = ", ".join(f"{score} under {count}" for score, count in counts.items())
    return (
        f"<p>The question: <em>{escape(data['question'])}</em></p>"
        f"<blockquote>{escape(data['answer'])}</blockquote>"
        "<table><thead><tr><th>Order of the five lines</th><th>Score</th></tr></thead>"
        f"<tbody>{rows}</tbody></table>"
        f"<p>Over all {len(scores)} orders: score {said} of them.</p>"
    )


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_directive("every-order", EveryOrder)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
