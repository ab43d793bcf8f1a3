"""Rows of the studies' tables: an estimate with the ends of its 95 % interval."""

from __future__ import annotations

from rubricnb.statistics.intervals import Interval, jackknife_t, mean_t
from rubricnb.statistics.reads import FloatArray, IntArray

Row = dict[str, float]


def bounded(name: str, estimate: float, interval: Interval) -> Row:
    """Return an estimate under its name, and the ends of its interval as ``low`` and ``high``."""
    return {name: estimate, "low": interval[0], "high": interval[1]}


def mean_row(
    values: FloatArray,
    cluster: IntArray,
    bounds: tuple[float, float] | None = None,
    name: str = "value",
) -> Row:
    """Return the mean of some values with its t interval over clusters, within `bounds`."""
    return bounded(name, values.mean(), mean_t(values, cluster, bounds))


def ratio_row(numerator: FloatArray, denominator: FloatArray, name: str = "value") -> Row:
    """Return a ratio of sums over clusters (axis 0) with its jackknife-t interval."""
    top, bottom = numerator.sum(), denominator.sum()
    estimate = float(top / bottom)
    left = (top - numerator) / (bottom - denominator)
    return bounded(name, estimate, jackknife_t(estimate, left))


def jackknife_row(estimates: FloatArray, name: str = "value") -> Row:
    """Return the first estimate, with the jackknife-t interval of those without each cluster."""
    return bounded(name, estimates[0], jackknife_t(float(estimates[0]), estimates[1:]))
