"""The model: each parameter does what the docstring's formula says,
and nothing else.
"""

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import chisquare, norm

import rubricnb as rb
from rubricnb.engines.fitting import stand_in
from rubricnb.engines.profiles import Profile
from rubricnb.engines.simulated import simulate

SILENT = Profile(
    "silent",
    human_weight=0,
    text_error=0,
    item_error=0,
    order_noise=0,
    cluster_order_noise=0,
    wording_noise=0,
)
INDECISIVE = replace(SILENT, sharpness=0.0)
GAMMA = (0.6, 0.1, -0.3, -0.5, 0.1)


@pytest.fixture(scope="module")
def summeval():
    return stand_in("summeval")


@pytest.fixture(scope="module")
def hanna():
    return stand_in("hanna")


def answers(items, profile, design=None, **plan):
    return simulate(rb.plan(items, design or rb.balanced(5), **plan), items, profile)


def hot(items, profile, design=None):
    return answers(items, profile, design, readout="score", temperature=1.0)


def counts(judgments, n=5):
    return np.bincount(judgments["position"], minlength=n + 1)[1:]


def softmax(x):
    return np.exp(x) / np.exp(x).sum()


@pytest.mark.parametrize("n", [2, 5, 9])
def test_planted_position_preference_is_the_share_of_an_indecisive_judge(summeval, n):
    got = counts(
        hot(summeval, replace(INDECISIVE, position_preference=GAMMA), rb.balanced(n)), n
    )
    gamma = np.interp(np.linspace(0, 1, n), np.linspace(0, 1, 5), GAMMA)
    assert chisquare(got, softmax(gamma) * got.sum()).pvalue > 1e-3


def test_planted_interaction_acts_on_single_scores(summeval):
    delta = np.zeros((5, 5))
    delta[4, 1] = 1.0
    got = hot(summeval, replace(INDECISIVE, interaction=tuple(map(tuple, delta))))
    top, others = got[got.score == 5], got[got.score != 5]
    assert counts(top)[1] / len(top) > 0.3
    assert (abs(counts(others) / len(others) - 0.2) < 0.02).all()


def test_planted_score_preference_is_the_share_of_scores(summeval):
    alpha = (0.5, 0.0, 0.0, 0.0, -0.5)
    got = np.bincount(hot(summeval, replace(INDECISIVE, score_preference=alpha)).score)[
        1:
    ]
    assert chisquare(got, softmax(np.array(alpha)) * got.sum()).pvalue > 1e-3


@pytest.mark.parametrize("dataset", ["hanna", "summeval", "mt-bench", "vicuna"])
def test_the_unbiased_profile_has_uniform_shares(dataset):
    got = answers(stand_in(dataset), "unbiased")
    clusters = got.groupby("cluster_id", observed=True)["position"]
    share = np.array([counts(got[got.cluster_id == c]) / len(p) for c, p in clusters])
    t = (share.mean(axis=0) - 0.2) / (share.std(axis=0, ddof=1) / np.sqrt(len(share)))
    assert (abs(t) < 4).all()


def test_greedy_answers_are_the_most_probable_ones(hanna):
    got = answers(hanna, "first-biased", readout="logprobs")
    probabilities = got[[f"probability_{p}" for p in range(1, 6)]].to_numpy()
    assert (probabilities.argmax(axis=1) + 1 == got.position.to_numpy()).all()
    assert np.allclose(probabilities.sum(axis=1), 1, atol=1e-5)
    shown = np.array([list(map(int, o.split("-"))) for o in got.ordering])
    assert np.allclose(
        (probabilities * shown).sum(axis=1), got.expected_score, atol=1e-5
    )


def test_sampled_answers_follow_the_probabilities(hanna):
    shown = answers(hanna, "first-biased", readout="logprobs")
    drawn = hot(hanna, "first-biased")
    for p in range(1, 6):
        expected = shown[f"probability_{p}"].to_numpy(float)
        z = ((drawn.position == p).sum() - expected.sum()) / np.sqrt(
            (expected * (1 - expected)).sum()
        )
        assert abs(z) < 4


@pytest.mark.parametrize(("temperature", "distinct"), [(0.0, 1), (1.0, 5)])
def test_only_a_sampling_judge_answers_a_repeated_prompt_anew(
    hanna, temperature, distinct
):
    got = answers(
        hanna, "unbiased", rb.fixed(5, 20), readout="score", temperature=temperature
    )
    per_item = got.groupby("item_id", observed=True)["score"].nunique()
    assert (per_item == 1).all() if distinct == 1 else per_item.max() > 1


def test_noise_has_the_planted_spread(hanna):
    # Quality 3 is nearest to option 3 until the noise exceeds half a point.
    for name in ("order_noise", "cluster_order_noise", "wording_noise"):
        design = rb.placebo(5, 10) if name == "wording_noise" else rb.balanced(5)
        got = answers(hanna, replace(SILENT, **{name: 0.5}), design)
        units = got.cluster_id if name == "cluster_order_noise" else got.item_id
        z = (got.score != 3).groupby(units, observed=True).mean()
        error = z.std(ddof=1) / np.sqrt(len(z))
        assert abs(z.mean() - 2 * norm.sf(1)) < 4 * error, name


def test_a_cluster_shares_its_order_noise(hanna):
    got = answers(hanna, replace(SILENT, cluster_order_noise=0.7))
    cells = got.groupby(["cluster_id", "ordering"], observed=True)["score"]
    assert (cells.nunique() == 1).all()
    assert got.score.nunique() > 1


def test_the_criteria_of_an_unrated_text_share_quality(hanna):
    unrated = hanna.drop(columns="human")
    unrated.rubrics = hanna.rubrics
    bare = replace(SILENT, human_weight=1.0, quality_sd=1.0)
    for share, alike in ((1.0, True), (0.0, False)):
        got = answers(unrated, replace(bare, text_share=share), rb.fixed(5, 1))
        same = (
            got.groupby(got.item_id.str.rsplit("/", n=1).str[0])["score"].nunique() == 1
        )
        assert same.all() == alike


def test_direction_shifts_ascending_against_descending_options(summeval):
    profile = Profile("x", direction=0.5)
    got = answers(summeval, profile)
    ascending = got.ordering_index <= 5
    gap = got.score[ascending].mean() - got.score[~ascending].mean()
    assert 0.35 < gap < 0.55
    for p in range(1, 6):  # and prefers no position
        assert abs((got.position == p).mean() - 0.2) < 0.02


def test_the_first_criterion_is_shifted_where_planted(hanna):
    design = rb.balanced(6)
    planted, none = (
        simulate(rb.plan(hanna, design, template="criteria"), hanna, p)
        .groupby("criterion_position", observed=True)["score"]
        .mean()
        for p in ("criterion-biased", "unbiased")
    )
    assert planted.is_monotonic_decreasing
    assert 0.6 < planted[1] - planted[6] < 0.9
    assert abs(none[1] - none[6]) < 0.1


def test_without_options_in_the_prompt_no_position_is_preferred(hanna):
    plan = rb.plan(hanna, rb.balanced(6), template="criteria")
    biased, unbiased = (
        simulate(plan, hanna, replace(Profile("x"), position_preference=g)).score
        for g in (GAMMA, (0.0,))
    )
    assert (biased == unbiased).all()


def test_both_settings_see_the_same_quality(hanna):
    exact = replace(SILENT, human_weight=0.8, text_error=0.4, item_error=0.4)
    one = answers(hanna, exact, rb.fixed(5, 1)).set_index("item_id").score
    many = simulate(
        rb.plan(hanna, rb.permutation.single(range(1, 7)), template="criteria"),
        hanna,
        exact,
    )
    names = many.item_id.astype(str) + "/" + many.criterion.astype(str).str.lower()
    assert (one[names].to_numpy() == many.score.to_numpy()).all()


def test_finer_scales_keep_the_quality(summeval):
    exact = replace(SILENT, human_weight=1.0)
    for n in (2, 3, 9):
        got = answers(summeval, exact, rb.fixed(n, 1))
        rated = summeval.set_index("item_id")["human"][
            got.item_id.astype(str)
        ].to_numpy()
        spacing = 4 / (n - 1)
        back = 1 + spacing * (got.score.to_numpy(float) - 1)
        assert (abs(back - rated) <= spacing / 2 + 1e-9).all()


@pytest.mark.parametrize("readout", ["logprobs", "score"])
def test_the_planted_log_preference_is_what_position_bias_estimates(summeval, readout):
    gamma = np.array([0.7, 0.1, -0.2, -0.4, -0.2])
    profile = Profile(
        "x",
        position_preference=tuple(gamma),
        order_noise=0,
        cluster_order_noise=0,
        wording_noise=0,
    )
    temperature = 0.0 if readout == "logprobs" else 1.0
    got = answers(summeval, profile, readout=readout, temperature=temperature)
    row = rb.position_bias(
        got, value="expected_score" if readout == "logprobs" else "score"
    )
    estimate = row[[f"log_preference_{p}" for p in range(1, 6)]].to_numpy(float)[0]
    assert abs(estimate - gamma).max() < (1e-3 if readout == "logprobs" else 0.15)
