"""Intervals and p-values from clusters: t, jackknife-t, weighted correlations, bootstrap."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy import optimize, special, stats

from rubricnb.statistics._reads import FloatArray, IntArray, by_cluster

LEVEL = 0.95
POWER = 0.80
ALPHA = 0.05
Interval = tuple[float, float, float, float]  # low, high, p, standard error
UNDEFINED: Interval = (float("nan"),) * 4


def t_quantile(n_clusters: int, level: float = LEVEL) -> float:
    """Two-sided quantile of t with n_clusters - 1 degrees of freedom; NaN below two clusters."""
    if n_clusters < 2:
        return float("nan")
    return float(special.stdtrit(n_clusters - 1, 0.5 + level / 2))


def t_p_value(statistic: float, n_clusters: int) -> float:
    """Two-sided p of a t statistic with n_clusters - 1 degrees of freedom."""
    if n_clusters < 2 or not np.isfinite(statistic):
        return float("nan")
    return float(2 * special.stdtr(n_clusters - 1, -abs(statistic)))


def few_clusters(n_clusters: int) -> str:
    """Why clusters are too few for an interval; empty if they are not."""
    return "" if n_clusters > 1 else "one cluster: intervals need two"


def mean_of(values: FloatArray) -> float:
    """Mean; NaN of nothing (never a warning)."""
    return float(values.mean()) if len(values) else float("nan")


def cluster_mean(values: FloatArray, cluster: IntArray) -> tuple[float, float, int]:
    """Mean of some values, its standard error over clusters, and the number of clusters.

    With clusters of one size this is the mean of the cluster means and its standard error.
    """
    if len(values) == 0:
        return float("nan"), float("nan"), 0
    mean = float(values.mean())
    rest = by_cluster(values - mean, np.unique(cluster, return_inverse=True)[1])
    n = len(rest)
    if n < 2:
        return mean, float("nan"), n
    return mean, float(np.sqrt(n / (n - 1) * (rest**2).sum()) / len(values)), n


def mean_t(values: FloatArray, cluster: IntArray) -> Interval:
    """Interval and p (against 0) of such a mean: low, high, p, standard error."""
    mean, se, n = cluster_mean(values, cluster)
    half = t_quantile(n) * se
    return mean - half, mean + half, t_p_value(mean / se, n) if se > 0 else float("nan"), se


@lru_cache
def noncentrality(df: int, power: float = POWER, alpha: float = ALPHA) -> float:
    """Noncentrality at which a χ² test of level `alpha` has this power."""
    critical = stats.chi2.isf(alpha, df)
    return float(
        optimize.brentq(lambda nc: stats.ncx2.sf(critical, df, nc) - power, 1e-6, 1e3, xtol=1e-10)
    )


def jackknife_se(leave_out: FloatArray) -> FloatArray:
    """Jackknife standard error from the delete-one-cluster estimates, clusters along axis 0.

    NaN when fewer than two clusters, or when an estimate without some cluster is undefined.
    """
    n = leave_out.shape[0]
    if n < 2:
        return np.full(leave_out.shape[1:], np.nan)
    spread = ((leave_out - leave_out.mean(axis=0)) ** 2).sum(axis=0)
    return np.asarray(np.sqrt((n - 1) / n * spread))


def jackknife_t(estimate: float, leave_out: FloatArray, level: float = LEVEL) -> Interval:
    """Interval and p (against 0) of an estimate: low, high, p, se."""
    n = leave_out.shape[0]
    se = float(jackknife_se(leave_out))
    half = t_quantile(n, level) * se
    p = t_p_value(estimate / se, n) if se > 0 else float("nan")
    return estimate - half, estimate + half, p, se


def fisher_jackknife_t(r: float, leave_out: FloatArray, level: float = LEVEL) -> Interval:
    """The same for a correlation, on Fisher's z scale: low, high, p, and se on the z scale."""
    if not abs(r) < 1 or not (np.abs(leave_out) < 1).all():
        return UNDEFINED  # or perfect
    low, high, p, se = jackknife_t(float(np.arctanh(r)), np.arctanh(leave_out), level)
    return float(np.tanh(low)), float(np.tanh(high)), p, se


def moments(x: FloatArray, y: FloatArray) -> FloatArray:
    """Per item the summands of a correlation: 1, x, y, xx, yy, xy, about the overall means.

    Shape (items, 6). Sums of these over any set of items give `correlation`.
    """
    x = x - (x.mean() if len(x) else 0.0)
    y = y - (y.mean() if len(y) else 0.0)
    return np.stack([np.ones_like(x), x, y, x * x, y * y, x * y], axis=-1)


def correlation(sums: FloatArray) -> FloatArray:
    """Pearson's r from summed `moments` (…, 6); NaN where a side is constant."""
    n, x, y, xx, yy, xy = np.moveaxis(np.asarray(sums, dtype=np.float64), -1, 0)
    n = np.maximum(n, 1)
    var_x = xx / n - (x / n) ** 2
    var_y = yy / n - (y / n) ** 2
    # Differences of sums leave rounding errors of about 1e-16 of the raw second moment.
    defined = (var_x > 1e-12 * xx / n) & (var_y > 1e-12 * yy / n) & (xx > 0) & (yy > 0)
    scale = np.sqrt(np.where(defined, var_x * var_y, 1.0))
    r = np.clip((xy / n - x * y / n**2) / scale, -1.0, 1.0)
    return np.asarray(np.where(defined, r, np.nan))


def leave_out_spearman(x: FloatArray, y: FloatArray, cluster: IntArray) -> FloatArray:
    """Spearman's ρ without each cluster in turn, ranked anew each time: shape (clusters,).

    Items with the same x and y are counted, not listed: there are few distinct pairs of scores.
    """
    levels = [np.unique(v, return_inverse=True)[1] for v in (x, y)]
    pair = levels[0] * (levels[1].max(initial=0) + 1) + levels[1]
    _, first, pair = np.unique(pair, return_index=True, return_inverse=True)
    n_clusters = int(cluster.max()) + 1
    step = max(1, 500_000 // max(len(first), 1))
    parts = []
    for start in range(0, n_clusters, step):
        chosen = np.arange(start, min(start + step, n_clusters))
        kept = _counts_without(pair, cluster, chosen)
        middle = (kept.sum(axis=1, keepdims=True) + 1) / 2  # the mean of mid-ranks, always
        ranks = (_mid_ranks(_counts_without(v, cluster, chosen))[:, v[first]] for v in levels)
        a, b = (r - middle for r in ranks)
        aa, bb, ab = (np.einsum("gp,gp,gp->g", kept, *two) for two in ((a, a), (b, b), (a, b)))
        defined = (aa > 0) & (bb > 0)
        rho = ab / np.sqrt(np.where(defined, aa * bb, 1.0))
        parts.append(np.where(defined, np.clip(rho, -1.0, 1.0), np.nan))
    return np.concatenate(parts)


def _counts_without(code: IntArray, cluster: IntArray, chosen: IntArray) -> FloatArray:
    """Count each code among the items outside each chosen cluster: (chosen, codes)."""
    total = np.bincount(code).astype(np.float64)
    counts = np.tile(total, (len(chosen), 1))
    inside = (cluster >= chosen[0]) & (cluster <= chosen[-1])
    np.subtract.at(counts, (cluster[inside] - chosen[0], code[inside]), 1.0)
    return counts


def _mid_ranks(counts: FloatArray) -> FloatArray:
    """Mid-rank of each level, from how often each occurs: along the last axis."""
    return np.asarray(np.cumsum(counts, axis=-1) - (counts - 1) / 2)


def bootstrap_weights(n: int, resamples: int, rng: np.random.Generator) -> Iterator[FloatArray]:
    """Yield resamples of n units as counts, some at a time: shape (rows, n)."""
    # Products of larger blocks would go to several threads, which then wait for one another.
    chunk = max(1, min(50, 100_000 // n))
    for start in range(0, resamples, chunk):
        rows = min(chunk, resamples - start)
        drawn = rng.integers(0, n, size=(rows, n))
        drawn += (np.arange(rows) * n)[:, None]
        counts = np.bincount(drawn.ravel(), minlength=rows * n)
        yield counts.reshape(rows, n).astype(np.float64)


def percentile_interval(draws: NDArray[np.float64], level: float = LEVEL) -> tuple[float, float]:
    """Percentile interval of the draws that are defined; NaN if none is."""
    draws = draws[~np.isnan(draws)]
    if len(draws) == 0:
        return float("nan"), float("nan")
    low, high = np.quantile(draws, [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)
