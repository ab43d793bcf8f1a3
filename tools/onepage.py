"""An executed notebook as one HTML file, its code folded."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

import pandas as pd
from jinja2 import Environment, StrictUndefined
from markdown_it import MarkdownIt
from markdown_it.token import Token
from mdit_py_plugins.amsmath import amsmath_plugin
from mdit_py_plugins.colon_fence import colon_fence_plugin
from mdit_py_plugins.deflist import deflist_plugin
from mdit_py_plugins.dollarmath import dollarmath_plugin
from mdit_py_plugins.myst_blocks import myst_block_plugin
from mdit_py_plugins.myst_role import myst_role_plugin

from rubricnb.book.glue import glued_text, is_unknown
from rubricnb.book.notebooks import glued, plain

_DIRECTIVE = re.compile(r"\{([\w:-]+)\} *(.*)")
_OPTION = re.compile(r":([\w-]+):(?: (.*))?$")
_AIMED = re.compile(r"(.*?)\s*<([^<>]+)>$", re.S)  # words <target>
_KEY = re.compile(r"([a-z]+)(\d{4})")
_NAMED = re.compile(r":name: ((?:fig|tab)-\S+)")
_OWN = re.compile(r"^(:{3,})\{div\} own\n(.*?)\n\1$", re.M | re.S)
_BOOKS = {
    "answer": "The book's answer, for its own judges and data",
    "story": "The book's story, for its own judges and data",
}
# papermill's marks say where it stopped, the box of a run why
_SKIPPED = {"remove-cell", "papermill-error-cell-tag"}
RUN = "Numbers on this page:"  # how rubricnb.numbers_of begins
_SILENT = ("exercise-end", "solution-end", "bibliography", "tableofcontents")
_HEADED = {
    "exercise-start": "Exercise",
    "solution-start": "Solution",
    "prf:proof": "Proof",
}


def one_page(notebook: Any) -> str:
    """Return an executed notebook as one HTML document that loads and runs nothing.

    Whatever executed it: papermill, Jupyter, `rubricnb.book.notebooks`. Glued numbers
    are in the sentences, glued figures and tables above their captions. A paragraph
    with a number that is not known is one line that says so. Formulas are shown as
    they are typed.

    Examples
    --------
    >>> import nbformat
    >>> cell = nbformat.v4.new_markdown_cell("# Title")
    >>> "<h1>Title</h1>" in one_page(nbformat.v4.new_notebook(cells=[cell]))
    True
    """
    prose = _Prose(notebook)
    given = [
        cell.source
        for cell in notebook.cells
        if "injected-parameters" in cell.metadata.get("tags", [])
    ]
    prose.folds = bool(given)
    parts: list[tuple[str, str]] = []
    for cell in notebook.cells:
        if _SKIPPED & {*cell.metadata.get("tags", [])}:
            continue
        if cell.cell_type == "markdown":
            parts.append(("text", prose.html(cell.source)))
        else:
            parts.append(("code", cell.source))
            outputs = (prose.output(output) for output in cell.get("outputs", []))
            parts += [(kind, html) for kind, html in outputs if html]
    if given:
        head, end, rest = parts[0][1].partition("</h1>")
        parts[0] = ("text", head + end + prose.own_run(notebook, given[0]) + rest)
    title = re.search(r"^# (.+)$", prose.text, re.M)
    template = Path(__file__).with_name("onepage.jinja").read_text("utf-8")
    engine = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True)
    return engine.from_string(template).render(
        title=title[1] if title else "", parts=parts
    )


class _Prose:
    """The Markdown of one notebook, with what its cells glued."""

    folds = False  # whether the book's own answer and story are folded

    def __init__(self, notebook: Any) -> None:
        self.glued: Mapping[str, Mapping[str, Any]] = glued(notebook)
        self.text = "\n".join(
            c.source for c in notebook.cells if c.cell_type == "markdown"
        )
        self.numbers = dict(_numbered(_NAMED.findall(self.text)))
        self.markdown = MarkdownIt("commonmark", {"html": False}).enable("table")
        for plugin in (
            amsmath_plugin,
            colon_fence_plugin,
            deflist_plugin,
            dollarmath_plugin,
            myst_block_plugin,
            myst_role_plugin,
        ):
            self.markdown.use(plugin)
        for name in ("amsmath", "math_block", "math_block_label"):
            self.markdown.add_render_rule(name, _formula_block)
        for name in ("math_inline", "math_inline_double"):
            self.markdown.add_render_rule(name, _formula)
        for name in ("myst_target", "myst_line_comment", "myst_block_break"):
            self.markdown.add_render_rule(name, _nothing)

    def html(self, text: str) -> str:
        """Return Markdown as HTML."""
        tokens = self.markdown.parse(text)
        for token in tokens:
            if token.type == "inline":
                token.children = self._sentence(token.children or [])
            elif token.type in ("fence", "colon_fence"):
                if directive := _DIRECTIVE.match(token.info.strip()):
                    html = self._directive(directive[1], directive[2], token.content)
                    token.type, token.content = "html_block", html
                elif token.type == "colon_fence":
                    token.type, token.content = "html_block", self.html(token.content)
        return str(self.markdown.renderer.render(tokens, self.markdown.options, {}))

    def output(self, output: Any) -> tuple[str, str]:
        """Return how an output is shown, and its HTML; glued ones are in captions."""
        if "scrapbook" in output.get("metadata", {}):
            return "shown", ""
        if "data" in output:
            rich = self._shown(output.data, "output of the cell above")
            return (
                ("shown", rich) if rich else ("said", output.data.get("text/plain", ""))
            )
        return "said", plain(
            output.get("text", "") or "\n".join(output.get("traceback", []))
        )

    def own_run(self, notebook: Any, given: str) -> str:
        """Return what a reader's own run says: parameters, data, losses, its answer.

        Of one that stopped, also why.
        """
        given = re.sub(r"^(?:#.*)?\n", "", given, flags=re.M)
        outputs = [o for cell in notebook.cells for o in cell.get("outputs", [])]
        told = ["".join(o.get("data", {}).get("text/markdown", "")) for o in outputs]
        said = [text for text in told if text.startswith(RUN)]
        said += [plain(line) for o in outputs for line in o.get("traceback", [])[-1:]]
        own = [found[2] for found in _OWN.finditer(self.text)]
        said += own or ["This chapter has no one line about a judge: see its tables."]
        box = self.html("\n\n".join(said))
        return (
            '<div class="own"><p><strong>Your run</strong></p>'
            f"<pre>{escape(given)}</pre>{box}</div>"
        )

    def _sentence(self, children: Sequence[Token]) -> list[Token]:
        """Resolve a paragraph's roles; with an unknown number, say what is missing."""
        shown = []
        for token in children:
            if token.type == "myst_role":
                name, content = token.meta["name"], token.content
                if name == "glue:text":
                    text = glued_text(content, self.glued)
                    text = "NaN" if text is None else text
                    if is_unknown(text):
                        return [
                            _text(text if text != "NaN" else "Not known from this run.")
                        ]
                    shown.append(_text(text))
                else:
                    shown.append(
                        Token("html_inline", "", 0, content=self._role(name, content))
                    )
            else:
                shown.append(token)
        return shown

    def _role(self, name: str, content: str) -> str:
        aimed = _AIMED.match(content)
        words, target = (aimed[1], aimed[2]) if aimed else ("", content)
        if name == "doc":
            words = words or _chapter(target)
        elif name == "numref":
            kind = "Figure" if target.startswith("fig") else "Table"
            chapter = _chapter(target[4:]).partition(",")[0]
            number = self.numbers.get(target, f"{kind} in {chapter}")
            words = (words or f"{kind} %s").replace("%s", number[len(kind) + 1 :])
        elif name.startswith("cite"):
            words = ", ".join(map(_source, content.split(",")))
            words = words if name == "cite:t" else f"({words})"
        elif name in ("func", "class", "meth", "mod", "attr"):
            return (
                f"<code>{escape(words or target.lstrip('~').removeprefix('rubricnb.'))}"
                f"</code>"
            )
        elif name in ("math", "code"):
            return f"<code>{escape(content)}</code>"
        elif name == "eq":
            words = f"({target.removeprefix('eq-')})"
        elif name == "ref":
            words = words or re.sub(r"^(?:ch|sec|notation)-", "", target).replace(
                "-", " "
            )
        return escape(words or target)

    def _directive(self, name: str, argument: str, content: str) -> str:
        options, body = _parted(content)
        if name in _SILENT:
            return ""
        if name == "glue:figure":
            return self._figure(argument, options, body)
        if name.startswith("glue"):
            return self._shown(
                self.glued.get(argument.partition("::")[2] or argument, {}), argument
            )
        if name == "csv-table":
            file = Path(__file__).parents[1] / "notebooks" / options["file"]
            return str(pd.read_csv(file, dtype=str).to_html(index=False, na_rep=""))
        if name in ("math", "code-block", "code", "literalinclude"):
            return f"<pre>{escape(body)}</pre>"
        title = _HEADED.get(name, "" if name in ("div", "margin") else argument)
        head = f"<p><strong>{escape(title)}</strong></p>" if title else ""
        kind = argument if name == "div" else name.replace(":", "-")
        if self.folds and kind in _BOOKS:
            return (
                f"<details><summary>{_BOOKS[kind]}</summary>{self.html(body)}</details>"
            )
        return f'<div class="{escape(kind)}">{head}{self.html(body)}</div>'

    def _figure(self, name: str, options: Mapping[str, str], caption: str) -> str:
        number = self.numbers.get(options.get("name", ""), "")
        shown = self._shown(self.glued.get(name, {}), options.get("alt", name))
        head = f"**{number}.** " if number else ""
        missing = (
            "" if shown else "<p>Not shown: this run made no such figure or table.</p>"
        )
        return (
            f'<figure><div class="shown">{shown}{missing}</div>'
            f"<figcaption>{self.html(head + caption)}</figcaption></figure>"
        )

    def _shown(self, data: Mapping[str, Any], description: str) -> str:
        """A figure as a picture, a table without what could act, Markdown as text."""
        import nh3

        alt = nh3.clean_text(description)
        if svg := "".join(data.get("image/svg+xml", "")):
            picture = base64.b64encode(svg.encode()).decode()
            return f'<img alt="{alt}" src="data:image/svg+xml;base64,{picture}">'
        for kind in ("image/png", "image/jpeg"):
            if picture := "".join("".join(data.get(kind, "")).split()):
                return f'<img alt="{alt}" src="data:{kind};base64,{picture}">'
        if markdown := "".join(data.get("text/markdown", "")):
            return self.html(markdown)
        return str(nh3.clean("".join(data.get("text/html", ""))))


def _parted(content: str) -> tuple[dict[str, str], str]:
    """Part a directive's options from its content."""
    lines, options = content.splitlines(), dict[str, str]()
    while lines and (option := _OPTION.match(lines[0])):
        options[option[1]] = option[2] or ""
        lines.pop(0)
    return options, "\n".join(lines).strip("\n")


def _numbered(names: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Number figures and tables in the order of the page.

    >>> dict(_numbered(["fig-a", "tab-b", "fig-c"]))
    {'fig-a': 'Figure 1', 'tab-b': 'Table 1', 'fig-c': 'Figure 2'}
    """
    counts = {"Figure": 0, "Table": 0}
    for name in names:
        kind = "Figure" if name.startswith("fig") else "Table"
        counts[kind] += 1
        yield name, f"{kind} {counts[kind]}"


def _chapter(path: str) -> str:
    """Name a page of the book in words.

    >>> _chapter("05_position_bias"), _chapter("../book/own-data")
    ('chapter 5, position bias', 'own data')
    """
    number, _, words = Path(path).stem.partition("_")
    return (
        f"chapter {number.lstrip('0')}, {words.replace('_', ' ')}"
        if words
        else (number.replace("-", " "))
    )


def _source(key: str) -> str:
    """Name a source by its key.

    >>> _source("xu2026position"), _source("other")
    ('Xu 2026', 'other')
    """
    found = _KEY.match(key.strip())
    return f"{found[1].title()} {found[2]}" if found else key.strip()


def _text(content: str) -> Token:
    return Token("text", "", 0, content=content)


def _formula(renderer: Any, tokens: Sequence[Token], index: int, *_: Any) -> str:
    return f"<code>{escape(tokens[index].content)}</code>"


def _formula_block(renderer: Any, tokens: Sequence[Token], index: int, *_: Any) -> str:
    return f"<pre>{escape(tokens[index].content.strip())}</pre>"


def _nothing(*_: Any) -> str:
    return ""
