"""The README shows what the book computed: its figure and its number are those of chapter 05."""

import re

import nbformat
import pytest

from rubricnb import book

ROOT = book.find_root()
KEPT = ROOT / "book" / "selection.svg"
SVG, TEXT = "image/svg+xml", "text/plain"


@pytest.fixture(scope="module")
def glued():
    path = ROOT / "_build" / "stage" / "notebooks" / "05_position_bias.ipynb"
    return book.glued(nbformat.read(path, 4))


def test_the_figure_is_the_chapters(glued):
    drawn = glued["fig-places"][SVG].replace("<svg ", '<svg style="background: white" ', 1)
    now = ROOT / "_build" / KEPT.name
    now.write_text(drawn, "utf-8")
    assert KEPT.read_text("utf-8") == drawn, f"copy {now.relative_to(ROOT)} to book/"


def test_the_numbers_are_the_chapters(glued):
    text = (ROOT / "README.md").read_text("utf-8")
    said = re.search(r"stands first in (\d+ % \[\d+, \d+\]) of its reads", text)
    assert said.group(1) == glued["first"][TEXT].strip("'")
