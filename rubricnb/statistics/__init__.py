"""What the answers say."""

from rubricnb.statistics.agreement import agreement
from rubricnb.statistics.budget import budget_curve
from rubricnb.statistics.contrast import strategy_contrast
from rubricnb.statistics.cost import bias_cost, choose_ordering
from rubricnb.statistics.criterion import counting_along, criterion_order
from rubricnb.statistics.equivalence import MARGINS, equivalence
from rubricnb.statistics.families import benjamini_hochberg
from rubricnb.statistics.floor import cramers_v_floor
from rubricnb.statistics.kappa import quadratic_weighted_kappa
from rubricnb.statistics.missing import missing_reads
from rubricnb.statistics.options import at_temperature, option_probabilities
from rubricnb.statistics.position import at_reads, cramers_v, position_bias, score_position
from rubricnb.statistics.predecessor import predecessor_effects
from rubricnb.statistics.ranking import rank_reversal, reversal_controls, reversal_effect
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
    "gold",
    "missing_reads",
    "option_probabilities",
    "order_effect",
    "ordering_rank",
    "position_bias",
    "predecessor_effects",
    "quadratic_weighted_kappa",
    "rank_reversal",
    "reference_pull",
    "reversal_controls",
    "reversal_effect",
    "score_position",
    "score_tendency",
    "stability",
    "strategy_contrast",
    "tendency_shift",
    "variance_components",
    "within_item_sd",
]
