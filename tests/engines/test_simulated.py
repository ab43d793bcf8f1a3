"""The frame `simulate` gives: the contract, the same answers as the judge,
independence of rows.
"""

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rubricnb as rb
from rubricnb.engines.fitting import stand_in
from rubricnb.engines.profiles import open_profile
from rubricnb.engines.simulated import SimulatedJudge, simulate

CROOKED = replace(
    open_profile("middle-averse"),
    direction=0.3,
    criterion_position=(0.3, -0.2),
    unparsed=(("1-2-3-4-5", 0.5),),
)


@pytest.fixture(scope="module")
def items():
    return rb.load("minibench", n_items=30)


def plans(items, **how):
    designs = [rb.balanced(5), rb.shuffled(5, 3), rb.fixed(5, 3), rb.placebo(5, 3)]
    yield rb.plan(items, designs, **how)
    yield rb.plan(items, rb.balanced(9), **how)
    yield rb.plan(items, [rb.balanced(3), rb.fixed(3, 2)], **how, template="criteria")


@pytest.fixture(scope="module")
def all_answers(items):
    """By setting: a plan, its items, and all answers by request and criterion."""
    requests, _, criteria = plans(items, readout="score", temperature=0.7)
    answers = {}
    for setting, plan in ((1, requests), (2, criteria)):
        every = simulate(plan, items, CROOKED)
        answers[setting] = plan, items, every.set_index(["request_id", "criterion"])
    return answers


def equal(a, b):
    missing = a.isna().to_numpy()
    if not (missing == b.isna().to_numpy()).all():
        return False
    return a[~missing].astype(object).tolist() == b[~missing].astype(object).tolist()


@pytest.mark.in_turn
@pytest.mark.parametrize(
    "how",
    [
        {},
        {"readout": "feedback"},
        {"readout": "score", "temperature": 0.7},
        {"readout": "feedback", "temperature": 0.3},
    ],
)
def test_the_judge_and_the_frame_give_the_same_judgments(items, how):
    for requests in plans(items, **how):
        asked = rb.run(requests, SimulatedJudge(CROOKED, seed=3), store=":memory:")
        computed = simulate(requests, items, CROOKED, seed=3)
        assert set(computed) == set(asked)
        differ = [c for c in computed if not equal(computed[c], asked[c])]
        assert set(differ) <= {"key", "seconds"}
        assert [
            c for c in computed if str(computed[c].dtype) != str(asked[c].dtype)
        ] == []


@pytest.mark.in_turn
@pytest.mark.parametrize("setting", [1, 2])
@given(data=st.data())
@settings(max_examples=15, deadline=None)
def test_an_answer_does_not_depend_on_what_else_is_asked(all_answers, setting, data):
    plan, items, every = all_answers[setting]
    rows = data.draw(
        st.lists(st.integers(0, len(plan) - 1), min_size=1, max_size=40, unique=True)
    )
    few = simulate(plan.iloc[rows], items, CROOKED)
    again = every.loc[list(zip(few.request_id, few.criterion, strict=True))]
    assert few.score.tolist() == again.score.tolist()
    assert few.key.tolist() == again.key.tolist()


def test_an_answer_does_not_depend_on_the_other_items(items):
    plan = rb.plan(items, rb.balanced(5))
    alone = items[items.item_id == items.item_id.iloc[4]]
    own = plan[plan.item_id == alone.item_id.iloc[0]]
    every = simulate(plan, items, CROOKED)
    assert (
        simulate(own, alone, CROOKED).score.tolist()
        == every.score[every.item_id == alone.item_id.iloc[0]].tolist()
    )


def test_seed_and_draw_make_another_judge_and_nothing_else_does(items):
    plan = rb.plan(items, rb.balanced(5))
    one, again, seed, draw = (
        simulate(plan, items, p, seed=s)
        for p, s in (
            ("unbiased", 0),
            ("unbiased", 0),
            ("unbiased", 1),
            (replace(open_profile("unbiased"), draw=1), 0),
        )
    )
    pd.testing.assert_frame_equal(one, again)
    for other in (seed, draw):
        assert (one.score != other.score).mean() > 0.05
        assert not set(one.key) & set(other.key)


def test_keys_name_requests(items):
    _, _, criteria = plans(items)
    frame = simulate(criteria, items, "unbiased")
    assert frame.key.str.fullmatch("[0-9a-f]{64}").all()
    assert (frame.groupby("key").request_id.nunique() == 1).all()
    assert frame.key.nunique() == frame.request_id.nunique() == len(criteria)


def test_answers_without_a_score_come_at_the_planted_rate():
    items = stand_in("hanna")
    lossy = replace(open_profile("unbiased"), unparsed=(("1-2-3-4-5", 0.5), ("*", 0.1)))
    got = simulate(rb.plan(items, rb.balanced(5), readout="feedback"), items, lossy)
    lost = (got.status == "unparsed").groupby(got.ordering, observed=True).mean()
    assert abs(lost["1-2-3-4-5"] - 0.5) < 0.08
    assert abs(lost.drop("1-2-3-4-5") - 0.1).max() < 0.05
    assert (got.score.isna() == (got.status == "unparsed")).all()
    assert (got.position.isna() == got.score.isna()).all()
    constrained = simulate(
        rb.plan(items, rb.balanced(5), readout="score"), items, lossy
    )
    assert (constrained.status == "ok").all()


def test_identity_names_every_parameter():
    judge = SimulatedJudge(CROOKED, seed=3)
    identity = json.loads(judge.identity)
    assert identity["seed"] == 3
    assert identity["position_preference"] == list(CROOKED.position_preference)
    assert (
        SimulatedJudge("unbiased").identity
        != SimulatedJudge("unbiased", seed=1).identity
    )


def test_requests_without_their_items_are_refused(items):
    requests = rb.plan(items, rb.balanced(5))
    with pytest.raises(ValueError, match="items lack"):
        simulate(requests, items.iloc[1:], "unbiased")
    with pytest.raises(ValueError, match="have no items"):
        simulate(pd.DataFrame(requests), None, "unbiased")
    criteria = rb.plan(items, rb.balanced(3), template="criteria")
    with pytest.raises(ValueError, match=r"items lack .* or its criteria"):
        simulate(criteria, items.iloc[1:], "unbiased")
    assert len(simulate(requests, None, "unbiased")) == len(requests)


def test_no_requests_give_no_judgments(items):
    assert (
        len(simulate(rb.plan(items, rb.balanced(5)).iloc[:0], items, "unbiased")) == 0
    )


def test_planted_label_shift_and_reference_pull_show_in_frame_and_judge(items):
    planted = replace(
        open_profile("unbiased"),
        name="planted",
        wording_noise=0.0,
        reference_pull=0.5,
        label_shift=(("letter", -0.7),),
    )
    how = {
        "labels": ["numeric", "letter"],
        "reference": ["none", 1, 5],
        "readout": "logprobs",
    }
    requests = rb.plan(items, rb.fixed(5, 1), **how)
    frame = simulate(requests, items, planted)
    asked = rb.run(requests, SimulatedJudge(planted), store=":memory:")
    assert frame["score"].tolist() == asked["score"].tolist()
    by = frame.set_index(["item_id", "labels", "reference_score"])[
        "expected_score"
    ].unstack([1, 2])
    by = by.dropna()
    # away from the ends
    inner = by[(by["numeric", "none"] > 2) & (by["numeric", "none"] < 4)]
    assert np.allclose(
        inner["letter", "none"] - inner["numeric", "none"], -0.7, atol=0.15
    )
    for k in (1, 5):
        way = (inner["numeric", str(k)] - inner["numeric", "none"]) / (
            k - inner["numeric", "none"]
        )
        assert np.allclose(way, 0.5, atol=0.15)


def test_a_full_mark_reference_pulls_only_where_the_dataset_has_one(items):
    pulled = replace(open_profile("reference-pulled"), wording_noise=0.0)
    with_one = items.assign(reference=["R"] + [""] * (len(items) - 1))
    requests = rb.plan(with_one, rb.fixed(5, 1), readout="logprobs")
    moved = (
        simulate(requests, with_one, pulled)["expected_score"]
        - simulate(requests, items, pulled)["expected_score"]
    )
    assert moved.iloc[0] > 0.2
    assert (moved.iloc[1:] == 0).all()
    asked = rb.run(requests, SimulatedJudge(pulled), store=":memory:")
    assert (
        asked["score"].tolist()
        == simulate(requests, with_one, pulled)["score"].tolist()
    )
