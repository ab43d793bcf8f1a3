"""The prompts, against the papers' text and against hostile data."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rubricnb.core.prompts import inert, render
from rubricnb.core.prompts.labels import LABELS, labels_of
from rubricnb.core.prompts.render import PLACEBO_EDITS, TEMPLATES, takes_edits

LEVELS = {s: f"Level {s}." for s in range(1, 11)}

# arXiv:2602.02219v2, Figure 5 (left), with its slots filled and without the reference.
FIGURE_5 = """\
###Task Description:
An instruction (might include an Input inside it), a response to evaluate, and a score \
rubric representing an evaluation criterion are given.
1. Write a detailed feedback that assesses the quality of the response strictly based \
on the given score rubric, not evaluating in general.
2. After writing a feedback, write a score that is an integer between 1 and 5. You \
should refer to the score rubric.
3. The output format should look as follows: "Feedback: (write a feedback for \
criteria) [RESULT] (an integer number between 1 and 5)"
4. Please do not generate any other opening, closing, and explanations.

###The instruction to evaluate:
Say hello.

###Response to evaluate:
Hello!

###Score Rubrics:
[Is it polite?]
Score 1: Level 1.
Score 2: Level 2.
Score 3: Level 3.
Score 4: Level 4.
Score 5: Level 5.

###Feedback:"""


def rubric(ordering=(1, 2, 3, 4, 5), **options):
    return render("Say hello.", "Hello!", "Is it polite?", LEVELS, ordering, **options)


def test_the_rubric_prompt_is_the_papers_to_the_letter():
    assert rubric().text == FIGURE_5


def test_a_reference_is_announced_and_shown_where_the_figure_has_it():
    text = rubric(reference="Good day!").text
    assert (
        "to evaluate, a reference answer that gets a score of 5, and a score rubric"
        in text
    )
    assert "###Reference Answer (Score 5):\nGood day!\n\n###Score Rubrics:" in text
    assert rubric(reference="Hi.", reference_score=2).text.count("Score 2)") == 1


def test_an_example_is_announced_and_shown_in_both_layouts():
    example = ("Say goodbye.", "Bye!", 4)
    for layout in ("rubric-last", "rubric-first"):
        text = rubric(exemplar=example, layout=layout, labels="letter").text
        assert (
            "an example of another response that gets a score of B, and a score" in text
        )
        shown = (
            "###Example (Score B):\nInstruction: Say goodbye.\nResponse: "
            "Bye!\n\n###The ins"
        )
        assert shown in text
    assert "xample" not in rubric().text


def test_rubric_first_moves_blocks_and_changes_no_word():
    def blocks(text):
        return sorted(re.split(r"(?=###)", text.replace("\n\n", "\n")))

    last, first = (
        rubric(reference="R").text,
        rubric(reference="R", layout="rubric-first").text,
    )
    assert first.index("###Score Rubrics") < first.index("###The instruction")
    assert first.index("###Reference") < first.index("###Score Rubrics")
    assert blocks(last + "\n") == blocks(first + "\n")


@pytest.mark.parametrize("labels", LABELS)
def test_options_stand_in_the_order_asked_with_their_own_label_and_text(labels):
    order = (3, 5, 1, 4, 2)
    prompt = rubric(order, labels=labels)
    shown = re.findall(r"^Score (\w+): Level (\d)\.$", prompt.text, re.MULTILINE)
    assert [int(level) for _, level in shown] == list(order)
    assert tuple(name for name, _ in shown) == prompt.choices
    assert prompt.choices == tuple(labels_of(range(1, 6), labels)[s] for s in order)


@pytest.mark.parametrize(
    ("scale", "own", "names", "said"),
    [
        ((1, 3, 5, 7), (), ("1", "3", "5", "7"), "one of 1, 3, 5, 7"),
        ((0, 0.5, 1), (), ("0", "0.5", "1"), "one of 0, 0.5, 1"),
        ((-1, 0, 1), (), ("-1", "0", "1"), "one of -1, 0, 1"),
        (
            tuple(range(11)),
            (),
            tuple(map(str, range(11))),
            "an integer between 0 and 10",
        ),
        ((0, 1), ("no", "yes"), ("no", "yes"), "one of no, yes"),
        ((1, 2, 3), ("C", "B", "A"), ("C", "B", "A"), "one of C, B, A"),
    ],
)
def test_a_prompt_shows_the_labels_of_any_scale(scale, own, names, said):
    levels = {score: f"Level {k}." for k, score in enumerate(scale)}
    ordering = scale[1:] + scale[:1]
    prompt = render(
        "I", "R", "Good?", levels, ordering, own_labels=own, reference="Best."
    )
    assert prompt.choices == names[1:] + names[:1]
    lines = [f"Score {name}: Level {k}." for k, name in enumerate(names)]
    assert "\n".join([*lines[1:], lines[0]]) in prompt.text
    assert f"write a score that is {said}." in prompt.text
    assert f"###Reference Answer (Score {names[-1]}):" in prompt.text
    several = render(
        "I",
        "R",
        "",
        {},
        scale,
        template="criteria",
        own_labels=own,
        criteria=[("Tone", "Kind?")],
    )
    whole = said.startswith("an integer")
    task = "an integer score on a 0-10 scale" if whole else f"a score that is {said}"
    assert f"assign {task}. Do NOT" in several.text


def test_the_criteria_prompt_lists_criteria_in_order_and_has_a_slot_a_line():
    prompt = criteria()
    assert "- Fluency: Is it fluent?\n- Coherence: Does it hold?\n" in prompt.text
    assert "For each of the 2 criteria, write one line:\n[Criterion] N" in prompt.text
    assert prompt.slots == ("[Fluency]", "\n[Coherence]")
    assert prompt.choices == ("1", "2", "3", "4", "5")


def test_in_the_pairwise_prompt_the_first_response_shown_is_a():
    prompt = render(
        "I", "Which?", "", {1: "one", 2: "two"}, (2, 1), template="pairwise"
    )
    assert prompt.text.index("###Response A:\ntwo") < prompt.text.index(
        "###Response B:\none"
    )
    assert prompt.choices == ("A", "B")


def criteria(**options):
    shown = [("Fluency", "Is it fluent?"), ("Coherence", "Does it hold?")]
    return render(
        "I",
        "R",
        "",
        {},
        (1, 2, 3, 4, 5),
        template="criteria",
        criteria=shown,
        **options,
    )


@pytest.mark.parametrize(
    ("prompt", "reworded"),
    [
        (rubric, ("Scoring Rubric", "Score Rubrics")),
        (criteria, ("(score in", "(evaluate in")),
    ],
)
def test_placebo_edits_are_fifteen_different_prompts_with_the_same_words(
    prompt, reworded
):
    def words(text):
        return re.sub(r"[\s:]+", " ", text.replace(*reworded))

    plain, edited = prompt(), [prompt(edits=edits) for edits in PLACEBO_EDITS]
    assert len({plain.text, *(one.text for one in edited)}) == 16
    assert {words(one.text) for one in edited} == {words(plain.text)}
    assert {one.slots for one in edited} == {plain.slots}


@given(st.text())
def test_text_from_a_dataset_never_acts_as_a_template(text):
    hostile = "{{ 7 * 7 }}{% for x in y %}{# #}" + text
    prompt = render(
        hostile, hostile, hostile, {1: hostile, 2: hostile}, (1, 2), reference=hostile
    )
    assert prompt.text.count(inert(hostile, prompt.slots)) == 6


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"template": "rubrik"}, "did you mean 'rubric'.* There are: rubric, "),
        ({"layout": "left"}, "unknown layout 'left'"),
        ({"labels": "emoji"}, "unknown labels 'emoji'"),
    ],
)
def test_an_unknown_setting_is_named_with_the_choices(options, message):
    with pytest.raises(ValueError, match=message):
        rubric(**options)


@pytest.mark.parametrize("template", TEMPLATES)
def test_a_template_takes_edits_if_they_change_its_prompt(template):
    criteria = (
        [("coherence", "Does it hang together?")] if template == "criteria" else []
    )
    plain, *edited = (
        render(
            "I",
            "R",
            "Good?",
            {1: "No.", 2: "Yes."},
            [1, 2],
            template=template,
            edits=edits,
            criteria=criteria,
        ).text
        for edits in (frozenset(), *PLACEBO_EDITS)
    )
    assert takes_edits(template) == (len({plain, *edited}) == 16)
    assert takes_edits(template) != (len({plain, *edited}) == 1)
