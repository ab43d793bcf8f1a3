"""A check accepts the right answer, refuses every wrong one, and never raises or tells."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rubricnb.checks import close


@pytest.mark.parametrize(
    "answer",
    [..., None, "five", [], {}, float("nan"), [[1, 2], [1]], -1e300],
)
def test_no_answer_makes_a_check_raise(answer):
    assert close(answer, 0.25).startswith("Not answered" if answer is ... else "Not yet")


@given(st.floats(-1e6, 1e6), st.floats(-0.5, 0.5))
def test_an_answer_is_right_within_the_tolerance_and_nowhere_else(expected, off):
    if abs(abs(off) - 0.01) > 1e-6 and abs(expected) > 1e-6:
        assert (close(expected * (1 + off), expected) == "Right.") == (abs(off) < 0.01)


@pytest.mark.parametrize(
    ("message", "word"),
    [
        (close(-0.25, 0.25), "sign"),
        (close(0.0025, 0.25), "100 times too small"),
        (close(25, 0.25), "100 times too large"),
        (close(0.005, 0), "Right"),
        (close(0.5, 0), "too large"),
        (close(0.2, 0.25), "too small"),
        (close([1, 2], 1), "one number is asked for, you give 2"),
        (close(4, 16, slips={"take it twice": 4}), "take it twice"),
    ],
)
def test_common_slips_are_recognised(message, word):
    assert word in message


def test_a_wrong_answer_is_never_told_the_right_one():
    for value in (7.0, 0.123, -3.0):
        assert "0.25" not in close(value, 0.25, "Look again.")
