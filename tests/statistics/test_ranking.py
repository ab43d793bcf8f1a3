from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from people import all_designs, both
from planted import FIRST, freedom
from scipy import stats

import rubricnb as rb
from rubricnb.core.permutation import balanced, fixed, placebo
from rubricnb.engines.fitting import stand_in
from rubricnb.engines.profiles import open_profile
from rubricnb.statistics.ranking import prompt_measures, rank_reversal, reversal_effect

MEASURES = [
    "kendall_tau",
    "flip_first",
    "flip_strict",
    "flip_expected",
    "discordant",
    "tied_once",
]
scores = st.lists(st.integers(1, 4), min_size=3, max_size=5)


def loop(x, y):
    """The definitions, one prompt, in plain Python."""
    pairs = [(i, j) for i in range(len(x)) for j in range(i)]
    signs = [(np.sign(x[i] - x[j]), np.sign(y[i] - y[j])) for i, j in pairs]
    top_x = {i for i, v in enumerate(x) if v == max(x)}
    top_y = {i for i, v in enumerate(y) if v == max(y)}
    same = sum(
        (i in top_x) / len(top_x) * (i in top_y) / len(top_y) for i in range(len(x))
    )
    return {
        "flip_first": float(min(top_x) != min(top_y)),
        "flip_strict": float(not top_x & top_y),
        "flip_expected": 1 - same,
        "discordant": np.mean([a * b < 0 for a, b in signs]),
        "tied_once": np.mean([(a == 0) != (b == 0) for a, b in signs]),
    }


@given(scores, scores, st.integers(0, 2))
def test_measures_equal_scipy_and_a_loop(x, y, absent):
    n = min(len(x), len(y))
    x, y = x[:n], y[:n]
    wide = [np.array([[*v, *[np.nan] * absent]], dtype=float) for v in (x, y)]
    found = {name: value[0] for name, value in prompt_measures(*wide).items()}
    tau = stats.kendalltau(x, y).statistic
    assert found.pop("kendall_tau") == pytest.approx(tau, nan_ok=True)
    assert found == pytest.approx(loop(x, y))
    assert found["flip_strict"] <= found["flip_expected"]


def test_rank_reversal_averages_prompts():
    judgments = both(gamma=FIRST)
    row = rank_reversal(judgments).iloc[0]
    means = judgments.groupby(["design", "group_id", "candidate"], observed=True)[
        "score"
    ].mean()
    measures = []
    for prompt in judgments["group_id"].unique():
        x, y = (
            means[d, prompt].to_numpy(float).round(9) for d in ("balanced", "fixed")
        )
        measures.append({"kendall_tau": stats.kendalltau(x, y).statistic, **loop(x, y)})
    expected = pd.DataFrame(measures)
    assert row[MEASURES].to_dict() == pytest.approx(expected.mean().to_dict())
    assert row.n_undefined == expected["kendall_tau"].isna().sum()
    first = expected["flip_first"]
    t = stats.t.isf(0.025, freedom(first))
    for end in (row.flip_first_low, row.flip_first_high):  # Wilson's
        at_end = np.sqrt(end * (1 - end) / 39)
        assert abs(end - first.mean()) == pytest.approx(t * at_end)
    assert (row.n_prompts, row.n_clusters) == (40, 40)
    flips = ("flip_strict", "flip_expected", "flip_first", "discordant")
    rare = [name for name in flips if (expected[name] > 0).sum() < 10]
    assert rare
    assert row.reason == f"{', '.join(rare)}: fewer than 10 events"


def test_criteria_of_one_prompt_are_ranked_apart():
    judgments = both()
    number = judgments["item_id"].cat.codes.to_numpy() // 4
    judgments["criterion"] = np.where(number % 2, "wit", "plot")
    judgments["group_id"] = "g" + pd.Series(number // 2).astype(str)
    assert rank_reversal(judgments).iloc[0].n_prompts == 40


def test_rounding_alone_flips_a_third_of_the_winners():
    """No judge at all: qualities against their own rounding (normal,
    sd 0.7, four candidates).
    """
    quality = np.random.default_rng(0).normal(3, 0.7, (20_000, 4)).clip(1, 5)
    measures = prompt_measures(quality, np.round(quality))
    assert np.nanmean(measures["kendall_tau"]) == pytest.approx(0.815, abs=0.01)
    assert measures["flip_first"].mean() == pytest.approx(0.325, abs=0.03)
    assert measures["flip_strict"].mean() == 0


# --- controls
# --------------------------------------------------------------------------------------


PLACEBO = "placebo/half-1"
HALVES = [
    ("fixed/half-1", "fixed/half-2"),
    ("balanced/forward", "balanced/reverse"),
    ("shuffled/half-1", "shuffled/half-2"),
    ("placebo/half-2", PLACEBO),
    ("fixed/half-1", PLACEBO),
    ("balanced/forward", PLACEBO),
    ("balanced/reverse", PLACEBO),
]


def halves(**planted):
    judgments = all_designs(**planted)
    return judgments, pd.concat([rank_reversal(judgments, *pair) for pair in HALVES])


def effect_of(judgments, control="fixed", **options):
    found = reversal_effect(judgments, **options)
    return found[found["control"] == control].set_index("measure")


def test_the_order_effect_is_the_mean_of_two_paired_differences():
    judgments, found = halves(gamma=np.array(FIRST) * 4, concentration=0.5)
    against = found[found["b"] == PLACEBO].set_index("a")
    for control, half in (("fixed", "fixed/half-1"), ("placebo", "placebo/half-2")):
        effect = effect_of(judgments, control)
        moved = against.loc[
            ["balanced/forward", "balanced/reverse"], effect.index
        ].mean()
        still = against.loc[half, effect.index].astype(float)
        np.testing.assert_allclose(effect["effect"], moved - still, atol=1e-12)
        np.testing.assert_allclose(
            effect[["reordered", "controlled"]], np.c_[moved, still]
        )
        assert (effect["low"] < effect["effect"]).all()
        assert (effect["effect"] < effect["high"]).all()


def without_order_effect(seed, temperature=1.0):
    """Answers of a judge that wordings move and orderings do not."""
    items = stand_in("mt-bench")
    judge = replace(
        open_profile("unbiased"),
        cluster_order_noise=0.0,
        order_noise=0.0,
        wording_noise=1.0,
    )
    designs = [balanced(5), placebo(5, 10), fixed(5, 10)]
    asked = rb.plan(items, designs, readout="score", temperature=temperature, seed=seed)
    return rb.simulate(asked, items, judge, seed=seed)


@pytest.mark.slow
def test_the_interval_of_the_order_effect_covers_none_where_wordings_matter():
    found = [reversal_effect(without_order_effect(seed)) for seed in range(40)]
    table = pd.concat(found)
    table["covers"] = (table["low"] <= 0) & (table["high"] >= 0)
    hits = table.groupby(["control", "measure"])["covers"].sum()
    assert (hits["fixed"] >= stats.binom.ppf(0.0005, 40, 0.95)).all()
    # Five wordings against one: the other control sees an effect where there is none.
    assert (hits["placebo"] < stats.binom.ppf(0.0005, 40, 0.95)).any()


def test_a_greedy_judge_that_ignores_the_order_has_no_order_effect_at_all():
    found = effect_of(without_order_effect(0, temperature=0.0))
    assert (found["effect"] == 0).all()
    assert found[["low", "high", "p", "mde"]].isna().all(axis=None)
    assert (found["reason"] == "the same difference in every cluster").all()
    # 80 prompts, none of which flips more
    assert found["p_equivalent"].between(0.005, 0.05).all()
    assert (found["controlled"] > 0).any()
