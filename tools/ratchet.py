"""What may not grow unnoticed: today's size of each room, and the most it may have.

`tools/ratchet.csv` has a row for each number: a room, what is counted there, and the
most that is allowed. Lint refuses a number above its row, so a change that adds to a
room raises the row in the same commit, where a reviewer sees it. Numbers that have
fallen are taken down with `python -m tools ratchet --write`. The core's row is a bar,
not a log: nothing writes it.
"""

from __future__ import annotations

import ast
import csv
import io
import re
from collections.abc import Iterator, Mapping

import rubricnb
from tools.clone import CELL, Clone, parsed
from tools.doors import private_imports

TABLE = "tools/ratchet.csv"
ROOMS = ("rubricnb", "studies", "tools", "_ext", "benchmarks", "examples", "tests")
MODULES = tuple(f"{room}/**/*.py" for room in ROOMS)
LONG = 50
"""Lines of the longest function that is read at a glance, its docstring not counted."""
_HIDDEN = re.compile(r"^:tags: .*\b(?:hide|remove)-(?:input|cell)\b", re.M)

Key = tuple[str, str]
CORE: Key = ("rubricnb/core", "statements")
"""What no commit raises: a person may."""


def counts(clone: Clone) -> dict[Key, int]:
    """Count what the table limits: (room, what is counted) → number."""
    modules = clone.texts(*MODULES)
    private = [path for path, _, _ in private_imports(modules)]
    found: dict[Key, int] = {}
    for room in ROOMS:
        inside = [
            parsed(text)
            for path, text in modules.items()
            if path.startswith(f"{room}/")
        ]
        functions = [size for code in inside for _, size in function_sizes(code)]
        found[room, "nodes"] = sum(map(n_nodes, inside))
        found[room, "long functions"] = sum(size > LONG for size in functions)
        found[room, "private imports"] = sum(p.startswith(f"{room}/") for p in private)
    for path, text in modules.items():
        if path.startswith("rubricnb/") and path.count("/") > 1:
            part = "/".join(path.split("/")[:2]), "nodes"
            found[part] = found.get(part, 0) + n_nodes(parsed(text))
    core = (parsed(t) for p, t in modules.items() if p.startswith(f"{CORE[0]}/"))
    found[CORE] = sum(map(n_statements, core))
    found["rubricnb", "public names"] = len(rubricnb.__all__)
    cells = [
        cell
        for text in clone.texts("notebooks/*.md").values()
        for cell in CELL.findall(text)
    ]
    hidden = filter(_HIDDEN.search, cells)
    found["notebooks", "lines of code"] = sum(map(_n_code_lines, cells))
    found["notebooks", "hidden lines"] = sum(map(_n_code_lines, hidden))
    return found


def long_functions(clone: Clone) -> Iterator[str]:
    """Yield the path, name and lines of each function that is counted as long."""
    for path, text in clone.texts(*MODULES).items():
        for name, size in function_sizes(parsed(text)):
            if size > LONG:
                yield f"{path}: {name} has {size} lines"


def _n_code_lines(cell: str) -> int:
    """Count the lines of a cell that are not blank and no option."""
    return sum(bool(line.strip()) and line[0] != ":" for line in cell.splitlines())


def n_nodes(code: ast.AST) -> int:
    """Count statements and expressions, without imports and docstrings.

    A call with thirty arguments counts for more than one with two. A name that is
    stored, an argument, a keyword and a branch of a match count too.

    >>> n_nodes(ast.parse("import os\\ndef f(x):\\n  'Doc.'\\n  return g(x, 1)"))
    9
    """
    counted = (
        ast.stmt
        | ast.expr
        | ast.excepthandler
        | ast.comprehension
        | ast.arg
        | ast.keyword
        | ast.match_case
    )
    return sum(
        isinstance(node, counted) and not isinstance(node, ast.Import | ast.ImportFrom)
        for node in ast.walk(code)
    )


def n_statements(code: ast.AST) -> int:
    """Count statements, without imports and docstrings.

    >>> code = "import os\\ndef f(x):\\n  'Doc.'\\n  if x:\\n    return 1"
    >>> n_statements(ast.parse(code))
    3
    """
    uncounted = (ast.Import, ast.ImportFrom)
    return sum(
        isinstance(node, ast.stmt)
        and not isinstance(node, uncounted)
        and not _is_text(node)
        for node in ast.walk(code)
    )


def function_sizes(code: ast.AST) -> Iterator[tuple[str, int]]:
    """Yield name and number of lines of each function, without its docstring.

    >>> [*function_sizes(ast.parse("def f(x):\\n  '''Doc\\n\\n  s.'''\\n  return x"))]
    [('f', 2)]
    """
    for node in ast.walk(code):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            first = node.body[0]
            lines = _n_lines(node) - (_n_lines(first) if _is_text(first) else 0)
            yield node.name, lines


def _is_text(node: ast.AST) -> bool:
    """Whether a statement is a text alone, as a docstring is."""
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )


def _n_lines(node: ast.stmt) -> int:
    return (node.end_lineno or node.lineno) - node.lineno + 1


def limits(table: str) -> dict[Key, int]:
    """Read the table: (room, what is counted) → the most that is allowed."""
    rows = csv.DictReader(io.StringIO(table))
    return {(row["room"], row["count"]): int(row["most"]) for row in rows}


def raised(now: Mapping[Key, int], most: Mapping[Key, int]) -> Iterator[str]:
    """Yield a sentence for each number above its row, or without a row.

    >>> rows = {("tools", "nodes"): 10}
    >>> next(raised({("tools", "nodes"): 12}, rows))  # doctest: +ELLIPSIS
    'tools has 12 nodes, 2 more than the 10 of tools/ratchet.csv: make them ...'
    """
    for (room, what), n in now.items():
        allowed = most.get((room, what))
        if allowed is None:
            yield f"{room} has {n} {what} and no row: python -m tools ratchet --write"
        elif n > allowed:
            way = _WAY if (room, what) != CORE else _WAY_OF_CORE
            yield (
                f"{room} has {n} {what}, {n - allowed} more than the {allowed} of "
                f"{TABLE}: {way.format(n=n)}"
            )


_WAY = (
    "make them unnecessary, or raise the row to {n} in this commit and say in its "
    "message which room falls for it (python -m tools ratchet lists long functions)"
)
_WAY_OF_CORE = (
    "put them into the room that needs them. No commit raises this row; a person may, "
    "who wants the core larger"
)


def lowered(now: Mapping[Key, int], most: Mapping[Key, int]) -> str:
    """Return the table with every number that has fallen; no number rises.

    >>> print(lowered({("a", "n"): 3, ("b", "n"): 5}, {("a", "n"): 2, ("b", "n"): 9}))
    room,count,most
    a,n,2
    b,n,5
    <BLANKLINE>
    """
    rows = [
        f"{room},{what},{min(n, most.get((room, what), n))}"
        if (room, what) != CORE
        else f"{room},{what},{most.get(CORE, n)}"
        for (room, what), n in sorted(now.items())
    ]
    return "\n".join(["room,count,most", *rows, ""])
