"""Options as they are typed, on a command line or in a form."""

from __future__ import annotations

import re
from typing import Any

from rubricnb.core.support.settings import yaml_value


def named_values(
    given: list[str] | None, what: str = "options of a judge"
) -> dict[str, Any]:
    """Read ``NAME=VALUE``; values are YAML, but on and off are words.

    >>> named_values(["thinking=off", "max_tokens=512", "check_model=false"])
    {'thinking': 'off', 'max_tokens': 512, 'check_model': False}
    """
    pairs = [text.partition("=") for text in given or ()]
    if wrong := [name for name, sign, _ in pairs if not (name and sign)]:
        raise ValueError(f"{wrong[0]!r}: {what} are given as NAME=VALUE")
    return {
        name: value.lower()
        if value.lower() in ("on", "off")
        else yaml_value(name, value)
        for name, _, value in pairs
    }


def in_options(message: str) -> str:
    """Write an error's advice, which is in Python's terms, as options of the command.

    Examples
    --------
    >>> in_options("name it: columns={'value': 'score'}; or give scale=(0, 1), failed=99")
    'name it: --columns value=score; or give --scale 0 1, --failed 99'
    """
    for pattern, option in _OPTIONS_FOR.items():
        message = re.sub(pattern, option, message)
    return message


def _pairs(found: re.Match[str]) -> str:
    pairs = re.findall(r"(['\"])(.*?)\1: (['\"])(.*?)\3", found[1])
    return "--columns " + ",".join(f"{old}={new}" for _, old, _, new in pairs)


_OPTIONS_FOR: dict[str, Any] = {
    r"columns=\{([^{}]*)\}": _pairs,
    r"scores=\[([^\]]*)\]": lambda found: (
        "--scores " + found[1].replace("'", "").replace(" ", "")
    ),
    r"scale=\(([^(),]*), ([^(),]*)\)": r"--scale \1 \2",
    r"failed=(-?[\d.]+)": r"--failed \1",
    r"parser=('[^']*')": r"--parser \1",
    r"(?:rb\.)?load\('csv', path=…, rubric=…\)": "--path FILE --rubric FILE",
    r"check_model=False": "--option check_model=false",
    r"(thinking|effort|server)=['\"](\w+)['\"]": r"--option \1=\2",
    r"\b(max_tokens|key_variable|concurrency|retries|timeout|patience|extra)"
    r"=(?=[\s,;.)]|\Z)": r"--option \1=…",
    r"\b(columns|scores|scale|failed|parser|path|rubric|judgments)"
    r"=(?=[\s,;.)]|\Z)": r"--\1",
}
