"""Is an effect small enough to ignore? Two one-sided tests, with margins fixed in advance."""

from __future__ import annotations

import numpy as np
from scipy import special

MARGINS = {"share": 0.02, "delta_r": 0.02, "delta_pos": 0.1, "flips": 0.05}
"""Margins in shares of reads, differences of r, score points, and shares of prompts."""


def equivalence(
    estimate: float,
    standard_error: float,
    n_clusters: float,
    margin: float,
    largest: float | None = None,
) -> float:
    """Test whether an effect lies within ± a margin (TOST).

    Parameters
    ----------
    estimate, standard_error
        The effect and its standard error, in the same units as the margin.
    n_clusters
        Clusters behind the standard error; t has n_clusters - 1 degrees of freedom.
    margin
        The largest effect that is called nothing; positive, fixed before looking.
    largest
        What one cluster can show at most, if an effect can be a matter of rare events: 1 for flips.
        The standard error is then taken as at least that of an effect of `margin` in which some
        clusters show all of this and the others nothing. Without it a few prompts, none of which
        flipped, would prove that 5 % do not.

    Returns
    -------
    float
        p: the larger one of the two one-sided tests'. Below 0.05 the 90 % interval lies inside the
        margins. NaN without a standard error, and where it is 0 (unless `largest` is given): that
        some clusters are alike does not say how others are.

    Raises
    ------
    ValueError
        The margin is not positive.

    Examples
    --------
    >>> equivalence(0.001, 0.005, n_clusters=100, margin=0.02) < 0.001
    True
    >>> round(equivalence(0.02, 0.005, n_clusters=100, margin=0.02), 2)
    0.5
    >>> equivalence(0.0, 0.0, n_clusters=5, margin=0.05)
    nan
    >>> round(equivalence(0.0, 0.0, n_clusters=5, margin=0.05, largest=1), 2)
    0.32
    """
    if not margin > 0:
        raise ValueError(f"margin = {margin}: an equivalence margin is positive")
    if n_clusters < 2 or not (np.isfinite(estimate) and np.isfinite(standard_error)):
        return float("nan")
    if largest is not None:
        at_margin = np.sqrt(max(margin * (largest - margin), 0.0) / n_clusters)
        standard_error = max(standard_error, float(at_margin))
    if standard_error < 1e-12:
        return float("nan")
    below, above = (margin - estimate) / standard_error, (margin + estimate) / standard_error
    return float(special.stdtr(n_clusters - 1, -min(below, above)))
