"""Values that a page prints in its sentences, and how it says that one is missing."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from typing import Any


def glued_text(name: str, values: Mapping[str, Mapping[str, Any]]) -> str | None:
    """Return a glued value as a sentence prints it; None if there is none.

    Parameters
    ----------
    name
        As in the role: ``share``, or with a format ``share:.1%``.
    values
        As from `glued`.

    Examples
    --------
    >>> glued_text("share:.1%", {"share": {"text/plain": "0.25"}})
    '25.0%'
    """
    name, _, format_spec = name.partition(":")
    if "text/plain" not in values.get(name, {}):
        return None
    text = "".join(values[name]["text/plain"])
    if text[:1] in ("'", '"'):
        text = str(ast.literal_eval(text))
    # What is not known says so, in words that no format fits.
    return (
        text
        if format_spec in ("", "s") or is_unknown(text)
        else format(float(text), format_spec)
    )


def is_unknown(text: str) -> bool:
    """Whether a text has a NaN in the place of a number, or says that it is missing.

    Examples
    --------
    >>> is_unknown("p = NaN"), is_unknown("from nan to nan"), is_unknown("Nan's answer")
    (True, True, False)
    >>> is_unknown("Not asked: needs `logprobs`.")
    True
    """
    return bool(re.search(r"\b(?:NaN|nan)\b", text)) or text.startswith(_NOTES)


_NOTES = ("Not asked: needs ", "Not known from the judgments of this run.")


def unknown_note(needs: str) -> str:
    """Say that a value is not known in this run, or what it would need."""
    return f"{_NOTES[0]}{needs}." if needs else _NOTES[1]
