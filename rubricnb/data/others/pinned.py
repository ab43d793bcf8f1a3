"""The files of the recordings, at fixed commits and with their SHA-256 (``files.csv``)."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path

import pandas as pd

from rubricnb.data.fetch import fetch


@cache
def _files() -> pd.DataFrame:
    return pd.read_csv(Path(__file__).with_name("files.csv"))


def _of(folder: str, ending: str = "") -> pd.DataFrame:
    path = _files()["path"]
    return _files()[path.str.startswith(folder) & path.str.endswith(ending)]


def pinned(folder: str, ending: str = "") -> dict[str, Path]:
    """Fetch a folder's files, eight at once: path within the folder → local file."""
    files = _of(folder, ending)
    with ThreadPoolExecutor(8) as pool:
        local = pool.map(fetch, files["path"], files["sha256"])
    return dict(zip(files["path"].str.removeprefix(f"{folder}/"), local, strict=True))


def size_of(folder: str) -> float:
    """Megabytes to download."""
    return round(_of(folder)["bytes"].sum() / 1e6, 1)
