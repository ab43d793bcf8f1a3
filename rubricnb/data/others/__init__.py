"""Judgments that others recorded and published: each read from its source, as one frame."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from rubricnb.data.others import hanna, llm_rubric, probes, prometheus, rewardbench, summeval
from rubricnb.data.validate import nearest
from rubricnb.frames import Judgments

_LOADERS = {
    "rewardbench-reads": rewardbench.load,
    "summeval-gpt": summeval.load_gpt,
    "summeval-pairs": summeval.load_pairs,
    "summeval-six": summeval.load_six,
    "hanna-llm": hanna.load,
    "prometheus-gpt4": prometheus.load,
    "scoring-probes": probes.load,
    "llm-rubric": llm_rubric.load,
}


def recordings() -> pd.DataFrame:
    """List the judgments of others that can be loaded.

    Returns
    -------
    DataFrame
        name, judges, asked_by (never by us), n_rows, people (who rated the same items), licence,
        megabytes (to download), source, what, and beware: what one must know before using them.

    Examples
    --------
    >>> recordings().set_index("name").n_rows["rewardbench-reads"]
    np.int64(1227424)
    """
    return pd.read_csv(Path(__file__).with_name("recordings.csv"))


def load_recording(name: str) -> Judgments:
    """Load judgments that others recorded, from their source at a fixed commit.

    Parameters
    ----------
    name
        One of `recordings`.

    Returns
    -------
    Judgments
        As `rubricnb.judgments` returns them: all of the set, the rows without a score included
        (``status`` says which, ``reason`` why), with the items and people's ratings as ``.rated``.

    Raises
    ------
    ValueError
        An unknown name, or a file that has changed.
    ConnectionError, FileNotFoundError
        As `rubricnb.data.fetch.fetch`.

    Examples
    --------
    >>> load_recording("summeval-sicks")
    Traceback (most recent call last):
    ...
    ValueError: unknown recording 'summeval-sicks'; did you mean 'summeval-six' or \
'summeval-pairs'? There are: rewardbench-reads, summeval-gpt, summeval-pairs, summeval-six, \
hanna-llm, prometheus-gpt4, scoring-probes, llm-rubric
    """
    if name not in _LOADERS:
        there = ", ".join(_LOADERS)
        raise ValueError(f"unknown recording {name!r}{nearest(name, _LOADERS)} There are: {there}")
    return _LOADERS[name]()
