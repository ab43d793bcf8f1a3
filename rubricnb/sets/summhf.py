"""SummHF: several workers' ratings of a summary are one record."""

from __future__ import annotations

from rubricnb.core.support.types import Records, Row


def rows(records: Records) -> Records:
    """Number each post's summaries and collect their overall ratings alone."""
    posts: dict[str, dict[str, Row]] = {}
    found = []
    for row in records:
        info, summary = row["info"], row["summary"]
        if (overall := summary["axes"].get("overall")) is not None:
            same = posts.setdefault(info["id"], {})
            if summary["text"] not in same:
                same[summary["text"]] = row | {"number": len(same) + 1, "ratings": []}
                found.append(same[summary["text"]])
            same[summary["text"]]["ratings"].append(overall)
    if not found:
        raise ValueError("the file has no summary with an overall rating")
    return found
