"""What judges behind an endpoint share: keys, pace, retries, patience, an end."""

from __future__ import annotations

import asyncio
import json
import os
import re
import threading
import time
import zlib
from collections import Counter
from collections.abc import Generator, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import KW_ONLY, dataclass, field, replace
from itertools import count, islice
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeAlias, cast

from rubricnb.core.address import KEYS, OPENAI, checked, headers_for
from rubricnb.core.contract import Finish, JudgeError, Reply, Request
from rubricnb.core.support.settings import is_amount
from rubricnb.core.support.shown import one_line
from rubricnb.core.support.types import Json
from rubricnb.engines.connection import (
    Answer,
    Doubt,
    Pace,
    Refused,
    Unreachable,
    Unreadable,
    aside,
    part,
    pause_after,
    retry_after,
    way_out,
)
from rubricnb.engines.label_probabilities import Chances
from rubricnb.engines.redact import redact
from rubricnb.engines.same_model import same_model

if TYPE_CHECKING:
    from rubricnb.engines.client import Connection

Slots: TypeAlias = tuple[Chances, ...]
"""Of each slot, the probability of each label."""
Calls: TypeAlias = Generator[tuple[str, Json], Json, Any]
"""Path and body of each call, which takes the response."""

MAX_SHOWN_CHARS = 200  # characters of an unreadable answer in a message
# Characters of an answer that cannot be read, as it is kept; of the message.
_MAX_STORED_CHARS, MAX_SAID_CHARS = 100_000, 500
_LONGEST_HOLD_S = 20  # of all calls; a longer pause may be meant for one of them


@dataclass(eq=False, repr=False)
class Endpoint:
    """A judge behind an HTTP endpoint; a subclass has a `call` for each request.

    Nothing is sent before the first request. A failed call is sent again with growing
    pauses, or after as long as the endpoint asks for (``Retry-After``, up to
    `patience`); what fails for good is one reply with its error, and what would fail
    for every request, or an endpoint that has answered nothing for `patience`, stops
    the run with a `JudgeError`.

    The parameters are those of `rubricnb.engines.openai.OpenAIJudge`.
    """

    model: str
    base_url: str = ""
    _: KW_ONLY
    concurrency: int = 16
    requests_per_minute: float | None = None
    timeout: float = 600
    retries: int = 6
    patience: float = 1800
    key_variable: str | None = None
    check_model: bool = True
    identity: str = field(default="", init=False)

    source: ClassVar[Literal["live"]] = "live"
    through_openai = True  # whether its calls go through the openai client
    spec = "openai"  # what its spec begins with
    # what to do if another one answers
    other_model = "pass check_model=False if that is right"

    def __post_init__(self) -> None:
        for name, wanted in _LIMITS.items():
            value = getattr(self, name)
            if name == "requests_per_minute" and value is None:
                continue
            kind = int if "whole" in wanted else int | float
            if not is_amount(value, kind) or (not value and "0 or more" not in wanted):
                raise ValueError(f"{name} = {value!r}: give {wanted}")
        self.base_url, self.host = checked(self.base_url or f"https://{OPENAI}/v1")
        self.slug = slug(self.model)
        self.key_variable = self.key_variable or KEYS.get(self.host)
        self._pace = Pace(self.requests_per_minute)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._connection: Connection  # from the first call on
        self.answered_before = False
        self._has_answered = False  # whether any call got a good answer
        self._last_answer_time = 0.0  # of the last good answer
        self._doubt = Doubt(self.concurrency)
        # once there is no doubt that all would fail
        self._hopeless: JudgeError | None = None
        self._last_trouble = ""

    def call(self, request: Request) -> Call:
        """Return the calls of one request, to be sent."""
        raise NotImplementedError

    def prepare(self) -> None:
        """Learn what the first request needs to know of the endpoint."""

    def answer(self, requests: Iterable[Request]) -> Iterator[Reply]:
        """Answer requests, `concurrency` at a time, as answers come.

        When the judge cannot go on, what is under way is still waited for: it may be
        paid already. Nothing is waited for longer than `patience` after the last good
        answer.
        """
        source = iter(requests)
        under_way: set[Future[Reply]] = set()
        trouble: BaseException | None = None
        self._hopeless = None
        self._last_answer_time = time.monotonic()
        try:
            while True:
                free = 0 if trouble else self.concurrency - len(under_way)
                if not self._works:  # as many as may fail before that is enough
                    free = min(free, self._doubt.left() - len(under_way))
                for request in islice(source, max(free, 0)):
                    loop = self._start()
                    self.prepare()
                    under_way.add(
                        asyncio.run_coroutine_threadsafe(self._answer(request), loop)
                    )
                if not under_way:
                    break
                done: set[Future[Reply]] = set()
                while not done:
                    left = max(self._patience_left(), 0.0)
                    done = wait(under_way, left, FIRST_COMPLETED).done
                    if not done and self._patience_left() <= 0:
                        raise trouble or JudgeError(self._no_answer_message())
                under_way -= done
                for call in done:
                    if problem := call.exception():
                        trouble = trouble or problem
                    else:
                        yield call.result()
                trouble = trouble or self._hopeless
        finally:
            for call in under_way:
                call.cancel()
        if trouble is not None:
            raise trouble

    def first_call(self, request: Request) -> tuple[str, Json]:
        """Return path and body of a request's first call: a line of a batch file.

        Examples
        --------
        >>> from rubricnb.core.contract import Message
        >>> from rubricnb.engines.openai import OpenAIJudge
        >>> message = Message("user", "…")
        >>> ask = Request(1, "", (message,), ("[RESULT]",), ("1", "2"), "feedback")
        >>> path, body = OpenAIJudge("gpt-4.1").first_call(ask)
        >>> path, body["max_completion_tokens"]
        ('/chat/completions', 1024)
        """
        step = self.call(request).next(None)
        assert not isinstance(step, Reply)
        return step

    def read(self, request: Request, response: Json) -> Reply | None:
        """Read the response to `first_call`; None if a further call is needed."""
        call = self.call(request)
        call.next(None)
        try:
            step = call.next(response)
        except Exception as problem:  # whatever an endpoint sends
            return call.failed(problem)
        return step if isinstance(step, Reply) else None

    @property
    def how_to_start(self) -> str:
        """A server of your own, for a message."""
        raise NotImplementedError

    def way_out_of(self, problem: Refused) -> str:
        """Return what to do about a refusal that only this kind knows, or nothing."""
        return ""

    def redact(self, text: str) -> str:
        """Remove the key wherever an endpoint repeats it."""
        return redact(text, self._key())

    def close(self) -> None:
        """Close the connections."""
        if self._loop is not None:
            asyncio.run_coroutine_threadsafe(
                self._connection.aclose(), self._loop
            ).result()
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._loop = None

    def _patience_left(self) -> float:
        return self._last_answer_time + self.patience - time.monotonic()

    def _start(self) -> asyncio.AbstractEventLoop:
        # here, so that a judge is described where nothing can be asked
        from rubricnb.engines.client import Connection, OpenAIPosts

        if self._loop is None:
            key = self._key()
            if not key and self.key_variable:
                raise ValueError(
                    f"no key for {self.base_url}: set the environment variable "
                    f"{self.key_variable}"
                )
            connect = OpenAIPosts if self.through_openai else Connection
            self._connection = connect(
                self.base_url,
                headers_for(self.host, key),
                redact=self.redact,
                timeout=self.timeout,
                proxies=bool(self.host),  # bypass the proxy for localhost
            )
            self._loop = running_loop(f"judge {self.slug}")
        return self._loop

    def _key(self) -> str | None:
        """Return the key, which is kept only in the connection."""
        return (
            os.environ.get(self.key_variable, "").strip() if self.key_variable else None
        )

    async def _persist(self, path: str, body: Json | None = None) -> Answer:
        """Send a call; retry after a temporary failure."""
        for tries in count():
            await self._pace.take()
            try:
                return await self._connection.ask(path, body)
            except Exception as problem:
                self._last_trouble = self.error_text(problem)
                pause = pause_after(problem, tries)
                if isinstance(problem, Refused) and problem.status == 429:
                    self._pace.hold(min(retry_after(problem.headers), _LONGEST_HOLD_S))
                absent = (
                    isinstance(problem, Unreachable)
                    and problem.nobody
                    and not self._has_answered
                )
                if pause is None or tries >= self.retries or absent:
                    raise
            await asyncio.sleep(min(pause, self.patience))
        raise AssertionError("a count that ends")

    async def _answer(self, request: Request) -> Reply:
        asked = time.monotonic()
        call = self.call(request)
        try:
            step = call.next(None)
            while not isinstance(step, Reply):
                came = await self._persist(*step)
                step = await aside(came.size, call.next, came.content)
            reply = step
            self._answered()
        except JudgeError:
            raise
        except Exception as problem:  # the run continues whatever an endpoint sends
            if isinstance(problem, Refused) and problem.is_filtered:
                self._answered()
            elif self._must_stop(problem):
                raise JudgeError(self._advice(problem)) from None
            elif self._doubt.grows(
                problem, request.text_id or request.key, self._works
            ):
                such = (
                    "no answer since then could be used"
                    if self._works
                    else "not one answer so far could be used"
                )
                self._hopeless = self._hopeless or JudgeError(
                    f"{self.identity}: {such}; the last: {self.error_text(problem)}. "
                    f"{way_out(problem)}"
                )
            reply = call.failed(problem)
        return replace(reply, seconds=time.monotonic() - asked)

    @property
    def _works(self) -> bool:
        """Whether an answer was good, in this run or before."""
        return self._has_answered or self.answered_before

    def _answered(self) -> None:
        """Note a good answer."""
        self._has_answered, self._last_answer_time = True, time.monotonic()
        self._doubt.forget()

    def _must_stop(self, problem: Exception) -> bool:
        """Whether to stop: all requests would fail, or none was answered in time."""
        if self._patience_left() < 0:
            return True
        works = self._works
        if isinstance(problem, Refused):
            # else perhaps about one text
            forbidden = problem.status == 403 and not works
            missing = problem.status in (404, 501)
            missing |= "unexpected endpoint" in problem.message.lower()
            missing &= not self._has_answered
            return (
                problem.is_permanent
                or forbidden
                or missing
                or problem.is_without_logprobs
            )
        if isinstance(problem, Unusable):
            return not works
        return isinstance(problem, Unreachable) and not self._has_answered

    def _advice(self, problem: Exception) -> str:
        said = self.error_text(problem)
        if self._has_answered and self._patience_left() < 0:
            return self._no_answer_message()
        if isinstance(problem, Unreachable | TimeoutError):
            return (
                f"no server answers at {self.base_url}, {said}: start the server, such "
                f"as {self.how_to_start}, or give a different address "
                f"({self.spec}:{self.model}@BASE_URL; http:// for a server without a "
                "certificate, and SSL_CERT_FILE for a certificate of your own)"
            )
        if isinstance(problem, Refused):
            if problem.status == 401:
                said += (
                    f"; the key is taken from {self.key_variable}"
                    if self.key_variable
                    else (
                        "; key_variable= names the environment variable that holds its "
                        "key"
                    )
                )
            if problem.status in (200, 404, 405) and not re.search(
                r"/v\d", self.base_url
            ):
                said += f"; most addresses end in /v1: {self.base_url}/v1"
            said += self.way_out_of(problem)
        return f"{self.identity} refused: {said}"

    def _no_answer_message(self) -> str:
        minutes = f"{(time.monotonic() - self._last_answer_time) / 60:.0f} min"
        last = f"; the last attempt: {self._last_trouble}" if self._last_trouble else ""
        return f"{self.identity} has not answered for {minutes}{last}"

    def error_text(self, problem: Exception) -> str:
        """Return an endpoint's error message on one harmless line, without the key."""
        return one_line(re.sub(r"\bsk-[\w*-]{6,}", "sk-…", self.redact(str(problem))))[
            :MAX_SAID_CHARS
        ]


def running_loop(name: str) -> asyncio.AbstractEventLoop:
    """Start an event loop in its own thread, as the caller's may be running."""
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, daemon=True, name=name).start()
    return loop


class Unusable(ValueError):
    """An unusable answer that every request would probably get."""


class Call:
    """One request under way: makes the bodies of its calls, and adds their tokens."""

    def __init__(self, judge: Any, request: Request) -> None:
        self.judge, self.request = judge, request
        # of all calls, under the names that a reply has
        self.tokens: Counter[str] = Counter()
        self.last: Json = {}  # what the endpoint sent
        self.model = ""  # the name under which it answered
        self._calls = self.answer()

    def next(self, response: Any) -> Any:
        """Take the response to the last call; return the next call, or the reply."""
        try:
            return self._calls.send(response)
        except StopIteration as done:
            return cast(Reply, done.value)

    def answer(self) -> Generator[Any, Any, Any]:
        """Yield path and body of each call that the readout takes; return the reply."""
        raise NotImplementedError

    def failed(self, problem: Exception) -> Reply:
        """Return a failed request's reply with what arrived: it may be paid for."""
        raw = problem.raw if isinstance(problem, Unreadable) else ""
        if self.last:
            raw = json.dumps(self.last, ensure_ascii=False)
        name = f"{type(problem).__name__}: " if not isinstance(problem, Refused) else ""
        said = f"{name}{self.judge.error_text(problem)}"
        if isinstance(problem, Refused) and problem.is_filtered:
            return self._reply(said, "refusal")
        return self._reply(raw[:_MAX_STORED_CHARS], "error", error=said)

    def _reply(
        self,
        text: str,
        finish: Finish,
        probabilities: Slots | None = None,
        error: str = "",
    ) -> Reply:
        number, text = self.request.request_id, self.judge.redact(text)
        told: Any = {"error": error or None, "model": self.model, **self.tokens}
        return Reply(number, text, finish, probabilities, **told)

    def _count_tokens(self, response: Json, read: str, written: str) -> None:
        """Add the tokens of a response, under the names that the endpoint has."""
        usage = part(response, "usage")
        cached = part(usage, f"{read}_details").get("cached_tokens")
        given = [*map(usage.get, (read, written, "total_tokens")), cached]
        known = [n if isinstance(n, int) and 0 <= n < 2**31 else 0 for n in given]
        prompt, answer, total, cached = known
        # All paid tokens: xAI and Google add thoughts to the total alone.
        self.tokens.update(
            prompt_tokens=prompt,
            cached_tokens=cached,
            completion_tokens=max(answer, total - prompt),
        )

    def _check_model(self, response: Json) -> None:
        """Keep the name of the model that answered; refuse another than was asked."""
        answered = response.get("model")
        if not answered:
            return
        self.model = one_line(self.judge.redact(str(answered)))[:MAX_SHOWN_CHARS]
        if self.judge.check_model and not same_model(self.judge.model, str(answered)):
            raise Unusable(
                f"asked for {self.judge.model!r}, but the model {str(answered)!r} "
                f"answered; {self.judge.other_model}"
            )


_LIMITS = {
    "concurrency": "a whole number, finite and 1 or more",
    "retries": "a whole number, finite and 0 or more",
    "patience": "a number, finite and 0 or more",
    "timeout": "a number, finite and above 0",
    "requests_per_minute": "a number, finite and above 0",
}


def slug(model: str) -> str:
    """Turn a model's name into one fit for a file."""
    name = model.rsplit("/", 1)[-1].lower()
    plain = re.sub(r"[^a-z0-9.]+", "-", name).strip("-.")
    return plain or f"model-{zlib.crc32(name.encode()):08x}"


def shown_part(value: Any) -> str:
    """Return the beginning of what an endpoint sent, for a message."""
    return str(value)[:MAX_SHOWN_CHARS]
