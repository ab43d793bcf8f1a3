"""The datasets of sets.yml: against their real files,
or against files in their documented form.
"""

import ast
import csv
import json
from itertools import product
from pathlib import Path

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import rubricnb as rb
from rubricnb.sets.prometheus import PROMPT, parse_prompt
from rubricnb.sets.sets import sets

PROMETHEUS = pytest.mark.parametrize("name", ["mt-bench", "vicuna"])
PARTS = ("task", "instruction", "response", "reference", "definition")
NAMES = PARTS + tuple(f"level_{k}" for k in range(1, 6))


def text_of(mirror, name, number=0):
    return (mirror / sets()[name]["files"][number]).read_text(encoding="utf-8")


def rows_of(mirror, name, number=0, delimiter=","):
    lines = text_of(mirror, name, number).splitlines(keepends=True)
    return list(csv.DictReader(lines, delimiter=delimiter))


# Bundled


def test_minibench_has_180_items_and_60_more_on_request():
    five, seven = rb.load("minibench"), rb.load("minibench-7")
    assert (len(five), len(seven)) == (180, 60)
    assert set(five.groupby(["text_id"]).size()) == {3}
    assert five.cluster_id.nunique() == 12
    assert set(five.groupby("group_id").size()) == {5}
    assert set(five.text_id) == set(seven.text_id)
    assert set(five.item_id).isdisjoint(seven.item_id)


@pytest.mark.parametrize(
    ("name", "n", "levels"),
    [("minibench", 5, [1, 2, 3, 4, 5]), ("minibench-7", 7, [1, 4, 7])],
)
def test_quality_is_on_the_scale_and_each_text_is_the_reference_of_its_level(
    name, n, levels
):
    items = rb.load(name)
    assert set(items.rubrics.groupby("rubric_id", observed=True).score.max()) == {n}
    assert set(items.human) == {1 + k * (n - 1) / 4 for k in range(5)}
    # Under reference="auto" the best text would be shown as its own reference.
    assert "reference" not in items
    assert [k for k in range(1, 8) if f"reference_{k}" in items] == levels
    for item, k in product(items.to_dict("records"), levels):
        assert (item["response"] == item[f"reference_{k}"]) == (item["human"] == k)


# With the real files


def test_asap_set_2_is_rated_as_a_whole_and_resolved_to_rater_1(mirror):
    items = rb.load("asap-2")
    assert len(items) == items.text_id.nunique() == 1800
    assert items.human.between(1, 6).all()
    assert items.human.value_counts()[[1, 6]].tolist() == [24, 7]
    by_text = items.set_index("text_id")
    for row in rows_of(mirror, "asap-2", delimiter="\t")[::100]:
        item = by_text.loc[f"asap-2/{row['essay_id']}"]
        assert item.human_ratings == (
            int(row["rater1_domain1"]),
            int(row["rater2_domain1"]),
        )
        assert item.response == row["essay"].strip()
    first, second = items.human_ratings.str[0], items.human_ratings.str[1]
    assert (items.human == first).all()
    # The ceiling: two raters of the same essays.
    assert 0.75 < rb.quadratic_weighted_kappa(first, second) < 0.87


@pytest.mark.in_turn
@pytest.mark.parametrize("name", ["asap-7", "asap-8"])
def test_asap_sets_7_and_8_are_rated_by_traits(mirror, name):
    items = rb.load(name, n_items=60)
    traits = list(sets()[name]["criteria"])
    assert (
        items.groupby("text_id").criterion.apply(list).map(lambda c: c == traits).all()
    )
    assert items.human.tolist() == [sum(r) / 2 for r in items.human_ratings]
    rows = rows_of(mirror, name, delimiter="\t")
    row = next(r for r in rows if f"{name}/{r['essay_id']}" == items.text_id[0])
    assert items.human_ratings[0][0] == int(row["rater1_trait1"]) + (name == "asap-7")


def test_hanna_has_96_stories_with_the_means_of_three_raters(mirror):
    items = rb.load("hanna")
    assert len(items) == 576
    assert items.cluster_id.nunique() == items.text_id.nunique() == 96
    assert set(items.groupby("text_id").criterion.nunique()) == {6}
    assert items.group_id.isna().all()
    assert "hanna/017/coherence" in set(items.item_id)
    assert items.human.between(1, 5).all()
    assert ((items.human * 3 - (items.human * 3).round()).abs() < 1e-9).all()
    stories = list(dict.fromkeys(row["Human"] for row in rows_of(mirror, "hanna")))
    (scores,) = (row for row in rows_of(mirror, "hanna", 1) if row["Model"] == "Human")
    for name in sets()["hanna"]["criteria"]:
        rated = items[items.criterion == name].set_index("response").human
        means = ast.literal_eval(scores[name.capitalize()])
        assert rated.to_dict() == dict(zip(stories, means, strict=True))


def test_own_rubrics_replace_ours_for_what_was_rated(mirror, tmp_path):
    file = tmp_path / "mine.yml"
    file.write_text(
        "{criterion: surprise, definition: New, levels: {1: a, 2: b, 5: e}}"
    )
    items = rb.load("hanna", rubric=file)
    assert len(items) == 96
    assert set(items.criterion) == {"surprise"}
    assert items.rubrics.description.tolist() == list("abe")
    file.write_text("{criterion: wit, definition: Funny, levels: {1: a, 2: b}}")
    with pytest.raises(
        ValueError, match="hanna has no ratings for the criterion 'wit'"
    ):
        rb.load("hanna", rubric=file)


@pytest.mark.in_turn
def test_summeval_has_100_articles_by_four_systems_rated_by_three_experts(mirror):
    items = rb.load("summeval")
    assert len(items) == 1600
    assert items.cluster_id.nunique() == items.instruction.nunique() == 100
    assert set(items.groupby("cluster_id").instruction.nunique()) == {1}
    assert set(items.groupby("cluster_id").size()) == {16}
    assert items.group_id.nunique() == 400
    assert set(items.groupby("group_id").size()) == {4}
    means = items.groupby("candidate", observed=True).human.mean()
    # weak to strong
    assert means.sort_values().index.tolist() == ["M11", "M20", "M13", "M22"]
    lines = text_of(mirror, "summeval", 2).strip().split("\n")
    rows = {row["id"]: row for row in map(json.loads, lines)}
    mine = items[items.candidate == "M13"]
    assert len(mine) == 400
    for item in mine.itertuples():
        row = rows[item.cluster_id.removeprefix("summeval/")]
        assert item.response == row["decoded"]
        assert row["text"] in item.instruction
        expected = tuple(expert[item.criterion] for expert in row["expert_annotations"])
        assert item.human_ratings == expected
        assert item.human == pytest.approx(sum(expected) / 3)
    everything = rb.load("summeval-all")
    assert len(everything) == 4800
    assert everything.candidate.nunique() == 12
    assert set(items.item_id) < set(everything.item_id)
    assert everything.item_id.is_unique


@PROMETHEUS
def test_prometheus_items_are_what_the_prompts_say(mirror, name):
    items = rb.load(name)
    assert len(items) == 320
    levels = items.rubrics.set_index(["rubric_id", "score"]).description
    definition = items.rubrics.groupby("rubric_id", observed=True).definition.first()
    raw = json.loads(text_of(mirror, name))
    for item, row in zip(items.to_dict("records"), raw, strict=True):
        parts = parse_prompt(row["instruction"])
        assert PROMPT.format(**parts) == row["instruction"]
        assert all(parts[part].strip() for part in NAMES)
        # A level is one line: nothing of the next part is in it.
        assert not any("\n" in parts[f"level_{k}"] for k in range(1, 6))
        own = [levels[item["rubric_id"], k] for k in range(1, 6)]
        shown = [
            f"###The instruction to evaluate:\n{item['instruction']}",
            f"###Response to evaluate:\n{item['response']}",
            f"###Reference Answer (Score 5):\n{item['reference']}",
            f"###Score Rubrics:\n[{definition[item['rubric_id']]}]\n"
            + "\n".join(f"Score {k}: {text}" for k, text in enumerate(own, 1)),
        ]
        assert "\n\n".join(shown) in row["instruction"]
    groups = items.groupby("group_id")
    assert (
        groups.ngroups == items.cluster_id.nunique() == items.rubric_id.nunique() == 80
    )
    assert {tuple(sorted(group)) for _, group in groups.candidate} == {
        ("chatgpt", "llama2-chat-13b", "vicuna-13b", "wizardlm-13b")
    }
    # The text of MT-Bench does not give the prompt.
    assert items.instruction.nunique() == {"mt-bench": 318, "vicuna": 80}[name]
    assert f"{name}/{items.item_id[0].split('/')[1]}/llama2-chat-13b" in set(
        items.item_id
    )


@PROMETHEUS
def test_all_carry_a_reference_and_three_scores_by_gpt4(mirror, name):
    items = rb.load(name)
    assert items.reference.notna().all()
    assert items.reference_5.equals(items.reference)  # it is headed "Score 5"
    assert "human" not in items
    for scores, gold in zip(items.gold_ratings, items.gold, strict=True):
        assert len(scores) == 3
        assert set(scores) <= {1, 2, 3, 4, 5}
        counts = sorted(((scores.count(s), s) for s in set(scores)), reverse=True)
        # The majority where there is one, else the middle score.
        assert gold == (counts[0][1] if counts[0][0] > 1 else sorted(scores)[1])


text = st.text(min_size=1).filter(lambda s: "###" not in s)
line = st.text(st.characters(exclude_characters="\n\r#"), min_size=1)


@given(
    st.fixed_dictionaries(
        dict.fromkeys(NAMES, line)
        | {part: text for part in PARTS if part != "definition"}
    )
)
def test_parsing_gives_back_a_prompt_that_parses_again(parts):
    prompt = PROMPT.format(**parts)
    assert PROMPT.format(**parse_prompt(prompt)) == prompt


@pytest.mark.parametrize(
    "change",
    [
        ("###Score Rubrics:", "Rubric"),
        ("R\n", "R\n###Response to evaluate:\n"),
        ("Score 4: ", "Score four: "),
        ("###Feedback: ", "###Feedback:"),
    ],
)
def test_another_format_of_prompts_is_refused(change):
    prompt = PROMPT.format(**dict.fromkeys(NAMES, "x") | {"response": "R"})
    assert parse_prompt(prompt)["response"] == "R"
    with pytest.raises(ValueError, match="is not in the Prometheus format"):
        parse_prompt(prompt.replace(*change))


# In the documented form of the file


@pytest.fixture
def load(tmp_path):
    """Load a set from records, from lines of text or records,
    or from the text of a file.
    """

    def load(name, content, file="data.jsonl"):
        path = tmp_path / file
        if path.suffix == ".parquet":
            pd.DataFrame(content).to_parquet(path)
        elif path.suffix == ".json" and not isinstance(content, str):
            path.write_text(json.dumps(content))
        elif isinstance(content, str):
            path.write_text(content)
        else:
            path.write_text("\n".join(map(json.dumps, content)) + "\n")
        return rb.load(name, path=path)

    return load


def test_asap_2_0(load):
    head = "essay_id,score,full_text,assignment\n"
    text = head + 'A1,4,"Cars, I say, must go.",Are cars good?\n007,1,NA,\n'
    items = load("asap-2.0", text, "ASAP2.csv")
    assert items.text_id.tolist() == ["asap-2.0/A1", "asap-2.0/007"]
    assert items.response.tolist() == ["Cars, I say, must go.", "NA"]
    assert items.instruction[0] == "Are cars good?"
    assert "argumentative essay" in items.instruction[1]
    assert items.human.tolist() == [4, 1]
    assert items.rubrics.score.max() == 6


DRESS = "id\tprompt\tessay\tcontent\torganization\tlanguage\ttotal\n"


def test_dress_has_three_traits_in_half_points(load):
    rows = "1\tIs it?\tIt is.\t3.5\t3\t4\t10.5\n2\tIs it?\tNo.\t1\t1.5\t2\t4.5\n"
    items = load("dress", DRESS + rows, "d.tsv")
    assert items.human.tolist() == [3.5, 3, 4, 1, 1.5, 2]
    assert items.cluster_id.nunique() == 2
    assert set(items.criterion) == {"content", "organization", "language"}
    assert items.groupby("text_id").human.sum().tolist() == [10.5, 4.5]


def summary(post="p1", text="A post.", overall=6, worker="w1", key="post"):
    axes = {"overall": overall, "accuracy": 7, "coverage": 5, "coherence": 7}
    shown = {"text": text, "policy": "ref", "note": None, "axes": axes}
    return {
        "info": {"id": post, key: "A long post."},
        "summary": shown,
        "worker": worker,
    }


def test_workers_of_one_summary_are_one_item(load):
    rows = [
        summary(),
        summary(overall=7, worker="w2"),
        summary(text="Other.", overall=2),
    ]
    items = load("summhf", rows)
    assert items.human.tolist() == [6.5, 2]
    assert items.human_ratings.tolist() == [(6, 7), (2,)]
    assert items.cluster_id.nunique() == 1
    assert items.text_id.is_unique
    assert items.rubrics.score.max() == 7


def test_what_nobody_rated_is_left_out_and_articles_are_posts_too(load):
    items = load("summhf", [summary(overall=None), summary(post="p2", key="article")])
    assert items.cluster_id.tolist() == ["summhf/p2"]
    assert "A long post." in items.instruction[0]


def flask(
    idx=1, source="m", skill="Factuality", human=(4, 5, 4), gpt4=(5, 5, 4), wording=""
):
    parts = {
        "task": "T",
        "instruction": f"Ask {idx}.",
        "response": f"{source} answers.",
        "reference": "Best.",
        "definition": f"Is it {skill}?{wording}",
    }
    prompt = PROMPT.format(
        **parts, **{f"level_{k}": f"{skill} {k}" for k in range(1, 6)}
    )
    return {
        "idx": idx,
        "response_source": source,
        "criteria": skill,
        "instruction": prompt,
        "human_score": human,
        "gpt4_score": gpt4,
    }


def test_a_response_of_flask_is_one_text_under_several_skills(load):
    skills = ("Factuality", "Harmlessness")
    items = load(
        "flask",
        [flask(i, s, k) for i in (1, 2) for s in "mn" for k in skills],
        "f.json",
    )
    assert items.text_id.nunique() == 4
    assert items.cluster_id.nunique() == 2
    assert sorted(items.rubrics.rubric_id.unique()) == [
        "flask-factuality",
        "flask-harmlessness",
    ]
    assert items.human.round(3).unique().tolist() == [4.333]
    assert items.gold.unique().tolist() == [5]
    assert items.human_ratings.iloc[0] == (4, 5, 4)
    assert (items.groupby("group_id").candidate.nunique() == 2).all()
    assert set(items.reference_5) == {"Best."}
    # A skill that is worded twice has two rubrics.
    items = load("flask", [flask(1), flask(2, wording=" Really?"), flask(3)])
    assert items.rubric_id.str.removeprefix("flask-factuality").tolist() == [
        "",
        "-2",
        "",
    ]
    # One number or none instead of a list.
    items = load(
        "flask", [flask(1, human=3, gpt4=None), flask(2, human=[None, 4], gpt4=[])]
    )
    assert items.human.tolist() == [3, 4]
    assert items.gold.isna().all()


def biggen():
    rubric = {"criteria": "Right?"} | {
        f"score{k}_description": f"Level {k}." for k in range(1, 6)
    }
    return [
        {
            "capability": "planning",
            "task": "travel",
            "instance_idx": i,
            "input": f"Plan {i}.",
            "system_prompt": "Be brief." if i else None,
            "reference_answer": "The plan.",
            "score_rubric": rubric,
            "model_name": model,
            "response": f"{model} plans {i}.",
            "human_score": score,
        }
        for i in range(2)
        for model, score in (("a", 2), ("b", 5))
    ]


def test_biggen_from_parquet_and_json_lines_is_the_same(load):
    items = load("biggen", biggen(), "h.parquet")
    assert items.equals(load("biggen", biggen()))
    assert items.cluster_id.nunique() == items.rubrics.rubric_id.nunique() == 2
    assert items.groupby("group_id").candidate.apply(list).tolist() == [["a", "b"]] * 2
    assert items.human.tolist() == [2, 5, 2, 5]
    assert items.instruction.tolist()[1:3] == ["Plan 0.", "Be brief.\n\nPlan 1."]
    assert set(items.reference_5) == {"The plan."}
    # Whole numbers, -1 or nothing; parquet writes the last as NaN.
    for kind in ("parquet", "jsonl"):
        some = [
            row | {"gpt4_score": k}
            for row, k in zip(biggen(), (3, 4, None, -1), strict=True)
        ]
        some[2]["human_score"], some[3]["human_score"] = None, -1
        items = load("biggen", some, f"h.{kind}")
        assert items.gold.fillna(0).tolist() == [3, 4, 0, 0]
        assert items.gold_ratings.tolist() == [(3,), (4,), None, None]
        assert items.human.fillna(0).tolist() == [2, 5, 0, 0]


# As github.com/KMdsy/scoring_bias prints its records; the texts are ours.
EXTENDED = {
    name: json.loads(
        (Path(__file__).parent / f"exports/augmented_{name}.json").read_text()
    )
    for name in ("biggen", "flask")
}


@pytest.mark.parametrize("name", EXTENDED)
def test_records_of_scoring_bias_have_graded_references_and_reads_of_gpt_41(load, name):
    items = load(name, EXTENDED[name], "s.json")
    assert [items[f"reference_{k}"][0] for k in range(1, 5)] == [
        f"Worth {k}." for k in range(1, 5)
    ]
    # of the prompt
    assert items.reference_5[0] == ("Best." if name == "flask" else "Worth 5.")
    assert items.gold.tolist() == [2]
    assert items.gold_ratings.tolist() == [(1, 3, 2)]
    assert items.human.tolist() == [pytest.approx(11 / 3 if name == "flask" else 1)]
    assert len(rb.plan(items, rb.fixed(5, 1), reference=[1, 2, 3, 4, 5])) == 5
    if name == "biggen":
        original = load("biggen", biggen())
        assert items.item_id[0] == original.item_id[0]
        assert "reference_1" not in original


def without(row, name):
    return {key: value for key, value in row.items() if key != name}


@pytest.mark.parametrize(
    ("name", "file", "content", "message"),
    [
        ("asap-2.0", "a.csv", "essay_id,full_text\nA,Text.\n", "lacks 'score'"),
        (
            "asap-2.0",
            "a.csv",
            "essay_id,full_text,score\nA,Text.,7\n",
            r"7.0 is outside 1\.\.6",
        ),
        (
            "dress",
            "d.tsv",
            DRESS + "1\tIs?\tIt is.\t5.5\t3\t4\t12\n",
            r"5.5 is outside 1\.\.5",
        ),
        ("summhf", "s.jsonl", "{", "s.jsonl: line 1 is not JSON"),
        (
            "summhf",
            "s.jsonl",
            [summary(), {"info": {"id": "x"}}],
            "record 2 lacks summary.text",
        ),
        (
            "summhf",
            "s.jsonl",
            [summary(key="text")],
            "1 lacks info.post or info.article",
        ),
        (
            "summhf",
            "s.jsonl",
            [summary(overall=None)],
            "no summary with an overall rating",
        ),
        ("flask", "f.json", [], r"f.json: the file has no records"),
        ("flask", "f.json", {"rows": []}, "is neither a list of rows nor"),
        ("flask", "f.json", [flask(human=(9,))], "outside"),
        (
            "flask",
            "f.json",
            [flask() | {"instruction": "Rate this."}],
            "Prometheus format",
        ),
        (
            "biggen",
            "b.jsonl",
            [biggen()[0] | {"human_score": 7}],
            "7.0 is outside 1..5",
        ),
        (
            "biggen",
            "b.jsonl",
            [biggen()[0] | {"response": ""}],
            "record 1 lacks response",
        ),
        (
            "biggen",
            "b.jsonl",
            [biggen()[0] | {"score_rubric": {"criteria": "x"}}],
            r"planning/travel/0' lacks '\(score_rubric or score_rubrics\).score1_desc",
        ),
        (
            "biggen",
            "b.json",
            [without(EXTENDED["biggen"][0], "idx")],
            "1 lacks instance_idx",
        ),
    ],
)
def test_what_is_wrong_with_a_file_is_named(load, name, file, content, message):
    with pytest.raises(ValueError, match=message):
        load(name, content, file)


@pytest.mark.parametrize("name", ["asap-2.0", "summhf", "dress", "flask", "biggen"])
def test_what_is_not_public_says_where_to_get_it(name):
    with pytest.raises(
        ValueError, match=r"is read from your own files: .*path=.*get it from https"
    ):
        rb.load(name)
    assert not rb.datasets().set_index("name").met_real_data[name]
