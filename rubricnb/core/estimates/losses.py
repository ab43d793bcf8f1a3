"""What a comparison leaves out: items that one of its sides has no score for.

A comparison is about the items that both sides scored. Answers are rarely lost at
random: a judge that cannot decide writes no score, so the lost items are those that
differ. What can be known is what the other side says of them, and every statistic with
two sides reports it: `lost_scores` for two sides, `left_out` for the conditions of
which an item needs all. Where a difference is said to have a sign, `open_sign` adds the
bounds between which it lies wherever the lost scores would be.

Two losses do not show in the items that both sides were asked about: rows that a table
does not have, often because failed answers were dropped (`absent`), and some of an
item's reads (`lost_reads`). A third loss is inside a read: a server that cuts a long
text answers about what is left of it (`unread`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

import numpy as np
import pandas as pd

from rubricnb.core.estimates.intervals import mean_known, mean_of
from rubricnb.core.estimates.reads import (
    Reads,
    item_means,
    probability_columns,
    same_answer,
)
from rubricnb.core.estimates.reasons import Reason, Reasons
from rubricnb.core.estimates.sides import shared_items
from rubricnb.core.support.types import Ends, FloatArray, IntArray, Mask

MOST_LOST = 0.05
"""Share of the items asked on both sides beyond which no equivalence is claimed."""
_SHARES = {  # code → name of the number of which "lost" is a part
    "lost": "asked",
    "lost_reads": "asked",
    "left_out": "asked",
    "left_out_reads": "asked",
    "lost_by_order": "asked",
    "lost_in_all_orders": "asked",
    "unscored": "rated",
    "unscored_reads": "asked",
}
_CODES = (
    *_SHARES,
    "open_sign",
    "open_share",
    "r_of_all",
    "r_turned",
    "r_one_of_all",
    "lost_prompts",
    "flip_strict.bounds",
    "no_equivalence.lost",
)


def losses_of(codes: Iterable[Reason]) -> Reasons:
    """Return the reasons that are about losses."""
    return tuple(code for code in codes if code in _CODES)


def lost_scores(
    a: FloatArray,
    b: FloatArray,
    names: tuple[str, str] = ("a", "b"),
    what: str = "items",
) -> Reasons:
    """Return how many items only one side has scored, and their scores there.

    Parameters
    ----------
    a, b
        Shape (items,): the score of each item that both sides were asked about; NaN
        without one.
    names
        What the sides are called.
    what
        What the items are called.

    Examples
    --------
    >>> [why] = lost_scores(np.array([1.0, 2, 5]), np.array([1.0, 3, np.nan]))
    >>> why.sentence.split(" (")[0]
    '1 of 3 items have a score under a, but none under b, and are left out'
    """
    why = []
    for side, other, (name, lacking) in ((a, b, names), (b, a, names[::-1])):
        lost = ~np.isnan(side) & np.isnan(other)
        if lost.any():
            why.append(
                Reason(
                    "lost",
                    lost=int(lost.sum()),
                    asked=len(side),
                    what=what,
                    name=name,
                    lacking=lacking,
                    lost_mean=mean_of(side[lost]),
                    kept_mean=mean_known(side[~np.isnan(other)]),
                )
            )
    return tuple(why)


def absent(
    a: Reads, b: Reads, names: tuple[str, str] = ("a", "b"), what: str = "items"
) -> Reasons:
    """Return how many scored items the other side was not asked about, and scores.

    Whoever asked one side about fewer texts expects them; whoever dropped the rows of
    failed answers lost them. A table does not tell which, so no verdict depends on it.

    Parameters
    ----------
    a, b
        The reads of both sides.
    names, what
        As in `lost_scores`.
    """
    why = []
    for side, rows, name in zip((a, b), shared_items(a, b), names, strict=True):
        mean = item_means(side.value)
        shared = np.isin(np.arange(len(mean)), rows)
        absent_here = ~np.isnan(mean) & ~shared
        if absent_here.any() and len(rows):
            why.append(
                Reason(
                    "absent",
                    n=int(absent_here.sum()),
                    what=what,
                    name=name,
                    lost_mean=mean_of(mean[absent_here]),
                    kept_mean=mean_known(mean[shared]),
                )
            )
    return tuple(why)


def lost_reads(a: Reads, b: Reads, names: tuple[str, str] = ("a", "b")) -> Reasons:
    """Return how many reads of kept items lack a score, and the other side's scores.

    Parameters
    ----------
    a, b
        The reads of both sides.
    names
        What the sides are called.
    """
    rows_a, rows_b = shared_items(a, b)
    mean_a, mean_b = item_means(a.value)[rows_a], item_means(b.value)[rows_b]
    both = ~np.isnan(mean_a) & ~np.isnan(mean_b)
    why: Reasons = ()
    for side, rows, other, called in (
        (a, rows_a, mean_b, names),
        (b, rows_b, mean_a, names[::-1]),
    ):
        counts = (count[rows[both]] for count in read_counts(side))
        why += reads_lost(
            "lost_reads", counts, other[both], name=called[0], other=called[1]
        )
    return why


def reads_lost(
    code: str, counts: Iterable[IntArray], scored: FloatArray, **names: str
) -> Reasons:
    """Return how many reads were lost, and what else is said of their items.

    Parameters
    ----------
    code
        Of the reason, which also has the `names`.
    counts
        Shape (items,): the reads of each item without a score, and with one
        (`read_counts`).
    scored
        Shape (items,): what others say of each item; averaged over both kinds of reads.
    """
    lost, got = counts
    if not lost.any():
        return ()
    return (
        Reason(
            code,
            **names,
            lost=int(lost.sum()),
            asked=int(lost.sum() + got.sum()),
            lost_mean=lost @ scored / lost.sum(),
            kept_mean=got @ scored / got.sum(),
        ),
    )


def shares_lost(side: Reads) -> FloatArray:
    """Return the share of each item's reads without a score; 1 if it was not asked."""
    lost, got = read_counts(side)
    return 1 - got / np.maximum(lost + got, 1)


def read_counts(side: Reads) -> tuple[IntArray, IntArray]:
    """Count each item's reads without a score, and with one; copies do not count."""
    asked = (side.order >= 0) & ~same_answer(side)
    return (asked & ~side.parsed).sum(axis=1), (asked & side.parsed).sum(axis=1)


def left_out(values: FloatArray, used: Mask, what: str = "items") -> Reasons:
    """Return how many items lack a score somewhere, and what their others are.

    Parameters
    ----------
    values
        Shape (items, conditions): the score of each item under each; NaN without one.
    used
        Shape (items,): which items count.
    what
        What the items are called.

    Examples
    --------
    >>> scores = np.array([[1.0, 2], [5, np.nan], [3, 3]])
    >>> [why] = left_out(scores, ~np.isnan(scores).any(axis=1))
    >>> why.numbers["lost_mean"], why.numbers["kept_mean"]
    (5.0, 2.25)
    """
    mean = item_means(values) if values.size else np.full(len(values), np.nan)
    lost = ~np.isnan(mean) & ~used
    if not lost.any():
        return ()
    return (
        Reason(
            "left_out",
            lost=int(lost.sum()),
            asked=len(values),
            what=what,
            lost_mean=mean_of(mean[lost]),
            kept_mean=mean_known(mean[used]),
        ),
    )


def scale_ends(*sides: Reads) -> Ends:
    """Return the lowest and highest score of the scale, or of the scores given."""
    shown = [side.scores for side in sides if side.n_options]
    given = [side.value[side.parsed] for side in sides]
    every = np.concatenate(shown or given).astype(float)
    return (float(every.min()), float(every.max())) if len(every) else (np.nan, np.nan)


def difference_bounds(
    a: FloatArray,
    b: FloatArray,
    ends: Ends,
    lost: tuple[FloatArray, FloatArray] | None = None,
) -> Ends:
    """Return the least and the greatest mean of a − b that the lost scores allow.

    Parameters
    ----------
    a, b
        As in `lost_scores`. Items without any score do not count.
    ends
        Lowest and highest score of the scale.
    lost
        Share of each item's reads that have no score, on both sides (`shares_lost`).
        Default: all of an item without a score, none of the others.

    Examples
    --------
    >>> difference_bounds(np.array([2.0, 4]), np.array([3.0, np.nan]), (1, 5))
    (-1.0, 1.0)
    """
    has_either = ~(np.isnan(a) & np.isnan(b))
    if not has_either.any():
        return np.nan, np.nan
    lost = lost or (np.isnan(a).astype(float), np.isnan(b).astype(float))

    def with_lost_at(end: float, side: FloatArray, share: FloatArray) -> float:
        filled = np.where(np.isnan(side), end, (1 - share) * side + share * end)
        return float(filled[has_either].mean())

    low, high = ends
    least = with_lost_at(low, a, lost[0]) - with_lost_at(high, b, lost[1])
    most = with_lost_at(high, a, lost[0]) - with_lost_at(low, b, lost[1])
    return least, most


def open_sign(
    a: FloatArray,
    b: FloatArray,
    ends: Ends,
    interval: Ends,
    of: str,
    lost: tuple[FloatArray, FloatArray] | None = None,
) -> Reasons:
    """Return the ends of a mean difference whose sign the lost scores could turn.

    Those of its interval, each moved as far as the lost scores could move the mean.

    Parameters
    ----------
    a, b, ends, lost
        As in `difference_bounds`.
    interval
        95 % interval of the mean of a − b over the kept items.
    of
        Name of the difference.
    """
    least, most = difference_bounds(a, b, ends, lost)
    # no sign is claimed; it may be where there is no interval
    if interval[0] <= 0 <= interval[1] or not least < most:
        return ()
    away = np.nan_to_num(np.subtract(interval, mean_known(a - b)))
    low, high = np.add((least, most), away)
    if low > 0 or high < 0:
        return ()
    return (
        Reason("open_sign", of=of, low=low, high=high, lowest=ends[0], highest=ends[1]),
    )


def no_equivalence(codes: Iterable[str]) -> Reasons:
    """Return why a comparison shows no equivalence; empty if it may."""
    for code in codes:
        if isinstance(code, Reason) and share_lost((code,)) > MOST_LOST:
            what = code.numbers.get("what", "reads")
            return (Reason("no_equivalence.lost", most=MOST_LOST, what=what),)
    return ()


def share_lost(codes: Iterable[str]) -> float:
    """Return the share of items, or reads, that a comparison lost, from its reasons.

    Examples
    --------
    >>> a, b = np.array([1.0, 2, 5, np.nan]), np.array([1.0, 3, np.nan, 2])
    >>> share_lost(lost_scores(a, b))
    0.5
    """
    lost: dict[str, float] = defaultdict(float)
    for code in codes:
        if isinstance(code, Reason) and code in _SHARES:
            numbers = code.numbers
            what = numbers.get("what", "reads")
            lost[what] += numbers["lost"] / numbers[_SHARES[code]]
    return max(lost.values(), default=0.0)


# columns of a text or of its answer; every other one is a condition of the read
_OF_A_TEXT = frozenset(
    {
        "request_id",
        "item_id",
        "key",
        "dataset",
        "group_id",
        "cluster_id",
        "candidate",
        "source",
        "status",
        "score",
        "position",
        "expected_score",
        "label_mass",
        "server_note",
        "prompt_tokens",
        "cached_tokens",
        "completion_tokens",
        "seconds",
    }
)


def are_closed(judgments: pd.DataFrame) -> bool:
    """Whether answers are probabilities and nothing else, as a decision model's."""
    mass = judgments.get("label_mass", pd.Series(dtype=float))
    return bool(probability_columns(judgments)) and mass.isna().all()


def unread(judgments: pd.DataFrame, items: pd.DataFrame) -> Reasons:
    """Return how many texts a decision model did not tell from others.

    A decision model answers with probabilities and nothing else, so a server that cuts
    a long text is not seen in any one answer. It is seen in several: texts of one
    instruction that differ only in what was cut have equal probabilities in every
    read. Rounding can make probabilities equal, too; but then they are equal between
    texts of different instructions as well, and nothing is returned. Nor is it if the
    texts differ in white space or case alone, or for one instruction only.

    A text that was cut behind the first difference to every other text is not found.

    Parameters
    ----------
    judgments
        Of these only closed probabilities, without a `label_mass`, are looked at.
    items
        The texts: ``instruction`` and ``response``.
    """
    texts = {"instruction", "response"}
    if not texts <= set(items) or not are_closed(judgments):
        return ()
    by = "text_id" if "criterion_ordering" in judgments else "item_id"
    read = judgments[judgments[probability_columns(judgments)[0]].notna()]
    conditions = [name for name in read if name not in _OF_A_TEXT]
    row = pd.util.hash_pandas_object(read[conditions], index=False)
    answers = row.groupby(read["item_id"].astype(str)).sum()
    known = items.drop_duplicates(by).set_index(by)[[*texts]].reindex(answers.index)
    folded = known.apply(lambda text: text.str.split().str.join(" ").str.casefold())
    table = folded.assign(answers=answers).drop_duplicates()
    own = table.groupby("answers")
    twins = table[own["response"].transform("nunique") > 1]
    apart = twins.groupby("answers")["instruction"].nunique()
    if twins["instruction"].nunique() < 2 or (apart > 1).any():
        return ()
    n, asked = (len(t[[*texts]].drop_duplicates()) for t in (twins, table))
    return (Reason("unread", n=n, asked=asked),)
