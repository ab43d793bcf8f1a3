"""The commands pass on what they are given, and say in one line what was wrong with it."""

import nbformat
import pytest
from typer.testing import CliRunner

from rubricnb.cli import app

NOTEBOOK = """\
# Doubling

```{code-cell}
:tags: [parameters]

n_items: int = 3  # how many items
name: str = "x"  # a name
```

```{code-cell}
print(n_items * 2, name)
```
"""


@pytest.fixture
def clone(tmp_path, monkeypatch):
    """Stand in a clone with one notebook."""
    (tmp_path / "notebooks").mkdir()
    (tmp_path / "notebooks" / "05_doubling.md").write_text(NOTEBOOK)
    (tmp_path / "_toc.yml").write_text("root: index\nchapters: [{file: notebooks/05_doubling}]")
    (tmp_path / "_config.yml").write_text("repository: {url: https://example.org/book}")
    (tmp_path / "matplotlibrc").write_text("")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(*arguments):
    return CliRunner().invoke(app, list(arguments))


def test_execute_passes_typed_values_and_writes_here(clone):
    done = run("execute", "05", "-p", "n_items", "4", "-p", "name", "openai:gpt-4.1")
    assert done.exit_code == 0, done.output
    executed = nbformat.read(clone / "05_doubling.ipynb", 4)
    assert executed.cells[-1].outputs[0].text == "8 openai:gpt-4.1\n"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["06"], "unknown notebook '06'"),
        (["05", "-p", "n_itms", "4"], "did you mean 'n_items'"),
        (["05", "-p", "n_items", "four"], "is not of type int"),
        (["05", "-p", "n_items"], "given as -p NAME VALUE"),
        (["05", "--n_items", "4", "5"], "given as -p NAME VALUE"),
        (["05", "--output", "notebooks/05_doubling.ipynb"], "write elsewhere"),
    ],
)
def test_execute_says_what_is_wrong_in_one_line(clone, arguments, message):
    done = run("execute", *arguments)
    assert done.exit_code == 1
    assert message in done.output
    assert len(done.output.strip().splitlines()) == 1


def test_notebooks_check_names_the_twin_out_of_step(clone):
    done = run("notebooks", "--check")
    assert done.exit_code == 1
    assert "out of step: 05_doubling.ipynb" in done.output
    assert run("notebooks").exit_code == 0
    assert run("notebooks", "--check").exit_code == 0


def test_book_says_which_parameter_file_is_wrong(clone):
    (clone / "mine.yml").write_text("notebooks: {06_x: {}}")
    done = run("book", "--params", "mine.yml")
    assert done.exit_code == 1
    assert "mine.yml: unknown notebook '06_x'" in done.output
