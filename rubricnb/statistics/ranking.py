"""Does a different ordering make a different candidate win?"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from rubricnb.core.estimates import intervals as infer
from rubricnb.core.estimates import reads as arrays
from rubricnb.core.estimates.losses import (
    absent,
    lost_reads,
    lost_scores,
    no_equivalence,
)
from rubricnb.core.estimates.reads import By, Reads, Value
from rubricnb.core.estimates.reasons import Reason, Reasons, because, collect
from rubricnb.core.estimates.sides import compared, shared_items, sides
from rubricnb.core.frames import require
from rubricnb.core.support.counting import binned
from rubricnb.core.support.types import FloatArray, IntArray, Records, Row

_MEASURES = (
    "kendall_tau",
    "flip_first",
    "flip_strict",
    "flip_expected",
    "discordant",
    "tied_once",
)
_FLIPS = ("flip_strict", "flip_expected", "flip_first", "discordant")
_SCORES = ("score_a", "score_b")
_BLOCKS = ("balanced/forward", "balanced/reverse")
_CONTROLS = {"fixed": "fixed/half-1", "placebo": "placebo/half-2"}


def rank_reversal(
    judgments: pd.DataFrame,
    a: Any = "balanced",
    b: Any = "fixed",
    by: By = None,
    value: Value = "score",
) -> pd.DataFrame:
    """Compare the rankings of the candidates of each prompt under two strategies.

    Parameters
    ----------
    judgments
        Judgments with ``group_id`` (whose candidates compete) and ``candidate``.
    a, b
        As in `strategy_contrast`; ``balanced/forward`` and the like narrow a design.
    by
        Columns to group by; by default every condition column but the compared one.
    value
        ``score`` or ``expected_score``; candidates are ranked by the mean of their
        parsed reads.

    Returns
    -------
    DataFrame
        One row a group: ``a, b``; means over prompts, each with a 95 % interval over
        clusters (Wilson's, so that three prompts that agree do not prove it) ``_low,
        _high``, of

        * ``kendall_tau``: τ-b, over the prompts where it is defined; ``n_undefined``
          others have all candidates tied on a side;
        * ``flip_first``: another winner, the first candidate winning ties (it depends
          on the candidates' order); ``flip_strict``: no winner in common;
          ``flip_expected``: ties broken at random;
        * ``discordant``: pairs ranked oppositely; ``tied_once``: pairs tied on one side
          only;

        ``n_prompts`` (with two or more candidates scored on both sides),
        ``n_clusters``, ``reason``: among others how many candidates, and winners, have
        a score on one side only, and between which bounds ``flip_strict`` lies over all
        prompts.

    Raises
    ------
    ValueError
        Judgments lack ``group_id``, or no column holds both `a` and `b`.

    Notes
    -----
    arXiv:2602.02219v2, §5.6, Table 7, which compares means of ten orderings with copies
    of one integer score. Rounding alone flips a third of the winners: compare halves of
    equal budget, such as ``placebo/half-1`` and ``placebo/half-2``, and
    `reversal_effect`.

    Examples
    --------
    >>> import pandas as pd
    >>> judgments = pd.DataFrame({
    ...     "item_id": list("abcdabcd"), "cluster_id": list("ppqqppqq"),
    ...     "group_id": list("ppqqppqq"), "candidate": list("xyxyxyxy"),
    ...     "design": ["balanced"] * 4 + ["fixed"] * 4, "ordering_index": 1,
    ...     "ordering": "1-2-3", "score": [1, 2, 3, 1, 1, 3, 2, 3]})
    >>> rank_reversal(judgments)[["kendall_tau", "flip_first", "n_prompts"]]
       kendall_tau  flip_first  n_prompts
    0          0.0         0.5          2
    """
    require(judgments, ["group_id"], "judgments")
    return compared(judgments, a, b, by, value, _summary)


def reversal_effect(
    judgments: pd.DataFrame, by: By = None, value: Value = "score"
) -> pd.DataFrame:
    """Measure how many more winners flip when the ordering changes than otherwise.

    Flips between a block of n rotations and a placebo half, minus the control's flips
    against that half, paired by prompt and averaged over the forward and the reverse
    block.

    Parameters
    ----------
    judgments, value
        As in `rank_reversal`, with the designs balanced, placebo and fixed (of 2n reads
        each).
    by
        Columns to group by; by default every condition column but the design.

    Returns
    -------
    DataFrame
        One row a group, control and measure:

        * ``control``: ``fixed``, a half of fixed reads, which like a block of rotations
          repeats one wording: nothing differs but the ordering. ``placebo``, the other
          placebo half, which averages over n wordings: where wordings matter it is
          nearer to the first half for that reason alone, and its effect is too large;
        * ``measure``: ``flip_strict``, ``flip_expected``, ``flip_first``,
          ``discordant``;
        * ``effect`` with a 95 % cluster t interval ``low, high``, ``p``,
          ``p_equivalent`` (TOST, ±0.05, with at least the standard error of 5 % rare
          flips), ``mde`` (80 % power), ``reordered`` and ``controlled`` (the two
          terms), ``n_prompts, n_clusters``, ``reason``.

    Raises
    ------
    ValueError
        A group lacks balanced or placebo. Without fixed that control's rows are NaN.

    Examples
    --------
    >>> import pandas as pd
    >>> orders = ["1-2-3", "2-3-1", "3-1-2", "3-2-1", "2-1-3", "1-3-2"]
    >>> judgments = pd.DataFrame({
    ...     "item_id": (["a"] * 6 + ["b"] * 6) * 3, "cluster_id": "p", "group_id": "p",
    ...     "candidate": (["x"] * 6 + ["y"] * 6) * 3,
    ...     "design": ["balanced"] * 12 + ["placebo"] * 12 + ["fixed"] * 12,
    ...     "ordering_index": [1, 2, 3, 4, 5, 6] * 6,
    ...     "ordering": orders * 2 + ["1-2-3"] * 24,
    ...     "score": [3] * 6 + [2] * 6 + [2] * 6 + [3] * 6 + [2] * 6 + [3] * 6})
    >>> reversal_effect(judgments)[["control", "measure", "effect"]].head(1)
      control      measure  effect
    0   fixed  flip_strict     1.0
    """
    require(judgments, ["group_id", "design"], "judgments")
    names = ["placebo/half-1", *_BLOCKS, *_CONTROLS.values()]
    rows = []
    # A placebo edits the prompt, so columns that differ
    # with the design are not conditions here.
    for key, (base, forward, reverse, *controls) in sides(
        judgments, names, by, value, "design"
    ):
        if base is None or forward is None or reverse is None:
            raise ValueError(
                f"no judgments of the design {'balanced' if base else 'placebo'!r}: "
                "the order effect on rankings compares 'balanced' with 'placebo'"
            )
        rows += [
            key | row for row in _reversal_effect(base, [forward, reverse], controls)
        ]
    return pd.DataFrame(rows)


def _reversal_effect(
    base: Reads, blocks: list[Reads], controls: list[Reads | None]
) -> Records:
    if base.value.shape[1] < 2:
        raise ValueError(
            "a placebo design of one read has no halves; use placebo(n, 2 * n)"
        )
    moving = [_compare(base, block) for block in blocks]
    lost_by_blocks = [
        _lost_candidates(base, *pair) for pair in zip(blocks, moving, strict=True)
    ]
    rows = []
    for control, other in zip(_CONTROLS, controls, strict=True):
        still = _compare(base, other)
        lost = collect(*lost_by_blocks, _lost_candidates(base, other, still))
        no_verdict = no_equivalence(lost)
        prompts = still.index
        for found in moving:
            prompts = prompts.intersection(found.index)
        still, forward, reverse = (found.loc[prompts] for found in (still, *moving))
        cluster = still["cluster"].to_numpy()
        n_clusters = len(np.unique(cluster))
        for name in _FLIPS:
            moved = ((forward[name] + reverse[name]) / 2).to_numpy()
            calm = still[name].to_numpy()
            row = paired_row(moved - calm, cluster)
            why = _why_unsure(cluster, {"differences": np.abs(np.sign(moved - calm))})
            if other is None or other.value.shape[1] < 2:
                why = (Reason("no_halves", control=control),)
            elif np.isnan(row["p"]) and n_clusters > 1:
                why = (Reason("same_difference"),)
            row |= {
                "reordered": infer.mean_of(moved),
                "controlled": infer.mean_of(calm),
            }
            row |= {"n_prompts": len(prompts), "n_clusters": n_clusters}
            if no_verdict:
                row["p_equivalent"] = np.nan
            why = collect(why, lost, no_verdict)
            rows.append({"control": control, "measure": name} | row | because(why))
    return rows


def paired_row(difference: FloatArray, cluster: IntArray) -> dict[str, float]:
    """Estimate the mean of paired differences of flip rates, one per item.

    Its t interval is over clusters; ``p_equivalent`` tests "it is beyond the margin for
    flips", and ``mde`` is the effect that 80 % of such studies would find.
    """
    found = infer.mean_t(difference, cluster)
    n, margin = found.df + 1, infer.MARGINS["flips"]
    equal = infer.equivalence(found.value, found.se, n, margin, largest=1.0)
    row = {"effect": found.value, **found.columns()}
    return row | {"p_equivalent": equal, "mde": infer.detectable(found.se, found.df)}


def _compare(a: Reads, b: Reads | None) -> pd.DataFrame:
    """Each prompt's measures and cluster, from candidates scored on both sides."""
    if b is None:
        return pd.DataFrame(columns=["cluster", *_MEASURES], dtype=np.float64)
    items, columns = _candidates(a, b)
    items = items.dropna(subset=[*_SCORES])
    items = items[items.duplicated(columns, keep=False)]
    if items.empty:
        return _compare(a, None)
    prompt = arrays.combine(items[c] for c in columns)
    first = items.iloc[np.unique(prompt, return_index=True)[1]]
    if "candidate" in items:
        order = np.argsort(arrays.codes_of(items["candidate"])[0], kind="stable")
        items, prompt = items.iloc[order], prompt[order]
    # A candidate's column is its place among its prompt's.
    place = items.groupby(prompt).cumcount().to_numpy()
    wide = np.full((2, prompt.max() + 1, place.max() + 1), np.nan)
    wide[:, prompt, place] = items[[*_SCORES]].to_numpy().T
    return pd.DataFrame(
        {"cluster": first["cluster"].to_numpy(), **prompt_measures(*wide)},
        pd.MultiIndex.from_frame(first[columns].astype(object)),
    )


def _candidates(a: Reads, b: Reads) -> tuple[pd.DataFrame, list[str]]:
    """Candidates that both sides were asked about, their scores, their prompt's names.

    Only those of prompts with two or more.
    """
    rows_a, rows_b = shared_items(a, b)
    # Equal means of different sums can differ in the last digit.
    scores = {
        name: arrays.item_means(side.value).round(9)[rows]
        for name, side, rows in zip(_SCORES, (a, b), (rows_a, rows_b), strict=True)
    }
    items = a.items.iloc[rows_a].assign(**scores).dropna(subset=["group_id"])
    columns = [c for c in ("dataset", "group_id", "criterion") if c in items]
    return items[items.duplicated(columns, keep=False)], columns


def _lost_candidates(a: Reads, b: Reads | None, found: pd.DataFrame) -> Reasons:
    """Return which candidates have a score on one side only, and what that leaves open.

    Without its winner a prompt is still compared, by the candidates that are left.
    `found`: the prompts' measures.
    """
    if b is None:
        return ()
    less = lost_reads(a, b) + absent(a, b, what="candidates")
    items, columns = _candidates(a, b)
    scores = items[[*_SCORES]].to_numpy()
    lost = np.isnan(scores).sum(axis=1) == 1
    if not lost.any():
        return less
    prompt = arrays.combine(items[c] for c in columns)
    n = int(prompt.max()) + 1
    best = pd.DataFrame(scores).groupby(prompt).transform("max").to_numpy()
    winner = lost & (scores == best).any(axis=1)
    lacking = binned(prompt[lost], minlength=n) > 0
    first = items.iloc[np.unique(prompt, return_index=True)[1]]
    names = pd.MultiIndex.from_frame(first[columns].astype(object))
    whole = found["flip_strict"].reindex(names[~lacking]).dropna()
    low, high = whole.sum() / n, (whole.sum() + lacking.sum()) / n
    return (
        *lost_scores(scores[:, 0], scores[:, 1], what="candidates"),
        Reason(
            "lost_prompts",
            lost=int(lost.sum()),
            asked=len(items),
            prompts=int(lacking.sum()),
            all=n,
            winners=len(np.unique(prompt[winner])),
        ),
        Reason("flip_strict.bounds", low=low, high=high),
        *less,
    )


def prompt_measures(x: FloatArray, y: FloatArray) -> dict[str, FloatArray]:
    """Compare rankings row by row: scores (prompts, candidates), NaN: no candidate.

    Examples
    --------
    >>> one, other = np.array([[1.0, 2.0, 2.0]]), np.array([[1.0, 3.0, 2.0]])
    >>> measures = prompt_measures(one, other)
    >>> {name: round(float(value[0]), 3) for name, value in measures.items()}
    ... # doctest: +NORMALIZE_WHITESPACE
    {'kendall_tau': 0.816, 'flip_first': 0.0, 'flip_strict': 0.0, 'flip_expected': 0.5,
     'discordant': 0.0, 'tied_once': 0.333}
    """
    sign_x, sign_y = pair_signs(x), pair_signs(y)
    pairs = (~np.isnan(sign_x)).sum(axis=1)
    top_x, top_y = (
        v == np.nanmax(v, axis=1, keepdims=True, initial=-np.inf) for v in (x, y)
    )
    both = (top_x & top_y).sum(axis=1)
    expected = 1 - both / np.maximum(top_x.sum(axis=1) * top_y.sum(axis=1), 1)
    return {
        "kendall_tau": kendall_tau(sign_x, sign_y),
        "flip_first": (top_x.argmax(axis=1) != top_y.argmax(axis=1)).astype(float),
        "flip_strict": (both == 0).astype(float),
        "flip_expected": expected,
        "discordant": (sign_x * sign_y < 0).sum(axis=1) / pairs,
        "tied_once": ((sign_x == 0) ^ (sign_y == 0)).sum(axis=1) / pairs,
    }


def pair_signs(scores: FloatArray) -> FloatArray:
    """Which of each two candidates is higher, 1 the first and 0 neither: (…, pairs)."""
    first, second = np.triu_indices(scores.shape[-1], 1)
    return np.sign(scores[..., first] - scores[..., second])


def kendall_tau(x: FloatArray, y: FloatArray) -> FloatArray:
    """Kendall's τ-b of two rankings, from `pair_signs`; NaN where a side ties all."""
    product = np.nansum(x * y, axis=-1)
    untied = np.sqrt(np.nansum(x**2, axis=-1) * np.nansum(y**2, axis=-1))
    return np.where(untied > 0, product / np.where(untied > 0, untied, 1.0), np.nan)


def _summary(a: Reads, b: Reads) -> Row:
    found = _compare(a, b)
    cluster = found["cluster"].to_numpy()
    row: Row = {}
    for name in _MEASURES:
        bounds = (-1.0 if name == "kendall_tau" else 0.0, 1.0)
        row |= infer.named_mean(
            name, found[name].to_numpy(), cluster, bounds, infer.UNTESTED
        )
    row["n_undefined"] = int(found["kendall_tau"].isna().sum())
    row |= {"n_prompts": len(cluster), "n_clusters": len(np.unique(cluster))}
    tied = len(cluster) and row["n_undefined"] == len(cluster)
    return row | because(
        _why_unsure(cluster, {name: found[name].to_numpy() for name in _FLIPS}),
        Reason("kendall_tau.tied") if tied else None,
        _lost_candidates(a, b, found),
    )


def _why_unsure(cluster: IntArray, rates: dict[str, FloatArray]) -> Reasons:
    if len(cluster) == 0:
        return (Reason("no_prompt"),)
    return infer.few_clusters(cluster, rates)
