import numpy as np
import pytest
from scipy import stats
from statsmodels.stats.weightstats import ttost_paired

from rubricnb.statistics._inference import MARGINS, equivalence


def test_it_is_statsmodels_paired_tost():
    x = np.random.default_rng(0).normal(0.05, 1, 40)
    expected = ttost_paired(x, np.zeros(40), -0.4, 0.4)[0]
    assert equivalence(x.mean(), stats.sem(x), 40, 0.4) == pytest.approx(expected)


def test_its_size_at_the_margin_is_the_level():
    rng = np.random.default_rng(1)
    x = rng.normal(0.5, 1, (2000, 30))
    p = [equivalence(row.mean(), stats.sem(row), 30, 0.5) for row in x]
    low, high = stats.binom.interval(0.999, 2000, 0.05)
    assert low <= (np.array(p) < 0.05).sum() <= high


@pytest.mark.parametrize("effect", [-0.3, 0.0, 0.1])
def test_a_p_below_5_per_cent_is_a_90_per_cent_interval_inside_the_margins(effect):
    for se in np.linspace(0.01, 0.3, 30):
        half = stats.t.ppf(0.95, 24) * se
        inside = effect - half > -0.35 and effect + half < 0.35
        assert (equivalence(effect, se, 25, 0.35) < 0.05) == inside


def test_nothing_is_equivalent_without_a_standard_error():
    assert np.isnan(equivalence(0.0, float("nan"), 30, 0.1))
    assert np.isnan(equivalence(float("nan"), 0.1, 30, 0.1))
    assert np.isnan(equivalence(0.0, 0.1, 1, 0.1))
    assert np.isnan(equivalence(0.0, 0.0, 500, 0.1))
    assert np.isnan(equivalence(0.2, 0.0, 500, 0.1))


@pytest.mark.parametrize("margin", [0, -1, float("nan")])
def test_a_margin_is_positive(margin):
    with pytest.raises(ValueError, match="positive"):
        equivalence(0.0, 0.1, 10, margin)


def test_margins_are_fixed():
    assert MARGINS == {"share": 0.02, "delta_r": 0.02, "delta_pos": 0.1, "flips": 0.05}
