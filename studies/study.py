"""Studies: a file says which judge is asked what; running it records the judgments."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable
from contextlib import ExitStack, closing
from functools import cache, partial
from inspect import signature
from pathlib import Path
from typing import Any, cast, get_args

import pandas as pd

import rubricnb
from rubricnb.core import permutation
from rubricnb.core.contract import JudgeError
from rubricnb.core.frames import Items, Requests
from rubricnb.core.judge import Judge, describe
from rubricnb.core.permutation import Design
from rubricnb.core.plan import plan
from rubricnb.core.prices import Budget
from rubricnb.core.results import results_folder
from rubricnb.core.run import run
from rubricnb.core.store import Store
from rubricnb.core.support.settings import read_yaml
from rubricnb.core.support.spelling import nearest
from rubricnb.engines.review import with_references, write_references
from rubricnb.sets.catalogue import datasets
from studies.recording import inside, record, refuse_another


def study(
    name: str,
    store: Store | str | Path | None = None,
    max_calls: int | None = None,
    max_cost: float | None = None,
    judge: dict[str, Any] | None = None,
) -> list[Path]:
    """Run ``params/NAME.yml`` and record the judgments in ``results/NAME/``; resumes.

    Parameters
    ----------
    name
        Name of the study.
    store
        As in `run`.
    max_calls, max_cost
        As in `run`, for all judges and plans together. A judge whose price is not known
        has it in the file: ``price: [input, cached, output]`` in US dollars per million
        tokens.
    judge
        Of `named`: ask this one instead of the file's.

    Returns
    -------
    list of Path
        The folders written to, one per judge.

    Raises
    ------
    ValueError
        No such study, its file has an unknown entry, or a dataset's file is not there.
        Or a judge's results are another judge's (`studies.recording.record`): it has
        not been asked then.
    RunInterrupted
        At a limit or on Ctrl-C. Plans that are finished are recorded.
    JudgeError
        A judge cannot go on. The judges after it have been asked all the same.
    """
    content = read_study(name, judge)
    references = content.get("references", [])
    check_files(name, [*content.get("plans", []), *references])
    budget = Budget(max_calls, max_cost)

    @cache
    def written(number: int) -> pd.DataFrame:
        attempts = _written(references[number], content["judges"], store, budget)
        _record_references(attempts, references[number], name)
        return attempts

    for entry in content["judges"]:
        budget.check(described(entry))
    folders = ask_judges(
        [
            entry
            for entry in content["judges"]
            if plans_for(entry, content.get("plans", []))
        ],
        budget,
        lambda entry: _of_judge(entry, content, name, store, budget, written),
    )
    for number in range(len(references)):
        written(number)
    return folders


def ask_judges(
    entries: list[dict[str, Any]], budget: Budget, ask: Callable[[dict[str, Any]], Path]
) -> list[Path]:
    """Ask the judges of a study in turn; one that fails does not stop the others."""
    for entry in entries:
        budget.check(described(entry))
    folders = []
    problems: list[Exception] = []
    for entry in entries:
        try:
            folders.append(ask(entry))
        except (
            JudgeError,
            ValueError,
            ImportError,
        ) as problem:  # a failure of this judge: the others are asked
            if len(entries) == 1:
                raise
            print(f"{entry['model']}: {problem}", flush=True)
            problems.append(problem)
    if problems:
        raise JudgeError(
            f"{len(problems)} of {len(entries)} judges did not finish; the others are "
            f"recorded. Run the same command again. {'; '.join(map(str, problems))}"
        )
    return folders


def described(entry: dict[str, Any]) -> Judge:
    """Describe a judge of a study, with its options and its price."""
    return describe(entry["spec"], entry.get("price"), **entry.get("options", {}))


def question_of(entry: dict[str, Any]) -> dict[str, str]:
    """Return a judge's options that say which question a decision model is asked."""
    options = entry.get("options", {})
    return {name: options[name] for name in ("kind", "shape") if name in options}


def _of_judge(
    entry: dict[str, Any],
    content: dict[str, Any],
    name: str,
    store: Store | str | Path | None,
    budget: Budget,
    written: Callable[[int], pd.DataFrame],
) -> Path:
    """Ask a study's judge everything, and record it; `written`: attempts."""
    parts = plans_for(entry, content.get("plans", []))
    with closing(described(entry).opened()) as judge:
        refuse_another(judge, name)
        for part in parts:
            items = _with_written(
                items_of(part), part, content.get("references", []), written
            )
            judgments = run(requests_of(part, items), judge, store, budget=budget)
            facts = {key: entry[key] for key in FACTS if key in entry}
            facts |= {
                "question": question_of(entry),
                "apart": content.get("apart", False),
            }
            record(
                judgments, judge, name, **facts, conditions=entry.get("conditions", {})
            )
        return results_folder() / name / judge.slug


def missing_file(part: dict[str, Any]) -> str:
    """Return the first file of an entry that is not there."""
    files = [str(part[key]) for key in ("path", "rubric", "anchors") if key in part]
    return next((file for file in files if not Path(file).is_file()), "")


def check_files(name: str, parts: Iterable[dict[str, Any]]) -> None:
    """Refuse a study whose files are not there, before anything is asked."""
    for part in parts:
        if path := missing_file(part):
            source = datasets().set_index("name")["source"].get(part["dataset"], "")
            raise ValueError(
                f"{name}.yml: there is no {path}; put the file of {part['dataset']!r} "
                f"there ({source}), or remove its lines from the study"
            )
        for key in ("path", "rubric"):
            given = part.get(key)
            if given and Path(given).resolve().is_relative_to(inside(name).resolve()):
                raise ValueError(
                    f"{name}.yml: {given} lies in the folder that the study writes: "
                    "move it"
                )


def named(
    spec: str,
    given: dict[str, Any] | None = None,
    price: tuple[float, float, float] | None = None,
) -> dict[str, Any] | None:
    """Write a judge of the command line as a study's file would; None if there is none.

    Of the options given, those that a request carries become conditions of the plans.

    Examples
    --------
    >>> given = {"temperature": 1.0, "concurrency": 4}
    >>> named("openai:m@http://localhost:8000/v1", given)
    ... # doctest: +NORMALIZE_WHITESPACE
    {'spec': 'openai:m@http://localhost:8000/v1', 'model': 'm',
     'licence': "its provider's terms",
     'conditions': {'temperature': 1.0}, 'options': {'concurrency': 4}}
    """
    if not spec:
        return None
    options = dict(given or {})
    conditions = {key: options.pop(key) for key in CONDITIONS if key in options}
    entry = {
        "spec": spec,
        "model": spec.partition(":")[2].partition("@")[0] or spec,
        "licence": "its provider's terms",
        "conditions": conditions,
        "options": options,
        "price": price,
    }
    return {key: value for key, value in entry.items() if value}


def read_study(name: str, judge: dict[str, Any] | None = None) -> dict[str, Any]:
    """Read and check a study's file; a judge of `named` may replace its own."""
    folder = results_folder().parent / "params"
    path = folder / f"{name}.yml"
    if not path.exists():
        there = sorted(
            p.stem for p in folder.glob("*.yml") if "judges:" in p.read_text()
        )
        raise ValueError(
            f"no study {name!r} in {folder}; there are: {', '.join(there) or 'none'}"
        )
    content = read_yaml(path)
    _check_entries(path.name, path.name, [content], _PARTS, {"judges"})
    for part, (allowed, needed) in ENTRIES.items():
        _check_entries(path.name, part, content.get(part, []), allowed, needed)
    _check_plans(path.name, content)
    if judge is not None:
        own = [entry for entry in content["judges"] if entry["spec"] == judge["spec"]]
        if any(judge.get(key) for key in ("conditions", "options", "price")):
            own = []  # asked in another way than the file says
        if not own and ("references" in content or "gradings" in content):
            raise ValueError(
                f"{path.name} asks only the judges it names: add {judge['spec']} to it"
            )
        content["judges"] = own or [judge]
        _check_plans(path.name, content)
    if not content["judges"]:
        raise ValueError(f"{path.name} names no judge: add --judge openai:MODEL")
    return content


def _check_entries(
    file: str, part: str, entries: Any, allowed: set[str], needed: set[str]
) -> None:
    """Refuse a part of a study's file with unknown names, or without those needed."""
    if not isinstance(entries, list) or not all(isinstance(e, dict) for e in entries):
        raise ValueError(
            f"{file}: {part} is not a list of entries with names and values"
        )
    for entry in entries:
        if unknown := set(entry) - allowed:
            raise ValueError(
                f"{file}: {part} has an unknown entry {min(unknown)!r}; "
                f"known: {', '.join(sorted(allowed))}"
            )
        if missing := needed - set(entry):
            raise ValueError(
                f"{file}: an entry of {part} lacks {min(missing)!r}: {str(entry)[:80]}"
            )


def _check_plans(name: str, content: dict[str, Any]) -> None:
    """Check all plans of a study before the first request is sent."""
    for part in content.get("plans", []):
        for text in part["designs"]:
            design_of(text)
    models = [judge["model"] for judge in content["judges"]]
    for part in content.get("references", []):
        _check_pair(f"{name}: references of {part['dataset']!r}", part, models)
    for part in content.get("compile", []):
        _check_model(
            f"{name}: compile of {part['bundle']}", "model", part["model"], models
        )
    named = {
        p[role]
        for p in content.get("references", [])
        for role in ("writer", "reviewer")
    }
    for judge in content["judges"] if "plans" in content else ():
        if not plans_for(judge, content["plans"]) and judge["model"] not in named:
            raise ValueError(f"{name}: has no plan for the judge {judge['model']!r}")


def _check_pair(where: str, part: dict[str, Any], models: list[str]) -> None:
    """Refuse a judge that reviews itself, unless the study asks for it."""
    writer, reviewer = part["writer"], part.get("reviewer")
    if reviewer in (None, writer):
        raise ValueError(
            f"{where}: {writer!r} would review itself; name a different judge as "
            "reviewer, or write reviewer: itself"
        )
    for role, model in (("writer", writer), ("reviewer", reviewer)):
        if (role, model) != ("reviewer", "itself"):
            _check_model(where, role, model, models)


def _check_model(where: str, role: str, model: str, models: list[str]) -> None:
    if model not in models:
        raise ValueError(
            f"{where}: the {role} {model!r} is not one of the study's judges"
            f"{nearest(model, models)} They are: {', '.join(models)}"
        )


CONDITIONS = ("temperature", "effort", "thinking", "max_tokens", "prompt_format")
"""What a judge that is named on the command line may be asked with."""

FACTS = ("spec", "model", "name", "licence")
"""What ``results/judges.csv`` says of a judge;
without a name it is the model up to a bracket.
"""

_PARTS = {"judges", "plans", "references", "gradings", "compile", "apart"}
_LOAD_KEYS = {"dataset", "n_items", "path", "rubric"}
_OTHER_KEYS = ("criteria", "texts", "candidates", "setting", "designs")
_JUDGE_KEYS = {
    *FACTS,
    "options",
    "conditions",
    "simulated",
    "size",
    "price",
}
_REFERENCE_KEYS = {
    *_LOAD_KEYS,
    "criteria",
    "targets",
    "rounds",
    "temperature",
    "seed",
    "writer",
    "reviewer",
}
_PLAN_KEYS = {
    *_LOAD_KEYS,
    *_OTHER_KEYS,
    "models",
    *signature(plan).parameters,
} - {"items"}
_GRADING_KEYS = {
    *_LOAD_KEYS,
    "candidates",
    "models",
    "bundle",
    "methods",
    "variants",
    "units",
    "design",
    "replicates",
    "temperature",
    "seed",
}
_COMPILE_KEYS = {
    *_LOAD_KEYS,
    "bundle",
    "model",
    "input_type",
    "traits",
    "min_evidence",
    "anchors",
    "variants",
    "temperature",
    "seed",
}
ENTRIES = {
    "judges": (_JUDGE_KEYS, {"spec", "model", "licence"}),
    "plans": (_PLAN_KEYS, {"dataset", "designs"}),
    "references": (_REFERENCE_KEYS, {"dataset", "writer"}),
    "gradings": (_GRADING_KEYS, {"dataset"}),
    "compile": (_COMPILE_KEYS, {"dataset", "bundle", "model"}),
}
"""Lists of a study's file → the names that an entry may have, and those it needs."""


def plans_for(
    judge: dict[str, Any], plans: list[dict[str, Any]]
) -> list[dict[str, Any]]:
    """Return the plans of one judge of a study, with its own ``conditions`` filled in.

    A plan with ``models`` is for those judges only.
    """
    return [judge.get("conditions", {}) | part for part in gradings_for(judge, plans)]


def gradings_for(
    judge: dict[str, Any], gradings: list[dict[str, Any]]
) -> list[dict[str, Any]]:
    """Return a study's gradings of one judge: those that name it, or no models."""
    own = [p for p in gradings if judge["model"] in p.get("models", [judge["model"]])]
    return [{k: v for k, v in p.items() if k != "models"} for p in own]


def requests_of(part: dict[str, Any], items: Items | None = None) -> Requests:
    """Turn an entry of ``plans`` into requests, about `items` or its dataset's.

    ``criteria``, ``texts`` and ``candidates`` keep the items of these; everything else
    is as in `rubricnb.plan`, where settings that are lists are crossed.
    """
    options = {k: v for k, v in part.items() if k not in (*_LOAD_KEYS, *_OTHER_KEYS)}
    items = items_of(part, items)
    designs = [design_of(text) for text in part["designs"]]
    if part.get("setting", 1) == 2:
        options["template"] = "criteria"
    return plan(items, designs, **options)


def items_of(part: dict[str, Any], items: Items | None = None) -> Items:
    """Load the items of an entry (unless given), and keep those that it names."""
    if items is None:
        items = rubricnb.load(
            part["dataset"],
            part.get("n_items"),
            part.get("seed", 0),
            part.get("path"),
            part.get("rubric"),
        )
    kept = {"criteria": "criterion", "texts": "text_id", "candidates": "candidate"}
    for key, column in kept.items():
        if key in part:
            items = items[items[column].isin(part[key])].reset_index(drop=True)
    return items


def batch_of(
    name: str, judge: dict[str, Any] | None = None, server: str = ""
) -> tuple[Judge | str, list[Requests]]:
    """Return an endpoint (or its spec) and the plans that a study has for it."""
    content = read_study(name, judge)
    if "plans" not in content:
        raise ValueError(
            f"{name}.yml has gradings, whose requests depend on earlier answers: run "
            "it without a batch"
        )
    entries = [e for e in content["judges"] if judge or e["spec"].startswith("openai:")]
    specs = {e["spec"] for e in entries}
    if len(specs) != 1:
        raise ValueError(
            f"study {name!r} has {len(specs)} endpoints: name one with --judge"
        )
    options = entries[0].get("options", {})
    if any(e.get("options", {}) != options for e in entries):
        raise ValueError(
            f"study {name!r} has {entries[0]['spec']} with several options: give each "
            "its own study"
        )
    endpoint: Judge | str = entries[0]["spec"]
    if str(endpoint).startswith("openai:"):
        endpoint = describe(
            str(endpoint), **options | ({"server": server} if server else {})
        )
    plans = content["plans"]
    return endpoint, [
        requests_of(part) for entry in entries for part in plans_for(entry, plans)
    ]


def _with_written(
    items: Items,
    part: dict[str, Any],
    references: list[dict[str, Any]],
    written: Callable[[int], pd.DataFrame],
) -> Items:
    """Give items the references that a plan shows and their dataset does not have."""
    scores = lacking(items, part)
    for number, entry in enumerate(references):
        if entry["dataset"] == part["dataset"] and scores:
            items = with_references(items, written(number))
            columns = [f"reference_{k}" for k in scores if f"reference_{k}" in items]
            whole = items[items[columns].notna().all(axis=1)].reset_index(drop=True)
            print(
                f"{part['dataset']}: references for {', '.join(map(str, scores))} were "
                f"accepted for {len(whole):,} of {len(items):,} items; the others are "
                "left out"
            )
            if not len(whole):
                raise ValueError(
                    f"no item of {part['dataset']!r} has all these references: set "
                    "more rounds, and the same n_items and criteria for plan and "
                    "references"
                )
            return whole
    return items


def lacking(items: Items, part: dict[str, Any]) -> list[int]:
    """Scores of the references that a plan shows and its items do not have."""
    shown = part.get("reference", "auto")
    scores = shown if isinstance(shown, list) else [shown]
    return [k for k in scores if isinstance(k, int) and f"reference_{k}" not in items]


def _written(
    part: dict[str, Any],
    judges: list[dict[str, Any]],
    store: Store | str | Path | None,
    budget: Budget,
) -> pd.DataFrame:
    """Let the judges of an entry of ``references`` write and review, in turn."""
    by_model = {entry["model"]: entry for entry in judges}
    entries = [
        by_model[part[role]]
        for role in ("writer", "reviewer")
        if part[role] != "itself"
    ]
    print(
        f"{part['dataset']}: {part['writer']} writes references and reviews itself; no "
        "other judge sees what it accepts"
        if len(entries) == 1
        else (
            f"{part['dataset']}: {part['writer']} and {part['reviewer']} write "
            "references and review each other's in turn"
        ),
        flush=True,
    )
    options = {
        k: v
        for k, v in part.items()
        if k not in (*_LOAD_KEYS, "criteria", "writer", "reviewer")
    }
    with ExitStack() as stack:
        opened = [stack.enter_context(closing(described(entry))) for entry in entries]
        return write_references(
            items_of(part),
            (opened[0], opened[-1]),
            store=store,
            budget=budget,
            **options,
        )


def _record_references(attempts: pd.DataFrame, part: dict[str, Any], name: str) -> None:
    """Record attempts, without texts, beside the results of the judge that began."""
    folder = results_folder() / name / attempts["writer"].iloc[0]
    folder.mkdir(parents=True, exist_ok=True)
    attempts = attempts.assign(characters=attempts["text"].str.len()).drop(
        columns="text"
    )
    attempts.to_csv(folder / f"references-{part['dataset']}.csv", index=False)


def design_of(text: str) -> Design:
    """Parse a design written as in Python."""
    names = get_args(permutation.DesignName)
    try:
        call = ast.parse(text, mode="eval").body
        if (
            isinstance(call, ast.Call)
            and isinstance(call.func, ast.Name)
            and call.func.id in names
        ):
            arguments = [ast.literal_eval(a) for a in call.args]
            make: Any = partial(Design, call.func.id)  # type: ignore[arg-type]  # one of `names`
            return cast(Design, getattr(permutation, call.func.id, make)(*arguments))
    # of a text nested too deep
    except (SyntaxError, TypeError, RecursionError, MemoryError):
        pass
    raise ValueError(f'"{text}" is not a design: write balanced(5), shuffled(5, 10), …')
