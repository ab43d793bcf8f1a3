"""What to do next: labels, orders, readout or texts, by what the judgments so far can tell."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pandas as pd

from rubricnb.statistics import _inference as infer
from rubricnb.statistics import _reads as arrays
from rubricnb.statistics._reads import By, FloatArray, Value
from rubricnb.statistics.agreement import agreement
from rubricnb.statistics.budget import will_permuting_help
from rubricnb.statistics.error_budget import design_for, error_budget, with_left_out
from rubricnb.statistics.labels import labels_needed, mean_with_labels
from rubricnb.statistics.variation import order_effect

ORDERS = 10
_Row = dict[str, Any]


def advise(
    judgments: pd.DataFrame,
    labels: pd.DataFrame | None = None,
    price: float | Mapping[str, float] = 1.0,
    precision: float = 0.2,
    by: By = None,
) -> pd.DataFrame:
    """List what to do next, what it should bring, and what it costs.

    Parameters
    ----------
    judgments
        Judgments so far. Two or more balanced orders of each text tell what orders are worth,
        option probabilities what another readout is worth.
    labels
        Human ratings as for `mean_with_labels`, of texts drawn at random.
    price
        Of a call, or ``{"call": …, "item": …, "label": …}`` as for `design_for`.
    precision
        What is to be told apart, in points: the half width of a mean with labels, and the
        difference of two candidates.
    by
        Columns to group by; by default judge, dataset and every condition column present.

    Returns
    -------
    DataFrame
        Five rows a group: its columns, and

        * ``step``: ``texts``, ``orders``, ``direction``, ``readout``, ``labels``; ``do``: what to
          do, in words;
        * ``gain`` with ``low, high`` (95 %), in the unit that ``gain_is`` names;
        * ``cost`` in the unit of `price`, NaN if that does not say what a label costs;
        * ``chapter`` that explains it; ``reason``: what the judgments cannot tell, or why to doubt.

    Raises
    ------
    ValueError
        No label is about a judged item; `precision` is not positive.

    Examples
    --------
    >>> import rubricnb as rb
    >>> items = rb.load("minibench", n_items=60)
    >>> asked = rb.plan(items, rb.balanced(5), readout="score", seed=1)
    >>> judgments = rb.simulate(asked, items, "first-biased")
    >>> rb.advise(judgments).set_index("step")["do"]["orders"]
    'ask one order, the same for all that you compare'
    """
    names = arrays.grouping(judgments, by, without=() if by else ("design",))
    if "design" in judgments:
        judgments = judgments[judgments["design"] != "placebo"]
    prices = dict(price) if isinstance(price, Mapping) else {"call": float(price)}
    rows = [
        key | row
        for key, part in arrays.groups(judgments, names)
        for row in _steps(part, labels, prices, precision)
    ]
    columns = [*names, "step", "do", "gain", "low", "high", "gain_is", "cost", "chapter", "reason"]
    return pd.DataFrame(rows, columns=columns)


def _steps(
    part: pd.DataFrame, labels: pd.DataFrame | None, prices: dict[str, float], precision: float
) -> Iterator[_Row]:
    part = pd.DataFrame(part)
    crossed = part[part["design"].isin(["balanced", "williams"])] if "design" in part else part[:0]
    yield _texts(part, prices, precision)
    yield _orders(crossed, prices)
    yield _direction(crossed)
    yield _readout(crossed)
    yield _labels(part, labels, prices, precision)


def _row(step: str, chapter: str, gain_is: str, **known: Any) -> _Row:
    blank: _Row = dict.fromkeys(("gain", "low", "high", "cost"), np.nan)
    return blank | {"step": step, "do": "", "gain_is": gain_is, "chapter": chapter} | known


def _texts(part: pd.DataFrame, prices: dict[str, float], precision: float) -> _Row:
    of = "prompts for this difference"
    plan = design_for(error_budget(part, by=[]), precision, prices).iloc[0]
    row = _row("texts", "23_error_budget", of, reason=plan["reason"])
    if np.isnan(plan["items"]):
        return row
    how = ", ".join(
        f"{plan[c]:.0f} {c}" for c in ("reads", "orders", "forms") if plan.get(c, 1) > 1
    )
    row |= {"gain": plan["items"], "low": plan["items_low"], "high": plan["items_high"]}
    return row | {
        "cost": plan["cost"],
        "do": f"compare two candidates on {plan['items']:.0f} prompts, {how or 'one read each'}, "
        f"to tell {precision:g} points apart",
    }


def _orders(crossed: pd.DataFrame, prices: dict[str, float]) -> _Row:
    row = _row("orders", "08_how_many_orderings", f"r of {ORDERS} orders over r of one", reason="")
    if len(crossed) == 0:
        return row | {"reason": "no balanced orders: ask twenty texts in rb.balanced(n)"}
    found = will_permuting_help(crossed, k=ORDERS, by=[]).iloc[0]
    phi = _phi(crossed, "score")
    row |= _interval(np.sqrt((1 + phi) / (1 + phi / ORDERS)))
    said = {
        "go": f"average {ORDERS} balanced orders of each text",
        "stop": "ask one order, the same for all that you compare",
        "unsure": "ask the pilot's orders of more texts before you pay for them all",
    }
    row |= {"do": said[found["verdict"]], "reason": infer.said(found["reason"], _doubt(crossed))}
    texts = crossed[["item_id", *(c for c in ("dataset", "criterion") if c in crossed)]]
    cost = (ORDERS - 1) * len(texts.drop_duplicates()) * prices.get("call", np.nan)
    row["cost"] = {"go": cost, "stop": 0.0, "unsure": np.nan}[found["verdict"]]
    if np.isnan(row["gain"]):
        row |= {"do": "", "cost": np.nan}
        row["reason"] = row["reason"] or "texts do not differ beyond noise"
    return row


def _direction(crossed: pd.DataFrame) -> _Row:
    of = "mean score, ascending minus descending"
    row = _row("direction", "11_rank_reversal", of, reason="")
    if len(crossed) == 0:
        return row | {"reason": "no balanced orders: ask twenty texts in rb.balanced(n)"}
    found = order_effect(crossed, by=[]).iloc[0]
    name = "ascending_minus_descending"
    row |= {"gain": found[name], "low": found[f"{name}_low"], "high": found[f"{name}_high"]}
    row["reason"] = found["reason"]
    if np.isnan(row["low"]):
        return row
    moves = row["low"] > 0 or row["high"] < 0
    do = "never compare scores of different orders; average both directions" if moves else (
        "no shift by direction is seen: keep one order for all that you compare"
    )  # fmt: skip
    return row | {"do": do, "cost": 0.0}


def _readout(crossed: pd.DataFrame) -> _Row:
    row = _row("readout", "04_judges_and_prompts", "r of the expected score over r of the score")
    if "expected_score" not in crossed or crossed["expected_score"].isna().all():
        return row | {"reason": "no option probabilities: ask with readout='logprobs'"}
    both = crossed[crossed["expected_score"].notna() & crossed["score"].notna()]
    one, other = _phi(both, "score"), _phi(both, "expected_score")
    row |= _interval(np.sqrt((1 + one) / (1 + other))) | {"cost": 0.0, "reason": _doubt(both)}
    better = row["low"] > 1
    row["do"] = "use the expected score" if better else "the expected score is not shown to help"
    return row if row["gain"] > 0 else row | {
        "do": "", "cost": np.nan, "reason": "texts do not differ beyond noise"
    }  # fmt: skip


def _labels(
    part: pd.DataFrame, labels: pd.DataFrame | None, prices: dict[str, float], precision: float
) -> _Row:
    row = _row("labels", "24_how_many_labels", "labels that one is worth with the judge")
    if labels is None:
        return row | {"do": "have 20 texts rated, drawn at random", "reason": "no labels"}
    needed = labels_needed(part, labels, precision, by=[]).iloc[0]
    found = mean_with_labels(part, labels, by=[]).iloc[0]
    reason = infer.said(found["reason"], needed["reason"] * (needed["reason"] != found["reason"]))
    if np.isnan(needed["needed"]):
        return row | {"do": "have 20 texts rated, drawn at random", "reason": reason}
    more = max(0.0, needed["needed"] - needed["n_labels"])
    r = agreement(part, labels.dropna(subset=["human"]), by=[]).iloc[0]
    ends = np.array([max(0.0, r["r_low"], -r["r_high"]), max(-r["r_low"], r["r_high"])])
    low, high = 1 / (1 - ends**2) * (found["n_labels"] - 3) / (found["n_labels"] - 2)
    if np.isnan(r["r_low"]):
        low, high, reason = np.nan, np.nan, infer.said(reason, r["reason"])
    elif r["r_low"] <= 0 <= r["r_high"]:
        why = "may agree with people not at all, and more reads do not mend that"
        reason = infer.said(
            reason, f"r = {r['r']:.2f} [{r['r_low']:.2f}, {r['r_high']:.2f}]: {why}"
        )
    return row | {
        "gain": found["gain"], "low": low, "high": high,
        "cost": more * prices.get("label", np.nan), "reason": reason,
        "do": f"have {more:.0f} more rated (texts drawn at random) for a mean within "
        f"{precision:g} points"
        if more
        else f"the labels suffice for {precision:g} points: report their mean with the judge's",
    }  # fmt: skip


def _phi(part: pd.DataFrame, value: Value) -> FloatArray:
    """Noise of a read over the variance between texts, order means removed; then left out."""
    budget = error_budget(part, by=[], value=value)
    variances = dict(zip(*with_left_out(budget), strict=True))
    if not ("item" in variances and len(variances) > 1 and variances["item"][0] > 0):
        return np.array([np.nan])
    noise = variances.get("order × item", 0) + variances.get("re-read", 0)
    return np.asarray(noise / variances["item"])


def _doubt(part: pd.DataFrame) -> str:
    return infer.few_clusters(arrays.clusters_of(part))


def _interval(values: FloatArray) -> _Row:
    low, high, *_ = infer.jackknife_t(float(values[0]), values[1:])
    return {"gain": float(values[0]), "low": low, "high": high}
