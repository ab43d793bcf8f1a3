"""The steps that chapters share: a judge's name in the papers,
a paper's table beside ours.
"""

import re
from types import SimpleNamespace

import numpy as np
import pytest
from bs4 import BeautifulSoup

import rubricnb as rb
from rubricnb.book import notebooks as book
from rubricnb.book import tables
from rubricnb.sets.papers import check_paper_judge, paper_judges
from tools import building

ROOT = book.find_root()


@pytest.fixture
def rows_of(monkeypatch):
    """The rows of the last shown table as a reader sees it, cells joined by bars."""
    kept = SimpleNamespace(html="")

    def glue(name, what, display):
        if display:
            kept.html = what.to_html()

    monkeypatch.setattr(tables, "_glue", glue)

    def rows():
        shown = BeautifulSoup(kept.html, "html.parser").select("tr")
        cells = [[cell.text for cell in row.select("td")] for row in shown]
        return ["|".join(row) for row in cells if row]

    return rows


@pytest.mark.parametrize("stem", building.notebooks(ROOT))
def test_every_judge_of_its_papers_can_be_named_in_a_chapter(stem):
    told = rb.data.claims().query("chapter == @stem")
    if "paper_judge" not in {
        parameter.name for parameter in book.parameters(stem, ROOT)
    }:
        return
    names = paper_judges(told.paper.unique())
    assert len(names) > 3
    assert [check_paper_judge(name, told.paper.unique()) for name in names] == names
    assert set(told.judge) & set(names)


@pytest.mark.parametrize(
    ("name", "who"), [("", "your judge"), ("OSS-120B", "oss-120b")]
)
def test_a_chapter_takes_the_name_as_ids_have_it(name, who):
    assert rb.Chapter("A_bias_cost", {"paper_judge": name}).who == who


def test_both_versions_judges_are_those_of_their_tables():
    assert len(paper_judges(["position bias v1"])) == 7
    assert "Qwen3-8B-Think" in paper_judges(["position bias v1"])
    assert len(paper_judges(["position bias v2"])) == 6
    every = paper_judges()
    assert len(every) == len(set(every)) > 15


@pytest.mark.parametrize(
    ("stem", "name", "said"),
    [
        ("07", "gemma-3-27b", "did you mean 'Gemma-3-27B'"),
        ("A_bias_cost", "Qwen3-32B-Thinking", "did you mean 'Qwen3-32B-Think'"),
        (
            "09",
            "Qwen3-32B",
            "a judge of position bias v1 and scoring bias, which chapters 01",
        ),
        ("A_bias_cost", "Gemma-3-27B", "a judge of position bias v2"),
        (
            "17",
            "gpt-4",
            "There are: GPT-4o-mini, GPT-4o, Llama-3.1-8B, Llama-3.1-70B. Leave it",
        ),
        ("05", "nobody at all", "There are: GPT-OSS-20B"),
    ],
)
def test_a_judge_that_no_paper_of_the_chapter_has_is_refused(stem, name, said):
    papers = rb.data.claims(stem).paper.unique()
    with pytest.raises(ValueError, match=f"paper_judge = {name!r}") as refused:
        check_paper_judge(name, papers)
    assert said in str(refused.value)


def test_a_chapter_refuses_a_name_that_no_paper_has():
    with pytest.raises(ValueError, match="paper_judge = 'Gemma'"):
        rb.Chapter("05", {"paper_judge": "Gemma"})


def test_the_readers_judge_is_on_top_and_the_named_one_next(rows_of):
    chapter = rb.Chapter("05", {"paper_judge": "Gemma-3-27B"})
    own = {
        f"v2/table-2/gemma-3-27b/{name}/{column}": 1.0
        for name in ("hanna", "summeval")
        for column in ("chi2", "pos1")
    }
    chapter.beside_paper("tab", "v2/table-2", own, {"chi2": "χ²", "pos1": "Pos1"})
    rows = rows_of()
    assert rows[:2] == ["Gemma-3-27B|hanna|here|1|1", "Gemma-3-27B|summeval|here|1|1"]
    assert rows[2:4] == [
        "Gemma-3-27B|hanna|paper|395.3|13.9",
        "Gemma-3-27B|summeval|paper|1691.7|11.5",
    ]
    assert len(rows) == 2 + 24


def test_printed_numbers_keep_their_digits_and_ours_are_rounded(rows_of):
    chapter = rb.Chapter("05", {})
    own = {
        "v2/table-2/your judge/a/chi2": 1234.5678901234,
        "v2/table-2/your judge/b/chi2": -1e-17,
        "v2/table-2/your judge/c/chi2": (0.123456, -0.5, np.nan),
        "v2/table-2/your judge/d/chi2": (0.123456, -0.54321, 1.0),
        "v2/table-2/your judge/e/chi2": np.nan,
    }
    chapter.beside_paper("tab", "v2/table-2", own, {"chi2": "χ²"})
    ours = [row.split("|")[-1] for row in rows_of()[:5]]
    assert ours == ["1234.6", "0", "0.1235", "0.123 [−0.543, 1]", "–"]


def test_a_paper_s_own_interval_has_a_row_of_its_own(rows_of):
    chapter = rb.Chapter("07", {})
    cell = "v2/table-3/your judge/hanna/balanced-fixed"
    printed = {"v2/table-3/gemma-3-27b/hanna/balanced-fixed": (0.07, 0.036, 0.106)}
    chapter.beside_paper(
        "tab",
        "v2/table-3",
        {cell: (0.1, 0.0, 0.2)},
        {"balanced-fixed": "− FIXED"},
        printed,
        {cell: (0.1, 0.05, 0.15)},
    )
    rows = rows_of()
    assert rows[:2] == [
        "your judge|hanna|here, our interval|0.1 [0, 0.2]",
        "your judge|hanna|here, the paper's interval|0.1 [0.05, 0.15]",
    ]
    assert "Gemma-3-27B|hanna|paper|0.07 [0.036, 0.106]" in rows
    assert "Gemma-3-12B|hanna|paper|−0.004" in rows


def test_a_row_of_ours_names_its_dataset(rows_of):
    chapter = rb.Chapter("A_bias_cost", {"dataset": "hanna+summeval"})
    own = {"v1/table-6/your judge/cost-default": 3.0}
    chapter.beside_paper("tab", "v1/table-6", own, {"cost-default": "cost"})
    assert rows_of()[0] == "your judge|here, hanna + summeval|3"
    own = {"v1/table-4/your judge/hanna/r": 0.5}
    chapter.beside_paper("tab", "v1/table-4", own, {"r": "r"})
    assert rows_of()[0] == "your judge|hanna|here|0.5"
    chapter = rb.Chapter("05", {"dataset": "csv", "path": "in/My Library.csv"})
    own = {"v2/table-2/your judge/My Library/chi2": 3.0}
    chapter.beside_paper("tab", "v2/table-2", own, {"chi2": "χ²"})
    assert rows_of()[0] == "your judge|My Library|here|3"


def test_a_reading_of_ours_is_never_printed_as_the_papers(rows_of):
    """Appendix C prints four values of a judge; "flat" is a word."""
    chapter = rb.Chapter("12", {})
    heads = {"0": "at 0", "1": "at 1", "v": "V", "r": "r"}
    chapter.beside_paper("tab", "v2/appendix-c/temperature", {}, heads)
    assert rows_of()[0] == "your judge|–|not known here|–|–"
    assert len(rows_of()) == 3  # r and the sd
    assert not any("0.02" in row or "0.03" in row for row in rows_of())
    chapter.verdicts({"v2/appendix-c/temperature/gemma-3-12b/hanna/v": 0.01})
    (flat,) = [row for row in rows_of() if "Gemma-3-12B, hanna" in row]
    assert "|(as we read it: ≤ 0.02)|" in flat


@pytest.mark.parametrize(
    ("claim", "values", "expected"),
    [
        ("v2/criterion/single-read", (0.07, 0.2), "(summeval)|= 0.075 ± 0.015|0.2 ["),
        ("v2/criterion/single-read", (-0.2, 0.1), "(hanna)|= 0.075 ± 0.015|−0.2 ["),
        ("v2/6/criteria-rank", (30.0, 20.0), "(summeval)|(as we read it: ≥ 16.2)|20 ["),
        ("v2/criterion/single-read", (0.07, np.nan), "± 0.015|not measured here|"),
        ("v2/criterion/single-read", (np.nan, 0.07), "± 0.015|not measured here|"),
    ],
)
def test_what_is_said_of_all_datasets_is_held_against_the_worst_named(
    rows_of, claim, values, expected
):
    own = {
        name: (value, value - 0.001, value + 0.001)
        for name, value in zip(("hanna", "summeval"), values, strict=True)
    }
    judged = rb.Chapter("10", {}).verdicts({claim: own}).set_index("claim_id")
    (row,) = [r for r in rows_of() if expected in r]
    known = np.isfinite(values).all()
    assert (judged.verdict[claim] == "cannot say") != known
    assert row.endswith(judged.verdict[claim])


def test_a_column_that_nobody_fills_is_left_out(rows_of, monkeypatch):
    shown = {}
    monkeypatch.setattr(
        tables, "show", lambda name, what, **_: shown.update({name: what})
    )
    chapter = rb.Chapter("A_bias_cost", {})
    heads = {"r": "r", "cost-lowest": "lowest cost"}
    for table in ("table-4", "table-6"):
        chapter.beside_paper(table, f"v1/{table}", {}, heads)
    assert list(shown["table-4"]) == ["judge", "", "from", "r"]
    assert list(shown["table-6"]) == ["judge", "from", "lowest cost"]


def test_captions_say_where_the_readers_judge_stands():
    """It is on top of every table of a paper."""
    for path in sorted((ROOT / "notebooks").glob("*.md")):
        text = path.read_text("utf-8")
        for name in re.findall(r'beside_paper\(\s*"(tab-[\w-]+)"', text):
            caption = text.split(f"```{{glue:figure}} {name}\n")[1].split("```")[0]
            assert "on top" in caption, (path.name, name)
