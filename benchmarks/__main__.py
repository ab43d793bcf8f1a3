"""Run the benchmarks: a table, JSON in a file, and status 1 if a limit is missed.

A benchmark whose datasets or packages cannot be had is left out, and named.
"""

from __future__ import annotations

import argparse
import json
import platform
import sys
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from os import cpu_count
from pathlib import Path
from typing import Any

from benchmarks import rows_of

HERE = Path(__file__).parent
WRITTEN = HERE.parent / "_build" / "benchmarks.json"


def main() -> int:
    known = benchmarks()
    options = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    options.add_argument(
        "names", nargs="*", metavar="NAME", help=f"of {', '.join(known)}"
    )
    options.add_argument(
        "--json", type=Path, default=WRITTEN, help="default: %(default)s"
    )
    chosen = options.parse_args()
    if unknown := set(chosen.names) - set(known):
        options.error(f"no benchmark {min(unknown)!r}; there are: {', '.join(known)}")
    rows, left_out = [], []
    print(f"{'':36} {'':>12} {'':10} {'limit':10} met")
    for name in chosen.names or known:
        print(f"\n{name}")
        try:
            found = apart(name)
        # a dataset or a package that is not here
        except (ConnectionError, FileNotFoundError, ImportError) as problem:
            left_out.append(name)
            print(f"  left out: {problem}", flush=True)
            continue
        for row in found:
            rows.append({"benchmark": name, **row})
            print(line(row), flush=True)
        write(rows, chosen.json)  # at once: a later one may fail
    missed = [
        f"{row['benchmark']}: {row['what']}" for row in rows if row["met"] is False
    ]
    print(f"\nmissed: {'; '.join(missed)}" if missed else "\nevery limit is kept")
    if left_out:
        print(
            f"left out: {', '.join(left_out)} (for datasets, set RUBRICNB_MIRROR; for "
            "vLLM, use the environment of make env-vllm)"
        )
    return 1 if missed else 0


def benchmarks() -> list[str]:
    """Names of the benchmarks; the other modules here are what they share."""
    files = HERE.glob("[!_]*.py")
    return sorted(f.stem for f in files if "\ndef measure()" in f.read_text("utf-8"))


def apart(name: str) -> list[dict[str, Any]]:
    """Measure in a fresh process, without the memory and caches of other benchmarks."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(rows_of, name).result()


def line(row: dict[str, Any]) -> str:
    value = row["value"]
    shown = f"{value:,.4g}" if isinstance(value, float) else f"{value:,}"
    met = {None: "", True: "yes", False: "NO"}[row["met"]]
    return f"  {row['what']:34} {shown:>12} {row['unit']:10} {row['limit']:10} {met}"


def write(rows: list[dict[str, Any]], path: Path) -> None:
    machine = f"{platform.system()} {platform.machine()}, {cpu_count()} cores"
    facts = {"machine": machine, "python": platform.python_version(), "rows": rows}
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(facts, indent=1) + "\n")


if __name__ == "__main__":
    sys.exit(main())
