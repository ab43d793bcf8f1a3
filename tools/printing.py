"""The built book as one page to print, and as one PDF file printed by Chromium."""

from __future__ import annotations

import os
import posixpath
import shutil
from copy import copy
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from rubricnb.book import notebooks as book
from tools.building import pages

_PATIENCE = 600_000  # milliseconds; typesetting a whole book takes a while
_FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--no-first-run",
]
_STYLE = """
body { background: #fff; }
main.print { max-width: 46rem; margin: 0 auto; }
article.bd-article { break-after: page; }
.bd-article :is(figure, table, pre, .admonition, .explorable) { break-inside: avoid; }
.bd-article :is(details.hide, .table-file), .headerlink, button.copybtn {
  display: none;
}
"""
_FOOTER = """\
<div style="width: 100%; font-size: 8px; text-align: center; color: #58616b;">
<span class="pageNumber"></span></div>"""


def pdf(root: Path | None = None) -> Path:
    """Print the built book, in its order of pages, into ``_build/rubricnb.pdf``.

    Code that the pages fold away is left out, and an experiment prints its replacement
    without JavaScript; links between chapters lead to places within the file.

    Raises
    ------
    BookError
        The book is not built, or there is no Chromium.

    Examples
    --------
    ``make pdf``, or

    >>> file = pdf()  # doctest: +SKIP
    """
    from playwright.sync_api import sync_playwright

    root = root or book.find_root()
    html = root / "_build" / "html"
    if not (html / "index.html").is_file():
        raise book.BookError("the book is not built: run 'make book' first")
    names = ["chromium", "chromium-browser", "google-chrome"]
    browser = os.environ.get("CHROMIUM") or next(
        filter(None, map(shutil.which, names)), None
    )
    if browser is None:
        raise book.BookError("Chromium was not found: install it, or set CHROMIUM=PATH")
    page = html / "print" / "book.html"
    page.parent.mkdir(exist_ok=True)
    page.write_text(one_page(html, pages(root)), "utf-8")
    target = root / "_build" / "rubricnb.pdf"
    with sync_playwright() as playwright:
        window = playwright.chromium.launch(
            executable_path=browser, args=_FLAGS
        ).new_page()
        window.set_default_timeout(_PATIENCE)
        window.goto(page.as_uri())
        window.evaluate("() => MathJax.startup.promise")
        # An image that waits for its reader would wait for ever;
        # and `evaluate` knows no limit.
        window.evaluate(
            "() => [...document.images].forEach(i => { i.loading = 'eager'; })"
        )
        window.wait_for_function("() => [...document.images].every(i => i.complete)")
        window.pdf(
            path=target,
            format="A4",
            outline=True,
            tagged=True,
            print_background=True,
            display_header_footer=True,
            header_template="<span></span>",
            footer_template=_FOOTER,
            margin={"top": "18mm", "bottom": "18mm", "left": "18mm", "right": "18mm"},
        )
    return target


def one_page(html: Path, pages: list[str]) -> str:
    """Join built pages into one, with ids by page and links that stay inside."""
    from bs4 import BeautifulSoup

    soups = {
        name: BeautifulSoup((html / f"{name}.html").read_text("utf-8"), "html.parser")
        for name in pages
    }
    first: Any = soups[pages[0]]
    # A page loads MathJax only if it has mathematics, and the printed book has some.
    mathematics = next(filter(None, map(_mathematics, soups.values())), [])
    for script in first.head.find_all("script"):
        script.decompose()
    for script in mathematics:
        first.head.append(copy(script))
    style = first.new_tag("style")
    style.string = _STYLE
    first.head.append(style)
    first.html["data-theme"] = "light"
    first.title.string = "How far can you trust an LLM judge?"
    main = first.new_tag("main", attrs={"class": "print bd-content"})
    for name, soup in soups.items():
        main.append(_within(soup.select_one("article.bd-article"), name, pages))
    first.body.clear()
    first.body.append(main)
    return str(first)


def _mathematics(page: Any) -> list[Any]:
    """The scripts of a page's head that set mathematics, for its folder."""
    scripts = page.head.find_all("script")
    return [
        s for s in scripts if "MathJax" in s.get_text() or "mathjax" in s.get("src", "")
    ]


def _within(article: Any, name: str, pages: list[str]) -> Any:
    for element in article.select("[id]"):
        element["id"] = _place(name, element["id"])
    article["id"] = _place(name, "")
    for fold in article.select("details.evidence"):
        fold["open"] = ""
    for link in article.select("a[href]"):
        target = urlsplit(link["href"])
        if target.scheme or target.netloc:
            continue
        path = posixpath.normpath(posixpath.join(posixpath.dirname(name), target.path))
        page = path.removesuffix(".html") if target.path else name
        if page in pages:
            link["href"] = f"#{_place(page, target.fragment)}"
        else:  # a file that the PDF does not carry
            del link["href"]
    return article


def _place(page: str, anchor: str) -> str:
    return f"{page.replace('/', '-')}--{anchor}"
