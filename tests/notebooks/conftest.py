from itertools import product

import pandas as pd
import pytest
import yaml


@pytest.fixture(autouse=True)
def always_warm(warm_kernels):
    pass


@pytest.fixture
def own_data(tmp_path):
    """Parameters that name own data: twelve replies to six mails, two criteria on n levels.

    Four levels stand as a spreadsheet and a team have them: levels from 0, a byte order mark,
    semicolons, empty rows at the end, and a third of the ratings missing.
    """

    def written(n):
        low = 0 if n == 4 else 1
        rubrics = [
            {"criterion": name, "definition": f"Is the reply {name}?",
             "levels": {low + k: f"{name} to degree {k + 1} of {n}." for k in range(n)}}
            for name in ("kind", "brief")
        ]  # fmt: skip
        rubric, table = tmp_path / "reply.yml", tmp_path / "replies.csv"
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
