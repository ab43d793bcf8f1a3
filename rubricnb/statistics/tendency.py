"""Which scores does a judge prefer, and how do reference answers move them (arXiv:2506.22316)?"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from rubricnb.permutation import levels_above
from rubricnb.statistics import intervals as infer
from rubricnb.statistics import reads as arrays
from rubricnb.statistics.agreement import ratings_of
from rubricnb.statistics.intervals import Estimate
from rubricnb.statistics.reads import By, FloatArray, IntArray, Reads
from rubricnb.statistics.reasons import Reason, because, because_each
from rubricnb.statistics.stability import (
    BASELINE,
    Condition,
    at_items,
    distinct,
    strata,
    why_no_excess,
    why_no_interval,
)

_SIGN_DRAWS = 999


def score_tendency(
    judgments: pd.DataFrame,
    items: pd.DataFrame | None = None,
    by: By = None,
) -> pd.DataFrame:
    """Say how often a judge gives each score, and how far that is from people.

    Parameters
    ----------
    judgments
        Judgments under any conditions.
    items
        Items with the column ``human``, on the scale of the options, and where known the single
        ratings behind it (``human_ratings``). Default: no comparison.
    by
        Columns to group by; by default judge, dataset, design and every condition column present.

    Returns
    -------
    DataFrame
        One row a group: its columns, ``n_items, n_clusters, n_reads``, and, every item counting
        once whatever the number of its reads and ratings,

        * ``share_1…n`` of the reads and ``human_1…n`` of the ratings of the same items, halves
          rounded up; without orderings, the scores that occur. Where some lie off the scale,
          the shares of the others sum to less than 1 and ``reason`` says how many;
        * ``compares``: ``read with rating`` where single ratings are known (or all ratings are
          whole), else ``mean with mean``: a mean of raters spreads less than a rating, so that
          single reads would differ from it without any tendency;
        * ``wasserstein``: the distance of these two distributions in score points, nothing rounded
          (0: the same; single scores may still all differ), with a 95 % interval ``_low, _high``:
          cluster jackknife-t, from 0 on unless sign flips of the clusters refute 0;
        * ``reason``.

    Notes
    -----
    arXiv:2506.22316, Equation 4 and Figure 5, which prints counts. An estimated distance is never
    0: read it with its interval, beside that of the baseline. Means of more reads spread less, too.

    Examples
    --------
    >>> import pandas as pd
    >>> items = pd.DataFrame({"item_id": list("abcd"), "human": [1.0, 2, 2, 3]})
    >>> judgments = pd.DataFrame({
    ...     "item_id": list("abcd"), "cluster_id": list("abcd"), "ordering_index": 1,
    ...     "ordering": "1-2-3", "score": [2, 3, 3, 3]})
    >>> score_tendency(judgments, items)[["share_2", "share_3", "human_2", "wasserstein"]]
       share_2  share_3  human_2  wasserstein
    0     0.25     0.75      0.5         0.75
    """
    if items is not None:
        arrays.refuse_ambiguous(judgments, items)
    return arrays.row_per_group(judgments, by, "score", lambda reads: _tendency(reads, items))


def tendency_shift(
    judgments: pd.DataFrame,
    baseline: Condition = BASELINE,
    by: By = None,
    level: float = infer.LEVEL,
) -> pd.DataFrame:
    """Measure how far every condition moves a judge's distribution of scores.

    Parameters
    ----------
    judgments, baseline, by
        As in `rubricnb.statistics.stability`.
    level
        Of the intervals. For the largest of m rows take 1 − .05/m.

    Returns
    -------
    DataFrame
        One row per condition other than the baseline: its columns, ``n_items, n_clusters``, and
        ``moved``, the Wasserstein distance in score points between the distribution of each of its
        reads and the baseline's on the same items, mean over reads; ``moved_excess``, the distance
        to the distribution under the meaning-free edits instead of the baseline's, on the items
        that both have. Both have intervals ``_low, _high``: cluster jackknife-t, from 0 on unless
        sign flips of the clusters refute 0. ``reason``.

    Notes
    -----
    arXiv:2506.22316, §4.2 (3), which compares heat maps by eye. Noise moves a distribution too, so
    that ``moved`` is never 0: read it beside ``moved_excess``.

    Examples
    --------
    >>> import pandas as pd
    >>> judgments = pd.DataFrame({
    ...     "item_id": list("abcd" "abcd"), "cluster_id": list("abcd" "abcd"),
    ...     "labels": ["numeric"] * 4 + ["letter"] * 4, "ordering_index": 1,
    ...     "ordering": "1-2-3", "score": [1, 2, 3, 3, 3, 1, 2, 2]})
    >>> tendency_shift(judgments, {"labels": "numeric"})[["labels", "moved"]]
       labels  moved
    0  letter   0.25
    """
    rows = []
    for key, base, placebo, others in strata(judgments, baseline, by, "score"):
        grid = _grid([base, *(side for _, side in others)])
        for condition, side in others:
            rows.append({**key, **condition} | _shifted(side, base, placebo, grid, level))
    return pd.DataFrame(rows)


def reference_pull(
    judgments: pd.DataFrame, baseline: Condition = BASELINE, by: By = None
) -> pd.DataFrame:
    """Measure how far a reference answer of score k draws scores to k.

    Parameters
    ----------
    judgments
        Judgments of the baseline and of conditions that differ from it in ``reference_score``.
    baseline, by
        As in `rubricnb.statistics.stability`.

    Returns
    -------
    DataFrame
        One row a reference score: the condition's columns, ``k`` (``reference_score``),
        ``n_items, n_clusters``, and, over the items parsed under both,

        * ``share, share_baseline`` of scores equal to k, and their difference ``pull``;
        * ``approach``: score points by which scores come nearer to k (negative: they move away);
        * ``pull_excess, approach_excess``: value minus that of the neutral edits, item by item.

        ``pull``, ``approach`` and their excesses have 95 % cluster t intervals ``_low, _high`` and
        ``_p``. Two reads of one prompt have a pull and an approach of 0 on average, so there is no
        re-ask to take off. ``reason``.

    Notes
    -----
    arXiv:2506.22316, §4.3 (3), which shows the pull as a heat map. `plan` shows no item itself as
    its reference, so the items differ between k: compare rows by ``pull``, not by ``share``.

    Examples
    --------
    >>> import pandas as pd
    >>> judgments = pd.DataFrame({
    ...     "item_id": list("abcd" "abcd"), "cluster_id": list("abcd" "abcd"),
    ...     "reference_score": ["none"] * 4 + ["2"] * 4, "ordering_index": 1,
    ...     "ordering": "1-2-3-4-5", "score": [1, 2, 4, 5, 2, 2, 2, 4]})
    >>> reference_pull(judgments, {"reference_score": "none"})[["k", "share", "pull", "approach"]]
       k  share  pull  approach
    0  2   0.75   0.5       1.0
    """
    rows = []
    for key, base, placebo, others in strata(judgments, baseline, by, "score"):
        for condition, side in sorted(others, key=lambda other: str(other[0]["reference_score"])):
            k = condition["reference_score"]
            if condition == {**baseline, "reference_score": k} and str(k).isdigit():
                rows.append({**key, **condition} | _pull(int(k), side, base, placebo))
    return pd.DataFrame(rows)


def gold(judgments: pd.DataFrame) -> pd.DataFrame:
    """Make gold scores from the reads of a stronger judge: their majority.

    Parameters
    ----------
    judgments
        Reads of one judge under one condition; the paper takes three of GPT-4.1 with the full-mark
        reference: ``plan(items, fixed(5, 3), reference="auto")``.

    Returns
    -------
    DataFrame
        One row an item: ``item_id``, ``criterion`` where judgments have it, ``gold`` (the most
        frequent score; the median if several are), ``gold_ratings`` (the parsed reads),
        ``n_asked`` (reads that do not copy another one: three reads of a greedy judge are one),
        ``n_distinct`` (different scores) and ``reason``.

    Raises
    ------
    ValueError
        The reads are of several judges or conditions.

    Notes
    -----
    arXiv:2506.22316, §3.3. To take them as truth: ``items.assign(human=…)``, joined by item_id.

    Examples
    --------
    >>> import pandas as pd
    >>> reads = pd.DataFrame({
    ...     "item_id": list("aaabbb"), "cluster_id": list("aaabbb"), "design": "fixed",
    ...     "ordering_index": [1, 2, 3] * 2, "ordering": "1-2-3-4-5", "score": [4, 4, 5, 1, 5, 3]})
    >>> gold(reads)[["item_id", "gold", "gold_ratings", "n_distinct"]]
      item_id  gold gold_ratings  n_distinct
    0       a   4.0    (4, 4, 5)           2
    1       b   3.0    (1, 5, 3)           3
    """
    found = list(arrays.read_groups(judgments, None, "score"))
    if len(found) > 1:
        keys = pd.DataFrame([key for key, _ in found])
        several = [name for name in keys if keys[name].nunique() > 1]
        raise ValueError(
            f"gold scores come from one judge under one condition, but judgments have "
            f"several values of {', '.join(several)}: filter them first"
        )
    side = found[0][1]
    columns = [c for c in ("item_id", "dataset", "criterion") if c in side.items]
    asked = (side.parsed & ~arrays.same_answer(side)).sum(axis=1)
    given = [row[~np.isnan(row)] for row in side.value]
    return side.items[columns].assign(
        gold=[_majority(scores) for scores in given],
        gold_ratings=[tuple(int(s) if s == int(s) else float(s) for s in row) for row in given],
        n_asked=asked,
        n_distinct=[len(np.unique(scores)) for scores in given],
        **because_each(*(None if len(scores) else Reason("no_read") for scores in given)),
    )


def _majority(scores: FloatArray) -> float:
    """The most frequent score; the median if several are, NaN without any."""
    values, counts = np.unique(scores, return_counts=True)
    most = values[counts == counts.max(initial=0)]
    return float(most[0] if len(most) == 1 else np.median(scores) if len(scores) else np.nan)


def _tendency(side: Reads, items: pd.DataFrame | None) -> dict[str, Any]:
    values, weights = _as_points(side.value)
    known = weights.sum(axis=1) > 0
    row: dict[str, Any] = infer.counted(known, side.cluster) | {"n_reads": int(side.parsed.sum())}
    people: _People | None = None
    why: list[Reason] = []
    if items is not None:
        people, why = _people(side, items)
    levels = _levels(side, values, people)
    row |= _shares("share", values, weights[known], levels, why)
    if items is None:
        return row | because(why, None if known.any() else Reason("no_read"))
    found = Estimate()
    both = np.zeros_like(known)
    if people is not None:
        both = known & (people.weights.sum(axis=1) > 0)
        row |= _shares("human", people.values, people.weights[both], levels, why)
        row["compares"] = people.compares
        if people.compares == _MEANS:
            values, weights = _as_points(arrays.item_means(side.value))
        steps = _cumulated(values, weights, people.values, people.weights)
        found = _distance(steps[both][:, None], side.cluster[both], infer.LEVEL)
        why += why_no_interval(both, side.cluster) if both.any() else [Reason("unrated")]
    row |= found.named("wasserstein", *infer.UNTESTED)
    alike = infer.alike(row) if len(np.unique(side.cluster[both])) > 1 else ()
    return row | because(why, alike)


_SINGLE, _MEANS = "read with rating", "mean with mean"


@dataclass(frozen=True)
class _People:
    """Ratings of the judged items: their values, and the weight of each in an item (sum 1 or 0)."""

    values: FloatArray
    weights: FloatArray
    compares: str


def _people(side: Reads, items: pd.DataFrame) -> tuple[_People | None, list[Reason]]:
    """Return the ratings of each judged item, and the reason if there are none."""
    if "human" not in items:
        return None, [Reason("no_ratings")]
    means = arrays.floats(arrays.matched(side.items, items, "human"))
    why: list[Reason] = []
    levels = _rated_on(side, items)
    other = ~np.isnan(levels) & (levels != side.n_options)
    if other.any():
        means = np.where(other, np.nan, means)
        why = [Reason("other_scale", n=int(other.sum()), all=len(other))]
    rated = ~np.isnan(means)
    if "human_ratings" in items:
        wide = ratings_of(side, items, "human_ratings")
        if not np.isnan(wide[rated]).all(axis=1).any():
            wide[~rated] = np.nan
            return _People(*_as_points(wide), _SINGLE), why
    single = (means[rated] == np.round(means[rated])).all()
    return _People(*_as_points(means), _SINGLE if single else _MEANS), why


def _rated_on(side: Reads, items: pd.DataFrame) -> FloatArray:
    """The number of levels of each judged item's rubric; NaN where it is not known."""
    rubrics = getattr(items, "rubrics", None)
    if rubrics is None or "rubric_id" not in items or not side.n_options:
        return np.full(len(side.items), np.nan)
    levels = rubrics.assign(rubric_id=rubrics["rubric_id"].astype(object))
    levels = levels.groupby("rubric_id")["score"].nunique()
    return arrays.floats(arrays.matched(side.items, items, "rubric_id").astype(object).map(levels))


def _as_points(numbers: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Distinct numbers of items (items,) or (items, several), and each item's shares of them."""
    wide = numbers.reshape(len(numbers), -1)
    values = np.unique(wide[~np.isnan(wide)])
    counts = (wide[..., None] == values).sum(axis=1)
    return values, counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)


def _levels(side: Reads, values: FloatArray, people: _People | None) -> IntArray | FloatArray:
    """The options; without orderings, the whole scores between the least and the greatest."""
    if side.n_options:
        return side.scores
    every = values if people is None else np.concatenate([values, people.values])
    rounded = np.floor(every + 0.5).astype(np.int64)
    return np.arange(rounded.min(), rounded.max() + 1) if len(rounded) else np.arange(0)


def _shares(
    name: str,
    values: FloatArray,
    weights: FloatArray,
    levels: IntArray | FloatArray,
    why: list[Reason],
) -> dict[str, float]:
    """Share of every level, items weighing the same; says in `why` what lies off the scale."""
    nearest = np.floor(levels_above(values, levels) + 0.5)
    mean = weights.mean(axis=0) if len(weights) else np.full(len(values), np.nan)
    off = float(mean[~np.isin(nearest, np.arange(len(levels)))].sum())
    if off > 0:
        what = "scores" if name == "share" else "ratings"
        ends = {"lowest": levels[0], "highest": levels[-1]}
        why.append(Reason("off_scale", share=100 * off, what=what, **ends))
    if not len(weights):
        return {f"{name}_{level:g}": np.nan for level in levels}
    return {f"{name}_{level:g}": float(mean[nearest == k].sum()) for k, level in enumerate(levels)}


def _cumulated(
    a: FloatArray, weights_a: FloatArray, b: FloatArray, weights_b: FloatArray
) -> FloatArray:
    """Difference of two cumulated distributions of each item, times the steps of their values.

    The sum of the absolute means over items is the Wasserstein distance.
    """
    grid = np.unique(np.concatenate([a, b]))
    lower = grid[:-1]
    below = weights_a @ (a[:, None] <= lower) - weights_b @ (b[:, None] <= lower)
    return np.asarray(below * np.diff(grid))


def _grid(sides: list[Reads]) -> FloatArray:
    """Every value that was given, from the lowest, and 0 and 1: equal scores are a distribution."""
    return np.unique(np.concatenate([[0.0, 1.0], *(side.value[side.parsed] for side in sides)]))


def _steps(side: Reads | None, base: Reads, grid: FloatArray) -> FloatArray:
    """Cumulated shares of every read minus the baseline's: (items of `base`, reads, steps).

    NaN where an item was not parsed. The sum of their absolute means is the distance.
    """
    before = _mean_over_reads(_cumulated_reads(base, grid))[:, None]
    if side is None:
        return np.full_like(before, np.nan)
    return at_items(base, side, _cumulated_reads(side, grid)) - before


def _cumulated_reads(side: Reads, grid: FloatArray) -> FloatArray:
    """How much of each read lies at or below each value but the last, times the next step."""
    below = side.value[..., None] <= grid[:-1]
    return np.where(side.parsed[..., None], below * np.diff(grid), np.nan)


def _mean_over_reads(values: FloatArray) -> FloatArray:
    """Mean over the parsed reads: (items, reads, several) to (items, several)."""
    return arrays.item_means(np.moveaxis(values, 1, -1))


def _shifted(
    side: Reads, base: Reads, placebo: Reads | None, grid: FloatArray, level: float
) -> dict[str, Any]:
    own, control = _steps(side, base, grid), _steps(placebo, base, grid)
    cluster, used = base.cluster, _known(own)
    row: dict[str, Any] = infer.counted(used, cluster)
    row |= _distance(own[used], cluster[used], level).named("moved", *infer.UNTESTED)
    both = used & _known(control) & (side is not placebo)
    beyond = own[both] - _mean_over_reads(control)[both, None]
    row |= _distance(beyond, cluster[both], level).named("moved_excess", *infer.UNTESTED)
    why = (why_no_interval(used, cluster), why_no_excess(side, placebo), infer.alike(row))
    return row | because(*why)


def _known(steps: FloatArray) -> Any:
    """Which items were parsed."""
    return ~np.isnan(steps).all(axis=(1, 2))


def _distance(steps: FloatArray, cluster: IntArray, level: float) -> Estimate:
    """Mean over reads of Σ |mean step|, its interval and p, from steps (items, reads, steps).

    A distance estimated from noise is above 0, and its jackknife does not know. So the interval
    begins at 0 unless the distance is rare among those with each cluster's sign drawn.
    """
    known = ~np.isnan(steps)
    sums, counts = (
        arrays.by_cluster(v, cluster) for v in (np.where(known, steps, 0.0), known * 1.0)
    )

    def distance(total: FloatArray, n: FloatArray) -> FloatArray:
        means = np.where(n > 0, total / np.maximum(n, 1), np.nan)
        return arrays.item_means(np.abs(means).sum(axis=-1))

    listed = infer.content_order(sums)
    sums, counts = sums[listed], counts[listed]
    total, n = sums.sum(axis=0), counts.sum(axis=0)
    whole = float(distance(total, n))
    found = infer.jackknife_t(whole, distance(total - sums, n - counts), level)
    if not np.isfinite(found.low):
        return Estimate(whole)
    signs = np.random.default_rng(0).choice([-1.0, 1.0], (_SIGN_DRAWS, len(sums)))
    drawn = distance(np.tensordot(signs, sums, axes=1), n)
    p = float((1 + (drawn >= whole - 1e-12).sum()) / (1 + _SIGN_DRAWS))
    return replace(found, low=max(found.low, 0.0) if p < 1 - level else 0.0, p=p)


def _pull(k: int, side: Reads, base: Reads, placebo: Reads | None) -> dict[str, Any]:
    share, share_base, nearer = _towards(k, side, base)
    edited, plain, edited_nearer = _towards(k, placebo, base)
    used = ~np.isnan(share - share_base)
    row: dict[str, Any] = {"k": k, **infer.counted(used, base.cluster)}
    row |= {"share": infer.mean_of(share[used]), "share_baseline": infer.mean_of(share_base[used])}
    control = (edited - plain, edited_nearer)
    found = (("pull", share - share_base), ("approach", nearer))
    for (name, values), other in zip(found, control, strict=True):
        row |= infer.named_mean(name, values, base.cluster)
        row |= infer.named_mean(f"{name}_excess", values - other, base.cluster)
    why = (why_no_interval(used, base.cluster), why_no_excess(side, placebo), infer.alike(row))
    return row | because(*why)


def _towards(k: int, side: Reads | None, base: Reads) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Per item of `base`: share of k on both sides, and the points by which scores come nearer."""
    before = distinct(base)
    here = np.full_like(before, np.nan) if side is None else at_items(base, side, distinct(side))
    nearer = arrays.item_means(np.abs(before - k)) - arrays.item_means(np.abs(here - k))
    return _share(here, k), _share(before, k), nearer


def _share(values: FloatArray, k: int) -> FloatArray:
    return arrays.item_means(np.where(np.isnan(values), np.nan, values == k))
