"""1.2 million scores become judgments: a recording, where it is at hand, and a log."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import rubricnb as rb
from benchmarks import row
from benchmarks.overhead import peak

TEXTS, READS, ARMS = 6_400, 8, 24


def measure() -> Iterator[dict[str, Any]]:
    # The recording first: the peak of a process only grows.
    if Path(os.environ.get("RUBRICNB_MIRROR", ""), "github", "composo-ai").is_dir():
        began, worked = time.perf_counter(), time.process_time()
        judgments = rb.load_recording("rewardbench-reads")
        yield row("rewardbench-reads, scores", len(judgments), "", ">= 1200000")
        yield row(
            "rewardbench-reads, from files", time.perf_counter() - began, "s", "<= 20"
        )
        yield row(
            "rewardbench-reads, processor time", time.process_time() - worked, "s"
        )
        yield row("rewardbench-reads, peak", peak(), "MB", "<= 1000")
    table = log()
    began = time.perf_counter()
    judgments = rb.judgments(table, scale=(1, 10))
    yield row("a log, scores", len(judgments), "", ">= 1200000")
    yield row("a log, from a frame", time.perf_counter() - began, "s", "<= 20")
    yield row(
        "a log, bytes a row",
        judgments.memory_usage(deep=True).sum() / len(judgments),
        "",
    )


def log() -> pd.DataFrame:
    size = TEXTS * READS * ARMS
    text, rest = np.divmod(np.arange(size), READS * ARMS)
    arm, read = np.divmod(rest, READS)
    names = pd.Series([f"text-{i}" for i in range(TEXTS)])
    return pd.DataFrame(
        {
            "item_id": names.to_numpy()[text],
            "form": np.array([f"form-{i}" for i in range(ARMS)])[arm],
            "read": read + 1,
            "score": np.random.default_rng(0).integers(1, 11, size),
        }
    )
