"""Judgments with planted quality, position preference and shared noise."""

from __future__ import annotations

import numpy as np
import pandas as pd
from scipy import stats

from rubricnb.core.permutation import balanced, code

FIRST = (0.4, 0.1, -0.1, -0.2, -0.2)


def freedom(clusters):
    """Degrees of freedom of a variance over clusters, from their kurtosis (scipy's)."""
    n = len(clusters)
    excess = max(float(stats.kurtosis(clusters, bias=False)), 0) if n > 7 else 0
    return 1 / (1 / (n - 1) + excess / (2 * n))


def t_interval(means):
    """Low, high and p of the mean of clusters."""
    df, mean, se = freedom(means), np.mean(means), stats.sem(means)
    return *stats.t.interval(0.95, df, mean, se), 2 * stats.t.sf(abs(mean / se), df)


def make_judgments(
    n_clusters=20,
    per_cluster=1,
    design=None,
    gamma=None,
    concentration=1.0,
    text_noise=0.0,
    reverse_shift=0.0,
    greedy=False,
    lost=None,
    seed=0,
    readout="feedback",
    quality=None,
    criteria=None,
):
    """Draw judgments from P(score | item, ordering) ∝ exp(α + γ[position] + noise).

    α = log Dirichlet(concentration); `text_noise` is the sd of a text × ordering ×
    score effect shared by the items of a cluster; `reverse_shift` favours high scores
    in reverse rotations; `greedy` makes repeats of an ordering copies; `lost(item,
    read, score, ordering)` → probability.
    """
    rng = np.random.default_rng(seed)
    design = design or balanced(5)
    n, k = design.n, design.k
    n_items = n_clusters * per_cluster
    cluster = np.repeat(np.arange(n_clusters), per_cluster)
    names = np.array([f"i{i:04d}" for i in range(n_items)])
    orders = np.stack([design.orderings(name, seed=seed) for name in names])
    gamma = np.zeros(n) if gamma is None else np.asarray(gamma)
    alpha = np.log(rng.dirichlet(np.full(n, concentration), n_items) + 1e-12)
    if quality is not None:
        alpha = (
            -((np.arange(1, n + 1) - np.asarray(quality)[:, None]) ** 2) * concentration
        )
    by_score = np.broadcast_to(alpha[:, None], (n_items, k, n)).copy()
    by_score += text_noise * rng.normal(size=(n_clusters, k, n))[cluster]
    reverse = (orders[:, :, 1] - orders[:, :, 0]) % n == n - 1
    by_score += reverse_shift * reverse[..., None] * np.linspace(-1, 1, n)
    logits = np.take_along_axis(by_score, orders - 1, axis=2) + gamma
    gumbel = rng.gumbel(size=logits.shape)
    if greedy:
        gumbel = _same_for_same_ordering(gumbel, orders)
    position = (logits + gumbel).argmax(axis=2)
    score = np.take_along_axis(orders, position[..., None], axis=2)[..., 0]
    probability = np.exp(logits - logits.max(axis=2, keepdims=True))
    probability /= probability.sum(axis=2, keepdims=True)
    item, read = (a.ravel() for a in np.indices((n_items, k)))
    frame = pd.DataFrame(
        {
            "item_id": pd.Categorical(names[item]),
            "dataset": pd.Categorical(["planted"] * (n_items * k)),
            "cluster_id": pd.Categorical([f"c{c}" for c in cluster[item]]),
            "design": pd.Categorical([design.name] * (n_items * k)),
            "judge": pd.Categorical(["simulated"] * (n_items * k)),
            "readout": pd.Categorical([readout] * (n_items * k)),
            "n_options": np.full(n_items * k, n, dtype=np.int8),
            "ordering_index": (read + 1).astype(np.int16),
            "ordering": pd.Categorical(code(orders.reshape(-1, n))),
            "status": pd.Categorical(["ok"] * (n_items * k)),
            "score": pd.array(score.ravel(), dtype="Int8"),
            "position": pd.array(position.ravel() + 1, dtype="Int8"),
            "criterion": pd.Categorical(
                ["quality"] * (n_items * k)
                if criteria is None
                else np.asarray(criteria)[item % len(criteria)]
            ),
        }
    )
    if readout == "logprobs":
        flat = probability.reshape(-1, n)
        for p in range(n):
            frame[f"probability_{p + 1}"] = flat[:, p].astype(np.float32)
        frame["expected_score"] = (
            (flat * orders.reshape(-1, n)).sum(axis=1).astype(np.float32)
        )
    if lost is not None:
        gone = lost(
            item, read, score.ravel(), frame["ordering"].astype(str).to_numpy(), rng
        )
        frame.loc[gone, ["score", "position"]] = pd.NA
        frame["status"] = pd.Categorical(np.where(gone, "unparsed", "ok"))
    return frame


def _same_for_same_ordering(noise, orders):
    first = (orders[:, :, None] == orders[:, None]).all(axis=3).argmax(axis=2)
    return np.take_along_axis(noise, first[..., None], axis=1)


def make_rated(
    n_clusters=20, per_cluster=6, shared=0.5, noise=1.0, k=1, seed=0, criteria=None
):
    """Items with human ratings and judgments of a fixed design that agree with them.

    `shared` is the share of the variance, of quality and of the judge's error, that the
    items of a cluster have in common. Scores are fractional, so that the true
    correlation is known: 1 / sqrt(1 + noise²).
    """
    rng = np.random.default_rng(seed)
    n_items = n_clusters * per_cluster
    cluster = np.repeat(np.arange(n_clusters), per_cluster)

    def draw():
        own = rng.normal(size=n_items) * np.sqrt(1 - shared)
        return own + rng.normal(size=n_clusters)[cluster] * np.sqrt(shared)

    human, error = draw(), draw()
    names = np.array([f"i{i:04d}" for i in range(n_items)])
    criterion = np.asarray(criteria or ["quality"])[
        np.arange(n_items) % len(criteria or "q")
    ]
    items = pd.DataFrame({"item_id": names, "human": human, "criterion": criterion})
    reads = np.repeat(human + noise * error, k)
    judgments = pd.DataFrame(
        {
            "item_id": np.repeat(names, k),
            "cluster_id": np.repeat([f"c{c}" for c in cluster], k),
            "criterion": np.repeat(criterion, k),
            "design": "fixed",
            "ordering_index": np.tile(np.arange(1, k + 1), n_items),
            "ordering": "1-2-3-4-5",
            "score": reads,
        }
    )
    return judgments, items


def make_criterion_judgments(
    n_clusters=30,
    per_cluster=1,
    design=None,
    effect=None,
    noise=0.6,
    text_noise=0.0,
    names=("plot", "style", "wit"),
    seed=0,
):
    """Setting 2: every text scored on several criteria in several orders.

    `effect[p]` is added to a criterion's score when it stands at position p + 1;
    `text_noise` is the sd of a text × position effect that all texts of a cluster
    share.
    """
    rng = np.random.default_rng(seed)
    k = len(names)
    design = design or balanced(k)
    orders = design.orderings("all") - 1
    n_texts = n_clusters * per_cluster
    cluster = np.repeat(np.arange(n_clusters), per_cluster)
    text, read, place = (a.ravel() for a in np.indices((n_texts, len(orders), k)))
    criterion = orders[read, place]
    shared = text_noise * rng.normal(size=(n_clusters, k, k))
    score = (
        3
        + rng.normal(size=(n_texts, k))[text, criterion]
        + (np.zeros(k) if effect is None else np.asarray(effect))[place]
        + shared[cluster[text], criterion, place]
        + noise * rng.normal(size=len(text))
    )
    return pd.DataFrame(
        {
            "item_id": pd.Categorical([f"t{t:03d}" for t in text]),
            "cluster_id": pd.Categorical([f"c{c}" for c in cluster[text]]),
            "judge": "simulated",
            "design": design.name,
            "criterion": pd.Categorical(np.asarray(names)[criterion]),
            "criterion_position": pd.array(place + 1, dtype="Int8"),
            "ordering_index": read + 1,
            "score": np.round(score),
        }
    )


def plain(score, **columns):
    """One read of each of several texts, every text a cluster of its own."""
    names = [f"t{i}" for i in range(len(score))]
    read = {
        "design": "fixed",
        "ordering_index": 1,
        "ordering": "1-2-3-4-5",
        "score": score,
    }
    return pd.DataFrame({"item_id": names, "cluster_id": names} | read | columns)


def plausible(hits, n, p=0.95):
    """Whether so many hits of n are among the 999 of 1,000 that a chance of p gives."""
    low, high = stats.binom.interval(0.999, n, p)
    return low <= hits <= high


def jackknife_interval(estimate, left):
    """Low and high of an estimate, from what it is without each cluster."""
    n = len(left)
    half = stats.t.isf(0.025, freedom(left)) * np.sqrt((n - 1) * np.var(left))
    return estimate - half, estimate + half
