"""The files that run Python in a browser, for the page "Audit here" of the built book.

`browser.csv` lists them with their sizes and SHA-256. They are copied or downloaded
into ``_build/html/browser``, compared with that table, and never become part of the
repository. What a browser loads beside them is packed here: this package, and the
Python files of a few libraries as they are installed.
"""

from __future__ import annotations

import csv
import gzip
import hashlib
import json
import os
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from io import BytesIO
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

from rubricnb.book.notebooks import find_root
from rubricnb.files.fetch import cache

PYODIDE = "0.27.7"
SOURCES = {
    "npm": f"https://cdn.jsdelivr.net/npm/pyodide@{PYODIDE}/",
    "pyodide": f"https://cdn.jsdelivr.net/pyodide/v{PYODIDE}/full/",
}
"""Where Pyodide's authors put its core and its packages."""
FOLDER = Path("_build", "html", "browser")
_TABLE = Path(__file__).with_name("browser.csv")
_BESIDE = Path("..", "shared", "pyodide", PYODIDE)  # of the clone
# Pyodide's file of packages starts with this.
_INFO = {
    "abi_version": "2024_0",
    "arch": "wasm32",
    "platform": "emscripten_3_1_58",
    "python": "3.12.7",
    "version": PYODIDE,
}
# Packed by their authors without compression; a plain server sends files as they are.
_LOOSE = ("pyodide.asm.wasm", "openblas-0.3.26.zip")
_EPOCH = (2020, 1, 1, 0, 0, 0)  # of files in an archive, so that its bytes repeat
_PACKED = ("**/*.py", "**/*.csv", "**/*.yml", "**/*.jinja", "**/*.json")


@dataclass(frozen=True)
class Part:
    """One row of the table.

    Attributes
    ----------
    file
        The name of the file; for `source` ``installed``, of the module.
    bytes, sha256
        Of the file; of an installed module, of its Python files one after the other.
    source
        ``npm``, ``pyodide``, ``pypi`` or ``installed``.
    package, depends
        The name under which Pyodide knows it, and what it needs there.
    """

    file: str
    bytes: int
    sha256: str
    source: str
    package: str
    depends: tuple[str, ...]


def parts(table: Path = _TABLE) -> list[Part]:
    """Return the rows of a table.

    Examples
    --------
    >>> [part.file for part in parts() if part.source == "pypi"]
    ['pandas-3.1.1-cp312-cp312-pyemscripten_2024_0_wasm32.whl']
    """
    with table.open(encoding="utf-8", newline="") as file:
        return [
            Part(
                row["file"],
                int(row["bytes"]),
                row["sha256"],
                row["source"],
                row["package"],
                tuple(row["depends"].split()),
            )
            for row in csv.DictReader(file)
        ]


def add_browser(root: Path | None = None) -> tuple[Path, int]:
    """Add the files to the built book.

    Returns
    -------
    page, size
        The page to open, and how many bytes it loads.

    Raises
    ------
    FileNotFoundError
        The book is not built, or `RUBRICNB_PYODIDE` lacks a file.
    ValueError
        A file differs from the table.
    ConnectionError
        A file cannot be downloaded.
    """
    root = root or find_root()
    page = root / "_build" / "html" / "book" / "audit-here.html"
    if not page.is_file():
        raise FileNotFoundError("the book is not built: run 'make book' first")
    folder = root / FOLDER
    folder.mkdir(exist_ok=True)
    pyodide = [part for part in parts() if part.source != "installed"]
    for part in pyodide:
        content = _content(part, root)
        if part.file in _LOOSE:
            packed = gzip.compress(content, 9, mtime=0)
            (folder / f"{part.file}.packed").write_bytes(packed)
        else:
            (folder / part.file).write_bytes(content)
    lock = json.dumps({"info": _INFO, "packages": _lock(pyodide)}, indent=1)
    (folder / "pyodide-lock.json").write_text(lock, "utf-8")
    return page, refresh_browser(root)


def refresh_browser(root: Path) -> int:
    """Pack this package anew where the book has the files; return how many bytes load.

    A book without them gets a file that says so, which the page reads.
    """
    folder = root / FOLDER
    folder.mkdir(exist_ok=True)
    manifest: dict[str, object] = {"bytes": 0}
    if (folder / "pyodide-lock.json").is_file():
        for old in folder.glob("*-*.archive"):
            old.unlink()
        archives = [
            _archive(folder, "libraries", _libraries(parts())),
            _archive(folder, "rubricnb", _package(root)),
        ]
        loaded = [p for p in folder.iterdir() if p.suffix not in (".json", ".txt")]
        manifest = {
            "bytes": sum(path.stat().st_size for path in loaded),
            "compressed": list(_LOOSE),
            "packages": ["pandas", "scipy", "sqlite3"],
            "archives": archives,
        }
    (folder / "manifest.json").write_text(json.dumps(manifest), "utf-8")
    return int(str(manifest["bytes"]))


def _content(part: Part, root: Path) -> bytes:
    """Return the bytes of a file, once they are those of the table."""
    source = os.environ.get("RUBRICNB_PYODIDE", "").strip()
    beside = root / _BESIDE
    if source or beside.is_dir():
        folder = Path(source or beside).expanduser()
        if not (folder / part.file).is_file():
            raise FileNotFoundError(
                f"{folder} lacks {part.file}: add it, or set RUBRICNB_PYODIDE to a "
                f"folder with the files of Pyodide {PYODIDE}"
            )
        return checked(part, (folder / part.file).read_bytes(), str(folder))
    kept = cache() / "pyodide" / part.file
    if kept.is_file() and _sha256(kept.read_bytes()) == part.sha256:
        return kept.read_bytes()
    content = checked(part, _downloaded(part), part.source)
    kept.parent.mkdir(parents=True, exist_ok=True)
    kept.write_bytes(content)
    return content


def checked(part: Part, content: bytes, where: str) -> bytes:
    """Return the bytes of a file.

    Raises
    ------
    ValueError
        They are not those of the table.

    Examples
    --------
    >>> part = Part("a.whl", 3, "ba7816bf", "npm", "", ())
    >>> checked(part, b"abd", "npm")
    Traceback (most recent call last):
    ...
    ValueError: a.whl (npm) has SHA-256 a52d159f262b2c6d\
db724a61840befc36eb30c88877a4030b65cbe86298449c9, expected ba7816bf, so it is not used
    """
    if (got := _sha256(content)) != part.sha256:
        raise ValueError(
            f"{part.file} ({where}) has SHA-256 {got}, expected {part.sha256}, so it "
            "is not used"
        )
    return content


def _downloaded(part: Part) -> bytes:
    if part.source == "pypi":
        return _from_index(part)
    address = SOURCES[part.source] + part.file
    try:
        with urlopen(address, timeout=60) as answer:
            return bytes(answer.read())
    except (URLError, TimeoutError) as error:
        raise ConnectionError(
            f"cannot download {address} ({error}); without internet, set "
            f"RUBRICNB_PYODIDE to a folder with the files of Pyodide {PYODIDE}"
        ) from None


def _from_index(part: Part) -> bytes:
    """Download a wheel for Pyodide with pip, which knows the reader's package index."""
    name, version, python, abi, platform = part.file.removesuffix(".whl").split("-")
    with tempfile.TemporaryDirectory() as folder:
        command = [
            *(sys.executable, "-m", "pip", "download", "-q", "--no-deps"),
            *("--only-binary=:all:", "--platform", platform, "--abi", abi),
            *("--python-version", python[2:], "--implementation", python[:2]),
            *("--dest", folder, f"{name}=={version}"),
        ]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode or not Path(folder, part.file).is_file():
            said = (done.stderr.strip().splitlines() or ["no such file"])[-1]
            raise ConnectionError(f"cannot download {part.file}: {said}")
        return Path(folder, part.file).read_bytes()


def _lock(pyodide: Iterable[Part]) -> dict[str, dict[str, object]]:
    """Return Pyodide's table of packages."""
    found = {}
    for part in pyodide:
        if not part.package:
            continue
        is_library = part.file.endswith(".zip")
        found[part.package] = {
            "depends": list(part.depends),
            "file_name": part.file,
            "imports": [],
            "install_dir": "dynlib" if is_library else "site",
            "name": part.package,
            "package_type": "shared_library" if is_library else "package",
            "sha256": part.sha256,
            "unvendored_tests": False,
            "version": part.file.removesuffix(".zip").split("-")[1],
        }
    return found


def _libraries(listed: Iterable[Part]) -> dict[str, bytes]:
    """Return the Python files of the installed libraries that the package imports."""
    found: dict[str, bytes] = {}
    for part in listed:
        if part.source == "installed":
            own = module_files(part.file)
            checked(part, b"".join(own.values()), "installed")
            found |= own
    return found


def module_files(name: str) -> dict[str, bytes]:
    """Return the Python files of an installed module by their paths.

    Examples
    --------
    >>> sorted(module_files("markupsafe"))
    ['markupsafe/__init__.py', 'markupsafe/_native.py']
    """
    spec = find_spec(name)
    assert spec is not None
    assert spec.origin is not None
    folder = Path(spec.origin).parent
    return {
        path.relative_to(folder.parent).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*.py"))
    }


def _package(root: Path) -> dict[str, bytes]:
    """Return the files of this package, and the table of judges that its pages name."""
    found = {
        path.relative_to(root).as_posix(): path.read_bytes()
        for pattern in _PACKED
        for path in sorted((root / "rubricnb").glob(pattern))
    }
    found["results/judges.csv"] = (root / "results" / "judges.csv").read_bytes()
    return found


def _archive(
    folder: Path, name: str, files: Mapping[str, bytes], ending: str = ".archive"
) -> str:
    """Write an archive whose name has its hash, so no cache returns an older one."""
    packed = BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for path, content in sorted(files.items()):
            archive.writestr(
                zipfile.ZipInfo(path, _EPOCH), content, zipfile.ZIP_DEFLATED
            )
    file = f"{name}-{_sha256(packed.getvalue())[:12]}{ending}"
    (folder / file).write_bytes(packed.getvalue())
    return file


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
