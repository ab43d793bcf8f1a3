"""The wheel alone: built, installed into an empty environment, used without a clone."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import rubricnb as rb
from rubricnb.book import notebooks as book

ROOT = book.find_root()
SCORES = ROOT / "examples" / "own-data" / "my_scores.csv"
MOST_BYTES = 400_000_000  # of the environment, with compiled modules
AUDIT = ("audit", "--judgments", SCORES.name, "--scale", "1", "5", "--judge", "plain")
# A project's own folders, variables and stores do not help the wheel.
CLEAN = {
    k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "RUBRICNB"))
}


def uv(*arguments):
    subprocess.run([sys.executable, "-m", "uv", *map(str, arguments)], check=True)


@pytest.fixture(scope="module")
def environment(tmp_path_factory):
    """An environment that has the wheel and what it requires, and nothing else."""
    folder = tmp_path_factory.mktemp("wheel")
    # A copy without built folders: what a wheel holds must not depend on them.
    listed = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard", "-z"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split("\0")
    for name in filter(None, listed):
        is_part = name.startswith("rubricnb/") or "/" not in name
        if is_part and (ROOT / name).is_file():
            (folder / "tree" / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, folder / "tree" / name)
    uv("build", "-q", "--wheel", "--out-dir", folder, folder / "tree")
    (wheel,) = folder.glob("*.whl")
    uv("venv", "-q", "--python", sys.executable, folder / "env")
    python = folder / "env" / "bin" / "python"
    constraints = ROOT / "constraints.txt"
    uv(
        *("pip", "install", "-q", "--compile-bytecode", "--python", python),
        *("-c", constraints, wheel),
    )
    return folder / "env"


@pytest.fixture
def rubricnb(environment, tmp_path):
    """Run the installed command in an empty folder, with a home of its own."""

    def run(*arguments):
        return subprocess.run(
            [environment / "bin" / "rubricnb", *arguments],
            cwd=tmp_path,
            env=CLEAN | {"XDG_CACHE_HOME": str(tmp_path / "cache")},
            capture_output=True,
            text=True,
            check=False,
        )

    return run


def numbers(path):
    audited = json.loads(Path(path).read_text("utf-8"))
    return {row["measure"]: row["effect"] for row in audited["rows"]}


def test_the_wheel_audits_scores_from_an_empty_folder(rubricnb, tmp_path):
    shutil.copy(SCORES, tmp_path)
    done = rubricnb(*AUDIT)
    assert done.returncode == 0, done.stderr
    mine = rb.judgments(SCORES, scale=(1, 5))
    rb.audit("plain", judgments=mine, path=tmp_path / "clone.html")
    wheels, clones = numbers(tmp_path / "audit.json"), numbers(tmp_path / "clone.json")
    assert wheels == pytest.approx(clones, rel=1e-9, nan_ok=True)
    assert len(wheels) > 2


def test_nothing_is_wrong_where_optional_parts_are_missing(rubricnb):
    done = rubricnb("check")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "rubricnb[embedded]" in done.stdout
    assert "rubricnb[book]" in done.stdout


@pytest.mark.parametrize(
    ("program", "extra"),
    [
        ("rb.plots", "plots"),
        ("rb.rulers.Calibrator", "rulers"),
        ("rb.judgments('a.parquet', scale=(1, 5))", "parquet"),
        ("rb.open_judge('embedded').engine", "embedded"),
    ],
)
def test_a_missing_part_is_named_with_the_line_that_adds_it(
    environment, tmp_path, program, extra
):
    (tmp_path / "a.parquet").write_bytes(b"PAR1")
    done = subprocess.run(
        [environment / "bin" / "python", "-c", f"import rubricnb as rb; {program}"],
        cwd=tmp_path,
        env=CLEAN,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    last = done.stderr.strip().splitlines()[-1]
    assert last.startswith("ImportError: ")
    assert f"python -m pip install 'rubricnb[{extra}]'" in last


def test_the_environment_is_small(environment):
    files = [path for path in environment.rglob("*") if path.is_file()]
    assert sum(path.stat().st_size for path in files) <= MOST_BYTES
