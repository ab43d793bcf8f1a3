"""Run a command as a stranger's machine would: a clone with nothing beside it.

No dataset, an empty home, and no other machine: where Linux allows a network of its
own, there is none; elsewhere every address of the internet is behind a proxy that
refuses.
"""

from __future__ import annotations

import fcntl
import os
import socket
import struct
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

TESTS = (
    *(
        "tests/test_docs.py",
        "tests/sets",
        "tests/files",
        "tests/engines/test_decision.py",
    ),
    *("tests/studies/test_recorded_tables.py", "tests/corrections/test_raters.py"),
)
"""Where tests read datasets, and the documents' commands."""
CHAPTER = ("tests/notebooks/test_notebooks.py", "-k", "05_position_bias")
_NOWHERE = "http://127.0.0.1:9"  # the port of the discard service: nothing listens
_OWN_NETWORK = ("unshare", "--user", "--map-root-user", "--net")
_UP = 0x1  # IFF_UP of a network interface
_GET, _SET = 0x8913, 0x8914  # SIOCGIFFLAGS, SIOCSIFFLAGS


def run_alone(command: Sequence[str], root: Path) -> int:
    """Run a command in a clone of a repository; returns its exit status.

    Parameters
    ----------
    command
        Program and arguments; the clone's ``.venv`` is the repository's own.
    root
        The repository; what is not committed is left out.
    """
    with TemporaryDirectory(prefix="alone-") as folder:
        clone, home = Path(folder, "clone"), Path(folder, "home")
        home.mkdir()
        subprocess.run(["git", "clone", "-q", str(root), str(clone)], check=True)
        (clone / ".venv").symlink_to((root / ".venv").resolve())
        kept = ("PATH", "LANG", "CI")
        environment = {name: os.environ[name] for name in kept if name in os.environ}
        environment |= {"HOME": str(home), "NO_PROXY": "127.0.0.1,localhost"}
        for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
            environment |= {name: _NOWHERE, name.lower(): _NOWHERE}
        inside = [sys.executable, __file__, *command]
        apart = [*_OWN_NETWORK, *inside] if _has_own_network() else [*command]
        return subprocess.run(apart, cwd=clone, env=environment).returncode


def tests() -> list[str]:
    """Return the command that runs `TESTS` and one chapter."""
    pytest = f"{sys.executable} -m pytest -q --no-header -p no:cacheprovider"
    first = f"{pytest} -n 2 -m 'not slow' {' '.join(TESTS)}"
    return ["sh", "-c", f"{first} && {pytest} {' '.join(CHAPTER)}"]


def _has_own_network() -> bool:
    try:
        return not subprocess.run(
            [*_OWN_NETWORK, "true"], capture_output=True
        ).returncode
    except OSError:
        return False


def _start_loopback() -> None:
    """Let a new network reach itself: servers of tests listen on 127.0.0.1."""
    with socket.socket() as any_socket:
        name = struct.pack("16sh", b"lo", 0)
        _, flags = struct.unpack("16sh", fcntl.ioctl(any_socket, _GET, name))
        fcntl.ioctl(any_socket, _SET, struct.pack("16sh", b"lo", flags | _UP))


if __name__ == "__main__":
    _start_loopback()
    os.execvp(sys.argv[1], sys.argv[1:])
