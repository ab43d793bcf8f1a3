"""Recorded gradings: what is committed under ``results/rulers``, without any text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import closing, redirect_stdout
from dataclasses import replace
from io import StringIO
from pathlib import Path
from typing import Any

import pandas as pd

import rubricnb
from rubricnb.frames import Items
from rubricnb.judging.contract import Judge, Reply, Request
from rubricnb.judging.cost import Calls
from rubricnb.judging.prices import CHARACTERS_PER_TOKEN, Budget, destination, price_of
from rubricnb.judging.registry import open_judge
from rubricnb.judging.results import inside, register, write_card
from rubricnb.judging.store import Store
from rubricnb.judging.study import ask_judges, check_files, design_of, gradings_for, read_study
from rubricnb.rulers.bundle import load_bundle
from rubricnb.rulers.grades import STUDY, Grades, joined, with_categories
from rubricnb.rulers.grading import grade
from rubricnb.rulers.simulated import SimulatedGrader

_SAMPLE = 20  # texts that a grading is costed on

_KEYS = {
    "dataset", "n_items", "path", "rubric", "models", "bundle", "methods", "variants", "units",
    "design", "replicates", "temperature", "seed",
}  # fmt: skip


def record_gradings(
    name: str = STUDY,
    store: Store | str | Path | None = None,
    max_calls: int | None = None,
    max_cost: float | None = None,
) -> list[Path]:
    """Run the gradings of ``params/NAME.yml`` and record them in ``results/rulers``; resumes.

    Parameters
    ----------
    name
        A file with ``judges`` (spec, model, licence, options) and ``gradings``: each a dataset
        with methods, variants, units, design, replicates and temperature as `grade` takes them,
        ``path`` of its file where it has one, and ``models``, if it is not for all judges.
    store
        As in `rubricnb.run`.
    max_calls, max_cost
        As in `rubricnb.judging.study.study`.

    Returns
    -------
    list of Path
        The folders written to, one per judge.

    Raises
    ------
    ValueError
        No such file, or it has an unknown entry.
    RunInterrupted
        At a limit or on Ctrl-C. Gradings that are finished are recorded.
    JudgeError
        A judge cannot go on. The judges after it have been asked all the same.
    """
    content = read_study(name)
    for part in content["gradings"]:
        if unknown := set(part) - _KEYS:
            raise ValueError(
                f"{name}.yml: gradings has an unknown entry {min(unknown)!r}; "
                f"known: {', '.join(sorted(_KEYS))}"
            )
    check_files(name, content["gradings"])
    budget = Budget(None, max_calls, max_cost)
    return ask_judges(
        content["judges"], budget, lambda entry: _of_judge(entry, content, store, budget)
    )


def _of_judge(
    entry: dict[str, Any], content: dict[str, Any], store: Store | str | Path | None, budget: Budget
) -> Path:
    """Ask one judge of a study for all its gradings, and record them."""
    with closing(open_judge(entry["spec"], **entry.get("options", {}))) as judge:
        budget.turn_to(judge, entry.get("price"))
        found: dict[str, list[Grades]] = {}
        for part in gradings_for(entry, content["gradings"]):
            found.setdefault(part["dataset"], []).extend(_graded(part, judge, store, budget))
            _record(found, judge)  # what is finished stands, should the rest be interrupted
            register(judge, **{key: entry[key] for key in ("spec", "model", "licence")})
        return inside(STUDY, judge.slug)


def _graded(
    part: dict[str, Any], judge: Judge, store: Store | str | Path | None, budget: Budget
) -> Iterator[Grades]:
    items = _items(part)
    bundle = load_bundle(part.get("bundle", part["dataset"]))
    options: dict[str, Any] = {"store": store, "budget": budget} | {
        k: part[k] for k in ("replicates", "temperature", "seed") if k in part
    }
    if "design" in part:
        options["design"] = design_of(part["design"])
    for variant in part.get("variants", ["standard"]):
        for units in part.get("units", [bundle.units]):
            own = replace(bundle.in_variant(variant), units=units)
            yield grade(items, own, judge, part.get("methods", "rulers"), **options)


def _items(part: dict[str, Any]) -> Items:
    return rubricnb.load(
        part["dataset"], part.get("n_items"), part.get("seed", 0), part.get("path"),
        part.get("rubric"),
    )  # fmt: skip


def grading_cost(
    part: dict[str, Any], spec: str, price: tuple[float, float, float] | None = None
) -> dict[str, Any]:
    """Estimate one entry of ``gradings``: its calls for some texts, answered by a simulated grader.

    Returns
    -------
    dict
        A row as from `rubricnb.estimate`, but for ``judge`` and ``readout``.
    """
    texts = _items(part)["text_id"]
    per_text = len(texts) / texts.nunique()
    some = part | {"n_items": min(len(texts), round(_SAMPLE * per_text))}
    scale = texts.nunique() / _items(some)["text_id"].nunique()
    counter: Any = _Counter()
    with redirect_stdout(StringIO()):
        for _ in _graded(some, counter, ":memory:", Budget()):
            pass
    calls = Calls.of(counter.asked, *destination(spec))
    answers = round(counter.characters / CHARACTERS_PER_TOKEN)
    longer = max(calls.completion_tokens, answers)
    calls = calls._replace(completion_tokens=longer).scaled(scale)
    known, no_price = price_of(spec, price)
    counts = calls._asdict() | {"requests": calls.number, "calls": calls.number}
    del counts["number"], counts["cached_tokens"]
    return counts | {
        "hours": float("nan"),
        "price": calls.cost(known) if known else float("nan"),
        "reason": f"price: {no_price}" if no_price else "",
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


def _record(found: dict[str, list[Grades]], judge: Judge) -> None:
    folder = inside(STUDY, judge.slug)
    folder.mkdir(parents=True, exist_ok=True)
    counts = {}
    for dataset, several in found.items():
        frames = [
            frame.drop(columns="text", errors="ignore").assign(source="recorded").drop_duplicates()
            for frame in joined(several)
        ]
        for part, frame in zip(Grades._fields, map(with_categories, frames), strict=True):
            frame.to_parquet(folder / f"{dataset}-{part}.parquet", index=False, compression="zstd")
        counts[dataset] = _counts(frames[0])
    write_card(folder, judge, counts)


def _counts(scores: pd.DataFrame) -> dict[str, Any]:
    asked = ["text_id", "method", "variant", "units", "ordering", "replicate", "temperature"]
    once = scores.drop_duplicates(asked)
    return {
        "scores": len(scores),
        "texts": int(scores["text_id"].nunique()),
        "methods": scores["method"].value_counts().to_dict(),
        "variants": scores["variant"].value_counts().to_dict(),
        "locks": sorted(scores.loc[scores["method"] == "rulers", "lock"].astype(str).unique()),
        "status": scores["status"].value_counts().to_dict(),
        "prompt_tokens": int(once["prompt_tokens"].sum()),
        "completion_tokens": int(once["completion_tokens"].sum()),
        "seconds": round(float(once["seconds"].sum()), 1),
    }
