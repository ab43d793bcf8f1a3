"""Do intervals beside people's ratings hold, and tests against raters keep to 5 %?"""

from __future__ import annotations

from functools import cache

import numpy as np
from scipy import special

from rubricnb.corrections.labels import mean_row
from rubricnb.corrections.raters import judge_bias_row, p_below_epsilon
from studies.validity.planted import Found, _as_reads, _covers, _graded


def _with_labels(
    sizes: tuple[int, ...], rng: np.random.Generator, costly: bool
) -> Found:
    """The mean rating of skewed texts, labels drawn in three ways; two systems."""
    cluster, human, reads = _graded("skewed", sizes, rng)
    judged = _as_reads(cluster, reads[:, :1])
    judged.items["candidate"] = np.arange(len(cluster)) % 2
    whole_prompts = rng.permutation(len(sizes))[: len(sizes) // 2]
    system_of_prompt = rng.permutation(len(sizes)) % 2
    in_turn = judged.items.assign(at=rng.random(len(cluster)))
    in_turn = in_turn[in_turn["candidate"] == system_of_prompt[cluster]].sort_values(
        "at"
    )
    drawn = {
        "at random": rng.permutation(len(cluster))[: max(len(sizes), 20)],
        "whole prompts": np.flatnonzero(np.isin(cluster, whole_prompts)),
        "one text a prompt": in_turn.index[~in_turn["cluster"].duplicated()],
    }
    for name, labelled in drawn.items():
        labels = np.full(len(human), np.nan)
        labels[labelled] = human[labelled]
        row = mean_row(judged, labels)
        truth = float(human.mean())
        yield _covers("mean with labels", name, row["low"], row["high"], truth)
        low, high = row["labels_only_low"], row["labels_only_high"]
        yield _covers("mean of the labels", name, low, high, truth)
        yield (
            "doubted",
            "mean with labels",
            name,
            float("nan"),
            float(bool(row["reason"])),
        )


def _against_raters(
    sizes: tuple[int, ...], rng: np.random.Generator, costly: bool
) -> Found:
    """A judge just so much worse than a rater as is allowed; a known bias."""
    cluster, human, reads = _graded("skewed", sizes, rng)
    judged = _as_reads(cluster, reads)
    row, truth = judge_bias_row(judged, human), _bias_truth()
    yield _covers("judge − people", "jackknife-t", row["low"], row["high"], truth)
    latent = rng.standard_normal(len(sizes))[cluster] + rng.standard_normal(
        len(cluster)
    )
    cuts = np.sqrt(2) * special.ndtri([0.2, 0.6])  # loses, ties, wins: the mean is .2
    lead = np.asarray(np.searchsorted(cuts, latent) - 1.0, dtype=np.float64)
    for name, groups in (
        ("t over texts (Calderon et al.)", None),
        ("t over prompts", cluster),
    ):
        yield (
            "size",
            "judge instead of people",
            name,
            0.05,
            float(p_below_epsilon(lead, groups, 0.2) < 0.05),
        )


@cache
def _bias_truth() -> float:
    """Mean of judge minus people of 60,000 clusters; means of ten reads."""
    samples = (
        _graded("skewed", (6,) * 10_000, np.random.default_rng([6, k]))
        for k in range(6)
    )
    return float(np.mean([reads.mean() - human.mean() for _, human, reads in samples]))
