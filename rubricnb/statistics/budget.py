"""How many orderings are needed? Agreement of the mean of K reads, for every K."""

from __future__ import annotations

from itertools import combinations
from math import comb
from typing import Any

import numpy as np
import pandas as pd

from rubricnb.statistics._inference import UNDEFINED, correlation, few_clusters, fisher_jackknife_t
from rubricnb.statistics._placement import blocks
from rubricnb.statistics._reads import (
    By,
    FloatArray,
    IntArray,
    Reads,
    Value,
    read_groups,
    require,
)
from rubricnb.statistics.agreement import human_of

MOST_SUBSETS = 1_000


def budget_curve(
    judgments: pd.DataFrame,
    items: pd.DataFrame,
    by: By = None,
    value: Value = "score",
    seed: int = 0,
) -> pd.DataFrame:
    """Correlate the mean of K of the reads with people, over all choices of the K.

    Parameters
    ----------
    judgments, items, by, value
        As in `agreement`. Only items with every read parsed are used, the same for every K.
    seed
        Of the drawing of subsets; with up to 12 reads all of them are used.

    Returns
    -------
    DataFrame
        One row a group and K: ``k``, ``n_subsets``, ``n_items``, ``n_clusters``; ``r_mean`` over
        the subsets of K reads; ``spread_low, spread_high`` (2.5 and 97.5 % of the subsets: how much
        the choice matters, *not* a confidence band; of width 0 at the largest K); ``low, high``
        (95 % cluster jackknife-t interval of r_mean); ``r_expected`` (what averaging alone
        predicts: r_∞ / √(1 + φ/K), φ from the variances within and between items, through the last
        r_mean); ``gain`` (share of the rise from K = 1 to the largest K); ``reason``.

    Notes
    -----
    arXiv:2602.02219v2, §5.3, Figure 9. In a balanced design a subset gives all items the same
    orderings, so a shift common to all items cancels in r; with `shuffled` it does not. The curves
    of the two are not comparable at K = 1.

    Examples
    --------
    >>> import pandas as pd
    >>> names = list("abcdef")
    >>> judgments = pd.DataFrame({
    ...     "item_id": names * 2, "cluster_id": names * 2, "design": "balanced",
    ...     "ordering_index": [1] * 6 + [2] * 6, "ordering": ["1-2-3"] * 6 + ["3-2-1"] * 6,
    ...     "score": [1, 1, 2, 2, 3, 3, 1, 2, 1, 3, 2, 3]})
    >>> items = pd.DataFrame({"item_id": names, "human": [1.0, 1, 2, 2, 3, 4]})
    >>> budget_curve(judgments, items)[["k", "n_subsets", "r_mean"]].round(2)
       k  n_subsets  r_mean
    0  1          2    0.77
    1  2          1    0.88
    """
    require(items, ["item_id", "human"], "items")
    frames = []
    for key, reads in read_groups(judgments, by, value):
        curve = _curve(reads, human_of(reads, items), seed)
        frames.append(pd.DataFrame({**dict.fromkeys(key), **curve}).assign(**key))
    return pd.concat(frames, ignore_index=True)


def _curve(reads: Reads, human: FloatArray, seed: int) -> dict[str, Any]:
    used = reads.parsed.all(axis=1) & ~np.isnan(human)
    n_reads = reads.value.shape[1]
    k = np.arange(1, n_reads + 1)
    sets, size = subsets(n_reads, seed)
    out: dict[str, Any] = {"k": k, "n_subsets": np.bincount(size, minlength=n_reads + 1)[1:]}
    out |= {"n_items": int(used.sum())}
    names = ("r_mean", "spread_low", "spread_high", "low", "high", "r_expected", "gain")
    if not used.any():
        reason = "no item has all reads parsed and a human rating"
        return out | {"n_clusters": 0} | dict.fromkeys(names, np.nan) | {"reason": reason}
    cluster = np.unique(reads.cluster[used], return_inverse=True)[1]
    gram = _grams(reads.value[used], human[used], cluster)
    total = gram.sum(axis=0)
    r = _subset_correlations(total[None], sets)[0]
    r_mean = np.array([r[size == i].mean() for i in k])
    low, high = _intervals(gram, sets, size, r_mean)
    spread = [np.quantile(r[size == i], [0.025, 0.975]) for i in k]
    rise = r_mean[-1] - r_mean[0]
    numbers = {
        "r_mean": r_mean,
        "spread_low": np.array([s[0] for s in spread]),
        "spread_high": np.array([s[1] for s in spread]),
        "low": low,
        "high": high,
        "r_expected": _expected(reads, used, r_mean[-1]),
        "gain": (r_mean - r_mean[0]) / rise if abs(rise) > 1e-12 else np.full(n_reads, np.nan),
    }
    return out | {"n_clusters": len(gram)} | numbers | {"reason": _reason(numbers, cluster)}


def _reason(numbers: dict[str, FloatArray], cluster: IntArray) -> str:
    if np.isnan(numbers["r_mean"]).any():
        return "for some reads r is undefined: their scores, or the ratings, are all equal"
    reasons = [few_clusters(cluster)]
    if cluster.max() > 0 and np.isnan(numbers["low"]).any():
        reasons.append("without some cluster r is undefined or ±1, so there is no interval")
    if np.isnan(numbers["r_expected"]).any():
        reasons.append("r_expected: needs two reads of three items that differ")
    if np.isnan(numbers["gain"]).any():
        reasons.append("gain: r does not change with K")
    return "; ".join(filter(None, reasons))


def subsets(n_reads: int, seed: int = 0) -> tuple[FloatArray, IntArray]:
    """All non-empty subsets of the reads as rows of 0 and 1, and their sizes.

    Beyond 12 reads, at most 1,000 subsets of each size, drawn by seed.
    """
    if n_reads <= 12:
        number = np.arange(1, 2**n_reads)
        every = ((number[:, None] >> np.arange(n_reads)) & 1).astype(np.float64)
        every = every[np.argsort(every.sum(axis=1), kind="stable")]
        return every, np.asarray(every.sum(axis=1), dtype=np.int64)
    rng = np.random.default_rng(seed)
    rows = []
    for k in range(1, n_reads + 1):
        if comb(n_reads, k) <= MOST_SUBSETS:
            chosen = np.array(list(combinations(range(n_reads), k)))
        else:
            chosen = np.argsort(rng.random((MOST_SUBSETS, n_reads)), axis=1)[:, :k]
        part = np.zeros((len(chosen), n_reads))
        np.put_along_axis(part, chosen, 1.0, axis=1)
        rows.append(part)
    sets = np.concatenate(rows)
    return sets, np.asarray(sets.sum(axis=1), dtype=np.int64)


def _grams(value: FloatArray, y: FloatArray, cluster: IntArray) -> FloatArray:
    """Cross-products of (1, y, reads), summed by cluster: all that r of any subset needs."""
    columns = np.column_stack([np.ones_like(y), y - y.mean(), value - value.mean()])
    order = np.argsort(cluster, kind="stable")
    bounds = np.flatnonzero(np.diff(cluster[order])) + 1
    parts = np.split(columns[order], bounds)
    return np.stack([part.T @ part for part in parts])


def _subset_correlations(gram: FloatArray, sets: FloatArray) -> FloatArray:
    """r of the mean over each subset, from Gram matrices (…, 2 + reads, 2 + reads)."""
    weights = sets / sets.sum(axis=1, keepdims=True)
    x, xy = gram[:, 0, 2:] @ weights.T, gram[:, 1, 2:] @ weights.T
    xx = ((weights @ gram[:, 2:, 2:]) * weights).sum(axis=2)
    n, y, yy = (np.broadcast_to(gram[:, i, j, None], x.shape) for i, j in ((0, 0), (0, 1), (1, 1)))
    return correlation(np.stack([n, x, y, xx, yy, xy], axis=-1))


def _intervals(
    gram: FloatArray, sets: FloatArray, size: IntArray, r_mean: FloatArray
) -> tuple[FloatArray, FloatArray]:
    n_clusters, n_reads = len(gram), sets.shape[1]
    low, high = np.full(n_reads, np.nan), np.full(n_reads, np.nan)
    if n_clusters < 2:
        return low, high
    total = gram.sum(axis=0)
    member = (size == np.arange(1, n_reads + 1)[:, None]) / np.bincount(size)[1:, None]
    step = max(1, 2_000_000 // len(sets))
    left = np.concatenate(
        [
            _subset_correlations(total - gram[start : start + step], sets) @ member.T
            for start in range(0, n_clusters, step)
        ]
    )
    for i in range(n_reads):
        interval = fisher_jackknife_t(r_mean[i], left[:, i])
        low[i], high[i] = (interval if np.isfinite(r_mean[i]) else UNDEFINED)[:2]
    return low, high


def _expected(reads: Reads, used: np.ndarray[Any, Any], last: float) -> FloatArray:
    """r_∞ / √(1 + φ/K) with φ = variance within over variance between items, through `last`.

    Where all items see the same orderings, shifts common to all items are taken out first.
    """
    value = reads.value[used]
    n_items, n_reads = value.shape
    k = np.arange(1, n_reads + 1)
    if n_reads < 2 or n_items < 3:
        return np.full(n_reads, np.nan)
    freedom = n_items * (n_reads - 1)
    if reads.n_options and len(blocks(reads)[0].shown) == 1:
        value = value - value.mean(axis=0)
        freedom -= n_reads - 1
    within = ((value - value.mean(axis=1, keepdims=True)) ** 2).sum() / freedom
    between = value.mean(axis=1).var(ddof=1) - within / n_reads
    if not between > 0:
        return np.full(n_reads, np.nan)
    phi = within / between
    return np.asarray(last * np.sqrt((1 + phi / n_reads) / (1 + phi / k)))
