"""Whether a judge may replace people: the recorded tables,
and the statistics written for them.
"""

from functools import lru_cache

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from studies import replace
from studies.recording import read_table as recorded


@pytest.fixture
def loaded(mirror):
    return _loaded()


@lru_cache(1)
def _loaded():
    return replace.loaded()


def test_the_counts_are_those_of_the_two_sets(loaded):
    judgments, items = loaded
    assert len(items) == 4_800 == 12 * 100 * 4
    assert items["human_ratings"].map(len).eq(3).all()
    scores = replace.wide(judgments, items)
    assert scores.shape == (4_800, 15)
    missing = scores.isna().sum()
    assert missing[missing > 0].to_dict() == {
        "GPT-4-0314": 2,
        "Llama-2-13B": 79,
        "Llama-2-70B": 55,
        "Llama-2-7B": 19,
    }
    assert len(replace.eleven(scores)) == 11


def test_so_many_labels_give_the_interval_that_was_asked_for(loaded):
    judgments, items = loaded
    drawn = replace.labels_drawn(
        judgments, items, judges=["GPT-4o-mini"], draws=60, seed=3
    ).iloc[0]
    assert drawn["half_width"] == pytest.approx(replace.HALF_WIDTH, rel=0.05)
    # Held in .945 of 1,800 draws with three seeds;
    # fewer in 60 happens once in a thousand times.
    assert 60 * drawn["coverage"] >= stats.binom.ppf(0.001, 60, 0.94)
    known = recorded("replace_draws").set_index("judge").loc["GPT-4o-mini"]
    assert known["n_labels"] == drawn["n_labels"]
    assert known["half_width"] == pytest.approx(drawn["half_width"], rel=0.02)


def test_the_correlation_of_errors_is_the_published_one():
    found = recorded("replace_panels").query(
        "panel == 'eleven judges' and criterion == 'all'"
    )
    found = found.set_index("quantity")["value"]
    assert found["correlation"] == pytest.approx(0.495, abs=0.005)
    assert found["judges"] == pytest.approx(1.85, abs=0.02)
    assert found["correlation_free"] == pytest.approx(0.44, abs=0.005)
    assert found["judges_free"] == pytest.approx(2.04, abs=0.02)


def test_each_panel_is_on_record_and_the_largest_is_the_panel_of_eleven():
    table = recorded("replace_subsets")
    members = table[[*replace.NAMES.values()]]
    known = recorded("replace_panels").query(
        "panel == 'eleven judges' and criterion == 'all'"
    )
    known = known.set_index("quantity")
    assert (members @ 2 ** np.arange(11)).tolist() == [*range(1, 2**11)]
    for column, quantity in (("r", "panel_r"), ("worth", "judges_free")):
        found = table.iloc[-1][[column, f"{column}_low", f"{column}_high"]].to_numpy(
            float
        )
        assert found == pytest.approx(
            known.loc[quantity, ["value", "low", "high"]], abs=6e-4
        )
    single = members.sum(axis=1) == 1
    assert table.worth[single].eq(1).all()
    assert table.r[single].max() == pytest.approx(known.value["best_r"], abs=6e-4)


def test_the_constant_judge_passes_where_no_judge_does():
    found = recorded("replace_judges")
    constant = found["judge"] == replace.CONSTANT
    assert found[constant]["passes_clusters"].all()
    real = found[
        ~found["judge"].isin([replace.CONSTANT, replace.PANEL, replace.ROUNDED])
    ]
    assert real.groupby("judge")["passes_clusters"].sum().max() < 4
    assert found[constant]["slope"].eq(0).all()


def test_the_panel_ranks_systems_no_better_than_its_best_member():
    found = recorded("replace_judges").set_index("judge")
    members = found[found.index.isin(replace.NAMES.values())]
    best = members.groupby("criterion")["tau"].max()
    panel = found.loc[replace.PANEL].set_index("criterion")["tau"]
    assert (panel < best).all()


# ---- the statistics
# -----------------------------------------------------------------------------


def simulated(rng, errors, noise, n=400, criteria=2):
    """Scores of judges = truth + errors with a given covariance;
    three experts with own noise.
    """
    truth = rng.normal(0, 1, n)
    judged = truth[:, None] + rng.multivariate_normal(np.zeros(len(errors)), errors, n)
    ratings = truth[:, None] + rng.normal(0, noise, (n, 3))
    criterion = np.arange(n) % criteria
    # means differ
    judged, ratings = judged + criterion[:, None], ratings - criterion[:, None]
    return judged, ratings, criterion, np.arange(n) // 4


def estimated(judged, ratings, criterion, cluster):
    sums = replace.cross_moments(judged, ratings, criterion, cluster)
    return replace.panel(replace.covariance(sums.sum(axis=0)), ratings.shape[1])


@given(st.integers(0, 2**32 - 1), st.integers(2, 5))
def test_removing_the_noise_is_comparing_judges_with_different_experts(seed, k):
    """Errors of two judges from two different experts share no noise:
    the same covariance.
    """
    rng = np.random.default_rng(seed)
    judged, ratings, criterion, cluster = simulated(rng, np.eye(k), 0.7, n=60)
    found = estimated(judged, ratings, criterion, cluster)

    def centred(x):
        return x - pd.DataFrame(x).groupby(criterion).transform("mean").to_numpy()

    a, e = centred(judged), centred(ratings)
    pairs = [(i, j) for i in range(3) for j in range(3) if i != j]
    free = sum((a - e[:, [i]]).T @ (a - e[:, [j]]) for i, j in pairs) / len(pairs) / 58
    sd = np.sqrt(np.diag(free))
    rho = ((free / np.outer(sd, sd)).sum() - k) / (k * (k - 1))
    assert found["correlation_free"] == pytest.approx(rho)
    assert found["judges_free"] == pytest.approx(k / (1 + (k - 1) * rho))
    assert found["panel_error"] == pytest.approx(np.sqrt(free.mean()))
    raw = np.corrcoef((a - e.mean(axis=1, keepdims=True)).T)[
        np.triu_indices(k, 1)
    ].mean()
    assert found["correlation"] == pytest.approx(raw)


def test_planted_correlations_are_found_and_noise_does_not_inflate_them():
    rng = np.random.default_rng(0)
    errors = 0.5 * np.eye(4) + 0.2  # correlation .2 / .7
    found = estimated(*simulated(rng, errors, noise=1.0, n=40_000))
    assert found["correlation_free"] == pytest.approx(2 / 7, abs=0.02)
    assert found["correlation_given"] == pytest.approx(2 / 7, abs=0.02)
    assert found["correlation"] > 0.45  # (.2 + 1/3) / (.7 + 1/3)
    assert found["expert_noise"] == pytest.approx(1, abs=0.03)


def test_judges_that_compress_the_scale_alike_share_errors_but_nothing_else():
    rng = np.random.default_rng(1)
    judged, ratings, criterion, cluster = simulated(
        rng, 1e-9 * np.eye(3), 0.5, n=40_000
    )
    judged = 0.4 * judged + rng.normal(0, 0.5, judged.shape)
    found = estimated(judged, ratings, criterion, cluster)
    assert found["correlation_free"] == pytest.approx(0.36 / (0.36 + 0.25), abs=0.02)
    assert found["correlation_given"] == pytest.approx(0, abs=0.02)
    assert found["panel_r"] > found["best_r"]


# ---- bad input
# --------------------------------------------------------------------------------------


def test_other_experts_a_missing_score_and_a_second_row_are_refused(loaded):
    one = pd.DataFrame({"item_id": ["a", "b"], "human_ratings": [(1, 2, 3), (4, 5, 5)]})
    other = one.assign(human_ratings=[(1, 2, 3), (4, 5, 4)])
    replace.check_same_experts(one, one)
    with pytest.raises(ValueError, match=r"1 items have different expert ratings.*'b'"):
        replace.check_same_experts(one, other)
    judged, *others = simulated(np.random.default_rng(0), np.eye(2), 1, n=20)
    judged[3, 1] = np.nan
    with pytest.raises(ValueError, match="a score or a rating is missing"):
        replace.cross_moments(judged, *others)
    judgments, items = loaded
    twice = pd.concat([judgments, judgments.head(1)], ignore_index=True)
    with pytest.raises(ValueError, match="duplicate"):
        replace.wide(twice, items)
