"""From requests and a judge to judgments: recorded answers, stored answers, then the judge.

Prompts are rendered one by one and looked up; only the missing ones go to the judge, and every
reply is stored before it is read. So a better parser reads old answers again without asking
anything, and a plan of millions of requests never holds millions of prompts.
"""

from __future__ import annotations

import hashlib
import json
import signal
import threading
import time
from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import chain, islice
from math import nan
from operator import mul
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from rubricnb.frames import JUDGMENTS, STATUSES, Items, Requests
from rubricnb.hashing import hash64, mix64
from rubricnb.judging.contract import Judge, Message, Readout, Reply, Request
from rubricnb.judging.plan import request_ids
from rubricnb.judging.prices import Budget
from rubricnb.judging.progress import Progress
from rubricnb.judging.readout import Reading, read
from rubricnb.judging.results import recorded_judgments
from rubricnb.judging.sharing import IntArray, Limit, walk
from rubricnb.judging.store import Store
from rubricnb.permutation import decode
from rubricnb.prompts import PLACEBO_EDITS, render
from rubricnb.prompts.control_tokens import apart

_BLOCK = 256  # requests rendered and looked up at once
_ROWS = 4096  # rows of the plan unpacked at once
_POLL = 0.2  # seconds between looks at what another run is asking
_SILENT_POLLS = 150  # looks in a row that find nothing new; then it is said who is waited for
_REASON = 200  # characters of why a request failed
_ENCODER = json.JSONEncoder(ensure_ascii=False)
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
                from rubricnb.judging.registry import open_judge

                judge = open_judge(judge)
                stack.callback(judge.close)
                if len(known):  # now it can be seen whether these are this judge's answers
                    known, to_ask = _recorded(judge, requests, fresh, force_replicates)
            if not isinstance(store, Store):
                store = stack.enter_context(Store(store))
            budget = budget or _budget(judge, max_calls, max_cost, price)
            rows = _Rows(to_ask, judge) if collect else None
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
    return _join(requests, known, live) if collect else live


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
    from rubricnb.judging.cost import sample

    part, scale = sample(requests)
    return rendered(part, judge, force), scale


def rendered(
    requests: Requests, judge: Judge, force_replicates: bool = False, walked: bool = False
) -> Iterator[Request]:
    """Render requests one by one, each with the key of everything that changes its answer.

    Parameters
    ----------
    requests
        The plan, with its items as ``.source``.
    judge
        Gives the identity that goes into the keys.
    force_replicates
        Give every replicate of a greedy request to a deterministic judge a key of its own.
    walked
        In the order of `rubricnb.judging.sharing.walk` instead of the plan's.

    Yields
    ------
    Request

    Examples
    --------
    >>> import rubricnb as rb
    >>> requests = rb.plan(rb.load("minibench", n_items=5), rb.fixed(5, 2), readout="score")
    >>> first, again, *_ = rendered(requests, rb.open_judge("simulated:unbiased"))
    >>> first.key == again.key, first.choices
    (True, ('1', '2', '3', '4', '5'))
    """
    order = walk(requests) if walked else np.arange(len(requests))
    source = _Source(requests)
    for row, wording in _rows(requests, order):
        request = _inert(source.request(row, wording), judge)
        replicate = request.replicate if force_replicates else _replicate(request, judge)
        # Nobody else has it yet, and a copy of all its fields would take as long as rendering it.
        object.__setattr__(request, "key", _key(request, judge, replicate))
        yield request


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
        _check_readout(judge.slug, judge.readouts, request.readout)
    keyed = [
        replace(r, request_id=i, key=_key(r, judge, _replicate(r, judge)))
        for i, r in enumerate((_inert(r, judge) for r in requests), 1)
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
    from rubricnb.judging.cost import Calls

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


class _Source:
    """What requests are rendered from: items and rubrics, ready to look up."""

    def __init__(self, requests: Requests) -> None:
        from rubricnb.judging.simulated import option_quality

        items = requests.source
        self.items: Items = items
        self.records = dict(zip(items["item_id"], items.itertuples(), strict=True))
        self.of_text: dict[str, list[str]] = {}
        for text, item in zip(items["text_id"], items["item_id"], strict=True):
            self.of_text.setdefault(text, []).append(item)
        self.quality = {
            n: dict(zip(items["item_id"], option_quality(items, n), strict=True))
            for n in requests["n_options"].unique().tolist()
        }
        self.rubrics: dict[tuple[str, int], dict[str, tuple[str, dict[int, str]]]] = {}

    def request(self, row: Any, wording: int) -> Request:
        """Render one row of the plan; its key is still empty."""
        if row.template == "criteria":
            return self._criteria(row, wording)
        item = self.records[row.item_id]
        ordering = decode(row.ordering)
        definition, descriptions = self._rubric(row, item.rubric_id)
        reference, reference_score = _reference(item, row)
        prompt = render(
            item.instruction,
            item.response,
            definition,
            descriptions,
            ordering,
            template=row.template,
            labels=row.labels,
            layout=row.layout,
            reference=reference,
            reference_score=reference_score,
            exemplar=_exemplar(item, row.exemplar),
            edits=_edits(row),
        )
        return self._request(
            row,
            prompt,
            item,
            wording=wording,
            item_id=row.item_id,
            criterion=item.criterion,
            ordering=ordering,
            labels=row.labels,
            reference_score=reference_score,
            quality=_known(self.quality[row.n_options][row.item_id]),
        )

    def _criteria(self, row: Any, wording: int) -> Request:
        ids = self.of_text[row.item_id]
        order = decode(row.criterion_ordering)
        if len(ids) != len(order):
            raise ValueError(
                f"text {row.item_id!r} has {len(ids)} criteria among its items, but "
                f"criterion_ordering {row.criterion_ordering!r}: keep all items of a text"
            )
        shown = [self.records[ids[c - 1]] for c in order]
        prompt = render(
            shown[0].instruction,
            shown[0].response,
            "",
            {},
            decode(row.ordering),
            template="criteria",
            edits=_edits(row),
            criteria=[(s.criterion.capitalize(), self._rubric(row, s.rubric_id)[0]) for s in shown],
        )
        qualities = self.quality[row.n_options]
        return self._request(
            row,
            prompt,
            shown[0],
            wording=wording,
            item_id=row.item_id,
            ordering=decode(row.ordering),
            criterion_ordering=row.criterion_ordering,
            criteria=tuple(s.criterion for s in shown),
            qualities=tuple(_known(qualities[s.item_id]) for s in shown),
        )

    def _request(self, row: Any, prompt: Any, item: Any, **facts: Any) -> Request:
        return Request(
            request_id=int(row.request_id),
            key="",
            messages=(Message("user", prompt.text),),
            slots=prompt.slots,
            choices=prompt.choices,
            readout=row.readout,
            prompt_format=row.prompt_format,
            temperature=round(float(row.temperature), 6),
            effort=row.effort,
            thinking=row.thinking,
            seed=_seed(row.seed, row.replicate),
            max_tokens=int(row.max_tokens),
            replicate=int(row.replicate),
            text_id=item.text_id,
            cluster_id=item.cluster_id,
            group=item.text_id,
            **facts,
        )

    def _rubric(self, row: Any, rubric_id: str) -> tuple[str, dict[int, str]]:
        """Definition, and score → description (empty where the template shows none)."""
        shown = int(row.n_options) if row.template in ("rubric", "pairwise") else 0
        if (row.variant, shown) not in self.rubrics:
            self.rubrics[row.variant, shown] = self._read_rubrics(row.variant, shown)
        return self.rubrics[row.variant, shown][rubric_id]

    def _read_rubrics(self, variant: str, n: int) -> dict[str, tuple[str, dict[int, str]]]:
        from rubricnb.data.rubrics import resample

        frame = self.items.rubrics
        frame = frame[frame["variant"] == variant]
        frame = frame[frame["rubric_id"].isin(self.items["rubric_id"].unique())]
        if n:
            frame = resample(frame, n)
        return {
            str(name): (
                str(levels["definition"].iloc[0]),
                dict(zip(levels["score"].astype(int), levels["description"], strict=True))
                if n
                else {},
            )
            for name, levels in frame.groupby("rubric_id", observed=True)
        }


class _Rows:
    """Columns of the judgments, filled reply by reply in any order; compact: there are millions."""

    def __init__(self, requests: Requests, judge: Judge) -> None:
        self.requests, self.judge = requests, judge
        self.several = "criterion_ordering" in requests
        self.width = int(requests["n_options"].max())
        self.numbers = {name: array(kind) for name, kind in _NUMBERS.items()}
        self.keys: list[str] = []
        self.criteria: list[str] = []
        self.probabilities = array("f")  # empty, or `width` for every row
        self.example = ""

    def add(self, request: Request, reply: Reply) -> None:
        """Read one reply into one judgment per slot."""
        self.example = reply.text.strip()[-_REASON:]  # where a score would stand
        for slot, reading in enumerate(read(request, reply)):
            self._add(request, reply, reading, slot)

    def _add(self, request: Request, reply: Reply, reading: Reading, slot: int) -> None:
        first = slot == 0  # tokens and seconds belong to the call: counted once
        shares = reading.probabilities
        mass = reading.label_mass
        row = (
            request.request_id,
            slot + 1,
            STATUSES.index(reading.status),
            request.ordering[reading.position - 1] if reading.position else 0,
            reading.position or 0,
            nan if shares is None else sum(map(mul, request.ordering, shares)),
            nan if mass is None else mass,
            reply.prompt_tokens if first else 0,
            reply.cached_tokens if first else 0,
            reply.completion_tokens if first else 0,
            reply.seconds if first else 0.0,
        )
        if shares is not None and not self.probabilities:
            self.probabilities.extend([nan] * self.width * len(self.keys))
        if shares is not None or self.probabilities:
            self.probabilities.extend(shares or ())
            self.probabilities.extend([nan] * (self.width - len(shares or ())))
        for column, value in zip(self.numbers.values(), row, strict=True):
            column.append(value)  # type: ignore[arg-type]
        self.keys.append(request.key)
        self.criteria.append(request.criteria[slot] if self.several else request.criterion)

    def frame(self) -> pd.DataFrame:
        """Put the columns together, in the contract's order and dtypes."""
        numbers = {name: np.array(column) for name, column in self.numbers.items()}
        index = pd.Index(self.requests["request_id"]).get_indexer(numbers.pop("request_id"))
        out = pd.DataFrame(self.requests).iloc[index].reset_index(drop=True)
        out = out.assign(key=self.keys, criterion=pd.Categorical(self.criteria), **numbers)
        for name in ("score", "position"):
            out[name] = out[name].astype("Int8").where(out[name] > 0)
        status = pd.Categorical.from_codes(out["status"], categories=list(STATUSES))
        out["status"] = status.remove_unused_categories()
        if not self.several:
            out = out.drop(columns="criterion_position")
        for name, values in self._facts(out).items():
            out[name] = values
        for name in ("slug", "source"):
            constant = pd.Categorical([getattr(self.judge, name)]).repeat(len(out))
            out["judge" if name == "slug" else name] = constant
        probabilities = np.array(self.probabilities).reshape(-1, self.width)
        for p in range(self.width):
            if not np.isnan(probabilities[:, p]).all():
                out[f"probability_{p + 1}"] = probabilities[:, p]
        return _typed(out)

    def _facts(self, out: pd.DataFrame) -> dict[str, Any]:
        """What the items say about the judgments: columns by name."""
        items = self.requests.source
        by = "text_id" if self.several else "item_id"
        shown = out["item_id"].cat
        facts = items.drop_duplicates(by).set_index(by)
        row = facts.index.get_indexer(shown.categories)[shown.codes]
        found = {
            name: facts[name].astype("category").array.take(row)
            for name in ("dataset", "group_id", "cluster_id", "candidate")
            if name in facts
        }
        if self.several and "group_id" in items:
            by_criterion = items.set_index(["text_id", "criterion"])["group_id"]
            pairs = list(zip(out["item_id"], out["criterion"], strict=True))
            found["group_id"] = by_criterion.reindex(pairs).astype("category").array
        return found


_NUMBERS = {
    "request_id": "Q", "criterion_position": "b", "status": "b", "score": "b", "position": "b",
    "expected_score": "f", "label_mass": "f", "prompt_tokens": "i", "cached_tokens": "i",
    "completion_tokens": "i", "seconds": "f",
}  # fmt: skip


def with_readout(requests: Requests, judge: Judge | str) -> Requests:
    """Resolve the readout ``auto``, and refuse one that the judge does not have.

    Examples
    --------
    >>> import rubricnb as rb
    >>> requests = rb.plan(rb.load("minibench", n_items=5), rb.balanced(5))
    >>> with_readout(requests, "embedded").readout.unique().tolist()
    ['logprobs']
    """
    name, readouts = _offered(judge)
    if (requests["readout"] == "auto").any():
        requests = requests.copy()
        readout = requests["readout"].astype(object)
        requests["readout"] = readout.where(readout != "auto", readouts[0]).astype("category")
        requests["request_id"] = request_ids(requests)
    for readout in requests["readout"].unique():
        _check_readout(name, readouts, readout)
    return requests


def _check_readout(name: str, readouts: Sequence[Readout], readout: str) -> None:
    if readout not in readouts:
        raise ValueError(f"{name} has no readout {readout!r}: choose from {', '.join(readouts)}")


def _offered(judge: Judge | str) -> tuple[str, tuple[Readout, ...]]:
    if not isinstance(judge, str):
        return judge.slug, judge.readouts
    from rubricnb.judging.registry import judge_class

    return judge, judge_class(judge).readouts


def _join(requests: Requests, known: pd.DataFrame, live: pd.DataFrame) -> pd.DataFrame:
    frames = [f for f in (known, live) if len(f)]
    if not frames:
        return _typed(pd.DataFrame({c.name: [] for c in JUDGMENTS if c.required}))
    out = frames[0] if len(frames) == 1 else pd.concat(frames, ignore_index=True)
    order = pd.Series(np.arange(len(requests)), index=requests["request_id"].to_numpy())
    out = out.assign(_row=order.reindex(out["request_id"].to_numpy()).to_numpy())
    keys = ["_row", "criterion_position"] if "criterion_position" in out else ["_row"]
    return _typed(out.sort_values(keys, kind="stable").drop(columns="_row").reset_index(drop=True))


def _typed(frame: pd.DataFrame) -> pd.DataFrame:
    dtypes = {}
    ordered = []
    for column in JUDGMENTS:
        for name in frame.columns:
            if column.matches(str(name)) and name not in ordered:
                dtypes[name] = column.dtype
                ordered.append(name)
    rest = [name for name in frame.columns if name not in ordered]
    return frame[[*ordered, *rest]].astype(dtypes)


def _replicate(request: Request, judge: Judge) -> int:
    """The replicate an answer belongs to; 0 where every replicate has the same answer."""
    greedy = request.temperature == 0 or request.readout == "logprobs"
    return 0 if judge.deterministic and greedy else request.replicate


def _inert(request: Request, judge: Judge) -> Request:
    """Take their effect from the control tokens that only this judge's tokeniser knows."""
    tokens = getattr(judge, "control_tokens", ())
    if not tokens:
        return request
    said = tuple(Message(m.role, apart(m.content, tokens)) for m in request.messages)
    return request if said == request.messages else replace(request, messages=said)


def _key(request: Request, judge: Judge, replicate: int) -> str:
    """SHA-256 of everything that changes the answer, and of nothing else."""
    what: list[Any] = [
        judge.identity,
        [(m.role, m.content) for m in request.messages],
        request.slots if request.readout in ("score", "logprobs") else (),
        request.choices if request.readout in ("score", "logprobs") else (),
        request.readout,
        request.prompt_format,
        request.effort,
        request.thinking,
        request.max_tokens,
        replicate,
    ]
    if request.readout == "json":
        what.append(request.schema)
    if replicate:  # otherwise greedy, or a probability that is read and not sampled
        what += [request.temperature, request.seed if request.temperature > 0 else 0]
    if judge.source == "simulated":  # it looks at what the request is about, not at the prompt
        what += [request.item_id, request.criteria, request.ordering, request.criterion_ordering]
        what += [request.quality, request.qualities, request.cluster_id, request.wording]
    return hashlib.sha256(_ENCODER.encode(what).encode()).hexdigest()


@cache
def _seed(seed: int, replicate: int) -> int:
    """A sampling seed for each replicate, in the 31 bits that every engine takes."""
    return int(mix64(hash64([seed]), int(replicate))[0] >> np.uint64(33))


def _reference(item: Any, row: Any) -> tuple[str | None, int | None]:
    if row.reference_score == "none" or row.template != "rubric":
        return None, None
    if row.reference_score == "auto":
        text = getattr(item, "reference", None)
        return (text, int(row.n_options)) if isinstance(text, str) and text else (None, None)
    return getattr(item, f"reference_{row.reference_score}"), int(row.reference_score)


def _edits(row: Any) -> frozenset[str]:
    """Return the edits of a placebo read; none of any other."""
    return PLACEBO_EDITS[row.ordering_index - 1] if row.design == "placebo" else frozenset()


def _exemplar(item: Any, score: str) -> tuple[str, str, int] | None:
    if score == "none":
        return None
    return item.exemplar_instruction, getattr(item, f"exemplar_{score}"), int(score)


def _known(value: float) -> float | None:
    return None if np.isnan(value) else float(value)


def _rows(requests: Requests, order: IntArray) -> Iterator[tuple[Any, int]]:
    """Rows as named tuples, and the hashes of their wording; in parts, for there are millions."""
    from rubricnb.judging.simulated import wording

    frame = pd.DataFrame(requests)
    for start in range(0, len(frame), _ROWS):
        part = frame.iloc[order[start : start + _ROWS]]
        yield from zip(part.itertuples(index=False), wording(part).tolist(), strict=True)


def _blocks(requests: Iterable[Request]) -> Iterator[list[Request]]:
    stream = iter(requests)
    while block := list(islice(stream, _BLOCK)):
        yield block
