"""What a run costs beside the judge: requests per second, processor time, memory.

In process with a judge that answers at once; over HTTP with a server that answers after
200 ms; and the memory of ten thousand and of a million requests.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pandas as pd

import rubricnb as rb
from benchmarks import row, timed
from rubricnb.core.contract import Reply, Request
from rubricnb.core.frames import Requests

CONCURRENCY, DELAY = 64, 0.2
SIZES = {"10 thousand": 10_000, "1 million": 1_000_000}


def measure() -> Iterator[dict[str, Any]]:
    yield from _in_process()
    yield from _over_http()
    yield from _memory()


class AtOnce:
    """Answers at once, in process."""

    slug, source, identity, deterministic = "at-once", "live", "at once", False
    readouts, concurrency = ("feedback", "logprobs"), 1

    def answer(self, requests: Iterable[Request]) -> Iterator[Reply]:
        shares = ((0.1, 0.2, 0.4, 0.2, 0.1),)
        for request in requests:
            probabilities = shares if request.readout == "logprobs" else None
            yield Reply(
                request.request_id,
                "Fine. [RESULT] 3",
                "stop",
                probabilities,
                900,
                700,
                5,
            )

    def close(self) -> None:
        pass


def plan(size: int, readout: str = "feedback") -> Requests:
    """So many requests about the bundled items."""
    items = rb.load("minibench")
    return rb.plan(items, rb.shuffled(5, -(-size // len(items))), readout=readout).head(
        size
    )


def _in_process() -> Iterator[dict[str, Any]]:
    requests = plan(9_000)
    names = ("stored and read", "read from the store")
    with TemporaryDirectory() as folder:
        full = Path(folder) / "full.sqlite"
        rb.run(requests, AtOnce(), store=full)
        times = timed(
            lambda: rb.run(requests, AtOnce(), store=":memory:"),
            lambda: rb.run(requests, AtOnce(), store=full),
            repeats=5,
        )
    for name, spent in zip(names, times, strict=True):
        yield row(
            f"in process, {name}",
            round(len(requests) / spent.wall),
            "requests/s",
            ">= 2500" if name == "stored and read" else "",
        )


def _over_http() -> Iterator[dict[str, Any]]:
    requests = plan(3_200)
    with subprocess.Popen(
        [sys.executable, "-c", SERVER, str(DELAY)], stdout=subprocess.PIPE, text=True
    ) as server:
        assert server.stdout
        url = f"http://127.0.0.1:{server.stdout.readline().strip()}/v1"
        judge = rb.open_judge(
            f"openai:m@{url}", concurrency=CONCURRENCY, server="other"
        )
        (spent,) = timed(
            lambda: rb.run(requests, judge, store=":memory:", fresh=True), repeats=3
        )
        judge.close()
        server.kill()
    most = CONCURRENCY / DELAY
    share = len(requests) / spent.wall / most
    # The HTTP library looks at all its open connections whenever one begins or ends.
    yield row(f"over HTTP, of {most:.0f} requests/s", round(share, 3), "", ">= 0.8")
    milliseconds = 1000 * spent.cpu / len(requests)
    yield row("processor time of a request", round(milliseconds, 2), "ms", "<= 5")


def _memory() -> Iterator[dict[str, Any]]:
    """A run of each size, in a process that did not make its plan."""
    most = {}
    for name, size in SIZES.items():
        requests = plan(size, "logprobs")
        with TemporaryDirectory() as folder:
            requests.to_pickle(f"{folder}/plan")
            done = subprocess.run(
                [sys.executable, "-m", __name__, folder],
                stdout=subprocess.PIPE,
                check=True,
            )
        peak, collected = json.loads(done.stdout.splitlines()[-1])
        held = requests.memory_usage(deep=True).sum() / 1e6
        most[name] = peak - held
        yield row(f"peak beside the plan, {name}", round(most[name], 1), "MB")
        yield row(f"a collected row, {name}", collected, "bytes", "<= 200")


def _peaks(folder: Path) -> tuple[float, float]:
    """Peak of the process in MB while a plan is asked, and bytes of a collected row."""
    requests = pd.read_pickle(folder / "plan")
    rb.run(requests, AtOnce(), store=folder / "s.sqlite")
    most = peak()
    part = requests.head(100_000)
    judgments = rb.run(part, AtOnce(), store=folder / "s.sqlite")
    return round(most, 1), round(judgments.memory_usage(deep=True).sum() / len(part), 1)


def peak() -> float:
    """Most memory that this process has held, in MB."""
    status = Path("/proc/self/status")
    if status.exists():  # Linux; its ru_maxrss begins with what the parent process held
        return int(status.read_text().split("VmHWM:")[1].split()[0]) * 1024 / 1e6
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6


# As little of a server as will do: it must not be what is measured.
SERVER = r"""
import asyncio, json, sys

DELAY = float(sys.argv[1])
BODY = json.dumps({
    "id": "x", "object": "chat.completion", "created": 0, "model": "m",
    "choices": [{"index": 0, "finish_reason": "stop", "logprobs": None,
                 "message": {"role": "assistant", "content": "Fine. [RESULT] 3"}}],
    "usage": {"prompt_tokens": 900, "completion_tokens": 5, "total_tokens": 905},
}).encode()
HEAD = (b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
        b"Content-Length: %d\r\n\r\n")
ANSWER = HEAD % len(BODY) + BODY

async def serve(reader, writer):
    try:
        while True:
            head = await reader.readuntil(b"\r\n\r\n")
            length = int(head.lower().split(b"content-length:")[1].split(b"\r\n")[0])
            await reader.readexactly(length)
            await asyncio.sleep(DELAY)
            writer.write(ANSWER)
    except (asyncio.IncompleteReadError, ConnectionError):
        writer.close()

async def main():
    server = await asyncio.start_server(serve, "127.0.0.1", 0, backlog=256)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()

asyncio.run(main())
"""


if __name__ == "__main__":
    print(json.dumps(_peaks(Path(sys.argv[1]))))
