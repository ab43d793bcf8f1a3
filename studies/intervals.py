"""Rows of the studies' tables: an estimate with the ends of its 95 % interval.

Recorded tables have the ends alone, and not the standard error: whoever needs it
computes again.
"""

from __future__ import annotations

import pandas as pd

from rubricnb.core.estimates.intervals import Estimate, jackknife_t, mean_t
from rubricnb.core.estimates.reasons import Reason
from rubricnb.core.support.types import FloatArray, IntArray

Row = dict[str, float]


ENDS = ("low", "high")


def bounded(name: str, found: Estimate) -> Row:
    """Return an estimate under its name, and its interval as ``low``, ``high``."""
    return {name: found.value, **found.columns(*ENDS)}


def recorded_columns(table: pd.DataFrame) -> pd.DataFrame:
    """Keep what recorded tables have of a statistic's: no se, df, or codes."""
    basis = [c for c in table if c == "codes" or c.endswith(("_se", "_df"))]
    return table.drop(columns=[*basis, *(("se", "df") if "se" in table else ())])


def loss_row(asked: int, lost: Reason | None = None) -> Row:
    """Return how many of those asked are lost, and their and others' mean scores.

    `lost`: a reason of `rubricnb.core.estimates.losses`; None where nothing is lost.
    """
    row: Row = {
        "lost": 0,
        "asked": asked,
        "lost_mean": float("nan"),
        "kept_mean": float("nan"),
    }
    return row | {name: lost.numbers[name] for name in row if lost and name != "asked"}


def mean_row(
    values: FloatArray,
    cluster: IntArray,
    bounds: tuple[float, float] | None = None,
    name: str = "value",
) -> Row:
    """Return the mean of some values with its t interval over clusters."""
    return bounded(name, mean_t(values, cluster, bounds))


def ratio_row(
    numerator: FloatArray, denominator: FloatArray, name: str = "value"
) -> Row:
    """Return a ratio of sums over clusters (axis 0) with its jackknife-t interval."""
    top, bottom = numerator.sum(), denominator.sum()
    estimate = float(top / bottom)
    left = (top - numerator) / (bottom - denominator)
    return bounded(name, jackknife_t(estimate, left))


def jackknife_row(estimates: FloatArray, name: str = "value") -> Row:
    """Return the first estimate, with the others' cluster jackknife-t interval."""
    return bounded(name, jackknife_t(float(estimates[0]), estimates[1:]))
