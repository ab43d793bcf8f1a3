"""Plain Markdown in the place of MyST: nothing raw is left, nothing else is lost."""

import re

import nbformat
import pytest

from rubricnb.book import notebooks as book
from tools import building, plain, twins

ROOT = book.find_root()
RAW = re.compile(
    r"^[`:]{3,}\{.*|\{(?:glue|cite|ref|doc|numref|term|eq|download|func|class|recorded)"
    r"\b[\w:]*\}`.*|^\([\w-]+\)=.*|^:{3,}.*|^:[\w-]+:.*|\]\{\..*",
    re.M,
)
NAMES = plain.Names(
    titles={"book/audit": "Audit and gate", "notebooks/08_how": "How many?"},
    pages={"audit": "book/audit", "fig-08-a": "notebooks/08_how"},
    numbers={"fig-08-a": "8.1", "fig-05-b": "5.2", "eq-mean": "5.1", "thm-x": "5.1"},
    sources={"xu2026": ("Xu et al.", "2026"), "li2025": ("Li and Wu", "2025")},
    url="https://code/blob/main",
    beside=["08_how"],
)


def converted(*cells):
    """The notebook of these cells: Markdown as text, code as a pair with its text."""
    made = [
        nbformat.v4.new_code_cell(cell[0], id=f"code-{k}")
        if isinstance(cell, tuple)
        else nbformat.v4.new_markdown_cell(cell, id=f"text-{k}")
        for k, cell in enumerate(cells)
    ]
    notebook = nbformat.v4.new_notebook(cells=made)
    plain.make_plain(notebook, "05_bias", NAMES)
    nbformat.validate(notebook)
    return notebook.cells


def one(text):
    (cell,) = converted(text)
    assert cell.cell_type == "markdown"
    return cell.source


def visible(cell):
    """What a reader sees of a cell before it is run."""
    if cell.cell_type == "markdown":
        return cell.source
    shown = [o.data["text/markdown"] for o in cell.outputs]
    return "\n\n".join(shown)


@pytest.mark.in_turn
@pytest.mark.parametrize("stem", building.notebooks(ROOT))
def test_no_directive_or_role_is_left(stem):
    names = plain.names_of(ROOT, building.notebooks(ROOT))
    cells = twins.student_notebook(stem, ROOT, names).cells
    text = "\n\n".join(map(visible, cells))
    assert RAW.findall(text) == []
    source = (ROOT / "notebooks" / f"{stem}.md").read_text("utf-8")
    captions = re.findall(r"^\*\*(?:Figure|Table) [\d.A-Z]+\.\*\* \S", text, re.M)
    assert len(captions) == source.count("{glue:figure}")
    assert text.count("<details>") == source.count("\n:alt: ")


@pytest.mark.parametrize(
    ("myst", "markdown"),
    [
        ("(a-label)=\n# Title\n\nText.", "# Title\n\nText."),
        ("See {doc}`08_how`.", "See [How many?](08_how.ipynb)."),
        (
            "See {doc}`this <../book/audit>`.",
            "See [this](https://code/blob/main/book/audit.md).",
        ),
        ("{ref}`audit`", "[Audit and gate](https://code/blob/main/book/audit.md)"),
        ("{numref}`Figure %s <fig-05-b>`", "Figure 5.2"),
        ("{numref}`Fig. %s <fig-08-a>`", "[Fig. 8.1](08_how.ipynb)"),
        ("{cite:p}`xu2026,li2025`", "(Xu et al., 2026; Li and Wu, 2025)"),
        ("{cite:t}`xu2026` say", "Xu et al. (2026) say"),
        ("{term}`judges <judge>` of {func}`rubricnb.plan`", "judges of `rb.plan`"),
        (
            "$$\na = b\n$$ (eq-mean)\n\n{eq}`eq-mean`",
            "$$\na = b\n\\tag{5.1}\n$$\n\n(5.1)",
        ),
        ("```{math}\n:label: eq-mean\na\n```", "$$\na\n\\tag{5.1}\n$$"),
        ("```bash\nmake {doc}`x`\n```", "```bash\nmake {doc}`x`\n```"),
        (":::{div} answer\n**Yes.**\n\n* a\n* b\n:::", "**Yes.**\n\n* a\n* b"),
        (
            ":::{admonition} Takeaway\n:class: tip\n\n* a\n:::",
            "> **Takeaway.**\n>\n> * a",
        ),
        ("```{margin} Why?\nText.\n```", "> **Why?**\n>\n> Text."),
        (
            "```{prf:theorem} Even\n:label: thm-x\n\nT.\n```",
            "> **Theorem 5.1 (Even).**\n>\n> T.",
        ),
        ("```{glue} draw\n```\n\nText.", "Text."),
        ("[As drawn.]{.static} [Play.]{.played-only} End.", "As drawn.  End."),
        (
            "`{INPUT}`, and $\\operatorname{E} x$",
            "`{INPUT}`, and $\\operatorname{E} x$",
        ),
    ],
)
def test_a_form_of_myst_has_a_plain_one(myst, markdown):
    assert one(myst) == markdown


CAPTION = "```{glue:figure} fig-b\n:name: fig-05-b\n:alt: Two lines.\nWho *wins*.\n```"


def test_a_caption_follows_the_cell_that_shows_its_figure():
    cells = converted(f"{CAPTION}\n\nText.", ("1",), ('show("fig-b", ax)',), "More.")
    assert [cell.source.partition("\n")[0] for cell in cells] == [
        "Text.",
        "1",
        'show("fig-b", ax)',
        "**Figure 5.2.** Who *wins*.",
        "More.",
    ]
    assert "<summary>The figure in words</summary>Two lines.<" in cells[3].source


def test_a_caption_that_stands_below_its_cell_stays_in_its_text():
    cells = converted(('show("fig-b", ax)',), f"Before.\n\n{CAPTION}\n\nAfter.")
    assert cells[1].source.startswith("Before.\n\n**Figure 5.2.**")
    assert len(cells) == 2


def test_a_sentence_with_a_number_of_the_run_is_a_folded_cell():
    cells = converted('A.\n\n"{glue:text}`n:.1f`" of $\\\\n$, {cite:p}`li2025`\n\nB.')
    assert [cell.cell_type for cell in cells] == ["markdown", "code", "markdown"]
    assert cells[1].metadata["jupyter"] == {"source_hidden": True}
    assert visible(cells[1]) == '"…" of $\\\\n$, (Li and Wu, 2025)'
    said = {}
    exec(
        cells[1].source.replace("import rubricnb as rb", ""),
        {"rb": type("rb", (), {"pages": type("p", (), {"fill": said.setdefault})})},
    )
    (text,) = said
    assert text == '"{glue:text}`n:.1f`" of $\\\\n$, (Li and Wu, 2025)'


def test_a_box_around_a_cell_of_code_keeps_its_title():
    cells = converted(":::{dropdown} What is inside", ("1",), "Text.\n:::")
    assert [cell.source for cell in cells] == ["**What is inside**", "1", "Text."]


def test_an_unknown_directive_is_named():
    with pytest.raises(ValueError, match=r"05_bias: no plain form .* \{video\}"):
        one("```{video} a.mp4\n```")
