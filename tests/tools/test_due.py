"""The pages that a check reads closely, in repositories that git made."""

import os
import re
import subprocess
from pathlib import Path

import pytest
import yaml

from tools.due import due

ROOT = Path(__file__).parents[2]
PAGES = [f"book/p{k}" for k in range(9)]


def git(root, *arguments):
    author = ["-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false"]
    done = subprocess.run(
        ["git", *author, *arguments],
        cwd=root,
        check=True,
        capture_output=True,
        text=True,
    )
    return done.stdout.strip()


def commit(root, message):
    git(root, "add", "-A")
    git(root, "commit", "-q", "--allow-empty", "-m", message)


@pytest.fixture
def clone(tmp_path):
    """A repository with nine pages and one commit on main."""
    (tmp_path / "book").mkdir()
    for page in PAGES:
        (tmp_path / f"{page}.md").write_text(f"# {page}")
    root, *others = PAGES
    toc = {"root": root, "chapters": [{"file": page} for page in others]}
    (tmp_path / "_toc.yml").write_text(yaml.safe_dump(toc))
    git(tmp_path, "init", "-q", "-b", "main")
    commit(tmp_path, "first")
    yield tmp_path
    due.cache_clear()


def read_closely(root):
    due.cache_clear()
    return set(due(root).pages)


def change(root, page):
    (root / f"{page}.md").write_text("# changed")


def test_without_a_commit_to_compare_with_every_page_is_due(clone):
    assert read_closely(clone) == set(PAGES)  # a first commit, or a shallow clone
    assert "git does not know" in due(clone).reason


@pytest.mark.in_turn
def test_every_page_has_its_turn_and_the_same_commit_the_same_pages(clone):
    turns = set()
    for k in range(100):
        commit(clone, f"nothing {k}")
        pages = read_closely(clone)
        assert pages == read_closely(clone)
        assert re.fullmatch(
            rf"{len(pages)} of 9 pages: 0 changed since \w{{8}}, "
            r"and part [1-8] of 8 \(from commit \w{8}\)",
            due(clone).reason,
        )
        turns.add(frozenset(pages))
    assert turns == {frozenset(PAGES[k::8]) for k in range(8)}


def test_pages_that_a_branch_changed_are_due_however_many_commits_it_has(clone):
    git(clone, "update-ref", "refs/remotes/origin/main", "HEAD")
    for page in PAGES[2:5]:
        change(clone, page)
        commit(clone, page)
    commit(clone, "something else")
    change(clone, PAGES[5])  # not committed yet
    (clone / "_toc.yml").write_text(
        (clone / "_toc.yml").read_text()
        + "parts: [file: book/new, file: notebooks/05]\n"
    )
    (clone / "notebooks").mkdir()
    for new in ("book/new", "notebooks/05"):  # git does not know them
        change(clone, new)
    assert read_closely(clone) >= {*PAGES[2:6], "book/new", "notebooks/05"}
    assert "6 changed since" in due(clone).reason


def test_on_main_itself_the_first_parent_is_where_a_change_starts(clone):
    git(clone, "checkout", "-q", "-b", "branch")
    for page in PAGES[1:4]:
        change(clone, page)
        commit(clone, page)
    git(clone, "checkout", "-q", "main")
    git(clone, "merge", "-q", "--no-ff", "-m", "merge", "branch")
    git(clone, "update-ref", "refs/remotes/origin/main", "HEAD")
    assert read_closely(clone) >= set(PAGES[1:4])
    assert "3 changed since" in due(clone).reason


def recipe(target):
    # not the options of a `make` that runs this test: `make ALL=1 test`
    own = {k: v for k, v in os.environ.items() if "MAKE" not in k and k != "ALL"}
    done = subprocess.run(
        ["make", "-n", "-B", target],
        cwd=ROOT,
        env=own,
        check=True,
        capture_output=True,
        text=True,
    )
    return done.stdout


def test_test_all_runs_every_stage_of_the_check_and_leaves_nothing_out():
    stages = re.search(r"stages=\((.*)\)", (ROOT / ".ci/run").read_text())[1]
    steps = recipe("test-all")
    for line in recipe("lint").splitlines():
        assert line in steps
    assert set(stages.replace("'", "").split()) >= {
        "lint",
        "test",
        "test-book",
        "test-vllm",
    }
    runs = re.findall(r"^\S.*bin/python -m pytest .*$", steps, re.M)
    of_book, of_vllm = (
        [run for run in runs if run.endswith(f" tests/{folder}")]
        for folder in ("site", "vllm")
    )
    assert len(of_book) == len(of_vllm) == 1
    filters = [re.search(r" -m ('not slow'|slow)$", run) for run in runs]
    assert [found[1] for found in filters if found] == ["'not slow'", "slow"]
    assert not any("slow" in run for run in (*of_book, *of_vllm))
    assert 'chapters="_build/stage/notebooks" ' in steps
    assert "tools due" not in steps
    assert "tools due" in recipe("test-book")


def long_tests_due(
    root, files=("tests/test_a.py",), names=tuple(f"test_{k}" for k in range(40))
):
    due.cache_clear()
    return {name for file in files for name in names if due(root).takes(file, name)}


@pytest.mark.in_turn
def test_every_long_test_has_its_turn_within_a_hundred_commits(clone):
    # all: nothing to compare with
    assert long_tests_due(clone) == long_tests_due(clone) != set()
    turns = set()
    for k in range(100):
        commit(clone, f"nothing {k}")
        turns.add(frozenset(long_tests_due(clone)))
    assert len(turns) == 8
    assert sum(map(len, turns)) == len(frozenset().union(*turns)) == 40


def test_a_file_that_was_only_formatted_is_not_touched(clone):
    path = clone / "test_a.py"
    path.write_text('def f(a, b):\n    """Add two\n    numbers."""\n    return a + b\n')
    commit(clone, "a test")
    commit(clone, "the next")
    path.write_text(
        "# now\n@pytest.mark.in_turn\n"
        'def f(\n    a,\n    b,\n):\n    """Add two numbers."""\n    return a + b\n'
    )
    due.cache_clear()
    assert due(clone).touched == frozenset()
    path.write_text(path.read_text().replace("a + b", "a - b"))
    due.cache_clear()
    assert due(clone).touched == {"test_a.py"}
    path.write_text(
        path.read_text().replace("in_turn", "slow").replace("a - b", "a + b")
    )
    due.cache_clear()
    assert due(clone).touched == {"test_a.py"}


def test_a_long_test_whose_file_the_change_touches_is_due(clone):
    commit(clone, "nothing")
    (clone / "tests").mkdir()
    (clone / "tests" / "test_a.py").write_text("")
    assert len(long_tests_due(clone)) == 40
    assert len(long_tests_due(clone, files=("tests/test_b.py",))) < 40
