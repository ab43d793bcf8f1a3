"""Every page as a reader sees it: in Chromium, network off,
wide and narrow, light and dark.
"""

import re
from pathlib import Path

import axe_playwright_python
import nbformat
import yaml
from bs4 import BeautifulSoup

from rubricnb.book import notebooks as book

HTML = book.find_root() / "_build" / "html"
STAGE = book.find_root() / "_build" / "stage"
AXE = (Path(axe_playwright_python.__file__).parent / "axe.min.js").read_text("utf-8")
# opened so, then turned
VIEWS = {("desktop", "light"): "dark", ("phone", "dark"): "light"}
TURN = "theme => { document.documentElement.dataset.theme = theme; }"
# What the theme's own parts break and cannot be mended from here:
# (rule, exact element): cause.
THEME: dict[tuple[str, str], str] = {}

# Neither a name (GPT-4, 1.5B) nor a score or a place is a number
# that the reader has to hold.
NUMBER = re.compile(r"(?![1-9]$)[−+-]?\.?\d[\d.,]*").fullmatch

UNTYPESET = """() => [...document.querySelectorAll('.math')]
  .filter(e => !e.querySelector('mjx-container')).map(e => e.textContent.slice(0, 60))
  .concat([...document.querySelectorAll('mjx-merror')]
    .map(e => 'error: ' + e.textContent))"""
UNLOADED = """async () => {
  const images = [...document.images];
  images.forEach(i => { i.loading = 'eager'; });
  await Promise.all(images.map(i => i.decode().catch(() => null)));
  return images.filter(i => !i.naturalWidth).map(i => i.src);
}"""
UNDESCRIBED = """() => [...document.querySelectorAll('.bd-article img')]
  .filter(i => !i.alt.trim()).map(i => i.src)"""
UNFOLD = (
    "() => document.querySelectorAll('details.evidence').forEach(d => { d.open = true; "
    "})"
)
TOPS = """() => ['.answer', '.answer figure']
  .map(s => document.querySelector(`.bd-article ${s}`))
  .map(e => e.getBoundingClientRect().top + scrollY)"""
TOO_WIDE = "() => document.documentElement.scrollWidth - window.innerWidth"
CUT = """() => [...document.querySelectorAll('.bd-article :is(pre, .table-scroll, ' +
    '.pst-scrollable-table-container)')].filter(e => e.scrollWidth > e.clientWidth + 1)
  .map(e => (e.closest('figure') || {}).id || e.textContent.trim().slice(0, 60))"""
# Letters are drawn at ten points;
# below six and a half pixels a phone's reader has to guess.
SMALL = """() => [...document.querySelectorAll('.bd-article figure img[src$=".svg"]')]
  .filter(i => window.innerWidth < 600 && i.checkVisibility())
  .filter(i => i.getBoundingClientRect().width / i.naturalWidth * 40 / 3 < 6.5)
  .map(i => (i.closest('figure') || i).id)"""
# Four in five elements of a chapter are words of code:
# of those that look alike, one is asked.
ONE_OF_EACH_LOOK = """() => {
  const seen = new Set();
  for (const word of document.querySelectorAll('.highlight span')) {
    const look = [word, word.parentElement, word.closest('.highlight').parentElement];
    const key = look.map(e => e.className).join('|');
    if (seen.has(key)) word.replaceWith(...word.childNodes);
    seen.add(key);
  }
}"""
BREACHES = """async rules => (await axe.run(document, {
    resultTypes: ['violations'], ...(rules ? {runOnly: rules} : {})})).violations
  .filter(v => ['serious', 'critical'].includes(v.impact))
  .flatMap(v => v.nodes.map(n => [v.id, n.html, n.failureSummary]))"""


# What a width or a theme can change; all rules are asked of a page once.
OF_A_VIEW = [
    "color-contrast",
    "link-in-text-block",
    "scrollable-region-focusable",
    "aria-hidden-focus",
    "button-name",
    "link-name",
]


def address(page_name):
    return (HTML / page_name).as_uri()


def cut_on_a_desktop(page):
    """Tables, with all their rows, and code that do not fit beside the sidebars."""
    page.set_viewport_size({"width": 1440, "height": 900})
    page.evaluate(
        "() => document.querySelectorAll('details').forEach(d => d.open = true)"
    )
    page.evaluate(
        "() => document.querySelectorAll('.all-rows input').forEach(i => i.click())"
    )
    cut = page.evaluate(CUT)
    page.set_viewport_size({"width": 1280, "height": 900})
    return cut


def breaks(reader):
    """What a reader of any page would call broken
    at the width and in the theme shown.
    """
    page = reader.page
    found = [*reader.trouble]
    found += [f"not typeset: {text}" for text in page.evaluate(UNTYPESET)]
    found += [f"not loaded: {source}" for source in page.evaluate(UNLOADED)]
    found += [f"no alternative text: {source}" for source in page.evaluate(UNDESCRIBED)]
    return found + breaks_the_layout(page)


def breaks_the_layout(page):
    excess, small = page.evaluate(TOO_WIDE), page.evaluate(SMALL)
    wide = [f"the page is {excess} pixels wider than the window"] if excess > 1 else []
    return wide + [f"letters are too small: {figure}" for figure in small]


def below_the_first_screen(page):
    """What of a chapter's answer and its figure a large desktop does
    not show at once.
    """
    size = page.viewport_size
    page.set_viewport_size({"width": 1440, "height": 1100})
    try:
        tops = page.evaluate(TOPS)
    finally:
        page.set_viewport_size(size)
    names = ("answer", "figure")
    return [
        f"{name} at {top} pixels"
        for name, top in zip(names, tops, strict=True)
        if top >= 1100
    ]


def test_page_opens_and_nothing_on_it_is_broken(readers, page_name):
    """Every page once, on a phone; `close_page` has the other widths,
    themes and axe's rules.
    """
    reader = readers["phone", "light"]
    page = reader.open(address(page_name), unfold=False)
    below = []
    if page.query_selector(".bd-article .answer figure"):
        below = below_the_first_screen(page)
    page.evaluate(UNFOLD)
    assert breaks(reader) + below == []


def test_page_is_whole_and_accessible_at_every_width_and_theme(
    readers, server, close_page
):
    """Opened once for each width, since typesetting takes longest:
    from disk, and from a server.
    """
    found = {}
    for (width, theme), other in VIEWS.items():
        served = width == "phone"
        reader = readers[width, theme]
        page = reader.open(f"{server}/{close_page}" if served else address(close_page))
        trouble = breaks(reader)
        page.evaluate(AXE)
        page.evaluate(ONE_OF_EACH_LOOK)
        rules = OF_A_VIEW if served else None
        trouble += [
            b for b in page.evaluate(BREACHES, rules) if (b[0], b[1]) not in THEME
        ]
        page.evaluate(TURN, other)
        trouble += [f"{other}: {what}" for what in breaks_the_layout(page)]
        if width == "desktop":
            trouble += [
                f"cut at 1440 pixels: {what}" for what in cut_on_a_desktop(page)
            ]
        if trouble:
            found[width, theme] = trouble
    assert found == {}


def test_all_rows_of_a_table_are_shown_when_they_are_asked_for(readers, close_chapter):
    page = readers["phone", "light"].open(address(f"notebooks/{close_chapter}.html"))
    waits = page.query_selector("tr.rest")
    if waits is None:
        return
    assert not waits.is_visible()
    page.focus(".all-rows input")
    page.keyboard.press("Space")
    assert waits.is_visible()


SIGNS = """() => [...document.querySelectorAll('.figure-scroll')].map(figure => [
  figure.scrollWidth > figure.clientWidth + 8,
  figure.nextElementSibling.checkVisibility()])"""


def test_a_figure_that_a_phone_shows_in_part_says_so_until_its_end(readers):
    page = readers["phone", "light"].open(
        address("notebooks/02_balanced_permutation.html")
    )
    assert page.evaluate(UNLOADED) == []
    page.wait_for_selector(".figure-scroll.more + .swipe")
    signs = page.evaluate(SIGNS)
    assert any(is_cut for is_cut, _ in signs)
    assert all(is_cut == is_signed for is_cut, is_signed in signs)
    page.evaluate(
        "() => document.querySelectorAll('.figure-scroll').forEach(f => { f.scrollLeft "
        "= 9999; })"
    )
    page.wait_for_function("() => !document.querySelector('.figure-scroll.more')")
    wide = readers["desktop", "light"].open(
        address("notebooks/02_balanced_permutation.html")
    )
    assert not any(is_signed for _, is_signed in wide.evaluate(SIGNS))


def test_a_word_of_code_is_not_broken_at_its_hyphens(readers):
    page = readers["phone", "light"].open(address("book/quickstart.html"))
    lines = page.evaluate(
        "() => [...document.querySelectorAll('.bd-article :is(p, li) > code span.pre')]"
        ".map(word => [word.textContent, word.getClientRects().length])"
    )
    assert any("-" in word for word, _ in lines)
    assert [word for word, n_lines in lines if n_lines > 1] == []


def test_front_door_leads_to_the_landing_page(readers):
    page = readers["desktop", "light"].page
    page.goto(address("index.html"))
    page.wait_for_url("**/book/index.html")


def test_theme_follows_the_reader(readers):
    ground = {}
    for theme in ("light", "dark"):
        page = readers["desktop", theme].open(address("book/index.html"))
        ground[theme] = page.evaluate(
            "() => getComputedStyle(document.body).backgroundColor"
        )
    assert ground["light"] != ground["dark"]


def test_code_and_solutions_unfold(readers, close_chapter):
    page = readers["desktop", "light"].open(address(f"notebooks/{close_chapter}.html"))
    cells = nbformat.read(STAGE / "notebooks" / f"{close_chapter}.ipynb", 4).cells
    folded = [
        cell
        for cell in cells
        for tag in cell.metadata.get("tags", [])
        if tag == "hide-input" or (tag == "hide-output" and cell.outputs)
    ]
    summaries = page.query_selector_all(".bd-article details.hide > summary")
    assert len(summaries) == len(folded) > 0
    solutions = page.query_selector_all(".bd-article .solution.dropdown")
    assert (
        len(solutions)
        == sum(cell.source.count("{solution-start}") for cell in cells)
        > 0
    )
    for summary in summaries:
        before = summary.evaluate("e => e.parentElement.open")
        summary.click()
        assert summary.evaluate("e => e.parentElement.open") is not before
    for solution in solutions:
        body = solution.query_selector(
            ".toggle-details__container, section, .solution-content, p:last-child"
        )
        assert not body.is_visible()
        solution.query_selector("button.toggle-button, summary").click()
        body.wait_for_element_state("visible")


def test_the_answer_comes_first_and_a_link_unfolds_the_evidence(readers, close_told):
    page = readers["desktop", "light"].open(
        address(f"notebooks/{close_told}.html"), unfold=False
    )
    tops = page.evaluate(TOPS)
    assert tops == sorted(tops)
    assert below_the_first_screen(page) == []
    inside = "details.evidence section[id]"
    assert not page.query_selector(inside).is_visible()
    assert page.query_selector(".bd-article .answer").is_visible()
    place = page.eval_on_selector(inside, "e => e.id")
    page.evaluate("place => { location.hash = place; }", place)
    page.wait_for_selector(f"[id='{place}']")  # visible
    assert (
        page.query_selector("details.evidence .answer, details.evidence .story") is None
    )


def test_a_story_is_short_and_spare_with_numbers(told):
    html = BeautifulSoup(
        (HTML / "notebooks" / f"{told}.html").read_text("utf-8"), "html.parser"
    )
    story = html.select_one(".bd-article .story")
    assert story.select("pre, .cell_input") == []
    for part in story.select("figure, table, aside, .math"):
        part.decompose()
    words = re.sub(
        r"\[[^\]]*\]", "", story.get_text(" ")
    ).split()  # an interval is no further number
    numbers = [
        word
        for word in (word.strip("()[],.;:?!%“”\"'’") for word in words)
        if NUMBER(word)
    ]
    assert len(words) <= 900
    assert 100 * len(numbers) / len(words) <= 3, numbers


def test_search_box_answers_the_keyboard(readers):
    page = readers["desktop", "light"].open(address("book/index.html"))
    page.keyboard.press("Control+k")
    page.keyboard.type("record")
    page.keyboard.press("Enter")
    page.wait_for_selector("#search-results li a")
    assert "q=record" in page.url


def test_an_old_address_leads_to_the_chapter_s_new_one(readers):
    config = yaml.safe_load((book.find_root() / "_config.yml").read_text("utf-8"))
    moved = config["sphinx"]["config"]["redirects"]
    assert {(HTML / old).with_name(new).is_file() for old, new in moved.items()} == {
        True
    }
    page = readers["desktop", "light"].page
    page.goto(address("notebooks/19_is_the_test_valid.html"))
    page.wait_for_url("**/06_is_the_test_valid.html")
