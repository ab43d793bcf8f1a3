"""The decomposition of the variance of scores that all statistics share.

Henderson's (1953) method 1: sums of squares of the means over every source, equated
with their expectations. For balanced data this is the analysis of variance.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from rubricnb.counting import binned, repeated
from rubricnb.statistics.reads import FloatArray, IntArray
from rubricnb.statistics.reasons import Reason


def crossed_variances(x: FloatArray, cluster: IntArray) -> FloatArray:
    """Variances between items, between columns and of the rest,
    of a table without gaps.

    The variance between items is all that texts differ by, whether it is shared by a
    prompt's or by a candidate's texts or not. Shape (1 + clusters, 3): of all items,
    then without each cluster.
    """
    n, k = x.shape
    item, column = (a.ravel() for a in np.indices(x.shape))
    x = (x - x.mean()).ravel()
    cluster = np.unique(cluster, return_inverse=True)[1]
    found, _ = henderson([item, column, np.arange(n * k)], repeated(cluster, k), x)
    return found


def noise_ratio(parts: FloatArray) -> FloatArray:
    """φ, noise of one read over the variance between texts, from `crossed_variances`.

    Shape (1 + clusters,): of all items, then without each cluster; NaN where texts do
    not differ.
    """
    item, _, noise = parts.T
    return np.asarray(np.maximum(noise, 0.0) / np.where(item > 0, item, np.nan))


def gain_of_averaging(phi: FloatArray, k: int) -> FloatArray:
    """r of the mean of k reads over r of one."""
    return np.asarray(np.sqrt((1 + phi) / (1 + phi / k)))


def henderson(
    sources: list[IntArray], cluster: IntArray, x: FloatArray
) -> tuple[FloatArray, Reason | None]:
    """Variances of the sources: of all reads, then without each cluster;
    and the reason for none.

    NaN where sources cannot be told apart, with all clusters or without one of few.
    """
    # eq-henderson: T_a − T_0 = Σ_b σ_b² (k_ab − k_0b)
    square, expected = _squares([np.zeros_like(cluster), *sources], cluster, x)
    left, right = square[:, 1:] - square[:, :1], expected[:, 1:] - expected[:, :1]
    told_apart = np.linalg.matrix_rank(right) == len(sources)
    found = np.einsum("gij,gj->gi", np.linalg.pinv(right), left)
    found = np.where(told_apart[:, None], found, np.nan)
    # Differences of sums leave rounding errors of about 1e-16 of the raw second moment.
    found = np.where(np.abs(found) > 1e-12 * (x**2).mean(), found, 0.0 * found)
    return found, None if told_apart[0] else Reason("not_crossed")


def _squares(
    codes: list[IntArray], cluster: IntArray, x: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Sum of squared totals over sizes by source,
    and the weights of the variances in it.

    Shapes (1 + clusters, sources) and (1 + clusters, sources, sources - 1): all, then
    without each.
    """
    g, codes = (
        int(cluster.max()) + 1,
        [np.unique(c, return_inverse=True)[1] for c in codes],
    )
    square = np.zeros((1 + g, len(codes)))
    expected = np.zeros((1 + g, len(codes), len(codes) - 1))

    def without(row: IntArray, column: IntArray, weight: Any = None) -> FloatArray:
        width = int(column.max()) + 1
        table = binned(row * width + column, weight, g * width).reshape(g, width)
        return np.concatenate([table.sum(axis=0)[None], table.sum(axis=0) - table])

    local = [_pairs(code, cluster)[1].max() == code.max() for code in codes]
    for a, code in enumerate(codes):
        if local[a]:  # each level within a cluster: a sum over clusters
            size, home = (
                binned(code),
                cluster[np.unique(code, return_index=True)[1]],
            )
            zero = np.zeros_like(home)
            square[:, [a]] = without(home, zero, binned(code, x) ** 2 / size)
        else:
            sizes = np.maximum(without(cluster, code), 1)
            square[:, a] = (without(cluster, code, x) ** 2 / sizes).sum(axis=1)
        for b, other in enumerate(codes[1:]):
            first, pair = _pairs(code, other)
            of, n = code[first], binned(pair)
            if local[a]:
                expected[:, a, [b]] = without(cluster[first], 0 * of, n**2 / size[of])
            elif local[b + 1]:
                expected[:, a, b] = (
                    without(cluster[first], of, np.square(n, dtype=np.float64)) / sizes
                ).sum(axis=1)
            else:
                expected[:, a, b] = (without(cluster, pair) ** 2 / sizes[:, of]).sum(
                    axis=1
                )
    return square, expected


def _pairs(one: IntArray, other: IntArray) -> tuple[IntArray, IntArray]:
    """First read of each combination of two codes, and each read's combination."""
    _, first, pair = np.unique(
        one * (other.max() + 1) + other, return_index=True, return_inverse=True
    )
    return first, pair
