"""Does one strategy agree better with people than another, and how many reads is each worth?"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from rubricnb.statistics._inference import (
    MARGINS,
    UNDEFINED,
    Interval,
    adjust,
    correlation,
    detectable,
    equivalence,
    few_clusters,
    freedom,
    jackknife,
    jackknife_t,
    leave_out_spearman,
    moments,
    named,
    percentile_interval,
    resampled,
    said,
)
from rubricnb.statistics._reads import (
    By,
    FloatArray,
    IntArray,
    Reads,
    Value,
    by_cluster,
    combine,
    copies,
    item_means,
)
from rubricnb.statistics._sides import shared_items, sides
from rubricnb.statistics.agreement import (
    criterion_of,
    human_of,
    mean_correlation,
    per_criterion,
    spearman,
)

PAPER_RESAMPLES = 2_000


def strategy_contrast(
    judgments: pd.DataFrame,
    items: pd.DataFrame,
    a: Any = "balanced",
    b: Any = "fixed",
    by: By = None,
    value: Value = "score",
    seed: int = 0,
) -> pd.DataFrame:
    """Compare the agreement with people of two strategies on the same items.

    Parameters
    ----------
    judgments, items, value
        As in `agreement`.
    a, b
        Two designs, or two values of another condition column (say temperature 0.0 and 1.0). A
        design may be narrowed: ``balanced/forward``, ``/reverse``, ``placebo/half-1``, ``/half-2``.
    by
        Columns to group by; by default every condition column but the compared one.
    seed
        Of the paper's bootstrap.

    Returns
    -------
    DataFrame
        One row a group: its columns, ``a, b, n_items, n_clusters``, and

        * ``r_a, r_b, delta_r`` with 95 % ``low, high`` and ``p``: cluster jackknife-t;
          ``p_adjusted`` (Benjamini–Hochberg over the returned rows); ``standard_error``; ``mde``
          (what 80 % power detects: 4.3 standard errors at 4 clusters, 3.0 at 20, by noncentral t);
          ``p_equivalent`` (TOST, ±0.02);
        * ``paper_low, paper_high``: the paper's paired item percentile bootstrap (2,000 resamples;
          ``n_undefined`` dropped). It is too narrow where items share a text;
        * ``delta_rho`` and ``delta_r_macro`` (mean over criteria) with ``_low, _high, _p``; in
          Setting 2 also ``paper_macro_low, paper_macro_high``: the paper's paired percentile
          bootstrap of the latter over texts (2,000 resamples), too narrow where texts share a
          cluster;
        * ``r_single_a, r_single_b``: r of one read, averaged over the strategy's reads, and
          ``delta_single`` with ``_low, _high, _p``: like for like, without averaging;
        * ``k_effective_a, k_effective_b``: variance of one read over variance of the mean, within
          items. Ten copies of a greedy answer are one read;
        * ``reason``.

    Raises
    ------
    ValueError
        No column holds both `a` and `b`, or no judged item is among `items`.

    Notes
    -----
    arXiv:2602.02219v2, §4.4, §5.2, §5.5, Tables 3 and 6. ``k_effective`` takes the variance of one
    read from the side that shows several orderings, since repeats of one ordering cannot show it.
    Near 1 it is firm; a value near the number of reads needs some hundred items.

    Examples
    --------
    >>> import pandas as pd
    >>> judgments = pd.DataFrame({
    ...     "item_id": list("abcdefab" "cdef"), "cluster_id": list("abcdefab" "cdef"),
    ...     "design": ["balanced"] * 6 + ["fixed"] * 6, "ordering_index": 1,
    ...     "ordering": "1-2-3", "score": [1, 1, 2, 2, 3, 3, 1, 3, 1, 3, 2, 3]})
    >>> items = pd.DataFrame({"item_id": list("abcdef"), "human": [1.0, 1, 2, 2, 3, 4]})
    >>> strategy_contrast(judgments, items)[["n_items", "r_a", "r_b", "delta_r"]].round(2)
       n_items   r_a   r_b  delta_r
    0        6  0.96  0.32     0.64
    """
    rows = []
    for key, side_a, side_b in sides(judgments, a, b, by, value):
        row = {**key, "a": a, "b": b}
        if side_a is None or side_b is None:
            row["reason"] = f"no judgments of {a if side_a is None else b!r}"
        else:
            row |= _contrast(side_a, side_b, items, seed)
        rows.append(row)
    result = pd.DataFrame(rows)
    return adjust(result, "p") if "p" in result else result


def _contrast(a: Reads, b: Reads, items: pd.DataFrame, seed: int) -> dict[str, Any]:
    rows_a, rows_b = shared_items(a, b)
    human = human_of(a, items)[rows_a]
    value_a, value_b = a.value[rows_a], b.value[rows_b]
    x = np.stack([item_means(value_a), item_means(value_b)])
    used = ~np.isnan(x).any(axis=0) & ~np.isnan(human)
    x, y = x[:, used], human[used]
    cluster, criterion = a.cluster[rows_a][used], criterion_of(a)[rows_a][used]
    n_clusters = len(np.unique(cluster))
    row: dict[str, Any] = {"n_items": len(y), "n_clusters": n_clusters}
    if len(y) == 0:
        return row | {"reason": "no item has a score on both sides and a human rating"}
    reasons: list[str] = []
    row |= _delta_r(x, y, cluster, n_clusters, reasons)
    paper_low, paper_high, undefined = paired_bootstrap(x[0], x[1], y, seed=seed)
    row |= {"paper_low": paper_low, "paper_high": paper_high, "n_undefined": undefined}
    row |= named("delta_rho", *_delta_rho(x, y, cluster))
    macro = np.stack([per_criterion(side, y, criterion) for side in x], axis=1)
    row |= named("delta_r_macro", *jackknife(macro, cluster, _macro_difference))
    if a.criteria is not None:
        text = combine(
            a.items[c].iloc[rows_a][used] for c in ("dataset", "item_id") if c in a.items
        )
        # The paper (v2, Table 6) draws texts once for all correlations.
        draws = resampled(by_cluster(macro, text), PAPER_RESAMPLES, seed, _macro_difference)
        low, high = percentile_interval(draws)
        row |= {"paper_macro_low": low, "paper_macro_high": high}
    row |= _single_reads(value_a[used], value_b[used], y, cluster)
    row |= effective_reads(a, b, reasons)
    return row | {"reason": said(*reasons)}


def _difference(r: FloatArray) -> FloatArray:
    """First side minus second, along the last axis."""
    return np.asarray(r[..., 0] - r[..., 1])


def _macro_difference(sums: FloatArray) -> FloatArray:
    """Difference of the sides' mean r, from summed moments (…, 2, criteria, 6)."""
    return _difference(mean_correlation(sums))


def _delta_r(
    x: FloatArray, y: FloatArray, cluster: IntArray, n_clusters: int, reasons: list[str]
) -> dict[str, float]:
    sums = by_cluster(np.stack([moments(side, y) for side in x], axis=1), cluster)
    r = correlation(sums.sum(axis=0))
    delta = float(_difference(r))
    left = _difference(correlation(sums.sum(axis=0) - sums))
    low, high, p, se = UNDEFINED if np.isnan(delta) else jackknife_t(delta, left)
    df = float(freedom(left - left.mean())) if len(left) > 1 else 0.0
    if np.isnan(delta):
        reasons.append("r is undefined: the ratings or a side's scores are all equal")
    elif n_clusters > 1 and np.isnan(se):
        reasons.append("r is undefined without some cluster, so the jackknife has no interval")
    elif np.isnan(p) and n_clusters > 1:
        reasons.append("both sides give the same scores: there is nothing to test")
    else:
        reasons.append(few_clusters(cluster, scores=(*x, y)))
    row = {"r_a": float(r[0]), "r_b": float(r[1]), "delta_r": delta}
    row |= {"low": low, "high": high, "p": p, "standard_error": se, "mde": detectable(se, df)}
    return row | {"p_equivalent": equivalence(delta, se, df + 1, MARGINS["delta_r"])}


def paired_bootstrap(
    a: FloatArray, b: FloatArray, human: FloatArray, resamples: int = PAPER_RESAMPLES, seed: int = 0
) -> tuple[float, float, int]:
    """The paper's interval of r(a, human) - r(b, human): items drawn once for both correlations.

    Returns the 95 % percentile interval and how many resamples were undefined (dropped).
    """
    # Both correlations share 1, y and yy: nine sums serve two of them.
    first, second = moments(a, human), moments(b, human)
    columns = np.concatenate([first, second[:, [1, 3, 5]]], axis=1)

    def difference(sums: FloatArray) -> FloatArray:
        return correlation(sums[:, :6]) - correlation(sums[:, [0, 6, 2, 7, 4, 8]])

    draws = resampled(columns, resamples, seed, difference)
    return *percentile_interval(draws), int(np.isnan(draws).sum())


def _delta_rho(x: FloatArray, y: FloatArray, cluster: IntArray) -> tuple[float, Interval]:
    delta = float(spearman(x[0], y) - spearman(x[1], y))
    if np.isnan(delta) or len(np.unique(cluster)) < 2:
        return delta, UNDEFINED
    left = leave_out_spearman(x[0], y, cluster) - leave_out_spearman(x[1], y, cluster)
    return delta, jackknife_t(delta, left)


def _single_reads(
    a: FloatArray, b: FloatArray, y: FloatArray, cluster: IntArray
) -> dict[str, float]:
    """r of single reads, averaged over the reads of each side."""
    parts = np.concatenate([read_moments(a, y), read_moments(b, y)], axis=1)

    def means(sums: FloatArray) -> FloatArray:
        r = correlation(sums)
        return np.stack([item_means(r[..., : a.shape[1]]), item_means(r[..., a.shape[1] :])], -1)

    r = means(parts.sum(axis=0))
    delta, interval = jackknife(parts, cluster, lambda sums: _difference(means(sums)))
    single = {"r_single_a": float(r[0]), "r_single_b": float(r[1])}
    return single | named("delta_single", delta, interval)


def read_moments(value: FloatArray, y: FloatArray) -> FloatArray:
    """Moments of each read with y: shape (items, reads, 6); 0 where a read is missing."""
    parsed = ~np.isnan(value)
    x = np.where(parsed, value - np.nanmean(value), 0.0) if parsed.any() else np.zeros_like(value)
    one, y = parsed.astype(np.float64), (y - y.mean())[:, None]
    y = np.where(parsed, y, 0.0)
    return np.stack([one, x, y, x * x, y * y, x * y], axis=-1)


def effective_reads(a: Reads, b: Reads, reasons: list[str]) -> dict[str, float]:
    """Reads that each side's mean is worth.

    A read varies within an item by σ²₁. Repeats of one ordering vary less among themselves, by w;
    what they have in common, σ²₁ − w, no averaging removes: K_eff = σ²₁ / (σ²₁ − w + w / K).
    """
    single = max((_within_variance(s) for s in (a, b) if _shows_orderings(s)), default=float("nan"))
    out = {}
    for name, side in (("k_effective_a", a), ("k_effective_b", b)):
        within, k = _within_variance(side), _reads_per_item(side)
        shared = 0.0 if _shows_orderings(side) else max(single - within, 0.0)
        own = single if _shows_orderings(side) else within
        mean_variance = shared + own / k if k else np.nan
        out[name] = float(single / mean_variance) if mean_variance > 0 else float("nan")
    if np.isnan(single):
        reasons.append("k_effective: neither side shows several orderings")
    elif np.isnan(list(out.values())).any():
        reasons.append("k_effective: no item's reads differ")
    return out


def _shows_orderings(side: Reads) -> bool:
    order = side.arrangement
    order = np.where(order < 0, order.max(axis=1, keepdims=True), order)
    return bool((order != order[:, :1]).any())


def _within_variance(side: Reads) -> float:
    """Mean over items of the variance of their reads (ddof 1)."""
    variance = item_variance(np.where(copies(side), np.nan, side.value))
    return float(item_means(variance[None])[0]) if not np.isnan(variance).all() else 0.0


def item_variance(value: FloatArray) -> FloatArray:
    """Variance (ddof 1) of each row's numbers; NaN below two."""
    parsed = ~np.isnan(value)
    count = parsed.sum(axis=1)
    rest = np.where(parsed, value - item_means(value)[:, None], 0.0)
    return np.asarray(np.where(count > 1, (rest**2).sum(axis=1) / np.maximum(count - 1, 1), np.nan))


def _reads_per_item(side: Reads) -> float:
    """Mean number of parsed reads that are not copies."""
    own = (side.parsed & ~copies(side)).sum(axis=1)
    return float(own[own > 0].mean()) if (own > 0).any() else 0.0
