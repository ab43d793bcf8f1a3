"""Intervals, tests and their doubts, where clusters are few, unequal or all alike."""

import numpy as np
import pandas as pd
import pytest
from people import judged
from planted import make_judgments
from scipy import stats
from statsmodels.stats.multitest import multipletests
from statsmodels.stats.weightstats import ttost_paired

from rubricnb.replication import judged as verdicts
from rubricnb.statistics import position_bias, rank_reversal, stability
from rubricnb.statistics.intervals import (
    benjamini_hochberg,
    detectable,
    effective_clusters,
    equivalence,
    few_clusters,
    freedom,
    mean_t,
)
from rubricnb.statistics.reasons import join

RATES = (0.0, 1.0)


# -- no variance is not certainty ------------------------------------------------------------------


def test_a_judge_that_always_says_3_proves_nothing_on_two_texts():
    row = position_bias(make_judgments(2).assign(score=3)).iloc[0]
    unknown = ["p_equivalent", "mde", "share_1_low", "share_1_high", "v2_unbiased_low"]
    assert row[unknown].isna().all()
    finding = {"finding": "position", "estimate": row.v2_unbiased, "p": row.p_within}
    table = pd.DataFrame([finding | {"p_equivalent": row.p_equivalent}])
    assert verdicts(table).verdict.item() == "cannot say"


def test_three_prompts_that_agree_leave_tau_open():
    prompt = np.repeat([*"pqr"], 2)
    one = judged([1, 2] * 3, prompt, list("xy") * 3, group_id=prompt)
    row = rank_reversal(pd.concat([one.assign(design=d) for d in ("balanced", "fixed")])).iloc[0]
    assert (row.kendall_tau, row.kendall_tau_high) == (1, 1)
    assert row.kendall_tau_low < 0
    assert row.flip_strict == 0
    assert row.flip_strict_high > 0.5
    assert row.reason.startswith("3 effective clusters: intervals may be too narrow")


def test_no_flip_in_two_items_leaves_the_flip_rate_open():
    judgments = pd.DataFrame({
        "item_id": list("abab"), "cluster_id": list("abab"), "ordering_index": 1,
        "labels": ["numeric"] * 2 + ["letter"] * 2, "ordering": "1-2-3-4-5", "score": [1, 2, 1, 2],
    })  # fmt: skip
    row = stability(judgments, {"labels": "numeric"}).iloc[0]
    assert (row.flip_rate, row.flip_rate_low) == (0, 0)
    assert row.flip_rate_high > 0.9
    assert np.isnan([row.mad_low, row.shift_low, row.shift_p]).all()
    assert "no interval, as every cluster is alike: mad, shift" in row.reason
    assert "flip_rate: fewer than 10 events" in row.reason


def test_many_prompts_without_a_flip_are_equivalent():
    # 59 binomial draws without an event leave out 5 %; 58 do not.
    p = [equivalence(0.0, 0.0, n, 0.05, largest=1.0) for n in (30, 59, 200)]
    assert p[0] > 0.05 > p[1] > p[2]


# -- rates -----------------------------------------------------------------------------------------


def test_the_ends_of_a_rate_are_t_standard_errors_away_at_the_ends():
    rng = np.random.default_rng(0)
    flips = (rng.random(70) < 0.1) * 1.0
    cluster = np.arange(70) // 10  # seven: t has six degrees of freedom
    found, mean = mean_t(flips, cluster, RATES), flips.mean()
    for end in found.ends:
        at_end = found.se * np.sqrt(end * (1 - end) / (mean * (1 - mean)))
        assert abs(end - mean) == pytest.approx(stats.t.ppf(0.975, 6) * at_end)
    assert found.p == pytest.approx(2 * stats.t.sf(mean / found.se, 6))


# -- degrees of freedom ----------------------------------------------------------------------------


def test_degrees_of_freedom_follow_the_kurtosis():
    rest = np.random.default_rng(1).standard_t(5, (30, 4))
    rest -= rest.mean(axis=0)
    excess = np.maximum(stats.kurtosis(rest, bias=False), 0)
    assert freedom(rest) == pytest.approx(1 / (1 / 29 + excess / 60))
    assert (freedom(rest[:7]) == 6).all()
    one = np.zeros(40)
    one[0] = 1.0
    assert freedom(one - one.mean()) < 2


def test_equal_clusters_keep_students_t():
    x = np.linspace(-1, 1, 20)  # flatter than normal
    found = mean_t(x + 0.3, np.arange(20))
    oracle = stats.ttest_1samp(x + 0.3, 0)
    assert found.ends == pytest.approx(tuple(oracle.confidence_interval()))
    assert (found.p, found.df) == pytest.approx((oracle.pvalue, oracle.df))


# -- what is detectable ----------------------------------------------------------------------------


@pytest.mark.parametrize(("n", "multiplier"), [(4, 4.26), (6, 3.51), (10, 3.15), (20, 2.95)])
def test_what_is_detectable_is_so_many_standard_errors(n, multiplier):
    assert round(detectable(1.0, n - 1), 2) == multiplier


# -- doubts ----------------------------------------------------------------------------------------


def test_clusters_count_by_their_sizes():
    assert effective_clusters(np.repeat(np.arange(30), 6)) == pytest.approx(30)
    sizes = np.array([45, 1, 1, 1])
    assert effective_clusters(np.repeat(np.arange(4), sizes)) == pytest.approx(48**2 / 2028)


def test_few_effective_clusters_few_events_and_scores_alike_are_doubted():
    cluster = np.repeat(np.arange(30), 6)
    assert few_clusters(cluster) == ()
    assert join(few_clusters(cluster[:114])) == "19 effective clusters: intervals may be too narrow"
    assert join(few_clusters(cluster[:6])) == "one cluster: intervals need two"
    rare = (np.arange(180) < 9) * 1.0
    assert join(few_clusters(cluster, {"flips": rare})) == "flips: fewer than 10 events"
    assert join(few_clusters(cluster, {"flips": 1 - rare})) == "flips: fewer than 10 events"
    assert few_clusters(cluster, {"flips": (np.arange(180) < 10) * 1.0}) == ()
    alike = np.where(np.arange(180) < 36, 1.0, 4.0)
    doubt = "30 effective clusters, 80% of scores alike: intervals may be too narrow"
    assert join(few_clusters(cluster, scores=(alike,))) == doubt
    assert few_clusters(np.arange(180), scores=(alike,)) == ()


# -- equivalence and families ----------------------------------------------------------------------


@pytest.mark.parametrize("effect", [-0.3, 0.05, 0.39, 1.0])
def test_equivalence_is_statsmodels_paired_tost(effect):
    x = np.random.default_rng(0).normal(effect, 1, 40)
    expected = ttost_paired(x, np.zeros(40), -0.4, 0.4)[0]
    assert equivalence(x.mean(), stats.sem(x), 40, 0.4) == pytest.approx(expected)


def test_nothing_is_equivalent_without_a_standard_error():
    assert np.isnan(equivalence(0.0, float("nan"), 30, 0.1))
    assert np.isnan(equivalence(float("nan"), 0.1, 30, 0.1))
    assert np.isnan(equivalence(0.0, 0.1, 1, 0.1))
    assert np.isnan(equivalence(0.0, 0.0, 500, 0.1))
    assert np.isnan(equivalence(0.2, 0.0, 500, 0.1))


def test_families_are_adjusted_as_statsmodels_does():
    p = np.random.default_rng(0).beta(0.5, 2, 30)
    assert benjamini_hochberg(pd.Series(p)) == pytest.approx(multipletests(p, method="fdr_bh")[1])
