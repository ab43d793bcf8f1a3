"""GPT-4's three reads of MT-Bench and Vicuna, as Prometheus ships them."""

from __future__ import annotations

import pandas as pd

from rubricnb.core.frames import Judgments
from rubricnb.files.elsewhere import judgments
from rubricnb.sets import sets


def load() -> Judgments:
    """Load them; the items have their texts and rubrics."""
    items = pd.concat(map(sets.load, ("mt-bench", "vicuna")), ignore_index=True)
    asked = [row for name in ("mt-bench", "vicuna") for row in sets.rows(name)]
    rows = [
        {"dataset": row["dataset"], "item_id": item_id, "read": read, "score": score}
        for item_id, row in zip(items["item_id"], asked, strict=True)
        for read, score in enumerate(row["gpt4_score"], 1)
    ]
    return judgments(pd.DataFrame(rows).assign(judge="gpt-4"), items)
