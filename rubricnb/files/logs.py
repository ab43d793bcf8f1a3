"""The logs of inspect_ai, promptfoo and DeepEval as tables of scores."""

from __future__ import annotations

import json
import re
import struct
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd

from rubricnb.core.support.extras import extra
from rubricnb.files.tables import parsed, read_text, reading, refuse_half_characters

Row = dict[str, Any]
# correct, partial, incorrect, no answer
_LETTERS = {"C": 1.0, "P": 0.5, "I": 0.0, "N": 0.0}
_FACTS = ("text_id", "cluster_id", "group_id", "candidate", "form", "human")
_ZSTD = 93
MAX_UNPACKED_BYTES = 2**30
"""Most that a log may unpack to."""
# promptfoo's assertions that ask a judge
_GRADED = re.compile(
    "rubric|graded|g-eval|factuality|relevance|recall|faithfulness|select-best"
)


def read_log(path: Path) -> pd.DataFrame:
    """Read a log of one of them, whose scale is in ``attrs``;
    or a JSON list of rows.
    """
    with reading(path):
        rows, scale = _rows(path)
        if not rows:
            raise ValueError(
                f"{path.name} is a log without scores: give one that was written after "
                "the grading"
            )
        refuse_half_characters(rows, path)
        frame = pd.DataFrame(rows)
    if "reason" in frame:
        frame["reason"] = frame["reason"].fillna("")
    frame.index += 1
    frame.attrs["scale"] = scale
    return frame


def _rows(path: Path) -> tuple[list[Row], tuple[float, float] | None]:
    unpacked = path.suffix.lower() == ".eval"
    log = _unpacked(path) if unpacked else parsed(read_text(path), path)
    if isinstance(log, list) and all(isinstance(row, dict) for row in log):
        return log, None
    if not isinstance(log, dict):
        raise ValueError(
            f"{path.name} does not hold JSON objects: {{column: value, …}}, …"
        )
    runs, cases = log.get("results"), log.get("testCases")
    if "eval" in log:
        return list(_inspect(log)), None
    if isinstance(runs, dict) and isinstance(runs.get("results"), list):
        return list(_promptfoo(runs["results"])), (0.0, 1.0)
    if isinstance(cases, list):
        return list(_deepeval(cases)), (0.0, 1.0)
    raise ValueError(
        f"{path.name} is neither a list of rows nor a log of inspect_ai, promptfoo or "
        f"DeepEval; it has: {', '.join(list(log)[:8])}"
    )


def _inspect(log: Row) -> Iterator[Row]:
    about = log["eval"]
    scorers = {s["name"]: s for s in about.get("scorers") or []}
    grader = (about.get("model_roles") or {}).get("grader") or {}
    for sample in log.get("samples") or []:
        known = {
            "text_id": sample["id"],
            "candidate": about["model"],
            "read": sample["epoch"],
        }
        known |= {"dataset": about["task"]}
        scores = {
            name: score["value"] for name, score in (sample.get("scores") or {}).items()
        }
        error = sample.get("error") or {}
        # An error ends a sample; the scorers before it have given their scores.
        for scorer in (s for s in scorers if error and s not in scores):
            metrics = scorers[scorer].get("metrics")
            scores[scorer] = (
                dict.fromkeys(metrics) if isinstance(metrics, dict) else None
            )
        for scorer, values in scores.items():
            model = (scorers.get(scorer, {}).get("options") or {}).get(
                "model"
            ) or grader
            judge = model.get("model") if isinstance(model, dict) else model
            for name, value in (
                values if isinstance(values, dict) else {scorer: values}
            ).items():
                known |= {"criterion": name, "judge": judge or "unknown"}
                failed = (
                    error.get("message", "error") if value is None and error else None
                )
                yield (
                    known | _score(value, failed) | _facts(sample.get("metadata"), name)
                )


def _promptfoo(results: list[Row]) -> Iterator[Row]:
    tests: dict[str, Any] = {}
    answers: dict[str, list[Any]] = {}
    for result in results:
        case, given = result.get("testCase") or {}, result.get("vars") or {}
        # --repeat gives a test another number;
        # an equal answer is the same text, read again.
        number = tests.setdefault(json.dumps([given, case]), result.get("testIdx", 0))
        by = result.get("provider") or {}
        candidate = (
            by if isinstance(by, str) else by.get("label") or by.get("id") or "unknown"
        )
        if prompt := result.get("promptIdx"):
            candidate = f"{candidate}, prompt {prompt}"
        earlier = answers.setdefault(f"{number}/{candidate}", [])
        earlier.append(answer := (result.get("response") or {}).get("output"))
        repeat = earlier.index(answer)
        test = f"test {number}" + (f", repeat {repeat}" if repeat else "")
        known = {
            "text_id": f"{test}/{candidate}",
            "group_id": test,
            "candidate": candidate,
        }
        known |= {"cluster_id": f"test {number}", "read": earlier.count(answer)}
        named: dict[str, str] = {}
        for part in (result.get("gradingResult") or {}).get("componentResults") or []:
            asked, about = part.get("assertion"), part.get("metadata") or {}
            if not asked or "assertionSet" in about:
                continue  # a sum of others
            kind, value = str(asked.get("type")), str(asked.get("value", ""))
            name = _metric(asked, given) or f"{kind}: {value}"[:60]
            if named.setdefault(name, value) != value:
                name = f"{name}: {value}"[:60]
            usual = (
                (case.get("options") or {}).get("provider")
                if _GRADED.search(kind)
                else None
            )
            judge = asked.get("provider") or usual or "unknown"
            judge = judge.get("id", "unknown") if isinstance(judge, dict) else judge
            failed = part.get("reason") or "error" if about.get("graderError") else None
            facts = _facts(given | (case.get("metadata") or {}), name)
            known |= {"criterion": name, "judge": judge}
            yield known | _score(part.get("score"), failed) | facts


def _metric(asked: Row, given: Row) -> str:
    """Return an assertion's metric with its variables filled in."""
    name = re.sub(
        r"\{\{\s*(\w+)\s*\}\}",
        lambda slot: str(given.get(slot[1], slot[0])),
        asked.get("metric") or "",
    )
    return f"not {name}" if name and str(asked.get("type")).startswith("not-") else name


def _deepeval(cases: list[Row]) -> Iterator[Row]:
    names = [case.get("name") or f"case {number}" for number, case in enumerate(cases)]
    for number, case in enumerate(cases):
        name = (
            names[number]
            if names.count(names[number]) == 1
            else f"{names[number]} {number}"
        )
        for metric in case.get("metricsData") or []:
            criterion = metric["name"].removesuffix(" [GEval]")
            judge = metric.get("evaluationModel") or "unknown"
            known = {"text_id": name, "criterion": criterion, "judge": judge}
            known |= _score(metric.get("score"), metric.get("error"))
            yield known | _facts(case.get("metadata"), criterion)


def _score(value: Any, error: Any) -> Row:
    """A score and its status; inspect_ai's letters count as its metrics count them."""
    if error:
        return {"score": None, "status": "error", "reason": str(error)[:200]}
    if isinstance(value, str):
        value = _LETTERS.get(value.strip().upper(), value)
    try:
        number = float(value)
    except (TypeError, ValueError):  # a text, a list, or nothing
        number = float("nan")
    return {"score": number, "status": "unparsed" if number != number else "ok"}


def _facts(metadata: Row | None, criterion: str) -> Row:
    """What a log's metadata say under the names of our columns."""
    metadata = metadata or {}
    found = {name: metadata[name] for name in _FACTS if name in metadata}
    if f"human_{criterion}" in metadata:
        found["human"] = metadata[f"human_{criterion}"]
    return found


def _unpacked(path: Path) -> Row:
    """Read an .eval file: a ZIP of JSON, which inspect_ai compresses with Zstandard."""
    with zipfile.ZipFile(path) as archive, path.open("rb") as file:
        names = archive.namelist()
        if "header.json" not in names:
            raise ValueError(
                f"{path.name} has no header.json: let the evaluation finish, then read "
                "it"
            )
        wanted = [
            "header.json",
            *(name for name in names if name.startswith("samples/")),
        ]
        size = sum(archive.getinfo(name).file_size for name in wanted)
        if size > MAX_UNPACKED_BYTES:
            raise ValueError(
                f"{path.name} unpacks to {size:,} bytes, and at most "
                f"{MAX_UNPACKED_BYTES:,} are read; evaluate fewer samples in one log "
                "(rubricnb.files.logs.MAX_UNPACKED_BYTES)"
            )
        header, *samples = (
            parsed(_member(archive, file, name), path) for name in wanted
        )
        return dict(header) | {"samples": samples}


def _member(archive: zipfile.ZipFile, file: Any, name: str) -> str:
    info = archive.getinfo(name)
    if info.compress_type != _ZSTD:
        return archive.read(info).decode()
    pa = extra(
        "pyarrow",
        "parquet",
        f"a log compressed by inspect_ai ({Path(archive.filename or '').name})",
        "write it as JSON (inspect log dump), or ",
    )
    # where a local header has the lengths of name and extras
    file.seek(info.header_offset + 26)
    file.seek(sum(struct.unpack("<HH", file.read(4))), 1)
    packed = pa.BufferReader(file.read(info.compress_size))
    text = pa.CompressedInputStream(packed, "zstd").read(info.file_size + 1)
    if len(text) > info.file_size:
        raise ValueError(f"{name} is longer than the archive says")
    return bytes(text).decode()
