"""Figures: one function each, a tidy frame and ``ax=None`` in, the Axes out.

The style is a file of matplotlib's, ``matplotlib.rc_file(rubricnb.plots.STYLE)``. What tells things
apart is never colour alone: lines carry markers and labels, cells carry numbers.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from rubricnb import permutation

if TYPE_CHECKING:
    from matplotlib.axes import Axes

STYLE = Path(__file__).with_name("matplotlibrc")
"""The style of the book's figures and of an audit's.

:meta hide-value:
"""

MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<", ">", "*")
QUIET = "#595959"
_INTERVAL = ("estimate", "low", "high")
_V_TICKS = (0.02, 0.05, 0.1, 0.2)


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
    return heat(np.asarray(orderings), _axes(ax), "position", "read")


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
    return heat(counts, _axes(ax), "position", "score", lowest=0)


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
    return heat(counts, _axes(ax), "stands directly after", "score", lowest=0)


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
    lines(table, ax)
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
    for colour, score in zip(colours(table.shape[1]), table, strict=True):
        ax.plot(table.index, table[score], color=colour, marker=f"${score}$", markersize=9)
        reads = options[options["score"] == score]
        ax.scatter(reads["position"], reads["probability"], s=9, color=colour, alpha=0.6, zorder=3)
    uniform(ax, table.shape[1])
    ax.set(xlabel="position at which the score stood", ylabel="probability of the score")
    ax.set(xticks=table.index)
    from_zero(ax)
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
    heat(table.to_numpy(), ax, "position", "score", lowest=0, number="{:.0f}")
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
    lines(table, ax)
    uniform(ax, len(table), scale=100)
    ax.set(xlabel="position", ylabel="share of the reads in %")
    from_zero(ax)
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
        (line,) = ax.plot(part["level"], share, marker=MARKERS[k % len(MARKERS)])
        ends.append((float(share[-1]), str(criterion), line.get_color()))
    levels = sorted(table["level"].unique())
    ax.set(xlabel="rating", ylabel="items, %", xticks=levels)
    ax.set_ylim(0, None)
    end_labels(ax, max(levels) + 0.15, ends)
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
    ax.axvline(median, color=QUIET, linestyle=":", linewidth=1.5)
    ax.annotate(
        f"median {median:.2g}", (median, 1), xycoords=("data", "axes fraction"), xytext=(4, -10),
        textcoords="offset points", color=QUIET,
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
    for (name, column), marker in zip(series.items(), MARKERS, strict=False):
        values = judgments[column].to_numpy(dtype=np.float64, na_value=np.nan)
        (line,) = ax.plot(reads, values, marker=marker)
        ends.append((float(values[-1]), name, line.get_color()))
    n = max(len(str(code).split("-")) for code in judgments["ordering"])
    ax.set(xlabel="ordering", ylabel="score", ylim=(0.8, n + 0.2), yticks=range(1, n + 1))
    ax.set_xticks(reads, [str(code) for code in judgments["ordering"]], rotation=60, size="small")
    end_labels(ax, len(reads) + 0.3, ends)
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
    ends = [(100 / n, "uniform", QUIET)]
    ax.axhline(100 / n, color=QUIET, linestyle=":", linewidth=1.2)
    ends += position_lines(table, "share", label, n, ax, scale=100)
    ax.set(ylabel="selected, % of reads")
    end_labels(ax, n + 0.3, ends)
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
    ax.axhline(0, color=QUIET, linestyle=":", linewidth=1.2)
    ends = position_lines(table, "log_preference", label, n, ax)
    ax.set(ylabel="log-preference")
    end_labels(ax, n + 0.3, ends)
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
    ax.plot(limits, limits, color=QUIET, linewidth=1)
    for line in (ax.axvline, ax.axhline):
        line(20, color=QUIET, linestyle=":", linewidth=1.2)
    for k, (judge, cells) in enumerate(table.groupby("judge", sort=False)):
        first, last = cells["pos1_pct"], cells["pos5_pct"]
        marker = MARKERS[k % len(MARKERS)]
        ax.plot(first, last, marker=marker, linestyle="", alpha=0.85, label=str(judge))
    ax.text(*_corner(limits, 0.02, 0.98), "prefers the last", color=QUIET, va="top")
    ax.text(*_corner(limits, 0.98, 0.02), "prefers the first", color=QUIET, ha="right")
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
        (line,) = ax.plot(expected, values, marker=MARKERS[k], linestyle="", markersize=4.5)
        top = max(top, expected[-1], values[-1])
        ends.append((float(values[-1]), str(name), line.get_color()))
    limits = (0, 1.06 * top)
    ax.plot(limits, limits, color=QUIET, linewidth=1)
    ax.axhline(threshold, color=QUIET, linestyle=":", linewidth=1.2)
    ends.append((threshold, f"5 %: {threshold:.2f}", QUIET))
    ax.set(xlim=limits, ylim=limits)
    ax.set(xlabel=f"quantile of χ² with {df} degrees of freedom", ylabel="statistic, sorted")
    end_labels(ax, limits[1], ends)
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
        (line,) = ax.plot(table["sharpness"], table[name], marker=MARKERS[k])
        ends.append((float(table[name].iloc[-1]), str(name), line.get_color()))
    ax.axhline(1, color=QUIET, linestyle=":", linewidth=1.2)
    ax.set_xscale("log", base=2)
    ax.set_xticks(table["sharpness"], [f"{s:g}" for s in table["sharpness"]])
    ax.set(xlabel="sharpness of the judge (larger: more decisive)", ylabel="size; 1 is right")
    ax.set_ylim(0, None)
    end_labels(ax, 1.15 * float(table["sharpness"].iloc[-1]), ends)
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
    ax = heat(
        grid.to_numpy(), _axes(ax), "position at which the score stood", "score",
        lowest=0, highest=max(200 / len(grid), float(grid.max().max())), number="{:.0f}",
    )  # fmt: skip
    ax.set_yticks(range(1, len(grid) + 1), [f"{s} ({reads[s]:,.0f} reads)" for s in grid.index])
    return ax


def rank_reversals(table: pd.DataFrame, kind: str = "kind", ax: Axes | None = None) -> Axes:
    """Draw flipped winners against Kendall's τ, one point per comparison of two rankings.

    Parameters
    ----------
    table
        ``kendall_tau``, ``flip_first`` (0 to 1), the column that tells kinds of points apart and,
        if points are to be named, ``label``.
    kind
        That column. A kind whose points are named is joined by a line in their order.
    ax
        Where to draw; default: new axes.

    Returns
    -------
    Axes

    Notes
    -----
    arXiv:2602.02219v2, Table 7.

    Examples
    --------
    >>> table = pd.DataFrame({"kind": "published", "kendall_tau": [0.7], "flip_first": [0.3]})
    >>> ax = rank_reversals(table)
    >>> ax.lines[0].get_xydata().tolist()
    [[0.7, 30.0]]
    >>> plt.close(ax.figure)
    """
    ax = _axes(ax)
    labels = table["label"] if "label" in table else pd.Series("", index=table.index)
    labels = labels.fillna("").astype("str")
    for k, (name, part) in enumerate(table.groupby(kind, sort=False)):
        named = labels[part.index]
        (line,) = ax.plot(
            part["kendall_tau"], 100 * part["flip_first"], marker=MARKERS[k % len(MARKERS)],
            linestyle="-" if (named != "").all() and len(part) > 1 else "", label=str(name),
            alpha=0.85, linewidth=1,
        )  # fmt: skip
        for tau, flip, text in zip(part["kendall_tau"], part["flip_first"], named, strict=True):
            if text and np.isfinite([tau, flip]).all():
                ax.annotate(
                    text, (tau, 100 * flip), (7, 4), textcoords="offset points",
                    color=line.get_color(), size="small",
                )  # fmt: skip
    ax.set(xlabel="Kendall's τ between the two rankings", ylabel="winners that flip, %")
    ax.set_ylim(0, None)
    ax.grid(True, axis="both")
    ax.legend(loc="lower left")
    return ax


def reversal_controls(
    table: pd.DataFrame,
    label: str = "judge",
    measure: str = "flip_expected",
    ax: Axes | None = None,
) -> Axes:
    """Draw how many winners flip between halves of equal budget, with intervals.

    Parameters
    ----------
    table
        What `rubricnb.reversal_controls` returns, for one or several judges.
    label
        The column that names the judges.
    measure
        ``flip_expected``, ``flip_first``, ``flip_strict`` or ``discordant``.
    ax
        Where to draw; default: new axes.

    Returns
    -------
    Axes
        A row per comparison, a marker per judge, bars for the 95 % intervals over clusters.

    Examples
    --------
    >>> table = pd.DataFrame({"judge": "a", "comparison": ["re-ask", "placebo against placebo"],
    ...     "flip_expected": [0.0, 0.2], "flip_expected_low": [0, 0.1],
    ...     "flip_expected_high": [0, 0.3]})
    >>> ax = reversal_controls(table)
    >>> [t.get_text() for t in ax.get_yticklabels()]
    ['re-ask', 'placebo against placebo']
    >>> plt.close(ax.figure)
    """
    ax = _axes(ax)
    rows = list(dict.fromkeys(table["comparison"]))
    judges = list(dict.fromkeys(table[label].astype("str")))
    for k, judge in enumerate(judges):
        own = table[table[label].astype("str") == judge].set_index("comparison")
        place = np.array([rows.index(c) for c in own.index]) + 0.2 * (k - (len(judges) - 1) / 2)
        middle, low, high = (
            100 * own[measure + end].to_numpy(dtype=np.float64) for end in ("", "_low", "_high")
        )
        reach = np.maximum(np.nan_to_num([middle - low, high - middle]), 0)
        ax.errorbar(
            middle, place, xerr=reach, linestyle="", marker=MARKERS[k % len(MARKERS)], label=judge
        )
    ax.set_yticks(range(len(rows)), rows)
    ax.set(xlabel="winners that flip, %", ylim=(len(rows) - 0.4, -0.6))
    ax.set_xlim(left=-2)
    ax.grid(False, axis="y")
    ax.grid(True, axis="x")
    if len(judges) > 1:
        ax.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=len(judges), borderaxespad=0.2)
    return ax


def rounding(table: pd.DataFrame, ax: Axes | None = None) -> Axes:
    """Draw what rounding to whole scores does to rankings, against how far candidates differ.

    Parameters
    ----------
    table
        ``sd`` (of the candidates' quality, in score points) and one column per measure, 0 to 1.
    ax
        Where to draw; default: new axes.

    Returns
    -------
    Axes
        Every line is named at its end.

    Examples
    --------
    >>> ax = rounding(pd.DataFrame({"sd": [0.5, 1.0], "flips": [0.4, 0.2]}))
    >>> ax.lines[0].get_ydata().tolist()
    [0.4, 0.2]
    >>> plt.close(ax.figure)
    """
    ax = _axes(ax)
    ends = []
    for k, name in enumerate(table.columns.drop("sd")):
        (line,) = ax.plot(table["sd"], table[name], marker=MARKERS[k % len(MARKERS)])
        ends.append((float(table[name].iloc[-1]), str(name), line.get_color()))
    ax.set(xlabel="standard deviation of quality within a prompt, in score points", ylim=(0, 1))
    end_labels(ax, float(table["sd"].iloc[-1]) + 0.03 * float(np.ptp(table["sd"])), ends)
    return ax


def dither(table: pd.DataFrame, ax: Axes | None = None) -> Axes:
    """Draw the mean of sampled scores against the quality a judge sees, one line per temperature.

    Parameters
    ----------
    table
        ``quality``, ``temperature`` and ``score`` (the mean).
    ax
        Where to draw; default: new axes.

    Returns
    -------
    Axes
        Greedy answers are a staircase; sampling rounds its edges.

    Examples
    --------
    >>> table = pd.DataFrame({"quality": [1, 2], "temperature": 0.0, "score": [1.0, 2.0]})
    >>> ax = dither(table)
    >>> [t.get_text() for t in ax.texts]
    ['τ = 0']
    >>> plt.close(ax.figure)
    """
    ax = _axes(ax)
    styles = ("-", "--", "-.", ":")
    for k, (temperature, part) in enumerate(table.groupby("temperature")):
        (line,) = ax.plot(part["quality"], part["score"], linestyle=styles[k % len(styles)])
        place = int((0.3 + 0.15 * k) * (len(part) - 1))
        ax.annotate(
            f"τ = {temperature:g}", (part["quality"].iloc[place], part["score"].iloc[place]),
            (-6, 6), textcoords="offset points", ha="right", color=line.get_color(), size="small",
        )  # fmt: skip
    ax.set(xlabel="quality that the judge sees", ylabel="mean of its scores")
    return ax


def temperature_sweep(
    table: pd.DataFrame,
    value: str,
    label: str = "label",
    ax: Axes | None = None,
    x: str = "temperature",
) -> Axes:
    """Draw a statistic against the temperature or the effort, one line per judge or strategy.

    Parameters
    ----------
    table
        The column `x`, the column `value` and, for bars, `value` with ``_low`` and ``_high``.
    value
        Which statistic.
    label
        The column that names the lines.
    x
        ``temperature``, or ``effort``: words, drawn in the order in which they first stand.
    ax
        Where to draw; default: new axes.

    Returns
    -------
    Axes
        Every line is named at its end.

    Notes
    -----
    arXiv:2602.02219v2, Figures 6 and 7.

    Examples
    --------
    >>> table = pd.DataFrame({"temperature": [0.0, 1.0], "label": "a", "r": [0.2, 0.3]})
    >>> ax = temperature_sweep(table, "r")
    >>> ax.lines[0].get_ydata().tolist(), [t.get_text() for t in ax.texts]
    ([0.2, 0.3], ['a'])
    >>> plt.close(ax.figure)
    """
    ax = _axes(ax)
    ends = []
    words = not pd.api.types.is_numeric_dtype(table[x])
    names = list(dict.fromkeys(table[x])) if words else sorted(table[x].unique())
    places = {name: float(k if words else name) for k, name in enumerate(names)}
    for k, (name, part) in enumerate(table.groupby(label, sort=False, observed=True)):
        own = part.assign(place=part[x].astype(object).map(places)).sort_values("place")
        middle = own[value].to_numpy(dtype=np.float64)
        bounds = [own.get(f"{value}{end}", own[value]) for end in ("_low", "_high")]
        low, high = (bound.to_numpy(dtype=np.float64) for bound in bounds)
        reach = np.maximum(np.nan_to_num([middle - low, high - middle]), 0)
        drawn = ax.errorbar(
            own["place"] + 0.008 * k, middle, yerr=reach,
            marker=MARKERS[k % len(MARKERS)], elinewidth=1.1,
        )  # fmt: skip
        ends.append((float(middle[-1]), str(name), drawn.lines[0].get_color()))
    ax.set_xticks(list(places.values()), names if words else [f"{t:g}" for t in names])
    ax.set_xlabel(x)
    end_labels(ax, max(places.values()) + 0.04, ends)
    return ax


def dispersion(table: pd.DataFrame, ax: Axes | None = None) -> Axes:
    """Draw within-item standard deviations under repeats and under permutation, a row per judge.

    Parameters
    ----------
    table
        ``label``, ``repeat``, ``permutation`` and ``order`` (what is left of permutation without
        repeat, as variances).
    ax
        Where to draw; default: new axes.

    Returns
    -------
    Axes

    Notes
    -----
    arXiv:2602.02219v1, Table 3.

    Examples
    --------
    >>> ax = dispersion(pd.DataFrame(
    ...     {"label": ["a"], "repeat": [0.3], "permutation": [0.5], "order": [0.4]}))
    >>> [line.get_xdata().tolist() for line in ax.lines]
    [[0.3], [0.5], [0.4]]
    >>> plt.close(ax.figure)
    """
    ax = _axes(ax)
    rows = np.arange(len(table))
    ax.hlines(rows, table["repeat"], table["permutation"], color=QUIET, linewidth=1)
    names = {"repeat": "repeats", "permutation": "permutation", "order": "order only"}
    for (column, name), marker in zip(names.items(), MARKERS, strict=False):
        ax.plot(table[column], rows, marker, label=name)
    ax.set_yticks(rows, table["label"])
    ax.set(xlabel="within-item standard deviation, score points", ylim=(len(table) - 0.4, -0.6))
    ax.set_xlim(0, None)
    ax.grid(False, axis="y")
    ax.grid(True, axis="x")
    ax.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=3, borderaxespad=0.2)
    return ax


def effort_chi2(draws: pd.DataFrame, printed: pd.DataFrame, ax: Axes | None = None) -> Axes:
    """Draw how much χ² varies between studies of one judge, and printed values beside it.

    Parameters
    ----------
    draws
        ``judge`` and ``chi2``: one row per simulated study.
    printed
        ``name`` and ``chi2``: upright lines.
    ax
        Where to draw; default: new axes.

    Returns
    -------
    Axes
        A row of dots per judge, with the middle 95 % as a bar.

    Notes
    -----
    arXiv:2602.02219v2, Figure 7.

    Examples
    --------
    >>> draws = pd.DataFrame({"judge": "a", "chi2": [90.0, 100.0, 110.0]})
    >>> ax = effort_chi2(draws, pd.DataFrame({"name": ["low"], "chi2": [115.0]}))
    >>> ax.lines[0].get_xdata().tolist(), [t.get_text() for t in ax.texts]
    ([90.0, 100.0, 110.0], ['low'])
    >>> plt.close(ax.figure)
    """
    ax = _axes(ax)
    names = list(dict.fromkeys(draws["judge"]))
    for row, name in enumerate(names):
        values = draws.loc[draws["judge"] == name, "chi2"].to_numpy(dtype=np.float64)
        low, high = np.quantile(values, [0.025, 0.975])
        ax.plot(values, np.full(len(values), row), "|", color=QUIET, alpha=0.7)
        ax.hlines(row + 0.22, low, high, linewidth=3, color="#0072B2")
    for k, (name, value) in enumerate(zip(printed["name"], printed["chi2"], strict=True)):
        ax.axvline(value, color="#D55E00", linestyle=("-", "--", "-.", ":")[k % 4], linewidth=1.3)
        ax.annotate(
            str(name), (value, 1), (0, 3), xycoords=("data", "axes fraction"), ha="center",
            textcoords="offset points", color="#D55E00", size="small",
        )  # fmt: skip
    ax.set_yticks(range(len(names)), names)
    ax.set(xlabel="χ² of one study", ylim=(len(names) - 0.4, -0.6))
    ax.grid(False, axis="y")
    return ax


def ordering_costs(costs: pd.DataFrame, label: str = "judge", ax: Axes | None = None) -> Axes:
    """Draw the Bias Cost of orderings, one row per judge, and name the least and the default.

    Parameters
    ----------
    costs
        ``ordering``, ``cost`` and the column that names rows; what `rubricnb.bias_cost` returns,
        or that of all n! orderings. A column ``cost_null`` adds the noise floor of each row.
    label
        The column that names the rows.
    ax
        Where to draw; default: new axes.

    Returns
    -------
    Axes
        In hundredths, as the paper prints: a small dot per ordering, a square for 1…n, a triangle
        for the least of the balanced orderings, a diamond for the least of all if that is another,
        and an upright stroke at the noise floor.

    Notes
    -----
    arXiv:2602.02219v1, Table 6.

    Examples
    --------
    >>> costs = pd.DataFrame(
    ...     {"judge": "a", "ordering": ["1-2-3", "2-3-1", "3-2-1"], "cost": [0.3, 0.2, 0.1]})
    >>> ax = ordering_costs(costs)
    >>> [line.get_xdata().tolist() for line in ax.lines[1:]]
    [[30.0], [10.0]]
    >>> plt.close(ax.figure)
    """
    ax = _axes(ax)
    names = list(dict.fromkeys(costs[label].astype("str")))
    for row, name in enumerate(names):
        own = costs[costs[label].astype("str") == name]
        cost = 100 * own["cost"].to_numpy(dtype=np.float64)
        ax.plot(
            cost,
            np.full(len(own), row),
            "|",
            color=QUIET,
            alpha=0.6,
            label=_once(row, "an ordering"),
        )
        for marker, colour, what, place in _named_orderings(own):
            size = 9 if marker == "s" else 7
            ax.plot(cost[[place]], [row], marker, color=colour, markersize=size, mec="white",
                    linestyle="", label=_once(row, what))  # fmt: skip
        if "cost_null" in own and own["cost_null"].notna().any():
            floor = 100 * float(own["cost_null"].mean())
            ax.vlines(floor, row - 0.38, row + 0.38, color="#D55E00", linewidth=2.2,
                      label=_once(row, "noise floor"))  # fmt: skip
    ax.set_yticks(range(len(names)), names)
    ax.set(xlabel="Bias Cost × 100", ylim=(len(names) - 0.4, -0.6))
    ax.set_xlim(0, None)
    ax.grid(False, axis="y")
    ax.grid(True, axis="x")
    ax.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=3, borderaxespad=0.2)
    return ax


def cost_floor(table: pd.DataFrame, marks: pd.DataFrame, ax: Axes | None = None) -> Axes:
    """Draw what a Bias Cost is without any preference, against the reads behind each score.

    Parameters
    ----------
    table
        ``n`` (reads per score) and one column per line, as costs (not times 100).
    marks
        ``name`` and ``cost``: published costs, drawn as strokes at the right edge.
    ax
        Where to draw; default: new axes.

    Returns
    -------
    Axes

    Examples
    --------
    >>> table = pd.DataFrame({"n": [100, 1000], "floor": [0.16, 0.05]})
    >>> ax = cost_floor(table, pd.DataFrame({"name": ["a"], "cost": [0.03]}))
    >>> ax.lines[0].get_ydata().tolist(), [t.get_text() for t in ax.texts]
    ([16.0, 5.0], ['floor', 'a'])
    >>> plt.close(ax.figure)
    """
    ax = _axes(ax)
    styles = zip(MARKERS, ("-", "--", "-.", ":"), strict=False)
    for name, (marker, style) in zip(table.columns.drop("n"), styles, strict=False):
        (line,) = ax.plot(table["n"], 100 * table[name], marker=marker, linestyle=style)
        start = (table["n"].iloc[0], 100 * table[name].iloc[0])
        ax.annotate(
            str(name), start, (6, 6) if marker == MARKERS[0] else (0, -16),
            textcoords="offset points", color=line.get_color(), size="small",
        )  # fmt: skip
    ax.set_xscale("log")
    ax.set_xticks(table["n"], [f"{n:,.0f}" for n in table["n"]])
    ax.minorticks_off()
    ax.set(xlabel="reads with each score", ylabel="Bias Cost × 100")
    ax.set_ylim(0, None)
    edge = 1.25 * float(table["n"].iloc[-1])
    ax.scatter(np.full(len(marks), edge), 100 * marks["cost"], marker="_", s=120, color=QUIET)
    ax.set_xlim(None, 1.4 * edge)
    ends = [(100 * c, str(n), QUIET) for n, c in zip(marks["name"], marks["cost"], strict=True)]
    end_labels(ax, 1.4 * edge, ends)
    return ax


def chosen_costs(table: pd.DataFrame, ax: Axes | None = None) -> Axes:
    """Draw the cost of a chosen ordering where it was chosen and on other texts, by probe size.

    Parameters
    ----------
    table
        ``n_items`` (the probe) and one column per line, as costs (not times 100).
    ax
        Where to draw; default: new axes.

    Returns
    -------
    Axes
        Every line is named at its end.

    Examples
    --------
    >>> table = pd.DataFrame({"n_items": [16, 800], "chosen": [0.1, 0.2], "held out": [0.3, 0.2]})
    >>> ax = chosen_costs(table)
    >>> ax.lines[1].get_ydata().tolist()
    [30.0, 20.0]
    >>> plt.close(ax.figure)
    """
    ax = sizes(table.set_index("n_items"), _axes(ax), scale=100)
    ax.set(xlabel="items in the probe, ten reads each", ylabel="Bias Cost × 100")
    return ax


def cost_against_r(table: pd.DataFrame, ax: Axes | None = None) -> Axes:
    """Draw the agreement of each ordering's single reads with people against its Bias Cost.

    Parameters
    ----------
    table
        ``ordering``, ``cost``, ``r``, ``r_low``, ``r_high``; one row per ordering.
    ax
        Where to draw; default: new axes.

    Returns
    -------
    Axes
        The default and the cheapest ordering are named. Bars are 95 % intervals.

    Examples
    --------
    >>> table = pd.DataFrame({"ordering": ["1-2", "2-1"], "cost": [0.2, 0.1], "r": [0.3, 0.4],
    ...     "r_low": [0.2, 0.3], "r_high": [0.4, 0.5]})
    >>> ax = cost_against_r(table)
    >>> [t.get_text() for t in ax.texts]
    ['1-2 (default)', '2-1 (cheapest)']
    >>> plt.close(ax.figure)
    """
    ax = _axes(ax)
    cost, r = 100 * table["cost"].to_numpy(np.float64), table["r"].to_numpy(np.float64)
    reach = [r - table["r_low"], table["r_high"] - r]
    ax.errorbar(cost, r, yerr=np.nan_to_num(np.clip(reach, 0, None)), linestyle="", marker="o")
    names: dict[int, list[str]] = {}
    for marker, colour, _, place in _named_orderings(table):
        if not np.isnan([cost[place], r[place]]).any():
            ax.plot(cost[place], r[place], marker, color=colour, markersize=10, mec="white")
            names.setdefault(place, []).append("default" if marker == "s" else "cheapest")
    for place, said in names.items():
        ax.annotate(
            f"{table['ordering'].iloc[place]} ({', '.join(said)})", (cost[place], r[place]),
            (8, 0), textcoords="offset points", va="center", size="small",
        )  # fmt: skip
    ax.set(xlabel="Bias Cost × 100 of the ordering", ylabel="r of its single reads")
    ax.margins(x=0.2)
    return ax


def detection(table: pd.DataFrame, ax: Axes | None = None) -> Axes:
    """Draw how often questionnaires filled in by a judge are told from others.

    Parameters
    ----------
    table
        ``questions`` and one column per judge: shares found (0 to 1) at a fixed rate of false
        alarms.
    ax
        Where to draw; default: new axes.

    Returns
    -------
    Axes
        Every line is named at its end; dotted, 80 %.

    Examples
    --------
    >>> ax = detection(pd.DataFrame({"questions": [10, 100], "a judge": [0.2, 0.9]}))
    >>> ax.lines[0].get_ydata().tolist()
    [20.0, 90.0]
    >>> plt.close(ax.figure)
    """
    ax = sizes(table.set_index("questions"), _axes(ax), scale=100)
    ax.axhline(80, color=QUIET, linestyle=":", linewidth=1.2)
    ax.set(xlabel="questions", ylabel="found, % of questionnaires", ylim=(0, 104))
    return ax


def forest(
    table: pd.DataFrame,
    label: str = "judge",
    series: str = "strategy",
    reference: float | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw estimates with intervals: a row per label, a marker per series.

    Parameters
    ----------
    table
        Columns `label`, `series`, estimate, low and high; an interval may be NaN.
    label
        The column that names the rows; the first one stands on top.
    series
        The column that tells markers of one row apart.
    reference
        Where to draw a dotted line.
    ax
        Where to draw; default: new axes.

    Returns
    -------
    Axes
        Markers are filled where the interval excludes `reference`, else open (also without an
        interval); without a reference all are filled.

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
    ax = _axes(ax)
    rows = {name: k for k, name in enumerate(table[label].drop_duplicates())}
    groups = list(table.groupby(series, observed=True, sort=False))
    for k, (name, part) in enumerate(groups):
        aside = 0.6 * ((k + 0.5) / len(groups) - 0.5)
        y = part[label].astype(object).map(rows).to_numpy(dtype=np.float64) + aside
        colour, marker = f"C{k}", MARKERS[k % len(MARKERS)]
        middle, low, high = (part[c].to_numpy(dtype=np.float64) for c in _INTERVAL)
        ax.hlines(y, low, high, color=colour, linewidth=1.4)
        empty = (
            np.zeros(len(y), bool)
            if reference is None
            else ~((low > reference) | (high < reference))
        )
        for own, fill in ((~empty, colour), (empty, "none")):
            ax.plot(middle[own], y[own], marker, markersize=6, color=colour, markerfacecolor=fill)
        ax.plot([], [], marker=marker, color=colour, linewidth=1.4, label=str(name))
    if reference is not None:
        ax.axvline(reference, color=QUIET, linestyle=":", linewidth=1.2)
    ax.set_yticks(list(rows.values()), [str(name) for name in rows])
    ax.set(ylim=(len(rows) - 0.5, -0.5))
    if len(groups) > 1:
        ax.legend(loc="lower right", bbox_to_anchor=(1, 1), ncols=len(groups), fontsize="small")
    return ax


def contrast_parts(table: pd.DataFrame, label: str = "judge", ax: Axes | None = None) -> Axes:
    """Draw what a difference of two strategies is the sum of: bars, and a diamond for the sum.

    Parameters
    ----------
    table
        Columns `label`, part and value; the values of a label sum to its difference.
    label
        The column that names the rows; the first one stands on top.
    ax
        Where to draw; default: new axes.

    Returns
    -------
    Axes
        Positive parts are stacked to the right of 0, negative ones to the left.

    Examples
    --------
    >>> table = pd.DataFrame({"judge": "a", "part": ["x", "y", "z"], "value": [0.3, -0.1, -0.05]})
    >>> ax = contrast_parts(table)
    >>> ax.lines[-1].get_xdata().round(2).tolist()
    [0.15]
    >>> plt.close(ax.figure)
    """
    ax = _axes(ax)
    rows = {name: k for k, name in enumerate(table[label].drop_duplicates())}
    right, left, total = np.zeros(len(rows)), np.zeros(len(rows)), np.zeros(len(rows))
    for k, (name, part) in enumerate(table.groupby("part", observed=True, sort=False)):
        value = np.zeros(len(rows))
        np.add.at(value, part[label].astype(object).map(rows).to_numpy(np.int64), part["value"])
        start = np.where(value >= 0, right, left)
        ax.barh(
            range(len(rows)), value, left=start, height=0.62, label=str(name), color=f"C{k}",
            hatch=("", "///", "...", "xxx")[k % 4], edgecolor="white", linewidth=0,
        )  # fmt: skip
        right, left = right + np.maximum(value, 0), left + np.minimum(value, 0)
        total += value
    ax.axvline(0, color=QUIET, linewidth=1)
    ax.margins(x=0.05)
    ax.plot(
        total, range(len(rows)), "D", color="black", markeredgecolor="white", markersize=6.5,
        label="difference",
    )  # fmt: skip
    ax.set_yticks(list(rows.values()), [str(name) for name in rows])
    ax.set(ylim=(len(rows) - 0.5, -0.5))
    ax.legend(loc="lower right", bbox_to_anchor=(1, 1), ncols=2, fontsize="small")
    return ax


def bias_and_gain(table: pd.DataFrame, ax: Axes | None = None) -> Axes:
    """Draw what permutation gains against how strong the position bias is.

    Parameters
    ----------
    table
        Columns judge, dataset, cramers_v, delta_r, low, high; one row a cell.
    ax
        Where to draw; default: new axes.

    Returns
    -------
    Axes
        One marker per dataset, filled where the interval of Δr excludes 0; every point is named.

    Notes
    -----
    arXiv:2602.02219v2, Tables 2 and 3.

    Examples
    --------
    >>> table = pd.DataFrame({
    ...     "judge": ["a", "b"], "dataset": "HANNA", "cramers_v": [0.02, 0.1],
    ...     "delta_r": [0.0, 0.05], "low": [-0.02, 0.03], "high": [0.02, 0.07]})
    >>> ax = bias_and_gain(table)
    >>> [t.get_text() for t in ax.texts]
    ['a', 'b']
    >>> plt.close(ax.figure)
    """
    ax = _axes(ax)
    ax.axhline(0, color=QUIET, linestyle=":", linewidth=1.2)
    for k, (dataset, cells) in enumerate(table.groupby("dataset", observed=True, sort=False)):
        colour, marker = f"C{k}", MARKERS[k % len(MARKERS)]
        ax.vlines(cells["cramers_v"], cells["low"], cells["high"], color=colour, linewidth=1.2)
        for cell in cells.itertuples():
            fill = "none" if cell.low <= 0 <= cell.high else colour
            ax.plot(cell.cramers_v, cell.delta_r, marker, color=colour, markerfacecolor=fill)
            ax.annotate(
                str(cell.judge), (float(cell.cramers_v), float(cell.delta_r)), (6, 0), va="center",
                textcoords="offset points", fontsize="small", color=colour,
            )  # fmt: skip
        ax.plot([], [], marker=marker, color=colour, linestyle="", label=str(dataset))
    ax.set_xscale("log")
    ax.minorticks_off()
    ax.set_xticks(_V_TICKS, [f"{v:g}" for v in _V_TICKS])
    ax.set_xlim(0.9 * table["cramers_v"].min(), 1.4 * table["cramers_v"].max())
    ax.set(xlabel="Cramér's V of the selected positions", ylabel="Δr, BALANCED − FIXED")
    ax.legend(loc="lower right", bbox_to_anchor=(1, 1), ncols=4, fontsize="small")
    return ax


def budget_curve(curve: pd.DataFrame, label: str = "design", ax: Axes | None = None) -> Axes:
    """Draw agreement with people against the number of averaged reads.

    Parameters
    ----------
    curve
        What `rubricnb.budget_curve` returns, or rows of it.
    label
        The column that tells lines apart.
    ax
        Where to draw; default: new axes.

    Returns
    -------
    Axes
        Markers: mean over subsets. Shaded: spread over subsets, which is not a confidence band.
        Bars: 95 % interval over clusters. Dashed: what averaging alone predicts. Every line is
        named at its end.

    Notes
    -----
    arXiv:2602.02219v2, Figure 9.

    Examples
    --------
    >>> curve = pd.DataFrame({
    ...     "design": "balanced", "k": [1, 2], "r_mean": [0.4, 0.5], "spread_low": [0.3, 0.5],
    ...     "spread_high": [0.45, 0.5], "low": [0.2, 0.3], "high": [0.55, 0.6],
    ...     "r_expected": [0.41, 0.5]})
    >>> ax = budget_curve(curve)
    >>> [t.get_text() for t in ax.texts]
    ['balanced']
    >>> plt.close(ax.figure)
    """
    ax = _axes(ax)
    ends = []
    for i, (name, part) in enumerate(curve.groupby(label, observed=True, sort=False)):
        if part["r_mean"].isna().all():
            continue
        colour, k = f"C{i}", part["k"].to_numpy(dtype=np.float64) + 0.08 * i
        ax.fill_between(k, part["spread_low"], part["spread_high"], color=colour, alpha=0.2, lw=0)
        ax.vlines(k, part["low"], part["high"], color=colour, linewidth=1)
        ax.plot(k, part["r_expected"], color=colour, linestyle="--", linewidth=1.4)
        ax.plot(k, part["r_mean"], MARKERS[i % len(MARKERS)], color=colour)
        ends.append((float(part["r_mean"].iloc[-1]), str(name), colour))
    last = int(curve["k"].max())
    ax.set(xlabel="reads averaged, K", ylabel="r with the ratings", xticks=range(1, last + 1))
    end_labels(ax, last + 0.25, ends)
    return ax


def budget_gain(
    curve: pd.DataFrame, averaging: pd.DataFrame, label: str = "judge", ax: Axes | None = None
) -> Axes:
    """Draw the share of the change from K = 1 to the largest K, beside what averaging alone gives.

    Parameters
    ----------
    curve
        Columns `label`, k and gain, as `rubricnb.budget_curve` returns them.
    averaging
        Columns phi, k and gain: what plain averaging gives; drawn as a shaded range over phi.
    label
        The column that tells markers apart.
    ax
        Where to draw; default: new axes.

    Returns
    -------
    Axes

    Notes
    -----
    arXiv:2602.02219v2, §5.3.

    Examples
    --------
    >>> curve = pd.DataFrame({"judge": "a", "k": [1, 2], "gain": [0.0, 1.0]})
    >>> averaging = pd.DataFrame({"phi": [1, 1], "k": [1, 2], "gain": [0.0, 1.0]})
    >>> ax = budget_gain(curve, averaging)
    >>> ax.lines[-1].get_ydata().tolist()
    [0.0, 100.0]
    >>> plt.close(ax.figure)
    """
    ax = _axes(ax)
    between = 100 * averaging.groupby("k")["gain"].agg(["min", "max"])
    low, high = averaging["phi"].min(), averaging["phi"].max()
    ax.fill_between(
        between.index, between["min"], between["max"], color=QUIET, alpha=0.3, linewidth=0,
        label=f"averaging alone, φ from {low:g} to {high:g}",
    )  # fmt: skip
    names = curve[label].drop_duplicates()
    for i, name in enumerate(names):
        part = curve[curve[label] == name]
        aside = 0.5 * ((i + 0.5) / len(names) - 0.5)
        ax.plot(part["k"] + aside, 100 * part["gain"], MARKERS[i % len(MARKERS)], label=name)
    last = int(between.index.max())
    ax.set(xlabel="reads averaged, K", xticks=range(1, last + 1))
    ax.set(ylabel=f"share of the change from K = 1 to {last}, %")
    ax.legend(loc="lower right", fontsize="small")
    return ax


def coverage(table: pd.DataFrame, label: str = "interval", ax: Axes | None = None) -> Axes:
    """Draw how often an interval holds the truth, against the number of averaged reads.

    Parameters
    ----------
    table
        Columns `label`, k and coverage (0 to 1).
    label
        The column that tells lines apart.
    ax
        Where to draw; default: new axes.

    Returns
    -------
    Axes
        Dotted, the 95 % that an interval promises. Every line is named at its end.

    Examples
    --------
    >>> table = pd.DataFrame({"interval": "t", "k": [1, 2], "coverage": [0.9, 0.95]})
    >>> ax = coverage(table)
    >>> ax.lines[0].get_ydata().tolist()
    [90.0, 95.0]
    >>> plt.close(ax.figure)
    """
    ax = _axes(ax)
    ends: list[tuple[float, str, Any]] = []
    for i, (name, part) in enumerate(table.groupby(label, observed=True, sort=False)):
        (line,) = ax.plot(part["k"], 100 * part["coverage"], marker=MARKERS[i % len(MARKERS)])
        ends.append((float(100 * part["coverage"].iloc[-1]), str(name), line.get_color()))
    ax.axhline(95, color=QUIET, linestyle=":", linewidth=1.2)
    last = int(table["k"].max())
    ax.set(xlabel="reads averaged, K", xticks=range(1, last + 1), ylim=(-4, 104))
    ax.set(ylabel="intervals that hold the truth, %")
    end_labels(ax, last + 0.25, ends)
    return ax


def size_by_scale(
    table: pd.DataFrame,
    size: str = "cramers_v",
    label: str = "judge",
    floor: str = "",
    ax: Axes | None = None,
) -> Axes:
    """Draw a size of position bias against the number of options, one line per judge.

    Parameters
    ----------
    table
        Columns `label`, n_options, `size` and, for an interval, ``<size>_low`` and ``<size>_high``.
    size
        The column to draw.
    label
        The column that tells lines apart.
    floor
        A column with the size that no preference would show; drawn dashed, its mean per number of
        options.
    ax
        Where to draw; default: new axes.

    Returns
    -------
    Axes
        The numbers of options stand at equal distances. Every line is named at its end.

    Notes
    -----
    arXiv:2602.02219v2, Table 4.

    Examples
    --------
    >>> table = pd.DataFrame({"judge": "a", "n_options": [2, 9], "cramers_v": [0.2, 0.1]})
    >>> ax = size_by_scale(table)
    >>> ax.lines[0].get_ydata().tolist(), [t.get_text() for t in ax.get_xticklabels()]
    ([0.2, 0.1], ['2', '9'])
    >>> plt.close(ax.figure)
    """
    ax = _axes(ax)
    scales = sorted(int(n) for n in table["n_options"].unique())
    place = {n: k for k, n in enumerate(scales)}
    groups = list(table.groupby(label, observed=True, sort=False))
    ends: list[tuple[float, str, Any]] = []
    for k, (name, part) in enumerate(groups):
        part = part[part[size].notna()].sort_values("n_options")
        if part.empty:
            continue
        middle = part[size].to_numpy(dtype=np.float64)
        x = part["n_options"].map(place).to_numpy(dtype=np.float64)
        reach = None
        if f"{size}_low" in part:
            x = x + 0.05 * (k - (len(groups) - 1) / 2)  # keeps the bars of several lines apart
            low, high = (part[f"{size}_{end}"].to_numpy(np.float64) for end in ("low", "high"))
            reach = np.maximum(np.nan_to_num([middle - low, high - middle]), 0)
        drawn = ax.errorbar(x, middle, yerr=reach, marker=MARKERS[k % len(MARKERS)], elinewidth=1)
        ends.append((float(middle[-1]), str(name), drawn.lines[0].get_color()))
    if floor:
        least = table.groupby("n_options")[floor].mean().reindex(scales).to_numpy(np.float64)
        ax.plot(range(len(scales)), least, color=QUIET, linestyle="--", linewidth=1.2)
        ends.append((float(least[-1]), "no preference", QUIET))
    ax.set_xticks(range(len(scales)), [str(n) for n in scales])
    ax.set(xlabel="number of options, n", xlim=(-0.2, len(scales) - 0.8))
    end_labels(ax, len(scales) - 0.8, ends)
    return ax


def criterion_shift(
    table: pd.DataFrame, limit: float | None = None, ax: Axes | None = None
) -> Axes:
    """Draw how much each criterion's mean score is shifted at each place in the prompt.

    Parameters
    ----------
    table
        What `rubricnb.statistics.criterion_order` returns for one group: criterion, mean_1, ….
    limit
        Shift, in score points, of the strongest colour; default: the largest in the table.
    ax
        Where to draw; default: new axes.

    Returns
    -------
    Axes
        Each cell is a mean minus the mean over places, in score points. The sign is written and
        coloured.

    Notes
    -----
    arXiv:2602.02219v2, Figures 10 and 11.

    Examples
    --------
    >>> table = pd.DataFrame({"criterion": ["wit"], "mean_1": [3.5], "mean_2": [3.1]})
    >>> ax = criterion_shift(table)
    >>> [t.get_text() for t in ax.texts]
    ['+.20', '−.20']
    >>> plt.close(ax.figure)
    """
    ax = _axes(ax)
    columns = [f"mean_{q}" for q in range(1, _numbered_columns(table, "mean") + 1)]
    means = table[columns].to_numpy(dtype=np.float64)
    shift = means - means.mean(axis=1, keepdims=True)
    largest = float(np.nanmax(np.abs(shift), initial=0.0)) if np.isfinite(shift).any() else 0.0
    strongest = limit or largest or 1.0
    rows, places = shift.shape
    extent = (0.5, places + 0.5, rows + 0.5, 0.5)
    ax.imshow(shift, extent=extent, aspect="auto", cmap="PuOr", vmin=-strongest, vmax=strongest)
    for row, column in zip(*np.nonzero(np.isfinite(shift)), strict=True):
        value = round(float(shift[row, column]), 2)
        sign = "−" if value < 0 else "+"
        ax.text(
            column + 1, row + 1, sign + f"{abs(value):.2f}".removeprefix("0"), ha="center",
            va="center", size="small", color="white" if abs(value) > 0.6 * strongest else "black",
        )  # fmt: skip
    ax.grid(False)
    ax.set(xlabel="place among the criteria", xticks=range(1, places + 1))
    ax.set_yticks(range(1, rows + 1), [str(name) for name in table["criterion"]])
    ax.tick_params(length=0)
    return ax


def gap_beside_null(
    table: pd.DataFrame, label: str = "criterion", series: str = "", ax: Axes | None = None
) -> Axes:
    """Draw ΔPos beside what it is without any effect of the place.

    Parameters
    ----------
    table
        Columns `label`, delta_pos and delta_pos_null, in score points.
    label
        The column that names the rows; the first one stands on top.
    series
        A column that tells markers of one row apart; empty: one marker a row.
    ax
        Where to draw; default: new axes.

    Returns
    -------
    Axes
        An open marker at the null, a filled one at ΔPos, and a line between them.

    Notes
    -----
    arXiv:2602.02219v2, Table 5.

    Examples
    --------
    >>> table = pd.DataFrame(
    ...     {"criterion": ["wit"], "delta_pos": [0.3], "delta_pos_null": [0.1]})
    >>> ax = gap_beside_null(table)
    >>> [line.get_xdata().tolist() for line in ax.lines]
    [[0.3], [0.1]]
    >>> plt.close(ax.figure)
    """
    ax = _axes(ax)
    rows = {name: k for k, name in enumerate(table[label].astype(object).drop_duplicates())}
    groups = list(table.groupby(series, observed=True, sort=False)) if series else [("", table)]
    for k, (name, part) in enumerate(groups):
        aside = 0.5 * ((k + 0.5) / len(groups) - 0.5)
        y = part[label].astype(object).map(rows).to_numpy(dtype=np.float64) + aside
        colour, marker = f"C{k}", MARKERS[k % len(MARKERS)]
        gap, null = (part[c].to_numpy(np.float64) for c in ("delta_pos", "delta_pos_null"))
        ax.hlines(y, null, gap, color=colour, linewidth=1.6)
        ax.plot(gap, y, marker, color=colour, label=str(name) or "ΔPos")
        ax.plot(null, y, marker, color=colour, markerfacecolor="none")
    ax.set_yticks(list(rows.values()), [str(name) for name in rows])
    ax.set(ylim=(len(rows) - 0.5, -0.5), xlim=(0, None))
    ax.set(xlabel="ΔPos in score points (open: without an effect)")
    if series:
        ax.legend(loc="lower right", bbox_to_anchor=(1, 1), ncols=len(groups), fontsize="small")
    return ax


def score_tendency(
    table: pd.DataFrame, label: str = "condition", people: str = "people", ax: Axes | None = None
) -> Axes:
    """Draw how often every score is given: a row per condition, a column per score, per cent.

    Parameters
    ----------
    table
        From `rubricnb.score_tendency`, with a column `label`. Where it has ``human_1…n``, those of
        the first row make a row on top.
    label
        The column that names the rows.
    people
        The name of the row on top.
    ax
        Where to draw; default: new axes.

    Returns
    -------
    Axes

    Notes
    -----
    arXiv:2506.22316, Figure 5.

    Examples
    --------
    >>> table = pd.DataFrame({"condition": ["none"], "share_1": [0.25], "share_2": [0.75],
    ...                       "human_1": [0.5], "human_2": [0.5]})
    >>> ax = score_tendency(table)
    >>> [t.get_text() for t in ax.texts], [t.get_text() for t in ax.get_yticklabels()]
    (['50', '50', '25', '75'], ['people', 'none'])
    >>> plt.close(ax.figure)
    """
    n = _numbered_columns(table, "share")
    shares = [table[[f"share_{s}" for s in range(1, n + 1)]].to_numpy(dtype=np.float64)]
    names = [str(name) for name in table[label]]
    if "human_1" in table:
        rated = table[[f"human_{s}" for s in range(1, n + 1)]].to_numpy(dtype=np.float64)[:1]
        shares, names = [rated, *shares], [people, *names]
    cells = 100 * np.concatenate(shares)
    ax = heat(cells, _axes(ax), "score", "", lowest=0, number="{:.0f}")
    ax.set_yticks(range(1, len(names) + 1), names)
    return ax


def _axes(ax: Axes | None) -> Axes:
    return plt.figure().add_subplot() if ax is None else ax


def _named_orderings(costs: pd.DataFrame) -> list[tuple[str, str, str, int]]:
    """Marker, colour, name and row of the default, the least balanced and the least ordering."""
    codes, cost = list(costs["ordering"].astype("str")), costs["cost"].to_numpy(dtype=np.float64)
    if np.isnan(cost).all():
        return []
    n = len(permutation.decode(codes[0]))
    rotations = set(permutation.code(permutation.balanced(n).orderings()))
    among = np.where([c in rotations for c in codes], cost, np.inf)
    default, least, least_of_all = (
        permutation.code(np.arange(1, n + 1)[None])[0], int(np.nanargmin(among)),
        int(np.nanargmin(cost)),
    )  # fmt: skip
    named = []
    if default in codes:
        named.append(("s", "#0072B2", f"the default, 1…{n}", codes.index(default)))
    if np.isfinite(among[least]):
        named.append(("^", "#009E73", "least of the balanced", least))
    if cost[least_of_all] < among[least]:
        named.append(("D", "#CC79A7", "least of all", least_of_all))
    return named


def _once(row: int, name: str) -> str:
    """Name of a legend's entry: that of the first row; the others repeat it."""
    return name if row == 0 else "_nolegend_"


def sizes(table: pd.DataFrame, ax: Axes, scale: float = 1) -> Axes:
    """Draw columns against sizes on a logarithmic axis, each named at its end."""
    ends = curves(scale * table, ax)
    ax.set_xscale("log")
    ax.set_xticks(table.index, [f"{size:,.0f}" for size in table.index])
    ax.minorticks_off()
    ax.set_ylim(0, None)
    end_labels(ax, 1.05 * float(table.index[-1]), ends)
    return ax


def curves(
    table: pd.DataFrame,
    ax: Axes,
    low: pd.DataFrame | None = None,
    high: pd.DataFrame | None = None,
    aside: float = 0,
) -> list[tuple[float, str, Any]]:
    """Draw every column against the index, with intervals of the same shape if there are any.

    Each stands `aside` further to the right, so that intervals do not cover each other.

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
    ends = []
    for k, name in enumerate(table.columns):
        marker = MARKERS[k % len(MARKERS)]
        x, middle = table.index.to_numpy() + aside * k, table[name].to_numpy(dtype=np.float64)
        if low is None or high is None:
            (line,) = ax.plot(x, middle, marker=marker)
        else:
            below, above = (end[name].to_numpy(dtype=np.float64) for end in (low, high))
            reach = np.maximum(np.nan_to_num([middle - below, above - middle]), 0)
            line = ax.errorbar(x, middle, yerr=reach, elinewidth=1.1, marker=marker).lines[0]
        ends.append((float(middle[-1]), str(name), line.get_color()))
    return ends


def _means(options: pd.DataFrame, index: str, columns: str) -> pd.DataFrame:
    """Mean probability: a row per value of `index`, a column per value of `columns`."""
    grouped = options.groupby([index, columns], observed=True, sort=False)["probability"].mean()
    table = grouped.unstack(columns)
    order = options[columns].drop_duplicates()
    if columns in ("score", "position"):
        order = order.sort_values()
    return table.sort_index()[list(order)]


def colours(n: int) -> list[Any]:
    """From dark to light: scores have an order."""
    return [plt.get_cmap("viridis")(x) for x in np.linspace(0, 0.85, n)]


def lines(table: pd.DataFrame, ax: Axes) -> None:
    """Draw a line for every column of a table, with markers of its own."""
    for k, name in enumerate(table):
        # Later lines are thinner, so that one which covers another leaves it visible.
        ax.plot(
            table.index, table[name], marker=MARKERS[k % len(MARKERS)], label=str(name),
            linewidth=max(1.4, 2.8 - 0.8 * k), markersize=max(4.5, 8.5 - 2.5 * k),
        )  # fmt: skip
    ax.set_xticks(table.index)


def from_zero(ax: Axes) -> None:
    """Begin the ordinate at 0 and end it above the data, those of axes that share it included."""
    ax.autoscale(axis="y")
    ax.autoscale_view(scalex=False)
    ax.set_ylim(0, ax.get_ylim()[1])


def uniform(ax: Axes, n: int, scale: float = 1) -> None:
    """Draw where every share would be without a preference, 1/n."""
    ax.axhline(scale / n, color=QUIET, linestyle="--", linewidth=1, zorder=1)
    ax.annotate(
        f"1/{n}", (1, scale / n), xycoords=("axes fraction", "data"), xytext=(3, 0),
        textcoords="offset points", va="center", color=QUIET, size="small", annotation_clip=False,
    )  # fmt: skip


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


def position_lines(
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
            positions + aside, middle, yerr=reach, marker=MARKERS[k % len(MARKERS)],
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


def end_labels(ax: Axes, x: float, ends: list[tuple[float, str, Any]]) -> None:
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
