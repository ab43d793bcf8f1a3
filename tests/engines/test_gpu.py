"""The arithmetic of a study's tokens and hours, against counts made in another way."""

from pathlib import Path

import pytest

from rubricnb.core.prices import _REASONING_TOKENS
from studies.gpu import gpu_hours
from studies.study import read_study


@pytest.fixture(scope="module")
def hours():
    return gpu_hours().set_index("judge")


def test_the_paper_s_study_has_as_many_requests_as_the_paper_says(hours):
    assert hours.requests["all"] == pytest.approx(2_100_000, rel=0.05)  # "roughly 2.1M"


def test_a_row_for_every_judge_and_their_sum(hours):
    assert [*hours.index] == [
        j["model"] for j in read_study("paper_study")["judges"]
    ] + ["all"]
    parts = hours.drop("all")
    assert (parts.hours == parts.hours_shared + parts.hours_writing).all()
    assert parts.sum().to_numpy() == pytest.approx(hours.loc["all"].to_numpy(float))
    assert (parts.calls <= parts.requests).all()
    assert (parts.computed < parts.sent).all()


def test_hours_follow_from_tokens_and_the_gpu(hours):
    one = hours.loc["Gemma-3-27B"]
    seconds = one.sent * 1e6 * 2 * 27.4e9 / (989e12 * 0.4)
    assert one.hours_unshared == pytest.approx(seconds / 3600)
    twice = gpu_hours(tflops=2 * 989, terabytes=2 * 3.35).set_index("judge")
    columns = ["hours_unshared", "hours_shared", "hours_writing"]
    assert twice[columns].to_numpy() * 2 == pytest.approx(hours[columns].to_numpy())


def test_what_the_page_says_about_the_table_is_in_it(hours):
    total = hours.loc["all"]
    assert total.hours_shared < total.hours_unshared / 5
    assert total.hours_shared < total.hours_writing / 5


def test_the_sum_is_held_against_the_papers_as_the_page_says(hours):
    total, largest = hours.hours["all"], hours.hours["GPT-OSS-120B"]
    assert total > 50
    assert largest > total / 2
    assert total - largest < 40
    page = (Path(__file__).parents[2] / "book/gpu-cluster.md").read_text("utf-8")
    low, medium, high = map(_REASONING_TOKENS.get, ("low", "medium", "high"))
    assert (
        f"{low:,} tokens at low effort, {medium:,} at medium, {high:,} at high" in page
    )


def test_a_model_that_thinks_is_counted_with_its_thoughts(hours):
    """Of the same requests it writes more, except where a label is forced upon it."""
    assert hours.calls["GPT-OSS-20B"] < hours.calls["Gemma-3-27B"]
    assert hours.answered["GPT-OSS-20B"] > 4 * hours.answered["Gemma-3-27B"]


def test_a_study_without_measured_prompts_says_what_to_do():
    with pytest.raises(FileNotFoundError, match=r"record_tokens\('minibench'\)"):
        gpu_hours("minibench")
