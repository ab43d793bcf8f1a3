"""The decomposition of the variance of scores that all statistics share.

Henderson's (1953) method 1: sums of squares of the means over every source, equated
with their expectations. For balanced data this is the analysis of variance.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from rubricnb.core.estimates.reasons import Reason
from rubricnb.core.support.counting import binned, repeated
from rubricnb.core.support.types import FloatArray, IntArray, Mask

_KEPT = 100_000  # codes of a design that is kept: most of a megabyte


def crossed_variances(x: FloatArray, cluster: IntArray) -> FloatArray:
    """Variances between items, between columns and of the rest, without gaps.

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
    return np.maximum(noise, 0.0) / np.where(item > 0, item, np.nan)


def gain_of_averaging(phi: FloatArray, k: int) -> FloatArray:
    """r of the mean of k reads over r of one."""
    return np.sqrt((1 + phi) / (1 + phi / k))


def henderson(
    sources: list[IntArray], cluster: IntArray, x: FloatArray
) -> tuple[FloatArray, Reason | None]:
    """Variances of the sources, of all reads and without each cluster; or why not.

    NaN where sources cannot be told apart, with all clusters or without one of few.
    """
    # eq-henderson: T_a − T_0 = Σ_b σ_b² (k_ab − k_0b)
    codes = np.stack([np.zeros_like(cluster), *sources, cluster], dtype=np.int64)
    kept = codes.size <= _KEPT
    known = _kept_design(codes.shape, codes.tobytes()) if kept else _design(codes)
    square = known.squares(x)
    found = np.einsum("gij,gj->gi", known.inverse, square[:, 1:] - square[:, :1])
    found = np.where(known.told_apart[:, None], found, np.nan)
    # Differences of sums leave rounding errors of about 1e-16 of the raw second moment.
    found = np.where(np.abs(found) > 1e-12 * (x**2).mean(), found, 0.0 * found)
    return found, None if known.told_apart[0] else Reason("not_crossed")


@dataclass(frozen=True)
class _Design:
    """What of Henderson's equations does not depend on the scores.

    Attributes
    ----------
    codes
        Of the sources, from 0 without gaps; the first one is the same for all reads.
    cluster
        Of each read.
    local
        Which sources have each of their levels within one cluster.
    inverse
        Shape (1 + clusters, sources, sources): solves for the variances, of all reads,
        then without each cluster.
    told_apart
        Shape (1 + clusters,): whether it does.
    """

    codes: list[IntArray]
    cluster: IntArray
    local: list[bool]
    inverse: FloatArray
    told_apart: Mask

    def squares(self, x: FloatArray) -> FloatArray:
        """Sum of squared totals over sizes by source: (1 + clusters, sources)."""
        g, cluster = len(self.inverse) - 1, self.cluster
        square = np.zeros((1 + g, len(self.codes)))
        for a, (code, local) in enumerate(zip(self.codes, self.local, strict=True)):
            if local:  # each level within a cluster: a sum over clusters
                home = cluster[np.unique(code, return_index=True)[1]]
                size = binned(code)
                zero = np.zeros_like(home)
                square[:, [a]] = _without(home, zero, g, binned(code, x) ** 2 / size)
            else:
                sizes = np.maximum(_without(cluster, code, g), 1)
                sums = _without(cluster, code, g, x)
                square[:, a] = (sums**2 / sizes).sum(axis=1)
        return square


def _design(codes: IntArray) -> _Design:
    """Make the equations of codes: a row each, the last one of the clusters."""
    cluster = codes[-1]
    own = [np.unique(code, return_inverse=True)[1] for code in codes[:-1]]
    local = [bool(_pairs(code, cluster)[1].max() == code.max()) for code in own]
    expected = _weights(own, local, cluster)
    right = expected[:, 1:] - expected[:, :1]
    told_apart = np.linalg.matrix_rank(right) == len(own) - 1
    inverse = np.asarray(np.linalg.pinv(right), dtype=np.float64)
    return _Design(own, cluster, local, inverse, told_apart)


@lru_cache(maxsize=4)
def _kept_design(shape: tuple[int, int], codes: bytes) -> _Design:
    """Keep the equations: one group after another is asked in the same design."""
    return _design(np.frombuffer(codes, dtype=np.int64).reshape(shape))


def _weights(codes: list[IntArray], local: list[bool], cluster: IntArray) -> FloatArray:
    """Weights of variances in sums of squares: (1 + clusters, sources, sources - 1)."""
    g = int(cluster.max()) + 1
    expected = np.zeros((1 + g, len(codes), len(codes) - 1))
    for a, code in enumerate(codes):
        size = binned(code)
        sizes = None if local[a] else np.maximum(_without(cluster, code, g), 1)
        for b, other in enumerate(codes[1:]):
            first, pair = _pairs(code, other)
            of, n, home = code[first], binned(pair), cluster[first]
            if sizes is None:
                expected[:, a, [b]] = _without(home, 0 * of, g, n**2 / size[of])
                continue
            if local[b + 1]:
                squares = _without(home, of, g, np.square(n, dtype=np.float64)) / sizes
            else:
                squares = _without(cluster, pair, g) ** 2 / sizes[:, of]
            expected[:, a, b] = squares.sum(axis=1)
    return expected


def _without(row: IntArray, column: IntArray, g: int, weight: Any = None) -> FloatArray:
    """Sum weights by column: of all rows, then without each of the `g` rows."""
    width = int(column.max()) + 1
    table = binned(row * width + column, weight, g * width).reshape(g, width)
    return np.concatenate([table.sum(axis=0)[None], table.sum(axis=0) - table])


def _pairs(one: IntArray, other: IntArray) -> tuple[IntArray, IntArray]:
    """First read of each combination of two codes, and each read's combination."""
    _, first, pair = np.unique(
        one * (other.max() + 1) + other, return_index=True, return_inverse=True
    )
    return first, pair
