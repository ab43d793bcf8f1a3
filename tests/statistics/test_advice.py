"""Advice: every row, with planted judges of known needs, and where nothing can be told."""

import numpy as np
import pandas as pd
import pytest
from planted import FIRST, make_judgments

import rubricnb as rb

STEPS = ["texts", "orders", "direction", "readout", "labels"]


def advice(judgments, *args, **options):
    return rb.advise(judgments, *args, **options).set_index("step")


def rated(judgments, n, rng, noise=0.5):
    mean = judgments.groupby("item_id", observed=True)["score"].mean().astype(float)
    chosen = mean.sample(n, random_state=int(rng.integers(1_000)))
    human = 1 + chosen + noise * rng.normal(size=n)
    return pd.DataFrame({"item_id": chosen.index.astype(str), "human": human.to_numpy()})


@pytest.fixture(scope="module")
def wavering():
    """A judge that mostly guesses among the scores near its opinion."""
    return make_judgments(60, concentration=3.0, seed=1)


@pytest.fixture(scope="module")
def steady():
    """A judge that answers a text the same whatever the order."""
    rng = np.random.default_rng(2)
    return make_judgments(60, concentration=40.0, quality=rng.integers(1, 6, 60), seed=2)


def test_all_steps_stand_in_order_for_every_judge(wavering, steady):
    both = pd.concat([wavering.assign(judge="one"), steady.assign(judge="two")], ignore_index=True)
    found = rb.advise(both)
    assert found["step"].tolist() == STEPS * 2
    assert found["judge"].tolist() == ["one"] * 5 + ["two"] * 5


def test_a_wavering_judge_is_asked_in_ten_orders_and_a_steady_one_in_one(wavering, steady):
    go, stop = (advice(j, price=0.01).loc["orders"] for j in (wavering, steady))
    assert "average 10 balanced orders" in go["do"]
    assert go["cost"] == pytest.approx(9 * 60 * 0.01)
    assert 1.05 < go["low"] < go["gain"] < go["high"]
    assert "one order" in stop["do"]
    assert stop["cost"] == 0
    assert stop["gain"] == pytest.approx(1, abs=0.01)
    pilot = rb.will_permuting_help(wavering, k=10)["gain"].iloc[0]
    assert go["gain"] == pytest.approx(pilot, rel=1e-6)


def test_a_judge_that_prefers_a_direction_is_told_to_average_both():
    moved = advice(make_judgments(60, gamma=2 * np.array(FIRST), seed=3)).loc["direction"]
    still = advice(make_judgments(60, seed=3)).loc["direction"]
    assert moved["high"] < 0 or moved["low"] > 0
    assert "average both directions" in moved["do"]
    assert still["low"] < 0 < still["high"]
    assert "no shift by direction is seen" in still["do"]
    effect = rb.order_effect(make_judgments(60, seed=3)).iloc[0]
    assert still["gain"] == effect["ascending_minus_descending"]


def test_probabilities_show_what_the_expected_score_is_worth():
    judgments = make_judgments(60, readout="logprobs", seed=4)
    found = advice(judgments).loc["readout"]
    assert found["do"] == "use the expected score"
    assert 1 < found["low"] < found["gain"] < found["high"]
    certain = judgments.assign(expected_score=judgments["score"].astype(float))
    for k in range(1, 6):
        certain[f"probability_{k}"] = (judgments["position"] == k).astype(float)
    same = advice(certain).loc["readout"]
    assert same["gain"] == pytest.approx(1)
    assert same["do"] == "the expected score is not shown to help"
    missing = advice(judgments.drop(columns="expected_score")).loc["readout"]
    assert np.isnan(missing["gain"])
    assert "readout='logprobs'" in missing["reason"]


def test_labels_are_those_that_labels_needed_asks_for(wavering):
    people = rated(wavering, 30, np.random.default_rng(5))
    found = advice(wavering, people, {"call": 0, "label": 2.0}, precision=0.1).loc["labels"]
    needed = rb.labels_needed(wavering, people, 0.1)["needed"].iloc[0]
    assert needed > 30
    assert found["cost"] == 2 * (needed - 30)
    assert f"{needed - 30:.0f} more rated" in found["do"]
    assert found["gain"] == rb.mean_with_labels(wavering, people)["gain"].iloc[0]
    assert found["low"] < found["gain"] < found["high"]
    enough = advice(wavering, people, precision=1.0).loc["labels"]
    assert "the labels suffice" in enough["do"]
    assert np.isnan(advice(wavering, people, precision=0.1).loc["labels", "cost"])


def test_texts_are_what_the_cheapest_design_needs(wavering):
    price = {"call": 0.01, "item": 1.0}
    found = advice(wavering, price=price, precision=0.3).loc["texts"]
    plan = rb.design_for(rb.error_budget(wavering), 0.3, price).iloc[0]
    assert found["gain"] == plan["items"]
    assert found["cost"] == plan["cost"]
    assert f"on {plan['items']:.0f} prompts, {plan['orders']} orders" in found["do"]


# ---- what the judgments cannot tell --------------------------------------------------------------


def unknown(row):
    return np.isnan(row["gain"]) and row["reason"] != ""


def test_without_labels_the_row_says_so(wavering):
    row = advice(wavering).loc["labels"]
    assert unknown(row)
    assert row["reason"] == "no labels"


def test_one_label_is_not_enough(wavering):
    row = advice(wavering, rated(wavering, 1, np.random.default_rng(6))).loc["labels"]
    assert unknown(row)
    assert "four are needed" in row["reason"]
    assert "20 texts" in row["do"]


def test_labels_of_other_texts_are_an_error(wavering):
    with pytest.raises(ValueError, match="among the items"):
        rb.advise(wavering, pd.DataFrame({"item_id": ["elsewhere"], "human": [3.0]}))


def test_a_constant_judge_gets_no_plan(wavering):
    constant = wavering.assign(score=3)
    found = advice(constant, rated(wavering, 20, np.random.default_rng(7)))
    assert unknown(found.loc["texts"])
    assert unknown(found.loc["orders"])
    assert "all reads give one score" in found.loc["orders", "reason"]
    assert found.loc["orders", "do"] == ""
    assert "one score: the labels stand alone" in found.loc["labels", "reason"]


def test_one_cluster_has_no_interval():
    judgments = make_judgments(1, 20, seed=8)
    found = advice(judgments, rated(judgments, 10, np.random.default_rng(8)))
    assert found[["low", "high"]].loc[["texts", "orders", "direction"]].isna().all(axis=None)
    assert (found.loc[["texts", "orders", "direction", "labels"], "reason"] != "").all()


def test_reads_of_one_order_tell_nothing_of_orders(wavering):
    once = wavering[wavering["ordering_index"] == 1].assign(design="fixed")
    found = advice(once)
    for step in ("orders", "direction", "readout"):
        assert unknown(found.loc[step])
    assert "rb.balanced(n)" in found.loc["orders", "reason"]
    assert found.loc["texts", "gain"] > 0
    assert "one read each" in found.loc["texts", "do"]


def test_scores_made_elsewhere_will_do():
    rng = np.random.default_rng(9)
    log = pd.DataFrame({"item_id": np.repeat(np.arange(30), 2).astype(str), "read": [1, 2] * 30,
                        "score": rng.integers(1, 6, 60)})  # fmt: skip
    found = advice(rb.judgments(log, scale=(1, 5)))
    assert unknown(found.loc["orders"])
    assert found.loc["texts", "chapter"] == "23_error_budget"


@pytest.mark.parametrize("precision", [0, -0.1])
def test_a_precision_is_positive(wavering, precision):
    with pytest.raises(ValueError, match="positive"):
        rb.advise(wavering, precision=precision)


def test_labels_say_where_a_judge_may_agree_with_nobody(wavering):
    rng = np.random.default_rng(5)
    good = advice(wavering, rated(wavering, 40, rng)).loc["labels", "reason"]
    labels = rated(wavering, 40, rng).assign(human=rng.integers(1, 6, 40).astype(float))
    bad = advice(wavering, labels).loc["labels", "reason"]
    assert "agree with people not at all" not in good
    assert "may agree with people not at all, and more reads do not mend that" in bad
