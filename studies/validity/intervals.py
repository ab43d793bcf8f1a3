"""How often does an interval hold the planted value?"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pandas as pd

from rubricnb.core.estimates.intervals import (
    bootstrap_weights,
    correlation,
    few_clusters,
    fisher_jackknife_t,
    jackknife_se,
    jackknife_t,
    mean_t,
    moments,
    percentile_interval,
    t_estimate,
)
from rubricnb.core.estimates.reads import by_cluster
from rubricnb.core.support.types import FloatArray
from rubricnb.corrections.error_budget import error_budget
from rubricnb.statistics.human_agreement import papers_interval
from rubricnb.statistics.kappa import kappa_of_sums, kappa_sums
from rubricnb.statistics.placement import blocks, place
from rubricnb.statistics.position import position_shares
from rubricnb.statistics.preference import log_preferences
from rubricnb.statistics.ranks import leave_out_spearman, spearman
from rubricnb.statistics.variation import components_row
from studies.validity.planted import (
    _PREFERRING,
    PREFERENCE,
    Found,
    _answers,
    _as_reads,
    _covers,
    _graded,
    _Judge,
    _true_shares,
)

_R = (0.470, 0.393)  # of two strategies, whose errors correlate by 0.8
_COMPONENTS = {"item": 0.6, "ordering": 0.1, "item_ordering": 0.3, "reask": 0.2}


def _share_intervals(n_clusters: int, rng: np.random.Generator, costly: bool) -> Found:
    """Shares of first and last position, a planted preference, 6 items a cluster."""
    reads = _answers(_PREFERRING, n_clusters, 6, rng)
    placement, true_shares = place(reads), _true_shares()
    row = position_shares(placement, reads, n_clusters)
    for position in (1, 5):
        low, high = row[f"share_{position}_low"], row[f"share_{position}_high"]
        yield _covers(
            f"share {position}", "cluster t", low, high, true_shares[position - 1]
        )
    if costly:
        item_shares = placement.count / placement.reads[:, None]
        resamples = rng.multinomial(
            len(item_shares), np.full(len(item_shares), 1 / len(item_shares)), 1_000
        )
        resampled_shares = resamples @ item_shares / len(item_shares)
        for position in (1, 5):
            low, high = percentile_interval(resampled_shares[:, position - 1])
            yield _covers(
                f"share {position}",
                "item bootstrap",
                low,
                high,
                true_shares[position - 1],
            )


def _correlations(n_clusters: int, rng: np.random.Generator, costly: bool) -> Found:
    """r and Δr; 6 items a text, which has half of quality's and error's variance."""
    cluster = np.repeat(np.arange(n_clusters), 6)

    def draw() -> FloatArray:
        item, text = rng.standard_normal(len(cluster)), rng.standard_normal(n_clusters)
        return np.asarray(np.sqrt(0.5) * (item + text[cluster]))

    human, error, other = draw(), draw(), draw()
    errors = error, 0.8 * error + 0.6 * other
    first, second = (
        human + np.sqrt(1 / r**2 - 1) * strategy_error
        for r, strategy_error in zip(_R, errors, strict=True)
    )
    summands = np.stack([moments(side, human) for side in (first, second)], axis=1)
    sums = by_cluster(summands, cluster)
    r = correlation(sums.sum(axis=0))
    jackknifed = correlation(sums.sum(axis=0) - sums)
    low, high = fisher_jackknife_t(float(r[0]), jackknifed[:, 0]).ends
    yield _covers("r", "cluster jackknife-t", low, high, _R[0])
    low, high = jackknife_t(
        float(r[0] - r[1]), jackknifed[:, 0] - jackknifed[:, 1]
    ).ends
    yield _covers("Δr", "cluster jackknife-t", low, high, _R[0] - _R[1])
    if costly:
        seed = int(rng.integers(2**31))
        low, high = papers_interval(first[None], human, 1_000, seed)
        yield _covers("r", "item bootstrap", low, high, _R[0])
        low, high = papers_interval(np.stack([first, second]), human, 2_000, seed)
        yield _covers("Δr", "item bootstrap", low, high, _R[0] - _R[1])


_HARD = {
    "skewed": ("6", "10", "20", "40", "60", "uneven"),
    "binary": ("6", "20", "uneven"),
    "even": ("6", "20", "uneven"),
}
_FLIPS, _FLIP_CORRELATION = 0.02, 0.1
_RESAMPLES = 400


def _few_shares(
    sizes: tuple[int, ...], rng: np.random.Generator, costly: bool
) -> Found:
    """Shares and V² where clusters are few or of very different sizes."""
    reads, true_shares = _answers(_PREFERRING, len(sizes), sizes, rng), _true_shares()
    row = position_shares(place(reads), reads, len(sizes))
    doubted = float(bool(few_clusters(reads.cluster)))
    true_values = {"share_1": true_shares[0], "share_5": true_shares[4]}
    true_values["v2_unbiased"] = 5 / 4 * float(((true_shares - 1 / 5) ** 2).sum())
    for name, true_value in true_values.items():
        quantity = name.replace("_unbiased", "").replace("_", " ").replace("v2", "V²")
        yield _covers(
            quantity, "cluster t", row[f"{name}_low"], row[f"{name}_high"], true_value
        )
        yield "doubted", quantity, "cluster t", float("nan"), doubted


def _rare_flips(
    sizes: tuple[int, ...], rng: np.random.Generator, costly: bool
) -> Found:
    """A flip rate of 2 %; some texts flip more often than others."""
    # Flips of one text correlate by 1 / (a + b + 1) where its rate is Beta(a, b).
    beta_total = 1 / _FLIP_CORRELATION - 1
    flip_rate = rng.beta(_FLIPS * beta_total, (1 - _FLIPS) * beta_total, len(sizes))
    cluster = np.repeat(np.arange(len(sizes)), sizes)
    flips = (rng.random(len(cluster)) < flip_rate[cluster]).astype(np.float64)
    estimate = mean_t(flips, cluster, (0.0, 1.0))
    plain_ends = t_estimate(estimate.value, estimate.se, len(sizes) - 1).ends
    plain_ends = (estimate.value, estimate.value) if estimate.se == 0 else plain_ends
    yield _covers("flip rate", "t, clusters − 1", *plain_ends, _FLIPS)
    yield _covers("flip rate", "Wilson, Satterthwaite", *estimate.ends, _FLIPS)
    doubted = bool(few_clusters(cluster, {"flip_rate": flips}))
    yield "doubted", "flip rate", "Wilson, Satterthwaite", float("nan"), float(doubted)


def _hard(
    levels: str, sizes: tuple[int, ...], rng: np.random.Generator, costly: bool
) -> Found:
    """Scores that are few, tied or mostly one; clusters that are few or unequal."""
    truth, method = _hard_truth(levels), "jackknife-t, Satterthwaite"
    cluster, human, reads = _graded(levels, sizes, rng)
    first_read = reads[:, 0]
    for name, (summands, statistic) in _STATISTICS.items():
        sums = by_cluster(summands(first_read, human), cluster)
        total = sums.sum(axis=0)
        estimate, jackknifed = float(statistic(total)), statistic(total - sums)
        low, high = jackknife_t(estimate, jackknifed).ends
        yield _covers(name, method, low, high, truth[name])
        if costly:
            low, high = _bootstrap_t(sums, statistic)
            yield _covers(name, "bootstrap-t", low, high, truth[name])
            low, high = t_estimate(
                estimate, float(jackknife_se(jackknifed)), len(sizes) - 1
            ).ends
            yield _covers(name, "jackknife-t, clusters − 1", low, high, truth[name])
    jackknifed = leave_out_spearman(first_read, human, cluster)
    low, high = fisher_jackknife_t(float(spearman(first_read, human)), jackknifed).ends
    yield _covers("ρ", method, low, high, truth["ρ"])
    row = components_row(_as_reads(cluster, reads))
    yield _covers("φ", method, row["phi_low"], row["phi_high"], truth["φ"])
    doubted = float(bool(few_clusters(cluster, scores=(first_read, human))))
    yield "doubted", "scores", method, float("nan"), doubted


@cache
def _hard_truth(levels: str) -> dict[str, float]:
    """Each statistic of 100,000 clusters."""
    rows = []
    for batch in range(10):
        cluster, human, reads = _graded(
            levels, (6,) * 10_000, np.random.default_rng([5, batch])
        )
        first_read = reads[:, 0]
        row = {
            quantity: float(statistic(summands(first_read, human).sum(axis=0)))
            for quantity, (summands, statistic) in _STATISTICS.items()
        }
        row |= {"ρ": float(spearman(first_read, human))}
        rows.append(row | {"φ": components_row(_as_reads(cluster, reads))["phi"]})
    return {name: float(np.mean([row[name] for row in rows])) for name in rows[0]}


def _fisher(sums: FloatArray) -> FloatArray:
    """Fisher's z of r; NaN where it is infinite."""
    r = correlation(sums)
    return np.asarray(np.arctanh(np.where(np.abs(r) < 1, r, np.nan)))


def _sd_ratio(sums: FloatArray) -> FloatArray:
    """Standard deviation of x over y's, from summed `moments`; NaN: y constant."""
    n, x, y, xx, yy, _ = np.moveaxis(sums, -1, 0)
    var_x, var_y = (
        np.maximum(squares / n - (total / n) ** 2, 0.0)
        for total, squares in ((x, xx), (y, yy))
    )
    varies = var_y > 1e-12
    return np.asarray(
        np.where(varies, np.sqrt(var_x / np.where(varies, var_y, 1.0)), np.nan)
    )


_STATISTICS: dict[str, tuple[Any, Any]] = {
    "r": (moments, _fisher),  # on the scale of its interval
    "QWK": (kappa_sums, kappa_of_sums),
    "sd ratio": (moments, _sd_ratio),
}


def _bootstrap_t(sums: FloatArray, statistic: Any) -> tuple[float, float]:
    """95 % bootstrap-t interval over clusters, by a resample's jackknife se.

    Resamples in which it is undefined or 0 are left out.
    """
    n, total = len(sums), sums.sum(axis=0)
    weights = np.concatenate(
        list(bootstrap_weights(n, _RESAMPLES, np.random.default_rng(0)))
    )
    resampled = weights @ sums
    jackknifed = statistic(resampled[:, None] - sums)
    jackknifed = np.where(weights > 0, jackknifed, 0.0)
    # A cluster drawn w times gives w leave-one-out values, all the same.
    mean = (weights * jackknifed).sum(axis=1, keepdims=True) / n
    se = np.sqrt((n - 1) / n * (weights * (jackknifed - mean) ** 2).sum(axis=1))
    estimate = float(statistic(total))
    t = (statistic(resampled) - estimate) / np.where(se > 1e-12, se, np.nan)
    low, high = percentile_interval(t)
    sample_se = float(jackknife_se(statistic(total - sums)))
    return estimate - high * sample_se, estimate - low * sample_se


def _variance(rng: np.random.Generator, costly: bool) -> Found:
    """Variance components of 60 items × 10 orderings × 2 re-asks."""
    sd = {name: np.sqrt(variance) for name, variance in _COMPONENTS.items()}
    shape = (60, 10)
    scores = (
        3
        + sd["item"] * rng.standard_normal((60, 1))
        + sd["ordering"] * rng.standard_normal(10)
    )
    scores = scores + sd["item_ordering"] * rng.standard_normal(shape)
    scores = np.concatenate(
        [scores + sd["reask"] * rng.standard_normal(shape) for _ in "12"], axis=1
    )
    item, read = (index.ravel() for index in np.indices(scores.shape))
    columns = {
        "item_id": item,
        "cluster_id": item,
        "ordering": read % 10,
        "score": scores.ravel(),
    }
    variances = error_budget(pd.DataFrame(columns), by=[]).set_index("source")[
        "variance"
    ]
    sources = ("item", "order", "order × item", "re-read")
    for (name, truth), source in zip(_COMPONENTS.items(), sources, strict=True):
        yield "recovery", f"variance {name}", "components", truth, variances[source]


def _preference(concentration: float, rng: np.random.Generator, costly: bool) -> Found:
    """Log-preference of the first position in a study of 320 independent items."""
    truth = np.array(PREFERENCE) - np.mean(PREFERENCE)
    reads = _answers(_Judge(concentration, PREFERENCE), 320, 1, rng)
    row = log_preferences([reads], [blocks(reads)])[0].columns
    yield "recovery", "γ1", "conditional logit", truth[0], row["log_preference_1"]
    low, high = row["log_preference_1_low"], row["log_preference_1_high"]
    yield _covers("γ1", "conditional logit, jackknife-t", low, high, truth[0])
    log_shares = np.log(place(reads).count.sum(axis=0))
    yield (
        "recovery",
        "γ1",
        "log of the shares",
        truth[0],
        float(log_shares[0] - log_shares.mean()),
    )
