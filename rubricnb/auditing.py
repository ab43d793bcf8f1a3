"""One page about one judge: what moves its scores that should not, and what to do about it.

Four questions: does it matter where an option stands, what the scores are called, which reference
is shown, in which order criteria are asked? Each has an effect with an interval and a test, and
says how many scores change, beside those that change under meaning-free edits and when asked again.
Questions and tests are fixed before looking; the p-values of a page are one family.
"""

from __future__ import annotations

import base64
import io
from collections.abc import Iterator
from datetime import UTC, datetime
from importlib.resources import files
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd
from jinja2 import Environment, StrictUndefined

import rubricnb
from rubricnb.frames import Items, Requests
from rubricnb.judging.contract import Judge
from rubricnb.judging.cost import estimate
from rubricnb.judging.plan import plan, plan_criteria
from rubricnb.judging.prices import Budget
from rubricnb.judging.registry import open_judge
from rubricnb.judging.run import run
from rubricnb.judging.store import Store
from rubricnb.pages import check_answered, condition_names, truth_of
from rubricnb.permutation import balanced, code, decode, descending, fixed, placebo
from rubricnb.plots import STYLE
from rubricnb.statistics import criterion_order, position_bias, score_tendency, stability
from rubricnb.statistics._inference import MARGINS as _MARGINS
from rubricnb.statistics._inference import benjamini_hochberg, cluster_mean, equivalence, t_quantile
from rubricnb.statistics._reads import Value
from rubricnb.statistics.stability import BASELINE

ALPHA = 0.05
MARGINS = {"share": _MARGINS["share"], "points": _MARGINS["delta_pos"], "following": 0.05}
"""Effects that are called nothing: in shares of reads, in score points, in points per point."""

FOUND, SMALL, ABSENT, UNCLEAR = "found", "negligible", "not found", "cannot say"
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
    max_calls: int | None = None,
    max_cost: float | None = None,
    price: tuple[float, float, float] | None = None,
) -> pd.DataFrame:
    """Audit a judge: ask it the same items in many ways, and say what moves its scores.

    Parameters
    ----------
    judge
        From `open_judge`, or a spec.
    items
        What it judges, from `load`. Several criteria per text allow the question about their order;
        graded answers (``reference_1`` …) or a full-mark one (``reference``) that about references.
    path
        Where to write the page, one HTML file that needs nothing else; default: no page.
    readout, temperature, seed
        As in `plan`.
    store
        As in `run`: an audit that was stopped goes on where it was.
    max_calls, max_cost, price
        As in `run`, for all questions together.

    Returns
    -------
    DataFrame
        One row per question: ``section``, ``question``, ``effect`` with a 95 % cluster interval
        ``low, high`` in ``unit`` (of several places the most extreme, with an interval that holds
        for all of them); ``placebo``, what meaning-free edits do (of criteria: what chance does);
        ``flips``, the share of scores that change, ``flips_placebo`` under such edits and
        ``flips_reask`` when asked again; ``p``, ``p_adjusted`` (Benjamini–Hochberg over the rows),
        ``p_equivalent`` (TOST against `MARGINS`), ``verdict``: ``found`` (p_adjusted < 0.05),
        ``not found`` (p_equivalent < 0.05), ``negligible`` (both: there, and too small to matter)
        or ``cannot say``; ``sentence``, ``advice`` and ``reason``.

    Raises
    ------
    RunInterrupted
        At a limit or on Ctrl-C, before anything is written; says how to go on.

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
        budget = Budget(None, max_calls, max_cost)
        budget.turn_to(opened, price)
        asked = audit_requests(items, readout=readout, temperature=temperature, seed=seed)
        answers = [run(requests, opened, store, budget=budget) for requests in asked]
    finally:
        if isinstance(judge, str):
            opened.close()
    check_answered(*answers)
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
    [336, 55]
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
        parts.append(plan(items, one, reference=graded, **how))
    elif "reference" in items:
        parts.append(plan(items, one, reference="auto", **how))
    asked = [pd.concat(parts, ignore_index=True)]
    criteria = items.groupby("text_id", observed=True).size().unique()
    if len(criteria) == 1 and criteria[0] > 1:
        k = int(criteria[0])
        designs = [fixed(k, 2), placebo(k, 3), balanced(k)]
        asked.append(plan_criteria(items, designs, n_options=n, **how))
    return asked


def audit_cost(
    judge: Judge | str,
    items: Items,
    readout: str = "auto",
    price: tuple[float, float, float] | None = None,
) -> pd.DataFrame:
    """Estimate what an audit would cost, as `estimate`, before anything is sent.

    Examples
    --------
    >>> import rubricnb as rb
    >>> cost = audit_cost("openai:gpt-4.1", rb.load("minibench", n_items=15))
    >>> int(cost.requests.sum())
    391
    """
    asked = audit_requests(items, readout=readout)
    return pd.concat([estimate(requests, judge, price) for requests in asked], ignore_index=True)


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
    value = _value(judgments)
    rows = [*_order(judgments, value), *_labels(judgments, value), *_reference(judgments, value)]
    if criteria is not None:
        rows += _criteria(criteria, value)
    table = pd.DataFrame(rows)
    table["p_adjusted"] = benjamini_hochberg(table["p"])
    there, small = table["p_adjusted"] < ALPHA, table["p_equivalent"] < ALPHA
    table["verdict"] = np.select([there & small, there, small], [SMALL, FOUND, ABSENT], UNCLEAR)
    table["sentence"] = [_sentence(row) for row in table.to_dict("records")]
    table["advice"] = [_advice(row) for row in table.to_dict("records")]
    return table.drop(columns="claim")


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
    figures: dict[str, list[tuple[str, str]]] = {}
    with mpl.rc_context(fname=STYLE):  # whatever style the caller's figures have
        for section, image, description in _figures(items, table, answers):
            figures.setdefault(section, []).append((image, description))
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
        sections=[s for s in _TITLES if s in set(table["section"])],
        titles=_TITLES,
        figures=figures,
        margins=MARGINS,
        expected=_value(answers[0]) == "expected_score",
        number=_number,
        percent=_percent,
        size=_size,
        p_value=_p,
    )


_TITLES = {
    "order": "Where an option stands",
    "labels": "What the scores are called",
    "reference": "Which reference is shown",
    "criteria": "In which order criteria are asked",
}
_MORE = "Judge more texts before relying on either answer; until then, keep this fixed."
_ADVICE = {  # section, or question → advice if nothing was found, and if something was
    "order": (
        "One order of the options will do for mean scores; keep it the same everywhere.",
        "Ask in balanced orders and average (rubricnb.balanced); never compare systems that were "
        "graded under different orders.",
    ),
    "position": (
        "No place among the options has to be avoided.",
        "Ask in balanced orders and average (rubricnb.balanced): every option stands equally often "
        "at every place.",
    ),
    "labels": (
        "Choose one kind of label and keep it.",
        "Do not change labels within a study, and do not compare with studies that used others.",
    ),
    "reference": (
        "A reference of a wrong score does little harm here; keep the same one for all.",
        "Show a full-mark reference or none, the same kind to all; never one of a middling score.",
    ),
    "full-mark reference": (
        "With or without a full-mark reference, the mean score is the same.",
        "Show it to all texts or to none. A shift can be a lesson as well as a bias: compare the "
        "agreement with people with it and without.",
    ),
    "criteria": (
        "Several criteria may share a call; keep their order.",
        "Ask for each criterion in a call of its own, or rotate the criteria and average.",
    ),
}


def _value(judgments: pd.DataFrame) -> Value:
    """Expected scores where probabilities were read."""
    read = "expected_score" in judgments and judgments["expected_score"].notna().any()
    return "expected_score" if read else "score"


def _order(judgments: pd.DataFrame, value: Value) -> Findings:
    rotated = judgments[judgments["design"] == "balanced"]
    found = position_bias(rotated, value=value).iloc[0]
    n = int(found["n_options"])
    shares = np.array([found.get(f"share_{p}", np.nan) for p in range(1, n + 1)], dtype=float)
    most = int(np.nanargmax(np.abs(shares - 1 / n))) + 1 if np.isfinite(shares).any() else 1
    share = shares[most - 1]
    likes = "avoids" if share < 1 / n else "likes"
    row = _row("order", f"position {most}", "percentage points", found["n_clusters"],
               f"The judge {likes} what stands at position {most}")  # fmt: skip
    ends = np.array([found.get(f"share_{most}_{end}", np.nan) for end in ("low", "high")])
    # The largest of n: an interval for all of them at once. An end may be cut off at 0 or 1.
    half = np.abs(ends - share).max() * _wider(found["n_clusters"], n)
    row |= {
        "effect": 100 * (share - 1 / n),
        "low": 100 * (np.maximum(share - half, 0.0) - 1 / n),
        "high": 100 * (np.minimum(share + half, 1.0) - 1 / n),
        "p": found.get("p_within", np.nan),
        "p_equivalent": found.get("p_equivalent", np.nan),
        "reason": _plainly(found["reason"], "chi2", "log preference"),
    }
    moved = (judgments["design"] == "balanced") & (judgments["ordering"] != _plain(n))
    return [
        row | _flips(judgments, moved),
        *_shift(judgments, "order", "descending", {"design": "descending"}, value,
                "Showing the options in descending order moves the scores"),
    ]  # fmt: skip


def _labels(judgments: pd.DataFrame, value: Value) -> Findings:
    return [
        row
        for name, labels in (("letters", "letter"), ("Roman numerals", "roman"))
        for row in _shift(
            judgments,
            "labels",
            name,
            {"labels": labels},
            value,
            f"Calling the scores by {name} moves them",
        )
    ]


def _reference(judgments: pd.DataFrame, value: Value) -> Findings:
    shown = sorted(k for k in judgments["reference_score"].astype(str).unique() if k.isdigit())
    best = str(judgments["n_options"].max())
    full = {"reference_score": best if best in shown else "auto"}
    rows = _shift(judgments, "reference", "full-mark reference", full, value,
                  "A full-mark reference moves the scores")  # fmt: skip
    graded = [k for k in shown if k != best]
    graded = graded if len(graded) > 1 else shown
    if len(graded) < 2:
        return rows
    low, high = graded[0], graded[-1]
    own = judgments[judgments["reference_score"].isin([low, high])]
    moved, flips = (stability(own, {"reference_score": low}, value=v).iloc[0]
                    for v in (value, "score"))  # fmt: skip
    steps = int(high) - int(low)
    row = _row("reference", f"reference {high} against {low}", "points per point",
               moved["n_clusters"], "The scores follow the score of the reference")  # fmt: skip
    row |= {
        "effect": moved["shift"] / steps,
        "low": moved["shift_low"] / steps,
        "high": moved["shift_high"] / steps,
        "p": moved["shift_p"],
        "reason": _plainly(moved["reason"], "no placebo reads", *_OF_OTHERS),
    }
    row |= _flips(judgments, judgments["reference_score"] == high) | {"flips": flips["flip_rate"]}
    return [*rows, _tested(row, MARGINS["following"])]


def _criteria(criteria: pd.DataFrame, value: Value) -> Findings:
    rows = []
    rotated = criteria[criteria["design"] == "balanced"]
    for found in criterion_order(rotated, value=value).to_dict("records"):
        name = str(found["criterion"])
        row = _row("criteria", name, "score points", found["n_clusters"],
                   f"The place of {name} among the criteria moves its scores")  # fmt: skip
        row |= _largest_gap(rotated[rotated["criterion"] == name], value)
        row |= {
            "p": found["p_within"],
            "p_equivalent": found["p_equivalent"],
            "placebo": found["delta_pos_null"],
            "reason": found["reason"],
        }
        own = criteria[criteria["criterion"] == name]
        usual = _plain(len(decode(str(own["criterion_ordering"].iloc[0]))))
        moved = (own["design"] == "balanced") & (own["criterion_ordering"] != usual)
        rows.append(row | _flips(own, moved))
    return rows


def _largest_gap(judgments: pd.DataFrame, value: Value) -> dict[str, float]:
    """Mean score at a criterion's best place minus that at its worst: ΔPos, with an interval."""
    by_place = judgments.pivot_table(
        value, ["cluster_id", "item_id"], "criterion_position", observed=True, aggfunc="mean"
    ).dropna()
    if by_place.empty or by_place.shape[1] < 2:
        return {}
    cells = by_place.to_numpy(np.float64)
    means = cells.mean(axis=0)
    gap = cells[:, means.argmax()] - cells[:, means.argmin()]
    cluster = pd.factorize(by_place.index.get_level_values("cluster_id"))[0]
    effect, error, n_clusters = cluster_mean(gap, cluster)
    places = cells.shape[1]
    half = error * t_quantile(n_clusters) * _wider(n_clusters, places * (places - 1) // 2)
    half = half if half > 0 else np.nan
    return {"effect": effect, "low": effect - half, "high": effect + half}


def _shift(
    judgments: pd.DataFrame,
    section: str,
    question: str,
    changed: dict[str, str],
    value: Value,
    claim: str,
) -> Findings:
    """How far one changed column moves the scores, beyond the placebo."""
    wanted = {**BASELINE, **changed}
    shown = (judgments[list(wanted)].astype(str) == pd.Series(wanted)).all(axis=1)
    if not shown.any():
        return []
    moved = _against_plain(judgments, shown, value)
    row = _row(section, question, "score points", moved["n_clusters"], claim)
    row |= {
        "effect": moved["shift_excess"],
        "low": moved["shift_excess_low"],
        "high": moved["shift_excess_high"],
        "p": moved["shift_excess_p"],
        "placebo": moved["shift_placebo"],
        "reason": _plainly(moved["reason"], *_OF_OTHERS),
    }
    return [_tested(row | _flips(judgments, shown), MARGINS["points"])]


def _against_plain(judgments: pd.DataFrame, shown: pd.Series, value: Value) -> pd.Series:
    """Compare reads of one condition with the plain prompt's, its placebo and its re-ask."""
    controls = (judgments["design"].isin(["fixed", "placebo"]) & (
        judgments["labels"] == "numeric") & (judgments["reference_score"] == "none"))  # fmt: skip
    moved = stability(judgments[shown | controls], value=value)
    return moved[moved["design"] != "placebo"].iloc[0]


def _flips(judgments: pd.DataFrame, shown: pd.Series) -> dict[str, float]:
    """Share of scores that these reads change, that edits change, that asking again changes."""
    found = _against_plain(judgments, shown, "score")
    return {f"flips{end}": float(found[f"flip_rate{end}"]) for end in ("", "_placebo", "_reask")}


def _plain(n: int) -> str:
    """Code of the order 1, 2, …, n."""
    return code(np.arange(1, n + 1))[0]


def _wider(n_clusters: float, m: int) -> float:
    """How many times wider an interval is that holds for m estimates at once (Bonferroni)."""
    n = int(n_clusters)
    return t_quantile(n, 1 - ALPHA / m) / t_quantile(n)


_OF_OTHERS = ("expected scores never tie", "no interval", "flip_rate")


def _plainly(reason: str, *known: str) -> str:
    """Leave out of a reason what is no matter of the row: parts that begin so."""
    return "; ".join(part for part in reason.split("; ") if not part.startswith(known))


def _row(section: str, question: str, unit: str, n_clusters: float, claim: str) -> dict[str, Any]:
    unknown = ("effect", "low", "high", "placebo", "flips", "flips_placebo", "flips_reask", "p",
               "p_equivalent")  # fmt: skip
    return {"section": section, "question": question, "unit": unit, "reason": "", "claim": claim,
            "n_clusters": int(n_clusters)} | dict.fromkeys(unknown, np.nan)  # fmt: skip


def _tested(row: dict[str, Any], margin: float) -> dict[str, Any]:
    """Add the test of equivalence, from the interval; where all moved alike, a sign test."""
    error = (row["high"] - row["low"]) / (2 * t_quantile(row["n_clusters"]))
    row["p_equivalent"] = equivalence(row["effect"], error, row["n_clusters"], margin)
    if np.isnan(row["low"]) and row["n_clusters"] > 1 and np.isfinite(row["effect"]):
        row["p"] = 1.0 if row["effect"] == 0 else 0.5 ** (row["n_clusters"] - 1)
        row["reason"] = "every text moved alike, which does not show that others would"
    return row


def _sentence(row: dict[str, Any]) -> str:
    claim, size, changed = row["claim"], _size(row), _changed(row)
    if row["verdict"] == FOUND:
        said = f"{claim}: {size}."
    elif row["verdict"] == SMALL:
        said = f"{claim}, but too little to matter: {size}."
    elif row["verdict"] == ABSENT:
        said = f"Not found: “{claim}”. The effect is {size}, too small to matter."
    else:
        said = f"Cannot say: “{claim}”. Measured: {size}; {_doubt(row)}."
    return f"{said} {changed}".strip()


def _doubt(row: dict[str, Any]) -> str:
    """Say why an effect that was measured is neither found nor ruled out."""
    if np.isnan(row["low"]):
        return str(row["reason"])
    if row["low"] > 0 or row["high"] < 0:
        why = (
            "the interval leaves out zero, but the p-value, adjusted for all questions of "
            f"this page, is {_p(row['p_adjusted'])}"
        )
    else:
        why = "the interval allows for nothing and for an effect that matters"
    return "; ".join(filter(None, [why, row["reason"]]))


def _size(row: dict[str, Any]) -> str:
    """An effect with its unit and interval."""
    interval = (
        f" [{_number(row['low'])}, {_number(row['high'])}]" if np.isfinite(row["low"]) else ""
    )
    return f"{_number(row['effect'])} {row['unit']}{interval}"


def _changed(row: dict[str, Any]) -> str:
    """Say how many scores change, beside both controls; nothing if that is not known."""
    if np.isnan(row["flips"]):
        return ""
    controls = [
        f"{_percent(row[name])} {words}"
        for name, words in (("flips_placebo", "under edits that mean nothing"),
                            ("flips_reask", "when asked again"))
        if np.isfinite(row[name])
    ]  # fmt: skip
    beside = f", against {' and '.join(controls)}" if controls else ""
    return f"{_percent(row['flips'])} of the scores change{beside}."


def _advice(row: dict[str, Any]) -> str:
    if row["verdict"] == UNCLEAR:
        return _MORE
    section, question = row["section"], row["question"]
    if section == "order" and question != "descending":
        section = "position"
    elif section == "reference" and question in _ADVICE:
        section = question
    return _ADVICE[section][row["verdict"] == FOUND]


def _graded(items: Items, n: int) -> list[int]:
    """Scores for which every item has a reference: two, away from the ends if possible, and n."""
    there = [
        k for k in range(1, n + 1)
        if f"reference_{k}" in items and items[f"reference_{k}"].notna().all()
    ]  # fmt: skip
    inner = [k for k in there if 1 < k < n]
    two = inner if len(inner) > 1 else there
    return sorted({*two[:1], *two[-1:], *there[-1:]} if len(two) > 1 else there)


def _reask(judge: Judge, judgments: pd.DataFrame) -> str:
    found = stability(judgments, value="score").iloc[0]
    again = f"changes {_percent(found['flip_rate_reask'])} of its scores when asked again"
    if judge.deterministic and (judgments["temperature"] == 0).all():
        again = "repeats itself when asked the same prompt again (it is asked once)"
    edited = f"{_percent(found['flip_rate_placebo'])} of its scores under edits that mean nothing"
    return f"{again}, and changes {edited}"


def _number(value: float) -> str:
    if not np.isfinite(value):
        return "–"
    return f"{value:+.2f}".replace("-", "−")


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %" if np.isfinite(share) else "–"


def _p(value: float) -> str:
    if np.isnan(value):
        return "–"
    return "< 0.001" if value < 0.001 else f"{value:.3f}"


def _figures(
    items: Items, table: pd.DataFrame, answers: list[pd.DataFrame]
) -> Iterator[tuple[str, str, str]]:
    """Yield a section, an image as a data address and its description, one figure at a time."""
    from rubricnb import plots

    rotated = answers[0][answers[0]["design"] == "balanced"]
    rotated = position_bias(rotated, value=_value(answers[0]))
    ax = plots.position_selection(rotated)
    shares = _listed(
        "Share of reads by the position chosen, from the top:", rotated.iloc[0], "share"
    )
    yield "order", _image(ax.figure, 3.4), shares
    for section, part in table.groupby("section", sort=False):
        drawn = part[(section != "order") | (part["question"] == "descending")]
        units = " or ".join(drawn["unit"].unique())
        ax = plots.forest(
            drawn.rename(columns={"effect": "estimate"}), label="question", series="unit",
            reference=0,
        )  # fmt: skip
        ax.set(xlabel=units)
        effects = "; ".join(f"{r.question}: {_number(r.effect)}" for r in drawn.itertuples())
        alt = f"Effects with intervals, in {units}: {effects}"
        yield str(section), _image(ax.figure, 1.3 + 0.45 * len(drawn)), alt
    tendency = score_tendency(answers[0][answers[0]["design"] != "balanced"], items)
    tendency["condition"] = condition_names(tendency)
    people = truth_of(items)
    ax = plots.score_tendency(tendency, people=people)
    given = [_listed(row["condition"], row, "share") for _, row in tendency.iterrows()]
    if "human_1" in tendency:
        given.insert(0, _listed(people, tendency.iloc[0], "human"))
    yield (
        "tendency",
        _image(ax.figure, 4.2),
        f"Share of each score, from the lowest: {'; '.join(given)}",
    )


def _listed(name: str, row: pd.Series, stem: str) -> str:
    """Write the shares of a row of `score_tendency` as text."""
    shares = row.filter(regex=rf"^{stem}_\d+$")
    return f"{name} {', '.join(map(_percent, shares))}"


def _image(figure: Any, height: float) -> str:
    """Return a figure as an address that holds it whole."""
    import matplotlib.pyplot as plt

    figure.set_size_inches(6.4, height)
    target = io.BytesIO()
    figure.savefig(target, format="png", dpi=144, facecolor="white")
    plt.close(figure)
    return "data:image/png;base64," + base64.b64encode(target.getvalue()).decode()
