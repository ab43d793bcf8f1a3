"""Requests that no plan has made: asked through the store."""

import pytest

from rubricnb.core.contract import Message, Reply, Request
from rubricnb.core.run import ask


def written(text, readout="feedback", **facts):
    return Request(0, "", (Message("user", text),), (), (), readout, **facts)


class Echo:
    """Answers with the prompt, and counts."""

    slug, source, identity, deterministic = "echo", "live", "echo 1", True
    readouts, concurrency = ("feedback", "json"), 1

    def __init__(self):
        self.seen = []

    def answer(self, requests):
        for request in requests:
            self.seen.append(request.messages[0].content)
            yield Reply(request.request_id, request.messages[0].content)


def test_answers_come_in_the_order_of_the_requests_and_once_each(tmp_path, capsys):
    judge, path = Echo(), tmp_path / "s.sqlite"
    texts = ["b", "a", "b", "c"]
    replies = ask([written(t) for t in texts], judge, path)
    assert [r.text for r in replies] == texts
    assert sorted(judge.seen) == ["a", "b", "c"]
    ask([written(t) for t in texts], judge, path)
    assert len(judge.seen) == 3  # nothing is asked again
    ask([written("a")], judge, path, fresh=True)
    assert judge.seen[3:] == ["a"]


@pytest.mark.parametrize(
    ("facts", "calls"),
    [
        (
            [
                {"readout": "json", "schema": x}
                for x in ("{}", '{"type": "object"}', "{}")
            ],
            2,
        ),
        ([{"temperature": 0.7, "replicate": k} for k in (1, 2, 3)], 3),
        ([{"temperature": 0.0, "replicate": k} for k in (1, 2, 3)], 1),
    ],
)
def test_requests_that_differ_in_what_is_asked_are_asked_apart(facts, calls, capsys):
    judge = Echo()
    ask([written("x", **own) for own in facts], judge, ":memory:")
    assert len(judge.seen) == calls
