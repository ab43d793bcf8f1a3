"""The example for inspect_ai with the real package;
its mock model grades by a known rule.
"""

import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

import rubricnb as rb

inspect_ai = pytest.importorskip("inspect_ai")
from inspect_ai.model import ModelOutput, ModelUsage, get_model  # noqa: E402

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples/inspect_ai/rubric_orders.py"


def log_of(grade, folder):
    """The log of the example with a grader that computes its grade from the prompt."""

    def output(messages, tools, tool_choice, config):
        prompt = messages[0].text
        places = [int(k) for k in re.findall(r"^(\d): ", prompt, re.M)]
        answer = ModelOutput.from_content("mockllm/model", grade(prompt, places))
        # else the mock model downloads a tokenizer to count with
        answer.usage = ModelUsage()
        return answer

    grader = get_model("mockllm/model", custom_outputs=output)
    (log,) = inspect_ai.eval(
        EXAMPLE.name,
        model="mockllm/model",
        model_roles={"grader": grader},
        log_dir=str(folder),
        display="none",
    )
    assert log.status == "success"
    return log.location


def judged(log):
    return runpy.run_path(str(EXAMPLE))["judgments"](log)


@pytest.fixture(autouse=True)
def in_its_folder(monkeypatch):
    monkeypatch.chdir(EXAMPLE.parent)


def test_a_grader_that_takes_the_first_line_is_seen(tmp_path):
    log = log_of(lambda prompt, places: f"It is good. GRADE: {places[0]}", tmp_path)
    reads = judged(log)
    assert len(reads) == 10 * reads["item_id"].nunique()
    assert set(reads["design"]) == {"balanced"}
    assert rb.position_bias(reads)["share_1"].tolist() == pytest.approx([1])
    ran = subprocess.run(
        [sys.executable, EXAMPLE, log], capture_output=True, text=True, check=True
    )
    assert re.search(r"share_1 +1\.0", ran.stdout)


def test_a_grader_that_reads_the_text_is_the_same_in_every_order(tmp_path):
    reads = judged(
        log_of(lambda prompt, places: f"GRADE: {len(prompt) % 5 + 1}", tmp_path)
    )
    assert reads.groupby("item_id", observed=True)["score"].nunique().eq(1).all()
    lengths = reads.groupby("item_id", observed=True)["score"].first().astype(float)
    ratings = reads.rated.set_index("item_id")["human"]
    assert rb.agreement(reads, reads.rated)["r"].iloc[0] == pytest.approx(
        lengths.corr(ratings)
    )
    bias = rb.position_bias(reads).iloc[0]
    assert [bias[f"share_{k}"] for k in range(1, 6)] == pytest.approx([0.2] * 5)


@pytest.mark.parametrize("answer", ["I cannot say.", "GRADE: 9"])
def test_an_answer_without_a_level_is_no_score(answer, tmp_path):
    def grade(prompt, places):
        return answer if places[0] == 1 else "GRADE: 3"

    reads = judged(log_of(grade, tmp_path))
    assert set(reads.loc[reads["score"].isna(), "ordering"]) == {
        "1-2-3-4-5",
        "1-5-4-3-2",
    }
    assert reads["score"].dropna().eq(3).all()


def test_the_record_for_the_list_of_extensions_is_whole():
    """Its fields are those of the list (docs/extensions/extensions.yml there)."""
    import yaml

    (record,) = yaml.safe_load(EXAMPLE.with_name("extensions.yml").read_text("utf-8"))
    assert set(record) == {"name", "description", "author", "categories"}
    assert re.fullmatch(r"\[rubricnb\]\(https://\S+\)", record["name"])
    assert record["categories"] == ["Analysis"]
