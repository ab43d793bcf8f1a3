from itertools import product

import pandas as pd
import pytest
import warm
import yaml
from jupyter_client.provisioning import local_provisioner


@pytest.fixture(autouse=True)
def warm_kernels(monkeypatch):
    monkeypatch.setattr(local_provisioner, "launch_kernel", warm.launch)


@pytest.fixture
def own_data(tmp_path):
    """Parameters that name own data: twelve replies to six mails, two criteria on n levels."""

    def written(n):
        rubrics = [
            {"criterion": name, "definition": f"Is the reply {name}?",
             "levels": {k: f"{name} to degree {k} of {n}." for k in range(1, n + 1)}}
            for name in ("kind", "brief")
        ]  # fmt: skip
        rubric, table = tmp_path / "reply.yml", tmp_path / "replies.csv"
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
