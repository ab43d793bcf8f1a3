import json

import pytest

import rubricnb as rb


def line(post="p1", text="A post.", overall=6, policy="ref", worker="w1", key="post"):
    axes = {"overall": overall, "accuracy": 7, "coverage": 5, "coherence": 7}
    summary = {"text": text, "policy": policy, "note": None, "axes": axes}
    return {"info": {"id": post, key: "A long post."}, "summary": summary, "worker": worker}


def write(folder, *lines):
    file = folder / "axis_evals.jsonl"
    file.write_text("\n".join(x if isinstance(x, str) else json.dumps(x) for x in lines) + "\n")
    return file


def test_workers_of_one_summary_are_one_item(tmp_path):
    file = write(
        tmp_path, line(overall=6), line(overall=7, worker="w2"), line(text="Other.", overall=2)
    )
    items = rb.load("summhf", path=file)
    assert items.human.tolist() == [6.5, 2]
    assert items.human_ratings.tolist() == [(6, 7), (2,)]
    assert items.cluster_id.nunique() == 1
    assert items.text_id.is_unique
    assert items.rubrics.score.max() == 7


def test_what_nobody_rated_is_left_out_and_articles_are_posts_too(tmp_path):
    file = write(tmp_path, line(overall=None), line(post="p2", key="article"))
    items = rb.load("summhf", path=file)
    assert items.cluster_id.tolist() == ["summhf/p2"]
    assert "A long post." in items.instruction[0]


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (["{"], "axis_evals.jsonl: line 1 is not JSON"),
        ([line(), {"info": {"id": "x"}}], "record 2 lacks 'summary.text'"),
        ([line(key="text")], "record 1 lacks 'info.post or info.article'"),
        ([line(overall=None)], "no summary with an overall rating"),
        ([line(overall=9)], r"9.0 is outside 1\.\.7"),
    ],
)
def test_a_bad_file_is_named_with_its_line(tmp_path, lines, message):
    with pytest.raises(ValueError, match=message):
        rb.load("summhf", path=write(tmp_path, *lines))
