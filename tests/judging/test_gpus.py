"""What a judge on a GPU says before vLLM starts: no GPU, too little memory, a missing library."""

import os
import sys

import pytest

from rubricnb.judging import vllm
from rubricnb.judging.openai import JudgeError


@pytest.fixture
def card(tmp_path, monkeypatch):
    """A program in place of nvidia-smi that reports one card with so many MiB free."""

    def put(*lines):
        program = tmp_path / "nvidia-smi"
        program.write_text("#!/bin/sh\n" + "\n".join(f"echo '{line}'" for line in lines) + "\n")
        program.chmod(0o755)
        monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")

    return put


H100 = "NVIDIA H100 80GB HBM3, 580.159.04, 81079, 81559"


@pytest.mark.parametrize(
    ("lines", "names"),
    [((), []), (("No devices were found",), []), (("NVIDIA X, 1, [N/A], [N/A]",), []),
     ((H100, "NVIDIA A10, 580.1, 22000, 23028"), ["NVIDIA H100 80GB HBM3", "NVIDIA A10"])],
)  # fmt: skip
def test_cards_are_read_with_driver_and_memory(card, lines, names):
    card(*lines)
    found = vllm.gpus()
    assert [gpu["name"] for gpu in found] == names
    if found:
        first = {"name": names[0], "driver": "580.159.04", "free": 81079, "total": 81559}
        assert found[0] == first


def test_a_missing_cuda_library_is_one_line(monkeypatch, tmp_path):
    package = tmp_path / "broken" / "vllm"
    package.mkdir(parents=True)
    text = "libcudart.so.13: cannot open shared object file: No such file or directory"
    (package / "__init__.py").write_text(f"raise ImportError({text!r})\n")
    monkeypatch.syspath_prepend(package.parent)
    monkeypatch.delitem(sys.modules, "vllm", raising=False)
    with pytest.raises(
        JudgeError, match=r"cannot be imported \(libcudart\.so\.13.*install"
    ) as told:
        vllm._open(tmp_path, {}, on_cpu=False)
    assert "\n" not in str(told.value)
