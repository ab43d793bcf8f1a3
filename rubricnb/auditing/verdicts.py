"""From rows to verdicts, by the rules in `rubricnb.auditing.terms.VERDICTS`."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from rubricnb.auditing import words
from rubricnb.auditing.gate import steady_limits
from rubricnb.auditing.rows import p_mostly_changed
from rubricnb.auditing.terms import (
    ABSENT,
    ALPHA,
    BOUNDS,
    ENOUGH_PARSED,
    FAILS,
    FOUND,
    MARGINS,
    MEASURE_TABLE,
    MEASURES,
    MODERATE,
    MODERATE_LEVEL,
    NOTED,
    REVERSED,
    SHOWN,
    SMALL,
    STRONG,
    STRONG_LEVEL,
    TOO_FEW,
    UNCLEAR,
    USUAL_SPAN,
    WEAK,
)
from rubricnb.core.estimates import intervals as inference
from rubricnb.core.estimates.intervals import Estimate
from rubricnb.core.estimates.losses import MOST_LOST, share_lost
from rubricnb.core.estimates.reasons import (
    Reason,
    Reasons,
    because_each,
    collect,
    without,
)
from rubricnb.core.support.types import Row

_COLUMNS = (
    *("measure", "question", "effect", "low", "high", "se", "df", "placebo", "flips"),
    *("flips_beyond", "p", "p_equivalent", "n_clusters", "reason", "codes"),
    *("constant", "p_steady", "p_open", "scrambled", "control"),
)


def with_verdicts(rows: Sequence[Row], few: float, span: float) -> pd.DataFrame:
    """Add verdicts, limited to what this number of effective clusters can show.

    `span`: from the lowest score to the highest, of which the margin of a mean is a
    part.
    """
    blank = {
        **dict.fromkeys(_COLUMNS, np.nan),
        "criterion": "",
        "varied": "",
        "codes": (),
        "looks": 1,
        "act": "act",
    }
    table = pd.DataFrame([{**blank, **row} for row in rows])
    table = table.join(MEASURE_TABLE[["section", "unit"]], on="measure")
    points = table["unit"].eq("score points")
    table["margin"] = table["unit"].map(MARGINS) * np.where(
        points, span / USUAL_SPAN, 1.0
    )
    # A difference of two audits reaches twice as far.
    most = table["unit"].map(BOUNDS).mask(points, span)
    most *= 1 + table["section"].eq("against")
    ends = ["low", "high"]
    table[ends] = table[ends].clip(-most, most, axis=0)
    table["p_adjusted"] = inference.benjamini_hochberg(table["p"])
    table["p_open"] = inference.benjamini_hochberg(table["p_open"].fillna(table["p"]))
    steady = table["looks"] * [_equivalent(row) for row in table.to_dict("records")]
    table["p_equivalent"] = np.minimum(1.0, steady)
    # A row may have fewer clusters than the audit: of few texts people rated.
    clusters = np.minimum(few, table["n_clusters"].replace(0, np.inf))
    table["verdict"] = [
        _verdict(row, n >= TOO_FEW)
        for row, n in zip(table.to_dict("records"), clusters, strict=True)
    ]
    tested = [*inference.PARTS, "p_adjusted", "p_equivalent"]
    table.loc[clusters < TOO_FEW, tested] = np.nan
    bare = table["measure"].eq("parsed") | table["verdict"].eq(FAILS)
    doubts = zip(table["codes"], clusters, bare, strict=True)
    table = table.assign(**because_each(*(_doubted(*row) for row in doubts)))
    table["sentence"] = [words.sentence(row) for row in table.to_dict("records")]
    table["advice"] = [words.advice(row) for row in table.to_dict("records")]
    limits = [steady_limits(rows) for _, rows in table.groupby("measure")]
    table["steady_limit"] = pd.concat(limits).clip(-most, most)
    inner = ["constant", "p_steady", "p_open", "scrambled", "control", "act"]
    return table.drop(columns=inner)


def _doubted(codes: Reasons, n: float, bare: bool) -> Reasons:
    """Say once, and last, that a row with an interval has few effective clusters."""
    if n >= inference.FEW_CLUSTERS:
        return codes
    others = without(codes, "few_clusters", "few_clusters_alike")
    if bare:
        return others
    code = "too_few" if n < TOO_FEW else "few_clusters"
    return collect(others, Reason(code, n=n, unit=words.effective(n)))


def _verdict(row: Row, enough: bool) -> str:
    """Follow the rules that `VERDICTS` states."""
    kind, effect = MEASURES[row["measure"]]["kind"], row["effect"]
    if row["constant"] is True:
        return FAILS
    if row["measure"] == "parsed":
        return SHOWN if effect >= ENOUGH_PARSED else WEAK
    untold = np.isnan(effect) or {"repeats", "unmoved"} & {*row["codes"]}
    if kind == "fact" or (kind == "noise" and untold):
        return NOTED
    if not enough:
        return UNCLEAR
    is_whole = share_lost(row["codes"]) <= MOST_LOST
    if kind == "level":
        return correlation_verdict(row) if is_whole else UNCLEAR
    if row["scrambled"] is True and is_whole:
        return FOUND
    if words.is_large(row):
        return UNCLEAR if words.may_turn(row) else FOUND
    if row["p_equivalent"] < ALPHA and is_whole:
        return SMALL if row["p_adjusted"] < ALPHA else ABSENT
    return UNCLEAR


def correlation_verdict(row: Row) -> str:
    """Follow the rules about a correlation."""
    if row["low"] >= MODERATE_LEVEL:
        return STRONG if row["low"] >= STRONG_LEVEL else MODERATE
    is_negative = row["high"] < 0 and row["effect"] <= -MODERATE_LEVEL
    if is_negative and row["measure"] != "discrimination":
        return REVERSED
    return WEAK if row["high"] < MODERATE_LEVEL else UNCLEAR


def _equivalent(row: Row) -> float:
    """The p-value of "as large as matters", in size or in the scores that change.

    Where nothing changes, clusters without an exception bound the rate of changes.
    """
    p = row["p_equivalent"]
    if MEASURES[row["measure"]]["kind"] == "effect" and np.isnan(p):
        if row["effect"] == 0 and np.isnan(row["low"]):
            p = p_mostly_changed(Estimate(0.0, se=0.0), row["n_clusters"])
        else:
            p = inference.equivalence(
                row["effect"], row["se"], row["df"] + 1, row["margin"]
            )
    return float(np.fmax(p, row["p_steady"])) if np.isfinite(p) else p
