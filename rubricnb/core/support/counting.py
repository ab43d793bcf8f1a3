"""Counts, sums and copies by number, alike on every machine.

WebAssembly, which browsers run, has 32 bits. NumPy takes no 64-bit numbers as counts or
positions there (`numpy.bincount` before 2.3, `numpy.repeat`, ``numpy.add.reduceat``),
and its own counts have 32 bits, so that their products overflow. The linter refuses
those functions elsewhere in the package.
"""

from __future__ import annotations

from typing import Any, SupportsIndex

import numpy as np
from numpy.typing import ArrayLike, NDArray


def binned(
    codes: ArrayLike, weights: ArrayLike | None = None, minlength: SupportsIndex = 0
) -> NDArray[Any]:
    """Return how often each number from 0 on is in `codes`, or the sum of its weights.

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
    found = np.bincount(_index(codes), weights, minlength)  # noqa: TID251
    return found.astype(np.int64, copy=False) if weights is None else found


def repeated(values: ArrayLike, times: ArrayLike) -> NDArray[Any]:
    """Return each value as often as `times` says, for all or for each.

    Examples
    --------
    >>> repeated([5, 6], 2).tolist(), repeated([5, 6], np.array([0, 3])).tolist()
    ([5, 5, 6, 6], [6, 6, 6])
    """
    return np.repeat(np.asarray(values), _index(times))  # noqa: TID251


def summed_from(values: ArrayLike, starts: ArrayLike, axis: int = 0) -> NDArray[Any]:
    """Return the sum of each stretch of `values` that begins at one of `starts`.

    Examples
    --------
    >>> summed_from(np.array([1, 2, 3, 4]), np.array([0, 3])).tolist()
    [6, 4]
    """
    return np.add.reduceat(np.asarray(values), _index(starts), axis=axis)  # noqa: TID251


def _index(numbers: ArrayLike) -> NDArray[np.intp]:
    return np.asarray(numbers).astype(np.intp, casting="same_kind", copy=False)
