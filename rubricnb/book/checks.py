"""Hints for the exercises: whether an answer is right, and if not, why.

A check returns one or two sentences. It begins with ``Right``, ``Not yet`` or ``Not
answered``. No answer makes it raise, so a notebook with empty exercises still runs from
top to bottom. It does not print the solution. Leave an answer as ``...`` until you have
one.
"""

from __future__ import annotations

import math
import zlib
from base64 import b64decode, b64encode
from collections.abc import Mapping
from typing import Any

import numpy as np


def close(
    answer: Any,
    expected: float,
    hint: str = "",
    *,
    tolerance: float = 0.01,
    count: bool = False,
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
        Largest relative difference that counts as right, below 0.5, so that half of the
        number and its double are wrong; absolute where `expected` is 0. A number that
        is rounded correctly to two digits or more is right too.
    count
        Whether a whole number is asked for: the ones next to `expected`, on both sides,
        are right.
    slips
        What to say → the number that a known slip leads to.

    Returns
    -------
    str
        The verdict, which way the answer is off, and the hint.

    Raises
    ------
    ValueError
        The tolerance would accept anything, or nothing.

    Examples
    --------
    >>> close(0.251, 0.25)
    'Right.'
    >>> close(0.4, 0.25, "Which reads were parsed?")
    'Not yet: your number is too large. Which reads were parsed?'
    >>> close(16, 15.53), close(15, 15.53), close(15, 15.53, count=True)
    ('Right.', 'Not yet: your number is too small.', 'Right.')
    >>> close(25, 0.25)
    'Not yet: your number is 100 times too large. A share, or a percentage?'
    >>> slips = {"this is the root of what is asked for.": 8**0.5, "squared?": 4}
    >>> close(4, 8, slips=slips)
    'Not yet: squared?'
    """
    if not 0 < tolerance < 0.5:
        raise ValueError(f"tolerance = {tolerance}: choose a share between 0 and 0.5")
    value = _number(answer)
    if isinstance(value, str):
        return value
    whole = count and value in (np.floor(expected), np.ceil(expected))
    if whole or _near(value, expected, tolerance) or _is_rounded(value, expected):
        return "Right."
    if expected != 0:
        for text, slip in {
            **(slips or {}),
            "your number is 100 times too large. A share, or a percentage?": 100
            * expected,
            "your number is 100 times too small. A share, or a percentage?": expected
            / 100,
            "the size is right and the sign is not.": -expected,
        }.items():
            if _near(value, slip, tolerance):
                return f"Not yet: {text} {hint}".strip()
    side = "large" if value > expected else "small"
    return f"Not yet: your number is too {side}. {hint}".strip()


def seal(source: str) -> str:
    """Pack code so that a reader does not see the answer in it by accident.

    It is not a secret: unpacking it shows the answer, which the book prints too.

    Examples
    --------
    >>> "Right" in seal("print('Right.')")
    False
    >>> exec(unseal(seal("print('Right.')")))
    Right.
    """
    return b64encode(zlib.compress(source.encode(), 9)).decode()


def unseal(sealed: str) -> str:
    """Return the code that `seal` packed."""
    return zlib.decompress(b64decode(sealed)).decode()


def _near(value: float, expected: float, tolerance: float) -> bool:
    return abs(value - expected) <= (tolerance * abs(expected) or tolerance)


def _is_rounded(value: float, expected: float) -> bool:
    """Whether a number is another one, rounded correctly to two digits or more.

    >>> _is_rounded(3.3, 10 / 3), _is_rounded(4.0, 3.96), _is_rounded(3.4, 10 / 3)
    (True, True, False)
    >>> _is_rounded(0.3, 0.25), _is_rounded(0.3, 0.296)
    (False, True)
    """
    if expected == 0:
        return False
    fewest = max(0, 1 - math.floor(math.log10(abs(expected))))  # whole numbers at least
    steps = (10.0**places for places in range(fewest, fewest + 8))
    return any(
        abs(value - expected) * step <= 0.500001
        and abs(value * step - round(value * step)) < 1e-6
        for step in steps
    )


def _number(answer: Any) -> float | str:
    if answer is ...:
        return "Not answered: put your answer in place of the three dots."
    try:
        values = np.asarray(answer, dtype=float)
    except (TypeError, ValueError):
        return "Not yet: write a number with a decimal point and nothing else: 0.3."
    if values.size == 0 or not np.isfinite(values).all():
        return (
            "Not yet: your answer holds a value that is not a number (nan, inf or "
            "nothing)."
        )
    if values.size != 1:
        return (
            "Not yet: one number is asked for; write its decimals after a point: 0.3."
        )
    return float(values.item())
