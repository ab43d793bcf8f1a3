"""Answers to one kind of prompt, and the values that several questions share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from rubricnb.auditing.plan import references_of
from rubricnb.auditing.rows import level_of, p_mostly_changed, p_moved
from rubricnb.auditing.terms import MARGINS
from rubricnb.core.estimates import intervals as inference
from rubricnb.core.estimates.intervals import mean_known
from rubricnb.core.estimates.losses import (
    are_closed,
    difference_bounds,
    lost_scores,
    open_sign,
    reads_lost,
)
from rubricnb.core.estimates.reads import Value, codes_of, matched, values_of
from rubricnb.core.estimates.reasons import Reason, Reasons
from rubricnb.core.permutation import decode, ranks
from rubricnb.core.support.counting import binned
from rubricnb.core.support.naming import condition_names
from rubricnb.core.support.types import Ends, FloatArray, Row

ITEM = ["dataset", "item_id", "criterion"]
KEYS = [*ITEM, "cluster_id"]
PLAIN = "baseline"
TWO_ANSWERS = ("first_answer", "second_answer")


@dataclass(frozen=True)
class Answers:
    """Judgments of one kind of prompt, and the values that several questions share."""

    judgments: pd.DataFrame
    items: pd.DataFrame
    value: Value
    asked: bool = False  # by this audit, each criterion in a call of its own
    looks: int = 1  # at what moves the scores

    @cached_property
    def usual(self) -> pd.DataFrame:
        """Reads of the plain prompt; all reads if the prompt is not the book's."""
        plain = self.under(PLAIN)
        return plain if len(plain) else self.judgments

    def under(self, condition: str) -> pd.DataFrame:
        """Reads under a condition, by its name."""
        return self.judgments[self.judgments["condition"] == condition]

    @cached_property
    def edited(self) -> pd.DataFrame:
        """Reads of the plain prompt under neutral edits."""
        return self.under("placebo")

    def of_items(self, index: pd.MultiIndex, name: str) -> pd.Series:
        """Return what the items of an index have in a column."""
        return pd.Series(matched(index.to_frame(), self.items, name).to_numpy(), index)

    @cached_property
    def criteria(self) -> dict[str, Answers]:
        """Answers about each criterion, if there are several."""
        own = dict(iter(self.judgments.groupby("criterion", sort=False)))
        parts = {str(c): with_own_names(own[c]) for c in own if len(own) > 1}
        return {
            name: replace(self, judgments=part, items=items_of(part, self.items))
            for name, part in parts.items()
        }

    @cached_property
    def rated(self) -> Row:
        """What the statistics about people take; orderings may differ in length."""
        return {
            "judgments": self.usual.assign(ordering=np.nan),
            "items": self.items,
            "by": [],
            "value": self.value,
        }

    @cached_property
    def cells(self) -> pd.DataFrame:
        """Mean of each item under each condition, and its human rating."""
        # Not a pivot table: with dropna=False it has a row for every cluster × item.
        means = self.judgments.groupby([*KEYS, "condition"], observed=True)[
            "value"
        ].mean()
        cells = means.unstack("condition").dropna(how="all")
        cells.columns = cells.columns.astype("str")
        cells = cells.reindex(columns=cells.columns.union([PLAIN, "placebo"]))
        if cells[PLAIN].isna().all():
            cells[PLAIN] = self.usual.groupby(KEYS)["value"].mean()
        cells["human"] = np.nan
        if "human" in self.items:
            cells["human"] = self.of_items(cells.index, "human")
        # The first two answers of each item to the same words; one may be a copy.
        read = self.usual[[*KEYS, "ordering", "whole"]].dropna(subset=["whole"])
        read["ordering"] = as_texts(read["ordering"])
        read = read.sort_values("ordering", kind="stable")
        first = read.drop_duplicates(ITEM)
        same = read.merge(first[[*ITEM, "ordering"]], on=[*ITEM, "ordering"])
        turn = same.groupby(ITEM, observed=True).cumcount()
        for n, name in enumerate(TWO_ANSWERS):
            cells[name] = same[turn == n].set_index(KEYS)["whole"]
        return cells

    @cached_property
    def ends(self) -> Ends:
        """Lowest and highest score of the scale, or around what was given."""
        reads, (span, _) = self.judgments, span_and_step(self.judgments)
        top = reads["top"]
        return ends_of(span, reads["whole"], self.cells["human"], top, top - span)

    @cached_property
    def unmoved(self) -> bool:
        """Whether edits moved no probability of a model, which may not see them."""
        values = pd.concat([self.usual, self.edited]).groupby(ITEM)["value"]
        spread = (values.max() - values.min()).max()
        return bool(are_closed(self.edited) and spread < 1e-9)

    @cached_property
    def changes(self) -> dict[str, pd.Series]:
        """Share of each item's scores that neutral edits change, and asking again."""
        read = [*ITEM, "ordering"]
        usual = self.usual
        found = {
            "edits": share_changed(usual, self.edited),
            "reask": share_changed(usual, usual[usual.duplicated(read)], read),
        }
        return {name: rates for name, rates in found.items() if len(rates)}

    @cached_property
    def in_any_order(self) -> pd.DataFrame:
        """Reads of the plain prompt, whatever the design of their orders is called."""
        reads, plain = self.judgments, {"reference_score": "none", "exemplar": "none"}
        kept = reads["ordering"].notna() & (reads["design"] != "placebo")
        for name, value in {"labels": "numeric", **plain}.items():
            kept &= as_texts(reads[name]) == value
        return reads[kept]

    @cached_property
    def rotated(self) -> pd.DataFrame:
        """Reads of items that saw every score equally often in every place."""
        own = self.judgments[self.judgments["design"].isin(["balanced", "williams"])]
        if len(own):
            return own
        reads = self.in_any_order
        even = [_even(part) for _, part in reads.groupby("n_options")]
        return pd.concat(even) if even else reads

    @cached_property
    def mirrored(self) -> tuple[str, pd.DataFrame, pd.DataFrame] | None:
        """An order, its reads, and those of its mirror, of items that saw both.

        The ascending order if some item saw it and its mirror, or else the commonest.
        """
        reads = self.in_any_order
        item = pd.Series(pd.factorize(reads["item_id"])[0])
        items = {
            tuple(decode(code)): own
            for code, own in item.groupby(reads["ordering"].array, observed=True)
        }
        choices = []
        for order, own in items.items():
            n = own.isin(items.get(order[::-1], ())).sum()
            if n and order[::-1] != order:
                first = [-score for score in order]
                choices.append(([*order] == sorted(order), n, first, order))
        if not choices:
            return None
        ascends, *_, order = max(choices)
        names = ["-".join(f"{score:g}" for score in o) for o in (order, order[::-1])]
        name = "descending" if ascends else f"opposite ({names[1]}, not {names[0]})"
        sides = (reads.iloc[items[o].index] for o in (order, order[::-1]))
        return name, *sides

    def flips(self, others: pd.DataFrame, base: pd.DataFrame | None = None) -> Row:
        """Share of scores that change, and whether it exceeds that of neutral edits."""
        changed = share_changed(self.usual if base is None else base, others)
        control, usual = next(iter(self.changes.items()), ("", np.nan))
        beyond = (changed - usual).dropna()
        row = {"flips": changed.mean(), "control": control}
        if beyond.empty:
            return row
        cluster = beyond.index.get_level_values("cluster_id")
        level = level_of(self.looks)
        found = inference.mean_t(beyond.to_numpy(), cluster, (-1.0, 1.0), level=level)
        return row | {
            "flips_beyond": found.value,
            "scrambled": bool(found.low > MARGINS["share of scores"]),
            "p_steady": p_mostly_changed(found, cluster.nunique()),
        }


def _even(reads: pd.DataFrame) -> pd.DataFrame:
    """Keep items whose orders, all of one length, hold each score alike everywhere."""
    order = reads["ordering"].astype("category").cat.remove_unused_categories().cat
    shown = np.array([ranks(decode(code)) - 1 for code in order.categories], dtype=int)
    item, n = reads.groupby(KEYS).ngroup().to_numpy(), shown.shape[-1]
    size = (item.max() + 1) * n
    counts = [  # of each place: how often an item saw each score there
        binned(item * n + shown[order.codes, place], None, size).reshape(-1, n)
        for place in range(n)
    ]
    even = (np.stack(counts) == counts[0][:, :1]).all(axis=(0, 2))
    return reads[even[item]]


def with_own_names(judgments: pd.DataFrame) -> pd.DataFrame:
    """Forget the names that only others have: of hundreds of judges or criteria.

    What is grouped or matched by name takes as long as all names that are known.
    """
    named = judgments.select_dtypes("category")
    own = {
        c: named[c].cat.remove_unused_categories()
        for c in named
        if len(named[c].cat.categories) > len(named)
    }
    return judgments.assign(**own)


def items_of(judgments: pd.DataFrame, items: pd.DataFrame) -> pd.DataFrame:
    """Leave out the items of others, of which there may be hundreds of times more."""
    if len(items) <= len(judgments):
        return items
    names = judgments["item_id"].unique()
    about = [items[c].isin(names) for c in ("item_id", "text_id") if c in items]
    return items[np.any(about, axis=0)]


def with_conditions(
    answers: pd.DataFrame, items: pd.DataFrame, value: Value
) -> pd.DataFrame:
    """Add to judgments: value, score, name of the condition, and top of the scale."""
    auto = "of full mark" if "reference" in items else "none"
    shown, top = references_of(answers, auto)
    if shown.nunique() == 1:  # never asked without it, or only with a different one
        shown[:] = "none"
    named = {name: as_texts(answers[name]) for name in KEYS}
    named["reference_score"] = as_texts(shown)
    answers = answers.assign(**named)
    return answers.assign(
        value=values_of(answers, value),
        whole=values_of(answers),
        condition=condition_names(answers),
        top=top,
    )


def as_texts(column: pd.Series, unknown: str = "unknown") -> pd.Series:
    """Return a column as categories of text, in alphabetical order.

    So no question looks a name up again. `unknown`: what an unknown one is called.
    """
    codes, levels = codes_of(column)
    texts = pd.Series(levels).astype("str").replace("unknown", unknown)
    return pd.Series(pd.Categorical(texts).take(codes, allow_fill=True), column.index)


def share_changed(
    base: pd.DataFrame, others: pd.DataFrame, on: Sequence[str] = ITEM
) -> pd.Series:
    """Share of each item's scores that differ from its first base read."""
    first = base[[*on, "whole"]].drop_duplicates(on)
    pairs = others[[*dict.fromkeys([*KEYS, *on]), "whole"]].merge(
        first, on=on, suffixes=("", "_first")
    )
    pairs = pairs.dropna(subset=["whole", "whole_first"])
    pairs["differs"] = pairs["whole"] != pairs["whole_first"]
    return pairs.groupby(KEYS)["differs"].mean()


def distinct_reads(judgments: pd.DataFrame) -> pd.DataFrame:
    """Reads that have a score and are not copies of another read."""
    known = judgments[judgments["value"].notna()]
    return (
        known.drop_duplicates([*ITEM, "key"]) if known["key"].nunique() > 1 else known
    )


def counted(reads: pd.DataFrame, column: str = "value") -> pd.DataFrame:
    """Mean of each item's values, the number of those known, and of all."""
    return reads.groupby(KEYS)[column].agg(["mean", "count", "size"]).astype(float)


def counted_once(values: pd.Series) -> pd.DataFrame:
    """As `counted`, of items that have one value, or none."""
    return counted(values.rename("value").reset_index())


def lost_within(reads: pd.DataFrame, column: str = "value") -> Reasons:
    """Reads without a score of items that have one."""
    of_item = counted(reads, column).dropna()
    lost = of_item["size"] - of_item["count"], of_item["count"]
    return reads_lost("left_out_reads", lost, of_item["mean"])


def lost_to_both(
    one: pd.DataFrame, other: pd.DataFrame, names: tuple[str, str]
) -> Reasons:
    """Items and reads without a score on one of two sides, both `counted`."""
    sides = _sides(one, other)
    a, b = (mean for mean, *_ in sides)
    lost, both = lost_scores(a, b, names), ~np.isnan(a + b)
    for (_, n, asked), scored, (name, judged_by) in zip(
        sides, (b, a), (names, names[::-1]), strict=True
    ):
        counts = (asked - n)[both], n[both]
        lost += reads_lost(
            "lost_reads", counts, scored[both], name=name, other=judged_by
        )
    return lost


def _sides(one: pd.DataFrame, other: pd.DataFrame) -> list[FloatArray]:
    """The columns of each side, of the items on both."""
    return [side.to_numpy().T for side in one.align(other, join="inner", axis=0)]


def open_to_losses(
    row: Row,
    one: pd.DataFrame,
    other: pd.DataFrame,
    ends: Ends,
    m: int = 1,
    per: float = 1.0,
) -> Row:
    """A row about a mean difference, and its p if what was lost speaks against it most.

    Parameters
    ----------
    row
        About the mean of one side minus the other, divided by `per`; the largest of `m`
        such differences.
    one, other
        The sides, `counted`.
    ends
        Of the scale.
    """
    (a, n_a, of_a), (b, n_b, of_b) = _sides(one, other)
    lost = 1 - n_a / of_a, 1 - n_b / of_b
    interval = per * row["low"], per * row["high"]
    turned = open_sign(a, b, ends, interval, row["question"], lost)
    reach = np.subtract(difference_bounds(a, b, ends, lost), mean_known(a - b)) / per
    return row | {
        "codes": row["codes"] + turned,
        "p_open": p_moved(row, row["effect"] + reach, m),
    }


def lost_by_order(reads: pd.DataFrame, items: pd.DataFrame) -> Reasons:
    """Reads without a score: how many, in which orders, how their items are rated."""
    lost = reads["value"].isna()
    if not lost.any() or lost.all():
        return ()
    shares = lost.groupby(reads["ordering"].astype("str")).mean()
    source, scored = "people rate", pd.Series(np.nan, reads.index)
    if "human" in items:
        scored[:] = matched(reads[KEYS], items, "human").to_numpy("float64")
    if scored[lost].isna().all():
        source = "the other answers score"
        scored = reads.groupby(KEYS)["value"].transform("mean")
    kept_mean, lost_mean = scored.groupby(lost).mean()
    reason = Reason(
        "lost_in_all_orders" if shares.nunique() == 1 else "lost_by_order",
        lost=int(lost.sum()),
        asked=len(reads),
        least=shares.min(),
        fewest=shares.idxmin(),
        most=shares.max(),
        order=shares.idxmax(),
        source=source,
        lost_mean=lost_mean,
        kept_mean=kept_mean,
    )
    return (reason,)


def ends_of(span: float, *given: pd.Series) -> Ends:
    """Return ends between which a scale of this span lies that holds what was given."""
    every = pd.concat([part.agg(["min", "max"]) for part in given]).astype(float)
    low, high = every.min(), every.max()
    return min(low, high - span), max(high, low + span)


def span_and_step(judgments: pd.DataFrame) -> tuple[float, float]:
    """From the lowest score to the highest, and from one score to the next."""
    options, given = judgments["n_options"], judgments["whole"].dropna()
    known = options[options > 0]
    span = float(known.min() - 1 if len(known) else np.ptp(given))
    orders = map(decode, judgments["ordering"].dropna().unique())
    span = min((float(np.ptp(order)) for order in orders), default=span)
    for step in (1.0, 0.5):
        if (given / step % 1 == 0).all():
            return span, step
    return span, span / 10


def rounded(scores: Any, step: float) -> Any:
    """Round to the steps of a scale, halves up."""
    return np.round(np.floor(scores / step + 0.5) * step, 6)
