"""What an older patch release of Python does otherwise."""

import ast
import re
from pathlib import Path

import rubricnb

FOLDER = Path(rubricnb.__file__).parent


def test_no_group_is_repeated_possessively():
    """Python 3.11.0 to 3.11.4 consume what a failed iteration had begun (#106052)."""
    possessive = re.compile(r"\)(?:[*+?]|\{[\d,]+\})\+|\(\?>")
    found = [
        f"{path.relative_to(FOLDER)}: {node.value}"
        for path in FOLDER.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and possessive.search(node.value)
    ]
    assert found == []
    assert possessive.search(r"\d+(?:[.,]\d+)*+")
