"""What calls cost, and where a run's allowance ends."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

import rubricnb as rb
from rubricnb.judging.contract import Message, Reply, Request
from rubricnb.judging.judge import Price, describe
from rubricnb.judging.prices import Budget, typical_tokens

ASK = Request(1, "k", (Message("user", "x" * 4000),), ("[RESULT]",), ("1", "2"), "feedback")


@pytest.mark.parametrize(
    ("spec", "place"),
    [
        ("embedded", ("", "")),
        ("simulated:unbiased", ("", "")),
        ("openai:m@http://localhost:8000/v1", ("", "m")),
        ("openai:m@http://[::1]:8000/v1", ("", "m")),
        ("openai:m@http://10.0.0.7:8000/v1", ("10.0.0.7", "m")),
        ("openai:a/b@https://openrouter.ai/api/v1", ("openrouter.ai", "a/b")),
        ("ray:openai:gpt-4.1", ("api.openai.com", "gpt-4.1")),
    ],
)
def test_only_what_leaves_this_machine_has_a_host(spec, place):
    judge = describe(spec)
    assert (judge.host, judge.model) == place


def test_a_price_is_listed_given_or_not_known():
    dated, alias, opened = map(
        describe,
        (
            "openai:gpt-4.1-2025-04-14",
            "openai:gpt-4.1",
            rb.open_judge("openai:gpt-4.1"),
        ),
    )
    assert dated.price == alias.price == opened.price
    assert (describe("embedded").price, describe("embedded").no_price) == ((0, 0, 0), "")
    assert describe("openai:deepseek-chat@https://api.deepseek.com").price is not None
    unknown = ("openai:gpt-99", "openai:gpt-4.1@https://example.org/v1",
               "openai:gpt-4.1@http://localhost:4000/v1", lambda messages: "4")  # fmt: skip
    for judge in unknown:
        assert describe(judge).price is None
        reason = describe(judge).no_price
        assert "give `price`: (input, cached, output), $ per million tokens" in reason
        given = describe(judge, (1, 2, 3))
        assert (given.price, given.no_price) == ((1, 2, 3), "")


def test_an_answer_is_longer_where_it_must_be_written_out():
    label = replace(ASK, readout="logprobs")
    assert typical_tokens(label)[1] < typical_tokens(label, "api.openai.com")[1]
    efforts = ("default", "low", "medium", "high")
    answers = [typical_tokens(replace(ASK, effort=effort))[1] for effort in efforts]
    assert answers == sorted(set(answers))


def test_a_model_that_thinks_is_taken_to_do_so_unless_a_label_is_forced_upon_it():
    score = replace(ASK, readout="score")
    host = "api.openai.com"
    assert typical_tokens(ASK, host, "gpt-5") == typical_tokens(replace(ASK, effort="medium"), host)
    assert typical_tokens(ASK, "", "openai/gpt-oss-20b")[1] > 1000
    assert typical_tokens(score, host, "gpt-5-mini")[1] > 1000
    several = replace(ASK, slots=("[a]", "[b]", "[c]"))  # criteria: a line each, no feedback
    assert typical_tokens(several)[1] < 30 < typical_tokens(several, "", "openai/gpt-oss-20b")[1]
    assert typical_tokens(score, "", "openai/gpt-oss-20b")[1] < 10
    assert typical_tokens(ASK, host, "gpt-4.1")[1] == typical_tokens(ASK, host, "gpt-5-chat")[1]


def costing(*price, model="m"):
    return describe(f"openai:{model}", price)


def spend(budget, judge, lengths, concurrency):
    """Ask one after another as `run` does: what is held waits for all that is under way."""
    under_way, left = [], list(lengths)
    while left and not budget.exhausted:
        while left and len(under_way) < concurrency and budget.allows(ASK, judge):
            under_way.append(left.pop(0))
        refused = left and len(under_way) < concurrency
        while under_way:
            budget.received(
                Reply(1, "", prompt_tokens=1000, completion_tokens=under_way.pop(0)), judge
            )
            if not refused:
                break  # a full house: the next takes the place of the first
    while under_way:
        budget.received(Reply(1, "", prompt_tokens=1000, completion_tokens=under_way.pop()), judge)


@given(
    max_cost=st.floats(0.01, 20),
    lengths=st.lists(st.integers(1, 1024), min_size=1, max_size=60),
    concurrency=st.integers(1, 64),
)
def test_a_run_spends_what_it_may_and_not_more(max_cost, lengths, concurrency):
    """However many calls are under way, unless the last answers are longer than any before."""
    price = Price(1000, 500, 2000)
    budget = Budget(max_cost=max_cost)
    spend(budget, costing(*price), sorted(lengths, reverse=True), concurrency)
    assert budget.spent <= max_cost + 1e-9
    if budget.exhausted:
        assert budget.spent > max_cost - price.of(1000, 0, 1024) - 1e-9
    else:
        assert budget.answered == len(lengths)


def test_where_an_endpoint_counts_no_tokens_the_limit_holds_all_the_same():
    budget, judge = Budget(max_cost=1), costing(1, 1, 10)
    asked = replace(ASK, max_tokens=10_000)  # may cost 10.1 cents
    for _ in range(20):
        if budget.allows(asked, judge):
            budget.received(Reply(1, "Fine. [RESULT] 2"), judge)
    assert budget.answered == 9
    failed = Budget(max_cost=1)
    for _ in range(50):
        assert failed.allows(asked, judge)
        failed.received(Reply(1, "", "error", error="429"), judge)  # is paid by nobody


def test_a_budget_goes_on_with_another_judge_at_its_price():
    budget, costly = Budget(max_cost=1), costing(2, 0.5, 8)
    assert budget.allows(ASK, costly)
    budget.received(Reply(1, "", completion_tokens=100_000), costly)
    assert budget.spent == pytest.approx(0.8)
    assert not budget.allows(ASK, costly)  # this judge's next answer may be as long
    assert replace(budget, exhausted="").allows(ASK, describe("simulated:unbiased"))
    with pytest.raises(ValueError, match="max_cost needs a price"):
        budget.check(describe("openai:no-such-model"))


def test_calls_are_counted_to_the_last():
    budget = Budget(max_calls=2)
    assert [budget.allows(ASK, describe("embedded")) for _ in range(3)] == [True, True, False]
    assert budget.exhausted == "stopped after 2 calls"
