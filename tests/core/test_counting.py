"""Counts by number, against a loop."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rubricnb.core.support.counting import binned, repeated, summed_from

CODES = st.lists(st.integers(0, 20), min_size=1, max_size=50)


@given(CODES, st.integers(0, 30), st.sampled_from(["i1", "u2", "i4", "i8"]))
def test_numbers_are_counted(codes, least, kind):
    found = binned(np.array(codes, kind), minlength=least)
    assert found.tolist() == [
        codes.count(number) for number in range(max(least, max(codes) + 1))
    ]
    assert found.dtype == np.int64  # products of counts overflow 32 bits


@given(CODES)
def test_weights_are_added(codes):
    weights = np.arange(len(codes)) / 4
    found = binned(np.array(codes), weights)
    for number, total in enumerate(found):
        assert total == sum(
            w for c, w in zip(codes, weights, strict=True) if c == number
        )


def test_a_fraction_is_not_cut_to_a_number():
    with pytest.raises(TypeError, match="float64"):
        binned(np.array([0.0, 1.5]))


@given(st.lists(st.integers(0, 4), min_size=1, max_size=20))
def test_values_are_repeated(times):
    found = repeated(np.arange(len(times)), np.array(times))
    assert found.tolist() == [i for i, n in enumerate(times) for _ in range(n)]


@given(st.lists(st.integers(1, 4), min_size=1, max_size=20))
def test_stretches_are_added(sizes):
    values = np.arange(sum(sizes)) / 8
    ends = np.cumsum(sizes)
    found = summed_from(values, ends - sizes)
    assert found.tolist() == [part.sum() for part in np.split(values, ends[:-1])]
