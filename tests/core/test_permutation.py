"""Designs: balance proved by counting, for every n from 2 to 10."""

from itertools import permutations
from math import factorial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rubricnb.core.permutation import (
    Design,
    balanced,
    code,
    decode,
    fixed,
    neighbour_counts,
    placebo,
    position_counts,
    shuffled,
    single,
    williams,
)

SIZES = range(2, 11)


def every_design(n):
    return [
        balanced(n),
        williams(n),
        shuffled(n, 7),
        fixed(n, 3),
        Design("descending", n),
        single(np.roll(np.arange(1, n + 1), 1)),
        placebo(n, 5),
    ]


@pytest.mark.parametrize("n", SIZES)
def test_every_ordering_of_every_design_lists_every_option_once(n):
    for design in every_design(n):
        orderings = design.orderings("some item", seed=3)
        assert orderings.shape == (design.k, n)
        assert (np.sort(orderings, axis=1) == np.arange(1, n + 1)).all(), design


@pytest.mark.parametrize("n", SIZES)
def test_balanced_designs_show_every_option_equally_often_at_every_position(n):
    for design, k in ((balanced(n), 2 * n), (williams(n), n if n % 2 == 0 else 2 * n)):
        assert design.k == k
        assert (position_counts(design.orderings()) == k // n).all()


@pytest.mark.parametrize("n", SIZES)
def test_balanced_is_the_forward_rotations_and_their_mirror_images(n):
    orderings = balanced(n).orderings()
    forward = {tuple(np.roll(np.arange(1, n + 1), -j)) for j in range(n)}
    assert {tuple(o) for o in orderings[:n]} == forward
    assert {tuple(o[::-1]) for o in orderings[n:]} == forward


@pytest.mark.parametrize("n", SIZES)
def test_balanced_covers_2n_of_the_neighbour_pairs_and_williams_all_of_them_equally(n):
    cyclic = neighbour_counts(balanced(n).orderings())
    assert (cyclic > 0).sum() == (2 * n if n > 2 else 2)
    square = neighbour_counts(williams(n).orderings())
    off_diagonal = square[~np.eye(n, dtype=bool)]
    assert set(off_diagonal) == {1 if n % 2 == 0 else 2}
    assert (np.diag(square) == 0).all()


@given(
    st.integers(2, 8), st.integers(1, 12), st.text(max_size=12), st.integers(0, 2**31)
)
def test_shuffled_draws_distinct_orderings_until_all_n_factorial_are_used(
    n, k, item, seed
):
    orderings = [tuple(o) for o in shuffled(n, k).orderings(item, seed)]
    assert orderings == [tuple(o) for o in shuffled(n, k).orderings(item, seed)]
    whole_rounds, rest = divmod(k, factorial(n))
    assert len(set(orderings)) == (factorial(n) if whole_rounds else rest)
    counts = (
        [orderings.count(o) for o in permutations(range(1, n + 1))] if n <= 3 else [0]
    )
    assert max(counts) - min(counts) <= 1


def test_shuffled_depends_on_the_item_and_on_the_seed_and_on_nothing_else():
    design = shuffled(5, 10)
    base = design.orderings("a", 0)
    assert (base != design.orderings("b", 0)).any()
    assert (base != design.orderings("a", 1)).any()
    # fewer reads are the first ones
    assert (base[:4] == shuffled(5, 4).orderings("a", 0)).all()


def test_shuffled_puts_every_option_everywhere_equally_often_over_many_items():
    counts = sum(
        position_counts(shuffled(5, 10).orderings(f"i{i}")) for i in range(400)
    )
    # 4,000 draws a cell of probability 1/5: 4 standard deviations are 101.
    assert abs(counts - 800).max() < 101


@given(st.permutations(range(1, 8)))
def test_codes_are_read_back(order):
    assert decode(code(order)[0]) == tuple(order)


@pytest.mark.parametrize("n", ["5", 2.5, None, 1, -3, 1001])
def test_a_design_of_no_whole_number_of_options_is_refused(n):
    with pytest.raises(
        ValueError, match=r"n = .*: give a whole number of options from 2 to"
    ):
        Design("fixed", n)


@pytest.mark.parametrize("bad", [[1, 1, 2], [0, 1, 2], [1], [2, 3], [1.5, 2]])
def test_single_refuses_what_is_no_permutation(bad):
    with pytest.raises(ValueError, match="not a permutation"):
        single(bad)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: balanced(1), "of options from 2 to 1,000"),
        (lambda: fixed(5, 0), "of reads from 1 to 10,000"),
        (lambda: placebo(5, 16), "1 to 15"),
        (lambda: shuffled(0, 3), "of options from 2 to 1,000"),
        (
            lambda: Design("balanced", 5),
            "k = 1: of 5 options balanced shows 10 orderings",
        ),
        (lambda: Design("first", 5, 3), "of 5 options first shows 1, 2"),
        (lambda: shuffled(5, 10).orderings(), "item_id"),
        (
            lambda: Design("upwards", 5),
            "unknown design 'upwards'. There are: balanced, ",
        ),
    ],
)
def test_impossible_sizes_are_refused_with_the_reason(call, message):
    with pytest.raises(ValueError, match=message):
        call()


@pytest.mark.parametrize("n", [2, 3, 4, 5, 7, 10])
def test_first_orderings_are_opposite_pairs_or_squares(n):
    most = williams(n).k
    for k in {1, n, *range(2, most + 1, 2)}:
        orders = Design("first", n, k).orderings()
        assert orders.shape == (k, n)
        assert len({tuple(o) for o in orders.tolist()}) == k
        counts = position_counts(orders)
        if k in (n, most):  # every option equally often at every place
            assert (counts == k // n).all()
        # as often at a place as at its mirror image, so at the middle on average
        elif k > 1:
            assert (counts == counts[:, ::-1]).all()
    assert Design("first", n, 1).orderings().tolist() == [list(range(1, n + 1))]
    assert (Design("first", n, most).orderings() == williams(n).orderings()).all()
