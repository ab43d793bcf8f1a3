"""The decomposition of the variance of scores that all statistics share.

Henderson's (1953) method 1: sums of squares of the means over every source, equated
with their expectations. For balanced data this is the analysis of variance.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations_with_replacement
from typing import Any

import numpy as np
import pandas as pd

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
    homes
        The cluster of each level of a source; None where some level is in several.
    sizes
        Reads of each level; of one in several clusters, also without each of these.
    inverse
        Shape (1 + clusters, sources, sources): solves for the variances, of all reads,
        then without each cluster.
    told_apart
        Shape (1 + clusters,): whether it does.
    """

    codes: list[IntArray]
    cluster: IntArray
    homes: list[IntArray | None]
    sizes: list[Any]
    inverse: FloatArray
    told_apart: Mask

    def squares(self, x: FloatArray) -> FloatArray:
        """Sum of squared totals over sizes by source: (1 + clusters, sources)."""
        g, cluster = len(self.inverse) - 1, self.cluster
        square = np.zeros((1 + g, len(self.codes)))
        sources = zip(self.codes, self.homes, self.sizes, strict=True)
        for a, (code, home, size) in enumerate(sources):
            if home is not None:  # a sum over clusters
                total = binned(code, x) ** 2 / size
                square[:, [a]] = _without(home, 0 * home, g, total)
            else:
                sums = _without(cluster, code, g, x)
                square[:, a] = (sums**2 / size).sum(axis=1)
        return square


def _design(codes: IntArray) -> _Design:
    """Make the equations of codes: a row each, the last one of the clusters."""
    cluster = codes[-1]
    own = [pd.factorize(code)[0] for code in codes[:-1]]
    homes = [_within(code, cluster) for code in own]
    g = int(cluster.max()) + 1
    sizes = [
        binned(code) if home is not None else np.maximum(_without(cluster, code, g), 1)
        for code, home in zip(own, homes, strict=True)
    ]
    expected = _weights(own, homes, sizes, cluster)
    right = expected[:, 1:] - expected[:, :1]
    told_apart = np.linalg.matrix_rank(right) == len(own) - 1
    inverse = np.asarray(np.linalg.pinv(right), dtype=np.float64)
    return _Design(own, cluster, homes, sizes, inverse, told_apart)


@lru_cache(maxsize=4)
def _kept_design(shape: tuple[int, int], codes: bytes) -> _Design:
    """Keep the equations: one group after another is asked in the same design."""
    return _design(np.frombuffer(codes, dtype=np.int64).reshape(shape))


def _weights(
    codes: list[IntArray],
    homes: list[IntArray | None],
    sizes: list[Any],
    cluster: IntArray,
) -> FloatArray:
    """Weights of variances in sums of squares: (1 + clusters, sources, sources - 1)."""
    g = int(cluster.max()) + 1
    expected = np.zeros((1 + g, len(codes), len(codes)))
    for one, other in combinations_with_replacement(range(len(codes)), 2):
        pair, levels = _pairs(codes[one], codes[other])
        n, sides = binned(pair), [(one, levels[0]), (other, levels[1])]
        for (a, of), (b, its) in (sides, sides[::-1]):
            if (home := homes[a]) is not None:
                square = n**2 / sizes[a][of]
                expected[:, a, [b]] = _without(home[of], 0 * of, g, square)
                continue
            if (home := homes[b]) is not None:
                square = np.square(n, dtype=np.float64)
                squares = _without(home[its], of, g, square) / sizes[a]
            else:
                squares = _without(cluster, pair, g) ** 2 / sizes[a][:, of]
            expected[:, a, b] = squares.sum(axis=1)
    return expected[..., 1:]


def _without(row: IntArray, column: IntArray, g: int, weight: Any = None) -> FloatArray:
    """Sum weights by column: of all rows, then without each of the `g` rows."""
    width = int(column.max()) + 1
    table = binned(row * width + column, weight, g * width).reshape(g, width)
    return np.concatenate([table.sum(axis=0)[None], table.sum(axis=0) - table])


def _pairs(one: IntArray, other: IntArray) -> tuple[IntArray, list[IntArray]]:
    """Each read's combination of two codes, and each combination's levels of both."""
    width = int(other.max()) + 1
    pair, found = pd.factorize(one.astype(np.int64) * width + other)
    return pair, [*np.divmod(found, width)]


def _within(code: IntArray, whole: IntArray) -> IntArray | None:
    """Which level of `whole` each level of `code` is a part of; None: of several."""
    found = np.empty(int(code.max()) + 1, dtype=np.int64)
    found[code] = whole
    return found if (found[code] == whole).all() else None
