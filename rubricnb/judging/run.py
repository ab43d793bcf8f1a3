"""From requests and a judge to judgments: recorded answers, stored answers, then the judge.

Two passes. The first makes sure that every request has a stored reply: prompts are rendered one by
one, looked up, and only the missing ones go to the judge. The second reads the replies, so a better
parser can read old answers again without asking anything.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from rubricnb.frames import JUDGMENTS, Items, Requests
from rubricnb.hashing import hash64, mix64
from rubricnb.judging.contract import Judge, Message, Readout, Reply, Request
from rubricnb.judging.plan import request_ids
from rubricnb.judging.progress import Progress
from rubricnb.judging.readout import Reading, read
from rubricnb.judging.results import recorded_judgments
from rubricnb.judging.store import Store
from rubricnb.permutation import decode
from rubricnb.prompts import PLACEBO_EDITS, render

_BLOCK = 256  # requests rendered and looked up at once
_POLL = 0.2  # seconds between looks at what another run is asking


class RunInterrupted(RuntimeError):
    """A run stopped early, at a budget or on Ctrl-C; what it had is stored."""


def run(
    requests: Requests,
    judge: Judge | str,
    store: Store | str | Path | None = None,
    fresh: bool = False,
    collect: bool = True,
    force_replicates: bool = False,
    max_calls: int | None = None,
) -> pd.DataFrame:
    """Ask a judge, and read its answers.

    Answers are looked for in the recorded runs (``results/``), then in the store; only what stands
    in neither is asked. So a run that was stopped, in whatever way, goes on where it was.

    Parameters
    ----------
    requests
        From `plan` or `plan_criteria`, or a part of such a frame.
    judge
        From `open_judge`, or its spec; a spec is opened only if something must be asked.
    store
        A `Store` or the path of one. Default: ``$RUBRICNB_STORE``, else the user's cache folder.
    fresh
        Ask everything again; neither recorded nor stored answers are used.
    collect
        False: only fill the store, and return an empty frame.
    force_replicates
        Ask a deterministic judge a repeated prompt again instead of copying its answer.
    max_calls
        Stop cleanly after this many requests.

    Returns
    -------
    DataFrame
        Judgments (`rubricnb.frames.JUDGMENTS`), in the order of the requests; ``source`` says
        which are recorded, live or simulated.

    Raises
    ------
    RunInterrupted
        At `max_calls` or on Ctrl-C; says how far it came. Run the same again to go on.
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
    known = pd.DataFrame() if fresh else recorded_judgments(judge, requests)
    to_ask = requests
    if len(known):
        to_ask = requests[~requests["request_id"].isin(known["request_id"].unique())]
    if len(to_ask):
        with ExitStack() as stack:
            if isinstance(judge, str):
                from rubricnb.judging.registry import open_judge

                judge = open_judge(judge)
                stack.callback(judge.close)
            if not isinstance(store, Store):
                store = stack.enter_context(Store(store))
            asked = _Asking(
                lambda: rendered(to_ask, judge, force_replicates),
                len(to_ask), judge, store, fresh, max_calls,
            )  # fmt: skip
            asked.fill()
            live = _judgments(to_ask, judge, asked.replies()) if collect else pd.DataFrame()
    else:
        live = pd.DataFrame()
    return _join(requests, known, live) if collect else pd.DataFrame()


def rendered(requests: Requests, judge: Judge, force_replicates: bool = False) -> Iterator[Request]:
    """Render requests one by one, each with the key of everything that changes its answer.

    Parameters
    ----------
    requests
        The plan, with its items as ``.source``.
    judge
        Gives the identity that goes into the keys.
    force_replicates
        Give every replicate of a greedy request to a deterministic judge a key of its own.

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
    source = _Source(requests)
    for row in requests.itertuples(index=False):
        request = source.request(row)
        replicate = request.replicate if force_replicates else _replicate(request, judge)
        yield replace(request, key=_key(request, judge, replicate))


def ask(
    requests: Sequence[Request],
    judge: Judge,
    store: Store | str | Path | None = None,
    fresh: bool = False,
    max_calls: int | None = None,
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
    store, fresh, max_calls
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
        for i, r in enumerate(requests, 1)
    ]
    with ExitStack() as stack:
        if not isinstance(store, Store):
            store = stack.enter_context(Store(store))
        asked = _Asking(lambda: iter(keyed), len(keyed), judge, store, fresh, max_calls)
        asked.fill()
        return [replace(reply, request_id=r.request_id) for r, reply in asked.replies()]


class _Asking:
    """Rendered requests on their way: what is stored, what is asked, what came back."""

    def __init__(
        self,
        requests: Callable[[], Iterator[Request]],
        count: int,
        judge: Judge,
        store: Store,
        fresh: bool,
        max_calls: int | None,
    ) -> None:
        self.requests, self.count, self.judge, self.store = requests, count, judge, store
        self.max_calls = max_calls
        self.started = time.time()
        self.since = self.started if fresh else 0.0
        self.under_way: dict[int, str] = {}  # request_id → key of what the judge is answering
        self.asked = 0
        self.out_of_budget = False

    def fill(self) -> None:
        """First pass: a stored reply for every request."""
        tokens = _Tokens()
        try:
            with Progress(self.count, self.judge.slug) as progress:
                for reply in self.judge.answer(self._missing(progress)):
                    self.store.put(self.under_way.pop(reply.request_id), self.judge.slug, reply)
                    progress.step(tokens.add(reply))
        except KeyboardInterrupt:
            raise RunInterrupted(self._how_far("stopped by Ctrl-C")) from None
        finally:
            self.store.release()
        if self.out_of_budget:
            raise RunInterrupted(self._how_far(f"stopped after {self.max_calls:,} calls"))

    def replies(self) -> Iterator[tuple[Request, Reply]]:
        """Second pass: every request with its stored reply."""
        for block in _blocks(self.requests()):
            replies = self.store.get(list({r.key for r in block}))
            for request in block:
                yield request, replies[request.key]

    def _missing(self, progress: Progress) -> Iterator[Request]:
        """Requests without a stored reply, each key once; what another run asks comes last."""
        others: list[Request] = []
        for block in _blocks(self.requests()):
            keys = [r.key for r in block]
            seen = self.store.answered(keys, self.since, self.started)
            seen |= set(self.under_way.values())
            mine = self.store.claim([k for k in keys if k not in seen])
            for request in block:
                if request.key in seen:
                    progress.step()
                elif request.key not in mine:
                    others.append(request)
                elif not self._affordable():
                    return
                else:
                    seen.add(request.key)
                    yield self._ask(request)
        yield from self._after_others(others, progress)

    def _after_others(self, waiting: list[Request], progress: Progress) -> Iterator[Request]:
        """Wait for what another run on this store is asking; ask what it did not finish."""
        while waiting:
            keys = [r.key for r in waiting]
            stored = self.store.answered(keys, self.since, self.started)
            mine = self.store.claim([k for k in keys if k not in stored])
            still = []
            for request in waiting:
                if request.key in stored:
                    progress.step()
                elif request.key not in mine:
                    still.append(request)
                elif not self._affordable():
                    return
                else:
                    yield self._ask(request)
            if waiting := still:
                time.sleep(_POLL)

    def _affordable(self) -> bool:
        self.out_of_budget = self.max_calls is not None and self.asked >= self.max_calls
        return not self.out_of_budget

    def _ask(self, request: Request) -> Request:
        self.asked += 1
        self.under_way[request.request_id] = request.key
        return request

    def _how_far(self, why: str) -> str:
        return (
            f"{why}: every answer so far is kept in {self.store.path}; "
            "run the same again to go on from here"
        )


@dataclass
class _Tokens:
    """Sums for the line behind the progress."""

    sent: int = 0
    cached: int = 0
    failed: int = 0

    def add(self, reply: Reply) -> str:
        self.sent += reply.prompt_tokens
        self.cached += reply.cached_tokens
        self.failed += reply.finish == "error"
        parts = []
        if self.sent:
            parts.append(f"{self.cached / self.sent:.0%} of {self.sent:,} tokens from the cache")
        if self.failed:
            parts.append(f"{self.failed:,} failed")
        return ", ".join(parts)


class _Source:
    """What requests are rendered from: items and rubrics, ready to look up."""

    def __init__(self, requests: Requests) -> None:
        from rubricnb.judging.simulated import option_quality, wording

        items = requests.source
        self.items: Items = items
        self.wording = iter(wording(requests))
        self.records = dict(zip(items["item_id"], items.itertuples(), strict=True))
        self.of_text: dict[str, list[str]] = {}
        for text, item in zip(items["text_id"], items["item_id"], strict=True):
            self.of_text.setdefault(text, []).append(item)
        self.quality = {
            n: dict(zip(items["item_id"], option_quality(items, n), strict=True))
            for n in requests["n_options"].unique().tolist()
        }
        self.rubrics: dict[tuple[str, int], dict[str, tuple[str, dict[int, str]]]] = {}

    def request(self, row: Any) -> Request:
        """Render one row of the plan; its key is still empty."""
        if row.template == "criteria":
            return self._criteria(row)
        item = self.records[row.item_id]
        ordering = decode(row.ordering)
        definition, descriptions = self._rubric(row, item.rubric_id)
        reference, reference_score = _reference(item, row)
        placebo = row.design == "placebo"
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
            edits=PLACEBO_EDITS[row.ordering_index - 1] if placebo else frozenset(),
        )
        return self._request(
            row,
            prompt,
            item,
            item_id=row.item_id,
            criterion=item.criterion,
            ordering=ordering,
            labels=row.labels,
            reference_score=reference_score,
            quality=_known(self.quality[row.n_options][row.item_id]),
        )

    def _criteria(self, row: Any) -> Request:
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
            criteria=[(s.criterion.capitalize(), self._rubric(row, s.rubric_id)[0]) for s in shown],
        )
        qualities = self.quality[row.n_options]
        return self._request(
            row,
            prompt,
            shown[0],
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
            wording=int(next(self.wording)),
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


def _judgments(
    requests: Requests, judge: Judge, replies: Iterable[tuple[Request, Reply]]
) -> pd.DataFrame:
    rows = _Rows(requests, judge)
    for request, reply in replies:
        rows.add(request, reply)
    return rows.frame()


class _Rows:
    """Columns of the judgments, filled reply by reply."""

    def __init__(self, requests: Requests, judge: Judge) -> None:
        self.requests, self.judge = requests, judge
        self.index: list[int] = []  # row of the requests
        self.columns: dict[str, list[Any]] = {
            name: []
            for name in (
                "key", "criterion", "item", "criterion_position", "status", "score", "position",
                "expected_score", "label_mass", "prompt_tokens", "cached_tokens",
                "completion_tokens", "seconds",
            )
        }  # fmt: skip
        self.probabilities: list[tuple[float, ...]] = []
        self.row = 0

    def add(self, request: Request, reply: Reply) -> None:
        """Read one reply into one judgment per slot."""
        for slot, reading in enumerate(read(request, reply)):
            self._add(request, reply, reading, slot)
        self.row += 1

    def _add(self, request: Request, reply: Reply, reading: Reading, slot: int) -> None:
        several = bool(request.criteria)
        first = slot == 0  # tokens and seconds belong to the call: counted once
        scores = np.array(request.ordering)
        shares = reading.probabilities
        values = {
            "key": request.key,
            "criterion": request.criteria[slot] if several else request.criterion,
            "item": request.item_id,
            "criterion_position": slot + 1 if several else None,
            "status": reading.status,
            "score": int(scores[reading.position - 1]) if reading.position else None,
            "position": reading.position,
            "expected_score": np.nan if shares is None else float(scores @ np.array(shares)),
            "label_mass": np.nan if reading.label_mass is None else reading.label_mass,
            "prompt_tokens": reply.prompt_tokens if first else 0,
            "cached_tokens": reply.cached_tokens if first else 0,
            "completion_tokens": reply.completion_tokens if first else 0,
            "seconds": reply.seconds if first else 0.0,
        }
        for name, value in values.items():
            self.columns[name].append(value)
        self.probabilities.append(shares or ())
        self.index.append(self.row)

    def frame(self) -> pd.DataFrame:
        """Put the columns together, in the contract's order and dtypes."""
        columns = self.columns
        asked = pd.DataFrame(self.requests).iloc[self.index].reset_index(drop=True)
        out = asked.assign(**{k: v for k, v in columns.items() if k != "item"})
        if "criterion_ordering" not in asked:
            out = out.drop(columns="criterion_position")
        items = self.requests.source
        by = "text_id" if "criterion_ordering" in asked else "item_id"
        facts = items.drop_duplicates(by).set_index(by)
        for name in ("dataset", "group_id", "cluster_id", "candidate"):
            if name in facts:
                out[name] = facts[name].astype(object).reindex(columns["item"]).to_numpy()
        if "criterion_ordering" in asked and "group_id" in items:
            by_criterion = items.set_index(["text_id", "criterion"])["group_id"]
            pairs = list(zip(columns["item"], columns["criterion"], strict=True))
            out["group_id"] = by_criterion.reindex(pairs).to_numpy()
        out["judge"], out["source"] = self.judge.slug, self.judge.source
        widest = max(map(len, self.probabilities), default=0)
        for p in range(widest):
            out[f"probability_{p + 1}"] = [
                shares[p] if p < len(shares) else np.nan for shares in self.probabilities
            ]
        return _typed(out)


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
    return hashlib.sha256(json.dumps(what, ensure_ascii=False).encode()).hexdigest()


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


def _exemplar(item: Any, score: str) -> tuple[str, str, int] | None:
    if score == "none":
        return None
    return item.exemplar_instruction, getattr(item, f"exemplar_{score}"), int(score)


def _known(value: float) -> float | None:
    return None if np.isnan(value) else float(value)


def _blocks(requests: Iterable[Request]) -> Iterator[list[Request]]:
    stream = iter(requests)
    while block := list(islice(stream, _BLOCK)):
        yield block
