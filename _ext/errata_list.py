"""Errata of the papers: every identity is recomputed while the page is rendered.

```{errata-count}
```
```{errata-list} strongest
```
```{errata-holds}
```
```{errata-cells}
```
"""

from __future__ import annotations

from pathlib import Path

import pandas as pd
from docutils import nodes
from plain_table import plain_table
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

import rubricnb
from rubricnb.book.tables import says_finds
from rubricnb.sets.identities import recompute
from rubricnb.sets.papers import ERRATA, claims, paper_items, verdicts

CONSEQUENCES = ("contradicted", "reading", "slip")
STRONGEST = 10  # the first rows of errata.csv
_WORDS = ["consequence", "quote", "meaning"]

# Before the value that a statement asks for: the paper's own,
# or what our reading of it amounts to.
_EXPECTED = {
    "contradicted": "by the sentence",
    "reading": "as we read it",
    "slip": "by the sentence",
}
_PARTS = {"strongest": slice(STRONGEST), "others": slice(STRONGEST, None)}
FOLDER = Path(rubricnb.__file__).parent / "sets"


def errata() -> pd.DataFrame:
    """Recompute all that the papers' tables say about the papers' statements.

    Returns
    -------
    DataFrame
        The identities of `rubricnb.data.claims` with value, verdict (``the arithmetic
        holds`` or ``the arithmetic fails``, with ``, as we read it`` for a reading)
        and, for those that fail, consequence, quote (of the paper; an ellipsis marks
        what is left out) and meaning. These come first: the ten strongest paper by
        paper, then the others. Consequence is ``contradicted`` (a table of the paper,
        or arithmetic, says otherwise), ``slip`` (a count, a label or a last digit) or
        ``reading`` (whatever depends on how we read the sentence: with a correction,
        like for like, or with a word such as "substantial" given a number).

    Raises
    ------
    ValueError
        An identity does not hold and ``errata.csv`` does not say what that means.

    Examples
    --------
    >>> row = errata().set_index("claim_id").loc["v2/strongest-bias/cells"]
    >>> row.verdict, row.consequence
    ('the arithmetic fails', 'contradicted')
    """
    said = claims().query("kind == 'identity'")
    checked = verdicts(said, recompute(said))
    holds = checked["verdict"].str.endswith("holds")
    meanings = pd.read_csv(ERRATA)
    silent = set(checked["claim_id"][~holds]) - set(meanings["claim_id"])
    if silent:
        raise ValueError(
            f"{ERRATA.name} does not give a meaning for these failures: {silent}"
        )
    failing = meanings.merge(checked[~holds], on="claim_id")
    return pd.concat([failing, checked[holds]], ignore_index=True)[
        [*checked.columns, *_WORDS]
    ].fillna(dict.fromkeys(_WORDS, ""))


class Errata(SphinxDirective):
    def checked(self) -> pd.DataFrame:
        for path in FOLDER.glob("published/*"):
            self.env.note_dependency(str(path))
        return errata()


class Count(Errata):
    """How many statements of each paper were recomputed, and what became of them."""

    def run(self) -> list[nodes.Node]:
        checked = self.checked()
        rows = []
        for paper in checked["paper"].sort_values().unique():
            group = checked[checked["paper"] == paper]
            failing = [
                int((group["consequence"] == name).sum()) for name in CONSEQUENCES
            ]
            counts = [len(group), len(group) - sum(failing), *failing]
            rows.append([paper, *map(str, counts)])
        header = ["paper", "recomputed", "hold", *CONSEQUENCES]
        return [plain_table(header, rows, right=range(1, len(header)))]


class List(Errata):
    """The statements that fail, by paper: the strongest or the others,
    each with an anchor.
    """

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        name = self.arguments[0]
        if name not in _PARTS:
            raise self.error(f"no part {name!r}; there are: {', '.join(_PARTS)}")
        failing = self.checked().query("consequence != ''")[_PARTS[name]]
        out: list[nodes.Node] = []
        for paper, group in failing.groupby("paper", sort=False):
            entries = zip(
                group.itertuples(), says_finds(group).itertuples(), strict=True
            )
            listed = nodes.definition_list(
                "", *[_entry(*e) for e in entries], classes=["errata"]
            )
            out += [nodes.rubric("", str(paper)), listed]
        return out


class Holds(Errata):
    """The statements whose arithmetic holds."""

    def run(self) -> list[nodes.Node]:
        table = says_finds(self.checked().query("consequence == ''"))
        header = ["statement", "paper says", "we find"]
        return [plain_table(header, table[header].to_numpy().tolist())]


class Cells(Errata):
    """What no command of the book can fill, and why."""

    def run(self) -> list[nodes.Node]:
        self.checked()
        prefix = "not recomputed: "
        items = paper_items().query("reason != ''")
        rows = items[["paper", "item", "what", "reason"]].to_numpy().tolist()
        said = claims()
        for claim in said[said["recompute"].str.startswith(prefix)].itertuples():
            why = claim.recompute.removeprefix(prefix)
            rows.append([claim.paper, claim.section, claim.quantity, why])
        return [plain_table(["paper", "where", "what", "not filled"], rows)]


def _entry(row: tuple, line: tuple) -> nodes.definition_list_item:
    anchor = nodes.make_id(f"erratum-{row.claim_id}")
    term = nodes.term("", f"“{row.quote}” ({row.section})", ids=[anchor])
    link = nodes.reference(
        "", "", nodes.literal("", row.claim_id), refid=anchor, internal=True
    )
    asked = line._2.removeprefix("= ").replace(" ± ", ", give or take ")
    what = f"{row.quantity} ({row.judge})" if row.judge else row.quantity
    numbers = nodes.inline(
        "",
        "",
        nodes.emphasis("", row.consequence.capitalize()),
        nodes.Text(
            f". {what[0].upper()}{what[1:]}: {_EXPECTED[row.consequence]} {asked}; by "
            "the tables "
        ),
        nodes.strong("", line._3),
        nodes.Text("."),
        classes=["numbers"],
    )
    meaning = nodes.paragraph("", "", nodes.Text(f"{row.meaning} "), link)
    opens, shut, closes = (
        nodes.raw("", tag, format="html")
        for tag in ("<details><summary>", "</summary>", "</details>")
    )
    folded = nodes.definition("", opens, numbers, shut, meaning, closes)
    return nodes.definition_list_item("", term, folded)


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_directive("errata-count", Count)
    app.add_directive("errata-list", List)
    app.add_directive("errata-holds", Holds)
    app.add_directive("errata-cells", Cells)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
