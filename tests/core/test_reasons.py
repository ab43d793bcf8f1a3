"""What cannot be told is NaN with the reason;
what makes no sense is refused with the way out.
"""

import numpy as np
import pandas as pd
import pytest
from people import (
    alike,
    all_designs,
    both,
    competing,
    judged,
    people,
    rated,
    systems,
    two,
)
from planted import make_criterion_judgments, make_judgments, make_rated, plain

import rubricnb as rb
from rubricnb.core.estimates.intervals import equivalence
from rubricnb.core.permutation import balanced, decode, fixed, placebo, shuffled, single
from rubricnb.corrections.labels import systems_with_labels
from rubricnb.corrections.raters import (
    alternative_annotator,
    judge_bias,
    system_agreement,
)
from rubricnb.statistics.criterion import counting_along
from rubricnb.statistics.probabilities import at_temperature
from rubricnb.statistics.ranking import reversal_effect
from rubricnb.statistics.tendency import gold, tendency_shift

SIZES = [
    "share_1",
    "share_1_low",
    "share_5_most",
    "v2_unbiased",
    "v2_unbiased_high",
    "mde",
    "log_preference_1",
    "log_preference_5_low",
    "p_equivalent",
]
MINIBENCH = rb.load("minibench", n_items=30)
RATED, ITEMS = rated()
TWO = two()
SYSTEMS, HUMAN, SYSTEM = systems(13)
LABELS = people(SYSTEMS, HUMAN)
NONE = LABELS.assign(human=np.nan)
FOUR = people(*systems(14, s=4)[:2])
JUDGMENTS = make_judgments(20)
PLACES = rb.score_position(JUDGMENTS)


def first_place():
    """A judge that gives whatever score stands first."""
    return JUDGMENTS.assign(score=[decode(o)[0] for o in JUDGMENTS["ordering"]])


def several_pairs():
    """Rotations k and n + k, others for every item: hand-made,
    one of each direction an item.
    """
    judgments = make_judgments(40, reverse_shift=1.5, concentration=5)
    number = judgments["item_id"].cat.codes % 5
    pair = judgments[(judgments["ordering_index"] - 1) % 5 == number]
    return pair.assign(ordering_index=np.tile([1, 2], len(pair) // 2))


def forms(n_clusters=8, **columns):
    """Prompts of two candidates in three forms, all read twice."""
    shape = n_clusters, 2, 3, 2
    prompt, candidate, form, read = (a.ravel().astype(str) for a in np.indices(shape))
    frame = pd.DataFrame(
        {
            "item_id": np.char.add(prompt, candidate),
            "cluster_id": prompt,
            "candidate": candidate,
            "template": form,
            "replicate": read,
            "score": np.random.default_rng(0).normal(size=len(prompt)),
        }
    )
    return frame.assign(**columns)


def asked(*designs, **how):
    requests = rb.plan(
        MINIBENCH, list(designs), readout="score", reference="none", **how
    )
    return rb.simulate(requests, MINIBENCH, "unbiased")


def perturbed():
    return asked(fixed(5), rb.Design("descending", 5), placebo(5, 3))


def one_carries_all():
    judgments, items = alike(6, [3, 3, 3, 3], [1, 3, 2, 5])
    judgments.loc[:1, "score"] = [1, 5]
    return judgments, items


def constant_criterion():
    judgments, items = rated(criteria=["a", "b"])
    return judgments.assign(
        score=judgments["score"].mask(judgments["criterion"] == "b", 2)
    ), items


def few(score, cluster=None, n=None, human=None, candidate=None):
    """Judgments and the ratings of the first n of them,
    by default equal to the scores.
    """
    judgments = judged(score, cluster, candidate)
    return judgments, people(judgments, list(score if human is None else human))[:n]


def raters(n):
    return few([3] * n, human=[(3.0, 3.0, 3.0)] * n)


def needed(judgments, labels):
    return rb.labels_needed(judgments, labels, 0.2)


def fixed_control(judgments):
    return reversal_effect(judgments).query("control == 'fixed'")


def one_form(judgments):
    return rb.error_budget(judgments).query("source == 'form'")


def plans(judgments):
    return rb.design_for(rb.error_budget(judgments), 0.2)


UNKNOWN = [
    (
        rb.position_bias,
        (JUDGMENTS.query("ordering_index < 10"),),
        ["chi2", "cramers_v"],
        "equally often",
    ),
    (
        rb.position_bias,
        (JUDGMENTS.query("ordering_index in (1, 6)"),),
        ["q", "p_within", *SIZES],
        "cannot be told from one for a direction; .*order_effect",
    ),
    (rb.position_bias, (several_pairs(),), ["p_within", *SIZES], "direction"),
    (rb.position_bias, (first_place(),), ["log_preference_1"], "no finite estimate"),
    (
        rb.position_bias,
        (make_judgments(4, design=shuffled(5, 60), concentration=20),),
        ["log_preference_1"],
        "too many reads",
    ),
    (
        rb.position_bias,
        (JUDGMENTS.assign(score=3),),
        ["v2_unbiased_low", "cramers_v_high", "share_1_low", "p_equivalent", "mde"],
        "no answer changes with the ordering",
    ),
    (
        rb.order_effect,
        (JUDGMENTS.query("ordering_index in (1, 6)"),),
        ["spread_null", "spread_p"],
        "nothing can be permuted",
    ),
    (
        rb.order_effect,
        (make_judgments(30, design=shuffled(5, 3)),),
        ["spread", "ascending"],
        "every ordering",
    ),
    (
        rb.variance_components,
        (make_judgments(10, design=fixed(5, 2)),),
        ["variance_item", "phi"],
        "one ordering.*see error_budget",
    ),
    (
        rb.variance_components,
        (JUDGMENTS.assign(score=3.0),),
        ["phi", "reliability"],
        "do not differ beyond noise",
    ),
    (
        tendency_shift,
        (perturbed().query("design != 'placebo'"),),
        ["moved_excess"],
        "no placebo reads to compare with",
    ),
    (
        tendency_shift,
        (perturbed().assign(score=3),),
        ["moved_low"],
        "^no interval, as every cluster is alike: moved|; no interval",
    ),
    (
        rb.stability,
        (perturbed().query("design != 'placebo'"),),
        ["flip_rate_excess"],
        "no placebo reads to compare with",
    ),
    (
        rb.score_tendency,
        (asked(fixed(3)), MINIBENCH),
        ["wasserstein"],
        "are on another scale",
    ),
    (gold, (asked(fixed(5)).assign(score=np.nan),), ["gold"], "no read was parsed"),
    (
        one_form,
        (forms().query("template == '0'"),),
        ["variance"],
        "^one form only: not seen$",
    ),
    (plans, (forms(score=3),), ["items", "cost"], "all scores are equal"),
    (
        rb.agreement,
        (RATED.assign(score=3), ITEMS),
        ["r", "p", "rho", "r_paper_low"],
        "^all scores are equal",
    ),
    (rb.agreement, constant_criterion(), ["r_macro"], "r_macro: in some criterion"),
    (
        rb.agreement,
        make_rated(20, 1, noise=0.0),
        ["r_low"],
        r"^\|r\| = 1 has no interval",
    ),
    (
        rb.agreement,
        alike(6, [1, 2, 3, 4], [1, 3, 2, 5]),
        ["r_low"],
        "the clusters are alike",
    ),
    (rb.agreement, one_carries_all(), ["r_low"], "without 1 of 6 clusters"),
    (
        rb.strategy_contrast,
        (pd.concat([RATED, RATED.assign(design="fixed")]), ITEMS),
        ["low", "p", "mde", "p_equivalent"],
        "both sides give the same scores",
    ),
    (
        alternative_annotator,
        raters(20),
        ["winning_rate", "advantage"],
        "no annotator has 30",
    ),
    (alternative_annotator, raters(40), ["advantage_low"], "alike: advantage"),
    (
        judge_bias,
        few([2, 3, 4], human=[1, 2, 3]),
        ["low", "p"],
        "all differences are equal",
    ),
    (judge_bias, few([2, 3, 4], human=[3] * 3), ["slope"], "no slope"),
    (
        system_agreement,
        few([1, 2, 3, 4], candidate=list("xyxy")),
        ["tau"],
        "^2 systems: a rank",
    ),
    (
        rb.rank_reversal,
        (both().assign(group_id=None),),
        ["flip_first", "kendall_tau"],
        "no prompt has two candidates",
    ),
    (
        rb.rank_reversal,
        (both().assign(score=3),),
        ["kendall_tau"],
        "in every prompt a side ties",
    ),
    (
        fixed_control,
        (all_designs().query("design != 'fixed'"),),
        ["effect", "p"],
        "^no two halves of fixed reads$",
    ),
    *(
        (f, few(range(1, 7), n=n), [name], f"^{n} labels: four are needed")
        for n in (1, 3)
        for f, name in ((rb.mean_with_labels, "mean"), (needed, "needed"))
    ),
    (
        rb.mean_with_labels,
        (SYSTEMS, NONE),
        ["mean", "labels_only"],
        "^no judged item has a label",
    ),
    (
        rb.mean_with_labels,
        few([1, 2, 3, 4, 5] * 2, n=5, human=[3.0] * 10),
        ["low", "gain"],
        "all labels are equal",
    ),
    (rb.mean_with_labels, (SYSTEMS, LABELS[:12]), ["low"], "1 labelled clusters: an"),
    (needed, (SYSTEMS, LABELS[:12]), ["needed"], "fewer than three clusters"),
    (
        rb.bias_cost,
        (PLACES[["score", "position", "share"]],),
        ["cost_null"],
        "share_null_sd",
    ),
    (
        rb.bias_cost,
        (rb.score_position(JUDGMENTS.query("score != 4")),),
        ["cost"],
        "never given",
    ),
    (systems_with_labels, (SYSTEMS, NONE), ["estimate"], "^s00 has 0 labels"),
    (
        systems_with_labels,
        (systems(14, s=4)[0], FOUR),
        ["estimate"],
        "^4 systems: .* needs 5",
    ),
    (
        systems_with_labels,
        (SYSTEMS, people(SYSTEMS, SYSTEM * 1.0)[:60]),
        ["low"],
        "never differ from the line",
    ),
]


@pytest.mark.parametrize(("statistic", "given", "unknown", "why"), UNKNOWN)
def test_what_is_not_known_is_nan_with_its_reason(statistic, given, unknown, why):
    table = statistic(*given)
    assert len(table)
    assert table[unknown].isna().all(axis=None)
    assert table["reason"].str.contains(why).all(), table["reason"].tolist()


NO_OPTION = [
    JUDGMENTS.assign(
        score=JUDGMENTS["score"]
        .astype(float)
        .where(~JUDGMENTS.index.isin([3, 8]), score)
    )
    for score in (2.5, 0, 6)
]
NO_ORDER = JUDGMENTS.astype({"ordering": object})
NO_ORDER.loc[7, "ordering"] = np.nan
TWO_SCALES = pd.concat([make_judgments(8), make_judgments(8, design=balanced(3))])
TWICE = pd.concat([JUDGMENTS, JUDGMENTS.iloc[[25]]], ignore_index=True)
PRIOR = pd.DataFrame({"position": [1, 2], "log_preference": [0.1, -0.1]})
PROBABLE = make_judgments(5, readout="logprobs")
STILL = make_judgments(5, design=fixed(5, 2), readout="logprobs")
ANY = (
    rb.advise,
    rb.error_budget,
    rb.will_permuting_help,
    rb.position_bias,
    rb.order_effect,
    rb.variance_components,
    rb.within_item_sd,
)
OTHER = pd.DataFrame({"item_id": ["x"], "human": [1.0]})

REFUSED = [
    *(
        (
            rb.position_bias,
            (make_judgments(9, design=d),),
            f"'{d.name}' shows every item in one",
        )
        for d in (fixed(5, 10), single([3, 1, 2, 4, 5]), placebo(5, 4))
    ),
    (rb.order_effect, (make_judgments(9, 2, fixed(5, 10)),), "several orderings"),
    *(
        (f, (j,), rf"2 of 200 scores .* {s}, item 'i0000'")
        for f in (rb.position_bias, rb.score_position)
        for j, s in zip(NO_OPTION, ("2.5", "0", "6"), strict=True)
    ),
    *(
        (f, (NO_ORDER,), "1 of 200 judgments have no ordering")
        for f in (rb.position_bias, rb.order_effect)
    ),
    *(
        (f, (TWICE,), r"the same read 2 times \(rows 26 and 201: item_id i0002, ")
        for f in ANY
    ),
    (rb.position_bias, (JUDGMENTS, None, "expected_score"), "readout='logprobs'"),
    (rb.position_bias, (JUDGMENTS, "colour"), "'colour'"),
    (rb.position_bias, (TWO_SCALES, "judge"), "add 'n_options' to by="),
    (
        rb.position_bias,
        (JUDGMENTS.assign(ordering="ascending"),),
        "'ascending' does not list",
    ),
    (
        rb.criterion_order,
        (make_criterion_judgments(design=fixed(3, 4)),),
        "'plot' is always at position 1",
    ),
    (
        counting_along,
        (make_criterion_judgments(5, design=fixed(3)).assign(n_options=5),),
        "is always at the same position",
    ),
    (rb.will_permuting_help, (JUDGMENTS, 1), "at least two orders"),
    (rb.position_prior, (STILL,), "score and position cannot be separated"),
    (rb.remove_prior, (PROBABLE, PRIOR), "5 options"),
    (at_temperature, (PROBABLE, -1.0), "0 .greedy. or more"),
    *(
        (f, (JUDGMENTS, *more), "readout='logprobs'")
        for f, more in ((at_temperature, [1.0]), (rb.option_probabilities, []))
    ),
    (
        rb.stability,
        (asked(placebo(5, 3)),),
        r"no judgments of the baseline \(design = 'fixed'",
    ),
    (
        gold,
        (asked(fixed(5), labels=["numeric", "letter"]),),
        "several values of labels",
    ),
    (rb.error_budget, (forms(cluster_id=None),), "cluster_id"),
    *(
        (rb.design_for, (rb.error_budget(forms()), d), "difference")
        for d in (0, float("nan"))
    ),
    (rb.design_for, (pd.DataFrame({"judge": ["a"]}), 0.3), "the budget lack"),
    *(
        (f, (JUDGMENTS, OTHER), "among the items")
        for f in (rb.advise, rb.agreement, rb.mean_with_labels)
    ),
    *(
        (
            f,
            (
                pd.concat(
                    [plain([1, 2, 4, 5], **{c: name}) for name in "ab"],
                    ignore_index=True,
                ),
                plain([1, 2, 4, 5]).assign(human=3.0)[["item_id", "human"]],
            ),
            f"do not say which {c}",
        )
        for f in (rb.advise, rb.budget_curve)
        for c in ("dataset", "criterion")
    ),
    (rb.agreement, (RATED, ITEMS.drop(columns="human")), "'human'"),
    (rb.labels_needed, (*few([1, 2, 3, 4]), 0), "positive number"),
    (alternative_annotator, (*raters(1), 1), "share of items"),
    (
        rb.strategy_contrast,
        (*TWO, "balanced", "random"),
        "'balanced' and 'random'.*design: balanced, fixed",
    ),
    (rb.strategy_contrast, (*TWO, "balanced", "fixed/reverse"), "/reverse"),
    (rb.rank_reversal, (both().drop(columns="group_id"),), "'group_id'"),
    (reversal_effect, (both(),), "design 'placebo'"),
    (
        reversal_effect,
        (pd.concat([competing(balanced(5)), competing(placebo(5, 1))]),),
        "no halves",
    ),
    (rb.bias_cost, (PLACES, [[1, 1, 2, 3, 4]]), r"permutations of 1\.\.5"),
    (
        rb.bias_cost,
        (PLACES.query("score != 2"),),
        "needs each of n scores at each position 1…n",
    ),
    *((equivalence, (0.0, 0.1, 10, margin), "above 0") for margin in (0, float("nan"))),
]


@pytest.mark.parametrize(("statistic", "given", "message"), REFUSED)
def test_what_makes_no_sense_is_refused_with_the_way_out(statistic, given, message):
    with pytest.raises(ValueError, match=message):
        statistic(*given)


@pytest.mark.parametrize("statistic", ANY)
def test_reads_that_are_numbered_are_not_one_read_twice(statistic):
    statistic(
        pd.concat([JUDGMENTS.assign(replicate=r) for r in (1, 2)], ignore_index=True)
    )


def test_a_group_without_one_side_is_named():
    judgments, items = two()
    other = judgments[judgments["design"] == "balanced"].assign(judge="other")
    result = rb.strategy_contrast(pd.concat([judgments, other]), items)
    doubt = "15 effective clusters: intervals may be too narrow"
    assert result["reason"].tolist() == [doubt, "no judgments of 'fixed'"]
    assert np.isnan(result["delta_r"].iloc[1])
