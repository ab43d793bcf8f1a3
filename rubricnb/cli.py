"""The command line: ``python -m rubricnb COMMAND``. Thin: every command calls one function."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer
import yaml

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="How far can one trust a language model that scores text against a rubric?",
)


@app.command(context_settings={"allow_extra_args": True, "ignore_unknown_options": True})
def execute(
    context: typer.Context,
    notebook: Annotated[str, typer.Argument(help="NN_slug, or the number alone.")],
    output: Annotated[Path | None, typer.Option(help="Default: NN_slug.ipynb, here.")] = None,
    html: Annotated[bool, typer.Option("--html", help="Write it as one HTML page too.")] = False,
) -> None:
    """Execute one notebook with parameters of your own: -p NAME VALUE, as often as needed."""
    from rubricnb import book
    from rubricnb.onepage import one_page

    with errors():
        values = _parameters(context.args)
        target = output or Path(f"{book.find_notebook(notebook).stem}.ipynb")
        if target.resolve().parent == book.find_root() / "notebooks":
            raise ValueError(f"{target}: the twins in notebooks/ carry no outputs; write elsewhere")
        done = book.execute(notebook, values, target)
        typer.echo(f"{target}: executed in {done.metadata.rubricnb['seconds']:.1f} s")
        if html:
            page = target.with_suffix(".html")
            page.write_text(one_page(done), "utf-8")
            typer.echo(f"{page}: to read in a browser")


@app.command()
def check(
    store: Annotated[
        bool | None,
        typer.Option(
            "--store/--no-store",
            help="Read every stored reply, and save what is whole if the store is damaged; or do "
            "not open the store.",
        ),
    ] = None,
) -> None:
    """Say what is installed, which judges and datasets are usable here, and what to do else."""
    from rubricnb.health import report
    from rubricnb.judging.rescue import mend
    from rubricnb.judging.store import default_path

    with errors():
        if store:
            typer.echo(mend(default_path()))
        lines, usable = report(store is not False)
        typer.echo("\n".join(lines))
        if not usable:
            raise typer.Exit(1)


@app.command()
def data(
    name: Annotated[
        str | None, typer.Argument(help="A dataset to load; default: list all.")
    ] = None,
) -> None:
    """List the datasets, or load one (downloads it if needed) and describe it."""
    import rubricnb as rb

    with errors():
        if name is None:
            typer.echo(_table(rb.datasets()))
            return
        items = rb.load(name)
        columns = ["item_id", "text_id", "group_id", "cluster_id", "criterion"]
        counts = {c: items[c].nunique() for c in columns if c in items}
        typer.echo(f"{name}: " + ", ".join(f"{n:,} {c}" for c, n in counts.items()))


@app.command()
def judges() -> None:
    """List the engines, the simulated profiles and the judges with recorded runs."""
    from rubricnb.judging import ENGINES
    from rubricnb.judging import judges as recorded_judges
    from rubricnb.judging.simulated import profiles

    with errors():
        for engine, (_, form, purpose) in ENGINES.items():
            typer.echo(f"{engine + form:30}{purpose}")
        typer.echo("\nprofiles of simulated judges (simulated:PROFILE)")
        for name, profile in profiles().items():
            typer.echo(f"{name:30}{profile.source}")
        typer.echo("\nrecorded runs (results/)")
        typer.echo(_table(recorded_judges()[["slug", "spec", "model"]]))


@app.command()
def weights(
    name: Annotated[str | None, typer.Argument(help="Whose; default: list all.")] = None,
) -> None:
    """Download the weights of a small judge for embedded:NAME, or list those there are."""
    from rubricnb.judging.weights import WEIGHTS, described, get_weights, weights_path

    with errors():
        for known in WEIGHTS if name is None else ():
            here = "here" if weights_path(known).is_file() else "not downloaded"
            typer.echo(f"{known:30}{described(known)}; {here}")
        if name is not None:
            typer.echo(f"{name}: {described(name)}")
            typer.echo(f"{get_weights(name)}\njudge with it: embedded:{name}")


@app.command()
def audit(
    judge: Annotated[str, typer.Option(help="Whom to audit: embedded, openai:MODEL, …")],
    data: Annotated[str, typer.Option(help="A dataset, or csv.")] = "minibench",
    path: Annotated[Path | None, typer.Option(help="csv: your file of items.")] = None,
    rubric: Annotated[Path | None, typer.Option(help="csv: your file of rubrics.")] = None,
    n_items: Annotated[int | None, typer.Option(help="Draw so many items; default: all.")] = None,
    readout: Annotated[str, typer.Option(help="auto, feedback, score or logprobs.")] = "auto",
    temperature: Annotated[float, typer.Option(help="0 is greedy.")] = 0.0,
    seed: Annotated[int, typer.Option(help="Of the draw and of the sampling.")] = 0,
    output: Annotated[Path, typer.Option(help="The page to write.")] = Path("audit.html"),
    cost: Annotated[bool, typer.Option("--cost", help="Only say what it would cost.")] = False,
    max_cost: Annotated[
        float | None, typer.Option(help="US dollars that all questions may cost.")
    ] = None,
    max_calls: Annotated[
        int | None, typer.Option(help="Requests that all of them may send.")
    ] = None,
    price: Annotated[
        tuple[float, float, float] | None,
        typer.Option(help="US dollars per million tokens: input, cached, output."),
    ] = None,
) -> None:
    """Audit a judge: one page on what moves its scores that should not. Resumes when stopped."""
    import rubricnb as rb
    from rubricnb.auditing import audit_cost

    with errors():
        items = rb.load(data, n_items, seed, path, rubric)
        typer.echo(cost_line(audit_cost(judge, items, readout, price)))
        if cost:
            return
        found = rb.audit(
            judge, items, output, readout=readout, temperature=temperature, seed=seed,
            max_calls=max_calls, max_cost=max_cost, price=price,
        )  # fmt: skip
        typer.echo("\n".join(found["sentence"]))
        typer.echo(f"written: {output}")


@app.command("compile")
def compile_bundle(
    rubric: Annotated[Path, typer.Argument(help="Your file of rubrics, YAML or CSV.")],
    judge: Annotated[
        str, typer.Option(help="Who writes the checklist: openai:MODEL, vllm:MODEL, …")
    ],
    output: Annotated[Path, typer.Option(help="The bundle to write; its lock beside it.")] = Path(
        "my_bundle.json"
    ),
    n_items: Annotated[int, typer.Option(help="Checklist items in all.")] = 15,
    min_evidence: Annotated[int, typer.Option(help="Quotes that a trait needs.")] = 2,
    input_type: Annotated[str, typer.Option(help="What is judged: essays, replies, …")] = "texts",
    temperature: Annotated[float, typer.Option(help="Of the sampling; 0 is greedy.")] = 0.0,
    seed: Annotated[int, typer.Option(help="Of the sampling.")] = 0,
) -> None:
    """Compile a rubric of your own into a locked bundle: parameter bundle of chapters 15 to 18."""
    from contextlib import closing

    from rubricnb.data import read_rubrics
    from rubricnb.judging import open_judge
    from rubricnb.rulers import compile_rubric

    with errors():
        if output.suffix != ".json" or output.exists() or not output.parent.is_dir():
            what = "stands there already" if output.exists() else "is no name for a new JSON file"
            raise ValueError(f"{output} {what}: give another with --output NAME.json")
        levels = read_rubrics(rubric)
        criteria = ", ".join(levels["criterion"].astype(str).unique())
        with closing(open_judge(judge)) as opened:
            if "json" not in opened.readouts:
                raise ValueError(
                    f"{judge} fills in no documents: compile with openai:MODEL, vllm:MODEL or "
                    "embedded (or simulated:grader, which writes placeholders)"
                )
            typer.echo(
                f"{opened.slug} is asked once, with the whole of {rubric.name}, for a definition "
                f"of each trait ({criteria}) and {n_items} checklist items; the levels stay yours"
            )
            bundle = compile_rubric(
                levels, opened, name=output.stem, input_type=input_type, n_items=n_items,
                min_evidence=min_evidence, temperature=temperature, seed=seed,
            )  # fmt: skip
        for trait in bundle.traits:
            typer.echo(f"{trait.name}: {trait.definition}")
            typer.echo("\n".join(f"  {c.id} {c.text}" for c in bundle.of_trait(trait)))
        typer.echo(
            f"written and locked: {bundle.save(output)} ({bundle.lock[:12]}…). Read it before it "
            f"grades: -p bundle {output}"
        )


@contextmanager
def errors() -> Iterator[None]:
    """Show what the user can mend as one message, without a traceback of ours."""
    try:
        yield
    except (ValueError, OSError, RuntimeError, ImportError) as error:
        typer.echo(f"error: {error}", err=True)
        raise typer.Exit(1) from None


def cost_line(cost: Any) -> str:
    """Say what is estimated, in one line."""
    sums = cost[["calls", "prompt_tokens", "completion_tokens"]].sum()
    known = [
        f"about {value:,.{digits}f} {unit}"
        for name, unit, digits in (("hours", "hours", 1), ("price", "US dollars", 2))
        if (value := cost[name].sum(skipna=False)) > 0
    ]
    tokens = f"about {sums.prompt_tokens:,} tokens in and {sums.completion_tokens:,} out"
    return f"{sums.calls:,} calls, {', '.join([tokens, *known])}"


def _table(frame: Any) -> str:
    return frame.to_string(index=False, max_colwidth=60) if len(frame) else "(none)"


def _parameters(arguments: list[str]) -> dict[str, Any]:
    """Read ``-p name value -p name value …``; values are YAML, as papermill's are.

    >>> _parameters(["-p", "n_items", "4", "-p", "judge", "openai:gpt-4.1"])
    {'n_items': 4, 'judge': 'openai:gpt-4.1'}
    >>> _parameters(["-p", "criterion", ""])
    {'criterion': ''}
    """
    triples = [arguments[start : start + 3] for start in range(0, len(arguments), 3)]
    for triple in triples:
        if len(triple) < 3 or triple[0] not in ("-p", "--parameter"):
            raise ValueError(f"{' '.join(triple)!r}: parameters are given as -p NAME VALUE")
    return {name: yaml.safe_load(value) if value else "" for _, name, value in triples}
