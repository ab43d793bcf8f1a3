"""Ask about three answers under all 120 orders of their rubric: ``python -m studies.every_order``.

The landing page shows them. Needs the weights: ``python -m rubricnb weights
qwen2.5-coder-1.5b-instruct``; 360 reads, some ten minutes on one core.
"""

from __future__ import annotations

from contextlib import closing
from math import factorial
from pathlib import Path

from rubricnb.data import load
from rubricnb.folders import results_folder
from rubricnb.frames import Items
from rubricnb.judging.plan import plan
from rubricnb.judging.registry import open_judge
from rubricnb.judging.run import run
from rubricnb.permutation import shuffled
from studies.recording import record

STUDY = "every-order"
SPEC = "embedded:qwen2.5-coder-1.5b-instruct"
MODEL = "Qwen2.5-Coder-1.5B-Instruct (Q4_K_M)"


def three_answers() -> Items:
    """Return a good, a poor and a useless answer to one question, to be scored for helpfulness."""
    items = load("minibench")
    question = items["group_id"] == "minibench/exam-sleep/helpfulness"
    return items[question & items["candidate"].isin(["A", "C", "D"])]


def main() -> Path:
    """Ask what is not stored yet, and record it in ``results/every-order/``."""
    with closing(open_judge(SPEC)) as judge:
        requests = plan(three_answers(), shuffled(5, factorial(5)), readout="logprobs")
        record(run(requests, judge), judge, STUDY, spec=SPEC, model=MODEL, licence="Apache-2.0")
        return results_folder() / STUDY / judge.slug


if __name__ == "__main__":
    print(main())
