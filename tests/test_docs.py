"""What the README and the prose pages tell a reader to do works, and what they name exists."""

import ast
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
from rubricnb import book, cli, frames
from rubricnb.judging import registry
from rubricnb.judging.address import OPENAI, checked
from rubricnb.replication import settings
from studies import __main__ as asking
from studies import study
from tools import __main__ as workshop
from tools import building

ROOT = Path(__file__).parents[1]
DOCS = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")),
    *sorted((ROOT / "book").rglob("*.md")),
]
PROGRAMS = {"rubricnb": cli.app, "studies": asking.app, "tools": workshop.app}
FENCE = re.compile(r"^(<!-- runnable -->\n)?```(bash|python|yaml)\n(.*?)^```", re.M | re.S)


def blocks(path, language):
    """Return (runnable, text) of every fenced block of a language."""
    found = FENCE.findall(path.read_text("utf-8"))
    return [(bool(marked), text) for marked, kind, text in found if kind == language]


def commands():
    """Return every shell line of the documents, and every command in the running text."""
    for path in DOCS:
        text = path.read_text("utf-8")
        for _, block in blocks(path, "bash"):
            for line in block.splitlines():
                yield path, line
        for code in re.findall(r"`([^`\n]+)`", FENCE.sub("", text)):
            if code.startswith(("make ", "python -m ", "papermill ")):
                yield path, code


def names(pages, language="python"):
    return [
        pytest.param(text, id=f"{page.stem}-{index}")
        for page in pages
        for index, (_, text) in enumerate(blocks(page, language))
    ]


@pytest.fixture
def clone(tmp_path, monkeypatch):
    """A folder that looks like the clone; what a command writes does not land in the real one."""
    for path in ROOT.iterdir():
        if path.name not in (".git", "_build", "out.ipynb"):
            (tmp_path / path.name).symlink_to(path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("RUBRICNB_STORE", str(tmp_path / "replies.sqlite"))
    return tmp_path


@pytest.mark.slow
@pytest.mark.parametrize(
    "page",
    ["README.md", "book/quickstart.md", "book/own-data.md", "book/own-prompt.md", "book/guide.md"],
)
def test_python_on_the_page_runs(page, clone, capsys):
    scope = {}
    for _, text in blocks(ROOT / page, "python"):
        exec(compile(text, page, "exec"), scope)
    assert "rb" in scope


@pytest.mark.slow
def test_the_page_on_judgments_from_elsewhere_runs_and_lists_every_recording(clone, mirror):
    page = ROOT / "book/judgments-elsewhere.md"
    scope = {}
    for _, text in blocks(page, "python"):
        exec(compile(text, page.name, "exec"), scope)
    assert set(scope["mine"].columns) > {"score", "status", "template"}
    assert scope["reads"]["replicate"].max() == 3
    text = page.read_text("utf-8")
    for r in rb.recordings().itertuples(index=False):
        row = (
            f"| `{r.name}` | {r.judges} | {r.asked_by} | {r.n_rows:,} | {r.people} | {r.licence} |"
        )
        assert f"\n{row}\n" in text
    assert len(re.findall(r"^\| `[\w-]+` \|.* \d{4}", text, re.M)) == len(rb.recordings())


@pytest.mark.slow
def test_the_page_on_audits_runs_and_its_gates_pass_a_judge_that_reads(clone, capsys):
    """On minibench the endpoint knows how good a text is meant to be; of others it counts words."""
    page = clone / "audit.md"  # its first section is run by test_four_ways.py
    before, _, after = (ROOT / "book/audit.md").read_text("utf-8").partition("## Four ways in")
    page.write_text(before + after[after.index("\n## ") :])
    items = rb.load("minibench")
    quality = items.groupby("response").human.mean().round().astype(int).to_dict()

    def answer(payload, headers):
        prompt = payload["messages"][-1]["content"]
        response = prompt.split("###Response to evaluate:\n")[-1].split("\n\n###")[0]
        score = quality.get(response.strip(), 1 + len(response.split()) % 5)
        label = "EDCBA"[score - 1] if "Score A:" in prompt else str(score)
        return 200, completion(f"Fine. [RESULT] {label}") | {"model": payload["model"]}, {}

    rows = [f"Question {i}?,{'word ' * (1 + i % 5)},{1 + i % 5}" for i in range(30)]
    (clone / "my_data.csv").write_text("\n".join(["instruction,response,human", *rows]))
    shutil.copy(ROOT / "examples/own-data/my_rubric.yml", clone)
    log = [f"t{i},{1 + (i + read) % 5},{read},{1 + i % 5}" for i in range(9) for read in (1, 2)]
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
    assert "against" in set(rubricnb.auditing.read_audit("then-and-now.json").rows.section)


@pytest.mark.slow
def test_the_sample_audit_is_what_an_audit_writes(clone, capsys):
    recorded = rb.recorded("embedded:qwen2.5-coder-1.5b-instruct", "minibench", "minibench")
    one_call_each, _ = settings(recorded)  # what an audit asks: five levels, a criterion a call
    found = rb.audit(items=rb.load("minibench"), path="sample.html", judgments=one_call_each)
    day = r"rubricnb [\w.]+, \d{4}-\d\d-\d\d"
    pages = [re.sub(day, "", Path(name).read_text("utf-8"))
             for name in ("sample.html", "book/audit-sample.html")]  # fmt: skip
    assert pages[0] == pages[1]
    assert "Recorded" in pages[1]
    assert found.sentence in pages[1]


@pytest.mark.parametrize("page", ["README", "book/index", "book/quickstart", "book/own-data"])
def test_the_sample_audit_is_linked_where_readers_begin(page):
    assert "audit-sample.html" in (ROOT / f"{page}.md").read_text("utf-8")


def test_the_example_log_has_only_columns_that_its_page_explains():
    page = (ROOT / "book/judgments-elsewhere.md").read_text("utf-8")
    header = (ROOT / "examples/own-data/my_scores.csv").read_text("utf-8").splitlines()[0]
    assert [c for c in header.split(",") if f"`{c}`" not in page] == []


def test_what_the_study_page_plans_can_be_estimated_without_asking_anyone(clone):
    scope = {}
    _, text = blocks(ROOT / "book/running-a-study.md", "python")[0]
    exec(compile(text, "running-a-study", "exec"), scope)
    assert len(scope["requests"]) == 15 * (10 + 5)


def section_text(page, title):
    return page.read_text("utf-8").split(f"\n## {title}\n")[1].split("\n## ")[0]


def section(page, title):
    """Return the python, yaml and bash blocks of one section."""
    text = section_text(page, title)
    return {
        kind: [block for _, found, block in FENCE.findall(text) if found == kind]
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
            "rubricnb.judging.openai.checked",
            lambda address: (url, OPENAI) if OPENAI in address else checked(address),
        )
        yield url, received


@pytest.mark.slow
def test_what_the_study_page_does_with_endpoints_runs(clone, hosted):
    page = ROOT / "book/running-a-study.md"
    scope = {}
    for title in ("From items to judgments", "Endpoints", "Cost and limits"):
        for text in section(page, title)["python"]:
            exec(compile(text, title, "exec"), scope)  # the embedded judge's answers are recorded
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


RUN_ELSEWHERE = {  # beginning of a command on the study page → why it is not run from there
    "vllm serve": "needs a GPU",
    "llama-server": "llama.cpp's own program; its engine is in tests/judging/test_embedded.py",
    "vllm run-batch": "in tests/vllm/test_batch.py, with the engine",
    "python -m rubricnb execute": "takes minutes with a judge; in tests/test_cli.py with another",
    "python -m tools book": "`make book` takes minutes; its parameter file is read below",
}


def test_every_command_on_the_study_page_is_run_or_has_a_reason_not_to_be():
    page = ROOT / "book/running-a-study.md"
    run = "".join(
        "".join(section(page, title)["bash"]) for title in ("Batch files", "Cost and limits")
    )
    lines = "".join(text for _, text in blocks(page, "bash")).splitlines()
    assert [x for x in lines if x not in run and not x.startswith(tuple(RUN_ELSEWHERE))] == []
    assert [c for c in RUN_ELSEWHERE if not any(x.startswith(c) for x in lines)] == []


def test_what_the_troubleshooting_list_quotes_is_said_by_the_package():
    said = "\n".join(p.read_text("utf-8") for p in (ROOT / "rubricnb").rglob("*.py"))
    said = re.sub(r'"\s*\n\s*f?"', "", said)
    said = re.sub(r"\{[^{}]*\}", "", said)
    text = section_text(ROOT / "book/running-a-study.md", "Troubleshooting")
    quoted = [
        piece.strip()
        for cell in re.findall(r"^\| (.+?) \|", text, re.M)
        for code in re.findall(r"[`\"]([^`\"]+)[`\"]", cell)
        for piece in re.split(r"…|\d+|https?://\S+|(?<=refused:) ", code)
    ]
    assert len(quoted) > 25
    assert [piece for piece in quoted if len(piece) > 5 and piece not in said] == []


@pytest.mark.parametrize("text", names(DOCS))
def test_every_name_of_the_package_in_a_python_block_exists(text):
    used = {
        node.attr
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Attribute)
        and isinstance(node.value, ast.Name)
        and node.value.id == "rb"
    }
    assert [name for name in used if not hasattr(rb, name)] == []


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
        shlex.split(line), cwd=folder, env={**os.environ, "PATH": path}, capture_output=True,
        text=True, timeout=900,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]


def do_here(line):
    """Run a shell line of a page in this process, its kernel forked from a warm one.

    Chapter 05 simulates fewer studies than it does for readers.
    """
    command = [*shlex.split(line), *(["-p", "n_copies", "2"] if "05_position_bias" in line else ())]
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
    if line.startswith("python -m rubricnb execute"):  # papermill's line starts a process and more
        do_here(line)
        (written,) = clone.glob("0*.ipynb")
        outputs = [o for cell in nbformat.read(written, 4).cells for o in cell.get("outputs", [])]
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
            said = completion(f"[RESULT]{label}", tops=[("[RESULT]", {}), (label, {label: 0.9})])
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


def test_every_make_target_that_is_mentioned_exists():
    makefile = (ROOT / "Makefile").read_text("utf-8")
    targets = set(re.findall(r"^([a-z][\w-]*)\s*:(?!=)", makefile, re.M))
    mentioned = {m[1] for _, line in commands() if (m := re.match(r"make ([a-z][\w-]*)", line))}
    assert mentioned
    assert mentioned - targets == set()


@pytest.mark.parametrize(("package", "app"), PROGRAMS.items())
def test_every_subcommand_that_is_mentioned_exists(package, app):
    known = {c.name or c.callback.__name__ for c in app.registered_commands}
    known |= {group.name for group in app.registered_groups}
    now = [line for path, line in commands() if path.name != "CHANGELOG.md"]  # which tells history
    command = re.compile(rf"python -m {package} ([a-z]+)")
    mentioned = {m[1] for line in now if (m := command.match(line))}
    assert mentioned
    assert mentioned - known == set()


def test_every_parameter_given_to_a_notebook_is_one_it_declares():
    checked = 0
    for path, line in commands():
        notebook = re.search(r"(?:notebooks/|execute )((?:\d\d|[A-Z])_\w+)", line)
        if notebook:
            declared = {p.name for p in book.parameters(notebook[1])}
            given = set(re.findall(r"-p (\w+)", line))
            assert given <= declared, f"{path.name}: {line}"
            checked += len(given)
    assert checked


def test_the_parameter_file_on_the_study_page_is_accepted(tmp_path):
    [text] = [t for _, t in blocks(ROOT / "book/running-a-study.md", "yaml") if "defaults:" in t]
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
    assert registry.judge_class(content["judges"][0]["spec"]).__name__ == "VLLMJudge"
    assert [study.design_of(d).name for d in content["plans"][0]["designs"]] == [
        "balanced", "fixed",
    ]  # fmt: skip


def test_ray_knows_every_command_on_the_gpu_page():
    pytest.importorskip("ray", reason="Ray is not installed: make env")
    text = (ROOT / "book/gpu-cluster.md").read_text("utf-8")
    asked = set(re.findall(r"ray (start|get-auth-token)((?: --[\w=:-]+)+)", text))
    assert {name for name, _ in asked} == {"start", "get-auth-token"}
    for name, options in asked:
        known = subprocess.run(
            [Path(sys.executable).with_name("ray"), name, "--help"], capture_output=True, text=True
        ).stdout
        assert [o for o in re.findall(r"--[a-z-]+", options) if o not in known] == []


STUDY = """
import sys, time
from pathlib import Path
from rubricnb.judging.contract import Reply
from rubricnb.judging.store import Store
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
    python = tmp_path / "bin/python"  # the study is ours, everything else is the real Python
    python.write_text(
        f'#!/bin/sh\nif [ "$1" = -c ]; then exec {sys.executable} "$@"; fi\n'
        f"exec {sys.executable} {tmp_path}/study.py $REPLIES {tmp_path}/stored $SECONDS_MORE\n"
    )
    python.chmod(0o755)
    local = tmp_path / "rubricnb-7"
    for replies, seconds, status in ((200, 60, 143), (1000, 0, 0), (0, 0, 0)):
        environment = os.environ | {
            "PATH": f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}",
            "SCRATCH": str(tmp_path / "shared"), "SLURM_TMPDIR": str(tmp_path),
            "SLURM_JOB_ID": "7", "REPLIES": str(replies), "SECONDS_MORE": str(seconds),
        }  # fmt: skip
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


def test_the_rubric_on_the_own_data_page_is_the_one_to_copy():
    (_, text), *_ = blocks(ROOT / "book/own-data.md", "yaml")
    example = (ROOT / "examples/own-data/my_rubric.yml").read_text("utf-8")
    assert yaml.safe_load(text) == yaml.safe_load(example)


def test_the_example_has_only_columns_that_the_own_data_page_explains():
    page = (ROOT / "book/own-data.md").read_text("utf-8")
    header = (ROOT / "examples/own-data/my_data.csv").read_text("utf-8").splitlines()[0]
    assert [c for c in header.split(",") if f"`{c}`" not in page] == []


def test_every_path_on_the_layout_page_exists_unless_it_is_marked_as_planned():
    page = (ROOT / "book/layout.md").read_text("utf-8")
    found = re.findall(r"`([\w./-]+)`( \(planned\))?", page)
    paths = {
        (path, bool(planned))
        for path, planned in found
        if ("/" in path or "." in path or path == "Makefile")
        and not path.startswith(("NN_", "rb."))
    }
    assert len(paths) > 30
    # A path that is called planned although it exists is a line that has gone stale.
    assert [p for p, planned in sorted(paths) if (ROOT / p).exists() == planned] == []


def test_every_link_of_the_repository_s_documents_leads_somewhere():
    for path in ROOT.glob("*.md"):
        for target in re.findall(r"\]\((?!https?:)([^)#]+)", path.read_text("utf-8")):
            assert (ROOT / target).exists(), f"{path.name}: {target}"


def test_every_published_table_is_on_its_page_once():
    page = (ROOT / "book/published.md").read_text("utf-8")
    shown = re.findall(r"\{published-table\} (\S+)", page)
    files = {p.stem for p in (ROOT / "rubricnb/data/published").glob("*_table*.csv")}
    assert sorted(shown) == sorted(files)


def test_the_pages_about_the_package_document_every_frame_and_every_public_name():
    pages = [p.read_text("utf-8") for p in sorted((ROOT / "book/api").glob("*.md"))]
    data = (ROOT / "book/api/data.md").read_text("utf-8")
    assert re.findall(r"\{frame-columns\} (\w+)", data) == list(frames.FRAMES)
    documented = [m for page in pages for m in re.findall(r"public-names:: ([\w.]+)", page)]
    modules = {"auditing", "checks", "pages", "plots", "prompts", "rulers", "testing"}
    assert set(rb._PUBLIC) | modules <= set(documented)
    index = (ROOT / "book/api.md").read_text("utf-8")
    listed = [m for line in re.findall(r"public-index:: (.+)", index) for m in line.split()]
    assert sorted(listed) == sorted(documented)
    assert len(set(listed)) == len(listed)


def test_every_citation_has_a_reference_and_no_key_stands_twice():
    keys = re.findall(r"^@\w+\{(\w+),", (ROOT / "book/references.bib").read_text("utf-8"), re.M)
    assert len(keys) == len(set(keys))
    pages = [*(ROOT / "book").rglob("*.md"), *(ROOT / "notebooks").glob("*.md")]
    cited = {
        key.strip()
        for page in pages
        for group in re.findall(r"\{cite(?::\w+)?\}`([^`]+)`", page.read_text("utf-8"))
        for key in group.split(",")
    }
    assert cited
    assert cited - set(keys) == set()


def test_the_version_is_the_same_everywhere():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text("utf-8"))
    assert citation["version"] == rb.__version__
    assert f'version = "{rb.__version__}"' in (ROOT / "pyproject.toml").read_text("utf-8")


def test_every_piece_of_advice_names_a_chapter():
    page = (ROOT / "book/guide.md").read_text("utf-8")
    advice = re.findall(r"^(?:\d\. |\* |\| (?!report |---)).+", page, re.M)
    assert len(advice) > 20
    assert [line for line in advice if "{doc}`../notebooks/" not in line] == []


def test_a_default_judge_reaches_no_page_that_only_reads_recordings(tmp_path):
    """`judge` of the defaults is whom one asks; chapter 27 asks nobody."""
    (tmp_path / "mine.yml").write_text("defaults: {judge: 'openai:m'}")
    plan = building.parameter_file(tmp_path / "mine.yml")
    assert "judge" not in plan.get("27_results", {})
    assert plan["05_position_bias"]["judge"] == "openai:m"
