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
from rubricnb.core.support.types import Records, Row

# correct, partial, incorrect, no answer
_LETTERS = {"c": 1.0, "p": 0.5, "i": 0.0, "n": 0.0}
_FACTS = re.compile("text_id|cluster_id|group_id|candidate|form|human(_ratings|_\\d+)?")
# promptfoo's reason for a reply that it took for a pass, since it had no verdict
_NO_VERDICT = "Grading passed"
_ZSTD = 93
MAX_UNPACKED_BYTES = 2**30
"""Most that a log may unpack to."""
MAX_SAMPLE_BYTES = 2**28
"""Most memory that a sample may take, and what is kept of all together."""
# what `_inspect` reads of a header and of a sample
_READ = {"eval", "id", "epoch", "scores", "error", "metadata"}
# promptfoo's assertions that ask a judge
_GRADED = re.compile(
    "rubric|graded|g-eval|factuality|relevance|recall|faithfulness|select-best"
)


class Log(NamedTuple):
    """The rows of a log, its scale, and the words with which it names scores."""

    rows: Records
    scale: tuple[float, float] | None = None
    words: Mapping[str, float] = MappingProxyType({})


def log_of(document: Any, name: str) -> Log:
    """Return the rows of a log; or those of a JSON list of rows."""
    match document:
        case {"eval": dict()}:
            log = Log(list(_inspect(document)), None, _LETTERS)
        case {"results": {"results": list(found)}} | (
            [{"gradingResult": dict()}, *_] as found
        ):
            log = Log(list(_promptfoo(found)), (0.0, 1.0))
        case ({"testRunData": {"testCases": list()} as run}) | (
            {"testCases": list()} as run
        ):
            log = Log(list(_deepeval(run)), (0.0, 1.0))
        case [{"report": dict(), "item_idx": _}, *_]:
            log = Log(list(_autorubric(document)))
        case list() if all(isinstance(row, dict) for row in document):
            return Log(document)
        case dict():
            raise ValueError(
                f"{name} is neither a list of rows nor a log of inspect_ai, promptfoo "
                f"or DeepEval; it has: {', '.join(list(document)[:8])}"
            )
        case _:
            raise ValueError(
                f"{name} does not hold JSON objects only: {{column: value, …}}, …"
            )
    if not log.rows:
        raise ValueError(
            f"{name} is a log without scores: give one that was written after the "
            "grading"
        )
    return log


def _inspect(log: Row) -> Iterator[Row]:
    about, samples = log["eval"], log.get("samples") or []
    listed = about.get("scorers") or []
    often = [scorer["name"] for scorer in listed]
    # The samples name a second scorer of a name NAME1.
    known = [f"{name}{often[:k].count(name) or ''}" for k, name in enumerate(often)]
    scorers = dict(zip(known, listed, strict=True))
    criteria = _criteria(scorers, samples)
    names = Counter(name for own in criteria.values() for name in own)
    grader = (about.get("model_roles") or {}).get("grader")
    for sample in samples:
        text: Row = {"text_id": sample["id"], "candidate": about["model"]}
        text |= {"read": sample["epoch"], "dataset": about["task"]}
        given, failure = sample.get("scores") or {}, sample.get("error") or {}
        for scorer, own in criteria.items():
            options = scorers.get(scorer, {}).get("options") or {}
            judge = _named(options.get("model") or grader, "model")
            value = given.get(scorer, {}).get("value")
            for name in own:
                score = value.get(name) if isinstance(value, dict) else value
                criterion = name if names[name] == 1 else f"{scorer}/{name}"
                row: Row = {"criterion": criterion, "judge": judge, "score": score}
                # An error ends a sample; scorers before it have given their scores.
                if score is None and failure:
                    row["error"] = failure.get("message", "error")
                yield text | row | _facts(sample.get("metadata"), criterion)


def _named(by: Any, *keys: str) -> str:
    """Return what a judge or a provider is called: a log may have an object."""
    names = [by, *(by.get(key) for key in keys)] if isinstance(by, dict) else [by]
    return next((name for name in names if name and isinstance(name, str)), "unknown")


def _criteria(scorers: Row, samples: Records) -> dict[str, Row]:
    """Return what each scorer scores: the keys that it has in any sample."""
    keys: dict[str, Row] = {name: {} for name in scorers}
    for sample in samples:
        for scorer, score in (sample.get("scores") or {}).items():
            if (value := score.get("value")) is not None:
                names = value if isinstance(value, dict) else [scorer]
                keys.setdefault(scorer, {}).update(dict.fromkeys(names))
    for name, scorer in scorers.items():
        metrics = scorer.get("metrics")
        keys[name] = keys[name] or (metrics if isinstance(metrics, dict) else {name: 1})
    return keys


def _promptfoo(results: Records) -> Iterator[Row]:
    tests: Row = {}
    answers: dict[str, list[Any]] = {}
    for result in results:
        case, given = result.get("testCase") or {}, result.get("vars") or {}
        # --repeat gives a test another number;
        # an equal answer is the same text, read again.
        number = tests.setdefault(json.dumps([given, case]), result.get("testIdx", 0))
        candidate = _named(result.get("provider"), "label", "id")
        if prompt := result.get("promptIdx"):
            candidate = f"{candidate}, prompt {prompt}"
        earlier = answers.setdefault(f"{number}/{candidate}", [])
        earlier.append(answer := (result.get("response") or {}).get("output"))
        repeat = earlier.index(answer)
        test = f"test {number}" + (f", repeat {repeat}" if repeat else "")
        known: Row = {"text_id": f"{test}/{candidate}", "cluster_id": f"test {number}"}
        known |= {"group_id": test, "candidate": candidate}
        known["read"] = earlier.count(answer)
        named: dict[str, str] = {}
        for part in (result.get("gradingResult") or {}).get("componentResults") or []:
            asked, about = part.get("assertion"), part | {"assertion": None}
            if not asked or _under("assertionset", about):
                continue  # a sum of others
            kind, value = str(asked["type"]), str(asked.get("value", ""))
            name = _metric(asked, given) or f"{kind}: {value}"[:60]
            if named.setdefault(name, value) != value:
                name = f"{name}: {value}"[:60]
            is_graded = _GRADED.search(kind)
            usual = (case.get("options") or {}).get("provider") if is_graded else None
            row: Row = {"criterion": name, "score": part.get("score")}
            row["judge"] = _named(asked.get("provider") or usual, "label", "id")
            if _under("error", about):
                row["error"] = part.get("reason") or "error"
            said = part.get("reason")
            if is_graded and (said == _NO_VERDICT or not isinstance(said, str)):
                row["score"] = None
            yield known | row | _facts(given | (case.get("metadata") or {}), name)


def _under(name: str, part: Row) -> Any:
    """Return what stands under a key that has this name in it, at any depth.

    A release that calls a failure a little otherwise still says that it was one.
    """
    for key, value in part.items():
        if value and name in key.casefold():
            return value
        if isinstance(value, dict) and (inner := _under(name, value)):
            return inner
    return None


def _metric(asked: Row, given: Row) -> str:
    """Return an assertion's metric with its variables filled in."""
    name = re.sub(
        r"\{\{\s*(\w+)\s*\}\}",
        lambda slot: str(given.get(slot[1], slot[0])),
        asked.get("metric") or "",
    )
    return f"not {name}" if name and str(asked.get("type")).startswith("not-") else name


def _deepeval(run: Row) -> Iterator[Row]:
    kinds = ("testCases", "conversationalTestCases")
    cases = [case for kind in kinds for case in run.get(kind) or []]
    names = [case.get("name") or f"case {number}" for number, case in enumerate(cases)]
    often = Counter(names)
    for number, (case, name) in enumerate(zip(cases, names, strict=True)):
        text = name if often[name] == 1 else f"{name} {number}"
        for metric in case.get("metricsData") or []:
            criterion = re.sub(r" \[(Conversational )?GEval\]$", "", metric["name"])
            row: Row = {"text_id": text, "criterion": criterion}
            row["judge"] = metric.get("evaluationModel") or "unknown"
            row |= {"score": metric.get("score"), "error": _under("error", metric)}
            yield row | _facts(case.get("metadata"), criterion)


def _autorubric(items: Records) -> Iterator[Row]:
    for item in items:
        for number, asked in enumerate(item["report"]["report"]):
            options = asked.get("options") or []
            criterion = asked.get("name") or f"criterion {number + 1}"
            known: Row = {"text_id": f"item {item['item_idx']}", "criterion": criterion}
            for vote in asked.get("votes") or [asked]:
                verdict = vote.get("multi_choice_verdict") or vote
                row: Row = {"judge": vote.get("judge_id") or "unknown"}
                row |= {"error": _under("error", vote), "reason": vote.get("reason")}
                if not options:
                    row["score"] = {"MET": 1, "UNMET": 0}.get(str(vote.get("verdict")))
                elif verdict.get("na") is False:
                    row["score"] = verdict.get("value")
                shown = [options[k] for k in vote.get("shuffle_order") or []]
                if shown:  # an option such as "Cannot assess" is no level
                    row["ordering"] = [o["value"] for o in shown if not o.get("na")]
                yield known | row


def parsed(text: str, path: Path, line: int = 1) -> Any:
    """Parse one JSON document that begins at this line; nothing if it is blank."""
    try:
        found = json.loads(text) if text.strip() else None
    except (json.JSONDecodeError, RecursionError) as error:
        at = line + getattr(error, "lineno", 1) - 1
        said = getattr(error, "msg", "it is nested too deeply")
        raise ValueError(f"{path.name}: line {at} is not JSON: {said}") from error
    is_escaped = "\\ud" in text.lower()
    if is_escaped and (half := _HALVES.search(json.dumps(found, ensure_ascii=False))):
        raise ValueError(
            f"{path.name}: line {line}: {half[0]!r} is half a character (an emoji cut "
            "in two); write the whole character, or delete it"
        )
    return found


_HALVES = re.compile("[\ud800-\udfff]")


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
        _refuse_large(path, size, MAX_UNPACKED_BYTES)
        documents, size = [], 0
        for name in wanted:
            text = _member(archive, file, name)
            _refuse_large(path, _memory(text), MAX_SAMPLE_BYTES)
            document = {k: v for k, v in parsed(text, path).items() if k in _READ}
            size += _memory(json.dumps(document))
            _refuse_large(path, size, MAX_SAMPLE_BYTES)
            documents.append(document)
        header, *samples = documents
        return header | {"samples": samples}


def _memory(text: str) -> int:
    """Estimate what the values of a JSON document take in memory, in bytes.

    A character takes up to four, an object some 200, and any other value some 100, so
    that a small archive of empty lists takes more than twenty times its text.
    """
    return 4 * len(text) + 200 * text.count("{") + 100 * sum(map(text.count, "[,:"))


def _refuse_large(path: Path, size: int, most: int) -> None:
    if size > most:
        raise ValueError(
            f"{path.name} is too large: unpacked it takes {size:,} bytes, and at most "
            f"{most:,} are read; evaluate fewer samples in one log "
            "(MAX_UNPACKED_BYTES and MAX_SAMPLE_BYTES of rubricnb.files.logs)"
        )


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
