import json

import pandas as pd
import pytest

import rubricnb as rb
from rubricnb.judging.results import judges
from rubricnb.rulers import recorded_grades
from studies.gradings import record_gradings
from studies.study import _GRADING_KEYS

STUDY = """
judges: [{spec: "simulated:grader", model: a simulated grader, licence: none}]
gradings:
  - {dataset: minibench, n_items: 30, methods: [rulers, dhs]}
  - {dataset: minibench, n_items: 15, variants: [paraphrased], units: [sentences, whole]}
  - {dataset: minibench, n_items: 15, methods: [dhs], design: "balanced(5)"}
"""


@pytest.fixture
def clone(tmp_path, monkeypatch):
    monkeypatch.setenv("RUBRICNB_RESULTS", str(tmp_path / "results"))
    (tmp_path / "params").mkdir()
    (tmp_path / "results").mkdir()
    (tmp_path / "params" / "rulers.yml").write_text(STUDY)
    return tmp_path


def test_what_is_recorded_comes_back_without_any_text(clone):
    (folder,) = record_gradings(store=clone / "store.sqlite")
    found = recorded_grades("simulated:grader", "minibench")
    counts = found.scores.groupby(["method", "variant", "units"], observed=True).size()
    assert counts.to_dict() == {
        ("rulers", "standard", "sentences"): 30,
        ("rulers", "paraphrased", "sentences"): 15,
        ("rulers", "paraphrased", "whole"): 15,
        ("dhs", "standard", "sentences"): 30 + 150,
    }
    parts = [recorded_grades("simulated:grader", "minibench", d) for d in ("single", "balanced")]
    assert [len(part.scores) for part in parts] == [90, 150]
    assert [len(frame) for frame in found] == [
        sum(map(len, frames)) for frames in zip(*parts, strict=True)
    ]
    assert set(found.scores.source) == {"recorded"}
    assert "text" not in found.evidence
    clusters = found.scores.groupby("text_id").cluster_id.first()
    assert (found.evidence.cluster_id == found.evidence.text_id.map(clusters)).all()
    texts = rb.load("minibench", n_items=30).response
    for path in folder.glob("*.parquet"):
        written = pd.read_parquet(path).astype(str)
        for text in texts:
            assert not written.map(lambda cell, t=text: t[:20] in str(cell)).any(axis=None)
    card = json.loads((folder / "run.json").read_text())
    assert card["datasets"]["minibench"]["texts"] == 10
    assert judges().slug.tolist() == ["simulated:grader"]


def test_a_recording_is_no_run_of_judgments(clone):
    record_gradings(store=clone / "store.sqlite")
    with pytest.raises(FileNotFoundError, match="no recorded run"):
        rb.recorded("simulated:grader", "minibench")


def test_the_study_of_the_clone_can_be_read():
    import yaml

    from rubricnb.judging.results import results_folder
    from rubricnb.rulers import load_bundle
    from rubricnb.rulers.methods import METHODS

    content = yaml.safe_load((results_folder().parent / "params/rulers.yml").read_text("utf-8"))
    for part in content["gradings"]:
        assert set(part) <= _GRADING_KEYS
        assert set(part.get("methods", ["rulers"])) <= set(METHODS)
        bundle = load_bundle(part.get("bundle", part["dataset"]))
        for variant in part.get("variants", []):
            bundle.in_variant(variant)
