"""The store: the replies that a judge was paid for, under the hash of what was asked.

One SQLite file in WAL mode, for the processes of one machine. Every reply is committed by itself,
so a run that is killed keeps every reply that it has put. A power cut may take what the system had
not yet written to disk, about the last half minute (``synchronous=NORMAL``). Every row has a
checksum, which is compared when it is read. A lease keeps two runs on one store from asking the
same thing twice; it holds as long as the system holds the lock on its run's file, so neither clocks
nor process numbers matter. Raw text stays here and goes into no other file.
"""

from __future__ import annotations

import glob
import json
import math
import os
import socket
import sqlite3
import time
import uuid
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import cache
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from rubricnb.judging.contract import Reply

Row = tuple[Any, ...]
VERSION = 2
_JSON = json.JSONEncoder(default=repr)
_BATCH = "batch file "  # owner of what a batch asks, before the file's path; no host has a space
_COLUMNS = (
    "key, judge, text, finish, probabilities, prompt_tokens, cached_tokens, completion_tokens, "
    "seconds, error, time"
)
_PUT = f"INSERT OR REPLACE INTO replies ({_COLUMNS}, checksum) VALUES ({'?,' * 11} ?)"

_LEASE = "INSERT OR REPLACE INTO leases VALUES (?, ?)"
_AMONG = "WHERE key IN (SELECT value FROM json_each(?))"  # as many keys as there are

_SCHEMA = """
CREATE TABLE replies (
    key TEXT PRIMARY KEY, judge TEXT NOT NULL, text TEXT NOT NULL, finish TEXT NOT NULL,
    probabilities TEXT, prompt_tokens INTEGER NOT NULL, cached_tokens INTEGER NOT NULL,
    completion_tokens INTEGER NOT NULL, seconds REAL NOT NULL, error TEXT, time REAL NOT NULL,
    checksum INTEGER
) WITHOUT ROWID;
CREATE TABLE leases (key TEXT PRIMARY KEY, owner TEXT NOT NULL) WITHOUT ROWID;
PRAGMA user_version=2
"""
_PER_CONNECTION = """
CREATE TEMP TRIGGER answered AFTER INSERT ON main.replies
BEGIN DELETE FROM leases WHERE key = NEW.key; END
"""


class StoreError(RuntimeError):
    """The store cannot be used; the message says why and what to do. Nothing is deleted."""


class DamagedStore(StoreError):
    """The file cannot be used as it is; `rubricnb.judging.rescue.mend` saves its answers."""


def checksum(*row: Any) -> int:
    """Return the CRC-32 of a row as JSON."""
    return zlib.crc32(_JSON.encode(row).encode())


def default_path() -> Path:
    """Return where replies are kept: ``$RUBRICNB_STORE``, else the user's cache folder.

    Examples
    --------
    >>> default_path().suffix
    '.sqlite'
    """
    if path := os.environ.get("RUBRICNB_STORE"):
        return Path(path)
    import pooch

    return Path(pooch.os_cache("rubricnb")) / "replies.sqlite"


class Store:
    """Replies by key.

    Parameters
    ----------
    path
        The SQLite file; made if missing. Default: `default_path`.

    Raises
    ------
    StoreError
        The file is no store, was written by a newer version, cannot be written, or the disk is
        full. `DamagedStore`: something has changed what was written, or its format is the first.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> folder = tempfile.TemporaryDirectory()
    >>> with Store(pathlib.Path(folder.name) / "replies.sqlite") as store:
    ...     store.put("ab12", "judge", Reply(7, "[RESULT] 4"))
    ...     store.get(["ab12", "cd34"])["ab12"].text
    '[RESULT] 4'
    >>> folder.cleanup()
    """

    def __init__(self, path: str | Path | None = None) -> None:
        self.path = Path(path) if path else default_path()
        if str(self.path) != ":memory:":
            self.path = self.path.resolve()  # else a link has locks and a log of its own
        run = uuid.uuid4().hex
        self._owner = f"{socket.gethostname()}:{os.getpid()}:{run}"
        self._lock = _lock(self.path, run)
        self._earliest = 0.0  # no reply is given an earlier time, whatever the clock says
        with self._explained():
            self.path.parent.mkdir(parents=True, exist_ok=True)
            if str(self.path) != ":memory:":
                os.close(os.open(self.path, os.O_RDWR | os.O_CREAT, 0o600))  # texts are private
            self._db = sqlite3.connect(self.path, timeout=60, isolation_level=None)
            try:
                self._open()
            except BaseException:
                self._leave()
                raise

    def get(self, keys: Sequence[str]) -> dict[str, Reply]:
        """Return the stored replies among `keys` (their ``request_id`` is 0).

        Raises
        ------
        DamagedStore
            A row is not what was written.
        """
        found: dict[str, Reply] = {}
        for row in self._all(f"SELECT {_COLUMNS}, checksum FROM replies {_AMONG}", _listed(keys)):
            key, judge, text, finish, probabilities, *rest, _, checked = row
            if checked != checksum(*row[:-1]):
                raise DamagedStore(_damaged(self.path, f"the answer {key} by {judge} has changed"))
            found[key] = Reply(0, text, finish, _thaw(probabilities), *rest)
        return found

    def check(self) -> int:
        """Read the whole file; return the number of replies.

        Raises
        ------
        DamagedStore
            A row, or SQLite's own order of the file, is not what was written.
        """
        with self._explained():
            rows = self._db.execute(f"SELECT {_COLUMNS}, checksum FROM replies")
            found = [row[0] if row[-1] != checksum(*row[:-1]) else "" for row in rows]
            (order,) = self._db.execute("PRAGMA integrity_check(1)").fetchone()
        if changed := list(filter(None, found)):
            why = f"{len(changed):,} of {len(found):,} answers have changed, first {changed[0]}"
            raise DamagedStore(_damaged(self.path, why))
        if order != "ok":
            raise DamagedStore(_damaged(self.path, order))
        return len(found)

    def answered(self, keys: Sequence[str], since: float = 0.0) -> set[str]:
        """Return the keys that have an answer; a failed request is none.

        Parameters
        ----------
        keys
            What is about to be asked.
        since
            Replies from before this time (seconds since the epoch) do not count.
        """
        self._earliest = max(self._earliest, since)
        known = f"SELECT key FROM replies {_AMONG} AND finish != 'error' AND time >= ?"
        return {key for (key,) in self._all(known, _listed(keys), since)}

    def put(self, key: str, judge: str, reply: Reply) -> None:
        """Keep a reply, in place of an older one under its key; ends its lease.

        When this returns, no crash of the process can lose it; a power cut soon after may.
        """
        self._put(
            key,
            judge,
            _text(reply.text),
            reply.finish,
            json.dumps(reply.probabilities) if reply.probabilities is not None else None,
            int(reply.prompt_tokens),
            int(reply.cached_tokens),
            int(reply.completion_tokens),
            float(reply.seconds),
            None if reply.error is None else _text(reply.error),
            self._now(),
        )

    def put_saved(self, rows: Iterable[Row]) -> None:
        """Keep rows that were saved from a damaged store; of one key, the newest."""
        with self._transaction():
            for row in rows:
                known = self._all("SELECT time FROM replies WHERE key = ?", row[0])
                if not known or known[0][0] < row[-1]:
                    self._put(*row)

    def after_all(self) -> float:
        """Return a time later than that of every reply, also where the clock was set back."""
        ((newest,),) = self._all("SELECT MAX(time) FROM replies")
        self._earliest = max(self._now(), math.nextafter(newest or 0.0, math.inf))
        return self._earliest

    def claim(self, keys: Sequence[str], since: float = 0.0) -> tuple[set[str], set[str]]:
        """Lease what must be asked, so that no other run on this store asks it too.

        Parameters
        ----------
        keys, since
            As in `answered`.

        Returns
        -------
        answered, mine
            The keys that need not be asked, and those leased until they are `put`. Any other is
            held by a run that has not ended, however long it is silent and in whatever container,
            or by a batch whose file exists.
        """
        # Looked up and leased in one transaction: in between, another run could finish.
        with self._transaction():
            answered = self.answered(keys, since)
            leased = self._leases([key for key in keys if key not in answered])
            held = {key for key, owner in leased.items() if owner != self._owner}
            mine = set(keys) - answered - held
            self._db.executemany(_LEASE, [(key, self._owner) for key in mine])
        return answered, mine

    def holder(self, key: str) -> str:
        """Say who leases a key, such as ``process 4711 on this-machine``; empty if nobody does."""
        owner = self._leases([key]).get(key, "")
        if not owner or owner.startswith(_BATCH):
            return owner
        host, pid, _ = owner.rsplit(":", 2)
        return f"process {pid} on {host}"

    def hand_over(self, key: str, file: Path) -> None:
        """Lease a key to a batch file, until its answer is `put` or the file is gone."""
        self._all(_LEASE, key, f"{_BATCH}{file.resolve()}")

    def in_batches(self, keys: Sequence[str]) -> dict[str, Path]:
        """Return those of `keys` whose answers a batch is to bring, each with the batch's file."""
        return {
            key: Path(owner.removeprefix(_BATCH))
            for key, owner in self._leases(keys).items()
            if owner.startswith(_BATCH)
        }

    def end_batch(self, file: Path) -> None:
        """Give back what a batch file was to answer and did not."""
        self._all("DELETE FROM leases WHERE owner = ?", f"{_BATCH}{file.resolve()}")

    def release(self) -> None:
        """Give back every lease of this run."""
        self._all("DELETE FROM leases WHERE owner = ?", self._owner)

    def __len__(self) -> int:
        ((count,),) = self._all("SELECT COUNT(*) FROM replies")
        return int(count)

    def close(self) -> None:
        """Give back the leases and close the file."""
        try:
            self.release()
        finally:
            self._leave()

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _open(self) -> None:
        self._db.text_factory = lambda raw: str(raw, "utf-8", "replace")  # the checksum will tell
        self._db.execute("PRAGMA journal_mode=WAL")
        self._db.execute("PRAGMA synchronous=NORMAL")
        with self._transaction():  # two runs may open a new store at once
            version = self._db.execute("PRAGMA user_version").fetchone()[0]
            tables = self._db.execute("SELECT COUNT(*) FROM sqlite_master").fetchone()[0]
            if version == 0 and tables == 0:
                for statement in _SCHEMA.split(";"):
                    self._db.execute(statement)
            elif version == 1:
                raise DamagedStore(_old(self.path))
            elif version != VERSION:
                raise StoreError(
                    f"the store {self.path} was written by another rubricnb (format {version}, "
                    f"this one reads {VERSION}): use that version, or set RUBRICNB_STORE to a new "
                    "file"
                )
            self._db.execute(_PER_CONNECTION)
            if str(self.path) != ":memory:":
                self._sign_in()

    def _sign_in(self) -> None:
        """Lock this run's file, which the system unlocks when the process ends, however it does."""
        in_use(self.path)  # removes files of runs that have ended
        self._lock.acquire(timeout=0)

    def _leave(self) -> None:
        self._db.close()
        self._lock.release()
        Path(self._lock.lock_file).unlink(missing_ok=True)

    def _leases(self, keys: Sequence[str]) -> dict[str, str]:
        """Which of `keys` a run that has not ended, or a batch whose file exists, has leased."""
        alive = cache(self._alive)
        rows = self._all(f"SELECT key, owner FROM leases {_AMONG}", _listed(keys))
        return {key: owner for key, owner in rows if alive(owner)}

    def _alive(self, owner: str) -> bool:
        if owner.startswith(_BATCH):
            return Path(owner.removeprefix(_BATCH)).exists()
        return not _ended(self.path, owner.rpartition(":")[2])

    def _now(self) -> float:
        return max(time.time(), self._earliest)

    def _put(self, *row: Any) -> None:
        self._all(_PUT, *row, checksum(*row))

    def _all(self, statement: str, *values: Any) -> list[Row]:
        """Run one statement; returns its rows."""
        with self._explained():
            return self._db.execute(statement, values).fetchall()

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        with self._explained():
            self._db.execute("BEGIN IMMEDIATE")
            try:
                yield
                self._db.execute("COMMIT")
            except BaseException:
                if self._db.in_transaction:  # a full disk has rolled back already
                    self._db.execute("ROLLBACK")
                raise

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except (sqlite3.Error, OSError) as error:
            kind, why = _explain(self.path, error)
            raise kind(why) from error


def open_store(store: Store | str | Path | None) -> AbstractContextManager[Store]:
    """Open the store of a path, and close it in the end; one that is given stays open."""
    return nullcontext(store) if isinstance(store, Store) else Store(store)


def in_use(path: Path) -> bool:
    """Whether a run that has not ended has the store of a resolved path open."""
    files = path.parent.glob(f"{glob.escape(path.name)}-run-*")
    ended = [_ended(path, file.name.rpartition("-")[2]) for file in files]  # each is asked
    return not all(ended)


def _ended(path: Path, run: str) -> bool:
    """Whether a run has ended; its file is removed then. Inside a transaction: one at a time."""
    lock = _lock(path, run)
    if not Path(lock.lock_file).exists():
        return True
    try:
        lock.acquire(timeout=0)
    except Timeout:
        return False
    lock.release()
    Path(lock.lock_file).unlink(missing_ok=True)
    return True


def _lock(path: Path, run: str) -> FileLock:
    return FileLock(f"{path}-run-{run}", mode=0o600)


def _explain(path: Path, error: Exception) -> tuple[type[StoreError], str]:
    reason = str(error)
    if "full" in reason or "No space" in reason:
        return StoreError, (
            f"no room left for the store {path}: every reply committed so far is kept; "
            "free some disk space, or set RUBRICNB_STORE to another disk, and run again"
        )
    if "malformed" in reason or "not a database" in reason:
        return DamagedStore, _damaged(path, reason)
    if "locked" in reason:
        return StoreError, f"the store {path} is locked by another program: close it and run again"
    return StoreError, (
        f"the store {path} cannot be used ({reason}): mend that, or set RUBRICNB_STORE to another "
        "file; what is in this one stays there"
    )


def _damaged(path: Path, reason: str) -> str:
    return (
        f"{path} is no store of rubricnb, or damaged ({reason}). If it is one, keep it: "
        f"RUBRICNB_STORE='{path}' python -m rubricnb check --store saves the answers that are "
        "whole; only the damaged ones are asked again"
    )


def _old(path: Path) -> str:
    return (
        f"{path} has the first format of a store, without checksums: end the runs that use it, then"
        f" RUBRICNB_STORE='{path}' python -m rubricnb check --store takes its answers over"
    )


def _text(text: str) -> str:
    return text.encode("utf-8", "replace").decode()  # a lone surrogate is no text


def _thaw(probabilities: str | None) -> tuple[tuple[float, ...], ...] | None:
    return None if probabilities is None else tuple(map(tuple, json.loads(probabilities)))


def _listed(keys: Sequence[str]) -> str:
    return json.dumps(list(keys))
