"""What a score is called in the prompt: 1…n, E…A or i…v (arXiv:2506.22316, §3.2)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from rubricnb.core.support.spelling import one_of

_ROMAN = ("i", "ii", "iii", "iv", "v", "vi", "vii", "viii", "ix", "x")

LABELS = ("numeric", "letter", "roman")
MOST_LEVELS = {"letter": 26, "roman": len(_ROMAN)}
"""The longest scale that these labels reach to."""


@cache
def labels_of(
    scores: Sequence[float], labels: str = "numeric", own: tuple[str, ...] = ()
) -> dict[float, str]:
    """Return what each score is called: its number, or a label of its `own`.

    The scores ascend, in a tuple or a range; of `letter` A is the best. Raises a
    ValueError if the labels do not reach that far.

    Examples
    --------
    >>> labels_of((1, 3, 5, 7)), labels_of((0, 1), own=("no", "yes"))
    ({1: '1', 3: '3', 5: '5', 7: '7'}, {0: 'no', 1: 'yes'})
    >>> list(labels_of(range(1, 6), "letter").values())
    ['E', 'D', 'C', 'B', 'A']
    >>> labels_of((0, 0.5, 1), "roman")[0.5]
    'ii'
    """
    n = len(scores)
    one_of("labels", labels, LABELS)
    if n > (most := MOST_LEVELS.get(labels, n)):
        raise ValueError(
            f"labels {labels!r} name at most {most} levels, not {n}: use 'numeric'"
        )
    if labels == "letter":
        names: Sequence[str] = [chr(ord("A") + n - 1 - k) for k in range(n)]
    else:
        names = (
            _ROMAN
            if labels == "roman"
            else own or [f"{score:.15g}" for score in scores]
        )
    return dict(zip(scores, names, strict=False))


def span(names: Sequence[str], labels: str = "numeric") -> tuple[str, str]:
    """Say which of these labels are allowed, in the two wordings of the task.

    The wording for whole numbers without gaps is the papers'; the others are ours (T′
    in arXiv:2506.22316, which prints none), changed in these places only.

    Examples
    --------
    >>> span(["1", "2", "3"])
    ('an integer between 1 and 3', 'an integer number between 1 and 3')
    >>> span(["1", "3", "5", "7"])[0], span(["B", "A"], "letter")[0]
    ('one of 1, 3, 5, 7', 'a letter between B and A')
    """
    between = f"between {names[0]} and {names[-1]}"
    if labels == "numeric":
        if names[0].isdigit() and [*names] == [
            str(int(names[0]) + k) for k in range(len(names))
        ]:
            return f"an integer {between}", f"an integer number {between}"
        return (f"one of {', '.join(names)}",) * 2
    kind = "letter" if labels == "letter" else "Roman numeral"
    return (f"a {kind} {between}",) * 2
