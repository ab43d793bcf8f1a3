"""Reading a reply: which option did the judge choose, if any?

Free text is read by one rule: the *last* ``[RESULT]`` counts, and only the label directly after it.
A digit in the reasoning, a score that the judge merely quotes from the prompt, and a number off the
scale are never taken for a score.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

from rubricnb.judging.contract import Reply, Request
from rubricnb.prompts.render import RESULT

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


def read(request: Request, reply: Reply) -> list[Reading]:
    """Read a reply, one reading per slot.

    Parameters
    ----------
    request
        What was asked; gives slots, choices and the prompt's text.
    reply
        What came back.

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
    found = [
        m for m in _after(slot).finditer(text) if not _quoted(text, m.start(), m.end(), prompt)
    ]
    if not found:
        return Reading("unparsed")
    answer = found[-1]["answer"]
    match = _label(choices).match(answer)
    if match:
        chosen = match["label"].casefold()
        return Reading("ok", [c.casefold() for c in choices].index(chosen) + 1)
    # A clean label of the same kind that is not offered, such as 7 on a 5-point scale.
    kind = r"-?\d+(?:\.\d+)?" if choices[0].isdigit() else r"[A-Z]|[ivx]+"
    off_scale = re.match(_opening + rf"(?:{kind})" + _closing, answer, re.IGNORECASE)
    return Reading("out_of_range" if off_scale else "unparsed")


# Models wrap a score: "[RESULT]: **4**", "[RESULT] (4)", "[RESULT] Score 4", "[RESULT] 4/5".
_opening = r"[\s:=*_`\"'(\[{<]*(?:score\b[\s:=*_]*)?"
_closing = (
    r"(?![\w%]|[.,]\d|\s*(?:-|–|—|to\b|or\b|and\b)\s*[\w(])"  # "4.5", "4-5" and "3 or 4" are none
)


@cache
def _after(slot: str) -> re.Pattern[str]:
    # The slot must not be described, as in "[RESULT] (an integer number between 1 and 5)".
    return re.compile(re.escape(slot) + r"(?P<answer>[^\n]*(?:\n[^\n\[]{0,20})?)", re.IGNORECASE)


@cache
def _label(choices: tuple[str, ...]) -> re.Pattern[str]:
    options = "|".join(sorted(map(re.escape, choices), key=len, reverse=True))
    # "A good answer" is not the grade A: a letter must not run on into a sentence.
    sentence = "" if choices[0].isdigit() else r"(?!\s+[a-z])"
    return re.compile(
        _opening + rf"(?P<label>{options})(?:\s*/\s*\d+(?!\d))?" + _closing + sentence,
        re.IGNORECASE,
    )


def _quoted(text: str, start: int, end: int, prompt: str) -> bool:
    """Whether the judge repeats the prompt here: echo of the format line, or of a text in it."""
    before = text[max(0, start - _ECHO_CONTEXT) : start]
    return len(before) == _ECHO_CONTEXT and before + text[start:end].split("\n")[0] in prompt


def answer_text(request: Request, positions: Sequence[int]) -> str:
    """Write out the slots with the labels at these positions: the text of a constrained answer.

    Examples
    --------
    >>> from rubricnb.judging.contract import Message
    >>> ask = Request(1, "", (Message("user", "…"),), (RESULT,), ("2", "1"), "score")
    >>> answer_text(ask, [2])
    '[RESULT] 1'
    """
    return "".join(
        f"{slot} {request.choices[p - 1]}" for slot, p in zip(request.slots, positions, strict=True)
    )
