"""Fetch a dataset's file from its source, at a pinned commit, by its SHA-256.

The texts are never part of this package: each reader fetches them from where their
authors put them. ``RUBRICNB_MIRROR`` names a folder or a URL with the same tree
(``github/OWNER/REPOSITORY/COMMIT/PATH``) for machines without internet;
``RUBRICNB_CACHE`` moves the folder in which downloads are kept.
"""

from __future__ import annotations

import errno
import logging
import os
from concurrent.futures import ThreadPoolExecutor
from functools import cache as cached
from pathlib import Path

import pandas as pd
from platformdirs import user_cache_path

SOURCE = "https://raw.githubusercontent.com/"
_MIRROR_HELP = (
    "set RUBRICNB_MIRROR to a folder or a URL that holds the same tree "
    "(github/OWNER/REPOSITORY/COMMIT/PATH)"
)

_UNKEPT = (
    *(errno.EACCES, errno.EPERM, errno.EROFS, errno.EEXIST, errno.ENOTDIR),
    *(errno.ENOSPC, errno.EDQUOT, errno.EFBIG),
)


def pinned(folder: str, ending: str = "") -> dict[str, Path]:
    """Fetch a folder's files of ``files.csv``, eight at once: path → local file."""
    files = _files()
    files = files[files.index.str.startswith(folder) & files.index.str.endswith(ending)]
    with ThreadPoolExecutor(8) as pool:
        local = pool.map(fetch, files.index, files)
    return dict(zip(files.index.str.removeprefix(f"{folder}/"), local, strict=True))


def fetch(path: str, sha256: str | None = None) -> Path:
    """Return a local copy of a source file, downloading it where needed.

    Parameters
    ----------
    path
        Path of the file in the tree: ``github/OWNER/REPOSITORY/COMMIT/PATH``.
    sha256
        Its SHA-256; a file with another one is not used and not kept. Default: that of
        ``files.csv``.

    Returns
    -------
    Path
        In the mirror if that is a folder, else in the cache.

    Raises
    ------
    ValueError
        What came has another SHA-256.
    ConnectionError
        The source cannot be reached.
    OSError
        The cache cannot be written, or is full.
    FileNotFoundError
        The mirror is a folder and lacks the file.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from unittest.mock import patch
    >>> with (
    ...     TemporaryDirectory() as folder,
    ...     patch.dict("os.environ", RUBRICNB_MIRROR=folder),
    ... ):
    ...     file = Path(folder, "github/me/set/c0ffee/a.txt")
    ...     file.parent.mkdir(parents=True)
    ...     _ = file.write_text("hello")
    ...     sha256 = "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824"
    ...     print(fetch("github/me/set/c0ffee/a.txt", sha256).read_text())
    hello
    """
    import pooch

    sha256 = sha256 or str(_files()[path])
    mirror = os.environ.get("RUBRICNB_MIRROR", "").strip()
    if mirror and "://" not in mirror:
        file = Path(mirror).expanduser() / path
        if not file.is_file():
            raise FileNotFoundError(
                f"RUBRICNB_MIRROR={mirror} lacks the file {path}; add it there, or "
                "unset RUBRICNB_MIRROR to download it from its source"
            )
        if (got := pooch.file_hash(str(file))) != sha256:
            raise ValueError(
                f"{file} has SHA-256 {got}, expected {sha256}, so it is not used; "
                "replace it with the file of that commit"
            )
        return file
    file = cache() / path
    url = SOURCE + path.removeprefix("github/")
    if mirror:
        url = f"{mirror.rstrip('/')}/{path}"
    # pooch reports to stderr, and a line on stderr would fail the build of the book.
    pooch.get_logger().setLevel(logging.ERROR)
    downloads = pooch.create(
        path=file.parent,
        base_url="",
        registry={file.name: f"sha256:{sha256}"},
        urls={file.name: url},
        retry_if_failed=1,
    )
    try:
        downloads.fetch(file.name)
    # raised by the disk, by requests, or by pooch for a wrong hash
    except (OSError, ValueError) as error:
        refuse_unkept(error, file)
        file.unlink(missing_ok=True)
        if isinstance(error, ValueError):
            raise ValueError(
                f"{url}: {error} Expected {sha256}. The download was deleted; try "
                f"again later, or {_MIRROR_HELP}"
            ) from error
        response = getattr(error, "response", None)
        said = (
            type(error).__name__ if response is None else f"HTTP {response.status_code}"
        )
        raise ConnectionError(
            f"cannot download {url} ({said}); without internet, {_MIRROR_HELP}"
        ) from error
    return file


def cache() -> Path:
    """Return the folder of downloads: ``RUBRICNB_CACHE`` or the system's own.

    Examples
    --------
    >>> cache().is_absolute()
    True
    """
    return Path(
        os.environ.get("RUBRICNB_CACHE") or user_cache_path("rubricnb")
    ).expanduser()


def refuse_unkept(error: Exception, file: Path) -> None:
    """Raise an error that names the way out if the folder of downloads took no file."""
    if isinstance(error, OSError) and error.errno in _UNKEPT:
        raise OSError(
            f"{file} cannot be kept ({error.strerror}): set RUBRICNB_CACHE to a folder "
            "that can be written and has room"
        ) from error


@cached
def _files() -> pd.Series:
    """The SHA-256 of every file that is fetched, by its path."""
    return pd.read_csv(Path(__file__).with_name("files.csv"), index_col="path")[
        "sha256"
    ]
