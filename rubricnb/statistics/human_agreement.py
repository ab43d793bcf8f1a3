"""How well do scores agree with people's, and one strategy's better than others'?"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pandas as pd

from rubricnb.core.estimates import intervals as infer
from rubricnb.core.estimates import reads as arrays
from rubricnb.core.estimates.intervals import Estimate
from rubricnb.core.estimates.losses import (
    absent,
    lost_reads,
    lost_scores,
    no_equivalence,
    read_counts,
    reads_lost,
)
from rubricnb.core.estimates.reads import By, Reads, Value
from rubricnb.core.estimates.reasons import Reason, Reasons, because, join
from rubricnb.core.estimates.sides import compared, only, shared_items
from rubricnb.core.frames import require
from rubricnb.core.support.types import Ends, FloatArray, IntArray, Mask, Row
from rubricnb.statistics.ranks import leave_out_spearman, spearman

PAPER_RESAMPLES, PAPER_PAIRED_RESAMPLES = 1_000, 2_000


def agreement(
    judgments: pd.DataFrame,
    items: pd.DataFrame,
    by: By = None,
    value: Value = "score",
) -> pd.DataFrame:
    """Correlate a judge's mean score per item with the mean human rating.

    Parameters
    ----------
    judgments
        Judgments; an item's score is the mean of its parsed reads.
    items
        Items with the column ``human``, matched by item_id and, where both frames have
        them, dataset and criterion (Setting 2: text_id and criterion).
    by
        Columns to group by; by default judge, dataset, design and every condition
        column present.
    value
        ``score`` or ``expected_score``.

    Returns
    -------
    DataFrame
        One row a group: its columns, and

        * ``n_items`` (with a score and a rating), ``n_clusters, n_reads, n_criteria``;
        * ``r`` (Pearson, pooled over criteria) with ``r_low, r_high`` and ``p``
          (against 0); ``rho`` (Spearman) with ``rho_low, rho_high, rho_p``: 95 %
          cluster jackknife-t on Fisher's z scale;
        * ``r_macro``: mean over criteria, with ``_low, _high, _p``;
        * ``r_paper_low, r_paper_high``: the papers' interval, an item percentile
          bootstrap (1,000 resamples; those with a constant side are dropped). It is too
          narrow where items share a text: 72–90 % instead of 95 %;
        * ``k_effective``: reads per item, copies of an answer left out and repeats of
          an ordering that all agree counted once: they add nothing to the item's mean;
        * ``ceiling``: √reliability of the mean human rating, the r of a judge that knew
          every text's true quality, from the items' single ``human_ratings``: ICC(C, k)
          if all have as many, else ICC(1, k); ``ceiling_reason``, why there is none;
        * ``reason``: what could not be computed and why.

    Raises
    ------
    ValueError
        `items` lack ``human``, hold a judged item twice, or none of them was judged.

    Notes
    -----
    arXiv:2602.02219v2, §4.4. r pooled over criteria mixes agreement within criteria
    with the criteria's different means; v2's Setting 2 uses the macro mean.

    Examples
    --------
    >>> import pandas as pd
    >>> names = list("abcdefgh")
    >>> items = pd.DataFrame({"item_id": names, "human": [1.0, 1, 2, 2, 3, 3, 4, 5]})
    >>> judgments = pd.DataFrame({
    ...     "item_id": names, "cluster_id": names, "design": "fixed",
    ...     "ordering_index": 1, "ordering": "1-2-3-4-5",
    ...     "score": [2, 1, 2, 3, 3, 4, 4, 5]})
    >>> agreement(judgments, items)[["n_items", "r", "r_low", "r_high"]].round(2)
       n_items     r  r_low  r_high
    0        8  0.93   0.62    0.99
    """

    return linear_agreement(judgments, items, by, value, linear=False)


def linear_agreement(
    judgments: pd.DataFrame,
    items: pd.DataFrame,
    by: By = None,
    value: Value = "score",
    linear: bool = True,
) -> pd.DataFrame:
    """The same; `linear`: without ρ and the papers' interval, which take longest."""

    def row(reads: Reads, human: FloatArray) -> Row:
        return _agreement(reads, human, linear) | _ceiling(reads, items)

    return row_with_people(judgments, items, by, value, row)


def row_with_people(
    judgments: pd.DataFrame,
    items: pd.DataFrame,
    by: By,
    value: Value,
    row: Callable[[Reads, FloatArray], Any],
    what: str = "items",
) -> pd.DataFrame:
    """Append to each group's columns the `row` of its reads and human ratings."""
    arrays.refuse_ambiguous(judgments, items, what)
    return arrays.row_per_group(
        judgments, by, value, lambda reads: row(reads, human_of(reads, items, what))
    )


def human_of(reads: Reads, items: pd.DataFrame, what: str = "items") -> FloatArray:
    """Return the human rating of each judged item; NaN where there is none."""
    require(items, ["item_id", "human"], what)
    human = arrays.floats(arrays.matched(reads.items, items, "human"))
    if np.isinf(human).any():
        raise ValueError(
            f"{what} hold an infinite human rating; leave it empty or drop its row"
        )
    return human


def rated(reads: Reads, human: FloatArray) -> tuple[Mask, FloatArray, FloatArray]:
    """Which items have a score and a rating, and these scores and ratings."""
    score = arrays.item_means(reads.value)
    used = ~np.isnan(score) & ~np.isnan(human)
    return used, score[used], human[used]


def unscored(reads: Reads, human: FloatArray) -> Reasons:
    """Return how many rated items, or reads, have no score, and their ratings."""
    scored, rated = reads.parsed.any(axis=1), ~np.isnan(human)
    lost, is_both = rated & ~scored, rated & scored
    why: Reasons = ()
    if lost.any():
        means = [infer.mean_of(human[of]) for of in (lost, is_both)]
        why += (
            Reason(
                "unscored",
                lost=int(lost.sum()),
                rated=int(rated.sum()),
                lost_mean=means[0],
                scored_mean=means[1],
            ),
        )
    counts = (count[is_both] for count in read_counts(reads))
    return why + reads_lost("unscored_reads", counts, human[is_both])


def criterion_of(reads: Reads) -> IntArray:
    """Code of each item's criterion; one code where judgments name none."""
    if "criterion" not in reads.items:
        return np.zeros(len(reads.value), dtype=np.int64)
    return np.asarray(pd.factorize(reads.items["criterion"])[0], dtype=np.int64)


def _agreement(reads: Reads, human: FloatArray, linear: bool) -> Row:
    used, x, y = rated(reads, human)
    cluster, criterion = reads.cluster[used], criterion_of(reads)[used]
    ways = x[None], y, cluster, criterion, infer.fisher_jackknife_t
    found = correlations(*ways, linear)
    row: Row = infer.counted(used, reads.cluster)
    row |= {
        "n_reads": int(reads.parsed[used].sum()),
        "n_criteria": len(np.unique(criterion)),
    }
    row |= found["r"].named("r", *infer.UNTESTED) | {"p": found["r"].p}
    for name in [*found][1:]:
        row |= found[name].named(name)
    if not linear:
        paper = (
            papers_interval(x[None], y, PAPER_RESAMPLES, 0)
            if len(y) > 1
            else (np.nan, np.nan)
        )
        row |= dict(zip(("r_paper_low", "r_paper_high"), paper, strict=True))
    row["k_effective"] = infer.mean_of(
        (reads.parsed & ~arrays.echoes(reads))[used].sum(axis=1)
    )
    return row | because(*_why_unsure(x, y, cluster, row), unscored(reads, human))


def correlations(
    x: FloatArray,
    y: FloatArray,
    cluster: IntArray,
    criterion: IntArray,
    interval: Callable[[float, FloatArray], Estimate],
    linear: bool = False,
) -> dict[str, Estimate]:
    """r, ρ and the mean of r over criteria, with intervals; `x`: (sides, items).

    Of two sides: the first one's minus the second one's. `linear`: without ρ.
    """
    found = {"r": Estimate()} if linear else {"r": Estimate(), "rho": Estimate()}
    found["r_macro"] = Estimate()
    if not len(y):
        return found
    within = per_criterion(x, y, criterion, cluster)
    found["r"] = infer.jackknife(_pooled(x, y), cluster, pooled_correlation, interval)
    found["r_macro"] = infer.jackknife(
        within, np.arange(len(within)), macro_correlation, interval
    )
    if not linear:
        rho = float(_difference(np.stack([spearman(side, y) for side in x])))
        left = np.stack([leave_out_spearman(side, y, cluster) for side in x], axis=-1)
        found["rho"] = interval(rho, _difference(left))
    return found


def _difference(r: FloatArray) -> FloatArray:
    """Along the last axis, the only side or the first minus the second."""
    return r[..., 0] if r.shape[-1] == 1 else r[..., 0] - r[..., 1]


def _pooled(x: FloatArray, y: FloatArray) -> FloatArray:
    """Moments of the scores `x` (sides, items): shape (items, sides, 6)."""
    return np.stack([infer.moments(side, y) for side in x], axis=1)


def per_criterion(
    x: FloatArray, y: FloatArray, criterion: IntArray, unit: IntArray
) -> FloatArray:
    """The same within a criterion, summed over units: (units, sides, criteria, 6)."""
    criteria, (number, units) = np.unique(criterion), pd.factorize(unit, sort=True)
    parts = np.zeros((len(units), len(x), len(criteria), 6))
    for column, c in enumerate(criteria):
        own = criterion == c
        np.add.at(parts[:, :, column], number[own], _pooled(x[:, own], y[own]))
    return parts


def pooled_correlation(sums: FloatArray) -> FloatArray:
    """r, or its difference, from summed moments (…, sides, 6)."""
    return _difference(infer.correlation(sums))


def macro_correlation(sums: FloatArray) -> FloatArray:
    """Mean over criteria of r, or its difference, from summed moments."""
    return _difference(infer.correlation(sums).mean(axis=-1))


def papers_interval(x: FloatArray, y: FloatArray, resamples: int, seed: int) -> Ends:
    """The papers' interval of r, or Δr, of `x` (sides, items): items are drawn.

    It is the 95 % percentile interval of the resamples in which the statistic is
    defined.
    """
    return _bootstrap(_pooled(x, y), pooled_correlation, resamples, seed)


def _bootstrap(
    sums: FloatArray,
    statistic: Callable[[FloatArray], FloatArray],
    resamples: int,
    seed: int,
) -> Ends:
    """Draw rows of `sums`, independently of their order."""
    draws = infer.resampled(sums[infer.content_order(sums)], resamples, seed, statistic)
    return infer.percentile_interval(draws)


def _why_unsure(
    x: FloatArray, y: FloatArray, cluster: IntArray, row: Row
) -> Iterator[Reason | Reasons]:
    several = row["n_clusters"] > 1
    if len(x) == 0:
        yield Reason("unrated")
        return
    if len(x) == 1:
        yield Reason("one_item")
    elif np.isnan(row["r"]):
        sides = [
            name for name, v in (("scores", x), ("human ratings", y)) if np.ptp(v) == 0
        ]
        yield Reason("equal_sides", sides=" and ".join(sides))
    else:
        if several and np.isnan(row["r_low"]):
            yield why_no_interval(x[None], y, cluster)
        elif several and np.isnan(row.get("rho_p", 0.0)):
            yield Reason("rho.untested")
        yield infer.few_clusters(cluster, scores=(x, y))
    if np.isnan(row["r_macro"]):
        yield Reason("r_macro.constant")


def why_no_interval(x: FloatArray, y: FloatArray, cluster: IntArray) -> Reason:
    """Say why the jackknife gives no interval of r, or Δr, of `x` (sides, items)."""
    sums = arrays.by_cluster(_pooled(x, y), cluster)
    left = infer.correlation(sums.sum(axis=0) - sums)
    if len(x) == 1 and abs(infer.correlation(sums.sum(axis=0)))[0] >= 1 - 1e-9:
        return Reason("no_interval.perfect")
    if (lacking := np.isnan(left).any(axis=1).sum()) > 0:
        return Reason("no_interval.undefined", lacking=int(lacking), n=len(left))
    if len(x) == 1 and (np.abs(left) >= 1 - 1e-9).any():
        return Reason("no_interval.perfect_without")
    return Reason("no_interval.r_alike")


def _ceiling(reads: Reads, items: pd.DataFrame) -> Row:
    """√reliability of the mean of the single ratings of the judged items.

    ICC(C, k) where all have as many: what a rater adds to all of them does not matter
    to r. With raters who differ from item to item it estimates the same as ICC(1, k),
    which serves for ratings of unequal number.
    """
    if "human_ratings" not in items:
        return {"ceiling": np.nan, "ceiling_reason": join(Reason("ceiling.no_ratings"))}
    ratings = ratings_of(reads, items)
    ratings = ratings[(~np.isnan(ratings)).sum(axis=1) > 1]
    n, count, mean = (
        len(ratings),
        (~np.isnan(ratings)).sum(axis=1),
        arrays.item_means(ratings),
    )
    if n < 2:
        few = Reason("ceiling.single_ratings")
        return {"ceiling": np.nan, "ceiling_reason": join(few)}
    grand = np.average(mean, weights=count)
    between = (count * (mean - grand) ** 2).sum() / (n - 1)
    within, freedom = np.nansum((ratings - mean[:, None]) ** 2), count.sum() - n
    if (count == count[0]).all():
        rater = ratings[~np.isnan(ratings)].reshape(n, -1).mean(axis=0)
        within -= n * ((rater - grand) ** 2).sum()
        freedom -= count[0] - 1
    if between <= 0:
        return {"ceiling": np.nan, "ceiling_reason": join(Reason("ceiling.equal"))}
    reliability = 1 - within / freedom / between
    return {"ceiling": float(np.sqrt(max(reliability, 0.0))), "ceiling_reason": ""}


def ratings_of(reads: Reads, items: pd.DataFrame) -> FloatArray:
    """Single ratings of each judged item, from tuples or, in a CSV, from their text.

    Shape (items, raters): a rater keeps the place; NaN where there is no rating.
    """
    listed = [
        numbers_of(ratings)
        for ratings in arrays.matched(reads.items, items, "human_ratings")
    ]
    out = np.full((len(listed), max(map(len, listed), default=0)), np.nan)
    for row, ratings in zip(out, listed, strict=True):
        row[: len(ratings)] = ratings
    return out


def numbers_of(ratings: Any) -> FloatArray:
    """Return an item's single ratings as numbers: a tuple, or its text."""
    parts = ratings
    if isinstance(ratings, str):
        bare = re.sub(r"np\.\w+|[()\[\]]", " ", ratings)
        parts = [part for part in re.split(r"[\s,;|]+", bare) if part]
    elif not isinstance(ratings, tuple | list | np.ndarray):
        return np.empty(0)
    try:
        return np.array(parts, dtype=np.float64)
    except ValueError:
        raise ValueError(
            f"the ratings {ratings!r} are not all numbers; use tuples, or text such as "
            "'3, 4, 4'"
        ) from None


def strategy_contrast(
    judgments: pd.DataFrame,
    items: pd.DataFrame,
    a: Any = "balanced",
    b: Any = "fixed",
    by: By = None,
    value: Value = "score",
) -> pd.DataFrame:
    """Compare the agreement with people of two strategies on the same items.

    Parameters
    ----------
    judgments, items, value
        As in `agreement`.
    a, b
        Two designs, or two values of another condition column (say temperature 0.0 and
        1.0). A design may be narrowed: ``balanced/forward``, ``/reverse``,
        ``placebo/half-1``, ``/half-2``.
    by
        Columns to group by; by default every condition column but the compared one.

    Returns
    -------
    DataFrame
        One row a group: its columns, ``a, b, n_items, n_clusters``, and

        * ``r_a, r_b, delta_r`` with 95 % ``low, high`` and ``p``: cluster jackknife-t;
          ``p_adjusted`` (Benjamini–Hochberg over the returned rows);
          ``standard_error``; ``mde`` (what 80 % power detects: 4.3 standard errors at 4
          clusters, 3.0 at 20, by noncentral t); ``p_equivalent`` (TOST, ±0.02);
        * ``paper_low, paper_high``: the paper's paired item percentile bootstrap (2,000
          resamples). It is too narrow where items share a text;
        * ``delta_rho`` and ``delta_r_macro`` (mean over criteria) with ``_low, _high,
          _p``; in Setting 2 also ``paper_macro_low, paper_macro_high``: the paper's
          paired percentile bootstrap of the latter over texts (2,000 resamples), too
          narrow where texts share a cluster;
        * ``r_single_a, r_single_b``: r of one read, averaged over the strategy's reads,
          and ``delta_single`` with ``_low, _high, _p``: like for like, without
          averaging;
        * ``k_effective_a, k_effective_b``: variance of one read over variance of the
          mean, within items. Ten copies of a greedy answer are one read;
        * ``reason``.

    Raises
    ------
    ValueError
        No column holds both `a` and `b`, or no judged item is among `items`.

    Notes
    -----
    arXiv:2602.02219v2, §4.4, §5.2, §5.5, Tables 3 and 6. ``k_effective`` takes the
    variance of one read from the side that shows several orderings, since repeats of
    one ordering cannot show it. Near 1 it is firm; a value near the number of reads
    needs some hundred items.

    Examples
    --------
    >>> import pandas as pd
    >>> judgments = pd.DataFrame({
    ...     "item_id": list("abcdefab" "cdef"), "cluster_id": list("abcdefab" "cdef"),
    ...     "design": ["balanced"] * 6 + ["fixed"] * 6, "ordering_index": 1,
    ...     "ordering": "1-2-3", "score": [1, 1, 2, 2, 3, 3, 1, 3, 1, 3, 2, 3]})
    >>> items = pd.DataFrame({"item_id": list("abcdef"), "human": [1.0, 1, 2, 2, 3, 4]})
    >>> contrast = strategy_contrast(judgments, items)
    >>> contrast[["n_items", "r_a", "r_b", "delta_r"]].round(2)
       n_items   r_a   r_b  delta_r
    0        6  0.96  0.32     0.64
    """
    arrays.refuse_ambiguous(judgments, items)

    def row(side_a: Reads, side_b: Reads) -> Row:
        return _contrast(side_a, side_b, items)

    result = compared(judgments, a, b, by, value, row)
    return infer.adjust(result, "p") if "p" in result else result


def _contrast(a: Reads, b: Reads, items: pd.DataFrame) -> Row:
    rows_a, rows_b = shared_items(a, b)
    human = human_of(a, items)[rows_a]
    value_a, value_b = a.value[rows_a], b.value[rows_b]
    x = np.stack([arrays.item_means(value_a), arrays.item_means(value_b)])
    used = ~np.isnan(x).any(axis=0) & ~np.isnan(human)
    lost = _lost_to_both(x, human)
    x, y = x[:, used], human[used]
    cluster, criterion = a.cluster[rows_a][used], criterion_of(a)[rows_a][used]
    row: Row = infer.counted(used, a.cluster[rows_a])
    if len(y) == 0:
        return row | because(Reason("unshared"), lost)
    of_a, of_b = (only(s, ~np.isnan(human_of(s, items))[:, None]) for s in (a, b))
    lost += lost_reads(of_a, of_b) + absent(of_a, of_b, what="rated items")
    reasons: list[Reason] = []
    found = correlations(x, y, cluster, criterion, infer.jackknife_t)
    delta, margin = found["r"], infer.MARGINS["delta_r"]
    r = infer.correlation(arrays.by_cluster(_pooled(x, y), cluster).sum(axis=0))
    row |= {"r_a": float(r[0]), "r_b": float(r[1]), "delta_r": delta.value}
    row |= delta.columns() | {"mde": infer.detectable(delta.se, delta.df)}
    row["p_equivalent"] = infer.equivalence(delta.value, delta.se, delta.df + 1, margin)
    if np.isnan(delta.value):
        reasons.append(Reason("r_undefined"))
    elif row["n_clusters"] > 1 and np.isnan(delta.p):
        same = (x[0] == x[1]).all()
        reasons.append(
            Reason("same_scores") if same else why_no_interval(x, y, cluster)
        )
    else:
        reasons += infer.few_clusters(cluster, scores=(*x, y))
    paper = papers_interval(x, y, PAPER_PAIRED_RESAMPLES, 0)
    row |= dict(zip(("paper_low", "paper_high"), paper, strict=True))
    row |= found["rho"].named("delta_rho") | found["r_macro"].named("delta_r_macro")
    if a.criteria is not None:
        text = arrays.combine(
            a.items[c].iloc[rows_a][used]
            for c in ("dataset", "item_id")
            if c in a.items
        )
        # The paper (v2, Table 6) draws texts once for all correlations.
        sums = per_criterion(x, y, criterion, text)
        ends = _bootstrap(sums, macro_correlation, PAPER_PAIRED_RESAMPLES, 0)
        row |= dict(zip(("paper_macro_low", "paper_macro_high"), ends, strict=True))
    row |= _single_reads(value_a[used], value_b[used], y, cluster)
    row |= effective_reads(a, b, reasons)
    no_verdict = no_equivalence(lost)
    if no_verdict:
        row["p_equivalent"] = np.nan
    return row | because(reasons, lost, no_verdict)


def _lost_to_both(x: FloatArray, human: FloatArray) -> Reasons:
    """Return what a contrast loses: rated items of one side only, and each side's r.

    `x`: (sides, items).
    """
    rated_items = ~np.isnan(human)
    x, y = x[:, rated_items], human[rated_items]
    why = lost_scores(x[0], x[1], what="rated items")
    if not why:
        return ()

    def r_of(side: FloatArray, kept: Any) -> float:
        return float(infer.correlation(infer.moments(side[kept], y[kept]).sum(axis=0)))

    scored = ~np.isnan(x)
    r = [r_of(side, kept) for side, kept in zip(x, scored, strict=True)]
    both = [r_of(side, scored.all(axis=0)) for side in x]
    delta = r[0] - r[1]
    turned = (
        (Reason("r_turned", delta=delta),) if delta * (both[0] - both[1]) < 0 else ()
    )
    return (*why, Reason("r_of_all", a=r[0], b=r[1]), *turned)


def _single_reads(
    a: FloatArray, b: FloatArray, y: FloatArray, cluster: IntArray
) -> dict[str, float]:
    """r of single reads, averaged over the reads of each side."""
    parts = np.concatenate([read_moments(a, y), read_moments(b, y)], axis=1)

    def means(sums: FloatArray) -> FloatArray:
        sides = np.split(infer.correlation(sums), [a.shape[1]], axis=-1)
        return np.stack([arrays.item_means(side) for side in sides], axis=-1)

    single = dict(
        zip(("r_single_a", "r_single_b"), means(parts.sum(axis=0)), strict=True)
    )
    found = infer.jackknife(parts, cluster, lambda sums: _difference(means(sums)))
    return single | found.named("delta_single")


def read_moments(value: FloatArray, y: FloatArray) -> FloatArray:
    """Moments of each read with y: shape (items, reads, 6); 0: missing."""
    parsed = ~np.isnan(value)
    x = np.where(parsed, value - infer.mean_known(value), 0.0)
    y = np.where(parsed, (y - y.mean())[:, None], 0.0)
    return infer.summands(x, y, parsed.astype(float))


def effective_reads(a: Reads, b: Reads, reasons: list[Reason]) -> dict[str, float]:
    """Return the effective number of reads in each side's mean.

    A read varies within an item by σ²₁. Repeats of one ordering vary less among
    themselves, by w; what they have in common, σ²₁ − w, no averaging removes: K_eff =
    σ²₁ / (σ²₁ − w + w / K).
    """
    found = _noise(a), _noise(b)
    single = max((within for shows, within, _ in found if shows), default=np.nan)
    out = {}
    for name, (shows, within, k) in zip(
        ("k_effective_a", "k_effective_b"), found, strict=True
    ):
        shared = 0.0 if shows else max(single - within, 0.0)
        mean_variance = shared + (single if shows else within) / k
        out[name] = float(single / mean_variance) if mean_variance > 0 else np.nan
    if np.isnan(single):
        reasons.append(Reason("k_effective.one_ordering"))
    elif np.isnan(list(out.values())).any():
        reasons.append(Reason("k_effective.equal"))
    return out


def _noise(side: Reads) -> tuple[bool, float, float]:
    """Describe what varies within an item.

    Whether it is shown in several orderings; the mean variance (ddof 1) and the mean
    number of its distinct reads.
    """
    order = side.arrangement
    order = np.where(order < 0, order.max(axis=1, keepdims=True), order)
    own = np.where(arrays.copies(side), np.nan, side.value)
    count = (~np.isnan(own)).sum(axis=1)
    within = infer.mean_known(arrays.item_variance(own))
    return (
        bool((order != order[:, :1]).any()),
        float(np.nan_to_num(within)),
        infer.mean_of(count[count > 0]),
    )
