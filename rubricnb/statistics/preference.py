"""Log-preference for each position: a conditional logit of item × score.

If P(score | item, ordering) ∝ exp(α[item, score] + γ[position of the score]), then
given *which* scores an item received, the orderings under which it received them depend
on γ only: the terms α and the normalisers cancel. The denominator sums over all
assignments of those scores to the orderings (a permanent), by dynamic programming over
how many of each score are still to place.

With probabilities instead of single answers the same model is fitted to them directly:
α is then estimated without error, so it need not be conditioned out.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from math import prod
from typing import Any, NamedTuple

import numpy as np

from rubricnb.core.estimates.intervals import UNTESTED, jackknife_se, t_estimate
from rubricnb.core.estimates.reads import Reads, by_cluster, copies
from rubricnb.core.estimates.reasons import Reason, Reasons
from rubricnb.core.support.counting import binned, summed_from
from rubricnb.core.support.types import FloatArray, IntArray
from rubricnb.statistics.placement import (
    AT_ONCE,
    Block,
    at_positions,
    in_slots,
    read_profiles,
)

# a log-preference beyond this, or with this share of its information at 0 left,
_LARGEST = 12.0
_SEPARATED = 1e-4  # is on its way to infinity, not an estimate
# rows that are computed at once: in fewer, calls and not numbers take the time
_SMALL = 2_000
_FLAT = 1e-7  # gradient a row below which a maximum is reached
_MOST_STEPS = 100
# of the dynamic programme; 18 reads of 9 scores, two each, make 19,683
_MOST_STATES = 50_000
# the same, over all cases of a group: half a minute
_MOST_IN_ALL = 1_000_000


class Preference(NamedTuple):
    """Columns of a row, and why they may be unknown."""

    columns: dict[str, float]
    why: Reasons


def log_preferences(
    groups: Sequence[Reads], parts: Sequence[Sequence[Block]]
) -> list[Preference]:
    """Estimate γ of each group, summing to 0, with 95 % jackknife-t intervals.

    `parts`: the blocks of each group. The units of the jackknife are the clusters.
    Small groups are fitted together, each at its own γ: a table may have hundreds of
    them, and then the calls, and not the numbers, take the time.
    """
    fits: dict[int, tuple[Any, IntArray]] = {}
    # groups of single answers, by their number of options
    counted: dict[int, list[int]] = {}
    for k, reads in enumerate(groups):
        if reads.probability is None:
            counted.setdefault(reads.n_options, []).append(k)
        else:
            fits[k] = _fit_probabilities(reads, parts[k], _contrasts(reads.n_options))
    for n, own in counted.items():
        n_rows = np.cumsum([len(groups[k].cluster) * len(parts[k]) for k in own])
        for some in np.split(own, np.flatnonzero(np.diff(n_rows // _SMALL)) + 1):
            likelihood, why, cluster = _conditional(
                [groups[k] for k in some], [parts[k] for k in some]
            )
            found = _maxima(likelihood, why, _contrasts(n))
            for number, (k, fit) in enumerate(zip(some, found, strict=True)):
                fits[k] = fit, cluster[likelihood.group == number]
    return [_preference(reads, *fits[k]) for k, reads in enumerate(groups)]


def _preference(reads: Reads, fit: Any, cluster: IntArray) -> Preference:
    contrasts = _contrasts(reads.n_options)
    n_clusters = len(np.unique(reads.cluster[reads.parsed.any(axis=1)]))
    gamma, se = np.full((2, len(contrasts)), np.nan)
    why: Reasons = ()
    if isinstance(fit, Reason):
        why = (fit,)
    else:
        theta, score, information = fit
        gamma = contrasts @ theta
        if n_clusters > 1:
            # Jackknife over clusters, each left-out estimate by one Newton step.
            _, cluster = np.unique(cluster, return_inverse=True)
            u, h = by_cluster(score, cluster), by_cluster(information, cluster)
            rest = h.sum(axis=0) - h
            if (np.linalg.matrix_rank(rest) == contrasts.shape[1]).all():
                shift = np.linalg.solve(rest, u[..., None])[..., 0]
                se = jackknife_se(-shift @ contrasts.T)
            why = (Reason("log_preference.no_interval"),) if np.isnan(se).any() else ()
    out: dict[str, float] = {}
    for p, own in enumerate(zip(gamma, se, strict=True), start=1):
        out |= t_estimate(*own, n_clusters - 1).named(f"log_preference_{p}", *UNTESTED)
    return Preference(out, why)


@dataclass(frozen=True)
class _Pattern:
    """Rows whose scores repeat alike, say (3, 2): one score thrice, another twice.

    ``position[k, d, c]``: where the d-th score of case c stood under its k-th ordering.
    Rows of a group whose scores stood alike, in whatever order of reads or scores, are
    one case: ``case`` of each row, ``group`` of each case.
    """

    counts: tuple[int, ...]
    rows: IntArray
    position: IntArray
    case: IntArray
    group: IntArray


@dataclass(frozen=True)
class _Likelihood:
    """The conditional likelihood of γ, for one group or for several with their own."""

    observed: FloatArray  # (rows, n): position counts
    patterns: list[_Pattern]
    group: IntArray  # (rows,), from 0 and ascending

    @property
    def n_groups(self) -> int:
        """Number of groups; each has a row."""
        return int(self.group[-1]) + 1

    def at(self, gammas: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Groups' log-likelihoods and rows' gradients at γ (several, groups, n)."""
        of_row = (gammas[:, self.group] * self.observed).sum(axis=2)
        log_z = of_row.copy()  # a row with one score only is certain
        expected = np.tile(self.observed, (len(gammas), 1, 1))
        for pattern in self.patterns:
            z, chosen = _permanents(pattern, np.exp(gammas))
            log_z[:, pattern.rows] = np.log(z)[:, pattern.case]
            expected[:, pattern.rows] = chosen[:, pattern.case]
        return self.summed(of_row - log_z, axis=1), self.observed - expected

    def n_states(self) -> FloatArray:
        """Of the dynamic programme, over all cases of each group."""
        in_all = np.zeros(self.n_groups)
        for pattern in self.patterns:
            n_states = prod(c + 1 for c in pattern.counts)
            own = binned(pattern.group, minlength=len(in_all))
            in_all += own * (n_states if n_states <= _MOST_STATES else _MOST_IN_ALL + 1)
        return in_all

    def summed(self, rows: FloatArray, axis: int = 0) -> FloatArray:
        """Sum what belongs to rows within each group."""
        starts = np.searchsorted(self.group, np.arange(self.n_groups))
        return summed_from(rows, starts, axis)


def _conditional(
    groups: Sequence[Reads], parts: Sequence[Sequence[Block]]
) -> tuple[_Likelihood, list[Reason | None], IntArray]:
    """The likelihood of groups with the same number of options, and each row's cluster.

    Rows are item × block; copies of an answer count once. Between them stands for each
    group why it would take too long, if it would: then its rows are empty.
    """
    rows, orderings, group, cluster = [], [], [], []
    n_orderings = 0
    for k, (reads, blocks) in enumerate(zip(groups, parts, strict=True)):
        value = np.where(copies(reads), np.nan, reads.option)
        score = np.where(np.isnan(value), 0, value).astype(np.int64)
        for block in blocks:
            kept = np.where(block.cell >= 0, score, 0)
            order = np.where(kept > 0, reads.order + n_orderings, 0)
            # Parsed reads first, in the order of the design: score (0: none) and
            # ordering of each item's reads, (items, reads, 2).
            first = np.argsort(kept == 0, axis=1, kind="stable")
            packed = np.stack(
                [np.take_along_axis(a, first, axis=1) for a in (kept, order)], axis=2
            )
            longest = int((kept > 0).sum(axis=1).max(initial=1))
            rows.append(packed[:, : max(longest, 1)])
        orderings.append(reads.orderings)
        n_orderings += len(reads.orderings)
        cluster.append(np.tile(reads.cluster, len(blocks)))
        group.append(np.full(len(cluster[-1]), k))
    width = max(p.shape[1] for p in rows)
    rows = [np.pad(p, ((0, 0), (0, width - p.shape[1]), (0, 0))) for p in rows]
    every, of_row = np.concatenate(rows), np.concatenate(group)
    likelihood = _likelihood(every, np.concatenate(orderings), of_row)
    is_long = likelihood.n_states() > _MOST_IN_ALL
    if is_long.any():
        every[is_long[of_row]] = 0
        likelihood = _likelihood(every, np.concatenate(orderings), of_row)
    why = [Reason("log_preference.many_reads") if long else None for long in is_long]
    return likelihood, why, np.concatenate(cluster)


def _likelihood(rows: IntArray, orderings: IntArray, group: IntArray) -> _Likelihood:
    n = orderings.shape[1]
    position_of = np.argsort(orderings, axis=1)
    score, order = rows[..., 0], rows[..., 1]
    given = score > 0
    at = position_of[order, np.maximum(score - 1, 0)]
    index = np.nonzero(given)
    observed = binned(index[0] * n + at[index], minlength=len(rows) * n)
    # (rows, n): of each score
    count = (score[..., None] == np.arange(1, n + 1)).sum(axis=1)
    by_frequency = np.argsort(-count, axis=1, kind="stable")
    shape = np.take_along_axis(count, by_frequency, axis=1)
    patterns = []
    found, kind = np.unique(shape, axis=0, return_inverse=True)
    for number, row in enumerate(found):
        counts = tuple(int(c) for c in row if c)
        if len(counts) < 2:
            continue
        members = np.flatnonzero(kind.ravel() == number)
        k = sum(counts)
        scores = by_frequency[members, : len(counts)]
        position = position_of[order[members, :k, None], scores[:, None, :]]
        patterns.append(_pattern(counts, members, position, group[members], n))
    of_rows = observed.reshape(-1, n).astype(float)
    return _Likelihood(of_rows, patterns, group)


def _pattern(
    counts: tuple[int, ...], rows: IntArray, position: IntArray, group: IntArray, n: int
) -> _Pattern:
    """Find the distinct cases of rows with their positions (rows, k, d) and groups."""
    base = n ** np.arange(position.shape[2])
    codes = np.sort(position @ base, axis=1)  # the order of the reads does not matter
    distinct, case = np.unique(
        np.column_stack([group, codes]), axis=0, return_inverse=True
    )
    decoded = distinct[:, 1:, None] // base % n
    cases = np.ascontiguousarray(decoded.transpose(1, 2, 0))
    return _Pattern(counts, rows, cases, case.ravel(), group=distinct[:, 0])


def _permanents(
    pattern: _Pattern, weights: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Sum over assignments of scores to orderings, and the expected position counts.

    Shapes, of `weights` (several, groups, n): (several, cases) and (several, cases, n).
    """
    several, _, n = weights.shape
    k, d, n_cases = pattern.position.shape
    w = np.moveaxis(weights[:, pattern.group, pattern.position], 0, 2).reshape(k, d, -1)
    layers, before, after, n_states = _states(pattern.counts)
    # One state more than there are: where nobody comes from and nobody gets to.
    forward = np.zeros((n_states + 1, several * n_cases))
    backward = np.zeros_like(forward)
    forward[0] = backward[n_states - 1] = 1.0
    for read, states in enumerate(layers[1:]):
        forward[states] = (forward[before[states]] * w[read]).sum(axis=1)
    for read, states in reversed(list(enumerate(layers[:-1]))):
        backward[states] = (backward[after[states]] * w[read]).sum(axis=1)
    z = forward[n_states - 1]
    chosen = np.stack(
        [
            (forward[states, None] * backward[after[states]]).sum(axis=0)
            for states in layers[:-1]
        ]
    )
    chosen *= w / z
    cell = np.tile(pattern.position, several) + n * np.arange(several * n_cases)
    weighted = binned(
        cell.ravel(), weights=chosen.ravel(), minlength=several * n_cases * n
    )
    expected = np.asarray(weighted, float)
    return z.reshape(several, n_cases), expected.reshape(several, n_cases, n)


@cache
def _states(counts: tuple[int, ...]) -> tuple[list[IntArray], IntArray, IntArray, int]:
    """States of the dynamic programme (uses of each score), by number of reads.

    With them, for every state and score, the state before and after one more read of
    that score.
    """
    shape = tuple(c + 1 for c in counts)
    used = np.indices(shape).reshape(len(shape), -1).T
    n_states = len(used)
    stride = np.array([prod(shape[d + 1 :]) for d in range(len(shape))])
    states = np.arange(n_states)[:, None]
    before = np.where(used == 0, n_states, states - stride)
    after = np.where(used == counts, n_states, states + stride)
    reads = used.sum(axis=1)
    return (
        [np.flatnonzero(reads == k) for k in range(sum(counts) + 1)],
        before,
        after,
        n_states,
    )


def _maxima(
    likelihood: _Likelihood, why: list[Reason | None], contrasts: FloatArray
) -> list[Any]:
    """Maximise for each group: (θ, rows' scores, rows' information), or why not.

    `why`: what already speaks against it.
    """
    theta = np.zeros((likelihood.n_groups, contrasts.shape[1]))
    start = likelihood.summed(_information(likelihood, theta, contrasts))
    fits: list[Any] = [
        known or _singular(one) for known, one in zip(why, start, strict=True)
    ]
    able = np.flatnonzero([fit is None for fit in fits])
    if not len(able):
        return fits
    theta = _newton(likelihood, contrasts, able)
    information = _information(likelihood, theta, contrasts)
    total = likelihood.summed(information)
    left = np.linalg.eigvalsh(total)[able, 0] / np.linalg.eigvalsh(start)[able, 0]
    largest = np.abs(theta[able] @ contrasts.T).max(axis=1)
    is_finite = (largest <= _LARGEST) & (left >= _SEPARATED)
    # One more step polishes the last digits.
    finite = able[is_finite]
    score = likelihood.summed(_scores(likelihood, theta, contrasts))[finite]
    theta[finite] += np.linalg.solve(total[finite], score[..., None])[..., 0]
    scores = _scores(likelihood, theta, contrasts)
    for k, finite_k in zip(able, is_finite, strict=True):
        rows = likelihood.group == k
        fit = (theta[k], scores[rows], information[rows])
        fits[k] = fit if finite_k else Reason("log_preference.infinite")
    return fits


def _newton(
    likelihood: _Likelihood, contrasts: FloatArray, active: IntArray
) -> FloatArray:
    """Climb to the maximum of each, (groups, size), from 0; or to where it is infinite.

    The likelihoods are concave. A step that is too long, so that it loses, is halved.
    A group that is not `active`, or that has arrived, stays where it is.
    """
    theta, step = np.zeros((2, likelihood.n_groups, contrasts.shape[1]))
    best = np.full(likelihood.n_groups, -np.inf)
    n_rows = binned(likelihood.group)
    for _ in range(_MOST_STEPS):
        gamma = theta @ contrasts.T
        (value,), (gradient,) = likelihood.at(gamma[None])
        score = likelihood.summed(gradient) @ contrasts
        has_lost = value[active] < best[active] - 1e-9
        lost = active[has_lost]
        step[lost] /= 2
        theta[lost] -= step[lost]
        best = np.maximum(best, value)
        is_flat = np.abs(score).max(axis=1) <= _FLAT * n_rows
        goes_on = ~is_flat & (np.abs(gamma).max(axis=1) <= _LARGEST)
        moving = active[~has_lost & goes_on[active]]
        if len(moving):
            total = likelihood.summed(_information(likelihood, theta, contrasts))
            step[moving] = np.linalg.solve(total[moving], score[moving, :, None])[
                ..., 0
            ]
            step[moving] /= np.maximum(
                np.abs(step[moving]).max(axis=1, keepdims=True), 1.0
            )
            theta[moving] += step[moving]
        active = np.union1d(moving, lost)
        if not len(active):
            break
    return theta


def _scores(
    likelihood: _Likelihood, theta: FloatArray, contrasts: FloatArray
) -> FloatArray:
    """Gradient of each row in θ: (rows, size)."""
    _, (gradient,) = likelihood.at((theta @ contrasts.T)[None])
    return gradient @ contrasts


def _information(
    likelihood: _Likelihood, theta: FloatArray, contrasts: FloatArray
) -> FloatArray:
    """Minus each row's second derivative, from differences: (rows, size, size)."""
    h, size = 1e-4, contrasts.shape[1]
    ends = theta + h * np.concatenate([-np.eye(size), np.eye(size)])[:, None]
    # All ends at once; of large groups one after the other, for the sake of memory.
    parts = np.array_split(ends, 1 if len(likelihood.observed) <= _SMALL else len(ends))
    found = np.concatenate(
        [likelihood.at(part @ contrasts.T)[1] @ contrasts for part in parts]
    )
    return np.moveaxis((found[:size] - found[size:]) / (2 * h), 0, -1)


def _fit_probabilities(
    reads: Reads, blocks: Sequence[Block], contrasts: FloatArray
) -> tuple[Any, IntArray]:
    """Fit P(s) ∝ exp(α[row, s] + γ[position of s]) by Newton's method."""
    rows = [*_probability_rows(reads, blocks)]
    cluster = np.concatenate([reads.cluster[:0], *[some.cluster for some in rows]])
    if len(cluster) == 0:
        return Reason("log_preference.no_read"), cluster
    theta = np.zeros(contrasts.shape[1])
    for _ in range(50):
        found = [some.solved(contrasts @ theta, contrasts) for some in rows]
        score, information = (
            np.concatenate(own) for own in zip(*[f[:2] for f in found], strict=True)
        )
        total = information.sum(axis=0)
        if _singular(total):
            return Reason("log_preference.certain"), cluster
        step = np.linalg.solve(total, score.sum(axis=0))
        step *= min(1.0, 1.0 / max(np.abs(step).max(), 1e-300))
        largest = np.abs(step).max()
        theta = theta + step
        for some, (_, _, base, cross) in zip(rows, found, strict=True):
            alpha_step = base - cross @ step
            some.alpha += np.clip(alpha_step, -4, 4)
            largest = max(largest, 1e-4 * np.abs(alpha_step).max())
        if largest < 1e-12:
            break
    else:
        return Reason("log_preference.no_convergence"), cluster
    if np.abs(contrasts @ theta).max() > _LARGEST:
        return Reason("log_preference.infinite"), cluster
    return (theta, score, information), cluster


class _Answers:
    """Rows, item × block: probabilities of each slot by score, and the row's α.

    `p`: (rows, slots, n), sums over `count` reads. `shown`: (rows, slots, n), the score
    at each position.
    """

    def __init__(
        self, p: FloatArray, count: FloatArray, shown: IntArray, cluster: IntArray
    ) -> None:
        self.p, self.count, self.cluster = p, count[..., None], cluster
        self.shown, self.position = shown, np.argsort(shown, axis=2)
        total = p.sum(axis=1)
        self.alpha = np.log(total / total.sum(axis=1, keepdims=True))  # best at γ = 0

    def by_score_and_position(self, values: FloatArray) -> FloatArray:
        """Put numbers by score beside the same ones by position."""
        return np.concatenate([values, at_positions(values, self.shown)], axis=2)

    def solved(self, gamma: FloatArray, contrasts: FloatArray) -> list[FloatArray]:
        """Score and information of θ per row with α solved for; and the step of α.

        That step is the third less the fourth times the step of θ.
        """
        n, row = len(gamma), np.arange(len(self.p))[:, None]
        eta = self.alpha[:, None] + gamma[self.position]
        share = np.exp(eta - eta.max(axis=2, keepdims=True))
        share /= share.sum(axis=2, keepdims=True)
        mu = self.count * share
        both = self.by_score_and_position(share * np.sqrt(self.count))
        hessian = -both.swapaxes(1, 2) @ both
        gradient = self.by_score_and_position(self.p - mu).sum(axis=1)
        diagonal = np.arange(2 * n)
        total = self.by_score_and_position(mu).sum(axis=1)
        hessian[:, diagonal, diagonal] += total
        for slot in range(self.p.shape[1]):
            at = n + self.position[:, slot]
            hessian[row, np.arange(n), at] += mu[:, slot]
        cross = hessian[:, :n, n:] @ contrasts
        h_alpha = hessian[:, :n, :n] + 1.0 / n  # α is free up to a constant
        h_alpha += 1e-12 * np.eye(n)
        base_and_share = np.linalg.solve(
            h_alpha, np.concatenate([cross, gradient[:, :n, None]], axis=2)
        )
        share, base = base_and_share[..., :-1], base_and_share[..., -1]
        score = gradient[:, n:] @ contrasts - np.einsum("rsc,rs->rc", cross, base)
        h_theta = contrasts.T @ hessian[:, n:, n:] @ contrasts
        return [score, h_theta - cross.swapaxes(1, 2) @ share, base, share]


def _probability_rows(reads: Reads, blocks: Sequence[Block]) -> Iterator[_Answers]:
    """Yield the rows that have two answers, as many at once as stay in the cache."""
    answers = np.maximum(read_profiles(reads), 1e-6)
    answers *= reads.parsed[..., None] / answers.sum(axis=2, keepdims=True)
    for block in blocks:
        useful = np.flatnonzero(block.count.sum(axis=1) > 1)
        most = max(1, AT_ONCE // block.profile[0].size)
        for start in range(0, len(useful), most):
            some = useful[start : start + most]
            yield _Answers(
                in_slots(answers[some], block.cell[some], block.shown.shape[1]),
                block.count[some],
                block.shown[some],
                reads.cluster[some],
            )


def _contrasts(n: int) -> FloatArray:
    """Orthonormal basis (n, n - 1) of the vectors that sum to 0 (Helmert)."""
    basis = np.triu(np.ones((n, n - 1)))
    basis[np.arange(1, n), np.arange(n - 1)] = -np.arange(1, n)
    return basis / np.linalg.norm(basis, axis=0)


def _singular(information: FloatArray) -> Reason | None:
    values = np.linalg.eigvalsh((information + information.T) / 2)
    if values[-1] <= 1e-9:
        return Reason("log_preference.unchanged")
    return Reason("log_preference.blind") if values[0] < 1e-9 * values[-1] else None
