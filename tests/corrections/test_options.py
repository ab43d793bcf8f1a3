"""Probabilities in long form: nothing is lost, and each stands beside its own score."""

import numpy as np
import pytest

import rubricnb as rb
from rubricnb.core.permutation import decode
from rubricnb.statistics.probabilities import at_temperature, option_probabilities


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
        decode(o)[p - 1]
        for o, p in zip(options["ordering"], options["position"], strict=True)
    ]
    assert shown == options["score"].tolist()


def test_reads_without_probabilities_have_no_rows(judgments):
    lost = judgments.copy()
    columns = [f"probability_{p}" for p in range(1, 6)]
    lost.loc[lost.index[:3], columns] = np.nan
    assert len(option_probabilities(lost)) == 5 * (len(judgments) - 3)


@pytest.mark.parametrize("temperature", [0.0, 0.3, 1.0, 2.5])
def test_another_temperature_is_what_a_sampler_at_that_temperature_does(
    judgments, temperature
):
    columns = [f"probability_{p}" for p in range(1, 6)]
    tempered = at_temperature(judgments, temperature)
    logits = np.log(judgments[columns].to_numpy(np.float64) + 1e-300)
    for row in range(len(judgments)):
        best = logits[row].argmax()
        expected = np.eye(5)[best]
        if temperature:
            weights = np.exp((logits[row] - logits[row][best]) / temperature)
            expected = weights / weights.sum()
        np.testing.assert_allclose(tempered[columns].iloc[row], expected, atol=1e-6)
        scores = np.array(decode(judgments["ordering"].iloc[row]))
        assert tempered["expected_score"].iloc[row] == pytest.approx(
            expected @ scores, abs=1e-5
        )
        assert scores[tempered["position"].iloc[row] - 1] == tempered["score"].iloc[row]
    assert (tempered["temperature"] == np.float32(temperature)).all()


def test_greedy_is_the_recorded_answer_and_lost_reads_stay_lost(judgments):
    lost = judgments.copy()
    columns = [f"probability_{p}" for p in range(1, 6)]
    lost.loc[lost.index[:3], columns] = np.nan
    greedy = at_temperature(lost, 0.0)
    assert greedy["score"].isna().sum() == greedy["expected_score"].isna().sum() == 3
    assert (greedy["score"].iloc[3:] == judgments["score"].iloc[3:]).all()
