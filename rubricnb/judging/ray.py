"""One judge on many GPUs or machines: a judge in every actor of a Ray cluster."""

from __future__ import annotations

import logging
import math
import os
from collections.abc import Iterable, Iterator
from functools import cache, partial
from itertools import groupby, islice
from typing import Any

from rubricnb.judging.contract import Reply, Request
from rubricnb.judging.judge import open_judge
from rubricnb.judging.openai import JudgeError

_INSTALL = "python -m pip install 'rubricnb[ray]'"
_WINDOW = 65_536  # requests cut into blocks at once: bounds memory
_BLOCKS = 4  # at least this many blocks for each actor, so that none waits long for the last one
_ATTEMPTS = 4  # a block that ends its actor this often is itself at fault
_AT_ONCE = 30  # seconds in which a cluster with room starts its actors; each opens its judge later
_EXPLAINED = (JudgeError, ValueError, ImportError, OSError)
_FACTS = (
    "slug",
    "source",
    "identity",
    "deterministic",
    "readouts",
    "host",
    "model",
    "control_tokens",
)


class RayJudge:
    """Copies of one judge on the machines of a Ray cluster.

    The answers are those of that judge, and so are its slug and its identity: a run that was begun
    with ``vllm:MODEL`` goes on with ``ray:vllm:MODEL``. Each actor opens the judge at its first
    block and keeps it, from one run to the next, until `close`.

    Parameters
    ----------
    spec
        The judge in each actor.
    num_actors
        Default: one for every `num_gpus` GPUs of the cluster, or for every CPU if it has no GPU.
    num_gpus
        GPUs of each actor (with vLLM, its ``tensor_parallel_size``). Default: 1 if there are any.
    address
        A cluster's address, or ``auto`` for the one that runs here. Default: ``$RAY_ADDRESS``,
        else Ray is started on this machine and stopped by `close`.
    block
        An actor is given so many requests at once, or a few more: those that share a prefix stay
        together. What an actor that dies had in hand is asked again, and nothing else.
    options
        Go to the judge in each actor. Keys of endpoints do not: they are taken from the
        environment that Ray was started in. Limits, such as a rate, hold for each actor.

    Raises
    ------
    ImportError
        Ray is not installed.
    JudgeError
        There is no such cluster, it lacks the GPUs, or the judge cannot be opened there.

    Attributes
    ----------
    answered_before
        Whether answers show that this judge works, those of an earlier run or of another actor;
        every actor's judge is told.

    Examples
    --------
    >>> judge = RayJudge("simulated:unbiased", num_actors=1)  # doctest: +SKIP
    >>> judge.slug  # doctest: +SKIP
    'simulated:unbiased'
    """

    answered_before = False

    def __init__(
        self,
        spec: str,
        *,
        num_actors: int | None = None,
        num_gpus: float | None = None,
        address: str | None = None,
        block: int = 1024,
        **options: Any,
    ) -> None:
        self.spec, self.options, self.block = spec, options, block
        self._actors: list[Any] = []
        self._started = _connect(address)
        try:
            self.num_gpus, self.num_actors = _actor_resources(num_gpus, num_actors)
            for name, value in self._facts().items():
                setattr(self, name, value)
        except BaseException:
            self.close()
            raise
        self.concurrency = self.num_actors * block

    def answer(self, requests: Iterable[Request]) -> Iterator[Reply]:
        """Answer requests in blocks, each as soon as its actor has finished."""
        from ray.util import ActorPool

        stream = iter(requests)
        try:
            while window := list(islice(stream, _WINDOW)):
                even = math.ceil(len(window) / (self.num_actors * _BLOCKS))
                self._start()
                asked = blocks(window, min(self.block, even))
                yield from self._answers(ActorPool(self._actors), asked)
        except BaseException:  # an engine may be dead, and answers under way are not needed
            self._end()
            raise

    def close(self) -> None:
        """End the actors, and Ray if it was started here."""
        import ray

        self._end()
        if self._started:
            ray.shutdown()
            self._started = False

    def _facts(self) -> dict[str, Any]:
        """Ask the judge, in the actor where it will run, for its description."""
        import ray

        self._start()
        facts, problem = ray.get(self._actors[0].facts.remote())
        if problem:
            raise JudgeError(f"ray:{self.spec}: {problem}")
        return dict(facts)

    def _answers(self, pool: Any, asked: Iterator[list[Request]]) -> Iterator[Reply]:
        """Answer blocks in turn; after a problem, finish the blocks under way and start no more.

        What was answered before a problem is paid for, in its block and in the others.
        """
        import ray

        problem = ""
        while True:
            while not problem and pool.has_free() and (block := next(asked, None)) is not None:
                what = block, self.answered_before
                pool.submit(lambda actor, what: actor.answer.remote(*what), what)
            if not pool.has_next():
                break
            try:
                replies, said = pool.get_next_unordered()
            except ray.exceptions.RayError as died:  # OutOfMemoryError is no RayActorError
                why = (str(died).strip() or type(died).__name__).splitlines()[0]
                replies = []
                said = (
                    f"an actor died {_ATTEMPTS} times over one block, possibly out of memory "
                    f"({why}); see Ray's logs"
                )
            for reply in replies:
                self.answered_before |= reply.finish != "error"
                yield reply
            problem = problem or said
        if problem:
            raise JudgeError(f"ray:{self.spec}: {problem}")

    def _start(self) -> None:
        """Start the actors, unless they run; one that dies is started again."""
        import ray

        if not self._actors:
            places = {"num_cpus": 1, "num_gpus": self.num_gpus}
            actor = ray.remote(_Actor).options(
                max_restarts=-1, max_task_retries=_ATTEMPTS - 1, **places
            )
            self._actors = [actor.remote(self.spec, self.options) for _ in range(self.num_actors)]
            ready = [actor.__ray_ready__.remote() for actor in self._actors]
            _, waiting = ray.wait(ready, num_returns=len(ready), timeout=_AT_ONCE)
            if waiting:
                self._say_who_waits(len(waiting))

    def _say_who_waits(self, waiting: int) -> None:
        """Print that the cluster is busy, since the run waits for it."""
        import ray

        what = "GPU" if self.num_gpus else "CPU"
        free, there = ray.available_resources().get(what, 0), ray.cluster_resources().get(what, 0)
        print(
            f"ray:{self.spec}: {waiting} of {self.num_actors} actors wait for resources: {free:g} "
            "of "
            f"{there:g} {what}s are free, each needs {self.num_gpus or 1:g} ('ray status' shows "
            "what uses the others); their share of the requests waits with them",
            flush=True,
        )

    def _end(self) -> None:
        import ray

        if ray.is_initialized():
            for actor in self._actors:
                ray.kill(actor)
        self._actors = []


def blocks(requests: Iterable[Request], size: int) -> Iterator[list[Request]]:
    """Cut a walk over requests into blocks of at least `size`, never within a text."""
    block: list[Request] = []
    for _, group in groupby(requests, key=lambda request: request.group):
        block += group
        if len(block) >= size:
            yield block
            block = []
    if block:
        yield block


class _Actor:
    """A judge that is opened on first use; its errors are sent as text, not as tracebacks."""

    def __init__(self, spec: str, options: dict[str, Any]) -> None:
        self.open = cache(partial(open_judge, spec, **options))

    def facts(self) -> tuple[dict[str, Any], str]:
        try:
            judge = self.open()
        except Exception as problem:
            return {}, _problem_text(problem)
        return {name: getattr(judge, name) for name in _FACTS if hasattr(judge, name)}, ""

    def answer(
        self, requests: list[Request], answered_before: bool = False
    ) -> tuple[list[Reply], str]:
        """Return the replies to a block, all those before a problem, and the problem."""
        replies: list[Reply] = []
        try:
            judge = self.open()
            if answered_before and hasattr(judge, "answered_before"):
                judge.answered_before = True
            replies.extend(judge.answer(requests))
        except Exception as problem:
            return replies, _problem_text(problem)
        return replies, ""


def _problem_text(problem: Exception) -> str:
    """Return the message of a problem, with its type unless it was written for users."""
    return (
        str(problem) if isinstance(problem, _EXPLAINED) else f"{type(problem).__name__}: {problem}"
    )


def _connect(address: str | None) -> bool:
    """Connect to a cluster, or start one here; returns whether there is something to stop."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # read when Ray is imported
    address = address or os.environ.get("RAY_ADDRESS")
    if not address:  # as on macOS: else Ray trades loopback for an address that others can reach
        os.environ.setdefault("RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", "0")
    try:
        import ray
    except ImportError:
        raise ImportError(f"Ray is not installed: {_INSTALL}") from None
    if ray.is_initialized():
        return False
    options: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.ERROR}
    if not address:
        options |= {"include_dashboard": False, "_node_ip_address": "127.0.0.1"}
    try:
        ray.init(address or "local", **options)
    except (ConnectionError, RuntimeError, ValueError) as problem:
        raise JudgeError(
            f"no Ray at {address or 'this machine'} ({str(problem).splitlines()[0]}): start it "
            "with 'ray start --head', or leave address out"
        ) from None
    return True


def _actor_resources(num_gpus: float | None, num_actors: int | None) -> tuple[float, int]:
    """Return the GPUs of each actor, and how many actors fit into the cluster."""
    import ray

    there = ray.cluster_resources()
    gpus = there.get("GPU", 0)
    each = min(1, gpus) if num_gpus is None else num_gpus
    room = int(gpus / each if each else there.get("CPU", 1))
    if room < (num_actors or 1):
        raise JudgeError(
            f"{num_actors or 1} actors of {each:g} GPUs do not fit: the cluster has {gpus:g} GPUs "
            f"and {there.get('CPU', 0):g} CPUs; ask for fewer with num_actors= or num_gpus="
        )
    return each, num_actors or room
