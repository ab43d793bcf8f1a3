"""Repair of a damaged store: rows with the right checksum are copied into a new file."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing, suppress
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory

from rubricnb.judging.store import (
    BATCHES,
    ROWS,
    DamagedStore,
    Row,
    Store,
    StoreError,
    decode,
    lock,
    open_file,
)

_PAGE = 4096  # bytes; SQLite's own choice, which a store leaves to it
_SIZE = slice(28, 32)  # where the first page has the number of pages; zero: as many as there are


def mend(path: Path) -> str:
    """Check a store; if it is damaged, replace it by a new file with its intact answers.

    Returns
    -------
    str
        What was found and done.

    Raises
    ------
    StoreError
        The store is damaged and in use, or no answer of a store can be read.
    """
    path = path.resolve()
    try:
        with Store(path) as store:
            return f"{store.check():,} answers in {path}, each as it was written"
    except DamagedStore as damage:
        why = str(damage)
    alone = lock(open_file(path), "BEGIN EXCLUSIVE")
    if alone is None:
        raise StoreError(f"{path} is damaged and in use: stop the runs that use it first")
    with closing(alone), TemporaryDirectory(dir=path.parent) as folder:
        new = Path(folder) / "new"
        if not (saved := _save(path, new)):
            raise StoreError(why)
        number = next(n for n in count(1) if not Path(f"{path}-damaged-{n}").exists())
        for ending in ("", "-wal", "-shm"):
            if (part := Path(f"{path}{ending}")).exists():
                part.rename(f"{path}-damaged-{number}{ending}")
        new.rename(path)
    return (
        f"{why}\nsaved: {saved:,} answers, now in {path}; others will be asked again. The file "
        f"as it was is kept: {path}-damaged-{number}"
    )


def _save(path: Path, new: Path) -> int:
    """Copy intact answers into a new store; return their number.

    What is read is a copy with the first page of a new store, which is the same in all stores.
    """
    Store(new).close()
    first = bytearray(new.read_bytes()[:_PAGE])
    first[_SIZE] = bytes(4)
    copy = new.with_name("copy")
    shutil.copy(path, copy)
    with copy.open("r+b") as file:
        file.write(first)
    if (log := Path(f"{path}-wal")).exists():
        shutil.copy(log, f"{copy}-wal")
    with closing(sqlite3.connect(copy, isolation_level=None)) as old, Store(new) as store:
        old.text_factory = decode
        store.put_saved(_rows(old), _batches(old))
        return len(store)


def _batches(old: sqlite3.Connection) -> Iterator[Row]:
    with suppress(sqlite3.DatabaseError):
        yield from old.execute(BATCHES)


def _rows(old: sqlite3.Connection) -> Iterator[Row]:
    """Every row that SQLite can read, some more than once.

    SQLite stops at the first page that it cannot use. So it is told that the table begins at the
    second page, at the third, and so on: damage hides the rows of its own pages and no others.
    """
    old.execute("PRAGMA synchronous=OFF")  # it is a copy
    old.execute("PRAGMA writable_schema=ON")
    (pages,) = old.execute("PRAGMA page_count").fetchone()
    for page in range(2, pages + 1):
        for order in ("", "ORDER BY key DESC"):
            with suppress(sqlite3.DatabaseError):
                old.execute("PRAGMA writable_schema=ON")
                old.execute("UPDATE sqlite_master SET rootpage = ? WHERE name = 'replies'", [page])
                old.execute("PRAGMA writable_schema=RESET")
                yield from old.execute(f"{ROWS} {order}")
