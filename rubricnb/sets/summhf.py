"""SummHF: several workers' ratings of a summary are one record."""

from __future__ import annotations

from rubricnb.core.support.types import Records, Row


def rows(records: Records) -> Records:
    """Number each post's summaries and collect their overall ratings alone."""
    posts: dict[str, dict[str, Row]] = {}
    for row in records:
        summary = row["summary"]
        if (overall := summary["axes"].get("overall")) is not None:
            same = posts.setdefault(row["info"]["id"], {})
            new = row | {"number": len(same) + 1, "ratings": []}
            same.setdefault(summary["text"], new)["ratings"].append(overall)
    found = [summary for same in posts.values() for summary in same.values()]
    if not found:
        raise ValueError("the file has no summary with an overall rating")
    return found
