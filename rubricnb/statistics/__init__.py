"""Statistics of judgments. ``rubricnb/__init__.py`` lists the names
that ``rubricnb`` has too.

Every statistic returns a frame whose columns are named by one rule
(`intervals.Estimate`). Beside an estimate ``r`` stand the ends of its 95 % interval,
``r_low, r_high``; its p against 0, ``r_p``, where that is a question; and what both
were computed from, ``r_se, r_df``: the standard error and the degrees of freedom of its
t. The estimate that a table is about has them as ``low, high, p, se, df``. The standard
error of a correlation is on Fisher's z scale, as its interval is: ``tanh(artanh(r) ± t
· se)``. Intervals of shares near 0 and 1 are Wilson's, and those of V and of τ have no
standard error. ``reason`` says in words what is unknown or doubtful, ``codes`` to a
program (`reasons`).
"""

import rubricnb
from rubricnb.statistics.advice import advise as advise
from rubricnb.statistics.agreement import agreement as agreement
from rubricnb.statistics.agreement import strategy_contrast as strategy_contrast
from rubricnb.statistics.budget import budget_curve as budget_curve
from rubricnb.statistics.budget import will_permuting_help as will_permuting_help
from rubricnb.statistics.cost import bias_cost as bias_cost
from rubricnb.statistics.criterion import counting_along as counting_along
from rubricnb.statistics.criterion import criterion_order as criterion_order
from rubricnb.statistics.error_budget import design_for as design_for
from rubricnb.statistics.error_budget import error_budget as error_budget
from rubricnb.statistics.intervals import noncentrality as noncentrality
from rubricnb.statistics.kappa import (
    quadratic_weighted_kappa as quadratic_weighted_kappa,
)
from rubricnb.statistics.labels import labels_needed as labels_needed
from rubricnb.statistics.labels import mean_with_labels as mean_with_labels
from rubricnb.statistics.labels import systems_with_labels as systems_with_labels
from rubricnb.statistics.position import at_reads as at_reads
from rubricnb.statistics.position import position_bias as position_bias
from rubricnb.statistics.position import score_position as score_position
from rubricnb.statistics.probabilities import at_temperature as at_temperature
from rubricnb.statistics.probabilities import (
    option_probabilities as option_probabilities,
)
from rubricnb.statistics.probabilities import position_prior as position_prior
from rubricnb.statistics.probabilities import remove_prior as remove_prior
from rubricnb.statistics.ranking import prompt_measures as prompt_measures
from rubricnb.statistics.ranking import rank_reversal as rank_reversal
from rubricnb.statistics.ranking import reversal_effect as reversal_effect
from rubricnb.statistics.raters import alternative_annotator as alternative_annotator
from rubricnb.statistics.raters import judge_bias as judge_bias
from rubricnb.statistics.raters import system_agreement as system_agreement
from rubricnb.statistics.raters import system_shift as system_shift
from rubricnb.statistics.stability import BASELINE as BASELINE
from rubricnb.statistics.stability import stability as stability
from rubricnb.statistics.tendency import gold as gold
from rubricnb.statistics.tendency import reference_pull as reference_pull
from rubricnb.statistics.tendency import score_tendency as score_tendency
from rubricnb.statistics.tendency import tendency_shift as tendency_shift
from rubricnb.statistics.variation import order_effect as order_effect
from rubricnb.statistics.variation import variance_components as variance_components
from rubricnb.statistics.variation import within_item_sd as within_item_sd
from rubricnb.statistics.weighting import overall as overall

__all__ = [
    *rubricnb.PUBLIC["statistics"],
    "BASELINE",
    "alternative_annotator",
    "at_reads",
    "at_temperature",
    "counting_along",
    "gold",
    "judge_bias",
    "noncentrality",
    "overall",
    "prompt_measures",
    "reference_pull",
    "reversal_effect",
    "system_agreement",
    "system_shift",
    "systems_with_labels",
    "tendency_shift",
]
