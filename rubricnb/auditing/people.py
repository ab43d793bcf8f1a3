"""Rows about people: agreement in rank and level, bias, and the ranking of systems."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from rubricnb.auditing import words
from rubricnb.auditing.answers import (
    KEYS,
    PLAIN,
    Answers,
    counted,
    counted_once,
    open_to_losses,
    span_and_step,
)
from rubricnb.auditing.rows import correlation_row, new_row, with_sign_test
from rubricnb.auditing.terms import (
    ALPHA,
    MARGINS,
    MODERATE_LEVEL,
    MOSTLY,
    REVERSED,
    USUAL_SPAN,
)
from rubricnb.auditing.verdicts import correlation_verdict
from rubricnb.core.estimates import intervals as inference
from rubricnb.core.estimates.intervals import Estimate
from rubricnb.core.estimates.losses import losses_of
from rubricnb.core.estimates.reasons import Reason, Reasons, Why, collect, without
from rubricnb.core.support.types import FloatArray, Records, Row
from rubricnb.corrections.raters import judge_bias, system_agreement
from rubricnb.statistics.human_agreement import linear_agreement
from rubricnb.statistics.kappa import kappa_of_sums, kappa_sums
from rubricnb.statistics.weighting import overall


def people_rows(answers: Answers) -> Records:
    """Agreement in rank and level: the mean over the criteria that have an r."""
    cells, given = answers.cells[[PLAIN, "human"]], answers.rated
    if cells.dropna().empty:
        return []
    sides, as_rated = where_both_vary(cells), _as_rated(cells)
    same, rated_alike = (same_score(cells[side]) for side in (PLAIN, "human"))
    every, names = (
        {*part.index.get_level_values("criterion")} for part in (cells, sides)
    )
    judgments = given["judgments"][given["judgments"]["criterion"].isin(names or every)]
    agreed = linear_agreement(**given | {"judgments": judgments}).iloc[0]
    n, r, kappa = int(agreed["n_clusters"]), agreed["r_macro"], Estimate()
    why = without(agreed["codes"], "r_macro")
    bounded = as_rated if rated_alike else None
    gap: Why = bounded or same or why or Reason("constant_criteria")
    notes = [gap]
    if names:
        two = sides["human"], sides[PLAIN]
        kappa, _ = mean_over_criteria(
            kappa_sums, kappa_of_sums, *two, interval=inference.fisher_jackknife_t
        )
        ratings = cells["human"].reset_index()
        reads = judgments[[*KEYS, "value"]].merge(ratings, on=KEYS).dropna()
        reads = reads.set_index(KEYS)
        pair = reads["human"], reads["value"]
        single, _ = mean_over_criteria(inference.moments, inference.correlation, *pair)
        n_reads = len(reads) / len(sides)
        of_one = Reason("mean_of_reads", n=n_reads, r=words.number(single.value))
        differs = n_reads > 1 and abs(single.value - r) >= 0.005
        left = ", ".join(sorted(every - names))
        lacking = Reason("criteria_left_out", criteria=left) if left else None
        gap = None
        notes = [
            lacking,
            why,
            _mostly("scores", judgments["whole"]),
            _mostly("ratings", sides["human"]),
            of_one if differs else None,
        ]
    of_r = agreed["r_macro_low"], agreed["r_macro_high"]
    ends = kappa.within(-1.0, 1.0).ends
    lost = losses_of(agreed["codes"])
    # Without an interval for the reason for which r has none.
    why_kappa = collect(gap, why if np.isnan(ends[0]) else None, lost)
    rows = [
        correlation_row("agreement", "agreement", n, r, of_r, collect(*notes, lost)),
        correlation_row("kappa", "agreement in level", n, kappa.value, ends, why_kappa),
    ]
    for row in rows:
        # of texts that people rate alike, a judge is right not to tell them apart
        row["constant"] = same is not None and rated_alike is None
    if names and answers.value == "expected_score":
        rows.append(_calibration(sides, n, lost))
    rows.append(_bias(answers, sides, rows[0], as_rated))
    if np.isfinite(agreed["ceiling"]) and not answers.criteria:
        rows.append(new_row("ceiling", "people among themselves", n, agreed["ceiling"]))
    return rows


def _bias(answers: Answers, sides: pd.DataFrame, ranks: Row, as_rated: Why) -> Row:
    """Mean score minus mean rating; unknown if `ranks`, the agreement, is reversed."""
    compared = judge_bias(**answers.rated).iloc[0]
    bias = Estimate(compared["bias"], **compared[[*inference.PARTS]])
    row = new_row("bias", "mean score", int(compared["n_clusters"]), bias)
    if correlation_verdict(ranks) == REVERSED:
        unknown = dict.fromkeys(("effect", *inference.PARTS), np.nan)
        return row | unknown | {"codes": (Reason("reversed_scale"),)}
    row = with_sign_test(row)
    lost = losses_of(compared["codes"])
    row["codes"] = collect(row["codes"], as_rated, lost)
    if lost:
        score = counted(answers.usual)
        rating = answers.of_items(score.index, "human").dropna()
        row = open_to_losses(row, score, counted_once(rating), answers.ends)
    span, _ = span_and_step(answers.judgments)
    if ranks["effect"] >= MODERATE_LEVEL and abs(compared["bias"]) > span / 4:
        ranges = [
            f"{sides[side].min():g} to {sides[side].max():g}"
            for side in (PLAIN, "human")
        ]
        one_scale = Reason("one_scale", scores=ranges[0], ratings=ranges[1])
        row["codes"] = collect(one_scale, losses_of(row["codes"]))
    return row


def _as_rated(cells: pd.DataFrame) -> Reason | None:
    """Say how many of other scores may differ from their ratings, if none does here."""
    known = cells.dropna()
    n = known.index.get_level_values("cluster_id").nunique()
    if n < 2 or (known[PLAIN] != known["human"]).any():
        return None
    # Of n prompts none differs with probability (1 − u)ⁿ, if a share u of all do.
    return Reason("no_exception.rated", n=n, most=1 - ALPHA ** (1 / n))


def _calibration(sides: pd.DataFrame, n: int, lost: Reasons) -> Row:
    """Slope and intercept of the ratings on the expected scores (Cox 1958).

    Not of the scores on the ratings: "texts with an expected score of 4 are rated 4 on
    average" is about texts of one expected score, and raters' errors leave it as it is.
    """
    sums = partial(inference.summands, n=np.ones(len(sides)))
    slope, intercept = (
        mean_over_criteria(sums, part, sides["human"], sides[PLAIN])[0]
        for part in (lambda own: _line(own)[0], lambda own: _line(own)[1])
    )
    line = Reason("intercept", **intercept.named("intercept", "low", "high"))
    why = collect(line if n > 1 else None, lost)
    return new_row("calibration", "calibration", n, slope, why)


def _line(sums: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Slope and intercept of a least-squares line; NaN where a side is constant."""
    x, y, xx, _, xy = inference.means_of(sums)
    r = inference.correlation(sums)
    slope = (xy - x * y) / np.where(np.isnan(r), r, xx - x * x)
    return slope, y - slope * x


def where_both_vary(sides: pd.DataFrame) -> pd.DataFrame:
    """Items with all sides known, of the criteria in which every side varies."""
    known = sides.dropna()
    levels = known.round(6).groupby(level="criterion").transform("nunique")
    return known[(levels > 1).all(axis=1)]


def same_score(scores: pd.Series) -> Reason | None:
    """Say that every text of a criterion gets the same score, if it gets one."""
    scores = scores.dropna()
    one_text = scores.index.get_level_values("criterion").nunique() == len(scores)
    if one_text or within_criterion(scores).abs().max() >= 1e-6:
        return None
    which = ", ".join(f"{score:g}" for score in np.unique(scores.round(2)))
    return Reason("same_score", scores=which)


def _mostly(what: str, values: pd.Series) -> Reason | None:
    """Say that nearly all values are one, if they are."""
    shares = values.value_counts(normalize=True)
    if not MOSTLY <= shares.max() < 1:
        return None
    return Reason("mostly", share=shares.max(), what=what, value=shares.idxmax())


def systems_rows(answers: Answers) -> Records:
    """Whether it ranks systems as people do, where people see a difference."""
    rated = answers.cells[[PLAIN, "human"]].dropna()["human"]
    if rated.empty or "candidate" not in answers.items:
        return []
    means = rated.groupby(answers.of_items(rated.index, "candidate")).mean()
    if len(means) < 3:
        return []
    tau = system_agreement(**answers.rated).iloc[0]
    row = _correlation("systems", f"{tau['n_systems']} systems", tau, "tau")
    least = MARGINS["score points"] * span_and_step(answers.judgments)[0] / USUAL_SPAN
    if np.ptp(means) / (len(means) - 1) < least:
        row |= dict.fromkeys(("effect", "low", "high"), np.nan)
        row["codes"] = (Reason("systems_close", points=least),)
    return [row]


def overall_rows(answers: Answers) -> Records:
    """Agreement of the overall score, for rated criteria whose rubric has a weight."""
    items = answers.items
    if "human" not in items or "weight" not in getattr(items, "rubrics", ()):
        return []
    whole = overall(answers.usual, items)
    given = {"judgments": whole.assign(ordering=np.nan), "items": whole.rated}
    r = linear_agreement(**answers.rated | given).iloc[0]
    return [_correlation("overall", "overall score", r, "r")]


def _correlation(measure: str, question: str, found: pd.Series, name: str) -> Row:
    """A row about a correlation of a table of a statistic."""
    n, ends = int(found["n_clusters"]), (found[f"{name}_low"], found[f"{name}_high"])
    return correlation_row(measure, question, n, found[name], ends, found["codes"])


def mean_over_criteria(
    sums_of: Any,
    statistic: Any,
    human: pd.Series,
    *sides: pd.Series,
    interval: Any = inference.jackknife_t,
) -> tuple[Estimate, FloatArray]:
    """Mean over criteria of a statistic of one side, or the second's minus the first's.

    With its interval, and the means of the sides.
    """
    names = (human.index.get_level_values(c) for c in ("cluster_id", "criterion"))
    (cluster, clusters), (code, criteria) = map(pd.factorize, names)
    each = np.stack([sums_of(s.to_numpy(), human.to_numpy()) for s in sides], axis=1)
    sums = np.zeros((len(clusters), len(sides), len(criteria), each.shape[-1]))
    np.add.at(sums.swapaxes(1, 2), (cluster, code), each)

    def means(sums: FloatArray) -> FloatArray:
        return np.asarray(statistic(sums).mean(axis=-1))

    def last(sums: FloatArray) -> FloatArray:
        return np.asarray(np.diff(means(sums), axis=-1, prepend=0.0)[..., -1])

    whole = inference.jackknife(sums, np.arange(len(sums)), last, interval)
    return whole, means(sums.sum(0))


def within_criterion(values: pd.Series) -> pd.Series:
    """Values minus the mean of their criterion."""
    return values - values.groupby(level="criterion").transform("mean")
