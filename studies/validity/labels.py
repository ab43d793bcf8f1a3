"""Do means from few labels hold what their intervals promise?"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
from scipy import special

from rubricnb.core.estimates.intervals import correlation, fisher_jackknife_t, moments
from rubricnb.core.estimates.reads import Reads, by_cluster
from rubricnb.core.support.types import FloatArray, IntArray
from rubricnb.corrections.labels import estimate_systems, mean_row
from rubricnb.corrections.raters import judge_bias_row
from studies.validity.planted import (
    _SIZES,
    Found,
    _as_reads,
    _Cell,
    _clusters,
    _covers,
    _graded,
)


def _cells_of_labels() -> dict[str, _Cell]:
    """Labels that share prompts, systems, rare errors, refusals, ceilings."""
    cells = {
        f"shared/{g}": _Cell(partial(_shared_labels, g), 400) for g in (10, 20, 40)
    }
    for name, options in _SYSTEMS.items():
        cells[f"systems/{name}"] = _Cell(partial(_labelled_systems, *options), 1_000)
    for percent in (99, 95):
        cells[f"rare/{percent}"] = _Cell(partial(_rarely_wrong, percent), 1_000)
    for name, refusal_rate in (("low", 1.0), ("some", 0.3)):
        cells[f"refused/{name}"] = _Cell(partial(_refused, refusal_rate), 1_000)
    for n in (20, 60, 100, 150):
        cells[f"ceiling/{n}"] = _Cell(partial(_at_the_ceiling, n), 1_000)
    for n in (10, 40):
        cells[f"dominated/{n}"] = _Cell(partial(_dominated, n), 1_000)
    return cells


def _labelled(
    judged: Reads,
    human: FloatArray,
    labelled: IntArray,
    method: str,
    truth: float | None = None,
) -> Found:
    """Whether the mean's interval with these labels holds the truth; what it says."""
    labels = np.full(len(human), np.nan)
    labels[labelled] = human[labelled]
    row = mean_row(judged, labels)
    truth = float(human.mean()) if truth is None else truth
    yield _covers("mean with labels", method, row["low"], row["high"], truth)
    yield (
        "doubted",
        "mean with labels",
        method,
        float("nan"),
        float(bool(row["reason"])),
    )


def _shared_labels(g: int, rng: np.random.Generator, costly: bool) -> Found:
    """Labels of g of 96 prompts of six texts, or of g of 96 texts, four criteria."""
    cluster, human, reads = _graded("even", _SIZES["96"], rng)
    judged = _as_reads(cluster, reads[:, :1])
    whole_prompts = rng.permutation(
        np.flatnonzero(np.isin(cluster, rng.permutation(96)[:g]))
    )
    yield from _labelled(judged, human, whole_prompts, "prompts rated whole")
    yield from _labelled(judged, human, whole_prompts[1:], "one rating missing")
    yield from _labelled(
        judged, human, whole_prompts[2 * g :], "a third of the ratings missing"
    )
    taken_singly = replace(judged, cluster=_clusters(len(cluster), 1))
    yield from _labelled(
        taken_singly, human, whole_prompts[1:], "one missing, labels taken singly"
    )
    text, human, reads = _graded("even", (4,) * 96, rng)
    judged = _as_reads(text // 4, reads[:, :1])  # four texts a prompt
    judged.items["criterion"] = np.tile(np.arange(4), 96)
    labelled = np.flatnonzero(np.isin(text, rng.permutation(96)[:g]))
    yield from _labelled(
        judged, human, labelled, "texts under four criteria, not named"
    )
    judged.items["candidate"] = text % 4
    yield from _labelled(judged, human, labelled, "texts under four criteria, named")


_SYSTEMS = {  # systems, whether they are labelled on the same prompts, points of favour
    "10": (10, True, 0.0),
    "20": (20, True, 0.0),
    "40": (40, True, 0.0),
    "apart": (20, False, 0.0),
    "favoured": (20, True, 1.0),
}


def _labelled_systems(
    n_systems: int,
    same_prompts: bool,
    favour: float,
    rng: np.random.Generator,
    costly: bool,
) -> Found:
    """Four labels of each system; prompts vary, and the judge may favour one."""
    quality = 3 + 0.3 * rng.standard_normal(n_systems)[:, None]
    text_effect = 0.5 * rng.standard_normal((1, 100)) + 0.6 * rng.standard_normal(
        (n_systems, 100)
    )
    human = np.clip(np.round(quality + text_effect), 1, 5)
    favour_of_system = favour * (np.arange(n_systems) == 0)[:, None]
    error = 0.15 * rng.standard_normal((n_systems, 1)) + 0.6 * rng.standard_normal(
        (n_systems, 100)
    )
    score = np.clip(
        np.round(1 + 0.8 * quality + 0.6 * text_effect + favour_of_system + error), 1, 5
    )
    drawn = rng.random((n_systems, 100)).argsort(axis=1)[:, :4]
    rated = np.full((n_systems, 100), np.nan)
    drawn = np.broadcast_to(drawn[:1], drawn.shape) if same_prompts else drawn
    np.put_along_axis(rated, drawn, np.take_along_axis(human, drawn, axis=1), axis=1)
    system, prompt = (index.ravel() for index in np.indices(human.shape))
    estimated = estimate_systems(system, prompt, score.ravel(), rated.ravel())
    truth = human.mean(axis=1)
    covered = (estimated["low"] <= truth) & (truth <= estimated["high"])
    yield "coverage", "mean of a system", "all systems", 0.95, float(covered.mean())
    if favour:
        yield (
            "coverage",
            "mean of a system",
            "the favoured one",
            0.95,
            float(covered[0]),
        )
        doubted = float(estimated["codes"][0] is not None)
        yield "doubted", "mean of a system", "the favoured one", float("nan"), doubted


def _rarely_wrong(percent: int, rng: np.random.Generator, costly: bool) -> Found:
    """A judge right about so many of 100 texts, two points off elsewhere; 20 labels."""
    human = rng.integers(1, 6, 100).astype(np.float64)
    wrong = rng.permutation(100)[percent:]
    score = human.copy()
    score[wrong] += np.where(human[wrong] > 3, -2, 2)
    judged = _as_reads(np.arange(100), score[:, None])
    labelled = rng.permutation(100)[:20]
    yield from _labelled(judged, human, labelled, "judge rarely wrong")
    labels = np.where(np.isin(np.arange(100), labelled), human, np.nan)
    no_interval = float(np.isnan(mean_row(judged, labels)["low"]))
    yield "doubted", "mean with labels", "no interval", float("nan"), no_interval


def _refused(refusal_rate: float, rng: np.random.Generator, costly: bool) -> Found:
    """The judge refuses texts rated 2 or lower, or some; 60 of 400 are labelled."""
    _, human, reads = _graded("even", (1,) * 400, rng)
    score = np.where(
        (human <= 2) & (rng.random(400) < refusal_rate), np.nan, reads[:, 0]
    )
    judged = _as_reads(np.arange(400), score[:, None])
    labelled = rng.permutation(400)[:60]
    is_scored = ~np.isnan(score)
    yield from _labelled(
        judged, human, labelled, "of the scored texts", float(human[is_scored].mean())
    )
    yield from _labelled(judged, human, labelled, "taken for all texts")


def _at_the_ceiling(n: int, rng: np.random.Generator, costly: bool) -> Found:
    """85 % of ratings and scores are a 5; n labels of 400 texts."""
    _, human, reads = _graded("ceiling", (1,) * 400, rng)
    judged = _as_reads(np.arange(400), reads[:, :1])
    yield from _labelled(judged, human, rng.permutation(400)[:n], "85 % at the ceiling")


def _dominated(n: int, rng: np.random.Generator, costly: bool) -> Found:
    """One of n prompts holds half of the texts; half of quality and error is shared."""
    sizes = (6 * (n - 1), *(6,) * (n - 1))
    cluster = np.repeat(np.arange(n), sizes)
    human, error = (
        (rng.standard_normal(n)[cluster] + rng.standard_normal(len(cluster)))
        / np.sqrt(2)
        for _ in "12"
    )
    score = human + error + 0.3
    row = judge_bias_row(_as_reads(cluster, score[:, None]), human)
    yield _covers("judge − people", "jackknife-t", row["low"], row["high"], 0.3)
    low, high = _usual_t(score - human, cluster)
    yield _covers("judge − people", "t over prompts", low, high, 0.3)
    sums = by_cluster(moments(score, human), cluster)
    jackknifed = correlation(sums.sum(axis=0) - sums)
    r = float(correlation(sums.sum(axis=0)))
    low, high = fisher_jackknife_t(r, jackknifed).ends
    yield _covers("r", "jackknife-t", low, high, float(np.sqrt(0.5)))
    doubted = float(bool({"few_clusters", "few_clusters_alike"} & {*row["codes"]}))
    yield "doubted", "judge − people", "jackknife-t", float("nan"), doubted


def _usual_t(x: FloatArray, cluster: IntArray) -> tuple[float, float]:
    """t interval of a mean, as most software has it: CR1, clusters − 1 degrees."""
    mean, n = x.mean(), len(np.unique(cluster))
    # CR1: Var = n/(n − 1) · Σ (cluster's summed deviations)² / N²
    sums = by_cluster(x - mean, cluster)
    half_width = (
        special.stdtrit(n - 1, 0.975) * np.sqrt(n / (n - 1) * (sums**2).sum()) / len(x)
    )
    return mean - half_width, mean + half_width
