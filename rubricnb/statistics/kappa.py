"""Quadratic weighted kappa: chance-corrected agreement on an ordinal scale."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from rubricnb.core.estimates.intervals import means_of, summands
from rubricnb.core.support.types import FloatArray


def quadratic_weighted_kappa(a: ArrayLike, b: ArrayLike) -> float:
    """Compute quadratic weighted kappa between two ratings of the same items.

    Parameters
    ----------
    a, b
        Ratings, one per item; half points are welcome.

    Returns
    -------
    float
        1: equal; 0: as by chance, also where one side is constant; below 0: worse than
        chance. NaN where there is nothing to agree on: no items, or both sides constant
        and equal.

    Raises
    ------
    ValueError
        Different numbers of ratings, or a missing rating.

    Notes
    -----
    QWK = 2 cov / (var a + var b + (mean a − mean b)²) with population moments, which is
    also Lin's concordance. Distances are those of the ratings: a level that nobody used
    still counts (Cohen 1968; arXiv RULERS, §4.1).

    Examples
    --------
    >>> round(quadratic_weighted_kappa([1, 2, 3, 4, 5], [1, 2, 3, 4, 4]), 3)
    0.941
    """
    x, y = np.asarray(a, float), np.asarray(b, float)
    if x.shape != y.shape or x.ndim != 1:
        raise ValueError(
            f"ratings of shapes {x.shape} and {y.shape}: give two of equal length"
        )
    for name, values in (("a", x), ("b", y)):
        if np.isnan(values).any():
            at = int(np.isnan(values).argmax())
            raise ValueError(
                f"rating {at} of {name} is missing (NaN): leave the item out on both "
                "sides"
            )
    return float(kappa_of_sums(kappa_sums(x, y).sum(axis=0)))


def kappa_sums(x: FloatArray, y: FloatArray) -> FloatArray:
    """Per item the summands of kappa: 1, x, y, xx, yy, xy about one common point.

    Shape (items, 6). Sums of these over any set of items give `kappa_of_sums`.
    """
    center = np.concatenate([x, y]).mean() if len(x) else 0.0
    return summands(x - center, y - center, np.ones_like(x))


def kappa_of_sums(sums: FloatArray) -> FloatArray:
    """Kappa from summed `kappa_sums` (…, 6); NaN for 0/0."""
    x, y, xx, yy, xy = means_of(sums)
    # both variances and (mean x - mean y)²
    disagreement = xx + yy - 2 * x * y
    agreement = 2 * (xy - x * y)
    nothing = disagreement <= 1e-12
    return np.where(nothing, np.nan, agreement / np.where(nothing, 1.0, disagreement))
