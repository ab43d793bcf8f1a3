"""Does the advice come true: what orders and labels gain, and what a plan detects?"""

from __future__ import annotations

from functools import partial

import numpy as np

from rubricnb.core.estimates.intervals import (
    correlation,
    fisher_jackknife_t,
    jackknife_t,
    moments,
)
from rubricnb.core.support.types import FloatArray, IntArray
from rubricnb.corrections.advice import gain_interval
from rubricnb.corrections.error_budget import (
    design_for,
    error_budget,
    left_out,
    rows_of,
)
from rubricnb.corrections.labels import mean_row, needed_row
from rubricnb.statistics.budget import permuting_row
from rubricnb.statistics.variance import gain_of_averaging
from studies.validity.planted import (
    Found,
    _as_reads,
    _Cell,
    _covers,
    _crossed,
    _graded,
    _nominal,
)


def _do_orders_pay(n: int, rng: np.random.Generator, costly: bool) -> Found:
    """Pilots of n texts where ten orders bring little or much: who errs?"""
    gains = ((1.02, "go"), (1.037, "go"), (1.063, "stop"), (1.25, "stop"))
    for gain, wrong in gains:
        # gain² = (1 + φ) / (1 + φ/10), solved for the noise φ of one read
        phi = (gain**2 - 1) / (1 - gain**2 / 10)
        scores = rng.standard_normal((n, 1)) + np.sqrt(phi) * rng.standard_normal(
            (n, 10)
        )
        row = permuting_row(scores + 0.5 * rng.standard_normal(10), np.arange(n), 10)
        name = f"gain of {gain:g}"
        yield "size", name, f"“{wrong}”", 0.05, float(row["verdict"] == wrong)
        congeneric = row["gain_congeneric"]
        old_verdict = (
            "go" if congeneric > 1.05 else "stop" if row["gain"] < 1.05 else "unsure"
        )
        yield (
            "size",
            name,
            f"“{wrong}” of the estimate alone",
            0.05,
            float(old_verdict == wrong),
        )
        yield _covers(name, "jackknife-t", row["gain_low"], row["gain_high"], gain)
    noise_verdict = permuting_row(rng.standard_normal((n, 10)), np.arange(n), 10)[
        "verdict"
    ]
    yield "size", "texts that do not differ", "“go”", 0.05, float(noise_verdict == "go")


def _cells_of_advice() -> dict[str, _Cell]:
    """Gains of prompts with several texts, labels of weak judges, plans for noise."""
    cells = {
        f"advice/gain/{n}": _Cell(partial(_gain_of_orders, n), 400) for n in (20, 60)
    }
    for r in (0.1, 0.3, 0.6):
        cells[f"advice/labels/{r:g}"] = _Cell(partial(_gain_of_labels, r), 1_000)
    for n in (10, 20, 40):
        cells[f"advice/needed/{n}"] = _Cell(partial(_labels_as_needed, n), 400)
    for variance in (0.0, 0.01, 0.1):
        cells[f"advice/plan/{variance:g}"] = _Cell(partial(_plans, variance), 400)
    return cells


def _gain_of_orders(n_prompts: int, rng: np.random.Generator, costly: bool) -> Found:
    """Ten orders over one where n prompts hold six texts: shared in full, or part.

    Advice once took the component "item" for all of it.
    """
    table, phi = _crossed(n_prompts, 6, 0.0, rng)
    true_gain = float(gain_of_averaging(np.array([phi]), 10)[0])
    cluster = table["cluster_id"].to_numpy()
    row = permuting_row(table["score"].to_numpy().reshape(-1, 10), cluster[::10], 10)
    name, all_sources, item_only = (
        "gain of ten orders",
        "item + prompt + candidate",
        "item alone",
    )
    yield _covers(name, all_sources, row["gain_low"], row["gain_high"], true_gain)
    yield "recovery", name, all_sources, true_gain, row["gain"]
    variances = dict(zip(*left_out(rows_of(error_budget(table, by=[]))), strict=True))
    item = variances["item"]
    gain = gain_of_averaging(
        variances["order × item"] / np.where(item > 0, item, np.nan), 10
    )
    low, high = jackknife_t(float(gain[0]), gain[1:]).ends
    yield _covers(name, item_only, low, high, true_gain)
    yield "recovery", name, item_only, true_gain, float(gain[0])


def _gain_of_labels(r: float, rng: np.random.Generator, costly: bool) -> Found:
    """What 25 labels are worth with a judge that correlates by r; 400 texts.

    The truth is the ratio of the mean squared errors without the judge and with it.
    """
    human = rng.standard_normal(400)
    score = r * human + np.sqrt(1 - r**2) * rng.standard_normal(400)
    labelled = rng.permutation(400)[:25]
    labels = np.full(400, np.nan)
    labels[labelled] = human[labelled]
    row = mean_row(_as_reads(np.arange(400), score[:, None]), labels)
    summands = moments(score[labelled], human[labelled])
    low, high = fisher_jackknife_t(
        row["r"], correlation(summands.sum(axis=0) - summands)
    ).ends
    # (n − 3)/(n − 2) of 25 labels, for the slope that is fitted, over 1 − r²
    truth = 22 / 23 / (1 - r**2)
    name, method = "gain of labels with the judge", "interval of the gain"
    ends = gain_interval(row["gain"], row["r"], (low, high))
    yield _covers(name, method, *ends, truth=truth)
    yield "outside", name, method, 0.0, _outside(row["gain"], *ends)
    squares = 0.0 if low < 0 < high else min(low**2, high**2), max(low**2, high**2)
    old_ends = [22 / 23 / (1 - square) for square in squares]
    old_method = "interval of another number"
    yield _covers(name, old_method, old_ends[0], old_ends[1], truth)
    yield "outside", name, old_method, 0.0, _outside(row["gain"], *old_ends)


def _outside(value: float, low: float, high: float) -> float:
    return float(not low <= value <= high)


def _labels_as_needed(g: int, rng: np.random.Generator, costly: bool) -> Found:
    """Labels of g of 400 prompts plan for others: are these precise as wanted?

    Wanted is the half width that 60 prompts labelled whole would give.
    """
    cluster, human, reads = _graded("even", (6,) * 400, rng)
    judged, order = _as_reads(cluster, reads[:, :1]), rng.permutation(400)

    def labels_of(prompts: IntArray) -> FloatArray:
        return np.where(np.isin(cluster, prompts), human, np.nan)

    row = mean_row(judged, labels_of(order[:60]))
    wanted = row["high"] - row["mean"]
    needed = needed_row(judged, labels_of(order[:g]), wanted)["needed"]
    yield "recovery", "labels needed", "of whole prompts", 360.0, needed
    n_prompts = int(np.clip(np.ceil(needed / 6), 3, 400))
    row = mean_row(judged, labels_of(rng.permutation(400)[:n_prompts]))
    half_width_ratio = (row["high"] - row["mean"]) / wanted
    yield (
        "recovery",
        "half width over the wanted one",
        "of whole prompts",
        1.0,
        half_width_ratio,
    )


def _plans(favour: float, rng: np.random.Generator, costly: bool) -> Found:
    """Whether noise buys orders, where these prefer candidates or do not."""
    table, _ = _crossed(40, 5, favour, rng)
    budget = error_budget(table, by=[])
    # the estimate is planned with, whatever its interval
    estimate_only = budget.assign(low=1.0)
    kind = "power" if favour else "size"
    for method, budget_used in (
        ("where the interval is above 0", budget),
        ("the estimate", estimate_only),
    ):
        plans = design_for(budget_used, 0.2)
        buys_orders = plans["orders"].iloc[0] > 1 or np.isinf(plans["items"]).any()
        yield (
            kind,
            "order × candidate is planned with",
            method,
            _nominal(kind),
            float(buys_orders),
        )
