"""Any function from messages to text as a judge."""

from __future__ import annotations

import asyncio
import hashlib
import inspect
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from itertools import islice
from typing import Any, Literal

from rubricnb.judging.contract import Readout, Reply, Request


class FunctionJudge:
    """A judge that calls a function; see `rubricnb.open_judge`.

    Parameters
    ----------
    function
        Takes a list of ``{"role": …, "content": …}`` and returns text; may be ``async``. What it
        raises is the error of one reply.
    name
        What frames and files call the judge; default: the function's name.
    concurrency
        Calls at once, each in a thread of its own (``async``: in one event loop).
    deterministic
        Whether it answers a repeated prompt alike, so that it is asked once.
    """

    source: Literal["live", "simulated"] = "live"
    readouts: tuple[Readout, ...] = ("feedback",)

    def __init__(
        self,
        function: Callable[[list[dict[str, str]]], Any],
        name: str = "",
        concurrency: int = 1,
        deterministic: bool = False,
    ) -> None:
        self.function, self.concurrency, self.deterministic = function, concurrency, deterministic
        self.slug = name or getattr(function, "__name__", type(function).__name__).strip("<>")
        self.identity = f"function {self.slug} {_source_hash(function)}".strip()
        self._loop: asyncio.AbstractEventLoop | None = None

    def answer(self, requests: Iterable[Request]) -> Iterator[Reply]:
        """Call the function for every request."""
        if self.concurrency == 1:
            yield from map(self._ask, requests)
            return
        stream = iter(requests)
        with ThreadPoolExecutor(self.concurrency) as pool:
            running: set[Future[Reply]] = set()
            while True:
                free = self.concurrency - len(running)
                running |= {pool.submit(self._ask, r) for r in islice(stream, free)}
                if not running:
                    return
                done, running = wait(running, return_when=FIRST_COMPLETED)
                yield from (future.result() for future in done)

    def close(self) -> None:
        """Stop the event loop, if there is one."""
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._loop = None

    def _ask(self, request: Request) -> Reply:
        start = time.perf_counter()
        try:
            text = self.function([{"role": m.role, "content": m.content} for m in request.messages])
            if inspect.isawaitable(text):
                text = asyncio.run_coroutine_threadsafe(_awaited(text), self._running()).result()
            if not isinstance(text, str):
                raise TypeError(f"{self.slug} returned {type(text).__name__} and not text")
        except Exception as error:
            said = f"{type(error).__name__}: {error}"
            return Reply(request.request_id, "", "error", error=said)
        return Reply(request.request_id, text, seconds=time.perf_counter() - start)

    def _running(self) -> asyncio.AbstractEventLoop:
        """An event loop in a thread of its own: the caller's may be running, as in Jupyter."""
        if self._loop is None:
            self._loop = asyncio.new_event_loop()
            threading.Thread(target=self._loop.run_forever, daemon=True, name=self.slug).start()
        return self._loop


async def _awaited(text: Any) -> Any:
    return await text


def _source_hash(function: Callable[..., Any]) -> str:
    try:
        source = inspect.getsource(function)
    except (OSError, TypeError):  # typed into a shell, or no plain function: its name must do
        return ""
    return hashlib.sha256(source.encode()).hexdigest()[:16]
