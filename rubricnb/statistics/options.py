"""The probabilities of a read, option by option: what an argmax leaves out."""

from __future__ import annotations

import numpy as np
import pandas as pd

from rubricnb.permutation import decode

_READ = (
    "judge", "source", "design", "item_id", "criterion", "ordering_index", "ordering",
    "criterion_ordering",
)  # fmt: skip


def option_probabilities(judgments: pd.DataFrame) -> pd.DataFrame:
    """Write the probabilities of judgments in long form: one row per read and option.

    Parameters
    ----------
    judgments
        Judgments of the readout ``logprobs``.

    Returns
    -------
    DataFrame
        Judge, source, design, item_id, criterion, ordering_index, ordering and criterion_ordering
        of the judgment (those it has), then ``position`` of the option, from 1; ``score`` that
        stood there; ``probability``, which sums to 1 over the options of a read. Reads without
        probabilities (not parsed) have no rows.

    Raises
    ------
    ValueError
        The judgments have no probabilities: they were read out in another way.

    Notes
    -----
    arXiv:2602.02219v2, Figure 2: a balanced design shows every score at every position, so the
    means of this frame over positions and over scores come apart.

    Examples
    --------
    >>> judgments = pd.DataFrame(
    ...     {"ordering": ["2-1"], "probability_1": [0.7], "probability_2": [0.3]})
    >>> option_probabilities(judgments)
      ordering  position  score  probability
    0      2-1         1      2          0.7
    1      2-1         2      1          0.3
    """
    columns = [c for c in judgments.columns if str(c).startswith("probability_")]
    probabilities = judgments[columns].to_numpy(np.float64)
    row, column = np.nonzero(~np.isnan(probabilities))
    if not len(row):
        raise ValueError("these judgments have no probabilities: plan them with readout='logprobs'")
    reads = judgments[[c for c in _READ if c in judgments]].iloc[row].reset_index(drop=True)
    scores = {code: decode(code) for code in judgments["ordering"].unique()}
    shown = judgments["ordering"].to_numpy()[row]
    return reads.assign(
        position=column + 1,
        score=[scores[code][place] for code, place in zip(shown, column, strict=True)],
        probability=probabilities[row, column],
    )
