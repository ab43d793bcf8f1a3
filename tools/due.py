"""What a check does closely: what the change touches, and an eighth that rotates."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from zlib import crc32

from rubricnb.book.notebooks import find_root
from tools.building import pages
from tools.git import git

N_PARTS = 8


@dataclass(frozen=True)
class Due:
    """The pages that a check reads closely, and the sentence that says why."""

    pages: tuple[str, ...]
    reason: str
    touched: frozenset[str] = frozenset()
    """The files that differ from the commit that the change starts from."""
    part: int | None = None
    """The eighth, 0 to 7; None where everything is due."""

    def takes(self, file: str, name: str) -> bool:
        """Say whether a long test is due: its file was touched, or it has its turn.

        Examples
        --------
        >>> eighths = [Due((), "", part=part) for part in range(N_PARTS)]
        >>> sum(eighth.takes("test_a.py", "test_b") for eighth in eighths)
        1
        """
        return (
            self.part in (None, crc32(name.encode()) % N_PARTS) or file in self.touched
        )


@lru_cache
def due(root: Path | None = None) -> Due:
    """Return the pages to read closely at this commit.

    These are the pages whose own file differs from the commit that the change starts
    from, and every eighth page of the table of contents. The commit's hash decides
    which eighth that is, so a check that is run again reads the same pages. The change
    starts where its history left ``origin/main``, or at the first parent of a commit
    that is on ``origin/main`` itself. Where git does not know that commit (no
    repository, a shallow clone), all pages are due.

    Parameters
    ----------
    root
        The clone; by default see `tools.building.notebooks`.

    Returns
    -------
    Due
        The pages, without suffix, in the order of the table of contents, with the
        reason.

    Examples
    --------
    >>> found = due()
    >>> set(found.pages) <= set(pages())
    True
    """
    root = root or find_root()
    every = pages(root)
    head, base = git(root, "rev-parse", "HEAD"), _base(root)
    if not head or not base:
        return Due(
            tuple(every), f"all {len(every)} pages: git does not know what has changed"
        )
    touched = _touched(root, base)
    part = int(head[:8], 16) % N_PARTS
    changed = {str(Path(name).with_suffix("")) for name in touched}
    chosen = [
        page for k, page in enumerate(every) if page in changed or k % N_PARTS == part
    ]
    n_touched = sum(page in changed for page in every)
    return Due(
        tuple(chosen),
        f"{len(chosen)} of {len(every)} pages: {n_touched} changed since {base[:8]}, "
        f"and part {part + 1} of {N_PARTS} (from commit {head[:8]})",
        touched,
        part,
    )


def _base(root: Path) -> str:
    """Return the commit that the change starts from, or nothing."""
    fork = git(root, "merge-base", "HEAD", "origin/main")
    if fork and fork != git(root, "rev-parse", "HEAD"):
        return fork
    return git(root, "rev-parse", "--verify", "HEAD^")


def _touched(root: Path, base: str) -> frozenset[str]:
    """Return the files that differ from a commit, those not committed yet included.

    A Python file whose layout, comments and turns alone differ is not touched.
    """
    listed = git(root, "diff", "--name-only", "--relative", base).splitlines()
    new = git(root, "ls-files", "--others", "--exclude-standard").splitlines()
    changed = [name for name in listed if not _same_code(root, base, name)]
    return frozenset([*changed, *new])


def _same_code(root: Path, base: str, name: str) -> bool:
    """Say whether a file is Python that does what it did at a commit."""
    path = root / name
    if path.suffix != ".py" or not path.exists():
        return False
    try:
        return _code(git(root, "show", f"{base}:./{name}")) == _code(
            path.read_text("utf-8")
        )
    except SyntaxError:
        return False


def _code(text: str) -> str:
    """Return what Python reads, docstrings filled anew, without marks of turns."""
    tree = ast.parse(text)
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            marks = node.decorator_list
            node.decorator_list = [
                mark for mark in marks if ast.unparse(mark) != "pytest.mark.in_turn"
            ]
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            node.value = ast.Constant(" ".join(str(node.value.value).split()))
    return ast.dump(tree)
