"""Counts and sums by number, alike on every machine."""

from __future__ import annotations

from typing import Any, SupportsIndex

import numpy as np
from numpy.typing import ArrayLike, NDArray


def binned(
    codes: ArrayLike, weights: ArrayLike | None = None, minlength: SupportsIndex = 0
) -> NDArray[Any]:
    """Return how often each number from 0 on is in `codes`, or the sum of its weights.

    `numpy.bincount` takes no 64-bit numbers on a machine with 32 bits before NumPy 2.3,
    and its counts are numbers of 32 bits there, whose products overflow. WebAssembly,
    which browsers run, has 32 bits.

    Parameters
    ----------
    codes
        Whole numbers, 0 or more.
    weights
        One for each; default: count.
    minlength
        Least length of the result.

    Examples
    --------
    >>> binned(np.array([0, 2, 2])).tolist(), binned([0, 2, 2], [1, 0.5, 2]).tolist()
    ([1, 0, 2], [1.0, 0.0, 2.5])
    """
    small = np.asarray(codes).astype(np.intp, casting="same_kind", copy=False)
    found = np.bincount(small, weights, minlength)  # noqa: TID251
    return found.astype(np.int64, copy=False) if weights is None else found
