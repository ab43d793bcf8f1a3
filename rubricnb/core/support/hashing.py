"""Stable 64-bit hashes: the source of every request id and of every random stream.

Python's own ``hash`` changes from run to run and pandas' may change from version to
version; these two functions never do, so a plan made today names the same requests next
year, and an item draws the same random ordering whatever else is asked.
"""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import blake2b

import numpy as np
from numpy.typing import NDArray

from rubricnb.core.support.types import FloatArray

UInt64Array = NDArray[np.uint64]


def hash64(values: Iterable[object]) -> UInt64Array:
    """Hash each value's text to 64 bits (BLAKE2b).

    Parameters
    ----------
    values
        Anything with a stable ``str``.

    Returns
    -------
    ndarray of uint64, one per value.

    Examples
    --------
    >>> hash64(["hanna/001", "hanna/002"])
    array([ 572671639607582129, 9087401930260695863], dtype=uint64)
    """
    digests = b"".join(blake2b(str(v).encode(), digest_size=8).digest() for v in values)
    return np.frombuffer(digests, dtype="<u8").astype(np.uint64)


def mix64(*parts: UInt64Array | int) -> UInt64Array:
    """Combine 64-bit hashes into one, elementwise (SplitMix64, Steele et al. 2014).

    Order matters: ``mix64(a, b) != mix64(b, a)``. Scalars broadcast.

    Examples
    --------
    >>> bool((mix64(hash64(["a"]), 1) != mix64(hash64(["a"]), 2)).all())
    True
    """
    with np.errstate(over="ignore"):
        state: UInt64Array = np.asarray(0x9E3779B97F4A7C15, dtype=np.uint64)
        for part in parts:
            z = np.asarray(part, dtype=np.uint64) + state * np.uint64(
                0x9E3779B97F4A7C15
            )
            z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
            z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
            state = z ^ (z >> np.uint64(31))
    return np.asarray(state, dtype=np.uint64)


def uniform(hashes: UInt64Array) -> FloatArray:
    """Map 64-bit hashes to uniform numbers in the open interval (0, 1).

    Examples
    --------
    >>> u = uniform(mix64(hash64(["item"]), np.arange(10_000, dtype=np.uint64)))
    >>> bool(abs(u.mean() - 0.5) < 0.01)
    True
    """
    # 52 bits, so that x + 0.5 is exact and the ends 0 and 1 are never reached.
    return np.asarray(((hashes >> np.uint64(12)).astype(float) + 0.5) * 2.0**-52)
