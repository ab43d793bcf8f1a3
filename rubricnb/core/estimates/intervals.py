"""Intervals and p-values from clusters: t, jackknife-t, correlations, bootstrap.

A statistic yields an `Estimate`: the value with its interval and p, and the standard
error and degrees of freedom that both were computed from. Tables keep all of these as
columns, so that nothing has to guess a standard error from a width again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
import pandas as pd
import scipy
from scipy import special

from rubricnb.core.estimates.reads import by_cluster
from rubricnb.core.estimates.reasons import Reason, Reasons
from rubricnb.core.support.counting import binned
from rubricnb.core.support.types import Ends, FloatArray, IntArray, Row

LEVEL = 0.95
POWER = 0.80
ALPHA = 0.05
# coverage falls beyond these (chapter 06)
FEW_CLUSTERS, FEW_EVENTS, MOST_ALIKE = 20, 10, 0.75

_AT_ONCE = 100_000  # permuted numbers that are held: more would leave the cache
_NONE = 1e-12  # a standard error below this is rounding
MARGINS = {"share": 0.02, "delta_r": 0.02, "delta_pos": 0.1, "flips": 0.05}
"""Margins in shares of reads, differences of r, score points, and shares of prompts."""


@dataclass(frozen=True)
class Estimate:
    """An estimate with its interval and test, and what both were computed from.

    Attributes
    ----------
    value
        The estimate.
    low, high
        Ends of the interval, 95 % unless another level was asked for. NaN without one.
    p
        Two-sided, against 0.
    se, df
        Standard error, and the degrees of freedom of its t: one less than the clusters,
        or fewer where some are large (`adjusted`) or carry most of the variance
        (`freedom`). In the units of the value, except for correlations: theirs are on
        Fisher's z scale, on which the interval is computed.

    Examples
    --------
    >>> found = mean_t(np.array([1.0, 2.0, 3.0, 4.0]), np.arange(4))
    >>> found.value, round(found.se, 2), found.df
    (2.5, 0.65, 3.0)
    >>> {name: round(x, 1) for name, x in found.named("mean", "low", "high").items()}
    {'mean': 2.5, 'mean_low': 0.4, 'mean_high': 4.6}
    """

    value: float = np.nan
    low: float = np.nan
    high: float = np.nan
    p: float = np.nan
    se: float = np.nan
    df: float = np.nan

    @property
    def ends(self) -> Ends:
        """The ends of the interval."""
        return self.low, self.high

    def within(self, least: float, most: float) -> Estimate:
        """Return the same, its ends kept to values that the estimated can have."""
        low, high = np.clip(self.ends, least, most)
        return replace(self, low=float(low), high=float(high))

    def columns(self, *parts: str) -> dict[str, float]:
        """Return some parts, or all but the value, under their own names."""
        return {part: getattr(self, part) for part in parts or PARTS}

    def named(self, name: str, *parts: str) -> dict[str, float]:
        """Return the value as `name`, and parts of it as ``{name}_low`` and so on."""
        return {name: self.value} | {
            f"{name}_{k}": v for k, v in self.columns(*parts).items()
        }


PARTS = ("low", "high", "p", "se", "df")
UNTESTED = ("low", "high", "se", "df")
"""Parts of estimates for which 0 is no hypothesis: shares, variances, r of a panel."""


def t_quantile(df: float, level: float = LEVEL) -> float:
    """Two-sided quantile of t; NaN without a degree of freedom."""
    return float(special.stdtrit(df, 0.5 + level / 2))


def freedom(rest: FloatArray) -> FloatArray:
    """Degrees of freedom of Σ rest², from the kurtosis of the clusters on axis 0.

    One less than the clusters if these are normal, fewer where some carry most of the
    variance (large ones, or rare events). Fewer than eight clusters do not show a
    kurtosis.
    """
    n = len(rest)
    full = np.full(rest.shape[1:], n - 1.0)
    if n < 8:
        return full
    square = (rest**2).mean(axis=0)
    kurtosis = (rest**4).mean(axis=0) / np.where(square > 0, square, 1.0) ** 2
    # unbiased if normal
    excess = (n - 1) / ((n - 2) * (n - 3)) * ((n + 1) * (kurtosis - 3) + 6)
    return np.asarray(1 / (1 / full + np.maximum(excess, 0.0) / (2 * n)))


def adjusted(apart: FloatArray, share: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return clusters' residuals of which Σ rest² is a mean's variance, and its df.

    `apart`: each cluster's summed residuals, over the number of all items (clusters,
    …); `share`: its part of the items. A cluster draws the mean towards itself, so its
    residuals are too small. CR2 divides them so that the variance has no bias where
    items are independent. Satterthwaite's degrees of freedom for such items (Bell &
    McCaffrey 2002, Survey Methodology 28) are one less than the clusters if these are
    of one size. They assume the variance; where the clusters show that a few of them
    carry most of it, `freedom` has fewer. For a mean the matrices of both have closed
    forms.

    Examples
    --------
    >>> rest, df = adjusted(np.array([-0.1, 0.05, 0.05]), np.array([0.5, 0.25, 0.25]))
    >>> round(float((rest**2).sum()), 4), round(float(df), 2)
    (0.0267, 1.8)
    """
    rest = (apart.T / np.sqrt(1 - share)).T
    pull = share**2 / (1 - share)
    df = 1 / (pull.sum() ** 2 + (share**2 - pull**2).sum())
    # two clusters have one, whatever their sizes, but for rounding
    return rest, np.clip(df, 1.0, freedom(rest))


def detectable(se: float, df: float) -> float:
    """Effect that a two-sided t test at 5 % finds with 80 % power; NaN without se.

    From the noncentral t: 4.26, 3.51, 3.15, 2.95 standard errors at 4, 6, 10, 20
    clusters.
    """
    if not (se > _NONE and df > 0):
        return np.nan
    critical = special.stdtrit(df, 1 - ALPHA / 2)
    return float(
        scipy.optimize.brentq(
            lambda effect: special.nctdtr(df, effect, critical) - (1 - POWER),
            1.0,
            5 * critical,
        )
        * se
    )


def effective_clusters(cluster: IntArray) -> float:
    """(Σ m)² / Σ m² of the clusters' sizes m: their number if they are equal."""
    size = np.unique(cluster, return_counts=True)[1].astype(float)
    return float(size.sum() ** 2 / (size**2).sum()) if len(size) else 0.0


def few_clusters(
    cluster: IntArray,
    rates: Mapping[str, FloatArray] | None = None,
    scores: Sequence[FloatArray] = (),
    times: int = 2,
    unit: str = "effective clusters",
) -> Reasons:
    """Return why these clusters give no interval, or a doubtful one; empty if neither.

    `rates`: values in 0…1 of the items, by the name of the rate that is their mean.
    `scores` that are nearly all alike need that many `times` as many clusters. `unit`:
    what they are called.
    """
    effective = effective_clusters(cluster)
    if effective <= 1:
        return (Reason("one_cluster"),)
    why = []
    most = max(
        (np.unique(np.round(s), return_counts=True)[1].max() / len(s) for s in scores),
        default=0,
    )
    skewed = most > MOST_ALIKE
    if round(effective, 6) < FEW_CLUSTERS * (times if skewed else 1):
        code, skew = (
            ("few_clusters_alike", {"alike": most}) if skewed else ("few_clusters", {})
        )
        why.append(Reason(code, n=effective, unit=unit, **skew))
    rare = [
        k
        for k, v in (rates or {}).items()
        if min((v > 0).sum(), (v < 1).sum()) < FEW_EVENTS
    ]
    if rare:
        why.append(Reason("rare_events", names=", ".join(rare), least=FEW_EVENTS))
    return tuple(why)


def alike(row: Mapping[str, Any]) -> Reasons:
    """Return a row's estimates that have no interval despite several clusters."""
    if row["n_clusters"] < 2:
        return ()
    names = [
        name
        for name in map(str, row)
        if np.isnan(row.get(f"{name}_low", 0.0)) and not np.isnan(row[name])
    ]
    return (Reason("no_interval.alike", names=", ".join(names)),) if names else ()


def counted(used: Any, cluster: IntArray) -> Row:
    """Number of the items used and of their clusters."""
    return {"n_items": int(used.sum()), "n_clusters": len(np.unique(cluster[used]))}


def mean_of(values: FloatArray) -> float:
    """Mean; NaN of nothing (never a warning)."""
    return float(values.mean()) if len(values) else np.nan


def mean_known(values: FloatArray) -> float:
    """Mean of the values that are known."""
    return mean_of(values[~np.isnan(values)])


def named_mean(
    name: str,
    values: FloatArray,
    cluster: IntArray,
    bounds: Ends | None = None,
    parts: Sequence[str] = PARTS,
) -> dict[str, float]:
    """Name the mean of the values that are known, and these parts of its estimate."""
    known = ~np.isnan(values)
    return mean_t(values[known], cluster[known], bounds).named(name, *parts)


def mean_t(
    values: FloatArray,
    cluster: IntArray,
    bounds: Ends | None = None,
    weight: FloatArray | None = None,
    level: float = LEVEL,
) -> Estimate:
    """Mean with its interval and p (against 0) over clusters.

    Standard error and degrees of freedom are `adjusted`'s. With clusters of one size
    this is the t interval of the mean of their means. Where all clusters are alike
    there is none: no variance is not certainty. With the `bounds` that values can reach
    it is Wilson's, of the size that the standard error is worth (that of the clusters
    if all are alike), so that a rate of rare events, or of none, has one. A value of
    `weight` w stands for w equal ones of its cluster.
    """
    weight = np.ones(len(values)) if weight is None else weight
    mean = mean_of(values * weight) / mean_of(weight)
    number = np.unique(cluster, return_inverse=True)[1]
    size, total = binned(number, weights=weight), weight.sum()
    n = len(size)
    if n < 2:
        return Estimate(mean)
    apart = binned(number, weights=weight * (values - mean))
    rest, df = adjusted(apart / total, size / total)
    se = float(np.sqrt((rest**2).sum()))
    found = t_estimate(mean, se, float(df), level)
    if bounds is None:
        return found
    t = t_quantile(found.df, level)
    width = bounds[1] - bounds[0]
    share = (mean - bounds[0]) / width
    worth = share * (1 - share) * (width / se) ** 2 if se > _NONE else n
    middle = (share + t**2 / (2 * worth)) / (1 + t**2 / worth)
    half = (
        t
        * np.sqrt(share * (1 - share) / worth + (t / (2 * worth)) ** 2)
        / (1 + t**2 / worth)
    )
    return replace(
        found,
        low=bounds[0] + width * (middle - half),
        high=bounds[0] + width * (middle + half),
    ).within(*bounds)


def t_estimate(value: float, se: float, df: float, level: float = LEVEL) -> Estimate:
    """Estimate with its t interval and p (against 0); without where nothing varies."""
    if not se > _NONE:
        return Estimate(value, se=se, df=df)
    half = t_quantile(df, level) * se
    p = float(2 * special.stdtr(df, -abs(value / se)))
    return Estimate(value, value - half, value + half, p, se, df)


def largest(found: Estimate, m: int, bounds: Ends = (-np.inf, np.inf)) -> Estimate:
    """The largest of m estimates; its interval and p hold for all (Bonferroni)."""
    wide = t_estimate(found.value, found.se, found.df, 1 - ALPHA / m)
    return replace(wide.within(*bounds), p=float(np.minimum(1.0, m * wide.p)))


@lru_cache
def noncentrality(df: int) -> float:
    """Noncentrality at which a χ² test at 5 % has 80 % power."""
    return float(special.chndtrinc(special.chdtri(df, ALPHA), df, 1 - POWER))


def jackknife_se(leave_out: FloatArray) -> FloatArray:
    """Jackknife standard error from estimates without one cluster each (axis 0).

    NaN when fewer than two clusters, or when an estimate without some cluster is
    undefined.
    """
    n = leave_out.shape[0]
    if n < 2:
        return np.full(leave_out.shape[1:], np.nan)
    spread = ((leave_out - leave_out.mean(axis=0)) ** 2).sum(axis=0)
    return np.asarray(np.sqrt((n - 1) / n * spread))


def jackknife_t(value: float, leave_out: FloatArray, level: float = LEVEL) -> Estimate:
    """Estimate with its interval and p (against 0); without if no cluster matters."""
    if len(leave_out) < 2:
        return Estimate(value)
    df = float(freedom(leave_out - leave_out.mean(axis=0)))
    return t_estimate(value, float(jackknife_se(leave_out)), df, level)


def jackknifed(
    values: FloatArray,
    left: FloatArray,
    interval: Callable[[float, FloatArray], Estimate] = jackknife_t,
) -> pd.DataFrame:
    """Table of the intervals of several values, `left` being (clusters, values)."""
    return pd.DataFrame(
        [
            interval(value, own).columns(*UNTESTED)
            for value, own in zip(values, left.T, strict=True)
        ]
    )


def jackknife(
    values: FloatArray,
    cluster: IntArray,
    statistic: Callable[[FloatArray], FloatArray],
    interval: Callable[[float, FloatArray], Estimate] = jackknife_t,
) -> Estimate:
    """Estimate from summed `values` (items, …), with its interval over the clusters."""
    sums = by_cluster(values, cluster)
    total = sums.sum(axis=0)
    value = float(statistic(total))
    if np.isnan(value) or len(sums) < 2:
        return Estimate(value)
    return interval(value, statistic(total - sums))


def fisher_jackknife_t(
    r: float, leave_out: FloatArray, level: float = LEVEL
) -> Estimate:
    """The same for a correlation; interval, se and df are on Fisher's z scale."""
    if not (np.abs(np.append(leave_out, r)) < 1 - 1e-9).all():
        return Estimate(r)  # undefined, or perfect but for rounding
    z = jackknife_t(float(np.arctanh(r)), np.arctanh(leave_out), level)
    return replace(z, value=r, low=float(np.tanh(z.low)), high=float(np.tanh(z.high)))


def perfect_ends(
    r: float, n_clusters: int, level: float = LEVEL, exceptions: int = 0
) -> Ends:
    """Interval of a correlation, or share, of ±1 in n clusters but for so many.

    If a share u of all clusters had no relation, r would be about 1 − u, and n clusters
    without one in a row would be seen with probability (1 − u)ⁿ; with at most k, with
    that of the binomial distribution (Clopper and Pearson 1934).
    """
    low, high = np.sort(
        np.sign(r)
        * np.array(
            [
                special.betaincinv(n_clusters - exceptions, exceptions + 1, 1 - level),
                1.0,
            ]
        )
    )
    return float(low), float(high)


def moments(x: FloatArray, y: FloatArray) -> FloatArray:
    """Return each item's summands of a correlation, about the overall means.

    Shape (items, 6). Sums of these over any set of items give `correlation`.
    """
    x = x - (x.mean() if len(x) else 0.0)
    y = y - (y.mean() if len(y) else 0.0)
    return summands(x, y, np.ones_like(x))


def summands(x: FloatArray, y: FloatArray, n: FloatArray) -> FloatArray:
    """Stack n, x, y, xx, yy, xy on a last axis."""
    return np.stack([n, x, y, x * x, y * y, x * y], axis=-1)


def correlation(sums: FloatArray) -> FloatArray:
    """Pearson's r from summed `moments` (…, 6); NaN where a side is constant."""
    x, y, xx, yy, xy = means_of(sums)
    var_x, var_y = xx - x**2, yy - y**2
    # Differences of sums leave rounding errors of about 1e-16 of the raw second moment.
    defined = (var_x > 1e-12 * xx) & (var_y > 1e-12 * yy)
    scale = np.sqrt(np.where(defined, var_x * var_y, 1.0))
    r = np.clip((xy - x * y) / scale, -1.0, 1.0)
    return np.where(defined, r, np.nan)


def means_of(sums: FloatArray) -> FloatArray:
    """Means of x, y, xx, yy, xy from summed `summands` (…, 6); 0 of nothing."""
    return np.moveaxis(sums[..., 1:] / np.maximum(sums[..., :1], 1), -1, 0)


def bootstrap_weights(
    n: int, resamples: int, rng: np.random.Generator
) -> Iterator[FloatArray]:
    """Yield resamples of n units as counts, some at a time: shape (rows, n)."""
    # Products of larger blocks would go to several threads,
    # which then wait for one another.
    chunk = max(1, min(50, 100_000 // n))
    for start in range(0, resamples, chunk):
        rows = min(chunk, resamples - start)
        drawn = rng.integers(0, n, size=(rows, n))
        drawn += (np.arange(rows) * n)[:, None]
        counts = binned(drawn.ravel(), minlength=rows * n)
        yield counts.reshape(rows, n).astype(float)


def resampled(
    sums: FloatArray,
    resamples: int,
    seed: int,
    statistic: Callable[[FloatArray], FloatArray],
) -> FloatArray:
    """The statistic of bootstrap samples of the rows of `sums` (units, …), added up."""
    weights = bootstrap_weights(len(sums), resamples, np.random.default_rng(seed))
    return np.concatenate([statistic(np.tensordot(w, sums, axes=1)) for w in weights])


def content_order(sums: FloatArray) -> IntArray:
    """Sort units by content, so that draws do not depend on the order of rows."""
    if not sums.size:
        return np.arange(len(sums))
    return np.lexsort(sums.reshape(len(sums), -1).round(9).T)


def permuted_spread(
    name: str,
    x: FloatArray,
    cluster: IntArray,
    draws: int,
    seed: int,
    blocks: Sequence[IntArray] | None = None,
) -> dict[str, float]:
    """Largest minus smallest column mean of `x`, and its mean under permutations.

    Columns are permuted within `blocks`; NaN where no block has two. Clusters are
    sorted by their sums first, so that the draws do not depend on the order in which
    they come.
    """
    sums = by_cluster(x, cluster)
    sums = sums[content_order(sums)]
    observed = float(np.ptp(sums.sum(axis=0)) / len(x))
    blocks = [np.arange(x.shape[1])] if blocks is None else blocks
    if max(map(len, blocks)) < 2:
        return {name: observed, f"{name}_null": np.nan, f"{name}_p": np.nan}
    rng = np.random.default_rng(seed)
    if len({len(block) for block in blocks}) > 1:
        totals = [
            np.concatenate(
                [rng.permuted(sums[:, b], axis=1).sum(axis=0) for b in blocks]
            )
            for _ in range(draws)
        ]
    else:  # many draws at once
        wide = np.stack([sums[:, block] for block in blocks])
        steps = np.linspace(0, draws, min(draws, draws * wide.size // _AT_ONCE + 1) + 1)
        totals = [_permuted(rng, wide, n) for n in np.diff(steps.astype(int))]
    spreads = np.ptp(np.concatenate(totals).reshape(draws, -1), axis=1) / len(x)
    p = float((1 + (spreads >= observed - 1e-12).sum()) / (1 + draws))
    return {name: observed, f"{name}_null": float(spreads.mean()), f"{name}_p": p}


def _permuted(rng: np.random.Generator, wide: FloatArray, draws: int) -> Any:
    """Sum the columns of each block, permuted in each row: (draws, blocks, columns)."""
    if wide.shape[-1] > 2:
        many = np.broadcast_to(wide, (draws, *wide.shape))
        return rng.permuted(many, axis=-1).sum(axis=2)
    # `permuted` turns a pair if the last of 32 drawn bits is 0. So are these drawn, and
    # no number is moved.
    kept = rng.integers(2**32, size=(draws, *wide.shape[:2]), dtype=np.uint32) & 1
    gap = np.einsum("dbr,br->db", kept, np.diff(wide)[..., 0])
    return wide.sum(axis=1)[:, ::-1] + gap[..., None] * [-1, 1]


def percentile_interval(draws: FloatArray) -> Ends:
    """Percentile interval of the draws that are defined; NaN if none is."""
    draws = draws[~np.isnan(draws)]
    if len(draws) == 0:
        return np.nan, np.nan
    low, high = np.quantile(draws, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return float(low), float(high)


def benjamini_hochberg(p: pd.Series) -> FloatArray:
    """Adjust p-values for the false discovery rate (Benjamini & Hochberg 1995).

    Parameters
    ----------
    p
        The family, fixed before looking: judge × dataset, judge × criterion, or the
        contrasts of a table. NaN stay NaN and out of the family.

    Returns
    -------
    ndarray
        Adjusted p-values, in the order of `p`.

    Examples
    --------
    >>> benjamini_hochberg(pd.Series([0.01, 0.02, float("nan"), 0.5])).tolist()
    [0.03, 0.03, nan, 0.5]
    """
    values = np.array(p, float)
    order = np.argsort(values)  # NaN come last
    times = (~np.isnan(values)).sum() / np.arange(1, len(values) + 1)
    least = np.fmin.accumulate((values[order] * times)[::-1])[::-1]
    values[order] = np.minimum(least, 1.0)
    return values


def adjust(result: pd.DataFrame, column: str) -> pd.DataFrame:
    """Insert the adjusted p-values of a column behind it, over all rows."""
    result.insert(
        result.columns.get_loc(column) + 1,
        f"{column}_adjusted",
        benjamini_hochberg(result[column]),
    )
    return result


def equivalence(
    estimate: float,
    standard_error: float,
    n_clusters: float,
    margin: float,
    largest: float | None = None,
) -> float:
    """Test whether an effect lies within ± a margin (TOST).

    Parameters
    ----------
    estimate, standard_error
        The effect and its standard error, in the same units as the margin.
    n_clusters
        Clusters behind the standard error, or fewer where some carry most of the
        variance (`freedom` + 1); t has n_clusters - 1 degrees of freedom.
    margin
        The largest effect that is called nothing; positive, fixed before looking.
    largest
        What one cluster can show at most, if an effect can be a matter of rare events:
        1 for flips. The standard error is then taken as at least that of an effect of
        `margin` in which some clusters show all of this and the others nothing. Without
        it a few prompts, none of which flipped, would prove that 5 % do not.

    Returns
    -------
    float
        p: the larger one of the two one-sided tests'. Below 0.05 the 90 % interval lies
        inside the margins. NaN without a standard error, and where it is 0 (unless
        `largest` is given): that some clusters are alike does not say how others are.

    Raises
    ------
    ValueError
        The margin is not positive.

    Examples
    --------
    >>> equivalence(0.001, 0.005, n_clusters=100, margin=0.02) < 0.001
    True
    >>> round(equivalence(0.02, 0.005, n_clusters=100, margin=0.02), 2)
    0.5
    >>> equivalence(0.0, 0.0, n_clusters=5, margin=0.05)
    nan
    >>> round(equivalence(0.0, 0.0, n_clusters=5, margin=0.05, largest=1), 2)
    0.32
    """
    if not margin > 0:
        raise ValueError(f"margin = {margin}: give a number above 0")
    if n_clusters < 2 or not (np.isfinite(estimate) and np.isfinite(standard_error)):
        return np.nan
    if largest is not None:
        at_margin = np.sqrt(max(margin * (largest - margin), 0.0) / n_clusters)
        standard_error = max(standard_error, float(at_margin))
    if standard_error < 1e-12:
        return np.nan
    # the larger p is that of the margin that is nearer
    return float(
        special.stdtr(n_clusters - 1, (abs(estimate) - margin) / standard_error)
    )
