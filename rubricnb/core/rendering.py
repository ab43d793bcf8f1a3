"""From a plan's rows to requests, each under the hash of what changes its answer.

The prompt in a request is written by `rubricnb.core.prompts.render`.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Set
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import pandas as pd

from rubricnb.core.contract import Engine, Message, Request
from rubricnb.core.frames import Items, Requests, level_labels, scales_of
from rubricnb.core.permutation import decode, levels_above
from rubricnb.core.prompts import render
from rubricnb.core.prompts.control_tokens import apart
from rubricnb.core.prompts.render import PLACEBO_EDITS
from rubricnb.core.rubrics import in_wording, resample
from rubricnb.core.sharing import walk
from rubricnb.core.support.hashing import hash64, mix64
from rubricnb.core.support.types import FloatArray

if TYPE_CHECKING:
    from rubricnb.core.judge import Judge
    from rubricnb.core.prompts.own import OwnPrompt

_ROWS = 4096  # rows of a plan, which may have millions, unpacked at once
_NO_EDITS: frozenset[str] = frozenset()
_ENCODER = json.JSONEncoder(ensure_ascii=False)
Wording: TypeAlias = tuple[str, dict[float, str], tuple[str, ...]]
WORDING = (
    "labels",
    "layout",
    "reference_score",
    "exemplar",
    "variant",
    "prompt_format",
    "template",
    "effort",
)


def rendered(
    requests: Requests,
    judge: Judge | Engine,
    walked: bool = False,
) -> Iterator[Request]:
    """Render requests one by one, each with the key of all that changes its answer.

    Parameters
    ----------
    requests
        The plan, with its items as ``.source``.
    judge
        Gives the identity that goes into the keys.
    walked
        In the order of `rubricnb.core.sharing.walk` instead of the plan's.

    Yields
    ------
    Request

    Examples
    --------
    >>> import rubricnb as rb
    >>> items = rb.load("minibench", n_items=5)
    >>> requests = rb.plan(items, rb.fixed(5, 2), readout="score")
    >>> first, again, *_ = rendered(requests, rb.open_judge("simulated:unbiased"))
    >>> first.key == again.key, first.choices
    (True, ('1', '2', '3', '4', '5'))
    """
    order = walk(requests) if walked else np.arange(len(requests))
    own = getattr(judge, "own_prompt", None)
    if own is not None and (refused := askable(requests, judge)[1]):
        raise ValueError("; ".join(refused.values()))
    source = _Source(requests, own)
    for start in range(0, len(requests), _ROWS):
        part = requests.iloc[order[start : start + _ROWS]]
        for number, row in enumerate(part.itertuples(index=False)):
            request = inert_for(source.request(row), judge)
            if judge.source == "simulated":
                facts = source.facts(row)
                request = replace(request, plan=part, row=number, facts=facts)
            key = key_of(request, judge, judge.deterministic)
            # Changed in place: it is not shared yet,
            # and a copy would cost as much as rendering.
            object.__setattr__(request, "key", key)
            yield request


def askable(
    requests: Requests, judge: Judge | Engine
) -> tuple[Requests, dict[str, str]]:
    """Keep the requests that a judge's own template can show, and say what it cannot.

    Returns
    -------
    Requests, dict
        What can be asked; and a sentence for each kind of request that cannot be, by
        its name (``orders, together, alone, edits, labels, references, examples,
        layout, wording, template, sampling``). All, and nothing, for a judge without a
        template of its own.
    """
    prompt = getattr(judge, "own_prompt", None)
    if prompt is None or not len(requests):
        return requests, {}
    kept, refused = np.ones(len(requests), bool), {}
    for kind, rows, slots, what in _needs(requests, prompt.shows):
        hidden = kind in prompt.unseen
        if rows.any() and (hidden or not prompt.shows & set(slots.split())):
            kept &= ~rows.to_numpy(bool)
            why = f"has no slot {' or '.join(slots.split())}"
            if not slots:
                why = "has a form of its own"
            if hidden:
                why = "does not carry them"
            refused[kind] = f"{prompt.name} {why}: {what} cannot be asked"
    return requests[kept], refused


def _needs(
    requests: Requests, shows: Set[str]
) -> tuple[tuple[str, pd.Series, str, str], ...]:
    """Kinds of requests: name, rows, the slots of which one must be there, in words."""
    ordering = requests["ordering"]
    same = ordering.map(lambda o: list(decode(o)) == sorted(decode(o))).astype(bool)
    several = requests["template"] == "criteria"
    placebo = requests["design"] == "placebo"
    asks_one_of_several = (
        "criteria" in shows or requests.source["criterion"].nunique() > 1
    )
    reference = ~requests["reference_score"].isin(["none", "auto"])
    if (requests["reference_score"] == "none").any():
        reference = requests["reference_score"] != "none"
    worded = requests["variant"] != "standard"
    other = ~requests["template"].isin(["rubric", "criteria"])
    sampled = (requests["temperature"] > 0) | (requests["max_tokens"] > 0)
    for name in ("effort", "thinking"):
        sampled |= requests[name] != "default"
    return (
        ("orders", ~several & ~same, "options", "other orders of the options"),
        ("together", several, "criteria", "several criteria in one prompt"),
        (
            "alone",
            ~several & asks_one_of_several,
            "criterion definition options",
            "one criterion by itself",
        ),
        ("edits", placebo, "options criteria", "meaning-free edits of the list"),
        ("labels", requests["labels"] != "numeric", "options", "other labels"),
        ("references", reference, "reference", "references"),
        ("examples", requests["exemplar"] != "none", "", "in-context examples"),
        ("layout", requests["layout"] != "rubric-last", "", "another layout"),
        ("wording", worded, "definition options criteria", "another wording"),
        ("template", other, "", "the other templates"),
        (
            "sampling",
            sampled,
            "response",
            "a temperature, an effort or a limit of tokens",
        ),
    )


class _Source:
    """What requests are rendered from: items and rubrics, ready to look up."""

    def __init__(self, requests: Requests, own: OwnPrompt | None = None) -> None:
        items = requests.source
        self.items: Items = items
        self.own = own
        self.records = dict(zip(items["item_id"], items.itertuples(), strict=True))
        self.of_text: dict[str, list[Any]] = {}
        for item in self.records.values():
            self.of_text.setdefault(item.text_id, []).append(item)
        self.quality = {
            n: dict(zip(items["item_id"], option_quality(items, n), strict=True))
            for n in requests["n_options"].unique().tolist()
        }
        self.rubrics = cache(self._read_rubric)

    def request(self, row: Any) -> Request:
        """Render one row of the plan; its key is still empty."""
        several = row.template == "criteria"
        shown = self._criteria(row) if several else [self.records[row.item_id]]
        item, ordering = shown[0], decode(row.ordering)
        definition, descriptions, own_labels = self._rubric(row, item.rubric_id)
        reference, reference_score = _reference(item, row, max(ordering))
        criteria = shown if several else []
        prompt = render(
            item.instruction,
            item.response,
            "" if several else definition,
            {} if several else descriptions,
            ordering,
            template=row.template,
            labels=row.labels,
            own_labels=own_labels,
            layout=row.layout,
            reference=reference,
            reference_score=reference_score,
            exemplar=None
            if row.exemplar == "none"
            else (
                item.exemplar_instruction,
                getattr(item, f"exemplar_{row.exemplar}"),
                int(row.exemplar),
            ),
            edits=PLACEBO_EDITS[row.ordering_index - 1]
            if row.design == "placebo"
            else _NO_EDITS,
            criteria=[
                (c.criterion.capitalize(), self._rubric(row, c.rubric_id)[0])
                for c in criteria
            ],
            criteria_levels=[self._rubric(row, c.rubric_id)[1] for c in criteria],
            criterion="" if several else item.criterion,
            own=self.own,
        )
        system = [Message("system", prompt.system)] if prompt.system else []
        return Request(
            request_id=int(row.request_id),
            key="",
            messages=(*system, Message("user", prompt.text)),
            slots=prompt.slots,
            choices=prompt.choices,
            readout=row.readout,
            prompt_format=row.prompt_format,
            temperature=round(float(row.temperature), 6),
            effort=row.effort,
            thinking=row.thinking,
            seed=_seed(row.seed, row.replicate),
            max_tokens=int(row.max_tokens),
            item_id=row.item_id,
            criterion="" if several else item.criterion,
            ordering=ordering,
            replicate=int(row.replicate),
            text_id=item.text_id,
            cluster_id=item.cluster_id,
            criteria=tuple(c.criterion for c in criteria),
        )

    def facts(self, row: Any) -> tuple[Any, ...]:
        """Return what decides a simulated judge's answer besides the prompt."""
        quality = self.quality[row.n_options]
        several = row.template == "criteria"
        about = self.of_text[row.item_id] if several else [self.records[row.item_id]]
        shown = ((i.item_id, i.text_id, i.criterion, quality[i.item_id]) for i in about)
        return (*(getattr(row, name) for name in WORDING), *shown)

    def _criteria(self, row: Any) -> list[Any]:
        """Return the items of a text in the order in which its criteria are shown."""
        items = self.of_text[row.item_id]
        order = decode(row.criterion_ordering)
        if len(items) < max(order):
            raise ValueError(
                f"text {row.item_id!r} has {len(items)} criteria among its items, but "
                f"criterion_ordering {row.criterion_ordering!r}: keep all items of a "
                "text"
            )
        return [items[int(c) - 1] for c in order]

    def _rubric(self, row: Any, rubric_id: str) -> Wording:
        """Return what `rubric_texts` does, for the levels that the template shows."""
        shown = (
            int(row.n_options) if row.template not in ("criteria", "pointwise") else 0
        )
        return self.rubrics(row.variant, shown, rubric_id)

    def _read_rubric(self, variant: str, n: int, rubric_id: str) -> Wording:
        frame = in_wording(self.items.rubrics, variant)
        frame = frame[frame["rubric_id"] == rubric_id]
        return rubric_texts(resample(frame, n) if n else frame)[rubric_id]


def rubric_texts(rubrics: pd.DataFrame) -> dict[str, Wording]:
    """Return each rubric's definition, what its scores mean, and its own labels."""
    return {
        str(name): (
            str(levels["definition"].iloc[0]),
            dict(zip(levels["score"].tolist(), levels["description"], strict=True)),
            tuple(level_labels(levels)) if "label" in levels else (),
        )
        for name, levels in rubrics.sort_values("score").groupby(
            "rubric_id", observed=True
        )
    }


def option_quality(items: pd.DataFrame, n_options: int) -> FloatArray:
    """Human ratings of items on a scale of 1 to n."""
    quality = np.full(len(items), np.nan)
    if "human" in items:
        which, scales = scales_of(items)
        for number, scale in enumerate(scales):
            own = which == number
            above = levels_above(items["human"].to_numpy(float)[own], scale)
            quality[own] = 1 + above * (n_options - 1) / (len(scale) - 1)
    return quality


def inert_for(request: Request, judge: Judge | Engine) -> Request:
    """Make inert the control tokens that only this judge's tokeniser knows."""
    tokens = getattr(judge, "control_tokens", ())
    if not tokens:
        return request
    said = tuple(Message(m.role, apart(m.content, tokens)) for m in request.messages)
    return request if said == request.messages else replace(request, messages=said)


def key_of(request: Request, judge: Judge | Engine, shared: bool) -> str:
    """Return the SHA-256 of everything that changes the answer, and of nothing else.

    `shared`: the replicates of a greedy request have one answer, under one key.
    """
    is_greedy = request.temperature == 0 or request.readout == "logprobs"
    replicate = 0 if shared and is_greedy else request.replicate
    is_forced = request.readout in ("score", "logprobs")
    what: list[Any] = [
        judge.identity,
        [(m.role, m.content) for m in request.messages],
        *((request.slots, request.choices) if is_forced else ((), ())),
        request.readout,
        request.prompt_format,
        request.effort,
        request.thinking,
        request.max_tokens,
        replicate,
    ]
    if request.readout == "json":
        what.append(request.schema)
    if replicate:  # otherwise greedy, or a probability that is read and not sampled
        what += [request.temperature, request.seed if request.temperature > 0 else 0]
    # it looks at what the request is about, not at the prompt
    if judge.source == "simulated":
        what += [request.item_id, request.criteria, request.ordering, request.qualities]
        what += [request.cluster_id, request.facts]
    return hashlib.sha256(_ENCODER.encode(what).encode()).hexdigest()


@cache
def _seed(seed: int, replicate: int) -> int:
    """A sampling seed for each replicate, in the 31 bits that every engine takes."""
    return int(mix64(hash64([seed]), int(replicate))[0] >> np.uint64(33))


def _reference(item: Any, row: Any, full: float) -> tuple[str | None, float | None]:
    if row.reference_score == "none" or row.template != "rubric":
        return None, None
    if row.reference_score == "auto":
        text = getattr(item, "reference", None)
        return (text, full) if isinstance(text, str) and text else (None, None)
    return getattr(item, f"reference_{row.reference_score}"), int(row.reference_score)
