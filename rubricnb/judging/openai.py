"""Judges behind an OpenAI-compatible endpoint: OpenAI, OpenRouter, vLLM, llama.cpp's server."""

from __future__ import annotations

import asyncio
import json
import math
import os
import re
import threading
import time
import zlib
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import replace
from itertools import count, islice
from typing import Any, Literal, NamedTuple, cast
from urllib.parse import urlsplit

from rubricnb.judging.address import KEYS, OPENAI, checked, headers_for
from rubricnb.judging.connection import (
    Answer,
    Connection,
    Doubt,
    Pace,
    Refused,
    Unreachable,
    Unreadable,
    aside,
    pause_after,
    retry_after,
    text_of,
    way_out,
)
from rubricnb.judging.contract import Finish, Readout, Reply, Request
from rubricnb.judging.label_probabilities import Step, label_probabilities, probabilities_at
from rubricnb.judging.readout import answer_text, plain_prompt, written_labels
from rubricnb.judging.redact import redact
from rubricnb.judging.same_model import same_model
from rubricnb.judging.thinking import most_tokens
from rubricnb.shown import one_line

_Slots = tuple[tuple[float, ...], ...]  # of each slot, the probability of each label
_Calls = Generator[tuple[str, dict[str, Any]], dict[str, Any], Any]  # path, body → response
Server = Literal["openai", "openrouter", "vllm", "llama.cpp", "other"]

_LABEL_TOKENS = 4
_TOP = 20  # alternatives per token: as many as OpenAI and vLLM give
# Characters of an answer that cannot be read: as it is kept, shown in a message, of the message.
_MAX_STORED_CHARS, _MAX_SHOWN_CHARS, _SAID = 100_000, 200, 500
_LONGEST_HOLD_S = 20  # of all calls; a longer pause may be meant for one of them


class _Dialect(NamedTuple):
    """The vocabulary and the abilities of one kind of server."""

    continues: bool = False  # goes on from a given beginning of the answer, and is deterministic
    max_tokens: str = "max_tokens"
    tops: tuple[int, ...] = (_TOP,)  # alternatives per token; the next where a label has none
    every: Mapping[str, Any] = {}  # in the body of every call
    continuing: Mapping[str, Any] = {}  # and where the answer is begun
    choice: Callable[[list[str]], dict[str, Any]] = lambda labels: {}


_DIALECTS: dict[Server, _Dialect] = {
    "openai": _Dialect(max_tokens="max_completion_tokens"),
    # OpenRouter drops unsupported parameters; this asks for a provider that supports all.
    "openrouter": _Dialect(every={"provider": {"require_parameters": True}}),
    "vllm": _Dialect(
        continues=True,
        continuing={"continue_final_message": True, "add_generation_prompt": False},
        choice=lambda labels: {"structured_outputs": {"choice": labels}},
    ),
    "llama.cpp": _Dialect(
        continues=True,
        tops=(64, 8192),
        every={"cache_prompt": True},
        choice=lambda labels: {"grammar": f"root ::= {' | '.join(map(json.dumps, labels))}"},
    ),
    "other": _Dialect(),
}
_HOSTED: dict[str, Server] = {OPENAI: "openai", "openrouter.ai": "openrouter"}


class JudgeError(RuntimeError):
    """The judge cannot continue: wrong key, unknown model, missing readout, or no server."""


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
        The endpoint, ``https://HOST/v1`` or ``http://HOST:PORT/v1``; default: OpenAI's. Calls go
        there and nowhere else: a redirect stops the run.
    server
        What answers there: ``openai``, ``openrouter``, ``vllm``, ``llama.cpp`` or ``other``.
        Default: the endpoint is asked. ``vllm`` and ``llama.cpp`` can continue a given beginning of
        the answer, so for them ``logprobs`` needs one or two tokens; with the others the judge
        writes its feedback and the probabilities are read at the score.
    concurrency
        Requests in flight at once.
    requests_per_minute
        Limit to keep, retries included. Without it, calls pause when the endpoint asks for it
        (429 with ``Retry-After``).
    timeout
        Seconds within which a call must be answered to the last byte; then it is given up and sent
        again.
    retries
        How often a failed call is sent again.
    patience
        Seconds without any good answer after which the run stops, whatever is still under way.
    key_variable
        Name of the environment variable that holds the key. Default: ``OPENAI_API_KEY`` for OpenAI,
        ``OPENROUTER_API_KEY`` for OpenRouter; any other host, this machine included, is sent a key
        only if this names one. The key itself is in no parameter and is written nowhere.
    check_model
        Whether an answer by another model than the one asked for is an error. False for a
        deployment that goes by another name than its model.
    extra
        More parameters for the body of every call, such as OpenRouter's ``{"provider": …}``; part
        of the judge's identity.

    Raises
    ------
    ValueError
        The address is invalid, or holds a key, a password or parameters. Or a number is none, is
        not finite, or is too small.

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
        timeout: float = 600,
        retries: int = 6,
        patience: float = 1800,
        key_variable: str | None = None,
        check_model: bool = True,
        extra: dict[str, Any] | None = None,
    ) -> None:
        _check_numbers(
            concurrency=concurrency, timeout=timeout, retries=retries, patience=patience,
            **{} if requests_per_minute is None else {"requests_per_minute": requests_per_minute},
        )  # fmt: skip
        self.model = model
        self.base_url, self.host = checked(base_url or f"https://{OPENAI}/v1")
        self.slug = slug(model)
        self.extra = extra or {}
        more = f" {json.dumps(extra, sort_keys=True)}" if extra else ""
        self.identity = f"{self.base_url} {model}{more}"
        self.concurrency = concurrency
        self.check_model = check_model
        self.key_variable = key_variable or KEYS.get(self.host)
        self.timeout, self.retries, self.patience = timeout, retries, patience
        self._pace = Pace(requests_per_minute)
        self._server = server or _HOSTED.get(self.host)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._connection: Connection  # from the first call on
        self.answered_before = False
        self._has_answered = False  # whether any call got a good answer
        self._last_answer_time = 0.0  # of the last good answer
        self._doubt = Doubt(concurrency)
        self._hopeless: JudgeError | None = None  # once there is no doubt that all would fail
        self._last_trouble = ""

    @property
    def server(self) -> Server:
        """The kind of server at the endpoint."""
        if self._server is None:
            self._server = self._ask_server()
        return self._server

    @property
    def dialect(self) -> _Dialect:
        """The vocabulary of that server."""
        return _DIALECTS[self.server]

    @property
    def deterministic(self) -> bool:
        """Whether greedy answers repeat: a hosted endpoint's do not, your own server's do."""
        return self.dialect.continues

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
                    _ = self.server  # asked once, before the first request
                    under_way.add(asyncio.run_coroutine_threadsafe(self._answer(request), loop))
                if not under_way:
                    break
                done = self._finished(under_way)
                if not done:
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
        step = _Call(self, request).next(None)
        assert not isinstance(step, Reply)
        return step

    def read(self, request: Request, response: dict[str, Any]) -> Reply | None:
        """Read the response to `first_call`; None if the request takes a further call."""
        call = _Call(self, request)
        call.next(None)
        try:
            step = call.next(response)
        except Exception as problem:  # whatever an endpoint sends
            return call.failed(problem)
        return step if isinstance(step, Reply) else None

    def redact(self, text: str) -> str:
        """Remove the key wherever an endpoint repeats it."""
        return redact(text, self._key())

    def close(self) -> None:
        """Close the connections."""
        if self._loop is not None:
            asyncio.run_coroutine_threadsafe(self._connection.aclose(), self._loop).result()
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._loop = None

    def _finished(self, calls: set[Future[Reply]]) -> set[Future[Reply]]:
        """Wait for some calls to finish; return none after too long without a good answer."""
        while True:
            done = wait(calls, max(self._patience_left(), 0.0), FIRST_COMPLETED).done
            if done or self._patience_left() <= 0:
                return done

    def _patience_left(self) -> float:
        return self._last_answer_time + self.patience - time.monotonic()

    def _start(self) -> asyncio.AbstractEventLoop:
        if self._loop is None:
            key = self._key()
            if not key and self.key_variable:
                raise ValueError(
                    f"no key for {self.base_url}: set the environment variable {self.key_variable}"
                )
            loop = asyncio.new_event_loop()
            self._connection = Connection(
                self.base_url,
                headers_for(self.host, key),
                redact=self.redact,
                timeout=self.timeout,
                proxies=bool(self.host),  # bypass the proxy for localhost
            )
            name = f"judge {self.slug}"
            threading.Thread(target=loop.run_forever, daemon=True, name=name).start()
            self._loop = loop
        return self._loop

    def _key(self) -> str | None:
        """Return the key, which is kept only in the connection."""
        return os.environ.get(self.key_variable, "").strip() if self.key_variable else None

    async def _persist(self, path: str, body: dict[str, Any] | None = None) -> Answer:
        """Send a call; retry after a temporary failure."""
        for tries in count():
            await self._pace.take()
            try:
                return await self._connection.ask(path, body)
            except Exception as problem:
                self._last_trouble = self._error_text(problem)
                pause = pause_after(problem, tries)
                if isinstance(problem, Refused) and problem.status == 429:
                    self._pace.hold(min(retry_after(problem.headers), _LONGEST_HOLD_S))
                absent = (
                    isinstance(problem, Unreachable) and problem.nobody and not self._has_answered
                )
                if pause is None or tries >= self.retries or absent:
                    raise
            await asyncio.sleep(min(pause, self.patience))
        raise AssertionError("a count that ends")

    def _ask_server(self) -> Server:
        """Ask the endpoint who owns its models; "other" if it lists none."""
        asking = asyncio.run_coroutine_threadsafe(self._persist("/models"), self._start())
        try:
            listed = asking.result(self.patience).content
            owned_by = {str(model.get("owned_by", "")).lower() for model in listed["data"]}
        except (Unreachable, TimeoutError, Refused) as problem:
            asking.cancel()
            if isinstance(problem, Refused) and problem.status in _NO_LIST:
                return "other"
            raise JudgeError(self._advice(problem)) from None
        except (ValueError, TypeError, AttributeError, KeyError):
            return "other"
        if "llamacpp" in owned_by:
            return "llama.cpp"
        return "vllm" if "vllm" in owned_by else "other"

    async def _answer(self, request: Request) -> Reply:
        asked = time.monotonic()
        call = _Call(self, request)
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
            elif self._doubt.grows(problem, request.text_id or request.key, self._works):
                self._hopeless = self._hopeless or JudgeError(self._hopeless_message(problem))
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
        """Whether to stop: every request would fail, or none was answered for too long."""
        if self._patience_left() < 0:
            return True
        works = self._works
        if isinstance(problem, Refused):
            forbidden = problem.status == 403 and not works  # else perhaps about one text
            missing = problem.status == 404 or "unexpected endpoint" in problem.message.lower()
            missing &= not self._has_answered
            return problem.is_permanent or forbidden or missing or problem.is_without_logprobs
        if isinstance(problem, _Unusable):
            return not works
        return isinstance(problem, Unreachable) and not self._has_answered

    def _advice(self, problem: Exception) -> str:
        said = self._error_text(problem)
        if self._has_answered and self._patience_left() < 0:
            return self._no_answer_message()
        if isinstance(problem, Unreachable | TimeoutError):
            port = urlsplit(self.base_url).port or 80
            return (
                f"no server answers at {self.base_url}, {said}: start the server, such as "
                f"'llama-server -m WEIGHTS.gguf --port {port}' or "
                f"'vllm serve {self.model} --port {port}', or give a different address "
                f"(openai:{self.model}@BASE_URL; http:// for a server without a certificate, and "
                "SSL_CERT_FILE for a certificate of your own)"
            )
        if isinstance(problem, Refused):
            if problem.status == 401:
                said += (
                    f"; the key is taken from {self.key_variable}"
                    if self.key_variable
                    else "; key_variable= names the environment variable that holds its key"
                )
            if problem.status in (200, 404, 405) and not re.search(r"/v\d", self.base_url):
                said += f"; most addresses end in /v1: {self.base_url}/v1"
            if problem.is_without_logprobs:
                said += f"; {_OTHER_READOUTS}"
            said += _WAYS_OUT.get(problem.param, "")
        return f"{self.identity} refused: {said}"

    def _hopeless_message(self, problem: Exception) -> str:
        such = (
            "no answer since then could be used"
            if self._works
            else "not one answer so far could be used"
        )
        said = self._error_text(problem)
        return f"{self.identity}: {such}; the last: {said}. {way_out(problem)}"

    def _no_answer_message(self) -> str:
        minutes = f"{(time.monotonic() - self._last_answer_time) / 60:.0f} min"
        last = f"; the last attempt: {self._last_trouble}" if self._last_trouble else ""
        return f"{self.identity} has not answered for {minutes}{last}"

    def _error_text(self, problem: Exception) -> str:
        """Return an endpoint's error message without the key, on one line that does nothing."""
        return one_line(re.sub(r"\bsk-[\w*-]{6,}", "sk-…", self.redact(str(problem))))[:_SAID]


class _Unusable(ValueError):
    """An unusable answer that every request would probably get."""


class _Call:
    """One request under way: builds the bodies of its calls, and sums up their tokens."""

    def __init__(self, judge: OpenAIJudge, request: Request) -> None:
        self.judge, self.request = judge, request
        self.tokens: Counter[str] = Counter()  # of all calls, under the names that a reply has
        self.last: dict[str, Any] = {}  # what the endpoint sent
        self.model = ""  # the name under which it answered
        self._calls = self.answer()

    def next(self, response: dict[str, Any] | None) -> tuple[str, dict[str, Any]] | Reply:
        """Take the response to the last call (None: none); return the next call, or the reply."""
        try:
            return next(self._calls) if response is None else self._calls.send(response)
        except StopIteration as done:
            return cast(Reply, done.value)

    def answer(self) -> _Calls:
        """Yield path and body of each call that the readout takes; returns the reply."""
        readout = self.request.readout
        if readout in ("score", "logprobs") and self.judge.dialect.continues:
            return (yield from self._labels())
        match readout:
            case "feedback":
                text, finish, _ = yield from self._send("", max_tokens=self._max_tokens())
                return self._reply(text, finish)
            case "json":
                schema = json.loads(self.request.schema)
                if not self.judge.holds_lengths:
                    schema = _without_lengths(schema)
                answer = yield from self._document("answer", schema, self._max_tokens())
                return self._reply(*answer)
            case "score":
                return (yield from self._label_in_document())
            case "logprobs":
                return (yield from self._label_in_feedback())

    def failed(self, problem: Exception) -> Reply:
        """Return the reply of a failed request; keep what arrived, as it may have been paid for."""
        raw = problem.raw if isinstance(problem, Unreadable) else ""
        if self.last:
            raw = json.dumps(self.last, ensure_ascii=False)
        name = f"{type(problem).__name__}: " if not isinstance(problem, Refused) else ""
        said = f"{name}{self.judge._error_text(problem)}"
        if isinstance(problem, Refused) and problem.is_filtered:
            return self._reply(said, "refusal")
        return self._reply(raw[:_MAX_STORED_CHARS], "error", error=said)

    def _reply(
        self, text: str, finish: Finish, probabilities: _Slots | None = None, error: str = ""
    ) -> Reply:
        number, text = self.request.request_id, self.judge.redact(text)
        told: Any = {"error": error or None, "model": self.model, **self.tokens}
        return Reply(number, text, finish, probabilities, **told)

    def _document(self, name: str, schema: Any, max_tokens: int) -> _Calls:
        form = {"name": name, "strict": True, "schema": schema}
        text, finish, _ = yield from self._send(
            "", max_tokens=max_tokens, response_format={"type": "json_schema", "json_schema": form}
        )
        return text, finish

    def _label_in_document(self) -> _Calls:
        names = [slot.strip().strip("[]") for slot in self.request.slots]
        choices = self.request.choices
        schema = {
            "type": "object",
            "properties": {n: {"type": "string", "enum": list(choices)} for n in names},
            "required": names,
            "additionalProperties": False,
        }
        text, finish = yield from self._document("scores", schema, self._max_tokens(64))
        if finish not in ("stop", "unknown"):
            return self._reply(text, finish)
        try:
            answer = json.loads(text)
            chosen = [choices.index(answer[n]) + 1 for n in names]
        except (ValueError, KeyError, TypeError):
            raise ValueError(
                f"the endpoint did not keep to the schema: {text[:_MAX_SHOWN_CHARS]!r}"
            ) from None
        return self._reply(answer_text(self.request, chosen), "stop")

    def _labels(self) -> _Calls:
        """Fill slot after slot; each goes on from the labels before it."""
        probabilities: list[tuple[float, ...]] = []
        targets = [f" {c}" for c in self.request.choices]
        text = ""
        for slot in self.request.slots:
            text += slot
            if self.request.readout == "score":
                label, finish, _ = yield from self._send(text, constraint=targets, max_tokens=16)
                if finish not in ("stop", "unknown"):
                    return self._reply(text, finish)
                text += " " + label.strip()
            else:
                chances = yield from self._at_slot(text, targets)
                probabilities.append(chances)
                text += targets[max(range(len(targets)), key=chances.__getitem__)]
        return self._reply(text, "stop", tuple(probabilities) or None)

    def _at_slot(self, text: str, targets: list[str]) -> _Calls:
        for top in self.judge.dialect.tops:

            def ask(prefix: str, rest: list[str], top: int = top) -> _Calls:
                _, _, steps = yield from self._send(text + prefix, _LABEL_TOKENS, rest, top)
                return steps

            probabilities = yield from label_probabilities(ask, targets)
            if 0 not in probabilities:  # otherwise a label is not among the first tokens
                break
        return probabilities

    def _label_in_feedback(self) -> _Calls:
        plain = self.request.prompt_format == "plain"
        text, finish, steps = yield from self._send(
            "", max_tokens=self._max_tokens(), top_logprobs=5 if plain else _TOP
        )
        if finish == "stop" and not steps:
            raise _Unusable(f"it gave no log-probabilities: {_OTHER_READOUTS}")
        labels = written_labels(self.request, "".join(step.token for step in steps))
        slots = tuple(probabilities_at(steps, label, self.request.choices) for label in labels)
        written = any(sum(p) > 0 for p in slots)  # else the text says why
        return self._reply(text, finish, slots if written else None)

    def _max_tokens(self, *answer: int) -> int:
        return most_tokens(self.request, self.judge.slug, *answer)

    def _send(
        self,
        prefill: str,
        max_tokens: int,
        constraint: list[str] | None = None,
        top_logprobs: int = 0,
        **body: Any,
    ) -> _Calls:
        request, dialect = self.request, self.judge.dialect
        body |= {"model": self.judge.model, "temperature": request.temperature}
        if request.temperature > 0:
            body["seed"] = request.seed
        if constraint is not None:
            body |= dialect.choice(constraint)
        body |= {**_reasoning(self.judge.server, request), **dialect.every}
        if request.prompt_format == "plain":
            path = "/completions"
            body |= {"prompt": plain_prompt(request, prefill), "max_tokens": max_tokens}
            if top_logprobs:
                body["logprobs"] = top_logprobs
        else:
            path = "/chat/completions"
            messages = [{"role": m.role, "content": m.content} for m in request.messages]
            if prefill:
                messages.append({"role": "assistant", "content": prefill})
                body |= dialect.continuing
            body["messages"] = messages
            body[dialect.max_tokens] = max_tokens
            if top_logprobs:
                body |= {"logprobs": True, "top_logprobs": top_logprobs}
        extra = self.judge.extra
        if "provider" in body and "provider" in extra:  # OpenRouter's: the one adds to the other
            extra = extra | {"provider": body["provider"] | extra["provider"]}
        self.last = yield path, body | extra
        return self._received(self.last, prefill)

    def _received(self, response: dict[str, Any], prefill: str) -> tuple[str, Finish, list[Step]]:
        usage = _part(response, "usage")
        self.tokens.update(
            prompt_tokens=_count(usage, "prompt_tokens"),
            cached_tokens=_count(_part(usage, "prompt_tokens_details"), "cached_tokens"),
            completion_tokens=_completion_tokens(usage),
        )
        choices = response.get("choices")
        if not isinstance(choices, list) or not choices:
            raise ValueError(f"the endpoint sent no answer: {str(response)[:_MAX_SHOWN_CHARS]}")
        self._check_model(response)
        message = _part(choices[0], "message")
        if isinstance(message.get("refusal"), str) and message["refusal"]:
            return message["refusal"], "refusal", []
        ended, problem = choices[0].get("finish_reason"), choices[0].get("error")
        finish = finish_of(ended)
        if problem or finish == "error":  # under status 200; a part of the answer may be there
            raise ValueError(f"the answer broke off: {str(problem or ended)[:_MAX_SHOWN_CHARS]}")
        sent = (message or choices[0]).get("content" if message else "text")
        text = text_of(sent)
        if text is None:
            raise ValueError(f"the endpoint sent no text but {str(sent)[:_MAX_SHOWN_CHARS]}")
        if not text and finish in ("stop", "unknown") and not self.judge.deterministic:
            raise ValueError(f"the endpoint sent an empty answer{_thought_only(message)}")
        if prefill and text.startswith(prefill):
            text = text[len(prefill) :]  # llama.cpp repeats the given beginning
        return text, finish, _steps(choices[0].get("logprobs"))

    def _check_model(self, response: dict[str, Any]) -> None:
        """Keep the name of the model that answered; refuse another than was asked for."""
        answered = response.get("model")
        if not answered or self.judge.server == "llama.cpp":
            return  # llama.cpp serves one model under any name
        self.model = one_line(self.judge.redact(str(answered)))[:_MAX_SHOWN_CHARS]
        if self.judge.check_model and not same_model(self.judge.model, str(answered)):
            raise _Unusable(
                f"asked for {self.judge.model!r}, but the model {str(answered)!r} answered; pass "
                "check_model=False if that is right"
            )


def _check_numbers(**given: Any) -> None:
    """Refuse limits that would limit nothing."""
    value: Any
    for name, value in given.items():
        kinds: Any = (int,) if name in ("concurrency", "retries") else (int, float)
        is_number = (
            isinstance(value, kinds) and not isinstance(value, bool) and math.isfinite(value)
        )
        least = 1 if name == "concurrency" else 0
        if not is_number or value < least or (not value and name not in ("retries", "patience")):
            what = "a whole number" if kinds == (int,) else "a number"
            more = (
                f"{least} or more" if name in ("concurrency", "retries", "patience") else "above 0"
            )
            raise ValueError(f"{name} = {value!r}: give {what}, finite and {more}")


def finish_of(reason: Any) -> Finish:
    """Return how an answer ended, from the reason that an endpoint gives in its own words.

    Examples
    --------
    >>> [finish_of(reason) for reason in ("MAX_TOKENS", "content_filter: SPII", None, "gone")]
    ['length', 'refusal', 'stop', 'unknown']
    """
    if reason is None:
        return "stop"
    word = str(reason).partition(":")[0].strip().lower().replace("-", "_").replace(" ", "_")
    return _FINISH.get(word.removeprefix("finish_reason_"), "unknown")


def _thought_only(message: Mapping[str, Any]) -> str:
    """Say that a message without text has thoughts, and what to do."""
    name = next((n for n in ("reasoning", "reasoning_content") if message.get(n)), "")
    return name and (
        f": all its text is in {name!r}. Switch the model's thinking off (thinking='off', or the "
        "server's own switch in extra=), or allow more tokens (max_tokens=)"
    )


def slug(model: str) -> str:
    """Turn a model's name into one fit for a file."""
    name = model.rsplit("/", 1)[-1].lower()
    plain = re.sub(r"[^a-z0-9.]+", "-", name).strip("-.")
    return plain or f"model-{zlib.crc32(name.encode()):08x}"


# Reasons to finish of OpenAI, Anthropic, Google, Mistral, DeepSeek, Z.ai, TGI and vLLM.
_REASONS: dict[Finish, str] = {
    "stop": "stop eos eos_token end_turn stop_sequence stop_token complete completed finished "
    "tool_calls tool_use function_call",
    "length": "length max_tokens max_token max_output_tokens max_new_tokens max_length "
    "model_length token_limit context_length context_window_exceeded model_context_window_exceeded "
    "incomplete truncated",
    "refusal": "content_filter content_filtered content_policy safety image_safety recitation "
    "sensitive blocklist blocked prohibited_content spii refusal moderation guardrail_intervened",
    "error": "error abort aborted cancelled canceled network_error engine_error timeout "
    "insufficient_system_resource malformed_function_call",
}
_FINISH = {word: finish for finish, words in _REASONS.items() for word in words.split()}
_WAYS_OUT = {  # by the parameter that an endpoint complains of
    "temperature": "; plan with temperature=1.0, the only one this model has",
    "max_tokens": '; open the judge with server="openai" if the server is OpenAI\'s own',
}
_OTHER_READOUTS = "choose readout 'score' or 'feedback', or a model that has log-probabilities"
_NO_LIST = (401, 403, 404, 405, 501)  # statuses of an endpoint that hides its models


def _reasoning(server: Server, request: Request) -> dict[str, Any]:
    """Return the reasoning parameters in the server's own vocabulary."""
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
        if not _DIALECTS[server].continues:
            raise JudgeError(
                f"thinking={request.thinking!r} cannot be asked of this endpoint: plan with "
                "thinking='default' and an effort, or name its switch in extra="
            )
        body["chat_template_kwargs"] = {"enable_thinking": request.thinking == "on"}
    return body


def _without_lengths(schema: Any) -> Any:
    """Remove string lengths from a schema, since OpenAI's strict mode refuses them.

    The prompt states them instead; whoever reads the answer checks it against the whole schema.
    """
    if isinstance(schema, list):
        return [_without_lengths(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        keyword: _without_lengths(value)
        for keyword, value in schema.items()
        if keyword not in ("minLength", "maxLength") or isinstance(value, dict)  # a property's name
    }


def _steps(logprobs: Any) -> list[Step]:
    if not isinstance(logprobs, dict):
        return []
    if logprobs.get("content") is not None:  # chat style; llama.cpp uses it for completions too
        return [
            Step(t["token"], _token_probabilities(t.get("top_logprobs", [])))
            for t in logprobs["content"]
        ]
    return [
        Step(token, _checked({t: math.exp(p) for t, p in top.items()}))
        for token, top in zip(
            logprobs.get("tokens") or [], logprobs.get("top_logprobs") or [], strict=False
        )
    ]


def _token_probabilities(alternatives: list[dict[str, Any]]) -> dict[str, float]:
    """Probability by text; a token that is part of a character is shown as another one's text."""
    chances: dict[str, float] = {}
    for one in alternatives:
        text, spelt = one["token"], one.get("bytes")
        if spelt is None or bytes(spelt) == text.encode():
            chances[text] = chances.get(text, 0.0) + math.exp(one["logprob"])
    return _checked(chances)


def _checked(chances: dict[str, float]) -> dict[str, float]:
    if not sum(chances.values()) <= 1.01:  # nor is NaN
        raise _Unusable(
            "invalid log-probabilities: the probabilities of one token sum to "
            f"{sum(chances.values()):g}"
        )
    return chances


def _part(holder: Any, name: str) -> dict[str, Any]:
    part = holder.get(name) if isinstance(holder, dict) else None
    return part if isinstance(part, dict) else {}


def _count(usage: dict[str, Any], name: str) -> int:
    count = usage.get(name)
    return count if isinstance(count, int) and 0 <= count < 2**31 else 0


def _completion_tokens(usage: dict[str, Any]) -> int:
    """Count all paid tokens of an answer; xAI and Google count thoughts only in the total."""
    beside = _count(usage, "total_tokens") - _count(usage, "prompt_tokens")
    return max(_count(usage, "completion_tokens"), beside)
