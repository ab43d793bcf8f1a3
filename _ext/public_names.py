"""``public-names``: the public names of one module, documented by autodoc from their docstrings.

The list stands once, in ``rubricnb/__init__.py``. The directive writes reStructuredText, so a
MyST page wraps it:

    ```{eval-rst}
    .. public-names:: permutation
    ```

``public-index`` lists the names of several modules instead, one line a name, each with the anchor
that the name has where it is documented.
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
        names = rubricnb._PUBLIC.get(module)
        if names is None:  # a module used by its own name, such as rubricnb.checks
            lines = [f".. automodule:: rubricnb.{module}", "   :members:"]
        else:
            lines = [line for name in names for line in _documented(name)]
        node = nodes.container()
        self.state.nested_parse(StringList(lines, source=f"<{module}>"), 0, node)
        return node.children


class PublicIndex(SphinxDirective):
    required_arguments = 1
    optional_arguments = 20

    def run(self) -> list[nodes.Node]:
        names = [pair for module in self.arguments for pair in public(module)]
        lines = [
            f"* :py:obj:`{name.removeprefix('rubricnb.')} <{name}>`: {said}" for name, said in names
        ]
        node = nodes.container()
        self.state.nested_parse(StringList(lines, source="<index>"), 0, node)
        [listed] = node.children
        for item, (name, _) in zip(listed, names, strict=True):
            item["ids"].append(name)
        listed["classes"].append("names")
        return [listed]


def public(module: str) -> Iterator[tuple[str, str]]:
    """Yield what ``public-names`` documents of a module: full name, first line of its docstring.

    >>> dict(public("testing"))
    {'rubricnb.testing.assert_judge': 'Stop with an AssertionError that names every threshold...'}
    """
    if module in rubricnb._PUBLIC:
        prefix, names, home = "rubricnb", rubricnb._PUBLIC[module], rubricnb
    else:
        home = import_module(f"rubricnb.{module}")
        prefix = home.__name__
        own = (n for n, what in vars(home).items() if getattr(what, "__module__", "") == prefix)
        names = getattr(home, "__all__", [n for n in own if not n.startswith("_")])
    for name in names:
        if said := inspect.getdoc(getattr(home, name)):
            yield f"{prefix}.{name}", " ".join(said.split("\n\n")[0].split())


def _documented(name: str) -> list[str]:
    if inspect.isclass(getattr(rubricnb, name, None)):
        return [f".. autoclass:: rubricnb.{name}", "   :members:", ""]
    return [f".. autofunction:: rubricnb.{name}", ""]


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_directive("public-names", PublicNames)
    app.add_directive("public-index", PublicIndex)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
