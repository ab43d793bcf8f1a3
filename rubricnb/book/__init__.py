"""What the pages of the book are made with: chapters, figures, tables, execution.

* `pages`: every table and figure of a chapter is shown, every sentence said, here;
* `chapter`, `replication`: a chapter's own data, and its rows beside the papers';
* `plots`: how a figure looks; `glue`: what a sentence prints, or that it is missing;
* `notebooks`: a chapter is found and executed; `checks`: hints for its exercises;
* `summary`: the small tables of all recorded judges.
"""

from typing import Any

from rubricnb.core.support import lazy

_HOMES = {
    "rubricnb.book.notebooks": "BookError check_given execute find_notebook find_root",
}

__all__ = lazy.offered(_HOMES)


def __getattr__(name: str) -> Any:
    return lazy.load(__name__, _HOMES, name)
