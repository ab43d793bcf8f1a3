"""From an estimate to a row of an audit: its interval and its tests.

A question that is looked at twice shares its 5 % between the looks (`looks`): interval
and p allow for as many.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from rubricnb.auditing.terms import ALPHA, MARGINS, MEASURES
from rubricnb.core.estimates import intervals as inference
from rubricnb.core.estimates.intervals import Estimate
from rubricnb.core.estimates.reasons import Reason, Why, collect, without
from rubricnb.core.support.types import Ends, Row


def new_row(
    measure: str,
    question: str,
    n_clusters: int,
    found: Estimate | float,
    why: Why = None,
    **more: Any,
) -> Row:
    """An estimate as a row of an audit; only effects are tested against 0."""
    found = found if isinstance(found, Estimate) else Estimate(found)
    one = Reason("one_cluster") if n_clusters == 1 else None
    row = {
        "measure": measure,
        "question": question,
        "effect": float(found.value),
        **found.columns("low", "high", "se", "df"),
        "n_clusters": n_clusters,
        "codes": collect(why) or collect(one),
    }
    if MEASURES[measure]["kind"] == "effect":
        row["p"] = found.p
    return row | more


def mean_row(
    measure: str,
    question: str,
    values: pd.Series,
    bounds: Ends | None = None,
    looks: int = 1,
    **more: Any,
) -> Row:
    """A row about the mean of items, with its interval and both tests."""
    values = values.dropna()
    cluster = values.index.get_level_values("cluster_id")
    n = cluster.nunique()
    found = Estimate()
    if n:
        level = level_of(looks)
        found = inference.mean_t(values.to_numpy(), cluster, bounds, level=level)
    # The p allows for so many looks, as the interval does.
    tested = replace(found, p=float(np.minimum(1.0, looks * found.p)))
    row = new_row(measure, question, n, tested, looks=looks, **more)
    if n and bounds is not None:
        row["p_equivalent"] = p_mostly_changed(found, n)
    return with_sign_test(row)


def level_of(looks: int) -> float:
    """Level of the intervals of a question that is looked at so often."""
    return 1 - ALPHA / looks


def correlation_row(
    measure: str,
    question: str,
    n: int,
    r: float,
    ends: Sequence[float],
    why: Why = None,
    looks: int = 1,
) -> Row:
    """A row about a correlation; one that is perfect is bounded by its n clusters.

    So is one that is perfect without one of them.
    """
    low, high = ends
    codes = collect(why)
    but_one = "no_interval.perfect_without" in codes
    if n > 1 and np.isnan(low) and (but_one or abs(r) > 1 - 1e-9):
        low, high = inference.perfect_ends(r, n, level_of(looks), but_one)
        why = collect(
            without(codes, "no_interval"),
            Reason("one_exception" if but_one else "no_exception", n=n),
        )
    return new_row(measure, question, n, Estimate(r, low, high), why=why, looks=looks)


def with_sign_test(row: Row) -> Row:
    """A sign test, where all texts moved alike."""
    if row["n_clusters"] == 0:
        return row | {"codes": (Reason("no_common_text"),)}
    if "p" not in row or not np.isnan(row["low"]):
        return row
    row["p"] = sign_test_p(row["effect"], row["n_clusters"], row.get("looks", 1))
    if row["n_clusters"] > 1 and row["effect"]:
        row["codes"] = (Reason("moved_alike"),)
    return row


def sign_test_p(effect: float, n_clusters: int, looks: int = 1) -> float:
    """A sign test, where all clusters moved alike: 2 · 0.5ⁿ."""
    if n_clusters < 2 or np.isnan(effect):
        return np.nan
    return min(1.0, looks * 0.5 ** (n_clusters - 1)) if effect else 1.0


def p_moved(row: Row, bounds: Iterable[float], m: int = 1) -> float:
    """The p of an effect whose mean lies where the lost scores speak most against it.

    `bounds`: between them they put the mean; the row is the largest of `m` effects.
    """
    nearest = min(bounds, key=lambda bound: bound * np.sign(row["effect"]))
    if nearest * row["effect"] <= 0:
        return 1.0
    moved = Estimate(nearest, se=row["se"], df=row["df"])
    p = inference.largest(moved, m * row.get("looks", 1)).p
    return float(np.fmax(row["p"], p))


def p_mostly_changed(rate: Estimate, n_clusters: int) -> float:
    """The p-value of "more than a quarter of the scores change".

    It is never below that of as many clusters without a change.
    """
    margin = MARGINS["share of scores"]
    if not rate.value < margin:
        return 1.0
    unchanged = inference.equivalence(0.0, 0.0, n_clusters, margin, largest=1)
    measured = inference.equivalence(max(rate.value, 0.0), rate.se, rate.df + 1, margin)
    return float(np.fmax(unchanged, measured))


def of_largest(
    found: Estimate,
    n_clusters: int,
    m: int,
    ends: Ends = (-np.inf, np.inf),
    looks: int = 1,
) -> Estimate:
    """The largest of m estimates; by a sign test, where all clusters moved alike.

    Of m positions, each looked at twice, 2 m statements may be wrong (Bonferroni).
    """
    whole = inference.largest(found, m * looks, ends)
    if np.isnan(whole.low):
        return replace(whole, p=sign_test_p(found.value, n_clusters, looks))
    return whole
