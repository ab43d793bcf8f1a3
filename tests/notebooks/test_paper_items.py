"""Every numbered item of the four documents stays in the book,
with the command that fills it.
"""

import re

import pandas as pd
import pytest
from commands import ROOT, printed

import rubricnb as rb
from rubricnb.sets.papers import paper_items
from tools.building import notebooks

# What each document numbers. RULERS' Table 1 and its five equations among them.
NUMBERED = {
    "position bias v2": {"Figure": 11, "Table": 7, "Equation": 0},
    "position bias v1": {"Figure": 5, "Table": 6, "Equation": 0},
    "scoring bias": {"Figure": 6, "Table": 4, "Equation": 4},
    "RULERS": {"Figure": 6, "Table": 6, "Equation": 5},
}
# The settings that they state and that a study needs.
STATED = {
    "position bias v2": {
        "§3.1 2n rotations", "§4.2 judges", "§4.3 strategies", "§4.3 criterion order", (
            "§4.4 bias"
        ),
        "§4.4 Friedman", "§4.4 alignment", "§4.4 downstream", "§5.5 single read",
        "§6 criteria and ranking", "Appendix C", "Appendix F",
    },
    "position bias v1": {"§4.2 judges", "§4.4 protocol", "§5.3 Bias Cost"},
    "scoring bias": {"§4.1 judges", "§5 majority"},
    "RULERS": {"§4.1 judges", "§4.2 baselines", "Appendix A.2", "Appendix A.3"},
}  # fmt: skip
TEXTS = {"position bias v1": "v1", "position bias v2": "v2", "scoring bias": "scoring",
         "RULERS": "rulers"}  # fmt: skip


def required():
    """(Paper, item) of all that has to be in the table."""
    for paper, kinds in NUMBERED.items():
        for kind, last in kinds.items():
            yield from ((paper, f"{kind} {n}") for n in range(1, last + 1))
        yield from ((paper, item) for item in STATED[paper])


def page_of(chapter):
    """The file where an item stands: a chapter, a page or a study's file."""
    if chapter.startswith("params/"):
        return ROOT / chapter
    folder, _, name = chapter.rpartition("/")
    return ROOT / (folder or "notebooks") / f"{name}.md"


def labels_of(text):
    """Labels of a page's figures, tables, equations and sections."""
    found = re.findall(r"^:(?:name|label): (\S+)$|^\(([\w-]+)\)=$", text, re.M)
    return {name for pair in found for name in pair if name}


def commands_of(chapter):
    """What the commands of a chapter write;
    programs of the package write what they name.
    """
    if not (ROOT / "notebooks" / f"{chapter}.md").is_file():
        return set()
    programs = ("papermill", "python -m rubricnb compile")
    return {c.output for program in programs for c in printed(chapter, program)}


def missing(items):
    """What is gone: rows, labels and commands."""
    gone = [
        f"no row for {paper}, {item}"
        for paper, item in required()
        if not ((items["paper"] == paper) & (items["item"] == item)).any()
    ]
    for row in items.itertuples():
        where = f"{row.paper}, {row.item}"
        page = page_of(row.chapter)
        if not page.is_file():
            gone.append(f"{where}: there is no {row.chapter}")
            continue
        known = labels_of(page.read_text("utf-8"))
        gone += [f"{where}: no label {x}" for x in row.label.split() if x not in known]
        if row.command.startswith("params/"):
            if not (ROOT / row.command).is_file():
                gone.append(f"{where}: no study {row.command}")
        elif row.command and row.command not in commands_of(row.chapter):
            gone.append(f"{where}: no command that writes {row.command}")
        if not (row.label or row.chapter.startswith("params/")):
            gone.append(f"{where}: no label")
    return gone


def test_every_item_has_its_row_its_labels_and_its_command():
    assert missing(paper_items()) == []


@pytest.mark.parametrize(
    ("change", "what"),
    [
        (
            lambda items: items[items["item"] != "Table 4"],
            "no row for position bias v2, Table 4",
        ),
        (
            lambda items: items.replace({"label": {r"table-7": "table-8"}}, regex=True),
            "Table 7: no label tab-11_rank_reversal-table-8",
        ),
        (
            lambda items: items.replace(
                {"command": {"scale-9.ipynb": "scale-8.ipynb"}}
            ),
            "Table 4: no command that writes scale-8.ipynb",
        ),
    ],
    ids=["row", "label", "command"],
)
def test_what_is_gone_is_noticed(change, what):
    assert any(what in said for said in missing(change(paper_items())))


@pytest.mark.parametrize("part", ["label", "command"])
def test_what_is_gone_from_a_chapter_is_noticed(part, monkeypatch):
    """The other side of the table: the page has changed."""
    cut = {
        "label": ("labels_of", lambda text: set()),
        "command": ("commands_of", lambda stem: set()),
    }
    monkeypatch.setattr(f"{__name__}.{cut[part][0]}", cut[part][1])
    named = paper_items()[part].str.split().explode()
    n = named.dropna().ne("").sum() - named.dropna().str.startswith("params/").sum()
    assert sum(f"no {part}" in said for said in missing(paper_items())) >= n > 20


def test_every_command_of_a_chapter_about_the_papers_belongs_to_an_item():
    items = paper_items()
    told = set(rb.data.claims()["chapter"])
    for stem in sorted(told & set(notebooks(ROOT))):
        known = set(items["command"][items["chapter"] == stem])
        assert {command.output for command in printed(stem)} <= known, stem


def test_what_an_item_prints_is_in_a_table_or_in_statements():
    items, tables = paper_items(), rb.published()
    said = rb.data.claims()["claim_id"]
    papers = tables.set_index("table")["paper"]
    for row in items[items["published"] != ""].itertuples():
        if row.published in papers.index:
            same = (
                row.paper.rsplit(" v", 1)[0] == papers[row.published].rsplit(" v", 1)[0]
            )
            assert same, row
        else:
            assert said.str.startswith(row.published).any(), row
    assert set(tables["table"]) <= set(items["published"])


def test_what_has_no_command_and_no_numbers_says_why_or_is_not_asked():
    """A figure or table that a judge fills has a command;
    without numbers it has a reason.
    """
    items = paper_items()
    judged = items[items["command"].str.endswith(".ipynb")]
    figures = judged[judged["item"].str.startswith(("Figure", "Table"))]
    silent = figures[(figures["published"] == "") & (figures["reason"] == "")]
    assert set(silent["item"]) <= {"Figure 4", "Figure 5"}  # RULERS: prompts


@pytest.mark.parametrize("paper", NUMBERED)
def test_the_table_numbers_what_the_paper_numbers(paper, paper_text):
    text = paper_text[TEXTS[paper]]
    for kind in ("Figure", "Table"):
        found = set(map(int, re.findall(rf"{kind} (\d+)", text)))
        assert found == set(range(1, NUMBERED[paper][kind] + 1)), kind
    equations = map(int, re.findall(r"\\quad \((\d)\)", text))
    assert len(set(equations)) == NUMBERED[paper]["Equation"]


def test_the_errata_page_lists_what_no_command_fills():
    page = (ROOT / "book/errata.md").read_text("utf-8")
    assert "```{errata-cells}" in page
    rows = paper_items().query("reason != ''")
    assert len(rows) > 5
    assert isinstance(rows, pd.DataFrame)
