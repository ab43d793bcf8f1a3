"""Reference answers of a wanted score: one judge writes, another reviews (arXiv:2506.22316, §3.3).

The paper's pipeline: a response model writes an answer that should deserve score k, a review model
scores it, and this goes on until the review gives k; the two models alternate in their roles. Ours
has a cap on the rounds, keeps every attempt, and says how many were accepted.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from rubricnb.frames import Items
from rubricnb.judging.contract import Judge, Message, Reply, Request
from rubricnb.judging.prices import Budget
from rubricnb.judging.readout import read
from rubricnb.judging.run import ask
from rubricnb.judging.store import Store
from rubricnb.prompts.render import render, render_writing
from rubricnb.statistics._inference import few_clusters, mean_t

_WRITING_TOKENS = 300
_REVIEW_TOKENS = 1024


def write_references(
    items: Items,
    judges: tuple[Judge, Judge],
    targets: Sequence[int] = (1, 2, 3, 4),
    rounds: int = 6,
    temperature: float = 1.0,
    seed: int = 0,
    store: Store | str | Path | None = None,
    budget: Budget | None = None,
    prices: tuple[Any, Any] = (None, None),
) -> pd.DataFrame:
    """Write reference answers for every score, until a review gives the wanted one.

    Parameters
    ----------
    items
        What to write for: one answer for each instruction, rubric and target, however many
        candidates answered it.
    judges
        The first writes in rounds 1, 3, … and reviews in rounds 2, 4, …; the second the other way
        round. The same judge twice reviews itself.
    targets
        The scores wanted. The paper writes 1 to 4: a full-mark answer comes with its data.
    rounds
        Cap on the attempts at one answer.
    temperature
        Of the writing; the review is greedy.
    seed
        Of the sampling.
    store
        As in `rubricnb.run`: a pipeline that was stopped goes on where it was.
    budget
        An allowance for all calls together.
    prices
        Of the two judges, where the budget does not know them.

    Returns
    -------
    DataFrame
        One row per attempt: ``item_id`` (the first item of the instruction and rubric),
        ``cluster_id``, ``target``, ``round``, ``writer``, ``reviewer``, ``text``, ``status`` (ok,
        empty, or what `rubricnb.run` says of an unread review), ``score`` of the review and
        ``accepted``, whether it is the target.

    Raises
    ------
    ValueError
        No round, or a target that a rubric does not have.

    Notes
    -----
    The reviewer scores the text under the whole rubric and is not told the target. The paper asks
    whether text and description match, and prints no prompt; a blind review is the stricter one.

    Examples
    --------
    >>> import rubricnb as rb
    >>> pair = [rb.open_judge("simulated:unbiased"), rb.open_judge("simulated:first-biased")]
    >>> items = rb.load("minibench", n_items=15)
    >>> attempts = write_references(items, pair, store=":memory:")  # doctest: +ELLIPSIS
    simulated:unbiased: 12 of 12 in ...
    >>> last = attempts.groupby(["item_id", "target"])["round"].idxmax()
    >>> bool(attempts.loc[last].accepted.mean() > 0.5), bool(attempts["round"].max() <= 6)
    (True, True)
    """
    if rounds < 1:
        raise ValueError(f"rounds = {rounds}: at least one attempt")
    prompts = _Prompts(items)
    prompts.check(targets)
    open_ = [(item, k) for item in prompts.ids for k in targets]
    parts: list[pd.DataFrame] = []
    with store if isinstance(store, Store) else Store(store) as kept:
        for number in range(1, rounds + 1):
            if not open_:
                break
            step = 1 if number % 2 else -1
            writer, reviewer = judges[::step]
            asked = [prompts.writing(*cell, number, temperature, seed) for cell in open_]
            if budget:
                budget.turn_to(writer, prices[::step][0])
            texts = [reply.text.strip() for reply in ask(asked, writer, kept, budget=budget)]
            written = [(cell, text) for cell, text in zip(open_, texts, strict=True) if text]
            reviews = [prompts.review(*cell, number, text, reviewer) for cell, text in written]
            if budget:
                budget.turn_to(reviewer, prices[::step][1])
            replies = ask(reviews, reviewer, kept, budget=budget)
            found = map(_score, reviews, replies)
            scores = {cell: score for (cell, _), score in zip(written, found, strict=True)}
            part = prompts.attempts(open_, texts, scores)
            part.insert(2, "round", number)
            parts.append(part.assign(writer=writer.slug, reviewer=reviewer.slug))
            open_ = [c for c, done in zip(open_, part["accepted"], strict=True) if not done]
    columns = ["item_id", "cluster_id", "target", "round", "writer", "reviewer", "text", "status",
               "score", "accepted"]  # fmt: skip
    return pd.concat(parts, ignore_index=True)[columns]


def acceptance(attempts: pd.DataFrame, by: str | Sequence[str] = ("target",)) -> pd.DataFrame:
    """Say how many attempts were accepted, and how many answers were found in the end.

    Parameters
    ----------
    attempts
        From `write_references`.
    by
        Columns to group by, such as ``target`` or ``writer``; an empty list for one row.

    Returns
    -------
    DataFrame
        ``attempts``; ``rate`` of them accepted, with a 95 % interval ``low, high`` (Wilson's,
        over clusters); ``answers`` wanted; ``found``, the share of them for which some attempt was
        accepted; ``rounds``, the mean round of those; and ``reason``, why there is no interval, or
        why to doubt it.

    Examples
    --------
    >>> attempts = pd.DataFrame({
    ...     "item_id": ["a", "a", "b"], "cluster_id": ["a", "a", "b"], "target": 2,
    ...     "round": [1, 2, 1], "accepted": [False, True, True]})
    >>> acceptance(attempts)[["target", "attempts", "rate", "found", "rounds"]].round(2)
       target  attempts  rate  found  rounds
    0       2         3  0.67    1.0     1.5
    """
    by = [by] if isinstance(by, str) else list(by)
    rows = []
    for key, part in attempts.groupby(by) if by else [((), attempts)]:
        accepted = part["accepted"].to_numpy(np.float64)
        cluster = pd.factorize(part["cluster_id"])[0]
        low, high, *_ = mean_t(accepted, cluster, (0.0, 1.0))
        done = part[part["accepted"]]
        answers = part[["item_id", "target"]].drop_duplicates()
        rows.append(
            dict(zip(by, key, strict=True))
            | {
                "attempts": len(part),
                "rate": float(part["accepted"].mean()),
                "low": low,
                "high": high,
                "answers": len(answers),
                "found": len(done) / len(answers),
                "rounds": float(done["round"].mean()) if len(done) else np.nan,
                "reason": few_clusters(cluster, {"rate": accepted}),
            }
        )
    return pd.DataFrame(rows)


def with_references(items: Items, attempts: pd.DataFrame) -> Items:
    """Give items the accepted answers as their references.

    Parameters
    ----------
    items
        The items that the answers were written for.
    attempts
        From `write_references`.

    Returns
    -------
    Items
        A copy with ``reference_k`` for every target k; missing where no attempt was accepted, so
        that `rubricnb.plan` refuses these items until they are left out.

    Examples
    --------
    >>> import rubricnb as rb
    >>> items = rb.load("minibench", n_items=5)
    >>> attempts = pd.DataFrame({"item_id": [items.item_id[0]], "target": [2],
    ...                          "text": ["Because."], "accepted": [True]})
    >>> with_references(items, attempts).reference_2.tolist()[:2]
    ['Because.', nan]
    """
    out = items.copy()
    first = items["item_id"].groupby(_cells(items)).transform("first")
    done = attempts[attempts["accepted"]].drop_duplicates(["item_id", "target"])
    for target in sorted(attempts["target"].unique()):
        texts = done[done["target"] == target].set_index("item_id")["text"]
        out[f"reference_{target}"] = first.map(texts).astype("str")
    return out


class _Prompts:
    """What there is to write for, and the requests to write and to review."""

    def __init__(self, items: Items) -> None:
        first = ~_cells(items).duplicated()
        self.rows = {row.item_id: row for row in items[first].itertuples()}
        self.ids = list(self.rows)
        standard = items.rubrics[items.rubrics["variant"] == "standard"]
        self.rubrics = {
            str(name): (
                str(levels["definition"].iloc[0]),
                dict(zip(levels["score"].astype(int), levels["description"], strict=True)),
            )
            for name, levels in standard.groupby("rubric_id", observed=True)
        }

    def check(self, targets: Sequence[int]) -> None:
        """Refuse targets that no review can give."""
        for name in dict.fromkeys(row.rubric_id for row in self.rows.values()):
            if missing := sorted(set(targets) - set(self.rubrics[name][1])):
                raise ValueError(f"targets: the rubric {name!r} has no level {missing[0]}")

    def writing(
        self, item_id: str, target: int, number: int, temperature: float, seed: int
    ) -> Request:
        row = self.rows[item_id]
        text = render_writing(row.instruction, *self.rubrics[row.rubric_id], target)
        # Replicate and seed make every round another sample of the same prompt.
        facts = {"temperature": temperature, "replicate": number, "seed": seed + number}
        return self._request(row, text, ("feedback", _WRITING_TOKENS), target, number, **facts)

    def review(
        self, item_id: str, target: int, number: int, response: str, judge: Judge
    ) -> Request:
        row = self.rows[item_id]
        definition, levels = self.rubrics[row.rubric_id]
        prompt = render(row.instruction, response, definition, levels, sorted(levels))
        how = (judge.readouts[0], _REVIEW_TOKENS)
        # A simulated reviewer does not read: to it, the writer has hit the target exactly.
        return self._request(row, prompt.text, how, target, number, quality=float(target))

    def _request(
        self, row: Any, text: str, how: tuple[Any, int], target: int, number: int, **facts: Any
    ) -> Request:
        scores = tuple(sorted(self.rubrics[row.rubric_id][1]))
        return Request(
            request_id=0,
            key="",
            messages=(Message("user", text),),
            slots=("[RESULT]",),
            choices=tuple(map(str, scores)),
            readout=how[0],
            max_tokens=how[1],
            item_id=f"{row.item_id}/{target}/{number}",
            text_id=f"{row.item_id}/{target}/{number}",
            cluster_id=row.cluster_id,
            criterion=row.criterion,
            ordering=scores,
            group=row.item_id,
            **facts,
        )

    def attempts(
        self, cells: list[tuple[str, int]], texts: list[str], scores: dict[Any, tuple[str, Any]]
    ) -> pd.DataFrame:
        """One round as a frame."""
        found = [scores.get(cell, ("empty", None)) for cell in cells]
        frame = pd.DataFrame(
            {
                "item_id": [item for item, _ in cells],
                "cluster_id": [self.rows[item].cluster_id for item, _ in cells],
                "target": [target for _, target in cells],
                "text": texts,
                "status": [status for status, _ in found],
                "score": pd.array([score for _, score in found], dtype="Int8"),
            }
        )
        accepted = (frame["score"] == frame["target"]).fillna(False)
        return frame.assign(accepted=accepted.astype(bool))


def _cells(items: pd.DataFrame) -> pd.Series:
    """Number the combinations of instruction and rubric."""
    return items.groupby(["instruction", "rubric_id"], observed=True, sort=False).ngroup()


def _score(request: Request, reply: Reply) -> tuple[str, int | None]:
    reading = read(request, reply)[0]
    position = reading.position
    return reading.status, None if position is None else request.ordering[position - 1]
