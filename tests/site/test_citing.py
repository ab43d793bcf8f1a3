"""Every chapter's finding can be linked and cited,
and the page about citing says what it says.
"""

import pytest
from bs4 import BeautifulSoup

from rubricnb.book import notebooks as book

HTML = book.find_root() / "_build" / "html"


def soup(page):
    return BeautifulSoup((HTML / page).read_text("utf-8"), "html.parser")


def text(element):
    return " ".join(element.get_text().split())


@pytest.fixture(scope="module")
def citing():
    return soup("book/cite.html")


def test_a_finding_has_the_number_of_its_chapter_and_an_entry_that_says_the_same(
    chapter, citing
):
    page = soup(f"notebooks/{chapter}.html")
    # a class asks; tests/test_citing.py counts
    if not page.select_one(".bd-article .answer"):
        return
    number = page.select_one("h1 .section-number")
    number = f"{text(number)}1" if number else "A.1"  # "5." and 1
    anchor = f"finding-{number.replace('.', '-').lower()}"
    answer = page.find(id=anchor)
    assert "answer" in answer["class"]
    own, cite = answer.select(".finding a")
    assert (text(own), own["href"]) == (f"Finding {number}", f"#{anchor}")
    assert cite["href"] == f"../book/cite.html#cite-{anchor}"
    entry = citing.find(id=f"cite-{anchor}")
    assert entry.select_one("a")["href"] == f"../notebooks/{chapter}.html#{anchor}"
    assert text(answer.find("strong")).rstrip(".") in text(entry)
    assert text(entry.select_one("pre")).startswith(f"@misc{{rubricnb-{number},")
    title = page.select_one("h1").find(string=True, recursive=False).strip()
    assert title in text(entry.select_one("pre"))


def test_a_link_to_a_finding_shows_it(readers):
    page = readers["phone", "dark"].open(
        f"{(HTML / 'notebooks/05_position_bias.html').as_uri()}#finding-5-1"
    )
    top = page.eval_on_selector("#finding-5-1", "e => e.getBoundingClientRect().top")
    assert 0 <= top < 200


def test_bibtex_of_a_finding_unfolds(readers):
    page = readers["desktop", "light"].open((HTML / "book/cite.html").as_uri())
    fold = page.locator("#cite-finding-5-1 details")
    assert not fold.locator("pre").is_visible()
    fold.locator("summary").click()
    assert fold.locator("pre").is_visible()
