"""Human labels and a judge: what a few labels buy when a judge has scored every text."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy import special, stats

from rubricnb.statistics import _reads as arrays
from rubricnb.statistics._inference import LEVEL, correlation, few_clusters, mean_of, moments, said
from rubricnb.statistics._reads import By, FloatArray, IntArray, Reads, Value
from rubricnb.statistics.agreement import human_of

CHOSEN = 3.0  # standard errors between labelled and other texts that a random draw hardly shows
MIN_SYSTEMS = 5
_NUMBERS = ("mean", "low", "high", "labels_only", "labels_only_low", "labels_only_high",
            "judge_mean", "gain", "r", "slope")  # fmt: skip


class _Fit(NamedTuple):
    """A regression of ratings on judge scores, and what it leaves unexplained."""

    slope: float
    error: FloatArray  # per labelled item
    variance: float  # residual, of one item
    df: int


def mean_with_labels(
    judgments: pd.DataFrame, labels: pd.DataFrame, by: By = None, value: Value = "score"
) -> pd.DataFrame:
    """Estimate the mean human rating of all judged texts from the few that people have rated.

    The judge's scores of all texts correct the mean of the labelled ones, as far as the two agree:
    survey sampling's regression estimator. A biased judge does no harm, and one that agrees with
    nobody costs next to nothing.

    Parameters
    ----------
    judgments
        Judgments; an item's score is the mean of its parsed reads.
    labels
        ``item_id``, ``human`` and, where the judgments have them, ``dataset`` and ``criterion``.
        Items with some ``human`` missing will do. They must be a random draw of the judged items.
    by
        Columns to group by; by default judge, dataset, design and every condition column present.
    value
        ``score`` or ``expected_score``.

    Returns
    -------
    DataFrame
        One row a group: its columns, and

        * ``n_items, n_labels, n_clusters`` (labelled), and ``drawn``: how the labels look drawn,
          which decides the interval: ``items`` (at random), ``texts`` (at random, each under all of
          its criteria), ``clusters`` (labelled whole) or ``one per cluster`` (one item each, the
          candidates evenly);
        * ``mean, low, high``: of these texts, 95 % t interval;
        * ``labels_only`` with ``_low, _high``: the same without the judge; ``judge_mean``;
        * ``gain``: by how many times the labels alone would have to be more for this precision;
          ``r``: of the judge with the labels; ``slope``: of ratings on scores;
        * ``reason``: what could not be computed, or why not to trust it.

    Raises
    ------
    ValueError
        No label is about a judged item, or `labels` lack a column.

    Notes
    -----
    Cochran (1977), Sampling Techniques, chapter 7; PPI++ (Angelopoulos et al. 2023,
    arXiv:2311.01453) with a slope that is neither clipped nor fitted on all texts. The target is
    the mean of these texts; for a wider population add the variance of ratings over ``n_items``.

    Examples
    --------
    >>> import pandas as pd
    >>> names = [f"t{i}" for i in range(12)]
    >>> judgments = pd.DataFrame({
    ...     "item_id": names, "cluster_id": names, "design": "fixed", "ordering_index": 1,
    ...     "ordering": "1-2-3-4-5", "score": [5, 5, 4, 4, 3, 5, 2, 3, 4, 5, 2, 3]})
    >>> labels = pd.DataFrame({"item_id": names[:6], "human": [4, 4, 3, 3, 2, 3.0]})
    >>> found = mean_with_labels(judgments, labels)
    >>> found[["n_labels", "mean", "labels_only", "judge_mean"]].round(2)
       n_labels  mean  labels_only  judge_mean
    0         6   2.7         3.17        3.75
    """
    return arrays.row_per_group(
        judgments, by, value, lambda reads: _mean_row(reads, human_of(reads, labels, "labels"))
    )


def _mean_row(reads: Reads, human: FloatArray) -> dict[str, Any]:
    scored, score, human = _scored(reads, human)
    labelled = ~np.isnan(human)
    y, f, everything = human[labelled], score[labelled], score
    n = len(y)
    drawn = _drawn(scored, labelled)
    whole = drawn in ("clusters", "texts")
    unit = _texts(scored) if drawn == "texts" else scored["cluster"].to_numpy()
    own = unit[labelled]
    sizes = {"n_items": len(score), "n_labels": n}
    sizes["n_clusters"] = scored["cluster"][labelled].nunique()
    row: dict[str, Any] = sizes | {"drawn": drawn} | dict.fromkeys(_NUMBERS, np.nan)
    row |= {"labels_only": mean_of(y), "judge_mean": mean_of(everything)}
    reasons = _too_few(n, own, drawn)
    if reasons:
        return row | {"reason": said(*reasons)}
    strata = np.zeros(n, dtype=np.int64)
    if drawn == "one per cluster":
        strata = pd.factorize(scored["candidate"][labelled])[0]
    with_judge, alone = _regression(y, f, strata), _regression(y, np.zeros(n), strata)
    row["slope"] = with_judge.slope
    row["mean"] = row["labels_only"] + with_judge.slope * (everything.mean() - f.mean())
    if whole:
        share = len(np.unique(own)) / len(np.unique(unit))
        se, df = _whole_clusters(with_judge, own, share)
        se_alone, df_alone = _whole_clusters(alone, own, share, 1)
    else:
        share = n / len(score)
        shift = (everything.mean() - f.mean()) ** 2
        spread = ((f - _strata_means(f, strata)) ** 2).sum()
        away = shift / spread if spread > 0 else 0.0
        se, df = np.sqrt(with_judge.variance * ((1 - share) / n + away)), with_judge.df
        se_alone, df_alone = np.sqrt(alone.variance * (1 - share) / n), alone.df
    row["low"], row["high"] = _around(row["mean"], se, df)
    row["labels_only_low"], row["labels_only_high"] = _around(
        row["labels_only"], se_alone, df_alone
    )
    if labelled.all():
        reasons.append("every text is labelled: nothing is left to estimate")
    row["gain"] = (se_alone / se) ** 2 if se > 0 and se_alone > 0 else np.nan
    row["r"] = float(correlation(moments(y, f).sum(axis=0)))
    if np.ptp(y) == 0:
        row |= dict.fromkeys([k for k in _NUMBERS if k.endswith(("low", "high", "gain"))], np.nan)
        reasons.append("all labels are equal: no interval")
    if np.ptp(f) == 0:
        reasons.append("the judge gives all labelled texts one score: the labels stand alone")
    reasons += _looks_chosen(score, labelled, unit if whole else np.arange(len(score)))
    few = few_clusters(own if whole else np.arange(n), scores=(y, f), times=2 if whole else 3)
    if drawn != "clusters":
        few = few.replace("effective clusters", f"labelled {drawn}" if whole else "labels")
    return row | {"reason": said(*reasons, few)}


def _scored(reads: Reads, human: FloatArray) -> tuple[pd.DataFrame, FloatArray, FloatArray]:
    """Keep the items that have a score."""
    score = arrays.item_means(reads.value)
    there = ~np.isnan(score)
    return reads.items[there].reset_index(drop=True), score[there], human[there]


def _drawn(items: pd.DataFrame, labelled: Any) -> str:
    """Tell how labels look drawn: clusters or texts whole, one of each cluster, or any items."""
    of = items["cluster"].to_numpy()
    if _taken_whole(of, labelled):
        return "clusters"
    if _taken_whole(_texts(items), labelled):
        return "texts"
    size, taken = np.bincount(of), np.bincount(of[labelled], minlength=int(of.max(initial=0)) + 1)
    if size.max(initial=0) > 1 and taken.max(initial=0) == 1 and "candidate" in items:
        each = items["candidate"][labelled].value_counts()
        each = each.reindex(items["candidate"].unique(), fill_value=0)
        if each.min() >= 2 and each.max() - each.min() <= 1:
            return "one per cluster"
    return "items"


def _taken_whole(of: IntArray, labelled: Any) -> bool:
    """Whether labels are of all items of a unit or of none, and units have several items."""
    size, taken = np.bincount(of), np.bincount(of[labelled], minlength=int(of.max(initial=0)) + 1)
    return bool(size.max(initial=0) > 1 and taken.any() and ((taken == 0) | (taken == size)).all())


def _texts(items: pd.DataFrame) -> IntArray:
    """Number each item's text: what one candidate wrote in a cluster, under all criteria."""
    if "criterion" not in items or items["criterion"].nunique() < 2 or "candidate" not in items:
        return np.arange(len(items))
    return arrays.combine(items[c] for c in ("cluster", "group_id", "candidate") if c in items)


def _too_few(n: int, own: IntArray, drawn: str) -> list[str]:
    if n == 0:
        return ["no judged item has a label"]
    if drawn in ("clusters", "texts") and (units := len(np.unique(own))) < 3:
        return [f"{units} labelled {drawn}: whole {drawn} need three"]
    return [f"{n} labels: four are needed"] if n < 4 else []


def _strata_means(x: FloatArray, strata: IntArray) -> FloatArray:
    return np.asarray((arrays.by_cluster(x, strata) / np.bincount(strata))[strata])


def _regression(y: FloatArray, f: FloatArray, strata: IntArray) -> _Fit:
    """Regress y on f, both about the means of their strata."""
    y, f = y - _strata_means(y, strata), f - _strata_means(f, strata)
    spread = float(f @ f)
    varies = spread > 1e-12 * max(1.0, len(f))
    slope = float(f @ y) / spread if varies else 0.0
    error = y - slope * f
    df = len(y) - len(np.unique(strata)) - int(varies)
    return _Fit(slope, error, float(error @ error) / df if df > 0 else np.nan, df)


def _whole_clusters(fit: _Fit, cluster: IntArray, share: float, lost: int = 2) -> tuple[float, int]:
    """Standard error and degrees of freedom where clusters are labelled whole."""
    sums = arrays.by_cluster(fit.error, cluster)
    g = len(sums)
    variance = (1 - share) * g / (g - lost) * (sums**2).sum() / len(cluster) ** 2
    return float(np.sqrt(variance)), g - 1


def _around(estimate: float, se: float, df: float) -> tuple[float, float]:
    if not df > 0:
        return np.nan, np.nan
    half = float(special.stdtrit(df, 0.5 + LEVEL / 2)) * se
    return estimate - half, estimate + half


def _looks_chosen(score: FloatArray, labelled: Any, unit: IntArray) -> list[str]:
    """Say so where the labelled texts differ from the others by more than a random draw would.

    `unit`: what was drawn, an item or all items of a text or cluster.
    """
    if labelled.all() or np.ptp(score) == 0:
        return []
    rest = score - score.mean()
    values, size = arrays.by_cluster(rest, unit), len(rest) / len(np.unique(unit))
    taken = arrays.by_cluster(labelled, unit) > 0
    se = np.sqrt(values.var(ddof=1) * (1 - taken.mean()) / taken.sum()) / size
    off = rest[labelled].mean() / se if se > 0 else 0.0
    if abs(off) <= CHOSEN:
        return []
    side = "higher" if off > 0 else "lower"
    return [
        f"the judge scores the labelled texts {side} than the others, by {abs(off):.1f} standard "
        "errors: the labels look chosen, and the estimate assumes a random draw"
    ]


def labels_needed(
    judgments: pd.DataFrame,
    labels: pd.DataFrame,
    half_width: float,
    by: By = None,
    value: Value = "score",
) -> pd.DataFrame:
    """Say how many labels give the mean an interval of this half-width, with the judge and alone.

    Parameters
    ----------
    judgments, labels, by, value
        As in `mean_with_labels`; the labels there are so far, drawn at random.
    half_width
        Of the 95 % interval, in points of the scale.

    Returns
    -------
    DataFrame
        One row a group: its columns, ``n_items, n_labels`` (so far), ``needed`` with
        ``needed_low, needed_high`` (95 %: few labels tell the spread of the residuals roughly),
        ``needed_alone`` (without the judge), ``reason``. At most ``n_items``.

    Raises
    ------
    ValueError
        `half_width` is not positive.

    Notes
    -----
    Items at random; with one text per prompt and the systems rotated fewer are needed.

    Examples
    --------
    >>> import pandas as pd
    >>> names = [f"t{i}" for i in range(300)]
    >>> judgments = pd.DataFrame({
    ...     "item_id": names, "cluster_id": names, "design": "fixed", "ordering_index": 1,
    ...     "ordering": "1-2-3-4-5", "score": [1, 2, 3, 4, 5] * 60})
    >>> labels = pd.DataFrame({"item_id": names[:20], "human": [1, 2, 3, 3, 5, 2, 2, 2, 4, 4] * 2})
    >>> labels_needed(judgments, labels, half_width=0.2)[["needed", "needed_alone"]]
       needed  needed_alone
    0      27            96
    """
    if not half_width > 0:
        raise ValueError(f"half_width is {half_width}: give a positive number of points")

    def row(reads: Reads) -> dict[str, Any]:
        return _needed_row(reads, human_of(reads, labels, "labels"), half_width)

    return arrays.row_per_group(judgments, by, value, row)


def _needed_row(reads: Reads, human: FloatArray, half_width: float) -> dict[str, Any]:
    items, score, human = _scored(reads, human)
    labelled = ~np.isnan(human)
    n, total = int(labelled.sum()), len(score)
    names = ("needed", "needed_low", "needed_high", "needed_alone")
    row: dict[str, Any] = {"n_items": total, "n_labels": n, **dict.fromkeys(names, np.nan)}
    if n < 4:
        return row | {"reason": f"{n} labels: four are needed to see how they spread"}
    y, f = human[labelled], score[labelled]
    fit = _regression(y, f, np.zeros(n, dtype=np.int64))
    if fit.variance == 0 or y.var() == 0:
        return row | {"reason": "the labels so far leave no spread to plan with"}
    low, high = fit.df * fit.variance / stats.chi2.ppf([0.975, 0.025], fit.df)
    sizes = [_size(v, total, half_width, 2) for v in (fit.variance, low, high)]
    sizes.append(_size(y.var(ddof=1), total, half_width, 1))
    reason = "all texts must be labelled" if sizes[0] == total else ""
    together = _together(items, labelled)
    return row | dict(zip(names, sizes, strict=True)) | {"reason": said(reason, together)}


def _together(items: pd.DataFrame, labelled: Any) -> str:
    """Warn where labels come by the text, under several criteria, and count as so many draws."""
    if not _taken_whole(_texts(items), labelled):
        return ""
    return "labels of one text under several criteria count singly here: ask by criterion"


def _size(variance: float, total: int, half_width: float, lost: int) -> int:
    """Smallest draw whose expected half-width is small enough."""
    n = np.arange(lost + 2, total + 1, dtype=np.float64)
    # The regression's own distance from the mean of all texts costs 1/(n - 3) on average.
    factor = 1 + 1 / np.maximum(n - 3, 1) if lost == 2 else 1.0
    se = np.sqrt(variance * (1 - n / total) / n * factor)
    enough = special.stdtrit(n - lost, 0.5 + LEVEL / 2) * se <= half_width
    return int(n[enough.argmax()]) if enough.any() else total


def systems_with_labels(
    judgments: pd.DataFrame,
    labels: pd.DataFrame,
    candidates: str = "candidate",
    by: By = None,
    value: Value = "score",
) -> pd.DataFrame:
    """Estimate each system's mean rating from a few labels and the judge's scores of everything.

    Each system's own labels are drawn towards the line that best predicts them from the judge's
    means of the systems, the more the noisier they are.

    Parameters
    ----------
    judgments, labels, by, value
        As in `mean_with_labels`, with two or more labels of each of five or more systems, each
        system's drawn at random.
    candidates
        The column of the judgments that names the system.

    Returns
    -------
    DataFrame
        One row a group and system: ``estimate, low, high`` (95 % t interval), ``labels_only``,
        ``judge_mean``, ``shrinkage`` (0: its labels alone; 1: the judge's line alone),
        ``n_labels``, ``reason``.

    Raises
    ------
    ValueError
        The judgments do not name the candidates.

    Notes
    -----
    A composite of the Fay–Herriot kind with known sampling variance; the mean squared error carries
    twice the Prasad–Rao (1990) term for the unknown spread about the line, which is cautious.

    Examples
    --------
    >>> import pandas as pd
    >>> names = [f"{s}{i}" for s in "abcdef" for i in range(4)]
    >>> judgments = pd.DataFrame({
    ...     "item_id": names, "cluster_id": [n[1] for n in names], "design": "fixed",
    ...     "candidate": [n[0] for n in names], "ordering_index": 1, "ordering": "1-2-3-4-5",
    ...     "score": [1, 2, 2, 3, 2, 3, 2, 2, 3, 3, 4, 2, 4, 3, 4, 4, 4, 5, 4, 4, 5, 5, 4, 5]})
    >>> rated = [name for name in names if name[1] < "3"]
    >>> labels = pd.DataFrame({
    ...     "item_id": rated, "human": [2, 1, 2, 1, 2, 3, 2, 3, 3, 3, 4, 2, 4, 4, 3, 5, 4, 5.0]})
    >>> found = systems_with_labels(judgments, labels)
    >>> found[["candidate", "estimate", "labels_only", "judge_mean", "shrinkage"]].round(2).head(2)
      candidate  estimate  labels_only  judge_mean  shrinkage
    0         a      1.62         1.67        2.00       0.65
    1         b      1.93         2.00        2.25       0.65
    """
    arrays.require(judgments, [candidates], "judgments")
    if candidates != "candidate":
        judgments = judgments.assign(candidate=judgments[candidates])
    return arrays.rows_per_group(
        judgments, by, value, lambda reads: _systems(reads, human_of(reads, labels, "labels"))
    )


def _systems(reads: Reads, human: FloatArray) -> pd.DataFrame:
    items, score, human = _scored(reads, human)
    there = items["candidate"].notna().to_numpy()
    items, score, human = items[there], score[there], human[there]
    system, names = pd.factorize(items["candidate"])
    labelled = ~np.isnan(human)
    of, y, f = system[labelled], human[labelled], score[labelled]
    count, size = np.bincount(of, minlength=len(names)), np.bincount(system)
    judge = np.bincount(system, weights=score) / size
    with np.errstate(invalid="ignore"):
        alone = np.bincount(of, weights=y, minlength=len(names)) / np.where(count, count, np.nan)
    out = pd.DataFrame(
        {"candidate": names, "estimate": np.nan, "low": np.nan, "high": np.nan,
         "labels_only": alone, "judge_mean": judge, "shrinkage": np.nan, "n_labels": count,
         "reason": ""}
    )  # fmt: skip
    if reason := _why_no_systems(names, count):
        return out.assign(reason=reason)
    fit = _regression(y, np.zeros_like(f) if np.median(count) <= 2 else f, of)
    own = alone + fit.slope * (judge - np.bincount(of, weights=f, minlength=len(names)) / count)
    sampling = (1 - count / size) * fit.variance / count
    found = out.assign(**_composite(own, judge, sampling, fit.df))
    together = _together(items.reset_index(drop=True), labelled)
    return found.assign(reason=[said(reason, together) for reason in found["reason"]])


def _why_no_systems(names: Any, count: IntArray) -> str:
    if len(names) < MIN_SYSTEMS:
        return f"{len(names)} systems: a line through their means needs {MIN_SYSTEMS}"
    if count.min() < 2:
        return f"{names[int(count.argmin())]} has {count.min()} labels: every system needs two"
    return ""


def _composite(own: FloatArray, judge: FloatArray, v: FloatArray, df: int) -> dict[str, Any]:
    """Weigh each system's own estimate against the line through all of them."""
    s = len(own)
    away = judge - judge.mean()
    spread = float(away @ away)
    slope = float(away @ own) / spread if spread > 0 else 0.0
    line = own.mean() + slope * away
    a = max(0.0, float(((own - line) ** 2).sum()) / (s - 2) - float(v.mean()))
    total = np.where(a + v > 0, a + v, 1.0)
    weight = np.where(a + v > 0, a / total, 1.0)
    estimate = line + weight * (own - line)
    leverage = 1 / s + (away**2 / spread if spread > 0 else 0.0)
    mse = a * v / total + (1 - weight) ** 2 * total * leverage + 4 * v**2 / (total * (s - 2))
    half = float(special.stdtrit(df, 0.5 + LEVEL / 2)) * np.sqrt(mse)
    flat = (v == 0).all()  # every label agrees with its system's others, or all are labelled
    return {
        "estimate": estimate,
        "low": np.nan if flat else estimate - half,
        "high": np.nan if flat else estimate + half,
        "shrinkage": 1 - weight,
        "reason": "nothing is left to estimate, or labels within a system never differ: no interval"
        if flat
        else "",
    }
