"""Remove keys from an endpoint's text, however it repeats them."""

from __future__ import annotations

import os
import re
from array import array
from itertools import takewhile

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
    out by whatever is neither letter nor digit, in reverse, and half or more of it in one piece, as
    where an endpoint cuts its own message. Redact before you cut a text: less is not found.

    Examples
    --------
    >>> redact("your key: s k - p r o j - 0 1 2 3, or 3210-jorp-ks", "sk-proj-0123")
    'your key: …, or …'
    >>> redact("no such key: qwertyuiop-asdfghjkl", "qwertyuiop-asdfghjkl-zxcvbnm")
    'no such key: …'
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
            if any(part in letters for part in _parts(form)):
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


def _parts(form: str) -> list[str]:
    """Split a key's letters into parts, of which half of the key holds one; the rest is left."""
    size = max(MIN_KEY_CHARS, len(form) // 4)
    return [form[start : start + size] for start in range(0, len(form) - size + 1, size)]


def _without(text: str, form: str) -> str:
    """Take out every stretch of a text whose letters are `form`, or half of it or more."""
    letters: list[str] = []
    starts, ends = array("L"), array("L")  # of each letter in the text, which may be long
    for match in _TOKEN.finditer(text):
        letter = _unescaped(match) if match.lastgroup or len(match[0]) > 1 else match[0]
        if ord(letter) not in _GAPS:
            letters.append(letter)
            starts.append(match.start())
            ends.append(match.end())
    joined = "".join(letters)
    parts = _parts(form)
    least = min(len(form), 2 * len(parts[0]) - 1)
    any_part, kept, last, done = re.compile("|".join(parts)), [], 0, 0
    while found := any_part.search(joined, done):
        at = form.index(found[0])
        before = joined[max(done, found.start() - at) : found.start()]
        after = form[at + len(found[0]) :]
        start = found.start() - _shared(form[:at][::-1], before[::-1])
        end = found.end() + _shared(after, joined[found.end() : found.end() + len(after)])
        if end - start < least:
            done = found.start() + 1
            continue
        kept.append(text[last : starts[start]])
        last, done = ends[end - 1], end
    return "…".join([*kept, text[last:]])


def _shared(one: str, other: str) -> int:
    """Return how many letters two texts begin with alike."""
    pairs = takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False))
    return sum(1 for _ in pairs)
