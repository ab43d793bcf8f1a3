"""Chapters 08 to 12 on own data: two criteria, two candidates, not five levels."""

from itertools import product

import pandas as pd
import pytest
import yaml

from rubricnb import book

ROOT = book.find_root()
CASES = {
    "08_rubric_scales": 4,
    "09_criterion_order": 4,
    "10_rank_reversal": 4,
    "11_temperature_and_effort": 4,
    "12_bias_cost": 10,
}
SMALL = {
    "09_criterion_order": {"n_copies": 1},
    "11_temperature_and_effort": {"studies": 2, "draws": 1},
    "12_bias_cost": {"splits": 5},
}


def _own_data(folder, n):
    """Twelve replies to six mails, rated for two criteria on `n` levels, and their rubrics.

    Four levels stand as a spreadsheet and a team have them: levels from 0, a byte order mark,
    semicolons, empty rows at the end, and a third of the ratings missing.
    """
    low = 0 if n == 4 else 1
    rubrics = [
        {"criterion": name, "definition": f"Is the reply {name}?",
         "levels": {low + k: f"{name} to degree {k + 1} of {n}." for k in range(n)}}
        for name in ("kind", "brief")
    ]  # fmt: skip
    rubric, table = folder / "reply.yml", folder / "replies.csv"
    rubric.write_text(yaml.safe_dump(rubrics), "utf-8")
    rows = [
        {"instruction": f"Answer mail {mail}.", "candidate": who,
         "response": f"Reply of {who} to mail {mail}.",
         "human_kind": low + (mail + 2 * (who == "sent")) % n, "human_brief": low + mail % n}
        for mail, who in product(range(6), ("draft", "sent"))
    ]  # fmt: skip
    frame = pd.DataFrame(rows)
    if n == 4:
        frame = frame.astype({"human_kind": object, "human_brief": object})
        frame.loc[::3, "human_kind"] = frame.loc[1::3, "human_brief"] = ""
        frame.to_csv(table, index=False, sep=";", encoding="utf-8-sig")
        with table.open("a", encoding="utf-8") as file:
            file.write(";;;;\n;;;;\n")
    else:
        frame.to_csv(table, index=False)
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
