"""Progress that neither floods a log nor leaves a mess in a page.

tqdm's standard error would fail the book's build and its notebook widgets load scripts from the
network, so: in a terminal a bar on standard output; in a notebook one display that is updated and
ends as one plain line; elsewhere one line for every tenth,
but none within two seconds of another.
"""

from __future__ import annotations

import sys
import time
from typing import Any

_QUIET = 2.0  # seconds between two lines, so that short work prints one


class Progress:
    """Counts what is done; use as a context manager."""

    def __init__(self, total: int, what: str) -> None:
        self.total, self.what = total, what
        self.done = 0
        self._start = time.monotonic()
        self._note = ""
        self._shown = -1.0
        self._bar: Any = None
        self._handle: Any = None

    def __enter__(self) -> Progress:
        if _in_notebook():
            from IPython.display import display  # type: ignore[import-not-found, unused-ignore]

            self._handle = display(_Line(self._line()), display_id=True)  # type: ignore[no-untyped-call, unused-ignore]
        elif sys.stdout.isatty():
            from tqdm import tqdm

            self._bar = tqdm(total=self.total, desc=self.what, file=sys.stdout, smoothing=0.1)
        return self

    def step(self, note: str = "") -> None:
        """Count one step; `note` replaces what stands behind the count."""
        self.done += 1
        self._note = note or self._note
        now = time.monotonic()
        if self._bar is not None:
            self._bar.set_postfix_str(self._note, refresh=False)
            self._bar.update()
        elif self._handle is not None:
            if now - self._shown >= 1:
                self._handle.update(_Line(self._line()))
                self._shown = now
        elif (
            self.done * 10 // self.total > (self.done - 1) * 10 // self.total
            and now - max(self._shown, self._start) >= _QUIET
        ):
            self._shown = now
            print(f"{self.what}: {self.done:,} of {self.total:,}", flush=True)

    def __exit__(self, *exception: object) -> None:
        if self._bar is not None:
            self._bar.close()
        line = self._line(time.monotonic() - self._start)
        if self._handle is not None:
            self._handle.update(_Line(line))
        else:
            print(line, flush=True)

    def _line(self, seconds: float | None = None) -> str:
        parts = [f"{self.what}: {self.done:,} of {self.total:,}"]
        if seconds is None and self.done:
            left = (time.monotonic() - self._start) / self.done * (self.total - self.done)
            parts.append(f", about {_duration(left)} left")
        elif seconds is not None:
            parts.append(f" in {_duration(seconds)}")
        return "".join(parts) + (f"; {self._note}" if self._note else "")


class _Line:
    """One line of text as a notebook's output."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __repr__(self) -> str:
        return self.text


def _in_notebook() -> bool:
    if "IPython" not in sys.modules:
        return False
    from IPython import get_ipython

    shell = get_ipython()  # type: ignore[no-untyped-call, unused-ignore]
    return shell is not None and hasattr(shell, "kernel")


def _duration(seconds: float) -> str:
    if seconds < 100:
        return f"{seconds:.0f} s"
    if seconds < 6000:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"
