"""The overall score is the weighted mean of a text's criteria,
computed here by hand.
"""

import numpy as np
import pandas as pd
import pytest
import yaml

import rubricnb as rb


@pytest.fixture
def items(tmp_path):
    """Texts under three criteria of weights 3, 1 (none given) and 0.5."""
    rubrics = [
        {
            "criterion": name,
            "definition": f"Is it {name}?",
            "weight": weight,
            "levels": {1: "No.", 2: "Partly.", 3: "Yes."},
        }
        for name, weight in (("kind", 3), ("brief", None), ("clear", 0.5))
    ]
    rows = [
        {
            "instruction": f"Mail {k // 2}",
            "response": f"Reply {k}",
            "candidate": "ab"[k % 2],
            "human_kind": 1 + k % 3,
            "human_brief": 1 + k % 2,
            "human_clear": "" if k == 5 else 2,
        }
        for k in range(12)
    ]
    (tmp_path / "r.yml").write_text(yaml.safe_dump(rubrics), "utf-8")
    pd.DataFrame(rows).to_csv(tmp_path / "mails.csv", index=False)
    return rb.load("csv", path=tmp_path / "mails.csv", rubric=tmp_path / "r.yml")


def test_score_and_rating_are_weighted_means_read_by_read(items):
    requests = rb.plan(items, [rb.balanced(3), rb.fixed(3)], readout="logprobs")
    judgments = rb.simulate(requests, items, "first-biased")
    whole = rb.statistics.overall(judgments, items)
    assert len(whole) == 12 * 7
    assert set(whole.criterion) == {"overall"}
    assert whole.position.isna().all()
    one = judgments.merge(pd.DataFrame(items)[["item_id", "text_id"]], on="item_id")
    weight = {"kind": 3.0, "brief": 1.0, "clear": 0.5}
    for row in whole.sample(20, random_state=1).itertuples():
        own = one[
            (one.text_id == row.item_id)
            & (one.design == row.design)
            & (one.ordering_index == row.ordering_index)
        ]
        by = own.set_index(own.criterion.astype(str))
        for name in ("score", "expected_score"):
            expected = sum(w * by[name][c] for c, w in weight.items()) / 4.5
            assert getattr(row, name) == pytest.approx(expected)
        assert row.ordering == own.ordering.iloc[0]
    assert whole.rated.human[0] == pytest.approx((3 * 1 + 1 * 1 + 0.5 * 2) / 4.5)
    assert np.isnan(whole.rated.human[5])
    agreed = rb.agreement(whole, whole.rated, by="design")
    assert agreed.n_items.tolist() == [11, 11]
    by_hand = whole[whole.design == "fixed"].set_index("item_id").score.astype(float)
    people = whole.rated.set_index("item_id").human
    assert agreed.r.iloc[1] == pytest.approx(by_hand.corr(people), abs=1e-9)
    assert (
        rb.variance_components(whole[whole.design == "balanced"]).n_orderings.item()
        == 6
    )


def test_a_read_that_lost_a_criterion_has_no_score_and_says_why(items):
    judgments = rb.simulate(
        rb.plan(items, rb.fixed(3), readout="score"), items, "unbiased"
    )
    judgments["status"] = judgments["status"].astype(str)
    judgments.loc[1, ["status", "score"]] = ["refused", pd.NA]
    whole = rb.statistics.overall(judgments, items)
    assert whole.status.tolist() == ["refused"] + ["ok"] * 11
    assert whole.score.isna().tolist() == [True] + [False] * 11


def test_several_criteria_in_one_prompt_are_combined_too(items):
    judgments = rb.simulate(
        rb.plan(items, rb.balanced(3), n_options=3, template="criteria"),
        items,
        "unbiased",
    )
    whole = rb.statistics.overall(judgments, items)
    assert len(whole) == 12 * 6
    kind = judgments[(judgments.criterion == "kind") & (judgments.ordering_index == 1)]
    assert set(whole.item_id) == set(kind.item_id)


def test_a_text_without_one_of_the_criteria_is_refused(items):
    judgments = rb.simulate(rb.plan(items, rb.fixed(3)), items, "unbiased").drop(
        index=4
    )
    with pytest.raises(
        ValueError, match=r"text 'mails/2' does not have all of the criteria kind"
    ):
        rb.statistics.overall(judgments, items)
