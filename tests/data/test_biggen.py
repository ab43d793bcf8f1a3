"""BiGGen Bench in its documented schema: parquet and JSON lines, and what a file may lack."""

import json

import pandas as pd
import pytest

import rubricnb as rb

RUBRIC = {"criteria": "Is it right?"} | {
    f"score{k}_description": f"Level {k}." for k in range(1, 6)
}


def rows():
    return [
        {
            "capability": "planning", "task": "travel", "instance_idx": i, "input": f"Plan {i}.",
            "system_prompt": "Be brief." if i else None, "reference_answer": "The plan.",
            "score_rubric": RUBRIC, "model_name": model, "response": f"{model} plans {i}.",
            "human_score": score,
        }
        for i in range(2) for model, score in (("a", 2), ("b", 5))
    ]  # fmt: skip


def test_parquet_and_json_lines_give_the_same_items(tmp_path):
    pd.DataFrame(rows()).to_parquet(tmp_path / "h.parquet")
    (tmp_path / "h.jsonl").write_text("\n".join(map(json.dumps, rows())))
    items = rb.load("biggen", path=tmp_path / "h.parquet")
    assert items.equals(rb.load("biggen", path=tmp_path / "h.jsonl"))
    assert items.cluster_id.nunique() == items.rubrics.rubric_id.nunique() == 2
    assert items.groupby("group_id").candidate.apply(list).tolist() == [["a", "b"]] * 2
    assert items.human.tolist() == [2, 5, 2, 5]
    assert items.instruction.tolist()[1:3] == ["Plan 0.", "Be brief.\n\nPlan 1."]


def test_its_reference_is_a_full_mark_and_reaches_the_prompt(tmp_path, capsys):
    pd.DataFrame(rows()).to_parquet(tmp_path / "h.parquet")
    items = rb.load("biggen", path=tmp_path / "h.parquet")
    plan = rb.plan(items, rb.fixed(5, 1), reference=["none", "auto", 5], readout="score")
    from rubricnb.judging.rendering import rendered

    texts = [r.messages[0].content for r in rendered(plan, rb.open_judge("simulated:unbiased"))]
    assert sum("###Reference Answer (Score 5):\nThe plan." in t for t in texts) == 2 * len(items)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"human_score": 7}, "7.0 is outside 1..5"),
        ({"score_rubric": {"criteria": "x"}}, "planning/travel/0' lacks '\\(score_rubric or score_rubrics\\).score1_desc"),
        ({"response": ""}, "column 'response' is empty"),
    ],
)
def test_a_bad_row_is_named(tmp_path, change, message):
    bad = rows()
    bad[1] |= change
    (tmp_path / "h.jsonl").write_text("\n".join(map(json.dumps, bad)))
    with pytest.raises(ValueError, match=message):
        rb.load("biggen", path=tmp_path / "h.jsonl")


def test_the_scores_by_gpt_4_that_come_with_the_data_are_the_gold(tmp_path):
    some = [
        row | {"gpt4_score": score} for row, score in zip(rows(), (3, 4, None, -1), strict=True)
    ]
    some[3]["human_score"] = -1  # how the file writes that there is none
    pd.DataFrame(some).to_parquet(tmp_path / "h.parquet")
    (tmp_path / "h.jsonl").write_text("\n".join(map(json.dumps, some)))
    for name in ("h.parquet", "h.jsonl"):
        items = rb.load("biggen", path=tmp_path / name)
        assert items.gold.tolist()[:2] == [3, 4]
        assert items.gold_ratings.tolist() == [(3,), (4,), None, None]
        assert items.gold.isna().tolist() == [False, False, True, True]
        assert items.human.isna().tolist() == [False, False, False, True]
    some[0]["gpt4_score"] = 9
    pd.DataFrame(some).to_parquet(tmp_path / "h.parquet")
    with pytest.raises(ValueError, match=r"'gold': 9.0 is outside 1\.\.5"):
        rb.load("biggen", path=tmp_path / "h.parquet")


def test_a_missing_column_and_another_format_are_named(tmp_path):
    (tmp_path / "h.jsonl").write_text(json.dumps(rows()[0] | {"human_score": 3}))
    assert len(rb.load("biggen", path=tmp_path / "h.jsonl")) == 1
    (tmp_path / "h.jsonl").write_text(json.dumps({"input": "x"}))
    with pytest.raises(ValueError, match="record 1 lacks 'capability'"):
        rb.load("biggen", path=tmp_path / "h.jsonl")
    (tmp_path / "h.jsonl").write_text("a,b\n1,2\n")
    with pytest.raises(ValueError, match=r"h.jsonl: line 1 is not JSON"):
        rb.load("biggen", path=tmp_path / "h.jsonl")


def test_an_unrated_response_stays_without_a_rating(tmp_path):
    some = rows()
    some[0]["human_score"] = None
    pd.DataFrame(some).to_parquet(tmp_path / "h.parquet")
    assert rb.load("biggen", path=tmp_path / "h.parquet").human.isna().tolist() == [
        True,
        False,
        False,
        False,
    ]
