"""SummHF: several workers' ratings of a summary are one record."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rubricnb.data.tables import read_records


def rows(files: Sequence[Path], needs: Sequence[str]) -> list[dict[str, Any]]:
    """Number the summaries of each post and collect their overall ratings; others are left out."""
    posts: dict[str, dict[str, dict[str, Any]]] = {}
    found = []
    for row in read_records(files[0], needs):
        info, summary = row["info"], row["summary"]
        if (overall := summary["axes"].get("overall")) is not None:
            same = posts.setdefault(info["id"], {})
            if summary["text"] not in same:
                same[summary["text"]] = row | {"number": len(same) + 1, "ratings": []}
                found.append(same[summary["text"]])
            same[summary["text"]]["ratings"].append(overall)
    if not found:
        raise ValueError(f"{files[0].name} holds no summary with an overall rating")
    return found
