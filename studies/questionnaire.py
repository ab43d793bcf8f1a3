"""Who filled in this questionnaire? ``python -m studies.questionnaire``.

Eight models answered questions of Pew's panel in two opposite orders, fifty times each
(`rubricnb.sets.others.biasmonkey`). What is written to
``results/recordings/questionnaire_*.csv`` are shares, means and variances of a model:
no row of any question. Only questions with three options are used, and waves are the
clusters.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd

from rubricnb.core.estimates.intervals import Estimate, jackknife_t
from rubricnb.core.estimates.reads import FloatArray, IntArray
from rubricnb.sets.others import load_recording
from studies.intervals import bounded
from studies.recording import write_tables

OPTIONS, READS = 3, 50
EDITS = ("typo", "letter-swap", "scrambled")
RESPONDENTS, QUESTIONS = 200, 20  # of a simulated group, and of the people beside it
ALARMS, PRIMACY, HURRIED = 0.05, 0.025, 0.1
FRACTIONS = (0.0, 0.1, 0.15, 0.2, 0.25, 0.3, 0.4)
STUDIES, SHEETS, PERSONS = 1_000, 300, 1_000
BASE = ("Llama-2 7B", "Llama-2 13B", "Llama-2 70B")  # without tuning to instructions


@dataclass(frozen=True)
class Model:
    """One model's shares of each option (questions × options), and their waves.

    ``up`` and ``down``: the original order and its reverse, in two halves of the
    answers. ``again``: the original prompt, four times; ``edited``: each edit. NaN
    where answers are lost.
    """

    name: str
    wave: IntArray
    up: FloatArray  # halves × questions × options
    down: FloatArray
    again: FloatArray  # four × questions × options
    edited: FloatArray  # edits × questions × options

    @property
    def weights(self) -> FloatArray:
        """Half of what each option's share changes between the orders, in each half."""
        return (self.up - self.down) / 2


def models(judgments: pd.DataFrame) -> list[Model]:
    """Count the answers of every model.

    Raises
    ------
    ValueError
        A question has one order only, or two names have answers that no test tells
        apart.
    """
    asked = judgments[judgments["n_options"] == OPTIONS]
    questions = asked.groupby("item_id", observed=True)["cluster_id"].first()
    wave, _ = pd.factorize(questions.astype(str))
    row = questions.index.get_indexer(asked["item_id"])
    block = _blocks(asked)
    found = []
    for name, of in asked.groupby("judge", observed=True, sort=False).indices.items():
        score = asked["score"].iloc[of]
        kept = (score.notna() & (block[of] >= 0)).to_numpy(bool)
        counts = np.zeros((8 + len(EDITS), len(questions), OPTIONS))
        at = (block[of][kept], row[of][kept], score[kept].to_numpy(np.int64) - 1)
        np.add.at(counts, at, 1)
        counts[4] += counts[0] + counts[1]  # the first of four times
        n = counts.sum(axis=-1, keepdims=True)
        shares = np.where(n > 0, counts / np.maximum(n, 1), np.nan)
        if np.isnan(shares[:4]).any():
            raise ValueError(
                f"{name}: some questions have one order only, so that a position "
                "cannot be told from an opinion"
            )
        found.append(
            Model(str(name), wave, shares[:2], shares[2:4], shares[4:8], shares[8:])
        )
    _refuse_twins(found)
    return found


def _blocks(asked: pd.DataFrame) -> IntArray:
    """Number the kinds of answers: halves of two orders, four originals, edits."""
    read = asked["replicate"].to_numpy() - 1
    form = asked["template"].astype(str).to_numpy()
    down = (asked["design"] == "reverse").to_numpy()
    block = np.where(down, 2 + read // (READS // 2), 4 + read // READS)
    block = np.where(~down & (read < READS), read // (READS // 2), block)
    block[block > 7] = -1  # questions that an edit left as they were
    for number, edit in enumerate(EDITS):
        block[form == edit] = 8 + number
    return np.asarray(block, dtype=np.int64)


def _refuse_twins(found: list[Model]) -> None:
    """Refuse two names of one model: its answers would count twice."""
    for one, other in combinations(found, 2):
        apart = over_waves(one.wave, squared_distance(one, other))
        if apart.low <= 0:
            raise ValueError(
                f"the answers of {one.name!r} and {other.name!r} are those of one "
                f"model (squared distance {apart.value:.4f}, from {apart.low:.4f}): "
                "leave one out"
            )


def squared_distance(one: Model, other: Model) -> FloatArray:
    """Squared distance of two models' shares for each question; 0 if equal."""
    total = np.zeros(len(one.wave))
    for order in ("up", "down"):
        first, second = getattr(one, order), getattr(other, order)
        total += ((first[0] - second[0]) * (first[1] - second[1])).sum(axis=-1) / 2
    return total


def over_waves(wave: IntArray, values: FloatArray) -> Estimate:
    """Estimate the mean over questions, with its interval over waves, without NaN."""
    left = [np.nanmean(values[wave != one]) for one in np.unique(wave)]
    return jackknife_t(float(np.nanmean(values)), np.array(left))


# ---- what an order does
# ------------------------------------------------------------------------


def positions(of: list[Model]) -> pd.DataFrame:
    """Shares of the first and the last option, their difference, and how it varies.

    ``sd`` is the standard deviation of the difference over questions, without sampling
    noise. The middle option never moves, so its share is about opinions and not in the
    table.
    """
    rows: list[dict[str, Any]] = []
    for model in of:
        first, last = _first_and_last(model)
        halves = first - last  # of which each has half of the answers
        effect = halves.mean(axis=0)
        variance = np.cov(halves)[0, 1]
        rows.append(
            {
                "model": model.name,
                "n_questions": len(effect),
                "n_waves": len(np.unique(model.wave)),
                "first": first.mean(),
                "last": last.mean(),
                **bounded("difference", over_waves(model.wave, effect)),
                "sd": np.sqrt(max(variance, 0.0)),
            }
        )
    return pd.DataFrame(rows)


def _first_and_last(model: Model) -> tuple[FloatArray, FloatArray]:
    """Shares of the options shown first and last (halves × questions)."""
    return (
        (model.up[..., 0] + model.down[..., -1]) / 2,
        (model.up[..., -1] + model.down[..., 0]) / 2,
    )


def kinds(of: list[Model]) -> pd.DataFrame:
    """First minus last, base and tuned models' means, and their difference.

    First minus last, the mean of the base models and of the tuned ones, and the
    difference of these two: over waves, for these models.
    """
    effect = {m.name: np.subtract(*_first_and_last(m)).mean(axis=0) for m in of}
    base = np.mean([effect[name] for name in effect if name in BASE], axis=0)
    tuned = np.mean([effect[name] for name in effect if name not in BASE], axis=0)
    return pd.DataFrame(
        [
            {"models": name, **bounded("difference", over_waves(of[0].wave, values))}
            for name, values in (
                ("base", base),
                ("tuned", tuned),
                ("base − tuned", base - tuned),
            )
        ]
    )


def changes(of: list[Model]) -> pd.DataFrame:
    """Share of answers that a change of the prompt moves, beyond the order's.

    A distance of two samples of fifty is above 0 without any change: ``asked again``
    says how much.
    """
    rows = []
    for model in of:
        down = model.down.mean(axis=0)
        again = [_moved(a, b) for a, b in combinations(model.again, 2)]
        each = {"order": _from_each(model, down), "asked again": np.mean(again, axis=0)}
        each |= {
            edit: _from_each(model, own)
            for edit, own in zip(EDITS, model.edited, strict=True)
        }
        for name, moved in each.items():
            lost = bool(np.isnan(moved).all())
            compared = not lost and name != "order"
            more = each["order"] - moved
            rows.append(
                {
                    "model": model.name,
                    "change": name,
                    "moved": np.nan if lost else np.nanmean(moved),
                    **bounded(
                        "beyond",
                        over_waves(model.wave, more) if compared else Estimate(),
                    ),
                    "reason": "the answers of this file have slipped" if lost else "",
                }
            )
    return pd.DataFrame(rows)


def _moved(one: FloatArray, other: FloatArray) -> FloatArray:
    """Total variation distance of the shares of each question."""
    return np.asarray(np.abs(one - other).sum(axis=-1) / 2)


def _from_each(model: Model, changed: FloatArray) -> FloatArray:
    """Mean distance of changed prompts from every time that the original was asked."""
    whole = [
        _moved(changed, plain) for plain in model.again if not np.isnan(plain).any()
    ]
    return np.asarray(np.mean(whole, axis=0))


# ---- how a group is found
# ----------------------------------------------------------------------


def moments(of: list[Model]) -> pd.DataFrame:
    """What a test needs that gives every option of every question a weight of its own.

    An answer scores its option's weight, with a minus where the options were reversed.
    The weights of a model come from one half of its answers, and its scores from the
    other.

    ``left_out``: the wave that was left out, for intervals (−1: none). ``mean,
    square``: the model's mean score and mean squared score. ``outer``,
    ``outer_square``, ``middle_square``: means of the difference of the outer options'
    weights, of their mean square, and of the middle's square, from which follow the
    moments of people who choose by position.
    """
    rows = []
    for source in of:
        for model in of:
            whole = np.stack(
                [
                    _moments(source.weights[own], model, other)
                    for own, other in ((0, 1), (1, 0))
                ]
            ).mean(axis=0)
            waves = (
                np.unique(model.wave) if source is model else np.array([], dtype=int)
            )
            for left_out in (-1, *waves):
                kept = model.wave != left_out
                rows.append(
                    {
                        "weights": source.name,
                        "model": model.name,
                        "left_out": left_out,
                        **dict(zip(MOMENTS, whole[kept].mean(axis=0), strict=True)),
                    }
                )
    return pd.DataFrame(rows)


MOMENTS = ("mean", "square", "outer", "outer_square", "middle_square")


def _moments(weight: FloatArray, model: Model, half: int) -> FloatArray:
    """The columns of `moments` for each question."""
    up, down = model.up[half], model.down[half]
    return np.stack(
        [
            (weight * (up - down) / 2).sum(axis=1),
            (weight**2 * (up + down) / 2).sum(axis=1),
            weight[:, 0] - weight[:, -1],
            (weight[:, 0] ** 2 + weight[:, -1] ** 2) / 2,
            weight[:, 1] ** 2,
        ],
        axis=1,
    )


def likeness(of: list[Model]) -> pd.DataFrame:
    """Correlation of two models' weights over all questions and options."""
    rows = [
        {
            "weights": one.name,
            "model": other.name,
            "r": np.corrcoef(*(m.weights.mean(axis=0).ravel() for m in (one, other)))[
                0, 1
            ],
        }
        for one, other in combinations(of, 2)
    ]
    return pd.DataFrame(rows)


# ---- simulated
# --------------------------------------------------------------------------------------


def answered(
    rng: np.random.Generator, up: FloatArray, down: FloatArray, n: int
) -> tuple[IntArray, IntArray]:
    """Options that n respondents choose (n × questions), and signs of their orders."""
    order = rng.random((n, len(up))) < 0.5
    below = np.cumsum(np.where(order[..., None], up, down), axis=-1)[..., :-1]
    chosen = (rng.random((n, len(up), 1)) > below).sum(axis=-1)
    return chosen, np.where(order, 1, -1)


def scored(weight: FloatArray, chosen: IntArray, sign: IntArray) -> FloatArray:
    """Mean score of each respondent."""
    return np.asarray((weight[np.arange(len(weight)), chosen] * sign).mean(axis=1))


def people(
    rng: np.random.Generator,
    opinion: FloatArray,
    weight: FloatArray,
    n: int,
    primacy: float,
    hurried: float = HURRIED,
) -> FloatArray:
    """Scores of n people with these opinions, of whom a share is hurried.

    The first gains `primacy` from all people if `HURRIED` of them are hurried.
    """
    quick = rng.random(n) < hurried
    chosen, sign = answered(rng, opinion, opinion, n)
    # moved to the first from what they think
    more = primacy / HURRIED * OPTIONS / (OPTIONS - 1)
    first = np.where(sign > 0, 0, OPTIONS - 1)
    taken = quick[:, None] & (rng.random(chosen.shape) < more)
    return scored(weight, np.where(taken, first, chosen), sign)


def groups(of: list[Model], studies: int = STUDIES) -> pd.DataFrame:
    """How often a group is found, by the share that a model filled in for it.

    Every study draws the questions and what people think of them; some people are in a
    hurry. The test compares the group with as many known people: one-sided, by their
    own variances.
    """
    rows = []
    for model in of:
        rng = np.random.default_rng([1, *model.name.encode()])
        found = np.zeros(len(FRACTIONS))
        for _ in range(studies):
            weight, up, down, opinion = drawn(rng, model)
            known = people(rng, opinion, weight, RESPONDENTS, PRIMACY)
            for k, fraction in enumerate(FRACTIONS):
                by_model = rng.binomial(RESPONDENTS, fraction)
                group = np.r_[
                    people(rng, opinion, weight, RESPONDENTS - by_model, PRIMACY),
                    scored(weight, *answered(rng, up, down, by_model)),
                ]
                spread = np.sqrt((group.var(ddof=1) + known.var(ddof=1)) / RESPONDENTS)
                found[k] += group.mean() - known.mean() > 1.6449 * spread
        rows += [
            {
                "model": model.name,
                "fraction": fraction,
                "found": n / studies,
                "studies": studies,
            }
            for fraction, n in zip(FRACTIONS, found, strict=True)
        ]
    return pd.DataFrame(rows)


def drawn(rng: np.random.Generator, model: Model) -> tuple[FloatArray, ...]:
    """Draw a questionnaire: weights of one half, shares in the other, opinions."""
    asked = rng.choice(len(model.wave), QUESTIONS, replace=False)
    own = int(rng.integers(2))
    opinion = rng.dirichlet(np.ones(OPTIONS), QUESTIONS)
    return (
        model.weights[own][asked],
        model.up[1 - own][asked],
        model.down[1 - own][asked],
        opinion,
    )


def single(of: list[Model], sheets: int = SHEETS) -> pd.DataFrame:
    """How many single questionnaires are flagged, at a fixed rate of careful people's.

    ``found``: of the model's; ``careful``, ``hurried``: of people who follow their
    opinions, and of those who take the first option more often.
    """
    rows = []
    for model in of:
        rng = np.random.default_rng([2, *model.name.encode()])
        found: list[float] = []
        flagged: tuple[list[float], list[float]] = ([], [])
        for _ in range(sheets):
            weight, up, down, opinion = drawn(rng, model)
            limit = np.quantile(people(rng, opinion, weight, PERSONS, 0), 1 - ALARMS)
            found.append(
                (scored(weight, *answered(rng, up, down, PERSONS)) > limit).mean()
            )
            for k, primacy in enumerate((0, PRIMACY)):
                scores = people(rng, opinion, weight, PERSONS, primacy, hurried=1.0)
                flagged[k].append((scores > limit).mean())
        careful, hurried = map(np.mean, flagged)
        rows.append(
            {
                "model": model.name,
                "found": np.mean(found),
                "careful": careful,
                "hurried": hurried,
            }
        )
    return pd.DataFrame(rows)


def compute(of: list[Model] | None = None) -> dict[str, pd.DataFrame]:
    """All tables of the chapter, by name of file."""
    of = models(load_recording("pew-order")) if of is None else of
    return {
        "questionnaire_positions": positions(of),
        "questionnaire_kinds": kinds(of),
        "questionnaire_changes": changes(of),
        "questionnaire_moments": moments(of),
        "questionnaire_likeness": likeness(of),
        "questionnaire_groups": groups(of),
        "questionnaire_single": single(of),
    }


if __name__ == "__main__":
    write_tables(compute())
