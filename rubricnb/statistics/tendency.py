"""Which scores does a judge prefer, and do references move them (2506.22316)?"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pandas as pd

from rubricnb.core.estimates import intervals as infer
from rubricnb.core.estimates import reads as arrays
from rubricnb.core.estimates.intervals import Estimate
from rubricnb.core.estimates.losses import open_sign
from rubricnb.core.estimates.reads import By, Reads
from rubricnb.core.estimates.reasons import Reason, Reasons, because, because_each
from rubricnb.core.permutation import levels_above
from rubricnb.core.support.counting import binned
from rubricnb.core.support.types import FloatArray, IntArray, Mask, Row
from rubricnb.statistics.human_agreement import ratings_of, unscored
from rubricnb.statistics.scoring_bias import (
    BASELINE,
    Condition,
    at_items,
    distinct,
    lost_to_both,
    strata,
    why_no_excess,
    why_no_interval,
)

_SIGN_DRAWS = 999
# more distinct scores are compared in equal parts of their range
_MOST_VALUES, _PARTS = 512, 128
# numbers worked on at once: small products on several threads wait for them
_BLOCK = 10_000_000


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
        Items with the column ``human``, on the scale of the options, and where known
        the single ratings behind it (``human_ratings``). Default: no comparison.
    by
        Columns to group by; by default judge, dataset, design and every condition
        column present.

    Returns
    -------
    DataFrame
        One row a group: its columns, ``n_items, n_clusters, n_reads``, and, every item
        counting once whatever the number of its reads and ratings,

        * ``share_1…n`` of the reads and ``human_1…n`` of the ratings of the same items,
          halves rounded up; without orderings, the scores that occur. Where some lie
          off the scale, the shares of the others sum to less than 1 and ``reason`` says
          how many;
        * ``compares``: ``read with rating`` where single ratings are known (or all
          ratings are whole), else ``mean with mean``: a mean of raters spreads less
          than a rating, so that single reads would differ from it without any tendency;
        * ``wasserstein``: the distance of these two distributions in score points,
          nothing rounded (0: the same; single scores may still all differ), with a 95 %
          interval ``_low, _high``: cluster jackknife-t, from 0 on unless sign flips of
          the clusters refute 0;
        * ``reason``.

    Notes
    -----
    arXiv:2506.22316, Equation 4 and Figure 5, which prints counts. An estimated
    distance is never 0: read it with its interval, beside that of the baseline. Means
    of more reads spread less, too. Of more than 512 distinct scores and ratings, the
    difference of the cumulated distributions is integrated over each of 128 equal parts
    of their range before its size is taken: the distance is a little too small if the
    two cross within a part, and exact otherwise.

    Examples
    --------
    >>> import pandas as pd
    >>> items = pd.DataFrame({"item_id": list("abcd"), "human": [1.0, 2, 2, 3]})
    >>> judgments = pd.DataFrame({
    ...     "item_id": list("abcd"), "cluster_id": list("abcd"), "ordering_index": 1,
    ...     "ordering": "1-2-3", "score": [2, 3, 3, 3]})
    >>> table = score_tendency(judgments, items)
    >>> table[["share_2", "share_3", "human_2", "wasserstein"]]
       share_2  share_3  human_2  wasserstein
    0     0.25     0.75      0.5         0.75
    """
    if items is not None:
        arrays.refuse_ambiguous(judgments, items)
    return arrays.row_per_group(
        judgments, by, "score", lambda reads: _tendency(reads, items)
    )


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
        As in `rubricnb.statistics.scoring_bias`.
    level
        Of the intervals. For the largest of m rows take 1 − .05/m.

    Returns
    -------
    DataFrame
        One row per condition other than the baseline: its columns, ``n_items,
        n_clusters``, and ``moved``, the Wasserstein distance in score points between
        the distribution of each of its reads and the baseline's on the same items, mean
        over reads; ``moved_excess``, the distance to the distribution under the
        meaning-free edits instead of the baseline's, on the items that both have. Both
        have intervals ``_low, _high``: cluster jackknife-t, from 0 on unless sign flips
        of the clusters refute 0. ``reason``.

    Notes
    -----
    arXiv:2506.22316, §4.2 (3), which compares heat maps by eye. Noise moves a
    distribution too, so that ``moved`` is never 0: read it beside ``moved_excess``.
    More than 512 distinct scores are compared in parts, as in `score_tendency`.

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
        grid = _grid(base.value, *(side.value for _, side in others))
        for condition, side in others:
            edited_reads, cluster = at_items(base, side, side.value), base.cluster
            edited = np.full((len(edited_reads), 1), np.nan)
            if placebo is not None and side is not placebo:
                edited = at_items(base, placebo, placebo.value)
            plain = base.parsed.any(axis=1)
            used = plain & ~np.isnan(edited_reads).all(axis=1)
            both = used & ~np.isnan(edited).all(axis=1)
            row: Row = infer.counted(used, cluster)
            for name, other, of in (
                ("moved", base.value, used),
                ("moved_excess", edited, both),
            ):
                reads = edited_reads[of].T[..., None]
                distance = _of_each_read(reads, other[of], cluster[of], grid, level)
                row |= distance.named(name, *infer.UNTESTED)
            why = (
                why_no_interval(used, cluster),
                why_no_excess(side, placebo),
                infer.alike(row),
                lost_to_both(side, base, placebo),
            )
            rows.append({**key, **condition} | row | because(*why))
    return pd.DataFrame(rows)


def reference_pull(
    judgments: pd.DataFrame, baseline: Condition = BASELINE, by: By = None
) -> pd.DataFrame:
    """Measure how far a reference answer of score k draws scores to k.

    Parameters
    ----------
    judgments
        Judgments of the baseline and of conditions that differ from it in
        ``reference_score``.
    baseline, by
        As in `rubricnb.statistics.scoring_bias`.

    Returns
    -------
    DataFrame
        One row a reference score: the condition's columns, ``k`` (``reference_score``),
        ``n_items, n_clusters``, and, over the items parsed under both,

        * ``share, share_baseline`` of scores equal to k, and their difference ``pull``;
        * ``approach``: score points by which scores come nearer to k (negative: they
          move away);
        * ``pull_excess, approach_excess``: value minus that of the neutral edits, item
          by item.

        ``pull``, ``approach`` and their excesses have 95 % cluster t intervals ``_low,
        _high`` and ``_p``. Two reads of one prompt have a pull and an approach of 0 on
        average, so there is no re-ask to take off. ``reason``.

    Notes
    -----
    arXiv:2506.22316, §4.3 (3), which shows the pull as a heat map. `plan` shows no item
    itself as its reference, so the items differ between k: compare rows by ``pull``,
    not by ``share``.

    Examples
    --------
    >>> import pandas as pd
    >>> judgments = pd.DataFrame({
    ...     "item_id": list("abcd" "abcd"), "cluster_id": list("abcd" "abcd"),
    ...     "reference_score": ["none"] * 4 + ["2"] * 4, "ordering_index": 1,
    ...     "ordering": "1-2-3-4-5", "score": [1, 2, 4, 5, 2, 2, 2, 4]})
    >>> table = reference_pull(judgments, {"reference_score": "none"})
    >>> table[["k", "share", "pull", "approach"]]
       k  share  pull  approach
    0  2   0.75   0.5       1.0
    """
    rows = []
    for key, base, placebo, others in strata(judgments, baseline, by, "score"):
        for condition, side in sorted(
            others, key=lambda other: str(other[0]["reference_score"])
        ):
            k = condition["reference_score"]
            if condition == {**baseline, "reference_score": k} and str(k).isdigit():
                rows.append({**key, **condition} | _pull(int(k), side, base, placebo))
    return pd.DataFrame(rows)


def gold(judgments: pd.DataFrame) -> pd.DataFrame:
    """Make gold scores from the reads of a stronger judge: their majority.

    Parameters
    ----------
    judgments
        Reads of one judge under one condition; the paper takes three of GPT-4.1 with
        the full-mark reference: ``plan(items, fixed(5, 3), reference="auto")``.

    Returns
    -------
    DataFrame
        One row an item: ``item_id``, ``criterion`` where judgments have it, ``gold``
        (the most frequent score; the median if several are), ``gold_ratings`` (the
        parsed reads), ``n_asked`` (reads that do not copy another one: three reads of a
        greedy judge are one), ``n_distinct`` (different scores) and ``reason``.

    Raises
    ------
    ValueError
        The reads are of several judges or conditions.

    Notes
    -----
    arXiv:2506.22316, §3.3. To take them as truth: ``items.assign(human=…)``, joined by
    item_id.

    Examples
    --------
    >>> import pandas as pd
    >>> reads = pd.DataFrame({
    ...     "item_id": list("aaabbb"), "cluster_id": list("aaabbb"), "design": "fixed",
    ...     "ordering_index": [1, 2, 3] * 2, "ordering": "1-2-3-4-5",
    ...     "score": [4, 4, 5, 1, 5, 3]})
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
        gold_ratings=[
            tuple(int(s) if s == int(s) else float(s) for s in row) for row in given
        ],
        n_asked=asked,
        n_distinct=[len(np.unique(scores)) for scores in given],
        **because_each(
            *(None if len(scores) else Reason("no_read") for scores in given)
        ),
    )


def _majority(scores: FloatArray) -> float:
    """The most frequent score; the median if several are, NaN without any."""
    if not len(scores):
        return np.nan
    values, counts = np.unique(scores, return_counts=True)
    most = values[counts == counts.max()]
    return float(most[0] if len(most) == 1 else np.median(scores))


def _tendency(side: Reads, items: pd.DataFrame | None) -> Row:
    has_reads = side.parsed.any(axis=1)
    row: Row = infer.counted(has_reads, side.cluster) | {
        "n_reads": int(side.parsed.sum())
    }
    people: _People | None = None
    why: list[Reason] = []
    if items is not None:
        people, why = _people(side, items)
    levels = _levels(side, people)
    row |= _shares("share", side.value[has_reads], levels, why)
    if items is None:
        return row | because(why, None if has_reads.any() else Reason("no_read"))
    distance, lost = Estimate(), Reasons()
    both: Mask = np.zeros(has_reads.shape, bool)
    if people is not None:
        lost = unscored(side, arrays.item_means(people.ratings))
        both = np.logical_and(has_reads, ~np.isnan(people.ratings).all(axis=1))
        row |= _shares("human", people.ratings[both], levels, why)
        row["compares"] = people.compares
        is_mean = people.compares == _MEANS
        scores = arrays.item_means(side.value)[:, None] if is_mean else side.value
        given = scores[both], people.ratings[both]
        distance = _of_each_read(given[:1], given[1], side.cluster[both], _grid(*given))
        why += (
            why_no_interval(both, side.cluster) if both.any() else [Reason("unrated")]
        )
    row |= distance.named("wasserstein", *infer.UNTESTED)
    alike = infer.alike(row) if len(np.unique(side.cluster[both])) > 1 else ()
    return row | because(why, alike, lost)


_SINGLE, _MEANS = "read with rating", "mean with mean"


class _People(NamedTuple):
    """Ratings of the judged items, shape (items, ratings): NaN where there is none."""

    ratings: FloatArray
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
        wide = ratings_of(side, items)
        if not np.isnan(wide[rated]).all(axis=1).any():
            wide[~rated] = np.nan
            return _People(wide, _SINGLE), why
    single = (means[rated] == np.round(means[rated])).all()
    return _People(means[:, None], _SINGLE if single else _MEANS), why


def _rated_on(side: Reads, items: pd.DataFrame) -> FloatArray:
    """The number of levels of each judged item's rubric; NaN where it is not known."""
    rubrics = getattr(items, "rubrics", None)
    if rubrics is None or "rubric_id" not in items or not side.n_options:
        return np.full(len(side.value), np.nan)
    levels = rubrics.assign(rubric_id=rubrics["rubric_id"].astype(object))
    levels = levels.groupby("rubric_id")["score"].nunique()
    return arrays.floats(
        arrays.matched(side.items, items, "rubric_id").astype(object).map(levels)
    )


def _levels(side: Reads, people: _People | None) -> IntArray | FloatArray:
    """The options; without orderings, the whole scores from least to greatest."""
    if side.n_options:
        return side.scores
    given = [side.value.ravel()] + ([] if people is None else [people.ratings.ravel()])
    every = np.concatenate(given)
    rounded = np.floor(every[~np.isnan(every)] + 0.5).astype(np.int64)
    return np.arange(rounded.min(), rounded.max() + 1) if len(rounded) else np.arange(0)


def _shares(
    name: str, given: FloatArray, levels: IntArray | FloatArray, why: list[Reason]
) -> dict[str, float]:
    """Share of each level, items weighing the same; `why`: what is off the scale."""
    if not len(given):
        return {f"{name}_{level:g}": np.nan for level in levels}
    numbers, weights, _ = _weighted(given)
    values, code = np.unique(numbers, return_inverse=True)
    nearest = np.floor(levels_above(values, levels) + 0.5)
    mean = binned(code, weights, len(values)) / len(given)
    off = float(mean[~np.isin(nearest, np.arange(len(levels)))].sum())
    if off > 0:
        what = "scores" if name == "share" else "ratings"
        extreme = {"lowest": levels[0], "highest": levels[-1]}
        why.append(Reason("off_scale", share=100 * off, what=what, **extreme))
    return {
        f"{name}_{level:g}": float(mean[nearest == k].sum())
        for k, level in enumerate(levels)
    }


def _weighted(given: FloatArray) -> tuple[FloatArray, FloatArray, IntArray]:
    """The items' numbers (items, several), their shares in an item, their items."""
    known = ~np.isnan(given)
    item = np.nonzero(known)[0]
    return given[known], 1 / known.sum(axis=1)[item], item


def _grid(*given: FloatArray) -> FloatArray:
    """Ends of the parts in which distributions are compared: all given numbers.

    Where these are more than `_MOST_VALUES`, those of `_PARTS` equal parts instead.
    """
    values = np.unique(
        np.concatenate([numbers[~np.isnan(numbers)] for numbers in given])
    )
    if len(values) < 2:  # equal scores are a distribution
        values = np.unique(np.append(values, [0.0, 1.0]))
    if len(values) <= _MOST_VALUES:
        return values
    return np.linspace(values[0], values[-1], _PARTS + 1)


def _cumulated(
    given: FloatArray, group: IntArray, n_groups: int, grid: FloatArray
) -> FloatArray:
    """Integral of each group's cumulated weights over a grid: (groups, parts)."""
    numbers, weights, item = _weighted(given)
    n = len(grid) - 1
    part = np.minimum(np.searchsorted(grid, numbers, side="right") - 1, n - 1)
    cell = group[item] * n + part
    own = binned(cell, weights * (grid[part + 1] - numbers), n_groups * n)
    count = binned(cell, weights, n_groups * n).reshape(n_groups, n).astype(float)
    below = np.cumsum(count, axis=1) - count
    below *= np.diff(grid)
    below += own.reshape(n_groups, n)
    return below


def _of_each_read(
    reads: Iterable[FloatArray],
    other: FloatArray,
    cluster: IntArray,
    grid: FloatArray,
    level: float = infer.LEVEL,
) -> Estimate:
    """Mean distance of a read, numbers about items (items, several), to all others."""
    cluster = np.unique(cluster, return_inverse=True)[1]
    n_clusters, sums, counts = len(np.unique(cluster)), [], []
    for read in reads:
        has_score = ~np.isnan(read).all(axis=1)
        group = cluster[has_score]
        own, before = (
            _cumulated(given[has_score], group, n_clusters, grid)
            for given in (read, other)
        )
        sums.append(own - before)
        counts.append(binned(group, minlength=n_clusters).astype(float))
    return _distance(np.stack(sums, axis=1), np.stack(counts, axis=1)[..., None], level)


def _distance(sums: FloatArray, counts: FloatArray, level: float) -> Estimate:
    """Mean over reads of Σ |mean part|, its interval and p, from the clusters' sums.

    Shapes: `sums` (clusters, reads, parts), `counts` of items (clusters, reads, 1). A
    distance estimated from noise is above 0, and its jackknife does not know. So the
    interval begins at 0 unless the distance is rare among those with each cluster's
    sign drawn.
    """

    def distance(total: FloatArray, n: FloatArray) -> FloatArray:
        return arrays.item_means(np.abs(arrays.averages(total, n)).sum(axis=-1))

    content = sums
    # a sort by each of many columns would be most of the time
    if sums.shape[-1] >= _PARTS:
        content = sums @ np.vander(np.linspace(0.0, 1.0, sums.shape[-1]), 3)
    listed = infer.content_order(content)
    sums, counts = sums[listed], counts[listed]
    total, n = sums.sum(axis=0), counts.sum(axis=0)
    whole = float(distance(total, n))
    blocks = np.array_split(np.arange(len(sums)), sums.size // _BLOCK + 1)
    left = np.concatenate([distance(total - sums[b], n - counts[b]) for b in blocks])
    found = infer.jackknife_t(whole, left, level)
    if not np.isfinite(found.low):
        return Estimate(whole)
    drawn, rng = [], np.random.default_rng(0)
    for rows in np.array_split(
        np.arange(_SIGN_DRAWS), _SIGN_DRAWS * len(sums) // _BLOCK + 1
    ):
        signs = rng.choice([-1.0, 1.0], (len(rows), len(sums)))
        drawn.append(distance(np.tensordot(signs, sums, axes=1), n))
    p = float((1 + (np.concatenate(drawn) >= whole - 1e-12).sum()) / (1 + _SIGN_DRAWS))
    return replace(found, low=max(found.low, 0.0) if p < 1 - level else 0.0, p=p)


def _pull(k: int, side: Reads, base: Reads, placebo: Reads | None) -> Row:
    share, share_base, nearer = _towards(k, side, base)
    edited, plain, edited_nearer = _towards(k, placebo, base)
    used = ~np.isnan(share - share_base)
    row: Row = {"k": k, **infer.counted(used, base.cluster)}
    row |= {
        "share": infer.mean_of(share[used]),
        "share_baseline": infer.mean_of(share_base[used]),
    }
    for name, values, other in (
        ("pull", share - share_base, edited - plain),
        ("approach", nearer, edited_nearer),
    ):
        row |= infer.named_mean(name, values, base.cluster)
        row |= infer.named_mean(f"{name}_excess", values - other, base.cluster)
    ends = row["pull_low"], row["pull_high"]
    return row | because(
        why_no_interval(used, base.cluster),
        why_no_excess(side, placebo),
        infer.alike(row),
        lost_to_both(side, base, placebo),
        open_sign(share, share_base, (0.0, 1.0), ends, "pull"),
    )


def _towards(
    k: int, side: Reads | None, base: Reads
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """For each item of `base`: share of k on both sides, and points nearer to it."""
    before = distinct(base)
    here = (
        np.full_like(before, np.nan)
        if side is None
        else at_items(base, side, distinct(side))
    )
    nearer = arrays.item_means(np.abs(before - k)) - arrays.item_means(np.abs(here - k))
    shares = [
        arrays.item_means(np.where(np.isnan(values), np.nan, values == k))
        for values in (here, before)
    ]
    return shares[0], shares[1], nearer
