"""What makes the answers of a decision model doubtful, from its judgments alone."""

from __future__ import annotations

import pandas as pd

from rubricnb.core.estimates.losses import are_closed, unread
from rubricnb.core.estimates.reads import probability_columns
from rubricnb.core.estimates.reasons import Reason, Reasons

MOST_SPREAD = 0.0101
"""Between probabilities that count as equal: some servers round to two places."""
_NOTES = 3  # that are named, the commonest first


def server_doubts(judgments: pd.DataFrame, items: pd.DataFrame) -> Reasons:
    """Return what makes the answers of a decision model doubtful, one by one.

    Parameters
    ----------
    judgments
        With the column ``server_note`` if a server sent notes.
    items
        The texts, as for `unread`.

    Examples
    --------
    >>> answers = pd.DataFrame({
    ...     "item_id": ["a", "b"], "server_note": ["no usable read", None]})
    >>> [why.sentence for why in server_doubts(answers, answers)]
    ["1 of 2 answers carry the note 'no usable read'"]
    """
    why = []
    if "server_note" in judgments:
        for note, n in judgments["server_note"].value_counts().head(_NOTES).items():
            why.append(Reason("noted", n=int(n), asked=len(judgments), note=str(note)))
    if are_closed(judgments):
        shares = judgments[probability_columns(judgments)]
        spread = shares.max(axis=1) - shares.min(axis=1)
        if n_flat := int((spread <= MOST_SPREAD).sum()):
            why.append(Reason("flat", n=n_flat, asked=len(judgments)))
    return (*why, *unread(judgments, items))
