"""Twins without outputs and notebooks without solutions."""

import re

import nbformat
import pytest

from rubricnb import book
from tools import building, twins


def change(root, old, new):
    path = root / "notebooks" / "05_doubling.md"
    path.write_text(path.read_text().replace(old, new))


def printed(notebook):
    return [
        o.text.strip() for cell in notebook.cells for o in cell.get("outputs", []) if "text" in o
    ]


def test_twins_are_written_once_and_say_when_out_of_step(small):
    twin = small / "notebooks" / "05_doubling.ipynb"
    assert twins.twins(check=True, root=small) == [twin]
    assert not twin.exists()
    assert twins.twins(root=small) == [twin]
    assert twins.twins(check=True, root=small) == []
    first = twin.read_bytes()
    change(small, "n_items * 2", "n_items * 3")
    assert twins.twins(root=small) == [twin]
    assert twin.read_bytes() != first
    (small / "notebooks" / "05_doubling.md").unlink()
    twins.twins(root=small)
    assert not twin.exists()


def test_twin_is_what_papermill_reads(small, tmp_path, warm_kernels):
    papermill = pytest.importorskip("papermill")
    twins.twins(root=small)
    twin = small / "notebooks" / "05_doubling.ipynb"
    executed = papermill.execute_notebook(
        twin, tmp_path / "out.ipynb", {"n_items": 5}, progress_bar=False
    )
    assert printed(executed) == ["10"]


def test_a_class_gets_the_exercises_and_no_solutions(tmp_path):
    written = twins.student(tmp_path)
    assert [path.stem for path in written] == building.notebooks()
    for path in written:
        source = (book.find_root() / "notebooks" / f"{path.stem}.md").read_text("utf-8")
        cells = nbformat.read(path, 4).cells
        text = "\n".join(cell.source for cell in cells)
        assert "{solution-" not in text
        assert "{exercise-" not in text
        assert text.count("### Exercise ") == source.count("{exercise-start}") > 0
        for solution in re.findall(r"\{solution-start\}.*?\n```\n(.*?)```\{sol", source, re.S):
            assert solution.strip() not in text


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"n_item": 4}, "unknown parameter 'n_item'; did you mean 'n_items'"),
        ({"n_items": "four"}, "n_items = 'four' is not of type int"),
        ({"n_items": 4}, ""),
    ],
)
def test_papermill_stops_at_a_parameter_that_the_notebook_does_not_have(
    small, given, why, warm_kernels
):
    import papermill

    twins.twins(root=small)
    path = small / "notebooks" / "05_doubling.ipynb"
    out = small / "out.ipynb"

    def run():
        papermill.execute_notebook(path, out, given, kernel_name="python3", progress_bar=False)

    if why:
        with pytest.raises(papermill.PapermillExecutionError, match=why):
            run()
    else:
        run()
        assert '"8\\n"' in out.read_text()
