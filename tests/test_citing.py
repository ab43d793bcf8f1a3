"""How findings are cited: their numbers, and BibTeX that BibTeX reads."""

import importlib
import re
import sys

import nbformat
import pytest
import yaml
from cells import glued
from pybtex.database import parse_string

import rubricnb as rb
from rubricnb.book import notebooks as book
from tools import building

ROOT = book.find_root()
CLASS = "90_minutes"  # asks before it answers
STEMS = [stem for stem in building.notebooks(ROOT) if stem != CLASS]


@pytest.fixture(scope="module")
def findings():
    """The extension, which the book's builder imports from its folder."""
    sys.path.insert(0, str(ROOT / "_ext"))
    yield importlib.import_module("findings")
    sys.path.remove(str(ROOT / "_ext"))


@pytest.fixture(scope="module")
def citation():
    return yaml.safe_load((ROOT / "CITATION.cff").read_text("utf-8"))


def plain(latex):
    return re.sub(r"[{}]", "", str(latex))


def test_numbers_follow_the_files(findings):
    numbers = [findings.number_of(stem) for stem in STEMS]
    assert numbers == [*(f"{n}.1" for n in range(1, len(STEMS))), "A.1"]
    assert len({findings.anchor_of(n) for n in numbers}) == len(STEMS)


@pytest.fixture
def found(findings, tmp_path):
    """The finding of a chapter as it is executed:
    a number is glued, and 5 % is in the line.
    """
    text = (
        "# Does it?\n\n:::{div} answer\n**Yes, in {glue:text}`n:s` _of_ 9.** Or so.\n\n"
    )
    text += "*Live* · 5 %\n\nMore."
    shown = glued("n", text_plain="'3 & 4'")
    cells = [
        nbformat.v4.new_markdown_cell(text),
        nbformat.v4.new_code_cell("", outputs=[shown]),
    ]
    notebook = nbformat.v4.new_notebook(cells=cells)
    notebook.metadata.rubricnb = {"executed": "2026-01-02", "commit": "0123456789"}
    nbformat.write(notebook, tmp_path / "07_x.ipynb")
    nbformat.write(nbformat.v4.new_notebook(cells=[]), tmp_path / "08_without.ipynb")
    [found] = findings.findings(tmp_path)
    return found


def test_a_finding_has_its_glued_numbers_its_judge_and_its_day(found):
    assert (found.number, found.anchor, found.title) == (
        "7.1",
        "finding-7-1",
        "Does it?",
    )
    assert found.says == "Yes, in 3 & 4 _of_ 9."
    assert (found.judge, found.executed) == ("Live · 5 %", "2026-01-02")


def test_what_is_offered_as_bibtex_is_read_as_what_it_says(found, findings, citation):
    whole = citation["preferred-citation"]
    [entry] = parse_string(
        findings.finding_bibtex(whole, found), "bibtex"
    ).entries.values()
    assert str(entry.persons["author"][0]) == f"{{{whole['authors'][0]['name']}}}"
    assert plain(entry.fields["title"]) == "Does it? (Finding 7.1)"
    assert entry.fields["note"] == r"Live · 5 \%; executed on 2026-01-02"
    assert entry.fields["url"] == f"{whole['url']}/blob/0123456789/notebooks/07_x.md"
    assert "(commit 0123456789)" in entry.fields["howpublished"]


def test_in_words_a_finding_names_sentence_judge_day_and_place(
    found, findings, citation
):
    said = findings.finding_in_words(citation["preferred-citation"], found)
    for part in (
        found.says,
        found.judge,
        found.executed,
        "Finding 7.1",
        "chapter 7",
        f"{rb.__version__} (commit 0123456789)",
    ):
        assert part in said
