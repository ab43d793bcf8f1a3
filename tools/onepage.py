"""An executed notebook as one HTML file: its prose, numbers, figures and tables; code folded."""

from __future__ import annotations

import base64
import re
from pathlib import Path
from typing import Any

from jinja2 import Environment, StrictUndefined

from rubricnb.book import glued, plain

_FIGURE = re.compile(r"^```\{glue:figure\} (\S+)\n((?::[^\n]*\n)*)(.*?)^```$", re.M | re.S)
_NUMBER = re.compile(r"\{glue:text\}`([^`:]+)(?::([^`]*))?`")


def one_page(notebook: Any) -> str:
    """Return an executed notebook as a whole HTML document that loads nothing and runs nothing.

    Glued numbers are in the sentences, glued figures and tables above their captions. Formulas
    and references to other pages stay as the chapter's text has them.

    Examples
    --------
    >>> import nbformat
    >>> cell = nbformat.v4.new_markdown_cell("# Title")
    >>> "<h1>Title</h1>" in one_page(nbformat.v4.new_notebook(cells=[cell]))
    True
    """
    from markdown_it import MarkdownIt

    found = glued(notebook)
    markdown = MarkdownIt("commonmark", {"html": False}).enable("table")

    def number(role: re.Match[str]) -> str:
        text = found.get(role[1], {}).get("text/plain", role[0]).strip("'")
        return format(float(text), role[2]) if role[2] and role[1] in found else text

    def prose(text: str) -> list[tuple[str, str]]:
        text = _NUMBER.sub(number, text)
        parts, end = [], 0
        for figure in _FIGURE.finditer(text):
            name, options, caption = figure.groups()
            alt = re.search(r":alt: (.+)", options)
            parts += [
                ("text", markdown.render(text[end : figure.start()])),
                ("shown", _shown(found.get(name, {}), alt[1] if alt else name)),
                ("text", markdown.render(caption)),
            ]
            end = figure.end()
        return [*parts, ("text", markdown.render(text[end:]))]

    parts: list[tuple[str, str]] = []
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            parts += prose(cell.source)
        elif "remove-cell" not in cell.metadata.get("tags", []):
            parts.append(("code", cell.source))
            parts += [part for output in cell.get("outputs", []) if (part := _output(output))[1]]
    title = re.search(r"^# (.+)$", "\n".join(cell.source for cell in notebook.cells), re.M)
    template = Path(__file__).with_name("onepage.jinja").read_text("utf-8")
    engine = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True)
    return engine.from_string(template).render(title=title[1] if title else "", parts=parts)


def _output(output: Any) -> tuple[str, str]:
    if "scrapbook" in output.get("metadata", {}):  # printed at its caption
        return "shown", ""
    if "data" in output:
        rich = _shown(output.data, "output of the cell above")
        return ("shown", rich) if rich else ("said", output.data.get("text/plain", ""))
    return "said", plain(output.get("text", "") or "\n".join(output.get("traceback", [])))


def _shown(data: Any, description: str) -> str:
    """A figure as a picture, which cannot act; a table without what could."""
    import nh3

    if svg := data.get("image/svg+xml"):
        picture = base64.b64encode(svg.encode()).decode()
        alt = nh3.clean_text(description)
        return f'<img alt="{alt}" src="data:image/svg+xml;base64,{picture}">'
    return nh3.clean(data.get("text/html", ""))
