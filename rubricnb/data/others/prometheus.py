"""GPT-4's three reads of MT-Bench and Vicuna, as Prometheus ships them."""

from __future__ import annotations

import json

import pandas as pd

from rubricnb.data import prometheus
from rubricnb.data.elsewhere import judgments
from rubricnb.data.fetch import fetch
from rubricnb.data.prometheus import FILES, item_of
from rubricnb.frames import Judgments


def load() -> Judgments:
    """Load them, with GPT-4's feedback; the items have their texts and rubrics."""
    rows = [
        {"dataset": name, "item_id": item_of(name, row), "read": read, "score": score,
         "feedback": feedback}
        for name, file in FILES.items()
        for row in json.loads(fetch(file).read_text(encoding="utf-8"))
        for read, (score, feedback) in enumerate(
            zip(row["gpt4_score"], row["gpt4_feedback"], strict=True), 1
        )
    ]  # fmt: skip
    items = pd.concat(map(prometheus.load, FILES), ignore_index=True)
    return judgments(pd.DataFrame(rows).assign(judge="gpt-4"), items)
