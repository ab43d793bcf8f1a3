"""Names that were misspelt: the nearest known one, for an error."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from difflib import get_close_matches


def nearest(name: object, known: Iterable[Hashable]) -> str:
    """Suggest the known name nearest to a misspelt one; a full stop if there is none.

    Examples
    --------
    >>> nearest("hana", ["hanna", "summeval"])
    "; did you mean 'hanna'?"
    >>> nearest("gemma-3-27b", ["Gemma-3-27B", "GPT-4.1"])
    "; did you mean 'Gemma-3-27B'?"
    """
    spelled = {str(k).lower(): str(k) for k in known}
    matches = [
        spelled[match]
        for match in get_close_matches(
            str(name).lower(), list(spelled), n=2, cutoff=0.5
        )
    ]
    return f"; did you mean {' or '.join(map(repr, matches))}?" if matches else "."


def one_of(what: str, name: object, known: Iterable[Hashable], where: str = "") -> None:
    """Check that a name is known.

    Raises
    ------
    ValueError
        It is not; says what there is.

    Examples
    --------
    >>> one_of("dataset", "hana", ["hanna", "summeval"])
    Traceback (most recent call last):
    ...
    ValueError: unknown dataset 'hana'; did you mean 'hanna'? There are: hanna, summeval
    """
    names = list(map(str, known))
    if name not in names:
        raise ValueError(
            f"{where}unknown {what} {name!r}{nearest(name, names)} There are: "
            f"{', '.join(names) or 'none'}"
        )
