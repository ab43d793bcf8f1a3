"""The chapters on scoring bias and RULERS, on the sets that people rated."""

import re

import pytest

from rubricnb.book import notebooks as book
from rubricnb.book.summary import recorded_summary

pytestmark = pytest.mark.slow

ROOT = book.find_root()
ANYBODY = {"judge": "simulated:unbiased", "n_items": 20}
FEW = {"n_items": 30, "n_draws": 3}


@pytest.mark.parametrize(
    ("stem", "values"),
    [
        (
            "13_score_ids_and_rubric_order",
            {"dataset": "hanna", "criterion": "empathy"} | ANYBODY,
        ),
        ("14_reference_answers", {"dataset": "vicuna"} | ANYBODY),
        # 45 items again: half a text too many
        ("15_locking_rubrics", FEW | {"dataset": "hanna", "n_items": 60}),
        (
            "16_evidence",
            {"dataset": "summeval", "n_items": 30, "live_judge": "simulated:grader"},
        ),
        ("17_calibration", {"dataset": "asap-2"} | FEW),
        (
            "18_rubric_sensitivity",
            {"dataset": "asap-2", "n_reasked": 6, "n_ordered": 6} | FEW,
        ),
    ],
)
def test_a_chapter_runs_on_a_real_set(mirror, stem, values):
    book.execute(stem, values, root=ROOT, cell_seconds=300)


@pytest.mark.parametrize(
    "stem", ["13_score_ids_and_rubric_order", "14_reference_answers"]
)
def test_a_criterion_that_the_set_lacks_is_named_with_those_it_has(mirror, stem):
    hanna = {"dataset": "hanna", "n_items": 20, "criterion": "helpfulness"}
    with pytest.raises(
        book.BookError, match="hanna has no criterion 'helpfulness', but relevance,"
    ):
        book.execute(stem, hanna, root=ROOT)


def test_four_datasets_show_whether_a_judge_selects_one_position_most(mirror):
    """Version 1 says it is the same in all four;
    recorded judges answer, so nobody is asked.
    """
    four = "mt-bench+vicuna+hanna+summeval"
    judge = "vllm:checkpoints/smollm2-135m-instruct"
    done = book.execute(
        "05_position_bias",
        {"judge": judge, "dataset": four, "n_copies": 3},
        cell_seconds=300,
    )
    rows = "".join(book.glued(done)["tab-verdicts"]["text/html"]).split("<tr>")
    (row,) = (row for row in rows if "selects the same position most" in row)
    cells = re.findall("<td[^>]*>(.*?)</td>", row)
    recorded = recorded_summary("position").query(
        "judge == 'smollm2-135m-instruct-vllm'"
    )
    shares = recorded.filter(regex=r"^share_\d+$").idxmax(axis=1)
    assert cells[1:3] == ["= 4", f"{shares.value_counts().max()} (no interval)"]
