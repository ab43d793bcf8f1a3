"""Is it the place of a criterion that moves its score, or the criterion before it? (Setting 2)"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from scipy import special

from rubricnb.statistics._inference import few_clusters, jackknife_se, t_p_value, t_quantile
from rubricnb.statistics._reads import (
    By,
    FloatArray,
    IntArray,
    Value,
    by_cluster,
    clusters_of,
    combine,
    floats,
    grouping,
    groups,
    require,
    values_of,
)


def predecessor_effects(
    judgments: pd.DataFrame, by: By = None, value: Value = "score"
) -> pd.DataFrame:
    """Separate the effect of a criterion's position from that of the criterion directly before it.

    Parameters
    ----------
    judgments
        Judgments of Setting 2 (`plan_criteria`).
    by
        Columns to group by; by default every condition column.
    value
        ``score`` or ``expected_score``.

    Returns
    -------
    DataFrame
        One row a group, kind of effect and level: ``effect`` (``position`` or ``predecessor``);
        ``level`` (the position, or the criterion before, as text); ``estimate`` in score points
        with 95 % ``low, high`` and ``p`` (cluster jackknife-t); ``p_joint``, that no level of this
        effect matters (Hotelling's T² on the jackknife covariance); ``n_items, n_clusters,
        n_reads`` (parsed); ``reason``.

    Raises
    ------
    ValueError
        A column is missing.

    Notes
    -----
    Least squares of score = text × criterion + position + predecessor: effects that all criteria
    have in common (Williams 1949). The levels of each effect sum to 0. The first position has no
    predecessor, in whatever design, so its estimate is the effect of both.

    Examples
    --------
    >>> import rubricnb as rb
    >>> items = rb.load("minibench", n_items=60)
    >>> requests = rb.plan_criteria(items, rb.williams(3), readout="logprobs")
    >>> answers = rb.simulate(requests, items, "criterion-biased")
    >>> found = predecessor_effects(answers, value="expected_score").set_index("effect")
    >>> found.loc["position", "level"].tolist()
    ['1', '2', '3']
    >>> bool(found.loc["position", "estimate"].is_monotonic_decreasing)
    True
    """
    needed = [
        "request_id", "item_id", "cluster_id", "criterion", "criterion_position", value,
    ]  # fmt: skip
    require(judgments, needed, "judgments")
    names = grouping(judgments, by, without=["criterion"])
    extra = [c for c in ("dataset", "status") if c in judgments]
    slim = judgments[list(dict.fromkeys([*names, *extra, *needed]))]
    rows = []
    for key, part in groups(slim, names):
        rows += [key | row for row in _effects(part, value)]
    return pd.DataFrame(rows)


def _effects(part: pd.DataFrame, value: Value) -> list[dict[str, Any]]:
    criteria = sorted(part["criterion"].astype("str").unique())
    n = len(criteria)
    position = floats(part["criterion_position"]).astype(np.int64)
    own = np.searchsorted(criteria, part["criterion"].astype("str").to_numpy())
    before = _criterion_before(combine([part["request_id"]]), position, own)
    score = values_of(part, value)
    parsed = ~np.isnan(score)
    unit = combine(part[c] for c in ("dataset", "item_id", "criterion") if c in part)
    cluster = clusters_of(part)
    counts = {
        "n_items": len(np.unique(unit[parsed])),
        "n_clusters": len(np.unique(cluster[parsed])),
        "n_reads": int(parsed.sum()),
    }
    x = np.concatenate([_sum_to_zero(position - 1, n), _sum_to_zero(before, n)], axis=1)
    levels = [("position", str(q)) for q in range(1, n + 1)]
    levels += [("predecessor", name) for name in criteria]
    estimate, se, joint, reason = _fit(x[parsed], score[parsed], unit[parsed], cluster[parsed], n)
    half = t_quantile(counts["n_clusters"]) * se
    return [
        {
            "effect": effect,
            "level": level,
            "estimate": estimate[j],
            "low": estimate[j] - half[j],
            "high": estimate[j] + half[j],
            "p": t_p_value(estimate[j] / se[j], counts["n_clusters"]) if se[j] > 0 else np.nan,
            "p_joint": joint[j // n],
            **counts,
            "reason": reason,
        }
        for j, (effect, level) in enumerate(levels)
    ]


def _criterion_before(request: IntArray, position: IntArray, own: IntArray) -> IntArray:
    """The criterion one place further up in the same answer; -1 at the first place."""
    order = np.lexsort((position, request))
    before = np.full(len(own), -1)
    before[order[1:]] = np.where(np.diff(request[order]) == 0, own[order[:-1]], -1)
    return before


def _sum_to_zero(level: IntArray, n: int) -> FloatArray:
    """Columns of an effect with n levels that sum to 0; a row of zeros where the level is -1."""
    return np.asarray(np.vstack([np.eye(n - 1), -np.ones(n - 1), np.zeros(n - 1)])[level])


def _fit(
    x: FloatArray, y: FloatArray, unit: IntArray, cluster: IntArray, n: int
) -> tuple[FloatArray, FloatArray, list[float], str]:
    """Estimates and standard errors of all 2 n levels, p of both effects, and a reason."""
    nothing = np.full(2 * n, np.nan)
    if len(y) == 0:
        return nothing, nothing, [np.nan, np.nan], "no read was parsed"
    unit = np.unique(unit, return_inverse=True)[1]
    cluster = np.unique(cluster, return_inverse=True)[1]
    columns = np.column_stack([x, y])
    means = by_cluster(columns, unit) / np.bincount(unit)[:, None]
    columns = columns - means[unit]  # takes the effect of every text × criterion out
    products = by_cluster(columns[:, :, None] * columns[:, None, :], cluster)
    total = products.sum(axis=0)
    k = 2 * (n - 1)
    if np.linalg.matrix_rank(total[:k, :k]) < k:
        why = "the orderings do not tell position and predecessor apart"
        return nothing, nothing, [np.nan, np.nan], why
    beta = np.linalg.solve(total[:k, :k], total[:k, k])
    left = _leave_out(total - products, k)
    expand = np.kron(np.eye(2), np.vstack([np.eye(n - 1), -np.ones(n - 1)]))
    reason = ""
    if len(products) < 2:
        reason = few_clusters(cluster)
    elif np.isnan(left).any():
        reason = "without some cluster the effects cannot be told apart, so there is no interval"
    joint = [_hotelling(beta[part], left[:, part]) for part in np.split(np.arange(k), 2)]
    se = jackknife_se(left @ expand.T)
    se = np.where(se > 1e-12, se, np.nan)
    if not reason and np.isnan(se).any():
        reason = "no score changes with the order"
    elif not reason and np.isnan(joint).any():
        reason = "p_joint: needs more clusters than an effect has levels"
    reason = reason or few_clusters(cluster)
    return np.asarray(expand @ beta), se, joint, reason


def _leave_out(products: FloatArray, k: int) -> FloatArray:
    """Solve the normal equations of every delete-one-cluster sample; NaN where there are none."""
    out = np.full((len(products), k), np.nan)
    regular = np.linalg.matrix_rank(products[:, :k, :k]) == k
    out[regular] = np.linalg.solve(products[regular, :k, :k], products[regular, :k, k:])[..., 0]
    return out


def _hotelling(estimate: FloatArray, left: FloatArray) -> float:
    """p of Hotelling's T² that an effect is 0, from its delete-one-cluster estimates."""
    n, k = left.shape
    if n <= k or np.isnan(left).any():
        return float("nan")
    rest = left - left.mean(axis=0)
    covariance = (n - 1) / n * rest.T @ rest
    if np.linalg.matrix_rank(covariance) < k:
        return float("nan")
    t2 = float(estimate @ np.linalg.solve(covariance, estimate))
    return float(special.fdtrc(k, n - k, t2 * (n - k) / (k * (n - 1))))
