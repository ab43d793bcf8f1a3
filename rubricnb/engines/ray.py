"""One judge on many GPUs or machines: a judge in every actor of a Ray cluster."""

from __future__ import annotations

import logging
import math
import os
import time
from collections.abc import Callable, Iterable, Iterator
from functools import cache, partial
from itertools import islice, takewhile
from typing import Any

from rubricnb.core.contract import Engine, JudgeError, Reply, Request
from rubricnb.core.judge import describe, open_judge
from rubricnb.core.support.shown import one_line
from rubricnb.core.support.types import Options

_WINDOW = 65_536  # requests cut into blocks at once: bounds memory
# at least this many blocks for each actor, so that none waits long for the last one
_BLOCKS = 4
_ATTEMPTS = 4  # a block that ends its actor this often is itself at fault
# Replies that wait for this process, when each was paid for: what is lost with it.
_WAITING = 2
_SECONDS = 0.2  # between two looks for a stop; between two deliveries of free replies
_FACTS = (
    *Engine.__annotations__,
    "host",
    "model",
    "control_tokens",
    "is_free",
    "holds_lengths",
    "extra",
)
Delivered = tuple[list[Reply], str]
"""Replies of an actor, and what ended its block early."""


class RayJudge:
    """Copies of one judge on the machines of a Ray cluster.

    The cluster is the one at ``$RAY_ADDRESS``; without it, Ray starts on this machine
    and stops at `close`. The answers are those of the judge, and so are its slug and
    its identity: a run that was begun with ``vllm:MODEL`` continues with
    ``ray:vllm:MODEL``. Each actor opens the judge once and keeps it, from one run to
    the next, until `close`.

    Parameters
    ----------
    spec
        The judge in each actor.
    num_actors
        Default: one for every `num_gpus` GPUs of the cluster, or for every CPU if it
        has no GPU.
    num_gpus
        GPUs of each actor (with vLLM, its ``tensor_parallel_size``). Default: 1 if
        there are any.
    block
        An actor is given at most so many neighbouring requests at once, which share
        prefixes. If it dies, what its block still lacks is asked again, and nothing
        else.
    options
        Go to the judge in each actor. Keys of endpoints do not: they are taken from the
        environment that Ray was started in. Limits, such as a rate, hold for each
        actor.

    Raises
    ------
    ImportError
        Ray is not installed.
    JudgeError
        There is no such cluster, it lacks the GPUs, or the judge cannot be opened
        there.

    Attributes
    ----------
    answered_before
        Whether answers show that this judge works, those of an earlier run or of
        another actor; every actor's judge is told.
    is_stopped
        Whether to send no more requests. Set by a run; every actor is told.

    Examples
    --------
    >>> judge = RayJudge("simulated:unbiased", num_actors=1)  # doctest: +SKIP
    >>> judge.slug  # doctest: +SKIP
    'simulated:unbiased'
    """

    answered_before = False
    is_stopped: Callable[[], object] = staticmethod(lambda: False)

    def __init__(
        self,
        spec: str,
        *,
        num_actors: int | None = None,
        num_gpus: float | None = None,
        block: int = 1024,
        **options: Any,
    ) -> None:
        self.spec, self.block = spec, block
        ray, self._is_mine = _connect()
        there = ray.cluster_resources()
        gpus, cpus = there.get("GPU", 0), there.get("CPU", 1)
        each = min(1, gpus) if num_gpus is None else num_gpus
        room = int(gpus / each if each else cpus)
        if room < (num_actors or 1):
            raise JudgeError(
                f"{num_actors or 1} actors of {each:g} GPUs do not fit: the cluster "
                f"has {gpus:g} GPUs and {cpus:g} CPUs; ask for fewer with num_actors= "
                "or num_gpus="
            )
        self.num_actors = num_actors or room
        # An endpoint's actor has a second thread, which takes the stop. A model in the
        # actor keeps to its main thread; its block costs nothing.
        self._is_free = describe(spec, **options).is_free
        actor = ray.remote(_Actor).options(
            num_cpus=1,
            num_gpus=each,
            max_restarts=-1,
            max_task_retries=_ATTEMPTS - 1,
            max_concurrency=1 if self._is_free else 2,
        )
        self._actors = [actor.remote(spec, options) for _ in range(self.num_actors)]
        facts, problem = ray.get(self._actors[0].facts.remote())
        if problem:
            self.close()
            raise JudgeError(f"ray:{spec}: {problem}")
        self.__dict__ |= facts
        # Ray cannot repeat a stream whose order differs: what dies is asked here again.
        self._how: Options = {"num_returns": "streaming", "max_task_retries": 0}
        if not self._is_free:
            self._how["_generator_backpressure_num_objects"] = _WAITING
        self.concurrency = self.num_actors * block

    def answer(self, requests: Iterable[Request]) -> Iterator[Reply]:
        """Answer requests as replies arrive from the actors.

        After a problem those under way are finished, and no more blocks are started.
        After a stop, an actor sends nothing more of its block.
        """
        import ray

        blocks, free = self._blocks(requests), list(self._actors)
        again: list[tuple[list[Request], int]] = []  # with the deaths over them
        # each stream's actor, what it has not answered, and the deaths over that
        under_way: dict[Any, tuple[Any, dict[int, Request], int]] = {}
        problem, stopping = "", False
        while True:
            while free and not problem and not stopping:
                part, deaths = again.pop() if again else (next(blocks, []), 0)
                if not part:
                    break
                actor, lacking = free.pop(), {r.request_id: r for r in part}
                stream = actor.answer.options(**self._how).remote(
                    part, self.answered_before, _SECONDS if self._is_free else 0
                )
                under_way[stream] = actor, lacking, deaths
            if not under_way:
                break
            if not stopping and not self._is_free and self.is_stopped():
                stopping = True
                ray.get([actor.stop.remote() for actor in self._actors])
            ready: Any = ray.wait([*under_way], timeout=_SECONDS)[0]
            for stream in ready:
                actor, lacking, deaths = under_way[stream]
                replies, said = [], ""
                try:
                    replies, said = ray.get(next(stream))
                # OutOfMemoryError is not a RayActorError
                except (StopIteration, ray.exceptions.RayError) as died:
                    free.append(actor)
                    del under_way[stream]
                    if isinstance(died, StopIteration):
                        continue
                    if deaths + 1 == _ATTEMPTS:
                        said = (
                            f"an actor died {_ATTEMPTS} times over one block, possibly "
                            f"out of memory ({one_line(str(died))[:200]}); see Ray's "
                            "logs"
                        )
                    elif lacking:
                        again.append(([*lacking.values()], deaths + 1))
                for reply in replies:
                    self.answered_before |= reply.finish != "error"
                    lacking.pop(reply.request_id, None)
                    yield reply
                problem = problem or said
        if problem:
            raise JudgeError(f"ray:{self.spec}: {problem}")

    def _blocks(self, requests: Iterable[Request]) -> Iterator[list[Request]]:
        """Cut a walk over requests into blocks, so that every actor gets several."""
        stream = iter(requests)
        while window := list(islice(stream, _WINDOW)):
            size = min(self.block, math.ceil(len(window) / (self.num_actors * _BLOCKS)))
            for start in range(0, len(window), size):
                yield window[start : start + size]

    def close(self) -> None:
        """End the actors, and Ray if it was started here."""
        import ray

        self._actors = []  # Ray ends an actor that nothing refers to
        if self._is_mine:
            ray.shutdown()
            self._is_mine = False


class _Actor:
    """A judge that is opened on first use; its errors are sent as text."""

    def __init__(self, spec: str, options: Options) -> None:
        # vLLM's engine needs no process of its own in an actor, which has one.
        os.environ.setdefault("VLLM_ENABLE_V1_MULTIPROCESSING", "0")
        self.open = cache(partial(open_judge, spec, **options))
        self.is_stopped = False

    def facts(self) -> tuple[Options, str]:
        try:
            judge = self.open()
        except Exception as problem:
            return {}, f"{type(problem).__name__}: {problem}"
        return {
            name: getattr(judge, name) for name in _FACTS if hasattr(judge, name)
        }, ""

    def stop(self) -> None:
        """Send nothing more of the block under way."""
        self.is_stopped = True

    def answer(
        self, requests: list[Request], answered_before: bool, seconds: float
    ) -> Iterator[Delivered]:
        """Deliver the replies to a block as they come, and a problem in the end.

        Replies that come within some `seconds` are delivered together: each delivery
        costs about what a small model takes for an answer.
        """
        replies: list[Reply] = []
        self.is_stopped, last = False, time.monotonic()
        try:
            judge: Any = self.open()
            judge.answered_before = answered_before or getattr(
                judge, "answered_before", False
            )
            for reply in judge.answer(
                takewhile(lambda _: not self.is_stopped, requests)
            ):
                replies.append(reply)
                if time.monotonic() - last >= seconds:
                    yield replies, ""
                    replies, last = [], time.monotonic()
        except Exception as problem:
            yield replies, f"{type(problem).__name__}: {problem}"
            return
        yield replies, ""


def _connect() -> tuple[Any, bool]:
    """Connect to a cluster, or start one; return Ray and whether it is ours."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # read when Ray is imported
    options: Options = {"log_to_driver": False, "logging_level": logging.ERROR}
    address = os.environ.get("RAY_ADDRESS") or "local"
    # as on macOS: else Ray takes an address that others can reach
    if address == "local":
        os.environ.setdefault("RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", "0")
        options |= {"include_dashboard": False, "_node_ip_address": "127.0.0.1"}
    try:
        import ray
    except ImportError:
        raise ImportError(
            "Ray is not installed: python -m pip install 'rubricnb[ray]'"
        ) from None
    if ray.is_initialized():
        return ray, False
    try:
        ray.init(address, **options)
    except (OSError, RuntimeError, ValueError) as problem:
        raise JudgeError(
            f"no Ray at {address} ({one_line(str(problem))[:200]}): start it with "
            "'ray start --head', or unset RAY_ADDRESS to start it here. If that "
            "command says that it asks for a token, set RAY_AUTH_MODE=token here, too"
        ) from None
    return ray, True
