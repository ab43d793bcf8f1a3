"""What the vLLM judge says before there is an engine; tests/vllm has the engine itself."""

import importlib.util

import pytest

import rubricnb as rb
from rubricnb.judging import vllm
from rubricnb.judging.registry import judge_class


def test_without_vllm_the_error_says_how_to_install_it(tmp_path):
    if importlib.util.find_spec("vllm"):
        pytest.skip("vLLM is installed here")
    with pytest.raises(ImportError, match=r"rubricnb\[vllm\].*test-vllm"):
        rb.open_judge(f"vllm:{tmp_path}")


def test_what_it_can_read_out_is_known_without_vllm():
    assert judge_class("vllm:any").readouts == ("feedback", "score", "logprobs", "json")


@pytest.mark.parametrize("name", ["model.gguf", "folder"])
def test_what_is_no_checkpoint_is_named_with_the_way_out(tmp_path, name):
    (tmp_path / "folder").mkdir()
    (tmp_path / "model.gguf").write_bytes(b"GGUF")
    with pytest.raises(ValueError, match=rf"{name} is no checkpoint.*embedded:PATH"):
        vllm._checkpoint(str(tmp_path / name), None)


def test_a_checkpoint_is_hashed_by_the_files_that_change_answers(tmp_path):
    (tmp_path / "config.json").write_text("{}")
    (tmp_path / "model.safetensors").write_bytes(b"weights")
    assert vllm._checkpoint(str(tmp_path), None) == tmp_path
    digest = vllm._sha256(tmp_path)
    (tmp_path / "README.md").write_text("a word about it")
    assert vllm._sha256(tmp_path) == digest
    (tmp_path / "chat_template.jinja").write_text("{{ messages }}")
    assert vllm._sha256(tmp_path) != digest
