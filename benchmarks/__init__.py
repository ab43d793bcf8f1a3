"""What the package promises about time, memory and growth, measured.

    python -m benchmarks [NAME …] [--json FILE]

A benchmark is a module of this folder whose ``measure()`` yields rows made by `row`. It
runs in a process of its own. Calls are timed by `timed`; those that are compared take
turns in one run, so that a busy machine slows both alike.
"""

from __future__ import annotations

import operator
import time
from collections.abc import Callable
from importlib import import_module
from statistics import median
from typing import Any, NamedTuple

_HOLDS = {"<": operator.lt, "<=": operator.le, ">=": operator.ge, ">": operator.gt}


def row(what: str, value: Any, unit: str = "", limit: str = "") -> dict[str, Any]:
    """One figure. `met`: whether it keeps its limit, such as "<= 120"; None: none."""
    met = None
    if limit:
        sign, bound = limit.split()
        met = bool(_HOLDS[sign](value, float(bound)))
    return {"what": what, "value": value, "unit": unit, "limit": limit, "met": met}


def rows_of(name: str) -> list[dict[str, Any]]:
    """All rows of one benchmark."""
    return list(import_module(f"{__name__}.{name}").measure())


class Seconds(NamedTuple):
    """Medians of the repeats: on the clock, and of the processor."""

    wall: float
    cpu: float


def timed(*calls: Callable[[], object], repeats: int = 9) -> list[Seconds]:
    """Time some calls, which take turns; a first turn only warms up."""
    found: list[list[tuple[float, float]]] = [[] for _ in calls]
    for turn in range(repeats + 1):
        for call, times in zip(calls, found, strict=True):
            wall, cpu = time.perf_counter(), time.process_time()
            call()
            if turn:
                times.append((time.perf_counter() - wall, time.process_time() - cpu))
    both = (zip(*times, strict=True) for times in found)
    return [Seconds(median(wall), median(cpu)) for wall, cpu in both]
