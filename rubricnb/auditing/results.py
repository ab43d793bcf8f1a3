"""From the answers of a judge to an audit: the rows of all questions, and its charts."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from rubricnb.auditing.answers import _KEYS, _PLAIN, _Answers, _binned, _named, _scale_of
from rubricnb.auditing.halo import _halo
from rubricnb.auditing.measures import (
    _criteria,
    _discrimination,
    _each,
    _moved,
    _noise,
    _parsed,
    _positions,
)
from rubricnb.auditing.people import _overall, _people, _systems
from rubricnb.auditing.record import Audit
from rubricnb.auditing.rows import _mean
from rubricnb.auditing.terms import MEASURES
from rubricnb.auditing.verdicts import _judged
from rubricnb.pages import check_answered, truth_of
from rubricnb.statistics import intervals as inference
from rubricnb.statistics.reads import Value, matched


def findings(
    answers: Sequence[pd.DataFrame],
    items: pd.DataFrame,
    judge: str = "judge",
    identity: str = "",
    settings: Mapping[str, Any] | None = None,
    refused: Mapping[str, str] = {},
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
    """
    check_answered(*answers)
    read = "expected_score" in answers[0] and answers[0]["expected_score"].notna().any()
    value: Value = "expected_score" if read else "score"
    asked = settings is not None
    alone, *together = (_Answers(_named(p, items, value), items, value, asked) for p in answers)
    judgments, cells = alone.judgments, alone.cells
    status = pd.concat([a["status"].astype("str") for a in answers]).value_counts()
    rows = [_parsed(status), *_each(_people, alone), *_each(_discrimination, alone)]
    rows += _noise(alone)
    why = {}
    for name, ask, parts in (
        ("halo", _halo, [alone]),
        ("systems", _systems, [alone]), ("overall", _overall, [alone]),
        ("position", _positions, [alone]),
        ("order", _moved, [alone]), ("criteria", _criteria, together),
    ):  # fmt: skip
        try:
            rows += [row for part in parts for row in ask(part)]
        except ValueError as error:  # the reason why these scores cannot answer the question
            why[name] = str(error)
    rows.sort(key=lambda row: [*MEASURES].index(row["measure"]))
    places = {row["question"]: row.pop("places") for row in rows if "places" in row}
    few = inference.effective_clusters(cells.index.get_level_values("cluster_id"))
    span, step = _scale_of(judgments)
    table = _judged(rows, few, span)
    seen = set(table["measure"])
    scores = judgments[judgments["design"] != "balanced"]
    shares = pd.crosstab(scores["condition"], _binned(scores["whole"], step), normalize="index")
    return Audit(
        judge, identity, time.time(),
        {
            "datasets": sorted(judgments["dataset"].unique()),
            "n_items": len(cells), "n_clusters": judgments["cluster_id"].nunique(),
            "effective_clusters": round(few, 2), "n_judgments": int(status.sum()),
            "alone": bool(cells.groupby(["cluster_id", "criterion"]).size().max() == 1),
            "n_rated": int(cells["human"].notna().sum()), "span": span, "step": step,
            "truth": truth_of(items) if cells["human"].notna().any() else "nothing",
            "source": ", ".join(judgments["source"].astype("str").unique()), "value": value,
            "settings": None if settings is None else dict(settings),
        },
        {str(name): int(n) for name, n in status.items()},
        table,
        {
            k: refused.get(m.get("asks", ""), why.get(k, m["lacking"]))
            for k, m in MEASURES.items() if k not in seen
        },
        _every_item(cells, alone).reset_index().rename_axis(columns=None),
        {
            "places": places,
            "scores": {k: {f"{s:g}": v for s, v in row.items()} for k, row in shares.T.items()},
            "levels": _by_rating(cells, step), "ties": _ties(cells, step),
        },
        {"model": {"identity": identity}},
    )  # fmt: skip


def _every_item(cells: pd.DataFrame, answers: _Answers) -> pd.DataFrame:
    """Cells with a row for every item that was asked about, of which some have no score."""
    every = pd.MultiIndex.from_frame(answers.judgments[_KEYS].drop_duplicates())
    cells = cells.reindex(cells.index.append(every.difference(cells.index, sort=False)))
    for name in ("human", "candidate"):
        if name in answers.items:
            cells[name] = matched(cells.index.to_frame(), answers.items, name).to_numpy()
    return cells


def _by_rating(cells: pd.DataFrame, step: float) -> dict[str, Any]:
    """Mean score minus rating at each level of the ratings, from the lowest."""
    gap = (cells[_PLAIN] - cells["human"]).dropna()
    levels = gap.groupby(_binned(cells["human"][gap.index], step))
    return {f"{level:g}": _estimate("bias", gaps) for level, gaps in levels}


def _ties(cells: pd.DataFrame, step: float) -> dict[str, Any]:
    """Share of pairs of texts of one cluster, judged on one criterion, that get the same score.

    Pairs are counted, not listed: n texts make n (n − 1) / 2, and a cluster may have thousands.
    """
    scores = _binned(cells[_PLAIN].dropna(), step).rename("score")
    cluster = ["dataset", "criterion", "cluster_id"]
    alike = scores.groupby([*cluster, scores]).size()
    pairs = _n_pairs(alike.groupby(cluster).sum())
    shares = _n_pairs(alike).groupby(cluster).sum() / pairs
    return _estimate("edits", shares[pairs > 0], (0.0, 1.0), weight=pairs[pairs > 0])


def _n_pairs(n: pd.Series) -> pd.Series:
    return n * (n - 1) // 2


def _estimate(measure: str, values: pd.Series, *bounds: Any, **more: Any) -> dict[str, Any]:
    """Return a mean with a 95 % cluster interval; None for unknown numbers."""
    row = _mean(measure, "", values, *bounds, **more)
    found = {name: row[name] for name in ("effect", "low", "high", "n_clusters")}
    n = int(more["weight"].sum()) if more else len(values)
    return {"n": n} | {k: v if v == v else None for k, v in found.items()}
