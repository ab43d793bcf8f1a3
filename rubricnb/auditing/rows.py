"""From an estimate to a row of an audit: its interval and its tests."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from rubricnb.auditing.terms import MARGINS, MEASURES
from rubricnb.statistics import intervals as inference
from rubricnb.statistics.intervals import Estimate
from rubricnb.statistics.reasons import Reason, Why, collect, without


def new_row(
    measure: str,
    question: str,
    n_clusters: int,
    found: Estimate | float,
    why: Why = None,
    **more: Any,
) -> dict[str, Any]:
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
    bounds: tuple[float, float] | None = None,
    weight: pd.Series | None = None,
    **more: Any,
) -> dict[str, Any]:
    """A row about the mean of items, with its interval and both tests."""
    values = values.dropna()
    cluster = values.index.get_level_values("cluster_id")
    n, size = (
        cluster.nunique(),
        None if weight is None else weight[values.index].to_numpy(float),
    )
    found = (
        inference.mean_t(values.to_numpy(), cluster, bounds, size) if n else Estimate()
    )
    row = new_row(measure, question, n, found, **more)
    if n and bounds is not None:
        row["p_equivalent"] = p_mostly_changed(found, n)
    return with_sign_test(row)


def correlation_row(
    measure: str,
    question: str,
    n: int,
    r: float,
    ends: Sequence[float],
    why: Why = None,
) -> dict[str, Any]:
    """A row about a correlation; a perfect one is bounded by its n clusters."""
    low, high = ends
    if n > 1 and abs(r) > 1 - 1e-9 and np.isnan(low):
        low, high = inference.perfect_ends(r, n)
        why = collect(without(collect(why), "no_interval"), Reason("no_exception", n=n))
    return new_row(measure, question, n, Estimate(r, low, high), why=why)


def with_sign_test(row: dict[str, Any]) -> dict[str, Any]:
    """A sign test, where all texts moved alike."""
    if row["n_clusters"] == 0:
        return row | {"codes": (Reason("no_common_text"),)}
    if "p" not in row or not np.isnan(row["low"]):
        return row
    row["p"] = sign_test_p(row["effect"], row["n_clusters"])
    if row["n_clusters"] > 1 and row["effect"]:
        row["codes"] = (Reason("moved_alike"),)
    return row


def sign_test_p(effect: float, n_clusters: int) -> float:
    """A sign test, where all clusters moved alike."""
    if n_clusters < 2 or np.isnan(effect):
        return float("nan")
    return 1.0 if effect == 0 else 0.5 ** (n_clusters - 1)


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
    ends: tuple[float, float] = (-np.inf, np.inf),
) -> Estimate:
    """The largest of m estimates; by a sign test, where all clusters moved alike."""
    whole = inference.largest(found, m, ends)
    if np.isnan(whole.low):
        return replace(whole, p=sign_test_p(found.value, n_clusters))
    return whole
