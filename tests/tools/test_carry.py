"""Packing for a GPU machine without a network; the wheels are made here."""

import re
import tarfile
import zipfile

import pytest

from tools import carry


@pytest.fixture
def wheels(tmp_path):
    def wheel(name, **files):
        path = tmp_path / f"{name}-1-py3-none-any.whl"
        with zipfile.ZipFile(path, "w") as archive:
            for member, text in files.items():
                archive.writestr(member, text)
        return path

    return [
        wheel(
            "vllm",
            **{
                "vllm/__init__.py": "x = 1",
                "vllm/vllm-rs": "b" * 5000,
                "vllm/third_party/deep_gemm/a.py": "",
                "vllm/third_party/b.py": "",
            },
        ),
        wheel(
            "other",
            **{"other-1.data/purelib/other.py": "y = 2", "other-1.data/scripts/o": ""},
        ),
    ]


def test_wheels_are_laid_out_as_installed_less_what_is_left_out(tmp_path, wheels):
    carry.unpack(wheels, tmp_path / "site")
    files = {
        str(p.relative_to(tmp_path / "site")) for p in (tmp_path / "site").rglob("*.py")
    }
    assert files == {"vllm/__init__.py", "vllm/third_party/b.py", "other.py"}
    assert not (tmp_path / "site" / "vllm" / "vllm-rs").exists()
    assert not (tmp_path / "site" / "other-1.data").exists()


def test_pieces_join_to_the_packages_and_files_again(tmp_path, wheels, monkeypatch):
    monkeypatch.setattr(carry, "download", lambda folder: wheels)
    weights = tmp_path / "weights.gguf"
    weights.write_bytes(bytes(range(256)) * 10_000)  # 2.4 MiB: three pieces
    pieces = carry.carry(tmp_path / "out", 1, [weights])
    assert all(piece.stat().st_size <= 1 << 20 for piece in pieces)
    joined = b"".join(
        p.read_bytes() for p in pieces if p.name.startswith("weights.gguf-")
    )
    assert joined == weights.read_bytes()
    assert len(pieces) == 4
    sums = (tmp_path / "out" / "SHA256SUMS").read_text().splitlines()
    assert [line.split()[1] for line in sums] == [piece.name for piece in pieces]
    with tarfile.open(pieces[0]) as archive:
        assert "./vllm/__init__.py" in archive.getnames()


def test_a_missing_file_is_named_before_anything_is_downloaded(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"no file .*nothing\.gguf"):
        carry.carry(tmp_path, files=[tmp_path / "nothing.gguf"])


def test_every_package_that_vllm_lacks_is_named_at_once(tmp_path):
    (tmp_path / "vllm").mkdir()
    (tmp_path / "vllm" / "__init__.py").write_text(
        "import first_one\n"
        "try:\n    import guarded\nexcept ImportError:\n    pass\n"
        "from second_one.part import name\n"
        "LLM = 1\n"
    )
    assert carry.missing(tmp_path) == ["first_one", "second_one"]
    (tmp_path / "first_one.py").touch()
    (tmp_path / "second_one").mkdir()
    (tmp_path / "second_one" / "part.py").write_text("name = 2")
    assert carry.missing(tmp_path) == []
    (tmp_path / "first_one.py").write_text("1 / 0")
    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        carry.missing(tmp_path)


def test_the_list_is_the_one_that_was_last_imported(tmp_path, monkeypatch):
    said = re.search(
        r"^# Imported on \d{4}-\d\d-\d\d as (\w+)$", carry.PINS.read_text(), re.M
    )
    assert said, "no proof in tools/carry.txt: make test-carry prints the line"
    assert said[1] == carry.fingerprint(), (
        "changed since: make test-carry, and its line"
    )
    monkeypatch.setattr(carry, "PINS", tmp_path / "carry.txt")
    carry.PINS.write_text("vllm==0.26.0\n")
    assert carry.fingerprint() != said[1]
