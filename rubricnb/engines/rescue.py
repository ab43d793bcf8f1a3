"""Repair of a damaged store: intact rows are copied into a new file."""

from __future__ import annotations

import glob
import os
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing, suppress
from itertools import count, pairwise
from pathlib import Path
from tempfile import TemporaryDirectory

from rubricnb.core.store import (
    BATCHES,
    ROWS,
    DamagedStore,
    Row,
    Store,
    StoreError,
    decode,
    lock,
    open_file,
    rows_in,
)

_LOGS = ("-wal", "-shm")  # SQLite's, beside a store
# keys are hexadecimal
_PARTS = ["", *(f"{number:03x}" for number in range(1, 4096)), "g"]


def mend(path: Path) -> str:
    """Check a store; replace a damaged one by a new file with its intact answers.

    Returns
    -------
    str
        What was found and done.

    Raises
    ------
    StoreError
        The file is no store, it is damaged and in use, or none of its answers can be
        read.
    """
    path = path.resolve()
    kept = sorted(path.parent.glob(f"{glob.escape(path.name)}-damaged-*"))
    if not path.exists():
        if kept:
            raise StoreError(
                f"there is no store at {path}, but {kept[0].name} is beside it, with "
                f"answers that were paid for: move it back to {path.name} and run this "
                "again"
            )
        return f"there is no store yet: {path}"
    _undo_stopped(path, kept)
    try:
        with Store(path) as store:
            return f"{store.check():,} answers in {path}, each as it was written"
    except DamagedStore as damage:
        why = str(damage)
    alone = lock(open_file(path), "BEGIN EXCLUSIVE")
    if alone is None:
        raise StoreError(
            f"{path} is damaged and in use: stop the runs that use it first"
        )
    with closing(alone), TemporaryDirectory(dir=path.parent) as folder:
        new = Path(folder) / "new"
        if not (saved := _save(path, new)):
            raise StoreError(
                f"no answer in {path} can be read: it is not a rubricnb store, or a "
                "page that all others depend on is damaged. Keep it and set "
                "RUBRICNB_STORE to a new file"
            )
        number = next(n for n in count(1) if not Path(f"{path}-damaged-{n}").exists())
        # The first name last given up, so that whenever this ends, one store is there.
        for ending in ("", *_LOGS):
            file, name = f"{path}{ending}", f"{path}-damaged-{number}{ending}"
            if Path(file).exists():
                try:
                    os.link(file, name)
                except OSError:  # where the disk has no hard links
                    shutil.copy2(file, name)
        for ending in _LOGS:
            Path(f"{path}{ending}").unlink(missing_ok=True)
        new.replace(path)
    return (
        f"{why}\nsaved: {saved:,} answers, now in {path}; others will be asked again. "
        f"The file as it was is kept: {path}-damaged-{number}"
    )


def _undo_stopped(path: Path, kept: list[Path]) -> None:
    """Undo a repair that was killed: the damaged store has two names then."""
    kept = [n for n in kept if not n.name.endswith(_LOGS) and n.samefile(path)]
    if not kept:
        return
    alone = lock(open_file(path), "BEGIN EXCLUSIVE")
    if alone is None:
        raise StoreError(f"{path} is being repaired by another process: wait for it")
    with closing(alone):
        for name in kept:
            for ending in _LOGS:
                log, saved = Path(f"{path}{ending}"), Path(f"{name}{ending}")
                if saved.exists() and not log.exists():
                    saved.rename(log)
                saved.unlink(missing_ok=True)
            name.unlink()


def _save(path: Path, new: Path) -> int:
    """Copy intact answers into a new store; return their number."""
    with (
        closing(sqlite3.connect(path, isolation_level=None)) as old,
        Store(new) as store,
    ):
        old.text_factory = decode
        batches: list[Row] = []
        with suppress(sqlite3.DatabaseError):
            batches = old.execute(BATCHES).fetchall()
        store.put_saved(_rows(old), batches)
        return len(store)


def _rows(old: sqlite3.Connection) -> Iterator[Row]:
    """Every row; behind an unreadable page, those of the next part of the keys."""
    query = ROWS
    with suppress(sqlite3.DatabaseError):
        query = rows_in(old)
        yield from old.execute(query)
        return
    for first, last in pairwise(_PARTS):
        for order in ("ASC", "DESC"):
            with suppress(sqlite3.DatabaseError):
                part = f"{query} WHERE key >= ? AND key < ? ORDER BY key {order}"
                yield from old.execute(part, (first, last))
