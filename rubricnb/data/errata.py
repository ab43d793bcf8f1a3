"""What does not add up in the papers: every identity recomputed, and what a failure means."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from rubricnb.data.identities import recompute
from rubricnb.data.papers import claims, verdicts

CONSEQUENCES = ("contradicted", "reading", "slip")
_MEANINGS = Path(__file__).parent / "published" / "errata.csv"


def errata() -> pd.DataFrame:
    """Recompute all that the papers' tables say about the papers' statements.

    Returns
    -------
    DataFrame
        The identities of `rubricnb.data.claims` with value, verdict (``holds`` or ``does not
        hold``) and, for those that do not hold, consequence and meaning. These come first, in the
        order of their weight for a reader. Consequence is ``contradicted`` (a table of the paper,
        or arithmetic, says otherwise), ``reading`` (the numbers do not carry what is said: without
        a correction, like for like, or with a word such as "substantial" given a number) or
        ``slip`` (a count, a label or a last digit).

    Raises
    ------
    ValueError
        An identity does not hold and ``errata.csv`` does not say what that means.

    Examples
    --------
    >>> table = errata().set_index("claim_id")
    >>> table.verdict["v2/strongest-bias/cells"], table.consequence["v2/strongest-bias/cells"]
    ('does not hold', 'contradicted')
    """
    said = claims().query("kind == 'identity'")
    checked = verdicts(said, recompute(said))
    holds = checked["verdict"] == "replicates"
    checked["verdict"] = holds.map({True: "holds", False: "does not hold"})
    meanings = pd.read_csv(_MEANINGS)
    silent = set(checked["claim_id"][~holds]) - set(meanings["claim_id"])
    if silent:
        raise ValueError(f"{_MEANINGS.name} does not say what it means that these fail: {silent}")
    failing = meanings.merge(checked[~holds], on="claim_id")
    return pd.concat([failing, checked[holds]], ignore_index=True)[
        [*checked.columns, "consequence", "meaning"]
    ].fillna({"consequence": "", "meaning": ""})
