"""Texts in, scores out: RULERS, its ablations and its baselines behind one function."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from rubricnb.data.validate import one_of
from rubricnb.frames import Items
from rubricnb.judging.contract import Reply, Request
from rubricnb.judging.judge import Judge, judging
from rubricnb.judging.prices import Budget
from rubricnb.judging.run import ask
from rubricnb.judging.store import Store
from rubricnb.permutation import Design, code
from rubricnb.prompts import inert
from rubricnb.rulers.bundle import Bundle, rewritten
from rubricnb.rulers.compile import Criteria, criteria_of, stating_lengths
from rubricnb.rulers.grades import (
    Grades,
    Reading,
    joined,
    recorded_part,
    with_categories,
)
from rubricnb.rulers.methods import METHODS, Case, Outcome, outcomes

Row = dict[str, Any]
_SPENT = ("prompt_tokens", "cached_tokens", "completion_tokens", "seconds")
_FACTS = ("dataset", "text_id", "group_id", "cluster_id", "candidate", "criterion")


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
    store: Store | str | Path | None = None,
    fresh: bool = False,
    budget: Budget | None = None,
) -> Grades:
    """Score texts against a rubric by one or more methods;
    use recorded scores where they exist.

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
    >>> grades = grade(items, load_bundle("minibench"), SimulatedGrader(), store=":memory:")
    ... # doctest: +ELLIPSIS
    simulated:grader: 10 of 10 in ...
    >>> len(grades.scores), len(grades.decisions), len(grades.evidence)
    (30, 120, 60)
    """
    names = [methods] if isinstance(methods, str) else list(methods)
    for name in names:
        one_of("method", name, METHODS)
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

        def put(requests: Sequence[Request]) -> list[Reply]:
            engine = described.opened()
            return ask(stating_lengths(requests, engine), engine, store, fresh, budget)

        for name in names:
            known = (
                recorded_part(items, str(judge), name, reading)
                if use_recorded
                else None
            )
            rest = items
            if known is not None:
                parts.append(known)
                rest = items[~items["text_id"].isin(known.scores["text_id"])]
            if len(rest):
                cases = list(_cases(rest, reading))
                engine = described.opened()
                about = {"judge": engine.slug, "source": engine.source}
                found = zip(cases, outcomes(name, cases, put), strict=True)
                parts.append(
                    _tables([(*one, about | {"method": name}) for one in found])
                )
    return joined(parts)


def _tables(found: Sequence[tuple[Case, Outcome, Row]]) -> Grades:
    """Lay out outcomes, each with the judge and method that it is of."""
    graded = [(case, about | case.condition, outcome) for case, outcome, about in found]
    rows = (
        [r for one in graded for r in part(*one)]
        for part in (_scores, _decisions, _evidence)
    )
    return Grades(*(with_categories(pd.DataFrame(own)) for own in rows))


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
    columns = ["item_id", *(c for c in _FACTS if c in items)]
    arranged = cache(lambda order: reading.bundle.arranged(levels=order))

    @cache
    def criteria(used: tuple[str, ...], order: tuple[int, ...]) -> Criteria:
        return _criteria(
            items.rubrics[items.rubrics["rubric_id"].isin(used)], arranged(order)
        )

    for text_id, rows in items.groupby("text_id", sort=False, observed=True):
        first, used = rows.iloc[0], tuple(rows["rubric_id"].unique())
        for index, order, replicate in reading.of(str(text_id)):
            yield Case(
                arranged(order),
                criteria(used, order),
                inert(first.instruction),
                inert(first.response),
                facts={
                    **dict.fromkeys(("item_id", "text_id"), str(text_id)),
                    "cluster_id": str(first.cluster_id),
                    "replicate": replicate,
                    "temperature": reading.temperature,
                    "seed": reading.seed + replicate - 1,
                },
                qualities=_qualities(rows, *reading.bundle.scale),
                condition=reading.condition
                | {
                    "ordering_index": index,
                    "ordering": code([order])[0],
                    "replicate": replicate,
                },
                items=rows[columns].astype(object).to_dict("records"),
            )


def _criteria(rubrics: pd.DataFrame, bundle: Bundle) -> Criteria:
    """The rubric in natural language, worded and ordered like the bundle."""
    criteria = {
        name: (definition, rewritten(levels, bundle.variant))
        for name, (definition, levels) in criteria_of(
            rubrics, bundle.wording, [s for s, _ in bundle.traits[0].levels]
        ).items()
    }
    place = {trait.name: k for k, trait in enumerate(bundle.traits)}
    return dict(sorted(criteria.items(), key=lambda entry: place.get(entry[0], 0)))


def _qualities(rows: pd.DataFrame, low: int, high: int) -> dict[str, float]:
    if "human" not in rows:
        return {}
    known = rows[rows["human"].notna()]
    scaled = (known["human"] - low) / (high - low)
    return dict(zip(known["criterion"].astype(str), scaled.astype(float), strict=True))


def _scores(case: Case, about: Row, outcome: Outcome) -> Iterator[Row]:
    shared = about | {"lock": outcome.lock[:12]} | _measures(case, outcome)
    for item in case.items:
        own = {
            "score": _of(outcome.scores, item["criterion"]),
            "score_ungated": _of(outcome.ungated, item["criterion"]),
        }
        yield item | shared | own


def _decisions(case: Case, about: Row, outcome: Outcome) -> Iterator[Row]:
    for trait, item, decision in outcome.decisions:
        own = {"trait": trait, "item": item, "decision": decision}
        yield {"text_id": case.facts["text_id"], **about, **own}


def _evidence(case: Case, about: Row, outcome: Outcome) -> Iterator[Row]:
    ids = {name: case.facts[name] for name in ("text_id", "cluster_id")}
    counted = set()
    for number, (trait, quote) in enumerate(outcome.quotes, start=1):
        valid = (
            quote.status == "verified"
            and (trait, quote.unit, quote.text) not in counted
        )
        counted.add((trait, quote.unit, quote.text))
        facts = {
            "trait": trait,
            "number": number,
            "valid": valid,
            "characters": len(quote.text),
        }
        yield {"text_id": ids["text_id"], **about, **ids, **facts, **quote._asdict()}


def _measures(case: Case, outcome: Outcome) -> dict[str, Any]:
    """The columns that all items of a text share."""
    names = _feature_names(case.bundle, outcome)
    return {
        "status": outcome.status,
        "reason": outcome.problem,
        "n_options": case.bundle.levels,
        **({"lowest": case.bundle.scale[0]} if case.bundle.scale[0] != 1 else {}),
        **{
            f"{family}_{k}": values.get(name, np.nan)
            for family, values in (
                ("trait", outcome.scores),
                ("ungated", outcome.ungated),
            )
            for k, name in enumerate(names, 1)
        },
        **{
            f"invalid_{k}": outcome.invalid[n]
            for k, n in enumerate(names, 1)
            if outcome.invalid
        },
        "n_units": len(case.units),
        "n_quotes": len(outcome.quotes),
        "n_verified": sum(q.status == "verified" for _, q in outcome.quotes),
        "ties": outcome.ties,
        "unsupported": outcome.unsupported,
        **{name: sum(getattr(r, name) for r in outcome.replies) for name in _SPENT},
    }


def _feature_names(bundle: Bundle, outcome: Outcome) -> list[str]:
    """Traits in one order, whatever the order they were shown in."""
    by_id = sorted(bundle.traits, key=lambda t: (len(t.id), t.id))
    place = {trait.name: k for k, trait in enumerate(by_id)}
    return sorted(outcome.scores, key=lambda name: (place.get(name, len(place)), name))


def _of(scores: Mapping[str, int], criterion: str) -> float:
    """Return the score of the trait named like the criterion,
    else the mean of the traits.
    """
    if not scores:
        return float("nan")
    return float(scores.get(criterion, sum(scores.values()) / len(scores)))
