"""Many tests at once: adjusted p-values for a family fixed in advance."""

from __future__ import annotations

import numpy as np
import pandas as pd
from scipy import stats

from rubricnb.statistics._reads import FloatArray


def benjamini_hochberg(p: pd.Series) -> FloatArray:
    """Adjust a family of p-values for the false discovery rate (Benjamini & Hochberg 1995).

    Parameters
    ----------
    p
        The family, fixed before looking: judge × dataset, judge × criterion, or the contrasts of a
        table. NaN stay NaN and out of the family.

    Returns
    -------
    ndarray
        Adjusted p-values, in the order of `p`.

    Examples
    --------
    >>> benjamini_hochberg(pd.Series([0.01, 0.02, float("nan"), 0.5])).tolist()
    [0.03, 0.03, nan, 0.5]
    """
    values = np.asarray(p, dtype=np.float64)
    out = np.full(len(values), np.nan)
    known = ~np.isnan(values)
    if known.any():
        out[known] = stats.false_discovery_control(values[known])
    return out
