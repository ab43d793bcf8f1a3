"""The numbers that a chapter prints about the book's own judges, whoever executes it.

``{recorded}`name` `` in a chapter is what ``{glue:text}`name` `` shows if every
parameter keeps its default. ``book/recorded.csv`` holds these texts; `record` writes
them, and the book is not built where they differ from what its chapters found.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from rubricnb.book.glue import glued_text, is_unknown
from rubricnb.book.notebooks import (
    RECORDED_FILE,
    RECORDED_ROLE,
    execute,
    find_notebook,
    find_root,
    glued,
    recorded_numbers,
    with_recorded,
)

_NUMBER = re.compile(r"\d+(?:,\d{3})*(?:\.\d+)?|\.\d+")


def names(stem: str, root: Path) -> list[str]:
    """Return the recorded numbers that a chapter's text names, once each."""
    return list(
        dict.fromkeys(
            RECORDED_ROLE.findall(find_notebook(stem, root).read_text("utf-8"))
        )
    )


def found(stem: str, notebook: Any, root: Path) -> dict[str, str]:
    """Return what an executed notebook glued under the names of its recorded numbers.

    Raises
    ------
    ValueError
        The chapter names a number that it does not glue, or one that is not known.
    """
    values = glued(notebook)
    texts = {name: glued_text(name, values) for name in names(stem, root)}
    for name, text in texts.items():
        if text is None or is_unknown(text):
            raise ValueError(
                f"{stem}: {{recorded}}`{name}` is "
                f"{'not glued' if text is None else repr(text)}: glue a known value, "
                f"with say({name.partition(':')[0].replace('-', '_')}=…)"
            )
    return {name: str(text) for name, text in texts.items()}


def differences(stem: str, notebook: Any, root: Path) -> list[str]:
    """Say where a run with default parameters and recorded numbers differ."""
    kept = recorded_numbers(root).get(stem, {})
    now = found(stem, notebook, root)
    return [
        f"{stem}: {name} is recorded as {kept.get(name, 'nothing')!r}, and is {text!r} "
        "now"
        for name, text in now.items()
        if not alike(kept.get(name, ""), text)
    ] + [
        f"{stem}: {name} is recorded, but not named" for name in kept if name not in now
    ]


def alike(kept: str, now: str) -> bool:
    """Whether two texts are the same but for the last digit of their numbers.

    Processors differ in the last bits of a sum, and so in how it is rounded.

    Examples
    --------
    >>> alike("39 % [31, 47]", "39 % [31, 48]")
    True
    >>> alike("0.39", "0.41"), alike("3 of 5", "4 of 5")
    (False, True)
    >>> alike("found", "inconclusive")
    False
    """
    if _NUMBER.sub("0", kept) != _NUMBER.sub("0", now):
        return False
    pairs = zip(_NUMBER.findall(kept), _NUMBER.findall(now), strict=True)
    return all(_close(a.replace(",", ""), b.replace(",", "")) for a, b in pairs)


def _close(kept: str, now: str) -> bool:
    digits = max(len(x.partition(".")[2]) for x in (kept, now))
    return abs(float(kept) - float(now)) <= 1.01 * 10**-digits


def record(
    stems: Sequence[str] = (),
    root: Path | None = None,
    run: Callable[[str], Any] | None = None,
) -> Iterator[str]:
    """Execute chapters with their defaults, and write what their texts print of it.

    Parameters
    ----------
    stems
        Chapters; default: all that name a recorded number.
    root
        The clone; default: as `find_root`.
    run
        Stem → executed notebook; default: `rubricnb.book.notebooks`.

    Yields
    ------
    str
        For every number that changed, the sentences that print it, before and after.
        Read them: a word beside the number may have to change too.
    """
    root = root or find_root()
    listed = [find_notebook(stem, root).stem for stem in stems] or [
        path.stem for path in sorted((root / "notebooks").glob("*.md"))
    ]
    for stem in listed:
        wanted = names(stem, root)
        kept = recorded_numbers(root)
        before = kept.get(stem, {})
        if not wanted and not before:
            continue
        notebook = run(stem) if run else execute(stem, root=root)
        now = found(stem, notebook, root) if wanted else {}
        _write({**kept, stem: now}, root)
        yield from _changed(find_notebook(stem, root), before, now)


def _write(numbers: Mapping[str, Mapping[str, str]], root: Path) -> None:
    text = io.StringIO()
    table = csv.writer(text, lineterminator="\n")
    table.writerow(["chapter", "name", "text"])
    table.writerows(
        (stem, name, numbers[stem][name])
        for stem in sorted(numbers)
        for name in numbers[stem]
    )
    (root / RECORDED_FILE).write_text(text.getvalue(), "utf-8")


def _changed(
    path: Path, before: Mapping[str, str], now: Mapping[str, str]
) -> Iterator[str]:
    changed = {name for name in now if name in before and before[name] != now[name]}
    for paragraph in path.read_text("utf-8").split("\n\n"):
        if changed & {*RECORDED_ROLE.findall(paragraph)}:
            yield (
                f"{path.stem}\n- {with_recorded(paragraph, before)}\n"
                f"+ {with_recorded(paragraph, now)}"
            )
