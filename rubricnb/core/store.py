"""The store: paid replies, each under the hash of its request.

One SQLite file in WAL mode, for the processes of one machine. Every reply is committed
by itself, so a run that is killed keeps every reply that it has put. A power cut may
take what the system had not yet written to disk, about the last half minute
(``synchronous=NORMAL``). Every row has a checksum, which is compared when it is read.
Raw text stays here and goes into no other file.

Two locks, each on an empty file beside the store. The operating system keeps them and
ends them with their process, so neither clocks nor process numbers matter:

``…-open``
    shared by all that have the store open; `rubricnb.engines.rescue.mend` takes it
    alone.
``…-lock-…``
    one for each judge, held by the run that is asking it; the next run waits.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import secrets
import socket
import sqlite3
import time
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import (
    AbstractContextManager,
    closing,
    contextmanager,
    nullcontext,
    suppress,
)
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeAlias

from platformdirs import user_cache_path

from rubricnb.core.contract import Engine, Reply
from rubricnb.core.support.types import Json

Row = tuple[Any, ...]
VERSION = 3
LAST_RUN = 10**9 + 2  # numbers of runs are below it
# has no columns model and run, and is brought up to this version when it is opened
_OLDER = 2
_LATER = ("model", "run")
_JSON = json.JSONEncoder(default=repr)
_BATCH = "batch file "  # before the file's path: who owns the key of a request
_BEGUN = "begun: "  # before the name of a run that asks everything again
_COLUMNS = (
    "key, judge, text, finish, probabilities, prompt_tokens, cached_tokens, "
    "completion_tokens, seconds, error, time, model, run"
)
_PUT = f"INSERT OR REPLACE INTO replies ({_COLUMNS}, checksum) VALUES ({'?,' * 13} ?)"
ROWS = f"SELECT {_COLUMNS}, checksum FROM replies"
BATCHES = f"SELECT key, owner FROM leases WHERE owner LIKE '{_BATCH}%'"
_SMALLEST = 512  # bytes of an SQLite file
# SQLite's largest integer; an endpoint may report any number of tokens
_MOST = 2**63 - 1
_BUSY = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
_NO_SPACE = (errno.ENOSPC, errno.EDQUOT)
_POLL = 0.2  # seconds between tries to lock a judge
_LEASE = "INSERT OR REPLACE INTO leases VALUES (?, ?)"
_AMONG = "WHERE key IN (SELECT value FROM json_each(?))"  # as many keys as there are

_SCHEMA = """
CREATE TABLE replies (
    key TEXT PRIMARY KEY, judge TEXT NOT NULL, text TEXT NOT NULL, finish TEXT NOT NULL,
    probabilities TEXT, prompt_tokens INTEGER NOT NULL, cached_tokens INTEGER NOT NULL,
    completion_tokens INTEGER NOT NULL, seconds REAL NOT NULL, error TEXT,
    time REAL NOT NULL, checksum INTEGER, model TEXT, run INTEGER
) WITHOUT ROWID;
CREATE TABLE leases (key TEXT PRIMARY KEY, owner TEXT NOT NULL) WITHOUT ROWID;
PRAGMA user_version=3
"""
_UPGRADE = """
ALTER TABLE replies ADD COLUMN model TEXT;
ALTER TABLE replies ADD COLUMN run INTEGER;
PRAGMA user_version=3
"""
_PER_CONNECTION = """
CREATE TEMP TRIGGER answered AFTER INSERT ON main.replies
BEGIN DELETE FROM leases WHERE key = NEW.key; END
"""


class StoreError(RuntimeError):
    """The store cannot be used; says why and what to do. Nothing is deleted."""


class DamagedStore(StoreError):
    """The file is damaged; `rubricnb.engines.rescue.mend` saves its answers."""


def checksum(row: Row) -> int:
    """Return the CRC-32 of a row as JSON, without a model or run that it lacks."""
    covered = (
        row
        if any(part is not None for part in row[-len(_LATER) :])
        else row[: -len(_LATER)]
    )
    return zlib.crc32(_JSON.encode(covered).encode())


def rows_in(db: sqlite3.Connection) -> str:
    """Return the query of all rows of a store of this version or the one before."""
    there = {name for (_, name, *_) in db.execute("PRAGMA table_info(replies)")}
    missing = [name for name in _LATER if there and name not in there]
    return (
        ROWS.replace("model, run", ", ".join(f"NULL AS {n}" for n in _LATER))
        if missing
        else ROWS
    )


def decode(raw: bytes) -> str:
    """Return stored bytes as text, even if damaged: the checksum detects changes."""
    return str(raw, "utf-8", "replace")


def default_path() -> Path:
    """Return where replies are kept: ``$RUBRICNB_STORE``, else the user's cache folder.

    Examples
    --------
    >>> default_path().suffix
    '.sqlite'
    """
    if path := os.environ.get("RUBRICNB_STORE"):
        return Path(path)
    return user_cache_path("rubricnb") / "replies.sqlite"


class Store:
    """Replies by key.

    Parameters
    ----------
    path
        The SQLite file; made if missing. Default: `default_path`.

    Raises
    ------
    StoreError
        The file is not a store, was written by another version, cannot be written, or
        the disk is full. `DamagedStore`: something has changed what was written.

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
        self.in_memory = str(self.path) == ":memory:"
        self._marker: sqlite3.Connection | None = None
        with self._explained():
            if not self.in_memory:
                # else a link has locks and a log of its own
                self.path = self.path.resolve()
                self.path.parent.mkdir(parents=True, exist_ok=True)
                _refuse_stranger(self.path)
                # SQLite's log is beside only one of a file's names.
                if self.path.exists() and self.path.stat().st_nlink > 1:
                    raise StoreError(
                        f"the store {self.path} has a second name (a hard link), under "
                        "which its newest answers would be lost: delete the other "
                        f"name, or work on a copy (cp {self.path} NEW). After a repair "
                        "that was stopped, python -m rubricnb check --store ends it"
                    )
                self._marker = lock(open_file(self.path), "BEGIN")
                if self._marker is None:
                    raise StoreError(_in_use(self.path))
                _create(self.path)
            self._db = sqlite3.connect(self.path, timeout=60, isolation_level=None)
            try:
                self._open()
            except BaseException:
                self.close()
                raise

    def get(self, keys: Sequence[str]) -> dict[str, Reply]:
        """Return the stored replies among `keys` (their ``request_id`` is 0).

        Raises
        ------
        DamagedStore
            A row is not what was written.
        """
        found: dict[str, Reply] = {}
        for row in self._all(f"{ROWS} {_AMONG}", _listed(keys)):
            key, judge, text, finish, probabilities, *rest, _, model, _, checked = row
            if checked != checksum(row[:-1]):
                raise DamagedStore(
                    _damaged(self.path, f"the answer {key} by {judge} has changed")
                )
            if probabilities is not None:
                probabilities = tuple(map(tuple, json.loads(probabilities)))
            reply = Reply(0, text, finish, probabilities, *rest)
            remarks: Json = {}
            if reply.finish != "error" and reply.error:
                notes, masses = map(tuple, json.loads(reply.error))
                remarks = {"error": None, "notes": notes, "label_masses": masses}
            found[key] = replace(reply, model=model or "", **remarks)
        return found

    def check(self) -> int:
        """Read the whole file; return the number of replies.

        Raises
        ------
        DamagedStore
            A row, or SQLite's own order of the file, is not what was written.
        """
        with self._explained():
            intact = {
                row[0]: row[-1] == checksum(row[:-1]) for row in self._db.execute(ROWS)
            }
            (order,) = self._db.execute("PRAGMA integrity_check(1)").fetchone()
        if changed := [key for key, is_intact in intact.items() if not is_intact]:
            order = (
                f"{len(changed):,} of {len(intact):,} answers have changed, first "
                f"{changed[0]}"
            )
        if order != "ok":
            raise DamagedStore(_damaged(self.path, order))
        return len(intact)

    def answered(self, keys: Sequence[str], run: int = 0) -> set[str]:
        """Return the keys that have an answer; failed requests do not count.

        Parameters
        ----------
        keys
            What is about to be asked.
        run
            Count only the answers that were `put` under this number; 0 counts all.
        """
        known = (
            f"SELECT key FROM replies {_AMONG} AND finish != 'error' AND ? IN (0, run)"
        )
        return {key for (key,) in self._all(known, _listed(keys), run)}

    def put(self, key: str, judge: str, reply: Reply, run: int = 0) -> None:
        """Store a reply in place of an older one, and take its key from batch files.

        A failed request replaces no answer: that one was paid for, and is still true.
        When this returns, no crash of the process can lose it; a power cut soon after
        may.

        Parameters
        ----------
        key, judge, reply
            The request's key, the judge's slug, and what came back.
        run
            The number of the run that asks everything again (`new_run`); 0 for any
            other.
        """
        row = (
            key,
            _text(judge),
            _text(reply.text),
            reply.finish,
            json.dumps(reply.probabilities)
            if reply.probabilities is not None
            else None,
            min(int(reply.prompt_tokens), _MOST),
            min(int(reply.cached_tokens), _MOST),
            min(int(reply.completion_tokens), _MOST),
            float(reply.seconds),
            _freeze_remarks(reply) if reply.error is None else _text(reply.error),
            time.time(),
            _text(reply.model) or None,
            run or None,
        )
        with self._transaction():
            if reply.finish != "error" or not self.answered([key]):
                self._db.execute(_PUT, (*row, checksum(row)))

    def put_saved(self, rows: Iterable[Row], batches: Iterable[Row]) -> None:
        """Keep what a damaged store still had: rows with a right checksum, batches."""
        with self._transaction():
            intact = (row for row in rows if row[-1] == checksum(row[:-1]))
            self._db.executemany(_PUT, intact)
            self._db.executemany(_LEASE, batches)

    @contextmanager
    def alone_with(
        self, judge: Engine, gives_up: Callable[[], object] = lambda: False
    ) -> Iterator[bool]:
        """Wait until no other run asks a judge through this store; keep others out.

        Until then, wait: one line says for whom. Nothing is asked twice if what is
        missing is looked up after this.

        Parameters
        ----------
        judge
            Told apart by its identity, as keys are.
        gives_up
            Whether to wait no longer.

        Yields
        ------
        bool
            False if `gives_up` became true before the judge was free.
        """
        if self.in_memory:
            yield True
            return
        held = self._lock(judge)
        if not held:
            self._say_who_asks(judge)
        while not held and not gives_up():
            time.sleep(_POLL)
            held = self._lock(judge)
        with closing(held) if held else nullcontext():
            if held:
                who = f"process {os.getpid()} on {socket.gethostname()}"
                self._all(_LEASE, judge.identity, who)
            yield held is not None

    def run_begun(self, name: str, seconds: float) -> int:
        """Return the number of a run that was begun under a name, or of a new one.

        The clock says only when a run has become too old to go on with, and not which
        answers are its own: a clock that is set back loses none of them.

        Parameters
        ----------
        name
            What the run is for.
        seconds
            How long after its beginning a run may be gone on with.
        """
        key, now = f"{_BEGUN}{name}", time.time()
        with self._transaction():
            found = self._db.execute(
                "SELECT owner FROM leases WHERE key = ?", (key,)
            ).fetchone()
            number, begun = (found[0] if found else "0 0").split()
            if int(number) and abs(now - float(begun)) < seconds:
                return int(number)
            number = new_run()
            self._db.execute(_LEASE, (key, f"{number} {now!r}"))
            return number

    def hand_over(self, key: str, file: Path) -> None:
        """Leave a key to a batch file until its answer is `put` or the file is gone."""
        self._all(_LEASE, key, f"{_BATCH}{file.resolve()}")

    def in_batches(self, keys: Sequence[str]) -> dict[str, Path]:
        """Return which of `keys` a batch will answer, each with the batch's file."""
        owned = self._all(
            f"{BATCHES} AND key IN (SELECT value FROM json_each(?))", _listed(keys)
        )
        files = {key: Path(owner.removeprefix(_BATCH)) for key, owner in owned}
        exist = {file for file in set(files.values()) if file.exists()}
        return {key: file for key, file in files.items() if file in exist}

    def release(self, keys: Sequence[str]) -> None:
        """Let a run ask what was left to batch files."""
        self._all(
            f"DELETE FROM leases {_AMONG} AND owner LIKE '{_BATCH}%'", _listed(keys)
        )

    def end_batch(self, file: Path) -> None:
        """Release all requests of a batch file, as it is gone."""
        self._all("DELETE FROM leases WHERE owner = ?", f"{_BATCH}{file.resolve()}")

    def __len__(self) -> int:
        ((count,),) = self._all("SELECT COUNT(*) FROM replies")
        return int(count)

    def close(self) -> None:
        """Close the file."""
        self._db.close()
        if self._marker:
            self._marker.close()

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _open(self) -> None:
        self._db.text_factory = decode
        self._db.execute("PRAGMA journal_mode=WAL")
        self._db.execute("PRAGMA synchronous=NORMAL")
        with self._transaction():  # two runs may open a new store at once
            version = self._db.execute("PRAGMA user_version").fetchone()[0]
            tables = self._db.execute("SELECT COUNT(*) FROM sqlite_master").fetchone()[
                0
            ]
            scripts = {_OLDER: _UPGRADE, VERSION: ""} if tables else {0: _SCHEMA}
            if version not in scripts:
                raise StoreError(_other_version(self.path, version))
            for statement in scripts[version].split(";"):
                self._db.execute(statement)
            self._db.execute(_PER_CONNECTION)

    def _lock(self, judge: Engine) -> sqlite3.Connection | None:
        name = hashlib.sha256(judge.identity.encode()).hexdigest()[:16]
        with self._explained():
            return lock(Path(f"{self.path}-lock-{name}"), "BEGIN EXCLUSIVE")

    def _say_who_asks(self, judge: Engine) -> None:
        who = self._all("SELECT owner FROM leases WHERE key = ?", judge.identity)
        print(
            f"{judge.slug}: {who[0][0] if who else 'another run'} is asking this judge "
            f"through {self.path}: this run waits until that run ends, then asks only "
            "for what is missing",
            flush=True,
        )

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


def new_run() -> int:
    """Return a number for a run that asks everything again: drawn, not a clock's."""
    return 2 + secrets.randbelow(LAST_RUN - 2)  # not 1, which is True


StoreLike: TypeAlias = Store | str | Path | None


def open_store(store: StoreLike) -> AbstractContextManager[Store]:
    """Open the store of a path, and close it in the end; a given one stays open."""
    return nullcontext(store) if isinstance(store, Store) else Store(store)


def open_file(path: Path) -> Path:
    """Return the file that is locked while the store of a resolved path is open."""
    return Path(f"{path}-open")


def lock(file: Path, begin: str) -> sqlite3.Connection | None:
    """Lock a file until the connection or process ends; None if others lock it.

    The lock is SQLite's own, so it works wherever the store does. ``BEGIN`` shares it.
    """
    _create(file)
    held = sqlite3.connect(file, timeout=0, isolation_level=None)
    try:
        held.execute(begin)
        # BEGIN alone locks nothing
        held.execute("SELECT COUNT(*) FROM sqlite_master").fetchone()
    except sqlite3.OperationalError as error:
        held.close()
        if _code(error) in _BUSY:
            return None
        raise
    return held


def _create(file: Path) -> None:
    """Create a file for its owner only, since texts are private.

    One that exists is not opened: closing it would end all locks that this process has
    on it.
    """
    with suppress(FileExistsError):
        os.close(os.open(file, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))


def _refuse_stranger(path: Path) -> None:
    """Refuse a file that is no store, before anything is written into it or beside it.

    SQLite reads it, not this module: closing a file ends all locks that this process
    has on it.
    """
    if not path.exists():
        return
    if not path.is_file():
        raise StoreError(
            f"the store {path} is no ordinary file: set RUBRICNB_STORE to one"
        )
    if path.stat().st_size == 0:
        return
    # SQLite would take it for empty, and write over it
    if path.stat().st_size < _SMALLEST:
        raise StoreError(
            f"{path} is not a rubricnb store (it is too small): set RUBRICNB_STORE to "
            "a different file"
        )
    with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)) as db:
        try:
            version = db.execute("PRAGMA user_version").fetchone()[0]
            tables = {name for (name,) in db.execute("SELECT name FROM sqlite_master")}
        except sqlite3.DatabaseError as error:
            if _code(error) == sqlite3.SQLITE_NOTADB:
                raise StoreError(
                    f"{path} is not a rubricnb store ({error}): set RUBRICNB_STORE to "
                    "a different file"
                ) from None
            return  # damaged or busy: what follows says so
    is_ours = version in (_OLDER, VERSION) and tables >= {"replies", "leases"}
    if (version or tables) and not is_ours:  # other programs number their formats, too
        raise StoreError(_other_version(path, version))


def _other_version(path: Path, version: int) -> str:
    return (
        f"{path} is not a rubricnb store, or was written by a different version of "
        f"rubricnb (format {version}, this one reads {VERSION}): use that version, or "
        "set RUBRICNB_STORE to a new file"
    )


def _explain(path: Path, error: Exception) -> tuple[type[StoreError], str]:
    """Return what happened, by the code of the error: its text may hold any path."""
    if _code(error) == sqlite3.SQLITE_FULL or getattr(error, "errno", 0) in _NO_SPACE:
        return StoreError, (
            f"no disk space left for the store {path}: every reply committed so far is "
            "kept; free some disk space, or set RUBRICNB_STORE to a file on a "
            "different disk, and run again"
        )
    if _code(error) in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
        return DamagedStore, _damaged(path, str(error))
    if _code(error) in _BUSY:
        return StoreError, _in_use(path)
    return StoreError, (
        f"the store {path} cannot be used ({error}): fix that, or set RUBRICNB_STORE "
        "to a different file; the answers in this one are kept"
    )


def _code(error: Exception) -> int:
    """Return SQLite's primary code of an error; 0 if it has none."""
    return int(getattr(error, "sqlite_errorcode", 0)) & 0xFF


def _in_use(path: Path) -> str:
    return f"the store {path} is locked by another program: close it and run again"


def _damaged(path: Path, reason: str) -> str:
    return (
        f"{path} is not a rubricnb store, or it is damaged ({reason}). If it is one, "
        f"keep it: RUBRICNB_STORE='{path}' python -m rubricnb check --store saves the "
        "answers that are intact; only the damaged ones are asked again"
    )


def _text(text: str) -> str:
    return text.encode("utf-8", "replace").decode()  # a lone surrogate is no text


def _freeze_remarks(reply: Reply) -> str | None:
    """Return what a server says about a good answer, kept in the place of an error."""
    if not any(reply.notes) and not any(reply.label_masses):
        return None
    return json.dumps([reply.notes, reply.label_masses])


def _listed(keys: Sequence[str]) -> str:
    return json.dumps(list(keys))
