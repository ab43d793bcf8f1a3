"""Staging and building, on a book of one page and one notebook."""

import re
import subprocess
import sys

import nbformat
import pytest
import yaml
from bs4 import BeautifulSoup
from cells import change

from rubricnb.book import notebooks as book
from tools import building


def soup_of(page):
    return BeautifulSoup(page.read_text(), "html.parser")


def test_notebooks_and_pages_follow_the_table_of_contents(small):
    assert building.pages(small) == ["book/index", "notebooks/05_doubling"]
    assert building.notebooks(small) == ["05_doubling"]


def test_parameter_file_overrides_defaults_by_notebook(small, tmp_path):
    path = tmp_path / "mine.yml"
    path.write_text(
        yaml.dump(
            {
                "defaults": {"n_items": 7, "name": "a"},
                "notebooks": {"05_doubling": {"name": "b"}},
            }
        )
    )
    assert building.parameter_file(path, small) == {
        "05_doubling": {"n_items": 7, "name": "b"}
    }


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({"default": {}}, "unknown section 'default'"),
        ({"notebooks": {"06_x": {}}}, "unknown notebook '06_x'"),
        # it had another number
        ({"notebooks": {"19_doubling": {}}}, "did you mean '05_doubling'"),
        ({"defaults": {"n_item": 1}}, "unknown parameter 'n_item'"),
        ({"notebooks": {"05_doubling": {"judge": "x"}}}, "unknown parameter 'judge'"),
        ({"notebooks": {"05_doubling": {"n_items": "x"}}}, "is not of type int"),
    ],
)
def test_parameter_file_with_an_unknown_name_is_an_error(
    small, tmp_path, content, message
):
    path = tmp_path / "mine.yml"
    path.write_text(yaml.dump(content))
    with pytest.raises(ValueError, match=message):
        building.parameter_file(path, small)


@pytest.mark.slow
def test_build_executes_what_changed_and_nothing_else(small, capsys):
    page = building.build(root=small)
    assert page == small / "_build" / "html" / "index.html"
    built = small / "_build" / "html" / "notebooks" / "05_doubling.html"
    assert re.search(r"1 min to read.* executed on 20", built.read_text())
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

    building.build(root=small)
    assert "1 notebook unchanged" in capsys.readouterr().out

    params = small / "mine.yml"
    params.write_text("notebooks: {05_doubling: {n_items: 50}}")
    building.build(params, root=small)
    assert "unchanged" not in capsys.readouterr().out
    text = built.read_text()
    assert "100" in text
    assert "mine.yml" in text


@pytest.mark.in_turn
def test_build_fails_with_the_traceback_of_a_failing_notebook(small, capsys):
    change(small, "print(n_items * 2)", "raise KeyError('a judge that is not there')")
    with pytest.raises(
        book.BookError, match=r"(?s)05_doubling failed.*a judge that is not there"
    ):
        building.build(root=small)


@pytest.mark.slow
def test_build_fails_on_what_a_page_must_not_show(small):
    change(
        small,
        "print(n_items * 2)",
        "import sys\nimport matplotlib.pyplot as plt\n"
        "print('careful', file=sys.stderr)\nfig, ax = plt.subplots(figsize=(1, 1))",
    )
    for _ in range(2):  # the second build reads no page again, and must not forget
        with pytest.raises(book.BookError, match="stderr") as failure:
            building.build(root=small)
        assert "has no :alt: text" in str(failure.value)


@pytest.fixture(scope="module")
def shown(small_book, tmp_path_factory):
    """A book that was built: chapter 05 glues frames, chapter 07 shows what it has."""
    root = small_book(tmp_path_factory.mktemp("shown"))
    chapter = root / "notebooks" / "05_doubling.md"
    other = root / "notebooks" / "06_shown.md"
    other.write_text(
        chapter.read_text().replace(
            "print(n_items * 2)\n```",
            "import matplotlib.pyplot as plt\nimport pandas as pd\nimport rubricnb as "
            "rb\nrb.pages.show('fig', plt.figure().add_subplot(), size=(2, 1))\n"
            "rb.pages.show('tab', pd.DataFrame({'n': [41]}))\nrb.pages.say({'7-up': "
            "3}, n_items=2)\n```\n\nText {glue:text}`n-items` {glue:text}`7-up`.\n\n"
            "```{glue:figure} fig\n:name: fig-one\n:alt: Nothing.\n\nOne.\n```\n\n"
            "```{glue:figure} tab\n:name: tab-four\n\nTwo.\n```",
        )
    )
    (root / "book" / "behind.csv").write_text("n\n1\n")
    change(
        root,
        "print(n_items * 2)\n```",
        "import pandas as pd\nfrom myst_nb import glue\none = pd.DataFrame([['1,234', "
        "'.5'], ['a, \u2212b', '\u22122.0']], columns=['n', 'r'])\ntwo = "
        "one.set_axis(pd.MultiIndex.from_product([['fixed'], ['r', 'r']]), axis=1)\n"
        "glue('one', one, display=False)\nglue('two', two, display=False)\n```\n\nSee "
        "{numref}`tab-two`.\n\n```{glue:figure} one\n:name: tab-one\n\nOne.\n```\n\n"
        "```{glue:figure} two\n:name: tab-two\n\nTwo, $r$.\n```\n\n```{glue:figure} "
        "two\n:name: tab-three\n\nThree ({download}`CSV <../book/behind.csv>`).\n```",
    )
    with (root / "_toc.yml").open("a") as contents:
        contents.write("  - file: notebooks/06_shown\n")
    building.build(root=root)
    return root / "_build"


@pytest.mark.slow
def test_glued_frames_are_tables_with_a_number_and_a_file(shown):
    page = shown / "html" / "notebooks" / "05_doubling.html"
    assert 'std-numref">Table 2' in page.read_text()
    assert "Fig. " not in page.read_text()
    links = {
        f["id"]: f.figcaption.select("a.download")
        for f in soup_of(page).select("figure")
    }
    assert [a.get_text() for found in links.values() for a in found] == [
        "CSV of Table 1",
        "CSV of Table 2",
        "CSV",
    ]
    files = [page.parent / a["href"] for found in links.values() for a in found]
    assert files[0].read_text() == 'row,n,r\n0,1234,.5\n1,"a, −b",-2.0\n'
    assert files[1].read_text().splitlines()[0] == "row,fixed r,fixed r 2"
    assert files[2].read_text() == "n\n1\n"  # what its caption links, and no other


@pytest.mark.slow
def test_what_is_shown_stands_below_its_cell_and_in_the_book_where_its_caption_is(
    shown,
):
    executed = nbformat.read(shown / "executed" / "06_shown.ipynb", 4)
    cell = next(c for c in executed.cells if "rb.pages.show" in c.source)
    assert [{"image/svg+xml", "text/html"} & set(o.data) for o in cell.outputs] == [
        {"image/svg+xml"},
        {"text/html"},
        set(),
        set(),
    ]
    page = soup_of(shown / "html" / "notebooks" / "06_shown.html")
    assert (
        len(page.select(".bd-article img")) == len(page.select(".bd-article td")) == 1
    )
    assert page.select_one("figure img")
    assert page.select_one("figure td").get_text() == "41"
    assert "Text 2 3." in page.get_text()


@pytest.mark.in_turn
def test_a_bare_jupyter_book_build_says_what_to_run(small):

    done = subprocess.run(
        [
            sys.executable,
            "-c",
            "from jupyter_book.cli.main import main; main()",
            "build",
            small,
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode != 0
    assert "make book" in done.stderr + done.stdout


@pytest.mark.in_turn
def test_memory_is_known_of_a_kernel_that_has_to_be_killed(small):
    change(
        small,
        "print(n_items * 2)",
        "bytearray(300_000_000)\nimport atexit, time\natexit.register(time.sleep, 60)",
    )
    held = bytearray(800_000_000)  # by the parent, when it starts the kernel
    assert (
        300 < building.measured("05", {}, small).metadata["rubricnb"]["peak_mb"] < 800
    )
    del held
