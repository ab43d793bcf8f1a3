"""Code of the notebooks in at most 79 columns, so that no page and no slide cuts a line.

``python -m tools.columns`` breaks what is wider; what it cannot break it lists.
"""

from __future__ import annotations

import ast
import io
import re
import subprocess
import sys
import textwrap
import tokenize
from pathlib import Path

from rubricnb.book import find_root

WIDTH = 79
CELL = re.compile(r"(^```\{code-cell\}.*\n(?::.*\n)*\n?)((?:.*\n)*?)(^```$)", re.M)


def too_wide(*, root: Path | None = None) -> list[str]:
    """List the lines of code that are wider, as ``file:line``."""
    found = []
    for path in _texts(root):
        text = path.read_text("utf-8")
        for cell in CELL.finditer(text):
            first = text.count("\n", 0, cell.start(2)) + 1
            lines = enumerate(cell[2].splitlines(), first)
            found += [f"{path.name}:{n}" for n, line in lines if len(line) > WIDTH]
    return found


def wrap(*stems: str, root: Path | None = None) -> None:
    """Break wider lines in the notebooks whose names begin so (default: in all).

    Raises
    ------
    ValueError
        If the broken code would do anything else than the cell; names it.
    """
    for path in _texts(root):
        text = path.read_text("utf-8")
        if path.name.startswith(stems or ("",)):
            path.write_text(CELL.sub(lambda c: c[1] + _wrapped(c[2]) + c[3], text), "utf-8")


def _texts(root: Path | None) -> list[Path]:
    return sorted(((root or find_root()) / "notebooks").glob("*.md"))


def _wide(code: str) -> bool:
    return max(map(len, code.splitlines()), default=0) > WIDTH


def _wrapped(code: str) -> str:
    """Break with ruff, then texts and remarks, which ruff leaves alone."""
    ways = (str, _formatted, lambda c: _formatted(_freed(c)), lambda c: _by_hand(_freed(c)))
    broken = code
    for way in ways:
        broken = way(code)
        if not _wide(broken):
            break
    if broken != code and _meaning(broken) != _meaning(code):
        raise ValueError(f"broken into other code:\n{code}")
    return broken


def _freed(code: str) -> str:
    return re.sub(r"  # fmt: skip$", "", code, flags=re.M)


def _formatted(code: str) -> str:
    command = [sys.executable, "-m", "ruff", "format", "--line-length", str(WIDTH), "-"]
    done = subprocess.run(command, input=code, capture_output=True, text=True, check=False)
    return done.stdout if done.returncode == 0 else code  # a cell with a shell command, say


def _by_hand(code: str) -> str:
    """Break one wide line after the other, as long as it helps."""
    code = _formatted(code)
    for _ in range(99):
        lines = code.splitlines(keepends=True)
        wide = [n for n, line in enumerate(lines) if len(line.rstrip("\n")) > WIDTH]
        broken = next((b for n in wide if (b := _broken(lines, n))), None)
        if broken is None:
            break
        code = _formatted(broken)
    return code


def _broken(lines: list[str], n: int) -> str | None:
    """The code with line n broken, if it is a remark, a docstring or holds a text with spaces."""
    line = lines[n]
    words = line.strip()
    indent = " " * (len(line) - len(line.lstrip(" ")))
    broken: str | None = None
    if words.startswith("# "):
        remark = textwrap.wrap(words[2:], WIDTH - len(indent) - 2)
        broken = "".join(f"{indent}# {part}\n" for part in remark)
    elif words.startswith('"""') and words.endswith('"""'):
        text = textwrap.wrap(words[3:-3], WIDTH - len(indent) - 6)
        broken = textwrap.indent('"""' + "\n".join(text) + '"""\n', indent)
    else:
        broken = _text_broken(lines, n)
    return broken and "".join([*lines[:n], broken, *lines[n + 1 :]])


def _text_broken(lines: list[str], n: int) -> str | None:
    """Line n with a text in two; in brackets, unless it stands beside another text."""
    line = lines[n]
    read = tokenize.generate_tokens(io.StringIO("".join(lines)).readline)
    tokens = [token for token in read if token.type not in (tokenize.NL, tokenize.COMMENT)]
    for before, token, after in zip(tokens, tokens[1:], tokens[2:], strict=False):
        whole = token.type == tokenize.STRING and token.start[0] == token.end[0] == n + 1
        if not whole or not (cut := _gap(token.string, WIDTH - token.start[1] - 8)):
            continue
        quote = token.string[-1]
        opening = token.string[: token.string.index(quote) + 1]
        parts = f"{token.string[:cut]}{quote} {opening}{token.string[cut:]}"
        if tokenize.STRING not in (before.type, after.type):
            parts = f"({parts})"
        return line[: token.start[1]] + parts + line[token.end[1] :]
    return None


def _gap(text: str, most: int) -> int:
    """Where to cut a text: after the last space that fits and is in no braces; 0: nowhere."""
    depth, found = 0, 0
    formatted = "f" in text[: text.index(text[-1])].lower()
    for k, letter in enumerate(text[:-2]):
        depth += formatted * ((letter == "{") - (letter == "}"))
        if letter == " " and depth == 0 and k < len(text) - 3 and (k <= most or not found):
            found = k + 1
    return found


def _meaning(code: str) -> str:
    """What code does, by its syntax tree; docstrings and line breaks in them aside."""
    plain = "\n".join("pass" if line[:1] in "!%" and line else line for line in code.splitlines())
    tree = ast.parse(plain)
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            node.value.value = " ".join(str(node.value.value).split())
    return ast.dump(tree)


if __name__ == "__main__":
    wrap(*sys.argv[1:])
    sys.exit("\n".join(too_wide()) or 0)
