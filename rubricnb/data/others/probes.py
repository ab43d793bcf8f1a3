"""Scoring-bias probes of three API models and 26 open ones (Samba 2026)."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pandas as pd

from rubricnb.data.elsewhere import judgments
from rubricnb.data.fetch import pinned
from rubricnb.frames import Judgments

FOLDER = (
    "github/ssamba1/Scoring-Bias-in-LLM-as-a-Judge/fd44089646221e7405737cd81934c7e77ec88938"
    "/paper/honest/repro"
)
_CONTROLS = ("control", "numeric", "none")  # one prompt, asked once in each of five probes


def load() -> Judgments:
    """Load them; ``form`` is control (five reads) or PROBE/VARIANT, ``raw`` what was recorded."""
    rows = []
    for name, file in pinned(FOLDER).items():
        kind = "api" if name == "results_closed.json" else "open"
        for model, record in json.loads(file.read_text())["results"].items():
            for training in ("base", "instruct"):
                judge = model if kind == "api" else f"{model} {training}"
                for read, (probe, variants) in enumerate(record.get(training, {}).items(), 1):
                    for variant, values in variants.items():
                        rows.append(_part(kind, judge, probe, variant, read, values))
    return judgments(pd.concat(rows, ignore_index=True), scale=(1, 5))


def _part(
    kind: str, judge: str, probe: str, variant: str, read: int, values: dict[str, Any]
) -> pd.DataFrame:
    raw = np.array(values["per_item"])
    control = variant in _CONTROLS
    reason = ""
    if kind == "open":
        reason = "under 2 % of the probability is on the labels"
    elif variant == "random":
        reason = "the prompt names three anchors of five"
    mapped = 6 - raw if variant == "reversed" else raw
    number = np.arange(1, len(raw) + 1)
    return pd.DataFrame(
        {
            # The texts of the two files differ, as far as one can know.
            "dataset": f"scoring-probes-{kind}",
            "item_id": [f"scoring-probes-{kind}/{n:02d}" for n in number],
            "judge": judge,
            "form": "control" if control else f"{probe}/{variant}",
            "read": read if control else 1,
            "score": np.nan if reason else mapped,
            "status": "unparsed" if reason else "ok",
            "reason": reason,
            "raw": raw,
            "entropy": values["per_item_entropy"],
            "label_mass": values.get("mean_mass", np.nan),  # of the variant; not known of an API
        }
    )
