"""Scoring-bias probes of three API models and 26 open ones (Samba 2026)."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd

from rubricnb.core.frames import Judgments
from rubricnb.files.elsewhere import judgments
from rubricnb.files.fetch import pinned

FOLDER = (
    "github/ssamba1/Scoring-Bias-in-LLM-as-a-Judge/"
    "fd44089646221e7405737cd81934c7e77ec88938"
    "/paper/honest/repro"
)
_FEW_LABELS = "under 2 % of the probability is on the labels"
_THREE_ANCHORS = "the prompt names three anchors of five"
# one prompt, asked once in each of five probes
_CONTROLS = ("control", "numeric", "none")


def load() -> Judgments:
    """Load them; ``form``: control (five reads) or PROBE/VARIANT; ``raw``: recorded."""
    rows = []
    for name, file in pinned(FOLDER).items():
        # The texts of the two files differ, as far as one can know.
        api = name == "results_closed.json"
        dataset = f"scoring-probes-{'api' if api else 'open'}"
        for model, record in json.loads(file.read_text())["results"].items():
            for training in ("base", "instruct"):
                judge = model if api else f"{model} {training}"
                known = {"dataset": dataset, "judge": judge}
                probes = enumerate(record.get(training, {}).items(), 1)
                rows += [
                    known | {"probe": probe, "variant": name, "read": read} | values
                    for read, (probe, variants) in probes
                    for name, values in variants.items()
                ]
    frame = pd.DataFrame(rows).explode(["per_item", "per_item_entropy"])
    number = (frame.groupby(level=0).cumcount() + 1).astype("str").str.zfill(2)
    raw, variant = frame["per_item"].astype("float64"), frame["variant"]
    control = variant.isin(_CONTROLS)
    is_open = frame["dataset"].str.endswith("open")
    reason = np.select(
        [is_open, variant == "random"], [_FEW_LABELS, _THREE_ANCHORS], ""
    )
    return judgments(
        pd.DataFrame(
            {
                **frame[["dataset", "judge"]],
                "item_id": frame["dataset"] + "/" + number,
                "form": (frame["probe"] + "/" + variant).mask(control, "control"),
                "read": frame["read"].where(control, 1),
                "score": raw.mask(variant == "reversed", 6 - raw).where(reason == ""),
                "status": np.where(reason == "", "ok", "unparsed"),
                "reason": reason,
                "raw": raw,
                "entropy": frame["per_item_entropy"].astype("float64"),
                "label_mass": frame["mean_mass"],  # of the variant; not known of an API
            }
        ).reset_index(drop=True),
        scale=(1, 5),
    )
