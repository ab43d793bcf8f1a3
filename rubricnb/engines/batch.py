"""Batch files: half the price at OpenAI, no connection; also ``vllm run-batch``.

One line per distinct request, named by its key. What comes back goes into the store, so
that `run` finds every answer there and asks only for what is missing.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import IO, Any

from rubricnb.core.contract import Reply, Request
from rubricnb.core.frames import Requests
from rubricnb.core.judge import JudgeLike, describe
from rubricnb.core.plan import with_readout
from rubricnb.core.rendering import rendered
from rubricnb.core.results import recorded_judgments
from rubricnb.core.store import Store, StoreLike, open_store
from rubricnb.core.support.shown import one_line
from rubricnb.core.support.types import Json
from rubricnb.engines.connection import is_filtered
from rubricnb.engines.openai import OpenAIJudge
from rubricnb.files.reading import written_out

MAX_REQUESTS, MAX_BYTES = 50_000, 200_000_000
"""What the OpenAI Batch API takes in one file."""


Plans = Requests | Sequence[Requests]
"""From `plan`; of several, what some ask twice is asked once."""


@written_out()
def export_batch(
    requests: Plans,
    judge: JudgeLike,
    path: str | Path,
    store: StoreLike = None,
) -> list[Path]:
    """Write a plan's requests as batch files, without those already recorded or stored.

    Until answers are imported, no run and no other export on this store asks what a
    file asks, as long as the file exists. A run that is asking this judge through this
    store is waited for.

    Parameters
    ----------
    requests
        From `plan`; several plans go into the same files.
    judge
        An endpoint (``openai:MODEL[@BASE_URL]``); nothing is sent to it. For ``vllm
        run-batch`` open it with ``server="vllm"``, so that no server needs to run.
    path
        The file; ``NAME-2.jsonl``, … beside it take what is above the API's limits.
    store
        As in `run`.

    Returns
    -------
    list of Path
        The files; none if everything is answered, or asked by another file.

    Raises
    ------
    ValueError
        The judge is not an endpoint, or a request cannot be put into one call.
    FileExistsError
        A file of that name may be of a batch that is under way.

    Examples
    --------
    >>> import tempfile
    >>> import rubricnb as rb
    >>> folder = tempfile.TemporaryDirectory()
    >>> tmp = Path(folder.name)
    >>> batch, store = tmp / "batch.jsonl", tmp / "s.sqlite"
    >>> items = rb.load("minibench", n_items=5)
    >>> requests = rb.plan(items, rb.balanced(5), readout="feedback")
    >>> [file] = export_batch(requests, "openai:gpt-4.1", batch, store)
    >>> line = json.loads(file.read_text().splitlines()[0])
    >>> sorted(line), line["url"], line["body"]["model"]
    (['body', 'custom_id', 'method', 'url'], '/v1/chat/completions', 'gpt-4.1')
    >>> folder.cleanup()
    """
    endpoint = _endpoint(judge)
    written: list[Path] = []
    others: list[Path] = []
    try:
        with ExitStack() as stack:
            store = stack.enter_context(open_store(store))
            stack.enter_context(store.alone_with(endpoint))
            count = size = 0
            file: IO[bytes] | None = None
            for request in _requests(requests, endpoint, recorded=False):
                files = store.in_batches([request.key])
                others += files.values()
                if files or store.answered([request.key]):
                    continue
                line = json.dumps(_line(endpoint, request)).encode() + b"\n"
                if (
                    file is None
                    or count == MAX_REQUESTS
                    or size + len(line) > MAX_BYTES
                ):
                    name = Path(path)
                    if written:
                        name = name.with_stem(f"{name.stem}-{len(written) + 1}")
                    file = stack.enter_context(_new(name))
                    written.append(name)
                    store.end_batch(name)  # an earlier one of this name was deleted
                    count = size = 0
                file.write(line)
                store.hand_over(request.key, written[-1])
                count, size = count + 1, size + len(line)
            if others:
                print(
                    f"left out: {len(others):,} requests that the batch file "
                    f"{others[0]} already asks"
                )
    except BaseException:
        for name in written:
            name.unlink()  # remove partially written batch files
        raise
    return written


@written_out()
def import_batch(
    requests: Plans,
    judge: JudgeLike,
    paths: str | Path | Sequence[str | Path],
    store: StoreLike = None,
    release: bool = False,
) -> dict[str, int]:
    """Read the output and error files of a batch into the store, where `run` looks.

    Files may be partial, come in any order and be read again. A failed request is kept
    as one and asked by the next `run`. What an exported file asked and none of `paths`
    has stays left to the batch, since its answer may be paid and still to come.

    Parameters
    ----------
    requests, judge, store
        As they were exported.
    paths
        Output and error files; a last line that is cut off is ignored.
    release
        Once the batch has ended: let the next `run` ask what none of `paths` has. The
        files that were exported may be deleted then.

    Returns
    -------
    dict of str to int
        ``answered``; ``failed``; ``unfinished`` (a label of several tokens takes
        another call); ``known`` (answered before, and left as it was); ``missing`` (in
        none of the files).

    Raises
    ------
    ValueError
        A line that is no answer to a request of this plan by this judge, such as one of
        the file of requests; or two answers to one request that differ; or `release`,
        and a download was cut. Nothing is stored then.

    Examples
    --------
    One answer has come back, as OpenAI writes it:

    >>> import tempfile
    >>> import rubricnb as rb
    >>> folder = tempfile.TemporaryDirectory()
    >>> tmp = Path(folder.name)
    >>> batch, store = tmp / "batch.jsonl", tmp / "s.sqlite"
    >>> items = rb.load("minibench", n_items=5)
    >>> requests = rb.plan(items, rb.fixed(5, 1), readout="feedback")
    >>> [file] = export_batch(requests, "openai:gpt-4.1", batch, store)
    >>> line = json.loads(file.read_text().splitlines()[0])
    >>> message = {"role": "assistant", "content": "Clear. [RESULT] 4"}
    >>> choice = {"index": 0, "finish_reason": "stop", "message": message}
    >>> body = {
    ...     "id": "1", "object": "chat.completion", "created": 0, "model": "gpt-4.1",
    ...     "choices": [choice]}
    >>> response = {"status_code": 200, "body": body}
    >>> output = tmp / "output.jsonl"
    >>> answer = {"custom_id": line["custom_id"], "response": response}
    >>> _ = output.write_text(json.dumps(answer))
    >>> import_batch(requests, "openai:gpt-4.1", output, store)  # doctest: +ELLIPSIS
    gpt-4.1: 4 requests have no answer yet and stay with their batch. ...
    {'answered': 1, 'failed': 0, 'unfinished': 0, 'known': 0, 'missing': 4}
    >>> folder.cleanup()
    """
    endpoint = _endpoint(judge)
    lines, cut = _lines([paths] if isinstance(paths, str | Path) else paths, endpoint)
    if cut and release:
        raise ValueError(
            f"{cut} ends within a line, so its download was cut: download it again "
            "before you release what it lacks"
        )
    counts = dict.fromkeys(("answered", "failed", "unfinished", "known", "missing"), 0)
    if strangers := lines.keys() - {
        request.key for request in _requests(requests, endpoint)
    }:
        raise ValueError(
            f"{min(strangers)[:80]!r} does not match any request in this plan by "
            f"{endpoint.identity}: use the plan, judge and version of the export"
        )
    with open_store(store) as store:
        missing: list[str] = []
        models: Counter[str] = Counter()  # under which the endpoint answered, in order
        reasons: Counter[str] = Counter()  # why requests failed
        for request in _requests(requests, endpoint):
            became, reply = _take(request, endpoint, lines.get(request.key), store)
            counts[became] += 1
            if became == "missing":
                missing.append(request.key)
            if reply and reply.model:
                models[reply.model] += 1
            if reply and reply.error:
                reasons[reply.error] += 1
        store.release([*lines, *(missing if release else ())])
        left = len(store.in_batches(missing))
    say = partial(print, f"{endpoint.slug}:")
    for reason, number in reasons.most_common(1):
        say(f"{number:,} of {counts['failed']:,} failed requests: {reason}")
    if len(models) > 1:
        names = ", ".join(map(repr, models))
        say(f"the answers are by {names}; each is stored with its name")
    if left:
        why = f", as {cut} was cut: download it again" if cut else ""
        say(
            f"{left:,} requests have no answer yet and stay with their batch{why}. "
            "Once it has ended, release=True (--release) lets a run ask them"
        )
    return counts


def _new(path: Path) -> IO[bytes]:
    try:
        # Readable by its owner only, since it holds the texts.
        return open(path, "xb", opener=lambda name, flags: os.open(name, flags, 0o600))
    except FileExistsError:
        raise FileExistsError(
            f"{path} exists: its batch may be under way. Choose a different file, or "
            "delete it if it was never sent"
        ) from None


def _endpoint(judge: JudgeLike) -> Any:
    described = describe(judge)
    # opening a different engine may take long
    engine: Any = described.engine if described.kind == "openai" else None
    if type(engine) is not OpenAIJudge:
        raise ValueError(
            f"{described.spec} is not an endpoint: a batch needs "
            "openai:MODEL[@BASE_URL]"
        )
    return engine


def _requests(requests: Plans, judge: Any, recorded: bool = True) -> Iterator[Request]:
    """Render one request for each key of the plans, with or without recorded ones."""
    seen: set[str] = set()
    for part in [requests] if isinstance(requests, Requests) else requests:
        part = with_readout(part, judge)
        if not recorded and len(answered := recorded_judgments(describe(judge), part)):
            part = part[~part["request_id"].isin(answered["request_id"])]
        for request in rendered(part, judge):
            if request.key not in seen:
                seen.add(request.key)
                yield request


def _line(judge: Any, request: Request) -> Json:
    constrained = judge.continues and request.readout in ("score", "logprobs")
    if constrained and len(request.slots) > 1:
        raise ValueError(
            f"{len(request.slots)} criteria with readout {request.readout!r} need one "
            f"call each on {judge.server}: ask a running server with rubricnb.run, or "
            "choose 'feedback'"
        )
    path, body = judge.first_call(request)
    if judge.server == "vllm" and path != "/chat/completions":
        raise ValueError(
            "vllm run-batch does not support plain prompts: ask a running server with "
            "rubricnb.run"
        )
    return {
        "custom_id": request.key,
        "method": "POST",
        "url": f"/v1{path}",
        "body": body,
    }


def _lines(paths: Sequence[str | Path], judge: Any) -> tuple[dict[str, Json], str]:
    """Return each key's line in the files, answers first; and a file that is cut."""
    found: dict[str, Json] = {}
    cut = ""
    for path in map(Path, paths):
        with path.open(encoding="utf-8-sig", errors="replace") as file:
            for number, text in enumerate(file, 1):
                if not text.strip():
                    continue
                line = _parsed(judge.redact(text), f"{path}, line {number}")
                if line is None:
                    cut = str(path)
                    continue
                key = str(line["custom_id"])
                new, old = _body(line), _body(found.get(key, {}))
                if new and old and new.get("choices") != old.get("choices"):
                    raise ValueError(
                        f"{path}, line {number}: two answers to {key[:80]!r} differ; "
                        "keep one"
                    )
                if old is None:
                    found[key] = line
    return found, cut


def _parsed(text: str, where: str) -> Json | None:
    """Parse a line; None if it is the end of a file whose download was cut."""
    try:
        line = json.loads(text)
        if "key" in line:  # Gemini's name for it
            line["custom_id"] = line["key"]
        is_answer = "custom_id" in line and ("response" in line or "method" not in line)
    except (ValueError, TypeError, RecursionError):
        if text.startswith("{") and not text.endswith("\n"):
            return None
        is_answer = False
    if not is_answer:
        raise ValueError(
            f"{where}: import the output and error files of a batch, not {text[:60]!r}"
        )
    return dict(line)


def _take(
    request: Request, judge: Any, line: Json | None, store: Store
) -> tuple[str, Reply | None]:
    """Store one answer; return what it became, and the reply."""
    if store.answered([request.key]):
        return "known", None
    if line is None:
        return "missing", None
    reply: Reply | None
    if (body := _body(line)) is not None:
        reply = judge.read(request, body)
    else:
        said = line.get("error") or _response(line).get("body") or _response(line)
        if isinstance(said, dict):
            said = said.get("error") or said
        told = one_line(f"in the batch: {said}")[:500]
        reply = Reply(request.request_id, "", "error", error=told)
        if is_filtered(said):
            reply = Reply(request.request_id, told, "refusal")
    if reply is None:
        return "unfinished", None
    store.put(request.key, judge.slug, reply)
    return "failed" if reply.finish == "error" else "answered", reply


def _response(line: Json) -> Json:
    response = line.get("response") or line.get("result")  # the latter is Anthropic's
    return response if isinstance(response, dict) else {}


def _body(line: Json) -> Json | None:
    """The endpoint's answer, if the line has one, in the form of a chat completion."""
    response = _response(line)
    body = response.get("body") or response.get("message") or response
    is_done = str(response.get("status_code", 200)) == "200"
    return _as_chat(body) if is_done and isinstance(body, dict) else None


def _as_chat(body: Json) -> Json | None:
    """Return an answer of another interface in the form of a chat completion.

    Those are OpenAI's ``/v1/responses`` (``output``), Gemini's (``candidates``) and
    Anthropic's messages (``content``).
    """
    if "choices" in body:
        return body
    one: Json = next(iter(body.get("candidates") or ()), {})
    told = one.get("content") or {}
    parts = [*(told.get("parts") or ()), *(body.get("content") or ())]
    for answer in body.get("output") or ():
        parts += answer.get("content") or () if answer.get("type") == "message" else ()
    ended = one.get("finishReason") or body.get("stop_reason")
    ended = ended or (body.get("incomplete_details") or {}).get("reason")
    if not (parts or ended):
        return None
    is_thought = [p.get("thought") or p.get("type") == "thinking" for p in parts]
    texts = [
        p.get("text") or "" for p, t in zip(parts, is_thought, strict=True) if not t
    ]
    usage = body.get("usage") or body.get("usageMetadata") or {}
    tokens = {
        "prompt_tokens": usage.get("input_tokens") or usage.get("promptTokenCount"),
        "completion_tokens": usage.get("output_tokens")
        or usage.get("candidatesTokenCount"),
    }
    return {
        "model": body.get("model") or body.get("modelVersion"),
        "choices": [{"message": {"content": "".join(texts)}, "finish_reason": ended}],
        "usage": {name: number for name, number in tokens.items() if number},
    }
