"""Bias Cost: how far an ordering puts scores where the judge likes to select them (v1, §5.2)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from scipy import special

from rubricnb.permutation import balanced, code
from rubricnb.statistics import _reads as arrays
from rubricnb.statistics._placement import read_profiles
from rubricnb.statistics._reads import By, FloatArray, IntArray, Reads, Value

_TABLE_COLUMNS = ("score", "position", "share", "n", "share_null", "share_null_sd", "reason")


def bias_cost(table: pd.DataFrame, orderings: ArrayLike | None = None) -> pd.DataFrame:
    """Compute the Bias Cost of orderings from a table of P(position | score).

    ``Cost(π) = Σ_p |P(p | π_p) − 1/n|``: 0 if every score is selected at its position in π as
    often as at any other.

    Parameters
    ----------
    table
        As `score_position` gives it: ``score, position, share`` and, for `cost_null`, ``n`` or
        ``share_null_sd``. Other columns name groups.
    orderings
        Shape (k, n): the score shown at each position. Default: the 2n of `balanced`.

    Returns
    -------
    DataFrame
        One row a group and ordering: ``ordering`` (its code), ``cost`` (the paper prints ×100),
        ``cost_null`` (its mean for a judge without any preference: the noise floor), ``n_least``
        (reads of the score with the fewest; the floor is 0.16 at 100, 0.05 at 1,000 for n = 5),
        ``reason``.
        The floor follows from the permutation distribution where the table has it, else from the
        multinomial, which is an upper figure when reads share an item.

    Raises
    ------
    ValueError
        The table has no row for some score and position, or an ordering is not a permutation.

    Notes
    -----
    arXiv:2602.02219v1, §5.2, Table 6. The least of several costs is biased down: see
    `choose_ordering`.

    Examples
    --------
    >>> import pandas as pd
    >>> table = pd.DataFrame({
    ...     "score": [1, 1, 2, 2], "position": [1, 2, 1, 2], "share": [0.7, 0.3, 0.5, 0.5]})
    >>> bias_cost(table, [[1, 2], [2, 1]])[["ordering", "cost"]]
      ordering  cost
    0      1-2   0.2
    1      2-1   0.2
    """
    arrays.require(table, ["score", "position", "share"], "the table")
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
                "reason": _why_unknown(share, null),
            }
        )
        rows.append(arrays.keyed(key, result))
    return pd.concat(rows, ignore_index=True)


def choose_ordering(
    judgments: pd.DataFrame,
    orderings: ArrayLike | None = None,
    by: By = None,
    value: Value = "score",
    splits: int = 100,
    seed: int = 0,
) -> pd.DataFrame:
    """Choose the ordering of least Bias Cost on half of the clusters; report it on the other half.

    Parameters
    ----------
    judgments, by, value
        As in `score_position`.
    orderings
        Shape (k, n): the candidates. Default: the 2n of `balanced`.
    splits
        Random halvings of the clusters; both halves choose in turn.
    seed
        Of the halvings.

    Returns
    -------
    DataFrame
        One row a group: ``ordering`` and ``cost`` of the least on all data (biased down);
        ``cost_chosen`` (mean cost of the chosen ordering on the half that chose it); on the other
        half ``cost_held_out`` (its cost), ``cost_default`` (that of 1…n) and ``cost_mean`` (of all
        candidates); ``chosen_again`` (share of splits in which both halves choose the same);
        ``n_clusters``, ``reason``.

    Notes
    -----
    The correction of arXiv:2602.02219v1, §5.2, which chooses and reports on the same reads. A
    held-out cost near ``cost_mean`` says that the choice was among noise.

    Examples
    --------
    >>> import pandas as pd
    >>> judgments = pd.DataFrame({
    ...     "item_id": list("aabbccdd"), "cluster_id": list("aabbccdd"), "design": "balanced",
    ...     "ordering_index": [1, 2] * 4, "ordering": ["1-2", "2-1"] * 4,
    ...     "score": [1, 2, 1, 2, 1, 1, 2, 2]})
    >>> choose_ordering(judgments)[["ordering", "n_clusters"]]
      ordering  n_clusters
    0      1-2           4
    """
    return arrays.row_per_group(judgments, by, value, lambda r: _choose(r, orderings, splits, seed))


def _choose(reads: Reads, orderings: ArrayLike | None, splits: int, seed: int) -> dict[str, Any]:
    arrays.require_options(reads)
    tables, shown = _cluster_tables(reads), _checked(orderings, reads.n_options)
    n_clusters, n = tables.shape[:2]
    everything = _costs(_deviation(tables.sum(axis=0)), shown)
    row: dict[str, Any] = {"ordering": None, "cost": np.nan}
    if not np.isnan(everything).all():
        least = int(np.nanargmin(everything))
        row = {"ordering": code(shown[least])[0], "cost": float(everything[least])}
    names = ("cost_chosen", "cost_held_out", "cost_default", "cost_mean", "chosen_again")
    row |= dict.fromkeys(names, np.nan) | {"n_clusters": n_clusters, "reason": ""}
    if n_clusters < 2:
        return row | {"reason": "one cluster: halves need two"}
    rng = np.random.default_rng(seed)
    first = np.argsort(rng.random((splits, n_clusters)), axis=1) < n_clusters // 2
    half = np.einsum("sg,gab->sab", first.astype(float), tables)
    pair = np.stack([half, tables.sum(axis=0) - half])  # (2, splits, n, n)
    costs = _costs(_deviation(pair), shown)
    complete = ~np.isnan(costs).any(axis=(0, 2))
    if not complete.any():
        return row | {"reason": "some score is missing from every half, or from some position"}
    costs = costs[:, complete]
    chosen = costs.argmin(axis=2)
    other = costs[::-1]
    ascending = _costs(_deviation(pair[::-1][:, complete]), np.arange(1, n + 1)[None])
    return row | {
        "cost_chosen": float(costs.min(axis=2).mean()),
        "cost_held_out": float(np.take_along_axis(other, chosen[..., None], axis=2).mean()),
        "cost_default": float(ascending.mean()),
        "cost_mean": float(other.mean()),
        "chosen_again": float((chosen[0] == chosen[1]).mean()),
        "reason": "" if complete.all() else f"{int((~complete).sum())} splits lack some score",
    }


def _cluster_tables(reads: Reads) -> FloatArray:
    """Count answers by cluster, score and position: shape (clusters, n, n).

    NaN at positions where the score never stood.
    """
    n = reads.n_options
    position = np.argsort(reads.orderings, axis=1)[reads.order]
    given = (position[..., None] == np.arange(n)) * read_profiles(reads)[..., None]
    counts = arrays.by_cluster(given.sum(axis=1), reads.cluster)
    shown = np.zeros((n, n), dtype=bool)
    shown[reads.orderings[reads.order[reads.parsed]] - 1, np.arange(n)] = True
    return np.asarray(np.where(shown, counts, np.nan))


def _deviation(counts: FloatArray) -> FloatArray:
    """|P(position | score) − 1/n| from counts (…, scores, positions); NaN for a score not given."""
    total = counts.sum(axis=-1, keepdims=True)
    share = np.where(total > 0, counts / np.maximum(total, 1e-300), np.nan)
    return np.asarray(np.abs(share - 1 / counts.shape[-1]))


def _costs(deviation: FloatArray, shown: IntArray) -> FloatArray:
    """Sum deviations (…, score, position) along orderings (k, n): shape (…, k)."""
    return np.asarray(deviation[..., shown - 1, np.arange(shown.shape[1])].sum(axis=-1))


def _mean_deviation(part: pd.DataFrame, n: int) -> FloatArray:
    """Mean of |share − 1/n| without any preference; the shares are close to normal."""
    if "share_null_sd" in part:
        sd, off = _square(part, "share_null_sd"), _square(part, "share_null") - 1 / n
    elif "n" in part:
        sd = np.sqrt((1 / n) * (1 - 1 / n) / np.maximum(_square(part, "n"), 1))
        off = np.zeros_like(sd)
    else:
        return np.full((n, n), np.nan)
    ratio = off / np.where(sd > 0, sd, 1.0)
    folded = sd * np.sqrt(2 / np.pi) * np.exp(-(ratio**2) / 2) + off * special.erf(ratio / 2**0.5)
    return np.asarray(np.where(sd > 0, folded, np.abs(off)))


def _why_unknown(share: FloatArray, null: FloatArray) -> str:
    missing = np.flatnonzero(np.isnan(share).any(axis=1)) + 1
    if len(missing):
        return f"score {', '.join(map(str, missing))}: never given, or not at every position"
    return "cost_null: the table says nothing of its counts" if np.isnan(null).any() else ""


def _square(part: pd.DataFrame, column: str) -> FloatArray:
    wide = part.pivot(index="score", columns="position", values=column).sort_index()
    n = wide.shape[1]
    expected = list(range(1, n + 1))
    low = 0 if 0 in wide.index else 1
    if (
        list(wide.index) != list(range(low, low + n))
        or list(wide.columns.sort_values()) != expected
    ):
        raise ValueError(
            f"the table has scores {list(wide.index)} and positions {list(wide.columns)}; "
            "a Bias Cost needs every one of n scores at every position 1…n"
        )
    return wide[expected].to_numpy(dtype=np.float64)


def _checked(orderings: ArrayLike | None, n: int) -> IntArray:
    shown = balanced(n).orderings() if orderings is None else np.atleast_2d(np.asarray(orderings))
    if shown.shape[1] != n or (np.sort(shown, axis=1) != np.arange(1, n + 1)).any():
        raise ValueError(f"orderings must be permutations of 1..{n}, shape (k, {n})")
    return shown.astype(np.int64)
