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
from rubricnb.hashing import hash64
from rubricnb.judging.generative import Batch, answer
from rubricnb.judging.profiles import Profile, open_profile, profiles
from rubricnb.judging.results import judges
from rubricnb.permutation import code, decode
from rubricnb.statistics.intervals import (
    correlation,
    fisher_jackknife_t,
    jackknife_t,
    moments,
)
from rubricnb.statistics.reads import FloatArray, IntArray, by_cluster
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
        clusters = self.items["cluster_id"].nunique()
        return {
            "judge": self.judge,
            "dataset": self.dataset,
            "n_items": len(self.p),
            "n_clusters": clusters,
        }

    @property
    def cluster(self) -> IntArray:
        """A number for each item's cluster."""
        return np.asarray(pd.factorize(self.items["cluster_id"])[0])

    def stream(self, table: int) -> np.random.Generator:
        """Random numbers of its own for each table."""
        return np.random.default_rng([table, *f"{self.judge}/{self.dataset}".encode()])


def cell(slug: str, dataset: str) -> Cell:
    """Read one recorded judge: items with all ten balanced reads,
    one criterion a prompt.
    """
    found = rb.recorded(slug, dataset)
    found = found.query(
        "design == 'balanced' and template == 'rubric' and n_options == 5"
    )
    if found["reference_score"].nunique() > 1:
        found = found[found["reference_score"] == "none"]
    columns = [f"probability_{k}" for k in range(1, 6)]
    found = found.sort_values(["item_id", "ordering_index"])
    shape = (-1, 10, 5)
    p = found[columns].to_numpy(np.float64).reshape(shape)
    shown = found["ordering"].to_numpy().reshape(shape[:2])
    ids = found["item_id"].astype(str).to_numpy().reshape(shape[:2])
    if (shown != shown[0]).any() or (ids != ids[:, :1]).any():
        raise ValueError(
            f"{slug} on {dataset}: not every item has the same ten balanced reads"
        )
    whole = ~np.isnan(p).any(axis=(1, 2))
    items = rb.load(dataset).set_index("item_id").loc[ids[whole, 0]].reset_index()
    kept = pd.DataFrame(items)[["cluster_id", "group_id", "candidate"]].astype(object)
    # where no one competes
    kept["group_id"] = kept["group_id"].fillna(kept["cluster_id"])
    orders = np.array([decode(c) for c in shown[0]])
    name = judges().set_index("slug")["name"][slug]
    human = items["human"] if "human" in items else items["gold"]  # of a stronger judge
    return Cell(name, dataset, p[whole], orders, human.to_numpy(np.float64), kept)


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
    best = p.argmax(axis=-1)
    return np.asarray(orders[np.arange(len(orders)), best], dtype=np.float64)


def logs(p: FloatArray) -> FloatArray:
    """Log probabilities, about their mean over places."""
    log = np.log(np.maximum(p, FLOOR))
    return np.asarray(log - log.mean(axis=-1, keepdims=True))


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
    mean = softmax(logs(by_score(p, orders)).mean(axis=1))
    return np.asarray(mean @ np.arange(1, p.shape[-1] + 1))


def estimates(
    p: FloatArray, orders: IntArray, gamma: FloatArray
) -> dict[str, FloatArray]:
    """Every way to score an item, items × (reads or 1)."""
    e, a, free = (
        expected(p, orders),
        greedy(p, orders),
        expected(without(p, gamma), orders),
    )
    return {
        "A1": a,
        "E1": e,
        "E1 free": free,
        "A10": a.mean(axis=1, keepdims=True),
        "E10": e.mean(axis=1, keepdims=True),
        "E10 free": free.mean(axis=1, keepdims=True),
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
    """Correlation with people by every way,
    the mean over single reads, and differences.
    """
    whole: dict[str, float] = {}
    left: dict[str, FloatArray] = {}
    for name, value in estimates(of.p, of.orders, preference(of.p)).items():
        sums = np.stack(
            [by_cluster(moments(x, of.human), of.cluster) for x in value.T], axis=1
        )  # clusters, reads, moments
        total = sums.sum(axis=0)
        whole[name] = float(correlation(total).mean())
        left[name] = correlation(total - sums).mean(axis=1)
    found = {
        n: bounded("value", fisher_jackknife_t(r, left[n])) for n, r in whole.items()
    }
    for a, b in CONTRASTS:
        more = whole[a] - whole[b]
        found[f"{a} − {b}"] = bounded("value", jackknife_t(more, left[a] - left[b]))
    return [of.names | {"quantity": name, **row} for name, row in found.items()]


def mirrored(orders: IntArray) -> list[tuple[int, ...]]:
    """Pairs of rows of which one is the other read backwards."""
    rows = [tuple(row) for row in orders]
    pairs = combinations(range(len(rows)), 2)
    return [(i, j) for i, j in pairs if rows[i][::-1] == rows[j]]


def removed(
    of: Cell, pilot: IntArray, null: FloatArray | None = None
) -> dict[str, FloatArray]:
    """Log odds of each score (items × orders × scores),
    corrected by what a pilot shows.

    ``null``: log odds of each score for an empty text, in every order.
    """
    log = logs(by_score(of.p, of.orders))
    place = np.argsort(of.orders, axis=1)
    own = log[pilot].mean(axis=0)
    ways = {
        "position": preference(of.p[pilot])[place],
        "order": own - own.mean(axis=0),
        "batch": np.log(softmax(log)[pilot].mean(axis=0)),
        "name": own.mean(axis=0),
    }
    if null is not None:
        by_place = np.take_along_axis(null, of.orders - 1, axis=1)
        ways |= {"empty": null, "empty, position": by_place.mean(axis=0)[place]}
    return {"none": log} | {name: log - shift for name, shift in ways.items()}


def differ(levels: IntArray) -> FloatArray:
    """Share of the pairs of reads (items × reads) that have unequal levels."""
    n = levels.shape[1]
    same = sum((levels == k).sum(axis=1) ** 2 for k in range(1, 6)) - n
    return np.asarray(1 - same / (n * (n - 1)))


def corrections(
    of: Cell,
    rng: np.random.Generator,
    null: FloatArray | None = None,
    draws: int = PILOTS,
) -> list[dict[str, Any]]:
    """What is left of an order effect after each correction,
    for texts of other prompts.

    ``left``: variance of a text's expected score over orders (or over averages of
    orders), by that of single uncorrected reads. ``flips``: share of pairs of reads
    with unequal most probable scores (for averages: rounded), minus that of uncorrected
    reads. ``r``: change of the correlation with people. ``stretch``: variance between
    texts of the mean expected score, by that of uncorrected reads. Intervals are over
    clusters, with the pilots as they were drawn.
    """
    n, group = len(of.p), pd.factorize(of.items["group_id"])[0]
    options = np.arange(1, of.p.shape[-1] + 1)
    score: dict[str, FloatArray] = {}
    spread: dict[str, FloatArray] = {}
    flips: dict[str, FloatArray] = {}
    used = np.zeros((n, 1))
    for _ in range(draws):
        pilot = rng.choice(n, min(PILOT, n), replace=False)
        others = ~np.isin(group, group[pilot])
        used += others[:, None]
        for way, log in removed(of, pilot, null).items():
            p = softmax(log)
            each, levels = p @ options, p.argmax(axis=-1) + 1
            score[way] = score.get(way, 0) + np.where(others[:, None], each, 0)
            spread[way] = spread.get(way, 0) + np.where(
                others, each.var(axis=1, ddof=1), 0
            )
            flips[way] = flips.get(way, 0) + np.where(others, differ(levels), 0)
    kept = used[:, 0] > 0
    score = {way: total[kept] / used[kept] for way, total in score.items()}
    spread = {way: total[kept] / used[kept, 0] for way, total in spread.items()}
    flips = {way: total[kept] / used[kept, 0] for way, total in flips.items()}
    ten = score["none"]
    rising = (np.roll(of.orders, -1, axis=1) > of.orders).sum(
        axis=1
    ) == of.orders.shape[1] - 1
    for way, sets in (("mirror", mirrored(of.orders)), ("cyclic", [rising, ~rising])):
        score[way] = np.stack(
            [
                ten[:, [*chosen] if way == "mirror" else chosen].mean(axis=1)
                for chosen in sets
            ],
            axis=1,
        )
        spread[way] = score[way].var(axis=1, ddof=1)
        flips[way] = differ(np.floor(score[way] + 0.5).astype(np.int64))
    cluster, human = of.cluster[kept], of.human[kept]
    variance = {way: by_cluster(value, cluster) for way, value in spread.items()}
    r = {way: _mean_r(value, human, cluster) for way, value in score.items()}
    rows = []
    for way in score:
        if way == "none":
            continue
        found = {
            "left": ratio_row(variance[way], variance["none"], "left"),
            "flips": mean_row(flips[way] - flips["none"], cluster, name="flips"),
            "r": jackknife_row(r[way] - r["none"], "r"),
        }
        row = {
            "way": way,
            "flips_before": flips["none"].mean(),
            "stretch": score[way].mean(axis=1).var() / ten.mean(axis=1).var(),
        }
        for name, own in found.items():
            row |= {
                name: own[name],
                f"{name}_low": own["low"],
                f"{name}_high": own["high"],
            }
        rows.append(of.names | row)
    return rows


def _mean_r(value: FloatArray, human: FloatArray, cluster: IntArray) -> FloatArray:
    """Mean over reads of the correlation with people:
    of all, and without each cluster.
    """
    sums = np.stack([by_cluster(moments(x, human), cluster) for x in value.T], axis=1)
    total = sums.sum(axis=0)
    left = correlation(total - sums).mean(axis=1)
    return np.r_[correlation(total).mean(), left]


KINDS = ("position", "score × place", "direction", "each text's own")


def effect(kind: str, n: int, rng: np.random.Generator) -> FloatArray:
    """What the ten orders add to the log odds of each score,
    with a root mean square of 0.3.
    """
    orders = BALANCED
    place = np.argsort(orders, axis=1)
    if kind == "position":
        shift = rng.normal(size=5)[place]
    elif kind == "score × place":
        # places × scores; no place and no score is preferred
        both = rng.normal(size=(5, 5))
        both -= both.mean(axis=0)
        both -= both.mean(axis=1, keepdims=True)
        shift = np.take_along_axis(both, place, axis=0)
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
            log = logs(by_score(ask(judge, human, BALANCED, seed), BALANCED))
            p = softmax(log + effect(kind, n, rng))
            by_place = np.take_along_axis(
                p, np.broadcast_to(BALANCED - 1, p.shape), axis=2
            )
            items = pd.DataFrame({"cluster_id": range(n), "group_id": range(n)})
            cell = Cell("simulated", kind, by_place, BALANCED, human, items)
            null = effect("score × place", n, rng)
            rows += corrections(cell, rng, null, draws=3)
    kept = ["left", "stretch", "flips_before", "flips", "r"]
    mean = pd.DataFrame(rows).groupby(["dataset", "way"], sort=False)[kept].mean()
    return mean.reset_index().rename(columns={"dataset": "effect"})


def systems(of: Cell, rng: np.random.Generator) -> list[dict[str, Any]]:
    """Errors of systems' means, and of their differences, from one read an item."""
    groups = pd.factorize(of.items["group_id"])[0]
    system = pd.factorize(of.items["candidate"])[0]
    if system.max() < 1 or system.min() < 0 or np.bincount(groups).max() < 2:
        return []
    e = expected(of.p, of.orders)
    size = np.bincount(system)

    def error(read: IntArray) -> tuple[float, float]:
        off = e[np.arange(len(e)), read] - e.mean(axis=1)
        mean = np.bincount(system, off) / size
        apart = mean[:, None] - mean
        pairs = apart[np.triu_indices(len(mean), 1)]
        return float((mean**2).mean()), float((pairs**2).mean())

    n_groups = groups.max() + 1
    deals: dict[str, Callable[[], IntArray]] = {
        "one order for all": lambda: np.zeros(len(e), int),
        "an order for each text": lambda: rng.integers(0, 10, len(e)),
        "rotated over prompts": lambda: (rng.permutation(n_groups) % 10)[groups],
        "rotated, five rows": lambda: (rng.permutation(n_groups) % 5)[groups],
    }
    rows = []
    for name, deal in deals.items():
        found = np.array(
            [error(deal()) for _ in range(1 if "for all" in name else DRAWS)]
        )
        mean, pair = np.sqrt(found.mean(axis=0))
        rows.append(
            of.names
            | {"orders": name, "n_systems": len(size), "mean": mean, "pair": pair}
        )
    return rows


def shared(of: Cell) -> list[dict[str, Any]]:
    """How much of what an order does to scores it does to all texts alike,
    and in which shape.

    *All texts alike*: of the variance over orders of an item's expected score, the part
    that items of different clusters share (products of such pairs, so that chance adds
    nothing). *A position preference*: of the mean log odds in each order about their
    mean over orders, the part that one number for each position explains.
    """
    score = expected(of.p, of.orders)
    moved = score - score.mean(axis=1, keepdims=True)
    log = logs(by_score(of.p, of.orders))
    own = by_cluster(
        np.concatenate([moved, (moved**2).mean(axis=1, keepdims=True)], 1), of.cluster
    )
    size = by_cluster(np.ones(len(moved)), of.cluster)
    odds = by_cluster(
        (log - log.mean(axis=1, keepdims=True)).reshape(len(log), -1), of.cluster
    )
    place = np.argsort(of.orders, axis=1)  # of each score, in each order

    def alike(kept: NDArray[np.bool_]) -> float:
        total, n = own[kept].sum(axis=0), size[kept]
        between = total[:-1] ** 2 - (own[kept, :-1] ** 2).sum(axis=0)
        return float(
            between.mean() / (n.sum() ** 2 - (n**2).sum()) / (total[-1] / n.sum())
        )

    def by_place(kept: NDArray[np.bool_]) -> float:
        effect = odds[kept].sum(axis=0).reshape(place.shape)
        fit = np.array([effect[place == k].mean() for k in range(place.shape[1])])[
            place
        ]
        return float((fit**2).sum() / (effect**2).sum())

    rows = []
    everything = np.ones(len(own), bool)
    for name, statistic in (
        ("all texts alike", alike),
        ("a position preference", by_place),
    ):
        value = statistic(everything)
        left = np.array([statistic(np.arange(len(own)) != g) for g in range(len(own))])
        rows.append({"quantity": name, **bounded("value", jackknife_t(value, left))})
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
    n, reads = len(human), len(orders)
    rows = n * reads
    names = hash64(f"item {i}" for i in range(n)).repeat(reads)
    zero = np.zeros(rows, np.uint64)
    nan, none = np.full(rows, np.nan), np.zeros(rows, np.int64)
    batch = Batch(
        table=tuple(code(orders)),
        ordering=np.tile(np.arange(reads), n),
        n_options=np.full(rows, orders.shape[1]),
        text=names,
        cluster=names if cluster is None else hash64(cluster).repeat(reads),
        criterion=zero,
        criterion_ordering=zero,
        place=nan,
        quality=human.repeat(reads),
        wording=zero,
        labels=none,
        reference=nan,
        temperature=np.zeros(rows, np.float32),
        replicate=zero + np.uint64(1),
    )
    found = answer(profile, seed, batch, np.ones(rows, bool)).probabilities
    return np.asarray(found, dtype=np.float64).reshape(n, reads, -1)


def strengthened(profile: Profile, factor: float) -> Profile:
    """The same judge with so many times its preference for places."""
    gamma = tuple(factor * g for g in profile.position_preference)
    return replace(profile, position_preference=gamma)


def qualities(n: int, rng: np.random.Generator) -> FloatArray:
    """What people say of simulated texts: around the middle of the scale."""
    return np.asarray(np.clip(rng.normal(3, 0.9, n), 1, 5))


def planted(seeds: int = SEEDS) -> pd.DataFrame:
    """Simulated judges with a known preference: correlation with the truth,
    and errors in points.

    Errors are against what the same judge says without a preference.
    """
    rows: list[dict[str, Any]] = []
    published = [p for name, p in profiles().items() if name.startswith("v2/")]
    cases = [
        (f"{s:g} ×", strengthened(open_profile("first-biased"), s)) for s in STRENGTHS
    ]
    cases += [("published", p) for p in published]
    for label, profile in cases:
        for seed in range(seeds if label != "published" else max(2, seeds // 10)):
            rng = np.random.default_rng([seed, len(rows)])
            human = qualities(ITEMS, rng)
            p = ask(profile, human, BALANCED, seed)
            fair = ask(strengthened(profile, 0), human, BALANCED, seed)
            target = expected(fair, BALANCED).mean(axis=1, keepdims=True)
            pilot = preference(p[:PILOT])
            ways = estimates(p, BALANCED, pilot)
            for name, value in ways.items():
                off = value - target
                r = np.mean([np.corrcoef(v, human)[0, 1] for v in value.T])
                rows.append(
                    {
                        "bias": label,
                        "profile": profile.name,
                        "quantity": name,
                        "r": r,
                        "rmse": np.sqrt((off**2).mean()),
                        "spread": value.std() / target.std(),
                        "mean_error": np.abs(off.mean(axis=0)).mean(),
                    }
                )
    table = pd.DataFrame(rows)
    keys = ["bias", "quantity"]
    measures = ["r", "rmse", "spread", "mean_error"]
    mean = table.groupby(keys, sort=False)[measures].mean()
    mean["r_se"] = table.groupby(keys, sort=False)["r"].sem()
    return mean.reset_index()


# ---- empty texts
# -------------------------------------------------------------------------------


def nulls(path: str) -> pd.DataFrame:
    """Ask the 1.5B judge about the text "N/A" in ten orders:
    log probabilities by place.
    """
    items = rb.load("minibench").query("criterion == 'helpfulness'").head(1).copy()
    items["response"] = "N/A"
    items["item_id"] = items["text_id"] = "null"
    asked = rb.run(
        rb.plan(items, rb.balanced(5), readout="logprobs"),
        f"embedded:{path}",
        store=":memory:",
    )
    long = rb.option_probabilities(asked)
    long["log"] = np.log(np.maximum(long["probability"], FLOOR))
    return long[["ordering_index", "position", "score", "log"]]


def null_log(table: pd.DataFrame) -> FloatArray:
    """Log odds of each score for the empty text, in every order."""
    log = table.pivot(index="ordering_index", columns="score", values="log").to_numpy(
        np.float64
    )
    return np.asarray(log - log.mean(axis=1, keepdims=True))


def corrected(of: Cell) -> list[dict[str, Any]]:
    """`corrections` of a recorded judge;
    where it was asked about an empty text, by that, too.
    """
    asked = (of.judge, of.dataset) == ("Qwen 1.5B", "minibench")
    null = null_log(read_table("one_read_null")) if asked else None
    return corrections(of, of.stream(0), null)


def compute(
    seeds: int = SEEDS, of: list[Cell] | None = None
) -> dict[str, pd.DataFrame]:
    """All tables of the chapter, by name of file;
    every cell has a stream of its own.
    """
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
