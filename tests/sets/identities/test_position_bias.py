from itertools import permutations

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.stats import chi2, norm

from rubricnb.sets import identities
from rubricnb.sets.identities import recompute, value
from rubricnb.sets.papers import claims, published, verdicts


@pytest.fixture(scope="module")
def checked():
    rows = claims().query("kind == 'identity' and paper.str.startswith('position')")
    return verdicts(rows, recompute(rows)).set_index("claim_id")


@pytest.mark.in_turn
def test_table_4_follows_from_table_2_for_all_six_judges(checked):
    rows = checked[checked.index.str.startswith("v2/table-4-from-2")]
    assert len(rows) == 6
    assert set(rows.verdict) == {"the arithmetic holds"}
    assert [f"{v:.3f}" for v in rows.value] == [f"{v:.3f}" for v in rows.published]


def test_table_6_follows_from_table_5_for_all_seven_judges(checked):
    rows = checked[checked.index.str.contains("v1/table-6.*(?:lowest|default|orders)$")]
    assert len(rows) == 15
    assert set(rows.verdict) == {"the arithmetic holds"}


def test_bias_cost_against_a_loop_over_all_orders():
    table = published("score_position")
    mine = table[table.judge == "GPT-4.1"].set_index(["score", "position"]).selected_pct
    costs = {
        order: sum(abs(mine[s, p + 1] - 20) for p, s in enumerate(order))
        for order in permutations(range(1, 6))
    }
    assert value("default_cost", "GPT-4.1") == pytest.approx(costs[1, 2, 3, 4, 5])
    # For this judge the best of ten is the best of all 120.
    assert value("lowest_cost", "GPT-4.1") == pytest.approx(min(costs.values()))


def test_a_cell_whose_ends_exclude_its_chi2_is_found(monkeypatch):
    table = published("position_bias")
    wrong = table.assign(chi2=table.chi2.where(table.index != 20, 10.0))
    monkeypatch.setattr(identities, "published", lambda _: wrong)
    assert value("cells_where_ends_allow_chi2") == 23


def test_benjamini_hochberg_against_a_loop():
    p = np.sort(chi2.sf(published("position_bias").chi2, 4))
    passed = [k for k in range(1, 25) if p[k - 1] <= 0.05 * k / 24]
    assert value("significant_after_benjamini_hochberg") == max(passed)


def test_contrasts_of_table_3_against_a_loop():
    table = published("strategy_ablation")
    z = [r.delta_r / ((r.ci_high - r.ci_low) / 3.92) for r in table.itertuples()]
    p = sorted((2 * norm.sf(abs(value)), k) for k, value in enumerate(z))
    last = max(
        rank for rank, (value, _) in enumerate(p, 1) if value <= 0.05 * rank / len(p)
    )
    kept = table.iloc[[k for _, k in p[:last]]]
    assert set(kept.contrast) == {"balanced-fixed"}
    assert value("cells_where_balanced_beats_fixed_adjusted") == len(kept)
    assert value("balanced_random_significant_adjusted") == 0


def test_averaging_alone_predicts_the_gain_of_each_of_v1s_cells():
    """φ is found by bisection from the r of one read and of ten."""
    cells = published("permutation_vs_repeat").query("statistic == 'pearson_r'")
    cells = cells.merge(published("default_order"), on=["judge", "dataset"])
    shares = []
    for cell in cells.itertuples():
        rise = cell.permutation / cell.mean_r_10
        phi = brentq(lambda x, rise=rise: np.sqrt((1 + x) / (1 + x / 10)) - rise, 0, 9)
        assert 0.1 < phi < 0.7
        r = [1 / np.sqrt(1 + phi / k) for k in (1, 3, 10)]
        shares.append((r[1] - r[0]) / (r[2] - r[0]))
    assert value("share_of_gain_at_3_by_averaging") == pytest.approx(np.mean(shares))


def test_repeats_without_any_spread_are_one_read(monkeypatch):
    table = published("within_item_sd").assign(repeat=0.0)
    monkeypatch.setattr(identities, "published", lambda _: table)
    assert value("most_effective_repeats") == pytest.approx(1)
    independent = table.assign(repeat=table.permutation)
    monkeypatch.setattr(identities, "published", lambda _: independent)
    assert value("most_effective_repeats") == pytest.approx(10)


def test_like_for_like_compares_scales_on_the_same_datasets():
    cells = (
        published("position_bias")
        .query("judge == 'Gemma-3-27B'")
        .set_index("dataset")
        .chi2
    )
    at_5 = np.mean(
        [np.sqrt(cells["HANNA"] / 23040), np.sqrt(cells["SummEval"] / 64000)]
    )
    assert value(
        "ratio_of_scales_9_to_5", "Gemma-3-27B", "hanna+summeval"
    ) == pytest.approx(0.220 / at_5)


def test_the_calls_of_the_study_against_a_loop_over_its_parts():
    calls = 0
    for _judge in range(6):
        for items, texts, criteria in (
            (576, 96, 6),
            (1600, 400, 4),
            (320, 0, 0),
            (320, 0, 0),
        ):
            calls += 3 * 10 * items  # three strategies at five options
            calls += sum(2 * n * items for n in ((2, 3, 9) if texts else (2, 3)))
            calls += 3 * 2 * criteria * texts  # three strategies over criteria
            calls += 3 * 3 * 10 * items * bool(texts)  # a sweep
    assert value("calls_of_the_study") == calls


def test_v_without_a_preference_falls_with_the_root_of_the_reads():
    assert value("ratio_of_v_without_a_preference") == pytest.approx(
        np.sqrt(1600 / 320)
    )
