"""The door of judges: no other module reads a judge's name."""

import sys
from typing import ClassVar

import pytest

import rubricnb as rb
from rubricnb.core.contract import Reply
from rubricnb.core.judge import Price, describe


class Name(str):
    """A judge's name that notes which modules read it."""

    readers: ClassVar[set[str]] = set()

    def _noted(name):
        def method(self, *arguments):
            Name.readers.add(sys._getframe(1).f_globals["__name__"])
            return getattr(str, name)(self, *arguments)

        return method

    partition, removeprefix, split, startswith, __contains__, __getitem__ = map(
        _noted,
        (
            "partition",
            "removeprefix",
            "split",
            "startswith",
            "__contains__",
            "__getitem__",
        ),
    )


def test_the_name_of_a_judge_is_read_at_the_door_only(capsys):
    requests = rb.plan(rb.load("minibench", n_items=1), rb.balanced(5))
    rb.estimate_cost(requests, Name("simulated:first-biased"))
    rb.run(requests, Name("simulated:first-biased"), store=":memory:")
    assert Name.readers == {"rubricnb.core.judge"}


def ask(messages):
    return "Fine. [RESULT] 2"


@pytest.mark.parametrize(
    "judge",
    [
        "embedded",
        "simulated:unbiased",
        "simulated:grader",
        "openai:gpt-4.1",
        "openai:m@http://127.0.0.1:1/v1",
        "decision:jev-1.13.0@https://api.typesafe.ai/v1",
        "decision:m@http://127.0.0.1:1/v1",
        ask,
    ],
)
def test_a_judge_has_one_kind_and_one_price_before_and_after_it_is_opened(judge):
    described = describe(judge)
    kind, price = described.kind, described.price
    opened = describe(described.engine)
    assert (opened.kind, opened.price) == (kind, price)
    if opened.host == "" and price == Price(0, 0, 0):
        assert describe(judge).deterministic == opened.deterministic
    opened.close()


class Own:
    """An engine of a reader's own, that counts a million tokens a call."""

    slug, source, identity, deterministic = "own", "live", "own", False
    readouts, concurrency = ("feedback",), 1

    def __init__(self):
        self.n_calls = 0

    def answer(self, requests):
        for request in requests:
            self.n_calls += 1
            yield Reply(request.request_id, "Fine. [RESULT] 3", prompt_tokens=1_000_000)

    def close(self):
        pass


def test_dollars_of_an_engine_of_one_s_own_are_limited_or_the_run_does_not_start():
    requests = rb.plan(
        rb.load("minibench", n_items=15), rb.fixed(5, 1), readout="feedback"
    )
    engine = Own()
    with pytest.raises(
        ValueError, match=r"max_cost needs a price.* not known for 'own'"
    ):
        rb.run(requests, engine, store=":memory:", max_cost=0.5)
    assert engine.n_calls == 0
    with pytest.raises(rb.judging.RunInterrupted, match="max_cost"):
        rb.run(requests, engine, store=":memory:", max_cost=2.5, price=(1, 1, 1))
    assert 1 <= engine.n_calls <= 3
    engine.is_free = True
    judgments = rb.run(requests, engine, store=":memory:", max_cost=0.0)
    assert (judgments["status"] == "ok").all()
