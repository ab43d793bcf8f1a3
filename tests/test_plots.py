"""Figures: what is drawn is what the frame says, on the axes that were given."""

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rubricnb as rb

mpl.use("agg")


@pytest.fixture(autouse=True)
def _close():
    yield
    plt.close("all")


def _numbers(ax):
    """The numbers in a heat map's cells: (row, column) → number, both from 1."""
    return {
        (round(t.get_position()[1]), round(t.get_position()[0])): float(t.get_text())
        for t in ax.texts
    }


@settings(max_examples=5, deadline=None)
@given(n=st.integers(2, 6), k=st.integers(1, 4), seed=st.integers(0, 99))
def test_heat_map_shows_every_number_in_its_cell(n, k, seed):
    counts = rb.neighbour_counts(rb.shuffled(n, k).orderings("item", seed)).astype(float)
    np.fill_diagonal(counts, np.nan)
    drawn = _numbers(rb.plots.heat(counts, plt.figure().gca(), "after", "score", lowest=0))
    plt.close("all")
    assert drawn == {(a + 1, b + 1): v for (a, b), v in np.ndenumerate(counts) if a != b}


def test_heat_map_numbers_stand_out_from_their_cells():
    ax = rb.plots.heat(np.array([[0, 3], [1, 2]]), plt.figure().gca(), "", "")
    image = ax.images[0]
    for text in ax.texts:
        column, row = (round(x) - 1 for x in text.get_position())
        ground = np.dot(image.to_rgba(image.get_array())[row, column, :3], [0.2126, 0.7152, 0.0722])
        ink = np.dot(mpl.colors.to_rgb(text.get_color()), [0.2126, 0.7152, 0.0722])
        assert abs(ground - ink) > 0.4


def test_names_at_line_ends_keep_apart_and_in_order():
    table = pd.DataFrame({"a": [1, 0.5], "b": [1, 0.501], "c": [1, 0.502], "d": [1, 0.1]})
    ax = plt.figure().gca()
    rb.plots.end_labels(ax, 1.0, rb.plots.curves(table, ax))
    heights = {text.get_text(): text.xy[1] for text in ax.texts}
    assert heights["d"] < heights["a"] < heights["b"] < heights["c"]
    assert np.diff(sorted(heights.values())).min() > 0.02


def test_axes_that_share_an_ordinate_begin_at_zero_and_show_all_of_both():
    _, (first, second) = plt.subplots(1, 2, sharey=True)
    for ax, high in ((first, 50), (second, 90)):
        rb.plots.lines(pd.DataFrame({"a": [high, 10]}, index=[1, 2]), ax)
        rb.plots.from_zero(ax)
    assert first.get_ylim() == second.get_ylim()
    assert first.get_ylim()[0] == 0
    assert first.get_ylim()[1] >= 90


@pytest.fixture(scope="module")
def bias():
    items = rb.load("minibench")
    requests = rb.plan(items, rb.balanced(5), readout="logprobs")
    parts = [
        rb.position_bias(rb.simulate(requests, items, profile)).assign(who=profile)
        for profile in ("first-biased", "last-biased")
    ]
    return pd.concat(parts, ignore_index=True)


def test_position_lines_are_drawn_with_their_intervals_and_names(bias):
    ax = rb.plots.position_selection(bias, label="who")
    bars = ax.containers
    assert len(bars) == len(bias)
    for bar, (_, row) in zip(bars, bias.iterrows(), strict=True):
        middle = [100 * row[f"share_{p}"] for p in range(1, 6)]
        np.testing.assert_allclose(bar.lines[0].get_ydata(), middle)
        ends = np.array([segment[:, 1] for segment in bar.lines[2][0].get_segments()])
        for column, side in enumerate(("low", "high")):
            wanted = [100 * row[f"share_{p}_{side}"] for p in range(1, 6)]
            np.testing.assert_allclose(ends[:, column], wanted)
    assert {"first-biased", "last-biased"} <= {text.get_text() for text in ax.texts}


def test_a_row_without_numbers_has_no_line(bias):
    bias = bias.copy()
    bias.loc[0, [c for c in bias if c.startswith("share_")]] = np.nan
    ax = rb.plots.position_selection(bias, label="who")
    assert [text.get_text() for text in ax.texts] == ["uniform", "last-biased"]


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


@pytest.mark.parametrize("bounds", [True, False])
def test_interval_lines_are_sorted_and_have_bars_only_where_intervals_are_known(bounds):
    table = pd.DataFrame({"n": [5, 2, 9], "v": [0.1, 0.2, np.nan], "judge": "a"})
    if bounds:
        table = table.assign(v_low=[0.05, 0.1, np.nan], v_high=[0.15, np.nan, np.nan])
    ax = plt.subplots()[1]
    ends = rb.plots.interval_lines(table, "n", "v", "judge", ax, aside=0.05)
    assert [(end, name) for end, name, _ in ends] == [(0.1, "a")]
    assert ax.lines[0].get_xydata().tolist() == [[2, 0.2], [5, 0.1]]
    drawn = [s.tolist() for bars in ax.collections for s in bars.get_segments()]
    expected = [[[2, 0.1], [2, 0.2]], [[5, 0.05], [5, 0.15]]] if bounds else []
    np.testing.assert_allclose(drawn, expected)


def test_several_interval_lines_stand_apart_by_what_is_said():
    table = pd.DataFrame({"n": 2.0, "v": [0.1, 0.2], "v_low": 0, "v_high": 1, "judge": ["a", "b"]})
    ax = plt.subplots()[1]
    rb.plots.interval_lines(table, "n", "v", "judge", ax, aside=0.1)
    drawn = [float(bars.lines[0].get_xdata()[0]) for bars in ax.containers]
    np.testing.assert_allclose(drawn, [1.95, 2.05])


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


def test_reference_accuracy_sorts_references_and_leaves_gaps():
    table = pd.DataFrame({"reference_score": ["3", "none", "1"], "judge": "a",
                          "rho": [0.3, 0.1, np.nan], "rho_low": 0.0, "rho_high": 0.5})  # fmt: skip
    ax = rb.plots.reference_accuracy(table)
    assert [t.get_text() for t in ax.get_xticklabels()] == ["none", "1", "3"]
    np.testing.assert_allclose(ax.lines[0].get_ydata(), [0.1, np.nan, 0.3])


def test_size_and_flips_puts_a_judge_of_unknown_size_beside_the_line():
    table = rb.published("scoring_bias_stability").rename(columns={"flip_rate_pct": "flip_rate"})
    mean = table.groupby(["judge", "perturbation"], as_index=False).flip_rate.mean()
    mean["size"] = mean.judge.map({"Qwen3-8B": 8, "Qwen3-32B": 32, "DeepSeek-V3-671B": 671})
    mean = mean[mean.judge != "Mistral-Small-24B-Instruct"]
    ax = rb.plots.size_and_flips(mean)
    ticks = [t.get_text().replace("\n", " ") for t in ax.get_xticklabels()]
    assert ticks == ["Qwen3-8B 8", "Qwen3-32B 32", "DeepSeek-V3-671B 671", "GPT-4o not public"]
    line, alone = ax.lines[:2]
    part = mean[mean.perturbation == mean.perturbation.iloc[0]].set_index("judge").flip_rate
    np.testing.assert_allclose(
        line.get_ydata(), part[["Qwen3-8B", "Qwen3-32B", "DeepSeek-V3-671B"]]
    )
    np.testing.assert_allclose(alone.get_ydata(), [part["GPT-4o"]])


def test_repeats_has_a_named_line_per_column():
    table = pd.DataFrame({"k": [1, 3, 10], "flips": [0.5, 0.3, 0.2], "shift": [1.0, 1.0, 1.0]})
    ax = rb.plots.repeats(table)
    assert {t.get_text() for t in ax.texts} == {"flips", "shift"}
    np.testing.assert_allclose([line.get_ydata() for line in ax.lines],
                               [[0.5, 0.3, 0.2], [1, 1, 1]])  # fmt: skip


def test_label_maps_draws_every_map_as_given():
    z = np.linspace(0, 1, 5)
    table = pd.concat(
        pd.DataFrame({"latent": z, "map": name, "label": label})
        for name, label in {"ours": [1, 1, 2, 3, 3], "rounded": [1, 2, 2, 2, 3]}.items()
    )
    ax = rb.plots.label_maps(table)
    assert [t.get_text() for t in ax.get_legend().get_texts()] == ["ours", "rounded"]
    for line, (_, part) in zip(ax.lines, table.groupby("map"), strict=True):
        np.testing.assert_array_equal(line.get_ydata(), part.label)
        np.testing.assert_array_equal(line.get_xdata(), z)
    assert len({line.get_linestyle() for line in ax.lines}) == 2  # not told apart by colour alone


@pytest.mark.parametrize("log", [False, True])
def test_kappa_curves_has_a_named_line_per_column(log):
    table = pd.DataFrame({"told": [0.8, 0.7, 0.6], "true": [0.4, 0.5, 0.55]}, index=[15, 60, 200])
    ax = rb.plots.kappa_curves(table.rename_axis("items"), log=log)
    assert {t.get_text() for t in ax.texts} == {"told", "true"}
    for line, name in zip(ax.lines, table, strict=True):
        np.testing.assert_array_equal(line.get_ydata(), table[name])
    assert (ax.get_xscale() == "log") == log


@pytest.mark.parametrize("values", [[-0.05, -0.04, -0.06], [-0.01, -0.02, 0.0]])
def test_kappa_gaps_counts_every_study_and_marks_mean_and_margin(values):
    ax = rb.plots.kappa_gaps(values, margin=-0.03)
    assert sum(bar.get_height() for bar in ax.patches) == 3
    at = sorted(line.get_xdata()[0] for line in ax.lines)
    assert at == pytest.approx(sorted([np.mean(values), -0.03]))
    left, right = sorted(ax.texts, key=lambda t: t.get_position()[0])
    assert (left.get_ha(), right.get_ha()) == ("right", "left")  # the words never overlap


def test_scores_by_first_level_sorts_levels_and_leaves_gaps():
    table = pd.DataFrame({"first": [5, 1, 3], "method": "dhs", "estimate": [3.2, 2.8, np.nan],
                          "low": [3.0, 2.5, np.nan], "high": [3.5, 3.0, np.nan]})  # fmt: skip
    ax = rb.plots.scores_by_first_level(table)
    np.testing.assert_allclose(ax.lines[0].get_ydata(), [2.8, np.nan, 3.2])
    np.testing.assert_array_equal(ax.lines[0].get_xdata(), [1, 3, 5])
    assert [t.get_text() for t in ax.texts] == ["dhs"]


def test_locking_has_a_named_line_per_method():
    table = pd.DataFrame({"difficulty": [0, 1, 0, 1], "qwk": [0.8, 0.8, 0.8, 0.5],
                          "method": ["locked", "locked", "unlocked", "unlocked"]})  # fmt: skip
    ax = rb.plots.locking(table)
    assert {t.get_text() for t in ax.texts} == {"locked", "unlocked"}
    np.testing.assert_allclose([line.get_ydata() for line in ax.lines], [[0.8, 0.8], [0.8, 0.5]])
    assert len({line.get_marker() for line in ax.lines}) == 2


def test_verification_fills_every_bar_and_numbers_what_can_be_read():
    status = ["verified", "not found", "too short", "verified"]
    units = ["naive"] * 3 + ["whole"]
    table = pd.DataFrame({"units": units, "status": status, "share": [0.5, 0.48, 0.02, 1.0]})
    ax = rb.plots.verification(table)
    assert [t.get_text() for t in ax.get_yticklabels()] == ["naive", "whole"]
    assert {t.get_text() for t in ax.texts} == {"50 %", "48 %", "100 %"}
    width = np.zeros(2)
    for bar in ax.patches:
        width[round(bar.get_y() + 0.3)] += bar.get_width()
    np.testing.assert_allclose(width, [1, 1])
    assert len({bar.get_hatch() for bar in ax.patches}) == 3


def test_gate_puts_refused_scores_in_brackets():
    table = pd.DataFrame(np.arange(15).reshape(3, 5), index=range(3), columns=range(1, 6))
    ax = rb.plots.gate(table, tau=4)
    refused = {t.get_text() for t in ax.texts if t.get_text().startswith("(")}
    assert refused == {"(3)", "(4)", "(8)", "(9)"}
    assert len(ax.texts) == 15
