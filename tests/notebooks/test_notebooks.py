"""Every notebook: its parameters cell, its twin,
its place in the book, and that it runs.
"""

from pathlib import Path

import nbformat
import papermill
import pytest
from cells import code_of
from closely import slow_unless_due

import rubricnb as rb
from rubricnb.book import notebooks as book
from tools import building
from tools.twins import twins as out_of_step

ROOT = book.find_root()
STEMS = sorted(path.stem for path in (ROOT / "notebooks").glob("*.md"))
SMALL = Path(__file__).with_name("small.yml")
# 15 to 18 about a recorded judge in
# test_recorded.py and with the simulated grader in test_own_grading.py.
ELSEWHERE = ("15_", "16_", "17_", "18_")


def test_table_of_contents_lists_exactly_the_notebooks_there_are():
    assert sorted(building.notebooks(ROOT)) == STEMS


def test_table_of_contents_lists_exactly_the_pages_there_are():
    listed = sorted(page for page in building.pages(ROOT) if page.startswith("book/"))
    pages = (path.relative_to(ROOT) for path in (ROOT / "book").rglob("*.md"))
    assert listed == sorted(path.with_suffix("").as_posix() for path in pages)


def test_chapters_stand_in_the_order_of_their_numbers():
    a_class, *chapters, appendix = [
        stem.split("_")[0] for stem in building.notebooks(ROOT)
    ]
    assert a_class == "90"  # minutes: beside the page on teaching, no chapter
    assert chapters == [f"{n:02}" for n in range(1, len(chapters) + 1)]
    assert appendix == "A"


def test_code_is_at_most_79_columns_wide():
    wide = [
        f"{stem}: {line}"
        for stem in STEMS
        for source in code_of(stem)
        for line in source.splitlines()
        if len(line) > 79
    ]
    assert wide == []


def test_twins_are_in_step():
    assert [path.name for path in out_of_step(check=True, root=ROOT)] == []


def test_twins_carry_no_outputs():
    twins = [nbformat.read(path, 4) for path in (ROOT / "notebooks").glob("*.ipynb")]
    assert len(twins) == len(STEMS)
    assert not any(cell.get("outputs") for twin in twins for cell in twin.cells)


@pytest.mark.parametrize("stem", STEMS)
def test_parameters_cell_keeps_the_contract(stem):
    declared = book.parameters(stem, ROOT)
    assert declared
    assert all(parameter.comment for parameter in declared)
    assert len({parameter.name for parameter in declared}) == len(declared)


@pytest.mark.parametrize("stem", STEMS)
def test_papermill_knows_every_parameter(stem):
    known = papermill.inspect_notebook(str(ROOT / "notebooks" / f"{stem}.ipynb"))
    assert list(known) == [parameter.name for parameter in book.parameters(stem, ROOT)]


@pytest.mark.parametrize(
    "stem", slow_unless_due(s for s in STEMS if not s.startswith(ELSEWHERE))
)
def test_runs_with_small_parameters(stem, warnings_of):
    small = building.parameter_file(SMALL, ROOT)[stem]
    executed = book.execute(stem, small, root=ROOT, cell_seconds=300)
    assert warnings_of(executed) == []


def test_the_cost_of_a_judge_has_a_dash_where_it_is_not_known():
    """Chapter 04's own cells, for a hosted judge without a list price."""
    items = rb.load("minibench", n_items=5)
    requests = rb.plan(items, rb.balanced(5), readout="feedback")
    shown = {}
    own = {
        "rb": rb,
        "show": shown.__setitem__,
        "items": items,
        "n": 5,
        "requests": requests,
        "asked_judge": "openai:m@https://example.org/v1",
    }
    scope = vars(rb.pages) | own
    cells = [source for source in code_of("04_judges_and_prompts") if "cost" in source]
    start = next(k for k, source in enumerate(cells) if source.startswith("cost = "))
    for source in cells[start : start + 2]:
        exec(source, scope)
    table = shown["tab-cost"]
    assert table.loc[["hours", "US dollars"]].iloc[:, 0].tolist() == ["–", "–"]
    assert table.loc["US dollars"].iloc[1] != "–"
    assert not table.isin(["nan"]).any(axis=None)
