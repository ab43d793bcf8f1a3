"""Hints for the exercises: each function says whether an answer is right, and if not, why.

Every check returns one or two sentences. It begins with ``Right``, ``Not yet`` or ``Not answered``
and never raises, so a notebook with empty exercises still runs from top to bottom. No check prints
the solution. Leave an answer as ``...`` until you have one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rubricnb.permutation import neighbour_counts, position_counts

_EMPTY = "Not answered: put your answer in place of the three dots."


def is_ordering(ordering: Any, n: int) -> str:
    """Check that one ordering of n options lists every option once.

    Parameters
    ----------
    ordering
        The answer: the option at position 1, …, n.
    n
        Number of options.

    Returns
    -------
    str
        The verdict, with a hint when it is not right.

    Examples
    --------
    >>> is_ordering([2, 3, 1], 3)
    'Right: every option from 1 to 3 stands exactly once.'
    >>> is_ordering([0, 1, 2], 3)
    'Not yet: 0 is not an option. Options count from 1.'
    """
    if ordering is ...:
        return _EMPTY
    table = _table(ordering)
    if isinstance(table, str):
        return table
    if len(table) != 1:
        return f"Not yet: that is {len(table)} orderings; one is asked for."
    wrong = _not_orderings(table, n)
    return wrong or f"Right: every option from 1 to {n} stands exactly once."


def is_balanced(orderings: Any) -> str:
    """Check that every option stands equally often at every position.

    Parameters
    ----------
    orderings
        The answer, shape (k, n): one ordering a row.

    Returns
    -------
    str
        The verdict; the hint names one option and one position that break the balance.

    Examples
    --------
    >>> is_balanced([[1, 2], [2, 1]])
    'Right: in 2 orderings every option stands 1 time at every position.'
    >>> is_balanced([[1, 2, 3], [1, 3, 2], [3, 2, 1]])
    'Not yet: option 1 stands 2 times at position 1 and 0 times at position 2.'
    """
    table = _orderings(orderings)
    if isinstance(table, str):
        return table
    counts = position_counts(table)
    if counts.min() == counts.max():
        return (
            f"Right: in {_times(len(table), 'ordering')} every option stands "
            f"{_times(counts[0, 0])} at every position."
        )
    option = int(np.argmax(np.ptp(counts, axis=1)))
    row = counts[option]
    return (
        f"Not yet: option {option + 1} stands {_times(row.max())} at position {row.argmax() + 1} "
        f"and {_times(row.min())} at position {row.argmin() + 1}."
    )


def carry_over(orderings: Any) -> str:
    """Check that every option stands equally often directly before every other one.

    Parameters
    ----------
    orderings
        The answer, shape (k, n): one ordering a row.

    Returns
    -------
    str
        The verdict; the hint counts the missing neighbour pairs and names one.

    Examples
    --------
    >>> carry_over([[1, 2], [2, 1]])
    'Right: each of the 2 ordered pairs stands next to each other 1 time.'
    >>> print(carry_over([[1, 2, 3], [2, 3, 1], [3, 1, 2]]))
    Not yet: 3 of the 6 ordered pairs never meet; for one, 1 never stands directly before 3.
    """
    table = _orderings(orderings)
    if isinstance(table, str):
        return table
    n = table.shape[1]
    counts = neighbour_counts(table)
    pairs = counts[~np.eye(n, dtype=bool)]
    if pairs.min() == pairs.max():
        return (
            f"Right: each of the {len(pairs)} ordered pairs stands next to each other "
            f"{_times(pairs[0])}."
        )
    masked = counts + np.eye(n, dtype=int) * len(table) * n
    first, second = (int(i) + 1 for i in np.unravel_index(masked.argmin(), masked.shape))
    missing = int((pairs == 0).sum())
    if missing:
        return (
            f"Not yet: {missing} of the {len(pairs)} ordered pairs never meet; "
            f"for one, {first} never stands directly before {second}."
        )
    return (
        f"Not yet: every ordered pair meets, but {first} stands directly before {second} "
        f"only {_times(pairs.min())} where another pair meets {_times(pairs.max())}."
    )


def position_of(answer: Any, ordering: Sequence[int], score: int) -> str:
    """Check the position at which a score stands in an ordering.

    The usual slip reads the ordering the wrong way round: it looks up *which score stands at
    position s* where *the position of score s* is asked.

    Parameters
    ----------
    answer
        The answer, from 1.
    ordering
        The option at position 1, …, n.
    score
        The score that was chosen.

    Returns
    -------
    str
        The verdict, with a hint when it is not right.

    Examples
    --------
    >>> position_of(2, [3, 1, 2], 1)
    'Right.'
    >>> print(position_of(3, [3, 1, 2], 1))
    Not yet: that is the score shown at position 1. Where does score 1 itself stand?
    """
    value = _number(answer)
    if isinstance(value, str):
        return value
    order = [int(o) for o in ordering]
    right = order.index(score) + 1
    if value == right:
        return "Right."
    if value == right - 1:
        return "Not yet: positions count from 1, not from 0."
    if value == order[score - 1]:
        return (
            f"Not yet: that is the score shown at position {score}. "
            f"Where does score {score} itself stand?"
        )
    return f"Not yet: go through {order} from the left until you meet {score}."


def shares(answer: Any, counts: ArrayLike) -> str:
    """Check the shares of the positions.

    Parameters
    ----------
    answer
        The answer: one share a position, between 0 and 1.
    counts
        How often the chosen score stood at position 1, …, n.

    Returns
    -------
    str
        The verdict, with a hint when it is not right.

    Examples
    --------
    >>> shares([0.5, 0.25, 0.25], [2, 1, 1])
    'Right.'
    >>> shares([50, 25, 25], [2, 1, 1])
    'Not yet: these are percentages; shares lie between 0 and 1.'
    """
    values = _numbers(answer)
    if isinstance(values, str):
        return values
    observed = np.asarray(counts, dtype=float)
    expected = observed / observed.sum()
    if values.shape != expected.shape:
        return f"Not yet: {expected.size} shares are asked for, you give {values.size}."
    if np.allclose(values, expected, atol=5e-4):
        return "Right."
    if np.allclose(values, 100 * expected, atol=5e-2):
        return "Not yet: these are percentages; shares lie between 0 and 1."
    if np.allclose(values, observed):
        return "Not yet: these are the counts. Divide by the number of parsed reads."
    if not np.isclose(values.sum(), 1, atol=5e-3):
        return "Not yet: shares sum to 1, and yours do not. What did you divide by?"
    return "Not yet: they sum to 1, but at least one belongs to another position."


def chi_square(answer: Any, counts: ArrayLike) -> str:
    """Check the papers' χ² of the position counts against 1/n.

    Parameters
    ----------
    answer
        The answer.
    counts
        How often the chosen score stood at position 1, …, n.

    Returns
    -------
    str
        The verdict; the hint names the slip where it can be recognised.

    Examples
    --------
    >>> chi_square(13.33, [30, 20, 10, 20, 20])
    'Not yet: you divided by the observed counts. The expected ones stand below the line.'
    """
    value = _number(answer)
    if isinstance(value, str):
        return value
    c = np.asarray(counts, dtype=float)
    m, n = float(c.sum()), c.size
    squares = (c - m / n) ** 2
    expected = float(squares.sum() / (m / n))
    with np.errstate(divide="ignore"):
        by_observed = float((squares / c).sum())
    slips = {
        "you divided by the observed counts. The expected ones stand below the line.": by_observed,
        "you summed the squares but did not divide by the expected count.": float(squares.sum()),
        "you used shares. A χ² needs counts: with shares it loses the number of reads.": expected
        / m,
        "that is V, not χ².": float(np.sqrt(expected / (m * (n - 1)))),
    }
    return _judge(value, expected, slips, "Compare each count with M/n, where M is their sum.")


def cramers_v(answer: Any, counts: ArrayLike) -> str:
    """Check the papers' Cramér's V of the position counts.

    Parameters
    ----------
    answer
        The answer, between 0 and 1.
    counts
        How often the chosen score stood at position 1, …, n.

    Returns
    -------
    str
        The verdict; the hint names the slip where it can be recognised.

    Examples
    --------
    >>> cramers_v(10.0, [30, 20, 10, 20, 20])
    'Not yet: that is χ². V is the root of χ² over its largest possible value.'
    """
    value = _number(answer)
    if isinstance(value, str):
        return value
    c = np.asarray(counts, dtype=float)
    m, n = float(c.sum()), c.size
    chi2 = float(((c - m / n) ** 2).sum() / (m / n))
    expected = float(np.sqrt(chi2 / (m * (n - 1))))
    slips = {
        "that is χ². V is the root of χ² over its largest possible value.": chi2,
        "that is V². Take the root.": expected**2,
        "the n - 1 is missing: without it V depends on the number of options.": float(
            np.sqrt(chi2 / m)
        ),
        "you divided by n where n - 1 belongs.": float(np.sqrt(chi2 / (m * n))),
        "M counts reads, not items: here it is the sum of the counts.": float(
            np.sqrt(chi2 * 2 * n / (m * (n - 1)))
        ),
    }
    return _judge(value, expected, slips, "Start from χ² and divide by M(n - 1).")


def bias_cost(answer: Any, table: ArrayLike, ordering: Sequence[int]) -> str:
    """Check the Bias Cost of one ordering (arXiv:2602.02219v1).

    Parameters
    ----------
    answer
        The answer; not multiplied by 100.
    table
        P(p | s), shape (n, n): row s - 1, column p - 1; rows sum to 1.
    ordering
        The score at position 1, …, n.

    Returns
    -------
    str
        The verdict; the hint names the slip where it can be recognised.

    Examples
    --------
    >>> print(bias_cost(0.0, [[0.6, 0.4], [0.6, 0.4]], [1, 2]))
    Not yet: without absolute values the deviations cancel.
    """
    value = _number(answer)
    if isinstance(value, str):
        return value
    p = np.asarray(table, dtype=float)
    n = len(p)
    score, position = np.asarray(ordering) - 1, np.arange(n)
    deviations = p[score, position] - 1 / n
    expected = float(np.abs(deviations).sum())
    slips = {
        "the papers print it times 100; here it is not multiplied.": 100 * expected,
        "without absolute values the deviations cancel.": float(deviations.sum()),
        "you took the mean over positions where a sum is asked.": expected / n,
        "rows are scores and columns positions; you read the table the other way.": float(
            np.abs(p[position, score] - 1 / n).sum()
        ),
    }
    return _judge(value, expected, slips, "Add |P(p | π_p) - 1/n| over the positions p.")


def stability(answer: Any, before: ArrayLike, after: ArrayLike) -> str:
    """Check flip rate, mean absolute deviation and shift of two sets of scores.

    Parameters
    ----------
    answer
        The answer: the three numbers, in this order.
    before, after
        The scores of the same items under the baseline and under a perturbation.

    Returns
    -------
    str
        The verdict, with a hint when it is not right.

    Examples
    --------
    >>> stability([0.5, 1.0, -1.0], [3, 4], [3, 2])
    'Right.'
    >>> stability([0.5, 1.0, 1.0], [3, 4], [3, 2])
    'Not yet: the shift is perturbed minus baseline; the sign is the other way round.'
    """
    values = _numbers(answer)
    if isinstance(values, str):
        return values
    if values.shape != (3,):
        return f"Not yet: three numbers are asked for, you give {values.size}."
    moved = np.asarray(after, dtype=float) - np.asarray(before, dtype=float)
    expected = np.array([(moved != 0).mean(), np.abs(moved).mean(), moved.mean()])
    if np.allclose(values, expected, atol=5e-3):
        return "Right."
    if np.allclose(values[:2], expected[:2], atol=5e-3) and np.isclose(values[2], -expected[2]):
        return "Not yet: the shift is perturbed minus baseline; the sign is the other way round."
    if values[1] < values[0]:
        return "Not yet: a flip is at least one point, so MAD cannot be below FR."
    wrong = ["FR", "MAD", "shift"][int(np.argmax(~np.isclose(values, expected, atol=5e-3)))]
    return f"Not yet: look at {wrong} again. All three are means over all items."


def detection(answer: Any, shares: ArrayLike, questions: int, false_alarms: float = 0.05) -> str:
    """Check how often questionnaires filled in by a model are found.

    Parameters
    ----------
    answer
        The answer, between 0 and 1: the share found.
    shares
        The shares with which the model selects position 1, …, n; they sum to 1.
    questions
        Number of questions, each with its options shuffled anew.
    false_alarms
        Share of honest questionnaires, whose positions are uniform, that sound the alarm.

    Returns
    -------
    str
        The verdict; the hint names the slip where it can be recognised. The expected share is
        simulated, so anything within three points is right.

    Examples
    --------
    >>> detection(0.05, [0.5, 0.5], 10)
    'Right.'
    >>> detection(64, [0.29, 0.20, 0.17, 0.16, 0.18], 40)
    'Not yet: these are percentages; shares lie between 0 and 1.'
    """
    value = _number(answer)
    if isinstance(value, str):
        return value
    if value > 1:
        return "Not yet: these are percentages; shares lie between 0 and 1."
    found, no_threshold = _detected(np.asarray(shares, dtype=float), questions, false_alarms)
    if abs(value - found) <= 0.03:
        return "Right."
    if abs(value - false_alarms) <= 0.005:
        return "Not yet: that is the rate of false alarms. Apply the threshold to the model."
    if abs(value - (1 - found)) <= 0.03:
        return "Not yet: that is the share you miss."
    if abs(value - no_threshold) <= 0.03:
        return "Not yet: a sum above 0 is not the alarm; honest sums exceed 0 too. Set a threshold."
    size = "large" if value > found else "small"
    return f"Not yet: your share is too {size}. Draw honest and model questionnaires of equal size."


def effective_reads(answer: Any, single: float, within: float, k: int) -> str:
    """Check how many independent reads the mean of k repeats of one prompt is worth.

    Parameters
    ----------
    answer
        The answer.
    single
        Variance of a single read within an item, over orderings and repeats.
    within
        Variance of the repeats of one ordering; at most `single`.
    k
        Number of repeats.

    Returns
    -------
    str
        The verdict; the hint names the slip where it can be recognised.

    Examples
    --------
    >>> effective_reads(1.0, single=0.3, within=0.0, k=10)
    'Right.'
    >>> effective_reads(10, single=0.3, within=0.0, k=10)
    'Not yet: that is the number of reads. What they have in common does not average out.'
    """
    value = _number(answer)
    if isinstance(value, str):
        return value
    expected = single / (single - within + within / k)
    slips = {
        "that is the number of reads. What they have in common does not average out.": float(k),
        "that is the variance of the mean. Compare it with the variance of one read.": single
        / expected,
        "that is the ratio upside down.": 1 / expected,
        "these are standard deviations where variances are asked for.": np.sqrt(single)
        / (np.sqrt(single) - np.sqrt(within) + np.sqrt(within) / k),
    }
    return _judge(
        value, expected, slips, "A mean of k repeats varies by single - within + within / k."
    )


def averaged_r(answer: Any, r_1: float, phi: float, k: int) -> str:
    """Check what plain averaging of k reads makes of a correlation.

    Parameters
    ----------
    answer
        The answer.
    r_1
        r of a single read.
    phi
        φ, noise over signal variance of a single read.
    k
        Number of reads averaged.

    Returns
    -------
    str
        The verdict; the hint names the slip where it can be recognised.

    Examples
    --------
    >>> averaged_r(0.4, r_1=0.4, phi=1.0, k=1)
    'Right.'
    >>> print(averaged_r(0.5657, r_1=0.4, phi=1.0, k=10))
    Not yet: that is r of infinitely many reads. Divide it by √(1 + φ/K).
    """
    value = _number(answer)
    if isinstance(value, str):
        return value
    limit = r_1 * np.sqrt(1 + phi)
    expected = limit / np.sqrt(1 + phi / k)
    slips = {
        "that is r of infinitely many reads. Divide it by √(1 + φ/K).": limit,
        "the root is missing: noise adds to the variance, not to the sd.": limit / (1 + phi / k),
        "you started from r of one read; r_∞ is larger by √(1 + φ).": r_1 / np.sqrt(1 + phi / k),
        "φ is divided by K once, not twice.": limit / np.sqrt(1 + phi / k**2),
    }
    return _judge(value, expected, slips, "r_K = r_∞ / √(1 + φ/K), and r_1 is its value at K = 1.")


def kappa(answer: Any, judge: ArrayLike, people: ArrayLike) -> str:
    """Check the quadratic weighted kappa of two raters.

    Parameters
    ----------
    answer
        The answer.
    judge, people
        Labels of the same items.

    Returns
    -------
    str
        The verdict, with a hint when another agreement was computed.

    Examples
    --------
    >>> kappa(0.7, [1, 2, 3, 3], [1, 2, 2, 3])
    'Not yet: your number is too small. QWK = 2 cov / (var + var + squared difference of means).'
    >>> kappa(0.8, [1, 2, 3, 3], [1, 2, 2, 3])
    'Right.'
    """
    value = _number(answer)
    if isinstance(value, str):
        return value
    x, y = np.asarray(judge, dtype=np.float64), np.asarray(people, dtype=np.float64)
    covariance = ((x - x.mean()) * (y - y.mean())).mean()
    spread, apart = x.var() + y.var(), (x.mean() - y.mean()) ** 2
    slips = {
        "that is Pearson's r: it does not see that one rater is harsher.": (
            covariance / np.sqrt(x.var() * y.var()) if x.var() * y.var() else np.nan
        ),
        "the squared difference of the means is missing.": 2 * covariance / spread,
        "that is the share of equal labels.": float((x == y).mean()),
        "take moments with n in the denominator, not n − 1.": (
            2 * covariance / (spread + apart * (1 - 1 / len(x)))
        ),
    }
    hint = "QWK = 2 cov / (var + var + squared difference of means)."
    return _judge(value, 2 * covariance / (spread + apart), slips, hint)


def close(
    answer: Any,
    expected: float,
    hint: str = "",
    tolerance: float = 0.01,
    slips: Mapping[str, float] | None = None,
) -> str:
    """Check a number against the expected one without showing it.

    Parameters
    ----------
    answer
        The answer.
    expected
        The expected number, computed in the notebook rather than typed.
    hint
        A sentence to add when the answer is wrong.
    tolerance
        Largest relative difference that counts as right; absolute where `expected` is 0.
    slips
        What to say → the number that a known slip leads to.

    Returns
    -------
    str
        The verdict, which way the answer is off, and the hint.

    Examples
    --------
    >>> close(0.251, 0.25)
    'Right.'
    >>> close(0.4, 0.25, "Which reads were parsed?")
    'Not yet: your number is too large. Which reads were parsed?'
    >>> close(25, 0.25)
    'Not yet: your number is 100 times too large. A share, or a percentage?'
    >>> close(4, 8, slips={"this is the root of what is asked for.": 8**0.5, "squared?": 4})
    'Not yet: squared?'
    """
    value = _number(answer)
    if isinstance(value, str):
        return value
    if _near(value, expected, tolerance):
        return "Right."
    if expected != 0:
        for text, slip in {
            **(slips or {}),
            "your number is 100 times too large. A share, or a percentage?": 100 * expected,
            "your number is 100 times too small. A share, or a percentage?": expected / 100,
            "the size is right and the sign is not.": -expected,
        }.items():
            if _near(value, slip, tolerance):
                return _with(f"Not yet: {text}", hint)
    return _with(f"Not yet: your number is too {'large' if value > expected else 'small'}.", hint)


def _detected(
    shares: NDArray[np.float64], questions: int, false_alarms: float
) -> tuple[float, float]:
    """Share of a model's questionnaires above the threshold, and above 0 instead."""
    rng = np.random.default_rng(0)
    evidence = np.log(shares.size * np.clip(shares, 1e-3, None))
    uniform = np.full(shares.size, 1 / shares.size)
    honest = rng.multinomial(questions, uniform, size=50_000) @ evidence
    model = rng.multinomial(questions, shares / shares.sum(), size=50_000) @ evidence
    # The alarm sounds for exactly that share: sums that tie with the threshold are drawn by lot.
    threshold = np.quantile(honest, 1 - false_alarms)
    above, at = ((honest > threshold).mean(), np.isclose(honest, threshold).mean())
    lot = np.clip((false_alarms - above) / at, 0, 1) if at > 0 else 0.0
    found = (model > threshold).mean() + lot * np.isclose(model, threshold).mean()
    return float(found), float((model > 0).mean())


def _judge(value: float, expected: float, slips: dict[str, float], else_: str) -> str:
    if _near(value, expected):
        return "Right."
    for text, slip in slips.items():
        if np.isfinite(slip) and _near(value, slip):
            return f"Not yet: {text}"
    return f"Not yet: your number is too {'large' if value > expected else 'small'}. {else_}"


def _near(value: float, expected: float, tolerance: float = 0.01) -> bool:
    return bool(abs(value - expected) <= (tolerance * abs(expected) or tolerance))


def _with(message: str, hint: str) -> str:
    return f"{message} {hint}" if hint else message


def _times(count: int, noun: str = "time") -> str:
    return f"{int(count)} {noun}" if count == 1 else f"{int(count)} {noun}s"


def _number(answer: Any) -> float | str:
    values = _numbers(answer)
    if isinstance(values, str):
        return values
    if values.size != 1:
        return f"Not yet: one number is asked for, you give {values.size}."
    return float(values.ravel()[0])


def _numbers(answer: Any) -> NDArray[np.float64] | str:
    if answer is ...:
        return _EMPTY
    try:
        values = np.asarray(answer, dtype=float)
    except (TypeError, ValueError):
        return f"Not yet: a number is asked for, you give {type(answer).__name__}."
    if values.size == 0 or not np.isfinite(values).all():
        return "Not yet: your answer holds a value that is not a number (nan, inf or nothing)."
    return values


def _table(orderings: Any) -> NDArray[np.int64] | str:
    if orderings is ...:
        return _EMPTY
    try:
        table = np.atleast_2d(np.asarray(orderings, dtype=float))
    except (TypeError, ValueError):
        return "Not yet: write orderings as a list of lists of numbers, all of one length."
    whole = np.isfinite(table) & (np.abs(table) < 1e6) & (table == np.round(table))
    if table.ndim != 2 or table.size == 0 or not whole.all():
        return "Not yet: write one ordering a row, with one whole number for each position."
    return table.astype(np.int64)


def _orderings(orderings: Any) -> NDArray[np.int64] | str:
    table = _table(orderings)
    if isinstance(table, str):
        return table
    n = table.shape[1]
    if n < 2:
        return "Not yet: an ordering needs at least 2 options."
    return _not_orderings(table, n) or table


def _not_orderings(table: NDArray[np.int64], n: int) -> str:
    """Say what keeps a row from being a permutation of 1, …, n; empty if nothing does."""
    if table.shape[1] != n:
        return f"Not yet: an ordering of {n} options has {n} entries, yours has {table.shape[1]}."
    for index, row in enumerate(table, start=1):
        where = f" in ordering {index}" if len(table) > 1 else ""
        strange = [int(o) for o in row if not 1 <= o <= n]
        if strange:
            start = "Options count from 1." if 0 in strange else f"Options run from 1 to {n}."
            return f"Not yet: {strange[0]} is not an option{where}. {start}"
        twice = [o for o in range(1, n + 1) if (row == o).sum() > 1]
        if twice:
            return f"Not yet: option {twice[0]} stands more than once{where}, so another is lost."
    return ""
