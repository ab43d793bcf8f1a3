"""What calls cost, and where a run's allowance ends."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

import rubricnb as rb
from rubricnb.judging.contract import Message, Reply, Request
from rubricnb.judging.prices import Budget, Price, destination, price_of, typical_tokens

ASK = Request(1, "k", (Message("user", "x" * 4000),), ("[RESULT]",), ("1", "2"), "feedback")


@pytest.mark.parametrize(
    ("spec", "place"),
    [
        ("embedded", ("", "")),
        ("simulated:unbiased", ("", "")),
        ("openai:m@http://localhost:8000/v1", ("", "m")),
        ("openai:m@http://127.8.9.1:8000/v1", ("", "m")),
        ("openai:m@http://[::1]:8000/v1", ("", "m")),
        ("openai:m@http://10.0.0.7:8000/v1", ("10.0.0.7", "m")),
        ("openai:a/b@https://openrouter.ai/api/v1", ("openrouter.ai", "a/b")),
        ("ray:openai:gpt-4.1", ("api.openai.com", "gpt-4.1")),
    ],
)
def test_only_what_leaves_this_machine_has_a_destination(spec, place):
    assert destination(spec) == place


def test_a_price_is_listed_given_or_not_known():
    assert price_of("openai:gpt-4.1-mini")[0] == price_of("openai:gpt-4.1-mini-2025-04-14")[0]
    assert price_of("embedded") == ((0, 0, 0), "")
    assert price_of(rb.open_judge("openai:gpt-4.1"))[0] == price_of("openai:gpt-4.1")[0]
    for spec in ("openai:gpt-99", "openai:gpt-4.1@https://example.org/v1"):
        price, reason = price_of(spec)
        assert price is None
        assert "pass price=(input, cached, output)" in reason
        assert price_of(spec, (1, 2, 3)) == ((1, 2, 3), "")


def test_an_answer_is_longer_where_it_must_be_written_out():
    label = Request(**{f: getattr(ASK, f) for f in Request.__slots__} | {"readout": "logprobs"})
    assert typical_tokens(label)[1] < typical_tokens(label, "api.openai.com")[1]
    efforts = [
        typical_tokens(Request(**{f: getattr(ASK, f) for f in Request.__slots__} | {"effort": e}))
        for e in ("default", "low", "medium", "high")
    ]
    assert [answer for _, answer in efforts] == sorted({answer for _, answer in efforts})


@given(
    max_cost=st.floats(0.001, 5),
    lengths=st.lists(st.integers(1, 400), min_size=1, max_size=60),
    concurrency=st.integers(1, 8),
)
def test_a_run_spends_what_it_may_and_not_more(max_cost, lengths, concurrency):
    """However many calls are under way, as long as answers are no longer than is typical twice."""
    price = Price(1000, 500, 2000)
    budget = Budget(price, max_cost=max_cost)
    under_way, left = [], list(lengths)
    while left or under_way:
        while left and len(under_way) < concurrency and budget.allows(ASK):
            under_way.append(left.pop())
        if budget.exhausted:
            left.clear()
        if under_way:
            budget.received(Reply(1, "", prompt_tokens=1000, completion_tokens=under_way.pop()))
    typical = price.of(*[typical_tokens(ASK)[0], 0, typical_tokens(ASK)[1]])
    assert budget.spent <= max_cost + concurrency * typical
    if budget.exhausted:
        dearest = price.of(1000, 0, max(*lengths, 200))
        assert budget.spent > max_cost - (concurrency + 1) * dearest
    else:
        assert budget.answered == len(lengths)


def test_calls_are_counted_to_the_last():
    budget = Budget(max_calls=2)
    assert [budget.allows(ASK) for _ in range(3)] == [True, True, False]
    assert budget.exhausted == "stopped after 2 calls"
