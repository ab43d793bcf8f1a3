"""The store: every reply that was ever paid for, under the hash of what was asked.

One SQLite file in WAL mode. Every reply is committed by itself, so a run killed at any moment keeps
what it has; a lease keeps two runs on one store from asking the same thing twice. Raw text stays
here and goes into no other file.
"""

from __future__ import annotations

import json
import os
import socket
import sqlite3
import subprocess
import time
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from types import TracebackType

from rubricnb.judging.contract import Reply

VERSION = 1
_LEASE = 600.0  # seconds without a sign of life, for owners on machines whose processes are unseen
_RENEWAL = 60.0
_BATCH = "batch file "  # owner of what a batch asks, before the file's path; no host has a space
_BLOCK = 500  # keys in one query: old builds of SQLite allow 999 variables

_SCHEMA = """
CREATE TABLE replies (
    key TEXT PRIMARY KEY, judge TEXT NOT NULL, text TEXT NOT NULL, finish TEXT NOT NULL,
    probabilities TEXT, prompt_tokens INTEGER NOT NULL, cached_tokens INTEGER NOT NULL,
    completion_tokens INTEGER NOT NULL, seconds REAL NOT NULL, error TEXT, time REAL NOT NULL
) WITHOUT ROWID;
CREATE TABLE leases (
    key TEXT PRIMARY KEY, owner TEXT NOT NULL, expires REAL NOT NULL
) WITHOUT ROWID;
"""

_PER_CONNECTION = """
CREATE TEMP TRIGGER answered AFTER INSERT ON main.replies
BEGIN DELETE FROM leases WHERE key = NEW.key; END
"""


class StoreError(RuntimeError):
    """The store cannot be used; the message says why and what to do. Nothing in it is lost."""


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
        The file is no store, was written by another version, cannot be written, or the disk is
        full.

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
        self._renewal = time.time() + _RENEWAL
        pid = os.getpid()
        self._owner = f"{socket.gethostname()}:{pid}:{_begun(pid)}/{uuid.uuid4().hex}"
        with self._explained():
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._db = sqlite3.connect(self.path, timeout=60, isolation_level=None)
            self._open()

    def get(self, keys: Sequence[str]) -> dict[str, Reply]:
        """Return the stored replies among `keys` (their ``request_id`` is 0)."""
        found: dict[str, Reply] = {}
        with self._explained():
            for block in _blocks(keys):
                rows = self._db.execute(
                    "SELECT key, text, finish, probabilities, prompt_tokens, cached_tokens, "
                    "completion_tokens, seconds, error FROM replies "
                    f"WHERE key IN ({_marks(block)})",
                    block,
                )
                for key, text, finish, probabilities, *rest in rows:
                    found[key] = Reply(0, text, finish, _thaw(probabilities), *rest)
        return found

    def answered(
        self, keys: Sequence[str], since: float = 0.0, retry_errors: float = 0.0
    ) -> set[str]:
        """Return the keys that need not be asked.

        Parameters
        ----------
        keys
            What is about to be asked.
        since
            Replies from before this time (seconds since the epoch) do not count.
        retry_errors
            Nor do failed requests from before this one.
        """
        found: set[str] = set()
        with self._explained():
            for block in _blocks(keys):
                rows = self._db.execute(
                    f"SELECT key FROM replies WHERE key IN ({_marks(block)}) "
                    "AND time >= ? AND (finish != 'error' OR time >= ?)",
                    [*block, since, retry_errors],
                )
                found.update(key for (key,) in rows)
        return found

    def put(self, key: str, judge: str, reply: Reply) -> None:
        """Keep a reply, durably; it replaces an older one under its key, and ends its lease."""
        with self._explained():
            self._renewed(time.time())
            self._db.execute(
                "INSERT OR REPLACE INTO replies VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (
                    key,
                    judge,
                    _text(reply.text),
                    reply.finish,
                    json.dumps(reply.probabilities) if reply.probabilities is not None else None,
                    reply.prompt_tokens,
                    reply.cached_tokens,
                    reply.completion_tokens,
                    reply.seconds,
                    None if reply.error is None else _text(reply.error),
                    time.time(),
                ),
            )

    def claim(
        self, keys: Sequence[str], since: float = 0.0, retry_errors: float = 0.0
    ) -> tuple[set[str], set[str]]:
        """Lease what must be asked, so that no other run on this store asks it too.

        Parameters
        ----------
        keys, since, retry_errors
            As in `answered`.

        Returns
        -------
        answered, mine
            The keys that need not be asked, and those leased until they are `put`. Any other is
            held by another living run: a process of this machine, however long it is silent, or one
            elsewhere that gave a sign of life within ten minutes; or by a batch whose file exists.
        """
        mine: set[str] = set()
        # Looked up and leased in one transaction: in between, another run could finish.
        with self._explained(), self._transaction():
            answered = self.answered(keys, since, retry_errors)
            now = self._renewed(time.time())
            alive = cache(_alive)  # asks the machine once for every owner
            for block in _blocks([key for key in keys if key not in answered]):
                rows = self._db.execute(
                    f"SELECT key, owner, expires FROM leases WHERE key IN ({_marks(block)})", block
                )
                held = {
                    key
                    for key, owner, expires in rows
                    if owner != self._owner and alive(owner, expires > now)
                }
                free = [key for key in block if key not in held]
                self._db.executemany(
                    "INSERT OR REPLACE INTO leases VALUES (?, ?, ?)",
                    [(key, self._owner, now + _LEASE) for key in free],
                )
                mine.update(free)
        return answered, mine

    def holder(self, key: str) -> str:
        """Say who leases a key, such as ``process 4711 on this-machine``; empty if nobody does."""
        with self._explained():
            row = self._db.execute("SELECT owner FROM leases WHERE key = ?", (key,)).fetchone()
        if row is None:
            return ""
        if row[0].startswith(_BATCH):
            return str(row[0])
        host, pid, _ = row[0].rsplit(":", 2)
        return f"process {pid} on {host}"

    def hand_over(self, key: str, file: Path) -> None:
        """Lease a key to a batch file, until its answer is `put` or the file is gone."""
        with self._explained():
            self._db.execute(
                "INSERT OR REPLACE INTO leases VALUES (?, ?, ?)",
                (key, f"{_BATCH}{file.resolve()}", float("inf")),
            )

    def in_batches(self, keys: Sequence[str]) -> dict[str, Path]:
        """Return those of `keys` whose answers a batch is to bring, each with the batch's file."""
        found: dict[str, Path] = {}
        alive = cache(_alive)
        with self._explained():
            for block in _blocks(keys):
                rows = self._db.execute(
                    f"SELECT key, owner FROM leases WHERE key IN ({_marks(block)})", block
                )
                for key, owner in rows:
                    if owner.startswith(_BATCH) and alive(owner, True):
                        found[key] = Path(owner.removeprefix(_BATCH))
        return found

    def end_batch(self, file: Path) -> None:
        """Give back what a batch file was to answer and did not."""
        with self._explained():
            self._db.execute("DELETE FROM leases WHERE owner = ?", (f"{_BATCH}{file.resolve()}",))

    def release(self) -> None:
        """Give back every lease of this run."""
        with self._explained():
            self._db.execute("DELETE FROM leases WHERE owner = ?", (self._owner,))

    def __len__(self) -> int:
        with self._explained():
            count: int = self._db.execute("SELECT COUNT(*) FROM replies").fetchone()[0]
        return count

    def close(self) -> None:
        """Give back the leases and close the file."""
        try:
            self.release()
        finally:
            self._db.close()

    def __enter__(self) -> Store:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _open(self) -> None:
        self._db.execute("PRAGMA journal_mode=WAL")
        self._db.execute("PRAGMA synchronous=NORMAL")
        with self._transaction():  # two runs may open a new store at once
            version = self._db.execute("PRAGMA user_version").fetchone()[0]
            tables = self._db.execute("SELECT COUNT(*) FROM sqlite_master").fetchone()[0]
            if version == 0 and tables == 0:
                for statement in filter(str.strip, _SCHEMA.split(";")):
                    self._db.execute(statement)
                self._db.execute(f"PRAGMA user_version={VERSION}")
                version = VERSION
        if version != VERSION:
            self._db.close()
            age = "a newer" if version > VERSION else "an older"
            raise StoreError(
                f"the store {self.path} was written by {age} rubricnb (format {version}, this one "
                f"reads {VERSION}): use that version, or set RUBRICNB_STORE to a new file"
            )
        self._db.execute(_PER_CONNECTION)

    def _renewed(self, now: float) -> float:
        """Prolong the leases of a run that takes long."""
        if now > self._renewal:
            self._renewal = now + _RENEWAL
            self._db.execute(
                "UPDATE leases SET expires = ? WHERE owner = ?", (now + _LEASE, self._owner)
            )
        return now

    @contextmanager
    def _transaction(self) -> Iterator[None]:
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
            raise StoreError(_explain(self.path, error)) from error


def _explain(path: Path, error: Exception) -> str:
    reason = str(error)
    if "full" in reason or "No space" in reason:
        return (
            f"no room left for the store {path}: every reply committed so far is kept; "
            "free some disk space, or set RUBRICNB_STORE to another disk, and run again"
        )
    if "not a database" in reason:
        return f"{path} is not a store of rubricnb: set RUBRICNB_STORE to another file"
    if "locked" in reason:
        return f"the store {path} is locked by another program: close it and run again"
    return f"the store {path} cannot be used ({reason}): set RUBRICNB_STORE to a file you can write"


def _text(text: str) -> str:
    return text.encode("utf-8", "replace").decode()  # a lone surrogate is no text


def _alive(owner: str, heard: bool) -> bool:
    """Say whether a run still works; of one on another machine it is known only when it was heard.

    Examples
    --------
    >>> _alive("elsewhere:1:/x", True), _alive("elsewhere:1:/x", False)
    (True, False)
    """
    if owner.startswith(_BATCH):
        return Path(owner.removeprefix(_BATCH)).exists()
    host, pid, run = owner.rsplit(":", 2)
    if host != socket.gethostname():
        return heard
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    begun, _, _ = run.rpartition("/")
    now = _begun(int(pid))
    if not (begun and now):  # not to be seen: the number may be another process's by now
        return heard
    return begun == now


def _begun(pid: int) -> str:
    """When a process began, so that another one with its number is not taken for it; or nothing."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text("utf-8", "replace")
    except OSError:
        return _told(pid)
    state, *facts = stat.rpartition(")")[2].split()
    return "ended" if state == "Z" else facts[18]  # clock ticks since the machine was started


def _told(pid: int) -> str:
    """The same where there is no /proc."""
    command = ["ps", "-o", "lstart=", "-p", str(pid)]
    alike = os.environ | {"LC_ALL": "C", "TZ": "UTC"}
    try:
        ps = subprocess.run(command, capture_output=True, text=True, timeout=10, env=alike)
    except (OSError, subprocess.SubprocessError):
        return ""
    return "-".join(ps.stdout.replace(":", ".").split())


def _thaw(probabilities: str | None) -> tuple[tuple[float, ...], ...] | None:
    return None if probabilities is None else tuple(map(tuple, json.loads(probabilities)))


def _blocks(keys: Sequence[str]) -> Iterator[list[str]]:
    for start in range(0, len(keys), _BLOCK):
        yield list(keys[start : start + _BLOCK])


def _marks(block: Sequence[str]) -> str:
    return ",".join("?" * len(block))
