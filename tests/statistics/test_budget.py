from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from people import pearson, rated
from planted import jackknife_interval, make_judgments, plain

from rubricnb.core.permutation import fixed, williams
from rubricnb.statistics import budget
from rubricnb.statistics.budget import budget_curve, subsets


def subset_means(judgments, items):
    """Mean over subsets of r, for every K: the plain loop."""
    reads = judgments.pivot(
        index="item_id", columns="ordering_index", values="score"
    ).astype(float)
    human = items.set_index("item_id")["human"].reindex(reads.index)
    out = []
    for k in range(1, reads.shape[1] + 1):
        r = [
            pearson(
                pd.DataFrame({"score": reads[list(c)].mean(axis=1), "human": human})
            )
            for c in combinations(reads.columns, k)
        ]
        out.append((np.mean(r), *np.quantile(r, [0.025, 0.975])))
    return np.array(out)


def small(seed=0):
    judgments, items = rated(8, 3, seed=seed)
    return judgments[judgments["ordering_index"] <= 5], items


def test_every_subset_is_used_once():
    sets, size = subsets(10)
    assert len(sets) == len(np.unique(sets, axis=0)) == 1023
    assert np.bincount(size)[1:].tolist() == [
        10,
        45,
        120,
        210,
        252,
        210,
        120,
        45,
        10,
        1,
    ]
    many, size = subsets(18)
    assert (np.bincount(size)[[1, 2, 9, 18]] == [18, 153, 1000, 1]).all()
    assert (many.sum(axis=1) == size).all()


def test_the_curve_equals_a_loop_over_subsets():
    judgments, items = small()
    curve = budget_curve(judgments, items)
    found = curve[["r_mean", "spread_low", "spread_high"]].to_numpy()
    assert found == pytest.approx(subset_means(judgments, items))
    assert curve["n_subsets"].tolist() == [5, 10, 10, 5, 1]
    assert curve["gain"].iloc[[0, -1]].tolist() == [0, 1]


def test_its_intervals_are_cluster_jackknife_t():
    judgments, items = small()
    curve = budget_curve(judgments, items)
    left = np.array(
        [
            subset_means(judgments[judgments["cluster_id"] != c], items)[:, 0]
            for c in judgments["cluster_id"].unique()
        ]
    )
    for k in range(5):
        z, parts = np.arctanh(curve["r_mean"].iloc[k]), np.arctanh(left[:, k])
        ends = np.tanh(jackknife_interval(z, parts))
        assert curve[["low", "high"]].iloc[k].tolist() == pytest.approx(ends)


def test_intervals_from_some_of_the_subsets_are_those_from_all(monkeypatch):
    judgments, items = rated(60, 2)
    whole = budget_curve(judgments, items)
    monkeypatch.setattr(budget, "MOST_WORK", 0)
    some = budget_curve(judgments, items)
    pd.testing.assert_frame_equal(
        some.drop(columns=["low", "high", "se", "df"]),
        whole.drop(columns=["low", "high", "se", "df"]),
    )
    width = whole["high"] - whole["low"]
    for end in ("low", "high"):
        assert np.abs(some[end] - whole[end]).max() < 0.03 * width.min()
    assert some["low"].iloc[[0, -1]].tolist() == pytest.approx(
        whole["low"].iloc[[0, -1]].tolist()
    )


def test_averaging_alone_predicts_the_curve():
    judgments, items = rated(300, 1, concentration=0.5)
    curve = budget_curve(judgments, items)
    assert curve["r_expected"].to_numpy() == pytest.approx(
        curve["r_mean"].to_numpy(), abs=0.01
    )
    assert curve["gain"].iloc[2] > 0.5  # K = 3


def test_copies_gain_nothing():
    quality = np.random.default_rng(0).uniform(1, 5, 60)
    judgments = make_judgments(60, design=fixed(5, 4), quality=quality, greedy=True)
    items = pd.DataFrame(
        {"item_id": judgments["item_id"].cat.categories, "human": quality}
    )
    curve = budget_curve(judgments, items)
    assert np.ptp(curve["r_mean"]) == pytest.approx(0, abs=1e-12)
    assert curve["gain"].isna().all()
    assert np.ptp(curve["r_expected"]) == pytest.approx(0, abs=1e-12)


def test_groups_have_their_own_number_of_reads():
    judgments, items = rated()
    quality = items["human"].to_numpy()
    other = make_judgments(15, 4, design=williams(4), quality=quality / 2)
    curve = budget_curve(pd.concat([judgments, other]), items)
    assert curve.groupby("n_options")["k"].max().to_dict() == {4: 4, 5: 10}


@pytest.mark.parametrize("human", [[1.0, 2, 4, 5], [2.0, 1, 5, 4]])
def test_a_missing_interval_has_its_reason(human):
    names = [f"c{c}i{i}" for c in range(12) for i in range(4)]
    judgments = plain(
        [1, 2, 4, 5] * 12, item_id=names, cluster_id=[name[:-2] for name in names]
    )
    curve = budget_curve(
        judgments, pd.DataFrame({"item_id": names, "human": human * 12})
    )
    assert curve["low"].isna().all()
    assert curve["reason"].str.contains("no interval").all()
