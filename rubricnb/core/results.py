"""Recorded runs: the judgments that are committed under ``results/``, without any text.

``results/<study>/<judge slug>/<dataset>.parquet`` holds the judgments and ``run.json``
beside it says how they came about; ``results/judges.csv`` maps slugs to specs. A
browser, which cannot read Parquet, has the judgments as ``<dataset>.csv.gz``
(`write_as_text`).
"""

from __future__ import annotations

import glob
import json
from functools import lru_cache
from pathlib import Path, PureWindowsPath

import pandas as pd

from rubricnb.core.frames import Requests
from rubricnb.core.judge import Judge
from rubricnb.core.judge import judges as judges
from rubricnb.core.judge import slug_of as slug_of
from rubricnb.core.judgments import dtypes_of, typed
from rubricnb.core.rendering import key_of, rendered
from rubricnb.core.support.extras import extra
from rubricnb.core.support.folders import results_folder as results_folder

AS_TEXT = ".csv.gz"


def plain(name: str) -> bool:
    """Whether a name is that of one file or folder, without a path."""
    return (
        bool(name)
        and not name.startswith(".")
        # a simulated judge's name has a colon, and no drive
        and not PureWindowsPath(name).drive
        and not set(name) & set("/\\\0")
    )


def recorded(
    judge: Judge | str, dataset: str, study: str | None = None
) -> pd.DataFrame:
    """Read the recorded judgments of a judge on a dataset.

    Parameters
    ----------
    judge
        Slug or spec (``results/judges.csv`` maps them).
    dataset
        Name of the dataset.
    study
        Name of the study; default: all that have this judge and dataset, but for those
        whose file says ``apart: true``, which ask a judge again in another way.

    Returns
    -------
    DataFrame
        Judgments; ``source`` is ``recorded``.

    Raises
    ------
    FileNotFoundError
        There is no such run; names those there are.
    ValueError
        The studies were recorded with different weights, versions or endpoints: name
        one.

    Examples
    --------
    >>> import rubricnb as rb
    >>> rb.recorded("embedded", "minibench").status.unique().tolist()
    ['ok']
    """
    slug = slug_of(judge) if isinstance(judge, str) else judge.slug
    paths = [p for p in _paths(slug, dataset, study) if study or not is_apart(p.parent)]
    if not paths:
        there = sorted(
            f"{p.parent.name} on {p.stem} ({p.parent.parent.name})"
            for p in results_folder().glob("*/*/*.parquet")
        )
        raise FileNotFoundError(
            f"no recorded run of {judge!r} on {dataset!r}; there are: "
            f"{', '.join(there) or 'none'}; ask the judge with rubricnb.run"
        )
    if len({identity_in(path.parent) for path in paths}) > 1:
        studies = ", ".join(path.parent.parent.name for path in paths)
        raise ValueError(
            f"{judge!r} names different judges in these studies ({studies}; see their "
            "run.json): choose one with study="
        )
    frames = [_read(path, path.stat().st_mtime_ns) for path in paths]
    if len(frames) == 1:
        return frames[0].copy()
    # two studies may have asked the same request
    together = pd.concat(frames, ignore_index=True)
    return together.drop_duplicates(["request_id", "criterion"], ignore_index=True)


def recorded_judgments(judge: Judge, requests: Requests) -> pd.DataFrame:
    """Return the recorded answers to these requests; an empty frame if there are none.

    An answer counts only if its key is that of today's prompt to this judge: not one
    about another text, and not one by other weights or another endpoint of the same
    name. Failed requests have no answer.
    """
    found = []
    for dataset in requests.source["dataset"].unique() if judge.identity else ():
        for path in _paths(judge.slug, dataset):
            frame = _read(path, path.stat().st_mtime_ns)
            asked = frame["request_id"].isin(requests["request_id"])
            found.append(frame[asked & (frame["status"] != "error")])
    found = [f for f in found if len(f)]
    if not found:
        return pd.DataFrame()
    out = pd.concat(found, ignore_index=True)
    out = out[has_todays_key(out, judge, requests)]
    return out.drop_duplicates(["request_id", "criterion"], ignore_index=True)


def has_todays_key(found: pd.DataFrame, judge: Judge, requests: Requests) -> pd.Series:
    """Tell which recorded answers belong to prompts that are the same today.

    A read of its own answers a request, and so does a copy of the first read.
    """
    asked = requests[requests["request_id"].isin(found["request_id"])]
    today = {
        (request.request_id, key_of(request, judge, shared))
        for request in rendered(asked, judge)
        for shared in (False, True)
    }
    keys = zip(found["request_id"], found["key"], strict=True)
    return pd.Series([key in today for key in keys], index=found.index, dtype=bool)


def _paths(slug: str, dataset: str, study: str | None = None) -> list[Path]:
    # a spec that is not recorded
    if not all(map(plain, (slug, dataset, study or "*"))):
        return []
    slug, dataset = glob.escape(slug), glob.escape(dataset)
    found = (
        path
        for ending in (".parquet", AS_TEXT)
        for path in results_folder().glob(f"{study or '*'}/{slug}/{dataset}{ending}")
    )
    return sorted(found)


def identity_in(folder: Path) -> str:
    """Return the identity of the judge of a folder of judgments, or nothing."""
    return str(_card(folder).get("identity", ""))


def is_apart(folder: Path) -> bool:
    """Whether a folder of judgments is read only where its study is named."""
    return bool(_card(folder).get("apart", False))


def _card(folder: Path) -> dict[str, object]:
    path = folder / "run.json"
    return dict(json.loads(path.read_text())) if path.exists() else {}


def write_as_text(judgments: pd.DataFrame, path: Path) -> None:
    """Write recorded judgments as a compressed table that needs no pyarrow.

    Parameters
    ----------
    judgments
        As `recorded` returns them.
    path
        Ends in `AS_TEXT`. The same judgments give the same bytes.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> judgments = recorded("embedded", "minibench")
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder, f"minibench{AS_TEXT}")
    ...     write_as_text(judgments, path)
    ...     _read(path, 0)["score"].equals(judgments["score"])
    True
    """
    how = {"method": "gzip", "compresslevel": 9, "mtime": 0}
    judgments.to_csv(path, index=False, compression=how)


@lru_cache(maxsize=8)
def _read(path: Path, modified: int) -> pd.DataFrame:
    if path.name.endswith(AS_TEXT):
        columns = pd.read_csv(path, nrows=0).columns
        # An empty cell is missing, "none" is a value; scores may be halves.
        table = pd.read_csv(
            path,
            dtype=dtypes_of(columns) | {"score": "float64"},
            keep_default_na=False,
            na_values=[""],
        )
        return typed(table)[[*columns]]
    extra("pyarrow", "parquet", f"the recording {path.name}")
    return pd.read_parquet(path)
