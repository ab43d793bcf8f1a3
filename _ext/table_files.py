"""Every captioned table of a chapter as a CSV file, and a link to it in the caption.

The file is made from the table as it is printed, so that what is downloaded is what is
read. A caption that links a CSV of its own keeps that one: the data behind the table,
not the table.

A page shows eight rows of a table, those that matter most, and the rest if the reader
asks for it. A table of a paper (``:figclass: paper``) is shown whole, and so is every
table on paper.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from unicodedata import normalize

from book_rules import captioned_table, short_names
from bs4 import BeautifulSoup, Tag
from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.transforms.post_transforms import SphinxPostTransform

FOLDER = "tables"  # below _downloads
ROWS = 8  # of a table that a page shows at once
ALL_ROWS = '<label class="all-rows"><input type="checkbox"/> show all {} rows</label>'
# by how much they matter to a reader
VERDICTS = ("does not", "fails", "replicates", "holds")
# a sign before words or a command
FORMULA = re.compile(r"[=@]|[-−+](?=.*[^\W\d_]|.*[|!])", re.S)
NUMBER = re.compile(r"[-+−]?(\d{1,3}(,\d{3})+|\d*)(\.\d+|(?<=\d))(e[-+−]?\d+)?")


class TableFiles(SphinxPostTransform):
    """Write the files while the pages are written; link them."""

    default_priority = 905  # the formats of a cell's output are chosen before
    formats = ("html",)

    def run(self) -> None:
        for figure in self.document.findall(captioned_table):
            caption = next(iter(figure.findall(nodes.caption)), None)
            raw, table = _table(figure)
            if caption is None or table is None:
                continue
            cut = "paper" not in figure["classes"] and _cut(raw, table)
            behind = _links_csv(caption)
            if behind and not cut:
                continue
            name = f"{FOLDER}/{figure['ids'][0]}.csv"
            _write(Path(self.app.outdir) / "_downloads" / name, table)
            caption += self._link(figure, name, "this table: " if behind else "")

    def _link(self, figure: nodes.Element, name: str, what: str) -> nodes.inline:
        numbers = self.env.toc_fignumbers.get(self.env.docname, {}).get("table", {})
        number = ".".join(map(str, numbers.get(figure["ids"][0], ())))
        which = nodes.inline(
            "", f" of Table {number}".rstrip(), classes=["visually-hidden"]
        )
        link = addnodes.download_reference(
            "", "", nodes.Text("CSV"), which, filename=name, reftarget=name
        )
        before, after = nodes.Text(f" ({what}"), nodes.Text(")")
        return nodes.inline("", "", before, link, after, classes=["table-file"])


def _table(figure: nodes.Element) -> tuple[nodes.raw | None, Tag | None]:
    for raw in figure.findall(nodes.raw):
        if "html" in raw.get("format", "") and "<table" in raw.astext():
            return raw, BeautifulSoup(raw.astext(), "html.parser").find("table")
    return None, None


def _cut(raw: nodes.raw, table: Tag) -> bool:
    """Mark the rows that the page leaves to the reader to ask for,
    and say how many there are.
    """
    rows = table.select("tbody tr")
    if len(rows) <= ROWS:
        return False
    names = [
        cell.get_text(strip=True) for cell in table.select("thead tr:last-child th")
    ]
    for row in sorted(rows, key=lambda row: _rank(row, names))[ROWS:]:
        row["class"] = [*row.get("class", []), "rest"]
    asked = nodes.raw("", ALL_ROWS.format(len(rows)), format="html")
    raw.parent.insert(raw.parent.index(raw) + 1, asked)
    raw.replace_self(nodes.raw("", str(table), format="html"))
    return True


def _rank(row: Tag, names: list[str]) -> int:
    """Say how early a row is shown: statements that fail,
    judges that read; else as it stands.
    """
    texts = [cell.get_text(strip=True) for cell in row.find_all(["th", "td"])]
    cells = dict(zip(names, texts, strict=False))
    if "paper says" in cells:
        words = enumerate(VERDICTS)
        return next(
            (k for k, word in words if word in cells.get("verdict", "")), len(VERDICTS)
        )
    known = list(short_names().values())
    judge = short_names().get(cells.get("judge"), cells.get("judge"))
    return -known.index(judge) if judge in known else 0


def _links_csv(caption: nodes.Element) -> bool:
    links = caption.findall(nodes.Element)
    return any(
        (a.get("reftarget") or a.get("refuri") or "").endswith(".csv") for a in links
    )


def _write(path: Path, table: Tag) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows(records(table))


def records(table: Tag) -> list[list[str]]:
    """Return the header and the rows of an HTML table, as a program wants to read them.

    Columns have one name each, spanned cells are repeated, numbers have a plain minus
    and no separators of thousands. A text that a spreadsheet would run as a formula is
    led by an apostrophe.

    >>> head = "<thead><tr><th></th><th>r</th></tr></thead>"
    >>> html = f"<table>{head}<tr><td>a</td><td>−.5</td></tr></table>"
    >>> records(BeautifulSoup(html, "html.parser").table)
    [['row', 'r'], ['a', '-.5']]
    >>> row = "<tr><td>=cmd|' /C calc'!A0</td><td>+0.1 [−0.2, 0.4]</td></tr>"
    >>> records(BeautifulSoup(f"<table>{row}</table>", "html.parser").table)[-1]
    ["'=cmd|' /C calc'!A0", '+0.1 [−0.2, 0.4]']
    """
    rows = _grid(table)
    heads = len(table.select("thead tr"))
    levels = zip(*rows[:heads], strict=True)
    names = (" ".join(dict.fromkeys(filter(None, parts))) for parts in levels)
    return [
        [*map(_plain, _unique(names))],
        *([_plain(cell) for cell in row] for row in rows[heads:]),
    ]


def _grid(table: Tag) -> list[list[str]]:
    """Lay the cells out; one that spans several places stands in each of them."""
    filled: dict[tuple[int, int], str] = {}
    lines = table.find_all("tr")
    for y, line in enumerate(lines):
        for cell in line.find_all(["th", "td"]):
            x = next(x for x in count() if (y, x) not in filled)
            for place in _places(cell, y, x):
                filled[place] = " ".join(cell.get_text().split())
    width = 1 + max(x for _, x in filled)
    return [[filled.get((y, x), "") for x in range(width)] for y in range(len(lines))]


def _places(cell: Tag, y: int, x: int) -> Iterator[tuple[int, int]]:
    for down in range(int(cell.get("rowspan", 1))):
        for right in range(int(cell.get("colspan", 1))):
            yield y + down, x + right


def _unique(names: Iterator[str]) -> list[str]:
    """Name the columns that have no name, and number those that share one."""
    found: list[str] = []
    for name in (name or "row" for name in names):
        taken = (f"{name} {k}" if k > 1 else name for k in count(1))
        found.append(next(n for n in taken if n not in found))
    return found


def _plain(text: str) -> str:
    if NUMBER.fullmatch(text):
        return text.replace("−", "-").replace(",", "")
    # some spreadsheets read the signs of full width as their plain ones
    return f"'{text}" if FORMULA.match(normalize("NFKC", text)) else text


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_post_transform(TableFiles)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
