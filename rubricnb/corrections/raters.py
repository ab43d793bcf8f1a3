"""May a judge replace people? Alternative annotator test, bias, system rankings."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import scipy

from rubricnb.core.estimates import intervals as infer
from rubricnb.core.estimates import reads as arrays
from rubricnb.core.estimates.losses import absent, lost_reads, lost_scores
from rubricnb.core.estimates.reads import By, Reads, Value
from rubricnb.core.estimates.reasons import Reason, Reasons, because
from rubricnb.core.estimates.sides import shared_items
from rubricnb.core.frames import require
from rubricnb.core.support.counting import binned
from rubricnb.core.support.types import FloatArray, IntArray, Row
from rubricnb.statistics.human_agreement import (
    rated,
    ratings_of,
    row_with_people,
    unscored,
)
from rubricnb.statistics.ranking import kendall_tau, pair_signs

MIN_ITEMS = 30  # of an annotator, to be tested
FALSE_DISCOVERIES = 0.05
RESAMPLES = 2_000


def alternative_annotator(
    judgments: pd.DataFrame,
    items: pd.DataFrame,
    epsilon: float = 0.2,
    by: By = None,
    value: Value = "score",
) -> pd.DataFrame:
    """Test whether a judge agrees with the annotators at least as well as one of them.

    Each annotator is left out in turn: on every item, is the judge or the left-out
    annotator nearer to the remaining ones? A tie counts for both.

    Parameters
    ----------
    judgments
        Judgments; an item's score is the mean of its parsed reads.
    items
        Items with ``human_ratings``: tuples in which an annotator keeps the place (NaN
        where one did not rate).
    epsilon
        What the judge may be worse by, as a share of items, since it is cheaper: 0.2
        beside experts, 0.15 beside skilled annotators, 0.1 beside a crowd.
    by
        Columns to group by; by default judge, dataset, design and every condition
        column present.
    value
        ``score`` or ``expected_score``.

    Returns
    -------
    DataFrame
        One row a group: its columns, and

        * ``n_items, n_clusters, n_annotators`` (tested: with 30 items or more);
        * ``winning_rate``: share of the annotators for whom it is shown that the judge
          is worse by less than epsilon (one-sided t-test over items,
          Benjamini–Yekutieli at 5 %); ``passes``: whether that is half of them or more;
        * ``winning_rate_clusters, passes_clusters``: the same with t-tests over
          clusters, which hold when items share a text;
        * ``advantage``: share of items on which the judge is as near as the annotator
          or nearer, mean over annotators, ``advantage_low, _high``: 95 % cluster
          jackknife-t;
        * ``reason``.

    Raises
    ------
    ValueError
        `items` lack ``human_ratings``, or `epsilon` is not in [0, 1).

    Notes
    -----
    Calderon, Reichart & Dror (2025), arXiv:2501.10970. Nearness to several annotators
    is minus the root of the mean squared difference.

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> rng = np.random.default_rng(0)
    >>> truth = rng.integers(1, 6, 60)
    >>> names = [f"t{i}" for i in range(60)]
    >>> judgments = pd.DataFrame({
    ...     "item_id": names, "cluster_id": names, "design": "fixed",
    ...     "ordering_index": 1, "ordering": "1-2-3-4-5", "score": truth})
    >>> ratings = truth[:, None] + rng.integers(-1, 2, (60, 3))
    >>> items = pd.DataFrame({
    ...     "item_id": names, "human_ratings": [tuple(row) for row in ratings]})
    >>> found = alternative_annotator(judgments, items)
    >>> found[["n_annotators", "winning_rate", "passes"]]
       n_annotators  winning_rate  passes
    0             3           1.0    True
    """
    require(items, ["item_id", "human_ratings"], "items")
    if not 0 <= epsilon < 1:
        raise ValueError(
            f"epsilon is {epsilon}: give a share of items, from 0 to below 1"
        )
    arrays.refuse_ambiguous(judgments, items)
    return arrays.row_per_group(
        judgments,
        by,
        value,
        lambda reads: _alternative(reads, ratings_of(reads, items), epsilon),
    )


def _alternative(reads: Reads, ratings: FloatArray, epsilon: float) -> Row:
    several = (~np.isnan(ratings)).sum(axis=1) >= 2
    human = np.where(several, arrays.item_means(ratings), np.nan)
    used, score, _ = rated(reads, human)
    cluster = reads.cluster[used]
    judge, annotator = _wins(score, ratings[used])
    tested = (~np.isnan(judge)).sum(axis=0) >= MIN_ITEMS
    judge, annotator = judge[:, tested], annotator[:, tested]
    row: Row = infer.counted(used, reads.cluster) | {"n_annotators": int(tested.sum())}
    for suffix, of in (("", None), ("_clusters", cluster)):
        leads = (annotator - judge).T
        p = np.array([p_below_epsilon(lead, of, epsilon) for lead in leads])
        worse_by_less = (
            scipy.stats.false_discovery_control(p, method="by") <= FALSE_DISCOVERIES
        )
        row[f"winning_rate{suffix}"] = infer.mean_of(worse_by_less)
        row[f"passes{suffix}"] = bool(row[f"winning_rate{suffix}"] >= 0.5)
    wins = np.stack([np.nan_to_num(judge), ~np.isnan(judge)], axis=-1)
    row |= infer.jackknife(wins, cluster, _mean_share).named(
        "advantage", *infer.UNTESTED
    )
    doubts = infer.few_clusters(cluster) + infer.alike(row)
    if not tested.any():
        doubts = (Reason("few_annotated", least=MIN_ITEMS),)
    return row | because(doubts, unscored(reads, human))


def _wins(score: FloatArray, ratings: FloatArray) -> tuple[FloatArray, FloatArray]:
    """For each item and left-out annotator: is the judge, or the annotator, as near?"""
    judge, annotator = np.full(ratings.shape, np.nan), np.full(ratings.shape, np.nan)
    for j in range(ratings.shape[1]):
        others = np.delete(ratings, j, axis=1)
        own = ~np.isnan(ratings[:, j]) & (~np.isnan(others)).any(axis=1)
        both = (score[own, None], ratings[own, j, None])
        far = [np.nanmean((x - others[own]) ** 2, axis=1) for x in both]
        judge[own, j], annotator[own, j] = far[0] <= far[1], far[1] <= far[0]
    return judge, annotator


def p_below_epsilon(d: FloatArray, cluster: IntArray | None, epsilon: float) -> float:
    """One-sided p of "the mean is epsilon or more", by t over clusters or items.

    Unknown values are left out.
    Where all clusters are alike: the largest probability of that if the mean is
    epsilon.
    """
    known = ~np.isnan(d)
    own = (np.arange(len(d)) if cluster is None else cluster)[known]
    found = infer.mean_t(d[known], own)
    mean, n = found.value, len(np.unique(own))
    if n < 2:
        return 1.0
    # the mean may be epsilon, if few clusters differ and none was drawn
    if found.se == 0:
        return ((1 - epsilon) / (1 - mean)) ** n if mean < epsilon else 1.0
    df = n - 1 if cluster is None else found.df
    return float(scipy.special.stdtr(df, (mean - epsilon) / found.se))


def _mean_share(sums: FloatArray) -> FloatArray:
    """Mean over annotators of the share won, from (…, annotators, 2) won and asked."""
    won, asked = np.moveaxis(sums, -1, 0)
    share = arrays.averages(won, asked)
    return share.sum(axis=-1) / (share.shape[-1] or np.nan)


def judge_bias(
    judgments: pd.DataFrame, items: pd.DataFrame, by: By = None, value: Value = "score"
) -> pd.DataFrame:
    """Measure how far a judge's scores lie above people's, and stretch the scale.

    Parameters
    ----------
    judgments
        Judgments; an item's score is the mean of its parsed reads.
    items
        Items with ``human``.
    by
        Columns to group by, such as ``["judge", "criterion"]``; by default judge,
        dataset, design and every condition column present.
    value
        ``score`` or ``expected_score``.

    Returns
    -------
    DataFrame
        One row a group: its columns, ``n_items, n_clusters``; ``bias, low, high, p``
        (judge minus people, in points; 95 % cluster jackknife-t); ``slope, slope_low,
        slope_high`` (of the judge's score on the mean rating, same interval; noise in
        the ratings flattens it); ``apart_low, apart_high`` (Bland–Altman limits: 95 %
        of the differences lie between them if they are normal); ``reason``.

    Raises
    ------
    ValueError
        `items` lack ``human``, or none of them was judged.

    Notes
    -----
    Bland & Altman (1986), Lancet 327, 307–310.

    Examples
    --------
    >>> import pandas as pd
    >>> names = list("abcdef")
    >>> judgments = pd.DataFrame({
    ...     "item_id": names, "cluster_id": names, "design": "fixed",
    ...     "ordering_index": 1, "ordering": "1-2-3-4-5", "score": [2, 3, 3, 5, 5, 5]})
    >>> items = pd.DataFrame({"item_id": names, "human": [1, 2, 3, 4, 4, 5]})
    >>> judge_bias(judgments, items)[["bias", "low", "high", "slope"]].round(2)
       bias   low  high  slope
    0  0.67  0.12  1.21   0.85
    """
    return row_with_people(judgments, items, by, value, judge_bias_row)


def judge_bias_row(reads: Reads, human: FloatArray) -> Row:
    """Compare the judge's scores with people's: the columns of `judge_bias`.

    `human`: a rating per item, NaN where there is none.
    """
    used, score, human_used = rated(reads, human)
    cluster, apart = reads.cluster[used], score - human_used
    row: Row = infer.counted(used, reads.cluster)
    several = row["n_clusters"] > 1
    varies = several and np.ptp(apart) > 0
    # A cluster that holds half of the items draws the mean near itself;
    # the jackknife sees it.
    one = np.stack([apart, np.ones_like(apart)], axis=-1)[:, None]
    found = infer.jackknife(one, cluster, _mean_share)
    row |= {"bias": found.value} | (found if varies else infer.Estimate()).columns()
    parts = infer.moments(human_used, score)
    row |= infer.jackknife(parts, cluster, _slope).named("slope", *infer.UNTESTED)
    reach = 1.96 * apart.std(ddof=1) if varies else np.nan
    row |= {"apart_low": row["bias"] - reach, "apart_high": row["bias"] + reach}
    if not used.any():
        return row | because(Reason("unrated"))
    no_interval = None
    if several and np.isnan(row["low"]):
        no_interval = (
            Reason("no_interval.bias") if varies else Reason("equal_differences")
        )
    flat = np.isnan(row["slope"])
    slope = Reason("slope.equal_ratings") if flat else infer.alike(row)
    few, lost = infer.few_clusters(cluster), unscored(reads, human)
    return row | because(few, no_interval, slope, lost)


def _slope(sums: FloatArray) -> FloatArray:
    """Slope of y on x from summed moments; NaN where x is constant."""
    a, b, aa, _, ab = infer.means_of(sums)
    spread = aa - a * a
    defined = spread > 1e-12
    return np.where(defined, (ab - a * b) / np.where(defined, spread, 1), np.nan)


def system_agreement(
    judgments: pd.DataFrame, items: pd.DataFrame, by: By = None, value: Value = "score"
) -> pd.DataFrame:
    """Correlate the systems' ranking by the judge's means with that by people's.

    Parameters
    ----------
    judgments
        Judgments with ``candidate``; an item's score is the mean of its parsed reads.
    items
        Items with ``human``. Only items with both count, on both sides.
    by, value
        As in `judge_bias`.

    Returns
    -------
    DataFrame
        One row a group: its columns, ``n_systems, n_items, n_clusters``; ``tau``
        (Kendall's τ-b of the systems' means) with ``tau_low, tau_high`` (95 %
        percentile interval of 2,000 resamples of clusters: how the ranking of these
        systems depends on the prompts); ``reason``.

    Raises
    ------
    ValueError
        Judgments lack ``candidate`` or `items` lack ``human``.

    Notes
    -----
    Both means are noisy, so ``tau`` is lower than the τ of endlessly many prompts, and
    a resample is noisier still. In simulations with 40 prompts the interval covers that
    τ in 97 % of the studies for five systems that lie well apart, in 61 % for twenty of
    the same spread, and in 10 % for twenty that lie closer than their noise (chapter
    06). Where resampling lowers τ by more than half of its standard deviation,
    ``reason`` says so: read ``tau_high`` as too low. All pairs of systems are compared:
    400 systems take some seconds, 800 about half a minute.

    Examples
    --------
    >>> import pandas as pd
    >>> names = [f"{s}{p}" for p in "123" for s in "abc"]
    >>> judgments = pd.DataFrame({
    ...     "item_id": names, "cluster_id": [n[1] for n in names], "design": "fixed",
    ...     "candidate": [n[0] for n in names], "ordering_index": 1,
    ...     "ordering": "1-2-3-4-5", "score": [1, 2, 4, 2, 1, 5, 1, 3, 4]})
    >>> items = pd.DataFrame({"item_id": names, "human": [1, 2, 3, 1, 3, 5, 2, 2, 4]})
    >>> system_agreement(judgments, items)[["n_systems", "tau"]]
       n_systems  tau
    0          3  1.0
    """
    require(judgments, ["candidate"], "judgments")
    return row_with_people(judgments, items, by, value, system_agreement_row)


def system_agreement_row(reads: Reads, human: FloatArray) -> Row:
    """Compare the judge's and people's rankings of systems, which are the candidates.

    `human`: a rating per item, NaN where there is none. Returns the columns of
    `system_agreement`: Kendall's τ and its bootstrap interval over clusters.
    """
    named = reads.items["candidate"].notna().to_numpy()
    used, *sides = rated(reads, np.where(named, human, np.nan))
    system, cluster = (
        pd.factorize(reads.items["candidate"][used])[0],
        reads.cluster[used],
    )
    n = len(np.unique(system))
    row: Row = {"n_systems": n, **infer.counted(used, reads.cluster)}
    row |= dict.fromkeys(("tau", "tau_low", "tau_high"), np.nan)
    if n < 3:
        return row | because(Reason("few_systems", n=n))
    cell = pd.factorize(cluster, sort=True)[0] * n + system
    size = row["n_clusters"] * n
    sums = [binned(cell, weight, size) for weight in (None, *sides)]
    cells = np.stack(sums, axis=-1, dtype=np.float64).reshape(-1, n, 3)
    row["tau"] = float(_tau(cells.sum(axis=0)))
    if np.isnan(row["tau"]):
        return row | because(Reason("equal_systems"))
    doubts: Reasons = ()
    if row["n_clusters"] > 1:
        draws = infer.resampled(cells, RESAMPLES, 0, _tau)
        row["tau_low"], row["tau_high"] = infer.percentile_interval(draws)
        doubts = unscored(reads, human)
        lower = row["tau"] - float(np.nanmean(draws))
        if lower > float(np.nanstd(draws)) / 2:
            doubts += (Reason("tau.low", lower=lower),)
    same = row["tau_low"] == row["tau_high"]
    no_spread = Reason("no_interval.resamples") if same else None
    if same:
        row |= dict.fromkeys(("tau_low", "tau_high"), np.nan)
    return row | because(infer.few_clusters(cluster), no_spread, doubts)


def system_shift(
    before: pd.DataFrame, after: pd.DataFrame, value: Value = "score"
) -> pd.DataFrame:
    """Compare how two judges score systems: is one system's shift that of another?

    Parameters
    ----------
    before, after
        Judgments by two judges, or with two prompts, of the same texts, with
        ``candidate``; each of one condition. An item's score is the mean of its parsed
        reads; only items that both scored count.
    value
        ``score`` or ``expected_score``.

    Returns
    -------
    DataFrame
        One row: ``n_systems, n_items``; ``tau``, Kendall's τ-b of the two rankings of
        the systems; ``shift``, the mean over systems of the mean score after minus
        before, with ``shift_low, shift_high``, the 95 % interval for the shift of
        *another* such system; ``lowest, highest``, the systems' own shifts; ``reason``.

    Raises
    ------
    ValueError
        A side lacks ``candidate``, or no item is on both sides.

    Notes
    -----
    The interval is mean ± t(K − 1) · sd · √(1 + 1/K) of the K shifts, for a system
    drawn like these and scored on as many texts. An interval over texts is much
    narrower and says nothing about a new system: however many texts there are, only the
    number of systems widens what is known about systems.

    Examples
    --------
    >>> import pandas as pd
    >>> names = [f"{s}{p}" for p in "12" for s in "abc"]
    >>> before = pd.DataFrame({
    ...     "item_id": names, "cluster_id": [n[1] for n in names],
    ...     "candidate": [n[0] for n in names], "score": [1, 2, 4, 1, 3, 4]})
    >>> after = before.assign(score=[2, 3, 4, 2, 4, 5])
    >>> found = system_shift(before, after)
    >>> found[["n_systems", "tau", "shift", "shift_low", "shift_high"]].round(2)
       n_systems  tau  shift  shift_low  shift_high
    0          3  1.0   0.83       -0.6        2.27
    """
    for judgments, what in (
        (before, "the judgments before"),
        (after, "the judgments after"),
    ):
        require(judgments, ["item_id", "cluster_id", "candidate", value], what)
    a, b = (
        arrays.reads(side.reset_index(drop=True), value) for side in (before, after)
    )
    rows_a, rows_b = shared_items(a, b)
    scores = arrays.item_means(a.value)[rows_a], arrays.item_means(b.value)[rows_b]
    if not (~np.isnan(scores[0] + scores[1])).any():
        raise ValueError(
            "the two sides have no scored item in common: nothing can be compared"
        )
    names = ("the first judge", "the second")
    why = lost_reads(a, b, names) + absent(a, b, names)
    return pd.DataFrame(
        [shift_of_systems(a.items["candidate"].iloc[rows_a], *scores, why)]
    )


def shift_of_systems(
    system: Any, before: FloatArray, after: FloatArray, why: Reasons = ()
) -> Row:
    """The row of `system_shift`, from each item's system and two scores (NaN: none)."""
    lost = lost_scores(before, after, ("the first judge", "the second")) + why
    used = ~np.isnan(before + after) & pd.notna(system)
    code, names = pd.factorize(np.asarray(system)[used])
    n = len(names)
    size = binned(code, minlength=n)
    sums = [binned(code, side[used], n) for side in (before, after)]
    means = np.stack([size, *sums], axis=-1).astype(float)
    own = (sums[1] - sums[0]) / np.maximum(size, 1)
    row: Row = {"n_systems": n, "n_items": int(size.sum())}
    row |= dict.fromkeys(
        ("tau", "shift", "shift_low", "shift_high", "lowest", "highest"), np.nan
    )
    if n:
        row |= {"shift": own.mean(), "lowest": own.min(), "highest": own.max()}
    if n < 3:
        return row | because(Reason("few_systems", n=n), lost)
    row["tau"] = float(_tau(means))
    spread = own.std(ddof=1)
    if spread < 1e-12:
        return row | because(Reason("no_interval.systems"), lost)
    reach = infer.t_quantile(n - 1) * spread * np.sqrt(1 + 1 / n)
    row |= {"shift_low": row["shift"] - reach, "shift_high": row["shift"] + reach}
    return row | because(
        Reason("equal_systems") if np.isnan(row["tau"]) else None, lost
    )


def _tau(sums: FloatArray) -> FloatArray:
    """Kendall's τ-b of systems' means, from (…, systems, 3) counts, scores, ratings."""
    count, *totals = np.moveaxis(sums, -1, 0)
    sides = [arrays.averages(total, count).round(9) for total in totals]
    return kendall_tau(*map(pair_signs, sides))
