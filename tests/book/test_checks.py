"""A check accepts the right answer, refuses every wrong one,
and never raises or tells.
"""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rubricnb.book.checks import close


@pytest.mark.parametrize(
    "answer",
    [..., None, "five", [], {}, float("nan"), [[1, 2], [1]], -1e300],
)
def test_no_answer_makes_a_check_raise(answer):
    assert close(answer, 0.25).startswith(
        "Not answered" if answer is ... else "Not yet"
    )


@given(st.floats(-1e6, 1e6), st.floats(-0.5, 0.5))
def test_an_answer_is_right_within_the_tolerance_and_nowhere_else(expected, off):
    answer = expected * (1 + off)
    if (
        abs(abs(off) - 0.01) > 1e-6
        and abs(expected) > 1e-6
        and answer != round(answer, 9)
    ):
        assert (close(answer, expected) == "Right.") == (abs(off) < 0.01)


@pytest.mark.parametrize(
    ("message", "word"),
    [
        (close(-0.25, 0.25), "sign"),
        (close(0.0025, 0.25), "100 times too small"),
        (close(25, 0.25), "100 times too large"),
        (close(0.005, 0), "Right"),
        (close(0.5, 0), "too large"),
        (close(0.2, 0.25), "too small"),
        (
            close((0, 3), 0.3),
            "one number is asked for; write its decimals after a point",
        ),
        (close("30 %", 0.3), "a number with a decimal point and nothing else"),
        (close(None, 0.3), "not a number"),
        (close(4, 16, slips={"take it twice": 4}), "take it twice"),
    ],
)
def test_common_slips_are_recognised(message, word):
    assert word in message


@given(
    st.floats(0.02, 1e6),
    st.sampled_from([-1, 1]),
    st.floats(0.001, 0.49),
    st.booleans(),
)
def test_nothing_half_and_double_are_wrong_and_correct_rounding_is_right(
    size, sign, off, count
):
    expected = sign * size
    for wrong in (0, expected / 2, 2 * expected):
        if not (count and size < 2):  # next to 1.5 is 1, and 2
            assert close(wrong, expected, tolerance=off, count=count) != "Right."
    for digits in (2, 3, 4):
        # whole numbers at least
        places = max(0, digits - 1 - math.floor(math.log10(size)))
        assert close(round(expected, places), expected, tolerance=off) == "Right."


@given(st.floats(10, 1e6))
def test_a_count_may_be_rounded_up_or_down(expected):
    assert close(math.floor(expected), expected, count=True, tolerance=1e-9) == "Right."
    assert close(math.ceil(expected), expected, count=True, tolerance=1e-9) == "Right."
    assert (
        close(math.ceil(expected) + 1, expected, count=True, tolerance=1e-9) != "Right."
    )


@pytest.mark.parametrize("tolerance", [0, 0.5, 5, -0.1, math.nan])
def test_a_check_that_cannot_fail_is_refused(tolerance):
    with pytest.raises(ValueError, match=r"between 0 and 0\.5"):
        close(773, 773, tolerance=tolerance)
    with pytest.raises(TypeError, match="positional"):
        close(773, 773, "", tolerance)


def test_a_wrong_answer_is_never_told_the_right_one():
    for value in (7.0, 0.123, -3.0):
        assert "0.25" not in close(value, 0.25, "Look again.")
