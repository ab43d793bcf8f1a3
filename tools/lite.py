"""The notebooks of a class in JupyterLite: a site that runs them in a browser.

Pyodide, its packages and this package are served by the site itself. `browser.csv` and
`lite.csv` list the files with their SHA-256; JupyterLite is installed by hash
(``requirements-lite.txt``). The site is written into ``_build/lite``.
"""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import zipfile
from collections.abc import Iterator
from datetime import UTC, datetime
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory

import nbformat
import pandas as pd

from rubricnb.book.notebooks import find_root
from rubricnb.core.results import AS_TEXT, write_as_text
from tools.browser import (
    _INFO,
    Part,
    _archive,
    _content,
    _libraries,
    _lock,
    _package,
    _sha256,
    checked,
)
from tools.browser import parts as browser_parts
from tools.plain import names_of
from tools.twins import student_notebook

FOLDER = Path("_build", "lite")
NOTEBOOKS = (
    "90_minutes",
    "06_is_the_test_valid",
    "08_how_many_orderings",
    "19_how_noisy",
    "24_how_many_labels",
)
"""The class, and what half a day and a term add to it."""
_TABLE = Path(__file__).with_name("lite.csv")
_JUPYTER = Path(".venv-lite", "bin", "jupyter-lite")
KERNEL = Path(
    *(".venv-lite", "share", "jupyter", "labextensions", "@jupyterlite"),
    *("pyodide-kernel-extension", "static", "pypi"),
)
SETTINGS = "@jupyterlite/pyodide-kernel-extension:kernel"
# The kernel loads these before it is ready, and the first cell of a notebook the rest.
AT_START = [
    "ssl",
    "sqlite3",
    "micropip",
    "piplite",
    "ipykernel",
    "comm",
    "pyodide-kernel",
    "jedi",
    "ipython",
]
AT_FIRST_CELL = ("numpy", "scipy", "pandas", "matplotlib", "rubricnb")
# Recorded answers and tables that these notebooks read.
_TABLES = ("*.csv", "datasets/*.csv", "recordings/*.csv", "validity/*")
_ANSWERS = "minibench/*/minibench.parquet"


def lite_parts() -> list[Part]:
    """Return the files that the site has of the tables.

    Examples
    --------
    >>> sources = {part.source for part in lite_parts()}
    >>> sources == {"npm", "pyodide", "pypi", "kernel", "installed"}
    True
    """
    return [*browser_parts(), *browser_parts(_TABLE)]


def address() -> str:
    """Return the address at which others in this network reach this machine.

    Nothing is sent: the system only chooses the card by which it would be.
    """
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as card:
        try:
            card.connect(("192.0.2.1", 9))  # reserved for documents: RFC 5737
        except OSError:  # no network at all
            return "127.0.0.1"
        return str(card.getsockname()[0])


def build_lite(root: Path | None = None) -> tuple[Path, int]:
    """Build the site.

    Returns
    -------
    folder, size
        What to serve, and how many bytes it has.

    Raises
    ------
    FileNotFoundError
        JupyterLite is not installed, or `RUBRICNB_PYODIDE` lacks a file.
    ValueError
        A file differs from its table.
    ConnectionError
        A file cannot be downloaded.
    RuntimeError
        JupyterLite cannot build; ends in what it says.
    """
    root = root or find_root()
    jupyter = root / _JUPYTER
    if not jupyter.is_file():
        raise FileNotFoundError("JupyterLite is not installed: run 'make lite'")
    target = root / FOLDER
    with TemporaryDirectory() as name:
        source, built = Path(name, "source"), Path(name, "built")
        write_source(source, root)
        command = [str(jupyter), "build", "--lite-dir", str(source), "--apps", "lab"]
        command += ["--no-sourcemaps", "--no-unused-shared-packages"]
        command += ["--output-dir", str(built)]
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, cwd=name
        )
        if done.returncode:
            said = done.stdout + done.stderr
            raise RuntimeError(
                f"JupyterLite cannot build the site: {said.strip()[-2000:]}"
            )
        write_notebooks(built, root)
        shutil.rmtree(target, ignore_errors=True)
        shutil.copytree(built, target)
    return target, sum(p.stat().st_size for p in target.rglob("*") if p.is_file())


def write_source(folder: Path, root: Path) -> None:
    """Write what JupyterLite builds from: its settings, and the files of Pyodide."""
    pyodide = folder / "static" / "pyodide"
    pyodide.mkdir(parents=True)
    write_pyodide(pyodide, root)
    settings = {
        "disablePyPIFallback": True,
        "loadPyodideOptions": {"packages": [*AT_START]},
    }
    config = {
        "appName": "rubricnb",
        "exposeAppInBrowser": True,  # for the tests
        "litePluginSettings": {SETTINGS: settings},
    }
    written = {"jupyter-lite-schema-version": 0, "jupyter-config-data": config}
    (folder / "jupyter-lite.json").write_text(json.dumps(written, indent=1), "utf-8")


def write_notebooks(folder: Path, root: Path) -> None:
    """Write the notebooks and their list; JupyterLite would want a whole server for it.

    The list is what a server answers to the Contents API for its first folder.
    """
    (folder / "files").mkdir()
    entries = []
    for stem in NOTEBOOKS:
        file = folder / "files" / f"{stem}.ipynb"
        # JupyterLite reads texts whole, not as lists of lines.
        text = nbformat.v4.writes(lite_notebook(stem, root), split_lines=False) + "\n"
        file.write_text(text, "utf-8")
        entries.append(_listed(file.name, "notebook") | {"size": len(text.encode())})
    listing = _listed("", "directory") | {"content": entries, "format": "json"}
    (folder / "api" / "contents").mkdir(parents=True, exist_ok=True)
    (folder / "api" / "contents" / "all.json").write_text(json.dumps(listing), "utf-8")


def _listed(name: str, kind: str) -> dict[str, object]:
    now = datetime.now(UTC).isoformat(timespec="seconds")
    return {
        "name": name,
        "path": name,
        "type": kind,
        "created": now,
        "last_modified": now,
        "content": None,
        "format": None,
        "mimetype": None,
        "size": None,
        "writable": True,
    }


def write_pyodide(folder: Path, root: Path) -> None:
    """Write Pyodide's files, this package, and Pyodide's table of all of them."""
    packed = _lock(p for p in lite_parts() if p.source != "installed")
    for part in lite_parts():
        if part.source == "installed":
            continue
        content = _bytes_of(part, root)
        if part.file.endswith(".zip") and part.package:
            content = repacked(content)
            packed[part.package]["sha256"] = _sha256(content)
        (folder / part.file).write_bytes(content)
    own = {
        "comm": _libraries(browser_parts(_TABLE)),
        "libraries": _libraries(browser_parts()),
        "rubricnb": lite_package(root),
    }
    needs = {
        "rubricnb": ["libraries", "matplotlib", "pandas", "scipy", "sqlite3"],
    }
    for name, files in own.items():
        file = _archive(folder, name, files, ".zip")
        packed |= {name: _entry(folder / file, name, needs.get(name, []))}
    # `import rubricnb` in a cell loads it, if the first cell was not run
    packed["rubricnb"]["imports"] = ["rubricnb"]
    packed["matplotlib"]["imports"] = ["matplotlib"]
    lock = {"info": _INFO, "packages": packed}
    (folder / "pyodide-lock.json").write_text(json.dumps(lock, indent=1), "utf-8")


def lite_package(root: Path) -> dict[str, bytes]:
    """Return the files of this package, with the results that the notebooks read."""
    found = _package(root)
    found["rubricnb/book/matplotlibrc"] = (
        root / "rubricnb" / "book" / "matplotlibrc"
    ).read_bytes()
    results = root / "results"
    for path in _files(results, _TABLES):
        found[path.relative_to(root).as_posix()] = path.read_bytes()
    with TemporaryDirectory() as name:
        for path in sorted(results.glob(_ANSWERS)):
            text = Path(name, path.stem + AS_TEXT)
            write_as_text(pd.read_parquet(path), text)
            folder = path.parent.relative_to(root).as_posix()
            found[f"{folder}/{text.name}"] = text.read_bytes()
            found[f"{folder}/run.json"] = (path.parent / "run.json").read_bytes()
    return found


def lite_notebook(stem: str, root: Path) -> nbformat.NotebookNode:
    """Return a student's notebook that begins with what happens in a browser."""
    notebook = student_notebook(stem, root, names_of(root, NOTEBOOKS))
    (at,) = (i for i, c in enumerate(notebook.cells) if c["id"] == "setup-elsewhere")
    note = nbformat.v4.new_markdown_cell(_NOTE)
    note["id"] = "in-a-browser"
    notebook.cells[at].source = _SETUP.format(names=AT_FIRST_CELL)
    notebook.cells.insert(at, note)
    notebook.metadata["kernelspec"] = {
        "display_name": "Python (Pyodide)",
        "language": "python",
        "name": "python",
    }
    return notebook


def _bytes_of(part: Part, root: Path) -> bytes:
    """Return the bytes of a file: Pyodide's, or a wheel that the kernel brings."""
    if part.source != "kernel":
        return _content(part, root)
    path = root / KERNEL / part.file
    if not path.is_file():
        raise FileNotFoundError(f"JupyterLite lacks {part.file}: run 'make lite'")
    return checked(part, path.read_bytes(), "JupyterLite")


def _files(folder: Path, patterns: tuple[str, ...]) -> Iterator[Path]:
    for pattern in patterns:
        yield from sorted(path for path in folder.glob(pattern) if path.is_file())


def _entry(file: Path, name: str, depends: list[str]) -> dict[str, object]:
    """Return the row of Pyodide's table for an archive of Python files."""
    return {
        "depends": depends,
        "file_name": file.name,
        "imports": [],
        "install_dir": "site",
        "name": name,
        "package_type": "package",
        "sha256": _sha256(file.read_bytes()),
        "unvendored_tests": False,
        "version": "0",
    }


def repacked(content: bytes) -> bytes:
    """Return an archive with its files compressed; the same bytes every time."""
    packed = BytesIO()
    with (
        zipfile.ZipFile(BytesIO(content)) as old,
        zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as new,
    ):
        for info in old.infolist():
            new.writestr(info, old.read(info), zipfile.ZIP_DEFLATED, 9)
    return packed.getvalue()


_NOTE = """\
**In your browser.** Python runs in this tab, and nothing you type here leaves it. It \
is loading while there is a lightning bolt beside *Python (Pyodide)*, top right; an \
empty circle means that it is ready. Then press Shift+Enter in one cell after the \
other. The first one loads the libraries: on a first visit, allow a minute. Ctrl+S \
keeps your changes in this browser; after a reload, open the notebook from the list on \
the left."""

_SETUP = """\
# Run this first (Shift+Enter): it loads the libraries, and says which one it is at.
import importlib
import logging
import time

import pyodide_js

began = time.monotonic()
for name in {names}:
    print(name, end=" ... ", flush=True)
    await pyodide_js.loadPackage(name)
logging.getLogger("matplotlib.font_manager").setLevel("ERROR")
importlib.import_module("matplotlib.font_manager")  # lists the fonts, a few seconds
print(f"ready after {{time.monotonic() - began:.0f}} s: go on with the next cell")"""
