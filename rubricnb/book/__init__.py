"""What the pages of the book are made with: chapters, figures, tables, execution."""

from typing import Any

from rubricnb.core.support import lazy

_HOMES = {
    "rubricnb.book.notebooks": "BookError check_given execute find_notebook find_root",
}

__all__ = lazy.offered(_HOMES)


def __getattr__(name: str) -> Any:
    return lazy.load(__name__, _HOMES, name)
