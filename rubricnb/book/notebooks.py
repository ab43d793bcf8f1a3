"""Read and execute the notebooks of a clone, with your own parameters."""

from __future__ import annotations

import ast
import csv
import logging
import os
import platform
import re
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date
from itertools import pairwise
from pathlib import Path
from typing import Any
from unittest.mock import patch

import rubricnb
from rubricnb.core.support.spelling import one_of
from rubricnb.core.support.types import Json
from rubricnb.files.outputs import check_outputs

# parameters that name a file of one's own
_PATH_PARAMETERS = ("path", "rubric", "bundle", "references")
# a kernel that has not started by then hangs; a busy machine needs a minute
Values = Mapping[str, Any]
_START_SECONDS = 300
# Reach a kernel through Unix sockets in the folder it runs in: a TCP port is chosen
# first and bound later, by then perhaps by another kernel that starts at the same time.
_TRANSPORT = {"transport": "ipc", "ip": "kernel"}


class BookError(RuntimeError):
    """A notebook failed, or Jupyter Book warned; the message says where."""


@dataclass(frozen=True)
class Parameter:
    """One line of a parameters cell: ``name: annotation = default  # comment``."""

    name: str
    annotation: str
    default: Any
    comment: str


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
    for folder in (Path.cwd(), *Path.cwd().parents, Path(__file__).parents[2]):
        if (folder / "_toc.yml").is_file() and (folder / "_config.yml").is_file():
            return folder
    raise FileNotFoundError(
        f"there is no book in {Path.cwd()} or above it (_config.yml and _toc.yml are "
        "missing): the notebooks are not part of the installed package; run this in a "
        "clone of the repository"
    )


def find_notebook(stem: str, root: Path | None = None) -> Path:
    """Return a notebook's text file.

    Parameters
    ----------
    stem
        ``"05_position_bias"``; the number alone (``"05"`` or ``"5"``) or the path will
        do.
    root
        The clone; default: as `find_root`.

    Raises
    ------
    ValueError
        There is no such notebook; the message lists those there are.

    Examples
    --------
    >>> find_notebook("99_nothing")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ValueError: unknown notebook '99_nothing'. There are: ...
    """
    known = {
        path.stem: path
        for path in sorted(((root or find_root()) / "notebooks").glob("*.md"))
    }
    name = Path(stem).stem
    number = name.zfill(2) if name.isdigit() else name  # 5 is 05
    stems = [one for one in known if name == one or one.split("_")[0] == number]
    if not stems:
        one_of("notebook", stem, known)
    return known[stems[0]]


def parameters(stem: str, root: Path | None = None) -> list[Parameter]:
    """Return what a notebook's parameters cell declares.

    Parameters
    ----------
    stem
        ``"05_position_bias"``; the number alone (``"05"``) will do.
    root
        The clone; default: as `find_root`.

    Returns
    -------
    list of Parameter
        In the order of the cell; the defaults are Python values.

    Raises
    ------
    ValueError
        The cell breaks the contract: exactly one cell is tagged ``parameters``; each of
        its lines
        is ``name: annotation = literal  # comment``.

    Examples
    --------
    >>> parameters("05")[0].name
    'dataset'
    """
    return _declared_parameters(read(stem, root or find_root()), stem)


def check_given(cells: Sequence[str]) -> None:
    """Refuse parameters that a notebook does not declare, or has with another type.

    Parameters
    ----------
    cells
        The cells executed so far, IPython's ``In``; papermill's own follows that of the
        parameters.

    Raises
    ------
    ValueError
        As `execute`.

    Examples
    --------
    >>> check_given(["n_items: int = 0  # 0 takes all", "# Parameters\\nn_item = 4"])
    Traceback (most recent call last):
    ValueError: papermill: unknown parameter 'n_item'; did you mean 'n_items'? \
There are: n_items
    """
    for declaring, injected in pairwise(cells):
        if injected.startswith("# Parameters\n"):
            values = {
                ast.unparse(node.targets[0]): ast.literal_eval(node.value)
                for node in ast.parse(injected).body
                if isinstance(node, ast.Assign)
            }
            check_values(values, _parameters_in(declaring, "papermill"), "papermill")


def execute(
    stem: str,
    parameters: Values | None = None,
    output: Path | None = None,
    *,
    root: Path | None = None,
    cell_seconds: int | None = None,
    first: str = "pass",
) -> Any:
    """Execute one notebook with parameters, in a scratch folder that is removed.

    Parameters
    ----------
    stem
        ``"05_position_bias"``; the number alone (``"05"``) will do.
    parameters
        Names and values that replace defaults of its parameters cell.
    output
        Where to write the executed notebook (``.ipynb``); by default it is only
        returned.
    root
        The clone; default: as `find_root`.
    cell_seconds
        Seconds after which a cell counts as hung; ``None`` waits for ever.
    first
        One line of code that the kernel executes before the notebook.

    Returns
    -------
    nbformat.NotebookNode
        The notebook with its outputs. Its metadata entry ``rubricnb`` says when, with
        what and how long it ran; nothing in it names this machine.

    Raises
    ------
    ValueError
        An unknown notebook or parameter (the known ones are listed), a value that does
        not fit the parameter's annotation, or an `output` that cannot be written, is no
        ``.ipynb``, or is one of the files that are read.
    BookError
        A cell failed; the message ends in its traceback. What ran until then is in
        `output`.

    Examples
    --------
    >>> execute("99_nothing")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ValueError: unknown notebook '99_nothing'. There are: ...
    """
    import nbformat
    import papermill
    from traitlets.config import Config

    logging.getLogger("papermill").setLevel(logging.ERROR)
    root = root or find_root()
    notebook = read(stem, root)
    stem, values = notebook.metadata.rubricnb["stem"], dict(parameters or {})
    check_values(values, _declared_parameters(notebook, stem), stem)
    target = output and Path(output).resolve()
    if target:
        _check_output(target, root, values)
    start = time.perf_counter()
    with _scratch_folder(first) as folder:
        try:
            executed = papermill.execute_notebook(
                notebook,
                target and _without_fields(target),
                parameters=_with_absolute_paths(values),
                kernel_name="python3",
                progress_bar=False,
                cwd=folder,
                start_timeout=_START_SECONDS,
                execution_timeout=cell_seconds,
                config=Config(KernelManager=_TRANSPORT if os.name == "posix" else {}),
            )
        except papermill.PapermillExecutionError as error:
            raise BookError(f"notebook {stem} failed\n{plain(str(error))}") from None
    executed.metadata["rubricnb"] = {
        "stem": stem,
        "executed": date.today().isoformat(),
        "seconds": round(time.perf_counter() - start, 1),
        "parameters": values,
        "version": rubricnb.__version__,
        "python": platform.python_version(),
        "platform": f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores",
    }
    _forget_machine(executed)
    if target:
        nbformat.write(executed, target)
    return executed


# Reading
# --------------------------------------------------------------------------------------


def read(stem: str, root: Path, edit: Callable[[str], str] = str) -> Any:
    """Read a notebook's text with its recorded numbers, and metadata all can read."""
    import jupytext

    path = find_notebook(stem, root)
    text = with_recorded(
        edit(path.read_text("utf-8")), recorded_numbers(root).get(path.stem, {})
    )
    notebook = jupytext.reads(text, fmt="md:myst")
    notebook.metadata = type(notebook.metadata)(
        kernelspec={
            "display_name": "Python 3",
            "language": "python",
            "name": "python3",
        },
        rubricnb={"stem": path.stem},
    )
    for index, cell in enumerate(notebook.cells):
        cell["id"] = f"cell-{index:03d}"
    return notebook


def _declared_parameters(notebook: Any, stem: str) -> list[Parameter]:
    tagged = [
        cell for cell in notebook.cells if "parameters" in cell.metadata.get("tags", [])
    ]
    if len(tagged) != 1:
        raise ValueError(
            f"{stem}: {len(tagged)} cells are tagged 'parameters'; one must be"
        )
    return _parameters_in(tagged[0].source, stem)


def _parameters_in(source: str, stem: str) -> list[Parameter]:
    lines = source.splitlines()
    try:
        return [
            _parameter(node, lines[node.lineno - 1]) for node in ast.parse(source).body
        ]
    except (AttributeError, ValueError):
        raise ValueError(
            f"{stem}: write each line of the parameters cell as 'name: type = value  # "
            "comment', with a literal value; compute a derived one in the next cell"
        ) from None


def _parameter(node: Any, line: str) -> Parameter:
    comment = line[node.end_col_offset :].partition("#")[2].strip()
    default = ast.literal_eval(node.value)
    return Parameter(node.target.id, ast.unparse(node.annotation), default, comment)


def check_values(values: Values, declared: Sequence[Parameter], where: str) -> None:
    """Refuse a value whose name is not declared, or whose type is another one."""
    annotations = {parameter.name: parameter.annotation for parameter in declared}
    known_only("parameter", values, annotations, where)
    for name, value in values.items():
        if not _fits(value, annotations[name]):
            as_yaml = f"; papermill takes it as -y '{name}: {value}'"
            raise ValueError(
                f"{where}: {name} = {value!r} is not of type {annotations[name]}"
                f"{as_yaml if isinstance(value, str) else ''}"
            )


def _fits(value: Any, annotation: str) -> bool:
    """Whether a value fits an annotation, judged by its outermost types only.

    >>> _fits(4, "float"), _fits(None, "int | None")
    (True, True)
    >>> _fits("four", "int"), _fits(True, "int")
    (False, False)
    """
    type_names = {*re.sub(r"\[.*\]", "", annotation).replace(" ", "").split("|")}
    type_name = type(value).__name__.replace("NoneType", "None")
    fitting = {type_name, "Any", *(["float"] if type_name == "int" else [])}
    return bool(fitting & type_names)


def _check_output(target: Path, root: Path, values: Values) -> None:
    """Refuse an output that is no notebook, or that is read."""
    way_out = "write to a different file that ends in .ipynb"
    if target.suffix != ".ipynb":
        raise ValueError(f"{target.name} is no name of a notebook: {way_out}")
    if target.parent == (root / "notebooks").resolve():
        raise ValueError(
            f"{target}: notebooks in notebooks/ are kept without outputs; {way_out}"
        )
    check_outputs([target], [values.get(name) for name in _PATH_PARAMETERS], way_out)


def _without_fields(target: Path) -> str:
    """Return a path that papermill, which formats it, leaves as it is."""
    return str(target).replace("{", "{{").replace("}", "}}")


def _with_absolute_paths(values: Values) -> Json:
    """Make a path to own data absolute: the notebook runs in another folder."""
    return {
        name: str(Path(value).resolve())
        if name in _PATH_PARAMETERS and value and Path(value).exists()
        else value
        for name, value in values.items()
    }


def known_only(what: str, given: Values, known: Any, where: object) -> None:
    """Refuse an unknown name; the message lists the known ones."""
    for name in given:
        one_of(what, name, known, f"{where}: ")


# Executing
# --------------------------------------------------------------------------------------


@contextmanager
def _scratch_folder(first: str) -> Iterator[Path]:
    """A working folder for a notebook, and the environment every notebook runs in."""
    with tempfile.TemporaryDirectory(prefix="rubricnb-") as folder:
        profile = Path(folder) / ".ipython" / "profile_default"
        profile.mkdir(parents=True)
        # Vector figures, the same bytes from the same numbers;
        # nothing from the user's own profile.
        (profile / "ipython_kernel_config.py").write_text(
            "c.InlineBackend.figure_formats = {'svg'}\n"
            "c.InlineBackend.print_figure_kwargs = "
            "{'bbox_inches': 'tight', 'metadata': {'Date': None, 'Creator': None}}\n"
            "c.HistoryManager.enabled = False\n"
            # else it warns of its unencrypted loopback port
            "c.IPKernelApp.log_level = 50\n"
            f"c.InteractiveShellApp.exec_lines = [{first!r}]\n"
        )
        variables = {
            "IPYTHONDIR": str(profile.parent),
            "MATPLOTLIBRC": str(Path(__file__).with_name("matplotlibrc")),
            # Figures as vectors, whatever backend the user's own scripts draw with.
            "MPLBACKEND": "module://matplotlib_inline.backend_inline",
            "PYDEVD_DISABLE_FILE_VALIDATION": "1",
            # One notebook runs on each core,
            # so more threads in a notebook would only wait.
            "OPENBLAS_NUM_THREADS": os.environ.get("OPENBLAS_NUM_THREADS", "1"),
        }
        mirror = os.environ.get("RUBRICNB_MIRROR", "")
        if mirror and "://" not in mirror:
            variables["RUBRICNB_MIRROR"] = str(Path(mirror).resolve())
        with patch.dict(os.environ, variables):
            yield Path(folder)


def _forget_machine(notebook: Any) -> None:
    """Remove what papermill adds: paths of this machine and times of every cell."""
    notebook.metadata.pop("papermill", None)
    for cell in notebook.cells:
        cell.metadata.pop("papermill", None)
        cell.metadata.pop("execution", None)
        if "injected-parameters" in cell.metadata.get("tags", []):
            cell["id"] = "injected-parameters"


def plain(text: str) -> str:
    """Remove the colours of a terminal."""
    return re.sub(r"\x1b\[[0-9;]*m", "", text)


# Recorded numbers
# ----------------------------------------------------------------------------

RECORDED_FILE = "book/recorded.csv"
RECORDED_ROLE = re.compile(r"\{recorded\}`([^`]+)`")


def recorded_numbers(root: Path | None = None) -> dict[str, dict[str, str]]:
    """Return what chapters glued when they were executed with their defaults.

    A chapter's ``{recorded}`` roles name these numbers. They stand in sentences about
    the book's own judges, which a run with other parameters must not change.

    Parameters
    ----------
    root
        The clone; default: as `find_root`.

    Returns
    -------
    dict
        Stem → name in the role, with its format if it has one (``share:.1%``) → text.

    Examples
    --------
    >>> "02_balanced_permutation" in recorded_numbers()
    True
    """
    path = (root or find_root()) / RECORDED_FILE
    numbers = dict[str, dict[str, str]]()
    if path.is_file():
        with path.open(encoding="utf-8", newline="") as file:
            for row in csv.DictReader(file):
                numbers.setdefault(row["chapter"], {})[row["name"]] = row["text"]
    return numbers


def with_recorded(text: str, numbers: Mapping[str, str]) -> str:
    """Put recorded numbers in the place of their roles; a role without a number stays.

    Examples
    --------
    >>> with_recorded("It is {recorded}`a` and {recorded}`b`.", {"a": "5 %"})
    'It is 5 % and {recorded}`b`.'
    """

    def replacement(role: re.Match[str]) -> str:
        if role[1] not in numbers:
            return role[0]
        return re.sub(r"([\\`$*{])", r"\\\1", numbers[role[1]])

    return RECORDED_ROLE.sub(replacement, text)


# What was glued
# --------------------------------------------------------------------------------------


GLUED = "application/papermill.record/"


def glued(notebook: Any) -> dict[str, Json]:
    """Return what an executed notebook has glued: name → kind of content → content."""
    return {
        output.metadata.scrapbook.name: {
            kind.removeprefix(GLUED): content for kind, content in output.data.items()
        }
        for output in glued_outputs(notebook)
    }


def glued_outputs(notebook: Any) -> Iterator[Any]:
    """Yield the outputs that were glued, in order."""
    for cell in notebook.cells:
        for output in cell.get("outputs", []):
            if "scrapbook" in output.get("metadata", {}):
                yield output
