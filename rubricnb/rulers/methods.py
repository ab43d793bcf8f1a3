"""Phase II and the baselines: what each method asks, and how it reads answers."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from itertools import repeat
from typing import Any

from rubricnb.core.contract import Reply, Request
from rubricnb.core.support.types import Json, Records, Row
from rubricnb.rulers.bundle import (
    QUOTE_CHARACTERS,
    Bundle,
    answer_schema,
    answer_tokens,
    record,
)
from rubricnb.rulers.compile import (
    Compilation,
    Criteria,
    Unreadable,
    json_request,
    parse,
    rubric_text,
    scored,
)
from rubricnb.rulers.evidence import Quote, count_valid, cut, split_units, verify_quotes
from rubricnb.rulers.scoring import is_tie, score
from rubricnb.rulers.templates import as_json, fill

Ask = Callable[[Sequence[Request]], list[Reply]]
Steps = Generator[list[Request], list[Reply], "Outcome"]
"""What a method does with one text: it yields requests,
is sent their replies, and so on.
"""

_RATIONALE_CHARACTERS, _SEGMENT_CHARACTERS, _SEGMENTS = 600, 240, 5


@dataclass(frozen=True)
class Case:
    """One text, to be scored once by one method.

    Attributes
    ----------
    bundle
        The rubric as RULERS executes it; its order of levels and traits is everybody's.
    criteria
        The rubric in natural language: criterion → (definition, levels as shown).
    instruction, text
        What was asked for, and what is judged.
    facts
        More fields of the request: ids, replicate, temperature, …
    qualities
        Criterion → human rating on 0 to 1, for simulated judges only.
    condition, items
        What the rows of the result say: how the text is read, and its items.
    """

    bundle: Bundle
    criteria: Criteria
    instruction: str
    text: str
    facts: Row = field(default_factory=dict)
    qualities: dict[str, float] = field(default_factory=dict)
    condition: Row = field(default_factory=dict)
    items: Records = field(default_factory=list)

    @cached_property
    def units(self) -> tuple[str, ...]:
        """What can be cited."""
        return split_units(self.text, self.bundle.units)

    def request(
        self,
        template: str,
        schema: Json,
        max_tokens: int,
        about: Sequence[str],
        **values: Any,
    ) -> Request:
        """Return a request about these criteria or traits, in a template's words."""
        shown = {
            "input_type": self.bundle.input_type,
            "instruction": self.instruction,
            "text": self.text,
            "rubric": rubric_text(self.criteria),
            "criteria": list(self.criteria),
            "scale": self.bundle.scale,
        }
        qualities = self.qualities
        mean_quality = sum(qualities.values()) / len(qualities) if qualities else None
        return json_request(
            fill(template, **shown | values),
            schema,
            max_tokens,
            criteria=tuple(about),
            qualities=tuple(qualities.get(name, mean_quality) for name in about),
            ordering=self.bundle.order,
            **self.facts,
        )


@dataclass
class Outcome:
    """A method's result for a text; `problem` says why there is none.

    ``scores`` and ``ungated`` are by trait or criterion; ``invalid`` is the share of a
    trait's quotes that are not verified; ``decisions`` holds (trait, item, decision),
    ``quotes`` (trait, quote).
    """

    status: str = "ok"
    problem: str = ""
    scores: dict[str, int] = field(default_factory=dict)
    ungated: dict[str, int] = field(default_factory=dict)
    invalid: dict[str, float] = field(default_factory=dict)
    decisions: list[tuple[str, str, int]] = field(default_factory=list)
    quotes: list[tuple[str, Quote]] = field(default_factory=list)
    ties: int = 0
    unsupported: int = 0
    lock: str = ""
    replies: list[Reply] = field(default_factory=list)


def outcomes(method: str, cases: Sequence[Case], ask: Ask) -> list[Outcome]:
    """Apply a method to all texts; what they ask at the same step is asked together."""
    steps_of_case = [METHODS[method](case) for case in cases]
    pending = {index: next(steps) for index, steps in enumerate(steps_of_case)}
    replies: list[list[Reply]] = [[] for _ in cases]
    outcome_of_case: dict[int, Outcome] = {}
    while pending:
        answers = iter(
            ask([request for requests in pending.values() for request in requests])
        )
        for index in list(pending):
            replies_now = [next(answers) for _ in pending.pop(index)]
            replies[index] += replies_now
            try:
                pending[index] = steps_of_case[index].send(replies_now)
            except StopIteration as finished:
                outcome_of_case[index] = finished.value
            except Unreadable as problem:
                outcome_of_case[index] = Outcome(problem.status, str(problem))
    return [
        replace(outcome_of_case[index], replies=replies_of_case)
        for index, replies_of_case in enumerate(replies)
    ]


def rulers(case: Case) -> Steps:
    """Execute the locked bundle (arXiv RULERS, §3.2 and Figure 5)."""
    bundle, schema = case.bundle, answer_schema(case.bundle)
    request = case.request(
        "rulers_score",
        schema,
        answer_tokens(bundle),
        [t.name for t in bundle.traits],
        lock=bundle.lock,
        units=as_json({str(k): unit for k, unit in enumerate(case.units, start=1)}),
        traits=as_json(
            [
                asdict(t)
                | {"levels": [{"score": s, "description": d} for s, d in t.levels]}
                for t in bundle.traits
            ]
        ),
        checklist=as_json([asdict(item) for item in bundle.checklist]),
        anchors=scored(bundle.anchors),
        n_items=len(bundle.checklist),
        min_evidence=bundle.min_evidence,
    )
    (reply,) = yield [request]
    try:
        return _read_answer(case, parse(reply, schema))
    except Unreadable as problem:
        return Outcome(problem.status, str(problem), lock=bundle.lock)


def unlocked(case: Case) -> Steps:
    """Execute a bundle compiled anew for every text (§4.6: "runtime interpretation").

    The judge that compiles sees the text, as one does that reads rubric and text at
    once.
    """
    bundle = case.bundle
    copied = ("name", "dataset", "input_type", "min_evidence", "anchors")
    facts = {name: getattr(bundle, name) for name in copied} | {
        "variant": bundle.wording
    }
    trait_names = tuple(t.name for t in bundle.traits)
    task = Compilation(case.criteria, len(bundle.checklist), facts, trait_names)
    (reply,) = yield [
        task.request(case.text, criteria=tuple(case.qualities), **case.facts)
    ]
    return (yield from rulers(replace(case, bundle=task.read(reply))))


def holistic(case: Case) -> Steps:
    """Direct Holistic Scoring: the rubric in one call, a rationale first (§4.2)."""
    schema = record(
        {
            "rationale": _text_schema(_RATIONALE_CHARACTERS),
            "scores": _scores_schema(case),
        }
    )
    tokens = 300 + 20 * len(case.criteria)
    (reply,) = yield [
        case.request("rulers_holistic", schema, tokens, list(case.criteria))
    ]
    return _ungated_outcome(parse(reply, schema)["scores"])


def traits(case: Case) -> Steps:
    """Multi-Trait Specialization: each trait in a call of its own (§4.2)."""
    schema = record(
        {"rationale": _text_schema(_RATIONALE_CHARACTERS), "score": _level_schema(case)}
    )
    requests = {}
    for trait in case.bundle.traits:
        criteria = case.criteria
        if trait.name in criteria:
            criteria = {trait.name: criteria[trait.name]}
        requests[trait.name] = case.request(
            "rulers_trait",
            schema,
            320,
            [trait.name],
            rubric=rubric_text(criteria),
            trait=trait.name,
            definition=trait.definition,
        )
    replies = yield list(requests.values())
    return _ungated_outcome(
        {
            name: parse(reply, schema, f"{name}: ")["score"]
            for name, reply in zip(requests, replies, strict=True)
        }
    )


def autoscore(case: Case) -> Steps:
    """AutoScore: one agent extracts, another scores what was extracted (§4.2)."""
    names = list(case.criteria)
    segments = {
        "type": "array",
        "items": _text_schema(_SEGMENT_CHARACTERS),
        "maxItems": _SEGMENTS,
    }
    schema = record({"segments": record(dict.fromkeys(names, segments))})
    (reply,) = yield [case.request("rulers_extract", schema, 400 * len(names), names)]
    extracted = {
        name: [cut(text, _SEGMENT_CHARACTERS) for text in texts]
        for name, texts in parse(reply, schema)["segments"].items()
    }
    schema = record({"scores": _scores_schema(case)})
    request = case.request(
        "rulers_from_evidence",
        schema,
        20 + 20 * len(names),
        names,
        evidence=as_json(extracted),
    )
    (reply,) = yield [request]
    return _ungated_outcome(parse(reply, schema)["scores"])


def _read_answer(case: Case, content: Any) -> Outcome:
    """Compute the traits' scores from a filled-in checklist and the quotes."""
    bundle = case.bundle
    outcome = Outcome(lock=bundle.lock)
    n_needed = min(bundle.min_evidence, len(case.units))
    offset = bundle.scale[0] - 1  # `score` counts from 1
    for trait in bundle.traits:
        items = [item.id for item in bundle.of_trait(trait)]
        decisions = [content["checklist"][item] for item in items]
        cited = [
            (quote["sent_id"], cut(quote["quote"], QUOTE_CHARACTERS))
            for quote in content["evidence"][trait.id]
        ]
        quotes = verify_quotes(cited, case.units, bundle.min_characters)
        n_valid = count_valid(quotes)
        outcome.scores[trait.name] = offset + score(
            decisions, bundle.levels, n_valid, n_needed
        )
        outcome.ungated[trait.name] = offset + score(decisions, bundle.levels)
        n_verified = sum(quote.status == "verified" for quote in quotes)
        outcome.invalid[trait.name] = 1 - n_verified / len(quotes)
        outcome.decisions += zip(repeat(trait.name), items, decisions, strict=False)
        outcome.quotes += zip(repeat(trait.name), quotes, strict=False)
        outcome.ties += is_tie(decisions, bundle.levels)
        outcome.unsupported += decisions.count(2) if not n_valid else 0
    return outcome


def _ungated_outcome(scores: dict[str, int]) -> Outcome:
    """Return scores given without a checklist, which have no gate."""
    return Outcome(scores=scores, ungated=scores)


def _scores_schema(case: Case) -> Json:
    return record(dict.fromkeys(case.criteria, _level_schema(case)))


def _level_schema(case: Case) -> Json:
    low, high = case.bundle.scale
    return {"type": "integer", "enum": list(range(low, high + 1))}


def _text_schema(characters: int) -> Json:
    return {"type": "string", "maxLength": characters}


METHODS: dict[str, Callable[[Case], Steps]] = {
    "rulers": rulers,
    "rulers-unlocked": unlocked,
    "dhs": holistic,
    "mts": traits,
    "autoscore": autoscore,
}
