"""Executing, staging and building, on a book of one page and one notebook."""

import os
import re
import shutil
import subprocess
import sys

import nbformat
import pytest
import yaml
from bs4 import BeautifulSoup

from rubricnb import book

ROOT = book.find_root()

NOTEBOOK = """\
# Doubling

```{code-cell}
:tags: [parameters]

n_items: int = 3  # how many items
name: str = "x"  # a name
```

```{code-cell}
print(n_items * 2)
```
"""


@pytest.fixture
def small(tmp_path):
    """A book of our machinery, with one prose page and one notebook."""
    for name in ("_static", "_ext"):
        shutil.copytree(ROOT / name, tmp_path / name)
    shutil.copy(ROOT / "_config.yml", tmp_path)
    (tmp_path / "notebooks").mkdir()
    (tmp_path / "notebooks" / "05_doubling.md").write_text(NOTEBOOK)
    (tmp_path / "book").mkdir()
    (tmp_path / "book" / "index.md").write_text(
        "# Home\n\nOne page, $x^2$.\n\n```{execution-record}\n```\n\n"
        "```{execution-record}\n:only: 05\n```\n"
    )
    (tmp_path / "book" / "references.bib").write_text("")
    (tmp_path / "_toc.yml").write_text(
        "format: jb-book\nroot: book/index\nchapters:\n  - file: notebooks/05_doubling\n"
    )
    return tmp_path


def change(root, old, new):
    path = root / "notebooks" / "05_doubling.md"
    path.write_text(path.read_text().replace(old, new))


def soup_of(page):
    return BeautifulSoup(page.read_text(), "html.parser")


def printed(notebook):
    return [
        o.text.strip() for cell in notebook.cells for o in cell.get("outputs", []) if "text" in o
    ]


def test_notebooks_and_pages_follow_the_table_of_contents(small):
    assert book.pages(small) == ["book/index", "notebooks/05_doubling"]
    assert book.notebooks(small) == ["05_doubling"]


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


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("n_items = 3  # how many items", "write 'name: type = value"),
        ("n_items: int = 3", "trailing comment"),
        ("n_items: int = 3  # how many; 0 = all", "no '=' in a comment"),
        ("n_items: int = 2 + len('a')  # how many items", "derived value"),
    ],
)
def test_parameters_cell_that_breaks_the_contract_is_named(small, line, message):
    change(small, "n_items: int = 3  # how many items", line)
    with pytest.raises(ValueError, match=message):
        book.parameters("05_doubling", small)


@pytest.mark.skipif(os.name != "posix", reason="kernels are reached through Unix sockets")
def test_a_kernel_needs_no_port_that_another_process_may_take(small):
    change(
        small,
        "print(n_items * 2)",
        "import ipykernel\nprint(ipykernel.get_connection_info(unpack=True)['transport'])",
    )
    assert printed(book.execute("05", root=small)) == ["ipc"]


def test_memory_is_known_of_a_kernel_that_has_to_be_killed(small):
    change(
        small,
        "print(n_items * 2)",
        "bytearray(300_000_000)\nimport atexit, time\natexit.register(time.sleep, 60)",
    )
    assert 300 < book.execute("05", root=small).metadata["rubricnb"]["peak_mb"] < 1000


def test_figures_are_vectors_whatever_backend_the_user_has_set(small, monkeypatch):
    monkeypatch.setenv("MPLBACKEND", "agg")
    change(small, "print(n_items * 2)", "import matplotlib.pyplot as plt\nplt.plot([1, 2]);")
    outputs = [o for cell in book.execute("05", root=small).cells for o in cell.get("outputs", [])]
    assert ["image/svg+xml" in output.get("data", {}) for output in outputs] == [True]


def test_two_parameters_cells_are_an_error(small):
    change(small, "```{code-cell}\nprint", "```{code-cell}\n:tags: [parameters]\nprint")
    with pytest.raises(ValueError, match="2 cells are tagged"):
        book.parameters("05_doubling", small)


def test_execute_injects_parameters_and_writes_the_notebook(small, tmp_path):
    output = tmp_path / "out.ipynb"
    executed = book.execute("05_doubling", {"n_items": 21}, output, root=small)
    assert printed(executed) == ["42"]
    assert printed(nbformat.read(output, 4)) == ["42"]
    assert executed.metadata.rubricnb["parameters"] == {"n_items": 21}
    assert str(tmp_path) not in output.read_text()


def test_execute_leaves_no_file_beside_the_notebook(small):
    change(small, "print(n_items * 2)", "open('left.txt', 'w').close()")
    before = sorted(small.rglob("*"))
    book.execute("05_doubling", root=small)
    assert sorted(small.rglob("*")) == before


def test_unknown_parameter_lists_the_known_ones(small):
    with pytest.raises(ValueError, match=r"n_itms.*did you mean 'n_items'.*known: n_items, name"):
        book.execute("05_doubling", {"n_itms": 4}, root=small)


def test_value_of_another_type_is_an_error(small):
    with pytest.raises(ValueError, match=r"n_items = 'four' is not of type int"):
        book.execute("05_doubling", {"n_items": "four"}, root=small)


def test_unknown_notebook_lists_the_known_ones(small):
    with pytest.raises(ValueError, match=r"'06_x'; known: 05_doubling"):
        book.execute("06_x", root=small)


def test_failing_cell_shows_its_traceback(small):
    change(small, "print(n_items * 2)", "1 / (n_items - 3)")
    with pytest.raises(book.BookError, match=r"(?s)05_doubling failed.*ZeroDivisionError"):
        book.execute("05_doubling", root=small)


def test_parameter_file_overrides_defaults_by_notebook(small, tmp_path):
    path = tmp_path / "mine.yml"
    path.write_text(
        yaml.dump(
            {"defaults": {"n_items": 7, "name": "a"}, "notebooks": {"05_doubling": {"name": "b"}}}
        )
    )
    assert book.parameter_file(path, small) == {"05_doubling": {"n_items": 7, "name": "b"}}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({"default": {}}, "unknown section 'default'"),
        ({"notebooks": {"06_x": {}}}, "unknown notebook '06_x'"),
        ({"defaults": {"n_item": 1}}, "unknown parameter 'n_item'"),
        ({"notebooks": {"05_doubling": {"judge": "x"}}}, "unknown parameter 'judge'"),
        ({"notebooks": {"05_doubling": {"n_items": "x"}}}, "is not of type int"),
    ],
)
def test_parameter_file_with_an_unknown_name_is_an_error(small, tmp_path, content, message):
    path = tmp_path / "mine.yml"
    path.write_text(yaml.dump(content))
    with pytest.raises(ValueError, match=message):
        book.parameter_file(path, small)


def test_twins_are_written_once_and_say_when_out_of_step(small):
    twin = small / "notebooks" / "05_doubling.ipynb"
    assert book.twins(check=True, root=small) == [twin]
    assert not twin.exists()
    assert book.twins(root=small) == [twin]
    assert book.twins(check=True, root=small) == []
    first = twin.read_bytes()
    change(small, "n_items * 2", "n_items * 3")
    assert book.twins(root=small) == [twin]
    assert twin.read_bytes() != first
    (small / "notebooks" / "05_doubling.md").unlink()
    book.twins(root=small)
    assert not twin.exists()


def test_twin_is_what_papermill_reads(small, tmp_path):
    papermill = pytest.importorskip("papermill")
    book.twins(root=small)
    twin = small / "notebooks" / "05_doubling.ipynb"
    executed = papermill.execute_notebook(
        twin, tmp_path / "out.ipynb", {"n_items": 5}, progress_bar=False
    )
    assert printed(executed) == ["10"]


def test_build_executes_what_changed_and_nothing_else(small, capsys):
    page = book.build(root=small)
    assert page == small / "_build" / "html" / "index.html"
    built = small / "_build" / "html" / "notebooks" / "05_doubling.html"
    assert "Executed on" in built.read_text()
    record = small / "_build" / "html" / "book" / "index.html"
    rows = [row.get_text("|", strip=True) for row in soup_of(record).select("tr")]
    assert [row.split("|") for row in rows[::2]] == [
        ["notebook", "executed on", "seconds", "memory, MB", "parameters"],
        ["notebook", "seconds", "memory, MB"],
    ]
    assert re.fullmatch(r"05_doubling\|\d+\.\d\|\d+", rows[3])
    assert 20 < int(rows[3].split("|")[-1]) < 1000  # a kernel that has imported nothing
    assert not list((small / "_build" / "stage" / "notebooks").glob("*.md"))
    capsys.readouterr()

    book.build(root=small)
    assert "1 notebook unchanged" in capsys.readouterr().out

    params = small / "mine.yml"
    params.write_text("notebooks: {05_doubling: {n_items: 50}}")
    book.build(params, root=small)
    assert "unchanged" not in capsys.readouterr().out
    text = built.read_text()
    assert "100" in text
    assert "mine.yml" in text


def test_build_fails_with_the_traceback_of_a_failing_notebook(small, capsys):
    change(small, "print(n_items * 2)", "raise KeyError('a judge that is not there')")
    with pytest.raises(book.BookError, match=r"(?s)05_doubling failed.*a judge that is not there"):
        book.build(root=small)


def test_build_fails_on_what_a_page_must_not_show(small):
    change(
        small,
        "print(n_items * 2)",
        "import sys\nimport matplotlib.pyplot as plt\n"
        "print('careful', file=sys.stderr)\nfig, ax = plt.subplots(figsize=(1, 1))",
    )
    for _ in range(2):  # the second build reads no page again, and must not forget
        with pytest.raises(book.BookError, match="stderr") as failure:
            book.build(root=small)
        assert "has no :alt: text" in str(failure.value)


def test_glued_frames_are_tables_with_a_number_and_a_file(small):
    (small / "book" / "behind.csv").write_text("n\n1\n")
    change(
        small,
        "print(n_items * 2)\n```",
        "import pandas as pd\nfrom myst_nb import glue\n"
        "one = pd.DataFrame([['1,234', '.5'], ['a, \u2212b', '\u22122.0']], columns=['n', 'r'])\n"
        "two = one.set_axis(pd.MultiIndex.from_product([['fixed'], ['r', 'r']]), axis=1)\n"
        "glue('one', one, display=False)\nglue('two', two, display=False)\n```\n\n"
        "See {numref}`tab-two`.\n\n"
        "```{glue:figure} one\n:name: tab-one\n\nOne.\n```\n\n"
        "```{glue:figure} two\n:name: tab-two\n\nTwo, $r$.\n```\n\n"
        "```{glue:figure} two\n:name: tab-three\n\n"
        "Three ({download}`CSV <../book/behind.csv>`).\n```",
    )
    book.build(root=small)
    page = small / "_build" / "html" / "notebooks" / "05_doubling.html"
    assert 'std-numref">Table 2' in page.read_text()
    assert "Fig. " not in page.read_text()
    links = {f["id"]: f.figcaption.select("a.download") for f in soup_of(page).select("figure")}
    assert [a.get_text() for found in links.values() for a in found] == [
        "CSV of Table 1", "CSV of Table 2", "CSV",
    ]  # fmt: skip
    files = [page.parent / a["href"] for found in links.values() for a in found]
    assert files[0].read_text() == 'row,n,r\n0,1234,.5\n1,"a, −b",-2.0\n'
    assert files[1].read_text().splitlines()[0] == "row,fixed r,fixed r 2"
    assert files[2].read_text() == "n\n1\n"  # what its caption links, and no other


def test_what_is_shown_stands_below_its_cell_and_in_the_book_where_its_caption_is(small):
    change(
        small,
        "print(n_items * 2)\n```",
        "import matplotlib.pyplot as plt\nimport pandas as pd\nimport rubricnb as rb\n"
        "rb.pages.show('fig', plt.figure().add_subplot(), size=(2, 1))\n"
        "rb.pages.show('tab', pd.DataFrame({'n': [41]}))\n"
        "rb.pages.say({'7-up': 3}, n_items=2)\n```\n\n"
        "Text {glue:text}`n-items` {glue:text}`7-up`.\n\n"
        "```{glue:figure} fig\n:name: fig-one\n:alt: Nothing.\n\nOne.\n```\n\n"
        "```{glue:figure} tab\n:name: tab-one\n\nTwo.\n```",
    )
    cell = next(c for c in book.execute("05", root=small).cells if "rb.pages.show" in c.source)
    assert [{"image/svg+xml", "text/html"} & set(o.data) for o in cell.outputs] == [
        {"image/svg+xml"}, {"text/html"}, set(), set(),
    ]  # fmt: skip
    book.build(root=small)
    page = soup_of(small / "_build" / "html" / "notebooks" / "05_doubling.html")
    assert len(page.select(".bd-article img")) == len(page.select(".bd-article td")) == 1
    assert page.select_one("figure img")
    assert page.select_one("figure td").get_text() == "41"
    assert "Text 2 3." in page.get_text()


def test_a_bare_jupyter_book_build_says_what_to_run(small):

    done = subprocess.run(
        [sys.executable, "-c", "from jupyter_book.cli.main import main; main()", "build", small],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode != 0
    assert "make book" in done.stderr + done.stdout


def test_a_class_gets_the_exercises_and_no_solutions(tmp_path):
    written = book.student(tmp_path)
    assert [path.stem for path in written] == book.notebooks()
    for path in written:
        source = (book.find_root() / "notebooks" / f"{path.stem}.md").read_text("utf-8")
        cells = nbformat.read(path, 4).cells
        text = "\n".join(cell.source for cell in cells)
        assert "{solution-" not in text
        assert "{exercise-" not in text
        assert text.count("### Exercise ") == source.count("{exercise-start}") > 0
        for solution in re.findall(r"\{solution-start\}.*?\n```\n(.*?)```\{sol", source, re.S):
            assert solution.strip() not in text


def test_a_notebook_may_be_named_by_its_number_in_any_form():
    assert {book.find_notebook(name).stem for name in ("5", "05", "05_position_bias")} == {
        "05_position_bias"
    }


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"n_item": 4}, "unknown parameter 'n_item'; did you mean 'n_items'"),
        ({"n_items": "four"}, "n_items = 'four' is not of type int"),
        ({"n_items": 4}, ""),
    ],
)
def test_papermill_stops_at_a_parameter_that_the_notebook_does_not_have(small, given, why):
    import papermill

    book.twins(root=small)
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
