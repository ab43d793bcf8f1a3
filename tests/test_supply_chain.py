"""What others wrote and runs here: Actions by commit, vendored files and packages by their hash."""

import hashlib
import re
import tomllib
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]
VENDOR = ROOT / "_static" / "vendor"
LOCK = (ROOT / "requirements-hashed.txt").read_text("utf-8")


def locked():
    """Name → what the lock says of it: one requirement with its hashes."""
    entries = re.split(r"\n(?=\w)", LOCK.split("\n", 1)[1])
    return {
        canonicalize_name(Requirement(text.split("\\")[0]).name): text
        for text in map(str.strip, entries)
    }


def test_every_action_is_pinned_by_its_commit():
    used = [
        line.split("uses:")[1].strip()
        for path in sorted((ROOT / ".github" / "workflows").glob("*.yml"))
        for line in path.read_text("utf-8").splitlines()
        if "uses:" in line
    ]
    assert used
    pinned = re.compile(r"[\w.-]+/[\w./-]+@[0-9a-f]{40}  # v\d+\.\d+\.\d+")
    assert [action for action in used if not pinned.fullmatch(action)] == []
    assert len(set(used)) == len({action.split("@")[0] for action in used})


def test_only_the_job_that_deploys_may_write_and_it_runs_no_code_of_the_repository():
    for path in sorted((ROOT / ".github" / "workflows").glob("*.yml")):
        workflow = yaml.safe_load(path.read_text("utf-8"))
        assert workflow["permissions"] == {"contents": "read"}, path.name
        for name, job in workflow["jobs"].items():
            if "permissions" in job:
                assert (path.name, name) == ("book.yml", "deploy")
                assert job["permissions"] == {"pages": "write", "id-token": "write"}
                assert job["needs"] == "build"
                [step] = job["steps"]
                assert step["uses"].startswith("actions/deploy-pages@")
                assert "run" not in step


def test_every_vendored_file_is_the_one_that_was_looked_at():
    listed = dict(
        reversed(line.split("  ", 1)) for line in (VENDOR / "SHA256SUMS").read_text().splitlines()
    )
    there = {
        path.relative_to(VENDOR).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in VENDOR.rglob("*")
        if path.is_file() and path.name != "SHA256SUMS"
    }
    assert there == listed


def test_the_lock_has_a_hash_for_every_requirement_and_no_address():
    assert len(locked()) > 150
    for name, text in locked().items():
        first, *hashes = text.split("\\\n")
        assert re.match(r"[\w.-]+==[\w.!+]+( ; .*)?\s*$", first), name
        assert hashes, name
        assert all(re.fullmatch(r"    --hash=sha256:[0-9a-f]{64} ?", line) for line in hashes), name
    assert "://" not in LOCK


@pytest.mark.parametrize("extra", ["", "embedded", "book", "ray", "test"])
def test_the_lock_holds_what_the_project_asks_for(extra):
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    wanted = project["optional-dependencies"][extra] if extra else project["dependencies"]
    for requirement in map(Requirement, wanted):
        text = locked()[canonicalize_name(requirement.name)]
        assert requirement.specifier.contains(re.match(r"[^=]+==([^\s;\\]+)", text)[1])


def test_the_lock_has_the_versions_that_are_tested():
    tested = (line.split("==") for line in (ROOT / "constraints.txt").read_text().splitlines())
    entries = locked()
    different = [
        name
        for name, version in (line for line in tested if len(line) == 2)
        if not entries.get(canonicalize_name(name), "").startswith(
            f"{canonicalize_name(name)}=={version}"
        )
    ]
    assert different == []
