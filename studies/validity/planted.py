"""What is planted: judges with known preferences, texts with known quality."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy import special

# The study runs the code it judges, so it goes behind the frames: that makes thousands
# of replications a matter of minutes.
from rubricnb.core.estimates.reads import Reads
from rubricnb.core.permutation import balanced, code
from rubricnb.core.support.types import FloatArray, IntArray

PREFERENCE = (0.231, -0.044, -0.098, -0.098, 0.008)  # of a judge like GPT-OSS-20B in v2
# kind, quantity, method, truth, value
Found = Iterator[tuple[str, str, str, float, float]]


@dataclass(frozen=True)
class _Cell:
    """One kind of study: ``simulate(rng, costly)`` yields a replication's values."""

    simulate: Callable[[np.random.Generator, bool], Found]
    replications: int = 4_000
    n_costly: int = 500  # replications that also do what is costly


class _Judge(NamedTuple):
    """P(score | item, ordering) ∝ exp(α + γ[position] + noise), Dirichlet exp(α).

    `text_noise` is the sd of a text × ordering × score effect that the items of a
    cluster share; `reverse_shift` favours high scores in reverse lists.
    """

    concentration: float = 1.0
    gamma: tuple[float, ...] = (0.0,) * 5
    text_noise: float = 0.0
    reverse_shift: float = 0.0


def _nominal(kind: str) -> float:
    return 0.05 if kind == "size" else float("nan")


@cache
def _clusters(n_clusters: int, per_cluster: int | tuple[int, ...]) -> IntArray:
    return np.repeat(np.arange(n_clusters), per_cluster)


def _answers(
    judge: _Judge,
    n_clusters: int,
    per_cluster: int | tuple[int, ...],
    rng: np.random.Generator,
) -> Reads:
    """Sample a study of the balanced design."""
    utility = _utility(judge, n_clusters, per_cluster, rng)
    score = (utility + rng.gumbel(size=utility.shape)).argmax(axis=2) + 1
    orderings, _ = _orderings(len(judge.gamma))
    order = np.broadcast_to(np.arange(len(orderings)), score.shape)
    cluster = _clusters(n_clusters, per_cluster)
    return _unnamed(cluster, score.astype(np.float64), order, orderings)


def _unnamed(
    cluster: IntArray, value: FloatArray, order: IntArray, orderings: IntArray
) -> Reads:
    """Reads of items that no judgment names."""
    no_names = pd.DataFrame(index=np.arange(len(cluster)))
    return Reads(
        no_names, np.arange(len(cluster)), cluster, value, order, orderings, None, None
    )


def _utility(
    judge: _Judge,
    n_clusters: int,
    per_cluster: int | tuple[int, ...],
    rng: np.random.Generator,
) -> FloatArray:
    """Log-probability of each score up to a constant: (items, orderings, n)."""
    n = len(judge.gamma)
    orderings, position_of = _orderings(n)
    n_items = int(np.broadcast_to(per_cluster, n_clusters).sum())
    dirichlet = rng.dirichlet(np.full(n, judge.concentration), n_items)
    utility = (
        np.log(dirichlet + 1e-12)[:, None, :] + np.asarray(judge.gamma)[position_of]
    )
    if judge.text_noise:
        noise = judge.text_noise * rng.standard_normal((n_clusters, len(orderings), n))
        utility = utility + np.repeat(noise, per_cluster, axis=0)
    if judge.reverse_shift:
        utility[:, n:] += judge.reverse_shift * np.linspace(-1, 1, n)
    return np.asarray(utility)


@cache
def _orderings(n: int) -> tuple[IntArray, IntArray]:
    """The balanced design, and the position of each score in each of its orderings."""
    orderings = np.asarray(balanced(n).orderings(), dtype=np.int64)
    return orderings, np.argsort(orderings, axis=1)


_PREFERRING = _Judge(1.0, PREFERENCE, text_noise=1.0)


@cache
def _true_shares() -> FloatArray:
    """Expected shares under the planted preference, from 120,000 independent texts."""
    total = np.zeros(5)
    for part in range(60):
        rng = np.random.default_rng([1, part])
        total += _mean_shares(_utility(_PREFERRING, 2_000, 1, rng))
    return total / 60


def _mean_shares(utility: FloatArray) -> FloatArray:
    """Expected position shares of the balanced design, from log-probabilities."""
    p = special.softmax(utility, axis=2)
    orderings, _ = _orderings(p.shape[2])
    return np.asarray(
        np.take_along_axis(p, orderings[None] - 1, axis=2).mean(axis=(0, 1))
    )


def _covers(
    quantity: str, method: str, low: float, high: float, truth: float
) -> tuple[str, str, str, float, float]:
    defined = np.isfinite(low) and np.isfinite(high)
    return (
        "coverage",
        quantity,
        method,
        0.95,
        float(low <= truth <= high) if defined else np.nan,
    )


_SIZES = {n: (6,) * int(n) for n in ("6", "10", "20", "40", "60", "96")}
_SIZES["uneven"] = tuple(int(m) for m in np.linspace(1, 45, 20).round())
_LEVELS = {
    "skewed": (0.03, 0.07, 0.12, 0.92),
    "binary": (0.8,),
    "even": (0.2, 0.4, 0.6, 0.8),
    "ceiling": (0.01, 0.03, 0.07, 0.15),
}


def _graded(
    levels: str, sizes: tuple[int, ...], rng: np.random.Generator
) -> tuple[IntArray, FloatArray, FloatArray]:
    """Cluster and rating of items, and ten reads of each, half of them shared."""
    cluster = np.repeat(np.arange(len(sizes)), sizes)
    shared, own = (
        rng.standard_normal((2, len(sizes))),
        rng.standard_normal((2, len(cluster))),
    )
    quality, error = (shared[:, cluster] + own) / np.sqrt(2)
    noise = 0.5 * rng.standard_normal((len(cluster), 10))
    latent = ((0.6 * quality + 0.8 * error)[:, None] + noise) / np.sqrt(1.25)
    cuts = special.ndtri(_LEVELS[levels])
    human, reads = (np.searchsorted(cuts, values) + 1.0 for values in (quality, latent))
    return cluster, human, reads


def _as_reads(cluster: IntArray, value: FloatArray) -> Reads:
    order = np.broadcast_to(np.arange(value.shape[1]), value.shape)
    return _unnamed(cluster, value, order, _orderings(5)[0])


def _crossed(
    n_prompts: int, n_candidates: int, favour: float, rng: np.random.Generator
) -> tuple[Any, float]:
    """Judgments of n prompts × m candidates × ten orders, and the φ of their reads."""
    spread = {"prompt": 0.5, "item": 0.25, "noise": 1.0}
    effects = {
        name: np.sqrt(variance) * rng.standard_normal((n_prompts, n_candidates, 10))
        for name, variance in spread.items()
    }
    systems = np.linspace(-0.5, 0.5, n_candidates)
    scores = (
        effects["prompt"][:, :1, :1]
        + effects["item"][:, :, :1]
        + systems[:, None]
        + effects["noise"]
    )
    scores = scores + 0.3 * rng.standard_normal(10)
    scores = scores + np.sqrt(favour) * rng.standard_normal((n_candidates, 10))
    prompt, candidate, order = (index.ravel() for index in np.indices(scores.shape))
    table = pd.DataFrame(
        {
            "item_id": prompt * n_candidates + candidate,
            "cluster_id": prompt,
            "candidate": candidate,
            "ordering": np.array(code(_orderings(5)[0]))[order],
            "score": scores.ravel(),
        }
    )
    return table, spread["noise"] / (0.75 + systems.var())
