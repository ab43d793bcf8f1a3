"""What the vLLM judge says before there is an engine;
tests/vllm has the engine itself.
"""

import importlib.util
import json
import os
from dataclasses import replace
from importlib.resources import files
from types import SimpleNamespace
from unittest.mock import patch

import numpy as np
import pandas as pd
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


def test_an_engine_is_told_to_send_no_statistics(tmp_path):
    if importlib.util.find_spec("vllm"):
        pytest.skip("vLLM is installed here, and would look for a checkpoint")
    with patch.dict(os.environ):
        os.environ.pop("VLLM_NO_USAGE_STATS", None)
        with pytest.raises(JudgeError, match="cannot be imported"):
            vllm._open(tmp_path, {}, on_cpu=False)
        assert os.environ["VLLM_NO_USAGE_STATS"] == "1"


def test_what_it_can_read_out_is_known_without_vllm():
    assert describe("vllm:any").readouts == ("feedback", "score", "logprobs", "json")


@pytest.mark.parametrize("name", ["model.gguf", "folder"])
def test_what_is_no_checkpoint_is_named_with_the_way_out(tmp_path, name):
    (tmp_path / "folder").mkdir()
    (tmp_path / "model.gguf").write_bytes(b"GGUF")
    with pytest.raises(ValueError, match=rf"{name} is not a checkpoint.*embedded:PATH"):
        vllm._checkpoint(str(tmp_path / name), None)


def tensors(path, values, stamp="", first="a"):
    """Write a safetensors file: a header, which has a stamp, and numbers."""
    names = sorted(values, key=lambda name: name != first)
    header, content = {"__metadata__": {"format": stamp}}, b""
    for name in names:
        start, content = len(content), content + np.float32(values[name]).tobytes()
        header[name] = {
            "dtype": "F32",
            "shape": [len(values[name])],
            "data_offsets": [start, len(content)],
        }
    head = json.dumps(header).encode()
    path.write_bytes(len(head).to_bytes(8, "little") + head + content)


VALUES, WORDS = {"a": [1, 2], "b": [3]}, {"x": 0, "y": 1}


def test_a_checkpoint_is_known_by_its_tensors_and_its_tokenizer(tmp_path):
    one, two, three = (tmp_path / name for name in "123")
    for folder in (one, two, three):
        folder.mkdir()
        (folder / "config.json").write_text(json.dumps({"version": str(folder)}))
    tensors(one / "model.safetensors", VALUES, "pt")
    assert vllm._checkpoint(str(one), None) == one
    tensors(two / "model.safetensors", VALUES, "another release", first="b")
    for name, value in VALUES.items():
        tensors(three / f"model-{name}.safetensors", {name: value})
    same = {vllm._identity_of(x, WORDS, "{{ messages }}") for x in (one, two, three)}
    assert len(same) == 1
    turned = dict(reversed(WORDS.items()))
    assert vllm._identity_of(one, turned, "{{ messages }}") in same
    for other in (({"x": 1, "y": 0}, "{{ messages }}"), (WORDS, None)):
        assert vllm._identity_of(one, *other) not in same
    tensors(one / "model.safetensors", VALUES | {"b": [4]})
    assert vllm._identity_of(one, WORDS, "{{ messages }}") not in same


def test_a_checkpoint_keeps_the_identity_of_its_recordings(tmp_path, monkeypatch):
    tensors(tmp_path / "model.safetensors", VALUES)
    content = vllm._identity_of(tmp_path, WORDS)
    (tmp_path / "checkpoints.csv").write_text(f"content,recorded\n{content},old,any\n")
    monkeypatch.setattr(vllm, "files", lambda package: tmp_path)
    assert vllm._identity_of(tmp_path, WORDS) == "old"
    assert vllm._identity_of(tmp_path, WORDS, "{{ messages }}") != "old"


def test_every_recorded_checkpoint_is_in_the_table():
    table = pd.read_csv(files("rubricnb.engines").joinpath("checkpoints.csv"))
    recorded = rb.judging.judges().identity.str.extract(r"^vllm .*sha256:(\w+)")[0]
    assert set(recorded.dropna()) == set(table["recorded"])
    assert table["content"].str.fullmatch("[0-9a-f]{64}").all()
    assert table["content"].is_unique


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
