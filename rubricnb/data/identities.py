"""Arithmetic inside the papers: what their tables say about their own statements.

Each function recomputes one kind of statement from `published` tables alone, for the rows of
``claims.csv`` whose ``kind`` is ``identity`` and whose ``recompute`` names it. It takes the row's
judge and dataset (empty: all).
"""

from __future__ import annotations

import sys

import numpy as np
import pandas as pd
from scipy.stats import chi2, false_discovery_control

from rubricnb.data.papers import claims as _claims
from rubricnb.data.papers import published
from rubricnb.permutation import balanced

_READS_PER_ITEM = 10
_ITEMS = {"MT-Bench": 320, "Vicuna": 320, "HANNA": 576, "SummEval": 1600}
_THRESHOLD = 9.49  # the paper's 5 % point of χ² with 4 degrees of freedom
_HALF_DIGIT = 0.05  # selection rates and χ² are printed with one decimal


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
    ('replicates', 'does not replicate')
    """
    claims = _claims() if claims is None else claims
    rows = claims[claims["kind"] == "identity"]
    module = sys.modules[__name__]
    values = [
        float(getattr(module, row.recompute)(row.judge, row.dataset)) for row in rows.itertuples()
    ]
    return pd.DataFrame({"claim_id": rows["claim_id"].to_numpy(), "value": values})


def mean_cramers_v(judge: str, dataset: str) -> float:
    """Mean Cramér's V at five options over the four datasets, from the χ² of v2's Table 2.

    V² = χ² / (M (n − 1)) with M = 10 reads per item: the reading of N under which v2's Table 4
    follows.

    Examples
    --------
    >>> round(mean_cramers_v("Gemma-3-27B", ""), 3)
    0.114
    """
    cells = _position_bias(judge, dataset)
    reads = cells["dataset"].map(_ITEMS) * _READS_PER_ITEM
    return float(np.sqrt(cells["chi2"] / (reads * 4)).mean())


def cells_where_ends_allow_chi2(judge: str, dataset: str) -> int:
    """Count cells of v2's Table 2 whose χ² is at least what Pos1 and Pos5 alone imply.

    The least χ² has the three middle positions equal; rounding is given its half digit.

    Examples
    --------
    >>> cells_where_ends_allow_chi2("", "")
    24
    """
    cells = _position_bias(judge, dataset)
    reads = cells["dataset"].map(_ITEMS) * _READS_PER_ITEM
    rounding = np.linspace(-_HALF_DIGIT, _HALF_DIGIT, 11)
    first = cells["pos1_pct"].to_numpy()[:, None, None] - 20 + rounding[:, None]
    last = cells["pos5_pct"].to_numpy()[:, None, None] - 20 + rounding
    squares = (first**2 + last**2 + (first + last) ** 2 / 3).min(axis=(1, 2))
    # Squared percentage points: χ² = M Σ (share − 20)² / (20 · 100).
    return int((cells["chi2"] + _HALF_DIGIT >= reads * squares / 2000).sum())


def significant_cells(judge: str, dataset: str) -> int:
    """Count cells of v2's Table 2 whose χ² passes the 5 % threshold.

    Examples
    --------
    >>> significant_cells("", ""), significant_cells("", "hanna+summeval")
    (20, 12)
    """
    return int((_position_bias(judge, dataset)["chi2"] > _THRESHOLD).sum())


def daggers(judge: str, dataset: str) -> int:
    """Count cells of v2's Table 2 that are marked as not significant and are below the threshold.

    Examples
    --------
    >>> daggers("", "mt-bench+vicuna")
    4
    """
    cells = _position_bias(judge, dataset)
    return int((cells["not_significant"] & (cells["chi2"] <= _THRESHOLD)).sum())


def significant_after_benjamini_hochberg(judge: str, dataset: str) -> int:
    """Count cells significant at a false discovery rate of 5 % over all 24 cells of v2's Table 2.

    Examples
    --------
    >>> significant_after_benjamini_hochberg("", "hanna+summeval")
    11
    """
    cells = _position_bias("", "")
    q = pd.Series(false_discovery_control(chi2.sf(cells["chi2"], 4)), index=cells.index)
    return int((q[_position_bias(judge, dataset).index] <= 0.05).sum())


def datasets_with_the_same_favoured_end(judge: str, dataset: str) -> int:
    """Count the datasets on which a judge favours the end (Pos1 or Pos5) it favours most often.

    Examples
    --------
    >>> datasets_with_the_same_favoured_end("Qwen3.5-9B", "")
    2
    """
    cells = _position_bias(judge, dataset)
    first = int((cells["pos1_pct"] > cells["pos5_pct"]).sum())
    return max(first, len(cells) - first)


def cells_first_above_last(judge: str, dataset: str) -> int:
    """Count cells of v2's Table 2 in which the first position is chosen more often than the last.

    Examples
    --------
    >>> cells_first_above_last("GPT-OSS-20B", "")
    4
    """
    cells = _position_bias(judge, dataset)
    return int((cells["pos1_pct"] > cells["pos5_pct"]).sum())


def cells_last_above_first(judge: str, dataset: str) -> int:
    """Count cells of v2's Table 2 in which the last position is chosen more often than the first.

    Examples
    --------
    >>> cells_last_above_first("Gemma-3-27B", "")
    4
    """
    cells = _position_bias(judge, dataset)
    return int((cells["pos5_pct"] > cells["pos1_pct"]).sum())


def cells_first_below_uniform(judge: str, dataset: str) -> int:
    """Count cells of v2's Table 2 in which the first position is chosen less often than 20 %.

    Examples
    --------
    >>> cells_first_below_uniform("Gemma-3-27B", "")
    3
    """
    return int((_position_bias(judge, dataset)["pos1_pct"] < 20).sum())


def largest_end_deviation(judge: str, dataset: str) -> float:
    """Largest distance of Pos1 or Pos5 from 20 %, in points.

    Examples
    --------
    >>> round(largest_end_deviation("GPT-OSS-120B", ""), 1)
    1.4
    """
    cells = _position_bias(judge, dataset)
    return float((cells[["pos1_pct", "pos5_pct"]] - 20).abs().max().max())


def directions_among_judges(judge: str, dataset: str) -> int:
    """Count the directions (first, last) that judges lean to on average over the datasets.

    Examples
    --------
    >>> directions_among_judges("", "")
    2
    """
    cells = _position_bias(judge, dataset)
    lean = cells.groupby("judge")[["pos1_pct", "pos5_pct"]].mean()
    return int((lean["pos1_pct"] > lean["pos5_pct"]).nunique())


def items_in_total(judge: str, dataset: str) -> int:
    """Sum the items of the datasets of Table 1.

    Examples
    --------
    >>> items_in_total("", "")
    2816
    """
    return int(published("datasets_2602")["total"].sum())


def items_from_composition(judge: str, dataset: str) -> int:
    """Multiply what Table 1 says a dataset is made of.

    Examples
    --------
    >>> items_from_composition("", "summeval")
    1600
    """
    tables = published("datasets_2602").set_index(_slugs(published("datasets_2602")["dataset"]))
    numbers = pd.Series(tables["composition"][dataset].split()).str.extract(r"^(\d+)$")[0]
    return int(numbers.dropna().astype(int).prod())


def judges_in_table_5(judge: str, dataset: str) -> int:
    """Count the judges of v1's Table 5.

    Examples
    --------
    >>> judges_in_table_5("", "")
    7
    """
    return int(published("score_position")["judge"].nunique())


def models_in_table_5(judge: str, dataset: str) -> int:
    """Count the models of v1's Table 5: judges, with thinking on and off taken as one.

    Examples
    --------
    >>> models_in_table_5("", "")
    5
    """
    return int(published("score_position")["judge"].str.removesuffix("-Think").nunique())


def rows_that_sum_to_100(judge: str, dataset: str) -> int:
    """Count rows of v1's Table 5 (judge and score) whose shares sum to 100 ± 0.1.

    Examples
    --------
    >>> rows_that_sum_to_100("", "")
    35
    """
    return int(((_score_position(judge).sum(axis=1) - 100).abs() < 0.1 + 1e-9).sum())


def rows_that_prefer_position_1(judge: str, dataset: str) -> int:
    """Count rows of v1's Table 5 in which the first position is chosen most often.

    Examples
    --------
    >>> rows_that_prefer_position_1("", "")
    20
    """
    return int((_score_position(judge).idxmax(axis=1) == 1).sum())


def rows_that_prefer_position_1_2_or_5(judge: str, dataset: str) -> int:
    """Count rows of v1's Table 5 in which position 1, 2 or 5 is chosen most often.

    Examples
    --------
    >>> rows_that_prefer_position_1_2_or_5("", "")
    32
    """
    return int(_score_position(judge).idxmax(axis=1).isin([1, 2, 5]).sum())


def lowest_cost(judge: str, dataset: str) -> float:
    """Lowest Bias Cost (×100) of a judge over the ten balanced orders, from v1's Table 5.

    Examples
    --------
    >>> round(lowest_cost("OSS-120B", ""), 1)
    2.8
    """
    return min(_costs(judge).values())


def default_cost(judge: str, dataset: str) -> float:
    """Bias Cost (×100) of a judge under the order 1 to 5, from v1's Table 5.

    Examples
    --------
    >>> round(default_cost("GPT-4.1-mini", ""), 1)
    15.0
    """
    return _costs(judge)[(1, 2, 3, 4, 5)]


def judges_with_the_printed_best_order(judge: str, dataset: str) -> int:
    """Count judges whose order of lowest cost is the one that v1's Table 6 prints.

    Examples
    --------
    >>> judges_with_the_printed_best_order("", "")
    7
    """
    table = published("bias_cost")
    orders = [tuple(int(s) for s in order.strip("[]").split(",")) for order in table.min_bias_order]
    costs = [_costs(name) for name in table["judge"]]
    return sum(min(c, key=c.__getitem__) == order for c, order in zip(costs, orders, strict=True))


def _position_bias(judge: str, dataset: str) -> pd.DataFrame:
    """Return v2's Table 2, for one judge or all, and for datasets joined by "+" or all."""
    table = published("position_bias")
    if judge:
        table = table[table["judge"] == judge]
    if dataset:
        table = table[_slugs(table["dataset"]).isin(dataset.split("+"))]
    return table


def _score_position(judge: str) -> pd.DataFrame:
    """Return v1's Table 5 as a matrix: (judge, score) by position."""
    table = published("score_position")
    if judge:
        table = table[table["judge"] == judge]
    return table.pivot(index=["judge", "score"], columns="position", values="selected_pct")


def _costs(judge: str) -> dict[tuple[int, ...], float]:
    shares = _score_position(judge).droplevel("judge")
    return {
        tuple(int(s) for s in order): float(
            sum(abs(shares.loc[s, p] - 20) for p, s in enumerate(order, 1))
        )
        for order in balanced(5).orderings()
    }


def _slugs(names: pd.Series) -> pd.Series:
    """Turn printed names into the names that `rubricnb.data.load` knows."""
    return names.str.lower().str.removesuffix("-bench").replace({"mt": "mt-bench"})
