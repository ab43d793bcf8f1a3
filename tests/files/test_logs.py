"""Logs that inspect_ai 0.3.285 and DeepEval 4.3.1 wrote,
and one as promptfoo documents it.
"""

import json
from pathlib import Path

import pytest

import rubricnb as rb

LOGS = Path(__file__).parent / "logs"
LEVELS = {
    "rubric": (0, 3),
    "helpful": (0, 3),
    "brief": (0, 3),
    "model_graded_qa": (0, 1),
}


@pytest.mark.parametrize("kind", ["eval", "json"])
def test_a_log_of_inspect_ai_has_a_row_for_every_scorer_and_epoch(kind):
    file, asked = LOGS / f"inspect_replies.{kind}", "human outside: foreign"
    with pytest.raises(ValueError, match=f"(?s)2 is outside 0..1.*{asked}"):
        rb.judgments(file, scale=LEVELS)
    mine = rb.judgments(rb.reading(file, scale=LEVELS, decide=[asked]))
    assert len(mine) == 4 * 2 * 4
    one = mine[mine.criterion == "rubric"].set_index(["item_id", "replicate"])
    assert one.score.fillna(-1).tolist() == [0, 1, 2, 3, 1, 2, 3, -1]
    assert one.status.tolist() == ["ok"] * 7 + ["unparsed"]
    graded = mine[mine.criterion == "model_graded_qa"]
    assert graded.score.tolist() == [1, 0, 0.5, 1] * 2  # C, I, P, C
    assert set(graded.judge) == {"mockllm/model"}
    assert set(mine.dataset) == {"replies"}
    helpful = mine[mine.criterion == "helpful"]
    found = rb.agreement(helpful, mine.rated, by="criterion").iloc[0]
    assert found.r == pytest.approx(1)  # human stands in the samples' metadata


def test_a_test_run_of_deepeval_has_a_row_for_every_metric():
    mine = rb.judgments(LOGS / "deepeval_test_run.json")
    wide = mine.pivot(index="item_id", columns="criterion", values="score").stack(
        future_stack=True
    )
    assert mine[mine.criterion == "Helpful"].score.tolist() == [0.6, 0.9, 0.1, 0.4]
    assert mine.status.tolist() == ["ok"] * 7 + ["error"]
    assert set(mine.judge) == {"mine-1"}
    assert mine.rated.human.tolist() == [0, 0, 1, 1, 0, 0, 1, 1]
    assert wide.notna().sum() == 7


def test_results_of_promptfoo_have_a_row_for_every_assertion():
    mine = rb.judgments(LOGS / "promptfoo.json")
    assert mine.score.fillna(-1).tolist() == [0.5, 1, -1, 1]
    # the grader's answer was no JSON
    assert mine.status.tolist() == ["ok", "ok", "error", "ok"]
    assert mine.judge.tolist() == ["openai:gpt-4.1-mini", "unknown"] * 2
    assert mine.candidate.tolist() == ["big"] * 2 + ["openai:gpt-4.1-nano"] * 2
    assert set(mine.group_id) == set(mine.cluster_id) == {"test 0"}
    helpful = mine.rated[mine.rated.criterion == "helpful"]
    assert helpful.human.tolist() == [0.5, 0]


def test_logs_of_shares_need_no_scale_and_others_do():
    assert set(rb.judgments(LOGS / "promptfoo.json", scale=(0, 2)).n_options) == {3}
    with pytest.raises(ValueError, match=r"judgments need scale=\(lowest, highest\)"):
        rb.judgments(LOGS / "inspect_replies.json")
    with pytest.raises(ValueError, match=r"scale of 'model_graded_qa' is missing"):
        rb.judgments(
            LOGS / "inspect_replies.json",
            scale={"rubric": (0, 3)} | {"brief": (0, 3)} | {"helpful": (0, 3)},
        )


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.json", '{"eval": 1', r"a\.json: line 1 is not JSON"),
        (
            "a.json",
            '{"runs": []}',
            "neither a list of rows nor a log of inspect_ai.*it has: runs",
        ),
        ("a.json", '{"results": {"results": []}}', "is a log without scores"),
        ("a.eval", "PK", r"a\.eval: it is damaged.*BadZipFile"),
    ],
)
def test_what_is_no_log_is_refused(tmp_path, name, content, message):
    (tmp_path / name).write_text(content)
    with pytest.raises(ValueError, match=message):
        rb.judgments(tmp_path / name)


def test_a_scorer_that_crashed_leaves_the_scores_before_it(capsys):
    mine = rb.judgments(LOGS / "inspect_crashed.json", scale=(0, 3))
    assert len(mine) == 3 * 2 * 4
    counts = (
        mine.groupby("criterion", observed=True)
        .status.value_counts()
        .unstack(fill_value=0)
    )
    assert counts["ok"].to_dict() == {
        "helpful": 6,
        "brief": 6,
        "kind": 6,
        "crashing": 2,
    }
    assert counts["error"].to_dict() == {
        "helpful": 0,
        "brief": 0,
        "kind": 0,
        "crashing": 4,
    }
    lost = mine[mine.status == "error"]
    assert set(lost.reason) == {"RuntimeError('the grader is gone')"}
    assert mine[mine.criterion == "helpful"].score.tolist() == [1, 2, 3] * 2


def test_repeats_of_promptfoo_are_reads_and_aggregates_are_left_out(capsys):
    mine = rb.judgments(LOGS / "promptfoo_repeat.json")
    out = capsys.readouterr().out
    assert (
        "1 of 16 scores are out_of_range (off the scale 0..1), the first in row 9: 10"
        in out
    )
    twice = mine[mine.item_id == "test 2/local-target/helpful"].sort_values("replicate")
    assert twice.status.tolist() == ["ok", "out_of_range"]
    assert mine[mine.group_id == "test 0"].score.tolist() == [0.5, 0.5, 0.3, 0.5]
    # The template in the metric's name is filled, and a turned score is marked.
    assert set(mine[mine.group_id == "test 2"].criterion) == {
        *("helpful", "not rude", "b-metric", "contains: Answer")
    }
    judges = mine.groupby("criterion", observed=True).judge.unique().map(list)
    assert judges["helpful"] == judges["not rude"] == ["file://grader.js"]
    assert judges["contains: Answer"] == ["unknown"]
    # The third test's answers differ: two texts of one cluster, each read once.
    third = mine[mine.cluster_id == "test 4"]
    assert third.item_id.nunique() == 4
    assert third.group_id.unique().tolist() == ["test 4", "test 4, repeat 1"]
    assert set(third.replicate) == {1}
    assert third[third.criterion == "lost"].status.tolist() == ["error", "error"]


def test_scores_of_deepeval_above_one_are_counted_and_the_rest_is_read(capsys):
    mine = rb.judgments(LOGS / "deepeval_above_one.json")
    tone = mine[mine.criterion == "Tone"]
    assert tone.status.tolist() == ["out_of_range", "ok", "error", "out_of_range"]
    assert tone.reason.tolist() == [
        *("off the scale 0..1", "", "ValueError: no JSON", "off the scale 0..1")
    ]
    assert mine[mine.criterion == "Helpful"].score.tolist() == [0.25, 0.5, 0.75, 1]
    out = capsys.readouterr().out
    assert (
        "2 of 8 scores are out_of_range (off the scale 0..1), the first in row 2: 2"
        in out
    )
    own = rb.judgments(
        LOGS / "deepeval_above_one.json", scale={"Tone": (-1, 2), "Helpful": (0, 1)}
    )
    assert own.status.value_counts()["out_of_range"] == 0


def test_the_order_that_autorubric_showed_is_an_ordering_of_the_levels(tmp_path):
    """In the shape that autorubric 1.6.1 writes, with its added fourth option."""
    levels = [("rude", 0.0), ("curt", 0.5), ("kind", 1.0), ("Cannot assess", 0.0)]
    options = [
        {"label": label, "value": value, "na": label == "Cannot assess"}
        for label, value in levels
    ]
    lines = []
    for item, (order, chosen) in enumerate([([2, 3, 0, 1], 2), ([1, 0, 3, 2], 3)]):
        vote = {"judge_id": "mine", "shuffle_order": order}
        vote |= {"value": options[chosen]["value"], "na": options[chosen]["na"]}
        asked = {"name": "tone", "options": options, "votes": [vote]}
        lines.append(json.dumps({"item_idx": item, "report": {"report": [asked]}}))
    file = tmp_path / "items.jsonl"
    file.write_text("\n".join(lines))
    mine = rb.judgments(file, scale=(0, 1))
    assert mine.ordering.tolist() == ["1-0-0.5", "0.5-0-1"]
    assert mine.score.fillna(-1).tolist() == [1, -1]
    assert mine.position.fillna(-1).tolist() == [1, -1]
