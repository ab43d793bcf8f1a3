"""Simulated judges: numbers drawn from one explicit model with planted biases.

The model is in `rubricnb.engines.generative`, its parameters are in
`rubricnb.engines.profiles`. What `simulate` computes for a whole frame,
`SimulatedJudge` answers request by request.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict, replace
from itertools import groupby, islice, pairwise, product
from typing import Any, Literal, NamedTuple

import numpy as np
import pandas as pd

from rubricnb.core.contract import Readout, Reply, Request
from rubricnb.core.frames import (
    STATUSES,
    Items,
    require,
    scale_with,
    scales_of,
)
from rubricnb.core.judgments import typed
from rubricnb.core.parsing import answer_text
from rubricnb.core.permutation import decode, levels_above
from rubricnb.core.plan import with_readout
from rubricnb.core.prompts.labels import LABELS
from rubricnb.core.rendering import WORDING, option_quality
from rubricnb.core.support.counting import repeated
from rubricnb.core.support.hashing import UInt64Array, hash64, mix64
from rubricnb.core.support.types import FloatArray, IntArray, Mask, Row
from rubricnb.engines.generative import Batch, answer
from rubricnb.engines.profiles import Profile, open_profile

READOUTS: tuple[Readout, ...] = ("logprobs", "score", "feedback")
_BATCH = 1024  # requests a judge takes at once
_NO_TEXT = "A simulated judge reads no text."


def simulate(
    requests: pd.DataFrame, items: Items | None, profile: str | Profile, seed: int = 0
) -> pd.DataFrame:
    """Answer requests by a simulated judge, all at once.

    The scores are those that `SimulatedJudge` gives through `rubricnb.run`, bit for
    bit; no prompt is rendered and nothing is stored.

    Parameters
    ----------
    requests
        From `rubricnb.plan`.
    items
        The items they ask about; None takes ``requests.source``.
    profile
        A name (see `rubricnb.engines.profiles`) or a `Profile`.
    seed
        Another seed is another judge with the same parameters.

    Returns
    -------
    DataFrame
        The judgments frame (`rubricnb.core.frames.JUDGMENTS`), rows in the order of the
        requests; ``source`` is ``simulated`` and ``judge`` is ``simulated:<profile>``.
        Probabilities stand in rows whose readout is ``logprobs`` (``auto`` means that
        here).

    Raises
    ------
    ValueError
        A request about an item that `items` lacks, or an unknown profile.

    Examples
    --------
    >>> import rubricnb as rb
    >>> items = rb.load("minibench", n_items=15)
    >>> judgments = rb.simulate(rb.plan(items, rb.balanced(5)), items, "first-biased")
    >>> judgments.judge.iloc[0], len(judgments)
    ('simulated:first-biased', 150)
    """
    require(requests, ["readout"], "requests (from rb.plan)")
    source = items if items is not None else getattr(requests, "source", None)
    if source is None:
        raise ValueError("these requests have no items: pass them as items=")
    require(source, ["item_id"], "items (from rb.load)")
    judge = SimulatedJudge(profile, seed)
    requests = with_readout(requests, judge)
    batch, judged = batch_of(requests, source)
    readout = requests["readout"].to_numpy()[judged.row]
    logprobs = readout == "logprobs"
    answers = answer(judge.profile, seed, batch, logprobs)
    lost = answers.lost & (readout == "feedback")
    columns: Row = {
        name: requests[name].array.take(judged.row) for name in requests.columns
    }
    number = requests["request_id"].to_numpy(np.uint64)[judged.row]
    of_items = ("dataset", "group_id", "cluster_id", "candidate", "criterion")
    columns |= {
        "key": _keys(judge.identity, number),
        **{
            name: _category(source[name], judged.item)
            for name in of_items
            if name in source
        },
        "judge": judge.slug,
        "source": judge.source,
        "status": pd.Categorical.from_codes(lost.astype(np.int8), list(STATUSES)),
        "score": np.where(lost, np.nan, answers.score),
        "position": np.where(lost, np.nan, answers.position + 1),
        "expected_score": answers.expected,
        "label_mass": np.where(logprobs, 1.0, np.nan),
    }
    if "criterion_ordering" in requests:
        columns["criterion_position"] = np.where(
            judged.n_slots, judged.slot + 1, np.nan
        )
    for p, probability in enumerate(answers.probabilities.T, 1):
        columns[f"probability_{p}"] = np.ascontiguousarray(probability)
    columns |= dict.fromkeys(
        ("prompt_tokens", "cached_tokens", "completion_tokens", "seconds"), 0
    )
    return typed(pd.DataFrame(columns, copy=False))


class SimulatedJudge:
    """A simulated judge that keeps the contract `rubricnb.core.contract.Engine`.

    Parameters
    ----------
    profile
        A name (see `rubricnb.engines.profiles`) or a `Profile`.
    seed
        Another seed is another judge with the same parameters.

    Examples
    --------
    >>> judge = SimulatedJudge("unbiased")
    >>> judge.slug, judge.source
    ('simulated:unbiased', 'simulated')
    """

    source: Literal["live", "simulated"] = "simulated"
    deterministic = True
    spec = "simulated"
    is_free = True
    readouts = READOUTS
    concurrency = 256

    def __init__(self, profile: str | Profile = "unbiased", seed: int = 0) -> None:
        self.profile = open_profile(profile) if isinstance(profile, str) else profile
        self.seed = seed
        self.slug = f"simulated:{self.profile.name}"
        self.identity = json.dumps({"model": 1, "seed": seed, **asdict(self.profile)})

    def answer(self, requests: Iterable[Request]) -> Iterator[Reply]:
        """Answer requests of plans, a thousand at a time; others get no answer."""
        stream = iter(requests)
        while block := list(islice(stream, _BATCH)):
            for _, same in groupby(block, key=lambda request: id(request.plan)):
                yield from self._answer(list(same))

    def close(self) -> None:
        """Nothing to release."""

    def _answer(self, block: list[Request]) -> Iterator[Reply]:
        plan = block[0].plan
        if plan is None:
            yield from (Reply(request.request_id, _NO_TEXT) for request in block)
            return
        part = plan.iloc[[request.row for request in block]]
        items = plan.source
        shown = items["item_id"].isin(part["item_id"]) | items["text_id"].isin(
            part["item_id"]
        )
        used = pd.Categorical(part["ordering"]).remove_unused_categories()
        batch, judged = batch_of(part.assign(ordering=used), items[shown])
        logprobs = (part["readout"] == "logprobs").to_numpy()[judged.row]
        answers = answer(self.profile, self.seed, batch, logprobs)
        ends = np.searchsorted(judged.row, np.arange(len(block) + 1))
        for request, (first, last) in zip(block, pairwise(ends), strict=True):
            is_free_text = request.readout == "feedback"
            # A lost answer is lost for good: its slot is not in the text.
            kept = [
                row
                for row in range(first, last)
                if not (is_free_text and answers.lost[row])
            ]
            slots = tuple(request.slots[row - first] for row in kept)
            positions = [int(answers.position[row]) + 1 for row in kept]
            text = answer_text(replace(request, slots=slots), positions)
            if is_free_text:
                text = f"Feedback: {_NO_TEXT} {text}"
            shown = None
            if request.readout == "logprobs":
                given = answers.probabilities[first:last, : len(request.choices)]
                shown = tuple(map(tuple, given.tolist()))
            yield Reply(request.request_id, text, probabilities=shown)


class Judged(NamedTuple):
    """Rows of a judgment's request and item, its slot (from 0), number of slots."""

    row: IntArray
    item: IntArray
    slot: IntArray
    n_slots: IntArray


def batch_of(requests: pd.DataFrame, items: pd.DataFrame) -> tuple[Batch, Judged]:
    """Put requests into the arrays of the model."""
    judged = _judged(requests, items)
    row, item, slot, n_slots = judged
    orders = pd.Categorical(requests["ordering"])
    n_options = requests["n_options"].to_numpy(np.int64)[row]
    quality = np.full(len(row), np.nan)
    for n in np.unique(n_options):
        of_size = n_options == n
        quality[of_size] = option_quality(items, int(n))[item[of_size]]
    several = _several(requests)
    criterion_ordering = np.zeros(len(requests), np.uint64)
    if several.any():
        criterion_ordering[several] = _hashed(
            requests.loc[several, "criterion_ordering"]
        )
    batch = Batch(
        table=tuple(orders.categories),
        ordering=orders.codes.astype(np.int64)[row],
        n_options=n_options,
        text=hash64(items["text_id"])[item],
        cluster=hash64(items["cluster_id"])[item],
        criterion=_hashed(items["criterion"])[item],
        criterion_ordering=criterion_ordering[row],
        place=np.where(n_slots > 0, slot / np.maximum(n_slots - 1, 1), np.nan),
        quality=quality,
        wording=wording(requests)[row],
        labels=pd.Index(LABELS).get_indexer(requests["labels"])[row],
        reference=_references(requests, items, item, row, n_options),
        temperature=requests["temperature"].to_numpy(np.float32)[row],
        replicate=requests["replicate"].to_numpy(np.uint64)[row],
    )
    return batch, judged


def wording(requests: pd.DataFrame) -> UInt64Array:
    """Hash what besides the ordering changes a prompt: conditions and placebo edit."""
    parts = [_hashed(requests[name]) for name in WORDING]
    # by default, none of these does
    thinks = (requests["thinking"] == "on").to_numpy(np.uint64)
    edited = (requests["design"] == "placebo").to_numpy()
    edit = np.where(
        edited, requests["ordering_index"].to_numpy(np.uint64), np.uint64(0)
    )
    return mix64(*parts, thinks, edit)


def _hashed(column: pd.Series) -> UInt64Array:
    codes, values = pd.factorize(column)
    return hash64(values)[codes]


def _references(
    requests: pd.DataFrame,
    items: pd.DataFrame,
    item: IntArray,
    row: IntArray,
    n_options: IntArray,
) -> FloatArray:
    """Option of the reference that each judgment is shown; NaN for none."""
    codes, names = pd.factorize(requests["reference_score"])
    scores = np.array([float(n) if n.isdigit() else np.nan for n in names])[codes][row]
    options = np.full(len(row), np.nan)
    which, scales = scales_of(items)
    for number, n in product(range(len(scales)), np.unique(n_options)):
        own = (which[item] == number) & (n_options == n)
        options[own] = 1 + levels_above(scores[own], scale_with(scales[number], n))
    if "reference" not in items:
        return options
    full = (items["reference"].fillna("") != "").to_numpy(dtype=bool)
    automatic = (requests["reference_score"] == "auto") & (
        requests["template"] == "rubric"
    )
    automatic = automatic.to_numpy()[row] & full[item]
    return np.where(automatic, n_options.astype(float), options)


def _judged(requests: pd.DataFrame, items: pd.DataFrame) -> Judged:
    several = _several(requests)
    ids = pd.Categorical(requests["item_id"])
    item = pd.Index(items["item_id"].astype(object)).get_indexer(ids.categories)[
        ids.codes
    ]
    row = np.arange(len(requests))
    slot = n_slots = np.zeros_like(item)
    if several.any():
        codes = zip(requests["criterion_ordering"], several, strict=True)
        orders = [decode(code) if asked else (1,) for code, asked in codes]
        size = np.array([len(order) for order in orders])
        row, slot = repeated(row, size), np.concatenate([np.arange(n) for n in size])
        texts = items["text_id"].astype(object)
        number = texts.groupby(texts, sort=False).cumcount() + 1
        asked_about = [
            requests["item_id"].astype(object).to_numpy()[row],
            np.concatenate(orders),
        ]
        members = pd.MultiIndex.from_arrays([texts, number]).get_indexer(
            pd.MultiIndex.from_arrays(asked_about)
        )
        item = np.where(several[row], members, item[row])
        n_slots = np.where(several, size, 0)[row]
    if (item < 0).any():
        name = requests["item_id"].iloc[row[int(np.argmax(item < 0))]]
        raise ValueError(
            f"items lack {name!r}, which a request asks about, or its criteria"
        )
    return Judged(row, item, slot, n_slots)


def _several(requests: pd.DataFrame) -> Mask:
    """Which requests ask about several criteria (Setting 2)."""
    if "criterion_ordering" not in requests:
        return np.zeros(len(requests), bool)
    return np.asarray(requests["criterion_ordering"].notna())


def _keys(identity: str, request_id: UInt64Array) -> Any:
    """256 bits in hexadecimal per request, without two million calls of a hash."""
    words = np.stack(
        [mix64(hash64([identity]), request_id, j) for j in range(4)], axis=1
    )
    text = words.astype(">u8").tobytes().hex()
    keys = [text[start : start + 64] for start in range(0, len(text), 64)]
    return pd.array(keys, dtype="str")


def _category(column: pd.Series, item: IntArray) -> pd.Categorical:
    codes, values = pd.factorize(column)
    return pd.Categorical.from_codes(codes[item], [str(v) for v in values])
