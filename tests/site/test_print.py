"""The book as one page to print: nothing is lost,
and its links stay inside; a part as PDF.
"""

import re
import subprocess
import sys

import pytest
import yaml
from bs4 import BeautifulSoup

from rubricnb.book import notebooks as book
from tools import building, printing

pytestmark = pytest.mark.in_turn

HTML = book.find_root() / "_build" / "html"
# each with an experiment
PART = ["notebooks/11_rank_reversal", "notebooks/A_bias_cost"]


@pytest.fixture(scope="module")
def whole():
    return BeautifulSoup(printing.one_page(HTML, building.pages()), "html.parser")


def test_every_page_is_in_it_in_the_books_order(whole):
    titles = [article.h1.get_text() for article in whole.select("article")]
    for name, title in zip(building.pages(), titles, strict=True):
        page = BeautifulSoup((HTML / f"{name}.html").read_text("utf-8"), "html.parser")
        assert title == page.select_one("article h1").get_text()


def test_evidence_is_unfolded(whole):
    folds = whole.select("details.evidence")
    assert folds
    assert all(fold.has_attr("open") for fold in folds)


def test_links_within_the_book_lead_to_places_in_the_file(whole):
    places = [element["id"] for element in whole.select("[id]")]
    inner = {link["href"][1:] for link in whole.select("article a[href^='#']")}
    assert len(inner) > 100
    assert {
        place: places.count(place) for place in inner if places.count(place) != 1
    } == {}
    outer = {link["href"] for link in whole.select("article a[href]:not([href^='#'])")}
    assert [link for link in outer if not re.match(r"https?://|mailto:", link)] == []


@pytest.fixture(scope="module")
def part(tmp_path_factory):
    """A book of three of the pages;
    printing all of them takes minutes on a small machine.
    """
    root = tmp_path_factory.mktemp("part")
    first = building.pages()[0]
    toc = {
        "format": "jb-book",
        "root": first,
        "chapters": [{"file": page} for page in PART],
    }
    (root / "_toc.yml").write_text(yaml.safe_dump(toc))
    (root / "_config.yml").symlink_to(book.find_root() / "_config.yml")
    (root / "tools").symlink_to(book.find_root() / "tools")
    (root / "_build" / "html").mkdir(parents=True)
    for entry in HTML.iterdir():
        if entry.name != "print":
            (root / "_build" / "html" / entry.name).symlink_to(entry)
    subprocess.run(
        [sys.executable, "-m", "tools", "pdf"], cwd=root, check=True, timeout=600
    )
    return root / "_build"


def test_chromium_prints_it_into_one_file(part):
    printed = (part / "rubricnb.pdf").read_bytes()
    assert printed.startswith(b"%PDF")
    assert len(re.findall(rb"/Type\s*/Page\b", printed)) > 1 + len(PART)


def test_an_experiment_is_printed_as_what_it_would_show(part, readers):
    page = readers["desktop", "light"].open(
        (part / "html" / "print" / "book.html").as_uri()
    )
    page.emulate_media(media="print")
    told = page.locator(".explorable .fallback").all()
    visible = [sentence.is_visible() for sentence in told]
    # before anything fails: later tests read on this page
    page.emulate_media(media="screen")
    assert visible == [True] * (1 + len(PART))  # the landing page has one too
    assert page.locator(".explorable input").count() == 0
