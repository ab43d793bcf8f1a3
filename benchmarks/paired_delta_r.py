"""The paper's paired bootstrap of Δr on 1,600 items, ours against scipy's."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy import stats

from benchmarks import row, timed
from rubricnb.statistics.human_agreement import papers_interval

ITEMS, RESAMPLES = 1_600, 2_000


def measure() -> Iterator[dict[str, Any]]:
    rng = np.random.default_rng(0)
    human = rng.normal(size=ITEMS)
    noise = rng.normal(size=ITEMS)
    a, b = (human + noise + 0.7 * rng.normal(size=ITEMS) for _ in "ab")

    def ours() -> tuple[float, float]:
        return papers_interval(np.stack([a, b]), human, RESAMPLES, seed=0)

    def scipys(vectorized: bool) -> tuple[float, float]:
        found = stats.bootstrap(
            (a, b, human),
            delta_r if vectorized else delta_r_once,
            paired=True,
            vectorized=vectorized,
            n_resamples=RESAMPLES,
            method="percentile",
            rng=np.random.default_rng(1),
        )
        return tuple(found.confidence_interval)

    own, looped, vectorised = timed(
        ours, lambda: scipys(False), lambda: scipys(True), repeats=5
    )
    yield row("ours", own.wall, "s", "<= 0.15")
    yield row("ours, processor time", own.cpu, "s")
    yield row("scipy, one resample at a time", looped.wall, "s")
    yield row("scipy, vectorised", vectorised.wall, "s")
    yield row("one at a time / ours", looped.cpu / own.cpu, "times", ">= 8")
    yield row("vectorised / ours", vectorised.cpu / own.cpu, "times", ">= 1")
    interval = np.array(ours())
    yield row(
        "ends apart, Monte-Carlo errors",
        float(np.abs(interval - scipys(True)).max() / end_error(interval)),
        "",
        "<= 4",
    )


def delta_r(a: Any, b: Any, human: Any, axis: int = -1) -> Any:
    first, second = (
        stats.pearsonr(side, human, axis=axis).statistic for side in (a, b)
    )
    return first - second


def delta_r_once(a: Any, b: Any, human: Any) -> Any:
    return stats.pearsonr(a, human).statistic - stats.pearsonr(b, human).statistic


def end_error(interval: Any) -> float:
    """Standard error of the difference between two drawings of an interval's end."""
    sd = np.ptp(interval) / (2 * stats.norm.ppf(0.975))
    one = (
        np.sqrt(0.025 * 0.975 / RESAMPLES) / stats.norm.pdf(stats.norm.ppf(0.975)) * sd
    )
    return float(np.sqrt(2) * one)
