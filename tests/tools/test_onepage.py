"""An executed notebook as one HTML file."""

import re
import subprocess
import sys

import jupytext
import nbformat
import pytest
from cells import SVG, glued
from typer.testing import CliRunner

from rubricnb.book import notebooks as book
from tools.__main__ import app
from tools.onepage import one_page


def test_numbers_figures_and_tables_stand_where_the_text_has_them():
    cells = [
        nbformat.v4.new_markdown_cell(
            "# A *judge*\n\n{glue:text}`n` of {glue:text}`r:.1f`."
        ),
        nbformat.v4.new_code_cell(
            "secret()",
            outputs=[
                glued("n", text_plain="'41'"),
                glued("r", text_plain="0.26"),
                glued("fig-a", **{"image_svg+xml": SVG}),
                glued("tab-a", text_html="<table><td>7</td></table>"),
                nbformat.v4.new_output("stream", text="<b>said</b>"),
            ],
        ),
        nbformat.v4.new_markdown_cell(
            '```{glue:figure} fig-a\n:name: fig-x\n:alt: Two "bars".\n\nFirst.\n```\n\n'
            "```{glue:figure} tab-a\n:name: tab-x\n\nSecond.\n```\nAfter."
        ),
        nbformat.v4.new_code_cell("setup()", metadata={"tags": ["remove-cell"]}),
    ]
    page = one_page(nbformat.v4.new_notebook(cells=cells))
    assert "<p>41 of 0.3.</p>" in page
    order = [
        "<pre>secret()",
        "&lt;b&gt;said",
        "data:image/svg",
        "First.",
        "<td>7<",
        "Second.",
        "After.",
    ]
    places = [page.index(text) for text in order]
    assert places == sorted(places)
    assert 'alt="Two&#32;&quot;bars&quot;' in page
    assert "glue:" not in page
    assert "setup()" not in page


MARKUP = """\
(ch-x)=
# Title

:::{div} story
**Said.** See {doc}`05_position_bias`, {doc}`this <../book/own-data>` and \
{ref}`ch-rank-reversal`.
By {cite:t}`xu2026position` it is $x^2$ ({eq}`eq-flips`, {term}`ties <tie>`, \
{func}`rubricnb.plan`).
{numref}`Table %s <tab-x>` has more than {numref}`fig-05_position_bias-v`, \
as {numref}`tab-x` {cite:p}`xu2026position,li2025scoring`.
:::

$$
y = a_1
$$ (eq-y)

```{exercise-start}
:label: ex-1
```
Ask.
```{exercise-end}
```

````{admonition} Careful
:class: warning

Inside.
```{glue:md} found
```
```{csv-table}
:file: ../results/recordings/full_size_10.csv
:header-rows: 1
```
````

```{glue:figure} tab-a
:name: tab-x

Caption.
```
"""


def test_markup_of_the_book_reads_as_text_in_one_file():
    markdown = "application/papermill.record/text/markdown"
    told = nbformat.v4.new_output(
        "display_data",
        {markdown: "It *does*."},
        metadata={
            "scrapbook": {
                "name": "found",
                "mime_prefix": "application/papermill.record/",
            }
        },
    )
    table = glued("tab-a", text_html="<table><td>7</td></table>")
    cells = [
        nbformat.v4.new_markdown_cell(MARKUP),
        nbformat.v4.new_code_cell("", outputs=[told, table]),
    ]
    page = one_page(nbformat.v4.new_notebook(cells=cells))
    words = re.sub("<[^>]+>", "", page.partition("<body>")[2])
    for said in (
        "Said. See chapter 5, position bias, this and rank reversal.",
        "By Xu 2026 it is x^2 ((flips), ties, plan).",
        "Table 1 has more than Figure in chapter 5, as Table 1 (Xu 2026, Li 2025).",
        "largest gap beyond chance",
        "y = a_1",
        "Exercise",
        "Careful",
        "Inside.",
        "It does.",
        "Table 1. Caption.",
    ):
        assert said in words, said
    assert not re.search(r":::|\{[\w:-]+\}|\)=|^:\w+:", words, re.M)


@pytest.mark.parametrize(
    ("value", "line"),
    [
        ("'NaN'", "Not known from this run."),
        ("'Not asked: needs `logprobs`.'", "Not asked: needs `logprobs`."),
        (None, "Not known from this run."),
    ],
)
def test_a_paragraph_without_its_number_is_one_line(value, line):
    text = (
        "One {glue:text}`known`.\n\nIt gives {glue:text}`lost` of {glue:text}`known`, "
        "so there.\n"
    )
    text += "\n* A list: {glue:text}`lost`, and so on.\n"
    outputs = [glued("known", text_plain="7")]
    outputs += [glued("lost", text_plain=value)] if value else []
    cells = [
        nbformat.v4.new_markdown_cell(text),
        nbformat.v4.new_code_cell(outputs=outputs),
    ]
    page = one_page(nbformat.v4.new_notebook(cells=cells))
    assert "<p>One 7.</p>" in page
    assert f"<p>{line}</p>" in page
    assert f"<li>{line}</li>" in page
    assert "so there" not in page
    assert "and so on" not in page


PLAIN = """\
---
kernelspec: {display_name: Python 3, language: python, name: python3}
---
# Title

:::{div} answer
Two, says the book's judge.
:::

```{code-cell} ipython3
:tags: [parameters]

n: int = 2  # texts
```

```{code-cell} ipython3
import matplotlib.pyplot as plt
from IPython.display import Markdown
from rubricnb import say, show, tell

show("fig-a", plt.figure().add_subplot())
say(n=n)
tell("found", "It *does*." if n > 2 else "It does not.")
Markdown("Numbers on this page: *live*, `judge`")
```

::::{div} own
It has {glue:text}`n`.
::::

```{glue:md} found
```

```{glue:figure} fig-a
:name: fig-05_x-a
:alt: A line.

The caption.
```
"""


@pytest.mark.in_turn
def test_a_notebook_of_plain_papermill_gives_the_same_page(tmp_path):
    """Its figures are pixels, and nothing of rubricnb has looked at its outputs."""
    nbformat.write(jupytext.reads(PLAIN, fmt="md:myst"), tmp_path / "in.ipynb")
    command = [
        sys.executable,
        "-m",
        "papermill",
        "in.ipynb",
        "out.ipynb",
        "-p",
        "n",
        "5",
    ]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)
    page = one_page(nbformat.read(tmp_path / "out.ipynb", 4))
    assert '<img alt="A&#32;line." src="data:image/png;base64,' in page
    assert "<p><strong>Figure 1.</strong> The caption.</p>" in page
    assert "<p>It has 5.</p>" in page
    assert "<p>It <em>does</em>.</p>" in page
    assert "Numbers on this page: <em>live</em>, <code>judge</code>" in page
    assert "object&gt;" not in page
    # The run with its own parameters stands first, the book's answer is folded.
    top = page.index("Your run")
    assert page.index("</h1>") < top < page.index("n = 5")
    assert page.index("n = 5") < page.index("Numbers on this page")
    assert page.index("<p>It has 5.</p>") < page.index("<details><summary>The book")
    assert page.index("<details><summary>The book") < page.index("<p>Two, says")


def test_a_run_that_stopped_says_why_in_its_box():
    new = nbformat.v4
    mark = {"tags": ["papermill-error-cell-tag"]}
    failed = new.new_output(
        "error", traceback=["…", "\x1b[31mValueError\x1b[39m: n = 1"]
    )
    cells = [
        new.new_markdown_cell("<span>An Exception</span>", metadata=mark),
        new.new_markdown_cell("# A *judge*\n\n:::{div} own\n{glue:text}`n`\n:::"),
        new.new_code_cell("n = 5", metadata={"tags": ["injected-parameters"]}),
        new.new_code_cell(outputs=[failed]),
    ]
    page = one_page(new.new_notebook(cells=cells))
    box = page.index('<div class="own">'), page.index("<p>ValueError: n = 1</p>")
    assert page.index("</h1>") < box[0] < box[1] < page.index("<p>Not known")
    assert "An Exception" not in page


def test_a_text_under_judgment_cannot_act_on_the_page():
    bad = '<img src=x onerror="alert(1)"><script>alert(2)</script>'
    html = nbformat.v4.new_output(
        "display_data", {"text/html": f"<table><td>{bad}</td></table>"}
    )
    code = nbformat.v4.new_code_cell(outputs=[html])
    page = one_page(
        nbformat.v4.new_notebook(cells=[nbformat.v4.new_markdown_cell(bad), code])
    )
    assert "<script" not in page
    assert not re.search(r"<img[^>]*onerror", page)


@pytest.mark.in_turn
def test_an_executed_notebook_becomes_a_page_beside_it(small, warm_kernels):
    book.execute("05", {"n_items": 21}, small / "mine.ipynb", root=small)
    done = CliRunner().invoke(app, ["page", str(small / "mine.ipynb")])
    assert done.exit_code == 0, done.output
    page = (small / "mine.html").read_text("utf-8")
    assert "<pre>42\n</pre>" in page
    assert not re.search(r'(src|href)="(?!data:)', page)
