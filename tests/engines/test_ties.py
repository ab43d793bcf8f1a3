"""Tied labels have one draw in every order, edit and repeat, whatever the engine.

An endpoint answers over HTTP (the embedded engine is asked by the same class). vLLM is
not installed here, so its requests are answered by a stand-in of the engine alone: what
becomes of an answer is the judge's own code.
"""

import math
from contextlib import contextmanager
from types import SimpleNamespace

import pandas as pd
import pytest
from endpoint import completion, decided, endpoint, levels

import rubricnb as rb
from rubricnb.core.parsing import answer_text, read
from rubricnb.engines.vllm import Asked, VLLMJudge

TIED = {" 1": 0.1, " 2": 0.3, " 3": 0.2, " 4": 0.3, " 5": 0.1}
ITEMS = rb.load("minibench", n_items=30)


class OnlyAsked(VLLMJudge):
    """vLLM's judge with an engine that gives every prompt the same probabilities."""

    slug, identity, concurrency, thinks = "tied-vllm", "vllm tied", 4, False
    control_tokens = ()

    def __init__(self):
        pieces = dict(enumerate(TIED))
        self.choice = lambda rest: (pieces, None)
        logprobs = {
            t: SimpleNamespace(logprob=math.log(TIED[pieces[t]])) for t in pieces
        }
        answer = SimpleNamespace(token_ids=[1], logprobs=[logprobs])
        self.output = SimpleNamespace(num_cached_tokens=0, outputs=[answer])

    def prompt(self, request, beginning=""):
        return [0]

    def answer(self, requests):
        for place, request in enumerate(requests):
            asked = Asked(self, request, place)
            while not asked.reply:
                asked.resume(self.output)
            # later slots go on from the labels that are read of the earlier ones
            drawn = [one.position for one in read(request, asked.reply)]
            assert asked.reply.text == answer_text(request, drawn)
            yield asked.reply

    def close(self):
        pass


def by_level(body, headers):
    """A decision model that ties the same levels in every order."""
    shares = [TIED[f" {name.split()[-1]}"] for name, _ in levels(body)]
    return 200, decided(body, shares), {}


def by_label(body, headers):
    return 200, completion(" 2", tops=[(" 2", TIED)]), {}


@contextmanager
def judged(engine):
    """A judge of this kind that ties the levels 2 and 4."""
    if engine == "vllm":
        yield OnlyAsked()
        return
    answers = by_level if engine == "decision" else by_label
    with endpoint(answers) as (url, _):
        options = {"kind": "choice"} if engine == "decision" else {"server": "vllm"}
        yield rb.open_judge(f"{engine}:m@{url}", **options)


@pytest.fixture(scope="module")
def drawn():
    """The score that the first engine drew, by item."""
    return {}


@pytest.mark.parametrize("engine", ["decision", "openai", "vllm"])
def test_a_tie_has_one_draw_whatever_the_order_edit_repeat_and_engine(engine, drawn):
    designs = (rb.balanced(5), rb.fixed(5, 3), rb.permutation.placebo(5, 6))

    def asked(design, judge, **options):
        plan = rb.plan(ITEMS, design, readout="logprobs", **options)
        return rb.run(plan, judge, store=":memory:")

    with judged(engine) as judge:
        alone = pd.concat(asked(design, judge) for design in designs)
        together = asked(rb.fixed(3, 2), judge, template="criteria")
    assert (alone.status == "ok").all()
    by_item = alone.astype({"item_id": str}).groupby("item_id")
    assert (by_item.score.nunique() == 1).all()
    assert (by_item.position.nunique() > 1).all()
    assert set(alone.score) == {2, 4}
    score = by_item.score.first().to_dict()
    assert score == (drawn.setdefault("score", score))
    for row in together.itertuples():
        assert row.score == score[f"{row.item_id}/{row.criterion}"]
