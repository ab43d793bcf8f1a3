"""One read instead of ten? ``python -m studies.one_read`` recomputes.

Simulated judges, whose bias is known, and the recorded ones, whose balanced reads have
probabilities: what one read loses, how a preference for places is taken out of it, and
where that does harm. What is written to ``results/recordings/one_read_*.csv`` are
aggregates. ``python -m studies.one_read --null`` asks the 1.5B judge about empty texts
first.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

import rubricnb as rb
from rubricnb.core.estimates.intervals import (
    correlation,
    fisher_jackknife_t,
    jackknife_t,
    moments,
)
from rubricnb.core.estimates.reads import FloatArray, IntArray, by_cluster
from rubricnb.core.permutation import code, decode
from rubricnb.core.results import judges
from rubricnb.core.support.hashing import hash64
from rubricnb.engines.generative import Batch, answer
from rubricnb.engines.profiles import Profile, open_profile, profiles
from studies.intervals import bounded, jackknife_row, mean_row, ratio_row
from studies.recording import read_table, write_tables

JUDGES = {
    "qwen2.5-coder-1.5b-instruct-embedded": (
        "minibench",
        "hanna",
        "summeval",
        "mt-bench",
        "vicuna",
    ),
    "qwen2.5-coder-0.5b-instruct-vllm": ("hanna", "summeval", "mt-bench", "vicuna"),
    "gemma-3-270m-vllm": ("hanna", "summeval", "mt-bench", "vicuna"),
    "smollm2-135m-instruct-vllm": ("hanna", "summeval", "mt-bench", "vicuna"),
}
FLOOR = 1e-12
PILOT = 20  # items from which a preference is measured
DRAWS = 300
PILOTS = 40  # from which a correction is measured
STRENGTHS = (0.0, 1.0, 2.0, 4.0, 8.0)
ITEMS, SEEDS = 300, 20  # of a simulated study
BALANCED = rb.balanced(5).orderings()


@dataclass(frozen=True)
class Cell:
    """The balanced reads of a judge on a set: `p` is items × orders × places."""

    judge: str
    dataset: str
    p: FloatArray
    orders: IntArray
    human: FloatArray
    items: pd.DataFrame  # cluster_id, group_id, candidate

    @property
    def names(self) -> dict[str, Any]:
        """The columns that name it."""
        n_clusters = self.items["cluster_id"].nunique()
        return {
            "judge": self.judge,
            "dataset": self.dataset,
            "n_items": len(self.p),
            "n_clusters": n_clusters,
        }

    @property
    def cluster(self) -> IntArray:
        """A number for each item's cluster."""
        return np.asarray(pd.factorize(self.items["cluster_id"])[0])

    def stream(self, table: int) -> np.random.Generator:
        """Random numbers of its own for each table."""
        return np.random.default_rng([table, *f"{self.judge}/{self.dataset}".encode()])


def cell(slug: str, dataset: str) -> Cell:
    """Read a recorded judge: items with all ten balanced reads, one criterion each."""
    reads = rb.recorded(slug, dataset)
    reads = reads.query(
        "design == 'balanced' and template == 'rubric' and n_options == 5"
    )
    if reads["reference_score"].nunique() > 1:
        reads = reads[reads["reference_score"] == "none"]
    columns = [f"probability_{k}" for k in range(1, 6)]
    reads = reads.sort_values(["item_id", "ordering_index"])
    shape = (-1, 10, 5)
    p = reads[columns].to_numpy(np.float64, copy=True).reshape(shape)
    # of equally probable scores, the one that was drawn is the most probable
    taken = reads["position"].fillna(1).to_numpy(np.int64).reshape(-1, 10, 1) - 1
    drawn = np.nextafter(np.take_along_axis(p, taken, axis=2), 1)
    np.put_along_axis(p, taken, drawn, axis=2)
    shown = reads["ordering"].to_numpy().reshape(shape[:2])
    ids = reads["item_id"].astype(str).to_numpy().reshape(shape[:2])
    if (shown != shown[0]).any() or (ids != ids[:, :1]).any():
        raise ValueError(
            f"{slug} on {dataset}: not every item has the same ten balanced reads"
        )
    is_complete = ~np.isnan(p).any(axis=(1, 2))
    items = rb.load(dataset).set_index("item_id").loc[ids[is_complete, 0]].reset_index()
    item_keys = pd.DataFrame(items)[["cluster_id", "group_id", "candidate"]].astype(
        object
    )
    # where no one competes
    item_keys["group_id"] = item_keys["group_id"].fillna(item_keys["cluster_id"])
    orders = np.array([decode(ordering_code) for ordering_code in shown[0]])
    judge_name = judges().set_index("slug")["name"][slug]
    human = items["human"] if "human" in items else items["gold"]  # of a stronger judge
    return Cell(
        judge_name,
        dataset,
        p[is_complete],
        orders,
        human.to_numpy(np.float64),
        item_keys,
    )


def cells() -> list[Cell]:
    """All recorded judges with probabilities, on the sets where they were asked."""
    return [cell(slug, name) for slug, sets in JUDGES.items() for name in sets]


# ---- one read, and what can be made of it
# ------------------------------------------------------


def expected(p: FloatArray, orders: IntArray) -> FloatArray:
    """Mean score under the probabilities (…, reads, places)."""
    return np.asarray((p * orders).sum(axis=-1))


def greedy(p: FloatArray, orders: IntArray) -> FloatArray:
    """The most probable score."""
    best_place = p.argmax(axis=-1)
    return np.asarray(orders[np.arange(len(orders)), best_place], dtype=np.float64)


def logs(p: FloatArray) -> FloatArray:
    """Log probabilities, about their mean over places."""
    log_p = np.log(np.maximum(p, FLOOR))
    return np.asarray(log_p - log_p.mean(axis=-1, keepdims=True))


def softmax(log: FloatArray) -> FloatArray:
    """Probabilities from logs, over the last axis."""
    weight = np.exp(log - log.max(axis=-1, keepdims=True))
    return np.asarray(weight / weight.sum(axis=-1, keepdims=True))


def preference(p: FloatArray) -> FloatArray:
    """γ: mean log preference for each place, as `rubricnb.position_prior`."""
    return np.asarray(logs(p).reshape(-1, p.shape[-1]).mean(axis=0))


def without(p: FloatArray, gamma: FloatArray) -> FloatArray:
    """Probabilities divided by a preference, as `rubricnb.remove_prior`."""
    return softmax(logs(p) - gamma)


def by_score(p: FloatArray, orders: IntArray) -> FloatArray:
    """The same probabilities, from the lowest score to the highest."""
    return np.take_along_axis(p, np.argsort(orders, axis=-1)[None], axis=-1)


def geometric(p: FloatArray, orders: IntArray) -> FloatArray:
    """Expected score of the geometric mean over reads."""
    mean_p = softmax(logs(by_score(p, orders)).mean(axis=1))
    return np.asarray(mean_p @ np.arange(1, p.shape[-1] + 1))


def estimates(
    p: FloatArray, orders: IntArray, gamma: FloatArray
) -> dict[str, FloatArray]:
    """Every way to score an item, items × (reads or 1)."""
    expected_scores, greedy_scores, free_scores = (
        expected(p, orders),
        greedy(p, orders),
        expected(without(p, gamma), orders),
    )
    return {
        "A1": greedy_scores,
        "E1": expected_scores,
        "E1 free": free_scores,
        "A10": greedy_scores.mean(axis=1, keepdims=True),
        "E10": expected_scores.mean(axis=1, keepdims=True),
        "E10 free": free_scores.mean(axis=1, keepdims=True),
        "G10": geometric(p, orders)[:, None],
    }


# ---- recorded judges
# ---------------------------------------------------------------------------

CONTRASTS = (
    ("A10", "A1"),
    ("E1", "A1"),
    ("E10", "E1"),
    ("E1 free", "E1"),
    ("G10", "E10"),
    ("E10 free", "E10"),
)


def agreement(of: Cell) -> list[dict[str, Any]]:
    """Correlation with people by each way, over single reads, and differences."""
    r_all: dict[str, float] = {}
    r_left_out: dict[str, FloatArray] = {}
    for quantity, scores in estimates(of.p, of.orders, preference(of.p)).items():
        sums = np.stack(
            [by_cluster(moments(read, of.human), of.cluster) for read in scores.T],
            axis=1,
        )  # clusters, reads, moments
        total = sums.sum(axis=0)
        r_all[quantity] = float(correlation(total).mean())
        r_left_out[quantity] = correlation(total - sums).mean(axis=1)
    rows_by_quantity = {
        quantity: bounded("value", fisher_jackknife_t(r, r_left_out[quantity]))
        for quantity, r in r_all.items()
    }
    for way, base in CONTRASTS:
        difference = r_all[way] - r_all[base]
        rows_by_quantity[f"{way} − {base}"] = bounded(
            "value", jackknife_t(difference, r_left_out[way] - r_left_out[base])
        )
    return [
        of.names | {"quantity": quantity, **row}
        for quantity, row in rows_by_quantity.items()
    ]


def mirrored(orders: IntArray) -> list[tuple[int, ...]]:
    """Pairs of rows of which one is the other read backwards."""
    rows = [tuple(row) for row in orders]
    pairs = combinations(range(len(rows)), 2)
    return [(i, j) for i, j in pairs if rows[i][::-1] == rows[j]]


def removed(
    of: Cell, pilot: IntArray, null: FloatArray | None = None
) -> dict[str, FloatArray]:
    """Each score's log odds (items × orders × scores), corrected by a pilot.

    ``null``: log odds of each score for an empty text, in every order.
    """
    log_odds = logs(by_score(of.p, of.orders))
    place_of_score = np.argsort(of.orders, axis=1)
    pilot_mean = log_odds[pilot].mean(axis=0)
    shifts = {
        "position": preference(of.p[pilot])[place_of_score],
        "order": pilot_mean - pilot_mean.mean(axis=0),
        "batch": np.log(softmax(log_odds)[pilot].mean(axis=0)),
        "name": pilot_mean.mean(axis=0),
    }
    if null is not None:
        null_by_place = np.take_along_axis(null, of.orders - 1, axis=1)
        shifts |= {
            "empty": null,
            "empty, position": null_by_place.mean(axis=0)[place_of_score],
        }
    return {"none": log_odds} | {
        name: log_odds - shift for name, shift in shifts.items()
    }


def differ(levels: IntArray) -> FloatArray:
    """Share of the pairs of reads (items × reads) that have unequal levels."""
    n = levels.shape[1]
    # A level that m reads share makes m (m − 1) ordered pairs of equal reads.
    n_equal = sum((levels == level).sum(axis=1) ** 2 for level in range(1, 6)) - n
    return np.asarray(1 - n_equal / (n * (n - 1)))


def corrections(
    of: Cell,
    rng: np.random.Generator,
    null: FloatArray | None = None,
    draws: int = PILOTS,
) -> list[dict[str, Any]]:
    """What is left of an order effect after each correction, on other prompts.

    ``left``: variance of a text's expected score over orders (or over averages of
    orders), by that of single uncorrected reads. ``flips``: share of pairs of reads
    with unequal most probable scores (for averages: rounded), minus that of uncorrected
    reads. ``r``: change of the correlation with people. ``stretch``: variance between
    texts of the mean expected score, by that of uncorrected reads. Intervals are over
    clusters, with the pilots as they were drawn.
    """
    n, group_of_item = len(of.p), pd.factorize(of.items["group_id"])[0]
    options = np.arange(1, of.p.shape[-1] + 1)
    score: dict[str, FloatArray] = {}
    spread: dict[str, FloatArray] = {}
    flips: dict[str, FloatArray] = {}
    n_used = np.zeros((n, 1))
    for _ in range(draws):
        pilot = rng.choice(n, min(PILOT, n), replace=False)
        is_other = ~np.isin(group_of_item, group_of_item[pilot])
        n_used += is_other[:, None]
        for way, log_odds in removed(of, pilot, null).items():
            p = softmax(log_odds)
            scores, greedy_scores = p @ options, p.argmax(axis=-1) + 1
            score[way] = score.get(way, 0) + np.where(is_other[:, None], scores, 0)
            spread[way] = spread.get(way, 0) + np.where(
                is_other, scores.var(axis=1, ddof=1), 0
            )
            flips[way] = flips.get(way, 0) + np.where(
                is_other, differ(greedy_scores), 0
            )
    is_used = n_used[:, 0] > 0
    score = {way: total[is_used] / n_used[is_used] for way, total in score.items()}
    spread = {way: total[is_used] / n_used[is_used, 0] for way, total in spread.items()}
    flips = {way: total[is_used] / n_used[is_used, 0] for way, total in flips.items()}
    uncorrected = score["none"]
    is_rising = (np.roll(of.orders, -1, axis=1) > of.orders).sum(
        axis=1
    ) == of.orders.shape[1] - 1
    for way, averaged in (
        ("mirror", mirrored(of.orders)),
        ("cyclic", [is_rising, ~is_rising]),
    ):
        score[way] = np.stack(
            [
                uncorrected[:, [*reads] if way == "mirror" else reads].mean(axis=1)
                for reads in averaged
            ],
            axis=1,
        )
        spread[way] = score[way].var(axis=1, ddof=1)
        flips[way] = differ(np.floor(score[way] + 0.5).astype(np.int64))
    cluster, human = of.cluster[is_used], of.human[is_used]
    variance_by_cluster = {
        way: by_cluster(value, cluster) for way, value in spread.items()
    }
    r = {way: _mean_r(value, human, cluster) for way, value in score.items()}
    rows = []
    for way in score:
        if way == "none":
            continue
        intervals = {
            "left": ratio_row(
                variance_by_cluster[way], variance_by_cluster["none"], "left"
            ),
            "flips": mean_row(flips[way] - flips["none"], cluster, name="flips"),
            "r": jackknife_row(r[way] - r["none"], "r"),
        }
        row = {
            "way": way,
            "flips_before": flips["none"].mean(),
            "stretch": score[way].mean(axis=1).var() / uncorrected.mean(axis=1).var(),
        }
        for measure, interval in intervals.items():
            row |= {
                measure: interval[measure],
                f"{measure}_low": interval["low"],
                f"{measure}_high": interval["high"],
            }
        rows.append(of.names | row)
    return rows


def _mean_r(scores: FloatArray, human: FloatArray, cluster: IntArray) -> FloatArray:
    """Mean over reads of the correlation with people: all, without each cluster."""
    sums = np.stack(
        [by_cluster(moments(read, human), cluster) for read in scores.T], axis=1
    )
    total = sums.sum(axis=0)
    left_out = correlation(total - sums).mean(axis=1)
    return np.r_[correlation(total).mean(), left_out]


KINDS = ("position", "score × place", "direction", "each text's own")


def effect(kind: str, n: int, rng: np.random.Generator) -> FloatArray:
    """What ten orders add to each score's log odds, with a root mean square of 0.3."""
    orders = BALANCED
    place_of_score = np.argsort(orders, axis=1)
    if kind == "position":
        shift = rng.normal(size=5)[place_of_score]
    elif kind == "score × place":
        # places × scores; no place and no score is preferred
        by_place_and_score = rng.normal(size=(5, 5))
        by_place_and_score -= by_place_and_score.mean(axis=0)
        by_place_and_score -= by_place_and_score.mean(axis=1, keepdims=True)
        shift = np.take_along_axis(by_place_and_score, place_of_score, axis=0)
    elif kind == "direction":
        shift = np.where(np.arange(10) < 5, 1.0, -1.0)[:, None] * (np.arange(5) - 2.0)
    else:
        shift = rng.normal(size=(n, 10, 5))
    shift = shift - shift.mean(axis=-1, keepdims=True)
    return np.asarray(shift / np.sqrt((shift**2).mean()) * 0.3)


def planted_corrections(seeds: int = 10, n: int = 200) -> pd.DataFrame:
    """The same ways where the shape of the effect is known; means over seeds.

    The empty text has an effect of orders that no text has.
    """
    rows = []
    judge = replace(
        strengthened(open_profile("first-biased"), 0),
        sharpness=2.0,
        order_noise=0.0,
        cluster_order_noise=0.0,
        wording_noise=0.0,
    )
    for kind in KINDS:
        for seed in range(seeds):
            rng = np.random.default_rng([7, seed, KINDS.index(kind)])
            human = qualities(n, rng)
            log_odds = logs(by_score(ask(judge, human, BALANCED, seed), BALANCED))
            p = softmax(log_odds + effect(kind, n, rng))
            p_by_place = np.take_along_axis(
                p, np.broadcast_to(BALANCED - 1, p.shape), axis=2
            )
            items = pd.DataFrame({"cluster_id": range(n), "group_id": range(n)})
            cell = Cell("simulated", kind, p_by_place, BALANCED, human, items)
            null = effect("score × place", n, rng)
            rows += corrections(cell, rng, null, draws=3)
    measures = ["left", "stretch", "flips_before", "flips", "r"]
    means = pd.DataFrame(rows).groupby(["dataset", "way"], sort=False)[measures].mean()
    return means.reset_index().rename(columns={"dataset": "effect"})


def systems(of: Cell, rng: np.random.Generator) -> list[dict[str, Any]]:
    """Errors of systems' means, and of their differences, from one read an item."""
    group_of_item = pd.factorize(of.items["group_id"])[0]
    system = pd.factorize(of.items["candidate"])[0]
    if system.max() < 1 or system.min() < 0 or np.bincount(group_of_item).max() < 2:
        return []
    scores = expected(of.p, of.orders)
    n_texts = np.bincount(system)

    def error(read: IntArray) -> tuple[float, float]:
        deviation = scores[np.arange(len(scores)), read] - scores.mean(axis=1)
        mean_errors = np.bincount(system, deviation) / n_texts
        differences = mean_errors[:, None] - mean_errors
        pair_errors = differences[np.triu_indices(len(mean_errors), 1)]
        return float((mean_errors**2).mean()), float((pair_errors**2).mean())

    n_groups = group_of_item.max() + 1
    deals: dict[str, Callable[[], IntArray]] = {
        "one order for all": lambda: np.zeros(len(scores), int),
        "an order for each text": lambda: rng.integers(0, 10, len(scores)),
        "rotated over prompts": lambda: (rng.permutation(n_groups) % 10)[group_of_item],
        "rotated, five rows": lambda: (rng.permutation(n_groups) % 5)[group_of_item],
    }
    rows = []
    for name, deal in deals.items():
        squares = np.array(
            [error(deal()) for _ in range(1 if "for all" in name else DRAWS)]
        )
        rmse_mean, rmse_pair = np.sqrt(squares.mean(axis=0))
        rows.append(
            of.names
            | {
                "orders": name,
                "n_systems": len(n_texts),
                "mean": rmse_mean,
                "pair": rmse_pair,
            }
        )
    return rows


def shared(of: Cell) -> list[dict[str, Any]]:
    """How much of what an order does is alike for all texts, and in which shape.

    *All texts alike*: of the variance over orders of an item's expected score, the part
    that items of different clusters share (products of such pairs, so that chance adds
    nothing). *A position preference*: of the mean log odds in each order about their
    mean over orders, the part that one number for each position explains.
    """
    score = expected(of.p, of.orders)
    deviation = score - score.mean(axis=1, keepdims=True)
    log_odds = logs(by_score(of.p, of.orders))
    sums = by_cluster(
        np.concatenate([deviation, (deviation**2).mean(axis=1, keepdims=True)], 1),
        of.cluster,
    )
    n_items = by_cluster(np.ones(len(deviation)), of.cluster)
    odds_sums = by_cluster(
        (log_odds - log_odds.mean(axis=1, keepdims=True)).reshape(len(log_odds), -1),
        of.cluster,
    )
    place_of_score = np.argsort(of.orders, axis=1)  # of each score, in each order

    def alike(is_kept: NDArray[np.bool_]) -> float:
        total, n = sums[is_kept].sum(axis=0), n_items[is_kept]
        # Σ over pairs of different clusters of x·x' = (Σ x)² − Σ x²
        cross_products = total[:-1] ** 2 - (sums[is_kept, :-1] ** 2).sum(axis=0)
        return float(
            cross_products.mean()
            / (n.sum() ** 2 - (n**2).sum())
            / (total[-1] / n.sum())
        )

    def by_place(is_kept: NDArray[np.bool_]) -> float:
        effect_sums = odds_sums[is_kept].sum(axis=0).reshape(place_of_score.shape)
        fit = np.array(
            [
                effect_sums[place_of_score == k].mean()
                for k in range(place_of_score.shape[1])
            ]
        )[place_of_score]
        return float((fit**2).sum() / (effect_sums**2).sum())

    rows = []
    everything = np.ones(len(sums), bool)
    for name, statistic in (
        ("all texts alike", alike),
        ("a position preference", by_place),
    ):
        value = statistic(everything)
        left_out = np.array(
            [statistic(np.arange(len(sums)) != cluster) for cluster in range(len(sums))]
        )
        rows.append(
            {"quantity": name, **bounded("value", jackknife_t(value, left_out))}
        )
    return [of.names | row for row in rows]


# ---- planted truth
# -----------------------------------------------------------------------------


def ask(
    profile: Profile,
    human: FloatArray,
    orders: IntArray,
    seed: int,
    cluster: IntArray | None = None,
) -> FloatArray:
    """Ask a simulated judge about items of known quality: items × orders × places."""
    n_items, n_orders = len(human), len(orders)
    n_reads = n_items * n_orders
    text_hashes = hash64(f"item {i}" for i in range(n_items)).repeat(n_orders)
    zero = np.zeros(n_reads, np.uint64)
    nan, no_label = np.full(n_reads, np.nan), np.zeros(n_reads, np.int64)
    batch = Batch(
        table=tuple(code(orders)),
        ordering=np.tile(np.arange(n_orders), n_items),
        n_options=np.full(n_reads, orders.shape[1]),
        text=text_hashes,
        cluster=text_hashes if cluster is None else hash64(cluster).repeat(n_orders),
        criterion=zero,
        criterion_ordering=zero,
        place=nan,
        quality=human.repeat(n_orders),
        wording=zero,
        labels=no_label,
        reference=nan,
        temperature=np.zeros(n_reads, np.float32),
        replicate=zero + np.uint64(1),
    )
    probabilities = answer(profile, seed, batch, np.ones(n_reads, bool)).probabilities
    return np.asarray(probabilities, dtype=np.float64).reshape(n_items, n_orders, -1)


def strengthened(profile: Profile, factor: float) -> Profile:
    """The same judge with so many times its preference for places."""
    gamma = tuple(factor * g for g in profile.position_preference)
    return replace(profile, position_preference=gamma)


def qualities(n: int, rng: np.random.Generator) -> FloatArray:
    """What people say of simulated texts: around the middle of the scale."""
    return np.asarray(np.clip(rng.normal(3, 0.9, n), 1, 5))


def planted(seeds: int = SEEDS) -> pd.DataFrame:
    """Simulated judges with a known preference: correlation with truth, errors.

    Errors are against what the same judge says without a preference.
    """
    rows: list[dict[str, Any]] = []
    published = [p for name, p in profiles().items() if name.startswith("v2/")]
    cases = [
        (f"{strength:g} ×", strengthened(open_profile("first-biased"), strength))
        for strength in STRENGTHS
    ]
    cases += [("published", p) for p in published]
    for label, profile in cases:
        for seed in range(seeds if label != "published" else max(2, seeds // 10)):
            rng = np.random.default_rng([seed, len(rows)])
            human = qualities(ITEMS, rng)
            p = ask(profile, human, BALANCED, seed)
            unbiased = ask(strengthened(profile, 0), human, BALANCED, seed)
            target = expected(unbiased, BALANCED).mean(axis=1, keepdims=True)
            pilot_preference = preference(p[:PILOT])
            scores_by_way = estimates(p, BALANCED, pilot_preference)
            for way, scores in scores_by_way.items():
                errors = scores - target
                r = np.mean([np.corrcoef(read, human)[0, 1] for read in scores.T])
                rows.append(
                    {
                        "bias": label,
                        "profile": profile.name,
                        "quantity": way,
                        "r": r,
                        "rmse": np.sqrt((errors**2).mean()),
                        "spread": scores.std() / target.std(),
                        "mean_error": np.abs(errors.mean(axis=0)).mean(),
                    }
                )
    table = pd.DataFrame(rows)
    keys = ["bias", "quantity"]
    measures = ["r", "rmse", "spread", "mean_error"]
    means = table.groupby(keys, sort=False)[measures].mean()
    means["r_se"] = table.groupby(keys, sort=False)["r"].sem()
    return means.reset_index()


# ---- empty texts
# -------------------------------------------------------------------------------


def nulls(path: str) -> pd.DataFrame:
    """Ask the 1.5B judge about the text "N/A" in ten orders: log probabilities."""
    items = rb.load("minibench").query("criterion == 'helpfulness'").head(1).copy()
    items["response"] = "N/A"
    items["item_id"] = items["text_id"] = "null"
    judgments = rb.run(
        rb.plan(items, rb.balanced(5), readout="logprobs"),
        f"embedded:{path}",
        store=":memory:",
    )
    options = rb.option_probabilities(judgments)
    options["log"] = np.log(np.maximum(options["probability"], FLOOR))
    return options[["ordering_index", "position", "score", "log"]]


def null_log(table: pd.DataFrame) -> FloatArray:
    """Log odds of each score for the empty text, in every order."""
    log_odds = table.pivot(
        index="ordering_index", columns="score", values="log"
    ).to_numpy(np.float64)
    return np.asarray(log_odds - log_odds.mean(axis=1, keepdims=True))


def corrected(of: Cell) -> list[dict[str, Any]]:
    """`corrections` of a recorded judge, also by its answers about an empty text."""
    was_asked = (of.judge, of.dataset) == ("Qwen 1.5B", "minibench")
    null = null_log(read_table("one_read_null")) if was_asked else None
    return corrections(of, of.stream(0), null)


def compute(
    seeds: int = SEEDS, of: list[Cell] | None = None
) -> dict[str, pd.DataFrame]:
    """All tables of the chapter, by file; every cell has its own stream."""
    of = cells() if of is None else of
    return {
        "one_read_agreement": pd.DataFrame([row for c in of for row in agreement(c)]),
        "one_read_corrections": pd.DataFrame([row for c in of for row in corrected(c)]),
        "one_read_shapes": planted_corrections(),
        "one_read_systems": pd.DataFrame(
            [row for c in of for row in systems(c, c.stream(1))]
        ),
        "one_read_shared": pd.DataFrame([row for c in of for row in shared(c)]),
        "one_read_planted": planted(seeds),
    }


if __name__ == "__main__":
    if "--null" in sys.argv:
        path = sys.argv[sys.argv.index("--null") + 1]
        write_tables({"one_read_null": nulls(path)})
    write_tables(compute())
