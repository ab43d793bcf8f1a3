"""Which reads were lost, and could their loss explain a result?"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from scipy import special

from rubricnb.statistics._reads import By, IntArray, Reads, Value, read_groups
from rubricnb.statistics.families import benjamini_hochberg


def missing_reads(judgments: pd.DataFrame, by: By = None, value: Value = "score") -> pd.DataFrame:
    """Report the share of parsed reads by ordering.

    Parameters
    ----------
    judgments, by, value
        As in `position_bias`; any design.

    Returns
    -------
    DataFrame
        One row a group and ordering: ``ordering, n_asked, n_parsed, parse_rate``; and, the same in
        all rows of a group, ``cochran_q, df, p`` (Cochran's Q: do the orderings lose equally many
        reads of the same items?), ``p_adjusted`` (Benjamini–Hochberg over the groups) and
        ``reason``. Where items were shown different orderings there is no Q, and the rows are reads
        1, 2, … of the design (``ordering`` is empty).

    Notes
    -----
    What a loss could at worst have hidden stands in `position_bias`: ``share_1_least`` and
    ``share_1_most`` and so on.

    Examples
    --------
    >>> import pandas as pd
    >>> judgments = pd.DataFrame({
    ...     "item_id": list("aabbcc"), "cluster_id": list("aabbcc"), "design": "balanced",
    ...     "ordering_index": [1, 2] * 3, "ordering": ["1-2", "2-1"] * 3,
    ...     "score": [1, None, 2, None, 1, 2]})
    >>> missing_reads(judgments)[["ordering", "n_asked", "parse_rate", "cochran_q"]].round(2)
      ordering  n_asked  parse_rate  cochran_q
    0      1-2        3        1.00        2.0
    1      2-1        3        0.33        2.0
    """
    frames, p_values = [], []
    for key, reads in read_groups(judgments, by, value):
        table, test = _parse_rates(reads)
        p_values.append(test["p"])
        frames.append(table.assign(**{**key, **test})[[*key, *table.columns, *test]])
    adjusted = benjamini_hochberg(pd.Series(p_values, dtype="float64"))
    for frame, p in zip(frames, adjusted, strict=True):
        frame.insert(frame.columns.get_loc("p") + 1, "p_adjusted", p)
    return pd.concat(frames, ignore_index=True)


def _parse_rates(reads: Reads) -> tuple[pd.DataFrame, dict[str, Any]]:
    per_item = len(reads.orderings) > reads.value.shape[1]
    slot = np.where(reads.order >= 0, np.arange(reads.value.shape[1]), -1)
    column = slot if per_item else reads.order
    size = reads.value.shape[1] if per_item else len(reads.orderings)
    asked = np.bincount(column[column >= 0], minlength=size)
    parsed = np.bincount(column[(column >= 0) & reads.parsed], minlength=size)
    codes = [""] * size if per_item else ["-".join(map(str, o)) for o in reads.orderings.tolist()]
    table = pd.DataFrame(
        {
            "ordering": codes,
            "n_asked": asked,
            "n_parsed": parsed,
            "parse_rate": parsed / np.maximum(asked, 1),
        }
    )
    if per_item:
        undefined = {"cochran_q": np.nan, "df": 0, "p": np.nan}
        return table, undefined | {"reason": "items were shown different orderings"}
    first_read = [int((reads.order == o).any(axis=0).argmax()) for o in range(size)]
    return table.iloc[np.argsort(first_read)], _cochran(reads, column, size)


def _cochran(reads: Reads, column: IntArray, size: int) -> dict[str, Any]:
    """Cochran's Q over items asked under every ordering; success: all their reads parsed."""
    item = np.broadcast_to(np.arange(len(column))[:, None], column.shape)
    asked = np.zeros((len(column), size))
    lost = np.zeros((len(column), size))
    own = column >= 0
    np.add.at(asked, (item[own], column[own]), 1)
    gone = own & ~reads.parsed
    np.add.at(lost, (item[gone], column[gone]), 1)
    success = (lost == 0)[(asked > 0).all(axis=1)].astype(np.float64)
    undefined = {"cochran_q": np.nan, "df": size - 1, "p": np.nan}
    if size < 2:
        return undefined | {"reason": "one ordering: nothing to compare"}
    if len(success) == 0:
        return undefined | {"reason": "no item was asked under every ordering"}
    row, total = success.sum(axis=1), success.sum(axis=0)
    varied = (row * (size - row)).sum()
    if varied == 0:
        return undefined | {"reason": "no item lost reads under some orderings only"}
    q = float((size - 1) * size * ((total - total.mean()) ** 2).sum() / varied)
    return {"cochran_q": q, "df": size - 1, "p": float(special.chdtrc(size - 1, q)), "reason": ""}
