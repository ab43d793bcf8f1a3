"""Figures: one function each, a tidy frame and ``ax=None`` in, the Axes out.

The style is a file of matplotlib's, ``matplotlib.rc_file(rubricnb.book.plots.STYLE)``.
What tells things apart is never colour alone: lines carry markers and labels, cells
carry numbers. A judge and a dataset have one colour and one marker throughout the book
(`styles`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from functools import cache
from itertools import cycle
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from rubricnb.core.support.extras import not_installed
from rubricnb.core.support.types import FloatArray

try:
    import matplotlib.pyplot as plt
except ModuleNotFoundError as error:
    raise not_installed(error, "plots", "rubricnb.book.plots") from None

if TYPE_CHECKING:
    from matplotlib.axes import Axes

STYLE = Path(__file__).with_name("matplotlibrc")
"""The style of the book's figures and of an audit's.

:meta hide-value:
"""

MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<", ">", "*")
QUIET = "#595959"

_ESTIMATE_SUFFIXES = ("", "_low", "_high")
LineEnd = tuple[float, str, Any]
# of small text, with six for each marker: what a figure of 6 inches holds
_LEGEND_CHARS = 66


def styles(names: Iterable[Any]) -> dict[Any, tuple[str, str]]:
    """Return the colour and the marker of every series of a figure.

    Parameters
    ----------
    names
        Of the series; the case of letters does not matter. After a comma a name may say
        more, such as where a judge's answers come from, unless two begin in the same
        way.

    Returns
    -------
    dict
        Name → colour and marker. Judges (by `rubricnb.book.tables.short_names`) and
        datasets of ``series.csv`` have their own whatever else is drawn; others get
        what these leave.

    Examples
    --------
    >>> styles(["our judge", "Qwen 1.5B"])
    {'our judge': ('C1', 's'), 'Qwen 1.5B': ('C0', 'D')}
    >>> styles(["SummEval"])["SummEval"] == styles(["hanna", "summeval"])["summeval"]
    True
    """
    head_of_name = {name: str(name).lower().partition(", ")[0] for name in names}
    n_names = Counter(head_of_name.values())
    known_styles = _known_series()[["colour", "marker"]].agg(tuple, axis=1).to_dict()
    style_of_name = {
        name: known_styles.get(head if n_names[head] == 1 else str(name).lower())
        for name, head in head_of_name.items()
    }
    taken = {part for style in style_of_name.values() if style for part in style}
    colours = [f"C{k}" for k in range(7)]
    all_styles = [*zip(colours * 10, MARKERS * 7, strict=True)]
    free = [
        style
        for style in all_styles
        if not taken & set(style) and style not in known_styles.values()
    ]
    next_free = cycle(free or all_styles)
    return {name: style or next(next_free) for name, style in style_of_name.items()}


def display_name(name: Any) -> str:
    """Return the name of a judge or a dataset as figures print it.

    Examples
    --------
    >>> [display_name(name) for name in ("hanna", "summeval, balanced", "my data")]
    ['HANNA', 'SummEval, balanced', 'my data']
    """
    head, comma, rest = str(name).partition(", ")
    return str(_known_series()["name"].get(head.lower(), head)) + comma + rest


@cache
def _known_series() -> pd.DataFrame:
    table = pd.read_csv(Path(__file__).with_name("series.csv"))
    return table.set_index(table["name"].str.lower())


def position_selection(
    table: pd.DataFrame, label: str = "judge", ax: Axes | None = None
) -> Axes:
    """Draw how often each position is selected, with intervals and the uniform share.

    Parameters
    ----------
    table
        What `rubricnb.position_bias` returns, one line a row.
    label
        The column that names the lines, each once.
    ax
        Where to draw; default: new axes.

    Returns
    -------
    Axes
        Every line is named at its end.

    Notes
    -----
    arXiv:2602.02219v2, Figure 4; v1, Figure 5.

    Examples
    --------
    >>> import rubricnb as rb
    >>> items = rb.load("minibench", n_items=30)
    >>> judgments = rb.simulate(rb.plan(items, rb.balanced(5)), items, "first-biased")
    >>> ax = position_selection(rb.position_bias(judgments))
    >>> [t.get_text() for t in ax.texts]
    ['simulated:first-biased', 'uniform']
    >>> plt.close(ax.figure)
    """
    ax = ax or plt.figure().add_subplot()
    n_positions = len(table.filter(regex=r"^share_\d+$").columns)
    ax.axhline(100 / n_positions, color=QUIET, linestyle=":", linewidth=1.2)
    shares = [
        table[[label]].assign(
            place=position,
            **{
                f"share{suffix}": 100 * table[f"share_{position}{suffix}"]
                for suffix in _ESTIMATE_SUFFIXES
            },
        )
        for position in range(1, n_positions + 1)
    ]
    line_ends = interval_lines(
        pd.concat(shares), "place", "share", label, ax, aside=0.08
    )
    ax.set(
        xlabel="position in the prompt, from the top",
        xlim=(0.7, n_positions + 0.3),
        xticks=range(1, n_positions + 1),
        ylabel="selected, % of reads",
    )
    end_labels(
        ax, n_positions + 0.3, [(100 / n_positions, "uniform", QUIET), *line_ends]
    )
    return ax


def null_quantiles(table: pd.DataFrame, df: int) -> Axes:
    """Draw test statistics of studies without an effect against their reference.

    Parameters
    ----------
    table
        Columns ``statistic`` (its name) and ``value``; one row per study and statistic.
    df
        Degrees of freedom of that χ² distribution.

    Returns
    -------
    Axes
        On the diagonal a test keeps its level; below it, it rejects too rarely.

    Examples
    --------
    >>> table = pd.DataFrame({"statistic": "Q", "value": [9.0, 1.0, 3.0]})
    >>> ax = null_quantiles(table, 4)
    >>> ax.lines[0].get_ydata().tolist()
    [1.0, 3.0, 9.0]
    >>> plt.close(ax.figure)
    """
    from scipy.stats import chi2

    ax = plt.figure().add_subplot()
    threshold = float(chi2.isf(0.05, df))
    top, line_ends = threshold, []
    styled = styles(table["statistic"])
    known = table.dropna(subset="value")
    for name, studies in known.groupby("statistic", sort=False):
        colour, marker = styled[name]
        values = np.sort(studies["value"].to_numpy(float))
        # the k-th of n sorted values is compared with the quantile (k − 0.5)/n
        expected = chi2.ppf((np.arange(len(values)) + 0.5) / len(values), df)
        ax.plot(expected, values, marker, color=colour, markersize=4.5)
        top = max(top, expected[-1], values[-1])
        line_ends.append((float(values[-1]), str(name), colour))
    limits = (0, 1.06 * top)
    ax.plot(limits, limits, color=QUIET, linewidth=1)
    ax.axhline(threshold, color=QUIET, linestyle=":", linewidth=1.2)
    line_ends.append((threshold, f"5 %: {threshold:.2f}", QUIET))
    ax.set(
        xlim=limits,
        ylim=limits,
        xlabel=f"quantile of χ² with {df} degrees of freedom",
        ylabel="statistic, sorted",
    )
    end_labels(ax, limits[1], line_ends)
    return ax


def forest(
    table: pd.DataFrame,
    label: str = "judge",
    series: str = "strategy",
    reference: float | None = None,
    ax: Axes | None = None,
    value: str = "estimate",
    scale: float = 1,
) -> Axes:
    """Draw estimates with intervals: a row per label, a marker per series.

    Parameters
    ----------
    table
        Columns `label`, `series` and `value`, with ``{value}_low`` and ``{value}_high``
        or ``low`` and ``high``; an interval may be NaN.
    label
        The column that names the rows; the first one is on top.
    series
        The column that tells markers of one row apart; the name itself if there is no
        such column.
    reference
        Where to draw a dotted line.
    ax
        Where to draw; default: new axes.
    value
        The column of the estimates.
    scale
        What the numbers are multiplied with.

    Returns
    -------
    Axes
        Markers are filled where the interval excludes `reference`, else open (also
        without an interval); without a reference all are filled.

    Notes
    -----
    arXiv:2602.02219v2, Figure 8.

    Examples
    --------
    >>> table = pd.DataFrame({
    ...     "judge": ["a", "b"], "strategy": "fixed", "estimate": [0.4, 0.5],
    ...     "low": [0.3, 0.4], "high": [0.5, 0.6]})
    >>> ax = forest(table)
    >>> [t.get_text() for t in ax.get_yticklabels()]
    ['a', 'b']
    >>> plt.close(ax.figure)
    """
    ax = ax or plt.figure().add_subplot()
    row_of = {name: k for k, name in enumerate(table[label].drop_duplicates())}
    prefix = f"{value}_" if f"{value}_low" in table else ""
    columns = [value, f"{prefix}low", f"{prefix}high"]
    series_of_row = table[series] if series in table else pd.Series(series, table.index)
    series_groups = list(table.groupby(series_of_row, observed=True, sort=False))
    for k, (name, points) in enumerate(series_groups):
        # the markers of one row share 0.6 of its height
        shift = 0.6 * ((k + 0.5) / len(series_groups) - 0.5)
        y = points[label].astype(object).map(row_of).to_numpy(float) + shift
        colour, marker = styles(series_of_row)[name]
        middle, low, high = (scale * points[c].to_numpy(float) for c in columns)
        ax.hlines(y, low, high, color=colour, linewidth=1.4)
        is_filled = np.ones(len(y), bool)
        if reference is not None:
            is_filled = (low > reference) | (high < reference)
        for is_drawn, fill in ((is_filled, colour), (~is_filled, "none")):
            ax.plot(
                middle[is_drawn],
                y[is_drawn],
                marker,
                markersize=6,
                color=colour,
                markerfacecolor=fill,
            )
        ax.plot(
            [], [], marker=marker, color=colour, linewidth=1.4, label=display_name(name)
        )
    if reference is not None:
        ax.axvline(reference, color=QUIET, linestyle=":", linewidth=1.2)
    ax.set_yticks(list(row_of.values()), [str(name) for name in row_of])
    ax.set(ylim=(len(row_of) - 0.5, -0.5))
    legend_above(ax)
    return ax


def legend_above(ax: Axes) -> None:
    """Name the series of a figure above it, in as many columns as it has room for.

    Parameters
    ----------
    ax
        Its handles are named; with fewer than two there is nothing to tell apart.

    Examples
    --------
    >>> ax = plt.figure().add_subplot()
    >>> for design in ("balanced", "williams", "shuffled", "fixed"):
    ...     _ = ax.plot([1, 2], label=f"hanna, {design}")
    >>> legend_above(ax)
    >>> ax.get_legend()._ncols
    3
    >>> plt.close(ax.figure)
    """
    names = ax.get_legend_handles_labels()[1]
    if len(names) > 1:
        columns = max(1, min(len(names), _LEGEND_CHARS // (max(map(len, names)) + 6)))
        ax.legend(
            loc="lower right", bbox_to_anchor=(1, 1), ncols=columns, fontsize="small"
        )


def score_tendency(table: pd.DataFrame, people: str = "people") -> Axes:
    """Draw how often each score is given, in per cent: a row for each condition.

    Parameters
    ----------
    table
        From `rubricnb.score_tendency`, with a column ``condition`` that names the rows.
        Where it has ``human_1…n``, those of the first row make a row on top.
    people
        The name of the row on top.

    Returns
    -------
    Axes

    Notes
    -----
    arXiv:2506.22316, Figure 5.

    Examples
    --------
    >>> table = pd.DataFrame({
    ...     "condition": ["none"], "share_1": [0.25], "share_2": [0.75],
    ...     "human_1": [0.5], "human_2": [0.5]})
    >>> ax = score_tendency(table)
    >>> [t.get_text() for t in ax.texts], [t.get_text() for t in ax.get_yticklabels()]
    (['50', '50', '25', '75'], ['people', 'none'])
    >>> plt.close(ax.figure)
    """
    of_judge = table.filter(regex=r"^share_\d+$")
    scores = of_judge.columns.str.removeprefix("share_")
    shares = of_judge.to_numpy(float)
    names = table["condition"].astype(str).tolist()
    if "human_1" in table:
        of_people = table[[*"human_" + scores]].to_numpy(float)
        shares, names = np.vstack([of_people[:1], shares]), [people, *names]
    ax = plt.figure().add_subplot()
    heat(100 * shares, ax, "score", "", lowest=0, number="{:.0f}")
    ax.set_xticks(range(1, len(scores) + 1), scores)
    ax.set_yticks(range(1, len(names) + 1), names)
    return ax


def sizes(table: pd.DataFrame, ax: Axes) -> Axes:
    """Draw columns against sizes on a logarithmic axis, each named at its end."""
    line_ends = curves(table, ax)
    ax.set_xscale("log")
    ax.set_xticks(table.index, [f"{size:,.0f}" for size in table.index])
    ax.minorticks_off()
    ax.set_ylim(0, None)
    end_labels(ax, 1.05 * float(table.index[-1]), line_ends)
    return ax


def curves(table: pd.DataFrame, ax: Axes) -> list[LineEnd]:
    """Draw every column against the index.

    Returns
    -------
    list of tuple
        Where each line ends, its name and its colour, as `end_labels` takes them.

    Examples
    --------
    >>> ax = plt.figure().add_subplot()
    >>> [end[:2] for end in curves(pd.DataFrame({"r": [0.1, 0.3]}, index=[10, 20]), ax)]
    [(0.3, 'r')]
    >>> plt.close(ax.figure)
    """
    long = table.rename_axis(index="x", columns="name").melt(ignore_index=False)
    return interval_lines(long.reset_index(), "x", "value", "name", ax)


def reach(table: pd.DataFrame, value: str) -> FloatArray | None:
    """Return the distances of ``{value}_low`` and ``_high`` from `value`, or None.

    It is 0 where an end is not known.
    """
    if f"{value}_low" not in table:
        return None
    middle, low, high = (
        table[f"{value}{suffix}"].to_numpy(float) for suffix in _ESTIMATE_SUFFIXES
    )
    return np.maximum(np.nan_to_num([middle - low, high - middle]), 0)


def interval_lines(
    table: pd.DataFrame, x: str, value: str, label: str, ax: Axes, aside: float = 0.0
) -> list[LineEnd]:
    """Draw `value` against `x`: a line for each `label`, with intervals if known.

    Parameters
    ----------
    table
        Columns `x`, `value`, `label` and, for intervals, ``{value}_low`` and
        ``{value}_high``.
    x, value, label
        Columns: the abscissa, the ordinate, and what tells lines apart.
    ax
        Where to draw.
    aside
        Distance between lines with intervals, so that their bars can be told from each
        other.

    Returns
    -------
    list
        Where each line ends, its name and its colour, for `end_labels`.

    Examples
    --------
    >>> table = pd.DataFrame({"n": [3, 2], "V": [0.1, 0.2], "judge": "a"})
    >>> ax = plt.figure().add_subplot()
    >>> [(end, name) for end, name, _ in interval_lines(table, "n", "V", "judge", ax)]
    [(0.1, 'a')]
    >>> plt.close(ax.figure)
    """
    line_ends = []
    lines = list(table.groupby(label, observed=True, sort=False))
    for k, (name, line) in enumerate(lines):
        line = line[line[value].notna()].sort_values(x)
        if line.empty:
            continue
        bars = reach(line, value)
        place = line[x] + (0.0 if bars is None else aside * (k - (len(lines) - 1) / 2))
        colour, marker = styles(table[label])[name]
        y = line[value].to_numpy(float)
        ax.errorbar(place, y, bars, marker=marker, color=colour, elinewidth=1.1)
        line_ends.append((float(y[-1]), display_name(name), colour))
    return line_ends


def heat(
    table: NDArray[Any],
    ax: Axes,
    xlabel: str,
    ylabel: str,
    *,
    lowest: float | None = None,
    highest: float | None = None,
    number: str = "{:g}",
) -> Axes:
    """Draw a table of numbers, counted from 1; NaN cells stay empty."""
    table = np.asarray(table, float)
    n_rows, n_columns = table.shape
    low = np.nanmin(table) if lowest is None else lowest
    high = np.nanmax(table) if highest is None else highest
    extent = (0.5, n_columns + 0.5, n_rows + 0.5, 0.5)
    ax.imshow(table, extent=extent, aspect="auto", vmin=low, vmax=high)
    for row, column in zip(*np.nonzero(np.isfinite(table)), strict=True):
        value = float(table[row, column])
        ax.text(
            column + 1,
            row + 1,
            number.format(value),
            ha="center",
            va="center",
            size="medium" if n_columns < 7 else "x-small",
            color="white" if value - low < 0.55 * (high - low) else "black",
        )
    ax.grid(False)
    ax.set(
        xlabel=xlabel,
        ylabel=ylabel,
        xticks=range(1, n_columns + 1),
        yticks=range(1, n_rows + 1),
    )
    ax.tick_params(length=0)
    return ax


def end_labels(ax: Axes, x: float, ends: list[LineEnd]) -> None:
    """Name lines at their ends, in their colours; overlapping names are moved apart."""
    ends = sorted((end for end in ends if np.isfinite(end[0])), key=lambda end: end[0])
    low, high = ax.get_ylim()
    box = ax.get_position(original=True)
    points = max(box.height * ax.figure.get_figheight() * 72, 1.0)  # type: ignore[union-attr]
    line_height = 12 * (high - low) / points  # twelve points: a line of small text
    heights = np.array([end[0] for end in ends])
    for _ in range(100):  # neighbours share what they overlap; a few rounds settle it
        half_overlap = np.maximum(line_height - np.diff(heights), 0) / 2
        if not (half_overlap > line_height / 100).any():
            break
        heights[:-1] -= half_overlap
        heights[1:] += half_overlap
    for (_, name, colour), height in zip(ends, heights, strict=True):
        ax.annotate(
            name,
            (x, height),
            (4, 0),
            textcoords="offset points",
            va="center",
            color=colour,
            fontsize="small",
            annotation_clip=False,
        )
