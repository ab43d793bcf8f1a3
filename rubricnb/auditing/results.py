"""From a judge's answers to an audit: the rows of all questions, and its charts."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from rubricnb.auditing.answers import (
    KEYS,
    PLAIN,
    Answers,
    rounded,
    span_and_step,
    with_conditions,
)
from rubricnb.auditing.halo import halo_rows
from rubricnb.auditing.measures import (
    criteria_rows,
    discrimination_rows,
    moved_rows,
    noise_rows,
    on_each_criterion,
    parsed_row,
    position_rows,
)
from rubricnb.auditing.people import overall_rows, people_rows, systems_rows
from rubricnb.auditing.record import Audit
from rubricnb.auditing.terms import MEASURES
from rubricnb.auditing.verdicts import with_verdicts
from rubricnb.auditing.words import number, retest_of
from rubricnb.core.estimates import intervals as inference
from rubricnb.core.estimates.intervals import Estimate
from rubricnb.core.estimates.reads import Value
from rubricnb.core.estimates.reasons import Reason
from rubricnb.core.support.naming import check_answered, truth_of
from rubricnb.core.support.types import Ends, FloatArray, Records, Row
from rubricnb.engines.doubts import server_doubts


def findings(
    answers: Sequence[pd.DataFrame],
    items: pd.DataFrame,
    judge: str = "judge",
    identity: str = "",
    settings: Mapping[str, Any] | None = None,
    refused: Mapping[str, str] = {},
    looks: int = 1,
) -> Audit:
    """Answer the questions of an audit from its judgments.

    Parameters
    ----------
    answers
        Of the parts of `audit_requests`, or judgments made elsewhere.
    items
        What they are about.
    judge, identity, settings, refused
        Who was asked, and how; what your own template cannot ask, of `askable`.
    looks
        How often one looks at what moves the scores.
    """
    check_answered(*answers)
    read = "expected_score" in answers[0] and answers[0]["expected_score"].notna().any()
    value: Value = "expected_score" if read else "score"
    asked = settings is not None
    single, *together = (
        Answers(with_conditions(p, items, value), items, value, asked, looks)
        for p in answers
    )
    status = pd.concat([a["status"].astype("object") for a in answers]).value_counts()
    parsed = parsed_row(status, server_doubts(answers[0], items))
    rows, why = _rows(single, together, parsed)
    places = {row["question"]: row.pop("places") for row in rows if "places" in row}
    design = _design(single, int(status.sum())) | {
        "settings": None if settings is None else dict(settings),
        "looks": looks,
        "read": list(answers[0].attrs.get("reading", [])),
    }
    table = with_verdicts(rows, _effective_clusters(single), design["span"])
    unseen = {
        name: refused.get(measure.get("asks", ""), why.get(name, measure["lacking"]))
        for name, measure in MEASURES.items()
        if name not in set(table["measure"])
    }
    return Audit(
        judge,
        identity,
        time.time(),
        design,
        {str(name): int(n) for name, n in status.items()},
        table,
        unseen,
        _every_item(single)
        .reset_index()
        .rename_axis(columns=None)
        .astype(dict.fromkeys(KEYS, "str")),
        {"places": places, **_charts(single, design["step"])},
        {"model": {"identity": identity}},
    )


def _rows(
    single: Answers, together: Sequence[Answers], parsed: Row
) -> tuple[Records, dict[str, str]]:
    """Rows of all questions, and measure → why these scores cannot answer it."""
    rows = [
        parsed,
        *on_each_criterion(people_rows, single),
        *on_each_criterion(discrimination_rows, single),
        *noise_rows(single),
    ]
    retest = {row.get("criterion"): row for row in rows if "varied" in row}
    for row in rows:
        own = retest.get(row.get("criterion"))
        if own and row["measure"] == "agreement" and "unmoved" not in own["codes"]:
            name = retest_of(own["varied"].split())
            r = number(own["effect"])
            row["codes"] += (Reason("own_reliability", r=r, retest=name),)
    why = {}
    for name, ask, parts in (
        ("halo", halo_rows, [single]),
        ("systems", systems_rows, [single]),
        ("overall", overall_rows, [single]),
        ("position", position_rows, [single]),
        ("order", moved_rows, [single]),
        ("criteria", criteria_rows, together),
    ):
        try:
            rows += [row for part in parts for row in ask(part)]
        except ValueError as error:
            why[name] = str(error)
    rows.sort(key=lambda row: [*MEASURES].index(row["measure"]))
    return rows, why


def _effective_clusters(answers: Answers) -> float:
    return inference.effective_clusters(
        answers.cells.index.get_level_values("cluster_id")
    )


def _design(answers: Answers, n_judgments: int) -> Row:
    """What was asked about, and on which scale."""
    judgments, cells = answers.judgments, answers.cells
    span, step = span_and_step(judgments)
    is_rated = cells["human"].notna()
    return {
        "datasets": sorted(judgments["dataset"].unique()),
        "n_items": len(cells),
        "n_clusters": judgments["cluster_id"].nunique(),
        "effective_clusters": round(_effective_clusters(answers), 2),
        "n_judgments": n_judgments,
        "alone": bool(cells.groupby(["cluster_id", "criterion"]).size().max() == 1),
        "n_rated": int(is_rated.sum()),
        "span": span,
        "step": step,
        "truth": truth_of(answers.items) if is_rated.any() else "nothing",
        "source": ", ".join(map(str, judgments["source"].unique())),
        "value": answers.value,
    }


def _charts(answers: Answers, step: float) -> Row:
    """Shares of scores by condition, bias by rating, ratings by tenth of scores, ties.

    Of ties, pairs are counted, not listed: n texts make n (n − 1) / 2, and a cluster
    may have thousands.
    """
    scores = answers.judgments[answers.judgments["design"] != "balanced"]
    if answers.looks > 1:  # items of the first look; others had fewer conditions
        ways = scores.groupby(KEYS)["condition"].transform("nunique")
        scores = scores[ways == ways.max()]
    given = rounded(scores["whole"], step)
    shares = pd.crosstab(scores["condition"], given, normalize="index")
    shares.columns = [f"{score:g}" for score in shares.columns]
    rated = answers.cells[[PLAIN, "human"]].dropna()
    gap = rated[PLAIN] - rated["human"]
    levels = gap.groupby(rounded(rated["human"], step))
    tenth = 10 * (rated[PLAIN].rank(method="first") - 1) // len(rated)
    cluster = ["dataset", "criterion", "cluster_id"]
    given = rounded(answers.cells[PLAIN].dropna(), step).rename("score")
    alike = given.groupby([*cluster, given]).size()
    scored = alike.groupby(cluster).sum()
    pairs = scored * (scored - 1) // 2
    tied = (alike * (alike - 1) // 2).groupby(cluster).sum() / pairs
    tied = tied[pairs > 0]
    return {
        "scores": shares.to_dict("index"),
        "levels": {f"{level:g}": _estimate(gaps) for level, gaps in levels},
        "calibration": rated.groupby(tenth).mean().to_dict("records"),
        "ties": _estimate(tied, (0.0, 1.0), pairs[pairs > 0].to_numpy(float)),
    }


def _every_item(answers: Answers) -> pd.DataFrame:
    """Cells with a row for every item that was asked about, also without a score."""
    cells = answers.cells
    every = pd.MultiIndex.from_frame(answers.judgments[KEYS].drop_duplicates())
    cells = cells.reindex(cells.index.union(every, sort=False))
    for name in ("human", "candidate"):
        if name in answers.items:
            cells[name] = answers.of_items(cells.index, name)
    return cells


def _estimate(
    values: pd.Series, bounds: Ends | None = None, weight: FloatArray | None = None
) -> Row:
    """Return a mean with a 95 % cluster interval; None for unknown numbers."""
    cluster = values.index.get_level_values("cluster_id")
    found = Estimate()
    if len(values):
        found = inference.mean_t(values.to_numpy(), cluster, bounds, weight)
    known = {"effect": found.value, **found.columns("low", "high")}
    n = len(values) if weight is None else int(weight.sum())
    numbers = {k: float(v) if v == v else None for k, v in known.items()}
    return {"n": n, **numbers, "n_clusters": cluster.nunique()}
