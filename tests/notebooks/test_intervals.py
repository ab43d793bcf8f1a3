"""A judge of the papers' gets verdicts on χ², V and single reads: each estimate has an interval."""

import re
from html import unescape
from zlib import crc32

import pytest
from endpoint import completion, endpoint

from rubricnb import book

ROOT = book.find_root()


def judged(payload, headers):
    """Any judge whose score follows from the prompt."""
    score = 1 + crc32(payload["messages"][-1]["content"].encode()) % 5
    return 200, completion(f"Feedback: so so [RESULT] {score}") | {"model": "qwen3-32b"}, {}


CLAIMS = {
    "05_position_bias": (
        {"paper_judge": "GPT-OSS-20B", "n_items": 24, "n_copies": 2},
        [r"χ² of position selection.*?= 98.7 ± 14.8", r"χ² above its 5 % threshold.*?= 1",
         r"first position minus the largest of the others.*?≥ 0"],
    ),
    "08_rubric_scales": (
        {"paper_judge": "GPT-OSS-20B", "dataset": "hanna+summeval", "scales": [9], "n_items": 20},
        [r"mean Cramér.s V over the datasets, 9 options.*?= 0.039 ± 0.01"],
    ),
    "11_temperature_and_effort": (
        {"paper_judge": "GPT-OSS-20B", "n_items": 12, "efforts": "low", "draws": 1, "studies": 3},
        [r"χ² of position selection, effort low.*?= 115 ± 17.2"],
    ),
    "12_bias_cost": (
        {"paper_judge": "Qwen3-32B", "n_items": 24, "splits": 5},
        [r"mean r of single reads over ten orders.*?= 0.313 ± 0.05"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("stem", CLAIMS)
def test_a_papers_judge_gets_an_interval(stem, mirror):
    parameters, statements = CLAIMS[stem]
    with endpoint(judged) as (url, _):
        values = {"dataset": "hanna", "readout": "feedback", "judge": f"openai:qwen3-32b@{url}"}
        done = book.execute(stem, values | parameters, root=ROOT, cell_seconds=300)
    tables = ["".join(what.get("text/html", "")) for what in book.glued(done).values()]
    table = next(t for t in tables if "paper says" in t)
    table = unescape(" ".join(re.sub("<.*?>", " ", table).split()))
    for statement in statements:
        assert re.search(statement + r" \S+ \[\S+, \S+\]", table), statement
