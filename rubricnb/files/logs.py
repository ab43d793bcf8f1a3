"""The logs of inspect_ai, promptfoo, DeepEval and autorubric as raw tables.

A reader names fields, and nothing else: this one is the score, that one the judge, this
one an error. What a cell means is understood where all others are.
"""

from __future__ import annotations

import json
import re
import struct
import zipfile
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from rubricnb.core.support.extras import extra

Row = dict[str, Any]
# correct, partial, incorrect, no answer
_LETTERS = {"c": 1.0, "p": 0.5, "i": 0.0, "n": 0.0}
_FACTS = re.compile("text_id|cluster_id|group_id|candidate|form|human(_ratings|_\\d+)?")
# promptfoo's reason for a reply that it took for a pass, since it had no verdict
_NO_VERDICT = "Grading passed"
_ZSTD = 93
MAX_UNPACKED_BYTES = 2**30
"""Most that a log may unpack to."""
# promptfoo's assertions that ask a judge
_GRADED = re.compile(
    "rubric|graded|g-eval|factuality|relevance|recall|faithfulness|select-best"
)


class Log(NamedTuple):
    """The rows of a log, its scale, and the words with which it names scores."""

    rows: list[Row]
    scale: tuple[float, float] | None = None
    words: Mapping[str, float] = MappingProxyType({})


def log_of(document: Any, name: str) -> Log:
    """Return the rows of a log; or those of a JSON list of rows."""
    if isinstance(document, list) and all(isinstance(row, dict) for row in document):
        return _log_in_lines(document)
    if not isinstance(document, dict):
        raise ValueError(f"{name} does not hold JSON objects: {{column: value, …}}, …")
    document = document.get("testRunData") or document
    runs = document.get("results")
    cases = [*_list(document, "testCases"), *_list(document, "conversationalTestCases")]
    if "eval" in document:
        log = Log(list(_inspect(document)), None, _LETTERS)
    elif isinstance(runs, dict) and isinstance(runs.get("results"), list):
        log = Log(list(_promptfoo(runs["results"])), (0.0, 1.0))
    elif isinstance(document.get("testCases"), list):
        log = Log(list(_deepeval(cases)), (0.0, 1.0))
    else:
        raise ValueError(
            f"{name} is neither a list of rows nor a log of inspect_ai, promptfoo or "
            f"DeepEval; it has: {', '.join(list(document)[:8])}"
        )
    if not log.rows:
        raise ValueError(
            f"{name} is a log without scores: give one that was written after the "
            "grading"
        )
    return log


def _log_in_lines(rows: list[Row]) -> Log:
    """Return the rows of a log written line by line; or the rows as they are."""
    first = rows[0] if rows else {}
    if isinstance(first.get("gradingResult"), dict):
        return Log(list(_promptfoo(rows)), (0.0, 1.0))
    if isinstance(first.get("report"), dict) and "item_idx" in first:
        return Log(list(_autorubric(rows)))
    return Log(rows)


def _list(document: Row, name: str) -> list[Row]:
    return document.get(name) or []


def _inspect(log: Row) -> Iterator[Row]:
    about, samples = log["eval"], log.get("samples") or []
    scorers = dict(_numbered(about.get("scorers") or []))
    criteria = _criteria(scorers, samples)
    names = Counter(name for own in criteria.values() for name in own)
    grader = (about.get("model_roles") or {}).get("grader") or {}
    for sample in samples:
        known: Row = {"text_id": sample["id"], "candidate": about["model"]}
        known |= {"read": sample["epoch"], "dataset": about["task"]}
        given, failure = sample.get("scores") or {}, sample.get("error") or {}
        for scorer, own in criteria.items():
            options = scorers.get(scorer, {}).get("options") or {}
            model = options.get("model") or grader
            judge = model.get("model") if isinstance(model, dict) else model
            value = given.get(scorer, {}).get("value")
            # An error ends a sample; the scorers before it have given their scores.
            lost = {"error": failure.get("message", "error")} if failure else {}
            for name in own:
                score = value.get(name) if isinstance(value, dict) else value
                criterion = name if names[name] == 1 else f"{scorer}/{name}"
                row: Row = {"criterion": criterion, "judge": judge or "unknown"}
                row |= {"score": score} | (lost if score is None else {})
                yield known | row | _facts(sample.get("metadata"), criterion)


def _numbered(scorers: list[Row]) -> Iterator[tuple[str, Row]]:
    """Name scorers as the samples do: a second one of a name is NAME1."""
    often: Counter[str] = Counter()
    for scorer in scorers:
        name = scorer["name"]
        yield (f"{name}{often[name]}" if often[name] else name), scorer
        often[name] += 1


def _criteria(scorers: Row, samples: list[Row]) -> dict[str, list[str]]:
    """Return what each scorer scores: the keys that it has in any sample."""
    keys: dict[str, dict[str, None]] = {name: {} for name in scorers}
    for sample in samples:
        for scorer, score in (sample.get("scores") or {}).items():
            value = score.get("value")
            if value is not None:
                names = value if isinstance(value, dict) else [scorer]
                keys.setdefault(scorer, {}).update(dict.fromkeys(names))
    for name, own in keys.items():
        metrics = scorers.get(name, {}).get("metrics")
        named = metrics if isinstance(metrics, dict) else [name]
        own.update(dict.fromkeys(() if own else named))
    return {name: [*own] for name, own in keys.items()}


def _promptfoo(results: list[Row]) -> Iterator[Row]:
    tests: dict[str, Any] = {}
    answers: dict[str, list[Any]] = {}
    for result in results:
        case, given = result.get("testCase") or {}, result.get("vars") or {}
        # --repeat gives a test another number;
        # an equal answer is the same text, read again.
        number = tests.setdefault(json.dumps([given, case]), result.get("testIdx", 0))
        candidate = _provider(result.get("provider"))
        if prompt := result.get("promptIdx"):
            candidate = f"{candidate}, prompt {prompt}"
        earlier = answers.setdefault(f"{number}/{candidate}", [])
        earlier.append(answer := (result.get("response") or {}).get("output"))
        repeat = earlier.index(answer)
        test = f"test {number}" + (f", repeat {repeat}" if repeat else "")
        known: Row = {
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
            is_graded = _GRADED.search(kind)
            usual = (case.get("options") or {}).get("provider") if is_graded else None
            failed = part.get("reason") or "error" if about.get("graderError") else None
            row: Row = {"criterion": name, "score": part.get("score"), "error": failed}
            if is_graded and part.get("reason") == _NO_VERDICT:
                row["score"] = None
            row["judge"] = _provider(asked.get("provider") or usual)
            facts = _facts(given | (case.get("metadata") or {}), name)
            yield known | row | facts


def _provider(by: Any) -> str:
    """Return what a provider is called: its label, where it has one."""
    if isinstance(by, dict):
        by = by.get("label") or by.get("id")
    return by if isinstance(by, str) else "unknown"


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
    often = Counter(names)
    for number, (case, name) in enumerate(zip(cases, names, strict=True)):
        text = name if often[name] == 1 else f"{name} {number}"
        for metric in case.get("metricsData") or []:
            criterion = re.sub(r" \[(Conversational )?GEval\]$", "", metric["name"])
            row: Row = {"text_id": text, "criterion": criterion}
            row["judge"] = metric.get("evaluationModel") or "unknown"
            row |= {"score": metric.get("score"), "error": metric.get("error")}
            yield row | _facts(case.get("metadata"), criterion)


def _autorubric(items: list[Row]) -> Iterator[Row]:
    for item in items:
        for number, asked in enumerate(item["report"]["report"]):
            options = asked.get("options") or []
            criterion = asked.get("name") or f"criterion {number + 1}"
            known: Row = {"text_id": f"item {item['item_idx']}", "criterion": criterion}
            for vote in asked.get("votes") or [asked]:
                verdict = vote.get("multi_choice_verdict") or vote
                row: Row = {"judge": vote.get("judge_id") or "unknown"}
                row |= {"error": vote.get("error"), "reason": vote.get("reason")}
                if not options:
                    row["score"] = {"MET": 1, "UNMET": 0}.get(str(vote.get("verdict")))
                elif not verdict.get("na"):
                    row["score"] = verdict.get("value")
                yield known | row


def parsed(text: str, path: Path, line: int = 1) -> Any:
    """Parse one JSON document that begins at this line; nothing if it is blank."""
    try:
        return json.loads(text) if text.strip() else None
    except (json.JSONDecodeError, RecursionError) as error:
        at = line + getattr(error, "lineno", 1) - 1
        said = getattr(error, "msg", "it is nested too deeply")
        raise ValueError(f"{path.name}: line {at} is not JSON: {said}") from error


def _facts(metadata: Row | None, criterion: str) -> Row:
    """What a log's metadata say under the names of our columns."""
    metadata = metadata or {}
    found = {name: metadata[name] for name in metadata if _FACTS.fullmatch(str(name))}
    if f"human_{criterion}" in metadata:
        found["human"] = metadata[f"human_{criterion}"]
    return found


def unpacked(path: Path) -> Row:
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
