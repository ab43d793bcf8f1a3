"""Does a score survive changes that should not matter (arXiv:2506.22316)?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pandas as pd

from rubricnb.core.estimates import intervals as infer
from rubricnb.core.estimates import reads as arrays
from rubricnb.core.estimates.losses import (
    absent,
    lost_reads,
    lost_scores,
    open_sign,
    scale_ends,
    shares_lost,
)
from rubricnb.core.estimates.reads import By, Reads, Value
from rubricnb.core.estimates.reasons import Reason, Reasons, because
from rubricnb.core.estimates.sides import shared_items
from rubricnb.core.frames import require
from rubricnb.core.support.types import FloatArray, IntArray, Row

BASELINE = {
    "design": "fixed",
    "labels": "numeric",
    "reference_score": "none",
    "exemplar": "none",
}
"""The paper's unperturbed prompt (§4.1): options ascend,
are numbered, and no answer is shown.
"""

_MEASURES = ("flip_rate", "mad", "shift")
Condition = Mapping[str, Any]
Sides = list[tuple[Row, Reads]]


def stability(
    judgments: pd.DataFrame,
    baseline: Condition = BASELINE,
    by: By = None,
    value: Value = "score",
) -> pd.DataFrame:
    """Compare the scores under every condition with a baseline's, item by item.

    Parameters
    ----------
    judgments
        Judgments of the baseline and of other conditions, from `plan` with settings in
        lists.
    baseline
        Column → value. A design that is the only one, edits aside, is the baseline's.
        These columns may differ between a condition and its baseline;
        every other condition column (judge, dataset, layout, temperature, …) must be
        equal. Where judgments from elsewhere do not say what a column was
        (``unknown``), that is the baseline's value.
    by
        Columns that tell conditions apart; by default every condition column present.
    value
        ``score``; or ``expected_score``, for which there is no flip rate: such scores
        never tie.

    Returns
    -------
    DataFrame
        One row per condition other than the baseline: its columns, ``n_items`` (parsed
        under both), ``n_clusters``, ``n_reads``, and, s being the score and s⁰ the
        baseline's,

        * ``flip_rate``, mean of 1[s ≠ s⁰]; ``mad``, mean of the absolute difference (on
          whole scores never below the flip rate); ``shift``, mean of s − s⁰, in score
          points. Means over all pairs of a read and a baseline read of an item, then
          over items, with 95 % cluster t intervals ``_low, _high`` (of the flip rate
          Wilson's);
        * ``flip_rate_placebo`` …: the same of the meaning-free edits (design
          ``placebo`` under the baseline's other settings), ``flip_rate_reask`` …: of
          two baseline reads. A judge that was asked once for a repeated prompt has
          re-ask values of 0;
        * ``flip_rate_excess`` …: value minus placebo, item by item, with ``_low, _high,
          _p``; ``flip_rate_excess_reask`` …: value minus the mean of both re-ask rates,
          the baseline's and the condition's own; NaN unless both were asked twice. Of
          flips this is half the squared distance between an item's two distributions of
          scores, ½ Σ (p − q)²: on average 0 where the condition changes no
          distribution, never below, and above 0 also where it only makes scores noisier
          or calmer. For a move of the scores see ``shift``;
        * ``shift_p`` (shift against 0) and ``shift_p_adjusted`` (Benjamini–Hochberg
          over the rows);
        * ``reason``: among others how many items have a score under one of the two
          only, how that one scores them, and between which bounds the shift lies if
          they could turn its sign.

    Raises
    ------
    ValueError
        A column of `baseline` is missing, no judgment has its values, or all have.

    Notes
    -----
    arXiv:2506.22316, Equation 3 (printed as FP in places) and Table 3. The shift and
    the controls are ours: a flip rate has no sign, and rewording the prompt flips
    scores too.

    Examples
    --------
    >>> import pandas as pd
    >>> judgments = pd.DataFrame({
    ...     "item_id": list("abcd" "abcd"), "cluster_id": list("ppqq" "ppqq"),
    ...     "labels": ["numeric"] * 4 + ["letter"] * 4, "ordering_index": 1,
    ...     "ordering": "1-2-3-4-5", "score": [1, 2, 3, 4, 1, 1, 3, 2]})
    >>> table = stability(judgments, {"labels": "numeric"})
    >>> table[["labels", "flip_rate", "mad", "shift"]]
       labels  flip_rate   mad  shift
    0  letter        0.5  0.75  -0.75
    """
    rows = []
    for key, base, placebo, others in strata(judgments, baseline, by, value):
        for condition, side in others:
            edited = "placebo" in condition.values()
            rows.append(
                {**key, **condition} | _summary(side, base, placebo, edited, value)
            )
    if not rows:
        raise ValueError(
            f"only the baseline was judged ({_listed(baseline)}): nothing to compare. "
            f"Pass judgments that differ in {', '.join(baseline)}, or name the columns "
            "that differ in baseline="
        )
    return infer.adjust(pd.DataFrame(rows), "shift_p")


def strata(
    judgments: pd.DataFrame, baseline: Condition, by: By, value: Value
) -> Iterator[tuple[Row, Reads, Reads | None, Sides]]:
    """Yield the reads of the conditions that differ only in the baseline's columns.

    That is: the values of the other columns, the baseline's reads, those of its
    placebo, and every condition but the baseline with its reads.
    """
    require(judgments, baseline, "judgments")
    baseline = _as_known(judgments, baseline)
    outside = arrays.grouping(judgments, by, without=baseline)
    edited, found = {**baseline, "design": "placebo"}, False
    for key, stratum in arrays.groups(judgments, outside):
        parts = arrays.groups(stratum, list(baseline))
        sides = [(name, arrays.reads(part, value)) for name, part in parts]
        base, placebo = (
            next((side for name, side in sides if name == wanted), None)
            for wanted in (baseline, edited)
        )
        if base is not None:
            found = True
            yield key, base, placebo, [one for one in sides if one[0] != baseline]
    if not found:
        raise ValueError(
            f"no judgments of the baseline ({_listed(baseline)}); choose a baseline= "
            "that was planned"
        )


def _listed(baseline: Condition) -> str:
    return ", ".join(f"{name} = {value!r}" for name, value in baseline.items())


def _as_known(judgments: pd.DataFrame, baseline: Condition) -> Row:
    """Return the baseline, ``unknown`` in columns that lack its value.

    `rubricnb.judgments` cannot know that a prompt without a word about references had
    none.
    """
    known = {name: set(judgments[name].unique()) for name in baseline}
    designs = known.get("design", set()) - {"placebo"}
    if len(designs) == 1 and baseline["design"] == BASELINE["design"]:
        baseline = {**baseline, "design": next(iter(designs))}
    return {
        name: "unknown"
        if value not in known[name] and "unknown" in known[name]
        else value
        for name, value in baseline.items()
    }


def at_items(base: Reads, side: Reads, values: FloatArray) -> FloatArray:
    """A side's values of the items of `base`, in their order; NaN: it lacks one."""
    rows_base, rows = shared_items(base, side)
    out = np.full((len(base.value), *values.shape[1:]), np.nan)
    out[rows_base] = values[rows]
    return out


def both_asked(side: Reads, base: Reads) -> tuple[FloatArray, FloatArray]:
    """Mean score of each item that both were asked about, under each; NaN: none."""
    rows_base, rows = shared_items(base, side)
    means = [arrays.item_means(distinct(reads)) for reads in (side, base)]
    return means[0][rows], means[1][rows_base]


def lost_to_both(side: Reads, base: Reads, placebo: Reads | None) -> Reasons:
    """Return what a condition or its baseline, or its placebo, has no score for."""
    found: Reasons = ()
    for other, called in ((base, "the baseline"), (placebo, "the placebo")):
        if other is not None and other is not side:
            names = ("this condition", called)
            found += lost_scores(*both_asked(side, other), names)
            found += lost_reads(side, other, names) + absent(side, other, names)
    return found


def _distances(side: Reads | None, base: Reads, value: Value) -> FloatArray:
    """Flip rate, MAD and shift of each item of `base`: (3, items), NaN: not in both."""
    if side is None:
        return np.full((3, len(base.value)), np.nan)
    own = at_items(base, side, distinct(side))
    difference = own[:, :, None] - distinct(base)[:, None, :]
    return _means(difference.reshape(len(own), -1), value)


def _again(side: Reads, value: Value) -> FloatArray:
    """The same between two reads of one prompt; 0 if the second is a copy."""
    if side.value.shape[1] < 2:
        return np.full((3, len(side.value)), np.nan)
    own, order = distinct(side), side.arrangement
    first, second = np.triu_indices(own.shape[1], 1)
    difference = own[:, first] - own[:, second]
    out = _means(
        np.where(order[:, first] == order[:, second], difference, np.nan), value
    )
    out[2] = 0.0  # neither read is the perturbed one
    copied = side.parsed.any(axis=1) & ((~np.isnan(own)).sum(axis=1) < 2)
    out[:, copied] = 0.0
    return out


def distinct(side: Reads) -> FloatArray:
    """The values of reads that do not copy another one."""
    return np.where(arrays.same_answer(side), np.nan, side.value)


def _means(difference: FloatArray, value: Value) -> FloatArray:
    flips = np.where(np.isnan(difference), np.nan, difference != 0)
    if value == "expected_score":
        flips[:] = np.nan
    return arrays.item_means(np.stack([flips, np.abs(difference), difference]))


def _summary(
    side: Reads, base: Reads, placebo: Reads | None, edited: bool, value: Value
) -> Row:
    distance, control = _distances(side, base, value), _distances(placebo, base, value)
    again = _again(base, value)
    # A judge that never answered the baseline differently repeats itself under other
    # conditions, too. Edits of a prompt are not one prompt.
    known = again[1][~np.isnan(again[1])]
    if len(known) and not known.any():
        rates = np.zeros((3, len(side.value)))
    else:
        rates = np.full((3, len(side.value)), np.nan) if edited else _again(side, value)
    own = at_items(base, side, rates.T).T
    used = ~np.isnan(distance[2])
    row: Row = infer.counted(used, base.cluster) | {"n_reads": int(side.parsed.sum())}
    # The placebo minus itself measures nothing.
    beyond = distance - (np.nan if side is placebo else control)
    over_reask = distance - (again + own) / 2
    for m, name in enumerate(_MEASURES):
        bounds = (0.0, 1.0) if name == "flip_rate" else None
        parts = infer.PARTS if name == "shift" else infer.UNTESTED
        row |= infer.named_mean(name, distance[m], base.cluster, bounds, parts)
        row[f"{name}_reask"] = infer.mean_known(again[m])
        row[f"{name}_placebo"] = infer.mean_known(control[m])
        row |= infer.named_mean(f"{name}_excess", beyond[m], base.cluster)
        row |= infer.named_mean(f"{name}_excess_reask", over_reask[m], base.cluster)
    open_signs: Reasons = ()
    for name, other in (("shift", base), ("shift_excess", placebo)):
        if other is not None and other is not side:
            interval = (row[f"{name}_low"], row[f"{name}_high"])
            rows_other, rows = shared_items(other, side)
            lost = shares_lost(side)[rows], shares_lost(other)[rows_other]
            asked = both_asked(side, other)
            open_signs += open_sign(
                *asked, scale_ends(base, side), interval, name, lost
            )
    ties = ~np.isnan(distance[0]).all()
    return row | because(
        why_no_interval(
            used, base.cluster, {"flip_rate": distance[0, used]} if ties else {}
        ),
        why_no_excess(side, placebo),
        None if ties or not used.any() else Reason("flip_rate.no_ties"),
        infer.alike(row),
        lost_to_both(side, base, placebo),
        open_signs,
    )


def why_no_excess(side: Reads, placebo: Reads | None) -> Reason | None:
    """Return why a condition cannot be compared with the placebo."""
    if placebo is None:
        return Reason("no_placebo")
    return Reason("placebo_itself") if side is placebo else None


def why_no_interval(
    used: Any, cluster: IntArray, rates: Mapping[str, FloatArray] | None = None
) -> Reasons:
    """Return why the `used` items have no interval, or a doubtful one; else empty."""
    return (
        infer.few_clusters(cluster[used], rates)
        if used.any()
        else (Reason("unparsed"),)
    )
