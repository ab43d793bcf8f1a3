"""``tools-table``: what other tools do to scores, from ``findings/``;
``peers-table``: their statistics beside ours, from a study's recordings.

```{tools-table} tools
```
```{peers-table} position
```
"""

from __future__ import annotations

from pathlib import Path

import pandas as pd
from docutils import nodes
from docutils.statemachine import StringList
from plain_table import plain_table
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from rubricnb.core.support.folders import results_folder

FINDINGS = Path(__file__).parents[1] / "findings"
HEADERS = {
    "tools": {
        "what": "what happens",
        "guess": "what you would think",
        "see": "how to see it in your file",
        "do": "what to do",
        "reads": "what `rb.judgments` does",
    },
    "statistics": {
        "what": "what happens",
        "guess": "what you would think",
        "do": "what to do",
        "ours": "ours",
    },
}
# A table of the study: what its columns are, and the cells.
PEERS = {
    "position": (["condition"], "{share:.1%} [{low:.1%}, {high:.1%}]"),
    "rates": (
        ["condition", "n_labels"],
        "{share:.0%} [{low:.0%}, {high:.0%}]; none {none:.0%}, no width {no_width:.0%}",
    ),
    "agreement": (["what"], "{mean:.2f} [{p5:.2f}, {p95:.2f}]"),
}


def read_lines(name: str) -> pd.DataFrame:
    """Read ``findings/tools.csv`` or ``findings/statistics.csv``; no cell is NaN."""
    return pd.read_csv(FINDINGS / f"{name}.csv", keep_default_na=False)


def markdown_rows(lines: pd.DataFrame, name: str) -> list[str]:
    """Lay lines out as a Markdown table: a tool with version and date, then the rest.

    Raises
    ------
    ValueError
        A cell has a vertical bar, which would end it.
    """
    header = HEADERS[name]
    first = "tool" if name == "tools" else "package"
    rows = [[first, *header.values()], ["---"] * (1 + len(header))]
    for line in lines.to_dict("records"):
        seen = pd.Timestamp(line["seen"])
        about = f"{line[first]} {line['version']} ({seen.day} {seen:%B %Y})"
        rows.append([about, *(line[column] for column in header)])
    if any("|" in cell for row in rows for cell in row):
        raise ValueError(f"a cell of findings/{name}.csv has a |, which would end it")
    return [f"| {' | '.join(row)} |" for row in rows]


def peer_rows(name: str) -> tuple[list[str], list[list[str]]]:
    """Return the header and the rows of one table of `studies.peers`."""
    table = pd.read_csv(results_folder() / "recordings" / f"peers_{name}.csv")
    columns, cell = PEERS[name]
    table["cell"] = [
        "no interval in any study"
        if row.get("none") == 1
        else cell.format(**row).replace("%", " %")
        for row in table.to_dict("records")
    ]
    table["column"] = [
        ", ".join(
            f"{value} labels" if key == "n_labels" else str(value)
            for key, value in zip(columns, row, strict=True)
        )
        for row in table[columns].itertuples(index=False)
    ]
    order = list(dict.fromkeys(table["column"]))
    wide = table.pivot(index="package", columns="column", values="cell").fillna("–")
    wide = wide.loc[list(dict.fromkeys(table["package"])), order]
    return ["package", *order], [[name, *row] for name, *row in wide.itertuples()]


class ToolsTable(SphinxDirective):
    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        name = self.arguments[0]
        path = FINDINGS / f"{name}.csv"
        self.env.note_dependency(str(path))
        content = StringList(markdown_rows(read_lines(name), name), str(path))
        box = nodes.container()
        self.state.nested_parse(content, self.content_offset, box)
        return box.children


class PeersTable(SphinxDirective):
    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        name = self.arguments[0]
        self.env.note_dependency(
            str(results_folder() / "recordings" / f"peers_{name}.csv")
        )
        header, rows = peer_rows(name)
        return [plain_table(header, rows)]


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_directive("tools-table", ToolsTable)
    app.add_directive("peers-table", PeersTable)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
