"""Ask a scorer of inspect_ai under every balanced order, and read the log.

    pip install -e '.[parquet]' inspect-ai
    inspect eval examples/inspect_ai/rubric_orders.py --model openai/gpt-4o-mini
    python examples/inspect_ai/rubric_orders.py logs/THE_NEW_LOG.eval

`in_every_order` takes any scorer that reads its criterion in the target, as
inspect_ai's own `model_graded_qa` does. Here the texts are already written; in a task
that lets a model write them, leave out `given`.
"""

import re
import sys
from pathlib import Path

import pandas as pd
from inspect_ai import Task, task
from inspect_ai.dataset import Sample
from inspect_ai.model import ModelOutput
from inspect_ai.scorer import Score, Scorer, Target, mean, model_graded_qa, scorer
from inspect_ai.solver import Generate, Solver, TaskState, solver
from inspect_ai.util import collect

import rubricnb as rb

FOLDER = Path(__file__).parent.parent / "own-data"
DATA, RUBRIC = str(FOLDER / "my_data.csv"), str(FOLDER / "my_rubric.yml")
INSTRUCTIONS = "Choose the one level that fits best. End with 'GRADE: ' and its number."


@scorer(metrics={"*": [mean()]})
def in_every_order(graded: Scorer, definition: str, levels: dict[int, str]) -> Scorer:
    """One score an order of the levels, under a name such as 2-3-4-5-1."""
    orderings = {
        "-".join(map(str, ordering)): "\n".join(f"{k}: {levels[k]}" for k in ordering)
        for ordering in rb.balanced(len(levels)).orderings().tolist()
    }

    async def score(state: TaskState, target: Target) -> Score:
        asked = [
            graded(state, Target(f"{definition}\n{text}"))
            for text in orderings.values()
        ]
        reads = [read.value if read else None for read in await collect(*asked)]
        grades = [
            int(read) if re.fullmatch(r"\d+", str(read)) else None for read in reads
        ]
        return Score(value=dict(zip(orderings, grades, strict=True)))

    return score


@solver
def given() -> Solver:
    """The answer of a sample is the text in its metadata: nothing is generated."""

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        state.output = ModelOutput.from_content("given", state.metadata["response"])
        return state

    return solve


@task
def rubric_orders(data: str = DATA, rubric: str = RUBRIC) -> Task:
    """Texts of examples/own-data, or of your files, under ten orders of the rubric."""
    items = rb.load("csv", path=data, rubric=rubric)
    facts = ["response", "human", "cluster_id", "group_id", "candidate"]
    samples = [
        Sample(
            id=str(item["text_id"]),
            input=item["instruction"],
            metadata=item[facts].to_dict(),
        )
        for _, item in items.iterrows()
    ]
    levels = items.rubrics[items.rubrics["variant"] == "standard"].set_index("score")
    graded = model_graded_qa(instructions=INSTRUCTIONS, grade_pattern=r"GRADE:\s*(\d+)")
    definition = levels["definition"].iloc[0]
    orders = in_every_order(graded, definition, levels["description"].to_dict())
    return Task(dataset=samples, solver=given(), scorer=orders)


def judgments(log: str, data: str = DATA, rubric: str = RUBRIC) -> pd.DataFrame:
    """The scores of a log as rubricnb's judgments, a row an order."""
    items = rb.load("csv", path=data, rubric=rubric)
    return rb.judgments(
        log, items, columns={"criterion": "ordering", "dataset": "task"}
    )


if __name__ == "__main__":
    reads = judgments(*sys.argv[1:])
    shares = (
        r"^(n_reads|share_\d|v2_unbiased|p_within|sd|sd_low|sd_high|r|r_low|r_high)$"
    )
    for table in (
        # is a level chosen more often at one place of the list?
        rb.position_bias(reads),
        rb.within_item_sd(reads),  # how far apart are the ten scores of one text?
        rb.agreement(reads, reads.rated),  # does the judge agree with people?
    ):
        print(table.filter(regex=shares).T.to_string(header=False))
