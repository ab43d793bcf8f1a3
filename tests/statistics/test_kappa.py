import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import cohen_kappa_score

import rubricnb as rb
from rubricnb.statistics.kappa import kappa_of_sums, kappa_sums

LEVELS = range(1, 7)
pairs = st.lists(
    st.tuples(st.integers(1, 6), st.integers(1, 6)), min_size=2, max_size=40
)


def constant_and_equal(ratings):
    return len({rating for pair in ratings for rating in pair}) == 1


@given(pairs)
def test_equals_sklearn_with_all_labels(ratings):
    a, b = zip(*ratings, strict=True)
    ours = rb.quadratic_weighted_kappa(a, b)
    if constant_and_equal(ratings):
        assert math.isnan(ours)
    else:
        theirs = cohen_kappa_score(a, b, weights="quadratic", labels=list(LEVELS))
        assert ours == pytest.approx(theirs, abs=1e-9)


@given(pairs)
def test_is_symmetric_and_does_not_change_when_both_scales_shift(ratings):
    a, b = map(np.array, zip(*ratings, strict=True))
    forth, back = rb.quadratic_weighted_kappa(a, b), rb.quadratic_weighted_kappa(b, a)
    shifted = rb.quadratic_weighted_kappa(a + 100, b + 100)
    assert forth == pytest.approx(back, nan_ok=True)
    assert forth == pytest.approx(shifted, abs=1e-7, nan_ok=True)


def test_an_unused_level_keeps_its_distance():
    """With index distances 5 would be one step from 2."""
    a, b = [1, 2, 5, 5], [1, 2, 2, 5]
    by_index = cohen_kappa_score(a, b, weights="quadratic")
    assert rb.quadratic_weighted_kappa(a, b) < by_index


def test_half_points_are_welcome():
    a, b = np.array([3, 7.5, 9, 15]), np.array([4, 7.5, 8.5, 14])
    doubled = cohen_kappa_score(
        (2 * a).astype(int),
        (2 * b).astype(int),
        weights="quadratic",
        labels=list(range(6, 31)),
    )
    assert rb.quadratic_weighted_kappa(a, b) == pytest.approx(doubled)


def test_nothing_to_agree_on_is_nan_and_one_constant_side_is_zero():
    assert math.isnan(rb.quadratic_weighted_kappa([], []))
    assert math.isnan(rb.quadratic_weighted_kappa([3, 3], [3, 3]))
    assert rb.quadratic_weighted_kappa([3, 3], [2, 4]) == 0
    assert rb.quadratic_weighted_kappa([3, 3], [4, 4]) == 0


def test_sums_of_parts_give_the_whole():
    rng = np.random.default_rng(0)
    x, y = rng.integers(1, 7, 50).astype(float), rng.integers(1, 7, 50).astype(float)
    parts = kappa_sums(x, y)
    without_first = float(kappa_of_sums(parts.sum(axis=0) - parts[0]))
    assert without_first == pytest.approx(rb.quadratic_weighted_kappa(x[1:], y[1:]))


@pytest.mark.parametrize(
    ("a", "b", "message"),
    [
        ([1, 2], [1], "equal length"),
        ([1, math.nan], [1, 2], "rating 1 of a is missing"),
    ],
)
def test_bad_ratings_are_named(a, b, message):
    with pytest.raises(ValueError, match=message):
        rb.quadratic_weighted_kappa(a, b)
