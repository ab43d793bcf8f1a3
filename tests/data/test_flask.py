"""FLASK in the Prometheus schema: several raters and skills, and what a file may lack."""

import json

import pytest

import rubricnb as rb
from rubricnb.data.prometheus import render_prompt


def row(idx=1, source="m", skill="Factuality", human=(4, 5, 4), gpt4=(5, 5, 4), wording=""):
    parts = {"task": "T", "instruction": f"Ask {idx}.", "response": f"{source} answers.",
             "reference": "Best.", "definition": f"Is it {skill}?{wording}"}  # fmt: skip
    prompt = render_prompt(parts | {f"level_{k}": f"{skill} {k}" for k in range(1, 6)})
    return {"idx": idx, "response_source": source, "criteria": skill, "instruction": prompt,
            "human_score": human, "gpt4_score": gpt4}  # fmt: skip


def load(tmp_path, rows):
    (tmp_path / "flask_eval.json").write_text(json.dumps(rows))
    return rb.load("flask", path=tmp_path / "flask_eval.json")


def test_a_response_is_one_text_under_several_skills(tmp_path):
    rows = [
        row(i, s, k) for i in (1, 2) for s in ("m", "n") for k in ("Factuality", "Harmlessness")
    ]
    items = load(tmp_path, rows)
    assert items.text_id.nunique() == 4
    assert items.cluster_id.nunique() == 2
    assert sorted(items.rubrics.rubric_id.unique()) == ["flask-factuality", "flask-harmlessness"]
    assert items.human.round(3).unique().tolist() == [4.333]
    assert items.gold.unique().tolist() == [5]
    assert items.human_ratings.iloc[0] == (4, 5, 4)
    assert (items.groupby("group_id").candidate.nunique() == 2).all()
    assert rb.datasets().set_index("name").met_real_data[["flask", "biggen"]].eq(False).all()


def test_its_reference_is_a_full_mark(tmp_path):
    assert load(tmp_path, [row()]).reference_5.tolist() == ["Best."]


def test_a_skill_that_is_worded_twice_has_two_rubrics(tmp_path):
    items = load(tmp_path, [row(1), row(2, wording=" Really?"), row(3)])
    assert items.rubric_id.tolist() == ["flask-factuality", "flask-factuality-2",
                                        "flask-factuality"]  # fmt: skip


def test_one_number_or_none_instead_of_a_list(tmp_path):
    items = load(tmp_path, [row(1, human=3, gpt4=None), row(2, human=[None, 4], gpt4=[])])
    assert items.human.tolist() == [3, 4]
    assert items.gold.isna().all()


def test_bad_files_are_named(tmp_path):
    with pytest.raises(ValueError, match="record 1 lacks 'criteria'"):
        load(tmp_path, [{k: v for k, v in row().items() if k != "criteria"}])
    with pytest.raises(ValueError, match=r"flask_eval.json holds no record; each needs idx"):
        load(tmp_path, [])
    with pytest.raises(ValueError, match="holds no list of records but a dict"):
        load(tmp_path, {"rows": []})
    with pytest.raises(ValueError, match="outside"):
        load(tmp_path, [row(human=(9,))])
    with pytest.raises(ValueError, match="Prometheus format"):
        load(tmp_path, [row() | {"instruction": "Rate this."}])
    (tmp_path / "x.json").write_text("no")
    with pytest.raises(ValueError, match=r"x.json: line 1 is not JSON"):
        rb.load("flask", path=tmp_path / "x.json")


def test_the_records_of_scoring_bias_have_graded_references_and_reads_of_gpt_41(tmp_path):
    """As github.com/KMdsy/scoring_bias prints them; the texts are ours."""
    graded = {f"score{k}": f"Worth {k}." for k in (5, 1, 2, 3, 4)}
    extended = row(human=(3, 4, 4)) | {
        "reference_answer": graded, "merged_human_score": 4, "gpt4o_score": [2, 2, 2],
        "gpt41_score": [1, 3, 2], "merged_gpt41_score": 2,
    }  # fmt: skip
    items = load(tmp_path, [extended])
    assert [items[f"reference_{k}"][0] for k in range(1, 5)] == [f"Worth {k}." for k in range(1, 5)]
    assert items.reference_5[0] == "Best."  # of the prompt
    assert items.gold.tolist() == [2]
    assert items.gold_ratings.tolist() == [(1, 3, 2)]
    assert items.human.tolist() == [pytest.approx(11 / 3)]
    shown = rb.plan(items, rb.fixed(5, 1), reference=[1, 2, 3, 4, 5])
    assert len(shown) == 5
