"""Judges behind an OpenAI-compatible endpoint: OpenAI, OpenRouter, vLLM, llama.cpp's server."""

from __future__ import annotations

import asyncio
import json
import math
import os
import random
import re
import threading
import time
from collections.abc import (
    Awaitable,
    Callable,
    Coroutine,
    Iterable,
    Iterator,
    Mapping,
)
from concurrent.futures import Future
from dataclasses import replace
from email.utils import mktime_tz, parsedate_tz
from ipaddress import ip_address
from itertools import count
from queue import Empty, SimpleQueue
from typing import Any, Literal, NamedTuple, TypeVar
from urllib.parse import urlsplit

from rubricnb.judging.contract import Finish, Readout, Reply, Request
from rubricnb.judging.label_probabilities import Step, label_probabilities, probabilities_at
from rubricnb.judging.prices import CHARACTERS_PER_TOKEN
from rubricnb.judging.readout import answer_text
from rubricnb.judging.thinking import most_tokens

Server = Literal["openai", "openrouter", "vllm", "llama.cpp", "other"]

_OPENAI = "https://api.openai.com/v1"
_HOSTED: dict[str, Server] = {"api.openai.com": "openai", "openrouter.ai": "openrouter"}
_KEYS = {"api.openai.com": "OPENAI_API_KEY", "openrouter.ai": "OPENROUTER_API_KEY"}
_CONTINUES = ("vllm", "llama.cpp")  # servers that go on from a given beginning of the answer
_LABEL_TOKENS = 4
_TOP = 20  # alternatives per token: as many as OpenAI and vLLM give
_SECRET = 8  # characters; what is shorter is a word that stands for no key, such as EMPTY

_T = TypeVar("_T")
Post = Callable[[str, dict[str, Any]], Awaitable[dict[str, Any]]]


class _Limits(NamedTuple):
    """How long one waits for an endpoint, in seconds, and how often a call is sent again."""

    timeout: float
    retries: int
    patience: float


class JudgeError(RuntimeError):
    """The judge cannot go on: a wrong key, an unknown model, no such readout, nobody there."""


class OpenAIJudge:
    """A judge behind an OpenAI-compatible endpoint.

    Nothing is sent before the first request. A failed call is sent again with growing pauses, or
    after as long as the endpoint asks for (``Retry-After``, up to `patience`); what fails for good
    is one reply with its error, and what would fail for every request, or an endpoint that has
    answered nothing for `patience`, stops the run with a `JudgeError`.

    Parameters
    ----------
    model
        The model's name at the endpoint.
    base_url
        The endpoint, ending in ``/v1``; default: OpenAI's.
    server
        What answers there: ``openai``, ``openrouter``, ``vllm``, ``llama.cpp`` or ``other``.
        Default: the endpoint is asked. ``vllm`` and ``llama.cpp`` can continue a given beginning of
        the answer, so for them ``logprobs`` needs one or two tokens; with the others the judge
        writes its feedback and the probabilities are read where the score stands in it.
    concurrency
        Requests in flight at once.
    requests_per_minute, tokens_per_minute
        Limits to keep, retries included; tokens sent and received.
    timeout
        Seconds within which a call must be answered to the last byte; then it is given up and sent
        again.
    retries
        How often a failed call is sent again.
    patience
        Seconds without any good answer after which the run stops, whatever is still under way.
    key_variable
        Name of the environment variable that holds the key. Default: ``OPENAI_API_KEY`` for OpenAI
        and for this machine, ``OPENROUTER_API_KEY`` for OpenRouter; any other host is sent a key
        only if this names one. The key itself is in no parameter and is written nowhere.
    check_model
        Whether an answer by another model than the one asked for is an error. False for a
        deployment that goes by another name than its model.
    extra
        More parameters for the body of every call, such as OpenRouter's ``{"provider": …}``; part
        of the judge's identity.

    Attributes
    ----------
    answered_before
        Whether answers of an earlier run show that this judge works. What it then refuses first is
        one request of many, and no reason to stop.

    Examples
    --------
    >>> judge = OpenAIJudge("qwen", "http://localhost:8000/v1", server="vllm")
    >>> judge.identity
    'http://localhost:8000/v1 qwen'
    >>> judge.close()
    """

    source: Literal["live"] = "live"
    readouts: tuple[Readout, ...] = ("feedback", "score", "logprobs", "json")

    def __init__(
        self,
        model: str,
        base_url: str | None = None,
        *,
        server: Server | None = None,
        concurrency: int = 16,
        requests_per_minute: float | None = None,
        tokens_per_minute: float | None = None,
        timeout: float = 600,
        retries: int = 6,
        patience: float = 1800,
        key_variable: str | None = None,
        check_model: bool = True,
        extra: dict[str, Any] | None = None,
    ) -> None:
        self.model = model
        self.base_url = (base_url or _OPENAI).rstrip("/")
        self.host = _host(self.base_url)
        self.slug = slug(model)
        self.extra = extra or {}
        more = f" {json.dumps(self.extra, sort_keys=True)}" if extra else ""
        self.identity = f"{self.base_url} {model}{more}"
        self.concurrency = concurrency
        self.check_model = check_model
        self.key_variable = key_variable or _KEYS.get(self.host or "api.openai.com")
        self._limits = _Limits(timeout, retries, patience)
        self._requests = _Pace(requests_per_minute)
        self._tokens = _Pace(tokens_per_minute)
        self._typical = 200.0  # tokens of an answer, as far as is known
        self._server = server or _HOSTED.get(self.host)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._client: Any = None
        self.answered_before = False
        self._heard = False  # whether there was ever a good answer
        self._quiet_since = self._looked = 0.0  # the last good answer, the last look for one
        self._last_trouble = ""

    @property
    def server(self) -> Server:
        """What answers at the endpoint."""
        if self._server is None:
            self._server = self._ask_server()
        return self._server

    @property
    def deterministic(self) -> bool:
        """Whether greedy answers repeat: a hosted endpoint's do not, a server of one's own's do."""
        return self.server in _CONTINUES

    @property
    def holds_lengths(self) -> bool:
        """Whether a ``json`` answer keeps to `maxLength`: hosts' strict schemas do not know it."""
        return self._server not in _HOSTED.values()

    def answer(self, requests: Iterable[Request]) -> Iterator[Reply]:
        """Answer requests, `concurrency` at a time, as answers come.

        When the judge cannot go on, what is under way is still waited for: it may be paid already.
        Nothing is waited for longer than `patience` after the last good answer.
        """
        source = iter(requests)
        replies: SimpleQueue[Reply | BaseException] = SimpleQueue()
        under_way: set[Future[None]] = set()
        trouble: BaseException | None = None
        waiting = 0
        self._quiet_since = self._looked = time.monotonic()
        try:
            while True:
                while trouble is None and waiting < self.concurrency:
                    request = next(source, None)
                    if request is None:
                        break
                    self._begin(request, replies, under_way)
                    waiting += 1
                if not waiting:
                    break
                reply = self._next(replies, trouble)
                waiting -= 1
                if isinstance(reply, Reply):
                    yield reply
                else:
                    trouble = trouble or reply
        finally:
            for call in list(under_way):
                call.cancel()
        if trouble is not None:
            raise trouble

    def first_call(self, request: Request) -> tuple[str, dict[str, Any]]:
        """Return path and body of the call that a request begins with: a line of a batch file.

        Examples
        --------
        >>> from rubricnb.judging.contract import Message
        >>> ask = Request(1, "", (Message("user", "…"),), ("[RESULT]",), ("1", "2"), "feedback")
        >>> path, body = OpenAIJudge("gpt-4.1").first_call(ask)
        >>> path, body["max_completion_tokens"]
        ('/chat/completions', 1024)
        """

        async def capture(path: str, body: dict[str, Any]) -> dict[str, Any]:
            raise _Captured(path, body)

        try:
            _at_once(_Call(self, request, capture).reply())
        except _Captured as captured:
            path, body = captured.args
            return path, body
        raise AssertionError("a request without a call")

    def read(self, request: Request, response: dict[str, Any]) -> Reply | None:
        """Read the response to `first_call`; None if the request takes a further call."""
        responses = [response]

        async def replay(path: str, body: dict[str, Any]) -> dict[str, Any]:
            if not responses:
                raise _Captured(path, body)
            return responses.pop()

        call = _Call(self, request, replay)
        try:
            return _at_once(call.reply())
        except _Captured:
            return None
        except Exception as problem:  # whatever an endpoint sends
            return call.failed(f"{type(problem).__name__}: {self._said(problem)}")

    def close(self) -> None:
        """Close the connections."""
        if self._loop is not None:
            asyncio.run_coroutine_threadsafe(self._client.close(), self._loop).result()
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._loop = None

    def _next(
        self, replies: SimpleQueue[Reply | BaseException], trouble: BaseException | None
    ) -> Reply | BaseException:
        """Wait for the next reply, as long as patience lasts."""
        now = time.monotonic()  # the time since the last reply was taken is nobody's silence
        self._quiet_since = min(now, self._quiet_since + now - self._looked)
        try:
            while True:
                left = self._quiet_since + self._limits.patience - time.monotonic()
                try:
                    return replies.get(timeout=max(left, 0.0))
                except Empty:
                    if time.monotonic() - self._quiet_since >= self._limits.patience:
                        raise trouble or JudgeError(self._silence()) from None
        finally:
            self._looked = time.monotonic()

    def _begin(
        self,
        request: Request,
        replies: SimpleQueue[Reply | BaseException],
        under_way: set[Future[None]],
    ) -> None:
        async def deliver() -> None:
            try:
                replies.put(await self._answer(request))
            except Exception as problem:
                replies.put(problem)

        loop = self._start()
        _ = self.server  # asked once, before the first request
        call = asyncio.run_coroutine_threadsafe(deliver(), loop)
        under_way.add(call)
        call.add_done_callback(under_way.discard)

    def _start(self) -> asyncio.AbstractEventLoop:
        if self._loop is None:
            from openai import AsyncOpenAI, DefaultAsyncHttpxClient, Timeout

            key = self._key()
            if not key and self.key_variable and self.host:
                raise ValueError(
                    f"no key for {self.base_url}: set the environment variable {self.key_variable}"
                )
            loop = asyncio.new_event_loop()
            self._client = AsyncOpenAI(
                base_url=self.base_url,
                api_key=key or "none",  # the client insists on one
                timeout=Timeout(None, connect=min(self._limits.timeout, 30)),
                max_retries=0,  # deadlines and pauses are kept by `_persist`
                # A proxy for the internet does not know this machine.
                http_client=DefaultAsyncHttpxClient(trust_env=bool(self.host)),
            )
            if self.key_variable != _KEYS["api.openai.com"]:  # OPENAI_* is not meant for them
                self._client.organization = self._client.project = None
                self._client._custom_headers = {}
            name = f"judge {self.slug}"
            threading.Thread(target=loop.run_forever, daemon=True, name=name).start()
            self._loop = loop
        return self._loop

    def _key(self) -> str | None:
        """The key, kept nowhere but in the client."""
        return os.environ.get(self.key_variable) if self.key_variable else None

    async def _persist(self, call: Callable[[], Awaitable[_T]], size: float = 0) -> _T:
        """Await a call, and call again after a failure that may pass; `size` in tokens."""
        for tries in count():
            await self._requests.take(1)
            await self._tokens.take(size + self._typical)
            try:
                return await self._in_time(call())
            except Exception as problem:
                self._last_trouble = self._said(problem)
                pause = _pause(problem, tries)
                if pause is None or tries >= self._limits.retries:
                    raise
            await asyncio.sleep(min(pause, self._limits.patience))
        raise AssertionError("a count that ends")

    async def _in_time(self, call: Awaitable[_T]) -> _T:
        """Await one try; a limit on every read alone would let an endless trickle go on."""
        seconds = self._limits.timeout
        try:
            async with asyncio.timeout(seconds) as deadline:
                return await call
        except TimeoutError:
            if not deadline.expired():
                raise
            raise TimeoutError(f"no whole answer within {seconds:g} s") from None

    def _ask_server(self) -> Server:
        from openai import APIConnectionError, APIError, APIStatusError

        async def owners() -> set[str]:
            models = await self._client.models.list()
            return {str(getattr(m, "owned_by", "")).lower() for m in models.data}

        asking = asyncio.run_coroutine_threadsafe(self._persist(owners), self._start())
        try:
            owned_by = asking.result(self._limits.patience)
        except (APIConnectionError, TimeoutError) as problem:
            asking.cancel()
            raise JudgeError(self._advice(problem)) from None
        except (APIError, ValueError, TypeError, AttributeError) as problem:
            if isinstance(problem, APIStatusError) and problem.status_code not in _NO_LIST:
                raise JudgeError(
                    f"{self.base_url} does not say what it is: {self._said(problem)}; try again "
                    "when it does, or name what answers there by server="
                ) from None
            return "other"  # no list of models: the smallest common ground
        if "llamacpp" in owned_by:
            return "llama.cpp"
        return "vllm" if "vllm" in owned_by else "other"

    async def _answer(self, request: Request) -> Reply:
        asked = time.monotonic()
        call = _Call(self, request, self._post)
        try:
            reply = await call.reply()
            reply = replace(reply, text=self._hide(reply.text))
            self._heard, self._quiet_since = True, time.monotonic()
        except JudgeError:
            raise
        except Exception as problem:  # whatever an endpoint sends, the run goes on
            if self._stops(problem):
                raise JudgeError(self._advice(problem)) from None
            reply = call.failed(f"{type(problem).__name__}: {self._said(problem)}")
        return replace(reply, seconds=time.monotonic() - asked)

    async def _post(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        async def send() -> Any:
            response = await self._client.post(path, cast_to=object, body=body)
            error = _part(response, "error")
            if _passes(error.get("code")) and not response.get("choices"):
                raise _Passing(self._shown(error))
            return response

        size = len(json.dumps(body)) / CHARACTERS_PER_TOKEN if self._tokens.seconds else 0.0
        response = await self._persist(send, size)
        if not isinstance(response, dict):
            raise ValueError(f"the endpoint sent no JSON object: {self._shown(response)}")
        unexpected = _written(_part(response, "usage")) - self._typical
        self._tokens.owe(unexpected)
        self._typical += unexpected / 10
        return response

    def _stops(self, problem: Exception) -> bool:
        """Whether asking on is useless: every request would fail, or nobody has answered long."""
        from openai import APIConnectionError, APIStatusError, APITimeoutError

        if time.monotonic() - self._quiet_since > self._limits.patience:
            return True
        works = self._heard or self.answered_before
        if isinstance(problem, APIStatusError):
            if problem.status_code in (401, 402) or (problem.code or "") in _HOPELESS:
                return True
            forbidden = problem.status_code == 403 and not works  # else perhaps one text's content
            return forbidden or (problem.status_code == 404 and not self._heard)
        if isinstance(problem, _Unusable):
            return not works
        unreachable = isinstance(problem, APIConnectionError)
        return unreachable and not isinstance(problem, APITimeoutError) and not self._heard

    def _advice(self, problem: Exception) -> str:
        from openai import APIConnectionError, APIStatusError

        said = self._said(problem)
        if self._heard and time.monotonic() - self._quiet_since > self._limits.patience:
            return self._silence()
        if isinstance(problem, APIConnectionError | TimeoutError):
            return (
                f"nobody answers at {self.base_url}: start the server, or give another address "
                f"(openai:{self.model}@BASE_URL)"
            )
        if isinstance(problem, APIStatusError):
            if problem.status_code == 401:
                said += (
                    f"; the key is taken from {self.key_variable}"
                    if self.key_variable
                    else "; key_variable= names the environment variable that holds its key"
                )
            if (problem.param or "") == "temperature":
                said += "; plan with temperature=1.0, the only one this model has"
            if (problem.param or "") == "max_tokens":
                said += '; open the judge with server="openai", if OpenAI\'s own stands behind it'
        return f"{self.identity} refused: {said}"

    def _silence(self) -> str:
        minutes = f"{(time.monotonic() - self._quiet_since) / 60:.0f} min"
        last = f"; the last try: {self._last_trouble}" if self._last_trouble else ""
        return f"{self.identity} has not answered for {minutes}{last}"

    def _said(self, problem: Exception) -> str:
        """What an endpoint complains of; it may repeat a part of the key."""
        return re.sub(r"\bsk-[\w*-]{6,}", "sk-…", self._hide(str(problem)))[:500]

    def _shown(self, sent: Any) -> str:
        """Return the beginning of what an endpoint sent, and no part of the key with it."""
        return self._hide(str(sent))[:200]

    def _hide(self, text: str) -> str:
        """Take out the key wherever an endpoint repeats it."""
        known = (os.environ.get(name) for name in _KEYS.values())
        for key in (self._key(), *known):
            if key and len(key) >= _SECRET:
                text = text.replace(key, "…")
        return text


class _Unusable(ValueError):
    """An answer that this endpoint will probably give to every request."""


class _Passing(ValueError):
    """A failure that may be gone when the call is sent again, though its status is 200."""


class _Captured(Exception):
    """A call that is not sent: its path and body."""


class _Call:
    """One request on its way: builds the bodies and sums up the tokens of all calls it takes."""

    def __init__(self, judge: OpenAIJudge, request: Request, post: Post) -> None:
        self.judge, self.request, self.post = judge, request, post
        self.prompt_tokens = self.cached_tokens = self.completion_tokens = 0

    async def reply(self) -> Reply:
        probabilities = None
        match self.request.readout:
            case "feedback":
                text, finish, _ = await self._send("", max_tokens=self._max_tokens())
            case "score":
                text, finish = await self._score()
            case "json":
                text, finish = await self._document()
            case "logprobs":
                text, finish, probabilities = await self._label_probabilities()
        return self._reply(text, finish, probabilities)

    def failed(self, error: str) -> Reply:
        return self._reply("", "error", None, error)

    def _reply(
        self,
        text: str,
        finish: Finish,
        probabilities: tuple[tuple[float, ...], ...] | None,
        error: str | None = None,
    ) -> Reply:
        return Reply(
            self.request.request_id,
            text,
            finish,
            probabilities,
            self.prompt_tokens,
            self.cached_tokens,
            self.completion_tokens,
            error=error,
        )

    async def _score(self) -> tuple[str, Finish]:
        if self.judge.server not in _CONTINUES:
            return await self._structured()
        text = ""
        for slot in self.request.slots:
            text += slot
            label, finish, _ = await self._send(
                text, constraint=[f" {c}" for c in self.request.choices], max_tokens=16
            )
            if finish != "stop":
                return text, finish
            text += " " + label.strip()
        return text, "stop"

    async def _document(self) -> tuple[str, Finish]:
        schema = json.loads(self.request.schema)
        if not self.judge.holds_lengths:
            schema = _strict(schema)
        text, finish, _ = await self._send(
            "", max_tokens=self._max_tokens(), response_format=_conforming("answer", schema)
        )
        return text, finish

    async def _structured(self) -> tuple[str, Finish]:
        names = [slot.strip().strip("[]") for slot in self.request.slots]
        choices = self.request.choices
        schema = {
            "type": "object",
            "properties": {n: {"type": "string", "enum": list(choices)} for n in names},
            "required": names,
            "additionalProperties": False,
        }
        text, finish, _ = await self._send(
            "", max_tokens=self._max_tokens(64), response_format=_conforming("scores", schema)
        )
        if finish != "stop":
            return text, finish
        try:
            answer = json.loads(text)
            chosen = [choices.index(answer[n]) + 1 for n in names]
        except (ValueError, KeyError, TypeError):
            said = self.judge._shown(text)
            raise ValueError(f"the endpoint did not keep to the schema: {said!r}") from None
        return answer_text(self.request, chosen), "stop"

    async def _label_probabilities(
        self,
    ) -> tuple[str, Finish, tuple[tuple[float, ...], ...] | None]:
        server = self.judge.server
        if server not in _CONTINUES:
            return await self._label_in_feedback()
        filled: list[int] = []
        slots: list[tuple[float, ...]] = []
        targets = [f" {c}" for c in self.request.choices]
        text = ""
        for slot in self.request.slots:
            text += slot
            top = 64 if server == "llama.cpp" else _TOP
            probabilities = await self._at_slot(text, targets, top)
            if 0 in probabilities and server == "llama.cpp":  # a label below the first 64 tokens
                probabilities = await self._at_slot(text, targets, 8192)
            slots.append(probabilities)
            best = max(range(len(targets)), key=probabilities.__getitem__)
            filled.append(best + 1)
            text += targets[best]
        return answer_text(self.request, filled), "stop", tuple(slots)

    async def _at_slot(self, text: str, targets: list[str], top: int) -> tuple[float, ...]:
        async def ask(prefix: str, rest: list[str]) -> list[Step]:
            _, _, steps = await self._send(
                text + prefix, constraint=rest, max_tokens=_LABEL_TOKENS, top_logprobs=top
            )
            return steps

        return await label_probabilities(ask, targets)

    async def _label_in_feedback(
        self,
    ) -> tuple[str, Finish, tuple[tuple[float, ...], ...] | None]:
        plain = self.request.prompt_format == "plain"
        text, finish, steps = await self._send(
            "", max_tokens=self._max_tokens(), top_logprobs=5 if plain else _TOP
        )
        if finish == "stop" and not steps:
            raise _Unusable(
                "it gave no log-probabilities: choose readout 'score' or 'feedback', or a model "
                "that has them"
            )
        slots = tuple(
            probabilities_at(steps, slot.strip(), self.request.choices)
            for slot in self.request.slots
        )
        if all(sum(p) == 0 for p in slots):
            return text, finish, None  # no score was written: the text says why
        return text, finish, slots

    def _max_tokens(self, *answer: int) -> int:
        return most_tokens(self.request, self.judge.slug, *answer)

    async def _send(
        self,
        prefill: str,
        *,
        max_tokens: int,
        constraint: list[str] | None = None,
        top_logprobs: int = 0,
        **body: Any,
    ) -> tuple[str, Finish, list[Step]]:
        request, server = self.request, self.judge.server
        messages = [{"role": m.role, "content": m.content} for m in request.messages]
        body |= {"model": self.judge.model, "temperature": request.temperature}
        if request.temperature > 0:
            body["seed"] = request.seed
        if constraint is not None:
            body |= _constrained(server, constraint)
        body |= _reasoning(server, request) | _ROUTING.get(server, {})
        if request.prompt_format == "plain":
            path = "/completions"
            prompt = "\n\n".join(m["content"] for m in messages)
            if prefill:
                prompt += "\n" + prefill if not prefill.startswith("\n") else prefill
            body |= {"prompt": prompt, "max_tokens": max_tokens}
            if top_logprobs:
                body["logprobs"] = top_logprobs
        else:
            path = "/chat/completions"
            if prefill:
                messages.append({"role": "assistant", "content": prefill})
                if server == "vllm":
                    body |= {"continue_final_message": True, "add_generation_prompt": False}
            body["messages"] = messages
            body["max_completion_tokens" if server == "openai" else "max_tokens"] = max_tokens
            if top_logprobs:
                body |= {"logprobs": True, "top_logprobs": top_logprobs}
        extra = self.judge.extra
        if "provider" in body and "provider" in extra:  # OpenRouter's: the one adds to the other
            extra = extra | {"provider": body["provider"] | extra["provider"]}
        response = await self.post(path, body | extra)
        return self._received(response, prefill)

    def _received(self, response: dict[str, Any], prefill: str) -> tuple[str, Finish, list[Step]]:
        usage = _part(response, "usage")
        self.prompt_tokens += _count(usage, "prompt_tokens")
        self.completion_tokens += _written(usage)
        self.cached_tokens += _count(_part(usage, "prompt_tokens_details"), "cached_tokens")
        choices = response.get("choices")
        if not isinstance(choices, list) or len(choices) != 1:
            number = len(choices) if isinstance(choices, list) else "no"
            raise ValueError(
                f"the endpoint sent {number} choices instead of one: {self.judge._shown(response)}"
            )
        self._check_model(response)
        message = _part(choices[0], "message")
        if isinstance(message.get("refusal"), str) and message["refusal"]:
            return message["refusal"], "refusal", []
        ended, problem = choices[0].get("finish_reason"), choices[0].get("error")
        if problem or ended in _BROKEN_OFF:  # under status 200; a part of the answer may be there
            raise ValueError(f"the answer broke off: {self.judge._shown(problem or ended)}")
        finish = _FINISH.get(ended, "stop")
        text = (message or choices[0]).get("content" if message else "text") or ""
        if not isinstance(text, str):
            raise ValueError(f"the endpoint sent no text but {self.judge._shown(text)}")
        if not text and finish == "stop" and not self.judge.deterministic:
            raise ValueError("the endpoint sent an empty answer")  # asked again, it may not
        if prefill and text.startswith(prefill):
            text = text[len(prefill) :]  # llama.cpp repeats the given beginning
        return text, finish, _steps(choices[0].get("logprobs"))

    def _check_model(self, response: dict[str, Any]) -> None:
        """An alias may answer under its dated name, but not as another model."""
        answered = response.get("model")
        if not answered or not self.judge.check_model or self.judge.server == "llama.cpp":
            return  # llama.cpp serves one model under any name
        asked, given = (str(m).rsplit("/", 1)[-1].split(":")[0].lower()
                        for m in (self.judge.model, answered))  # fmt: skip
        if not re.fullmatch(re.escape(asked) + r"([-@]v?\d.*)?", given):
            raise _Unusable(
                f"asked for {self.judge.model!r}, the model {str(answered)!r} answered; pass "
                "check_model=False if that is right"
            )


def slug(model: str) -> str:
    """Turn a model's name into one fit for a file.

    Examples
    --------
    >>> slug("google/gemma-3-27b-it")
    'gemma-3-27b-it'
    """
    return re.sub(r"[^a-z0-9.]+", "-", model.rsplit("/", 1)[-1].lower()).strip("-.")


_FINISH: dict[str | None, Finish] = {"length": "length", "content_filter": "refusal"}
_BROKEN_OFF = ("error", "abort")  # what OpenRouter and vLLM call an end that is none
_HOPELESS = (  # error codes
    "insufficient_quota", "billing_hard_limit_reached", "billing_not_active",
    "unsupported_value", "unsupported_parameter",
)  # fmt: skip
_PASSING = (408, 409, 429)  # statuses that may be gone when a call is sent again; and from 500 on
_NO_LIST = (401, 403, 404, 405, 501)  # statuses of an endpoint that shows nobody its models
_PAUSES = (0.5, 8.0)  # seconds before a call is sent again: the first pause, and the longest
_STRICT = frozenset({  # without minLength and maxLength
    "type", "enum", "const", "required", "additionalProperties", "description", "title", "$ref",
    "pattern", "format", "multipleOf", "minimum", "maximum", "exclusiveMinimum",
    "exclusiveMaximum", "minItems", "maxItems",
})  # fmt: skip
# OpenRouter would drop what a provider does not have; this asks for one that has it all.
_ROUTING: dict[Server, dict[str, Any]] = {
    "openrouter": {"provider": {"require_parameters": True}},
    "llama.cpp": {"cache_prompt": True},
}


def _reasoning(server: Server, request: Request) -> dict[str, Any]:
    """How long to think, in each server's own words."""
    body: dict[str, Any] = {}
    if server == "openrouter":
        if request.thinking != "default":
            body["enabled"] = request.thinking == "on"
        if request.effort != "default":
            body["effort"] = request.effort
        return {"reasoning": body} if body else {}
    if request.effort != "default":
        body["reasoning_effort"] = request.effort
    if request.thinking != "default":
        if server not in _CONTINUES:
            raise JudgeError(
                f"thinking={request.thinking!r} cannot be asked of this endpoint: plan with "
                "thinking='default' and an effort, or name its switch in extra="
            )
        body["chat_template_kwargs"] = {"enable_thinking": request.thinking == "on"}
    return body


def _constrained(server: Server, choices: list[str]) -> dict[str, Any]:
    if server == "vllm":
        return {"structured_outputs": {"choice": choices}}
    quoted = " | ".join(json.dumps(c) for c in choices)
    return {"grammar": f"root ::= {quoted}"}


def _conforming(name: str, schema: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "json_schema",
        "json_schema": {"name": name, "strict": True, "schema": schema},
    }


def _strict(schema: dict[str, Any]) -> dict[str, Any]:
    """Keep of a schema what OpenAI's strict mode knows: with more it refuses the request.

    Whoever reads the answer checks it against all of the schema, save for lengths, which the
    prompt states. The list is that of
    https://platform.openai.com/docs/guides/structured-outputs#supported-schemas
    """
    kept: dict[str, Any] = {}
    for keyword, value in schema.items():
        if keyword in ("properties", "$defs"):
            kept[keyword] = {name: _strict(part) for name, part in value.items()}
        elif keyword == "anyOf":
            kept[keyword] = [_strict(part) for part in value]
        elif keyword == "items":
            kept[keyword] = _strict(value)
        elif keyword in _STRICT:
            kept[keyword] = value
    return kept


def _steps(logprobs: Any) -> list[Step]:
    if not isinstance(logprobs, dict):
        return []
    if logprobs.get("content") is not None:  # chat style; llama.cpp uses it for completions too
        return [Step(t["token"], _chances(t.get("top_logprobs", []))) for t in logprobs["content"]]
    return [
        Step(token, {t: math.exp(p) for t, p in top.items()})
        for token, top in zip(
            logprobs.get("tokens") or [], logprobs.get("top_logprobs") or [], strict=False
        )
    ]


def _chances(alternatives: list[dict[str, Any]]) -> dict[str, float]:
    """Probability by text; a token that is part of a character is shown as another one's text."""
    chances: dict[str, float] = {}
    for one in alternatives:
        text, spelt = one["token"], one.get("bytes")
        if spelt is None or bytes(spelt) == text.encode():
            chances[text] = chances.get(text, 0.0) + math.exp(one["logprob"])
    return chances


def _pause(problem: Exception, tries: int) -> float | None:
    """Seconds until a failed call may be sent again; None: it would fail again."""
    from openai import APIConnectionError, APIStatusError

    first, longest = _PAUSES
    growing = min(first * 2.0 ** min(tries, 10), longest) * random.uniform(0.75, 1)
    if isinstance(problem, APIStatusError):
        headers = problem.response.headers
        passing = _passes(problem.status_code)
        # OpenRouter's 402 says when where it is not credit that lacks, but an answer under way.
        passing |= problem.status_code == 402 and _retry_after(headers) is not None
        passing = {"true": True, "false": False}.get(headers.get("x-should-retry", ""), passing)
        if not passing or problem.code in _HOPELESS:
            return None
        return _retry_after(headers) or growing
    return growing if isinstance(problem, APIConnectionError | TimeoutError | _Passing) else None


def _passes(status: Any) -> bool:
    return isinstance(status, int) and (status in _PASSING or status >= 500)


def _retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds for which an endpoint asks to be left alone: a number, or a date."""
    for name, unit in (("retry-after-ms", 1000), ("retry-after", 1)):
        value = headers.get(name, "")
        try:
            seconds = float(value) / unit
        except ValueError:
            parsed = parsedate_tz(value)
            seconds = mktime_tz(parsed) - time.time() if parsed else 0.0
        if seconds > 0:  # not for NaN
            return seconds
    return None


def _part(holder: Any, name: str) -> dict[str, Any]:
    part = holder.get(name) if isinstance(holder, dict) else None
    return part if isinstance(part, dict) else {}


def _count(usage: dict[str, Any], name: str) -> int:
    count = usage.get(name)
    return count if isinstance(count, int) and 0 <= count < 2**31 else 0


def _written(usage: dict[str, Any]) -> int:
    """Tokens of an answer, all that are paid: xAI and Google count thoughts in the total only."""
    beside = _count(usage, "total_tokens") - _count(usage, "prompt_tokens")
    return max(_count(usage, "completion_tokens"), beside)


class _Pace:
    """Spaces units out evenly, so that no minute has more of them than allowed."""

    def __init__(self, per_minute: float | None) -> None:
        self.seconds = 60 / per_minute if per_minute else 0.0
        self.free_at = 0.0

    async def take(self, units: float) -> None:
        if self.seconds:
            wait = max(0.0, self.free_at - time.monotonic())
            self.owe(units)
            await asyncio.sleep(wait)

    def owe(self, units: float) -> None:
        self.free_at = max(self.free_at, time.monotonic()) + units * self.seconds


def _at_once(steps: Coroutine[Any, Any, Reply]) -> Reply:
    """Run what waits for nobody; where a notebook has a running loop, asyncio.run could not."""
    try:
        steps.send(None)
    except StopIteration as done:
        reply: Reply = done.value
        return reply
    raise AssertionError("a call that waits")


def _host(base_url: str) -> str:
    """The host of an endpoint; empty for this machine."""
    address = urlsplit(base_url)
    if address.username or address.password or address.query:
        raise ValueError(
            "an endpoint's address holds no key or password: it would be written into results; "
            "put it into an environment variable and name that by key_variable="
        )
    host = address.hostname or ""
    if host == "localhost":
        return ""
    try:
        return "" if ip_address(host).is_loopback else host
    except ValueError:
        return host
