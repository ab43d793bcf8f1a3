"""From items and designs to a plan: the frame of requests, and what it would cost."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from itertools import product
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import numpy as np
import pandas as pd

from rubricnb.core.contract import Engine, Readout
from rubricnb.core.frames import (
    CONDITION_COLUMNS,
    REQUESTS,
    Items,
    Requests,
    level_labels,
    require,
    scale_with,
    scales_of,
)
from rubricnb.core.permutation import Design, code, decode
from rubricnb.core.prompts.labels import LABELS, MOST_LEVELS, labels_of
from rubricnb.core.prompts.render import LAYOUTS, TEMPLATES, takes_edits
from rubricnb.core.rubrics import check_length, in_wording
from rubricnb.core.support.counting import repeated
from rubricnb.core.support.hashing import UInt64Array, hash64, mix64
from rubricnb.core.support.spelling import one_of
from rubricnb.core.support.types import FloatArray, IntArray, Options

if TYPE_CHECKING:
    from rubricnb.core.judge import Judge

_MOST_REQUESTS = 20_000_000
READOUTS = ("auto", "feedback", "score", "logprobs")
_T = TypeVar("_T")
OneOrMore: TypeAlias = _T | Sequence[_T]


def plan(
    items: Items,
    designs: Design | Sequence[Design],
    *,
    labels: OneOrMore[str] = "numeric",
    readout: str = "auto",
    n_options: int | None = None,
    layout: OneOrMore[str] = "rubric-last",
    reference: OneOrMore[str | int] = "auto",
    exemplar: OneOrMore[str | int] = "none",
    variant: OneOrMore[str] = "standard",
    template: str = "rubric",
    per_call: int = 0,
    prompt_format: str = "chat",
    temperature: OneOrMore[float] = 0.0,
    effort: OneOrMore[str] = "default",
    thinking: OneOrMore[str] = "default",
    seed: int = 0,
    max_tokens: int = 0,
) -> Requests:
    """Plan every item under every ordering of its options, or of its criteria.

    The orderings are those of the options (Setting 1), or with ``template="criteria"``
    those of a text's criteria, several to an answer (Setting 2). A setting given as a
    list is crossed with the others: one call plans a whole grid of conditions.

    Parameters
    ----------
    items
        From `rubricnb.load`. For Setting 2 every text has the same number of criteria.
    designs
        One design or several, all over the same number of options; in Setting 2 of
        criteria, where 1, 2, … is their order in `items`.
    labels
        ``numeric`` (the rubric's own: its scores, or labels such as yes and no),
        ``letter`` or ``roman``. Of several, one that the scale does not have is left
        out, and a line says so.
    readout
        ``feedback``: free text that ends in ``[RESULT] N``, as the papers. ``score``:
        the label alone. ``logprobs``: the probability of every label. ``auto``: what
        the judge does best.
    n_options
        Number of options; default: the designs', in Setting 2 five. Rubrics of five
        levels without gaps, and without labels of their own, are resampled to 2, 3, …
        10.
    layout
        ``rubric-last`` (arXiv:2602.02219) or ``rubric-first`` (arXiv:2506.22316).
    reference
        ``auto``: the dataset's own full-mark reference where it has one; ``none``; or
        k, the reference answer that deserves score k. An item that is itself this
        answer is left out.
    exemplar
        ``none``; or k, one in-context example that deserves score k, an answer to
        another instruction (arXiv:2506.22316, §1).
    variant
        Wording of the rubric: ``standard`` or ``paraphrased``; or ``identical``, a
        control: every level has the text of the middle one, so the probabilities show
        what positions and labels do by themselves.
    template
        ``rubric``, ``pointwise``, ``pairwise``, ``criteria``, or another of
        `rubricnb.core.prompts.render.TEMPLATES`.
    per_call
        Of the template ``criteria``: how many criteria one call asks for; 0: all. An
        ordering is cut into pieces of this length, and each piece is a call.
    prompt_format
        ``chat``, or ``plain`` for a base model.
    temperature, effort, thinking, seed, max_tokens
        Sampling; effort ``low``/``medium``/``high``, thinking ``on``/``off``, else
        ``default``.

    Returns
    -------
    Requests
        The requests frame (`rubricnb.core.frames.REQUESTS`), with the items as
        ``.source``. No prompt is rendered yet. In Setting 2 ``item_id`` holds the
        text_id, ``criterion_ordering`` the order of the criteria, and each request
        gives one judgment per criterion.

    Raises
    ------
    TypeError
        Items that are no table.
    ValueError
        A design over another number of options, an unknown setting, a placebo of a
        template without meaning-free edits, or a rubric, reference or example that the
        items do not have.

    Examples
    --------
    >>> import rubricnb as rb
    >>> items = rb.load("minibench", n_items=15)
    >>> requests = rb.plan(items, [rb.balanced(5), rb.fixed(5, 2)])
    >>> requests.groupby("design", observed=True).size().to_dict()
    {'balanced': 150, 'fixed': 30}

    The label conditions of arXiv:2506.22316 crossed with its rubric orders:

    >>> orders = [rb.fixed(5, 1), rb.Design("descending", 5), rb.shuffled(5, 1)]
    >>> grid = rb.plan(items, orders, labels=["numeric", "letter"])
    >>> grid.groupby(["design", "labels"], observed=True).size().tolist()
    [15, 15, 15, 15, 15, 15]

    Setting 2, two criteria to a call:

    >>> pieces = rb.plan(items, rb.balanced(3), template="criteria", per_call=2)
    >>> len(pieces), pieces.criterion_ordering[2], pieces.criterion_ordering[3]
    (60, '2-3', '1')
    """
    require(items, ["item_id"], "items (from rb.load)")
    designs = _same_size(designs)
    together = template == "criteria"
    n = n_options or (5 if together else designs[0].n)
    if together:
        _check_criteria(items, designs[0], per_call, labels, layout)
        reference = "none" if reference == "auto" else reference
    elif per_call:
        raise ValueError(
            f"per_call = {per_call}: the template {template!r} asks for one criterion"
        )
    elif n != designs[0].n:
        raise ValueError(
            f"n_options = {n}, but the designs order {designs[0].n} options: "
            f"make them for {n}, such as balanced({n})"
        )
    conditions = _conditions(
        labels=labels_there_are(items, labels, n),
        readout=readout,
        n_options=n,
        layout=layout,
        reference_score=reference,
        exemplar=exemplar,
        variant=variant,
        template=template,
        prompt_format=prompt_format,
        temperature=temperature,
        effort=effort,
        thinking=thinking,
        seed=seed,
        max_tokens=max_tokens,
    )
    rubrics = getattr(items, "rubrics", None)
    if rubrics is None:
        raise ValueError("these items have no rubrics: load them with rubricnb.load")
    used = rubrics[rubrics["rubric_id"].isin(items["rubric_id"].unique())]
    for condition in conditions:
        chosen = in_wording(used, condition["variant"])
        lacking = sorted(set(items["rubric_id"]) - set(chosen["rubric_id"]))
        if lacking:
            raise ValueError(
                f"rubric {lacking[0]!r} has no variant {condition['variant']!r}"
            )
        check_length(chosen, n, template not in ("criteria", "pointwise"))
        # raises if these labels name too few levels
        labels_of(range(n), condition["labels"])
        _check_shown(items, "reference", condition["reference_score"], template)
        _check_shown(items, "exemplar", condition["exemplar"], template)
    if any(d.name == "placebo" for d in designs) and not takes_edits(template):
        raise ValueError(
            f"placebo: the template {template!r} has no meaning-free edits"
        )
    about = items["text_id" if together else "item_id"].nunique()
    number = about * sum(design.k for design in designs) * len(conditions)
    if number > _MOST_REQUESTS:  # would fill the memory: 200 bytes a request
        raise ValueError(
            f"this plan has {number:,} requests, more than {_MOST_REQUESTS:,}: plan "
            "fewer reads (fixed(5, k)), conditions or items (load(…, n_items=…))"
        )
    if together:
        texts = items["text_id"].drop_duplicates()
        requests = _requests(
            items, texts, designs, seed, conditions, "criterion_ordering"
        )
        return _in_pieces(requests, per_call) if per_call else requests
    requests = _requests(items, items["item_id"], designs, seed, conditions, "ordering")
    return _without_own_reference(requests, items)


def _check_criteria(
    items: Items, design: Design, per_call: int, *unused: OneOrMore[str]
) -> None:
    sizes = items.groupby("text_id", sort=False, observed=True).size()
    if (sizes != design.n).any():
        text = sizes.index[sizes != design.n][0]
        raise ValueError(
            f"text {text!r} has {sizes[text]} criteria, but the designs order "
            f"{design.n}: make them for {sizes[text]}, such as "
            f"balanced({sizes[text]}), or take items with all their criteria"
        )
    if not 0 <= per_call <= design.n:
        raise ValueError(
            f"per_call = {per_call}: 1 to {design.n} criteria, or 0 for all"
        )
    if unused != ("numeric", "rubric-last"):
        raise ValueError(
            "the template 'criteria' lists no options: leave labels and layout out"
        )


def _in_pieces(requests: Requests, per_call: int) -> Requests:
    """Cut each ordering of criteria into calls of `per_call` criteria."""

    def pieces(ordering: str) -> list[str]:
        order = decode(ordering)
        return [
            code(order[i : i + per_call])[0] for i in range(0, len(order), per_call)
        ]

    orders = requests["criterion_ordering"].astype(object)
    known = {ordering: pieces(ordering) for ordering in orders.unique()}
    out = requests.assign(criterion_ordering=orders.map(known)).explode(
        "criterion_ordering"
    )
    out = out.reset_index(drop=True).astype({"criterion_ordering": "category"})
    out["request_id"] = request_ids(out)
    return out


def request_ids(requests: pd.DataFrame) -> UInt64Array:
    """Hash every request's columns to its id."""
    columns = [
        c.name for c in REQUESTS if c.name != "request_id" and c.name in requests
    ]
    return reduce(mix64, (_column_hash(requests[c]) for c in columns))


def with_readout(requests: Requests, judge: Judge | Engine) -> Requests:
    """Resolve the readout ``auto``, and refuse one that the judge does not have."""
    require(requests, ["readout"], "requests (from rb.plan)")
    if (requests["readout"] == "auto").any():
        requests = requests.copy()
        readout = requests["readout"].astype(object)
        requests["readout"] = readout.where(
            readout != "auto", judge.readouts[0]
        ).astype("category")
        requests["request_id"] = request_ids(requests)
    for readout in requests["readout"].unique():
        check_readout(judge.slug, judge.readouts, readout)
    return requests


def check_readout(name: str, readouts: Sequence[Readout], readout: str) -> None:
    """Refuse a readout that a judge does not have."""
    if readout not in readouts and readout == "json":
        raise ValueError(
            f"{name} cannot fill in documents, which RULERS needs: use openai:MODEL, "
            "vllm:MODEL or embedded, without your own template (simulated:grader "
            "writes placeholders)"
        )
    if readout not in readouts:
        raise ValueError(
            f"{name} has no readout {readout!r}: choose from {', '.join(readouts)}"
        )


def _column_hash(column: pd.Series) -> UInt64Array:
    codes, values = pd.factorize(column)
    texts = [f"{column.name}={_canonical(v)}" for v in values]
    return hash64(texts)[codes]


def _canonical(value: Any) -> str:
    # A temperature of 0.3 is stored as float32; both must hash alike.
    return (
        f"{float(value):.6g}" if isinstance(value, float | np.floating) else str(value)
    )


def _same_size(designs: Any) -> list[Design]:
    designs = list(designs) if isinstance(designs, list | tuple) else [designs]
    if not designs or not all(isinstance(design, Design) for design in designs):
        raise ValueError(
            f"{designs} in place of designs: pass one or several, such as balanced(5)"
        )
    sizes = {d.n for d in designs}
    if len(sizes) > 1:
        raise ValueError(
            f"the designs order {sorted(sizes)} options: plan each size by itself"
        )
    return designs


def _conditions(**settings: Any) -> list[Options]:
    """Cross the settings that are lists; every combination is one condition."""
    lists = [list(v) if isinstance(v, list | tuple) else [v] for v in settings.values()]
    for name, values in zip(settings, lists, strict=True):
        if len(set(values)) < max(len(values), 1):
            raise ValueError(f"{name} = {values}: give at least one value, each once")
    return [
        _checked(dict(zip(settings, values, strict=True))) for values in product(*lists)
    ]


def _checked(values: Options) -> Options:
    allowed = {
        "labels": LABELS,
        "readout": READOUTS,
        "layout": LAYOUTS,
        "template": TEMPLATES,
        "prompt_format": ("chat", "plain"),
        "effort": ("default", "low", "medium", "high"),
        "thinking": ("default", "on", "off"),
    }
    for name, choices in allowed.items():
        one_of(name, values[name], choices)
    if not 0 <= values["temperature"] <= 2:
        raise ValueError(f"temperature = {values['temperature']}: choose from 0 to 2")
    return values | {
        name: str(values[name]) for name in ("reference_score", "exemplar")
    }


def labels_there_are(items: Items, labels: OneOrMore[str], n: int) -> list[str]:
    """Drop kinds of labels that the scale does not have, and print which."""
    kinds, kept = [labels] if isinstance(labels, str) else list(labels), []
    if len(kinds) < 2 or not hasattr(items, "rubrics"):
        return kinds
    rubric_labels = set(level_labels(items.rubrics))
    for kind in kinds:
        if n > MOST_LEVELS.get(kind, n):
            print(
                f"labels {kind!r} name at most {MOST_LEVELS[kind]} levels, and the "
                f"scale has {n}: skipped"
            )
        elif kind == "letter" and rubric_labels == {
            *labels_of(range(n), kind).values()
        }:
            print("labels 'letter' are the rubric's own labels: skipped")
        else:
            kept.append(kind)
    return kept


def _check_shown(items: Items, what: str, score: str, template: str) -> None:
    """Check that every item has the reference or exemplar of this score."""
    words = ("auto", "none") if what == "reference" else ("none",)
    if score in words:
        return
    if template != "rubric":
        raise ValueError(
            f"{what} = {score!r}: the template {template!r} shows no {what}"
        )
    column = f"{what}_{score}"
    lacking = items[items[column].isna()] if column in items else items
    if len(lacking):
        raise ValueError(
            f"{what} = {score!r}: item {lacking['item_id'].iloc[0]!r} has no {column}; "
            f"choose {', '.join(map(repr, words))} or a score for which every item has "
            "a text"
        )


def _without_own_reference(requests: Requests, items: Items) -> Requests:
    """Leave out items that would be compared with themselves."""
    own = np.zeros(len(requests), dtype=bool)
    for score in requests["reference_score"].unique():
        if score not in ("auto", "none"):
            same = items.loc[
                items["response"] == items[f"reference_{score}"], "item_id"
            ]
            own |= (
                (requests["reference_score"] == score) & requests["item_id"].isin(same)
            ).array
    return requests[~own].reset_index(drop=True) if own.any() else requests


def _requests(
    items: Items,
    ids: pd.Series,
    designs: list[Design],
    seed: int,
    conditions: list[Options],
    permuted: str,
) -> Requests:
    blocks = [_orderings(design, ids, seed, items) for design in designs]
    frame = pd.concat(blocks, ignore_index=True).astype(
        # each block had categories of its own
        {"design": "category", "ordering": "category"}
    )
    which = np.arange(len(conditions)).repeat(len(frame))
    frame = pd.concat([frame] * len(conditions), ignore_index=True)
    # All reads of an item together: its prompts share their longest prefix.
    order = np.argsort(frame["row"].to_numpy(), kind="stable")
    frame, which = frame.iloc[order].reset_index(drop=True), which[order]
    frame["item_id"] = pd.Categorical.from_codes(frame.pop("row"), categories=list(ids))
    scale_of, own = scales_of(items)
    scales = [scale_with(scale, conditions[0]["n_options"]) for scale in own]
    if permuted == "criterion_ordering":
        if len({*map(tuple, scales)}) > 1 or len({*map(tuple, own)}) < len(own):
            raise ValueError(
                "the criteria have scales of different scores or labels, but a prompt "
                "names one scale: plan them separately"
            )
        frame = frame.rename(columns={"ordering": "criterion_ordering"})
        frame["ordering"] = pd.Categorical(code(scales[0])).repeat(len(frame))
    elif any(scale[0] != 1 or (np.diff(scale) != 1).any() for scale in scales):
        frame["ordering"] = _in_scores(frame, scale_of, scales)
    dtypes = {c.name: c.dtype for c in CONDITION_COLUMNS}
    for name in conditions[0]:
        values = pd.Series([c[name] for c in conditions], dtype=dtypes[name])
        frame[name] = values.array.take(which)
    frame["request_id"] = request_ids(frame)
    out = Requests(frame[[c.name for c in REQUESTS if c.name in frame]])
    out.source = items
    return out


def _in_scores(
    frame: pd.DataFrame, which: IntArray, scales: list[FloatArray]
) -> pd.Categorical:
    """Orderings of options as orderings of scores; `which`: each item's scale."""
    pairs = zip(
        frame["ordering"], which[frame["item_id"].cat.codes.to_numpy()], strict=True
    )
    return pd.Categorical(
        pd.Series(list(pairs)).map(
            lambda p: code(scales[p[1]][np.array(decode(p[0])) - 1])[0]
        )
    )


def _orderings(design: Design, ids: pd.Series, seed: int, items: Items) -> pd.DataFrame:
    n_ids, k = len(ids), design.k
    if design.name == "rotated":
        codes = _dealt(design, ids, seed, items)
    elif design.per_item:
        codes = [c for i in ids for c in code(design.orderings(i, seed))]
    else:
        codes = code(design.orderings()) * n_ids
    frame = pd.DataFrame(
        {
            "row": repeated(np.arange(n_ids, dtype=np.int32), k),
            "design": pd.Categorical([design.name]).repeat(n_ids * k),
            "ordering_index": np.tile(np.arange(1, k + 1, dtype=np.int16), n_ids),
            "ordering": pd.Categorical(codes),
        }
    )
    # the same ordering, but every read is a different prompt
    if design.name == "placebo":
        frame["replicate"] = np.int16(1)
    else:
        groups = frame.groupby(["row", "ordering"], observed=True, sort=False)
        frame["replicate"] = (groups.cumcount() + 1).astype(np.int16)
    return frame


def _dealt(design: Design, ids: pd.Series, seed: int, items: Items) -> list[str]:
    """Return one of a design's orderings for each item, the same within a group."""
    compete = "group_id" in items and items["group_id"].notna().all()
    over = "group_id" if compete else "cluster_id"
    column = "item_id" if set(ids) <= set(items["item_id"]) else "text_id"
    group = items.drop_duplicates(column).set_index(column)[over].reindex(ids)
    names = np.sort(group.unique().astype(str))
    deal = dict(
        zip(
            np.random.default_rng(seed).permutation(names),
            range(len(names)),
            strict=True,
        )
    )
    codes = code(design.orderings())
    return [codes[deal[name] % len(codes)] for name in group.astype(str)]
