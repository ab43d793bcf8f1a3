"""Whether asking in several orders pays,
and the prior of places that one may take off.
"""

import numpy as np
import pandas as pd
import pytest
from planted import make_judgments
from scipy import stats

import rubricnb as rb

GAMMA = np.array([0.9, 0.2, -0.1, -0.4, -0.6])


def wavering(n_items, phi, seed):
    """Judgments whose reads waver about the truth
    with a variance of phi times its own.
    """
    rng = np.random.default_rng(seed)
    truth = rng.normal(size=n_items)
    value = truth[:, None] + np.sqrt(phi) * rng.normal(size=(n_items, 10))
    return make_judgments(n_items).assign(score=value.ravel()), truth, value


@pytest.mark.parametrize("phi", [0.2, 0.67, 2.0])
def test_the_predicted_gain_is_the_true_one(phi):
    pilot, truth, value = wavering(2_000, phi, 1)
    row = rb.will_permuting_help(pilot).iloc[0]
    one = np.mean([np.corrcoef(truth, v)[0, 1] for v in value.T])
    true = np.corrcoef(truth, value.mean(axis=1))[0, 1] / one
    assert row["gain"] == pytest.approx(true, rel=0.03)
    assert row["gain_congeneric"] == pytest.approx(true, rel=0.03)
    assert row["phi"] == pytest.approx(phi, rel=0.1)


@pytest.mark.parametrize(("wrong", "gain"), [("go", 1.037), ("stop", 1.063)])
def test_near_the_threshold_a_pilot_is_unsure(wrong, gain):
    """Twenty texts, just below and just above a gain of 5 %:
    at most 5 % of verdicts are wrong.
    """
    phi = (gain**2 - 1) / (1 - gain**2 / 10)
    said = [
        rb.will_permuting_help(wavering(20, phi, s)[0])["verdict"][0]
        for s in range(100)
    ]
    assert said.count(wrong) <= stats.binom.ppf(0.999, 100, 0.05)
    assert said.count("unsure") > 50


def test_three_texts_and_a_judge_that_never_wavers_say_what_they_know():
    few = rb.will_permuting_help(wavering(3, 1.0, 4)[0]).iloc[0]
    assert few["verdict"] == "unsure"
    assert "3 clusters: a verdict needs 10" in few["reason"]
    steady = wavering(40, 0.0, 5)[0]
    row = rb.will_permuting_help(steady).iloc[0]
    assert (row["verdict"], row["gain"]) == ("stop", 1)
    assert np.isnan(row["gain_high"])
    assert "one in up to 7 % of texts could be missed" in row["reason"]
    noise = rb.will_permuting_help(
        steady.assign(score=np.random.default_rng(0).normal(size=len(steady)))
    ).iloc[0]
    assert noise["verdict"] == "unsure"
    assert "not shown to differ beyond noise" in noise["reason"]


def test_the_prior_is_the_planted_one():
    judgments = make_judgments(200, gamma=GAMMA, readout="logprobs", seed=5)
    prior = rb.position_prior(judgments)
    wanted = GAMMA - GAMMA.mean()
    assert prior["log_preference"].to_numpy() == pytest.approx(wanted, abs=0.02)
    assert prior["log_preference"].sum() == pytest.approx(0, abs=1e-9)
    share = np.exp(wanted) / np.exp(wanted).sum()
    assert prior["share"].to_numpy() == pytest.approx(share, abs=0.01)


def test_orders_dealt_unevenly_do_not_pass_a_score_off_as_a_place():
    """All texts are fives, and one order was dealt out three times
    as often as the others.
    """
    high = make_judgments(
        300,
        gamma=GAMMA,
        readout="logprobs",
        quality=np.full(300, 5.0),
        concentration=0.3,
        seed=4,
    )
    deal = np.minimum(np.maximum(high["cluster_id"].cat.codes % 12, 2) - 1, 10)
    prior = rb.position_prior(high[high["ordering_index"] == deal])
    wanted = GAMMA - GAMMA.mean()
    assert prior["log_preference"].to_numpy() == pytest.approx(wanted, abs=0.02)
    plain = np.log(
        high[high["ordering_index"] == deal].filter(like="probability_")
    ).mean()
    assert np.abs((plain - plain.mean()).to_numpy() - wanted).max() > 0.1


def dealt(n_studies, n_prompts, rng):
    """Small studies with one order a prompt;
    the quality of a text decides most of its answer.
    """
    orders = rb.balanced(5).orderings()
    row = np.concatenate([rng.permutation(n_prompts) % 10 for _ in range(n_studies)])
    quality = 3 + 0.9 * rng.normal(size=(len(row), 1))
    p = np.exp(GAMMA - (orders[row] - quality) ** 2)
    p /= p.sum(axis=1, keepdims=True)
    names = [f"p{i}" for i in range(len(row))]
    columns = {f"probability_{k + 1}": p[:, k] for k in range(5)}
    return pd.DataFrame(
        {
            "item_id": names,
            "cluster_id": names,
            "judge": np.repeat(range(n_studies), n_prompts),
            "ordering_index": row + 1,
            "ordering": ["-".join(map(str, orders[r])) for r in row],
            "score": 3,
            "expected_score": (p * orders[row]).sum(axis=1),
            **columns,
        }
    )


@pytest.mark.in_turn
def test_the_prior_of_a_few_prompts_with_an_order_each_covers_the_planted_one():
    """Each cell holds four of twenty prompts:
    with the cells taken as known, 90 % would cover.
    """
    prior = rb.position_prior(dealt(300, 20, np.random.default_rng(2)), by="judge")
    wanted = (GAMMA - GAMMA.mean())[prior["position"] - 1]
    covers = prior["low"].lt(wanted) & prior["high"].gt(wanted)
    assert 0.935 < covers.mean() < 0.985


def test_a_score_that_one_prompt_alone_had_at_a_place_has_no_interval():
    ten = dealt(1, 10, np.random.default_rng(3))
    prior = rb.position_prior(ten[ten["ordering_index"] <= 5])
    assert prior["log_preference"].notna().all()
    assert prior["low"].isna().all()
    assert prior["reason"].str.contains("for one prompt only").all()


def test_without_its_prior_a_judge_scores_as_one_that_has_none():
    biased = make_judgments(100, gamma=GAMMA, readout="logprobs", seed=7)
    fair = make_judgments(100, readout="logprobs", seed=7)
    planted = pd.DataFrame({"position": range(1, 6), "log_preference": GAMMA})
    mended = rb.remove_prior(biased, planted)
    assert mended["expected_score"].to_numpy() == pytest.approx(
        fair["expected_score"].to_numpy(), abs=1e-4
    )
    columns = [f"probability_{p}" for p in range(1, 6)]
    assert mended[columns].sum(axis=1).to_numpy() == pytest.approx(np.ones(len(mended)))
    assert rb.position_bias(mended, value="expected_score")["v2_unbiased"][0] < 1e-3


def test_rotated_deals_every_ordering_over_the_prompts():
    items = rb.load("minibench")
    requests = rb.plan(items, rb.Design("rotated", 5), readout="logprobs", seed=3)
    assert len(requests) == len(items)
    of = requests.merge(items[["item_id", "group_id"]], on="item_id")
    assert (of.groupby("group_id", observed=True)["ordering"].nunique() == 1).all()
    dealt = of.drop_duplicates("group_id")["ordering"].value_counts()
    assert len(dealt) == 10
    assert dealt.max() - dealt.min() <= 1
    again = rb.plan(items, rb.Design("rotated", 5), readout="logprobs", seed=3)
    assert (again["request_id"] == requests["request_id"]).all()


def test_rotated_deals_over_clusters_where_nothing_competes():
    items = rb.load("minibench").drop(columns="group_id")
    of = rb.plan(items, rb.Design("rotated", 5)).merge(items[["item_id", "cluster_id"]])
    assert (of.groupby("cluster_id")["ordering"].nunique() == 1).all()
    assert of["ordering"].nunique() == 10


def in_orders(shift, n_items=60, seed=3, scale=0):
    """Judgments in balanced orders that add `shift` (orders,
    scores) to a judge's log odds.
    """
    orders = rb.balanced(5).orderings()
    rng = np.random.default_rng(seed)
    own = rng.normal(size=(n_items, 1, 5)) + np.zeros((n_items, len(orders), 5))
    p = np.exp(own + shift)
    p = np.take_along_axis(p / p.sum(axis=-1, keepdims=True), orders[None] - 1, axis=2)
    shown = np.tile(orders, (n_items, 1)) - 1 + (1 - scale)
    flat = p.reshape(-1, 5)
    names = np.repeat([f"i{i}" for i in range(n_items)], len(orders))
    return pd.DataFrame(
        {
            "item_id": names,
            "cluster_id": names,
            "design": "balanced",
            "ordering_index": np.tile(np.arange(10) + 1, n_items),
            "ordering": ["-".join(map(str, row)) for row in shown],
            "score": shown[np.arange(len(shown)), flat.argmax(axis=1)],
            "position": flat.argmax(axis=1) + 1,
            "expected_score": (flat * shown).sum(axis=1),
            **{f"probability_{k + 1}": flat[:, k] for k in range(5)},
        }
    )


def planted_shift(seed=0):
    """What each order adds to each score, of any shape;
    about its mean over scores and orders.
    """
    shift = np.random.default_rng(seed).normal(0, 0.5, (10, 5))
    shift -= shift.mean(axis=0)
    return shift - shift.mean(axis=1, keepdims=True)


@pytest.mark.parametrize("scale", [0, 1])
def test_the_shift_of_every_order_is_found_and_removed_whatever_its_shape(scale):
    biased, fair = (
        in_orders(planted_shift(), scale=scale),
        in_orders(np.zeros((10, 5)), scale=scale),
    )
    prior = rb.position_prior(biased, shape="order")
    found = prior.pivot(index="ordering", columns="score", values="log_preference")
    orders = ["-".join(map(str, row)) for row in rb.balanced(5).orderings()]
    assert found.loc[orders].to_numpy() == pytest.approx(planted_shift(), abs=1e-9)
    mended = rb.remove_prior(biased, prior)
    assert mended["expected_score"].to_numpy() == pytest.approx(
        fair["expected_score"].to_numpy(), abs=1e-6
    )
    by_position = rb.remove_prior(biased, rb.position_prior(biased))["expected_score"]
    assert abs(by_position - fair["expected_score"]).mean() > 0.1  # the wrong shape


def test_a_preference_for_positions_is_a_shift_of_orders_too():
    biased = make_judgments(100, gamma=GAMMA, readout="logprobs", seed=7)
    fair = make_judgments(100, readout="logprobs", seed=7)
    mended = rb.remove_prior(biased, rb.position_prior(biased, shape="order"))
    off = abs(mended["expected_score"] - fair["expected_score"]).mean()
    assert off < 0.2 * abs(biased["expected_score"] - fair["expected_score"]).mean()


def test_the_interval_of_a_shift_covers_what_many_texts_show():
    """Each text has a shift of its own;
    the intervals are for their mean, over texts.
    """
    rng, covers = np.random.default_rng(1), []
    for study in range(60):
        own = planted_shift() + rng.normal(0, 0.4, (25, 10, 5))
        found = rb.position_prior(in_orders(own, 25, seed=study), shape="order")
        wanted = planted_shift().ravel()
        covers.append((found["low"] < wanted) & (wanted < found["high"]))
    assert 0.92 < np.mean(covers) < 0.98


def test_an_order_that_no_text_shares_with_the_others_has_no_shift():
    reads = in_orders(planted_shift())
    dealt_out = reads[
        reads["ordering_index"] == reads.groupby("item_id").ngroup() % 10 + 1
    ]
    for few in (dealt_out, reads[reads["ordering_index"] == 1]):
        with pytest.raises(ValueError, match="several orders"):
            rb.position_prior(few, shape="order")
    prior = rb.position_prior(reads, shape="order")
    with pytest.raises(ValueError, match="no order 1-2-3-4-5"):
        rb.remove_prior(reads, prior[prior["ordering"] != "1-2-3-4-5"])
    lost = rb.position_prior(reads.drop(index=[0, 10]), shape="order")
    assert set(lost["n_reads"]) == {58 * 10}  # of texts that have every order
    with pytest.raises(ValueError, match="'position', 'order'"):
        rb.position_prior(reads, shape="score")
