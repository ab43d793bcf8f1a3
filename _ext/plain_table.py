"""A docutils table from rows of strings;
shared by the directives that print frames and files.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from docutils import nodes

Cell = Callable[[str], nodes.Node]


def plain(text: str) -> nodes.Node:
    return nodes.Text(text)


def code(text: str) -> nodes.Node:
    return nodes.literal(text, text)


def plain_table(
    header: Sequence[str],
    rows: Sequence[Sequence[str]],
    cells: Sequence[Cell] | None = None,
    right: Sequence[int] = (),
) -> nodes.table:
    """Build a table; `cells` renders each column,
    `right` lists the columns aligned right.
    """
    cells = cells or [plain] * len(header)
    group = nodes.tgroup("", cols=len(header))
    group += [nodes.colspec("", colwidth=1) for _ in header]
    group += nodes.thead("", _row(header, [plain] * len(header), right))
    group += nodes.tbody("", *[_row(row, cells, right) for row in rows])
    return nodes.table("", group, classes=["colwidths-auto"])


def _row(
    texts: Sequence[str], cells: Sequence[Cell], right: Sequence[int]
) -> nodes.row:
    row = nodes.row()
    for index, (text, cell) in enumerate(zip(texts, cells, strict=True)):
        entry = nodes.entry("", nodes.paragraph("", "", cell(text)))
        if index in right:
            entry["classes"].append("sd-text-right")
        row += entry
    return row
