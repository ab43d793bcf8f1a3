"""What the book makes of a frame's HTML: a table whose cells are text."""

import importlib.util
import sys
from pathlib import Path

import pandas as pd
import pytest
import yaml
from bs4 import BeautifulSoup
from hypothesis import given
from hypothesis import strategies as st

from rubricnb import book

EXTENSIONS = Path(__file__).parents[1] / "_ext"
ATTACKS = [
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "</td></tr></table><h1>Ours</h1><iframe src='//example.org'></iframe>",
    "<style>body{display:none}</style>",
    "<b onmouseover=alert(1)>5</b>",
    "<td onclick=alert(1)>5",
    "<a href='javascript:alert(1)'>5</a>",
]


@pytest.fixture(scope="module")
def journal():
    sys.path.insert(0, str(EXTENSIONS))  # its modules import one another by name
    spec = importlib.util.spec_from_file_location("book_rules", EXTENSIONS / "book_rules.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    sys.path.remove(str(EXTENSIONS))
    return module.journal


def acts(html):
    """Tags that a frame does not need, and attributes that run something."""
    soup = BeautifulSoup(html, "html.parser")
    tags = {t.name for t in soup.find_all(["script", "img", "iframe", "h1", "a", "b", "svg"])}
    rules = {s.string for s in soup.find_all("style") if "body{" in str(s.string)}
    return tags | rules | {k for t in soup.find_all(True) for k in t.attrs if k.startswith("on")}


def shows(frame):
    """As a cell shows it: a frame, and the same through pandas' Styler, which escapes nothing."""
    return [frame.to_html(), frame.style.to_html(), frame.style.format(precision=2).to_html()]


@pytest.mark.parametrize("attack", ATTACKS)
def test_a_text_in_a_table_does_not_act_on_the_page(attack, journal):
    frame = pd.DataFrame({"text": ["harmless", attack], attack: [1.5, 2.5]}, index=["a", attack])
    assert any(acts(html) for html in shows(frame)), "this test would see nothing"
    for html in shows(frame):
        assert acts(journal(html)) == set()


@given(text=st.text("<>/&;\"'= abcsriptonld", max_size=60))
def test_a_text_in_a_frame_is_shown_as_it_is(text, journal):
    frame = pd.DataFrame({"text": [text]})
    cell = BeautifulSoup(journal(frame.to_html()), "html.parser").select_one("tbody td")
    assert cell.get_text().split() == text.split()


def test_a_stylers_own_rules_and_spans_stay(journal):
    columns = pd.MultiIndex.from_product([["r"], ["low", "high"]])
    styled = pd.DataFrame([[1.0, 2.0]], columns=columns).style.set_properties(color="red")
    soup = BeautifulSoup(journal(styled.to_html()), "html.parser")
    assert "color: red" in soup.style.string
    assert soup.select_one("th[colspan='2']").get_text() == "r"
    assert [c.get_text() for c in soup.select("td.number")] == ["1.000000", "2.000000"]


def test_html_that_is_no_table_is_shown_as_text(journal):
    soup = BeautifulSoup(journal("judge <script>alert(1)</script>, 5 reads"), "html.parser")
    assert soup.find("script") is None
    assert soup.get_text() == "judge <script>alert(1)</script>, 5 reads"


@pytest.mark.parametrize("stem", ["03_datasets", "04_judges_and_prompts"])
def test_own_data_that_is_html_does_not_act_in_a_chapter_that_shows_texts(stem, tmp_path, journal):
    attack = "".join(ATTACKS)
    rows = [
        {"item_id": f"{i}{attack}", "group_id": f"g{attack}", "candidate": f"c{i}{attack}",
         "instruction": attack, "response": f"{attack} {i}", "human": 1 + i % 5}
        for i in range(10)
    ]  # fmt: skip
    pd.DataFrame(rows).to_csv(tmp_path / "hostile.csv", index=False)
    levels = {level: f"Level {level}. {attack}" for level in range(1, 6)}
    rubric = {"rubric_id": "r", "criterion": f"c{attack}", "definition": attack, "levels": levels}
    (tmp_path / "hostile.yml").write_text(yaml.safe_dump([rubric]))
    files = {"path": str(tmp_path / "hostile.csv"), "rubric": str(tmp_path / "hostile.yml")}
    parameters = {"dataset": "csv", "judge": "simulated:unbiased", **files}
    known = {p.name for p in book.parameters(stem)}
    done = book.execute(stem, {k: v for k, v in parameters.items() if k in known})
    shown = [
        html
        for cell in done.cells
        for output in cell.get("outputs", ())
        for kind, html in output.get("data", {}).items()
        if kind.endswith("text/html")  # glued ones have a prefix
    ]
    assert shown
    for html in map("".join, shown):
        assert acts(journal(html)) == set()
