"""The class of ninety minutes: timetable, slides and notebook tell of the same minutes."""

import ast
import re

import jupytext
import numpy as np
import pytest

import rubricnb as rb
from rubricnb import book

ROOT = book.find_root()
DECK = (ROOT / "slides" / "0-ninety-minutes.md").read_text("utf-8").split("\n---\n")
PAGE = (ROOT / "book" / "teaching.md").read_text("utf-8")
CELLS = jupytext.read(ROOT / "notebooks" / "90_minutes.md").cells


def spans(texts):
    return [tuple(map(int, found)) for text in texts for found in re.findall(r"(\d+)–(\d+)", text)]


def test_six_slides_fill_ninety_minutes_without_a_gap_and_the_timetable_has_the_same():
    notes = [slide.partition("\nNote: ")[2] for slide in DECK]
    assert len(notes) == 6
    taken = spans(note.partition(".")[0] for note in notes)
    assert len(taken) == 6
    assert [start for start, _ in taken] == [0, *(end for _, end in taken[:-1])]
    assert taken[-1][1] == 90
    table = PAGE.partition("## Ninety minutes")[2].partition("\n## ")[0]
    assert spans(re.findall(r"^\| (\S+) \|", table, re.M)) == taken


def test_half_a_day_is_half_a_day():
    table = PAGE.partition("## Half a day")[2].partition("\n## ")[0]
    taken = spans(re.findall(r"^\| (\S+) \|", table, re.M))
    assert [start for start, _ in taken] == [0, *(end for _, end in taken[:-1])]
    assert taken[-1][1] <= 4 * 60


def test_every_slide_with_a_figure_says_where_its_numbers_come_from():
    drawn = [slide.partition("\nNote: ")[0] for slide in DECK if "figure(" in slide]
    assert len(drawn) >= 4
    for slide in drawn:
        assert re.search(r"\*(recorded|live|simulated)\*", slide, re.I)


def test_the_notebook_is_short():
    code = [cell for cell in CELLS if cell.cell_type == "code"]
    shown = [cell for cell in code if not set(cell.metadata.get("tags", [])) & {"hide-input"}]
    assert len(shown) <= 15
    assert all(len(line) < 80 for cell in code for line in cell.source.splitlines())


def checks():
    """Every check of the notebook: what it asks for, and its slips."""
    for cell in CELLS:
        if cell.cell_type == "code" and "rb.checks.close(" in cell.source:
            call = ast.parse(cell.source).body[-1].value.args[0]
            yield pytest.param(call, id=cell.source.split(" ")[0])


@pytest.fixture(scope="module")
def scope():
    items = rb.load("minibench")
    balanced = rb.plan(items, rb.balanced(5), readout="logprobs")
    return {"rb": rb, "items": items, "balanced": balanced}


@pytest.mark.parametrize("call", [*checks()])
def test_every_slip_has_its_own_hint_and_the_answer_is_right(call, scope):
    (slips,) = (k.value for k in call.keywords if k.arg == "slips")
    values = eval(compile(ast.Expression(slips), "slips", "eval"), scope)
    right = eval(compile(ast.Expression(call.args[1]), "right", "eval"), scope)
    assert len(values) >= 4

    def said(answer):
        return eval(compile(ast.Expression(call), "check", "eval"), scope | {asked: answer})

    asked = call.args[0].id
    assert said(right) == "Right."
    assert said(...).startswith("Not answered")
    for hint, value in values.items():
        assert said(np.float64(value)) == f"Not yet: {hint}"
