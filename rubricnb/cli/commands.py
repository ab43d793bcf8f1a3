"""The command line, ``python -m rubricnb COMMAND``: each calls one function."""

import sys
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager, nullcontext, redirect_stdout
from inspect import Parameter, signature
from pathlib import Path
from typing import Annotated, Any, NoReturn, get_args

import typer

from rubricnb.auditing.options import AuditOptions, in_options, named_values
from rubricnb.core.support.settings import yaml_value
from rubricnb.core.support.shown import showing
from rubricnb.core.support.types import Options
from rubricnb.files.outputs import check_outputs

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="How far can one trust a language model that scores text against a rubric?",
)


_BUNDLE = Path("my_bundle.json")
JudgeOptions = Annotated[
    list[str] | None,
    typer.Option(
        "--option",
        "-o",
        metavar="NAME=VALUE",
        help=(
            "An option of the judge; repeatable: thinking, effort, max_tokens, "
            "concurrency, …"
        ),
    ),
]


def command(
    name: str | None = None, options: Any = None, **settings: Any
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Make a function a command; annotations have what ``--help`` says.

    Its keyword-only parameters, or the fields of `options`, are options.
    """

    def register(function: Callable[..., None]) -> Callable[..., None]:
        own = signature(options or function)
        typed = own.replace(parameters=[*map(_typed, own.parameters.values())])
        function.__signature__ = typed  # type: ignore[attr-defined]
        return app.command(name, **settings)(function)

    return register


def _typed(parameter: Parameter) -> Parameter:
    """Return a parameter as typer takes it."""
    if parameter.name == "option":
        return parameter.replace(annotation=JudgeOptions)
    kind, *said = get_args(parameter.annotation) or (None, None)
    if not isinstance(said[0], str):
        return parameter
    how: Any = typer.Argument(help=said[0])
    if parameter.kind is Parameter.KEYWORD_ONLY:
        name = f"--{parameter.name.replace('_', '-')}"
        how = typer.Option({"--decide": "--as"}.get(name, name), help=said[0])
    return parameter.replace(annotation=Annotated[kind, how])


@command(context_settings={"allow_extra_args": True, "ignore_unknown_options": True})
def execute(
    context: typer.Context,
    notebook: Annotated[str, "Notebook: NN_slug, or NN alone."],
    *,
    output: Annotated[Path | None, "File to write; default: NN_slug.ipynb."] = None,
    option: JudgeOptions = None,
) -> None:
    """Execute one notebook with your own parameters: -p NAME VALUE (repeatable)."""
    from rubricnb.book import notebooks as book

    with errors():
        texts = {p.name for p in book.parameters(notebook) if p.annotation == "str"}
        values = _parameters(context.args, texts)
        values |= {"judge_options": named_values(option)} if option else {}
        target = output or Path(f"{book.find_notebook(notebook).stem}.ipynb")
        try:
            done = book.execute(notebook, values, target)
        except book.BookError as error:
            first, *_, last = str(error).strip().splitlines()
            raise ValueError(f"{first}: {last}. {target} shows the cell") from None
        typer.echo(f"{target}: executed in {done.metadata.rubricnb['seconds']:.1f} s")


@command()
def check(*, store: Annotated[bool, "Check and repair the store."] = False) -> None:
    """Report what is installed, what works here, and how to add the rest."""
    from rubricnb.cli.health import report
    from rubricnb.core.store import default_path
    from rubricnb.engines.rescue import mend

    with errors():
        if store:
            typer.echo(mend(default_path()))
        lines, usable = report()
        typer.echo("\n".join(lines))
        if not usable:
            raise typer.Exit(1)


@command()
def repeats(
    judge: Annotated[str, "Judge, such as embedded or vllm:MODEL."],
    *,
    dataset: Annotated[str, "Whose items it is asked."] = "minibench",
    n_items: Annotated[int, "So many of them, evenly from its prompts."] = 12,
    option: JudgeOptions = None,
) -> None:
    """Ask a judge the same again, in four ways; report whose answers change."""
    import rubricnb as rb
    from rubricnb.auditing.draw import drawn
    from rubricnb.core.judge import judging

    with errors(), judging(judge, **named_values(option)) as described:
        readouts = described.readouts
        readout = "logprobs" if "logprobs" in readouts else readouts[0]
        items = drawn(rb.load(dataset), n_items)
        requests = rb.plan(items, rb.balanced(5), readout=readout)
        found = rb.statistics.repeats(requests, described)
        shown = found[["way", "n_items", "n_lost", "largest"]].round(4)
        for name in ("identical", "changed", "shift"):
            shown[name] = rb.estimate(found, name, ".3f")
        typer.echo(_table(shown))


@command()
def data(
    name: Annotated[str | None, "Dataset to load; default: list all."] = None,
) -> None:
    """List the datasets, or load one (downloads it if needed) and describe it."""
    import rubricnb as rb

    with errors():
        if name is None:
            typer.echo(_table(rb.datasets()))
            return
        items = rb.load(name)
        columns = ["item_id", "text_id", "group_id", "cluster_id", "criterion"]
        counts = items.filter(columns).nunique().items()
        typer.echo(f"{name}: " + ", ".join(f"{n:,} {c}" for c, n in counts))


@command()
def weights(
    name: Annotated[str | None, "Model name; default: list all."] = None,
) -> None:
    """Download the weights of a small judge for embedded:NAME, or list them."""
    from rubricnb.engines.weights import WEIGHTS, described, get_weights, weights_path

    with errors():
        if name is not None:
            typer.echo(f"{name}: {described(name)}")
            typer.echo(f"{get_weights(name)}\njudge with it: embedded:{name}")
            return
        for known in WEIGHTS:
            here = "here" if weights_path(known).is_file() else "not downloaded"
            typer.echo(f"{known:30}{described(known)}; {here}")


@command()
def read(
    file: Annotated[Path, "File of scores, or of texts."],
    *,
    rubric: Annotated[Path | None, "Rubrics of the texts."] = None,
    scale: Annotated[tuple[float, float] | None, "Scale of the scores."] = None,
    columns: Annotated[str, "Rename columns: value=score."] = "",
    reading: Annotated[
        Path | None, "A reading that was saved; say what differs."
    ] = None,
    decide: Annotated[
        list[str] | None, "Answer a question: 'COLUMN KEY: VALUE'."
    ] = None,
    save: Annotated[Path | None, "Write the reading here."] = None,
) -> None:
    """Say what the columns and the values of a file mean, and what is open."""
    import rubricnb as rb

    with errors():
        names = named_values(columns.split(",") if columns else None, "columns")
        decided = reading or decide or []
        found = rb.reading(
            file, None, scale, rubric=rubric, columns=names, decide=decided
        )
        typer.echo(str(found))
        if save:
            found.save(save)
        found.result()


@command(options=AuditOptions)
def audit(**given: Any) -> None:
    """Audit a judge: is it any good, and what moves it? One page. Resumes when stopped.

    --compare takes two judges, two templates (with --judge), two judges or templates
    within --judgments, or two audits (.json). --judge all audits every judge of
    --judgments: audit-NAME.html and .json (one whose name is all, alone:
    rubricnb.audit("all", judgments=FILE) in Python). --datasheet writes a datasheet
    instead of the page, and --check says whether one still describes the judge. Ends
    with 0; with 3 if --fail-on says so, if every text gets the same score or if --check
    finds a change; with 1 on an error.
    """
    from rubricnb.auditing.command import AuditCommand
    from rubricnb.auditing.looks import cost_in_words

    options = AuditCommand(**given)
    gated = slice(0 if options.every_judge else -1, None)
    with errors(), redirect_stdout(sys.stderr) if options.json else nullcontext():
        options.refuse_contradictions()
        if options.check:
            done, failures = options.checked()
        else:
            done = options.audits(
                lambda cost: typer.echo(
                    f"{cost_line(cost)}; of which {cost_in_words(cost)}"
                )
            )
            failures = [why for it in done[: gated.start] for why in it.failures()]
        for found in done:
            paired = found.rows["sentence"][found.rows["section"] == "against"]
            typer.echo("\n  ".join([found.sentence, *found.top["sentence"], *paired]))
        if done and not options.check:
            page = options.page_of("*") if options.every_judge else options.page
            typer.echo(f"written: {page} and {page.with_suffix('.json')}")
    with errors():
        for found in done[gated]:
            if options.json:
                typer.echo(found.to_json())
            failed = found.failures(options.fail_on)
            failures += [options.of_judge(found, why) for why in failed]
            for line in found.false_alarms(options.fail_on):
                typer.echo(options.of_judge(found, line), err=options.json)
        if failures:
            typer.echo(f"failed: {'; '.join(failures)}", err=True)
            raise typer.Exit(3)


@command("compile")
def compile_bundle(
    rubric: Annotated[Path, "Your file of rubrics, YAML or CSV."],
    *,
    judge: Annotated[str, "Judge that writes the checklist: openai:MODEL, …"],
    output: Annotated[Path, "Bundle to write; its lock goes beside it."] = _BUNDLE,
    n_items: Annotated[int, "Checklist items in total."] = 15,
    min_evidence: Annotated[
        int,
        typer.Option(
            min=1, help="Quotes that a score above the middle needs, per trait."
        ),
    ] = 2,
    input_type: Annotated[str, "What is judged: essays, replies, …"] = "texts",
    traits: Annotated[
        str, "Fixed list of traits: ideas,order,style; default: the criteria."
    ] = "",
    anchors: Annotated[
        Path | None,
        "File of scored examples: text, score and, optionally, reason.",
    ] = None,
    variant: Annotated[
        list[str] | None,
        "Wording to compile, repeatable: standard, paraphrased; default: those there "
        "are.",
    ] = None,
    option: JudgeOptions = None,
) -> None:
    """Compile your rubric into a locked bundle (parameter bundle of chapters 15 to 18).

    A rubric that is also worded differently (paraphrased) is compiled in both wordings,
    and the second bundle goes beside the first: NAME.json and NAME-paraphrased.json.
    """
    from contextlib import closing

    from rubricnb.core.judge import configured, describe
    from rubricnb.core.plan import check_readout
    from rubricnb.core.support.spelling import one_of
    from rubricnb.files.rubrics import read_rubrics
    from rubricnb.rulers.compile import compile_rubric, read_anchors

    with errors():
        levels = read_rubrics(rubric)
        worded = levels["variant"].unique()
        for wording in variant or ():
            one_of("variant", wording, worded)
        read = [rubric, anchors, judge.removeprefix("embedded:")]
        files = _bundle_files(output, variant or worded, read)
        names = [name.strip() for name in traits.split(",") if name.strip()]
        criteria = ", ".join(names or levels["criterion"].astype(str).unique())
        examples = read_anchors(anchors, levels) if anchors else []
        asked, settings = configured(judge, named_values(option))
        if settings:
            raise ValueError(
                "compile accepts options of the engine only: leave out "
                f"{', '.join(settings)}"
            )
        with closing(describe(asked).opened()) as opened:
            check_readout(judge, opened.readouts, "json")
            typer.echo(
                f"{opened.slug} is asked {'once' if len(files) == 1 else 'twice'}, "
                f"with the whole of {rubric.name}, for a definition of each trait "
                f"({criteria}) and {n_items} checklist items; the levels stay yours"
            )
            for wording, file in files.items():
                bundle = compile_rubric(
                    levels,
                    opened,
                    name=file.stem,
                    dataset=output.stem,
                    input_type=input_type,
                    traits=names,
                    n_items=n_items,
                    min_evidence=min_evidence,
                    anchors=examples,
                    variant=wording,
                )
                _print_bundle(bundle, bundle.save(file))
        typer.echo(f"Read what was written before it grades: -p bundle {output}")


def _print_bundle(bundle: Any, path: Path) -> None:
    """Print the traits and checklist of a bundle that was saved."""
    for trait in bundle.traits:
        typer.echo(f"{trait.name}: {trait.definition}")
        typer.echo("\n".join(f"  {c.id} {c.text}" for c in bundle.of_trait(trait)))
    typer.echo(f"written and locked: {path} ({bundle.lock[:12]}…)")


def _bundle_files(
    output: Path, variants: Iterable[str], read: Iterable[str | Path | None]
) -> dict[str, Path]:
    """Return each wording's bundle file; refuse one that is read or not writable."""
    files = {
        wording: output.with_stem(f"{output.stem}-{wording}")
        if wording != "standard"
        else output
        for wording in variants
    }
    how = "choose a different one with --output NAME.json"
    written = [
        part
        for file in files.values()
        for part in (file, file.with_suffix(".lock.json"))
    ]
    for file in written:
        if file.suffix != ".json":
            raise ValueError(f"{file} does not end in .json: {how}")
        if file.exists():
            raise ValueError(f"{file} exists already: {how}")
    check_outputs(written, read, how)
    return files


@contextmanager
def errors() -> Iterator[None]:
    """Show errors that the user can fix as one message that acts on no terminal."""
    with showing():
        try:
            yield
        except typer.Exit:
            raise
        except (ValueError, OSError, RuntimeError, ImportError) as error:
            missing = isinstance(error, FileNotFoundError) and error.filename
            _end(f"there is no {missing}" if missing else in_options(str(error)))
        except MemoryError as error:
            _end(f"not enough memory ({error}): ask for less at once")
        except KeyboardInterrupt:
            _end("stopped by Ctrl-C before anything was asked or written", 130)


def _end(said: str, code: int = 1) -> NoReturn:
    typer.echo(f"error: {said}", err=True)
    raise typer.Exit(code) from None


def cost_line(cost: Any) -> str:
    """Return an estimate as one line."""
    sums = cost[["calls", "prompt_tokens", "completion_tokens"]].sum()
    known = [
        f"about {value:,.{digits}f} {unit}"
        for name, unit, digits in (("hours", "hours", 1), ("price", "US dollars", 2))
        if (value := cost[name].sum(skipna=False)) > 0
    ]
    tokens = (
        f"about {sums.prompt_tokens:,} tokens in and {sums.completion_tokens:,} out"
    )
    return f"{sums.calls:,} calls, {', '.join([tokens, *known])}"


def _table(frame: Any) -> str:
    return frame.to_string(index=False, max_colwidth=60) if len(frame) else "(none)"


def _parameters(arguments: list[str], texts: Collection[str] = ()) -> Options:
    """Read ``-p name value …``; values are YAML, as papermill's, or `texts`.

    >>> _parameters(["-p", "n_items", "4", "-p", "judge", "openai:gpt-4.1"])
    {'n_items': 4, 'judge': 'openai:gpt-4.1'}
    >>> _parameters(["-p", "criterion", ""])
    {'criterion': ''}
    >>> given = ["-p", "temperatures", "0.3", "-p", "thinkings", "on"]
    >>> _parameters(given, {"temperatures"})
    {'temperatures': '0.3', 'thinkings': True}
    """
    triples = [arguments[start : start + 3] for start in range(0, len(arguments), 3)]
    for triple in triples:
        if len(triple) < 3 or triple[0] not in ("-p", "--parameter"):
            raise ValueError(
                f"{' '.join(triple)!r}: parameters are given as -p NAME VALUE"
            )
    return {
        name: yaml_value(name, value) if value and name not in texts else value
        for _, name, value in triples
    }
