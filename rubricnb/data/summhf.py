"""SummHF: summaries of posts, rated from 1 to 7; from a file of one's own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd

from rubricnb.data.records import records
from rubricnb.data.rubrics import bundled_rubrics
from rubricnb.data.validate import check_items
from rubricnb.frames import Items

_INSTRUCTION = "Summarise the following post.\n\n{post}"


def load(name: str, path: str | Path) -> Items:
    r"""Load axis evaluations of SummHF. Not yet met real data: written from its description.

    Parameters
    ----------
    name
        ``summhf``.
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
        A record lacks something; none has a rating; or a rating is out of range.

    Notes
    -----
    Stiennon et al. 2020; https://github.com/openai/summarize-from-feedback, ``axis_evals``.

    Examples
    --------
    >>> import json
    >>> from tempfile import TemporaryDirectory
    >>> line = {"info": {"id": "p1", "post": "A long post."}, "worker": "w", "summary":
    ...         {"text": "A post.", "policy": "ref", "axes": {"overall": 6}}}
    >>> with TemporaryDirectory() as folder:
    ...     file = Path(folder, "axis.jsonl")
    ...     _ = file.write_text(json.dumps(line))
    ...     load("summhf", file)[["text_id", "candidate", "human"]]
           text_id candidate  human
    0  summhf/p1/1       ref    6.0
    """
    rows = map(_record, records(path, "info.id", "summary.text", "summary.axes"))
    rated = pd.DataFrame([row for row in rows if row["overall"] is not None])
    if rated.empty:
        raise ValueError(f"{Path(path).name} holds no summary with an overall rating")
    by = rated.groupby(["post_id", "text"], sort=False)
    first = by.head(1).reset_index(drop=True)
    posts = "summhf/" + first["post_id"]
    texts = posts + "/" + (first.groupby("post_id").cumcount() + 1).astype("str")
    items = pd.DataFrame(
        {
            "item_id": texts + "/overall",
            "dataset": "summhf",
            "text_id": texts,
            "group_id": posts + "/overall",
            "cluster_id": posts,
            "candidate": first["policy"],
            "instruction": [_INSTRUCTION.format(post=post) for post in first["post"]],
            "response": first["text"].str.strip(),
            "criterion": "overall",
            "rubric_id": "summhf-overall",
            "human": by["overall"].mean().array,
            "human_ratings": by["overall"].agg(tuple).array,
        }
    )
    return check_items(items, bundled_rubrics("summhf"))


def _record(record: dict[str, Any]) -> dict[str, Any]:
    info, summary = record["info"], record["summary"]
    if not (post := info.get("post") or info.get("article")):
        raise ValueError(f"the record of {info['id']!r} has neither info.post nor info.article")
    return {
        "post_id": str(info["id"]),
        "post": post,
        "text": summary["text"],
        "policy": summary.get("policy"),
        "overall": summary["axes"].get("overall"),
    }
