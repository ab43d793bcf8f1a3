"""The studies of the papers in params/ ask what the papers asked,
as far as their texts say.
"""

import pytest

from rubricnb.core.results import results_folder
from rubricnb.engines.fitting import stand_in
from rubricnb.engines.profiles import profiles
from rubricnb.rulers.bundle import load_bundle
from rubricnb.sets.papers import published
from studies.study import design_of, gradings_for, plans_for, read_study


@pytest.fixture(scope="module")
def study():
    return read_study("paper_study")


def calls(part):
    items = stand_in(part["dataset"])
    asked = items["text_id"].nunique() if part.get("setting") == 2 else len(items)
    return asked * sum(design_of(text).k for text in part["designs"])


def test_every_judge_reads_the_reads_that_the_paper_counts(study):
    for judge in study["judges"]:
        for part in plans_for(judge, study["plans"]):
            ks = [design_of(text).k for text in part["designs"]]
            n = design_of(part["designs"][0]).n
            # Setting 1 at n = 5: K = 10 for each strategy; else 2n, also for criteria.
            assert set(ks) == {2 * n}


@pytest.mark.slow
def test_the_calls_come_near_the_papers_number(study):
    total = sum(
        calls(p) for judge in study["judges"] for p in plans_for(judge, study["plans"])
    )
    assert round(total / 2_100_000, 1) == 1.0


def test_each_judge_has_a_profile_for_each_dataset(study):
    for judge in study["judges"]:
        for part in plans_for(judge, study["plans"]):
            assert f"{judge['simulated']}/{part['dataset']}" in profiles()


def test_sweeps_are_asked_of_the_families_that_the_paper_names(study):
    for judge in study["judges"]:
        own = plans_for(judge, study["plans"])
        sampled = {part["temperature"] for part in own if "temperature" in part}
        efforts = {part["effort"] for part in own if "effort" in part}
        reasons = judge["model"].startswith("GPT-OSS")
        assert efforts == ({"low", "medium", "high"} if reasons else set())
        assert sampled == (set() if reasons else {0.3, 0.6, 1.0})


def test_judges_that_think_have_a_parser_and_a_context_with_room_for_it(study):
    for judge in study["judges"]:
        options = judge["options"]
        thinks = judge["model"].startswith("GPT-OSS")
        assert ("reasoning_parser" in options) == thinks
        assert options["max_model_len"] > 4096 + thinks * (1024 + 16_384)


def test_the_scoring_study_shows_each_judge_every_condition_of_the_paper():
    study = read_study("scoring_study")
    printed = set(published("scoring_bias_stability").judge)
    for judge in study["judges"]:
        own = plans_for(judge, study["plans"])
        if judge["model"] == "GPT-4.1":
            assert {part["reference"] for part in own} == {5}
            continue
        assert any(name.startswith(judge["model"]) for name in printed)
        for dataset, references in (
            ("biggen", {"none", 1, 2, 3, 4, 5}),
            ("flask", {"none", 1, 2, 3, 4, 5}),
            ("mt-bench", {"none"}),
            ("vicuna", {"none"}),
        ):
            plans = [
                p
                for p in own
                if p["dataset"] == dataset and p["designs"] != ["fixed(5, 3)"]
            ]
            as_list = [p["reference"] for p in plans]
            shown = {k for r in as_list for k in (r if isinstance(r, list) else [r])}
            assert shown == references
            assert {d for p in plans for d in p["designs"]} == {
                "fixed(5, 1)",
                "descending(5)",
                "shuffled(5, 1)",
            }
            assert {i for p in plans for i in p.get("labels", [])} == {
                "letter",
                "roman",
            }
    assert all(
        part["writer"] != part["reviewer"] != "itself" for part in study["references"]
    )


def test_the_rulers_study_grades_the_papers_sets_by_every_method_and_variant():
    study = read_study("rulers_study")
    assert len(study["judges"]) == published("rulers_qwk").backbone.nunique()
    for judge in study["judges"]:
        own = gradings_for(judge, study["gradings"])
        for dataset in ("asap-2.0", "summhf", "dress"):
            parts = [part for part in own if part["dataset"] == dataset]
            asked = {
                (m, v)
                for p in parts
                for m in p["methods"]
                for v in p.get("variants", ["standard"])
            }
            methods = {"rulers", "dhs", "mts", "autoscore"}
            assert {m for m, v in asked if v == "standard"} - {
                "rulers-unlocked"
            } == methods
            if judge["model"] == "GPT-4o-mini":  # Table 4 and Figure 3
                assert ("rulers-unlocked", "standard") in asked
                assert {v for _, v in asked} == set(load_bundle(dataset).variants)
    for part in study["compile"]:
        ours = load_bundle(part["dataset"])
        assert part["traits"] == [trait.name for trait in ours.traits]
        assert (part["n_items"], part["min_evidence"], part["input_type"]) == (
            len(ours.checklist),
            ours.min_evidence,
            ours.input_type,
        )
    used = {(part["dataset"], part["bundle"]) for part in study["gradings"]}
    assert used == {(part["dataset"], part["bundle"]) for part in study["compile"]}


def test_every_part_is_read_as_the_paper_reads_it(study):
    """From text: a forced label would leave a judge that thinks no thoughts,
    in Setting 2 too.
    """
    assert {part["readout"] for part in study["plans"]} == {"feedback"}


@pytest.fixture(scope="module")
def first_version():
    return read_study("paper_v1_study")


def asked_of(study):
    """(Model, thinking) → its plans."""
    plans = {}
    for judge in study["judges"]:
        for part in plans_for(judge, study["plans"]):
            plans.setdefault(
                (judge["model"], part.get("thinking", "default")), []
            ).append(part)
    return plans


def test_the_first_versions_study_asks_its_seven_judges(first_version):
    named = {"on": "-Think"}
    judges = {
        model + named.get(thinking, "") for model, thinking in asked_of(first_version)
    }
    assert judges == set(published("permutation_vs_repeat").judge)


def test_the_first_version_samples_only_where_qwen3_thinks(first_version):
    for (model, thinking), parts in asked_of(first_version).items():
        warm = {part.get("temperature", 0.0) for part in parts}
        assert warm == ({0.3} if thinking == "on" else {0.0})
        assert thinking == "default" or model.startswith("Qwen3")


def test_the_first_version_reads_every_item_ten_times_in_each_way(first_version):
    """Permutation of all sets, and Repeat of the two that people rated."""
    sizes = published("datasets_2602").set_index("dataset").total
    for parts in asked_of(first_version).values():
        reads = {"balanced": 0, "fixed": 0}
        for part in parts:
            for text in part["designs"]:
                design = design_of(text)
                assert design.k == 10
                reads[design.name] += design.k * len(stand_in(part["dataset"]))
        assert reads == {
            "balanced": 10 * sizes.sum(),
            "fixed": 10 * sizes[["HANNA", "SummEval"]].sum(),
        }
        assert {part["readout"] for part in parts} == {"feedback"}


def test_judges_of_the_first_version_that_think_have_room_for_it(first_version):
    for judge in first_version["judges"]:
        if judge["spec"].startswith("vllm:"):
            assert "reasoning_parser" in judge["options"]
            assert judge["options"]["max_model_len"] > 4096 + 1024 + 16_384


@pytest.mark.parametrize("name", ["paper_study", "paper_v1_study"])
def test_no_plan_has_a_temperature_that_the_paper_does_not_name(name):
    named = {"paper_study": {0.3, 0.6, 1.0}, "paper_v1_study": {0.3}}[name]
    content = read_study(name)
    plans = [
        p for judge in content["judges"] for p in plans_for(judge, content["plans"])
    ]
    assert {part["temperature"] for part in plans if "temperature" in part} == named
    page = (results_folder().parent / "book/errata.md").read_text("utf-8")
    assert "We ask all of them at 0 (`params/paper_study.yml`)" in page
