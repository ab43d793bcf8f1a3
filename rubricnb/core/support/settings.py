"""What a person typed: YAML, as a value or a file of parameters, and amounts."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import yaml

from rubricnb.core.support.types import Json


def is_amount(value: Any, kind: Any = int | float) -> bool:
    """Say whether a value is a number of a kind: finite, 0 or more, and no yes or no.

    Examples
    --------
    >>> is_amount(0.5), is_amount(0.5, int), is_amount(True), is_amount(float("nan"))
    (True, False, False, False)
    """
    is_number = isinstance(value, kind) and not isinstance(value, bool)
    return is_number and bool(0 <= value < math.inf)


def yaml_value(name: str, text: str) -> Any:
    """Read a value as YAML.

    Raises
    ------
    ValueError
        It is not YAML; one line names it.

    Examples
    --------
    >>> yaml_value("n_items", "4"), yaml_value("temperatures", "[0, 1]")
    (4, [0, 1])
    >>> yaml_value("designs", "[0, 1")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ValueError: designs: '[0, 1' is not valid YAML (...): put it in quotes
    """
    try:
        return yaml.safe_load(text)
    # ValueError: 2026-13-45
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise ValueError(
            f"{name}: {text[:80]!r} is not valid YAML ({_reason(error)}): put it in "
            "quotes"
        ) from None


def read_yaml(path: str | Path) -> Json:
    """Read a YAML file of names and values; an empty one has none.

    Raises
    ------
    ValueError
        It is not YAML in UTF-8, or holds something other than names and values; one
        line names the file, and the line in it.
    """
    try:
        content = yaml.safe_load(Path(path).read_text("utf-8"))
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise ValueError(f"{path} is not valid YAML: {_reason(error)}") from None
    return _named(content, str(path))


def section(content: Json, name: str, path: object) -> Json:
    """Return a part of `read_yaml` that holds names and values; empty if none.

    Raises
    ------
    ValueError
        It holds something else.
    """
    return _named(content.get(name), f"{path}: {name}")


def _named(content: Any, where: str) -> Json:
    if content is None:
        return {}
    if not isinstance(content, dict) or not all(
        isinstance(name, str) for name in content
    ):
        kinds: dict[type, str] = {
            list: "a list",
            str: "a text",
            dict: "names that are no texts",
        }
        kind = kinds.get(type(content), f"the value {content!r}")
        raise ValueError(f"{where} does not hold lines 'name: value' but {kind}")
    return content


def _reason(error: Exception) -> str:
    return " ".join(str(error).split())
