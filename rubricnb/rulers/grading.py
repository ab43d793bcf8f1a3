"""Texts in, scores out: RULERS, its ablations and its baselines behind one function."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache

import numpy as np
import pandas as pd

from rubricnb.core.contract import Reply, Request
from rubricnb.core.estimates.reads import as_list
from rubricnb.core.frames import Items
from rubricnb.core.judge import Judge, judging
from rubricnb.core.permutation import Design, code
from rubricnb.core.prices import Budget
from rubricnb.core.prompts import inert
from rubricnb.core.run import ask
from rubricnb.core.store import StoreLike
from rubricnb.core.support.spelling import one_of
from rubricnb.core.support.types import Row
from rubricnb.rulers.bundle import Bundle, rewritten
from rubricnb.rulers.compile import Criteria, criteria_of, stating_lengths
from rubricnb.rulers.grades import (
    Grades,
    Reading,
    joined,
    recorded_part,
)
from rubricnb.rulers.methods import METHODS, Case, Outcome, outcomes

_USAGE_COLUMNS = ("prompt_tokens", "cached_tokens", "completion_tokens", "seconds")
_ITEM_COLUMNS = [
    "item_id",
    "dataset",
    "text_id",
    "group_id",
    "cluster_id",
    "candidate",
    "criterion",
]


def grade(
    items: Items,
    bundle: Bundle,
    judge: Judge | str,
    methods: str | Sequence[str] = "rulers",
    *,
    design: Design | None = None,
    replicates: int = 1,
    temperature: float = 0.0,
    seed: int = 0,
    store: StoreLike = None,
    fresh: bool = False,
    budget: Budget | None = None,
) -> Grades:
    """Score texts against a rubric by some methods; recorded scores come first.

    Parameters
    ----------
    items
        The items; a text with several criteria is put to the judge once.
    bundle
        The rubric. Its variant and its order of levels and traits are those of every
        method.
    judge
        A spec: texts that are recorded whole (`recorded_grades`) come from there, the
        others are asked. Or a judge from `open_judge`, which is asked. It must have the
        readout ``json``.
    methods
        ``rulers``; ``rulers-unlocked`` (the checklist compiled again for every text);
        and the baselines ``dhs``, ``mts`` and ``autoscore``. Without verification:
        ``score_ungated``.
    design
        Orderings of the levels, one case each; default: the bundle's own.
    replicates, temperature, seed
        How often each case is asked, and the sampling.
    store, fresh, budget
        As in `rubricnb.run`.

    Returns
    -------
    Grades

    Raises
    ------
    ValueError
        An unknown method, items without rubrics, or a rubric with another number of
        levels than the bundle's.

    Notes
    -----
    arXiv RULERS, §3.2 and §4.2. What its paper leaves open is ours: `verify_quotes`,
    `score`.

    Examples
    --------
    >>> import rubricnb as rb
    >>> from rubricnb.rulers import load_bundle
    >>> from rubricnb.rulers.simulated import SimulatedGrader
    >>> items = rb.load("minibench", n_items=30)
    >>> bundle = load_bundle("minibench")
    >>> grades = grade(items, bundle, SimulatedGrader(), store=":memory:")
    ... # doctest: +ELLIPSIS
    simulated:grader: 10 of 10 in ...
    >>> len(grades.scores), len(grades.decisions), len(grades.evidence)
    (30, 120, 60)
    """
    method_names = as_list(methods)
    for method in method_names:
        one_of("method", method, METHODS)
    _check_items(items, bundle)
    if design is not None and (design.name == "placebo" or design.n != bundle.levels):
        raise ValueError(
            f"the design {design.name}({design.n}) does not reorder {bundle.levels} "
            f"levels: use balanced({bundle.levels}) or a different design over "
            f"{bundle.levels}"
        )
    reading = Reading(bundle, design, replicates, temperature, seed)
    # Recordings were sampled with seed 0.
    use_recorded = (
        isinstance(judge, str) and not fresh and (seed == 0 or temperature == 0)
    )
    parts: list[Grades] = []
    with judging(judge) as described:

        def ask_engine(requests: Sequence[Request]) -> list[Reply]:
            engine = described.opened()
            return ask(stating_lengths(requests, engine), engine, store, fresh, budget)

        for method in method_names:
            recorded = (
                recorded_part(items, str(judge), method, reading)
                if use_recorded
                else None
            )
            to_grade = items
            if recorded is not None:
                parts.append(recorded)
                to_grade = items[~items["text_id"].isin(recorded.scores["text_id"])]
            if len(to_grade):
                cases = list(_cases(to_grade, reading))
                engine = described.opened()
                judge_columns = {
                    "judge": engine.slug,
                    "source": engine.source,
                    "method": method,
                }
                graded = outcomes(method, cases, ask_engine)
                reads = [
                    (case, judge_columns | case.condition, outcome)
                    for case, outcome in zip(cases, graded, strict=True)
                ]
                tables = (
                    pd.DataFrame([row for read in reads for row in rows_of(*read)])
                    for rows_of in (_score_rows, _decision_rows, _evidence_rows)
                )
                parts.append(Grades(*tables))
    return joined(parts)


def _check_items(items: Items, bundle: Bundle) -> None:
    rubrics = getattr(items, "rubrics", None)
    if rubrics is None or not len(rubrics):
        raise ValueError("these items have no rubrics: load them with rubricnb.load")
    scale = bundle.scale
    for rubric_id, levels in rubrics.groupby("rubric_id", observed=True)["score"]:
        if (levels.min(), levels.max()) != scale:
            raise ValueError(
                f"rubric {rubric_id!r} has the levels {levels.min()}..{levels.max()} "
                f"and bundle {bundle.name!r} has {scale[0]}..{scale[1]}: use the "
                "bundle of these items"
            )


def _cases(items: Items, reading: Reading) -> Iterator[Case]:
    """Every text under every ordering and replicate."""
    columns = items.columns.intersection(_ITEM_COLUMNS)
    arranged_bundle = cache(lambda order: reading.bundle.arranged(levels=order))

    @cache
    def criteria_in_order(
        rubric_ids: tuple[str, ...], order: tuple[int, ...]
    ) -> Criteria:
        """The rubric in natural language, worded and ordered like the bundle."""
        bundle = arranged_bundle(order)
        rubrics = items.rubrics[items.rubrics["rubric_id"].isin(rubric_ids)]
        criteria = {
            name: (definition, rewritten(levels, bundle.variant))
            for name, (definition, levels) in criteria_of(
                rubrics, bundle.wording, order
            ).items()
        }
        rank = {trait.name: number for number, trait in enumerate(bundle.traits)}
        return dict(sorted(criteria.items(), key=lambda entry: rank.get(entry[0], 0)))

    for text_id, text_items in items.groupby("text_id", sort=False, observed=True):
        first_item = text_items.iloc[0]
        rubric_ids = tuple(text_items["rubric_id"].unique())
        for ordering_index, order, replicate in reading.of(str(text_id)):
            yield Case(
                arranged_bundle(order),
                criteria_in_order(rubric_ids, order),
                inert(first_item.instruction),
                inert(first_item.response),
                facts={
                    **dict.fromkeys(("item_id", "text_id"), str(text_id)),
                    "cluster_id": str(first_item.cluster_id),
                    "replicate": replicate,
                    "temperature": reading.temperature,
                    "seed": reading.seed + replicate - 1,
                },
                qualities=_qualities(text_items, *reading.bundle.scale),
                condition=reading.condition
                | {
                    "ordering_index": ordering_index,
                    "ordering": code([order])[0],
                    "replicate": replicate,
                },
                items=text_items[columns].astype(object).to_dict("records"),
            )


def _qualities(text_items: pd.DataFrame, low: int, high: int) -> dict[str, float]:
    if "human" not in text_items:
        return {}
    rated = text_items[text_items["human"].notna()]
    quality = (rated["human"] - low) / (high - low)
    return dict(zip(rated["criterion"].astype(str), quality.astype(float), strict=True))


def _score_rows(case: Case, read_columns: Row, outcome: Outcome) -> Iterator[Row]:
    trait_names = _feature_names(case.bundle, outcome)
    shared = read_columns | {
        "lock": outcome.lock[:12],
        "status": outcome.status,
        "reason": outcome.problem,
        "n_options": case.bundle.levels,
        **({"lowest": case.bundle.scale[0]} if case.bundle.scale[0] != 1 else {}),
        **{
            f"{family}_{number}": values[name]
            for family, values in (
                ("trait", outcome.scores),
                ("ungated", outcome.ungated),
                ("invalid", outcome.invalid),
            )
            for number, name in enumerate(trait_names, 1)
            if values
        },
        "n_units": len(case.units),
        "n_quotes": len(outcome.quotes),
        "n_verified": sum(quote.status == "verified" for _, quote in outcome.quotes),
        "ties": outcome.ties,
        "unsupported": outcome.unsupported,
        **{
            name: sum(getattr(reply, name) for reply in outcome.replies)
            for name in _USAGE_COLUMNS
        },
    }
    for item in case.items:
        yield {
            **item,
            **shared,
            "score": _score_of(outcome.scores, item["criterion"]),
            "score_ungated": _score_of(outcome.ungated, item["criterion"]),
        }


def _decision_rows(case: Case, read_columns: Row, outcome: Outcome) -> Iterator[Row]:
    for trait, item, decision in outcome.decisions:
        yield {
            "text_id": case.facts["text_id"],
            **read_columns,
            "trait": trait,
            "item": item,
            "decision": decision,
        }


def _evidence_rows(case: Case, read_columns: Row, outcome: Outcome) -> Iterator[Row]:
    counted = set()
    for number, (trait, quote) in enumerate(outcome.quotes, start=1):
        is_new = (trait, quote.unit, quote.text) not in counted
        counted.add((trait, quote.unit, quote.text))
        yield {
            "text_id": case.facts["text_id"],
            **read_columns,
            "cluster_id": case.facts["cluster_id"],
            "trait": trait,
            "number": number,
            "valid": quote.status == "verified" and is_new,
            "characters": len(quote.text),
            **quote._asdict(),
        }


def _feature_names(bundle: Bundle, outcome: Outcome) -> list[str]:
    """Traits in one order, whatever the order they were shown in."""
    by_id = sorted(bundle.traits, key=lambda trait: (len(trait.id), trait.id))
    names = [trait.name for trait in by_id if trait.name in outcome.scores]
    return names + sorted(outcome.scores.keys() - {*names})


def _score_of(scores: Mapping[str, int], criterion: str) -> float:
    """Return the score of the trait named like the criterion, or the traits' mean."""
    if not scores:
        return np.nan
    return float(scores.get(criterion, sum(scores.values()) / len(scores)))
