"""The command line as a user types it."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from rubricnb.cli import app


def rubricnb(*arguments, **environment):
    return CliRunner().invoke(app, arguments, env=environment)


def test_check_says_what_works_and_what_to_do_about_the_rest(tmp_path):
    done = rubricnb("check", OPENAI_API_KEY="", OPENROUTER_API_KEY="")
    assert done.exit_code == 0, done.output
    lines = done.stdout.splitlines()
    assert any(line.startswith("ok  judge embedded") for line in lines)
    assert any(line.startswith("--  judge openai") and "OPENAI_API_KEY" in line for line in lines)


def test_check_fails_with_the_reason_where_the_store_cannot_be_used(tmp_path):
    (tmp_path / "file").write_text("")
    done = rubricnb("check", RUBRICNB_STORE=str(tmp_path / "file" / "x.sqlite"))
    assert done.exit_code == 1
    assert "--  store: the store" in done.stdout


def test_data_lists_the_datasets_and_describes_one():
    assert "summeval" in rubricnb("data").stdout
    assert "180 item_id" in rubricnb("data", "minibench").stdout


def test_judges_lists_engines_profiles_and_recorded_runs():
    out = rubricnb("judges").stdout
    for name in ("openai:MODEL", "first-biased", "smollm2-135m-instruct-embedded"):
        assert name in out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("data", "minibenc"), "did you mean 'minibench'"),
        (("execute", "05", "-p", "n_itemz", "4"), "n_itemz"),
        (("execute", "77"), "77"),
    ],
)
def test_a_wrong_argument_is_one_clear_line_and_no_traceback(arguments, message):
    done = rubricnb(*arguments)
    assert done.exit_code == 1
    assert message in done.stderr
    assert "Traceback" not in done.stderr
    assert len(done.stderr.strip().splitlines()) <= 3


def test_help_lists_every_command():
    done = subprocess.run(
        [sys.executable, "-m", "rubricnb", "--help"], capture_output=True, text=True, timeout=300
    )
    for command in ("check", "data", "judges", "execute", "audit"):
        assert command in done.stdout


@pytest.mark.slow
def test_a_notebook_runs_on_own_data_named_from_the_folder_one_stands_in(tmp_path):
    own = Path(__file__).parents[1] / "examples" / "own-data"
    for name in ("my_data.csv", "my_rubric.yml"):
        shutil.copy(own / name, tmp_path)
    arguments = {
        "dataset": "csv", "path": "my_data.csv", "rubric": "my_rubric.yml",
        "judge": "simulated:first-biased",
    }  # fmt: skip
    done = subprocess.run(
        [sys.executable, "-m", "rubricnb", "execute", "04", "--output", "out.ipynb",
         *(word for name, value in arguments.items() for word in ("-p", name, value))],
        cwd=tmp_path, capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "my_data" in (tmp_path / "out.ipynb").read_text()


@pytest.mark.slow
def test_a_judge_is_configured_where_a_notebook_is_executed(tmp_path):
    """An option that its engine does not know is refused by name, one of the requests is taken."""
    arguments = ("execute", "04", "--output", str(tmp_path / "out.ipynb"),
                 "-p", "judge", "simulated:unbiased", "-p", "n_items", "15")  # fmt: skip
    assert rubricnb(*arguments, "-o", "max_tokens=64").exit_code == 0
    for option, message in (("sead=1", "sead"), ("seed", "options of a judge are given as NAME=")):
        done = rubricnb(*arguments, "-o", option)
        assert done.exit_code == 1
        assert message in done.stderr
