"""Optional parts: what needs one that is not installed names the line that adds it."""

from __future__ import annotations

from importlib import import_module
from typing import Any


def extra(module: str, name: str, what: str, instead: str = "") -> Any:
    """Import a module that an extra of the package brings.

    Parameters
    ----------
    module
        Its name.
    name
        The extra: ``parquet``, ``embedded``, …
    what
        What needs it, for the message.
    instead
        What to do without it.

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
        raise ImportError(
            f"{what} needs {error.name}, which is not installed: {instead}run python -m "
            f"pip install 'rubricnb[{name}]'"
        ) from None
