"""A judge's answer becomes a score: which option did it choose, if any?

`labels_in_text` finds a label in a text; `judgments.Rows` looks up the score that stood
at the position which is found here.

Free text is read by one rule: the *last* ``[RESULT]`` counts, and only the label
directly after it. A digit in the reasoning, a thought that has no end, a score that the
judge merely quotes from the prompt, and a number off the scale are never taken for a
score.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from rubricnb.core.contract import Reply, Request
from rubricnb.core.labels_in_text import (
    Label,
    Parser,
    is_cut,
    label_of,
    labels_found,
    last_label,
)
from rubricnb.core.support.hashing import hash64
from rubricnb.core.thoughts import without_thoughts


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
        Of the option at position 1, 2, …, renormalised over the labels; None without
        ``logprobs``.
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
        Instead of the rule above; `rubricnb.core.labels_in_text.parser_of` makes it
        from text.

    Returns
    -------
    list of Reading
        In the order of ``request.slots``.

    Examples
    --------
    >>> from rubricnb.core.contract import Message
    >>> message, choices = Message("user", "…"), ("2", "1", "3")
    >>> ask = Request(1, "", (message,), ("[RESULT]",), choices, "feedback")
    >>> read(ask, Reply(1, "Feedback: 2 of 3 facts are wrong. [RESULT] 1"))
    [Reading(status='ok', position=2, probabilities=None, label_mass=None)]
    >>> read(ask, Reply(1, "Feedback: excellent. [RESULT] 10"))[0].status
    'out_of_range'
    """
    if reply.finish == "error":
        return [Reading("error")] * len(request.slots)
    if reply.finish == "refusal":
        return [Reading("refused")] * len(request.slots)
    text = without_thoughts(reply.text)
    if request.thinking == "on" and reply.finish == "length" and text == reply.text:
        text = ""  # a thought that its prompt has begun bears no mark
    if reply.probabilities is not None and (text or not reply.text):
        return [
            _most_probable(request, *slot)
            for slot in zip(request.slot_criteria, reply.probabilities, strict=False)
        ]
    if parser is None:
        labels = written_labels(request, text)
    else:
        found = labels_found(parser, text.strip("\n"), _prompt(request)) if text else {}
        names = request.criteria or ("" if "" in found else request.criterion,)
        labels = [label_of(found.get(n.casefold()), request.choices) for n in names]
    return [_reading(label, text, reply.finish, request.choices) for label in labels]


def written_labels(request: Request, text: str) -> list[Label | None]:
    """Return the label that an answer, thoughts and all, has written for each slot."""
    text, prompt = without_thoughts(text), _prompt(request)
    return [last_label(text, slot, request.choices, prompt) for slot in request.slots]


def _reading(
    label: Label | None, text: str, finish: str, choices: tuple[str, ...]
) -> Reading:
    if label is None:
        return Reading("truncated" if finish == "length" else "unparsed")
    if label.position is None:
        return Reading("out_of_range")
    may_be_cut = finish in ("length", "unknown")
    if may_be_cut and is_cut(text, choices[label.position - 1], choices):
        return Reading("truncated")
    return Reading("ok", label.position)


def _prompt(request: Request) -> str:
    return "\n".join(message.content for message in request.messages)


def _most_probable(
    request: Request, criterion: str, probabilities: Sequence[float]
) -> Reading:
    """Read the probabilities of one slot; none at all: the judge has refused it."""
    if not probabilities:
        return Reading("refused")
    mass = float(sum(probabilities))
    if not mass > 0:
        return Reading("unparsed", label_mass=0.0)
    shares = tuple(p / mass for p in probabilities)
    best = most_probable(request, criterion, probabilities)
    return Reading("ok", best + 1, shares, mass)


def most_probable(
    request: Request, criterion: str, probabilities: Sequence[float]
) -> int:
    """Return the place, from 0, of the most probable label.

    The first of several would look like a preference for first positions, and a new
    draw for each request like a judge that changes its mind. So a text, a criterion and
    a set of tied levels have one draw, whatever their order and however often asked.
    """
    highest = max(probabilities)
    best = [place for place, p in enumerate(probabilities) if p == highest]
    if len(best) == 1:
        return best[0]
    text = request.text_id or request.item_id or request.key
    levels = request.ordering or request.choices
    return best[drawn_tie(text, criterion, [levels[place] for place in best])]


def drawn_tie(text: str, criterion: str, levels: Sequence[float | str]) -> int:
    """Return which of the tied levels counts, from 0, in the order given.

    Examples
    --------
    >>> drawn_tie("text 1", "help", [2, 5]), drawn_tie("text 1", "help", [5, 2])
    (0, 1)
    """
    names = [str(level) if isinstance(level, str) else f"{level:g}" for level in levels]
    (drawn,) = hash64([json.dumps([text, criterion, *sorted(names)])])
    return names.index(sorted(names)[int(drawn) % len(names)])


def answer_text(request: Request, positions: Sequence[int]) -> str:
    """Write the slots with the labels at these positions, as a constrained answer."""
    return "".join(
        f"{slot} {request.choices[p - 1]}"
        for slot, p in zip(request.slots, positions, strict=True)
    )


def plain_prompt(request: Request, beginning: str = "") -> str:
    """Return a prompt without chat format, followed by the beginning of its answer."""
    prompt = "\n\n".join(message.content for message in request.messages)
    return f"{prompt}\n{beginning.removeprefix(chr(10))}" if beginning else prompt
