"""``public-names``: the public names of one module, documented by autodoc from their docstrings.

The list stands once, in ``rubricnb/__init__.py``. The directive writes reStructuredText, so a
MyST page wraps it:

    ```{eval-rst}
    .. public-names:: permutation
    ```
"""

from __future__ import annotations

import inspect

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


def _documented(name: str) -> list[str]:
    if inspect.isclass(getattr(rubricnb, name, None)):
        return [f".. autoclass:: rubricnb.{name}", "   :members:", ""]
    return [f".. autofunction:: rubricnb.{name}", ""]


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_directive("public-names", PublicNames)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
