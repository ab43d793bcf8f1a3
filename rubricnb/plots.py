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

if TYPE_CHECKING:
    from matplotlib.axes import Axes

STYLE = Path(__file__).with_name("matplotlibrc")
"""The style of the book's figures and of an audit's.

:meta hide-value:
"""

MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<", ">", "*")
QUIET = "#595959"
_INTERVAL = ("estimate", "low", "high")
_VERDICTS = {"replicates": ("+", "C0"), "does not": ("−", "C1"), "cannot say": ("?", QUIET)}


def replication(table: pd.DataFrame, ax: Axes | None = None) -> Axes:
    """Draw which findings hold for which judge on which dataset, a sign in each cell.

    Parameters
    ----------
    table
        From `rubricnb.replication.replication`, rows of several judges and datasets together:
        finding, judge, dataset, verdict.
    ax
        Where to draw; default: new axes.

    Returns
    -------
    Axes
        ``+`` replicates, ``−`` does not, ``?`` cannot say.

    Examples
    --------
    >>> cell = {"finding": "first", "judge": "m", "dataset": "d", "verdict": "replicates"}
    >>> ax = replication(pd.DataFrame([cell, cell | {"dataset": "e", "verdict": "does not"}]))
    >>> [t.get_text() for t in ax.texts]
    ['+', '−']
    >>> plt.close(ax.figure)
    """
    table = table.assign(cell=table["judge"].astype(str) + ", " + table["dataset"].astype(str))
    names, cells = list(table["finding"].unique()), sorted(table["cell"].unique())
    if ax is None:
        ax = plt.figure(figsize=(3.6 + 0.5 * len(names), 1.1 + 0.36 * len(cells))).gca()
    for row in table.itertuples():
        at = names.index(str(row.finding)), cells.index(str(row.cell))
        sign, colour = _VERDICTS[str(row.verdict)]
        ax.scatter(*at, s=330, marker="s", color=colour, alpha=0.25, linewidths=0)
        ax.text(*at, sign, ha="center", va="center", fontsize=13)
    ax.set_xticks(range(len(names)), names, rotation=35, ha="left")
    ax.xaxis.tick_top()
    ax.set_yticks(range(len(cells)), cells)
    ax.set(xlim=(-0.6, len(names) - 0.4), ylim=(len(cells) - 0.4, -0.6))
    ax.grid(visible=False)
    return ax


def position_selection(table: pd.DataFrame, label: str = "judge", ax: Axes | None = None) -> Axes:
    """Draw how often each position is selected, with intervals and the uniform share.

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
    ax = _axes(ax)
    n = _numbered_columns(table, "share")
    ends = [(100 / n, "uniform", QUIET)]
    ax.axhline(100 / n, color=QUIET, linestyle=":", linewidth=1.2)
    ends += position_lines(table, "share", label, n, ax, scale=100)
    ax.set(ylabel="selected, % of reads")
    end_labels(ax, n + 0.3, ends)
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


def reference_accuracy(table: pd.DataFrame, label: str = "judge", ax: Axes | None = None) -> Axes:
    """Draw the agreement with people against the score of the reference shown, with intervals.

    Parameters
    ----------
    table
        Columns reference_score (``none`` or a score), `label`, rho, rho_low and rho_high.
    label
        The column that tells lines apart.
    ax
        Where to draw; default: new axes.

    Returns
    -------
    Axes
        Dotted: each line's value without a reference.

    Notes
    -----
    arXiv:2506.22316, Figure 6.

    Examples
    --------
    >>> table = pd.DataFrame({"reference_score": ["none", "5"], "judge": "a", "rho": [0.4, 0.5],
    ...                       "rho_low": [0.3, 0.4], "rho_high": [0.5, 0.6]})
    >>> ax = reference_accuracy(table)
    >>> [t.get_text() for t in ax.get_xticklabels()]
    ['none', '5']
    >>> plt.close(ax.figure)
    """
    ax = _axes(ax)
    names = sorted(map(str, table["reference_score"].unique()), key=lambda n: (n != "none", n))
    ends = []
    for k, (name, part) in enumerate(table.groupby(label, observed=True, sort=False)):
        own = part.set_index(part["reference_score"].astype(str)).reindex(names)
        middle, low, high = (own[c].to_numpy(np.float64) for c in ("rho", "rho_low", "rho_high"))
        reach = np.maximum(np.nan_to_num([middle - low, high - middle]), 0)
        drawn = ax.errorbar(
            np.arange(len(names)) + 0.06 * k, middle, yerr=reach, elinewidth=1.1,
            marker=MARKERS[k % len(MARKERS)],
        )  # fmt: skip
        colour = drawn.lines[0].get_color()
        ends.append((float(middle[-1]), str(name), colour))
        if "none" in names:
            ax.axhline(middle[0], color=colour, linestyle=":", linewidth=1)
    ax.set_xticks(range(len(names)), names)
    ax.set(xlabel="score of the reference answer", ylabel="ρ with the ratings")
    ax.set_xlim(-0.4, len(names) - 0.6 + 0.1 * len(ends))  # room for the names, also of one score
    if len(ends) > 1:
        end_labels(ax, len(names) - 1 + 0.1 * len(ends), ends)
    return ax


def size_and_flips(table: pd.DataFrame, ax: Axes | None = None) -> Axes:
    """Draw flip rates against the size of the judge, a line per perturbation.

    Parameters
    ----------
    table
        Columns judge, size (10⁹ parameters; NaN where it is not public: drawn apart, at the
        right), perturbation and flip_rate (per cent). Judges stand in the order of their sizes.
    ax
        Where to draw; default: new axes.

    Returns
    -------
    Axes

    Notes
    -----
    arXiv:2506.22316, §4.3 (1), which has no figure of it.

    Examples
    --------
    >>> table = pd.DataFrame({"judge": ["a", "b", "c"], "size": [8, 32, np.nan],
    ...                       "perturbation": "letters", "flip_rate": [30.0, 25, 20]})
    >>> ax = size_and_flips(table)
    >>> ax.lines[0].get_ydata().tolist()
    [30.0, 25.0]
    >>> plt.close(ax.figure)
    """
    ax = _axes(ax)
    judges = table[["judge", "size"]].drop_duplicates().sort_values("size")
    places = np.arange(len(judges))
    ends = []
    for k, (name, part) in enumerate(table.groupby("perturbation", observed=True, sort=False)):
        heights = part.set_index("judge")["flip_rate"].reindex(judges["judge"])
        known = judges["size"].notna().to_numpy()
        marker = MARKERS[k % len(MARKERS)]
        (line,) = ax.plot(places[known], heights[known], marker=marker)
        ax.plot(places[~known], heights[~known], marker, color=line.get_color())
        ends.append((float(heights.iloc[-1]), str(name), line.get_color()))
    sizes = [f"{size:g}" if np.isfinite(size) else "not public" for size in judges["size"]]
    ticks = [f"{name}\n{size}" for name, size in zip(judges["judge"], sizes, strict=True)]
    ax.set_xticks(places, ticks, fontsize="small")
    ax.set(xlabel="judge, and its size in 10⁹ parameters", ylabel="scores flipped, %")
    ax.set_ylim(0, None)
    end_labels(ax, places[-1] + 0.1, ends)
    return ax


def repeats(table: pd.DataFrame, ax: Axes | None = None) -> Axes:
    """Draw what is left of flips and of the shift when each score is made of k repeats.

    Parameters
    ----------
    table
        One row per number of repeats: k, then a column for each line, as shares.
    ax
        Where to draw; default: new axes.

    Returns
    -------
    Axes

    Examples
    --------
    >>> ax = repeats(pd.DataFrame({"k": [1, 10], "flips": [0.5, 0.2], "shift": [0.3, 0.3]}))
    >>> [line.get_ydata()[-1].item() for line in ax.lines]
    [0.2, 0.3]
    >>> plt.close(ax.figure)
    """
    ax = sizes(table.set_index("k"), _axes(ax))
    ax.set(xlabel="repeats of each prompt")
    return ax


def label_maps(table: pd.DataFrame, ax: Axes | None = None) -> Axes:
    """Draw maps from a latent score to labels as steps, each named where it ends.

    Parameters
    ----------
    table
        Columns latent, map (its name) and label; sorted by latent within each map.
    ax
        Where to draw; default: new axes.

    Returns
    -------
    Axes

    Notes
    -----
    arXiv RULERS, Eq. 5, which has no figure.

    Examples
    --------
    >>> table = pd.DataFrame({"latent": [1.0, 2, 3], "map": "rounded", "label": [1, 2, 2]})
    >>> ax = label_maps(table)
    >>> ax.lines[0].get_ydata().tolist()
    [1, 2, 2]
    >>> plt.close(ax.figure)
    """
    ax = _axes(ax)
    styles = ("-", "--", ":", "-.")
    for k, (name, part) in enumerate(table.groupby("map", observed=True, sort=False)):
        ax.step(part["latent"], part["label"], styles[k % 4], where="mid", label=str(name))
    labels = np.unique(table["label"])
    if len(labels) < 12:
        ax.set_yticks(labels)
    ax.set(xlabel="latent score z", ylabel="label")
    ax.legend(loc="upper left", fontsize="small")
    return ax


def kappa_curves(table: pd.DataFrame, log: bool = False, ax: Axes | None = None) -> Axes:
    """Draw quadratic weighted kappas against what was varied, one line per column.

    Parameters
    ----------
    table
        The index is what was varied (its name labels the axis); each column is a line.
    log
        Whether that axis is logarithmic: for sizes.
    ax
        Where to draw; default: new axes.

    Returns
    -------
    Axes

    Examples
    --------
    >>> table = pd.DataFrame({"told": [0.8, 0.6], "true": [0.4, 0.55]}, index=[15, 200])
    >>> ax = kappa_curves(table.rename_axis("calibration items"), log=True)
    >>> ax.get_xlabel(), sorted(t.get_text() for t in ax.texts)
    ('calibration items', ['told', 'true'])
    >>> plt.close(ax.figure)
    """
    ax = _axes(ax)
    if log:
        sizes(table, ax)
    else:
        ends = []
        for k, name in enumerate(table.columns):
            (line,) = ax.plot(table.index, table[name], marker=MARKERS[k % len(MARKERS)])
            ends.append((float(table[name].iloc[-1]), str(name), line.get_color()))
        end_labels(ax, float(table.index[-1]) + 0.03 * float(np.ptp(table.index)), ends)
    ax.set(xlabel=str(table.index.name or ""), ylabel="QWK")
    return ax


def kappa_gaps(gaps: ArrayLike, margin: float, ax: Axes | None = None) -> Axes:
    """Draw how far a calibration's kappas are from the best there are, over simulated studies.

    Parameters
    ----------
    gaps
        Kappa of the calibration minus that of the best monotone map, one per study.
    margin
        Where a dashed line marks what the mean must not fall below.
    ax
        Where to draw; default: new axes.

    Returns
    -------
    Axes

    Examples
    --------
    >>> ax = kappa_gaps([-0.02, -0.03, -0.01], margin=-0.03)
    >>> [t.get_text() for t in ax.texts]
    ['mean −0.020', 'margin −0.03']
    >>> plt.close(ax.figure)
    """
    ax = _axes(ax)
    values = np.asarray(gaps, dtype=np.float64)
    mean = float(values.mean())
    ax.hist(values, bins=25, color="C0", alpha=0.55)
    top = ax.get_ylim()[1]
    for at, style, text, digits in ((mean, "-", "mean", 3), (margin, "--", "margin", 2)):
        ax.axvline(at, color=QUIET, linestyle=style)
        said = f"{text} {at:.{digits}f}".replace("-", "−")
        height, side = (1.02, "left") if at == max(mean, margin) else (1.02, "right")
        ax.text(at, height * top, said, ha=side, va="bottom", fontsize="small")
    ax.set(xlabel="QWK minus that of the best monotone map", ylabel="simulated studies")
    return ax


def scores_by_first_level(
    table: pd.DataFrame, label: str = "method", ax: Axes | None = None
) -> Axes:
    """Draw the mean score against the level that the rubric shows first, with intervals.

    Parameters
    ----------
    table
        Columns first (the level), `label`, estimate, low and high.
    label
        The column that tells lines apart.
    ax
        Where to draw; default: new axes.

    Returns
    -------
    Axes

    Examples
    --------
    >>> table = pd.DataFrame({"first": [1, 5], "method": "dhs", "estimate": [2.8, 3.2],
    ...                       "low": 2.5, "high": 3.5})
    >>> ax = scores_by_first_level(table)
    >>> ax.lines[0].get_ydata().tolist()
    [2.8, 3.2]
    >>> plt.close(ax.figure)
    """
    ax = _axes(ax)
    levels, ends = np.sort(table["first"].unique()), []
    for k, (name, part) in enumerate(table.groupby(label, observed=True, sort=False)):
        own = part.set_index("first").reindex(levels)
        middle, low, high = (own[c].to_numpy(np.float64) for c in _INTERVAL)
        reach = np.maximum(np.nan_to_num([middle - low, high - middle]), 0)
        drawn = ax.errorbar(
            levels + 0.06 * k,
            middle,
            yerr=reach,
            elinewidth=1.1,
            marker=MARKERS[k % len(MARKERS)],
        )
        ends.append((float(middle[-1]), str(name), drawn.lines[0].get_color()))
    ax.set_xticks(levels)
    ax.set(xlabel="level shown first", ylabel="mean score")
    end_labels(ax, float(levels[-1]) + 0.1 * len(ends), ends)
    return ax


def locking(table: pd.DataFrame, ax: Axes | None = None) -> Axes:
    """Draw the agreement of a locked and a re-compiled checklist by how much wordings differ.

    Parameters
    ----------
    table
        Columns difficulty (standard deviation between wordings, in decisions), method and qwk.
    ax
        Where to draw; default: new axes.

    Returns
    -------
    Axes
        A line with its own marker per method, named at its end.

    Examples
    --------
    >>> ax = locking(pd.DataFrame({"difficulty": [0, 1], "method": "locked", "qwk": [0.8, 0.7]}))
    >>> [t.get_text() for t in ax.texts]
    ['locked']
    >>> plt.close(ax.figure)
    """
    ax = _axes(ax)
    ends = []
    for k, (name, part) in enumerate(table.groupby("method", observed=True, sort=False)):
        x, y = (part[column].to_numpy(dtype=np.float64) for column in ("difficulty", "qwk"))
        (line,) = ax.plot(x, y, marker=MARKERS[k])
        ends.append((float(y[-1]), str(name), line.get_color()))
    ax.set(xlabel="sd of the difficulty between wordings, in decisions", ylabel="QWK")
    end_labels(ax, float(table["difficulty"].max()), ends)
    return ax


def verification(table: pd.DataFrame, label: str = "units", ax: Axes | None = None) -> Axes:
    """Draw what became of the quotes: a bar of shares per row, each part with its number.

    Parameters
    ----------
    table
        From `rubricnb.rulers.verification`: `label`, status and share.
    label
        The column that names the bars; the first one stands on top.
    ax
        Where to draw; default: new axes.

    Returns
    -------
    Axes
        Parts are told apart by hatches as well as colours; parts below 4 % have no number.

    Examples
    --------
    >>> ax = verification(pd.DataFrame({"units": "sentences", "status": ["verified", "not found"],
    ...                                 "share": [0.75, 0.25]}))
    >>> [t.get_text() for t in ax.texts]
    ['75 %', '25 %']
    >>> plt.close(ax.figure)
    """
    ax = _axes(ax)
    wide = table.pivot_table("share", label, "status", observed=True, sort=False)
    wide = wide.loc[table[label].drop_duplicates().dropna()]
    y, left = np.arange(len(wide)), np.zeros(len(wide))
    for k, status in enumerate(wide.columns):
        share = wide[status].fillna(0).to_numpy(dtype=np.float64)
        hatch = ("", "//", "xx", "..")[k % 4]
        ax.barh(y, share, 0.6, left, color=f"C{k}", alpha=0.55, hatch=hatch, label=str(status))
        for at in np.flatnonzero(share >= 0.04):
            ax.text(
                left[at] + share[at] / 2, y[at], f"{100 * share[at]:.0f} %", ha="center",
                va="center", fontsize="small",
                bbox={"facecolor": "white", "alpha": 0.75, "edgecolor": "none", "pad": 1},
            )  # fmt: skip
        left += share
    ax.set_yticks(y, [str(name) for name in wide.index])
    ax.set(xlim=(0, 1), ylim=(len(wide) - 0.5, -0.5), xlabel="share of the quotes")
    ax.grid(False)
    ax.legend(loc="lower center", bbox_to_anchor=(0.5, 1), ncols=4, fontsize="small")
    return ax


def gate(table: pd.DataFrame, tau: int, ax: Axes | None = None) -> Axes:
    """Draw how many scores stand at each number of valid quotes, and which the gate refuses.

    Parameters
    ----------
    table
        Counts: a row per number of valid quotes (the index), a column per score (1…S).
    tau
        The lowest score that needs as many valid quotes as the last row has.
    ax
        Where to draw; default: new axes.

    Returns
    -------
    Axes
        Numbers of the cells that are refused stand in brackets, behind a dashed line.

    Examples
    --------
    >>> ax = gate(pd.DataFrame([[0, 3], [1, 2]], index=[0, 1], columns=[1, 2]), tau=2)
    >>> [t.get_text() for t in ax.texts]
    ['0', '(3)', '1', '2']
    >>> plt.close(ax.figure)
    """
    ax = heat(table.to_numpy(), _axes(ax), "score before the gate", "valid quotes", lowest=0)
    columns, rows = list(table.columns), len(table)
    refused = columns.index(tau) + 1 if tau in columns else len(columns) + 1
    for text in ax.texts:
        column, row = text.get_position()
        if column >= refused and row < rows:
            text.set_text(f"({text.get_text()})")
    if rows > 1:
        edge = refused - 0.5
        ax.plot([edge, edge, len(columns) + 0.5], [0.5, rows - 0.5, rows - 0.5], "--", color="C1")
    ax.set_xticks(range(1, len(columns) + 1), [str(c) for c in columns])
    ax.set_yticks(range(1, rows + 1), [str(i) for i in table.index])
    return ax


def _axes(ax: Axes | None) -> Axes:
    return plt.figure().add_subplot() if ax is None else ax


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


def reach(table: pd.DataFrame, value: str, scale: float = 1) -> NDArray[np.float64] | None:
    """How far ``{value}_low`` and ``_high`` are from `value`, for errorbar; None without them."""
    if f"{value}_low" not in table:
        return None
    middle, low, high = (
        scale * table[f"{value}{end}"].to_numpy(dtype=np.float64) for end in ("", "_low", "_high")
    )
    return np.maximum(np.nan_to_num([middle - low, high - middle]), 0)


def interval_lines(
    table: pd.DataFrame, x: str, value: str, label: str, ax: Axes, aside: float = 0.0
) -> list[tuple[float, str, Any]]:
    """Draw `value` against `x`, a line per `label` with its intervals if the table has them.

    Parameters
    ----------
    table
        Columns `x`, `value`, `label` and, for intervals, ``{value}_low`` and ``{value}_high``.
    x, value, label
        Columns: the abscissa, the ordinate, and what tells lines apart.
    ax
        Where to draw.
    aside
        How far lines with intervals stand apart, so that their bars can be told from each other.

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
    ends = []
    groups = list(table.groupby(label, observed=True, sort=False))
    for k, (name, part) in enumerate(groups):
        part = part[part[value].notna()].sort_values(x)
        if part.empty:
            continue
        places, middle = (part[c].to_numpy(dtype=np.float64) for c in (x, value))
        bars = reach(part, value)
        if bars is not None:
            places = places + aside * (k - (len(groups) - 1) / 2)
        marker = MARKERS[k % len(MARKERS)]
        drawn = ax.errorbar(places, middle, yerr=bars, marker=marker, elinewidth=1.1)
        ends.append((float(middle[-1]), str(name), drawn.lines[0].get_color()))
    return ends


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
