"""From requests and a judge to judgments: recorded answers, stored answers, then the judge.

Prompts are rendered one by one and looked up; only the missing ones go to the judge, and every
reply is stored before it is read. So a better parser reads old answers again without asking
anything, and a plan of millions of requests never holds millions of prompts.
"""

from __future__ import annotations

import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
from itertools import chain, islice
from pathlib import Path
from typing import Any

import pandas as pd

from rubricnb.frames import Requests
from rubricnb.judging.contract import Judge, Reply, Request
from rubricnb.judging.cost import Calls, sample
from rubricnb.judging.judgments import Rows, join
from rubricnb.judging.plan import check_readout, with_readout
from rubricnb.judging.prices import Budget
from rubricnb.judging.progress import Progress
from rubricnb.judging.registry import open_judge
from rubricnb.judging.rendering import answered_as, inert_for, key_of, rendered
from rubricnb.judging.results import recorded_judgments
from rubricnb.judging.sharing import Limit
from rubricnb.judging.store import Store

_BLOCK = 256  # requests rendered and looked up at once
_POLL = 0.2  # seconds between looks at what another run is asking
_SILENT_POLLS = 150  # looks in a row that find nothing new; then it is said who is waited for
_REASON = 200  # characters of why a request failed
_UNREAD = Reply(0, "")  # stands for a stored reply that nobody wants to see


class RunInterrupted(RuntimeError):
    """A run stopped early, at a budget, on Ctrl-C or SIGTERM; what it had received is stored."""


def run(
    requests: Requests,
    judge: Judge | str,
    store: Store | str | Path | None = None,
    fresh: bool | float = False,
    collect: bool = True,
    force_replicates: bool = False,
    max_calls: int | None = None,
    max_cost: float | None = None,
    price: tuple[float, float, float] | None = None,
    budget: Budget | None = None,
) -> pd.DataFrame:
    """Ask a judge, and read its answers.

    Answers are looked for in the recorded runs (``results/``), then in the store; only what stands
    in neither is asked. So a run that was stopped goes on where it was: after Ctrl-C or SIGTERM,
    which let it wait for what is under way, nothing is asked again; after a second one, a kill or a
    crash, at most what was in flight. What failed is asked once more at the end. Before texts leave
    this machine, a line says where they go, how many, and for how much.

    Parameters
    ----------
    requests
        From `plan` or `plan_criteria`, or a part of such a frame.
    judge
        From `open_judge`, or its spec; a spec is opened only if something must be asked.
    store
        A `Store` or the path of one. Default: ``$RUBRICNB_STORE``, else the user's cache folder.
    fresh
        Ask everything again; neither recorded nor stored answers are used. A time (seconds since
        the epoch) goes on with what was begun then: a run that is stopped names it.
    collect
        False: only fill the store, and return an empty frame.
    force_replicates
        Ask a deterministic judge a repeated prompt again instead of copying its answer.
    max_calls, max_cost
        Stop cleanly after this many requests, or before the next might take what this run has
        cost beyond so many US dollars.
    price
        US dollars per million tokens: input, cached input, output. Default: as in `estimate`.
    budget
        An allowance for several runs together, instead of the three before; it knows the judge
        (`Budget.turn_to`).

    Returns
    -------
    DataFrame
        Judgments (`rubricnb.frames.JUDGMENTS`), in the order of the requests; ``source`` says
        which are recorded, live or simulated.

    Raises
    ------
    RunInterrupted
        At a limit, on Ctrl-C or SIGTERM; says how to go on.
    ValueError
        A request stands in the plan twice, or `max_cost` for a judge whose price is not known.
    JudgeError, StoreError
        The judge or the store cannot go on; the message says what to do.

    Examples
    --------
    >>> import rubricnb as rb
    >>> requests = rb.plan(rb.load("minibench", n_items=5), rb.balanced(5), readout="feedback")
    >>> judgments = rb.run(requests, "simulated:first-biased", store=":memory:")
    ... # doctest: +ELLIPSIS
    simulated:first-biased: 50 of 50 in ... s
    >>> judgments.status.unique().tolist(), bool(judgments.score.between(1, 5).all())
    (['ok'], True)
    """
    if getattr(requests, "source", None) is None:
        raise ValueError("these requests carry no items: take them from rubricnb.plan")
    requests = with_readout(requests, judge)
    if twice := int(requests["request_id"].duplicated().sum()):
        raise ValueError(
            f"{twice:,} requests stand in the plan twice: give run requests.drop_duplicates("
            "'request_id'), or repeat reads with rubricnb.fixed(n, k)"
        )
    known, to_ask = _recorded(judge, requests, fresh, force_replicates)
    live = pd.DataFrame()
    if len(to_ask):
        with ExitStack() as stack:
            if isinstance(judge, str):
                judge = open_judge(judge)
                stack.callback(judge.close)
                if len(known):  # now it can be seen whether these are this judge's answers
                    known, to_ask = _recorded(judge, requests, fresh, force_replicates)
            if not isinstance(store, Store):
                store = stack.enter_context(Store(store))
            budget = budget or _budget(judge, max_calls, max_cost, price)
            rows = Rows(to_ask, judge) if collect else None
            asking = _Asking(
                lambda: rendered(to_ask, judge, force_replicates, walked=True),
                len(to_ask), judge, store, fresh, budget, rows.add if rows else None,
            )  # fmt: skip
            if len(known):
                asking.vouch()
            if getattr(judge, "host", ""):
                _announce(judge, asking, *_part(to_ask, judge, force_replicates))
            asking.fill()
            live = rows.frame() if rows else live
            if rows and len(live) and (live["status"] == "unparsed").all():
                none = f"no score in any of {len(live):,} answers, such as {rows.example!r}"
                print(f"{judge.slug}: {none}", flush=True)
    return join(requests, known, live) if collect else live


def _recorded(
    judge: Judge | str, requests: Requests, fresh: bool | float, force_replicates: bool
) -> tuple[pd.DataFrame, Requests]:
    """Return the recorded answers, and the requests that have none."""
    known = pd.DataFrame() if fresh else recorded_judgments(judge, requests, force_replicates)
    if known.empty:
        return known, requests
    return known, requests[~requests["request_id"].isin(known["request_id"].unique())]


def _part(requests: Requests, judge: Judge, force: bool) -> tuple[Iterator[Request], float]:
    """Render a part of a large plan, and say how many times larger that is."""
    part, scale = sample(requests)
    return rendered(part, judge, force), scale


def ask(
    requests: Sequence[Request],
    judge: Judge,
    store: Store | str | Path | None = None,
    fresh: bool | float = False,
    max_calls: int | None = None,
    max_cost: float | None = None,
    price: tuple[float, float, float] | None = None,
    budget: Budget | None = None,
) -> list[Reply]:
    """Ask a judge requests that one has written oneself, through the store.

    For whatever does not come from `plan`: a rubric to be compiled, a reference to be written, a
    checklist to be filled in. As in `run`, an answer in the store is never asked again.

    Parameters
    ----------
    requests
        Their ``request_id`` and ``key`` are ignored. Those that differ only in `replicate` are
        answered separately, except greedy ones by a deterministic judge.
    judge
        From `open_judge`.
    store, fresh, max_calls, max_cost, price, budget
        As in `run`.

    Returns
    -------
    list of Reply
        In the order of the requests. A failed one has ``finish="error"``.

    Raises
    ------
    ValueError
        The judge has not the readout of a request.
    RunInterrupted, JudgeError, StoreError
        As in `run`.

    Examples
    --------
    >>> from rubricnb.judging.contract import Message
    >>> from rubricnb.judging.registry import open_judge
    >>> request = Request(0, "", (Message("user", "…"),), ("[RESULT]",), ("1", "2"), "score",
    ...                   ordering=(1, 2))
    >>> ask([request], open_judge("simulated:unbiased"), ":memory:")[0].text in (
    ...     "[RESULT] 1", "[RESULT] 2")  # doctest: +ELLIPSIS
    simulated:unbiased: 1 of 1 in ... s
    True
    """
    for request in requests:
        check_readout(judge.slug, judge.readouts, request.readout)
    keyed = [
        replace(r, request_id=i, key=key_of(r, judge, answered_as(r, judge)))
        for i, r in enumerate((inert_for(r, judge) for r in requests), 1)
    ]
    with ExitStack() as stack:
        if not isinstance(store, Store):
            store = stack.enter_context(Store(store))
        budget = budget or _budget(judge, max_calls, max_cost, price)
        replies: dict[int, Reply] = {}

        def receive(request: Request, reply: Reply) -> None:
            replies[request.request_id] = replace(reply, request_id=request.request_id)

        walked = sorted(keyed, key=lambda r: [m.content for m in r.messages])
        asking = _Asking(lambda: iter(walked), len(keyed), judge, store, fresh, budget, receive)
        if getattr(judge, "host", ""):
            _announce(judge, asking, keyed)
        asking.fill()
        return [replies[r.request_id] for r in keyed]


class _Asking:
    """Rendered requests on their way: what is stored, what is asked, what came back.

    `receive` is given every request with its reply; without it the store is only filled.
    """

    def __init__(
        self,
        requests: Callable[[], Iterator[Request]],
        count: int,
        judge: Judge,
        store: Store,
        fresh: bool | float,
        budget: Budget,
        receive: Callable[[Request, Reply], None] | None,
    ) -> None:
        self.requests, self.count, self.judge, self.store = requests, count, judge, store
        self.budget, self.receive = budget, receive
        self.host: str = getattr(judge, "host", "")
        # True is 1 and False is 0
        self.since = store.after_all() if fresh == 1 else float(fresh)
        self.retry_errors = max(self.since, time.time())
        self.under_way: dict[str, list[Request]] = {}  # key → requests that wait for its reply
        self.key_of: dict[int, str] = {}  # of what the judge is answering
        self.failed: set[int] = set()  # request_ids
        self.works = False  # whether the judge has answered anything
        self.batched = ""  # what is left to batches
        self.stopped = ""  # by which signal

    def fill(self) -> None:
        """Get a stored reply for every request; what failed is asked once more."""
        try:
            with self._stoppable():
                with Progress(self.count, self.judge.slug) as progress:
                    self._ask_all(self.requests(), progress)
                if self.failed and not self._over():
                    self._ask_failed()
        except KeyboardInterrupt:
            raise RunInterrupted(self._how_far("stopped by Ctrl-C")) from None
        except Exception as problem:
            if self.since:
                problem.add_note(self._how_far("the run has ended early"))
            raise
        finally:
            self.store.release()
        if why := self._over() or self.batched:
            raise RunInterrupted(self._how_far(why))

    def _over(self) -> str:
        """Why nothing more is asked; empty as long as something may be."""
        return self.stopped or self.budget.exhausted

    @contextmanager
    def _stoppable(self) -> Iterator[None]:
        """Let the first Ctrl-C or SIGTERM end the asking, but not what is under way.

        The second does what it would do without this.
        """
        before: dict[int, Any] = {}

        def restore() -> None:
            for number, handler in before.items():
                signal.signal(number, handler)

        def stop(number: int, _: object) -> None:
            restore()
            name = "Ctrl-C" if number == signal.SIGINT else "SIGTERM"
            self.stopped = f"stopped by {name}"
            with suppress(RuntimeError):  # the signal came in the middle of another print
                print(
                    f"\n{self.judge.slug}: {name}: nothing more is asked; waiting for up to "
                    f"{len(self.key_of):,} answers under way, which may be paid for (a second "
                    "signal stops at once and loses them)",
                    flush=True,
                )

        if threading.current_thread() is threading.main_thread():  # Python's rule for signals
            for number in (signal.SIGINT, signal.SIGTERM):
                handler = signal.getsignal(number)
                if handler not in (None, signal.SIG_IGN):
                    before[number] = handler
                    signal.signal(number, stop)
        try:
            yield
        finally:
            restore()

    def vouch(self) -> None:
        """Tell a judge that would ask that it has answered such requests before."""
        if hasattr(self.judge, "answered_before"):
            self.judge.answered_before = True

    def unanswered(self, keys: Sequence[str]) -> set[str]:
        """Keys that will be asked."""
        answered = self.store.answered(keys, self.since, self.retry_errors)
        return set(keys) - answered - self.store.in_batches(keys).keys()

    def _ask_failed(self) -> None:
        """Ask the failed requests again, unless all have failed: then that would help nobody."""
        failed, self.failed = self.failed, set()
        if self.works:
            self.retry_errors = time.time()
        again = " again" if self.works else ""
        with Progress(len(failed), f"{self.judge.slug}, failed ones{again}") as progress:
            requests = (r for r in self.requests() if r.request_id in failed)
            self._ask_all(requests, progress, last=True)

    def _ask_all(self, requests: Iterator[Request], progress: Progress, last: bool = False) -> None:
        def received(request: Request, reply: Reply, note: str = "") -> None:
            progress.step(note)
            if reply.finish == "error" and not last:
                self.failed.add(request.request_id)
            elif self.receive is not None:
                self.receive(request, reply)

        tokens = _Tokens.of(self.judge)
        others: list[Request] = []
        polls = 0
        while True:
            waiting, others = len(others), []
            missing = self._missing(requests, received, others)
            for reply in self._affordable_answers(map(tokens.ask, missing)):
                key = self.key_of.pop(reply.request_id)
                self.store.put(key, self.judge.slug, reply)
                self.budget.received(reply)
                self.works |= reply.finish != "error"
                note = tokens.add(reply, self.budget)
                for request in self.under_way.pop(key):
                    received(request, reply, note)
            if not others or self._over() or self._all_batched(others):
                return
            polls = polls + 1 if len(others) == waiting else 0
            if polls == _SILENT_POLLS:
                self._say_who_asks(others)
            time.sleep(_POLL)
            requests = iter(others)

    def _affordable_answers(self, requests: Iterator[Request]) -> Iterator[Reply]:
        """Ask what the budget allows, and go on when that is answered, as long as it allows more.

        What is under way may cost up to its token limit; when it is answered, one knows.
        """
        held: list[Request] = []

        def allowed() -> Iterator[Request]:
            for request in chain([held.pop()] if held else [], requests):
                if self.stopped or not self.budget.allows(request):
                    held.append(request)
                    return
                yield request

        while True:
            yield from self._answers(allowed())
            self.budget.answered = self.budget.asked  # what was lost on the way is not waited for
            if not held or self._over():
                return

    def _answers(self, requests: Iterator[Request]) -> Iterator[Reply]:
        for first in requests:  # a judge is not bothered with nothing
            yield from self.judge.answer(chain([first], requests))

    def _missing(
        self,
        requests: Iterator[Request],
        found: Callable[[Request, Reply], None],
        others: list[Request],
    ) -> Iterator[Request]:
        """Requests without a stored reply, each key once.

        What another run is asking goes to `others`. It is never waited for in here, where a judge
        takes its next request: this run's own answers would wait too, and the other run for them.
        """
        for block in _blocks(requests):
            yield from self._claimed(block, found, others)

    def _claimed(
        self,
        block: list[Request],
        found: Callable[[Request, Reply], None],
        others: list[Request],
    ) -> Iterator[Request]:
        """One request for every key that this run must ask; its copies wait for the same reply."""
        by_key: dict[str, list[Request]] = {}
        for request in block:
            if request.key in self.under_way:
                self.under_way[request.key].append(request)
            else:
                by_key.setdefault(request.key, []).append(request)
        answered, mine = self.store.claim(list(by_key), self.since, self.retry_errors)
        if answered:
            self.vouch()
        replies = self.store.get(list(answered)) if self.receive is not None else {}
        for key, same in by_key.items():
            if key in answered:
                for request in same:
                    found(request, replies.get(key, _UNREAD))
            elif key in mine:
                self.under_way[key] = same
                self.key_of[same[0].request_id] = key
                yield same[0]
            else:
                others += same

    def _all_batched(self, others: Sequence[Request]) -> bool:
        """Whether nobody but batches asks what is left; they may take a day."""
        keys = {request.key for request in others}
        batched = self.store.in_batches(list(keys))
        if len(batched) < len(keys):
            return False
        files = ", ".join(sorted(map(str, set(batched.values()))))
        self.batched = (
            f"{len(keys):,} requests are in {files}: import the answers of the batch first "
            "('python -m rubricnb batch import'), or delete the file if it was never sent"
        )
        return True

    def _say_who_asks(self, others: Sequence[Request]) -> None:
        if who := self.store.holder(others[0].key):
            print(
                f"{self.judge.slug}: {len(others):,} requests are being asked by another run on "
                f"{self.store.path} ({who}); this one waits for its answers, or for its end",
                flush=True,
            )

    def _how_far(self, why: str) -> str:
        again = f" with fresh={self.since!r}" if self.since else ""
        return (
            f"{why}: every answer so far is kept in {self.store.path}; "
            f"run the same again{again} to go on from here"
        )


@dataclass
class _Tokens:
    """Sums for the line behind the progress."""

    tokenise: Callable[[Request], Sequence[int]] | None
    limit: Limit
    sent: int = 0
    cached: int = 0
    cut: int = 0
    failed: Counter[str] = field(default_factory=Counter)  # by reason

    @classmethod
    def of(cls, judge: Judge) -> _Tokens:
        limit = Limit(block=getattr(judge, "cache_block", 1))
        return cls(getattr(judge, "tokens", None), limit)

    def ask(self, request: Request) -> Request:
        """Count what this request adds to the least that must be computed."""
        if self.tokenise:
            self.limit.add(self.tokenise(request))
        return request

    def add(self, reply: Reply, budget: Budget) -> str:
        """Count a reply; returns the line."""
        self.sent += reply.prompt_tokens
        self.cached += reply.cached_tokens
        self.cut += reply.finish == "length"
        if reply.finish == "error":
            self.failed[" ".join((reply.error or "").split())[:_REASON]] += 1
        parts = []
        if self.sent and self.tokenise:
            parts.append(f"{self.cached / self.sent:.0%} of {self.sent:,} tokens from the cache")
            parts.append(f"{self.sent - self.cached:,} computed, {self.limit.distinct:,} needed")
        elif self.sent:  # whose cache is not known here, nor what it could share
            kept = f", {self.cached:,} of them from the cache" if self.cached else ""
            parts.append(f"{self.sent:,} tokens sent{kept}")
        if self.sent and self.limit.in_parts:
            parts.append(f"{self.limit.in_parts:,} shared in parts of cache blocks")
        if budget.spent:
            parts.append(f"${budget.spent:.2f}")
        if self.cut:
            parts.append(f"{self.cut:,} cut at their token limit")
        for reason, number in self.failed.most_common(1):
            failed = self.failed.total()
            some = f", {number:,} of them" if number < failed else ""
            parts.append(f"{failed:,} failed{some}: {reason}")
        return ", ".join(parts)


def _budget(
    judge: Judge,
    max_calls: int | None,
    max_cost: float | None,
    price: tuple[float, float, float] | None,
) -> Budget:
    budget = Budget(None, max_calls, max_cost)
    budget.turn_to(judge, price)
    return budget


def _announce(
    judge: Judge, asking: _Asking, requests: Iterable[Request], scale: float = 1.0
) -> None:
    """Before texts leave this machine, say to whom they go and how much; `scale` a part up."""
    missing = (
        request
        for block in _blocks(requests)
        for keys in [asking.unanswered([r.key for r in block])]
        for request in block
        if request.key in keys
    )
    calls = Calls.of(missing, asking.host, asking.budget.model).scaled(scale)
    if calls.number:
        price = asking.budget.price
        dollars = f"${calls.cost(price):.2f}" if price else "at a price not known here"
        # Servers of one's own seldom have a certificate, so this is said and not refused.
        clear = ", unencrypted (http://)" if judge.identity.startswith("http://") else ""
        print(
            f"{asking.host} is sent the texts of {calls.number:,} requests for "
            f"{judge.slug}{clear}: about {calls.prompt_tokens:,} tokens, "
            f"{calls.completion_tokens:,} back, {dollars}",
            flush=True,
        )


def _blocks(requests: Iterable[Request]) -> Iterator[list[Request]]:
    stream = iter(requests)
    while block := list(islice(stream, _BLOCK)):
        yield block
