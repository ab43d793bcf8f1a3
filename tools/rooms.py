"""The rooms of the package, and the order in which they import (`.importlinter`)."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from configparser import ConfigParser
from pathlib import Path
from tempfile import TemporaryDirectory

from tools.clone import Clone

CONTRACTS = ".importlinter"
_LINT = "from importlinter.cli import lint_imports_command as lint; lint()"


def layers(clone: Clone) -> list[list[str]]:
    """Return the rooms from the lowest to the highest; those of a list are equals.

    >>> from rubricnb.book.notebooks import find_root
    >>> layers(Clone(find_root()))[:2]
    [['core'], ['files', 'statistics']]
    """
    contracts = ConfigParser()
    contracts.read_string(clone.text(CONTRACTS))
    listed = contracts["importlinter:contract:order"]["layers"].split("\n")
    rooms = [line.replace("|", " ").replace(":", " ").split() for line in listed]
    return [names for names in reversed(rooms) if names]


def picture(clone: Clone) -> str:
    """Draw the contract: a line for each layer, the highest first.

    >>> from rubricnb.book.notebooks import find_root
    >>> print(picture(Clone(find_root())).splitlines()[-2])
    │               core               │
    """
    lines = ["   ".join(names) for names in reversed(layers(clone))]
    width = max(map(len, lines)) + 4
    drawn = f"\n├{'─' * width}┤\n".join(f"│{line:^{width}}│" for line in lines)
    return f"┌{'─' * width}┐\n{drawn}\n└{'─' * width}┘"


def broken(clone: Clone) -> Iterator[str]:
    """Yield what import-linter says of contracts that are broken, line by line."""
    files = clone.texts("rubricnb/**/*.py", CONTRACTS)
    with TemporaryDirectory() as name:
        for path, text in files.items():
            copy = Path(name, path)
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_text(text, "utf-8")
        done = subprocess.run(
            [sys.executable, "-c", _LINT, "--no-cache", "--no-logo"],
            cwd=name,
            capture_output=True,
            text=True,
        )
    if done.returncode:
        said = done.stdout.partition("\nBroken contracts\n")[2] or done.stdout
        lines = map(str.strip, (said + done.stderr).splitlines())
        yield from (line for line in lines if line.strip("-"))
