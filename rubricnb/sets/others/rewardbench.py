"""Eight reads of RewardBench 2 by GPT-5.4 and Claude (Lail and Markham 2026)."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np
import pandas as pd

from rubricnb.core.frames import Judgments
from rubricnb.core.support.counting import repeated
from rubricnb.core.support.types import Records, Row
from rubricnb.files.elsewhere import judgments
from rubricnb.files.fetch import pinned
from rubricnb.files.tables import read_records

FOLDER = (
    "github/composo-ai/llm-judge-criteria-ensembling/"
    "e4049a57dc73097f899a605f5435923f03e9233c"
    "/results/raw"
)
_RESPONSES, _READS = 4, 8
_GPT = {"full": "gpt-5.4", "mini": "gpt-5.4-mini", "nano": "gpt-5.4-nano"}
_CLAUDE = {"full": "claude-sonnet-4.6", "mini": "claude-haiku-4.5"}
_STATUS = {
    "": "ok",
    "no_score_found": "unparsed",
    "policy_refusal": "refused",
    "empty_response (finish_reason=content_filter)": "refused",
}  # of anything else: error


def load() -> Judgments:
    """Load them; an item is one response to one prompt, the prompt is its cluster."""
    parts = [
        part
        for name, file in pinned(FOLDER).items()
        for part in _arms(name, read_records(file))
    ]
    cells = pd.concat([part.pop("cells") for part in parts], ignore_index=True)
    rows = repeated(np.arange(len(cells)), _READS)
    frame = cells.astype("category").iloc[rows].reset_index(drop=True)
    frame["temperature"] = frame["temperature"].astype(np.float64)
    frame["read"] = np.tile(np.arange(1.0, _READS + 1), len(cells))
    frame["score"] = np.concatenate([part["score"] for part in parts])
    reason = pd.Categorical([r for part in parts for r in part["reason"]])
    frame["reason"] = reason
    status = np.array([_STATUS.get(r, "error") for r in reason.categories])
    frame["status"] = pd.Categorical(status[reason.codes])
    return judgments(frame, scale=(1, 10))


def _arms(name: str, rows: Records) -> Iterator[Row]:
    """Yield each judge's cells (prompt × response), scores and errors of a file."""
    temperature = re.search(r"_t([\d.]+)\.jsonl", name)
    claude = "claude" in name
    for size, judge in (_CLAUDE if claude else _GPT).items():
        if f"{size}_scores" not in rows[0]:
            continue
        prompts = [f"rewardbench-2/{row['subset']}/{row['id']}" for row in rows]
        cells = pd.DataFrame(
            {
                "item_id": [f"{p}/{r}" for p in prompts for r in range(_RESPONSES)],
                "group_id": repeated(prompts, _RESPONSES),
                "candidate": ["right", "wrong-1", "wrong-2", "wrong-3"] * len(prompts),
            }
        )
        cells = cells.assign(
            dataset="rewardbench-2",
            judge=judge,
            form=rows[0]["prompt_variant"],
            # The scripts' default is 1 for GPT;
            # Claude was asked through its command line.
            temperature=float(temperature[1])
            if temperature
            else np.nan
            if claude
            else 1.0,
        )
        score = np.array([row[f"{size}_scores"] for row in rows], dtype=np.float64)
        errors = [
            e or "" for row in rows for reads in row[f"{size}_errors"] for e in reads
        ]
        yield {"cells": cells, "score": score.ravel(), "reason": errors}
