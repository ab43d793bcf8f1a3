"""Studies: what is asked of which judge, in one file; run it, and its judgments are recorded."""

from __future__ import annotations

import ast
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any, get_args

import pandas as pd
import yaml

from rubricnb import permutation
from rubricnb.frames import Items, Requests
from rubricnb.judging.contract import Judge
from rubricnb.judging.cost import estimate
from rubricnb.judging.openai import JudgeError
from rubricnb.judging.plan import plan, plan_criteria
from rubricnb.judging.prices import Budget
from rubricnb.judging.registry import open_judge
from rubricnb.judging.results import record, refuse_another, results_folder
from rubricnb.judging.review import write_references
from rubricnb.judging.run import run
from rubricnb.judging.store import Store
from rubricnb.permutation import Design


def study(
    name: str,
    store: Store | str | Path | None = None,
    max_calls: int | None = None,
    max_cost: float | None = None,
) -> list[Path]:
    """Run ``params/NAME.yml`` and record the judgments in ``results/NAME/``; resumes.

    Parameters
    ----------
    name
        Name of the study.
    store
        As in `run`.
    max_calls, max_cost
        As in `run`, for all judges and plans together. A judge whose price is not known has it in
        the file: ``price: [input, cached, output]`` in US dollars per million tokens.

    Returns
    -------
    list of Path
        The folders written to, one per judge.

    Raises
    ------
    ValueError
        No such study, or its file has an unknown entry. Or a judge's results are another judge's
        (`rubricnb.judging.results.record`): it has not been asked then.
    RunInterrupted
        At a limit or on Ctrl-C. Plans that are finished are recorded.
    JudgeError
        A judge cannot go on. The judges after it have been asked all the same.
    """
    content = read_study(name)
    budget = Budget(None, max_calls, max_cost)
    return ask_judges(
        content["judges"], budget, lambda entry: _of_judge(entry, content, name, store, budget)
    )


def ask_judges(
    entries: list[dict[str, Any]], budget: Budget, ask: Callable[[dict[str, Any]], Path]
) -> list[Path]:
    """Ask the judges of a study one after the other; one that cannot go on stops no other.

    Parameters
    ----------
    entries
        The study's ``judges``.
    budget
        Of all judges together; a price that it lacks is said before anything is asked.
    ask
        Asks the judge of one entry everything, records it, and says where.

    Returns
    -------
    list of Path
        What `ask` has returned.

    Raises
    ------
    JudgeError
        Some judges could not go on; of a single judge, its own exception.

    Examples
    --------
    >>> entries = [{"spec": "embedded", "model": "a"}, {"spec": "simulated:unbiased", "model": "b"}]
    >>> folders = ask_judges(entries, Budget(), lambda entry: Path("results", entry["model"]))
    >>> [folder.name for folder in folders]
    ['a', 'b']
    """
    for entry in entries:
        budget.turn_to(entry["spec"], entry.get("price"))
    folders = []
    problems: list[Exception] = []
    for entry in entries:
        try:
            folders.append(ask(entry))
        except (JudgeError, ValueError, ImportError) as problem:  # of this judge: others are asked
            if len(entries) == 1:
                raise
            print(f"{entry['model']}: {problem}", flush=True)
            problems.append(problem)
    if problems:
        raise JudgeError(
            f"{len(problems)} of {len(entries)} judges were not asked to the end; the "
            f"others are recorded. Run the same again. {'; '.join(map(str, problems))}"
        )
    return folders


def _of_judge(
    entry: dict[str, Any],
    content: dict[str, Any],
    name: str,
    store: Store | str | Path | None,
    budget: Budget,
) -> Path:
    """Ask one judge of a study everything, and record it."""
    with closing(open_judge(entry["spec"], **entry.get("options", {}))) as judge:
        refuse_another(judge, name)
        budget.turn_to(judge, entry.get("price"))
        for part in plans_for(entry, content["plans"]):
            judgments = run(requests_of(part), judge, store, budget=budget)
            facts = {key: entry[key] for key in ("spec", "model", "licence")}
            folder = record(judgments, judge, name, **facts)
        for part in content.get("references", []):
            _record_references(part, judge, folder, store, budget)
    return folder


def study_cost(name: str) -> pd.DataFrame:
    """Estimate what all plans of a study would cost, as `rubricnb.estimate`; nothing is sent.

    What is recorded or stored already is counted too. References are not: how many are written
    depends on the reviews.

    Parameters
    ----------
    name
        Name of the study.

    Returns
    -------
    DataFrame
        One row per judge and plan; beside the estimate its ``model`` and ``dataset``.

    Raises
    ------
    ValueError
        A study of gradings: their calls depend on answers.

    Examples
    --------
    >>> cost = study_cost("minibench")
    >>> int(cost.calls.sum()) > 1000, cost.price.sum().item()
    (True, 0.0)
    """
    content = read_study(name)
    if "plans" not in content:
        raise ValueError(
            f"{name}.yml has gradings, whose calls depend on answers: limit them by max_calls or "
            "max_cost"
        )
    rows = []
    for entry in content["judges"]:
        for part in plans_for(entry, content["plans"]):
            row = estimate(requests_of(part), entry["spec"], entry.get("price"))
            rows.append(row.assign(model=entry["model"], dataset=part["dataset"]))
    return pd.concat(rows, ignore_index=True)


def read_study(name: str) -> dict[str, Any]:
    """Read and check the file of a study; `rubricnb.rulers.record_gradings` checks its gradings.

    Examples
    --------
    >>> read_study("minibench")["judges"][0]["spec"]
    'embedded'
    """
    folder = results_folder().parent / "params"
    path = folder / f"{name}.yml"
    if not path.exists():
        there = sorted(p.stem for p in folder.glob("*.yml") if "judges:" in p.read_text())
        raise ValueError(f"no study {name!r} in {folder}; there are: {', '.join(there) or 'none'}")
    content: dict[str, Any] = yaml.safe_load(path.read_text())
    for where, entries, allowed, needed in (
        (path.name, [content], {"judges", "plans", "references", "gradings"}, {"judges"}),
        ("judges", content.get("judges", []), _JUDGE_KEYS, {"spec", "model", "licence"}),
        ("plans", content.get("plans", []), _PLAN_KEYS, {"dataset", "designs"}),
        ("references", content.get("references", []), _REFERENCE_KEYS, {"dataset"}),
    ):
        for entry in entries:
            if unknown := set(entry) - allowed:
                raise ValueError(
                    f"{path.name}: {where} has an unknown entry {min(unknown)!r}; "
                    f"known: {', '.join(sorted(allowed))}"
                )
            if missing := needed - set(entry):
                raise ValueError(
                    f"{path.name}: an entry of {where} lacks {min(missing)!r}: {str(entry)[:80]}"
                )
    _check_plans(path.name, content)
    return content


def _check_plans(name: str, content: dict[str, Any]) -> None:
    """Find before anything is asked what would stop a study at its last plan."""
    for part in content.get("plans", []):
        for text in part["designs"]:
            design_of(text)
    for judge in content["judges"] if "plans" in content else ():
        if not plans_for(judge, content["plans"]):
            raise ValueError(f"{name}: no plan is for the judge {judge['model']!r}")


_LOAD_KEYS = {"dataset", "n_items", "path", "rubric"}
_OTHER_KEYS = ("criteria", "setting", "designs")
_JUDGE_KEYS = {
    "spec", "model", "licence", "options", "conditions", "simulated", "size", "price",
}  # fmt: skip
_REFERENCE_KEYS = {*_LOAD_KEYS, "criteria", "targets", "rounds", "temperature", "seed"}
_PLAN_KEYS = {
    *_LOAD_KEYS, "criteria", "setting", "models", "designs", "labels", "readout", "n_options",
    "layout", "reference", "exemplar", "variant", "template", "prompt_format", "temperature",
    "effort", "thinking", "seed", "max_tokens",
}  # fmt: skip


def plans_for(judge: dict[str, Any], plans: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the plans of one judge of a study, with its own ``conditions`` filled in.

    A plan with ``models`` is for those judges only.

    Examples
    --------
    >>> plans = [{"dataset": "a"}, {"dataset": "b", "models": ["M"]}]
    >>> plans_for({"model": "N", "conditions": {"thinking": "off"}}, plans)
    [{'thinking': 'off', 'dataset': 'a'}]
    """
    own = [p for p in plans if judge["model"] in p.get("models", [judge["model"]])]
    return [
        judge.get("conditions", {}) | {k: v for k, v in p.items() if k != "models"} for p in own
    ]


def requests_of(part: dict[str, Any], items: Items | None = None) -> Requests:
    """Turn one entry of a study's ``plans`` into requests, about `items` instead of its dataset's.

    ``criteria`` keeps the items of these criteria; everything else is as in `rubricnb.plan`, where
    settings that are lists are crossed.

    Examples
    --------
    >>> part = {"dataset": "minibench", "n_items": 5, "designs": ["balanced(5)", "fixed(5, 2)"]}
    >>> len(requests_of(part))
    60
    """
    options = {k: v for k, v in part.items() if k not in (*_LOAD_KEYS, *_OTHER_KEYS)}
    items = _kept(part, items)
    designs = [design_of(text) for text in part["designs"]]
    if part.get("setting", 1) == 2:
        return plan_criteria(items, designs, **options)
    return plan(items, designs, **options)


def _kept(part: dict[str, Any], items: Items | None = None) -> Items:
    """Load the items of an entry (unless given), and keep those of its criteria."""
    from rubricnb.data import load

    if items is None:
        items = load(
            part["dataset"], part.get("n_items"), part.get("seed", 0), part.get("path"),
            part.get("rubric"),
        )  # fmt: skip
    if "criteria" not in part:
        return items
    return items[items["criterion"].isin(part["criteria"])].reset_index(drop=True)


def _record_references(
    part: dict[str, Any],
    judge: Judge,
    folder: Path,
    store: Store | str | Path | None,
    budget: Budget,
) -> None:
    """Let a judge write and review references, and record the attempts without their texts."""
    options = {k: v for k, v in part.items() if k not in (*_LOAD_KEYS, "criteria", "seed")}
    attempts = write_references(
        _kept(part),
        (judge, judge),
        seed=part.get("seed", 0),
        store=store,
        budget=budget,
        **options,
    )
    attempts = attempts.assign(characters=attempts.pop("text").str.len())
    attempts.to_csv(folder / f"references-{part['dataset']}.csv", index=False)


def design_of(text: str) -> Design:
    """Read a design as one writes it in Python.

    Examples
    --------
    >>> design_of("shuffled(5, 10)")
    Design(name='shuffled', n=5, k=10, order=None)
    >>> design_of("open('secret')")
    Traceback (most recent call last):
    ...
    ValueError: "open('secret')" is not a design: write balanced(5), shuffled(5, 10), …
    """
    names = get_args(permutation.DesignName)
    try:
        call = ast.parse(text, mode="eval").body
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id in names:
            arguments = [ast.literal_eval(a) for a in call.args]
            design: Design = getattr(permutation, call.func.id)(*arguments)
            return design
    except (SyntaxError, TypeError):
        pass
    raise ValueError(f'"{text}" is not a design: write balanced(5), shuffled(5, 10), …')
