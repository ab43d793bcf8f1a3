"""Whoever meets an abbreviation or a word of the field finds it in the glossary."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
GLOSSARY = (ROOT / "book/glossary.md").read_text("utf-8")
PAGES = [
    path
    for path in [*sorted((ROOT / "book").rglob("*.md")), *sorted((ROOT / "notebooks").glob("*.md"))]
    if path.name != "glossary.md"
]
ENTRIES = re.findall(r"^[^\s:`].*$", GLOSSARY.partition("{glossary}")[2], re.M)  # a name each

# What needs no entry: why, and the words.
KNOWN = {
    "a model or a family of models": "EXAONE GLM GPT OSS",
    "a data set, explained in chapter 3": "ASAP FLASK HANNA MT",
    "the paper; chapters 15 to 18": "RULERS",
    "an institution, in the name of its tool": "RAND",
    "a licence, with its text": "BSD BY CC CC0 MIT",
    "a conference or journal, in a source": "ACL ICLR TACL",
    "everybody knows it": "CITATION CUDA HTML MB MiB NVIDIA README URL US UTF VS",
    "a symbol or a prompt's own word, where it stands": "HASH LOCKED MS RESULT",
}  # fmt: skip

# Words that textbooks on measurement and papers on judging explain, and readers may not know.
FIELD = """
alternative annotator test · argmax · bootstrap · calibration · cluster · Cramér's V · degrees of
freedom · design effect · endpoint · entropy · equivalence · expected score · flip rate · gold ·
greedy · intraclass correlation · jackknife · Kendall · minimum detectable effect · null ·
permutation test · placebo · position bias · primacy · pseudoreplication · pull · recency ·
reliability · shrinkage · standard deviation · system · temperature · tie · token · variance
components · Wasserstein distance · Williams square
"""

FENCE = re.compile(r"(`{3,})(?:\{([\w:-]+)\})?")
CODE = {None, "code-block", "code-cell", "eval-rst", "math"}  # other directives hold prose
NOT_PROSE = re.compile(
    r"\A---\n.*?^---$"  # what jupytext keeps
    r"|^:\w[\w-]*:.*?$"  # options of a directive
    r"|\$\$.*?\$\$|\$[^$\n]*\$|\{[\w:]+\}`[^`]*`|`[^`\n]*`|\]\([^)\s]*\)|https?://\S+",
    re.M | re.S,
)
ABBREVIATION = re.compile(r"(?<![\w./])(?:[A-Z]{2,}[0-9]?|NaN|[KMGT]iB)(?=s?\b)")


def prose(text):
    """What is read as sentences: no code, no mathematics, no addresses."""
    kept, open_ = [], []
    for line in text.splitlines():
        fence = FENCE.match(line)
        if fence and open_ and line.strip() == open_[-1][0]:
            open_.pop()
        elif fence:
            open_.append(fence.groups())
        elif not any(kind in CODE for _, kind in open_):
            kept.append(line)
    assert open_ == []
    return NOT_PROSE.sub(" ", "\n".join(kept))


TEXTS = {path.stem: prose(path.read_text("utf-8")) for path in PAGES}


def explained():
    """Every word of every entry's name, also as the papers write their designs: PLACEBO."""
    words = {word for entry in ENTRIES for word in re.findall(r"[\w+-]+", entry)}
    return words | {word.upper() for word in words if len(word) > 3}


def abbreviations(text):
    """Words of capital letters; names such as SummEval or McNemar are none."""
    return set(ABBREVIATION.findall(text))


def test_an_abbreviation_is_seen_in_prose_and_not_in_code():
    text = "---\nABC: 1\n---\nThe ICC of GPT-4, GPUs, NaN and JSONL `XYZ`, $QWK$\n"
    text += "```python\nUVW\n```\n"
    text += "```{glue:figure} AB\n:alt: CD\nA caption with MAD.\n```\nAnd KL.\n"
    assert abbreviations(prose(text)) == {"ICC", "GPT", "GPU", "NaN", "JSONL", "MAD", "KL"}


@pytest.mark.parametrize("page", TEXTS)
def test_every_abbreviation_on_a_page_is_explained(page):
    known = {word for words in KNOWN.values() for word in words.split()}
    parts = {part for word in explained() for part in word.split("-")}
    assert abbreviations(TEXTS[page]) - known - explained() - parts == set()


def test_no_exception_is_left_that_no_page_needs():
    used = set().union(*map(abbreviations, TEXTS.values()))
    known = [word for words in KNOWN.values() for word in words.split()]
    assert len(known) == len(set(known))
    assert [word for word in known if word not in used] == []
    assert [word for word in known if word in explained()] == []


def test_the_words_of_the_field_that_the_book_uses_have_an_entry():
    named = ", ".join(ENTRIES).lower()
    words = [" ".join(word.split()) for word in FIELD.split("·")]
    assert [word for word in words if word.lower() not in named] == []
    text = " ".join(" ".join(TEXTS.values()).lower().replace("’", "'").split())
    assert [word for word in words if word.lower() not in text] == []


def test_what_the_page_of_definitions_defines_has_an_entry():
    bold = re.findall(r"^\*\*([^*]+?)\.?\*\*", (ROOT / "book/notation.md").read_text("utf-8"), re.M)
    heads = " ".join(ENTRIES).lower()
    plain = {
        name.replace("$", "").lower()
        for name in bold
        if not re.match(r"Theirs|Ours|NaN|A text", name)
    }
    synonyms = {
        "shares": "share",
        "quadratic weighted kappa": "qwk",
        "the best monotone map": "monotone map",
        "gate": "evidence gate",
    }
    assert len(plain) > 10
    assert [name for name in sorted(plain) if synonyms.get(name, name) not in heads] == []


def test_entries_are_unique_and_have_a_sentence_each():
    assert len(ENTRIES) == len({entry.lower() for entry in ENTRIES}) > 80
    paragraphs = GLOSSARY.partition(":sorted:")[2].removesuffix("```\n").strip().split("\n\n")
    for entry in paragraphs:
        *names, said = entry.split("\n")
        assert [name for name in names if name not in ENTRIES] == []
        assert re.fullmatch(r"  \S.*[.?)!\"]", said), entry
