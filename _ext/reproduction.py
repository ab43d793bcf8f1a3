"""The report on what was reproduced, drawn from ``items.csv`` and ``claims.csv``.

```{reproduction-counts}
```
```{reproduction-items} RULERS
```
```{reproduction-full-size}
```
```{reproduction-compute}
```
"""

from __future__ import annotations

import json
import re
from pathlib import Path

import pandas as pd
from docutils import nodes
from plain_table import code, plain, plain_table
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

import rubricnb
from rubricnb.book.plots import display_name
from rubricnb.book.tables import says_finds
from rubricnb.core.support.folders import results_folder
from rubricnb.sets.identities import recompute
from rubricnb.sets.papers import claims, paper_items, paper_judges, verdicts

FOLDER = Path(rubricnb.__file__).parent / "sets" / "published"
ITEMS = ["item", "scope", "where", "method", "result", "not filled, and why"]
COUNTS = [
    "document",
    "items",
    "recomputed statements",
    "of these hold",
    "statements about judges",
    "of these about the paper's judges",
    "items with a command",
    "partly not filled",
]
FULL = ["statement", "paper says", "we find", "verdict", "texts"]
COMPUTE = [
    "judge",
    "day",
    "machine",
    "answers",
    "tokens sent",
    "tokens written",
    "hours, summed",
]


def statements() -> pd.DataFrame:
    """Return all statements with the verdict of those that need no judge."""
    said = claims()
    return verdicts(said, recompute(said[said["kind"] == "identity"]))


def full_size() -> pd.DataFrame:
    """Return the statements that a judge recorded at full size can answer."""
    path, numbers = results_folder() / "statements.csv", ("value", "low", "high")
    found = pd.read_csv(
        path, keep_default_na=False, na_values=dict.fromkeys(numbers, "")
    )
    said = claims().set_index("claim_id").loc[found["claim_id"]].reset_index()
    return verdicts(said, found).assign(asked=found["asked"])


def at_full_size() -> list[list[str]]:
    """Return a row for each of these statements, as `FULL` names its cells."""
    judged = full_size().replace({"verdict": {"cannot say": "inconclusive"}})
    texts = (
        judged["asked"]
        .str.split("+")
        .map(lambda names: ", ".join(map(display_name, names)))
    )
    return says_finds(judged).assign(texts=texts).astype(str).to_numpy().tolist()


def about(item: pd.Series, said: pd.DataFrame) -> pd.DataFrame:
    """Keep the statements of an item: those of its table or its ids in its chapter,
    and the arithmetic of the table, figure or appendix that has its name.
    """
    printed, paper = item["published"], said["paper"] == item["paper"]
    kind, number = item["item"].split(" ", 1)
    is_arithmetic = said["kind"] == "identity"
    chosen = pd.Series(False, said.index)
    if printed:
        chosen = said["claim_id"].str.startswith(printed)
        chosen |= said["source_table"].eq(printed) & paper
        if not chosen.any():  # a summary of the table
            chosen = said["source_table"].eq(printed)
        chosen &= said["chapter"].eq(item["chapter"]) | is_arithmetic
    if kind in ("Table", "Figure", "Appendix"):
        name = rf"{kind}s? (?:\d+, )*{re.escape(number)}(?![\d.])"
        chosen |= said["section"].str.contains(name) & paper & is_arithmetic
    return said[chosen]


def result(item: pd.Series, said: pd.DataFrame, recorded: set[str]) -> str:
    """Say what came of an item."""
    own = about(item, said)
    arithmetic = own[own["kind"] == "identity"]
    parts = []
    if len(arithmetic):
        holds = arithmetic["verdict"].str.endswith("holds")
        ours = (~holds & (arithmetic["basis"] == "reading")).sum()
        parts.append(
            f"recomputed from printed numbers: {holds.sum()} of {len(holds)} hold"
            + (f"; of the others, {ours} in our reading of words" if ours else "")
        )
    counted = own["kind"].isin(["fact", "procedure"]).sum()
    if counted:
        parts.append(f"{counted} counted or simulated in the chapter")
    judged = own[own["kind"] == "claim"]
    ours = full_size().query("claim_id in @judged.claim_id")
    if len(ours):
        counted = ours["verdict"].replace("cannot say", "inconclusive").value_counts()
        told = ", ".join(f"{n} {verdict}" for verdict, n in counted.items())
        parts.append(f"statements held against Qwen 1.5B at full size: {told}")
    judged = judged[~judged["claim_id"].isin(ours["claim_id"])]
    if len(judged):
        full = sorted(set(judged["judge"]) & recorded)
        size = f"at full size: {', '.join(full)}" if full else "not run at full size"
        parts.append(f"statements about judges: {len(judged)}, {size}")
    return "; ".join(parts) or "no printed number to compare"


def method(item: pd.Series) -> str:
    """Say how an item is made: by a command, a study, or without a judge."""
    command = item["command"]
    if not command:
        return "no judge needed"
    whose = "" if command.startswith("params/") else "the chapter's command for "
    return whose + command


def rows_of(paper: str) -> list[list[str]]:
    """Return the report's rows of one document, as `ITEMS` names their cells."""
    said, items = statements(), paper_items()
    judges = pd.read_csv(results_folder() / "judges.csv")
    recorded = {
        name
        for name in paper_judges()
        if judges["model"]
        .astype(str)
        .str.lower()
        .str.contains(re.escape(name.lower()))
        .any()
    }
    return [
        [
            row["item"],
            row["what"],
            row["chapter"],
            method(row),
            result(row, said, recorded),
            row["reason"] or "–",
        ]
        for _, row in items[items["paper"] == paper].iterrows()
    ]


def counts() -> list[list[str]]:
    """Return a row for each document, as `COUNTS` names its cells."""
    said, items = statements(), paper_items()
    out = []
    for paper, own in items.groupby("paper", sort=False):
        mine = said[said["paper"] == paper]
        arithmetic, judged = (
            mine[mine["kind"] == "identity"],
            mine[mine["kind"] == "claim"],
        )
        cells = [
            own["item"].nunique(),
            len(arithmetic),
            arithmetic["verdict"].str.endswith("holds").sum(),
            len(judged),
            (judged["judge"] != "").sum(),
            own.loc[own["command"] != "", "item"].nunique(),
            own.loc[own["reason"] != "", "item"].nunique(),
        ]
        out.append([str(paper), *map(str, cells)])
    return out


def compute() -> list[list[str]]:
    """Return what each recording took, as its ``run.json`` says."""
    totals: dict[tuple[str, str, str], pd.Series] = {}
    for path in sorted(results_folder().glob("**/run.json")):
        run = json.loads(path.read_text("utf-8"))
        if "datasets" not in run:
            continue
        names = ["judgments", "scores", "prompt_tokens", "completion_tokens", "seconds"]
        sets = pd.DataFrame(run["datasets"]).T.reindex(columns=names)
        own = sets.apply(pd.to_numeric, errors="coerce").sum()
        gpu = run.get("machine", "").partition("; ")[2].partition(", ")[0]
        key = (run["judge"], run.get("recorded", ""), gpu or "processor")
        totals[key] = totals.get(key, 0) + own
    return [
        [
            judge,
            day,
            machine,
            f"{own['judgments'] + own['scores']:,.0f}",
            f"{own['prompt_tokens']:,.0f}",
            f"{own['completion_tokens']:,.0f}",
            f"{own['seconds'] / 3600:,.0f}",
        ]
        for (judge, day, machine), own in totals.items()
    ]


class _Report(SphinxDirective):
    def note(self) -> None:
        for path in (*FOLDER.glob("*"), results_folder() / "judges.csv"):
            self.env.note_dependency(str(path))

    def linked(self, chapter: str) -> nodes.Node:
        """Link a chapter or a page; name a study's file."""
        if chapter.startswith("params/"):
            return code(chapter)
        page = chapter if "/" in chapter else f"notebooks/{chapter}"
        text = chapter.split("/")[-1].split("_")[0]
        return addnodes.pending_xref(
            "",
            nodes.inline("", text),
            refdomain="std",
            reftype="doc",
            reftarget=f"/{page}",
            refexplicit=True,
            refdoc=self.env.docname,
            refwarn=True,
        )


class Items(_Report):
    required_arguments = 1
    final_argument_whitespace = True

    def run(self) -> list[nodes.Node]:
        self.note()
        rows = rows_of(self.arguments[0])
        if not rows:
            raise self.error(f"no items of {self.arguments[0]!r}")
        cells = [plain, plain, self.linked, plain, plain, plain]
        return [plain_table(ITEMS, rows, cells)]


class Counts(_Report):
    def run(self) -> list[nodes.Node]:
        self.note()
        return [plain_table(COUNTS, counts(), right=range(1, len(COUNTS)))]


class Compute(_Report):
    def run(self) -> list[nodes.Node]:
        for path in results_folder().glob("**/run.json"):
            self.env.note_dependency(str(path))
        return [plain_table(COMPUTE, compute(), right=range(3, len(COMPUTE)))]


class FullSize(_Report):
    def run(self) -> list[nodes.Node]:
        self.note()
        self.env.note_dependency(str(results_folder() / "statements.csv"))
        return [plain_table(FULL, at_full_size())]


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_directive("reproduction-items", Items)
    app.add_directive("reproduction-counts", Counts)
    app.add_directive("reproduction-compute", Compute)
    app.add_directive("reproduction-full-size", FullSize)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
