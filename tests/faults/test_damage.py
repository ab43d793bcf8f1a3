"""Stores whose bytes were changed: damage is seen, named,
and costs what it hits and no more.
"""

import hashlib
import os
import random
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

import rubricnb as rb
from rubricnb.cli.commands import app
from rubricnb.core.contract import Reply
from rubricnb.core.store import DamagedStore, Store, StoreError
from rubricnb.engines.rescue import mend

N = 200
HERE = Path(__file__).parent
PER_PAGE = 16  # the short answers that fit into 4,096 bytes
PATHS = [HERE, HERE.parent / "judging"]
PAID = hashlib.sha256(b"paid").hexdigest()
KEYS = [hashlib.sha256(str(i).encode()).hexdigest() for i in range(N)]


def text_of(i):
    return (
        f"Feedback {i}: "
        + "long enough for a page of its own. " * (i % 3 * 60)
        + "[RESULT] 4"
    )


# Ended without closing anything, so that the log stays where it is.
FILLED = """
import hashlib, os, sys
sys.path[:0] = sys.argv[2:4]
from test_damage import KEYS, text_of
from rubricnb.core.contract import Reply
from rubricnb.core.store import Store
store = Store(sys.argv[1])
for i, key in enumerate(KEYS):
    store.put(key, "j", Reply(1, text_of(i), "stop", ((0.2, 0.8),), 9, 5, 7, 0.25))
os._exit(9) if "killed" in sys.argv else store.close()
"""


@pytest.fixture(scope="module")
def filled(tmp_path_factory):
    """Folders with a store that was closed, and one whose process was killed."""

    def put(*how):
        folder = tmp_path_factory.mktemp("filled")
        command = [
            sys.executable,
            "-c",
            FILLED,
            folder / "replies.sqlite",
            *PATHS,
            *how,
        ]
        assert subprocess.run(command, timeout=100).returncode == (9 if how else 0)
        return folder

    return {how: put(*how) for how in ((), ("killed",))}


@pytest.fixture
def fill(tmp_path, monkeypatch, filled):
    path = tmp_path / "replies.sqlite"
    monkeypatch.setenv("RUBRICNB_STORE", str(path))

    def copied(*how):
        shutil.copytree(filled[how], tmp_path, dirs_exist_ok=True)
        return path

    return copied


def flip(path, at, bit=0):
    with path.open("r+b") as file:
        file.seek(at)
        byte = file.read(1)[0]
        file.seek(at)
        file.write(bytes([byte ^ 1 << bit]))


def wrong(path):
    """How many answers of the store are missing; none is another than was put."""
    with Store(path) as store:
        kept = store.get(KEYS)
        store.check()
    assert all(
        kept[key].text == text_of(i) for i, key in enumerate(KEYS) if key in kept
    )
    return N - len(kept)


def test_a_flipped_bit_of_an_answer_is_seen_and_named_and_the_others_are_saved(fill):
    path = fill()
    content = path.read_bytes()
    at = content.index(b"[RESULT] 4", content.index(b"Feedback 33: ")) + len(
        "[RESULT] "
    )
    flip(path, at)  # 4 becomes 5
    with Store(path) as store:
        with pytest.raises(
            DamagedStore, match=rf"{KEYS[33]} by j has changed.*check --store"
        ):
            store.get(KEYS)
        with pytest.raises(
            DamagedStore, match=rf"1 of 200 answers have changed, first {KEYS[33]}"
        ):
            store.check()
        assert store.get([KEYS[34]])[KEYS[34]].text == text_of(34)
    done = CliRunner().invoke(app, ["check", "--store"])
    assert "saved: 199 answers" in done.output
    assert wrong(path) == 1
    assert (path.parent / "replies.sqlite-damaged-1").stat().st_size == len(content)
    assert mend(path) == f"199 answers in {path}, each as it was written"


def test_wherever_a_bit_flips_no_score_changes_unseen_and_few_answers_are_lost(fill):
    path = fill()
    content = path.read_bytes()
    lost, seen = [], 0
    for seed in range(25):
        for file in path.parent.glob("replies.sqlite-*"):
            file.unlink()
        path.write_bytes(content)
        place = random.Random(seed)
        flip(path, place.randrange(len(content)), place.randrange(8))
        seen += "saved: " in mend(path)
        lost.append(wrong(path))
    assert sorted(lost)[-3] <= 1  # a bit of an answer, in nearly all
    assert max(lost) <= PER_PAGE  # a bit that says how the page is read
    assert seen >= 12


def test_pages_overwritten_cost_the_answers_that_lay_there(fill):
    path = fill()
    with path.open("r+b") as file:
        file.seek(30 * 4096)
        file.write(os.urandom(3 * 4096))
    with pytest.raises(
        StoreError, match=r"RUBRICNB_STORE='.*' python -m rubricnb check --store"
    ):
        wrong(path)
    mend(path)
    assert 0 < wrong(path) <= 30


@pytest.mark.parametrize("share", [0.01, 0.9])
@pytest.mark.parametrize("part", ["header", "page"])
def test_a_flipped_bit_in_the_log_costs_nothing_before_it_and_changes_no_answer(
    fill, share, part
):
    path = fill("killed")
    log = path.with_name("replies.sqlite-wal")
    frames = (log.stat().st_size - 32) // 4120
    assert 500 < frames < 1000  # SQLite has not begun it anew
    flip(log, 32 + int(share * frames) * 4120 + {"header": 17, "page": 2000}[part])
    lost = wrong(path)
    assert lost <= (1 - share) * N * 1.2
    with Store(path) as store:
        kept = [key in store.get(KEYS) for key in KEYS]
        # those behind the damage are asked again
        assert kept == sorted(kept, reverse=True)
        store.put(KEYS[-1], "j", Reply(1, text_of(N - 1)))
    assert wrong(path) == lost - (lost > 0)


def test_a_log_that_ends_within_an_answer_is_no_damage(fill, capsys):
    path = fill("killed")
    log = path.with_name("replies.sqlite-wal")
    os.truncate(log, log.stat().st_size - 2000)
    assert wrong(path) <= 1
    assert "damaged" not in capsys.readouterr().out


def test_what_a_batch_asks_is_still_known_when_the_store_was_mended(fill):
    path = fill()
    batch = path.with_name("b.jsonl")
    batch.write_text("")
    with Store(path) as store:
        store.hand_over("other", batch)
    content = path.read_bytes()
    flip(path, content.index(b"Feedback 33: "))
    mend(path)
    with Store(path) as store:
        assert store.in_batches(["other"]) == {"other": batch}


def test_a_store_in_use_is_not_mended_and_a_file_without_answers_is_none(fill):
    path = fill()
    flip(path, path.read_bytes().index(b"Feedback 33: "))
    with Store(path), pytest.raises(StoreError, match="damaged and in use"):
        mend(path)
    assert "saved: 199" in mend(path)
    path.write_bytes(b"a letter to a friend, by no means a store of anything\n" * 100)
    before = path.read_bytes()
    with pytest.raises(StoreError, match="is not a rubricnb store"):
        mend(path)
    assert path.read_bytes() == before


STRANGERS = {
    "a letter": b"Dear friend,\nthis is by no means a store.\n" * 100,
    "one byte": b"x",
    "zeros": bytes(8192),
    "a text that begins as SQLite's files do": b"SQLite format 3\0"
    + b"but goes on as a letter" * 99,
}


@pytest.mark.parametrize(
    "name",
    [
        *STRANGERS,
        "another program's",
        "one in WAL mode",
        "a folder",
        "a pipe",
        "nothing",
    ],
)
def test_a_check_leaves_nothing_beside_and_nothing_in_what_is_no_store(
    name, tmp_path, monkeypatch
):
    path = tmp_path / "file"
    if name in STRANGERS:
        path.write_bytes(STRANGERS[name])
    elif name == "a folder":
        path.mkdir()
    elif name == "a pipe":
        os.mkfifo(path)
    elif name != "nothing":
        with sqlite3.connect(path) as db:
            if "WAL" in name:
                db.execute("PRAGMA journal_mode=WAL")
            db.execute("CREATE TABLE places (url TEXT)")
            db.execute("INSERT INTO places VALUES ('https://example.org')")
        db.close()
    before = path.read_bytes() if path.is_file() else None
    monkeypatch.setenv("RUBRICNB_STORE", str(path))
    done = CliRunner().invoke(app, ["check", "--store"])
    said = done.output.splitlines()
    if name == "nothing":
        assert said[0] == f"there is no store yet: {path}"
        return
    assert done.exit_code == 1
    assert len(said) == 1, said
    assert "RUBRICNB_STORE" in said[0]
    with pytest.raises(StoreError, match="store"):
        Store(path)
    if name != "one in WAL mode":  # SQLite's own files may be beside it
        assert [p.name for p in tmp_path.iterdir()] == ["file"]
    assert not Path(f"{path}-open").exists()
    if before is not None:
        assert path.read_bytes() == before


def test_a_store_of_the_version_before_is_mended(fill):
    """A damaged one may not be brought up to date first."""
    path = fill()
    with sqlite3.connect(path) as db:
        for column in ("model", "run"):
            db.execute(f"ALTER TABLE replies DROP COLUMN {column}")
        db.execute("PRAGMA user_version=2")
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    db.close()
    flip(path, path.read_bytes().index(b"Feedback 33: "))
    assert "saved: 199" in mend(path)
    with Store(path) as store:
        assert store.check() == 199


@pytest.mark.parametrize("opened_by_link", [False, True])
def test_a_store_in_use_is_not_mended_through_a_link(fill, tmp_path, opened_by_link):
    path = fill()
    flip(path, path.read_bytes().index(b"Feedback 33: "))
    link = tmp_path / "link.sqlite"
    link.symlink_to(path)
    opened, other = (link, path) if opened_by_link else (path, link)
    with Store(opened) as store:
        with pytest.raises(StoreError, match="damaged and in use"):
            mend(other)
        store.put(PAID, "j", Reply(1, "paid [RESULT] 4"))
    assert "saved: 200" in mend(other)
    assert wrong(path) == 1
    for each in (path, link):
        with Store(each) as store:
            assert store.get([PAID])[PAID].text == "paid [RESULT] 4"


def test_two_runs_that_open_a_store_by_different_names_do_not_ask_the_same(
    fill, tmp_path
):
    path = fill()
    link = tmp_path / "link.sqlite"
    link.symlink_to(path)
    judge = rb.open_judge("simulated:unbiased")
    with Store(path) as store, Store(link) as other, store.alone_with(judge) as mine:
        assert mine
        with other.alone_with(judge, lambda: True) as free:
            assert not free


def test_a_flipped_bit_in_a_key_costs_its_answer_and_is_named_by_the_check(fill):
    """A run looks for whole keys, so it asks this one again,
    and uses no changed answer.
    """
    path = fill()
    content = path.read_bytes()
    flip(path, content.index(KEYS[33].encode()))
    changed = path.read_bytes()[content.index(KEYS[33].encode()) :][:64].decode()
    with Store(path) as store:
        assert KEYS[33] not in store.get(KEYS)
        assert store.answered([KEYS[33]]) == set()
        with pytest.raises(
            DamagedStore, match=f"1 of 200 answers have changed, first {changed}"
        ):
            store.check()
    assert "saved: 199" in mend(path)


def test_a_store_with_a_second_name_is_refused_and_loses_nothing(fill, tmp_path):
    """By a hard link SQLite finds the file and not the log beside its other name."""
    path = fill()
    other = tmp_path / "other.sqlite"
    with Store(path) as store:
        store.put(PAID, "j", Reply(1, "paid [RESULT] 4"))
        other.hardlink_to(path)
        for opening in (Store, mend):
            with pytest.raises(StoreError, match="has a second name"):
                opening(other)
    other.unlink()
    with Store(path) as store:
        assert store.get([PAID])[PAID].text == "paid [RESULT] 4"
        assert store.check() == 201


# Ends, as a kill would, before the file operation of this number.
KILLED = """
import os, sys
from pathlib import Path
from rubricnb.engines.rescue import mend
path, last, done = Path(sys.argv[1]), int(sys.argv[2]), [0]
def counted(operation):
    def step(first, *rest):
        if str(first).startswith(str(path)) or (rest and Path(rest[0]) == path):
            done[0] += 1
            if done[0] == last:
                os._exit(9)
        return operation(first, *rest)
    return step
os.link = counted(os.link)
Path.replace = counted(Path.replace)
unlink = Path.unlink
Path.unlink = lambda self, missing_ok=False: counted(
    lambda first: unlink(first, missing_ok)
)(self)
mend(path)
"""


# One answer more, which is in the log alone.
LOGGED = """
import os, sys
from rubricnb.core.contract import Reply
from rubricnb.core.store import Store
Store(sys.argv[1]).put(sys.argv[2], "j", Reply(1, "late", "stop"))
os._exit(9)
"""


@pytest.mark.parametrize("logged", [False, True], ids=["closed", "with a log"])
def test_a_repair_that_is_killed_at_any_step_leaves_every_answer(
    logged, fill, tmp_path
):
    for step in range(1, 9):
        path = fill()
        if logged:
            subprocess.run([sys.executable, "-c", LOGGED, path, PAID], check=False)
        flip(path, path.read_bytes().index(b"[RESULT] 4") + len("[RESULT] "))
        command = [sys.executable, "-c", KILLED, path, str(step)]
        if not subprocess.run(command).returncode:
            break
        assert path.exists()
        said = mend(path)
        saved = 199 + logged
        assert f"saved: {saved}" in said or said.startswith(f"{saved} answers")
        assert wrong(path) == 1
        with Store(path) as store:
            assert len(store.answered([PAID])) == logged
        for file in tmp_path.iterdir():
            file.unlink() if file.is_file() else shutil.rmtree(file)
    assert step >= 5


def test_a_store_that_an_older_repair_left_under_its_second_name_is_named(fill):
    path = fill()
    path.rename(f"{path}-damaged-1")
    with pytest.raises(StoreError, match="-damaged-1 is beside it"):
        mend(path)


def test_the_disk_without_hard_links_gets_a_copy(fill, monkeypatch):
    path = fill()
    flip(path, path.read_bytes().index(b"[RESULT] 4") + len("[RESULT] "))

    def refuse(*_):
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "link", refuse)
    assert "saved: 199" in mend(path)
    assert Path(f"{path}-damaged-1").stat().st_nlink == 1
