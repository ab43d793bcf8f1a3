"""Do you need ten reads? ``python -m studies.need_ten`` recomputes.

How often the rule of `rubricnb.will_permuting_help` is wrong, what `rubricnb.decide`
costs and misses, why stopping early does not help a mean, which orderings to ask first,
and what skewed scores change. Simulated judges of the package, and the recorded ones of
`studies.one_read`. What is written to ``results/recordings/need_ten_*.csv`` are
aggregates.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd
from scipy import special

import rubricnb as rb
from rubricnb.core.estimates.intervals import named_mean
from rubricnb.core.permutation import Design
from rubricnb.core.support.types import FloatArray, IntArray
from rubricnb.engines.profiles import Profile, open_profile
from rubricnb.statistics.budget import permuting_row
from studies.intervals import ENDS, mean_row
from studies.one_read import (
    BALANCED,
    Cell,
    ask,
    cells,
    expected,
    geometric,
    greedy,
    strengthened,
)
from studies.recording import write_tables

TEXTS = 2_000  # of a simulated population
PILOT, PILOTS = 20, 200
NOISES = (0.05, 0.15, 0.25, 0.4, 0.6, 0.9, 1.3)
# Lead and most; where they are equal it is the majority of so many,
# asked until it is certain.
RULES = ((2, 9), (3, 9), (1, 1), (3, 3), (5, 5), (7, 7), (9, 9))
ORDERS = 40  # in which recorded votes are gone through
FIRST = open_profile("first-biased")


# ---- how scores are spread
# ---------------------------------------------------------------------


def qualities(
    shape: str, n: int, rng: np.random.Generator, cluster: IntArray | None = None
) -> FloatArray:
    """Ratings of n texts, 1 to 5, by where they heap up; clusters share half."""
    deviates = rng.normal(size=n)
    if cluster is not None:
        deviates = np.sqrt(0.5) * (
            deviates + rng.normal(size=cluster.max() + 1)[cluster]
        )
    match shape:
        case "normal":
            ratings = 3 + 0.9 * deviates
        case "ceiling":
            ratings = 5 - 1.1 * np.abs(deviates)
        case "floor":
            ratings = 1 + 1.1 * np.abs(deviates)
        case "narrow":
            ratings = 3 + 0.45 * deviates
        case "U":
            ratings = np.where(rng.random(n) < 0.5, 1.4, 4.6) + 0.4 * deviates
        case _:
            raise ValueError(f"no shape {shape!r}")
    return np.clip(ratings, 1, 5)


def clusters(kind: str, n: int, rng: np.random.Generator) -> IntArray:
    """A cluster for each text: one each, ten texts each, or sizes from 1 to 40."""
    if kind == "none":
        return np.arange(n)
    sizes = np.full(n, 10) if kind == "even" else rng.choice([1, 2, 4, 8, 40], n)
    return np.repeat(np.arange(n), sizes)[:n]


READOUTS = {"score": greedy, "expected score": expected}


# ---- will permuting help?
# ----------------------------------------------------------------------


def populations() -> Iterator[tuple[dict[str, Any], Profile, str, str]]:
    """Judges that waver more or less, on every spread of scores and with clusters."""
    for noise in NOISES:
        for strength in (0.0, 2.0):
            judge = replace(strengthened(FIRST, strength), order_noise=noise)
            for shape in ("normal", "ceiling", "floor", "narrow", "U"):
                yield {"noise": noise, "bias": strength}, judge, shape, "none"
            for kind in ("even", "unequal"):
                shared = replace(judge, cluster_order_noise=noise / 2)
                yield {"noise": noise, "bias": strength}, shared, "normal", kind


def drawn(cluster: IntArray, rng: np.random.Generator, whole: bool) -> IntArray:
    """A pilot of twenty texts: any, or those of whole clusters as far as they go."""
    if not whole:
        return rng.choice(len(cluster), PILOT, replace=False)
    cluster_order = rng.permutation(cluster.max() + 1)
    rank = np.empty(len(cluster_order), np.int64)
    rank[cluster_order] = np.arange(len(cluster_order))
    return np.argsort(rank[cluster], kind="stable")[:PILOT]


def pilots(n: int = TEXTS, times: int = PILOTS) -> pd.DataFrame:
    """What pilots of twenty texts say of judges whose true gain is known.

    The gain is r of the mean of ten orders with the ratings over the mean r of one, in
    the whole population.
    """
    rows = []
    for number, (names, judge, shape, kind) in enumerate(populations()):
        rng = np.random.default_rng([1, number])
        cluster = clusters(kind, n, rng)
        human = qualities(shape, n, rng, None if kind == "none" else cluster)
        p = ask(judge, human, BALANCED, number, cluster)
        for readout, read in READOUTS.items():
            scores = read(p, BALANCED)
            r_one = np.mean(
                [np.corrcoef(of_order, human)[0, 1] for of_order in scores.T]
            )
            gain = np.corrcoef(scores.mean(axis=1), human)[0, 1] / r_one
            for whole in (False,) if kind == "none" else (False, True):
                rows.append(
                    names
                    | {
                        "shape": shape,
                        "clusters": kind,
                        "readout": readout,
                        "pilot": "whole clusters" if whole else "any texts",
                        "gain": gain,
                    }
                    | said(scores, cluster, whole, times, rng)
                )
    return pd.DataFrame(rows)


def said(
    value: FloatArray,
    cluster: IntArray,
    whole: bool,
    times: int,
    rng: np.random.Generator,
) -> dict[str, float]:
    """How often pilots say what, and the median of what they predict."""
    drawn_pilots = (drawn(cluster, rng, whole) for _ in range(times))
    table = pd.DataFrame(
        permuting_row(value[pilot], cluster[pilot], 10) for pilot in drawn_pilots
    )
    return {
        "pilots": times,
        "pilot_gain": table["gain"].median(),
        "pilot_congeneric": table["gain_congeneric"].median(),
        **{
            verdict: (table["verdict"] == verdict).mean()
            for verdict in ("go", "unsure", "stop")
        },
    }


def recorded_pilots(of: list[Cell], times: int = PILOTS) -> pd.DataFrame:
    """The same with recorded judges: what pilots say, and what ten orders gained."""
    rows = []
    for cell in of:
        for readout, read in READOUTS.items():
            rng = cell.stream(2)
            scores = read(cell.p, cell.orders)
            # some order may give all texts one score
            with np.errstate(invalid="ignore"):
                correlations = [
                    np.corrcoef(of_order, cell.human)[0, 1]
                    for of_order in (*scores.T, scores.mean(axis=1))
                ]
            all_items = permuting_row(scores, cell.cluster, 10)
            for whole in (False, True):
                rows.append(
                    cell.names
                    | {
                        "readout": readout,
                        "r_one": np.mean(correlations[:-1]),
                        "r_ten": correlations[-1],
                        "predicted": all_items["gain"],
                        "congeneric": all_items["gain_congeneric"],
                        "phi": all_items["phi"],
                        "verdict": all_items["verdict"],
                        "pilot": "whole clusters" if whole else "any texts",
                    }
                    | said(scores, cell.cluster, whole, times, rng)
                )
    return pd.DataFrame(rows)


# ---- deciding
# --------------------------------------------------------------------------------------


def chances(p: float, lead: int, most: int) -> tuple[float, float, float]:
    """P(yes), P(undecided) and mean reads, where each read says yes with chance p."""
    chance_of_lead, yes, tie, reads = {0: 1.0}, 0.0, 0.0, 0.0
    for calls in range(1, most + 1):
        reads += sum(chance_of_lead.values())
        next_chance: dict[int, float] = {}
        for ahead, chance in chance_of_lead.items():
            next_chance[ahead + 1] = next_chance.get(ahead + 1, 0.0) + chance * p
            next_chance[ahead - 1] = next_chance.get(ahead - 1, 0.0) + chance * (1 - p)
        n_left = most - calls
        ended = {
            a for a in next_chance if abs(a) >= lead or abs(a) > n_left or not n_left
        }
        yes += sum(next_chance[a] for a in ended if a > 0)
        tie += next_chance.get(0, 0.0) if 0 in ended else 0.0
        chance_of_lead = {
            a: chance for a, chance in next_chance.items() if a not in ended
        }
    return yes, tie, reads


def exact() -> pd.DataFrame:
    """The chances of every rule, for reads that say yes more or less often."""
    return pd.DataFrame(
        [
            {
                "p": p,
                "lead": lead,
                "most": most,
                **dict(
                    zip(
                        ("yes", "undecided", "reads"),
                        chances(p, lead, most),
                        strict=True,
                    )
                ),
            }
            for p in (0.5, 0.55, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95, 0.99)
            for lead, most in RULES
        ]
    )


def by_votes(votes: IntArray, lead: int, most: int) -> tuple[IntArray, IntArray]:
    """Outcome (1, 0 for a tie, −1) and calls, for rows of votes in their order."""
    ahead = np.cumsum(votes[:, :most], axis=1)
    n_left = most - np.arange(1, most + 1)
    is_over = (np.abs(ahead) >= lead) | (np.abs(ahead) > n_left) | (n_left == 0)
    calls = is_over.argmax(axis=1)
    return np.sign(ahead[np.arange(len(votes)), calls]), calls + 1


def recorded_decisions(of: list[Cell]) -> pd.DataFrame:
    """The recorded ten reads as votes, gone through in many orders.

    Wrong is what the majority of all ten contradicts; where the ten are split evenly, a
    decision is half wrong. The cut is the score that parts the ten-read means most
    evenly.
    """
    rows = []
    for cell in of:
        rng = cell.stream(3)
        scores = greedy(cell.p, cell.orders)
        mean = scores.mean(axis=1)
        cut = min((2, 3, 4, 5), key=lambda k: abs((mean >= k - 0.5).mean() - 0.5))
        votes = np.where(scores >= cut, 1, -1)
        truth = np.sign(votes.sum(axis=1))
        margin = np.abs(votes.sum(axis=1))
        for lead, most in RULES:
            wrong, calls = np.zeros(len(votes)), np.zeros(len(votes))
            for _ in range(ORDERS):
                decision, n_calls = by_votes(rng.permuted(votes, axis=1), lead, most)
                wrong += np.abs(decision - truth) / 2 / ORDERS
                calls += n_calls / ORDERS
            rows.append(
                cell.names
                | {
                    "cut": cut,
                    "ties": (margin == 0).mean(),
                    "unanimous": (margin == 10).mean(),
                    "lead": lead,
                    "most": most,
                    **named_mean("wrong", wrong, cell.cluster, (0.0, 1.0), ENDS),
                    **named_mean("reads", calls, cell.cluster, parts=ENDS),
                }
            )
    return pd.DataFrame(rows)


def simulated_decisions(n: int = TEXTS // 2) -> pd.DataFrame:
    """The same with simulated judges, held against a hundred other orders."""
    rows = []
    other_orders = rb.shuffled(5, 100).orderings("many", 0)
    for shape in ("normal", "ceiling", "floor", "narrow", "U"):
        for noise in (0.25, 0.6):
            judge = replace(FIRST, order_noise=noise)
            rng = np.random.default_rng([6, *shape.encode(), int(100 * noise)])
            human = qualities(shape, n, rng)
            scores = greedy(ask(judge, human, BALANCED, 0), BALANCED)
            other_scores = greedy(ask(judge, human, other_orders, 0), other_orders)
            for cut in (3, 4):
                share = (other_scores >= cut).mean(axis=1)
                is_decided = share != 0.5
                truth = np.where(share[is_decided] > 0.5, 1, -1)
                votes = rng.permuted(np.where(scores >= cut, 1, -1)[is_decided], axis=1)
                for lead, most in ((2, 9), (1, 1), (5, 5), (9, 9)):
                    decision, calls = by_votes(votes, lead, most)
                    rows.append(
                        {
                            "shape": shape,
                            "noise": noise,
                            "cut": cut,
                            "yes": (share >= 0.5).mean(),
                            "lead": lead,
                            "most": most,
                            "wrong": (decision != truth).mean(),
                            "reads": calls.mean(),
                        }
                    )
    return pd.DataFrame(rows)


# ---- stopping early for a mean
# -----------------------------------------------------------------


def stopped(value: FloatArray, within: float) -> tuple[FloatArray, IntArray]:
    """Means of the first reads, until their standard error is within so many points."""
    k = np.arange(1, value.shape[1] + 1)
    mean = np.cumsum(value, axis=1) / k
    # s² = (Σ x² / k − (Σ x / k)²) · k/(k − 1), for the first k reads
    mean_square = np.cumsum(value**2, axis=1) / k
    variance = np.maximum(mean_square - mean**2, 0) * k / np.maximum(k - 1, 1)
    is_over = (np.sqrt(variance / k) <= within) & (k >= 2)
    is_over[:, -1] = True
    last_read = is_over.argmax(axis=1)
    return mean[np.arange(len(value)), last_read], last_read + 1


def sequential(n: int = TEXTS) -> pd.DataFrame:
    """Reads until their mean's standard error is small, against a fixed number.

    The error is against the mean of a hundred other orders of the same judge.
    ``fixed_rmse`` is that of the fixed number of reads with the same mean cost, between
    whole numbers on a line of 1/K.
    """
    rows = []
    other_orders = rb.shuffled(5, 100).orderings("many", 0)
    for noise in (0.25, 0.6, 0.9):
        judge = replace(FIRST, order_noise=noise)
        rng = np.random.default_rng([4, int(100 * noise)])
        human = qualities("normal", n, rng)
        p, reference = (
            ask(judge, human, BALANCED, 0),
            ask(judge, human, other_orders, 0),
        )
        for readout, read in READOUTS.items():
            scores = rng.permuted(read(p, BALANCED), axis=1)
            target = read(reference, other_orders).mean(axis=1)
            k = np.arange(1, 11)
            means = np.cumsum(scores, axis=1) / k
            mse = ((means - target[:, None]) ** 2).mean(axis=0)
            for within in (0.15, 0.2, 0.3, 0.4, 0.5):
                stopped_means, calls = stopped(scores, within)
                fixed_mse = np.interp(1 / calls.mean(), (1 / k)[::-1], mse[::-1])
                fixed_read = round(calls.mean()) - 1
                rows.append(
                    {
                        "noise": noise,
                        "readout": readout,
                        "within": within,
                        "reads": calls.mean(),
                        "after_two": (calls == 2).mean(),
                        "rmse": np.sqrt(((stopped_means - target) ** 2).mean()),
                        "fixed_rmse": np.sqrt(fixed_mse),
                        "spread": stopped_means.std() / target.std(),
                        "fixed_spread": means[:, fixed_read].std() / target.std(),
                    }
                )
    return pd.DataFrame(rows)


# ---- which orderings first
# ---------------------------------------------------------------------


def designs() -> dict[str, IntArray]:
    """Which orderings one may ask."""
    first_designs: dict[str, Design] = {
        f"first {k}": Design("first", 5, k) for k in (1, 2, 4, 5, 10)
    }
    orderings = {name: design.orderings() for name, design in first_designs.items()}
    orderings |= {f"rotations {k}": BALANCED[:k] for k in (2, 4, 5)}
    return orderings | {"balanced 10": BALANCED}


def systematic(orders: IntArray, judge: Profile, readout: str) -> tuple[float, float]:
    """What noise does not explain: RMSE over texts, and mean, against no bias.

    The noise of an order is integrated over (Gauss–Hermite), and the quality that the
    judge sees is normal, so nothing here is drawn.
    """
    node, weight = special.roots_hermitenorm(41)
    weight = weight / weight.sum()
    seen = 3 + 0.9 * node  # what the judge sees, over texts
    gamma = np.interp(
        np.arange(5) / 4,
        np.linspace(0, 1, len(judge.position_preference)),
        judge.position_preference,
    )
    n_rising = (np.roll(orders, -1, axis=1) > orders).sum(axis=1)
    turned = judge.direction / 2 * (2 * n_rising - 5) / 3

    def mean(gamma: FloatArray, turned: FloatArray) -> FloatArray:
        latent = seen[:, None, None] + turned[None, :, None] + judge.order_noise * node
        logit = (
            -judge.sharpness / 2 * (orders[None, :, None, :] - latent[..., None]) ** 2
            + gamma
        )
        if readout == "score":
            best = logit.argmax(axis=-1)
            scores = orders[np.arange(len(orders))[None, :, None], best].astype(float)
        else:
            scores = (special.softmax(logit, axis=-1) * orders[None, :, None, :]).sum(
                axis=-1
            )
        return np.asarray((scores @ weight).mean(axis=1))

    bias = mean(gamma, turned) - mean(0 * gamma, 0 * turned)
    return float(np.sqrt(weight @ bias**2)), float(weight @ bias)


def first_reads() -> pd.DataFrame:
    """What is left of a preference and of a direction's effect, by the orderings."""
    rows = []
    for bias, strength, direction in (
        ("preference", 1.0, 0.0),
        ("strong preference", 4.0, 0.0),
        ("direction", 0.0, 1.0),
        ("preference and direction", 1.0, 1.0),
    ):
        judge = replace(strengthened(FIRST, strength), direction=direction)
        for name, orders in designs().items():
            for readout in READOUTS:
                rmse, mean = systematic(orders, judge, readout)
                rows.append(
                    {
                        "bias": bias,
                        "orders": name,
                        "k": len(orders),
                        "readout": readout,
                        "rmse": rmse,
                        "mean_error": mean,
                    }
                )
    return pd.DataFrame(rows)


def directions(of: list[Cell]) -> pd.DataFrame:
    """Mean score in ascending minus descending rotations of recorded judges."""
    rows = []
    for cell in of:
        for readout, read in READOUTS.items():
            scores = read(cell.p, cell.orders)
            rising = (np.roll(cell.orders, -1, axis=1) > cell.orders).sum(axis=1) == 4
            effect = scores[:, rising].mean(axis=1) - scores[:, ~rising].mean(axis=1)
            row = mean_row(effect, cell.cluster, name="effect")
            rows.append(cell.names | {"readout": readout, **row})
    return pd.DataFrame(rows)


def opposite(orders: IntArray) -> list[tuple[int, int]]:
    """Pairs of rows of which one is the other read backwards.

    >>> opposite(np.array([[1, 2, 3], [2, 3, 1], [3, 2, 1], [1, 3, 2]]))
    [(0, 2), (1, 3)]
    """
    rows = [tuple(row) for row in orders]
    return [
        (i, j) for i, j in combinations(range(len(rows)), 2) if rows[i][::-1] == rows[j]
    ]


def rotated(orders: IntArray, by: int) -> list[tuple[int, int]]:
    """Pairs of rows of which one is the other, turned by so many places to the left.

    >>> rotated(np.array([[1, 2, 3], [2, 3, 1], [3, 1, 2], [3, 2, 1]]), 1)
    [(2, 0), (0, 1), (1, 2)]
    """
    rows = [tuple(row) for row in orders]
    index_of = {tuple(np.roll(row, -by).tolist()): i for i, row in enumerate(rows)}
    return [(index_of[row], j) for j, row in enumerate(rows) if row in index_of]


def pair_kinds(orders: IntArray) -> dict[str, list[tuple[int, ...]]]:
    """Which reads are averaged, found by their orders and not their number."""
    ascending = (orders == np.arange(1, orders.shape[1] + 1)).all(axis=1).argmax()
    mirror_pairs, two_apart = opposite(orders), rotated(orders, 2)
    return {
        "one": [(read,) for read in range(len(orders))],
        "any two": [*combinations(range(len(orders)), 2)],
        "opposite": [*mirror_pairs],
        "rotations": [*rotated(orders, 1)],
        "rotations, two apart": [*two_apart],
        "ascending, descending": [pair for pair in mirror_pairs if ascending in pair],
        "ascending, turned by two": [pair for pair in two_apart if ascending in pair],
    }


THAN = {
    "opposite": "rotations",
    "rotations, two apart": "opposite",
    "ascending, descending": "ascending, turned by two",
}  # which reads a kind is compared with; every other one: any two


def pairs(of: list[Cell]) -> pd.DataFrame:
    """Two recorded reads against the other eight, and one read against the other nine.

    ``less`` is the mean square error of the reads named by ``than`` minus that of these
    reads, with its interval ``low, high`` over clusters: above 0 where these come
    nearer.
    """
    rows = []
    for cell in of:
        scores = expected(cell.p, cell.orders)
        squares: dict[str, FloatArray] = {}
        bias: dict[str, FloatArray] = {}
        for kind, averaged in pair_kinds(cell.orders).items():
            errors = np.stack(
                [
                    scores[:, list(reads)].mean(axis=1)
                    - np.delete(scores, list(reads), axis=1).mean(axis=1)
                    for reads in averaged
                ]
            )
            squares[kind], bias[kind] = (errors**2).mean(axis=0), errors.mean(axis=1)
        for kind, square in squares.items():
            for than in dict.fromkeys((THAN.get(kind, "any two"), "any two")):
                difference = mean_row(squares[than] - square, cell.cluster, name="less")
                rmse, mean = np.sqrt(square.mean()), np.sqrt((bias[kind] ** 2).mean())
                rows.append(
                    cell.names
                    | {"reads": kind, "rmse": rmse, "mean_error": mean, "than": than}
                    | difference
                )
    return pd.DataFrame(rows)


# ---- skewed scores
# -----------------------------------------------------------------------------


def skewed(seeds: int = 8, n: int = 500) -> pd.DataFrame:
    """What permuting gains, and where the mean of ten goes, by ratings' shape."""
    rows = []
    for shape in ("normal", "ceiling", "floor", "narrow", "U"):
        for strength in (0.0, 2.0, 8.0):
            for seed in range(seeds):
                rng = np.random.default_rng([5, seed])
                human = qualities(shape, n, rng)
                judge = strengthened(FIRST, strength)
                p, unbiased = (
                    ask(profile, human, BALANCED, seed)
                    for profile in (judge, strengthened(FIRST, 0))
                )
                greedy_scores = greedy(p, BALANCED)
                expected_scores = expected(p, BALANCED)
                target = expected(unbiased, BALANCED).mean(axis=1)
                single_r = [np.corrcoef(read, human)[0, 1] for read in greedy_scores.T]
                rows.append(
                    {
                        "shape": shape,
                        "bias": strength,
                        "r_one": np.mean(single_r),
                        "r_ten": np.corrcoef(greedy_scores.mean(axis=1), human)[0, 1],
                        "r_lowest": min(single_r),
                        "r_highest": max(single_r),
                        "pull": expected_scores.mean() - target.mean(),
                        "pull_geometric": geometric(p, BALANCED).mean() - target.mean(),
                    }
                )
    table = pd.DataFrame(rows)
    table["gain"] = table["r_ten"] - table["r_one"]
    keys = ["shape", "bias"]
    means = table.groupby(keys, sort=False).mean()
    return means.assign(
        gain_se=table.groupby(keys, sort=False)["gain"].sem()
    ).reset_index()


def compute(
    of: list[Cell] | None = None, times: int = PILOTS
) -> dict[str, pd.DataFrame]:
    """All tables of the chapter, by name of file."""
    of = cells() if of is None else of
    return {
        "need_ten_pilots": pilots(times=times),
        "need_ten_recorded": recorded_pilots(of, times),
        "need_ten_exact": exact(),
        "need_ten_votes": recorded_decisions(of),
        "need_ten_decisions": simulated_decisions(),
        "need_ten_sequential": sequential(),
        "need_ten_first": first_reads(),
        "need_ten_directions": directions(of),
        "need_ten_pairs": pairs(of),
        "need_ten_skewed": skewed(),
    }


if __name__ == "__main__":
    write_tables(compute())
