"""Advice: every row, with planted judges of known needs,
and where nothing can be told.
"""

import re

import numpy as np
import pandas as pd
import pytest
from planted import FIRST, make_judgments, plain, plausible

import rubricnb as rb

STEPS = ["judge", "texts", "orders", "direction", "readout", "labels"]


def advice(judgments, *args, **options):
    return rb.advise(judgments, *args, **options).set_index("step")


def rated(judgments, n, rng, noise=0.5):
    mean = judgments.groupby("item_id", observed=True)["score"].mean().astype(float)
    chosen = mean.sample(n, random_state=int(rng.integers(1_000)))
    human = 1 + chosen + noise * rng.normal(size=n)
    return pd.DataFrame(
        {"item_id": chosen.index.astype(str), "human": human.to_numpy()}
    )


@pytest.fixture(scope="module")
def wavering():
    """A judge that mostly guesses among the scores near its opinion."""
    quality = np.random.default_rng(1).uniform(1, 5, 60)
    return make_judgments(60, concentration=0.15, quality=quality, seed=1)


@pytest.fixture(scope="module")
def steady():
    """A judge that answers a text the same whatever the order."""
    rng = np.random.default_rng(2)
    return make_judgments(
        60, concentration=40.0, quality=rng.integers(1, 6, 60), seed=2
    )


def test_all_steps_stand_in_order_for_every_judge(wavering, steady):
    both = pd.concat(
        [wavering.assign(judge="one"), steady.assign(judge="two")], ignore_index=True
    )
    found = rb.advise(both)
    assert found["step"].tolist() == STEPS * 2
    assert found["judge"].tolist() == ["one"] * 6 + ["two"] * 6


def test_a_wavering_judge_is_asked_in_ten_orders_and_a_steady_one_in_one(
    wavering, steady
):
    go, stop = (
        advice(j, price={"call": 0.01}).loc["orders"] for j in (wavering, steady)
    )
    assert "average 10 balanced orders" in go["do"]
    assert go["cost"] == pytest.approx(9 * 60 * 0.01)
    assert 1.05 < go["low"] < go["gain"] < go["high"]
    assert "one order" in stop["do"]
    assert stop["cost"] == 0
    assert stop["gain"] == pytest.approx(1, abs=0.01)
    pilot = rb.will_permuting_help(wavering, k=10)["gain"].iloc[0]
    assert go["gain"] == pytest.approx(pilot, rel=1e-6)


def test_a_judge_that_prefers_a_direction_is_told_to_average_both():
    own = {
        "quality": np.random.default_rng(3).uniform(1, 5, 60),
        "concentration": 0.3,
        "seed": 3,
    }
    moved = advice(make_judgments(60, gamma=4 * np.array(FIRST), **own)).loc[
        "direction"
    ]
    still = advice(make_judgments(60, **own)).loc["direction"]
    assert moved["high"] < 0 or moved["low"] > 0
    assert "average both directions" in moved["do"]
    assert still["low"] < 0 < still["high"]
    assert "no shift by direction is seen" in still["do"]
    effect = rb.order_effect(make_judgments(60, **own)).iloc[0]
    assert still["gain"] == effect["ascending_minus_descending"]


def test_probabilities_show_what_the_expected_score_is_worth():
    quality = np.random.default_rng(4).uniform(1, 5, 60)
    judgments = make_judgments(
        60, readout="logprobs", seed=4, quality=quality, concentration=0.3
    )
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
    found = advice(wavering, people, {"call": 0, "label": 2.0}, precision=0.1).loc[
        "labels"
    ]
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


# ---- what the judgments cannot tell
# --------------------------------------------------------------


def unknown(row):
    return np.isnan(row["gain"]) and row["reason"] != ""


def test_one_label_is_not_enough(wavering):
    row = advice(wavering, rated(wavering, 1, np.random.default_rng(6))).loc["labels"]
    assert unknown(row)
    assert "four are needed" in row["reason"]
    assert "20 texts" in row["do"]


def test_reads_of_one_order_tell_nothing_of_orders(wavering):
    once = wavering[wavering["ordering_index"] == 1].assign(design="fixed")
    people = rated(wavering, 60, np.random.default_rng(1))
    found = advice(once, people)
    for step in ("orders", "direction", "readout"):
        assert unknown(found.loc[step])
        assert "rb.balanced(n)" in found.loc[step, "reason"]
    assert found.loc["texts", "gain"] > 0
    assert "one read each" in found.loc["texts", "do"]


# ---- does the judge know anything?
# ---------------------------------------------------------------


def guesses():
    rng = np.random.default_rng(10)
    judgments = make_judgments(90).assign(score=rng.integers(1, 6, 900))
    people = pd.DataFrame({"item_id": judgments["item_id"].cat.categories})
    return judgments, people.assign(human=rng.integers(1, 6, 90).astype(float))


STOPPED = {
    "guesses": (lambda _: guesses(), "", ""),
    "guesses without labels": (lambda _: guesses()[:1], "", ""),
    "guesses of one read": (
        lambda _: (guesses()[0].query("ordering_index == 1"), guesses()[1]),
        "",
        "",
    ),
    "reversed": (
        lambda j: (
            j,
            rated(j, 40, np.random.default_rng(5)).assign(human=lambda r: -r["human"]),
        ),
        "runs the other way",
        "",
    ),
    "one score": (
        lambda j: (j.assign(score=3), rated(j, 20, np.random.default_rng(7))),
        "",
        "all scores or all ratings are equal",
    ),
    "one cluster": (
        lambda j: (j.assign(cluster_id="c"), rated(j, 10, np.random.default_rng(8))),
        "",
        "one cluster",
    ),
    "one read and no labels": (
        lambda j: (j.query("ordering_index == 1").assign(design="fixed"),),
        r"ask twenty texts in rb.balanced\(n\)",
        "",
    ),
}


@pytest.mark.parametrize(("given", "do", "why"), STOPPED.values(), ids=STOPPED)
def test_a_judge_that_is_not_shown_to_know_anything_gets_no_plan(
    wavering, given, do, why
):
    row = rb.advise(*given(wavering)).squeeze()
    assert row["step"] == "judge"
    assert re.search(f"^stop.*{do}", row["do"])
    assert why in row["reason"]
    assert not row["low"] > 0


def test_the_first_row_is_agreement_where_people_rated(wavering):
    people = rated(wavering, 40, np.random.default_rng(5))
    row = advice(wavering, people).loc["judge"]
    known = rb.agreement(wavering, people).iloc[0]
    assert row[["gain", "low", "high"]].tolist() == pytest.approx(
        known[["r", "r_low", "r_high"]].tolist()
    )
    assert f"r = {known.r:.2f}" in row["do"]


def test_points_are_counted_on_the_scale_of_people(wavering):
    """Ratings that spread twice as far make a point
    of people's half a point of the judge's.
    """
    people = rated(wavering, 60, np.random.default_rng(5), noise=0.01)
    wide = people.assign(human=2 * people["human"])
    one, two = (advice(wavering, p, precision=0.3).loc["texts"] for p in (people, wide))
    own = advice(wavering, precision=0.3).loc["texts"]
    assert one["gain"] == pytest.approx(own["gain"], rel=0.02)
    assert two["gain"] == pytest.approx(4 * one["gain"], rel=0.02)
    assert "points of people's ratings" in two["do"]
    assert "is 0.50 [0.50, 0.50] of the judge's" in two["reason"]
    assert two["low"] <= two["gain"] <= two["high"]
    assert "points of the judge's scores" in own["do"]


@pytest.mark.in_turn
def test_the_gain_of_labels_lies_in_its_own_interval():
    """A weak judge: 60 draws of 25 ratings,
    of which some happen to lie off the middle.
    """
    rng = np.random.default_rng(11)
    quality = rng.uniform(1, 5, 300)
    judgments = make_judgments(
        300, design=rb.fixed(5, 1), quality=quality, concentration=1.0
    )
    human = pd.Series(
        quality + 3.0 * rng.normal(size=300), judgments["item_id"].cat.categories
    )
    seen = 0
    for seed in range(60):
        labels = (
            human.sample(25, random_state=seed)
            .rename_axis("item_id")
            .reset_index(name="human")
        )
        found = advice(judgments, labels)
        if "labels" in found.index:
            seen += 1
            assert found.loc["labels", "low"] <= found.loc["labels", "gain"]
            assert found.loc["labels", "gain"] <= found.loc["labels", "high"]
    assert seen >= 5


# ---- one decomposition
# ---------------------------------------------------------------------------


def several_texts_a_prompt(seed, prompts=60, candidates=6):
    """Most of what texts differ by is their prompt's;
    with the true gain of ten orders.
    """
    rng = np.random.default_rng(seed)
    prompt, candidate = (
        np.repeat(np.arange(prompts), candidates),
        np.arange(prompts * candidates),
    )
    text = np.sqrt(0.5) * rng.normal(size=prompts)[prompt] + np.sqrt(0.25) * rng.normal(
        size=len(prompt)
    )
    text += 0.3 * np.linspace(-1, 1, candidates)[candidate % candidates]
    reads = text[:, None] + rng.normal(size=(len(text), 10))
    judgments = make_judgments(prompts, candidates).assign(score=reads.ravel())
    judgments["candidate"] = np.repeat(candidate % candidates, 10).astype(str)
    phi = 1 / (0.75 + 0.09 * np.linspace(-1, 1, candidates).var())
    return judgments, np.sqrt((1 + phi) / (1 + phi / 10))


@pytest.mark.in_turn
def test_orders_are_worth_what_the_pilot_says_where_prompts_hold_several_texts():
    held = 0
    for seed in range(40):
        judgments, true = several_texts_a_prompt(seed)
        pilot = rb.will_permuting_help(judgments).iloc[0]
        assert pilot["gain"] == pytest.approx(true, rel=0.2)
        held += pilot["gain_low"] <= true <= pilot["gain_high"]
    assert plausible(held, 40, 0.95)
    row = advice(judgments).loc["orders"]
    names = ["gain", "gain_low", "gain_high"]
    assert row[["gain", "low", "high"]].tolist() == pilot[names].tolist()


def test_the_parts_of_the_budget_add_up_to_what_orders_are_planned_with():
    """Texts, prompts and candidates, each as far as two texts differ by it,
    make φ's variance.
    """
    judgments, _ = several_texts_a_prompt(1, 30, 4)
    budget = rb.error_budget(judgments).set_index("source")["variance"]
    whole = rb.variance_components(judgments).iloc[0]
    n, m = 30, 4
    differ = {
        "item": 1,
        "prompt": (n * m - m) / (n * m - 1),
        "candidate": (n * m - n) / (n * m - 1),
    }
    assert sum(budget[s] * w for s, w in differ.items()) == pytest.approx(
        whole.variance_item
    )
    noise = sum(budget[f"order × {s}"] * w for s, w in differ.items())
    assert noise == pytest.approx(whole.variance_item_ordering)
    assert rb.will_permuting_help(judgments)["phi"][0] == pytest.approx(whole.phi)


# ---- what is amiss in a part takes no row from the rest
# ------------------------------------------


def test_an_interrupted_slice_of_one_ordering_loses_no_row(wavering):
    """A second dataset of which only the first ordering was asked."""
    begun = wavering[wavering["ordering_index"] == 1].assign(dataset="begun")
    both = pd.concat([wavering.astype({"dataset": str}), begun], ignore_index=True)
    people = rated(wavering, 60, np.random.default_rng(5))
    people = pd.concat(
        [people.assign(dataset="planted"), people.assign(dataset="begun")]
    )
    found = rb.advise(both, people).set_index(["dataset", "step"])
    whole = rb.advise(wavering, people).set_index(["dataset", "step"])
    pd.testing.assert_frame_equal(found.loc[["planted"]], whole, check_dtype=False)
    assert "one ordering so far" in found.loc[("begun", "orders"), "reason"]
    assert "one ordering so far" in found.loc[("begun", "direction"), "reason"]
    effects = rb.order_effect(both).set_index("dataset")
    assert effects.loc["planted", "spread"] > 0
    assert "seen in one ordering" in effects.loc["begun", "reason"]


def test_a_group_without_labels_is_a_row_with_its_reason(wavering):
    other = wavering.assign(
        dataset="unrated", item_id="u" + wavering["item_id"].astype(str)
    )
    both = pd.concat(
        [wavering.astype({"dataset": str, "item_id": str}), other], ignore_index=True
    )
    people = rated(wavering, 30, np.random.default_rng(5))
    found = rb.advise(both, people).set_index(["dataset", "step"])
    assert found.loc[("planted", "labels"), "gain"] > 0
    assert unknown(found.loc[("unrated", "labels")])
    assert "among the items" in found.loc[("unrated", "labels"), "reason"]
    assert found.loc["unrated"].index.tolist() == STEPS
    means = rb.mean_with_labels(both, people).set_index("dataset")
    assert means.loc["planted", "mean"] > 0
    assert "among the items" in means.loc["unrated", "reason"]


def test_labels_suffice_only_where_their_interval_is_as_narrow_as_wanted():
    """Ten prompts of six texts, labelled whole, count as ten."""
    judgments, _ = several_texts_a_prompt(2)
    quality = judgments.groupby("item_id", observed=True)["score"].mean()
    prompt = judgments.drop_duplicates("item_id").set_index("item_id")["cluster_id"]
    noise = 0.4 * np.random.default_rng(3).normal(size=60)
    human = (
        quality + pd.Series(noise, prompt.unique())[prompt[quality.index]].to_numpy()
    )
    whole = human[prompt[quality.index].isin(prompt.unique()[:10]).to_numpy()]
    people = whole.rename_axis("item_id").reset_index(name="human")
    found = rb.mean_with_labels(judgments, people).iloc[0]
    half = (found["high"] - found["low"]) / 2
    for precision in (0.9 * half, 1.1 * half):
        row = advice(judgments, people, precision=precision).loc["labels"]
        assert ("the labels suffice" in row["do"]) == (precision > half)


@pytest.mark.parametrize(
    ("sign", "ends"), [(1, (0.05 ** (1 / 20), 1)), (-1, (-1, -(0.05**0.05)))]
)
def test_a_perfect_correlation_has_the_bound_of_its_clusters(sign, ends):
    score = np.tile([1, 2, 4, 5], 10)
    judged = plain(score)
    labels = judged[["item_id"]].assign(human=3.0 + sign * (score - 3))[:20]
    row = advice(judged, labels).loc["judge"]
    assert row["gain"] == pytest.approx(sign)
    assert (row["low"], row["high"]) == pytest.approx(ends)
    assert "the same whichever of 20 clusters are used" in row["reason"]
    assert row["do"].startswith("go on" if sign > 0 else "stop: its scores fall")
