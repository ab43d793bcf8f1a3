"""The page, its data file, the scripts in ``findings/`` and the tests of the reader."""

import importlib.util
import re
import shlex
import subprocess
from pathlib import Path

import pandas as pd
import pytest
import yaml

ROOT = Path(__file__).parents[1]
FINDINGS = ROOT / "findings"
PAGE = (ROOT / "book/what-your-tool-did.md").read_text(encoding="utf-8")
SCRIPTS = sorted(FINDINGS.glob("*.sh"))


def load(path):
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def extension(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "_ext"))
    return load(ROOT / "_ext/tools_table.py")


def lines(name):
    return pd.read_csv(FINDINGS / f"{name}.csv", keep_default_na=False)


EVERY = pd.concat([lines("tools"), lines("statistics")])


def test_every_line_of_the_tools_has_a_test_of_the_reader():
    tests = load(ROOT / "tests/files/test_tools.py")
    assert set(tests.READS) == set(lines("tools")["line"])


def test_every_line_is_whole_dated_and_named_once():
    assert EVERY["line"].is_unique
    needed = ["line", "version", "seen", "what", "guess", "do"]
    assert (EVERY[needed] != "").all(axis=None)
    assert pd.to_datetime(EVERY["seen"], format="%Y-%m-%d").notna().all()
    assert set(EVERY["fault"]) <= {"", "yes"}


def test_the_page_draws_both_files_and_every_table_of_the_study(extension):
    for name in extension.HEADERS:
        assert f"```{{tools-table}} {name}\n" in PAGE
        rows = extension.markdown_rows(lines(name), name)
        assert len(rows) == len(lines(name)) + 2
        assert {row.count("|") for row in rows} == {len(extension.HEADERS[name]) + 2}
    for name in extension.PEERS:
        assert f"```{{peers-table}} {name}\n" in PAGE
    toc = (ROOT / "_toc.yml").read_text()
    first = yaml.safe_load(toc)["parts"][0]
    assert first["caption"] == "Try it, use it, teach it"
    assert {"file": "book/what-your-tool-did"} in first["chapters"]


def test_a_bar_in_a_cell_is_refused(extension):
    broken = lines("tools").head(1).assign(what="a | b")
    with pytest.raises(ValueError, match="would end it"):
        extension.markdown_rows(broken, "tools")


def test_the_tables_of_the_study_name_every_package_of_its_environment(extension):
    pinned = re.findall(
        r"^([\w-]+)==([\w.]+)", (ROOT / "requirements-peers.txt").read_text(), re.M
    )
    recorded = pd.concat(
        pd.read_csv(ROOT / f"results/recordings/peers_{name}.csv")
        for name in extension.PEERS
    )
    known = recorded[["package", "version"]].dropna().drop_duplicates()
    assert sorted(known.itertuples(index=False, name=None)) == sorted(pinned)
    for name in extension.PEERS:
        header, rows = extension.peer_rows(name)
        assert {len(row) for row in rows} == {len(header)}


def test_what_is_for_people_in_a_hurry_has_at_most_ten_lines():
    top = PAGE.split("## ")[0].split("In a hurry?")[1].split("We wrote down")[0]
    assert len([line for line in top.splitlines() if line.strip()]) <= 10


@pytest.mark.parametrize("page", ["judgments-elsewhere", "audit", "guide"])
def test_the_page_is_linked(page):
    text = (ROOT / f"book/{page}.md").read_text(encoding="utf-8")
    assert "{ref}`what-your-tool-did`" in text


def test_every_fault_has_five_lines_for_its_authors():
    text = (FINDINGS / "issues.md").read_text(encoding="utf-8")
    parts = dict(
        re.findall(r"^## ([\w-]+): [^\n]+\n\n(.*?)(?=\n## |\Z)", text, re.M | re.S)
    )
    assert set(parts) == set(EVERY["line"][EVERY["fault"] == "yes"])
    for name, part in parts.items():
        starts = [row.split(":")[0] for row in part.strip().splitlines()]
        assert starts == ["* Version", "* Input", "* Seen", "* Expected"], name


def test_there_are_scripts_and_each_is_named():
    assert len(SCRIPTS) >= 8
    readme = (FINDINGS / "README.md").read_text(encoding="utf-8")
    assert set(re.findall(r"^\| `([\w-]+\.sh)`", readme, re.M)) == {
        path.name for path in SCRIPTS
    }
    assert set(EVERY["script"]) - {""} <= {path.name for path in SCRIPTS}


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)
def test_a_script_pins_what_it_installs_and_cleans_up(path):
    text = path.read_text(encoding="utf-8")
    subprocess.run(["bash", "-n", path], check=True)
    assert "mktemp -d" in text
    assert "trap 'rm -rf \"$folder\"' EXIT" in text
    for part in ("# Input:", "# Guess:", "# Seen (", "# What to do:"):
        assert part in text
    assert not re.search(r"https?://(?!127\.0\.0\.1)", text)
    assert "rubricnb" not in text
    assert "index" not in text.split("<<'PY'")[0]
    commands = re.findall(r"pip install ((?:[^\n]*\\\n)*[^\n]*)", text)
    names = [
        word
        for command in commands
        for word in shlex.split(command.replace("\\\n", " "))
        if not word.startswith("-") and word != "venv/bin/python"
    ]
    assert names
    assert all(re.fullmatch(r"[\w-]+==[\w.]+", name) for name in names)


def test_a_lines_version_is_the_one_its_script_installs():
    for line in EVERY[EVERY["script"] != ""].itertuples():
        text = (FINDINGS / line.script).read_text(encoding="utf-8")
        number = re.search(r"\d[\d.]*\d", line.version)[0]
        assert f"=={number}" in text, line.line
