"""Rules for the documents: do they match the code, one another, and their sources?

A rule reads the texts of a clone and yields one sentence for each break. It reads
nothing else, so a test can change one text and see the rule complain.
"""

from __future__ import annotations

import ast
import csv
import hashlib
import json
import re
import tomllib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from pybtex.database import parse_string

import rubricnb
from rubricnb.book.notebooks import (
    RECORDED_FILE,
    RECORDED_ROLE,
    find_root,
    parameters,
)
from tools import ratchet, rooms
from tools.clone import CELL, Clone
from tools.doors import private_imports, unused_dependencies
from tools.engine_code import FILES, fingerprint

FENCE = re.compile(
    r"^(<!-- runnable -->\n)?```(bash|python|yaml)\n(.*?)^```", re.M | re.S
)


Rule = Callable[[Clone], Iterable[str]]
RULES: dict[str, Rule] = {}


def rule(check: Rule) -> Rule:
    """Add a rule to the table, under the first line of its docstring."""
    RULES[(check.__doc__ or "").strip().rstrip(".")] = check
    return check


def breaks(clone: Clone | None = None) -> list[str]:
    """Return what breaks the rules, one line each."""
    clone = clone or Clone(find_root())
    return [f"{name}: {what}" for name, check in RULES.items() for what in check(clone)]


def blocks(text: str, language: str) -> list[tuple[bool, str]]:
    """Return (runnable, text) of every fenced block of a language."""
    return [
        (bool(mark), block)
        for mark, kind, block in FENCE.findall(text)
        if kind == language
    ]


def commands(clone: Clone) -> Iterator[tuple[str, str]]:
    """Yield the documents' shell lines, and the commands in their text."""
    for path, text in clone.documents.items():
        for _, block in blocks(text, "bash"):
            yield from ((path, line) for line in block.splitlines())
        for code in re.findall(r"`([^`\n]+)`", FENCE.sub("", text)):
            if code.startswith(("make ", "python -m ", "papermill ")):
                yield path, code


def section(text: str, title: str) -> str:
    """Return the part of a page under a heading."""
    return text.partition(f"\n## {title}\n")[2].split("\n## ")[0]


# Names and commands
# ------------------------------------------------------------------------------


@rule
def names_exist(clone: Clone) -> Iterator[str]:
    """A page's Python names what the package has."""
    for path, text in clone.documents.items():
        for _, block in blocks(text, "python"):
            for node in ast.walk(ast.parse(block)):
                name = ast.unparse(node) if isinstance(node, ast.Attribute) else ""
                if re.fullmatch(r"rb\.\w+", name) and not hasattr(rubricnb, name[3:]):
                    yield f"{path}: {name}"


@rule
def notebooks_import_at_the_top(clone: Clone) -> Iterator[str]:
    """A notebook imports the package by its public names alone."""
    for path, text in clone.texts("notebooks/*.md", "notebooks/*.ipynb").items():
        for cell in CELL.findall(text) if path.endswith(".md") else _code_cells(text):
            for node in ast.walk(
                ast.parse(re.sub(r"^(:|\s*[%!]).*", "", cell, flags=re.M))
            ):
                if not {*_taken(node)} <= {*rubricnb.__all__, "rubricnb as rb"}:
                    yield f"{path}: {ast.unparse(node)}"


def _code_cells(twin: str) -> list[str]:
    """Return the code of a notebook's twin, which has two cells more than its text."""
    cells = json.loads(twin)["cells"]
    return ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]


def _taken(node: ast.AST) -> Iterator[str]:
    """Yield what a statement imports of the package, and what ``rb.`` names."""
    match node:
        case ast.Attribute(value=ast.Name(id="rb"), attr=name):
            yield name
        case ast.Import(names=names):
            yield from (
                ast.unparse(n) for n in names if n.name.split(".")[0] == "rubricnb"
            )
        case ast.ImportFrom(module="rubricnb", names=names):
            yield from (n.name for n in names)
        case ast.ImportFrom(module=str(module)) if module.startswith("rubricnb."):
            yield module


@rule
def commands_exist(clone: Clone) -> Iterator[str]:
    """A page's command names a target, a subcommand or a parameter that is there."""
    from rubricnb.cli import commands as cli
    from studies import __main__ as studies
    from tools import __main__ as tools

    targets = re.findall(r"^([a-z][\w-]*)\s*:(?!=)", clone.text("Makefile"), re.M)
    known = {"make": {*targets}}
    for name, app in (
        ("rubricnb", cli.app),
        ("studies", studies.app),
        ("tools", tools.app),
    ):
        groups = {group.name for group in app.registered_groups}
        own = {
            c.name or getattr(c.callback, "__name__", "")
            for c in app.registered_commands
        }
        known[f"python -m {name}"] = {*map(str, own | groups)}
    for path, line in commands(clone):
        for program, names in known.items():
            used = re.match(rf"{program} ([a-z][\w-]*)", line)
            history = path == "CHANGELOG.md" and program != "make"
            if used and used[1] not in names and not history:
                yield f"{path}: {line}"
        if notebook := re.search(r"(?:notebooks/|execute )((?:\d\d|[A-Z])_\w+)", line):
            declared = {p.name for p in parameters(notebook[1], clone.root)}
            if unknown := set(re.findall(r"-p (\w+)", line)) - declared:
                yield f"{path}: {line}: {', '.join(sorted(unknown))}"


@rule
def messages_exist(clone: Clone) -> Iterator[str]:
    """Every message in the troubleshooting list is one that the package prints."""
    said = "\n".join(clone.texts("rubricnb/**/*.py").values())
    said = re.sub(r"\{[^{}]*\}", "", re.sub(r'"\s*\n\s*f?"', "", said))
    troubles = section(clone.text("book/running-a-study.md"), "Troubleshooting")
    quoted = [
        code
        for cell in re.findall(r"^\| (.+?) \|", troubles, re.M)
        for code in re.findall(r"[`\"]([^`\"]+)[`\"]", cell)
    ]
    if len(quoted) < 10:
        yield "book/running-a-study.md quotes fewer than ten messages"
    for code in quoted:
        for piece in re.split(r"…|\d+|https?://\S+|(?<=refused:) ", code):
            if len(piece.strip()) > 5 and piece.strip() not in said:
                yield piece


@rule
def paths_exist(clone: Clone) -> Iterator[str]:
    """A path or a link of the documents leads somewhere, or is marked as planned."""
    found = set(
        re.findall(r"`([\w./-]+)`( \(planned\))?", clone.text("book/layout.md"))
    )
    for path, planned in sorted(found):
        is_path = "/" in path or "." in path or path == "Makefile"
        named = is_path and not path.startswith(("NN_", "rb."))
        if named and (clone.root / path).exists() == bool(planned):
            yield f"book/layout.md: {path}"
    for page, text in clone.texts("*.md").items():
        for target in re.findall(r"\]\((?!https?:)([^)#]+)", text):
            if not (clone.root / target).exists():
                yield f"{page}: {target}"


@rule
def readers_are_led(clone: Clone) -> Iterator[str]:
    """Readers find the sample audit and how to cite where they begin."""
    for page in ("README", "book/index", "book/quickstart", "book/own-data"):
        if "audit-sample.html" not in clone.text(f"{page}.md"):
            yield f"{page}.md: no link to audit-sample.html"
    for page in ("README", "book/index"):
        if not re.search(
            r"cite\.md|\{ref\}`cite`|\{doc\}`cite`", clone.text(f"{page}.md")
        ):
            yield f"{page}.md: no link to how to cite"


@rule
def examples_are_explained(clone: Clone) -> Iterator[str]:
    """The examples to copy are those of their pages, which explain every column."""
    own = "examples/own-data/"
    for page, table in (("judgments-elsewhere", "my_scores"), ("own-data", "my_data")):
        explained = clone.text(f"book/{page}.md")
        for column in clone.text(f"{own}{table}.csv").splitlines()[0].split(","):
            if f"`{column}`" not in explained:
                yield f"book/{page}.md: {column}"
    _, shown = blocks(clone.text("book/own-data.md"), "yaml")[0]
    if yaml.safe_load(shown) != yaml.safe_load(clone.text(f"{own}my_rubric.yml")):
        yield f"book/own-data.md shows another rubric than {own}my_rubric.yml"


@rule
def everything_is_documented(clone: Clone) -> Iterator[str]:
    """Every table, frame and public name has its place, once."""
    from rubricnb.core import frames

    shown = re.findall(r"\{published-table\} (\S+)", clone.text("book/published.md"))
    tables = clone.root.glob("rubricnb/sets/published/*_table*.csv")
    if sorted(shown) != sorted(path.stem for path in tables):
        yield "book/published.md"
    described = re.findall(r"\{frame-columns\} (\w+)", clone.text("book/api/data.md"))
    if described != list(frames.FRAMES):
        yield "book/api/data.md: frames"
    pages = "\n".join(clone.texts("book/api/*.md").values())
    documented = re.findall(r"public-names:: ([\w.]+)", pages)
    modules = {"auditing", "rulers", "testing", *rubricnb.MODULES.values()} - {"book"}
    for module in ({*rubricnb.PUBLIC} | modules) - {*documented}:
        yield f"rubricnb.{module} is on no page of book/api/"
    index = re.findall(r"public-index:: (.+)", clone.text("book/api.md"))
    if sorted(" ".join(index).split()) != sorted(documented):
        yield "book/api.md lists other modules than book/api/"


@rule
def speeds_are_of_the_code_there_is(clone: Clone) -> Iterator[str]:
    """A measured rate is of today's engine code, or the page says otherwise."""
    today = fingerprint(clone.texts(*FILES))
    measured = clone.text("results/gpu/throughput.csv")
    old = [row for row in csv.DictReader(measured.splitlines()) if row["code"] != today]
    for row in old:
        if not row["replaced"]:
            yield (
                f"{row['arm']} of {row['readout']} was measured at {row['commit']}, "
                "and the code has changed: measure again, or name the commit that "
                "changed it under `replaced`"
            )
    if old and "since been replaced" not in clone.text("book/gpu-cluster.md"):
        yield (
            "book/gpu-cluster.md does not say that the measured code has since been "
            "replaced"
        )


@rule
def advice_names_a_chapter(clone: Clone) -> Iterator[str]:
    """Every piece of advice names a chapter."""
    advice = re.findall(
        r"^(?:\d\. |\* |\| (?!report |---)).+", clone.text("book/guide.md"), re.M
    )
    if len(advice) < 20:
        yield "book/guide.md gives fewer than twenty pieces of advice"
    yield from (line for line in advice if "{doc}`../notebooks/" not in line)


@rule
def chapters_open_with_a_finding(clone: Clone) -> Iterator[str]:
    """Every chapter opens with a finding in bold, and who judged."""
    for path, text in clone.texts("notebooks/*.md").items():
        opening = re.search(r":::\{div\} answer\n(.*?)\n\n(.+?)\n", text, re.S)
        if path == "notebooks/90_minutes.md":  # asks before it answers
            continue
        if not opening or not re.match(r"\*\*.+?\*\*", opening[1], re.S):
            yield f"{path}: no sentence in bold"
        elif not re.match(
            r"(?!```).*(recorded|simulated|live|published)", opening[2], re.I
        ):
            yield f"{path}: not who judged"


OURS = re.compile(r":{3,}\{div\} (?:answer|story)\n(.*?)^:{3,}$", re.M | re.S)
LIVE = re.compile(r"\{glue:text\}`([^`]+)`")


@rule
def our_sentences_print_recorded_numbers(clone: Clone) -> Iterator[str]:
    """Sentences about the book's judges print recorded numbers alone."""
    judges = clone.text("results/judges.csv")
    known = {row["name"] for row in csv.DictReader(judges.splitlines())}
    named = re.compile("|".join(rf"\b{re.escape(name)}\b" for name in sorted(known)))
    recorded = set()
    for row in csv.DictReader(clone.text(RECORDED_FILE).splitlines()):
        recorded.add((row["chapter"], row["name"]))
    for path, text in clone.texts("notebooks/*.md").items():
        stem = Path(path).stem
        for block in OURS.findall(text):
            yield from (
                f"{path}: {{glue:text}}`{name}`" for name in LIVE.findall(block)
            )
        for sentence in _sentences(OURS.sub("", text)):
            if named.search(sentence) and LIVE.search(sentence):
                yield f"{path}: {sentence}"
        for name in RECORDED_ROLE.findall(text):
            if (stem, name) not in recorded:
                yield (
                    f"{path}: {name} is not recorded: python -m tools record "
                    f"{stem.split('_')[0]}"
                )


def _sentences(text: str) -> Iterator[str]:
    """Yield the sentences of a chapter outside its code, each on one line."""
    for paragraph in CELL.sub("", text).split("\n\n"):
        yield from re.split(r"(?<=[.!?)])\s+(?=[A-Z*({])", " ".join(paragraph.split()))


@rule
def slides_name_their_judges(clone: Clone) -> Iterator[str]:
    """A slide says of the judges what the caption of its figure says."""
    for path, deck in clone.texts("slides/*.md").items():
        for slide in deck.split("\n---\n"):
            shown = slide.partition("\nNote:")[0].casefold()
            if "figure(" in shown and not re.search(
                r"\*(recorded|live|simulated|published)\*", shown
            ):
                yield f"{path}: {shown}"
            for stem, name in re.findall(r'figure\("([^"]+)", "([^"]+)"\)', slide):
                page = clone.text(f"notebooks/{stem}.md")
                figure = re.search(r"{glue:figure} " + name + r"\n(.*?)```", page, re.S)
                caption = figure[1].casefold() if figure else "*simulated*"
                for word in ("*simulated*", "*published*"):
                    if word in caption and word not in shown:
                        yield f"{path}: {name}, {word}"


# Words
# --------------------------------------------------------------------------------------

NEEDS_NO_ENTRY = {
    "a model or a family of models": "EXAONE GLM GPT OSS",
    "a data set, explained in chapter 3": "ASAP FLASK HANNA MT",
    "the paper; chapters 15 to 18": "RULERS",
    "an institution, in the name of its tool": "RAND",
    "a licence, with its text": "BSD BY CC CC0 MIT",
    "a conference or journal, in a source": "ICLR TACL",
    "everybody knows it": (
        "CITATION CUDA GB GiB HTML MB MiB NVIDIA README URL US UTF VS"
    ),
    "a symbol or a prompt's own word, where it stands": "HASH LOCKED MS",
}
# Words that textbooks on measurement and papers on judging explain,
# and readers may not know.
FIELD = """
alternative annotator test · argmax · bootstrap · calibration · cluster · Cramér's V ·
degrees of freedom · design effect · endpoint · entropy · equivalence · expected score ·
flip rate · gold · greedy · intraclass correlation · jackknife · Kendall · minimum
detectable effect · null · permutation test · placebo · position bias · primacy ·
pseudoreplication · pull · recency · reliability · shrinkage · standard deviation ·
system · temperature · tie · token · variance components · Wasserstein distance ·
Williams square
"""
SYNONYMS = {
    "shares": "share",
    "quadratic weighted kappa": "qwk",
    "the best monotone map": "monotone map",
    "gate": "evidence gate",
}
# other directives hold prose
CODE = (None, "code-block", "code-cell", "eval-rst", "math")
NOT_PROSE = re.compile(
    r"\A---\n.*?^---$"  # what jupytext keeps
    r"|^:\w[\w-]*:.*?$"  # options of a directive
    r"|\$\$.*?\$\$|\$[^$\n]*\$|\{[\w:]+\}`[^`]*`|`[^`\n]*`|\]\([^)\s]*\)|https?://\S+",
    re.M | re.S,
)
ABBREVIATION = re.compile(r"(?<![\w./])(?:[A-Z]{2,}[0-9]?|NaN|[KMGT]iB)(?=s?\b)")


def prose(text: str) -> str:
    """Return what is read as sentences: no code, no mathematics, no addresses."""
    kept: list[str] = []
    fences: list[tuple[str, str | None]] = []
    for line in text.splitlines():
        fence = re.match(r"(`{3,})(?:\{([\w:-]+)\})?", line)
        if fence and fences and line.strip() == fences[-1][0]:
            fences.pop()
        elif fence:
            fences.append((fence[1], fence[2]))
        elif not any(kind in CODE for _, kind in fences):
            kept.append(line)
    return NOT_PROSE.sub(" ", "\n".join(kept))


def entries(clone: Clone) -> list[str]:
    """Return the names in the glossary."""
    return re.findall(
        r"^[^\s:`].*$", clone.text("book/glossary.md").partition("{glossary}")[2], re.M
    )


def explained(clone: Clone) -> set[str]:
    """Return every word of every name, also in the papers' capitals: PLACEBO."""
    words = {word for entry in entries(clone) for word in re.findall(r"[\w+-]+", entry)}
    return words | {word.upper() for word in words if len(word) > 3}


def sentences(clone: Clone) -> dict[str, str]:
    """Return the prose of every page but the glossary."""
    pages = clone.pages.items()
    return {path: prose(text) for path, text in pages if path != "book/glossary.md"}


@rule
def abbreviations_are_explained(clone: Clone) -> Iterator[str]:
    """Every abbreviation on a page has its entry or needs none, and no other has."""
    named = explained(clone)
    exceptions = " ".join(NEEDS_NO_ENTRY.values()).split()
    known = named | {*exceptions} | {part for word in named for part in word.split("-")}
    used: set[str] = set()
    for path, text in sentences(clone).items():
        own = {*ABBREVIATION.findall(text)}
        used |= own
        yield from (f"{path}: {word}" for word in sorted(own - known))
    for word in exceptions:
        if word not in used or word in named or exceptions.count(word) > 1:
            yield f"{word} needs no exception"


@rule
def words_of_the_field_are_explained(clone: Clone) -> Iterator[str]:
    """The field's words and what is defined have entries, and the book uses them."""
    named = ", ".join(entries(clone)).lower()
    text = " ".join(
        " ".join(sentences(clone).values()).lower().replace("’", "'").split()
    )
    for word in (" ".join(word.split()).lower() for word in FIELD.split("·")):
        if word not in named or word not in text:
            yield word
    bold = re.findall(r"^\*\*([^*]+?)\.?\*\*", clone.text("book/notation.md"), re.M)
    if len(bold) < 10:
        yield "book/notation.md defines fewer than ten things"
    for name in (name.replace("$", "").lower() for name in bold):
        if (
            not re.match("theirs|ours|nan|a text", name)
            and SYNONYMS.get(name, name) not in named
        ):
            yield f"book/notation.md: {name}"


@rule
def entries_are_sentences(clone: Clone) -> Iterator[str]:
    """Every entry of the glossary is there once and has a sentence."""
    names = entries(clone)
    if len({name.lower() for name in names}) < max(len(names), 80):
        yield "book/glossary.md: an entry twice, or fewer than eighty"
    listed = (
        clone.text("book/glossary.md").partition(":sorted:")[2].removesuffix("```\n")
    )
    for entry in listed.strip().split("\n\n"):
        *heads, said = entry.split("\n")
        if not {*heads} <= {*names} or not re.fullmatch(r"  \S.*[.?)!\"]", said):
            yield f"book/glossary.md: {entry}"


# Tics
# --------------------------------------------------------------------------------------

# What a native reader stops at, as far as an expression finds it in one sentence.
TICS = {
    "fronted complement": r"^(?:Of|Among) ",
    "clause as subject": r"^(?:What|Whether|How(?! to\b)) (?!.*\?)"
    r"|^That (?:an?|the|it|its|they|we|you|one|no|every|each|most|many|all|texts|scores"
    r"|judges)\b",
    "false friend": r"\b(?:stands?|stood|mend(?:s|ed|ing)?|spares?|brings?)\b"
    r"(?! (?:for|out|up|in for)\b|-in)",
    "old word": r"(?i)\b(?:besides?|anew|afresh|dear|endless(?:ly)?|so many|likeliest"
    r"|hardly|nought|seldom|wherever|thereby|(?:will|would) do(?=[.,;])"
    r"|next to nothing)\b",
    "one": r"(?i)\b(?:who(?:m|so)?ever|nobody|one's|cannot say"
    r"|one (?:may|can|cannot|must|would))\b",
    "is no": (
        r"(?<!here )\b(?:is|are|was|were|be) (?:none\b|no "
        r"(?!longer|more|one|less|fewer))"
    ),
    "of yours": r"\bof (?:yours|ours|theirs|its own|one's own|your own)\b",
    "personification": (
        r"\b(?:tastes?|moods?|fond|waver\w*|changes? (?:its|their) "
        r"minds?)\b"
    ),
    "place": r"(?<!\bin )(?<!\btake )(?<!\btakes )(?<!\btook )\bplaces?\b",
}


def spoken(text: str) -> list[str]:
    """Return the sentences of a page, without its headings."""
    text = re.sub(r"^(?:#+ .*|\([\w-]+\)=|:::.*)$", "", prose(text), flags=re.M)
    text = re.sub(r"^ *(?:[*+-]|\d+\.) |\|", "\n\n", text, flags=re.M)
    text = re.sub(r"[*\[\]]|\{\{.*?\}\}", "", text)
    parts = re.split(r"\n\s*\n|(?<=[.!?])[)”\"]?\s+(?=[A-Z“\"(])", text)
    return [" ".join(part.split()) for part in parts if re.search(r"[A-Za-z]", part)]


def tics(text: str) -> list[tuple[str, str]]:
    """Return (kind, words) of every tic of a page."""
    return [
        (kind, found[0])
        for sentence in spoken(text)
        for kind, pattern in TICS.items()
        for found in re.finditer(pattern, sentence)
    ]


def tic_report(clone: Clone | None = None) -> str:
    """Return lines of tics in 10,000 words and their kinds, by page and in total."""
    clone = clone or Clone(find_root())
    pages = clone.pages | clone.texts(
        "README.md", "CONTRIBUTING.md", "SECURITY.md", "slides/*.md"
    )
    found = {path: tics(text) for path, text in pages.items()}
    words = {path: len(" ".join(spoken(text)).split()) for path, text in pages.items()}
    found["in total"] = [tic for page in found.values() for tic in page]
    words["in total"] = sum(words.values())
    return "\n".join(
        f"{1e4 * len(found[path]) / max(words[path], 1):6.1f} in 10,000 words of {path}"
        f" ({len(found[path])} in {words[path]:,}): "
        + ", ".join(
            f"{kind} {n}"
            for kind, n in Counter(k for k, _ in found[path]).most_common()
        )
        for path in found
    )


# Citing
# --------------------------------------------------------------------------------------

# https://github.com/citation-file-format/citation-file-format, schema 1.2.0
CFF_KEYS = {
    "abstract",
    "authors",
    "cff-version",
    "commit",
    "contact",
    "date-released",
    "doi",
    "identifiers",
    "keywords",
    "license",
    "license-url",
    "message",
    "preferred-citation",
    "references",
    "repository",
    "repository-artifact",
    "repository-code",
    "title",
    "type",
    "url",
    "version",
}
PAPERS = ["xu2026position", "li2025scoring", "hong2026rulers"]


@rule
def citations_have_references(clone: Clone) -> Iterator[str]:
    """Every citation has a reference, and no key appears twice."""
    keys = re.findall(r"^@\w+\{(\w+),", clone.text("book/references.bib"), re.M)
    yield from {key for key in keys if keys.count(key) > 1}
    for path, text in clone.pages.items():
        for group in re.findall(r"\{cite(?::\w+)?\}`([^`]+)`", text):
            yield from (
                f"{path}: {k}"
                for k in map(str.strip, group.split(","))
                if k not in keys
            )


@rule
def citation_file_has_its_format(clone: Clone) -> Iterator[str]:
    """The citation file has what its format asks for."""
    citation = yaml.safe_load(clone.text("CITATION.cff"))
    if not {"authors", "cff-version", "message", "title"} <= {*citation} <= CFF_KEYS:
        yield f"keys {sorted(citation)}"
    if citation["cff-version"] != "1.2.0" or citation["type"] not in (
        "software",
        "dataset",
    ):
        yield "its version or type"
    for work in [citation, citation["preferred-citation"], *citation["references"]]:
        if not {*work} >= {"authors", "title", "type"}:
            yield f"a work lacks authors, title or type: {work}"
        for author in work.get("authors", ()):
            if {*author} not in ({"name"}, {"family-names", "given-names"}):
                yield f"author {author}"


@rule
def citation_file_agrees(clone: Clone) -> Iterator[str]:
    """The citation file says what package, book and bibliography say."""
    citation = yaml.safe_load(clone.text("CITATION.cff"))
    config = yaml.safe_load(clone.text("_config.yml"))
    project = tomllib.loads(clone.text("pyproject.toml"))["project"]
    whole = citation["preferred-citation"]
    names = [author["name"] for author in project["authors"]]
    facts: list[tuple[str, list[Any]]] = [
        (
            "version",
            [
                citation["version"],
                whole["version"],
                project["version"],
                rubricnb.__version__,
            ],
        ),
        ("license", [citation["license"], project["license"]]),
        (
            "url",
            [citation["repository-code"], whole["url"], config["repository"]["url"]],
        ),
        ("title", [whole["title"], config["title"]]),
        ("year", [str(whole["year"]) in config["copyright"], True]),
        (
            "authors",
            [
                names,
                *([a.get("name") for a in w["authors"]] for w in (citation, whole)),
            ],
        ),
    ]
    entries = parse_string(clone.text("book/references.bib"), "bibtex").entries
    works = citation["references"]
    facts.append(("papers", [len(works), len(PAPERS)]))
    for cited, entry in zip(works, map(entries.__getitem__, PAPERS), strict=False):
        given = {name: re.sub("[{}]", "", text) for name, text in entry.fields.items()}
        people = [
            (re.sub("[{}]", "", p.last_names[0]), " ".join(p.first_names))
            for p in entry.persons["author"]
        ]
        url = re.sub("v[12]$", "", given["url"])
        said = [(a["family-names"], a["given-names"]) for a in cited["authors"]]
        of_entry = [people, given["title"], given["year"].split(",")[0], url]
        facts.append(
            (
                cited["title"],
                [of_entry, [said, cited["title"], str(cited["year"]), cited["url"]]],
            )
        )
    for name, (first, *others) in facts:
        yield from (
            f"{name}: {first} and {other}" for other in others if other != first
        )


# The way of an item
# ------------------------------------------------------------------------------


@cache
def _imports(text: str) -> frozenset[str]:
    """Modules of the package that a module imports, anywhere in its text."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ImportFrom) and node.module:
            names |= {
                node.module,
                *(f"{node.module}.{alias.name}" for alias in node.names),
            }
        elif isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
    own = (name for name in names if name.startswith("rubricnb."))
    return frozenset(name.replace(".", "/") + ".py" for name in own)


@rule
def an_item_walks_straight(clone: Clone) -> Iterator[str]:
    """An item passes at most six modules, of which none reaches another."""
    modules = clone.texts("rubricnb/**/*.py")
    reads = {path: _imports(text) & modules.keys() for path, text in modules.items()}

    def reached(path: str) -> set[str]:
        found: set[str] = set()
        ahead = [path]
        while ahead:
            new = reads[ahead.pop()] - found
            found |= new
            ahead += new
        return found

    page, _, of_judge = clone.text("book/layout.md").partition("(way-of-a-judge)=")
    step = re.compile(r"^\|[^|]*\| \d [^|`]*`(rubricnb/[\w/]+\.py)` \|", re.M)
    walk, way = step.findall(page), step.findall(of_judge)
    for number, module in enumerate(way):
        # all know the description
        climbs = reached(module) & {*way[:number]} - {way[1]}
        yield from (f"{module} reaches {other}, a step before it" for other in climbs)
    ends = ["rubricnb/sets/catalogue.py", "rubricnb/statistics/position.py"]
    if [*walk[:1], *walk[-1:]] != ends or not 2 < len(walk) <= 6:
        yield f"book/layout.md: {walk}"
    for module in walk:
        yield from (f"{module} reaches {other}" for other in reached(module) & {*walk})
    if not {*walk[2:5]} <= reads["rubricnb/core/run.py"]:
        yield f"rubricnb/core/run.py does not pass through {walk[2:5]}"


@rule
def rooms_keep_their_order(clone: Clone) -> Iterator[str]:
    """A room imports only rooms below it, and no modules import in a circle."""
    yield from rooms.broken(clone)
    if rooms.picture(clone) not in clone.text("book/layout.md"):
        yield f"book/layout.md needs this picture:\n{rooms.picture(clone)}"


@rule
def private_names_stay_at_home(clone: Clone) -> Iterator[str]:
    """A private name is used by its own folder alone; a test may look inside."""
    modules = clone.texts(*ratchet.MODULES)
    for path, line, name in private_imports(modules):
        if not path.startswith("tests/"):  # how many do is in the ratchet
            yield f"{path}, line {line}: {name}"


@rule
def dependencies_are_imported(clone: Clone) -> Iterator[str]:
    """A dependency of the package is imported there, in the part that declares it."""
    project = tomllib.loads(clone.text("pyproject.toml"))["project"]
    declared = {"dependencies": project["dependencies"]}
    declared |= project["optional-dependencies"]
    of_the_clone = ("book", "class", "test")  # with commands, kernels and plugins
    parts = {part: d for part, d in declared.items() if part not in of_the_clone}
    modules = clone.texts("rubricnb/**/*.py").values()
    for part, name in unused_dependencies(parts, modules):
        yield f"pyproject.toml, {part}: no module of rubricnb imports {name}"


@rule
def rooms_do_not_grow_unnoticed(clone: Clone) -> Iterator[str]:
    """No number of the ratchet rises without its row."""
    now = ratchet.counts(clone)
    yield from ratchet.raised(now, ratchet.limits(clone.text(ratchet.TABLE)))


# What others wrote and runs here
# -----------------------------------------------------------------


@rule
def actions_are_pinned(clone: Clone) -> Iterator[str]:
    """An action is used by one commit, with its version beside it."""
    workflows = clone.texts(".github/workflows/*.yml").values()
    used = [
        line
        for text in workflows
        for line in re.findall(r"uses:\s*(.+?)\s*$", text, re.M)
    ]
    pinned = re.compile(r"[\w.-]+/[\w./-]+@[0-9a-f]{40}  # v\d+\.\d+\.\d+")
    yield from (action for action in used if not pinned.fullmatch(action))
    if not used or len({*used}) != len({action.split("@")[0] for action in used}):
        yield "one action by two commits, or no action"


@rule
def only_deploying_may_write(clone: Clone) -> Iterator[str]:
    """Only a job that deploys may write, and it runs no code of the repository."""
    for path, text in clone.texts(".github/workflows/*.yml").items():
        workflow = yaml.safe_load(text)
        if workflow["permissions"] != {"contents": "read"}:
            yield f"{path}: {workflow['permissions']}"
        for name, job in workflow["jobs"].items():
            steps = job.get("steps", [])
            used = [step.get("uses", "").split("@")[0] for step in steps]
            publishes = (
                job.get("needs") == "build"
                and (job.get("permissions"), used) == _PUBLISHES.get((path, name))
                and not any("run" in step for step in steps)
            )
            if "permissions" in job and not publishes:
                yield f"{path}: {name}"
            if publishes and "INDEX" in str(workflow["jobs"]["build"]):
                yield f"{path}: build takes packages from a second index"


# What a job that publishes may write, and the actions that it runs.
_PUBLISHES = {
    (".github/workflows/book.yml", "deploy"): (
        {"pages": "write", "id-token": "write"},
        ["actions/deploy-pages"],
    ),
    (".github/workflows/publish.yml", "publish"): (
        {"id-token": "write"},
        ["actions/download-artifact", "pypa/gh-action-pypi-publish"],
    ),
}


@rule
def vendored_files_are_known(clone: Clone) -> Iterator[str]:
    """Every vendored file is the one that was looked at."""
    folder = clone.root / "_static/vendor"
    sums = clone.text("_static/vendor/SHA256SUMS").splitlines()
    there = {
        f"{hashlib.sha256(path.read_bytes()).hexdigest()}  "
        f"{path.relative_to(folder).as_posix()}"
        for path in folder.rglob("*")
        if path.is_file() and path.name != "SHA256SUMS"
    }
    yield from there ^ {*sums}


@rule
def lock_is_whole(clone: Clone) -> Iterator[str]:
    """The lock holds all that is asked for, with hashes and without addresses."""
    text = clone.text("requirements-hashed.txt")
    if "://" in text:
        yield "an address"
    locked = {}
    for entry in map(str.strip, re.split(r"\n(?=\w)", text.split("\n", 1)[1])):
        first, *hashes = entry.split("\\\n")
        name = canonicalize_name(Requirement(first).name)
        locked[name] = re.sub(r"[^=]+==([^\s;]+).*", r"\1", first.strip())
        if not re.match(r"[\w.-]+==[\w.!+]+( ; .*)?\s*$", first) or not hashes:
            yield f"{name}: no version or no hash"
        if not all(
            re.fullmatch(r"    --hash=sha256:[0-9a-f]{64} ?", line) for line in hashes
        ):
            yield f"{name}: its hashes"
    project = tomllib.loads(clone.text("pyproject.toml"))["project"]
    asked = [
        line for line in clone.text("constraints.txt").splitlines() if "==" in line
    ]
    asked += project["dependencies"]
    for extra in ("parquet", "plots", "rulers", "embedded", "book", "ray", "test"):
        asked += project["optional-dependencies"][extra]
    for requirement in map(Requirement, asked):
        if requirement.name == project["name"]:  # an extra that takes others
            continue
        version = locked.get(canonicalize_name(requirement.name))
        if version is None or not requirement.specifier.contains(
            version, prereleases=True
        ):
            yield f"{requirement}, and the lock has {version}"
