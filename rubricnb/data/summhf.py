"""SummHF: summaries of posts, rated from 1 to 7; from a file of one's own."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd

from rubricnb.data.rubrics import bundled_rubrics
from rubricnb.data.validate import check_items
from rubricnb.frames import Items

_INSTRUCTION = "Summarise the following post.\n\n{post}"


def load_summhf(path: str | Path) -> Items:
    r"""Load axis evaluations of SummHF. Not yet met real data: written from its description.

    Parameters
    ----------
    path
        JSON lines, each with ``info`` (``id`` and ``post`` or ``article``), ``summary`` (``text``,
        ``policy`` and ``axes`` with ``overall``, 1 to 7) and ``worker``. Lines without an overall
        rating are left out.

    Returns
    -------
    Items
        One item per post and summary; ``human_ratings`` are all its workers' and ``human`` their
        mean. A post is a cluster, and its summaries compete. The rubric is ours.

    Raises
    ------
    ValueError
        A line is not such a record; no line has a rating; or a rating is out of range.

    Notes
    -----
    Stiennon et al. 2020; https://github.com/openai/summarize-from-feedback, ``axis_evals``.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> line = {"info": {"id": "p1", "post": "A long post."}, "worker": "w", "summary":
    ...         {"text": "A post.", "policy": "ref", "axes": {"overall": 6}}}
    >>> with TemporaryDirectory() as folder:
    ...     file = Path(folder, "axis.jsonl")
    ...     _ = file.write_text(json.dumps(line))
    ...     load_summhf(file)[["text_id", "candidate", "human"]]
           text_id candidate  human
    0  summhf/p1/1       ref    6.0
    """
    path = Path(path)
    rated: dict[tuple[str, str], dict[str, Any]] = {}
    # Not splitlines(): posts hold other separators than "\n".
    for number, line in enumerate(path.read_text(encoding="utf-8").split("\n"), start=1):
        if line.strip():
            _add(rated, line, f"{path.name}: line {number}")
    if not rated:
        raise ValueError(f"{path.name} holds no summary with an overall rating")
    return check_items(pd.DataFrame(_rows(rated)), bundled_rubrics("summhf"))


def _add(rated: dict[tuple[str, str], dict[str, Any]], line: str, where: str) -> None:
    try:
        record = json.loads(line)
        info, summary = record["info"], record["summary"]
        post, text = info.get("post") or info["article"], summary["text"]
        overall = summary["axes"].get("overall")
        key = str(info["id"]), text
    except (json.JSONDecodeError, KeyError, TypeError, AttributeError) as error:
        raise ValueError(
            f"{where} is no axis evaluation ({type(error).__name__}: {error}); it needs info.id, "
            "info.post or info.article, summary.text and summary.axes"
        ) from error
    if overall is not None:
        known = rated.setdefault(
            key, {"post": post, "policy": summary.get("policy"), "ratings": []}
        )
        known["ratings"].append(overall)


def _rows(rated: dict[tuple[str, str], dict[str, Any]]) -> list[dict[str, object]]:
    rows = []
    numbers: dict[str, int] = {}
    for (post_id, text), known in rated.items():
        numbers[post_id] = number = numbers.get(post_id, 0) + 1
        ratings = tuple(known["ratings"])
        rows.append({
            "item_id": f"summhf/{post_id}/{number}/overall",
            "dataset": "summhf",
            "text_id": f"summhf/{post_id}/{number}",
            "group_id": f"summhf/{post_id}/overall",
            "cluster_id": f"summhf/{post_id}",
            "candidate": known["policy"],
            "instruction": _INSTRUCTION.format(post=known["post"]),
            "response": text.strip(),
            "criterion": "overall",
            "rubric_id": "summhf-overall",
            "human": sum(ratings) / len(ratings),
            "human_ratings": ratings,
        })  # fmt: skip
    return rows
