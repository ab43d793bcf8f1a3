"""What happens if you train on these scores? ``python -m studies.training`` recomputes.

A policy chooses among the recorded candidates of a prompt, and is trained on a judge's
scores with a penalty on how far it moves from choosing at random. Its optimum has a
closed form, so only the speed of training is simulated. Tables are written to
``results/recordings/training_*.csv``; they are aggregates.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd
from scipy import optimize, stats

import rubricnb as rb
from rubricnb.core.estimates.intervals import mean_t, named_mean
from rubricnb.core.estimates.reads import FloatArray, IntArray
from rubricnb.engines.profiles import open_profile
from studies.intervals import ENDS
from studies.one_read import BALANCED, ask, cell, expected, greedy, strengthened
from studies.recording import write_tables

CELLS = (
    ("qwen2.5-coder-1.5b-instruct-embedded", "minibench"),
    ("qwen2.5-coder-1.5b-instruct-embedded", "summeval"),
    ("qwen2.5-coder-0.5b-instruct-embedded", "minibench"),
    ("qwen2.5-coder-0.5b-instruct-vllm", "summeval"),
    ("gemma-3-270m-embedded", "minibench"),
    ("gemma-3-270m-vllm", "summeval"),
    ("smollm2-135m-instruct-embedded", "minibench"),
    ("smollm2-135m-instruct-vllm", "summeval"),
)
READOUTS = {"score": greedy, "expected score": expected}
BETAS = (0.0, 0.03, 0.1, 0.3, 1.0, 3.0)  # score points for each nat
BETA = 0.1
BUDGETS = (0.05, 0.1, 0.2, 0.4, 0.6, 0.8)  # nats
TIE = 1e-9
ANSWERS = 4  # drawn for a prompt at every step of training
RATES = (0.3, 1.0, 3.0, 10.0, 30.0)
STEPS, SEEDS, CLOSE = 300, 20, 0.05
PROMPTS, CANDIDATES = 400, 5  # of a simulated judge


# ---- choosing among candidates
# -----------------------------------------------------------------


@dataclass(frozen=True)
class Choice:
    """Candidates, those of a prompt next to each other.

    `rewards` has reads × candidates for each readout, `placebo` the same of one order
    in neutral edits (empty if none were recorded), `quality` a value for each
    candidate; `starts` is each prompt's first candidate and `cluster` its cluster.
    """

    names: dict[str, Any]
    rewards: dict[str, FloatArray]
    placebo: dict[str, FloatArray]
    quality: FloatArray
    starts: IntArray
    cluster: IntArray
    ascending: int

    def mean(self, values: FloatArray) -> FloatArray:
        """Mean over each prompt's candidates: the policy before training."""
        count = sizes(self.starts, len(self.quality))
        return np.asarray(np.add.reduceat(values, self.starts, axis=-1) / count)


def sizes(starts: IntArray, n: int) -> IntArray:
    """Return how many candidates each prompt has."""
    return np.diff(np.append(starts, n))


def policy(reward: FloatArray, starts: IntArray, beta: float) -> FloatArray:
    """Return the optimum of training: candidates' π ∝ exp(reward / beta).

    `reward` has candidates on its last axis, those of a prompt next to each other from
    `starts` on. A beta of 0 is the limit: the best candidates share the probability.
    """
    if not beta >= 0:
        raise ValueError(f"beta is {beta}: the penalty must be 0 or more")
    if np.isnan(reward).any():
        raise ValueError("a candidate has no reward: leave it out, or give it one")
    prompt = np.repeat(np.arange(len(starts)), sizes(starts, reward.shape[-1]))
    behind = reward - np.maximum.reduceat(reward, starts, axis=-1)[..., prompt]
    weight = np.exp(behind / beta) if beta > 0 else (behind > -TIE).astype(float)
    return np.asarray(weight / np.add.reduceat(weight, starts, axis=-1)[..., prompt])


def under(p: FloatArray, values: FloatArray, starts: IntArray) -> FloatArray:
    """Return each prompt's mean of values under a policy."""
    return np.asarray(np.add.reduceat(p * values, starts, axis=-1))


def divergence(p: FloatArray, starts: IntArray) -> FloatArray:
    """Return how far each prompt's policy is from choosing at random, KL in nats."""
    count = sizes(starts, p.shape[-1])
    log = np.log(np.maximum(p * np.repeat(count, count), 1e-300))
    return np.asarray(np.add.reduceat(p * log, starts, axis=-1))


def best_of(
    reward: FloatArray, values: FloatArray, starts: IntArray, n: int
) -> FloatArray:
    """Return each prompt's mean of the best of n candidates, without repeats.

    Candidates that tie share the choice. A prompt with fewer than n candidates uses
    all.
    """
    found = []
    for first, size in zip(starts, sizes(starts, len(values)), strict=True):
        drawn = first + np.array(list(combinations(range(size), min(n, size))))
        seen = reward[..., drawn]
        best = seen > seen.max(axis=-1, keepdims=True) - TIE
        chosen = (best * values[drawn]).sum(axis=-1) / best.sum(axis=-1)
        found.append(chosen.mean(axis=-1))
    return np.stack(found, axis=-1)


# ---- recorded judges
# ---------------------------------------------------------------------------


def choice(slug: str, dataset: str) -> Choice:
    """Read a recorded judge: prompts of two or more candidates, in ten orders."""
    c = cell(slug, dataset)
    prompt = pd.factorize(c.items["group_id"])[0]
    several = np.bincount(prompt)[prompt] > 1
    if not several.any() or c.items.duplicated(["group_id", "candidate"]).any():
        raise ValueError(
            f"{slug} on {dataset}: its prompts have no candidates to choose between"
        )
    order = np.argsort(np.where(several, prompt, prompt.max() + 1), kind="stable")[
        : several.sum()
    ]
    starts = np.unique(prompt[order], return_index=True)[1]
    edits = placebo_probabilities(slug, dataset)
    shown = np.tile(np.arange(1, 6), (edits.shape[1], 1))
    return Choice(
        {"judge": c.judge, "dataset": dataset},
        {name: read(c.p, c.orders).T[:, order] for name, read in READOUTS.items()},
        {
            name: read(edits, shown).T[:, order]
            for name, read in READOUTS.items()
            if len(edits) == len(c.p)
        },
        c.human[order],
        starts,
        c.cluster[order][starts],
        [tuple(row) for row in c.orders].index((1, 2, 3, 4, 5)),
    )


def placebo_probabilities(slug: str, dataset: str) -> FloatArray:
    """Probabilities of ten neutral edits: items × edits × places."""
    found = rb.recorded(slug, dataset)
    found = found[(found["design"] == "placebo") & (found["reference_score"] == "auto")]
    found = found.sort_values(["item_id", "ordering_index"])
    if (found["ordering"] != "1-2-3-4-5").any():
        raise ValueError(
            f"{slug} on {dataset}: a neutral edit is not in ascending order"
        )
    return (
        found[[f"probability_{k}" for k in range(1, 6)]]
        .to_numpy(float)
        .reshape(-1, 10, 5)
    )


def ways(of: Choice, readout: str) -> Iterator[tuple[str, FloatArray]]:
    """Rewards to train on, policies × candidates; the effect is a mean of policies."""
    reads = of.rewards[readout]
    yield "ascending order", reads[of.ascending, None]
    yield "one fixed order", reads
    yield "new order each step", reads.mean(axis=0, keepdims=True)
    if of.placebo:
        yield "one neutral edit", of.placebo[readout]
        yield (
            "new neutral edit each step",
            of.placebo[readout].mean(axis=0, keepdims=True),
        )


CONTRASTS = (
    ("new order each step", "one fixed order"),
    ("new neutral edit each step", "one neutral edit"),
)
BEYOND = "orders beyond neutral edits"


def interval(
    values: FloatArray, of: Choice, name: str, share: bool = False
) -> dict[str, float]:
    """A mean over prompts with its 95 % t interval over clusters."""
    return named_mean(name, values, of.cluster, (0.0, 1.0) if share else None, ENDS)


def policies(of: Choice) -> list[dict[str, Any]]:
    """True quality of trained policies, reward gained, and how often quality falls.

    Reward gained is under the reads that were trained on, and under the other orders or
    edits; `own_gain` is the first minus the second. `BEYOND` has the orders' effects
    minus the edits'.
    """
    rows = []
    start, best = of.mean(of.quality), np.maximum.reduceat(of.quality, of.starts)
    for readout, reads in of.rewards.items():
        siblings = {"ascending order": reads, "one fixed order": reads}
        siblings |= {"one neutral edit": of.placebo[readout]} if of.placebo else {}
        for beta in BETAS:
            gains, owns = {}, {}
            for name, reward in ways(of, readout):
                p = policy(reward, of.starts, beta)
                gain = under(p, of.quality, of.starts) - start
                gains[name] = gain.mean(axis=0)
                own = (under(p, reward, of.starts) - of.mean(reward)).mean(axis=0)
                row = of.names | {
                    "n_prompts": len(start),
                    "n_clusters": of.cluster.max() + 1,
                    "readout": readout,
                    "beta": beta,
                    "trained_on": name,
                    "start": start.mean(),
                    "best": best.mean(),
                    "quality": (start + gain).mean(),
                    "lowest": (start + gain).mean(axis=1).min(),
                    "highest": (start + gain).mean(axis=1).max(),
                    "kl": divergence(p, of.starts).mean(),
                    **interval(gains[name], of, "gain"),
                    "p": mean_t(gains[name], of.cluster).p,
                    **interval((gain < -TIE).mean(axis=0), of, "lowered", share=True),
                    **interval(own, of, "reward_gain"),
                }
                if name in siblings:
                    others = siblings[name]
                    other = (others.sum(axis=0) - reward) / (len(others) - 1)
                    unseen = (under(p, other, of.starts) - of.mean(other)).mean(axis=0)
                    owns[name] = own - unseen
                    row |= interval(unseen, of, "other_gain")
                    row |= interval(owns[name], of, "own_gain")
                rows.append(row)
            more = {(a, b): gains[a] - gains[b] for a, b in CONTRASTS if a in gains}
            for (a, b), gain in more.items():
                rows.append(
                    of.names
                    | {
                        "readout": readout,
                        "beta": beta,
                        "trained_on": f"{a} − {b}",
                        **interval(gain, of, "gain"),
                        "p": mean_t(gain, of.cluster).p,
                    }
                )
            if of.placebo:
                gain = more[CONTRASTS[0]] - more[CONTRASTS[1]]
                own = owns["one fixed order"] - owns["one neutral edit"]
                rows.append(
                    of.names
                    | {
                        "readout": readout,
                        "beta": beta,
                        "trained_on": BEYOND,
                        **interval(gain, of, "gain"),
                        "p": mean_t(gain, of.cluster).p,
                        **interval(own, of, "own_gain"),
                    }
                )
    return rows


def adjusted(table: pd.DataFrame) -> pd.DataFrame:
    """Add p adjusted over judges, sets and readouts (Benjamini–Hochberg)."""
    by = table.groupby(["trained_on", "beta"])["p"]
    return table.assign(p_adjusted=by.transform(_false_discovery))


def _false_discovery(p: pd.Series) -> FloatArray:
    found = np.full(len(p), np.nan)
    known = p.notna().to_numpy()
    found[known] = stats.false_discovery_control(p[known])
    return found


def beta_at(reward: FloatArray, starts: IntArray, kl: float) -> float:
    """Return the penalty whose policy is so far from chance; NaN if none is."""

    def off(log: float) -> float:
        return float(
            divergence(policy(reward, starts, np.exp(log)), starts).mean() - kl
        )

    ends = (-9.0, 6.0)
    return float(np.exp(optimize.brentq(off, *ends))) if off(ends[0]) > 0 else np.nan


def budgets(of: Choice) -> list[dict[str, Any]]:
    """True quality where all policies have moved equally far from chance."""
    rows = []
    start = of.mean(of.quality)
    for readout in of.rewards:
        for kl in BUDGETS:
            gains = {}
            for name, reward in ways(of, readout):
                each = [(r, beta_at(r, of.starts, kl)) for r in reward]
                row = of.names | {"readout": readout, "kl": kl, "trained_on": name}
                if any(np.isnan(beta) for _, beta in each):
                    rows.append(row | {"reason": "out of reach: too many ties"})
                    continue
                p = np.stack([policy(r, of.starts, beta) for r, beta in each])
                gains[name] = (under(p, of.quality, of.starts) - start).mean(axis=0)
                rows.append(row | interval(gains[name], of, "gain"))
            for a, b in CONTRASTS:
                if a in gains and b in gains:
                    rows.append(
                        of.names
                        | {
                            "readout": readout,
                            "kl": kl,
                            "trained_on": f"{a} − {b}",
                            **interval(gains[a] - gains[b], of, "gain"),
                        }
                    )
    return rows


# ---- where a new order is not the mean of ten
# --------------------------------------------------


def normalised(reward: FloatArray, starts: IntArray) -> FloatArray:
    """Rewards less their prompt's mean, over its standard deviation; 0 if equal."""
    size = sizes(starts, reward.shape[-1])
    centred = reward - np.repeat(
        np.add.reduceat(reward, starts, axis=-1) / size, size, axis=-1
    )
    spread = np.sqrt(np.add.reduceat(centred**2, starts, axis=-1) / size)
    spread = np.repeat(spread, size, axis=-1)
    return np.asarray(
        np.divide(centred, spread, out=np.zeros_like(centred), where=spread > TIE)
    )


def clipped(reward: FloatArray, starts: IntArray) -> FloatArray:
    """Normalised rewards, at most 1 from 0."""
    return np.clip(normalised(reward, starts), -1, 1)


def ranks(reward: FloatArray, starts: IntArray) -> FloatArray:
    """Ranks within a prompt, from 0 to 1; ties share theirs."""
    parts = np.split(np.round(reward, 9), starts[1:], axis=-1)
    ranked = [(stats.rankdata(x, axis=-1) - 1) / max(x.shape[-1] - 1, 1) for x in parts]
    return np.concatenate(ranked, axis=-1)


def passed(reward: FloatArray, starts: IntArray) -> FloatArray:
    """1 for a score of 3.5 or more, else 0."""
    return (reward >= 3.5).astype(float)


TRANSFORMS: dict[str, Callable[[FloatArray, IntArray], FloatArray]] = {
    "score as it is": lambda reward, starts: reward,
    "normalised within the prompt": normalised,
    "normalised and clipped": clipped,
    "rank within the prompt": ranks,
    "pass or fail": passed,
}


def transforms(of: Choice) -> list[dict[str, Any]]:
    """A new order each step (mean of reads' transforms) against ten (of the mean)."""
    rows = []
    start = of.mean(of.quality)
    for readout, reads in of.rewards.items():
        for name, change in TRANSFORMS.items():
            new = policy(change(reads, of.starts).mean(axis=0), of.starts, BETA)
            ten = policy(change(reads.mean(axis=0), of.starts), of.starts, BETA)
            gain = [under(p, of.quality, of.starts) - start for p in (new, ten)]
            apart = 0.5 * np.add.reduceat(np.abs(new - ten), of.starts)
            rows.append(
                of.names
                | {
                    "readout": readout,
                    "reward": name,
                    "new": gain[0].mean(),
                    "ten": gain[1].mean(),
                    **interval(gain[1] - gain[0], of, "difference"),
                    **interval(apart, of, "moved"),
                }
            )
    return rows


def best_of_n(of: Choice) -> list[dict[str, Any]]:
    """No learning: the best of n by one order, by a new one a prompt, by ten.

    A new order for each prompt is, in expectation, the mean over fixed orders.
    """
    rows = []
    start = of.mean(of.quality)
    for readout, reads in of.rewards.items():
        for n in (1, 2, 3, 4):
            one = best_of(reads, of.quality, of.starts, n) - start
            ten = best_of(reads.mean(axis=0), of.quality, of.starts, n) - start
            row = of.names | {
                "readout": readout,
                "n": n,
                "lowest": one.mean(axis=1).min(),
                "highest": one.mean(axis=1).max(),
            }
            row |= interval(one.mean(axis=0), of, "one") | interval(ten, of, "ten")
            rows.append(row | interval(ten - one.mean(axis=0), of, "difference"))
    return rows


# ---- speed
# --------------------------------------------------------------------------------------

DRAWS = (
    "ten orders each step",
    "one fixed order",
    "new order each step",
    "new order each answer",
)


def climb(
    rewards: FloatArray,
    drawn: str,
    rate: float,
    rng: np.random.Generator,
    steps: int,
    seeds: int,
    beta: float = BETA,
) -> FloatArray:
    """Train by sampling; return the share of the objective missing at each step.

    `rewards` are orders × prompts × candidates. At every step and prompt `ANSWERS`
    candidates are drawn from the policy, scored, and compared with their mean.
    """
    n_orders, n_prompts, n = rewards.shape
    target = rewards[0] if drawn == "one fixed order" else rewards.mean(axis=0)
    best = target.max(axis=-1)
    optimum = (
        best + beta * np.log(np.exp((target - best[:, None]) / beta).mean(axis=-1))
    ).sum()
    logits = np.zeros((seeds, n_prompts, n))
    prompt = np.arange(n_prompts)[None, :, None]
    missing = []
    for _ in range(steps):
        weight = np.exp(logits - logits.max(axis=-1, keepdims=True))
        p = weight / weight.sum(axis=-1, keepdims=True)
        penalty = beta * np.log(np.maximum(p * n, 1e-300))
        missing.append(optimum - (p * (target - penalty)).sum(axis=(-2, -1)).mean())
        draw = rng.random((seeds, n_prompts, ANSWERS, 1))
        answer = (draw > np.cumsum(p, axis=-1)[..., None, :-1]).sum(axis=-1)
        if drawn in ("new order each step", "new order each answer"):
            each = ANSWERS if drawn.endswith("answer") else 1
            order = rng.integers(n_orders, size=(seeds, n_prompts, each))
            reward = rewards[order, prompt, answer]
        else:
            reward = target[prompt, answer]
        reward = reward - np.take_along_axis(penalty, answer, axis=-1)
        advantage = (reward - reward.mean(axis=-1, keepdims=True)) / (ANSWERS - 1)
        chosen = answer[..., None] == np.arange(n)
        logits = logits + rate * (advantage[..., None] * chosen).sum(axis=-2)
    return np.array(missing) / missing[0]


def speed(of: Choice, steps: int = STEPS, seeds: int = SEEDS) -> pd.DataFrame:
    """Steps until 5 % of the objective is missing, at each way's best rate."""
    rows = []
    size = sizes(of.starts, len(of.quality))
    if len(set(size)) > 1:
        raise ValueError(
            "prompts differ in their number of candidates: give each the same number"
        )
    for readout, reads in of.rewards.items():
        rewards = reads.reshape(len(reads), len(size), size[0])
        for drawn in DRAWS:
            found = []
            for k, rate in enumerate(RATES):
                rng = np.random.default_rng([8, k])
                missing = climb(rewards, drawn, rate, rng, steps, seeds)
                there = missing <= CLOSE
                took = int(there.argmax()) if there.any() else np.inf
                found.append((took, rate, missing[-steps // 10 :].mean()))
            took, rate, left = min(found)
            calls = took * ANSWERS * (10 if drawn == DRAWS[0] else 1)
            rows.append(
                of.names
                | {
                    "readout": readout,
                    "drawn": drawn,
                    "rate": rate,
                    "steps": took,
                    "calls": calls,
                    "left_at_the_end": left,
                }
            )
    return pd.DataFrame(rows)


# ---- simulated judges
# --------------------------------------------------------------------------


def planted(prompts: int = PROMPTS) -> pd.DataFrame:
    """Judges whose order effect differs between texts, is common, both, or none.

    ``wavering`` is the effect of an order on a single text, in points; ``preference``
    how many times the published preference for places the judge has, which all texts
    share. What a hundred other orders would train to is in ``many``.
    """
    rows = []
    hundred = rb.shuffled(5, 100).orderings("many", 0)
    cases = [(w, b, 0.8) for w in (0.0, 0.3, 0.6, 0.9) for b in (0.0, 1.0, 4.0)]
    cases.append((0.6, 1.0, 0.0))
    for number, (wavering, preference, sight) in enumerate(cases):
        rng = np.random.default_rng([9, number])
        human = np.clip(rng.normal(3, 0.9, prompts * CANDIDATES), 1, 5)
        judge = strengthened(open_profile("first-biased"), preference)
        judge = replace(
            judge, order_noise=wavering, cluster_order_noise=0.0, human_weight=sight
        )
        reads, more = (
            ask(judge, human, orders, number) for orders in (BALANCED, hundred)
        )
        of = Choice(
            {"wavering": wavering, "preference": preference, "sees": sight > 0},
            {name: read(reads, BALANCED).T for name, read in READOUTS.items()},
            {},
            human,
            np.arange(0, len(human), CANDIDATES),
            np.arange(prompts),
            0,
        )
        table = pd.DataFrame([r for r in policies(of) if r["beta"] == BETA])
        for readout, part in table.groupby("readout", sort=False):
            row = part.set_index("trained_on")
            fixed, new = row.loc["one fixed order"], row.loc["new order each step"]
            both = row.loc["new order each step − one fixed order"]
            reward = READOUTS[str(readout)](more, hundred).mean(axis=1)
            many = under(policy(reward, of.starts, BETA), human, of.starts) - of.mean(
                human
            )
            rows.append(
                of.names
                | {
                    "readout": readout,
                    "start": fixed["start"],
                    "best": fixed["best"],
                    "fixed": fixed["gain"],
                    "lowest": fixed["lowest"] - fixed["start"],
                    "highest": fixed["highest"] - fixed["start"],
                    **{f"new{end}": new[f"gain{end}"] for end in ("", "_low", "_high")},
                    "many": many.mean(),
                    "lowered": new["lowered"],
                    **{
                        f"difference{end}": both[f"gain{end}"]
                        for end in ("", "_low", "_high")
                    },
                }
            )
    return pd.DataFrame(rows)


# ---- all together
# ------------------------------------------------------------------------------


def compute(of: list[Choice] | None = None) -> dict[str, pd.DataFrame]:
    """All tables of the chapter, by name of file."""
    of = [choice(*names) for names in CELLS] if of is None else of
    tables = {
        f"training_{name}": pd.DataFrame([row for one in of for row in function(one)])
        for name, function in (
            ("policies", policies),
            ("budgets", budgets),
            ("transforms", transforms),
            ("best_of_n", best_of_n),
        )
    }
    tables["training_policies"] = adjusted(tables["training_policies"])
    return tables | {"training_speed": speed(of[0]), "training_planted": planted()}


if __name__ == "__main__":
    write_tables(compute())
