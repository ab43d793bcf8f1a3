"""One read instead of ten: the recorded tables, and the statistics they are made of."""

from dataclasses import replace
from functools import lru_cache

import numpy as np
import pandas as pd
import pytest

import rubricnb as rb
from rubricnb.engines.profiles import open_profile
from studies import one_read
from studies.recording import read_table as recorded

QWEN = ("qwen2.5-coder-1.5b-instruct-embedded", "minibench")


# A judge without noise, and not so sure that probabilities fall below the floor.
CALM = replace(
    open_profile("first-biased"),
    sharpness=1.0,
    order_noise=0.0,
    cluster_order_noise=0.0,
    wording_noise=0.0,
)


@lru_cache(1)
def qwen():
    return one_read.cell(*QWEN)


def test_the_ways_are_the_packages():
    """Preference, removal and geometric mean against the public functions."""
    c = qwen()
    judgments = rb.recorded(*QWEN).query("design == 'balanced' and n_options == 5")
    judgments = judgments[judgments["template"] == "rubric"]
    gamma = rb.position_prior(judgments)
    assert one_read.preference(c.p) == pytest.approx(gamma["log_preference"], abs=1e-6)
    order = np.argsort(judgments.sort_values(["item_id", "ordering_index"]).index)
    free = rb.remove_prior(judgments, gamma)["expected_score"].to_numpy()
    ours = one_read.expected(one_read.without(c.p, one_read.preference(c.p)), c.orders)
    assert ours.ravel()[order] == pytest.approx(free, abs=1e-5)
    options = rb.option_probabilities(judgments)
    options["log"] = np.log(options["probability"].clip(1e-12))
    means = options.groupby(["item_id", "score"], observed=True)["log"].mean().unstack()
    p = np.exp(means).div(np.exp(means).sum(axis=1), axis=0)
    assert one_read.geometric(c.p, c.orders) == pytest.approx(
        (p @ range(1, 6)).to_numpy(), abs=1e-5
    )


def test_a_planted_preference_is_found_and_taken_off():
    judge = one_read.strengthened(CALM, 4)
    human = one_read.qualities(200, np.random.default_rng(1))
    p = one_read.ask(judge, human, one_read.BALANCED, 1)
    fair = one_read.ask(one_read.strengthened(judge, 0), human, one_read.BALANCED, 1)
    gamma = np.array(judge.position_preference)
    assert one_read.preference(p) == pytest.approx(gamma - gamma.mean(), abs=1e-6)
    assert one_read.without(p, gamma) == pytest.approx(fair, abs=1e-6)


def test_what_all_texts_share_and_what_goes_with_the_position_are_told_apart():
    """A preference for places, one for whole orders,
    and one of each text for itself.
    """
    rng = np.random.default_rng(3)
    human, orders = one_read.qualities(200, rng), one_read.BALANCED
    place = one_read.ask(one_read.strengthened(CALM, 2), human, orders, 1)
    fair = one_read.ask(one_read.strengthened(CALM, 0), human, orders, 1)
    whole = one_read.softmax(one_read.logs(fair) + rng.normal(0, 0.5, (10, 5)))
    own = one_read.softmax(one_read.logs(fair) + rng.normal(0, 0.5, (200, 10, 5)))
    items = pd.DataFrame({"cluster_id": range(200)})
    found = {
        name: pd.DataFrame(
            one_read.shared(one_read.Cell("j", "s", p, orders, human, items))
        )
        .set_index("quantity")
        .value
        for name, p in (("place", place), ("whole", whole), ("own", own))
    }
    assert found["place"]["all texts alike"] > 0.6
    assert found["place"]["a position preference"] == pytest.approx(1, abs=0.02)
    assert found["whole"]["all texts alike"] > 0.6
    assert found["whole"]["a position preference"] < 0.4
    assert abs(found["own"]["all texts alike"]) < 0.05


def test_simulated_judges_answer_as_through_the_package():
    judge = replace(CALM, text_error=0.0, item_error=0.0)
    items = rb.load("minibench").head(20).copy()
    wanted = rb.simulate(
        rb.plan(items, rb.balanced(5), readout="logprobs"), items, judge
    )
    human = items["human"].to_numpy(float)
    ours = one_read.ask(judge, human, one_read.BALANCED, 0)
    theirs = (
        wanted[[f"probability_{k}" for k in range(1, 6)]].to_numpy().reshape(ours.shape)
    )
    # Their texts have other names, so they agree where nothing is noise.
    assert ours == pytest.approx(theirs, abs=1e-6)


def test_planted_truth_says_what_the_chapter_says():
    r = recorded("one_read_planted").pivot(index="bias", columns="quantity", values="r")
    assert (r["E1"] > r["A1"]).all()
    assert r.loc["8 ×", "G10"] - r.loc["8 ×", "E10"] > 0.01


def test_a_recording_that_lacks_a_read_is_refused(monkeypatch):
    found = rb.recorded(*QWEN)
    one = found.index == found.index[found["design"] == "balanced"][3]
    changed = found.assign(
        ordering=found["ordering"].astype(str).mask(one, "5-1-2-3-4")
    )
    monkeypatch.setattr(one_read.rb, "recorded", lambda *_: changed)
    with pytest.raises(ValueError, match="same ten balanced reads"):
        one_read.cell(*QWEN)


def test_what_the_chapter_says_in_words():
    """Gemma on MT-Bench is the counter-example;
    an empty text is no measure of a judge.
    """
    lost = recorded("one_read_agreement").query(
        "judge == 'Gemma 270M' and dataset == 'mt-bench'"
    )
    row = lost.set_index("quantity").loc["G10 − E10"]
    assert row["value"] == pytest.approx(-0.058, abs=5e-4)
    assert row["high"] < 0
    small = (
        recorded("one_read_systems")
        .query("judge != 'Qwen 1.5B'")
        .groupby("orders")["pair"]
        .mean()
    )
    assert 0.4 < small["rotated over prompts"] / small["one order for all"] < 0.6
    assert small["an order for each text"] > small["one order for all"]
    systems = (
        recorded("one_read_systems")
        .query("dataset == 'minibench'")
        .set_index("orders")
        .pair
    )
    assert systems["rotated over prompts"] > 1.3 * systems["one order for all"]


def test_which_correction_helps_is_what_the_chapter_says():
    found = recorded("one_read_corrections").set_index("way")
    more = (found.flips_low > 0).groupby(level="way").sum()
    assert more["order"] == 0
    assert more["name"] > 10
    assert more["position"] > 0
    left = found.left.groupby(level="way").median()
    assert (
        left["order"] < left[["position", "batch", "mirror"]].min() < 1 < left["name"]
    )
    assert (found.loc["order"].left < 1).all()
    reader = found[(found.judge == "Qwen 1.5B") & (found.dataset == "minibench")]
    assert reader.flips_low["position"] > 0 > reader.flips_high["order"]
    assert reader.left_low["empty"] > 1
    assert 0.85 < reader.left["position"] < 1  # "removes almost nothing"


def test_each_correction_removes_the_shape_that_it_assumes():
    """Planted effects of orders: what is left follows from how each way is defined."""
    left = recorded("one_read_shapes").pivot(
        index="effect", columns="way", values="left"
    )
    shared = left.drop("each text's own")
    assert (shared["order"] < 0.01).all()
    assert left.loc["position", "position"] < 0.01
    assert left.loc[["direction", "score × place"], "position"].min() > 0.8
    assert left.loc["each text's own", ["order", "position"]].min() > 0.95
    assert (left[["name", "empty"]] > 1).all(axis=None)
    # a list and its mirror image cancel it
    assert left.loc["direction", "mirror"] < 0.01
    assert left.loc["direction", "cyclic"] > 1  # and rotations of one direction do not
    assert left.loc["position", "cyclic"] < 0.01


def test_an_empty_texts_own_effect_is_added_to_every_text():
    """Texts without any effect of order:
    after the division by an empty text they have one.
    """
    rng = np.random.default_rng(5)
    human = one_read.qualities(60, rng)
    fair = one_read.ask(one_read.strengthened(CALM, 0), human, one_read.BALANCED, 1)
    noise = one_read.softmax(one_read.logs(fair) + rng.normal(0, 0.05, fair.shape))
    items = pd.DataFrame({"cluster_id": range(60), "group_id": range(60)})
    cell = one_read.Cell("j", "s", noise, one_read.BALANCED, human, items)
    null = one_read.effect("score × place", 1, rng)
    found = pd.DataFrame(one_read.corrections(cell, rng, null, draws=5)).set_index(
        "way"
    )
    assert found.left_low["empty"] > 5
    assert found.flips_low["empty"] > 0.05
    assert abs(found.flips["order"]) < 0.03


def test_averages_leave_what_chance_alone_would_or_less():
    """Texts with effects of their own: any two orders leave half, any five a fifth."""
    rng = np.random.default_rng(6)
    human = one_read.qualities(400, rng)
    fair = one_read.ask(one_read.strengthened(CALM, 0), human, one_read.BALANCED, 1)
    p = one_read.softmax(one_read.logs(fair) + rng.normal(0, 0.3, fair.shape))
    items = pd.DataFrame({"cluster_id": range(400), "group_id": range(400)})
    cell = one_read.Cell("j", "s", p, one_read.BALANCED, human, items)
    found = pd.DataFrame(one_read.corrections(cell, rng, draws=3)).set_index("way")
    assert found.left["mirror"] == pytest.approx(0.5, abs=0.05)
    assert found.left["cyclic"] == pytest.approx(0.2, abs=0.04)
    assert found.stretch["mirror"] == pytest.approx(1)


def test_two_causes_make_a_number_for_each_position_fail():
    """An effect without the shape of positions, and effects of each text's own."""
    shared = recorded("one_read_shared").pivot(
        index=["judge", "dataset"], columns="quantity", values="value"
    )
    left = recorded("one_read_corrections").query("way == 'position'")
    left = left.set_index(["judge", "dataset"]).left
    fails = shared[left.reindex(shared.index) > 0.9]
    assert len(fails) == 4
    # of each, one of the two is below half
    assert (fails.min(axis=1) < 0.5).all()
    worse = shared[left.reindex(shared.index) > 1]
    assert (worse["all texts alike"] < 0.5).all()
    assert set(worse.index) == {("SmolLM2", "mt-bench"), ("SmolLM2", "vicuna")}
    by_name = recorded("one_read_corrections").query("way == 'name'")
    assert (by_name.left / by_name.stretch).median() == pytest.approx(1, abs=0.1)
    keys = ["judge", "dataset", "orders"]
    mean = recorded("one_read_systems").set_index(keys).sort_index()["mean"]
    mean = mean["Qwen 1.5B", "minibench"]
    fifth = mean["rotated over prompts"] / mean["one order for all"]
    assert fifth == pytest.approx(0.2, abs=0.02)


def test_pairs_of_reads_that_differ_are_counted():
    levels = np.array([[1, 1, 2], [3, 3, 3], [1, 2, 3]])
    assert one_read.differ(levels) == pytest.approx([2 / 3, 0, 1])
