"""Recorded gradings: what is committed under ``results/rulers``, without any text."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd

from rubricnb.core.judge import Judge
from rubricnb.core.prices import Budget
from rubricnb.core.store import Store
from rubricnb.rulers.bundle import load_bundle
from rubricnb.rulers.compile import compile_rubric, read_anchors
from rubricnb.rulers.grades import STUDY, Grades, joined, with_categories
from rubricnb.rulers.grading import grade
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
)

_AS_GIVEN = ("input_type", "traits", "n_items", "min_evidence", "temperature", "seed")


def record_gradings(
    name: str = STUDY,
    store: Store | str | Path | None = None,
    max_calls: int | None = None,
    max_cost: float | None = None,
) -> list[Path]:
    """Run the gradings of ``params/NAME.yml`` into ``results/rulers``; resumes.

    Parameters
    ----------
    name
        A file with ``judges`` (spec, model, licence, options) and ``gradings``: each a
        dataset with methods, variants, units, design, replicates and temperature as
        `grade` takes them, ``path`` of its file where it has one, and ``models``, if it
        is not for all judges. With ``compile`` the bundles of gradings are compiled
        first (`compile_bundles`).
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
    check_files(name, [*content["gradings"], *content.get("compile", [])])
    budget = Budget(max_calls, max_cost)
    compile_bundles(content, store, budget)
    return ask_judges(
        content["judges"],
        budget,
        lambda entry: _of_judge(entry, content, store, budget),
    )


def compile_bundles(
    content: dict[str, Any], store: Store | str | Path | None, budget: Budget
) -> None:
    """Compile the bundles of a study that are not there yet (RULERS' Phase I).

    Each entry of ``compile`` names a ``dataset`` (and its ``path``), whose rubric is
    compiled by the judge ``model`` into the file ``bundle`` and its lock;
    ``input_type``, ``traits``, ``n_items``, ``min_evidence``, ``temperature`` and
    ``seed`` as `compile_rubric` takes them, ``anchors`` a file of scored examples, and
    ``variants``: ``standard``, ``paraphrased`` or, by default, those of the rubric.

    Raises
    ------
    ValueError
        A bundle is there, but was compiled otherwise than its entry says.
    """
    by_model = {entry["model"]: entry for entry in content["judges"]}
    for part in content.get("compile", []):
        tasks = _compilations(part)
        if all(_is_there(file, options) for file, options in tasks.items()):
            continue
        described_judge = described(by_model[part["model"]])
        budget.check(described_judge)
        with closing(described_judge.opened()) as judge:
            compile_part(part, judge, store, budget)


def compile_part(
    part: dict[str, Any], judge: Judge, store: Store | str | Path | None, budget: Budget
) -> None:
    """Let a judge compile the missing bundles of one entry of ``compile``."""
    rubrics = _rubrics(part)
    for file, options in _compilations(part).items():
        if _is_there(file, options):
            continue
        bundle = compile_rubric(rubrics, judge, **options, store=store, budget=budget)
        file.parent.mkdir(parents=True, exist_ok=True)
        print(f"{part['model']} compiled {bundle.save(file)}: read it", flush=True)


def _compilations(part: dict[str, Any]) -> dict[Path, dict[str, Any]]:
    """Each bundle's file of an entry of ``compile`` → `compile_rubric`'s options."""
    rubrics = _rubrics(part)
    standard = Path(part["bundle"])
    options = {key: part[key] for key in _AS_GIVEN if key in part}
    if "anchors" in part:
        options["anchors"] = read_anchors(part["anchors"], rubrics)
    tasks = {}
    for variant in part.get("variants", rubrics["variant"].unique()):
        end = "" if variant == "standard" else f"-{variant}"
        file = standard.with_stem(standard.stem + end)
        tasks[file] = options | {
            "name": file.stem,
            "dataset": part["dataset"],
            "variant": str(variant),
        }
    return tasks


def _is_there(file: Path, options: dict[str, Any]) -> bool:
    """Tell whether this bundle is there; refuse one that was compiled otherwise."""
    if not file.is_file():
        return False
    bundle = load_bundle(file)
    found = {
        "traits": [trait.name for trait in bundle.traits],
        "n_items": len(bundle.checklist),
        "anchors": [*bundle.anchors],
        "min_evidence": bundle.min_evidence,
        "input_type": bundle.input_type,
        "variant": bundle.variant,
    }
    differs = [key for key in found if key in options and options[key] != found[key]]
    if differs:
        raise ValueError(
            f"{file} was compiled with another {' and '.join(differs)} than the study "
            "says: rename it, or change the study"
        )
    return True


def _rubrics(part: dict[str, Any]) -> pd.DataFrame:
    """The rubrics of an entry's dataset; its ``n_items`` counts checklist items."""
    return items_of({k: v for k, v in part.items() if k != "n_items"}).rubrics


def _of_judge(
    entry: dict[str, Any],
    content: dict[str, Any],
    store: Store | str | Path | None,
    budget: Budget,
) -> Path:
    """Ask one judge of a study for all its gradings, and record them."""
    with closing(described(entry).opened()) as judge:
        found: dict[str, list[Grades]] = {}
        for part in gradings_for(entry, content["gradings"]):
            found.setdefault(part["dataset"], []).extend(
                graded(part, judge, store, budget)
            )
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
            frame.drop(columns="text", errors="ignore")
            .assign(source="recorded")
            .drop_duplicates()
            for frame in joined(several)
        ]
        for part, frame in zip(
            Grades._fields, map(with_categories, frames), strict=True
        ):
            frame.to_parquet(
                folder / f"{dataset}-{part}.parquet", index=False, compression="zstd"
            )
        counts[dataset] = _counts(frames[0])
    write_card(folder, judge, counts)


def _counts(scores: pd.DataFrame) -> dict[str, Any]:
    asked = [
        "text_id",
        "method",
        "variant",
        "units",
        "ordering",
        "replicate",
        "temperature",
    ]
    once = scores.drop_duplicates(asked)
    return {
        "scores": len(scores),
        "texts": int(scores["text_id"].nunique()),
        "methods": scores["method"].value_counts().to_dict(),
        "variants": scores["variant"].value_counts().to_dict(),
        "locks": sorted(
            scores.loc[scores["method"] == "rulers", "lock"].astype(str).unique()
        ),
        "status": scores["status"].value_counts().to_dict(),
        "prompt_tokens": int(once["prompt_tokens"].sum()),
        "completion_tokens": int(once["completion_tokens"].sum()),
        "seconds": round(float(once["seconds"].sum()), 1),
    }
