"""Sources of a score's noise, and the best remedy for each."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import product

import numpy as np
import pandas as pd

from rubricnb.core.estimates import intervals as infer
from rubricnb.core.estimates import reads as arrays
from rubricnb.core.estimates.reads import By, Value
from rubricnb.core.estimates.reasons import Reason, Reasons, because, collect
from rubricnb.core.frames import require
from rubricnb.core.support.types import Ends, FloatArray, IntArray, Records, Row
from rubricnb.statistics.variance import henderson

FORMS = ("template", "variant", "labels", "layout", "reference_score", "exemplar")
_FACETS = {
    "judge": ("judge",),
    "form": FORMS,
    "order": ("ordering", "criterion_ordering"),
    "rater": ("rater",),
}
_AGAIN = "re-read"
_NUMBERS = (
    "variance",
    *infer.UNTESTED,
    *infer.Estimate().named("share", *infer.UNTESTED),
)
_STEPS = (1, 2, 4, 8, 16)
Prices = Mapping[str, float]
CALLS: Prices = {"call": 1.0}
PRICED = ("call", "item", "label")
_MOST = 10_000_000
_OF_PLANS = ("few_clusters", "few_clusters_alike", "no_interval.not_crossed")


def error_budget(
    judgments: pd.DataFrame, by: By = None, value: Value = "score"
) -> pd.DataFrame:
    """Split a score's variance: texts, re-reading, order, form, judge, rater.

    Parameters
    ----------
    judgments
        Judgments, crossed or not, complete or not; a placebo design is left out. Of
        people: their ratings as scores, one row a rating, with the column ``rater``.
    by
        Columns to group by. By default the judge, the dataset and every condition
        column but those of the prompt's form: these, and the order of the options, are
        sources. ``["dataset"]`` makes the judge one as well.
    value
        ``score`` or ``expected_score``.

    Returns
    -------
    DataFrame
        One row a group and ``source``:

        * ``prompt`` (what all answers to one prompt share), ``candidate``, ``item``
          (the rest); ``form`` and the like: a shift of all scores, ``form ×
          candidate``, ``form × prompt``, ``form × item``; ``re-read``: what is left
          when the same is asked again;
        * ``variance``: in squared points, untruncated (an estimate of a small one can
          be negative), with ``low, high``: 95 % cluster jackknife-t, over texts like
          these and these very forms, orders and judges;
        * ``share`` of the variance of a single score, components below 0 taken as 0,
          with ``_low`` and ``_high``;
        * ``n_levels, n_reads, n_items, n_clusters``; ``reason``: what the design cannot
          tell, and what a row therefore contains.

    Notes
    -----
    Henderson's (1953) method 1: sums of squares of the means over every source, equated
    with their expectations. For balanced data this is the analysis of variance.
    Criteria are separate texts; ``candidate`` is a candidate's mean on a criterion. A
    source is left out where it coincides with another one (one read of each text:
    ``item`` is part of ``re-read``).

    Examples
    --------
    >>> import pandas as pd
    >>> judgments = pd.DataFrame({
    ...     "item_id": list("aabbcc"), "cluster_id": list("aabbcc"),
    ...     "design": "balanced", "ordering_index": [1, 2] * 3,
    ...     "ordering": ["1-2-3", "3-2-1"] * 3, "score": [1, 2, 2, 3, 2, 3]})
    >>> table = error_budget(judgments)[["source", "variance", "n_levels"]]
    >>> table.iloc[[0, 2, 3]].round(3)
             source  variance  n_levels
    0          item     0.333         3
    2         order     0.500         2
    3  order × item     0.000         6
    """
    names = arrays.grouping(judgments, by, without=() if by else ("design", *FORMS))
    arrays.require_value(judgments, value)
    rows = [
        key | row
        for key, part in arrays.groups(arrays.without_placebo(judgments), names)
        for row in budget_of_group(part, names, value)
    ]
    # As text: pandas copies and compares attributes at every step,
    # and writes them to parquet.
    left = {str(number): row.pop("left") for number, row in enumerate(rows)}
    table = pd.DataFrame(rows)
    table.attrs["left"] = left
    return table


def rows_of(budget: pd.DataFrame) -> Records:
    """Rows of a budget; without ``left`` where it was read back from a file."""
    left = budget.attrs.get("left", {})
    rows = zip(budget.index, budget.to_dict("records"), strict=True)
    return [{**row, "left": left.get(str(number), "")} for number, row in rows]


def _asked(judgments: pd.DataFrame) -> pd.DataFrame:
    """Leave out copies: a text's reads with one key of all that changes answers."""
    if "key" not in judgments or judgments["key"].nunique() < 2:
        return judgments
    names = [
        n for n in ("judge", "dataset", "item_id", "criterion", "key") if n in judgments
    ]
    known = judgments["key"].notna() & (judgments["key"] != "")
    return judgments[~(known & judgments.duplicated(names))]


def budget_of_group(
    part: pd.DataFrame, names: Sequence[str] = (), value: Value = "score"
) -> Iterator[Row]:
    """Yield the budget of judgments that are one group and hold no read twice.

    `names`: the columns that are the same for all of them.
    """
    part = _asked(part)
    x = arrays.values_of(part, value)
    part, x = part[~np.isnan(x)], x[~np.isnan(x)]
    cluster = arrays.clusters_of(part)
    sources = _sources(part, cluster, names)
    count: Row = {"n_reads": len(x), "n_items": _levels(sources["item"])}
    count |= {"n_clusters": _levels(cluster)}
    kept, why = _distinct(sources)
    if not len(x):
        why = dict.fromkeys(sources, Reason("no_scores"))
    estimates, alias = np.full((1, len(kept)), np.nan), None
    if kept:
        estimates, alias = henderson(list(kept.values()), cluster, x - x.mean())
    equal = Reason("equal_scores") if len(x) and np.ptp(x) == 0 else None
    whole = collect(equal, alias, infer.few_clusters(cluster))
    shares = np.maximum(estimates, 0)
    total = shares.sum(axis=1, keepdims=True)
    shares = shares / np.where(total > 0, total, np.nan)
    columns = {source: k for k, source in enumerate(kept)}
    for source, code in sources.items():
        row: Row = {"source": source, **dict.fromkeys(_NUMBERS, np.nan)}
        row |= {
            "n_levels": _levels(code),
            **count,
            **because(why.get(source)),
            "left": "",
        }
        if source in columns:
            column = columns[source]
            # of all, then without each cluster; `design_for` needs ``left``
            variance, share = estimates[:, column], shares[:, column]
            v, s = (infer.jackknife_t(a[0], a[1:]) for a in (variance, share))
            row |= {"variance": v.value, **v.columns(*infer.UNTESTED)}
            row |= s.named("share", *infer.UNTESTED)
            row["share_low"], row["share_high"] = np.clip(s.ends, 0, 1)
            row["left"] = variance.tobytes().hex()
            same = {"source": source}
            parts = ", ".join(n for n, r in why.items() if r.numbers == same)
            contains = Reason("contains", sources=parts) if parts else None
            unknown = (
                ()
                if equal or alias
                else _why_no_interval(row, estimates[1:], shares[1:])
            )
            row |= because(contains, whole, unknown)
        yield row


def _why_no_interval(
    row: Row, estimates: FloatArray, shares: FloatArray
) -> Iterator[Reason]:
    """Yield why a source has no interval, from what is known without each cluster."""
    n = len(estimates)
    if n < 2:
        return
    if lacking := int(np.isnan(estimates).any(axis=1).sum()):
        yield Reason("no_interval.not_crossed", lacking=lacking, n=n)
        return
    if lacking := int(np.isnan(shares).any(axis=1).sum()):
        yield Reason("no_interval.nothing_varies", lacking=lacking, n=n)
    lows = {"variance": row["low"]} | ({} if lacking else {"share": row["share_low"]})
    names = [name for name, low in lows.items() if np.isnan(low)]
    if names:
        yield Reason("no_interval.alike", names=", ".join(names))


def _levels(code: IntArray) -> int:
    return int(code.max(initial=-1)) + 1


def _sources(
    part: pd.DataFrame, cluster: IntArray, names: Sequence[str]
) -> dict[str, IntArray]:
    """Code every source of variance; of two that coincide, the first one counts."""
    columns = [part[c] for c in ("dataset", "criterion") if c in part]
    within = [arrays.combine(columns)] if columns else []
    out = {"item": arrays.crossed([arrays.combine([part["item_id"]]), *within])}
    if within and _levels(within[0]) > 1:
        out["criterion"] = within[0]
    if "candidate" in part:
        candidate = arrays.combine([part["candidate"]])
        out["candidate"] = arrays.crossed([*within, candidate])
    out["prompt"] = arrays.crossed([cluster, *within])
    texts = dict(out)
    for facet, conditions in _FACETS.items():
        varying = [part[c] for c in conditions if c in part and c not in names]
        if not varying:
            continue
        out[facet] = code = arrays.combine(varying)
        if _levels(code) > 1:
            for name, text in texts.items():
                out[f"{facet} × {name}"] = arrays.crossed([code, text])
    return out | {_AGAIN: np.arange(len(part))}


def _distinct(
    sources: dict[str, IntArray],
) -> tuple[dict[str, IntArray], dict[str, Reason]]:
    """Keep the sources that can be separated; give the reason for every other one."""
    kept: dict[str, IntArray] = {}
    why = {}
    for name, code in sources.items():
        same = [other for other, its in kept.items() if (its == code).all()]
        if _levels(code) < 2:
            why[name] = Reason("unseen", source=name)
        elif same:
            why[name] = Reason("part_of", source=same[0])
        else:
            kept[name] = code
    return kept, why


def design_for(
    budget: pd.DataFrame,
    difference: float,
    price: Prices = CALLS,
) -> pd.DataFrame:
    """Say how many prompts each way of asking needs to detect a difference; its cost.

    Parameters
    ----------
    budget
        Of `error_budget`, fresh: a budget read back from a file gives no intervals.
    difference
        Between two candidates that answer the same prompts and are asked in the same
        forms, in points of the score. Where the budget knows one text a prompt only:
        between two sets.
    price
        ``{"call": …, "item": …}``: of a call, and of one more prompt with its two
        answers (0 if not named). A ``label``, which `advise` also knows, has no price
        here.

    Returns
    -------
    DataFrame
        One row a group and way of asking, the cheapest first: ``reads`` of the same
        (more than 1 only where the budget saw re-reads), ``orders``, ``forms``,
        ``judges``, ``raters`` (as far as there are several); ``items``: prompts for 80
        % power of a two-sided t test at 5 %, with ``items_low, items_high`` (95 %, from
        the budget's clusters; inf: no number is enough); ``calls`` for both candidates
        with ``_low, _high``; ``cost``; ``reason``.

    Raises
    ------
    ValueError
        `difference` is not positive, `price` names something else or a number below 0,
        or `budget` is not of `error_budget`.

    Notes
    -----
    The variance of the difference is 2[(σ²(item) + Σ σ²(f × item)/k +
    σ²(re-read)/calls)/n + Σ σ²(f × candidate)/k] over the facets f, k levels of each,
    and all calls about a text: the last sum does not fall with n. It is planned with
    only where its interval lies above 0: noise would otherwise buy orders, or call
    every number of prompts too small. `reason` says what its upper end would leave
    undetected.

    Examples
    --------
    >>> import rubricnb as rb
    >>> items = rb.load("minibench", n_items=60)
    >>> asked = rb.plan(items, rb.balanced(5), readout="score", seed=1)
    >>> budget = rb.error_budget(rb.simulate(asked, items, "first-biased"))
    >>> plans = design_for(budget, difference=0.5)
    >>> plans[["orders", "items", "calls"]].iloc[[0, -1]]
       orders  items   calls
    0       1  153.0   306.0
    4      10  143.0  2860.0
    """
    if not difference > 0:
        raise ValueError(
            f"difference is {difference}: give a positive number of points"
        )
    require_prices(price)
    require(budget, ["source", "variance"], "the budget")
    names = list(budget.columns[: budget.columns.get_loc("source")])
    rows: Records = []
    for key, part in arrays.groups(budget, names):
        rows += [row | key for row in designs(rows_of(part), difference, price)]
    table = pd.DataFrame(rows)
    asked = [c for c in table if c in ("reads", *(f"{f}s" for f in _FACETS))]
    table[asked] = table[asked].fillna(1).astype(int)
    return table[
        [*names, *asked, *table.columns.difference([*names, *asked], sort=False)]
    ]


def designs(budget: Records, difference: float, price: Prices) -> Records:
    """Rows of `design_for` for the budget of one group, the cheapest first."""
    sources, variances = left_out(budget)
    # preferences of a form, order or judge that may be 0, and their intervals
    doubtful = {
        row["source"]: (row["low"], row["high"])
        for row in budget
        if row["source"] in sources
        and row["source"].endswith(" × candidate")
        and not row["low"] > 0
    }
    variances[[sources.index(source) for source in doubtful]] = 0.0
    n_levels = {row["source"]: int(row["n_levels"]) for row in budget}
    levels = {f: n_levels[f] for f in _FACETS if f in sources}
    rows: Records = []
    for *ks, reads in product(
        *([k for k in _STEPS if k < n] + [n] for n in levels.values()),
        _STEPS[:4] if _AGAIN in sources else (1,),
    ):
        k, calls = dict(zip(levels, ks, strict=True)), int(np.prod(ks)) * reads
        one, floor = variance_of_difference(sources, variances, k, calls)
        n = _prompts(one[0], floor[0], difference) if one[0] > 0 else np.nan
        # One ratio for both parts: the interval is of their sum
        # at the n that is planned.
        ends = _ratios(one / np.minimum(n, _MOST) + floor)
        low, high = (_prompts(one[0] * r, floor[0] * r, difference) for r in ends)
        items = {"": n, "_low": low, "_high": high}
        row: Row = {f"{f}s": v for f, v in k.items()} | {"reads": reads}
        row |= {f"items{end}": prompts for end, prompts in items.items()}
        row |= {f"calls{end}": 2 * calls * prompts for end, prompts in items.items()}
        row["cost"] = _cost(row["calls"], n, price)
        why = [_why_no_design(n, budget, variances.shape[1])]
        for source, (low, high) in doubtful.items():
            if high > 0:
                levels_of = k[source.partition(" × ")[0]]
                most = _multiplier(10_000) * np.sqrt(2 * high / levels_of)
                found = {"low": low, "high": high, "most": most}
                why.append((Reason("left_undetected", source=source, **found),))
        rows.append(row | because(*why))
    return sorted(rows, key=lambda r: (np.isnan(r["cost"]), r["cost"], r["calls"]))


def require_prices(price: Prices) -> None:
    """Refuse prices of what has none, and those below 0."""
    for name, each in price.items():
        if name not in PRICED:
            raise ValueError(
                f"price of {name!r}: there are prices of {', '.join(PRICED)}"
            )
        if not each >= 0:
            raise ValueError(f"price of {name!r} is {each}: give a number of 0 or more")


def _cost(calls: float, prompts: float, price: Prices) -> float:
    """Price of a plan; what costs nothing adds nothing, however much of it there is."""
    if np.isnan(prompts):
        return np.nan
    amounts = ((calls, price.get("call", np.nan)), (prompts, price.get("item", 0.0)))
    return float(sum(amount * each for amount, each in amounts if each != 0))


def left_out(budget: Records) -> tuple[list[str], FloatArray]:
    """Sources of one group, a row each: the variance, then without each cluster."""
    estimated = [row for row in budget if not np.isnan(row["variance"])]
    variance = np.array([[row["variance"]] for row in estimated]).reshape(-1, 1)
    kept = [np.frombuffer(bytes.fromhex(row["left"])) for row in estimated]
    whole = len(kept) and all(
        len(v) and v[0] == e for v, (e,) in zip(kept, variance, strict=True)
    )
    return [row["source"] for row in estimated], np.array(kept) if whole else variance


def variance_of_difference(
    sources: list[str], variances: FloatArray, k: Mapping[str, int], calls: int
) -> tuple[FloatArray, FloatArray]:
    """Variance of two candidates' difference: what n prompts divide, and the rest.

    What both share, prompts and the shift of a form, cancels from their difference.
    """
    falls, stays = np.zeros((2, len(sources)))  # the two sums of eq-difference
    for i, source in enumerate(sources):
        facet, _, text = source.partition(" × ")
        if source == _AGAIN:
            falls[i] = 1 / calls
        elif "item" in (source, text):
            falls[i] = 1 / k.get(facet, 1)
        elif text == "candidate":
            stays[i] = 1 / k.get(facet, 1)
    return 2 * falls @ variances, np.maximum(2 * stays @ variances, 0.0)


def _ratios(variance: FloatArray) -> Ends:
    """Ends of the interval of a variance over its estimate."""
    low, high = infer.jackknife_t(variance[0], variance[1:]).ends
    size = variance[0] if variance[0] > 0 else np.nan
    return float(np.maximum(low, 0.0) / size), float(high / size)


def _prompts(one: float, floor: float, difference: float) -> float:
    """Smallest number of prompts whose t test detects the difference; inf: none."""
    if np.isnan(one):
        return np.nan

    def enough(n: int) -> bool:
        return _multiplier(min(n, 10_000) - 1) ** 2 * (one / n + floor) <= difference**2

    if not enough(_MOST):
        return float("inf")
    return float(2 + bisect_left(range(2, _MOST), True, key=enough))


@lru_cache(1_000)
def _multiplier(df: int) -> float:
    return infer.detectable(1.0, df)  # NaN without a degree of freedom


def _why_no_design(n: float, budget: Records, known: int) -> Reasons:
    codes = budget[0].get("codes", ())
    codes = codes if isinstance(codes, tuple) else ()  # a file keeps them as text
    if np.isnan(n):
        return collect(Reason("no_plan"), codes)
    return collect(
        None if np.isfinite(n) else Reason("never_enough"),
        None if known > 2 else Reason("no_interval.budget"),
        (code for code in codes if code in _OF_PLANS),
    )
