"""The class of ninety minutes: timetable,
slides and notebook tell of the same minutes.
"""

import ast
import re

import jupytext
import nbformat
import numpy as np
import papermill
import pytest

import rubricnb as rb
from rubricnb.book import notebooks as book
from tools import twins

ROOT = book.find_root()
DECK = (ROOT / "slides" / "0-ninety-minutes.md").read_text("utf-8").split("\n---\n")
PAGE = (ROOT / "book" / "teaching.md").read_text("utf-8")
CELLS = jupytext.read(ROOT / "notebooks" / "90_minutes.md").cells


def spans(texts):
    return [
        tuple(map(int, found))
        for text in texts
        for found in re.findall(r"(\d+)–(\d+)", text)
    ]


def test_six_slides_fill_ninety_minutes_without_a_gap_and_the_timetable_has_the_same():
    *notes, before = [slide.partition("\nNote: ")[2] for slide in DECK]
    assert before.startswith("Before the class:")
    assert len(notes) == 6
    taken = spans(note.partition(".")[0] for note in notes)
    assert len(taken) == 6
    assert [start for start, _ in taken] == [0, *(end for _, end in taken[:-1])]
    assert taken[-1][1] == 90
    table = PAGE.partition("## Ninety minutes")[2].partition("\n## ")[0]
    assert spans(re.findall(r"^\| (\S+) \|", table, re.M)) == taken


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


def test_every_chapter_has_a_check_that_knows_slips():
    """And what can be reckoned from the call alone
    is no right answer that is called a slip.
    """
    for path in sorted((ROOT / "notebooks").glob("*.md")):
        known = 0
        for cell in jupytext.read(path).cells:
            if cell.cell_type != "code" or "slips=" not in cell.source:
                continue
            for call in ast.walk(ast.parse(cell.source)):
                if not isinstance(call, ast.Call) or not ast.unparse(
                    call.func
                ).endswith("close"):
                    continue
                for slips in (k.value for k in call.keywords if k.arg == "slips"):
                    known += 1
                    right = value(call.args[1])
                    own = [value(v) for v in getattr(slips, "values", [])]
                    near = [
                        v
                        for v in own
                        if None not in (v, right) and np.isclose(v, right, 0.01)
                    ]
                    assert near == [], (path.stem, right)
        assert known >= 1, path.stem


def value(expression):
    """What an expression of numbers is; None for one that needs its notebook."""
    try:
        return eval(
            compile(ast.Expression(expression), "number", "eval"),
            {"np": np, "__builtins__": {}},
        )
    except (NameError, AttributeError):
        return None


@pytest.mark.parametrize("call", [*checks()])
def test_every_slip_has_its_own_hint_and_the_answer_is_right(call, scope):
    (slips,) = (k.value for k in call.keywords if k.arg == "slips")
    values = eval(compile(ast.Expression(slips), "slips", "eval"), scope)
    right = eval(compile(ast.Expression(call.args[1]), "right", "eval"), scope)
    assert len(values) >= 4

    def said(answer):
        return eval(
            compile(ast.Expression(call), "check", "eval"), scope | {asked: answer}
        )

    asked = call.args[0].id
    assert said(right) == "Right."
    assert said(...).startswith("Not answered")
    for hint, value in values.items():
        assert said(np.float64(value)) == f"Not yet: {hint}"


OFFLINE = """
import socket

def connect(self, address, connect=socket.socket.connect):
    if self.family != socket.AF_UNIX and address[0] not in ("127.0.0.1", "::1"):
        raise OSError(f"no network: {address}")
    return connect(self, address)

socket.socket.connect = connect
"""


@pytest.mark.slow
def test_a_student_s_notebook_runs_from_any_folder_without_a_network(tmp_path):
    (path,) = (p for p in twins.student(tmp_path) if p.stem == "90_minutes")
    notebook = nbformat.read(path, 4)
    notebook.cells.insert(0, nbformat.v4.new_code_cell(OFFLINE))
    nbformat.write(notebook, path)
    out = tmp_path / "out.ipynb"
    papermill.execute_notebook(
        path,
        out,
        kernel_name="python3",
        cwd=tmp_path,
        progress_bar=False,
        log_output=False,
    )
    cells = nbformat.read(out, 4).cells
    said = "".join(o.get("text", "") for cell in cells for o in cell.get("outputs", []))
    assert said.count("Not answered") == 3
    shown = "".join(
        str(o.data) for cell in cells for o in cell.get("outputs", []) if "data" in o
    )
    for kind in ("Qwen 1.5B, recorded", "SmolLM2, live", "first-biased, simulated"):
        assert kind in shown
