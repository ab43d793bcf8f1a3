"""Bias Cost: how far an ordering puts scores where the judge likes them (v1, §5.2)."""

from __future__ import annotations

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from scipy import special

from rubricnb.core.estimates import reads as arrays
from rubricnb.core.estimates.reasons import Reason, because_each
from rubricnb.core.frames import require
from rubricnb.core.permutation import balanced, code
from rubricnb.core.support.types import FloatArray, IntArray

_TABLE_COLUMNS = (
    "score",
    "position",
    "share",
    "n",
    "share_null",
    "share_null_sd",
    "reason",
    "codes",
)


def bias_cost(table: pd.DataFrame, orderings: ArrayLike | None = None) -> pd.DataFrame:
    """Compute the Bias Cost of orderings from a table of P(position | score).

    ``Cost(π) = Σ_p |P(p | π_p) − 1/n|``: 0 if every score is selected at its position
    in π as often as at any other.

    Parameters
    ----------
    table
        As `score_position` gives it: ``score, position, share`` and, for `cost_null`,
        ``share_null_sd``. Other columns name groups.
    orderings
        Shape (k, n): the score shown at each position. Default: the 2n of `balanced`.

    Returns
    -------
    DataFrame
        One row a group and ordering: ``ordering`` (its code), ``cost`` (the paper
        prints ×100), ``cost_null`` (its mean for a judge without any preference: the
        noise floor), ``n_least`` (reads of the score with the fewest; the floor is 0.16
        at 100, 0.05 at 1,000 for n = 5), ``reason``. The floor follows from the
        permutation distribution, where the table has it.

    Raises
    ------
    ValueError
        The table has no row for some score and position, or an ordering is not a
        permutation.

    Notes
    -----
    arXiv:2602.02219v1, §5.2, Table 6. The least of several costs is biased down: choose
    the ordering on some clusters, report its cost on others.

    Examples
    --------
    >>> import pandas as pd
    >>> table = pd.DataFrame({
    ...     "score": [1, 1, 2, 2], "position": [1, 2, 1, 2],
    ...     "share": [0.7, 0.3, 0.5, 0.5]})
    >>> bias_cost(table, [[1, 2], [2, 1]])[["ordering", "cost"]]
      ordering  cost
    0      1-2   0.2
    1      2-1   0.2
    """
    require(table, ["score", "position", "share"], "the table")
    names = [c for c in table.columns if c not in _TABLE_COLUMNS]
    rows = []
    for key, part in arrays.groups(table, names):
        share = _square(part, "share")
        shown = _checked(orderings, len(share))
        null = _mean_deviation(part, len(share))
        fewest = float(part["n"].min()) if "n" in part else np.nan
        result = pd.DataFrame(
            {
                "ordering": code(shown),
                "cost": _costs(np.abs(share - 1 / len(share)), shown),
                "cost_null": _costs(null, shown),
                "n_least": fewest,
            }
        )
        result = result.assign(
            **because_each(*[_why_unknown(share, null)] * len(result))
        )
        rows.append(arrays.keyed(key, result))
    return pd.concat(rows, ignore_index=True)


def _costs(deviation: FloatArray, shown: IntArray) -> FloatArray:
    """Sum deviations (…, score, position) along orderings (k, n): shape (…, k)."""
    return deviation[..., shown - 1, np.arange(shown.shape[1])].sum(axis=-1)


def _mean_deviation(part: pd.DataFrame, n: int) -> FloatArray:
    """Mean of |share − 1/n| without any preference; the shares are close to normal."""
    if "share_null_sd" not in part:
        return np.full((n, n), np.nan)
    sd, off = _square(part, "share_null_sd"), _square(part, "share_null") - 1 / n
    ratio = off / np.where(sd > 0, sd, 1.0)
    folded = sd * np.sqrt(2 / np.pi) * np.exp(-(ratio**2) / 2) + off * special.erf(
        ratio / 2**0.5
    )
    return np.where(sd > 0, folded, np.abs(off))


def _why_unknown(share: FloatArray, null: FloatArray) -> Reason | None:
    missing = np.flatnonzero(np.isnan(share).any(axis=1)) + 1
    if len(missing):
        return Reason("cost.unknown", scores=", ".join(map(str, missing)))
    return Reason("cost_null.unknown") if np.isnan(null).any() else None


def _square(part: pd.DataFrame, column: str) -> FloatArray:
    wide = part.pivot(index="score", columns="position", values=column)
    wide = wide.sort_index().sort_index(axis="columns")
    n, low = wide.shape[1], 0 if 0 in wide.index else 1
    if [*wide.index] != [*range(low, low + n)] or [*wide] != [*range(1, n + 1)]:
        raise ValueError(
            f"the table has scores {list(wide.index)} and positions "
            f"{list(wide.columns)}; a Bias Cost needs each of n scores at each "
            "position 1…n"
        )
    return wide.to_numpy(float)


def _checked(orderings: ArrayLike | None, n: int) -> IntArray:
    shown = (
        balanced(n).orderings()
        if orderings is None
        else np.atleast_2d(np.asarray(orderings))
    )
    if shown.shape[1] != n or (np.sort(shown, axis=1) != np.arange(1, n + 1)).any():
        raise ValueError(f"orderings must be permutations of 1..{n}, shape (k, {n})")
    return shown.astype(np.int64)
