"""Statements of arXiv:2506.22316 that its own Tables 2 to 4 decide."""

from __future__ import annotations

import pandas as pd

from rubricnb.data.papers import published

_SIZES = {  # 10⁹ parameters, as the judges' names say; GPT-4o's is not public
    "Qwen3-8B": 8, "Mistral-Small-24B-Instruct": 24, "Qwen3-32B": 32, "DeepSeek-V3-671B": 671,
}  # fmt: skip
_ITEMS = {"BiGGen Bench": 2780, "FLASK": 2001, "MT Bench": 320, "Vicuna Bench": 320}


def values_that_count_items(judge: str, dataset: str) -> int:
    """Count flip rates and MADs of Table 3 that are a whole number of items, rounded as printed.

    Both are sums of integers over the items of a dataset (its Equation 3).

    Examples
    --------
    >>> values_that_count_items("", "")
    176
    """
    table = _stability()
    items = table["dataset"].map(_ITEMS)
    counts = 0
    for column, unit, half_digit in (("flip_rate_pct", 100, 0.005), ("mad", 1, 0.00005)):
        whole = (table[column] / unit * items).round() / items * unit
        counts += int(((whole - table[column]).abs() <= half_digit + 1e-9).sum())
    return counts


def cells_where_mad_is_at_least_the_flip_rate(judge: str, dataset: str) -> int:
    """Count cells of Table 3 whose MAD is not below the flip rate: a flip moves at least a point.

    Examples
    --------
    >>> cells_where_mad_is_at_least_the_flip_rate("", "")
    90
    """
    return int((_points_per_flip() >= 1 - 0.001).sum())


def largest_points_per_flip_over_the_next(judge: str, dataset: str) -> float:
    """Divide the largest MAD per flip of Table 3 by the second largest.

    Examples
    --------
    >>> round(largest_points_per_flip_over_the_next("", ""), 2)
    1.3
    """
    largest, second = _points_per_flip().nlargest(2)
    return float(largest / second)


def cells_below_25_percent(judge: str, dataset: str) -> int:
    """Count a judge's flip rates below 25 % in Table 3, the reference answer left out.

    Examples
    --------
    >>> cells_below_25_percent("GPT-4o", "")
    15
    """
    return int((_without_reference(judge)["flip_rate_pct"] < 25).sum())


def cells_below_03(judge: str, dataset: str) -> int:
    """Count a judge's MADs below 0.3 in Table 3, the reference answer left out.

    Examples
    --------
    >>> cells_below_03("GPT-4o", "")
    14
    """
    return int((_without_reference(judge)["mad"] < 0.3).sum())


def cells_where_qwen3_8b_flips_more(judge: str, dataset: str) -> int:
    """Count the cells of Table 3 in which Qwen3-8B flips more scores than another judge.

    Examples
    --------
    >>> cells_where_qwen3_8b_flips_more("GPT-4o", "")
    16
    >>> cells_where_qwen3_8b_flips_more("Qwen3-32B", "")
    13
    """
    rates = _flip_rates()
    return int((rates["Qwen3-8B"] > rates[judge]).sum())


def judges_that_flip_less_than_qwen3_8b_with_a_reference(judge: str, dataset: str) -> int:
    """Count judges whose mean flip rate with a full-mark reference (Ref-5) is below Qwen3-8B's.

    Examples
    --------
    >>> judges_that_flip_less_than_qwen3_8b_with_a_reference("", "")
    0
    """
    rates = _flip_rates().loc["Ref-5"].mean()
    return int((rates < rates["Qwen3-8B"]).sum())


def gold_columns_where_gpt41_is_best(judge: str, dataset: str) -> int:
    """Count columns of Table 2 in which GPT-4.1's scores have the highest correlation.

    Examples
    --------
    >>> gold_columns_where_gpt41_is_best("", "")
    3
    """
    table = published("scoring_bias_gold").set_index(["score_source", "dataset"]).unstack()
    return int(table.idxmax().str.startswith("GPT-4.1").sum())


def correlations_that_roman_numerals_raise(judge: str, dataset: str) -> int:
    """Count a judge's eight correlations of Table 4 that are higher with Roman numerals.

    Examples
    --------
    >>> correlations_that_roman_numerals_raise("GPT-4o", "")
    7
    """
    return int(_raised(judge, "Roman-Numerals").sum())


def correlations_that_roman_numerals_lower(judge: str, dataset: str) -> int:
    """Count a judge's eight correlations of Table 4 that are not higher with Roman numerals.

    Examples
    --------
    >>> correlations_that_roman_numerals_lower("Qwen3-8B", "")
    8
    """
    return int((~_raised(judge, "Roman-Numerals")).sum())


def correlations_that_letters_raise(judge: str, dataset: str) -> int:
    """Count a judge's eight correlations of Table 4 that are higher with letter grades.

    Examples
    --------
    >>> correlations_that_letters_raise("DeepSeek-V3-671B", "")
    8
    """
    return int(_raised(judge, "Letter-Grades").sum())


def correlations_that_descending_order_raises(judge: str, dataset: str) -> int:
    """Count a judge's eight correlations of Table 4 that are higher with the levels from 5 to 1.

    Examples
    --------
    >>> correlations_that_descending_order_raises("Mistral-Small-24B-Instruct", "")
    6
    """
    return int(_raised(judge, "Descending-Numeric").sum())


def judges_that_a_random_order_hurts(judge: str, dataset: str) -> int:
    """Count judges for which most of the eight correlations of Table 4 fall in random order.

    Examples
    --------
    >>> judges_that_a_random_order_hurts("", "")
    4
    """
    judges = published("scoring_bias_accuracy")["judge"].unique()
    return sum(int((~_raised(name, "Random-Numeric")).sum()) > 4 for name in judges)


def human_correlations_that_perturbations_raise(judge: str, dataset: str) -> int:
    """Count a judge's sixteen correlations with people in Table 4 that a perturbation raises.

    Examples
    --------
    >>> human_correlations_that_perturbations_raise("GPT-4o", "")
    12
    """
    perturbations = published("scoring_bias_accuracy")["perturbation"].unique()
    return sum(int(_raised(judge, p, "human").sum()) for p in perturbations if p != "Baseline")


def pairs_where_the_larger_judge_flips_less(judge: str, dataset: str) -> int:
    """Count pairs of judges of known size (of 6) whose larger one has the lower mean FR.

    Without *Ref-5*, means over the 16 cells.

    Examples
    --------
    >>> pairs_where_the_larger_judge_flips_less("", "")
    5
    """
    return _ordered_pairs(_flip_rates().drop(index="Ref-5").mean())


def pairs_where_the_larger_judge_flips_less_by_reference(judge: str, dataset: str) -> int:
    """The same of *Ref-5*, means over its two datasets.

    Examples
    --------
    >>> pairs_where_the_larger_judge_flips_less_by_reference("", "")
    1
    """
    return _ordered_pairs(_flip_rates().loc["Ref-5"].mean())


def cells_where_the_reference_moves_most(judge: str, dataset: str) -> int:
    """Count cells (judge × dataset, of 10) in which *Ref-5* has the highest FR of all.

    Examples
    --------
    >>> cells_where_the_reference_moves_most("", "")
    9
    """
    table = _stability()
    wide = table.pivot(index=["judge", "dataset"], columns="perturbation", values="flip_rate_pct")
    wide = wide.dropna()
    return int((wide["Ref-5"] > wide.drop(columns="Ref-5").max(axis=1)).sum())


def mean_change_by_the_recommended_formats(judge: str, dataset: str) -> float:
    """Mean change of ρ with people in Table 4 over judges, datasets and the three named formats.

    Descending order, letters and Roman numerals. GPT-4.1's scores are no people and left out.

    Examples
    --------
    >>> round(mean_change_by_the_recommended_formats("", ""), 4)
    -0.0017
    """
    names = ["Descending-Numeric", "Letter-Grades", "Roman-Numerals"]
    return float(_changes_with_people()[names].to_numpy().mean())


def human_cells_that_descending_order_raises(judge: str, dataset: str) -> int:
    """Count the cells of Table 4 (judge and rated dataset, of 10) whose ρ rises from 5 to 1.

    Examples
    --------
    >>> human_cells_that_descending_order_raises("", "")
    8
    """
    return int((_changes_with_people()["Descending-Numeric"] > 0).sum())


def _changes_with_people() -> pd.DataFrame:
    """Return the change of ρ by each perturbation (Table 4): (judge, rated dataset) by it."""
    rho = (
        published("scoring_bias_accuracy")
        .query("gold == 'human'")
        .pivot(index=["judge", "dataset"], columns="perturbation", values="spearman_rho")
    )
    return rho.sub(rho["Baseline"], axis=0)


def _stability() -> pd.DataFrame:
    return published("scoring_bias_stability")


def _points_per_flip() -> pd.Series:
    table = _stability()
    return table["mad"] / (table["flip_rate_pct"] / 100)


def _without_reference(judge: str) -> pd.DataFrame:
    table = _stability()
    return table[(table["judge"] == judge) & (table["perturbation"] != "Ref-5")]


def _flip_rates() -> pd.DataFrame:
    """Return Table 3's flip rates: (perturbation, dataset) by judge."""
    table = _stability()
    return table.pivot(index=["perturbation", "dataset"], columns="judge", values="flip_rate_pct")


def _raised(judge: str, perturbation: str, gold: str = "") -> pd.DataFrame:
    """Say which correlations of a judge exceed those of the unperturbed prompt (Table 4)."""
    table = published("scoring_bias_accuracy").query("judge == @judge")
    if gold:
        table = table[table["gold"] == gold]
    both = table.set_index(["perturbation", "dataset"])[["spearman_rho", "pearson_r"]]
    return (both.loc[perturbation] > both.loc["Baseline"]).stack()


def _ordered_pairs(mean: pd.Series) -> int:
    sizes = sorted(_SIZES, key=lambda name: _SIZES[name])
    return sum(
        int(mean[large] < mean[small]) for i, small in enumerate(sizes) for large in sizes[i + 1 :]
    )
