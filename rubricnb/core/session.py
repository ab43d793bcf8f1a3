"""A session: a judge, the store of its answers, and its budget."""

from __future__ import annotations

import signal
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from itertools import chain, islice
from pathlib import Path
from typing import Any

import numpy as np

from rubricnb.core.contract import JudgeError, Reply, Request
from rubricnb.core.judge import Judge
from rubricnb.core.prices import Budget, Calls
from rubricnb.core.progress import Progress
from rubricnb.core.store import LAST_RUN, Store, new_run
from rubricnb.core.support.shown import Told, one_line

_BLOCK = 256  # requests rendered and looked up at once
_REASON = 200  # characters of why a request failed

Receive = Callable[[Request, Reply], None]


class RunInterrupted(Told, RuntimeError):
    """A run stopped early, at a budget or a signal; what it had received is stored."""


class Session:
    """Gets replies to rendered requests: from the store, else from the judge.

    From its first request to the judge on, no other run asks this judge through this
    store.
    """

    def __init__(
        self, judge: Judge, store: Store, fresh: bool | float, budget: Budget
    ) -> None:
        budget.check(judge)
        self.judge, self.store, self.budget = judge, store, budget
        self.engine = judge.engine
        self.fresh_run = _run_of(fresh)  # whose answers count; 0: those of all runs
        # key → requests that wait for its reply
        self.under_way: dict[str, list[Request]] = {}
        self.key_of: dict[int, str] = {}  # of what the judge is answering
        self.failed: dict[str, Reply] = {}  # by key, until it is asked once more
        self.works = False  # whether the judge has answered anything
        self.batched: dict[str, Path] = {}  # key → file, of what is left to batches
        self._alone = False  # whether this run, and no other, may ask the judge
        self.stopped = ""  # by which signal
        self.answering = ""  # the name under which the endpoint has answered first
        self._changed = False  # whether it was said that the name has changed
        if hasattr(self.engine, "is_stopped"):
            self.engine.is_stopped = lambda: self.stopped

    def announce(self, requests: Iterable[Request], scale: float = 1.0) -> None:
        """Print where texts go and how many, before they do; `scale` a part up."""
        judge = self.judge
        if not judge.host:
            return
        calls = Calls.of(self._unanswered(requests), judge).scaled(scale)
        if calls.number:
            known = judge.price
            dollars = (
                f"${calls.cost(known):.2f}" if known else "at a price not known here"
            )
            # Own servers rarely have a certificate, so this is reported, not refused.
            clear = (
                ", unencrypted (http://)"
                if judge.identity.startswith("http://")
                else ""
            )
            print(
                f"{judge.host} is sent the texts of {calls.number:,} requests for "
                f"{judge.slug}{clear}: about {calls.prompt_tokens:,} tokens, "
                f"{calls.completion_tokens:,} back, {dollars}",
                flush=True,
            )

    def fill(
        self, requests: Callable[[], Iterable[Request]], count: int, receive: Receive
    ) -> None:
        """Give `receive` each request with its reply; ask once more what failed."""
        slug = self.judge.slug
        try:
            with self._stoppable(), ExitStack() as self._held:
                with Progress(count, slug) as progress:
                    failed = self._ask_all(requests(), receive, progress)
                if failed and not self._why_stopped():
                    # Retried, unless all have failed.
                    if self.works:
                        self.failed.clear()
                    with Progress(
                        len(failed), f"{slug}, failed ones{' again' * self.works}"
                    ) as last:
                        again = (r for r in requests() if r.request_id in failed)
                        self._ask_all(again, receive, last, last=True)
        except KeyboardInterrupt:
            raise RunInterrupted(
                self._interruption_message("stopped by Ctrl-C")
            ) from None
        except Exception as problem:
            if self.fresh_run and self.works:
                problem.add_note(self._interruption_message("the run has ended early"))
            raise
        finally:
            self._alone = False
        if why := self._why_stopped() or self._why_unfinished():
            raise RunInterrupted(self._interruption_message(why))

    def _why_stopped(self) -> str:
        """Return why no more requests are sent; empty while they may be."""
        return self.stopped or self.budget.exhausted

    @contextmanager
    def _stoppable(self) -> Iterator[None]:
        """Let the first Ctrl-C or SIGTERM stop new requests, but not those under way.

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
            # The signal came in the middle of another print, or nobody reads any more.
            with suppress(RuntimeError, OSError, ValueError):
                print(
                    f"\n{self.judge.slug}: {name}: sending no more requests; waiting "
                    f"for up to {len(self.key_of):,} answers under way (a second "
                    "signal stops at once and loses them)",
                    flush=True,
                )

        # Python's rule for signals
        if threading.current_thread() is threading.main_thread():
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
        """Tell the judge that it has answered such requests before."""
        if hasattr(self.engine, "answered_before"):
            self.engine.answered_before = True

    def _unanswered(self, requests: Iterable[Request]) -> Iterator[Request]:
        """Requests that neither the store nor a batch answers."""
        for block in _blocks(requests):
            keys = [request.key for request in block]
            known = self.store.answered(keys, self.fresh_run)
            known |= self.store.in_batches(keys).keys()
            yield from (request for request in block if request.key not in known)

    def _ask_all(
        self,
        requests: Iterable[Request],
        receive: Receive,
        progress: Progress,
        last: bool = False,
    ) -> set[int]:
        """Ask until every request has a reply; return failures that may be repeated."""
        failed: set[int] = set()

        def received(request: Request, reply: Reply, note: str = "") -> None:
            progress.step(note)
            if reply.finish == "error" and not last:
                failed.add(request.request_id)
            else:
                receive(request, reply)

        tokens = _Tokens()
        missing = (
            request
            for block in _blocks(requests)
            for request in self._missing(block, received)
        )
        for reply in self._affordable_answers(missing):
            key = self.key_of.pop(reply.request_id)
            self.store.put(key, self.judge.slug, reply, self.fresh_run)
            self.budget.received(reply, self.judge)
            self._note_model(reply)
            if reply.finish == "error":
                self.failed[key] = reply
            else:
                self.works = True
            note = tokens.add(reply, self.budget)
            for request in self.under_way.pop(key):
                received(request, reply, note)
        if not self._why_stopped():
            lost = {r.request_id for same in self.under_way.values() for r in same}
            self.under_way.clear()
            self.key_of.clear()
            if lost and last:
                raise JudgeError(
                    f"{self.judge.slug} was asked twice and gave no reply (requests: "
                    f"{len(lost):,}); look into its own messages, then run again"
                )
            failed |= lost
        return failed

    def _affordable_answers(self, requests: Iterator[Request]) -> Iterator[Reply]:
        """Ask what the budget allows; continue after the answers while it allows more.

        What is under way may cost up to its token limit; when it is answered, one
        knows.
        """
        held: list[Request] = []

        def allowed() -> Iterator[Request]:
            for request in chain([held.pop()] if held else [], requests):
                if self.stopped or not self.budget.allows(request, self.judge):
                    held.append(request)
                    return
                yield request

        while True:
            asked = allowed()
            for first in asked:  # skip the call when nothing is left to ask
                yield from self.engine.answer(chain([first], asked))
            self.budget.forget_lost()  # do not wait for them
            if not held or self._why_stopped():
                return

    def _missing(self, block: list[Request], found: Receive) -> Iterator[Request]:
        """One request for every key that must be asked; its copies wait for its reply.

        Before the first one, wait until no other run is asking, and look again.
        """
        by_key: dict[str, list[Request]] = {}
        for request in block:
            if request.key in self.under_way:
                self.under_way[request.key].append(request)
            elif request.key in self.failed:
                found(request, self.failed[request.key])
            else:
                by_key.setdefault(request.key, []).append(request)
        keys = list(by_key)
        answered = self.store.answered(keys, self.fresh_run)
        in_batches = self.store.in_batches(keys)
        if not self._alone and set(keys) - answered - in_batches.keys():
            if self.stopped:  # while waiting, in an earlier block
                return
            turn = self.store.alone_with(self.engine, self._why_stopped)
            self._alone = self._held.enter_context(turn)
            if not self._alone:
                return
            answered = self.store.answered(keys, self.fresh_run)
            in_batches = self.store.in_batches(keys)
        if answered:
            self.vouch()
        replies = self.store.get(list(answered))
        for key, same in by_key.items():
            if key in answered:
                self._note_model(replies[key])
                for request in same:
                    found(request, replies[key])
            elif key in in_batches:
                self.batched[key] = in_batches[key]
            else:
                self.under_way[key] = same
                self.key_of[same[0].request_id] = key
                yield same[0]

    def _note_model(self, reply: Reply) -> None:
        """Say once that the endpoint answers under another name: a newer version."""
        self.answering = self.answering or reply.model
        if reply.model not in ("", self.answering) and not self._changed:
            self._changed = True
            print(
                f"{self.judge.slug}: some answers are by {one_line(self.answering)!r} "
                f"and some by {one_line(reply.model)!r}: the endpoint has changed its "
                "model; each answer is stored with its name. fresh=True asks all of "
                "them again",
                flush=True,
            )

    def _why_unfinished(self) -> str:
        """Return which requests are left to batches, which may take a day."""
        if not self.batched:
            return ""
        files = ", ".join(sorted(map(str, set(self.batched.values()))))
        return (
            f"{len(self.batched):,} requests are in {files}: import the answers of the "
            "batch first (rubricnb.import_batch); with release=True (--release) a run "
            "then asks what no file answers. Delete the file if it was never sent"
        )

    def _interruption_message(self, why: str) -> str:
        again = f" with fresh={self.fresh_run}" if self.fresh_run else ""
        if self.store.in_memory:
            return (
                f"{why}: answers in memory are lost; give a file as store to continue "
                "a run"
            )
        return (
            f"{why}: every answer so far is kept in {self.store.path}; "
            f"run it again{again} to continue"
        )


def _run_of(fresh: bool | float) -> int:
    """Return the number of the run that `fresh` begins or goes on with; 0: neither."""
    if isinstance(fresh, bool | np.bool_):
        return new_run() if fresh else 0
    number = fresh if isinstance(fresh, int | float | np.number) else -1
    if number != 0 and not (2 <= number < LAST_RUN and float(number).is_integer()):
        raise ValueError(
            f"fresh = {fresh!r}: give True, or the number that a stopped run has named "
            "(a time no longer names one)"
        )
    return int(fresh)


@dataclass
class _Tokens:
    """Sums for the line after the progress."""

    sent: int = 0
    cached: int = 0
    cut: int = 0
    failed: Counter[str] = field(default_factory=Counter)  # by reason

    def add(self, reply: Reply, budget: Budget) -> str:
        """Count a reply; return the line."""
        self.sent += reply.prompt_tokens
        self.cached += reply.cached_tokens
        self.cut += reply.finish == "length"
        if reply.finish == "error":
            self.failed[" ".join((reply.error or "").split())[:_REASON]] += 1
        parts = []
        if self.sent:
            kept = f", {self.cached:,} of them from the cache" if self.cached else ""
            parts.append(f"{self.sent:,} tokens sent{kept}")
        if budget.spent:
            parts.append(f"${budget.spent:.2f}")
        if self.cut:
            parts.append(f"{self.cut:,} cut at their token limit")
        for reason, number in self.failed.most_common(1):
            failed = self.failed.total()
            some = f", {number:,} of them" if number < failed else ""
            parts.append(f"{failed:,} failed{some}: {reason}")
        return ", ".join(parts)


def _blocks(requests: Iterable[Request]) -> Iterator[list[Request]]:
    stream = iter(requests)
    while block := list(islice(stream, _BLOCK)):
        yield block
