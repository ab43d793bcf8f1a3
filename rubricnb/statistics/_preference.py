"""Log-preference for each position: a conditional logit with item × score conditioned out.

If P(score | item, ordering) ∝ exp(α[item, score] + γ[position of the score]), then given *which*
scores an item received, the orderings under which it received them depend on γ only: the terms α
and the normalisers cancel. The denominator sums over all assignments of those scores to the
orderings (a permanent), by dynamic programming over how many of each score are still to place.

With probabilities instead of single answers the same model is fitted to them directly: α is then
estimated without error, so it need not be conditioned out.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from math import prod
from typing import Any

import numpy as np
from scipy import optimize

from rubricnb.statistics._placement import Block, blocks, read_profiles
from rubricnb.statistics.intervals import UNTESTED, jackknife_se, t_estimate
from rubricnb.statistics.reads import FloatArray, IntArray, Reads, by_cluster, copies
from rubricnb.statistics.reasons import Reason

_LARGEST = 12.0  # a log-preference beyond this, or with this share of its information at 0 left,
_SEPARATED = 1e-4  # is on its way to infinity, not an estimate
_SMALL = 2_000  # rows below which calls, and not numbers, take the time
_MOST_STATES = 50_000  # of the dynamic programme; 18 reads of 9 scores, two each, make 19,683


def log_preference(reads: Reads, n_clusters: int, reasons: list[Reason]) -> dict[str, float]:
    """Estimate γ, summing to 0, with 95 % jackknife-t intervals over clusters."""
    n = reads.n_options
    gamma, se = np.full(n, np.nan), np.full(n, np.nan)
    contrasts = _contrasts(n)
    if reads.probability is None:
        likelihood, cluster = _conditional(reads)
        fit = _fit_conditional(likelihood, contrasts)
    else:
        fit, cluster = _fit_probabilities(reads, contrasts)
    if isinstance(fit, Reason):
        reasons.append(fit)
    else:
        theta, score, information = fit
        gamma = contrasts @ theta
        if n_clusters > 1:
            se = _cluster_se(score, information, cluster, contrasts)
    out: dict[str, float] = {}
    for p, own in enumerate(zip(gamma, se, strict=True), start=1):
        out |= t_estimate(*own, n_clusters - 1).named(f"log_preference_{p}", *UNTESTED)
    return out


@dataclass(frozen=True)
class _Pattern:
    """Rows whose scores repeat alike, say (3, 2): one score thrice, another twice.

    ``position[k, d, c]``: where the d-th score of case c stood under its k-th ordering. Rows whose
    scores stood alike, in whatever order of reads or scores, are one case: ``case`` of each row.
    """

    counts: tuple[int, ...]
    rows: IntArray
    position: IntArray
    case: IntArray


@dataclass(frozen=True)
class _Likelihood:
    """The conditional likelihood of γ."""

    observed: FloatArray  # (rows, n): position counts
    patterns: list[_Pattern]

    def __call__(self, gamma: FloatArray) -> tuple[float, FloatArray]:
        """Return the log-likelihood and each row's gradient."""
        values, gradients = self.at(gamma[None])
        return float(values[0]), gradients[0]

    def at(self, gammas: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The same at several γ (several, n), in one pass: (several,) and (several, rows, n)."""
        log_z = gammas @ self.observed.T  # a row with one score only is certain
        expected = np.tile(self.observed, (len(gammas), 1, 1))
        for pattern in self.patterns:
            z, chosen = _permanents(pattern, np.exp(gammas))
            log_z[:, pattern.rows] = np.log(z)[:, pattern.case]
            expected[:, pattern.rows] = chosen[:, pattern.case]
        values = gammas @ self.observed.sum(axis=0) - log_z.sum(axis=1)
        return np.asarray(values), self.observed - expected


def _conditional(reads: Reads) -> tuple[_Likelihood, IntArray]:
    """Rows are item × block; copies of an answer count once."""
    value = np.where(copies(reads), np.nan, reads.option)
    score = np.where(np.isnan(value), 0, value).astype(np.int64)
    parts = [_block_rows(block, score, reads) for block in blocks(reads)]
    width = max(p.shape[1] for p in parts)
    parts = [np.pad(p, ((0, 0), (0, width - p.shape[1]), (0, 0))) for p in parts]
    rows = np.concatenate(parts)  # (items × blocks, reads, 2): score (0: none), ordering
    return _likelihood(rows, reads.orderings), np.tile(reads.cluster, len(parts))


def _block_rows(block: Block, score: IntArray, reads: Reads) -> IntArray:
    kept = np.where(block.cell >= 0, score, 0)
    order = np.where(kept > 0, reads.order, 0)
    # Parsed reads first, in the order of the design.
    first = np.argsort(kept == 0, axis=1, kind="stable")
    packed = np.stack([np.take_along_axis(a, first, axis=1) for a in (kept, order)], axis=2)
    longest = int((kept > 0).sum(axis=1).max(initial=1))
    return packed[:, : max(longest, 1)]


def _likelihood(rows: IntArray, orderings: IntArray) -> _Likelihood:
    n = orderings.shape[1]
    position_of = np.argsort(orderings, axis=1)
    score, order = rows[..., 0], rows[..., 1]
    given = score > 0
    at = position_of[order, np.maximum(score - 1, 0)]
    index = np.nonzero(given)
    observed = np.bincount(index[0] * n + at[index], minlength=len(rows) * n)
    count = (score[..., None] == np.arange(1, n + 1)).sum(axis=1)  # (rows, n): of each score
    by_frequency = np.argsort(-count, axis=1, kind="stable")
    shape = np.take_along_axis(count, by_frequency, axis=1)
    patterns = []
    for counts, members in _alike(shape):
        if len(counts) < 2:
            continue
        k = sum(counts)
        scores = by_frequency[members, : len(counts)]
        position = position_of[order[members, :k, None], scores[:, None, :]]
        patterns.append(_Pattern(counts, members, *_cases(position, n)))
    return _Likelihood(observed.reshape(-1, n).astype(np.float64), patterns)


def _cases(position: IntArray, n: int) -> tuple[IntArray, IntArray]:
    """Distinct cases (k, d, cases) of positions (rows, k, d), and the case of each row."""
    base = n ** np.arange(position.shape[2])
    codes = np.sort(position @ base, axis=1)  # the order of the reads does not matter
    distinct, case = np.unique(codes, axis=0, return_inverse=True)
    decoded = distinct[..., None] // base % n
    return np.ascontiguousarray(decoded.transpose(1, 2, 0)), case.ravel()


def _alike(shape: IntArray) -> list[tuple[tuple[int, ...], IntArray]]:
    found, inverse = np.unique(shape, axis=0, return_inverse=True)
    return [
        (tuple(int(c) for c in counts if c), np.flatnonzero(inverse.ravel() == i))
        for i, counts in enumerate(found)
    ]


def _permanents(pattern: _Pattern, weights: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Sum over assignments of scores to orderings, and the expected position counts.

    Shapes, of `weights` (several, n): (several, cases) and (several, cases, n).
    """
    several, n = weights.shape
    k, d, n_cases = pattern.position.shape
    w = np.moveaxis(weights[:, pattern.position], 0, 2).reshape(k, d, -1)
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
        [(forward[states, None] * backward[after[states]]).sum(axis=0) for states in layers[:-1]]
    )
    chosen *= w / z
    cell = np.tile(pattern.position, several) + n * np.arange(several * n_cases)
    weighted = np.bincount(cell.ravel(), weights=chosen.ravel(), minlength=several * n_cases * n)
    expected = np.asarray(weighted, np.float64)
    return z.reshape(several, n_cases), expected.reshape(several, n_cases, n)


@cache
def _states(counts: tuple[int, ...]) -> tuple[list[IntArray], IntArray, IntArray, int]:
    """States of the dynamic programme (how often each score is used up), by number of reads.

    With them, for every state and score, the state before and after one more read of that score.
    """
    shape = tuple(c + 1 for c in counts)
    used = np.indices(shape).reshape(len(shape), -1).T
    n_states = len(used)
    stride = np.array([prod(shape[d + 1 :]) for d in range(len(shape))])
    states = np.arange(n_states)[:, None]
    before = np.where(used == 0, n_states, states - stride)
    after = np.where(used == counts, n_states, states + stride)
    reads = used.sum(axis=1)
    return [np.flatnonzero(reads == k) for k in range(sum(counts) + 1)], before, after, n_states


def _fit_conditional(likelihood: _Likelihood, contrasts: FloatArray) -> Any:
    """Maximise it: (θ, each row's score, each row's information), or why not."""
    size = contrasts.shape[1]
    if max((prod(c + 1 for c in p.counts) for p in likelihood.patterns), default=0) > _MOST_STATES:
        return Reason("log_preference.many_reads")

    def rowwise(theta: FloatArray) -> FloatArray:
        return likelihood(contrasts @ theta)[1] @ contrasts

    def information(theta: FloatArray) -> FloatArray:
        h = 1e-4
        ends = theta + h * np.concatenate([-np.eye(size), np.eye(size)])
        # At once, as a table may have hundreds of small groups; large ones one after the other.
        parts = np.array_split(ends, 1 if len(likelihood.observed) < _SMALL else len(ends))
        found = np.concatenate([likelihood.at(part @ contrasts.T)[1] @ contrasts for part in parts])
        steps = (found[:size] - found[size:]) / (2 * h)
        return np.moveaxis(steps, 0, -1)  # (rows, size, size)

    def negative(theta: FloatArray) -> tuple[float, FloatArray]:
        value, gradient = likelihood(contrasts @ theta)
        return -value, -gradient.sum(axis=0) @ contrasts

    start = information(np.zeros(size)).sum(axis=0)
    problem = _singular(start)
    if problem:
        return problem
    inverse = np.linalg.inv(start)
    found = optimize.minimize(
        negative,
        np.zeros(size),
        jac=True,
        method="BFGS",
        options={"hess_inv0": (inverse + inverse.T) / 2, "gtol": 1e-7 * len(likelihood.observed)},
    )
    theta = found.x
    per_row = information(theta)
    total = per_row.sum(axis=0)
    left = np.linalg.eigvalsh(total)[0] / np.linalg.eigvalsh(start)[0]
    if np.abs(contrasts @ theta).max() > _LARGEST or left < _SEPARATED:
        return Reason("log_preference.infinite")
    # One Newton step polishes BFGS's last digits.
    theta = theta + np.linalg.solve(total, rowwise(theta).sum(axis=0))
    return theta, rowwise(theta), per_row


def _fit_probabilities(reads: Reads, contrasts: FloatArray) -> tuple[Any, IntArray]:
    """Fit P(s) ∝ exp(α[row, s] + γ[position of s]) to the probabilities by Newton's method."""
    p, x, cluster = _probability_rows(reads, contrasts)
    size = contrasts.shape[1]
    alpha, theta = np.zeros((len(p), p.shape[2])), np.zeros(size)
    if len(p) == 0:
        return Reason("log_preference.no_read"), cluster
    for _ in range(50):
        mu = _softmax(alpha[:, None] + x @ theta, p)
        score, information, solve_alpha = _profile(p, mu, x)
        total = information.sum(axis=0)
        if _singular(total):
            return Reason("log_preference.certain"), cluster
        step = np.linalg.solve(total, score.sum(axis=0))
        step *= min(1.0, 1.0 / max(np.abs(step).max(), 1e-300))
        alpha_step = solve_alpha(step)
        alpha += np.clip(alpha_step, -4, 4)
        theta = theta + step
        if np.abs(step).max() < 1e-10 and np.abs(alpha_step).max() < 1e-6:
            break
    else:
        return Reason("log_preference.no_convergence"), cluster
    if np.abs(contrasts @ theta).max() > _LARGEST:
        return Reason("log_preference.infinite"), cluster
    return (theta, score, information), cluster


def _probability_rows(
    reads: Reads, contrasts: FloatArray
) -> tuple[FloatArray, FloatArray, IntArray]:
    """Rows are item × block: probabilities (rows, reads, scores), contrasts of their positions."""
    answers = np.maximum(read_profiles(reads), 1e-6)
    answers = np.where(reads.parsed[..., None], answers, 0.0)
    answers = answers / np.maximum(answers.sum(axis=2, keepdims=True), 1e-300)
    x = contrasts[np.argsort(reads.orderings, axis=1)][reads.order]  # (items, reads, scores, size)
    p = [np.where((block.cell >= 0)[..., None], answers, 0.0) for block in blocks(reads)]
    rows = np.concatenate(p)
    x = np.concatenate([x] * len(p))
    cluster = np.tile(reads.cluster, len(p))
    useful = (rows.sum(axis=2) > 0).sum(axis=1) > 1
    return rows[useful], x[useful], cluster[useful]


def _softmax(eta: FloatArray, p: FloatArray) -> FloatArray:
    mu = np.exp(eta - eta.max(axis=2, keepdims=True))
    return np.asarray(mu / mu.sum(axis=2, keepdims=True) * p.sum(axis=2, keepdims=True))


def _profile(p: FloatArray, mu: FloatArray, x: FloatArray) -> tuple[FloatArray, FloatArray, Any]:
    """Score and information of θ per row once α is solved for, and the step of α given θ's."""
    rest = p - mu
    g_theta = np.einsum("rks,rksc->rc", rest, x)
    g_alpha = rest.sum(axis=1)
    n = p.shape[2]
    h_alpha = mu.sum(axis=1)[:, :, None] * np.eye(n) - np.einsum("rks,rkt->rst", mu, mu)
    h_alpha = h_alpha + 1.0 / n + 1e-12 * np.eye(n)  # α is free up to a constant
    mean_x = np.einsum("rks,rksc->rkc", mu, x)
    h_cross = np.einsum("rks,rksc->rsc", mu, x) - np.einsum("rks,rkc->rsc", mu, mean_x)
    h_theta = np.einsum("rks,rksc,rksd->rcd", mu, x, x, optimize=True) - np.einsum(
        "rkc,rkd->rcd", mean_x, mean_x
    )
    solved = np.linalg.solve(h_alpha, np.concatenate([h_cross, g_alpha[..., None]], axis=2))
    cross, base = solved[..., :-1], solved[..., -1]
    score = g_theta - np.einsum("rsc,rs->rc", h_cross, base)
    information = h_theta - np.einsum("rsc,rsd->rcd", h_cross, cross)
    return score, information, lambda step: base - cross @ step


def _cluster_se(
    score: FloatArray, information: FloatArray, cluster: IntArray, contrasts: FloatArray
) -> FloatArray:
    """Jackknife over clusters, each left-out estimate by one Newton step."""
    _, cluster = np.unique(cluster, return_inverse=True)
    u, h = by_cluster(score, cluster), by_cluster(information, cluster)
    rest = h.sum(axis=0) - h
    size = contrasts.shape[1]
    if (np.linalg.matrix_rank(rest) < size).any():
        return np.full(len(contrasts), np.nan)
    shift = np.linalg.solve(rest, u[..., None])[..., 0]
    return jackknife_se(-shift @ contrasts.T)


def _contrasts(n: int) -> FloatArray:
    """Orthonormal basis (n, n - 1) of the vectors that sum to 0 (Helmert)."""
    basis = np.triu(np.ones((n, n - 1)))
    basis[np.arange(1, n), np.arange(n - 1)] = -np.arange(1, n)
    return np.asarray(basis / np.linalg.norm(basis, axis=0))


def _singular(information: FloatArray) -> Reason | None:
    values = np.linalg.eigvalsh((information + information.T) / 2)
    if values[-1] <= 1e-9:
        return Reason("log_preference.unchanged")
    return Reason("log_preference.blind") if values[0] < 1e-9 * values[-1] else None
