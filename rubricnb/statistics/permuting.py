"""Does asking in several orders pay? And the position prior that one may take off instead."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from rubricnb.statistics._inference import mean_t
from rubricnb.statistics._reads import (
    By,
    FloatArray,
    Reads,
    Value,
    floats,
    grouping,
    groups,
    item_means,
    read_groups,
    require,
)

GAIN = 1.05  # a rise of r by a factor that is worth the calls
_FLOOR = 1e-12  # a probability of 0 has no logarithm


def will_permuting_help(
    pilot: pd.DataFrame, k: int = 10, by: By = None, value: Value = "score"
) -> pd.DataFrame:
    """Predict from a pilot without labels whether the mean of k orders agrees better than one read.

    Reads that waver from order to order gain by averaging; reads that repeat themselves do not.
    It is the judge's agreement with itself that is measured: one that cannot read may waver too,
    and averages to a steadier nothing.

    Parameters
    ----------
    pilot
        Judgments of some twenty items, each in the same balanced orders.
    k
        Orders to be averaged.
    by
        Columns to group by; by default judge, dataset, design and every condition column present.
    value
        ``score`` or ``expected_score``.

    Returns
    -------
    DataFrame
        One row a group: its columns, and

        * ``n_items, n_reads`` (of an item);
        * ``phi``: variance within items over that between, of a single read, order means removed;
        * ``gain``: predicted r of the mean of k reads over r of one, √((1 + φ)/(1 + φ/k));
        * ``gain_congeneric``: the same without assuming that all orders are equally good, for the
          pilot's own number of reads only (NaN for another k);
        * ``verdict``: ``go`` if ``gain_congeneric`` (else ``gain``) is above 1.05, ``stop`` if
          ``gain`` is below it, else ``unsure``; ``reason``.

    Raises
    ------
    ValueError
        `k` is below 2.

    Notes
    -----
    Spearman (1910) and Brown (1910) for parallel reads; Jöreskog (1971) for congeneric ones.

    Examples
    --------
    >>> import pandas as pd
    >>> score = [1, 2, 2, 1, 3, 3, 4, 2, 5, 4, 5, 5]
    >>> pilot = pd.DataFrame({
    ...     "item_id": list("aabbccddeeff"), "cluster_id": list("aabbccddeeff"),
    ...     "design": "balanced", "ordering_index": [1, 2] * 6, "ordering": ["1-2", "2-1"] * 6,
    ...     "score": score})
    >>> will_permuting_help(pilot, k=2)[["phi", "gain", "verdict"]].round(2)
        phi  gain verdict
    0  0.29  1.06      go
    """
    if k < 2:
        raise ValueError(f"k is {k}: two orders or more can be averaged")
    return pd.DataFrame(
        {**key, **_pays(reads.value, k)} for key, reads in read_groups(pilot, by, value)
    )


def _pays(value: FloatArray, k: int) -> dict[str, Any]:
    value = value[:, ~np.isnan(value).all(axis=0)]
    whole = value[~np.isnan(value).any(axis=1)]
    n, reads = whole.shape
    row: dict[str, Any] = {"n_items": n, "n_reads": reads}
    row |= dict.fromkeys(("phi", "gain", "gain_congeneric"), np.nan) | {"verdict": "unsure"}
    if n < 3 or reads < 2:
        return row | {"reason": f"{n} items with all of {reads} reads: three with two are needed"}
    if np.ptp(whole) == 0:
        return row | {"reason": "all reads give one score"}
    centred = whole - whole.mean(axis=0)
    item = centred.mean(axis=1)
    within = float(((centred - item[:, None]) ** 2).sum()) / ((n - 1) * (reads - 1))
    between = float(item.var(ddof=1)) - within / reads
    reliability = np.clip(between / (within + between), 0.02, 1.0) if within + between > 0 else 0.02
    phi = 1 / reliability - 1
    row |= {"phi": phi, "gain": float(np.sqrt((1 + phi) / (1 + phi / k)))}
    if reads == k:
        row["gain_congeneric"] = _congeneric(centred)
    best = row["gain"] if np.isnan(row["gain_congeneric"]) else row["gain_congeneric"]
    row["verdict"] = "go" if best > GAIN else "stop" if row["gain"] < GAIN else "unsure"
    lost = len(value) - n
    return row | {"reason": f"{lost} items lack a read and are left out" if lost else ""}


def _congeneric(centred: FloatArray) -> float:
    """Covariance of the mean with what reads share, over that of a single read on average."""
    sd = centred.std(axis=0, ddof=1)
    kept = centred[:, sd > 0]
    reads = kept.shape[1]
    if reads < 2:
        return float("nan")
    total = kept.sum(axis=1, keepdims=True)
    others = (total - kept) / (reads - 1)
    shared = (kept * others).sum(axis=0) / (len(kept) - 1)
    one = float((shared / sd[sd > 0]).mean())
    mean_sd = float(kept.mean(axis=1).std(ddof=1))
    return float(shared.mean()) / mean_sd / one if one > 0 and mean_sd > 0 else float("nan")


def position_prior(judgments: pd.DataFrame, by: By = None) -> pd.DataFrame:
    """Measure how much a judge favours each place whatever stands there, from its probabilities.

    Parameters
    ----------
    judgments
        Judgments with ``probability_1…n`` (readout ``logprobs``) in orders that show every score
        equally often at every place: balanced ones of some items, or `rotated` ones of many.
    by
        Columns to group by; by default judge, dataset, design and every condition column present.

    Returns
    -------
    DataFrame
        One row a group and place: its columns, ``position``, ``log_preference`` (natural log, sums
        to 0) with ``low, high`` (95 % t over clusters), ``share`` (the probabilities of a judge
        with this preference and no opinion), ``n_reads``, ``reason``.

    Raises
    ------
    ValueError
        There are no probabilities, or the orders are not balanced: then a score could pass for a
        place.

    Examples
    --------
    >>> import pandas as pd
    >>> judgments = pd.DataFrame({
    ...     "item_id": list("aabb"), "cluster_id": list("aabb"), "design": "balanced",
    ...     "ordering_index": [1, 2] * 2, "ordering": ["1-2", "2-1"] * 2, "score": [1, 2, 1, 1],
    ...     "expected_score": [1.2, 1.4, 1.3, 1.4], "probability_1": [0.8, 0.4, 0.7, 0.4],
    ...     "probability_2": [0.2, 0.6, 0.3, 0.6]})
    >>> position_prior(judgments)[["position", "log_preference", "share"]].round(2)
       position  log_preference  share
    0         1            0.18   0.59
    1         2           -0.18   0.41
    """
    rows = []
    for key, reads in read_groups(judgments, by, "expected_score"):
        rows += [{**key, **row} for row in _prior(reads)]
    return pd.DataFrame(rows)


def _prior(reads: Reads) -> list[dict[str, Any]]:
    item, read = np.nonzero(reads.parsed & (reads.order >= 0))
    shown = reads.orderings[reads.order[item, read]]
    n = reads.n_options
    counts = np.stack([(shown == s).sum(axis=0) for s in range(1, n + 1)])
    if len(shown) and counts.min() < 0.9 * counts.max():
        raise ValueError(
            "the orders show some scores more often than others at a place, so a score could pass "
            "for a place: ask in balanced(n) or rotated(n) orders"
        )
    logs = _logs(np.asarray(reads.probability)[item, read])
    share = np.exp(logs.mean(axis=0)) if len(logs) else np.full(n, np.nan)
    out = []
    for p in range(n):
        low, high, _, _ = mean_t(logs[:, p], reads.cluster[item])
        out.append(
            {"position": p + 1, "log_preference": logs[:, p].mean() if len(logs) else np.nan,
             "low": low, "high": high, "share": share[p] / share.sum(), "n_reads": len(logs),
             "reason": "" if np.isfinite(low) else "fewer than two clusters: no interval"}
        )  # fmt: skip
    return out


def _logs(probability: FloatArray) -> FloatArray:
    logs = np.log(np.maximum(probability, _FLOOR))
    return np.asarray(logs - logs.mean(axis=-1, keepdims=True))


def remove_prior(judgments: pd.DataFrame, prior: pd.DataFrame) -> pd.DataFrame:
    """Divide a judge's probabilities by its preference for places, and score anew.

    It mends the level of scores; where the preference was only measured, not known, it rarely makes
    them agree better with people.

    Parameters
    ----------
    judgments
        Judgments with ``probability_1…n``.
    prior
        From `position_prior`, one row a place, or one for each group it names (judge, dataset, …).

    Returns
    -------
    DataFrame
        The judgments with other probabilities, ``expected_score``, ``score`` (the most probable)
        and ``position``.

    Raises
    ------
    ValueError
        A group of judgments has no prior, or places are missing.

    Examples
    --------
    >>> import pandas as pd
    >>> judgments = pd.DataFrame({
    ...     "item_id": ["a"], "cluster_id": ["a"], "design": "fixed", "ordering_index": 1,
    ...     "ordering": "1-2", "score": 1, "position": 1, "expected_score": 1.4,
    ...     "probability_1": [0.6], "probability_2": [0.4]})
    >>> prior = pd.DataFrame({"position": [1, 2], "log_preference": [0.3, -0.3]})
    >>> remove_prior(judgments, prior)[["score", "expected_score"]].round(2)
       score  expected_score
    0      2            1.55
    """
    names = [c for c in grouping(judgments, None, without=("design",)) if c in prior]
    require(prior, ["position", "log_preference"], "prior")
    columns = [c for c in judgments if str(c).startswith("probability_")]
    out = []
    for key, part in groups(judgments, names):
        own = prior[(prior[list(key)] == pd.Series(key)).all(axis=1)] if key else prior
        own = own.set_index("position")["log_preference"]
        out.append(_without(part, own, columns))
    return pd.concat(out).loc[judgments.index] if out else judgments.copy()


def _without(part: pd.DataFrame, prior: pd.Series, columns: list[str]) -> pd.DataFrame:
    shown = np.array([[int(s) for s in str(o).split("-")] for o in part["ordering"]])
    n = shown.shape[1]
    if not prior.index.is_unique or sorted(prior.index) != list(range(1, n + 1)):
        raise ValueError(
            f"the prior has places {sorted(prior.index)}, the judgments have {n} options: give one "
            "row for each place (of each judge and condition)"
        )
    ok = part[columns[:n]].notna().all(axis=1).to_numpy()
    logs = np.log(np.maximum(floats_of(part, columns[:n]), _FLOOR)) - prior.sort_index().to_numpy()
    p = np.exp(logs - logs.max(axis=1, keepdims=True))
    p /= p.sum(axis=1, keepdims=True)
    part = part.copy()
    place = np.where(ok, np.where(np.isnan(p), 0, p).argmax(axis=1), 0)
    score = shown[np.arange(len(part)), place]
    part[columns[:n]] = p
    part["expected_score"] = (p * shown).sum(axis=1)
    part["score"] = pd.array(np.where(ok, score, 0), dtype="Int64")
    part["position"] = pd.array(place + 1, dtype="Int64")
    part.loc[~ok, ["score", "position"]] = pd.NA
    return part


def floats_of(frame: pd.DataFrame, columns: list[str]) -> FloatArray:
    """Several numeric columns as float64."""
    return np.stack([floats(frame[c]) for c in columns], axis=1)


def geometric_mean(judgments: pd.DataFrame, by: By = None) -> pd.DataFrame:
    """Average an item's reads by the geometric mean of their probabilities.

    A strong preference for a place saturates probabilities, so their plain mean keeps some of it;
    the geometric mean over balanced orders cancels it.

    Parameters
    ----------
    judgments
        Judgments with ``probability_1…n``; reads without them are left out.
    by
        Columns to group by; by default judge, dataset, design and every condition column present.

    Returns
    -------
    DataFrame
        One row a group and item: its columns, item_id, criterion and the like, ``expected_score``,
        ``n_reads``.

    Examples
    --------
    >>> import pandas as pd
    >>> judgments = pd.DataFrame({
    ...     "item_id": list("aa"), "cluster_id": list("aa"), "design": "balanced",
    ...     "ordering_index": [1, 2], "ordering": ["1-2", "2-1"], "score": [1, 2],
    ...     "expected_score": [1.01, 1.9], "probability_1": [0.99, 0.9],
    ...     "probability_2": [0.01, 0.1]})
    >>> geometric_mean(judgments)[["item_id", "expected_score", "n_reads"]].round(2)
      item_id  expected_score  n_reads
    0       a            1.23        2
    """
    out = []
    for key, reads in read_groups(judgments, by, "expected_score"):
        n = reads.n_options
        place = np.argsort(reads.orderings, axis=1)[reads.order]
        by_score = np.take_along_axis(np.asarray(reads.probability), place, axis=2)
        logs = np.log(np.maximum(by_score, _FLOOR))
        logs = np.where(reads.parsed[..., None], logs, np.nan)
        mean = np.stack([item_means(logs[..., s]) for s in range(n)], axis=1)
        p = np.exp(mean - mean.max(axis=1, keepdims=True))
        expected = (p * np.arange(1, n + 1)).sum(axis=1) / p.sum(axis=1)
        frame = reads.items.drop(columns="cluster").assign(
            expected_score=expected, n_reads=reads.parsed.sum(axis=1)
        )
        out.append(frame.assign(**key)[[*key, *frame.columns.difference(key, sort=False)]])
    return pd.concat(out, ignore_index=True)
