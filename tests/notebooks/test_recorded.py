"""RULERS' chapters about a real judge:
from its recorded gradings alone, to the verdicts.
"""

import re
from html import unescape

import pytest

from rubricnb.book import notebooks as book

pytestmark = pytest.mark.slow

ROOT = book.find_root()
# calibration draws; the rest is what was recorded of the embedded judge
SMALL = {"n_draws": 3}
RECORDED = {
    "15_locking_rubrics": (
        {"n_items": 30, "n_again": 15, "methods_again": "rulers dhs"},
        r"rubrics that all texts together are judged by [^|]*\| = 1 \| 1 \| the count "
        r"holds",
    ),
    "16_evidence": (
        {"n_units": 30, "live_judge": "simulated:grader"},
        r"share of quotes that are verified [^|]*\| \(as we read it: = 1 ± 0.02\) \| "
        r"0\.\d+ \[[^]]*\] \| does not\b",
    ),
    "17_calibration": (
        {"methods": "rulers dhs mts autoscore"},
        # Of three draws some have one kappa for all clusters, so they have no interval.
        r"smallest lead of RULERS [^|]*same map [^|]*\| \(as we read it: ≥ 0\) \| "
        r"−?0\.\d+ \[[^]]*\] \| cannot say",
    ),
    "18_rubric_sensitivity": (
        {"n_items": 30, "n_reasked": 15, "n_ordered": 15},
        r"that change when the levels are reversed [^|]*\| \(as we read it: ≤ 0.05\) "
        r"\| 0\.\d+ \[[^]]*\] \| cannot say",
    ),
}


def written(executed):
    """The outputs of a notebook as text, cells of tables apart by a bar."""
    text = []
    for cell in executed.cells:
        for output in cell.get("outputs", []):
            for kind, data in output.get("data", {}).items():
                if kind.endswith(("text/html", "text/markdown")):
                    parted = re.sub(r"</t[dh]>\s*<t[dh]", " | <", "".join(data))
                    text.append(
                        unescape(" ".join(re.sub("<[^>]*>", " ", parted).split()))
                    )
    return "\n".join(text)


@pytest.mark.parametrize("stem", RECORDED)
def test_a_recorded_judge_has_its_numbers_and_its_verdicts(stem, warnings_of):
    values, verdict = RECORDED[stem]
    done = book.execute(
        stem, {"judge": "embedded", **SMALL, **values}, root=ROOT, cell_seconds=300
    )
    text = written(done)
    assert warnings_of(done) == []
    # Had a text been asked, it would say "recorded and live".
    assert (
        "Numbers on this page: recorded, judge smollm2-135m-instruct-embedded, "
        "minibench" in text
    )
    assert re.search(verdict, text)
