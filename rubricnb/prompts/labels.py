"""What a score is called in the prompt: 1…n, E…A or i…v (arXiv:2506.22316, §3.2)."""

from __future__ import annotations

from functools import cache

_ROMAN = ("i", "ii", "iii", "iv", "v", "vi", "vii", "viii", "ix", "x")

LABELS = ("numeric", "letter", "roman")


@cache
def label(score: int, n: int, labels: str = "numeric", low: int = 1) -> str:
    """Return the label of a score on a scale of n levels.

    Parameters
    ----------
    score
        From `low` (worst) to n levels on (best).
    n
        Number of levels, at most 10 for roman and 26 for letter.
    labels
        ``numeric`` (1, 2, …), ``letter`` (A is the best: E = 1 at n = 5) or ``roman`` (i, ii, …).
    low
        The lowest score; it is i and the last letter, whatever its number.

    Raises
    ------
    ValueError
        An unknown kind of label, or a scale too long for it.

    Examples
    --------
    >>> [label(s, 5, "letter") for s in (1, 5)]
    ['E', 'A']
    >>> label(4, 5, "roman")
    'iv'
    """
    if labels == "numeric":
        return str(score)
    if labels == "letter" and n <= 26:
        return chr(ord("A") + n - 1 + low - score)
    if labels == "roman" and n <= len(_ROMAN):
        return _ROMAN[score - low]
    if labels in LABELS:
        raise ValueError(f"labels {labels!r} do not reach to {n} levels: use 'numeric'")
    raise ValueError(f"unknown labels {labels!r}: choose from {', '.join(LABELS)}")


def span(n: int, labels: str, low: int = 1) -> tuple[str, str]:
    """Say which labels are allowed, in the two wordings of the task description.

    The numeric wording is the papers'; the other two are ours (T′ in arXiv:2506.22316, which
    prints none), changed in these places only.

    Examples
    --------
    >>> span(5, "numeric")
    ('an integer between 1 and 5', 'an integer number between 1 and 5')
    >>> span(5, "letter")[0]
    'a letter between E and A'
    """
    first, last = (label(score, n, labels, low) for score in (low, low + n - 1))
    if labels == "numeric":
        between = f"between {first} and {last}"
        return f"an integer {between}", f"an integer number {between}"
    kind = "letter" if labels == "letter" else "Roman numeral"
    return (f"a {kind} between {first} and {last}",) * 2
