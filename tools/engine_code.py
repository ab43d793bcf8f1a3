"""A fingerprint of the code that decides how fast a local engine is asked.

A rate that was measured on a GPU belongs to the code that was measured. The fingerprint
is stored with it, so that `python -m tools lint` finds a rate whose code has been
replaced.
"""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Mapping
from pathlib import Path

# From a plan to the engine and back to a reply;
# the store and the parser are not on this way.
FILES = (
    "rubricnb/engines/label_probabilities.py",
    "rubricnb/core/rendering.py",
    "rubricnb/core/sharing.py",
    "rubricnb/engines/tokens.py",
    "rubricnb/engines/vllm.py",
)


def fingerprint(texts: Mapping[str, str]) -> str:
    """Return 12 hexadecimal digits of a hash of the code alone.

    Parameters
    ----------
    texts
        Path in the clone → content, of `FILES` or of those that there were.

    Examples
    --------
    >>> from rubricnb.book.notebooks import find_root
    >>> len(fingerprint(engine_texts(find_root())))
    12
    """
    digest = hashlib.sha256()
    for name in FILES:
        code = ast.parse(texts.get(name, ""))
        digest.update(f"{name}\n{ast.dump(_without_docstrings(code))}\n".encode())
    return digest.hexdigest()[:12]


def engine_texts(root: Path) -> dict[str, str]:
    """Read the files of a clone that decide how fast an engine is asked."""
    return {
        name: (root / name).read_text("utf-8")
        for name in FILES
        if (root / name).exists()
    }


def _without_docstrings(code: ast.Module) -> ast.Module:
    for node in ast.walk(code):
        if isinstance(
            node, ast.Module | ast.ClassDef | ast.FunctionDef
        ) and ast.get_docstring(node, clean=False):
            node.body = node.body[1:]
    return code
