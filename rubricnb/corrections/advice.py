"""What to do next, given the judgments so far, and whether the judge is worth using."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from rubricnb.core.estimates import intervals as infer
from rubricnb.core.estimates import reads as arrays
from rubricnb.core.estimates.reads import By, Reads, Unanswerable
from rubricnb.core.estimates.reasons import Reason, Reasons, Why, because, collect
from rubricnb.core.frames import require
from rubricnb.core.support.types import Ends, Records, Row
from rubricnb.corrections.error_budget import (
    CALLS,
    Prices,
    budget_of_group,
    designs,
    left_out,
    require_prices,
)
from rubricnb.corrections.labels import labels_needed, mean_with_labels
from rubricnb.corrections.raters import judge_bias
from rubricnb.statistics.budget import permuting_row
from rubricnb.statistics.human_agreement import human_of, rated
from rubricnb.statistics.variance import crossed_variances, noise_ratio
from rubricnb.statistics.variation import order_effect_of

ORDERS = 10
ASK_PEOPLE = "have 20 texts rated, drawn at random"


def advise(
    judgments: pd.DataFrame,
    labels: pd.DataFrame | None = None,
    price: Prices = CALLS,
    precision: float = 0.2,
    by: By = None,
) -> pd.DataFrame:
    """Say whether a judge is worth using, then what to do next, with gain and cost.

    Parameters
    ----------
    judgments
        Judgments so far. Two or more balanced orders of each text tell what orders are
        worth, option probabilities what another readout is worth.
    labels
        Human ratings as for `mean_with_labels`, of texts drawn at random.
    price
        ``{"call": …, "item": …, "label": …}``: as for `design_for`, and of a human
        rating.
    precision
        What is to be told apart, in points of people's ratings: the half width of a
        mean with labels, and the difference of two candidates. Without labels this
        difference is one of the judge's own points.
    by
        Columns to group by; by default judge, dataset and every condition column
        present.

    Returns
    -------
    DataFrame
        Six rows a group: its columns, and

        * ``step``: ``judge``, ``texts``, ``orders``, ``direction``, ``readout``,
          ``labels``; ``do``: what to do, in words. ``judge`` asks whether its scores
          agree with people's, or without labels, whether they tell texts apart. If not,
          it is the group's only row;
        * ``gain`` with ``low, high`` (95 %), in the unit that ``gain_is`` names;
        * ``cost`` in the unit of `price`, NaN if that does not say what a label costs;
        * ``chapter`` that explains it; ``reason``: what the judgments cannot tell, or
          why to doubt.

    Raises
    ------
    ValueError
        No label is about a judged item; `precision` is not positive.

    Examples
    --------
    >>> import rubricnb as rb
    >>> items = rb.load("minibench")
    >>> asked = rb.plan(items, rb.balanced(5), readout="score", seed=1)
    >>> judgments = rb.simulate(asked, items, "first-biased")
    >>> rb.advise(judgments).set_index("step")["do"]["direction"]
    'never compare scores of different orders; average both directions'
    """
    names = arrays.grouping(judgments, by, without=() if by else ("design",))
    if labels is not None:
        require(labels, ["item_id", "human"], "labels")
        arrays.refuse_ambiguous(judgments, labels, "labels")
        arrays.matched(
            judgments.drop_duplicates(arrays.unit_columns(judgments)), labels, "human"
        )
    require_prices(price)
    judgments = arrays.without_placebo(judgments)
    rows = (
        key | row
        for key, part in arrays.groups(judgments, names)
        for row in _steps(part, labels, price, precision)
    )
    return pd.DataFrame(rows)


def _steps(
    part: pd.DataFrame,
    labels: pd.DataFrame | None,
    price: Prices,
    precision: float,
) -> Iterator[Row]:
    part = pd.DataFrame(part)
    crossed = (
        part[part["design"].isin(["balanced", "williams"])]
        if "design" in part
        else part[:0]
    )
    budget, people = [*budget_of_group(part)], _against_people(part, labels)
    judge, goes_on = _judge(budget, people)
    yield judge
    if goes_on:
        why = None
        if len(crossed) == 0:
            why = Reason("no_balanced")
        elif "ordering" not in crossed or crossed["ordering"].nunique() < 2:
            why = Reason("one_ordering_so_far")
        reads = None if why else arrays.reads(crossed)
        yield _texts(budget, people, price, precision)
        for about, answer in _OF_ORDERS.items():
            found = answer(crossed, reads, price) if reads else because(why)
            yield _row(*about) | found
        yield _labels(part, labels, people, price, precision)


def _row(
    step: str,
    chapter: str,
    gain_is: str,
    gain: float = np.nan,
    ends: Sequence[float] = (np.nan, np.nan),
    why: Why = None,
    **known: Any,
) -> Row:
    row = {"step": step, "do": "", "gain": gain, "low": ends[0], "high": ends[1]}
    row |= {"gain_is": gain_is, "cost": np.nan, "chapter": chapter}
    return row | because(why) | known


class _People(NamedTuple):
    """Correlation of the rated texts' scores with their ratings, or why unknown."""

    r: float = np.nan
    r_ends: Ends = (np.nan, np.nan)
    slope: float = np.nan  # points of the judge for one point of people's
    slope_ends: Ends = (np.nan, np.nan)
    n: int = 0
    why: Reasons = (Reason("labels.none"),)

    @property
    def agree(self) -> str:
        """Whether scores rise with ratings: yes, no, reversed, or unknown."""
        low, high = self.r_ends
        if np.isnan(low):
            return "unknown"
        return "yes" if low > 0 else "reversed" if high < 0 else "no"


def _against_people(part: pd.DataFrame, labels: pd.DataFrame | None) -> _People:
    if labels is None:
        return _People()
    reads = arrays.reads(part)
    try:
        used, x, y = rated(reads, human_of(reads, labels, "labels"))
    except Unanswerable as error:
        return _People(why=(error.reason,))
    cluster = reads.cluster[used]
    if len(y) < 4:
        return _People(n=len(y), why=(Reason("few_labels", n=len(y)),))
    found = infer.jackknife(
        infer.moments(x, y), cluster, infer.correlation, infer.fisher_jackknife_t
    )
    r = found.value
    (bias,) = judge_bias(part, labels, by=[]).to_dict("records")
    ends, n_clusters, why = found.ends, len(np.unique(cluster)), None
    if np.isnan(r):
        why = Reason("equal_scores_or_ratings")
    elif abs(r) > 1 - 1e-9 and n_clusters > 1:
        ends = infer.perfect_ends(r, n_clusters)
        why = Reason("no_exception", n=n_clusters)
    elif np.isnan(ends[0]):
        why = Reason("no_interval.r")
    slope_ends = (bias["slope_low"], bias["slope_high"])
    return _People(
        r, ends, bias["slope"], slope_ends, len(y), collect(why, bias["codes"])
    )


def _judge(budget: Records, people: _People) -> tuple[Row, bool]:
    """Whether the judge is worth using, and whether there is a basis to plan on."""
    if people.agree != "unknown":
        do = {
            "yes": f"go on: its scores rise with people's ratings (r = {people.r:.2f})",
            "no": (
                f"stop: {people.n} ratings do not show that it agrees with people; "
                "have more texts rated, or take a different judge"
            ),
            "reversed": (
                "stop: its scores fall where people's ratings rise; check whether the "
                "scale runs the other way"
            ),
        }[people.agree]
        about = "judge", "22_may_a_judge_replace_people", "r with people's ratings"
        row = _row(*about, people.r, people.r_ends, people.why, do=do)
        return row, people.agree == "yes"
    share, ends = _share_of_texts(budget)
    apart = "unknown" if np.isnan(ends[0]) else "yes" if ends[0] > 0 else "no"
    do = {
        "yes": (
            f"{ASK_PEOPLE}: a judge that tells texts apart need not agree with people"
        ),
        "no": (
            "stop: its scores of one text differ as much as those of different texts; "
            "take a different judge"
        ),
        "unknown": f"stop: ask twenty texts in rb.balanced(n), and {ASK_PEOPLE}",
    }[apart]
    told = Reason("apart.unknown") if apart == "unknown" else None
    about = "judge", "23_error_budget", "share of texts in the variance of a read"
    return _row(*about, share, ends, collect(people.why, told), do=do), apart == "yes"


def _share_of_texts(budget: Records) -> tuple[float, Ends]:
    """Share of a read's variance between texts, with its interval over clusters.

    NaN where no text was read twice: then noise is part of what looks like texts.
    """
    found = dict(zip(*left_out(budget), strict=True))
    noise = [v for name, v in found.items() if name == "re-read" or " × " in name]
    texts = [v for name, v in found.items() if name in ("item", "candidate", "prompt")]
    if not noise or not texts:
        return np.nan, (np.nan, np.nan)
    between, within = np.sum(texts, axis=0), np.sum(noise, axis=0)
    total = np.maximum(between, 0) + np.maximum(within, 0)
    share = between / np.where(total > 0, total, np.nan)
    if (share > 1 - 1e-9).all():  # no answer changes
        n = max(int(row["n_clusters"]) for row in budget)
        return 1.0, infer.perfect_ends(1.0, n) if n > 1 else (np.nan, np.nan)
    low, high = infer.jackknife_t(float(share[0]), share[1:]).ends
    return float(share[0]), (low, min(high, 1.0))


def _texts(budget: Records, people: _People, price: Prices, precision: float) -> Row:
    on_scale = people.agree == "yes"
    slope = people.slope if on_scale else 1.0
    plan = designs(budget, precision * slope, price)[0]
    about, why = (
        ("texts", "23_error_budget", "prompts for this difference"),
        plan["codes"],
    )
    if np.isnan(plan["items"]):
        return _row(*about, why=why)
    how = ", ".join(
        f"{plan[c]:.0f} {c}" for c in ("reads", "orders", "forms") if plan.get(c, 1) > 1
    )
    low, high = plan["items_low"], plan["items_high"]
    # prompts go with the square of the points that one of people's is worth
    if on_scale:
        flat, steep = people.slope_ends
        low, high = (
            low * (slope / steep) ** 2,
            np.inf if flat <= 0 else high * (slope / flat) ** 2,
        )
        ends = "" if np.isnan(flat) else f" [{flat:.2f}, {steep:.2f}]"
        why = collect(why, Reason("slope_of_people", slope=slope, ends=ends))
    points = "of people's ratings" if on_scale else "of the judge's scores"
    do = (
        f"compare two candidates on {plan['items']:.0f} prompts, "
        f"{how or 'one read each'}, to tell {precision:g} points {points} apart"
    )
    return _row(*about, plan["items"], (low, high), why, cost=plan["cost"], do=do)


def _measured(found: Row, name: str) -> Row:
    """A statistic, its interval and its reason."""
    ends = {end: found[f"{name}_{end}"] for end in ("low", "high")}
    return {"gain": found[name], **because(found["codes"]), **ends}


def _orders(crossed: pd.DataFrame, reads: Reads, price: Prices) -> Row:
    found = permuting_row(reads.value, reads.cluster, ORDERS)
    if np.isnan(found["gain"]):
        return _measured(found, "gain")
    cost = (ORDERS - 1) * len(reads.value) * price.get("call", np.nan)
    do, cost = {
        "go": (f"average {ORDERS} balanced orders of each text", cost),
        "stop": ("ask one order, the same for all that you compare", 0.0),
        "unsure": (
            "ask the pilot's orders of more texts before you pay for them all",
            np.nan,
        ),
    }[found["verdict"]]
    return _measured(found, "gain") | {"do": do, "cost": cost}


def _direction(crossed: pd.DataFrame, reads: Reads, price: Prices) -> Row:
    # of the spread, which takes the time, nothing is said
    row = _measured(order_effect_of(reads, draws=1), "ascending_minus_descending")
    if np.isnan(row["low"]):
        return row
    do = "no shift by direction is seen: keep one order for all that you compare"
    if row["low"] > 0 or row["high"] < 0:
        do = "never compare scores of different orders; average both directions"
    return row | {"do": do, "cost": 0.0}


def _readout(crossed: pd.DataFrame, score: Reads, price: Prices) -> Row:
    known = "expected_score" in crossed and arrays.probability_columns(crossed)
    if not known or crossed["expected_score"].isna().all():
        return because(Reason("ask_probabilities"))
    expected = arrays.reads(crossed, "expected_score")
    used = (score.parsed & expected.parsed).all(axis=1)
    if used.sum() < 3:
        return because(Reason("few_read_fully", n=int(used.sum())))
    cluster = score.cluster[used]
    one, other = (
        noise_ratio(crossed_variances(side.value[used], cluster))
        for side in (score, expected)
    )
    gain = np.sqrt((1 + one) / (1 + other))
    found = infer.jackknife_t(float(gain[0]), gain[1:])
    row = {"gain": found.value, **found.columns("low", "high")}
    if np.isnan(found.value):
        return row | because(Reason("texts_alike"))
    helps = found.low > 1
    do = (
        "use the expected score" if helps else "the expected score is not shown to help"
    )
    return row | {"do": do, "cost": 0.0} | because(infer.few_clusters(cluster))


_OF_ORDERS = {
    ("orders", "08_how_many_orderings", f"r of {ORDERS} orders over r of one"): _orders,
    (
        "direction",
        "11_rank_reversal",
        "mean score, ascending minus descending",
    ): _direction,
    (
        "readout",
        "04_judges_and_prompts",
        "r of the expected score over r of the score",
    ): _readout,
}


def _labels(
    part: pd.DataFrame,
    labels: pd.DataFrame | None,
    people: _People,
    price: Prices,
    precision: float,
) -> Row:
    about = "labels", "24_how_many_labels", "labels that one is worth with the judge"
    if labels is None or people.n == 0:
        return _row(*about, why=people.why, do=ASK_PEOPLE)
    needed = labels_needed(part, labels, precision, by=[]).iloc[0]
    found = mean_with_labels(part, labels, by=[]).iloc[0]
    why = collect(found["codes"], needed["codes"])
    if np.isnan(needed["needed"]):
        return _row(*about, why=why, do=ASK_PEOPLE)
    half = found["high"] - found["mean"]
    more = 0.0 if half <= precision else max(1.0, needed["needed"] - needed["n_labels"])
    ends = gain_interval(found["gain"], found["r"], people.r_ends)
    do = (
        f"the labels suffice for {precision:g} points: report their mean with the "
        "judge's"
    )
    if more:
        do = f"have {more:.0f} more rated (texts drawn at random) for a mean within "
        do += f"{precision:g} points"
    cost = more * price.get("label", np.nan)
    return _row(*about, found["gain"], ends, why, do=do, cost=cost)


def gain_interval(gain: float, r: float, r_ends: Ends) -> Ends:
    """Interval of a gain of labels with a judge, which grows as 1 / (1 − r²)."""
    ends = np.square(r_ends)
    least = 0.0 if r_ends[0] < 0 < r_ends[1] else ends.min()
    low, high = gain * (1 - r**2) / (1 - np.array([least, ends.max()]))
    return float(low), float(high)
