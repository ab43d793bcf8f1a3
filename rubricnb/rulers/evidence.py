"""Evidence: a text's units, and whether a judge's quotes are where it says."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Literal, NamedTuple, get_args

from rubricnb.core.support.spelling import one_of

Segmentation = Literal["sentences", "naive", "whole"]
Status = Literal["verified", "wrong unit", "not found", "too short"]

SEGMENTATIONS: tuple[Segmentation, ...] = get_args(Segmentation)
STATUSES: tuple[Status, ...] = get_args(Status)
MIN_CHARACTERS = 8

_BLANK_LINE = re.compile(r"\n[ \t]*\n")
_PLAIN_FORMS = (
    {ord(c): "'" for c in "‘’‚‛′‹›`´ʼ"}
    | {ord(c): '"' for c in "“”„‟″«»"}
    | {ord(c): "-" for c in "‐‑‒–—―−"}
    | dict.fromkeys((0x00AD, 0x200B, 0x200C, 0x200D, 0x2060, 0xFEFF))  # invisible
)


class Quote(NamedTuple):
    """A quote that was looked up.

    Attributes
    ----------
    unit
        The unit that the judge cites, from 1.
    status
        ``verified``, ``wrong unit`` (it is in the text, but not within the cited unit),
        ``not found`` or ``too short``.
    found_in
        The first unit that holds it; 0 if none does by itself.
    text
        The slice of the original text that the quote matches; empty if it is not there.
    """

    unit: int
    status: Status
    found_in: int
    text: str


def split_units(text: str, into: Segmentation = "sentences") -> tuple[str, ...]:
    r"""Split a text into the units that can be cited; only outer space is lost.

    Parameters
    ----------
    text
        The text that is judged.
    into
        ``sentences``: by nupunkt, within paragraphs. The others show what that choice
        does: ``naive`` (after every ``.``, ``!`` and ``?``), ``whole``.

    Returns
    -------
    tuple of str
        At least one unit.

    Raises
    ------
    ValueError
        A blank text, or an unknown segmentation.

    Notes
    -----
    The paper's units are "atomic information units", its template's are sentences
    (arXiv RULERS, §2.1 and Figure 5).

    Examples
    --------
    >>> split_units("Dr. Lee scored 3.5, e.g. here. Was it fair? Yes!")
    ('Dr. Lee scored 3.5, e.g. here.', 'Was it fair?', 'Yes!')
    >>> split_units("It rose by 3.5.", "naive")
    ('It rose by 3.', '5.')
    """
    one_of("segmentation", into, SEGMENTATIONS)
    stripped = (unit.strip() for unit in _pieces(text, into))
    units = tuple(unit for unit in stripped if unit)
    if not units:
        raise ValueError("the text is blank: there is nothing to split or to quote")
    return units


def verify_quotes(
    quotes: Iterable[tuple[int, str]],
    units: Sequence[str],
    min_characters: int = MIN_CHARACTERS,
) -> list[Quote]:
    r"""Look up quotes in the units they cite.

    A quote is verified if it is a substring of the cited unit and has `min_characters`,
    after NFKC and after folding quotation marks, dashes, white space and invisible
    characters. Letter case counts.

    Parameters
    ----------
    quotes
        (cited unit from 1, quoted text).
    units
        From `split_units`.
    min_characters
        Shortest quote, after folding.

    Returns
    -------
    list of Quote

    Notes
    -----
    arXiv RULERS, §3.2: V(q, u), which the paper does not define; this definition is
    ours.

    Examples
    --------
    >>> units = ["She said “it is over”.", "He left."]
    >>> quotes = [
    ...     (1, 'said  "it is'), (2, "it is over"), (1, "it was over"), (2, "He left")]
    >>> [q.status for q in verify_quotes(quotes, units)]
    ['verified', 'wrong unit', 'not found', 'too short']
    >>> verify_quotes([(1, 'said  "it is')], units)[0].text
    'said “it is'
    """
    folded_units = [_folded(unit) for unit in units]
    whole_text = _folded(" ".join(units))
    return [
        _look_up(unit, quote, folded_units, whole_text, min_characters)
        for unit, quote in quotes
    ]


def cut(text: str, most: int) -> str:
    """Return a text of at most `most` characters, cut between words if possible.

    Examples
    --------
    >>> cut("one two three", 10), cut("one two three", 13), cut("onetwothree", 5)
    ('one two', 'one two three', 'onetw')
    """
    beginning = re.match(rf"(?s).{{{most // 2},{most}}}(?!\S)", text)
    return beginning[0] if beginning else text[:most]


def count_valid(quotes: Iterable[Quote]) -> int:
    """Count the evidence: different verified quotes, each of them once.

    Examples
    --------
    >>> count_valid(verify_quotes([(1, "a long quote")] * 2, ["It is a long quote."]))
    1
    """
    return len({(q.unit, q.text) for q in quotes if q.status == "verified"})


def fold(text: str) -> str:
    r"""Return how quotes are compared: NFKC, plain quotes and dashes, single spaces.

    Examples
    --------
    >>> fold("“Don’t”—he\n said… ")
    '"Don\'t"-he said...'
    """
    return _folded(text).text


class _Folded:
    """A folded text that knows which slice of the original each character came from."""

    def __init__(self, original: str) -> None:
        self.original = original
        characters: list[str] = []
        self.spans: list[tuple[int, int]] = []
        for start, end in _character_clusters(original):
            for character in _fold_cluster(original[start:end]):
                if character in " -" and characters and characters[-1] == character:
                    self.spans[-1] = (self.spans[-1][0], end)  # a run counts once
                    continue
                characters.append(character)
                self.spans.append((start, end))
        text = "".join(characters)
        self.text = text.strip(" ")
        self.spans = self.spans[len(text) - len(text.lstrip(" ")) :]

    def slice(self, quote: str) -> str | None:
        """Return the part of the original that matches a folded quote."""
        start = self.text.find(quote)
        if start < 0:
            return None
        return self.original[
            self.spans[start][0] : self.spans[start + len(quote) - 1][1]
        ]


# the traits of a text, and its reads, look into the same units
_folded = lru_cache(maxsize=1024)(_Folded)


def _look_up(
    unit: int,
    quote: str,
    folded_units: list[_Folded],
    whole_text: _Folded,
    min_characters: int,
) -> Quote:
    folded_quote = fold(quote)
    if len(folded_quote) < min_characters:
        return Quote(unit, "too short", 0, "")
    # the cited unit first; what is in the whole text alone spans several units
    numbered = sorted(enumerate(folded_units, 1), key=lambda one: one[0] != unit)
    for number, folded_text in [*numbered, (0, whole_text)]:
        if (matched := folded_text.slice(folded_quote)) is not None:
            status: Status = "verified" if number == unit > 0 else "wrong unit"
            return Quote(unit, status, number, matched)
    return Quote(unit, "not found", 0, "")


def _pieces(text: str, into: Segmentation) -> Iterable[str]:
    if into == "whole":
        return [text]
    if into == "naive":
        return re.split(r"(?<=[.!?])", text)
    from nupunkt import sent_spans  # half a second that other chapters need not pay

    paragraphs = _BLANK_LINE.split(text.replace("\r\n", "\n"))
    return [
        paragraph[start:end]
        for paragraph in paragraphs
        for start, end in sent_spans(paragraph)
    ]


def _character_clusters(text: str) -> Iterator[tuple[int, int]]:
    """Bounds of each character with the marks that NFKC may merge into it."""
    start = 0
    for end in range(1, len(text) + 1):
        following = text[end : end + 1]
        # Vowels and finals of decomposed Hangul are no combining marks,
        # yet NFKC composes them.
        joins = "\u1160" <= following <= "\u11ff" or any(
            map(unicodedata.combining, following)
        )
        if not joins:
            yield start, end
            start = end


def _fold_cluster(cluster: str) -> str:
    if cluster.isalnum() and cluster.isascii():
        return cluster
    # Marks are mapped before NFKC, which turns ´ into a space and an accent.
    mapped = cluster.translate(_PLAIN_FORMS)
    plain = unicodedata.normalize("NFKC", mapped).translate(_PLAIN_FORMS)
    return "".join(" " if c.isspace() else c for c in plain)
