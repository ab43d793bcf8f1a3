"""A chapter's MyST as the plain Markdown that every Jupyter front end shows.

Jupyter shows neither roles nor directives. References become names and links, captions
a line below their figure, boxes quotations. A paragraph with numbers of the run becomes
a cell that fills them in (`rubricnb.book.tables.fill`).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count, groupby
from pathlib import Path, PurePosixPath
from typing import Any

import nbformat
import yaml

from rubricnb.book.tables import filled

_FENCE = re.compile(r"^(`{3,}|:{3,})(?:\{([\w:-]+)\} *(.*))?(\S*)$")
_OPTION = re.compile(r":([\w-]+):(?: +(.*))?$")
_ROLE = re.compile(
    r"\{(cite(?::[pt])?|class|doc|download|eq|func|meth|mod|attr|math|numref|prf:ref|"
    r"ref|term)\}`([^`]+)`"
)
_AIMED = re.compile(r"(.*?)\s*<([^<>]+)>$", re.S)  # words <target>
_TARGET = re.compile(r"^\(([\w-]+)\)=\n", re.M)
_NAMED = re.compile(r"^:name: ((?:fig|tab)-\S+)", re.M)
_LABELLED = re.compile(r"^:label: (eq-\S+)|^\$\$ *\((eq-[\w-]+)\)", re.M)
_THEOREM = re.compile(r"\{prf:theorem\}.*\n:label: (\S+)")
_EXERCISE = re.compile(r"\{exercise-start\}.*\n:label: (\S+)")
_ENTRY = re.compile(r"^@\w+\{([\w-]+),(.*?)^\}", re.M | re.S)
_ATTRIBUTED = re.compile(r"\[([^\[\]]*)\]\{\.([\w-]+)\}")
_OF_RUN = re.compile(r"\{glue:text\}`")


@dataclass(frozen=True)
class Names:
    """What the roles of a chapter print: names, numbers and links of the whole book.

    Attributes
    ----------
    titles
        Page or label → title.
    pages
        Label → the page that has it.
    numbers
        Label of a figure, a table, an equation, a theorem or an exercise → its number.
    sources
        Key of a cited paper → authors and year.
    url
        Of the book's files.
    beside
        Stems of the notebooks that are in the same folder.
    """

    titles: Mapping[str, str]
    pages: Mapping[str, str]
    numbers: Mapping[str, str]
    sources: Mapping[str, tuple[str, str]]
    url: str
    beside: Collection[str]

    def link(self, words: str, page: str) -> str:
        """Return a link to a page: a notebook beside this one, else the book's file."""
        stem = page.rpartition("/")[2]
        if page.startswith("notebooks/") and stem in self.beside:
            return f"[{words}]({stem}.ipynb)"
        return f"[{words}]({self.url}/{page}.md)"


def names_of(root: Path, beside: Collection[str]) -> Names:
    """Read the names that chapters refer to.

    Examples
    --------
    >>> from rubricnb.book.notebooks import find_root
    >>> names = names_of(find_root(), ["05_position_bias"])
    >>> names.sources["xu2026position"], names.pages["teaching"]
    (('Xu et al.', '2026, v2'), 'book/teaching')
    """
    titles, pages, numbers = dict[str, str](), dict[str, str](), dict[str, str]()
    for path in (*root.glob("book/**/*.md"), *root.glob("notebooks/*.md")):
        page, text = path.relative_to(root).with_suffix("").as_posix(), path.read_text()
        title = re.search(r"^# (.+)$", text, re.M)
        titles[page] = _unmarked(title[1]) if title else path.stem
        pages |= dict.fromkeys(map("".join, _LABELLED.findall(text)), page)
        for label in _TARGET.finditer(text):
            heading = re.match(r"(?:\(.*\)=\n)*#+ (.+)", text[label.end() :])
            titles[label[1]] = _unmarked(heading[1]) if heading else titles[page]
            pages[label[1]] = page
        if page.startswith("notebooks/"):
            numbers |= _numbered(text, path.stem)
            numbers[f"finding-{_prefix(path.stem)}1".replace(".", "-").lower()] = (
                f"{_prefix(path.stem)}1"
            )
            pages |= dict.fromkeys(numbers.keys() - pages.keys(), page)
    config = yaml.safe_load((root / "_config.yml").read_text("utf-8"))["repository"]
    bibliography = (root / "book" / "references.bib").read_text("utf-8")
    sources = {key: _source(entry) for key, entry in _ENTRY.findall(bibliography)}
    url = f"{config['url']}/blob/{config['branch']}"
    return Names(titles, pages, numbers, sources, url, beside)


def make_plain(notebook: nbformat.NotebookNode, stem: str, names: Names) -> None:
    """Put plain Markdown in the place of a notebook's MyST.

    A caption moves below the cell that shows its figure or table.
    """
    cells, captions = notebook.cells, dict[int, list[str]]()
    shown_by = _showing(cells, stem)
    made: list[list[nbformat.NotebookNode]] = []
    for index, cell in enumerate(cells):
        if cell.cell_type != "markdown":
            made.append([cell])
            continue
        kept = list[str]()
        for block in _Page(names, stem).blocks(cell.source.splitlines()):
            at = shown_by.get(block.shows, index)
            if at < index and not _between(cells, at, index):
                at = index
            (kept if at == index else captions.setdefault(at, [])).append(block.text)
        made.append(_cells(kept, cell["id"]))
    notebook.cells = []
    for index, own in enumerate(made):
        notebook.cells += own
        notebook.cells += _cells(captions.get(index, []), f"captions-{index}")


@dataclass(frozen=True)
class _Block:
    text: str
    shows: str = ""  # the figure or table of a caption


@dataclass
class _Page:
    """Turns the lines of one cell into blocks of plain Markdown."""

    names: Names
    stem: str
    proofs: Iterator[int] = field(default_factory=lambda: count(1))

    def blocks(self, lines: Sequence[str]) -> Iterator[_Block]:
        at, paragraph = 0, list[str]()
        while at < len(lines):
            fence = _FENCE.match(lines[at])
            if not fence and lines[at].strip():
                paragraph.append(lines[at])
                at += 1
                continue
            yield from self._paragraph(paragraph)
            paragraph = []
            end = at
            if fence:
                closing = (k for k in range(at + 1, len(lines)) if lines[k] == fence[1])
                # A box may go on behind a cell of code: its ends are in two cells.
                end = next(closing, len(lines) if fence[2] else at)
                inside = lines[at + 1 : end]
                if fence[2]:
                    yield from self._directive(fence[2], fence[3], inside)
                elif fence[1][0] == "`":
                    yield _Block("\n".join(lines[at : end + 1]))
            at = end + 1
        yield from self._paragraph(paragraph)

    def _paragraph(self, lines: Sequence[str]) -> Iterator[_Block]:
        text = "\n".join(line for line in lines if not line.startswith("% "))
        text = _TARGET.sub("", text + "\n").strip("\n")
        if text and not re.fullmatch(r"\([\w-]+\)=", text):
            yield _Block(self.sentence(text))

    def sentence(self, text: str) -> str:
        """Return a paragraph with its roles resolved."""
        text = _ATTRIBUTED.sub(
            lambda part: "" if part[2] == "played-only" else part[1], text
        )
        text = re.sub(
            r"^\$\$ *\((eq-[\w-]+)\)",
            lambda label: f"\\tag{{{self.names.numbers[label[1]]}}}\n$$",
            text,
            flags=re.M,
        )
        return _ROLE.sub(lambda role: self._role(role[1], role[2]), text)

    def _role(self, name: str, content: str) -> str:
        aimed = _AIMED.match(content)
        words, target = (aimed[1], aimed[2]) if aimed else ("", content)
        names = self.names
        if name in ("func", "class", "meth", "mod", "attr"):
            return f"`{words or target.lstrip('~').replace('rubricnb.', 'rb.', 1)}`"
        if name == "math":
            return f"${content}$"
        if name == "term":
            return words or target
        if name.startswith("cite"):
            return self._cited(name, content.split(","))
        if name == "eq" and target in names.numbers:
            return f"({names.numbers[target]})"
        if name == "download":
            path = _from_root("notebooks", target)
            return f"[{words or target}]({names.url}/{path})"
        if name == "doc":
            page = _from_root("notebooks", target)
            return names.link(words or names.titles.get(page, page), page)
        return self._reference(name, words, target)

    def _reference(self, name: str, words: str, target: str) -> str:
        names = self.names
        page, number = names.pages.get(target, ""), names.numbers.get(target, "")
        if name == "numref":
            words = words.replace("%s", number)
        elif number:
            kind = {"ex": "Exercise", "thm": "Theorem", "finding": "Finding"}
            words = words or f"{kind[target.partition('-')[0]]} {number}"
        words = words or names.titles.get(target) or names.titles.get(page, target)
        here = page in ("", f"notebooks/{self.stem}")
        return words if here else names.link(words, page)

    def _cited(self, name: str, keys: Sequence[str]) -> str:
        found = [self.names.sources[key.strip()] for key in keys]
        if name == "cite:t":
            return ", ".join(f"{authors} ({year})" for authors, year in found)
        return f"({'; '.join(f'{authors}, {year}' for authors, year in found)})"

    def _directive(
        self, name: str, argument: str, lines: Sequence[str]
    ) -> Iterator[_Block]:
        options, body = _parted(lines)
        if name in ("glue:figure", "glue:md"):
            if name == "glue:md":
                yield _Block(f"{{glue:text}}`{argument}`")
            else:
                yield self._caption(argument, options, body)
        elif name == "math":
            label = self.names.numbers.get(options.get("label", ""), "")
            tag = f"\n\\tag{{{label}}}" if label else ""
            yield _Block("$$\n" + "\n".join(body) + f"{tag}\n$$")
        elif name == "div":
            yield from self.blocks(body)
        elif name == "dropdown":
            yield _Block(f"**{self.sentence(argument)}**")
            yield from self.blocks(body)
        elif name == "csv-table":
            path = _from_root("notebooks", options["file"])
            yield _Block(f"[Table]({self.names.url}/{path})")
        elif name in ("admonition", "margin") or name.startswith("prf:"):
            yield from self._box(name, argument, options, body)
        elif name != "glue":  # an experiment of the book is shown below its cell
            raise ValueError(f"{self.stem}: no plain form is known of {{{name}}}")

    def _box(
        self,
        name: str,
        argument: str,
        options: Mapping[str, str],
        body: Sequence[str],
    ) -> Iterator[_Block]:
        head = argument
        if name == "prf:proof":
            head = "Proof"
        elif name == "prf:theorem":
            number = self.names.numbers[options["label"]]
            head = f"Theorem {number}{argument and f' ({argument})'}"
        inner = [block.text for block in self.blocks(body)]
        stop = "" if head.endswith(("?", "!", ".")) else "."
        text = "\n\n".join([f"**{self.sentence(head)}{stop}**", *inner])
        quoted = (f"> {line}".rstrip() for line in text.splitlines())
        yield _Block("\n".join(quoted))

    def _caption(
        self, name: str, options: Mapping[str, str], body: Sequence[str]
    ) -> _Block:
        label = options.get("name", "")
        kind = "Table" if label.startswith("tab-") else "Figure"
        number = self.names.numbers.get(label, "")
        text = f"**{kind} {number}.** {self.sentence(' '.join(body))}"
        if alt := options.get("alt", ""):
            text += (
                f"\n\n<details><summary>The {kind.lower()} in words</summary>"
                f"{self.sentence(alt)}</details>"
            )
        return _Block(text, shows=name)


def _cells(texts: Sequence[str], identity: str) -> list[nbformat.NotebookNode]:
    """Return cells of Markdown, and of code where a text has numbers of the run."""
    cells = []
    parts = groupby(texts, key=lambda text: bool(_OF_RUN.search(text)))
    for number, (of_run, group) in enumerate(parts):
        text = "\n\n".join(group)
        cell = _filling(text) if of_run else nbformat.v4.new_markdown_cell(text)
        cell["id"] = f"{identity}-{number}" if number else identity
        cells.append(cell)
    return cells


def _filling(text: str) -> nbformat.NotebookNode:
    """Return a folded cell of code that shows a text with the numbers of the run.

    Until it is run, it shows the text with dots in their place.
    """
    quoted = repr(text) if '"""' in text or text.endswith("\\") else f'r"""{text}"""'
    cell = nbformat.v4.new_code_cell(
        "# This text has numbers of your run.\n"
        f"import rubricnb as rb\n\nrb.pages.fill({quoted})"
    )
    cell.metadata["jupyter"] = {"source_hidden": True}
    cell.metadata["tags"] = ["hide-input"]
    dotted = {"text/markdown": filled(text, {}), "text/plain": ""}
    cell.outputs = [nbformat.v4.new_output("display_data", dotted)]
    return cell


def _showing(cells: Sequence[Any], stem: str) -> dict[str, int]:
    """Name of a figure or table → the cell that shows it."""
    found = dict[str, int]()
    for index, cell in enumerate(cells):
        if cell.cell_type == "code":
            source = cell.source.replace("{STEM}", stem)
            for name in re.findall(r"\bshow\(\s*f?\"([\w-]+)\"", source):
                found.setdefault(name, index)
    return found


def _between(cells: Sequence[Any], first: int, last: int) -> bool:
    """Whether other cells than prose are between two cells."""
    return any(cell.cell_type != "markdown" for cell in cells[first + 1 : last])


def _parted(lines: Sequence[str]) -> tuple[dict[str, str], list[str]]:
    """Part a directive's options from its content."""
    rest, options = list(lines), dict[str, str]()
    while rest and (option := _OPTION.match(rest[0])):
        options[option[1]] = option[2] or ""
        rest.pop(0)
    while rest and not rest[0].strip():
        rest.pop(0)
    return options, rest


def _numbered(text: str, stem: str) -> dict[str, str]:
    """Number the figures, tables, equations, theorems and exercises of a chapter."""
    named = _NAMED.findall(text)
    kinds = [
        [name for name in named if name.startswith("fig-")],
        [name for name in named if name.startswith("tab-")],
        ["".join(found) for found in _LABELLED.findall(text)],
        _THEOREM.findall(text),
    ]
    prefix = _prefix(stem)
    numbers = {
        label: f"{prefix}{number}"
        for labels in kinds
        for number, label in enumerate(labels, 1)
    }
    exercises = enumerate(_EXERCISE.findall(text), 1)
    return numbers | {label: str(number) for number, label in exercises}


def _prefix(stem: str) -> str:
    """Return what a chapter's numbers begin with.

    >>> _prefix("05_position_bias"), _prefix("A_bias_cost"), _prefix("90_minutes")
    ('5.', 'A.', '')
    """
    number = stem.partition("_")[0].lstrip("0")
    return "" if number == "90" else f"{number}."


def _from_root(folder: str, target: str) -> str:
    """Return the path of a target from the root.

    >>> _from_root("notebooks", "../book/audit"), _from_root("notebooks", "21_probes")
    ('book/audit', 'notebooks/21_probes')
    """
    parts: list[str] = []
    for part in PurePosixPath(folder, target).parts:
        if part == "..":
            parts.pop()
        else:
            parts.append(part)
    return "/".join(parts)


def _source(entry: str) -> tuple[str, str]:
    """Return authors and year of a bibliography's entry.

    >>> _source("  author = {Xu, Y. and Li, Q.},\\n  year = {2026, v2},\\n")
    ('Xu and Li', '2026, v2')
    """
    fields = dict(re.findall(r"^ *(\w+) = \{(.*)\},?$", entry, re.M))
    authors = [
        name.partition(",")[0].strip("{} ") for name in fields["author"].split(" and ")
    ]
    if len(authors) > 2:
        authors = [f"{authors[0]} et al."]
    return " and ".join(authors), fields.get("year", "")


def _unmarked(title: str) -> str:
    return re.sub(r"\{[\w:]+\}`([^`<]*?)\s*(?:<[^>]*>)?`", r"\1", title).strip()
