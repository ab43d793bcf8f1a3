"""Chapters 13 and 14 in the paper's own protocol, on a file like those it used."""

import re

import pandas as pd
import pytest
from endpoint import endpoint
from test_paper_tables import judged

import rubricnb as rb
from rubricnb.book import notebooks as book

pytestmark = pytest.mark.slow

ROOT = book.find_root()


@pytest.fixture
def replication(own_file, warnings_of):
    """Execute a chapter as a replication; returns its glued tables as text,
    and the prompts.
    """

    def execute(stem, **more):
        with endpoint(judged) as (url, received):
            values = {
                "dataset": "biggen",
                "path": str(own_file["biggen"]),
                "criterion": "",
                "readout": "feedback",
                "judge": f"openai:m@{url}",
                "paper_judge": "GPT-4o",
            }
            done = book.execute(stem, values | more, root=ROOT, cell_seconds=300)
        assert [said for said in warnings_of(done) if "Warning" in said] == []
        tables = {
            name: re.sub("<.*?>", " ", "".join(what["text/html"]))
            for name, what in book.glued(done).items()
            if "text/html" in what
        }
        return tables, [payload["messages"][-1]["content"] for payload in received]

    return execute


def test_chapter_14_takes_references_that_were_written(replication, tmp_path):
    first = [f"biggen/planning/travel/{i}/a" for i in range(4)]
    attempts = pd.DataFrame(
        [
            {
                "item_id": item,
                "target": k,
                "text": f"An answer of {k}.",
                "accepted": True,
            }
            for item in first
            for k in (1, 2, 3, 4)
            if (item, k) != (first[3], 2)
        ]
        + [{"item_id": first[3], "target": 2, "text": "No.", "accepted": False}]
    )
    attempts.to_csv(tmp_path / "references.csv", index=False)
    glued, prompts = replication(
        "14_reference_answers", references=str(tmp_path / "references.csv")
    )
    # Of the fourth instance the answer of score 2 was not found, so it is left out.
    assert not any("Plan 3." in prompt for prompt in prompts)
    assert sum("###Reference Answer (Score 2):" in prompt for prompt in prompts) == 6
    assert re.findall(r"\b[1-5]\b", glued["tab-pull"])[:1] == ["1"]
    assert "share of scores 2 with a reference of score 2" in glued["tab-verdicts"]


def test_the_cells_of_table_4_are_compared_with_the_papers_gold_or_not_at_all(
    replication, tmp_path, mirror
):
    """Vicuna comes with scores by GPT-4; the paper's gold is GPT-4.1's."""
    items = rb.load("vicuna", n_items=8)
    cell = "ρ with GPT-4.1, Baseline (GPT-4o, vicuna)"
    some = {"dataset": "vicuna", "path": "", "n_items": 8}
    both = some | {"dataset": "mt-bench+vicuna"}
    glued, _ = replication("13_score_ids_and_rubric_order", **both)
    found = " ".join(glued["tab-verdicts"].split())
    assert "scores that Letter-Grades flips, % (GPT-4o, vicuna)" in found
    assert cell not in found
    made = pd.DataFrame(
        {"item_id": items.item_id, "gold": [1 + i % 5 for i in range(len(items))]}
    )
    made.to_csv(tmp_path / "gold.csv", index=False)
    glued, _ = replication(
        "13_score_ids_and_rubric_order", **some, gold=str(tmp_path / "gold.csv")
    )
    assert cell in " ".join(glued["tab-verdicts"].split())
