"""What cannot be told is NaN with the reason; what makes no sense is refused with the way out."""

import numpy as np
import pandas as pd
import pytest
from planted import make_criterion_judgments, make_judgments, plain

import rubricnb as rb
from rubricnb.permutation import balanced, decode, fixed, placebo, shuffled, single
from rubricnb.statistics import gold, reference_pull, tendency_shift
from rubricnb.statistics.criterion import counting_along
from rubricnb.statistics.probabilities import at_temperature

GAMMAS = [f"log_preference_{p}" for p in range(1, 6)]
SHARES = [f"share_{p}" for p in range(1, 6)]
SIZES = ["share_1", "share_1_low", "share_5_most", "v2_unbiased", "v2_unbiased_high", "mde",
         "log_preference_1", "log_preference_5_low", "p_equivalent"]  # fmt: skip
ITEMS = rb.load("minibench", n_items=30)


def unread(judgments):
    return judgments.assign(score=pd.array([pd.NA] * len(judgments), dtype="Int8"))


def first_place():
    """A judge that gives whatever score stands first."""
    judgments = make_judgments(20)
    return judgments.assign(score=[decode(o)[0] for o in judgments["ordering"]])


def ends():
    judgments = make_judgments(20, gamma=(5, 0, 0, 0, 0), readout="logprobs")
    return judgments[judgments["ordering_index"].isin([1, 6])]


def several_pairs():
    """Rotations k and n + k, others for every item: hand-made, one of each direction an item."""
    judgments = make_judgments(40, reverse_shift=1.5, concentration=5)
    number = judgments["item_id"].cat.codes % 5
    pair = judgments[(judgments["ordering_index"] - 1) % 5 == number]
    return pair.assign(ordering_index=np.tile([1, 2], len(pair) // 2))


def numbers(n_clusters=9, per_cluster=2):
    """Scores that are drawn from a normal distribution, in the ten balanced orders."""
    judgments = make_judgments(n_clusters, per_cluster)
    return judgments.assign(score=np.random.default_rng(0).normal(size=len(judgments)))


def forms(n_clusters=8, **columns):
    """Prompts of two candidates in three forms, all read twice."""
    shape = n_clusters, 2, 3, 2
    prompt, candidate, form, read = (a.ravel().astype(str) for a in np.indices(shape))
    frame = pd.DataFrame({
        "item_id": np.char.add(prompt, candidate), "cluster_id": prompt, "candidate": candidate,
        "template": form, "replicate": read,
        "score": np.random.default_rng(0).normal(size=len(prompt)),
    })  # fmt: skip
    return frame.assign(**columns)


def asked(*designs, **how):
    requests = rb.plan(ITEMS, list(designs), readout="score", reference="none", **how)
    return rb.simulate(requests, ITEMS, "unbiased")


def perturbed():
    return asked(fixed(5), rb.Design("descending", 5), placebo(5, 3))


def one_cluster(judgments):
    return judgments[judgments["cluster_id"] == judgments["cluster_id"].iloc[0]]


UNKNOWN = {
    "one read short of balance": (
        lambda: rb.position_bias(make_judgments(30).query("ordering_index < 10")),
        ["chi2", "cramers_v"], "equally often"),
    "places of the two ends": (
        lambda: rb.position_bias(ends()), ["q", "p_within", "p_within_adjusted", *SIZES],
        "cannot be told from one for a direction; .*order_effect"),
    "probable places of the two ends": (
        lambda: rb.position_bias(ends(), value="expected_score"),
        ["q", "p_within", "chi2", *SIZES], "cannot be told from one for a direction"),
    "scores at the two ends": (
        lambda: rb.score_position(ends()), ["share", "share_null"], "direction|never"),
    "places in pairs of opposite orderings": (
        lambda: rb.position_bias(several_pairs()), ["p_within", *SIZES], "direction"),
    "places of one cluster": (
        lambda: rb.position_bias(make_judgments(1, 6)),
        ["q", "p_within", "v2_unbiased", "share_1_low", "mde"], "one cluster"),
    "places without a read": (
        lambda: rb.position_bias(unread(make_judgments(10))),
        ["chi2", "q", "p_within", "v2_unbiased", "mde", *SHARES, *GAMMAS], "no read was parsed"),
    "a judge that takes one place": (
        lambda: rb.position_bias(first_place()), GAMMAS, "no finite estimate"),
    "many reads for the exact likelihood": (
        lambda: rb.position_bias(make_judgments(4, design=shuffled(5, 60), concentration=20)),
        GAMMAS, "too many reads"),
    "a judge that never changes its score": (
        lambda: rb.position_bias(make_judgments(10).assign(score=3)),
        ["v2_unbiased_low", "cramers_v_high", "share_1_low", "share_5_high", "p_equivalent", "mde"],
        "no answer changes with the ordering"),
    "a score that was never given": (
        lambda: rb.score_position(make_judgments(10).query("score != 3")).query("score == 3"),
        ["share", "share_null"], "never given"),
    "spread of two opposite orderings": (
        lambda: rb.order_effect(make_judgments(20).query("ordering_index in (1, 6)")),
        ["spread_null", "spread_p"], "nothing can be permuted"),
    "effects of orderings drawn by item": (
        lambda: rb.order_effect(make_judgments(30, design=shuffled(5, 3))),
        ["spread", "ascending"], "every ordering"),
    "components of orderings drawn by item": (
        lambda: rb.variance_components(make_judgments(30, design=shuffled(5, 3)), "design"),
        ["variance_ordering"], "every ordering"),
    "sd of single reads": (
        lambda: rb.within_item_sd(make_judgments(10, design=fixed(5, 1))),
        ["sd", "variance"], "two parsed reads"),
    "components of single reads": (
        lambda: rb.variance_components(make_judgments(10, design=fixed(5, 1))),
        ["variance_item", "phi"], "one ordering and no repeats"),
    "components of one item": (
        lambda: rb.variance_components(make_judgments(1)),
        ["variance_item", "phi"], "fewer than two items"),
    "components of one score": (
        lambda: rb.variance_components(numbers().assign(score=3.0)),
        ["phi", "phi_low", "reliability", "share_ordering"], "do not differ beyond noise"),
    "components of one cluster": (
        lambda: rb.variance_components(numbers().assign(cluster_id="c")),
        ["phi_low", "phi_own_high"], "one cluster"),
    "components without repeats": (
        lambda: rb.variance_components(make_judgments(40)),
        ["variance_reask"], "no independent repeats"),
    "components of copies": (
        lambda: rb.variance_components(make_judgments(40, design=balanced(2), greedy=True)),
        ["variance_reask"], "no independent repeats"),
    "criteria without a whole block": (
        lambda: rb.criterion_order(make_criterion_judgments().assign(score=np.nan)),
        ["friedman", "delta_pos", "p_within"], "every position"),
    "criteria of one score": (
        lambda: rb.criterion_order(make_criterion_judgments().assign(score=3)),
        ["friedman", "p", "mde"], "no block's score changes"),
    "criteria of one cluster": (
        lambda: rb.criterion_order(make_criterion_judgments(1, 12)),
        ["q", "p_within", "delta_pos_p"], "one cluster"),
    "a pilot of two texts": (
        lambda: rb.will_permuting_help(make_judgments(2)), ["gain"], "three with two are needed"),
    "a pilot of one score": (
        lambda: rb.will_permuting_help(make_judgments(20).assign(score=3)),
        ["gain"], "all reads give one score"),
    "a shift without a placebo": (
        lambda: tendency_shift(perturbed().query("design != 'placebo'")),
        ["moved_excess", "moved_placebo"], "no placebo reads to compare with"),
    "the placebo's own shift": (
        lambda: tendency_shift(perturbed()).query("design == 'placebo'"),
        ["moved_excess"], "this is the placebo"),
    "a shift in one cluster": (
        lambda: tendency_shift(one_cluster(perturbed())), ["moved_low"], "one cluster"),
    "a shift of lost scores": (
        lambda: tendency_shift(unread(perturbed())), ["moved"], "no item was parsed under both"),
    "a shift of one score": (
        lambda: tendency_shift(perturbed().assign(score=3)),
        ["moved_low"], "^no interval, as every cluster is alike: moved|; no interval"),
    "a pull without a placebo": (
        lambda: reference_pull(
            rb.simulate(rb.plan(ITEMS, fixed(5), reference=["none", 3]), ITEMS, "unbiased")),
        ["pull_excess"], "no placebo reads to compare with"),
    "stability without a placebo": (
        lambda: rb.stability(perturbed().query("design != 'placebo'")),
        ["flip_rate_excess", "mad_placebo"], "no placebo reads to compare with"),
    "stability of one cluster": (
        lambda: rb.stability(one_cluster(perturbed())), ["shift_low"], "one cluster"),
    "a tendency without ratings": (
        lambda: rb.score_tendency(perturbed(), ITEMS.drop(columns="human")),
        ["wasserstein"], "no 'human' ratings"),
    "a tendency on another scale": (
        lambda: rb.score_tendency(asked(fixed(3)), ITEMS),
        ["wasserstein"], r"^ratings are on 1\.\.5, the options on 1\.\.3$"),
    "a tendency of lost scores": (
        lambda: rb.score_tendency(unread(perturbed()), ITEMS),
        ["share_1", "wasserstein"], "^no item has both a score and a rating$"),
    "gold of a lost read": (
        lambda: gold(unread(asked(fixed(5)))), ["gold"], "no read was parsed"),
    "a budget of one cluster": (
        lambda: rb.error_budget(one_cluster(forms())), ["low"], "one cluster|not seen|part of"),
    "a budget without scores": (
        lambda: rb.error_budget(forms(status="unparsed")), ["variance"], "."),
    "a budget of one form": (
        lambda: rb.error_budget(forms().query("template == '0'")).query("source == 'form'"),
        ["variance"], "^one form only: not seen$"),
    "plans of equal scores": (
        lambda: rb.design_for(rb.error_budget(forms(score=3)), 0.2),
        ["items", "cost"], "all scores are equal"),
    "advice without labels": (
        lambda: rb.advise(make_judgments(40)).query("step == 'labels'"), ["gain"], "^no labels$"),
}  # fmt: skip


@pytest.mark.parametrize(("result", "unknown", "why"), UNKNOWN.values(), ids=UNKNOWN)
def test_what_is_not_known_is_nan_with_its_reason(result, unknown, why):
    table = result()
    assert len(table)
    assert table[unknown].isna().all(axis=None)
    assert table["reason"].str.contains(why).all(), table["reason"].tolist()


JUDGMENTS, CRITERIA = make_judgments(10), make_criterion_judgments(5)
NO_OPTION = [JUDGMENTS.assign(score=JUDGMENTS["score"].astype(float).where(
    ~JUDGMENTS.index.isin([3, 8]), score)) for score in (2.5, 0, 6)]  # fmt: skip
NO_ORDER = JUDGMENTS.astype({"ordering": object})
NO_ORDER.loc[7, "ordering"] = np.nan
TWO_SCALES = pd.concat([make_judgments(8), make_judgments(8, design=balanced(3))])
TWICE = pd.concat([JUDGMENTS, JUDGMENTS.iloc[[25]]], ignore_index=True)
PRIOR = pd.DataFrame({"position": [1, 2], "log_preference": [0.1, -0.1]})
PROBABLE = make_judgments(5, readout="logprobs")
STILL = make_judgments(5, design=fixed(5, 2), readout="logprobs")
BUDGET = rb.error_budget(forms())
ORDERED = (rb.position_bias, rb.order_effect)
PLACED = (rb.position_bias, rb.score_position)
ANY = (rb.advise, rb.error_budget, rb.will_permuting_help, rb.position_bias, rb.order_effect,
       rb.variance_components, rb.within_item_sd)  # fmt: skip
NEW = forms()
WAVERING = make_judgments(60, concentration=0.15, quality=np.linspace(1, 5, 60))

REFUSED = [
    *((rb.position_bias, (make_judgments(9, design=d),), f"'{d.name}' shows every item in one")
      for d in (fixed(5, 10), single([3, 1, 2, 4, 5]), placebo(5, 4))),
    *((rb.order_effect, (make_judgments(9, 2, d),), "several orderings")
      for d in (fixed(5, 10), placebo(5, 4))),
    *((f, (j,), rf"2 of 100 scores .* {s}, item 'i0000'")
      for f in PLACED for j, s in zip(NO_OPTION, ("2.5", "0", "6"), strict=True)),
    *((f, (NO_ORDER,), "1 of 100 judgments have no ordering") for f in (*PLACED, rb.order_effect)),
    *((f, (TWICE,), r"the same read 2 times \(rows 26 and 101: item_id i0002, ") for f in ANY),
    (rb.position_bias, (JUDGMENTS, None, "expected_score"), "readout='logprobs'"),
    (rb.position_bias, (JUDGMENTS, "colour"), "'colour'"),
    (rb.position_bias, (TWO_SCALES, "judge"), "add 'n_options' to by="),
    (rb.position_bias, (JUDGMENTS.assign(ordering="ascending"),), "'ascending' does not list"),
    (rb.criterion_order, (make_criterion_judgments(design=fixed(3, 4)),),
     "'plot' is always at position 1"),
    (rb.criterion_order, (CRITERIA.drop(columns="criterion_position"),), "'criterion_position'"),
    (counting_along, (make_criterion_judgments(5, design=fixed(3)).assign(n_options=5),),
     "is always at the same position"),
    (rb.will_permuting_help, (JUDGMENTS, 1), "at least two orders"),
    (rb.position_prior, (STILL,), "score and position cannot be separated"),
    (rb.remove_prior, (PROBABLE, PRIOR), "5 options"),
    (at_temperature, (PROBABLE, -1.0), "0 .greedy. or more"),
    (at_temperature, (JUDGMENTS, 1.0), "readout='logprobs'"),
    (rb.option_probabilities, (JUDGMENTS,), "readout='logprobs'"),
    (rb.stability, (asked(placebo(5, 3)),), r"no judgments of the baseline \(design = 'fixed'"),
    (rb.stability, (JUDGMENTS,), "lack the column 'labels'"),
    (gold, (asked(fixed(5), labels=["numeric", "letter"]),), "several values of labels"),
    (rb.error_budget, (NEW.assign(cluster_id=None),), "cluster_id"),
    (rb.error_budget, (NEW, None, "wording"), "'wording'"),
    (rb.error_budget, (NEW, NEW[["item_id", "cluster_id"]]), "human_ratings"),
    *((rb.design_for, (BUDGET, d), "difference") for d in (0, -1, float("nan"))),
    (rb.design_for, (pd.DataFrame({"judge": ["a"]}), 0.3), "the budget lack"),
    (rb.advise, (JUDGMENTS, pd.DataFrame({"item_id": ["other"], "human": [3.0]})),
     "among the items"),
    *((rb.advise, (WAVERING, None, 1.0, precision), "positive") for precision in (0, -0.1)),
    *((f, (pd.concat([plain([1, 2, 4, 5], **{c: name}) for name in "ab"], ignore_index=True),
           plain([1, 2, 4, 5]).assign(human=3.0)[["item_id", "human"]]), f"do not say which {c}")
      for f in (rb.advise, rb.budget_curve) for c in ("dataset", "criterion")),
]  # fmt: skip


@pytest.mark.parametrize(("statistic", "given", "message"), REFUSED)
def test_what_makes_no_sense_is_refused_with_the_way_out(statistic, given, message):
    with pytest.raises(ValueError, match=message):
        statistic(*given)


@pytest.mark.parametrize("statistic", ANY)
def test_reads_that_are_numbered_are_not_one_read_twice(statistic):
    statistic(pd.concat([JUDGMENTS.assign(replicate=r) for r in (1, 2)], ignore_index=True))


def test_scores_between_options_have_a_spread_all_the_same():
    assert [rb.within_item_sd(judgments).k.item() for judgments in NO_OPTION] == [10] * 3
