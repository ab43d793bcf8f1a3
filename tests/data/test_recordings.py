"""What others recorded is read whole, under its right names, and what fails is counted."""

import json
import os
import shutil
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import rubricnb as rb
import rubricnb.data.fetch as module
from rubricnb.data.fetch import pinned
from rubricnb.data.others import llm_rubric, rewardbench, summeval
from rubricnb.data.sets import sets


@pytest.fixture(scope="module")
def load():
    """Load each set once."""
    return cache(rb.load_recording)


@pytest.fixture
def changed(mirror, tmp_path, monkeypatch):
    """Replace files of a set by changed ones, pinned as they now are."""

    def change(folder, *edits):
        copy = tmp_path / "tree"
        shutil.copytree(mirror / folder, copy / folder, dirs_exist_ok=True)
        for path in (copy / folder).rglob("*"):
            path.chmod(0o755 if path.is_dir() else 0o644)
        for name, edit in edits:
            file = copy / folder / name
            file.write_text(edit(file.read_text("utf-8")), "utf-8")
        monkeypatch.setenv("RUBRICNB_MIRROR", str(copy))
        return copy / folder

    return change


@pytest.fixture
def believed(monkeypatch):
    """Take files as they are, whatever their hash."""
    monkeypatch.setattr(module, "fetch", lambda path, _: Path(os.environ["RUBRICNB_MIRROR"], path))


def counts(column):
    found = column.value_counts()
    return found[found > 0].to_dict()


def test_the_list_says_what_one_must_know(mirror):
    table = rb.recordings().set_index("name")
    assert len(table) >= 6
    assert (table[["judges", "licence", "people", "what", "beware"]] != "").all(axis=None)
    assert (table["megabytes"] > 0).all()
    assert (
        table["source"]
        .str.fullmatch(r"https://raw\.githubusercontent\.com/.+/[0-9a-f]{40}.*")
        .all()
    )
    assert "retracted" in table.loc["scoring-probes", "beware"]


@pytest.mark.parametrize("name", rb.recordings()["name"])
def test_every_set_has_the_rows_that_the_list_says_under_unequal_keys(mirror, load, name):
    judgments = load(name)
    assert len(judgments) == rb.recordings().set_index("name").n_rows[name]
    assert judgments["request_id"].is_unique
    ok = judgments["status"] == "ok"
    assert judgments["score"].notna().equals(ok)
    if "reason" in judgments:
        assert (judgments["reason"] != "").equals(~ok)
    assert set(judgments["item_id"]) == set(judgments.rated["item_id"])
    assert judgments["cluster_id"].notna().all()


def test_rewardbench_has_eight_reads_of_four_responses(mirror, load):
    reads = load("rewardbench-reads")
    assert counts(reads["status"]) == {
        "ok": 1_223_741, "error": 1_793, "refused": 1_728, "unparsed": 162,
    }  # fmt: skip
    assert counts(reads["replicate"]) == dict.fromkeys(range(1, 9), 153_428)
    arms = reads.groupby(["judge", "template", "temperature"], observed=True, dropna=False)
    prompts = arms["group_id"].nunique()
    assert len(prompts) == 22
    assert (prompts.min(), prompts.max()) == (1718, 1763)
    shared = set.intersection(*(set(part) for _, part in arms["group_id"]))
    assert len(shared) == 1634
    base = reads[(reads.judge == "gpt-5.4") & (reads.template == "base") & (reads.temperature == 1)]
    numbers = pd.Series(base["group_id"].unique()).str.split("/").str[2]
    assert (numbers.value_counts() == 2).sum() == 38
    null = arms["score"].agg(lambda s: s.isna().mean())
    assert (null.min(), round(null.max(), 3)) == (0, 0.023)


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


def test_gpt_on_summeval(mirror, load):
    judgments = load("summeval-gpt")
    again = judgments[judgments["replicate"] == 2]
    assert counts(again["template"]) == {"mcq": 300, "altmcq": 12}
    once = judgments.set_index(["judge", "template", "item_id"])["score"]
    first = once[judgments["replicate"].to_numpy() == 1].loc[
        list(zip(again["judge"], again["template"], again["item_id"], strict=True))
    ]
    assert (first.to_numpy() != again["score"].to_numpy()).sum() == 56
    cells = judgments[judgments["replicate"] == 1].groupby(["judge", "template"], observed=True)
    assert set(cells.size()) == {4800}
    assert len(cells) == 9
    assert (judgments["score"] % 1 > 0).sum() > 200  # "3.5 out of 5" is what the judge said


@pytest.mark.parametrize(
    ("form", "text", "score"),
    [
        ("rts", "It flows, but repeats itself. Final score: 4.", {4}),
        ("rts", "It omits the pundits, resulting in a score of 2 out of 5.", {2}),
        ("rts", "It lacks a point, scoring a one out of five.", {1}),
        ("altrts", "Correct, but dull. Score: 3.5/5", {3.5}),
        ("rts", "Smooth throughout. 5", {5}),
        ("rts", "Score: 3/5. Style: 4/5. Overall I like it", {3, 4}),
        ("rts", "He scored 4 goals in the 2-1 defeat of 2014.", set()),
        ("stareval", "Four stars. The summary names 3 of the 5 dead.", {4}),
        ("stareval", "1 star", {1}),
        ("mcq", "E", {5}),
        ("altmcq", "A", {1}),
        ("mcq", "A or B", set()),
    ],
)
def test_each_prompt_form_has_its_parser(form, text, score):
    assert summeval._PARSERS[form](text) == score


def test_statuses_of_the_texts_are_counted(mirror, load):
    judgments = load("summeval-gpt")
    failed = judgments[judgments["status"] != "ok"]
    assert set(failed["template"]) == {"rts"}
    assert set(failed["status"]) == {"unparsed"}
    assert set(failed["reason"]) == {"no score named", "several scores named"}
    assert failed.groupby("judge", observed=True).size().max() < 100


def test_pairs_are_asked_in_both_orders(mirror, load):
    pairs = load("summeval-pairs")
    assert counts(pairs["ordering"]) == {"1-2": 4400, "2-1": 4400}
    assert pairs["candidate"].nunique() == 11
    assert set(pairs["design"]) == {"balanced"}
    wide = pairs.pivot(index="item_id", columns="ordering", values="score")
    assert (wide["1-2"] == wide["2-1"]).mean() == pytest.approx(0.648, abs=5e-4)
    file = mirror / summeval.FOLDER / "comp_res/gpt-3.5-turbo-0301/M8-M9_coherence_toggle.result"
    row = json.loads(file.read_text().splitlines()[0])
    assert row["resp"] == "B"  # the swapped second summary is the first system's
    own = f"summeval/{row['id']}/coherence/M8-vs-M9"
    assert wide.loc[own, "2-1"] == 1
    no_ties = pairs[pairs["score"] != 1.5]
    assert rb.position_bias(no_ties, by="judge")["n_reads"].tolist() == [len(no_ties)]


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
        "ChatGPT": 14, "Beluga-13B": 173, "OrcaPlatypus": 203, "Llama-13B": 259, "Mistral-7B": 402,
    }  # fmt: skip
    assert (off["raw"] < 1).mean() > 0.9
    people = judgments.rated.set_index("item_id")["human"]
    items = rb.load("hanna").set_index("item_id")["human"]
    assert np.allclose(people.loc[items.index], items)  # the two columns of the file agree
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
    differ = judgments.groupby(["dataset", "item_id"], observed=True)["score"].nunique() > 1
    assert differ.groupby("dataset").sum().to_dict() == {"mt-bench": 179, "vicuna": 121}
    assert judgments.groupby("item_id", observed=True).size().eq(3).all()
    median = judgments.groupby("item_id", observed=True)["score"].median()
    gold = judgments.rated.set_index("item_id")["gold"]
    assert (median.loc[gold.index].astype(float) == gold).all()
    assert set(judgments.rated.rubrics["variant"]) == {"standard"}


def test_probes_are_mapped_and_open_models_are_no_judges(mirror, load):
    judgments = load("scoring-probes")
    api = judgments[judgments["dataset"] == "scoring-probes-api"]
    assert sorted(api["judge"].unique()) == ["gpt-4o", "gpt-4o-mini", "llama-3.1-70b-instruct"]
    reversed_ = api[api["template"] == "rubric_order/reversed"]
    assert np.allclose(reversed_["score"] + reversed_["raw"], 6)
    kept = api[~api["template"].isin(["rubric_order/reversed", "rubric_order/random"])]
    assert np.allclose(kept["score"], kept["raw"])
    assert api.loc[api["template"] == "rubric_order/random", "status"].eq("unparsed").all()
    assert counts(api[api.template == "control"]["replicate"]) == dict.fromkeys(range(1, 6), 150)
    others = judgments[judgments["dataset"] == "scoring-probes-open"]
    assert others["judge"].nunique() == 26
    assert others["label_mass"].max() == pytest.approx(0.0173)
    assert others["label_mass"].median() == pytest.approx(3e-4)
    assert others["score"].isna().all()
    assert others["raw"].between(1, 5).all()
    assert not judgments["judge"].str.contains("72b").any()  # an empty record


def test_llm_rubric_has_probabilities_and_annotators(mirror, load):
    judgments = load("llm-rubric")
    texts = judgments.rated.groupby("dataset")["text_id"].nunique()
    assert texts.to_dict() == {"llm-rubric-real": 223, "llm-rubric-synthetic": 225}
    overall = judgments[judgments["criterion"] == "Q0"]
    found = rb.agreement(overall, judgments.rated, by="dataset", value="expected_score")
    r = found.set_index("dataset")["r"]
    assert r["llm-rubric-real"] == pytest.approx(0.1773, abs=5e-5)  # their README prints it
    raters = judgments.rated.groupby("dataset")["raters"].agg(
        lambda s: len({r for rs in s.dropna() for r in rs})
    )
    assert raters.to_dict() == {"llm-rubric-real": 13, "llm-rubric-synthetic": 24}
    rated = pd.DataFrame(judgments.rated)
    assert rated["human_ratings"].dropna().map(min).min() == 1  # 0: not answered
    p = judgments[[f"probability_{k}" for k in range(1, 5)]].to_numpy()
    assert (p.argmax(axis=1) + 1 == judgments["score"]).all()
    assert np.allclose(judgments["label_mass"], 1)


def test_a_changed_file_is_refused(changed):
    folder = llm_rubric.FOLDER
    name = "real_data/gpt-3.5-turbo-16k_real_evaluations_FIXED.tsv"
    changed(folder, (name, lambda text: text.replace("\t4\t", "\t3\t", 1)))
    with pytest.raises(ValueError, match=r"real_evaluations_FIXED.tsv has SHA-256 .*, expected"):
        rb.load_recording("llm-rubric")


def test_a_missing_arm_is_named(changed):
    folder = changed(rewardbench.FOLDER)
    (folder / "base_nano_k8.jsonl").unlink()
    with pytest.raises(FileNotFoundError, match=r"lacks the file .*base_nano_k8\.jsonl"):
        rb.load_recording("rewardbench-reads")


def test_nulls_and_new_errors_are_counted_and_a_lost_read_is_refused(changed, believed):
    def nulls(text):
        row = json.loads(text.splitlines()[0])
        row["nano_scores"][0][:3] = [None, None, None]
        row["nano_errors"][0][:3] = ["policy_refusal", "no_score_found", "a new fault"]
        return json.dumps(row) + "\n"

    folder = changed(rewardbench.FOLDER, ("base_nano_k8.jsonl", nulls))
    for file in folder.iterdir():
        file.write_text("".join(file.open().readlines()[:20]))
    judgments = rb.load_recording("rewardbench-reads")
    nano = judgments[judgments["judge"] == "gpt-5.4-nano"]
    assert counts(nano["status"]) == {"ok": 29, "refused": 1, "unparsed": 1, "error": 1}
    file = folder / "base_nano_k8.jsonl"
    row = json.loads(file.read_text())
    row["nano_scores"] = [reads[:7] for reads in row["nano_scores"]]
    file.write_text(json.dumps(row))
    with pytest.raises(
        ValueError, match=r"base_nano_k8.jsonl: gpt-5.4-nano has \(1, 4, 7\) scores"
    ):
        rb.load_recording("rewardbench-reads")


def test_a_score_off_the_scale_and_a_lost_item_are_not_guessed(changed, believed, capsys):
    def spoil(text):
        marks = json.loads(text)
        keys = list(marks["gpt-4o"])
        marks["gpt-4o"]["nobody__M1__coherence"] = marks["gpt-4o"].pop(keys[0])
        return json.dumps(marks)

    folder = changed(summeval.SIX, ("llm_annotations.json", spoil))
    judgments = rb.load_recording("summeval-six")
    said = capsys.readouterr().out
    assert "rows have no item and are dropped: summeval-all, summeval/nobody/M1/coherence" in said
    assert len(judgments) == 38_400 - 1 + 1  # its own key is there without a score
    assert counts(judgments["status"]) == {"ok": 38_399, "unparsed": 1}
    file = folder / "llm_annotations.json"
    file.write_text(file.read_text().replace(": 4", ": 6", 1))
    judgments = rb.load_recording("summeval-six")
    assert counts(judgments["status"]) == {"ok": 38_398, "unparsed": 1, "out_of_range": 1}
    assert judgments["reason"][judgments["status"] == "out_of_range"].tolist() == [
        "off the scale 1..5"
    ]


def test_files_come_in_parallel_from_a_url(mirror, cache, serve, monkeypatch):
    url, asked = serve(mirror)
    monkeypatch.setenv("RUBRICNB_MIRROR", url)
    files = pinned(llm_rubric.FOLDER)
    assert len(files) == len(asked) == 4
    assert all(file.is_relative_to(cache) for file in files.values())


def test_prometheus_items_are_those_of_the_data_sets(mirror, load):
    judgments = load("prometheus-gpt4")
    ids = {i for name in ("mt-bench", "vicuna") for i in rb.load(name)["item_id"]}
    assert set(judgments["item_id"]) == ids
