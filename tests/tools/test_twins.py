"""Twins without outputs and notebooks without solutions."""

import ast
import re

import nbformat
import pytest
from cells import change

import rubricnb as rb
from rubricnb.book import notebooks as book
from rubricnb.book.checks import unseal
from tools import building, twins


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


@pytest.mark.in_turn
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
        for solution in re.findall(
            r"\{solution-start\}.*?\n```\n(.*?)```\{sol", source, re.S
        ):
            assert solution.strip() not in text


def checks_of(cell):
    """The calls of `close` in a check, unpacked."""
    packed = re.search(r'unseal\("([^"]+)"\)', cell.source)
    return [
        call
        for call in ast.walk(ast.parse(unseal(packed[1])))
        if isinstance(call, ast.Call) and ast.unparse(call.func) == "rb.checks.close"
    ]


def expressions_in(source):
    return {
        ast.unparse(node)
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.expr)
    }


@pytest.mark.in_turn
def test_no_answer_of_an_exercise_stands_in_a_class_s_notebook(tmp_path):
    """Neither what a check compares with,
    nor a line that computes it before the answer's line.
    """
    n_checks = 0
    for path in twins.student(tmp_path):
        shown = []  # code of this exercise so far, as a student sees it
        for cell in nbformat.read(path, 4).cells:
            if cell.cell_type == "markdown":
                shown = [] if "### Exercise" in cell.source else shown
                continue
            visible = cell.source.partition("exec(rb.checks.unseal(")[0]
            assert "checks.close" not in visible
            shown.append(visible)
            if visible == cell.source:
                continue
            assert "..." in "".join(shown)
            for call in checks_of(cell):
                n_checks += 1
                if not isinstance(call.args[1], ast.Constant):
                    assert ast.unparse(call.args[1]) not in expressions_in(
                        "\n".join(shown)
                    )
    assert n_checks > 70


@pytest.mark.in_turn
def test_a_packed_check_says_what_the_open_one_says(tmp_path):
    source = book.find_root() / "notebooks" / "27_results.md"
    (open_check,) = re.findall(
        r"^mine = \.\.\.\n(print\(\n.*?)```", source.read_text("utf-8"), re.M | re.S
    )
    (path,) = (p for p in twins.student(tmp_path) if p.stem == "27_results")
    (cell,) = (c for c in nbformat.read(path, 4).cells if "unseal" in c.source)
    said = []
    for mine in (..., 1 - 0.95**20, 0.95**20, 0.5):
        both = []
        for code in (open_check, cell.source.replace("mine = ...", "")):
            exec(code, {"rb": rb, "mine": mine, "print": both.append})
        assert both[0] == both[1]
        said.append(both[0].split(":")[0])
    assert said == ["Not answered", "Right.", "Not yet", "Not yet"]


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
        papermill.execute_notebook(
            path, out, given, kernel_name="python3", progress_bar=False
        )

    if why:
        with pytest.raises(papermill.PapermillExecutionError, match=why):
            run()
    else:
        run()
        assert '"8\\n"' in out.read_text()
