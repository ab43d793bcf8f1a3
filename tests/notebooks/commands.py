"""The commands that chapters print, and how a test runs one as it stands there."""

import os
import re
import shlex
from dataclasses import dataclass
from pathlib import Path
from unittest.mock import patch

import nbformat
import papermill.cli
import warm
import yaml
from click.testing import CliRunner
from jupyter_client.provisioning import local_provisioner

from rubricnb.book import notebooks as book
from tools import lint

ROOT = book.find_root()


@dataclass(frozen=True)
class Command:
    """A command of a chapter: its words, and the file that it writes."""

    stem: str
    words: tuple[str, ...]

    @property
    def output(self):
        words = list(self.words)
        return words[words.index("--output") + 1] if "--output" in words else words[2]

    @property
    def values(self):
        """The parameters that papermill's line gives."""
        found, words = {}, list(self.words[3:])
        while words:
            flag = words.pop(0)
            if flag == "-p":
                name = words.pop(0)
                found[name] = papermill.cli._resolve_type(words.pop(0))
            else:
                assert flag == "-y", flag
                found |= yaml.safe_load(words.pop(0))
        return found

    def __str__(self):
        return f"{self.stem} {self.output}"


def printed(stem, program="papermill"):
    """The commands of a program that a chapter prints."""
    text = (ROOT / "notebooks" / f"{stem}.md").read_text("utf-8")
    lines = "\n".join(block for _, block in lint.blocks(text, "bash"))
    return [
        Command(stem, tuple(shlex.split(line)))
        for line in re.sub(r"\\\n\s*", " ", lines).splitlines()
        if line.startswith(program)
    ]


def run(command, folder, **few):
    """Run papermill's line with further parameters after its own;
    returns the notebook.
    """
    written = Path(folder) / command.output
    words = [command.words[1], str(written), *command.words[3:]]
    for name, value in few.items():  # the last value of a name counts
        words += ["-p", name, str(value)]
    # figures whose text can be read
    profile = Path(folder) / ".ipython" / "profile_default"
    profile.mkdir(parents=True, exist_ok=True)
    (profile / "ipython_kernel_config.py").write_text(
        "c.InlineBackend.figure_formats = {'svg'}\nc.HistoryManager.enabled = False\n"
    )
    with (
        patch.dict(os.environ, IPYTHONDIR=str(profile.parent)),
        patch.object(local_provisioner, "launch_kernel", warm.launch),
    ):
        done = CliRunner().invoke(
            papermill.cli.papermill, [*words, "--cwd", str(folder)]
        )
    assert done.exit_code == 0, f"{done.output[-2000:]}{done.exception}"
    return nbformat.read(written, 4)
