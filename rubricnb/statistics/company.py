"""Does a judge give a request the same answer again, in other company?"""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence

import numpy as np
import pandas as pd

from rubricnb.core.contract import Request
from rubricnb.core.estimates import intervals as infer
from rubricnb.core.estimates.reasons import because
from rubricnb.core.frames import Requests
from rubricnb.core.judge import Judge, JudgeLike, judging
from rubricnb.core.judgments import Rows
from rubricnb.core.plan import with_readout
from rubricnb.core.rendering import rendered
from rubricnb.core.support.types import Row


def repeats(
    requests: Requests,
    judge: JudgeLike,
    *,
    batch: int = 8,
    alone: int = 40,
    seed: int = 0,
) -> pd.DataFrame:
    """Ask a plan again: in its order, shuffled, a few at once, and one at a time.

    An engine that computes requests together may round differently in other company,
    so that a judge at temperature 0 repeats its answers only as long as everything
    around them repeats. Nothing is looked up or stored.

    Parameters
    ----------
    requests
        From `plan`.
    judge
        What `open_judge` takes or returns.
    batch
        Requests in the engine at once where they are a few.
    alone
        Requests that are asked one at a time: drawn at random, at most so many.
    seed
        Of the draws.

    Returns
    -------
    DataFrame
        One row a ``way`` (``again``, ``shuffled``, ``few at once``, ``alone``), against
        the first answers: the shares of answers that are the same bit for bit
        (``identical``: text and probabilities) and with another score (``changed``;
        one-sided scores count), and ``shift``, the mean change of the expected score
        (or score), each with its interval over clusters; ``largest``, the largest
        change of a probability; ``n_items`` (answers), ``n_clusters``, ``n_lost``
        (without a score on either side), ``reason``.

    Examples
    --------
    >>> import rubricnb as rb
    >>> items = rb.load("minibench", n_items=10)
    >>> requests = rb.plan(items, rb.fixed(5, 1), readout="feedback")
    >>> table = repeats(requests, "simulated:unbiased", alone=2)
    >>> table[["way", "identical", "n_items"]]
               way  identical  n_items
    0        again        1.0       10
    1     shuffled        1.0       10
    2  few at once        1.0       10
    3        alone        1.0        2
    """
    draw = random.Random(seed)
    with judging(judge) as described:
        requests = with_readout(requests, described)
        described = described.opened()
        asked = list(rendered(requests, described.engine, walked=True))
        first = _answers(described, requests, [asked])
        shuffled = draw.sample(asked, len(asked))
        ways: dict[str, Iterable[Sequence[Request]]] = {
            "again": [asked],
            "shuffled": [shuffled],
            "few at once": _parts(shuffled, batch),
            "alone": _parts(shuffled[:alone], 1),
        }
        return pd.DataFrame(
            {"way": way, **_compared(first, _answers(described, requests, parts))}
            for way, parts in ways.items()
        )


def _parts(asked: list[Request], size: int) -> list[list[Request]]:
    return [asked[i : i + size] for i in range(0, len(asked), size)]


def _answers(
    judge: Judge, requests: Requests, parts: Iterable[Sequence[Request]]
) -> pd.DataFrame:
    """Ask the parts one after the other."""
    rows, replies = Rows(requests, judge.engine), {}
    for part in parts:
        of = {request.request_id: request for request in part}
        for reply in judge.engine.answer(part):
            rows.add(of[reply.request_id], reply)
            replies[reply.request_id] = reply.text, reply.probabilities
    found = rows.frame()
    found["reply"] = found["request_id"].map(replies)
    return found.set_index(["request_id", "criterion"])


def _compared(first: pd.DataFrame, again: pd.DataFrame) -> Row:
    first = first.loc[again.index].set_axis(again.index)
    cluster = pd.factorize(again["cluster_id"])[0]
    chances = [name for name in again if name.startswith("probability_")]
    value = "expected_score" if chances else "score"
    rates = {
        "identical": first["reply"] == again["reply"],
        "changed": first["score"].fillna(0) != again["score"].fillna(0),
    }
    row: Row = {}
    for name, share in rates.items():
        values = share.to_numpy(float)
        row |= infer.named_mean(name, values, cluster, (0, 1), infer.UNTESTED)
    shift = (again[value] - first[value]).to_numpy(float)
    row |= infer.named_mean("shift", shift, cluster)
    row["largest"] = (again[chances] - first[chances]).abs().max().max()
    lost = first["score"].isna() & again["score"].isna()
    row |= infer.counted(np.ones(len(again), bool), cluster)
    return row | {"n_lost": int(lost.sum()), **because(infer.few_clusters(cluster))}
