"""Does a score survive a change of the prompt that should not matter (arXiv:2506.22316)?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pandas as pd

from rubricnb.statistics import _inference as infer
from rubricnb.statistics import _reads as arrays
from rubricnb.statistics._reads import By, FloatArray, IntArray, Reads, Value
from rubricnb.statistics._sides import shared_items

BASELINE = {
    "design": "fixed", "labels": "numeric", "reference_score": "none", "exemplar": "none",
}  # fmt: skip
"""The paper's unperturbed prompt (§4.1): options ascend, are numbered, and no answer is shown."""

_MEASURES = ("flip_rate", "mad", "shift")
Condition = Mapping[str, Any]
Sides = list[tuple[dict[str, Any], Reads]]


def stability(
    judgments: pd.DataFrame,
    baseline: Condition = BASELINE,
    by: By = None,
    value: Value = "score",
) -> pd.DataFrame:
    """Compare the scores under every condition with those under a baseline, item by item.

    Parameters
    ----------
    judgments
        Judgments of the baseline and of other conditions, from `plan` with settings in lists.
    baseline
        Column → value. These columns may differ between a condition and its baseline; every other
        condition column (judge, dataset, layout, temperature, …) must be equal.
    by
        Columns that tell conditions apart; by default every condition column present.
    value
        ``score``; or ``expected_score``, for which there is no flip rate: such scores never tie.

    Returns
    -------
    DataFrame
        One row per condition other than the baseline: its columns, ``n_items`` (parsed under
        both), ``n_clusters``, ``n_reads``, and, s being the score and s⁰ the baseline's,

        * ``flip_rate``, mean of 1[s ≠ s⁰]; ``mad``, mean of the absolute difference (on whole
          scores never below the flip rate); ``shift``, mean of s − s⁰, in score points. Means over
          all pairs of a read and a baseline read of an item, then over items, with 95 % cluster t
          intervals ``_low, _high`` (of the flip rate Wilson's);
        * ``flip_rate_placebo`` …: the same of the meaning-free edits (design ``placebo`` under the
          baseline's other settings), ``flip_rate_reask`` …: of two baseline reads. A judge that
          was asked once for a repeated prompt has re-ask values of 0;
        * ``flip_rate_excess`` …: value minus placebo, item by item, with ``_low, _high, _p``;
          ``flip_rate_excess_reask`` …: value minus the mean of both re-ask rates, the baseline's
          and the condition's own, and ``reask_reason``, why not. Of flips this is half the squared
          distance between an item's two distributions of scores, ½ Σ (p − q)²: on average 0 where
          the condition changes no distribution, never below, and above 0 also where it only makes
          scores noisier or calmer. For a move of the scores see ``shift``;
        * ``shift_p`` (shift against 0) and ``shift_p_adjusted`` (Benjamini–Hochberg over the rows);
        * ``reason``.

    Raises
    ------
    ValueError
        A column of `baseline` is missing, or no judgment has its values.

    Notes
    -----
    arXiv:2506.22316, Equation 3 (printed as FP in places) and Table 3. The shift and the controls
    are ours: a flip rate has no sign, and rewording the prompt flips scores too.

    Examples
    --------
    >>> import pandas as pd
    >>> judgments = pd.DataFrame({
    ...     "item_id": list("abcd" "abcd"), "cluster_id": list("ppqq" "ppqq"),
    ...     "labels": ["numeric"] * 4 + ["letter"] * 4, "ordering_index": 1,
    ...     "ordering": "1-2-3-4-5", "score": [1, 2, 3, 4, 1, 1, 3, 2]})
    >>> stability(judgments, {"labels": "numeric"})[["labels", "flip_rate", "mad", "shift"]]
       labels  flip_rate   mad  shift
    0  letter        0.5  0.75  -0.75
    """
    rows = []
    for key, base, placebo, others in strata(judgments, baseline, by, value):
        distances = [_distances(side, base, value) for _, side in others]
        control = control_of(placebo, others, distances)
        again = _again(base, value)
        for (condition, side), distance in zip(others, distances, strict=True):
            own = _own_again(side, base, again, value, "placebo" in condition.values())
            rows.append({**key, **condition} | _summary(distance, control, again, own, base, side))
    result = pd.DataFrame(rows)
    return infer.adjust(result, "shift_p") if "shift_p" in result else result


def strata(
    judgments: pd.DataFrame, baseline: Condition, by: By, value: Value
) -> Iterator[tuple[dict[str, Any], Reads, Reads | None, Sides]]:
    """Yield, where all but the baseline's columns is equal, the reads of the conditions.

    That is: the values of the other columns, the baseline's reads, those of its placebo, and every
    condition but the baseline with its reads.
    """
    arrays.require(judgments, baseline, "judgments")
    outside = arrays.grouping(judgments, by, without=baseline)
    found = False
    for key, stratum in arrays.groups(
        arrays.slim(judgments, [*outside, *baseline], value), outside
    ):
        every = [
            (name, arrays.reads(part, value))
            for name, part in arrays.groups(stratum, list(baseline))
        ]
        others = [(name, side) for name, side in every if name != baseline]
        base = side_of(every, baseline)
        if base is not None:
            found = True
            yield key, base, side_of(others, {**baseline, "design": "placebo"}), others
    if not found:
        said = ", ".join(f"{name} = {value!r}" for name, value in baseline.items())
        raise ValueError(f"no judgments of the baseline ({said}); pass baseline= or plan it")


def side_of(sides: Sides, condition: Condition) -> Reads | None:
    """The reads of one condition, if there are any."""
    return next((side for name, side in sides if name == condition), None)


def control_of(placebo: Reads | None, others: Sides, found: list[FloatArray]) -> FloatArray | None:
    """What was found of the placebo, one of the other conditions."""
    pairs = zip(others, found, strict=True)
    return next((own for (_, side), own in pairs if side is placebo), None)


def _distances(side: Reads, base: Reads, value: Value) -> FloatArray:
    """Flip rate, MAD and shift of each item of `base`: shape (3, items), NaN where not in both."""
    out = np.full((3, len(base.items)), np.nan)
    rows_base, rows = shared_items(base, side)
    difference = distinct(side)[rows][:, :, None] - distinct(base)[rows_base][:, None, :]
    out[:, rows_base] = _means(difference.reshape(len(rows), -1), value)
    return out


def _again(side: Reads, value: Value) -> FloatArray:
    """The same between two reads of one prompt; 0 if the second is a copy of the first."""
    if side.value.shape[1] < 2:
        return np.full((3, len(side.items)), np.nan)
    own, order = distinct(side), side.arrangement
    first, second = np.triu_indices(own.shape[1], 1)
    difference = own[:, first] - own[:, second]
    out = _means(np.where(order[:, first] == order[:, second], difference, np.nan), value)
    out[2] = 0.0  # neither read is the perturbed one
    copied = side.parsed.any(axis=1) & ((~np.isnan(own)).sum(axis=1) < 2)
    out[:, copied] = 0.0
    return out


def _own_again(
    side: Reads, base: Reads, again: FloatArray, value: Value, edited: bool
) -> FloatArray:
    """The re-ask rates of a condition, for the items of `base`; NaN where it was asked once.

    A judge that never answered the baseline differently repeats itself under other conditions,
    too. Edits of a prompt are not one prompt.
    """
    out = np.full((3, len(base.items)), np.nan)
    rows_base, rows = shared_items(base, side)
    if not np.isnan(again[1]).all() and np.nanmax(again[1]) == 0:
        out[:, rows_base] = 0.0
    elif not edited:
        out[:, rows_base] = _again(side, value)[:, rows]
    return out


def distinct(side: Reads) -> FloatArray:
    """The values of reads that do not copy another one."""
    return np.where(arrays.same_answer(side), np.nan, side.value)


def _means(difference: FloatArray, value: Value) -> FloatArray:
    known = ~np.isnan(difference)
    count = known.sum(axis=1)
    filled = np.where(known, difference, 0.0)
    summed = np.stack([(filled != 0).sum(axis=1), np.abs(filled).sum(axis=1), filled.sum(axis=1)])
    means = np.where(count > 0, summed / np.maximum(count, 1), np.nan)
    if value == "expected_score":
        means[0] = np.nan
    return means


def _summary(
    distance: FloatArray,
    placebo: FloatArray | None,
    again: FloatArray,
    own: FloatArray,
    base: Reads,
    side: Reads,
) -> dict[str, Any]:
    used = ~np.isnan(distance[2])
    row: dict[str, Any] = infer.counted(used, base.cluster) | {"n_reads": int(side.parsed.sum())}
    control = np.full_like(distance, np.nan) if placebo is None else placebo
    # The placebo minus itself is no measurement.
    beyond = distance - (np.nan if distance is placebo else control)
    for m, name in enumerate(_MEASURES):
        bounds = (0.0, 1.0) if name == "flip_rate" else None
        row |= infer.named_mean(name, distance[m], base.cluster, bounds, p=name == "shift")
        row[f"{name}_reask"] = infer.mean_known(again[m])
        row[f"{name}_placebo"] = infer.mean_known(control[m])
        row |= infer.named_mean(f"{name}_excess", beyond[m], base.cluster)
        over_reask = distance[m] - (again[m] + own[m]) / 2
        row |= infer.named_mean(f"{name}_excess_reask", over_reask, base.cluster)
    row["reask_reason"] = ""
    if base.value.shape[1] < 2:
        row["reask_reason"] = "the baseline was asked once"
    elif np.isnan(own[2]).all():
        row["reask_reason"] = "no prompt of the condition was asked twice"
    ties = ~np.isnan(distance[0]).all()
    row["reason"] = infer.said(
        why_no_interval(used, base.cluster, {"flip_rate": distance[0, used]} if ties else {}),
        why_no_excess(distance, placebo),
        "" if ties or not used.any() else "expected scores never tie: no flip rate",
        infer.alike(row),
    )
    return row


def why_no_excess(own: FloatArray, placebo: FloatArray | None) -> str:
    """Say why a condition cannot be compared with the placebo."""
    if placebo is None:
        return "no placebo reads to compare with"
    return "this is the placebo" if placebo is own else ""


def why_no_interval(
    used: Any, cluster: IntArray, rates: Mapping[str, FloatArray] | None = None
) -> str:
    """Say why the `used` items have no cluster interval, or why to doubt it; empty if neither."""
    return (
        infer.few_clusters(cluster[used], rates) if used.any() else "no item was parsed under both"
    )
