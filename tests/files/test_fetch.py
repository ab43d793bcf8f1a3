import hashlib
import resource
import socket

import pytest

import rubricnb.files.fetch as module
from rubricnb.files.fetch import fetch

PATH = "github/me/set/c0ffee/data/a.txt"
BODY = b"what the authors wrote\n" * 5_000
SHA256 = hashlib.sha256(BODY).hexdigest()


@pytest.fixture
def tree(tmp_path):
    file = tmp_path / "tree" / PATH
    file.parent.mkdir(parents=True)
    file.write_bytes(BODY)
    return tmp_path / "tree"


@pytest.fixture
def nobody():
    """A URL on which nothing listens."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))  # kept, so that no other test gets it meanwhile
        yield f"http://127.0.0.1:{probe.getsockname()[1]}"


def kept(cache):
    return [file for file in cache.rglob("*") if file.is_file()]


def mirrored(monkeypatch, place):
    monkeypatch.setenv("RUBRICNB_MIRROR", str(place))


def test_a_mirror_can_be_a_folder(tree, cache, monkeypatch):
    mirrored(monkeypatch, tree)
    assert fetch(PATH, SHA256) == tree / PATH
    assert kept(cache) == []


def test_a_mirror_can_be_a_url_and_is_asked_once(tree, cache, serve, monkeypatch):
    url, asked = serve(tree)
    mirrored(monkeypatch, url + "/")
    first, second = fetch(PATH, SHA256), fetch(PATH, SHA256)
    assert first == second == cache / PATH
    assert first.read_bytes() == BODY
    assert asked == ["/" + PATH]


def test_without_a_mirror_the_source_is_asked(tree, cache, serve, monkeypatch):
    url, asked = serve(tree / "github")
    monkeypatch.setattr(module, "SOURCE", url + "/")
    assert fetch(PATH, SHA256).read_bytes() == BODY
    assert asked == ["/" + PATH.removeprefix("github/")]


def test_a_wrong_hash_is_not_used_and_not_kept(tree, cache, serve, monkeypatch):
    (tree / PATH).write_bytes(BODY + b"!")
    got = hashlib.sha256(BODY + b"!").hexdigest()
    url, _ = serve(tree)
    mirrored(monkeypatch, url)
    with pytest.raises(ValueError, match="The download was deleted") as error:
        fetch(PATH, SHA256)
    for part in (f"{url}/{PATH}", got, SHA256, "RUBRICNB_MIRROR"):
        assert part in str(error.value)
    assert kept(cache) == []
    mirrored(monkeypatch, tree)
    with pytest.raises(ValueError, match=f"expected {SHA256}"):
        fetch(PATH, SHA256)


def test_a_cut_copy_in_the_cache_is_replaced_or_goes(
    tree, cache, serve, nobody, monkeypatch
):
    (cache / PATH).parent.mkdir(parents=True)
    (cache / PATH).write_bytes(BODY[:100])
    mirrored(monkeypatch, serve(tree)[0])
    assert fetch(PATH, SHA256).read_bytes() == BODY
    (cache / PATH).write_bytes(BODY[:100])
    mirrored(monkeypatch, nobody)
    with pytest.raises(ConnectionError):
        fetch(PATH, SHA256)
    assert kept(cache) == []


def test_a_transfer_that_breaks_off_is_tried_again_in_silence(
    tree, cache, serve, monkeypatch, capfd
):
    url, asked = serve(tree, cut=1)
    mirrored(monkeypatch, url)
    assert fetch(PATH, SHA256).read_bytes() == BODY
    assert len(asked) == 2
    assert capfd.readouterr() == ("", "")


def test_no_network_names_what_was_asked_and_the_way_out(cache, nobody, monkeypatch):
    monkeypatch.setattr(module, "SOURCE", nobody + "/")
    with pytest.raises(ConnectionError) as error:
        fetch(PATH, SHA256)
    assert f"{nobody}/me/set/c0ffee/data/a.txt" in str(error.value)
    assert "RUBRICNB_MIRROR" in str(error.value)
    assert kept(cache) == []


def test_a_missing_file_is_named(tree, cache, serve, monkeypatch):
    (tree / PATH).unlink()
    mirrored(monkeypatch, tree)
    with pytest.raises(FileNotFoundError, match=f"{PATH}; .* unset RUBRICNB_MIRROR"):
        fetch(PATH, SHA256)
    mirrored(monkeypatch, serve(tree)[0])
    with pytest.raises(ConnectionError, match="HTTP 404"):
        fetch(PATH, SHA256)


@pytest.mark.parametrize("why", ["a file", "no room"])
def test_a_cache_that_takes_no_file_names_the_way_out(
    why, tree, cache, serve, monkeypatch
):
    mirrored(monkeypatch, serve(tree)[0])
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    if why == "a file":
        cache.write_text("no folder")
    else:
        resource.setrlimit(resource.RLIMIT_FSIZE, (1_000, limits[1]))
    try:
        with pytest.raises(OSError, match=r"cannot be kept .* set RUBRICNB_CACHE"):
            fetch(PATH, SHA256)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)


def test_a_mirror_that_is_a_file_is_named(tree, cache, monkeypatch):
    mirrored(monkeypatch, tree / PATH)
    with pytest.raises(FileNotFoundError, match=f"{PATH}; .* unset RUBRICNB_MIRROR"):
        fetch(PATH, SHA256)


def test_the_pinned_hashes_are_those_of_the_mirror(mirror):
    listed = dict(
        reversed(line.split("  ", 1))
        for line in (mirror / "SHA256SUMS").read_text().splitlines()
    )
    pinned = module._files()
    assert pinned.index.is_unique
    known = pinned[pinned.index.isin(list(listed))]
    assert len(known) >= 16
    assert all(listed[path] == sha256 for path, sha256 in known.items())
