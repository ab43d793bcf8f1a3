"""The key of an endpoint: in nothing that a run writes, whatever goes wrong."""

import signal
import subprocess
import sys
from pathlib import Path

import nbformat
import pandas as pd
import pytest
from endpoint import completion, endpoint
from pyarrow import parquet

KEY = "sk-proj-0123456789-abcdef"
ANY_KEY = "correct horse battery staple"  # nothing gives it away

NOTEBOOK = """
import logging, os, signal, sys, traceback
logging.basicConfig(level=logging.DEBUG, stream=sys.stdout)
import pandas as pd
import rubricnb as rb
from studies.recording import record

requests = rb.plan(rb.load("minibench", n_items=10), rb.balanced(5), readout="feedback")
judge = rb.open_judge("openai:m@{url}", key_variable="OPENAI_API_KEY", retries=0, concurrency=2)
print(judge, repr(judge), {{k: v for k, v in vars(judge).items()}})
judgments = rb.run(requests.head(20), judge)
judgments.to_parquet("judgments.parquet")
record(judgments, judge, "study", model="m", licence="", spec="openai:m")
for stops in (True, False):  # an error of this package, and one in the middle of its client
    try:
        if stops:
            rb.run(requests, judge)
        else:
            judge._connection.send = None
            rb.run(requests.tail(3), judge)
    except Exception:
        traceback.print_exc(file=sys.stdout)
judge = rb.open_judge("openai:m@{url}", key_variable="OPENAI_API_KEY", retries=0)
rb.run(requests.tail(20), judge, fresh=True)
"""
KILLED = (
    NOTEBOOK.split("judgments =")[0]
    + """
from rubricnb.judging.store import Store
store = Store()
rb.run(requests.head(20), judge, store=store)
os.kill(os.getpid(), signal.SIGKILL)
"""
)


def tattling(seen):
    """An endpoint that repeats the key wherever it can, and fails in a different way each time."""

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


def test_a_key_in_a_column_would_be_found(tmp_path):
    texts = [f"m{n} {ANY_KEY} {n * n}" for n in range(1000)]
    frame = pd.DataFrame({"key": ["a", *texts, "z"]})  # first and last stand in plain bytes
    frame.to_parquet(tmp_path / "x.parquet", compression="zstd")
    assert ANY_KEY.encode() not in (tmp_path / "x.parquet").read_bytes()
    assert ANY_KEY.encode() in written(tmp_path)[tmp_path / "x.parquet"]


def test_a_notebook_that_fails_in_every_way_writes_the_key_nowhere(home, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", ANY_KEY)
    seen = []
    with endpoint(tattling(seen)) as (url, _):
        cell = nbformat.v4.new_code_cell(NOTEBOOK.format(url=url))
        nbformat.write(nbformat.v4.new_notebook(cells=[cell]), home / "in.ipynb")
        done = subprocess.run(
            [sys.executable, "-m", "papermill", "in.ipynb", "out.ipynb", "-k", "python3",
             "--log-output"],
            cwd=home, capture_output=True, timeout=300,
        )  # fmt: skip
    assert f"Bearer {ANY_KEY}" in seen
    found = written(home) | {"log": done.stdout + done.stderr}
    names = {path.name for path in written(home)}
    assert names >= {"replies.sqlite", "out.ipynb", "judgments.parquet", "run.json", "judges.csv"}
    assert b"refused" in found[home / "out.ipynb"]  # the run did stop with a message
    assert [path for path, content in found.items() if ANY_KEY.encode() in content] == []


def test_a_killed_run_leaves_no_key_in_the_store_and_its_log(home, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    seen = []
    with endpoint(tattling(seen)) as (url, _):
        done = subprocess.run(
            [sys.executable, "-c", KILLED.format(url=url)],
            cwd=home, capture_output=True, timeout=300,
        )  # fmt: skip
    assert done.returncode == -signal.SIGKILL
    found = written(home) | {"log": done.stdout + done.stderr}
    assert home / "replies.sqlite-wal" in found  # killed before it was folded in
    assert [path for path, content in found.items() if KEY.encode() in content] == []
