"""Files that a command writes: no input among them, and tried before the work."""

from __future__ import annotations

import os
import unicodedata
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path


def check_outputs(
    outputs: Iterable[str | Path], inputs: Iterable[str | Path | None], how: str
) -> None:
    """Refuse files that cannot be written or that the same command reads.

    Two names are one file if links lead them to one place, or if a disk that ignores
    case or accents' forms might take them for one. So ``Mine.json`` is not written
    beside ``mine.json``.

    Parameters
    ----------
    outputs
        All files that will be written, those beside the named one included.
    inputs
        What is read; None and what is no file (a dataset's name) are passed over.
    how
        Ends the error: how to choose another file.

    Raises
    ------
    ValueError
        The message names the file, and the input that would be lost.

    Examples
    --------
    >>> import tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> mine = Path(folder.name, "scores.json")
    >>> _ = mine.write_text("[]")
    >>> check_outputs([mine], [mine], "choose another")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ValueError: .../scores.json is read by this command and would be overwritten; \
choose another
    >>> folder.cleanup()
    """
    read = [
        Path(name).expanduser() for name in inputs if name is not None and str(name)
    ]
    for output in map(Path, outputs):
        for given in read:
            # no file if its name is too long, or has a NUL
            if os.path.exists(given) and (
                _folded(output) == _folded(given)
                or (output.exists() and output.samefile(given))  # hard links too
            ):
                other = (
                    "" if given.absolute() == output.absolute() else f" (it is {given})"
                )
                raise ValueError(
                    f"{output} is read by this command and would be "
                    f"overwritten{other}; {how}"
                )
        _check_writable(output, how)


def replace_texts(texts: dict[Path, str]) -> None:
    """Write text files that belong together, in place of older ones.

    All are written beside first, down to the disk. So a full disk, or a kill, leaves
    the older files whole.

    Parameters
    ----------
    texts
        What goes into each file, in UTF-8.

    Raises
    ------
    OSError
        A file cannot be written; the error names it, and no file has changed.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     page = Path(folder, "audit.html")
    ...     replace_texts({page: "<p>4</p>"})
    ...     page.read_text(), len(list(Path(folder).iterdir()))
    ('<p>4</p>', 1)
    """
    written: dict[Path, Path] = {}
    try:
        for path, text in texts.items():
            # a link keeps leading to its file
            path = path.resolve()
            written[path] = path.with_name(f".{path.name}.{os.getpid()}.partial")
            with written[path].open("w", encoding="utf-8") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            with suppress(FileNotFoundError):
                written[path].chmod(path.stat().st_mode & 0o7777)
        for path, partial in written.items():
            partial.replace(path)
    except OSError as error:
        raise OSError(
            error.errno,
            f"cannot be written ({error.strerror}); the files from before are whole",
            str(path),
        ) from error
    finally:
        for partial in written.values():
            partial.unlink(missing_ok=True)


def _folded(path: Path) -> str:
    return unicodedata.normalize("NFC", str(path.resolve())).casefold()


def _check_writable(file: Path, how: str) -> None:
    """Try to write a file, and leave it as it was."""
    # a pipe would wait for a reader
    if file.exists() and not (file.is_file() or file.is_dir()):
        raise ValueError(f"{file} cannot be written: it is no ordinary file; {how}")
    is_new = not file.exists()
    try:
        file.open("a").close()
    except OSError as error:
        raise ValueError(
            f"{file} cannot be written: {error.strerror}; {how}"
        ) from error
    if is_new:
        file.unlink(missing_ok=True)
