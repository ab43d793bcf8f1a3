"""Chapters 08 to 12 on own data: two criteria, two candidates, not five levels."""

from itertools import product

import pandas as pd
import pytest
import yaml

from rubricnb import book

ROOT = book.find_root()
CASES = {
    "08_rubric_scales": 4,
    "09_criterion_order": 2,
    "10_rank_reversal": 10,
    "11_temperature_and_effort": 4,
    "12_bias_cost": 10,
}
SMALL = {
    "09_criterion_order": {"n_copies": 1},
    "11_temperature_and_effort": {"studies": 2, "draws": 1},
    "12_bias_cost": {"splits": 5},
}


def _own_data(folder, n):
    """Twelve replies to six mails, rated for two criteria on `n` levels, and their rubrics."""
    rubrics = [
        {"criterion": name, "definition": f"Is the reply {name}?",
         "levels": {k: f"{name} to degree {k} of {n}." for k in range(1, n + 1)}}
        for name in ("kind", "brief")
    ]  # fmt: skip
    rubric, table = folder / "reply.yml", folder / "replies.csv"
    rubric.write_text(yaml.safe_dump(rubrics), "utf-8")
    rows = [
        {"instruction": f"Answer mail {mail}.", "candidate": who,
         "response": f"Reply of {who} to mail {mail}.",
         "human_kind": 1 + (mail + 2 * (who == "sent")) % n, "human_brief": 1 + mail % n}
        for mail, who in product(range(6), ("draft", "sent"))
    ]  # fmt: skip
    pd.DataFrame(rows).to_csv(table, index=False)
    return {"dataset": "csv", "path": str(table), "rubric": str(rubric)}


def _execute(stem, **parameters):
    return book.execute(stem, parameters | SMALL.get(stem, {}), root=ROOT, cell_seconds=300)


@pytest.mark.parametrize(("stem", "n"), CASES.items())
def test_a_chapter_runs_on_own_data_of_any_number_of_levels(stem, n, tmp_path):
    judge = {"judge": "simulated:first-biased", "judge_options": {"seed": 1, "effort": "low"}}
    done = _execute(stem, **judge, **_own_data(tmp_path, n))
    warned = [
        output.text
        for cell in done.cells
        for output in cell.get("outputs", [])
        if output.get("name") == "stderr"
    ]
    assert warned == []
    said = " ".join(
        output["data"].get("text/markdown", "")
        for cell in done.cells
        for output in cell.get("outputs", [])
        if "data" in output
    )
    assert f"{n} levels" in said if stem == "08_rubric_scales" else "first-biased" in said


@pytest.mark.parametrize("stem", ["09_criterion_order", "10_rank_reversal"])
def test_a_chapter_names_both_of_two_datasets(stem, mirror):
    datasets = "hanna+summeval" if stem.startswith("09") else "minibench+summeval"
    done = _execute(stem, dataset=datasets, n_items=48, judge="simulated:first-biased")
    tables = {"09_criterion_order": "tab-friedman", "10_rank_reversal": "tab-ours"}
    html = book.glued(done)[tables[stem]]["text/html"]
    assert all(name in html for name in datasets.split("+"))
