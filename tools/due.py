"""Which pages a check reads closely: those that the change touches, and a quarter that rotates."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from rubricnb.book import find_root
from tools.building import pages
from tools.git import git

N_PARTS = 4


@dataclass(frozen=True)
class Due:
    """The pages that a check reads closely, and the sentence that says which and why."""

    pages: tuple[str, ...]
    reason: str


@lru_cache
def due(root: Path | None = None) -> Due:
    """Return the pages to read closely at this commit.

    These are the pages whose own file differs from the commit that the change starts from, and
    every fourth page of the table of contents. The commit's hash decides which quarter that is, so
    a check that is run again reads the same pages. The change starts where its history left
    ``origin/main``, or at the first parent of a commit that is on ``origin/main`` itself. Where
    git does not know that commit (no repository, a shallow clone), all pages are due.

    Parameters
    ----------
    root
        The clone; by default see `tools.building.notebooks`.

    Returns
    -------
    Due
        The pages, without suffix, in the order of the table of contents, with the reason.

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
        return Due(tuple(every), f"all {len(every)} pages: git does not know what has changed")
    touched = _touched(root, base)
    part = int(head[:8], 16) % N_PARTS
    chosen = [page for k, page in enumerate(every) if page in touched or k % N_PARTS == part]
    n_touched = sum(page in touched for page in every)
    return Due(
        tuple(chosen),
        f"{len(chosen)} of {len(every)} pages: {n_touched} changed since {base[:8]}, "
        f"and quarter {part + 1} of {N_PARTS} (from commit {head[:8]})",
    )


def _base(root: Path) -> str:
    """Return the commit that the change starts from, or nothing."""
    fork = git(root, "merge-base", "HEAD", "origin/main")
    if fork and fork != git(root, "rev-parse", "HEAD"):
        return fork
    return git(root, "rev-parse", "--verify", "HEAD^")


def _touched(root: Path, base: str) -> set[str]:
    """Return the pages that differ from a commit, those not committed yet included."""
    listed = git(root, "diff", "--name-only", "--relative", base).splitlines()
    new = git(root, "ls-files", "--others", "--exclude-standard").splitlines()
    return {str(Path(name).with_suffix("")) for name in [*listed, *new]}
