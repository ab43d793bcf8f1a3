"""What the book makes of a frame's HTML: a table whose cells are text."""

import importlib
import re
import sys
from pathlib import Path
from types import SimpleNamespace

import pandas as pd
import pytest
import yaml
from bs4 import BeautifulSoup
from docutils import nodes
from docutils.utils import new_document
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from mdit_py_plugins.dollarmath import dollarmath_plugin

from rubricnb.book import notebooks as book
from rubricnb.book import tables
from rubricnb.core.results import judges
from tools import building

EXTENSIONS = Path(__file__).parents[1] / "_ext"
ATTACKS = [
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "</td></tr></table><h1>Ours</h1><iframe src='//example.org'></iframe>",
    "<style>body{display:none}</style>",
    "<b onmouseover=alert(1)>5</b>",
    "<td onclick=alert(1)>5",
    "<a href='javascript:alert(1)'>5</a>",
    # What browsers read otherwise than Python's html.parser does.
    "<!--><img src=x onerror=alert(1)>",
    "<!--a--!><img src=x onerror=alert(1)>",
    "<![CDATA[><img src=x onerror=alert(1)>]]>",
    "<?php ><img src=x onerror=alert(1)>",
    "<!x><img src=x onerror=alert(1)>",
    "</style><img src=x onerror=alert(1)>",
    "<svg><style><img src=x onerror=alert(1)></style></svg>",
    "<math><mi><table><mglyph><style><!--</style><img title='--><img src=x "
    "onerror=alert(1)>'>",
    "<noscript><p title='</noscript><img src=x onerror=alert(1)>'>",
    "<p style='position:fixed;inset:0' id=main>5",
]
# No browser finds anything but these in what it is given.
HARMLESS = re.compile(
    r"</?(?:br|caption|col|colgroup|div|p|table|tbody|td|tfoot|th|thead|tr)"
    r"(?: (?:class|colspan|rowspan|scope|tabindex|role|aria-label"
    r"|data-column)=\"[^\"<>]*\")*>"
)


@pytest.fixture(scope="module")
def extensions():
    """The book's extensions, which import one another by name."""
    sys.path.insert(0, str(EXTENSIONS))
    yield importlib.import_module
    sys.path.remove(str(EXTENSIONS))


@pytest.fixture(scope="module")
def journal(extensions):
    return extensions("book_rules").journal


def acts(html):
    """Whatever begins with ``<`` and is not a plain part of a table,
    however it is parsed.
    """
    return re.findall(r"<.{,40}", HARMLESS.sub("", html), re.S)


def shows(frame):
    """As a cell may show it: a frame, the same through pandas' Styler,
    and a text alone.
    """
    styles = [
        frame.style,
        frame.style.format(precision=2),
        frame.style.hide(axis="index"),
    ]
    return [frame.to_html(), *(style.to_html() for style in styles), frame.iloc[-1, 0]]


@pytest.mark.parametrize("attack", ATTACKS)
def test_a_text_in_a_table_does_not_act_on_the_page(attack, journal):
    frame = pd.DataFrame(
        {"text": ["harmless", attack], attack: [1.5, 2.5]}, index=["a", attack]
    )
    assert all(acts(html) for html in shows(frame)), "this test would see nothing"
    for html in shows(frame):
        assert acts(journal(html)) == []
    for style in (frame.style, frame.style.format(precision=2)):
        shown = BeautifulSoup(journal(tables.styled(style)), "html.parser")
        assert shown.select("tbody td")[-2].get_text().split() == attack.split()


@given(
    text=st.text("<>/&;\"'= abcsriptonld", max_size=60).filter(
        lambda t: t.strip() != "nan"
    )
)
def test_a_text_in_a_frame_is_shown_as_it_is(text, journal):
    frame = pd.DataFrame({"text": [text]})
    cell = BeautifulSoup(journal(frame.to_html()), "html.parser").select_one("tbody td")
    assert cell.get_text().split() == text.split()


def test_of_a_styler_the_spans_stay_and_the_rules_go(journal):
    columns = pd.MultiIndex.from_product([["r"], ["low", "high"]])
    styled = pd.DataFrame([[1.0, 2.0]], columns=columns).style.set_properties(
        color="red"
    )
    soup = BeautifulSoup(journal(styled.to_html()), "html.parser")
    assert "color" not in str(soup)
    assert soup.select_one("th[colspan='2']").get_text() == "r"
    assert [c.get_text() for c in soup.select("td.number")] == ["1.000000", "2.000000"]


def test_what_only_a_program_calls_by_its_name_is_said_in_words(journal):
    frame = pd.DataFrame(
        {"item_id": [float("nan"), True], "√V²_U": ["0.5 [0.25, 0.75] a_b", "NaN"]},
        index=["n_items", "nan"],
    )
    soup = BeautifulSoup(journal(frame.to_html()), "html.parser")
    cells = [cell.get_text() for cell in soup.select("th, td")]
    assert cells == [
        "",
        "item id",
        "√V²_U",
        "n items",
        "–",
        "0.5 [0.25,\u00a00.75] a_b",
        "–",
        "yes",
        "–",
    ]


@pytest.mark.parametrize("paper", [True, False])
def test_a_page_shows_eight_rows_of_a_table_and_its_file_has_all(
    paper, extensions, tmp_path
):
    files = extensions("table_files")
    frame = pd.DataFrame({"k": range(20)}).style.hide(axis="index")
    raw = nodes.raw("", frame.to_html(), format="html")
    caption = extensions("book_rules").table_caption("", "", nodes.Text("k"))
    table = extensions("book_rules").captioned_table("", caption, raw, ids=["tab-k"])
    table["classes"] += ["paper"] * paper
    document = new_document("")
    document += table
    document.settings.env = SimpleNamespace(
        app=SimpleNamespace(outdir=tmp_path),
        docname="k",
        toc_fignumbers={},
        config=None,
    )
    files.TableFiles(document).run()
    listed = (tmp_path / "_downloads" / "tables" / "tab-k.csv").read_text().split()
    assert listed == ["k", *map(str, range(20))]
    html = "".join(raw.astext() for raw in table.findall(nodes.raw))
    shown = BeautifulSoup(html, "html.parser")
    assert len(shown.select("tbody tr")) == 20
    assert len(shown.select("tbody tr:not(.rest)")) == (20 if paper else 8)
    assert ("show all 20 rows" in shown.get_text()) is not paper


@pytest.mark.parametrize(
    ("column", "first", "last"),
    [
        ("verdict", "does not", "the count holds"),
        ("judge", *judges()["slug"].iloc[[-1, 0]]),
    ],
)
def test_the_rows_that_matter_are_shown_first_but_where_they_stand(
    column, first, last, extensions
):
    frame = pd.DataFrame({"paper says": "= 1", column: [last] * 9 + [first]})
    if column == "judge":
        frame = frame.drop(columns="paper says")
    raw = nodes.raw("", frame.to_html(index=False), format="html")
    cell = nodes.container("", raw)
    table = BeautifulSoup(raw.astext(), "html.parser").table
    assert extensions("table_files")._cut(raw, table)
    shown = BeautifulSoup(cell[0].astext(), "html.parser").select("tbody tr:not(.rest)")
    assert [row.find_all("td")[-1].get_text() for row in shown] == [last] * 7 + [first]


@pytest.mark.slow
@pytest.mark.parametrize("stem", ["03_datasets", "04_judges_and_prompts"])
def test_own_data_that_is_html_does_not_act_in_a_chapter_that_shows_texts(
    stem, tmp_path, journal
):
    attack = "".join(ATTACKS)
    rows = [
        {
            "item_id": f"{i}{attack}",
            "group_id": f"g{attack}",
            "candidate": f"c{i}{attack}",
            "instruction": attack,
            "response": f"{attack} {i}",
            "human": 1 + i % 5,
        }
        for i in range(10)
    ]
    name = "`<img src=x onerror=alert(1)> [a](javascript:b) *c*.csv"
    pd.DataFrame(rows).to_csv(tmp_path / name, index=False)
    levels = {level: f"Level {level}. {attack}" for level in range(1, 6)}
    rubric = {
        "rubric_id": "r",
        "criterion": f"c{attack}",
        "definition": attack,
        "levels": levels,
    }
    (tmp_path / "hostile.yml").write_text(yaml.safe_dump([rubric]))
    files = {"path": str(tmp_path / name), "rubric": str(tmp_path / "hostile.yml")}
    parameters = {"dataset": "csv", "judge": "simulated:unbiased", **files}
    known = {p.name for p in book.parameters(stem)}
    done = book.execute(stem, {k: v for k, v in parameters.items() if k in known})
    shown = {"html": [], "markdown": []}
    for cell in done.cells:
        for output in cell.get("outputs", ()):
            for kind, content in output.get("data", {}).items():
                kind = kind.split("/")[-1]  # glued ones have a prefix
                shown.setdefault(kind, []).append("".join(content))
    assert shown["html"]
    for html in shown["html"]:
        assert "<img" not in html, "not escaped where it comes from"
        assert acts(journal(html)) == []
    done.metadata.rubricnb["parameter_file"] = name
    # with the line of parameters
    shown["markdown"].append(building._page(done).cells[0].source)
    for text in shown["markdown"]:
        assert "<img" not in MarkdownIt().render(text)
        assert 'href="javascript' not in MarkdownIt().render(text)


FORMULAS = [
    *(
        f"{sign}SUM(A1)"
        for sign in "\uff1d\uff20\uff0b\uff0d\ufe66\ufe6b\ufe62\ufe63\u2212\u208b"
    ),
    "=1+1",
    "=cmd|' /C calc'!A0",
    "@SUM(1)",
    "+cmd|' /C calc'!A0",
    '-HYPERLINK("x")',
    "=x",
]
NUMBERS = {"−0.12": "-0.12", "+.5": "+.5", "1,234": "1234", "-1e-3": "-1e-3"}
KEPT = ["+0.1 [−0.2, 0.4]", "-0.10 [-0.2, 0.0]", "–", "a=b", "5 %"]


def test_a_downloaded_table_holds_no_formula_and_its_numbers_are_numbers(extensions):
    texts = [*FORMULAS, *NUMBERS, *KEPT]
    html = pd.DataFrame({"=HYPERLINK(1)": texts}).to_html(index=False)
    header, *rows = extensions("table_files").records(
        BeautifulSoup(html, "html.parser").table
    )
    assert header == ["'=HYPERLINK(1)"]
    assert [row[0] for row in rows] == [
        *(f"'{t}" for t in FORMULAS),
        *NUMBERS.values(),
        *KEPT,
    ]


def test_what_the_quick_start_shows_of_the_sample_is_its_sentence_and_its_table(
    extensions,
):
    html = (EXTENSIONS.parent / "book/audit-sample.html").read_text("utf-8")
    title, said, header, rows = extensions("shown").head(html)
    assert title.startswith("Audit of ")
    assert f'<p class="said">{said}</p>' in html
    assert header == ["What matters", "Measured [95 %]", "Verdict", "What to do"]
    assert len(rows) >= 3
    assert {len(row) for row in rows} == {4}
    assert [cell for row in rows for cell in row if "<" in cell or not cell] == []


def test_the_audit_s_page_shows_rows_of_the_sample_with_their_pictures(extensions):
    html = (EXTENSIONS.parent / "book/audit-sample.html").read_text("utf-8")
    named = re.search(
        r"{audit-rows} (.+)", (EXTENSIONS.parent / "book/audit.md").read_text("utf-8")
    )
    names = named[1].split(", ")
    rows = extensions("shown").picture_rows(html, names)
    assert [row[0] for row in rows] == names
    for name, measured, picture, verdict in rows:
        assert picture.startswith("<svg")
        assert f"{name}: {measured}" in picture  # the drawing says its numbers
        assert verdict
    with pytest.raises(KeyError):
        extensions("shown").picture_rows(html, ["a row that is not there"])


def test_what_a_block_of_python_prints_is_shown_and_nothing_of_the_next(extensions):
    assert extensions("shown").printed("x = 2\nprint(x + 1)\nx") == "3"
    with pytest.raises(NameError):
        extensions("shown").printed("print(x)")


def words_as_math(text):
    """Formulas that are words between two amounts in dollars."""
    reader = MarkdownIt().use(dollarmath_plugin, double_inline=True)
    inline = (child for token in reader.parse(text) for child in token.children or ())
    return [
        child.content
        for child in inline
        if child.type == "math_inline"
        and re.match(r"[0-9][0-9.,]*,? \(?[A-Za-z]{2,}", child.content)
    ]


@pytest.mark.parametrize("page", [*building.pages(), "README"])
def test_words_between_two_amounts_in_dollars_are_no_formula(page):
    source = EXTENSIONS.parent / f"{page}.md"
    assert words_as_math(source.read_text("utf-8")) == []


def test_words_between_two_amounts_are_seen():
    assert words_as_math("It is $0.10 (small) and $0.04 a call, $2n$ times.") != []
    assert words_as_math(r"It is \$0.10 (small) and \$0.04 a call, $2n$ times.") == []
