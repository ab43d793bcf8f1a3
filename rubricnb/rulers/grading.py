"""Texts in, scores out: RULERS, its ablations and its baselines behind one function."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from rubricnb.data.validate import nearest
from rubricnb.frames import Items
from rubricnb.judging.contract import Judge, Reply, Request
from rubricnb.judging.prices import Budget
from rubricnb.judging.registry import open_judge
from rubricnb.judging.run import ask
from rubricnb.judging.store import Store
from rubricnb.permutation import Design
from rubricnb.prompts import inert
from rubricnb.rulers.bundle import Bundle, rewritten
from rubricnb.rulers.compile import Criteria, criteria_of, stating_lengths
from rubricnb.rulers.grades import (
    Grades,
    as_text,
    joined,
    reads_of,
    recorded_part,
    with_categories,
)
from rubricnb.rulers.methods import METHODS, Case, Outcome, outcomes

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
    """Score texts against a rubric by one or more methods; what is recorded is not asked again.

    Parameters
    ----------
    items
        The items; a text with several criteria is put to the judge once.
    bundle
        The rubric. Its variant and its order of levels and traits are those of every method.
    judge
        A spec: texts that are recorded whole (`recorded_grades`) come from there, the others are
        asked. Or a judge from `open_judge`, which is asked. It must have the readout ``json``.
    methods
        ``rulers``; ``rulers-unlocked`` (the checklist compiled anew for every text); and the
        baselines ``dhs``, ``mts`` and ``autoscore``. Without verification: ``score_ungated``.
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
        An unknown method, items without rubrics, or a rubric with another number of levels than
        the bundle's.

    Notes
    -----
    arXiv RULERS, §3.2 and §4.2. What its paper leaves open is ours: `verify_quotes`, `score`.

    Examples
    --------
    >>> import rubricnb as rb
    >>> from rubricnb.rulers import SimulatedGrader, load_bundle
    >>> items = rb.load("minibench", n_items=30)
    >>> grades = grade(items, load_bundle("minibench"), SimulatedGrader(), store=":memory:")
    ... # doctest: +ELLIPSIS
    simulated:grader: 10 of 10 in ... s
    >>> len(grades.scores), len(grades.decisions), len(grades.evidence)
    (30, 120, 60)
    """
    names = [methods] if isinstance(methods, str) else list(methods)
    for name in names:
        if name not in METHODS:
            raise ValueError(
                f"unknown method {name!r}{nearest(name, METHODS)} There are: {', '.join(METHODS)}"
            )
    _check_items(items, bundle)
    if design is not None and (design.name == "placebo" or design.n != bundle.levels):
        raise ValueError(
            f"the design {design.name}({design.n}) does not reorder {bundle.levels} levels: take "
            f"balanced({bundle.levels}) or another over {bundle.levels}"
        )

    case: dict[str, Any] = {
        "design": design,
        "replicates": replicates,
        "temperature": temperature,
    }
    asking: dict[str, Any] = {
        **case, "seed": seed, "store": store, "fresh": fresh, "budget": budget,
    }  # fmt: skip
    if not isinstance(judge, str):
        return _asked(items, bundle, judge, names, **asking)
    of_another_seed = seed != 0 and temperature > 0
    parts: list[Grades] = []
    missing: dict[frozenset[Any], list[str]] = {}  # texts → the methods that lack them
    for name in names:
        rest = frozenset(items["text_id"])
        if not (fresh or of_another_seed):
            known = recorded_part(items, bundle, judge, name, **case, seed=seed)
            if known is not None:
                parts.append(known)
                rest -= set(known.scores["text_id"])
        if rest:
            missing.setdefault(rest, []).append(name)
    if missing:
        with closing(open_judge(judge)) as opened:
            for rest, lacking in missing.items():
                some = items[items["text_id"].isin(rest)]
                parts.append(_asked(some, bundle, opened, lacking, **asking))
    return joined(parts)


def _asked(
    items: Items,
    bundle: Bundle,
    judge: Judge,
    methods: Sequence[str],
    *,
    design: Design | None,
    replicates: int,
    temperature: float,
    seed: int,
    store: Store | str | Path | None,
    fresh: bool,
    budget: Budget | None,
) -> Grades:
    def put(requests: Sequence[Request]) -> list[Reply]:
        stated = stating_lengths(requests, judge)
        return ask(stated, judge, store, fresh, budget=budget) if requests else []

    table = _Table(judge, items)
    cases = list(_cases(items, bundle, design, replicates, temperature, seed))
    for name in methods:
        found = outcomes(name, [case for case, _ in cases], put)
        for (case, condition), outcome in zip(cases, found, strict=True):
            table.add(case, {"method": name, **condition}, outcome)
    return table.grades()


def _check_items(items: Items, bundle: Bundle) -> None:
    rubrics = getattr(items, "rubrics", None)
    if rubrics is None or not len(rubrics):
        raise ValueError("these items carry no rubrics: take them from rubricnb.load")
    levels = rubrics.groupby("rubric_id", observed=True)["score"].max()
    for rubric_id, top in levels.items():
        if top != bundle.levels:
            raise ValueError(
                f"rubric {rubric_id!r} has {top} levels and bundle {bundle.name!r} has "
                f"{bundle.levels}: take the bundle of these items"
            )


def _cases(
    items: Items,
    bundle: Bundle,
    design: Design | None,
    replicates: int,
    temperature: float,
    seed: int,
) -> Iterator[tuple[Case, dict[str, Any]]]:
    """Every text under every ordering and replicate, with the columns that tell them apart."""
    arranged: dict[tuple[int, ...], Bundle] = {}
    criteria: dict[tuple[Any, ...], Criteria] = {}
    for text_id, rows in items.groupby("text_id", sort=False, observed=True):
        first, used = rows.iloc[0], tuple(rows["rubric_id"].unique())
        qualities = _qualities(rows, bundle.levels)
        reads = reads_of(bundle, design, str(text_id), seed, replicates)
        for index, order, replicate in reads:
            if order not in arranged:
                arranged[order] = bundle.arranged(levels=order)
            if (used, order) not in criteria:
                own = items.rubrics[items.rubrics["rubric_id"].isin(used)]
                criteria[used, order] = _criteria(own, arranged[order])
            case = Case(
                arranged[order],
                criteria[used, order],
                inert(first.instruction),
                inert(first.response),
                facts={
                    "item_id": str(text_id),
                    "text_id": str(text_id),
                    "cluster_id": str(first.cluster_id),
                    "replicate": replicate,
                    "temperature": temperature,
                    "seed": seed + replicate - 1,
                    "group": str(text_id),
                },
                qualities=qualities,
            )
            yield (
                case,
                {
                    "design": design.name if design else "single",
                    "ordering_index": index,
                    "ordering": as_text(order),
                    "variant": bundle.variant,
                    "units": bundle.units,
                    "replicate": replicate,
                    "temperature": temperature,
                },
            )


def _criteria(rubrics: pd.DataFrame, bundle: Bundle) -> Criteria:
    """The rubric in natural language, worded and ordered like the bundle."""
    wording = "paraphrased" if bundle.variant == "paraphrased" else "standard"
    criteria = {
        name: (definition, rewritten(levels, bundle.variant))
        for name, (definition, levels) in criteria_of(
            rubrics, wording, [s for s, _ in bundle.traits[0].levels]
        ).items()
    }
    place = {trait.name: k for k, trait in enumerate(bundle.traits)}
    return dict(sorted(criteria.items(), key=lambda entry: place.get(entry[0], 0)))


def _qualities(rows: pd.DataFrame, levels: int) -> dict[str, float]:
    if "human" not in rows:
        return {}
    known = rows[rows["human"].notna()]
    scaled = (known["human"] - 1) / (levels - 1)
    return dict(zip(known["criterion"].astype(str), scaled.astype(float), strict=True))


class _Table:
    """Rows of the three frames, filled outcome by outcome."""

    def __init__(self, judge: Judge, items: Items) -> None:
        self.judge = judge
        columns = ["item_id", *(c for c in _FACTS if c in items)]
        self.items = {
            str(text): rows[columns].astype(object).to_dict("records")
            for text, rows in items.groupby("text_id", sort=False, observed=True)
        }
        self.scores: list[dict[str, Any]] = []
        self.decisions: list[dict[str, Any]] = []
        self.evidence: list[dict[str, Any]] = []

    def add(self, case: Case, condition: dict[str, Any], outcome: Outcome) -> None:
        """Add what one method found about one text."""
        text_id = case.facts["text_id"]
        about = {"judge": self.judge.slug, "source": self.judge.source, **condition}
        shared = about | {"lock": outcome.lock[:12]} | _measures(case, outcome)
        for item in self.items[text_id]:
            own = {
                "score": _of(outcome.scores, item["criterion"]),
                "score_ungated": _of(outcome.ungated, item["criterion"]),
            }
            self.scores.append(item | shared | own)
        key = {"text_id": text_id, **about}
        cluster = {"cluster_id": case.facts["cluster_id"]}
        self.decisions += [
            key | {"trait": trait, "item": item, "decision": decision}
            for trait, item, decision in outcome.decisions
        ]
        counted = set()
        for number, (trait, quote) in enumerate(outcome.quotes, start=1):
            valid = quote.status == "verified" and (trait, quote.unit, quote.text) not in counted
            counted.add((trait, quote.unit, quote.text))
            facts = {"trait": trait, "number": number, "valid": valid}
            self.evidence.append(
                key | cluster | facts | {"characters": len(quote.text)} | quote._asdict()
            )

    def grades(self) -> Grades:
        """Return the frames."""
        rows = (self.scores, self.decisions, self.evidence)
        return Grades(*(with_categories(pd.DataFrame(own)) for own in rows))


def _measures(case: Case, outcome: Outcome) -> dict[str, Any]:
    """The columns that all items of a text share."""
    names = _feature_names(case.bundle, outcome)
    return {
        "status": outcome.status,
        "reason": outcome.problem,
        "n_options": case.bundle.levels,
        **{f"trait_{k}": outcome.scores.get(n, np.nan) for k, n in enumerate(names, 1)},
        **{f"ungated_{k}": outcome.ungated.get(n, np.nan) for k, n in enumerate(names, 1)},
        **{
            f"invalid_{k}": outcome.invalid[n]
            for k, n in enumerate(names, 1)
            if n in outcome.invalid
        },
        "n_units": len(case.units),
        "n_quotes": len(outcome.quotes),
        "n_verified": sum(q.status == "verified" for _, q in outcome.quotes),
        "ties": outcome.ties,
        "unsupported": outcome.unsupported,
        "prompt_tokens": sum(r.prompt_tokens for r in outcome.replies),
        "cached_tokens": sum(r.cached_tokens for r in outcome.replies),
        "completion_tokens": sum(r.completion_tokens for r in outcome.replies),
        "seconds": sum(r.seconds for r in outcome.replies),
    }


def _feature_names(bundle: Bundle, outcome: Outcome) -> list[str]:
    """Traits in one order, whatever the order they were shown in."""
    by_id = sorted(bundle.traits, key=lambda t: (len(t.id), t.id))
    place = {trait.name: k for k, trait in enumerate(by_id)}
    return sorted(outcome.scores, key=lambda name: (place.get(name, len(place)), name))


def _of(scores: Mapping[str, int], criterion: str) -> float:
    """The score of the trait that is called like the criterion, else the mean of the traits."""
    if not scores:
        return float("nan")
    if criterion in scores:
        return float(scores[criterion])
    return sum(scores.values()) / len(scores)
