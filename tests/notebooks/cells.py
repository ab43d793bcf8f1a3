"""What tests of notebooks do to a small book,
and what they read and write in its cells.
"""

import jupytext
import nbformat

from rubricnb.book import notebooks as book

SVG = '<svg xmlns="http://www.w3.org/2000/svg"/>'


def code_of(stem):
    """The code of a chapter, cell by cell."""
    notebook = jupytext.read(book.find_root() / "notebooks" / f"{stem}.md")
    return [cell.source for cell in notebook.cells if cell.cell_type == "code"]


def change(root, old, new):
    """Change the text of the small book's notebook."""
    path = root / "notebooks" / "05_doubling.md"
    path.write_text(path.read_text().replace(old, new))


def printed(notebook):
    """What the cells of an executed notebook have printed."""
    return [
        o.text.strip()
        for cell in notebook.cells
        for o in cell.get("outputs", [])
        if "text" in o
    ]


def glued(name, **data):
    """The output of a cell that glued: text_plain, text_html or image_svg+xml."""
    prefix = "application/papermill.record/"
    return nbformat.v4.new_output(
        "display_data",
        {
            f"{prefix}{kind.replace('_', '/')}": content
            for kind, content in data.items()
        },
        metadata={"scrapbook": {"name": name, "mime_prefix": prefix}},
    )
