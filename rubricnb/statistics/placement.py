"""The permutation distribution of position counts, in closed form.

If a judge's sensitivity to the ordering is not aligned with position, then the answer
it gave under one ordering might as well have come under another one of the same item. A
*placement* A[j, k] counts, by position, where the answers given under ordering j would
stand if they had been given under ordering k; the observed counts are its diagonal.
Hoeffding's combinatorial central limit theorem (1951) gives mean and variance of the
sum over a random permutation of the orderings without drawing one.

The unit of permutation is the cluster: what shares a text also shares how it reacts to
an ordering. Repeats of an ordering stay together, and forward and reverse rotations are
permuted separately, so that neither copies nor a taste for a direction can pass for a
taste for a position.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from rubricnb.core.estimates.reads import Reads, by_cluster
from rubricnb.core.permutation import directions
from rubricnb.core.support.counting import binned
from rubricnb.core.support.types import FloatArray, IntArray

AT_ONCE = 100_000  # numbers that are worked on at once: more would leave the cache
FEW = 20  # where fewer clusters fit in there, adding up their products is faster


@dataclass(frozen=True)
class Block:
    """Orderings that are permuted among themselves, and each item's answers under them.

    Attributes
    ----------
    shown
        Shape (items, slots, n): the score at each position of the ordering of each
        slot.
    count
        Shape (items, slots): parsed reads.
    profile
        Shape (items, slots, n): the mean answer, as shares of the scores 1…n; 0 without
        reads.
    cell
        Shape (items, reads): the slot of each read, -1 for reads of other blocks.
    """

    shown: IntArray
    count: FloatArray
    profile: FloatArray
    cell: IntArray


@dataclass(frozen=True)
class Placement:
    """Position counts against their permutation distribution.

    Attributes
    ----------
    count
        Shape (items, n): observed counts (expected ones for probabilities).
    expected
        Shape (items, n): their permutation mean.
    variance
        Shape (n, n): permutation covariance of the counts summed over items.
    sight
        Shape (n, n): the deviation per read that the orderings show, per deviation that
        a balanced design would; of rank n - 1 where every two positions can be
        compared, and 0 where nothing can be permuted.
    """

    count: FloatArray
    expected: FloatArray
    variance: FloatArray
    sight: FloatArray

    @property
    def reads(self) -> FloatArray:
        """Parsed reads of each item."""
        return self.count.sum(axis=1)

    @property
    def deviation(self) -> FloatArray:
        """Shape (items, n): observed minus expected counts."""
        return self.count - self.expected

    @property
    def comparable(self) -> int:
        """How many independent comparisons of positions there are; n - 1: all."""
        return int((np.linalg.svd(self.sight, compute_uv=False) > 1e-9).sum())

    def as_if_balanced(self) -> Placement:
        """Scale the deviations to the size that a balanced design would give them.

        The permutation mean of few orderings contains part of a preference, which then
        shows too small: by a half for two drawn orderings an item, by a tenth for ten.
        To first order in the preference this undoes it, if all scores are equally
        probable; under a balanced design without losses nothing changes.
        (eq-visible-share: d becomes W⁻ d.)
        """
        widen = np.linalg.pinv(self.sight, rcond=1e-9)
        deviation, variance = self.deviation @ widen.T, widen @ self.variance @ widen.T
        return Placement(self.count, self.count - deviation, variance, self.sight)


def place(reads: Reads, parts: Sequence[Block] | None = None) -> Placement:
    """Compute the permutation moments of one group's position counts.

    `parts`: its blocks, where they are known already or their answers are changed.
    """
    n_items, n = len(reads.value), reads.n_options
    count, expected = np.zeros((n_items, n)), np.zeros((n_items, n))
    variance, sight = np.zeros((n, n)), np.zeros((n, n))
    for block in blocks(reads) if parts is None else parts:
        given = block.count[..., None] * block.profile
        count += at_positions(given, block.shown).sum(axis=1)
        expected += _permutation_mean(block)
        own_variance, own_sight = _variance_and_sight(block, reads.cluster)
        variance += own_variance
        sight += own_sight
    return Placement(count, expected, variance, sight / max(count.sum(), 1.0))


def blocks(reads: Reads) -> list[Block]:
    """Split the reads into blocks of exchangeable orderings."""
    asked = reads.order >= 0
    n_orderings, n_reads = len(reads.orderings), reads.value.shape[1]
    turn = directions(reads.orderings)
    # drawn for each: its reads are the slots
    orderings_per_item = n_orderings > n_reads
    # Of three scores, drawn orderings are rotations too.
    if 0 in turn or (orderings_per_item and reads.n_options == 3):
        turn = np.zeros_like(turn)
    profiles, out = read_profiles(reads), []
    for direction in np.unique(turn)[::-1]:
        if orderings_per_item:
            shown = reads.orderings[reads.order]
            # Repeats of an ordering are one slot, that of its first read:
            # they move together.
            first = (reads.order[:, :, None] == reads.order[:, None, :]).argmax(axis=2)
            cell = np.where(asked & (turn[reads.order] == direction), first, -1)
        else:
            slots = np.flatnonzero(turn == direction)
            own = reads.orderings[slots]
            shown = np.broadcast_to(own, (len(reads.order), *own.shape))
            number = np.full(n_orderings + 1, -1)
            # the last entry serves reads never asked
            number[slots] = np.arange(len(slots))
            cell = number[reads.order]
        n_slots = shown.shape[1]
        count = in_slots(reads.parsed[..., None], cell, n_slots)
        profile = in_slots(profiles, cell, n_slots) / np.maximum(count, 1)
        out.append(Block(shown, count[..., 0], profile, cell))
    return out


def in_slots(values: Any, cell: IntArray, n_slots: int) -> FloatArray:
    """Sum the numbers of reads (items, reads, …) within slots: (items, slots, …)."""
    item, read = np.nonzero(cell >= 0)
    flat = item * n_slots + cell[item, read]
    sums = [
        binned(flat, weights=own, minlength=len(cell) * n_slots)
        for own in values[item, read].T
    ]
    return np.stack(sums, axis=1).reshape(len(cell), n_slots, -1)


def by_score(reads: Reads) -> FloatArray:
    """Return each read's answer by score, 1 and 0 or shares: (items, reads, n)."""
    if reads.probability is None:
        return (reads.option[..., None] == np.arange(1, reads.n_options + 1)).astype(
            np.float64
        )
    place_of = np.argsort(reads.orderings, axis=1)[reads.order]
    found = np.take_along_axis(reads.probability, place_of, axis=2)
    return np.where(reads.parsed[..., None], found, 0.0)


def read_profiles(reads: Reads) -> FloatArray:
    """Return each read's answer as shares of scores 1…n: (items, reads, n)."""
    found = by_score(reads)
    total = found.sum(axis=2, keepdims=True)
    return found / np.where(total > 0, total, 1.0)


def at_positions(by_score: FloatArray, shown: IntArray) -> FloatArray:
    """Rearrange (items, slots, scores) to (items, slots, positions)."""
    return np.take_along_axis(by_score, shown - 1, axis=2)


def _permutation_mean(block: Block) -> FloatArray:
    total = block.profile.sum(axis=1, keepdims=True)
    spread = at_positions(np.broadcast_to(total, block.profile.shape), block.shown)
    occupied = np.maximum((block.count > 0).sum(axis=1), 1)
    return np.einsum("ik,ikp->ip", block.count, spread) / occupied[:, None]


def _variance_and_sight(
    block: Block, cluster: IntArray
) -> tuple[FloatArray, FloatArray]:
    """V of eq-permutation-moments, and how much of a preference reads show."""
    n_slots, n = block.profile.shape[1:]
    # eq-placement has an array of slots × slots × positions for every row, so some
    # clusters are worked on at a time.
    order = np.argsort(cluster, kind="stable")
    step = max(1, AT_ONCE // (n_slots**2 * n))
    starts = np.unique(np.searchsorted(cluster[order], cluster[order][::step]))
    count, shown = block.count, block.shown
    if step < FEW and (shown == shown[0]).all() and (count == count[0, 0]).all():
        # Of many levels that array is large even for few clusters. Here an ordering
        # does the same to every cluster's answers, so their products are added up.
        given = np.flatnonzero(block.profile.any(axis=(0, 1)))
        placed = count[0, 0] * (shown[0][:, None] == given[:, None] + 1)
        placed = placed - placed.mean(axis=0)  # (slots, scores given, positions)
        rest = by_cluster(block.profile[..., given], cluster)
        rest -= rest.mean(axis=1, keepdims=True)
        products = np.tensordot(rest, rest, ((0, 1), (0, 1)))
        variance = (placed.swapaxes(1, 2) @ products @ placed).sum(axis=0)
        sight = len(count) * _visible_share(count[:1], shown[:1])
        return variance / max(n_slots - 1, 1), sight
    variance, sight = np.zeros((2, n, n))
    for some in np.split(order, starts[1:]):
        count, shown = block.count[some], block.shown[some]
        flat = by_cluster(_placed(count, block.profile[some], shown), cluster[some])
        flat = flat.reshape(-1, n)
        variance += flat.T @ flat
        sight += _visible_share(count, shown)
    return variance / max(n_slots - 1, 1), sight


def _visible_share(count: FloatArray, shown: IntArray) -> FloatArray:
    """M W of eq-visible-share."""
    n = shown.shape[2]
    place_of = (shown[..., None] == np.arange(1, n + 1)).astype(float)
    has = (count > 0).astype(float)
    weights = np.stack([count, has / np.maximum(has.sum(axis=1, keepdims=True), 1)])
    # (items, positions, scores)
    total, mean = np.einsum("wik,ikps->wips", weights, place_of)
    return count.sum() * np.eye(n) - np.tensordot(total, mean, ((0, 2), (0, 2)))


def _placed(count: FloatArray, profile: FloatArray, shown: IntArray) -> FloatArray:
    """A of eq-placement, centred over j and k: (rows, j, k, positions).

    What was answered under slot j, placed under slot k, times the reads of k. Worked on
    in place.
    """
    placed = np.take_along_axis(profile[:, :, None, :], shown[:, None] - 1, axis=3)
    placed *= count[:, None, :, None]
    has = (count > 0).astype(float)
    occupied = np.maximum(has.sum(axis=1), 1)[:, None, None]
    over_j = placed.sum(axis=1) / occupied  # (r, k, p)
    over_k = placed.sum(axis=2) / occupied  # (r, j, p)
    overall = over_j.sum(axis=1) / occupied[:, 0]
    placed -= over_j[:, None]
    placed -= (over_k - overall[:, None])[:, :, None]
    # An item that lost reads permutes those it has; the factor turns 1/(slots - 1) into
    # 1/(its own slots - 1). It is 1 without losses, exact where the items of a cluster
    # have the same slots left, and an approximation where they have lost different
    # ones.
    weight = np.sqrt((count.shape[1] - 1) / np.maximum(occupied - 1, 1))
    placed *= (has[:, :, None] * has[:, None, :] * weight)[..., None]
    return placed
