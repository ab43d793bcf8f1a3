"""Own data with two criteria and other numbers of levels than the papers' five."""

from itertools import product

import pandas as pd
import pytest
import yaml

from rubricnb import book

ROOT = book.find_root()
STEMS = {
    "04_judges_and_prompts": {},
    "05_position_bias": {"n_copies": 3},
    "06_when_permutation_helps": {},
    "07_how_many_orderings": {"n_copies": 3},
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


@pytest.mark.parametrize("n", [2, 4, 10])
@pytest.mark.parametrize("stem", STEMS)
def test_a_chapter_runs_on_own_data_of_any_number_of_levels(stem, n, tmp_path):
    own = {"judge": "simulated:first-biased", **_own_data(tmp_path, n), **STEMS[stem]}
    done = book.execute(stem, own, root=ROOT, cell_seconds=300)
    warned = [output.text for cell in done.cells for output in cell.get("outputs", [])
              if output.get("name") == "stderr"]  # fmt: skip
    assert warned == []
