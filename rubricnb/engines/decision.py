"""Judges that answer typed questions with probabilities: decision models.

Two wire shapes are in use. TypeSafe's System One (``POST /v1/systemone``) is served by
Jev, llama.cpp, LiteLLM, callo, Sparrow and many others; OpenAI's Decisions (``POST
/v1/decisions``) by OpenAI and Fireworks. Neither has a temperature, a seed or a limit
of tokens.
"""

from __future__ import annotations

import asyncio
import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import pandas as pd

from rubricnb.core.address import KEYS, OPENAI, TYPESAFE
from rubricnb.core.contract import JudgeError, Readout, Request
from rubricnb.core.frames import Items
from rubricnb.core.readout import answer_text, most_probable
from rubricnb.core.support.shown import one_line
from rubricnb.core.support.types import Json
from rubricnb.engines.connection import Refused
from rubricnb.engines.doubts import MOST_SPREAD, server_doubts
from rubricnb.engines.endpoint import (
    MAX_SHOWN_CHARS,
    Call,
    Calls,
    Endpoint,
    count_of,
    part,
)
from rubricnb.engines.question import (
    KINDS,
    SHAPES,
    Kind,
    Shape,
    TypedQuestion,
    level_name,
)

_SHAPES: dict[str, Shape] = {OPENAI: "decisions", "api.fireworks.ai": "decisions"}
# US dollars per million input tokens, by host and the beginning of the model's name.
# Output is free. The price of cached input is not published, so none is assumed to be
# cheaper.
_PRICES = {(OPENAI, "gpt-6-luna"): 0.10, (TYPESAFE, "jev-"): 0.042}
# of a question's probabilities: some servers round them to two places
_SUM = (0.9, 1.1)
_MOVES = re.compile(r"(?:.*[-:@/.])?latest")  # jev-latest
_NO_MODEL = "no-such-model"  # a name that no server should answer to
# What differs between two notes about the same thing, and the text that they quote.
_VARIES = re.compile(
    r"""(?<!\w)(["'])(?:(?!\1)[^\\]|\\.)*\1|“[^”]*”|«[^»]*»|\d[\d.,]*"""
)


class DecisionJudge(Endpoint):
    """A decision model: each prompt becomes one question with the rubric's levels.

    Its probabilities are *closed*: they are about the levels alone and sum to 1, so
    they cannot show that the model would rather have said something else. `label_mass`
    is missing unless the server reports it. A server's notes about its answer are kept;
    an answer that it says it could not read has no score.

    Parameters
    ----------
    model
        The model's name at the endpoint. A name that moves, such as ``jev-latest``, is
        refused. A server of your own is asked once for a name that does not exist; if
        it answers, a note says that it does not check names.
    base_url
        The endpoint, ``https://HOST/v1``; default: OpenAI's.
    kind
        ``score``: an ordered list of levels; the model numbers them by position.
        ``choice``: named levels; the name travels with the level.
    shape
        ``systemone`` or ``decisions``. Default: ``decisions`` at OpenAI and Fireworks,
        else ``systemone``.
    concurrency, requests_per_minute, timeout, retries, patience, key_variable,
    check_model
        As for `rubricnb.engines.openai.OpenAIJudge`. ``TYPESAFE_API_KEY`` goes to
        TypeSafe.

    Raises
    ------
    ValueError
        As there; an unknown kind or shape; or a name that moves.

    Examples
    --------
    >>> judge = DecisionJudge("jev-1.13.0", "https://api.typesafe.ai/v1", kind="choice")
    >>> judge.slug, judge.shape, judge.identity
    ('jev-1.13.0-choice', 'systemone', 'https://api.typesafe.ai/v1 jev-1.13.0 systemone choice')
    """

    spec = "decision"
    readouts: tuple[Readout, ...] = ("logprobs",)
    # the same request can be answered differently, even by your own server
    deterministic = False
    closed = True
    other_model = (
        "name that one, since a name that moves may be another model tomorrow (or pass "
        "check_model=False if it is the same)"
    )

    def __init__(
        self,
        model: str,
        base_url: str | None = None,
        *,
        kind: Kind = "score",
        shape: Shape | None = None,
        concurrency: int = 16,
        requests_per_minute: float | None = None,
        timeout: float = 600,
        retries: int = 6,
        patience: float = 1800,
        key_variable: str | None = None,
        check_model: bool = True,
    ) -> None:
        super().__init__(
            model,
            base_url,
            concurrency=concurrency,
            requests_per_minute=requests_per_minute,
            timeout=timeout,
            retries=retries,
            patience=patience,
            key_variable=key_variable,
            check_model=check_model,
        )
        self.shape = shape or _SHAPES.get(self.host, "systemone")
        self.kind = kind
        for option, value, allowed in (
            ("kind", kind, KINDS),
            ("shape", self.shape, SHAPES),
        ):
            if value not in allowed:
                raise ValueError(
                    f"{option} = {value!r}: choose from {', '.join(allowed)}"
                )
        if check_model and _MOVES.fullmatch(model.lower()):
            raise ValueError(
                f"model = {model!r} may be another model tomorrow: give the name of a "
                "version, such as jev-1.13.0, or pass check_model=False"
            )
        self.through_openai = self.shape != "systemone"
        self.own_prompt = TypedQuestion(self.kind, self.shape)
        self.slug = f"{self.slug}-{kind}"
        self.identity = f"{self.base_url} {model} {self.shape} {kind}"

        # None: not yet known
        self.answers_any_name: bool | None = None if self._can_try_names else False

    @property
    def _can_try_names(self) -> bool:
        """Whether it is a server of one's own, whose model's name is to be checked."""
        return self.check_model and self.host not in {*KEYS, *_SHAPES}

    def prepare(self) -> None:
        """Ask a server of your own once for a model that does not exist."""
        if self.answers_any_name is not None:
            return
        question = self.own_prompt.fill(_NO_QUESTION, frozenset())[1]
        body = {"model": _NO_MODEL} | json.loads(question)
        loop = self._start()
        asking = asyncio.run_coroutine_threadsafe(
            self._connection.ask(f"/{self.shape}", body), loop
        )
        try:
            names = {*_model_names(asking.result(self.patience).content)}
        except Exception:  # an error is what such a name should get
            names = set()
        self.answers_any_name = names == {_NO_MODEL}

    @property
    def input_price(self) -> float | None:
        """US dollars per million input tokens; None if unknown. Output is free."""
        known = (
            dollars
            for (host, name), dollars in _PRICES.items()
            if host == self.host and self.model.startswith(name)
        )
        return next(known, None)

    @property
    def how_to_start(self) -> str:
        """A server of your own, for a message."""
        return "'sparrow-decider serve' or 'callo serve --model WEIGHTS.gguf'"

    def call(self, request: Request) -> Call:
        """Return the one call of a request."""
        return _Call(self, request)

    def doubts(self, live: pd.DataFrame, items: Items) -> Iterator[str]:
        """Yield what is wrong with the answers as a whole: texts that it has cut."""
        yield from (why.sentence for why in server_doubts(live, items))

    def way_out_of(self, problem: Refused) -> str:
        """Return what to do about a server without decision models."""
        if problem.status not in (404, 405, 501):
            return ""
        other = "decisions" if self.shape == "systemone" else "systemone"
        return (
            f"; it has no decision model at /{self.shape}: choose a model that answers "
            f"typed questions, or shape={other!r} if it has those"
        )


class _Call(Call):
    """One request under way: one call, and one answer for each slot."""

    judge: DecisionJudge

    def answer(self) -> Calls:
        """Yield the call; return the reply with each slot's probabilities."""
        (message,) = self.request.messages
        body = {"model": self.judge.model} | json.loads(message.content)
        self.last = yield f"/{self.judge.shape}", body
        self._count(part(self.last, "usage"))
        for name in _model_names(self.last):
            self._check_model({"model": name})
        asked = body["questions"]
        if isinstance(asked, dict):
            names = list(asked)
            answers = _in_order(self.last.get("answers"), names, len(asked))
        else:
            names = [question["name"] for question in asked]
            answers = _in_order(self.last.get("answers"), None, len(asked))
        if all(one.get("type") == "refusal" for one in answers):
            return self._reply("the model declined to answer", "refusal")
        remarks = [self._remark(name, names) for name in names]
        slots = tuple(map(self._slot, answers, remarks))
        text = ""
        if all(map(any, slots)):
            criteria = self.request.slot_criteria
            best = [
                most_probable(self.request, *slot) + 1
                for slot in zip(criteria, slots, strict=True)
            ]
            text = answer_text(self.request, best)
        told: dict[str, Any] = {"notes": tuple(one.text for one in remarks)}
        masses = tuple(one.label_mass for one in remarks)
        told |= {"label_masses": masses} if any(m is not None for m in masses) else {}
        return replace(self._reply(text, "stop", slots), **told)

    def _remark(self, name: str, names: Sequence[str]) -> _Remark:
        """Read what the server says about its answer to one question."""
        about = part(part(part(self.last, "diagnostics"), "questions"), name)
        warnings = _texts(part(self.last, "meta").get("warnings"))
        own = [text for text in warnings if text.startswith(f"{name}:")]
        own += _texts(about.get("note")) + _texts(about.get("invalid_notes"))
        notes = [text.removeprefix(f"{name}:") for text in own]
        # what concerns every question
        others = tuple(f"{other}:" for other in names)
        notes += [text for text in warnings if not text.startswith(others)]
        notes += [f"fallback: {text}" for text in _texts(about.get("fallback"))]
        if self.judge.answers_any_name:
            notes.append("the server answers to any model name: this name is unchecked")
        shown = dict.fromkeys(_plain(self.judge.redact(text)) for text in notes)
        return _Remark(
            "; ".join(shown)[:MAX_SHOWN_CHARS],
            bool(own),
            about.get("reads") == 0,
            _mean_mass(about.get("label_mass")),
        )

    def _count(self, usage: Json) -> None:
        self.tokens.update(
            prompt_tokens=count_of(usage, "input_tokens"),
            cached_tokens=count_of(
                part(usage, "input_tokens_details"), "cached_tokens"
            ),
            completion_tokens=count_of(usage, "output_tokens"),
        )

    def _slot(self, answer: Json, remark: _Remark) -> tuple[float, ...]:
        """Return each level's probability: none if refused, zeros if nothing was read.

        Return the probability of each level, by position; nothing if the question is
        refused, and zeros if the server read no answer.

        Servers say so in their own words, so an answer is not read either where a
        note about it accompanies probabilities that are all equal.
        """
        if answer.get("type") == "refusal":
            return ()
        names = [level_name(label) for label in self.request.choices]
        given = answer.get("probabilities")
        if self.judge.kind == "choice":
            probabilities = _by_name(given, names, "value")
            _check_order(list(probabilities), probabilities, names)
        elif self.judge.shape == "decisions":
            probabilities = _by_name(given, names, "label")
            _check_numbers(given, names)
        else:
            _check_legend(answer.get("legend"), self.request)
            numbers = [str(number) for number in range(len(names))]
            by_number = _by_name(given, numbers, "")
            probabilities = dict(
                zip(names, (by_number[n] for n in numbers), strict=True)
            )
        total = math.fsum(probabilities.values())
        if total and not _SUM[0] <= total <= _SUM[1]:
            raise ValueError(
                f"the probabilities of one question sum to {total:g} instead of 1"
            )
        found = tuple(probabilities[name] for name in names)
        is_flat = max(found) - min(found) <= MOST_SPREAD
        is_unread = remark.is_unread or (remark.is_own and is_flat)
        return (0.0,) * len(found) if is_unread else found


class _Remark(NamedTuple):
    """What a server says about its answer to one question."""

    text: str
    is_own: bool  # whether it is about this question, not about the server
    is_unread: bool
    label_mass: float | None


# No text of the user's goes out with a name that does not exist.
_NO_QUESTION: Json = {
    "instruction": "Add 2 and 2.",
    "response": "4",
    "definition": "Is it right?",
    "options": [("1", "Wrong."), ("2", "Right.")],
    "criteria": [],
}


def _model_names(response: Json) -> list[str]:
    """Return every name of the model that answered; the first may be an echo."""
    names = (
        response.get("model"),
        part(response, "meta").get("model"),
        part(response, "diagnostics").get("backend_model"),
    )
    return [str(name) for name in names if name]


def _texts(given: Any) -> list[str]:
    """Return a note, or several, as a list; anything else is none."""
    found = given if isinstance(given, list) else [given]
    return [text for text in found if isinstance(text, str) and text.strip()]


def _plain(note: str) -> str:
    """Return a note without its numbers and quotations, so that notes can be counted.

    Examples
    --------
    >>> _plain("Only 32% of the answer 'It is fine' is a label")
    'Only …% of the answer … is a label'
    """
    return one_line(_VARIES.sub("…", note)).strip()


def _mean_mass(given: Any) -> float | None:
    """Return the label mass of one question, or the mean of its reads."""
    found = given if isinstance(given, list) else [given]
    masses = [m for m in found if isinstance(m, int | float) and 0 <= m <= 1.001]
    return math.fsum(masses) / len(masses) if masses else None


def _in_order(answers: Any, names: Sequence[str] | None, count: int) -> list[Json]:
    """Return one answer for each question, in their order; `names`: System One's."""
    if names is not None and isinstance(answers, dict):
        answers = [answers.get(name) for name in names]
    if not isinstance(answers, list) or len(answers) != count:
        raise ValueError(
            f"the endpoint did not answer each question: {_shown(answers)}"
        )
    if not all(isinstance(one, dict) for one in answers):
        raise ValueError(
            f"the endpoint did not answer each question: {_shown(answers)}"
        )
    return answers


def _by_name(given: Any, names: Sequence[str], key: str) -> dict[str, float]:
    """Return the probabilities of one answer by level, in the order in which they came.

    Raises
    ------
    ValueError
        They are not about exactly these levels, or one is not a probability.
    """
    try:
        pairs = (
            list(given.items())
            if isinstance(given, dict)
            else [(str(one[key]), one["probability"]) for one in given]
        )
    except (TypeError, KeyError):
        raise ValueError(f"the answer has no probabilities: {_shown(given)}") from None
    if sorted(name for name, _ in pairs) != sorted(names):
        raise ValueError(
            f"asked about {', '.join(names)}, but the answer has {_shown(given)}"
        )
    for name, value in pairs:
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        if not is_number or not 0 <= value <= 1:
            raise ValueError(f"{value!r} is not a probability of {name!r}")
    return {name: float(value) for name, value in pairs}


def _check_order(
    came: list[str], probabilities: Mapping[str, float], sent: list[str]
) -> None:
    """Stop if a server has sorted the levels: no reordering would reach the model.

    An answer may come as it was sent, or the most probable level first.
    """
    falling = sorted(probabilities.values(), reverse=True)
    if came != sent and list(probabilities.values()) != falling:
        raise JudgeError(_sorted_message(came, sent))


def _check_numbers(given: Any, sent: list[str]) -> None:
    """Stop if the levels' numbers are not the positions at which they were sent."""
    numbers = {str(one["label"]): one.get("value") for one in given}
    if any(numbers[name] not in (None, position) for position, name in enumerate(sent)):
        came = sorted(sent, key=lambda name: numbers[name])
        raise JudgeError(_sorted_message(came, sent))


def _check_legend(legend: Any, request: Request) -> None:
    """Stop if a server repeats the levels in another order than they were sent."""
    if not isinstance(legend, dict):
        return
    (message,) = request.messages
    for question in json.loads(message.content)["questions"].values():
        levels = [" ".join(text.split()) for text in question["criteria"]]
        came = [
            " ".join(str(legend.get(str(n), "")).split()) for n in range(len(levels))
        ]
        if came == levels:
            return
        if sorted(came) == sorted(levels):
            raise JudgeError(_sorted_message(came, levels))


def _sorted_message(came: Sequence[str], sent: Sequence[str]) -> str:
    return (
        f"the levels were sent as {_shown(list(sent))} and came back as "
        f"{_shown(list(came))}: this server sorts them, so another order never reaches "
        "the model, and the judge would look as if order did not matter"
    )


def _shown(value: Any) -> str:
    return str(value)[:MAX_SHOWN_CHARS]
