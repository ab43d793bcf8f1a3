"""The store under real faults: other versions, a full disk,
other processes, odd text.
"""

import os
import shutil
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from dataclasses import replace
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rubricnb.core import store as store_module
from rubricnb.core.contract import Reply
from rubricnb.core.store import VERSION, DamagedStore, Store, StoreError


@pytest.fixture
def path(tmp_path):
    return tmp_path / "replies.sqlite"


def test_replies_survive_closing_and_many_are_looked_up_at_once(path):
    reply = Reply(7, "Feedback … [RESULT] 4", "stop", ((0.1, 0.2),), 10, 5, 3, 0.25)
    keys = [f"k{i}" for i in range(1_700)]
    with Store(path) as store:
        for key in keys:
            store.put(key, "judge", Reply(1, "", "error", error="503"))
        assert store.answered(keys) == set()
        for key in keys:
            store.put(key, "judge", replace(reply, text=key))
    with Store(path) as store:
        kept = store.get([*keys, "other"])
        assert store.answered([*keys, "new"]) == set(keys)
        assert len(store) == 1_700
    assert kept == {key: replace(reply, text=key, request_id=0) for key in keys}


@pytest.mark.in_turn
@given(
    text=st.text(),
    odd=st.sampled_from(["", "\ud800", "\x00", "🦀" * 1000, "x" * 100_000]),
)
def test_any_text_can_be_kept(tmp_path_factory, text, odd):
    with Store(tmp_path_factory.mktemp("s") / "replies.sqlite") as store:
        store.put("k", "judge", Reply(1, text + odd))
        kept = store.get(["k"])["k"].text
    assert kept == (text + odd).encode("utf-8", "replace").decode()


def test_a_store_of_another_version_is_left_alone_and_says_what_to_do(path):
    with Store(path) as store:
        store.put("k", "judge", Reply(1, "x"))
    other = sqlite3.connect(path)
    other.execute(f"PRAGMA user_version={VERSION + 1}")
    other.commit()
    other.close()
    with pytest.raises(
        StoreError, match=r"written by a different version of rubricnb.*RUBRICNB_STORE"
    ):
        Store(path)
    assert sqlite3.connect(path).execute("SELECT text FROM replies").fetchall() == [
        ("x",)
    ]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("letter.sqlite", r"letter\.sqlite is not a rubricnb store"),
        ("letter.sqlite/below.sqlite", "RUBRICNB_STORE"),
    ],
)
def test_a_path_where_no_store_can_be_is_named(tmp_path, name, message):
    (tmp_path / "letter.sqlite").write_bytes(
        b"no database, but long enough to be one" * 200
    )
    with pytest.raises(StoreError, match=message):
        Store(tmp_path / name)


def judge(identity="a judge"):
    return SimpleNamespace(identity=identity, slug="judge")


def is_free(store, of=None):
    """Whether nobody asks the judge; does not wait."""
    with store.alone_with(of or judge(), gives_up=lambda: True) as free:
        return free


def test_of_two_runs_one_asks_a_judge_and_the_other_waits(path):
    with Store(path) as one, Store(path) as other, Store(":memory:") as elsewhere:
        with one.alone_with(judge()) as mine, elsewhere.alone_with(judge()):
            assert mine
            assert not is_free(other)
            assert is_free(other, judge("another judge"))
            assert is_free(elsewhere)  # a store in memory waits for nobody
        assert is_free(other)


HOLDS = """
import os, sys
from types import SimpleNamespace
from rubricnb.core.store import Store
judge = SimpleNamespace(identity="a judge", slug="j")
with Store(sys.argv[1]) as store, store.alone_with(judge):
    print(os.getpid(), flush=True)
    sys.stdin.readline()
"""


def holder(path):
    command = [sys.executable, "-c", HOLDS, path]
    return subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )


def test_a_run_holds_its_judge_while_it_lives_however_long_it_is_silent(
    path, monkeypatch, capsys
):
    with holder(path) as slow:
        number = slow.stdout.readline().strip()
        later = time.time() + 7 * 24 * 3600
        monkeypatch.setattr(store_module.time, "time", lambda: later)
        with Store(path) as store:
            assert not is_free(store)
            said = capsys.readouterr().out
            assert said.startswith(f"judge: process {number} on ")
            assert f"through {path}: this run waits" in said
            slow.kill()
            os.waitid(os.P_PID, slow.pid, os.WEXITED | os.WNOWAIT)  # it is a zombie now
            assert is_free(store)


@pytest.mark.in_turn
def test_a_process_that_was_forked_does_not_hold_what_its_parent_held(path):
    """Engines fork: what they leave running must not keep the judge
    when the run is killed.
    """
    program = HOLDS.replace(
        "    print(", "    os.fork() or time.sleep(60)\n    print(", 1
    )
    program = "import time\n" + program
    command = [sys.executable, "-c", program, path]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as parent:
        parent.stdout.readline()
        with Store(path) as store:
            assert not is_free(store)
            parent.kill()
            os.waitid(os.P_PID, parent.pid, os.WEXITED | os.WNOWAIT)
            assert is_free(store)


@pytest.mark.in_turn
def test_a_store_opened_twice_in_one_process_loses_nothing_when_another_closes_it(path):
    """Closing a file ends all locks that the process has on it, also SQLite's."""
    opens = (
        "import sys; from rubricnb.core.store import Store; Store(sys.argv[1]).close()"
    )
    with Store(path) as one:
        one.put("a", "judge", Reply(1, "x"))
        with Store(path):
            subprocess.run([sys.executable, "-c", opens, path], check=True, timeout=60)
            one.put("b", "judge", Reply(1, "y"))
        subprocess.run([sys.executable, "-c", opens, path], check=True, timeout=60)
        one.put("c", "judge", Reply(1, "z"))
    with Store(path) as store:
        assert list(store.get(["a", "b", "c"])) == ["a", "b", "c"]


def test_texts_are_for_their_owner_only(path):
    before = os.umask(0)
    try:
        with Store(path) as store:
            store.put("k", "judge", Reply(1, "private"))
            assert is_free(store)
            modes = {
                file.name: file.stat().st_mode & 0o777 for file in path.parent.iterdir()
            }
    finally:
        os.umask(before)
    assert len(modes) == 5
    assert set(modes.values()) == {0o600}


def test_a_failed_try_replaces_no_answer_that_was_paid_for(tmp_path):
    with Store(tmp_path / "s.sqlite") as store:
        store.put("k", "judge", Reply(1, "[RESULT] 4"))
        store.put("k", "judge", Reply(1, "", "error", error="503"), run=7)
        assert store.get(["k"])["k"].text == "[RESULT] 4"
        assert store.answered(["k"]) == {"k"}
        assert store.answered(["k"], run=7) == set()  # that run goes on with it
        store.put("k", "judge", Reply(1, "[RESULT] 2"), run=7)
        assert store.get(["k"])["k"].text == "[RESULT] 2"


@pytest.mark.parametrize("version", [2, 3])
def test_another_programs_file_is_left_as_it_is(tmp_path, version):
    path = tmp_path / "theirs.sqlite"
    with closing(sqlite3.connect(path)) as theirs:
        theirs.execute("CREATE TABLE notes (text)")
        theirs.execute(f"PRAGMA user_version = {version}")
    before = path.read_bytes()
    with pytest.raises(StoreError, match="is not a rubricnb store"):
        Store(path)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("name", ["fulltext", "locked", "malformed"])
def test_what_a_path_is_called_explains_nothing(tmp_path, name):
    (tmp_path / name).write_text("a file", "utf-8")
    with pytest.raises(StoreError, match="cannot be used") as told:
        Store(tmp_path / name / "s.sqlite")
    assert not isinstance(told.value, DamagedStore)


def test_what_an_endpoint_reports_is_stored_whatever_it_is(tmp_path):
    with Store(tmp_path / "s.sqlite") as store:
        store.put("k", "a\udcff", Reply(1, "4", prompt_tokens=10**20))
        assert store.get(["k"])["k"].prompt_tokens == 2**63 - 1


KILLED = """
import os, sys
from rubricnb.core.contract import Reply
from rubricnb.core.store import Store
store = Store(sys.argv[1])
for k in range(50):
    store.put(f"{k:064x}", "j", Reply(1, "Fine.", "stop"))
os._exit(9)
"""


def test_a_copy_of_the_file_and_its_neighbours_has_every_answer(tmp_path):
    """The last answers of a run that was killed are in the log beside the file."""
    path, copy = tmp_path / "s.sqlite", tmp_path / "copy" / "s.sqlite"
    copy.parent.mkdir()
    subprocess.run([sys.executable, "-c", KILLED, path], check=False)
    for ending in ("", "-wal", "-shm"):
        shutil.copy(f"{path}{ending}", f"{copy}{ending}")
    with Store(copy) as store:
        assert store.check() == 50
    alone = shutil.copy(path, tmp_path / "alone.sqlite")
    with Store(alone) as store:
        assert len(store) < 50
