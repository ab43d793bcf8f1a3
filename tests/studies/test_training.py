"""Training on scores: the closed form, its two-line proof,
bad input, and the recorded tables.
"""

from functools import lru_cache
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from studies import training
from studies.recording import read_table as recorded

STARTS = np.array([0, 3, 4])  # prompts of three, one and two candidates
SCORES = st.lists(st.integers(1, 5), min_size=6, max_size=6)
BETAS = st.floats(0.05, 5)


@lru_cache(1)
def qwen():
    return training.choice("qwen2.5-coder-1.5b-instruct-embedded", "minibench")


def objective(p, reward, beta):
    kl = training.divergence(p, STARTS)
    return training.under(p, reward, STARTS) - beta * kl


@given(
    scores=SCORES,
    beta=BETAS,
    other=st.lists(st.floats(0.01, 1), min_size=6, max_size=6),
)
def test_no_other_policy_has_a_higher_objective(scores, beta, other):
    reward, weight = np.array(scores, float), np.array(other)
    p = training.policy(reward, STARTS, beta)
    any_policy = weight / np.repeat(np.add.reduceat(weight, STARTS), [3, 1, 2])
    best = objective(p, reward, beta)
    assert (best >= objective(any_policy, reward, beta) - 1e-9).all()
    z = np.add.reduceat(np.exp((reward - 5) / beta), STARTS) / [3, 1, 2]
    assert best == pytest.approx(5 + beta * np.log(z))


@given(rewards=st.lists(SCORES, min_size=2, max_size=10), beta=BETAS)
def test_the_mean_gradient_over_orders_is_that_of_the_mean_reward(rewards, beta):
    """Oracle: finite differences of the objective, in the logits of one prompt."""
    reads = np.array(rewards, float)[:, :3]
    logits = np.array([0.3, -0.2, 0.1])
    p = np.exp(logits) / np.exp(logits).sum()

    def of_step(reward):
        inner = reward - beta * np.log(3 * p)
        return p * (inner - p @ inner)

    def j(logits):
        q = np.exp(logits) / np.exp(logits).sum()
        return q @ reads.mean(axis=0) - beta * q @ np.log(3 * q)

    slope = [(j(logits + step) - j(logits - step)) / 2e-5 for step in 1e-5 * np.eye(3)]
    assert np.mean([of_step(r) for r in reads], axis=0) == pytest.approx(
        slope, abs=1e-6
    )


def test_a_step_of_the_simulated_training_climbs_that_gradient_on_average():
    rewards = np.array([[[5.0, 1, 2]], [[1, 2, 4]]])
    missing = {
        drawn: training.climb(
            rewards, drawn, 0.01, np.random.default_rng(1), 2, 20_000, beta=1.0
        )
        for drawn in training.DRAWS
    }
    gone = {drawn: 1 - m[1] for drawn, m in missing.items()}
    ten = gone["ten orders each step"]
    assert gone["new order each step"] == pytest.approx(ten, rel=0.1)
    assert gone["new order each answer"] == pytest.approx(ten, rel=0.1)
    assert ten > 0.005


def test_training_ends_at_the_closed_form():
    rng = np.random.default_rng(0)
    rewards = rng.integers(1, 4, (1, 4, 3)) + rng.integers(0, 2, (10, 4, 3)).astype(
        float
    )
    for drawn in training.DRAWS:
        rng = np.random.default_rng(2)
        missing = training.climb(rewards, drawn, 0.05, rng, 600, 20, beta=1.0)
        assert missing[0] == 1
        assert -1e-9 < missing[-100:].mean() < 0.02


def test_equal_rewards_and_single_candidates_leave_the_policy_as_it_was():
    p = training.policy(np.array([4.0, 4, 4, 1, 2, 2]), STARTS, 0.1)
    assert p == pytest.approx([1 / 3, 1 / 3, 1 / 3, 1, 1 / 2, 1 / 2])
    assert training.divergence(p, STARTS) == pytest.approx([0, 0, 0])
    assert not training.normalised(np.array([4.0, 4, 4, 1, 2, 2]), STARTS).any()


def test_a_beta_of_0_shares_among_the_best_and_is_the_limit():
    reward = np.array([4.0, 5, 5 + 1e-12, 1, 2, 3])
    p = training.policy(reward, STARTS, 0)
    assert p == pytest.approx([0, 0.5, 0.5, 1, 0, 1])
    assert training.policy(reward, STARTS, 1e-3) == pytest.approx(p, abs=1e-6)
    assert training.policy(reward, STARTS, np.inf) == pytest.approx(
        [1 / 3, 1 / 3, 1 / 3, 1, 1 / 2, 1 / 2]
    )


def test_best_of_n_is_what_drawing_finds():
    rng = np.random.default_rng(3)
    reward = np.array([3.0, 5, 5, 2, 4, 4])
    quality = np.array([1.0, 2, 5, 3, 4, 1])
    drawn = [rng.permutation(3)[:2] for _ in range(20_000)]
    picked = [quality[rng.choice(d[reward[d] == reward[d].max()])] for d in drawn]
    found = training.best_of(reward, quality, STARTS, 2)
    assert found[0] == pytest.approx(np.mean(picked), abs=0.04)
    assert found[1:] == pytest.approx([3, 2.5])
    assert training.best_of(reward, quality, STARTS, 1) == pytest.approx(
        [8 / 3, 3, 2.5]
    )


def test_normalised_and_ranked_rewards_are_scipys():
    reward = np.array([[3.0, 5, 5, 2, 4, 1], [1, 2, 3, 2, 1, 4]])
    z = training.normalised(reward, STARTS)
    assert z[:, :3] == pytest.approx(stats.zscore(reward[:, :3], axis=1))
    assert training.ranks(reward, STARTS)[0] == pytest.approx([0, 0.75, 0.75, 0, 1, 0])
    assert np.abs(training.clipped(reward, STARTS)).max() <= 1


def test_an_equal_distance_is_reached_or_said_to_be_out_of_reach():
    reward = np.array([3.0, 5, 5, 2, 4, 1])
    beta = training.beta_at(reward, STARTS, 0.1)
    found = training.divergence(training.policy(reward, STARTS, beta), STARTS).mean()
    assert found == pytest.approx(0.1)
    # two tie for the first prompt
    assert np.isnan(training.beta_at(reward, STARTS, 0.5))
    assert np.isnan(training.beta_at(np.ones(6), STARTS, 0.1))


def test_the_first_figures_come_out():
    """Each number of the first study, by a plain loop over prompts and candidates."""
    of = qwen()
    ends = np.append(of.starts[1:], len(of.quality))

    def quality(reward):
        found = []
        for a, b in zip(of.starts, ends, strict=True):
            weight = np.exp(reward[a:b] / 0.1 - max(reward[a:b]) / 0.1)
            found.append(weight @ of.quality[a:b] / weight.sum())
        return np.mean(found)

    for readout, (ascending, low, high, ten) in {
        "score": (3.38, 3.23, 3.76, 3.69),
        "expected score": (3.76, 3.71, 3.87, 3.84),
    }.items():
        reads = of.rewards[readout]
        each = [quality(r) for r in reads]
        assert each[of.ascending] == pytest.approx(ascending, abs=0.006)
        assert (min(each), max(each)) == pytest.approx((low, high), abs=0.006)
        assert quality(reads.mean(axis=0)) == pytest.approx(ten, abs=0.006)


def test_p_is_adjusted_over_all_judges_sets_and_readouts():
    table = recorded("training_policies")
    part = table[(table.beta == 0.1) & (table.trained_on == "new order each step")]
    assert len(part) == 16 == len(set(product(part.judge, part.dataset, part.readout)))
    expected = stats.false_discovery_control(part["p"])
    assert part["p_adjusted"].to_numpy() == pytest.approx(expected, rel=1e-4)


def test_a_judge_that_cannot_grade_gives_no_gain():
    table = recorded("training_policies").query(
        "judge == 'SmolLM2' and not trained_on.str.contains('−')"
    )
    assert (table[table.gain > 0].p_adjusted.dropna() > 0.05).all()
    ours = table[table.trained_on.isin(["one fixed order", "new order each step"])]
    assert len(ours) == 2 * 2 * 2 * len(training.BETAS)
    assert (ours.gain_low < 0).all()
    blind = recorded("training_planted").query("not sees")
    assert (blind.new_low < 0).all()
    assert (blind.new_high > 0).all()
    sees = recorded("training_planted").query("sees")
    assert (sees.new_low > 0).all()


def test_what_the_chapter_says_in_words():
    table = recorded("training_policies").set_index(
        ["judge", "dataset", "readout", "beta", "trained_on"]
    )
    table = table.sort_index()
    more = "new order each step − one fixed order"
    at = table.xs((0.1, more), level=["beta", "trained_on"])
    clear = at[at.p_adjusted < 0.05]
    assert clear.index.tolist() == [("SmolLM2", "minibench", "score")]
    assert clear.gain.item() < 0
    kl = table.kl["SmolLM2", "minibench", "score", 0.1]
    assert kl["one fixed order"] < kl["new order each step"] / 2
    budgets = recorded("training_budgets").set_index(
        ["judge", "dataset", "readout", "kl", "trained_on"]
    )
    assert (
        clear.gain.item()
        < 5 * budgets.gain["SmolLM2", "minibench", "score", 0.1, more]
        < 0
    )
    reads = table.loc["Qwen 1.5B", "minibench", "score", 0.1]
    spread = reads.highest - reads.lowest
    assert 0.4 < spread["one neutral edit"] / spread["one fixed order"] < 0.6
    assert reads.own_gain["one neutral edit"] > reads.own_gain["one fixed order"] / 2
    lowered = reads.lowered
    assert lowered["new neutral edit each step"] > lowered["new order each step"] / 2
    weak = table.loc["SmolLM2", "minibench", "score", 0.1]
    assert weak.own_gain_low[training.BEYOND] > 0
    assert reads.own_gain_low[training.BEYOND] < 0
    for dataset in ("minibench", "summeval"):
        gentle = table.loc["Qwen 1.5B", dataset, "score", 3.0]
        assert abs(gentle.gain[more]) < 0.005
        assert gentle.gain_low["new order each step"] > 0
        assert gentle.p_adjusted["new order each step"] < 0.05
        assert gentle.kl["new order each step"] < 0.03
    reward = recorded("training_policies").reward_gain.dropna()
    assert (reward > -1e-9).all()
    changes = recorded("training_transforms").query("judge == 'Qwen 1.5B'").dropna()
    assert ((changes.difference_low < 0) & (changes.difference_high > 0)).all()


def test_what_the_chapter_says_of_simulated_judges():
    steps = recorded("training_speed").pivot(
        index="readout", columns="drawn", values="steps"
    )
    assert (steps["new order each answer"] > steps["new order each step"]).all()
    table = recorded("training_planted").query("sees and readout == 'score'")
    loss = table.set_index(["preference", "wavering"]).difference.sort_index()
    assert loss[0.0].is_monotonic_increasing
    assert loss[1.0, 0.0] < loss[0.0, 0.3] < loss[0.0, 0.9] < loss[4.0, 0.0]
    many = recorded("training_planted")
    assert (many.new - many.many).abs().max() < 0.06


def test_neutral_edits_are_of_the_ascending_prompt_and_of_the_same_texts():
    of = qwen()
    assert of.placebo["score"].shape == of.rewards["score"].shape == (10, 180)
    up = of.rewards["score"][of.ascending]
    assert (of.placebo["score"] == up).mean() > 0.7
    assert (of.placebo["score"] != up).any()


def test_bad_input_is_refused(mirror):
    """On HANNA nobody competes."""
    for beta in (-0.1, np.nan):
        with pytest.raises(ValueError, match="the penalty must be 0 or more"):
            training.policy(np.ones(6), STARTS, beta)
    with pytest.raises(ValueError, match="a candidate has no reward"):
        training.policy(np.array([1, np.nan, 2, 3, 4, 5]), STARTS, 0.1)
    with pytest.raises(ValueError, match="no candidates to choose between"):
        training.choice("smollm2-135m-instruct-vllm", "hanna")
