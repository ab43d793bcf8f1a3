"""Small parts that judges and runs are made of."""

from dataclasses import replace

import numpy as np

from rubricnb.core.judge import describe, slug_of
from rubricnb.core.progress import Progress
from rubricnb.engines.endpoint import slug
from rubricnb.engines.generative import Batch, answer, ordering_tables
from rubricnb.engines.profiles import Profile


def test_ray_only_says_where_a_judge_runs():
    told = [describe(f"{where}vllm:google/gemma-3-27b-it") for where in ("", "ray:")]
    assert told[0] == replace(told[1], spec=told[0].spec, slug=told[0].slug)
    assert (
        slug_of("ray:embedded")
        == slug_of("embedded")
        == "smollm2-135m-instruct-embedded"
    )
    assert slug_of("openai:gpt-4.1") == "openai:gpt-4.1"  # of whom nothing is recorded


def test_a_model_s_name_becomes_one_fit_for_a_file():
    assert slug("google/gemma-3-27b-it") == "gemma-3-27b-it"
    assert slug("模型") == "model-fede1c7c"


def test_progress_ends_with_one_line(capsys):
    with Progress(2, "judging") as progress:
        progress.step()
        progress.step("60 % of tokens from the cache")
    assert (
        capsys.readouterr().out
        == "judging: 2 of 2 in 00:00; 60 % of tokens from the cache\n"
    )


def test_a_judge_without_noise_takes_the_option_of_the_human_rating():
    assert ordering_tables(
        Profile("plain"), ("2-3-1", "3-2-1"), 3
    ).direction.tolist() == [1, -1]
    one = np.zeros(1, np.uint64)
    batch = Batch(
        ("3-1-2",),
        np.array([0]),
        np.array([3]),
        one,
        one,
        one,
        one,
        np.array([np.nan]),
        quality=np.ones(1),
        wording=one,
        labels=np.array([0]),
        reference=np.array([np.nan]),
        temperature=np.zeros(1, np.float32),
        replicate=one,
    )
    sure = Profile("sure", human_weight=1, text_error=0, item_error=0, order_noise=0)
    # score 1 stands second
    assert answer(sure, 0, batch, np.array([False])).position == [1]
