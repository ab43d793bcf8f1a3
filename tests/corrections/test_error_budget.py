"""The error budget: planted variances, oracles,
what a design cannot tell, and plans.
"""

import numpy as np
import pandas as pd
import pytest
import statsmodels.formula.api as smf
from planted import make_judgments, plausible
from scipy import stats

import rubricnb as rb

SD = {
    "item": 0.6,
    "candidate": 0.3,
    "prompt": 0.7,
    "form": 0.4,
    "form × item": 0.4,
    "form × candidate": 0.2,
    "form × prompt": 0.3,
    "re-read": 0.5,
}


def planted(rng, clusters=30, candidates=4, forms=3, reads=2, lost=0.0, sd=SD):
    """Crossed prompts, candidates, forms and reads; a share of the reads is lost."""
    shape = (clusters, candidates, forms, reads)
    axes = {
        "prompt": (0,),
        "candidate": (1,),
        "item": (0, 1),
        "form": (2,),
        "form × prompt": (0, 2),
        "form × candidate": (1, 2),
        "form × item": (0, 1, 2),
        "re-read": (0, 1, 2, 3),
    }
    x = np.full(shape, 3.0)
    for source, size in sd.items():
        effect = [n if a in axes[source] else 1 for a, n in enumerate(shape)]
        x = x + size * rng.normal(size=effect)
    prompt, candidate, form, read = (a.ravel() for a in np.indices(shape))
    frame = pd.DataFrame(
        {
            "item_id": [f"{p}/{c}" for p, c in zip(prompt, candidate, strict=True)],
            "cluster_id": prompt.astype(str),
            "candidate": candidate.astype(str),
            "template": form.astype(str),
            "replicate": read + 1,
            "score": x.ravel(),
        }
    )
    return frame[rng.random(len(frame)) >= lost].reset_index(drop=True)


def variances(budget):
    return budget.set_index("source")["variance"]


# ---- oracles
# --------------------------------------------------------------------------------------


def test_texts_and_reads_are_those_of_a_mixed_model():
    """Balanced and all positive: the analysis of variance is REML."""
    judgments = planted(np.random.default_rng(1), 25, forms=1).drop(
        columns=["candidate"]
    )
    fitted = smf.mixedlm(
        "score ~ 1",
        judgments,
        groups="cluster_id",
        re_formula="1",
        vc_formula={"item": "0 + C(item_id)"},
    ).fit(reml=True)
    found = variances(rb.error_budget(judgments))
    assert found["prompt"] == pytest.approx(fitted.cov_re.iloc[0, 0], rel=1e-3)
    assert found["item"] == pytest.approx(fitted.vcomp[0], rel=1e-3)
    assert found["re-read"] == pytest.approx(fitted.scale, rel=1e-3)


def henderson(frame, sources):
    """Henderson's method 1 by groups of a frame: sources as lists of columns."""
    x = (frame["score"] - frame["score"].mean()).rename("x")
    keys = [frame.index if not c else frame[c].agg("/".join, axis=1) for c in sources]
    keys = [pd.Series(np.asarray(k), index=x.index) for k in (["all"] * len(x), *keys)]
    square = np.array(
        [(x.groupby(k).sum() ** 2 / x.groupby(k).size()).sum() for k in keys]
    )
    weight = np.array(
        [
            [
                (1.0 * pd.crosstab(k, other) ** 2)
                .sum(axis=1)
                .div(k.value_counts())
                .sum()
                for other in keys[1:]
            ]
            for k in keys
        ]
    )
    return np.linalg.solve(weight[1:] - weight[0], square[1:] - square[0])


SOURCES = {
    "item": ["item_id"],
    "candidate": ["candidate"],
    "prompt": ["cluster_id"],
    "form": ["template"],
    "form × item": ["template", "item_id"],
    "form × candidate": ["template", "candidate"],
    "form × prompt": ["template", "cluster_id"],
    "re-read": [],
}


@pytest.mark.in_turn
def test_unbalanced_data_are_hendersons_and_intervals_leave_out_clusters():
    judgments = planted(np.random.default_rng(3), 4, candidates=3, lost=0.2)
    budget = rb.error_budget(judgments).set_index("source")
    whole = henderson(judgments, SOURCES.values())
    np.testing.assert_allclose(budget.loc[list(SOURCES), "variance"], whole)
    left = np.array(
        [
            henderson(
                judgments[judgments["cluster_id"] != c].reset_index(drop=True),
                SOURCES.values(),
            )
            for c in judgments["cluster_id"].unique()
        ]
    )
    se = np.sqrt(3 / 4 * ((left - left.mean(axis=0)) ** 2).sum(axis=0))
    np.testing.assert_allclose(
        budget.loc[list(SOURCES), "high"], whole + stats.t.ppf(0.975, 3) * se, rtol=1e-9
    )


# ---- planted truth
# ------------------------------------------------------------------------------


@pytest.mark.in_turn
def test_planted_variances_are_recovered_without_bias_from_incomplete_data():
    found = pd.DataFrame(
        variances(rb.error_budget(planted(np.random.default_rng(s), lost=0.3)))
        for s in range(100)
    )
    error = found.std() / np.sqrt(len(found))
    for source, sd in SD.items():
        assert abs(found[source].mean() - sd**2) < 3.5 * error[source]


def test_judges_are_a_source_where_they_are_not_grouped_by():
    judgments = planted(np.random.default_rng(6)).rename(columns={"template": "judge"})
    apart = rb.error_budget(judgments)
    together = rb.error_budget(judgments, by=[])
    assert apart["judge"].nunique() == 3
    assert "judge" not in set(apart["source"])
    same = rb.error_budget(judgments.rename(columns={"judge": "template"}))
    found = variances(together).rename(lambda s: s.replace("judge", "form"))
    pd.testing.assert_series_equal(found[same["source"]], variances(same))


def test_criteria_are_other_texts_and_their_means_no_noise():
    judgments = planted(np.random.default_rng(7))
    two = pd.concat([judgments.assign(criterion="a"), judgments.assign(criterion="b")])
    two.loc[two["criterion"] == "b", "score"] += 5
    one, both = variances(rb.error_budget(judgments)), variances(rb.error_budget(two))
    assert both["item"] == pytest.approx(one["item"])
    assert both["form × item"] == pytest.approx(one["form × item"])
    assert both["criterion"] > 10


# ---- what a design cannot tell
# -------------------------------------------------------------------


def test_copies_of_a_greedy_judge_are_not_reads():
    judgments = planted(np.random.default_rng(8), forms=1)
    key = judgments["item_id"]
    first = judgments.groupby("item_id")["score"].transform("first")
    found = rb.error_budget(judgments.assign(score=first, key=key)).set_index("source")
    assert np.isnan(found.loc["re-read", "variance"])
    assert found.loc["re-read", "reason"] == "part of item"
    known = rb.error_budget(judgments.assign(score=first)).set_index("source")
    assert known.loc["re-read", "variance"] == pytest.approx(0, abs=1e-12)


def test_a_form_for_each_candidate_is_called_that():
    judgments = planted(np.random.default_rng(10))
    own = judgments[judgments["template"] == judgments["candidate"]]
    found = rb.error_budget(own).set_index("source")
    assert found.loc["form", "reason"] == "part of candidate"


def test_placebo_reads_are_left_out():
    judgments = make_judgments(20)
    edited = judgments.assign(design="placebo", score=5)
    both = pd.concat([judgments.astype({"design": str}), edited], ignore_index=True)
    np.testing.assert_allclose(
        rb.error_budget(both)["variance"], rb.error_budget(judgments)["variance"]
    )


def test_placebo_reads_alone_are_an_error_that_names_them():
    edited = make_judgments(5).assign(design="placebo")
    for statistic in (rb.error_budget, rb.advise):
        with pytest.raises(ValueError, match="of the design 'placebo'"):
            statistic(edited)


def test_intervals_that_hang_on_one_cluster_have_a_reason_here_and_in_a_plan():
    """A second form was asked about one prompt only: without it there is one form."""
    judgments = planted(np.random.default_rng(23), 25, forms=2)
    first = judgments["cluster_id"] == judgments["cluster_id"].iloc[0]
    budget = rb.error_budget(judgments[first | (judgments["template"] == "0")])
    kept = budget[budget["variance"].notna()]
    assert len(kept) > 3
    assert kept["low"].isna().all()
    said = kept["codes"].map(
        lambda codes: [c for c in codes if c == "no_interval.not_crossed"]
    )
    assert {(c.numbers["lacking"], c.numbers["n"]) for (c,) in said} == {(1, 25)}
    plans = rb.design_for(budget, 0.3)
    assert plans["items_low"].isna().all()
    assert plans["codes"].map(lambda codes: "no_interval.not_crossed" in codes).all()


def test_what_varies_in_one_cluster_only_has_a_share_without_an_interval():
    judgments = make_judgments(12)
    only = judgments["cluster_id"] == judgments["cluster_id"].iloc[0]
    budget = rb.error_budget(judgments.assign(score=judgments["score"].where(only, 3)))
    unknown = budget[budget["share"].notna() & budget["share_low"].isna()]
    assert len(unknown)
    assert (
        unknown["codes"].map(lambda codes: "no_interval.nothing_varies" in codes).all()
    )
    assert np.isnan(budget["share_low"]).all()  # no ratios of rounding errors


def test_scores_that_were_never_parsed_are_the_reason():
    judgments = planted(np.random.default_rng(24), 6).assign(score=np.nan)
    found = rb.error_budget(judgments)
    assert found["variance"].isna().all()
    assert found["codes"].map(lambda codes: "no_scores" in codes).all()
    assert not found["reason"].str.contains("one item only").any()


# ---- plans
# --------------------------------------------------------------------------------------


def plan(budget, **asked):
    return rb.design_for(budget, **{"difference": 0.3} | asked)


def row(plans, **asked):
    (found,) = plans[np.all([plans[k] == v for k, v in asked.items()], axis=0)].to_dict(
        "records"
    )
    return found


def test_prompts_needed_have_the_power_that_is_promised():
    sd = SD | {"form × candidate": 0.0}
    budget = rb.error_budget(planted(np.random.default_rng(15), 400, sd=sd))
    budget["variance"] = budget["source"].map({s: v**2 for s, v in sd.items()})
    n = int(row(plan(budget), forms=1, reads=2)["items"])
    rng = np.random.default_rng(16)
    varying = [sd["item"], sd["form × item"], sd["re-read"] / np.sqrt(2)]
    x = sum(size * rng.normal(size=(2, 20_000, n)) for size in varying)
    gap = 0.3 + x[0] - x[1]
    found = stats.ttest_1samp(gap, 0, axis=1).pvalue < 0.05
    assert found.mean() == pytest.approx(0.80, abs=0.015)


def test_what_is_dear_is_bought_less_of():
    budget = rb.error_budget(planted(np.random.default_rng(18), 100, forms=1))
    calls_only = plan(budget)
    dear_texts = plan(budget, price={"call": 0.01, "item": 5.0})
    assert calls_only.iloc[0]["reads"] == 1
    assert dear_texts.iloc[0]["reads"] > 1
    first = dear_texts.iloc[0]
    assert first["cost"] == pytest.approx(0.01 * first["calls"] + 5 * first["items"])


@pytest.mark.parametrize(
    "price", [{"calls": 0.01}, {"call": 1, "items": 5}, {"call": -1.0}]
)
def test_a_price_of_something_else_or_below_0_is_an_error(price):
    judgments = planted(np.random.default_rng(25), 6)
    with pytest.raises(ValueError, match=r"price of '(calls|items|call)'"):
        plan(rb.error_budget(judgments), price=price)
    with pytest.raises(ValueError, match=r"price of '(calls|items|call)'"):
        rb.advise(judgments, price=price)


def test_what_costs_nothing_adds_nothing_to_a_plan_without_an_end():
    sd = SD | {"form × candidate": 0.8}
    budget = rb.error_budget(planted(np.random.default_rng(19), 50, sd=sd))
    endless = np.isinf(plan(budget)["items"])
    assert endless.any()
    for price in ({"call": 0.01, "item": 0.0}, {"call": 0.0, "item": 1.0}):
        assert np.isinf(plan(budget, price=price)["cost"]).sum() == endless.sum()
    assert (plan(budget, price={"call": 0.0})["cost"] == 0).all()


def test_a_form_that_prefers_a_candidate_is_not_averaged_away_by_texts():
    sd = SD | {"form × candidate": 0.8}
    budget = rb.error_budget(planted(np.random.default_rng(19), 50, sd=sd))
    plans = plan(budget)
    assert np.isinf(row(plans, forms=1, reads=1)["items"])
    assert "no number of prompts" in row(plans, forms=1, reads=1)["reason"]


@pytest.mark.in_turn
def test_noise_buys_no_forms_where_no_form_prefers_a_candidate():
    """Without form × candidate one form is the cheapest,
    and some number of prompts is enough.
    """
    sd = SD | {"form × candidate": 0.0}
    doubted = 0
    for seed in range(60):
        plans = plan(
            rb.error_budget(planted(np.random.default_rng(100 + seed), 40, sd=sd))
        )
        reason = plans["reason"].iloc[0]
        if "form × candidate may be 0" not in reason:
            continue  # 1 in 40 by chance
        doubted += 1
        assert plans.iloc[0]["forms"] == 1
        assert np.isfinite(plans["items"]).all()
        assert "stay undetected on any number of prompts" in reason
        ends = plans[["calls_low", "calls", "calls_high"]].to_numpy()
        assert (np.diff(ends) > 0).all()
        calls, prompts = (
            plans["calls_high"] / plans["calls"],
            plans["items_high"] / plans["items"],
        )
        np.testing.assert_allclose(calls, prompts)
    assert plausible(doubted, 60, 0.95)


def test_a_budget_from_a_file_plans_without_intervals(tmp_path):
    budget = rb.error_budget(planted(np.random.default_rng(21)))
    budget.to_csv(tmp_path / "budget.csv", index=False)
    again = rb.design_for(pd.read_csv(tmp_path / "budget.csv"), 0.3)
    fresh = rb.design_for(budget, 0.3)
    np.testing.assert_allclose(again["items"], fresh["items"])
    assert again["items_high"].isna().all()
    assert again["reason"].str.contains("read from a file").all()
    assert fresh["items_high"].notna().all()


def test_a_part_of_a_budget_keeps_its_intervals():
    judgments = planted(np.random.default_rng(22)).assign(judge="a")
    both = pd.concat(
        [judgments, judgments.assign(judge="b", score=judgments["score"] * 2)]
    )
    budget = rb.error_budget(both)
    whole = rb.design_for(budget, 0.3)
    part = rb.design_for(budget[budget["judge"] == "b"], 0.3)
    expected = whole[whole["judge"] == "b"].reset_index(drop=True)
    pd.testing.assert_frame_equal(part, expected)
