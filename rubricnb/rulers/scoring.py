"""Scores: computed from decisions in exact integers, capped without evidence."""

from __future__ import annotations

from collections.abc import Sequence

DECISIONS = (0, 1, 2)


def score(
    decisions: Sequence[int],
    levels: int,
    n_valid: int | None = None,
    n_needed: int = 2,
) -> int:
    """Compute a trait's score from its checklist.

    s = 1 + ((S − 1)·D + J) // (2J), with S levels, J decisions and D their sum: the
    mean decision on the scale 1…S, halves rounded up. With fewer than `n_needed` valid
    quotes the score is at most τ − 1, τ = `gate_threshold`.

    Parameters
    ----------
    decisions
        0 (not present), 1 (partially) or 2 (clearly), one per checklist item of the
        trait.
    levels
        S, 2 or more.
    n_valid
        Valid quotes (`count_valid`). None: no gate.
    n_needed
        m_eff = min(m, units of the text).

    Returns
    -------
    int
        1 to S.

    Notes
    -----
    arXiv RULERS, §3.2 and Eq. 4; the paper gives no τ.

    Examples
    --------
    >>> score([2, 2, 1], levels=5), score([2, 2, 1], levels=5, n_valid=1)
    (4, 3)
    """
    count = len(decisions)
    computed = 1 + ((levels - 1) * sum(decisions) + count) // (2 * count)
    if n_valid is None or n_valid >= n_needed:
        return computed
    return min(computed, gate_threshold(levels) - 1)


def gate_threshold(levels: int) -> int:
    """Return τ: the lowest score that needs evidence, above the scale's middle.

    Examples
    --------
    >>> [gate_threshold(levels) for levels in (2, 3, 4, 5, 6, 7, 9)]
    [2, 3, 3, 4, 4, 5, 6]
    """
    return (levels + 1) // 2 + 1


def is_tie(decisions: Sequence[int], levels: int) -> bool:
    """Tell whether the mean decision lies half-way between two scores.

    Examples
    --------
    >>> is_tie([1, 0], levels=5), is_tie([1, 0], levels=3)
    (False, True)
    """
    return (levels - 1) * sum(decisions) % (2 * len(decisions)) == len(decisions)
