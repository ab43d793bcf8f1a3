"""What streaming costs behind ``ray:``, and what a write into the store costs.

An endpoint's replies leave their actor one by one, so that a stop finds them stored.
They are compared with an actor that returns a block when it is whole: the same judge,
blocks, endpoint and machine, in turns. A write is compared with SQLite's own of as many
bytes, into a file that is opened in the same way.
"""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import rubricnb as rb
from benchmarks import row, timed
from benchmarks.overhead import DELAY, SERVER, plan
from rubricnb.core.contract import Reply, Request
from rubricnb.core.rendering import rendered
from rubricnb.core.store import Store

CONCURRENCY, SIZE, WRITES = 16, 320, 2_000


def measure() -> Iterator[dict[str, Any]]:
    yield from _streamed()
    yield from _written()


def _streamed() -> Iterator[dict[str, Any]]:
    """Ask an endpoint that answers after a while, from one actor."""
    import ray

    os.environ.pop("RAY_ADDRESS", None)
    with subprocess.Popen(
        [sys.executable, "-c", SERVER, str(DELAY)], stdout=subprocess.PIPE, text=True
    ) as server:
        try:
            assert server.stdout
            spec = f"openai:m@http://127.0.0.1:{server.stdout.readline().strip()}/v1"
            how: dict[str, Any] = {"server": "other", "concurrency": CONCURRENCY}
            judge: Any = rb.open_judge(f"ray:{spec}", num_actors=1, **how)
            with closing(judge):
                asked = list(rendered(plan(SIZE), judge))
                actor = ray.remote(Whole).options(num_cpus=0).remote(spec, how)

                def whole() -> list[Reply]:
                    blocks = judge._blocks(asked)
                    return [
                        r for part in blocks for r in ray.get(actor.answer.remote(part))
                    ]

                both = timed(lambda: list(judge.answer(asked)), whole, repeats=5)
        finally:  # or leaving this block would wait for it
            server.kill()
    streamed, whole_blocks = both
    yield row("streamed out of an actor", round(SIZE / streamed.wall, 1), "requests/s")
    ratio = streamed.wall / whole_blocks.wall
    yield row("streamed over whole blocks", round(ratio, 3), "times", "<= 1.05")
    cpu = 1e3 * (streamed.cpu - whole_blocks.cpu) / SIZE
    yield row("own processor time more", round(cpu, 2), "ms/request", "<= 2")


class Whole:
    """A judge in an actor that returns a block of replies at once."""

    def __init__(self, spec: str, how: dict[str, Any]) -> None:
        self.judge: Any = rb.open_judge(spec, **how)

    def answer(self, requests: list[Request]) -> list[Reply]:
        return list(self.judge.answer(requests))


def _written() -> Iterator[dict[str, Any]]:
    """Store replies, and insert rows of one key and one text by SQLite alone."""
    reply = Reply(1, "Fine. " * 60 + "[RESULT] 3", "stop", None, 900, 700, 90)
    turn = iter(range(10**9))
    with TemporaryDirectory() as folder:
        plain = sqlite3.connect(Path(folder) / "plain", isolation_level=None)
        plain.execute("PRAGMA journal_mode=WAL")
        plain.execute("PRAGMA synchronous=NORMAL")
        plain.execute("CREATE TABLE t (key TEXT PRIMARY KEY, text TEXT)")
        with closing(plain), Store(Path(folder) / "s.sqlite") as store:

            def kept() -> None:
                for _ in range(WRITES):
                    store.put(f"{next(turn):064x}", "m", reply)

            def inserted() -> None:
                for _ in range(WRITES):
                    values = f"{next(turn):064x}", reply.text
                    plain.execute("INSERT INTO t VALUES (?, ?)", values)

            both = timed(kept, inserted, repeats=5)
    of_store, alone = (1e6 * spent.wall / WRITES for spent in both)
    yield row("a write into the store", round(of_store, 1), "µs")
    yield row("over SQLite's own", round(of_store / alone, 2), "times", "<= 3")
