"""What is cited, and how: CITATION.cff, the findings' numbers, and BibTeX that BibTeX reads."""

import importlib
import re
import sys
import tomllib

import nbformat
import pytest
import yaml
from pybtex.database import parse_file, parse_string

import rubricnb as rb
from rubricnb import book
from tools import building

ROOT = book.find_root()
CLASS = "90_minutes"  # asks before it answers
STEMS = [stem for stem in building.notebooks(ROOT) if stem != CLASS]
# https://github.com/citation-file-format/citation-file-format, schema 1.2.0
KEYS = {
    "abstract", "authors", "cff-version", "commit", "contact", "date-released", "doi",
    "identifiers", "keywords", "license", "license-url", "message", "preferred-citation",
    "references", "repository", "repository-artifact", "repository-code", "title", "type", "url",
    "version",
}  # fmt: skip
REQUIRED = {"authors", "cff-version", "message", "title"}
REFERENCE = {"authors", "title", "type"}
PAPERS = ["xu2026position", "li2025scoring", "hong2026rulers"]


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


def test_the_citation_file_has_what_its_format_asks_for(citation):
    assert REQUIRED <= set(citation) <= KEYS
    assert citation["cff-version"] == "1.2.0"
    assert citation["type"] in ("software", "dataset")
    for work in [citation, citation["preferred-citation"], *citation["references"]]:
        assert set(work) >= REFERENCE
        for author in work["authors"]:
            assert set(author) in ({"name"}, {"family-names", "given-names"})


def test_the_citation_file_says_what_package_and_book_say(citation):
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    config = yaml.safe_load((ROOT / "_config.yml").read_text("utf-8"))
    whole = citation["preferred-citation"]
    assert citation["version"] == whole["version"] == project["version"] == rb.__version__
    assert citation["license"] == project["license"]
    assert citation["repository-code"] == whole["url"] == config["repository"]["url"]
    assert whole["title"] == config["title"]
    assert str(whole["year"]) in config["copyright"]
    names = [author["name"] for author in project["authors"]]
    assert [author["name"] for author in citation["authors"]] == names
    assert whole["authors"] == citation["authors"]


@pytest.mark.parametrize(("place", "key"), list(enumerate(PAPERS)))
def test_the_papers_of_the_citation_file_are_those_of_the_bibliography(place, key, citation):
    assert len(citation["references"]) == len(PAPERS)
    cited, entry = (
        citation["references"][place],
        parse_file(ROOT / "book/references.bib").entries[key],
    )
    people = [(plain(p.last_names[0]), " ".join(p.first_names)) for p in entry.persons["author"]]
    assert [(a["family-names"], a["given-names"]) for a in cited["authors"]] == people
    assert cited["title"] == plain(entry.fields["title"])
    assert str(cited["year"]) == entry.fields["year"].split(",")[0]
    assert entry.fields["url"].removesuffix("v1").removesuffix("v2") == cited["url"]


@pytest.mark.parametrize("stem", STEMS)
def test_every_chapter_opens_with_a_finding_and_who_judged(stem, findings):
    text = (ROOT / f"notebooks/{stem}.md").read_text("utf-8")
    says, judge = findings.ANSWER.search(text).groups()
    assert findings.MAIN.match(says), "no sentence in bold"
    assert re.search("recorded|simulated|live|published", judge, re.I)
    assert not judge.startswith("```")


def test_numbers_follow_the_files(findings):
    numbers = [findings.number_of(stem) for stem in STEMS]
    assert numbers == [*(f"{n}.1" for n in range(1, len(STEMS))), "A.1"]
    assert len({findings.anchor_of(n) for n in numbers}) == len(STEMS)


@pytest.fixture
def found(findings, tmp_path):
    """The finding of a chapter as it is executed: a number is glued, and 5 % is in the line."""
    text = "# Does it?\n\n:::{div} answer\n**Yes, in {glue:text}`n:s` _of_ 9.** Or so.\n\n"
    text += "*Live* · 5 %\n\nMore."
    shown = nbformat.v4.new_output(
        "display_data",
        data={"application/papermill.record/text/plain": "'3 & 4'"},
        metadata={"scrapbook": {"name": "n", "mime_prefix": "application/papermill.record/"}},
    )  # fmt: skip
    cells = [nbformat.v4.new_markdown_cell(text), nbformat.v4.new_code_cell("", outputs=[shown])]
    notebook = nbformat.v4.new_notebook(cells=cells)
    notebook.metadata.rubricnb = {"executed": "2026-01-02"}
    nbformat.write(notebook, tmp_path / "07_x.ipynb")
    nbformat.write(nbformat.v4.new_notebook(cells=[]), tmp_path / "08_without.ipynb")
    [found] = findings.findings(tmp_path)
    return found


def test_a_finding_has_its_glued_numbers_its_judge_and_its_day(found):
    assert (found.number, found.anchor, found.title) == ("7.1", "finding-7-1", "Does it?")
    assert found.says == "Yes, in 3 & 4 _of_ 9."
    assert (found.judge, found.executed) == ("Live · 5 %", "2026-01-02")


def test_what_is_offered_as_bibtex_is_read_as_what_it_says(found, findings, citation):
    whole = citation["preferred-citation"]
    [entry] = parse_string(findings.finding_bibtex(whole, found), "bibtex").entries.values()
    assert str(entry.persons["author"][0]) == f"{{{whole['authors'][0]['name']}}}"
    assert plain(entry.fields["title"]) == "Does it? (Finding 7.1)"
    assert entry.fields["note"] == r"Live · 5 \%; executed on 2026-01-02"
    assert entry.fields["url"] == f"{whole['url']}/blob/main/notebooks/07_x.md"


def test_in_words_a_finding_names_sentence_judge_day_and_place(found, findings, citation):
    said = findings.finding_in_words(citation["preferred-citation"], found)
    for part in (
        found.says,
        found.judge,
        found.executed,
        "Finding 7.1",
        "chapter 7",
        rb.__version__,
    ):
        assert part in said


@pytest.mark.parametrize("page", ["README.md", "book/index.md"])
def test_readers_find_how_to_cite_where_they_begin(page):
    assert re.search(r"cite\.md|\{ref\}`cite`|\{doc\}`cite`", (ROOT / page).read_text("utf-8"))
