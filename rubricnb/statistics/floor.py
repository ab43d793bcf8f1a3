"""What Cramér's V is when there is nothing to find."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import chi


def cramers_v_floor(n_reads: ArrayLike, n_options: ArrayLike) -> Any:
    """Return the mean of the papers' V for a judge without any preference, reads independent.

    Parameters
    ----------
    n_reads
        Reads counted.
    n_options
        n, 2 or more.

    Returns
    -------
    float or ndarray
        Mean of the χ distribution with n - 1 degrees of freedom, over sqrt(reads (n - 1)); close to
        sqrt(1 / reads). Copies of reads are no reads: two of each raise the floor by sqrt(2). Reads
        that share an item's quality lower it, shared texts raise it.

    Notes
    -----
    arXiv:2602.02219v2, §4.4 calls V "invariant to sample size"; near 0 it is not.

    Examples
    --------
    At n = 2 on MT-Bench the balanced design gives 4 reads of 320 items.

    >>> round(float(cramers_v_floor(4 * 320, 2)), 3)
    0.022
    """
    reads, n = np.asarray(n_reads, dtype=np.float64), np.asarray(n_options, dtype=np.float64)
    return chi.mean(n - 1) / np.sqrt(reads * (n - 1))
