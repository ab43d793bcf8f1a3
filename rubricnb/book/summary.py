"""The small tables in ``results/``: statistics of every recorded judge."""

from __future__ import annotations

import pandas as pd

from rubricnb.core.support.folders import results_folder
from rubricnb.core.support.spelling import one_of

SUMMARIES = (
    "position",
    "agreement",
    "components",
    "ranking",
    "criteria",
    "counting",
    "cost",
    "temperature",
)
"""Their names; ``python -m studies.replication`` computes them."""


def recorded_summary(name: str) -> pd.DataFrame:
    """Read a statistic of every recorded judge.

    Parameters
    ----------
    name
        In `SUMMARIES`: ``position``, ``agreement``, ``components``, ``ranking``,
        ``criteria``, ``counting``, ``cost`` or ``temperature``.

    Returns
    -------
    DataFrame
        ``results/NAME.csv``: judge, dataset and the columns of the statistic.

    Raises
    ------
    ValueError
        There is no such table.

    Examples
    --------
    >>> recorded_summary("ranking").columns[:4].tolist()
    ['judge', 'dataset', 'a', 'b']
    """
    one_of("table", name, SUMMARIES)
    return read_result(name)


def read_result(name: str) -> pd.DataFrame:
    """Read a table of ``results/``; the reason of what is known is empty."""
    path = results_folder() / f"{name}.csv"
    table = pd.read_csv(
        path, dtype={"reason": object}, keep_default_na=False, na_values=[""]
    )
    return table.fillna({"reason": ""})
