"""Does a criterion's score depend on where the criterion stands in the prompt? (Setting 2)"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from scipy import special, stats

from rubricnb.statistics._inference import (
    few_clusters,
    jackknife_se,
    mean_of,
    mean_t,
    noncentrality,
)
from rubricnb.statistics._reads import (
    By,
    FloatArray,
    IntArray,
    Value,
    by_cluster,
    clusters_of,
    combine,
    floats,
    grouping,
    groups,
    require,
    values_of,
)
from rubricnb.statistics.equivalence import MARGINS, equivalence
from rubricnb.statistics.families import benjamini_hochberg

PERMUTATIONS = 1_000
_STATISTICS = (
    *("delta_pos", "delta_pos_null", "delta_pos_p", "friedman", "p", "kendall_w"),
    *("friedman_cluster", "p_cluster", "q", "p_within", "p_equivalent", "mde"),
)


def criterion_order(
    judgments: pd.DataFrame, by: By = None, value: Value = "score", seed: int = 0
) -> pd.DataFrame:
    """Test and measure, for each criterion, the effect of its position among the criteria.

    Parameters
    ----------
    judgments
        Judgments of Setting 2 (`plan_criteria`), with the column ``criterion_position``.
    by
        Columns to group by, besides the criterion; by default every condition column.
    value
        ``score`` or ``expected_score``.
    seed
        Of the permutations behind `delta_pos_null`.

    Returns
    -------
    DataFrame
        One row a group and criterion. A block is a text; its reads with the criterion at one
        position (forward and reverse) are averaged first. Blocks without every position are dropped
        (``n_dropped``).

        * ``delta_pos``: largest minus smallest mean score over positions, in score points;
          ``delta_pos_null``: its mean when positions are permuted within clusters (1,000 draws; it
          is never 0), ``delta_pos_p``: share of draws with as large a gap;
        * ``mean_1…k``: mean score at each position;
        * ``friedman, df, p``: the paper's test over blocks; ``p_adjusted`` (Benjamini–Hochberg over
          the returned rows); ``kendall_w`` from 0 to 1;
        * ``friedman_cluster, p_cluster``: the same with the blocks of a cluster averaged first;
        * ``q, p_within``: within-cluster permutation test of the means, in closed form, which holds
          when blocks share a text; ``p_within_adjusted``;
        * ``p_equivalent`` (TOST: every two positions within ±0.1 points); ``mde`` (the gap between
          two positions, the others half-way, that p_within finds with 80 % power at 5 %);
        * ``n_blocks, n_dropped, n_clusters, n_reads``, ``reason``.

    Raises
    ------
    ValueError
        A criterion stood at one position only (a fixed order).

    Notes
    -----
    arXiv:2602.02219v2, §4.4, §5.5, Table 5. In cyclic orders a criterion always has the same
    neighbour before it, so "position" is position in that context; `williams` separates the two.

    Examples
    --------
    >>> import pandas as pd
    >>> judgments = pd.DataFrame({
    ...     "item_id": list("aabbccdd"), "cluster_id": list("aabbccdd"), "design": "balanced",
    ...     "criterion": "coherence", "criterion_position": [1, 2] * 4,
    ...     "score": [3, 2, 4, 2, 3, 3, 5, 4]})
    >>> criterion_order(judgments)[["criterion", "delta_pos", "friedman", "kendall_w"]]
       criterion  delta_pos  friedman  kendall_w
    0  coherence        1.0       3.0       0.75
    """
    needed = ["item_id", "cluster_id", "criterion", "criterion_position", value]
    require(judgments, needed, "judgments")
    names = grouping(judgments, by, without=["criterion"])
    extra = [c for c in ("dataset", "status") if c in judgments]
    slim = judgments[list(dict.fromkeys([*names, *extra, *needed]))]
    rows = []
    for key, part in groups(slim, [*names, "criterion"]):
        rows.append({**key, **_criterion(key, part, value, seed)})
    result = pd.DataFrame(rows)
    for column, at in (("p", "p_adjusted"), ("p_within", "p_within_adjusted")):
        result.insert(result.columns.get_loc(column) + 1, at, benjamini_hochberg(result[column]))
    return result


def counting_along(judgments: pd.DataFrame, by: By = None) -> pd.DataFrame:
    """Count how often a score is the number of the criterion's place: 1 for the first, 2 for …

    A judge that does not read may count along. Some scores equal their place by chance.

    Parameters
    ----------
    judgments
        As in `criterion_order`. Places beyond the highest score are left out.
    by
        Columns to group by; by default every condition column. Criteria are taken together.

    Returns
    -------
    DataFrame
        One row a group: ``share`` of the reads whose score is the number of the place, with a 95 %
        Wilson interval ``share_low, share_high``; ``chance``, the mean of that share when the
        places of each text and criterion are permuted (exact, nothing is drawn: each read's score
        is replaced by the scores that the text got at all places); ``excess``, share minus chance,
        with ``excess_low, excess_high`` and ``p`` (against 0); ``n_reads, n_clusters``, ``reason``.

    Raises
    ------
    ValueError
        Every criterion stood at one place only (a fixed order).

    Examples
    --------
    >>> import pandas as pd
    >>> judgments = pd.DataFrame({
    ...     "item_id": list("aabbcc"), "cluster_id": list("aabbcc"), "design": "balanced",
    ...     "criterion": "coherence", "criterion_position": [1, 2] * 3, "n_options": 5,
    ...     "score": [1, 2, 1, 2, 1, 1]})
    >>> counting_along(judgments)[["share", "chance", "excess"]].round(2)
       share  chance  excess
    0   0.83     0.5    0.33
    """
    needed = ["item_id", "cluster_id", "criterion", "criterion_position", "n_options", "score"]
    require(judgments, needed, "judgments")
    names = grouping(judgments, by, without=["criterion"])
    extra = [c for c in ("dataset", "status") if c in judgments]
    slim = judgments[list(dict.fromkeys([*names, *extra, *needed]))]
    return pd.DataFrame([_counting_along(key, part) for key, part in groups(slim, names)])


def _counting_along(key: dict[str, Any], part: pd.DataFrame) -> dict[str, Any]:
    block = combine(part[c] for c in ("dataset", "item_id", "criterion") if c in part)
    cluster = clusters_of(part)
    place, score = floats(part["criterion_position"]), values_of(part)
    first, last = np.full(block.max() + 1, np.inf), np.full(block.max() + 1, -np.inf)
    np.fmin.at(first, block, place)
    np.fmax.at(last, block, place)
    if not (first < last).any():
        raise ValueError(
            "every criterion always stands at one place, so a score that equals it may be chance; "
            "pass judgments of a design that moves the criteria"
        )
    highest = int(part["n_options"].max())
    known = ~np.isnan(score) & ~np.isnan(place)
    reads = np.bincount(block[known], minlength=len(first))
    counted = known & np.isin(score, np.arange(1, highest + 1))  # others equal no place
    given = np.zeros((len(first), highest))
    np.add.at(given, (block[counted], score[counted].astype(np.int64) - 1), 1.0)
    kept = known & (place <= highest)
    block, cluster, place, score = block[kept], cluster[kept], place[kept], score[kept]
    equal = (score == place).astype(np.float64)
    chance = given[block, place.astype(np.int64) - 1] / reads[block]
    n_clusters = len(np.unique(cluster))
    low, high, *_ = mean_t(equal, cluster, (0.0, 1.0))
    excess_low, excess_high, p, _ = mean_t(equal - chance, cluster)
    return key | {
        "n_reads": len(equal),
        "n_clusters": n_clusters,
        "share": mean_of(equal),
        "share_low": low,
        "share_high": high,
        "chance": mean_of(chance),
        "excess": mean_of(equal - chance),
        "excess_low": excess_low,
        "excess_high": excess_high,
        "p": p,
        "reason": few_clusters(cluster, {"share": equal}) if len(equal) else "no read was parsed",
    }


def _criterion(key: dict[str, Any], part: pd.DataFrame, value: Value, seed: int) -> dict[str, Any]:
    positions, column = np.unique(floats(part["criterion_position"]), return_inverse=True)
    if len(positions) < 2:
        raise ValueError(
            f"criterion {key['criterion']!r} always stands at position {positions[0]:.0f}, so its "
            "position has no effect to measure; pass judgments of a design that moves it"
        )
    block = combine(part[c] for c in ("dataset", "item_id") if c in part)
    scores = values_of(part, value)
    cells = _cell_means(block, column, scores, len(positions))
    complete = ~np.isnan(cells).any(axis=1)
    clusters = clusters_of(part)
    first = np.unique(block, return_index=True)[1]
    cluster = np.unique(clusters[first][complete], return_inverse=True)[1]
    kept = np.isin(block, np.flatnonzero(complete)) & ~np.isnan(scores)
    row: dict[str, Any] = {
        "n_blocks": int(complete.sum()),
        "n_dropped": int((~complete).sum()),
        "n_clusters": len(np.unique(cluster)),
        "n_reads": int(kept.sum()),
    }
    return row | _position_tests(cells[complete], cluster, positions, seed)


def _cell_means(block: IntArray, column: IntArray, scores: FloatArray, width: int) -> FloatArray:
    parsed = ~np.isnan(scores)
    cell = (block * width + column)[parsed]
    size = (int(block.max()) + 1) * width
    count = np.bincount(cell, minlength=size)
    total = np.bincount(cell, weights=scores[parsed], minlength=size)
    mean = np.where(count > 0, total / np.maximum(count, 1), np.nan)
    return np.asarray(mean.reshape(-1, width))


def _position_tests(
    cells: FloatArray, cluster: IntArray, positions: FloatArray, seed: int
) -> dict[str, Any]:
    k = len(positions)
    row: dict[str, Any] = {"df": k - 1} | dict.fromkeys(_STATISTICS, np.nan)
    if len(cells) == 0:
        return row | {"reason": "no text has a parsed read at every position"}
    row |= {f"mean_{p:.0f}": m for p, m in zip(positions, cells.mean(axis=0), strict=True)}
    sums = by_cluster(cells, cluster)
    reasons = []
    row |= _gap(sums, len(cells), seed)
    row["friedman"], row["p"] = friedman(cells)
    row["kendall_w"] = row["friedman"] / (len(cells) * (k - 1))
    size = np.bincount(cluster)[:, None].astype(np.float64)
    row["friedman_cluster"], row["p_cluster"] = friedman(sums / size)
    row["q"], row["p_within"] = _permutation_test(sums)
    if np.isnan(row["friedman"]):
        reasons.append("no block's score changes with the position")
    if len(sums) < 2:
        reasons.append("one cluster: p_within and p_equivalent need two")
        row |= {"q": np.nan, "p_within": np.nan, "delta_pos_p": np.nan}
    else:
        row["p_equivalent"] = _all_within_margin(sums, size)
        row["mde"] = _minimum_detectable_gap(sums, len(cells))
        if np.isnan(row["p_equivalent"]) and not reasons:
            reasons.append("p_equivalent: two positions differ by the same in every cluster")
    return row | {"reason": "; ".join(reasons)}


def _gap(sums: FloatArray, n_blocks: int, seed: int) -> dict[str, float]:
    """ΔPos, and its mean when each cluster's positions are permuted."""
    rng = np.random.default_rng(seed)
    observed = float(np.ptp(sums.sum(axis=0)) / n_blocks)
    draws = np.array(
        [np.ptp(rng.permuted(sums, axis=1).sum(axis=0)) / n_blocks for _ in range(PERMUTATIONS)]
    )
    p = (1 + (draws >= observed - 1e-12).sum()) / (1 + PERMUTATIONS)
    return {"delta_pos": observed, "delta_pos_null": float(draws.mean()), "delta_pos_p": float(p)}


def friedman(cells: FloatArray) -> tuple[float, float]:
    """Friedman's χ² with the correction for ties, and its p: blocks × positions.

    NaN where every block is tied throughout. Unlike scipy's it takes two positions as well.
    """
    n, k = cells.shape
    # Means of a few integers can differ in the last digit where they are equal.
    ranks = stats.rankdata(np.round(cells, 9), axis=1)
    spread = ((ranks - (k + 1) / 2) ** 2).sum() / (k - 1)  # n k (k + 1) / 12 without ties
    if spread <= 0:
        return float("nan"), float("nan")
    statistic = float(((ranks.sum(axis=0) - n * (k + 1) / 2) ** 2).sum() / spread)
    return statistic, float(special.chdtrc(k - 1, statistic))


def _permutation_test(sums: FloatArray) -> tuple[float, float]:
    """Hoeffding's variance makes Q = (k - 1) Σ_p (T_p - T̄)² / Σ_g Σ_p (x_gp - x̄_g)²."""
    k = sums.shape[1]
    rest = sums - sums.mean(axis=1, keepdims=True)
    variance = (rest**2).sum()
    if variance <= 1e-12:
        return 0.0, 1.0
    q = float((k - 1) * (rest.sum(axis=0) ** 2).sum() / variance)
    return q, float(special.chdtrc(k - 1, q))


def _minimum_detectable_gap(sums: FloatArray, n_blocks: int) -> float:
    """Gap between two positions, the others half-way, that `p_within` finds with 80 % power."""
    k = sums.shape[1]
    variance = ((sums - sums.mean(axis=1, keepdims=True)) ** 2).sum() / (k - 1)
    if variance <= 1e-12:
        return float("nan")  # no score changes: nothing shows how much one could
    return float(np.sqrt(2 * noncentrality(k - 1) * variance) / n_blocks)


def _all_within_margin(sums: FloatArray, size: FloatArray) -> float:
    """TOST for every two positions; the largest p serves for all (intersection–union)."""
    n = len(sums)
    total = sums.sum(axis=0) / size.sum()
    left = (sums.sum(axis=0) - sums) / (size.sum() - size)
    first, second = np.triu_indices(sums.shape[1], 1)
    se = jackknife_se(left[:, first] - left[:, second])
    gaps = total[first] - total[second]
    margin = MARGINS["delta_pos"]
    return float(np.max([equivalence(*pair, n, margin) for pair in zip(gaps, se, strict=True)]))
