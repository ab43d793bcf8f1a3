"""What calls cost, and where a run's allowance ends."""

from contextlib import closing
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rubricnb as rb
from rubricnb.core.contract import Message, Reply, Request
from rubricnb.core.judge import Price, describe
from rubricnb.core.prices import Budget, typical_tokens
from rubricnb.engines.openai import OpenAIJudge

ASK = Request(
    1, "k", (Message("user", "x" * 4000),), ("[RESULT]",), ("1", "2"), "feedback"
)


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
    assert (describe("embedded").price, describe("embedded").no_price) == (
        (0, 0, 0),
        "",
    )
    assert describe("openai:deepseek-chat@https://api.deepseek.com").price is not None
    unknown = (
        "openai:gpt-99",
        "openai:gpt-4.1@https://example.org/v1",
        "openai:gpt-4.1@http://localhost:4000/v1",
        lambda messages: "4",
    )
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
    assert typical_tokens(ASK, host, "gpt-5") == typical_tokens(
        replace(ASK, effort="medium"), host
    )
    assert typical_tokens(ASK, "", "openai/gpt-oss-20b")[1] > 1000
    assert typical_tokens(score, host, "gpt-5-mini")[1] > 1000
    # criteria: a line each, no feedback
    several = replace(ASK, slots=("[a]", "[b]", "[c]"))
    assert (
        typical_tokens(several)[1]
        < 30
        < typical_tokens(several, "", "openai/gpt-oss-20b")[1]
    )
    assert typical_tokens(score, "", "openai/gpt-oss-20b")[1] < 10
    assert (
        typical_tokens(ASK, host, "gpt-4.1")[1]
        == typical_tokens(ASK, host, "gpt-5-chat")[1]
    )


def costing(*price, model="m"):
    return describe(f"openai:{model}", price)


def spend(budget, judge, lengths, concurrency):
    """Ask one after another as `run` does:
    what is held waits for all that is under way.
    """
    under_way, left = [], list(lengths)
    while left and not budget.exhausted:
        while left and len(under_way) < concurrency and budget.allows(ASK, judge):
            under_way.append(left.pop(0))
        refused = left and len(under_way) < concurrency
        while under_way:
            budget.received(
                Reply(1, "", prompt_tokens=1000, completion_tokens=under_way.pop(0)),
                judge,
            )
            if not refused:
                break  # a full house: the next takes the place of the first
    while under_way:
        budget.received(
            Reply(1, "", prompt_tokens=1000, completion_tokens=under_way.pop()), judge
        )


@given(
    max_cost=st.floats(0.01, 20),
    lengths=st.lists(st.integers(1, 1024), min_size=1, max_size=60),
    concurrency=st.integers(1, 64),
)
def test_a_run_spends_what_it_may_and_not_more(max_cost, lengths, concurrency):
    """However many calls are under way, and whatever the answers before them cost."""
    price = Price(1000, 500, 2000)
    budget = Budget(max_cost=max_cost)
    spend(budget, costing(*price), sorted(lengths), concurrency)
    assert budget.spent <= max_cost + 1e-9
    if budget.exhausted:  # a prompt of 4,000 bytes may have as many tokens
        assert budget.spent > max_cost - price.of(4100, 0, 1024) - 1e-9
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


NOT_AMOUNTS = (float("nan"), float("inf"), -1, -0.01, "1", True, None, [1])


@pytest.mark.parametrize("wrong", NOT_AMOUNTS)
def test_a_limit_or_a_price_that_is_no_amount_is_refused(wrong):
    for name in ("max_calls", "max_cost"):
        if wrong is not None:  # no limit
            with pytest.raises(ValueError, match=f"{name} = .*finite and not negative"):
                Budget(**{name: wrong})
    for place in range(3):
        if wrong in ("1", True):  # read as numbers
            continue
        price = [1, 2, 3]
        price[place] = wrong
        with pytest.raises(
            ValueError, match=r"price = .*three numbers, finite and not negative"
        ):
            describe("openai:m", price)
    for price in ((), (1, 2), (1, 2, 3, 4), 5, "abc"):
        with pytest.raises(ValueError, match=r"price = .*three numbers"):
            describe("openai:m", price)


def counts(prompt, cached, completion):
    return {
        "prompt_tokens": prompt,
        "cached_tokens": cached,
        "completion_tokens": completion,
    }


@pytest.mark.parametrize(
    ("said", "dollars"),
    [
        (counts(1000, 0, 100), 0.002 + 0.0008),
        (counts(1000, 1000, 100), 0.0005 + 0.0008),
        # more from the cache than was sent
        (counts(1000, 10**6, 100), 0.0005 + 0.0008),
        (counts(0, 0, 100), 0.00813 + 0.0008),  # one count is missing: its limit
        (counts(1000, 0, 0), 0.002 + 0.008192),
        (counts(0, 0, 0), 0.00813 + 0.008192),
    ],
)
def test_counts_that_are_missing_or_impossible_are_taken_at_their_limit(said, dollars):
    budget, judge = Budget(max_cost=1), costing(2, 0.5, 8)
    assert budget.allows(ASK, judge)
    budget.received(Reply(1, "Fine. [RESULT] 2", **said), judge)
    assert budget.spent == pytest.approx(dollars, rel=0.01)


@settings(max_examples=30, deadline=None)
@given(
    texts=st.lists(
        st.tuples(
            st.sampled_from(["a", "so on ", "\u5b57", "\U0001f980"]),
            st.integers(1, 9000),
        ),
        min_size=1,
        max_size=30,
    ),
    max_cost=st.floats(0.001, 0.2),
    concurrency=st.integers(1, 64),
)
def test_what_is_reserved_is_that_of_the_very_request(texts, max_cost, concurrency):
    """Short texts first, then long ones, in scripts of which every byte is a token."""
    price, judge = Price(2.5, 0, 10), costing(2.5, 0, 10)
    budget, under_way = Budget(max_cost=max_cost), []
    left = [
        replace(ASK, request_id=n, messages=(Message("user", piece * times),))
        for n, (piece, times) in enumerate(sorted(texts, key=lambda text: text[1]))
    ]

    def answer(request):
        sent = len(request.messages[0].content.encode())
        reply = Reply(
            request.request_id, "x", prompt_tokens=sent, completion_tokens=1024
        )
        budget.received(reply, judge)

    while left and not budget.exhausted:
        while left and len(under_way) < concurrency and budget.allows(left[0], judge):
            under_way.append(left.pop(0))
        while under_way:
            answer(under_way.pop())
    assert budget.spent <= max_cost + 1e-9
    if left:
        sent = len(left[0].messages[0].content.encode())
        assert budget.spent + price.of(sent + 100, 0, 1024) > max_cost


def test_an_endpoint_that_goes_beyond_its_limits_is_reckoned_with_from_then_on():
    budget, judge = Budget(max_cost=1), costing(0, 0, 10)
    assert budget.allows(ASK, judge)
    budget.received(Reply(1, "x", prompt_tokens=9_000, completion_tokens=60_000), judge)
    assert budget.spent == pytest.approx(0.6)
    assert not budget.allows(ASK, judge)  # the next may be as long


def test_a_request_of_several_calls_is_reckoned_as_all_of_them():
    forced = replace(ASK, readout="logprobs", slots=("[a]", "[b]"), choices=("1", "10"))
    server = OpenAIJudge("m", "http://localhost:8000/v1", server="llama.cpp")
    judge = describe(server, (1, 1, 1))
    one, several = (
        Budget(max_cost=1)._most(r, judge).prompt_tokens for r in (ASK, forced)
    )
    assert several >= 6 * one


def test_a_budget_goes_on_with_another_judge_at_its_price():
    budget, costly = Budget(max_cost=1), costing(2, 0.5, 8)
    assert budget.allows(ASK, costly)
    budget.received(Reply(1, "", prompt_tokens=1, completion_tokens=100_000), costly)
    assert budget.spent == pytest.approx(0.8, rel=1e-4)
    assert not budget.allows(ASK, costly)  # this judge's next answer may be as long
    assert replace(budget, exhausted="").allows(ASK, describe("simulated:unbiased"))
    with pytest.raises(ValueError, match="max_cost needs a price"):
        budget.check(describe("openai:no-such-model"))


def test_calls_are_counted_to_the_last():
    budget = Budget(max_calls=2)
    assert [budget.allows(ASK, describe("embedded")) for _ in range(3)] == [
        True,
        True,
        False,
    ]
    assert budget.exhausted == "stopped after 2 calls"


@pytest.mark.parametrize("hour", [2, 10, 17, 22])
def test_a_price_that_depends_on_the_hour_is_the_dearest_of_the_day(hour, monkeypatch):
    """DeepSeek's was half of it at night; a run begun then goes on in the morning."""
    from datetime import UTC, datetime, timedelta

    from genai_prices import Usage, calc_price

    class Clock(datetime):
        @classmethod
        def now(cls, tz=None):
            return datetime(2026, 11, 28, hour, 17, tzinfo=tz)

    monkeypatch.setattr("rubricnb.core.judge.datetime", Clock)
    judge = describe("openai:deepseek-chat@https://api.deepseek.com")
    day = datetime(2026, 11, 28, 0, 30, tzinfo=UTC)
    by_hour = {
        calc_price(
            Usage(output_tokens=10**6),
            "deepseek-chat",
            provider_api_url="https://api.deepseek.com",
            genai_request_timestamp=day + timedelta(hours=h),
        ).total_price
        for h in range(24)
    }
    assert len(by_hour) == 2
    assert judge.price.output == float(max(by_hour))


@pytest.mark.parametrize(
    "name",
    [
        "max_tokens",
        "max_completion_tokens",
        "max_output_tokens",
        "max_new_tokens",
        "maxOutputTokens",
        "max_length",
        "n",
        "best_of",
        "candidateCount",
        "num_return_sequences",
        "n_predict",
        "num_predict",
    ],
)
def test_extra_makes_no_answer_longer_and_none_more(name):
    """A limit in dollars is reckoned from what the plan has."""
    with pytest.raises(ValueError, match=f"extra sets {name}, which the judge writes"):
        rb.open_judge("openai:gpt-4.1", extra={"top_k": 1, name: 16_000})
    if name != "n":  # which is short enough to mean something else
        within = {"options": [{"seed": 1, name: 16_000}]}
        with pytest.raises(ValueError, match=f"extra sets {name}, which the judge"):
            rb.open_judge("openai:gpt-4.1", extra=within)


@pytest.mark.parametrize(
    "extra",
    [
        {"reasoning": {"max_tokens": 100}},
        {"response_format": {"schema": {"text": {"type": "string", "maxLength": 9}}}},
        {"user": 'writes "max_tokens": 5'},
    ],
)
def test_extra_keeps_what_makes_no_answer_longer(extra):
    rb.open_judge("openai:gpt-4.1", extra=extra).close()


@pytest.mark.parametrize(
    "name", ["service_tier", "tools", "plugins", "web_search_options", "models"]
)
def test_what_is_billed_apart_needs_a_price_of_ones_own(name):
    def asked(**limits):
        with closing(rb.open_judge("openai:gpt-4.1", extra={name: "x"})) as judge:
            rb.run(rb.plan(rb.load("minibench", n_items=5), rb.fixed(5, 1)), judge,
                   store=":memory:", **limits)  # fmt: skip

    with pytest.raises(ValueError, match=rf"max_cost cannot count {name} in extra"):
        asked(max_cost=1)
    with pytest.raises(rb.judging.RunInterrupted, match="max_cost"):
        asked(max_cost=0, price=(1, 1, 1))
