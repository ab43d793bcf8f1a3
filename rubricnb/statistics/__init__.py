"""What the answers say."""

from rubricnb.statistics.agreement import agreement
from rubricnb.statistics.options import option_probabilities
from rubricnb.statistics.position import cramers_v, position_bias, score_position

__all__ = ["agreement", "cramers_v", "option_probabilities", "position_bias", "score_position"]
