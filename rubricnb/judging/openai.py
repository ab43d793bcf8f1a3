"""Judges behind an OpenAI-compatible endpoint: OpenAI, OpenRouter, vLLM, llama.cpp's server."""

from __future__ import annotations

import asyncio
import json
import math
import os
import re
import threading
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from typing import Any, Literal, NamedTuple
from urllib.parse import urlsplit

from rubricnb.judging.contract import Finish, Readout, Reply, Request
from rubricnb.judging.readout import answer_text

Server = Literal["openai", "llama.cpp", "vllm"]

_OPENAI = "https://api.openai.com/v1"
_FEEDBACK_TOKENS = 1024
_LABEL_TOKENS = 4
_NEGLIGIBLE = 1e-4  # a label prefix less probable than this is not followed further


class Step(NamedTuple):
    """One generated token, and the probabilities of what could have stood there."""

    token: str
    alternatives: dict[str, float]


class OpenAIJudge:
    """A judge behind an OpenAI-compatible endpoint.

    Parameters
    ----------
    model
        The model's name at the endpoint.
    base_url
        The endpoint, ending in ``/v1``; default: OpenAI's.
    server
        What answers there: ``openai`` (also OpenRouter and everything unknown), ``llama.cpp`` or
        ``vllm``. Default: the endpoint is asked. The last two can continue a given beginning of
        the answer, so for them ``logprobs`` needs one or two tokens; the first writes its feedback
        and the probabilities are read where the score stands in it.
    concurrency
        Requests in flight at once.
    timeout
        Seconds until a request is given up and retried.
    retries
        How often a failed request is sent again (with the client's back-off, heeding Retry-After).
    api_key
        Default: ``$OPENAI_API_KEY`` (for OpenRouter ``$OPENROUTER_API_KEY``). Kept nowhere else.

    Raises
    ------
    ValueError
        No key for an endpoint that needs one.

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
        timeout: float = 180,
        retries: int = 6,
        api_key: str | None = None,
    ) -> None:
        self.model = model
        self.base_url = (base_url or _OPENAI).rstrip("/")
        self.slug = slug(model)
        self.identity = f"{self.base_url} {model}"
        self.concurrency = concurrency
        self._client_options: dict[str, Any] = {
            "base_url": self.base_url,
            "api_key": api_key or _key(self.base_url),
            "timeout": timeout,
            "max_retries": retries,
        }
        self._loop: asyncio.AbstractEventLoop | None = None
        self._client: Any = None
        self._server = server

    @property
    def server(self) -> Server:
        """What answers at the endpoint."""
        if self._server is None:
            hosted = any(h in self.base_url for h in ("api.openai.com", "openrouter.ai"))
            self._server = "openai" if hosted else self._ask_server()
        return self._server

    @property
    def deterministic(self) -> bool:
        """Whether greedy answers repeat: a hosted endpoint's do not, a server of one's own's do."""
        return self.server != "openai"

    def answer(self, requests: Iterable[Request]) -> Iterator[Reply]:
        """Answer requests, `concurrency` at a time, as answers come."""
        loop = self._start()
        _ = self.server  # asked once, before the first request
        pending: set[Future[Reply]] = set()
        source = iter(requests)
        exhausted = False
        try:
            while not exhausted or pending:
                while not exhausted and len(pending) < self.concurrency:
                    request = next(source, None)
                    if request is None:
                        exhausted = True
                        break
                    pending.add(asyncio.run_coroutine_threadsafe(self._answer(request), loop))
                if not pending:
                    break
                done, pending = wait(pending, return_when=FIRST_COMPLETED)
                for future in done:
                    yield future.result()
        finally:
            for future in pending:
                future.cancel()

    def close(self) -> None:
        """Close the connections."""
        if self._loop is not None:
            asyncio.run_coroutine_threadsafe(self._client.close(), self._loop).result()
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._loop = None

    def _start(self) -> asyncio.AbstractEventLoop:
        if self._loop is None:
            from openai import AsyncOpenAI, DefaultAsyncHttpxClient

            options = dict(self._client_options)
            if urlsplit(self.base_url).hostname in ("127.0.0.1", "localhost", "::1"):
                # A proxy that the environment names for the internet does not know this machine.
                options["http_client"] = DefaultAsyncHttpxClient(trust_env=False)
            loop = asyncio.new_event_loop()
            name = f"judge {self.slug}"
            threading.Thread(target=loop.run_forever, daemon=True, name=name).start()
            self._client = AsyncOpenAI(**options)
            self._loop = loop
        return self._loop

    def _ask_server(self) -> Server:
        from openai import APIConnectionError, APIStatusError

        async def owners() -> set[str]:
            models = await self._client.models.list()
            return {str(getattr(m, "owned_by", "")).lower() for m in models.data}

        try:
            owned_by = asyncio.run_coroutine_threadsafe(owners(), self._start()).result()
        except APIConnectionError as problem:
            raise JudgeError(_advice(self, problem)) from None
        except APIStatusError:
            return "openai"  # no list of models: the smallest common ground
        if "llamacpp" in owned_by:
            return "llama.cpp"
        return "vllm" if "vllm" in owned_by else "openai"

    async def _answer(self, request: Request) -> Reply:
        from openai import APIError

        asked = time.monotonic()
        call = _Call(self, request)
        finish: Finish = "stop"
        error = None
        text, probabilities = "", None
        try:
            if request.readout == "feedback":
                text, finish = await call.feedback()
            elif request.readout == "score":
                text, finish = await call.score()
            elif request.readout == "json":
                text, finish = await call.document()
            else:
                text, finish, probabilities = await call.label_probabilities()
        except (APIError, ValueError, TypeError, KeyError, IndexError) as problem:
            if _fatal(problem):
                raise JudgeError(_advice(self, problem)) from None
            finish, error = "error", _hide(f"{type(problem).__name__}: {problem}")
        return Reply(
            request.request_id,
            text,
            finish,
            probabilities,
            call.prompt_tokens,
            call.cached_tokens,
            call.completion_tokens,
            time.monotonic() - asked,
            error,
        )


class JudgeError(RuntimeError):
    """The judge cannot go on: a wrong key, an unknown model, no such readout, nobody there."""


def slug(model: str) -> str:
    """Turn a model's name into one fit for a file.

    Examples
    --------
    >>> slug("google/gemma-3-27b-it")
    'gemma-3-27b-it'
    """
    return re.sub(r"[^a-z0-9.]+", "-", model.rsplit("/", 1)[-1].lower()).strip("-.")


class _Call:
    """One request on its way: builds the payloads and sums up the tokens of all calls it takes."""

    def __init__(self, judge: OpenAIJudge, request: Request) -> None:
        self.judge, self.request = judge, request
        self.prompt_tokens = self.cached_tokens = self.completion_tokens = 0

    async def feedback(self) -> tuple[str, Finish]:
        text, finish, _ = await self._send("", max_tokens=self._max_tokens())
        return text, finish

    async def score(self) -> tuple[str, Finish]:
        if self.judge.server == "openai":
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

    async def document(self) -> tuple[str, Finish]:
        text, finish, _ = await self._send(
            "",
            max_tokens=self._max_tokens(),
            response_format=_conforming("answer", json.loads(self.request.schema)),
        )
        return text, finish

    async def label_probabilities(
        self,
    ) -> tuple[str, Finish, tuple[tuple[float, ...], ...] | None]:
        server = self.judge.server
        if server == "openai":
            return await self._label_in_feedback()
        filled: list[int] = []
        slots: list[tuple[float, ...]] = []
        targets = [f" {c}" for c in self.request.choices]
        text = ""
        for slot in self.request.slots:
            text += slot

            probabilities = await self._label_probabilities(text, targets, _top(server))
            if 0 in probabilities and server == "llama.cpp":  # a label below the first 64 tokens
                probabilities = await self._label_probabilities(text, targets, 8192)
            slots.append(probabilities)
            best = max(range(len(targets)), key=probabilities.__getitem__)
            filled.append(best + 1)
            text += targets[best]
        return answer_text(self.request, filled), "stop", tuple(slots)

    async def _label_probabilities(
        self, text: str, targets: list[str], top: int
    ) -> tuple[float, ...]:
        async def ask(prefix: str, rest: list[str]) -> list[Step]:
            _, _, steps = await self._send(
                text + prefix, constraint=rest, max_tokens=_LABEL_TOKENS, top_logprobs=top
            )
            return steps

        return await label_probabilities(ask, targets)

    async def _structured(self) -> tuple[str, Finish]:
        names = [slot.strip().strip("[]") for slot in self.request.slots]
        schema = {
            "type": "object",
            "properties": {
                n: {"type": "string", "enum": list(self.request.choices)} for n in names
            },
            "required": names,
            "additionalProperties": False,
        }
        text, finish, _ = await self._send(
            "",
            max_tokens=self._max_tokens(64),
            response_format=_conforming("scores", schema),
        )
        if finish != "stop":
            return text, finish
        chosen = [self.request.choices.index(json.loads(text)[n]) + 1 for n in names]
        return answer_text(self.request, chosen), "stop"

    async def _label_in_feedback(
        self,
    ) -> tuple[str, Finish, tuple[tuple[float, ...], ...] | None]:
        text, finish, steps = await self._send("", max_tokens=self._max_tokens(), top_logprobs=True)
        if finish == "stop" and not steps:
            raise JudgeError(
                f"{self.judge.identity} gave no log-probabilities: choose readout 'score' or "
                "'feedback', or a model that has them"
            )
        slots = tuple(
            probabilities_at(steps, slot.strip(), self.request.choices)
            for slot in self.request.slots
        )
        if all(sum(p) == 0 for p in slots):
            return text, finish, None  # no score was written: the text says why
        return text, finish, slots

    def _max_tokens(self, default: int = _FEEDBACK_TOKENS) -> int:
        return self.request.max_tokens or default

    async def _send(
        self,
        prefill: str,
        *,
        max_tokens: int,
        constraint: list[str] | None = None,
        top_logprobs: int = 0,
        **payload: Any,
    ) -> tuple[str, Finish, list[Step]]:
        request, server = self.request, self.judge.server
        extra: dict[str, Any] = {}
        messages = [{"role": m.role, "content": m.content} for m in request.messages]
        payload |= {"model": self.judge.model, "temperature": request.temperature}
        if request.temperature > 0:
            payload["seed"] = request.seed
        if constraint is not None:
            extra |= _constrained(server, constraint)
        if server == "llama.cpp":
            extra["cache_prompt"] = True
        if request.thinking != "default" and server != "openai":
            extra["chat_template_kwargs"] = {"enable_thinking": request.thinking == "on"}
        if request.effort != "default":
            payload["reasoning_effort"] = request.effort
        if request.prompt_format == "plain":
            prompt = "\n\n".join(m["content"] for m in messages)
            if prefill:
                prompt += "\n" + prefill if not prefill.startswith("\n") else prefill
            payload |= {"prompt": prompt, "max_tokens": max_tokens}
            if top_logprobs:
                payload["logprobs"] = top_logprobs
            response = await self.judge._client.completions.create(**payload, extra_body=extra)
        else:
            if prefill:
                messages.append({"role": "assistant", "content": prefill})
                if server == "vllm":
                    extra |= {"continue_final_message": True, "add_generation_prompt": False}
            new_name = server == "openai"
            payload["max_completion_tokens" if new_name else "max_tokens"] = max_tokens
            if top_logprobs:
                payload |= {"logprobs": True, "top_logprobs": top_logprobs}
            response = await self.judge._client.chat.completions.create(
                messages=messages, **payload, extra_body=extra
            )
        return self._received(response, prefill)

    def _received(self, response: Any, prefill: str) -> tuple[str, Finish, list[Step]]:
        if not getattr(response, "choices", None):
            raise ValueError(f"the endpoint sent no choices: {str(response)[:200]}")
        choice = response.choices[0]
        if usage := getattr(response, "usage", None):
            self.prompt_tokens += usage.prompt_tokens or 0
            self.completion_tokens += usage.completion_tokens or 0
            details = getattr(usage, "prompt_tokens_details", None)
            self.cached_tokens += getattr(details, "cached_tokens", 0) or 0
        message = getattr(choice, "message", None)
        text = (message.content if message is not None else choice.text) or ""
        if prefill and text.startswith(prefill):
            text = text[len(prefill) :]  # llama.cpp repeats the given beginning
        if message is not None and getattr(message, "refusal", None):
            return message.refusal, "refusal", []
        finish: Finish = "stop"
        if choice.finish_reason == "length":
            finish = "length"
        elif choice.finish_reason == "content_filter":
            finish = "refusal"
        return text, finish, _steps(choice.logprobs)


async def label_probabilities(
    ask: Callable[[str, list[str]], Awaitable[list[Step]]], targets: Sequence[str]
) -> tuple[float, ...]:
    """Probability of every whole label directly after a slot.

    A label may be several tokens ("10" begins like "1"; the space before it may be a token of its
    own), so its probability is the product over its tokens, summed over the ways to spell it;
    where one label begins another, it counts only if the longer one does *not* follow.

    Parameters
    ----------
    ask
        ``ask(prefix, rest)`` continues the answer after `prefix` by one of `rest` and returns the
        generated tokens, each with the probabilities of all that could have stood there.
    targets
        The labels as they would follow the slot: ``" 1"``, ``" 2"``, …

    Returns
    -------
    tuple of float
        One per target; their sum is the label mass (at most 1).

    Examples
    --------
    >>> async def ask(prefix, rest):
    ...     table = {"": {" 1": 0.6, " 2": 0.3}, " 1": {"0": 0.5, ".": 0.5}}
    ...     best = max(table[prefix], key=table[prefix].get)
    ...     return [Step(best, table[prefix])]
    >>> asyncio.run(label_probabilities(ask, [" 1", " 2", " 10"]))
    (0.3, 0.3, 0.3)
    """
    seen: dict[str, dict[str, float]] = {}
    weights = {"": 1.0}
    while open_ends := [
        p for p, w in weights.items() if p not in seen and (p == "" or w >= _NEGLIGIBLE)
    ]:
        prefix = open_ends[0]
        rest = [t[len(prefix) :] for t in targets if t.startswith(prefix) and t != prefix]
        for token, alternatives in await ask(prefix, rest):
            seen[prefix] = alternatives
            for other, probability in alternatives.items():
                if other and any(t.startswith(prefix + other) and t != prefix + other
                                 for t in targets):  # fmt: skip
                    longer = prefix + other
                    weights[longer] = weights.get(longer, 0.0) + weights[prefix] * probability
            prefix += token
            if prefix not in weights or prefix in seen:
                break
        else:
            if open_ends[0] not in seen:
                raise ValueError("the endpoint gave no log-probabilities")
    return tuple(_probability(target, "", seen, targets) for target in targets)


def _probability(
    target: str, prefix: str, seen: dict[str, dict[str, float]], targets: Sequence[str]
) -> float:
    """Probability that the answer after `prefix` goes on to be exactly `target`."""
    total = 0.0
    for token, probability in seen.get(prefix, {}).items():
        reached = prefix + token
        if reached == target:
            total += probability * (1 - _goes_on(target, seen, targets))
        elif token and target.startswith(reached):
            total += probability * _probability(target, reached, seen, targets)
    return total


def _goes_on(label: str, seen: dict[str, dict[str, float]], targets: Sequence[str]) -> float:
    longer = [t for t in targets if t.startswith(label) and t != label]
    return sum(
        probability
        for token, probability in seen.get(label, {}).items()
        if token and any(t.startswith(label + token) for t in longer)
    )


def probabilities_at(steps: Sequence[Step], slot: str, choices: Sequence[str]) -> tuple[float, ...]:
    """Probabilities of the labels at the token where free text writes its score.

    Parameters
    ----------
    steps
        The generated tokens with their alternatives.
    slot
        ``[RESULT]``; its last occurrence counts.
    choices
        The labels. One that begins another is told apart only by the token's own text.

    Returns
    -------
    tuple of float
        One per label; zeros where the slot was not written.

    Examples
    --------
    >>> steps = [Step("[RESULT]", {}), Step(" ", {" ": 1.0}), Step("4", {"4": 0.7, "5": 0.2})]
    >>> probabilities_at(steps, "[RESULT]", ["4", "5"])
    (0.7, 0.2)
    """
    text = ""
    starts = []
    for step in steps:
        starts.append(len(text))
        text += step.token
    end = text.rfind(slot)
    if end < 0:
        return (0.0,) * len(choices)
    end += len(slot)
    for start, step in zip(starts, steps, strict=True):
        if text[max(start, end) : start + len(step.token)].strip(" :*_\n"):
            folded: dict[str, float] = {}
            for token, probability in step.alternatives.items():
                name = token.strip(" :*_\n")
                folded[name] = folded.get(name, 0.0) + probability
            return tuple(folded.get(c, 0.0) for c in choices)
    return (0.0,) * len(choices)


def _steps(logprobs: Any) -> list[Step]:
    if logprobs is None:
        return []
    content = getattr(logprobs, "content", None)
    if content is not None:  # chat style; llama.cpp uses it for completions too
        return [
            Step(
                _get(t, "token"),
                {_get(a, "token"): math.exp(_get(a, "logprob")) for a in _get(t, "top_logprobs")},
            )
            for t in content
        ]
    tokens, tops = getattr(logprobs, "tokens", None) or [], logprobs.top_logprobs or []
    return [
        Step(token, {t: math.exp(p) for t, p in top.items()})
        for token, top in zip(tokens, tops, strict=False)
    ]


def _get(entry: Any, name: str) -> Any:
    return entry[name] if isinstance(entry, dict) else getattr(entry, name)


def _top(server: Server) -> int:
    return 64 if server == "llama.cpp" else 20  # OpenAI's and vLLM's limit is 20


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


def _key(base_url: str) -> str:
    name = "OPENROUTER_API_KEY" if "openrouter.ai" in base_url else "OPENAI_API_KEY"
    key = os.environ.get(name)
    if key is None and ("api.openai.com" in base_url or "openrouter.ai" in base_url):
        raise ValueError(f"no key for {base_url}: set the environment variable {name}")
    return key or "none"  # a local server asks for none, but the client insists on one


def _fatal(problem: Exception) -> bool:
    """Whether every other request would fail the same way."""
    from openai import APIConnectionError, APIStatusError, APITimeoutError

    if isinstance(problem, APITimeoutError):
        return False
    if isinstance(problem, APIConnectionError):
        return True
    return isinstance(problem, APIStatusError) and problem.status_code in (401, 403, 404)


def _advice(judge: OpenAIJudge, problem: Exception) -> str:
    from openai import APIConnectionError

    if isinstance(problem, APIConnectionError):
        return (
            f"nobody answers at {judge.base_url}: start the server, or give another address "
            f"(openai:{judge.model}@BASE_URL)"
        )
    return f"{judge.identity} refused: {_hide(str(problem))}"


def _hide(text: str) -> str:
    """Keep keys out of messages, even where an endpoint repeats one."""
    for name in ("OPENAI_API_KEY", "OPENROUTER_API_KEY"):
        key = os.environ.get(name)
        if key and len(key) > 3:
            text = text.replace(key, "…")
    return re.sub(r"\bsk-[\w*-]{6,}", "sk-…", text)[:500]
