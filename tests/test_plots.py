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
