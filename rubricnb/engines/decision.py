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
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, ClassVar, NamedTuple

import pandas as pd

from rubricnb.core.address import KEYS, OPENAI, TYPESAFE
from rubricnb.core.contract import JudgeError, Readout, Request
from rubricnb.core.frames import Items
from rubricnb.core.support.shown import one_line
from rubricnb.core.support.spelling import one_of
from rubricnb.core.support.types import Json
from rubricnb.engines.connection import Refused, part
from rubricnb.engines.doubts import MOST_SPREAD, server_doubts
from rubricnb.engines.endpoint import (
    MAX_SHOWN_CHARS,
    Call,
    Calls,
    Endpoint,
    shown_part,
)
from rubricnb.engines.label_probabilities import Chances, Probabilities
from rubricnb.engines.question import (
    KINDS,
    SHAPES,
    Kind,
    Shape,
    level_name,
    typed_question,
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


@dataclass(eq=False, repr=False)
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
    >>> judge.slug, judge.shape
    ('jev-1.13.0-choice', 'systemone')
    >>> judge.identity
    'https://api.typesafe.ai/v1 jev-1.13.0 systemone choice'
    """

    _: KW_ONLY
    kind: Kind = "score"
    shape: Shape = ""  # type: ignore[assignment]  # of its host

    spec = "decision"
    readouts: ClassVar[tuple[Readout, ...]] = ("logprobs",)
    # the same request can be answered differently, even by your own server
    deterministic = False
    closed = True
    how_to_start = "'sparrow-decider serve' or 'callo serve --model WEIGHTS.gguf'"
    other_model = (
        "name that one, since a name that moves may be another model tomorrow (or pass "
        "check_model=False if it is the same)"
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        self.shape = self.shape or _SHAPES.get(self.host, "systemone")
        one_of("kind", self.kind, KINDS)
        one_of("shape", self.shape, SHAPES)
        if self.check_model and _MOVES.fullmatch(self.model.lower()):
            raise ValueError(
                f"model = {self.model!r} may be another model tomorrow: give the name "
                "of a version, such as jev-1.13.0, or pass check_model=False"
            )
        self.through_openai = self.shape != "systemone"
        self.own_prompt = typed_question(self.kind, self.shape)
        self.slug = f"{self.slug}-{self.kind}"
        self.identity = f"{self.base_url} {self.model} {self.shape} {self.kind}"
        # whether a server of your own is still to be asked for a false name
        self.name_is_untried = self.check_model and self.host not in {*KEYS, *_SHAPES}
        self.answers_any_name = False

    def prepare(self) -> None:
        """Ask a server of your own once for a model that does not exist."""
        if not self.name_is_untried:
            return
        self.name_is_untried = False
        question = self.own_prompt.fill(_NO_QUESTION, frozenset())[1]
        body = {"model": _NO_MODEL} | json.loads(question)
        loop = self._start()
        asking = asyncio.run_coroutine_threadsafe(
            self._connection.ask(f"/{self.shape}", body), loop
        )
        with suppress(Exception):  # an error is what such a name should get
            names = _model_names(asking.result(self.patience).content)
            self.answers_any_name = {*names} == {_NO_MODEL}

    @property
    def input_price(self) -> float | None:
        """US dollars per million input tokens; None if unknown. Output is free."""
        known = (
            dollars
            for (host, name), dollars in _PRICES.items()
            if host == self.host and self.model.startswith(name)
        )
        return next(known, None)

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
        self._count_tokens(self.last, "input_tokens", "output_tokens")
        for name in _model_names(self.last):
            self._check_model({"model": name})
        asked = body["questions"]
        if isinstance(asked, list):
            asked = {question["name"]: question for question in asked}
        given = self.last.get("answers")
        found = [*map(given.get, asked)] if isinstance(given, dict) else given
        if (
            not isinstance(found, list)
            or len(found) != len(asked)
            or not all(isinstance(one, dict) for one in found)
        ):
            raise ValueError(
                f"the endpoint did not answer each question: {shown_part(found)}"
            )
        answers: dict[str, Json] = dict(zip(asked, found, strict=True))
        if all(one.get("type") == "refusal" for one in answers.values()):
            return self._reply("the model declined to answer", "refusal")
        remarks = [self._remark(name, asked) for name in asked]
        slots = map(self._slot, answers.values(), asked.values(), remarks)
        # the probabilities are all that is read
        return replace(
            self._reply("", "stop", tuple(slots)),
            notes=tuple(_counted(self.judge.redact, one.notes) for one in remarks),
            label_masses=tuple(one.label_mass for one in remarks),
        )

    def _remark(self, name: str, asked: Mapping[str, Any]) -> _Remark:
        """Read what the server says about its answer to one question."""
        about = part(part(part(self.last, "diagnostics"), "questions"), name)
        warnings = _several(part(self.last, "meta").get("warnings"))
        own = [text for text in warnings if str(text).startswith(f"{name}:")]
        own += _several(about.get("note")) + _several(about.get("invalid_notes"))
        # what concerns every question
        others = tuple(f"{other}:" for other in asked)
        notes = [text for text in warnings if not str(text).startswith(others)]
        notes += [f"fallback: {way}" for way in _several(about.get("fallback"))]
        if self.judge.answers_any_name:
            notes.append("the server answers to any model name: this name is unchecked")
        reported = _several(about.get("label_mass"))
        masses = [
            mass
            for mass in reported
            if isinstance(mass, int | float) and 0 <= mass <= 1.001
        ]
        return _Remark(
            own + notes,
            bool(own),
            about.get("reads") == 0,
            math.fsum(masses) / len(masses) if masses else None,
        )

    def _slot(self, answer: Json, asked: Mapping[str, Any], remark: _Remark) -> Chances:
        """Return each level's probability: none if refused, zeros if nothing was read.

        Servers say so in their own words, so an answer is not read either where a
        note about it accompanies probabilities that are all equal.
        """
        if answer.get("type") == "refusal":
            return ()
        sent = names = [level_name(label) for label in self.request.choices]
        came: list[str] = []
        given: Any = answer.get("probabilities")
        if self.judge.kind == "choice":
            probabilities = _by_name(given, names, "value")
            falling = sorted(probabilities.values(), reverse=True)
            if [*probabilities] == names or [*probabilities.values()] != falling:
                came = [*probabilities]
        elif self.judge.shape == "decisions":
            probabilities = _by_name(given, names, "label")
            with suppress(TypeError, ValueError, KeyError):
                numbers = {str(one["label"]): float(one["value"]) for one in given}
                came = sorted(names, key=lambda name: numbers[name])
        else:
            by_number = _by_name(given, [str(n) for n in range(len(names))], "")
            probabilities = {name: by_number[str(n)] for n, name in enumerate(names)}
            came, sent = _legend(answer.get("legend")), _legend(asked["criteria"])
        if came != sent:
            if sorted(came) == sorted(sent):
                raise JudgeError(
                    f"the levels were sent as {shown_part(sent)} and came back as "
                    f"{shown_part(came)}: this server sorts them, so another order "
                    "never reaches the model, and the judge would look as if order "
                    "did not matter"
                )
            remark.notes.append(
                "the answer does not show the order of the levels: sorted levels are "
                "not seen"
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

    notes: list[str]
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


def _several(given: Any) -> list[Any]:
    """Return what a server gives once or in a list as a list."""
    found = given if isinstance(given, list) else [given]
    return [one for one in found if one not in (None, "")]


def _counted(redact: Callable[[str], str], notes: Sequence[Any]) -> str:
    """Return notes without their numbers and quotations, so that they can be counted.

    Examples
    --------
    >>> _counted(str, ["Only 32% of the answer 'It is fine' is a label"])
    'Only …% of the answer … is a label'
    """
    plain = (_VARIES.sub("…", redact(str(note))) for note in notes)
    return one_line("; ".join(dict.fromkeys(plain)))[:MAX_SHOWN_CHARS]


def _by_name(given: Any, names: Sequence[str], key: str) -> Probabilities:
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
        raise ValueError(
            f"the answer has no probabilities: {shown_part(given)}"
        ) from None
    if sorted(name for name, _ in pairs) != sorted(names):
        raise ValueError(
            f"asked about {', '.join(names)}, but the answer has {shown_part(given)}"
        )
    for name, value in pairs:
        if type(value) not in (int, float) or not 0 <= value <= 1:
            raise ValueError(f"{value!r} is not a probability of {name!r}")
    return {name: float(value) for name, value in pairs}


def _legend(levels: Any) -> list[str]:
    """Return the texts of levels as they are compared: by number, in one spelling.

    What is neither an object nor a list has none.
    """
    if isinstance(levels, dict):
        levels = [levels[key] for key in sorted(levels, key=lambda k: str(k).zfill(3))]
    texts = levels if isinstance(levels, list) else []
    return [" ".join(str(text).split()).rstrip(".").casefold() for text in texts]
