"""How many calls there are, what they cost, and the budget of a run.

Calls that are alike count once where the judge repeats itself. `cost` makes an estimate
of these; `sharing` is about prompts that begin alike.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from rubricnb.core.contract import Reply, Request
from rubricnb.core.judge import Judge, Price
from rubricnb.core.sharing import common_prefix
from rubricnb.core.support.settings import is_amount
from rubricnb.core.thinking import most_tokens, thinks

CHARACTERS_PER_TOKEN = 4.0
"""English prose with every tokeniser in use, within about 15 %."""

_FRAME_TOKENS = 32  # of a message: its role and its marks, with room
# how often a label's probabilities are asked for at most: llama.cpp's may be too few
_TOPS = 2
_CACHED_FROM = 1024  # tokens of the shortest prefix that OpenAI caches
# Parameters of a body that change what a token costs, or add what is no token.
_BILLED = ("service_tier", "tools", "plugins", "web_search_options", "models")
_FEEDBACK_TOKENS = 200
_LABEL_TOKENS = 3
# a first guess, by effort
_REASONING_TOKENS = {"low": 300, "medium": 1000, "high": 3000}


def typical_tokens(
    request: Request, host: str = "", model: str = ""
) -> tuple[float, float]:
    """Return about how many tokens a request sends, and how many its answer has.

    Where an endpoint cannot be made to begin with the score (`host`), its probabilities
    are read at the end of a feedback. A prompt of several criteria forbids feedback. A
    `model` that thinks, and is not told how long, is taken to think with medium effort;
    it does not where a label is forced upon it.
    """
    forced = request.readout in ("score", "logprobs") and not host
    short = forced or request.readout == "score" or len(request.slots) > 1
    answer = _LABEL_TOKENS * len(request.slots) if short else _FEEDBACK_TOKENS
    if thinks(request, model) and not forced:
        answer += _REASONING_TOKENS.get(request.effort, _REASONING_TOKENS["medium"])
    prompt = sum(len(m.content) for m in request.messages) / CHARACTERS_PER_TOKEN
    return prompt, answer


class Calls(NamedTuple):
    """Distinct prompts, their tokens, and how many the previous prompt shares.

    Of the shared ones, so many may come cheaper: a hosted endpoint keeps only long
    prefixes.
    """

    number: int
    prompt_tokens: int
    shared_tokens: int
    cached_tokens: int
    completion_tokens: int

    @classmethod
    def of(cls, requests: Iterable[Request], judge: Judge) -> Calls:
        """Count the requests to a judge; those with one key are one."""
        host = "" if judge.kind == "decision" else judge.host  # one that writes nothing
        seen: set[str] = set()
        prompt = completion = shared = cached = 0.0
        before = ""
        for request in requests:
            if request.key in seen:
                continue
            seen.add(request.key)
            sent, received = typical_tokens(request, host, judge.model)
            prompt += sent
            completion += received
            text = "\n".join(m.content for m in request.messages)
            common = common_prefix(before, text) / CHARACTERS_PER_TOKEN
            shared += common
            cached += common if not host or common >= _CACHED_FROM else 0
            before = text
        return cls(len(seen), *map(round, (prompt, shared, cached, completion)))

    def scaled(self, scale: float) -> Calls:
        """Return the counts of a plan so many times larger."""
        return Calls(*(round(count * scale) for count in self))

    def cost(self, price: Price) -> float:
        """Return the dollars, if all that may come from the provider's cache does."""
        return price.of(self.prompt_tokens, self.cached_tokens, self.completion_tokens)


class _Most(NamedTuple):
    """What a call may cost at most: tokens sent and received, and their dollars."""

    prompt_tokens: float
    completion_tokens: float
    dollars: float


@dataclass
class _Beyond:
    """How far answers of one judge went beyond what was reckoned for them."""

    # more sent than the prompt can have: a gateway adds its own
    prompt_tokens: float = 0.0
    # in an answer; more than its limit: thoughts beside it
    completion_tokens: float = 0.0


@dataclass
class Budget:
    """How much one or several runs may still ask, of one or several judges.

    Each call under way is reckoned at the most it may cost: a token for every byte of
    its own prompt, and an answer as long as its token limit, or as the longest so far
    if an endpoint goes beyond. So however many calls run at once, spending ends below
    `max_cost`, if the endpoint's counts are right and the price is. A count that an
    endpoint does not give is taken at its limit.

    Attributes
    ----------
    max_calls, max_cost
        The limits: requests, and US dollars; None is no limit.
    asked, answered, spent
        Requests sent, those answered, and the dollars these cost.
    exhausted
        Why nothing more is asked; empty as long as something may be.

    Raises
    ------
    ValueError
        A limit is not a number, not finite, or negative.

    Examples
    --------
    >>> from rubricnb.core.contract import Message
    >>> from rubricnb.core.judge import describe
    >>> judge = describe("openai:m", price=(2, 0.5, 8))
    >>> message = Message("user", "…")
    >>> ask = Request(1, "", (message,), ("[RESULT]",), ("1", "2"), "feedback")
    >>> budget = Budget(max_cost=0.02)  # an answer may cost $0.0084
    >>> [budget.allows(ask, judge) for _ in range(3)], budget.exhausted
    ([True, True, False], '')
    >>> budget.received(Reply(1, "Fine. [RESULT] 2", completion_tokens=10), judge)
    >>> budget.allows(ask, judge)  # now there is room for another
    True
    """

    max_calls: int | None = None
    max_cost: float | None = None
    asked: int = 0
    answered: int = 0
    spent: float = 0.0
    exhausted: str = ""
    _reserved: dict[tuple[str, int], list[_Most]] = field(default_factory=dict)
    _beyond: defaultdict[str, _Beyond] = field(
        default_factory=lambda: defaultdict(_Beyond)
    )

    def __post_init__(self) -> None:
        for name, what in (("max_calls", "requests"), ("max_cost", "US dollars")):
            limit = getattr(self, name)
            if limit is not None and not is_amount(limit):
                raise ValueError(
                    f"{name} = {limit!r}: give a number of {what}, finite and not "
                    "negative, or leave it out for no limit"
                )

    def check(self, judge: Judge) -> None:
        """Refuse a judge of unknown price if dollars are limited.

        A list price does not cover parameters that are billed apart.
        """
        if self.max_cost is None:
            return
        if judge.price is None:
            raise ValueError(
                f"max_cost needs a price, but the price is {judge.no_price}"
            )
        extra = getattr(judge.engine, "extra", {})
        billed = [name for name in _BILLED if name in extra]
        if billed and judge.given_price is None:
            raise ValueError(
                f"max_cost cannot count {', '.join(billed)} in extra by the list "
                f"price: "
                "give `price`: (input, cached, output), $ per million tokens, at its "
                "dearest"
            )

    def allows(self, request: Request, judge: Judge) -> bool:
        """Say whether this request may be sent to a judge now, and count it if so.

        If not, it may be when the calls under way are answered, unless `exhausted` says
        why not.
        """
        if self.max_calls is not None and self.asked >= self.max_calls:
            self.exhausted = f"stopped after {self.max_calls:,} calls"
        most = self._most(request, judge) if self.max_cost is not None else None
        # dollars that the calls under way may cost at most
        held = sum(m.dollars for calls in self._reserved.values() for m in calls)
        limit = math.inf if self.max_cost is None else self.max_cost
        if most is not None and self.spent + held + most.dollars > limit:
            if self._reserved:
                return False
            self.exhausted = self.exhausted or (
                f"stopped at ${self.spent:.2f} for {self.answered:,} calls: the next "
                f"might cost more than max_cost=${limit:.2f} allows (up to "
                f"${most.dollars:.2g})"
            )
        if self.exhausted:
            return False
        self.asked += 1
        if most is not None:
            self._reserved.setdefault((judge.slug, request.request_id), []).append(most)
        return True

    def received(self, reply: Reply, judge: Judge) -> None:
        """Count what came back."""
        self.answered += 1
        if judge.price is None:
            return
        key = judge.slug, reply.request_id
        calls = self._reserved.get(key, [])
        most = calls.pop() if calls else None  # was reserved for this reply
        if not calls:
            self._reserved.pop(key, None)
        prompt, completion = float(reply.prompt_tokens), float(reply.completion_tokens)
        if most is not None:
            beyond = self._beyond[judge.slug]
            beyond.prompt_tokens += max(prompt - most.prompt_tokens, 0.0)
            beyond.completion_tokens = max(beyond.completion_tokens, completion)
            # else nothing came that would be paid
            if reply.finish != "error" or reply.text:
                prompt, completion = (
                    prompt or most.prompt_tokens,
                    completion or most.completion_tokens,
                )
        self.spent += judge.price.of(prompt, reply.cached_tokens, completion)

    def forget_lost(self) -> None:
        """Reckon no more with calls that have ended without a reply."""
        self.answered = self.asked
        self._reserved.clear()

    def _most(self, request: Request, judge: Judge) -> _Most:
        assert judge.price is not None
        beyond, calls = self._beyond[judge.slug], _calls(request, judge)
        # a token for each byte, and the frames of the messages
        texts = [*(m.content for m in request.messages), *request.slots, request.schema]
        sent = sum(len(text.encode("utf-8", "surrogatepass")) for text in texts)
        sent += _FRAME_TOKENS * (len(request.messages) + 1)
        prompt = calls * sent + beyond.prompt_tokens
        answer = max(
            calls * most_tokens(request, judge.model), beyond.completion_tokens
        )
        return _Most(prompt, answer, judge.price.of(prompt, 0, answer))


def _calls(request: Request, judge: Judge) -> int:
    """Return the most calls of a request: several where a label is forced."""
    if request.readout not in ("score", "logprobs") or not (
        judge.is_open and getattr(judge.engine, "continues", False)
    ):
        return 1
    if request.readout == "score":
        return max(len(request.slots), 1)
    beginnings = {
        f" {label}"[:end] for label in request.choices for end in range(len(label) + 1)
    }
    return max(len(request.slots), 1) * len(beginnings) * _TOPS
