"""Probabilities in long form: nothing is lost, and each stands beside its own score."""

import numpy as np
import pytest

import rubricnb as rb
from rubricnb.permutation import decode
from rubricnb.statistics import option_probabilities


@pytest.fixture(scope="module")
def judgments():
    items = rb.load("minibench", n_items=15)
    requests = rb.plan(items, rb.shuffled(5, 4), readout="logprobs")
    return rb.simulate(requests, items, "middle-averse")


def test_expected_score_can_be_computed_back(judgments):
    options = option_probabilities(judgments)
    mean = (options["score"] * options["probability"]).groupby(
        [options["item_id"], options["ordering_index"]], observed=True
    )
    expected = judgments.set_index(["item_id", "ordering_index"])["expected_score"]
    found = mean.sum()
    np.testing.assert_allclose(found, expected.reindex(found.index), atol=1e-5)


def test_each_score_stands_at_its_position_in_the_ordering(judgments):
    options = option_probabilities(judgments)
    assert len(options) == 5 * len(judgments)
    shown = [
        decode(o)[p - 1] for o, p in zip(options["ordering"], options["position"], strict=True)
    ]
    assert shown == options["score"].tolist()


def test_reads_without_probabilities_have_no_rows(judgments):
    lost = judgments.copy()
    columns = [f"probability_{p}" for p in range(1, 6)]
    lost.loc[lost.index[:3], columns] = np.nan
    assert len(option_probabilities(lost)) == 5 * (len(judgments) - 3)


def test_several_criteria_of_one_answer_stay_apart():
    items = rb.load("minibench", n_items=15)
    requests = rb.plan_criteria(items, rb.fixed(3, 1), readout="logprobs")
    options = option_probabilities(rb.simulate(requests, items, "unbiased"))
    sums = options.groupby(["item_id", "criterion"], observed=True)["probability"].sum()
    assert len(sums) == 15
    np.testing.assert_allclose(sums, 1, atol=1e-5)


def test_another_readout_is_refused_with_the_way_out():
    items = rb.load("minibench", n_items=5)
    judgments = rb.simulate(rb.plan(items, rb.balanced(5), readout="score"), items, "unbiased")
    with pytest.raises(ValueError, match="readout='logprobs'"):
        option_probabilities(judgments)
