"""What is recorded is taken, and nothing else: text by text,
under the lock it was made with.
"""

from dataclasses import replace

import pandas as pd
import pytest

import rubricnb as rb
from rubricnb.rulers.bundle import load_bundle
from rubricnb.rulers.grades import Reading, recorded_part
from rubricnb.rulers.grading import grade
from rubricnb.rulers.simulated import SimulatedGrader
from studies.gradings import record_gradings

STUDY = """
judges: [{spec: "simulated:grader", model: a simulated grader, licence: none}]
gradings:
  - {dataset: minibench, n_items: 15, methods: [rulers, dhs]}
  - {dataset: minibench, n_items: 6, methods: [rulers], replicates: 3, temperature: 1.0}
  - {dataset: minibench, n_items: 6, methods: [rulers, dhs], design: "balanced(5)"}
  - {dataset: minibench, n_items: 6, methods: [rulers], design: "shuffled(5, 4)"}
  - {dataset: minibench, n_items: 6, methods: [dhs], design: "fixed(5, 3)"}
"""
BUNDLE = load_bundle("minibench")
FEW, SIX = (rb.load("minibench", n_items=n) for n in (15, 6))
SPEC = "simulated:grader"


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """The folder where the study is recorded."""
    folder = tmp_path_factory.mktemp("recorded")
    (folder / "params").mkdir()
    (folder / "params" / "rulers.yml").write_text(STUDY)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RUBRICNB_RESULTS", str(folder / "results"))
        record_gradings(store=":memory:")
    return str(folder / "results")


@pytest.fixture
def recorded(results, monkeypatch):
    monkeypatch.setenv("RUBRICNB_RESULTS", results)


def sources(grades):
    return set(grades.scores.source.astype(str))


def graded(items=FEW, bundle=BUNDLE, methods="rulers", **options):
    return grade(items, bundle, SPEC, methods, store=":memory:", **options)


def test_without_a_recording_the_judge_is_asked():
    found = graded(methods=["rulers", "dhs"])
    asked = grade(FEW, BUNDLE, SimulatedGrader(), ["rulers", "dhs"], store=":memory:")
    assert sources(found) == {"simulated"}
    pd.testing.assert_frame_equal(
        found.scores.drop(columns="seconds"), asked.scores.drop(columns="seconds")
    )


def test_what_is_recorded_is_what_would_be_answered(recorded):
    found = graded(methods=["rulers", "dhs"])
    again = graded(methods=["rulers", "dhs"], fresh=True)
    assert (sources(found), sources(again)) == ({"recorded"}, {"simulated"})
    key = ["method", "item_id"]
    for part in ("score", "score_ungated", "n_verified"):
        both = found.scores[[*key, part]].merge(again.scores[[*key, part]], on=key)
        assert len(both) == 30
        assert both[f"{part}_x"].equals(both[f"{part}_y"])
    assert len(found.decisions) == 5 * 12
    assert len(found.evidence) == 5 * 6


def test_texts_that_are_not_recorded_are_asked(recorded):
    found = graded(rb.load("minibench", n_items=24)).scores
    by_text = found.groupby("text_id", observed=True).source.unique().map(list)
    assert found.source.value_counts().to_dict() == {"recorded": 15, "simulated": 9}
    assert by_text.map(len).eq(1).all()


@pytest.mark.parametrize(
    "options",
    [
        {"bundle": replace(BUNDLE, min_evidence=1)},
        {"bundle": BUNDLE.in_variant("levels-reversed")},
        {"methods": "mts"},
        {"temperature": 0.5},
        {"temperature": 1.0, "seed": 7, "replicates": 3, "items": FEW.iloc[:6]},
        {"replicates": 2},
    ],
)
def test_another_condition_is_not_what_was_recorded(recorded, options):
    assert sources(graded(**options)) == {"simulated"}


def test_replicates_and_designs_come_back_whole(recorded):
    again = graded(SIX, temperature=1.0, replicates=3)
    fewer = graded(SIX, temperature=1.0, replicates=2)
    turned = graded(SIX, methods="dhs", design=rb.balanced(5))
    assert [sources(g) for g in (again, fewer, turned)] == [{"recorded"}] * 3
    assert [len(g.scores) for g in (again, fewer, turned)] == [18, 12, 60]
    assert set(fewer.scores.replicate) == {1, 2}


@pytest.mark.parametrize("method", ["rulers", "dhs"])
def test_an_order_that_was_not_recorded_by_itself_is_asked(recorded, method):
    """The lock of 1→5 stands among those of the design;
    the single reads were made under 5→1.
    """
    turned = BUNDLE.arranged(levels=[1, 2, 3, 4, 5])
    found = graded(SIX, turned, method)
    assert sources(found) == {"simulated"}
    assert set(found.scores.ordering) == {"1-2-3-4-5"}
    assert sources(graded(SIX, BUNDLE, method)) == {"recorded"}


def test_shuffled_orders_of_another_seed_are_asked(recorded):
    design = rb.shuffled(5, 4)
    same, other = (graded(SIX, design=design, seed=seed) for seed in (0, 7))
    assert [sources(g) for g in (same, other)] == [{"recorded"}, {"simulated"}]
    for text, rows in other.scores.groupby("text_id", observed=True):
        drawn = ["-".join(map(str, order)) for order in design.orderings(text, 7)]
        assert rows.drop_duplicates("ordering_index").ordering.tolist() == drawn


def test_an_order_that_a_design_repeats_comes_back_with_all_its_replicates(recorded):
    found = graded(SIX, methods="dhs", design=rb.fixed(5, 3))
    assert sources(found) == {"recorded"}
    assert sorted(found.scores.replicate.unique()) == [1, 2, 3]


def test_baselines_beside_another_bundle_are_asked(recorded):
    """They carry no lock of their own,
    so what they were graded with must be beyond doubt.
    """
    other = BUNDLE.arranged(criteria=[3, 1, 2])
    assert sources(graded(SIX, other, "dhs")) == {"simulated"}
    six_levels = load_bundle("asap-2")
    assert recorded_part(SIX, SPEC, "dhs", Reading(six_levels)) is None
