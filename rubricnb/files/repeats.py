"""Rows of a log that repeat an item: further reads, several raters, or a question.

Rows under one judge, item and prompt are further reads only if nothing else tells them
apart: a column that nobody mapped may name another text, judge or experiment.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from rubricnb.core.frames import CONDITIONS, FRAMES, places, refuse
from rubricnb.core.support.types import IntArray, Mask
from rubricnb.files.cells import (
    as_numbers,
    cells_of,
    differs,
    distinct,
    names_people,
)
from rubricnb.files.people import join_rows
from rubricnb.files.reading import Reading

_WITHIN = ("judge", *CONDITIONS)
_KNOWN = {"text_id", "human", "human_ratings", "reason"}.union(
    *({column.name for column in FRAMES[frame]} for frame in ("requests", "judgments"))
)


def number_reads(
    frame: pd.DataFrame, item_id: pd.Series, unit: IntArray, reading: Reading
) -> NDArray[np.int16]:
    """Number the reads of a prompt from 1; ask about rows that may be something else.

    Rows of one `unit` were asked about one item by one judge in one way.

    Raises
    ------
    ValueError
        One read has two rows.
    """
    orders = frame.columns.intersection(["ordering", "ordering_index"])
    cell = cells_of(frame[orders].assign(unit=unit))
    twice = pd.Series(cell).duplicated(keep=False).to_numpy()
    rows = pd.Series(np.arange(len(frame)), frame.index)
    label = frame.get("replicate", rows).rename("read")
    refuse("judgments", label, label.isna(), "is missing")
    numbers = as_numbers(label)
    is_number = bool(numbers.notna().all())
    code = pd.factorize(numbers if is_number else label, sort=is_number)[0]
    is_copy = pd.Series(cell * (code.max(initial=0) + 1) + code).duplicated(keep=False)
    is_record = not (is_number or label.duplicated().any())
    if twice.any() and ("replicate" not in frame or is_record):
        # A tool gives each record an id, also where it is no read.
        is_copy |= _ask_what_repeats(frame, item_id, cell, twice, reading)
    why = (
        "is judged twice under the same conditions; drop the copies, or number "
        "repeated reads in a column 'read'"
    )
    refuse("judgments", item_id, is_copy, why)
    is_whole = (numbers % 1 == 0) & numbers.between(1, 2**15 - 1)
    if "replicate" in frame and is_whole.all():
        return numbers.to_numpy(np.int16)
    if twice.any():
        print(
            "judgments: the reads of a prompt are numbered from 1, by their 'read' or "
            "by row"
        )
    return (places(cell, code) + 1).astype(np.int16)


def _ask_what_repeats(
    frame: pd.DataFrame,
    item_id: pd.Series,
    cell: IntArray,
    twice: Mask,
    reading: Reading,
) -> Mask:
    """Ask what repeated rows are, if a column of their own tells them apart.

    Returns the rows that are equal in every column.
    """
    rows = frame[twice]
    codes = {c: distinct(rows[c])[0] for c in rows}
    own = [c for c in rows if c not in _KNOWN and not str(c).startswith("probability_")]
    differ = [c for c in own if differs(cell[twice], rows[c]).any()]
    if differ:
        # The fewer values, the more it is like the name of a judge or an experiment.
        name = min(differ, key=lambda c: (codes[c].max(), str(c).casefold() == "id"))
        others = ", ".join(str(c) for c in differ if c != name)
        also = f" (and in {others})" if others else ""
        reading.ask(
            "rows",
            "repeat",
            f"judgments: row {rows.index[0]}: {item_id[twice].iloc[0]!r} is scored "
            f"several times under the same conditions, and the rows differ in {name!r}"
            f"{also}. Say what that is: columns={{{name!r}: 'judge'}} (or 'criterion', "
            f"'form') if it names what was asked; columns={{{name!r}: 'item_id'}} if "
            "every row is another text (what is 'item_id' now can be 'cluster_id'); or "
            "delete all but one row",
            {"reads": "they are further reads of one prompt"},
        )
    is_equal = twice.copy()
    of_row = pd.DataFrame({str(c): code for c, code in codes.items()})
    is_equal[twice] = of_row.assign(cell=cell[twice]).duplicated(keep=False)
    return is_equal


def join_raters(frame: pd.DataFrame, what: str) -> pd.DataFrame:
    """Join rows that repeat a score for each person who rated; a line says so."""
    if "human" not in frame or "human_ratings" in frame:
        return frame
    names = ("item_id", "text_id", "dataset", "criterion", "replicate", "ordering")
    cell = cells_of(frame[[c for c in (*names, *_WITHIN) if c in frame]])
    people = [c for c in frame if c == "human" or names_people(str(c))]
    is_told = any(differs(cell, frame[c]).any() for c in people)
    if differs(cell, frame["score"]).any() or not is_told:
        return frame
    return join_rows(frame, cell, ["human"], what).rename(
        columns={"human": "human_ratings"}
    )
