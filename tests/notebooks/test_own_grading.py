"""Chapters 13 to 18 on own data: two criteria, four levels from 0,
a third of ratings missing.
"""

import pytest

import rubricnb as rb
from rubricnb import rulers
from rubricnb.book import notebooks as book

pytestmark = pytest.mark.slow
ROOT = book.find_root()
FEW = {"n_draws": 3}
CHAPTERS = {
    "13_score_ids_and_rubric_order": {
        "draws": 50,
        "judge_options": {"seed": 1, "max_tokens": 64},
    },
    "14_reference_answers": {},
    "15_locking_rubrics": FEW | {"n_again": 8, "methods_again": "rulers dhs"},
    "16_evidence": FEW | {"n_units": 8, "live_judge": "simulated:grader"},
    "17_calibration": FEW
    | {"methods": "rulers dhs", "judge_options": {"hedging": 0.1}},
    "18_rubric_sensitivity": FEW | {"n_items": 24, "n_reasked": 8, "n_ordered": 16},
}


@pytest.fixture
def own(own_data, tmp_path):
    """Parameters that name a file of items,
    one of rubrics and a bundle of one's own.
    """
    values = own_data(4)
    judge = rb.open_judge("simulated:grader")
    rubrics = rb.load("csv", path=values["path"], rubric=values["rubric"]).rubrics
    bundle = rulers.compile_rubric(
        rubrics, judge, name="replies", n_items=4, store=":memory:"
    )
    return values | {"bundle": str(bundle.save(tmp_path / "replies.json"))}


@pytest.mark.parametrize("stem", CHAPTERS)
def test_a_rubric_of_four_levels_and_two_criteria_runs(own, stem, warnings_of):
    known = {parameter.name for parameter in book.parameters(stem, ROOT)}
    values = {name: value for name, value in own.items() if name in known}
    judge = "simulated:grader" if "bundle" in known else "simulated:last-biased"
    done = book.execute(
        stem, values | {"judge": judge} | CHAPTERS[stem], root=ROOT, cell_seconds=300
    )
    assert warnings_of(done) == []
    tables = [name for name in book.glued(done) if name.startswith("tab-")]
    assert "tab-verdicts" in tables
