"""``python -m studies``, in a clone: run the studies of ``params/`` and record them."""

from pathlib import Path
from typing import Annotated, Any

import typer

from rubricnb.auditing.options import named_values
from rubricnb.cli.commands import JudgeOptions, cost_line, errors
from rubricnb.core.judge import describe
from rubricnb.engines.batch import export_batch, import_batch
from studies import contribution
from studies.cost import study_cost
from studies.gradings import record_gradings
from studies.study import batch_of, named, read_study, study

app = typer.Typer(
    no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False
)
batch = typer.Typer(
    no_args_is_help=True, help="Batch files: OpenAI's Batch API, vllm run-batch."
)
app.add_typer(batch, name="batch")
_Study = Annotated[str, typer.Argument(help="Study: NAME of params/NAME.yml.")]
_Judge = Annotated[
    str,
    typer.Option(help="Judge: openai:MODEL[@BASE_URL]; default: the study's judges."),
]
_Price = Annotated[
    tuple[float, float, float] | None,
    typer.Option(
        help="US dollars per million tokens of --judge: input, cached, output."
    ),
]
_Server = Annotated[
    str,
    typer.Option(
        help=(
            "Server that will run the batch (vllm), if not the one at the judge's "
            "address."
        )
    ),
]


@app.command()
def run(
    name: _Study,
    judge: _Judge = "",
    option: JudgeOptions = None,
    price: _Price = None,
    cost: Annotated[
        bool, typer.Option("--cost", help="Only say what it would cost.")
    ] = False,
    max_cost: Annotated[
        float | None,
        typer.Option(help="Stop at this cost of all judges and plans, in US dollars."),
    ] = None,
    max_calls: Annotated[
        int | None,
        typer.Option(help="Stop after this many requests, over all judges and plans."),
    ] = None,
) -> None:
    """Run a study and record it in results/NAME; resumes where it was stopped."""
    with errors():
        entry = named(judge, named_values(option), price)
        content = read_study(name, entry)
        # What leaves this machine may have to be paid.
        if cost or any(describe(one["spec"]).host for one in content["judges"]):
            typer.echo(_cost_lines(study_cost(name, entry)))
        if cost:
            return
        if "gradings" in content:
            folders = record_gradings(name, max_calls=max_calls, max_cost=max_cost)
        else:
            folders = study(name, max_calls=max_calls, max_cost=max_cost, judge=entry)
        for folder in folders:
            typer.echo(f"recorded: {folder}")


@app.command()
def check(
    folder: Annotated[
        Path, typer.Argument(help="Folder results/STUDY/JUDGE, as `run` wrote it.")
    ],
) -> None:
    """Check a recording against its study's plan and its card; print its findings."""
    with errors():
        if found := contribution.problems(folder):
            raise ValueError("\n  ".join([f"{folder} has these problems:", *found]))
        findings, tables = contribution.shows(folder)
        typer.echo(findings.to_string(index=False))
        typer.echo(f"{folder} matches its study and its run.json")
        typer.echo(
            "python -m studies.replication will rewrite in results/: "
            f"{', '.join(tables)}"
        )


@batch.command("export")
def write_batch(
    name: _Study,
    path: Annotated[Path, typer.Argument(help="The file to write.")],
    judge: _Judge = "",
    server: _Server = "",
    option: JudgeOptions = None,
    price: _Price = None,
) -> None:
    """Print the price, and write the requests without an answer; nothing is sent."""
    with errors():
        entry = named(judge, named_values(option), price)
        endpoint, plans = batch_of(name, entry, server)
        typer.echo(_cost_lines(study_cost(name, entry)))
        typer.echo(
            "these are prices of single requests: OpenAI charges half of them for a "
            "batch"
        )
        files = export_batch(plans, endpoint, path)
        for file in files:
            with file.open("rb") as lines:
                typer.echo(f"{file}: {sum(1 for _ in lines):,} requests")
        if not files:
            typer.echo(
                "nothing to ask: every answer is stored, or asked in a batch under way"
            )


@batch.command("import")
def read_batch(
    name: _Study,
    paths: Annotated[
        list[Path], typer.Argument(help="Output and error files of the batch.")
    ],
    judge: _Judge = "",
    server: _Server = "",
    option: JudgeOptions = None,
    release: Annotated[
        bool,
        typer.Option(
            "--release", help="The batch has ended: let `run` ask what it lacks."
        ),
    ] = False,
) -> None:
    """Put the answers of a batch into the store, where `run` finds them."""
    with errors():
        endpoint, plans = batch_of(name, named(judge, named_values(option)), server)
        counts = import_batch(plans, endpoint, paths, release=release)
        typer.echo(
            ", ".join(f"{number:,} {what}" for what, number in counts.items() if number)
        )


def _cost_lines(cost: Any) -> str:
    """Return a line per judge of a study, unknown costs with reasons, and the sum."""
    lines = []
    for model, own in cost.groupby("model", sort=False):
        lines.append(f"{model}: {cost_line(own)}")
        lines += [
            f"  {reason}"
            for reason in own["reason"].unique()
            if "price" in reason or "not counted" in reason
        ]
    return "\n".join([*lines, f"all together: {cost_line(cost)}"])


if __name__ == "__main__":
    app()
