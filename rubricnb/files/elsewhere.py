"""Judgments from elsewhere: a table of scores becomes a frame for statistics."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import zip_longest
from pathlib import Path
from textwrap import shorten
from typing import Any, cast

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from rubricnb.core.frames import (
    CONDITIONS,
    JUDGMENTS,
    STATUSES,
    Items,
    Judgments,
    places,
    refuse,
    score_dtype,
)
from rubricnb.core.labels_in_text import labels_found, parser_of
from rubricnb.core.permutation import balanced, decode, fixed, ranks, williams
from rubricnb.core.support.hashing import hash64, mix64
from rubricnb.core.support.types import Ends as Scale
from rubricnb.core.support.types import FloatArray, IntArray, Mask
from rubricnb.core.thoughts import without_thoughts
from rubricnb.files.cells import (
    EMPTY,
    GAPS,
    OFF,
    Scales,
    as_numbers,
    as_text,
    cells_of,
    clean_names,
    differs,
    distinct,
    each_once,
    scales_of,
    understand,
)
from rubricnb.files.own import read_texts
from rubricnb.files.people import read_ratings
from rubricnb.files.reading import Decisions, Reading
from rubricnb.files.repeats import join_raters, number_reads
from rubricnb.files.tables import (
    are_gaps,
    named_table,
    require,
)

_RENAMED = {"form": "template", "read": "replicate"}
_NUMBERS = (
    r"temperature|expected_score|label_mass|probability_\d+|prompt_tokens"
    "|cached_tokens|completion_tokens|seconds"
)
_TEXTS = (
    "dataset",
    "item_id",
    "text_id",
    "criterion",
    "cluster_id",
    "group_id",
    "candidate",
)
# what columns of conditions and of numbers may hold in a table of others
_LEVEL = r"auto|none|unknown|-?\d+(?:\.\d+)?"
_VALUES = {
    _NUMBERS: r"nan|[-+.,\d]+(?:e-?\d+)?",
    "labels": "numeric|letter|roman|unknown",
    "layout": "rubric-(?:last|first)|unknown",
    "reference_score|exemplar": _LEVEL,
    "variant": "standard|paraphrased|unknown",
    "readout": "auto|feedback|score|logprobs|json|unknown",
    "prompt_format": "chat|plain|unknown",
    "effort": "default|none|minimal|low|medium|x?high|max|unknown",
    "thinking": "default|on|off|unknown",
    "source": "recorded|live|simulated",
    "design": r"[a-z][\w-]*",
    "seed|max_tokens|n_options": r"-?\d+(?:\.0)?",
    "criterion_ordering": r"[^-\s][^-]*(?:-[^-]+)+",
}
_OF_LEVELS = ("ordering", "reference_score", "exemplar")
_OF_ITEM = ("cluster_id", "group_id", "candidate", "human")
_WITHIN = ("judge", *CONDITIONS)
_DESIGNS = {"fixed": fixed, "balanced": balanced, "williams": williams}
_OF_DTYPE: dict[str, Any] = {
    "category": "unknown",
    "float32": np.float32("nan"),
    "int32": np.int32(0),
}
_NOT_KNOWN = {
    **{
        column.name: _OF_DTYPE[column.dtype]
        for column in JUDGMENTS
        if column.required and column.dtype in _OF_DTYPE
    },
    "design": "fixed",
    **dict.fromkeys(("effort", "thinking"), "default"),
    "source": "recorded",
    "key": "",  # the same for all reads: unknown
}


def judgments(
    table: pd.DataFrame | str | Path,
    items: pd.DataFrame | None = None,
    scale: Scale | Mapping[str, Scale] | None = None,
    *,
    columns: Mapping[str, str] | None = None,
    scores: Sequence[str] = (),
    failed: float | Sequence[float] | None = None,
    parser: Any = None,
) -> Judgments:
    """Turn a table of scores that were made elsewhere into judgments.

    Parameters
    ----------
    table
        One row a score; a frame, or a file: ``.csv`` (also with semicolons), ``.tsv``,
        ``.txt``, ``.jsonl``, ``.json`` or ``.parquet``; or a log: ``.eval`` or
        ``.json`` of inspect_ai, ``.json`` of promptfoo or DeepEval; or a list of rows.
        Needed: ``score`` (a number, a label of the items' rubrics, or ``4/5`` on a
        scale up to 5), and ``item_id`` or ``text_id``, or ``group_id`` and
        ``candidate``. Read where present:

        * ``judge``, ``dataset``, ``criterion``; ``form`` (of the prompt; it becomes
          ``template``), ``temperature`` and any other condition column of judgments
          that holds such values;
          ``expected_score``, and ``probability_1``, … of the option at position k;
        * ``read``: number or any label of a repeated read; it becomes ``replicate``,
          which counts the reads of a prompt from 1, without it in the order of the
          rows;
        * ``ordering``: the levels in the order in which the prompt listed them,
          ``2-3-1``. They are named as in ``score``: by their labels in the items'
          rubrics, or by their scores;
        * ``status``: ok, unparsed, out_of_range, truncated, refused or error; by
          default ok where there is a score and unparsed where there is none;
        * ``cluster_id`` (what shares a text; default: ``group_id``, else the text),
          ``group_id`` (whose candidates compete), ``candidate``, ``human``,
          ``human_ratings``.

        Further columns are kept.
    items
        The items that were judged. Rows are matched on dataset, item_id (or text_id)
        and criterion, as far as both have them; an id may be a text's, and lack the
        ``dataset/`` that `load` puts before it. Rows without an item are dropped, and a
        line says how many. Default: the table's own ids, clusters and ratings.
    scale
        Lowest and highest score, or such a pair for each criterion. Default: the levels
        of the items' rubrics; for logs of promptfoo and DeepEval, whose scores are
        shares, (0, 1).
    columns
        The table's names of columns → those above, as ``{"value": "score"}``. Several
        columns may be ``human_ratings``: one a rater. Upper and lower case do not
        matter.
    scores
        Columns that hold a criterion's scores each; ``human_CRITERION`` holds its
        ratings.
    failed
        A number, or several, that mark a read without a score or a text without a
        rating, such as -1 or 99.
    parser
        Where ``score`` holds a judge's whole answers: what finds the score in them, as
        in `rubricnb.open_judge` (``json``, ``json:KEY``, an expression such as ``Score:
        (\\d)``, or a function). It reads a number whole: 4.5 is not 4.

    Returns
    -------
    Judgments
        The contract's columns (`rubricnb.core.frames.JUDGMENTS`; what is not known is
        ``unknown``, and ``ordering`` and ``position`` are missing where none is given),
        with the items they are about, and their ratings, as ``.rated``. Scores are kept
        as they are: float64 if one is not whole. They are blanked where the status is
        not ok; of a score that is not a number it is unparsed, off the scale
        out_of_range, and ``reason`` says why. Each of this prints a line. One prompt,
        or none known, is the design ``fixed``; orderings are ``balanced`` or
        ``williams`` if half of the items or more were shown exactly those, else
        ``shuffled``; a column ``design`` decides.

    Raises
    ------
    ValueError
        A column is missing or there twice, no score is a number on the scale, one read
        has two rows (same judge, item, conditions and ``read``, or equal in every
        column), items share an id, or none was judged. Names the rows.

    Examples
    --------
    >>> import pandas as pd
    >>> import rubricnb as rb
    >>> log = pd.DataFrame({"item_id": list("aabb"), "read": [1, 2, 1, 2],
    ...                     "score": [0, 0.5, 4, 4], "human": [1, 1, 3, 3]})
    >>> mine = rb.judgments(log, scale=(0, 4))
    >>> mine.score.tolist(), mine.rated.human.tolist()
    ([0.0, 0.5, 4.0, 4.0], [1.0, 3.0])
    >>> table = log.rename(columns={"item_id": "traceId", "score": "value"})
    >>> names = {"traceId": "item_id", "value": "score"}
    >>> rb.judgments(table, scale=(0, 3), columns=names).score.tolist()
    judgments: 2 of 4 scores are out_of_range (off the scale 0..3), \
the first in row 2: 4
    [0.0, 0.5, nan, nan]
    """
    how: Any = {"items": items, "scale": scale, "columns": columns}
    how |= {"scores": scores or None, "failed": failed, "parser": parser}
    how = {name: option for name, option in how.items() if option is not None}
    if not how and isinstance(table, Judgments) and hasattr(table, "rated"):
        return table
    is_read = isinstance(table, Reading)
    if is_read and how:
        raise ValueError("the reading has the options: give them to rb.reading")
    known: Any = table if is_read else reading(table, **how)
    return cast(Judgments, known.result())


def reading(
    table: Any,
    items: pd.DataFrame | None = None,
    scale: Scale | Mapping[str, Scale] | None = None,
    *,
    rubric: Any = None,
    decide: Decisions = (),
    **how: Any,
) -> Reading:
    """Say what a file means, before a number is computed from it.

    Parameters
    ----------
    table, items, scale
        As `judgments` takes them.
    rubric
        Of a table of texts: its rubrics, as `load` takes them.
    decide
        Lines ``COLUMN KEY: VALUE`` that answer the questions of a reading, or the file
        of one that was saved. A table that no longer fits that one is refused.
    how
        ``columns``, and of scores ``scores``, ``failed`` and ``parser``, as `judgments`
        takes them.

    Returns
    -------
    Reading
        Printed, it is YAML: the table, the role of each column, the classes of its
        values with counts and first examples, and the ``questions`` that are open.
        `judgments` and `load` take it in place of the table; ``save(PATH)`` writes it.

    Raises
    ------
    ValueError
        The table cannot be read at all; `judgments` names the reasons.

    Examples
    --------
    >>> import rubricnb as rb
    >>> log = [{"item_id": "a", "score": 1, "error": None},
    ...        {"item_id": "b", "score": 3, "error": "late"}]
    >>> read = rb.reading(log, scale=(1, 5))
    judgments: 1 rows say in 'error' that they failed: they are errors, \
and have no score
    judgments: 1 scores are removed, as their status is not ok
    >>> for name, meaning in read.questions[0].readings.items():
    ...     print(f"{name}: {meaning}")
    failed: these rows have no score
    scored: they have the score that is written
    >>> read = rb.reading(log, scale=(1, 5), decide=["error rows: scored"])
    >>> rb.judgments(read).score.tolist()
    [1, 3]
    """
    if rubric is not None:
        return read_texts(table, rubric, how.get("columns"), decide)
    return Reading("judgments", decide).read(
        lambda known: _understood(known, table, items, scale, **how)
    )


def _understood(
    reading: Reading,
    table: Any,
    items: pd.DataFrame | None,
    scale: Scale | Mapping[str, Scale] | None,
    columns: Mapping[str, str] | None = None,
    scores: Sequence[str] = (),
    failed: float | Sequence[float] | None = None,
    parser: Any = None,
) -> Judgments:
    if items is not None and not isinstance(items, pd.DataFrame):
        raise ValueError(
            "items are the texts that were judged, as rb.load('csv', path=…, rubric=…) "
            f"returns them, not {type(items).__name__}"
        )
    reading.failed = tuple(np.atleast_1d([] if failed is None else failed).tolist())
    frame = named_table(table, columns, reading, scores, _RENAMED)
    what, tool_scale = frame.attrs["name"], frame.attrs.get("scale")
    words = frame.attrs.get("words", {})
    scale = tool_scale if scale is None and items is None else scale
    frame = _typed(_melted(frame, scores, what), what)
    frame = join_raters(frame, what)
    if items is None:
        frame = _with_shared_criterion(frame, reading)
    frame, rated, item = _matched(frame, items)
    item_id = rated["item_id"].iloc[item].set_axis(frame.index)
    if "design" not in frame and frame["ordering"].notna().any():
        frame["design"] = _designs(frame, item)
    asked = frame.columns.intersection(["design", *_WITHIN])
    unit = cells_of(frame[asked].assign(item=item))
    frame["replicate"] = number_reads(frame, item_id, unit, reading)
    rubrics = getattr(items, "rubrics", None)
    # Scores on another scale than the rubric's,
    # or from an export of this package, are no labels.
    is_own = {"request_id", "ordering", "position"} <= set(frame)
    by_value = is_own or scale is not None
    scales = scales_of(rated, rubrics, reading, scale, words, by_value)
    reading.document["table"]["scale"] = ", ".join(
        sorted({f"{own.low:g}..{own.high:g}" for own in scales.levels})
    )
    if parser is not None:
        frame["score"] = _parsed_scores(frame, parser)
    of_rows = scales._replace(which=scales.which[item])
    _read_scores(frame, of_rows, tool_scale if scale is None else None)
    rated = _with_ratings(rated, items, scales)
    if rubrics is not None:
        for name in frame.columns.intersection(_OF_LEVELS):
            _name_by_scores(frame, name, of_rows)
    if "expected_score" in frame:
        frame["expected_score"] = understand(frame["expected_score"], of_rows)[0]
    _read_orderings(frame, of_rows)
    out = _finished(frame, rated, item, unit)
    out.attrs["reading"] = reading.lines
    return out


def _finished(
    frame: pd.DataFrame, rated: Items, item: IntArray, unit: IntArray
) -> Judgments:
    """Fill in the rest of the contract's columns."""
    for name, value in _NOT_KNOWN.items():
        if name not in frame:
            frame[name] = (
                pd.Categorical([value]).take(item * 0)
                if isinstance(value, str)
                else value
            )
    for name in rated.columns.intersection(_TEXTS):
        frame[name] = pd.Categorical(rated[name]).take(item)
    frame["temperature"] = frame["temperature"].astype(np.float32)
    frame["design"] = pd.Categorical(frame["design"])
    kinds = frame["ordering"].cat.codes.to_numpy(np.int64) * 2**15
    index = places(unit, kinds + frame["replicate"].to_numpy()) + 1
    frame["ordering_index"] = index.astype(np.int16)
    frame["request_id"] = _ids(frame)
    order = [c.name for c in JUDGMENTS if c.name in frame]
    known = {*order, "text_id", "human", "human_ratings"}
    out = Judgments(frame[[*order, *(c for c in frame if c not in known)]])
    out.rated = rated
    return out


def _melted(frame: pd.DataFrame, scores: Sequence[str], what: str) -> pd.DataFrame:
    """Give each criterion's score a row, where a column holds a criterion's scores."""
    names = list(scores)
    require(frame, names, what)
    held = next((c for c in ("score", "scores") if c in frame), "")
    cells = frame[held] if held and not names else pd.Series(dtype="float64")
    if (
        cells.dtype == object
        and len(cells)
        and all(isinstance(cell, Mapping) and "score" not in cell for cell in cells)
    ):
        parts = pd.DataFrame(cells.tolist(), frame.index)
        names = [str(name) for name in parts]
        frame = frame.drop(columns=held).join(parts.set_axis(names, axis=1))
    if not names:
        return frame
    if both := {"score", "criterion"} & set(frame):
        raise ValueError(
            f"{what} has the column {min(both)!r}, and scores= names columns of scores "
            "as well: leave out one of them"
        )
    if len(names) > 1 and "human" in frame:
        print(
            f"judgments: {', '.join(names)} are read as criteria, and 'human' rates "
            "them all. If they are judges: table.melt([…], var_name='judge', "
            "value_name='score')"
        )
    rest = [c for c in frame if c not in names]
    long = frame.melt(rest, names, "criterion", "score", ignore_index=False)
    for name in names:
        if f"human_{name}" in frame:
            of_name = long["criterion"] == name
            long.loc[of_name, "human"] = long.loc[of_name, f"human_{name}"]
    return long


def _typed(frame: pd.DataFrame, what: str) -> pd.DataFrame:
    """Read numbers as float64, names as categories, and orderings as codes."""
    names = {"item_id", "text_id"} & set(frame)
    if not names and {"group_id", "candidate"} <= set(frame):
        group, candidate = (frame[c].map(as_text) for c in ("group_id", "candidate"))
        frame = frame.assign(text_id=group + "/" + candidate)
    if "score" not in frame and "winner" in frame:
        raise ValueError(
            f"{what} names the winner of two answers, but judgments are scores of "
            "single answers: pairwise logs are not supported"
        )
    require(frame, ["score", *([] if "text_id" in frame else ["item_id"])], what)
    if len(frame) == 0:
        raise ValueError("there are no judgments: the table is empty")
    blank = {c: gaps for c in frame if (gaps := are_gaps(frame[c])).any()}
    frame = frame.assign(**{c: frame[c].mask(gaps) for c, gaps in blank.items()})
    frame = _with_known_conditions(frame, what)
    for name in frame.columns[frame.columns.str.fullmatch(_NUMBERS)]:
        frame[name] = as_numbers(frame[name])
    for name in frame.columns.intersection([*_TEXTS, *_WITHIN, "replicate", "status"]):
        if name != "temperature" and frame[name].dtype != "category":
            frame[name] = _names(frame[name])
    given = frame.get("ordering", pd.Series(index=frame.index, dtype="str"))
    if given.dtype != "str":
        given = given.astype("object").map(_joined("-"), "ignore")
    frame["ordering"] = pd.Categorical(given)
    return frame


def _with_known_conditions(frame: pd.DataFrame, what: str) -> pd.DataFrame:
    """Rename columns that may only have a name of ours; a line says so."""
    names = []
    for pattern, values in _VALUES.items():
        for name in frame.columns[frame.columns.str.fullmatch(pattern)]:
            written = distinct(frame[name])[1].map(as_text).astype("str")
            is_gap = written.str.casefold().isin(("", *GAPS))
            if not (is_gap | written.str.fullmatch(values, case=False)).all():
                names.append(name)
    if "position" in frame and "ordering" not in frame:
        names.append("position")
    by = "item_id" if "item_id" in frame else "text_id"
    if "template" in frame:  # may be the prompt itself, another one for every item
        pairs = frame[[by, "template"]].dropna().astype("str").drop_duplicates()
        if len(pairs) > 1 and pairs["template"].is_unique and pairs[by].is_unique:
            names.append("template")
    for name in names:
        print(
            f"{what}: the column {name!r} holds other values than ours of that name "
            f"and is kept as 'own_{name}'"
        )
    return frame.rename(columns={name: f"own_{name}" for name in names})


def _with_shared_criterion(frame: pd.DataFrame, reading: Reading) -> pd.DataFrame:
    """Ask about criteria of one text each, which cannot be measured one by one."""
    by = "item_id" if "item_id" in frame else "text_id"
    names = [by, *frame.columns.intersection(["criterion"])]
    pairs = frame[names].drop_duplicates()
    if (
        len(names) < 2
        or pairs[by].nunique() < 2
        or pairs["criterion"].duplicated().any()
    ):
        return frame
    meaning = reading.ask(
        "criterion",
        "rows",
        f"judgments: each of the {len(pairs):,} criteria has one text, so that nothing "
        "can be said of a single one",
        {
            "together": "they are read as one criterion, and a text is a cluster",
            "apart": "each is a criterion of its own",
        },
    )
    if meaning == "apart":
        return frame
    text = frame[by].astype("str")
    item = text + "/" + frame["criterion"].astype("str")
    own = frame.rename(columns={"criterion": "own_criterion"})
    return own.assign(text_id=text, item_id=item)


def _joined(mark: str) -> Callable[[Any], str]:
    """Return what writes a cell as text, and a list with this mark between."""
    return lambda v: mark.join(map(as_text, v)) if isinstance(v, list) else as_text(v)


def _names(values: pd.Series) -> pd.Series:
    if values.dtype == object:  # FastChat names a judge by a list
        values = values.map(_joined("/"), na_action="ignore")
    code, found = pd.factorize(values)
    found = clean_names(pd.Series(found, name=values.name), "judgments")
    again, texts = pd.factorize(found)
    names = pd.Categorical.from_codes(np.append(again, -1)[code], pd.Index(texts))
    return pd.Series(names, values.index, name=values.name)


def _matched(
    frame: pd.DataFrame, items: pd.DataFrame | None
) -> tuple[pd.DataFrame, Items, IntArray]:
    """Match rows with items: return matched rows, items, and each row's index."""
    by = "item_id" if "item_id" in frame else "text_id"
    known = frame if items is None else frame.columns.intersection(items.columns)
    keys = [c for c in ("dataset", by, "criterion") if c in known]
    for name in frame.columns.intersection([*keys, "cluster_id"]):
        why = (
            "is missing; if cells of the sheet are merged, fill them down, so that "
            "every row has its own"
        )
        refuse("judgments", frame[name], frame[name].isna(), why)
    item = cells_of(frame[keys])
    first = ~pd.Series(item).duplicated().to_numpy()
    for name in frame.columns.intersection(_OF_ITEM):
        why = (
            f"is not what an earlier row of this {by} says; ratings by several people "
            "are one row a text, in human_ratings (3 4 4)"
        )
        refuse("judgments", frame[name], differs(item, frame[name]), why)
    own = frame[[c for c in (*_TEXTS, "human", "human_ratings") if c in frame]]
    own = own[first].astype({c: "str" for c in _TEXTS if c in own})
    if items is None:
        return frame, _own_items(own.reset_index(drop=True), by), item
    wanted = pd.MultiIndex.from_frame(own[keys])
    place = _places_among(items, keys, wanted)
    has_item = place >= 0
    of_row = has_item[item]
    if not has_item.all():
        lost = "; ".join(", ".join(key) for key in wanted[~has_item])
        print(
            f"judgments: {(~of_row).sum():,} of {len(frame):,} rows have no item and "
            f"are dropped: {shorten(lost, 60, placeholder=' …')}"
        )
    rated = Items(items.iloc[place[has_item]].reset_index(drop=True))
    if hasattr(items, "rubrics"):
        rated.rubrics = items.rubrics
    for name in own.columns.difference(rated.columns):
        rated[name] = own[name].to_numpy()[has_item]
    number = np.cumsum(has_item) - 1
    return frame[of_row].copy(), _with_defaults(rated, by), number[item[of_row]]


def _with_defaults(items: pd.DataFrame, by: str) -> Items:
    """Fill in what a table of items may lack."""
    out = Items(items).__finalize__(items)
    defaults = {"dataset": "own", "criterion": "overall", "text_id": items[by]}
    for name in [name for name in defaults if name not in items]:
        out[name] = defaults[name]
    if "cluster_id" not in items:
        out["cluster_id"] = items.get("group_id", out["text_id"])
    return out


def _own_items(own: pd.DataFrame, by: str) -> Items:
    items = _with_defaults(own, by)
    several = items.groupby(["dataset", by])["criterion"].transform("size") > 1
    if by == "text_id" or several.any():
        ending = np.where(several | (by == "text_id"), "/" + items["criterion"], "")
        items["item_id"] = items[by] + ending
    return items


def _places_among(
    items: pd.DataFrame, keys: list[str], wanted: pd.MultiIndex
) -> IntArray:
    """Return the row of each wanted item, or -1: by id or by text, as more are found.

    An id may lack the ``dataset/`` that `load` puts before it.
    """
    by = next(k for k in keys if k.endswith("_id"))
    names = items[keys].astype("str")
    sets = items.get("dataset", pd.Series("", items.index)).astype("str") + "/"
    found = []
    for column in [by, *items.columns.intersection(["text_id"])]:
        full = items[column].map(as_text)
        bare = map(str.removeprefix, full, sets)
        found += [names.assign(**{by: ids}) for ids in (full, [*bare])]
    indexes = map(pd.MultiIndex.from_frame, found)
    known = max(indexes, key=lambda index: index.isin(wanted).any())
    place = np.flatnonzero(known.isin(wanted))
    if len(place) == 0:
        raise ValueError(
            f"none of the {len(wanted)} judged items (the first: "
            f"{', '.join(wanted[0])}) is among the items (the first: "
            f"{', '.join(known[0])}), matched on {', '.join(keys)}; pass the items "
            "that were judged"
        )
    if (twice := known[place].duplicated()).any():
        raise ValueError(
            f"items: {twice.sum()} appear twice under {', '.join(keys)} (the first: "
            f"{', '.join(known[place][twice][0])}); drop them, or name dataset and "
            "criterion in both tables"
        )
    return np.append(place, -1)[known[place].get_indexer(wanted)]


def _parsed_scores(frame: pd.DataFrame, parser: Any) -> pd.Series:
    """Return what a parser finds in each answer, by the row's criterion if several."""
    how = parser_of(parser)
    names = frame.get("criterion", pd.Series("", frame.index)).astype("str")
    found = []
    for text, name in zip(frame["score"].map(as_text), names, strict=True):
        labels = labels_found(how, without_thoughts(text), "") if text else {}
        found.append(labels.get(name.casefold(), labels.get("")))
    return pd.Series(found, frame.index, dtype="object", name="score")


def _read_scores(frame: pd.DataFrame, scales: Scales, tool_scale: Scale | None) -> None:
    """Set status and score; a score counts if it is a finite number on its scale."""
    cells, reading = frame["score"], scales.reading
    score, kind = understand(cells, scales)
    reading.note("score", kind, cells)
    _ask_about_shares(score, scales, tool_scale)
    is_none, is_off = np.isnan(score), kind == OFF
    marks = "marked " + ", ".join(f"{mark:g}" for mark in reading.failed)
    span = "off the scale {:g}..{:g}".format(*scales.ends[is_off.argmax()])
    # of each of KINDS: four of them are scores
    empty, none = "the cell is empty", "not a number"
    reasons = np.array([empty, none, "", "", "", "", marks, none, span], object)
    given = _given_status(frame)
    failure = _failures(frame, score, scales)
    given[(failure != "") & (given < 1)] = STATUSES.index("error")
    is_told = given > 0
    codes = np.where(is_told, given, is_none + 2 * is_off)
    why = np.where(is_told, failure, reasons[kind])
    if blanked := int((is_told & ~is_none).sum()):
        print(f"judgments: {blanked:,} scores are removed, as their status is not ok")
    is_lost = ~is_told & (codes > 0)
    _ask_what_is_lost(frame, codes == 0, is_lost & (kind != EMPTY), why, reading)
    for reason in pd.unique(why[is_lost]):
        rows = np.flatnonzero(is_lost & (why == reason))
        first = f"{frame.index[rows[0]]}: {as_text(cells.iloc[rows[0]])}"
        print(
            f"judgments: {len(rows):,} of {len(frame):,} scores are "
            f"{STATUSES[codes[rows[0]]]} ({reason}), the first in row "
            + first.rstrip(": ")
        )
    if "reason" in frame or (why != "").any():
        noted = frame.get("reason", pd.Series("", frame.index)).astype("object")
        frame["reason"] = noted.fillna("").where(lambda known: known != "", why)
    frame["status"] = pd.Categorical.from_codes(codes, categories=STATUSES)
    scores = pd.Series(np.where(codes == 0, score, np.nan), frame.index)
    frame["score"] = scores.astype(score_dtype(scores, "Int8"))


_FAILURES = (
    "(?i)(is_|has_|judge_|grader_|pars(e|ing)_|evaluation_)?"
    "(errors?|exception|failures?)|na"
)
_NO_FAILURE = ("", *GAPS, "false", "0", "no", "ok", "[]", "{}")


def _given_status(frame: pd.DataFrame) -> IntArray:
    """Return the number of each row's status, -1 where none is given."""
    if "status" not in frame:
        return np.full(len(frame), -1)
    status = frame["status"]
    known = pd.Index(STATUSES).get_indexer(status.cat.categories)
    given = np.append(known, -1)[status.cat.codes]
    strange = status.notna() & (given < 0)
    why = (
        f"is not one of {', '.join(STATUSES)}; if it means something else: "
        "columns={'status': 'other'}"
    )
    refuse("judgments", status, strange, why)
    return given


def _failures(
    frame: pd.DataFrame, score: FloatArray, scales: Scales
) -> NDArray[np.object_]:
    """Return what columns say about failures, "" where there was none.

    A harness may write the lowest score beside one; beside other scores it is a
    question whether the column is about failures of the judge.
    """
    found = np.full(len(frame), "", object)
    for column in frame.columns[frame.columns.str.fullmatch(_FAILURES)]:
        code, values = distinct(frame[column])
        texts = values.map(as_text).astype("str")
        is_failure = ~texts.str.casefold().isin(_NO_FAILURE).to_numpy()
        numbers = as_numbers(texts[is_failure])
        rows = is_failure[code]
        if not rows.any() or (numbers.notna() & (numbers != 1)).any():
            continue  # a measure of errors
        beside = rows & (score > scales.ends[:, 0])
        row = beside.argmax()
        meaning = "failed"
        if beside.any():
            meaning = scales.reading.ask(
                column,
                "rows",
                f"judgments: row {frame.index[row]}, column {column!r}: "
                f"{texts[code[row]][:40]!r} stands beside the score {score[row]:g}",
                {
                    "failed": "these rows have no score",
                    "scored": "they have the score that is written",
                },
            )
        if meaning == "failed":
            print(
                f"judgments: {rows.sum():,} rows say in {column!r} that they failed: "
                "they are errors, and have no score"
            )
            said = texts.str.slice(0, 200).to_numpy(object)[code]
            found = np.where(rows & (found == ""), said, found)
    return found


def _ask_what_is_lost(
    frame: pd.DataFrame, ok: Mask, is_written: Mask, why: Any, reading: Reading
) -> None:
    """Ask about a criterion, a judge, or a table, none of whose scores counts.

    `why` says so of each row; it `is_written` where something stands in the cell.
    """
    if not is_written.any():
        return
    names = [c for c in ("criterion", "judge") if c in frame]
    group = pd.Series(cells_of(frame[names]))
    is_whole = ~group.isin(group[ok]) & is_written
    for at in np.flatnonzero(is_whole & ~group.where(is_whole).duplicated()):
        row = frame.iloc[at]
        whose = ", ".join(str(row[c]) for c in names) or "score"
        reading.ask(
            whose,
            "scores",
            f"judgments: none of the scores of {whose} counts: row {row.name}: "
            f"{as_text(row['score'])!r} is {why[at]}; pass the right scale=, "
            "items whose rubric has such labels, or another score column; write yes as "
            "1; of answers such as 'Score: 4': parser='Score: (\\d)'; or say that they "
            "are lost",
            {"lost": "they stay without a score"},
        )


def _ask_about_shares(
    score: FloatArray, scales: Scales, tool_scale: Scale | None
) -> None:
    """Ask about scores that may be shares of 1: the best one would be the worst."""
    ends = scales.ends
    low = ends[np.isfinite(score), 0]
    given = score[np.isfinite(score)]
    is_share = (given >= 0) & (given <= 1) & (low >= 1)
    is_other = tool_scale is not None and (ends != tool_scale).any()
    if is_other or ((given < 1).any() and is_share.all()):
        first, last = ends[0]
        scales.reading.ask(
            "score",
            "scale",
            f"judgments: the levels are {first:g}..{last:g}, and every score lies "
            "between 0 and 1, as shares do: give scale=(0, 1), which compares ranks "
            "but not levels, or rescale the scores before (share * "
            f"{last - first:g} + {first:g}, or share * {last:g} if the tool divides by "
            f"{last:g}), or say that they are as they should be",
            {"levels": "they are levels of the scale"},
        )


def _with_ratings(
    rated: Items,
    items: pd.DataFrame | None,
    scales: Scales,
) -> Items:
    """Read the ratings that came with the table; loaded items' are known already."""
    rubrics = getattr(items, "rubrics", None)
    known: Any = () if rubrics is None else items
    names = [c for c in ("human", "human_ratings") if c in rated and c not in known]
    if not names:
        return rated
    if rubrics is not None:
        scales = scales_of(rated, rubrics, scales.reading)
    cells = pd.DataFrame(rated[names]).set_axis(rated["item_id"])
    read = read_ratings(cells, scales)
    out = rated.drop(columns=names)
    for name in read:
        out[name] = read[name].to_numpy()
    return out


def _name_by_scores(frame: pd.DataFrame, name: str, scales: Scales) -> None:
    """Name levels by their scores where a column names them by labels (``B-A-C``)."""
    place, texts, scales = each_once(frame[name], scales)
    names = []
    for text, number in zip(texts, scales.which, strict=True):
        own = scales.levels[number]
        scores = [own.labels.get(part.strip().casefold()) for part in text.split("-")]
        names.append(text if None in scores else "-".join(map(as_text, scores)))
    named = pd.Series(names, dtype="object").replace("", None)
    frame[name] = pd.Categorical(named.to_numpy()[place])


def _read_orderings(frame: pd.DataFrame, scales: Scales) -> None:
    """Set position and number of options."""
    orders = [_decoded(code) for code in frame["ordering"].cat.categories]
    wide = np.array([*zip_longest(*orders, (np.nan,), fillvalue=np.nan)], float).T
    shown = wide[frame["ordering"].cat.codes]  # a missing one has code -1: the last row
    low, high = (end[:, None] for end in scales.ends.T)
    on_scale = (shown >= low) & (shown <= high) | np.isnan(shown)
    why = "does not list the scores in an order, such as 2-3-1"
    refuse("judgments", frame["ordering"], ~on_scale.all(axis=1), why)
    at = shown == frame["score"].to_numpy(dtype=np.float64, na_value=np.nan)[:, None]
    place = np.where(at.any(axis=1), at.argmax(axis=1) + 1, np.nan)
    frame["position"] = pd.array(place, "Int8")
    counts = (~np.isnan(shown)).sum(axis=1)
    n_levels = np.array([own.n for own in scales.levels])[scales.which]
    counts = np.where(counts > 0, counts, n_levels)
    frame["n_options"] = counts.astype(np.int8 if counts.max() < 128 else np.int32)


def _decoded(code: str) -> tuple[float, ...]:
    """Read an ordering; one below every scale where it is none."""
    try:
        scores = decode(code)
    except ValueError:
        return (-np.inf,)
    return scores if 1 < len(scores) == len(set(scores)) else (-np.inf,)


def _designs(frame: pd.DataFrame, item: IntArray) -> NDArray[np.object_]:
    """Infer each judge's and condition's design from its commonest set of orderings."""
    arm = cells_of(frame[frame.columns.intersection(_WITHIN)])
    keys = pd.DataFrame({"arm": arm, "item": item, "order": frame["ordering"].array})
    keys = keys.dropna().drop_duplicates()
    order = keys["order"].cat
    keys["hash"] = hash64(order.categories)[order.codes]
    usual = keys.groupby("arm").apply(_design)
    design = pd.Series(arm).map(usual).to_numpy(object)
    return np.where(frame["ordering"].notna(), design, "fixed")


def _design(seen: pd.DataFrame) -> str:
    """The design of the set of orderings that most of these items were shown."""
    # Items were shown the same set where the sums of its hashes are equal.
    sums = seen.groupby("item")["hash"].sum()
    shares = sums.value_counts(normalize=True)
    share = shares.iloc[0]
    usual = seen["order"][seen["item"] == (sums == shares.index[0]).idxmax()]
    orders = {tuple(ranks(_decoded(code)).tolist()) for code in usual}
    n = len(min(orders))
    if share >= 0.5 and n > 1:  # one that is none is refused later
        for name, made in _DESIGNS.items():
            all_orders = made(n).orderings().tolist()
            if {*map(tuple, all_orders)} == orders:
                return name
    return "single" if share == 1 and len(orders) == 1 else "shuffled"


def _ids(frame: pd.DataFrame) -> NDArray[np.uint64]:
    hashes = []
    for name in (
        "dataset",
        "item_id",
        "criterion",
        "design",
        *_WITHIN,
        "ordering",
        "replicate",
    ):
        values = pd.Categorical(frame[name])
        own = np.append(hash64(values.categories.tolist()), np.uint64(0))  # -1 is a gap
        # the same for all, or each row's
        hashes.append(own[:1] if (values.codes == 0).all() else own[values.codes])
    return mix64(*hashes)
