"""A decision model on all of minibench: Sparrow's own server, and its cost here.

The texts are asked as a score in ten orders. The processor time is that of this
process: planning is left out, and the server has a process of its own.
"""

from __future__ import annotations

import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import rubricnb as rb
from benchmarks import row


def measure() -> Iterator[dict[str, Any]]:
    requests = rb.plan(rb.load("minibench"), rb.balanced(5))
    with sparrow() as url:
        judge = rb.open_judge(f"decision:sparrow-nano-general-v1.1@{url}", kind="score")
        rb.run(requests.head(50), judge, store=":memory:")  # imports and connections
        wall, own = time.perf_counter(), time.process_time()
        rb.run(requests, judge, store=":memory:")
        wall, own = time.perf_counter() - wall, time.process_time() - own
        judge.close()
    yield row(f"{len(requests):,} requests to Sparrow", round(wall, 1), "s", "<= 30")
    yield row(
        "own processor time", round(1000 * own / len(requests), 2), "ms/request", "<= 2"
    )


@contextmanager
def sparrow() -> Iterator[str]:
    """Run Sparrow's server; yields its address."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [
        sys.executable,
        "-m",
        "sparrow_decider.cli",
        "serve",
        "--port",
        str(port),
    ]
    server = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    try:
        for _ in range(600):
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    break
            time.sleep(0.1)
        yield f"http://127.0.0.1:{port}/v1"
    finally:
        server.kill()
        server.wait()
