"""The contract between the package and its engines: one request in, one reply out.

An engine turns requests into replies. It never parses a score and never touches the
store, so an engine is one class with one method, and old answers can be read again by a
better parser.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from rubricnb.core.support.shown import Told

Readout = Literal["feedback", "score", "logprobs", "json"]
PromptFormat = Literal["chat", "plain"]
Finish = Literal["stop", "length", "refusal", "error", "unknown"]


class JudgeError(Told, RuntimeError):
    """The judge cannot continue: wrong key, unknown model, no readout, no server."""


@dataclass(frozen=True, slots=True)
class Message:
    """One chat message. In the plain format its content is the whole prompt."""

    role: Literal["system", "user", "assistant"]
    content: str


@dataclass(frozen=True, slots=True)
class Request:
    """One question to a judge, rendered.

    Attributes
    ----------
    request_id, key
        The plan's 64-bit id, and the SHA-256 of everything that changes the answer.
    messages
        The prompt.
    slots
        The text that each answer follows: ``("[RESULT]",)`` in Setting 1, one
        ``"[Criterion]"`` a line in Setting 2. Readouts ``score`` and ``logprobs`` force
        it.
    choices
        The label of the option at position 1, 2, …; a slot is followed by a space and
        one of them.
    readout
        ``feedback``: free text. ``score``: every slot filled with one of the choices
        and nothing else. ``logprobs``: the probability of every choice at every slot.
        ``json``: a document that conforms to `schema`; it has no slots and no choices.
    schema
        JSON Schema of a ``json`` answer, as text; the order of its properties is the
        answer's.
    prompt_format, temperature, effort, thinking, seed, max_tokens
        As in the requests frame; ``max_tokens`` is resolved, ``seed`` differs by
        replicate.
    item_id, text_id, cluster_id, criterion, criteria, ordering, replicate
        What the request is about; in Setting 2 ``criteria`` has the criterion of each
        slot.
    qualities
        What people gave to the text, by criterion (None: nothing); for the simulated
        grader.
    plan, row, facts
        For a simulated judge, which looks there instead of at the prompt: part of the
        plan, the row of this request in it, and what else decides its answer, for the
        key.
    """

    request_id: int
    key: str
    messages: tuple[Message, ...]
    slots: tuple[str, ...]
    choices: tuple[str, ...]
    readout: Readout
    prompt_format: PromptFormat = "chat"
    temperature: float = 0.0
    effort: str = "default"
    thinking: str = "default"
    seed: int = 0
    max_tokens: int = 1024
    item_id: str = ""
    criterion: str = ""
    ordering: tuple[float, ...] = ()
    replicate: int = 1
    text_id: str = ""
    cluster_id: str = ""
    criteria: tuple[str, ...] = ()
    qualities: tuple[float | None, ...] = ()
    plan: Any = field(default=None, compare=False, repr=False)
    row: int = 0
    facts: tuple[Any, ...] = ()
    schema: str = ""

    @property
    def slot_criteria(self) -> tuple[str, ...]:
        """The criterion that each slot is about."""
        return self.criteria or (self.criterion,) * len(self.slots)


@dataclass(frozen=True, slots=True)
class Reply:
    """What a judge answered.

    Attributes
    ----------
    text
        The answer's text; for ``score`` and ``logprobs`` the slots with their (argmax)
        labels.
    finish
        ``stop``; ``length`` when the token limit cut it; ``refusal``; ``error``, with
        `error`; ``unknown``: the engine gave another reason, so the end may be missing.
    probabilities
        ``logprobs`` only: slot × position, the probability of each whole label directly
        after the slot, *not* renormalised (their sum is the label mass).
    prompt_tokens, cached_tokens, completion_tokens
        Tokens sent, of these served from the engine's prefix cache, and received.
    seconds
        From sending to the full answer.
    model
        The name under which an endpoint says that it answered; empty where it says
        none.
    notes
        Of each slot, what the judge's server says about its own answer; empty without.
    label_masses
        Of each slot, the label mass that a server with closed probabilities reports;
        None where it reports none.
    """

    request_id: int
    text: str
    finish: Finish = "stop"
    probabilities: tuple[tuple[float, ...], ...] | None = None
    prompt_tokens: int = 0
    cached_tokens: int = 0
    completion_tokens: int = 0
    seconds: float = 0.0
    error: str | None = None
    model: str = ""
    notes: tuple[str, ...] = ()
    label_masses: tuple[float | None, ...] = ()


class Engine(Protocol):
    """Answers requests; `rubricnb.core.judge.Judge` describes it before it starts.

    Attributes
    ----------
    slug
        Names the judge in frames and files.
    source
        What a page calls its numbers: ``live`` or ``simulated``.
    identity
        Everything about the judge that changes an answer, and nothing else: weights'
        hash with engine and version, or base URL and model. Never a port, a key or a
        machine.
    deterministic
        Whether greedy answers repeat, so that a repeated prompt is asked once.
    readouts
        What it can do; the first is what ``auto`` means.
    concurrency
        Requests in flight at once; after a kill at most as many are asked again.

    Notes
    -----
    A judge with a tokeniser at hand has ``tokens(request)`` too, the token ids of what
    it sends. ``control_tokens`` are those of its vocabulary that
    `rubricnb.core.prompts.inert` does not know: they are made inert too. One that stops
    a run when its first answer is a refusal has ``answered_before``: a run sets it
    where stored answers show that the judge works. One whose engine cannot hold the
    strings of a ``json`` answer to their `maxLength` has ``holds_lengths`` False, and
    the prompt states them. ``own_prompt`` is the user's own template, and ``parser``
    what reads its answers (`rubricnb.open_judge`). ``host`` and ``model`` say where
    texts are sent. ``spec`` is what its specs begin with, and ``is_free`` True says
    that its answers cost nothing: without it a limit in dollars needs a price.

    For an engine that is opened by its spec, `source`, `readouts`, `deterministic`,
    ``spec`` and ``is_free`` are read from the class, before anything is opened.
    """

    slug: str
    source: Literal["live", "simulated"]
    identity: str
    deterministic: bool
    readouts: tuple[Readout, ...]
    concurrency: int

    def answer(self, requests: Iterable[Request]) -> Iterator[Reply]:
        """Answer requests in any order, as answers arrive; take them as needed."""

    def close(self) -> None:
        """Release the engine's resources."""
