"""The store under real faults: other versions, a full disk, other processes, odd text."""

import os
import sqlite3
import subprocess
import sys
import time
from contextlib import closing

import pytest
from first_format import write_first
from hypothesis import given
from hypothesis import strategies as st

from rubricnb.judging import store as store_module
from rubricnb.judging.contract import Reply
from rubricnb.judging.rescue import mend
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
        assert store.answered(["k"]) == set()
        store.put("k", "judge", Reply(1, "[RESULT] 1"))
        assert store.answered(["k"]) == {"k"}
        assert len(store) == 1


@pytest.mark.parametrize("version", [VERSION + 1, 0])
def test_a_store_of_another_version_is_left_alone_and_says_what_to_do(path, version):
    with Store(path) as store:
        store.put("k", "judge", Reply(1, "x"))
    other = sqlite3.connect(path)
    other.execute(f"PRAGMA user_version={version}")
    other.commit()
    other.close()
    with pytest.raises(StoreError, match=r"written by another rubricnb.*RUBRICNB_STORE"):
        Store(path)
    assert sqlite3.connect(path).execute("SELECT text FROM replies").fetchall() == [("x",)]


def test_a_file_that_is_no_store_is_named(path):
    path.write_bytes(b"not a database, but long enough to be looked at as one" * 100)
    with pytest.raises(StoreError, match=r"replies\.sqlite is no store"):
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


def test_neither_name_number_nor_clock_of_a_run_decide_whether_it_lives(path, monkeypatch):
    one = Store(path)
    with Store(path) as other:
        monkeypatch.setattr(store_module.time, "time", lambda: 1e12)  # far ahead
        assert one._owner.rpartition(":")[0] == other._owner.rpartition(":")[0]
        assert one.claim(["a"]) == (set(), {"a"})
        assert other.claim(["a", "b"]) == (set(), {"b"})
        assert other.holder("a").startswith(f"process {os.getpid()} on ")
        one._lock.release()  # what the system does when a process ends
        assert other.claim(["a"]) == (set(), {"a"})
    one.close()


def test_runs_leave_no_files_behind_even_those_that_were_killed(path):
    dies = "import os, sys; from rubricnb.judging.store import Store; "
    dies += "Store(sys.argv[1]).put('a', 'j', rubricnb.judging.contract.Reply(1, 'x')); os._exit(9)"
    subprocess.run([sys.executable, "-c", f"import rubricnb.judging.contract; {dies}", path])
    assert list(path.parent.glob("*-run-*"))
    with Store(path) as store:
        assert list(store.get(["a"])) == ["a"]
        assert len(list(path.parent.glob("*-run-*"))) == 1
    assert [file.name for file in path.parent.iterdir()] == [path.name]


def test_texts_are_for_their_owner_only(path):
    before = os.umask(0)
    try:
        with Store(path) as store:
            store.put("k", "judge", Reply(1, "private"))
            modes = {file.name: file.stat().st_mode & 0o777 for file in path.parent.iterdir()}
    finally:
        os.umask(before)
    assert len(modes) == 4
    assert set(modes.values()) == {0o600}


def test_what_is_put_after_the_clock_was_set_back_still_counts(path, monkeypatch):
    now = [2e9]
    monkeypatch.setattr(store_module.time, "time", lambda: now[0])
    with Store(path) as store:
        store.put("a", "judge", Reply(1, "of the future"))
        store.put("b", "judge", Reply(1, "", "error", error="503"))
        now[0] = 1e9
        assert store.answered(["b"]) == set()  # an error asked again by each run
        since = store.after_all()
        assert store.answered(["a", "b"], since) == set()
    now[0] = 5e8
    with Store(path) as store:
        assert store.claim(["a"], since) == (set(), {"a"})
        store.put("a", "judge", Reply(1, "fresh"))
        assert store.claim(["a"], since) == ({"a"}, set())


# ---- stores of the first format ----------------------------------------------------------------


@pytest.fixture
def first(path):
    """Answers, the lease of a run that was killed, and a batch's."""
    batch = path.with_name("b.jsonl")
    batch.write_text("")
    leases = [("killed", "here:17:99/x", 1e9), ("batched", f"batch file {batch}", float("inf"))]
    write_first(path, {f"{i:064x}": f"… {i} " * (i % 40) * 20 for i in range(300)}, leases)
    path.chmod(0o644)
    return path


def test_a_store_of_the_first_format_is_left_alone_until_its_answers_are_taken_over(first):
    with pytest.raises(StoreError, match=r"first format.*RUBRICNB_STORE='.*check --store"):
        Store(first)
    with closing(sqlite3.connect(first)) as db:
        assert db.execute("PRAGMA user_version").fetchone() == (1,)
    assert "saved: 300 answers" in mend(first)
    with Store(first) as store:
        assert store.check() == 300
        reply = store.get([f"{39:064x}"])[f"{39:064x}"]
        assert reply == Reply(0, "… 39 " * 39 * 20, "stop", ((0.5, 0.5),), 9, 5, 7, 1.0)
        assert store.claim(["killed", "batched"]) == (set(), {"killed"})
        assert store.in_batches(["batched"]) == {"batched": first.with_name("b.jsonl")}
        store.put("new", "j", Reply(1, "x"))
        assert store.check() == 301
    assert first.stat().st_mode & 0o777 == 0o600
