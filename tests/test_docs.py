"""What the README and the prose pages tell a reader to do works;
tools/lint.py checks the names.
"""

import os
import re
import shlex
import shutil
import subprocess
import sys
import time
from pathlib import Path

import click.testing
import nbformat
import papermill.cli
import pytest
import warm
import yaml
from endpoint import completion, endpoint, sent
from jupyter_client.provisioning import local_provisioner
from typer.main import get_command
from typer.testing import CliRunner

import rubricnb as rb
import rubricnb.auditing
from rubricnb.book.replication import settings
from rubricnb.cli import commands as cli
from rubricnb.core.address import OPENAI, checked
from rubricnb.core.judge import describe
from studies import __main__ as asking
from studies import study
from tools import __main__ as workshop
from tools import building, lint

ROOT = Path(__file__).parents[1]
PROGRAMS = {"rubricnb": cli.app, "studies": asking.app, "tools": workshop.app}


@pytest.fixture
def clone(tmp_path, monkeypatch):
    """A folder that looks like the clone;
    what a command writes does not land in the real one.
    """
    for path in ROOT.iterdir():
        if path.name not in (".git", "_build", "out.ipynb"):
            (tmp_path / path.name).symlink_to(path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("RUBRICNB_STORE", str(tmp_path / "replies.sqlite"))
    return tmp_path


@pytest.mark.slow
@pytest.mark.parametrize(
    "page",
    [
        "README.md",
        "book/quickstart.md",
        "book/own-data.md",
        "book/own-prompt.md",
        "book/guide.md",
    ],
)
def test_python_on_the_page_runs(page, clone, capsys):
    scope = {}
    for _, text in blocks(ROOT / page, "python"):
        exec(compile(text, page, "exec"), scope)
    assert "rb" in scope


@pytest.mark.slow
def test_the_page_on_judgments_from_elsewhere_runs_and_lists_every_recording(
    clone, mirror
):
    page = ROOT / "book/judgments-elsewhere.md"
    scope = {}
    for _, text in blocks(page, "python"):
        exec(compile(text, page.name, "exec"), scope)
    assert set(scope["mine"].columns) > {"score", "status", "template"}
    assert scope["reads"]["replicate"].max() == 3
    text = page.read_text("utf-8")
    for r in rb.recordings().itertuples(index=False):
        row = (
            f"| `{r.name}` | {r.judges} | {r.asked_by} | {r.n_rows:,} | {r.people} | "
            f"{r.licence} |"
        )
        assert f"\n{row}\n" in text
    assert len(re.findall(r"^\| `[\w-]+` \|.* \d{4}", text, re.M)) == len(
        rb.recordings()
    )


@pytest.mark.slow
def test_the_page_on_audits_runs_and_its_gates_pass_a_judge_that_reads(clone, capsys):
    """On minibench the endpoint knows how good a text is meant to be;
    of others it counts words.
    """
    page = clone / "audit.md"  # its first section is run by test_four_ways.py
    before, _, after = (
        (ROOT / "book/audit.md").read_text("utf-8").partition("## Four ways in")
    )
    page.write_text(before + after[after.index("\n## ") :])
    items = rb.load("minibench")
    quality = items.groupby("response").human.mean().round().astype(int).to_dict()

    def answer(payload, headers):
        prompt = payload["messages"][-1]["content"]
        response = prompt.split("###Response to evaluate:\n")[-1].split("\n\n###")[0]
        score = quality.get(response.strip(), 1 + len(response.split()) % 5)
        label = "EDCBA"[score - 1] if "Score A:" in prompt else str(score)
        return (
            200,
            completion(f"Fine. [RESULT] {label}") | {"model": payload["model"]},
            {},
        )

    rows = [f"Question {i}?,{'word ' * (1 + i % 5)},{1 + i % 5}" for i in range(30)]
    (clone / "my_data.csv").write_text("\n".join(["instruction,response,human", *rows]))
    shutil.copy(ROOT / "examples/own-data/my_rubric.yml", clone)
    log = [
        f"t{i},{1 + (i + read) % 5},{read},{1 + i % 5}"
        for i in range(9)
        for read in (1, 2)
    ]
    (clone / "my_scores.csv").write_text("\n".join(["item_id,score,read,human", *log]))
    scope = {}
    for _, text in blocks(page, "python"):
        if "audit.json" not in text:
            exec(compile(text, page.name, "exec"), scope)
    with endpoint(answer) as (url, received):
        for _, text in blocks(page, "bash"):
            for line in text.replace("openai:MODEL", f"openai:m@{url}").splitlines():
                if line.startswith("cp "):
                    shutil.copy(*shlex.split(line)[1:])
                    continue
                done = CliRunner().invoke(cli.app, shlex.split(line)[3:])
                assert done.exit_code == 0, f"{line}: {done.output}"
    assert received
    for _, text in blocks(page, "python"):
        exec(compile(text, page.name, "exec"), scope)
    assert "against" in set(
        rubricnb.auditing.read_audit("then-and-now.json").rows.section
    )


def test_the_sample_audit_is_what_an_audit_writes(clone, capsys):
    recorded = rb.recorded(
        "embedded:qwen2.5-coder-1.5b-instruct", "minibench", "minibench"
    )
    # what an audit asks: five levels, a criterion a call
    one_call_each, _ = settings(recorded)
    found = rb.audit(
        items=rb.load("minibench"), path="sample.html", judgments=one_call_each
    )
    day = r"rubricnb [\w.]+, \d{4}-\d\d-\d\d"
    pages = [
        re.sub(day, "", Path(name).read_text("utf-8"))
        for name in ("sample.html", "book/audit-sample.html")
    ]
    assert pages[0] == pages[1]
    assert "Recorded" in pages[1]
    assert found.sentence in pages[1]


def test_what_the_study_page_plans_can_be_estimated_without_asking_anyone(clone):
    scope = {}
    _, text = blocks(ROOT / "book/running-a-study.md", "python")[0]
    exec(compile(text, "running-a-study", "exec"), scope)
    assert len(scope["requests"]) == 15 * (10 + 5)


def blocks(path, language):
    """Return (runnable, text) of every fenced block of a language."""
    return lint.blocks(path.read_text("utf-8"), language)


def section(page, title):
    """Return the python, yaml and bash blocks of one section."""
    text = lint.section(page.read_text("utf-8"), title)
    return {
        kind: [t for _, t in lint.blocks(text, kind)]
        for kind in ("python", "yaml", "bash")
    }


@pytest.fixture
def hosted(monkeypatch):
    """OpenAI, as far as this machine is concerned."""

    def answer(payload, headers):
        assert payload["messages"]
        return 200, completion("Fine. [RESULT] 2") | {"model": payload["model"]}, {}

    with endpoint(answer) as (url, received):
        monkeypatch.setenv("OPENAI_API_KEY", "a-key")
        monkeypatch.setattr(
            "rubricnb.engines.endpoint.checked",
            lambda address: (url, OPENAI) if OPENAI in address else checked(address),
        )
        yield url, received


@pytest.mark.slow
def test_what_the_study_page_does_with_endpoints_runs(clone, hosted):
    page = ROOT / "book/running-a-study.md"
    scope = {}
    for title in ("From items to judgments", "Endpoints", "Cost and limits"):
        for text in section(page, title)["python"]:
            # the embedded judge's answers are recorded
            exec(compile(text, title, "exec"), scope)
    _, received = hosted
    assert (scope["judgments"]["status"] == "ok").all()
    assert len(received) == scope["judgments"]["key"].nunique() == 15 * (10 + 5)


@pytest.mark.slow
def test_what_the_study_page_does_with_batches_runs(clone, hosted, monkeypatch):
    url, received = hosted
    monkeypatch.setenv("RUBRICNB_RESULTS", str(clone / "own/results"))
    page = ROOT / "book/running-a-study.md"
    blocks = section(page, "Batch files")
    (clone / "own/params").mkdir(parents=True)
    (clone / "own/results").mkdir()
    for name, text in zip(("mine", "mine-vllm"), blocks["yaml"], strict=True):
        (clone / f"own/params/{name}.yml").write_text(text)
    limits = section(page, "Cost and limits")["bash"]
    for line in "".join([*blocks["bash"], *limits]).splitlines():
        command = shlex.split(line)
        if command[:2] == ["vllm", "run-batch"]:  # for real in tests/vllm
            assert Path(command[command.index("-i") + 1]).exists()
            continue
        done = CliRunner().invoke(PROGRAMS[command[2]], command[3:])
        assert done.exit_code == 0, done.output
        if command[3:5] == ["batch", "export"]:
            before = len(received)
            sent(clone / command[-1], url)
            assert len(received) > before
            before = len(received)
        assert len(received) == before  # only the batch itself asks
    for name in ("mine", "mine-vllm"):
        assert list((clone / f"own/results/{name}").rglob("minibench.parquet"))


# beginning of a command on the study page → why it is not run from there
RUN_ELSEWHERE = {
    "vllm serve": "needs a GPU",
    "llama-server": (
        "llama.cpp's own program; its engine is in tests/engines/test_embedded.py"
    ),
    "vllm run-batch": "in tests/vllm/test_batch.py, with the engine",
    "python -m rubricnb execute": (
        "takes minutes with a judge; in tests/cli/test_cli.py with another"
    ),
    "python -m tools book": (
        "`make book` takes minutes; its parameter file is read below"
    ),
}


def test_every_command_on_the_study_page_is_run_or_has_a_reason_not_to_be():
    page = ROOT / "book/running-a-study.md"
    run = "".join(
        "".join(section(page, title)["bash"])
        for title in ("Batch files", "Cost and limits")
    )
    lines = "".join(text for _, text in blocks(page, "bash")).splitlines()
    assert [
        x for x in lines if x not in run and not x.startswith(tuple(RUN_ELSEWHERE))
    ] == []
    assert [c for c in RUN_ELSEWHERE if not any(x.startswith(c) for x in lines)] == []


SHELL = [
    (line, marked)
    for name in ("README.md", "book/quickstart.md")
    for marked, text in blocks(ROOT / name, "bash")
    for line in text.splitlines()
]
RUNNABLE = [line for line, marked in SHELL if marked]
ENDPOINT = [line for line, marked in SHELL if "openai:" in line]
NOT_RUN = {
    "make book": "by a workflow",
    "make test": "by a workflow; this is a part of it",
    ". .venv/bin/activate": "these tests run in an environment of that kind",
    "export OPENAI_API_KEY=...": "the dots stand for a key",
}


def do(line, folder):
    """Run a shell line of a page as it stands there."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        shlex.split(line),
        cwd=folder,
        env={**os.environ, "PATH": path},
        capture_output=True,
        text=True,
        timeout=900,
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]


def do_here(line):
    """Run a shell line of a page in this process, its kernel forked from a warm one.

    Chapter 05 simulates fewer studies than it does for readers.
    """
    command = [
        *shlex.split(line),
        *(["-p", "n_copies", "2"] if "05_position_bias" in line else ()),
    ]
    app, rest = {
        "papermill": (papermill.cli.papermill, command[1:]),
        "python": (get_command(cli.app), command[3:]),
    }[command[0]]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(local_provisioner, "launch_kernel", warm.launch)
        done = click.testing.CliRunner().invoke(app, rest)
    assert done.exit_code == 0, done.output[-2000:]


@pytest.mark.slow
@pytest.mark.parametrize("line", RUNNABLE, ids=str)
def test_command_marked_runnable_runs(line, clone):
    # papermill's line starts a process and more
    if line.startswith("python -m rubricnb execute"):
        do_here(line)
        (written,) = clone.glob("0*.ipynb")
        outputs = [
            o
            for cell in nbformat.read(written, 4).cells
            for o in cell.get("outputs", [])
        ]
        assert [o.text for o in outputs if o.get("name") == "stderr"] == []
    else:
        do(line, clone)


@pytest.mark.slow
@pytest.mark.parametrize("line", ENDPOINT, ids=str)
def test_command_with_an_endpoint_runs_with_one_on_this_machine(line, clone):
    def answer(payload, headers):
        score = str(1 + len(str(payload["messages"])) % 5)
        said = completion(f"Fine. [RESULT] {score}")
        if payload.get("logprobs"):
            label = f" {score}"
            said = completion(
                f"[RESULT]{label}", tops=[("[RESULT]", {}), (label, {label: 0.9})]
            )
        return 200, said | {"model": payload["model"]}, {}

    model = re.search(r"openai:([\w.-]+)", line)[1]
    with endpoint(answer) as (url, received):
        do_here(re.sub(r"(openai:[\w.-]+)(@\S+)?", rf"\1@{url}", line))
    assert {payload["model"] for payload in received} == {model}


def test_every_command_is_run_or_says_why_not():
    assert {line for line, _ in SHELL} == {*RUNNABLE, *ENDPOINT, *NOT_RUN}
    assert any("papermill" in line for line in RUNNABLE)
    workflow = (ROOT / ".github/workflows/test.yml").read_text("utf-8")
    for line, reason in NOT_RUN.items():
        if "by a workflow" in reason:
            assert f"run: {line}\n" in workflow


def test_the_parameter_file_on_the_study_page_is_accepted(tmp_path):
    [text] = [
        t
        for _, t in blocks(ROOT / "book/running-a-study.md", "yaml")
        if "defaults:" in t
    ]
    (tmp_path / "mine.yml").write_text(text)
    plan = building.parameter_file(tmp_path / "mine.yml")
    assert plan["05_position_bias"]["n_items"] == 60


@pytest.mark.parametrize("number", [0, 1])
def test_the_studies_on_the_gpu_page_are_accepted(number, tmp_path, monkeypatch):
    text = blocks(ROOT / "book/gpu-cluster.md", "yaml")[number][1]
    (tmp_path / "params").mkdir()
    (tmp_path / "params/mine.yml").write_text(text)
    monkeypatch.setenv("RUBRICNB_RESULTS", str(tmp_path / "results"))
    content = study.read_study("mine")
    assert describe(content["judges"][0]["spec"]).kind == "vllm"
    assert [study.design_of(d).name for d in content["plans"][0]["designs"]] == [
        "balanced",
        "fixed",
    ]


@pytest.mark.in_turn
def test_ray_knows_every_command_on_the_gpu_page():
    pytest.importorskip("ray", reason="Ray is not installed: make env")
    text = (ROOT / "book/gpu-cluster.md").read_text("utf-8")
    asked = set(re.findall(r"ray (start|get-auth-token)((?: --[\w=:-]+)+)", text))
    assert {name for name, _ in asked} == {"start", "get-auth-token"}
    for name, options in asked:
        known = subprocess.run(
            [Path(sys.executable).with_name("ray"), name, "--help"],
            capture_output=True,
            text=True,
        ).stdout
        assert [o for o in re.findall(r"--[a-z-]+", options) if o not in known] == []


STUDY = """
import sys, time
from pathlib import Path
from rubricnb.core.contract import Reply
from rubricnb.core.store import Store
with Store() as store:
    for n in range(len(store), int(sys.argv[1])):
        store.put(f"k{n}", "judge", Reply(n, "Fine. [RESULT] 2" * 20))
    Path(sys.argv[2]).write_text(str(len(store)))
    time.sleep(float(sys.argv[3]))
"""


@pytest.mark.slow
def test_the_slurm_job_keeps_every_reply_however_its_studies_end(tmp_path):
    """Job 1 is told to stop, 2 ends by itself, 3 opens what they have kept."""
    job = blocks(ROOT / "book/gpu-cluster.md", "bash")[-1][1]
    (tmp_path / "bin").mkdir()
    (tmp_path / "study.py").write_text(STUDY)
    # the study is ours, everything else is the real Python
    python = tmp_path / "bin/python"
    python.write_text(
        f'#!/bin/sh\nif [ "$1" = -c ]; then exec {sys.executable} "$@"; fi\n'
        f"exec {sys.executable} {tmp_path}/study.py $REPLIES {tmp_path}/stored "
        f"$SECONDS_MORE\n"
    )
    python.chmod(0o755)
    local = tmp_path / "rubricnb-7"
    for replies, seconds, status in ((200, 60, 143), (1000, 0, 0), (0, 0, 0)):
        environment = os.environ | {
            "PATH": f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}",
            "SCRATCH": str(tmp_path / "shared"),
            "SLURM_TMPDIR": str(tmp_path),
            "SLURM_JOB_ID": "7",
            "REPLIES": str(replies),
            "SECONDS_MORE": str(seconds),
        }
        (tmp_path / "stored").unlink(missing_ok=True)
        running = subprocess.Popen(["bash", "-c", job], env=environment)
        wait_for((tmp_path / "stored").exists)
        if seconds:
            journal = (local / "replies.sqlite-wal").read_bytes()
            running.terminate()
        assert running.wait(timeout=300) == status
        # Queued again on this machine, the next job finds what an earlier one has left.
        (local / "replies.sqlite-wal").write_bytes(journal)
    assert (tmp_path / "stored").read_text() == "1000"
    assert [path.name for path in (tmp_path / "shared/rubricnb-store").iterdir()] == [
        "replies.sqlite"
    ]


def wait_for(condition, seconds=300):
    for _ in range(10 * seconds):
        if condition():
            return
        time.sleep(0.1)
    raise AssertionError(f"not within {seconds} s")


def test_no_redirect_replaces_a_page():
    """The extension writes a redirect over a page of its name without a word."""
    config = yaml.safe_load((ROOT / "_config.yml").read_text("utf-8"))
    sources = [
        path
        for folder in ("book", "notebooks")
        for path in (ROOT / folder).glob("*.md")
    ]
    pages = {path.relative_to(ROOT).with_suffix("").as_posix() for path in sources}
    old = {
        name.removesuffix(".html") for name in config["sphinx"]["config"]["redirects"]
    }
    assert old
    assert not old & pages
