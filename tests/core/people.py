"""Judgments beside what people say: planted agreement,
labels, and candidates that compete.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
from planted import freedom, make_judgments
from planted import plausible as plausible
from scipy import stats

from rubricnb.core.permutation import balanced, fixed, placebo, shuffled


def judged(score, cluster=None, candidate=None, **columns):
    """Judgments with one read an item."""
    names = [f"t{i:05d}" for i in range(len(score))]
    frame = {
        "item_id": names,
        "cluster_id": names if cluster is None else cluster,
        "judge": "j",
        "design": "fixed",
        "ordering_index": 1,
        "ordering": "1-2-3-4-5",
        "score": score,
        **columns,
    }
    return pd.DataFrame(
        frame if candidate is None else frame | {"candidate": candidate}
    )


def labelled(judgments, human, chosen):
    """The ratings of the chosen rows."""
    names = [name for name in ("item_id", "criterion") if name in judgments]
    return judgments[names].assign(human=np.asarray(human, dtype=float)).iloc[chosen]


def people(judgments, human):
    """The ratings of all rows, single ones if these are tuples."""
    column = "human" if np.ndim(human[0]) == 0 else "human_ratings"
    return pd.DataFrame({"item_id": judgments["item_id"], column: list(human)})


def rated(n_clusters=15, per_cluster=4, seed=0, **planted):
    """Judgments of balanced(5), and items rated from the same quality."""
    rng = np.random.default_rng(seed)
    quality = rng.uniform(1, 5, n_clusters * per_cluster)
    judgments = make_judgments(
        n_clusters, per_cluster, quality=quality, seed=seed, **planted
    )
    names = judgments["item_id"].cat.categories
    human = np.round(2 * (quality + rng.normal(0, 1, len(quality)))) / 2
    return judgments, pd.DataFrame({"item_id": names, "human": human})


def two(n_clusters=15, per_cluster=4, seed=0, greedy=True, **planted):
    """Balanced and fixed judgments of the same items, and their ratings."""
    quality = np.random.default_rng(seed).uniform(1, 5, n_clusters * per_cluster)
    human = (
        np.round(
            2 * (quality + np.random.default_rng(seed + 1).normal(0, 1, len(quality)))
        )
        / 2
    )
    planted |= {"quality": quality, "greedy": greedy}
    parts = [
        make_judgments(n_clusters, per_cluster, design=design, seed=s, **planted)
        for design, s in ((balanced(5), seed), (fixed(5, 10), seed + 1000))
    ]
    names = parts[0]["item_id"].cat.categories
    return pd.concat(parts, ignore_index=True), pd.DataFrame(
        {"item_id": names, "human": human}
    )


def wide(judgments, items):
    """Frame of item, score, human, cluster, criterion:
    the oracle's way to the same numbers.
    """
    means = judgments.groupby(["item_id", "cluster_id", "criterion"], observed=True)[
        "score"
    ]
    return (
        means.mean()
        .astype(float)
        .reset_index()
        .merge(items[["item_id", "human"]], on="item_id")
    )


def pearson(table):
    return stats.pearsonr(table["score"], table["human"]).statistic


def spearman(table):
    return stats.spearmanr(table["score"], table["human"]).statistic


def macro(statistic):
    """Its mean over criteria."""
    return lambda table: np.mean(
        [statistic(part) for _, part in table.groupby("criterion")]
    )


def jackknifed(statistic, *tables, scale=lambda r: r, back=lambda z: z):
    """A statistic of a table, or of one minus that of another;
    interval and p, by a loop.
    """

    def of(kept):
        found = [statistic(table[kept(table["cluster_id"])]) for table in tables]
        return found[0] - sum(found[1:])

    estimate = of(lambda cluster: cluster.notna())
    names = tables[0]["cluster_id"].unique()
    left = scale(
        np.array([of(lambda cluster, name=name: cluster != name) for name in names])
    )
    z, n, df = scale(estimate), len(names), freedom(left)
    se = np.sqrt((n - 1) / n * ((left - left.mean()) ** 2).sum())
    half = stats.t.ppf(0.975, df) * se
    return estimate, back(z - half), back(z + half), 2 * stats.t.sf(abs(z / se), df)


def alike(copies, score, human):
    """So many clusters, each a copy of the same texts."""
    n = len(score)
    judgments = judged(np.tile(score, copies), np.repeat(np.arange(copies), n))
    return judgments, people(judgments, np.tile(human, copies) * 1.0)


def competing(design, n_prompts=40, candidates=4, seed=0, **planted):
    """Candidates a, b, … of each prompt; a prompt is a cluster."""
    quality = np.random.default_rng(0).normal(3, 0.7, n_prompts * candidates).clip(1, 5)
    judgments = make_judgments(
        n_prompts, candidates, design=design, quality=quality, seed=seed, **planted
    )
    number = judgments["item_id"].cat.codes.to_numpy()
    return judgments.assign(
        group_id=judgments["cluster_id"].astype(str),
        candidate=pd.Categorical(np.array(list("abcdefgh"))[number % candidates]),
    )


def both(**planted):
    """Candidates under balanced and greedy fixed orderings."""
    greedy = competing(fixed(5, 10), seed=2, greedy=True, **planted)
    return pd.concat(
        [competing(balanced(5), seed=1, **planted), greedy], ignore_index=True
    )


def all_designs(**planted):
    """Candidates under the designs of the order effect and of its controls."""
    designs = [balanced(5), placebo(5, 10), shuffled(5, 10), fixed(5, 10)]
    parts = [competing(d, seed=i, **planted) for i, d in enumerate(designs)]
    return pd.concat(parts, ignore_index=True)


def world(rng, n=400, r=0.6):
    """Ratings and a biased judge with a correlation of about r."""
    truth = rng.normal(size=n)
    human = np.round(3 + truth + 0.3 * rng.normal(size=n))
    return human, np.round(4 + r * truth + np.sqrt(1 - r**2) * rng.normal(size=n))


def systems(seed, spread=0.4, s=12, prompts=40):
    """Systems whose quality the judge ranks well, and their items."""
    rng = np.random.default_rng(seed)
    quality = 3 + spread * rng.normal(size=s)
    system, prompt = np.tile(np.arange(s), prompts), np.repeat(np.arange(prompts), s)
    text = rng.normal(size=len(system))
    human = quality[system] + 0.5 * text + 0.5 * rng.normal(size=len(system))
    judge = 1 + 0.8 * quality[system] + 0.5 * text + 0.6 * rng.normal(size=len(system))
    return judged(judge, prompt, [f"s{i:02d}" for i in system]), human, system
