"""Position and predecessor: against dummy regression, planted effects and designs."""

import numpy as np
import pandas as pd
import pytest
import statsmodels.formula.api as smf

import rubricnb as rb
from rubricnb.permutation import balanced, fixed, shuffled, williams
from rubricnb.statistics.criterion import predecessor_effects

CRITERIA = ("depth", "plot", "style", "wit")


def criteria_items(n_texts, criteria=CRITERIA, texts_per_cluster=1):
    rows = [
        {"item_id": f"t{t}/{c}", "text_id": f"t{t}", "cluster_id": f"g{t // texts_per_cluster}",
         "dataset": "planted", "instruction": "i", "response": "r", "criterion": c,
         "rubric_id": c, "human": 1.0 + (t + 2 * k) % 5}
        for t in range(n_texts) for k, c in enumerate(criteria)
    ]  # fmt: skip
    items = rb.frames.Items(pd.DataFrame(rows))
    levels = pd.DataFrame({"score": range(1, 6), "variant": "standard"})
    rubrics = pd.DataFrame({"rubric_id": criteria, "criterion": criteria})
    items.rubrics = rubrics.merge(levels, how="cross").assign(definition="d", description="d")
    return items


def planted(design, n_texts=30, position=None, predecessor=None, noise=0.3, seed=0):
    """Judgments with known effects: estimates must come near them."""
    items = criteria_items(n_texts)
    requests = rb.plan_criteria(items, design, readout="score", seed=seed)
    frame = rb.simulate(requests, items, "unbiased", seed=seed)
    frame = frame.sort_values(["request_id", "criterion_position"], kind="stable")
    before = frame.groupby("request_id", observed=True)["criterion"].shift().astype("object")
    rng = np.random.default_rng(seed)
    base = frame.groupby(["item_id", "criterion"], observed=True).ngroup() % 7 / 3
    value = base + rng.normal(0, noise, len(frame))
    if position is not None:
        value += np.asarray(position)[frame["criterion_position"].to_numpy(int) - 1]
    if predecessor is not None:
        value += before.map(predecessor).fillna(0.0).to_numpy(float)
    return frame.assign(expected_score=value.to_numpy(), before=before.fillna("none"))


def estimates(judgments):
    found = predecessor_effects(judgments, value="expected_score")
    return found.set_index(["effect", "level"])


@pytest.mark.parametrize("design", [balanced(4), williams(4), shuffled(4, 6)])
def test_estimates_are_those_of_a_regression_with_dummies(design):
    judgments = planted(design, 12, (0.3, 0, 0, -0.2), {"plot": 0.4})
    frame = judgments.assign(
        unit=judgments["item_id"].astype("str") + judgments["criterion"].astype("str"),
        y=judgments["expected_score"],
        q=judgments["criterion_position"].astype(int),
    )
    for k, name in enumerate(CRITERIA[:-1]):
        own = (frame["before"] == name).astype(float)
        frame[f"b{k}"] = own - (frame["before"] == CRITERIA[-1])
    fit = smf.ols("y ~ C(unit) + C(q, Sum) + b0 + b1 + b2", frame).fit()
    found = estimates(judgments)["estimate"]
    for k, name in enumerate(CRITERIA[:-1]):
        assert found["predecessor", name] == pytest.approx(fit.params[f"b{k}"], abs=1e-8)
        assert found["position", str(k + 1)] == pytest.approx(
            fit.params[f"C(q, Sum)[S.{k + 1}]"], abs=1e-8
        )


def test_levels_sum_to_zero():
    found = estimates(planted(williams(4)))["estimate"]
    assert found.groupby("effect").sum().abs().max() < 1e-10


def test_planted_effects_lie_in_their_intervals_and_are_found():
    position, predecessor = (
        (0.3, 0.1, -0.1, -0.3),
        dict(zip(CRITERIA, (0.4, -0.4, 0.1, -0.1), strict=True)),
    )
    found = estimates(planted(williams(4), 60, position, predecessor))
    truth = [*position, *predecessor.values()]
    assert ((found["low"] < truth) & (found["high"] > truth)).sum() >= 7
    assert (found["p_joint"] < 1e-6).all()


def test_without_effects_both_joint_tests_reject_rarely():
    p = pd.concat(
        predecessor_effects(planted(williams(4), 15, seed=s), value="expected_score")
        .groupby("effect")["p_joint"].first()
        for s in range(60)
    )  # fmt: skip
    assert (p < 0.05).sum() <= 15  # 120 tests; binomial 99.9 % is 15


def test_intervals_treat_texts_of_a_cluster_as_one():
    items = criteria_items(20, texts_per_cluster=2)
    requests = rb.plan_criteria(items, williams(4), readout="score")
    judgments = rb.simulate(requests, items, "criterion-biased")
    alone = predecessor_effects(judgments.assign(cluster_id=judgments["item_id"]))
    together = predecessor_effects(judgments)
    np.testing.assert_allclose(alone["estimate"], together["estimate"])
    assert set(alone["n_clusters"]) == {20}
    assert set(together["n_clusters"]) == {10}
    assert not np.allclose(alone["low"], together["low"])


def test_williams_tells_predecessors_apart_better_than_rotations():
    width = {
        design.name: estimates(planted(design, 60)).loc["predecessor"].eval("high - low").mean()
        for design in (balanced(4), williams(4))
    }
    # Williams has half the orderings; its variance per ordering is 2.9, the rotations' is 5.3.
    assert width["williams"] < 1.1 * width["balanced"]


def test_a_fixed_order_gives_nan_and_the_reason():
    judgments = planted(fixed(4, 3), 5)
    found = predecessor_effects(judgments, value="expected_score")
    assert found["estimate"].isna().all()
    assert set(found["reason"]) == {"the orderings do not tell position and predecessor apart"}


def test_one_cluster_has_estimates_without_intervals():
    judgments = planted(williams(4), 1)
    found = predecessor_effects(judgments, value="expected_score")
    assert found["estimate"].notna().all()
    assert found[["low", "high", "p", "p_joint"]].isna().all().all()
    assert set(found["reason"]) == {"one cluster: intervals need two"}


def test_lost_reads_are_left_out_but_still_stand_before_others():
    judgments = planted(williams(4), 20, predecessor={"plot": 1.0}, noise=0.0)
    lost = judgments["criterion"].eq("plot") & judgments["criterion_position"].eq(2)
    judgments = judgments.assign(expected_score=judgments["expected_score"].mask(lost))
    found = estimates(judgments)["estimate"]
    assert found["predecessor", "plot"] - found["predecessor", "wit"] == pytest.approx(1.0)


def test_no_parsed_read_gives_nan_and_the_reason():
    judgments = planted(williams(4), 3).assign(expected_score=np.nan)
    found = predecessor_effects(judgments, value="expected_score")
    assert found["estimate"].isna().all()
    assert set(found["reason"]) == {"no read was parsed"}
