"""Judgments from elsewhere: a table of scores becomes a frame for statistics."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from numbers import Real
from pathlib import Path
from typing import Any, cast

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from rubricnb.core.frames import (
    CONDITIONS,
    JUDGMENTS,
    STATUSES,
    Items,
    Judgments,
    places,
    refuse,
    scales_of,
    score_dtype,
)
from rubricnb.core.parsing import labels_found, parser_of
from rubricnb.core.permutation import balanced, decode, fixed, ranks, williams
from rubricnb.core.rubrics import label_scores
from rubricnb.core.support.counting import binned
from rubricnb.core.support.hashing import hash64, mix64
from rubricnb.core.thoughts import without_thoughts
from rubricnb.files.cells import (
    EMPTY,
    FAILED,
    GAPS,
    Levels,
    as_ids,
    as_numbers,
    as_text,
    distinct,
    is_missing,
    literal,
    numeric_labels,
    understand,
    without_spaces,
)
from rubricnb.files.own import read_texts
from rubricnb.files.people import columns_of_people, join_columns, read_ratings
from rubricnb.files.reading import Decisions, Reading
from rubricnb.files.repeats import cells_of, number_reads, without_copies_by_raters
from rubricnb.files.tables import are_gaps, name_columns, require, table_of

Scale = tuple[float, float]
IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]

_RENAMED = {"form": "template", "read": "replicate"}
_NUMBERS = (
    *("temperature", "expected_score", "label_mass", r"probability_\d+"),
    *("prompt_tokens", "cached_tokens", "completion_tokens", "seconds"),
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
_LEVEL = r"-?\d+(?:\.\d+)?"
# what the columns of conditions may hold in a table of others, in lower case
_CONDITION_VALUES = {
    "labels": "numeric|letter|roman|unknown",
    "layout": "rubric-(?:last|first)|unknown",
    "reference_score": f"auto|none|unknown|{_LEVEL}",
    "exemplar": f"none|unknown|{_LEVEL}",
    "variant": "standard|paraphrased|unknown",
    "readout": "auto|feedback|score|logprobs|json|unknown",
    "prompt_format": "chat|plain|unknown",
    "temperature": r"[01](?:[.,]\d+)?|2(?:[.,]0+)?|nan",
    "effort": "default|none|minimal|low|medium|x?high|max|unknown",
    "thinking": "default|on|off|unknown",
    "source": "recorded|live|simulated",
    "design": r"[a-z][\w-]*",
    "seed": r"-?\d+(?:\.0)?",
    "max_tokens": r"\d+(?:\.0)?",
    "n_options": r"\d+(?:\.0)?",
    "criterion_ordering": r"[^-\s][^-]*(?:-[^-]+)+",
}
_OF_ITEM = ("cluster_id", "group_id", "candidate", "human")
_WITHIN = ("judge", *CONDITIONS)
_DESIGNS = {"fixed": fixed, "balanced": balanced, "williams": williams}
_NOT_KNOWN: dict[str, Any] = {
    **dict.fromkeys(_WITHIN, "unknown"),
    **dict.fromkeys(("effort", "thinking"), "default"),
    **dict.fromkeys(("temperature", "seconds"), np.float32("nan")),
    "source": "recorded",
    "key": "",  # the same for all reads: unknown
    **dict.fromkeys(("seed", "max_tokens"), np.int32(0)),
    **dict.fromkeys(
        ("prompt_tokens", "cached_tokens", "completion_tokens"), np.int32(0)
    ),
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
          ``template``), ``temperature`` and any other condition column of judgments;
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
    judgments: 2 of 4 scores are out_of_range (off the scale 0..3), the first in row 2: 4
    [0.0, 0.5, nan, nan]
    """
    options = (items, scale, columns, failed, parser, scores or None)
    is_read = all(option is None for option in options)
    if is_read and isinstance(table, Judgments) and hasattr(table, "rated"):
        return table
    if isinstance(table, Reading):
        if not is_read:
            raise ValueError("the reading has the options: give them to rb.reading")
        return cast(Judgments, table.result())
    how = {"columns": columns, "scores": scores, "failed": failed, "parser": parser}
    return cast(Judgments, read_scores(table, items, scale, **how).result())


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
    judgments: 1 rows say in 'error' that they failed: they are errors, and have no score
    judgments: 1 scores are removed, as their status is not ok
    >>> read.questions[0].readings
    {'failed': 'these rows have no score', 'scored': 'they have the score that is written'}
    >>> read = rb.reading(log, scale=(1, 5), decide=["error rows: scored"])
    >>> rb.judgments(read).score.tolist()
    [1, 3]
    """
    if rubric is not None:
        return read_texts(table, rubric, how.get("columns"), decide)
    return read_scores(table, items, scale, decide=decide, **how)


def read_scores(
    table: Any,
    items: pd.DataFrame | None = None,
    scale: Scale | Mapping[str, Scale] | None = None,
    *,
    decide: Decisions = (),
    **how: Any,
) -> Reading:
    """Read a table of scores; return what it means (see `judgments`)."""
    reading = Reading("judgments", decide)
    result = None
    try:
        result = _understood(reading, table, items, scale, **how)
    except ValueError:
        if not reading.questions:  # they come first
            raise
    return reading.close(result)


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
    raw, what, reading.separator = table_of(table)
    own_scale, words = raw.attrs.get("scale"), raw.attrs.get("words") or {}
    reading.failed = tuple(np.atleast_1d([] if failed is None else failed).tolist())
    scale = own_scale if scale is None and items is None else scale
    frame = name_columns(raw, what, columns, _RENAMED, reading)
    frame = _melted(_with_people(frame, scores, what), scores, what)
    frame, rated, item = _matched(_columns(frame, what), items)
    frame["replicate"] = number_reads(
        frame, rated["item_id"].iloc[item].set_axis(frame.index)
    )
    which, ends = _scales(rated, scale, items)
    low, high = np.array([(own[0], own[-1]) for own in ends])[which].T
    _refuse_other_scale(own_scale if scale is None else None, low, high, what)
    reading.document["table"]["scale"] = ", ".join(
        sorted({f"{own[0]:g}..{own[-1]:g}" for own in ends})
    )
    rubrics = getattr(items, "rubrics", None)
    # Scores on another scale than the rubric's,
    # or from an export of this package, are no labels.
    is_own = {"request_id", "ordering", "position"} <= set(frame)
    by_word = is_own or (rubrics is not None and scale is not None)
    number, levels = _levels(rated, which, ends, rubrics, words, by_word)
    if parser is not None:
        frame["score"] = _parsed_scores(frame, parser)
    _read_scores(frame, item, number, levels, reading)
    rated = _with_ratings(rated, items, (number, levels), reading)
    if rubrics is not None:
        _read_levels(frame, number[item], levels)
    if "expected_score" in frame:
        means = understand(frame["expected_score"], number[item], levels, reading)
        frame["expected_score"] = means.value
    counts = [
        len(own) if scale is None or np.ptp(own) == len(own) - 1 else 0 for own in ends
    ]
    _read_orderings(frame, low[item], high[item], np.array(counts)[which[item]])
    _fill(frame, rated, item)
    frame["design"] = pd.Categorical(frame.get("design", _designs(frame, item)))
    unit = cells_of(frame[["design", *_WITHIN]].assign(item=item))
    kinds = frame["ordering"].cat.codes.to_numpy(np.int64) * 2**15
    frame["ordering_index"] = (places(unit, kinds + frame["replicate"]) + 1).astype(
        np.int16
    )
    frame["request_id"] = _ids(frame)
    order = [c.name for c in JUDGMENTS if c.name in frame]
    rest = [
        c
        for c in frame
        if c not in order and c not in ("text_id", "human", "human_ratings")
    ]
    out = Judgments(frame[[*order, *rest]])
    out.rated = rated
    out.attrs["reading"] = reading.lines
    return out


def _with_people(frame: pd.DataFrame, scores: Sequence[str], what: str) -> pd.DataFrame:
    """Join columns such as ``human_1``, which hold one person's ratings each."""
    found = columns_of_people(frame, scores)
    for people in found.values():
        print(f"{what}: {', '.join(people)} are read as the ratings of one person each")
    return join_columns(frame, found)


def _levels(
    rated: Items,
    which: IntArray,
    ends: Sequence[FloatArray],
    rubrics: pd.DataFrame | None,
    words: Mapping[str, float],
    by_word: bool,
) -> tuple[IntArray, list[Levels]]:
    """Return the number of each item's levels, and those."""
    rubric, names = np.zeros(len(rated), np.int64), pd.Index([""])
    labels: Mapping[str, Mapping[str, float]] = {"": {}}
    if rubrics is not None:
        rubric, names = pd.factorize(rated["rubric_id"].astype("str"))
        labels = label_scores(rubrics)
    number, pairs = pd.factorize(which * len(names) + rubric)
    levels = []
    for pair in pairs:
        scale, name = ends[pair // len(names)], names[pair % len(names)]
        own = labels[name]
        if by_word:
            numbers = set(numeric_labels(own))
            own = {
                w: s
                for w, s in own.items()
                if not numeric_labels({w: s}).keys() & numbers
            }
        levels.append(Levels(float(scale[0]), float(scale[-1]), own, name, words))
    return number, levels


def _refuse_other_scale(
    own: tuple[float, float] | None, low: FloatArray, high: FloatArray, what: str
) -> None:
    """Refuse scores whose log has another scale than the rubrics of the items."""
    if own is not None and (is_other := (low != own[0]) | (high != own[1])).any():
        first, last = low[is_other][0], high[is_other][0]
        raise ValueError(
            f"the scores of {what} are shares from {own[0]:g} to {own[1]:g}, and the "
            f"rubric's levels are {first:g}..{last:g}: {_rescale(first, last)}"
        )


def _rescale(low: float, high: float) -> str:
    """Say how shares become scores of a scale."""
    return (
        "give scale=(0, 1), which compares ranks but not levels, or rescale the scores "
        f"before (share * {high - low:g} + {low:g} for {low:g} to {high:g}, or share * "
        f"{high:g} if the tool divides by {high:g})"
    )


def _with_ratings(
    rated: Items,
    items: pd.DataFrame | None,
    scales: tuple[IntArray, list[Levels]],
    reading: Reading,
) -> Items:
    """Read the ratings that came with the table; loaded items' are known already."""
    rubrics = getattr(items, "rubrics", None)
    read_already = () if rubrics is None or items is None else items.columns
    raw = [
        c
        for c in ("human", "human_ratings", "gold")
        if c in rated and c not in read_already
    ]
    if not raw:
        return rated
    which, levels = scales
    if rubrics is not None:
        which, ends = scales_of(rated)
        which, levels = _levels(rated, which, ends, rubrics, {}, False)
    rated = _without_foreign_ratings(rated, which, levels)
    cells = pd.DataFrame(rated[raw]).set_axis(rated["item_id"])
    read = read_ratings(cells, which, levels, reading)
    out = rated.drop(columns=raw)
    for name in read:
        out[name] = read[name].to_numpy()
    return out


def _without_foreign_ratings(
    rated: Items, which: IntArray, levels: Sequence[Levels]
) -> Items:
    """Leave a criterion unrated if its scale lacks a text's one rating for all.

    A log may give a text one rating and several scores on different scales: the rating
    is on the scale of one of them.
    """
    if (
        not {"human", "text_id", "criterion"} <= set(rated)
        or len({own[:2] for own in levels}) < 2
    ):
        return rated
    low, high = np.array([own[:2] for own in levels])[which].T
    numbers = as_numbers(rated["human"])
    if (numbers.groupby(rated["text_id"].to_numpy()).nunique() > 1).any():
        return rated  # every criterion has ratings of its own
    is_off = ((numbers < low) | (numbers > high)).to_numpy()
    criterion = rated["criterion"].astype("str").to_numpy()
    foreign = np.unique(criterion[is_off])
    if not 0 < len(foreign) < len(np.unique(criterion)):
        return rated
    print(
        "judgments: 'human' is one rating a text, and some ratings are outside the "
        f"scale of {', '.join(map(repr, foreign))}: left unrated there"
    )
    out = rated.copy()
    out["human"] = rated["human"].mask(np.isin(criterion, foreign))
    return out


def _parsed_scores(frame: pd.DataFrame, parser: Any) -> pd.Series:
    """Return what a parser finds in each answer, by the row's criterion if several."""
    how = parser_of(parser)
    names = (
        frame["criterion"].astype("str") if "criterion" in frame else [""] * len(frame)
    )
    texts = frame["score"].map(as_text)
    found = []
    for text, name in zip(texts, names, strict=True):
        labels = labels_found(how, without_thoughts(text), "") if text else {}
        found.append(labels.get(name.casefold(), labels.get("")))
    return pd.Series(found, frame.index, dtype="object", name="score")


def _melted(frame: pd.DataFrame, scores: Sequence[str], what: str) -> pd.DataFrame:
    """Give each criterion's score a row, where a column holds a criterion's scores."""
    names = list(scores)
    require(frame, names, what)
    held = next((c for c in ("score", "scores") if c in frame), "") if not names else ""
    if (
        held
        and len(frame)
        and frame[held].map(lambda cell: isinstance(cell, Mapping)).all()
    ):
        parts = pd.DataFrame(frame[held].tolist(), frame.index)
        if "score" not in parts:  # a record holds {criterion: score}
            names = [str(name) for name in parts]
            frame = frame.drop(columns=held).join(parts.set_axis(names, axis=1))
    if not names:
        return frame
    if both := {"score", "criterion"} & set(frame):
        raise ValueError(
            f"{what} has the column {min(both)!r}, and scores= names columns of scores "
            "as well: leave out one of them"
        )
    own_ratings = {f"human_{name}" for name in names} & set(frame)
    if len(names) > 1 and "human" in frame and not own_ratings:
        print(
            f"judgments: {', '.join(names)} are read as criteria, and 'human' rates "
            "them all. If they are judges: table.melt([…], var_name='judge', "
            "value_name='score')"
        )
    other_columns = [c for c in frame if c not in names]
    long = frame.melt(other_columns, names, "criterion", "score", ignore_index=False)
    for name in names:
        if f"human_{name}" in frame:
            of_name = long["criterion"] == name
            long.loc[of_name, "human"] = long.loc[of_name, f"human_{name}"]
    return long


def _columns(frame: pd.DataFrame, what: str) -> pd.DataFrame:
    """Read numbers as float64, names as categories, and orderings as codes."""
    if "item_id" not in frame and {"group_id", "candidate"} <= set(frame):
        group, candidate = (frame[c].map(as_text) for c in ("group_id", "candidate"))
        frame = frame.assign(text_id=frame.get("text_id", group + "/" + candidate))
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
    frame = _with_known_conditions(pd.DataFrame(frame), what)
    for name in frame.columns[frame.columns.str.fullmatch("|".join(_NUMBERS))]:
        frame[name] = as_numbers(frame[name])
    for name in frame.columns.intersection([*_TEXTS, *_WITHIN]):
        if name != "temperature" and frame[name].dtype != "category":
            frame[name] = _names(frame[name])
    ordering = frame.get("ordering", pd.Series(None, frame.index, dtype="object"))
    if ordering.dtype == object:  # lists, which cannot be counted
        ordering = ordering.map(_listed, na_action="ignore")
    distinct = pd.Categorical(ordering).map(as_text, na_action="ignore")
    frame["ordering"] = pd.Categorical(distinct.astype("object"))
    return without_copies_by_raters(frame, what)


_FILL = (
    "if cells of the sheet are merged, fill them down, so that every row has its own"
)
_ONE_ROW = (
    "; if the rows are ratings by several people, write one row a text, with their "
    "ratings in human_ratings (3 4 4)"
)


def _with_known_conditions(frame: pd.DataFrame, what: str) -> pd.DataFrame:
    """Rename columns that only have the name of a condition; a line says so."""
    names = {}
    for name, pattern in _CONDITION_VALUES.items():
        if name not in frame:
            continue
        written = frame[name].astype("object").dropna().map(as_text).drop_duplicates()
        if not len(written):
            continue
        values = written.astype("str").str.strip().str.casefold()
        strange = values[~values.str.fullmatch(pattern)]
        if len(strange):
            names[name] = (
                f"holds {strange.iloc[0][:40]!r}, and no value of this condition"
            )
    for name in frame.columns[frame.columns.str.fullmatch("|".join(_NUMBERS))]:
        strange = as_numbers(frame[name]).isna() & ~is_missing(frame[name])
        if strange.any() and not name.startswith("prob"):
            first = as_text(frame[name][strange].iloc[0])
            names[name] = f"holds {first[:40]!r}, and no number"
    if _is_a_prompt_each(frame):
        names["template"] = "holds another text for every item"
    if "position" in frame and "ordering" not in frame:
        names["position"] = "tells nothing without the column 'ordering'"
    for name, why in names.items():
        print(f"{what}: the column {name!r} {why}: it is kept as 'own_{name}'")
    return frame.rename(columns={name: f"own_{name}" for name in names})


def _is_a_prompt_each(frame: pd.DataFrame) -> bool:
    """Whether no two items share a form of the prompt: it is filled-in text then."""
    by = next((c for c in ("item_id", "text_id") if c in frame), None)
    if by is None or "template" not in frame:
        return False
    item, form = (pd.factorize(frame[c].astype("str"))[0] for c in (by, "template"))
    pairs = pd.DataFrame({"item": item, "form": form})[form >= 0].drop_duplicates()
    return pairs["item"].nunique() > 1 and not pairs["form"].duplicated().any()


def _listed(ordering: Any) -> Any:
    return "-".join(map(as_text, ordering)) if isinstance(ordering, list) else ordering


def _names(values: pd.Series) -> pd.Series:
    if values.dtype == object:  # FastChat names a judge by a list
        values = values.map(
            lambda v: "/".join(map(str, v)) if isinstance(v, list) else as_text(v),
            na_action="ignore",
        )
    code, found = pd.factorize(values)
    texts = [as_text(name) for name in found]
    clean = as_ids if str(values.name).endswith("_id") else without_spaces
    texts = clean(texts, str(values.name), "judgments")
    if len(set(texts)) < len(texts):
        codes, texts = pd.factorize(np.array(texts, dtype=object))
        code = np.append(codes, -1)[code]
    names = pd.Categorical.from_codes(code, pd.Index(texts, dtype="str"))
    return pd.Series(names, values.index, name=values.name)


def _matched(
    frame: pd.DataFrame, items: pd.DataFrame | None
) -> tuple[pd.DataFrame, Items, IntArray]:
    """Match rows with items: return matched rows, items, and each row's index."""
    by = "item_id" if "item_id" in frame else "text_id"
    keys = [
        c
        for c in ("dataset", by, "criterion")
        if c in frame and (items is None or c in items)
    ]
    for name in frame.columns.intersection([*keys, "cluster_id"]):
        _refuse(frame[name], frame[name].isna(), f"is missing; {_FILL}")
    item = frame.groupby(keys, observed=True, sort=False).ngroup().to_numpy()
    first = np.unique(item, return_index=True)[1]
    own = frame[[c for c in (*_TEXTS, "human", "human_ratings") if c in frame]].iloc[
        first
    ]
    for name in frame.columns.intersection(_OF_ITEM):
        cells = frame[name].map(as_text) if frame[name].dtype == object else frame[name]
        code = pd.factorize(cells)[0]
        why = f"is not what an earlier row of this {by} says"
        why += _ONE_ROW if name == "human" else ""
        _refuse(frame[name], code != code[first][item], why)
    if items is None:
        return frame, _own_items(own, by), item
    return _among(frame, own, item, items, keys)


def _own_items(own: pd.DataFrame, by: str) -> Items:
    items = own.astype({c: "str" for c in _TEXTS if c in own}).reset_index(drop=True)
    for name, value in (
        ("dataset", "own"),
        ("criterion", "overall"),
        ("text_id", own.get(by)),
    ):
        if name not in items:
            items[name] = (
                value if isinstance(value, str) else value.astype("str").to_numpy()
            )
    several = items.groupby(["dataset", by])["criterion"].transform("size") > 1
    if by == "text_id" or several.any():
        ending = np.where(several | (by == "text_id"), "/" + items["criterion"], "")
        items["item_id"] = items[by] + ending
    if "cluster_id" not in items:
        items["cluster_id"] = items.get("group_id", items["text_id"])
    return Items(items)


def _among(
    frame: pd.DataFrame,
    own: pd.DataFrame,
    item: IntArray,
    items: pd.DataFrame,
    keys: list[str],
) -> tuple[pd.DataFrame, Items, IntArray]:
    wanted = pd.MultiIndex.from_frame(own[keys].astype("str"))
    item_keys = max(_item_keys(items, keys), key=lambda known: known.isin(wanted).any())
    place = np.flatnonzero(item_keys.isin(wanted))
    if len(place) == 0:
        raise ValueError(
            f"none of the {len(own)} judged items (the first: {', '.join(wanted[0])}) "
            f"is among the items (the first: {', '.join(item_keys[0])}), matched on "
            f"{', '.join(keys)}; pass the items that were judged"
        )
    item_keys = item_keys[place]
    if (twice := item_keys.duplicated()).any():
        raise ValueError(
            f"items: {twice.sum()} appear twice under {', '.join(keys)} (the first: "
            f"{', '.join(item_keys[twice][0])}); drop them, or name dataset and "
            f"criterion "
            "in both tables"
        )
    nearest = item_keys.get_indexer(wanted)
    has_item = nearest >= 0
    if not has_item.all():
        lost = [", ".join(key) for key in wanted[~has_item][:3]]
        print(
            f"judgments: {int((~has_item[item]).sum()):,} of {len(frame):,} rows have "
            f"no "
            "item and are dropped: "
            f"{'; '.join(lost)}{' …' if (~has_item).sum() > 3 else ''}"
        )
    rated = items.iloc[place[nearest[has_item]]].reset_index(drop=True)
    rated = rated if isinstance(rated, Items) else Items(rated)
    for name in own.columns.difference(rated.columns):
        rated[name] = own[name].to_numpy()[has_item]
    for name, other in (
        ("dataset", "own"),
        ("criterion", "overall"),
        ("cluster_id", "item_id"),
    ):
        if name not in rated:
            rated[name] = rated.get(other, other)
    row_has_item = has_item[item]
    return (
        frame[row_has_item].copy(),
        rated,
        (np.cumsum(has_item) - 1)[item[row_has_item]],
    )


def _item_keys(items: pd.DataFrame, keys: list[str]) -> Iterator[pd.MultiIndex]:
    """The items' keys: by id or by text, each with the dataset in front and without."""
    names = items[keys].astype("str")
    by = next(k for k in keys if k.endswith("_id"))
    for column in dict.fromkeys((by, "text_id" if "text_id" in items else by)):
        names[by] = items[column].map(as_text)
        yield pd.MultiIndex.from_frame(names)
        if "dataset" in items:
            pairs = zip(items["dataset"].astype("str"), names[by], strict=True)
            names[by] = [name.removeprefix(f"{dataset}/") for dataset, name in pairs]
            yield pd.MultiIndex.from_frame(names)


def _scales(
    rated: Items, scale: Scale | Mapping[str, Scale] | None, items: pd.DataFrame | None
) -> tuple[IntArray, list[FloatArray]]:
    """Each item's scale, and the scales: their scores, or the ends of a range."""
    if scale is not None and not _is_scale(scale):
        raise ValueError(
            f"scale is {scale!r}; give (lowest, highest), such as (1, 5), or a "
            "dictionary with one for each criterion"
        )
    if scale is None:
        if getattr(items, "rubrics", None) is None:
            raise ValueError(
                "judgments need scale=(lowest, highest), or items with rubrics "
                "(--scale 0 3)"
            )
        return scales_of(rated)
    criteria = rated["criterion"].astype("str")
    if not isinstance(scale, Mapping):
        scale = dict.fromkeys(criteria, scale)
    for criterion in criteria.unique():
        pair = scale.get(criterion, ())
        if len(pair) != 2 or not -np.inf < pair[0] < pair[1] < np.inf:
            raise ValueError(
                f"scale of {criterion!r} is {pair or 'missing'}; give (lowest, "
                "highest), such as (1, 5), or a dictionary with one for each criterion"
            )
    which, pairs = pd.factorize(
        criteria.map({c: tuple(pair) for c, pair in scale.items()})
    )
    return which, [
        np.arange(low, high + 1.0) if (high - low) % 1 == 0 else np.array([low, high])
        for low, high in pairs
    ]


def _is_scale(scale: Any) -> bool:
    pairs = scale.values() if isinstance(scale, Mapping) else [scale]
    return all(
        isinstance(pair, list | tuple | np.ndarray)
        and all(isinstance(end, Real) for end in pair)
        for pair in pairs
    )


def _read_scores(
    frame: pd.DataFrame,
    item: IntArray,
    number: IntArray,
    levels: Sequence[Levels],
    reading: Reading,
) -> None:
    """Set status and score; a score counts if it is a finite number on its scale."""
    written = frame["score"]
    if written.dtype == object or (
        written.dtype == "str" and written.str.startswith("{").any()
    ):
        written = written.astype("object").map(_in_object)
    score, kind = understand(written, number[item], levels, reading)
    is_marked = (kind == FAILED) | np.isin(score, reading.failed)
    low, high = np.array([own[:2] for own in levels])[number[item]].T
    is_none = np.isnan(score)
    _refuse_shares(frame["score"], np.where(is_marked, np.nan, score), low, high)
    is_off = ~(is_none | is_marked) & ~((score >= low) & (score <= high))
    is_unread = is_none & (kind != EMPTY) & ~is_marked
    reading.note("score", np.where(is_marked, FAILED, kind), frame["score"])
    span = f"{low[is_off.argmax()]:g}..{high[is_off.argmax()]:g}"
    reasons = [
        f"marked {', '.join(f'{mark:g}' for mark in reading.failed)}",
        f"off the scale {span}",
        "not a number",
    ]
    why = np.select([is_marked, is_off, is_unread], reasons, "").astype(object)
    # unparsed, out_of_range, ok
    codes = np.select([is_none | is_marked, is_off], [1, 2], 0)
    given = _given_status(frame)
    if (failure := _failures(frame, score, low, reading)) is not None:
        rows = failure != ""
        given = np.full(len(frame), -1) if given is None else given
        given[rows & (given < 1)] = STATUSES.index("error")
    if given is not None:
        codes, why[given > 0] = np.where(given > 0, given, codes), ""
        if blanked := int((~is_none & (given > 0)).sum()):
            print(
                f"judgments: {blanked:,} scores are removed, as their status is not ok"
            )
    elif n_empty := int((is_none & ~is_unread & ~is_marked).sum()):
        print(
            f"judgments: {n_empty:,} of {len(frame):,} scores are unparsed (the cell "
            "is empty)"
        )
    ok, lost = codes == 0, why != ""
    if lost.any() and not ok.any() and not is_missing(written).all():
        _refuse(frame["score"], lost, f"is {why[lost][0]}, as all others; {_ALL_LOST}")
    _name_lost_criteria(frame, ok, lost, reading)
    for reason in pd.unique(why[lost]):
        rows = np.flatnonzero(why == reason)
        print(
            f"judgments: {len(rows):,} of {len(frame):,} scores are "
            f"{STATUSES[codes[rows[0]]]} ({reason}), the first in row "
            f"{frame.index[rows[0]]}: {as_text(frame['score'].iloc[rows[0]])}"
        )
    if failure is not None:
        why = np.where(failure != "", failure, why)
    if (why != "").any():
        noted = (
            frame.get("reason", pd.Series("", frame.index)).astype("object").fillna("")
        )
        frame["reason"] = noted.where(noted != "", why)
    frame["status"] = pd.Categorical.from_codes(codes, categories=STATUSES)
    scores = pd.Series(np.where(ok, score, np.nan), frame.index)
    frame["score"] = scores.astype(score_dtype(scores, "Int8"))


_ALL_LOST = (
    "pass the right scale=, items whose rubric has such labels, or another score "
    "column; write yes as 1; of answers such as 'Score: 4': parser='Score: (\\d)'"
)
_FAILURES = re.compile(
    "(is_|has_|judge_|grader_|pars(e|ing)_|evaluation_)?"
    "(errors?|exception|failures?)|na",
    re.IGNORECASE,
)
_NO_FAILURE = ("", *GAPS, "false", "0", "no", "ok", "[]", "{}")


def _in_object(cell: Any) -> Any:
    """Return the score in a cell that is an object, or its text (Phoenix)."""
    if isinstance(cell, str) and cell[:1] == "{":
        cell = literal(cell)
    if isinstance(cell, Mapping) and {"score", "label"} & set(cell):
        score = cell.get("score")
        return cell.get("label") if score is None else score
    return cell


def _given_status(frame: pd.DataFrame) -> IntArray | None:
    if "status" not in frame:
        return None
    given = pd.Index(STATUSES).get_indexer(frame["status"])
    _refuse(
        frame["status"],
        frame["status"].notna() & (given < 0),
        f"is not one of {', '.join(STATUSES)}; if it means something else: "
        "columns={'status': 'other'}",
    )
    return given


def _failures(
    frame: pd.DataFrame, score: FloatArray, low: FloatArray, reading: Reading
) -> NDArray[np.object_] | None:
    """Return what a column says about failures, "" where there was none.

    A harness may write the lowest score beside one; beside other scores it is a
    question whether the column is about failures of the judge.
    """
    found = None
    for column in (c for c in frame if _FAILURES.fullmatch(str(c))):
        code, texts = distinct(frame[column])
        is_failure = ~texts.str.casefold().isin(_NO_FAILURE).to_numpy()
        numbers = as_numbers(texts[is_failure])
        if not is_failure.any() or (numbers.notna() & (numbers != 1)).any():
            continue  # a measure of errors
        rows = is_failure[code]
        beside = rows & (score > low)
        if beside.any():
            row = beside.argmax()
            said = as_text(frame[column].iloc[row])[:40]
            meaning = reading.ask(
                str(column),
                "rows",
                f"judgments: row {frame.index[row]}, column {column!r}: {said!r} "
                f"stands "
                f"beside the score {score[row]:g}",
                {
                    "failed": "these rows have no score",
                    "scored": "they have the score that is written",
                },
            )
            if meaning == "scored":
                continue
        reading.say(
            f"judgments: {rows.sum():,} rows say in {str(column)!r} that they failed: "
            "they are errors, and have no score"
        )
        found = np.full(len(frame), "", object) if found is None else found
        words = texts.str.slice(0, 200).to_numpy(object)
        found = np.where(rows & (found == ""), words[code], found)
    return found


def _name_lost_criteria(
    frame: pd.DataFrame,
    ok: NDArray[np.bool_],
    lost: NDArray[np.bool_],
    reading: Reading,
) -> None:
    """Ask about a criterion, or a judge, that has lost all of its scores."""
    names = [c for c in ("criterion", "judge") if c in frame]
    if not names or not lost.any():
        return
    group = cells_of(frame[names])
    n_ok, n_lost = binned(group, weights=ok), binned(group, weights=lost)
    for one in np.flatnonzero((n_ok == 0) & (n_lost > 0)):
        rows = np.flatnonzero((group == one) & lost)
        first = as_text(frame["score"].iloc[rows[0]])
        whose = ", ".join(str(frame[c].iloc[rows[0]]) for c in names)
        reading.ask(
            whose,
            "scores",
            f"judgments: none of the {len(rows):,} scores of {whose} is a number on "
            f"its scale, the first in row {frame.index[rows[0]]}: {first!r}; give its "
            "scale, or a rubric with such labels, or say that they are lost",
            {"lost": "all of them are unparsed"},
        )


def _refuse_shares(
    written: pd.Series, score: FloatArray, low: FloatArray, high: FloatArray
) -> None:
    """Refuse scores that are shares of 1 where the scale begins at 1, or say so.

    A share of 1 is the best score, and would be read as the worst.
    """
    there = np.isfinite(score)
    is_share = (score >= 0) & (score <= 1)
    wide = (high > 1) & ((high - low) >= 2)
    if (
        not there.any()
        or not (is_share & wide)[there].all()
        or (score[there] == 1).all()
    ):
        return
    if not (low[there] >= 1).all():
        if (score[there] % 1 != 0).any() and (score[there].max() > 0.5):
            print(
                "judgments: every score lies between 0 and 1, on a scale up to "
                f"{high.max():g}: if they are shares, give scale=(0, 1)"
            )
        return
    if not ((score[there] % 1 != 0) | (score[there] == 0)).any():
        return
    _refuse(
        written,
        there & (score < 1),
        f"is off the scale {low[there][0]:g}..{high[there][0]:g}, and every score lies "
        f"between 0 and 1, as shares do: {_rescale(low[there][0], high[there][0])}",
    )


def _read_levels(
    frame: pd.DataFrame, which: IntArray, levels: Sequence[Levels]
) -> None:
    """Name levels by their scores in conditions' columns that name them by labels."""
    for name in frame.columns.intersection(["ordering", "reference_score", "exemplar"]):
        code, texts = distinct(frame[name])
        place, pairs = pd.factorize(code * len(levels) + which)
        both = [(texts[p // len(levels)], levels[p % len(levels)]) for p in pairs]
        scores = [_by_scores(text, own.labels) for text, own in both]
        changed = [
            (text, own.rubric, score)
            for (text, own), score in zip(both, scores, strict=True)
            if text != score
        ]
        if not changed:
            continue
        text, rubric, score = changed[0]
        named = pd.Series(scores, dtype="object").where(pd.Series(scores) != "", None)
        frame[name] = pd.Categorical(named.to_numpy()[place])
        print(
            f"judgments: {name!r} names the levels of rubric {rubric!r} by their "
            f"labels: {text} is {score} in scores"
        )


def _by_scores(levels: str, labels: Mapping[str, float]) -> str:
    """Return levels such as ``B-A-C`` by their scores; unchanged if one is unknown."""
    parts = [labels.get(part.strip().casefold()) for part in levels.split("-")]
    return levels if None in parts else "-".join(map(as_text, parts))


def _read_orderings(
    frame: pd.DataFrame, low: FloatArray, high: FloatArray, options: IntArray
) -> None:
    """Set position and number of options."""
    orders = [_decoded(code) for code in frame["ordering"].cat.categories]
    wide = np.full((len(orders) + 1, max(map(len, orders), default=1)), np.nan)
    for row, scores in enumerate(orders):
        wide[row, : len(scores)] = scores
    shown = wide[frame["ordering"].cat.codes]  # a missing one has code -1: the last row
    bad = ~((shown >= low[:, None]) & (shown <= high[:, None]) | np.isnan(shown)).all(
        axis=1
    )
    _refuse(
        frame["ordering"], bad, "does not list the scores in an order, such as 2-3-1"
    )
    at = shown == frame["score"].to_numpy(dtype=np.float64, na_value=np.nan)[:, None]
    frame["position"] = pd.array(
        np.where(at.any(axis=1), at.argmax(axis=1) + 1, np.nan), "Int8"
    )
    counts = (~np.isnan(shown)).sum(axis=1)
    counts = np.where(counts > 0, counts, options)
    frame["n_options"] = counts.astype(np.int8 if counts.max() < 128 else np.int32)


def _decoded(code: str) -> tuple[float, ...]:
    """Read an ordering; one below every scale where it is none."""
    try:
        scores = decode(code)
    except ValueError:
        return (-np.inf,)
    return scores if 1 < len(scores) == len(set(scores)) else (-np.inf,)


def _fill(frame: pd.DataFrame, rated: Items, item: IntArray) -> None:
    for name, value in _NOT_KNOWN.items():
        if name not in frame:
            text = isinstance(value, str)
            frame[name] = pd.Categorical([value]).take(item * 0) if text else value
    for name in _TEXTS:
        if name in rated:
            frame[name] = pd.Categorical(rated[name]).take(item)
    frame["temperature"] = frame["temperature"].astype(np.float32)


def _designs(frame: pd.DataFrame, item: IntArray) -> NDArray[np.object_]:
    """Infer each judge's and condition's design from its commonest set of orderings."""
    design = np.full(len(frame), "fixed", dtype=object)
    rows = np.flatnonzero(frame["ordering"].notna())
    if len(rows) == 0:
        return design
    arm, order = (
        cells_of(frame[[*_WITHIN]].iloc[rows]),
        frame["ordering"].cat.codes.to_numpy()[rows],
    )
    shown = pd.DataFrame(
        {"arm": arm, "item": item[rows], "order": order}
    ).drop_duplicates()
    # A set is told by the sum of 64-bit hashes of its orderings,
    # as there may be millions.
    shown["set"] = mix64(shown["order"].to_numpy(np.uint64))
    sets = shown.groupby(["arm", "item"], as_index=False)["set"].sum()
    sets = sets.groupby(["arm", "set"], as_index=False, sort=False)["item"].agg(
        ["size", "first"]
    )
    sets["share"] = sets["size"] / sets.groupby("arm")["size"].transform("sum")
    usual = sets.sort_values("size", ascending=False, kind="stable").drop_duplicates(
        "arm"
    )
    usual = usual.rename(columns={"first": "item"})[["arm", "item", "share"]]
    names = frame["ordering"].cat.categories
    design_of = {
        number: _design(names[of_arm["order"]], of_arm["share"].iloc[0])
        for number, of_arm in shown.merge(usual, on=["arm", "item"]).groupby("arm")
    }
    design[rows] = pd.Series(design_of).sort_index().to_numpy()[arm]
    return design


def _design(codes: Sequence[str], share: float) -> str:
    """The design of a set of orderings that this share of the items was shown."""
    orders = {tuple(ranks(decode(code)).tolist()) for code in codes}
    if share >= 0.5:
        for name, made in _DESIGNS.items():
            if {
                tuple(order) for order in made(len(min(orders))).orderings().tolist()
            } == orders:
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
        codes, values = pd.factorize(frame[name])
        hashes.append(np.append(hash64(values), np.uint64(0))[codes])
    return mix64(*hashes)


def _refuse(values: pd.Series, bad: ArrayLike, why: str) -> None:
    refuse("judgments", values, bad, why)
