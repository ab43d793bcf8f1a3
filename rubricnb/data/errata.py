"""What does not add up in the papers: every identity recomputed, and what a failure means."""

from __future__ import annotations

import pandas as pd

from rubricnb.data.identities import recompute
from rubricnb.data.papers import _ERRATA, claims, verdicts

CONSEQUENCES = ("contradicted", "reading", "slip")
STRONGEST = 10  # the first rows of errata.csv
_WORDS = ["consequence", "quote", "meaning"]


def errata() -> pd.DataFrame:
    """Recompute all that the papers' tables say about the papers' statements.

    Returns
    -------
    DataFrame
        The identities of `rubricnb.data.claims` with value, verdict (``the arithmetic holds`` or
        ``the arithmetic fails``, with ``, as we read it`` for a reading) and, for those that fail,
        consequence, quote (of the paper; an ellipsis marks what is left out) and meaning. These
        come first: the ten strongest paper by paper, then the others. Consequence is
        ``contradicted`` (a table of the paper, or arithmetic, says otherwise), ``slip`` (a count, a
        label or a last digit) or ``reading`` (whatever depends on how we read the sentence: with a
        correction, like for like, or with a word such as "substantial" given a number).

    Raises
    ------
    ValueError
        An identity does not hold and ``errata.csv`` does not say what that means.

    Examples
    --------
    >>> table = errata().set_index("claim_id")
    >>> table.verdict["v2/strongest-bias/cells"], table.consequence["v2/strongest-bias/cells"]
    ('the arithmetic fails', 'contradicted')
    """
    said = claims().query("kind == 'identity'")
    checked = verdicts(said, recompute(said))
    holds = checked["verdict"].str.endswith("holds")
    meanings = pd.read_csv(_ERRATA)
    silent = set(checked["claim_id"][~holds]) - set(meanings["claim_id"])
    if silent:
        raise ValueError(f"{_ERRATA.name} does not say what it means that these fail: {silent}")
    failing = meanings.merge(checked[~holds], on="claim_id")
    return pd.concat([failing, checked[holds]], ignore_index=True)[
        [*checked.columns, *_WORDS]
    ].fillna(dict.fromkeys(_WORDS, ""))
