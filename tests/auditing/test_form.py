"""An audit from a form is the command's, and its errors are one line."""

import json
import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner

from rubricnb.auditing.form import audit_form
from rubricnb.book import notebooks as book
from rubricnb.cli.commands import app

OWN = book.find_root() / "examples" / "own-data"
SCORES, TEXTS, RUBRIC = (
    OWN / name for name in ("my_scores.csv", "my_data.csv", "my_rubric.yml")
)


@pytest.fixture
def form(tmp_path):
    """Fill in the form: files by field, and the other fields as they are typed."""

    def filled(files, **fields):
        folder = tmp_path / "given"
        for field, file in files.items():
            (folder / field).mkdir(parents=True)
            shutil.copy(file, folder / field)
        answer = json.loads(audit_form(folder, json.dumps(fields)))
        assert not folder.exists()
        return answer

    return filled


@pytest.fixture
def odd(form, tmp_path):
    """The error that a file with these bytes gives."""

    def refused(name, content, **fields):
        (tmp_path / name).write_bytes(content)
        found = form({"judgments": tmp_path / name}, **({"scale": "1 5"} | fields))
        assert set(found) == {"error"}
        assert len(found["error"].splitlines()) == 1
        return found["error"]

    return refused


def without_date(numbers):
    """The numbers of an audit but for when it was made."""
    skipped = ("asked", "date", "checksum")
    return {k: v for k, v in json.loads(numbers).items() if k not in skipped}


def test_a_form_gives_the_commands_page(form, tmp_path):
    files = {"judgments": SCORES, "path": TEXTS, "rubric": RUBRIC}
    found = form(files, judge="plain")
    page = tmp_path / "audit.html"
    given = [part for field, file in files.items() for part in (f"--{field}", file)]
    done = CliRunner().invoke(
        app,
        ["audit", *map(str, given), "--judge", "plain", "--output", str(page)],
    )
    assert done.exit_code == 0, done.output
    assert found["page"] == page.read_text("utf-8")
    numbers = page.with_suffix(".json").read_text("utf-8")
    assert without_date(found["numbers"]) == without_date(numbers)
    printed = [line.strip() for line in done.output.splitlines()]
    assert [
        *found["notes"],
        *found["lines"],
        f"written: {page} and {page.with_suffix('.json')}",
    ] == (printed)


def test_fields_are_read_as_they_are_typed(form, tmp_path):
    log = tmp_path / "log.csv"
    rows = [f"t{i},{1 + i % 5},{1 + i % 5}" for i in range(20)] + ["t20,-1,3"]
    log.write_text("\n".join(["id,value,human", *rows]))
    typed = {"columns": "value=score,id=item_id", "scale": " 1, 5 ", "failed": "-1;99"}
    found = form({"judgments": log}, **typed)
    assert "error" not in found
    assert json.loads(found["numbers"])["status"] == {"ok": 20, "unparsed": 1}


def test_what_is_wrong_is_said_in_one_line(odd):
    assert "is empty" in odd("a.csv", b"")
    assert "score" in odd("b.csv", b"item_id,points\na,3\n")
    assert "a.parquet" in odd("a.parquet", b"PAR1")
    assert "photo.csv" in odd("photo.csv", b"\x89PNG\r\n\x1a\n" + bytes(range(256)))
    assert "--scale" in odd("c.csv", b"item_id,score\na,3\n", scale="")
    assert "--scale" in odd("c.csv", b"item_id,score\na,3\n", scale="5")
    assert "--scale takes numbers" in odd("c.csv", b"item_id,score\n", scale="low 5")
    assert "NAME=VALUE" in odd("c.csv", b"item_id,score\n", columns="value")


def test_a_form_without_a_file_asks_for_one(tmp_path):
    (Path(tmp_path) / "given").mkdir()
    found = json.loads(audit_form(tmp_path / "given", "{}"))
    assert found == {"error": "no file of scores: choose one for --judgments"}
