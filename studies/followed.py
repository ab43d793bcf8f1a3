"""Is the advice worth following? ``python -m studies.followed`` recomputes.

The 1.5B judge scored the coherence of four summaries each of 50 articles in ten orders.
`rubricnb.advise` sees half of the articles, first with 25 of the experts' ratings,
which asks whether the judge knows anything, then without, which gives a plan all the
same; what it says is then done on the other half. What is written to
``results/recordings/followed*.csv`` are aggregates.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd

import rubricnb as rb
from rubricnb.core.estimates.intervals import Estimate, jackknife_t
from rubricnb.core.support.types import FloatArray
from studies.intervals import ENDS
from studies.recording import write_tables

JUDGE, DATASET, CRITERION = (
    "qwen2.5-coder-1.5b-instruct-embedded",
    "summeval",
    "coherence",
)
SPLITS = 40
LABELS = 25  # rated texts of a half
PRECISION = 0.25  # points that two systems are to be told apart by


def data() -> tuple[pd.DataFrame, pd.DataFrame]:
    """Judgments, and their items with the experts' mean ratings."""
    judged = rb.recorded(JUDGE, DATASET)
    items = rb.load(DATASET)
    items = items[
        items["item_id"].isin(judged["item_id"]) & (items["criterion"] == CRITERION)
    ]
    judged = judged[
        judged["item_id"].isin(items["item_id"]) & (judged["design"] == "balanced")
    ]
    return judged.reset_index(drop=True), items.reset_index(drop=True)


class Half:
    """Some articles: their texts' scores in every order, and the experts' ratings.

    `score` and `expected` are texts × orders, `human` and `article` a value a text.
    """

    def __init__(
        self, judged: pd.DataFrame, items: pd.DataFrame, articles: Any
    ) -> None:
        self.judged = judged[judged["cluster_id"].isin(articles)]
        self.items = items[items["cluster_id"].isin(articles)]
        wide = self.judged.pivot(index="item_id", columns="ordering")
        about = self.items.set_index("item_id").loc[wide.index]
        self.score, self.expected = (
            wide[name].to_numpy(np.float64) for name in ("score", "expected_score")
        )
        self.ascending = list(wide["score"]).index("1-2-3-4-5")
        self.descending = list(wide["score"]).index("5-4-3-2-1")
        self.human = about["human"].to_numpy(np.float64)
        self.article = pd.factorize(about["cluster_id"])[0]
        self.system = about["candidate"].astype(str).to_numpy()

    def advice(self, n_labels: int = 0) -> pd.DataFrame:
        """What the package says to do, a row a step, with or without ratings."""
        labels = self.items[["item_id", "criterion", "human", "cluster_id"]]
        labels = labels.sample(n_labels, random_state=0) if n_labels else None
        return rb.advise(
            self.judged, labels, precision=PRECISION, by="judge"
        ).set_index("step")


def _r(x: FloatArray, y: FloatArray) -> float:
    return float(np.corrcoef(x, y)[0, 1])


def _single(reads: FloatArray, human: FloatArray) -> float:
    """Mean r of one order's reads."""
    return float(np.mean([_r(read, human) for read in reads.T]))


# Step → what doing it changes, in the unit of the advice,
# from the half's texts that are kept.
FOUND: dict[str, Callable[[Half, Any], float]] = {
    "judge": lambda h, k: _r(h.score[k].mean(axis=1), h.human[k]),
    "orders": lambda h, k: (
        _r(h.score[k].mean(axis=1), h.human[k]) / _single(h.score[k], h.human[k])
    ),
    "readout": lambda h, k: (
        _single(h.expected[k], h.human[k]) / _single(h.score[k], h.human[k])
    ),
    "direction": lambda h, k: float(
        (h.score[k, h.ascending] - h.score[k, h.descending]).mean()
    ),
}
# r with the experts, for a study that used the score of one ascending read.
Way = Callable[[Half, Any], FloatArray]
WAYS: dict[str, Way] = {
    "one ascending read, its score": lambda h, k: h.score[k, h.ascending],
    "one ascending read, expected score": lambda h, k: h.expected[k, h.ascending],
    "ascending and descending, expected score": lambda h, k: h.expected[k][
        :, [h.ascending, h.descending]
    ].mean(axis=1),
    "ten orders, score": lambda h, k: h.score[k].mean(axis=1),
    "ten orders, expected score": lambda h, k: h.expected[k].mean(axis=1),
}


def _with_interval(half: Half, of: Callable[[Half, Any], float]) -> Estimate:
    """A number with its 95 % jackknife-t interval over articles."""
    left = [of(half, half.article != a) for a in range(half.article.max() + 1)]
    whole = of(half, half.article >= 0)
    return jackknife_t(whole, np.array(left))


def halves(
    judged: pd.DataFrame, items: pd.DataFrame, splits: int
) -> Iterator[tuple[Half, Half]]:
    """Halves of the articles at random; the first split is the one that is shown."""
    articles = items["cluster_id"].astype(str).unique()
    for seed in range(splits):
        order = np.random.default_rng(seed).permutation(articles)
        middle = len(order) // 2
        yield Half(judged, items, order[:middle]), Half(judged, items, order[middle:])


def steps(first: Half, other: Half) -> pd.DataFrame:
    """Each step: what one half advises and expects, and what the other half finds."""
    asked, advice = first.advice(LABELS), first.advice()
    told = advice.assign(step=advice.index)[
        ["step", "do", "gain_is", "gain", "low", "high"]
    ]
    told.loc["judge", told.columns[1:]] = asked.loc["judge"]
    rows = [
        {**told.loc[step], **_with_interval(other, of).named("found", *ENDS)}
        for step, of in FOUND.items()
    ]
    texts = other.advice().loc["texts"]
    found = Estimate(texts["gain"], texts["low"], texts["high"]).named("found", *ENDS)
    return pd.DataFrame([*rows, {**told.loc["texts"], **found}])


def ways(half: Half) -> pd.DataFrame:
    """Agreement with experts of each way to ask, and its gain over the first."""
    base, *_ = WAYS.values()
    rows = []
    for name, way in WAYS.items():
        z = _with_interval(half, partial(_z, way))
        more = _with_interval(half, partial(_r_gain, way, base))
        row: dict[str, Any] = {"way": name, "n_articles": half.article.max() + 1}
        low, high = np.tanh(z.ends)
        row |= {"r": np.tanh(z.value), "r_low": low, "r_high": high}
        rows.append(row | more.named("more", *ENDS))
    return pd.DataFrame(rows)


def _z(way: Way, half: Half, kept: Any) -> float:
    """Fisher's z of a way's r with the experts."""
    return float(np.arctanh(_r(way(half, kept), half.human[kept])))


def _r_gain(way: Way, base: Way, half: Half, kept: Any) -> float:
    """How much higher a way's r is than another's."""
    human = half.human[kept]
    return _r(way(half, kept), human) - _r(base(half, kept), human)


def systems(half: Half) -> pd.DataFrame:
    """Every two systems' difference in means, by ten orders and by the experts."""
    means = {"judge": half.expected.mean(axis=1), "experts": half.human}
    rows = []
    for a, b in combinations(sorted(set(half.system)), 2):
        row: dict[str, Any] = {"a": a, "b": b}
        for name, scores in means.items():
            found = _with_interval(half, partial(_system_difference, scores, a, b))
            row |= found.named(name, *ENDS)
        rows.append(row)
    return pd.DataFrame(rows)


def _system_difference(
    scores: FloatArray, a: str, b: str, half: Half, kept: Any
) -> float:
    """How much higher system `b` is scored than system `a`."""
    return float(
        np.subtract(*(scores[kept & (half.system == name)].mean() for name in (b, a)))
    )


def over_splits(pairs: list[tuple[Half, Half]]) -> pd.DataFrame:
    """Each step over random halves: how often it is advised, and what it changed."""
    rows = []
    for number, (first, other) in enumerate(pairs):
        asked, advice = first.advice(LABELS), first.advice()
        for step, of in FOUND.items():
            told = (asked if step == "judge" else advice).loc[step]
            value, do = of(other, other.article >= 0), told["do"].partition(":")[0]
            rows.append(
                {
                    "split": number,
                    "step": step,
                    "do": do,
                    "gain": told["gain"],
                    "held": told["low"] <= value <= told["high"],
                    "found": value,
                }
            )
    of = pd.DataFrame(rows).groupby(["step", "do"])
    table = of.agg(
        splits=("split", "size"),
        gain=("gain", "median"),
        found=("found", "median"),
        found_low=("found", lambda v: v.quantile(0.025)),
        found_high=("found", lambda v: v.quantile(0.975)),
        held=("held", "mean"),
    )
    return table.reset_index()


def compute(splits: int = SPLITS) -> dict[str, pd.DataFrame]:
    """All tables, by name of file."""
    judged, items = data()
    pairs = list(halves(judged, items, splits))
    first, other = pairs[0]
    whole = Half(judged, items, items["cluster_id"].unique())
    return {
        "followed": steps(first, other).assign(
            n_articles=other.article.max() + 1, n_texts=len(items)
        ),
        "followed_ways": pd.concat([ways(other), ways(whole)], ignore_index=True),
        "followed_systems": systems(whole),
        "followed_splits": over_splits(pairs),
    }


if __name__ == "__main__":
    write_tables(compute())
