import numpy as np
import pytest

from rubricnb.statistics.position import cramers_v, cramers_v_floor


@pytest.mark.parametrize(("n", "reads"), [(2, 40), (3, 300), (5, 1000), (9, 5000)])
def test_floor_is_the_mean_of_v_over_fair_dice(n, reads):
    rng = np.random.default_rng(0)
    counts = rng.multinomial(reads, np.full(n, 1 / n), size=20_000)
    chi2 = ((counts - reads / n) ** 2 / (reads / n)).sum(axis=1)
    assert cramers_v_floor(reads, n) == pytest.approx(cramers_v(chi2, reads, n).mean(), rel=0.02)


def test_floor_falls_with_the_root_of_the_reads():
    reads = np.array([100, 400, 1600])
    np.testing.assert_allclose(cramers_v_floor(reads, 5) * np.sqrt(reads), 0.94, atol=0.005)
