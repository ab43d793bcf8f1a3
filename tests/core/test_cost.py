import numpy as np
import pytest

import rubricnb as rb
from rubricnb.core import cost
from rubricnb.core.results import judges


@pytest.fixture(scope="module")
def items():
    return rb.load("minibench")


def estimate(items, judge, designs=None, readout="feedback", **options):
    return rb.estimate_cost(
        rb.plan(items, designs or rb.balanced(5), readout=readout), judge, **options
    )


@pytest.mark.in_turn
def test_copies_of_a_greedy_read_cost_nothing_with_a_judge_that_repeats_itself(items):
    designs = [rb.balanced(5), rb.fixed(5, 10)]
    assert estimate(items, "simulated:unbiased", designs)["calls"].item() == 1800
    assert estimate(items, "openai:gpt-4.1", designs)["calls"].item() == 3600 - 180


def test_tokens_are_near_those_the_engine_counted(items):
    row = estimate(items, "embedded", readout="logprobs").iloc[0]
    recorded = rb.recorded("embedded", "minibench")
    asked = recorded.query(
        "design == 'balanced' and n_options == 5 and template == 'rubric'"
    )
    sent = asked["prompt_tokens"].sum()
    assert row["prompt_tokens"] == pytest.approx(sent, rel=0.2)
    assert 0.4 < row["shared_tokens"] / row["prompt_tokens"] < 0.9
    assert 0.01 < row["hours"] < 5


def test_the_price_is_tokens_times_list_price_and_can_be_given(items):
    row = estimate(items, "openai:any", price=(1, 0.5, 10)).iloc[0]
    wanted = (row["prompt_tokens"] + 10 * row["completion_tokens"]) / 1e6
    # but no prefix is as long as a hosted endpoint keeps it
    assert row["shared_tokens"] > 0
    assert row["price"] == pytest.approx(wanted)


def test_only_prefixes_that_a_hosted_endpoint_keeps_are_cheaper(items):
    long = items.assign(
        instruction="Think of all that was said. " * 200 + items["instruction"]
    )
    long.attrs = items.attrs
    row = estimate(long, "openai:any", price=(1, 0.5, 0)).iloc[0]
    assert 0.5 * row["prompt_tokens"] < row["price"] * 1e6 < 0.8 * row["prompt_tokens"]


def test_what_is_not_known_is_nan_with_its_reason(items):
    row = estimate(items, "openai:no-such-model").iloc[0]
    assert np.isnan(row["price"])
    assert np.isnan(row["hours"])
    assert "price: not known for 'no-such-model'" in row["reason"]
    gateway = estimate(items, "openai:m@http://localhost:1/v1").iloc[0]
    assert np.isnan(gateway["price"])
    assert "give `price`: (input, cached, output)" in gateway["reason"]


def test_hours_are_not_summed_from_answers_that_overlapped(items):
    spec = "vllm:checkpoints/smollm2-135m-instruct"
    assert spec in set(judges().spec)  # recorded, many answers at a time
    row = estimate(items, spec, readout="logprobs").iloc[0]
    assert np.isnan(row["hours"])
    assert "hours: the speed is not recorded" in row["reason"]


def test_a_large_plan_is_estimated_from_a_part(items, monkeypatch):
    whole = estimate(items, "simulated:unbiased").iloc[0]
    monkeypatch.setattr(cost, "_SAMPLE", 300)
    part = estimate(items, "simulated:unbiased").iloc[0]
    assert part["calls"] == whole["calls"]
    assert part["prompt_tokens"] == pytest.approx(whole["prompt_tokens"], rel=0.1)
