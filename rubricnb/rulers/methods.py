"""Phase II and the baselines: what each method asks about a text, and how it reads the answer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from rubricnb.judging.contract import Reply, Request
from rubricnb.rulers.bundle import QUOTE_CHARACTERS, Bundle, answer_schema, answer_tokens, record
from rubricnb.rulers.compile import Compilation, Criteria, json_request, parse, rubric_text
from rubricnb.rulers.evidence import Quote, count_valid, cut, split_units, verify_quotes
from rubricnb.rulers.scoring import is_tie, score
from rubricnb.rulers.templates import as_json, fill

Ask = Callable[[Sequence[Request]], list[Reply]]
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
    """

    bundle: Bundle
    criteria: Criteria
    instruction: str
    text: str
    facts: dict[str, Any] = field(default_factory=dict)
    qualities: dict[str, float] = field(default_factory=dict)

    @cached_property
    def units(self) -> tuple[str, ...]:
        """What can be cited."""
        return split_units(self.text, self.bundle.units)  # type: ignore[arg-type]

    def request(self, prompt: str, schema: Any, max_tokens: int, about: Sequence[str]) -> Request:
        """Return a request about these criteria or traits."""
        known = self.qualities
        whole = sum(known.values()) / len(known) if known else None
        return json_request(
            prompt,
            schema,
            max_tokens,
            criteria=tuple(about),
            qualities=tuple(known.get(name, whole) for name in about),
            ordering=tuple(s for s, _ in self.bundle.traits[0].levels),
            **self.facts,
        )


@dataclass
class Outcome:
    """What a method found out about a text; `problem` says why it found nothing.

    ``scores`` and ``ungated`` are by trait or criterion; ``invalid`` is the share of a trait's
    quotes that are not verified; ``decisions`` holds (trait, item, decision), ``quotes`` (trait,
    quote).
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


def rulers(cases: Sequence[Case], ask: Ask) -> list[Outcome]:
    """Execute the locked bundle (arXiv RULERS, §3.2 and Figure 5)."""
    replies = ask([_score_request(case) for case in cases])
    return [_read_score(case, reply) for case, reply in zip(cases, replies, strict=True)]


def unlocked(cases: Sequence[Case], ask: Ask) -> list[Outcome]:
    """Execute a bundle that is compiled anew for every text (§4.6: "runtime interpretation").

    The judge that compiles sees the text, as one does that reads rubric and text at once.
    """
    tasks = [_compilation(case) for case in cases]
    replies = ask([
        task.request(case.text, criteria=tuple(case.qualities), **case.facts)
        for task, case in zip(tasks, cases, strict=True)
    ])  # fmt: skip
    outcomes = [Outcome(replies=[reply]) for reply in replies]
    compiled: dict[int, Case] = {}
    for k, (task, case, reply) in enumerate(zip(tasks, cases, replies, strict=True)):
        try:
            compiled[k] = replace(case, bundle=task.read(reply))
        except ValueError as problem:
            outcomes[k].status, outcomes[k].problem = _status(reply), str(problem)
    for k, outcome in zip(compiled, rulers(list(compiled.values()), ask), strict=True):
        outcome.replies.insert(0, replies[k])
        outcomes[k] = outcome
    return outcomes


def holistic(cases: Sequence[Case], ask: Ask) -> list[Outcome]:
    """Direct Holistic Scoring: the whole rubric in one call, a rationale first (§4.2)."""
    requests, schemas = [], []
    for case in cases:
        schema = record({"rationale": _text(_RATIONALE_CHARACTERS), "scores": _scores(case)})
        prompt = fill(
            "rulers_holistic",
            **_context(case),
            text=case.text,
            rubric=rubric_text(case.criteria),
            criteria=list(case.criteria),
            levels=case.bundle.levels,
        )
        schemas.append(schema)
        requests.append(
            case.request(prompt, schema, 300 + 20 * len(case.criteria), list(case.criteria))
        )
    replies = ask(requests)
    return [_read_scores(s, [reply]) for s, reply in zip(schemas, replies, strict=True)]


def traits(cases: Sequence[Case], ask: Ask) -> list[Outcome]:
    """Multi-Trait Specialization: each trait in a call of its own (§4.2)."""
    requests, schemas = [], []
    for case in cases:
        schema = record({"rationale": _text(_RATIONALE_CHARACTERS), "score": _levels(case)})
        for trait in case.bundle.traits:
            own = {trait.name: case.criteria[trait.name]} if trait.name in case.criteria else None
            prompt = fill(
                "rulers_trait",
                **_context(case),
                text=case.text,
                rubric=rubric_text(own or case.criteria),
                trait=trait.name,
                definition=trait.definition,
                levels=case.bundle.levels,
            )
            schemas.append(schema)
            requests.append(case.request(prompt, schema, 320, [trait.name]))
    answers = iter(zip(schemas, ask(requests), strict=True))
    return [_joined({trait.name: next(answers) for trait in case.bundle.traits}) for case in cases]


def autoscore(cases: Sequence[Case], ask: Ask) -> list[Outcome]:
    """AutoScore: one agent extracts, another scores and sees only what was extracted (§4.2)."""
    schemas = [_extract_schema(case) for case in cases]
    found = ask([_extract_request(c, s) for c, s in zip(cases, schemas, strict=True)])
    outcomes = [Outcome(replies=[reply]) for reply in found]
    seen: dict[int, Request] = {}
    for k, (case, schema, reply) in enumerate(zip(cases, schemas, found, strict=True)):
        content, problem = parse(reply, schema)
        if problem:
            outcomes[k].status, outcomes[k].problem = _status(reply), problem
        else:
            segments = {
                name: [cut(text, _SEGMENT_CHARACTERS) for text in texts]
                for name, texts in content["segments"].items()
            }
            seen[k] = _from_evidence_request(case, segments)
    for k, reply in zip(seen, ask(list(seen.values())), strict=True):
        outcomes[k] = _read_scores(record({"scores": _scores(cases[k])}), [found[k], reply])
    return outcomes


def _score_request(case: Case) -> Request:
    bundle = case.bundle
    prompt = fill(
        "rulers_score",
        **_context(case),
        lock=bundle.lock,
        units=as_json({str(k): unit for k, unit in enumerate(case.units, start=1)}),
        traits=as_json([
            {"id": t.id, "name": t.name, "definition": t.definition,
             "levels": [{"score": s, "description": d} for s, d in t.levels]}
            for t in bundle.traits
        ]),
        checklist=as_json([
            {"id": c.id, "trait": c.trait, "text": c.text} for c in bundle.checklist
        ]),
        anchors="; ".join(f"{example} -> {deserves}" for example, deserves in bundle.anchors),
        n_items=len(bundle.checklist),
        min_evidence=bundle.min_evidence,
    )  # fmt: skip
    about = [t.name for t in bundle.traits]
    return case.request(prompt, answer_schema(bundle), answer_tokens(bundle), about)


def _read_score(case: Case, reply: Reply) -> Outcome:
    bundle = case.bundle
    outcome = Outcome(lock=bundle.lock, replies=[reply])
    content, problem = parse(reply, answer_schema(bundle))
    if problem:
        outcome.status, outcome.problem = _status(reply), problem
        return outcome
    needed = min(bundle.min_evidence, len(case.units))
    for trait in bundle.traits:
        own = [(c.id, content["checklist"][c.id]) for c in bundle.of_trait(trait)]
        decisions = [decision for _, decision in own]
        cited = [
            (q["sent_id"], cut(q["quote"], QUOTE_CHARACTERS)) for q in content["evidence"][trait.id]
        ]
        quotes = verify_quotes(cited, case.units, bundle.min_characters)
        valid = count_valid(quotes)
        outcome.scores[trait.name] = score(decisions, bundle.levels, valid, needed)
        outcome.ungated[trait.name] = score(decisions, bundle.levels)
        outcome.invalid[trait.name] = 1 - sum(q.status == "verified" for q in quotes) / len(quotes)
        outcome.decisions += [(trait.name, item, decision) for item, decision in own]
        outcome.quotes += [(trait.name, quote) for quote in quotes]
        outcome.ties += is_tie(decisions, bundle.levels)
        outcome.unsupported += decisions.count(2) if not valid else 0
    return outcome


def _compilation(case: Case) -> Compilation:
    bundle = case.bundle
    return Compilation(
        case.criteria, bundle.name, bundle.dataset, bundle.input_type,
        tuple(t.name for t in bundle.traits), len(bundle.checklist), bundle.min_evidence,
        bundle.anchors, "paraphrased" if bundle.variant == "paraphrased" else "standard",
    )  # fmt: skip


def _extract_schema(case: Case) -> dict[str, Any]:
    segments = {"type": "array", "items": _text(_SEGMENT_CHARACTERS), "maxItems": _SEGMENTS}
    return record({"segments": record(dict.fromkeys(case.criteria, segments))})


def _extract_request(case: Case, schema: dict[str, Any]) -> Request:
    prompt = fill(
        "rulers_extract",
        **_context(case),
        text=case.text,
        rubric=rubric_text(case.criteria),
        criteria=list(case.criteria),
    )
    return case.request(prompt, schema, 400 * len(case.criteria), list(case.criteria))


def _from_evidence_request(case: Case, segments: dict[str, list[str]]) -> Request:
    prompt = fill(
        "rulers_from_evidence",
        **_context(case),
        rubric=rubric_text(case.criteria),
        evidence=as_json(segments),
        criteria=list(case.criteria),
        levels=case.bundle.levels,
    )
    schema = record({"scores": _scores(case)})
    return case.request(prompt, schema, 20 + 20 * len(case.criteria), list(case.criteria))


def _read_scores(schema: dict[str, Any], replies: list[Reply]) -> Outcome:
    outcome = Outcome(replies=replies)
    content, problem = parse(replies[-1], schema)
    if problem:
        outcome.status, outcome.problem = _status(replies[-1]), problem
    else:
        outcome.scores = outcome.ungated = content["scores"]
    return outcome


def _joined(answers: dict[str, tuple[dict[str, Any], Reply]]) -> Outcome:
    outcome = Outcome(replies=[reply for _, reply in answers.values()])
    for trait, (schema, reply) in answers.items():
        content, problem = parse(reply, schema)
        if problem:
            return Outcome(_status(reply), f"{trait}: {problem}", replies=outcome.replies)
        outcome.scores[trait] = content["score"]
    outcome.ungated = outcome.scores
    return outcome


def _context(case: Case) -> dict[str, str]:
    return {"input_type": case.bundle.input_type, "instruction": case.instruction}


def _scores(case: Case) -> dict[str, Any]:
    return record(dict.fromkeys(case.criteria, _levels(case)))


def _levels(case: Case) -> dict[str, Any]:
    return {"type": "integer", "enum": list(range(1, case.bundle.levels + 1))}


def _text(characters: int) -> dict[str, Any]:
    return {"type": "string", "maxLength": characters}


def _status(reply: Reply) -> str:
    named = {"error": "error", "refusal": "refused", "length": "truncated"}
    return named.get(reply.finish, "unparsed")


METHODS: dict[str, Callable[[Sequence[Case], Ask], list[Outcome]]] = {
    "rulers": rulers,
    "rulers-unlocked": unlocked,
    "dhs": holistic,
    "mts": traits,
    "autoscore": autoscore,
}
