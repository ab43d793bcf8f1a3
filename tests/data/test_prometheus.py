import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rubricnb.data import load
from rubricnb.data.prometheus import parse_prompt, render_prompt
from rubricnb.data.sets import sets

PARTS = ("task", "instruction", "response", "reference", "definition")
NAMES = PARTS + tuple(f"level_{k}" for k in range(1, 6))


def raw(mirror, name):
    return json.loads((mirror / sets()[name]["files"][0]).read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", ["mt-bench", "vicuna"])
def test_every_prompt_is_rendered_back(mirror, name):
    prompts = [row["instruction"] for row in raw(mirror, name)]
    assert len(prompts) == 320
    for prompt in prompts:
        parts = parse_prompt(prompt)
        assert render_prompt(parts) == prompt
        assert all(parts[part].strip() for part in NAMES)
        # A level is one line: nothing of the next part is in it.
        assert not any("\n" in parts[f"level_{k}"] for k in range(1, 6))


@pytest.mark.parametrize("name", ["mt-bench", "vicuna"])
def test_items_are_what_the_prompts_say(mirror, name):
    items = load(name)
    assert len(items) == 320
    for item, row in zip(items.to_dict("records"), raw(mirror, name), strict=True):
        rubric = items.rubrics[items.rubrics.rubric_id == item["rubric_id"]]
        levels = rubric.set_index("score").description
        assert (
            "\n\n".join(
                [
                    f"###The instruction to evaluate:\n{item['instruction']}",
                    f"###Response to evaluate:\n{item['response']}",
                    f"###Reference Answer (Score 5):\n{item['reference']}",
                    f"###Score Rubrics:\n[{rubric.definition.iloc[0]}]\n"
                    + "\n".join(f"Score {k}: {levels[k]}" for k in range(1, 6)),
                ]
            )
            in row["instruction"]
        )


@pytest.mark.parametrize("name", ["mt-bench", "vicuna"])
def test_groups_are_80_prompts_of_the_same_four_candidates(mirror, name):
    items = load(name)
    groups = items.groupby("group_id")
    assert groups.ngroups == items.cluster_id.nunique() == items.rubric_id.nunique() == 80
    assert {tuple(sorted(group)) for _, group in groups.candidate} == {
        ("chatgpt", "llama2-chat-13b", "vicuna-13b", "wizardlm-13b")
    }


def test_on_mt_bench_the_text_does_not_give_the_prompt(mirror):
    assert load("mt-bench").instruction.nunique() == 318
    assert load("vicuna").instruction.nunique() == 80
    assert "mt-bench/83/llama2-chat-13b" in set(load("mt-bench").item_id)


@pytest.mark.parametrize("name", ["mt-bench", "vicuna"])
def test_all_carry_a_reference_and_three_scores_by_gpt4(mirror, name):
    items = load(name)
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
        dict.fromkeys(NAMES, line) | {part: text for part in PARTS if part != "definition"}
    )
)
def test_parsing_gives_back_a_prompt_that_parses_again(parts):
    prompt = render_prompt(parts)
    assert render_prompt(parse_prompt(prompt)) == prompt


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("###Score Rubrics:", "Rubric"), "'###Score Rubrics:' stands 0 times"),
        (("R\n", "R\n###Response to evaluate:\n"), "'###Response to evaluate:' stands 2 times"),
        (("Score 4: ", "Score four: "), "not in the Prometheus format"),
        (("###Feedback: ", "###Feedback:"), "not in the Prometheus format"),
    ],
)
def test_another_format_is_refused(change, message):
    prompt = render_prompt(dict.fromkeys(NAMES, "x") | {"response": "R"})
    assert parse_prompt(prompt)["response"] == "R"
    with pytest.raises(ValueError, match=message.replace("(", r"\(")):
        parse_prompt(prompt.replace(*change))
