"""Any function from messages to text as a judge."""

from __future__ import annotations

import asyncio
import hashlib
import inspect
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from functools import partial
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
        What frames and files call the judge; default: the function's name. Its identity, by which
        stored answers are found, is this name, the source and whatever text or number is bound to
        the function (defaults, a `functools.partial`'s arguments, names of an enclosing function,
        attributes of its object). What else changes an answer belongs into the name.
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
        self.identity = f"function {self.slug} {_fingerprint(function)}"
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


def _fingerprint(function: Callable[..., Any]) -> str:
    """Hash the source of a function and what is bound to it, as far as that is text or a number."""
    source, bound = _source(function), [*_bound(function)]
    digest = hashlib.sha256(source.encode())
    if bound:
        digest.update(repr(bound).encode())
    return digest.hexdigest()[:16]


def _source(function: Any) -> str:
    if isinstance(function, partial):
        return _source(function.func)
    plain = inspect.isfunction(function) or inspect.ismethod(function)
    try:
        return inspect.getsource(function if plain else type(function))
    except (OSError, TypeError):  # typed into a shell, or a built-in
        code = getattr(function, "__code__", None)
        return f"{code.co_code!r} {code.co_names} {_texts(code.co_consts)}" if code else ""


def _bound(function: Any) -> Iterator[Any]:
    """What a function was given before it is called; counters and clients are not looked at."""
    if isinstance(function, partial):
        yield from (_texts(function.args), _texts(sorted(function.keywords.items())))
        yield from _bound(function.func)
        return
    own = getattr(function, "__self__", None if inspect.isfunction(function) else function)
    if own is not None and not inspect.ismodule(own):
        yield from _texts(sorted(getattr(own, "__dict__", {}).items()))
    if inspect.isfunction(plain := getattr(function, "__func__", function)):
        held = inspect.getclosurevars(plain).nonlocals
        for name, value in sorted(held.items()):
            text = [_fingerprint(value)] if inspect.isfunction(value) and value is not plain else []
            yield from ([name, *found] for found in [text or _texts([value])] if found)
        yield from _texts([*(plain.__defaults__ or ()), *(plain.__kwdefaults__ or {}).items()])


def _texts(values: Iterable[Any]) -> list[Any]:
    """The values that are text, yes or no, or a number with a point, and pairs of a name and one.

    Whole numbers are left out: they may count calls.
    """
    pairs = [v for v in values if isinstance(v, tuple) and len(v) == 2 and _plain(v[1])]
    return [v for v in values if _plain(v)] + pairs


def _plain(value: Any) -> bool:
    return isinstance(value, str | bool | float)
