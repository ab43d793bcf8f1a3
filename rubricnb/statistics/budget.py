"""How many orderings are needed? Agreement of the mean of K reads, for every K."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from math import comb
from typing import Any

import numpy as np
import pandas as pd

from rubricnb.core.estimates import intervals as infer
from rubricnb.core.estimates import reads as arrays
from rubricnb.core.estimates.intervals import Estimate, correlation, few_clusters
from rubricnb.core.estimates.losses import left_out
from rubricnb.core.estimates.reads import By, Reads, Value
from rubricnb.core.estimates.reasons import (
    Reason,
    Reasons,
    because,
    because_each,
    collect,
)
from rubricnb.core.support.counting import binned
from rubricnb.core.support.types import FloatArray, IntArray, Records, Row
from rubricnb.statistics.human_agreement import row_with_people
from rubricnb.statistics.variance import (
    crossed_variances,
    gain_of_averaging,
    noise_ratio,
)

MOST_SUBSETS = 1_000
GAIN = 1.05  # a rise of r by a factor that is worth the calls
MOST_WORK = 8_000_000  # clusters × subsets behind the intervals of a curve
VERDICT = 0.90  # level of an interval whose ends are two one-sided tests at 5 %
MIN_CLUSTERS = 10  # of a pilot that gets a verdict
_NUMBERS = (
    "r_mean",
    "spread_low",
    "spread_high",
    *infer.UNTESTED,
    "r_expected",
    "gain",
)


def budget_curve(
    judgments: pd.DataFrame,
    items: pd.DataFrame,
    by: By = None,
    value: Value = "score",
) -> pd.DataFrame:
    """Correlate the mean of K of the reads with people, over all choices of the K.

    Parameters
    ----------
    judgments, items, by, value
        As in `agreement`. Only items with every read parsed are used, the same for
        every K.

    Returns
    -------
    DataFrame
        One row a group and K: ``k``, ``n_subsets`` (beyond 12 reads at most 1,000),
        ``n_items``, ``n_clusters``; ``r_mean`` over the subsets of K reads;
        ``spread_low, spread_high`` (2.5 and 97.5 % of the subsets: how much the choice
        matters, *not* a confidence band; of width 0 at the largest K); ``low, high``
        (95 % cluster jackknife-t interval of r_mean, of thousands of clusters from some
        of the subsets); ``r_expected`` (what averaging alone predicts: r_∞ / √(1 +
        φ/K), φ from the variances within and between items, through the last r_mean);
        ``gain`` (share of the rise from K = 1 to the largest K); ``reason``.

    Notes
    -----
    arXiv:2602.02219v2, §5.3, Figure 9. In a balanced design a subset gives all items
    the same orderings, so a shift common to all items cancels in r; with `shuffled` it
    does not. The curves of the two are not comparable at K = 1.

    Examples
    --------
    >>> import pandas as pd
    >>> names = list("abcdef")
    >>> judgments = pd.DataFrame({
    ...     "item_id": names * 2, "cluster_id": names * 2, "design": "balanced",
    ...     "ordering_index": [1] * 6 + [2] * 6,
    ...     "ordering": ["1-2-3"] * 6 + ["3-2-1"] * 6,
    ...     "score": [1, 1, 2, 2, 3, 3, 1, 2, 1, 3, 2, 3]})
    >>> items = pd.DataFrame({"item_id": names, "human": [1.0, 1, 2, 2, 3, 4]})
    >>> budget_curve(judgments, items)[["k", "n_subsets", "r_mean"]].round(2)
       k  n_subsets  r_mean
    0  1          2    0.77
    1  2          1    0.88
    """
    return row_with_people(judgments, items, by, value, _curve)


def _curve(reads: Reads, human: FloatArray) -> Records:
    rated_items = ~np.isnan(human)
    used = reads.parsed.all(axis=1) & rated_items
    n_reads = reads.value.shape[1]
    k = np.arange(1, n_reads + 1)
    sets, size = subsets(n_reads)
    out = pd.DataFrame({"k": k, "n_subsets": binned(size, minlength=n_reads + 1)[1:]})
    lost = left_out(reads.value[rated_items], used[rated_items], "rated items")
    cluster = reads.cluster[used]
    out = out.assign(n_items=int(used.sum()), n_clusters=len(np.unique(cluster)))
    if not used.any():
        why = because_each(*[(Reason("unread_or_unrated"), *lost)] * len(out))
        return out.assign(**dict.fromkeys(_NUMBERS, np.nan), **why).to_dict("records")
    gram = _grams(reads.value[used], human[used], cluster)
    r = _subset_correlations(gram.sum(axis=0)[None], sets)[0]
    r_mean = np.array([r[size == i].mean() for i in k])
    spread = np.array([np.quantile(r[size == i], [0.025, 0.975]) for i in k])
    rise = r_mean[-1] - r_mean[0]
    gain = (
        (r_mean - r_mean[0]) / rise if abs(rise) > 1e-12 else np.full(n_reads, np.nan)
    )
    out = out.assign(
        r_mean=r_mean,
        spread_low=spread[:, 0],
        spread_high=spread[:, 1],
        **_intervals(gram, sets, size, r_mean),
        r_expected=_expected(reads, used, r_mean[-1]),
        gain=gain,
    )
    if lost:
        # of one read, each over the rated items that it scored
        scored = ~np.isnan(reads.value) & rated_items[:, None]
        every = [
            correlation(infer.moments(value[kept], human[kept]).sum(axis=0))
            for value, kept in zip(reads.value.T, scored.T, strict=True)
        ]
        means = {"all": float(np.mean(every)), "kept": float(r_mean[0])}
        lost += (Reason("r_one_of_all", **means),)
    why = because_each(*[(*_why_unknown(out, cluster), *lost)] * len(out))
    return out.assign(**why).to_dict("records")


def _why_unknown(curve: pd.DataFrame, cluster: IntArray) -> Reasons:
    unknown = curve.isna().any()
    if unknown["r_mean"]:
        return (Reason("r_undefined_reads"),)
    several = len(np.unique(cluster)) > 1
    return collect(
        few_clusters(cluster),
        Reason("no_interval.some_k") if several and unknown["low"] else None,
        Reason("r_expected.few") if unknown["r_expected"] else None,
        Reason("gain.none") if unknown["gain"] else None,
    )


def subsets(n_reads: int) -> tuple[FloatArray, IntArray]:
    """All non-empty subsets of the reads as rows of 0 and 1, and their sizes.

    Beyond 12 reads, at most 1,000 subsets of each size, drawn.
    """
    rng = np.random.default_rng(0)
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
    """Cross-products of (1, y, reads) by cluster: what r of any subset needs."""
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
    n, y, yy = (
        np.broadcast_to(gram[:, i, j, None], x.shape)
        for i, j in ((0, 0), (0, 1), (1, 1))
    )
    return correlation(np.stack([n, x, y, xx, yy, xy], axis=-1))


def _intervals(
    gram: FloatArray, sets: FloatArray, size: IntArray, r_mean: FloatArray
) -> pd.DataFrame:
    """Ends of the interval of each r, with its se and df."""
    total, n_reads = gram.sum(axis=0), sets.shape[1]
    # evenly spaced subsets of each size, at least twenty
    most = max(MOST_WORK // (len(gram) * n_reads), 20)
    of_size = [np.flatnonzero(size == k) for k in range(1, n_reads + 1)]
    kept = np.concatenate(
        [
            own[np.linspace(0, len(own) - 1, min(len(own), most)).round().astype(int)]
            for own in of_size
        ]
    )
    sets, size = sets[kept], size[kept]
    member = (size == np.arange(1, n_reads + 1)[:, None]) / binned(size)[1:, None]
    step = max(1, 2_000_000 // len(sets))
    starts = range(0, len(gram), step)
    left = np.concatenate(
        [
            _subset_correlations(total - gram[s : s + step], sets) @ member.T
            for s in starts
        ]
    )
    # Some of the subsets tell how r varies over clusters,
    # about the mean over all of them.
    left += r_mean - _subset_correlations(total[None], sets)[0] @ member.T
    return infer.jackknifed(r_mean, left, infer.fisher_jackknife_t)


def _expected(reads: Reads, used: np.ndarray[Any, Any], last: float) -> FloatArray:
    """r_∞ / √(1 + φ/K) with φ = variance within over between items, through `last`.

    Where all items see the same orderings, shifts common to all items are taken out
    first.
    """
    value = reads.value[used]
    n_items, n_reads = value.shape
    k = np.arange(1, n_reads + 1)
    if n_reads < 2 or n_items < 3:
        return np.full(n_reads, np.nan)
    item, order, noise = crossed_variances(value, reads.cluster[used])[0]
    common = bool(reads.n_options) and len(reads.orderings) <= n_reads
    phi = (noise + (0 if common else order)) / item if item > 0 else np.nan
    return last * np.sqrt((1 + phi / n_reads) / (1 + phi / k))


def will_permuting_help(
    pilot: pd.DataFrame, k: int = 10, by: By = None, value: Value = "score"
) -> pd.DataFrame:
    """Predict from an unlabelled pilot whether the mean of k orders agrees better.

    Reads that waver from order to order gain by averaging; reads that repeat themselves
    do not. It is the judge's agreement with itself that is measured: one that cannot
    read may waver too, and averages to a steadier nothing.

    Parameters
    ----------
    pilot
        Judgments of some twenty items, each in the same balanced orders.
    k
        Orders to be averaged.
    by
        Columns to group by; by default judge, dataset, design and every condition
        column present.
    value
        ``score`` or ``expected_score``.

    Returns
    -------
    DataFrame
        One row a group: its columns, and

        * ``n_items, n_clusters, n_reads`` (of an item);
        * ``phi``: noise of a single read over the variance between texts, order means
          removed (`variance_components`, of the items that have every read);
        * ``gain``: predicted r of the mean of k reads over r of one, √((1 + φ)/(1 +
          φ/k)), with ``gain_low, gain_high``: 95 % cluster jackknife-t interval;
        * ``gain_congeneric``: the same without assuming that all orders are equally
          good, for the pilot's own number of reads only (NaN for another k);
        * ``verdict``: ``go`` if the gain is above 1.05, ``stop`` if it is below, each
          by a one-sided test at 5 %; ``unsure`` otherwise, below ten clusters, and
          where the texts are not shown to differ; ``reason``.

    Raises
    ------
    ValueError
        `k` is below 2.

    Notes
    -----
    Spearman (1910) and Brown (1910) for parallel reads; Jöreskog (1971) for congeneric
    ones.

    Examples
    --------
    >>> import pandas as pd
    >>> score = [1, 2, 2, 1, 3, 3, 4, 2, 5, 4, 5, 5]
    >>> pilot = pd.DataFrame({
    ...     "item_id": list("aabbccddeeff"), "cluster_id": list("aabbccddeeff"),
    ...     "design": "balanced", "ordering_index": [1, 2] * 6,
    ...     "ordering": ["1-2", "2-1"] * 6, "score": score})
    >>> forecast = will_permuting_help(pilot, k=2)
    >>> forecast[["phi", "gain", "gain_low", "gain_high"]].round(2)
        phi  gain  gain_low  gain_high
    0  0.29  1.06      0.93       1.19
    """
    if k < 2:
        raise ValueError(f"k is {k}: give at least two orders to average")
    return arrays.row_per_group(
        pilot, by, value, lambda reads: permuting_row(reads.value, reads.cluster, k)
    )


def permuting_row(value: FloatArray, cluster: IntArray, k: int) -> Row:
    """Judge whether averaging `k` reads helps, from a pilot's reads of every item.

    `value`: (items, reads), NaN where a read is lost; `cluster`: (items,). Returns the
    columns of `will_permuting_help`.
    """
    value = value[:, ~np.isnan(value).all(axis=0)]
    used = np.asarray(~np.isnan(value).any(axis=1))
    whole, cluster = value[used], cluster[used]
    (n, reads), n_clusters = whole.shape, len(np.unique(cluster))
    row: Row = {
        "n_items": n,
        "n_clusters": n_clusters,
        "n_reads": reads,
        "phi": np.nan,
    }
    row |= Estimate().named("gain", *infer.UNTESTED)
    row |= {"gain_congeneric": np.nan, "verdict": "unsure"}
    lost = left_out(value, used)
    if n < 3 or reads < 2:
        return row | because(Reason("few_complete", n=n, reads=reads), lost)
    if np.ptp(whole) == 0:
        return row | because(Reason("one_score"), lost)
    parts = crossed_variances(whole, cluster)
    phi = noise_ratio(parts)
    gain = gain_of_averaging(phi, k)
    row |= {"phi": float(phi[0])}
    row |= infer.jackknife_t(float(gain[0]), gain[1:]).named("gain", *infer.UNTESTED)
    if reads == k:
        row["gain_congeneric"] = _congeneric(whole - whole.mean(axis=0))
    apart = infer.jackknife_t(parts[0, 0], parts[1:, 0], VERDICT).low > 0
    if n_clusters >= MIN_CLUSTERS and apart:
        # two one-sided tests at 5 %; who never changed has nothing to average
        low, high = infer.jackknife_t(float(gain[0]), gain[1:], VERDICT).ends
        if low > GAIN:
            row["verdict"] = "go"
        elif high < GAIN or (gain == 1).all():
            row["verdict"] = "stop"
    return row | because(lost, *_why_unsure(row, phi, apart, cluster))


def _why_unsure(
    row: Row, phi: FloatArray, apart: bool, cluster: IntArray
) -> Iterator[Reason | Reasons]:
    if not apart:
        yield Reason("not_told_apart")
    elif np.isnan(phi).any():
        yield Reason("no_interval.noise")
    elif (phi == 0).all():
        yield Reason("no_interval.unchanged", most=1 - 0.05 ** (1 / row["n_clusters"]))
    if row["n_clusters"] < MIN_CLUSTERS:
        yield Reason("no_verdict", n=row["n_clusters"], least=MIN_CLUSTERS)
    else:
        yield infer.few_clusters(cluster)


def _congeneric(centred: FloatArray) -> float:
    """Covariance of the mean with what reads share, over a single read's."""
    sd = centred.std(axis=0, ddof=1)
    kept = centred[:, sd > 0]
    reads = kept.shape[1]
    if reads < 2:
        return np.nan
    total = kept.sum(axis=1, keepdims=True)
    others = (total - kept) / (reads - 1)
    shared = (kept * others).sum(axis=0) / (len(kept) - 1)
    one = float((shared / sd[sd > 0]).mean())
    mean_sd = float(kept.mean(axis=1).std(ddof=1))
    return float(shared.mean()) / mean_sd / one if one > 0 and mean_sd > 0 else np.nan
