"""The command line as a user types it."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from rubricnb.cli.commands import app, errors


def rubricnb(*arguments, **environment):
    return CliRunner().invoke(app, arguments, env=environment)


@pytest.mark.parametrize(
    ("arguments", "status", "said"),
    [
        (
            "check",
            0,
            [r"^ok  judge embedded", r"^--  judge openai: no key set; export OPENAI_"],
        ),
        ("check", 1, [r"^--  store: the store"]),
        ("data", 0, ["summeval"]),
        ("data minibench", 0, ["180 item_id"]),
    ],
)
def test_what_there_is_and_what_to_do_about_the_rest_is_listed(
    arguments, status, said, tmp_path
):
    """With a status of 1, the store lies where no folder can be made."""
    (tmp_path / "file").write_text("")
    environment = (
        {"RUBRICNB_STORE": str(tmp_path / "file" / "x.sqlite")} if status else {}
    )
    done = rubricnb(
        *arguments.split(), OPENAI_API_KEY="", OPENROUTER_API_KEY="", **environment
    )
    assert done.exit_code == status, done.output
    assert [line for line in said if not re.search(line, done.stdout, re.M)] == []


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("data", "minibenc"), "did you mean 'minibench'"),
        (("execute", "05", "-p", "n_itemz", "4"), "n_itemz"),
        (("execute", "77"), "77"),
        (
            ("execute", "12", "-p", "temperatures", "0.3", "-p", "n_items", "x"),
            "n_items = 'x'",
        ),
    ],
)
def test_a_wrong_argument_is_one_clear_line_and_no_traceback(arguments, message):
    done = rubricnb(*arguments)
    assert done.exit_code == 1
    assert message in done.stderr
    assert "Traceback" not in done.stderr
    assert len(done.stderr.strip().splitlines()) <= 3


def test_ctrl_c_is_said(capsys):
    with pytest.raises(typer.Exit) as left, errors():
        raise KeyboardInterrupt
    assert left.value.exit_code == 130
    assert "stopped by Ctrl-C" in capsys.readouterr().err


@pytest.mark.slow
def test_a_notebook_that_fails_shows_its_error_and_not_its_traceback(tmp_path):
    arguments = [
        "-p",
        "judgments",
        str(tmp_path / "nope.csv"),
        "--output",
        str(tmp_path / "o.ipynb"),
    ]
    done = rubricnb("execute", "28", *arguments)
    assert done.exit_code == 1
    assert len(done.stderr.strip().splitlines()) <= 3
    assert "nope.csv" in done.stderr


@pytest.mark.slow
def test_a_notebook_runs_on_own_data_named_from_the_folder_one_stands_in(tmp_path):
    own = Path(__file__).parents[2] / "examples" / "own-data"
    for name in ("my_data.csv", "my_rubric.yml"):
        shutil.copy(own / name, tmp_path)
    words = (
        "execute 04 --output out.ipynb -p dataset csv -p path my_data.csv "
        "-p rubric my_rubric.yml -p judge simulated:first-biased"
    )
    done = subprocess.run(
        [sys.executable, "-m", "rubricnb", *words.split()],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    assert "my_data" in (tmp_path / "out.ipynb").read_text()


@pytest.mark.slow
def test_a_judge_is_configured_where_a_notebook_is_executed(tmp_path):
    """An option that its engine does not know is refused by name,
    one of the requests is taken.
    """
    words = "-p judge simulated:unbiased -p n_items 15"
    arguments = "execute", "04", "--output", str(tmp_path / "out.ipynb"), *words.split()
    assert rubricnb(*arguments, "-o", "max_tokens=64").exit_code == 0
    for option, message in (
        ("sead=1", "sead"),
        ("seed", "options of a judge are given as NAME="),
    ):
        done = rubricnb(*arguments, "-o", option)
        assert done.exit_code == 1
        assert message in done.stderr


def test_repeats_print_each_way_with_intervals_over_prompts():
    said = CliRunner().invoke(app, ["repeats", "simulated:unbiased"])
    assert said.exit_code == 0, said.output
    _, *rows = said.output.strip().splitlines()
    ways = ["again", "shuffled", "few at once", "alone"]
    assert [next(way for way in ways if way in row) for row in rows[-4:]] == ways
    assert all("1.000 [" in row and "0.000 [0.000" in row for row in rows[-4:])
