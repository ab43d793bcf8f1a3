"""Figures: what is drawn is what the frame says, on the axes that were given."""

import re
from itertools import combinations
from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib.colors import to_rgb

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
    counts = rb.neighbour_counts(rb.shuffled(n, k).orderings("item", seed)).astype(
        float
    )
    np.fill_diagonal(counts, np.nan)
    drawn = _numbers(
        rb.plots.heat(counts, plt.figure().gca(), "after", "score", lowest=0)
    )
    plt.close("all")
    assert drawn == {
        (a + 1, b + 1): v for (a, b), v in np.ndenumerate(counts) if a != b
    }


def test_heat_map_numbers_stand_out_from_their_cells():
    ax = rb.plots.heat(np.array([[0, 3], [1, 2]]), plt.figure().gca(), "", "")
    image = ax.images[0]
    for text in ax.texts:
        column, row = (round(x) - 1 for x in text.get_position())
        ground = np.dot(
            image.to_rgba(image.get_array())[row, column, :3], [0.2126, 0.7152, 0.0722]
        )
        ink = np.dot(mpl.colors.to_rgb(text.get_color()), [0.2126, 0.7152, 0.0722])
        assert abs(ground - ink) > 0.4


def test_names_at_line_ends_keep_apart_and_in_order():
    table = pd.DataFrame(
        {"a": [1, 0.5], "b": [1, 0.501], "c": [1, 0.502], "d": [1, 0.1]}
    )
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


def test_statistics_of_a_valid_test_lie_on_the_diagonal():
    value = [*np.random.default_rng(0).chisquare(4, 4000), np.nan]
    ax = rb.plots.null_quantiles(pd.DataFrame({"statistic": "x", "value": value}), 4)
    expected, drawn = ax.lines[0].get_data()
    middle = slice(200, 3800)
    np.testing.assert_allclose(drawn[middle], expected[middle], rtol=0.15, atol=0.05)


def _estimates(n, seed):
    rng = np.random.default_rng(seed)
    middle, reach = rng.normal(size=n), rng.uniform(0.2, 1, n)
    table = pd.DataFrame(
        {"estimate": middle, "low": middle - reach, "high": middle + reach}
    )
    table.loc[n - 1, ["low", "high"]] = np.nan  # a marker without an interval is open
    return table


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
        round(row.estimate, 9): row.low > 0 or row.high < 0
        for row in table.itertuples()
    }
    assert [t.get_text() for t in ax.get_yticklabels()] == list("abcd")
    assert ax.yaxis_inverted()


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


SERIES = pd.read_csv(rb.plots.STYLE.with_name("series.csv"))


@settings(max_examples=30, deadline=None)
@given(
    drawn=st.lists(
        st.sampled_from([*SERIES["name"], "our judge", "BALANCED", "x"]), unique=True
    ),
    shouted=st.booleans(),
)
def test_a_judge_and_a_dataset_look_the_same_whatever_else_is_drawn(drawn, shouted):
    own = SERIES.set_index("name")
    given_names = [name.upper() if shouted else name for name in drawn]
    styles = rb.plots.styles(given_names)
    assert list(styles) == given_names
    for name, style in zip(drawn, styles.values(), strict=True):
        if name in own.index:
            assert style == tuple(own.loc[name, ["colour", "marker"]])


def test_a_name_may_say_more_after_a_comma_unless_two_would_look_the_same():
    names = [
        "Qwen 1.5B",
        "SmolLM2, live",
        "hanna, BALANCED",
        "hanna, FIXED",
        "vicuna",
        "vicuna, x",
    ]
    styles = rb.plots.styles(names)
    known = rb.plots.styles(["Qwen 1.5B", "SmolLM2", "hanna", "vicuna"])
    assert styles["SmolLM2, live"] == known["SmolLM2"]
    assert (styles["Qwen 1.5B"], styles["vicuna"]) == (
        known["Qwen 1.5B"],
        known["vicuna"],
    )
    assert len(set(styles.values())) == len(names)
    assert known["hanna"] not in styles.values()


@pytest.mark.parametrize("n", [1, 4])
def test_what_has_no_style_of_its_own_keeps_apart_from_what_has(n):
    others = [f"simulated {k}" for k in range(n)]
    styles = rb.plots.styles(["Qwen 1.5B", *others])
    assert len({colour for colour, _ in styles.values()}) == n + 1
    assert len({marker for _, marker in styles.values()}) == n + 1
    alone = set(rb.plots.styles(others).values())
    assert not alone & set(zip(SERIES["colour"], SERIES["marker"], strict=True))


def test_no_two_judges_or_datasets_look_the_same():
    assert not SERIES["name"].str.lower().duplicated().any()
    assert not SERIES.duplicated(["colour", "marker"]).any()
    # they are drawn together
    assert SERIES.query("kind == 'dataset'")["colour"].is_unique
    # the seventh is that of rules
    assert set(SERIES["colour"]) <= {f"C{k}" for k in range(6)}
    assert set(SERIES["marker"]) <= set(rb.plots.MARKERS)


@pytest.mark.parametrize("order", [1, -1])
def test_every_figure_draws_a_dataset_in_the_same_way(order, bias):
    """Lines over positions, over sizes, wide tables and forests,
    in either order of the rows.
    """
    names = ["hanna", "minibench", "vicuna"][::order]
    wanted = {n: rb.plots.styles([n])[n] for n in names}
    rows = pd.concat([bias.iloc[[0]].assign(dataset=name) for name in names])
    estimates = pd.DataFrame(
        {"dataset": names, "judge": "a", "estimate": 0.1, "low": 0, "high": 1}
    )
    lines = pd.DataFrame(
        {"n": [1, 2] * 3, "V": range(6), "dataset": np.repeat(names, 2)}
    )
    for draw in (
        lambda ax: rb.plots.position_selection(rows, "dataset", ax),
        lambda ax: rb.plots.interval_lines(lines, "n", "V", "dataset", ax),
        lambda ax: rb.plots.curves(
            lines.pivot(index="n", columns="dataset")["V"][names], ax
        ),
        lambda ax: rb.plots.forest(estimates, series="dataset", ax=ax),
    ):
        ax = plt.figure().add_subplot()
        draw(ax)
        seen = [(line.get_color(), line.get_marker()) for line in ax.lines]
        seen = [style for style in seen if style in wanted.values()]
        assert list(dict.fromkeys(seen)) == list(wanted.values())


def _dark(rgb):
    """What the book's dark theme makes of a colour of a figure,
    and the ground it stands on.
    """
    css = (Path(__file__).parents[2] / "_static/custom.css").read_text("utf-8")
    rule = re.search(
        r"img\.dark-light.*filter: invert\((.*?)\) hue-rotate\(180deg\)", css
    )
    turned = (1 - 2 * float(rule.group(1))) * rgb + float(rule.group(1))
    # Filter Effects, feColorMatrix hueRotate:
    # at 180 degrees the sine is 0 and the cosine -1
    grey = np.array([0.213, 0.715, 0.072])
    ground = re.search(
        r'data-theme="dark"\] \{[^}]*--pst-color-background: (#\w+)', css
    )
    return np.clip(2 * (turned @ grey) - turned, 0, 1), np.array(
        to_rgb(ground.group(1))
    )


def _linear(rgb):
    return np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)


def _contrast(a, b):
    """Of WCAG 2."""
    light, dark = sorted(float(_linear(c) @ [0.2126, 0.7152, 0.0722]) for c in (a, b))[
        ::-1
    ]
    return (light + 0.05) / (dark + 0.05)


PALETTE = [
    to_rgb(c)
    for c in mpl.rc_params_from_file(rb.plots.STYLE)["axes.prop_cycle"].by_key()[
        "color"
    ]
]


@pytest.mark.parametrize("colour", PALETTE)
def test_every_colour_is_read_as_text_on_the_light_and_on_the_dark_page(colour):
    colour = np.array(colour)
    assert _contrast(colour, np.ones(3)) >= 4.5
    assert _contrast(*_dark(colour)) >= 4.5


# Machado, Oliveira and Fernandes 2009, severity 1, for linear RGB.
SEEN = {
    "all": np.eye(3),
    "no long waves": [
        [0.152286, 1.052583, -0.204868],
        [0.114503, 0.786281, 0.099216],
        [-0.003882, -0.048116, 1.051998],
    ],
    "no middle waves": [
        [0.367322, 0.860646, -0.227968],
        [0.280085, 0.672501, 0.047413],
        [-0.011820, 0.042940, 0.968881],
    ],
    "no short waves": [
        [1.255528, -0.076749, -0.178779],
        [-0.078411, 0.930809, 0.147602],
        [0.004733, 0.691367, 0.303900],
    ],
}


def _oklab(linear):
    """Ottosson 2020: distances in it are about as large as they look."""
    cones = [
        [0.41222147, 0.53633254, 0.05144599],
        [0.21190350, 0.68069955, 0.10739696],
        [0.08830246, 0.28171884, 0.62997870],
    ]
    mixed = [
        [0.21045426, 0.79361779, -0.00407205],
        [1.97799850, -2.42859221, 0.45059371],
        [0.02590404, 0.78277177, -0.80867577],
    ]
    return np.array(mixed) @ np.cbrt(np.array(cones) @ np.clip(linear, 0, 1))


@pytest.mark.parametrize("eye", SEEN)
@pytest.mark.parametrize("dark", [False, True])
def test_colours_can_be_told_apart_by_every_eye(eye, dark):
    shown = [_dark(np.array(c))[0] if dark else np.array(c) for c in PALETTE]
    seen = [_oklab(np.array(SEEN[eye]) @ _linear(c)) for c in shown]
    gaps = [np.linalg.norm(a - b) for a, b in combinations(seen, 2)]
    assert min(gaps) > 0.06  # three just noticeable differences
