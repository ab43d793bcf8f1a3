"""An executed notebook as one HTML file."""

import re

import nbformat
from cells import SVG, glued
from typer.testing import CliRunner

from rubricnb import book
from tools.__main__ import app
from tools.onepage import one_page


def test_numbers_figures_and_tables_stand_where_the_text_has_them():
    cells = [
        nbformat.v4.new_markdown_cell("# A *judge*\n\n{glue:text}`n` of {glue:text}`r:.1f`."),
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


def test_a_text_under_judgment_cannot_act_on_the_page():
    bad = '<img src=x onerror="alert(1)"><script>alert(2)</script>'
    html = nbformat.v4.new_output("display_data", {"text/html": f"<table><td>{bad}</td></table>"})
    code = nbformat.v4.new_code_cell(outputs=[html])
    page = one_page(nbformat.v4.new_notebook(cells=[nbformat.v4.new_markdown_cell(bad), code]))
    assert "<script" not in page
    assert not re.search(r"<img[^>]*onerror", page)


def test_an_executed_notebook_becomes_a_page_beside_it(small, warm_kernels):
    book.execute("05", {"n_items": 21}, small / "mine.ipynb", root=small)
    done = CliRunner().invoke(app, ["page", str(small / "mine.ipynb")])
    assert done.exit_code == 0, done.output
    page = (small / "mine.html").read_text("utf-8")
    assert "<pre>42\n</pre>" in page
    assert not re.search(r'(src|href)="(?!data:)', page)
