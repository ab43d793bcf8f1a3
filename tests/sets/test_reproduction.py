"""The report: every numbered item is in it, and each number follows from a file."""

import re
import sys
from pathlib import Path

import pytest

from rubricnb.sets.papers import VERDICTS, claims, paper_items

sys.path.insert(0, str(Path(__file__).parents[2] / "_ext"))
from choices import HEADER, choices
from reproduction import (
    COUNTS,
    ITEMS,
    at_full_size,
    compute,
    counts,
    full_size,
    rows_of,
)

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "book" / "reproduction.md").read_text("utf-8")


def test_the_page_asks_for_every_document_and_types_no_cell():
    asked = re.findall(r"```{reproduction-items} (.+)", PAGE)
    assert sorted(asked) == sorted(paper_items()["paper"].unique())
    assert "|" not in PAGE
    assert "list-table" not in PAGE


@pytest.mark.parametrize("paper", list(paper_items()["paper"].unique()))
def test_every_row_of_the_table_is_in_the_report(paper):
    own = paper_items().query("paper == @paper")
    rows = rows_of(paper)
    assert [row[0] for row in rows] == list(own["item"])
    assert all(len(row) == len(ITEMS) and all(row) for row in rows)


def test_counts_are_those_of_the_statements():
    said = claims()
    for paper, *cells in counts():
        row = dict(zip(COUNTS[1:], map(int, cells), strict=True))
        own = said[said["paper"] == paper]
        assert row["recomputed statements"] == (own["kind"] == "identity").sum()
        assert row["of these hold"] <= row["recomputed statements"]
        assert row["statements about judges"] == (own["kind"] == "claim").sum()


def test_a_table_says_how_many_of_its_numbers_wait_for_a_judge():
    results = {row[0]: row[4] for row in rows_of("position bias v2")}
    assert "statements about judges: 96" in results["Table 2"]
    assert "not run at full size" in results["Table 2"]
    assert results["Figure 11"] == "no printed number to compare"


def test_recordings_add_up():
    rows = compute()
    assert len(rows) > 5
    assert all(int(answers.replace(",", "")) > 0 for _, _, _, answers, *_ in rows)


def test_each_choice_gives_two_numbers():
    rows = choices()
    assert len(rows) == 6
    assert all(len(row) == len(HEADER) for row in rows)
    numbers = [
        [float(re.sub(r"[ %]", "", x).replace("−", "-")) for x in row[4:]]
        for row in rows
    ]
    spread, winners, gate, halves, *_ = numbers
    assert spread[1] / spread[0] == pytest.approx((10 / 9) ** 0.5, abs=0.003)
    assert winners[0] >= winners[1]
    assert gate[0] >= gate[1]
    assert halves[0] >= halves[1]


def test_statements_that_were_held_against_a_judge_at_full_size_are_in_the_report():
    rows, judged = at_full_size(), full_size()
    assert len(rows) == len(judged) > 10
    assert (judged["judge"] == "").all()
    assert set(judged["verdict"]) <= set(VERDICTS)
    decided = judged[judged["verdict"] != "cannot say"]
    assert decided[["low", "high"]].notna().all(axis=None)
    told = {row[0]: row[4] for row in rows_of("position bias v2")}
    assert "Qwen 1.5B at full size" in told["Figure 9"]
    assert "{reproduction-full-size}" in PAGE
    assert any("H200" in machine for _, _, machine, *_ in compute())
