"""The study that anyone with a key can run: what it asks,
and its way there and back.
"""

import json
import re
import shlex
import shutil
import zlib
from importlib.metadata import version
from pathlib import Path

import pandas as pd
import pytest
import yaml
from endpoint import completion, decided, endpoint, sent
from typer.testing import CliRunner

import rubricnb as rb
from rubricnb.core.address import OPENAI, checked
from rubricnb.core.judge import describe
from rubricnb.core.prices import _REASONING_TOKENS
from rubricnb.core.results import results_folder
from studies import __main__ as asking
from studies.contribution import problems, shows
from studies.cost import study_cost
from studies.study import items_of, named, read_study, requests_of

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "book" / "lend-a-key.md"
SCORE = re.compile(r"Score (\d) ?:")


def cli(*arguments):
    return CliRunner().invoke(asking.app, list(map(str, arguments)))


@pytest.fixture
def small(tmp_path, monkeypatch, mirror):
    """The study about fewer texts, in a folder of its own."""
    monkeypatch.setenv("RUBRICNB_RESULTS", str(tmp_path / "results"))
    monkeypatch.setenv("RUBRICNB_STORE", str(tmp_path / "replies.sqlite"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "params").mkdir()

    def write(minibench, hanna):
        content = yaml.safe_load((ROOT / "params/option_order.yml").read_text())
        for part, n in zip(content["plans"], (minibench, hanna), strict=True):
            part["n_items"] = n
        (tmp_path / "params/option_order.yml").write_text(yaml.safe_dump(content))
        content = yaml.safe_load((ROOT / "params/decision_order.yml").read_text())
        for part in content["plans"]:
            part["n_items"] = minibench
        (tmp_path / "params/decision_order.yml").write_text(yaml.safe_dump(content))

    return write


def takes_the_first(payload, headers):
    """A judge whose score is mostly the one that the rubric lists first,
    whatever the text; asked typed questions, a decision model that does the same.
    """
    if "questions" in payload:
        return 200, decided(payload, [0.6, 0.1, 0.1, 0.1, 0.1]), {}
    prompt = payload["messages"][-1]["content"]
    scores = SCORE.findall(prompt)
    said = f"Fine. [RESULT] {scores[zlib.crc32(prompt.encode()) % 8 == 0]}"
    return 200, completion(said) | {"model": payload["model"]}, {}


@pytest.fixture
def hosted(monkeypatch):
    """OpenAI, as far as this machine is concerned."""
    with endpoint(takes_the_first) as (url, received):
        monkeypatch.setenv("OPENAI_API_KEY", "a-key")
        monkeypatch.setattr(
            "rubricnb.engines.endpoint.checked",
            lambda address: (url, OPENAI) if OPENAI in address else checked(address),
        )
        yield url, received


def test_a_hundred_items_of_whole_prompts_are_asked_in_three_ways(mirror):
    parts = read_study("option_order", named("openai:gpt-4.1"))["plans"]
    items = {part["dataset"]: items_of(part) for part in parts}
    assert {name: len(frame) for name, frame in items.items()} == {
        "minibench": 60,
        "hanna": 40,
    }
    assert items["minibench"].groupby("group_id").size().tolist() == [5] * 12
    assert items["hanna"]["cluster_id"].nunique() == 40
    assert items["hanna"]["human"].notna().all()
    for part in parts:
        reads = requests_of(part).groupby("design", observed=True).size()
        assert (reads == 10 * len(items[part["dataset"]])).all()
        assert set(reads.index) == {"balanced", "fixed", "placebo"}


def test_the_prices_on_the_page_are_those_that_are_estimated(mirror):
    text = PAGE.read_text("utf-8")
    rows = re.findall(r"^\| `(\S+)` \| ([\d.]+) \| ([\d.]+) \| ([\d.]+) \|", text, re.M)
    assert len(rows) == 8
    cost = study_cost("option_order", named("openai:gpt-4.1"))
    # one order of `fixed` is among the balanced
    assert cost["calls"].sum() == 100 * (10 + 9 + 10)
    assert f"{cost['calls'].sum():,} short calls" in text
    sent, received = cost[["prompt_tokens", "completion_tokens"]].sum()
    known = re.search(r"genai-prices ([\d.]+\d)", text)[1] == version("genai-prices")
    for spec, *said in rows:
        thoughts = 2900 * _REASONING_TOKENS["medium"] if "gpt-5" in spec else 0
        assert said[:2] == [
            f"{sent / 1e6:.1f}",
            f"{(received + thoughts) / 1e6:.1f}",
        ], spec
        if known:
            most = describe(spec).price.of(sent, 0, received + thoughts)
            assert float(said[2]) == pytest.approx(most, abs=0.051), spec


def test_without_a_judge_the_study_says_how_to_name_one(small):
    small(15, 6)
    for command in (
        ["run", "option_order", "--cost"],
        ["batch", "export", "option_order", "b"],
    ):
        done = cli(*command)
        assert done.exit_code == 1
        assert (
            "option_order.yml names no judge: add --judge openai:MODEL" in done.output
        )


def test_a_judge_of_the_command_line_takes_the_place_of_the_file_s_where_that_can_be():
    [own] = read_study("gemma", named("vllm:checkpoints/gemma-3-270m"))["judges"]
    assert own["conditions"] == {"prompt_format": "plain"}  # as the file has it
    [other] = read_study("gemma", named("openai:m"))["judges"]
    assert other == {
        "spec": "openai:m",
        "model": "m",
        "licence": "its provider's terms",
    }
    assert read_study("scoring", named("embedded"))["references"]
    with pytest.raises(
        ValueError, match="asks only the judges it names: add openai:m to it"
    ):
        read_study("scoring", named("openai:m"))


def test_what_a_judge_of_the_command_line_is_asked_with_is_recorded(small, hosted):
    small(15, 6)
    options = ["-o", "temperature=1.0", "-o", "concurrency=4", "--price", "1", "1", "1"]
    done = cli("run", "option_order", "--judge", "openai:m", *options)
    assert done.exit_code == 0, done.output
    folder = results_folder() / "option_order" / "m"
    card = json.loads((folder / "run.json").read_text())
    assert card["conditions"] == {"temperature": 1.0}
    assert {p["temperature"] for p in hosted[1]} == {1.0}
    assert problems(folder) == []


@pytest.mark.slow
def test_a_batch_goes_there_and_back_with_the_price_first_and_a_part_missing(
    small, hosted, capsys
):
    url, received = hosted
    small(90, 6)
    judge = ["--judge", "openai:gpt-4.1"]
    done = cli("batch", "export", "option_order", "batch.jsonl", *judge)
    assert done.exit_code == 0, done.output
    assert not received
    price, half, written = done.output.splitlines()[-3:]
    assert re.search(r"all together: 899 calls, .*US dollars", price)
    assert "half" in half
    assert written == "batch.jsonl: 899 requests"
    lines = Path("batch.jsonl").read_text().splitlines()
    failing = [json.loads(line)["custom_id"] for line in lines[:3]]
    output, error = sent(Path("batch.jsonl"), url, fail=failing)
    whole = output.read_text().splitlines(keepends=True)
    output.write_text("".join(whole[:800]))  # the rest is not ready yet
    done = cli("batch", "import", "option_order", output, error, *judge)
    assert done.output.splitlines()[-1] == "800 answered, 3 failed, 96 missing"
    received.clear()
    done = cli("run", "option_order", *judge)
    assert done.exit_code == 1
    assert "96 requests are in" in done.output
    assert "--release" in done.output
    assert len(received) <= 3
    again = cli("batch", "import", "option_order", output, error, *judge, "--release")
    assert again.exit_code == 0, again.output
    done = cli("run", "option_order", *judge, "--max-calls", "50")
    assert done.exit_code == 1
    assert "stopped after 50 calls" in done.output
    done = cli("run", "option_order", *judge)
    assert done.exit_code == 0, done.output
    assert len(received) == 899 - 800
    folder = results_folder() / "option_order" / "gpt-4.1"
    assert problems(folder) == []
    findings, tables = shows(folder)
    found = findings[findings["dataset"] == "minibench"].set_index("finding")
    assert found["verdict"][["position", "first"]].tolist() == [
        "replicates",
        "replicates",
    ]
    assert found["estimate [95 %]"]["position"] > "0.8"
    assert {"position.csv", "agreement.csv", "ranking.csv"} < set(tables)
    assert "text" not in " ".join(pd.read_parquet(folder / "minibench.parquet").columns)
    assert not [
        p for p in folder.iterdir() if "a-key" in p.read_bytes().decode("latin-1")
    ]


def commands():
    fences = re.findall(r"^```bash\n(.*?)^```", PAGE.read_text("utf-8"), re.M | re.S)
    return [line for text in fences for line in text.splitlines()]


@pytest.mark.slow
def test_every_command_of_the_page_runs_in_its_order(small, hosted):
    url, received = hosted
    small(15, 6)
    done = []
    for line in commands():
        words = shlex.split(
            line.replace("openai:MODEL", "openai:gpt-4.1").replace("MODEL", "gpt-4.1")
        )
        if words[0] in ("export", "git"):
            continue
        assert words[:3] == ["python", "-m", "studies"], line
        before = len(received)
        if words[3:5] == ["batch", "export"]:  # the other way to the same recording
            shutil.rmtree(results_folder())
            for store in Path().glob("replies.sqlite*"):
                store.unlink()
        said = cli(*words[3:])
        stopped = "--max-calls" in words and "stopped after" in said.output
        assert said.exit_code == 0 or stopped, f"{line}: {said.output}"
        if "--cost" in words or words[3] in ("batch", "check"):
            assert len(received) == before  # nothing is sent
        if words[3:5] == ["batch", "export"]:
            sent(Path("batch.jsonl"), url)
        done.append(" ".join(words[3:5]))
    assert {"run option_order", "run decision_order"} < set(done)
    assert {"batch export", "batch import"} < set(done)
    assert done[-1].startswith("check ")
    assert len(rb.recorded("openai:gpt-4.1", "minibench", "option_order")) == 5 * 30
