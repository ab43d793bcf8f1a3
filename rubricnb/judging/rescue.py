"""What is whole in a damaged store: rows are found by their form and believed by their checksum.

SQLite stops at the first page that it cannot use. Rows are read here from the bytes of the pages
instead, wherever they lie (https://www.sqlite.org/fileformat2.html), so that damage costs the rows
that it hits and no others.
"""

from __future__ import annotations

import re
import sqlite3
import struct
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from itertools import count
from mmap import ACCESS_READ, mmap
from pathlib import Path
from typing import Any

from rubricnb.judging.store import DamagedStore, Row, Store, StoreError, checksum, in_use

_PAGE = 4096  # bytes; SQLite's own choice, which a store leaves to it
_TYPES = (str, str, str, str, str, int, int, int, float, str, float)  # of a row, without its sum
_OPTIONAL = (4, 9)
_KEY = re.compile(rb"\x81\x0d")  # in the header of a row: a text of 64 characters comes first
_INTEGERS = {1: 1, 2: 2, 3: 3, 4: 4, 5: 6, 6: 8, 8: 0, 9: 0}  # kind of value → bytes


def mend(path: Path) -> str:
    """Check a store; from a damaged one, or one of the first format, put what is whole into a new.

    Returns
    -------
    str
        What was found and done.

    Raises
    ------
    StoreError
        The store is damaged and in use, or the file has no row of a store.
    """
    path = path.resolve()
    try:
        with Store(path) as store:
            return f"{store.check():,} answers in {path}, each as it was written"
    except DamagedStore as damage:
        why = str(damage)
    if in_use(path):
        raise StoreError(f"{path} is damaged and in use: end the runs that use it first")
    new = Path(f"{path}-saved")
    with Store(new) as store:
        store.put_saved(_rows(path))
        for key, file in _batches(path):
            store.hand_over(key, file)
        saved = len(store)
    if not saved:
        new.unlink()
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


def _batches(path: Path) -> list[tuple[str, Path]]:
    """Which batch files ask what, as far as SQLite can read it."""
    with suppress(sqlite3.Error), closing(sqlite3.connect(path)) as old:
        found = old.execute("SELECT key, substr(owner, 12) FROM leases WHERE owner LIKE 'batch %'")
        return [(key, Path(file)) for key, file in found]
    return []


def _rows(path: Path) -> Iterator[Row]:
    """Rows on all pages of the file and of its log; a row may be found more than once."""
    log_file = Path(f"{path}-wal")
    log = log_file.read_bytes() if log_file.exists() else b""
    frames = [
        (int.from_bytes(log[at : at + 4]), log[at + 24 : at + 24 + _PAGE])
        for at in range(32, len(log) - _PAGE - 23, _PAGE + 24)
    ]
    newer = dict(frames)
    with path.open("rb") as file, mmap(file.fileno(), 0, access=ACCESS_READ) as content:

        def page(number: int) -> bytes:
            return newer.get(number) or content[(number - 1) * _PAGE : number * _PAGE]

        for start in range(0, len(content), _PAGE):
            yield from _rows_of(content[start : start + _PAGE], page)
        for _, logged in frames:
            yield from _rows_of(logged, page)


def _rows_of(page: bytes, pages: Callable[[int], bytes]) -> Iterator[Row]:
    for match in _KEY.finditer(page):
        with suppress(IndexError, ValueError, struct.error):  # something else, or cut
            if row := _row(page, match.start() - 1, pages):
                yield row


def _row(page: bytes, start: int, pages: Callable[[int], bytes]) -> Row | None:
    """Read a row whose header begins at `start`; None if it is none, or not what was written."""
    header, at = _number(page, start)
    kinds = []
    while at < start + header:
        kind, at = _number(page, at)
        kinds.append(kind)
    if len(kinds) not in (len(_TYPES), len(_TYPES) + 1):
        return None
    sizes = [_INTEGERS.get(k, 8 if k == 7 else max(0, (k - 12) // 2)) for k in kinds]
    body = _payload(page, start, header + sum(sizes), pages)[header:]
    values: list[Any] = []
    at = 0
    for kind, size in zip(kinds, sizes, strict=True):
        values.append(_value(kind, body[at : at + size]))
        at += size
    for place in (8, 10):  # a whole number is kept as such
        values[place] = float(values[place])
    *row, checked = values if len(values) > len(_TYPES) else [*values, None]
    right = all(
        isinstance(value, kind) or (value is None and place in _OPTIONAL)
        for place, (value, kind) in enumerate(zip(row, _TYPES, strict=True))
    )
    # A row of the first format has no checksum; that it can be read is all that is known of it.
    return tuple(row) if right and checked in (None, checksum(*row)) else None


def _number(page: bytes, at: int) -> tuple[int, int]:
    """Read a number of variable length; return it and where it ends."""
    value = 0
    for place in range(at, at + 8):
        value = value << 7 | page[place] & 0x7F
        if page[place] < 0x80:
            return value, place + 1
    raise ValueError("no such number in a row of ours")


def _payload(page: bytes, start: int, size: int, pages: Callable[[int], bytes]) -> bytes:
    """Return all bytes of a row, those on further pages too."""
    most, least = (_PAGE - 12) * 64 // 255 - 23, (_PAGE - 12) * 32 // 255 - 23
    if size <= most:
        return page[start : start + size]
    local = least + (size - least) % (_PAGE - 4)
    local = local if local <= most else least
    content, following = page[start : start + local], page[start + local : start + local + 4]
    while len(content) < size:
        more = pages(int.from_bytes(following))
        if len(more) < _PAGE:
            raise ValueError("no such page")
        content, following = content + more[4:], more[:4]
    return content[:size]


def _value(kind: int, content: bytes) -> Any:
    if kind == 0:
        return None
    if kind in _INTEGERS:
        return kind - 8 if kind in (8, 9) else int.from_bytes(content, signed=True)
    if kind == 7:
        return struct.unpack(">d", content)[0]
    return content.decode("utf-8")  # its errors are ValueErrors
