"""The chapters on scoring bias and RULERS, on the sets that people rated."""

import pytest

from rubricnb import book

pytestmark = pytest.mark.slow

ROOT = book.find_root()
ANYBODY = {"judge": "simulated:unbiased", "n_items": 20}
FEW = {"n_items": 30, "n_draws": 3}


@pytest.mark.parametrize(
    ("stem", "values"),
    [
        ("13_score_ids_and_rubric_order", {"dataset": "hanna", "criterion": "empathy"} | ANYBODY),
        ("14_reference_answers", {"dataset": "vicuna"} | ANYBODY),
        # 45 items again: half a text too many
        ("15_locking_rubrics", FEW | {"dataset": "hanna", "n_items": 60}),
        ("16_evidence", {"dataset": "summeval", "n_items": 30, "live_judge": "simulated:grader"}),
        ("17_calibration", {"dataset": "asap-2"} | FEW),
        ("18_rubric_sensitivity", {"dataset": "asap-2", "n_reasked": 6, "n_ordered": 6} | FEW),
    ],
)
def test_a_chapter_runs_on_a_real_set(mirror, stem, values):
    book.execute(stem, values, root=ROOT, cell_seconds=300)


@pytest.mark.parametrize("stem", ["13_score_ids_and_rubric_order", "14_reference_answers"])
def test_a_criterion_that_the_set_lacks_is_named_with_those_it_has(mirror, stem):
    hanna = {"dataset": "hanna", "n_items": 20, "criterion": "helpfulness"}
    with pytest.raises(
        book.BookError, match="hanna has no criterion 'helpfulness', but relevance,"
    ):
        book.execute(stem, hanna, root=ROOT)
