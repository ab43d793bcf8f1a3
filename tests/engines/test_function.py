"""What makes two functions two judges."""

from functools import partial

import pytest

import rubricnb as rb
from rubricnb.core.judge import open_judge
from rubricnb.core.rendering import rendered
from rubricnb.engines.function import FunctionJudge


def ask(messages, model="a"):
    return f"{model} [RESULT] 3"


def other(messages, model="a"):
    return f"{model}: [RESULT] 3"


class Judge:
    def __init__(self, model, retries=0):
        self.model, self.retries = model, retries

    def __call__(self, messages):
        self.retries += 1
        return f"{self.model} [RESULT] 3"

    def answer(self, messages):
        return self(messages)


def made(model, calls):
    def ask(messages):
        calls.append(messages)
        return f"{model} [RESULT] 3"

    return ask


def strict(points):
    return lambda messages: f"[RESULT] {5 - points}"


def counting(calls):
    def ask(messages):
        nonlocal calls
        calls += 1
        return "[RESULT] 3"

    return ask


def wrapped(inner):
    return lambda messages: inner(messages)


def identity(function, name="judge"):
    return FunctionJudge(function, name=name).identity


@pytest.mark.parametrize(
    ("one", "two"),
    [
        (ask, other),
        (partial(ask, model="a"), partial(ask, model="b")),
        (partial(ask, model="a"), partial(other, model="a")),
        (Judge("a"), Judge("b")),
        (Judge("a").answer, Judge("b").answer),
        (made("a", []), made("b", [])),
        (wrapped(made("a", [])), wrapped(made("b", []))),
        (lambda m, model="a": model, lambda m, model="b": model),
        (strict(0), strict(2)),
    ],
)
def test_what_changes_an_answer_changes_the_identity(one, two):
    assert identity(one) != identity(two)


@pytest.mark.parametrize(
    ("one", "two"),
    [
        (ask, ask),
        (partial(ask, model="a"), partial(ask, model="a")),
        (Judge("a"), Judge("a", retries=3)),
        (made("a", []), made("a", [["asked before"]])),
        (counting(0), counting(7)),
    ],
)
def test_what_changes_none_does_not(one, two):
    assert identity(one) == identity(two)


SHIFT, CALLS, PROMPT = 1, 0, "Score it."


def told(text):
    return f"{PROMPT} {text}"


def of_module(messages):
    return f"[RESULT] {SHIFT} {told(messages)}"


def counts(messages):
    global CALLS
    CALLS += 1
    return f"[RESULT] {SHIFT}"


@pytest.mark.parametrize(
    ("function", "name", "value", "other"),
    [
        (of_module, "SHIFT", 2, True),
        (of_module, "PROMPT", "Grade it.", True),  # through a function that it calls
        (of_module, "told", other, True),
        (of_module, "CALLS", 7, False),
        (counts, "CALLS", 7, False),
        (counts, "SHIFT", 2, True),
    ],
)
def test_names_of_its_module_that_a_function_uses_are_of_its_identity(
    function, name, value, other, monkeypatch
):
    before = identity(function)
    monkeypatch.setitem(function.__globals__, name, value)
    assert (identity(function) != before) == other


def test_functions_typed_into_a_shell_are_told_apart_by_their_code():
    typed = []
    for model in "ab":
        scope = {}
        exec(f"def ask(messages):\n    return '{model} [RESULT] 3'", scope)
        typed.append(scope["ask"])
    assert identity(typed[0]) != identity(typed[1])


def test_a_limit_of_money_needs_the_price_of_a_function(tmp_path):
    items = rb.load("minibench", n_items=15)
    requests = rb.plan(items, rb.fixed(5, 1), readout="feedback")
    with pytest.raises(ValueError, match="not known for 'ask'"):
        rb.run(requests, open_judge(ask), store=":memory:", max_cost=1.0)
    free = rb.run(
        requests, open_judge(ask), store=":memory:", max_cost=1.0, price=(0, 0, 0)
    )
    assert (free.status == "ok").all()


def test_a_key_in_what_a_function_raises_is_not_kept(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-proj-0123456789")

    def refused(messages):
        raise RuntimeError(f"401 for {' '.join('sk-proj-0123456789')}")

    requests = rb.plan(rb.load("minibench", n_items=5), rb.fixed(5, 1)).head(1)
    judge = open_judge(refused, name="refused")
    [reply] = judge.answer(rendered(requests, judge))
    assert reply.error == "RuntimeError: 401 for …"
