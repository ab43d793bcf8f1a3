"""Rows of a log that repeat an item: further reads, several raters, or others.

Rows under one judge, item and prompt are further reads only if nothing else tells them
apart: a column that nobody mapped may name another text, judge or experiment.
"""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from rubricnb.core.frames import CONDITIONS, FRAMES, places, refuse
from rubricnb.files.cells import as_numbers, as_text, is_missing, names_people
from rubricnb.files.people import in_rows

IntArray = NDArray[np.int64]
_WITHIN = ("judge", *CONDITIONS)
_KNOWN = {"text_id", "human", "human_ratings", "reason"}.union(
    *({column.name for column in FRAMES[frame]} for frame in ("requests", "judgments"))
)
# What a judge, or the tool that asked it, writes anew with every read.
_OF_A_READ = re.compile(
    r"reason|rational|expla|comment|feedback|note|justif|critique|analysis|thought"
    r"|thinking|remark"
    r"|summary|time|date|created|updated|latency|duration|second|elapsed|cost|price"
    r"|usage|token"
    r"|raw|logprob|confidence|probab|judge|grader|completion",
    re.IGNORECASE,
)
_READ_NAMES = (
    "epoch",
    "repeat",
    "repetition",
    "replication",
    "trial",
    "attempt",
    "iteration",
    "run",
    "rep",
)


def cells_of(keys: pd.DataFrame) -> IntArray:
    """Number the rows' combinations of values."""
    varied = [c for c in keys if pd.factorize(keys[c])[0].any() or keys[c].isna().any()]
    groups = keys.groupby(varied or [*keys], observed=True, dropna=False, sort=False)
    return np.asarray(groups.ngroup(), dtype=np.int64)


def number_reads(frame: pd.DataFrame, item_id: pd.Series) -> NDArray[np.int16]:
    """Number the reads of a prompt from 1; refuse rows that are something else.

    Raises
    ------
    ValueError
        One read has two rows, or an unmapped column tells all rows of each prompt
        apart.
    """
    names = [
        c for c in ("design", *_WITHIN, "ordering", "ordering_index") if c in frame
    ]
    cell = cells_of(frame[names].assign(item=item_id))
    twice = pd.Series(cell).duplicated(keep=False).to_numpy()
    given = frame.get("replicate")
    differing: list[str] = []
    if given is None and twice.any():
        given, differing = _tell_apart(frame, item_id, cell, twice)
    elif given is not None and twice.any():
        _check_records(frame, item_id, cell, twice)
    label = pd.Series(np.arange(len(frame)), frame.index) if given is None else given
    label = label.rename("read")
    _refuse(label, is_missing(label), "is missing")
    numbers = as_numbers(label)
    is_number = bool(numbers.notna().all())
    code = pd.factorize(numbers if is_number else label.map(as_text), sort=is_number)[0]
    if given is not None:
        same = twice.copy()
        same[twice] = pd.DataFrame({"cell": cell, "read": code})[twice].duplicated(
            keep=False
        )
        if same.any():
            _refuse(item_id, same, _judged_twice(frame, cell, same))
    if given is not None and ((numbers % 1 == 0) & numbers.between(1, 2**15 - 1)).all():
        return numbers.to_numpy(np.int16)
    if twice.any():
        said = f"; they differ in {_listed(differing)}" if differing else ""
        print(
            "judgments: the reads of a prompt are numbered from 1, by their 'read' or "
            f"by row{said}"
        )
    return (places(cell, code) + 1).astype(np.int16)


def without_copies_by_raters(frame: pd.DataFrame, what: str) -> pd.DataFrame:
    """Join rows that repeat a score for each person who rated; a line says so."""
    if "human" not in frame or "human_ratings" in frame:
        return frame
    people = [c for c in frame if names_people(str(c)) and c not in _KNOWN]
    names = [c for c in ("item_id", "text_id", "dataset", "criterion") if c in frame]
    item = cells_of(pd.DataFrame({c: _codes(frame[c]) for c in names}))
    human = _codes(frame["human"])
    if not people and not _varies(item, human):
        return frame
    names = [c for c in ("replicate", "ordering", *_WITHIN) if c in frame]
    cell = cells_of(pd.DataFrame({c: _codes(frame[c]) for c in names} | {"item": item}))
    several = pd.Series(cell).duplicated(keep=False).to_numpy()
    if not several.any():
        return frame
    score = _codes(frame["score"])
    by_people = [
        c for c in people if _is_apart(cell[several], _codes(frame[c])[several])
    ]
    differs = _varies(cell, human)
    if not (by_people or differs) or _varies(cell, score):
        return frame
    first = ~pd.Series(cell).duplicated().to_numpy()
    out = frame[first].drop(columns=["human", *people])
    named = frame[by_people[0]].tolist() if by_people else None
    out["human_ratings"] = in_rows(cell, frame["human"].tolist(), named)
    who = f" (by {by_people[0]!r})" if by_people else ""
    print(
        f"{what}: {len(frame):,} rows hold {len(out):,} scores: the ratings of "
        f"repeated rows{who} are joined"
    )
    return out


def _tell_apart(
    frame: pd.DataFrame, item_id: pd.Series, cell: IntArray, twice: NDArray[np.bool_]
) -> tuple[pd.Series | None, list[str]]:
    """Find what tells repeated rows apart: labels of reads, differing columns."""
    rows = np.flatnonzero(twice)
    cells = cell[rows]
    unmapped = [
        c
        for c in frame
        if c not in _KNOWN and not re.fullmatch(r"probability_\d+", str(c))
    ]
    codes = {str(c): _codes(frame[c].iloc[rows]) for c in unmapped}
    codes = {name: code for name, code in codes.items() if _varies(cells, code)}
    score = _codes(frame["score"].iloc[rows])
    if not codes and not _varies(cells, score):
        _refuse(item_id, twice, _judged_twice(frame, cell, twice))
    for name, code in codes.items():
        if (
            name.casefold() in _READ_NAMES
            and _is_apart(cells, code)
            and _counts(frame[name])
        ):
            print(f"judgments: the column {name!r} is read as 'read'")
            return frame[name], []
    apart = [
        name
        for name, code in codes.items()
        if _is_another_thing(name, cells, code, score)
    ]
    if apart:
        # The fewer values, the more it is like the name of a judge or an experiment.
        first = min(
            apart,
            key=lambda name: (len(np.unique(codes[name])), name.casefold() == "id"),
        )
        is_name = 2 * len(np.unique(codes[first])) <= len(rows)
        _refuse(item_id, twice, _ways_out(first, [*codes], is_name))
    rest = {str(c): _codes(frame[c].iloc[rows]) for c in frame if str(c) not in codes}
    same = (
        pd.DataFrame(rest | codes | {"cell": cells}).duplicated(keep=False).to_numpy()
    )
    if same.any():
        copies = twice.copy()
        copies[rows] = same
        _refuse(item_id, copies, _judged_twice(frame, cell, copies))
    return None, [*codes]


def _check_records(
    frame: pd.DataFrame, item_id: pd.Series, cell: IntArray, twice: NDArray[np.bool_]
) -> None:
    """Check reads that are numbered by the records of a tool, which are not all reads.

    Each record has an id of its own, also where it is about another text, or a copy.
    """
    labels = frame["replicate"]
    if labels.duplicated().any() or as_numbers(labels).notna().any():
        return
    rows = np.flatnonzero(twice)
    cells, score = cell[rows], _codes(frame["score"].iloc[rows])
    for name in (
        c for c in frame if c not in _KNOWN and str(c).casefold() not in _RECORD_NAMES
    ):
        code = _codes(frame[name].iloc[rows])
        if (
            not _OF_A_READ.search(str(name))
            and _varies(cells, code)
            and _is_apart(cells, code)
        ):
            _refuse(
                item_id,
                twice,
                _ways_out(str(name), [], 2 * len(np.unique(code)) <= len(rows)),
            )
    if not _varies(cells, score):
        print(
            "judgments: repeated rows have equal scores throughout; if they are copies "
            "of one record, keep one of each"
        )


_RECORD_NAMES = ("id", "uuid", "key", "index")


def _is_another_thing(
    name: str, cells: IntArray, code: IntArray, score: IntArray
) -> bool:
    """Whether a column tells repeated rows apart, and is not written by a judge."""
    if _OF_A_READ.search(name):
        return False
    if _is_apart(cells, code):
        return True
    follows_score = not _varies(score, code)
    return _is_crossed(cells, code) and not follows_score


def _is_crossed(cells: IntArray, code: IntArray) -> bool:
    """Whether each value comes equally often in each cell (two models, two reads)."""
    n_cells, n_values = len(np.unique(cells)), len(np.unique(code))
    _, counts = np.unique(cells * (code.max() + 1) + code, return_counts=True)
    return (
        n_cells > 1
        and len(counts) == n_cells * n_values
        and len(set(counts.tolist())) == 1
    )


def _ways_out(name: str, differing: list[str], is_name: bool) -> str:
    others = [one for one in differing if one != name]
    also = f" (and in {_listed(others)})" if others else ""
    text = (
        f"columns={{{name!r}: 'item_id'}} if every row is another text (what is "
        "'item_id' now "
    )
    text += "can be 'cluster_id')"
    names = (
        f"columns={{{name!r}: 'judge'}} (or 'criterion', 'form') if it names what was "
        "asked"
    )
    read = f"columns={{{name!r}: 'read'}} if the rows are repeated reads"
    ways = [names, read, text] if is_name else [text, read]
    return (
        "is scored several times under the same conditions, and the rows differ in "
        f"{name!r}{also}. Say what that is: {'; '.join(ways)}. Of copies, keep one row"
    )


def _judged_twice(frame: pd.DataFrame, cell: IntArray, same: NDArray[np.bool_]) -> str:
    codes = {str(c): _codes(frame[c][same]) for c in frame if c not in _KNOWN}
    differing = [name for name, code in codes.items() if _varies(cell[same], code)]
    said = f" (the rows differ in {_listed(differing)})" if differing else ""
    return (
        f"is judged twice under the same conditions{said}; drop the copies, or number "
        "repeated reads in a column 'read'"
    )


def _listed(names: list[str]) -> str:
    return ", ".join(names[:5]) + (" …" if len(names) > 5 else "")


def _codes(values: pd.Series) -> IntArray:
    """Number the values of a column; a gap is a value, too."""
    try:
        codes = pd.factorize(values, use_na_sentinel=False)[0]
    except (TypeError, ValueError):  # lists, dictionaries, arrays
        codes = pd.factorize(values.map(as_text))[0]
    return np.asarray(codes, dtype=np.int64)


def _varies(cells: IntArray, code: IntArray) -> bool:
    """Whether a column has several values within some cell."""
    first = np.empty(int(cells.max(initial=0)) + 1, dtype=np.int64)
    first[cells] = code  # of each cell, the code of some row
    return bool((first[cells] != code).any())


def _is_apart(cells: IntArray, code: IntArray) -> bool:
    """Whether no two rows of a cell have the same value."""
    return not pd.DataFrame({"cell": cells, "code": code}).duplicated().any()


def _counts(values: pd.Series) -> bool:
    """Whether a column numbers reads: 1, 2, … or run-1, run-2, …"""
    texts = values.map(as_text)
    return bool(
        texts.str.fullmatch(r"(?:[a-z]+[-_ ]?)?\d{1,4}", flags=re.IGNORECASE).all()
    )


def _refuse(values: pd.Series, bad: ArrayLike, why: str) -> None:
    refuse("judgments", values, bad, why)
