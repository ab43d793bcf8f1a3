"""Any function from messages to text as a judge."""

from __future__ import annotations

import asyncio
import dis
import hashlib
import inspect
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import suppress
from dataclasses import asdict
from functools import partial
from itertools import islice
from typing import Any, Literal

from rubricnb.core.contract import Readout, Reply, Request
from rubricnb.core.support.shown import one_line
from rubricnb.engines.endpoint import running_loop
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
            # here, since it loads the client
            from rubricnb.core.contract import JudgeError

            failures, self._failures = self._failures, 0
            said = f"all of the first {failures} calls failed; the last: {last}"
            raise JudgeError(f"{self.slug}: {said}")

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


def code_fingerprint(function: Callable[..., Any]) -> str:
    """Return 16 hexadecimal digits of a hash of a function's code and fixed content.

    It is part of an identity: a function that was changed is another judge or parser.
    """
    return hashlib.sha256(repr(_fixed_content(function, 3)).encode()).hexdigest()[:16]


def _fixed_content(value: Any, depth: int) -> Any:
    """Return the fixed content of a function: source, texts and fractions.

    Whole numbers and lists may count or collect calls, so they are left out (but for
    numbers that the function does not assign), as is what lies deeper than `depth`
    functions or objects.
    """
    if isinstance(value, str | bool | float):
        return value
    if isinstance(value, dict):
        return [
            (str(name), _fixed_content(part, depth)) for name, part in value.items()
        ]
    if isinstance(value, tuple):
        return [_fixed_content(part, depth) for part in value]
    if not callable(value) or depth == 0:
        return type(value).__qualname__
    if isinstance(value, partial):
        args, named = _with_numbers(value.args), _with_numbers(value.keywords)
        return _fixed_content((value.func, args, named), depth - 1)
    if inspect.ismethod(value):
        return _fixed_content((value.__func__, value.__self__), depth - 1)
    if inspect.isfunction(value):
        held = inspect.getclosurevars(value)
        stores = ("STORE_GLOBAL", "STORE_DEREF")
        assigned = {i.argval for i in dis.get_instructions(value) if i.opname in stores}
        used = {
            name: repr(part) if isinstance(part, int) else part
            for name, part in sorted(held.globals.items())
            if name not in assigned
        }
        kept = {name: held.nonlocals[name] for name in assigned & held.nonlocals.keys()}
        around = _with_numbers(held.nonlocals) | kept
        told = (
            around,
            _with_numbers(value.__defaults__),
            _with_numbers(value.__kwdefaults__),
            used,
        )
        return _source(value), _fixed_content(told, depth - 1)
    return _source(type(value)), _fixed_content(
        getattr(value, "__dict__", {}), depth - 1
    )


def _with_numbers(given: Any) -> Any:
    """Whole numbers as text, also inside, for these cannot count calls."""
    if isinstance(given, Mapping):
        return {name: _as_text(part) for name, part in given.items()}
    return given and tuple(map(_as_text, given))


def _as_text(part: Any) -> Any:
    return repr(part) if type(part) is int else part


def _source(thing: Any) -> str:
    code = getattr(thing, "__code__", None)
    with suppress(OSError, TypeError):  # typed into a shell, or built in
        # From Python 3.13 on, an executed text has the source of ``python -c``.
        if getattr(code, "co_filename", "") != "<string>":
            return inspect.getsource(thing)
    if code is None:
        return ""
    return f"{code.co_code!r} {code.co_names} {_fixed_content(code.co_consts, 0)}"
