"""Names of a package that are loaded when they are first used (PEP 562)."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from importlib import import_module
from pkgutil import iter_modules
from typing import Any


def load(package: str, homes: Mapping[str, str], name: str) -> Any:
    """Load a name that a package offers.

    Parameters
    ----------
    package
        The package that was asked.
    homes
        Module → its names that the package offers, with blanks between them; none for
        a module that is offered as a whole.
    name
        What was asked for.

    Raises
    ------
    AttributeError
        The package does not offer it.

    Examples
    --------
    >>> homes = {"rubricnb.core.permutation": "balanced fixed", "rubricnb.core.run": ""}
    >>> load("rubricnb", homes, "fixed")(2).orderings()
    array([[1, 2]])
    """
    for module, names in homes.items():
        if name in names.split():
            return getattr(import_module(module), name)
        if not names and name == module.rpartition(".")[2]:
            return import_module(module)
    if any(
        module.name == name
        for module in iter_modules(vars(sys.modules[package]).get("__path__", []))
    ):
        return import_module(f"{package}.{name}")
    raise AttributeError(f"module {package!r} has no attribute {name!r}")


def offered(homes: Mapping[str, str]) -> list[str]:
    """Return the names that a package offers, in alphabetical order; no modules.

    >>> offered({"rubricnb.core.run": "run ask", "rubricnb.core.judge": ""})
    ['ask', 'run']
    """
    return sorted(name for names in homes.values() for name in names.split())
