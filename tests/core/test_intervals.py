"""Intervals, tests and their doubts, where clusters are few, unequal or all alike."""

import numpy as np
import pandas as pd
import pytest
from people import judged
from planted import make_judgments
from scipy import stats
from statsmodels.stats.multitest import multipletests
from statsmodels.stats.weightstats import ttost_paired

from rubricnb.book.replication import judged as verdicts
from rubricnb.core.estimates.intervals import (
    Estimate,
    adjusted,
    benjamini_hochberg,
    detectable,
    effective_clusters,
    equivalence,
    few_clusters,
    freedom,
    largest,
    mean_t,
    permuted_spread,
    t_estimate,
)
from rubricnb.core.estimates.reads import by_cluster
from rubricnb.core.estimates.reasons import join
from rubricnb.statistics.position import position_bias
from rubricnb.statistics.ranking import rank_reversal
from rubricnb.statistics.scoring_bias import stability

RATES = (0.0, 1.0)


# -- no variance is not certainty
# ------------------------------------------------------------------


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
    row = rank_reversal(
        pd.concat([one.assign(design=d) for d in ("balanced", "fixed")])
    ).iloc[0]
    assert (row.kendall_tau, row.kendall_tau_high) == (1, 1)
    assert row.kendall_tau_low < 0
    assert row.flip_strict == 0
    assert row.flip_strict_high > 0.5
    assert row.reason.startswith("3 effective clusters: intervals may be too narrow")


def test_no_flip_in_two_items_leaves_the_flip_rate_open():
    judgments = pd.DataFrame(
        {
            "item_id": list("abab"),
            "cluster_id": list("abab"),
            "ordering_index": 1,
            "labels": ["numeric"] * 2 + ["letter"] * 2,
            "ordering": "1-2-3-4-5",
            "score": [1, 2, 1, 2],
        }
    )
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


# -- rates
# --------------------------------------------------------------------------------------


def test_the_ends_of_a_rate_are_t_standard_errors_away_at_the_ends():
    rng = np.random.default_rng(0)
    flips = (rng.random(70) < 0.1) * 1.0
    cluster = np.arange(70) // 10  # seven: t has six degrees of freedom
    found, mean = mean_t(flips, cluster, RATES), flips.mean()
    for end in found.ends:
        at_end = found.se * np.sqrt(end * (1 - end) / (mean * (1 - mean)))
        assert abs(end - mean) == pytest.approx(stats.t.ppf(0.975, 6) * at_end)
    assert found.p == pytest.approx(2 * stats.t.sf(mean / found.se, 6))


# -- degrees of freedom
# ----------------------------------------------------------------------------


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


# -- what is detectable
# ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("n", "multiplier"), [(4, 4.26), (6, 3.51), (10, 3.15), (20, 2.95)]
)
def test_what_is_detectable_is_so_many_standard_errors(n, multiplier):
    assert round(detectable(1.0, n - 1), 2) == multiplier


# -- doubts
# --------------------------------------------------------------------------------------


def test_clusters_count_by_their_sizes():
    assert effective_clusters(np.repeat(np.arange(30), 6)) == pytest.approx(30)
    sizes = np.array([45, 1, 1, 1])
    assert effective_clusters(np.repeat(np.arange(4), sizes)) == pytest.approx(
        48**2 / 2028
    )


def test_few_effective_clusters_few_events_and_scores_alike_are_doubted():
    cluster = np.repeat(np.arange(30), 6)
    assert few_clusters(cluster) == ()
    assert (
        join(few_clusters(cluster[:114]))
        == "19 effective clusters: intervals may be too narrow"
    )
    assert join(few_clusters(cluster[:6])) == "one cluster: intervals need two"
    rare = (np.arange(180) < 9) * 1.0
    assert join(few_clusters(cluster, {"flips": rare})) == "flips: fewer than 10 events"
    assert (
        join(few_clusters(cluster, {"flips": 1 - rare}))
        == "flips: fewer than 10 events"
    )
    assert few_clusters(cluster, {"flips": (np.arange(180) < 10) * 1.0}) == ()
    alike = np.where(np.arange(180) < 36, 1.0, 4.0)
    doubt = "30 effective clusters, 80 % of scores alike: intervals may be too narrow"
    assert join(few_clusters(cluster, scores=(alike,))) == doubt
    assert few_clusters(np.arange(180), scores=(alike,)) == ()


# -- equivalence and families
# ----------------------------------------------------------------------


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
    assert benjamini_hochberg(pd.Series(p)) == pytest.approx(
        multipletests(p, method="fdr_bh")[1]
    )


# -- clusters of unequal size
# ----------------------------------------------------------------------

HALF = [95] + [5] * 19  # one of twenty prompts has half of the texts


def prompts(sizes, rng, shared=0.3):
    """Values of texts that share a part of their variance within their prompt;
    the mean is 0.
    """
    cluster = np.repeat(np.arange(len(sizes)), sizes)
    own = np.sqrt(1 - shared) * rng.standard_normal(len(cluster))
    return np.sqrt(shared) * rng.standard_normal(len(sizes))[cluster] + own, cluster


def sandwich(x, cluster):
    """CR2 and Satterthwaite's df of a regression on a constant, by their definitions.

    With H the hat matrix, A_g is the symmetric root of the inverse of (I - H)_gg; the
    variance is that of Σ 1'A_g e_g / N, and its df those of the quadratic form
    Σ (p_g'y)² for independent y of one variance, p_g = (I - H)_g'A_g 1 / N. (Bell &
    McCaffrey 2002; `coef_test(vcov = "CR2", test = "Satterthwaite")` of clubSandwich.)
    """
    n = len(x)
    rest = np.eye(n) - np.ones((n, n)) / n
    columns = []
    for c in np.unique(cluster):
        own = cluster == c
        values, vectors = np.linalg.eigh(rest[np.ix_(own, own)])
        columns.append(
            rest[:, own] @ (vectors / np.sqrt(values)) @ vectors.T.sum(1) / n
        )
    p = np.array(columns)
    eigenvalues = np.linalg.eigvalsh(p @ p.T)
    return (p @ x) ** 2, eigenvalues.sum() ** 2 / (eigenvalues**2).sum()


@pytest.mark.parametrize(
    "sizes",
    [
        [9, 1, 4, 2, 7],
        [3, 3],
        [3, 1],
        [30, 8, 5, 3, 2, 2, 1],
        [4] * 7,
        HALF,
        [2, 1] * 9,
    ],
)
def test_a_mean_has_cr2_and_the_degrees_of_freedom_of_bell_and_mccaffrey(sizes):
    x, cluster = prompts(sizes, np.random.default_rng(0))
    squares, df = sandwich(x, cluster)
    share = np.array(sizes) / len(x)
    rest, ours = adjusted(np.ones(len(sizes)), share)  # alike: no kurtosis
    assert ours == pytest.approx(df, rel=1e-12)
    found = mean_t(x, cluster)
    assert found.se == pytest.approx(np.sqrt(squares.sum()), rel=1e-12)
    rest, _ = adjusted(by_cluster(x - x.mean(), cluster) / len(x), share)
    assert rest**2 == pytest.approx(squares, rel=1e-9)
    assert found.df == pytest.approx(min(df, freedom(rest)), rel=1e-12)
    assert found.df == pytest.approx(df, rel=1e-12) or len(sizes) > 7
    half = stats.t.ppf(0.975, found.df) * found.se
    assert found.ends == pytest.approx((x.mean() - half, x.mean() + half))
    assert found.p == pytest.approx(2 * stats.t.sf(abs(x.mean()) / found.se, found.df))


CLUBSANDWICH = {
    # Sizes of the clusters: mean, standard error, degrees of freedom, p, low, high. Of
    #   f <- lm(y ~ 1)
    #   coef_test(f, vcov = "CR2", cluster = g, test = "Satterthwaite")
    #   conf_int(f, vcov = "CR2", cluster = g, test = "Satterthwaite")
    # in R 4.2.2 with clubSandwich 0.5.8; i <- seq_along(g), and y is that of `waves`.
    (9, 1, 4, 2, 7): (
        *(-0.0118289074471243, 0.27381634478749, 2.56883955726962),
        *(0.96867447786795, -0.972114209028253, 0.948456394134004),
    ),
    (3, 3): (
        *(-0.244198952241542, 0.352052189416349, 1.0),
        *(0.61392348966878, -4.7174461487842, 4.22904824430112),
    ),
    (3, 1): (
        *(-0.346090523845777, 0.433290900103401, 1.0),
        *(0.570932621992682, -5.85157341088101, 5.15939236318945),
    ),
    (30, 8, 5, 3, 2, 2, 1): (
        *(-0.301798970781384, 0.226786380247438, 2.13871372768937),
        *(0.307384044322229, -1.21937384912229, 0.615775907559525),
    ),
    (4,) * 7: (
        *(-0.0982759959994965, 0.222096336784365, 6.0),
        *(0.673637862685757, -0.641726154573042, 0.445174162574049),
    ),
    tuple(HALF): (
        *(-0.257619515819094, 0.21244046373847, 3.6121372031663),
        *(0.298557390175733, -0.873286286152455, 0.358047254514267),
    ),
    (2, 1) * 9: (
        *(-0.00221679374463775, 0.217775846113605, 15.2044047790413),
        *(0.992010642854854, -0.465852099801185, 0.461418512311909),
    ),
}


def waves(sizes):
    """Values that R and Python compute alike, and their clusters, numbered from 1."""
    cluster = np.repeat(np.arange(len(sizes)) + 1, sizes)
    i = np.arange(len(cluster)) + 1
    return np.sin(1.7 * i) + 0.8 * np.cos(2.3 * cluster), cluster


@pytest.mark.parametrize("sizes", CLUBSANDWICH)
def test_a_mean_equals_what_clubsandwich_prints(sizes):
    mean, se, df, *rest = CLUBSANDWICH[sizes]
    x, cluster = waves(sizes)
    found = mean_t(x, cluster)
    assert (found.value, found.se) == pytest.approx((mean, se), rel=1e-12)
    alike = np.ones(len(sizes))  # no kurtosis, which clubSandwich does not look at
    _, ours = adjusted(alike, np.array(sizes) / len(x))
    assert ours == pytest.approx(df, rel=1e-12)
    whole = t_estimate(found.value, found.se, float(ours))
    assert (whole.p, *whole.ends) == pytest.approx(rest, rel=1e-12)
    assert found.df <= ours
    if len(sizes) < 8:
        assert found.columns() == pytest.approx(whole.columns(), rel=1e-12)


def test_columns_are_adjusted_as_each_is_alone():
    rng, share = np.random.default_rng(0), np.array([5, 1, 3, 2, 2, 2, 8, 1, 4]) / 28
    apart = rng.normal(size=(9, 3))
    rest, df = adjusted(apart, share)
    for column, own, freedoms in zip(apart.T, rest.T, df, strict=True):
        alone = adjusted(column, share)
        assert own == pytest.approx(alone[0])
        assert freedoms == pytest.approx(alone[1])


def test_a_weight_stands_for_as_many_equal_items():
    x, weight = np.array([1.0, 2, 4, 3, 7]), np.array([3, 1, 2, 5, 1])
    cluster = np.array([0, 0, 1, 2, 3])
    whole = mean_t(np.repeat(x, weight), np.repeat(cluster, weight))
    found = mean_t(x, cluster, weight=weight.astype(float))
    assert found.columns() == pytest.approx(whole.columns())


@pytest.mark.slow
@pytest.mark.parametrize(
    ("sizes", "shared"),
    [
        ([12, 9, 6, 4, 3, 2, 1], 0.3),
        ([30, 8, 5, 3, 2, 2, 1], 0.3),
        ([30, 8, 5, 3, 2, 2, 1], 0.8),
        ([20, 10, 6, 3, 2, 2, 1, 1], 0.3),
        ([25] + [5] * 5, 0.3),
        (HALF, 0.3),
        ([40, 30, 20, 10] + [2] * 26, 0.8),
    ],
)
def test_intervals_cover_where_prompts_have_very_different_numbers_of_texts(
    sizes, shared
):
    """The jackknife and clusters - 1 cover .885 to .93 of seven, CR1 fewer still.

    The last sizes need the kurtosis, too: without it .921 hold the truth.
    """
    rng = np.random.default_rng(0)
    found = (mean_t(*prompts(sizes, rng, shared)) for _ in range(3_000))
    covered = np.mean([e.low <= 0 <= e.high for e in found])
    assert abs(covered - 0.95) < 0.004 + 3 * np.sqrt(0.05 * 0.95 / 3_000)


def one_prompt_apart():
    """A judge that likes the first position, most of all on one large prompt."""
    sizes, rng = [60] + [6] * 11, np.random.default_rng(5)
    cluster = np.repeat(np.arange(len(sizes)), sizes)
    judgments = make_judgments(len(cluster), seed=1)
    item = judgments["item_id"].cat.codes.to_numpy()
    first = [int(order.split("-")[0]) for order in judgments["ordering"]]
    likes = rng.random(len(judgments)) < np.where(cluster[item] == 0, 0.6, 0.2)
    score = np.where(likes, first, judgments["score"])
    return judgments.assign(score=score, cluster_id=cluster[item].astype(str))


def test_the_largest_of_five_positions_has_the_p_of_its_own_interval():
    bias = position_bias(one_prompt_apart()).iloc[0]
    beyond = np.array([bias[f"share_{k}"] - 0.2 for k in range(1, 6)])
    most = int(np.abs(beyond).argmax()) + 1
    own = Estimate(
        beyond[most - 1], se=bias[f"share_{most}_se"], df=bias[f"share_{most}_df"]
    )
    found = largest(own, 5)
    assert own.df < 6  # twelve prompts, but one of them has nearly half of the texts
    assert found.p == pytest.approx(5 * 2 * stats.t.sf(abs(own.value) / own.se, own.df))
    half = stats.t.ppf(1 - 0.05 / 10, own.df) * own.se
    assert found.ends == pytest.approx((own.value - half, own.value + half))
    assert (found.p < 0.05) == (found.low > 0)


@pytest.mark.slow
@pytest.mark.parametrize(
    "sizes", [[6] * 20, [30] + [3] * 19, [40, 30, 20, 10] + [2] * 26]
)
def test_the_largest_of_five_holds_its_level(sizes):
    """Every prompt has preferences of its own, and they are 0 on average."""
    rng, n, rejected = np.random.default_rng(0), 5, 0
    cluster = np.repeat(np.arange(len(sizes)), sizes)
    for _ in range(1_500):
        chance = rng.dirichlet(np.full(n, 8.0), len(sizes))[cluster]
        share = rng.multinomial(10, chance) / 10 - 1 / n
        found = [mean_t(column, cluster) for column in share.T]
        rejected += largest(max(found, key=lambda e: abs(e.value)), n).p < 0.05
    assert rejected / 1_500 < 0.05 + 3 * np.sqrt(0.05 * 0.95 / 1_500)


def test_estimates_are_columns_by_one_rule():
    found = Estimate(1.0, 0.5, 1.5, 0.01, 0.2, 7.0)
    assert found.columns() == {"low": 0.5, "high": 1.5, "p": 0.01, "se": 0.2, "df": 7.0}
    assert found.named("r", "low", "se") == {"r": 1.0, "r_low": 0.5, "r_se": 0.2}
    with pytest.raises(AttributeError):
        found.value = 2.0


@pytest.mark.parametrize(
    "blocks",
    [
        None,
        ((0, 1, 2), (3, 4, 5)),
        ((0, 1), (2, 3, 4, 5)),
        ((0, 1),),
        ((0, 1), (2, 3), (4, 5)),
    ],
)
def test_the_spread_by_chance_is_that_of_permutations_one_by_one(blocks):
    rng = np.random.default_rng(0)
    x, cluster = rng.normal(size=(40, 6)), np.arange(40) // 2
    blocks = None if blocks is None else [np.array(block) for block in blocks]
    found = permuted_spread("spread", x, cluster, 200, 7, blocks)
    sums = x.reshape(20, 2, 6).sum(axis=1)
    sums = sums[np.lexsort(sums.round(9).T)]
    rng, spreads = np.random.default_rng(7), []
    for _ in range(200):
        own = [np.arange(6)] if blocks is None else blocks
        drawn = [rng.permuted(sums[:, block], axis=1).sum(axis=0) for block in own]
        spreads.append(np.ptp(np.concatenate(drawn)) / 40)
    assert found["spread"] == pytest.approx(np.ptp(x.mean(axis=0)))
    assert found["spread_null"] == pytest.approx(np.mean(spreads), abs=1e-12)
    assert (
        found["spread_p"]
        == (1 + (np.array(spreads) >= found["spread"] - 1e-12).sum()) / 201
    )


@pytest.mark.parametrize("blocks", [[[0, 1]], [[0, 1], [3, 2], [4, 5]]])
def test_pairs_are_turned_as_permuted_turns_them(blocks):
    """Thousands of clusters take several calls, each of an odd number of bits."""
    n, draws = 12_001, 30
    x = np.random.default_rng(1).normal(size=(n, max(map(max, blocks)) + 1))
    found = permuted_spread(
        "spread", x, np.arange(n), draws, 3, [*map(np.array, blocks)]
    )
    x = x[np.lexsort(x.round(9).T)]
    rng, spreads = np.random.default_rng(3), []
    for _ in range(draws):
        drawn = [rng.permuted(x[:, block], axis=1).sum(axis=0) for block in blocks]
        spreads.append(np.ptp(np.concatenate(drawn)) / n)
    assert found["spread_null"] == pytest.approx(np.mean(spreads), rel=1e-12)
    as_far = (np.array(spreads) >= found["spread"]).sum()
    assert found["spread_p"] == (1 + as_far) / (1 + draws)
