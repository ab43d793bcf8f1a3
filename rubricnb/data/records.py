"""Files of records that readers bring along: JSON, JSON lines or Parquet."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd


def records(path: str | Path, *needed: str) -> list[dict[str, Any]]:
    """Read a list of records, each of which has what is `needed` (``info.id``: inside ``info``).

    Raises
    ------
    ValueError
        Another format, or a record lacks something; names its number, from 1.
    """
    path = Path(path)
    if path.suffix == ".parquet":
        rows = pd.read_parquet(path).to_dict("records")
    else:
        text = path.read_text(encoding="utf-8")
        # Not splitlines(): texts hold other separators than "\n".
        lines = [text] if path.suffix == ".json" else filter(str.strip, text.split("\n"))
        try:
            read = [json.loads(line) for line in lines]
        except json.JSONDecodeError as error:
            raise ValueError(f"{path.name} holds no JSON: {error}") from error
        rows = read[0] if path.suffix == ".json" else read
    if not isinstance(rows, list):
        raise ValueError(f"{path.name} holds no list of records but a {type(rows).__name__}")
    for number, row in enumerate(rows, 1):
        for name in needed:
            part = row
            for key in name.split("."):
                if not isinstance(part, dict) or key not in part:
                    raise ValueError(
                        f"{path.name}: record {number} lacks {name!r}; it needs {', '.join(needed)}"
                    )
                part = part[key]
    return rows
