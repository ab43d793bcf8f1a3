"""What a study would cost, before anything is sent."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pandas as pd

from rubricnb.core.contract import Reply, Request
from rubricnb.core.cost import estimate_cost
from rubricnb.core.frames import Items
from rubricnb.core.judge import describe
from rubricnb.core.prices import CHARACTERS_PER_TOKEN, Budget, Calls
from rubricnb.rulers.simulated import SimulatedGrader
from studies.gradings import compile_part, graded
from studies.study import (
    gradings_for,
    items_of,
    lacking,
    missing_file,
    plans_for,
    read_study,
    requests_of,
)

_SAMPLE = 20  # texts that a grading is costed on


def study_cost(name: str, judge: dict[str, Any] | None = None) -> pd.DataFrame:
    """Estimate what a study would cost, as `rubricnb.estimate_cost`; nothing is sent.

    What is recorded or stored already is counted too. Not counted, and said in
    ``reason``: what needs a file that is not there, and references, since their number
    depends on the reviews. Gradings are counted on some of the texts, with answers as
    long as a simulated grader's.

    Parameters
    ----------
    name
        Name of the study.
    judge
        Of `studies.study.named`, in place of the file's.

    Returns
    -------
    DataFrame
        One row per judge and plan or grading; beside the estimate its ``model`` and
        ``dataset``.

    Examples
    --------
    >>> cost = study_cost("every-order")
    >>> int(cost.calls.sum()), cost.price.sum().item()
    (360, 0.0)
    """
    content = read_study(name, judge)
    with TemporaryDirectory() as folder:
        return pd.DataFrame(_rows(content, Path(folder)))


def _rows(content: dict[str, Any], folder: Path) -> list[dict[str, Any]]:
    rows = []
    stand_ins: dict[str, str] = {}
    for part in content.get("compile", []):
        (entry,) = (e for e in content["judges"] if e["model"] == part["model"])
        row = _uncounted(part) or _compile_cost(part, entry, folder, stand_ins)
        rows.append(row | {"model": part["model"], "dataset": part["dataset"]})
    for entry in content["judges"]:
        for part in plans_for(entry, content.get("plans", [])):
            row = _uncounted(part)
            if not row:
                requests = requests_of(
                    part, _as_if_written(part, content.get("references", []))
                )
                row = (
                    estimate_cost(requests, entry["spec"], entry.get("price"))
                    .iloc[0]
                    .to_dict()
                )
            rows.append(row | {"model": entry["model"], "dataset": part["dataset"]})
        for part in gradings_for(entry, content.get("gradings", [])):
            bundle = part.get("bundle", part["dataset"])
            read = part | {"bundle": stand_ins.get(bundle, bundle)}
            row = _uncounted(part) or _grading_cost(
                read, entry["spec"], entry.get("price")
            )
            rows.append(row | {"model": entry["model"], "dataset": part["dataset"]})
    for part in content.get("references", []):
        row = _uncounted(part) or _zero_cost(
            "references are not counted: their number depends on the reviews"
        )
        rows.append(row | {"model": part["writer"], "dataset": part["dataset"]})
    return rows


def _zero_cost(reason: str) -> dict[str, Any]:
    counts = dict.fromkeys(
        ("requests", "calls", "prompt_tokens", "completion_tokens"), 0
    )
    return {**counts, "hours": 0.0, "price": 0.0, "reason": reason}


def _uncounted(part: dict[str, Any]) -> dict[str, Any]:
    """A row that counts nothing, where a file is missing; else empty."""
    path = missing_file(part)
    return (
        _zero_cost(f"{part['dataset']} is not counted: there is no {path}")
        if path
        else {}
    )


def _as_if_written(part: dict[str, Any], references: list[dict[str, Any]]) -> Items:
    """Let a text of that length stand for references that are yet to be written."""
    items = items_of(part)
    if part["dataset"] not in {entry["dataset"] for entry in references}:
        return items
    texts = items["reference"] if "reference" in items else items["response"] + " "
    return items.assign(**{f"reference_{k}": texts for k in lacking(items, part)})


def _grading_cost(
    part: dict[str, Any], spec: str, price: tuple[float, float, float] | None = None
) -> dict[str, Any]:
    """Estimate an entry of ``gradings``: its calls, by a simulated grader.

    Returns
    -------
    dict
        A row as from `rubricnb.estimate_cost`, but for ``judge`` and ``readout``.
    """
    texts = items_of(part)["text_id"]
    per_text = len(texts) / texts.nunique()
    some = part | {"n_items": min(len(texts), round(_SAMPLE * per_text))}
    scale = texts.nunique() / items_of(some)["text_id"].nunique()
    counter: Any = _Counter()
    with redirect_stdout(StringIO()):
        for _ in graded(some, counter, ":memory:", Budget()):
            pass
    return _counted(counter, spec, price, scale)


def _compile_cost(
    part: dict[str, Any], entry: dict[str, Any], folder: Path, stand_ins: dict[str, str]
) -> dict[str, Any]:
    """Estimate an entry of ``compile``; a stand-in is graded for what is missing."""
    counter: Any = _Counter()
    if not Path(part["bundle"]).is_file():
        stand_in = folder / str(len(stand_ins)) / Path(part["bundle"]).name
        stand_ins[part["bundle"]] = str(stand_in)
        with redirect_stdout(StringIO()):
            compile_part(part | {"bundle": stand_in}, counter, ":memory:", Budget())
    return _counted(counter, entry["spec"], entry.get("price"))


def _counted(
    counter: _Counter,
    spec: str,
    price: tuple[float, float, float] | None,
    scale: float = 1,
) -> dict[str, Any]:
    """Return what a judge would cost that is asked this, `scale` times."""
    judge = describe(spec, price)
    calls = Calls.of(counter.asked, judge)
    answers = round(counter.characters / CHARACTERS_PER_TOKEN)
    longer = max(calls.completion_tokens, answers)
    calls = calls._replace(completion_tokens=longer).scaled(scale)
    counts = calls._asdict() | {"requests": calls.number, "calls": calls.number}
    del counts["number"], counts["cached_tokens"]
    return counts | {
        "hours": float("nan"),
        "price": calls.cost(judge.price) if judge.price else float("nan"),
        "reason": f"price: {judge.no_price}" if judge.no_price else "",
    }


class _Counter(SimulatedGrader):
    """A grader that keeps what it was asked."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[Request] = []
        self.characters = 0

    def answer(self, requests: Iterable[Request]) -> Iterator[Reply]:
        for request in requests:
            self.asked.append(request)
            for reply in super().answer([request]):
                self.characters += len(reply.text)
                yield reply
