"""Judgments as arrays: groups of comparable rows, each a matrix of items × reads."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, TypeVar, get_args

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from rubricnb.core.estimates.reasons import Reason, because
from rubricnb.core.frames import CONDITIONS, places, require
from rubricnb.core.permutation import decode, levels_above, ranks
from rubricnb.core.support.counting import binned
from rubricnb.core.support.spelling import one_of
from rubricnb.core.support.types import FloatArray, IntArray, Mask, Records, Row

Value = Literal["score", "expected_score"]
By = str | Sequence[str] | None
Group = TypeVar("Group")
Answer = TypeVar("Answer")

GROUPING = ("judge", "dataset", "design", *CONDITIONS)
_ANSWER = re.compile(
    r"status|score|position|expected_score|label_mass|probability_\d+|response|key"
    r"|seconds|server_note|(prompt|cached|completion)_tokens"
)

_OF_ITEMS = ("dataset", "criterion", "group_id", "candidate")
_NAMES = ("item_id", "cluster_id", *_OF_ITEMS, "ordering", "criterion_ordering", "key")


class Unanswerable(ValueError):
    """A group has no answer: a row with this reason, or an error if none has one."""

    def __init__(self, reason: Reason) -> None:
        super().__init__(reason.sentence)
        self.reason = reason


@dataclass(frozen=True)
class Reads:
    """The reads of one group, as matrices with one row an item and one column a read.

    Attributes
    ----------
    judged
        The judgments that the matrices were made of.
    first
        Shape (items,): the row of `judged` that names the item first.
    cluster
        Shape (items,): the cluster of each item, from 0.
    value
        Shape (items, reads): the score or the expected score, whole or not; NaN where
        none was parsed, whatever the row of a read whose status is not ok holds.
    order
        Shape (items, reads): row of `orderings`; -1 where the read was never asked.
    orderings
        Shape (orderings, n): the option shown at each position, the lowest score being
        option 1; a row of 0 for reads that name no ordering (n is 0 if none does):
        repeats of one unknown prompt.
    probability
        Shape (items, reads, n), by position; None unless value is ``expected_score``.
    key
        Shape (items, reads): a code for everything that changes the answer, or None.
        Reads of an item with one key are copies of one answer.
    criteria
        Shape (items, reads): a code for the order of the criteria, or None in Setting
        1.
    scale
        Shape (items, n): the scores of the options; 1, 2, …, n where None.
    """

    judged: pd.DataFrame
    first: IntArray
    cluster: IntArray
    value: FloatArray
    order: IntArray
    orderings: IntArray
    probability: FloatArray | None
    key: IntArray | None
    criteria: IntArray | None = None
    scale: FloatArray | None = None

    @property
    def n_options(self) -> int:
        """Number of options shown."""
        return int(self.orderings.shape[1])

    @property
    def option(self) -> FloatArray:
        """The value as the number of an option, from 1 for the lowest; NaN: none."""
        if self.scale is None:
            return self.value
        option = np.empty_like(self.value)
        for scale in np.unique(self.scale, axis=0):
            own = (self.scale == scale).all(axis=1)
            option[own] = levels_above(self.value[own], scale) + 1
        return option

    @property
    def scores(self) -> IntArray | FloatArray:
        """The score of each option; 1, 2, … where items differ in it."""
        scales = None if self.scale is None else np.unique(self.scale, axis=0)
        if scales is None or len(scales) != 1:
            return np.arange(1, self.n_options + 1)
        scale = scales[0]
        return scale.astype(np.int64) if (scale % 1 == 0).all() else scale

    @property
    def arrangement(self) -> IntArray:
        """Code of a prompt's order of scores and criteria; -1 if it was not asked."""
        if self.criteria is None:
            return self.order
        both = self.order * (self.criteria.max() + 1) + self.criteria
        return np.where(self.order < 0, -1, both)

    @cached_property
    def items(self) -> pd.DataFrame:
        """One row for each item: its names, its cluster, and what else is known.

        One row an item (a text under a criterion): its item_id, its cluster and, where
        the judgments have them, dataset, criterion, group_id, candidate.
        """
        names = [c for c in ("item_id", *_OF_ITEMS) if c in self.judged]
        columns = {c: self.judged[c].array[self.first] for c in names}
        return pd.DataFrame({**columns, "cluster": self.cluster})

    @property
    def parsed(self) -> Mask:
        """Which reads gave a value."""
        return ~np.isnan(self.value)


def as_list(by: By) -> list[str]:
    """Return the names in `by` as a list."""
    if by is None:
        return []
    return [by] if isinstance(by, str) else list(by)


def grouping(judgments: pd.DataFrame, by: By, without: Iterable[str] = ()) -> list[str]:
    """Return the columns to group by: those named, or every condition column present.

    This is where every statistic begins, so it refuses judgments that hold a read
    twice.
    """
    require(judgments, as_list(by), "judgments")
    refuse_repeated_reads(judgments)
    names = (
        [name for name in GROUPING if name in judgments] if by is None else as_list(by)
    )
    return [name for name in names if name not in set(without)]


def refuse_repeated_reads(judgments: pd.DataFrame) -> None:
    """Raise a ValueError that names the first read (item, ordering, replicate) twice.

    Rows are one read where they differ in nothing but the answer. Reads without a
    number of their own (`ordering_index`, `replicate`, `request_id`) cannot be told
    from re-asks.
    """
    numbered = [
        c for c in ("ordering_index", "replicate", "request_id") if c in judgments
    ]
    if not numbered or "item_id" not in judgments:
        return
    names = ("item_id", *numbered, "criterion", "ordering", "judge")
    first = [c for c in names if c in judgments]
    rest = [c for c in judgments if c not in first and not _ANSWER.fullmatch(str(c))]
    code = np.zeros(len(judgments), dtype=np.int64)
    for name in [*first, *rest]:
        code = crossed([code, codes_of(judgments[name])[0] + 1])
        if len(code) == 0 or code.max() + 1 == len(code):
            return
    same = np.flatnonzero(code == np.flatnonzero(binned(code) > 1)[0])
    row = judgments.iloc[same[0]]
    said = ", ".join(f"{name} {row[name]}" for name in first)
    raise ValueError(
        f"judgments hold the same read {len(same)} times (rows {same[0] + 1} and "
        f"{same[1] + 1}: {said}); each may appear once. Was a frame concatenated with "
        f"itself? Drop the copies (judgments.drop_duplicates({first})), number re-asks "
        "in a column 'replicate', or name in a column what tells the texts apart "
        "(dataset, criterion)"
    )


def without_placebo(judgments: pd.DataFrame) -> pd.DataFrame:
    """Leave out the reads of neutral edits; an error if there are no others."""
    if "design" not in judgments or not len(judgments):
        return judgments
    others = judgments[judgments["design"] != "placebo"]
    if not len(others):
        raise ValueError(
            "all judgments are of the design 'placebo', which is left out here; pass "
            "judgments of another design as well"
        )
    return others


def groups(
    judgments: pd.DataFrame, names: Sequence[str]
) -> Iterator[tuple[Row, pd.DataFrame]]:
    """Yield each group's values and its rows, in order of first appearance."""
    if len(judgments) == 0:
        raise ValueError(
            "there are no judgments: the frame is empty (check your filter)"
        )
    group = combine(judgments[name] for name in names) if names else np.zeros(1)
    if not group.any():  # there is one
        yield {name: judgments[name].iloc[0] for name in names}, judgments
        return
    order = np.argsort(group, kind="stable")
    bounds = np.flatnonzero(np.diff(group[order])) + 1
    # Text that names something is categories, so that no group looks it up anew.
    found = {}
    for name in _NAMES:
        if name in judgments and pd.api.types.is_string_dtype(judgments[name].dtype):
            codes, levels = codes_of(judgments[name])
            found[name] = pd.Categorical.from_codes(codes, pd.Index(levels))
    coded = judgments.assign(**found) if found else judgments
    of_group = {name: judgments[name].array for name in names}
    for rows in np.split(order, bounds):
        in_a_row = rows[-1] - rows[0] + 1 == len(rows)  # then nothing is copied
        part = coded.iloc[slice(rows[0], rows[-1] + 1) if in_a_row else rows]
        yield {name: values[rows[0]] for name, values in of_group.items()}, part


def read_groups(
    judgments: pd.DataFrame, by: By, value: Value
) -> Iterator[tuple[Row, Reads]]:
    """Yield each group's values and its reads."""
    for key, part in groups(judgments, grouping(judgments, by)):
        yield key, reads(part, value)


def row_per_group(
    judgments: pd.DataFrame,
    by: By,
    value: Value,
    row: Callable[[Reads], Row | Records],
) -> pd.DataFrame:
    """Append to each group's columns the rows of its reads, or the reason for none."""
    found = answers(read_groups(judgments, by, value), row)
    return pd.DataFrame(
        [
            key | own
            for key, rows in found
            for own in (rows if isinstance(rows, list) else [rows])
        ]
    )


def answers(
    groups: Iterable[tuple[Row, Group]], answer: Callable[[Group], Answer]
) -> list[tuple[Row, Answer | Row]]:
    """Answer each group; an `Unanswerable` one gives its reason, unless all are."""
    found: list[tuple[Row, Answer | Row]] = []
    refused: list[Unanswerable] = []
    for key, group in groups:
        try:
            found.append((key, answer(group)))
        except Unanswerable as why:
            refused.append(why)
            found.append((key, because(why.reason)))
    if found and len(refused) == len(found):
        raise refused[0]
    return found


def keyed(key: Row, frame: pd.DataFrame) -> pd.DataFrame:
    """Put a group's values before the columns of a frame."""
    return frame.assign(**key)[[*key, *frame.columns.difference(key, sort=False)]]


def require_value(judgments: pd.DataFrame, value: Value) -> None:
    """Refuse an unknown `value`, and judgments without the columns that it needs."""
    one_of("value", value, get_args(Value))
    if value == "expected_score" and not probability_columns(judgments):
        raise ValueError(
            "value='expected_score' needs the columns probability_1…n, which "
            "readout='logprobs' gives; for other readouts use value='score'"
        )
    require(judgments, ("item_id", "cluster_id", "score", value), "judgments")


def reads(part: pd.DataFrame, value: Value = "score") -> Reads:
    """Turn the judgments of one group into matrices."""
    require_value(part, value)
    unit = combine(part[c] for c in unit_columns(part))
    column = _read_column(unit, part)
    shape = (int(unit.max()) + 1, int(column.max()) + 1)

    def widen(values: NDArray[Any], missing: object, dtype: Any) -> NDArray[Any]:
        wide = np.full((*shape, *values.shape[1:]), missing, dtype=dtype)
        wide[unit, column] = values
        return wide

    codes, orderings, scale = _orderings(part)
    values, probability, criteria = values_of(part, value), None, None
    if value == "expected_score":
        known = part[probability_columns(part)].to_numpy(float)
        # A read without its probabilities does not count, even if its mean is given.
        values = np.where(np.isnan(known).all(axis=1), np.nan, values)
        probability = widen(known[:, : orderings.shape[1]], np.nan, np.float64)
    if "criterion_ordering" in part and part["criterion_ordering"].notna().any():
        criteria = widen(codes_of(part["criterion_ordering"])[0], -1, np.int64)
    key = codes_of(part["key"])[0] if "key" in part else None
    if key is not None and len(key) > 1 and (key == key[0]).all():
        key = None  # not filled in
    first = np.unique(unit, return_index=True)[1]
    return Reads(
        judged=part,
        first=first,
        cluster=pd.factorize(clusters_of(part)[first])[0].astype(np.int64),
        value=widen(values, np.nan, np.float64),
        order=widen(codes, -1, np.int64),
        orderings=orderings,
        probability=probability,
        key=None if key is None else widen(key, -1, np.int64),
        criteria=criteria,
        scale=None if scale is None else scale[first],
    )


def unit_columns(frame: pd.DataFrame) -> list[str]:
    """The columns that tell items apart."""
    return [c for c in ("dataset", "item_id", "criterion") if c in frame]


def combine(columns: Iterable[pd.Series]) -> IntArray:
    """Number the distinct combinations of some columns, from 0 as they appear."""
    return crossed([codes_of(column)[0] + 1 for column in columns])


def crossed(codes: Sequence[IntArray]) -> IntArray:
    """Number the distinct combinations of some codes, from 0 as they appear."""
    code = np.zeros(len(codes[0]), dtype=np.int64)
    for own in codes:
        if len(own) and (own != own[0]).any():
            code = pd.factorize(code * (int(own.max()) + 1) + own)[0]
    return np.asarray(code, dtype=np.int64)


def codes_of(column: pd.Series) -> tuple[IntArray, NDArray[Any] | pd.Index]:
    """Return a column's codes (-1 where missing) and their levels."""
    values = column.array
    if isinstance(values, pd.Categorical):
        return values.codes.astype(np.int64), values.categories
    # Of the array, since a Series would make an Index of its levels at every call.
    codes, levels = pd.factorize(values)
    return np.asarray(codes, dtype=np.int64), np.asarray(levels)


def floats(column: pd.Series) -> FloatArray:
    """Return a numeric column as float64, NaN where missing; refuse True and False."""
    kinds = ("boolean", "mixed-integer", "mixed")
    if pd.api.types.infer_dtype(column, skipna=True) in kinds:
        truth = [isinstance(v, bool | np.bool_) for v in column]
        if any(truth):
            raise ValueError(
                f"{column.name} has the value {column[truth].iloc[0]}, which is not a "
                "number: give numbers (1 for yes and 0 for no on a yes/no scale), or "
                "leave the value empty"
            )
    return np.asarray(column.to_numpy(dtype=np.float64, na_value=np.nan))


def values_of(part: pd.DataFrame, value: Value = "score") -> FloatArray:
    """Return the value of each row; NaN where there is none or the status is not ok."""
    values = floats(part[value])
    if "status" in part:
        status = part["status"]
        values = np.where(status.isna() | (status == "ok"), values, np.nan)
    if np.isinf(values).any():
        first = part["item_id"].iloc[int(np.isinf(values).argmax())]
        raise ValueError(
            f"the {value} of item {first!r} is infinite; give a number on the scale, "
            "or leave it empty (rb.judgments marks such answers out_of_range)"
        )
    return values


def clusters_of(part: pd.DataFrame) -> IntArray:
    """Number the clusters of the rows; refuse rows that name none.

    Counting them as one cluster, or each as its own, would assume what only the user
    can know.
    """
    lacking = np.flatnonzero(part["cluster_id"].isna())
    if len(lacking):
        raise ValueError(
            f"{len(lacking)} of {len(part)} judgments have no cluster_id (the first: "
            f"item {part['item_id'].iloc[lacking[0]]!r}); add what their texts share "
            "(story, article, prompt), or the item_id if they share nothing"
        )
    return combine(part[c] for c in ("dataset", "cluster_id") if c in part)


def matched(judged: pd.DataFrame, items: pd.DataFrame, column: str) -> pd.Series:
    """Return a column of the items for each judged item, matched by its names.

    Dataset and criterion count where both frames name them. Where no item_id fits, the
    judged are texts under several criteria (Setting 2) and the items' text_id is
    matched with the criterion.
    """
    both = [c for c in ("dataset", "criterion") if c in judged and c in items]
    ways = [["item_id", *both]]
    if "text_id" in items and "criterion" in both:
        ways.append(["text_id", *both])
    wanted = _keys(judged, ways[0])
    for names in ways:
        known = _keys(items, names)
        own = known.isin(wanted)
        if own.any():
            twice = known.duplicated() & own
            if twice.any():
                key = known[int(twice.argmax())]
                rows = [str(row + 1) for row in np.flatnonzero(known == key)]
                named = ", ".join(
                    f"{name} {part!r}" for name, part in zip(names, key, strict=True)
                )
                lacking = " and the ".join(
                    c for c in ("dataset", "criterion") if c not in names
                )
                hint = f" (or name the {lacking} in both frames)" if lacking else ""
                raise ValueError(
                    f"items hold {named} {len(rows)} times "
                    f"(rows {', '.join(rows[:5])}), so which one was judged is not "
                    f"known; pass each once{hint}: items.drop_duplicates({names})"
                )
            values = items[column].set_axis(known)[own]
            return values.reindex(wanted).reset_index(drop=True)
    first = ", ".join(f"{name} {judged[name].iloc[0]!r}" for name in ways[0])
    raise Unanswerable(
        Reason("unmatched", judged=len(judged), first=first, names=", ".join(ways[0]))
    )


def refuse_ambiguous(
    judgments: pd.DataFrame, items: pd.DataFrame, what: str = "items"
) -> None:
    """Raise a ValueError if an item's rating fits several judged items."""
    require(items, ["item_id"], what)
    names = [c for c in ("item_id", "dataset", "criterion") if c in judgments]
    shared = [c for c in names if c in items]
    if len(shared) == len(names):
        return
    judged = judgments[names].drop_duplicates()
    ids = [c for c in ("item_id", "text_id") if c in items]
    known = [_keys(items, [c, *shared[1:]]).drop_duplicates(keep=False) for c in ids]
    keys = _keys(judged, shared)
    several = keys.duplicated(keep=False) & np.any(
        [keys.isin(own) for own in known], axis=0
    )
    if several.any():
        first = judged[keys == keys[int(several.argmax())]]
        lacking = " and ".join(c for c in names if c not in shared)
        raise ValueError(
            f"the {what} do not say which {lacking} they are about: item_id "
            f"{first['item_id'].iloc[0]!r} was judged under {len(first)}; add the "
            f"column {lacking!r} to the {what}"
        )


def _keys(frame: pd.DataFrame, names: list[str]) -> pd.MultiIndex:
    return pd.MultiIndex.from_frame(frame[names].astype(object))


def require_orderings(reads: Reads) -> None:
    """Refuse reads without an ordering of the options."""
    unknown = (reads.orderings == 0).all(axis=1)[reads.order] & (reads.order >= 0)
    refuse_unordered(int(unknown.sum()), int((reads.order >= 0).sum()))


def refuse_unordered(unknown: int, n: int) -> None:
    """Raise a ValueError if this many of n judgments have no ordering."""
    if unknown:
        raise ValueError(
            f"{unknown} of {n} judgments have no ordering; pass judgments that say in "
            "which order the options stood, such as '1-2-3-4-5'"
        )


def require_options(reads: Reads) -> None:
    """Refuse scores that were not options: they have no position."""
    require_orderings(reads)
    if reads.probability is not None:
        return
    off = reads.parsed & ~np.isin(reads.option, np.arange(1, reads.n_options + 1))
    if off.any():
        item, read = np.argwhere(off)[0]
        raise ValueError(
            f"{int(off.sum())} of {int(reads.parsed.sum())} scores are not among the "
            f"options {reads.scores[0]}…{reads.scores[-1]} (the first: "
            f"{reads.value[item, read]:g}, item "
            f"{reads.items['item_id'].iloc[item]!r}), so they have no position; pass "
            "judgments whose scores were options, or drop these rows"
        )


def item_means(value: FloatArray) -> FloatArray:
    """Mean of each row's numbers; NaN for a row without any (never a warning)."""
    parsed = ~np.isnan(value)
    count = parsed.sum(axis=-1)
    total = np.where(parsed, value, 0.0).sum(axis=-1)
    return averages(total, count)


def averages(total: FloatArray, count: Any) -> FloatArray:
    """Divide totals by their counts; NaN where nothing was counted."""
    return np.where(count > 0, total / np.maximum(count, 1), np.nan)


def item_variance(value: FloatArray) -> FloatArray:
    """Variance (ddof 1) of each row's numbers; NaN below two."""
    parsed = ~np.isnan(value)
    count = parsed.sum(axis=1)
    rest = np.where(parsed, value - item_means(value)[:, None], 0.0)
    return averages((rest**2).sum(axis=1), count - 1)


def cell_means(
    row: IntArray, column: IntArray, values: FloatArray, shape: tuple[int, int]
) -> FloatArray:
    """Mean of the numbers in each cell of a table; NaN in empty ones."""
    parsed = ~np.isnan(values)
    cell, size = (row * shape[1] + column)[parsed], shape[0] * shape[1]
    count = binned(cell, minlength=size)
    total = binned(cell, weights=values[parsed], minlength=size)
    return averages(total, count).reshape(shape)


def by_cluster(values: FloatArray, cluster: IntArray) -> FloatArray:
    """Sum the rows of `values` (items, …) within clusters: shape (clusters, …)."""
    number, found = pd.factorize(cluster, sort=True)
    out = np.zeros((len(found), *values.shape[1:]))
    np.add.at(out, number, values)
    return out


def copies(reads: Reads) -> Mask:
    """Tell which reads only repeat another read of the same item and ordering.

    Repeats of an ordering count as copies if no item of the group ever answers two of
    them differently, or if they share a key (a deterministic judge is asked once for a
    repeated prompt).
    """
    repeat, differs = _repeats(reads, keyed=False)
    if not differs.any():
        return repeat
    if reads.key is None:
        return np.zeros_like(repeat)
    return _repeats(reads, keyed=True)[0]


def echoes(reads: Reads) -> Mask:
    """Tell which reads add nothing to their item's mean: copies and equal repeats."""
    repeat, differs = _repeats(reads, keyed=False)
    return copies(reads) | (repeat & ~differs[:, None])


def same_answer(reads: Reads) -> Mask:
    """Tell which reads were not asked again: by their keys if known, else as `copies`.

    A judge that was really asked again and always said the same has a re-ask variance
    of 0.
    """
    return copies(reads) if reads.key is None else _repeats(reads, keyed=True)[0]


def _repeats(reads: Reads, keyed: bool) -> tuple[Mask, Mask]:
    """Find reads that repeat an ordering (and key), and items in which two differ."""
    item, read = np.nonzero(reads.order >= 0)
    alike = [item, reads.arrangement[item, read]]
    if keyed and reads.key is not None:
        alike.append(reads.key[item, read] + 1)
    group = crossed(alike)
    repeat = np.zeros(reads.value.shape, dtype=bool)
    repeat[item, read] = pd.Series(group).duplicated()
    answers = pd.Series(reads.value[item, read]).groupby(group)
    differs = np.zeros(len(repeat), dtype=bool)
    differs[item[answers.transform("max") > answers.transform("min")]] = True
    return repeat, differs


def _read_column(unit: IntArray, part: pd.DataFrame) -> IntArray:
    """Column of each read: its index in the design, or its ordering's rank."""
    kind = np.zeros(len(part), np.int64)
    if "ordering_index" in part:
        kind = np.unique(part["ordering_index"].to_numpy(), return_inverse=True)[1]
        cell = unit * (kind.max() + 1) + kind
        if binned(cell).max() <= 1:
            return np.asarray(kind, dtype=np.int64)
    elif "ordering" in part:
        codes, levels = codes_of(part["ordering"])
        used, code = np.unique(codes, return_inverse=True)
        # An ordering that is missing comes first.
        named = ["" if u < 0 else str(levels[u]) for u in used]
        kind = np.argsort(np.argsort(named))[code]
    return places(unit, kind)


def _orderings(part: pd.DataFrame) -> tuple[IntArray, IntArray, FloatArray | None]:
    """Return each row's ordering (0…0: none is named) and its options' scores."""
    if "ordering" not in part:
        return np.zeros(len(part), np.int64), np.zeros((1, 0), np.int64), None
    codes, levels = codes_of(part["ordering"])
    used, codes = np.unique(codes, return_inverse=True)
    shown = _decode([levels[u] for u in used if u >= 0])
    options, scale = ranks(shown), np.sort(shown, axis=1)
    first = np.arange(1, shown.shape[1] + 1)
    if used[0] < 0:
        options = np.concatenate([np.zeros((1, len(first)), np.int64), options])
        scale = np.concatenate([first[None].astype(float), scale])
    if (scale == first).all():
        return codes, options, None
    distinct, same = np.unique(options, axis=0, return_inverse=True)
    return same.ravel()[codes], distinct, scale[codes]


def _decode(codes: Sequence[str]) -> FloatArray:
    """The scores that orderings show, one row an ordering."""
    shown = []
    for ordering in map(str, codes):
        try:
            scores = decode(ordering)
        except ValueError:
            scores = ()
        if not scores or len(set(scores)) < len(scores):
            raise ValueError(
                f"the ordering {ordering!r} does not list the scores in an order, such "
                "as '2-3-1'"
            )
        shown.append(scores)
    sizes = sorted(set(map(len, shown)))
    if len(sizes) > 1:
        raise ValueError(
            f"one group holds orderings of {' and '.join(map(str, sizes))} options; "
            "add 'n_options' to by="
        )
    return np.array(shown, dtype=np.float64).reshape(len(shown), sum(sizes))


def probability_columns(judgments: pd.DataFrame) -> list[str]:
    """Return the names probability_1…n that a frame has, by position."""
    names = [c for c in judgments.columns if str(c).startswith("probability_")]
    return sorted(names, key=lambda name: int(str(name).rsplit("_", 1)[1]))
