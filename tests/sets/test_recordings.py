"""What others recorded is read whole, under its right names,
and what fails is counted.
"""

import json
from functools import cache

import numpy as np
import pandas as pd
import pytest

import rubricnb as rb
from rubricnb.files.fetch import pinned
from rubricnb.sets.others import rewardbench, summeval
from rubricnb.sets.sets import sets


@pytest.fixture(scope="module")
def load():
    """Load each set once."""
    return cache(rb.load_recording)


def counts(column):
    found = column.value_counts()
    return found[found > 0].to_dict()


def test_the_list_says_what_one_must_know(mirror):
    table = rb.recordings().set_index("name")
    assert len(table) >= 6
    assert (table[["judges", "licence", "people", "what", "beware"]] != "").all(
        axis=None
    )
    assert (table["megabytes"] > 0).all()
    assert (
        table["source"]
        .str.fullmatch(r"https://raw\.githubusercontent\.com/.+/[0-9a-f]{40}.*")
        .all()
    )
    assert "retracted" in table.loc["scoring-probes", "beware"]


@pytest.mark.in_turn
@pytest.mark.parametrize("name", rb.recordings()["name"])
def test_every_set_has_the_rows_that_the_list_says_under_unequal_keys(
    mirror, load, name
):
    judgments = load(name)
    assert len(judgments) == rb.recordings().set_index("name").n_rows[name]
    assert judgments["request_id"].is_unique
    ok = judgments["status"] == "ok"
    assert judgments["score"].notna().equals(ok)
    if "reason" in judgments:
        assert (judgments["reason"] != "").equals(~ok)
    assert set(judgments["item_id"]) == set(judgments.rated["item_id"])
    assert judgments["cluster_id"].notna().all()


@pytest.mark.in_turn
def test_rewardbench_has_eight_reads_of_four_responses(mirror, load):
    reads = load("rewardbench-reads")
    assert counts(reads["status"]) == {
        "ok": 1_223_741,
        "error": 1_793,
        "refused": 1_728,
        "unparsed": 162,
    }
    assert counts(reads["replicate"]) == dict.fromkeys(range(1, 9), 153_428)
    arms = reads.groupby(
        ["judge", "template", "temperature"], observed=True, dropna=False
    )
    prompts = arms["group_id"].nunique()
    assert len(prompts) == 22
    assert (prompts.min(), prompts.max()) == (1718, 1763)


def test_rewardbench_scores_stand_under_their_keys(mirror, load):
    reads = load("rewardbench-reads")
    file = mirror / rewardbench.FOLDER / "criteria_claude_both_k8.jsonl"
    row = json.loads(file.read_text().splitlines()[700])
    for size, judge in (("full", "claude-sonnet-4.6"), ("mini", "claude-haiku-4.5")):
        for place, candidate in enumerate(("right", "wrong-1", "wrong-2", "wrong-3")):
            own = reads[
                (reads.group_id == f"rewardbench-2/{row['subset']}/{row['id']}")
                & (reads.candidate == candidate)
                & (reads.judge == judge)
                & (reads.template == "criteria")
            ].sort_values("replicate")
            assert own["score"].tolist() == row[f"{size}_scores"][place]


@pytest.mark.parametrize(
    ("form", "text", "score"),
    [
        ("rts", "It flows, but repeats itself. Final score: 4.", {4}),
        ("rts", "It omits the pundits, resulting in a score of 2 out of 5.", {2}),
        ("altrts", "Correct, but dull. Score: 3.5/5", {3.5}),
        ("rts", "Score: 3/5. Style: 4/5. Overall I like it", {3, 4}),
        ("rts", "He scored 4 goals in the 2-1 defeat of 2014.", set()),
        ("stareval", "Four stars. The summary names 3 of the 5 dead.", {4}),
        ("mcq", "E", {5}),
        ("mcq", "A or B", set()),
    ],
)
def test_each_prompt_form_has_its_parser(form, text, score):
    assert summeval.scores_in(text, form) == score


def test_pairs_are_asked_in_both_orders(mirror, load):
    pairs = load("summeval-pairs")
    assert counts(pairs["ordering"]) == {"1-2": 4400, "2-1": 4400}
    assert pairs["candidate"].nunique() == 11
    assert set(pairs["design"]) == {"balanced"}
    wide = pairs.pivot(index="item_id", columns="ordering", values="score")
    assert (wide["1-2"] == wide["2-1"]).mean() == pytest.approx(0.648, abs=5e-4)
    file = (
        mirror
        / summeval.FOLDER
        / "comp_res/gpt-3.5-turbo-0301/M8-M9_coherence_toggle.result"
    )
    row = json.loads(file.read_text().splitlines()[0])
    assert row["resp"] == "B"  # the swapped second summary is the first system's
    own = f"summeval/{row['id']}/coherence/M8-vs-M9"
    assert wide.loc[own, "2-1"] == 1
    no_ties = pairs[pairs["score"] != 1.5]
    assert rb.position_bias(no_ties, by="judge")["n_reads"].tolist() == [len(no_ties)]


@pytest.mark.in_turn
def test_six_judges_share_items_and_experts_with_the_others(mirror, load):
    six, gpt = load("summeval-six"), load("summeval-gpt")
    assert six["judge"].nunique() == 6
    assert six["candidate"].nunique() == 16
    assert len(six.rated) == 6400
    mine = six.rated.set_index("item_id")["human"]
    theirs = gpt.rated.set_index("item_id")["human"]
    items = rb.load("summeval-all").set_index("item_id")["human"]
    assert len(theirs) == 4800
    assert np.allclose(mine.loc[theirs.index], theirs)
    assert np.allclose(items.loc[theirs.index], theirs)
    assert gpt.rated["crowd_ratings"].map(len).unique().tolist() == [5]


def test_hanna_counts_what_is_off_the_scale(mirror, load):
    judgments = load("hanna-llm")
    off = judgments[judgments["status"] == "out_of_range"]
    assert counts(off["judge"]) == {
        "ChatGPT": 14,
        "Beluga-13B": 173,
        "OrcaPlatypus": 203,
        "Llama-13B": 259,
        "Mistral-7B": 402,
    }
    assert (off["raw"] < 1).mean() > 0.9
    people = judgments.rated.set_index("item_id")["human"]
    items = rb.load("hanna").set_index("item_id")["human"]
    # the two columns of the file agree
    assert np.allclose(people.loc[items.index], items)
    assert judgments["candidate"].nunique() == 11


def test_hanna_scores_stand_under_their_keys(mirror, load):
    judgments = load("hanna-llm")
    table = pd.read_csv(mirror / sets()["hanna"]["files"][1]).set_index("Model")
    row = judgments[
        (judgments.item_id == "hanna/096/CTRL/surprise")
        & (judgments.judge == "Mistral-7B")
        & (judgments.template == "prompt-3")
    ]
    assert row["raw"].tolist() == [json.loads(table.loc["CTRL", "Mistral-7B SU 3"])[95]]


def test_gpt4_read_prometheus_three_times(mirror, load):
    judgments = load("prometheus-gpt4")
    differ = (
        judgments.groupby(["dataset", "item_id"], observed=True)["score"].nunique() > 1
    )
    assert differ.groupby("dataset").sum().to_dict() == {"mt-bench": 179, "vicuna": 121}
    assert judgments.groupby("item_id", observed=True).size().eq(3).all()
    median = judgments.groupby("item_id", observed=True)["score"].median()
    gold = judgments.rated.set_index("item_id")["gold"]
    assert (median.loc[gold.index].astype(float) == gold).all()
    assert set(judgments.rated.rubrics["variant"]) == {"standard"}


def test_probes_are_mapped_and_open_models_are_no_judges(mirror, load):
    judgments = load("scoring-probes")
    api = judgments[judgments["dataset"] == "scoring-probes-api"]
    assert sorted(api["judge"].unique()) == [
        "gpt-4o",
        "gpt-4o-mini",
        "llama-3.1-70b-instruct",
    ]
    reversed_ = api[api["template"] == "rubric_order/reversed"]
    assert np.allclose(reversed_["score"] + reversed_["raw"], 6)
    kept = api[~api["template"].isin(["rubric_order/reversed", "rubric_order/random"])]
    assert np.allclose(kept["score"], kept["raw"])
    assert (
        api.loc[api["template"] == "rubric_order/random", "status"].eq("unparsed").all()
    )
    assert counts(api[api.template == "control"]["replicate"]) == dict.fromkeys(
        range(1, 6), 150
    )
    others = judgments[judgments["dataset"] == "scoring-probes-open"]
    assert others["judge"].nunique() == 26
    assert others["label_mass"].max() == pytest.approx(0.0173)
    assert others["label_mass"].median() == pytest.approx(3e-4)
    assert others["score"].isna().all()
    assert others["raw"].between(1, 5).all()
    assert not judgments["judge"].str.contains("72b").any()  # an empty record


def test_files_come_in_parallel_from_a_url(mirror, cache, serve, monkeypatch):
    url, asked = serve(mirror)
    monkeypatch.setenv("RUBRICNB_MIRROR", url)
    files = pinned(summeval.SIX)
    assert len(files) == len(asked) == 2
    assert all(file.is_relative_to(cache) for file in files.values())
