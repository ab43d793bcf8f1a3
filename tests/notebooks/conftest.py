from itertools import product

import pandas as pd
import pytest
import yaml


@pytest.fixture(autouse=True)
def always_warm(warm_kernels):
    pass


@pytest.fixture
def own_data(tmp_path, thirty_rows):
    """Parameters that name own data: replies to mails, two criteria on n levels.

    Four levels stand as a spreadsheet and a team have them: levels from 0, a byte order mark,
    semicolons, empty rows at the end, and a third of the ratings missing.
    """

    def written(n):
        rubric, table = tmp_path / "my_rubric.yml", tmp_path / "my_data.csv"
        if n == 4:
            thirty_rows()
            return {"dataset": "csv", "path": str(table), "rubric": str(rubric)}
        rubrics = [
            {"criterion": name, "definition": f"Is the reply {name}?",
             "levels": {k: f"{name} to degree {k} of {n}." for k in range(1, n + 1)}}
            for name in ("kind", "brief")
        ]  # fmt: skip
        rubric.write_text(yaml.safe_dump(rubrics), "utf-8")
        rows = [
            {"instruction": f"Answer mail {mail}.", "candidate": who,
             "response": f"Reply of {who} to mail {mail}.",
             "human_kind": 1 + (mail + 2 * (who == "sent")) % n, "human_brief": 1 + mail % n}
            for mail, who in product(range(6), ("draft", "sent"))
        ]  # fmt: skip
        pd.DataFrame(rows).to_csv(table, index=False)
        return {"dataset": "csv", "path": str(table), "rubric": str(rubric)}

    return written


@pytest.fixture
def warnings_of():
    """What an executed notebook wrote to its standard error."""
    return lambda done: [
        output.text
        for cell in done.cells
        for output in cell.get("outputs", [])
        if output.get("name") == "stderr"
    ]
