"""Who searches for what a page is called finds that page first."""

import re

import pytest

from rubricnb.book import notebooks as book
from tools import building

HTML = book.find_root() / "_build" / "html"
# Every page's title, and the words of every page's name,
# each asked for as a reader would.
FIRST = """() => {
  const box = document.querySelector('input[name="q"]');
  const first = (query) => {
    box.value = query;
    return Search._performSearch(...Search._parseQuery(query)).at(-1)?.[0];
  };
  return Search._index.docnames.map((name, i) => {
    const title = Search._index.titles[i].replace(/<span.*?<\\/span>/, "");
    const short = name.split("/").pop().replace(/^(\\d+|A)_/, "").replace(/[_-]/g, " ");
    return [name, title, first(title), short, first(short)];
  });
}"""


@pytest.fixture(scope="module")
def searching(readers):
    page = readers["desktop", "light"].open(
        f"{(HTML / 'search.html').as_uri()}?q=record"
    )
    page.wait_for_function("() => Search.hasIndex()")
    return page


def test_every_page_is_found_first_by_its_title(searching):
    found = searching.evaluate(FIRST)
    assert {name for name, *_ in found} >= set(building.pages())
    assert [(title, first) for name, title, first, *_ in found if first != name] == []


def test_every_chapter_is_found_first_by_its_name(searching):
    found = [
        row
        for row in searching.evaluate(FIRST)
        if re.match(r"notebooks/(\d+|A)_", row[0])
    ]
    assert [(short, first) for name, *_, short, first in found if first != name] == []


@pytest.mark.parametrize(
    ("query", "page"),
    [
        ("position bias", "notebooks/05_position_bias"),
        ("how many orderings", "notebooks/08_how_many_orderings"),
        ("bias of position", "notebooks/05_position_bias"),
        ("cite", "book/cite"),
    ],
)
def test_what_readers_ask_for_leads_where_they_want_to_go(searching, query, page):
    first = """query => {
      document.querySelector('input[name="q"]').value = query;
      return Search._performSearch(...Search._parseQuery(query)).at(-1)[0];
    }"""
    assert searching.evaluate(first, query) == page


def test_the_page_of_results_shows_that_order(readers):
    page = readers["desktop", "light"].open(
        f"{(HTML / 'search.html').as_uri()}?q=position+bias"
    )
    page.wait_for_selector("#search-results li a")
    assert "05_position_bias" in page.locator(
        "#search-results li a"
    ).first.get_attribute("href")


def test_a_word_is_found_with_and_without_its_accents(searching):
    every = """query => {
      document.querySelector('input[name="q"]').value = query;
      return Search._performSearch(...Search._parseQuery(query)).map(row => row[0]);
    }"""
    with_accent, without = (
        searching.evaluate(every, query) for query in ("Cramér", "Cramer")
    )
    assert "notebooks/05_position_bias" in with_accent
    assert set(without) == set(with_accent)
