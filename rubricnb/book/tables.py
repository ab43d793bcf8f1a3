"""Where a page's tables and figures are drawn, alike for all chapters.

Also what all pages print: their numbers' source, the paper beside ours.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from copy import copy
from html import escape
from typing import Any

import numpy as np
import pandas as pd

from rubricnb.book.glue import glued_text, is_unknown, unknown_note
from rubricnb.core.results import judges as recorded_judges
from rubricnb.core.support.naming import CannotShow as CannotShow
from rubricnb.core.support.naming import as_markdown, check_answered, join_distinct
from rubricnb.core.support.naming import check_rated as check_rated
from rubricnb.core.support.naming import condition_names as condition_names
from rubricnb.core.support.naming import truth_of as truth_of
from rubricnb.core.support.types import Json
from rubricnb.sets.papers import NO_INTERVAL

_ONE_CLUSTER = (
    ". All texts belong to one cluster, which tells nothing of how others vary: there "
    "are no intervals and no tests, which take more items"
)


def say(
    values: Mapping[str, Any] | None = None, /, needs: str = "", **named: Any
) -> None:
    """Glue values of this run for the prose, which names them in ``{glue:text}``.

    A chapter's answer and story, and every sentence that names one of the book's
    judges, take recorded values instead, in ``{recorded}`` roles, which a different run
    cannot change.

    Parameters
    ----------
    values
        Names and values; for names that are no Python words.
    needs
        What the values need, such as `Chapter.needs`. One that is not known says so,
        and the page shows this line in place of the whole paragraph.
    **named
        Names and values; ``n_items=3`` is glued as ``n-items``.

    Examples
    --------
    >>> say({"27B-ratio": 1.8}, n_items=30)  # prints nothing
    """
    dashed = {name.replace("_", "-"): value for name, value in named.items()}
    for name, value in {**(values or {}), **dashed}.items():
        # not "np.int64(3)"
        value = value.item() if isinstance(value, np.generic) else value
        value = _with_minus(value) if isinstance(value, str) else value
        shown = unknown_note(needs) if is_unknown(str(value)) else value
        _keep(name, shown)


def tell(name: str, text: str, needs: str = "") -> None:
    """Glue a whole paragraph, chosen by what was found, for a ``{glue:md}`` directive.

    Parameters
    ----------
    name
        What the directive names.
    text
        Markdown. If it holds a NaN, one line in its place says what is missing.
    needs
        As for `say`.

    Examples
    --------
    >>> low = 0.2
    >>> found = "Ten orders pick better texts." if low > 0 else "That is inconclusive."
    >>> tell("gain", found)
    """
    from IPython.display import Markdown

    text = unknown_note(needs) if is_unknown(text) else _with_minus(text)
    _keep(name, Markdown(text))


def fill(text: str) -> None:
    """Show a paragraph with the numbers of this run, in a notebook for a class.

    The book puts them into its pages. A notebook has no pages, so a cell shows the
    paragraph, and shows it again whenever one of its numbers is known.

    Parameters
    ----------
    text
        Markdown with ``{glue:text}`` roles, which name what `say` and `tell` were
        given.

    Examples
    --------
    >>> fill("Asked: {glue:text}`n-items` texts.")
    Asked: … texts.
    """
    from IPython.core.getipython import get_ipython
    from IPython.display import Markdown, display

    if get_ipython() is None:  # type: ignore[no-untyped-call, unused-ignore]
        print(filled(text, {}))
        return
    handle = display(Markdown(filled(text, _SAID)), display_id=True)
    _PARAGRAPHS.append((text, handle))


def filled(text: str, values: Mapping[str, Any]) -> str:
    """Return a paragraph with the values that its roles name.

    Examples
    --------
    >>> filled("{glue:text}`share:.0%` of {glue:text}`n`", {"share": 0.25, "n": "9"})
    '25% of 9'
    >>> filled("{glue:text}`share` of {glue:text}`n`", {"n": "9"})
    '… of 9'
    """
    plain_values = {name: {"text/plain": repr(value)} for name, value in values.items()}

    def value_of(role: re.Match[str]) -> str:
        return str(glued_text(role[1], plain_values) or "…")

    def fill_paragraph(paragraph: str) -> str:
        printed_values = map(value_of, _VALUE_ROLE.finditer(paragraph))
        # as on a page of the book, one line in place of what is not known
        unknown_note = next(filter(is_unknown, printed_values), "")
        return unknown_note or _VALUE_ROLE.sub(value_of, paragraph)

    return "\n\n".join(map(fill_paragraph, text.split("\n\n")))


_VALUE_ROLE = re.compile(r"\{glue:text\}`([^`]+)`")


# what this kernel has said, and the paragraphs that show it
_SAID: dict[str, Any] = {}
_PARAGRAPHS: list[tuple[str, Any]] = []


def _keep(name: str, value: Any) -> None:
    """Keep a value for the book's pages, and show the paragraphs that name it again."""
    from IPython.display import Markdown

    _SAID[name] = getattr(value, "data", value)
    for paragraph, handle in _PARAGRAPHS:
        if re.search(f"`{re.escape(name)}[:`]", paragraph):
            handle.update(Markdown(filled(paragraph, _SAID)))
    _glue(name, value, display=False)


def _glue(name: str, value: Any, display: bool) -> None:
    """Keep a value for the book's pages, and show it; without MyST-NB, show it only."""
    try:
        from myst_nb import glue
    except ModuleNotFoundError:  # a class: nobody builds a page of what runs there
        if display:
            from IPython.display import display as show

            show(value)  # type: ignore[no-untyped-call, unused-ignore]
    else:
        glue(name, value, display=display)


def show(
    name: str, what: Any, size: tuple[float, float] | None = None, **formats: Any
) -> None:
    """Show a figure or a table, and glue it for the place of its caption.

    The book shows it there only; a notebook that is run by itself shows it below the
    cell.

    Parameters
    ----------
    name
        What a ``{glue:figure}`` directive names.
    what
        Axes, a figure (closed afterwards), a frame or a Styler. The index of a frame is
        shown only if it has names: one of bare numbers says nothing.
    size
        Of a figure: width and height in inches.
    **formats
        Of a frame: what pandas' ``Styler.format`` takes, such as ``precision=2``.

    Examples
    --------
    >>> import matplotlib.pyplot as plt
    >>> show("fig-a", plt.figure().add_subplot(), size=(6, 3))
    <Figure size ... with 1 Axes>
    >>> plt.get_fignums()
    []
    """
    from matplotlib import pyplot
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    if isinstance(what, Axes):
        what = what.figure
    if size:
        what.set_size_inches(size)
    if isinstance(what, pd.DataFrame):
        # `reason` has the sentences of codes; a number that is not known is a dash
        what = what.drop(columns="codes", errors="ignore").replace(["nan", "NaN"], "–")
        is_numbered = pd.api.types.is_integer_dtype(what.index)
        is_numbered &= what.index.name is None
        if is_numbered or formats:
            what = what.style.format(**{"na_rep": "–"} | formats)
        if is_numbered:
            what = what.hide(axis="index")
    _glue(name, what, display=True)
    if isinstance(what, Figure):
        pyplot.close(what)


def numbers_of(judgments: pd.DataFrame, intervals: bool = True) -> str:
    """Say whose numbers a page shows: source, judge, dataset, readout, what was lost.

    Parameters
    ----------
    judgments
        What `rubricnb.run` or `rubricnb.simulate` returned, or the scores of
        `rubricnb.rulers`.
    intervals
        Whether the page has intervals and tests; then it is said if all texts belong to
        one cluster, for which none is defined.

    Returns
    -------
    str
        One line of Markdown, in which no name acts as markup; several judges or
        datasets are listed.

    Examples
    --------
    >>> import rubricnb as rb
    >>> items = rb.load("minibench", n_items=30)
    >>> judgments = rb.simulate(rb.plan(items, rb.balanced(5)), items, "unbiased")
    >>> print(numbers_of(judgments))
    Numbers on this page: simulated, judge simulated:unbiased, minibench (designed \
quality), 300 judgments, readout logprobs, 0 without a score
    """
    datasets = [
        f"{name} (designed quality)" if name.startswith("minibench") else name
        for name in map(as_markdown, judgments["dataset"].unique())
    ]
    check_answered(judgments)
    is_graded = "method" in judgments
    readout_column = "method" if is_graded else "readout"
    has_one_cluster = (
        intervals
        and judgments.groupby("dataset", observed=True)["cluster_id"].nunique().min()
        < 2
    )
    lost = int((judgments["status"] != "ok").sum()) if "status" in judgments else 0
    return (
        f"Numbers on this page: {join_distinct(judgments['source'])}, judge "
        f"{join_distinct(judgments['judge'])}, {' and '.join(datasets)}, "
        f"{len(judgments):,} {'scores' if is_graded else 'judgments'}, "
        f"{readout_column} {join_distinct(judgments[readout_column])}, "
        f"{lost:,} without a score"
    ) + (_ONE_CLUSTER if has_one_cluster else "")


def check_drawn(
    figure: str, frame: pd.DataFrame, n_rows: int, **columns: str | Iterable[str]
) -> None:
    """Check that a figure of recorded data is drawn from what its caption describes.

    A new recording adds rows to a table. Without this check it would add a line to a
    figure too, and nobody would look.

    Parameters
    ----------
    figure
        Its name, for the message.
    frame
        What is drawn.
    n_rows
        The rows it has.
    **columns
        Column → every value in it: one, or a collection.

    Raises
    ------
    ValueError
        Names the figure, what it should be drawn from, and what the frame has instead.

    Examples
    --------
    >>> table = pd.DataFrame({"judge": "SmolLM2", "dataset": ["hanna", "vicuna"]})
    >>> check_drawn(
    ...     "fig-places", table, 2, judge="SmolLM2", dataset=["hanna", "vicuna"]
    ... )
    >>> check_drawn("fig-places", table, 1, dataset="hanna")
    Traceback (most recent call last):
    ...
    ValueError: figure fig-places describes other data than its frame has: 2 rows \
(described: 1); dataset = hanna, vicuna (described: hanna). Look at the figure, then \
change its caption, its alt text and this check together
    """
    differences = (
        [] if len(frame) == n_rows else [f"{len(frame):,} rows (described: {n_rows:,})"]
    )
    for column, described in columns.items():
        values = set(frame[column].astype(str))
        expected = {described} if isinstance(described, str) else set(described)
        if values != expected:
            found, said = (
                ", ".join(sorted(names)) or "nothing" for names in (values, expected)
            )
            differences.append(f"{column} = {found} (described: {said})")
    if differences:
        raise ValueError(
            f"figure {figure} describes other data than its frame has: "
            f"{'; '.join(differences)}. Look at the figure, then change its caption, "
            "its alt text and this check together"
        )


def percent(x: float, digits: int = 0) -> str:
    """Format a share in per cent; ``NaN`` if it is unknown.

    Examples
    --------
    >>> percent(0.531), percent(0.531, 1), percent(float("nan"))
    ('53 %', '53.1 %', 'NaN')
    """
    return f"{100 * x:.{digits}f} %" if np.isfinite(x) else "NaN"


def p_value(p: float, digits: int | None = None) -> str:
    """Write a p-value for a sentence or, with a number of digits, for a table.

    Parameters
    ----------
    p
        One that is not known is ``NaN``.
    digits
        Of the bare number in a table, which says "<" below the smallest that it can
        show.

    Examples
    --------
    >>> p_value(0.0004), p_value(0.031), p_value(0.42)
    ('p < .001', 'p = .03', 'p = .42')
    >>> p_value(0.0004, 3), p_value(0.031, 4)
    ('< .001', '0.0310')
    """
    if np.isnan(p):
        return "p = NaN" if digits is None else "NaN"
    if digits is not None:
        return f"< .{1:0{digits}}" if p < 10**-digits else f"{p:.{digits}f}"
    if p < 0.001:
        return "p < .001"
    return f"p = {p:.{3 if p < 0.01 else 2}f}".replace("0.", ".")


def signed(x: float, digits: int = 2) -> str:
    """Format a number with its sign, a true minus; ``NaN`` if it is unknown.

    Examples
    --------
    >>> signed(0.123), signed(-0.123, 1)
    ('+0.12', '−0.1')
    """
    return _with_minus(f"{x:+z.{digits}f}") if np.isfinite(x) else "NaN"


def interval(
    row: Any, name: str = "value", scale: float = 1
) -> tuple[float, float, float]:
    """Return an estimate and the ends of its interval; NaN if unknown.

    Parameters
    ----------
    row
        A row of what a statistic returns: a Series, a mapping or a named tuple.
    name
        Column of the estimate; the interval is in ``{name}_low``, ``{name}_high``, or
        in ``low`` and ``high``.
    scale
        What the numbers are multiplied with.

    Examples
    --------
    >>> interval({"r": 0.93, "low": 0.72, "high": None}, "r", 100)
    (93.0, 72.0, nan)
    """
    values = row._asdict() if hasattr(row, "_asdict") else row
    ends = [values.get(f"{name}_{end}", values.get(end)) for end in ("low", "high")]
    middle, low, high = (
        np.nan if pd.isna(number) else scale * float(number)
        for number in (values[name], *ends)
    )
    return middle, low, high


def estimate(
    row: Any, name: str = "value", digits: str = ".2f", scale: float = 1, unit: str = ""
) -> Any:
    """Format an estimate with its interval for a sentence; unknown ones say why.

    Parameters
    ----------
    row
        A row of what a statistic returns, as `interval` takes it, or the whole frame.
    name
        Column of the estimate.
    digits
        Format of the three numbers.
    scale, unit
        What the numbers are multiplied with, and what follows the estimate: 100 and "
        %".

    Returns
    -------
    str or list of str
        The estimate and [low, high]; in place of what is NaN the row's ``reason``, in
        brackets. Of a frame, that of every row.

    Examples
    --------
    >>> row = pd.Series({"r": 0.93, "r_low": 0.72, "r_high": 0.98, "reason": ""})
    >>> estimate(row, "r")
    '0.93 [0.72, 0.98]'
    >>> row = {"delta_r": -0.1, "low": None,
    ...        "reason": "one cluster: intervals need two"}
    >>> estimate(row, "delta_r", "+.3f")
    '−0.100 (one cluster: intervals need two)'
    """
    if isinstance(row, pd.DataFrame):
        return [
            estimate(record, name, digits, scale, unit)
            for record in row.to_dict("records")
        ]
    middle, low, high = interval(row, name, scale)
    unsigned = digits.lstrip("+")
    # no minus before a rounded 0; an end keeps it, which says on which side of 0 it is
    signed_digits = digits.replace(unsigned, f"z{unsigned}")
    point = "" if np.isnan(middle) else f"{middle:{signed_digits}}{unit}"
    if point and not (np.isnan(low) or np.isnan(high)):
        return _with_minus(f"{point} [{low:{unsigned}}, {high:{unsigned}}]")
    values = row._asdict() if hasattr(row, "_asdict") else row
    reason = f"({values.get('reason') or 'not known'})"
    return f"{_with_minus(point)} {reason}" if point else reason


def _with_minus(text: str) -> str:
    """Write a true minus before numbers, and leave the hyphens of 3-1-2 and gpt-4."""
    return re.sub(r"(?<![\w-])-(?=[\d.])", "−", text)


def unbiased_v(table: pd.DataFrame, digits: str = ".2f") -> list[str]:
    """Write the root of V²_U with its interval for each row of `position_bias`.

    Parameters
    ----------
    table
        ``v2_unbiased``, ``v2_unbiased_low``, ``v2_unbiased_high`` and, for what is NaN,
        ``reason``.
    digits
        Format of the three numbers.

    Returns
    -------
    list of str
        As `estimate` writes it. The roots are taken last; that of a negative square is
        0.

    Examples
    --------
    >>> row = {"v2_unbiased": 0.04, "v2_unbiased_low": -0.01, "v2_unbiased_high": 0.09}
    >>> unbiased_v(pd.DataFrame([row]))
    ['0.20 [0.00, 0.30]']
    """
    roots = table.filter(like="v2_unbiased").clip(lower=0) ** 0.5
    return estimate(roots.assign(reason=table.get("reason", "")), "v2_unbiased", digits)


def short_names(judges: pd.Series) -> pd.Series:
    """Name judges as figures, tables and prose do, by ``results/judges.csv``.

    Parameters
    ----------
    judges
        Slugs, a column of judgments or of what a statistic returns.

    Returns
    -------
    Series
        Ordered categories, from small to large; a judge that is not recorded keeps its
        slug and comes after those that are.

    Examples
    --------
    >>> judges = pd.Series(["simulated:unbiased", "smollm2-135m-instruct-vllm"])
    >>> names = short_names(judges)
    >>> names.tolist(), names.sort_values().tolist()
    (['simulated:unbiased', 'SmolLM2'], ['SmolLM2', 'simulated:unbiased'])
    """
    recorded_names = recorded_judges().set_index("slug")["name"]
    slugs = judges.astype(str)
    names = slugs.map(recorded_names).fillna(slugs)
    return names.astype(
        pd.CategoricalDtype(
            list(dict.fromkeys([*recorded_names, *names])), ordered=True
        )
    )


def says_finds(verdicts: pd.DataFrame, unmeasured: bool = False) -> pd.DataFrame:
    """Lay out verdicts as the table "paper says / we find".

    Parameters
    ----------
    verdicts
        What `rubricnb.data.verdicts` returns.
    unmeasured
        Whether to list what was not measured about a judge or a dataset too. What was
        not measured about all of them is always listed, with the reason.

    Returns
    -------
    DataFrame
        Text only: ``statement`` (where it is printed and what it says, with judge and
        dataset), ``paper says`` (our reading of it in brackets), ``we find`` (with the
        interval) and ``verdict``.

    Examples
    --------
    >>> import rubricnb as rb
    >>> from rubricnb.data import verdicts
    >>> found = pd.DataFrame({"claim_id": ["v2/table-1/hanna"], "value": [576]})
    >>> says_finds(verdicts(rb.data.claims("03"), found)).iloc[0].tolist()
    ['position bias v2, Table 1: items (hanna)', '= 576', '576', 'the count holds']
    """
    is_general = (verdicts[["judge", "dataset"]] == "").all(axis=1)
    listed = verdicts[verdicts["value"].notna() | is_general | unmeasured]
    rows = [
        (_statement(row), _published(row), _estimated(row), row.verdict)
        for row in listed.itertuples()
    ]
    return pd.DataFrame(rows, columns=["statement", "paper says", "we find", "verdict"])


def replicated(table: pd.DataFrame) -> pd.DataFrame:
    """Lay out verdicts on the papers' findings, a row for each judge and dataset.

    Parameters
    ----------
    table
        What `rubricnb.book.replication.recorded_replication` or `replication` returns.

    Returns
    -------
    DataFrame
        finding, judge, dataset, verdict, the estimate with its interval and unit, p
        adjusted, items (clusters), note; all text. Without the finding if there is one
        only, and without notes if there are none.

    Examples
    --------
    >>> row = {"finding": "first", "judge": "m", "dataset": "hanna",
    ...        "estimate": 12.3, "low": 4.56, "high": 20.0,
    ...        "unit": "percentage points", "p_adjusted": 0.002, "n_items": 576,
    ...        "n_clusters": 96, "verdict": "replicates", "reason": ""}
    >>> replicated(pd.DataFrame([row])).iloc[0].tolist()[2:]
    ['replicates', '12.30 [4.56, 20.00] pp', '0.0020', '576 (96)']
    """

    def estimated(row: pd.Series) -> str:
        if pd.isna(row["estimate"]):
            return "not known"
        ends = "" if pd.isna(row["low"]) else f" [{row['low']:.2f}, {row['high']:.2f}]"
        unit = row["unit"].replace("percentage points", "pp")
        return _with_minus(f"{row['estimate']:.2f}{ends} {unit}")

    def counted(row: pd.Series) -> str:
        if pd.isna(row["n_items"]):
            return ""
        return f"{row['n_items']:.0f} ({row['n_clusters']:.0f})"

    shown = pd.DataFrame(
        {
            "finding": table["finding"],
            "judge": short_names(table["judge"]).astype(str),
            "dataset": table["dataset"],
            "verdict": table["verdict"],
            "estimate [95 %]": table.apply(estimated, axis=1),
            "p, adjusted": [p_value(p, 4) for p in table["p_adjusted"]],
            "items (clusters)": table.apply(counted, axis=1),
            "note": table["reason"],
        }
    )
    if table["finding"].nunique() == 1:
        shown = shown.drop(columns="finding")
    return shown.drop(columns="note") if (table["reason"] == "").all() else shown


def styled(styler: Any) -> str:
    """Return a Styler's HTML with all its cells as text; pandas does not escape them.

    ``import rubricnb`` has notebooks show every Styler in this way.

    Parameters
    ----------
    styler
        A ``pandas.io.formats.style.Styler``.

    Examples
    --------
    >>> frame = pd.DataFrame({"<i>": ["<script>"]}).style
    >>> "<script>" in frame.to_html(), "<script>" in styled(frame)
    (True, False)
    """
    shown = copy(styler)
    escaped = styler.data.map(_as_text).rename(index=_as_text, columns=_as_text)
    shown.data = escaped.rename_axis(index=_as_text, columns=_as_text)
    shown.index, shown.columns = shown.data.index, shown.data.columns
    return str(shown.to_html())


def _as_text(value: Any) -> Any:
    if isinstance(value, (list, tuple, dict, set)):
        value = str(value)
    return escape(value) if isinstance(value, str) else value


def explorable(name: str, data: Json, fallback: str) -> Any:
    """Put a small experiment on the page, with the data it needs.

    Its code is in ``_static/explorables.js``, one function for each name.

    Parameters
    ----------
    name
        ``winner``, ``subsets``, ``cost``, ``cuts`` or ``labels``.
    data
        What that function reads: lists, numbers and text.
    fallback
        A sentence for readers without scripts, and for the notebook outside the book.

    Examples
    --------
    >>> shown = explorable("winner", {"note": "<b>"}, "In the built book this moves.")
    >>> "<b>" in shown.data, "In the built book" in shown.data
    (False, True)
    """
    fallback_html = f'<p class="fallback">{escape(fallback)}</p>'
    return _data_block("explorable", name, data, fallback_html)


def playable(figure: str, name: str, data: Json) -> Any:
    """Let the reader of the book change a figure, with the data of its static form.

    The static figure stays on paper, in notebooks, and for readers without scripts. The
    code is in ``_static/pictures.js``, one function for each name.

    Parameters
    ----------
    figure
        Name of the figure that is replaced, such as ``fig-27_results-verdicts``.
    name
        ``square``, ``panel`` or ``matrix``.
    data
        What that function reads: lists, numbers and text.

    Examples
    --------
    >>> html = playable("fig-a", "square", {"note": "<b>"}).data
    >>> html.partition("<script")[0]
    '<div class="picture" data-name="square" data-figure="fig-a">'
    >>> "<b>" in html
    False
    """
    return _data_block("picture", name, data, "", f' data-figure="{escape(figure)}"')


def _data_block(
    kind: str, name: str, data: Json, content: str, attributes: str = ""
) -> Any:
    from IPython.display import HTML

    json_text = json.dumps(data, ensure_ascii=False, allow_nan=False).replace(
        "<", "\\u003c"
    )
    return HTML(
        f'<div class="{kind}" data-name="{escape(name)}"{attributes}>'
        f'<script type="application/json">{json_text}</script>{content}</div>'
    )


def _statement(row: Any) -> str:
    about = ", ".join(filter(None, (row.judge, row.dataset)))
    said = f"{row.paper}, {row.section}: {row.quantity}"
    return f"{said} ({about})" if about else said


def _published(row: Any) -> str:
    sign = {"=": "=", "<=": "≤", ">=": "≥"}[row.relation]
    tolerance = f" ± {row.tolerance:g}" if row.tolerance else ""
    number = _with_minus(f"{sign} {row.published:g}{tolerance}")
    return f"(as we read it: {number})" if row.basis == "reading" else number


def _estimated(row: Any) -> str:
    if np.isnan(row.value):
        return str(row.reason)
    interval = "" if np.isnan(row.low) else f" [{row.low:.3g}, {row.high:.3g}]"
    if row.reason == NO_INTERVAL:
        interval = f" ({NO_INTERVAL})"
    return _with_minus(f"{row.value:.4g}{interval}")
