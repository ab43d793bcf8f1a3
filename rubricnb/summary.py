"""The small tables in ``results/``: what the statistics say of every judge, and the datasets."""

from __future__ import annotations

import pandas as pd

from rubricnb.judging.results import results_folder

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
    """Read what a statistic says of every recorded judge.

    Parameters
    ----------
    name
        In `SUMMARIES`: ``position``, ``agreement``, ``components``, ``ranking``, ``criteria``,
        ``counting``, ``cost`` or ``temperature``.

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
    if name not in SUMMARIES:
        raise ValueError(f"no table {name!r}; there are: {', '.join(SUMMARIES)}")
    path = results_folder() / f"{name}.csv"
    table = pd.read_csv(path, dtype={"reason": object}, keep_default_na=False, na_values=[""])
    return table.fillna({"reason": ""}) if "reason" in table else table


def described(name: str | None = None) -> pd.DataFrame:
    """Read the recorded descriptions of datasets, which need no dataset.

    Parameters
    ----------
    name
        A dataset; default: all that are recorded (by ``python -m studies.descriptions``).

    Returns
    -------
    DataFrame
        As from `rubricnb.data.describe.describe`.

    Raises
    ------
    FileNotFoundError
        None is recorded; names those that are.

    Examples
    --------
    >>> described("hanna").query("quantity == 'clusters'").value.item()
    96.0
    """
    paths = {path.stem: path for path in sorted((results_folder() / "datasets").glob("*.csv"))}
    if not paths or name not in (None, *paths):
        raise FileNotFoundError(
            f"no recorded description of {name!r}; there are: {', '.join(paths) or 'none'}; "
            f"make one with rubricnb.data.describe.describe(rubricnb.load({name!r}))"
        )
    chosen = paths.values() if name is None else [paths[name]]
    frames = [pd.read_csv(path, keep_default_na=False, na_values="nan") for path in chosen]
    return pd.concat(frames, ignore_index=True)
