"""Does a criterion's score depend on its position in the prompt? (Setting 2)"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pandas as pd
import scipy

from rubricnb.core.estimates import intervals as infer
from rubricnb.core.estimates import reads as arrays
from rubricnb.core.estimates.losses import left_out, no_equivalence, reads_lost
from rubricnb.core.estimates.reads import By, Value
from rubricnb.core.estimates.reasons import Reason, Reasons, because
from rubricnb.core.frames import require
from rubricnb.core.support.counting import binned
from rubricnb.core.support.types import FloatArray, IntArray, Mask, Row

PERMUTATIONS = 1_000
_STATISTICS = (
    *("delta_pos", "delta_pos_null", "delta_pos_p", "friedman", "p", "kendall_w"),
    *("friedman_cluster", "p_cluster", "q", "p_within", "p_equivalent", "mde"),
)


def criterion_order(
    judgments: pd.DataFrame, by: By = None, value: Value = "score", seed: int = 0
) -> pd.DataFrame:
    """Test and measure the effect of each criterion's position among the criteria.

    Parameters
    ----------
    judgments
        Judgments of Setting 2 (the template ``criteria``), with the column
        ``criterion_position``.
    by
        Columns to group by, besides the criterion; by default every condition column.
    value
        ``score`` or ``expected_score``.
    seed
        Of the permutations behind `delta_pos_null`.

    Returns
    -------
    DataFrame
        One row a group and criterion. A block is a text; its reads with the criterion
        at one position (forward and reverse) are averaged first. Blocks without every
        position are dropped (``n_dropped``).

        * ``delta_pos``: largest minus smallest mean score over positions, in score
          points; ``delta_pos_null``: its mean when positions are permuted within
          clusters (1,000 draws; it is never 0), ``delta_pos_p``: share of draws with as
          large a gap;
        * ``mean_1…k``: mean score at each position;
        * ``friedman, df, p``: the paper's test over blocks; ``p_adjusted``
          (Benjamini–Hochberg over the returned rows); ``kendall_w`` from 0 to 1;
        * ``friedman_cluster, p_cluster``: the same with the blocks of a cluster
          averaged first;
        * ``q, p_within``: within-cluster permutation test of the means, in closed form,
          which holds when blocks share a text; ``p_within_adjusted``;
        * ``p_equivalent`` (TOST: every two positions within ±0.1 points); ``mde`` (the
          gap between two positions, the others half-way, that p_within finds with 80 %
          power at 5 %);
        * ``n_blocks, n_dropped, n_clusters, n_reads``, ``reason``.

    Raises
    ------
    ValueError
        A criterion stood at one position only (a fixed order).

    Notes
    -----
    arXiv:2602.02219v2, §4.4, §5.5, Table 5. In cyclic orders a criterion always has the
    same neighbour before it, so "position" is position in that context; `williams`
    separates the two.

    Examples
    --------
    >>> import pandas as pd
    >>> judgments = pd.DataFrame({
    ...     "item_id": list("aabbccdd"), "cluster_id": list("aabbccdd"),
    ...     "design": "balanced", "criterion": "coherence",
    ...     "criterion_position": [1, 2] * 4, "score": [3, 2, 4, 2, 3, 3, 5, 4]})
    >>> criterion_order(judgments)[["criterion", "delta_pos", "friedman", "kendall_w"]]
       criterion  delta_pos  friedman  kendall_w
    0  coherence        1.0       3.0       0.75
    """
    parts = _groups(judgments, by, [value], ["criterion"])
    result = pd.DataFrame(
        [{**key, **_criterion(key, part, value, seed)} for key, part in parts]
    )
    return infer.adjust(infer.adjust(result, "p"), "p_within")


def counting_along(judgments: pd.DataFrame, by: By = None) -> pd.DataFrame:
    """Count how often a score equals the number of the criterion's position.

    A judge that does not read may count along. Some scores equal their place by chance.

    Parameters
    ----------
    judgments
        As in `criterion_order`. Places beyond the highest score are left out.
    by
        Columns to group by; by default every condition column. Criteria are taken
        together.

    Returns
    -------
    DataFrame
        One row a group: ``share`` of the reads whose score is the number of the place,
        with a 95 % Wilson interval ``share_low, share_high``; ``chance``, the mean of
        that share when the places of each text and criterion are permuted (exact,
        nothing is drawn: each read's score is replaced by the scores that the text got
        at all places); ``excess``, share minus chance, with ``excess_low, excess_high``
        and ``p`` (against 0); ``n_reads, n_clusters``, ``reason``.

    Raises
    ------
    ValueError
        Every criterion stood at one place only (a fixed order).

    Examples
    --------
    >>> import pandas as pd
    >>> judgments = pd.DataFrame({
    ...     "item_id": list("aabbcc"), "cluster_id": list("aabbcc"),
    ...     "design": "balanced", "criterion": "coherence", "n_options": 5,
    ...     "criterion_position": [1, 2] * 3, "score": [1, 2, 1, 2, 1, 1]})
    >>> counting_along(judgments)[["share", "chance", "excess"]].round(2)
       share  chance  excess
    0   0.83     0.5    0.33
    """
    parts = _groups(judgments, by, ["n_options", "score"])
    return pd.DataFrame([{**key, **_counting_along(part)} for key, part in parts])


def _groups(
    judgments: pd.DataFrame, by: By, columns: list[str], within: Sequence[str] = ()
) -> Iterator[tuple[Row, pd.DataFrame]]:
    """Groups of judgments of Setting 2, and with `within` of their parts."""
    needed = ["item_id", "cluster_id", "criterion", "criterion_position", *columns]
    require(judgments, needed, "judgments")
    names = arrays.grouping(judgments, by, without=["criterion"])
    yield from arrays.groups(judgments, [*names, *within])


def _counting_along(part: pd.DataFrame) -> Row:
    block = arrays.combine(part[c] for c in arrays.unit_columns(part))
    cluster = arrays.clusters_of(part)
    place, score = arrays.floats(part["criterion_position"]), arrays.values_of(part)
    if pd.Series(place).groupby(block).nunique().max() < 2:
        raise ValueError(
            "every criterion is always at the same position, so no position effect can "
            "be seen; pass judgments of a design that moves the criteria"
        )
    highest = int(part["n_options"].max())
    scored = ~np.isnan(score) & ~np.isnan(place)
    reads = binned(block[scored], minlength=block.max() + 1)
    # others equal no place
    counted = scored & np.isin(score, np.arange(1, highest + 1))
    given = np.zeros((len(reads), highest))
    np.add.at(given, (block[counted], score[counted].astype(np.int64) - 1), 1.0)
    kept = scored & (place <= highest)
    block, cluster, place, score = block[kept], cluster[kept], place[kept], score[kept]
    equal = (score == place).astype(float)
    chance = given[block, place.astype(np.int64) - 1] / reads[block]
    row: Row = {"n_reads": len(equal), "n_clusters": len(np.unique(cluster))}
    row |= infer.named_mean("share", equal, cluster, (0.0, 1.0), infer.UNTESTED)
    row["chance"] = infer.mean_of(chance)
    row |= infer.named_mean("excess", equal - chance, cluster)
    row["p"] = row.pop("excess_p")
    few = (
        infer.few_clusters(cluster, {"share": equal})
        if len(equal)
        else Reason("no_read")
    )
    return row | because(few)


def _criterion(key: Row, part: pd.DataFrame, value: Value, seed: int) -> Row:
    positions, column = np.unique(
        arrays.floats(part["criterion_position"]), return_inverse=True
    )
    if len(positions) < 2:
        raise ValueError(
            f"criterion {key['criterion']!r} is always at position {positions[0]:.0f}, "
            "so its position has no effect to measure; pass judgments of a design that "
            "moves it"
        )
    block = arrays.combine(part[c] for c in ("dataset", "item_id") if c in part)
    scores = arrays.values_of(part, value)
    cells = arrays.cell_means(
        block, column, scores, (int(block.max()) + 1, len(positions))
    )
    complete = np.asarray(~np.isnan(cells).any(axis=1))
    cluster = arrays.clusters_of(part)[np.unique(block, return_index=True)[1]][complete]
    kept = np.isin(block, np.flatnonzero(complete)) & ~np.isnan(scores)
    row: Row = {
        "n_blocks": int(complete.sum()),
        "n_dropped": int((~complete).sum()),
        "n_clusters": len(np.unique(cluster)),
        "n_reads": int(kept.sum()),
    }
    lost = left_out(cells, complete, "texts") + _reads_left_out(block, scores, complete)
    found = _position_tests(cells[complete], cluster, positions, seed)
    no_verdict = no_equivalence(lost)
    if no_verdict:
        found["p_equivalent"] = np.nan
    return row | found | because(found["codes"], lost, no_verdict)


def _reads_left_out(block: IntArray, scores: FloatArray, complete: Mask) -> Reasons:
    """Return how many reads of complete blocks lack a score that another one has."""
    n = len(complete)
    counts = (
        binned(block[rows], minlength=n)[complete]
        for rows in (np.isnan(scores), ~np.isnan(scores))
    )
    mean = arrays.cell_means(block, np.zeros_like(block), scores, (n, 1))[:, 0]
    return reads_lost("left_out_reads", counts, mean[complete])


def _position_tests(
    cells: FloatArray, cluster: IntArray, positions: FloatArray, seed: int
) -> Row:
    k = len(positions)
    row: Row = {"df": k - 1} | dict.fromkeys(_STATISTICS, np.nan)
    if len(cells) == 0:
        return row | because(Reason("incomplete_texts"))
    row |= {
        f"mean_{p:.0f}": m for p, m in zip(positions, cells.mean(axis=0), strict=True)
    }
    sums = arrays.by_cluster(cells, cluster)
    reasons: list[Reason] = []
    row |= infer.permuted_spread("delta_pos", cells, cluster, PERMUTATIONS, seed)
    row["friedman"], row["p"] = friedman(cells)
    row["kendall_w"] = row["friedman"] / (len(cells) * (k - 1))
    size = arrays.by_cluster(np.ones((len(cells), 1)), cluster)
    row["friedman_cluster"], row["p_cluster"] = friedman(sums / size)
    row["q"], row["p_within"], row["mde"] = permutation_test(sums, len(cells))
    if np.isnan(row["friedman"]):
        reasons.append(Reason("friedman.unchanged"))
    if len(sums) < 2:
        reasons.append(Reason("p_within.one_cluster"))
        row |= dict.fromkeys(("q", "p_within", "delta_pos_p", "mde"), np.nan)
    else:
        row["p_equivalent"] = _all_within_margin(sums, size)
        if np.isnan(row["p_equivalent"]) and not reasons:
            reasons.append(Reason("p_equivalent.alike"))
        reasons += infer.few_clusters(cluster)
    return row | because(reasons)


def friedman(cells: FloatArray) -> tuple[float, float]:
    """Friedman's χ² with the correction for ties, and its p: blocks × positions.

    NaN where every block is tied throughout. Unlike scipy's it takes two positions as
    well.
    """
    n, k = cells.shape
    # Means of a few integers can differ in the last digit where they are equal.
    ranks = scipy.stats.rankdata(np.round(cells, 9), axis=1)
    # n k (k + 1) / 12 without ties
    spread = ((ranks - (k + 1) / 2) ** 2).sum() / (k - 1)
    if spread <= 0:
        return np.nan, np.nan
    statistic = float(((ranks.sum(axis=0) - n * (k + 1) / 2) ** 2).sum() / spread)
    return statistic, float(scipy.special.chdtrc(k - 1, statistic))


def permutation_test(sums: FloatArray, n_blocks: int) -> tuple[float, float, float]:
    """Hoeffding's variance makes Q = (k - 1) Σ_p (T_p - T̄)² / Σ_g Σ_p (x_gp - x̄_g)².

    Returns Q, its p, and the gap between two positions, the others half-way, that this
    finds with 80 % power. Where no score changes nothing shows how much one could.
    """
    k = sums.shape[1]
    rest = sums - sums.mean(axis=1, keepdims=True)
    variance = float((rest**2).sum()) / (k - 1)
    if variance * (k - 1) <= 1e-12:
        return 0.0, 1.0, np.nan
    q = float((rest.sum(axis=0) ** 2).sum() / variance)
    gap = float(np.sqrt(2 * infer.noncentrality(k - 1) * variance) / n_blocks)
    return q, float(scipy.special.chdtrc(k - 1, q)), gap


def _all_within_margin(sums: FloatArray, size: FloatArray) -> float:
    """TOST for every two positions; the largest p is for all of them."""
    total = sums.sum(axis=0) / size.sum()
    left = (sums.sum(axis=0) - sums) / (size.sum() - size)
    first, second = np.triu_indices(sums.shape[1], 1)
    left_gaps = left[:, first] - left[:, second]
    gaps, se = total[first] - total[second], infer.jackknife_se(left_gaps)
    n = infer.freedom(left_gaps - left_gaps.mean(axis=0)) + 1
    margin = infer.MARGINS["delta_pos"]
    each = [infer.equivalence(*one, margin) for one in zip(gaps, se, n, strict=True)]
    return float(np.max(each))
