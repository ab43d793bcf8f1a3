import numpy as np
import pandas as pd
import pytest
from planted import FIRST, jackknife_interval, make_judgments, plausible, t_interval
from scipy import stats

from rubricnb.statistics.variation import (
    order_effect,
    variance_components,
    within_item_sd,
)


def pivot(judgments):
    return judgments.pivot(index="item_id", columns="ordering", values="score").astype(
        float
    )


def clusters(judgments):
    return judgments.groupby("item_id", observed=True)["cluster_id"].first().astype(str)


# --- within_item_sd
# ------------------------------------------------------------------------------


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


# --- order_effect
# --------------------------------------------------------------------------------------


def test_effects_equal_a_loop():
    judgments = make_judgments(20, 2, reverse_shift=0.5, gamma=FIRST)
    row = order_effect(judgments).iloc[0]
    reads = pivot(judgments)
    assert row.spread == pytest.approx(np.ptp(reads.mean().to_numpy()))
    assert row.ascending == pytest.approx(reads["1-2-3-4-5"].mean())
    assert row.descending == pytest.approx(reads["5-4-3-2-1"].mean())
    difference = reads["1-2-3-4-5"] - reads["5-4-3-2-1"]
    means = difference.groupby(clusters(judgments)).mean()
    found = row[
        [f"ascending_minus_descending{end}" for end in ("", "_low", "_high", "_p")]
    ]
    assert found.tolist() == pytest.approx([means.mean(), *t_interval(means)])


def test_without_an_effect_the_spread_is_its_null():
    rows = pd.concat([order_effect(make_judgments(40, seed=s)) for s in range(40)])
    assert rows["spread"].mean() == pytest.approx(rows["spread_null"].mean(), rel=0.12)
    assert plausible((rows["spread_p"] < 0.05).sum(), 40, 0.05)


# --- variance_components
# -------------------------------------------------------------------------


def crossed(n_items=400, repeats=2, sds=(1.0, 0.4, 0.5, 0.7), seed=0):
    """Every item in ten orderings, some times; and what each ordering adds."""
    rng = np.random.default_rng(seed)
    once = make_judgments(n_items)
    item, ordering, both = (
        sd * rng.normal(size=size)
        for sd, size in zip(sds, ((n_items, 1), 10, (n_items, 10)), strict=False)
    )
    reads = [
        (item + ordering + both + sds[3] * rng.normal(size=both.shape)).ravel()
        for _ in range(repeats)
    ]
    frames = [once.assign(score=read, replicate=k) for k, read in enumerate(reads)]
    return pd.concat(frames, ignore_index=True), ordering


def test_planted_components_are_recovered():
    judgments, shifts = crossed()
    row = variance_components(judgments).iloc[0]
    assert row.variance_item == pytest.approx(1, rel=0.2)
    assert row.variance_ordering == pytest.approx(shifts.var(ddof=1), rel=0.12)
    assert row.variance_item_ordering == pytest.approx(0.25 + 0.49, rel=0.1)
    noise = row.variance_item_ordering
    assert row.reliability == pytest.approx(
        row.variance_item / (row.variance_item + noise / 10)
    )
    assert row.phi == pytest.approx(noise / row.variance_item)
    assert row.phi_low < 0.74 < row.phi_high
    once = judgments[judgments["replicate"] == 0]
    # the first of repeats counts
    assert row.phi == variance_components(once).iloc[0].phi


def test_components_equal_an_analysis_of_variance():
    """Oracle: mean squares by least squares on dummies."""
    judgments, _ = crossed(n_items=20, repeats=1)
    table = judgments.pivot_table(
        index="item_id", columns=["ordering"], values="score"
    ).to_numpy()
    grand, rows, columns = table.mean(), table.mean(axis=1), table.mean(axis=0)
    rest = table - rows[:, None] - columns + grand
    ms = (rest**2).sum() / (19 * 9)
    row = variance_components(judgments).iloc[0]
    assert row.variance_item == pytest.approx(rows.var(ddof=1) - ms / 10)
    assert row.variance_ordering == pytest.approx(columns.var(ddof=1) - ms / 20)
    assert row.variance_item_ordering == pytest.approx(ms)


def clustered(n_clusters, per_cluster=6, seed=0):
    """Items of which half the variance, and half of their noise,
    is shared within a cluster.
    """
    rng = np.random.default_rng(seed)
    cluster = np.repeat(np.arange(n_clusters), per_cluster)

    def shared(*shape):
        own = rng.normal(size=(len(cluster), *shape))
        return np.sqrt(0.5) * (own + rng.normal(size=(n_clusters, *shape))[cluster])

    shifts = np.linspace(-0.5, 0.5, 10)
    score = shared()[:, None] + shifts + np.sqrt(0.6) * shared(10)
    return make_judgments(n_clusters, per_cluster).assign(score=score.ravel())


def test_phi_and_its_interval_equal_a_loop():
    judgments = clustered(9, 2)
    row = variance_components(judgments).iloc[0]
    noise, item, ordering = (
        row.variance_item_ordering,
        row.variance_item,
        row.variance_ordering,
    )
    left = pd.concat(
        variance_components(judgments[judgments["cluster_id"] != c])
        for c in judgments["cluster_id"].unique()
    )
    for name, value, most in (
        ("phi", noise / item, np.inf),
        ("phi_own", (noise + ordering) / item, np.inf),
        ("share_ordering", ordering / (item + ordering + noise), 1),
    ):
        assert row[name] == pytest.approx(value)
        expected = np.clip(jackknife_interval(value, left[name]), 0, most)
        assert [row[f"{name}_low"], row[f"{name}_high"]] == pytest.approx(expected)


def test_a_judge_that_never_heeds_the_ordering_has_a_phi_of_0():
    judgments = clustered(9, 2)
    judgments["score"] = judgments.groupby("item_id")["score"].transform("first")
    row = variance_components(judgments).iloc[0]
    assert row.phi == pytest.approx(0, abs=1e-9)
    assert np.isnan([row.phi_low, row.phi_high]).all()
    assert "phi: 0 without any cluster" in row.reason
