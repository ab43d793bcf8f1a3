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
    ax.set(xlabel="score", ylabel="probability", ylim=(0, 1))
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
    ax.set(xticks=table.index, ylim=(0, None))
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
    _heat(table.to_numpy(), ax, "position", "score", lowest=0, highest=100, number="{:.0f}")
    reads = len(percent) / n
    for name, place in (("position", lambda k: (k, n + 0.75)), ("score", lambda k: (n + 0.75, k))):
        for value, share in (percent.groupby(name)["probability"].sum() / reads).items():
            x, y = place(value)
            ax.text(x, y, f"{share:.0f}", ha="center", va="center", weight="bold")
    ax.set(xlim=(0.5, n + 1.2), ylim=(n + 1.2, 0.5))
    ax.set_xticks([*range(1, n + 1), n + 0.75], [*map(str, range(1, n + 1)), "share"])
    ax.set_yticks([*range(1, n + 1), n + 0.75], [*map(str, range(1, n + 1)), "share"])
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
    ax.set(xlabel="position", ylabel="share of the reads in %", ylim=(0, None))
    ax.legend(title=by.replace("_", " "), title_fontsize="small")
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
        ax.plot(table.index, table[name], marker=_MARKERS[k % len(_MARKERS)], label=str(name))
    ax.set_xticks(table.index)


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
