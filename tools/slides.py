"""Slides for a class and parts of the book, with executed figures and numbers.

A deck is ``slides/NAME.md``: slides in Markdown between lines of ``---``; what follows
a line ``Note:`` is for the speaker (key S). ``{{ figure(STEM, NAME) }}`` and ``{{
value(STEM, NAME) }}`` take what the notebook glued under that name, so a slide never
says what no run has shown.
"""

from __future__ import annotations

import base64
import re
from ast import literal_eval
from collections.abc import Mapping
from html import escape
from pathlib import Path
from typing import Any

from rubricnb.book import notebooks as book


def slides(executed: Mapping[str, Any], root: Path, folder: Path) -> list[Path]:
    """Write every deck of a clone as one HTML page that needs no network.

    Parameters
    ----------
    executed
        Stem → executed notebook.
    root
        The clone.
    folder
        Where to; the book's ``_static`` is beside it.

    Returns
    -------
    list of pathlib.Path
        The pages.

    Raises
    ------
    ValueError
        A slide asks for something that no notebook has glued.
    """
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for source in sorted((root / "slides").glob("*.md")):
        target = folder / f"{source.stem}.html"
        target.write_text(
            deck(source.read_text("utf-8"), executed, source.name), "utf-8"
        )
        written.append(target)
    return written


def deck(text: str, executed: Mapping[str, Any], name: str = "deck") -> str:
    r"""Turn one deck's text into its page.

    Examples
    --------
    >>> page = deck("# Judges\n\n---\n\n- one\n\nNote: slowly", {})
    >>> page.count("<section>"), "<h1>Judges</h1>" in page
    (2, True)
    >>> '<aside class="notes">' in page
    True
    >>> deck("{{ value('05_position_bias', 'n') }}", {}, "a.md")
    Traceback (most recent call last):
    ...
    ValueError: a.md: no executed notebook '05_position_bias'
    """
    from jinja2 import Environment, FileSystemLoader, StrictUndefined
    from markdown_it import MarkdownIt
    from mdit_py_plugins.dollarmath import dollarmath_plugin

    def glued(stem: str, what: str) -> Any:
        if stem not in executed:
            raise ValueError(f"{name}: no executed notebook {stem!r}")
        if found := book.glued(executed[stem]).get(what):
            return found
        raise ValueError(f"{name}: {stem} does not glue {what!r}")

    def value(stem: str, what: str, form: str = "") -> str:
        shown = glued(stem, what)["text/plain"]
        if shown[:1] in ("'", '"'):
            shown = literal_eval(shown)  # a text, as Python writes it
        return format(float(shown), form) if form else escape(shown)

    def figure(stem: str, what: str) -> str:
        picture = base64.b64encode(glued(stem, what)["image/svg+xml"].encode()).decode()
        alt = escape(_description(executed[stem], what))
        return f'<img alt="{alt}" src="data:image/svg+xml;base64,{picture}">'

    engine = Environment(
        undefined=StrictUndefined, loader=FileSystemLoader(Path(__file__).parent)
    )
    filled = engine.from_string(text).render(value=value, figure=figure)
    markdown = MarkdownIt("commonmark", {"typographer": False}).enable("table")
    markdown.use(dollarmath_plugin, renderer=_mathematics)
    parts = [
        part.partition("\nNote:") for part in re.split(r"^---$", filled, flags=re.M)
    ]
    title = re.search(r"^# (.+)$", filled, re.M)
    return engine.get_template("deck.html.jinja").render(
        title=title[1] if title else name,
        slides=[
            (markdown.render(body), markdown.render(notes)) for body, _, notes in parts
        ],
    )


def _description(notebook: Any, figure: str) -> str:
    """The alternative text that the chapter gives the figure."""
    fence = re.compile(
        rf"^```{{glue:figure}} {re.escape(figure)}\n(?::.*\n)*?:alt: (.+)$", re.M
    )
    for cell in notebook.cells:
        if found := fence.search(cell.source):
            return found[1]
    raise ValueError(f"no alternative text for the figure {figure!r}")


def _mathematics(content: str, options: Mapping[str, Any]) -> str:
    left, right = ("\\[", "\\]") if options.get("display_mode") else ("\\(", "\\)")
    return f"{left}{escape(content)}{right}"
