"""``published-table``: one of the papers' tables from its CSV,
with a link to download the file.

```{published-table} position_bias_2602.02219v2_table2
:name: pub-position-bias
Caption.
```
"""

from __future__ import annotations

import csv
import os
from html import escape
from pathlib import Path

from docutils import nodes
from docutils.parsers.rst import directives
from plain_table import plain_table
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

import rubricnb

FOLDER = Path(rubricnb.__file__).parent / "sets" / "published"
YES_NO = {"True": "yes", "False": "no"}


class PublishedTable(SphinxDirective):
    required_arguments = 1
    has_content = True
    option_spec = {"name": directives.unchanged_required}  # noqa: RUF012

    def run(self) -> list[nodes.Node]:
        path = FOLDER / f"{self.arguments[0]}.csv"
        if not path.exists():
            known = ", ".join(sorted(p.stem for p in FOLDER.glob("*.csv")))
            raise self.error(f"no published table {path.stem!r}; there are: {known}")
        self.env.note_dependency(str(path))
        with path.open(encoding="utf-8", newline="") as file:
            header, *rows = csv.reader(file)
        rows = [[YES_NO.get(cell, cell) for cell in row] for row in rows]
        right = [
            i for i in range(len(header)) if rows and all(_numeric(r[i]) for r in rows)
        ]
        table = plain_table([h.replace("_", " ") for h in header], rows, right=right)
        caption = " ".join(self.content)
        if caption:
            text, messages = self.state.inline_text(caption, self.lineno)
            table.insert(0, nodes.title("", "", *text, *messages))
        self.add_name(table)
        said = escape(caption.replace("*", "").replace("`", ""))
        opens = f"<details><summary>{said or path.stem}</summary>"
        return [
            nodes.raw("", opens, format="html"),
            table,
            self._download(path),
            nodes.raw("", "</details>", format="html"),
        ]

    def _download(self, path: Path) -> nodes.paragraph:
        # Relative to the page, so that it works from a staged copy of the tree too.
        page = Path(self.env.doc2path(self.env.docname)).parent
        link = addnodes.download_reference(
            "",
            "",
            nodes.literal("", path.name),
            reftarget=Path(os.path.relpath(path, page)).as_posix(),
            refdoc=self.env.docname,
        )
        return nodes.paragraph("", "Download ", link, nodes.Text("."))


def _numeric(text: str) -> bool:
    try:
        float(text or "nan")
    except ValueError:
        return False
    return True


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_directive("published-table", PublishedTable)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
