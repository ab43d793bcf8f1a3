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
        (
            {"score_rubric": {"criteria": "x"}},
            "planning/travel/0' lacks '\\(score_rubric or score_rubrics\\).score1_desc",
        ),
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


def test_the_records_of_scoring_bias_load_beside_the_original_ones(tmp_path):
    """As github.com/KMdsy/scoring_bias prints them; the texts are ours."""
    levels = {f"score{k}_description": f"Level {k}." for k in range(1, 6)}
    record = {
        "idx": "planning_travel_0", "response_source": "a", "capability": "planning",
        "task": "travel", "orig_instruction": "Plan 0.", "orig_response": "a plans 0.",
        "reference_answer": {f"score{k}": f"Worth {k}." for k in (5, 1, 2, 3, 4)},
        "score_rubrics": {"criteria": "Good?"} | levels, "merged_human_score": 1,
        "merged_gpt4_score": 1, "gpt4o_score": [1, 1, 1], "merged_gpt4o_score": 1,
        "gpt41_score": [1, 3, 2], "merged_gpt41_score": 2,
    }  # fmt: skip
    (tmp_path / "s.json").write_text(json.dumps([record]))
    items = rb.load("biggen", path=tmp_path / "s.json")
    assert [items[f"reference_{k}"][0] for k in range(1, 6)] == [f"Worth {k}." for k in range(1, 6)]
    assert items[["human", "gold"]].iloc[0].tolist() == [1, 2]
    assert items.gold_ratings.tolist() == [(1, 3, 2)]
    pd.DataFrame(rows()).to_parquet(tmp_path / "h.parquet")
    original = rb.load("biggen", path=tmp_path / "h.parquet")
    assert items.item_id[0] == original.item_id[0]
    assert "reference_1" not in original
    del record["idx"]
    (tmp_path / "s.json").write_text(json.dumps([record]))
    with pytest.raises(ValueError, match="record 1 lacks 'instance_idx or idx'; it needs"):
        rb.load("biggen", path=tmp_path / "s.json")
