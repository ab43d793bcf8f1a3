"""Texts of strangers on a terminal: nothing acts, and a closed pipe ends no work."""

from __future__ import annotations

import io
import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from typing import TextIO

_ACTS = re.compile(
    r"[\0-\x08\x0b-\x1f\x7f-\x9f"  # C0 but tab and line feed, delete, C1
    # change the direction of what follows
    r"\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"
    r"\u2028\u2029\ud800-\udfff]"  # other ends of a line; halves of a character
)


class Told(Exception):
    """A problem for which no code is at fault: a notebook shows its message alone."""

    def _render_traceback_(self) -> list[str]:
        return [f"{type(self).__name__}: {self}", *getattr(self, "__notes__", ())]


def shown(text: str) -> str:
    r"""Return a text with its control characters written out.

    A terminal obeys C0 and C1 (clipboard, title, cursor: CWE-150), and bidirectional
    marks show a text in another order than it has. Tabs and line feeds stay.

    Examples
    --------
    >>> print(shown("\x1b]0;owned\x07 \x9b2J \u202egpj.exe"))
    \x1b]0;owned\x07 \u009b2J \u202egpj.exe
    """
    return _ACTS.sub(_written_out, text)


def one_line(text: str) -> str:
    r"""Return a text as `shown`, on one line.

    Examples
    --------
    >>> one_line("<html>\r\n <title>Log in</title>")
    '<html> <title>Log in</title>'
    """
    return shown(" ".join(text.split()))


def _written_out(match: re.Match[str]) -> str:
    number = ord(match[0])
    return f"\\x{number:02x}" if number < 0x20 else f"\\u{number:04x}"  # valid in JSON


class Shown(io.TextIOBase):
    """A text stream on which everything is `shown`.

    Once the reader of a pipe has gone (``| head``), or where there is no stream
    (``>&-``), what is written goes nowhere, and the work goes on: its results go into
    files.

    Attributes
    ----------
    stream
        The stream beneath, for a bar that moves the cursor by itself.
    """

    def __init__(self, stream: TextIO | None) -> None:
        self.stream = stream or os.fdopen(os.open(os.devnull, os.O_WRONLY), "w")

    @property
    def encoding(self) -> str:  # type: ignore[override]
        """That of the stream."""
        return self.stream.encoding

    def writable(self) -> bool:
        """Return True."""
        return True

    def isatty(self) -> bool:
        """Say whether the stream is a terminal."""
        return self.stream.isatty()

    def fileno(self) -> int:
        """Return the descriptor of the stream."""
        return self.stream.fileno()

    def write(self, text: str) -> int:
        """Write a text, `shown`."""
        try:
            self.stream.write(shown(text))
        except OSError:
            self._leave()
        return len(text)

    def flush(self) -> None:
        """Flush the stream."""
        try:
            self.stream.flush()
        except OSError:
            self._leave()

    def _leave(self) -> None:
        """Let the descriptor lead nowhere: Python would fail to flush at its end."""
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, self.stream.fileno())
        os.close(nowhere)


@contextmanager
def showing() -> Iterator[None]:
    """Let everything that is printed be `shown`, on both standard streams."""
    with redirect_stdout(_once(sys.stdout)), redirect_stderr(_once(sys.stderr)):
        yield


def _once(stream: TextIO | None) -> TextIO:
    return stream if isinstance(stream, Shown) else Shown(stream)  # type: ignore[return-value]
