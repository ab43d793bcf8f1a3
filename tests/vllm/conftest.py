"""Real weights for the tests of vLLM: GGUF files of packages,
turned into checkpoints once.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
KEPT = Path(sys.prefix) / "checkpoints"
SHARED = ROOT.parent / "shared"
if (SHARED / "datasets").exists():
    os.environ.setdefault("RUBRICNB_MIRROR", str(SHARED / "datasets"))
TOOL = SHARED / "tools" / "get_weights.py"


@pytest.fixture(scope="session")
def smollm2_gguf():
    from rubricnb.engines.embedded import default_weights

    return default_weights()


@pytest.fixture(scope="session")
def smollm2(smollm2_gguf):
    """SmolLM2-135M-Instruct: the default judge's weights."""
    return checkpoint(smollm2_gguf, "smollm2-135m-instruct")


@pytest.fixture(scope="session")
def gemma():
    """Gemma-3-270M: a base model, without a chat template."""
    if not (KEPT / "gemma-3-270m").exists():
        if not TOOL.exists():
            pytest.skip(
                f"no weights of a base model: {TOOL.name} is not at {TOOL.parent}"
            )
        subprocess.run([sys.executable, TOOL, KEPT, "gemma-3-270m"], check=True)
    return checkpoint(KEPT / "gemma-3-270m-q4_k_m.gguf", "gemma-3-270m")


def checkpoint(gguf, name):
    """A process of its own converts it: its memory is needed afterwards."""
    if not (KEPT / name).exists():
        KEPT.mkdir(exist_ok=True)
        subprocess.run(
            [sys.executable, HERE / "checkpoint.py", gguf, KEPT / name], check=True
        )
    return KEPT / name
