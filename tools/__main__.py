"""``python -m tools``: build the book and its other forms."""

import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from rubricnb.book import notebooks as books
from rubricnb.cli.commands import errors
from rubricnb.files.outputs import check_outputs
from tools import (
    alone,
    browser,
    building,
    carry,
    lite,
    neurolibre,
    printing,
    recorded,
    twins,
)
from tools.due import due as due_pages

app = typer.Typer(
    no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False
)


@app.command()
def book(
    params: Annotated[
        Path | None, typer.Option(help="Parameter file: judge, size, own data.")
    ] = None,
) -> None:
    """Execute the notebooks that changed and build the book."""
    with errors():
        building.build(params)


@app.command()
def notebooks(
    check: Annotated[
        bool,
        typer.Option(
            "--check", help="List notebooks that differ from their text; write nothing."
        ),
    ] = False,
) -> None:
    """Write each notebook's .ipynb twin (for papermill, Colab, Binder)."""
    with errors():
        changed = twins.twins(check)
        for path in changed:
            typer.echo(
                f"{'differs from its text' if check else 'written'}: {path.name}"
            )
        if check and changed:
            raise ValueError(
                "some notebooks differ from their text: run 'make notebooks'"
            )


@app.command()
def record(
    chapters: Annotated[
        list[str] | None,
        typer.Argument(help="Chapters; default: all with recorded numbers."),
    ] = None,
) -> None:
    """Record the numbers of answers and stories, of a run with default parameters."""
    with errors():
        for change in recorded.record(
            chapters or (), run=building.executed_with_defaults
        ):
            typer.echo(change)
        for path in twins.twins():
            typer.echo(f"written: {path.name}")


@app.command()
def student(
    folder: Annotated[
        Path | None, typer.Argument(help="Folder to write; default: _build/student.")
    ] = None,
) -> None:
    """Write the notebooks without their solutions, for a class."""
    with errors():
        written = twins.student(folder)
        typer.echo(f"{len(written)} notebooks without solutions in {written[0].parent}")


@app.command("alone")
def run_tests_alone() -> None:
    """Run what reads datasets and documents in a clone alone, without a network."""
    raise typer.Exit(alone.run_alone(alone.tests(), books.find_root()))


@app.command("browser")
def browser_files(
    port: Annotated[int, typer.Option(help="Port of the printed line.")] = 8000,
) -> None:
    """Add the files to the built book that its page "Audit here" needs."""
    with errors():
        page, size = browser.add_browser()
        html = browser.FOLDER.parent
        typer.echo(
            f"added: {size / 1e6:.0f} MB in {browser.FOLDER}; serve the book with"
        )
        typer.echo(
            f"  {sys.executable} -m http.server --bind 127.0.0.1 -d {html} {port}"
        )
        typer.echo(f"and open http://127.0.0.1:{port}/book/{page.name}")


@app.command("lite")
def lite_site(
    port: Annotated[int, typer.Option(help="Port of the printed line.")] = 8000,
) -> None:
    """Build the site that runs the notebooks of a class in a browser."""
    with errors():
        folder, size = lite.build_lite()
        folder = folder.relative_to(books.find_root())
        typer.echo(f"built: {folder} ({size / 1e6:.0f} MB); serve it to a class with")
        typer.echo(f"  {sys.executable} -m http.server -d {folder} {port}")
        page = f"{port}/lab/?path={lite.NOTEBOOKS[0]}.ipynb"
        typer.echo(f"every laptop in the room opens http://{lite.address()}:{page}")
        typer.echo("--bind 127.0.0.1 keeps it to this machine")


@app.command("neurolibre")
def neurolibre_layout() -> None:
    """Write the repository in the layout of a NeuroLibre preprint."""
    with errors():
        folder = neurolibre.write_neurolibre()
        typer.echo(f"written: {folder.relative_to(books.find_root())}")


@app.command("carry")
def pack(
    folder: Annotated[Path, typer.Argument(help="Folder for the pieces.")],
    files: Annotated[
        list[Path] | None,
        typer.Argument(help="Other large files to split, such as weights."),
    ] = None,
    megabytes: Annotated[int, typer.Option(help="Size of a piece, in MiB.")] = 60,
) -> None:
    """Pack vLLM for a GPU machine without a network, in pieces."""
    with errors():
        pieces = carry.carry(folder, megabytes, files or ())
        size = sum(piece.stat().st_size for piece in pieces) / 2**20
        typer.echo(
            f"{len(pieces)} pieces, {size:,.0f} MiB, in {folder}; see UNPACK.sh there"
        )


@app.command("prove-carry")
def prove(
    python: Annotated[
        str, typer.Argument(help="Python 3.12 with PyTorch and transformers.")
    ],
) -> None:
    """Import vLLM from the packages of carry.txt alone; name what is missing."""
    with errors(), tempfile.TemporaryDirectory() as folder:
        carry.unpack(carry.download(Path(folder, "wheels")), Path(folder, "site"))
        if lacking := carry.missing(Path(folder, "site"), python):
            raise ValueError(f"tools/carry.txt lacks {', '.join(lacking)}")
        today = datetime.now(UTC).date()
        typer.echo(f"# Imported on {today} as {carry.fingerprint()}")


@app.command()
def due(
    chapters: Annotated[
        bool,
        typer.Option(
            "--chapters", help="Print the staged notebooks of the due chapters."
        ),
    ] = False,
) -> None:
    """Print which pages the check of this commit reads closely."""
    with errors():
        found = due_pages()
        typer.echo(f"due: {found.reason}", err=chapters)
        for page in found.pages:
            if not chapters:
                typer.echo(f"  {page}")
            elif page.startswith("notebooks/"):
                typer.echo(f"_build/stage/{page}.ipynb")


@app.command()
def page(
    notebook: Annotated[Path, typer.Argument(help="Executed notebook (.ipynb).")],
) -> None:
    """Write an executed notebook as one HTML page, to read in a browser."""
    import nbformat

    from tools.onepage import one_page

    with errors():
        if notebook.suffix != ".ipynb":
            raise ValueError(f"{notebook} is no notebook: name one that ends in .ipynb")
        target = notebook.with_suffix(".html")
        check_outputs(
            [target], [notebook], "give the notebook itself, not a link to it"
        )
        target.write_text(one_page(nbformat.read(notebook, 4)), "utf-8")
        typer.echo(f"written: {target} (open it in a browser)")


@app.command("lint")
def check_documents(
    tics: Annotated[
        bool,
        typer.Option("--tics", help="Count the tics of the prose; always succeeds."),
    ] = False,
) -> None:
    """Print where the documents break a rule: a name that is gone, for example."""
    from tools.lint import breaks, tic_report

    with errors():
        if tics:
            typer.echo(tic_report())
        elif found := breaks():
            raise ValueError("\n".join(found))


@app.command()
def ratchet(
    write: Annotated[
        bool,
        typer.Option("--write", help="Take down the rows whose number has fallen."),
    ] = False,
) -> None:
    """Print what each room has, the most that it may have, and the long functions."""
    from rubricnb.book.notebooks import find_root
    from tools import ratchet as numbers
    from tools.clone import Clone

    with errors():
        clone = Clone(find_root())
        table = clone.text(numbers.TABLE)
        now, most = numbers.counts(clone), numbers.limits(table)
        if write:
            (clone.root / numbers.TABLE).write_text(numbers.lowered(now, most), "utf-8")
        for (room, what), n in sorted(now.items()):
            typer.echo(f"{room:10} {what:16} {n:6,} of {most.get((room, what), n):6,}")
        for sentence in numbers.long_functions(clone):
            typer.echo(sentence)


@app.command()
def pdf() -> None:
    """Print the built book into one PDF file, with Chromium."""
    with errors():
        typer.echo(f"the book as PDF: {printing.pdf()}")


if __name__ == "__main__":
    app()
