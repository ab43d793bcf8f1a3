"""The built files: nothing from elsewhere, every image described,
nothing of this machine.
"""

import csv
import getpass
import hashlib
import re
from functools import lru_cache
from pathlib import Path
from urllib.parse import unquote, urlsplit

import nbformat
import pytest
from bs4 import BeautifulSoup

from rubricnb.book import notebooks as book
from rubricnb.core.results import judges
from tools import building

ROOT = book.find_root()
HTML = ROOT / "_build" / "html"
STAGE = ROOT / "_build" / "stage"
# What makes a browser fetch something by itself; a link that is clicked does not.
LOADS = dict.fromkeys(
    ("script", "img", "iframe", "source", "video", "audio", "embed"), "src"
)
LOADS |= {"object": "data", "link": "href"}
REMOTE = re.compile(r"^\s*(https?:)?//", re.IGNORECASE)
MACHINE = re.compile(
    r"(?<![\w.:/-])(?:/(?:home|Users)/\w+/|/root/|/tmp/|/var/folders/|[A-Z]:\\Users\\)"
    + "|"
    + re.escape(str(ROOT))
)

# What a program calls a thing: no number, a frame's column, a recorded judge.
MACHINE_NAME = re.compile(
    r"(?<!\w)(nan|NaN|NaT|<NA>|None|True|False|inf|np\.\w+)(?!\w)|[a-zA-Z]_[a-z]"
    + "".join(f"|{re.escape(slug)}" for slug in judges()["slug"])
)


@lru_cache(maxsize=2)
def parsed(page_name):
    return BeautifulSoup((HTML / page_name).read_text("utf-8"), "html.parser")


def page_of(chapter):
    return parsed(f"notebooks/{chapter}.html")


@pytest.fixture
def soup(page_name):
    return parsed(page_name)


@lru_cache(maxsize=2)
def executed(chapter):
    return nbformat.read(STAGE / "notebooks" / f"{chapter}.ipynb", 4)


def test_every_page_of_the_table_of_contents_was_written():
    """A build can end well and publish nothing:
    each page is there, under its own title.
    """
    titles = {}
    for page in building.pages(ROOT):
        source = (ROOT / page).with_suffix(".md").read_text("utf-8")
        said = re.search(r"^# (.+)$", source, re.M)[1]
        file = HTML / f"{page}.html"
        built = (
            re.search("<h1>(.*?)</h1>", file.read_text("utf-8"), re.S)
            if file.is_file()
            else ""
        )
        titles[page] = (
            words(said),
            words(re.sub("<.*?>", "", built[1])) if built else None,
        )
    assert len(titles) > 50
    assert {page: pair for page, pair in titles.items() if pair[1] != pair[0]} == {}


def words(title):
    """A title without its number and its punctuation."""
    return re.findall(r"[a-z]+", title.lower())


def test_page_loads_nothing_from_elsewhere(soup):
    loads = [
        element[attribute]
        for name, attribute in LOADS.items()
        for element in soup.find_all(name)
        if element.get(attribute)
        and element.get("rel") not in (["canonical"], ["alternate"])
    ]
    assert [load for load in loads if REMOTE.match(load)] == []


def test_page_has_one_copy_of_every_script(soup):
    scripts = [
        script["src"].split("?")[0]
        for script in soup.find_all("script")
        if script.get("src")
    ]
    assert len(scripts) == len(set(scripts))
    assert not any("thebe" in script or "require" in script for script in scripts)


@pytest.mark.parametrize(
    "path", sorted(HTML.glob("_static/**/*.css")), ids=lambda p: p.name
)
def test_style_sheet_loads_nothing_from_elsewhere(path):
    text = path.read_text("utf-8")
    assert re.findall(r"(?:url\(|@import)\s*['\"]?(?:https?:)?//[^)'\"]+", text) == []


def test_page_names_nothing_of_this_machine(soup):
    assert MACHINE.findall(soup.get_text()) == []


def test_a_per_cent_sign_stays_with_its_number(soup):
    texts = [
        t
        for p in soup.select(".bd-article p")
        for t in p.find_all(string=re.compile(r"\d %"))
    ]
    assert [t for t in texts if not t.find_parent(["code", "pre"])] == []


def test_figures_and_tables_are_numbered_by_their_chapter(told):
    page = page_of(told)
    number = told.partition("_")[0].lstrip("0")
    said = [
        found.get_text(strip=True)
        for found in page.select(".bd-article .caption-number")
    ]
    assert [s for s in said if not re.match(rf"(Fig\.|\w+) {number}\.\d+$", s)] == []


def test_links_within_the_book_lead_somewhere(soup, page_name):
    missing = []
    for link in soup.select("a[href], link[href], img[src], script[src]"):
        target = urlsplit(link.get("href") or link.get("src"))
        if target.scheme or target.netloc or not target.path:
            continue
        path = (HTML / page_name).parent / unquote(target.path)
        if not path.exists():
            missing.append(target.path)
    assert missing == []


def test_chapter_says_when_and_with_what_it_ran(chapter):
    soup = page_of(chapter)
    line = soup.select_one(".provenance").get_text()
    run = executed(chapter).metadata.rubricnb
    assert run["executed"] in line
    assert run["version"] in line


def test_every_captioned_table_has_a_file(chapter):
    page, soup = HTML / "notebooks" / f"{chapter}.html", page_of(chapter)
    tables = [
        figure for figure in soup.select(".bd-article figure") if figure.find("table")
    ]
    assert tables
    for table in tables:
        links = [
            page.parent / unquote(a["href"])
            for a in table.select('figcaption a[href$=".csv"]')
        ]
        assert links, f"{table['id']} has no link to a CSV file"
        assert [link for link in links if not link.is_file()] == []


def tables_of(chapter):
    soup = page_of(chapter)
    return soup.select(".bd-article table")


def test_a_table_shows_eight_rows_unless_it_is_a_papers(chapter):
    long = [
        table.find_parent(id=True)["id"]
        for table in tables_of(chapter)
        if len(table.select("tbody tr:not(.rest)")) > 8
        and not table.find_parent(class_="paper")
    ]
    assert long == []


def test_rows_that_wait_are_counted_and_downloaded(chapter):
    page = HTML / "notebooks" / f"{chapter}.html"
    for table in tables_of(chapter):
        if not table.select("tr.rest"):
            continue
        figure, n = table.find_parent("figure"), len(table.select("tbody tr"))
        assert (
            figure.select_one("label.all-rows").get_text(strip=True)
            == f"show all {n} rows"
        )
        (link,) = figure.select('figcaption .table-file a[href$=".csv"]')
        rows = (page.parent / unquote(link["href"])).read_text("utf-8").splitlines()
        assert len(list(csv.reader(rows))) == n + 1


def test_tables_speak_the_readers_words(chapter):
    told = [
        cell.get_text(" ", strip=True)
        for table in tables_of(chapter)
        for cell in table.select("th, td")
        if not cell.find("code") and not cell.find(class_="math")
    ]
    assert [text for text in told if MACHINE_NAME.search(text)] == []


def test_chapter_shows_only_figures_of_its_run_or_of_the_records(chapter):
    soup = page_of(chapter)
    figures = {Path(image["src"]).stem for image in soup.select(".bd-article img")}
    computed = {
        hashlib.sha256("\n".join(text.splitlines()).encode()).hexdigest()
        for cell in executed(chapter).cells
        for output in cell.get("outputs", [])
        for mime, text in output.get("data", {}).items()
        if mime.endswith("image/svg+xml")  # shown, or glued for another place
    }
    recorded = {
        p.stem
        for folder in ("results", "_static")
        for p in (ROOT / folder).rglob("*.svg")
    }
    assert figures <= computed | recorded


def test_executed_notebook_names_nothing_of_this_machine(chapter):
    text = (STAGE / "notebooks" / f"{chapter}.ipynb").read_text("utf-8")
    assert MACHINE.findall(text) == []
    assert not re.search(rf"\b{re.escape(getpass.getuser())}@", text)


def test_download_of_a_chapter_carries_its_outputs(chapter):
    download = nbformat.read(HTML / "_sources" / "notebooks" / f"{chapter}.ipynb", 4)
    assert any(cell.get("outputs") for cell in download.cells)


def test_staged_tree_holds_the_executed_notebooks_only():
    assert not list((STAGE / "notebooks").glob("*.md"))
