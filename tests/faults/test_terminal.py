"""Nothing that a stranger wrote acts on a terminal:
it is shown as text, by every door.
"""

import json
import os
import pty
import re
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest
from endpoint import completion, endpoint
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

import rubricnb as rb
from rubricnb.cli.commands import app
from rubricnb.core.support.shown import one_line, shown
from rubricnb.engines.openai import JudgeError

# The clipboard, the title, the screen; a C1 introducer;
# a name that reads backwards; a second line.
HOSTILE = (
    "\x1b]52;c;cm0gLXJm\x07\x1b]0;owned\x07\x1b[2J\x9b31m\x85\u202egpj.exe"
    "\u2066\rerror: sent\n"
)
ACTS = re.compile(
    "[\0-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\u2028]"
)


def error(status, **body):
    return status, {"error": {"message": HOSTILE} | body}, {}


ANSWERS = {
    "a wrong key": error(401),
    "a bad request": error(400),
    "a code": error(400, code=HOSTILE, param=HOSTILE, more={HOSTILE: HOSTILE}),
    "a page": (200, f"<html>{HOSTILE}</html>".encode(), {"Content-Type": "text/html"}),
    "an error page": (500, HOSTILE.encode(), {}),
    "a redirect": (
        302,
        b"",
        {"Location": "http://x/\x1b]0;owned\x07\x9b2J".encode().decode("latin-1")},
    ),
    "another model": (200, completion("[RESULT] 2") | {"model": f"{HOSTILE}x"}, {}),
    "no text": (200, completion({HOSTILE: HOSTILE}), {}),
    "a broken answer": (200, completion("x", finish="error"), {}),
    "an unparsed answer": (200, completion(HOSTILE), {}),
}
ANSWERS["a broken answer"][1]["choices"][0]["error"] = {"message": HOSTILE}


def command(url, folder):
    words = "--readout feedback --n-items 15 -o retries=0 -o concurrency=4 --output"
    return [
        *("audit", "--judge", f"openai:m@{url}"),
        *words.split(),
        str(folder / "a.html"),
    ]


@pytest.mark.parametrize("name", ANSWERS)
def test_what_an_endpoint_says_does_nothing_to_the_terminal(
    name, plan, asking, stored, tmp_path, monkeypatch, capsys
):
    monkeypatch.setenv("RUBRICNB_STORE", str(tmp_path / "s.sqlite"))
    with endpoint([ANSWERS[name]]) as (url, _):
        done = CliRunner().invoke(app, command(url, tmp_path))
        assert done.exit_code == 1
        assert not ACTS.search(done.output), done.output
        said = ""
        with suppress(JudgeError):  # from Python and in a notebook
            asking(url, plan.head(12), concurrency=4)
        try:
            asking(url, plan.head(12), concurrency=4)
        except JudgeError as problem:
            said = str(problem)
        assert not ACTS.search(said + capsys.readouterr().out)
    for text in filter(None, stored("error") if stored("error") else []):
        assert not ACTS.search(text)
        assert "\n" not in text


def test_a_terminal_with_a_progress_bar_gets_none_of_it_either(tmp_path):
    """A real terminal: the bar moves the cursor by itself, and nothing else does."""
    answers = iter([(200, completion("[RESULT] 2"), {})] * 30)

    def answer(payload, headers):
        return next(answers, ANSWERS["a bad request"])

    with endpoint(answer) as (url, _):
        ours, theirs = pty.openpty()
        environment = {"RUBRICNB_STORE": str(tmp_path / "s.sqlite"), "TERM": "xterm"}
        run = subprocess.Popen(
            [sys.executable, "-m", "rubricnb", *command(url, tmp_path)],
            stdout=theirs,
            stderr=theirs,
            stdin=subprocess.DEVNULL,
            close_fds=True,
            env=os.environ
            | environment
            | {"PYTHONPATH": str(Path(rb.__file__).parents[1])},
        )
        os.close(theirs)
        told = b""
        with suppress(OSError):  # the end
            while piece := os.read(ours, 65536):
                told += piece
        run.wait()
        os.close(ours)
    text = told.decode("utf-8", "replace")
    assert "failed" in text
    assert r"\x1b]0;owned\x07" in text
    assert "\x1b]" not in text
    assert "\x07" not in text
    assert "\x9b" not in text
    assert not re.search("\x1b(?!\\[[AKm0-9;]*)", text)
    assert "\rerror: sent" not in text


def test_names_of_files_columns_and_judges_are_shown_as_text(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    name = HOSTILE.replace("\n", "")
    rows = [
        {
            "item_id": f"{name}{i}",
            "judge": f"m{name}",
            "criterion": f"c{name}",
            "score": i % 5 + 1,
            "human": (i * 7) % 5 + 1,
        }
        for i in range(40)
    ]
    Path("mine.json").write_text(json.dumps(rows))
    hostile = Path(f"a{name}.json".replace("/", ""))
    hostile.write_text("[]")
    for arguments in (
        ["audit", "--judgments", "mine.json", "--scale", "1", "5"],
        ["audit", "--judgments", "mine.json", "--scale", "1", "5", "--json"],
        ["audit", "--judgments", str(hostile), "--scale", "1", "5"],
        ["audit", "--judgments", f"no{name}.json", "--scale", "1", "5"],
        ["execute", name],
        ["data", name],
        ["audit", "--judge", name],
        ["audit", "--judge", f"openai:{name}@http://127.0.0.1:9/v1"],
    ):
        done = CliRunner().invoke(app, arguments)
        assert done.output
        assert not ACTS.search(done.output), (arguments, done.output)
    done = CliRunner().invoke(
        app, ["audit", "--judgments", "mine.json", "--scale", "1", "5", "--json"]
    )
    assert json.loads(done.stdout)["schema"]  # written out, and JSON all the same


@given(st.text())
def test_what_acts_is_written_out_and_all_else_stays(text):
    assert not ACTS.search(shown(text))
    shown(text).encode()  # halves of a character too
    assert shown(shown(text)) == shown(text)
    kept = "".join(
        c
        for c in text
        if not ACTS.match(c) and not "\ud800" <= c <= "\udfff" and c != "\u2029"
    )
    if kept == text:
        assert shown(text) == text
    assert len(one_line(text).splitlines()) <= 1


@pytest.mark.parametrize(
    "closed", [">&-", ">&- 2>&-", "2>&-", ">/dev/full 2>/dev/full"]
)
def test_work_goes_on_where_standard_output_is_closed(closed, tmp_path):
    page = tmp_path / "audit.html"
    audit = "-m rubricnb audit --judge simulated:unbiased --n-items 15 --output"
    command = f"exec {sys.executable} {audit} {page} {closed}"
    stored = os.environ | {"RUBRICNB_STORE": str(tmp_path / "s.sqlite")}
    assert subprocess.run(["bash", "-c", command], env=stored).returncode == 0
    assert page.read_text().endswith("</html>")
    if "full" in closed:
        return  # Python's own print fails there
    code = (
        "import rubricnb as rb\n"
        "asked = rb.plan(rb.load('minibench', n_items=5), rb.fixed(5, 1))\n"
        "rb.run(asked, 'simulated:unbiased', store=':memory:')"
    )
    command = f'exec {sys.executable} -c "{code}" {closed}'
    assert subprocess.run(["bash", "-c", command]).returncode == 0
