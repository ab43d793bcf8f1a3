"""A home that cannot be written: each command names the variable that helps."""

import os
import subprocess
import sys

import pytest

AUDIT = "audit --judge simulated:unbiased --data minibench --n-items 10 --force"


@pytest.mark.parametrize(
    ("command", "way_out"),
    [
        ("data hanna", "set RUBRICNB_CACHE to a folder that can be written"),
        ("weights gemma-3-270m", "set RUBRICNB_CACHE to a folder that can be written"),
        ("check", "set RUBRICNB_STORE to a different file"),
        (AUDIT, "set RUBRICNB_STORE to a different file"),
    ],
)
def test_a_home_that_cannot_be_written_has_a_way_out(command, way_out, tmp_path):
    own = ("RUBRICNB_", "XDG_")
    kept = {k: v for k, v in os.environ.items() if not k.startswith(own)}
    done = subprocess.run(
        [sys.executable, "-m", "rubricnb", *command.split()],
        env=kept | {"HOME": os.devnull, "PYTHONPATH": os.getcwd()},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    said = " ".join((done.stdout + done.stderr).split())
    assert way_out in said
    assert "Traceback" not in said
