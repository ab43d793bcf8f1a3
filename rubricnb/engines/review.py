"""Reference answers of a wanted score: a judge writes, another reviews them.

The paper's pipeline: a response model writes an answer that should deserve score k, a
review model scores it, and this goes on until the review gives k; the two models
alternate in their roles. Ours has a cap on the rounds, keeps every attempt, and says
how many were accepted.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack

import numpy as np
import pandas as pd

from rubricnb.core.contract import Message, Request
from rubricnb.core.frames import Items, Requests
from rubricnb.core.judge import JudgeLike, judging
from rubricnb.core.permutation import fixed
from rubricnb.core.plan import plan
from rubricnb.core.prices import Budget
from rubricnb.core.prompts.labels import labels_of
from rubricnb.core.prompts.render import render_writing
from rubricnb.core.rendering import rubric_texts
from rubricnb.core.run import ask, run
from rubricnb.core.store import StoreLike, open_store

_WRITING_TOKENS = 300
_REVIEW_TOKENS = 1024

_COLUMNS = [
    "item_id",
    "cluster_id",
    "target",
    "round",
    "writer",
    "reviewer",
    "text",
    "status",
    "score",
    "accepted",
]


def write_references(
    items: Items,
    judges: tuple[JudgeLike, JudgeLike],
    targets: Sequence[int] = (1, 2, 3, 4),
    rounds: int = 6,
    seed: int = 0,
    store: StoreLike = None,
    budget: Budget | None = None,
) -> pd.DataFrame:
    """Write reference answers for every score, until a review gives the wanted one.

    Parameters
    ----------
    items
        What to write for: one answer for each instruction, rubric and target, however
        many candidates answered it.
    judges
        The first writes in rounds 1, 3, … and reviews in rounds 2, 4, …; the second the
        other way round. The same judge twice reviews itself.
    targets
        The scores wanted. The paper writes 1 to 4: a full-mark answer comes with its
        data.
    rounds
        Cap on the attempts at one answer.
    seed
        Of the writing, at temperature 1; the review is greedy.
    store
        As in `rubricnb.run`: a pipeline that was stopped goes on where it was.
    budget
        An allowance for all calls together.

    Returns
    -------
    DataFrame
        One row per attempt: ``item_id`` (the first item of the instruction and rubric),
        ``cluster_id``, ``target``, ``round``, ``writer``, ``reviewer``, ``text``,
        ``status`` (ok, empty, or what `rubricnb.run` says of an unread review),
        ``score`` of the review and ``accepted``, whether it is the target.

    Raises
    ------
    ValueError
        No round, or a target that a rubric does not have.

    Notes
    -----
    The reviewer scores the text under the whole rubric and is not told the target. The
    paper asks whether text and description match, and prints no prompt; a blind review
    is the stricter one.

    Examples
    --------
    >>> import rubricnb as rb
    >>> specs = ("simulated:unbiased", "simulated:first-biased")
    >>> pair = [rb.open_judge(spec) for spec in specs]
    >>> items = rb.load("minibench", n_items=15)
    >>> attempts = write_references(items, pair, store=":memory:")  # doctest: +ELLIPSIS
    simulated:unbiased: 12 of 12 in ...
    >>> last = attempts.groupby(["item_id", "target"])["round"].idxmax()
    >>> bool(attempts.loc[last].accepted.mean() > 0.5)
    True
    >>> bool(attempts["round"].max() <= 6)
    True
    """
    if rounds < 1:
        raise ValueError(f"rounds = {rounds}: give 1 or more attempts")
    prompts = _Prompts(items, targets)
    open_ = [(item, k) for item in prompts.ids for k in targets]
    parts: list[pd.DataFrame] = []
    with ExitStack() as stack:
        kept = stack.enter_context(open_store(store))
        pair = [stack.enter_context(judging(judge)).opened() for judge in judges]
        for number in range(1, rounds + 1):
            if not open_:
                break
            writer, reviewer = pair[:: 1 if number % 2 else -1]
            asked = [prompts.writing(*cell, number, seed) for cell in open_]
            texts = [
                reply.text.strip() for reply in ask(asked, writer, kept, budget=budget)
            ]
            part = prompts.attempts(open_, number, texts)
            for requests in prompts.reviews(part[part["text"] != ""]):
                read = run(requests, reviewer, kept, budget=budget)
                here = part["attempt"].isin(read["item_id"])
                part.loc[here, "status"] = read["status"].astype(object).array
                part.loc[here, "score"] = read["score"].array
            part["accepted"] = (
                (part["score"] == part["target"]).fillna(False).astype(bool)
            )
            parts.append(part.assign(writer=writer.slug, reviewer=reviewer.slug))
            open_ = [
                c for c, done in zip(open_, part["accepted"], strict=True) if not done
            ]
    return pd.concat(parts, ignore_index=True)[_COLUMNS]


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
        A copy with ``reference_k`` for every target k; missing where no attempt was
        accepted, so that `rubricnb.plan` refuses these items until they are left out.

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
    """What there is to write for, the requests to write, and the plans to review."""

    def __init__(self, items: Items, targets: Sequence[int]) -> None:
        self.items = items[~_cells(items).duplicated()].set_index("item_id", drop=False)
        self.ids = self.items.index.tolist()
        standard = items.rubrics[items.rubrics["variant"] == "standard"]
        self.rubrics = rubric_texts(standard)
        # no review can give these
        for name in self.items["rubric_id"].unique():
            if missing := sorted(set(targets) - set(self.rubrics[name][1])):
                raise ValueError(
                    f"targets: the rubric {name!r} has no level {missing[0]}"
                )

    def writing(self, item_id: str, target: int, number: int, seed: int) -> Request:
        row = self.items.loc[item_id]
        definition, texts, own = self.rubrics[row["rubric_id"]]
        name = labels_of(tuple(texts), own=own)
        levels = {name[score]: description for score, description in texts.items()}
        text = render_writing(row["instruction"], definition, levels, name[target])
        return Request(
            request_id=0,
            key="",
            messages=(Message("user", text),),
            slots=(),
            choices=(),
            readout="feedback",
            max_tokens=_WRITING_TOKENS,
            temperature=1.0,
            # Replicate and seed make every round another sample of the same prompt.
            replicate=number,
            seed=seed + number,
            item_id=f"{item_id}/{target}/{number}",
        )

    def attempts(
        self, cells: list[tuple[str, int]], number: int, texts: list[str]
    ) -> pd.DataFrame:
        """One round as a frame; nothing is reviewed yet."""
        ids, targets = zip(*cells, strict=True)
        return pd.DataFrame(
            {
                "item_id": ids,
                "cluster_id": self.items.loc[list(ids), "cluster_id"].array,
                "target": targets,
                "round": number,
                "text": texts,
                "status": "empty",
                "score": pd.array([None] * len(cells), dtype="Int8"),
                "attempt": [f"{item}/{target}/{number}" for item, target in cells],
            }
        )

    def reviews(self, written: pd.DataFrame) -> Iterator[Requests]:
        """Plan the reviews of texts under their whole rubrics, a plan for each size."""
        # A simulated reviewer does not read: to it,
        # the writer has hit the target exactly.
        items = self.items.loc[written["item_id"]].assign(
            item_id=written["attempt"].array,
            text_id=written["attempt"].array,
            response=written["text"].array,
            human=written["target"].array.astype(float),
        )
        n_levels = [len(self.rubrics[name][1]) for name in items["rubric_id"]]
        for n, texts in items.groupby(np.array(n_levels)):
            yield plan(
                texts.reset_index(drop=True),
                fixed(int(n), 1),
                reference="none",
                max_tokens=_REVIEW_TOKENS,
            )


def _cells(items: pd.DataFrame) -> pd.Series:
    """Number the combinations of instruction and rubric."""
    return items.groupby(
        ["instruction", "rubric_id"], observed=True, sort=False
    ).ngroup()
