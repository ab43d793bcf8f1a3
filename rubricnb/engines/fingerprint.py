"""What a function does, as a hash: its source, and what it was told before."""

from __future__ import annotations

import dis
import hashlib
import inspect
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from typing import Any


def code_fingerprint(function: Callable[..., Any]) -> str:
    """Return 16 hexadecimal digits of a hash of a function's code and fixed content.

    It is part of an identity: a function that was changed is another judge or parser.
    """
    return hashlib.sha256(repr(_fixed_content(function, 3)).encode()).hexdigest()[:16]


def _fixed_content(value: Any, depth: int) -> Any:
    """Return the fixed content of a function: source, texts and fractions.

    Whole numbers and lists may count or collect calls, so they are left out (but for
    numbers that the function does not assign), as is what lies deeper than `depth`
    functions or objects.
    """
    if isinstance(value, str | bool | float):
        return value
    if isinstance(value, dict):
        return [
            (str(name), _fixed_content(part, depth)) for name, part in value.items()
        ]
    if isinstance(value, tuple):
        return [_fixed_content(part, depth) for part in value]
    if not callable(value) or depth == 0:
        return type(value).__qualname__
    if isinstance(value, partial):
        args, named = _with_numbers(value.args), _with_numbers(value.keywords)
        return _fixed_content((value.func, args, named), depth - 1)
    if inspect.ismethod(value):
        return _fixed_content((value.__func__, value.__self__), depth - 1)
    if inspect.isfunction(value):
        held = inspect.getclosurevars(value)
        stores = ("STORE_GLOBAL", "STORE_DEREF")
        assigned = {i.argval for i in dis.get_instructions(value) if i.opname in stores}
        used = {
            name: repr(part) if isinstance(part, int) else part
            for name, part in sorted(held.globals.items())
            if name not in assigned
        }
        kept = {name: held.nonlocals[name] for name in assigned & held.nonlocals.keys()}
        around = _with_numbers(held.nonlocals) | kept
        told = (
            around,
            _with_numbers(value.__defaults__),
            _with_numbers(value.__kwdefaults__),
            used,
        )
        return _source(value), _fixed_content(told, depth - 1)
    return _source(type(value)), _fixed_content(
        getattr(value, "__dict__", {}), depth - 1
    )


def _with_numbers(given: Any) -> Any:
    """Whole numbers as text, also inside, for these cannot count calls."""
    if isinstance(given, Mapping):
        return {name: _as_text(part) for name, part in given.items()}
    return given and tuple(map(_as_text, given))


def _as_text(part: Any) -> Any:
    return repr(part) if type(part) is int else part


def _source(thing: Any) -> str:
    code = getattr(thing, "__code__", None)
    with suppress(OSError, TypeError):  # typed into a shell, or built in
        # From Python 3.13 on, an executed text has the source of ``python -c``.
        if getattr(code, "co_filename", "") != "<string>":
            return inspect.getsource(thing)
    if code is None:
        return ""
    return f"{code.co_code!r} {code.co_names} {_fixed_content(code.co_consts, 0)}"
