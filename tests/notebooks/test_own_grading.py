"""Chapters 13 to 18 on own data: two criteria, four levels from 0, a third of ratings missing."""

import numpy as np
import pandas as pd
import pytest

import rubricnb as rb
from rubricnb import book, rulers

ROOT = book.find_root()
FEW = {"n_draws": 3}
CHAPTERS = {
    "13_score_ids_and_rubric_order": {"draws": 50, "judge_options": {"seed": 1, "max_tokens": 64}},
    "14_reference_answers": {},
    "15_locking_rubrics": FEW | {"n_again": 8, "n_variants": 8, "methods_again": "rulers dhs"},
    "16_evidence": FEW | {"n_units": 8, "live_judge": "simulated:grader"},
    "17_calibration": FEW | {"methods": "rulers dhs", "judge_options": {"hedging": 0.1}},
    "18_rubric_sensitivity": FEW | {"n_items": 24, "n_reasked": 8, "n_ordered": 16},
}
RUBRIC = """
- criterion: clarity
  definition: Is it easy to follow?
  levels: {0: Cannot be followed., 1: Hard., 2: Mostly clear., 3: Clear throughout.}
- criterion: depth
  definition: Does it say why?
  levels: {0: Says nothing., 1: Says what., 2: Says what and some why., 3: Says all.}
"""
ANSWERS = (
    "No idea. Ask someone else about it.",
    "It works. Nobody measured it in winter.",
    "It works because the valve opens at two bar. It shuts at one.",
    "The pump fills the tank. A float then shuts the valve, so that nothing runs over.",
)


@pytest.fixture(scope="module")
def own(tmp_path_factory):
    """Parameters that name a file of items, one of rubrics and a bundle of one's own."""
    folder = tmp_path_factory.mktemp("own")
    rng = np.random.default_rng(0)
    rows = [
        {
            "instruction": f"Explain device {prompt}.",
            "response": f"{ANSWERS[level]} That is device {prompt}, says writer {writer}.",
            "candidate": f"writer {writer}",
            "human_clarity": level if (prompt + writer) % 3 else "",
            "human_depth": min(3, level + prompt % 2) if (prompt + writer + 1) % 3 else "",
        }
        for prompt in range(8)
        for writer, level in enumerate(rng.integers(0, 4, 3))
    ]
    pd.DataFrame(rows).to_csv(folder / "devices.csv", index=False, sep=";", encoding="utf-8-sig")
    (folder / "devices.yml").write_text(RUBRIC, encoding="utf-8")
    files = {"path": str(folder / "devices.csv"), "rubric": str(folder / "devices.yml")}
    judge = rb.open_judge("simulated:grader")
    rubrics = rb.load("csv", **files).rubrics
    bundle = rulers.compile_rubric(rubrics, judge, name="devices", n_items=4, store=":memory:")
    return files | {"dataset": "csv", "bundle": str(bundle.save(folder / "devices.json"))}


@pytest.mark.parametrize("stem", CHAPTERS)
def test_a_rubric_of_four_levels_and_two_criteria_runs(own, stem):
    known = {parameter.name for parameter in book.parameters(stem, ROOT)}
    values = {name: value for name, value in own.items() if name in known}
    judge = "simulated:grader" if "bundle" in known else "simulated:last-biased"
    done = book.execute(
        stem, values | {"judge": judge} | CHAPTERS[stem], root=ROOT, cell_seconds=300
    )
    errors = [
        output.text
        for cell in done.cells
        for output in cell.get("outputs", [])
        if output.get("name") == "stderr"
    ]
    assert errors == []
    tables = [name for name in book.glued(done) if name.startswith("tab-")]
    assert "tab-verdicts" in tables
