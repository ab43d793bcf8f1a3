"""Decide which items reach a cut, asking each only as often as it needs."""

from __future__ import annotations

import numpy as np
import pandas as pd

from rubricnb.core.frames import CONDITIONS, Requests
from rubricnb.core.judge import JudgeLike, judging
from rubricnb.core.permutation import decode
from rubricnb.core.plan import with_readout
from rubricnb.core.prices import Budget
from rubricnb.core.run import run
from rubricnb.core.store import StoreLike
from rubricnb.core.support.counting import binned
from rubricnb.core.support.hashing import hash64, mix64
from rubricnb.core.support.types import IntArray

_OF_ITEM = (
    "judge",
    "dataset",
    "item_id",
    "group_id",
    "cluster_id",
    "candidate",
    "criterion",
    "design",
    *CONDITIONS,
)


def decide(
    requests: Requests,
    judge: JudgeLike,
    *,
    cut: int,
    lead: int = 2,
    most: int = 9,
    store: StoreLike = None,
    budget: Budget | None = None,
) -> pd.DataFrame:
    """Decide whether each item's score reaches a cut, with as few reads as needed.

    The reads of an item come in an order drawn for it. Each is a vote for or against;
    asking ends once one side leads by `lead` votes, or the rest of the `most` reads
    could not change the outcome. Answers go through the store as in `run`: what was
    stopped goes on where it was.

    Parameters
    ----------
    requests
        From `plan`: several reads of each item, best in different orders
        (``balanced(5)``). A greedy judge answers copies of one ordering alike, and
        copies are no second opinion.
    judge
        As in `run`; a spec is opened once, if something must be asked.
    cut
        A score that counts as high, and so do all above it.
    lead
        Votes by which a side must lead. ``lead=most``: the majority of `most` reads,
        which are asked only until it is certain.
    most
        Reads of an item at most.
    store
        As in `run`.
    budget
        What all of it may cost, as in `run`.

    Returns
    -------
    DataFrame
        One row an item, design and condition: ``decision`` (``yes``, ``no``, or
        ``undecided`` when the reads are used up at a tie); ``yes, no, invalid`` (reads
        without a score: they cost a call and cast no vote); ``calls``, their sum.

    Raises
    ------
    ValueError
        A cut that all or no scores reach, `lead` below 1 or above `most`, an item
        planned with fewer than `lead` reads, or requests of several criteria.
    RunInterrupted, JudgeError, StoreError
        As in `run`.

    Notes
    -----
    Wald's sequential test (1945) of a share above against one below a half, cut off at
    `most`. For a mean score there is no such saving.

    Examples
    --------
    >>> import rubricnb as rb
    >>> items = rb.load("minibench", n_items=20)
    >>> requests = rb.plan(items, rb.balanced(5), readout="score")
    >>> found = decide(requests, "simulated:first-biased", cut=4, store=":memory:")
    ... # doctest: +ELLIPSIS
    simulated:first-biased: 40 of 40 in ...
    >>> int(found.calls.min()), bool((found.calls <= 9).all())
    (2, True)
    """
    _check(requests, cut, lead, most)
    with judging(judge) as described:
        requests = with_readout(requests, described)
        names = [name for name in _OF_ITEM if name in requests]
        unit = requests.groupby(names, observed=True, sort=False).ngroup().to_numpy()
        planned = _planned_reads(requests, unit, lead)
        drawn = pd.Series(
            mix64(requests["request_id"].to_numpy(np.uint64), hash64([0]))
        )
        turn = drawn.groupby(unit).rank("first").to_numpy() - 1
        left = np.minimum(planned, most)
        asked, ahead, votes = (np.zeros(len(planned), np.int64) for _ in range(3))
        found = []
        while (more := _needed(np.abs(ahead), left, lead)).any():
            due = (turn >= asked[unit]) & (turn < (asked + more)[unit])
            reads = run(requests[due], described, store, budget=budget).assign(
                unit=unit[due]
            )
            score = reads["score"].to_numpy(np.float64, na_value=np.nan)
            vote = np.select([score >= cut, score < cut], [1, -1], 0)
            np.add.at(ahead, unit[due], vote)
            np.add.at(votes, unit[due], np.abs(vote))
            asked, left = asked + more, left - more
            found.append(reads.drop_duplicates("unit"))
    if not found:
        return pd.DataFrame(
            columns=[*names, "decision", "yes", "no", "invalid", "calls"]
        )
    rows = (
        pd.concat(found).drop_duplicates("unit").sort_values("unit", ignore_index=True)
    )
    return rows[[name for name in _OF_ITEM if name in rows]].assign(
        decision=np.select([ahead > 0, ahead < 0], ["yes", "no"], "undecided"),
        yes=(votes + ahead) // 2,
        no=(votes - ahead) // 2,
        invalid=asked - votes,
        calls=asked,
    )


def _planned_reads(requests: Requests, unit: IntArray, lead: int) -> IntArray:
    """Count the reads of each item; refuse a plan with fewer than a lead needs."""
    planned = binned(unit)
    if planned.min(initial=lead) < lead:
        item = requests["item_id"].iloc[int(np.argmax(unit == planned.argmin()))]
        raise ValueError(
            f"item {item!r} is planned with {planned.min()} reads, but lead = "
            f"{lead} needs {lead}: use a design with more reads, such as "
            f"balanced({requests['n_options'].iloc[0]})"
        )
    return planned


def _check(requests: Requests, cut: int, lead: int, most: int) -> None:
    if "criterion_ordering" in requests:
        raise ValueError(
            "each answer scores several criteria: plan each criterion with "
            "rubricnb.plan"
        )
    if not 1 <= lead <= most:
        raise ValueError(
            f"lead = {lead}, most = {most}: lead must be between 1 and most"
        )
    for ordering in requests["ordering"].unique():
        scores = decode(ordering)
        lowest, highest = min(scores), max(scores)
        if not lowest < cut <= highest:
            raise ValueError(
                f"cut = {cut}: scores run from {lowest} to {highest}, so "
                f"{'all' if cut <= lowest else 'none'} would reach it"
            )


def _needed(ahead: IntArray, left: IntArray, lead: int) -> IntArray:
    """The fewest further reads that could settle each item; 0 where it is settled."""
    to_certainty = (left - ahead) // 2 + 1
    return np.minimum.reduce([lead - ahead, to_certainty, left]).clip(0)
