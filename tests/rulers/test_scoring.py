from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from rubricnb.rulers.scoring import gate_threshold, is_tie, score

decisions = st.lists(st.integers(0, 2), min_size=1, max_size=30)
levels = st.integers(2, 12)


@given(decisions, levels)
def test_is_the_mean_decision_on_the_scale_rounded_half_up(decisions, levels):
    exact = 1 + (levels - 1) * Fraction(sum(decisions), 2 * len(decisions))
    rounded = (exact + Fraction(1, 2)).__floor__()
    assert score(decisions, levels) == min(max(rounded, 1), levels)
    assert is_tie(decisions, levels) == (exact - exact.__floor__() == Fraction(1, 2))


@given(decisions, levels, st.integers(0, 5), st.integers(1, 5))
def test_no_score_from_the_threshold_on_without_enough_valid_quotes(
    decisions, levels, n_valid, n_needed
):
    gated = score(decisions, levels, n_valid, n_needed)
    if gated >= gate_threshold(levels):
        assert n_valid >= n_needed
    assert gated <= score(decisions, levels)
    if n_valid >= n_needed:
        assert gated == score(decisions, levels)


@given(levels)
def test_the_gate_is_never_vacuous_and_never_below_the_middle(levels):
    cap = gate_threshold(levels) - 1
    assert 1 <= cap < levels
    assert cap >= Fraction(levels + 1, 2) - Fraction(1, 2)
