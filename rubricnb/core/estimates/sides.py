"""The two sides of a comparison: their judgments, and the items they share."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from rubricnb.core.estimates import reads as arrays
from rubricnb.core.estimates.reads import By, Reads, Value
from rubricnb.core.estimates.reasons import Reason, because
from rubricnb.core.permutation import directions
from rubricnb.core.support.types import IntArray, Mask, Row

_PARTS = ("forward", "reverse", "half-1", "half-2")


def sides(
    judgments: pd.DataFrame,
    names: Sequence[Any],
    by: By,
    value: Value,
    column: str | None = None,
) -> Iterator[tuple[Row, list[Reads | None]]]:
    """Yield, for each group, the reads of every side; None for one without judgments.

    Sides are values of one `column`; by default the one that has the first two, the
    design if it can be. A design may be followed by ``/forward``, ``/reverse``,
    ``/half-1`` or ``/half-2``: these of its reads.
    """
    wanted = [_split(name) for name in names]
    column = column or _compared_column(judgments, wanted[0][0], wanted[1][0])
    outside = arrays.grouping(judgments, by, without=[column])
    for key, part in arrays.groups(judgments, outside):
        label, found = part[column].to_numpy(), dict[Any, Reads]()
        for name in dict.fromkeys(name for name, _ in wanted):
            if (own := label == name).any():
                found[name] = arrays.reads(part[own], value)
        yield (
            key,
            [
                take(found[name], piece) if name in found else None
                for name, piece in wanted
            ],
        )


def compared(
    judgments: pd.DataFrame,
    a: Any,
    b: Any,
    by: By,
    value: Value,
    row: Callable[[Reads, Reads], Row],
) -> pd.DataFrame:
    """Append to each group's columns the result of `row` on its two sides.

    A group without one of them has a reason only.
    """
    rows = []
    for key, (side_a, side_b) in sides(judgments, [a, b], by, value):
        if side_a is None or side_b is None:
            found = because(Reason("unjudged", side=a if side_a is None else b))
        else:
            found = row(side_a, side_b)
        rows.append({**key, "a": a, "b": b, **found})
    return pd.DataFrame(rows)


def _compared_column(judgments: pd.DataFrame, a: Any, b: Any) -> str:
    """Find the column that holds both values: the design if it can be."""
    names = arrays.grouping(judgments, None)
    for name in sorted(names, key=lambda name: name != "design"):
        found = judgments[name].unique()
        if a in found and b in found:
            return name
    values_of = {name: sorted(map(str, judgments[name].unique())) for name in names}
    listed = "; ".join(
        f"{name}: {', '.join(values)}"
        for name, values in values_of.items()
        if len(values) > 1
    )
    raise ValueError(
        f"no column of the judgments holds both {a!r} and {b!r}; columns with several "
        f"values: {listed or 'none'}"
    )


def take(side: Reads, piece: str) -> Reads:
    """Keep some reads of a side; all of them if no piece is named."""
    if not piece:
        return side
    n_reads = side.value.shape[1]
    if piece.startswith("half"):
        first = np.arange(n_reads) < n_reads // 2
        kept = np.broadcast_to(first if piece == "half-1" else ~first, side.value.shape)
    else:
        # -1, never asked, finds the 0
        turn = np.r_[directions(side.orderings), 0][side.order]
        kept = turn == (1 if piece == "forward" else -1)
        if side.criteria is not None or not kept.any():
            raise ValueError(
                f"'/{piece}': no {piece} rotations of the scores 1…n were asked; use a "
                "design that has them, such as 'balanced', or /half-1 and /half-2"
            )
    return only(side, kept)


def only(side: Reads, kept: Mask) -> Reads:
    """Keep some reads, as if the others had not been asked for."""
    value, order = np.where(kept, side.value, np.nan), np.where(kept, side.order, -1)
    return replace(side, value=value, order=order)


def shared_items(a: Reads, b: Reads) -> tuple[IntArray, IntArray]:
    """Rows of the items that both sides have, in the order of `a`."""
    item = arrays.combine(
        pd.concat([a.items[name], b.items[name]])
        for name in arrays.unit_columns(a.items)
        if name in b.items
    )
    rows_b = pd.Index(item[len(a.first) :]).get_indexer(item[: len(a.first)])
    rows_a = np.flatnonzero(rows_b >= 0)
    return rows_a.astype(np.int64), rows_b[rows_a].astype(np.int64)


def _split(value: Any) -> tuple[Any, str]:
    design, _, piece = str(value).rpartition("/")
    return (design, piece) if piece in _PARTS else (value, "")
