"""Turn a GGUF file into a checkpoint for vLLM:
python tests/vllm/checkpoint.py GGUF FOLDER
"""

import sys
from pathlib import Path

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer, GgufConfig


def convert(gguf: Path, folder: Path) -> None:
    """Write the weights, no longer quantised, and the tokenizer; all or nothing."""
    unfinished = folder.with_suffix(".partial")
    source = {"pretrained_model_name_or_path": gguf.parent, "gguf_file": gguf.name}
    weights = GgufConfig(dequantize=True)
    model = AutoModelForCausalLM.from_pretrained(
        **source, quantization_config=weights, dtype=torch.bfloat16
    )
    model.save_pretrained(unfinished)
    AutoTokenizer.from_pretrained(**source).save_pretrained(unfinished)
    unfinished.rename(folder)


if __name__ == "__main__":
    convert(Path(sys.argv[1]), Path(sys.argv[2]))
