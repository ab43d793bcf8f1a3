import json

import pandas as pd
import pytest

import rubricnb as rb
from rubricnb.core.results import judges
from rubricnb.rulers.bundle import load_bundle
from rubricnb.rulers.grades import recorded_grades
from studies.cost import study_cost
from studies.gradings import record_gradings
from studies.study import ENTRIES

STUDY = """
judges: [{spec: "simulated:grader", model: a simulated grader, licence: none}]
gradings:
  - {dataset: minibench, n_items: 30, methods: [rulers, dhs]}
  - {dataset: minibench, n_items: 15, variants: [paraphrased],
     units: [sentences, whole]}
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
    parts = [
        recorded_grades("simulated:grader", "minibench", d)
        for d in ("single", "balanced")
    ]
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
            assert not written.map(lambda cell, t=text: t[:20] in str(cell)).any(
                axis=None
            )
    card = json.loads((folder / "run.json").read_text())
    assert card["datasets"]["minibench"]["texts"] == 10
    assert judges().slug.tolist() == ["simulated:grader"]


def test_a_recording_is_no_run_of_judgments(clone):
    record_gradings(store=clone / "store.sqlite")
    with pytest.raises(FileNotFoundError, match="no recorded run"):
        rb.recorded("simulated:grader", "minibench")


def test_the_study_of_the_clone_can_be_read():
    import yaml

    from rubricnb.core.results import results_folder
    from rubricnb.rulers.bundle import load_bundle
    from rubricnb.rulers.methods import METHODS

    content = yaml.safe_load(
        (results_folder().parent / "params/rulers.yml").read_text("utf-8")
    )
    for part in content["gradings"]:
        assert set(part) <= ENTRIES["gradings"][0]
        assert set(part.get("methods", ["rulers"])) <= set(METHODS)
        bundle = load_bundle(part.get("bundle", part["dataset"]))
        for variant in part.get("variants", []):
            bundle.in_variant(variant)


COMPILED = """
judges: [{spec: "simulated:grader", model: a simulated grader, licence: none}]
compile:
  - {dataset: minibench, bundle: BUNDLE, model: a simulated grader, n_items: 6,
     min_evidence: 1, anchors: ANCHORS}
gradings:
  - {dataset: minibench, bundle: BUNDLE, n_items: 15, variants: [standard, paraphrased]}
"""


@pytest.fixture
def compiling(clone):
    """A study that compiles its bundle, with a scored example."""
    anchors, bundle = clone / "anchors.csv", clone / "data" / "own.json"
    anchors.write_text("text,score\nNo idea.,1\n")
    text = COMPILED.replace("BUNDLE", str(bundle)).replace("ANCHORS", str(anchors))
    (clone / "params" / "rulers.yml").write_text(text)
    return bundle


def test_a_study_compiles_its_bundles_once_and_grades_with_them(
    clone, compiling, capsys
):
    store = clone / "store.sqlite"
    record_gradings(store=store)
    assert capsys.readouterr().out.count("compiled") == 2
    bundle = load_bundle(compiling)
    assert (len(bundle.checklist), bundle.anchors) == (6, (("No idea.", "1"),))
    scores = recorded_grades("simulated:grader", "minibench").scores
    locks = {bundle.in_variant(v).lock[:12] for v in ("standard", "paraphrased")}
    assert set(scores.lock) == locks
    record_gradings(store=store)
    assert "compiled" not in capsys.readouterr().out


def test_a_bundle_that_was_compiled_otherwise_is_not_taken(clone, compiling):
    record_gradings(store=clone / "store.sqlite")
    study = clone / "params" / "rulers.yml"
    study.write_text(study.read_text().replace("n_items: 6", "n_items: 9"))
    with pytest.raises(
        ValueError, match=r"own\.json was compiled with another n_items than"
    ):
        record_gradings(store=clone / "store.sqlite")


def test_the_cost_counts_the_compilation_and_leaves_no_bundle(compiling):
    cost = study_cost("rulers")
    assert cost.calls.tolist() == [2, 10]
    assert not compiling.exists()


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            "model: a simulated grader, n_items",
            "model: nobody, n_items",
            "model 'nobody' is not",
        ),
        ("min_evidence: 1", "minimum: 1", "compile has an unknown entry 'minimum'"),
        ("anchors.csv", "no.csv", r"there is no .*no\.csv"),
    ],
)
def test_what_a_study_cannot_compile_is_named(clone, compiling, old, new, message):
    study = clone / "params" / "rulers.yml"
    assert old in study.read_text()
    study.write_text(study.read_text().replace(old, new))
    with pytest.raises(ValueError, match=message):
        record_gradings(store=clone / "store.sqlite")
