"""The four frames that the package's functions hand to one another, and their contracts.

    items ──design──▶ requests ──judge──▶ replies ──read out──▶ judgments ──statistics──▶ results

This module is the one place where columns and dtypes stand; the API page is generated from it.
Positions, scores and ranks count from 1. ``category`` columns hold text, ``Int8`` is pandas'
integer with a missing value.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import pandas as pd


@dataclass(frozen=True)
class Column:
    """One column of a frame. A name such as ``reference_{k}`` stands for k = 1, 2, …"""

    name: str
    dtype: str
    meaning: str
    required: bool = True

    def matches(self, column: str) -> bool:
        """Whether `column` is this column, or one of its numbered family."""
        return bool(re.fullmatch(self.name.replace("{k}", r"\d+"), column))


def _optional(name: str, dtype: str, meaning: str) -> Column:
    return Column(name, dtype, meaning, required=False)


ITEMS = (
    Column("item_id", "str", "key: one text under one criterion"),
    Column("dataset", "category", "name of the dataset"),
    Column("text_id", "str", "the response; several criteria judge the same one"),
    _optional(
        "group_id", "str", "whose candidates compete: the prompt; in SummEval article × criterion"
    ),
    Column("cluster_id", "str", "what shares a text: story, article, prompt, essay"),
    _optional("candidate", "category", "who wrote the response"),
    _optional("category", "category", "kind of task"),
    Column("instruction", "str", "what the response answers"),
    Column("response", "str", "the text that is judged"),
    _optional("reference", "str", "the dataset's own full-mark answer"),
    _optional("reference_{k}", "str", "an answer that deserves score k"),
    _optional("exemplar_instruction", "str", "the instruction of the in-context examples"),
    _optional("exemplar_{k}", "str", "an answer to that instruction that deserves score k"),
    Column("criterion", "category", "what is judged"),
    Column("rubric_id", "category", "key into the rubrics"),
    _optional("human", "float64", "mean human rating (minibench: designed quality)"),
    _optional("human_ratings", "object", "the single ratings, a tuple of numbers"),
    _optional("gold", "float64", "majority of reads of a stronger judge"),
    _optional("gold_ratings", "object", "those reads, a tuple of numbers"),
)

RUBRICS = (
    Column("rubric_id", "category", "key, with variant and score"),
    Column("variant", "category", "standard or paraphrased"),
    Column("score", "int8", "the level, from 0 or 1 (the worst) up"),
    Column("criterion", "category", "name of the criterion"),
    Column("definition", "str", "what the criterion asks, one or two sentences"),
    Column("description", "str", "what a response at this level is like"),
)

CONDITION_COLUMNS = (
    Column("n_options", "int8", "number of options shown"),
    Column("labels", "category", "numeric, letter (E = 1) or roman"),
    Column("layout", "category", "rubric-last or rubric-first"),
    Column("reference_score", "category", "auto, none, or the score of the reference shown"),
    Column("exemplar", "category", "none, or the score of the one in-context example"),
    Column("variant", "category", "wording of the rubric: standard or paraphrased"),
    Column("readout", "category", "auto, feedback, score or logprobs"),
    Column("prompt_format", "category", "chat or plain (a base model has no chat template)"),
    Column("template", "category", "file under prompts/templates"),
    Column("temperature", "float32", "sampling temperature; 0 is greedy"),
    Column("effort", "category", "reasoning effort: default, low, medium or high"),
    Column("thinking", "category", "default, on or off"),
    Column("seed", "int32", "seed of the sampling"),
    Column("max_tokens", "int32", "longest answer; 0 lets the readout decide"),
)

REQUESTS = (
    Column("request_id", "uint64", "key: hash of the other columns"),
    Column("item_id", "category", "the item (Setting 2: the text_id)"),
    Column("design", "category", "name of the constructor of the orderings"),
    Column("ordering_index", "int16", "read within the design, from 1"),
    Column("ordering", "category", "score at position 1, 2, …: '2-3-4-5-1'"),
    _optional("criterion_ordering", "category", "Setting 2: criterion at position 1, 2, …"),
    Column("replicate", "int16", "how often this ordering stood before in the design, plus 1"),
    *CONDITION_COLUMNS,
)

STATUSES = ("ok", "unparsed", "out_of_range", "truncated", "refused", "error")

JUDGMENTS = (
    *REQUESTS,
    Column("key", "str", "SHA-256 of everything that changes the answer"),
    Column("dataset", "category", "from the item"),
    _optional("group_id", "category", "from the item"),
    Column("cluster_id", "category", "from the item"),
    _optional("candidate", "category", "from the item"),
    Column("criterion", "category", "what was judged; with request_id the key"),
    Column("judge", "category", "slug of the judge"),
    Column("source", "category", "recorded, live or simulated"),
    Column("status", "category", ", ".join(STATUSES)),
    Column(
        "score",
        "Int8",
        "the parsed score; missing unless status is ok (float64 where `judgments` met halves)",
    ),
    Column("position", "Int8", "where that score stood in the ordering"),
    _optional("criterion_position", "Int8", "Setting 2: where the criterion stood"),
    _optional("probability_{k}", "float32", "probability of the option at position k"),
    _optional("expected_score", "float32", "mean score under these probabilities"),
    _optional("label_mass", "float32", "probability on all labels before renormalising"),
    Column("prompt_tokens", "int32", "tokens sent; 0 if unknown"),
    Column("cached_tokens", "int32", "of these, served from the prefix cache"),
    Column("completion_tokens", "int32", "tokens received"),
    Column("seconds", "float32", "from sending to the full answer"),
)

FRAMES = {"items": ITEMS, "rubrics": RUBRICS, "requests": REQUESTS, "judgments": JUDGMENTS}
CONDITIONS = tuple(c.name for c in CONDITION_COLUMNS if c.name not in ("seed", "max_tokens"))
"""Columns that statistics group by, with judge, dataset and design, wherever they are present."""


def conform(frame: pd.DataFrame, name: str) -> pd.DataFrame:
    """Check a frame against its contract and cast its columns.

    Parameters
    ----------
    frame
        The frame to check; more columns than the contract's are welcome.
    name
        ``items``, ``rubrics``, ``requests`` or ``judgments``.

    Returns
    -------
    DataFrame
        A copy with the contract's dtypes.

    Raises
    ------
    ValueError
        A required column is missing, or a value cannot be cast: names column and first row.

    Examples
    --------
    >>> conform(pd.DataFrame({"rubric_id": ["r"]}), "rubrics")
    Traceback (most recent call last):
    ...
    ValueError: rubrics lack the column 'variant' (standard or paraphrased); they have: rubric_id
    """
    contract = FRAMES[name]
    columns = list(frame.columns)
    for column in contract:
        if column.required and column.name not in columns:
            raise ValueError(
                f"{name} lack the column {column.name!r} ({column.meaning}); "
                f"they have: {', '.join(map(str, columns))}"
            )
    casts = {
        c: column.dtype
        for column in contract
        for c in columns
        if column.matches(c) and str(frame[c].dtype) != column.dtype
    }
    out = frame.copy()
    for c, dtype in casts.items():
        out[c] = _cast(frame[c], dtype, name)
    return out


def _cast(values: pd.Series, dtype: str, name: str) -> pd.Series:
    try:
        return values.astype(dtype)
    except (ValueError, TypeError):
        row, value = _first_misfit(values, dtype)
        raise ValueError(
            f"{name}: row {row}, column {values.name!r}: {value!r} is not {dtype}"
        ) from None


def _first_misfit(values: pd.Series, dtype: str) -> tuple[object, object]:
    for row, value in values.items():
        try:
            pd.Series([value]).astype(dtype)
        except (ValueError, TypeError):
            return row, value
    return "?", dtype


class _Attached(pd.DataFrame):
    """A frame that keeps one other frame with it through filtering and ``pd.concat``."""

    _attribute: str
    _keys: tuple[str, ...]  # of the other frame's rows, of which several frames may have the same

    @property
    def _constructor(self) -> Any:
        return type(self)

    def __finalize__(self, other: Any, method: str | None = None, **kwargs: Any) -> Any:
        if method != "concat":
            return super().__finalize__(other, method=method, **kwargs)
        objs = getattr(other, "input_objs", None) or getattr(other, "objs", [])
        attached = [getattr(o, self._attribute, None) for o in objs]
        distinct = list({id(a): a for a in attached if a is not None}.values())
        if distinct:
            joined = distinct[0]
            if len(distinct) > 1:
                joined = pd.concat(distinct, ignore_index=True)
                joined = joined.drop_duplicates(list(self._keys), ignore_index=True)
            object.__setattr__(self, self._attribute, joined)
        return self


class Items(_Attached):
    """Items, with the rubrics they are judged by as ``.rubrics``."""

    _metadata = ["rubrics"]  # noqa: RUF012
    _attribute, _keys = "rubrics", ("rubric_id", "variant", "score")
    rubrics: pd.DataFrame


class Judgments(_Attached):
    """Judgments made elsewhere, with the items they are about as ``.rated``."""

    _metadata = ["rated"]  # noqa: RUF012
    _attribute, _keys = "rated", ("dataset", "item_id", "criterion")
    rated: Items


class Requests(_Attached):
    """Requests, with the items they ask about as ``.source``."""

    _metadata = ["source"]  # noqa: RUF012
    _attribute, _keys = "source", ("item_id",)
    source: Items
