"""The repository in the layout of a NeuroLibre preprint, into ``_build/neurolibre``.

https://docs.neurolibre.org, "Structure your NRP repository": ``content/`` has the book
with its ``_toc.yml`` and ``_config.yml``, ``binder/`` the runtime, and ``paper.bib``
the bibliography, which ``content/_config.yml`` names. Notebooks are executed there.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import yaml

from rubricnb.book.notebooks import find_root
from tools.git import git

FOLDER = Path("_build", "neurolibre")
# The package and the recordings stay beside the pages, whose links lead to them.
_LEFT = (".binder/", ".ci/", ".github/", "tests/", "benchmarks/", "slides/")
_AT_ROOT = {
    "README.md": "README.md",
    "LICENSE": "LICENSE",
    "book/references.bib": "paper.bib",
}


def write_neurolibre(folder: Path | None = None) -> Path:
    """Write the tracked files in this layout; return the folder, made anew."""
    root = find_root()
    folder = folder or root / FOLDER
    shutil.rmtree(folder, ignore_errors=True)
    content, binder = folder / "content", folder / "binder"
    for name in git(root, "ls-files", "-z").split("\0"):
        if name and not name.startswith(_LEFT) and (root / name).is_file():
            copy = content / name
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(root / name, copy)
    for name, there in _AT_ROOT.items():
        shutil.copyfile(root / name, folder / there)
    config = yaml.safe_load((content / "_config.yml").read_text("utf-8"))
    config["bibtex_bibfiles"] = ["../paper.bib"]
    config["execute"]["execute_notebooks"] = "force"
    (content / "_config.yml").write_text(yaml.safe_dump(config, allow_unicode=True))
    binder.mkdir()
    runtime = yaml.safe_load((root / ".binder/environment.yml").read_text("utf-8"))
    runtime["dependencies"][-1]["pip"] = [
        "-c ../content/constraints.txt",
        "-e ../content[embedded,book]",
        "jupyterlab",
    ]
    (binder / "environment.yml").write_text(yaml.safe_dump(runtime, sort_keys=False))
    shutil.copyfile(root / ".binder/postBuild", binder / "postBuild")
    (binder / "postBuild").chmod(0o755)
    return folder
