"""minibench, the bundled dataset: our own texts, whose quality is designed, not rated."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import yaml

from rubricnb.data.rubrics import bundled_rubrics
from rubricnb.data.validate import check_items, ids
from rubricnb.frames import Items

_FILE = Path(__file__).parent / "bundled" / "minibench.yml"
_DESIGNED_LEVELS = 5


def load(name: str) -> Items:
    """Load minibench.

    Parameters
    ----------
    name
        ``minibench``: 12 prompts × 5 candidates × 3 criteria with five-level rubrics, 180 items.
        ``minibench-7``: the same 60 texts under a fourth criterion with a native seven-level
        rubric.

    Returns
    -------
    Items
        ``human`` is the *designed quality*: each text was written to deserve it; nobody rated.
        It is on the scale of the rubric: of seven levels the designed five are 1, 2.5, 4, 5.5
        and 7. Each text also is the reference of its level (``reference_1`` …); there is no
        ``reference`` that ``auto`` would show, since the best text would be its own. The
        in-context examples (``exemplar_1`` …) are the answers to the first prompt; for its own
        texts, those to the second. Cluster: the prompt; group: prompt × criterion. Both sets share
        text and cluster ids, since they share the texts.

    Examples
    --------
    >>> items = load("minibench")
    >>> len(items), items.cluster_id.nunique(), sorted(items.human.unique().tolist())
    (180, 12, [1.0, 2.0, 3.0, 4.0, 5.0])
    """
    rubrics = bundled_rubrics("minibench")
    levels = rubrics.groupby("rubric_id", observed=True)["score"].max()
    native = rubrics["rubric_id"].astype("str").map(levels)
    rubrics = rubrics[native == 7 if name == "minibench-7" else native == 5]
    n = 7 if name == "minibench-7" else 5
    criteria = rubrics[["criterion", "rubric_id"]].astype("str").drop_duplicates()
    prompts = yaml.safe_load(_FILE.read_text(encoding="utf-8"))["prompts"]
    rows = [
        _item(name, prompt, prompts[prompt is prompts[0]], level, n, criterion, rubric_id)
        for prompt in prompts
        for level in sorted(prompt["responses"], key=lambda k: prompt["responses"][k]["candidate"])
        for criterion, rubric_id in criteria.itertuples(index=False)
    ]
    return check_items(pd.DataFrame(rows), rubrics)


def _item(
    name: str,
    prompt: dict[str, Any],
    example: dict[str, Any],
    level: int,
    n: int,
    criterion: str,
    rubric_id: str,
) -> dict[str, object]:
    responses = prompt["responses"]
    candidate = responses[level]["candidate"]
    return {
        **ids(name, f"minibench/{prompt['id']}", candidate, criterion),
        "candidate": candidate,
        "category": prompt["category"],
        "instruction": prompt["instruction"],
        "response": responses[level]["text"],
        **_graded("reference", responses, n),
        "exemplar_instruction": example["instruction"],
        **_graded("exemplar", example["responses"], n),
        "criterion": criterion,
        "rubric_id": rubric_id,
        "human": _on_scale(level, n),
    }


def _graded(name: str, responses: dict[int, Any], n: int) -> dict[str, object]:
    """One column for every designed level that is a whole score."""
    on_scale = {_on_scale(k, n): responses[k]["text"] for k in responses}
    return {f"{name}_{k:.0f}": text for k, text in on_scale.items() if k % 1 == 0}


def _on_scale(level: int, n: int) -> float:
    return 1 + (level - 1) * (n - 1) / (_DESIGNED_LEVELS - 1)
