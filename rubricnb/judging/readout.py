"""Reading a reply: which option did the judge choose, if any?

Free text is read by one rule: the *last* ``[RESULT]`` counts, and only the label directly after it.
A digit in the reasoning, a score that the judge merely quotes from the prompt, and a number off the
scale are never taken for a score.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any, TypeAlias

from rubricnb.judging.contract import Reply, Request
from rubricnb.prompts.render import RESULT

Parser: TypeAlias = str | re.Pattern[str] | Callable[[str], Any]

_ECHO_CONTEXT = 24
"""A score is a quotation if these many characters before it stand in the prompt as well."""


@dataclass(frozen=True, slots=True)
class Reading:
    """What one slot of a reply says.

    Attributes
    ----------
    status
        ``ok``, ``unparsed``, ``out_of_range``, ``truncated``, ``refused`` or ``error``.
    position
        Position of the chosen option, from 1; None unless the status is ok.
    probabilities
        Of the option at position 1, 2, …, renormalised over the labels; None without ``logprobs``.
    label_mass
        Their sum before that.
    """

    status: str
    position: int | None = None
    probabilities: tuple[float, ...] | None = None
    label_mass: float | None = None


def read(request: Request, reply: Reply, parser: Parser | None = None) -> list[Reading]:
    """Read a reply, one reading per slot.

    Parameters
    ----------
    request
        What was asked; gives slots, choices and the prompt's text.
    reply
        What came back.
    parser
        Instead of the rule above: a regular expression or a function (`rubricnb.open_judge`).

    Returns
    -------
    list of Reading
        In the order of ``request.slots``.

    Examples
    --------
    >>> from rubricnb.judging.contract import Message
    >>> ask = Request(1, "", (Message("user", "…"),), ("[RESULT]",), ("2", "1", "3"), "feedback")
    >>> read(ask, Reply(1, "Feedback: 2 of 3 facts are wrong. [RESULT] 1"))
    [Reading(status='ok', position=2, probabilities=None, label_mass=None)]
    >>> read(ask, Reply(1, "Feedback: excellent. [RESULT] 10"))[0].status
    'out_of_range'
    """
    if reply.finish == "error":
        return [Reading("error")] * len(request.slots)
    if reply.finish == "refusal":
        return [Reading("refused")] * len(request.slots)
    if reply.probabilities is not None:
        return [_most_probable(slot) for slot in reply.probabilities]
    prompt = "\n".join(m.content for m in request.messages)
    if parser is not None:
        found = _found(parser, reply.text, prompt)
        own = request.criterion.casefold()
        names = request.criteria or (own if own in found else "",)
        readings = [_named(found.get(name.casefold()), request.choices) for name in names]
    else:
        readings = [
            _last_label(reply.text, slot.strip(), request.choices, prompt) for slot in request.slots
        ]
    if reply.finish == "length":
        return [Reading("truncated") if r.status == "unparsed" else r for r in readings]
    return readings


def _most_probable(probabilities: Sequence[float]) -> Reading:
    mass = float(sum(probabilities))
    if not mass > 0:
        return Reading("unparsed", label_mass=0.0)
    shares = tuple(p / mass for p in probabilities)
    return Reading("ok", max(range(len(shares)), key=shares.__getitem__) + 1, shares, mass)


def _last_label(text: str, slot: str, choices: tuple[str, ...], prompt: str) -> Reading:
    on_scale, off_scale = _labels(choices)
    for found in reversed(list(re.finditer(re.escape(slot), text, re.IGNORECASE))):
        label = on_scale.match(text, found.end()) or off_scale.match(text, found.end())
        end = label.end() if label else found.end() + 2
        if _quoted(text, found.start(), end, prompt, slot):
            continue
        if label is None:
            return Reading("unparsed")
        if label.re is off_scale:
            return Reading("out_of_range")
        return Reading("ok", [c.casefold() for c in choices].index(label["label"].casefold()) + 1)
    return Reading("unparsed")


def _found(parser: Parser, text: str, prompt: str) -> dict[str, Any]:
    """Criterion (empty where none is named) → what the parser takes for its label."""
    if not callable(parser):
        found = {}
        for match in re.finditer(parser, text):
            if not _quoted(text, match.start(), match.end(), prompt, RESULT):
                named = match.groupdict()
                label = named.get("score") or match[1 if match.re.groups else 0]
                found[(named.get("criterion") or "").casefold()] = label
        return found
    try:
        value = parser(text)
    except (ValueError, LookupError, TypeError, AttributeError):  # as of a text that is no JSON
        return {}
    if isinstance(value, Mapping):
        return {str(name).casefold(): label for name, label in value.items()}
    return {"": value}


def _named(value: Any, choices: tuple[str, ...]) -> Reading:
    """The option of this label."""
    if value is None:
        return Reading("unparsed")
    label = re.sub(r"(?<=\d)[.,]0+$", "", str(value).strip())
    folded = [choice.casefold() for choice in choices]
    if label.casefold() in folded:
        return Reading("ok", folded.index(label.casefold()) + 1)
    return Reading("out_of_range" if _labels(choices)[1].fullmatch(label) else "unparsed")


@cache
def _labels(choices: tuple[str, ...]) -> tuple[re.Pattern[str], re.Pattern[str]]:
    """Patterns of a label that is offered, and of one of its kind that is not."""
    numeric = choices[0].isdigit()
    options = "|".join(sorted(map(re.escape, choices), key=len, reverse=True))
    kind = r"-?\d+(?:[.,]\d+)?" if numeric else r"[A-Z]|[ivx]+"
    # Models wrap a score: "[RESULT]: **4**", "[RESULT] (4)", "[RESULT] Score 4", "[RESULT] 4/5".
    opening = r"[\s:=*_`\"'(\[{<]*(?:(?i:score)\b[\s:=*_]*)?"
    # "4.5", "4-5" and "3 or 4" name no single score; "A good answer" is not the grade A.
    closing = r"(?:\s*/\s*\d+)?(?![\w%]|[.,]\d|\s*(?:-|–|—|to\b|or\b|and\b)\s*[\w(])"
    sentence = "" if numeric else r"(?!\s+[a-z])"

    def pattern(label: str) -> re.Pattern[str]:
        return re.compile(rf"{opening}(?P<label>(?i:{label})){closing}{sentence}")

    return pattern(options), pattern(kind)


def _quoted(text: str, start: int, end: int, prompt: str, slot: str) -> bool:
    """Whether the judge repeats the prompt here: its format line, or a text that stands in it."""
    if start < _ECHO_CONTEXT:
        return False
    context = text[start - _ECHO_CONTEXT : end]
    return context in prompt or context in _put_together(prompt, slot)


@lru_cache(maxsize=8)
def _put_together(prompt: str, slot: str) -> str:
    """Undo what `rubricnb.prompts.inert` did to slots in a text: a judge may quote them whole."""
    apart = re.escape(f"{slot[0]} {slot[1:]}")
    return re.sub(apart, lambda m: m[0][0] + m[0][2:], prompt, flags=re.IGNORECASE)


def answer_text(request: Request, positions: Sequence[int]) -> str:
    """Write out the slots with the labels at these positions: the text of a constrained answer."""
    return "".join(
        f"{slot} {request.choices[p - 1]}" for slot, p in zip(request.slots, positions, strict=True)
    )


def plain_prompt(request: Request, beginning: str = "") -> str:
    """Return a prompt without chat format, followed by the beginning of its answer."""
    prompt = "\n\n".join(message.content for message in request.messages)
    return f"{prompt}\n{beginning.removeprefix(chr(10))}" if beginning else prompt
