"""The book as one page to print: nothing is lost, and its links stay inside."""

import re

import pytest
from bs4 import BeautifulSoup

from rubricnb import book, printing

HTML = book.find_root() / "_build" / "html"


@pytest.fixture(scope="module")
def whole():
    return BeautifulSoup(printing.one_page(HTML, book.pages()), "html.parser")


def test_every_page_is_in_it_in_the_books_order(whole):
    titles = [article.h1.get_text() for article in whole.select("article")]
    for name, title in zip(book.pages(), titles, strict=True):
        page = BeautifulSoup((HTML / f"{name}.html").read_text("utf-8"), "html.parser")
        assert title == page.select_one("article h1").get_text()


def test_links_within_the_book_lead_to_places_in_the_file(whole):
    places = [element["id"] for element in whole.select("[id]")]
    inner = {link["href"][1:] for link in whole.select("article a[href^='#']")}
    assert len(inner) > 100
    assert {place: places.count(place) for place in inner if places.count(place) != 1} == {}
    outer = {link["href"] for link in whole.select("article a[href]:not([href^='#'])")}
    assert [link for link in outer if not re.match(r"https?://|mailto:", link)] == []
