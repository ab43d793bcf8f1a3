"""Every rule about the documents holds, and sees a text that breaks it."""

import pytest

from rubricnb.book.notebooks import find_root
from tools.clone import Clone
from tools.lint import ABBREVIATION, RULES, TICS, prose, tic_report, tics

ROOT = find_root()
HASH = "    --hash=sha256:"
BREAKS = [  # rule, file, what stands there, what stands there instead, what is said
    ("Python names", "book/quickstart.md", "rb.load(", "rb.lode(", "rb.lode"),
    (
        "public names alone",
        "notebooks/02_balanced_permutation.md",
        "import rubricnb as rb\n",
        "import rubricnb as rb\nfrom rubricnb.book.tables import say\n",
        "from rubricnb.book.tables import say",
    ),
    (
        "public names alone",
        "notebooks/02_balanced_permutation.md",
        "import rubricnb as rb\n",
        "import rubricnb.book.tables\n",
        "import rubricnb.book.tables",
    ),
    (
        "public names alone",
        "notebooks/02_balanced_permutation.md",
        "rb.balanced(",
        "rb.hashing(",
        "rb.hashing",
    ),
    (
        "public names alone",
        "notebooks/02_balanced_permutation.ipynb",
        "rb.plots.STYLE",
        "rb.styles.STYLE",
        "rb.styles",
    ),
    ("command names", "CONTRIBUTING.md", "`make test`", "`make tests`", "make tests"),
    (
        "command names",
        "book/quickstart.md",
        "rubricnb check",
        "rubricnb chek",
        "rubricnb chek",
    ),
    ("command names", "book/running-a-study.md", "-p n_items", "-p n_itemz", "n_itemz"),
    (
        "troubleshooting list",
        "book/running-a-study.md",
        "## Troubleshooting\n",
        "## Troubleshooting\n\n| `this was never said` | x |\n",
        "this was never said",
    ),
    (
        "path or a link",
        "book/layout.md",
        "rubricnb/sets/published/items.csv",
        "rubricnb/boook.csv",
        "boook",
    ),
    ("path or a link", "README.md", "](CONTRIBUTING.md", "](CONTRIB.md", "CONTRIB.md"),
    ("Readers find", "README.md", "audit-sample.html", "audit.html", "audit-sample"),
    ("Readers find", "book/index.md", "cite", "site", "how to cite"),
    (
        "examples to copy",
        "examples/own-data/my_data.csv",
        "instruction",
        "instruktion",
        "instruk",
    ),
    (
        "examples to copy",
        "examples/own-data/my_rubric.yml",
        "criterion:",
        "trait:",
        "another",
    ),
    ("has its place", "book/published.md", "{published-table}", "{table}", "published"),
    (
        "has its place",
        "book/api.md",
        "public-index:: ",
        "public-index:: rubricnb ",
        "api.md",
    ),
    ("has its place", "book/api/data.md", "{frame-columns} ", "{frame} ", "frames"),
    ("piece of advice", "book/guide.md", "{doc}`../notebooks/", "{doc}`../other/", "|"),
    (
        "opens with a finding",
        "notebooks/05_position_bias.md",
        "answer\n**",
        "answer\n",
        "in bold",
    ),
    (
        "recorded numbers",
        "notebooks/02_balanced_permutation.md",
        "answer\n**",
        "answer\n**{glue:text}`n` ",
        "{glue:text}`n`",
    ),
    (
        "recorded numbers",
        "notebooks/02_balanced_permutation.md",
        "{div} story\n",
        "{div} story\n{glue:text}`v:.2f` ",
        "{glue:text}`v:.2f`",
    ),
    (
        "recorded numbers",
        "notebooks/02_balanced_permutation.md",
        "\n## ",
        "\nBut Qwen 1.5B has {glue:text}`v`.\n\n## ",
        "But Qwen 1.5B has",
    ),
    (
        "recorded numbers",
        "notebooks/02_balanced_permutation.md",
        "\n## ",
        "\n{recorded}`nothing-of-it`\n\n## ",
        "nothing-of-it is not recorded",
    ),
    ("slide says", "slides/2-position-bias.md", "ecorded*", "ecord*", "2-position"),
    ("measured rate", "results/gpu/throughput.csv", "59b13457", "", "measure again"),
    ("measured rate", "book/gpu-cluster.md", "since been replaced", "", "does not say"),
    ("abbreviation", "book/guide.md", "# ", "# The XYZ of ", "guide.md: XYZ"),
    (
        "abbreviation",
        "book/glossary.md",
        "{glossary}\n:sorted:\n",
        "{glossary}\n:sorted:\n\nHTML\n  A text.\n",
        "HTML needs no exception",
    ),
    ("field's words", "book/glossary.md", "argmax", "argmin", "argmax"),
    ("field's words", "book/notation.md", "# ", "**Zweite.** # ", "zweite"),
    (
        "entry of the glossary",
        "book/glossary.md",
        ":sorted:\n",
        ":sorted:\n\nnew\n  said",
        "new",
    ),
    ("citation has", "book/guide.md", "# ", "{cite}`nobody2000` # ", "nobody2000"),
    (
        "what its format",
        "CITATION.cff",
        "type: software",
        "type: book",
        "its version or type",
    ),
    ("what its format", "CITATION.cff", "message:", "massage:", "massage"),
    ("bibliography say", "CITATION.cff", "license: ", "license: X-", "license"),
    ("bibliography say", "_config.yml", "title: ", "title: X", "title"),
    ("bibliography say", "book/references.bib", "year = {2026", "year = {2031", "2031"),
    (
        "at most six",
        "rubricnb/sets/catalogue.py",
        "\nimport ",
        "\nimport rubricnb.statistics.position\nimport ",
        "reaches rubricnb/statistics/position.py",
    ),
    (
        "only rooms below",
        "book/layout.md",
        "corrections   engines",
        "engines",
        "needs this picture",
    ),
    (
        "own folder alone",
        "studies/cost.py",
        "\nimport pandas",
        "\nfrom rubricnb.engines.vllm import _open\nimport pandas",
        "engines.vllm._open",
    ),
    (
        "part that declares",
        "pyproject.toml",
        "parquet = [",
        'parquet = ["filelock", ',
        "parquet: no module of rubricnb imports filelock",
    ),
    (
        "part that declares",
        "pyproject.toml",
        '"numpy>=2.0",',
        '"statsmodels",',
        "dependencies: no module of rubricnb imports statsmodels",
    ),
    (
        "ratchet rises",
        "tools/ratchet.csv",
        "tools,private imports,0",
        "tools,private imports,-1",
        "tools has 0 private imports, 1 more than the -1",
    ),
    ("ratchet rises", "tools/ratchet.csv", "tools,private imports,0\n", "", "no row"),
    ("one commit", ".github/workflows/test.yml", "@", "@v4 #", "@v4"),
    (
        "that deploys",
        ".github/workflows/test.yml",
        "contents: read",
        "contents: write",
        "write",
    ),
    (
        "that deploys",
        ".github/workflows/book.yml",
        "needs: build",
        "needs: []",
        "deploy",
    ),
    ("vendored", "_static/vendor/SHA256SUMS", "  ", "  x", "x"),
    ("The lock", "requirements-hashed.txt", HASH, HASH + "x", "its hashes"),
    (
        "The lock",
        "requirements-hashed.txt",
        "numpy==",
        "numpy==99!",
        "the lock has 99!",
    ),
    ("The lock", "constraints.txt", "==", "==99!", "the lock has"),
]


@pytest.mark.in_turn
@pytest.mark.parametrize(("part", "path", "old", "new", "said"), BREAKS)
def test_a_text_that_breaks_a_rule_is_named(part, path, old, new, said):
    text = (ROOT / path).read_text("utf-8")
    assert old in text
    (check,) = (check for name, check in RULES.items() if part in name)
    assert said in "\n".join(check(Clone(ROOT, {path: text.replace(old, new)})))


def test_an_abbreviation_is_seen_in_prose_and_not_in_code():
    text = "---\nABC: 1\n---\nThe ICC of GPT-4, GPUs, NaN and JSONL `XYZ`, $QWK$\n"
    text += "```python\nUVW\n```\n"
    text += "```{glue:figure} AB\n:alt: CD\nA caption with MAD.\n```\nAnd KL.\n"
    seen = {"ICC", "GPT", "GPU", "NaN", "JSONL", "MAD", "KL"}
    assert {*ABBREVIATION.findall(prose(text))} == seen


PLANTED = [  # kind, how often, text
    ("fronted complement", 1, "Of the summaries it takes the first line."),
    (
        "clause as subject",
        4,
        "What fails is one reply. | How it is | That texts win | Whether it did",
    ),
    (
        "false friend",
        3,
        "The score stands here.\n* It can be mended, which spares a call.",
    ),
    (
        "old word",
        6,
        "Hardly. The likeliest score beside endless ones, made anew; nought.",
    ),
    ("one", 4, "Nobody answers, as one may see; whoever asks cannot say."),
    ("is no", 2, "A failed request is none. That is no merit."),
    ("of yours", 2, "Ask a judge of yours about texts of your own."),
    ("personification", 2, "A judge has a taste for lists and changes its mind."),
    ("place", 2, "The place of an option decides among places."),
]
CLEAN = """# What stands here is a heading, of yours
What stands for a score? How to ask: there is no limit, and it takes place here.
The judge `stands beside` the first position in place of another one.
```python
nobody = "a place of yours"
```
"""


@pytest.mark.parametrize(("kind", "n", "text"), PLANTED)
def test_a_planted_tic_is_counted(kind, n, text):
    assert [found for found, _ in tics(text)] == [kind] * n


def test_every_kind_of_tic_is_planted():
    assert {kind for kind, *_ in PLANTED} == {*TICS}


def test_the_report_counts_tics_in_10_000_words_and_fails_nothing():
    assert tics(CLEAN) == []
    page = {"SECURITY.md": "The place of an option decides.\n\n" + "word " * 94}
    report = tic_report(Clone(ROOT, page)).splitlines()
    (line,) = (line for line in report if "SECURITY.md" in line)
    assert line.strip() == "100.0 in 10,000 words of SECURITY.md (1 in 100): place 1"
    assert report[-1].count("in total") == 1
