"""Recorded runs: the judgments that are committed under ``results/``, without any text.

``results/<study>/<judge slug>/<dataset>.parquet`` holds the judgments and ``run.json`` beside it
says how they came about; ``results/judges.csv`` maps slugs to specs.
"""

from __future__ import annotations

import glob
import hashlib
import json
import os
import platform
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path, PureWindowsPath
from typing import Any

import pandas as pd

import rubricnb
from rubricnb.frames import Requests
from rubricnb.judging.contract import Judge, Unopened
from rubricnb.judging.registry import inner, judge_class
from rubricnb.judging.rendering import rendered


def results_folder() -> Path:
    """Return the folder of recorded runs: ``$RUBRICNB_RESULTS``, else ``results/`` of the clone."""
    if path := os.environ.get("RUBRICNB_RESULTS"):
        return Path(path)
    return Path(rubricnb.__file__).resolve().parent.parent / "results"


def inside(*names: str) -> Path:
    """Return a path in the folder of recorded runs; refuse names that would lead out of it."""
    for name in names:
        if not _plain(name):
            raise ValueError(
                f"{name!r} cannot name a file or folder of results/: use letters, digits, - and _"
            )
    return results_folder().joinpath(*names)


def _plain(name: str) -> bool:
    drive = PureWindowsPath(name).drive  # a simulated judge's name has a colon, and no drive
    return bool(name) and not name.startswith(".") and not drive and not set(name) & set("/\\\0")


def judges() -> pd.DataFrame:
    """List the judges of whom there are recorded runs.

    Returns
    -------
    DataFrame
        slug, spec, model, licence, identity.

    Examples
    --------
    >>> judges().columns.tolist()
    ['slug', 'spec', 'model', 'licence', 'identity']
    """
    path = results_folder() / "judges.csv"
    columns = ["slug", "spec", "model", "licence", "identity"]
    return pd.read_csv(path, dtype="str") if path.exists() else pd.DataFrame(columns=columns)


def recorded(judge: str, dataset: str, study: str | None = None) -> pd.DataFrame:
    """Read the recorded judgments of a judge on a dataset.

    Parameters
    ----------
    judge
        Slug or spec (``results/judges.csv`` maps them).
    dataset
        Name of the dataset.
    study
        Name of the study; default: all that have this judge and dataset.

    Returns
    -------
    DataFrame
        Judgments; ``source`` is ``recorded``.

    Raises
    ------
    FileNotFoundError
        There is no such run; names those there are.
    ValueError
        The studies were recorded with different weights, versions or endpoints: name one.

    Examples
    --------
    >>> import rubricnb as rb
    >>> rb.recorded("embedded", "minibench").status.unique().tolist()
    ['ok']
    """
    slug = slug_of(judge)
    paths = _paths(slug, dataset, study)
    if not paths:
        there = sorted(
            f"{p.parent.name} on {p.stem} ({p.parent.parent.name})"
            for p in results_folder().glob("*/*/*.parquet")
        )
        raise FileNotFoundError(
            f"no recorded run of {judge!r} on {dataset!r}; there are: "
            f"{', '.join(there) or 'none'}; ask the judge with rubricnb.run"
        )
    if len({_identity(path.parent) for path in paths}) > 1:
        studies = ", ".join(path.parent.parent.name for path in paths)
        raise ValueError(
            f"{judge!r} stands for different judges in these studies ({studies}; see their "
            "run.json): name one of them with study="
        )
    frames = [_read(path, path.stat().st_mtime_ns) for path in paths]
    return frames[0].copy() if len(frames) == 1 else pd.concat(frames, ignore_index=True)


def recorded_judgments(
    judge: Judge | str, requests: Requests, force_replicates: bool = False
) -> pd.DataFrame:
    """Return the recorded answers to these requests; an empty frame if there are none.

    An answer counts only if its key is that of today's prompt to this judge: not one about another
    text, and not one by other weights or another endpoint of the same name. A spec stands for the
    identity in ``results/judges.csv``. Failed requests have no answer.
    """
    slug = slug_of(judge) if isinstance(judge, str) else judge.slug
    found = []
    for dataset in requests.source["dataset"].unique():
        for path in _paths(slug, dataset):
            frame = _read(path, path.stat().st_mtime_ns)
            asked = frame["request_id"].isin(requests["request_id"])
            found.append(frame[asked & (frame["status"] != "error")])
    found = [f for f in found if len(f)]
    if not found:
        return pd.DataFrame()
    out = found[0] if len(found) == 1 else pd.concat(found, ignore_index=True)
    out = out[_same_keys(out, _asked_then(judge), requests, force_replicates)]
    return out.drop_duplicates(["request_id", "criterion"], ignore_index=True)


def _asked_then(judge: Judge | str) -> Unopened:
    if not isinstance(judge, str):
        return Unopened(judge.identity, judge.source, prompt=getattr(judge, "prompt", None))
    table = judges().set_index("slug")["identity"]
    return Unopened(table.get(slug_of(judge), ""), judge_class(judge).source)


def _same_keys(
    found: pd.DataFrame, judge: Unopened, requests: Requests, force_replicates: bool
) -> pd.Series:
    """Say which recorded answers are to the very prompts that would be sent today."""
    same = pd.Series(False, index=found.index)
    # A copy of the first read, or a read of its own: both answer the request.
    for own in dict.fromkeys((force_replicates, True)):
        open_ids = found.loc[~same, "request_id"]
        asked = requests[requests["request_id"].isin(open_ids)]
        keys = {r.request_id: r.key for r in rendered(asked, judge, own)}
        same |= found["request_id"].map(keys) == found["key"]
        if same.all():
            break
    return same


def record(
    judgments: pd.DataFrame, judge: Judge, study: str, *, model: str, licence: str, spec: str
) -> Path:
    """Write judgments of one judge into ``results/``, added to what is recorded already.

    Several processes may record into one folder at once.
    """
    folder = inside(study, judge.slug)
    parts = {
        inside(study, judge.slug, f"{dataset}.parquet"): frame
        for dataset, frame in judgments.groupby("dataset", observed=True)
    }
    with _alone(folder):
        refuse_another(judge, study)
        for path, frame in parts.items():
            _add(frame, path)
        sets = {p.stem: pd.read_parquet(p) for p in sorted(folder.glob("*.parquet"))}
        write_card(folder, judge, {name: _counts(frame) for name, frame in sets.items()})
    register(judge, spec=spec, model=model, licence=licence)
    return folder


def refuse_another(judge: Judge, study: str) -> None:
    """Refuse a judge whose judgments would mix with those of another, before asking costs money."""
    folder = inside(study, judge.slug)
    other = _identity(folder)
    if other not in ("", judge.identity):
        raise ValueError(
            f"{folder} has judgments by {other!r}, and this judge is {judge.identity!r}: they must "
            "not mix. Answers given so far are kept in the store. Record them under another "
            "study's name, or remove that folder, and run the same again"
        )


def register(judge: Judge, *, spec: str, model: str, licence: str) -> None:
    """Write what ``results/judges.csv`` says of a judge."""
    entry = pd.DataFrame(
        [{"slug": judge.slug, "spec": spec, "model": model, "licence": licence,
          "identity": judge.identity}]
    )  # fmt: skip
    with _alone(results_folder()):
        known = judges()
        out = pd.concat([known[known["slug"] != judge.slug], entry]).sort_values("slug")
        _write(results_folder() / "judges.csv", lambda path: out.to_csv(path, index=False))


def write_card(folder: Path, judge: Judge, datasets: dict[str, Any]) -> None:
    """Write ``run.json``: when and with what the files of a folder came about, and their counts."""
    card = {
        "judge": judge.slug,
        "identity": judge.identity,
        "package": rubricnb.__version__,
        "python": platform.python_version(),
        "machine": f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores",
        "recorded": datetime.now(UTC).date().isoformat(),
        "datasets": datasets,
    }
    text = json.dumps(card, indent=1) + "\n"
    _write(folder / "run.json", lambda path: path.write_text(text, encoding="utf-8"))


def run_card(judge: str, study: str) -> dict[str, Any]:
    """Read ``run.json`` of a recorded run: when, with what, how much."""
    path = inside(study, slug_of(judge), "run.json")
    card: dict[str, Any] = json.loads(path.read_text())
    return card


def _paths(slug: str, dataset: str, study: str | None = None) -> list[Path]:
    if not all(map(_plain, (slug, dataset, study or "*"))):  # a spec that is not recorded
        return []
    slug, dataset = glob.escape(slug), glob.escape(dataset)
    return sorted(results_folder().glob(f"{study or '*'}/{slug}/{dataset}.parquet"))


def _identity(folder: Path) -> str:
    """Who judged what is in a folder of judgments; empty if nothing is."""
    path = folder / "run.json"
    return str(json.loads(path.read_text())["identity"]) if path.exists() else ""


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Keep other processes out of a folder while files in it are read, added to and written."""
    from filelock import FileLock

    folder.mkdir(parents=True, exist_ok=True)
    with FileLock(folder / ".lock"):
        yield


def _write(path: Path, write: Callable[[Path], object]) -> None:
    """Write a file of which nobody ever sees a part."""
    part = path.with_name(f".{path.name}")
    write(part)
    part.replace(path)


def _add(judgments: pd.DataFrame, path: Path) -> None:
    """Add judgments to a file, in place of what it has of the same requests."""
    if path.exists():
        old = pd.read_parquet(path)
        old = old[~old["request_id"].isin(judgments["request_id"])]
        judgments = pd.concat([old, judgments], ignore_index=True)
    judgments = judgments.assign(source="recorded").astype({"source": "category"})
    _write(path, lambda p: judgments.to_parquet(p, index=False, compression="zstd"))


def _counts(frame: pd.DataFrame) -> dict[str, Any]:
    calls = frame.drop_duplicates("key")
    return {
        "judgments": len(frame),
        "calls": len(calls),
        "designs": frame["design"].value_counts().to_dict(),
        "readouts": frame["readout"].value_counts().to_dict(),
        "seeds": sorted(frame["seed"].unique().tolist()),
        "status": frame["status"].value_counts().to_dict(),
        "prompt_tokens": int(calls["prompt_tokens"].sum()),
        "cached_tokens": int(calls["cached_tokens"].sum()),
        "completion_tokens": int(calls["completion_tokens"].sum()),
        "seconds": round(float(calls["seconds"].sum()), 1),
        "item_ids_sha256": hashlib.sha256("\n".join(sorted(frame["item_id"].unique())).encode())
        .hexdigest(),
    }  # fmt: skip


def slug_of(judge: str) -> str:
    """Return the slug that ``results/judges.csv`` has for a spec; a slug stays as it is."""
    table = judges()
    match = table.loc[table["spec"] == inner(judge), "slug"]
    return str(match.iloc[0]) if len(match) else judge


@lru_cache(maxsize=8)
def _read(path: Path, modified: int) -> pd.DataFrame:
    return pd.read_parquet(path)
