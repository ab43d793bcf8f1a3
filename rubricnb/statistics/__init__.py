"""Statistics of judgments.

``rubricnb/__init__.py`` lists the names that ``rubricnb`` has too.

Every statistic returns a frame whose columns are named by one rule
(`rubricnb.core.estimates.intervals.Estimate`). Beside an estimate ``r`` stand the ends
of its 95 % interval, ``r_low, r_high``; its p against 0, ``r_p``, where that is a
question; and what both were computed from, ``r_se, r_df``: the standard error and the
degrees of freedom of its t. The estimate that a table is about has them as ``low, high,
p, se, df``. The standard error of a correlation is on Fisher's z scale, as its interval
is: ``tanh(artanh(r) ± t · se)``. Intervals of shares near 0 and 1 are Wilson's, and
those of V and of τ have no standard error. ``reason`` says in words what is unknown or
doubtful, ``codes`` to a program (`rubricnb.core.estimates.reasons`).

* Positions of scores: `position` (shares, V² and their intervals), `preference`,
  `placement`, `probabilities`, `cost`;
* agreement with people: `human_agreement`, `kappa`, `ranks`, `budget`, `ranking`;
* how scores move: `variation`, `variance`, `scoring_bias`, `tendency`, `criterion`,
  `company`; over criteria: `weighting`.
"""

from typing import Any

from rubricnb.core.support import lazy

_HOMES = {
    "rubricnb.core.estimates.intervals": "noncentrality",
    "rubricnb.core.estimates.reasons": "",
    "rubricnb.statistics.budget": "budget_curve will_permuting_help",
    "rubricnb.statistics.company": "repeats",
    "rubricnb.statistics.cost": "bias_cost",
    "rubricnb.statistics.criterion": "counting_along criterion_order",
    "rubricnb.statistics.human_agreement": "agreement strategy_contrast",
    "rubricnb.statistics.kappa": "quadratic_weighted_kappa",
    "rubricnb.statistics.position": "at_reads position_bias score_position",
    "rubricnb.statistics.probabilities": """at_temperature
        option_probabilities position_prior remove_prior""",
    "rubricnb.statistics.ranking": "prompt_measures rank_reversal reversal_effect",
    "rubricnb.statistics.scoring_bias": "BASELINE stability",
    "rubricnb.statistics.tendency": "gold reference_pull score_tendency tendency_shift",
    "rubricnb.statistics.variation": "order_effect variance_components within_item_sd",
    "rubricnb.statistics.weighting": "overall",
    "rubricnb.corrections.advice": "advise",
    "rubricnb.corrections.error_budget": "design_for error_budget",
    "rubricnb.corrections.labels": "labels_needed mean_with_labels systems_with_labels",
    "rubricnb.corrections.raters": (
        "alternative_annotator judge_bias system_agreement system_shift"
    ),
}

__all__ = lazy.offered(_HOMES)


def __getattr__(name: str) -> Any:
    return lazy.load(__name__, _HOMES, name)
