"""One page about one judge: what moves its scores that should not, and what to do about it.

Four questions, each against the re-ask and the placebo: does it matter where an option stands, what
the scores are called, which reference is shown, in which order criteria are asked? The questions
and their tests are fixed before looking; the p-values of a page are one family.
"""

from __future__ import annotations

import base64
import io
from collections.abc import Iterator
from datetime import UTC, datetime
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from jinja2 import Environment, StrictUndefined

import rubricnb
from rubricnb.frames import Items, Requests
from rubricnb.judging.contract import Judge
from rubricnb.judging.cost import estimate
from rubricnb.judging.plan import plan, plan_criteria
from rubricnb.judging.registry import open_judge
from rubricnb.judging.run import run
from rubricnb.judging.store import Store
from rubricnb.pages import condition_names
from rubricnb.permutation import balanced, descending, fixed, placebo
from rubricnb.statistics import criterion_order, position_bias, score_tendency, stability
from rubricnb.statistics._inference import mean_t, t_quantile
from rubricnb.statistics._reads import Value
from rubricnb.statistics.equivalence import equivalence
from rubricnb.statistics.families import benjamini_hochberg
from rubricnb.statistics.stability import BASELINE

ALPHA = 0.05
MARGINS = {"share": 0.02, "points": 0.1, "following": 0.05}
"""Effects that are called nothing: in shares of reads, in score points, in points per point."""

FOUND, ABSENT, UNCLEAR = "found", "not found", "cannot say"
Findings = list[dict[str, Any]]


def audit(
    judge: Judge | str,
    items: Items,
    path: str | Path | None = None,
    *,
    readout: str = "auto",
    temperature: float = 0.0,
    seed: int = 0,
    store: Store | str | Path | None = None,
) -> pd.DataFrame:
    """Audit a judge: ask it the same items in many ways, and say what moves its scores.

    Parameters
    ----------
    judge
        From `open_judge`, or a spec.
    items
        What it judges, from `load`. Several criteria per text allow the question about their order;
        graded answers (``reference_1`` …) the one about references.
    path
        Where to write the page, one HTML file that needs nothing else; default: no page.
    readout, temperature, seed
        As in `plan`.
    store
        As in `run`: an audit that was stopped goes on where it was.

    Returns
    -------
    DataFrame
        One row per question: ``section``, ``question``, ``effect`` with a 95 % cluster interval
        ``low, high`` in ``unit``, ``placebo`` (what meaning-free edits do), ``p``, ``p_adjusted``
        (Benjamini–Hochberg over the rows), ``p_equivalent`` (TOST against `MARGINS`),
        ``verdict``: ``found`` (p_adjusted < 0.05), ``not found`` (p_equivalent < 0.05) or
        ``cannot say``; ``sentence``, ``advice`` and ``reason``.

    Examples
    --------
    >>> import rubricnb as rb
    >>> found = audit("simulated:letter-strict", rb.load("minibench"), store=":memory:")
    ... # doctest: +ELLIPSIS
    simulated:letter-strict: ...
    >>> found.set_index("question").verdict["letters"]
    'found'
    """
    opened = open_judge(judge) if isinstance(judge, str) else judge
    try:
        asked = audit_requests(items, readout=readout, temperature=temperature, seed=seed)
        answers = [run(requests, opened, store) for requests in asked]
    finally:
        if isinstance(judge, str):
            opened.close()
    table = findings(*answers)
    if path is not None:
        Path(path).write_text(page(opened, items, table, answers), encoding="utf-8")
    return table


def audit_requests(
    items: Items, *, readout: str = "auto", temperature: float = 0.0, seed: int = 0
) -> list[Requests]:
    """Plan an audit: Setting 1, and Setting 2 where every text has the same several criteria.

    Examples
    --------
    >>> import rubricnb as rb
    >>> [len(requests) for requests in audit_requests(rb.load("minibench", n_items=15))]
    [324, 30]
    """
    levels = items.rubrics.loc[items.rubrics["rubric_id"].isin(items["rubric_id"]), "score"]
    n = int(levels.max())
    how: dict[str, Any] = {"readout": readout, "temperature": temperature, "seed": seed}
    orders = [fixed(n, 2), descending(n), placebo(n, 5), balanced(n)]
    one = fixed(n, 1)
    parts = [
        plan(items, orders, reference="none", **how),
        plan(items, one, labels=["letter", "roman"], reference="none", **how),
    ]
    if graded := _graded(items, n):
        parts.append(plan(items, one, reference=list(graded), **how))
    elif "reference" in items:
        parts.append(plan(items, one, reference="auto", **how))
    asked = [pd.concat(parts, ignore_index=True)]
    criteria = items.groupby("text_id", observed=True).size().unique()
    if len(criteria) == 1 and criteria[0] > 1:
        design = balanced(int(criteria[0]))
        asked.append(plan_criteria(items, design, n_options=n, **how))
    return asked


def audit_cost(judge: Judge | str, items: Items, readout: str = "auto") -> pd.DataFrame:
    """Estimate what an audit would cost, as `estimate`, before anything is sent.

    Examples
    --------
    >>> import rubricnb as rb
    >>> cost = audit_cost("openai:gpt-4.1", rb.load("minibench", n_items=15))
    >>> int(cost.requests.sum())
    354
    """
    asked = audit_requests(items, readout=readout)
    return pd.concat([estimate(requests, judge) for requests in asked], ignore_index=True)


def findings(judgments: pd.DataFrame, criteria: pd.DataFrame | None = None) -> pd.DataFrame:
    """Answer the questions of an audit from its judgments.

    Parameters
    ----------
    judgments, criteria
        Of the two parts of `audit_requests`.

    Returns
    -------
    DataFrame
        As `audit` returns.
    """
    value: Value = "expected_score" if "expected_score" in judgments and (
        judgments["expected_score"].notna().any()) else "score"  # fmt: skip
    rows = [*_order(judgments, value), *_labels(judgments, value), *_reference(judgments, value)]
    if criteria is not None:
        rows += _criteria(criteria, value)
    table = pd.DataFrame(rows)
    table["p_adjusted"] = benjamini_hochberg(table["p"])
    table["verdict"] = np.select(
        [table["p_adjusted"] < ALPHA, table["p_equivalent"] < ALPHA], [FOUND, ABSENT], UNCLEAR
    )
    table["sentence"] = [_sentence(row) for row in table.to_dict("records")]
    table["advice"] = [
        _ADVICE[r.section][r.verdict == FOUND] if r.verdict != UNCLEAR else _MORE
        for r in table.itertuples()
    ]
    return table


def page(judge: Judge, items: Items, table: pd.DataFrame, answers: list[pd.DataFrame]) -> str:
    """Write the page of an audit: HTML with its style and its figures in it.

    Parameters
    ----------
    judge, items
        Who was asked, about what.
    table
        From `findings`.
    answers
        The judgments it was made from.

    Returns
    -------
    str
        A whole HTML document that loads nothing.
    """
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True)
    template = environment.from_string(
        (files("rubricnb") / "auditing.jinja").read_text(encoding="utf-8")
    )
    both = pd.concat([a[["status", "dataset"]].astype(str) for a in answers])
    return template.render(
        judge=judge,
        datasets=", ".join(both["dataset"].unique()),
        n_items=len(items),
        n_clusters=items["cluster_id"].nunique(),
        n_reads=sum(map(len, answers)),
        status=both["status"].value_counts().to_dict(),
        readout=", ".join(map(str, answers[0]["readout"].unique())),
        source=", ".join(map(str, answers[0]["source"].unique())),
        reask=_reask(judge, answers[0]),
        date=datetime.now(UTC).date().isoformat(),
        version=rubricnb.__version__,
        rows=table.to_dict("records"),
        sections=[s for s in _ADVICE if s in set(table["section"])],
        titles=_TITLES,
        figures=dict(_figures(items, table, answers)),
        number=_number,
    )


_TITLES = {
    "order": "Where an option stands",
    "labels": "What the scores are called",
    "reference": "Which reference is shown",
    "criteria": "In which order criteria are asked",
}
_MORE = "Judge more texts before relying on either answer; until then, keep this fixed."
_ADVICE = {  # section → advice if nothing was found, and if something was
    "order": (
        "One order of the options will do for mean scores; keep it the same everywhere.",
        "Ask in balanced orders and average (rubricnb.balanced); never compare systems that were "
        "graded under different orders.",
    ),
    "labels": (
        "Choose one kind of label and keep it.",
        "Do not change labels within a study, and do not compare with studies that used others.",
    ),
    "reference": (
        "A reference of a wrong score does little harm here; keep the same one for all.",
        "Show a full-mark reference or none, the same kind to all; never one of a middling score.",
    ),
    "criteria": (
        "Several criteria may share a call; keep their order.",
        "Ask for each criterion in a call of its own, or rotate the criteria and average.",
    ),
}


def _order(judgments: pd.DataFrame, value: Value) -> Findings:
    rotated = judgments[judgments["design"] == "balanced"]
    found = position_bias(rotated, value=value).iloc[0]
    n = int(found["n_options"])
    shares = np.array([found.get(f"share_{p}", np.nan) for p in range(1, n + 1)], dtype=float)
    most = int(np.nanargmax(np.abs(shares - 1 / n))) + 1 if np.isfinite(shares).any() else 1
    row = _row("order", f"position {most}", "share of reads above 1/n", found["n_clusters"])
    row |= {
        "effect": shares[most - 1] - 1 / n,
        "low": found.get(f"share_{most}_low", np.nan) - 1 / n,
        "high": found.get(f"share_{most}_high", np.nan) - 1 / n,
        "p": found.get("p_within", np.nan),
        "p_equivalent": found.get("p_equivalent", np.nan),
        "reason": found["reason"],
    }
    return [row, *_shift(judgments, "order", "descending", {"design": "descending"}, value)]


def _labels(judgments: pd.DataFrame, value: Value) -> Findings:
    return [
        *_shift(judgments, "labels", "letters", {"labels": "letter"}, value),
        *_shift(judgments, "labels", "Roman numerals", {"labels": "roman"}, value),
    ]


def _reference(judgments: pd.DataFrame, value: Value) -> Findings:
    shown = sorted(k for k in judgments["reference_score"].astype(str).unique() if k.isdigit())
    if len(shown) < 2:
        changed = {"reference_score": "auto"}
        return _shift(judgments, "reference", "full-mark reference", changed, value)
    low, high = shown[0], shown[-1]
    own = judgments[judgments["reference_score"].isin([low, high])]
    moved = stability(own, {"reference_score": low}, value=value).iloc[0]
    steps = int(high) - int(low)
    row = _row("reference", f"reference {high} against {low}", "points per point",
               moved["n_clusters"])  # fmt: skip
    row |= {
        "effect": moved["shift"] / steps,
        "low": moved["shift_low"] / steps,
        "high": moved["shift_high"] / steps,
        "p": moved["shift_p"],
        "reason": moved["reason"].replace("no placebo reads to compare with", "").strip("; "),
    }
    return [_tested(row, MARGINS["following"])]


def _criteria(criteria: pd.DataFrame, value: Value) -> Findings:
    last = int(criteria["criterion_position"].max())
    rows = []
    for found in criterion_order(criteria, value=value).to_dict("records"):
        own = criteria[criteria["criterion"] == found["criterion"]]
        place = own["criterion_position"].map({1: "first", last: "last"})
        wide = own.pivot_table(
            value, ["cluster_id", "item_id"], place, observed=True, aggfunc="mean"
        ).dropna()
        row = _row("criteria", str(found["criterion"]), "score points, asked first minus last",
                   found["n_clusters"])  # fmt: skip
        if {"first", "last"} <= set(wide):
            gap = (wide["first"] - wide["last"]).to_numpy(np.float64)
            cluster = pd.factorize(wide.index.get_level_values("cluster_id"))[0]
            row["low"], row["high"], _, _ = mean_t(gap, cluster)
            row["effect"] = float(gap.mean()) if len(gap) else np.nan
        row |= {
            "p": found["p_within"],
            "p_equivalent": found["p_equivalent"],
            "placebo": found["delta_pos_null"],
            "reason": found["reason"],
        }
        rows.append(row)
    return rows


def _shift(
    judgments: pd.DataFrame, section: str, question: str, changed: dict[str, str], value: Value
) -> Findings:
    """How far one changed column moves the scores, beyond the placebo."""
    wanted = {**BASELINE, **changed}
    shown = (judgments[list(wanted)].astype(str) == pd.Series(wanted)).all(axis=1)
    if not shown.any():
        return []
    controls = (judgments["design"].isin(["fixed", "placebo"]) & (
        judgments["labels"] == "numeric") & (judgments["reference_score"] == "none"))  # fmt: skip
    moved = stability(judgments[shown | controls], value=value)
    moved = moved[(moved[list(wanted)].astype(str) == pd.Series(wanted)).all(axis=1)].iloc[0]
    row = _row(section, question, "score points", moved["n_clusters"])
    row |= {
        "effect": moved["shift_excess"],
        "low": moved["shift_excess_low"],
        "high": moved["shift_excess_high"],
        "p": moved["shift_excess_p"],
        "placebo": moved["shift_placebo"],
        "reason": moved["reason"]
        .replace("expected scores never tie: no flip rate", "")
        .strip("; "),
    }
    return [_tested(row, MARGINS["points"])]


def _row(section: str, question: str, unit: str, n_clusters: float) -> dict[str, Any]:
    empty = dict.fromkeys(("effect", "low", "high", "placebo", "p", "p_equivalent"), np.nan)
    return {"section": section, "question": question, "unit": unit, "reason": ""} | empty | {
        "n_clusters": int(n_clusters)}  # fmt: skip


def _tested(row: dict[str, Any], margin: float) -> dict[str, Any]:
    """Add the test of equivalence, from the interval."""
    error = (row["high"] - row["low"]) / (2 * t_quantile(row["n_clusters"]))
    row["p_equivalent"] = equivalence(row["effect"], error, row["n_clusters"], margin)
    if error == 0 and np.isnan(row["p"]):  # every item moved alike: no t, and no doubt
        row["p"] = 1.0 if row["effect"] == 0 else 0.0
    return row


def _sentence(row: dict[str, Any]) -> str:
    share = row["unit"].startswith("share")
    scale, unit = (100, "percentage points") if share else (1, row["unit"])
    size = f"{_number(scale * row['effect'])} {unit}"
    if np.isfinite(row["low"]):
        size += f" [{_number(scale * row['low'])}, {_number(scale * row['high'])}]"
    claim = {
        "order": "Showing the options in descending order moves the scores",
        "labels": f"Calling the scores by {row['question']} moves them",
        "reference": f"The reference moves the scores ({row['question']})",
        "criteria": f"The place of {row['question']} among the criteria moves its scores",
    }[row["section"]]
    if share:
        claim = f"The judge likes or avoids what stands at {row['question']}"
    if row["verdict"] == FOUND:
        return f"{claim}: {size}."
    if row["verdict"] == ABSENT:
        return f"Not found: “{claim}”. The effect is {size}, too small to matter."
    why = row["reason"] or "the interval allows for nothing and for an effect that matters"
    return f"Cannot say: “{claim}”. Measured: {size}; {why}."


def _graded(items: Items, n: int) -> tuple[int, int] | None:
    """Two scores for which every item has a reference answer, away from the ends if possible."""
    there = [
        k for k in range(1, n + 1)
        if f"reference_{k}" in items and items[f"reference_{k}"].notna().all()
    ]  # fmt: skip
    inner = [k for k in there if 1 < k < n]
    chosen = inner if len(inner) > 1 else there
    return (chosen[0], chosen[-1]) if len(chosen) > 1 else None


def _reask(judge: Judge, judgments: pd.DataFrame) -> str:
    found = stability(judgments, value="score").iloc[0]
    again = f"changes {100 * found['flip_rate_reask']:.0f} % of its scores when asked again"
    if judge.deterministic and (judgments["temperature"] == 0).all():
        again = "repeats itself when asked the same prompt again (it is asked once)"
    edited = f"{100 * found['flip_rate_placebo']:.0f} % of its scores under edits that mean nothing"
    return f"{again}, and changes {edited}"


def _number(value: float) -> str:
    if not np.isfinite(value):
        return "–"
    return f"{value:+.2f}".replace("-", "−")


def _figures(
    items: Items, table: pd.DataFrame, answers: list[pd.DataFrame]
) -> Iterator[tuple[str, tuple[str, str]]]:
    """Yield, for each section, an image as a data address and its description."""
    from rubricnb import plots

    for section, part in table.groupby("section", sort=False):
        drawn = part[part["unit"] != "share of reads above 1/n"]
        drawn = drawn.rename(columns={"effect": "estimate"})
        if section == "order":
            rotated = answers[0][answers[0]["design"] == "balanced"]
            shares = position_bias(rotated, value="score").assign(value="share of reads")
            ax = plots.position_selection(rotated)
            alt = "Share of reads by the position of the chosen option: " + ", ".join(
                f"{p}: {100 * shares[f'share_{p}'].iloc[0]:.0f} %"
                for p in range(1, int(shares["n_options"].iloc[0]) + 1)
            )
        else:
            ax = plots.forest(drawn, label="question", series="unit", reference=0)
            ax.set(xlabel=str(drawn["unit"].iloc[0]))
            alt = "Effects with intervals: " + "; ".join(
                f"{r.question}: {_number(r.estimate)}" for r in drawn.itertuples()
            )
        yield str(section), (_image(ax.figure, 3.4 if section == "order" else 2.6), alt)
    tendency = score_tendency(answers[0][answers[0]["design"] != "balanced"], items)
    tendency["condition"] = condition_names(tendency)
    ax = plots.score_tendency(tendency)
    yield "tendency", (_image(ax.figure, 4.2), "Per cent of each score under every condition")


def _image(figure: Any, height: float) -> str:
    """Return a figure as an address that holds it whole."""
    import matplotlib.pyplot as plt

    figure.set_size_inches(6.4, height)
    target = io.BytesIO()
    figure.savefig(target, format="png", dpi=144, facecolor="white")
    plt.close(figure)
    return "data:image/png;base64," + base64.b64encode(target.getvalue()).decode()
