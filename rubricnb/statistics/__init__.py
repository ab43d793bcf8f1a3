"""What the answers say."""

from rubricnb.statistics._inference import MARGINS, benjamini_hochberg, equivalence
from rubricnb.statistics.agreement import agreement
from rubricnb.statistics.budget import budget_curve, will_permuting_help
from rubricnb.statistics.contrast import strategy_contrast
from rubricnb.statistics.cost import bias_cost, choose_ordering
from rubricnb.statistics.criterion import counting_along, criterion_order, predecessor_effects
from rubricnb.statistics.kappa import quadratic_weighted_kappa
from rubricnb.statistics.labels import labels_needed, mean_with_labels, systems_with_labels
from rubricnb.statistics.position import (
    at_reads,
    cramers_v,
    cramers_v_floor,
    missing_reads,
    position_bias,
    score_position,
)
from rubricnb.statistics.probabilities import (
    at_temperature,
    geometric_mean,
    option_probabilities,
    position_prior,
    remove_prior,
)
from rubricnb.statistics.ranking import rank_reversal, reversal_controls, reversal_effect
from rubricnb.statistics.raters import alternative_annotator, judge_bias, system_agreement
from rubricnb.statistics.stability import BASELINE, flip_contrast, stability
from rubricnb.statistics.tendency import gold, reference_pull, score_tendency, tendency_shift
from rubricnb.statistics.variation import (
    order_effect,
    ordering_rank,
    variance_components,
    within_item_sd,
)

__all__ = [
    "BASELINE",
    "MARGINS",
    "agreement",
    "alternative_annotator",
    "at_reads",
    "at_temperature",
    "benjamini_hochberg",
    "bias_cost",
    "budget_curve",
    "choose_ordering",
    "counting_along",
    "cramers_v",
    "cramers_v_floor",
    "criterion_order",
    "equivalence",
    "flip_contrast",
    "geometric_mean",
    "gold",
    "judge_bias",
    "labels_needed",
    "mean_with_labels",
    "missing_reads",
    "option_probabilities",
    "order_effect",
    "ordering_rank",
    "position_bias",
    "position_prior",
    "predecessor_effects",
    "quadratic_weighted_kappa",
    "rank_reversal",
    "reference_pull",
    "remove_prior",
    "reversal_controls",
    "reversal_effect",
    "score_position",
    "score_tendency",
    "stability",
    "strategy_contrast",
    "system_agreement",
    "systems_with_labels",
    "tendency_shift",
    "variance_components",
    "will_permuting_help",
    "within_item_sd",
]
