"""What calls cost, and when a run has spent enough."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import NamedTuple

import pandas as pd

from rubricnb.judging.contract import Judge, Reply, Request

CHARACTERS_PER_TOKEN = 4.0
"""English prose with every tokeniser in use, within about 15 %."""

_FEEDBACK_TOKENS = 200
_LABEL_TOKENS = 3
_REASONING_TOKENS = {"low": 300, "medium": 1000, "high": 3000}  # a first guess, by effort


class Price(NamedTuple):
    """US dollars per million tokens."""

    input: float
    cached: float
    output: float

    def of(self, prompt: float, cached: float, completion: float) -> float:
        """Return the dollars for so many tokens sent, of these from the cache, and received.

        Examples
        --------
        >>> Price(2, 0.5, 8).of(1_000_000, 500_000, 100_000)
        2.05
        """
        fresh = prompt - cached
        return (fresh * self.input + cached * self.cached + completion * self.output) / 1e6


def price_of(
    judge: Judge | str, given: tuple[float, float, float] | None = None
) -> tuple[Price | None, str]:
    """Return a judge's price, or None and why it is not known.

    A judge on this machine costs nothing; OpenAI's models cost what ``prices.csv`` says.

    Parameters
    ----------
    judge
        A judge or its spec.
    given
        Dollars per million tokens: input, cached input, output. It wins.

    Examples
    --------
    >>> price_of("openai:gpt-4.1-2025-04-14")
    (Price(input=2.0, cached=0.5, output=8.0), '')
    >>> price_of("openai:my-model@https://example.org/v1")[1]
    "not known for 'my-model' at example.org; pass price=(input, cached, output)"
    """
    if given is not None:
        return Price(*given), ""
    host, model = destination(judge)
    if not host:
        return Price(0.0, 0.0, 0.0), ""
    known = _listed() if host == "api.openai.com" else {}
    price = known.get(re.sub(r"-\d{4}-\d\d-\d\d$", "", model))
    where = "" if host == "api.openai.com" else f" at {host}"
    reason = f"not known for {model!r}{where}; pass price=(input, cached, output)"
    return (price, "") if price else (None, reason)


def typical_tokens(request: Request, host: str = "") -> tuple[float, float]:
    """Return about how many tokens a request sends, and how many its answer has.

    Where an endpoint cannot be made to begin with the score (`host`), its probabilities are read
    at the end of a feedback.

    Examples
    --------
    >>> from rubricnb.judging.contract import Message
    >>> ask = Request(1, "", (Message("user", "x" * 4000),), ("[RESULT]",), ("1", "2"), "feedback")
    >>> typical_tokens(ask)
    (1000.0, 200)
    """
    prompt = sum(len(m.content) for m in request.messages) / CHARACTERS_PER_TOKEN
    short = request.readout == "score" or (request.readout == "logprobs" and not host)
    answer = _LABEL_TOKENS * len(request.slots) if short else _FEEDBACK_TOKENS
    return prompt, answer + _REASONING_TOKENS.get(request.effort, 0)


@dataclass
class Budget:
    """How much one run may still ask.

    A call under way is reckoned at the mean of those answered, or at what is typical if that is
    more, so a run ends below `max_cost` unless its last answers are longer than usual.

    Attributes
    ----------
    max_calls, max_cost
        The limits: requests, and US dollars; None is no limit.
    asked, answered, spent
        Requests sent, those answered, and the dollars these cost.
    exhausted
        Why nothing more is asked; empty as long as something may be.
    """

    price: Price | None = None
    max_calls: int | None = None
    max_cost: float | None = None
    asked: int = 0
    answered: int = 0
    spent: float = 0.0
    exhausted: str = ""

    def allows(self, request: Request, host: str = "") -> bool:
        """Say whether this request may be sent, and count it if so."""
        if self.max_calls is not None and self.asked >= self.max_calls:
            self.exhausted = f"stopped after {self.max_calls:,} calls"
        elif self.max_cost is not None and self._reckoned(request, host) > self.max_cost:
            self.exhausted = (
                f"stopped at ${self.spent:.2f} for {self.answered:,} calls: another might cost "
                f"more than max_cost=${self.max_cost:.2f} allows"
            )
        else:
            self.asked += 1
        return not self.exhausted

    def received(self, reply: Reply) -> None:
        """Count what came back."""
        self.answered += 1
        if self.price is not None:
            self.spent += self.price.of(
                reply.prompt_tokens, reply.cached_tokens, reply.completion_tokens
            )

    def _reckoned(self, request: Request, host: str) -> float:
        """Dollars spent once all calls under way and this one are answered."""
        assert self.price is not None
        prompt, answer = typical_tokens(request, host)
        mean = self.spent / self.answered if self.answered else 0.0
        one = max(mean, self.price.of(prompt, 0, answer))
        return self.spent + (self.asked - self.answered + 1) * one


def destination(judge: Judge | str) -> tuple[str, str]:
    """Return the host that texts are sent to (empty: none but this machine), and the model.

    Examples
    --------
    >>> destination("openai:gpt-4.1"), destination("embedded")
    (('api.openai.com', 'gpt-4.1'), ('', ''))
    """
    if isinstance(judge, str):
        from rubricnb.judging.registry import inner, open_judge

        if not inner(judge).startswith("openai:"):
            return "", ""
        judge = open_judge(inner(judge))  # connects to nobody
    return getattr(judge, "host", ""), getattr(judge, "model", "")


@cache
def _listed() -> dict[str, Price]:
    table = pd.read_csv(str(files("rubricnb.judging") / "prices.csv"))
    columns = (table["model"], table["input"], table["cached"], table["output"])
    return {m: Price(*map(float, p)) for m, *p in zip(*columns, strict=True)}
