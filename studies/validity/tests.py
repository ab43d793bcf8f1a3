"""How often does a test reject: where nothing is planted, and where something is?"""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
from scipy import optimize, special, stats

from rubricnb.core.estimates.intervals import MARGINS, detectable, mean_t
from rubricnb.core.estimates.reads import Reads, by_cluster
from rubricnb.statistics.criterion import friedman, permutation_test
from rubricnb.statistics.placement import place
from rubricnb.statistics.position import cluster_test, minimum_detectable_v, papers_test
from rubricnb.statistics.ranking import paired_row
from studies.validity.planted import (
    PREFERENCE,
    Found,
    _answers,
    _clusters,
    _Judge,
    _mean_shares,
    _nominal,
    _utility,
)


def _independent(judge: _Judge, rng: np.random.Generator, costly: bool) -> Found:
    """One item a text."""
    yield from _tests(
        _answers(judge, 320, 1, rng), "power" if any(judge.gamma) else "size"
    )


def _detectable(concentration: float, rng: np.random.Generator, costly: bool) -> Found:
    """A preference of the size that `position_bias` calls detectable, at 80 %.

    V has no direction, but power has: every replication gives the preference to other
    positions.
    """
    gamma = rng.permutation(_just_detectable(concentration))
    yield from _tests(
        _answers(_Judge(concentration, tuple(gamma)), 320, 1, rng), "power"
    )


@cache
def _just_detectable(concentration: float) -> tuple[float, ...]:
    """The preference, scaled until its V is what 320 independent texts can detect."""
    rng = np.random.default_rng(3)
    studies = [place(_answers(_Judge(concentration), 320, 1, rng)) for _ in range(50)]
    detectable_v = np.mean([minimum_detectable_v(study, 5) for study in studies])

    def scaled(size: float) -> tuple[float, ...]:
        return tuple(size * g for g in PREFERENCE)

    def excess(size: float) -> float:
        utility = _utility(
            _Judge(concentration, scaled(size)), 5_000, 1, np.random.default_rng(4)
        )
        return float(
            np.sqrt(5 / 4 * ((_mean_shares(utility) - 1 / 5) ** 2).sum()) - detectable_v
        )

    return scaled(float(optimize.brentq(excess, 0.01, 10, xtol=1e-4)))


def _clustered(judge: _Judge, rng: np.random.Generator, costly: bool) -> Found:
    """Six items a text, no preference."""
    reads = _answers(judge, 96, 6, rng)
    yield from _tests(reads, "size")
    if costly:
        yield "size", "position", "item permutation", 0.05, _itemwise(reads)
    if judge.reverse_shift and costly:
        # A row that no read used makes the orderings a single block.
        one_block = replace(
            reads, orderings=np.vstack([reads.orderings, np.arange(5, 0, -1)])
        )
        yield (
            "size",
            "position",
            "cluster permutation, unstratified",
            0.05,
            _rejects(one_block),
        )


def _duplicated(rng: np.random.Generator, costly: bool) -> Found:
    """Two scores: 4 reads in 2 distinct orderings of a greedy judge, repeated."""
    reads = _answers(_Judge(gamma=(0.0, 0.0)), 96, 6, rng)
    distinct, first_read, order = np.unique(
        reads.orderings, axis=0, return_index=True, return_inverse=True
    )
    value = reads.value[:, first_read][:, order]
    order = np.broadcast_to(order, value.shape)
    yield from _tests(
        replace(reads, value=value, order=order, orderings=distinct), "size"
    )
    if costly:  # each copy is taken for an ordering of its own
        yield (
            "size",
            "position",
            "item permutation",
            0.05,
            _itemwise(replace(reads, value=value)),
        )


def _tests(reads: Reads, kind: str) -> Found:
    placement = place(reads)
    papers_p = papers_test(reads, placement, [])["p_chi2"]
    our_p = cluster_test(placement, int(reads.cluster.max()) + 1, [])["p_within"]
    yield kind, "position", "χ² of the papers", _nominal(kind), float(papers_p < 0.05)
    yield kind, "position", "cluster permutation", _nominal(kind), float(our_p < 0.05)


def _rejects(reads: Reads) -> float:
    return float(
        cluster_test(place(reads), int(reads.cluster.max()) + 1, [])["p_within"] < 0.05
    )


def _itemwise(reads: Reads) -> float:
    """The same test where every item is taken for a cluster of its own."""
    return _rejects(replace(reads, cluster=_clusters(len(reads.value), 1)))


def _rare_difference(n: int, rng: np.random.Generator, costly: bool) -> Found:
    """5 % of the prompts flip, which is the margin: who calls that nothing?"""
    flips = (rng.random(n) < MARGINS["flips"]).astype(np.float64)
    row = paired_row(flips, np.arange(n))
    mean, se = flips.mean(), max(float(stats.sem(flips)), 1e-9)
    naive_p = float(special.stdtr(n - 1, (mean - MARGINS["flips"]) / se))
    yield "size", "equivalence of flips", "t", 0.05, float(naive_p < 0.05)
    rejected = float(row["p_equivalent"] < 0.05)
    yield "size", "equivalence of flips", "t, variance at the margin", 0.05, rejected


def _detectable_mean(n: int, rng: np.random.Generator, costly: bool) -> Found:
    """An effect called detectable, or 2.8 standard errors: who finds it?"""
    noise, se = rng.standard_normal(n), 1 / np.sqrt(n)
    for method, effect in (
        ("2.8 standard errors", 2.8 * se),
        ("ours", detectable(se, n - 1)),
    ):
        p = mean_t(noise + effect, np.arange(n)).p
        yield "power", "detectable effect", method, float("nan"), float(p < 0.05)


def _criterion_position(gap: float, rng: np.random.Generator, costly: bool) -> Found:
    """Six criterion positions, 96 texts of 4 responses that share an effect."""
    effect = gap * np.linspace(0.5, -0.5, 6)
    shared = np.repeat(0.3 * rng.standard_normal((96, 6)), 4, axis=0)
    scores = 3 + shared + effect + 0.42 * rng.standard_normal((384, 6))
    sums = by_cluster(scores, np.repeat(np.arange(96), 4))
    kind = "power" if gap else "size"
    friedman_p, our_p = friedman(scores)[1], permutation_test(sums, len(scores))[1]
    yield (
        kind,
        "criterion position",
        "Friedman of the papers",
        _nominal(kind),
        float(friedman_p < 0.05),
    )
    yield (
        kind,
        "criterion position",
        "cluster permutation",
        _nominal(kind),
        float(our_p < 0.05),
    )
    if costly:
        position_means = scores.mean(axis=0)
        yield (
            "recovery",
            "ΔPos",
            "largest − smallest (the papers)",
            gap,
            float(np.ptp(position_means)),
        )
        yield (
            "recovery",
            "ΔPos",
            "first − last, named beforehand",
            gap,
            float(position_means[0] - position_means[-1]),
        )
