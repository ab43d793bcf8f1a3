"""Recording: a study's judgments are written into ``results/``, without any text."""

from __future__ import annotations

import hashlib
import json
import os
import platform
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pandas as pd
from filelock import FileLock

import rubricnb
from rubricnb.core.judge import Judge
from rubricnb.core.results import identity_in, judges, plain, results_folder
from rubricnb.engines.vllm import gpus


def inside(*names: str) -> Path:
    """Return a path in the folder of recorded runs; refuse one that leads out."""
    for name in names:
        if not plain(name):
            raise ValueError(
                f"{name!r} cannot name a file or folder of results/: use letters, "
                "digits, - and _"
            )
    return results_folder().joinpath(*names)


def record(
    judgments: pd.DataFrame,
    judge: Judge,
    study: str,
    *,
    model: str,
    licence: str,
    spec: str,
    name: str = "",
    conditions: dict[str, Any] | None = None,
    question: dict[str, str] | None = None,
    apart: bool = False,
) -> Path:
    """Write one judge's judgments into ``results/``, added to what is there.

    Several processes may record into one folder at once. `conditions` are what this
    judge was asked with beside the study's plans, `question` is what a decision model
    was asked (its options ``kind`` and ``shape``); `studies.contribution` rebuilds the
    plans and the judge from them. What is recorded `apart` is read only where its study
    is named (`rubricnb.recorded`).
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
        counts = {p.stem: counts_of(p) for p in sorted(folder.glob("*.parquet"))}
        facts: dict[str, Any] = {"spec": spec, "model": model, "licence": licence}
        facts |= {"conditions": conditions or {}}
        facts |= {"question": question} if question else {}
        facts |= {"apart": True} if apart else {}
        write_card(folder, judge, counts, **facts)
    register(judge, spec=spec, model=model, licence=licence, name=name)
    return folder


def refuse_another(judge: Judge, study: str) -> None:
    """Refuse, before paying, a judge whose judgments would mix with another's."""
    folder = inside(study, judge.slug)
    other = identity_in(folder)
    if other not in ("", judge.identity):
        raise ValueError(
            f"{folder} has judgments by {other!r}, and this judge is "
            f"{judge.identity!r}: they cannot share a folder. Answers given so far are "
            "kept in the store. Record them under a different study's name, or remove "
            "that folder, and run the same command again"
        )


def register(
    judge: Judge, *, spec: str, model: str, licence: str, name: str = ""
) -> None:
    """Write a judge's row in ``results/judges.csv``: in its old place, or at the end.

    The file stands from small to large: a new line is moved to its place by hand.
    """
    entry = {"name": name or model.partition(" (")[0], "spec": spec, "model": model}
    entry |= {"licence": licence, "identity": judge.identity}
    with _alone(results_folder()):
        known = judges().set_index("slug")
        known.loc[judge.slug, list(entry)] = list(entry.values())
        _write(results_folder() / "judges.csv", known.to_csv)


def write_card(
    folder: Path, judge: Judge, datasets: dict[str, Any], **facts: Any
) -> None:
    """Write ``run.json``: when and with what files were made, and their counts."""
    card = {
        "judge": judge.slug,
        "identity": judge.identity,
        **facts,
        "package": rubricnb.__version__,
        "python": platform.python_version(),
        "machine": _machine(judge),
        "recorded": datetime.now(UTC).date().isoformat(),
        "datasets": datasets,
    }
    text = json.dumps(card, indent=1) + "\n"
    _write(folder / "run.json", lambda path: path.write_text(text, encoding="utf-8"))


def _machine(judge: Judge) -> str:
    """Return what the judge ran on: processor, and vLLM's GPUs and driver."""
    parts = [f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores"]
    if judge.slug.endswith("-vllm"):
        parts += [f"{gpu['name']}, driver {gpu['driver']}" for gpu in gpus()]
    return "; ".join(parts)


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Keep other processes out of a folder while its files are read and written."""
    folder.mkdir(parents=True, exist_ok=True)
    with FileLock(folder / ".lock"):
        yield


def _write(path: Path, write: Callable[[Path], object]) -> None:
    """Write a file atomically."""
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


def counts_of(path: Path) -> dict[str, Any]:
    """Count a file of judgments, for its card and `studies.contribution`."""
    frame = pd.read_parquet(path)
    calls = frame.drop_duplicates("key")
    answered = frame.dropna(subset="score").groupby("design", observed=True)
    return {
        "sha256": hashlib.sha256(path.read_bytes()).hexdigest(),
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
        "positions": {
            str(design): _tally(part["position"]) for design, part in answered
        },
        "scores": {str(design): _tally(part["score"]) for design, part in answered},
        "item_ids_sha256": hashlib.sha256(
            "\n".join(sorted(frame["item_id"].unique())).encode()
        ).hexdigest(),
    }


def _tally(values: pd.Series) -> dict[str, int]:
    return {
        str(value): int(n) for value, n in values.value_counts().sort_index().items()
    }


def read_table(name: str) -> pd.DataFrame:
    """Read a table that `write_tables` has written."""
    return pd.read_csv(results_folder() / "recordings" / f"{name}.csv")


def write_tables(tables: dict[str, pd.DataFrame], prefix: str = "") -> None:
    """Write tables about judgments to ``results/recordings``, and name the files."""
    folder = results_folder() / "recordings"
    folder.mkdir(parents=True, exist_ok=True)
    for name, table in tables.items():
        path = folder / f"{prefix}{name}.csv"
        # `reason` has the sentences
        table = table.drop(columns="codes", errors="ignore")
        table.to_csv(path, index=False, float_format="%.6g", lineterminator="\n")
        print(path)
