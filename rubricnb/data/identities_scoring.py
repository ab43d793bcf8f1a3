"""Arithmetic inside the scoring-bias paper (arXiv:2506.22316), as `rubricnb.data.identities`."""

from __future__ import annotations

import numpy as np
import pandas as pd

from rubricnb.data.papers import published

_ITEMS = {"BiGGen Bench": 2780, "FLASK": 2001, "MT Bench": 320, "Vicuna Bench": 320}
_SIZES = {  # 10⁹ parameters, as the judges' names say; GPT-4o's is not public
    "Qwen3-8B": 8, "Mistral-Small-24B-Instruct": 24, "Qwen3-32B": 32, "DeepSeek-V3-671B": 671,
}  # fmt: skip
_SMALL, _STRONG = "Qwen3-8B", "GPT-4o"


def rows_that_count_items(judge: str, dataset: str) -> int:
    """Count rows of Table 3 whose FR and MAD are whole numbers of items, as printed.

    Examples
    --------
    >>> rows_that_count_items("", "")
    86
    """
    table = _stability()
    n = table["dataset"].map(_ITEMS)
    fits = np.ones(len(table), bool)
    for column, scale, digits in (("flip_rate_pct", 100, 2), ("mad", 1, 4)):
        counted = np.floor(table[column] * n / scale + 0.5)
        # Half of the last digit, and a hair for ties: the paper rounds these up.
        fits &= (counted * scale / n - table[column]).abs() <= 0.5 * 10.0**-digits + 1e-9
    return int(fits.sum())


def rows_with_mad_above_flip_rate(judge: str, dataset: str) -> int:
    """Count rows of Table 3 whose MAD is at least the flip rate.

    Examples
    --------
    >>> rows_with_mad_above_flip_rate("", "")
    90
    """
    table = _stability()
    return int((table["mad"] >= table["flip_rate_pct"] / 100).sum())


def most_points_per_flip(judge: str, dataset: str) -> float:
    """Largest MAD over FR in Table 3: score points per flip.

    Examples
    --------
    >>> round(most_points_per_flip("", ""), 2)
    2.04
    """
    table = _stability()
    return float((table["mad"] / table["flip_rate_pct"] * 100).max())


def cells_of_a_judge_below(judge: str, dataset: str) -> int:
    """Count cells of a judge in Table 3, without *Ref-5*, with FR below 25 % and MAD below 0.3.

    Examples
    --------
    >>> cells_of_a_judge_below("GPT-4o", "")
    14
    """
    cells = _without_reference()
    cells = cells[cells["judge"] == judge]
    return int(((cells["flip_rate_pct"] < 25) & (cells["mad"] < 0.3)).sum())


def cells_where_the_small_judge_flips_more(judge: str, dataset: str) -> int:
    """Count cells of Table 3 in which Qwen3-8B flips more often than a judge.

    Examples
    --------
    >>> [cells_where_the_small_judge_flips_more(j, "") for j in ("GPT-4o", "Qwen3-32B")]
    [16, 13]
    """
    wide = _flips(_stability())
    return int((wide[_SMALL] > wide[judge]).sum())


def pairs_where_the_larger_judge_flips_less(judge: str, dataset: str) -> int:
    """Count pairs of judges of known size (of 6) whose larger one has the lower mean FR.

    Without *Ref-5*, means over the 16 cells.

    Examples
    --------
    >>> pairs_where_the_larger_judge_flips_less("", "")
    5
    """
    return _ordered_pairs(_flips(_without_reference()).mean())


def pairs_where_the_larger_judge_flips_less_by_reference(judge: str, dataset: str) -> int:
    """The same of *Ref-5*, means over its two datasets.

    Examples
    --------
    >>> pairs_where_the_larger_judge_flips_less_by_reference("", "")
    1
    """
    return _ordered_pairs(_flips(_reference()).mean())


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


def judges_that_a_reference_moves_more_than_the_small_one(judge: str, dataset: str) -> int:
    """Count judges whose mean FR under *Ref-5* is above Qwen3-8B's.

    Examples
    --------
    >>> judges_that_a_reference_moves_more_than_the_small_one("", "")
    4
    """
    mean = _flips(_reference()).mean()
    return int((mean > mean[_SMALL]).sum())


def columns_led_by_gpt_4_1(judge: str, dataset: str) -> int:
    """Count columns of Table 2 (of 4) in which GPT-4.1 has the highest correlation.

    Examples
    --------
    >>> columns_led_by_gpt_4_1("", "")
    3
    """
    table = published("scoring_bias_gold").set_index(["score_source", "dataset"])
    best = table.unstack("dataset").idxmax()
    return int(best.str.startswith("GPT-4.1").sum())


def correlations_that_roman_numerals_raise(judge: str, dataset: str) -> int:
    """Count correlations of a judge in Table 4 (of 8) that Roman numerals raise.

    Examples
    --------
    >>> judges = ("GPT-4o", "DeepSeek-V3-671B", "Qwen3-32B", "Qwen3-8B")
    >>> [correlations_that_roman_numerals_raise(j, "") for j in judges]
    [7, 3, 3, 0]
    """
    return _raised(judge, "Roman-Numerals")


def correlations_that_letters_raise(judge: str, dataset: str) -> int:
    """Count correlations of a judge in Table 4 (of 8) that letter grades raise.

    Examples
    --------
    >>> correlations_that_letters_raise("DeepSeek-V3-671B", "")
    8
    """
    return _raised(judge, "Letter-Grades")


def correlations_that_descending_raises(judge: str, dataset: str) -> int:
    """Count correlations of a judge in Table 4 (of 8) that the descending order raises.

    Examples
    --------
    >>> judges = ("DeepSeek-V3-671B", "Mistral-Small-24B-Instruct")
    >>> [correlations_that_descending_raises(j, "") for j in judges]
    [5, 6]
    """
    return _raised(judge, "Descending-Numeric")


def judges_that_a_random_order_hurts(judge: str, dataset: str) -> int:
    """Count judges in Table 4 (of 5) whose mean correlation a random order lowers.

    Examples
    --------
    >>> judges_that_a_random_order_hurts("", "")
    4
    """
    return int((_changes("Random-Numeric").mean(axis=1) < 0).sum())


def human_correlations_that_perturbations_raise(judge: str, dataset: str) -> int:
    """Count correlations of a judge with people (of 16) that a perturbation raises.

    Examples
    --------
    >>> human_correlations_that_perturbations_raise("GPT-4o", "")
    12
    """
    names = ("Descending-Numeric", "Random-Numeric", "Letter-Grades", "Roman-Numerals")
    return int(sum((_changes(name, gold="human").loc[judge] > 0).sum() for name in names))


def mean_change_by_the_recommended_formats(judge: str, dataset: str) -> float:
    """Mean change of Spearman's ρ in Table 4 over judges, datasets and the three named formats.

    Descending order, letters and Roman numerals.

    Examples
    --------
    >>> round(mean_change_by_the_recommended_formats("", ""), 4)
    -0.0081
    """
    names = ("Descending-Numeric", "Letter-Grades", "Roman-Numerals")
    changes = [_changes(name)["spearman_rho"].to_numpy() for name in names]
    return float(np.mean(changes))


def _stability() -> pd.DataFrame:
    return published("scoring_bias_stability")


def _without_reference() -> pd.DataFrame:
    return _stability().query("perturbation != 'Ref-5'")


def _reference() -> pd.DataFrame:
    return _stability().query("perturbation == 'Ref-5'")


def _flips(table: pd.DataFrame) -> pd.DataFrame:
    """One column a judge."""
    return table.pivot(index=["perturbation", "dataset"], columns="judge", values="flip_rate_pct")


def _ordered_pairs(mean: pd.Series) -> int:
    sizes = sorted(_SIZES, key=lambda name: _SIZES[name])
    return sum(
        int(mean[large] < mean[small]) for i, small in enumerate(sizes) for large in sizes[i + 1 :]
    )


def _changes(perturbation: str, gold: str | None = None) -> pd.DataFrame:
    """Correlations of Table 4 minus the baseline's: judges × (statistic, dataset)."""
    table = published("scoring_bias_accuracy")
    if gold:
        table = table[table["gold"] == gold]
    wide = table.pivot(
        index="judge", columns=["perturbation", "dataset"], values=["spearman_rho", "pearson_r"]
    )
    return wide.xs(perturbation, axis=1, level=1) - wide.xs("Baseline", axis=1, level=1)


def _raised(judge: str, perturbation: str) -> int:
    return int((_changes(perturbation).loc[judge] > 0).sum())
