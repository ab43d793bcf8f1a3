"""Prices of calls, and the budget of a run."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from rubricnb.judging.contract import Reply, Request
from rubricnb.judging.judge import Judge, Price
from rubricnb.judging.sharing import common_prefix
from rubricnb.judging.thinking import most_tokens, thinks

CHARACTERS_PER_TOKEN = 4.0
"""English prose with every tokeniser in use, within about 15 %."""

_CACHED_FROM = 1024  # tokens of the shortest prefix that OpenAI caches
_FEEDBACK_TOKENS = 200
_LABEL_TOKENS = 3
_REASONING_TOKENS = {"low": 300, "medium": 1000, "high": 3000}  # a first guess, by effort


def typical_tokens(request: Request, host: str = "", model: str = "") -> tuple[float, float]:
    """Return about how many tokens a request sends, and how many its answer has.

    Where an endpoint cannot be made to begin with the score (`host`), its probabilities are read
    at the end of a feedback. A prompt of several criteria forbids feedback. A `model` that thinks,
    and is not told how long, is taken to think with medium effort; it does not where a label is
    forced upon it.
    """
    forced = request.readout in ("score", "logprobs") and not host
    short = forced or request.readout == "score" or len(request.slots) > 1
    answer = _LABEL_TOKENS * len(request.slots) if short else _FEEDBACK_TOKENS
    if thinks(request, model) and not forced:
        answer += _REASONING_TOKENS.get(request.effort, _REASONING_TOKENS["medium"])
    return _prompt_tokens(request), answer


class Calls(NamedTuple):
    """Distinct prompts and their tokens, and how many of these the previous prompt shares.

    Of the shared ones, so many may come cheaper: a hosted endpoint keeps only long prefixes.
    """

    number: int
    prompt_tokens: int
    shared_tokens: int
    cached_tokens: int
    completion_tokens: int

    @classmethod
    def of(cls, requests: Iterable[Request], host: str, model: str = "") -> Calls:
        """Count; `host` and `model` as in `typical_tokens`."""
        seen: set[str] = set()
        prompt = completion = shared = cached = 0.0
        before = ""
        for request in requests:
            if request.key in seen:
                continue
            seen.add(request.key)
            sent, received = typical_tokens(request, host, model)
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


@dataclass
class _Answers:
    """Running totals of one judge's answers."""

    number: int = 0  # answers whose tokens were counted
    paid: float = 0.0  # dollars of the most expensive answer
    dearest: float = 0.0  # dollars that a call may cost at its limit, at most


@dataclass
class Budget:
    """How much one or several runs may still ask, of one or several judges.

    Whether a call is affordable depends on what those under way will cost. They are reckoned at
    their token limit until as many calls have been answered as are under way, then at the costliest
    answer of this judge. So spending ends below `max_cost`, unless the last answers cost more than
    any before. An answer whose endpoint says no tokens is counted at the limit.

    Attributes
    ----------
    max_calls, max_cost
        The limits: requests, and US dollars; None is no limit.
    asked, answered, spent
        Requests sent, those answered, and the dollars these cost.
    exhausted
        Why nothing more is asked; empty as long as something may be.

    Examples
    --------
    >>> from rubricnb.judging.contract import Message
    >>> from rubricnb.judging.judge import describe
    >>> judge = describe("openai:m", price=(2, 0.5, 8))
    >>> ask = Request(1, "", (Message("user", "…"),), ("[RESULT]",), ("1", "2"), "feedback")
    >>> budget = Budget(max_cost=0.02)  # an answer may cost $0.0082
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
    _seen: defaultdict[str, _Answers] = field(default_factory=lambda: defaultdict(_Answers))

    def check(self, judge: Judge) -> None:
        """Refuse a judge of unknown price if dollars are limited."""
        if self.max_cost is not None and judge.price is None:
            raise ValueError(f"max_cost needs a price, but the price is {judge.no_price}")

    def allows(self, request: Request, judge: Judge) -> bool:
        """Say whether this request may be sent to a judge now, and count it if so.

        If not, it may be when the calls under way are answered, unless `exhausted` says why not.
        """
        under_way = self.asked - self.answered
        if self.max_calls is not None and self.asked >= self.max_calls:
            self.exhausted = f"stopped after {self.max_calls:,} calls"
        elif self.max_cost is not None and self._expected_cost(request, judge) > self.max_cost:
            if under_way:
                return False
            self.exhausted = (
                f"stopped at ${self.spent:.2f} for {self.answered:,} calls: the next might cost "
                f"more than max_cost=${self.max_cost:.2f} allows"
            )
        if self.exhausted:
            return False
        self.asked += 1
        return True

    def received(self, reply: Reply, judge: Judge) -> None:
        """Count what came back."""
        self.answered += 1
        seen = self._seen[judge.slug]
        seen.number += bool(reply.completion_tokens)
        if judge.price is not None:
            sent = reply.prompt_tokens, reply.cached_tokens
            paid = judge.price.of(*sent, reply.completion_tokens)
            came = reply.finish != "error" or reply.text
            if came and not (reply.prompt_tokens or reply.completion_tokens):
                paid = seen.dearest  # the endpoint does not report its token counts
            self.spent += paid
            seen.paid = max(seen.paid, paid)

    def _expected_cost(self, request: Request, judge: Judge) -> float:
        """Estimate the dollars spent once this call and all calls under way are answered."""
        assert judge.price is not None
        under_way, seen = self.asked - self.answered, self._seen[judge.slug]
        limit = judge.price.of(_prompt_tokens(request), 0, most_tokens(request, judge.model))
        seen.dearest = max(seen.dearest, limit)
        one = seen.paid if seen.number > under_way else seen.dearest
        return self.spent + (under_way + 1) * one


def _prompt_tokens(request: Request) -> float:
    return sum(len(m.content) for m in request.messages) / CHARACTERS_PER_TOKEN
