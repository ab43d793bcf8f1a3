"""params/paper_study.yml asks what the paper asked, as far as its text says."""

import pytest

from rubricnb.judging.fitting import stand_in
from rubricnb.judging.profiles import profiles
from rubricnb.judging.study import design_of, plans_for, read_study


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


def test_the_calls_come_near_the_papers_number(study):
    total = sum(calls(p) for judge in study["judges"] for p in plans_for(judge, study["plans"]))
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


def test_every_part_is_read_as_the_paper_reads_it(study):
    """From text: a forced label would leave a judge that thinks no thoughts, in Setting 2 too."""
    assert {part["readout"] for part in study["plans"]} == {"feedback"}
