"""Output of commands, for the page that shows the commands; all of it is computed.

```{printed} 1
```
What the page's first block of Python prints, executed while the page is built.

```{audit-head}
```
The head of the sample audit: its sentence and the table of what matters.

```{audit-rows} agreement, descending
```
Rows of the sample audit with their pictures, named by their first cells.
"""

from __future__ import annotations

import io
import re
from contextlib import redirect_stdout
from pathlib import Path

from bs4 import BeautifulSoup
from docutils import nodes
from plain_table import plain, plain_table
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

PYTHON = re.compile(r"^```python\n(.*?)^```", re.M | re.S)
SAMPLE = "book/audit-sample.html"


class Printed(SphinxDirective):
    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        page = Path(self.env.doc2path(self.env.docname))
        for path in Path(self.env.srcdir, "rubricnb").rglob("*.py"):
            self.env.note_dependency(str(path))
        block = PYTHON.findall(page.read_text("utf-8"))[int(self.arguments[0]) - 1]
        said = printed(block)
        return [nodes.literal_block(said, said, language="text", classes=["printed"])]


def printed(block: str) -> str:
    """Execute a block of Python and return what it prints.

    >>> printed("x = 2\\nprint(x + 1)")
    '3'
    """
    with redirect_stdout(io.StringIO()) as said:
        exec(compile(block, "<page>", "exec"), {})
    return said.getvalue().rstrip()


class AuditHead(SphinxDirective):
    def run(self) -> list[nodes.Node]:
        path = Path(self.env.srcdir, SAMPLE)
        self.env.note_dependency(str(path))
        title, said, header, rows = head(path.read_text("utf-8"))
        return [
            nodes.container(
                "",
                nodes.paragraph("", "", nodes.strong("", title)),
                nodes.paragraph("", said),
                plain_table(header, rows, [plain] * len(header)),
                classes=["sample"],
            )
        ]


class AuditRows(SphinxDirective):
    required_arguments, final_argument_whitespace = 1, True

    def run(self) -> list[nodes.Node]:
        path = Path(self.env.srcdir, SAMPLE)
        self.env.note_dependency(str(path))
        wanted = [name.strip() for name in self.arguments[0].split(",")]
        shown = picture_rows(path.read_text("utf-8"), wanted)
        header = ["What", "Measured [95 %]", "Estimate and interval", "Verdict"]
        table = plain_table(header, shown, [plain, plain, _drawing, plain])
        return [nodes.container("", table, classes=["sample"])]


def _drawing(svg: str) -> nodes.Node:
    return nodes.raw("", svg, format="html")


def picture_rows(html: str, names: list[str]) -> list[list[str]]:
    """Return of each row its name, what was measured, its picture and its verdict."""
    page = BeautifulSoup(html, "html.parser")
    found = {}
    for row in page.select("tr:has(svg)"):
        name, measured, picture, verdict = row.find_all(["th", "td"])[:4]
        texts = [" ".join(c.get_text(" ").split()) for c in (name, measured, verdict)]
        found.setdefault(texts[0], [*texts[:2], str(picture.svg), texts[2]])
    return [found[name] for name in names]


def head(html: str) -> tuple[str, str, list[str], list[list[str]]]:
    """Return an audit page's title, its sentence,
    and its first table: header and rows.
    """
    page = BeautifulSoup(html, "html.parser")
    for doubt in page.select("td .small"):
        doubt.decompose()
    table = page.find("table")
    header, *rows = [
        [" ".join(cell.get_text(" ").split()) for cell in row.find_all(["th", "td"])]
        for row in table.find_all("tr")
    ]
    return page.h1.get_text(), page.select_one(".said").get_text(), header, rows


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_directive("printed", Printed)
    app.add_directive("audit-head", AuditHead)
    app.add_directive("audit-rows", AuditRows)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
