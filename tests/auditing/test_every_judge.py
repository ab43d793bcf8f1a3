"""Every judge of a log has its page from one reading, with the numbers of its own."""

import json
import re
from contextlib import chdir

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import rubricnb as rb
from rubricnb.cli.commands import app

NAMES = ["one/two", "alone", "twice"]


def log(names=NAMES, seed=3):
    """Scores of 30 texts in two reads, for every judge; one has two prompts."""
    rng = np.random.default_rng(seed)
    parts = []
    for name in names:
        for template in ["a", "b"] if name == "twice" else ["a"]:
            item = np.arange(30).repeat(2)
            human = rng.integers(1, 6, 30)[item]
            parts.append(
                pd.DataFrame(
                    {
                        "judge": name,
                        "template": template,
                        "item_id": [f"{name}/{i}" for i in item],
                        "cluster_id": [f"prompt {i % 10}" for i in item],
                        "read": np.tile([1, 2], 30),
                        "human": human if name != "twice" else 1 + item % 5,
                        "score": np.clip(human + rng.integers(-1, 2, 60), 1, 5),
                    }
                )
            )
    return pd.concat(parts)


def audit(folder, *words):
    with chdir(folder):
        given = ["audit", "--judgments", "log.csv", "--scale", "1", "5", *words]
        return CliRunner().invoke(app, given)


def numbers(path):
    """What a page is made of, without when and of whom."""
    told = json.loads(path.read_text("utf-8"))
    for name in ("asked", "date", "checksum", "judge", "identity", "sentence"):
        told.pop(name)
    for name in ("parts", "hashes"):
        told.pop(name)
    return told


@pytest.fixture
def folder(tmp_path):
    log().sample(frac=1, random_state=0).to_csv(tmp_path / "log.csv", index=False)
    return tmp_path


def test_each_judge_has_the_numbers_that_it_has_alone(folder):
    done = audit(folder, "--judge", "all")
    assert done.exit_code == 0, done.output
    assert "written: audit-*.html and audit-*.json" in done.stdout
    pages = sorted(page.name for page in folder.glob("audit-*.html"))
    assert pages == [
        "audit-alone.html",
        "audit-one-two.html",
        "audit-twice-a.html",
        "audit-twice-b.html",
    ]
    for page, name in [("alone", "alone"), ("one-two", "one/two"), ("twice-b", "b")]:
        alone = audit(folder, "--judge", name, "--output", "own.html")
        assert alone.exit_code == 0, alone.output
        every = numbers(folder / f"audit-{page}.json")
        assert every == numbers(folder / "own.json")
    told = json.loads((folder / "audit-twice-b.json").read_text("utf-8"))
    assert told["judge"] == "twice, b"


def test_a_judge_whose_name_is_all_has_the_way_that_the_error_names(folder):
    log(["all", "other"]).to_csv(folder / "log.csv", index=False)
    refused = audit(folder)
    assert "rubricnb.audit('all', judgments=…)" in refused.stderr
    alone = rb.audit("all", judgments=folder / "log.csv", scale=(1, 5))
    assert alone.judge == "all"
    assert audit(folder, "--judge", "all").exit_code == 0
    assert sorted(page.name for page in folder.glob("audit-*.html")) == [
        "audit-all.html",
        "audit-other.html",
    ]
    alone.save(folder / "own.html")
    assert numbers(folder / "own.json") == numbers(folder / "audit-all.json")


def test_a_gate_counts_for_each_and_says_which(folder):
    done = audit(folder, "--judge", "all", "--fail-on", "agreement<1")
    assert done.exit_code == 3
    failed = done.stderr.partition("failed: ")[2]
    assert len(re.findall(r"(one/two|alone|twice, a|twice, b): agreement", failed)) == 4


def test_what_cannot_be_written_for_each_is_refused_before_the_work(folder):
    for words in (["--json"], ["--compare", "alone", "b"], ["--against", "old.json"]):
        done = audit(folder, "--judge", "all", *words)
        assert done.exit_code == 1
        assert "--judge all writes a page for each judge" in done.stderr
    (folder / "audit-alone.json").write_text("{}")
    done = audit(folder, "--judge", "all")
    assert "audit-alone.json exists and was not written by an audit" in done.stderr
    assert [*folder.glob("*.html")] == []
    log(["one/two", "one two"]).to_csv(folder / "log.csv", index=False)
    done = audit(folder, "--judge", "all")
    assert "pages of 'one/two' and 'one two' would have one name" in done.stderr
    assert [*folder.glob("*.html")] == []
