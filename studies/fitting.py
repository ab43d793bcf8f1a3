"""Fit simulated judges to printed shares: ``python -m studies.fitting``.

Each profile of ``v2/JUDGE/DATASET`` is fitted to one cell of Table 2 of
arXiv:2602.02219v2, each of ``v1/JUDGE`` to that judge's five rows of Table 5 of v1. A
published share is one realisation, noise included, so the fit matches realised shares:
those of the dataset itself, and of `stand_in` items where the dataset is not at hand.
Both must come within tolerance at seed 0; where one set of random numbers does not
allow that, the profile takes the next `Profile.draw`. At another seed a profile's χ²
varies as any sample's does.

What the papers do not print is chosen here and said here: the middle positions of v2 by
maximum entropy given χ²; decisiveness and noise as in `Profile`; everything greedy;
criteria fall linearly with their place (Table 5 of v2 prints the size of that effect,
not its shape).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import chain, count
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import yaml
from scipy.optimize import brentq

from rubricnb.core.frames import Items
from rubricnb.core.permutation import balanced
from rubricnb.core.plan import plan
from rubricnb.core.support.types import FloatArray, IntArray
from rubricnb.engines.fitting import STAND_INS, stand_in
from rubricnb.engines.generative import Batch, logits_of, ordering_tables
from rubricnb.engines.profiles import Profile
from rubricnb.engines.simulated import batch_of, simulate
from rubricnb.sets.papers import published

SHARE_TOLERANCE, CHI2_TOLERANCE, ROW_TOLERANCE = 0.01, 0.15, 0.015
"""Largest accepted difference: of a share, of χ² (relative),
of a share given the score.
"""

_MARGIN = 0.8  # of the tolerances, so that a profile never sits on the edge
_RATED = ("hanna", "summeval")  # datasets with human ratings, of several criteria


def target_shares(pos1: float, pos5: float, chi2: float, n_reads: int) -> FloatArray:
    """Complete a row of v2's Table 2: middle positions by maximum entropy.

    On the circle that the sum and χ² leave to three shares, entropy is largest where
    two are equal and the third is larger. Which one is larger it does not say: position
    2, the middle position that Table 5 of v1 shows chosen most often. A χ² too small
    for its own Pos1 and Pos5 (rounding) leaves all three equal.

    Parameters
    ----------
    pos1, pos5
        Shares of the first and last position, 0 to 1.
    chi2
        χ² against a uniform distribution.
    n_reads
        Number of reads it was computed from.

    Returns
    -------
    ndarray, shape (5,)

    Examples
    --------
    >>> shares = target_shares(0.25, 0.194, 98.7, 5760)
    >>> chi2 = 5760 * 5 * ((shares - 0.2) ** 2).sum()
    >>> shares.round(3).tolist(), round(float(chi2), 1)
    ([0.25, 0.198, 0.179, 0.179, 0.194], 98.7)
    """
    # χ² / 5n = Σ (share − 0.2)²; steps of +2, −1, −1 add 6 step² to it.
    middle = (1 - pos1 - pos5) / 3
    ends = (pos1 - 0.2) ** 2 + (pos5 - 0.2) ** 2 + 3 * (middle - 0.2) ** 2
    step = np.sqrt(max(chi2 / (5 * n_reads) - ends, 0) / 6)
    return np.array([pos1, middle + 2 * step, middle - step, middle - step, pos5])


def fit_profiles(
    load: Callable[[str], Items],
    path: str | Path | None = None,
    only: str = "",
    progress: bool = False,
) -> dict[str, dict[str, Any]]:
    """Fit every profile and write them down.

    Parameters
    ----------
    load
        Gives a dataset's items: `rubricnb.load`, or `stand_in` where the datasets are
        not at hand (the profiles then fit the stand-ins alone).
    path
        Where to write; None only returns.
    only
        Fit the profiles whose name begins so.
    progress
        Whether to print a line per profile.

    Returns
    -------
    dict
        By name: ``parameters`` (of `Profile`), ``target`` and ``achieved``, the
        published and the realised figures on ``dataset`` and ``stand_in``.

    Examples
    --------
    >>> name = "v2/gemma-3-27b/vicuna"
    >>> one = fit_profiles(stand_in, only=name)[name]
    >>> achieved = one["achieved"]["stand_in"]["chi2"]
    >>> one["target"]["chi2"], abs(achieved / 83.7 - 1) < 0.15
    (83.7, True)
    """
    sets = {name: (_asked(load(name)), _asked(stand_in(name))) for name in STAND_INS}
    fitted = {}
    for profile, record in chain(_fit_v2(sets, only), _fit_v1(sets, only)):
        parameters = {
            k: v for k, v in asdict(profile).items() if v != getattr(_DEFAULT, k)
        }
        parameters.pop("name")
        fitted[profile.name] = {"parameters": _plain(parameters), **_plain(record)}
        if progress:
            print(profile.name, profile.draw, record["achieved"], flush=True)
    if path is not None:
        text = yaml.safe_dump(
            fitted, sort_keys=False, default_flow_style=None, width=100
        )
        Path(path).write_text(_HEADER + text, encoding="utf-8")
    return fitted


def position_figures(shares: FloatArray, n_reads: int) -> dict[str, float]:
    """Pos1, Pos5 and χ² as Table 2 of v2 prints them (shares in percent).

    Examples
    --------
    >>> position_figures(np.array([0.25, 0.2, 0.2, 0.2, 0.15]), 1000)
    {'pos1': 25.0, 'pos5': 15.0, 'chi2': 25.0}
    """
    chi2 = 5 * n_reads * float(((shares - 0.2) ** 2).sum())
    return {
        "pos1": round(100 * float(shares[0]), 2),
        "pos5": round(100 * float(shares[4]), 2),
        "chi2": round(chi2, 2),
    }


_DEFAULT = Profile("")
_HEADER = """\
# Written by studies.fitting.fit_profiles, not by hand: simulated judges fitted to
# shares that two papers print. They replicate nothing. `target` is published,
# `achieved` is what the profile gives at seed 0 on the dataset and on its stand-in.
"""


# ---- v2: one judge on one dataset
# -----------------------------------------------------------


@dataclass(frozen=True)
class _Reads:
    """Greedy reads without preference: what is left is to add γ + δ."""

    logits: FloatArray  # by position
    score: IntArray  # shown at position
    item: IntArray

    def positions(self, preference: FloatArray) -> IntArray:
        """Choose, given the preference in logits per position, or also per score."""
        if preference.ndim == 2:
            preference = preference[self.score - 1, np.arange(5)]
        return np.asarray((self.logits + preference).argmax(axis=1))

    def scores(self, preference: FloatArray) -> IntArray:
        return self.score[np.arange(len(self.score)), self.positions(preference)]

    def shares(self, preference: FloatArray) -> FloatArray:
        return np.bincount(self.positions(preference), minlength=5) / len(self.logits)


@dataclass(frozen=True)
class Asked:
    """Items under the ten balanced orderings."""

    items: Items
    batch: Batch
    item: IntArray  # row of the item, per read


Sets = dict[str, tuple[Asked, Asked]]
Fitted = tuple[Profile, dict[str, Any]]


def _fit_v2(sets: Sets, only: str) -> Iterator[Fitted]:
    table = published("position_bias")
    criteria = published("criterion_order").set_index(["judge", "dataset"])
    for cell in table.itertuples():
        dataset = next(key for key, name in STAND_INS.items() if name == cell.dataset)
        base = Profile(
            f"v2/{cell.judge.lower()}/{dataset}",
            source=f"arXiv:2602.02219v2, Table 2, {cell.judge} on {cell.dataset}",
        )
        if not base.name.startswith(only):
            continue
        if dataset in _RATED:
            printed = criteria.loc[(cell.judge, cell.dataset)]
            base = _with_agreement(base, sets[dataset][0], printed["avg_r"])
            base = _with_criterion_effect(
                base, sets[dataset][0], printed["mean_delta_pos"]
            )
        yield _fit_cell(base, cell, sets[dataset])


def _fit_cell(base: Profile, cell: Any, sets: tuple[Asked, Asked]) -> Fitted:
    n_reads = len(sets[0].item)
    target = target_shares(cell.pos1_pct / 100, cell.pos5_pct / 100, cell.chi2, n_reads)
    printed = {"pos1": cell.pos1_pct, "pos5": cell.pos5_pct, "chi2": cell.chi2}
    for draw in count():
        profile = replace(base, draw=draw)
        dataset_reads, stand_in_reads = (_reads(profile, asked) for asked in sets)
        gamma = _solve_shares(dataset_reads, target)
        achieved = {
            "dataset": position_figures(dataset_reads.shares(gamma), n_reads),
            "stand_in": position_figures(stand_in_reads.shares(gamma), n_reads),
        }
        if all(_close(figures, printed) for figures in achieved.values()):
            profile = replace(profile, position_preference=tuple(gamma.tolist()))
            return profile, {"target": printed, "achieved": achieved}
    raise AssertionError("unreachable")


def _close(figures: dict[str, float], printed: dict[str, float]) -> bool:
    return (
        all(
            abs(figures[p] - printed[p]) <= 100 * SHARE_TOLERANCE * _MARGIN
            for p in ("pos1", "pos5")
        )
        and abs(figures["chi2"] / printed["chi2"] - 1) <= CHI2_TOLERANCE * _MARGIN
    )


def _solve_shares(reads: _Reads, target: FloatArray) -> FloatArray:
    """Find γ (mean 0) with the target's shares: Newton on smoothed differences."""
    gamma, best = np.zeros(5), (np.inf, np.zeros(5))
    step = 0.1
    for _ in range(12):
        miss = reads.shares(gamma) - target
        best = min(best, (float(np.abs(miss).max()), gamma), key=lambda b: b[0])
        # Each row is the effect of one γ on all five shares.
        slopes = [
            (reads.shares(gamma + shift) - reads.shares(gamma - shift)) / (2 * step)
            for shift in step * np.eye(5)
        ]
        move = np.linalg.lstsq(np.array(slopes).T, -miss, rcond=1e-6)[0]
        gamma = _rounded(gamma + np.clip(move, -0.5, 0.5))
        step = max(step / 1.5, 0.01)
    return best[1]


# ---- v1: one judge on all four datasets
# ------------------------------------------------------


def _fit_v1(sets: Sets, only: str) -> Iterator[Fitted]:
    table = published("score_position")
    agreement = published("permutation_vs_repeat")
    spread = published("within_item_sd")
    for judge, rows in table.groupby("judge", sort=False):
        target = (
            rows.pivot(index="score", columns="position", values="selected_pct") / 100
        )
        judge_agreement = agreement[
            (agreement.judge == judge) & (agreement.statistic == "pearson_r")
        ]
        sd = spread.loc[spread.judge == judge, "permutation"].mean()
        source = f"arXiv:2602.02219v1, Table 5, {judge}"
        # More disagreement with people than by default, so that no score is too rare
        # for its row.
        base = Profile(
            f"v1/{str(judge).lower()}", text_error=0.6, item_error=0.6, source=source
        )
        if not base.name.startswith(only):
            continue
        base = _with_agreement(
            base, sets["hanna"][0], judge_agreement["permutation"].mean()
        )
        yield _fit_rows(base, target.to_numpy(), sets, float(sd))


def _fit_rows(base: Profile, target: FloatArray, sets: Sets, sd: float) -> Fitted:
    base = _with_spread(base, sets, target, sd)
    for draw in count():
        profile = replace(base, draw=draw)
        dataset_reads, stand_in_reads = (
            _pooled(profile, [pair[side] for pair in sets.values()]) for side in (0, 1)
        )
        # Some scores are rare, so the row of a score is fitted
        # to both kinds of items together.
        delta = _solve_rows(_joined([dataset_reads, stand_in_reads]), target)
        achieved = {
            "dataset": {
                "largest_difference": _largest_miss(dataset_reads, delta, target)
            },
            "stand_in": {
                "largest_difference": _largest_miss(stand_in_reads, delta, target)
            },
        }
        if all(
            figures["largest_difference"] <= 100 * ROW_TOLERANCE * _MARGIN
            for figures in achieved.values()
        ):
            profile = replace(profile, interaction=tuple(map(tuple, delta.tolist())))
            return profile, {
                "target": (100 * target).round(1).tolist(),
                "achieved": achieved,
            }
    raise AssertionError("unreachable")


def _solve_rows(reads: _Reads, target: FloatArray) -> FloatArray:
    """Find δ with the target's P(position | score): raise what is too rare."""
    delta, best = np.zeros((5, 5)), (np.inf, np.zeros((5, 5)))
    for _ in range(60):
        shares = _rows(reads, delta)
        best = min(
            best, (float(np.abs(shares - target).max()), delta), key=lambda b: b[0]
        )
        delta = delta + np.log(target / np.maximum(shares, 1e-3))
        delta = _rounded(delta - delta.mean(axis=1, keepdims=True))
    return best[1]


def _rows(reads: _Reads, delta: FloatArray) -> FloatArray:
    """P(position | score), shape (5, 5)."""
    position = reads.positions(delta)
    score = reads.score[np.arange(len(position)), position]
    counts = np.bincount(5 * (score - 1) + position, minlength=25).reshape(5, 5)
    return np.asarray(counts / np.maximum(counts.sum(axis=1, keepdims=True), 1))


def _largest_miss(reads: _Reads, delta: FloatArray, target: FloatArray) -> float:
    return round(float(100 * np.abs(_rows(reads, delta) - target).max()), 2)


# ---- what else the papers print
# --------------------------------------------------------------


def _with_agreement(base: Profile, asked: Asked, r: float) -> Profile:
    """Set λ so that ten reads' mean correlates with ratings as printed (macro r)."""

    def excess(weight: float) -> float:
        reads = _reads(replace(base, human_weight=weight), asked)
        mean = np.bincount(reads.item, reads.scores(np.zeros(5)))
        pairs = pd.DataFrame({"mean": mean, "human": asked.items["human"].to_numpy()})
        by_criterion = pairs.groupby(asked.items["criterion"].to_numpy())
        return (
            float(by_criterion.apply(lambda p: p["mean"].corr(p["human"])).mean()) - r
        )

    return replace(
        base, human_weight=round(float(brentq(excess, 0.0, 4.0, xtol=1e-3)), 3)
    )


def _with_criterion_effect(base: Profile, asked: Asked, delta_pos: float) -> Profile:
    """Set ρ, falling linearly, so that the mean gap of positions is as printed."""
    items = asked.items
    requests = plan(items, balanced(items["criterion"].nunique()), template="criteria")

    def excess(height: float) -> float:
        judgments = simulate(
            requests, items, replace(base, criterion_position=(height, -height))
        )
        position_means = judgments.groupby(
            ["criterion", "criterion_position"], observed=True
        )["score"].mean()
        gaps = position_means.groupby(level=0, observed=True).agg(
            lambda means: means.max() - means.min()
        )
        return float(gaps.mean()) - delta_pos

    height = round(float(brentq(excess, 0.0, 2.0, xtol=1e-3)), 3)
    return replace(base, criterion_position=(height, -height))


def _with_spread(base: Profile, sets: Sets, target: FloatArray, sd: float) -> Profile:
    """Set σ_E so that the within-item sd over ten orderings is nearest to print."""
    rated = [sets[name][0] for name in _RATED]

    def excess(noise: float) -> float:
        profile = replace(base, order_noise=noise)
        delta = _solve_rows(
            _pooled(profile, [pair[0] for pair in sets.values()]), target
        )
        all_reads = (_reads(profile, asked) for asked in rated)
        return (
            float(np.mean([_within_item_sd(reads, delta) for reads in all_reads])) - sd
        )

    if excess(0.0) >= 0:
        return replace(base, order_noise=0.0)
    return replace(
        base, order_noise=round(float(brentq(excess, 0.0, 1.5, xtol=5e-3)), 3)
    )


def _within_item_sd(reads: _Reads, delta: FloatArray) -> float:
    return float(pd.Series(reads.scores(delta)).groupby(reads.item).std(ddof=0).mean())


# ---- reads and tables
# ------------------------------------------------------------------------


def _asked(items: Items) -> Asked:
    requests = plan(items, balanced(5))
    batch, judged = batch_of(requests, items)
    return Asked(items, batch, judged.item)


def _reads(profile: Profile, asked: Asked) -> _Reads:
    bare = replace(profile, position_preference=(0.0,), interaction=())
    tables = ordering_tables(bare, asked.batch.table, 5)
    logits = logits_of(bare, 0, asked.batch, 5, tables)
    return _Reads(
        logits, tables.score[asked.batch.ordering].astype(np.int64), asked.item
    )


def _pooled(profile: Profile, sets: Sequence[Asked]) -> _Reads:
    return _joined([_reads(profile, asked) for asked in sets])


def _joined(parts: Sequence[_Reads]) -> _Reads:
    starts = np.cumsum([0, *(part.item.max() + 1 for part in parts)])
    return _Reads(
        np.concatenate([part.logits for part in parts]),
        np.concatenate([part.score for part in parts]),
        np.concatenate(
            [part.item + start for part, start in zip(parts, starts, strict=False)]
        ),
    )


def _rounded(values: FloatArray) -> FloatArray:
    # Rounded first, so that the saved values are those that were tried.
    return np.round(values - values.mean(axis=-1, keepdims=True), 4)


def _plain(value: Any) -> Any:
    """Turn tuples and numpy scalars into what YAML writes."""
    if isinstance(value, dict):
        return {key: _plain(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(entry) for entry in value]
    return value.item() if isinstance(value, np.generic) else value


if __name__ == "__main__":
    import rubricnb as rb
    from rubricnb import judging

    fit_profiles(
        rb.load, Path(judging.__file__).with_name("profiles.yml"), progress=True
    )
