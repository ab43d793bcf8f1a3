"""What a command writes replaces nothing that it reads,
is tried first, and is whole in the end.
"""

import json
import os
import shlex
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import nbformat
import numpy as np
import pandas as pd
import pytest
from endpoint import completion, endpoint
from typer.testing import CliRunner

import rubricnb as rb
import studies.__main__
import tools.__main__
from rubricnb.book.notebooks import execute
from rubricnb.cli.commands import app
from rubricnb.files.outputs import check_outputs
from studies.study import check_files
from tools.twins import student, twins

SCALE = ["--scale", "1", "5"]


def invoke(*arguments, program=app):
    return CliRunner().invoke(program, list(map(str, arguments)))


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A folder with scores, a rubric and texts, each file's bytes known."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    scores = [
        {
            "item_id": f"t{i}",
            "judge": "m",
            "score": int(rng.integers(1, 6)),
            "human": i % 5 + 1,
        }
        for i in range(40)
    ]
    Path("mine.json").write_text(json.dumps(scores))
    levels = {str(k): f"level {k}" for k in range(1, 6)}
    rubric = {"rubric_id": "tone", "criterion": "tone", "definition": "Is it friendly?"}
    Path("rub.json").write_text(json.dumps([rubric | {"levels": levels}]))
    Path("texts.csv").write_text(
        "instruction,response,human\n"
        + "".join(f"Say {i}.,I say {i}.,{i % 5 + 1}\n" for i in range(9))
    )
    return tmp_path


def made(folder):
    return {p.name: p.read_bytes() for p in folder.iterdir() if p.is_file()}


LINKS = {
    "its own name": lambda page: None,
    "a symbolic link": lambda page: page.with_suffix(".json").symlink_to("mine.json"),
    "a hard link": lambda page: os.link("mine.json", page.with_suffix(".json")),
    "a link to the folder": lambda page: page.parent.symlink_to("."),
}


@pytest.mark.parametrize(
    ("page", "link"),
    [
        ("mine.html", "its own name"),
        ("./../{here}/mine.html", "its own name"),
        ("Mine.html", "its own name"),  # where case does not count, this is one file
        ("other.html", "a symbolic link"),
        ("other.html", "a hard link"),
        ("linked/mine.html", "a link to the folder"),
    ],
)
@pytest.mark.parametrize("door", ["command", "Python"])
def test_the_scores_that_are_audited_are_not_replaced_by_the_result(
    page, link, door, here
):
    page = Path(page.format(here=here.name))
    LINKS[link](page)
    before = made(here)
    if door == "command":
        done = invoke("audit", "--judgments", "mine.json", *SCALE, "--output", page)
        assert (done.exit_code, "would be overwritten" in done.stderr) == (1, True), (
            done.output
        )
        assert "--output" in done.stderr
        assert len(done.stderr.splitlines()) == 1
    else:
        with pytest.raises(ValueError, match="would be overwritten"):
            rb.audit(judgments="mine.json", scale=(1, 5), path=page)
    assert made(here) == before


def test_the_default_page_does_not_replace_scores_that_happen_to_have_its_name(here):
    Path("mine.json").rename("audit.json")
    before = made(here)
    done = invoke("audit", "--judgments", "audit.json", *SCALE)
    assert (done.exit_code, made(here)) == (1, before)
    # Nor anything else that nobody asked to have replaced, from Python either.
    Path("audit.json").rename("scores.json")
    Path("audit.json").write_text('{"my": "settings"}')
    done = invoke("audit", "--judgments", "scores.json", *SCALE)
    assert "audit.json exists and was not written by an audit" in done.stderr
    found = rb.audit(judgments="scores.json", scale=(1, 5))
    with pytest.raises(ValueError, match="not written by an audit"):
        found.save("audit.html")
    assert Path("audit.json").read_text() == '{"my": "settings"}'
    Path("audit.json").unlink()
    for _ in range(2):  # its own result is replaced
        assert invoke("audit", "--judgments", "scores.json", *SCALE).exit_code == 0


@pytest.mark.parametrize(
    "arguments",
    [
        "--judge simulated:unbiased --path texts.csv --rubric rub.json --output "
        "rub.html",
        "--judge simulated:unbiased --path texts.json --rubric rub.yml --output "
        "texts.html",
        "--judge simulated:unbiased --template p.html --parser json --output p.html",
        "--judgments mine.json --scale 1 5 --against a.json --output a.html",
        "--compare a.json b.json --output a.html",
        "--compare a.json b.json --output b.html",
        "--judge simulated:unbiased --check a.json --output a.html",
        "--judge simulated:unbiased --path texts.csv --rubric rub.json --datasheet "
        "rub.html",
        "--judge embedded:w.json --output w.html",
        "--judge simulated:unbiased --output store.html",
    ],
)
def test_no_file_that_an_audit_reads_is_replaced(arguments, here, monkeypatch):
    for name in (
        "a.json",
        "b.json",
        "p.html",
        "w.json",
        "rub.yml",
        "texts.json",
        "store.json",
    ):
        Path(name).write_text(f'{{"schema": "rubricnb-audit/1", "of": "{name}"}}')
    monkeypatch.setenv("RUBRICNB_STORE", "store.json")
    before = made(here)
    done = invoke("audit", *shlex.split(arguments))
    assert (done.exit_code, "would be overwritten" in done.stderr) == (1, True), (
        done.output
    )
    assert made(here) == before


def test_other_commands_replace_nothing_that_they_read(here, monkeypatch):
    executed = nbformat.v4.new_notebook(cells=[nbformat.v4.new_markdown_cell("# One")])
    nbformat.write(executed, "one.ipynb")
    Path("linked.ipynb").symlink_to("page.html")
    Path("page.html").write_text(Path("one.ipynb").read_text())
    Path("one.html").symlink_to("one.ipynb")
    Path("my.lock.json").write_text("mine")
    before = made(here)
    for program, arguments, said in (
        (app, "execute 02 --output t.csv", "t.csv is no name of a notebook"),
        (app, "execute 02 --output mine.json", "mine.json is no name of a notebook"),
        (
            app,
            "execute 05 -p path one.ipynb --output one.ipynb",
            "would be overwritten",
        ),
        (
            app,
            "compile rub.json --judge simulated:grader --output rub.json",
            "exists already",
        ),
        (
            app,
            "compile rub.json --judge simulated:grader --output my.json",
            "my.lock.json exists",
        ),
        (tools.__main__.app, "page page.html", "is no notebook"),
        (tools.__main__.app, "page one.ipynb", "would be overwritten"),
        (
            tools.__main__.app,
            f"student '{rb.book.find_root()}/notebooks'",
            "would be overwritten",
        ),
        (tools.__main__.app, "carry . mine.json mine.json-00", "would be overwritten"),
    ):
        if "mine.json-00" in arguments:
            Path("mine.json-00").write_text("a piece")
            before = made(here)
        done = invoke(*shlex.split(arguments), program=program)
        assert (done.exit_code, said in done.stderr) == (1, True), (
            arguments,
            done.output,
        )
        assert made(here) == before, arguments
    monkeypatch.setenv("RUBRICNB_RESULTS", str(here / "results"))
    (own := here / "results/mine/m/texts.csv").parent.mkdir(parents=True)
    own.write_text(Path("texts.csv").read_text())
    with pytest.raises(ValueError, match="lies in the folder that the study writes"):
        check_files("mine", [{"dataset": "csv", "path": str(own)}])


def test_a_notebook_of_ones_own_beside_the_twins_is_not_removed(tmp_path):
    root = tmp_path
    (root / "notebooks").mkdir()
    (root / "_config.yml").write_text("repository: {url: 'https://example.org/r'}")
    own = root / "notebooks" / "my_thesis.ipynb"
    nbformat.write(
        nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("1")]), own
    )
    with pytest.raises(ValueError, match=r"my_thesis\.ipynb has no text beside it"):
        twins(root=root)
    assert own.exists()
    with pytest.raises(ValueError, match="would be overwritten"):
        student(rb.book.find_root() / "notebooks")


def test_files_that_a_disk_may_take_for_one_are_one(tmp_path):
    mine = tmp_path / "Gr\u00f6\u00dfe.json"
    mine.write_text("[]")
    for other in ("GR\u00d6SSE.JSON", "Gro\u0308\u00dfe.json"):  # case; an accent apart
        with pytest.raises(ValueError, match="would be overwritten"):
            check_outputs([tmp_path / other], [mine], "choose another")
    check_outputs(
        [tmp_path / "else.json"], [mine, "minibench", "x" * 5000, "a\0b"], "…"
    )


@pytest.mark.parametrize(
    ("output", "prepare"),
    [
        ("a.html", lambda: Path("a.json").mkdir()),
        ("a.html", lambda: Path("a.html").mkdir()),
        ("a.html", lambda: os.mkfifo("a.json")),
        ("no/a.html", lambda: None),
        ("/proc/a.html", lambda: None),
    ],
)
def test_what_cannot_be_written_is_said_before_the_judge_is_asked(
    output, prepare, here
):
    prepare()
    with endpoint([(200, completion("[RESULT] 2"), {})]) as (url, received):
        done = invoke("audit", "--judge", f"openai:m@{url}", "--output", output)
    assert (done.exit_code, "cannot be written: " in done.stderr) == (1, True), (
        done.output
    )
    assert len(done.stderr.splitlines()) == 1
    assert len(received) == 0
    assert not Path("a.html").is_file()


def piped(folder, reader, *arguments, environment=None):
    """Run a command whose standard output is read by another one."""
    line = f'"$0" -m "$@" | {reader}; echo "${{PIPESTATUS[0]}}" >&2'
    return subprocess.run(
        ["bash", "-c", line, sys.executable, *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=300,
        env=os.environ
        | {"PYTHONPATH": str(Path(rb.__file__).parents[1])}
        | (environment or {}),
    )


@pytest.mark.parametrize("json_too", [[], ["--json"]])
@pytest.mark.parametrize("reader", ["true", "head -c 1"])
def test_a_reader_that_leaves_loses_no_result(reader, json_too, here):
    done = piped(
        here,
        f"{reader} >/dev/null",
        "rubricnb",
        "audit",
        "--judgments",
        "mine.json",
        *SCALE,
        "--output",
        "out.html",
        *json_too,
    )
    assert done.stderr.splitlines()[-1] == "0", done.stderr
    assert "Traceback" not in done.stderr
    assert "BrokenPipe" not in done.stderr
    assert Path("out.html").stat().st_size > 10_000
    assert json.loads(Path("out.json").read_text())["judge"]


def test_a_run_whose_reader_leaves_goes_on_to_its_page(here):
    """Long: it prints where the texts go and a line
    of progress before anything is saved.
    """
    with endpoint(lambda p, h: (200, completion("[RESULT] 2"), {})) as (url, received):
        done = piped(
            here,
            "true",
            "rubricnb",
            "audit",
            "--judge",
            f"openai:m@{url}",
            "--readout",
            "feedback",
            "--n-items",
            "15",
            "--output",
            "out.html",
            environment={"RUBRICNB_STORE": str(here / "s.sqlite")},
        )
    assert done.stderr.splitlines()[-1] == "3", done.stderr  # always the same score
    assert Path("out.html").exists()
    assert len(received) > 50


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["x{n_items}.ipynb", "{n_items}{0}{.ipynb", "a{{b}}.ipynb"]
)
def test_a_path_is_no_format_string(name, tmp_path):
    done = execute("02", {"n_items": 15}, tmp_path / name)
    assert [p.name for p in tmp_path.iterdir()] == [name]
    assert nbformat.read(tmp_path / name, 4).metadata == done.metadata
    assert str(tmp_path) not in (tmp_path / name).read_text()


def test_papermill_is_given_a_path_that_stays_as_it_is(tmp_path):
    from papermill.parameterize import parameterize_path

    from rubricnb.book.notebooks import _without_fields

    for name in ("x{n_items}.ipynb", "{0}{.ipynb", "a{{b}}.ipynb", "plain.ipynb"):
        assert parameterize_path(
            _without_fields(tmp_path / name), {"n_items": 4}
        ) == str(tmp_path / name)


BROKEN = {
    "broken": "a: [1, 2\nb: }",
    "a tab": "a:\n\t- 1",
    "a list": "- 1\n- 2",
    "a text": "just words",
    "a date that is none": "defaults: {n_items: 2026-13-45}",
    "numbers as names": "1: 2",
    "a section that is a list": "defaults: [1]\njudges: 4\nplans: 3",
    "deep": "[" * 5000,
    "not UTF-8": b"\xff\xfe\x00\xd8".decode("latin-1"),
    "an object": "!!python/object/apply:os.system ['touch owned']",
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_bad_parameter_file_is_one_line_that_names_it(name, here, monkeypatch):
    Path("params").mkdir()
    file = Path("params", "mine.yml")
    file.write_bytes(BROKEN[name].encode("latin-1" if name == "not UTF-8" else "utf-8"))
    monkeypatch.setenv("RUBRICNB_RESULTS", str(here / "results"))
    book = invoke("book", "--params", file.resolve(), program=tools.__main__.app)
    study = invoke("run", "mine", "--cost", program=studies.__main__.app)
    for done in (book, study):
        assert done.exit_code == 1, done.output
        assert done.exception is None or isinstance(done.exception, SystemExit)
        assert len(done.stderr.splitlines()) == 1, done.stderr
        assert "mine.yml" in done.stderr
    assert not Path("owned").exists()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ("execute 02 -p n_items [1,2", "n_items: '[1,2' is not valid YAML"),
        ("execute 02 -p n_items 2026-13-45", "n_items: '2026-13-45' is not valid YAML"),
        ("execute 02 -o thinking={", "thinking: '{' is not valid YAML"),
        (
            "audit --judge simulated:unbiased -o effort=[",
            "effort: '[' is not valid YAML",
        ),
        ("audit --judgments mine.json --columns a=[", "a: '[' is not valid YAML"),
    ],
)
def test_a_bad_value_is_one_line_that_names_it(arguments, said, here):
    done = invoke(*shlex.split(arguments))
    assert (done.exit_code, said in done.stderr) == (1, True), done.output
    assert len(done.stderr.splitlines()) == 1


def test_a_design_as_large_as_a_slip_of_the_keyboard_is_refused_at_once(
    tmp_path, monkeypatch
):
    for make in (
        lambda: rb.fixed(5, 2_000_000_000),
        lambda: rb.shuffled(5, 10**9),
        lambda: rb.balanced(10**9),
        lambda: rb.williams(10**9),
        lambda: rb.Design("descending", 10**9),
    ):
        with pytest.raises(ValueError, match=r"a whole number of \w+ from [12] to 1"):
            make()
    items = rb.load("minibench")
    many = [0.001 * k for k in range(2000)]
    with pytest.raises(
        ValueError, match=r"this plan has 3,600,000,000 requests, more than 20,000"
    ):
        rb.plan(items, rb.fixed(5, 10_000), temperature=many)
    monkeypatch.setenv("RUBRICNB_RESULTS", str(tmp_path / "results"))
    (tmp_path / "params").mkdir()
    judge = "judges: [{spec: 'simulated:unbiased', model: m, licence: none}]"
    plans = "plans: [{dataset: minibench, designs: ['fixed(5, 2000000000)']}]"
    (tmp_path / "params/mine.yml").write_text(f"{judge}\n{plans}")
    done = invoke("run", "mine", program=studies.__main__.app)
    assert (done.exit_code, len(done.stderr.splitlines())) == (1, 1), done.output


ODD = {
    "empty": b"",
    "bytes": bytes(range(256)) * 9,
    "zeros": b"\0" * 4096,
    "half a JSON": b'[{"item_id": "a", "sco',
    "deep JSON": b"[" * 100_000,
    "a number": b"5",
    "half a Parquet": b"PAR1\0\0\0\0PAR1",
    "half a zip": b"PK\x03\x04" + b"\0" * 30,
    "a surrogate": b'[{"item_id": "\\ud800", "score": 1}]',
    "endless numbers": b'[{"item_id": 1, "score": 1e999999}]',
    "a huge integer": b'[{"item_id": 1, "score": ' + b"9" * 5000 + b"}]",
}
DOORS = {
    "judgments": "audit --judgments {} --scale 1 5",
    "path": "audit --judge simulated:unbiased --path {} --rubric rub.json",
    "rubric": "audit --judge simulated:unbiased --path texts.csv --rubric {}",
    "template": "audit --judge simulated:unbiased --template {} --parser json",
    "against": "audit --judgments mine.json --scale 1 5 --against {}",
    "check": "audit --judge simulated:unbiased --check {}",
    "compare": "audit --compare {} {}",
    "compile": "compile {} --judge simulated:grader",
}
ENDINGS = {
    "judgments": ("json", "jsonl", "csv", "parquet", "eval"),
    "path": ("csv", "jsonl", "parquet"),
    "rubric": ("yml", "csv"),
    "template": ("txt",),
    "compile": ("yml",),
}


@pytest.mark.parametrize(
    "part", [slice(1, None, 5), pytest.param(slice(None), marks=pytest.mark.slow)]
)
@pytest.mark.parametrize("door", DOORS)
def test_an_odd_file_is_one_line_at_every_door(door, part, here):
    Path("folder.csv").mkdir()
    files = [f"{i}.{e}" for i in range(len(ODD)) for e in ENDINGS.get(door, ("json",))][
        part
    ]
    for name in files:
        Path(name).write_bytes(list(ODD.values())[int(name.split(".")[0])])
    for name in [
        *files,
        "folder.csv",
        "texts.csv/x.csv",
        "no such.csv",
        "a\x1b]0;b\x07.csv",
    ]:
        done = invoke(*(part.replace("{}", name) for part in DOORS[door].split()))
        about = (door, name, done.output)
        assert done.exit_code == 1, about
        assert isinstance(done.exception, SystemExit), about
        # a question has a line for each of its readings, and one that says how
        is_question = "questions are open" in done.stderr
        assert is_question or len(done.stderr.strip().splitlines()) == 1, about
        assert "\x1b" not in done.output, about
        assert not Path("audit.html").exists(), about


def test_a_rich_table_of_one_column_type_is_still_read(here):
    pd.DataFrame(json.loads(Path("mine.json").read_text())).to_parquet("mine.parquet")
    assert invoke("audit", "--judgments", "mine.parquet", *SCALE).exit_code == 0


@pytest.fixture
def small_disk(tmp_path):
    """A file system of 256 kB."""
    folder = tmp_path / "small"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", folder]
    if os.geteuid() or subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("mounting a small file system needs a privileged user")
    yield folder
    subprocess.run(["umount", folder], check=True)


def fill_up(folder):
    """Leave no space in a small file system."""
    with suppress(OSError), (folder / "filler").open("wb", buffering=0) as file:
        while True:
            file.write(b"x" * 4096)


def test_a_full_disk_leaves_page_and_numbers_of_one_audit(small_disk, here):
    page = small_disk / "audit.html"
    command = ["audit", "--judgments", "mine.json", *SCALE, "--output", page]
    assert invoke(*command).exit_code == 0
    before = made(small_disk)
    fill_up(small_disk)
    scores = json.loads(Path("mine.json").read_text())
    Path("mine.json").write_text(json.dumps(scores[:-1]))
    done = invoke(*command)
    assert done.exit_code == 1
    assert f"{page.name}" in done.output
    assert "No space left" in done.output
    after = made(small_disk)
    after.pop("filler")
    assert after == before


def test_a_full_disk_leaves_bundle_and_lock_of_one_kind(small_disk):
    path = small_disk / "mine.json"
    rb.rulers.load_bundle("minibench").save(path)
    before = made(small_disk)
    fill_up(small_disk)
    with pytest.raises(OSError, match=r"files from before are whole.*mine"):
        rb.rulers.load_bundle("hanna").save(path)
    after = made(small_disk)
    after.pop("filler")
    assert after == before
    assert rb.rulers.load_bundle(path).lock == rb.rulers.load_bundle("minibench").lock


def test_a_full_disk_leaves_the_reading_that_was_saved(small_disk):
    path = small_disk / "reading.yml"
    table = pd.DataFrame({"item_id": ["a", "b"], "score": [1, 2]})
    rb.reading(table, scale=(1, 5)).save(path)
    before = made(small_disk)
    fill_up(small_disk)
    with pytest.raises(OSError, match=r"files from before are whole.*reading"):
        rb.reading(table, scale=(1, 7)).save(path)
    after = made(small_disk)
    after.pop("filler")
    assert after == before


def test_doctests_leave_the_user_s_store_alone(tmp_path):
    root = Path(__file__).parents[2]
    files = [*(root / "rubricnb").rglob("chapter.py")]
    environment = os.environ | {"HOME": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path)}
    environment.pop("RUBRICNB_STORE", None)
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *files]
    done = subprocess.run(command, cwd=root, env=environment, capture_output=True)
    assert done.returncode == 0, done.stdout
    assert not list(tmp_path.rglob("*.sqlite*"))
