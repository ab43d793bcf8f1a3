"""How an audit differs from another of the same texts: two judges, or then and now."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd

from rubricnb.auditing.answers import (
    ITEM,
    PLAIN,
    TWO_ANSWERS,
    counted_once,
    ends_of,
    lost_to_both,
    open_to_losses,
)
from rubricnb.auditing.people import mean_over_criteria, where_both_vary
from rubricnb.auditing.record import Audit
from rubricnb.auditing.rows import mean_row, new_row
from rubricnb.auditing.verdicts import with_verdicts
from rubricnb.core.estimates import intervals as inference
from rubricnb.core.estimates.intervals import Estimate
from rubricnb.core.estimates.reads import item_means
from rubricnb.core.estimates.reasons import Reason
from rubricnb.core.support.types import Ends, FloatArray, Records, Row
from rubricnb.corrections.raters import shift_of_systems
from rubricnb.statistics.kappa import kappa_of_sums, kappa_sums


def beside(before: Audit, now: Audit) -> Audit:
    """Add the section ``against``: the difference from another audit of the same texts.

    Parameters
    ----------
    before, now
        From `audit` or `read_audit`: two judges, two templates, or then and now.

    Returns
    -------
    Audit
        `now`; its new rows have ``a`` and ``b``, what each has, and ``effect``, the
        difference over the items that both judged, paired, with a 95 % cluster
        interval.

    Raises
    ------
    ValueError
        No item is in both.
    """
    a, b = (audit.cells.set_index(ITEM) for audit in (before, now))
    shared = a.index.intersection(b.index)
    if shared.empty:
        raise ValueError(f"{before.judge} and {now.judge} judged no item in common")
    cluster = b.loc[shared, "cluster_id"]
    a, b = (side.loc[shared].set_index(cluster, append=True) for side in (a, b))

    # What moves the scores was looked at as often as either audit did.
    looks = max(audit.design.get("looks", 1) for audit in (before, now))
    x, y = a[PLAIN], b[PLAIN]
    span = now.design["span"]
    ends = ends_of(span, x, y, b["human"])
    rows = [
        _drift("score", "mean score", x, y, ends),
        *_systems(b.get("candidate"), x, y),
        _answers_that_differ(a, b),
        *_agreement_rows(x, y, b["human"]),
    ]
    for name in sorted(set(a) & set(b) - {*_NO_CONDITION}):
        # An effect is what a condition moves beyond neutral edits, as in each audit.
        effects = a[name] - a["placebo"], b[name] - b["placebo"]
        row = _drift("effect", name, *effects, (-span, span), looks)
        rows += [row] * (row["n_clusters"] > 0)
    both = b.index[(y - x).notna()]
    few = inference.effective_clusters(both.get_level_values("cluster_id"))
    table = with_verdicts(rows, few, span)
    seen = {*table["measure"]}
    return replace(
        now,
        rows=pd.concat([now.rows, table], ignore_index=True),
        unseen={k: why for k, why in now.unseen.items() if k not in seen},
        design=now.design | {"against": before.judge},
    )


_SIDES = ("this audit", "the other")


def _drift(
    name: str,
    question: str,
    then: pd.Series,
    now: pd.Series,
    ends: Ends,
    looks: int = 1,
) -> Row:
    """A row about the mean difference of two audits, text by text."""
    row = mean_row(
        f"drift_{name}",
        question,
        now - then,
        looks=looks,
        a=then.mean(),
        b=now.mean(),
    )
    sides = counted_once(now), counted_once(then)
    row["codes"] += lost_to_both(*sides, _SIDES)
    return open_to_losses(row, *sides, ends)


def _agreement_rows(then: pd.Series, now: pd.Series, human: pd.Series) -> Records:
    """Rows about the difference of the agreements with people, over the same texts."""
    sides = {"human": human, "then": then, "now": now}
    both = where_both_vary(pd.concat(sides, axis=1))
    if len(both) <= 2:
        return []
    is_rated = human.notna()
    lost = lost_to_both(
        counted_once(now[is_rated]), counted_once(then[is_rated]), _SIDES
    )
    n = both.index.get_level_values("cluster_id").nunique()
    rows = []
    for name, sums_of, statistic in (
        ("agreement", inference.moments, inference.correlation),
        ("kappa", kappa_sums, kappa_of_sums),
    ):
        change, then_and_now = mean_over_criteria(
            sums_of, statistic, both["human"], both["then"], both["now"]
        )
        row = new_row(
            f"drift_{name}", name, n, change, a=then_and_now[0], b=then_and_now[1]
        )
        row["codes"] += lost
        rows.append(row)
    return rows


def _systems(system: pd.Series | None, then: pd.Series, now: pd.Series) -> Records:
    """Differences of the systems' rankings and means, and of a further system's."""
    if system is None:
        return []
    found = shift_of_systems(system, then.to_numpy(float), now.to_numpy(float))
    if found["n_systems"] < 3:
        return []
    used = (now - then).notna() & system.notna()
    n = used[used].index.get_level_values("cluster_id").nunique()
    numbers = {name: found[name] for name in ("tau", "lowest", "highest")}
    why = (Reason("systems_apart", **numbers), *found["codes"])
    shift = Estimate(found["shift"], found["shift_low"], found["shift_high"])
    return [
        new_row(
            "drift_systems",
            f"{found['n_systems']} systems",
            n,
            shift,
            why=why,
            a=then[used].mean(),
            b=now[used].mean(),
        )
    ]


_NO_CONDITION = (
    PLAIN,
    "placebo",
    "balanced",
    "human",
    "candidate",
    "cluster_id",
    *TWO_ANSWERS,
)


def _answers_that_differ(then: pd.DataFrame, now: pd.DataFrame) -> Row:
    """How many more answers differ between two audits than within one.

    Of an item this is on average ½ Σ (p − q)² of its two distributions of answers: 0
    for a judge that has not changed, however noisy it is.
    """
    old, new = (
        side.reindex(columns=[*TWO_ANSWERS]).to_numpy("float64") for side in (then, now)
    )

    def differ(one: FloatArray, other: FloatArray) -> FloatArray:
        return np.where(np.isnan(one + other), np.nan, one != other)

    between = item_means(differ(old[:, :, None], new[:, None]).reshape(len(old), -1))
    within = (differ(*old.T) + differ(*new.T)) / 2
    row = mean_row(
        "drift_changed",
        "answers that differ",
        pd.Series(between - within, now.index),
        (-1.0, 1.0),
        flips=inference.mean_known(between),
    )
    if np.isnan(within).all() and not np.isnan(between).all():
        row["codes"] = (Reason("not_asked_twice"),)
    row["codes"] += lost_to_both(
        counted_once(now[PLAIN]), counted_once(then[PLAIN]), _SIDES
    )
    return row
