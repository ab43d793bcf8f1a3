"""The door of judges: no other module reads a judge's name."""

import sys
from typing import ClassVar

import rubricnb as rb


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
    assert Name.readers == {"rubricnb.judging.judge"}
