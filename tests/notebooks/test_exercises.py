"""Every check of an exercise refuses nothing, half and double,
and accepts correct rounding.
"""

import math

import matplotlib.pyplot as plt
import pytest
from cells import code_of
from closely import slow_unless_due
from test_notebooks import SMALL

import rubricnb as rb
from rubricnb.book import notebooks as book
from rubricnb.book import tables
from tools import building

ROOT = book.find_root()
STEMS = building.notebooks(ROOT)
CLOSE = rb.checks.close


@pytest.fixture
def checks(monkeypatch):
    """Execute a chapter's code with small parameters;
    return (expected, options) of its checks.
    """
    asked = []

    def noted(answer, expected, hint="", **options):
        asked.append((float(expected), options))
        return CLOSE(answer, expected, hint, **options)

    monkeypatch.setattr(rb.checks, "close", noted)
    monkeypatch.setattr(tables, "say", lambda *_, **__: None)
    monkeypatch.setattr(tables, "tell", lambda *_, **__: None)
    monkeypatch.setattr(tables, "show", lambda *_, **__: plt.close("all"))

    def run(stem):
        scope = {"display": lambda *_: None}
        small = building.parameter_file(SMALL, ROOT)[stem]
        declared = {parameter.name for parameter in book.parameters(stem, ROOT)}
        for code in code_of(stem):
            exec(code, scope)
            if declared <= scope.keys() and small:  # the cell of parameters has run
                scope.update(small)
                small = {}
        plt.close("all")
        return asked

    return run


@pytest.mark.parametrize("stem", slow_unless_due(STEMS))
def test_a_check_refuses_half_and_double_and_accepts_correct_rounding(stem, checks):
    for expected, options in checks(stem):
        verdict = {k: v for k, v in options.items() if k != "slips"}

        def right(answer, expected=expected, verdict=verdict):
            return CLOSE(answer, expected, **verdict) == "Right."

        assert right(expected)
        if expected == 0:
            continue
        few = options.get("count") and abs(expected) < 2  # next to 1.5 are 1 and 2
        assert few or not any(map(right, (0, expected / 2, 2 * expected))), (
            expected,
            options,
        )
        # two digits, or whole
        places = max(0, 1 - math.floor(math.log10(abs(expected))))
        assert right(round(expected, places)), (expected, options)
