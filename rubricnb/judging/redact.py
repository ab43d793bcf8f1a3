"""Remove keys from an endpoint's text, however it repeats them."""

from __future__ import annotations

import os
import re
from array import array

from rubricnb.judging.address import KEYS

MIN_KEY_CHARS = 8
"""A shorter key is a placeholder, such as EMPTY."""

_ESCAPED = (  # as JSON, Python, a URL and HTML write a letter, or JSON the end of a line
    r"(?:\\{1,8}(?:u00|x)|%|&#x0{0,4})(?P<hex>[0-9a-fA-F]{2});?|&#0{0,4}(?P<decimal>\d{2,3});"
    r"|\\{1,8}[nrt]"
)
_ESCAPE, _TOKEN = re.compile(_ESCAPED), re.compile(f"{_ESCAPED}|.", re.DOTALL)
_GAPS = dict.fromkeys(c for c in (*range(0x3001), 0xFEFF) if not chr(c).isalnum())


def redact(text: str, key: str | None) -> str:
    """Return a text without a key, and without those that the environment has for hosts.

    A key is found as it is, with its characters escaped (``\\u0041``, ``%41``, ``&#65;``), spaced
    out by whatever is neither letter nor digit, and in reverse. Redact before you cut a text: a
    part of a key is not found.

    Examples
    --------
    >>> redact("your key: s k - p r o j - 0 1 2 3, or 3210-jorp-ks", "sk-proj-0123")
    'your key: …, or …'
    """
    letters = _letters(text)
    for known in (key, *map(os.environ.get, KEYS.values())):
        known = (known or "").strip()
        if len(known) < MIN_KEY_CHARS:
            continue
        if known in text:
            text = text.replace(known, "…")
            letters = _letters(text)
        own = _letters(known)
        for form in (own, own[::-1]):
            if len(form) >= MIN_KEY_CHARS and form in letters:
                text = _without(text, form)
                letters = _letters(text)
    return text


def _letters(text: str) -> str:
    """Return the letters and digits of a text, with escapes undone."""
    return _ESCAPE.sub(_unescaped, text).translate(_GAPS)


def _unescaped(match: re.Match[str]) -> str:
    if match["hex"]:
        return chr(int(match["hex"], 16))
    return chr(int(match["decimal"])) if match["decimal"] else " "


def _without(text: str, form: str) -> str:
    """Remove every stretch of a text whose letters and digits are `form`."""
    letters: list[str] = []
    starts, ends = array("L"), array("L")  # of each letter in the text, which may be long
    for match in _TOKEN.finditer(text):
        letter = _unescaped(match) if match.lastgroup or len(match[0]) > 1 else match[0]
        if ord(letter) not in _GAPS:
            letters.append(letter)
            starts.append(match.start())
            ends.append(match.end())
    kept, last = [], 0
    for found in re.finditer(re.escape(form), "".join(letters)):
        kept.append(text[last : starts[found.start()]])
        last = ends[found.end() - 1]
    return "…".join([*kept, text[last:]])
