"""How well do a judge's scores agree with people's?"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from scipy import stats

from rubricnb.statistics._inference import (
    UNDEFINED,
    bootstrap_weights,
    correlation,
    few_clusters,
    fisher_jackknife_t,
    leave_out_spearman,
    moments,
    percentile_interval,
)
from rubricnb.statistics._reads import (
    By,
    FloatArray,
    IntArray,
    Reads,
    Value,
    by_cluster,
    copies,
    floats,
    item_means,
    read_groups,
    require,
)

PAPER_RESAMPLES = 1_000


def agreement(
    judgments: pd.DataFrame,
    items: pd.DataFrame,
    by: By = None,
    value: Value = "score",
    seed: int = 0,
) -> pd.DataFrame:
    """Correlate a judge's mean score per item with the mean human rating.

    Parameters
    ----------
    judgments
        Judgments; an item's score is the mean of its parsed reads.
    items
        Items with the column ``human``.
    by
        Columns to group by; by default judge, dataset, design and every condition column present.
    value
        ``score`` or ``expected_score``.
    seed
        Of the papers' bootstrap.

    Returns
    -------
    DataFrame
        One row a group: its columns, and

        * ``n_items`` (with a score and a rating), ``n_clusters, n_reads, n_criteria``;
        * ``r`` (Pearson, pooled over criteria) with ``r_low, r_high`` and ``p`` (against 0);
          ``rho`` (Spearman) with ``rho_low, rho_high, rho_p``: 95 % cluster jackknife-t on
          Fisher's z scale;
        * ``r_macro``, ``rho_macro``: means over criteria, ``r_macro`` with ``_low, _high, _p``;
        * ``r_paper_low, r_paper_high``: the papers' interval, an item percentile bootstrap (1,000
          resamples, ``n_undefined`` of them dropped because a side was constant). It is too narrow
          where items share a text: 72–90 % instead of 95 %;
        * ``k_effective``: reads per item that are not copies of another read;
        * ``ceiling``: √reliability of the mean human rating, the r of a judge that knew every
          text's true quality; NaN unless items have several ``human_ratings`` each;
        * ``reason``: what could not be computed and why.

    Raises
    ------
    ValueError
        `items` lack ``human``, or none of them was judged.

    Notes
    -----
    arXiv:2602.02219v2, §4.4. r pooled over criteria mixes agreement within criteria with the
    criteria's different means; v2's Setting 2 uses the macro mean.

    Examples
    --------
    >>> import pandas as pd
    >>> names = list("abcdefgh")
    >>> items = pd.DataFrame({"item_id": names, "human": [1.0, 1, 2, 2, 3, 3, 4, 5]})
    >>> judgments = pd.DataFrame({
    ...     "item_id": names, "cluster_id": names, "design": "fixed", "ordering_index": 1,
    ...     "ordering": "1-2-3-4-5", "score": [2, 1, 2, 3, 3, 4, 4, 5]})
    >>> agreement(judgments, items)[["n_items", "r", "r_low", "r_high"]].round(2)
       n_items     r  r_low  r_high
    0        8  0.93   0.62    0.99
    """
    require(items, ["item_id", "human"], "items")
    rows = []
    for key, reads in read_groups(judgments, by, value):
        row = {**key, **_agreement(reads, human_of(reads, items), seed)}
        row["ceiling"] = _ceiling(reads, items)
        rows.append(row)
    return pd.DataFrame(rows)


def human_of(reads: Reads, items: pd.DataFrame) -> FloatArray:
    """Return the human rating of each judged item; NaN where there is none."""
    return floats(column_of(reads, items, "human"))


def column_of(reads: Reads, items: pd.DataFrame, column: str) -> pd.Series:
    """Return a column of the items for each judged item.

    Setting 1 matches on item_id; Setting 2, whose item_id is the text_id, on text and criterion.
    """
    judged = reads.items["item_id"].astype(object)
    wanted, known = pd.Index(judged), pd.Index(items["item_id"].astype(object))
    if not wanted.isin(known).any() and {"text_id", "criterion"} <= set(items.columns):
        known = pd.MultiIndex.from_frame(items[["text_id", "criterion"]].astype(object))
        criterion = reads.items["criterion"].astype(object)
        wanted = pd.MultiIndex.from_arrays([judged, criterion])
    found = wanted.isin(known)
    if not found.any():
        raise ValueError(
            f"none of the {len(judged)} judged items (the first: {judged.iloc[0]!r}) is among the "
            "items; pass the items that were judged"
        )
    values = items[column].set_axis(known)
    return values[~known.duplicated()].reindex(wanted).reset_index(drop=True)


def criterion_of(reads: Reads) -> IntArray:
    """Code of each item's criterion; one code where judgments name none."""
    if "criterion" not in reads.items:
        return np.zeros(len(reads.items), dtype=np.int64)
    return np.asarray(pd.factorize(reads.items["criterion"])[0], dtype=np.int64)


def _agreement(reads: Reads, human: FloatArray, seed: int) -> dict[str, Any]:
    score = item_means(reads.value)
    used = ~np.isnan(score) & ~np.isnan(human)
    x, y = score[used], human[used]
    cluster = np.unique(reads.cluster[used], return_inverse=True)[1]
    criterion = np.unique(criterion_of(reads)[used], return_inverse=True)[1]
    n_clusters = len(np.unique(cluster))
    reasons: list[str] = []
    row: dict[str, Any] = {
        "n_items": len(x),
        "n_clusters": n_clusters,
        "n_reads": int(reads.parsed[used].sum()),
        "n_criteria": len(np.unique(criterion)),
    }
    row |= _pooled(x, y, cluster, reasons)
    row |= _macro(x, y, cluster, criterion, reasons)
    row |= _papers_interval(x, y, seed)
    row["k_effective"] = effective_count(reads, used)
    row["reason"] = "; ".join(dict.fromkeys(reasons))
    return row


def _ceiling(reads: Reads, items: pd.DataFrame) -> float:
    """√ICC(1, k): one-way random effects of the single ratings of the judged items."""
    if "human_ratings" not in items:
        return float("nan")
    ratings = [r for r in column_of(reads, items, "human_ratings") if _several(r)]
    if len(ratings) < 2:
        return float("nan")
    count = np.array([len(r) for r in ratings])
    mean = np.array([np.mean(r) for r in ratings])
    within = sum(((np.asarray(r) - m) ** 2).sum() for r, m in zip(ratings, mean, strict=True))
    grand = (count * mean).sum() / count.sum()
    between = (count * (mean - grand) ** 2).sum() / (len(ratings) - 1)
    if between <= 0:
        return float("nan")
    reliability = 1 - within / (count.sum() - len(ratings)) / between
    return float(np.sqrt(reliability)) if reliability > 0 else 0.0


def _several(ratings: Any) -> bool:
    return isinstance(ratings, tuple | list | np.ndarray) and len(ratings) > 1


def effective_count(reads: Reads, used: np.ndarray[Any, Any]) -> float:
    """Mean number of parsed reads per item that do not copy another one."""
    own = (reads.parsed & ~copies(reads))[used]
    return float(own.sum(axis=1).mean()) if len(own) else float("nan")


def _pooled(
    x: FloatArray, y: FloatArray, cluster: IntArray, reasons: list[str]
) -> dict[str, float]:
    parts = moments(x, y)
    r = float(correlation(parts.sum(axis=0)))
    rho = float(spearman(x, y))
    of_r = of_rho = UNDEFINED
    if len(x) == 0:
        reasons.append("no item has both a score and a human rating")
    elif np.isnan(r):
        reasons.append(_why_undefined(x, y))
    else:
        by = by_cluster(parts, cluster)
        of_r = fisher_jackknife_t(r, correlation(by.sum(axis=0) - by))
        of_rho = fisher_jackknife_t(rho, leave_out_spearman(x, y, cluster))
        if len(by) > 1 and np.isnan(of_r[0]):
            reasons.append(_why_no_interval(r))
        elif len(by) > 1 and np.isnan(of_rho[2]):
            reasons.append("rho: without an interval or a p, for so few clusters")
        reasons += filter(None, [few_clusters(cluster, scores=(x, y))])
    out = {"r": r, "r_low": of_r[0], "r_high": of_r[1], "p": of_r[2]}
    return out | {"rho": rho, "rho_low": of_rho[0], "rho_high": of_rho[1], "rho_p": of_rho[2]}


def spearman(x: FloatArray, y: FloatArray) -> FloatArray:
    """Spearman's ρ with mid-ranks; NaN where a side is constant."""
    if len(x) == 0:
        return np.array(np.nan)
    return correlation(moments(stats.rankdata(x), stats.rankdata(y)).sum(axis=0))


def _macro(
    x: FloatArray, y: FloatArray, cluster: IntArray, criterion: IntArray, reasons: list[str]
) -> dict[str, float]:
    """Means over criteria of the correlation within each."""
    r = rho = float("nan")
    interval = UNDEFINED
    if len(x):
        parts, rhos = per_criterion(x, y, cluster, criterion)
        total = parts.sum(axis=0)
        r, rho = float(correlation(total).mean()), float(rhos.mean())
        if np.isnan(r):
            reasons.append("r_macro: in some criterion a side is constant")
        elif len(parts) > 1:
            interval = fisher_jackknife_t(r, correlation(total - parts).mean(axis=1))
    low, high, p, _ = interval
    return {
        "r_macro": r,
        "r_macro_low": low,
        "r_macro_high": high,
        "r_macro_p": p,
        "rho_macro": rho,
    }


def per_criterion(
    x: FloatArray, y: FloatArray, cluster: IntArray, criterion: IntArray
) -> tuple[FloatArray, FloatArray]:
    """Return moments summed by cluster and criterion (clusters, criteria, 6), and each ρ."""
    n_criteria = int(criterion.max()) + 1
    parts = np.zeros((len(x), n_criteria, 6))
    rhos = np.empty(n_criteria)
    for c in range(n_criteria):
        own = criterion == c
        parts[own, c] = moments(x[own], y[own])
        rhos[c] = spearman(x[own], y[own])
    return by_cluster(parts, cluster), rhos


def _papers_interval(x: FloatArray, y: FloatArray, seed: int) -> dict[str, float]:
    low = high = float("nan")
    undefined = 0
    if len(x) > 1:
        parts = moments(x, y)
        rng = np.random.default_rng(seed)
        weights = bootstrap_weights(len(x), PAPER_RESAMPLES, rng)
        draws = np.concatenate([correlation(w @ parts) for w in weights])
        undefined = int(np.isnan(draws).sum())
        low, high = percentile_interval(draws)
    return {"r_paper_low": low, "r_paper_high": high, "n_undefined": undefined}


def _why_undefined(x: FloatArray, y: FloatArray) -> str:
    if len(x) == 1:
        return "one item: a correlation needs at least three"
    sides = [name for name, v in (("scores", x), ("human ratings", y)) if np.ptp(v) == 0]
    return f"all {' and '.join(sides)} are equal"


def _why_no_interval(r: float) -> str:
    if abs(r) == 1:
        return "|r| = 1 has no interval"
    return "r is undefined without some cluster, so the jackknife has no interval"
