"""Judgments: a reply's readings as rows, and live and recorded rows as one frame."""

from __future__ import annotations

from array import array
from math import nan
from operator import mul
from typing import Any

import numpy as np
import pandas as pd

from rubricnb.frames import JUDGMENTS, STATUSES, Requests
from rubricnb.judging.contract import Judge, Reply, Request
from rubricnb.judging.readout import Reading, read

EXAMPLE = 200  # characters of an answer's end, where a score would stand
_NUMBERS = {
    "request_id": "Q", "criterion_position": "b", "status": "b", "score": "b", "position": "b",
    "expected_score": "f", "label_mass": "f", "prompt_tokens": "i", "cached_tokens": "i",
    "completion_tokens": "i", "seconds": "f",
}  # fmt: skip


class Rows:
    """Columns of the judgments, filled reply by reply in any order; compact: there are millions."""

    def __init__(self, requests: Requests, judge: Judge) -> None:
        self.requests, self.judge = requests, judge
        self.parser = getattr(judge, "parser", None)
        self.several = "criterion_ordering" in requests
        self.width = int(requests["n_options"].max())
        self.numbers = {name: array(kind) for name, kind in _NUMBERS.items()}
        self.keys: list[str] = []
        self.criteria: list[str] = []
        self.probabilities = array("f")  # empty, or `width` for every row
        self.example = ""

    def add(self, request: Request, reply: Reply) -> None:
        """Read one reply into one judgment per slot."""
        self.example = reply.text.strip()[-EXAMPLE:]
        for slot, reading in enumerate(read(request, reply, self.parser)):
            self._add(request, reply, reading, slot)

    def _add(self, request: Request, reply: Reply, reading: Reading, slot: int) -> None:
        first = slot == 0  # tokens and seconds belong to the call: counted once
        shares = reading.probabilities
        mass = reading.label_mass
        row = (
            request.request_id,
            slot + 1,
            STATUSES.index(reading.status),
            request.ordering[reading.position - 1] if reading.position else 0,
            reading.position or 0,
            nan if shares is None else sum(map(mul, request.ordering, shares)),
            nan if mass is None else mass,
            reply.prompt_tokens if first else 0,
            reply.cached_tokens if first else 0,
            reply.completion_tokens if first else 0,
            reply.seconds if first else 0.0,
        )
        if shares is not None and not self.probabilities:
            self.probabilities.extend([nan] * self.width * len(self.keys))
        if shares is not None or self.probabilities:
            self.probabilities.extend(shares or ())
            self.probabilities.extend([nan] * (self.width - len(shares or ())))
        for column, value in zip(self.numbers.values(), row, strict=True):
            column.append(value)  # type: ignore[arg-type]
        self.keys.append(request.key)
        self.criteria.append(request.criteria[slot] if self.several else request.criterion)

    def frame(self) -> pd.DataFrame:
        """Put the columns together, in the contract's order and dtypes."""
        numbers = {name: np.array(column) for name, column in self.numbers.items()}
        index = pd.Index(self.requests["request_id"]).get_indexer(numbers.pop("request_id"))
        out = pd.DataFrame(self.requests).iloc[index].reset_index(drop=True)
        out = out.assign(key=self.keys, criterion=pd.Categorical(self.criteria), **numbers)
        read = out["position"] > 0
        for name in ("score", "position"):
            out[name] = out[name].astype("Int8").where(read)
        status = pd.Categorical.from_codes(out["status"], categories=list(STATUSES))
        out["status"] = status.remove_unused_categories()
        if not self.several:
            out = out.drop(columns="criterion_position")
        for name, values in self._facts(out).items():
            out[name] = values
        for name in ("slug", "source"):
            constant = pd.Categorical([getattr(self.judge, name)]).repeat(len(out))
            out["judge" if name == "slug" else name] = constant
        probabilities = np.array(self.probabilities).reshape(-1, self.width)
        for p in range(self.width):
            if not np.isnan(probabilities[:, p]).all():
                out[f"probability_{p + 1}"] = probabilities[:, p]
        return _typed(out)

    def _facts(self, out: pd.DataFrame) -> dict[str, Any]:
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
