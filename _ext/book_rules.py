"""Rules for every page, and the line and table about its execution.

* A glued frame with a caption is numbered as a table, not as a figure
  (jupyter-book#1585).
* An image without a description for those who cannot see it is a warning, so the build
  fails.
* What a cell shows as HTML is a table and nothing else, without styles of its own: a
  text under judgment cannot act on a page. nh3 has the last word; it reads HTML as
  browsers do.
* Vector figures are transparent and follow the dark theme; wide tables scroll by
  themselves.
* No script but the theme's and ours: what `_static/vendor` holds is loaded where it is
  used.
* A per cent sign stays with its number; a page that is no chapter numbers its figures
  from 1, an appendix after its letter.
* The search shows the page first whose title or name was asked for, and finds words
  with accents without them: "Cramer" is Cramér.
"""

from __future__ import annotations

import json
import os
import re
import unicodedata
from collections.abc import Callable
from functools import cache
from pathlib import Path

import nh3
from bs4 import BeautifulSoup, Tag
from docutils import nodes
from docutils.parsers.rst import directives
from plain_table import code, plain, plain_table
from sphinx.application import Sphinx
from sphinx.config import Config
from sphinx.environment import BuildEnvironment
from sphinx.errors import ConfigError
from sphinx.search.en import SearchEnglish
from sphinx.transforms import SphinxTransform
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective
from sphinx.writers.html5 import HTML5Translator

from rubricnb.core.results import judges

LOGGER = logging.getLogger(__name__)
# A number as a table prints it, an empty cell included: 1,234 · −0.12 · 5 % · 0.3 [0.2,
# 0.4] · NaN
NUMBER = re.compile(
    r"|[–—-]|nan|NaN|<NA>|[<>≤≥=]?\s*[-+−]?[\d.,]+\s*%?(\s*[\[(].*[\])])?(e[-+]\d+)?"
)
SENTENCE = 40  # characters; what is longer may wrap
WORDS = dict.fromkeys(("nan", "NaN", "None", "<NA>", "NaT"), "–") | {
    # the value in code and records
    "True": "yes",
    "False": "no",
    "cannot say": "inconclusive",
}
COLUMN = re.compile(r"[a-z]+(_[a-z0-9]+)+")  # of a frame, such as item_id
# an interval: on one line
BRACKETS = re.compile(r"[\[(][-+−\d][^a-zA-Z\])]*(?:inf)?[\])]")
PERCENT = re.compile(r"(?:^|(?<=[\d\])])) %(?!\w)")  # of a number: on its line
PLAYABLE = ('<div class="explorable"', '<div class="picture"')
# a judge's, say; it may wrap too
LONG_NAME = re.compile(r"[^\s,]*-[^\s,]*(?<=[^\s,]{20})(,|$)")
# All that a frame's HTML is made of, and what is added here.
TABLE_TAGS = {
    "br",
    "caption",
    "col",
    "colgroup",
    "div",
    "p",
    "table",
    "tbody",
    "td",
    "tfoot",
    "th",
    "thead",
    "tr",
}
TABLE_ATTRIBUTES = {"class", "colspan", "rowspan", "scope"}
SCROLLS = {
    "class": "table-scroll",
    "tabindex": "0",
    "role": "region",
    "aria-label": "table",
}
ACCENT = re.compile("[\u0300-\u036f]")
APPENDIX = re.compile("notebooks/([A-Z])_")
WIDE = 480  # points; what a phone cannot show whole with letters that can be read
ADDED_ATTRIBUTES = {*SCROLLS, "data-column"}


class captioned_table(nodes.figure):
    """A figure that holds a table: numbered, referenced and styled as one."""


class table_caption(nodes.caption):
    """Its caption, which stands above the table;
    a figure's is closed after all that follows.
    """


class wide_figure(nodes.General, nodes.Element):
    """Holds a figure of several panels: a phone shows a part of it and scrolls."""


class TablesAmongFigures(SphinxTransform):
    """Retag figures without an image, before Sphinx collects what is numbered."""

    default_priority = 700

    def apply(self) -> None:
        for figure in list(self.document.findall(nodes.figure)):
            if type(figure) is nodes.figure and not list(figure.findall(nodes.image)):
                table = captioned_table("", *figure.children, **figure.attributes)
                for caption in [c for c in table if isinstance(c, nodes.caption)]:
                    table.remove(caption)
                    table.insert(0, table_caption("", "", *caption.children))
                figure.replace_self(table)
                self.document.ids.update(dict.fromkeys(table["ids"], table))


class DescribedImages(SphinxPostTransform):
    """Ask for a description of every image;
    let vector figures follow the dark theme.
    """

    default_priority = 900
    formats = ("html",)

    def run(self) -> None:
        for image in list(self.document.findall(nodes.image)):
            uri = image.get("uri", "")
            if not image.get("alt", "").strip() or image["alt"] == uri:
                LOGGER.warning("image %s has no :alt: text", uri, location=image)
            if uri.endswith(".svg") and "only-light" not in image["classes"]:
                image["classes"].append("dark-light")
            if uri.endswith(".svg") and _points(Path(self.env.srcdir, uri)) > WIDE:
                image.replace_self(wide_figure("", image.deepcopy()))


def number_by_page(app: Sphinx, env: BuildEnvironment) -> list[str]:
    """Begin at 1 on every page that is no chapter, with an appendix's letter before.

    Sphinx numbers the figures of all such pages in one row.
    """
    for page, kinds in env.toc_fignumbers.items():
        letter = APPENDIX.match(page)
        for numbered in kinds.values():
            for k, (key, number) in enumerate(list(numbered.items()), 1):
                if letter:
                    numbered[key] = (letter[1], k)
                elif len(number) == 1:
                    numbered[key] = (k,)
    return []


def _points(svg: Path) -> float:
    """How wide a figure was drawn."""
    width = re.search(r'<svg[^>]*? width="([\d.]+)pt"', svg.read_text("utf-8"))
    return float(width[1]) if width else 0.0


class NumbersWithTheirUnit(SphinxPostTransform):
    """Begin no line with a per cent sign."""

    default_priority = 905
    formats = ("html",)

    def run(self) -> None:
        for text in list(self.document.findall(nodes.Text)):
            verbatim = isinstance(
                text.parent, nodes.literal | nodes.FixedTextElement | nodes.raw
            )
            if " %" in text and not verbatim:
                text.parent.replace(text, nodes.Text(PERCENT.sub("\u00a0%", text)))


class JournalTables(SphinxPostTransform):
    """Frames as HTML: no inline style, numbers to the right,
    reachable by the keyboard.
    """

    default_priority = 910
    formats = ("html",)

    def run(self) -> None:
        for raw in list(self.document.findall(nodes.raw)):
            shown = "<table" in raw.astext() or _is_output(raw)
            ours = raw.astext().startswith(PLAYABLE)  # their data are escaped
            if shown and not ours and "html" in raw.get("format", ""):
                html = journal(raw.astext())
                raw.replace_self(nodes.raw("", html, format="html"))


def _is_output(node: nodes.Node) -> bool:
    while node := node.parent:
        if "cell_output" in getattr(node, "attributes", {}).get("classes", ()):
            return True
    return False


def journal(html: str) -> str:
    """Lay out the tables in what a cell shows as HTML; show every other tag as text."""
    soup = BeautifulSoup(html, "html.parser")
    if (first := soup.find(lambda tag: tag.name != "div")) and first.name == "style":
        first.decompose()  # pandas' own
    for tag in soup.find_all(True):
        if tag.name not in TABLE_TAGS:
            tag.replace_with(str(tag))
        tag.attrs = {k: v for k, v in tag.attrs.items() if k in TABLE_ATTRIBUTES}
    for cell in soup.find_all(["th", "td"]):
        _reworded(cell)
    for table in soup.find_all("table"):
        body = [row.find_all(["th", "td"]) for row in table.select("tbody tr")]
        head = [row.find_all(["th", "td"]) for row in table.select("thead tr")]
        for index, column in enumerate(zip(*body, strict=False)):
            if all(NUMBER.fullmatch(cell.get_text(strip=True)) for cell in column):
                for cell in (
                    *column,
                    *(row[index] for row in head if index < len(row)),
                ):
                    cell["class"] = [*cell.get("class", []), "number"]
        for cell in table.find_all("td"):
            text = cell.get_text(strip=True)
            if len(text) > SENTENCE:
                cell["class"] = [*cell.get("class", []), "prose"]
            elif LONG_NAME.match(text):
                cell["class"] = [*cell.get("class", []), "name"]
        names = [cell.get_text(strip=True) for cell in head[-1]] if head else []
        if "paper says" in names:
            _stackable(table, names)
        table.wrap(soup.new_tag("div", attrs=SCROLLS))
    allowed = {"*": TABLE_ATTRIBUTES | ADDED_ATTRIBUTES}
    return nh3.clean(str(soup), tags=TABLE_TAGS, attributes=allowed)


def _reworded(cell: Tag) -> None:
    """Say in words what only a program calls by its name;
    keep what stands in brackets together.
    """
    for text in cell.find_all(string=True):
        said = WORDS.get(text.strip(), str(text))
        if cell.name == "th" and COLUMN.fullmatch(said.strip()):
            said = said.replace("_", " ")
        for slug, name in short_names().items():
            said = said.replace(slug, name)
        said = BRACKETS.sub(
            lambda found: found[0].replace(" ", "\u00a0").replace("inf", "∞"), said
        )
        if said != text:
            text.replace_with(said)


@cache
def short_names() -> dict[str, str]:
    """The short name of each recorded judge, from small to large."""
    known = judges()
    return dict(zip(known["slug"], known.get("name", known["slug"]), strict=True))


def _stackable(table: Tag, names: list[str]) -> None:
    """Let a phone show a row as a block:
    cells carry their column's name and keep their role.
    """
    table["class"] = [*table.get("class", []), "stacks"]
    table["role"] = "table"
    for row in table.find_all("tr"):
        row["role"] = "row"
        cells = row.find_all(["th", "td"])
        for cell, name in zip(cells, names, strict=True):
            cell["data-column"] = name
            cell["role"] = "columnheader" if row.parent.name == "thead" else "cell"


class ExecutionRecord(SphinxDirective):
    """The table of what was executed: notebook, day, seconds, memory, parameters.

    With ``:only: 01 05`` what these notebooks asked of the machine, for someone who
    plans a class.
    """

    option_spec = {"only": directives.unchanged_required}  # noqa: RUF012

    def run(self) -> list[nodes.Node]:
        path = Path(self.env.srcdir) / "execution.json"
        self.env.note_dependency(str(path))
        runs = json.loads(path.read_text("utf-8"))
        only = self.options.get("only", "").split()
        if unknown := set(only) - {_number(run) for run in runs}:
            raise self.error(
                f"no notebook was executed with number {', '.join(sorted(unknown))}"
            )
        runs = sorted(
            (run for run in runs if not only or _number(run) in only), key=_in(only)
        )
        columns = (
            _COLUMNS if not only else {k: _COLUMNS[k] for k in ("notebook", *_NUMBERS)}
        )
        rows = [[show(run) for show in columns.values()] for run in runs]
        right = [i for i, name in enumerate(columns) if name in _NUMBERS]
        cells = [code, *[plain] * (len(columns) - 1)]
        table = plain_table(list(columns), rows, cells, right=right)
        machines = sorted(
            {f"Python {run['python']}, {run['platform']}" for run in runs}
        )
        versions = sorted({run["version"] for run in runs})
        text = f"rubricnb {', '.join(versions)}; {'; '.join(machines)}."
        seconds = sum(run["seconds"] for run in runs)
        total = (
            f"{len(runs)} notebook{'s' * (len(runs) != 1)}, {seconds:.0f} seconds; "
            f"{text}"
        )
        return [table, nodes.paragraph("", total)]


def _in(order: list[str]) -> Callable[[dict], int]:
    return lambda run: order.index(_number(run)) if order else 0


def _number(run: dict) -> str:
    return run["stem"].split("_")[0]


def _memory(run: dict) -> str:
    return f"{run['peak_mb']:,}" if run.get("peak_mb") else "–"


def _parameters(run: dict) -> str:
    given = ", ".join(
        f"{name} = {value!r}" for name, value in run["parameters"].items()
    )
    return given or "defaults"


_NUMBERS = ("seconds", "memory, MB")
_COLUMNS: dict[str, Callable[[dict], str]] = {
    "notebook": lambda run: run["stem"],
    "executed on": lambda run: run["executed"],
    "seconds": lambda run: f"{run['seconds']:.1f}",
    "memory, MB": _memory,
    "parameters": _parameters,
}


def plain_citations(
    app: Sphinx, page: str, template: str, context: dict, doctree: nodes.document | None
) -> None:
    """docutils calls the bibliography a list without list items in it;
    a screen reader stumbles.
    """
    if "body" in context:
        context["body"] = context["body"].replace(
            '<div role="list" class="citation-list">', '<div class="citation-list">'
        )


def only_staged(app: Sphinx, config: Config) -> None:
    if os.environ.get("RUBRICNB_STAGE") != str(app.srcdir):
        raise ConfigError(
            "this book is built from a staged copy that holds the executed notebooks: "
            "run 'make book' or 'python -m tools book', not 'jupyter-book build'"
        )


def rank_search(app: Sphinx, config: Config) -> None:
    """Let our scorer rank what the search finds;
    Sphinx looks for it where it was started.
    """
    config.html_search_scorer = str(Path(__file__).with_name("search_scorer.js"))


def unaccented(text: str) -> str:
    """Take the accents off letters.

    >>> unaccented("Cramér, naïve, χ²")
    'Cramer, naive, χ²'
    """
    parts = unicodedata.normalize("NFD", text)
    return unicodedata.normalize("NFC", ACCENT.sub("", parts))


class Unaccented(SearchEnglish):
    """English as the search reads it, in the index and in the question."""

    js_splitter_code = """
function splitQuery(query) {
  return query.normalize("NFD").replace(/[\\u0300-\\u036f]/g, "").normalize("NFC")
    .split(/[^\\p{Letter}\\p{Number}_\\p{Emoji_Presentation}]+/gu)
    .filter((term) => term);
}
"""

    def split(self, text: str) -> list[str]:
        return super().split(unaccented(text))


def drop_vendored(app: Sphinx, config: Config) -> None:
    """Jupyter Book adds all that is below _static to every page;
    these load where needed.
    """
    for name in ("html_js_files", "html_css_files"):
        files = getattr(config, name)
        files[:] = [
            f
            for f in files
            if not str(f[0] if isinstance(f, tuple) else f).startswith(
                ("vendor/", "slides/", "browser/")
            )
        ]


def visit_table(translator: HTML5Translator, node: nodes.Element) -> None:
    translator.visit_figure(node)


def depart_table(translator: HTML5Translator, node: nodes.Element) -> None:
    translator.body.append("</figure>\n")


def visit_wide(translator: HTML5Translator, node: nodes.Element) -> None:
    translator.body.append(
        '<div class="figure-scroll" tabindex="0" role="region" aria-label="figure">'
    )


def depart_wide(translator: HTML5Translator, node: nodes.Element) -> None:
    translator.body.append("</div>\n")


def visit_caption(translator: HTML5Translator, node: nodes.Element) -> None:
    translator.visit_caption(node)


def depart_caption(translator: HTML5Translator, node: nodes.Element) -> None:
    translator.depart_caption(node)
    translator.body.append("</figcaption>\n")


def _caption(node: nodes.Node) -> str:
    return next((c.astext() for c in node.findall(nodes.caption)), "")


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_enumerable_node(
        captioned_table, "table", _caption, html=(visit_table, depart_table)
    )
    # Jupyter Book sets it for sphinx_comments
    app.add_config_value("comments_config", {}, "html")
    app.add_node(table_caption, html=(visit_caption, depart_caption))
    app.add_node(wide_figure, html=(visit_wide, depart_wide))
    app.add_transform(TablesAmongFigures)
    app.add_post_transform(DescribedImages)
    app.add_post_transform(NumbersWithTheirUnit)
    app.add_post_transform(JournalTables)
    app.add_directive("execution-record", ExecutionRecord)
    app.add_search_language(Unaccented)
    app.connect("html-page-context", plain_citations)
    # Sphinx numbers them first
    app.connect("env-get-updated", number_by_page, priority=900)
    app.connect("config-inited", only_staged)
    app.connect("config-inited", rank_search)
    app.connect("config-inited", drop_vendored, priority=900)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
