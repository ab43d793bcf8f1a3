import numpy as np
import pandas as pd
import pytest
from planted import FIRST, jackknife_interval, make_judgments, plausible
from scipy import stats

from rubricnb.permutation import balanced, fixed, placebo
from rubricnb.statistics import order_effect, variance_components, within_item_sd


def pivot(judgments):
    return judgments.pivot(index="item_id", columns="ordering", values="score").astype(float)


def clusters(judgments):
    return judgments.groupby("item_id", observed=True)["cluster_id"].first().astype(str)


# --- within_item_sd ------------------------------------------------------------------------------


def test_sd_and_variance_equal_pandas_and_the_interval_is_t_on_cluster_means():
    judgments = make_judgments(15, 3)
    row = within_item_sd(judgments).iloc[0]
    reads = pivot(judgments)
    sd = reads.std(axis=1, ddof=0)
    assert row.sd == pytest.approx(sd.mean())
    assert row.variance == pytest.approx(reads.var(axis=1, ddof=1).mean())
    assert (row.k, row.n_items, row.n_clusters) == (10, 45, 15)
    means = sd.groupby(clusters(judgments)).mean()
    expected = stats.t.interval(0.95, 14, means.mean(), stats.sem(means))
    assert (row.sd_low, row.sd_high) == pytest.approx(expected)


# --- order_effect --------------------------------------------------------------------------------


def test_effects_equal_a_loop():
    judgments = make_judgments(20, 2, reverse_shift=0.5, gamma=FIRST)
    row = order_effect(judgments).iloc[0]
    reads = pivot(judgments)
    assert row.spread == pytest.approx(np.ptp(reads.mean().to_numpy()))
    assert row.ascending == pytest.approx(reads["1-2-3-4-5"].mean())
    assert row.descending == pytest.approx(reads["5-4-3-2-1"].mean())
    deviation = reads.sub(reads.mean(axis=1), axis=0).abs()
    assert row.deviation == pytest.approx(deviation.to_numpy().mean())
    crossing = ((reads > 3).any(axis=1) & (reads < 3).any(axis=1)).mean()
    assert row.crossing == pytest.approx(crossing)
    forward = reads[["1-2-3-4-5", "2-3-4-5-1", "3-4-5-1-2", "4-5-1-2-3", "5-1-2-3-4"]]
    difference = forward.mean(axis=1) - reads.drop(columns=forward.columns).mean(axis=1)
    means = difference.groupby(clusters(judgments)).mean()
    expected = stats.ttest_1samp(means, 0)
    assert row.forward_minus_reverse == pytest.approx(means.mean())
    assert row.forward_minus_reverse_p == pytest.approx(expected.pvalue)
    interval = expected.confidence_interval()
    found = (row.forward_minus_reverse_low, row.forward_minus_reverse_high)
    assert found == pytest.approx((interval.low, interval.high))


def test_without_an_effect_the_spread_is_its_null():
    rows = pd.concat([order_effect(make_judgments(40, seed=s)) for s in range(40)])
    assert rows["spread"].mean() == pytest.approx(rows["spread_null"].mean(), rel=0.12)
    assert plausible((rows["spread_p"] < 0.05).sum(), 40, 0.05)
    covered = (rows["forward_minus_reverse_low"] < 0) & (rows["forward_minus_reverse_high"] > 0)
    assert plausible(covered.sum(), 40, 0.95)


def test_a_direction_is_no_spread_over_positions():
    row = order_effect(make_judgments(300, reverse_shift=1.0)).iloc[0]
    assert row.forward_minus_reverse_p < 1e-4
    assert row.spread_null > 0.1  # the null keeps the direction


# --- variance_components -------------------------------------------------------------------------


def crossed(n_items=400, repeats=3, sds=(1.0, 0.4, 0.5, 0.7), seed=0):
    """Every item in ten orderings, some times; and what each ordering adds."""
    rng = np.random.default_rng(seed)
    once = make_judgments(n_items)
    item, ordering, both = (
        sd * rng.normal(size=size)
        for sd, size in zip(sds, ((n_items, 1), 10, (n_items, 10)), strict=False)
    )
    reads = [(item + ordering + both + sds[3] * rng.normal(size=both.shape)).ravel()
             for _ in range(repeats)]  # fmt: skip
    frames = [once.assign(score=read, replicate=k) for k, read in enumerate(reads)]
    return pd.concat(frames, ignore_index=True), ordering


def test_planted_components_are_recovered():
    judgments, shifts = crossed()
    row = variance_components(judgments).iloc[0]
    assert row.variance_item == pytest.approx(1, rel=0.2)
    assert row.variance_ordering == pytest.approx(shifts.var(ddof=1), rel=0.12)
    assert row.variance_item_ordering == pytest.approx(0.25, rel=0.1)
    assert row.variance_reask == pytest.approx(0.49, rel=0.05)
    noise = (row.variance_item_ordering + row.variance_reask / 3) / 10
    assert row.reliability == pytest.approx(row.variance_item / (row.variance_item + noise))
    assert row.dependability < row.reliability
    single = row.variance_item_ordering + row.variance_reask
    assert row.phi == pytest.approx(single / row.variance_item)
    assert row.phi_low < 0.74 < row.phi_high


def test_components_equal_an_analysis_of_variance():
    """Oracle: mean squares by least squares on dummies."""
    judgments, _ = crossed(n_items=20, repeats=2)
    table = judgments.pivot_table(index="item_id", columns=["ordering"], values="score").to_numpy()
    grand, rows, columns = table.mean(), table.mean(axis=1), table.mean(axis=0)
    rest = table - rows[:, None] - columns + grand
    ms = (rest**2).sum() / (19 * 9)
    within = judgments.groupby(["item_id", "ordering"])["score"].var(ddof=1).mean()
    row = variance_components(judgments).iloc[0]
    assert row.variance_item == pytest.approx(rows.var(ddof=1) - ms / 10)
    assert row.variance_ordering == pytest.approx(columns.var(ddof=1) - ms / 20)
    assert row.variance_reask == pytest.approx(within)
    assert row.variance_item_ordering == pytest.approx(ms - within / 2)


def test_repeats_may_come_from_a_fixed_design_beside_it():
    judgments, _ = crossed(repeats=1)
    rng = np.random.default_rng(1)
    base = judgments[judgments["ordering"] == "1-2-3-4-5"]
    again = [
        base.assign(design="fixed", ordering_index=k, score=base["score"] + rng.normal(0, 0.7, 400))
        for k in range(1, 5)
    ]
    row = variance_components(pd.concat([judgments, *again], ignore_index=True)).iloc[0]
    assert row.variance_reask == pytest.approx(
        0.8 * 0.49, rel=0.1
    )  # one of five has no noise added
    assert "design" not in row.index


def test_a_placebo_is_no_repeat():
    judgments = make_judgments(40)
    both = pd.concat([judgments, make_judgments(40, design=placebo(5, 3), seed=1)])
    row, alone = variance_components(both).iloc[0], variance_components(judgments).iloc[0]
    assert row.variance_item == pytest.approx(alone.variance_item)
    assert np.isnan(row.variance_reask)


def test_re_asks_that_always_agree_are_a_measured_zero():
    judgments = make_judgments(40, design=balanced(2), greedy=True)
    asked_anew = judgments.assign(key=np.arange(len(judgments)).astype(str))
    assert variance_components(asked_anew).iloc[0].variance_reask == 0


def clustered(n_clusters, per_cluster=6, seed=0):
    """Items of which half the variance, and half of their noise, is shared within a cluster."""
    rng = np.random.default_rng(seed)
    cluster = np.repeat(np.arange(n_clusters), per_cluster)

    def shared(*shape):
        own = rng.normal(size=(len(cluster), *shape))
        return np.sqrt(0.5) * (own + rng.normal(size=(n_clusters, *shape))[cluster])

    shifts = np.linspace(-0.5, 0.5, 10)
    score = shared()[:, None] + shifts + np.sqrt(0.6) * shared(10)
    judgments = make_judgments(n_clusters, per_cluster).assign(score=score.ravel())
    return judgments, {"phi": 0.6, "phi_own": 0.6 + shifts.var(ddof=1)}


def test_phi_and_its_interval_equal_a_loop():
    judgments, _ = clustered(9, 2)
    row = variance_components(judgments).iloc[0]
    noise, item, ordering = row.variance_item_ordering, row.variance_item, row.variance_ordering
    left = pd.concat(
        variance_components(judgments[judgments["cluster_id"] != c])
        for c in judgments["cluster_id"].unique()
    )
    for name, value, most in (
        ("phi", noise / item, np.inf), ("phi_own", (noise + ordering) / item, np.inf),
        ("share_ordering", ordering / (item + ordering + noise), 1),
    ):  # fmt: skip
        assert row[name] == pytest.approx(value)
        expected = np.clip(jackknife_interval(value, left[name]), 0, most)
        assert [row[f"{name}_low"], row[f"{name}_high"]] == pytest.approx(expected)


@pytest.mark.slow
@pytest.mark.parametrize("n_clusters", [12, 40, 96])
def test_phi_intervals_cover_where_items_share_a_text(n_clusters):
    hits, replications = {"phi": 0, "phi_own": 0}, 200
    for seed in range(replications):
        judgments, truth = clustered(n_clusters, seed=seed)
        row = variance_components(judgments).iloc[0]
        for name, value in truth.items():
            hits[name] += row[f"{name}_low"] <= value <= row[f"{name}_high"]
    assert all(plausible(h, replications, 0.95) for h in hits.values()), hits


def test_a_judge_that_never_heeds_the_ordering_has_a_phi_of_0():
    judgments, _ = clustered(9, 2)
    judgments["score"] = judgments.groupby("item_id")["score"].transform("first")
    row = variance_components(judgments).iloc[0]
    assert row.phi == pytest.approx(0, abs=1e-9)
    assert np.isnan([row.phi_low, row.phi_high]).all()
    assert "phi: 0 without any cluster" in row.reason


def test_items_that_differ_in_one_cluster_only_give_phi_no_interval():
    judgments, _ = clustered(9, 2)
    own = (judgments["cluster_id"] == "c0") * judgments["item_id"].cat.codes
    row = variance_components(judgments.assign(score=3.0 + own)).iloc[0]
    assert row.phi == 0
    assert np.isnan(row.phi_low)
    assert "no interval" in row.reason


def test_re_asks_of_one_prompt_split_into_items_and_re_asks():
    rng = np.random.default_rng(4)
    score = rng.normal(0, 1.2, 300).repeat(4) + rng.normal(0, 0.6, 1200)
    judgments = make_judgments(300, design=fixed(5, 4)).assign(score=score)
    row = variance_components(judgments).iloc[0]
    wide = judgments["score"].to_numpy().reshape(300, 4)
    within = wide.var(axis=1, ddof=1).mean()
    assert row.variance_reask == pytest.approx(within)
    assert row.variance_item == pytest.approx(wide.mean(axis=1).var(ddof=1) - within / 4)
    assert row.phi_low < 0.25 < row.phi_high  # .36 / 1.44
    assert row.reliability == pytest.approx(1 / (1 + row.phi / 4))
    names = ["variance_ordering", "variance_item_ordering", "dependability", "phi_own"]
    assert row[names].isna().all()
    assert row.reason == "one ordering: what orderings do is not known"
