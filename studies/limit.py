"""The least that any engine must compute: what a measurement is compared with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from rubricnb.core.sharing import common_prefix


@dataclass
class Limit:
    """Counts a trie's distinct nodes along one walk, with one prompt in memory."""

    # nodes of their trie; too many if the prompts do not come as a walk
    distinct: int = 0
    _before: Sequence[Any] = ()

    def add(self, prompt: Sequence[Any]) -> None:
        """Walk on to this prompt."""
        self.distinct += len(prompt) - common_prefix(self._before, prompt)
        self._before = prompt
