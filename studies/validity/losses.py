"""What do lost answers, noise and chance do to tests and intervals?"""

from __future__ import annotations

from functools import cache, partial

import numpy as np

from rubricnb.auditing.halo import correlation_of_criteria, criteria_sums
from rubricnb.core.estimates.intervals import jackknife, jackknife_t, mean_t
from rubricnb.core.estimates.losses import difference_bounds, lost_scores, open_sign
from rubricnb.corrections.raters import system_agreement_row
from rubricnb.statistics.probabilities import position_preferences, sums_by_cell
from rubricnb.statistics.ranking import kendall_tau, pair_signs
from studies.validity.planted import (
    PREFERENCE,
    Found,
    _as_reads,
    _Cell,
    _covers,
    _orderings,
)


def _cells_of_losses() -> dict[str, _Cell]:
    """Lost answers, dealt orders, unchanged noisy judges, close systems.

    In most of these some method stays bad, which is what they are there to show.
    """
    cells = {
        f"lost/{name}": _Cell(partial(_lost_answers, *options), 1_000)
        for name, options in _LOSSES.items()
    }
    for n in (20, 30, 60):
        cells[f"prior/{n}"] = _Cell(partial(_dealt_orders, n), 1_000)
    for n in (36, 120):
        cells[f"drift/{n}"] = _Cell(partial(_unchanged, n), 1_000)
    for name, share in (("apart", 0.3), ("alike", 0.9)):
        cells[f"halo/{name}"] = _Cell(partial(_perfect_criteria, share), 1_000)
    for name, options in (("5", (5, 0.5)), ("20", (20, 0.5)), ("close", (20, 0.2))):
        cells[f"tau/{name}"] = _Cell(partial(_ranked_systems, *options), 400)
    return cells


_LOSSES = {"few": (1.0, 0.05), "many": (1.0, 0.6), "unrelated": (0.0, 0.6)}
"""How strongly a loss depends on what would have been answered,
and the share of answers lost.
"""


def _lost_answers(
    dependence: float, share: float, rng: np.random.Generator, costly: bool
) -> Found:
    """A condition moves 200 texts by −.56, most where its answers are lost."""
    before = np.clip(np.round(3 + rng.standard_normal(200)), 1, 5)
    uniform = rng.random(200)
    after = np.clip(before - (uniform > 0.6) - (uniform > 0.84), 1, 5)
    propensity = dependence * (before - after) + 0.5 * rng.standard_normal(200)
    after[np.argsort(-propensity)[: int(share * 200)]] = np.nan
    truth = _shift_truth()
    is_kept = ~np.isnan(after)
    estimate = mean_t((after - before)[is_kept], np.arange(is_kept.sum()))
    yield _covers(
        "shift with lost answers", "kept texts", estimate.low, estimate.high, truth
    )
    low, high = difference_bounds(after, before, (1.0, 5.0))
    yield _covers("shift with lost answers", "bounds, any lost score", low, high, truth)
    open_reason = open_sign(after, before, (1.0, 5.0), estimate.ends, "shift")
    reports_loss = float(bool(lost_scores(after, before)))
    yield (
        "doubted",
        "shift with lost answers",
        "says what is lost",
        float("nan"),
        reports_loss,
    )
    yield (
        "doubted",
        "shift with lost answers",
        "sign left open",
        float("nan"),
        float(bool(open_reason)),
    )


@cache
def _shift_truth() -> float:
    """Mean shift of a million texts."""
    rng = np.random.default_rng(7)
    before = np.clip(np.round(3 + rng.standard_normal(1_000_000)), 1, 5)
    uniform = rng.random(1_000_000)
    return float(
        (np.clip(before - (uniform > 0.6) - (uniform > 0.84), 1, 5) - before).mean()
    )


def _dealt_orders(n: int, rng: np.random.Generator, costly: bool) -> Found:
    """The preference for the first position, each text asked in one order."""
    orders = _orderings(5)[0]
    order_of_prompt = rng.permutation(n) % len(orders)
    quality = 3 + 0.9 * rng.standard_normal((n, 1))
    logs = np.array(PREFERENCE) - (orders[order_of_prompt] - quality) ** 2
    logs = logs - logs.mean(axis=1, keepdims=True)
    truth = float(PREFERENCE[0] - np.mean(PREFERENCE))
    sums = sums_by_cell(logs, orders[order_of_prompt], np.arange(n))
    total = sums.sum(axis=0)
    estimate = position_preferences(total)
    jackknifed = position_preferences(total - sums)
    refitted = jackknife_t(float(estimate[0]), jackknifed[:, 0])
    name = "preference from one order a prompt"
    yield _covers(
        name, "jackknife-t, cells refitted", refitted.low, refitted.high, truth
    )
    cell_counts = sums[:, 1].sum(axis=0)
    cell_means = sums[:, 0].sum(axis=0) / cell_counts
    shown = orders[order_of_prompt] - 1
    position = np.arange(5)
    # An item moves the mean of its cell in proportion to 1 / the cell's count.
    influence = (logs - cell_means[position, shown]) * (
        n / 5 / cell_counts[position, shown]
    )
    values = estimate + influence - influence.mean(axis=1, keepdims=True)
    naive = mean_t(values[:, 0], np.arange(n))
    yield _covers(name, "t, cells taken as known", naive.low, naive.high, truth)


def _unchanged(n: int, rng: np.random.Generator, costly: bool) -> Found:
    """A judge that changes half of its answers when asked again, on two days."""
    quality = rng.uniform(1, 5, n)
    answers = np.clip(np.round(quality + 0.6 * rng.standard_normal((4, n))), 1, 5)
    then, now = answers[:2], answers[2:]
    between = np.mean([one != other for one in then for other in now], axis=0)
    within = ((then[0] != then[1]) * 1.0 + (now[0] != now[1])) / 2
    for method, share in (("differ", between), ("minus asked again", between - within)):
        estimate = mean_t(share, np.arange(n), (-1.0, 1.0))
        yield (
            "size",
            "drift of an unchanged judge",
            method,
            0.05,
            float(estimate.low > 0.25),
        )


def _perfect_criteria(share: float, rng: np.random.Generator, costly: bool) -> Found:
    """A judge without an error on three criteria, 120 texts, three raters who err.

    `share`: of the variance of quality that the criteria share.
    """
    own = np.sqrt(1 - share) * rng.standard_normal((120, 3))
    quality = 3 + np.sqrt(share) * rng.standard_normal((120, 1)) + own
    raters = quality[..., None] + rng.standard_normal((120, 3, 3))
    error = raters.var(axis=2, ddof=1) / 3
    exact = np.hstack([quality, np.zeros_like(error)])
    for method, of_people in (("uncorrected", 0.0), ("corrected", error)):
        side = np.hstack([raters.mean(axis=2), of_people + np.zeros_like(error)])
        sums = np.stack([criteria_sums(one, 3) for one in (exact, side)], axis=1)
        gap = jackknife(
            sums,
            np.arange(120),
            lambda one: correlation_of_criteria(one, 3)[0] @ np.array([1.0, -1.0]),
        )
        yield "size", "halo of a perfect judge", method, 0.05, float(gap.low > 0.1)


def _ranked_systems(
    n_systems: int, spread: float, rng: np.random.Generator, costly: bool
) -> Found:
    """τ of n systems' true means, judge and people (r = .8), from 40 prompts."""
    people = spread * rng.standard_normal(n_systems)
    judge = 0.8 * people + 0.6 * spread * rng.standard_normal(n_systems)
    truth = float(kendall_tau(pair_signs(people), pair_signs(judge)))
    sides = [
        true_means
        + rng.standard_normal((40, n_systems))
        + 0.5 * rng.standard_normal((40, 1))
        for true_means in (judge, people)
    ]
    cluster, system = (index.ravel() for index in np.indices((40, n_systems)))
    judged = _as_reads(cluster, sides[0].reshape(-1, 1))
    judged.items["candidate"] = system
    row = system_agreement_row(judged, sides[1].ravel())
    yield _covers(
        "τ of true means", "percentiles", row["tau_low"], row["tau_high"], truth
    )
    warns_of_low = float("tau.low" in row["codes"])
    yield "doubted", "τ of true means", "percentiles", float("nan"), warns_of_low
    yield (
        "recovery",
        "τ, estimate minus truth",
        "τ of the means",
        0.0,
        row["tau"] - truth,
    )
