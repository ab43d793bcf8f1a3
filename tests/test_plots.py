"""Figures: what is drawn is what the frame says, on the axes that were given."""

from itertools import permutations

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rubricnb as rb
from rubricnb.judging.simulated import Profile

mpl.use("agg")


@pytest.fixture(autouse=True)
def _close():
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def options():
    items = rb.load("minibench", n_items=15)
    requests = rb.plan(items, rb.balanced(5), readout="logprobs")
    return rb.statistics.option_probabilities(rb.simulate(requests, items, "first-biased"))


def _numbers(ax):
    """The numbers in a heat map's cells: (row, column) → number, both from 1."""
    return {
        (round(t.get_position()[1]), round(t.get_position()[0])): float(t.get_text())
        for t in ax.texts
    }


@pytest.mark.parametrize(
    ("draw", "count", "diagonal"),
    [
        (rb.plots.position_counts, rb.position_counts, True),
        (rb.plots.neighbour_counts, rb.neighbour_counts, False),
    ],
)
@settings(max_examples=5, deadline=None)
@given(n=st.integers(2, 6), k=st.integers(1, 4), seed=st.integers(0, 99))
def test_count_maps_show_every_count_in_its_cell(draw, count, diagonal, n, k, seed):
    orderings = rb.shuffled(n, k).orderings("item", seed)
    drawn = _numbers(draw(orderings))
    plt.close("all")
    assert drawn == {
        (a + 1, b + 1): value
        for (a, b), value in np.ndenumerate(count(orderings))
        if diagonal or a != b
    }


def test_ordering_map_shows_the_score_at_each_position():
    orderings = rb.williams(6).orderings()
    drawn = _numbers(rb.plots.orderings(orderings))
    assert drawn == {(k + 1, p + 1): s for (k, p), s in np.ndenumerate(orderings)}


def test_heat_map_numbers_stand_out_from_their_cells():
    ax = rb.plots.position_counts([[1, 2, 3], [1, 2, 3], [1, 3, 2]])
    image = ax.images[0]
    counts = image.get_array()
    for text in ax.texts:
        column, row = (round(x) - 1 for x in text.get_position())
        ground = np.dot(image.to_rgba(counts)[row, column, :3], [0.2126, 0.7152, 0.0722])
        ink = np.dot(mpl.colors.to_rgb(text.get_color()), [0.2126, 0.7152, 0.0722])
        assert abs(ground - ink) > 0.4


def test_probability_lines_are_means_over_reads(options):
    ax = rb.plots.option_probabilities(options, by="criterion")
    drawn = {line.get_label(): line.get_ydata() for line in ax.lines}
    assert set(drawn) == set(options["criterion"])
    for criterion, heights in drawn.items():
        mine = options[options["criterion"] == criterion]
        expected = [mine.loc[mine["score"] == s, "probability"].mean() for s in range(1, 6)]
        np.testing.assert_allclose(heights, expected)


def test_single_line_has_no_legend(options):
    ax = rb.plots.option_probabilities(options[options["ordering"] == "1-2-3-4-5"])
    assert ax.get_legend() is None


def test_each_score_has_a_line_over_the_positions_and_a_marker_of_its_own(options):
    ax = rb.plots.probability_by_position(options)
    lines = [line for line in ax.lines if len(line.get_xdata()) == 5]
    assert len({line.get_marker() for line in lines}) == 5
    for score, line in enumerate(lines, start=1):
        mine = options[options["score"] == score].groupby("position")["probability"].mean()
        np.testing.assert_allclose(line.get_ydata(), mine.sort_index())
    dots = sum(len(c.get_offsets()) for c in ax.collections)
    assert dots == len(options)


def test_margins_of_a_balanced_design_are_the_means_of_rows_and_columns(options):
    ax = rb.plots.score_by_position(options)
    texts = {tuple(t.get_position()): float(t.get_text()) for t in ax.texts}
    cells = np.array([[texts[p, s] for p in range(1, 6)] for s in range(1, 6)])
    below = [texts[p, 5.9] for p in range(1, 6)]
    beside = [texts[5.9, s] for s in range(1, 6)]
    np.testing.assert_allclose(below, cells.mean(axis=0), atol=1.01)
    np.testing.assert_allclose(beside, cells.mean(axis=1), atol=1.01)
    assert abs(sum(below) - 100) <= 2.5


def test_one_ordering_leaves_all_cells_but_the_diagonal_empty():
    items = rb.load("minibench", n_items=15)
    requests = rb.plan(items, rb.fixed(5, 1), readout="logprobs")
    options = rb.statistics.option_probabilities(rb.simulate(requests, items, "unbiased"))
    ax = rb.plots.score_by_position(options)
    texts = {tuple(t.get_position()): t.get_text() for t in ax.texts}
    assert {(x, y) for x, y in texts if x <= 5 and y <= 5} == {(s, s) for s in range(1, 6)}
    assert all(texts[s, 5.9] == texts[5.9, s] for s in range(1, 6))


def test_axes_that_share_an_ordinate_show_all_of_both():
    low = pd.DataFrame({"judge": "a", "position": [1, 2], "share": [0.5, 0.5]})
    high = low.assign(share=[0.9, 0.1])
    _, (first, second) = plt.subplots(1, 2, sharey=True)
    rb.plots.position_shares(low, ax=first)
    rb.plots.position_shares(high, ax=second)
    assert first.get_ylim() == second.get_ylim()
    assert first.get_ylim()[0] == 0
    assert first.get_ylim()[1] >= 90


def test_position_shares_are_drawn_in_per_cent_beside_one_over_n():
    shares = rb.statistics.option_probabilities(_judged(Profile("a"), rb.balanced(3)))
    shares = shares.groupby(["judge", "position"], observed=True)["probability"].mean()
    shares = shares.rename("share").reset_index()
    ax = rb.plots.position_shares(shares)
    np.testing.assert_allclose(ax.lines[0].get_ydata(), 100 * shares["share"])
    assert ax.lines[1].get_ydata()[0] == pytest.approx(100 / 3)


@pytest.mark.parametrize(
    ("name", "frame"),
    [
        ("orderings", [[1, 2]]),
        ("position_counts", [[1, 2]]),
        ("neighbour_counts", [[1, 2]]),
    ],
)
def test_draws_on_the_axes_it_is_given(name, frame):
    _, ax = plt.subplots()
    assert getattr(rb.plots, name)(frame, ax=ax) is ax


@pytest.mark.parametrize(
    "name", ["option_probabilities", "probability_by_position", "score_by_position"]
)
def test_draws_probabilities_on_the_axes_it_is_given(name, options):
    _, ax = plt.subplots()
    assert getattr(rb.plots, name)(options, ax=ax) is ax
    assert len(plt.get_fignums()) == 1


def _judged(profile, design):
    items = rb.load("minibench", n_items=15)
    return rb.simulate(rb.plan(items, design, readout="logprobs"), items, profile)


@pytest.fixture(scope="module")
def bias():
    items = rb.load("minibench")
    requests = rb.plan(items, rb.balanced(5), readout="logprobs")
    parts = [
        rb.position_bias(rb.simulate(requests, items, profile)).assign(who=profile)
        for profile in ("first-biased", "last-biased")
    ]
    return pd.concat(parts, ignore_index=True)


@pytest.mark.parametrize(
    ("draw", "stem", "scale"),
    [(rb.plots.position_selection, "share", 100), (rb.plots.log_preferences, "log_preference", 1)],
)
def test_position_lines_are_drawn_with_their_intervals_and_names(bias, draw, stem, scale):
    ax = draw(bias, label="who")
    bars = ax.containers
    assert len(bars) == len(bias)
    for bar, (_, row) in zip(bars, bias.iterrows(), strict=True):
        middle = [scale * row[f"{stem}_{p}"] for p in range(1, 6)]
        np.testing.assert_allclose(bar.lines[0].get_ydata(), middle)
        ends = np.array([segment[:, 1] for segment in bar.lines[2][0].get_segments()])
        for column, side in enumerate(("low", "high")):
            wanted = [scale * row[f"{stem}_{p}_{side}"] for p in range(1, 6)]
            np.testing.assert_allclose(ends[:, column], wanted)
    assert {"first-biased", "last-biased"} <= {text.get_text() for text in ax.texts}


def test_a_row_without_numbers_has_no_line(bias):
    missing = [c for c in bias if c.startswith("log_preference")]
    bias = bias.copy()
    bias.loc[0, missing] = np.nan
    ax = rb.plots.log_preferences(bias, label="who")
    assert [text.get_text() for text in ax.texts] == ["last-biased"]


def test_judgments_may_be_given_in_place_of_their_statistics(bias):
    items = rb.load("minibench")
    requests = rb.plan(items, rb.balanced(5), readout="logprobs")
    ax = rb.plots.position_selection(rb.simulate(requests, items, "last-biased"))
    shares = [100 * bias.loc[1, f"share_{p}"] for p in range(1, 6)]
    np.testing.assert_allclose(ax.containers[0].lines[0].get_ydata(), shares)


def test_names_at_line_ends_keep_apart_and_in_order():
    table = pd.DataFrame(
        {"sharpness": [1.0, 2.0], "a": [1, 0.5], "b": [1, 0.501], "c": [1, 0.502], "d": [1, 0.1]}
    )
    ax = rb.plots.indecision(table)
    heights = {text.get_text(): text.xy[1] for text in ax.texts}
    assert heights["d"] < heights["a"] < heights["b"] < heights["c"]
    assert np.diff(sorted(heights.values())).min() > 0.02


def test_every_published_cell_is_a_point_and_every_judge_has_its_marker():
    table = rb.published("position_bias")
    ax = rb.plots.published_ends(table)
    judges = [line for line in ax.lines if line.get_label() in set(table["judge"])]
    assert len({line.get_marker() for line in judges}) == table["judge"].nunique()
    points = {tuple(xy) for line in judges for xy in line.get_xydata()}
    assert points == set(table[["pos1_pct", "pos5_pct"]].itertuples(index=False, name=None))


@pytest.mark.parametrize("df", [1, 4, 8])
def test_statistics_of_a_valid_test_lie_on_the_diagonal(df):
    value = np.random.default_rng(0).chisquare(df, 4000)
    ax = rb.plots.null_quantiles(pd.DataFrame({"statistic": "x", "value": value}), df)
    expected, drawn = ax.lines[0].get_data()
    middle = slice(200, 3800)
    np.testing.assert_allclose(drawn[middle], expected[middle], rtol=0.15, atol=0.05)


def test_statistics_that_are_missing_are_left_out():
    table = pd.DataFrame({"statistic": ["x", "x", "y"], "value": [1.0, np.nan, np.nan]})
    ax = rb.plots.null_quantiles(table, 4)
    assert len(ax.lines[0].get_ydata()) == 1
    assert "y" not in {text.get_text() for text in ax.texts}


def test_score_position_grid_shows_percentages_and_reads_of_each_score():
    items = rb.load("minibench")
    judgments = rb.simulate(rb.plan(items, rb.balanced(5)), items, "first-biased")
    ax = rb.plots.score_position(rb.score_position(judgments))
    drawn = _numbers(ax)
    for (score, position), part in judgments.groupby(["score", "position"]):
        of_score = (judgments["score"] == score).sum()
        assert drawn[score, position] == pytest.approx(100 * len(part) / of_score, abs=0.5)
        assert f"({of_score:,} reads)" in ax.get_yticklabels()[score - 1].get_text()


def test_score_that_was_never_given_has_an_empty_row():
    table = pd.DataFrame(
        {"score": [1, 1, 2, 2], "position": [1, 2, 1, 2], "share": [1, 0, np.nan, np.nan],
         "n": [4.0, 4.0, 0.0, 0.0]}
    )  # fmt: skip
    assert set(_numbers(rb.plots.score_position(table))) == {(1, 1), (1, 2)}


def test_label_mass_histogram_counts_every_read_once():
    mass = np.random.default_rng(1).uniform(0.001, 1, 500)
    ax = rb.plots.label_mass(pd.DataFrame({"label_mass": [*mass, np.nan]}))
    assert sum(bar.get_height() for bar in ax.patches) == 500


def test_label_mass_without_probabilities_is_an_empty_plot():
    assert not rb.plots.label_mass(pd.DataFrame({"label_mass": [np.nan]})).patches


def test_two_scores_show_argmax_and_mean_of_every_ordering():
    items = rb.load("minibench", n_items=1)
    judgments = rb.simulate(rb.plan(items, rb.balanced(5)), items, "first-biased")
    ax = rb.plots.two_scores(judgments)
    np.testing.assert_array_equal(ax.lines[0].get_ydata(), judgments["score"])
    np.testing.assert_allclose(ax.lines[1].get_ydata(), judgments["expected_score"])
    assert [label.get_text() for label in ax.get_xticklabels()] == list(judgments["ordering"])


def test_rating_lines_sum_to_the_whole():
    table = pd.DataFrame({"criterion": list("aabb"), "level": [2, 1, 1, 2], "count": [3, 1, 7, 7]})
    ax = rb.plots.rating_histogram(table)
    assert [line.get_ydata().tolist() for line in ax.lines] == [[25, 75], [50, 50]]


def _estimates(n, seed):
    rng = np.random.default_rng(seed)
    middle, reach = rng.normal(size=n), rng.uniform(0.2, 1, n)
    return pd.DataFrame({"estimate": middle, "low": middle - reach, "high": middle + reach})


@pytest.mark.parametrize("seed", range(3))
def test_forest_fills_a_marker_only_where_the_interval_excludes_the_reference(seed):
    table = _estimates(8, seed).assign(judge=list("aabbccdd"), strategy=["x", "y"] * 4)
    ax = rb.plots.forest(table, reference=0)
    drawn = {
        round(float(x), 9): line.get_markerfacecolor() != "none"
        for line in ax.lines
        for x in line.get_xdata()
        if len(line.get_xdata()) and line.get_linestyle() == "None"
    }
    assert drawn == {
        round(row.estimate, 9): not row.low <= 0 <= row.high for row in table.itertuples()
    }
    assert [t.get_text() for t in ax.get_yticklabels()] == list("abcd")
    assert ax.yaxis_inverted()


def test_a_marker_without_an_interval_is_open():
    """It excludes nothing."""
    table = pd.DataFrame({"estimate": [0.2], "low": np.nan, "high": np.nan, "judge": "a",
                          "strategy": "x"})  # fmt: skip
    ax = rb.plots.forest(table, reference=0)
    (drawn,) = [line for line in ax.lines if list(line.get_xdata()) == [0.2]]
    assert drawn.get_markerfacecolor() == "none"


def test_parts_of_a_contrast_touch_without_overlap_and_sum_to_the_diamond():
    values = {"a": (0.06, -0.05, -0.03), "b": (0.04, 0.02, 0.0)}
    table = pd.DataFrame(
        [(j, p, v) for j, row in values.items() for p, v in zip("xyz", row, strict=True)],
        columns=["judge", "part", "value"],
    )
    ax = rb.plots.contrast_parts(table)
    assert ax.lines[-1].get_xdata() == pytest.approx([-0.02, 0.06])
    bars = [[container[row] for container in ax.containers] for row in range(2)]
    ends = [[(b.get_x(), b.get_x() + b.get_width()) for b in row] for row in bars]
    assert np.array(ends[0]) == pytest.approx(np.array([(0, 0.06), (0, -0.05), (-0.05, -0.08)]))
    assert np.array(ends[1]) == pytest.approx(np.array([(0, 0.04), (0.04, 0.06), (0.06, 0.06)]))


def test_bias_and_gain_names_every_cell_at_its_place():
    table = _estimates(4, 0).rename(columns={"estimate": "delta_r"})
    table = table.assign(judge=list("abab"), dataset=["H", "H", "S", "S"], cramers_v=[1, 2, 3, 4])
    ax = rb.plots.bias_and_gain(table)
    named = {t.xy: t.get_text() for t in ax.texts}
    assert named == {(float(r.cramers_v), r.delta_r): r.judge for r in table.itertuples()}


@pytest.fixture(scope="module")
def curve():
    items = rb.load("minibench", n_items=30)
    requests = rb.plan(items, [rb.balanced(5), rb.fixed(5, 10)], readout="score")
    return rb.budget_curve(rb.simulate(requests, items, "first-biased"), items)


def test_budget_curve_draws_means_prediction_spread_and_interval(curve):
    ax = rb.plots.budget_curve(curve)
    mine = curve[curve.design == "balanced"]
    assert ax.lines[0].get_ydata() == pytest.approx(mine.r_expected.to_numpy())
    assert ax.lines[1].get_ydata() == pytest.approx(mine.r_mean.to_numpy())
    spread = ax.collections[0].get_paths()[0].vertices
    assert {*mine.spread_low, *mine.spread_high} <= set(spread[:, 1])
    bars = ax.collections[1].get_segments()
    assert [s[:, 1].tolist() for s in bars] == mine[["low", "high"]].to_numpy().tolist()
    assert sorted(t.get_text() for t in ax.texts) == ["balanced", "fixed"]


def test_budget_curve_leaves_out_what_is_not_defined(curve):
    nothing = curve.assign(r_mean=np.nan)
    assert not rb.plots.budget_curve(nothing).lines


def test_budget_gain_shows_per_cent_and_the_range_over_phi(curve):
    k = np.arange(1, 11)
    averaging = pd.concat(
        pd.DataFrame({"phi": phi, "k": k, "gain": (k - 1) / 9 + shift})
        for phi, shift in ((0.5, 0.0), (2.0, 0.1))
    )
    ax = rb.plots.budget_gain(curve[curve.design == "balanced"], averaging)
    assert ax.lines[0].get_ydata() == pytest.approx(100 * curve.gain[:10].to_numpy())
    shaded = ax.collections[0].get_paths()[0].vertices[:, 1]
    assert (shaded.min(), shaded.max()) == pytest.approx((0, 110))
    assert "0.5 to 2" in ax.get_legend().get_texts()[0].get_text()


def test_coverage_shows_per_cent_beside_the_promise():
    table = pd.DataFrame({"interval": ["x"] * 2 + ["y"] * 2, "k": [1, 2] * 2,
                          "coverage": [0.9, 0.5, 0.95, 1.0]})  # fmt: skip
    ax = rb.plots.coverage(table)
    assert [line.get_ydata().tolist() for line in ax.lines[:2]] == [[90, 50], [95, 100]]
    assert set(ax.lines[2].get_ydata()) == {95}
    assert {t.get_text() for t in ax.texts} == {"x", "y"}


def test_sizes_stand_at_their_scale_with_interval_and_name():
    table = pd.DataFrame(
        {"judge": list("aaab"), "n_options": [9, 2, 5, 2], "v": [0.1, 0.3, 0.2, np.nan],
         "v_low": [0.0, 0.2, 0.1, np.nan], "v_high": [0.3, 0.4, 0.3, np.nan], "least": 0.01}
    )  # fmt: skip
    ax = rb.plots.size_by_scale(table, "v", floor="least")
    assert ax.lines[0].get_ydata().tolist() == [0.3, 0.2, 0.1]
    bars = [segment[:, 1].round(6).tolist() for segment in ax.collections[0].get_segments()]
    assert bars == [[0.2, 0.4], [0.1, 0.3], [0.0, 0.3]]
    assert [t.get_text() for t in ax.get_xticklabels()] == ["2", "5", "9"]
    assert {t.get_text() for t in ax.texts} == {"a", "no preference"}
    assert ax.lines[-1].get_ydata().tolist() == [0.01, 0.01, 0.01]


def test_criterion_shift_is_the_mean_minus_the_row_mean():
    table = pd.DataFrame(
        {"criterion": ["wit", "plot"], "mean_1": [3.0, 2.0], "mean_2": [3.3, np.nan],
         "mean_3": [3.6, np.nan]}
    )  # fmt: skip
    ax = rb.plots.criterion_shift(table, limit=1.0)
    drawn = {t.get_position(): t.get_text() for t in ax.texts}
    assert drawn == {(1, 1): "−.30", (2, 1): "+.00", (3, 1): "+.30"}
    assert ax.images[0].get_clim() == (-1.0, 1.0)
    assert [t.get_text() for t in ax.get_yticklabels()] == ["wit", "plot"]


def test_gap_beside_null_draws_both_numbers_of_every_row():
    table = pd.DataFrame(
        {"judge": ["a", "a", "b"], "dataset": ["x", "y", "x"], "delta_pos": [0.3, 0.2, 0.4],
         "delta_pos_null": [0.1, 0.05, np.nan]}
    )  # fmt: skip
    ax = rb.plots.gap_beside_null(table, label="judge", series="dataset")
    assert ax.lines[0].get_xdata().tolist() == [0.3, 0.4]
    np.testing.assert_array_equal(ax.lines[1].get_xdata(), [0.1, np.nan])
    assert ax.lines[0].get_markerfacecolor() != ax.lines[1].get_markerfacecolor()
    assert [t.get_text() for t in ax.get_legend().get_texts()] == ["x", "y"]
    heights = np.concatenate([ax.lines[0].get_ydata(), ax.lines[2].get_ydata()])
    assert len(set(heights)) == 3


def _table_5(judge="Qwen3-32B"):
    table = rb.published("score_position").query("judge == @judge")
    return table.assign(share=table["selected_pct"] / 100).drop(columns="selected_pct")


def test_ordering_costs_mark_the_default_and_the_least_of_ten_and_of_all():
    every = list(permutations(range(1, 6)))
    costs = rb.bias_cost(_table_5(), every)
    ax = rb.plots.ordering_costs(costs)
    drawn = {line.get_label(): line.get_xdata()[0] for line in ax.lines[1:]}
    ten = rb.bias_cost(_table_5())
    assert drawn["the default, 1…5"] == pytest.approx(100 * ten["cost"].iloc[0])
    assert drawn["least of the balanced"] == pytest.approx(100 * ten["cost"].min())
    assert drawn["least of all"] == pytest.approx(100 * costs["cost"].min())
    np.testing.assert_allclose(ax.lines[0].get_xdata(), 100 * costs["cost"])


def test_ordering_costs_without_a_defined_cost_are_empty_rows():
    costs = rb.bias_cost(_table_5()).assign(cost=np.nan, cost_null=np.nan)
    ax = rb.plots.ordering_costs(costs)
    assert len(ax.lines) == 1
    assert np.isnan(ax.lines[0].get_xdata()).all()


def test_noise_floor_shows_its_lines_and_published_costs_in_hundredths():
    table = pd.DataFrame({"n": [100, 1000], "a": [0.16, 0.05], "b": [0.08, 0.03]})
    ax = rb.plots.cost_floor(table, pd.DataFrame({"name": ["x"], "cost": [0.07]}))
    np.testing.assert_allclose([line.get_ydata() for line in ax.lines], [[16, 5], [8, 3]])
    assert ax.collections[0].get_offsets()[0, 1] == pytest.approx(7)
    assert {"a", "b", "x"} <= {t.get_text() for t in ax.texts}


@pytest.mark.parametrize(
    ("name", "index"), [("chosen_costs", "n_items"), ("detection", "questions")]
)
def test_lines_over_sizes_are_per_cent_and_named_at_their_ends(name, index):
    table = pd.DataFrame({index: [16, 64, 256], "one": [0.3, 0.2, 0.1], "two": [0.1, 0.1, 0.2]})
    ax = getattr(rb.plots, name)(table)
    np.testing.assert_allclose(ax.lines[0].get_ydata(), [30, 20, 10])
    assert {t.get_text() for t in ax.texts} == {"one", "two"}


def test_cost_against_r_names_an_ordering_that_is_default_and_cheapest_once():
    table = pd.DataFrame({"ordering": ["1-2-3", "3-2-1"], "cost": [0.1, 0.2], "r": [0.3, 0.1]})
    table = table.assign(r_low=table["r"] - 0.1, r_high=table["r"] + 0.1)
    ax = rb.plots.cost_against_r(table)
    assert [t.get_text() for t in ax.texts] == ["1-2-3 (default, cheapest)"]
    undefined = table.assign(r=np.nan, r_low=np.nan, r_high=np.nan)
    assert [t.get_text() for t in rb.plots.cost_against_r(undefined).texts] == []


def test_rank_reversals_join_the_kinds_whose_points_are_named():
    table = pd.DataFrame({
        "kind": ["said", "said", "drawn", "drawn"], "kendall_tau": [0.7, 0.8, 0.7, 0.9],
        "flip_first": [0.3, 0.2, 0.25, 0.1], "label": [None, None, "a", "b"],
    })  # fmt: skip
    ax = rb.plots.rank_reversals(table)
    said, drawn = ax.lines
    np.testing.assert_allclose(drawn.get_ydata(), [25, 10])
    assert (said.get_linestyle(), drawn.get_linestyle()) == ("None", "-")
    assert said.get_marker() != drawn.get_marker()
    assert [t.get_text() for t in ax.texts] == ["a", "b"]


@pytest.mark.parametrize("measure", ["flip_expected", "flip_strict"])
def test_reversal_controls_are_drawn_per_comparison_and_judge(measure):
    items = rb.load("minibench", n_items=60)
    requests = rb.plan(items, [rb.balanced(5), rb.fixed(5, 10)], readout="score")
    judged = pd.concat(rb.simulate(requests, items, name) for name in ("unbiased", "last-biased"))
    table = rb.reversal_controls(judged)
    ax = rb.plots.reversal_controls(table, measure=measure)
    assert [t.get_text() for t in ax.get_yticklabels()] == list(table["comparison"].unique())
    drawn = [bar.lines[0].get_xdata() for bar in ax.containers]
    for judge, middle in zip(table["judge"].unique(), drawn, strict=True):
        np.testing.assert_allclose(middle, 100 * table.loc[table["judge"] == judge, measure])


def test_reversal_controls_without_intervals_still_show_their_points():
    table = pd.DataFrame({"judge": "a", "comparison": ["re-ask"], "flip_expected": [0.5]})
    table = table.assign(flip_expected_low=np.nan, flip_expected_high=np.nan)
    ax = rb.plots.reversal_controls(table)
    assert ax.containers[0].lines[0].get_xdata().tolist() == [50.0]


def test_rounding_names_each_measure_at_its_end():
    table = pd.DataFrame({"sd": [0.5, 1.0], "flips": [0.4, 0.2], "tau": [0.7, 0.9]})
    ax = rb.plots.rounding(table)
    np.testing.assert_allclose([line.get_ydata() for line in ax.lines], [[0.4, 0.2], [0.7, 0.9]])
    assert {t.get_text() for t in ax.texts} == {"flips", "tau"}


def test_dither_has_a_line_and_a_name_per_temperature():
    table = pd.DataFrame({"quality": [1, 2, 1, 2], "temperature": [0.0, 0.0, 1.0, 1.0],
                          "score": [1.0, 2.0, 1.2, 1.8]})  # fmt: skip
    ax = rb.plots.dither(table)
    np.testing.assert_allclose([line.get_ydata() for line in ax.lines], [[1, 2], [1.2, 1.8]])
    assert [t.get_text() for t in ax.texts] == ["τ = 0", "τ = 1"]
    assert len({line.get_linestyle() for line in ax.lines}) == 2


def test_temperature_sweep_sorts_temperatures_and_draws_given_bounds():
    table = pd.DataFrame({"temperature": [1.0, 0.0], "label": "a", "r": [0.3, 0.2],
                          "r_low": [0.1, 0.2], "r_high": [0.5, 0.2]})  # fmt: skip
    ax = rb.plots.temperature_sweep(table, "r")
    np.testing.assert_allclose(ax.lines[0].get_ydata(), [0.2, 0.3])
    bars = ax.containers[0].lines[2][0].get_segments()
    np.testing.assert_allclose(bars[1][:, 1], [0.1, 0.5])
    assert [t.get_text() for t in ax.texts] == ["a"]


def test_temperature_sweep_draws_efforts_in_the_order_in_which_they_stand():
    table = pd.DataFrame({"effort": ["low", "medium", "high"] * 2, "r": [0.1, 0.4, 0.2] * 2,
                          "label": ["a"] * 3 + ["b"] * 3})  # fmt: skip
    ax = rb.plots.temperature_sweep(table.astype({"effort": "category"}), "r", x="effort")
    assert [t.get_text() for t in ax.get_xticklabels()] == ["low", "medium", "high"]
    assert list(ax.lines[0].get_ydata()) == [0.1, 0.4, 0.2]
    assert [t.get_text() for t in ax.texts] == ["a", "b"]


def test_temperature_sweep_of_one_temperature_or_undefined_values_still_draws():
    table = pd.DataFrame({"temperature": [0.0, 0.0], "label": ["a", "b"], "r": [0.2, np.nan]})
    assert len(rb.plots.temperature_sweep(table, "r").texts) == 1


def test_dispersion_shows_the_published_sds_in_their_rows():
    table = rb.published("within_item_sd").assign(order=0.1)
    table["label"] = table["judge"] + table["dataset"]
    ax = rb.plots.dispersion(table)
    drawn = {line.get_label(): line.get_xdata() for line in ax.lines}
    np.testing.assert_allclose(drawn["repeats"], table["repeat"])
    np.testing.assert_allclose(drawn["permutation"], table["permutation"])
    assert [t.get_text() for t in ax.get_yticklabels()] == list(table["label"])
    assert len({line.get_marker() for line in ax.lines}) == 3


def test_effort_chi2_has_a_row_per_judge_and_a_line_per_printed_value():
    draws = pd.DataFrame({"judge": ["a"] * 40 + ["b"] * 40, "chi2": np.arange(80.0)})
    printed = pd.DataFrame({"name": ["low", "high"], "chi2": [115.0, 55.0]})
    ax = rb.plots.effort_chi2(draws, printed)
    np.testing.assert_allclose(ax.lines[1].get_xdata(), np.arange(40, 80))
    assert [line.get_xdata()[0] for line in ax.lines[2:]] == [115.0, 55.0]
    bar = ax.collections[0].get_segments()[0]
    np.testing.assert_allclose(bar[:, 0], np.quantile(np.arange(40), [0.025, 0.975]))


def test_score_tendency_puts_people_on_top_and_rows_add_to_a_hundred():
    items = rb.load("minibench")
    requests = rb.plan(items, rb.fixed(5, 1), labels=["numeric", "roman"], readout="score")
    judgments = rb.simulate(requests, items, "unbiased")
    table = rb.score_tendency(judgments, items)
    ax = rb.plots.score_tendency(table.assign(condition=rb.pages.condition_names(table)))
    names = [t.get_text() for t in ax.get_yticklabels()]
    assert names == ["people", "baseline", "Roman numerals"]
    cells = np.array([float(t.get_text()) for t in ax.texts]).reshape(3, 5)
    assert np.abs(cells.sum(axis=1) - 100).max() <= 3  # rounded to whole per cent
    np.testing.assert_array_equal(cells[0], [20] * 5)


def test_curves_are_named_at_their_ends_and_keep_gaps():
    table = pd.DataFrame({"a": [0.1, np.nan, 0.3], "b": [0.2, 0.1, 0.4]}, index=[1, 2, 4])
    ax = plt.figure().add_subplot()
    ends = rb.plots.curves(table, ax, table - 0.1, table + 0.2, aside=0.5)
    assert [end[:2] for end in ends] == [(0.3, "a"), (0.4, "b")]
    assert len({end[2] for end in ends}) == 2
    assert ax.lines[3].get_xdata().tolist() == [1.5, 2.5, 4.5]
    np.testing.assert_array_equal(ax.lines[0].get_ydata(), table["a"])
    bars = ax.collections[1].get_segments()
    assert [s[:, 1].round(6).tolist() for s in bars] == [[0.1, 0.4], [0.0, 0.3], [0.3, 0.6]]
