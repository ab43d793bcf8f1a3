"""The logs of inspect_ai, promptfoo and DeepEval as tables of scores."""

from __future__ import annotations

import json
import struct
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa

from rubricnb.data.tables import parsed

Row = dict[str, Any]
_LETTERS = {"C": 1.0, "P": 0.5, "I": 0.0, "N": 0.0}  # correct, partial, incorrect, no answer
_FACTS = ("text_id", "cluster_id", "group_id", "candidate", "form", "human")
_ZSTD = 93


def read_log(path: Path) -> pd.DataFrame:
    """Read a log of one of them, whose scale stands in ``attrs``; or a JSON list of rows."""
    if path.suffix.lower() == ".eval":
        rows, scale = list(_inspect(_unpacked(path))), None
    else:
        log = parsed(path.read_text(encoding="utf-8-sig"), path)
        if isinstance(log, list) and all(isinstance(row, dict) for row in log):
            log = {"rows": log}
        log = log if isinstance(log, dict) else {}
        cases = log.get("testCases", log.get("test_results"))
        runs = log.get("results")
        if "rows" in log:
            rows, scale = log["rows"], None
        elif "eval" in log and "plan" in log:
            rows, scale = list(_inspect(log)), None
        elif isinstance(runs, dict) and isinstance(runs.get("results"), list):
            rows, scale = list(_promptfoo(runs["results"])), (0.0, 1.0)
        elif isinstance(cases, list):
            cases = cases + log.get("conversationalTestCases", [])
            rows, scale = list(_deepeval(cases)), (0.0, 1.0)
        else:
            raise ValueError(
                f"{path.name} is neither a list of rows nor a log of inspect_ai, promptfoo or "
                f"DeepEval; it has: {', '.join(list(log)[:8])}"
            )
    if not rows:
        raise ValueError(f"{path.name} is a log without scores: was it written before the grading?")
    frame = pd.DataFrame(rows)
    frame.index += 1
    frame.attrs["scale"] = scale
    return frame


def _inspect(log: Row) -> Iterator[Row]:
    about = log["eval"]
    scorers = {s["name"]: s.get("options") or {} for s in about.get("scorers") or []}
    grader = (about.get("model_roles") or {}).get("grader") or {}
    for sample in log.get("samples") or []:
        known = {"text_id": sample["id"], "candidate": about["model"], "read": sample["epoch"]}
        for scorer, score in (sample.get("scores") or {}).items():
            model = scorers.get(scorer, {}).get("model") or grader
            judge = model.get("model") if isinstance(model, dict) else model
            values = score["value"]
            for name, value in (values if isinstance(values, dict) else {scorer: values}).items():
                known |= {"dataset": about["task"], "criterion": name, "judge": judge or "unknown"}
                yield known | _score(value, sample.get("error")) | _facts(sample["metadata"], name)


def _promptfoo(results: list[Row]) -> Iterator[Row]:
    for result in results:
        case, test = result.get("testCase") or {}, f"test {result.get('testIdx', 0)}"
        by = result.get("provider") or {}
        candidate = by if isinstance(by, str) else by.get("label") or by.get("id") or "unknown"
        if prompt := result.get("promptIdx"):
            candidate = f"{candidate}, prompt {prompt}"
        known = {"text_id": f"{test}/{candidate}", "group_id": test, "candidate": candidate}
        for part in (result.get("gradingResult") or {}).get("componentResults") or []:
            asked = part.get("assertion") or {}
            name = asked.get("metric") or f"{asked.get('type')}: {asked.get('value', '')}"[:60]
            judge = asked.get("provider") or "unknown"
            judge = judge.get("id", "unknown") if isinstance(judge, dict) else judge
            failed = (part.get("metadata") or {}).get("graderError")
            facts = _facts((result.get("vars") or {}) | (case.get("metadata") or {}), name)
            yield (
                known | {"criterion": name, "judge": judge} | _score(part["score"], failed) | facts
            )


def _deepeval(cases: list[Row]) -> Iterator[Row]:
    names = [case["name"] for case in cases]
    for number, case in enumerate(cases):
        name = names[number] if names.count(names[number]) == 1 else f"{names[number]} {number}"
        for metric in case.get("metricsData", case.get("metrics_data")) or []:
            criterion = metric["name"].removesuffix(" [GEval]")
            judge = metric.get("evaluationModel", metric.get("evaluation_model")) or "unknown"
            known = {"text_id": name, "criterion": criterion, "judge": judge}
            known |= _score(metric.get("score"), metric.get("error"))
            yield known | _facts(case.get("metadata"), criterion)


def _score(value: Any, error: Any) -> Row:
    """A score and its status; inspect_ai's letters count as its metrics count them."""
    if isinstance(value, str):
        value = _LETTERS.get(value.strip().upper(), value)
    if error:
        return {"score": None, "status": "error"}
    kind = isinstance(value, int | float | str)  # else a list, or nothing
    number = float(pd.to_numeric(value, errors="coerce")) if kind else float("nan")
    return {"score": number, "status": "unparsed" if number != number else "ok"}


def _facts(metadata: Row | None, criterion: str) -> Row:
    """What a log's metadata say under the names of our columns."""
    found = {name: metadata[name] for name in _FACTS if name in metadata} if metadata else {}
    if metadata and f"human_{criterion}" in metadata:
        found["human"] = metadata[f"human_{criterion}"]
    return found


def _unpacked(path: Path) -> Row:
    """Read an .eval file: a ZIP of JSON, which inspect_ai compresses with Zstandard."""
    try:
        with zipfile.ZipFile(path) as archive, path.open("rb") as file:
            names = archive.namelist()
            if "header.json" not in names:
                raise ValueError(f"{path.name} has no header.json: the evaluation has not finished")
            samples = [name for name in names if name.startswith("samples/")]
            header = json.loads(_member(archive, file, "header.json"))
            return header | {"samples": [json.loads(_member(archive, file, n)) for n in samples]}
    except zipfile.BadZipFile as error:
        raise ValueError(f"{path.name} is no log of inspect_ai: {error}") from error


def _member(archive: zipfile.ZipFile, file: Any, name: str) -> bytes:
    info = archive.getinfo(name)
    if info.compress_type != _ZSTD:
        return archive.read(info)
    file.seek(info.header_offset + 26)  # where a local header has the lengths of name and extras
    file.seek(sum(struct.unpack("<HH", file.read(4))), 1)
    return bytes(
        pa.CompressedInputStream(pa.BufferReader(file.read(info.compress_size)), "zstd").read()
    )
