"""Judgments that others recorded and published, each as one frame."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

import pandas as pd

from rubricnb.core.frames import Judgments
from rubricnb.core.support.spelling import one_of


def recordings() -> pd.DataFrame:
    """List the judgments of others that can be loaded.

    Returns
    -------
    DataFrame
        name, judges, asked_by (never by us), n_rows, people (who rated the same items),
        licence, megabytes (to download), source, what, and beware: what one must know
        before using them.

    Examples
    --------
    >>> recordings().set_index("name").n_rows["rewardbench-reads"]
    np.int64(1227424)
    """
    return _facts().drop(columns="loader")


def load_recording(name: str) -> Judgments:
    """Load judgments that others recorded, from their source at a fixed commit.

    Parameters
    ----------
    name
        One of `recordings`.

    Returns
    -------
    Judgments
        As `rubricnb.judgments` returns them: all of the set, the rows without a score
        included (``status`` says which, ``reason`` why), with the items and people's
        ratings as ``.rated``.

    Raises
    ------
    ValueError
        An unknown name, or a file that has changed.
    ConnectionError, FileNotFoundError
        As `rubricnb.files.fetch.fetch`.

    Examples
    --------
    >>> load_recording("summeval-sicks")
    Traceback (most recent call last):
    ...
    ValueError: unknown recording 'summeval-sicks'; did you mean 'summeval-six' or \
'summeval-pairs'? There are: rewardbench-reads, summeval-gpt, summeval-pairs, \
summeval-six, hanna-llm, prometheus-gpt4, scoring-probes, pew-order
    """
    loaders = _facts().set_index("name")["loader"]
    one_of("recording", name, loaders.index)
    module, function = loaders[name].split(":")
    judgments: Judgments = getattr(
        import_module(f"rubricnb.sets.others.{module}"), function
    )()
    return judgments


def _facts() -> pd.DataFrame:
    return pd.read_csv(Path(__file__).with_name("recordings.csv"))
