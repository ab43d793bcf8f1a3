"""The store under real faults: other versions, a full disk, other processes, odd text."""

import os
import re
import socket
import sqlite3
import subprocess
import sys
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rubricnb.judging import store as store_module
from rubricnb.judging.contract import Reply
from rubricnb.judging.store import VERSION, Store, StoreError


@pytest.fixture
def path(tmp_path):
    return tmp_path / "replies.sqlite"


def test_replies_survive_closing(path):
    reply = Reply(7, "Feedback … [RESULT] 4", "stop", ((0.1, 0.2),), 10, 5, 3, 0.25)
    with Store(path) as store:
        store.put("k", "judge", reply)
    with Store(path) as store:
        kept = store.get(["k", "other"])
    assert list(kept) == ["k"]
    fields = [f for f in Reply.__slots__ if f != "request_id"]
    assert all(getattr(kept["k"], f) == getattr(reply, f) for f in fields)


@given(text=st.text(), odd=st.sampled_from(["", "\ud800", "\x00", "🦀" * 1000, "x" * 100_000]))
def test_any_text_can_be_kept(tmp_path_factory, text, odd):
    with Store(tmp_path_factory.mktemp("s") / "replies.sqlite") as store:
        store.put("k", "judge", Reply(1, text + odd))
        kept = store.get(["k"])["k"].text
    assert kept == (text + odd).encode("utf-8", "replace").decode()


def test_many_keys_are_looked_up_at_once(path):
    keys = [f"k{i}" for i in range(1_700)]
    with Store(path) as store:
        for key in keys:
            store.put(key, "judge", Reply(1, key))
        assert {k: r.text for k, r in store.get(keys).items()} == {k: k for k in keys}
        assert store.answered([*keys, "new"]) == set(keys)
        assert len(store) == 1_700


def test_a_later_reply_replaces_an_error(path):
    with Store(path) as store:
        store.put("k", "judge", Reply(1, "", "error", error="503"))
        assert store.answered(["k"], retry_errors=float("inf")) == set()
        store.put("k", "judge", Reply(1, "[RESULT] 1"))
        assert store.answered(["k"], retry_errors=float("inf")) == {"k"}
        assert len(store) == 1


@pytest.mark.parametrize(("version", "age"), [(VERSION + 1, "newer"), (0, "older")])
def test_a_store_of_another_version_is_left_alone_and_says_what_to_do(path, version, age):
    with Store(path) as store:
        store.put("k", "judge", Reply(1, "x"))
    other = sqlite3.connect(path)
    other.execute(f"PRAGMA user_version={version}")
    other.commit()
    other.close()
    with pytest.raises(StoreError, match=f"written by an? {age} rubricnb.*RUBRICNB_STORE"):
        Store(path)
    assert sqlite3.connect(path).execute("SELECT text FROM replies").fetchall() == [("x",)]


def test_a_file_that_is_no_store_is_named(path):
    path.write_bytes(b"not a database, but long enough to be looked at as one" * 100)
    with pytest.raises(StoreError, match=r"replies\.sqlite is not a store"):
        Store(path)


def test_a_full_disk_keeps_what_was_committed_and_says_so(path):
    with Store(path) as store:
        store.put("kept", "judge", Reply(1, "x"))
        pages = store._db.execute("PRAGMA page_count").fetchone()[0]
        store._db.execute(f"PRAGMA max_page_count={pages + 2}")
        big = Reply(1, "y" * 4_000_000)
        with pytest.raises(StoreError, match=r"no room left.*every reply.*kept"):
            store.put("k", "judge", big)
        assert store.get(["kept"])["kept"].text == "x"
    with Store(path) as store:
        assert "kept" in store.get(["kept"])
        store.put("again", "judge", Reply(1, "z"))  # with room, it goes on


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_one_may_not_write_is_named(tmp_path):
    tmp_path.chmod(0o500)
    with pytest.raises(StoreError, match="RUBRICNB_STORE"):
        Store(tmp_path / "sub" / "replies.sqlite")


def test_a_path_below_a_file_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="RUBRICNB_STORE"):
        Store(tmp_path / "file" / "replies.sqlite")


def test_a_lease_keeps_others_away_while_its_process_lives_and_not_longer(path):
    dies = "import os, sys; from rubricnb.judging.store import Store; "
    dies += "Store(sys.argv[1]).claim(['a', 'b']); os._exit(9)"  # gives nothing back
    assert subprocess.run([sys.executable, "-c", dies, path], timeout=60).returncode == 9
    with Store(path) as store:
        assert store._db.execute("SELECT COUNT(*) FROM leases").fetchone() == (2,)
        assert store.claim(["a", "b", "c"]) == (set(), {"a", "b", "c"})
    with Store(path) as mine, Store(path) as other_run:
        assert mine.claim(["a", "b"]) == (set(), {"a", "b"})
        assert other_run.claim(["b", "c"]) == (set(), {"c"})
        mine.release()
        assert other_run.claim(["a", "b"]) == (set(), {"a", "b"})


def test_a_reply_ends_its_lease_and_is_answered_for_every_run(path):
    with Store(path) as mine, Store(path) as other_run:
        mine.claim(["a", "b"])
        mine.put("a", "judge", Reply(1, "x"))
        assert other_run.claim(["a", "b"]) == ({"a"}, set())
        assert other_run._db.execute("SELECT key FROM leases").fetchall() == [("b",)]


def test_a_run_elsewhere_keeps_its_leases_as_long_as_it_is_heard(path, monkeypatch):
    now = [1e9]
    monkeypatch.setattr(store_module.time, "time", lambda: now[0])
    with Store(path) as far, Store(path) as other_run:
        far._owner = "another-machine:1:x"
        far.claim(["slow", "quick"])
        now[0] += 500
        far.put("quick", "judge", Reply(1, "x"))
        now[0] += 500
        assert other_run.claim(["slow"]) == (set(), set())
        now[0] += 601  # no sign of life
        assert other_run.claim(["slow"]) == (set(), {"slow"})


LIVES = """
import sys
from rubricnb.judging.store import Store
with Store(sys.argv[1]) as store:
    store.claim(["slow"])
    print("claimed", flush=True)
    sys.stdin.readline()
"""


def test_a_run_here_keeps_its_leases_while_it_lives_however_long_it_is_silent(path, monkeypatch):
    command = [sys.executable, "-c", LIVES, path]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as slow:
        slow.stdout.readline()
        later = time.time() + 7 * 24 * 3600
        monkeypatch.setattr(store_module.time, "time", lambda: later)
        with Store(path) as store:
            assert store.claim(["slow"]) == (set(), set())
            slow.kill()
            os.waitid(os.P_PID, slow.pid, os.WEXITED | os.WNOWAIT)  # it is a zombie now
            assert store.claim(["slow"]) == (set(), {"slow"})


def test_a_process_with_the_number_of_a_dead_one_keeps_none_of_its_leases(path):
    with Store(path) as dead, Store(path) as store:
        pid = os.getpid()
        assert dead._owner.split(":")[-1].startswith(store_module._begun(pid) + "/")
        dead._owner = f"{socket.gethostname()}:{pid}:12345/x"  # begun at another time
        dead.claim(["a"])
        assert store.claim(["a"]) == (set(), {"a"})


def test_when_a_process_began_is_seen_without_proc_too():
    here = store_module._told(os.getpid())
    assert here == store_module._told(os.getpid())
    assert re.search(r"\d+\.\d+\.\d+", here)
    assert ":" not in here
    assert store_module._told(2**22 + 1) == ""
