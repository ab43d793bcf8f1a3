"""The probabilities of options: at a temperature, without the position prior."""

from __future__ import annotations

from typing import Literal

import numpy as np
import pandas as pd

from rubricnb.core.estimates import reads as arrays
from rubricnb.core.estimates.intervals import few_clusters, jackknifed
from rubricnb.core.estimates.reads import By, Reads, by_cluster
from rubricnb.core.estimates.reasons import Reason, because_each, collect
from rubricnb.core.frames import require, score_dtype
from rubricnb.core.permutation import code, decode, ranks
from rubricnb.core.support.counting import binned, repeated
from rubricnb.core.support.types import FloatArray, IntArray, Records
from rubricnb.statistics.placement import by_score, in_slots

_FLOOR = 1e-12  # a probability of 0 has no logarithm
_NONE = "these judgments have no probabilities: plan them with readout='logprobs'"
_READ = (
    "judge",
    "source",
    "design",
    "item_id",
    "criterion",
    "ordering_index",
    "ordering",
    "criterion_ordering",
)


def option_probabilities(judgments: pd.DataFrame) -> pd.DataFrame:
    """Write the probabilities of judgments in long form: one row per read and option.

    Parameters
    ----------
    judgments
        Judgments of the readout ``logprobs``.

    Returns
    -------
    DataFrame
        Judge, source, design, item_id, criterion, ordering_index, ordering and
        criterion_ordering of the judgment (those it has; names are categories), then
        ``position`` of the option, from 1; ``score`` that stood there; ``probability``,
        which sums to 1 over the options of a read. Reads without probabilities (not
        parsed) have no rows.

    Raises
    ------
    ValueError
        The judgments have no probabilities: they were read out in another way.

    Notes
    -----
    arXiv:2602.02219v2, Figure 2: a balanced design shows every score at every position,
    so the means of this frame over positions and over scores come apart.

    Examples
    --------
    >>> judgments = pd.DataFrame(
    ...     {"ordering": ["2-1"], "probability_1": [0.7], "probability_2": [0.3]})
    >>> option_probabilities(judgments)
      ordering  position  score  probability
    0      2-1         1      2          0.7
    1      2-1         2      1          0.3
    """
    probabilities = judgments[arrays.probability_columns(judgments)].to_numpy(
        np.float64
    )
    cell = np.flatnonzero(~np.isnan(probabilities))
    if not len(cell):
        raise ValueError(_NONE)
    width = probabilities.shape[1]
    reads = judgments[[c for c in _READ if c in judgments]]
    # A text would be written out again for each option.
    names = reads.columns.difference(["ordering_index"])
    reads = reads.astype(dict.fromkeys(names, "category"))
    reads = reads.iloc[cell // width].reset_index(drop=True)
    return reads.assign(
        position=cell % width + 1,
        score=_shown(judgments, width).ravel()[cell],
        probability=probabilities.ravel()[cell],
    )


def at_temperature(
    judgments: pd.DataFrame, temperature: float, seed: int = 0
) -> pd.DataFrame:
    """Turn recorded probabilities into those of sampling at a different temperature.

    P_τ(s) ∝ P(s)^(1/τ), then one score is drawn per read. At 0 it is the option of
    largest probability.

    Parameters
    ----------
    judgments
        Judgments of the readout ``logprobs``, whose probabilities are those at
        temperature 1.
    temperature
        τ, 0 or more.
    seed
        Of the draws.

    Returns
    -------
    DataFrame
        The judgments with ``probability_1…n``, ``expected_score``, ``score``,
        ``position`` and ``temperature`` replaced. The column ``key`` is left out:
        copies of one answer are drawn apart. Rows without probabilities keep a missing
        score.

    Raises
    ------
    ValueError
        The temperature is negative, or the judgments have no probabilities.

    Notes
    -----
    Exact where every label is one token, given that the judge answers with a label at
    all; engines that divide logits by τ do the same. For labels of several tokens it is
    an approximation.

    Examples
    --------
    >>> judgments = pd.DataFrame(
    ...     {"ordering": ["2-1"], "probability_1": [0.8], "probability_2": [0.2]})
    >>> hot, cold = (at_temperature(judgments, t) for t in (1.0, 0.0))
    >>> hot["expected_score"].item(), cold["score"].tolist(), cold["position"].tolist()
    (1.8, [2], [1])
    """
    if not temperature >= 0:
        raise ValueError(f"temperature is {temperature}: give 0 (greedy) or more")
    columns = arrays.probability_columns(judgments)
    if not columns:
        raise ValueError(_NONE)
    p = judgments[columns].to_numpy(float)
    chosen = _most_probable(judgments, np.nan_to_num(p))
    tempered = (
        _tempered(np.nan_to_num(p), temperature)
        if temperature
        else np.eye(p.shape[1])[chosen]
    )
    below = np.cumsum(tempered, axis=1)[:, :-1]
    u = np.random.default_rng(seed).random(len(p))
    place = (below <= u[:, None]).sum(axis=1)
    out = _rescored(judgments, np.where(np.isnan(p), np.nan, tempered), place)
    out["temperature"] = np.float32(temperature)
    return out.drop(columns="key", errors="ignore")


def _rescored(judgments: pd.DataFrame, p: FloatArray, place: IntArray) -> pd.DataFrame:
    """Judgments with other probabilities, and the score at the place chosen, from 0."""
    known = ~np.isnan(p).all(axis=1)
    shown = _shown(judgments, p.shape[1])
    out = judgments.copy()
    out[arrays.probability_columns(judgments)[: p.shape[1]]] = p
    out["expected_score"] = np.where(
        known, (np.nan_to_num(p) * shown).sum(axis=1), np.nan
    )
    score = shown[np.arange(len(p)), place]
    for name, values in (("score", score), ("position", place + 1)):
        own = pd.Series(values, out.index).where(known)
        out[name] = own.astype(score_dtype(own, "Int8"))
    return out


def _shown(judgments: pd.DataFrame, width: int) -> IntArray | FloatArray:
    """The score at each position of every judgment; 0 beyond its options."""
    codes, orderings = arrays.codes_of(judgments["ordering"])
    arrays.refuse_unordered(int((codes < 0).sum()), len(codes))
    rows = [[*decode(code), *[0] * width][:width] for code in orderings]
    return np.array(rows)[codes]


def _most_probable(judgments: pd.DataFrame, p: FloatArray) -> IntArray:
    """The place of the largest probability, from 0; of tied ones, the place recorded.

    A tie was drawn when it was read; the first place would look like a preference.
    """
    first = p.argmax(axis=1)
    if "position" not in judgments:
        return first
    recorded = judgments["position"].to_numpy(np.float64, na_value=1).astype(int) - 1
    rows = np.arange(len(p))
    return np.where(p[rows, recorded] == p[rows, first], recorded, first)


def _tempered(p: FloatArray, temperature: float) -> FloatArray:
    highest = p.max(axis=1, keepdims=True)
    top = np.where(highest > 0, highest, 1.0)
    weights = (p / top) ** (1 / temperature)
    total = weights.sum(axis=1, keepdims=True)
    return weights / np.where(total > 0, total, 1.0)


def position_prior(
    judgments: pd.DataFrame,
    by: By = None,
    *,
    shape: Literal["position", "order"] = "position",
) -> pd.DataFrame:
    """Measure a judge's preference for positions, or each order's for scores.

    Parameters
    ----------
    judgments
        Judgments with ``probability_1…n`` (readout ``logprobs``) in orders that show
        every score at every place: balanced ones of some items, or `rotated` ones of
        many.
    by
        Columns to group by; by default judge, dataset, design and every condition
        column present.
    shape
        ``position``: one number for each position. ``order``: one for each order and
        score, the mean log-probability of the score in this order minus its mean over
        all orders. It does not assume that a preference goes with the position, but
        needs texts that were asked in every order.

    Returns
    -------
    DataFrame
        One row a group and place: its columns, ``position``, ``log_preference``
        (natural log, sums to 0) with ``low, high`` (95 % t over clusters), ``share``
        (the probabilities of a judge with this preference and no opinion), ``n_reads``,
        ``reason``. With the shape ``order``, one row a group, ``ordering`` and
        ``score`` (both as numbers of options, 1 the lowest), from the texts that have a
        read in every order.

    Raises
    ------
    ValueError
        There are no probabilities; some score never appears at some place: then a score
        could pass for a place; or, for the shape ``order``, there is one order, or no
        text was asked in all of them.

    Examples
    --------
    >>> import pandas as pd
    >>> judgments = pd.DataFrame({
    ...     "item_id": list("aabb"), "cluster_id": list("aabb"), "design": "balanced",
    ...     "ordering_index": [1, 2] * 2, "ordering": ["1-2", "2-1"] * 2,
    ...     "score": [1, 2, 1, 1], "expected_score": [1.2, 1.4, 1.3, 1.4],
    ...     "probability_1": [0.8, 0.4, 0.7, 0.4],
    ...     "probability_2": [0.2, 0.6, 0.3, 0.6]})
    >>> position_prior(judgments)[["position", "log_preference", "share"]].round(2)
       position  log_preference  share
    0         1            0.18   0.59
    1         2           -0.18   0.41
    """
    if shape not in ("position", "order"):
        raise ValueError(f"shape is {shape!r}; allowed: 'position', 'order'")
    return arrays.row_per_group(
        judgments, by, "expected_score", _prior if shape == "position" else _shift
    )


def _shift(reads: Reads) -> Records:
    """Log preference of each order for each score, from items that have all orders."""
    arrays.require_orderings(reads)
    cell = np.where(reads.parsed, reads.order, -1)
    n_orderings, n = reads.orderings.shape
    count = in_slots(reads.parsed[..., None], cell, n_orderings)
    sums = in_slots(_logs(by_score(reads)), cell, n_orderings)
    whole = (count > 0).all(axis=(1, 2))
    if n_orderings < 2 or not whole.any():
        raise ValueError(
            "no text was asked in several orders and in all that others were asked in, "
            "so that an order cannot be separated from its texts: ask some texts in "
            "balanced(n) orders"
        )
    mean = sums[whole] / count[whole]
    moved = (mean - mean.mean(axis=1, keepdims=True)).reshape(len(mean), -1)
    cluster = reads.cluster[whole]
    own, size = by_cluster(moved, cluster), by_cluster(np.ones((len(mean), 1)), cluster)
    left = (own.sum(axis=0) - own) / (size.sum() - size) if len(own) > 1 else own[:0]
    return pd.DataFrame(
        {
            "ordering": repeated(code(reads.orderings), n),
            "score": np.tile(np.arange(1, n + 1), n_orderings),
            "log_preference": moved.mean(axis=0),
            **jackknifed(moved.mean(axis=0), left),
            "n_reads": int(count[whole].sum()),
            **because_each(*[few_clusters(cluster)] * len(left.T)),
        }
    ).to_dict("records")


def _prior(reads: Reads) -> Records:
    arrays.require_orderings(reads)
    item, read = np.nonzero(reads.parsed & (reads.order >= 0))
    shown = reads.orderings[reads.order[item, read]]
    n = reads.n_options
    cluster = reads.cluster[item]
    logs = _logs(np.asarray(reads.probability)[item, read])
    sums = sums_by_cell(logs, shown, cluster)
    if len(shown) and sums[:, 1].sum(axis=0).min() == 0:
        raise ValueError(
            "some scores never appear at some positions, so score and position cannot "
            "be separated: ask in balanced(n) or Design('rotated', n) orders"
        )
    total = sums.sum(axis=0)
    mean = position_preferences(total) if len(logs) else np.full(n, np.nan)
    # One order a prompt leaves few prompts in a cell,
    # so each is left out with its cell refitted.
    left = position_preferences(total - sums) if len(sums) > 1 else np.empty((0, n))
    is_one_prompt = len(sums) > 1 and bool(np.isnan(left).any())
    why = collect(
        few_clusters(cluster) if len(logs) else Reason("no_probabilities"),
        Reason("no_interval.one_prompt") if is_one_prompt else None,
    )
    return pd.DataFrame(
        {
            "position": np.arange(1, n + 1),
            "log_preference": mean,
            **jackknifed(mean, left),
            "share": _softmax(mean),
            "n_reads": len(logs),
            **because_each(*[why] * n),
        }
    ).to_dict("records")


def sums_by_cell(logs: FloatArray, shown: IntArray, cluster: IntArray) -> FloatArray:
    """Sum of the logs and number of reads by position and score.

    `logs`: (reads, positions); `shown`: the score at each of these positions. Returns
    (clusters, 2, positions, scores).
    """
    n = shown.shape[1]
    _, code = np.unique(cluster, return_inverse=True)
    size = int(code.max(initial=-1)) + 1
    cell = (code[:, None] * n + np.arange(n)) * n + shown - 1
    sums = [binned(cell.ravel(), w, size * n * n) for w in (logs.ravel(), None)]
    return np.stack([one.reshape(size, n, n) for one in sums], axis=1).astype(
        np.float64
    )


def position_preferences(sums: FloatArray) -> FloatArray:
    """Preference for each position, from `sums_by_cell`; NaN where a cell is empty.

    Scores count alike at every position, even if they appear there unequally often.
    """
    logs, count = np.moveaxis(sums, -3, 0)
    mean = arrays.averages(logs, count).mean(axis=-1)
    return mean - mean.mean(axis=-1, keepdims=True)


def _logs(probability: FloatArray) -> FloatArray:
    logs = np.log(np.maximum(probability, _FLOOR))
    return logs - logs.mean(axis=-1, keepdims=True)


def remove_prior(judgments: pd.DataFrame, prior: pd.DataFrame) -> pd.DataFrame:
    """Divide a judge's probabilities by its preference, and compute scores again.

    It mends the level of scores; where the preference was only measured, not known, it
    rarely makes them agree better with people.

    Parameters
    ----------
    judgments
        Judgments with ``probability_1…n``.
    prior
        From `position_prior`, one row a place, or an order and score; or these for each
        group that it names (judge, dataset, …).

    Returns
    -------
    DataFrame
        The judgments with other probabilities, ``expected_score``, ``score`` (the most
        probable) and ``position``.

    Raises
    ------
    ValueError
        A group of judgments has no prior, or places or orders are missing in it.

    Examples
    --------
    >>> import pandas as pd
    >>> judgments = pd.DataFrame({
    ...     "item_id": ["a"], "cluster_id": ["a"], "design": "fixed",
    ...     "ordering_index": 1, "ordering": "1-2", "score": 1, "position": 1,
    ...     "expected_score": 1.4, "probability_1": [0.6], "probability_2": [0.4]})
    >>> prior = pd.DataFrame({"position": [1, 2], "log_preference": [0.3, -0.3]})
    >>> remove_prior(judgments, prior)[["score", "expected_score"]].round(2)
       score  expected_score
    0      2            1.55
    """
    names = [
        c for c in arrays.grouping(judgments, None, without=("design",)) if c in prior
    ]
    about = ("ordering", "score") if "ordering" in prior else ("position",)
    require(prior, [*about, "log_preference"], "prior")
    columns = arrays.probability_columns(judgments)
    out = []
    for key, part in arrays.groups(judgments.reset_index(drop=True), names):
        own = np.ones(len(prior), dtype=bool)
        for name, value in key.items():
            own &= (
                prior[name].isna() if pd.isna(value) else prior[name] == value
            ).to_numpy(bool)
        out.append(_without(part, prior[own], columns))
    return pd.concat(out).sort_index().set_axis(judgments.index)


def _without(
    part: pd.DataFrame, prior: pd.DataFrame, columns: list[str]
) -> pd.DataFrame:
    arrays.refuse_unordered(int(part["ordering"].isna().sum()), len(part))
    n = len(decode(part["ordering"].iloc[0]))
    if "ordering" in prior:
        table = prior.pivot(index="ordering", columns="score", values="log_preference")
        shown = ranks([decode(name) for name in part["ordering"].astype(str)])
        row = table.index.get_indexer(code(shown))
        if (row < 0).any():
            raise ValueError(
                f"the prior has no order {code(shown[row < 0][:1])[0]}: measure it on "
                "reads in every order that these judgments have"
            )
        preference = np.take_along_axis(
            table[range(1, n + 1)].to_numpy(float)[row], shown - 1, axis=1
        )
    else:
        places = prior.sort_values("position")
        if [*places["position"]] != [*range(1, n + 1)]:
            raise ValueError(
                f"the prior has positions {[*places['position']]}, but there are {n} "
                "options: give one row for each position (of each judge and condition)"
            )
        preference = places["log_preference"].to_numpy(float)
    log = np.log(np.maximum(part[columns[:n]].to_numpy(float), _FLOOR)) - preference
    p = _softmax(log)
    return _rescored(part, p, _most_probable(part, np.nan_to_num(p)))


def _softmax(log: FloatArray) -> FloatArray:
    weight = np.exp(log - log.max(axis=-1, keepdims=True))
    return weight / weight.sum(axis=-1, keepdims=True)
