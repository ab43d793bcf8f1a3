"""Judges behind an endpoint like OpenAI's: OpenRouter, vLLM, llama.cpp's server."""

from __future__ import annotations

import asyncio
import json
import math
import re
from codecs import getincrementaldecoder
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import KW_ONLY, asdict, dataclass, field
from functools import partial
from itertools import accumulate
from typing import Any, ClassVar, Literal, NamedTuple
from urllib.parse import urlsplit

import pandas as pd

from rubricnb.core.address import OPENAI
from rubricnb.core.contract import Finish, JudgeError, Readout, Request
from rubricnb.core.frames import Items
from rubricnb.core.parsing import (
    answer_text,
    most_probable,
    plain_prompt,
    written_labels,
)
from rubricnb.core.support.types import Json
from rubricnb.core.thinking import most_tokens
from rubricnb.engines.connection import Refused, Unreachable, part, text_of
from rubricnb.engines.endpoint import (
    Call,
    Calls,
    Endpoint,
    Unusable,
    shown_part,
)
from rubricnb.engines.label_probabilities import (
    Chances,
    Probabilities,
    Step,
    label_probabilities,
    probabilities_at,
)

Server = Literal["openai", "openrouter", "vllm", "llama.cpp", "other"]

_LABEL_TOKENS = 4
# What the judge writes into a body itself, and a limit in dollars counts on.
# Servers know the longest answer, and the number of answers, by several names.
_OWN_KEYS = re.compile(
    r"model|messages|prompt|n|best_of|num_return_sequences|candidate_?count"
    r"|n(um)?_predict|max_?\w*(tokens|length)",
    re.IGNORECASE,
)
# Servers with options of their own read these from an object in the body, too.
_OWN_KEYS_WITHIN = re.compile(
    r'"(best_of|num_return_sequences|candidate_?count|n(?:um)?_predict|max_?\w*tokens'
    r'|max_\w*length)": ',
    re.IGNORECASE,
)
_TOP = 20  # alternatives per token: as many as OpenAI and vLLM give


class _Dialect(NamedTuple):
    """The vocabulary and the abilities of one kind of server."""

    # goes on from a given beginning of the answer
    continues: bool = False
    max_tokens: str = "max_tokens"
    # alternatives per token; the next where a label has none
    tops: tuple[int, ...] = (_TOP,)
    every: Mapping[str, Any] = {}  # in the body of every call
    continuing: Mapping[str, Any] = {}  # and where the answer is begun
    choice: Callable[[list[str]], Json] = lambda labels: {}


_DIALECTS: dict[Server, _Dialect] = {
    "openai": _Dialect(max_tokens="max_completion_tokens"),
    # OpenRouter drops unsupported parameters;
    # this asks for a provider that supports all.
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
        choice=lambda labels: {
            "grammar": f"root ::= {' | '.join(map(json.dumps, labels))}"
        },
    ),
    "other": _Dialect(),
}
_HOSTED: dict[str, Server] = {OPENAI: "openai", "openrouter.ai": "openrouter"}


class _AskedServer:
    """The kind of server at the endpoint, which is asked once if nobody told it."""

    def __get__(self, judge: OpenAIJudge | None, _: type) -> Server | None:
        if judge is None:
            return None  # the parameter's default
        judge.server = server = judge.ask_server()
        return server


@dataclass(eq=False, repr=False)
class OpenAIJudge(Endpoint):
    """A judge behind an OpenAI-compatible endpoint.

    Nothing is sent before the first request. A failed call is sent again with growing
    pauses, or after as long as the endpoint asks for (``Retry-After``, up to
    `patience`); what fails for good is one reply with its error, and what would fail
    for every request, or an endpoint that has answered nothing for `patience`, stops
    the run with a `JudgeError`.

    Parameters
    ----------
    model
        The model's name at the endpoint.
    base_url
        The endpoint, ``https://HOST/v1`` or ``http://HOST:PORT/v1``; default: OpenAI's.
        Calls go there and nowhere else: a redirect stops the run.
    server
        What answers there: ``openai``, ``openrouter``, ``vllm``, ``llama.cpp`` or
        ``other``. Default: the endpoint is asked. ``vllm`` and ``llama.cpp`` can
        continue a given beginning of the answer, so for them ``logprobs`` needs one or
        two tokens; with the others the judge writes its feedback and the probabilities
        are read at the score.
    concurrency
        Requests in flight at once.
    requests_per_minute
        Limit to keep, retries included. Without it, calls pause when the endpoint asks
        for it (429 with ``Retry-After``).
    timeout
        Seconds within which a call must be answered to the last byte; then it is given
        up and sent again.
    retries
        How often a failed call is sent again.
    patience
        Seconds without any good answer after which the run stops, whatever is still
        under way.
    key_variable
        Name of the environment variable that holds the key. Default: ``OPENAI_API_KEY``
        for OpenAI, ``OPENROUTER_API_KEY`` for OpenRouter; any other host, this machine
        included, is sent a key only if this names one. The key itself is in no
        parameter and is written nowhere.
    check_model
        Whether an answer by another model than the one asked for is an error. False for
        a deployment that goes by another name than its model.
    extra
        More parameters for the body of every call, such as OpenRouter's ``{"provider":
        …}``; part of the judge's identity. Neither the text, nor the length, nor the
        number of the answers: the plan has these.

    Raises
    ------
    ValueError
        The address is invalid, or holds a key, a password or parameters. Or a number is
        none, is not finite, or is too small. Or `extra` holds what the plan decides.

    Attributes
    ----------
    answered_before
        Whether answers of an earlier run show that this judge works. What it then
        refuses first is one request of many, and no reason to stop.

    Examples
    --------
    >>> judge = OpenAIJudge("qwen", "http://localhost:8000/v1", server="vllm")
    >>> judge.identity
    'http://localhost:8000/v1 qwen'
    >>> judge.close()
    """

    _: KW_ONLY
    server: Any = _AskedServer()
    extra: Json = field(default_factory=dict)

    readouts: ClassVar[tuple[Readout, ...]] = ("feedback", "score", "logprobs", "json")
    # a server's answers may depend on what it computes together
    deterministic: ClassVar[bool] = False

    def __post_init__(self) -> None:
        super().__post_init__()
        self.extra = self.extra or {}
        # A plan, or a limit in dollars, decides these. OpenRouter's `reasoning` may
        # hold a limit of thoughts, which are part of the longest answer.
        own = [name for name in self.extra if _OWN_KEYS.fullmatch(name)]
        others = json.dumps(self.extra | {"reasoning": None})
        if twice := dict.fromkeys([*own, *_OWN_KEYS_WITHIN.findall(others)]):
            raise ValueError(
                f"extra sets {', '.join(twice)}, which the judge writes itself: give "
                "the longest answer as max_tokens (rubricnb.plan(…, max_tokens=N), or "
                "the judge's option max_tokens), and ask again with "
                "rubricnb.fixed(n, k)"
            )
        more = f" {json.dumps(self.extra, sort_keys=True)}" if self.extra else ""
        self.identity = f"{self.base_url} {self.model}{more}"
        known = vars(self).pop("server") or _HOSTED.get(self.host)
        if known:
            self.server = known

    @property
    def dialect(self) -> _Dialect:
        """The vocabulary of that server."""
        return _DIALECTS[self.server]

    @property
    def continues(self) -> bool:
        """Whether the server goes on from the beginning of an answer."""
        return self.dialect.continues

    @property
    def holds_lengths(self) -> bool:
        """Whether a ``json`` answer keeps to `maxLength`, which hosts do not know."""
        return vars(self).get("server") not in _HOSTED.values()

    @property
    def how_to_start(self) -> str:
        """A server of your own, for a message."""
        port = urlsplit(self.base_url).port or 80
        return (
            f"'llama-server -m WEIGHTS.gguf --port {port}' or "
            f"'vllm serve {self.model} --port {port}'"
        )

    def call(self, request: Request) -> Call:
        """Return the calls of one request, to be sent."""
        return _Call(self, request)

    def doubts(self, live: pd.DataFrame, items: Items) -> Iterator[str]:
        """Yield how many scores lack the probabilities that were asked for."""
        asked = live[(live["readout"] == "logprobs") & (live["status"] == "ok")]
        known = asked["expected_score"].notna()
        if not known.all():
            yield (
                f"{known.sum():,} of {len(asked):,} scores have probabilities: "
                f"{_NO_PROBABILITIES}; {_OTHER_READOUTS}"
            )

    def prepare(self) -> None:
        """Ask once, before the first request, what kind of server it is."""
        _ = self.server

    def way_out_of(self, problem: Refused) -> str:
        """Return what to do about a refusal: other readouts, or other parameters."""
        other = f"; {_OTHER_READOUTS}" if problem.is_without_logprobs else ""
        return other + _WAYS_OUT.get(problem.param, "")

    def ask_server(self) -> Server:
        """Ask the endpoint who owns its models; "other" if it lists none."""
        asking = asyncio.run_coroutine_threadsafe(
            self._persist("/models"), self._start()
        )
        try:
            listed = asking.result(self.patience).content
            owned_by = {
                str(model.get("owned_by", "")).lower() for model in listed["data"]
            }
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


class _Call(Call):
    """One request under way, in the words of the endpoint's server."""

    judge: OpenAIJudge

    def answer(self) -> Calls:
        """Yield path and body of each call that the readout takes; return the reply."""
        readout = self.request.readout
        if readout in ("score", "logprobs") and self.judge.continues:
            return (yield from self._labels())
        match readout:
            case "feedback":
                text, finish, _ = yield from self._send(
                    "", max_tokens=self._max_tokens()
                )
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
                plain = self.request.prompt_format == "plain"
                text, finish, steps = yield from self._send(
                    "", max_tokens=self._max_tokens(), top_logprobs=5 if plain else _TOP
                )
                if finish == "stop" and not steps:
                    raise Unusable(f"it gave no log-probabilities: {_OTHER_READOUTS}")
                steps = _own_steps(steps, text.strip())
                written = "".join(step.token for step in steps)
                slots = tuple(
                    probabilities_at(steps, label, self.request.choices)
                    for label in written_labels(self.request, written)
                )
                is_read = any(sum(p) > 0 for p in slots)  # else the text says why
                return self._reply(text, finish, slots if is_read else None)

    def _document(self, name: str, schema: Any, max_tokens: int) -> Calls:
        form = {"name": name, "strict": True, "schema": schema}
        text, finish, _ = yield from self._send(
            "",
            max_tokens=max_tokens,
            response_format={"type": "json_schema", "json_schema": form},
        )
        return text, finish

    def _label_in_document(self) -> Calls:
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
                f"the endpoint did not keep to the schema: {shown_part(text)!r}"
            ) from None
        return self._reply(answer_text(self.request, chosen), "stop")

    def _labels(self) -> Calls:
        """Fill slot after slot; each goes on from the labels before it."""
        probabilities: list[Chances] = []
        targets = [f" {c}" for c in self.request.choices]
        text = ""
        for slot, criterion in zip(
            self.request.slots, self.request.slot_criteria, strict=True
        ):
            text += slot
            if self.request.readout == "score":
                label, finish, _ = yield from self._send(
                    text, constraint=targets, max_tokens=16
                )
                if finish not in ("stop", "unknown"):
                    return self._reply(text, finish)
                text += " " + label.strip()
            else:
                for top in self.judge.dialect.tops:
                    ask = partial(self._steps_after, text, top)
                    chances = yield from label_probabilities(ask, targets)
                    # otherwise a label is not among the first tokens
                    if 0 not in chances:
                        break
                probabilities.append(chances)
                text += targets[most_probable(self.request, criterion, chances)]
        return self._reply(text, "stop", tuple(probabilities) or None)

    def _steps_after(self, text: str, top: int, prefix: str, rest: list[str]) -> Calls:
        _, _, steps = yield from self._send(text + prefix, _LABEL_TOKENS, rest, top)
        return steps

    def _max_tokens(self, *answer: int) -> int:
        return most_tokens(self.request, self.judge.slug, *answer)

    def _send(
        self,
        prefill: str,
        max_tokens: int,
        constraint: list[str] | None = None,
        top_logprobs: int = 0,
        **body: Any,
    ) -> Calls:
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
            messages = list(map(asdict, request.messages))
            if prefill:
                messages.append({"role": "assistant", "content": prefill})
                body |= dialect.continuing
            body["messages"] = messages
            body[dialect.max_tokens] = max_tokens
            if top_logprobs:
                body |= {"logprobs": True, "top_logprobs": top_logprobs}
        extra = self.judge.extra
        # OpenRouter's: the one adds to the other
        if "provider" in body and "provider" in extra:
            extra = extra | {"provider": body["provider"] | extra["provider"]}
        # None leaves a parameter out that a host refuses, such as temperature.
        sent = {k: given for k, given in (body | extra).items() if given is not None}
        self.last = yield path, sent
        return self._received(self.last, prefill)

    def _received(self, response: Json, prefill: str) -> tuple[str, Finish, list[Step]]:
        self._count_tokens(response, "prompt_tokens", "completion_tokens")
        choices = response.get("choices")
        if not isinstance(choices, list) or not choices:
            raise ValueError(f"the endpoint sent no answer: {shown_part(response)}")
        if self.judge.server != "llama.cpp":  # which serves one model under any name
            self._check_model(response)
        message = part(choices[0], "message")
        if isinstance(message.get("refusal"), str) and message["refusal"]:
            return message["refusal"], "refusal", []
        ended, problem = choices[0].get("finish_reason"), choices[0].get("error")
        finish = finish_of(ended)
        # under status 200; a part of the answer may be there
        if problem or finish == "error":
            raise ValueError(f"the answer broke off: {shown_part(problem or ended)}")
        sent = (message or choices[0]).get("content" if message else "text")
        text = text_of(sent)
        if text is None:
            raise ValueError(f"the endpoint sent no text but {shown_part(sent)}")
        may_be_empty = self.judge.continues
        if not (text or may_be_empty) and finish in ("stop", "unknown"):
            thoughts = [n for n in ("reasoning", "reasoning_content") if message.get(n)]
            why = _THOUGHT_ONLY.format(*thoughts) if thoughts else ""
            raise ValueError(f"the endpoint sent an empty answer{why}")
        if prefill and text.startswith(prefill):
            text = text[len(prefill) :]  # llama.cpp repeats the given beginning
        return text, finish, _steps(choices[0].get("logprobs"))


def finish_of(reason: Any) -> Finish:
    """Return how an answer ended, from the endpoint's own word for the reason.

    Examples
    --------
    >>> reasons = ("MAX_TOKENS", "content_filter: SPII", None, "gone")
    >>> [finish_of(reason) for reason in reasons]
    ['length', 'refusal', 'stop', 'unknown']
    """
    if reason is None:
        return "stop"
    word = re.sub("[- ]", "_", str(reason).partition(":")[0].strip().lower())
    return _FINISH.get(word.removeprefix("finish_reason_"), "unknown")


_THOUGHT_ONLY = (
    ": all its text is in {!r}. Switch the model's thinking off (thinking='off', or "
    "the server's own switch in extra=), or allow more tokens (max_tokens=)"
)
# Reasons to finish of OpenAI, Anthropic, Google, Mistral, DeepSeek, Z.ai, TGI and vLLM.
_REASONS: dict[Finish, str] = {
    "stop": (
        "stop eos eos_token end_turn stop_sequence stop_token complete completed "
        "finished tool_calls tool_use function_call"
    ),
    "length": (
        "length max_tokens max_token max_output_tokens max_new_tokens max_length "
        "model_length token_limit context_length context_window_exceeded "
        "model_context_window_exceeded incomplete truncated"
    ),
    "refusal": (
        "content_filter content_filtered content_policy safety image_safety recitation "
        "sensitive blocklist blocked prohibited_content spii refusal moderation "
        "guardrail_intervened"
    ),
    "error": (
        "error abort aborted cancelled canceled network_error engine_error timeout "
        "insufficient_system_resource malformed_function_call"
    ),
}
_FINISH = {word: finish for finish, words in _REASONS.items() for word in words.split()}
_WAYS_OUT = {  # by the parameter that an endpoint complains of
    "temperature": (
        "; plan with temperature=1.0 if that is the only one this model has, or leave "
        "it out: extra={'temperature': None}"
    ),
    "seed": "; leave it out: extra={'seed': None}",
    "max_tokens": (
        '; open the judge with server="openai" if the server is OpenAI\'s own'
    ),
}
_NO_PROBABILITIES = (
    "elsewhere the endpoint gave none of the token that is the score, or of other "
    "tokens than the answer's own, or a token such as 1 may begin another label, such "
    "as 10"
)
_OTHER_READOUTS = (
    "choose readout 'score' or 'feedback', or a model that has log-probabilities"
)
_NO_LIST = (401, 403, 404, 405, 501)  # statuses of an endpoint that hides its models


def _reasoning(server: Server, request: Request) -> Json:
    """Return the reasoning parameters in the server's own vocabulary."""
    body: Json = {}
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
                f"thinking={request.thinking!r} cannot be asked of this endpoint: plan "
                "with thinking='default' and an effort, or name its switch in extra="
            )
        body["chat_template_kwargs"] = {"enable_thinking": request.thinking == "on"}
    return body


def _without_lengths(schema: Any) -> Any:
    """Remove string lengths from a schema, since OpenAI's strict mode refuses them.

    The prompt states them instead; whoever reads the answer checks it against the whole
    schema.
    """
    if isinstance(schema, list):
        return [_without_lengths(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        keyword: _without_lengths(value)
        for keyword, value in schema.items()
        # a property's name
        if keyword not in ("minLength", "maxLength") or isinstance(value, dict)
    }


def _steps(logprobs: Any) -> list[Step]:
    if not isinstance(logprobs, dict):
        return []
    # chat style; llama.cpp uses it for completions too
    if logprobs.get("content") is not None:
        whole = getincrementaldecoder("utf-8")("replace")  # some are half a character
        return [
            Step(
                whole.decode(bytes(t["bytes"])) if t.get("bytes") else t["token"],
                _token_probabilities(t.get("top_logprobs", [])),
            )
            for t in logprobs["content"]
        ]
    return [
        Step(token, _checked({t: math.exp(p) for t, p in top.items()}))
        for token, top in zip(
            logprobs.get("tokens") or [],
            logprobs.get("top_logprobs") or [],
            strict=False,
        )
    ]


def _own_steps(steps: list[Step], text: str) -> list[Step]:
    """Return the steps that spell an answer: those of a thought may go before."""
    written = "".join(step.token for step in steps)
    start = written.rfind(text) if text in written else len(written)
    ends = accumulate(len(step.token) for step in steps)
    return [step for step, end in zip(steps, ends, strict=True) if end > start]


def _token_probabilities(alternatives: list[Json]) -> Probabilities:
    """Probability by text; a part of a character is shown as another token's text."""
    chances: Probabilities = defaultdict(float)
    for one in alternatives:
        text, spelt = one["token"], one.get("bytes")
        if spelt is None or bytes(spelt) == text.encode():
            chances[text] += math.exp(one["logprob"])
    return _checked(chances)


def _checked(chances: Probabilities) -> Probabilities:
    if not sum(chances.values()) <= 1.01:  # nor is NaN
        raise Unusable(
            "invalid log-probabilities: the probabilities of one token sum to "
            f"{sum(chances.values()):g}"
        )
    return chances
