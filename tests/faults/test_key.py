"""The key of an endpoint: in nothing that a run writes, whatever goes wrong."""

import asyncio
import html
import json
import re
import signal
import sqlite3
import subprocess
import sys
import time
import unicodedata
from itertools import pairwise
from pathlib import Path
from urllib.parse import quote

import nbformat
import pytest
from endpoint import completion, endpoint
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from pyarrow import parquet

import rubricnb as rb
from rubricnb.engines import redact as redact_module
from rubricnb.engines.redact import redact

KEY = "sk-proj-0123456789-abcdef"
ANY_KEY = "correct horse battery staple"  # nothing gives it away

NOTEBOOK = """
import logging, os, signal, sys, traceback
logging.basicConfig(level=logging.DEBUG, stream=sys.stdout)
import pandas as pd
import rubricnb as rb
from studies.recording import record

requests = rb.plan(rb.load("minibench", n_items=10), rb.balanced(5), readout="feedback")
judge = rb.open_judge(
    "openai:m@{url}", key_variable="OPENAI_API_KEY", retries=0, concurrency=2
)
print(judge, repr(judge), {{k: v for k, v in vars(judge).items()}})
judgments = rb.run(requests.head(20), judge)
judgments.to_parquet("judgments.parquet")
record(judgments, judge, "study", model="m", licence="", spec="openai:m")
# an error of this package, and one in the middle of its client
for stops in (True, False):
    try:
        if stops:
            rb.run(requests, judge)
        else:
            judge._connection = None
            rb.run(requests.tail(3), judge)
    except Exception:
        traceback.print_exc(file=sys.stdout)
judge = rb.open_judge("openai:m@{url}", key_variable="OPENAI_API_KEY", retries=0)
rb.run(requests.tail(20), judge, fresh=True)
"""
KILLED = (
    NOTEBOOK.split("judgments =")[0]
    + """
from rubricnb.core.store import Store
store = Store()
rb.run(requests.head(20), judge, store=store)
os.kill(os.getpid(), signal.SIGKILL)
"""
)


def tattling(seen):
    """An endpoint that repeats the key wherever it can,
    and fails in a different way each time.
    """

    def answer(payload, headers):
        seen.append(headers["Authorization"])
        told = f"your key was {headers['Authorization'].removeprefix('Bearer ')}"
        bodies = [
            (200, completion(f"{told} [RESULT] 2")),
            (400, {"error": {"message": told, "code": told}}),
            (500, told.encode()),
            (200, {"error": told}),
            (200, completion(told) | {"model": told}),
            (200, completion({"said": told})),
            (401 if len(seen) > 60 else 403, {"error": {"message": told}}),
        ]
        status, body = bodies[len(seen) % 7 if len(seen) > 1 else 0]
        return status, body, {}

    return answer


@pytest.fixture
def home(tmp_path, monkeypatch):
    """Everything that is written lands here."""
    for name, value in {
        "RUBRICNB_STORE": tmp_path / "replies.sqlite",
        "RUBRICNB_RESULTS": tmp_path / "results",
        "OPENAI_LOG": "debug",
        "HOME": tmp_path,
        "PYTHONPATH": Path(__file__).parents[2],  # for studies/, which record
        "PYTHONFAULTHANDLER": "1",
    }.items():
        monkeypatch.setenv(name, str(value))
    (tmp_path / "results").mkdir()
    return tmp_path


def written(folder):
    return {path: content(path) for path in folder.rglob("*") if path.is_file()}


def content(path):
    """What stands in a file; columns are compressed, so they are read."""
    if path.suffix != ".parquet":
        return path.read_bytes()
    table = parquet.read_table(path)
    return repr((table.schema.metadata, table.to_pydict())).encode()


def test_a_notebook_that_fails_in_every_way_writes_the_key_nowhere(home, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", ANY_KEY)
    seen = []
    with endpoint(tattling(seen)) as (url, _):
        cell = nbformat.v4.new_code_cell(NOTEBOOK.format(url=url))
        nbformat.write(nbformat.v4.new_notebook(cells=[cell]), home / "in.ipynb")
        done = subprocess.run(
            [
                sys.executable,
                "-m",
                "papermill",
                "in.ipynb",
                "out.ipynb",
                "-k",
                "python3",
                "--log-output",
            ],
            cwd=home,
            capture_output=True,
            timeout=300,
        )
    assert f"Bearer {ANY_KEY}" in seen
    found = written(home) | {"log": done.stdout + done.stderr}
    names = {path.name for path in written(home)}
    assert names >= {
        "replies.sqlite",
        "out.ipynb",
        "judgments.parquet",
        "run.json",
        "judges.csv",
    }
    assert b"refused" in found[home / "out.ipynb"]  # the run did stop with a message
    assert [
        path for path, content in found.items() if ANY_KEY.encode() in content
    ] == []


def test_a_killed_run_leaves_no_key_in_the_store_and_its_log(home, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    seen = []
    with endpoint(tattling(seen)) as (url, _):
        done = subprocess.run(
            [sys.executable, "-c", KILLED.format(url=url)],
            cwd=home,
            capture_output=True,
            timeout=300,
        )
    assert done.returncode == -signal.SIGKILL
    found = written(home) | {"log": done.stdout + done.stderr}
    assert home / "replies.sqlite-wal" in found  # killed before it was folded in
    assert [path for path, content in found.items() if KEY.encode() in content] == []


# How an endpoint may write a key. A body that is JSON has these escaped once more.
FORMS = {
    "plain": lambda key: key,
    "JSON": lambda key: "".join(f"\\u{ord(c):04x}" for c in key),
    "half of it JSON": lambda key: "".join(
        c if n % 2 else f"\\u{ord(c):04x}" for n, c in enumerate(key)
    ),
    "Python": lambda key: "".join(f"\\x{ord(c):02x}" for c in key),
    "URL": lambda key: "".join(f"%{ord(c):02X}" for c in key),
    "HTML": lambda key: "".join(f"&#{ord(c)};" for c in key),
    "HTML in hexadecimals": lambda key: "".join(f"&#x{ord(c):x};" for c in key),
    "HTML in capitals": lambda key: "".join(f"&#X{ord(c):X};" for c in key),
    "HTML twice": lambda key: "".join(f"&amp;#{ord(c)};" for c in key),
    "HTML with zeros": lambda key: "".join(f"&#{ord(c):08};" for c in key),
    "URL twice": lambda key: "".join(f"%25{ord(c):02X}" for c in key),
    "long Python": lambda key: "".join(f"\\U{ord(c):08x}" for c in key),
    "octal": lambda key: "".join(f"\\{ord(c):03o}" for c in key),
    "octal of few digits": lambda key: "".join(f"\\{ord(c):o}." for c in key),
    "names": lambda key: "".join(f"\\N{{{unicodedata.name(c)}}}" for c in key),
    "names in small letters": lambda key: "".join(
        f"\\N{{{unicodedata.name(c).lower()}}}" for c in key
    ),
    "HTML with many zeros": lambda key: "".join(f"&#{ord(c):012};" for c in key),
    "HTML's names": lambda key: key.replace("-", "&hyphen;").replace(" ", "&nbsp;"),
    "letters as HTML's names": lambda key: key.replace("f", "&fscr;"),
    "escapes of one letter": r"\a".join,
    "full width": lambda key: "".join(
        chr(ord(c) + 0xFEE0) if c != " " else c for c in key
    ),
    "capitals": str.upper,
    "mathematical": lambda key: "".join(
        chr(0x1D41A + ord(c) - 97) if c.islower() else c for c in key
    ),
    "JavaScript": lambda key: "".join(f"\\u{{{ord(c):x}}}" for c in key),
    "with ideographic commas": "\u3001".join,
    "with ideographs": "\u5b57".join,
    "with crabs": "\U0001f980".join,
    "with full-width dashes": "\uff0d".join,
    "with private characters": "\ue000".join,
    "spaced": " ".join,
    "in a list": lambda key: json.dumps(list(key)),
    "with invisible spaces": "\u200b".join,
    "HTML with very many zeros": lambda key: "".join(f"&#{ord(c):040};" for c in key),
    "JavaScript with zeros": lambda key: "".join(f"\\u{{{ord(c):020x}}}" for c in key),
    "reversed": lambda key: key[::-1],
    "reversed JSON": lambda key: "".join(f"\\u{ord(c):04x}" for c in key[::-1]),
}

# One language within another: what stands beside the key is not kept.
NESTED = {
    "HTML in a URL": lambda key: quote("".join(f"&#{ord(c)};" for c in key)),
    "HTML in JSON": lambda key: "".join(f"\\u0026#{ord(c)};" for c in key),
    "JSON in HTML": lambda key: "".join(f"&#92;u{ord(c):04x}" for c in key),
    "URL in JSON": lambda key: "".join(f"\\u0025{ord(c):02X}" for c in key),
    "all of it twice": lambda key: "".join(
        f"\\x{ord(c):02x}" for c in "".join(f"%{ord(c):02X}" for c in key)
    ),
}


def pieces(text, key, size=10):
    """Pieces of a key that can be read in a text,
    forwards or backwards, whatever its form.

    An oracle of its own: every escape is undone by its own language, again and again.
    """
    for _ in range(4):
        text = html.unescape(
            re.sub("%([0-9A-Fa-f]{2})", lambda m: chr(int(m[1], 16)), text)
        )
        code = r"\\+(?:u00|x|U000000|u\{0*)([0-9A-Fa-f]{2})\}?"
        text = re.sub(code, lambda m: chr(int(m[1], 16)), text)
        text = re.sub(r"\\+([0-7]{1,3})", lambda m: chr(int(m[1], 8)), text)
        named = r"\\+N\{([A-Za-z0-9 -]+)\}"
        text = re.sub(named, lambda m: unicodedata.lookup(m[1]), text)
        text = re.sub(r"\\+[abefnrtv]", "", text)
    text, key = (unicodedata.normalize("NFKC", t).casefold() for t in (text, key))
    ours = str.isalnum if not key.isascii() else lambda c: c.isascii() and c.isalnum()
    letters, wanted = ("".join(filter(ours, t)) for t in (text, key))
    return [
        piece
        for form in (wanted, wanted[::-1])
        for n in range(len(form) - size + 1)
        if (piece := form[n : n + size]) in letters
    ]


@pytest.mark.parametrize("key", [KEY, ANY_KEY])
@pytest.mark.parametrize("form", FORMS)
def test_a_key_is_found_in_every_form(form, key, monkeypatch):
    told = FORMS[form](key)
    assert pieces(f"xx {told} yy", key)  # the oracle can see it
    for text in (
        told,
        json.dumps({"error": told}),
        json.dumps(json.dumps({"error": told})),
    ):
        kept = redact(f"Good morning. {text} Good evening.", key)
        assert pieces(kept, key) == []
        assert kept.startswith("Good morning. ")
        assert kept.endswith(" Good evening.")


@pytest.mark.parametrize(
    ("key", "as_it_is", "spaced_out"),
    [("EMPTY-1", False, False), ("ab-cd-ef-9", True, False), ("abcdefg9", True, True)],
)
def test_a_short_key_is_searched_for_as_far_as_it_is_one(key, as_it_is, spaced_out):
    """Of fewer than eight characters, or of fewer than eight letters and digits."""
    for told, found in ((key, as_it_is), (" ".join(key), spaced_out)):
        text = f"Good morning. {told}. Good evening."
        kept = "Good morning. …. Good evening." if found else text
        assert redact(text, key) == kept


@pytest.mark.parametrize("key", [KEY, ANY_KEY])
@pytest.mark.parametrize("form", NESTED)
def test_a_text_with_a_key_in_escapes_within_escapes_is_dropped(form, key):
    told = f"Good morning. {NESTED[form](key)} Good evening."
    assert pieces(told, key)
    assert redact(told, key) == f"… ({len(told):,} characters that repeat a key)"
    assert redact(told.swapcase(), "another-key") == told.swapcase()


@settings(max_examples=200, deadline=None)
@given(
    st.text(),
    st.text(),
    st.sampled_from(sorted(FORMS)),
    st.text(
        st.characters(min_codepoint=33, max_codepoint=126), min_size=16, max_size=60
    ),
)
def test_what_stands_beside_a_key_is_kept(before, after, form, key):
    told = FORMS[form](key)
    kept = redact(before + "." + told + "." + after, key)
    assume(sum(map(str.isalnum, key)) >= 10)
    if not pieces(before + after, key, 1):
        assert pieces(kept, key) == []
        assert kept.startswith(before)
        assert kept.endswith(after)


@settings(deadline=None)
@given(st.text(max_size=300))
def test_a_text_without_a_key_is_left_as_it_is(text):
    assert redact(text, KEY) == text


def test_a_long_answer_is_looked_through_quickly():
    long = json.dumps({"a": ['s\\k\\"-%', "\\" * 40, "\u2603"] * 8_000})
    began = time.monotonic()
    assert redact(long, KEY) == long
    assert time.monotonic() - began < 5


HUGE = 16 * 2**20 - 200
HEAVY = {
    "backslashes": "\\\\" * (HUGE // 2),
    "escapes": "%41" * (HUGE // 3),
    "a key, spaced out, again and again": (("." * 1000) + " ".join(KEY))
    * (HUGE // 1047),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", HEAVY)
def test_a_huge_answer_keeps_no_other_waiting(name, plan, asking, stored, monkeypatch):
    """While one call's 16 MiB are looked through, the others are answered."""
    monkeypatch.setenv("MY_KEY", KEY)
    heavy = json.dumps(completion("x") | {"padding": HEAVY[name]}).encode()[
        : 16 * 2**20
    ]
    answered, beats = [], []

    def answer(payload, headers):
        answered.append(time.monotonic())
        return (
            (200, heavy, {})
            if len(answered) == 1
            else (200, completion("[RESULT] 2"), {})
        )

    async def beat():
        while True:
            beats.append(time.monotonic())
            await asyncio.sleep(0.01)

    with endpoint(answer) as (url, _):
        judge = rb.open_judge(
            f"openai:m@{url}", key_variable="MY_KEY", server="other", retries=0
        )
        judge.concurrency = 2
        beating = asyncio.run_coroutine_threadsafe(beat(), judge._start())
        began = time.process_time()
        rb.run(plan.head(60), judge, store=":memory:")
        spent = time.process_time() - began
        beating.cancel()
        judge.close()
    longest = max(later - earlier for earlier, later in pairwise(beats))
    assert longest < spent / 3  # the loop never stood still for the whole of it
    assert len(answered) == 60 + 1  # what was cut cannot be read: once more at the end


def test_a_long_text_with_a_hidden_key_is_dropped_as_a_whole():
    long = "x" * 2**20 + " ".join(KEY)
    assert redact(long, KEY) == f"… ({len(long):,} characters that repeat a key)"
    assert redact("x" * 2**20 + KEY, KEY) == "x" * 2**20 + "…"  # as it is: only the key


@settings(deadline=None)
@given(
    st.lists(
        st.sampled_from(
            ["\\", "\\u0041", "&#65;", "&amp;#x0041;", "%2541", "%4", "&#", "y", "字"]
        ),
        max_size=60,
    )
)
def test_a_text_is_cut_into_pieces_within_no_escape(parts):
    text, long = "".join(parts), redact_module._PIECE.pattern
    short = re.compile(long.replace("{1,64}", "{1,3}").replace("{1,1024}", "{1,2}"))
    for ascii_only in (True, False):
        found = []
        for pieces_of in (short, re.compile("(?s).*")):
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(redact_module, "_PIECE", pieces_of)
                found.append(redact_module._letters(text, ascii_only))
        assert found[0] == found[1]


def echoing(form, before):
    """Answers in which the key comes after so many characters."""
    told = f"{'.' * before}{form}"
    bodies = {
        "text": told.encode(),
        "JSON": json.dumps({"error": {"message": told}}).encode(),
    }
    # if it is JSON
    bodies["escaped"] = b'{"error": {"message": "' + told.encode() + b'"}}'
    bodies["answer"] = json.dumps(completion(told)).encode()
    bodies["no text"] = json.dumps(completion({"said": told})).encode()
    bodies["model"] = json.dumps(completion("[RESULT] 2") | {"model": told}).encode()
    refusals = [(400, bodies[name]) for name in ("text", "JSON", "escaped")]
    return [*refusals, *((200, body) for body in bodies.values())]


# Where a message or a kept answer is cut:
# the key lies across each cut but for its last character.
CUTS = [length - len(KEY) + shift for length in (200, 500, 100_000) for shift in (1, 8)]


@pytest.mark.parametrize("form", ["plain", "JSON", "spaced", "reversed"])
def test_no_piece_of_a_key_is_kept_wherever_an_answer_is_cut(
    form, plan, asking, stored, monkeypatch
):
    monkeypatch.setenv("MY_KEY", KEY)
    told = FORMS[form](KEY)
    bodies = [body for before in CUTS for body in echoing(told, before)]
    if form == "plain":
        too_long = b"." * (100_000 - len(KEY) + 1) + KEY.encode() + b"." * 17 * 2**20
        bodies += [(200, too_long), (400, too_long)]
    bodies.insert(0, (200, json.dumps(completion("[RESULT] 2")).encode()))
    left, fates = iter(bodies), {}

    def answer(payload, headers):
        assert headers["Authorization"] == f"Bearer {KEY}"
        prompt = payload["messages"][0]["content"]
        if prompt not in fates:
            fates[prompt] = next(left)
        return *fates[prompt], {}

    with endpoint(answer) as (url, _):
        asking(
            url,
            plan.head(len(bodies)),
            key_variable="MY_KEY",
            concurrency=1,
            server="other",
        )
    kept = stored("text || ifnull(error, '')")
    assert len(kept) == len(bodies)
    assert [row for row in kept if pieces(row, KEY)] == []


@pytest.mark.parametrize(
    "key", [f"{KEY}\n", "sk-proj-0123456789\nabcdef", "sk-proj-schlüssel-0123"]
)
def test_a_key_that_no_header_can_hold_is_not_shown(
    key, plan, asking, stored, monkeypatch
):
    monkeypatch.setenv("MY_KEY", key)
    said = ""
    with endpoint(lambda p, h: (200, completion("[RESULT] 2"), {})) as (url, _):
        try:
            asking(url, plan.head(2), key_variable="MY_KEY", server="other")
        except Exception as problem:
            said = str(problem)
    said += str([stored(column) for column in ("text", "error")])
    assert pieces(said, key) == []


def test_a_batch_that_repeats_the_key_is_kept_without_it(tmp_path, monkeypatch):
    monkeypatch.setenv("MY_KEY", KEY)
    judge = rb.open_judge(
        "openai:m@http://localhost:9/v1", key_variable="MY_KEY", server="other"
    )
    requests = rb.plan(
        rb.load("minibench", n_items=5), rb.balanced(5), readout="feedback"
    ).head(4)
    [file] = rb.judging.export_batch(
        requests, judge, tmp_path / "b.jsonl", tmp_path / "s.sqlite"
    )
    keys = [json.loads(line)["custom_id"] for line in file.read_text().splitlines()]
    told = "." * (500 - len(KEY)) + KEY
    lines = [
        {"response": {"status_code": 200, "body": completion(f"{KEY} [RESULT] 2")}},
        {"response": {"status_code": 400, "body": {"error": {"message": told}}}},
        {"response": None, "error": {"message": told}},
        {"response": {"status_code": 200, "body": completion({"said": told})}},
    ]
    output = tmp_path / "o.jsonl"
    output.write_text(
        "".join(
            json.dumps({"custom_id": k} | line) + "\n"
            for k, line in zip(keys, lines, strict=True)
        )
    )
    counts = rb.judging.import_batch(requests, judge, output, tmp_path / "s.sqlite")
    assert (counts["answered"], counts["failed"]) == (1, 3)
    with sqlite3.connect(tmp_path / "s.sqlite") as db:
        kept = db.execute("SELECT text, error FROM replies").fetchall()
    assert len(kept) == 4
    assert pieces(str(kept), KEY) == []
