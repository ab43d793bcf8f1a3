"""What is whole in a damaged store: rows are found by their form and believed by their checksum.

SQLite stops at the first page that it cannot use, and drops all of its log (the ``-wal`` file) from
the first frame on whose checksum is wrong. Rows are read here from the bytes of the pages instead,
wherever they lie (https://www.sqlite.org/fileformat2.html), so that damage costs the rows that it
hits and no others.
"""

from __future__ import annotations

import json
import re
import sqlite3
import struct
import zlib
from collections.abc import Iterator, Mapping
from contextlib import closing, suppress
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

Row = tuple[Any, ...]
_TYPES = (str, str, str, str, str, int, int, int, float, str, float)  # of a row, without its sum
_OPTIONAL = (4, 9)
_KEY = re.compile(rb"\x81\x0d")  # in the header of a row: a text of 64 characters comes first
_JSON = json.JSONEncoder(default=repr)
_INTEGERS = {1: 1, 2: 2, 3: 3, 4: 4, 5: 6, 6: 8, 8: 0, 9: 0}  # kind of value → bytes


def checksum(*row: Any) -> int:
    """Return the CRC-32 of a row as JSON.

    Examples
    --------
    >>> checksum("ab12", 0.5, None) == zlib.crc32(b'["ab12", 0.5, null]')
    True
    """
    return zlib.crc32(_JSON.encode(row).encode())


class _Frame(NamedTuple):
    """A page in the log; `commits` where a transaction ends with it."""

    number: int
    commits: bool
    page: bytes


def dropped(path: Path) -> Iterator[Row]:
    """Yield the rows of the log that SQLite has dropped because of a wrong checksum before them.

    To be called inside a transaction that may write: nobody else changes the log then. One commit
    behind the end is what a killed process was writing; several are damage.
    """
    frames = _log(path)
    index = Path(f"{path}-shm")
    if not frames or not index.exists():
        return
    (accepted,) = struct.unpack_from("=I", index.read_bytes()[:20], 16)
    if sum(frame.commits for frame in frames[accepted:]) > 1:
        yield from _rows(path, frames, accepted)


def mend(path: Path) -> str:
    """Check a store; if it is damaged, put what is whole into a new one and keep the old.

    Returns
    -------
    str
        What was found and done.

    Raises
    ------
    StoreError
        The store is damaged and in use, or the file has no row of a store.
    """
    from rubricnb.judging.store import DamagedStore, Store, StoreError, in_use

    try:
        with Store(path) as store:
            return f"{store.check():,} answers in {path}, each as it was written"
    except DamagedStore as damage:
        why = str(damage)
    if in_use(path):
        raise StoreError(f"{path} is damaged and in use: end the runs that use it first")
    new = Path(f"{path}-saved")
    with Store(new) as store:
        store.put_saved(_rows(path, _log(path), 0))
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
        f"{why}\nsaved: {saved:,} answers, now in {path}; others will be asked again. The damaged "
        f"file is kept: {path}-damaged-{number}"
    )


def _batches(path: Path) -> list[tuple[str, Path]]:
    """Which batch files ask what, as far as SQLite can read it."""
    with suppress(sqlite3.Error), closing(sqlite3.connect(path)) as old:
        found = old.execute("SELECT key, substr(owner, 12) FROM leases WHERE owner LIKE 'batch %'")
        return [(key, Path(file)) for key, file in found]
    return []


def _log(path: Path) -> list[_Frame]:
    """Return the frames of the log's present generation, whatever their checksums."""
    log = Path(f"{path}-wal")
    content = log.read_bytes() if log.exists() else b""
    if len(content) <= 32:
        return []
    size = int.from_bytes(content[8:12]) if _header_holds(content) else _page_size(path)
    salts = content[16:24] if _header_holds(content) else content[40:48]
    found = []
    for at in range(32, len(content) - size - 23, size + 24):
        if content[at + 8 : at + 16] == salts:
            number, commits = struct.unpack_from(">II", content, at)
            found.append(_Frame(number, commits > 0, content[at + 24 : at + 24 + size]))
    return found


def _header_holds(content: bytes) -> bool:
    """Whether the checksum of the log's header is right."""
    order = ">" if content[3] & 1 else "<"
    words = struct.unpack_from(f"{order}6I", content)
    one = two = 0
    for first, second in zip(words[::2], words[1::2], strict=True):
        one = (one + first + two) & 0xFFFFFFFF
        two = (two + second + one) & 0xFFFFFFFF
    return struct.unpack_from(">II", content, 24) == (one, two)


def _page_size(path: Path) -> int:
    with path.open("rb") as file:
        size = int.from_bytes(file.read(18)[16:18])
    size = 65536 if size == 1 else size
    return size if size >= 512 and size & (size - 1) == 0 else 4096


def _rows(path: Path, frames: list[_Frame], begin: int) -> Iterator[Row]:
    """Rows of the frames from `begin` on, commit by commit; from the start, the file's before."""
    pages = _Pages(path)
    if begin == 0:
        for number in range(1, len(pages) + 1):
            yield from _rows_of(pages[number], pages)
    new: list[_Frame] = []
    for at, frame in enumerate(frames):
        pages.newer[frame.number] = frame.page
        if at >= begin:
            new.append(frame)
        if frame.commits or at == len(frames) - 1:
            for known in new:
                yield from _rows_of(known.page, pages)
            new = []


class _Pages(Mapping[int, bytes]):
    """Pages by number: those of the file, and in place of them those of the log so far."""

    def __init__(self, path: Path) -> None:
        self.path, self.size = path, _page_size(path)
        self.newer: dict[int, bytes] = {}

    def __getitem__(self, number: int) -> bytes:
        if number in self.newer:
            return self.newer[number]
        with self.path.open("rb") as file:
            file.seek(max(0, number - 1) * self.size)  # there is no page 0: any other is as wrong
            return file.read(self.size)

    def __len__(self) -> int:
        return self.path.stat().st_size // self.size

    def __iter__(self) -> Iterator[int]:
        return iter(range(1, len(self) + 1))


def _rows_of(page: bytes, pages: _Pages) -> Iterator[Row]:
    for match in _KEY.finditer(page):
        try:
            row = _row(page, match.start() - 1, pages)
        except (IndexError, ValueError, struct.error):
            continue  # something else, or cut
        if row is not None:
            yield row


def _row(page: bytes, start: int, pages: _Pages) -> Row | None:
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


def _payload(page: bytes, start: int, size: int, pages: _Pages) -> bytes:
    """Return all bytes of a row, those on further pages too."""
    usable = pages.size
    most, least = (usable - 12) * 64 // 255 - 23, (usable - 12) * 32 // 255 - 23
    if size <= most:
        return page[start : start + size]
    local = least + (size - least) % (usable - 4)
    local = local if local <= most else least
    parts, left = [page[start : start + local]], size - local
    following = int.from_bytes(page[start + local : start + local + 4])
    while left > 0:
        more = pages[following]
        following = int.from_bytes(more[:4])
        parts.append(more[4 : 4 + left])
        left -= len(parts[-1])
        if not parts[-1]:
            raise ValueError("no such page")
    return b"".join(parts)


def _value(kind: int, content: bytes) -> Any:
    if kind == 0:
        return None
    if kind in _INTEGERS:
        return kind - 8 if kind in (8, 9) else int.from_bytes(content, signed=True)
    if kind == 7:
        return struct.unpack(">d", content)[0]
    return content.decode("utf-8")  # its errors are ValueErrors
