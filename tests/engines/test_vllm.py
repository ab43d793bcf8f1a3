"""What the vLLM judge says before there is an engine;
tests/vllm has the engine itself.
"""

import importlib.util
from dataclasses import replace
from types import SimpleNamespace

import pytest

import rubricnb as rb
from rubricnb.core.contract import Message, Request
from rubricnb.core.judge import describe
from rubricnb.engines import vllm
from rubricnb.engines.openai import JudgeError


def test_without_vllm_the_error_says_how_to_install_it(tmp_path):
    if importlib.util.find_spec("vllm"):
        pytest.skip("vLLM is installed here")
    with pytest.raises(ImportError, match=r"rubricnb\[vllm\].*test-vllm"):
        rb.open_judge(f"vllm:{tmp_path}")


def test_what_it_can_read_out_is_known_without_vllm():
    assert describe("vllm:any").readouts == ("feedback", "score", "logprobs", "json")


@pytest.mark.parametrize("name", ["model.gguf", "folder"])
def test_what_is_no_checkpoint_is_named_with_the_way_out(tmp_path, name):
    (tmp_path / "folder").mkdir()
    (tmp_path / "model.gguf").write_bytes(b"GGUF")
    with pytest.raises(ValueError, match=rf"{name} is not a checkpoint.*embedded:PATH"):
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


@pytest.fixture
def bare():
    """A judge without its engine: what it makes of a request and of a text."""
    judge = object.__new__(vllm.VLLMJudge)
    judge.slug, judge.thinks = "any-vllm", False
    return judge


ASK = Request(
    1, "", (Message("user", "…"),), ("[RESULT]",), ("1", "2"), "feedback", max_tokens=0
)


def test_only_a_model_that_thinks_has_room_for_it(bare):
    assert bare.room(ASK) == 1024
    for slug in (
        "smollm2-135m-instruct-vllm",
        "gemma-3-270m-vllm",
        "qwen2.5-coder-0.5b-vllm",
    ):
        bare.slug = slug  # what is recorded was asked so
        assert bare.room(ASK) == 1024
    bare.slug = "gpt-oss-20b-vllm"
    assert bare.room(ASK) == 1024 + 16_384
    assert bare.room(replace(ASK, max_tokens=300)) == 300
    bare.slug, bare.thinks = "any-vllm", True
    assert bare.room(ASK) == 1024 + 16_384
    assert bare.room(replace(ASK, thinking="off")) == 1024


def test_a_parser_that_only_finds_the_end_leaves_the_channels_to_be_read_here():
    thought = "<|channel|>analysis<|message|>Perhaps [RESULT] 5.<|end|>"
    final = "<|start|>assistant<|channel|>final<|message|>Fine. [RESULT] 4"
    document = (
        "<|start|>assistant<|channel|>final <|constrain|>json<|message|>{}<|return|>"
    )
    assert vllm.final_channel(thought + final) == "Fine. [RESULT] 4"
    assert vllm.final_channel(thought + document) == "{}"
    assert vllm.final_channel(thought) == ""


def test_thinking_is_cut_off_and_closed_before_a_label(bare, monkeypatch):
    bare.thinks = True
    opened = "<|im_start|>assistant\n<think>\n"
    for prompt in ("<|im_start|>assistant\n", opened):
        monkeypatch.setattr(
            bare, "_opened", lambda request, prompt=prompt: prompt, raising=False
        )
        begun = "" if prompt == opened else "<think>"
        assert (
            bare.without_thinking(ASK, f"{begun}2 + 2 = 4.</think>[RESULT] 3")
            == "[RESULT] 3"
        )
        assert bare.without_thinking(ASK, f"{begun}Perhaps [RESULT] 2.") == ""
    assert vllm.before_answer("<|im_start|>assistant\n", True) == ""
    assert vllm.before_answer(opened, True) == "\n</think>\n\n"
    assert vllm.before_answer(opened, False) == ""
    assert vllm.before_answer("<|start|>assistant", True).endswith("final<|message|>")


def test_an_engine_that_ends_is_one_clear_line():
    class EngineDeadError(Exception):
        """As vLLM's, which is no RuntimeError."""

    def step():
        raise EngineDeadError("EngineCore encountered an issue.")

    with pytest.raises(
        JudgeError, match=r"engine has ended \(EngineDeadError: EngineCore enc"
    ):
        vllm._step(SimpleNamespace(step=step))
