"""What the page on GPUs says of the measured GPU is what the benchmark wrote."""

import re
from pathlib import Path

import pandas as pd
import pytest

from rubricnb.core.results import results_folder

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "book/gpu-cluster.md").read_text("utf-8")


@pytest.fixture(scope="module")
def arms():
    table = pd.read_csv(results_folder() / "gpu" / "throughput.csv")
    for name in ("limit", "sent", "computed"):
        table[f"{name}_each"] = table[name] / table["judgments"]
    table["speed"] = table["judgments"] / table["seconds"]
    return table.set_index(["readout", "layout"])


def test_the_table_names_one_card_one_engine_and_the_prefix_cache(arms):
    assert set(arms.card) == {"NVIDIA H100 80GB HBM3"}
    assert set(arms.identity.str.split().str[:2].str.join(" ")) == {"vllm 0.26.0"}
    assert set(arms.cache) == {"on"}
    assert set(arms.judgments) == {800}
    assert set(arms.commit) == {"2b7fc7c8"}


def test_the_page_gives_the_tokens_of_both_orders_of_the_prompt(arms):
    (least, other), (computed, sent) = (
        re.search(
            r"this order of the prompt shares more: (\d+) tokens .*?, against (\d+) "
            r"with",
            PAGE,
        ).groups(),
        re.search(r"computed (\d+) of (\d+) tokens sent", PAGE).groups(),
    )
    label = arms.loc["logprobs"]
    assert int(least) == round(label.limit_each["rubric-last"])
    assert int(other) == round(label.limit_each["rubric-first"])
    assert int(sent) == round(label.sent_each["rubric-last"])
    assert int(computed) == round(label.computed_each["rubric-last"])


def test_what_was_computed_beyond_the_least_is_within_the_bound(arms):
    beyond = arms.computed / arms.limit - 1
    low, high = map(int, re.search(r"computed (\d+) to (\d+) % more", PAGE).groups())
    assert (round(100 * beyond.min()), round(100 * beyond.max())) == (low, high)
    assert beyond.max() <= 0.1


def test_the_page_gives_judgments_per_second_and_the_hours_that_follow(arms):
    low, high, text = map(
        int,
        re.search(
            r"gave (\d+) to (\d+) judgments .* about (\d+) for a written", PAGE
        ).groups(),
    )
    label = arms.drop("feedback").speed
    assert abs(label.min() - low) < 10
    assert abs(label.max() - high) < 10
    assert abs(arms.speed.loc["feedback"].mean() - text) < 10
    assert round(2.1e6 / text / 3600) == 6  # "would take six hours"


def test_the_page_says_how_many_written_answers_never_end():
    said = re.search(
        r"(\d+) to (\d+) % of the written answers .* (\d+) to (\d+) % of all tokens, "
        r"and none of "
        r"them has a score.* only (\d+) of ([\d,]+) answers",
        PAGE,
    )
    low, high, least, most, longer, scored = (
        int(x.replace(",", "")) for x in said.groups()
    )
    paths = (results_folder() / "feedback").glob("*-vllm/*.parquet")
    reads = pd.concat(map(pd.read_parquet, paths), ignore_index=True)
    reads = reads[reads["readout"] == "feedback"].copy()
    reads["endless"] = reads["completion_tokens"] >= 1024
    reads["endless_tokens"] = reads["completion_tokens"].where(reads["endless"], 0)
    groups = reads.groupby(["dataset", "design"], observed=True)
    shares = 100 * groups["endless"].mean()
    tokens = 100 * groups["endless_tokens"].sum() / groups["completion_tokens"].sum()
    assert (round(shares.min()), round(shares.max())) == (low, high)
    assert (round(tokens.min()), round(tokens.max())) == (least, most)
    has_score = reads["status"] == "ok"
    assert not (has_score & reads["endless"]).any()
    assert (
        int((has_score & (reads["completion_tokens"] > 256)).sum()),
        int(has_score.sum()),
    ) == (
        longer,
        scored,
    )
