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
    n = 7 if name == "minibench-7" else 5
    rubrics = bundled_rubrics("minibench")
    native = rubrics.groupby("rubric_id", observed=True)["score"].transform("max")
    rubrics = rubrics[native == n]
    criteria = rubrics[["criterion", "rubric_id"]].astype("str").drop_duplicates()
    prompts = yaml.safe_load(_FILE.read_text(encoding="utf-8"))["prompts"]
    rows = []
    for prompt in prompts:
        responses, example = prompt["responses"], prompts[prompt is prompts[0]]
        shared = {
            "category": prompt["category"],
            "instruction": prompt["instruction"],
            **_graded("reference", responses, n),
            "exemplar_instruction": example["instruction"],
            **_graded("exemplar", example["responses"], n),
        }
        for level, response in sorted(responses.items(), key=lambda one: one[1]["candidate"]):
            for criterion, rubric_id in criteria.itertuples(index=False):
                own = ids(name, f"minibench/{prompt['id']}", response["candidate"], criterion)
                rows.append({
                    **own, "candidate": response["candidate"], "response": response["text"],
                    **shared, "criterion": criterion, "rubric_id": rubric_id,
                    "human": _on_scale(level, n),
                })  # fmt: skip
    return check_items(pd.DataFrame(rows), rubrics)


def _graded(name: str, responses: dict[int, Any], n: int) -> dict[str, object]:
    """One column for every designed level that is a whole score."""
    on_scale = {_on_scale(k, n): responses[k]["text"] for k in responses}
    return {f"{name}_{k:.0f}": text for k, text in on_scale.items() if k % 1 == 0}


def _on_scale(level: int, n: int) -> float:
    return 1 + (level - 1) * (n - 1) / (_DESIGNED_LEVELS - 1)
