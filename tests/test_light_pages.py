"""A finished page loses what it does not use, and keeps what it does."""

import sys
from pathlib import Path

import pydata_sphinx_theme
import pytest
from fontTools.ttLib import TTFont
from sphinx.errors import ExtensionError

from rubricnb.book import notebooks as book

sys.path.append(str(book.find_root() / "_ext"))
from light_pages import cut_font, drawings, lighter, named

SCRIPT = (
    'a={bars:[448,512,["navicon"],"f0c9","M0z"],'
    '"arrow-up":[384,512,[8593],"f062","M2z"]}'
)
ICONS = drawings(SCRIPT)
HEAD = (
    '<link rel="preload" as="script" href="_static/scripts/fontawesome.js"/>'
    '<link rel="stylesheet" href="_static/styles/pydata.css"/>'
    '<script defer src="_static/scripts/fontawesome.js"></script>'
    '<script>window.MathJax = {"a": 1}</script><script '
    'src="vendor/mathjax/tex.js"></script>'
    '<script src="searchindex.js"></script><script '
    'src="_static/explorables.js"></script>'
    '<script src="_static/book.js"></script>'
)


def test_a_page_of_words_loads_the_style_and_our_script_alone():
    page = lighter(f"<head>{HEAD}</head><p>Words.</p>", ICONS)
    assert page.count("<script") == 1
    assert "book.js" in page
    assert page.count("<link") == 1


@pytest.mark.parametrize(
    ("body", "kept"),
    [
        (
            '<span class="math notranslate">x</span>',
            ["window.MathJax", "mathjax/tex.js"],
        ),
        ('<div class="explorable" data-name="a"></div>', ["explorables.js"]),
        ('<div id="search-results"></div>', ["searchindex.js"]),
    ],
)
def test_a_page_keeps_what_it_uses(body, kept):
    page = lighter(f"<head>{HEAD}</head>{body}", ICONS)
    assert all(name in page for name in kept)
    assert page.count("<script") == 1 + len(kept)


def test_icons_are_drawn_with_their_classes_and_an_unknown_one_stops_the_build():
    page = lighter(
        '<i class="theme-switch fa-solid fa-bars  fa-lg" data-mode="auto"></i>', ICONS
    )
    assert 'class="icon theme-switch fa-solid fa-bars  fa-lg" data-mode="auto"' in page
    assert 'd="M0z"' in page
    assert lighter(page, ICONS) == page
    with pytest.raises(ExtensionError, match="no icon 'spoon'"):
        lighter('<i class="fas fa-spoon"></i>', ICONS)


def test_pictures_below_the_first_screen_load_late():
    page = lighter(
        '<img src="1"><img src="2"><img src="3"><img loading="eager" src="4">', {}
    )
    assert page.count('loading="lazy"') == 1
    assert '<img loading="lazy" src="3">' in page


def test_the_words_of_a_command_stay_whole_and_python_is_left_alone():
    block = (
        '<div class="highlight-{} notranslate"><pre>a<span class="w"> '
        "</span>{}</pre></div>"
    )
    page = lighter(block.format("bash", "--n-items b\n-m c"), ICONS)
    assert '<span class="pre">--n-items</span> b\n<span class="pre">-m</span> c' in page
    assert lighter(page, ICONS) == page
    python = block.format("python", "x -y")
    assert lighter(python, ICONS) == python


def test_a_font_of_icons_keeps_what_style_sheets_draw(tmp_path):
    (tmp_path / "a.css").write_text(
        'a::after{content:"\\f107"} :root{--up:"\uf071"}', "utf-8"
    )
    (tmp_path / "fontawesome").mkdir()
    (tmp_path / "fontawesome" / "all.css").write_text(
        '.fa-x:before{content:"\\f00d"}', "utf-8"
    )
    assert named(tmp_path) == {0xF107, 0xF071}
    theme = Path(pydata_sphinx_theme.__file__).parent
    (whole,) = theme.rglob("fa-solid-900.ttf")
    font = tmp_path / whole.name
    font.write_bytes(whole.read_bytes())
    cut_font(font, named(tmp_path))
    cut = font.with_suffix(".woff")
    assert set(TTFont(cut).getBestCmap()) == {0xF107, 0xF071}
    assert cut.stat().st_size < font.stat().st_size / 100
