"""Human labels and a judge: estimates from few labels and many scores."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy import special

from rubricnb.core.estimates import reads as arrays
from rubricnb.core.estimates.intervals import (
    LEVEL,
    UNTESTED,
    Estimate,
    correlation,
    effective_clusters,
    few_clusters,
    mean_of,
    moments,
    t_estimate,
)
from rubricnb.core.estimates.reads import By, Reads, Value
from rubricnb.core.estimates.reasons import (
    Reason,
    Reasons,
    because,
    because_each,
    collect,
)
from rubricnb.core.frames import require
from rubricnb.core.support.counting import binned
from rubricnb.core.support.types import FloatArray, IntArray, Mask, Records, Row
from rubricnb.statistics.human_agreement import row_with_people, unscored

# standard errors between labelled and other texts that a random draw rarely shows
CHOSEN = 3.0
MIN_SYSTEMS = 5


class _Fit(NamedTuple):
    """A regression of ratings on judge scores, and what it leaves unexplained."""

    slope: float
    error: FloatArray  # per labelled item
    lost: int  # degrees of freedom, beside the mean's


class Sampling(NamedTuple):
    """How far the mean of the labels may lie from that of all items."""

    variance: float
    df: float
    unit: str  # "labels", "texts" or "clusters": most of the variance is between these


def mean_with_labels(
    judgments: pd.DataFrame, labels: pd.DataFrame, by: By = None, value: Value = "score"
) -> pd.DataFrame:
    """Estimate the mean human rating of all judged texts from the few rated ones.

    The judge's scores of all texts correct the mean of the labelled ones, as far as the
    two agree: survey sampling's regression estimator. A biased judge does no harm, and
    one that agrees with nobody costs next to nothing.

    Parameters
    ----------
    judgments
        Judgments; an item's score is the mean of its parsed reads.
    labels
        ``item_id``, ``human`` and, where the judgments have them, ``dataset`` and
        ``criterion``. Items with some ``human`` missing will do. They must be a random
        draw of the judged items.
    by
        Columns to group by; by default judge, dataset, design and every condition
        column present.
    value
        ``score`` or ``expected_score``.

    Returns
    -------
    DataFrame
        One row a group: its columns, and

        * ``n_items`` (with a score), ``n_labels`` (of these), ``n_unscored`` (labels of
          items without a score, left out), ``n_clusters`` (labelled), and ``drawn``:
          how the labels look drawn: ``items`` (at random), ``texts`` (most under all of
          their criteria), ``clusters`` (most labelled whole) or ``one per cluster``
          (one item each, the candidates evenly);
        * ``mean, low, high``: of the items with a score, 95 % t interval. Labels that
          share a prompt or a text count for less than as many labels that do not
          (`sampling_variance`);
        * ``labels_only`` with ``_low, _high``: the same without the judge;
          ``judge_mean``;
        * ``gain``: by how many times the labels alone would have to be more for this
          precision; ``r``: of the judge with the labels; ``slope``: of ratings on
          scores;
        * ``reason``: what could not be computed, or why not to trust it.

    Raises
    ------
    ValueError
        No label is about a judged item, or `labels` lack a column.

    Notes
    -----
    Cochran (1977), Sampling Techniques, chapter 7; PPI++ (Angelopoulos et al. 2023,
    arXiv:2311.01453) with a slope that is neither clipped nor fitted on all texts. The
    target is the mean of these texts; for a wider population add the variance of
    ratings over ``n_items``.

    Examples
    --------
    >>> import pandas as pd
    >>> names = [f"t{i}" for i in range(12)]
    >>> judgments = pd.DataFrame({
    ...     "item_id": names, "cluster_id": names, "design": "fixed",
    ...     "ordering_index": 1, "ordering": "1-2-3-4-5",
    ...     "score": [5, 5, 4, 4, 3, 5, 2, 3, 4, 5, 2, 3]})
    >>> labels = pd.DataFrame({"item_id": names[:6], "human": [4, 4, 3, 3, 2, 3.0]})
    >>> found = mean_with_labels(judgments, labels)
    >>> found[["n_labels", "mean", "labels_only", "judge_mean"]].round(2)
       n_labels  mean  labels_only  judge_mean
    0         6   2.7         3.17        3.75
    """
    return row_with_people(judgments, labels, by, value, mean_row, "labels")


def mean_row(reads: Reads, human: FloatArray) -> Row:
    """Estimate the mean rating of all items, from reads of all and ratings of some.

    `human`: a rating per item, NaN where there is none. Returns the columns of
    `mean_with_labels`.
    """
    items, score, rated = _scored(reads, human)
    labelled = ~np.isnan(rated)
    y, f = rated[labelled], score[labelled]
    n, drawn = len(y), _drawn(items, labelled)
    row: Row = {
        "n_items": len(score),
        "n_labels": n,
        "n_unscored": int((~np.isnan(human)).sum()) - n,
        "n_clusters": items["cluster"][labelled].nunique(),
        "drawn": drawn,
        "mean": np.nan,
        **Estimate().columns(*UNTESTED),
        **Estimate(mean_of(y)).named("labels_only", *UNTESTED),
        "judge_mean": mean_of(score),
        **dict.fromkeys(("gain", "r", "slope"), np.nan),
    }
    lost = unscored(reads, human)
    if n < 4:
        few = Reason("few_labels", n=n) if n else Reason("no_labels")
        return row | because(few, lost)
    strata = np.zeros(n, dtype=np.int64)
    if drawn == "one per cluster":
        strata = pd.factorize(items["candidate"][labelled])[0]
    fit_with_judge = _regression(y, f, strata)
    fit_alone = _regression(y, np.zeros(n), strata)
    apart = score.mean() - f.mean()
    spread = ((f - _strata_means(f, strata)) ** 2).sum()
    away = apart**2 / spread if spread > 0 else 0.0
    with_judge = sampling_variance(
        items, labelled, fit_with_judge.error, fit_with_judge.lost, away
    )
    alone = sampling_variance(items, labelled, fit_alone.error, fit_alone.lost)
    row["mean"] = row["labels_only"] + fit_with_judge.slope * apart
    row |= _around(row["mean"], with_judge, labelled).columns(*UNTESTED)
    row |= _around(row["labels_only"], alone, labelled).named("labels_only", *UNTESTED)
    if min(alone.variance, with_judge.variance) > 0:
        row["gain"] = alone.variance / with_judge.variance
    row["r"] = float(correlation(moments(y, f).sum(axis=0)))
    row["slope"] = fit_with_judge.slope
    if np.ptp(y) == 0:
        ends = ("low", "high", "se", "df", "gain")
        row |= dict.fromkeys([name for name in row if name.endswith(ends)], np.nan)
    return row | because(*_why_unsure(items, score, rated, with_judge), lost)


def _why_unsure(
    items: pd.DataFrame, score: FloatArray, rated: FloatArray, found: Sampling
) -> Iterator[Reason | Reasons]:
    labelled = ~np.isnan(rated)
    y, f = rated[labelled], score[labelled]
    cluster = items["cluster"].to_numpy()[labelled]
    if labelled.all():
        yield Reason("all_labelled")
    if np.isnan(found.df):
        yield Reason("few_labelled_clusters", n=len(np.unique(cluster)))
    elif np.ptp(y) == 0:
        yield Reason("no_interval.equal_labels")
    elif found.variance == 0 and not labelled.all():
        most = 1 - (1 - LEVEL) ** (1 / effective_clusters(cluster))
        yield Reason("no_interval.no_error", most=most)
    if np.ptp(f) == 0:
        yield Reason("labels_alone")
    if "criterion" in items:
        lacking = sorted({*items["criterion"]} - {*items["criterion"][labelled]})
        if lacking:
            yield Reason(
                "criterion_unlabelled", criteria=" or ".join(map(repr, lacking))
            )
    off = f.mean() - score.mean()
    chance = np.sqrt(sampling_variance(items, labelled, score - score.mean()).variance)
    if chance > 0 and abs(off) > CHOSEN * chance:
        side = "higher" if off > 0 else "lower"
        yield Reason("looks_chosen", side=side, errors=abs(off) / chance)
    yield _why_few(items, labelled, found.unit, (y, f, y - f))


def _why_few(
    items: pd.DataFrame,
    labelled: Mask,
    unit: str,
    scores: Sequence[FloatArray],
) -> Reasons:
    """Return why an interval is doubtful: few labels, or few units that vary most."""
    if unit == "clusters":
        cluster = items["cluster"].to_numpy()[labelled]
        return few_clusters(cluster, scores=scores)
    text = _texts(items)
    if unit == "texts" and text is not None:
        return few_clusters(text[labelled], scores=scores, unit="labelled texts")
    each = np.arange(labelled.sum())
    return few_clusters(each, scores=scores, times=7, unit="labels")


def _scored(
    reads: Reads, human: FloatArray, of: Mask | bool = True
) -> tuple[pd.DataFrame, FloatArray, FloatArray]:
    """Keep the items that have a score, `of` some."""
    score = arrays.item_means(reads.value)
    kept = ~np.isnan(score) & of
    return reads.items[kept].reset_index(drop=True), score[kept], human[kept]


def _drawn(items: pd.DataFrame, labelled: Mask) -> str:
    """Tell how labels look drawn: whole clusters or texts, one of each, or items."""
    units = {"clusters": items["cluster"].to_numpy(), "texts": _texts(items)}
    for name, of in units.items():
        if of is not None and labelled.any() and _mostly_whole(of, labelled):
            return name
    taken = binned(units["clusters"][labelled])
    several = binned(units["clusters"]).max(initial=0) > 1
    if several and taken.max(initial=0) == 1 and "candidate" in items:
        each = items["candidate"][labelled].value_counts()
        each = each.reindex(items["candidate"].unique(), fill_value=0)
        if each.min() >= 2 and each.max() - each.min() <= 1:
            return "one per cluster"
    return "items"


def _mostly_whole(of: IntArray, labelled: Mask) -> bool:
    """Whether labelled items lie nearer to whole units than to a random draw."""
    size, taken = binned(of), binned(of[labelled], minlength=int(of.max()) + 1)
    beside = (taken * (size - 1)).sum()  # items that share a unit with a labelled one
    if beside == 0:
        return False
    together, share = (taken * (taken - 1)).sum(), labelled.mean()
    return bool(together / beside > (1 + share) / 2 or labelled.all())


def _texts(items: pd.DataFrame) -> IntArray | None:
    """Number each item's text, which several criteria may judge; None: unknown."""
    if "criterion" not in items or items["criterion"].nunique() < 2:
        return np.arange(len(items))
    for names in ((), ("item_id",), ("candidate",), ("group_id", "candidate")):
        if set(names) <= set(items.columns):
            text = arrays.combine(items[name] for name in ("cluster", *names))
            once = not items.assign(text=text).duplicated(["text", "criterion"]).any()
            if once and text.max() + 1 < len(items):
                return text
    return None


def sampling_variance(
    items: pd.DataFrame,
    labelled: Mask,
    error: FloatArray,
    lost: int = 0,
    away: float = 0.0,
) -> Sampling:
    """Variance of the mean of labels of some items as an estimate of the mean of all.

    Labels count one by one where they are spread over prompts and texts as a random
    draw would spread them. Where they lie closer together, they count for as much as a
    nested analysis of variance finds within prompts and within texts: whole prompts as
    so many prompts.

    Parameters
    ----------
    items
        One row an item, with the ``cluster`` and, where known, ``candidate`` and
        ``criterion``. Where it is not known which items share a text, all of a cluster
        may.
    labelled
        Which items have a label.
    error
        Of the labelled items, or of all: by how much each is off. They add up to 0.
    lost
        Degrees of freedom that `error` took, beside the mean's.
    away
        What the regression's distance from the mean of all adds to the inverse of the
        labels.

    Returns
    -------
    Sampling
        ``variance``, its Satterthwaite degrees of freedom ``df`` (both NaN with no more
        than 1 + `lost` clusters to share) and the ``unit`` most of it is between.

    Examples
    --------
    >>> items = pd.DataFrame({"cluster": np.repeat(np.arange(6), 2)})
    >>> error = np.array([1.0, 1, -1, -1, 0, 0])
    >>> labelled = np.arange(12) < 6  # three clusters of six
    >>> found = sampling_variance(items, labelled, error)
    >>> round(found.variance, 3), round(found.df), found.unit
    (0.167, 2, 'clusters')
    """
    n = len(error)
    known = labelled if n == labelled.sum() else np.ones_like(labelled)
    # The units that labels share more than a random draw would, largest first, and what
    # a variance of 1 between them adds to the variance of the mean.
    n_labels, text = labelled.sum(), _texts(items)
    names, codes = ["labels"], [np.arange(n)]
    weights = [1 / n_labels - 1 / len(items)]
    for name, code in (("texts", text), ("clusters", items["cluster"].to_numpy())):
        if code is None:
            continue
        taken = binned(code[labelled], minlength=int(code.max()) + 1) / n_labels
        apart = float(((taken - binned(code) / len(code)) ** 2).sum())
        if text is None:  # whole texts may hide in a cluster
            apart = float((taken**2).sum()) * (1 - n_labels / len(code))
        own = np.unique(code[known], return_inverse=True)[1]
        if own.max() < codes[0].max() and apart > weights[0] * (1 + 1e-9):
            names, codes, weights = [name, *names], [own, *codes], [apart, *weights]
    # else `lost` clusters pay for the slope
    weights[-1] += away if len(codes) == 1 else 0.0
    units = np.array([1, *(code.max() + 1 for code in codes)])
    df = np.diff(units) - np.eye(len(codes))[0] * lost
    free = df.copy()
    if len(codes) > 1:
        free[0] = effective_clusters(codes[0]) - 1
    if min(df[0], free[0]) <= 0:
        return Sampling(np.nan, np.nan, names[0])
    size = np.stack([np.full(n, n), *(binned(code)[code] for code in codes)])
    sums = np.stack([np.zeros(n), *(binned(c, weights=error)[c] for c in codes)])
    square = np.diff(((sums / size) ** 2).sum(axis=1)) / df
    # What a variance between the units of a column adds to the sum of squares of a row.
    adds = np.stack([np.minimum(size[1:] / own, 1).sum(axis=1) for own in size])
    expected = np.diff(adds, axis=0) / np.diff(units)[:, None]
    # eq-sampling: E s = C σ², so ω'σ² = (C⁻ᵀ ω)'s; no level lowers it.
    share = np.linalg.solve(expected.T, weights)
    parts = np.maximum(share, 0) * square
    variance = float(parts.sum())
    df_of = variance**2 / (parts**2 / free).sum() if variance > 0 else free[0]
    return Sampling(variance, float(df_of), names[int(parts.argmax())])


def _strata_means(x: FloatArray, strata: IntArray) -> FloatArray:
    return (arrays.by_cluster(x, strata) / binned(strata))[strata]


def _regression(y: FloatArray, f: FloatArray, strata: IntArray) -> _Fit:
    """Regress y on f, both about the means of their strata."""
    y, f = y - _strata_means(y, strata), f - _strata_means(f, strata)
    spread = float(f @ f)
    varies = spread > 1e-12 * max(1.0, len(f))
    slope = float(f @ y) / spread if varies else 0.0
    error = y - slope * f
    error[np.abs(error) < 1e-9] = 0.0
    return _Fit(slope, error, len(np.unique(strata)) - 1 + int(varies))


def _around(value: float, found: Sampling, labelled: Mask) -> Estimate:
    """t interval; the estimate itself where all is known, none where nothing varies."""
    if labelled.all():
        return Estimate(value, value, value, se=0.0)
    return t_estimate(value, float(np.sqrt(found.variance)), found.df)


def labels_needed(
    judgments: pd.DataFrame,
    labels: pd.DataFrame,
    half_width: float,
    by: By = None,
    value: Value = "score",
) -> pd.DataFrame:
    """Say how many labels give an interval of this half-width, with and without judge.

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
        ``needed_low, needed_high`` (95 %: few labels show the spread of the residuals
        roughly), ``needed_alone`` (without the judge), ``reason``. At most ``n_items``.

    Raises
    ------
    ValueError
        `half_width` is not positive.

    Notes
    -----
    For labels that go on to be drawn as those so far: whole prompts as whole prompts.
    With one text of each prompt and the systems rotated fewer are needed.

    Examples
    --------
    >>> import pandas as pd
    >>> names = [f"t{i}" for i in range(300)]
    >>> judgments = pd.DataFrame({
    ...     "item_id": names, "cluster_id": names, "design": "fixed",
    ...     "ordering_index": 1, "ordering": "1-2-3-4-5",
    ...     "score": [1, 2, 3, 4, 5] * 60})
    >>> ratings = [1, 2, 3, 3, 5, 2, 2, 2, 4, 4] * 2
    >>> labels = pd.DataFrame({"item_id": names[:20], "human": ratings})
    >>> labels_needed(judgments, labels, half_width=0.2)[["needed", "needed_alone"]]
       needed  needed_alone
    0      27            96
    """
    if not half_width > 0:
        raise ValueError(
            f"half_width is {half_width}: give a positive number of points"
        )
    row = partial(needed_row, half_width=half_width)
    return row_with_people(judgments, labels, by, value, row, "labels")


def needed_row(reads: Reads, human: FloatArray, half_width: float) -> Row:
    """Count the ratings that a half-width needs, from the spread of those there are.

    `human` as in `mean_row`. Returns the columns of `labels_needed`.
    """
    items, score, rated = _scored(reads, human)
    labelled = ~np.isnan(rated)
    n, total = int(labelled.sum()), len(score)
    names = ("needed", "needed_low", "needed_high", "needed_alone")
    row: Row = {"n_items": total, "n_labels": n, **dict.fromkeys(names, np.nan)}
    if n < 4:
        return row | because(Reason("needed.few_labels", n=n))
    y, f, one = rated[labelled], score[labelled], np.zeros(n, dtype=np.int64)
    fits = [_regression(y, x, one) for x in (f, np.zeros(n))]
    with_judge, alone = (_label_variance(items, labelled, fit) for fit in fits)
    if np.isnan(with_judge.df):
        return row | because(Reason("needed.few_clusters"))
    if min(with_judge.variance, alone.variance) == 0:
        return row | because(Reason("needed.no_spread"))
    df, variance = with_judge.df, with_judge.variance
    ends = df * variance / special.chdtri(df, [0.025, 0.975])
    ways = [with_judge._replace(variance=v) for v in (variance, *ends)]
    sizes = [_size(way, n, total, half_width, 2) for way in ways]
    sizes.append(_size(alone, n, total, half_width, 1))
    every = Reason("needed.all") if sizes[0] == total else None
    few = _why_few(items, labelled, with_judge.unit, (y, f))
    row |= dict(zip(names, sizes, strict=True))
    return row | because(every, few, unscored(reads, human))


def _label_variance(items: pd.DataFrame, labelled: Mask, fit: _Fit) -> Sampling:
    """Variance that one label adds; a mean of n labels has 1/n − 1/N of it.

    For labels that go on to be drawn as these were.
    """
    error, n = fit.error, len(fit.error)
    if labelled.all():
        df = n - 1 - fit.lost
        return Sampling(float(error @ error) / df if df > 0 else np.nan, df, "labels")
    sampling = sampling_variance(items, labelled, error, fit.lost)
    return sampling._replace(variance=sampling.variance / (1 / n - 1 / len(items)))


def _size(found: Sampling, n: int, total: int, half_width: float, lost: int) -> int:
    """Smallest draw with an expected half-width that is small enough."""
    sizes = np.arange(lost + 2, total + 1, dtype=np.float64)
    # The regression's own distance from the mean
    # of all texts costs 1/(n - 3) on average.
    factor = 1 + 1 / np.maximum(sizes - 3, 1) if lost == 2 else 1.0
    se = np.sqrt(found.variance * (1 / sizes - 1 / total) * factor)
    df = (found.df + lost) * sizes / n - lost
    t = special.stdtrit(np.maximum(df, 1.0), 0.5 + LEVEL / 2)
    enough = (t * se <= half_width) & (df > 0)
    return int(sizes[enough.argmax()]) if enough.any() else total


def systems_with_labels(
    judgments: pd.DataFrame, labels: pd.DataFrame, by: By = None, value: Value = "score"
) -> pd.DataFrame:
    """Estimate each system's mean rating from few labels and the judge's scores.

    Each system's own labels are drawn towards the line that best predicts them from the
    judge's means of the systems, the more the noisier they are.

    Parameters
    ----------
    judgments, labels, by, value
        As in `mean_with_labels`, with two or more labels of each of five or more
        systems, each system's drawn at random. The column ``candidate`` names the
        system.

    Returns
    -------
    DataFrame
        One row a group and system: ``estimate, low, high`` (95 % t interval),
        ``labels_only``, ``judge_mean``, ``off_line`` (points by which its own estimate
        lies above the line; its own are its labels, moved by the slope to the judge's
        mean of all its texts), ``shrinkage`` (share of ``off_line`` that was taken off:
        0 its own alone, 1 the line alone), and ``off_line_p`` (t test against the line
        through the others; NaN where these have one judge mean, and any line through
        them meets this system), ``n_labels``, ``reason``.

    Raises
    ------
    ValueError
        The judgments do not name the candidates.

    Notes
    -----
    A composite of the Fay–Herriot kind with known sampling variance. The spread about
    the line and the mean squared error are Prasad & Rao's (1990), but a system farther
    off the line than that spread has its own distance in its error. Systems labelled on
    the same prompts share the error of these prompts, which the intervals hold:
    differences of such systems are known better. A system off the line (5 %, Bonferroni
    over the systems) keeps its own labels; no other is drawn from them by more than one
    standard error (limited translation, Efron & Morris 1972).

    Examples
    --------
    >>> import pandas as pd
    >>> names = [f"{s}{i}" for s in "abcdef" for i in range(4)]
    >>> judgments = pd.DataFrame({
    ...     "item_id": names, "cluster_id": [n[1] for n in names], "design": "fixed",
    ...     "candidate": [n[0] for n in names],
    ...     "ordering_index": 1, "ordering": "1-2-3-4-5",
    ...     "score": [1, 2, 2, 3, 2, 3, 2, 2, 3, 3, 4, 2,
    ...               4, 3, 4, 4, 4, 5, 4, 4, 5, 5, 4, 5]})
    >>> rated = [name for name in names if name[1] < "3"]
    >>> labels = pd.DataFrame({
    ...     "item_id": rated,
    ...     "human": [2, 1, 2, 1, 2, 3, 2, 3, 3, 3, 4, 2, 4, 4, 3, 5, 4, 5.0]})
    >>> found = systems_with_labels(judgments, labels)
    >>> columns = ["candidate", "estimate", "labels_only", "judge_mean", "shrinkage"]
    >>> found[columns].round(2).head(2)
      candidate  estimate  labels_only  judge_mean  shrinkage
    0         a      1.62         1.67        2.00       0.65
    1         b      1.93         2.00        2.25       0.65
    """
    require(judgments, ["candidate"], "judgments")
    return row_with_people(judgments, labels, by, value, _systems, "labels")


def _systems(reads: Reads, human: FloatArray) -> Records:
    is_named = reads.items["candidate"].notna().to_numpy()
    items, score, rated = _scored(reads, human, is_named)
    system, names = pd.factorize(items["candidate"])
    count = binned(system[~np.isnan(rated)], minlength=len(names))
    total = binned(system, weights=np.nan_to_num(rated))
    out = pd.DataFrame(
        {
            "candidate": names,
            "estimate": np.nan,
            **Estimate().columns(*UNTESTED),
            "labels_only": arrays.averages(total, count),
            "judge_mean": binned(system, weights=score) / binned(system),
            **dict.fromkeys(("shrinkage", "off_line", "off_line_p"), np.nan),
            "n_labels": count,
        }
    )
    lost, text = unscored(reads, human), _texts(items)
    why = _why_no_systems(names, count, items["cluster"][~np.isnan(rated)].nunique())
    if text is None or why:
        every = collect(why or Reason("unknown_texts"), lost)
        return out.assign(**because_each(*[every] * len(out))).to_dict("records")
    first = np.unique(text, return_index=True)[1]
    cluster = items["cluster"].to_numpy()[first]
    shape, one_cell = (int(text.max()) + 1, 1), np.zeros_like(text)
    means = (
        arrays.cell_means(text, one_cell, of, shape)[:, 0] for of in (score, rated)
    )
    estimates = estimate_systems(system[first], cluster, *means)
    each = because_each(*(collect(why, lost) for why in estimates.pop("codes")))
    return out.assign(**estimates, **each).to_dict("records")


def _why_no_systems(names: Any, count: IntArray, n_clusters: int) -> Reason | None:
    if len(names) < MIN_SYSTEMS:
        return Reason("few_systems_labelled", n=len(names), least=MIN_SYSTEMS)
    if count.min() < 2:
        fewest = names[count.argmin()]
        return Reason("few_labels_of_system", system=fewest, n=int(count.min()))
    return Reason("one_cluster") if n_clusters < 2 else None


def estimate_systems(
    system: IntArray, cluster: IntArray, score: FloatArray, rated: FloatArray
) -> Row:
    """Estimate each system's mean rating from texts: all with a score, some rated.

    Systems are numbered from 0, and each has two ratings or more. Returns the columns
    of `systems_with_labels`, but for the sentences of the reasons.
    """
    labelled = ~np.isnan(rated)
    of, y, f = system[labelled], rated[labelled], score[labelled]
    count, size = binned(of), binned(system)
    fit = _regression(y, np.zeros_like(f) if np.median(count) <= 2 else f, of)
    mean_rating, judge_of_rated = (binned(of, weights=x) / count for x in (y, f))
    judge_of_all = binned(system, weights=score) / size
    direct = mean_rating + fit.slope * (judge_of_all - judge_of_rated)
    df = len(y) - 1 - fit.lost
    sampling = float(fit.error @ fit.error) / df * (1 / count - 1 / size)
    shared = _shared_variance(system, cluster, labelled, fit.error)
    columns, mse = _composite(direct, judge_of_all, np.maximum(sampling - shared, 0.0))
    prompts = effective_clusters(cluster[labelled])
    free = (mse + shared) ** 2 / np.maximum(
        mse**2 / df + shared**2 / (prompts - 1), 1e-300
    )
    se = np.sqrt(mse + shared)
    if labelled.all():
        columns["codes"] = [Reason("all_labelled")] * len(se)
    elif not fit.error.any():
        se = np.full_like(se, np.nan)
        columns["codes"] = [Reason("no_interval.on_line")] * len(se)
    half = special.stdtrit(free, 0.5 + LEVEL / 2) * se
    ends = {"low": columns["estimate"] - half, "high": columns["estimate"] + half}
    return columns | ends | {"se": se, "df": free}


def _shared_variance(
    system: IntArray, cluster: IntArray, labelled: Mask, error: FloatArray
) -> float:
    """Variance that the estimates share where systems are labelled on the same prompts.

    Prompts that are harder than others move all systems together, and the line with
    them.
    """
    shape = (system.max() + 1, cluster.max() + 1)
    cell = system * shape[1] + cluster

    def table(cells: IntArray, values: FloatArray | None = None) -> FloatArray:
        return binned(cells, values, minlength=shape[0] * shape[1]).reshape(shape) * 1.0

    errors, taken = table(cell[labelled], error), table(cell[labelled])
    there, count = table(cell), taken.sum(axis=1)
    both = taken @ taken.T  # pairs of labels of two systems on one prompt
    # Errors about the means of labels vary together less than errors do.
    kept = both * (1 - 1 / count - 1 / count[:, None] + both / np.outer(count, count))
    weight = taken / count[:, None] - there / there.sum(axis=1, keepdims=True)
    together = _off_diagonal(weight @ weight.T)
    if not (_off_diagonal(kept) > 1e-9 and together > 0):
        return 0.0
    pairs = float((errors.sum(axis=0) ** 2).sum() - (errors**2).sum())
    return (
        max(pairs / _off_diagonal(kept), 0.0) * together / (shape[0] * (shape[0] - 1))
    )


def _off_diagonal(square: FloatArray) -> float:
    return float(square.sum() - np.trace(square))


def _composite(
    own: FloatArray, judge: FloatArray, v: FloatArray
) -> tuple[Row, FloatArray]:
    """Weigh each system's own estimate, of variance v, against a line through all.

    A system that lies off the line through the others keeps its own estimate, and no
    other is drawn away from its own by more than a standard error: the judge may favour
    it. Returns the columns and the mean squared errors.
    """
    # The system farthest off the line is left out until none is (Bonferroni).
    on_line = np.ones(len(own), dtype=bool)
    while True:
        line, leverage, df = _line(own, judge, on_line)
        gap = own - line
        # A line through this one and the others' one mean leaves it no residual.
        is_alone = on_line & (1 - leverage < 1e-9)
        is_tested = on_line & ~is_alone
        # Externally studentised residuals:
        # t of each system against the line through the others.
        left = np.where(is_tested, 1 - leverage, 1.0)
        rest = gap**2
        variance = (rest[on_line].sum() - rest / left * is_tested) / (df - on_line)
        scale = np.where(on_line, left, 1 + leverage)
        t = np.abs(gap) / np.sqrt(np.maximum(variance, 1e-18) * scale)
        p = np.where(is_alone, np.nan, 2 * special.stdtr(df - on_line, -t))
        worst = int(np.where(is_tested, p, 2).argmin())
        if on_line.sum() <= MIN_SYSTEMS or not p[worst] < (1 - LEVEL) / len(own):
            break
        on_line[worst] = False
    # â of eq-composite: E Σ e² = a (S − p) + Σ v (1 − h), over the systems on the line.
    sampled = (v * (1 - leverage))[on_line].sum()
    a = max(0.0, float(rest[on_line].sum() - sampled) / df)
    total = np.where(a + v > 0, a + v, 1.0)
    # A system that the line goes through by itself is told nothing by it.
    is_drawn = on_line & ~is_alone & (a + v > 0)
    weight = np.where(is_drawn, a / total, 1.0)
    move = np.clip((1 - weight) * gap, -np.sqrt(v), np.sqrt(v))
    # Its error, eq-composite-error: Prasad & Rao's, but with each system's own distance
    # e from the line where that is larger than the spread â of all of them.
    mse = weight**2 * v
    mse += (1 - weight) ** 2 * (np.maximum(a, rest - v) + total * leverage)
    mse += np.where(is_drawn, 4 * v**2 / (total * df), 0.0)
    why = [
        None
        if on
        else Reason("off_line", points=abs(d), side="above" if d > 0 else "below")
        for on, d in zip(on_line, gap, strict=True)
    ]
    has_gap = np.abs(gap) > 1e-12
    shrinkage = np.where(has_gap, move / np.where(has_gap, gap, 1.0), 1 - weight)
    columns = {"estimate": own - move, "shrinkage": shrinkage, "off_line": gap}
    return columns | {"off_line_p": p, "codes": why}, mse


def _line(
    own: FloatArray, judge: FloatArray, fitted: Mask
) -> tuple[FloatArray, FloatArray, int]:
    """The line of `own` on `judge` through fitted systems: values, leverages, df."""
    n, away = int(fitted.sum()), judge - judge[fitted].mean()
    spread = float(away[fitted] @ away[fitted])
    if spread <= 1e-12 * n:  # one mean, up to rounding: no slope
        return np.full(len(own), own[fitted].mean()), np.full(len(own), 1 / n), n - 1
    slope = float(away[fitted] @ own[fitted]) / spread
    return own[fitted].mean() + slope * away, 1 / n + away**2 / spread, n - 2
