"""Statements of the papers, held against a judge that was recorded at full size.

The chapters are executed with its recorded answers, and their own verdicts are kept:
``python -m studies.statements`` writes ``results/statements.csv``. Only what is
recorded is asked: SummEval has no shuffled orders and no answers for several criteria.
"""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import nbformat
import pandas as pd
import papermill

from rubricnb.book import notebooks
from rubricnb.cli.commands import errors
from rubricnb.core.results import results_folder

JUDGE = "qwen2.5-coder-1.5b-instruct-vllm-invariant"
# Of two runs of a chapter, the second is about a design that one dataset alone has.
RUNS: list[tuple[str, dict[str, Any]]] = [
    ("05_position_bias", {"dataset": "hanna+summeval+mt-bench+vicuna", "n_copies": 2}),
    (
        "07_when_permutation_helps",
        {"dataset": "hanna+summeval", "strategies": "balanced fixed placebo"},
    ),
    ("07_when_permutation_helps", {"dataset": "hanna"}),
    (
        "08_how_many_orderings",
        {"dataset": "hanna+summeval", "strategies": "balanced fixed", "n_copies": 2},
    ),
    ("08_how_many_orderings", {"dataset": "hanna", "n_copies": 2}),
    ("10_criterion_order", {"dataset": "hanna", "designs": ["balanced", "fixed"]}),
    ("11_rank_reversal", {"dataset": "mt-bench+vicuna+summeval"}),
]
COLUMNS = ["claim_id", "asked", "dataset", "value", "low", "high", "verdict", "reason"]
# After the parameters: the judge as it was recorded, which need not be installed.
_JUDGE = f"""
from dataclasses import replace
from rubricnb.core.judge import describe, judges
judge = judges().set_index("slug").loc[{JUDGE!r}]
judge = replace(describe(judge.spec), slug={JUDGE!r}, identity=judge.identity)
"""


def statements_of(stem: str, parameters: dict[str, Any]) -> pd.DataFrame:
    """Execute a chapter for the recorded judge; return its verdicts on any judge.

    Parameters
    ----------
    stem
        The chapter's.
    parameters
        Of the chapter; its judge is `JUDGE`.

    Returns
    -------
    DataFrame
        A row for each measured statement that names no judge, with `COLUMNS`:
        ``asked`` has the datasets of the run; ``dataset`` the one that fits a statement
        about all of them least.
    """
    notebook = notebooks.read(stem, notebooks.find_root())
    tags = [cell.metadata.get("tags", []) for cell in notebook.cells]
    with TemporaryDirectory() as folder:
        path = Path(folder, "verdicts.csv")
        last = f"chapter.verdicts(own, judgments).to_csv({str(path)!r}, index=False)"
        notebook.cells.append(_cell(last))
        after = next(i for i, names in enumerate(tags, 1) if "parameters" in names)
        notebook.cells.insert(after, _cell(_JUDGE))
        papermill.execute_notebook(
            notebook,
            None,
            parameters,
            kernel_name="python3",
            progress_bar=False,
            cwd=folder,
        )
        found = pd.read_csv(path, keep_default_na=False, na_values={"value": [""]})
    about_any = (found["kind"] == "claim") & (found["judge"] == "")
    measured = found[about_any & found["value"].notna()]
    return measured.assign(asked=parameters["dataset"])[COLUMNS]


def record_statements() -> Path:
    """Write ``results/statements.csv``: each statement from the run with most sets."""
    found = pd.concat([statements_of(*run) for run in RUNS])
    path = results_folder() / "statements.csv"
    found.drop_duplicates("claim_id").to_csv(path, index=False, float_format="%.6g")
    return path


def _cell(source: str) -> nbformat.NotebookNode:
    return nbformat.from_dict(
        {
            "cell_type": "code",
            "metadata": {},
            "source": source,
            "outputs": [],
            "execution_count": None,
        }
    )


if __name__ == "__main__":
    with errors():
        print(record_statements())
