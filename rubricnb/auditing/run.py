"""Audit a judge: ask it the same items in many ways, and write the page.

Questions and tests are fixed before looking; the p-values of an audit are one family.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd

from rubricnb.auditing.answers import as_texts, items_of, with_own_names
from rubricnb.auditing.draw import drawn
from rubricnb.auditing.drift import beside
from rubricnb.auditing.html import NOT_ASKED_WARNING
from rubricnb.auditing.looks import about, ask_in_looks, estimated
from rubricnb.auditing.parts import changes_between, opened_with, parts_of
from rubricnb.auditing.plan import requests_for
from rubricnb.auditing.record import Audit, check_files, read_audit
from rubricnb.auditing.results import findings
from rubricnb.auditing.terms import TOO_FEW
from rubricnb.core.estimates import intervals as inference
from rubricnb.core.frames import Items, Judgments, Requests, require
from rubricnb.core.judge import Judge, PriceLike
from rubricnb.core.plan import with_readout
from rubricnb.core.prices import Budget
from rubricnb.core.rendering import askable
from rubricnb.core.run import run
from rubricnb.core.store import StoreLike, open_store
from rubricnb.core.support.naming import check_answered
from rubricnb.core.support.types import IntArray
from rubricnb.files.elsewhere import judgments as judgments_from
from rubricnb.files.reading import written_out
from rubricnb.statistics.scoring_bias import BASELINE


def audit(
    judge: Any = None,
    items: Items | None = None,
    path: str | Path | None = None,
    *,
    judgments: pd.DataFrame | str | Path | None = None,
    scale: Any = None,
    n_items: int | None = None,
    n_prompts: int | None = None,
    options: Mapping[str, Any] | None = None,
    against: Audit | str | Path | None = None,
    force: bool = False,
    looks: int = 2,
    store: StoreLike = None,
    max_calls: int | None = None,
    max_cost: float | None = None,
    price: PriceLike | None = None,
    on_cost: Callable[[pd.DataFrame], None] | None = None,
    **settings: Any,
) -> Audit:
    """Audit a judge: ask it the same items in many ways, and say if it is any good.

    Parameters
    ----------
    judge
        From `open_judge`, or what that takes. With `judgments` of several judges,
        templates or temperatures: which.
    items
        What it judges, from `load`. Several criteria per text allow the question about
        their order; graded answers (``reference_1`` …) or a full-mark one
        (``reference``) that about references.
    path
        Where to write the page, one HTML file that needs nothing else, and its numbers
        beside it as ``.json``; default: neither.
    judgments, scale
        Judgments that were made elsewhere, as in `rubricnb.judgments`; no judge is
        asked.
    n_items, n_prompts
        Draw so many items, and from so many clusters (prompts, or whatever texts
        share): whole texts, evenly from all of these. Default: all.
    options
        thinking, effort, max_tokens; any other goes to the engine's class, as
        concurrency.
    against
        An earlier audit of this judge, or its ``.json``. The judge is asked again (an
        audit that is stopped goes on with its own answers for a day, and no others
        count), and rows of the section ``against`` say what has changed.
    force
        Ask even if there are fewer than five effective clusters.
    looks
        2: from 80 effective clusters on, what moves the scores is asked about a third
        of them first, and about the others only where a question is then open. 1: all
        is asked about all.
    store
        As in `run`: an audit that was stopped goes on where it was.
    max_calls, max_cost, price
        As in `run`, for all questions together.
    on_cost
        Gets the estimate of `audit_cost` after every check, before the first request.
    **settings
        ``template`` and ``parser``, as in `open_judge`; readout, temperature, seed, …
        of `plan`.

    Returns
    -------
    Audit
        ``sentence``, ``top``, ``rows``, ``failures("order>0.2")``, ``save(path)``.

    Raises
    ------
    ValueError
        Too few clusters, not one score in the first answers, or another judge than
        before.
    RunInterrupted
        At a limit or on Ctrl-C, before anything is written; says how to go on.

    Examples
    --------
    >>> import rubricnb as rb
    >>> found = audit("simulated:letter-strict", rb.load("minibench"), store=":memory:")
    ... # doctest: +ELLIPSIS
    simulated:letter-strict: ...
    >>> found.rows.set_index("question").verdict["letters"]
    'found'
    """
    if path is not None:  # before anything is asked
        read = [
            given for given in (judgments, against) if isinstance(given, str | Path)
        ]
        check_files(path, read)
    before = read_audit(against) if isinstance(against, str | Path) else against
    if judgments is not None:
        # What limits or configures requests is refused where none is made.
        limits = {
            "n_items": n_items,
            "n_prompts": n_prompts,
            "max_calls": max_calls,
            "max_cost": max_cost,
            "options": options or None,
            **settings,
        }
        if idle := [name for name, given in limits.items() if given is not None]:
            said = "with judgments=, every row is used and no judge is asked: leave out"
            raise ValueError(f"{said} {', '.join(idle)}")
        done = _of_judgments(judge, items, judgments, scale)
        _check_same(before, done.parts)
    elif judge is None or items is None:
        raise ValueError(
            "an audit needs a judge and items, or judgments= that were made elsewhere"
        )
    else:
        require(
            items,
            ["item_id", "response"],
            "items (from rb.load; pass scores as judgments=)",
        )
        few = drawn(items, n_items, n_prompts, settings.get("seed", 0))
        _check_enough(few, force)
        budget = Budget(max_calls, max_cost)
        with opened_with(judge, options, settings, price) as (opened, asked_with):
            parts = parts_of(opened, items, asked_with)
            _check_same(before, parts)
            fresh = 0
            if before is not None:  # within a day, the same run asks it again
                with open_store(store) as kept:
                    again = f"again, after {before.judge} {before.asked!r}"
                    fresh = kept.run_begun(again, _DAY)
            ask = partial(run, judge=opened, store=store, fresh=fresh, budget=budget)
            done = _asked(opened, few, asked_with, looks, ask, on_cost)
        done.design["n_asked"] = budget.asked
        done.parts.update(parts)
        if not budget.asked:
            print(f"{done.judge}: {NOT_ASKED_WARNING}", flush=True)
    done = done if before is None else beside(before, done)
    if path is not None:
        done.save(path)
    return done


@written_out()
def _of_judgments(judge: Any, items: Items | None, judgments: Any, scale: Any) -> Audit:
    """Audit judgments that were made elsewhere."""
    is_read = items is None and hasattr(judgments, "rated")
    is_read &= isinstance(judgments, Judgments)
    table = judgments_from(judgments, items, None if is_read else scale)
    chosen = with_own_names(part_of(table, judge))
    own = str(chosen["judge"].iloc[0])
    name = own.replace("unknown", "the judge")
    name += f", {judge}" if judge is not None and str(judge) != own else ""
    return findings(
        [chosen], items_of(chosen, table.rated), name, f"judgments of {name}"
    )


def _asked(
    judge: Judge,
    items: Items,
    settings: Mapping[str, Any],
    looks: int,
    ask: Callable[[Requests], pd.DataFrame],
    on_cost: Callable[[pd.DataFrame], None] | None,
) -> Audit:
    """Ask a judge that is open, and answer the questions of an audit."""
    first_items, parts = requests_for(items, looks, **settings)
    planned = [askable(part, judge) for part in parts]
    looks = 1 if first_items is items else 2
    requests = [with_readout(part, judge) for part, _ in planned if len(part)]
    refused = {kind: why for _, reasons in planned for kind, why in reasons.items()}
    if not requests:
        raise ValueError("; ".join(refused.values()))
    if on_cost is not None:
        on_cost(estimated(requests, first_items, judge))
    # Stop early for a judge that never gives a score.
    certain = requests[0][about(requests[0], first_items).to_numpy()]
    check_answered(ask(certain.iloc[:: max(1, len(certain) // _FIRST)]))
    who = judge.slug, judge.identity, settings, refused, looks
    asked = ask_in_looks(
        requests, first_items, ask, lambda found, of: findings(found, of, *who).rows
    )
    done = findings(asked.answers, items, *who)
    done.design["calls"] = {"first": asked.first, "second": asked.second}
    return done


def _check_enough(items: pd.DataFrame, force: bool) -> None:
    few = inference.effective_clusters(pd.factorize(items["cluster_id"])[0])
    if few < TOO_FEW and not force:
        raise ValueError(
            f"{few:.1f} effective clusters (texts that share a prompt count as one): "
            f"below {TOO_FEW} results do not carry over to other texts. Use texts of "
            "more prompts (n_prompts, --n-prompts), or run anyway (force=True, "
            "--force)"
        )


def _check_same(before: Audit | None, parts: Mapping[str, Any]) -> None:
    """Refuse to report a changed judge or changed questions as drift; asks nothing."""
    if before and (changes := changes_between(before.parts, parts)):
        way_out = (
            "If this is intended, audit the judge and then compare the two audits "
            "(--compare)"
        )
        raise ValueError(f"{'; '.join(changes)}. {way_out}")


def audit_each(
    judgments: Judgments, check: Callable[[list[str]], None]
) -> Iterator[Audit]:
    """Audit every judge, template and temperature of judgments, one after the other.

    `check` is given all their names first, and may refuse them.
    """
    kind, named = _kinds(judgments)
    shown = named.groupby("judge").transform("nunique") > 1
    shown.insert(0, "judge", True)
    rows = zip(named.to_numpy(), shown.to_numpy(), strict=True)
    names = [", ".join(kind_of[is_shown]) for kind_of, is_shown in rows]
    check(names)
    for name, (_, own) in zip(names, judgments.groupby(kind), strict=True):
        done = _of_judgments(None, None, own, None)
        yield replace(done, judge=name, identity=f"judgments of {name}")


def _kinds(judgments: pd.DataFrame) -> tuple[IntArray, pd.DataFrame]:
    """Number each row's judge, template and temperature, and name these."""
    names = ["judge", "template", "temperature"]
    kind = judgments.groupby(names, sort=False, dropna=False, observed=True).ngroup()
    named = judgments.loc[~kind.duplicated(), names]
    return kind.to_numpy(), named.astype("object").fillna("unknown").astype("str")


def part_of(judgments: pd.DataFrame, name: Any = None) -> pd.DataFrame:
    """Pick the judgments of one judge, template and temperature, by name."""
    kind, named = _kinds(judgments)
    chosen = (named == str(name)).any(axis=1) | (name is None)
    absent = "" if chosen.any() else f"nothing in the judgments is named {name!r}; "
    there = named if absent else named[chosen]
    several = [f"{column} {v}" for column in named for v in there[column].unique()]
    if absent or len(several) != named.shape[1]:
        raise ValueError(
            f"{absent}an audit is about one judge, template and temperature, and the "
            f"judgments have {', '.join(several)}: name one (--judge NAME), all "
            "(--judge all; one whose name is all: rubricnb.audit('all', judgments=…)), "
            "or two to compare (--compare A B)"
        )
    if not chosen.all():
        judgments = judgments[chosen.to_numpy()[kind]]
    shown = judgments.groupby(["dataset", "criterion"], observed=True)["n_options"]
    for (_, criterion), lengths in shown.unique().items():
        if len(lengths) > 1:
            raise ValueError(
                "an audit is about one scale for each criterion, but the orderings of "
                f"{criterion!r} list {', '.join(map(str, sorted(lengths)))} options: "
                "keep the rows of one length"
            )
    plain = {**BASELINE, "layout": "rubric-last"}
    usual = {c: as_texts(judgments[c], unknown=plain[c]) for c in plain}
    design = usual["design"].cat.remove_unused_categories().cat
    others = design.categories.difference(["placebo"])
    if len(others) == 1:  # all reads are of the plain design
        usual["design"] = design.rename_categories({others[0]: "fixed"})
    return judgments.assign(**usual)


_FIRST, _DAY = 20, 86_400
