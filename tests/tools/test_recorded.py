"""Recorded numbers: what answers and stories print, whoever executes a chapter."""

import nbformat
import pytest

from rubricnb.book import notebooks as book
from tools import building, recorded

CHAPTER = """\
# Does it?

:::{div} answer
**Qwen 1.5B does in {recorded}`share:.0%` of {recorded}`n-texts` texts.**
:::

```{code-cell} ipython3
:tags: [parameters]

n: int = 4  # texts
```

```{code-cell} ipython3
from rubricnb import say

say(share=1 / n, n_texts=f"{n}")
```
"""


@pytest.fixture
def clone(tmp_path):
    for name, text in {
        "_toc.yml": "root: book/index\nchapters: [file: notebooks/05_x]\n",
        "_config.yml": "",
        "notebooks/05_x.md": CHAPTER,
        "book/recorded.csv": "chapter,name,text\n04_w,a,1\n",
    }.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


def prose(notebook):
    return next(cell.source for cell in notebook.cells if cell.cell_type == "markdown")


@pytest.mark.in_turn
def test_a_run_with_other_parameters_prints_the_recorded_numbers(clone):
    assert list(recorded.record(root=clone)) == []  # nothing stood there before
    assert book.recorded_numbers(clone) == {
        "04_w": {"a": "1"},
        "05_x": {"share:.0%": "25%", "n-texts": "4"},
    }
    executed = book.execute("05", {"n": 10}, root=clone)
    assert "does in 25% of 4 texts" in prose(executed)
    assert book.glued(executed)["n-texts"]["text/plain"] == "'10'"


@pytest.mark.in_turn
def test_a_changed_number_is_shown_with_its_sentence_and_stops_the_book(clone):
    [*recorded.record(root=clone)]
    path = clone / "notebooks/05_x.md"
    path.write_text(CHAPTER.replace("= 4 ", "= 8 "))
    executed = book.execute("05", root=clone)
    with pytest.raises(
        book.BookError, match=r"'25%', and is '12%' now\n.*'4'.*\n.*tools record 05"
    ):
        building._check_recorded({"05_x": executed}, clone)
    (change,) = recorded.record(["05"], root=clone)
    assert "- :::{div} answer\n**Qwen 1.5B does in 25% of 4 texts" in change
    assert "+ :::{div} answer\n**Qwen 1.5B does in 12% of 8 texts" in change
    building._check_recorded({"05_x": executed}, clone)


@pytest.mark.in_turn
@pytest.mark.parametrize(
    ("cell", "said"),
    [
        ("say(share=1 / n)", "n-texts.* is not glued"),
        ("say(share=1, n_texts='NaN')", "Not known"),
    ],
)
def test_a_number_that_is_missing_or_unknown_is_not_recorded(clone, cell, said):
    path = clone / "notebooks/05_x.md"
    path.write_text(CHAPTER.replace('say(share=1 / n, n_texts=f"{n}")', cell))
    with pytest.raises(ValueError, match=said):
        [*recorded.record(["05"], root=clone)]


def test_a_recorded_text_is_no_markup():
    text = book.with_recorded(
        "{recorded}`a`, {recorded}`b`", {"a": "$2 or $3", "b": "*<{`"}
    )
    assert text == r"\$2 or \$3, \*<\{\`"
    assert nbformat.v4.new_markdown_cell(text)
