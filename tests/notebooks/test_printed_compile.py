"""The command that chapter 15 prints compiles the example rubric,
with every part of Figure 4.
"""

import json
import shutil

from commands import ROOT, printed
from endpoint import completion, endpoint
from typer.testing import CliRunner

from rubricnb.cli.commands import app
from rubricnb.rulers.bundle import load_bundle


def written(payload, headers):
    """A judge that writes what the schema asks for, and no more."""
    asked = payload["response_format"]["json_schema"]["schema"]["properties"]
    traits, items = (asked[part]["properties"] for part in ("taxonomy", "checklist"))
    (minimum,) = asked["evidence_rules"]["properties"]["min_evidence"]["enum"]
    document = {
        "taxonomy": {trait: {"definition": f"What {trait} asks."} for trait in traits},
        "checklist": {
            item: {"trait": [*traits][k % len(traits)], "text": f"Says {item}."}
            for k, item in enumerate(items)
        },
        "evidence_rules": {"min_evidence": minimum},
    }
    return 200, completion(json.dumps(document)), {}


def test_the_printed_command_compiles_the_example(tmp_path, monkeypatch):
    (command,) = printed("15_locking_rubrics", "python -m rubricnb compile")
    shutil.copytree(ROOT / "examples" / "own-data", tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    monkeypatch.setenv("RUBRICNB_STORE", str(tmp_path / "replies.sqlite"))
    words = list(command.words[3:])
    with endpoint(written) as (url, received):
        words[words.index("--judge") + 1] = f"openai:m@{url}"
        done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, done.output
    prompt, reworded = (payload["messages"][-1]["content"] for payload in received)
    assert "Define EXACTLY 2 traits:\nT1: remedy\nT2: tone\n" in prompt
    assert "Calibration Anchors: We are sorry that you had to wait." in prompt
    assert "evidence_rules.min_evidence must be 2." in prompt
    assert "Is the customer's issue solved" in reworded
    bundle = load_bundle(tmp_path / command.output)
    assert len(bundle.anchors) == 2
    assert bundle.in_variant("paraphrased").input_type == "replies"
