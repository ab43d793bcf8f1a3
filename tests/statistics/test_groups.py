"""Groups that are read together have the numbers that each has alone."""

import numpy as np
import pandas as pd
import pytest

import rubricnb as rb
from rubricnb.statistics.scoring_bias import stability
from rubricnb.statistics.tendency import score_tendency

JUDGES = ["first-biased", "unbiased", "letter-strict"]


@pytest.fixture(scope="module")
def items():
    return rb.load("minibench", n_items=30)


@pytest.fixture(scope="module")
def judgments(items):
    """Three judges with rows in a random order and their own gaps,
    ids as text and one column of categories.
    """
    asked = rb.plan(
        items,
        [rb.balanced(5), rb.fixed(5, 2)],
        readout="score",
        seed=1,
        labels=["numeric", "letter"],
    )
    parts = []
    for seed, name in enumerate(JUDGES):
        answers = pd.DataFrame(rb.simulate(asked, items, name))
        parts.append(answers.sample(frac=0.9, random_state=seed))
    table = pd.concat(parts, ignore_index=True)
    ids = ["item_id", "cluster_id", "criterion", "ordering"]
    table[ids] = table[ids].astype("str")
    table["group_id"] = table["group_id"].astype("category")
    return table.sample(frac=1.0, random_state=0, ignore_index=True)


CALLS = {
    "position_bias": lambda t, items: rb.position_bias(t[t["design"] == "balanced"]),
    "order_effect": lambda t, items: rb.order_effect(t),
    "error_budget": lambda t, items: rb.error_budget(t),
    "design_for": lambda t, items: rb.design_for(rb.error_budget(t), 0.5),
    "advise": lambda t, items: rb.advise(t, labels=items),
    "agreement": rb.agreement,
    "score_tendency": score_tendency,
    "stability": lambda t, items: stability(t, {"labels": "numeric"}),
}


@pytest.mark.parametrize("name", CALLS)
def test_a_group_has_the_numbers_it_has_alone(name, judgments, items):
    together = CALLS[name](judgments, items)
    assert set(together["judge"]) == set(judgments["judge"])
    for judge, own in together.groupby("judge", observed=True, sort=False):
        alone = CALLS[name](judgments[judgments["judge"] == judge], items)
        assert len(alone) == len(own)
        # A p-value that is adjusted looks at all groups, as it should.
        for column in own.columns[~own.columns.str.endswith("_adjusted")]:
            ours, its = own[column].to_numpy(), alone[column].to_numpy()
            if own[column].dtype.kind == "f":
                np.testing.assert_allclose(ours, its, rtol=1e-9, atol=1e-9)
            elif column != "reason":
                assert list(map(str, ours)) == list(map(str, its)), column
