"""How much do scores move when only the ordering does?"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pandas as pd

from rubricnb.core.estimates import intervals as infer
from rubricnb.core.estimates import reads as arrays
from rubricnb.core.estimates.losses import left_out, read_counts, reads_lost
from rubricnb.core.estimates.reads import By, Reads, Value
from rubricnb.core.estimates.reasons import Reason, Reasons, because
from rubricnb.core.permutation import directions
from rubricnb.core.support.types import FloatArray, Mask, Row
from rubricnb.statistics.variance import crossed_variances

PERMUTATIONS = 500
_RATIOS = {"phi": np.inf, "phi_own": np.inf, "share_ordering": 1.0}  # and their most
_EFFECTS = (
    "spread",
    "spread_null",
    "spread_p",
    "ascending",
    "descending",
    *infer.Estimate().named("ascending_minus_descending"),
)


def within_item_sd(
    judgments: pd.DataFrame, by: By = None, value: Value = "score"
) -> pd.DataFrame:
    """Measure how much the reads of one item differ.

    Parameters
    ----------
    judgments, by, value
        As in `position_bias`; any design with two or more reads per item.

    Returns
    -------
    DataFrame
        One row a group: ``sd`` (mean over items of the sd of their reads in score
        points; ddof 0 is our choice, which neither version of the paper states) with a
        95 % cluster t interval ``sd_low, sd_high``; ``variance`` (mean over items of
        the variance, ddof 1: unlike sd it does not depend on the number of reads);
        ``k`` (mean reads per item), ``n_items, n_clusters``, ``reason``.

    Notes
    -----
    arXiv:2602.02219v1, Table 3; v2, appendix C.

    Examples
    --------
    >>> import pandas as pd
    >>> judgments = pd.DataFrame({
    ...     "item_id": list("aabb"), "cluster_id": list("aabb"), "design": "balanced",
    ...     "ordering_index": [1, 2, 1, 2], "ordering": ["1-2", "2-1"] * 2,
    ...     "score": [1, 2, 2, 2]})
    >>> within_item_sd(judgments)[["sd", "variance", "k"]]
         sd  variance    k
    0  0.25      0.25  2.0
    """
    return arrays.row_per_group(judgments, by, value, _within_item_sd)


def order_effect(
    judgments: pd.DataFrame, by: By = None, value: Value = "score"
) -> pd.DataFrame:
    """Express order sensitivity in score points.

    Parameters
    ----------
    judgments, by, value
        As in `position_bias`; all items must see the same orderings.

    Returns
    -------
    DataFrame
        One row a group:

        * ``spread``: largest minus smallest mean score over orderings; ``spread_null``:
          its mean when the orderings are permuted within clusters (500 draws, forward
          and reverse separately); it is never 0. ``spread_p``: share of draws with as
          large a spread. NaN for ascending and descending alone: there is nothing to
          permute;
        * ``ascending, descending``: mean score under 1…n and n…1, and
          ``ascending_minus_descending`` with a 95 % cluster t interval ``_low, _high``
          and ``_p``;
        * ``n_items, n_clusters``, ``reason``.

    Raises
    ------
    ValueError
        Every group shows one ordering only.

    Examples
    --------
    >>> import pandas as pd
    >>> judgments = pd.DataFrame({
    ...     "item_id": list("aabb"), "cluster_id": list("aabb"), "design": "balanced",
    ...     "ordering_index": [1, 2, 1, 2], "ordering": ["1-2", "2-1"] * 2,
    ...     "score": [1, 2, 2, 2]})
    >>> order_effect(judgments)[["spread", "ascending_minus_descending"]]
       spread  ascending_minus_descending
    0     0.5                        -0.5
    """
    return arrays.row_per_group(judgments, by, value, order_effect_of)


def variance_components(
    judgments: pd.DataFrame, by: By = None, value: Value = "score"
) -> pd.DataFrame:
    """Split the variance of single reads: item, ordering, item × ordering.

    Parameters
    ----------
    judgments, by, value
        As in `position_bias`; items × orderings must be crossed (`balanced`,
        `williams`). Of repeats of an ordering the first counts.

    Returns
    -------
    DataFrame
        One row a group: ``variance_item, variance_ordering, variance_item_ordering``
        (score points², untruncated: an estimate of a small component can be negative;
        the last contains what re-asking changes, which `error_budget` tells apart);
        ``reliability`` of the mean over the orderings shown (1 = order-free ranking);
        ``phi`` (noise of one read over ``variance_item``, all items read under the same
        orderings), ``phi_own`` (each under its own: the ordering's variance counts as
        noise), ``share_ordering`` (of the variance of a read, components below 0 taken
        as 0), all three with 95 % cluster jackknife-t intervals ``_low, _high``, over
        texts like these and these very orderings; ``n_items, n_clusters, n_orderings``,
        ``reason``.

    Notes
    -----
    Two-way random-effects analysis of variance (generalisability theory, Cronbach et
    al. 1972), over items that have a read under every ordering. K reads reach a share c
    of what endless averaging gives from K = phi / (1 / c² - 1) on.

    Examples
    --------
    >>> import pandas as pd
    >>> judgments = pd.DataFrame({
    ...     "item_id": list("aabbcc"), "cluster_id": list("aabbcc"),
    ...     "design": "balanced", "ordering_index": [1, 2] * 3,
    ...     "ordering": ["1-2-3", "3-2-1"] * 3, "score": [1, 2, 2, 3, 2, 3]})
    >>> variance_components(judgments)[["variance_item", "variance_ordering"]].round(3)
       variance_item  variance_ordering
    0          0.333                0.5
    """
    return arrays.row_per_group(judgments, by, value, components_row)


def _within_item_sd(reads: Reads) -> Row:
    variance, count = arrays.item_variance(reads.value), reads.parsed.sum(axis=1)
    used = ~np.isnan(variance)
    sd = np.sqrt(variance * (count - 1) / np.maximum(count, 1))
    row: Row = infer.named_mean("sd", sd, reads.cluster, parts=infer.UNTESTED)
    row |= {
        "variance": infer.mean_of(variance[used]),
        "k": infer.mean_of(count[used].astype(float)),
    }
    row |= infer.counted(used, reads.cluster)
    lost = _lost(reads.value, reads, used)
    if not used.any():
        return row | because(Reason("single_reads"), lost)
    return row | because(
        infer.few_clusters(reads.cluster[used]), infer.alike(row), lost
    )


def _lost(values: FloatArray, reads: Reads, used: Mask) -> Reasons:
    """Return how many items lack one of these values, and the lost reads of others."""
    counts = (count[used] for count in read_counts(reads))
    mean = arrays.item_means(reads.value)[used]
    return left_out(values, used) + reads_lost("left_out_reads", counts, mean)


def ordering_means(reads: Reads) -> FloatArray:
    """Mean of an item's parsed reads under each ordering; NaN: none."""
    own = reads.parsed & (reads.order >= 0)
    shape = len(reads.value), len(reads.orderings)
    return arrays.cell_means(
        np.nonzero(own)[0], reads.order[own], reads.value[own], shape
    )


def order_effect_of(reads: Reads, draws: int = PERMUTATIONS) -> Row:
    """Return the row of `order_effect` for the reads of one group."""
    arrays.require_orderings(reads)
    if len(reads.orderings) < 2:
        raise arrays.Unanswerable(Reason("one_ordering_each"))
    mean = ordering_means(reads)
    complete = np.asarray(~np.isnan(mean).any(axis=1))
    row: Row = dict.fromkeys(_EFFECTS, np.nan) | infer.counted(complete, reads.cluster)
    lost = _lost(mean, reads, complete)
    if not complete.any():
        return row | because(Reason("incomplete_items"), lost)
    # the draws below follow the orders' own names
    listed = np.lexsort(reads.orderings.T[::-1])
    orderings, x = reads.orderings[listed], mean[complete][:, listed]
    cluster = reads.cluster[complete]
    turn = directions(orderings)
    reasons: list[Reason] = []
    blocks = (
        [np.flatnonzero(turn == t) for t in np.unique(turn)] if turn.all() else None
    )
    row |= infer.permuted_spread("spread", x, cluster, draws, 0, blocks)
    if np.isnan(row["spread_null"]):
        reasons.append(Reason("spread_null.unpermuted"))
    up = np.flatnonzero((np.diff(orderings, axis=1) == 1).all(axis=1))
    down = np.flatnonzero((np.diff(orderings, axis=1) == -1).all(axis=1))
    if len(up) and len(down):
        row |= {"ascending": x[:, up[0]].mean(), "descending": x[:, down[0]].mean()}
        row |= infer.named_mean(
            "ascending_minus_descending", x[:, up[0]] - x[:, down[0]], cluster
        )
    else:
        reasons.append(Reason("one_direction"))
    return row | because(reasons, infer.alike(row), infer.few_clusters(cluster), lost)


def components_row(reads: Reads) -> Row:
    """Split the variance of scores into sources: columns of `variance_components`."""
    # Each item's first parsed read under each ordering; NaN: none.
    first = np.full((len(reads.value), len(reads.orderings)), np.nan)
    item, read = (at[::-1] for at in np.nonzero(reads.parsed & (reads.order >= 0)))
    # the last assigned is the first
    first[item, reads.order[item, read]] = reads.value[item, read]
    used = np.asarray(~np.isnan(first).any(axis=1))
    cluster, n_orderings = reads.cluster[used], first.shape[1]
    variances = ("variance_item", "variance_ordering", "variance_item_ordering")
    row: Row = dict.fromkeys((*variances, "reliability"), np.nan)
    for name in _RATIOS:
        row |= infer.Estimate().named(name, *infer.UNTESTED)
    row |= infer.counted(used, reads.cluster)
    row["n_orderings"] = n_orderings
    lost = _lost(first, reads, used)
    if row["n_items"] < 2:
        return row | because(Reason("few_complete_items"), lost)
    if n_orderings < 2:
        return row | because(Reason("one_ordering"))
    found = _estimates(crossed_variances(first[used], cluster), n_orderings)
    row |= {name: float(values[0]) for name, values in found.items()}
    for name, most in _RATIOS.items():
        own = infer.jackknife_t(float(found[name][0]), found[name][1:])
        row |= own.within(0.0, most).named(name, *infer.UNTESTED)
    return row | because(_why_unknown(row), infer.few_clusters(cluster), lost)


def _estimates(parts: FloatArray, k: int) -> dict[str, FloatArray]:
    """Variance components and their ratios: of all items, then without each cluster.

    `parts`: item, ordering and rest; k: orderings.
    """
    item, ordering, noise = parts.T
    some = np.where(item > 0, item, np.nan)
    shift = np.maximum(ordering, 0.0)
    total = np.maximum(item, 0.0) + shift + np.maximum(noise, 0.0)
    return {
        "variance_item": item,
        "variance_ordering": ordering,
        "variance_item_ordering": noise,
        "reliability": some / (some + noise / k),
        "phi": noise / some,
        "phi_own": (noise + ordering) / some,
        "share_ordering": shift / np.where(total > 0, total, np.nan),
    }


def _why_unknown(row: Row) -> Iterator[Reason]:
    yield Reason("reask_included")
    if np.isnan(row["phi"]):
        yield Reason("phi.noise")
    elif row["n_clusters"] > 1 and np.isnan(row["phi_low"]):
        yield Reason("phi.zero" if abs(row["phi"]) < 1e-9 else "phi.no_interval")
