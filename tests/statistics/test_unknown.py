"""What people's ratings cannot tell is NaN with the reason; what makes no sense is refused."""

import numpy as np
import pandas as pd
import pytest
from people import alike, all_designs, both, competing, judged, people, rated, systems, two
from planted import make_judgments, make_rated

import rubricnb as rb
from rubricnb.permutation import balanced, placebo
from rubricnb.statistics import (
    alternative_annotator,
    judge_bias,
    reversal_effect,
    system_agreement,
    systems_with_labels,
)
from rubricnb.statistics._inference import equivalence


def unread(judgments):
    return judgments.assign(score=pd.array([pd.NA] * len(judgments), dtype="Int8"))


def only_fixed(column, value):
    judgments, items = two()
    judgments.loc[judgments["design"] == "fixed", column] = value
    return judgments, items


def constant_criterion():
    judgments, items = rated(criteria=["a", "b"])
    return judgments.assign(score=judgments["score"].mask(judgments["criterion"] == "b", 2)), items


def one_carries_all():
    judgments, items = alike(6, [3, 3, 3, 3], [1, 3, 2, 5])
    judgments.loc[:1, "score"] = [1, 5]
    return judgments, items


def one_breaks_a_perfect_correlation():
    judgments, items = alike(6, [1, 2, 3, 4], [1, 2, 3, 4])
    items.loc[0, "human"] = 5
    return judgments, items


def few(score, cluster=None, n=None, human=None, candidate=None):
    """Judgments and the ratings of the first n of them, by default equal to the scores."""
    judgments = judged(score, cluster, candidate)
    return judgments, people(judgments, list(score if human is None else human))[:n]


def raters(n, cluster=None):
    return few([3] * n, cluster, human=[(3.0, 3.0, 3.0)] * n)


def one_candidate_left(judgments):
    gone = (judgments["design"] == "fixed") & judgments["candidate"].isin(list("bcd"))
    return judgments.assign(score=judgments["score"].mask(gone))


def copied():
    judgments, items = rated()
    return pd.concat([judgments, judgments.assign(design="fixed")]), items


RATED, ITEMS = rated()
TWO = two()
OTHER = pd.DataFrame({"item_id": ["x"], "human": [1.0]})
SYSTEMS, HUMAN, SYSTEM = systems(13)
LABELS = people(SYSTEMS, HUMAN)
NONE = LABELS.assign(human=np.nan)
FOUR = people(*systems(14, s=4)[:2])
CORRELATIONS = ["r", "r_low", "p", "rho", "rho_low", "r_macro", "r_paper_low"]
DIFFERENCES = ["delta_r", "low", "p", "delta_rho", "paper_low"]
FLIPS = ["flip_first", "flip_strict_low", "kendall_tau", "discordant"]
JUDGMENTS = make_judgments(20)
PLACES = rb.score_position(JUDGMENTS)
NO_TEST = ["low", "p", "mde", "p_equivalent"]


def plan(judgments, labels):
    return rb.labels_needed(judgments, labels, 0.2)


def fixed_control(judgments):
    return reversal_effect(judgments).query("control == 'fixed'")


UNKNOWN = [
    (rb.agreement, (RATED.assign(score=3), ITEMS), CORRELATIONS, "^all scores are equal"),
    (rb.agreement, (RATED, ITEMS.assign(human=3.0)), CORRELATIONS, "^all human ratings are equal"),
    (rb.agreement, constant_criterion(), ["r_macro"], "r_macro: in some criterion"),
    (rb.agreement, rated(1, 8), ["r_low", "rho_low"], "^one cluster: intervals need two"),
    (rb.agreement, rated(1, 1), CORRELATIONS, "^one item"),
    (rb.agreement, (unread(RATED), ITEMS), CORRELATIONS, "^no item has both"),
    (rb.agreement, make_rated(20, 1, noise=0.0), ["r_low"], r"^\|r\| = 1 has no interval"),
    (rb.agreement, alike(6, [1, 2, 3, 4], [1, 3, 2, 5]), ["r_low"], "the clusters are alike"),
    (rb.agreement, one_carries_all(), ["r_low"], "without 1 of 6 clusters"),
    (rb.agreement, one_breaks_a_perfect_correlation(), ["r_low"], r"one of the clusters \|r\| = 1"),
    (rb.strategy_contrast, only_fixed("score", 3), DIFFERENCES, "all equal"),
    (rb.strategy_contrast, (TWO[0], TWO[1].assign(human=2.0)), DIFFERENCES, "all equal"),
    (rb.strategy_contrast, two(1, 12), ["low", "mde"], "^one cluster"),
    (rb.strategy_contrast, two(1, 1), DIFFERENCES, "r is undefined"),
    (rb.strategy_contrast, (unread(TWO[0]), ITEMS), [], "^no item has a score on both sides"),
    (rb.strategy_contrast, copied(), NO_TEST, "both sides give the same scores"),
    (alternative_annotator, raters(20), ["winning_rate", "advantage"], "no annotator has 30"),
    (alternative_annotator, raters(40), ["advantage_low"], "alike: advantage"),
    (judge_bias, few([2, 3, 4], human=[1, 2, 3]), NO_TEST[:2], "all differences are equal"),
    (judge_bias, few([2, 3, 4], human=[3] * 3), ["slope"], "no slope"),
    (judge_bias, few([np.nan] * 3, human=[3] * 3), ["bias", "slope"], "^no item has both"),
    (system_agreement, few([1, 2, 3, 4], candidate=list("xyxy")), ["tau"], "^2 systems: a rank"),
    (system_agreement, few([2] * 3, human=[1, 2, 3], candidate=list("xyz")), ["tau"], "one m"),
    (system_agreement, few([1, 2, 3], [0] * 3, candidate=list("xyz")), ["tau_low"], "^one clus"),
    (rb.rank_reversal, (one_candidate_left(both()),), FLIPS, "no prompt has two candidates"),
    (rb.rank_reversal, (both().assign(group_id=None),), FLIPS, "no prompt has two candidates"),
    (rb.rank_reversal, (both().assign(score=3),), ["kendall_tau"], "in every prompt a side ties"),
    (rb.rank_reversal, (both(n_prompts=1),), ["flip_first_low"], "^one cluster"),
    (fixed_control, (all_designs().query("design != 'fixed'"),), ["effect", "p"],
     "^no two halves of fixed reads$"),
    *((f, few(range(1, 7), n=n), [name], f"^{n} labels: four are needed")
      for n in (1, 3) for f, name in ((rb.mean_with_labels, "mean"), (plan, "needed"))),
    (rb.mean_with_labels, (SYSTEMS, NONE), ["mean", "labels_only"], "^no judged item has a label"),
    (plan, (SYSTEMS, NONE), ["needed"], "^0 labels"),
    (rb.mean_with_labels, few([1, 2, 3, 4, 5] * 2, n=5, human=[3.0] * 10), ["low", "gain"],
     "all labels are equal"),
    (rb.mean_with_labels, (SYSTEMS, LABELS[:12]), ["low"], "1 labelled clusters: an"),
    (plan, (SYSTEMS, LABELS[:12]), ["needed"], "fewer than three clusters"),
    (rb.bias_cost, (PLACES[["score", "position", "share"]],), ["cost_null"], "nothing of its"),
    (rb.bias_cost, (rb.score_position(JUDGMENTS.query("score != 4")),), ["cost"], "never given"),
    (systems_with_labels, (SYSTEMS, NONE), ["estimate"], "^s00 has 0 labels"),
    (systems_with_labels, (SYSTEMS, LABELS[1:24]), ["estimate"], "^s00 has 1 labels: every"),
    (systems_with_labels, (systems(14, s=4)[0], FOUR), ["estimate"], "^4 systems: .* needs 5"),
    (systems_with_labels, (SYSTEMS, people(SYSTEMS, SYSTEM * 1.0)[:60]), ["low"],
     "never differ from the line"),
]  # fmt: skip


@pytest.mark.parametrize(("statistic", "given", "unknown", "why"), UNKNOWN)
def test_what_is_not_known_is_nan_with_its_reason(statistic, given, unknown, why):
    table = statistic(*given)
    assert len(table)
    assert table[unknown].isna().all(axis=None)
    assert table["reason"].str.contains(why).all(), table["reason"].tolist()


REFUSED = [
    (rb.agreement, (RATED, ITEMS.assign(item_id="x")), "none of the 60 judged items"),
    (rb.agreement, (RATED, ITEMS.drop(columns="human")), "'human'"),
    *((f, (SYSTEMS, OTHER), "among the items")
      for f in (rb.mean_with_labels, plan, systems_with_labels)),
    (rb.labels_needed, (*few([1, 2, 3, 4]), 0), "positive number"),
    *((alternative_annotator, (*raters(1), epsilon), "share of items")
      for epsilon in (-0.1, 1, 2.5)),
    (rb.strategy_contrast, (*TWO, "balanced", "random"),
     "'balanced' and 'random'.*design: balanced, fixed"),
    (rb.strategy_contrast, (*TWO, "balanced", "fixed/reverse"), "/reverse"),
    (rb.rank_reversal, (both().drop(columns="group_id"),), "'group_id'"),
    (reversal_effect, (both(),), "design 'placebo'"),
    (reversal_effect, (pd.concat([competing(balanced(5)), competing(placebo(5, 1))]),),
     "no halves"),
    *((rb.bias_cost, (PLACES, o), r"permutations of 1\.\.5")
      for o in ([[1, 2, 3]], [[1, 1, 2, 3, 4]], [[0, 1, 2, 3, 4]])),
    (rb.bias_cost, (PLACES.query("score != 2"),),
     "needs each of n scores at each position 1…n"),
    *((equivalence, (0.0, 0.1, 10, margin), "above 0") for margin in (0, -1, float("nan"))),
]  # fmt: skip


@pytest.mark.parametrize(("statistic", "given", "message"), REFUSED)
def test_what_makes_no_sense_is_refused_with_the_way_out(statistic, given, message):
    with pytest.raises(ValueError, match=message):
        statistic(*given)


def test_a_group_without_one_side_is_named():
    judgments, items = two()
    other = judgments[judgments["design"] == "balanced"].assign(judge="other")
    result = rb.strategy_contrast(pd.concat([judgments, other]), items)
    doubt = "15 effective clusters: intervals may be too narrow"
    assert result["reason"].tolist() == [doubt, "no judgments of 'fixed'"]
    assert np.isnan(result["delta_r"].iloc[1])
