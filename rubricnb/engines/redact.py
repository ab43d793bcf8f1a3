"""Remove keys from an endpoint's text, however it repeats them."""

from __future__ import annotations

import html
import os
import re
import unicodedata
from array import array

from rubricnb.core.address import KEYS

MIN_KEY_CHARS = 8
"""A shorter key is a placeholder, such as EMPTY."""

# A character as JSON, Python, C, JavaScript, a URL and HTML write it, also with a mark
# that is escaped again and again, or an escape of one letter. Every part is bounded or
# gives nothing back, so a text is read in time proportional to its length.
_HEX = "[0-9a-fA-F]"
_PAIR = (
    rf"u(?P<high>[dD][89abAB]{_HEX}{{2}})\\{{1,8}}+u(?P<low>[dD][c-fC-F]{_HEX}{{2}})"
)
_NUMBERED = rf"u(?P<four>{_HEX}{{4}})|x(?P<two>{_HEX}{{2}})|U000(?P<five>{_HEX}{{5}})"
_ESCAPED = (
    rf"\\{{1,8}}+(?:{_PAIR}|{_NUMBERED}|u\{{0*+(?P<braced>{_HEX}{{1,5}})?\}}"
    r"|(?P<octal>[0-7]{1,3})|N\{(?P<name>[A-Za-z0-9 -]{1,90})\}|[abefnrtv])"
    rf"|%(?:25){{0,4}}(?P<url>{_HEX}{{2}})"
    rf"|&(?:amp;){{0,4}}(?P<html>\#[xX]0*+{_HEX}{{0,6}}|\#0*+\d{{0,7}}"
    rf"|[A-Za-z]\w{{1,31}});?"
)
_ESCAPE = re.compile(_ESCAPED, re.ASCII)
# A piece of a text that ends within no escape, looked through at once, so that other
# threads have their turn.
_PIECE = re.compile(rf"(?s:[^\\%&]{{1,64}}|{_ESCAPED}|.){{1,1024}}", re.ASCII)
# between letters, by whether only those of ASCII count
_GAPS = {False: re.compile(r"[\W_]+"), True: re.compile(r"[^0-9A-Za-z]+")}
# characters; a longer text with a hidden key is dropped as a whole
_LONGEST_CLEANED = 2**20
# how often escapes are undone: those of one language may be within another's
_ROUNDS = 3


def redact(text: str, key: str | None) -> str:
    """Return a text without a key, and without those that the environment has.

    A key is found as it is, with its characters escaped (``\\u0041``, ``\\101``,
    ``\\N{DIGIT ONE}``, ``%41``, ``&#65;``, ``&lowbar;``), in other letters that stand
    for the same (full width, another case), spaced out by whatever is neither letter
    nor digit (a key in ASCII: by whatever is no ASCII letter or digit), and in reverse.
    Redact before you cut a text: a part of a key is not found. Nothing is kept of a
    text of more than 2²⁰ characters with a key that is escaped or spaced out, and of
    any text with a key in escapes within escapes.

    Examples
    --------
    >>> redact("your key: s k - p r o j - 0 1 2 3, or 3210-jorp-ks", "sk-proj-0123")
    'your key: …, or …'
    """
    # The text's letters: all of them, or those of ASCII.
    letters_of: dict[bool, str] = {}
    for secret in (key, *map(os.environ.get, KEYS.values())):
        secret = (secret or "").strip()
        if len(secret) < MIN_KEY_CHARS:
            continue
        if secret in text:
            text, letters_of = text.replace(secret, "…"), {}
        ascii_only = secret.isascii()
        # Its own letters, and those of a key that looks escaped itself (…%41…),
        # either way round.
        plain = _GAPS[ascii_only].sub("", _folded(secret))
        read, back = (_letters(s, ascii_only) for s in (secret, secret[::-1]))
        for form in dict.fromkeys((plain, read, plain[::-1], read[::-1], back)):
            if len(form) < MIN_KEY_CHARS:
                continue
            if ascii_only not in letters_of:
                letters_of[ascii_only] = _letters(text, ascii_only)
            if form in letters_of[ascii_only]:
                cleaned = text
                if len(text) <= _LONGEST_CLEANED:
                    cleaned = _without(text, form, ascii_only)
                if form in _letters(cleaned, ascii_only):
                    return f"… ({len(text):,} characters that repeat a key)"
                text, letters_of = cleaned, {}
    return text


def _letters(text: str, ascii_only: bool) -> str:
    """Return the letters and digits of a text, with escapes undone."""
    for _ in range(_ROUNDS):
        pieces = _PIECE.finditer(text)
        read = "".join(_ESCAPE.sub(_unescaped, piece[0]) for piece in pieces)
        if read == text:
            break
        text = read
    return "".join(
        _GAPS[ascii_only].sub("", _folded(piece[0])) for piece in _PIECE.finditer(text)
    )


def _unescaped(match: re.Match[str]) -> str:
    kind = match.lastgroup
    if kind is None:
        return " "
    if kind == "html":
        return html.unescape(f"&{match[kind]};")
    if kind == "name":
        try:
            return unicodedata.lookup(match[kind])
        except KeyError:
            return match[0]
    if kind == "low":
        pair = bytes.fromhex(match["high"] + match["low"])
        return pair.decode("utf-16-be")
    return chr(int(match[kind], 8 if kind == "octal" else 16))


def _folded(text: str) -> str:
    """Return a text in the plainest letters, each character by itself."""
    if text.isascii():
        return text.lower()
    return "".join(unicodedata.normalize("NFKC", c).casefold() for c in text)


def _without(text: str, form: str, ascii_only: bool) -> str:
    """Remove every stretch of a text whose letters and digits are `form`."""
    letters: list[str] = []
    # of each letter in the text, which may be long
    starts, ends = array("L"), array("L")
    at = 0

    def take(characters: str, start: int, end: int) -> None:
        for letter in _folded(characters):
            if not _GAPS[ascii_only].match(letter):
                letters.append(letter)
                starts.append(start)
                ends.append(end)

    for escape in _ESCAPE.finditer(text):
        for place in range(at, escape.start()):
            take(text[place], place, place + 1)
        take(_unescaped(escape), *escape.span())
        at = escape.end()
    for place in range(at, len(text)):
        take(text[place], place, place + 1)
    kept, last = [], 0
    for match in re.finditer(re.escape(form), "".join(letters)):
        kept.append(text[last : starts[match.start()]])
        last = ends[match.end() - 1]
    return "…".join([*kept, text[last:]])
