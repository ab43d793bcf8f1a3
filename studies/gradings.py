"""Recorded gradings: what is committed under ``results/rulers``, without any text."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd

from rubricnb.judging.judge import Judge
from rubricnb.judging.prices import Budget
from rubricnb.judging.store import Store
from rubricnb.rulers import grade, load_bundle
from rubricnb.rulers.grades import STUDY, Grades, joined, with_categories
from studies.recording import inside, register, write_card
from studies.study import (
    FACTS,
    ask_judges,
    check_files,
    described,
    design_of,
    gradings_for,
    items_of,
    read_study,
)  # fmt: skip


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
        As in `studies.study.study`.

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
    check_files(name, content["gradings"])
    budget = Budget(max_calls, max_cost)
    return ask_judges(
        content["judges"], budget, lambda entry: _of_judge(entry, content, store, budget)
    )


def _of_judge(
    entry: dict[str, Any], content: dict[str, Any], store: Store | str | Path | None, budget: Budget
) -> Path:
    """Ask one judge of a study for all its gradings, and record them."""
    with closing(described(entry).opened()) as judge:
        found: dict[str, list[Grades]] = {}
        for part in gradings_for(entry, content["gradings"]):
            found.setdefault(part["dataset"], []).extend(graded(part, judge, store, budget))
            _record(found, judge)  # keeps what is finished if the rest is interrupted
            register(judge, **{key: entry[key] for key in FACTS if key in entry})
        return inside(STUDY, judge.slug)


def graded(
    part: dict[str, Any], judge: Judge, store: Store | str | Path | None, budget: Budget
) -> Iterator[Grades]:
    """Ask a judge for one entry of ``gradings``, variant by variant."""
    items = items_of(part)
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
