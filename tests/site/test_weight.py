"""What a page sends to a phone before anything is clicked or scrolled."""

import gzip
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from bs4 import BeautifulSoup

from rubricnb.book import notebooks as book

HTML = book.find_root() / "_build" / "html"
# Bytes, compressed, without mathematics. Half of the pages have less than 300 kB; what
# is above it is Greek letters (35 kB), long pages (the bibliography has 110 kB of its
# own) and first figures.
MOST = 370_000
COMPRESSED = (".woff", ".woff2", ".png")  # already, as files


@pytest.fixture
def loaded(browser, page_name):
    """The files that a page asks for on a phone, and their sizes as they are sent."""
    asked = []
    page = browser.new_page(viewport={"width": 390, "height": 844})
    page.on("request", lambda request: asked.append(urlsplit(request.url)))
    page.goto((HTML / page_name).as_uri())
    page.wait_for_load_state("networkidle")
    page.close()
    files = {Path(unquote(url.path)) for url in asked if url.scheme == "file"}
    return {file: _sent(file) for file in files if file.is_file()}


def _sent(file):
    size = file.read_bytes()
    return len(size) if file.suffix in COMPRESSED else len(gzip.compress(size))


def test_first_view_is_light(loaded):
    told = {
        file.name: size for file, size in loaded.items() if "mathjax" not in file.parts
    }
    largest = sorted(told.items(), key=lambda row: -row[1])[:8]
    assert sum(told.values()) <= MOST, largest


def test_page_loads_only_what_it_uses(page_name):
    soup = BeautifulSoup((HTML / page_name).read_text("utf-8"), "html.parser")
    scripts = {
        script["src"].split("/")[-1].split("?")[0]
        for script in soup.select("script[src]")
    }
    assert "fontawesome.js" not in scripts
    assert not soup.select("i[class*=fa-]")
    assert ("searchindex.js" in scripts) == (page_name == "search.html")
    if not soup.select(".math"):
        assert not any(
            "mathjax" in script["src"] for script in soup.select("script[src]")
        )
