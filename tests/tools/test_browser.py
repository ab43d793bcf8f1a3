"""The files for a browser: a wrong one is refused, and what is packed runs."""

import hashlib
import http.server
import json
import subprocess
import sys
import threading
import zipfile
from functools import partial

import pytest

from rubricnb.book import notebooks as book
from tools import browser

ROOT = book.find_root()


def part_of(name, content, source="npm"):
    return browser.Part(
        name, len(content), hashlib.sha256(content).hexdigest(), source, "", ()
    )


@pytest.fixture
def parts(monkeypatch, tmp_path):
    """Two small files in a table, in a folder, and a book without pages."""
    files = {"pyodide.js": b"let a = 1;\n", "openblas-0.3.26.zip": b"zip" * 99}
    folder = tmp_path / "pyodide"
    folder.mkdir()
    for name, content in files.items():
        (folder / name).write_bytes(content)
    table = [part_of(name, content) for name, content in files.items()]
    installed = [part for part in browser.parts() if part.source == "installed"]
    monkeypatch.setattr(browser, "parts", lambda: table + installed)
    monkeypatch.setenv("RUBRICNB_PYODIDE", str(folder))
    for name in ("rubricnb", "results"):
        (tmp_path / name).symlink_to(ROOT / name)
    page = tmp_path / "_build" / "html" / "book" / "audit-here.html"
    page.parent.mkdir(parents=True)
    page.touch()
    return folder


def manifest(root):
    return json.loads((root / browser.FOLDER / "manifest.json").read_text("utf-8"))


def test_files_are_copied_counted_and_packed(parts, tmp_path):
    page, size = browser.add_browser(tmp_path)
    assert page.is_file()
    folder = tmp_path / browser.FOLDER
    assert (folder / "pyodide.js").read_bytes() == (parts / "pyodide.js").read_bytes()
    assert (folder / "openblas-0.3.26.zip.packed").is_file()
    found = manifest(tmp_path)
    loaded = [p for p in folder.iterdir() if p.suffix != ".json"]
    assert found["bytes"] == size == sum(p.stat().st_size for p in loaded)


@pytest.mark.in_turn
def test_the_archives_hold_what_an_audit_imports(parts, tmp_path):
    """Unpacked, they are enough beside numpy, pandas and scipy."""
    browser.add_browser(tmp_path)
    app = tmp_path / "app"
    for name in manifest(tmp_path)["archives"]:
        with zipfile.ZipFile(tmp_path / browser.FOLDER / name) as archive:
            archive.extractall(app)
    program = (
        f"import sys; sys.path.insert(0, {str(app)!r}); sys.modules['pyarrow'] = None\n"
        "from rubricnb.auditing.form import audit_form\n"
        "import rubricnb, yaml, jinja2, markupsafe, charset_normalizer, platformdirs\n"
        "print(*{m.__file__ for m in (rubricnb, yaml, jinja2, markupsafe,"
        " charset_normalizer, platformdirs)}, sep='\\n')"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=True,
        cwd=tmp_path,
    )
    places = done.stdout.splitlines()
    assert len(places) == 6
    assert [place for place in places if not place.startswith(str(app))] == []


def test_a_file_with_another_hash_is_refused(parts, tmp_path):
    (parts / "pyodide.js").write_bytes(b"let a = 2;\n")
    with pytest.raises(ValueError, match=r"pyodide\.js .* so it is not used"):
        browser.add_browser(tmp_path)
    assert not (tmp_path / browser.FOLDER / "pyodide.js").exists()
    assert not (tmp_path / browser.FOLDER / "manifest.json").exists()


def test_a_missing_file_is_named(parts, tmp_path):
    (parts / "pyodide.js").unlink()
    with pytest.raises(FileNotFoundError, match=r"lacks pyodide\.js"):
        browser.add_browser(tmp_path)


def test_without_the_files_a_book_says_so(tmp_path):
    (tmp_path / "_build" / "html").mkdir(parents=True)
    assert browser.refresh_browser(tmp_path) == 0
    assert manifest(tmp_path) == {"bytes": 0}


def test_without_a_book_there_is_nothing_to_add_to(tmp_path):
    with pytest.raises(FileNotFoundError, match="make book"):
        browser.add_browser(tmp_path)


@pytest.fixture
def served(parts, monkeypatch, tmp_path):
    """The folder behind an address, in place of its authors' sites."""

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *arguments):
            pass

    handler = partial(Quiet, directory=parts)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as running:
        threading.Thread(target=running.serve_forever, daemon=True).start()
        address = f"http://127.0.0.1:{running.server_port}/"
        monkeypatch.setattr(browser, "SOURCES", {"npm": address})
        monkeypatch.setenv("RUBRICNB_PYODIDE", "")
        monkeypatch.setenv("RUBRICNB_CACHE", str(tmp_path / "cache"))
        yield parts
        running.shutdown()


def test_files_are_downloaded_once(served, tmp_path):
    browser.add_browser(tmp_path)
    (served / "pyodide.js").unlink()
    browser.add_browser(tmp_path)  # from the cache


def test_a_download_with_another_hash_is_not_kept(served, tmp_path):
    (served / "pyodide.js").write_bytes(b"something else")
    with pytest.raises(ValueError, match="so it is not used"):
        browser.add_browser(tmp_path)
    assert not (tmp_path / "cache" / "pyodide" / "pyodide.js").exists()


def test_a_site_that_lacks_a_file_is_named(served, tmp_path):
    (served / "pyodide.js").unlink()
    with pytest.raises(ConnectionError, match=r"pyodide\.js .*RUBRICNB_PYODIDE"):
        browser.add_browser(tmp_path)


def test_a_wheel_for_pyodide_comes_from_the_readers_index(monkeypatch, tmp_path):
    name = "tiny-1.0-cp312-cp312-pyemscripten_2024_0_wasm32.whl"
    with zipfile.ZipFile(tmp_path / name, "w") as wheel:
        wheel.writestr("tiny.py", "")
        about = "Metadata-Version: 2.1\nName: tiny\nVersion: 1.0\n"
        wheel.writestr("tiny-1.0.dist-info/METADATA", about)
        wheel.writestr(
            "tiny-1.0.dist-info/WHEEL",
            "Wheel-Version: 1.0\nTag: cp312-cp312-pyemscripten_2024_0_wasm32\n",
        )
        wheel.writestr("tiny-1.0.dist-info/RECORD", "")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", tmp_path.as_uri())  # split at blanks
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    monkeypatch.setenv("RUBRICNB_PYODIDE", "")
    monkeypatch.setenv("RUBRICNB_CACHE", str(tmp_path / "cache"))
    content = (tmp_path / name).read_bytes()
    part = part_of(name, content, "pypi")
    assert browser._content(part, tmp_path) == content
