"""The whole study of arXiv:2602.02219v2, simulated: count, answer, compute.

Every condition of ``params/paper_study.yml`` is planned, answered by the judge's fitted
profiles and handed to the statistics of the paper's tables, two judges at a time. The
items are stand-ins without texts, so no dataset is needed.
"""

from __future__ import annotations

import json
import resource
import sys
import time
from collections import defaultdict
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from multiprocessing import get_context
from typing import Any

import pandas as pd

import rubricnb as rb
from benchmarks import row
from rubricnb.core.frames import Items, Requests
from rubricnb.engines.fitting import STAND_INS, stand_in
from rubricnb.engines.profiles import profiles
from rubricnb.engines.simulated import simulate
from rubricnb.statistics.budget import budget_curve
from rubricnb.statistics.criterion import criterion_order
from rubricnb.statistics.human_agreement import agreement, strategy_contrast
from rubricnb.statistics.position import position_bias
from rubricnb.statistics.ranking import rank_reversal
from rubricnb.statistics.variation import within_item_sd
from studies.study import plans_for, read_study, requests_of

PAPER_CALLS = 2_100_000  # "roughly 2.1M judge calls", appendix F
WORKERS = 2


def measure() -> Iterator[dict[str, Any]]:
    """Run the study once: size, seconds, memory, and its Table 2 beside the printed."""
    started = time.perf_counter()
    study = read_study("paper_study")
    tables: dict[str, list[pd.DataFrame]] = defaultdict(list)
    counts: dict[str, int] = defaultdict(int)
    seconds: dict[str, float] = defaultdict(float)
    # Not forked: a thread of a numerical library must not be copied
    # in the middle of its work.
    with ProcessPoolExecutor(WORKERS, mp_context=get_context("spawn")) as pool:
        jobs = [(judge, study["plans"]) for judge in study["judges"]]
        for own_tables, own_counts, own_seconds in pool.map(
            judge_all, *zip(*jobs, strict=True)
        ):
            for name, frames in own_tables.items():
                tables[name] += frames
            for name, count in own_counts.items():
                counts[name] += count
            for name, spent in own_seconds.items():
                seconds[name] += spent
    yield row("the paper's judge calls, roughly", PAPER_CALLS)
    yield row("judge calls", counts["requests"])
    yield row("judgments", counts["judgments"])
    yield row(
        "rows of all tables", sum(len(t) for frames in tables.values() for t in frames)
    )
    yield row("two processes", time.perf_counter() - started, "s", "<= 120")
    for name, spent in seconds.items():
        yield row(f"processor time: {name}", spent, "s")
    yield row("memory", peak_gigabytes(), "GB", "<= 3")
    shares, chi2 = distance_from_print(pd.concat(tables["table_2"]))
    yield row("Table 2: farthest share", shares, "points", "<= 1")
    yield row("Table 2: farthest χ²", chi2, "%", "<= 15")


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
            (
                "table_6_contrasts",
                strategy_contrast(judgments, items, "balanced", "fixed"),
            ),
            (
                "table_6_contrasts",
                strategy_contrast(judgments, items, "balanced", "shuffled"),
            ),
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
    rows = [
        ("table_2", balanced),
        ("table_4", balanced),
        ("appendix_c", within_item_sd(judgments)),
    ]
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
        raise ValueError(f"no profile {name!r}: fit it with python -m studies.fitting")
    return name


def distance_from_print(table: pd.DataFrame) -> tuple[float, float]:
    """Largest differences of the simulated Table 2 from print (points, per cent)."""
    cell = table["judge"].astype(str).str.extract(r"v2/(?P<judge>.+)/(?P<dataset>.+)")
    printed = rb.published("position_bias")
    keys = list(zip(printed["judge"].str.lower(), printed["dataset"], strict=True))
    own = table.set_index([cell["judge"], cell["dataset"].map(STAND_INS)]).loc[keys]
    shares = [
        abs(
            100 * own[f"share_{p}"].to_numpy() - printed[f"pos{p}_pct"].to_numpy()
        ).max()
        for p in (1, 5)
    ]
    chi2 = own["chi2"].to_numpy() / printed["chi2"].to_numpy() - 1
    return float(max(shares)), float(100 * abs(chi2).max())


def peak_gigabytes() -> float:
    """Most gigabytes of this process and its workers; the largest counts for each."""
    unit = 1e9 if sys.platform == "darwin" else 1e6
    own, child = (
        resource.getrusage(who).ru_maxrss / unit
        for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    )
    return own + WORKERS * child
