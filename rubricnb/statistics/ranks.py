"""Spearman's ρ, and the same without each cluster, for many distinct scores.

Leaving out a cluster moves the mid-rank of item i by d_i, the number of the cluster's
items above it (ties count half). So a sum of products of ranks over the items that stay
follows from sums over all items, which are made once, and from sums over the cluster's
own: no item is ranked again.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import scipy

from rubricnb.core.estimates import intervals as infer
from rubricnb.core.support.counting import binned, repeated
from rubricnb.core.support.types import FloatArray, IntArray, Mask

_BLOCK = 500_000  # numbers worked on at once
_SEARCH = 64  # counting above two values takes as long as this many products


def spearman(x: FloatArray, y: FloatArray) -> FloatArray:
    """Spearman's ρ with mid-ranks; NaN where a side is constant."""
    return infer.correlation(
        infer.moments(scipy.stats.rankdata(x), scipy.stats.rankdata(y)).sum(axis=0)
    )


def leave_out_spearman(x: FloatArray, y: FloatArray, cluster: IntArray) -> FloatArray:
    """Spearman's ρ without each cluster in turn, ranked again each time.

    Parameters
    ----------
    x, y
        Shape (items,): the two sides.
    cluster
        Shape (items,): the cluster of each item, as any numbers.

    Returns
    -------
    ndarray
        Shape (clusters,), by number: NaN where a side is constant without the cluster.

    Examples
    --------
    >>> leave_out_spearman([1, 2, 3, 4], [1, 3, 2, 4], [0, 1, 2, 3]).round(2).tolist()
    [0.5, 1.0, 1.0, 0.5]
    """
    order = np.argsort(cluster, kind="stable")
    cluster = np.unique(np.asarray(cluster)[order], return_inverse=True)[1]
    sides = [_Side.of(np.asarray(v)[order], cluster) for v in (x, y)]
    one, other = sides
    size = binned(cluster)
    kept = len(cluster) - size
    within = binned(cluster, (one.rank - one.above) * (other.rank - other.above))
    cross = (one.rank * other.rank).sum() - within + _sum_of_shifts(one, other, cluster)
    cross -= binned(cluster, one.sum_above(other.rank) + other.sum_above(one.rank))
    # ranks without a cluster have a mean of minus half its size
    cross -= kept * (size / 2) ** 2
    variances = [side.variance_without(cluster) for side in sides]
    defined = (variances[0] > 0) & (variances[1] > 0)
    rho = cross / np.sqrt(np.where(defined, variances[0] * variances[1], 1.0))
    return np.where(defined, np.clip(rho, -1.0, 1.0), np.nan)


@dataclass(frozen=True)
class _Side:
    """One side, its items sorted by cluster.

    ``order`` sorts the items by value; ``left`` and ``right`` say where the values
    equal to an item's begin and end in this order. ``rank``: mid-rank from the highest
    value, minus its mean. ``above``: how many items of its own cluster have a higher
    value than an item; ties count half, the item itself included.
    """

    order: IntArray
    left: IntArray
    right: IntArray
    rank: FloatArray
    above: FloatArray

    @classmethod
    def of(cls, values: FloatArray, cluster: IntArray) -> _Side:
        n = len(values)
        left, right = _span(values)
        own = _span(cluster * n + left)
        above = np.searchsorted(cluster, cluster, side="right") - (own[0] + own[1]) / 2
        return cls(
            np.argsort(left, kind="stable"), left, right, (n - left - right) / 2, above
        )

    def sum_above(self, weight: FloatArray) -> FloatArray:
        """For each item: the weights of items with a lower value; ties are half."""
        below = np.concatenate([[0.0], np.cumsum(weight[self.order])])
        return (below[self.left] + below[self.right]) / 2

    def variance_without(self, cluster: IntArray) -> FloatArray:
        """Sum of squares of the ranks without each cluster; 0 if they are all equal."""
        n, size = len(cluster), binned(cluster)
        cell, first, there = np.unique(
            cluster * n + self.left, return_index=True, return_counts=True
        )
        tied = (self.right - self.left)[first]
        owner = cell // n
        gone = binned(owner, _cube(tied) - _cube(tied - there), minlength=len(size))
        levels = np.unique(self.left)
        total = _cube(binned(self.left)).sum()
        left_over = len(levels) - binned(owner, tied == there, minlength=len(size))
        return np.where(left_over > 1, (_cube(n - size) - (total - gone)) / 12, 0.0)


def _cube(n: IntArray) -> FloatArray:
    """n³ − n: twelve times the squares of n ranks, and what n ties take away."""
    wide = np.asarray(n, float)
    return wide**3 - wide


def _span(values: FloatArray | IntArray) -> tuple[IntArray, IntArray]:
    """Where the values equal to each one begin and end, once they are sorted."""
    listed = np.sort(values)
    left, right = (np.searchsorted(listed, values, end) for end in ("left", "right"))
    return left, right


def _sum_of_shifts(one: _Side, other: _Side, cluster: IntArray) -> FloatArray:
    """For each cluster, Σ d_i e_i: by how much its loss moves both ranks.

    Of a small cluster this is a number of items below two of its values, for each two;
    of a large one the products are added up, over the distinct pairs of values that
    there are.
    """
    size = binned(cluster)
    _, first, count = np.unique(
        one.left * len(cluster) + other.left, return_index=True, return_counts=True
    )
    n_pairs = len(first)
    is_small = size**2 * _SEARCH <= n_pairs
    out = np.zeros(len(size))
    if is_small.any():
        out = _by_counting(one, other, cluster, is_small)
    sides = []
    for side in (one, other):
        order = np.argsort(side.left[first], kind="stable")
        listed = side.left[first][order]
        ends = (np.searchsorted(listed, side.left, end) for end in ("left", "right"))
        sides.append((np.argsort(order), *ends))
    large = np.flatnonzero(~is_small)
    row = np.where(is_small, -1, np.cumsum(~is_small) - 1)[cluster]
    step = max(1, _BLOCK // n_pairs)
    for start in range(0, len(large), step):
        block = large[start : start + step]
        inside = (row >= start) & (row < start + step)
        moved = []
        for place, begin, end in sides:
            at = np.concatenate([begin[inside], end[inside]])
            cell = np.tile((row[inside] - start) * (n_pairs + 1), 2) + at
            falls = binned(
                cell, np.full(len(cell), -0.5), len(block) * (n_pairs + 1)
            ).reshape(len(block), -1)
            falls[:, 0] += binned(row[inside] - start, minlength=len(block))
            moved.append(np.cumsum(falls, axis=1, out=falls).take(place, axis=1))
        moved[0] *= count
        out[block] = np.einsum("gp,gp->g", *moved)
    return out


def _by_counting(
    one: _Side, other: _Side, cluster: IntArray, chosen: Mask
) -> FloatArray:
    """Count, for every two items of a cluster, the items below both of them."""
    # Whole numbers from 0 on are sorted within blocks of 1, 2, 4 and so on of them.
    # Before each stands the number of its block, so that the whole row is sorted.
    numbers, n = other.left[one.order], len(one.order)
    place = np.arange(n, dtype=np.int64)
    listed = [np.sort((place >> bit) * n + numbers) for bit in range(n.bit_length())]
    size = binned(cluster)
    start = np.cumsum(size) - size
    item = np.flatnonzero(chosen[cluster])
    last_pair = np.cumsum(size[cluster[item]])
    out = np.zeros(len(size))
    for block in np.split(
        item, np.searchsorted(last_pair, np.arange(_BLOCK, last_pair[-1], _BLOCK))
    ):
        partners = size[cluster[block]]
        j = repeated(block, partners)
        k = (
            np.arange(len(j))
            - repeated(np.cumsum(partners) - partners, partners)
            + start[cluster[j]]
        )
        n_below = sum(
            _n_below(listed, first[j], other.left[k], end)
            for first in (one.left, one.right)
            for end in ("left", "right")
        )
        out += binned(cluster[j], n_below / 4, minlength=len(size))
    return out


def _n_below(
    listed: list[IntArray],
    first: IntArray,
    value: IntArray,
    end: Literal["left", "right"],
) -> IntArray:
    """Of the first so many numbers, how many are below a value; "right": or equal."""
    found = np.zeros_like(first)
    for bit, numbers in enumerate(listed):
        own = np.flatnonzero(first >> bit & 1)
        block = (first[own] >> bit).astype(np.int64) - 1
        code = block * len(numbers) + value[own]
        found[own] += np.searchsorted(numbers, code, end) - (block << bit)
    return found
