"""``public-names``: the public names of one module,
documented by autodoc from their docstrings.

The only list is in ``rubricnb/__init__.py``. The directive writes reStructuredText, so
a MyST page wraps it:

    ```{eval-rst}
    .. public-names:: permutation
    ```

``public-index`` lists the names of several modules instead, one line a name, each with
the anchor that the name has where it is documented.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from importlib import import_module

from docutils import nodes
from docutils.statemachine import StringList
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

import rubricnb


class PublicNames(SphinxDirective):
    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        module = self.arguments[0]
        is_lazy = "__getattr__" in vars(import_module(f"rubricnb.{module}"))
        if module in rubricnb.PUBLIC or is_lazy:  # autodoc finds no name of these
            lines = [line for name, _ in public(module) for line in _documented(name)]
        else:  # a module used by its own name, such as rubricnb.book.checks
            lines = [f".. automodule:: rubricnb.{module}", "   :members:"]
        node = nodes.container()
        self.state.nested_parse(StringList(lines, source=f"<{module}>"), 0, node)
        return node.children


class PublicIndex(SphinxDirective):
    required_arguments = 1
    optional_arguments = 20

    def run(self) -> list[nodes.Node]:
        names = [pair for module in self.arguments for pair in public(module)]
        lines = [
            f"* :py:obj:`{name.removeprefix('rubricnb.')} <{name}>`: {said}"
            for name, said in names
        ]
        node = nodes.container()
        self.state.nested_parse(StringList(lines, source="<index>"), 0, node)
        [listed] = node.children
        for item, (name, _) in zip(listed, names, strict=True):
            item["ids"].append(name)
        listed["classes"].append("names")
        return [listed]


def public(module: str) -> Iterator[tuple[str, str]]:
    """Yield what ``public-names`` documents of a module:
    full name, first line of its docstring.

    >>> [(name, summary)] = public("testing")
    >>> name
    'rubricnb.testing.assert_judge'
    >>> summary
    'Assert that an audit meets thresholds, and that the judge has not changed since.'
    """
    home = import_module(f"rubricnb.{module}")
    top = rubricnb.PUBLIC.get(module, [])
    names = [f"rubricnb.{name}" for name in top]
    if not top or module in rubricnb.MODULES.values():
        own = (
            n
            for n, what in vars(home).items()
            if getattr(what, "__module__", "") == home.__name__
        )
        rest = getattr(home, "__all__", [n for n in own if not n.startswith("_")])
        names += [f"{home.__name__}.{name}" for name in rest if name not in top]
    for name in names:
        what = getattr(home, name.rpartition(".")[2])
        if inspect.isroutine(what) or inspect.isclass(what):
            yield name, " ".join((inspect.getdoc(what) or "").split("\n\n")[0].split())


def _documented(name: str) -> list[str]:
    home, _, own = name.rpartition(".")
    if inspect.isclass(getattr(import_module(home), own)):
        return [f".. autoclass:: {name}", "   :members:", ""]
    return [f".. autofunction:: {name}", ""]


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_directive("public-names", PublicNames)
    app.add_directive("public-index", PublicIndex)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
