"""What is remembered between calls."""

import ast
from pathlib import Path

import pytest

import rubricnb

PACKAGE = Path(rubricnb.__file__).parent
SMALL = {
    "str",
    "int",
    "bool",
    "float",
    "bytes",
    "Path",
    "tuple",
    "Sequence",
    "Ellipsis",
}


def large_arguments(code):
    """Name the cached functions that remember more than names, numbers and texts."""
    for node in ast.walk(ast.parse(code)):
        is_cached = isinstance(node, ast.FunctionDef) and any(
            part.id in ("cache", "lru_cache")
            for mark in node.decorator_list
            for part in ast.walk(mark)
            if isinstance(part, ast.Name)
        )
        if is_cached:
            arguments = [a.annotation for a in node.args.args + node.args.kwonlyargs]
            types = [
                part.id
                for form in arguments
                for part in ast.walk(form or ast.Name("none"))
                if isinstance(part, ast.Name)
            ]
            if set(types) - SMALL:
                yield node.name


@pytest.mark.parametrize(
    "path",
    sorted(PACKAGE.rglob("*.py")),
    ids=lambda p: p.relative_to(PACKAGE).as_posix(),
)
def test_no_cache_keeps_rows_or_tables(path):
    """A decorator that stayed when its function went is on the next one."""
    assert list(large_arguments(path.read_text("utf-8"))) == []


def test_a_cache_of_rows_is_found():
    assert list(large_arguments("@cache\ndef f(row: Any, n: int): ...")) == ["f"]
    assert list(large_arguments("@lru_cache(9)\ndef f(row, n: int): ...")) == ["f"]
    assert list(large_arguments("@cache\ndef f(n: tuple[int, ...]): ...")) == []
