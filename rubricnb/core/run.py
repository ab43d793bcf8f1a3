"""From requests to judgments: recorded answers, stored answers, then the judge.

Prompts are rendered one by one and looked up; only the missing ones go to the judge,
and every reply is stored before it is read. So a better parser reads old answers again
without asking anything, and a plan of millions of requests never holds millions of
prompts.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial

import pandas as pd

from rubricnb.core.contract import Reply, Request
from rubricnb.core.cost import sample
from rubricnb.core.frames import Items, Requests
from rubricnb.core.judge import Judge, JudgeLike, PriceLike, judging
from rubricnb.core.judgments import Rows, join
from rubricnb.core.plan import check_readout, with_readout
from rubricnb.core.prices import Budget
from rubricnb.core.rendering import inert_for, key_of, rendered
from rubricnb.core.results import recorded_judgments
from rubricnb.core.session import RunInterrupted, Session
from rubricnb.core.store import StoreLike, open_store

__all__ = ["RunInterrupted", "ask", "rendered", "run"]


def run(
    requests: Requests,
    judge: JudgeLike,
    store: StoreLike = None,
    fresh: bool | float = False,
    max_calls: int | None = None,
    max_cost: float | None = None,
    price: PriceLike | None = None,
    budget: Budget | None = None,
) -> pd.DataFrame:
    """Ask a judge, and read its answers.

    Answers are looked for in the recorded runs (``results/``), then in the store; only
    what stands in neither is asked. So a run that was stopped goes on where it was:
    after Ctrl-C or SIGTERM, which let it wait for what is under way, nothing is asked
    again; after a second one, a kill or a crash, at most what was in flight. What
    failed is asked once more at the end. Before texts leave this machine, a line says
    where they go, how many, and for how much.

    Parameters
    ----------
    requests
        From `plan`, or a part of such a frame.
    judge
        What `open_judge` takes or returns; a spec is opened only if something must be
        asked.
    store
        A `Store` or the path of one. Default: ``$RUBRICNB_STORE``, else the user's
        cache folder.
    fresh
        Ask everything again; neither recorded nor stored answers are used. A number
        goes on with the run that has named it when it was stopped. If the bundled judge
        is not installed, as in a browser, its recorded answers to all these requests
        are returned, and a line says so.
    max_calls, max_cost
        Stop cleanly after this many requests, or before the next might take what this
        run has cost beyond so many US dollars.
    price
        US dollars per million tokens: input, cached input, output. Default: as in
        `estimate`.
    budget
        An allowance for several runs together, instead of `max_calls` and `max_cost`.

    Returns
    -------
    DataFrame
        Judgments (`rubricnb.core.frames.JUDGMENTS`), in the order of the requests;
        ``source`` says which are recorded, live or simulated.

    Raises
    ------
    RunInterrupted
        At a limit, on Ctrl-C or SIGTERM; says how to go on.
    ValueError
        A request appears twice in the plan, or `max_cost` for a judge whose price is
        not known.
    JudgeError, StoreError
        The judge or the store cannot go on; the message says what to do.

    Examples
    --------
    >>> import rubricnb as rb
    >>> items = rb.load("minibench", n_items=5)
    >>> requests = rb.plan(items, rb.balanced(5), readout="feedback")
    >>> judgments = rb.run(requests, "simulated:first-biased", store=":memory:")
    ... # doctest: +ELLIPSIS
    simulated:first-biased: 50 of 50 in ...
    >>> judgments.status.unique().tolist(), bool(judgments.score.between(1, 5).all())
    (['ok'], True)
    """
    if getattr(requests, "source", None) is None:
        raise ValueError("these requests have no items: make them with rubricnb.plan")
    if twice := int(requests["request_id"].duplicated().sum()):
        raise ValueError(
            f"{twice:,} requests appear twice in the plan: pass "
            "requests.drop_duplicates('request_id'), or repeat reads with "
            "rubricnb.fixed(n, k)"
        )
    with judging(judge, price) as described:
        requests = with_readout(requests, described)
        recorded_rows, to_ask = _recorded(described, requests, fresh)
        if len(to_ask):
            identity = described.identity
            try:
                described = described.opened()
            except ImportError as problem:
                recorded_rows, to_ask = _instead(described, requests, fresh, problem)
            # now one sees which recorded answers are its own
            if described.identity != identity:
                recorded_rows, to_ask = _recorded(described, requests, fresh)
        live = pd.DataFrame()
        if len(to_ask):
            rows = Rows(to_ask, described.engine)
            with open_store(store) as opened_store:
                session = Session(
                    described,
                    opened_store,
                    fresh,
                    budget or Budget(max_calls, max_cost),
                )
                if len(recorded_rows):
                    session.vouch()
                part, scale = sample(to_ask)
                session.announce(rendered(part, session.engine), scale)
                walked = partial(rendered, to_ask, session.engine, walked=True)
                session.fill(walked, len(to_ask), rows.add)
            live = rows.frame()
            for why in _doubts(live, rows, described, requests.source):
                print(f"{described.slug}: {why}", flush=True)
    return join(requests, recorded_rows, live)


def _doubts(
    live: pd.DataFrame, rows: Rows, judge: Judge, items: Items
) -> Iterator[str]:
    """Yield what is wrong with the answers as a whole."""
    if (live["status"] == "unparsed").all():
        yield f"no score in any of {len(live):,} answers, such as {rows.example!r}"
    doubts = getattr(judge.engine, "doubts", None)
    if doubts is not None:
        yield from doubts(live, items)


def _recorded(
    judge: Judge, requests: Requests, fresh: bool | float
) -> tuple[pd.DataFrame, Requests]:
    """Return the recorded answers, and the requests that have none."""
    known = pd.DataFrame() if fresh else recorded_judgments(judge, requests)
    if known.empty:
        return known, requests
    return known, requests[~requests["request_id"].isin(known["request_id"].unique())]


def _instead(
    judge: Judge, requests: Requests, fresh: bool | float, problem: ImportError
) -> tuple[pd.DataFrame, Requests]:
    """Return the recorded answers of a judge that is not installed, and say so.

    Raises
    ------
    ImportError
        The same problem, if a request has no recorded answer.
    """
    known, missing = _recorded(judge, requests, False)
    if not fresh or len(missing):
        raise problem
    why = str(problem).partition(":")[0]
    print(f"{judge.slug}: {why}, so these are its recorded answers", flush=True)
    return known, missing


def ask(
    requests: Sequence[Request],
    judge: JudgeLike,
    store: StoreLike = None,
    fresh: bool | float = False,
    budget: Budget | None = None,
) -> list[Reply]:
    """Ask a judge your own requests, through the store.

    For whatever does not come from `plan`: a rubric to be compiled, a reference to be
    written, a checklist to be filled in. As in `run`, an answer in the store is never
    asked again.

    Parameters
    ----------
    requests
        Their ``request_id`` and ``key`` are ignored. Those that differ only in
        `replicate` are answered separately, except greedy ones by a deterministic
        judge.
    judge, store, fresh, budget
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
    >>> from rubricnb.core.contract import Message
    >>> from rubricnb.core.judge import open_judge
    >>> def echo(messages):
    ...     return messages[0]["content"]
    >>> request = Request(0, "", (Message("user", "Fine."),), (), (), "feedback")
    >>> ask([request], open_judge(echo), ":memory:")[0].text  # doctest: +ELLIPSIS
    echo: 1 of 1 in ...
    'Fine.'
    """
    with judging(judge) as described, open_store(store) as kept:
        for request in requests:
            check_readout(described.slug, described.readouts, request.readout)
        session = Session(described.opened(), kept, fresh, budget or Budget())
        engine = session.engine
        keyed = [
            replace(r, request_id=i, key=key_of(r, engine, engine.deterministic))
            for i, r in enumerate((inert_for(r, engine) for r in requests), 1)
        ]
        replies: dict[int, Reply] = {}

        def receive(request: Request, reply: Reply) -> None:
            replies[request.request_id] = replace(reply, request_id=request.request_id)

        walked = sorted(keyed, key=lambda r: [m.content for m in r.messages])
        session.announce(keyed)
        session.fill(lambda: walked, len(keyed), receive)
    return [replies[r.request_id] for r in keyed]
