import numpy as np
import pandas as pd
import pytest
from scipy import stats
from statsmodels.stats.multitest import multipletests

from rubricnb.statistics._inference import benjamini_hochberg


def test_it_is_statsmodels():
    p = np.random.default_rng(0).beta(0.5, 2, 30)
    assert benjamini_hochberg(pd.Series(p)) == pytest.approx(multipletests(p, method="fdr_bh")[1])


def test_undefined_p_values_stay_out_of_the_family():
    p = pd.Series([0.01, np.nan, 0.04])
    assert benjamini_hochberg(p)[[0, 2]] == pytest.approx(
        stats.false_discovery_control([0.01, 0.04])
    )
    assert np.isnan(benjamini_hochberg(pd.Series([np.nan]))).all()
