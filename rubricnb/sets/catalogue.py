"""The datasets there are, and the one function that loads them."""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Integral
from pathlib import Path

import numpy as np
import pandas as pd

from rubricnb.core.frames import Items
from rubricnb.core.support.hashing import hash64, mix64
from rubricnb.core.support.spelling import one_of
from rubricnb.core.support.types import Options
from rubricnb.files.own import load_csv
from rubricnb.files.rubrics import read_rubrics
from rubricnb.files.tables import reading
from rubricnb.sets import sets


def load(
    name: str,
    n_items: int | None = None,
    seed: int = 0,
    path: str | Path | None = None,
    rubric: str | Path | None = None,
    columns: Mapping[str, str] | None = None,
) -> Items:
    """Load a dataset.

    Parameters
    ----------
    name
        One of `datasets`, or ``csv`` for own data; several joined by ``+``:
        ``hanna+summeval``.
    n_items
        Draw this many items of each: whole clusters (what shares a text), and only the
        last one drawn is cut. Default: all.
    seed
        Seed of that draw. A larger draw with the same seed contains a smaller one.
    path
        ``csv``: the file, as `rubricnb.files.own.load_csv` reads it. ``asap-2.0``,
        ``summhf``, ``dress``, ``biggen`` and ``flask``: the file one has got from its
        authors, with the columns that ``rubricnb/sets/sets.yml`` names.
    rubric
        ``csv``: the file of rubrics. For ``hanna`` and ``summeval``: rubrics to use
        instead of ours, for the criteria they name.
    columns
        ``csv``: the file's names of columns → ours, as `rubricnb.files.own.load_csv`
        takes them.

    Returns
    -------
    Items
        The items frame, with its rubrics as ``.rubrics``.

    Raises
    ------
    ValueError
        An unknown name; `path` or `rubric` missing or out of place; bad data.
    ConnectionError, FileNotFoundError
        The data cannot be had; the message says what to do.

    Examples
    --------
    >>> items = load("minibench", n_items=20)
    >>> len(items), items.cluster_id.nunique(), items.rubrics.rubric_id.nunique()
    (20, 2, 3)
    >>> load("mini-bench")
    Traceback (most recent call last):
    ...
    ValueError: unknown dataset 'mini-bench'; did you mean 'minibench' or \
'minibench-7'? There are: minibench, minibench-7, mt-bench, vicuna, hanna, summeval, \
summeval-all, asap-2, asap-7, asap-8, asap-2.0, summhf, dress, biggen, flask, csv
    """
    facts = _facts().set_index("name")
    names = str(name).split("+")
    for one in names:
        if one not in facts.index and Path(one).suffix[1:].isalpha():
            raise ValueError(
                f"{one!r} is not a dataset: load a file of your own with load('csv', "
                "path=…, rubric=…), in an audit with --path and --rubric"
            )
        one_of("dataset", one, facts.index)
    if len(set(names)) < len(names):
        raise ValueError(f"{name!r} names a dataset twice: name each once")
    if n_items is not None and not (isinstance(n_items, Integral) and n_items >= 1):
        raise ValueError(
            f"n_items is {n_items!r}; give a whole number from 1, or None for all"
        )
    given = {"path": path, "rubric": rubric, "columns": columns}
    given = {key: value for key, value in given.items() if value is not None}
    own = () if path is None else (path, rubric)
    with reading(*(Path(file) for file in own if isinstance(file, str | Path))):
        takes = [one for one in names if facts["takes"][one]] or names
        loaded = [
            _load(one, facts.loc[one], given if one in takes else {}) for one in names
        ]
    drawn = [_drawn(items, n_items, seed) for items in loaded]
    return pd.concat(drawn, ignore_index=True)


def datasets() -> pd.DataFrame:
    """List the datasets there are.

    Returns
    -------
    DataFrame
        name, n_items (0: as given), composition, human (ratings by people), gold
        (scores of a stronger judge), reference, licence, source, needs (what it takes
        to load it), and met_real_data: whether its loader has read the real files.

    Examples
    --------
    >>> n_items = datasets().set_index("name").n_items
    >>> n_items[["mt-bench", "vicuna", "hanna", "summeval"]].tolist()
    [320, 320, 576, 1600]
    """
    return _facts().drop(columns="takes")


def _facts() -> pd.DataFrame:
    return pd.read_csv(Path(__file__).with_name("datasets.csv"), keep_default_na=False)


def _load(name: str, facts: pd.Series, given: Options) -> Items:
    """Load own data, or a set of ``sets.yml``, with what it takes."""
    takes = facts["takes"].split()
    allowed = [*takes, "columns"] if name == "csv" else takes
    for key in given:
        if key not in allowed:
            listed = (
                " and ".join(f"{one}=" for one in allowed)
                or "no file of yours: 'csv' does"
            )
            raise ValueError(f"{key}= does not apply to {name!r}, which takes {listed}")
    if "path" in takes and not set(takes) <= set(given):
        files = ", ".join(f"{one}='…'" for one in takes)
        raise ValueError(
            f"{name!r} is read from your own files: load({name!r}, {files}); get it "
            f"from {facts['source']}"
        )
    if name == "csv":
        return load_csv(**given)
    if "rubric" in given:
        given = {"rubrics": read_rubrics(given["rubric"])}
    return sets.load(name, **given)


def _drawn(items: Items, n_items: int | None, seed: int) -> Items:
    if n_items is None or n_items >= len(items):
        return items
    place = mix64(hash64(items["cluster_id"]), seed)
    drawn = np.argsort(place, kind="stable")[:n_items]
    out = items.iloc[np.sort(drawn)]
    used = out.rubrics["rubric_id"].isin(out["rubric_id"])
    out.rubrics = out.rubrics[used].reset_index(drop=True)
    return out
