"""What a comparison leaves out: items that one of its sides was asked about and has no score for.

A comparison is about the items that both sides scored. Answers are rarely lost at random: a judge
that cannot decide writes no score, so the lost items are those that differ. What can be known is
what the other side says of them, and every statistic with two sides reports it: `lost_scores` for
two sides, `left_out` for the conditions of which an item needs all. Where a difference is said to
have a sign, `open_sign` adds the bounds between which it lies wherever the lost scores would be.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from rubricnb.statistics.intervals import mean_of
from rubricnb.statistics.reads import FloatArray, Reads, item_means
from rubricnb.statistics.reasons import Reason, Reasons

Mask = NDArray[np.bool_]

MOST_LOST = 0.05
"""Share of the items asked on both sides beyond which no equivalence is claimed."""
_CODES = (
    *("lost", "left_out", "open_sign", "r_of_all", "r_turned", "r_one_of_all", "lost_prompts"),
    *("flip_strict.bounds", "no_equivalence.lost"),
)


def losses_of(codes: Iterable[Reason], of: str | None = None) -> Reasons:
    """Return the reasons that are about losses; of the bounds only those `of` one difference."""
    return tuple(
        code
        for code in codes
        if code in _CODES and (of is None or code.numbers.get("of", of) == of)
    )


def lost_scores(
    a: FloatArray, b: FloatArray, names: tuple[str, str] = ("a", "b"), what: str = "items"
) -> Reasons:
    """Return how many items have a score on one side only, and how that side scores them.

    Parameters
    ----------
    a, b
        Shape (items,): the score of each item that both sides were asked about; NaN without one.
    names
        What the sides are called.
    what
        What the items are called.

    Examples
    --------
    >>> [why] = lost_scores(np.array([1.0, 2, 5]), np.array([1.0, 3, np.nan]))
    >>> why.sentence.split(" (")[0]
    '1 of 3 items have a score under a, but none under b, and are left out'
    """
    found = []
    for side, other, (name, lacking) in ((a, b, names), (b, a, names[::-1])):
        lost = ~np.isnan(side) & np.isnan(other)
        if lost.any():
            kept = ~np.isnan(side) & ~np.isnan(other)
            means = {"lost_mean": mean_of(side[lost]), "kept_mean": mean_of(side[kept])}
            found.append(
                Reason(
                    "lost", lost=int(lost.sum()), asked=len(side), what=what, name=name,
                    lacking=lacking, **means,
                )
            )  # fmt: skip
    return tuple(found)


def left_out(values: FloatArray, used: Mask, what: str = "items") -> Reasons:
    """Return how many items lack a score under some condition, and what their other scores are.

    Parameters
    ----------
    values
        Shape (items, conditions): the score of each item under each; NaN without one.
    used
        Shape (items,): which items count.
    what
        What the items are called.

    Examples
    --------
    >>> scores = np.array([[1.0, 2], [5, np.nan], [3, 3]])
    >>> [why] = left_out(scores, ~np.isnan(scores).any(axis=1))
    >>> why.numbers["lost_mean"], why.numbers["kept_mean"]
    (5.0, 2.25)
    """
    mean = item_means(values) if values.size else np.full(len(values), np.nan)
    lost = ~np.isnan(mean) & ~used
    if not lost.any():
        return ()
    kept = used & ~np.isnan(mean)
    means = {"lost_mean": mean_of(mean[lost]), "kept_mean": mean_of(mean[kept])}
    return (Reason("left_out", lost=int(lost.sum()), asked=len(values), what=what, **means),)


def scale_ends(*sides: Reads) -> tuple[float, float]:
    """Return the lowest and highest score of the scale; without orderings, of those given."""
    shown = [side.scores for side in sides if side.n_options]
    given = [side.value[side.parsed] for side in sides]
    every = np.concatenate(shown or given).astype(np.float64)
    return (float(every.min()), float(every.max())) if len(every) else (np.nan, np.nan)


def difference_bounds(
    a: FloatArray, b: FloatArray, ends: tuple[float, float]
) -> tuple[float, float]:
    """Return the least and the greatest mean of a − b that the lost scores allow.

    Parameters
    ----------
    a, b
        As in `lost_scores`. Items without any score do not count.
    ends
        Lowest and highest score of the scale.

    Examples
    --------
    >>> difference_bounds(np.array([2.0, 4]), np.array([3.0, np.nan]), (1, 5))
    (-1.0, 1.0)
    """
    known = ~(np.isnan(a) & np.isnan(b))
    a, b = a[known], b[known]
    if not len(a):
        return float("nan"), float("nan")
    least = np.where(np.isnan(a), ends[0], a) - np.where(np.isnan(b), ends[1], b)
    most = np.where(np.isnan(a), ends[1], a) - np.where(np.isnan(b), ends[0], b)
    return float(least.mean()), float(most.mean())


def open_sign(
    a: FloatArray, b: FloatArray, ends: tuple[float, float], interval: tuple[float, float],
    of: str,
) -> Reasons:  # fmt: skip
    """Return the bounds of a mean difference whose sign the lost scores could turn.

    Parameters
    ----------
    a, b, ends
        As in `difference_bounds`.
    interval
        95 % interval of the mean of a − b over the kept items.
    of
        Name of the difference.
    """
    if interval[0] <= 0 <= interval[1]:  # no sign is claimed; it may be where there is no interval
        return ()
    low, high = difference_bounds(a, b, ends)
    if low > 0 or high < 0:
        return ()
    return (Reason("open_sign", of=of, low=low, high=high, lowest=ends[0], highest=ends[1]),)


def no_equivalence(codes: Iterable[str]) -> Reasons:
    """Return why a comparison with these reasons shows no equivalence; empty if it may."""
    worst = [code for code in codes if isinstance(code, Reason) and share_lost((code,)) > MOST_LOST]
    what = {"what": worst[0].numbers.get("what", "items")} if worst else {}
    return (Reason("no_equivalence.lost", most=MOST_LOST, **what),) if worst else ()


def share_lost(codes: Iterable[str]) -> float:
    """Return the share of items that a comparison lost, from the reasons of its row.

    Examples
    --------
    >>> a, b = np.array([1.0, 2, 5, np.nan]), np.array([1.0, 3, np.nan, 2])
    >>> share_lost(lost_scores(a, b))
    0.5
    """
    lost: dict[str, float] = {}
    for code in codes:
        if isinstance(code, Reason) and code in ("lost", "left_out"):
            what = code.numbers["what"]
            lost[what] = lost.get(what, 0.0) + code.numbers["lost"] / code.numbers["asked"]
    return max(lost.values(), default=0.0)
