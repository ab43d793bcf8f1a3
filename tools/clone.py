"""The texts of a clone of the repository, as rules read them."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

CELL = re.compile(r"^`{3,}\{code-cell\}.*\n((?:.*\n)*?)`{3,}$", re.M)
"""A code cell of a chapter's text; its first lines may be options, as ``:tags:``."""

parsed = cache(ast.parse)


@dataclass(frozen=True)
class Clone:
    """The texts of a clone; those in `changed` are read in place of its files."""

    root: Path
    changed: Mapping[str, str] = field(default_factory=dict)

    def text(self, path: str) -> str:
        """Return the text of one file."""
        return self.changed.get(path) or (self.root / path).read_text("utf-8")

    def texts(self, *patterns: str) -> dict[str, str]:
        """Path → text of the files whose paths match."""
        found = [
            path for pattern in patterns for path in sorted(self.root.glob(pattern))
        ]
        names = [path.relative_to(self.root).as_posix() for path in found]
        return {name: self.text(name) for name in names}

    @property
    def pages(self) -> dict[str, str]:
        """The pages of the book, chapters among them."""
        return self.texts("book/**/*.md", "notebooks/*.md")

    @property
    def documents(self) -> dict[str, str]:
        """What tells readers to do something."""
        return self.texts(
            "README.md", "CONTRIBUTING.md", "CHANGELOG.md", "book/**/*.md"
        )
