"""Machines unlike ours: path, permissions, home, language, clock, python -O."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
AUDIT = ("rubricnb", "audit", "--judge", "simulated:first-biased", "--n-items", "20")


def audited(folder, *flags, **environment):
    """Audit a simulated judge in a folder of its own; return the numbers."""
    subprocess.run(
        [sys.executable, *flags, "-m", *AUDIT, "--output", "page.html"],
        cwd=folder,
        env={"PATH": os.defpath, "PYTHONPATH": str(ROOT)} | environment,
        umask=0o077,
        check=True,
        capture_output=True,
    )
    return json.loads((folder / "page.json").read_text("utf-8"))


def without_times(found):
    if isinstance(found, dict):
        left = {
            k: v for k, v in found.items() if k not in ("date", "asked", "checksum")
        }
        return {name: without_times(part) for name, part in left.items()}
    return [without_times(part) for part in found] if isinstance(found, list) else found


def test_an_odd_machine_finds_the_same_numbers(tmp_path):
    plain, odd = tmp_path / "plain", tmp_path / "a place with ç"
    plain.mkdir()
    odd.mkdir()
    usual = {"HOME": str(plain), "LANG": "C.UTF-8", "TZ": "UTC"}
    expected = audited(plain, **usual)
    # no language, no time zone, a home that nobody can write to, asserts left out
    found = audited(odd, "-O", HOME=os.devnull, RUBRICNB_STORE="answers here.sqlite")
    assert without_times(found) == without_times(expected)
    assert not [path for path in odd.iterdir() if path.stat().st_mode & 0o077]


def test_without_a_place_for_answers_the_way_out_works(tmp_path):
    def run(**store):
        return subprocess.run(
            [sys.executable, "-m", *AUDIT],
            cwd=tmp_path,
            env={"PATH": os.defpath, "PYTHONPATH": str(ROOT), "HOME": os.devnull}
            | store,
            capture_output=True,
            text=True,
        )

    refused = run()
    assert refused.returncode == 1
    assert "Traceback" not in refused.stderr
    (variable,) = re.findall(r"set (RUBRICNB_\w+)", refused.stderr)
    assert run(**{variable: "mine.sqlite"}).returncode == 0


def test_packages_install_where_the_home_cannot_be_written(tmp_path):
    makefile = (ROOT / "Makefile").read_text("utf-8")
    lines = makefile.partition("define installer\n")[2].partition("\nendef")[0]
    version = re.search(r"UV_VERSION = (\S+)", makefile)[1]
    shell = lines.replace("$(UV_VERSION)", version).replace("$(2)", "")
    shell = shell.replace("$(1)", f"'{sys.executable}'").replace("$$", "$")

    def cache(home):
        finished = subprocess.run(
            ["bash", "-c", f'{shell}; echo "${{UV_NO_CACHE:-kept}}"'],
            env={**os.environ, "HOME": str(home)},
            capture_output=True,
            text=True,
        )
        return finished.stdout.splitlines()[-1]

    assert cache(os.devnull) == "1"
    assert cache(tmp_path) == "kept"
