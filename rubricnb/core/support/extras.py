"""Optional parts: what needs one that is not installed names the line that adds it."""

from __future__ import annotations

from importlib import import_module
from typing import Any


def not_installed(
    error: ModuleNotFoundError, name: str, what: str, instead: str = ""
) -> ImportError:
    """Return the error that names the extra which brings a missing module.

    Parameters
    ----------
    error
        What the import raised.
    name
        The extra: ``parquet``, ``plots``, …
    what
        What needs the module, for the message.
    instead
        What to do without it.

    Examples
    --------
    >>> found = ModuleNotFoundError(name="matplotlib.pyplot")
    >>> print(not_installed(found, "plots", "rubricnb.book.plots"))
    rubricnb.book.plots needs matplotlib, which is not installed: run python -m pip \
install 'rubricnb[plots]'
    """
    module = (error.name or "").partition(".")[0]
    return ImportError(
        f"{what} needs {module}, which is not installed: {instead}run python -m pip "
        f"install 'rubricnb[{name}]'"
    )


def extra(module: str, name: str, what: str, instead: str = "") -> Any:
    """Import a module that an extra of the package brings.

    Parameters
    ----------
    module
        Its name.
    name, what, instead
        As in `not_installed`.

    Raises
    ------
    ImportError
        It is not installed; says how to add it.

    Examples
    --------
    >>> extra("json", "none", "this example").loads("[1]")
    [1]
    >>> extra("no_such_module", "parquet", "log.parquet", "save it as CSV, or ")
    Traceback (most recent call last):
    ...
    ImportError: log.parquet needs no_such_module, which is not installed: save it as \
CSV, or run python -m pip install 'rubricnb[parquet]'
    """
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        if error.name != module.partition(".")[0]:
            raise
        raise not_installed(error, name, what, instead) from None
