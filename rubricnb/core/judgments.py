"""From a reply to rows with scores; live and recorded rows as one frame."""

from __future__ import annotations

from collections.abc import Iterable
from operator import mul

import numpy as np
import pandas as pd

from rubricnb.core.contract import Engine, Reply, Request
from rubricnb.core.frames import JUDGMENTS, STATUSES, Requests, score_dtype
from rubricnb.core.parsing import read
from rubricnb.core.support.types import Row

EXAMPLE = 200  # characters of an answer's end, where a score would be
_ROWS = (
    # rows packed into columns at once:
    # as Python's own objects they take ten times as much
    4096
)
_CALL = ("prompt_tokens", "cached_tokens", "completion_tokens", "seconds")


class Rows:
    """Rows of the judgments, packed, reply by reply in any order."""

    def __init__(self, requests: Requests, judge: Engine) -> None:
        self.requests, self.judge = requests, judge
        self.parser = getattr(judge, "parser", None)
        self.closed = getattr(judge, "closed", False)
        self.several = "criterion_ordering" in requests
        self.probabilities = [
            f"probability_{p + 1}" for p in range(requests["n_options"].max())
        ]
        self.rows: list[Row] = []
        self.packed: list[pd.DataFrame] = []
        self.example = ""

    def add(self, request: Request, reply: Reply) -> None:
        """Read one reply into one judgment per slot."""
        self.example = reply.text.strip()[-EXAMPLE:] or " ".join(set(reply.notes))
        for slot, reading in enumerate(read(request, reply, self.parser)):
            row = dict.fromkeys(self.probabilities) | {
                "request_id": request.request_id,
                "key": request.key,
                "criterion": request.criteria[slot]
                if self.several
                else request.criterion,
                "criterion_position": slot + 1,
                "status": reading.status,
                "position": reading.position,
                "score": request.ordering[reading.position - 1]
                if reading.position
                else None,
                "label_mass": None if self.closed else reading.label_mass,
                "server_note": reply.notes[slot] or None if reply.notes else None,
                "expected_score": None,
            }
            if reply.label_masses:
                row["label_mass"] = reply.label_masses[slot]
            if reading.probabilities is not None:
                row |= zip(self.probabilities, reading.probabilities, strict=False)
                row["expected_score"] = sum(
                    map(mul, request.ordering, reading.probabilities)
                )
            for name in _CALL:  # belong to the call, so they count once
                row[name] = 0 if slot else getattr(reply, name)
            self.rows.append(row)
        if len(self.rows) >= _ROWS:
            self._pack()

    def _pack(self) -> None:
        self.packed.append(typed(pd.DataFrame(self.rows)))
        self.rows = []

    def frame(self) -> pd.DataFrame:
        """Put the rows together with what was asked, by the frame's contract."""
        if self.rows:
            self._pack()
        found = pd.concat(self.packed, ignore_index=True)
        index = pd.Index(self.requests["request_id"]).get_indexer(
            found.pop("request_id")
        )
        out = pd.DataFrame(self.requests).iloc[index].reset_index(drop=True)
        out = pd.concat([out, found], axis=1)
        status = pd.Categorical(out["status"], categories=list(STATUSES))
        out["status"] = status.remove_unused_categories()
        if not self.several:
            out = out.drop(columns="criterion_position")
        out = out.drop(
            columns=[
                name
                for name in (*self.probabilities, "server_note")
                if out[name].isna().all()
            ]
        )
        out = out.assign(
            **self._facts(out), judge=self.judge.slug, source=self.judge.source
        )
        return typed(out)

    def _facts(self, out: pd.DataFrame) -> Row:
        """What the items say about the judgments: columns by name."""
        items = self.requests.source
        by = "text_id" if self.several else "item_id"
        shown = out["item_id"].cat
        facts = items.drop_duplicates(by).set_index(by)
        row = facts.index.get_indexer(shown.categories)[shown.codes]
        found = {
            name: facts[name].astype("category").array.take(row)
            for name in ("dataset", "group_id", "cluster_id", "candidate")
            if name in facts
        }
        if self.several and "group_id" in items:
            by_criterion = items.set_index(["text_id", "criterion"])["group_id"]
            pairs = list(zip(out["item_id"], out["criterion"], strict=True))
            found["group_id"] = by_criterion.reindex(pairs).astype("category").array
        return found


def join(requests: Requests, known: pd.DataFrame, live: pd.DataFrame) -> pd.DataFrame:
    """Put recorded and live judgments together, in the order of the requests."""
    frames = [f for f in (known, live) if len(f)]
    if not frames:
        return typed(pd.DataFrame({c.name: [] for c in JUDGMENTS if c.required}))
    out = pd.concat(frames, ignore_index=True)
    order = pd.Series(np.arange(len(requests)), index=requests["request_id"].to_numpy())
    out = out.assign(_row=order.reindex(out["request_id"].to_numpy()).to_numpy())
    keys = ["_row", "criterion_position"] if "criterion_position" in out else ["_row"]
    return typed(
        out.sort_values(keys, kind="stable").drop(columns="_row").reset_index(drop=True)
    )


def dtypes_of(names: Iterable[str]) -> Row:
    """Return the contract's dtype of each column of judgments that it has."""
    return {name: c.dtype for c in JUDGMENTS for name in names if c.matches(str(name))}


def typed(frame: pd.DataFrame) -> pd.DataFrame:
    """Put the columns of judgments into the contract's order and dtypes."""
    dtypes = dtypes_of(frame.columns)
    dtypes["score"] = score_dtype(frame["score"], "Int8")
    rest = [name for name in frame.columns if name not in dtypes]
    return frame[[*dtypes, *rest]].astype(dtypes)
