"""Every notebook: its parameters cell, its twin, its place in the book, and that it runs."""

from pathlib import Path

import nbformat
import papermill
import pytest

from rubricnb import book

ROOT = book.find_root()
STEMS = sorted(path.stem for path in (ROOT / "notebooks").glob("*.md"))
SMALL = Path(__file__).with_name("small.yml")


def test_table_of_contents_lists_exactly_the_notebooks_there_are():
    assert sorted(book.notebooks(ROOT)) == STEMS


def test_table_of_contents_lists_exactly_the_pages_there_are():
    listed = sorted(page for page in book.pages(ROOT) if page.startswith("book/"))
    assert listed == sorted(f"book/{path.stem}" for path in (ROOT / "book").glob("*.md"))


def test_chapters_stand_in_the_order_of_their_numbers():
    numbers = [int(stem.split("_")[0]) for stem in book.notebooks(ROOT)]
    # 19 asks whether the test of 05 is valid, so it stands behind it.
    assert numbers[5] == 19
    assert numbers[:5] + numbers[6:] == [n for n in range(1, len(numbers) + 1) if n != 19]


def test_twins_are_in_step():
    assert [path.name for path in book.twins(check=True, root=ROOT)] == []


def test_twins_carry_no_outputs():
    twins = [nbformat.read(path, 4) for path in (ROOT / "notebooks").glob("*.ipynb")]
    assert len(twins) == len(STEMS)
    assert not any(cell.get("outputs") for twin in twins for cell in twin.cells)


@pytest.mark.parametrize("stem", STEMS)
def test_parameters_cell_keeps_the_contract(stem):
    declared = book.parameters(stem, ROOT)
    assert declared
    assert len({parameter.name for parameter in declared}) == len(declared)


@pytest.mark.parametrize("stem", STEMS)
def test_papermill_knows_every_parameter(stem):
    known = papermill.inspect_notebook(str(ROOT / "notebooks" / f"{stem}.ipynb"))
    assert list(known) == [parameter.name for parameter in book.parameters(stem, ROOT)]


@pytest.mark.parametrize("stem", STEMS)
def test_runs_with_small_parameters(stem):
    small = book.parameter_file(SMALL, ROOT)[stem]
    executed = book.execute(stem, small, root=ROOT, cell_seconds=300)
    printed = [
        output.text
        for cell in executed.cells
        for output in cell.get("outputs", [])
        if output.get("name") == "stderr"
    ]
    assert printed == []
