r"""Simulated judges: numbers drawn from one explicit model with planted biases.

They show what an estimator does when the truth is known; they say nothing about any
real judge, also where a profile was fitted to a published table.

The model
---------
Item i is text t under criterion c, in cluster g. It is judged under an ordering π of
its n options (Setting 2: of its criteria, κ the relative place of c in it), in a prompt
of wording w. Option s and position p are written y(s) = 1 + 4 (s − 1)/(n − 1) and x(p)
= (p − 1)/(n − 1), so one profile serves every n; quality counts in points of a
five-level scale.

.. math::

    m_{i\pi w} &= \mu + \lambda\,(h_i - 3) + \sigma_T T_t + \sigma_I I_i
                  + \tfrac12 D\,d(\pi) + \rho(\kappa)
                  + \sigma_G G_{g\pi} + \sigma_E E_{i\pi} + \sigma_W W_{iw} + \ell_w \\
    \eta_{i\pi w}(s, p) &= -\tfrac{\beta}{2}\,(y(s) - m_{i\pi w})^2
                  + \alpha(y(s)) + \gamma(x(p)) + \delta(y(s), x(p)) \\
    P(s) &\propto \exp\bigl(\eta_{i\pi w}(s, \pi^{-1}(s)) / \tau\bigr), \qquad
    \tau = 0: \text{ the option of largest } \eta

* m is the quality the judge sees: the human rating h on the five-level scale, weighed
  by λ, and the judge's own error about text and item. Where nobody rated an item, h is
  drawn: normal around 3, its variance shared between the criteria of a text.
* d(π) runs from 1 (the options ascend, cyclically) to −1 (they descend); D is the
  direction effect. ρ shifts a criterion by its place among the criteria. G is the noise
  that all items of a cluster share under one ordering, E the item's own, W what a
  change of wording does; ℓ shifts all items where the scores have other labels. A
  reference of score k, where one is shown, then moves m a share of the way to y(k).
* β is sharpness: a decisive judge has a large β. α prefers scores, γ positions, δ
  positions of single scores; they are given at five points and interpolated linearly in
  between. In Setting 2 no options are listed, so γ and δ do not act.
* T, I, G, E, W are standard normal and, with the uniform number that samples at τ > 0,
  come from a hash of seed, profile draw, ids, ordering, wording and (τ > 0 only)
  replicate. An answer therefore never depends on what else is asked, and a greedy judge
  repeats itself.

Without order noise γ is the log-preference of `rubricnb.position_bias`, by ``logprobs``
or sampled at τ = 1. Order noise makes the odds less extreme and the estimate smaller;
that of a greedy judge is on another scale (there the noise, not the softmax, decides
how often a preference counts).

The readout ``logprobs`` gives P at τ = 1, as engines do, and the option of largest
probability.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri, softmax

from rubricnb.core.permutation import decode, ranks
from rubricnb.core.prompts.labels import LABELS
from rubricnb.core.support.hashing import UInt64Array, hash64, mix64, uniform
from rubricnb.core.support.types import FloatArray, IntArray, Mask
from rubricnb.engines.profiles import Profile

_CHUNK = 1 << 16  # reads computed at once: bounds the memory, changes no number


class Batch(NamedTuple):
    """One read per row, in the arrays of the model; `table`: distinct orderings."""

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
    labels: IntArray  # row of LABELS
    reference: FloatArray  # score of the reference shown on 1..n, or NaN
    temperature: NDArray[np.float32]
    replicate: UInt64Array

    def take(self, rows: IntArray) -> Batch:
        """Return these rows."""
        arrays: Any = self[1:]
        return Batch(self.table, *(array[rows] for array in arrays))


class Answers(NamedTuple):
    """One answer per row: position from 0, score, P by position with logprobs."""

    position: IntArray
    score: FloatArray
    lost: Mask  # whether free text would end without the score
    probabilities: FloatArray
    expected: FloatArray


def answer(profile: Profile, seed: int, batch: Batch, logprobs: Mask) -> Answers:
    """Answer every read of a batch."""
    size = len(batch.ordering)
    widest = int(batch.n_options.max(initial=0)) if logprobs.any() else 0
    position, score = np.zeros(size, np.int64), np.zeros(size)
    lost = np.zeros(size, bool)
    probabilities = np.full((size, widest), np.nan)
    expected = np.full(size, np.nan)
    for n in np.unique(batch.n_options):
        of_size = np.flatnonzero(batch.n_options == n)
        tables = ordering_tables(profile, batch.table, int(n))
        for start in range(0, len(of_size), _CHUNK):
            rows = of_size[start : start + _CHUNK]
            part = batch.take(rows)
            logits = logits_of(profile, seed, part, int(n), tables)
            chosen = logits.argmax(axis=1)
            # At a temperature a position is drawn instead.
            drawn = np.flatnonzero((part.temperature > 0) & ~logprobs[rows])
            if len(drawn):
                hot = part.temperature[drawn].astype(float)
                below = np.cumsum(softmax(logits[drawn] / hot[:, None], axis=1), axis=1)
                u = uniform(_prompt_stream(profile, seed, 8, part))[drawn]
                chosen[drawn] = (below[:, :-1] < u[:, None]).sum(axis=1)
            position[rows] = chosen
            score[rows] = tables.score[part.ordering, chosen]
            rate = tables.loss[part.ordering]
            if rate.any():
                lost[rows] = uniform(_prompt_stream(profile, seed, 9, part)) < rate
            shown = np.flatnonzero(logprobs[rows])
            if len(shown):
                p = softmax(logits[shown], axis=1)
                probabilities[rows[shown], :n] = p
                expected[rows[shown]] = (p * tables.score[part.ordering[shown]]).sum(
                    axis=1
                )
    return Answers(position, score, lost, probabilities, expected)


class Tables(NamedTuple):
    """What depends on the ordering alone, a row for each distinct one of n options."""

    hashes: UInt64Array
    score: IntArray | FloatArray  # s at position 1..n
    direction: FloatArray
    level: FloatArray  # y(s) at position 1..n
    score_part: FloatArray  # α at position 1..n
    position_part: FloatArray  # γ + δ at position 1..n
    loss: FloatArray  # rate of answers without a score


def ordering_tables(profile: Profile, table: tuple[str, ...], n: int) -> Tables:
    """Work out what the orderings of n options fix by themselves."""
    # Orderings of another size share the table; their rows are never looked up.
    shown = np.array(
        [o if len(o) == n else range(1, n + 1) for o in map(decode, table)]
    )
    orders = ranks(shown) - 1  # of options from 0, whatever their scores
    points = np.arange(n) / (n - 1)
    alpha = _at(profile.score_preference, points)
    gamma = _at(profile.position_preference, points)
    by_position = [_at(row, points) for row in profile.interaction or ((0.0,),)]
    delta = np.array([_at(column, points) for column in np.transpose(by_position)]).T
    rising = (np.roll(orders, -1, axis=1) > orders).sum(axis=1)
    rates = dict(profile.unparsed)
    return Tables(
        hashes=hash64(table),
        score=shown,
        direction=(2 * rising - n) / max(n - 2, 1),
        level=1 + 4 * points[orders],
        score_part=alpha[orders],
        position_part=gamma + delta[orders, np.arange(n)],
        loss=np.array([rates.get(code, rates.get("*", 0.0)) for code in table]),
    )


def logits_of(
    profile: Profile, seed: int, batch: Batch, n: int, tables: Tables
) -> FloatArray:
    """Return η by position, shape (reads, n); `answer` shows how a batch is made."""

    def normal(stream: int, *parts: UInt64Array) -> FloatArray:
        return ndtri(uniform(_stream(profile, seed, stream, *parts)))

    item = mix64(batch.text, batch.criterion)
    order = mix64(tables.hashes[batch.ordering], batch.criterion_ordering)
    common, own = normal(1, batch.text), normal(2, item)
    share = profile.text_share
    drawn = 3 + profile.quality_sd * (
        np.sqrt(share) * common + np.sqrt(1 - share) * own
    )
    rated = 1 + 4 * (batch.quality - 1) / (n - 1)
    quality = np.where(np.isnan(rated), drawn, rated)
    # the quality the judge sees, in points of a five-level scale
    m = profile.center + profile.human_weight * (quality - 3)
    m += profile.text_error * normal(3, batch.text)
    m += profile.item_error * normal(4, item)
    m += profile.direction / 2 * tables.direction[batch.ordering]
    m += profile.cluster_order_noise * normal(5, batch.cluster, order)
    m += profile.order_noise * normal(6, item, order)
    m += profile.wording_noise * normal(7, item, batch.wording)
    place = np.nan_to_num(batch.place)
    listed = np.isnan(batch.place)
    m += np.where(listed, 0.0, _at(profile.criterion_position, place))
    shifts = dict(profile.label_shift)
    m += np.array([shifts.get(name, 0.0) for name in LABELS])[batch.labels]
    shown = 1 + 4 * (batch.reference - 1) / (n - 1)
    m += profile.reference_pull * np.nan_to_num(shown - m)
    eta = tables.level[batch.ordering] - m[:, None]
    eta *= eta
    eta *= -profile.sharpness / 2
    eta += tables.score_part[batch.ordering]
    # Setting 2 shows no list of options, so no position to prefer.
    eta += tables.position_part[batch.ordering] * listed[:, None]
    return eta


def _prompt_stream(
    profile: Profile, seed: int, stream: int, batch: Batch
) -> UInt64Array:
    # A criterion draws by itself, a greedy answer repeats:
    # its replicate counts for nothing.
    order = mix64(hash64(batch.table)[batch.ordering], batch.criterion_ordering)
    item = mix64(batch.text, batch.criterion)
    replicate = np.where(batch.temperature > 0, batch.replicate, np.uint64(0))
    return _stream(profile, seed, stream, item, order, batch.wording, replicate)


def _stream(
    profile: Profile, seed: int, stream: int, *parts: UInt64Array
) -> UInt64Array:
    return mix64(hash64([seed]), profile.draw, stream, *parts)


def _at(values: Sequence[float], points: FloatArray) -> FloatArray:
    """Interpolate values given at equally spaced points of 0..1."""
    return np.interp(points, np.linspace(0, 1, len(values)), values)
