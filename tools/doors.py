"""Who imports what: private names stay in their folder, dependencies are imported."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib.metadata import packages_distributions
from pathlib import PurePosixPath

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tools.clone import parsed


def private_imports(texts: Mapping[str, str]) -> Iterator[tuple[str, int, str]]:
    """Yield every use of a private name of another folder: path, line, full name.

    A name is private if it, or a module on its way, begins with an underscore. Its
    folder is that of its module; folders above it and below it are others.

    Parameters
    ----------
    texts
        Path in the clone → content, of all modules: those that import and those that
        are imported.

    Examples
    --------
    >>> texts = {"a/one.py": "_hidden = 1", "a/two.py": "from a.one import _hidden",
    ...          "b/three.py": "from a import one\\none._hidden"}
    >>> list(private_imports(texts))
    [('b/three.py', 2, 'a.one._hidden')]
    """
    folders = {path: str(PurePosixPath(path).parent) for path in texts}
    homes = {folder.replace("/", "."): folder for folder in folders.values()}
    homes |= {module_name(path): folder for path, folder in folders.items()}
    for path, text in texts.items():
        for line, name in _names_used(parsed(text), homes):
            home = _private_home(name, homes)
            if home and home != folders[path]:
                yield path, line, name


def module_name(path: str) -> str:
    """Return the name under which a module is imported.

    >>> module_name("rubricnb/engines/__init__.py"), module_name("tools/due.py")
    ('rubricnb.engines', 'tools.due')
    """
    return path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def _names_used(code: ast.AST, homes: Mapping[str, str]) -> Iterator[tuple[int, str]]:
    """Yield line and full name of what is imported, and of what a module's name has."""
    bound: dict[str, str] = {}
    for node in ast.walk(code):
        if isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                name = f"{node.module}.{alias.name}"
                bound[alias.asname or alias.name] = name
                yield node.lineno, name
        elif isinstance(node, ast.Import):
            for alias in node.names:
                first = alias.name.split(".")[0]
                bound[alias.asname or first] = alias.name if alias.asname else first
                yield node.lineno, alias.name
    for node in ast.walk(code):
        if isinstance(node, ast.Attribute):
            first, *rest = _dotted(node.value)
            module = ".".join([bound.get(first, ""), *rest])
            if module in homes:
                yield node.lineno, f"{module}.{node.attr}"


def _dotted(node: ast.expr) -> list[str]:
    """Return the parts of a dotted name; [""] for any other expression."""
    if isinstance(node, ast.Name):
        return [node.id]
    if isinstance(node, ast.Attribute):
        return [*_dotted(node.value), node.attr]
    return [""]


def _private_home(name: str, homes: Mapping[str, str]) -> str | None:
    """Return the folder that a private name belongs to; None for any other name."""
    parts = name.split(".")
    for k, part in enumerate(parts):
        if part.startswith("_") and not part.startswith("__"):
            return homes.get(".".join(parts[:k]))
    return None


def unused_dependencies(
    declared: Mapping[str, Sequence[str]], texts: Iterable[str]
) -> Iterator[tuple[str, str]]:
    """Yield every declared dependency that no module imports: part, name.

    Parameters
    ----------
    declared
        Part of the project → its requirements, as in pyproject.toml.
    texts
        Content of the modules that the parts are declared for. A module is imported by
        a statement, or with ``extra("module", …)`` where it may be lacking.

    Examples
    --------
    >>> declared = {
    ...     "dependencies": ["PyYAML>=6", "pandas>=2"], "parquet": ["pyarrow>=17"]}
    >>> texts = ["import yaml", "extra('pyarrow.csv', 'parquet')"]
    >>> [*unused_dependencies(declared, texts)]
    [('dependencies', 'pandas')]
    """
    imported = {name.split(".")[0] for text in texts for name in _imported(text)}
    modules_of: dict[str, set[str]] = {}
    for module, distributions in packages_distributions().items():
        for distribution in distributions:
            modules_of.setdefault(canonicalize_name(distribution), set()).add(module)
    for part, requirements in declared.items():
        for requirement in map(Requirement, requirements):
            name = canonicalize_name(requirement.name)
            # What is not installed here has the name of its module, as vllm has.
            if not modules_of.get(name, {name.replace("-", "_")}) & imported:
                yield part, requirement.name


def _imported(text: str) -> Iterator[str]:
    """Yield the modules that a text imports, wherever it does."""
    for node in ast.walk(parsed(text)):
        match node:
            case ast.Import(names=names):
                yield from (alias.name for alias in names)
            case ast.ImportFrom(module=str(module)):
                yield module
            case ast.Call(
                func=ast.Name(id="extra"), args=[ast.Constant(str(name)), *_]
            ):
                yield name
