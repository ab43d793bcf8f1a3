"""Which scores does a judge like, and where do reference answers pull them (arXiv:2506.22316)?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats

from rubricnb.statistics._inference import LEVEL, UNDEFINED, alike, jackknife_t, mean_of
from rubricnb.statistics._reads import (
    By,
    FloatArray,
    IntArray,
    Reads,
    Value,
    by_cluster,
    floats,
    item_means,
    read_groups,
    same_answer,
)
from rubricnb.statistics._sides import shared_items
from rubricnb.statistics.agreement import column_of
from rubricnb.statistics.stability import (
    BASELINE,
    Condition,
    distinct,
    placebo_of,
    strata,
    why_no_interval,
    with_interval,
)


def score_tendency(
    judgments: pd.DataFrame,
    items: pd.DataFrame | None = None,
    by: By = None,
    value: Value = "score",
    human: str = "human",
) -> pd.DataFrame:
    """Say how often a judge gives each score, and how far that is from people.

    Parameters
    ----------
    judgments
        Judgments under any conditions.
    items
        Items with the column `human`, on the scale of the options. Default: no comparison.
    by
        Columns to group by; by default judge, dataset, design and every condition column present.
    value
        ``score``; or ``expected_score``: the mean probability of every score instead of counts.
    human
        Which ratings: ``human`` or ``gold``.

    Returns
    -------
    DataFrame
        One row a group: its columns, ``n_items, n_clusters, n_reads``, ``share_1…n`` (they sum to
        1), ``human_1…n`` (ratings rounded half up, of the same items), ``wasserstein``, the
        distance of the two distributions in score points (0: the same; single scores may still
        all differ), with a 95 % cluster jackknife-t interval ``_low, _high``, and ``reason``.

    Notes
    -----
    arXiv:2506.22316, Equation 4 and Figure 5, which prints counts. An estimated distance cannot be
    0: read it beside that of the baseline.

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
    rows = []
    for key, part in read_groups(judgments, by, value):
        row = {**key, **_tendency(part, None if items is None else _ratings(part, items, human))}
        rows.append(row)
    return pd.DataFrame(rows)


def tendency_shift(
    judgments: pd.DataFrame,
    baseline: Condition = BASELINE,
    by: By = None,
    value: Value = "score",
    level: float = LEVEL,
) -> pd.DataFrame:
    """Measure how far every condition moves a judge's distribution of scores.

    Parameters
    ----------
    judgments, baseline, by
        As in `rubricnb.statistics.stability`.
    value
        ``score``; or ``expected_score``: mean probabilities instead of counts.
    level
        Of the intervals. For the largest of m rows take 1 − .05/m.

    Returns
    -------
    DataFrame
        One row per condition other than the baseline: its columns, ``n_items, n_clusters``, and
        ``moved``, the Wasserstein distance in score points between the distribution of each of its
        reads and the baseline's on the same items, mean over reads; ``moved_placebo``, the same of
        the meaning-free edits; ``moved_excess``, the difference on the items that both have.
        ``moved`` and ``moved_excess`` have cluster jackknife-t intervals ``_low, _high``.
        ``reason``.

    Notes
    -----
    arXiv:2506.22316, §4.2 (3), which compares heat maps by eye. Noise moves a distribution too, so
    that ``moved`` is never 0: read it beside the placebo's.

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
    for key, base, others in strata(judgments, baseline, by, value):
        steps = {name: _steps(side, base) for name, side in others.items()}
        placebo = steps.get(placebo_of(baseline))
        for name, own in steps.items():
            row = {**key, **dict(zip(baseline, name, strict=True))}
            rows.append(row | _shifted(own, placebo, base.cluster, level))
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
        * ``pull_placebo, approach_placebo``: the same of the meaning-free edits;
        * ``pull_excess, approach_excess``: value minus placebo, item by item.

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
    place = list(baseline).index("reference_score")
    rows = []
    for key, base, others in strata(judgments, baseline, by, "score"):
        for name, side in sorted(others.items(), key=lambda other: str(other[0][place])):
            rest = [v for i, v in enumerate(name) if i != place]
            if rest == [v for i, v in enumerate(baseline.values()) if i != place]:
                row = {**key, **dict(zip(baseline, name, strict=True))}
                if str(name[place]).isdigit():
                    k = int(name[place])
                    rows.append(row | _pull(k, side, base, others.get(placebo_of(baseline))))
    return pd.DataFrame(rows)


def gold(judgments: pd.DataFrame) -> pd.DataFrame:
    """Make gold scores of the reads of a stronger judge: their majority.

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
    found = list(read_groups(judgments, None, "score"))
    if len(found) > 1:
        keys = pd.DataFrame([key for key, _ in found])
        several = [name for name in keys if keys[name].nunique() > 1]
        raise ValueError(
            f"gold scores are made of one judge's reads under one condition, but judgments have "
            f"several values of {', '.join(several)}: filter them first"
        )
    side = found[0][1]
    columns = [c for c in ("item_id", "dataset", "criterion") if c in side.items]
    asked = (side.parsed & ~same_answer(side)).sum(axis=1)
    rows = [_majority(row[~np.isnan(row)]) for row in side.value]
    return side.items[columns].assign(
        **{name: [row[name] for row in rows] for name in ("gold", "gold_ratings")},
        n_asked=asked,
        n_distinct=[len(set(row["gold_ratings"])) for row in rows],
        reason=["" if row["gold_ratings"] else "no read was parsed" for row in rows],
    )


def _majority(scores: FloatArray) -> dict[str, Any]:
    values, counts = np.unique(scores, return_counts=True)
    most = values[counts == counts.max()] if len(values) else values
    gold = most[0] if len(most) == 1 else np.median(scores) if len(scores) else np.nan
    return {"gold": float(gold), "gold_ratings": tuple(int(s) for s in scores)}


def _ratings(side: Reads, items: pd.DataFrame, human: str) -> FloatArray | str:
    """The rating of each judged item, or why there is none to compare with."""
    if human not in items:
        return f"items have no {human!r} ratings"
    rubrics = getattr(items, "rubrics", None)
    if rubrics is not None:
        used = rubrics["rubric_id"].isin(items["rubric_id"].unique())
        levels = rubrics.loc[used, "score"].max()
        if levels != side.n_options:
            return f"ratings are on 1..{levels}, the options on 1..{side.n_options}"
    return floats(column_of(side, items, human))


def _tendency(side: Reads, ratings: FloatArray | str | None) -> dict[str, Any]:
    counts = _score_counts(side)
    row: dict[str, Any] = {
        "n_items": int((counts.sum(axis=1) > 0).sum()),
        "n_clusters": len(np.unique(side.cluster[counts.sum(axis=1) > 0])),
        "n_reads": int(side.parsed.sum()),
    }
    reads, scores = counts.sum(), np.arange(1, side.n_options + 1)
    shares = counts.sum(axis=0) / reads if reads else np.full(len(scores), np.nan)
    row |= {f"share_{s}": float(share) for s, share in zip(scores, shares, strict=True)}
    if ratings is None:
        return row | {"reason": "" if reads else "no read was parsed"}
    known = np.zeros(len(counts), bool)
    if not isinstance(ratings, str):
        known = ~np.isnan(ratings) & (counts.sum(axis=1) > 0)
        rounded = np.floor(ratings[known] + 0.5)
        row |= {f"human_{s}": mean_of((rounded == s).astype(float)) for s in scores}
    if isinstance(ratings, str) or not known.any():
        why = ratings if isinstance(ratings, str) else "no item has both a score and a rating"
        names = ("wasserstein", "wasserstein_low", "wasserstein_high")
        return row | dict.fromkeys(names, np.nan) | {"reason": why}
    cluster = np.unique(side.cluster[known], return_inverse=True)[1]
    distance, interval = _distance_to(ratings[known], counts[known], cluster)
    row |= {"wasserstein": distance, "wasserstein_low": max(interval[0], 0.0)
            if not np.isnan(interval[0]) else np.nan, "wasserstein_high": interval[1]}  # fmt: skip
    doubts = why_no_interval(known, side.cluster), alike(row) if cluster.max() else ""
    return row | {"reason": "; ".join(filter(None, doubts))}


def _score_counts(side: Reads) -> FloatArray:
    """Reads of each item by score, or their summed probabilities: shape (items, n)."""
    return np.asarray(_read_shares(side).sum(axis=1))


def _read_shares(side: Reads) -> FloatArray:
    """Score of every read as 0 and 1, or its probabilities: shape (items, reads, n)."""
    scores = range(1, side.n_options + 1)
    if side.probability is None:
        return np.stack([side.value == s for s in scores], axis=-1) * 1.0
    shown = side.orderings[np.maximum(side.order, 0)]
    p = np.where(side.parsed[..., None], side.probability, 0.0)
    return np.stack([np.where(shown == s, p, 0).sum(axis=2) for s in scores], axis=-1)


def _steps(side: Reads, base: Reads) -> FloatArray:
    """Cumulated shares of every read minus the baseline's: (items of `base`, reads, n − 1).

    NaN where an item was not parsed. The sum of their absolute means is the distance.
    """
    rows_base, rows = shared_items(base, side)
    shares = np.where(side.parsed[..., None], _read_shares(side), np.nan)[rows]
    before = item_means(np.moveaxis(np.where(base.parsed[..., None], _read_shares(base), np.nan),
                                    1, -1))[rows_base]  # fmt: skip
    out = np.full((len(base.items), *shares.shape[1:]), np.nan)
    out[rows_base] = np.cumsum(shares - before[:, None], axis=-1)
    return out[..., :-1]


def _shifted(
    own: FloatArray, placebo: FloatArray | None, cluster: IntArray, level: float
) -> dict[str, Any]:
    used = ~np.isnan(own).all(axis=(1, 2))
    row: dict[str, Any] = {
        "n_items": int(used.sum()),
        "n_clusters": len(np.unique(cluster[used])),
    }
    whole, left = _moved(own[used], cluster[used])
    low, high, *_ = jackknife_t(whole, left, level)
    row |= {"moved": whole, "moved_low": float(np.maximum(low, 0.0)), "moved_high": high}
    row |= dict.fromkeys(
        ("moved_placebo", "moved_excess", "moved_excess_low", "moved_excess_high"), np.nan
    )
    why = [why_no_interval(used, cluster)]
    if placebo is None:
        why.append("no placebo reads to compare with")
    elif placebo is own:
        row["moved_placebo"] = whole
        why.append("this is the placebo")
    else:
        row["moved_placebo"] = _moved(placebo, cluster)[0]
        both = used & ~np.isnan(placebo).all(axis=(1, 2))
        (a, left_a), (b, left_b) = (_moved(v[both], cluster[both]) for v in (own, placebo))
        low, high, *_ = jackknife_t(a - b, left_a - left_b, level)
        row |= {"moved_excess": a - b, "moved_excess_low": low, "moved_excess_high": high}
    why.append(alike(row) if row["n_clusters"] > 1 else "")
    return row | {"reason": "; ".join(filter(None, why))}


def _moved(steps: FloatArray, cluster: IntArray) -> tuple[float, FloatArray]:
    """Mean distance over the reads, of all clusters and without each in turn."""
    number = np.unique(cluster, return_inverse=True)[1]
    known = ~np.isnan(steps)
    sums, counts = (by_cluster(v, number) for v in (np.where(known, steps, 0.0), known * 1.0))

    def distance(total: FloatArray, n: FloatArray) -> FloatArray:
        means = np.where(n > 0, total / np.maximum(n, 1), np.nan)
        return item_means(np.abs(means).sum(axis=-1))

    total, n = sums.sum(axis=0), counts.sum(axis=0)
    return float(distance(total, n)), distance(total - sums, n - counts)


def _distance_to(
    ratings: FloatArray, counts: FloatArray, cluster: Any
) -> tuple[float, tuple[float, ...]]:
    scores = np.arange(1, counts.shape[1] + 1)
    total, own = counts.sum(axis=0), by_cluster(counts, cluster)
    distance = float(stats.wasserstein_distance(scores, ratings, total))
    if len(own) < 2:
        return distance, UNDEFINED
    left = [
        stats.wasserstein_distance(scores, ratings[cluster != g], total - own[g])
        for g in range(len(own))
    ]
    return distance, jackknife_t(distance, np.array(left))


def _pull(k: int, side: Reads, base: Reads, placebo: Reads | None) -> dict[str, Any]:
    share, share_base, nearer, used = _towards(k, side, base)
    row: dict[str, Any] = {
        "k": k,
        "n_items": int(used.sum()),
        "n_clusters": len(np.unique(base.cluster[used])),
        "share": mean_of(share[used]),
        "share_baseline": mean_of(share_base[used]),
    }
    control = np.full((2, len(used)), np.nan)
    why = [why_no_interval(used, base.cluster)]
    if placebo is None:
        why.append("no placebo reads to compare with")
    else:
        edited, plain, edited_nearer, _ = _towards(k, placebo, base)
        control = np.where(used, [edited - plain, edited_nearer], np.nan)
    for name, values, other in zip(
        ("pull", "approach"), (share - share_base, nearer), control, strict=True
    ):
        row |= with_interval(name, values, base.cluster)
        row[f"{name}_placebo"] = mean_of(other[~np.isnan(other)])
        row |= with_interval(f"{name}_excess", values - other, base.cluster)
    why.append(alike(row) if row["n_clusters"] > 1 else "")
    return row | {"reason": "; ".join(filter(None, why))}


def _towards(k: int, side: Reads, base: Reads) -> Sequence[Any]:
    """Per item of `base`: share of k on both sides, points nearer to k, whether in both."""
    rows_base, rows = shared_items(base, side)
    out = np.full((3, len(base.items)), np.nan)
    here, before = distinct(side)[rows], distinct(base)[rows_base]
    out[0, rows_base] = _share(here, k)
    out[1, rows_base] = _share(before, k)
    out[2, rows_base] = item_means(np.abs(before - k)) - item_means(np.abs(here - k))
    return [*out, ~np.isnan(out).any(axis=0)]


def _share(values: FloatArray, k: int) -> FloatArray:
    return item_means(np.where(np.isnan(values), np.nan, values == k))
