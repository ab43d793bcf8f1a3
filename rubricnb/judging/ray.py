"""One judge on many GPUs or machines: requests as a Ray Dataset, a judge in every actor."""

from __future__ import annotations

import logging
import math
import os
import pickle
import sys
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import groupby, islice
from typing import Any

from rubricnb.judging.contract import Judge, Reply, Request
from rubricnb.judging.openai import JudgeError
from rubricnb.judging.registry import open_judge

_INSTALL = "python -m pip install 'rubricnb[ray]'"
_WINDOW = 65_536  # requests in one dataset: bounds the driver's memory and how long keys are leased
_BLOCKS = 4  # at least so many for each actor, so that none waits long for the last one
_ATTEMPTS = 4  # a block that ends its actor so often is at fault itself
_FACTS = ("slug", "source", "identity", "deterministic", "readouts", "host", "model")


class RayJudge:
    """Another judge, many times over, on the machines of a Ray cluster.

    The answers are those of that judge, and so are its slug and its identity: a run that was begun
    with ``vllm:MODEL`` goes on with ``ray:vllm:MODEL``. Every run opens the judge anew in each
    actor, so give it much to do at once.

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

    Examples
    --------
    >>> judge = RayJudge("simulated:unbiased", num_actors=1)  # doctest: +SKIP
    >>> judge.slug  # doctest: +SKIP
    'simulated:unbiased'
    """

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
        self._started = _connect(address)
        try:
            self.num_gpus, self.num_actors = _places(num_gpus, num_actors)
            for name, value in self._facts().items():
                setattr(self, name, value)
        except BaseException:
            self.close()
            raise
        self.concurrency = self.num_actors * block

    def answer(self, requests: Iterable[Request]) -> Iterator[Reply]:
        """Answer requests, a block as soon as its actor has done with it."""
        stream = iter(requests)
        while window := list(islice(stream, _WINDOW)):
            even = math.ceil(len(window) / (self.num_actors * _BLOCKS))
            yield from self._answer(blocks(window, min(self.block, even)))

    def close(self) -> None:
        """Stop Ray if it was started here."""
        import ray

        if self._started:
            ray.shutdown()
            self._started = False

    def _facts(self) -> dict[str, Any]:
        """What the judge says of itself; it is opened where the actors will run."""
        import ray

        places = {"num_cpus": 1, "num_gpus": self.num_gpus}
        try:
            return ray.get(ray.remote(_facts).options(**places).remote(self.spec, self.options))
        except ray.exceptions.RayTaskError as problem:
            raise JudgeError(f"ray:{self.spec}: {problem.cause}") from None

    def _answer(self, blocks: Iterable[list[Request]]) -> Iterator[Reply]:
        import ray.data

        rows = [{"requests": pickle.dumps(block)} for block in blocks]
        asked = ray.data.from_items(rows, override_num_blocks=len(rows))
        asked.context.enable_progress_bars = False
        with warnings.catch_warnings():  # without a limit such a block would be tried for ever
            warnings.simplefilter("ignore", ray.util.annotations.RayDeprecationWarning)
            answered = asked.map(
                _Actor,  # type: ignore[arg-type]  # its annotation forgets classes
                fn_constructor_args=(self.spec, self.options),
                compute=ray.data.ActorPoolStrategy(
                    size=min(self.num_actors, len(rows)), max_tasks_in_flight_per_actor=1
                ),
                num_cpus=1,
                num_gpus=self.num_gpus or None,
                max_task_retries=_ATTEMPTS - 1,
            )
        try:
            for batch in answered.iter_batches(batch_size=None, prefetch_batches=0):
                for problem in filter(None, batch["problem"]):
                    raise JudgeError(f"ray:{self.spec}: {problem}")
                for replies in batch["replies"]:
                    yield from pickle.loads(replies)
        except ray.exceptions.RayActorError as problem:
            raise JudgeError(
                f"ray:{self.spec}: an actor died {_ATTEMPTS} times over one block, perhaps for "
                f"want of memory ({str(problem).splitlines()[0]}); Ray's logs say more"
            ) from None


def blocks(requests: Iterable[Request], size: int) -> Iterator[list[Request]]:
    """Cut a walk over requests into blocks of at least `size`, never within a text.

    Examples
    --------
    >>> ask = [Request(i, "", (), (), (), "score", group=g) for i, g in enumerate("aaabcc")]
    >>> [[request.request_id for request in block] for block in blocks(ask, 2)]
    [[0, 1, 2], [3, 4, 5]]
    """
    block: list[Request] = []
    for _, group in groupby(requests, key=lambda request: request.group):
        block += group
        if len(block) >= size:
            yield block
            block = []
    if block:
        yield block


class _Actor:
    """A judge, opened at the first block; its messages travel as text, not as tracebacks."""

    def __init__(self, spec: str, options: dict[str, Any]) -> None:
        self.spec, self.options = spec, options
        self.judge: Judge | None = None

    def __call__(self, row: dict[str, Any]) -> dict[str, Any]:
        try:
            self.judge = self.judge or open_judge(self.spec, **self.options)
            replies = list(self.judge.answer(pickle.loads(row["requests"])))
        except (JudgeError, ValueError, ImportError, OSError) as problem:
            return {"replies": b"", "problem": str(problem)}
        return {"replies": pickle.dumps(replies), "problem": ""}


def _facts(spec: str, options: dict[str, Any]) -> dict[str, Any]:
    judge = open_judge(spec, **options)
    try:
        return {name: getattr(judge, name) for name in _FACTS if hasattr(judge, name)}
    finally:
        judge.close()


def _connect(address: str | None) -> bool:
    """Connect to a cluster, or start one here; returns whether there is something to stop."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # read when Ray is imported
    os.environ.setdefault("RAY_BACKEND_LOG_LEVEL", "fatal")
    try:
        import ray
        import ray.data
    except ImportError:
        raise ImportError(f"Ray is not installed: {_INSTALL}") from None
    logging.getLogger("ray.data").setLevel(logging.ERROR)
    if ray.is_initialized():
        return False
    address = address or os.environ.get("RAY_ADDRESS")
    options: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.ERROR}
    if not address:
        options |= {"include_dashboard": False, "_node_ip_address": "127.0.0.1"}
    try:
        with _silent():
            ray.init(address or "local", **options)
    except (ConnectionError, RuntimeError, ValueError) as problem:
        raise JudgeError(
            f"no Ray at {address or 'this machine'} ({str(problem).splitlines()[0]}): start it "
            "with 'ray start --head', or leave the address out"
        ) from None
    return True


@contextmanager
def _silent() -> Iterator[None]:
    """Keep from the page what Ray's other half prints past Python when it starts."""
    sys.stderr.flush()
    kept, nowhere = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(nowhere)


def _places(num_gpus: float | None, num_actors: int | None) -> tuple[float, int]:
    """GPUs of each actor, and the number of actors that fit into the cluster."""
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
