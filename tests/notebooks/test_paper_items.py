"""Every numbered item of the four documents stays in the book,
with the command that fills it.
"""

import re
from pathlib import Path

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
# Every row that has to be there, as a whole: a paper's item may have several, each with
# its chapter, labels, command and where its numbers are. What is taken out here was
# decided to go.
FIELDS = ["paper", "item", "chapter", "label", "command", "published"]
REQUIRED = pd.read_csv(
    ROOT / "tests/notebooks/required_items.csv", dtype="str", keep_default_na=False
)
TEXTS = {
    "position bias v1": "v1",
    "position bias v2": "v2",
    "scoring bias": "scoring",
    "RULERS": "rulers",
}


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


def named_by(text, label):
    """What stands below a label that is no figure's, table's, equation's or chapter's:
    the block after it, or after the heading after it.
    """
    blocks = text.split(f"({label})=\n", 1)[1].split("\n\n")
    return blocks[1] if blocks[0].startswith("#") else blocks[0]


def says(block, item):
    """Whether a paragraph names an item: Figure 5, Figures 1 and 6, §3.2."""
    kind, number = item.split()[:2] if item[0] != "§" else ("§", item.split()[0][1:])
    begins = r"§" if kind == "§" else rf"{kind}s? (?:\w+ and )?"
    return re.search(rf"{begins}{number}\b", block) is not None


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
    kept = set(items[FIELDS].itertuples(index=False, name=None))
    gone = [
        f"no row for {', '.join(row)}"
        for row in REQUIRED.itertuples(index=False, name=None)
        if row not in kept
    ]
    for row in items.itertuples():
        where = f"{row.paper}, {row.item}"
        page = page_of(row.chapter)
        if not page.is_file():
            gone.append(f"{where}: there is no {row.chapter}")
            continue
        text = page.read_text("utf-8")
        known = labels_of(text)
        gone += [f"{where}: no label {x}" for x in row.label.split() if x not in known]
        gone += [
            f"{where}: {x} is a whole chapter's label"
            for x in row.label.split()
            if x.startswith("ch-")
        ]
        for x in row.label.split():
            if f"\n({x})=\n" in text and not says(named_by(text, x), row.item):
                gone.append(f"{where}: nothing below {x} names it")
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


def emptied(field, item):
    def change(items):
        at = items[(items["item"] == item) & (items[field] != "")].index[0]
        return items.assign(**{field: items[field].where(items.index != at, "")})

    return change


def without_second_row(items):
    rows = items[(items["paper"] == "position bias v2") & (items["item"] == "Table 4")]
    return items.drop(index=rows.index[1])


@pytest.mark.parametrize(
    ("change", "what"),
    [
        (
            lambda items: items[items["item"] != "Table 7"],
            "no row for position bias v2, Table 7",
        ),
        (without_second_row, "no row for position bias v2, Table 4, 09_rubric_scales"),
        *((emptied(field, "Table 5"), "no row for") for field in FIELDS[2:]),
        (
            lambda items: items.replace({"label": {r"table-7": "table-8"}}, regex=True),
            "Table 7: no label tab-11_rank_reversal-table-8",
        ),
        (
            lambda items: items.replace({"label": {"item-features": "ch-calibration"}}),
            "§3.3 features: ch-calibration is a whole chapter's label",
        ),
        (
            lambda items: items.replace(
                {"command": {"scale-9.ipynb": "scale-8.ipynb"}}
            ),
            "Table 4: no command that writes scale-8.ipynb",
        ),
    ],
    ids=["item", "second row", *FIELDS[2:], "label that is not", "chapter", "no file"],
)
def test_what_is_gone_is_noticed(change, what):
    assert any(what in said for said in missing(change(paper_items())))


@pytest.mark.parametrize(
    ("chapter", "label", "item"),
    [
        ("04_judges_and_prompts", "item-prompts", "Figure 5"),
        ("17_calibration", "item-features", "§3.3 features"),
        ("notation", "notation-rulers", "Table 1"),
    ],
)
def test_a_paragraph_that_goes_is_noticed_though_its_label_stays(
    chapter, label, item, monkeypatch
):
    read = Path.read_text

    def cut(path, *args, **kwargs):
        text = read(path, *args, **kwargs)
        if path.stem == chapter and path.suffix == ".md":
            text = text.replace(named_by(text, label), "Something else.")
        return text

    monkeypatch.setattr(Path, "read_text", cut)
    said = missing(paper_items())
    assert any(f"{item}: nothing below {label} names it" in one for one in said)


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
