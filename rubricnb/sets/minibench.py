"""minibench, the bundled dataset: our own texts of designed quality."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rubricnb.core.support.settings import read_yaml
from rubricnb.core.support.types import Records

_FILE = Path(__file__).parent / "bundled" / "minibench.yml"


def read(_: Sequence[Path]) -> Records:
    """List the answers to each prompt, with all of its answers and the examples'."""
    prompts = read_yaml(_FILE)["prompts"]
    return [
        {**prompt, **response, "level": level, "example": prompts[prompt is prompts[0]]}
        for prompt in prompts
        for level, response in sorted(
            prompt["responses"].items(), key=lambda one: one[1]["candidate"]
        )
    ]
