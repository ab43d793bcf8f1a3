"""How well do a judge's scores agree with people's?"""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats

from rubricnb.statistics._inference import (
    UNDEFINED,
    correlation,
    few_clusters,
    fisher_jackknife_t,
    jackknife,
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
    echoes,
    floats,
    item_means,
    matched,
    require,
    row_per_group,
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
        Items with the column ``human``, matched by item_id and, where both frames have them,
        dataset and criterion (Setting 2: text_id and criterion).
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
        * ``k_effective``: reads per item, copies of an answer left out and repeats of an ordering
          that all agree counted once: they add nothing to the item's mean;
        * ``ceiling``: √reliability of the mean human rating, the r of a judge that knew every
          text's true quality, from the items' single ``human_ratings``: ICC(C, k) if all have as
          many, else ICC(1, k); ``ceiling_reason``, why there is none;
        * ``reason``: what could not be computed and why.

    Raises
    ------
    ValueError
        `items` lack ``human``, hold a judged item twice, or none of them was judged.

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
    return row_per_group(
        judgments, by, value, lambda reads: _agreement(reads, items, seed) | _ceiling(reads, items)
    )


def human_of(reads: Reads, items: pd.DataFrame, what: str = "items") -> FloatArray:
    """Return the human rating of each judged item; NaN where there is none."""
    require(items, ["item_id", "human"], what)
    return floats(matched(reads.items, items, "human"))


def criterion_of(reads: Reads) -> IntArray:
    """Code of each item's criterion; one code where judgments name none."""
    if "criterion" not in reads.items:
        return np.zeros(len(reads.items), dtype=np.int64)
    return np.asarray(pd.factorize(reads.items["criterion"])[0], dtype=np.int64)


def _agreement(reads: Reads, items: pd.DataFrame, seed: int) -> dict[str, Any]:
    score, human = item_means(reads.value), human_of(reads, items)
    used = ~np.isnan(score) & ~np.isnan(human)
    x, y, cluster = score[used], human[used], reads.cluster[used]
    criterion = criterion_of(reads)[used]
    reasons: list[str] = []
    row: dict[str, Any] = {
        "n_items": len(x),
        "n_clusters": len(np.unique(cluster)),
        "n_reads": int(reads.parsed[used].sum()),
        "n_criteria": len(np.unique(criterion)),
    }
    row |= _pooled(x, y, cluster, reasons)
    row |= _macro(x, y, cluster, criterion, reasons)
    row |= _papers_interval(x, y, seed)
    row["k_effective"] = effective_count(reads, used)
    row["reason"] = said(*dict.fromkeys(reasons))
    return row


def _ceiling(reads: Reads, items: pd.DataFrame) -> dict[str, Any]:
    """√reliability of the mean of the single ratings of the judged items.

    ICC(C, k) where all have as many: what a rater adds to all of them does not matter to r. With
    raters who differ from item to item it estimates the same as ICC(1, k), which serves for ratings
    of unequal number.
    """
    if "human_ratings" not in items:
        return {"ceiling": np.nan, "ceiling_reason": "items have no single ratings"}
    ratings = [r for r in ratings_of(reads, items, "human_ratings") if len(r) > 1]
    if len(ratings) < 2:
        return {"ceiling": np.nan, "ceiling_reason": "fewer than two items have several ratings"}
    count = np.array([len(r) for r in ratings])
    mean = np.array([r.mean() for r in ratings])
    within = sum(((r - m) ** 2).sum() for r, m in zip(ratings, mean, strict=True))
    freedom = count.sum() - len(ratings)
    grand = (count * mean).sum() / count.sum()
    between = (count * (mean - grand) ** 2).sum() / (len(ratings) - 1)
    if (count == count[0]).all():
        rater = np.stack(ratings).mean(axis=0)
        within -= len(ratings) * ((rater - grand) ** 2).sum()
        freedom -= count[0] - 1
    if between <= 0:
        return {"ceiling": np.nan, "ceiling_reason": "all items are rated alike"}
    reliability = 1 - within / freedom / between
    return {"ceiling": float(np.sqrt(max(reliability, 0.0))), "ceiling_reason": ""}


def ratings_of(reads: Reads, items: pd.DataFrame, column: str) -> list[FloatArray]:
    """Return the single ratings of each judged item, from tuples or, in a CSV, from their text."""
    return [_numbers(r) for r in matched(reads.items, items, column)]


def _numbers(ratings: Any) -> FloatArray:
    parts = ratings
    if isinstance(ratings, str):
        bare = re.sub(r"np\.\w+|[()\[\]]", " ", ratings)
        parts = [part for part in re.split(r"[\s,;|]+", bare) if part]
    elif not isinstance(ratings, tuple | list | np.ndarray):
        return np.empty(0)
    try:
        numbers = np.array(parts, dtype=np.float64)
    except ValueError:
        raise ValueError(
            f"the ratings {ratings!r} are not all numbers; use tuples, or text such as '3, 4, 4'"
        ) from None
    return np.asarray(numbers[~np.isnan(numbers)])


def effective_count(reads: Reads, used: np.ndarray[Any, Any]) -> float:
    """Mean number of parsed reads per item that do not copy another one."""
    own = (reads.parsed & ~echoes(reads))[used]
    return float(own.sum(axis=1).mean()) if len(own) else float("nan")


def _pooled(
    x: FloatArray, y: FloatArray, cluster: IntArray, reasons: list[str]
) -> dict[str, float]:
    r, of_r = jackknife(moments(x, y), cluster, correlation, fisher_jackknife_t)
    rho, of_rho = float(spearman(x, y)), UNDEFINED
    several = len(np.unique(cluster)) > 1
    if len(x) == 0:
        reasons.append("no item has both a score and a human rating")
    elif np.isnan(r):
        reasons.append(_why_undefined(x, y))
    else:
        of_rho = fisher_jackknife_t(rho, leave_out_spearman(x, y, cluster))
        if several and np.isnan(of_r[0]):
            reasons.append(_why_no_interval(r))
        elif several and np.isnan(of_rho[2]):
            reasons.append("rho: without an interval or a p, for so few clusters")
        reasons.append(few_clusters(cluster, scores=(x, y)))
    return named("r", r, of_r, p=False) | {"p": of_r[2]} | named("rho", rho, of_rho)


def spearman(x: FloatArray, y: FloatArray) -> FloatArray:
    """Spearman's ρ with mid-ranks; NaN where a side is constant."""
    return correlation(moments(stats.rankdata(x), stats.rankdata(y)).sum(axis=0))


def _macro(
    x: FloatArray, y: FloatArray, cluster: IntArray, criterion: IntArray, reasons: list[str]
) -> dict[str, float]:
    """Means over criteria of the correlation within each."""
    if not len(x):
        return named("r_macro", np.nan, UNDEFINED) | {"rho_macro": np.nan}
    parts = per_criterion(x, y, criterion)
    r, interval = jackknife(parts, cluster, mean_correlation, fisher_jackknife_t)
    if np.isnan(r):
        reasons.append("r_macro: in some criterion a side is constant")
    rhos = [spearman(x[criterion == c], y[criterion == c]) for c in np.unique(criterion)]
    return named("r_macro", r, interval) | {"rho_macro": float(np.mean(rhos))}


def per_criterion(x: FloatArray, y: FloatArray, criterion: IntArray) -> FloatArray:
    """Moments of each item in its criterion's column: shape (items, criteria, 6)."""
    found = np.unique(criterion)
    parts = np.zeros((len(x), len(found), 6))
    for column, c in enumerate(found):
        own = criterion == c
        parts[own, column] = moments(x[own], y[own])
    return parts


def mean_correlation(sums: FloatArray) -> FloatArray:
    """Mean over criteria of r, from summed moments (…, criteria, 6)."""
    return np.asarray(correlation(sums).mean(axis=-1))


def _papers_interval(x: FloatArray, y: FloatArray, seed: int) -> dict[str, float]:
    draws = np.empty(0)
    if len(x) > 1:
        draws = resampled(moments(x, y), PAPER_RESAMPLES, seed, correlation)
    low, high = percentile_interval(draws)
    return {"r_paper_low": low, "r_paper_high": high, "n_undefined": int(np.isnan(draws).sum())}


def _why_undefined(x: FloatArray, y: FloatArray) -> str:
    if len(x) == 1:
        return "one item: a correlation needs at least three"
    sides = [name for name, v in (("scores", x), ("human ratings", y)) if np.ptp(v) == 0]
    return f"all {' and '.join(sides)} are equal"


def _why_no_interval(r: float) -> str:
    if abs(r) == 1:
        return "|r| = 1 has no interval"
    return "r is undefined without some cluster, so the jackknife has no interval"
