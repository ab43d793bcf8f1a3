"""The probabilities of a read, option by option: what an argmax leaves out."""

from __future__ import annotations

import numpy as np
import pandas as pd

from rubricnb.permutation import decode
from rubricnb.statistics._reads import FloatArray

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


def at_temperature(judgments: pd.DataFrame, temperature: float, seed: int = 0) -> pd.DataFrame:
    """Turn recorded probabilities into what sampling at another temperature would have given.

    P_τ(s) ∝ P(s)^(1/τ), then one score is drawn per read. At 0 it is the option of largest
    probability.

    Parameters
    ----------
    judgments
        Judgments of the readout ``logprobs``, whose probabilities are those at temperature 1.
    temperature
        τ, 0 or more.
    seed
        Of the draws.

    Returns
    -------
    DataFrame
        The judgments with ``probability_1…n``, ``expected_score``, ``score``, ``position`` and
        ``temperature`` replaced. The column ``key`` is left out: copies of one answer are drawn
        apart. Rows without probabilities keep a missing score.

    Raises
    ------
    ValueError
        The temperature is negative, or the judgments have no probabilities.

    Notes
    -----
    Exact where every label is one token, given that the judge answers with a label at all; engines
    that divide logits by τ do the same. For labels of several tokens it is an approximation.

    Examples
    --------
    >>> judgments = pd.DataFrame(
    ...     {"ordering": ["2-1"], "probability_1": [0.8], "probability_2": [0.2]})
    >>> hot, cold = (at_temperature(judgments, t) for t in (1.0, 0.0))
    >>> hot["expected_score"].item(), cold["score"].tolist(), cold["position"].tolist()
    (1.8, [2], [1])
    """
    if not temperature >= 0:
        raise ValueError(f"temperature {temperature} is negative; 0 is greedy")
    columns = [c for c in judgments.columns if str(c).startswith("probability_")]
    if not columns:
        raise ValueError("these judgments have no probabilities: plan them with readout='logprobs'")
    probabilities = judgments[columns].to_numpy(np.float64)
    known = ~np.isnan(probabilities).all(axis=1)
    p = _tempered(np.nan_to_num(probabilities), temperature)
    below = np.cumsum(p, axis=1)[:, :-1]
    u = np.random.default_rng(seed).random(len(p))
    position = (below <= u[:, None]).sum(axis=1)
    scores = np.zeros(p.shape, dtype=np.int64)
    ordering = judgments["ordering"].to_numpy()
    for code in judgments["ordering"].unique():
        shown = decode(code)
        scores[ordering == code, : len(shown)] = shown
    drawn = scores[np.arange(len(p)), position]
    out = judgments.drop(columns="key", errors="ignore").copy()
    out[columns] = np.where(np.isnan(probabilities), np.nan, p)
    out["expected_score"] = np.where(known, (p * scores).sum(axis=1), np.nan)
    for name, values in (("score", drawn), ("position", position + 1)):
        out[name] = pd.array(values, dtype="Int8")
        out.loc[~known, name] = pd.NA
    out["temperature"] = np.float32(temperature)
    return out


def _tempered(p: FloatArray, temperature: float) -> FloatArray:
    if temperature == 0:
        return np.eye(p.shape[1])[p.argmax(axis=1)]
    top = np.where(p.max(axis=1, keepdims=True) > 0, p.max(axis=1, keepdims=True), 1.0)
    weights = (p / top) ** (1 / temperature)
    total = weights.sum(axis=1, keepdims=True)
    return np.asarray(weights / np.where(total > 0, total, 1.0))
