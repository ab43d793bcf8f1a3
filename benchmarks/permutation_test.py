"""The cluster permutation test on 16,000 reads, and what it replaces."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy import stats

import rubricnb as rb
from benchmarks import row, timed
from rubricnb.core.estimates.reads import reads
from rubricnb.engines.fitting import stand_in
from rubricnb.statistics.placement import place
from rubricnb.statistics.position import quadratic_form

DRAWS = 20_000


def measure() -> Iterator[dict[str, Any]]:
    items = stand_in("summeval")
    judgments = rb.simulate(rb.plan(items, rb.balanced(5)), items, "unbiased")
    alone = judgments.assign(cluster_id=judgments["item_id"])
    groups = {"100 clusters": reads(judgments), "1,600 clusters": reads(alone)}
    yield row("reads", int(groups["100 clusters"].parsed.sum()))
    times = timed(
        *(lambda own=own: closed_form(own) for own in groups.values()), repeats=25
    )
    for name, time in zip(groups, times, strict=True):
        yield row(name, 1000 * time.wall, "ms", "< 20")
        yield row(f"{name}, processor time", 1000 * time.cpu, "ms")
    [whole] = timed(lambda: rb.position_bias(judgments))
    yield row("position_bias, all columns", 1000 * whole.wall, "ms")
    for name, own in groups.items():
        mean, variance, p = permuted(own)
        placement = place(own)
        exact = np.diag(placement.variance)
        # Standard errors of a mean and of a variance from this many draws.
        off = np.abs(mean - placement.expected.sum(axis=0)) / np.sqrt(exact / DRAWS)
        wide = np.abs(np.diag(variance) / exact - 1) / np.sqrt(2 / DRAWS)
        yield row(f"{name}: mean, standard errors", float(off.max()), "", "<= 4")
        yield row(f"{name}: variance, same", float(wide.max()), "", "<= 4")
        yield row(f"{name}: p, points apart", 100 * abs(p - p_value(own)), "", "<= 2")


def closed_form(own: Any) -> tuple[float, int]:
    placement = place(own)
    return quadratic_form(placement.deviation.sum(axis=0), placement.variance)


def p_value(own: Any) -> float:
    q, df = closed_form(own)
    return float(stats.chi2.sf(q, df))


def permuted(own: Any) -> tuple[Any, Any, float]:
    """Permute the orderings by draws: the counts' mean and variance, and the tail.

    Draw permutations of the orderings, one a cluster and block: mean and variance of
    the counts, and the share of draws that lie as far out as what was observed.
    """
    rng = np.random.default_rng(0)
    n = own.n_options
    shown = own.orderings[own.order[0]]  # by read, the same for every item
    position = np.argsort(shown, axis=1)  # of each score under each read
    score = own.value.astype(int) - 1
    total = np.zeros((DRAWS, n))
    for block in (np.arange(n), np.arange(n, 2 * n)):  # forward and reverse rotations
        for cluster in np.unique(own.cluster):
            given = np.stack(
                [
                    np.bincount(s, minlength=n)
                    for s in score[own.cluster == cluster][:, block].T
                ]
            )
            stood = np.zeros((n, n, n))  # answers under j, placed under k, by position
            for k, ordering in enumerate(block):
                stood[:, k, position[ordering]] = given
            drawn = rng.permuted(np.tile(np.arange(n), (DRAWS, 1)), axis=1)
            total += stood[np.arange(n), drawn].sum(axis=1)
    mean, variance = total.mean(axis=0), np.cov(total.T)
    inverse = np.linalg.pinv(variance, rcond=1e-9, hermitian=True)
    placement = place(own)
    out = (total - mean) @ inverse
    observed = placement.count.sum(axis=0) - mean
    far = observed @ inverse @ observed
    return mean, variance, float(((out * (total - mean)).sum(axis=1) >= far).mean())
