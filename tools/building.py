"""Execute what changed, stage it, and build the book.

What you read is what ran: papermill executes every notebook of the table of contents
into a staged copy of the tree, and Jupyter Book renders that copy without executing
anything itself. A notebook whose text, parameters, package source and results are
unchanged is not executed again.
"""

from __future__ import annotations

import filecmp
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from contextlib import suppress
from copy import deepcopy
from importlib.metadata import PackageNotFoundError, requires, version
from multiprocessing import get_context
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import nbformat
import yaml

from rubricnb.book.notebooks import (
    GLUED,
    BookError,
    check_values,
    execute,
    find_notebook,
    find_root,
    glued_outputs,
    known_only,
    parameters,
    plain,
    recorded_numbers,
)
from rubricnb.core.support.settings import read_yaml, section
from tools.browser import refresh_browser
from tools.git import git
from tools.recorded import differences
from tools.slides import slides

WORKERS = 2  # notebooks executed at a time


CELL_SECONDS = 900  # a cell of the book that runs longer than this hangs


_NOTEBOOK = re.compile(r"^notebooks/(\w+)$")


# What the staged tree holds beside the executed notebooks:
# the pages and what they link to.
_STAGED = (
    "CITATION.cff",
    "_config.yml",
    "_toc.yml",
    "_ext/*",
    "_static/**/*",
    "book/**/*",
    "examples/own-data/*",
    "findings/*.csv",
    "params/*.yml",
    "results/**/*.csv",
    "results/**/*.json",
    "rubricnb/**/*.py",
    "rubricnb/**/*.csv",
    "rubricnb/**/*.yml",
    "rubricnb/**/*.jinja",
    "*.md",
)


# What a notebook's output depends on beside its own text and parameters.
_SOURCES = ("rubricnb/**/*", "results/**/*")


def notebooks(root: Path | None = None) -> list[str]:
    """Return the stems of the book's notebooks, in the order of the table of contents.

    Parameters
    ----------
    root
        Folder of ``_toc.yml``; by default the clone of the current folder, else that of
        the installed package.

    Raises
    ------
    FileNotFoundError
        Neither is a clone of the repository.

    Examples
    --------
    >>> from tempfile import mkdtemp
    >>> root = Path(mkdtemp())
    >>> toc = "root: book/index\\nchapters: [file: notebooks/05_x]"
    >>> _ = (root / "_toc.yml").write_text(toc)
    >>> notebooks(root)
    ['05_x']
    """
    return [match[1] for page in pages(root) if (match := _NOTEBOOK.match(page))]


def pages(root: Path | None = None) -> list[str]:
    """Return every page of the table of contents, without suffix, in order.

    Examples
    --------
    >>> from tempfile import mkdtemp
    >>> root = Path(mkdtemp())
    >>> toc = "root: book/index\\nchapters: [file: notebooks/05_x]"
    >>> _ = (root / "_toc.yml").write_text(toc)
    >>> pages(root)
    ['book/index', 'notebooks/05_x']
    """
    toc = yaml.safe_load(((root or find_root()) / "_toc.yml").read_text("utf-8"))
    return list(_files(toc))


def parameter_file(path: Path, root: Path | None = None) -> dict[str, dict[str, Any]]:
    """Read a parameter file: which notebook runs with which values.

    Parameters
    ----------
    path
        YAML with the sections ``defaults: {name: value}``, given to every notebook that
        has the name, and ``notebooks: {stem: {name: value}}``, which goes before the
        defaults.
    root
        The clone; see `notebooks`.

    Returns
    -------
    dict
        Stem to parameters; a notebook that keeps all its own defaults has an empty
        dict.

    Raises
    ------
    ValueError
        An unknown section or notebook, or a name that no notebook it is meant for
        declares.

    Examples
    --------
    >>> from tempfile import mkdtemp
    >>> path = Path(mkdtemp()) / "mine.yml"
    >>> _ = path.write_text("default: {n_items: 4}")
    >>> parameter_file(path)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ValueError: ...: unknown section 'default'; did you mean 'defaults'? There are: ...
    """
    root = root or find_root()
    given = read_yaml(path)
    known_only("section", given, ["defaults", "notebooks"], path)
    defaults, own = section(given, "defaults", path), section(given, "notebooks", path)
    declared = {
        stem: {p.name: p for p in parameters(stem, root)} for stem in notebooks(root)
    }
    known_only("notebook", own, declared, path)
    known_only(
        "parameter",
        defaults,
        sorted({name for names in declared.values() for name in names}),
        path,
    )
    plan = {}
    for stem, names in declared.items():
        inherited = {name: value for name, value in defaults.items() if name in names}
        plan[stem] = {**inherited, **section(own, stem, path)}
        check_values(plan[stem], list(names.values()), f"{path}: {stem}")
    return plan


def build(params: Path | None = None, *, root: Path | None = None) -> Path:
    """Execute what changed, stage it, and build the book with Jupyter Book.

    Parameters
    ----------
    params
        A parameter file (see `parameter_file`); by default every notebook keeps its
        defaults.
    root
        The clone; see `notebooks`.

    Returns
    -------
    pathlib.Path
        The page to open, ``_build/html/index.html``.

    Raises
    ------
    BookError
        A notebook failed (its traceback is in the message), or Jupyter Book warned.

    Examples
    --------
    ``make book``, ``python -m tools book --params params/mine.yml``, or

    >>> page = build()  # doctest: +SKIP
    """
    root = root or find_root()
    plan = (
        parameter_file(params, root)
        if params
        else {stem: {} for stem in notebooks(root)}
    )
    executed = _execute_all(plan, root, Path(params).name if params else None)
    stage = root / "_build" / "stage"
    _stage(executed, root, stage)
    _render(root, stage)
    slides(executed, root, root / "_build" / "html" / "slides")
    refresh_browser(root)
    if not params:
        _check_recorded(executed, root)
    page = root / "_build" / "html" / "index.html"
    print(f"the book: {page}")
    return page


def _commit(root: Path) -> str:
    """Return the commit that a run is of; none if unknown, or sources differ."""
    changed = git(root, "status", "--porcelain", "--untracked-files=no")
    return "" if changed else git(root, "rev-parse", "--short=10", "HEAD")


def executed_with_defaults(stem: str, root: Path | None = None) -> Any:
    """Return a notebook as it was last executed for the book, or execute it now."""
    root = root or find_root()
    digest = _digest(stem, {}, root, _digest_sources(root))
    return _cached(root / "_build" / "executed" / f"{stem}.ipynb", digest) or execute(
        stem, root=root, cell_seconds=CELL_SECONDS
    )


def _check_recorded(executed: Mapping[str, Any], root: Path) -> None:
    """Refuse a book whose sentences print other numbers than its chapters found."""
    differ = {
        stem: lines
        for stem, notebook in executed.items()
        if (lines := differences(stem, notebook, root))
    }
    if differ:
        listed = "\n".join(line for lines in differ.values() for line in lines)
        numbers = " ".join(stem.split("_")[0] for stem in differ)
        raise BookError(
            f"{listed}\nrun 'python -m tools record {numbers}', and read the sentences "
            "it prints"
        )


def _files(node: Any) -> Iterator[str]:
    """Yield the files of a table of contents, depth first."""
    if isinstance(node, dict):
        for key in ("root", "file"):
            if key in node:
                yield str(Path(node[key]).with_suffix(""))
        for value in node.values():
            yield from _files(value)
    elif isinstance(node, list):
        for value in node:
            yield from _files(value)


def _execute_all(
    plan: Mapping[str, Mapping[str, Any]], root: Path, file: str | None
) -> dict[str, Any]:
    """Execute the notebooks whose cached run is stale; return all of them, in order."""
    cache = root / "_build" / "executed"
    cache.mkdir(parents=True, exist_ok=True)
    sources = _digest_sources(root)
    digests = {
        stem: _digest(stem, values, root, sources) for stem, values in plan.items()
    }
    fresh = {stem: _cached(cache / f"{stem}.ipynb", digests[stem]) for stem in plan}
    failures, commit = [], _commit(root)
    for stem, outcome in _outcomes([s for s in plan if fresh[s] is None], plan, root):
        if isinstance(outcome, BaseException):
            failures.append(str(outcome) or repr(outcome))
            print(f"{stem:<32} FAILED", flush=True)
            continue
        outcome.metadata.rubricnb["digest"] = digests[stem]
        outcome.metadata.rubricnb["commit"] = commit
        nbformat.write(outcome, cache / f"{stem}.ipynb")
        fresh[stem] = outcome
        print(f"{stem:<32} {outcome.metadata.rubricnb['seconds']:6.1f} s", flush=True)
    if failures:
        raise BookError("\n\n".join(failures))
    executed = {
        stem: notebook for stem, notebook in fresh.items() if notebook is not None
    }
    for notebook in executed.values():
        notebook.metadata.rubricnb["parameter_file"] = file
    return executed


def _outcomes(
    stems: Sequence[str], plan: Mapping[str, Mapping[str, Any]], root: Path
) -> Iterator[tuple[str, Any]]:
    """Yield (stem, executed notebook or exception) as they come, a few at a time."""
    if unchanged := len(plan) - len(stems):
        print(f"{unchanged} notebook{'s' * (unchanged > 1)} unchanged", flush=True)
    if not stems:
        return
    # Processes of their own: papermill changes the working directory
    # of the one it runs in.
    with ProcessPoolExecutor(WORKERS, mp_context=get_context("spawn")) as pool:
        futures: dict[Future[Any], str] = {
            pool.submit(measured, stem, dict(plan[stem]), root): stem for stem in stems
        }
        for future in as_completed(futures):
            yield futures[future], future.exception() or future.result()


def measured(stem: str, values: Mapping[str, Any], root: Path) -> Any:
    """Execute a notebook; note its kernel's most memory as ``peak_mb``."""
    with TemporaryDirectory() as folder:
        peak = Path(folder) / "peak"
        notebook = execute(
            stem,
            values,
            root=root,
            cell_seconds=CELL_SECONDS,
            first=_after_every_cell(peak),
        )
        # bytes on macOS, kilobytes elsewhere
        unit = 1e6 if sys.platform == "darwin" else 1e3
        notebook.metadata.rubricnb["peak_mb"] = round(int(peak.read_text()) / unit)
    return notebook


def _after_every_cell(path: Path) -> str:
    """Return the code that makes a kernel record its peak memory in a file.

    After every cell, not at the kernel's exit: a kernel that exits slowly is killed. On
    Linux ``ru_maxrss`` also counts what the parent held when it started the kernel; the
    high-water mark of the kernel's own memory does not.
    """
    status = "__import__('pathlib').Path('/proc/self/status').read_text()"
    peak = (
        f"{status}.split('VmHWM:')[1].split()[0]"
        if sys.platform == "linux"
        else "str(__import__('resource').getrusage(0).ru_maxrss)"
    )
    return (
        "get_ipython().events.register('post_run_cell', "
        f"lambda _: __import__('pathlib').Path({str(path)!r}).write_text({peak}))"
    )


def _versions() -> str:
    """Return the versions of what rubricnb needs to run and render."""
    required = [
        line for line in requires("rubricnb") or [] if 'extra == "test"' not in line
    ]
    names = {re.split(r"[^\w.-]", line)[0] for line in required}
    versions = []
    for name in sorted(names):
        with suppress(PackageNotFoundError):
            versions.append(f"{name}=={version(name)}")
    return "\n".join(versions)


def _cached(path: Path, digest: str) -> Any:
    if not path.is_file():
        return None
    notebook = nbformat.read(path, as_version=4)
    return notebook if notebook.metadata.rubricnb.get("digest") == digest else None


def _digest(stem: str, values: Mapping[str, Any], root: Path, sources: bytes) -> str:
    text = find_notebook(stem, root).read_bytes()
    numbers = json.dumps(recorded_numbers(root).get(stem, {})).encode()
    parts = (
        text,
        numbers,
        json.dumps(values, sort_keys=True, default=str).encode(),
        sources,
    )
    return hashlib.sha256(b"\0".join(parts)).hexdigest()[:32]


def _digest_sources(root: Path) -> bytes:
    """Hash what every notebook depends on: package, results, versions, mirror."""
    digest = hashlib.sha256(
        f"{sys.version} {os.environ.get('RUBRICNB_MIRROR')}".encode()
    )
    for path in _glob(root, _SOURCES):
        if "__pycache__" not in path.parts:
            digest.update(f"\0{path.relative_to(root)}\0".encode() + path.read_bytes())
    digest.update(_versions().encode())
    return digest.digest()


def _stage(executed: Mapping[str, Any], root: Path, stage: Path) -> None:
    """Update the staged copy; an unchanged file keeps its time stamp."""
    wanted = {path.relative_to(root) for path in _glob(root, _STAGED)}
    for relative in wanted:
        _copy(root / relative, stage / relative)
    record = [notebook.metadata.rubricnb for notebook in executed.values()]
    texts = {
        Path("notebooks") / f"{stem}.ipynb": nbformat.writes(_page(notebook)) + "\n"
        for stem, notebook in executed.items()
    }
    texts[Path("execution.json")] = json.dumps(record, indent=1, default=str) + "\n"
    for relative, text in texts.items():
        path = stage / relative
        if not path.is_file() or path.read_text("utf-8") != text:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, "utf-8")
    for path in _glob(stage, ("**/*",)):
        if path.relative_to(stage) not in wanted | set(texts):
            path.unlink()


def _page(notebook: Any) -> Any:
    """Say under the title how the page was executed; hide what captions show.

    The line says how long the page is to read, and when, how and with what it was
    executed. Glued figures and tables are hidden where they were made: the page shows
    them with their captions.
    """
    notebook = deepcopy(notebook)
    for output in glued_outputs(notebook):
        output.metadata.scrapbook["mime_prefix"] = GLUED
        output.data = {GLUED + k.removeprefix(GLUED): v for k, v in output.data.items()}
    run = notebook.metadata.rubricnb
    used = ", ".join(
        _code(f"{name} = {value!r}") for name, value in run["parameters"].items()
    )
    if run["parameter_file"]:
        used = f"{used or 'defaults'} (from {_code(run['parameter_file'])})"
    text = "\n".join(c.source for c in notebook.cells if c.cell_type == "markdown")
    minutes = len(text.partition("## Exercises")[0].split()) / 200
    line = (
        f"{max(minutes, 1):.0f} min to read, exercises aside · "
        f"executed on {run['executed']} in {run['seconds']:.0f} s · rubricnb "
        f"{run['version']}, Python {run['python']} · parameters: {used or 'defaults'}"
    )
    for cell in notebook.cells:
        title = (
            re.search(r"^# .+$", cell.source, re.M)
            if cell.cell_type == "markdown"
            else None
        )
        if title:
            note = f"\n\n:::{{div}} provenance\n{line}\n:::\n"
            cell.source = cell.source[: title.end()] + note + cell.source[title.end() :]
            break
    return notebook


def _code(text: str) -> str:
    """Write Markdown that shows a text as code, whatever is in it."""
    ticks = max(map(len, re.findall("`+", text)), default=0)
    fence, space = "`" * (ticks + 1), " " * bool(ticks)
    return f"{fence}{space}{text}{space}{fence}"


def _copy(source: Path, target: Path) -> None:
    if not (target.is_file() and filecmp.cmp(source, target, shallow=False)):
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, target)


def _glob(root: Path, patterns: Sequence[str]) -> list[Path]:
    found = {
        path for pattern in patterns for path in root.glob(pattern) if path.is_file()
    }
    return sorted(path for path in found if path.suffix != ".pyc")


def _render(root: Path, stage: Path) -> None:
    """Run Jupyter Book on the staged tree; any warning is an error."""
    environment = root / "_build" / ".doctrees" / "environment.pickle"
    stamp = root / "_build" / "toolchain"
    toolchain = _digest_toolchain(root)
    if not stamp.is_file() or stamp.read_text() != toolchain:
        environment.unlink(missing_ok=True)
    command = [
        sys.executable,
        "-c",
        "from jupyter_book.cli.main import main; main()",
        "build",
    ]
    options = [str(stage), "--path-output", str(root), "-W", "-n", "--keep-going", "-q"]
    start = time.perf_counter()
    done = subprocess.run(
        command + options,
        env={**os.environ, "RUBRICNB_STAGE": str(stage), "PYTHONWARNINGS": "ignore"},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        # A page that warned is not read again by itself:
        # the next build would pass in silence.
        environment.unlink(missing_ok=True)
        said = plain(done.stderr).replace(f"{stage}{os.sep}", "")
        raise BookError(f"Jupyter Book failed, or printed a warning\n{said.strip()}")
    stamp.write_text(toolchain)
    print(f"{'Jupyter Book':<32} {time.perf_counter() - start:6.1f} s")


def _digest_toolchain(root: Path) -> str:
    """Hash what changes how every page is rendered and Sphinx does not notice."""
    digest = hashlib.sha256()
    for path in _glob(root, ("_config.yml", "_toc.yml", "_ext/*")):
        digest.update(path.read_bytes())
    digest.update(_versions().encode())
    return digest.hexdigest()
