"""Eight reads of RewardBench 2 by GPT-5.4 and Claude (Lail and Markham 2026)."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np
import pandas as pd

from rubricnb.core.frames import Judgments
from rubricnb.core.support.types import Records
from rubricnb.files.elsewhere import judgments
from rubricnb.files.fetch import pinned
from rubricnb.files.tables import read_records

FOLDER = (
    "github/composo-ai/llm-judge-criteria-ensembling/"
    "e4049a57dc73097f899a605f5435923f03e9233c"
    "/results/raw"
)
_CANDIDATES = ["right", "wrong-1", "wrong-2", "wrong-3"]
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
    files = pinned(FOLDER).items()
    arms = [arm for name, file in files for arm in _arms(name, read_records(file))]
    answers = pd.concat(arms, ignore_index=True).explode(["score", "reason"])
    reads = answers.groupby(level=0).cumcount() + 1.0
    names = ["item_id", "group_id", "candidate", "judge", "form", "reason"]
    frame = answers.fillna({"reason": ""}).astype(dict.fromkeys(names, "category"))
    frame = frame.assign(read=reads, score=frame["score"].astype("float64"))
    frame["status"] = frame["reason"].map(lambda why: _STATUS.get(why, "error"))
    frame["dataset"] = "rewardbench-2"
    return judgments(frame.reset_index(drop=True), scale=(1, 10))


def _arms(name: str, rows: Records) -> Iterator[pd.DataFrame]:
    """Yield each judge's answers of a file: a row a response, with lists of reads."""
    temperature = re.search(r"_t([\d.]+)\.jsonl", name)
    is_claude = "claude" in name
    # The scripts' default is 1 for GPT; Claude was asked through its command line.
    usual = np.nan if is_claude else 1.0
    prompts = [f"rewardbench-2/{row['subset']}/{row['id']}" for row in rows]
    for size, judge in (_CLAUDE if is_claude else _GPT).items():
        if f"{size}_scores" not in rows[0]:
            continue
        scores, errors = (
            [row[f"{size}_{kind}"] for row in rows] for kind in ("scores", "errors")
        )
        arm = pd.DataFrame({"group_id": prompts, "score": scores, "reason": errors})
        arm = arm.explode(["score", "reason"])
        number = arm.groupby(level=0).cumcount()
        yield arm.assign(
            item_id=arm["group_id"] + "/" + number.astype("str"),
            candidate=number.map(dict(enumerate(_CANDIDATES))),
            judge=judge,
            form=rows[0]["prompt_variant"],
            temperature=float(temperature[1]) if temperature else usual,
        )
