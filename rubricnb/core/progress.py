"""Progress lines for logs and notebooks.

tqdm's standard error would fail the book's build and its notebook widgets load scripts
from the network, so: in a terminal a bar on standard output; in a notebook one display
that is updated; elsewhere a line for every tenth, but none within two seconds of
another. All end as one plain line.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from rubricnb.core.support.shown import Shown, one_line
from rubricnb.core.support.types import Options

_LINE = "{desc}: {n:,} of {total:,}, about {remaining} left{postfix}"


class Progress:
    """Counts what is done; use as a context manager."""

    def __init__(self, total: int, what: str) -> None:
        from tqdm import tqdm  # 0.1 s that an audit of scores need not pay

        shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
        in_notebook = hasattr(shell, "kernel")
        self._say: Callable[[str], Any] = _display(what) if in_notebook else print
        options: Options = {"file": _Lines(self._say), "bar_format": _LINE}
        if in_notebook:
            options |= {"mininterval": 1}
        elif sys.stdout and sys.stdout.isatty():  # None where it was closed
            terminal = (
                sys.stdout.stream if isinstance(sys.stdout, Shown) else sys.stdout
            )
            options = {"file": terminal, "smoothing": 0.1}  # the bar moves the cursor
        else:
            options |= {"miniters": total / 10, "mininterval": 2, "delay": 2}
        what = one_line(what)
        self._bar = tqdm(
            total=total, desc=what, leave=False, maxinterval=float("inf"), **options
        )
        self._note = ""

    def __enter__(self) -> Progress:
        return self

    def step(self, note: str = "") -> None:
        """Count one step; `note` replaces the text after the count."""
        self._note = one_line(note) or self._note
        self._bar.set_postfix_str(self._note, refresh=False)
        self._bar.update()

    def __exit__(self, *exception: object) -> None:
        self._bar.close()
        took = self._bar.format_interval(self._bar.format_dict["elapsed"])
        note = f"; {self._note}" if self._note else ""
        self._say(
            f"{self._bar.desc}: {self._bar.n:,} of {self._bar.total:,} in {took}{note}"
        )


class _Lines:
    """What tqdm writes, as lines."""

    def __init__(self, say: Callable[[str], Any]) -> None:
        self.say = say

    def write(self, text: str) -> None:
        if line := text.strip():
            self.say(line)

    def flush(self) -> None:
        if sys.stdout:
            sys.stdout.flush()


def _display(what: str) -> Callable[[str], Any]:
    """Show a line in a notebook; returns what replaces it by another."""
    from IPython.display import display  # type: ignore[import-not-found, unused-ignore]

    shown = display({"text/plain": what}, raw=True, display_id=True)
    return lambda line: shown.update({"text/plain": line}, raw=True)
