"""Reading and executing notebooks, on a book of one page and one notebook."""

import os

import nbformat
import pytest
from cells import change, printed

from rubricnb.book import notebooks as book


def test_root_is_the_clone_one_stands_in(small, monkeypatch):
    monkeypatch.chdir(small / "notebooks")
    assert book.find_root() == small


def test_without_a_clone_the_error_says_where_to_go(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(book, "__file__", str(tmp_path / "rubricnb" / "book.py"))
    with pytest.raises(FileNotFoundError, match="in a clone of the repository"):
        book.find_root()


def test_parameters_are_read_with_type_default_and_comment(small):
    assert book.parameters("05", small) == [
        book.Parameter("n_items", "int", 3, "how many items"),
        book.Parameter("name", "str", "x", "a name"),
    ]


LINE, CELL = "n_items: int = 3  # how many items", "```{code-cell}\n"


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (LINE, "n_items = 3  # how many items", "write each line .* as 'name: type"),
        (LINE, "n_items: int = 2 + len('a')  # how many items", "a literal value"),
        (f"{CELL}print", f"{CELL}:tags: [parameters]\nprint", "2 cells are tagged"),
    ],
)
def test_parameters_cell_that_breaks_the_contract_is_named(small, old, new, message):
    change(small, old, new)
    with pytest.raises(ValueError, match=message):
        book.parameters("05_doubling", small)


@pytest.mark.parametrize(
    ("stem", "values", "message"),
    [
        (
            "05_doubling",
            {"n_itms": 4},
            r"n_itms.*did you mean 'n_items'.*There are: n_items, name",
        ),
        ("05_doubling", {"n_items": "four"}, r"n_items = 'four' is not of type int"),
        ("06_x", {}, r"'06_x'. There are: 05_doubling"),
    ],
)
def test_what_a_notebook_does_not_know_is_refused_with_what_it_knows(
    small, stem, values, message
):
    with pytest.raises(ValueError, match=message):
        book.execute(stem, values, root=small)


@pytest.mark.in_turn
@pytest.mark.skipif(
    os.name != "posix", reason="kernels are reached through Unix sockets"
)
def test_a_kernel_needs_no_port_that_another_process_may_take(small, warm_kernels):
    change(
        small,
        "print(n_items * 2)",
        "import "
        "ipykernel\nprint(ipykernel.get_connection_info(unpack=True)['transport'])",
    )
    assert printed(book.execute("05", root=small)) == ["ipc"]


def test_figures_are_vectors_whatever_backend_the_user_has_set(small, monkeypatch):
    monkeypatch.setenv("MPLBACKEND", "agg")
    change(
        small,
        "print(n_items * 2)",
        "import matplotlib.pyplot as plt\nplt.plot([1, 2]);",
    )
    outputs = [
        o
        for cell in book.execute("05", root=small).cells
        for o in cell.get("outputs", [])
    ]
    assert ["image/svg+xml" in output.get("data", {}) for output in outputs] == [True]


def test_execute_injects_parameters_and_writes_the_notebook(
    small, tmp_path, warm_kernels
):
    output = tmp_path / "out.ipynb"
    executed = book.execute("05_doubling", {"n_items": 21}, output, root=small)
    assert printed(executed) == ["42"]
    assert printed(nbformat.read(output, 4)) == ["42"]
    assert executed.metadata.rubricnb["parameters"] == {"n_items": 21}
    assert str(tmp_path) not in output.read_text()


def test_execute_leaves_no_file_beside_the_notebook(small, warm_kernels):
    change(small, "print(n_items * 2)", "open('left.txt', 'w').close()")
    before = sorted(small.rglob("*"))
    book.execute("05_doubling", root=small)
    assert sorted(small.rglob("*")) == before


def test_failing_cell_shows_its_traceback(small, warm_kernels):
    change(small, "print(n_items * 2)", "1 / (n_items - 3)")
    with pytest.raises(
        book.BookError, match=r"(?s)05_doubling failed.*ZeroDivisionError"
    ):
        book.execute("05_doubling", root=small)


def test_a_notebook_may_be_named_by_its_number_in_any_form():
    assert {
        book.find_notebook(name).stem for name in ("5", "05", "05_position_bias")
    } == {"05_position_bias"}
