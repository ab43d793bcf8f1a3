"""Any function from messages to text as a judge."""

from __future__ import annotations

import asyncio
import inspect
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import asdict
from itertools import islice
from typing import Any, Literal

from rubricnb.core.contract import JudgeError, Readout, Reply, Request
from rubricnb.core.support.shown import one_line
from rubricnb.engines.endpoint import running_loop
from rubricnb.engines.fingerprint import code_fingerprint
from rubricnb.engines.redact import redact


class FunctionJudge:
    """A judge that calls a function; see `rubricnb.open_judge`.

    Parameters
    ----------
    function
        Takes a list of ``{"role": …, "content": …}`` and returns text; may be
        ``async``. What it raises is the error of one reply.
    name
        What frames and files call the judge; default: the function's name. Its
        identity, by which stored answers are found, is this name, the source, and the
        text, yes or no, and numbers that it was told before (defaults, a
        `functools.partial`'s arguments, names of an enclosing function; of the
        attributes of its object, fractions only), and the functions, texts and numbers
        of its module that it uses; none that it assigns. What else changes an answer
        (an object's whole numbers, what lists and dictionaries hold) belongs in the
        name.
    concurrency
        Calls at once, each in a thread of its own (``async``: in one event loop).
    deterministic
        Whether it answers a repeated prompt alike, so that it is asked once.
    """

    source: Literal["live", "simulated"] = "live"
    readouts: tuple[Readout, ...] = ("feedback",)
    spec = "function"

    def __init__(
        self,
        function: Callable[[list[dict[str, str]]], Any],
        name: str = "",
        concurrency: int = 1,
        deterministic: bool = False,
    ) -> None:
        self.function, self.concurrency, self.deterministic = (
            function,
            concurrency,
            deterministic,
        )
        self.slug = name or getattr(
            function, "__name__", type(function).__name__
        ).strip("<>")
        self.identity = f"function {self.slug} {code_fingerprint(function)}"
        self._loop: asyncio.AbstractEventLoop | None = None
        self.answered_before = False  # in this run or an earlier one
        self._failures = 0

    def answer(self, requests: Iterable[Request]) -> Iterator[Reply]:
        """Call the function for every request; stop if none of the first calls ends.

        What is under way then is still waited for.
        """
        last = ""
        for reply in self._replies(requests):
            last = reply.error or last
            self._failures += bool(reply.error)
            self.answered_before |= not reply.error
            yield reply
        if self._is_hopeless():
            failures, self._failures = self._failures, 0
            raise JudgeError(
                f"{self.slug}: all of the first {failures} calls failed; the last: "
                f"{last}"
            )

    def _replies(self, requests: Iterable[Request]) -> Iterator[Reply]:
        stream = iter(requests)
        if self.concurrency == 1:  # in this thread, where the function may have to run
            for request in stream:
                yield self._ask(request)
                if self._is_hopeless():
                    return
            return
        with ThreadPoolExecutor(self.concurrency) as pool:
            running: set[Future[Reply]] = set()
            while True:
                free = 0 if self._is_hopeless() else self.concurrency - len(running)
                running |= {pool.submit(self._ask, r) for r in islice(stream, free)}
                if not running:
                    return
                done, running = wait(running, return_when=FIRST_COMPLETED)
                yield from (future.result() for future in done)

    def _is_hopeless(self) -> bool:
        return not self.answered_before and self._failures >= max(self.concurrency, 5)

    def close(self) -> None:
        """Stop the event loop, if there is one."""
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._loop = None

    def _ask(self, request: Request) -> Reply:
        start = time.perf_counter()
        try:
            text = self.function(list(map(asdict, request.messages)))
            if inspect.isawaitable(text):
                self._loop = self._loop or running_loop(self.slug)
                text = asyncio.run_coroutine_threadsafe(
                    _awaited(text), self._loop
                ).result()
            if not isinstance(text, str):
                raise TypeError(f"{self.slug} returned {type(text).__name__}, not text")
        except Exception as error:
            said = one_line(redact(f"{type(error).__name__}: {error}", None))
            return Reply(request.request_id, "", "error", error=said)
        return Reply(request.request_id, text, seconds=time.perf_counter() - start)


async def _awaited(text: Any) -> Any:
    return await text
