r"""From an answer's text to a label, by the mark before it or by the user's own parser.

One step of `parsing`, which makes a choice of a whole reply.
Only what is unambiguous is read. A label directly follows its mark, may be wrapped
(``**4**``, ``$\boxed{4}$``, ``4/5``), and ends its clause: "5 reasons" is not 5, "4 or
5" and "4.5" are not 4. A number is read whole or not at all, and not where a question
or a correction follows it, as in "5? No, 4". A score that repeats the prompt is a
quotation.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from functools import cache, lru_cache
from numbers import Number
from typing import Any, NamedTuple, TypeAlias

from rubricnb.core.support.types import Json

_QUOTED_CHARS = 24
"""A score is a quotation if this many characters around it
are in the prompt as well.
"""

_INVISIBLE = "\u200b"  # represents all zero-width spaces, joiners and direction marks
_LOOKALIKES = dict(zip("【】〔〕،٬٫−٪", "[][],,.-%", strict=True))
_BLANKS = r"[^\S\n]*"
_OPENING = (
    rf"(?:[\s{_INVISIBLE}"
    rf":=*_`\"'“”„‘’«»「『(\[{{#|$]|\\[(\[]|\\\w+\{{|<\w+>|<(?=[^<>\n]{{1,12}}>)"
    r"|[-=]>|→|score\b)*"
)
_CLOSERS = rf"{_INVISIBLE}*_`\"'“”’»」』)}}$|>"
_CLOSES = rf"(?:[{_CLOSERS}\]]|\\[)\]]|</\w+>)"
# All of them. Not a possessive group: up to Python 3.11.4 such a group also consumes
# what an iteration that failed had begun (cpython #106052).
_CLOSING = rf"{_CLOSES}*(?!{_CLOSES})"
_CORRECTION = (
    r"\s*(?:or|no(?=\s*[,.:;!–—-]|\s+(?:wait|\d))|wait|actually|rather|maybe|sorry"
    r"|hmm)\b"
    r"[^\n\d]{0,20}\d"
)
_COUNTER = (  # and "is", which Japanese and Korean put after a number
    rf"(?:{_BLANKS}(?:points?|pts?|stars?|分|点|點|점|星|级|級|★|⭐)?"
    r"(?:です|である|だ|でした|입니다|이다|分です|점입니다)?(?!\w))?"
)
_IN_LIST = "\0in a list"


class Label(NamedTuple):
    """A label as it is written; it has no position if it is not on the scale."""

    position: int | None
    start: int
    end: int


@dataclass(frozen=True)
class JsonParser:
    r"""Reads JSON objects anywhere in an answer; the last one with a key counts.

    Parameters
    ----------
    key
        The name of the score. Several criteria are looked up by their own names.

    Examples
    --------
    >>> JsonParser()('I use {braces}.\n```json\n{"score": 4, "reason": null}\n```')[""]
    4
    """

    key: str = "score"

    def __call__(self, text: str, prompt: str = "") -> Json:
        """Return the entries of a text's objects, and the score under an empty name.

        Later entries count; an object that repeats the prompt does not.
        """
        found: Json = {}
        named: Json = {}
        for one in _own_objects(text, prompt, self.key.casefold()):
            self._collect(one, found, named)
        key = self.key.casefold()
        # Where objects name a criterion each,
        # none of their scores is that of the whole.
        whole = {"": found[key]} if key in found else {}
        if not whole and len(named) == 1 and not found.get(_IN_LIST):
            whole = {"": next(iter(named.values()))}
        found.pop(_IN_LIST, None)
        return found | named | whole

    def _collect(
        self,
        one: Json,
        found: Json,
        named: Json,
        in_list: bool = False,
    ) -> None:
        """Add an object's entries, and its score if it names its criterion.

        Add an object's entries, and its score under the criterion that it names, if it
        does. A part in a list has no score of the whole.
        """
        entries, key = _folded(one), self.key.casefold()
        inner = []
        for name, value in list(entries.items()):
            is_list = isinstance(value, list)
            parts = value if is_list else [value]
            for part in map(_folded, (p for p in parts if isinstance(p, dict))):
                is_about = any(isinstance(part.get(n), str) for n in _NAMING_KEYS)
                if key in part and not is_about and not is_list:
                    entries[name] = part[key]
                    inner.append(part[key])
                elif is_about or not is_list:
                    self._collect(part, found, named, in_list or is_list)
        if key not in entries and len(inner) == 1:
            entries[key] = inner[0]
        about = next(
            (entries[n] for n in _NAMING_KEYS if isinstance(entries.get(n), str)), ""
        )
        if key in entries and (about or in_list):
            if about:
                named[about.strip().casefold()] = entries[key]
            del entries[key]
            found[_IN_LIST] = in_list
        found |= entries


Parser: TypeAlias = re.Pattern[str] | Callable[[str], Any]


def parser_of(parser: str | Parser) -> Parser:
    """Return the parser that a text names: ``json``, ``json:KEY`` or an expression."""
    if not isinstance(parser, str):
        return parser
    name, _, key = parser.partition(":")
    if name == "json":
        return JsonParser(key or "score")
    try:
        return re.compile(parser)
    except re.error as error:
        raise ValueError(
            f"parser {parser!r} is not a regular expression: {error}; give one, json "
            "or json:KEY"
        ) from error


def last_label(
    text: str, slot: str, choices: tuple[str, ...], prompt: str
) -> Label | None:
    """Return the label after the last mark that does not repeat the prompt.

    Brackets of another script and backslashes do not matter; without ``[RESULT]``,
    ``RESULT:`` counts.

    Examples
    --------
    >>> last_label("A 2? No. [RESULT]: **4.0**/5", "[RESULT]", ("5", "4"), "…")
    Label(position=2, start=21, end=24)
    >>> last_label("[RESULT] 5 reasons why", "[RESULT]", ("5", "4"), "…") is None
    True
    """
    text, slot = _plain(text), slot.strip()
    for marks in _marks(slot):
        found = []
        for mark in marks.finditer(text):
            label = _label_at(text, mark.end(), choices, mark["closed"] is not None)
            end = label.end if label else mark.end() + 2
            if not _is_quoted(text, mark.start(), end, prompt, slot):
                found.append((label, mark.start(), end))
        if found:
            asked = _prompt_text(prompt, slot)
            repeated = [
                label is not None and _collapsed(text[start:end]) in asked
                for label, start, end in found
            ]
            labels = [label and label.position for label, _, _ in found]
            return found[-1][0] if _is_sure(labels, repeated) else None
    return None


def label_of(value: Any, choices: tuple[str, ...]) -> Label | None:
    """Return the label that a parser has found: a number or a text that begins with it.

    Examples
    --------
    >>> found = ("4 out of 5", 4.0, True, "4 or 5")
    >>> [label_of(value, ("5", "4")) is None for value in found]
    [False, False, True, True]
    """
    if isinstance(value, bool) or not isinstance(value, str | Number):
        return None
    return _label_at(_plain(str(value)), 0, choices)


def labels_found(parser: Parser, text: str, prompt: str) -> Json:
    """Return a parser's labels by criterion, in lower case; empty: none is named."""
    if isinstance(parser, re.Pattern):
        return _matches(parser, text, prompt)
    if isinstance(parser, JsonParser):
        return parser(text, prompt)
    try:
        value = parser(text)
    # as of a text that is not JSON
    except (ValueError, LookupError, TypeError, AttributeError):
        return {}
    if isinstance(value, Mapping):
        return {str(name).casefold(): label for name, label in value.items()}
    return {"": value}


def is_cut(text: str, label: str, choices: tuple[str, ...]) -> bool:
    """Whether a text that ends in a label may have been cut within a longer number."""
    end = re.search(r"(\d+)([.,]?)\Z", _plain(text))
    if end is None or end[1] != label:
        return False
    return bool(end[2]) or any(c != label and c.startswith(label) for c in choices)


_NAMING_KEYS = (
    "criterion",
    "criteria",
    "metric",
    "dimension",
    "aspect",
    "trait",
    "name",
)


def _label_at(
    text: str, start: int, choices: tuple[str, ...], closed: bool = True
) -> Label | None:
    """Return the label at a place of a text; None if there is none, or more follows.

    Not `closed`: the mark's own bracket is open, and ends after the label.
    """
    found = _grammar(choices, closed).match(text, start)
    if found is None:
        return None
    begins_line = "\n" in text[start : found.start("label")]
    rest = text[found.end("label") :]
    begins_list = found["label"] == "1" and re.search(r"\n[^\S\n]*2[.)] ", rest)
    if re.match(r"[.)][^\S\n]+\w", rest) and (begins_line or begins_list):
        return None  # an item of a numbered list
    return Label(_positions(choices).get(_name(found["label"])), *found.span("label"))


@cache
def _grammar(choices: tuple[str, ...], closed: bool) -> re.Pattern[str]:
    """A label, on the scale or of its kind, with all that may surround it."""
    if all(isinstance(name, Decimal) for name in _positions(choices)):
        label = r"[-+]?\d++(?:[.,]\d++)*(?![.,]\d)"
        best = re.escape(max(choices, key=Decimal))
        of = (
            rf"(?:{_BLANKS}(?:/|\s(?:out\s+)?of\s){_BLANKS}{best}(?:[.,]0+)?(?!\w"
            rf"|[.,]\d))?"
        )
        because, goes_on = (
            r"|\s+(?:because|since|as|due)\b",
            rf"{_BLANKS}\d|{_CORRECTION}",
        )
    else:
        label = "|".join(sorted(map(re.escape, choices), key=len, reverse=True))
        if all(re.fullmatch("[A-Z]|[ivx]+", choice) for choice in choices):
            label += "|[A-Z]|[ivx]+"
        of, because, goes_on = (
            "",
            "",
            rf"(?!因为|因為|由于|由於|理由|なぜなら|왜냐하면)\w|{_BLANKS}(?:{label})\b",
        )
    ends = "|".join(
        (
            rf"{_BLANKS}(?:\n(?!{_CORRECTION})|\Z)",
            rf"{_BLANKS}[.,:;!…。；！、]++(?!\?|{goes_on})",
            rf"[^\S\n]+[-–—]+[^\S\n]+(?=[^\W\d])(?!(?:{label}|or|and|to)\b"
            rf"|{_CORRECTION})",
            rf"{_BLANKS}[(\[{{|<#*_=]++(?!\s*(?:\d|or\b|and\b|to\b))",
            rf"{_BLANKS}[^\w\s.,:;!?…。；！、(\[{{|<#*_=%&‰°/\\+^×÷≥≤±→>~～–—-]",
        )
    )
    after = (
        rf"{_CLOSING}{_COUNTER}{of}{_CLOSING}{_COUNTER}{of}{_CLOSING}(?={ends}{because}"
        rf")"
    )
    if not closed:
        after = rf"(?:[{_CLOSERS}\s]|\\\)|</\w+>)*{_COUNTER}{of}{_COUNTER}[.\s]*\\?\]"
    return re.compile(rf"{_OPENING}(?P<label>{label}){after}", re.IGNORECASE)


@cache
def _positions(choices: tuple[str, ...]) -> dict[Decimal | str, int]:
    return {_name(choice): position for position, choice in enumerate(choices, 1)}


def _name(label: str) -> Decimal | str:
    """What a label is compared by: a number's value (4, 4.0, 4,5) or its letters."""
    number = label
    if re.fullmatch(r"[-+]?\d{1,3}(?:,\d{3})+(?:\.\d+)?", label):
        number = label.replace(",", "")
    try:
        value = Decimal(number.replace(",", "."))
    except InvalidOperation:
        return label.casefold()
    return value if value.is_finite() else label.casefold()


@cache
def _marks(slot: str) -> tuple[re.Pattern[str], re.Pattern[str]]:
    """The mark before a label: ``[RESULT]``, ``[RESULT: …]`` or ``RESULT:``."""
    name = re.escape(slot.removeprefix("[").removesuffix("]"))
    anywhere = rf"|(?-i:(?<!/)\b{name})" if name.isupper() else ""
    return (
        re.compile(
            rf"\\?\[[*_`]*{name}[*_`]*(?:(?P<closed>\\?\])"
            rf"|(?={_BLANKS}[:=\s][^\[\]\n]{{1,24}}\]))",
            re.IGNORECASE,
        ),
        re.compile(
            rf"(?P<closed>)(?:^[ "
            rf"\t\u3000>#*_`(<-]*{name}{anywhere})[*_`]*{_BLANKS}[:=>]",
            re.IGNORECASE | re.MULTILINE,
        ),
    )


def _is_sure(labels: Sequence[Any], repeated: Sequence[bool]) -> bool:
    """Whether the last of several scores is the judge's own.

    One that is in the prompt as well may be a quotation: beside a different one, it is
    not read.
    """
    return not repeated[-1] or len(set(labels)) == 1


def _is_quotation(text: str, start: int, end: int) -> bool:
    """Whether a score stands in quotation marks or in a quoted line (``>``)."""
    begin = text.rfind("\n", 0, start) + 1
    line = text[begin:].partition("\n")[0]
    if re.match(r"[^\S\n]*>[^\S\n]", line):
        return True
    if not re.search(r"[^\W\d_]{2}", text[start:end]):
        return False  # a bare label: 4 in "4"
    bare = line.strip("*_ #-.")
    for begin, close in _quotations(text):
        if begin < start and end <= close:
            return bare not in (text[begin : close + 1], text[begin:close])
    return False


@lru_cache(maxsize=8)
def _quotations(text: str) -> tuple[tuple[int, int], ...]:
    """Where quotations begin and end, quotation marks included."""
    return tuple(
        (found.start(), found.end() - 1) for found in _QUOTATION.finditer(text)
    )


_QUOTATION = re.compile(
    r"(?<!\\)\"(?:[^\"\\\n]|\\.|\n(?!\s*\n))*\"|“[^“”]*”|„[^„“”]*[“”]|«[^«»]*»|「[^「」]*」"
    r"|『[^『』]*』"
    r"|‘[^‘’]*’(?!\w)|(?<!\w)'[^'\n]*'(?!\w)"
)


def _is_quoted(text: str, start: int, end: int, prompt: str, slot: str = "") -> bool:
    """Whether the judge quotes here: the format line, a text of the prompt, others.

    With a slot, what a quotation mark or a colon introduces is compared by itself too.
    """
    if _is_quotation(text, start, end) and not _is_object(text):
        return True
    before, score = text[max(0, start - _QUOTED_CHARS) : start], text[start:end]
    after = text[end : end + _QUOTED_CHARS]
    if not re.search(r"[^\W_]", before + after) or _is_object(text):
        return False  # nothing but a score or an object: an answer
    windows = [before + score + after[: _QUOTED_CHARS - len(before)]]
    line = after.partition("\n")[0]
    windows += [score + line] if re.search(r"[^\W_]", line) else []
    if slot:
        line = before.rpartition("\n")[2]
        introduced = re.split(r"[\"“”„‘«»「『`]|(?<!\w)'|:\s", line)
        windows += [introduced[-1] + score] if len(introduced) > 1 else []
    asked = _prompt_text(prompt, slot)
    return any(_collapsed(window) in asked for window in windows)


@lru_cache(maxsize=8)
def _is_object(text: str) -> bool:
    """Whether a text is one JSON object, fenced or not, and nothing else."""
    whole = text.strip().removeprefix("```json").strip("`\n ")
    if not (whole.startswith("{") and whole.endswith("}")):
        return False
    try:
        return _DECODER.raw_decode(whole)[1] == len(whole)
    except (ValueError, RecursionError):
        return False


@lru_cache(maxsize=8)
def _prompt_text(prompt: str, slot: str) -> str:
    """A prompt without what `rubricnb.core.prompts.inert` did, as judges quote it."""
    if slot:
        apart = re.escape(f"{slot[0]} {slot[1:]}")
        prompt = re.sub(
            apart, lambda m: m[0][0] + m[0][2:], prompt, flags=re.IGNORECASE
        )
    return _collapsed(prompt)


def _collapsed(text: str) -> str:
    return " ".join(_plain(text).split())


def _plain(text: str) -> str:
    """Write digits and signs of other scripts in ASCII, character by character."""
    return re.sub(r"[^\x00-\x7f]", lambda m: _ascii(m[0]), text)


@lru_cache(maxsize=4096)
def _ascii(character: str) -> str:
    if character.isdecimal():
        return str(unicodedata.decimal(character))
    if "\uff01" <= character <= "\uff5e":  # full width
        return chr(ord(character) - 0xFEE0)
    if unicodedata.category(character) == "Cf":
        return _INVISIBLE
    return _LOOKALIKES.get(character, character)


def _matches(pattern: re.Pattern[str], text: str, prompt: str) -> dict[str, str]:
    """The label of the last match for each criterion that is the judge's own."""
    found: dict[str, list[re.Match[str]]] = {}
    for match in pattern.finditer(text):
        if not _is_quoted(text, match.start(), match.end(), prompt):
            name = (match.groupdict().get("criterion") or "").casefold()
            found.setdefault(name, []).append(match)
    labels: dict[str, str] = {}
    asked = _prompt_text(prompt, "")
    for criterion, matches in found.items():
        written = [_whole(text, match) for match in matches]
        # A bare number is in every prompt.
        repeated = [
            bool(re.search(r"[^\W\d_]{2}", match[0])) and _collapsed(match[0]) in asked
            for match in matches
        ]
        if _is_sure([_name(label) for label in written], repeated):
            labels[criterion] = written[-1]
    return labels


def _whole(text: str, match: re.Match[str]) -> str:
    """The whole numbers and words of which the matched label may be a part."""
    named = match.groupdict().get("score") is not None
    start, end = match.span("score" if named else min(1, match.re.groups))
    for token in _TOKEN.finditer(text):
        if token.start() < end and start < token.end():
            start, end = min(start, token.start()), max(end, token.end())
    return text[start:end]


_NUMBER = r"(?:(?<![\w)])[-−])?\d+(?:[.,٫]\d+)*"
# a number with what belongs to it ("4-5", "4/10", "4 %", "4th"), or a word
_TOKEN = re.compile(
    rf"{_NUMBER}(?:{_BLANKS}(?:[-–—~…/]|\.{{2,}}|\b(?:to|or|and"
    rf"|(?:out\s+)?of)\b){_BLANKS}{_NUMBER})*"
    rf"(?:[½¼¾⅓⅔°²³]|[a-zA-Z]+[-+]?\d*|{_BLANKS}[%％‰])?|[a-zA-Z]+"
)

_DECODER = json.JSONDecoder(strict=False)  # models break lines within strings


def _own_objects(text: str, prompt: str, key: str) -> list[Json]:
    """The JSON objects of an answer that do not repeat one of the prompt."""
    places = list(_objects(text))
    objects = [
        one
        for start, end, one in places
        if not (
            _is_quoted(text, start, end, prompt) or _is_between_quotes(text, start, end)
        )
    ]
    if _is_object(text) or not prompt:
        return objects
    asked = _prompt_objects(prompt)
    with_words = [
        one
        for one in objects
        if len(one) < 2
        or not any(isinstance(value, str) for value in one.values())
        or _plainly(one) not in asked
    ]
    verdicts = [one for one in with_words if key in _folded(one)]
    repeated = [
        any(_plainly(one).items() <= p.items() for p in asked) for one in verdicts
    ]
    scores = [str(_folded(one)[key]) for one in verdicts]
    if verdicts and not _is_sure(scores, repeated):
        return [one for one in with_words if key not in _folded(one)]
    return with_words


def _is_between_quotes(text: str, start: int, end: int) -> bool:
    before, after = text[:start].rstrip()[-1:], text[end:].lstrip()[:1]
    if {before, after} <= _QUOTES:
        return True
    return bool(re.search(r"(?:^|\n)[^\S\n]*>[^\S\n][^\n]*\Z", text[:start]))


_QUOTES = frozenset("\"'“”„‘’«»「」『』")


def _plainly(one: Json) -> dict[str, str]:
    """An object's entries as text, whatever their spacing."""
    return {name: _collapsed(str(value)) for name, value in _folded(one).items()}


def _folded(one: Json) -> Json:
    return {name.casefold(): value for name, value in one.items()}


@lru_cache(maxsize=8)
def _prompt_objects(prompt: str) -> list[dict[str, str]]:
    return [_plainly(one) for _, _, one in _objects(prompt)]


def _objects(text: str) -> Iterator[tuple[int, int, Json]]:
    """Every JSON object in a text that does not lie in another one, with its place."""
    end = 0
    for brace in re.finditer(r"\{(?=\s*[\"}])", text):
        if brace.start() < end:
            continue
        try:
            found, end = _DECODER.raw_decode(text, brace.start())
        except ValueError:
            continue  # a brace of another kind
        except RecursionError:
            return
        yield brace.start(), end, found
