"""Score tendency, the pull of references, gold scores:
against loops, scipy and planted judges.
"""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from planted import jackknife_interval, plain, plausible, t_interval
from scipy import stats

import rubricnb as rb
from rubricnb.engines.profiles import open_profile
from rubricnb.statistics.tendency import (
    gold,
    reference_pull,
    score_tendency,
    tendency_shift,
)


@pytest.fixture(scope="module")
def items():
    return rb.load("minibench")


@pytest.fixture(scope="module")
def perturbed(items):
    how = {"reference": "none", "readout": "logprobs"}
    plans = [
        rb.plan(
            items, [rb.fixed(5, 1), rb.Design("descending", 5), rb.placebo(5, 3)], **how
        ),
        rb.plan(items, rb.fixed(5, 1), labels="letter", **how),
    ]
    return pd.concat(plans, ignore_index=True).pipe(rb.simulate, items, "letter-strict")


def test_shift_of_the_tendency_is_the_distance_of_scipy_and_its_interval_a_jackknife(
    perturbed,
):
    found = tendency_shift(perturbed).set_index(["design", "labels"])
    base = perturbed[(perturbed.design == "fixed") & (perturbed.labels == "numeric")]

    def distance(part, without=None):
        kept = [f[f.cluster_id.astype(str) != without] for f in (part, base)]
        return np.mean(
            [
                stats.wasserstein_distance(
                    read.score.astype(int), kept[1].score.astype(int)
                )
                for _, read in kept[0].groupby("ordering_index")
            ]
        )

    sides = dict(list(perturbed.groupby(["design", "labels"], observed=True)))
    placebo, letters = sides["placebo", "numeric"], sides["fixed", "letter"]
    for name in (
        ("descending", "numeric"),
        ("placebo", "numeric"),
        ("fixed", "letter"),
    ):
        assert found.moved[name] == pytest.approx(distance(sides[name]))
    row = found.loc[("fixed", "letter")]
    clusters = base.cluster_id.astype(str).unique()

    def beyond(without=None):
        kept = [
            f[f.cluster_id.astype(str) != without].score.astype(int)
            for f in (letters, placebo)
        ]
        return stats.wasserstein_distance(*kept)

    left = np.array([beyond(c) for c in clusters])
    ends = row[["moved_excess", "moved_excess_low", "moved_excess_high"]]
    assert ends.tolist() == pytest.approx(
        (beyond(), *jackknife_interval(beyond(), left))
    )
    assert row.moved_excess_low > 0.2  # 0.6 points are planted
    wide = tendency_shift(perturbed, level=0.99).set_index(["design", "labels"])
    assert wide.moved_excess_high["fixed", "letter"] > row.moved_excess_high


# --- distances: what they compare, and their size
# ------------------------------------------------


def drawn_ratings(n_clusters=60, per_cluster=4, raters=3, shift=0.0, reads=1, seed=0):
    """Raters and judge draw from each text's own distribution,
    the judge `shift` points higher.
    """
    rng = np.random.default_rng(seed)
    n = n_clusters * per_cluster
    quality = rng.normal(3, 0.5, n_clusters).repeat(per_cluster) + rng.normal(0, 0.5, n)

    def score(k, up=0.0):
        noisy = quality[:, None] + up + rng.normal(0, 0.8, (n, k))
        return np.clip(np.floor(noisy + rng.random((n, k))), 1, 5)

    ratings, own = score(raters), score(reads, shift)
    name = np.arange(n)
    cluster = name // per_cluster
    items = pd.DataFrame({"item_id": name, "human": ratings.mean(axis=1)})
    items["human_ratings"] = [tuple(r) for r in ratings]
    judgments = pd.DataFrame(
        {
            "item_id": name.repeat(reads),
            "cluster_id": cluster.repeat(reads),
            "ordering_index": np.tile(np.arange(1, reads + 1), n),
            "ordering": "1-2-3-4-5",
            "score": own.ravel(),
        }
    )
    return judgments, items


def test_a_judge_that_is_one_of_the_raters_is_at_no_distance_from_them():
    found = [score_tendency(*drawn_ratings(seed=seed)).iloc[0] for seed in range(60)]
    assert {row.compares for row in found} == {"read with rating"}
    assert np.mean([row.wasserstein for row in found]) < 0.12
    covered = sum(row.wasserstein_low == 0 for row in found)
    assert plausible(covered, 60, 0.95)
    judgments, items = drawn_ratings()
    means = score_tendency(judgments, items.drop(columns="human_ratings")).iloc[0]
    assert means.compares == "mean with mean"
    averages = judgments.groupby("item_id").score.mean()
    assert means.wasserstein == pytest.approx(
        stats.wasserstein_distance(averages, items.human)
    )


def test_the_distance_to_single_ratings_is_scipys_with_every_item_weighing_the_same():
    judgments, items = drawn_ratings(20, reads=3, shift=0.4)
    often = judgments[
        (judgments["item_id"] % 3 > 0) | (judgments["ordering_index"] == 1)
    ]
    weights = 1 / often.groupby("item_id").score.transform("size")
    oracle = stats.wasserstein_distance(
        often.score, np.concatenate(items.human_ratings.tolist()), weights
    )
    row = score_tendency(often, items).iloc[0]
    assert row.wasserstein == pytest.approx(oracle)
    assert row.share_1 == pytest.approx(np.average(often.score == 1, weights=weights))
    assert row[[f"human_{s}" for s in range(1, 6)]].sum() == pytest.approx(1)
    assert row.wasserstein_low <= row.wasserstein <= row.wasserstein_high
    as_text = items.assign(human_ratings=items["human_ratings"].astype(str))
    assert score_tendency(often, as_text).iloc[0].wasserstein == pytest.approx(oracle)


@pytest.mark.parametrize("shift", [0.15, 0.5])
def test_intervals_of_a_planted_distance_cover_it(shift):
    big = score_tendency(*drawn_ratings(8000, shift=shift, seed=99)).iloc[0].wasserstein
    rows = [
        score_tendency(*drawn_ratings(30, shift=shift, seed=s)).iloc[0]
        for s in range(60)
    ]
    covered = sum(row.wasserstein_low <= big <= row.wasserstein_high for row in rows)
    assert plausible(covered, 60, 0.95)


def test_scores_off_the_scale_or_between_its_levels_are_in_the_distance_and_named():
    judgments = plain([0, 1, 2, 2.5, 3, 3, 1, 2], ordering="1-2-3").drop(
        columns="design"
    )
    items = judgments[["item_id"]].assign(human=[1.0, 2, 3, 3, 2, 1, 2, 3])
    row = score_tendency(judgments, items).iloc[0]
    assert row.wasserstein == pytest.approx(
        stats.wasserstein_distance(judgments.score, items.human)
    )
    assert (row.n_reads, row.share_3, row.share_1) == (8, 3 / 8, 2 / 8)
    assert "12.5 % of the scores lie off the scale 1..3" in row.reason
    free = score_tendency(
        judgments.drop(columns=["ordering", "ordering_index"]), items
    ).iloc[0]
    assert free[["share_0", "share_1", "share_2", "share_3"]].sum() == 1
    assert free.wasserstein == row.wasserstein


def test_criteria_of_different_scales_are_compared_where_the_scale_fits():
    minibench = rb.load("minibench")
    extra = minibench.rubrics[minibench.rubrics.criterion == "clarity"].head(2)
    items = minibench.copy()
    items.rubrics = pd.concat(
        [minibench.rubrics, extra.assign(score=[6, 7])], ignore_index=True
    )
    requests = rb.plan(minibench, rb.fixed(5, 1), readout="score")
    judgments = rb.simulate(requests, minibench, "unbiased")
    row = score_tendency(judgments, items).iloc[0]
    clear = (items.criterion == "clarity").sum()
    assert (
        f"ratings of {clear} of {len(items)} items are on another scale" in row.reason
    )
    others = items[items.criterion != "clarity"]
    fitting = judgments[judgments.criterion != "clarity"]
    assert row.wasserstein == pytest.approx(
        score_tendency(fitting, others).iloc[0].wasserstein
    )


def test_a_planted_pull_is_found_and_an_unbiased_judge_has_none(items):
    requests = pd.concat(
        [
            rb.plan(
                items,
                rb.fixed(5, 1),
                reference=["none", 1, 2, 3, 4, 5],
                readout="score",
            ),
            rb.plan(items, rb.placebo(5, 5), reference="none", readout="score"),
        ],
        ignore_index=True,
    )
    pulled = reference_pull(rb.simulate(requests, items, "reference-pulled"))
    assert pulled.k.tolist() == [1, 2, 3, 4, 5]
    assert (pulled.approach_low > 0).all()
    assert pulled.pull[pulled.k.isin([2, 3, 4])].min() > 0.05
    still = replace(open_profile("unbiased"), wording_noise=0.0)
    none = reference_pull(rb.simulate(requests, items, still))
    assert (none.pull == 0).all()
    assert (none.approach == 0).all()
    unmoved = ["pull_excess", "approach_excess"]
    assert (none[unmoved] == 0).to_numpy().all()
    assert none.n_items.tolist() == [144] * 5  # no item is its own reference


def test_pull_and_approach_beyond_the_placebo_are_paired_by_item(items):
    plans = [
        rb.plan(items, rb.fixed(5, 1), reference=["none", 3], readout="score"),
        rb.plan(items, rb.placebo(5, 2), reference="none", readout="score"),
    ]
    noisy = replace(open_profile("reference-pulled"), wording_noise=0.4)
    judgments = rb.simulate(pd.concat(plans, ignore_index=True), items, noisy)
    found = reference_pull(judgments).iloc[0]
    wide = (
        judgments.pivot(
            index="item_id",
            columns=["design", "reference_score", "ordering_index"],
            values="score",
        )
        .dropna()
        .astype(int)
        .sort_index(axis=1)
    )
    s, s0 = wide["fixed", "3", 1], wide["fixed", "none", 1]
    edits = wide["placebo", "none"]
    nearer = (s0 - 3).abs() - (s - 3).abs()
    control = (s0 - 3).abs() - (edits - 3).abs().mean(axis=1)
    cluster = items.set_index("item_id").cluster_id.reindex(wide.index)
    size = cluster.map(cluster.value_counts())
    assert size.nunique() == 1  # so the oracle is a t test of cluster means
    for name, own, other in (
        ("pull", 1.0 * (s == 3) - (s0 == 3), (edits == 3).mean(axis=1) - (s0 == 3)),
        ("approach", nearer, control),
    ):
        assert found[name] == pytest.approx(own.mean())
        columns = [f"{name}_excess{end}" for end in ("", "_low", "_high", "_p")]
        excess = own - other
        expected = excess.mean(), *t_interval(excess.groupby(cluster).mean())
        assert found[columns].tolist() == pytest.approx(expected)


@given(st.lists(st.integers(1, 5), min_size=1, max_size=5))
def test_gold_is_the_mode_where_there_is_one_else_the_median(scores):
    reads = pd.DataFrame(
        {
            "item_id": "a",
            "cluster_id": "a",
            "design": "fixed",
            "score": scores,
            "ordering_index": range(1, len(scores) + 1),
            "ordering": "1-2-3-4-5",
        }
    )
    row = gold(reads).iloc[0]
    modes = pd.Series(scores).mode()
    assert row.gold == (modes[0] if len(modes) == 1 else np.median(scores))
    assert row.gold_ratings == tuple(scores)
    assert row.n_distinct == len(set(scores))


def test_three_reads_of_a_greedy_judge_are_one(items):
    greedy = rb.plan(items, rb.fixed(5, 3), readout="score")
    found = gold(rb.run(greedy, "simulated:unbiased", store=":memory:"))
    assert (found.n_asked == 1).all()
    hot = rb.plan(items, rb.fixed(5, 3), readout="score", temperature=1.0)
    found = gold(rb.run(hot, "simulated:unbiased", store=":memory:"))
    assert (found.n_asked == 3).all()
    assert found.n_distinct.max() > 1
