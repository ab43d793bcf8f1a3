"""The README shows what the book computed:
its figure and its numbers are those of the chapters.
"""

import re

import nbformat
import pytest

from rubricnb.book import notebooks as book

ROOT = book.find_root()
KEPT = ROOT / "book" / "selection.svg"
SVG, TEXT = "image/svg+xml", "text/plain"
NUMBERS = [  # chapter, glued name, the number in the README
    (
        "05_position_bias",
        "first",
        r"first position in (\d+ % \[\d+, \d+\]) of its reads",
    ),
    ("05_position_bias", "first-others", r"other four datasets, in (\S+ to \S+ %)\."),
    (
        "19_how_noisy",
        "headline",
        r"two different scores in (\S+ % \[\S+, \S+\]) of the cases",
    ),
    ("21_probes", "shift", r"same answers (\S+ \[\S+, \S+\]) points higher"),
]


def glued(chapter):
    path = ROOT / "_build" / "stage" / "notebooks" / f"{chapter}.ipynb"
    return book.glued(nbformat.read(path, 4))


def test_the_figure_is_the_chapters():
    svg = glued("05_position_bias")["fig-places"][SVG]
    drawn = svg.replace("<svg ", '<svg style="background: white" ', 1)
    now = ROOT / "_build" / KEPT.name
    now.write_text(drawn, "utf-8")
    assert KEPT.read_text("utf-8") == drawn, f"copy {now.relative_to(ROOT)} to book/"


@pytest.mark.parametrize(("stem", "name", "pattern"), NUMBERS)
def test_the_numbers_are_the_chapters(stem, name, pattern):
    found = re.search(pattern, (ROOT / "README.md").read_text("utf-8"))
    assert found.group(1) == glued(stem)[name][TEXT].strip("'").replace("+", "")
