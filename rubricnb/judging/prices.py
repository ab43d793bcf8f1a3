"""What calls cost, and when a run has spent enough."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from rubricnb.judging.contract import Judge, Reply, Request
from rubricnb.judging.function import FunctionJudge
from rubricnb.judging.registry import inner, open_judge
from rubricnb.judging.sharing import common_prefix
from rubricnb.judging.thinking import most_tokens, thinks

CHARACTERS_PER_TOKEN = 4.0
"""English prose with every tokeniser in use, within about 15 %."""

_CACHED_FROM = 1024  # tokens of a prefix; OpenAI keeps no shorter one
_FEEDBACK_TOKENS = 200
_LABEL_TOKENS = 3
_REASONING_TOKENS = {"low": 300, "medium": 1000, "high": 3000}  # a first guess, by effort


class Price(NamedTuple):
    """US dollars per million tokens."""

    input: float
    cached: float
    output: float

    def of(self, prompt: float, cached: float, completion: float) -> float:
        """Return the dollars for so many tokens sent, of these from the cache, and received."""
        fresh = prompt - cached
        return (fresh * self.input + cached * self.cached + completion * self.output) / 1e6


def price_of(
    judge: Judge | str, given: tuple[float, float, float] | None = None
) -> tuple[Price | None, str]:
    """Return a judge's price, or None and why it is not known.

    An engine on this machine costs nothing. What a function of your own costs only you know.
    Endpoints cost what ``genai-prices`` says, which knows
    the list prices of most providers and looks nothing up; one on this machine may be a gateway to
    whatever model, so its price is given or not known.
    """
    if given is not None:
        return Price(*given), ""
    if isinstance(judge, FunctionJudge):
        way = "; give `price`: (input, cached, output), $ per million tokens, or (0, 0, 0)"
        return None, f"not known for what the function {judge.slug!r} asks{way}"
    if not _endpoint(judge):
        return Price(0.0, 0.0, 0.0), ""
    host, model = destination(judge)
    if host and (price := _listed(host, model)):
        return price, ""
    where = f"at {host}" if host else "at a server on this machine, which may pass texts on"
    way_out = "give `price`: (input, cached, output), $ per million tokens"
    free = "" if host else "; (0, 0, 0) if it is free"
    return None, f"not known for {model!r} {where}; {way_out}{free}"


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
    """Distinct prompts and their tokens; of these, so many are shared with the prompt before.

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
class Budget:
    """How much one or several runs may still ask.

    Whether a call is affordable depends on what those under way will cost. They are reckoned at
    their token limit until as many calls have been answered as are under way, then at the longest
    answer seen. So spending ends below `max_cost`, unless the last answers are longer than any
    before. An answer whose endpoint says no tokens is counted at the limit.

    Attributes
    ----------
    price
        Of the judge that is asked; None if it is not known.
    max_calls, max_cost
        The limits: requests, and US dollars; None is no limit.
    model
        The name of the judge's model.
    asked, answered, spent
        Requests sent, those answered, and the dollars these cost.
    exhausted
        Why nothing more is asked; empty as long as something may be.

    Examples
    --------
    >>> from rubricnb.judging.contract import Message
    >>> ask = Request(1, "", (Message("user", "…"),), ("[RESULT]",), ("1", "2"), "feedback")
    >>> budget = Budget(Price(2, 0.5, 8), max_cost=0.02)  # an answer may cost $0.0082
    >>> [budget.allows(ask) for _ in range(3)], budget.exhausted
    ([True, True, False], '')
    >>> budget.received(Reply(1, "Fine. [RESULT] 2", completion_tokens=10))
    >>> budget.allows(ask)  # now there is room for another
    True
    """

    price: Price | None = None
    max_calls: int | None = None
    max_cost: float | None = None
    model: str = ""
    asked: int = 0
    answered: int = 0
    spent: float = 0.0
    exhausted: str = ""
    _measured: int = 0  # good answers of this judge
    _longest: int = 0  # tokens of the longest of these
    _paid: float = 0.0  # dollars of the dearest
    _dearest: float = 0.0  # dollars that a call may cost at its limit, at most

    def turn_to(
        self, judge: Judge | str, price: tuple[float, float, float] | None = None
    ) -> Budget:
        """Go on with a judge, perhaps another one: what remains is spent at its price."""
        self.price, reason = price_of(judge, price)
        if self.max_cost is not None and self.price is None:
            raise ValueError(f"max_cost needs a price, but that is {reason} in dollars per million")
        self.model = destination(judge)[1]
        self._measured = self._longest = 0
        self._paid = self._dearest = 0.0
        return self

    def allows(self, request: Request) -> bool:
        """Say whether this request may be sent now, and count it if so.

        If not, it may be when the calls under way are answered, unless `exhausted` says why not.
        """
        under_way = self.asked - self.answered
        if self.max_calls is not None and self.asked >= self.max_calls:
            self.exhausted = f"stopped after {self.max_calls:,} calls"
        elif self.max_cost is not None and self._reckoned(request, under_way) > self.max_cost:
            if under_way:
                return False
            self.exhausted = (
                f"stopped at ${self.spent:.2f} for {self.answered:,} calls: another might cost "
                f"more than max_cost=${self.max_cost:.2f} allows"
            )
        if self.exhausted:
            return False
        self.asked += 1
        return True

    def received(self, reply: Reply) -> None:
        """Count what came back."""
        self.answered += 1
        if self.price is not None:
            sent = reply.prompt_tokens, reply.cached_tokens
            paid = self.price.of(*sent, reply.completion_tokens)
            came = reply.finish != "error" or reply.text
            if came and not (reply.prompt_tokens or reply.completion_tokens):
                paid = self._dearest  # the endpoint does not say what it has counted
            self.spent += paid
            self._paid = max(self._paid, paid)
        if reply.completion_tokens:
            self._measured += 1
            self._longest = max(self._longest, reply.completion_tokens)

    def _reckoned(self, request: Request, under_way: int) -> float:
        """Dollars spent once all calls under way and this one are answered."""
        assert self.price is not None
        sent = _prompt_tokens(request)
        self._dearest = max(self._dearest, self.price.of(sent, 0, most_tokens(request, self.model)))
        one = self._dearest
        if self._measured > under_way:
            one = max(self._paid, self.price.of(sent, 0, self._longest))
        return self.spent + (under_way + 1) * one


def _prompt_tokens(request: Request) -> float:
    return sum(len(m.content) for m in request.messages) / CHARACTERS_PER_TOKEN


def destination(judge: Judge | str) -> tuple[str, str]:
    """Return the host that texts are sent to (empty: none but this machine), and the model."""
    if isinstance(judge, str):
        if not _endpoint(judge):
            engine, _, model = inner(judge).partition(":")
            return "", model if engine == "vllm" else ""
        judge = open_judge(inner(judge))  # connects to nobody
    return getattr(judge, "host", ""), getattr(judge, "model", "")


def _endpoint(judge: Judge | str) -> bool:
    """Say whether somebody else's prices may be due: the engines in a process have no host."""
    if isinstance(judge, str):
        return inner(judge).startswith("openai:")
    return bool(getattr(judge, "host", "")) or judge.identity.startswith(("http://", "https://"))


def _listed(host: str, model: str) -> Price | None:
    from genai_prices import Usage, calc_price

    parts = (
        Usage(input_tokens=1000),
        Usage(input_tokens=1000, cache_read_tokens=1000),
        Usage(output_tokens=1000),
    )
    try:
        dollars = [calc_price(u, model, provider_api_url=f"https://{host}") for u in parts]
    except LookupError:
        return None
    return Price(*(float(1000 * d.total_price) for d in dollars))
