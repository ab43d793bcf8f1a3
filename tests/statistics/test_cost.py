import pandas as pd
import pytest
from planted import FIRST, make_judgments

import rubricnb as rb
from rubricnb.core.permutation import decode
from rubricnb.statistics.cost import bias_cost


def test_table_6_follows_from_table_5():
    table = rb.published("score_position_2602.02219v1_table5")
    printed = rb.published("bias_cost_2602.02219v1_table6").set_index("judge")
    table = table.assign(share=table["selected_pct"] / 100).drop(columns="selected_pct")
    costs = bias_cost(table)
    assert len(printed) == 7
    for judge, own in costs.groupby("judge"):
        cost = 100 * own.set_index("ordering")["cost"]
        least = printed.loc[judge, "min_bias_order"].strip("[]").replace(",", "-")
        assert cost.idxmin() == least
        assert cost.min() == pytest.approx(
            printed.loc[judge, "cost_min_bias"], abs=0.1001
        )
        assert cost["1-2-3-4-5"] == pytest.approx(
            printed.loc[judge, "cost_default"], abs=0.1001
        )


def test_cost_is_a_sum_along_the_ordering():
    table = rb.score_position(make_judgments(30, gamma=FIRST))
    share = table.set_index(["score", "position"])["share"]
    costs = bias_cost(table, [[3, 1, 2, 5, 4], [1, 2, 3, 4, 5]])
    for row in costs.itertuples():
        shown = decode(row.ordering)
        assert row.cost == pytest.approx(
            sum(abs(share[s, p] - 0.2) for p, s in enumerate(shown, 1))
        )
    assert costs["ordering"].tolist() == ["3-1-2-5-4", "1-2-3-4-5"]


@pytest.mark.in_turn
def test_without_preference_costs_are_their_floor():
    costs = []
    for seed in range(40):
        table = rb.score_position(make_judgments(80, concentration=0.5, seed=seed))
        costs.append(bias_cost(table))
    costs = pd.concat(costs)
    assert costs["cost"].mean() == pytest.approx(costs["cost_null"].mean(), rel=0.1)
