"""Figures: one function each, a tidy frame and ``ax=None`` in, the Axes out.

The style is the ``matplotlibrc`` of the repository. What tells things apart is never colour alone:
lines carry markers and labels, cells carry numbers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from rubricnb import permutation

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<", ">", "*")
_QUIET = "#595959"


def orderings(orderings: ArrayLike, ax: Axes | None = None) -> Axes:
    """Draw orderings as a heat map: a row per read, a column per position, the score in the cell.

    Parameters
    ----------
    orderings
        Array (k, n), as a design gives it.
    ax
        Where to draw; default: new axes.

    Returns
    -------
    Axes

    Notes
    -----
    arXiv:2602.02219v2, Figure 3.

    Examples
    --------
    >>> ax = orderings([[1, 2, 3], [3, 1, 2]])
    >>> [t.get_text() for t in ax.texts]
    ['1', '2', '3', '3', '1', '2']
    >>> plt.close(ax.figure)
    """
    return _heat(np.asarray(orderings), _axes(ax), "position", "read")


def position_counts(orderings: ArrayLike, ax: Axes | None = None) -> Axes:
    """Draw how often each score stands at each position.

    Parameters
    ----------
    orderings
        Array (k, n), as a design gives it.
    ax
        Where to draw; default: new axes.

    Returns
    -------
    Axes

    Examples
    --------
    >>> ax = position_counts([[1, 2], [1, 2]])
    >>> [t.get_text() for t in ax.texts]
    ['2', '0', '0', '2']
    >>> plt.close(ax.figure)
    """
    counts = permutation.position_counts(orderings)
    return _heat(counts, _axes(ax), "position", "score", lowest=0)


def neighbour_counts(orderings: ArrayLike, ax: Axes | None = None) -> Axes:
    """Draw how often each score stands directly before each other one.

    Parameters
    ----------
    orderings
        Array (k, n), as a design gives it.
    ax
        Where to draw; default: new axes.

    Returns
    -------
    Axes
        The diagonal is empty: no score stands before itself.

    Examples
    --------
    >>> ax = neighbour_counts([[1, 2], [1, 2]])
    >>> [t.get_text() for t in ax.texts]
    ['2', '0']
    >>> plt.close(ax.figure)
    """
    counts = permutation.neighbour_counts(orderings).astype(np.float64)
    np.fill_diagonal(counts, np.nan)
    return _heat(counts, _axes(ax), "stands directly after", "score", lowest=0)


def option_probabilities(
    options: pd.DataFrame, by: str = "ordering", ax: Axes | None = None
) -> Axes:
    """Draw the probability of every score, one line for each ordering (or criterion, or judge).

    Parameters
    ----------
    options
        From `rubricnb.statistics.option_probabilities`; averaged over what `by` does not tell
        apart.
    by
        The column that tells lines apart.
    ax
        Where to draw; default: new axes.

    Returns
    -------
    Axes

    Notes
    -----
    arXiv:2602.02219v2, Figure 1.

    Examples
    --------
    >>> options = pd.DataFrame(
    ...     {"ordering": ["1-2", "1-2"], "score": [1, 2], "probability": [0.7, 0.3]})
    >>> ax = option_probabilities(options)
    >>> ax.lines[0].get_ydata().tolist()
    [0.7, 0.3]
    >>> plt.close(ax.figure)
    """
    ax = _axes(ax)
    table = _means(options, "score", by)
    _lines(table, ax)
    ax.set(xlabel="score", ylabel="probability", ylim=(-0.03, 1.03))
    if table.shape[1] > 1:
        ax.legend(title=by.replace("_", " "), title_fontsize="small")
    return ax


def probability_by_position(options: pd.DataFrame, ax: Axes | None = None) -> Axes:
    """Draw the probability of every score against the position at which it stood.

    Parameters
    ----------
    options
        From `rubricnb.statistics.option_probabilities`, of a design that moves scores.
    ax
        Where to draw; default: new axes.

    Returns
    -------
    Axes
        A line per score, marked and labelled with it, through the mean of its reads at each
        position; a dot per read; dashed, 1/n. Flat lines mean that position does not matter.

    Notes
    -----
    arXiv:2602.02219v2, §1 and Figure 2.

    Examples
    --------
    >>> options = pd.DataFrame(
    ...     {"score": [1, 2, 2, 1], "position": [1, 2, 1, 2], "probability": [0.9, 0.1, 0.8, 0.2]})
    >>> ax = probability_by_position(options)
    >>> ax.lines[0].get_ydata().tolist(), ax.lines[1].get_ydata().tolist()
    ([0.9, 0.2], [0.8, 0.1])
    >>> plt.close(ax.figure)
    """
    ax = _axes(ax)
    table = _means(options, "position", "score")
    for colour, score in zip(_colours(table.shape[1]), table, strict=True):
        ax.plot(table.index, table[score], color=colour, marker=f"${score}$", markersize=9)
        reads = options[options["score"] == score]
        ax.scatter(reads["position"], reads["probability"], s=9, color=colour, alpha=0.6, zorder=3)
    _uniform(ax, table.shape[1])
    ax.set(xlabel="position at which the score stood", ylabel="probability of the score")
    ax.set(xticks=table.index)
    _from_zero(ax)
    return ax


def score_by_position(options: pd.DataFrame, ax: Axes | None = None) -> Axes:
    """Draw the mean probability of each score at each position, with both margins.

    Under a balanced design the mean of a column is the share of the position and the mean of a row
    the share of the score. Under one fixed ordering only the diagonal is seen, and the two margins
    are the same numbers.

    Parameters
    ----------
    options
        From `rubricnb.statistics.option_probabilities`.
    ax
        Where to draw; default: new axes.

    Returns
    -------
    Axes
        Cells that the design never shows are empty. Margins are shares of the reads in per cent.

    Notes
    -----
    arXiv:2602.02219v2, Figure 2.

    Examples
    --------
    >>> options = pd.DataFrame(
    ...     {"score": [1, 2, 2, 1], "position": [1, 2, 1, 2], "probability": [0.9, 0.1, 0.8, 0.2]})
    >>> ax = score_by_position(options)
    >>> [t.get_text() for t in ax.texts]
    ['90', '20', '80', '10', '85', '15', '55', '45']
    >>> plt.close(ax.figure)
    """
    ax = _axes(ax)
    percent = options.assign(probability=100 * options["probability"])
    table = _means(percent, "score", "position")
    n = len(table)
    _heat(table.to_numpy(), ax, "position", "score", lowest=0, number="{:.0f}")
    reads, margin = len(percent) / n, n + 0.18 * n
    for name, place in (("position", lambda k: (k, margin)), ("score", lambda k: (margin, k))):
        for value, share in (percent.groupby(name)["probability"].sum() / reads).items():
            x, y = place(value)
            ax.text(x, y, f"{share:.0f}", ha="center", va="center", weight="bold")
    ticks, names = [*range(1, n + 1), margin], [*map(str, range(1, n + 1)), "share"]
    ax.set(xlim=(0.5, margin + 0.5), ylim=(margin + 0.5, 0.5))
    ax.set_xticks(ticks, names)
    ax.set_yticks(ticks, names)
    ax.spines[:].set_visible(False)
    return ax


def position_shares(shares: pd.DataFrame, by: str = "judge", ax: Axes | None = None) -> Axes:
    """Draw the share of the reads that chose each position, one line per judge.

    Parameters
    ----------
    shares
        Columns `by`, position and share (0 to 1).
    by
        The column that tells lines apart.
    ax
        Where to draw; default: new axes.

    Returns
    -------
    Axes
        Dashed, the share 1/n of a judge whose answers do not follow positions.

    Notes
    -----
    arXiv:2602.02219v2, Figure 4.

    Examples
    --------
    >>> shares = pd.DataFrame({"judge": ["a", "a"], "position": [1, 2], "share": [0.6, 0.4]})
    >>> ax = position_shares(shares)
    >>> ax.lines[0].get_ydata().tolist()
    [60.0, 40.0]
    >>> plt.close(ax.figure)
    """
    ax = _axes(ax)
    percent = shares.assign(probability=100 * shares["share"])
    table = _means(percent, "position", by)
    _lines(table, ax)
    _uniform(ax, len(table), scale=100)
    ax.set(xlabel="position", ylabel="share of the reads in %")
    _from_zero(ax)
    ax.legend(title=by.replace("_", " "), title_fontsize="small")
    return ax


def rating_histogram(table: pd.DataFrame, ax: Axes | None = None) -> Axes:
    """Draw how ratings are spread over the levels, one line per criterion.

    Parameters
    ----------
    table
        Columns ``criterion, level, count``.
    ax
        Where to draw; default: new axes.

    Returns
    -------
    Axes
        Shares of the items in per cent; every line is named at its end.

    Examples
    --------
    >>> table = pd.DataFrame({"criterion": ["c", "c"], "level": [1, 2], "count": [1, 3]})
    >>> ax = rating_histogram(table)
    >>> ax.lines[0].get_ydata().tolist(), ax.texts[0].get_text()
    ([25.0, 75.0], 'c')
    >>> plt.close(ax.figure)
    """
    ax = _axes(ax)
    ends = []
    for k, (criterion, part) in enumerate(table.groupby("criterion", sort=False, observed=True)):
        part = part.sort_values("level")
        share = 100 * part["count"].to_numpy(dtype=np.float64) / part["count"].sum()
        (line,) = ax.plot(part["level"], share, marker=_MARKERS[k % len(_MARKERS)])
        ends.append((float(share[-1]), str(criterion), line.get_color()))
    levels = sorted(table["level"].unique())
    ax.set(xlabel="rating", ylabel="items, %", xticks=levels)
    ax.set_ylim(0, None)
    _end_labels(ax, max(levels) + 0.15, ends)
    return ax


def label_mass(judgments: pd.DataFrame, ax: Axes | None = None) -> Axes:
    """Draw how much probability the labels had before it was renormalised.

    Parameters
    ----------
    judgments
        Judgments with the column ``label_mass`` (readout ``logprobs``).
    ax
        Where to draw; default: new axes.

    Returns
    -------
    Axes
        A histogram on a logarithmic axis with a line at the median; empty without any mass.

    Examples
    --------
    >>> ax = label_mass(pd.DataFrame({"label_mass": [0.01, 0.02, 0.4]}))
    >>> [t.get_text() for t in ax.texts]
    ['median 0.02']
    >>> plt.close(ax.figure)
    """
    ax = _axes(ax)
    mass = judgments["label_mass"].dropna().to_numpy(dtype=np.float64)
    mass = mass[mass > 0]
    ax.set(xlabel="label mass", ylabel="reads", xscale="log")
    if len(mass) == 0:
        return ax
    low = 10 ** np.floor(np.log10(mass.min()))
    ax.hist(mass, bins=np.geomspace(low, 1, 41).tolist(), alpha=0.85)
    median = float(np.median(mass))
    ax.axvline(median, color=_QUIET, linestyle=":", linewidth=1.5)
    ax.annotate(
        f"median {median:.2g}", (median, 1), xycoords=("data", "axes fraction"), xytext=(4, -10),
        textcoords="offset points", color=_QUIET,
    )  # fmt: skip
    ax.set_xlim(low, 1)
    return ax


def two_scores(judgments: pd.DataFrame, ax: Axes | None = None) -> Axes:
    """Draw the argmax score and the expected score of one item, ordering by ordering.

    Parameters
    ----------
    judgments
        Judgments of one item, with ``score`` and ``expected_score``.
    ax
        Where to draw; default: new axes.

    Returns
    -------
    Axes

    Examples
    --------
    >>> judgments = pd.DataFrame(
    ...     {"ordering": ["1-2", "2-1"], "score": [1, 1], "expected_score": [1.2, 1.4]})
    >>> ax = two_scores(judgments)
    >>> ax.lines[0].get_ydata().tolist(), [t.get_text() for t in ax.texts]
    ([1.0, 1.0], ['argmax', 'expected score'])
    >>> plt.close(ax.figure)
    """
    ax = _axes(ax)
    reads = np.arange(1, len(judgments) + 1)
    ends = []
    series = {"argmax": "score", "expected score": "expected_score"}
    for (name, column), marker in zip(series.items(), _MARKERS, strict=False):
        values = judgments[column].to_numpy(dtype=np.float64, na_value=np.nan)
        (line,) = ax.plot(reads, values, marker=marker)
        ends.append((float(values[-1]), name, line.get_color()))
    n = max(len(str(code).split("-")) for code in judgments["ordering"])
    ax.set(xlabel="ordering", ylabel="score", ylim=(0.8, n + 0.2), yticks=range(1, n + 1))
    ax.set_xticks(reads, [str(code) for code in judgments["ordering"]], rotation=60, size="small")
    _end_labels(ax, len(reads) + 0.3, ends)
    return ax


def position_selection(
    table: pd.DataFrame, label: str = "judge", value: Any = "score", ax: Axes | None = None
) -> Axes:
    """Draw how often each position is selected, with intervals and the uniform share.

    Parameters
    ----------
    table
        What `rubricnb.position_bias` returns, one line a row; or judgments, from which it is
        computed.
    label
        The column that names the lines.
    value
        Where judgments are given: ``score`` or ``expected_score``.
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
    >>> ax = position_selection(judgments)
    >>> [t.get_text() for t in ax.texts]
    ['simulated:first-biased', 'uniform']
    >>> plt.close(ax.figure)
    """
    if "share_1" not in table:
        from rubricnb.statistics import position_bias

        table = position_bias(table, value=value)
    ax = _axes(ax)
    n = _numbered_columns(table, "share")
    ends = [(100 / n, "uniform", _QUIET)]
    ax.axhline(100 / n, color=_QUIET, linestyle=":", linewidth=1.2)
    ends += _position_lines(table, "share", label, n, ax, scale=100)
    ax.set(ylabel="selected, % of reads")
    _end_labels(ax, n + 0.3, ends)
    return ax


def log_preferences(table: pd.DataFrame, label: str = "value", ax: Axes | None = None) -> Axes:
    """Draw the log-preference for each position, with intervals.

    Parameters
    ----------
    table
        What `rubricnb.position_bias` returns, one line a row.
    label
        The column that names the lines.
    ax
        Where to draw; default: new axes.

    Returns
    -------
    Axes
        A row that has no log-preference has no line.

    Examples
    --------
    >>> import rubricnb as rb
    >>> items = rb.load("minibench", n_items=60)
    >>> judgments = rb.simulate(rb.plan(items, rb.balanced(5)), items, "last-biased")
    >>> ax = log_preferences(rb.position_bias(judgments), label="judge")
    >>> [t.get_text() for t in ax.texts]
    ['simulated:last-biased']
    >>> plt.close(ax.figure)
    """
    ax = _axes(ax)
    n = _numbered_columns(table, "log_preference")
    ax.axhline(0, color=_QUIET, linestyle=":", linewidth=1.2)
    ends = _position_lines(table, "log_preference", label, n, ax)
    ax.set(ylabel="log-preference")
    _end_labels(ax, n + 0.3, ends)
    return ax


def published_ends(table: pd.DataFrame, ax: Axes | None = None) -> Axes:
    """Draw the published shares of the last position against those of the first.

    Parameters
    ----------
    table
        ``rubricnb.published("position_bias")``: judge, dataset, pos1_pct, pos5_pct.
    ax
        Where to draw; default: new axes.

    Returns
    -------
    Axes
        One marker per judge, one point per dataset. Above the diagonal the last position is
        selected more often than the first.

    Notes
    -----
    arXiv:2602.02219v2, Table 2.

    Examples
    --------
    >>> table = pd.DataFrame(
    ...     {"judge": ["a", "a"], "pos1_pct": [18.0, 25.0], "pos5_pct": [22.0, 19.0]})
    >>> ax = published_ends(table)
    >>> ax.lines[-1].get_xydata().tolist()
    [[18.0, 22.0], [25.0, 19.0]]
    >>> plt.close(ax.figure)
    """
    ax = _axes(ax)
    ends = table[["pos1_pct", "pos5_pct"]]
    limits = (float(ends.min().min()) - 2, float(ends.max().max()) + 2)
    ax.plot(limits, limits, color=_QUIET, linewidth=1)
    for line in (ax.axvline, ax.axhline):
        line(20, color=_QUIET, linestyle=":", linewidth=1.2)
    for k, (judge, cells) in enumerate(table.groupby("judge", sort=False)):
        first, last = cells["pos1_pct"], cells["pos5_pct"]
        marker = _MARKERS[k % len(_MARKERS)]
        ax.plot(first, last, marker=marker, linestyle="", alpha=0.85, label=str(judge))
    ax.text(*_corner(limits, 0.02, 0.98), "prefers the last", color=_QUIET, va="top")
    ax.text(*_corner(limits, 0.98, 0.02), "prefers the first", color=_QUIET, ha="right")
    ax.set(
        xlabel="first position selected, % of reads", ylabel="last position selected, % of reads",
        xlim=limits, ylim=limits, aspect="equal",
    )  # fmt: skip
    ax.legend(loc="center left", bbox_to_anchor=(1, 0.5))
    return ax


def null_quantiles(table: pd.DataFrame, df: int, ax: Axes | None = None) -> Axes:
    """Draw test statistics of studies without an effect against what they are compared with.

    Parameters
    ----------
    table
        Columns ``statistic`` (its name) and ``value``; one row per study and statistic.
    df
        Degrees of freedom of that χ² distribution.
    ax
        Where to draw; default: new axes.

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

    ax = _axes(ax)
    threshold = float(chi2.isf(0.05, df))
    top, ends = threshold, []
    for k, (name, part) in enumerate(table.groupby("statistic", sort=False)):
        values = np.sort(part["value"].dropna().to_numpy(dtype=np.float64))
        if len(values) == 0:
            continue
        expected = chi2.ppf((np.arange(len(values)) + 0.5) / len(values), df)
        (line,) = ax.plot(expected, values, marker=_MARKERS[k], linestyle="", markersize=4.5)
        top = max(top, expected[-1], values[-1])
        ends.append((float(values[-1]), str(name), line.get_color()))
    limits = (0, 1.06 * top)
    ax.plot(limits, limits, color=_QUIET, linewidth=1)
    ax.axhline(threshold, color=_QUIET, linestyle=":", linewidth=1.2)
    ends.append((threshold, f"5 %: {threshold:.2f}", _QUIET))
    ax.set(xlim=limits, ylim=limits)
    ax.set(xlabel=f"quantile of χ² with {df} degrees of freedom", ylabel="statistic, sorted")
    _end_labels(ax, limits[1], ends)
    return ax


def indecision(table: pd.DataFrame, ax: Axes | None = None) -> Axes:
    """Draw sizes of one planted preference while the judge gets more decisive.

    Parameters
    ----------
    table
        ``sharpness`` (the judge's β) and one column per size, divided by what it should be.
    ax
        Where to draw; default: new axes.

    Returns
    -------
    Axes
        A size that measures the preference alone stays at 1.

    Examples
    --------
    >>> table = pd.DataFrame({"sharpness": [1.0, 4.0], "V": [1.0, 0.5]})
    >>> ax = indecision(table)
    >>> ax.lines[0].get_ydata().tolist()
    [1.0, 0.5]
    >>> plt.close(ax.figure)
    """
    ax = _axes(ax)
    ends = []
    for k, name in enumerate(table.columns.drop("sharpness")):
        (line,) = ax.plot(table["sharpness"], table[name], marker=_MARKERS[k])
        ends.append((float(table[name].iloc[-1]), str(name), line.get_color()))
    ax.axhline(1, color=_QUIET, linestyle=":", linewidth=1.2)
    ax.set_xscale("log", base=2)
    ax.set_xticks(table["sharpness"], [f"{s:g}" for s in table["sharpness"]])
    ax.set(xlabel="sharpness of the judge (larger: more decisive)", ylabel="size; 1 is right")
    ax.set_ylim(0, None)
    _end_labels(ax, 1.15 * float(table["sharpness"].iloc[-1]), ends)
    return ax


def score_position(table: pd.DataFrame, ax: Axes | None = None) -> Axes:
    """Draw where each score stood when it was given, in per cent of the reads with that score.

    Parameters
    ----------
    table
        What `rubricnb.score_position` returns for one group.
    ax
        Where to draw; default: new axes.

    Returns
    -------
    Axes
        A row per score with its number of reads; a score that was never given has an empty row.

    Notes
    -----
    arXiv:2602.02219v1, Table 5.

    Examples
    --------
    >>> table = pd.DataFrame({
    ...     "score": [1, 1, 2, 2], "position": [1, 2, 1, 2], "share": [0.6, 0.4, 0.7, 0.3],
    ...     "n": [40.0, 40.0, 60.0, 60.0]})
    >>> ax = score_position(table)
    >>> [t.get_text() for t in ax.texts], ax.get_yticklabels()[0].get_text()
    (['60', '40', '70', '30'], '1 (40 reads)')
    >>> plt.close(ax.figure)
    """
    grid = 100 * table.pivot(index="score", columns="position", values="share")
    reads = table.drop_duplicates("score").set_index("score")["n"]
    ax = _heat(
        grid.to_numpy(), _axes(ax), "position at which the score stood", "score",
        lowest=0, highest=max(200 / len(grid), float(grid.max().max())), number="{:.0f}",
    )  # fmt: skip
    ax.set_yticks(range(1, len(grid) + 1), [f"{s} ({reads[s]:,.0f} reads)" for s in grid.index])
    return ax


def _axes(ax: Axes | None) -> Axes:
    return plt.figure().add_subplot() if ax is None else ax


def _means(options: pd.DataFrame, index: str, columns: str) -> pd.DataFrame:
    """Mean probability: a row per value of `index`, a column per value of `columns`."""
    grouped = options.groupby([index, columns], observed=True, sort=False)["probability"].mean()
    table = grouped.unstack(columns)
    order = options[columns].drop_duplicates()
    if columns in ("score", "position"):
        order = order.sort_values()
    return table.sort_index()[list(order)]


def _colours(n: int) -> list[Any]:
    """From dark to light: scores have an order."""
    return [plt.get_cmap("viridis")(x) for x in np.linspace(0, 0.85, n)]


def _lines(table: pd.DataFrame, ax: Axes) -> None:
    for k, name in enumerate(table):
        # Later lines are thinner, so that one which covers another leaves it visible.
        ax.plot(
            table.index, table[name], marker=_MARKERS[k % len(_MARKERS)], label=str(name),
            linewidth=max(1.4, 2.8 - 0.8 * k), markersize=max(4.5, 8.5 - 2.5 * k),
        )  # fmt: skip
    ax.set_xticks(table.index)


def _from_zero(ax: Axes) -> None:
    """Begin the ordinate at 0 and end it above the data, those of axes that share it included."""
    ax.autoscale(axis="y")
    ax.autoscale_view(scalex=False)
    ax.set_ylim(0, ax.get_ylim()[1])


def _uniform(ax: Axes, n: int, scale: float = 1) -> None:
    ax.axhline(scale / n, color=_QUIET, linestyle="--", linewidth=1, zorder=1)
    ax.annotate(
        f"1/{n}", (1, scale / n), xycoords=("axes fraction", "data"), xytext=(3, 0),
        textcoords="offset points", va="center", color=_QUIET, size="small", annotation_clip=False,
    )  # fmt: skip


def _heat(
    table: NDArray[Any],
    ax: Axes,
    xlabel: str,
    ylabel: str,
    *,
    lowest: float | None = None,
    highest: float | None = None,
    number: str = "{:g}",
) -> Axes:
    """Draw a table of numbers, rows and columns counted from 1; NaN cells stay empty."""
    table = np.asarray(table, dtype=np.float64)
    rows, columns = table.shape
    low = np.nanmin(table) if lowest is None else lowest
    high = np.nanmax(table) if highest is None else highest
    extent = (0.5, columns + 0.5, rows + 0.5, 0.5)
    ax.imshow(table, extent=extent, aspect="auto", vmin=low, vmax=high)
    for row, column in zip(*np.nonzero(np.isfinite(table)), strict=True):
        value = float(table[row, column])
        ax.text(
            column + 1, row + 1, number.format(value), ha="center", va="center",
            size="medium" if columns < 7 else "x-small",
            color="white" if value - low < 0.55 * (high - low) else "black",
        )  # fmt: skip
    ax.grid(False)
    ax.set(xlabel=xlabel, ylabel=ylabel)
    ax.set(xticks=range(1, columns + 1), yticks=range(1, rows + 1))
    ax.tick_params(length=0)
    return ax


def _position_lines(
    table: pd.DataFrame, stem: str, label: str, n: int, ax: Axes, scale: float = 1
) -> list[tuple[float, str, Any]]:
    """Draw ``stem_1…n`` with intervals, a line per row; return where the lines end, and names."""
    positions = np.arange(1, n + 1)
    ends = []
    for k, (_, row) in enumerate(table.iterrows()):
        middle, low, high = (
            scale * np.array([row[f"{stem}_{p}{end}"] for p in positions], dtype=np.float64)
            for end in ("", "_low", "_high")
        )
        if np.isnan(middle).all():
            continue
        reach = np.maximum(np.nan_to_num([middle - low, high - middle]), 0)
        aside = 0.08 * (k - (len(table) - 1) / 2)  # keeps the bars of several lines apart
        drawn = ax.errorbar(
            positions + aside, middle, yerr=reach, marker=_MARKERS[k % len(_MARKERS)],
            elinewidth=1.1,
        )  # fmt: skip
        ends.append((float(middle[-1]), str(row[label]), drawn.lines[0].get_color()))
    ax.set(xlabel="position in the prompt, from the top", xlim=(0.7, n + 0.3), xticks=positions)
    return ends


def _numbered_columns(table: pd.DataFrame, stem: str) -> int:
    """Count the columns ``stem_1``, ``stem_2``, …"""
    return sum(c[: len(stem) + 1] == f"{stem}_" and c[len(stem) + 1 :].isdigit() for c in table)


def _corner(limits: tuple[float, float], across: float, up: float) -> tuple[float, float]:
    low, high = limits
    return low + across * (high - low), low + up * (high - low)


def _end_labels(ax: Axes, x: float, ends: list[tuple[float, str, Any]]) -> None:
    """Name lines at their ends, in their colours; names that would overlap are pushed apart."""
    ends = sorted((end for end in ends if np.isfinite(end[0])), key=lambda end: end[0])
    low, high = ax.get_ylim()
    box = ax.get_position(original=True)
    pixels = max(box.height * ax.figure.get_figheight() * 72, 1.0)  # type: ignore[union-attr]
    gap = 12 * (high - low) / pixels  # twelve points: a line of small text
    heights = np.array([end[0] for end in ends])
    for _ in range(100):  # neighbours share what they overlap; a few rounds settle it
        lack = np.maximum(gap - np.diff(heights), 0) / 2
        if not (lack > gap / 100).any():
            break
        heights[:-1] -= lack
        heights[1:] += lack
    for (_, name, colour), height in zip(ends, heights, strict=True):
        ax.annotate(
            name, (x, height), (4, 0), textcoords="offset points", va="center", color=colour,
            fontsize="small", annotation_clip=False,
        )  # fmt: skip
