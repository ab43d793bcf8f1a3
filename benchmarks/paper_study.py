"""The whole study of arXiv:2602.02219v2, simulated: count it, answer it, compute its tables.

    python benchmarks/paper_study.py [--json FILE]

Every condition of ``params/paper_study.yml`` is planned, answered by the judge's fitted profiles
and handed to the statistics of the paper's tables, two judges at a time. The items are stand-ins
without texts, so no dataset is needed. Budget: 120 s and 3 GB on two cores.
"""

from __future__ import annotations

import argparse
import json
import resource
import sys
import time
from collections import defaultdict
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pandas as pd

from rubricnb.frames import Items, Requests
from rubricnb.judging.fitting import stand_in
from rubricnb.judging.profiles import profiles
from rubricnb.judging.simulated import simulate
from rubricnb.judging.study import plans_for, read_study, requests_of
from rubricnb.statistics import (
    agreement,
    budget_curve,
    criterion_order,
    position_bias,
    rank_reversal,
    strategy_contrast,
    within_item_sd,
)

PAPER_CALLS = 2_100_000  # "roughly 2.1M judge calls", appendix F
SECONDS, GIGABYTES, WORKERS = 120, 3.0, 2


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--json", type=Path, help="also write the figures here")
    figures = measure()
    report(figures)
    if path := options.parse_args().json:
        path.write_text(json.dumps(figures, indent=1))
    return 0 if figures["seconds"] <= SECONDS and figures["gigabytes"] <= GIGABYTES else 1


def measure() -> dict[str, Any]:
    """Run the study; returns counts, seconds, memory and the size of each table."""
    started = time.perf_counter()
    study = read_study("paper_study")
    tables: dict[str, list[pd.DataFrame]] = defaultdict(list)
    counts: dict[str, int] = defaultdict(int)
    seconds: dict[str, float] = defaultdict(float)
    # Not forked: a thread of a numerical library must not be copied in the middle of its work.
    with ProcessPoolExecutor(WORKERS, mp_context=get_context("spawn")) as pool:
        jobs = [(judge, study["plans"]) for judge in study["judges"]]
        for own_tables, own_counts, own_seconds in pool.map(judge_all, *zip(*jobs, strict=True)):
            for name, frames in own_tables.items():
                tables[name] += frames
            for name, count in own_counts.items():
                counts[name] += count
            for name, spent in own_seconds.items():
                seconds[name] += spent
    joined = {name: pd.concat(frames, ignore_index=True) for name, frames in tables.items()}
    return {
        "judge_calls": counts["requests"],
        "paper_judge_calls": PAPER_CALLS,
        "judgments": counts["judgments"],
        "seconds": round(time.perf_counter() - started, 1),
        "gigabytes": round(peak_gigabytes(), 2),
        "cpu_seconds": {name: round(spent, 1) for name, spent in seconds.items()},
        "rows": {name: len(table) for name, table in joined.items()},
        "checks": agreement_with_print(joined["table_2"]),
    }


def judge_all(
    judge: dict[str, Any], plans: list[dict[str, Any]]
) -> tuple[dict[str, list[pd.DataFrame]], dict[str, int], dict[str, float]]:
    """Plan, simulate and analyse everything that one judge is asked."""
    tables: dict[str, list[pd.DataFrame]] = defaultdict(list)
    counts: dict[str, int] = defaultdict(int)
    seconds: dict[str, float] = defaultdict(float)
    for part in plans_for(judge, plans):
        start = time.process_time()
        items = items_of(part["dataset"])
        requests = planned(json.dumps(part))
        planning = time.process_time()
        judgments = simulate(requests, items, profile_of(judge, part["dataset"]))
        simulating = time.process_time()
        for name, table in tables_of(part, judgments, items):
            tables[name].append(table)
        counts["requests"] += len(requests)
        counts["judgments"] += len(judgments)
        seconds["plan"] += planning - start
        seconds["simulate"] += simulating - planning
        seconds["tables"] += time.process_time() - simulating
    return tables, counts, seconds


def tables_of(
    part: dict[str, Any], judgments: pd.DataFrame, items: Items
) -> list[tuple[str, pd.DataFrame]]:
    """The rows that one condition adds to the paper's tables and figures."""
    rated = "human" in items
    if part.get("setting", 1) == 2:
        return [
            ("table_5", criterion_order(judgments[judgments["design"] == "balanced"])),
            ("table_6", agreement(judgments, items)),
            ("table_6_contrasts", strategy_contrast(judgments, items, "balanced", "fixed")),
            ("table_6_contrasts", strategy_contrast(judgments, items, "balanced", "shuffled")),
        ]
    balanced = position_bias(judgments[judgments["design"] == "balanced"])
    if part["designs"] in (["balanced(2)"], ["balanced(3)"], ["balanced(9)"]):
        return [("table_4", balanced)]
    if "temperature" in part or "effort" in part:
        return [
            ("figures_6_7", balanced),
            ("figures_6_7_agreement", agreement(judgments, items)),
            ("appendix_c", within_item_sd(judgments)),
        ]
    rows = [("table_2", balanced), ("table_4", balanced), ("appendix_c", within_item_sd(judgments))]
    if items["group_id"].notna().any():
        rows.append(("table_7", rank_reversal(judgments, "balanced", "fixed")))
    if rated:
        rows += [
            ("figure_8", agreement(judgments, items)),
            ("table_3", strategy_contrast(judgments, items, "balanced", "fixed")),
            ("table_3", strategy_contrast(judgments, items, "balanced", "shuffled")),
            ("figure_9", budget_curve(judgments, items)),
        ]
    return rows


@cache
def items_of(dataset: str) -> Items:
    return stand_in(dataset)


@cache
def planned(part: str) -> Requests:
    """Plan a condition once; judges that share it are asked the same requests."""
    content = json.loads(part)
    return requests_of(content, items_of(content["dataset"]))


def profile_of(judge: dict[str, Any], dataset: str) -> str:
    name = f"{judge['simulated']}/{dataset}"
    if name not in profiles():
        raise ValueError(f"no profile {name!r}: fit it with rubricnb.judging.fitting")
    return name


def agreement_with_print(table: pd.DataFrame) -> dict[str, float]:
    """How far the simulated Table 2 is from the printed one: largest differences."""
    import rubricnb as rb
    from rubricnb.judging.fitting import DATASETS

    cell = table["judge"].astype(str).str.extract(r"v2/(?P<judge>.+)/(?P<dataset>.+)")
    printed = rb.published("position_bias")
    keys = list(zip(printed["judge"].str.lower(), printed["dataset"], strict=True))
    own = table.set_index([cell["judge"], cell["dataset"].map(DATASETS)]).loc[keys]
    pos1 = (100 * own["share_1"].to_numpy() - printed["pos1_pct"].to_numpy()).astype(float)
    pos5 = (100 * own["share_5"].to_numpy() - printed["pos5_pct"].to_numpy()).astype(float)
    chi2 = own["chi2"].to_numpy() / printed["chi2"].to_numpy() - 1
    return {
        "cells": len(printed),
        "largest_share_difference_points": round(float(max(abs(pos1).max(), abs(pos5).max())), 2),
        "largest_chi2_difference_percent": round(float(100 * abs(chi2).max()), 1),
    }


def peak_gigabytes() -> float:
    """This process and its workers together, at most: the largest worker counts for all."""
    unit = 1e9 if sys.platform == "darwin" else 1e6
    own, child = (
        resource.getrusage(who).ru_maxrss / unit
        for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    )
    return own + WORKERS * child


def report(figures: dict[str, Any]) -> None:
    print(f"judge calls  {figures['judge_calls']:>12,}   (the paper: roughly {PAPER_CALLS:,})")
    print(f"judgments    {figures['judgments']:>12,}   (a call of Setting 2 gives several)")
    print(f"seconds      {figures['seconds']:>12}   (budget {SECONDS}, {WORKERS} processes)")
    print(f"gigabytes    {figures['gigabytes']:>12}   (budget {GIGABYTES:g})")
    print("CPU seconds  ", ", ".join(f"{k} {v}" for k, v in figures["cpu_seconds"].items()))
    print("rows         ", ", ".join(f"{k} {v}" for k, v in figures["rows"].items()))
    print("Table 2      ", ", ".join(f"{k} {v}" for k, v in figures["checks"].items()))


if __name__ == "__main__":
    sys.exit(main())
