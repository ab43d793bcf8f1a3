"""Statistics that stand in a chapter: against dummy regression,
planted effects, designs.
"""

import itertools
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import statsmodels.formula.api as smf
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from sklearn.isotonic import IsotonicRegression

import rubricnb as rb
from rubricnb.core.permutation import balanced, fixed, shuffled, williams
from rubricnb.rulers.calibration import Calibrator

NOTEBOOKS = Path(__file__).parents[2] / "notebooks"


def defined(chapter, *names, **values):
    """The functions as a chapter shows them."""
    text = (NOTEBOOKS / f"{chapter}.md").read_text("utf-8")
    blocks = [
        b
        for cell in re.findall(r"```{code-cell}.*?\n(.*?)```", text, re.S)
        for b in cell.split("\n\n\n")
    ]
    space = {"np": np, "pd": pd, "rb": rb, "stats": stats, **values}
    for name in names:
        (block,) = (b for b in blocks if b.lstrip().startswith(f"def {name}("))
        exec(block, space)
    return [space[name] for name in names]


CRITERIA = ("depth", "plot", "style", "wit")


def criteria_items(n_texts, criteria=CRITERIA, texts_per_cluster=1):
    rows = [
        {
            "item_id": f"t{t}/{c}",
            "text_id": f"t{t}",
            "cluster_id": f"g{t // texts_per_cluster}",
            "dataset": "planted",
            "instruction": "i",
            "response": "r",
            "criterion": c,
            "rubric_id": c,
            "human": 1.0 + (t + 2 * k) % 5,
        }
        for t in range(n_texts)
        for k, c in enumerate(criteria)
    ]
    items = rb.core.frames.Items(pd.DataFrame(rows))
    levels = pd.DataFrame({"score": range(1, 6), "variant": "standard"})
    rubrics = pd.DataFrame({"rubric_id": criteria, "criterion": criteria})
    items.rubrics = rubrics.merge(levels, how="cross").assign(
        definition="d", description="d"
    )
    return items


def planted(design, n_texts=30, position=None, predecessor=None, noise=0.3, seed=0):
    """Judgments with known effects: estimates must come near them."""
    items = criteria_items(n_texts)
    requests = rb.plan(items, design, readout="score", seed=seed, template="criteria")
    frame = rb.simulate(requests, items, "unbiased", seed=seed)
    frame = frame.sort_values(["request_id", "criterion_position"], kind="stable")
    before = (
        frame.groupby("request_id", observed=True)["criterion"].shift().astype("object")
    )
    rng = np.random.default_rng(seed)
    base = frame.groupby(["item_id", "criterion"], observed=True).ngroup() % 7 / 3
    value = base + rng.normal(0, noise, len(frame))
    if position is not None:
        value += np.asarray(position)[frame["criterion_position"].to_numpy(int) - 1]
    if predecessor is not None:
        value += before.map(predecessor).fillna(0.0).to_numpy(float)
    return frame.assign(expected_score=value.to_numpy(), before=before.fillna("none"))


@pytest.fixture(scope="module")
def model():
    return defined("10_criterion_order", "place_and_predecessor")[0]


def estimates(model, judgments):
    return model(judgments, "expected_score").set_index(["effect", "level"])


@pytest.mark.parametrize("design", [balanced(4), williams(4), shuffled(4, 6)])
def test_estimates_are_those_of_a_regression_with_dummies(model, design):
    judgments = planted(design, 12, (0.3, 0, 0, -0.2), {"plot": 0.4})
    frame = judgments.assign(
        unit=judgments["item_id"].astype("str") + judgments["criterion"].astype("str"),
        y=judgments["expected_score"],
        q=judgments["criterion_position"].astype(int),
    )
    for k, name in enumerate(CRITERIA[:-1]):
        own = (frame["before"] == name).astype(float)
        frame[f"b{k}"] = own - (frame["before"] == CRITERIA[-1])
    fit = smf.ols("y ~ C(unit) + C(q, Sum) + b0 + b1 + b2", frame).fit()
    found = estimates(model, judgments)["estimate"]
    assert found.groupby("effect").sum().abs().max() < 1e-10
    for k, name in enumerate(CRITERIA[:-1]):
        assert found["predecessor", name] == pytest.approx(
            fit.params[f"b{k}"], abs=1e-8
        )
        assert found["position", str(k + 1)] == pytest.approx(
            fit.params[f"C(q, Sum)[S.{k + 1}]"], abs=1e-8
        )


def test_planted_effects_lie_in_their_intervals_and_are_found(model):
    position, after = (0.3, 0.1, -0.1, -0.3), (0.4, -0.4, 0.1, -0.1)
    predecessor = dict(zip(CRITERIA, after, strict=True))
    found = estimates(model, planted(williams(4), 60, position, predecessor))
    truth = [*position, *after]
    assert ((found["low"] < truth) & (found["high"] > truth)).sum() >= 7
    assert (found["p_joint"] < 1e-6).all()


def test_intervals_treat_texts_of_a_cluster_as_one(model):
    items = criteria_items(20, texts_per_cluster=2)
    requests = rb.plan(items, williams(4), readout="score", template="criteria")
    judgments = rb.simulate(requests, items, "criterion-biased")
    alone = model(judgments.assign(cluster_id=judgments["item_id"]))
    together = model(judgments)
    np.testing.assert_allclose(alone["estimate"], together["estimate"])
    assert not np.allclose(alone["low"], together["low"])


def test_what_cannot_be_estimated_is_nan(model):
    unread = planted(williams(4), 3).assign(expected_score=np.nan)
    for judgments in (planted(fixed(4, 3), 5), unread):
        assert model(judgments, "expected_score")["estimate"].isna().all()
    found = model(planted(williams(4), 1), "expected_score")  # one cluster
    assert found["estimate"].notna().all()
    assert found[["low", "high", "p_joint"]].isna().all().all()


def test_lost_reads_are_left_out_but_still_stand_before_others(model):
    judgments = planted(williams(4), 20, predecessor={"plot": 1.0}, noise=0.0)
    lost = judgments["criterion"].eq("plot") & judgments["criterion_position"].eq(2)
    judgments = judgments.assign(expected_score=judgments["expected_score"].mask(lost))
    found = estimates(model, judgments)["estimate"]
    assert found["predecessor", "plot"] - found["predecessor", "wit"] == pytest.approx(
        1.0
    )


@pytest.fixture(scope="module")
def halves():
    names = "costs_of", "by_cluster", "on_halves"
    _, by_cluster, on_halves = defined("A_bias_cost", *names, seed=0, splits=20)
    return lambda judgments, value="score": on_halves(by_cluster(judgments, value))


def answered(seed=0, n_items=None, readout="score", profile="unbiased"):
    items = rb.load("minibench", n_items=n_items, seed=seed)
    return rb.simulate(
        rb.plan(items, balanced(5), readout=readout), items, profile, seed=seed
    )


@pytest.mark.in_turn
def test_a_chosen_cost_is_biased_down_and_the_held_out_one_is_not(halves):
    table = pd.DataFrame([halves(answered(seed)) for seed in range(5)])
    assert (table["chosen half"] < table["other half"]).all()
    # Without a preference the choice is among noise:
    # held out, it is like any candidate.
    assert table["other half"].mean() == pytest.approx(
        table["mean of ten"].mean(), rel=0.1
    )
    assert table["same choice, % of halvings"].mean() < 50


@pytest.mark.parametrize("value", ["score", "expected_score"])
def test_costs_are_those_of_the_package(halves, value):
    judgments = answered(readout="logprobs", profile="first-biased")
    table = rb.score_position(judgments, value=value)
    costs = rb.bias_cost(table).set_index("ordering")["cost"]
    found = halves(judgments, value)
    assert found["cheapest on all"] == costs.idxmin()
    assert found["its cost"] == pytest.approx(100 * costs.min(), rel=1e-4)


def test_halves_need_two_clusters(halves):
    judgments = answered()
    found = halves(
        judgments[judgments["cluster_id"] == judgments["cluster_id"].iloc[0]]
    )
    assert "one cluster" in found["reason"]
    assert np.isnan(found["other half"])


@pytest.fixture(scope="module")
def best_monotone():
    return defined(
        "17_calibration", "best_monotone", IsotonicRegression=IsotonicRegression
    )[0]


@given(
    st.lists(st.tuples(st.integers(0, 5), st.integers(1, 4)), min_size=2, max_size=9)
)
def test_the_best_map_is_the_best_of_all_monotone_maps(best_monotone, pairs):
    z, y = np.array(pairs, dtype=float).T
    places, groups = np.unique(z, return_inverse=True)
    kappas = [
        rb.quadratic_weighted_kappa(np.array(labels)[groups], y)
        for labels in itertools.combinations_with_replacement(np.unique(y), len(places))
    ]
    found = rb.quadratic_weighted_kappa(best_monotone(z, y), y)
    if np.ptp(y) == 0:
        assert np.isnan(found)
    else:
        assert found == pytest.approx(np.nanmax(kappas), abs=1e-9)


def test_the_calibration_is_close_to_the_best_map_there_is(best_monotone):
    """200 calibration and 2,000 test essays: mean QWK over 50 studies,
    ours minus the best.
    """
    cuts = np.array([-2.0, -1.2, 0.1, 1.4, 2.2])
    (essays,) = defined("17_calibration", "essays", label_cuts=cuts)
    gaps = []
    for seed in range(50):
        x, y = essays(seed, 2_200)
        calibrator = Calibrator().fit(x[:200], y[:200])
        ours = rb.quadratic_weighted_kappa(calibrator.predict(x[200:]), y[200:])
        best = best_monotone(calibrator.latent(x[200:]), y[200:])
        gaps.append(ours - rb.quadratic_weighted_kappa(best, y[200:]))
    assert max(gaps) <= 1e-9
    assert np.mean(gaps) >= -0.03


def test_acceptance_counts_attempts_and_answers():
    (acceptance,) = defined("14_reference_answers", "acceptance")
    attempts = pd.DataFrame(
        {
            "item_id": list("aabbcc"),
            "cluster_id": list("aabbcc"),
            "target": 2,
            "round": [1, 2] * 3,
            "accepted": [False, True, False, False, True, True],
        }
    )
    found = acceptance(attempts)
    assert found["attempts"] == 6
    assert found["accepted, %"] == pytest.approx(50)
    left = np.array([2, 3, 1]) / 4  # without a, b, c
    half = 100 * stats.t.ppf(0.975, 2) * np.sqrt(2 * left.var())
    assert half > 50
    assert (found["low"], found["high"]) == (0, 100)
    # three accepted of three answers
    assert found["found in the end, %"] == pytest.approx(100)
    assert found["mean round"] == pytest.approx(5 / 3)
    none = acceptance(attempts.assign(accepted=False))
    assert none["accepted, %"] == 0
    assert none[["low", "high", "mean round"]].isna().all()  # all alike: no interval


def rated(n_texts, noise=0.0, seed=0):
    """Judgments in ten orders, their items' ratings,
    and the one ordering without extra noise.
    """
    items = criteria_items(n_texts, ("depth",))
    judgments = rb.simulate(rb.plan(items, balanced(5)), items, "unbiased", seed=seed)
    other = judgments.ordering.astype(str) != "1-2-3-4-5"
    extra = np.random.default_rng(seed).normal(0, noise, len(judgments)) * other
    return judgments.assign(score=judgments.score.astype(float) + extra), items


def rank_by_r(*arguments):
    (function,) = defined("A_bias_cost", "rank_by_r", seed=0)
    return function(*arguments)


def test_the_rank_of_an_ordering_equals_a_loop():
    judgments, items = rated(40)
    r = rb.agreement(judgments, items, by="ordering").set_index("ordering").r
    rank, low, high = rank_by_r(judgments, items, "3-4-5-1-2")
    assert rank == 1 + sum(value > r["3-4-5-1-2"] for value in r)
    assert low <= rank <= high
    assert high - low > 3  # r are nearly equal


def test_equal_scores_missing_ratings_or_one_prompt_have_no_rank_or_no_interval():
    judgments, items = rated(10)
    assert np.isnan(rank_by_r(judgments.assign(score=2.0), items, "1-2-3-4-5")).all()
    assert np.isnan(rank_by_r(judgments, items.assign(human=np.nan), "1-2-3-4-5")).all()
    alone = rank_by_r(
        judgments.assign(cluster_id="c"), items.assign(cluster_id="c"), "1-2-3-4-5"
    )
    assert np.isfinite(alone[0])
    assert np.isnan(alone[1:]).all()
