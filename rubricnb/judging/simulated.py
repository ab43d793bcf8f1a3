r"""Simulated judges: numbers drawn from one explicit model, with every bias planted and known.

They show what an estimator does when the truth is known; they say nothing about any real judge,
also where a profile was fitted to a published table.

The model
---------
Item i is text t under criterion c, in cluster g. It is judged under an ordering π of its n options
(Setting 2: of its criteria, κ the relative place of c in it), in a prompt of wording w. Option s
and position p are written y(s) = 1 + 4 (s − 1)/(n − 1) and x(p) = (p − 1)/(n − 1), so one profile
serves every n; quality counts in points of a five-level scale.

.. math::

    m_{i\pi w} &= \mu + \lambda\,(h_i - 3) + \sigma_T T_t + \sigma_I I_i
                  + \tfrac12 D\,d(\pi) + \rho(\kappa)
                  + \sigma_G G_{g\pi} + \sigma_E E_{i\pi} + \sigma_W W_{iw} \\
    \eta_{i\pi w}(s, p) &= -\tfrac{\beta}{2}\,(y(s) - m_{i\pi w})^2
                  + \alpha(y(s)) + \gamma(x(p)) + \delta(y(s), x(p)) \\
    P(s) &\propto \exp\bigl(\eta_{i\pi w}(s, \pi^{-1}(s)) / \tau\bigr), \qquad
    \tau = 0: \text{ the option of largest } \eta

* m is the quality the judge sees: the human rating h on the five-level scale, weighed by λ, and the
  judge's own error about text and item. Where nobody rated an item, h is drawn: normal around 3,
  its variance shared between the criteria of a text.
* d(π) runs from 1 (the options ascend, cyclically) to −1 (they descend); D is the direction effect.
  ρ shifts a criterion by its place among the criteria. G is the noise that all items of a cluster
  share under one ordering, E the item's own, W what a change of wording does.
* β is sharpness: a decisive judge has a large β. α prefers scores, γ positions, δ positions of
  single scores; they are given at five points and interpolated linearly in between. In Setting 2 no
  options are listed, so γ and δ do not act.
* T, I, G, E, W are standard normal and, with the uniform number that samples at τ > 0, come from a
  hash of seed, profile draw, ids, ordering, wording and (τ > 0 only) replicate. An answer therefore
  never depends on what else is asked, and a greedy judge repeats itself.

The readout ``logprobs`` gives P at τ = 1, as engines do, and the option of largest probability.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, fields, replace
from difflib import get_close_matches
from functools import cache
from importlib.resources import files
from itertools import islice
from typing import Any, Literal

import numpy as np
import pandas as pd
import pyarrow as pa
import yaml
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtri

from rubricnb.frames import Items
from rubricnb.hashing import UInt64Array, hash64, mix64, uniform
from rubricnb.judging.contract import Readout, Reply, Request
from rubricnb.judging.readout import answer_text
from rubricnb.permutation import decode

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

READOUTS: tuple[Readout, ...] = ("logprobs", "score", "feedback")
_WORDING = (
    "labels", "layout", "reference_score", "exemplar", "variant", "prompt_format", "template",
    "effort", "thinking",
)  # fmt: skip
_CHUNK = 1 << 16  # reads computed at once: bounds the memory, changes no number
_BATCH = 1024  # requests a judge takes at once


@dataclass(frozen=True)
class Profile:
    """The parameters of one simulated judge; the module's docstring has the model.

    Attributes
    ----------
    name
        What follows ``simulated:`` in the judge's slug.
    sharpness
        β, 0 or more; 0 is a judge that looks at preferences only.
    score_preference, position_preference
        α and γ in logits, at equally spaced points from the first to the last score or position.
    interaction
        δ in logits: one row per score, one column per position; empty is none.
    direction
        D in score points: mean latent quality under ascending minus under descending options.
    criterion_position
        ρ in score points, at equally spaced points from the first to the last criterion.
    center, human_weight
        μ in score points; λ, what one point of the human rating is worth.
    quality_sd, text_share
        Of the quality drawn where no human rated: its standard deviation in score points, and the
        share of its variance (0 to 1) that the criteria of a text have in common.
    text_error, item_error
        σ_T and σ_I in score points.
    cluster_order_noise, order_noise, wording_noise
        σ_G, σ_E and σ_W in score points.
    unparsed
        Pairs (ordering, rate): share of its ``feedback`` answers that end without a score. The
        ordering ``"*"`` stands for every one not named.
    draw
        Which of the judges that share these parameters this is: mixed into every random stream.
    source
        What the profile was fitted to, or what it is for.

    Examples
    --------
    >>> open_profile("first-biased").position_preference
    (1.0, 0.25, -0.25, -0.5, -0.5)
    """

    name: str
    sharpness: float = 4.0
    score_preference: tuple[float, ...] = (0.0,)
    position_preference: tuple[float, ...] = (0.0,)
    interaction: tuple[tuple[float, ...], ...] = ()
    direction: float = 0.0
    criterion_position: tuple[float, ...] = (0.0,)
    center: float = 3.0
    human_weight: float = 0.8
    quality_sd: float = 0.9
    text_share: float = 0.5
    text_error: float = 0.4
    item_error: float = 0.4
    cluster_order_noise: float = 0.1
    order_noise: float = 0.25
    wording_noise: float = 0.1
    unparsed: tuple[tuple[str, float], ...] = ()
    draw: int = 0
    source: str = ""

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if isinstance(value, list | tuple):  # lists come from YAML; a profile is hashable
                plain = tuple(tuple(v) if isinstance(v, list) else v for v in value)
                object.__setattr__(self, field.name, plain)
        for name in ("sharpness", "quality_sd", "text_error", "item_error", "order_noise",
                     "cluster_order_noise", "wording_noise"):  # fmt: skip
            if not getattr(self, name) >= 0:
                raise ValueError(f"profile {self.name!r}: {name} = {getattr(self, name)}, below 0")
        for ordering, rate in self.unparsed:
            if not 0 <= rate <= 1:
                raise ValueError(f"profile {self.name!r}: rate {rate} of {ordering!r} not in 0..1")


PLANTED = (
    Profile("unbiased", source="no preference for any position"),
    Profile(
        "first-biased",
        position_preference=(1.0, 0.25, -0.25, -0.5, -0.5),
        source="planted: prefers the first position",
    ),
    Profile(
        "last-biased",
        position_preference=(-0.5, -0.5, -0.25, 0.25, 1.0),
        source="planted: prefers the last position",
    ),
    Profile(
        "middle-averse",
        position_preference=(0.6, -0.2, -0.8, -0.2, 0.6),
        source="planted: prefers both ends",
    ),
    Profile(
        "criterion-biased",
        criterion_position=(0.4, 0.0, -0.4),
        source="planted: scores the criteria asked first higher (Setting 2)",
    ),
)
"""The profiles whose biases are planted by hand; `rubricnb.judging.fitting` writes the others."""


def profiles() -> dict[str, Profile]:
    """Return every profile by name: the planted ones, then those fitted to the papers.

    Fitted profiles are called ``v2/JUDGE/DATASET`` (arXiv:2602.02219v2, Table 2) and ``v1/JUDGE``
    (v1, Table 5). They reproduce the printed shares; they replicate nothing.

    Examples
    --------
    >>> [name for name in profiles() if "/" not in name]
    ['unbiased', 'first-biased', 'last-biased', 'middle-averse', 'criterion-biased']
    """
    return dict(_profiles())


def open_profile(name: str) -> Profile:
    """Return one profile.

    Parameters
    ----------
    name
        A key of `profiles`.

    Raises
    ------
    ValueError
        No such profile; names the nearest ones.

    Examples
    --------
    >>> open_profile("unbaised")
    Traceback (most recent call last):
    ...
    ValueError: no simulated profile 'unbaised'; nearest: unbiased
    """
    known = _profiles()
    if name in known:
        return known[name]
    near = get_close_matches(name.lower(), known, n=3) or [p.name for p in PLANTED]
    raise ValueError(f"no simulated profile {name!r}; nearest: {', '.join(near)}")


def simulate(
    requests: pd.DataFrame, items: Items | None, profile: str | Profile, seed: int = 0
) -> pd.DataFrame:
    """Answer requests by a simulated judge, all at once.

    The scores are those that `SimulatedJudge` gives through `rubricnb.run`, bit for bit; no prompt
    is rendered and nothing is stored.

    Parameters
    ----------
    requests
        From `rubricnb.plan` (one judgment each) or `rubricnb.plan_criteria` (one per criterion).
    items
        The items they ask about; None takes ``requests.source``.
    profile
        A name (see `profiles`) or a `Profile`.
    seed
        Another seed is another judge with the same parameters.

    Returns
    -------
    DataFrame
        The judgments frame (`rubricnb.frames.JUDGMENTS`), rows in the order of the requests;
        ``source`` is ``simulated`` and ``judge`` is ``simulated:<profile>``. Probabilities stand
        in rows whose readout is ``logprobs`` (``auto`` means that here).

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
    judge = open_profile(profile) if isinstance(profile, str) else profile
    items = _items_of(requests, items)
    row, item, slot, n_slots = _judged(requests, items)
    batch = _batch(requests, items, row, item, slot, n_slots)
    readout = _resolved_readout(requests)
    logprobs = (readout == "logprobs").to_numpy()[row]
    feedback = (readout == "feedback").to_numpy()[row]
    answers = _answer(judge, seed, batch, logprobs, np.float32)
    frame = _request_columns(requests, row, readout)
    frame["key"] = _keys(judge, seed, requests["request_id"].to_numpy(np.uint64)[row])
    for name in ("dataset", "group_id", "cluster_id", "candidate", "criterion"):
        if name in items:
            frame[name] = _category(items[name], item)
    frame["judge"] = _constant(f"simulated:{judge.name}", len(row))
    frame["source"] = _constant("simulated", len(row))
    frame |= _outcome(batch, answers.position, answers.lost & feedback)
    if n_slots.any():
        frame["criterion_position"] = _nullable(slot + 1, n_slots == 0)
    frame |= _probability_columns(answers)
    for name in ("prompt_tokens", "cached_tokens", "completion_tokens"):
        frame[name] = np.zeros(len(row), np.int32)
    frame["seconds"] = np.zeros(len(row), np.float32)
    return pd.DataFrame(frame, copy=False)


class SimulatedJudge:
    """A simulated judge behind the contract of every judge (`rubricnb.judging.contract.Judge`).

    Parameters
    ----------
    profile
        A name (see `profiles`) or a `Profile`.
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
    readouts = READOUTS
    concurrency = 256

    def __init__(self, profile: str | Profile = "unbiased", seed: int = 0) -> None:
        self.profile = open_profile(profile) if isinstance(profile, str) else profile
        self.seed = seed
        self.slug = f"simulated:{self.profile.name}"
        self.identity = json.dumps({"model": 1, "seed": seed, **asdict(self.profile)})

    def answer(self, requests: Iterable[Request]) -> Iterator[Reply]:
        """Answer requests, a thousand at a time."""
        stream = iter(requests)
        while block := list(islice(stream, _BATCH)):
            yield from self._answer(block)

    def close(self) -> None:
        """Nothing to let go of."""

    def _answer(self, block: list[Request]) -> Iterator[Reply]:
        for n in sorted({len(r.ordering) for r in block}):
            same = [r for r in block if len(r.ordering) == n]
            batch, logprobs, slots = _batch_of_requests(same)
            answers = _answer(self.profile, self.seed, batch, logprobs, np.float64)
            first = 0
            for request, count in zip(same, slots, strict=True):
                yield _reply(request, answers, range(first, first := first + count))


def option_quality(items: pd.DataFrame, n_options: int) -> FloatArray:
    """Human ratings of items on a scale of 1 to n.

    Parameters
    ----------
    items
        The items frame; its ``.rubrics`` tell how many levels each rubric has (else 5).
    n_options
        n, 2 or more.

    Returns
    -------
    ndarray of float, one per item
        NaN where there is no human rating.

    Examples
    --------
    >>> items = pd.DataFrame({"rubric_id": ["a", "a"], "human": [2.0, 5.0]})
    >>> option_quality(items, 9)
    array([3., 9.])
    """
    if "human" not in items:
        return np.full(len(items), np.nan)
    rubrics = getattr(items, "rubrics", None)
    levels: ArrayLike = 5
    if rubrics is not None:
        top = rubrics.groupby("rubric_id", observed=True)["score"].max()
        levels = items["rubric_id"].astype(object).map(top).to_numpy(np.float64)
    return np.asarray(1 + (items["human"].to_numpy(np.float64) - 1) * (n_options - 1)
                      / (np.asarray(levels) - 1))  # fmt: skip


def wording(requests: pd.DataFrame) -> UInt64Array:
    """Hash what else than the ordering makes a prompt differ: conditions and placebo edit.

    Parameters
    ----------
    requests
        The requests frame.

    Returns
    -------
    ndarray of uint64, one per request
        What ``Request.wording`` holds.

    Examples
    --------
    >>> import rubricnb as rb
    >>> items = rb.load("minibench", n_items=5)
    >>> len(set(wording(rb.plan(items, rb.placebo(5, 4)))))
    4
    """
    parts = [_hashed(requests[name]) for name in _WORDING]
    edited = (requests["design"] == "placebo").to_numpy()
    edit = np.where(edited, requests["ordering_index"].to_numpy(np.uint64), np.uint64(0))
    return mix64(*parts, edit)


# ---- the model ------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Batch:
    """One read per row, in the arrays the model needs; `table` holds the distinct orderings."""

    table: tuple[str, ...]
    ordering: IntArray  # row of the table
    n_options: IntArray
    text: UInt64Array
    cluster: UInt64Array
    criterion: UInt64Array
    criterion_ordering: UInt64Array  # 0 in Setting 1
    place: FloatArray  # of the criterion among the criteria, 0 to 1; NaN in Setting 1
    quality: FloatArray  # human rating on 1..n, or NaN
    wording: UInt64Array
    temperature: NDArray[np.float32]
    replicate: UInt64Array

    def take(self, rows: IntArray) -> _Batch:
        arrays = {f.name: getattr(self, f.name)[rows] for f in fields(self) if f.name != "table"}
        return _Batch(self.table, **arrays)


@dataclass(frozen=True)
class _Answers:
    """One answer per row: position from 0, P by position (no columns without logprobs)."""

    position: IntArray
    lost: NDArray[np.bool_]  # whether free text would end without the score
    probabilities: NDArray[np.floating[Any]]
    expected: FloatArray


def _answer(
    profile: Profile,
    seed: int,
    batch: _Batch,
    logprobs: NDArray[np.bool_],
    precision: type[np.floating[Any]],
) -> _Answers:
    size = len(batch.ordering)
    widest = int(batch.n_options.max(initial=0)) if logprobs.any() else 0
    position = np.zeros(size, np.int64)
    lost = np.zeros(size, bool)
    probabilities = np.full((size, widest), np.nan, precision)
    expected = np.full(size, np.nan)
    for n in np.unique(batch.n_options):
        of_size = np.flatnonzero(batch.n_options == n)
        tables = _tables(profile, batch.table, int(n))
        for start in range(0, len(of_size), _CHUNK):
            rows = of_size[start : start + _CHUNK]
            part = batch.take(rows)
            logits = _logits(profile, seed, part, int(n), tables)
            position[rows] = _choose(profile, seed, part, logits, logprobs[rows])
            lost[rows] = _lost(profile, seed, part, tables)
            shown = np.flatnonzero(logprobs[rows])
            if len(shown):
                p = _softmax(logits[shown])
                probabilities[rows[shown], :n] = p
                expected[rows[shown]] = (p * tables.score[part.ordering[shown]]).sum(axis=1)
    return _Answers(position, lost, probabilities, expected)


@dataclass(frozen=True)
class _Tables:
    """What depends on the ordering alone, one row per distinct ordering of n options."""

    hashes: UInt64Array
    score: IntArray  # s at position 1..n
    direction: FloatArray
    level: FloatArray  # y(s) at position 1..n
    score_part: FloatArray  # α at position 1..n
    position_part: FloatArray  # γ + δ at position 1..n
    loss: FloatArray  # rate of answers without a score


def _tables(profile: Profile, table: tuple[str, ...], n: int) -> _Tables:
    # Orderings of another size share the table; their rows are never looked up.
    orders = np.array([o if len(o) == n else range(1, n + 1) for o in map(_decode, table)]) - 1
    points = np.arange(n) / (n - 1)
    alpha = _at(profile.score_preference, points)
    gamma = _at(profile.position_preference, points)
    delta = _interaction(profile.interaction, points)
    rising = (np.roll(orders, -1, axis=1) > orders).sum(axis=1)
    rates = dict(profile.unparsed)
    return _Tables(
        hashes=hash64(table),
        score=orders + 1,
        direction=(2 * rising - n) / max(n - 2, 1),
        level=1 + 4 * points[orders],
        score_part=alpha[orders],
        position_part=gamma + delta[orders, np.arange(n)],
        loss=np.array([rates.get(code, rates.get("*", 0.0)) for code in table]),
    )


def _logits(profile: Profile, seed: int, batch: _Batch, n: int, tables: _Tables) -> FloatArray:
    """η by position, shape (reads, n)."""
    quality = _latent(profile, seed, batch, n, tables)
    order = batch.ordering
    eta = tables.level[order] - quality[:, None]
    eta *= eta
    eta *= -profile.sharpness / 2
    eta += tables.score_part[order]
    # Without a list of options (Setting 2) there is no position to prefer.
    listed = np.isnan(batch.place)
    eta += tables.position_part[order] * listed[:, None]
    return eta


def _latent(profile: Profile, seed: int, batch: _Batch, n: int, tables: _Tables) -> FloatArray:
    """m, the quality the judge sees, in points of a five-level scale."""

    def normal(stream: int, *parts: UInt64Array) -> FloatArray:
        return np.asarray(ndtri(uniform(_stream(profile, seed, stream, *parts))))

    item = mix64(batch.text, batch.criterion)
    order = mix64(tables.hashes[batch.ordering], batch.criterion_ordering)
    common, own = normal(1, batch.text), normal(2, item)
    share = profile.text_share
    drawn = 3 + profile.quality_sd * (np.sqrt(share) * common + np.sqrt(1 - share) * own)
    rated = 1 + 4 * (batch.quality - 1) / (n - 1)
    quality = np.where(np.isnan(rated), drawn, rated)
    m = profile.center + profile.human_weight * (quality - 3)
    m += profile.text_error * normal(3, batch.text)
    m += profile.item_error * normal(4, item)
    m += profile.direction / 2 * tables.direction[batch.ordering]
    m += profile.cluster_order_noise * normal(5, batch.cluster, order)
    m += profile.order_noise * normal(6, item, order)
    m += profile.wording_noise * normal(7, item, batch.wording)
    place = np.nan_to_num(batch.place)
    return np.asarray(
        m + np.where(np.isnan(batch.place), 0.0, _at(profile.criterion_position, place))
    )


def _choose(
    profile: Profile, seed: int, batch: _Batch, logits: FloatArray, logprobs: NDArray[np.bool_]
) -> IntArray:
    """The position chosen, from 0: the largest logit, or one drawn at the read's temperature."""
    position = logits.argmax(axis=1)
    drawn = np.flatnonzero((batch.temperature > 0) & ~logprobs)
    if len(drawn):
        hot = batch.temperature[drawn].astype(np.float64)
        below = np.cumsum(_softmax(logits[drawn] / hot[:, None]), axis=1)
        u = uniform(_prompt_stream(profile, seed, 8, batch))[drawn]
        position[drawn] = (below[:, :-1] < u[:, None]).sum(axis=1)
    return position


def _lost(profile: Profile, seed: int, batch: _Batch, tables: _Tables) -> NDArray[np.bool_]:
    rate = tables.loss[batch.ordering]
    if not rate.any():
        return np.zeros(len(rate), bool)
    return np.asarray(uniform(_prompt_stream(profile, seed, 9, batch)) < rate)


def _prompt_stream(profile: Profile, seed: int, stream: int, batch: _Batch) -> UInt64Array:
    # A criterion draws by itself, a greedy answer repeats: its replicate counts for nothing.
    order = mix64(hash64(batch.table)[batch.ordering], batch.criterion_ordering)
    item = mix64(batch.text, batch.criterion)
    replicate = np.where(batch.temperature > 0, batch.replicate, np.uint64(0))
    return _stream(profile, seed, stream, item, order, batch.wording, replicate)


def _stream(profile: Profile, seed: int, stream: int, *parts: UInt64Array) -> UInt64Array:
    return mix64(hash64([seed]), profile.draw, stream, *parts)


def _softmax(logits: FloatArray) -> FloatArray:
    weights = np.exp(logits - logits.max(axis=1, keepdims=True))
    return np.asarray(weights / weights.sum(axis=1, keepdims=True))


def _at(values: Sequence[float], points: FloatArray) -> FloatArray:
    """Interpolate values given at equally spaced points of 0..1."""
    return np.asarray(np.interp(points, np.linspace(0, 1, len(values)), values))


def _interaction(values: tuple[tuple[float, ...], ...], points: FloatArray) -> FloatArray:
    if not values:
        return np.zeros((len(points), len(points)))
    by_position = np.array([_at(row, points) for row in values])
    return np.array([_at(column, points) for column in by_position.T]).T


# ---- frames in, frames out ------------------------------------------------------------------


def _items_of(requests: pd.DataFrame, items: Items | None) -> pd.DataFrame:
    found = items if items is not None else getattr(requests, "source", None)
    if found is None:
        raise ValueError("these requests carry no items: pass them as items=")
    return found


def _judged(
    requests: pd.DataFrame, items: pd.DataFrame
) -> tuple[IntArray, IntArray, IntArray, IntArray]:
    """Per judgment: row of its request, row of its item, slot (from 0) and number of slots.

    In Setting 1 slot and number of slots are 0.
    """
    several = _several(requests)
    ids = pd.Categorical(requests["item_id"])
    known = pd.Index(items["item_id"].astype(object))
    item = known.get_indexer(ids.categories)[ids.codes]
    unknown = (item < 0) & ~several
    if unknown.any():
        name = requests["item_id"].iloc[int(np.argmax(unknown))]
        raise ValueError(f"items lack {name!r}, which a request asks about: pass its items")
    if not several.any():
        none = np.zeros_like(item)
        return np.arange(len(requests)), item, none, none
    members, orders = _criteria(requests, items, ids)
    asked = np.where(several[:, None], orders, -1)
    asked[~several, 0] = 0
    members[~several, 0] = item[~several]
    row, slot = np.nonzero(asked >= 0)
    return row, members[row, asked[row, slot]], slot, np.where(several, (asked >= 0).sum(1), 0)[row]


def _criteria(
    requests: pd.DataFrame, items: pd.DataFrame, ids: pd.Categorical
) -> tuple[IntArray, IntArray]:
    """Per request, padded with -1: the text's items, and which of them is asked 1st, 2nd, …"""
    texts = items["text_id"].astype(object)
    number = texts.groupby(texts.to_numpy(), sort=False).cumcount().to_numpy()
    rows = pd.Index(ids.categories).get_indexer(texts)
    orderings = pd.Categorical(requests["criterion_ordering"])
    decoded = [_decode(code) for code in orderings.categories]
    width = max(number.max() + 1, *map(len, decoded))
    members = np.full((len(ids.categories) + 1, width), -1)
    members[rows, number] = np.where(rows >= 0, np.arange(len(items)), -1)
    members[-1] = -1
    orders = np.full((len(decoded) + 1, width), -1)
    for r, order in enumerate(decoded):
        orders[r, : len(order)] = np.array(order) - 1
    members, orders = members[ids.codes], orders[orderings.codes]
    wrong = ((members >= 0).sum(1) != (orders >= 0).sum(1)) & (orderings.codes >= 0)
    if wrong.any():
        r = int(np.argmax(wrong))
        raise ValueError(
            f"request row {r}: items have {(members[r] >= 0).sum()} criteria of text "
            f"{ids[r]!r}, but its criterion_ordering is {orderings[r]!r}"
        )
    return members, orders


def _several(requests: pd.DataFrame) -> NDArray[np.bool_]:
    if "criterion_ordering" not in requests:
        return np.zeros(len(requests), bool)
    return requests["criterion_ordering"].notna().to_numpy()


def _batch(
    requests: pd.DataFrame,
    items: pd.DataFrame,
    row: IntArray,
    item: IntArray,
    slot: IntArray,
    n_slots: IntArray,
) -> _Batch:
    orders = pd.Categorical(requests["ordering"])
    n_options = requests["n_options"].to_numpy(np.int64)[row]
    quality = np.full(len(row), np.nan)
    for n in np.unique(n_options):
        of_size = n_options == n
        quality[of_size] = option_quality(items, int(n))[item[of_size]]
    several = _several(requests)
    criteria_order = np.zeros(len(requests), np.uint64)
    if several.any():
        criteria_order[several] = _hashed(requests.loc[several, "criterion_ordering"])
    with np.errstate(invalid="ignore", divide="ignore"):
        place = np.where(n_slots > 0, slot / np.maximum(n_slots - 1, 1), np.nan)
    return _Batch(
        table=tuple(orders.categories),
        ordering=orders.codes.astype(np.int64)[row],
        n_options=n_options,
        text=hash64(items["text_id"])[item],
        cluster=hash64(items["cluster_id"])[item],
        criterion=_hashed(items["criterion"])[item],
        criterion_ordering=criteria_order[row],
        place=place,
        quality=quality,
        wording=wording(requests)[row],
        temperature=requests["temperature"].to_numpy(np.float32)[row],
        replicate=requests["replicate"].to_numpy(np.uint64)[row],
    )


def _batch_of_requests(block: list[Request]) -> tuple[_Batch, NDArray[np.bool_], list[int]]:
    """The same arrays from requests of one size; also which rows show P, and slots per request."""
    slots = [len(r.criteria) or 1 for r in block]
    own = [r for r, count in zip(block, slots, strict=True) for _ in range(count)]
    codes, table = pd.factorize(pd.Series(["-".join(map(str, r.ordering)) for r in own]))
    place = [
        np.nan if not r.criteria else j / max(count - 1, 1)
        for r, count in zip(block, slots, strict=True)
        for j in range(count)
    ]
    criteria = [c for r in block for c in (r.criteria or (r.criterion,))]
    quality = [q for r in block for q in (r.qualities or (r.quality,) * (len(r.criteria) or 1))]
    criteria_order = np.zeros(len(own), np.uint64)
    several = np.array([bool(r.criteria) for r in own])
    if several.any():
        criteria_order[several] = hash64(r.criterion_ordering for r in own if r.criteria)
    batch = _Batch(
        table=tuple(table),
        ordering=codes.astype(np.int64),
        n_options=np.array([len(r.ordering) for r in own]),
        text=hash64(r.text_id for r in own),
        cluster=hash64(r.cluster_id for r in own),
        criterion=hash64(criteria),
        criterion_ordering=criteria_order,
        place=np.array(place),
        quality=np.array([np.nan if q is None else q for q in quality], dtype=np.float64),
        wording=np.array([r.wording for r in own], dtype=np.uint64),
        temperature=np.array([r.temperature for r in own], dtype=np.float32),
        replicate=np.array([r.replicate for r in own], dtype=np.uint64),
    )
    return batch, np.array([r.readout == "logprobs" for r in own]), slots


def _reply(request: Request, answers: _Answers, rows: range) -> Reply:
    positions = [int(p) + 1 for p in answers.position[rows]]
    if request.readout == "logprobs":
        shown = tuple(map(tuple, answers.probabilities[rows].tolist()))
        return Reply(request.request_id, answer_text(request, positions), probabilities=shown)
    if request.readout == "feedback":
        # What is lost is lost for good: the slot does not stand in the text at all.
        kept = [j for j, r in enumerate(rows) if not answers.lost[r]]
        slots = tuple(request.slots[j] for j in kept)
        text = answer_text(replace(request, slots=slots), [positions[j] for j in kept])
        return Reply(request.request_id, f"Feedback: A simulated judge reads no text. {text}")
    return Reply(request.request_id, answer_text(request, positions))


def _resolved_readout(requests: pd.DataFrame) -> pd.Series:
    readout = requests["readout"].astype("category")
    return readout.map(lambda r: READOUTS[0] if r == "auto" else r).astype("category")


def _request_columns(requests: pd.DataFrame, row: IntArray, readout: pd.Series) -> dict[str, Any]:
    columns = {name: requests[name].array for name in requests.columns} | {"readout": readout.array}
    if len(row) == len(requests):
        return columns
    return {name: values.take(row) for name, values in columns.items()}


def _outcome(batch: _Batch, position: IntArray, lost: NDArray[np.bool_]) -> dict[str, Any]:
    orders = [_decode(code) for code in batch.table]
    table = np.zeros((len(orders), max(map(len, orders), default=0)), np.int64)
    for r, order in enumerate(orders):
        table[r, : len(order)] = order
    return {
        "status": pd.Categorical.from_codes(lost.astype(np.int8), ["ok", "unparsed"]),
        "score": _nullable(table[batch.ordering, position], lost),
        "position": _nullable(position + 1, lost),
    }


def _probability_columns(answers: _Answers) -> dict[str, Any]:
    columns: dict[str, Any] = {
        f"probability_{p + 1}": np.ascontiguousarray(answers.probabilities[:, p])
        for p in range(answers.probabilities.shape[1])
    }
    if columns:
        columns["expected_score"] = answers.expected.astype(np.float32)
        columns["label_mass"] = np.where(np.isnan(answers.expected), np.nan, 1).astype(np.float32)
    return columns


def _keys(profile: Profile, seed: int, request_id: UInt64Array) -> Any:
    """256 bits in hexadecimal per judgment, without a hash function called two million times."""
    own = hash64([json.dumps({"seed": seed, **asdict(profile)})])
    words = np.stack([mix64(own, request_id, j) for j in range(4)], axis=1)
    digits = np.frombuffer(b"0123456789abcdef", np.uint8)
    octets = words.astype(">u8").view(np.uint8).reshape(len(request_id), 32)
    text = np.stack([digits[octets >> 4], digits[octets & 15]], axis=2)
    offsets = np.arange(len(request_id) + 1, dtype=np.int64) * 64
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(np.ascontiguousarray(text))]
    array = pa.Array.from_buffers(pa.large_string(), len(request_id), buffers)
    return pd.array(array, dtype="str")


def _category(column: pd.Series, item: IntArray) -> pd.Categorical:
    codes, values = pd.factorize(column)
    return pd.Categorical.from_codes(codes[item], [str(v) for v in values])


def _constant(value: str, size: int) -> pd.Categorical:
    return pd.Categorical.from_codes(np.zeros(size, np.int8), [value])


def _nullable(values: IntArray, missing: NDArray[np.bool_]) -> Any:
    return pd.arrays.IntegerArray(values.astype(np.int8), np.asarray(missing, dtype=bool).copy())


def _hashed(column: pd.Series) -> UInt64Array:
    codes, values = pd.factorize(column)
    return hash64(values)[codes]


@cache
def _decode(code: str) -> tuple[int, ...]:
    return decode(code)


@cache
def _profiles() -> dict[str, Profile]:
    known = {p.name: p for p in PLANTED}
    path = files("rubricnb.judging").joinpath("profiles.yml")
    if path.is_file():
        for name, values in (yaml.safe_load(path.read_text(encoding="utf-8")) or {}).items():
            known[name] = Profile(name, **values["parameters"])
    return known
