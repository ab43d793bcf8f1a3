"""Findings to cite: every chapter's answer has the chapter's number.

The answer of ``05_position_bias`` is Finding 5.1: the block has the anchor
``finding-5-1``, the line of its judges ends with the number and leads to its entry on
the page about citing. On that page, all of it made from CITATION.cff, the executed
notebooks and the package:

```{cite-book}
```
```{cite-findings}
```
```{cite-papers}
```
```{cite-recordings}
```
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import nbformat
import yaml
from docutils import nodes
from docutils.statemachine import StringList
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.transforms import SphinxTransform
from sphinx.util.docutils import SphinxDirective

import rubricnb as rb
from rubricnb.book.notebooks import glued

ANSWER = re.compile(r"^:{3,}\{div\} answer\n(.+?)\n\n(.+?)\n\n", re.M | re.S)
GLUED = re.compile(r"\{glue:text\}`([\w-]+)(?::\w+)?`")
MAIN = re.compile(r"\*\*(.+?)\*\*", re.S)
RAW = re.compile(r"https://raw\.githubusercontent\.com/([^/]+/[^/]+)/(\w+)/?")


@dataclass(frozen=True)
class Finding:
    number: str  # 5.1
    stem: str
    title: str  # of its chapter
    says: str  # the sentence in bold
    judge: str  # recorded, live or simulated; by whom
    executed: str
    commit: str  # of its run; empty if that was not committed

    @property
    def anchor(self) -> str:
        return anchor_of(self.number)


def number_of(stem: str) -> str:
    """Return the number of a chapter's finding.

    >>> number_of("05_position_bias"), number_of("A_bias_cost")
    ('5.1', 'A.1')
    """
    return f"{stem.split('_')[0].lstrip('0')}.1"


def anchor_of(number: str) -> str:
    """Return the anchor of a finding on its page: ``finding-5-1``."""
    return f"finding-{number.replace('.', '-').lower()}"


def findings(folder: Path) -> Iterator[Finding]:
    """Yield the findings of the executed notebooks in a folder,
    in the order of their names.
    """
    for path in sorted(folder.glob("*.ipynb")):
        notebook = nbformat.read(path, 4)
        text = "\n\n".join(
            c.source for c in notebook.cells if c.cell_type == "markdown"
        )
        if answer := ANSWER.search(text):
            values = {
                name: shown.get("text/plain", "")
                for name, shown in glued(notebook).items()
            }
            says, judge = (_plain(part, values) for part in answer.groups())
            title = re.search(r"^# (.+)$", text, re.M)[1]
            run = notebook.metadata.rubricnb
            yield Finding(
                number_of(path.stem),
                path.stem,
                title,
                says,
                judge,
                str(run["executed"]),
                run.get("commit", ""),
            )


def _plain(text: str, values: dict[str, Any]) -> str:
    """Fill in what was glued and take the emphasis off;
    of a paragraph with bold, the bold.
    """
    text = (
        main[1]
        if (main := MAIN.match(text))
        else text.removesuffix(".").removesuffix(".*")
    )
    text = GLUED.sub(lambda name: "".join(values[name[1]]).strip("'\""), text)
    text = re.sub(r"(?<!\\)\*", "", text)
    return " ".join(re.sub(r"\\([\\`$*{])", r"\1", text).split())


class Numbered(SphinxTransform):
    """Number a chapter's answer, give it an anchor,
    and let the search know the chapter's name.
    """

    default_priority = 700

    def apply(self, **kwargs: object) -> None:
        folder, _, stem = self.env.docname.rpartition("/")
        if folder != "notebooks":
            return
        # A chapter is found by the words of its name too,
        # where its title is a question.
        words = ", ".join(stem.split("_")[1:])
        self.document.insert(0, nodes.meta("", name="keywords", content=words))
        number, standard = number_of(stem), self.env.get_domain("std")
        anchor = anchor_of(number)
        for answer in self.document.findall(_is_answer):
            answer["ids"].append(anchor)
            standard.note_hyperlink_target(
                anchor, self.env.docname, anchor, f"Finding {number}"
            )
            line = [child for child in answer if isinstance(child, nodes.paragraph)][
                :2
            ][-1]
            name = nodes.reference("", f"Finding {number}", refid=anchor, internal=True)
            cite = _link("how to cite", f"cite-{anchor}", self.env.docname)
            line += nodes.inline(
                "",
                "",
                nodes.Text(" · "),
                name,
                nodes.Text(", "),
                cite,
                classes=["finding"],
            )


def _link(text: str, label: str, page: str) -> nodes.Node:
    return addnodes.pending_xref(
        "",
        nodes.inline("", text),
        refdomain="std",
        reftype="ref",
        reftarget=label,
        refexplicit=True,
        refdoc=page,
        refwarn=True,
    )


def _is_answer(node: nodes.Node) -> bool:
    return isinstance(node, nodes.container) and "answer" in node["classes"]


class Citing(SphinxDirective):
    """Common part of the directives: CITATION.cff, and lines of Markdown."""

    def citation(self) -> dict[str, Any]:
        path = Path(self.env.srcdir, "CITATION.cff")
        self.env.note_dependency(str(path))
        return yaml.safe_load(path.read_text("utf-8"))

    def book(self) -> dict[str, Any]:
        return self.citation()["preferred-citation"]

    def written(self, text: str) -> list[nodes.Node]:
        node = nodes.container()
        self.state.nested_parse(StringList(text.splitlines(), "<citing>"), 0, node)
        return node.children


class CiteBook(Citing):
    def run(self) -> list[nodes.Node]:
        self.env.note_reread()  # the commit changes although no page does
        book = self.book()
        if commit := commit_of(Path(self.env.srcdir)):
            book["version"] = f"{book['version']} (commit {commit})"
        entry = bibtex(
            "rubricnb",
            author=names(book, "{{{}}}"),
            title=f"{{{book['title']}}}",
            year=book["year"],
            note=f"Version {book['version']}",
            url=book["url"],
        )
        return [nodes.paragraph("", in_words(book)), _code(entry)]


def commit_of(folder: Path) -> str:
    """Return the commit that a folder is of; empty without git."""
    command = ["git", "rev-parse", "--short=10", "HEAD"]
    try:
        done = subprocess.run(
            command, cwd=folder, capture_output=True, text=True, check=False
        )
    except FileNotFoundError:
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


class CiteFindings(Citing):
    def run(self) -> list[nodes.Node]:
        book, folder = self.book(), Path(self.env.srcdir, "notebooks")
        standard = self.env.get_domain("std")
        shown: list[nodes.Node] = []
        for path in folder.glob("*.ipynb"):
            self.env.note_dependency(str(path))
        for found in findings(folder):
            anchor = f"cite-{found.anchor}"
            standard.note_hyperlink_target(
                anchor, self.env.docname, anchor, f"Finding {found.number}"
            )
            where = _link(f"Finding {found.number}", found.anchor, self.env.docname)
            says = nodes.paragraph(
                "", "", nodes.strong("", "", where), nodes.Text(f". {found.says}")
            )
            about = nodes.paragraph("", f"{found.judge}. Executed on {found.executed}.")
            fold = '<details class="bibtex"><summary>Cite {0}</summary>'
            shown += [
                nodes.container(
                    "",
                    says,
                    about,
                    nodes.raw(
                        "", fold.format(f"Finding {found.number}"), format="html"
                    ),
                    nodes.paragraph("", finding_in_words(book, found)),
                    _code(finding_bibtex(book, found)),
                    nodes.raw("", "</details>", format="html"),
                    ids=[anchor],
                    classes=["citable"],
                )
            ]
        return shown


class CitePapers(Citing):
    def run(self) -> list[nodes.Node]:
        return self.written(
            "\n".join(f"* {in_words(p)}" for p in self.citation()["references"])
        )


class CiteRecordings(Citing):
    def run(self) -> list[nodes.Node]:
        rows = [
            f"* `{r.name}`: {r.judges}, asked by {r.asked_by}. "
            f"[Source]({_page(r.source)}), licence: {r.licence}."
            for r in rb.recordings().itertuples()
        ]
        return self.written("\n".join(rows))


def _page(source: str) -> str:
    """Return where a reader sees the files that a program loads.

    >>> _page("https://raw.githubusercontent.com/a/b/0123/data")
    'https://github.com/a/b/tree/0123/data'
    """
    return RAW.sub(r"https://github.com/\1/tree/\2/", source)


def names(work: dict[str, Any], whole: str = "{}") -> str:
    """Name the authors as BibTeX does;
    `whole` is how a name that is no person's is written.
    """
    return " and ".join(
        whole.format(a["name"])
        if "name" in a
        else f"{a['family-names']}, {a['given-names']}"
        for a in work["authors"]
    )


def in_words(work: dict[str, Any]) -> str:
    """Write one work as a line of a bibliography."""
    version = f" Version {work['version']}." if "version" in work else ""
    end = "" if work["title"].endswith("?") else "."
    who = names(work).replace(" and ", "; ")
    return f"{who} ({work['year']}). {work['title']}{end}{version} {work['url']}"


def finding_in_words(book: dict[str, Any], found: Finding) -> str:
    return (
        f"{names(book)} ({book['year']}). Finding {found.number}: “{found.says}” "
        f"{found.judge}; executed on {found.executed}. In: {book['title']} Version "
        f"{book['version']}{_at(found)}, chapter {found.number.split('.')[0]}, "
        f"“{found.title}” {_address(book, found)}"
    )


def finding_bibtex(book: dict[str, Any], found: Finding) -> str:
    return bibtex(
        f"rubricnb-{found.number}",
        author=names(book, "{{{}}}"),
        title=f"{{{found.title} (Finding {found.number})}}",
        year=book["year"],
        howpublished=f"In: {{{book['title']}}} version {book['version']}{_at(found)}",
        note=f"{found.judge}; executed on {found.executed}",
        url=_address(book, found),
        abstract=found.says,
    )


def _address(book: dict[str, Any], found: Finding) -> str:
    return f"{book['url']}/blob/{found.commit or 'main'}/notebooks/{found.stem}.md"


def _at(found: Finding) -> str:
    return f" (commit {found.commit})" if found.commit else ""


def bibtex(key: str, **fields: object) -> str:
    r"""Write an entry of type misc, which every style of BibTeX knows.

    >>> print(bibtex("a", title="{B}", note="5 %"))
    @misc{a,
      title = {{B}},
      note = {5 \%},
    }
    """
    lines = [
        f"  {name} = {{{_tex(str(value), name)}}},\n" for name, value in fields.items()
    ]
    return f"@misc{{{key},\n{''.join(lines)}}}"


def _tex(text: str, field: str) -> str:
    return text if field == "url" else re.sub(r"([%&#_$])", r"\\\1", text)


def _code(text: str) -> nodes.literal_block:
    return nodes.literal_block(text, text, language="bibtex")


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_transform(Numbered)
    app.add_directive("cite-book", CiteBook)
    app.add_directive("cite-findings", CiteFindings)
    app.add_directive("cite-papers", CitePapers)
    app.add_directive("cite-recordings", CiteRecordings)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
