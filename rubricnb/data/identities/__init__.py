"""Arithmetic inside the papers: what their tables say about their own statements.

Each function of this package's modules recomputes one kind of statement from `published` tables
alone, for the rows of ``claims.csv`` whose ``kind`` is ``identity`` and whose ``recompute`` names
it. It takes the row's judge and dataset (empty: all).
"""

from __future__ import annotations

import pandas as pd

from rubricnb.data.identities import position_bias, rulers, scoring_bias
from rubricnb.data.papers import claims as _claims

MODULES = {
    "position bias v1": position_bias,
    "position bias v2": position_bias,
    "scoring bias": scoring_bias,
    "RULERS": rulers,
}


def recompute(claims: pd.DataFrame | None = None) -> pd.DataFrame:
    """Recompute every identity among the claims.

    Parameters
    ----------
    claims
        Rows of `rubricnb.data.claims`; rows of the kind ``claim`` are left out. Default: all.

    Returns
    -------
    DataFrame
        claim_id and value, as `rubricnb.data.verdicts` takes them.

    Examples
    --------
    >>> from rubricnb.data import claims, verdicts
    >>> identities = claims("05").query("kind == 'identity'")
    >>> checked = verdicts(identities, recompute(identities)).set_index("claim_id")
    >>> checked.verdict["v2/ends-imply-chi2"], checked.verdict["v2/direction/gemma-3-12b"]
    ('the arithmetic holds', 'the arithmetic fails')
    """
    claims = _claims() if claims is None else claims
    rows = claims[claims["kind"] == "identity"]
    values = [
        float(getattr(MODULES[row.paper], row.recompute)(row.judge, row.dataset))
        for row in rows.itertuples()
    ]
    return pd.DataFrame({"claim_id": rows["claim_id"].to_numpy(), "value": values})
