"""Phase I: from a rubric in words to a bundle, by a judge under a JSON schema."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import pandas as pd

from rubricnb.core.contract import Message, Reply, Request
from rubricnb.core.judge import Judge
from rubricnb.core.prices import Budget
from rubricnb.core.run import ask
from rubricnb.core.store import StoreLike
from rubricnb.core.support.types import Json
from rubricnb.core.validate import check_rubrics
from rubricnb.files.tables import read_table
from rubricnb.rulers.bundle import (
    Bundle,
    CheckItem,
    Levels,
    Trait,
    canonical,
    first_problem,
    record,
)
from rubricnb.rulers.templates import fill

Criteria = dict[str, tuple[str, Levels]]
"""Criterion → (definition, levels in the order shown): a rubric in natural language."""

Anchors = Sequence[tuple[str, str]]
"""Scored examples: (text, what it deserves and why)."""

_TEXT_CHARACTERS = 160
# of one definition or checklist item; a judge that writes more is cut
_TOKENS_EACH = 80


def compile_rubric(
    rubric: pd.DataFrame,
    judge: Judge,
    *,
    name: str,
    dataset: str = "",
    input_type: str = "texts",
    traits: Sequence[str] = (),
    n_items: int = 15,
    min_evidence: int = 2,
    anchors: Anchors = (),
    variant: str = "standard",
    temperature: float = 0.0,
    seed: int = 0,
    store: StoreLike = None,
    budget: Budget | None = None,
) -> Bundle:
    """Let a judge compile a rubric into a bundle.

    The judge writes a definition of every trait and the checklist; the levels are the
    rubric's own, so that no new scale is invented. `Bundle.save` locks the result.

    Parameters
    ----------
    rubric
        A rubrics frame (``items.rubrics``): one criterion or several.
    judge
        From `open_judge`; it must have the readout ``json``.
    name, dataset, input_type
        Of the bundle: what it is called, for which data it is made (default: `name`),
        and what is judged ("essays").
    traits
        Figure 4's fixed list of traits; default: the rubric's criteria. A trait that is
        no criterion has the levels of the only criterion.
    n_items
        M, checklist items in all.
    min_evidence
        m, quotes per trait.
    anchors
        Figure 4's calibration anchors: scored examples, (text, what it deserves and
        why). The judge that compiles sees them, and so does the one that scores.
    variant
        Wording of the rubric that is compiled: ``standard`` or ``paraphrased``. Saved
        beside the standard bundle NAME.json as NAME-paraphrased.json, the latter is its
        variant ``paraphrased`` (`Bundle.in_variant`). Its checklist is compiled anew,
        as its rubric is a different text; the other variants of §A.3 need no
        compilation.
    temperature, seed
        Of the sampling; 0 is greedy.
    store, budget
        As in `rubricnb.run`.

    Returns
    -------
    Bundle

    Raises
    ------
    ValueError
        A rubric without levels or without this wording, a trait without a scale, fewer
        items than traits, or the judge's answer is not a bundle: the message says how
        it breaks the schema.

    Notes
    -----
    arXiv RULERS, §3.1, Figure 4 and §A.3.

    Examples
    --------
    >>> import rubricnb as rb
    >>> from rubricnb.rulers.simulated import SimulatedGrader
    >>> rubric = rb.load("minibench", n_items=3).rubrics
    >>> bundle = compile_rubric(
    ...     rubric, SimulatedGrader(), name="mine", n_items=6, store=":memory:"
    ... )  # doctest: +ELLIPSIS
    simulated:grader: 1 of 1 in ...
    >>> [t.name for t in bundle.traits], len(bundle.checklist)
    (['accuracy', 'helpfulness', 'clarity'], 6)

    Four traits of a rubric that rates the whole, with a scored example:

    >>> whole = rubric[rubric.criterion == "clarity"]
    >>> bundle = compile_rubric(
    ...     whole, SimulatedGrader(), name="four", n_items=8, store=":memory:",
    ...     traits=["order", "words", "sentences", "grammar"],
    ...     anchors=[("No idea.", "1: vague")],
    ... )  # doctest: +ELLIPSIS
    simulated:grader: 1 of 1 in ...
    >>> [t.name for t in bundle.traits], bundle.anchors
    (['order', 'words', 'sentences', 'grammar'], (('No idea.', '1: vague'),))
    """
    facts = {
        "name": name,
        "dataset": dataset or name,
        "input_type": input_type,
        "min_evidence": min_evidence,
        "anchors": tuple((str(text), str(deserves)) for text, deserves in anchors),
        "variant": variant,
    }
    criteria = criteria_of(rubric, variant)
    task = Compilation(criteria, n_items, facts, tuple(traits) or tuple(criteria))
    request = task.request(temperature=temperature, seed=seed)
    (reply,) = ask(stating_lengths([request], judge), judge, store, budget=budget)
    return task.read(reply)


def read_anchors(path: str | Path, rubric: pd.DataFrame) -> list[tuple[str, str]]:
    r"""Read scored examples for `compile_rubric` from a table.

    Parameters
    ----------
    path
        A CSV, ``.jsonl`` or ``.parquet`` with the columns ``text`` and ``score``, and,
        optionally, ``reason``: why it deserves this score.
    rubric
        The rubrics frame whose scores these are.

    Raises
    ------
    ValueError
        A column is missing, or a score is not on the rubric's scale.

    Examples
    --------
    >>> import rubricnb as rb
    >>> from tempfile import TemporaryDirectory
    >>> rubric = rb.load("minibench", n_items=3).rubrics
    >>> with TemporaryDirectory() as folder:
    ...     file = Path(folder, "anchors.csv")
    ...     _ = file.write_text("text,score,reason\nNo idea.,1,no answer\nParis.,5,\n")
    ...     read_anchors(file, rubric)
    [('No idea.', '1: no answer'), ('Paris.', '5')]
    """
    table = read_table(path, ["text", "score"], ["score"])
    levels = sorted({float(score) for score in rubric["score"]})
    off_scale = table[~table["score"].isin(levels)]
    if len(off_scale):
        raise ValueError(
            f"{Path(path).name}: row {off_scale.index[0]} has the score "
            f"{off_scale['score'].iloc[0]:g}; the rubric's are "
            f"{', '.join(f'{level:g}' for level in levels)}"
        )
    reasons = table.get("reason", [""] * len(table))
    return [
        (text, f"{score:g}: {reason}" if reason else f"{score:g}")
        for text, score, reason in zip(
            table["text"], table["score"], reasons, strict=True
        )
    ]


@dataclass(frozen=True)
class Compilation:
    """One rubric to be compiled: the request to a judge, and how its reply is read."""

    criteria: Criteria
    n_items: int
    facts: Json  # of the bundle
    names: tuple[str, ...]  # of the traits

    @cached_property
    def traits(self) -> dict[str, Trait]:
        """The traits by their id, still without a definition."""
        if self.n_items < len(self.names):
            raise ValueError(
                f"{self.n_items} checklist items cannot cover {len(self.names)} "
                f"traits: ask for {3 * len(self.names)} or more (n_items, --n-items)"
            )
        traits = [
            Trait(f"T{number}", name, "", self._levels(name))
            for number, name in enumerate(self.names, 1)
        ]
        return {trait.id: trait for trait in traits}

    @property
    def items(self) -> list[str]:
        """Ids of the checklist items."""
        return [f"C{number:02d}" for number in range(1, self.n_items + 1)]

    def request(self, text: str = "", **options: Any) -> Request:
        """Return the request; `text`: what is scored, if a judge reads both."""
        prompt = fill(
            "rulers_compile",
            **self.facts | {"anchors": scored(self.facts["anchors"])},
            rubric=rubric_text(self.criteria),
            traits=[{"id": t.id, "name": t.name} for t in self.traits.values()],
            n_items=self.n_items,
            text=text,
        )
        tokens = _TOKENS_EACH * (len(self.traits) + self.n_items)
        return json_request(prompt, self.schema(), tokens, **options)

    def schema(self) -> Json:
        """Return the schema of the answer: exactly N traits and M checklist items."""
        text = {"type": "string", "minLength": 1, "maxLength": _TEXT_CHARACTERS}
        item = record(
            {"trait": {"type": "string", "enum": list(self.traits)}, "text": text}
        )
        evidence = {
            "min_evidence": {"type": "integer", "enum": [self.facts["min_evidence"]]}
        }
        return record(
            {
                "taxonomy": record(
                    dict.fromkeys(self.traits, record({"definition": text}))
                ),
                "checklist": record(dict.fromkeys(self.items, item)),
                "evidence_rules": record(evidence),
            }
        )

    def read(self, reply: Reply) -> Bundle:
        """Return the bundle that a reply holds."""
        try:
            content = parse(reply, self.schema())
            return Bundle(
                **self.facts,
                traits=tuple(
                    replace(trait, **content["taxonomy"][trait_id])
                    for trait_id, trait in self.traits.items()
                ),
                checklist=tuple(
                    CheckItem(id=item_id, **content["checklist"][item_id])
                    for item_id in self.items
                ),
            )
        except ValueError as problem:
            raise Unreadable(
                reply,
                f"the judge's answer is not a valid bundle for {self.facts['name']!r}: "
                f"{problem}; compile with a different judge, or a different seed at a "
                "temperature above 0, or write the bundle by hand",
            ) from problem

    def _levels(self, trait: str) -> Levels:
        if trait in self.criteria:
            return self.criteria[trait][1]
        if len(self.criteria) == 1:
            return next(iter(self.criteria.values()))[1]
        raise ValueError(
            f"the trait {trait!r} is not a criterion of this rubric "
            f"({', '.join(self.criteria)}), so it has no levels; use one of these, or "
            "write the bundle by hand"
        )


def criteria_of(
    rubric: pd.DataFrame, variant: str = "standard", order: Sequence[int] = ()
) -> Criteria:
    """Return criterion → (definition, levels in the order shown, or best first).

    Raises
    ------
    ValueError
        A rubric without levels, or without this wording.

    Examples
    --------
    >>> import rubricnb as rb
    >>> criteria = criteria_of(rb.load("minibench", n_items=3).rubrics)
    >>> list(criteria)
    ['accuracy', 'helpfulness', 'clarity']
    >>> criteria["clarity"][1][0]
    (5, 'Clear and definite from start to finish.')
    """
    rubric = check_rubrics(rubric)
    worded = rubric[rubric["variant"] == variant]
    if not len(worded):
        variants = ", ".join(rubric["variant"].astype(str).unique())
        raise ValueError(f"the rubric has no variant {variant!r}; it has: {variants}")
    criteria: Criteria = {}
    for rubric_id, level_rows in worded.groupby("rubric_id", sort=False, observed=True):
        scores = sorted(level_rows["score"])
        if scores != [*range(int(scores[0]), int(scores[0]) + len(scores))]:
            raise ValueError(
                f"rubric {rubric_id!r}: RULERS needs whole scores without gaps; number "
                "the levels one by one"
            )
        levels = dict(
            zip(level_rows["score"].astype(int), level_rows["description"], strict=True)
        )
        shown_order = order or sorted(levels, reverse=True)
        first_level = level_rows.iloc[0]
        criteria[str(first_level["criterion"])] = (
            str(first_level["definition"]),
            tuple((int(score), str(levels[score])) for score in shown_order),
        )
    return criteria


def rubric_text(criteria: Criteria) -> str:
    """Write out a rubric in natural language.

    Examples
    --------
    >>> print(rubric_text({"tone": ("Is it kind?", ((2, "Kind."), (1, "Rude.")))}))
    [tone] Is it kind?
    Score 2: Kind.
    Score 1: Rude.
    """
    return "\n\n".join(
        "\n".join(
            [f"[{name}] {definition}", *(f"Score {s}: {text}" for s, text in levels)]
        )
        for name, (definition, levels) in criteria.items()
    )


def scored(anchors: Anchors) -> str:
    """Write out scored examples as a judge reads them."""
    return "; ".join(f"{example} -> {deserves}" for example, deserves in anchors)


def json_request(prompt: str, schema: Json, max_tokens: int, **facts: Any) -> Request:
    """Return a request for a document that conforms to a schema.

    Examples
    --------
    >>> json_request("Score it.", record({"score": {"type": "integer"}}), 20).readout
    'json'
    """
    return Request(
        request_id=0,
        key="",
        messages=(Message("user", prompt),),
        slots=(),
        choices=(),
        readout="json",
        schema=canonical(schema),
        max_tokens=max_tokens,
        **facts,
    )


def stating_lengths(requests: Sequence[Request], judge: Judge) -> list[Request]:
    """State an answer's longest strings, where an engine cannot hold it to them.

    Examples
    --------
    >>> from rubricnb.engines.openai import OpenAIJudge
    >>> answer = record({"reason": {"type": "string", "maxLength": 9}})
    >>> asked = json_request("Why?", answer, 20)
    >>> [stated] = stating_lengths([asked], OpenAIJudge("gpt-4.1"))
    >>> stated.messages[0].content.splitlines()[-1]
    'Longest strings, in characters: reason 9.'
    """
    if getattr(judge, "holds_lengths", True):
        return list(requests)
    return [replace(r, messages=(Message("user", _with_lengths(r)),)) for r in requests]


def _with_lengths(request: Request) -> str:
    (message,) = request.messages
    limits = ", ".join(
        f"{name} {limit}"
        for name, limit in _length_limits(json.loads(request.schema)).items()
    )
    note = f"\n\nLongest strings, in characters: {limits}." if limits else ""
    return message.content + note


def _length_limits(schema: Json, name: str = "") -> dict[str, int]:
    """The longest string of each property, by the property's own name."""
    limits = {name: int(schema["maxLength"])} if "maxLength" in schema else {}
    inner_schemas = (
        {name: schema["items"]} if "items" in schema else schema.get("properties", {})
    )
    for inner_name, inner_schema in inner_schemas.items():
        limits |= _length_limits(inner_schema, inner_name)
    return limits


class Unreadable(ValueError):
    """A reply without the document that was asked for; ``status`` as in judgments."""

    def __init__(self, reply: Reply, problem: str) -> None:
        super().__init__(problem)
        status_of_finish = {
            "error": "error",
            "refusal": "refused",
            "length": "truncated",
        }
        self.status = status_of_finish.get(reply.finish, "unparsed")


def parse(reply: Reply, schema: Json, where: str = "") -> Any:
    """Return the document of a reply; `Unreadable` says what is wrong with it."""
    if reply.finish == "error":
        problem = f"the request failed ({reply.error})"
    elif reply.finish == "refusal":
        problem = "the judge refused"
    else:
        try:
            content = json.loads(reply.text)
            problem = first_problem(content, schema)
        except (json.JSONDecodeError, RecursionError) as error:
            cut_note = (
                "it was cut at the token limit; " if reply.finish == "length" else ""
            )
            problem = f"{cut_note}no JSON document ({error})"
    if problem:
        raise Unreadable(reply, where + problem)
    return content
