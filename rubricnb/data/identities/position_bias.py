"""Statements of arXiv:2602.02219, versions 1 and 2, that their own tables decide."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pandas as pd
from scipy.stats import chi2, false_discovery_control, norm, spearmanr

from rubricnb.data.papers import claims as _claims
from rubricnb.data.papers import published
from rubricnb.permutation import balanced
from rubricnb.statistics._inference import MARGINS
from rubricnb.statistics.position import cramers_v_floor

_READS_PER_ITEM = 10
_ITEMS = {"MT-Bench": 320, "Vicuna": 320, "HANNA": 576, "SummEval": 1600}
_RATED = ("HANNA", "SummEval")  # the datasets of the 9-option scale
_THRESHOLD = 9.49  # the paper's 5 % point of χ² with 4 degrees of freedom
_HALF_DIGIT = 0.05  # selection rates and χ² are printed with one decimal


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


def datasets_that_lean_the_other_way(judge: str, dataset: str) -> int:
    """Count the datasets with a clear lean against the one that a judge has most often (Table 2).

    A lean is Pos5 − Pos1; it is clear at |z| > 1.96, reads taken as independent.

    Examples
    --------
    >>> datasets_that_lean_the_other_way("Gemma-3-12B", "")
    1
    >>> datasets_that_lean_the_other_way("Qwen3.5-9B", "")  # three of its four leans are noise
    0
    """
    cells = _position_bias(judge, dataset)
    first, last = cells["pos1_pct"] / 100, cells["pos5_pct"] / 100
    reads = cells["dataset"].map(_ITEMS) * _READS_PER_ITEM
    z = (last - first) / np.sqrt((first + last - (last - first) ** 2) / reads)
    return int(min((z > norm.isf(0.025)).sum(), (z < -norm.isf(0.025)).sum()))


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


def balanced_random_intervals_with_zero(judge: str, dataset: str) -> int:
    """Count cells of v2's Table 3 whose interval of BALANCED − RANDOM holds 0.

    Examples
    --------
    >>> balanced_random_intervals_with_zero("", "")
    11
    """
    cells = _contrasts("balanced-random")
    return int(((cells["ci_low"] <= 0) & (cells["ci_high"] >= 0)).sum())


def balanced_random_lowest(judge: str, dataset: str) -> float:
    """Smallest Δr of BALANCED − RANDOM in v2's Table 3.

    Examples
    --------
    >>> balanced_random_lowest("", "")
    -0.008
    """
    return float(_contrasts("balanced-random")["delta_r"].min())


def balanced_random_highest(judge: str, dataset: str) -> float:
    """Largest Δr of BALANCED − RANDOM in v2's Table 3.

    Examples
    --------
    >>> balanced_random_highest("", "")
    0.015
    """
    return float(_contrasts("balanced-random")["delta_r"].max())


def balanced_random_equivalent(judge: str, dataset: str) -> int:
    """Count cells of v2's Table 3 in which BALANCED and RANDOM differ by less than 0.02 (TOST).

    Standard errors are read off the printed 95 % intervals.

    Examples
    --------
    >>> balanced_random_equivalent("", "")
    7
    """
    cells = _contrasts("balanced-random")
    z = (MARGINS["delta_r"] - cells["delta_r"].abs()) / cells["standard_error"]
    return int((norm.sf(z) < 0.05).sum())


def balanced_random_significant_adjusted(judge: str, dataset: str) -> int:
    """Count cells in which BALANCED ≠ RANDOM at a false discovery rate of 5 % over Table 3 of v2.

    Examples
    --------
    >>> balanced_random_significant_adjusted("", "")
    0
    """
    return int((_contrasts("balanced-random")["q"] <= 0.05).sum())


def cells_where_balanced_beats_fixed(judge: str, dataset: str) -> int:
    """Count cells of v2's Table 3 whose interval of BALANCED − FIXED lies above 0.

    Examples
    --------
    >>> cells_where_balanced_beats_fixed("", "")
    5
    """
    return len(_winners())


def cells_where_balanced_beats_fixed_adjusted(judge: str, dataset: str) -> int:
    """Count cells with BALANCED above FIXED at a false discovery rate of 5 % over Table 3 of v2.

    Examples
    --------
    >>> cells_where_balanced_beats_fixed_adjusted("", "")
    5
    """
    cells = _contrasts("balanced-fixed")
    return int(((cells["q"] <= 0.05) & (cells["delta_r"] > 0)).sum())


def cells_where_fixed_beats_balanced(judge: str, dataset: str) -> int:
    """Count cells of v2's Table 3 whose interval of BALANCED − FIXED lies below 0.

    Examples
    --------
    >>> cells_where_fixed_beats_balanced("", "")
    0
    """
    return int((_contrasts("balanced-fixed")["ci_high"] < 0).sum())


def winners_among_the_most_biased_cells(judge: str, dataset: str) -> int:
    """Count cells where BALANCED beats FIXED among as many cells with the largest V (v2, Table 2).

    Examples
    --------
    >>> winners_among_the_most_biased_cells("", "")
    3
    """
    bias = _bias_beside_gain().set_index(["judge", "dataset"])["cramers_v"]
    winners = _winners()
    return len(winners & set(bias.nlargest(len(winners)).index))


def winning_judges_among_the_most_biased(judge: str, dataset: str) -> int:
    """Count judges with a cell where BALANCED beats FIXED among as many of the largest mean V.

    Mean V at five options, v2's Table 4.

    Examples
    --------
    >>> winning_judges_among_the_most_biased("", "")
    3
    """
    winners = {name for name, _ in _winners()}
    table = published("scales").query("n_options == 5").set_index("judge")["mean_cramers_v"]
    return len(winners & set(table.nlargest(len(winners)).index))


def p_of_bias_and_gain(judge: str, dataset: str) -> float:
    """P value of Spearman's correlation of V (v2, Table 2) with BALANCED − FIXED (Table 3).

    Examples
    --------
    >>> round(p_of_bias_and_gain("", ""), 2)
    0.35
    """
    cells = _bias_beside_gain()
    return float(spearmanr(cells["cramers_v"], cells["delta_r"]).pvalue)


def gains_that_are_the_printed_difference(judge: str, dataset: str) -> int:
    """Count Δ of v1's Table 2 that are Permutation − Repeat, up to the rounding of both.

    Examples
    --------
    >>> gains_that_are_the_printed_difference("", "")
    28
    """
    table = published("permutation_vs_repeat")
    off = (table["permutation"] - table["repeat"] - table["delta"]).abs()
    return int((off < 0.0015).sum())


def mean_gain_in_r(judge: str, dataset: str) -> float:
    """Mean over judges of v1's Permutation − Repeat in Pearson's r.

    Examples
    --------
    >>> round(mean_gain_in_r("", "hanna"), 3)
    0.027
    """
    return float(_gains("pearson_r", dataset)["delta"].mean())


def mean_gain_in_rho(judge: str, dataset: str) -> float:
    """Mean over judges of v1's Permutation − Repeat in Spearman's ρ.

    Examples
    --------
    >>> round(mean_gain_in_rho("", "summeval"), 3)
    0.014
    """
    return float(_gains("spearman_rho", dataset)["delta"].mean())


def judges_that_permutation_ever_hurts(judge: str, dataset: str) -> int:
    """Count judges with some negative Δ in v1's Table 2.

    Examples
    --------
    >>> judges_that_permutation_ever_hurts("", "")
    2
    """
    table = published("permutation_vs_repeat")
    return int(table.loc[table["delta"] < 0, "judge"].nunique())


def judges_that_permutation_hurts_on_average(judge: str, dataset: str) -> int:
    """Count judges whose mean Δ over the four columns of v1's Table 2 is negative.

    Examples
    --------
    >>> judges_that_permutation_hurts_on_average("", "")
    1
    """
    return int((published("permutation_vs_repeat").groupby("judge")["delta"].mean() < 0).sum())


def most_effective_repeats(judge: str, dataset: str) -> float:
    """Largest number of effective reads among v1's ten repeats, from the sds of its Table 3.

    The mean sd stands for the root of the mean variance, which is not printed.

    Examples
    --------
    >>> round(most_effective_repeats("", ""), 1)
    4.1
    """
    return float(_effective_repeats()["k_effective"].max())


def cells_where_moved_options_help_single_reads(judge: str, dataset: str) -> int:
    """Count cells of v1's Table 4 in which the mean ordering agrees better than 1-2-3-4-5.

    Both are single reads, so nothing is averaged within an item: like for like.

    Examples
    --------
    >>> cells_where_moved_options_help_single_reads("", "")
    6
    """
    return int((_gain_parts()["single_read"] > 0).sum())


def share_of_gain_at_3_by_averaging(judge: str, dataset: str) -> float:
    """Mean share of the gain from K = 1 to 10 that plain averaging of v1's reads has at K = 3.

    φ follows from the r of ten orderings (v1, Table 2) and of one (Table 4).

    Examples
    --------
    >>> round(share_of_gain_at_3_by_averaging("", ""), 2)
    0.7
    """
    return float(_share_of_gain(3).mean())


def share_of_gain_at_5_by_averaging(judge: str, dataset: str) -> float:
    """Mean share of the gain from K = 1 to 10 that plain averaging of v1's reads has at K = 5.

    Examples
    --------
    >>> round(share_of_gain_at_5_by_averaging("", ""), 2)
    0.87
    """
    return float(_share_of_gain(5).mean())


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


def judges_that_prefer_position_1(judge: str, dataset: str) -> int:
    """Count judges of v1's Table 5 whose first position has the largest mean share over scores.

    The number of reads of each score is not printed, so that all scores count the same.

    Examples
    --------
    >>> judges_that_prefer_position_1("", "")
    6
    """
    mean = _score_position(judge).groupby("judge").mean()
    return int((mean.idxmax(axis=1) == 1).sum())


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


def judges_whose_cheapest_order_ranks_in_the_top_half(judge: str, dataset: str) -> int:
    """Count judges of v1's Table 6 whose order of lowest cost is among the five best of ten by r.

    Examples
    --------
    >>> judges_whose_cheapest_order_ranks_in_the_top_half("", "")
    6
    """
    return int((published("bias_cost")["corr_rank_min_bias"] <= 5).sum())


def judges_whose_cheaper_order_ranks_better(judge: str, dataset: str) -> int:
    """Count judges of v1's Table 6 whose order of lowest cost has a better rank than the default.

    Examples
    --------
    >>> judges_whose_cheaper_order_ranks_better("", "")
    3
    """
    table = published("bias_cost")
    return int((table["corr_rank_min_bias"] < table["corr_rank_default"]).sum())


def judges_whose_default_rank_is_the_mean_rank(judge: str, dataset: str) -> int:
    """Count judges whose default rank in v1's Table 6 is the mean of its two ranks in Table 4.

    A mean of two ranks may end in one half; rounding either way is accepted.

    Examples
    --------
    >>> judges_whose_default_rank_is_the_mean_rank("", "")
    5
    """
    mean = published("default_order_rank").groupby("judge")["rank_of_12345"].mean()
    printed = published("bias_cost").set_index("judge")["corr_rank_default"]
    return int(((printed - mean[printed.index]).abs() <= 0.5).sum())


def datasets_with_the_default_order_first(judge: str, dataset: str) -> int:
    """Count datasets of v1's Table 4 on which the order 1 to 5 has the highest r of ten.

    Examples
    --------
    >>> datasets_with_the_default_order_first("Qwen3-8B", "")
    2
    """
    table = published("default_order_rank")
    return int((table.loc[table["judge"] == judge, "rank_of_12345"] == 1).sum())


def lowest_tau(judge: str, dataset: str) -> float:
    """Lowest Kendall τ in v2's Table 7.

    Examples
    --------
    >>> lowest_tau("", "")
    0.67
    """
    return float(_rank_reversal(judge)["kendall_tau"].min())


def highest_tau(judge: str, dataset: str) -> float:
    """Highest Kendall τ in v2's Table 7.

    Examples
    --------
    >>> highest_tau("", "")
    0.85
    """
    return float(_rank_reversal(judge)["kendall_tau"].max())


def lowest_flip_rate(judge: str, dataset: str) -> float:
    """Lowest share of flipped winners in v2's Table 7, in per cent.

    Examples
    --------
    >>> lowest_flip_rate("GPT-OSS-120B", "")
    17.5
    """
    return float(_rank_reversal(judge)["top1_flip_pct"].min())


def highest_flip_rate(judge: str, dataset: str) -> float:
    """Highest share of flipped winners in v2's Table 7, in per cent.

    Examples
    --------
    >>> highest_flip_rate("GPT-OSS-120B", "")
    31.2
    """
    return float(_rank_reversal(judge)["top1_flip_pct"].max())


def mean_flip_rate(judge: str, dataset: str) -> float:
    """Mean share of flipped winners over the cells of v2's Table 7, in per cent.

    Examples
    --------
    >>> round(mean_flip_rate("", ""), 1)
    26.5
    """
    return float(_rank_reversal(judge)["top1_flip_pct"].mean())


def flip_rates_that_count_prompts(judge: str, dataset: str) -> int:
    """Count cells of v2's Table 7 that are a number of prompts, rounded half to even.

    Examples
    --------
    >>> flip_rates_that_count_prompts("", "")
    18
    """
    cells = _rank_reversal(judge)
    prompts = cells["dataset"].map({"SummEval": 400}).fillna(80)
    # Exact tenths: 100 k / N in binary would round 31.25 either way.
    tenths = (cells["top1_flip_pct"] * 10).round().astype(int)
    flipped = (cells["top1_flip_pct"] / 100 * prompts).round().astype(int)
    exact = [round(Fraction(1000 * k, int(n))) for k, n in zip(flipped, prompts, strict=True)]
    return int((tenths == exact).sum())


def rank_of_the_mean_cramers_v(judge: str, dataset: str) -> int:
    """Rank of a judge among v2's six by mean Cramér's V at five options; 1 is the lowest.

    Examples
    --------
    >>> rank_of_the_mean_cramers_v("GPT-OSS-120B", "")
    1
    """
    table = published("scales").query("n_options == 5").set_index("judge")["mean_cramers_v"]
    return int(table.rank(method="min")[judge])


def efforts_with_the_chi2_of_table_2(judge: str, dataset: str) -> int:
    """Count reasoning efforts of v2's appendix C whose χ² is, rounded, the one in Table 2.

    Examples
    --------
    >>> efforts_with_the_chi2_of_table_2("GPT-OSS-20B", "hanna")
    0
    """
    printed = _position_bias(judge, dataset)["chi2"].round().item()
    return int((_efforts(judge, dataset) == printed).sum())


def turns_of_chi2_over_efforts(judge: str, dataset: str) -> int:
    """Count changes of direction of χ² from low to medium to high effort (v2, appendix C).

    Examples
    --------
    >>> turns_of_chi2_over_efforts("GPT-OSS-20B", "hanna")
    1
    """
    steps = np.sign(np.diff(_efforts(judge, dataset)))
    return int((np.diff(steps) != 0).sum())


def cells_where_thinking_disperses_repeats(judge: str, dataset: str) -> int:
    """Count cells of v1's Table 3 in which a judge's repeats differ more with thinking.

    Examples
    --------
    >>> cells_where_thinking_disperses_repeats("", "")
    4
    """
    on, off = _thinking("repeat")
    return int((on > off).to_numpy().sum())


def cells_where_thinking_disperses_permutations(judge: str, dataset: str) -> int:
    """Count cells of v1's Table 3 in which reads under permutation differ more with thinking.

    Examples
    --------
    >>> cells_where_thinking_disperses_permutations("", "")
    2
    """
    on, off = _thinking("permutation")
    return int((on > off).to_numpy().sum())


def lowest_v_inside_and_highest_at_an_end(judge: str, dataset: str) -> int:
    """Count judges of v2's Table 4 whose lowest V is at 3 or 5 options and highest at 2 or 9.

    Examples
    --------
    >>> lowest_v_inside_and_highest_at_an_end("", "")
    5
    """
    table = _scales()
    inside, ends = table.idxmin(axis=1).isin([3, 5]), table.idxmax(axis=1).isin([2, 9])
    return int((inside & ends).sum())


def judges_not_monotone_in_scale(judge: str, dataset: str) -> int:
    """Count judges of v2's Table 4 whose V neither only rises nor only falls with n.

    Examples
    --------
    >>> judges_not_monotone_in_scale("", "")
    6
    """
    steps = np.diff(_scales().to_numpy(), axis=1)
    return int(((steps > 0).any(axis=1) & (steps < 0).any(axis=1)).sum())


def largest_v(judge: str, dataset: str) -> float:
    """Return a judge's largest V over the four scales of v2's Table 4.

    Examples
    --------
    >>> largest_v("GPT-OSS-120B", "")
    0.055
    """
    return float(_scales().loc[judge].max())


def scales_where_largest(judge: str, dataset: str) -> int:
    """Count the scales of v2's Table 4 at which a judge has the largest V of all.

    Examples
    --------
    >>> scales_where_largest("Gemma-3-27B", "")
    4
    """
    return int((_scales().idxmax() == judge).sum())


def ratio_of_scales_9_to_5(judge: str, dataset: str) -> float:
    """Divide V at 9 options by V at 5 options.

    With datasets, V at 5 options is recomputed for them from Table 2: V at 9 options is a mean over
    HANNA and SummEval, as printed V at 5 options is one over four datasets.

    Examples
    --------
    >>> round(ratio_of_scales_9_to_5("Gemma-3-27B", ""), 2)
    1.93
    >>> round(ratio_of_scales_9_to_5("Gemma-3-27B", "hanna+summeval"), 2)
    1.5
    """
    at_5 = mean_cramers_v(judge, dataset) if dataset else _scales().loc[judge, 5]
    return float(_scales().loc[judge, 9] / at_5)


def judges_more_biased_at_9(judge: str, dataset: str) -> int:
    """Count judges whose V is larger at 9 than at 5 options, on the same datasets.

    Examples
    --------
    >>> judges_more_biased_at_9("", "hanna+summeval")
    5
    """
    return sum(ratio_of_scales_9_to_5(name, dataset) > 1 for name in _scales().index)


def judges_more_biased_at_2(judge: str, dataset: str) -> int:
    """Count judges of v2's Table 4 whose V is larger at 2 than at 5 options.

    Examples
    --------
    >>> judges_more_biased_at_2("", "")
    5
    """
    return int((_scales()[2] > _scales()[5]).sum())


def cells_above_the_floor(judge: str, dataset: str) -> int:
    """Count cells of v2's Table 4 that exceed what no preference gives on average.

    Examples
    --------
    >>> cells_above_the_floor("", "")
    24
    """
    table = _scales()
    floors = []
    for n in table.columns:
        items = np.array([_ITEMS[name] for name in (_RATED if n == 9 else _ITEMS)])
        floors.append(float(cramers_v_floor(2 * n * items, n).mean()))
    return int((table > floors).to_numpy().sum())


def largest_ratio_within_a_family(judge: str, dataset: str) -> float:
    """Largest ratio of the V of two sizes of one model family, at 5 options.

    Examples
    --------
    >>> round(largest_ratio_within_a_family("", ""), 2)
    2.95
    """
    v = _scales()[5]
    family = v.groupby(v.index.str.rpartition("-").get_level_values(0))
    return float((family.max() / family.min()).max())


def cells_where_tables_5_and_6_agree(judge: str, dataset: str) -> int:
    """Count cells in which v2's Table 5 and Table 6 print the same r of balanced orders.

    Examples
    --------
    >>> cells_where_tables_5_and_6_agree("", "")
    12
    """
    both = published("criterion_order").merge(published("criterion_abl"), on=["judge", "dataset"])
    return int((both["avg_r"] == both["balanced_r"]).sum())


def criterion_tests(judge: str, dataset: str) -> int:
    """Count the Friedman tests behind v2's Table 5: one for each judge and criterion.

    Examples
    --------
    >>> criterion_tests("", ""), criterion_tests("", "hanna")
    (60, 36)
    """
    return int(_criterion_order(judge, dataset)["n_criteria"].sum())


def significant_criterion_tests(judge: str, dataset: str) -> int:
    """Count the significant ones among them, as printed.

    Examples
    --------
    >>> significant_criterion_tests("", ""), significant_criterion_tests("", "hanna")
    (56, 32)
    """
    return int(_criterion_order(judge, dataset)["n_significant"].sum())


def largest_criterion_gap(judge: str, dataset: str) -> float:
    """Return the largest max ΔPos of v2's Table 5.

    Examples
    --------
    >>> largest_criterion_gap("Qwen3.5-9B", "hanna")
    0.77
    """
    return float(_criterion_order(judge, dataset)["max_delta_pos"].max())


def criterion_differences_that_follow(judge: str, dataset: str) -> int:
    """Count cells of v2's Table 6 whose Δ is Bal − Fix within rounding (0.001).

    Examples
    --------
    >>> criterion_differences_that_follow("", "")
    12
    """
    table = _criterion_ablation(judge, dataset)
    miss = table["balanced_r"] - table["fixed_r"] - table["delta_balanced_fixed"]
    return int((miss.abs() < 0.001 + 1e-9).sum())


def significant_criterion_differences(judge: str, dataset: str) -> int:
    """Count cells of v2's Table 6 whose Δ is printed as significant.

    Examples
    --------
    >>> significant_criterion_differences("", "")
    3
    """
    return int(_criterion_ablation(judge, dataset)["significant"].sum())


def significant_criterion_differences_of_gemma(judge: str, dataset: str) -> int:
    """Count those of them that belong to a Gemma judge.

    Examples
    --------
    >>> significant_criterion_differences_of_gemma("", "")
    3
    """
    table = _criterion_ablation(judge, dataset)
    return int((table["significant"] & table["judge"].str.startswith("Gemma")).sum())


def largest_significant_criterion_difference(judge: str, dataset: str) -> float:
    """Return the largest Δ of v2's Table 6 that is printed as significant.

    Examples
    --------
    >>> largest_significant_criterion_difference("", "")
    0.043
    """
    table = _criterion_ablation(judge, dataset)
    return float(table.loc[table["significant"], "delta_balanced_fixed"].max())


def criterion_balanced_minus_random(judge: str, dataset: str) -> float:
    """Bal − Rnd of a cell of v2's Table 6.

    Examples
    --------
    >>> round(criterion_balanced_minus_random("Qwen3.5-9B", "summeval"), 3)
    0.016
    """
    table = _criterion_ablation(judge, dataset)
    return float((table["balanced_r"] - table["random_r"]).item())


def threshold_of_chi2(judge: str, dataset: str) -> float:
    """Return the 5 % point of χ² with four degrees of freedom.

    Examples
    --------
    >>> round(threshold_of_chi2("", ""), 2)
    9.49
    """
    return float(chi2.isf(0.05, 4))


def judges_with_a_significant_cell(judge: str, dataset: str) -> int:
    """Count judges of v2's Table 2 whose χ² passes the 5 % threshold on some dataset.

    Examples
    --------
    >>> judges_with_a_significant_cell("", "")
    6
    """
    cells = _position_bias(judge, dataset)
    return int(cells.loc[cells["chi2"] > _THRESHOLD, "judge"].nunique())


def cells_first_above_uniform(judge: str, dataset: str) -> int:
    """Count cells of v2's Table 2 in which the first position is chosen more often than 20 %.

    Examples
    --------
    >>> cells_first_above_uniform("GPT-OSS-20B", "")
    4
    """
    return int((_position_bias(judge, dataset)["pos1_pct"] > 20).sum())


def cells_last_above_uniform(judge: str, dataset: str) -> int:
    """Count cells of v2's Table 2 in which the last position is chosen more often than 20 %.

    Examples
    --------
    >>> cells_last_above_uniform("Gemma-3-27B", "")
    4
    """
    return int((_position_bias(judge, dataset)["pos5_pct"] > 20).sum())


def model_families(judge: str, dataset: str) -> int:
    """Count the model families of v2's judges.

    Examples
    --------
    >>> model_families("", "")
    3
    """
    return len(_sizes())


def sizes_of_a_family(judge: str, dataset: str) -> int:
    """Count the sizes in which the family with most of them is judged in v2.

    Examples
    --------
    >>> sizes_of_a_family("", "")
    2
    """
    return int(_sizes().max())


def calls_of_the_study(judge: str, dataset: str) -> int:
    """Count the judge calls of v2 as far as its text fixes them.

    Three strategies of ten reads at five options; the rotations at two, three and nine; three
    strategies over the criteria, one call a text; three more temperatures for the judges with a
    sweep and three efforts for the others, both taken to be HANNA and SummEval under all three
    strategies, which the text does not say.

    Examples
    --------
    >>> calls_of_the_study("", "")
    2164224
    """
    items = sum(_ITEMS.values())
    rated = sum(_ITEMS[name] for name in _RATED)
    options = 3 * _READS_PER_ITEM * items + (4 + 6) * items + 18 * rated
    texts = {6: _ITEMS["HANNA"] // 6, 4: _ITEMS["SummEval"] // 4}
    criteria = sum(3 * 2 * n * count for n, count in texts.items())
    sweep = 3 * 3 * _READS_PER_ITEM * rated
    return int(_sizes().sum()) * (options + criteria + sweep)


def scales_whose_rotations_are_ten_reads(judge: str, dataset: str) -> int:
    """Count v2's scales at which the balanced design, 2n rotations, is ten reads.

    Examples
    --------
    >>> scales_whose_rotations_are_ten_reads("", "")
    1
    """
    scales = published("scales")["n_options"].unique()
    return sum(len(balanced(int(n)).orderings()) == _READS_PER_ITEM for n in scales)


def ratio_of_v_without_a_preference(judge: str, dataset: str) -> float:
    """Divide V that no preference gives on the smallest dataset by that on the largest.

    Ten independent reads of each item at five options; see `cramers_v_floor`.

    Examples
    --------
    >>> round(ratio_of_v_without_a_preference("", ""), 2)
    2.24
    """
    reads = _READS_PER_ITEM * np.array([min(_ITEMS.values()), max(_ITEMS.values())])
    few, many = cramers_v_floor(reads, 5)
    return float(few / many)


def share_of_the_gain_without_balance(judge: str, dataset: str) -> float:
    """RANDOM − FIXED over BALANCED − FIXED in v2's Table 3, summed where BALANCED beats FIXED.

    Examples
    --------
    >>> round(share_of_the_gain_without_balance("", ""), 2)
    0.96
    """
    cells = published("strategy_ablation").pivot(
        index=["judge", "dataset"], columns="contrast", values="delta_r"
    )
    gain = cells.loc[sorted(_winners())].sum()
    return float(1 - gain["balanced-random"] / gain["balanced-fixed"])


def rank_correlation_of_the_two_axes(judge: str, dataset: str) -> float:
    """Spearman's ρ over judges of mean V (v2, Table 4, five options) and mean ΔPos (Table 5).

    Examples
    --------
    >>> round(rank_correlation_of_the_two_axes("", ""), 2)
    -0.14
    """
    options = _scales()[5]
    criteria = published("criterion_order").groupby("judge")["mean_delta_pos"].mean()
    return float(spearmanr(options, criteria[options.index]).statistic)


def cells_that_flip_without_a_gain(judge: str, dataset: str) -> int:
    """Count cells whose interval of BALANCED − FIXED holds 0 and whose winners flip all the same.

    v2's Tables 3 and 7 share SummEval; "flip" is at least the lowest rate of Table 7.

    Examples
    --------
    >>> cells_that_flip_without_a_gain("", "")
    3
    """
    cells = _contrasts("balanced-fixed").merge(_rank_reversal(""), on=["judge", "dataset"])
    same = (cells["ci_low"] <= 0) & (cells["ci_high"] >= 0)
    return int((same & (cells["top1_flip_pct"] >= lowest_flip_rate("", ""))).sum())


def p_of_bias_and_flips(judge: str, dataset: str) -> float:
    """P value of Spearman's correlation of V (v2, Table 2) with flipped winners (Table 7).

    Examples
    --------
    >>> round(p_of_bias_and_flips("", ""), 2)
    0.15
    """
    cells = _rank_reversal("").merge(_position_bias("", ""), on=["judge", "dataset"])
    v = np.sqrt(cells["chi2"] / cells["dataset"].map(_ITEMS))  # up to a factor
    return float(spearmanr(v, cells["top1_flip_pct"]).pvalue)


def largest_fall_of_chi2_over_efforts(judge: str, dataset: str) -> float:
    """Largest fall of χ² between two reasoning efforts of v2's appendix C, in %.

    Examples
    --------
    >>> round(largest_fall_of_chi2_over_efforts("GPT-OSS-20B", "hanna"))
    77
    """
    stated = _efforts(judge, dataset)
    return float(100 * (1 - stated.min() / stated.max()))


def judges_with_all_gains_positive(judge: str, dataset: str) -> int:
    """Count judges of the family named all of whose four Δ in v1's Table 2 are positive.

    Examples
    --------
    >>> judges_with_all_gains_positive("GPT", "")
    2
    """
    table = published("permutation_vs_repeat")
    table = table[table["judge"].str.startswith(judge)]
    return int((table.groupby("judge")["delta"].min() > 0).sum())


def rank_of_the_gain_in_rho(judge: str, dataset: str) -> int:
    """Rank of a judge's Δ of Spearman's ρ among the judges of v1's Table 2; 1 is the largest.

    Examples
    --------
    >>> rank_of_the_gain_in_rho("Qwen3-32B-Think", "hanna")
    2
    """
    gains = _gains("spearman_rho", dataset).set_index("judge")["delta"]
    return int(gains.rank(ascending=False)[judge])


def rank_correlation_of_v1s_bias_and_gain(judge: str, dataset: str) -> float:
    """Spearman's ρ over judges of v1's position bias and its mean gain.

    The bias is the mean distance from 20 % in Table 5, the gain the mean Δ in Table 2.

    Examples
    --------
    >>> round(rank_correlation_of_v1s_bias_and_gain("", ""), 2)
    -0.32
    """
    bias = _distance_from_uniform()
    gain = published("permutation_vs_repeat").groupby("judge")["delta"].mean()
    return float(spearmanr(bias, gain[bias.index]).statistic)


def rank_of_v1s_position_bias(judge: str, dataset: str) -> int:
    """Rank of a judge by the mean distance from 20 % in v1's Table 5; 1 is the smallest.

    Examples
    --------
    >>> rank_of_v1s_position_bias("OSS-120B", "")
    1
    """
    return int(_distance_from_uniform().rank()[judge])


def pairs_where_the_smaller_is_more_biased(judge: str, dataset: str) -> int:
    """Count the pairs of a small and a large model of v1 whose small one is farther from 20 %.

    Examples
    --------
    >>> pairs_where_the_smaller_is_more_biased("", "")
    3
    """
    bias = _distance_from_uniform()
    pairs = (
        ("GPT-4.1-mini", "GPT-4.1"),
        ("Qwen3-8B", "Qwen3-32B"),
        ("Qwen3-8B-Think", "Qwen3-32B-Think"),
    )
    return sum(bool(bias[small] > bias[large]) for small, large in pairs)


def columns_where_the_least_biased_is_below_gpt(judge: str, dataset: str) -> int:
    """Count comparisons of v1's Table 2 in which a judge's r or ρ is below a GPT-4.1's.

    Two datasets, two statistics, GPT-4.1 and GPT-4.1-mini: eight comparisons, all under
    permutation.

    Examples
    --------
    >>> columns_where_the_least_biased_is_below_gpt("OSS-120B", "")
    8
    """
    table = published("permutation_vs_repeat")
    columns = table.pivot(index=["dataset", "statistic"], columns="judge", values="permutation")
    return int(columns[["GPT-4.1", "GPT-4.1-mini"]].gt(columns[judge], axis=0).to_numpy().sum())


def cells_where_permutation_disperses(judge: str, dataset: str) -> int:
    """Count cells of v1's Table 3 in which reads differ more under permutation than in repeats.

    Examples
    --------
    >>> cells_where_permutation_disperses("", "")
    14
    """
    table = published("within_item_sd")
    return int((table["permutation"] > table["repeat"]).sum())


def rows_that_prefer_an_end(judge: str, dataset: str) -> int:
    """Count rows of v1's Table 5 in which the first or the last position is chosen most often.

    Examples
    --------
    >>> rows_that_prefer_an_end("", "")
    24
    """
    return int(_score_position(judge).idxmax(axis=1).isin([1, 5]).sum())


def judges_that_choose_the_first_above_uniform(judge: str, dataset: str) -> int:
    """Count judges of v1's Table 5 whose mean share of the first position is above 20 %.

    Examples
    --------
    >>> judges_that_choose_the_first_above_uniform("", "")
    7
    """
    return int((_score_position("").groupby("judge")[1].mean() > 20).sum())


def judges_that_choose_the_last_above_uniform(judge: str, dataset: str) -> int:
    """Count judges of v1's Table 5 whose mean share of the last position is above 20 %.

    Examples
    --------
    >>> judges_that_choose_the_last_above_uniform("", "")
    5
    """
    return int((_score_position("").groupby("judge")[5].mean() > 20).sum())


def _sizes() -> pd.Series:
    """Return how many sizes of each model family v2 judges with."""
    judges = pd.Series(published("scales")["judge"].unique())
    return judges.groupby(judges.str.rpartition("-")[0]).size()


def _efforts(judge: str, dataset: str) -> pd.Series:
    """Return the χ² that v2's appendix C states: low, medium, high."""
    rows = _claims("11").query("judge == @judge and dataset == @dataset").set_index("claim_id")
    names = [f"v2/appendix-c/effort/chi2/{effort}" for effort in ("low", "medium", "high")]
    return rows.loc[names, "published"]


def _distance_from_uniform() -> pd.Series:
    """Return the mean distance from 20 % in v1's Table 5, by judge."""
    return (_score_position("") - 20).abs().mean(axis=1).groupby("judge").mean()


def _position_bias(judge: str, dataset: str) -> pd.DataFrame:
    """Return v2's Table 2, for one judge or all, and for datasets joined by "+" or all."""
    table = published("position_bias")
    if judge:
        table = table[table["judge"] == judge]
    if dataset:
        table = table[_slugs(table["dataset"]).isin(dataset.split("+"))]
    return table


def _contrasts(contrast: str) -> pd.DataFrame:
    """Return one contrast of v2's Table 3 with standard errors and q over both contrasts."""
    table = published("strategy_ablation")
    table["standard_error"] = (table["ci_high"] - table["ci_low"]) / (2 * norm.isf(0.025))
    p = 2 * norm.sf((table["delta_r"] / table["standard_error"]).abs())
    table["q"] = false_discovery_control(p)
    return table[table["contrast"] == contrast].reset_index(drop=True)


def _winners() -> set[tuple[str, str]]:
    """Return judge and dataset of the cells in which BALANCED beats FIXED."""
    cells = _contrasts("balanced-fixed").query("ci_low > 0")
    return set(zip(cells["judge"], cells["dataset"], strict=True))


def _gains(statistic: str, dataset: str) -> pd.DataFrame:
    """Return v1's Table 2 for one statistic, for one dataset or both."""
    table = published("permutation_vs_repeat").query("statistic == @statistic")
    return table[_slugs(table["dataset"]) == dataset] if dataset else table


def _bias_beside_gain() -> pd.DataFrame:
    """Return V from v2's Table 2 beside BALANCED − FIXED from its Table 3, by judge and dataset."""
    cells = _contrasts("balanced-fixed").merge(published("position_bias"), on=["judge", "dataset"])
    reads = cells["dataset"].map(_ITEMS) * _READS_PER_ITEM
    return cells.assign(cramers_v=np.sqrt(cells["chi2"] / (reads * 4)))


def _effective_repeats() -> pd.DataFrame:
    """Return v1's Table 3 with the effective reads of Repeat (see `strategy_contrast`)."""
    table = published("within_item_sd")
    single, within = table["permutation"] ** 2, table["repeat"] ** 2
    mean = single - within + within / _READS_PER_ITEM
    return table.assign(k_effective=single / mean)


def _gain_parts() -> pd.DataFrame:
    """Return v1's gains in r (Table 2) beside single reads (Table 4), by judge and dataset."""
    cells = _gains("pearson_r", "").merge(published("default_order"), on=["judge", "dataset"])
    return cells.assign(single_read=cells["mean_r_10"] - cells["r_12345"])


def _share_of_gain(k: int) -> pd.Series:
    cells = _gain_parts()
    squared = (cells["permutation"] / cells["mean_r_10"]) ** 2  # (1 + φ) / (1 + φ/10)
    phi = (squared - 1) / (1 - squared / 10)
    one, some, ten = (1 / np.sqrt(1 + phi / reads) for reads in (1, k, 10))
    return (some - one) / (ten - one)


def _score_position(judge: str) -> pd.DataFrame:
    """Return v1's Table 5 as a matrix: (judge, score) by position."""
    table = published("score_position")
    if judge:
        table = table[table["judge"] == judge]
    return table.pivot(index=["judge", "score"], columns="position", values="selected_pct")


def _rank_reversal(judge: str) -> pd.DataFrame:
    table = published("rank_reversal")
    return table[table["judge"] == judge] if judge else table


def _thinking(column: str) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return a column of v1's Table 3 for judges that think, and for the same without."""
    table = published("within_item_sd").set_index(["judge", "dataset"])[column].unstack()
    on = table[table.index.str.endswith("-Think")]
    return on, table.loc[on.index.str.removesuffix("-Think")].set_axis(on.index)


def _costs(judge: str) -> dict[tuple[int, ...], float]:
    shares = _score_position(judge).droplevel("judge")
    return {
        tuple(int(s) for s in order): float(
            sum(abs(shares.loc[s, p] - 20) for p, s in enumerate(order, 1))
        )
        for order in balanced(5).orderings()
    }


def _scales() -> pd.DataFrame:
    """Return v2's Table 4 as a matrix: judge by number of options."""
    table = published("scales")
    return table.pivot(index="judge", columns="n_options", values="mean_cramers_v")


def _criterion_order(judge: str, dataset: str) -> pd.DataFrame:
    """Return v2's Table 5, for one judge or all and one dataset or both."""
    return _cells(published("criterion_order"), judge, dataset)


def _criterion_ablation(judge: str, dataset: str) -> pd.DataFrame:
    """Return v2's Table 6, for one judge or all and one dataset or both."""
    return _cells(published("criterion_ablation"), judge, dataset)


def _cells(table: pd.DataFrame, judge: str, dataset: str) -> pd.DataFrame:
    if judge:
        table = table[table["judge"] == judge]
    if dataset:
        table = table[_slugs(table["dataset"]).isin(dataset.split("+"))]
    return table


def _slugs(names: pd.Series) -> pd.Series:
    """Turn printed names into the names that `rubricnb.data.load` knows."""
    return names.str.lower().str.removesuffix("-bench").replace({"mt": "mt-bench"})
