"""What git knows about the clone."""

from __future__ import annotations

import subprocess
from pathlib import Path


def git(root: Path, *arguments: str) -> str:
    """Return what a git command prints, or nothing where it fails."""
    try:
        done = subprocess.run(
            ["git", "-c", "core.quotePath=off", *arguments],
            cwd=root,
            capture_output=True,
            text=True,
            check=False,
        )
    except FileNotFoundError:
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""
