"""Any scale, from the rubric file to the audit:
requests show labels, scores carry values.
"""

import re

import numpy as np
import pandas as pd
import pytest
import yaml

import rubricnb as rb
from rubricnb.auditing.plan import audit_requests
from rubricnb.core.rubrics import label_scores, resample
from rubricnb.files.rubrics import read_rubrics

# The levels as a rubric file has them (None: the label is the score),
# and the scores, ascending.
SCALES = {
    "1357": ([1, 3, 5, 7], [1, 3, 5, 7]),
    "percent": ([0, 25, 50, 75, 100], [0, 25, 50, 75, 100]),
    "0 to 10": ([*range(11)], [*range(11)]),
    "halves": ([0, 0.5, 1, 1.5, 2], [0, 0.5, 1, 1.5, 2]),
    "signed": ([-1, 0, 1], [-1, 0, 1]),
    "uneven": ([0, 1, 5], [0, 1, 5]),
    "yes/no": (["yes", "no"], [0, 1]),
    "grades": (["A", "B", "C", "D", "F"], [1, 2, 3, 4, 5]),
    "words": (["poor", "good"], [2, 6]),
}
TEXTS = "instruction,response\n" + "a,b\nc,d\n" * 3
# The signed scale is 1-2-3 moved by two points:
# all but the mean scores are the same there.
OF_POSITIONS = (rb.position_bias, rb.order_effect, rb.variance_components)
MOVED = ["ascending", "descending", "spread_null", "spread_p"]
WORST_FIRST = {"yes/no": ["no", "yes"], "grades": [*"FDCBA"]}


def load(folder, name, criteria=("tone", "form")):
    """Thirty texts rated by a scale of SCALES."""
    levels, scores = SCALES[name]
    rubrics = [
        {
            "criterion": c,
            "definition": "Is it good?",
            "levels": {k: f"Text {k}." for k in levels},
        }
        for c in criteria
    ]
    if name == "words":
        rubrics = [rubric | {"values": {"poor": 2, "good": 6}} for rubric in rubrics]
    text = re.sub("'(yes|no)'", r"\1", yaml.safe_dump(rubrics))  # as people write it
    (folder / "r.yml").write_text(text, "utf-8")
    rows = [
        {
            "instruction": f"Ask {k // 2}",
            "response": f"Text {k}",
            "candidate": "ab"[k % 2],
        }
        | {f"human_{c}": scores[(k + j) % len(scores)] for j, c in enumerate(criteria)}
        for k in range(30)
    ]
    pd.DataFrame(rows).to_csv(folder / "texts.csv", index=False)
    return rb.load("csv", path=folder / "texts.csv", rubric=folder / "r.yml")


def honest(messages):
    """Give each text the label whose place in the scale is the number of the text."""
    prompt = messages[-1]["content"]
    labels = re.findall(r"^Score (.+?) ?: Text (.+)\.$", prompt, re.M)
    number = int(re.search(r"^Text (\d+)$", prompt, re.M)[1])
    return (
        "Feedback: fine. [RESULT] "
        f"{sorted(labels, key=lambda p: p[1])[number % len(labels)][0]}"
    )


@pytest.mark.in_turn
@pytest.mark.parametrize("name", SCALES)
def test_prompts_show_the_labels_and_scores_carry_the_values(tmp_path, name):
    levels, scores = SCALES[name]
    items, n = load(tmp_path, name), len(levels)
    rubric = items.rubrics[items.rubrics.criterion == "tone"].sort_values("score")
    assert rubric.score.tolist() == scores
    named = [str(label) for label in WORST_FIRST.get(name, levels)]
    known = dict(
        zip((label.lower() for label in named), map(float, scores), strict=True)
    )
    assert label_scores(items.rubrics)["tone"] == known
    judgments = rb.run(
        rb.plan(items, rb.balanced(n)), rb.open_judge(honest), store=":memory:"
    )
    assert (judgments.status == "ok").all()
    shown = judgments.ordering.map(rb.permutation.decode)
    for row, order in zip(judgments.itertuples(), shown, strict=True):
        assert sorted(order) == scores
        assert order[row.position - 1] == row.score
    labels = sorted(named)
    numbers = judgments.item_id.str.split("/").str[1].astype(int) - 1
    assert judgments.score.tolist() == [known[labels[k % n].lower()] for k in numbers]


@pytest.mark.in_turn
@pytest.mark.parametrize("name", SCALES)
def test_a_judge_of_any_scale_is_measured_and_audited(tmp_path, name):
    items, n = load(tmp_path, name), len(SCALES[name][0])
    scores = SCALES[name][1]
    requests = rb.plan(items, rb.balanced(n), readout="logprobs")
    judgments = rb.simulate(requests, items, "first-biased")
    asked = rb.run(requests, "simulated:first-biased", store=":memory:")
    assert asked.score.tolist() == judgments.score.tolist()
    assert np.allclose(
        asked.expected_score, judgments.expected_score, rtol=1e-4, atol=1e-4
    )
    # Against the same judge on 1…n: what depends on the places alone is the same.
    plain = judgments.assign(
        score=judgments.score.map(dict(zip(scores, range(1, n + 1), strict=True))),
        ordering=judgments.ordering.map(
            lambda o: "-".join(
                str(scores.index(s) + 1) for s in rb.permutation.decode(o)
            )
        ),
    )
    for statistic in OF_POSITIONS if name == "signed" else OF_POSITIONS[:1]:
        ours, theirs = (
            statistic(j).select_dtypes("number") for j in (judgments, plain)
        )
        pd.testing.assert_frame_equal(
            ours.drop(columns=MOVED, errors="ignore"),
            theirs.drop(columns=MOVED, errors="ignore"),
        )
    table = rb.score_position(judgments)
    assert sorted(table.score.unique()) == scores
    if scores in ([*range(n)], [*range(1, n + 1)]):
        assert np.isfinite(rb.bias_cost(table).cost).all()
    shares = rb.score_tendency(judgments, items, by="judge").iloc[0]
    assert sum(shares[f"share_{s:g}"] for s in scores) == pytest.approx(1)
    assert sum(shares[f"human_{s:g}"] for s in scores) == pytest.approx(1)
    found = rb.audit("simulated:unbiased", items, store=":memory:")
    assert found.design["span"] == scores[-1] - scores[0]
    rows = found.rows[found.rows.measure == "agreement"]
    assert (rows.effect > 0.5).all()
    assert not {"position", "order", "criteria", "labels"} & set(found.unseen)


@pytest.mark.in_turn
def test_an_audit_of_eleven_levels_leaves_roman_numerals_out_before_it_asks(
    tmp_path, capsys
):
    items = load(tmp_path, "0 to 10", ["tone"])
    found = rb.audit(honest, items, store=":memory:")
    said = capsys.readouterr().out.splitlines()
    assert (
        said[0]
        == "labels 'roman' name at most 10 levels, and the scale has 11: skipped"
    )
    assert [line for line in said if "skipped" in line] == said[:1]
    assert found.design["n_judgments"] == len(audit_requests(items)[0])
    assert found.rows.query("measure == 'labels'").question.tolist() == ["letters"]
    with pytest.raises(
        ValueError, match="labels 'roman' name at most 10 levels, not 11"
    ):
        rb.plan(items, rb.fixed(11), labels="roman")


def test_letters_are_not_asked_a_second_time(own, capsys):
    items = own(
        TEXTS, "{criterion: tone, definition: Kind, levels: {A: x, B: y, C: z}}"
    )
    asked = rb.plan(items, rb.fixed(3), labels=["letter", "roman"])
    assert asked["labels"].unique().tolist() == ["roman"]
    assert (
        "labels 'letter' are the rubric's own labels: skipped"
        in capsys.readouterr().out
    )


def test_what_is_taken_for_granted_about_levels_is_printed(tmp_path, capsys):
    load(tmp_path, "grades", ["tone"])
    assert capsys.readouterr().out == (
        "r.yml: rubric 'tone': F = 1, D = 2, C = 3, B = 4, A = 5 "
        "('values' in the rubric file sets other scores)\n"
    )
    load(tmp_path, "words", ["tone"])
    load(tmp_path, "1357", ["tone"])
    assert capsys.readouterr().out == ""


def test_a_csv_of_rubrics_gives_labels_scores_and_weights(tmp_path):
    (tmp_path / "r.csv").write_text(
        "criterion,definition,label,score,description,weight\n"
        "tone,Kind?,rude,1,Rude.,2\ntone,Kind?,kind,4,Kind.,2\n"
        "form,Short?,,0.5,Long.,\nform,Short?,,1,Short.,\n",
        "utf-8",
    )
    rubrics = read_rubrics(tmp_path / "r.csv")
    assert label_scores(rubrics) == {
        "tone": {"rude": 1.0, "kind": 4.0},
        "form": {"0.5": 0.5, "1": 1.0},
    }
    assert rubrics.groupby("rubric_id", observed=True).weight.first()["tone"] == 2


def test_scales_with_gaps_or_words_have_one_length(tmp_path):
    for name in ("percent", "grades"):
        rubrics = load(tmp_path, name).rubrics
        ascending = rubrics.sort_values(["rubric_id", "score"], ignore_index=True)
        same = resample(rubrics, 5).sort_values(
            ["rubric_id", "score"], ignore_index=True
        )
        pd.testing.assert_frame_equal(same, ascending)
        with pytest.raises(
            ValueError, match=r"has 5 levels and cannot be shown on 3; .* 5$"
        ):
            resample(rubrics, 3)
    items = load(tmp_path, "percent")
    for template in ("rubric", "pointwise"):
        with pytest.raises(ValueError, match="cannot be shown on 9"):
            rb.plan(items, rb.fixed(9), template=template)
    with pytest.raises(ValueError, match="cannot be shown on 4"):
        rb.plan(items, rb.balanced(2), n_options=4, template="criteria")


def test_a_reference_names_a_score_of_the_scale(tmp_path):
    graded = load(tmp_path, "1357").assign(reference_3="A text.")
    assert set(rb.plan(graded, rb.fixed(4), reference=3).reference_score) == {"3"}


@pytest.mark.parametrize("design", [rb.fixed, rb.shuffled, rb.placebo])
def test_the_number_of_reads_has_a_default(design):
    assert design(11).k == 1


def test_criteria_of_different_scales_are_planned_one_by_one(own):
    items = own(
        "instruction,response,human_tone,human_length\na,x,0,4\nb,y,2,1\nc,z,,2\n",
        "- {criterion: tone, definition: Kind, levels: {0: a, 1: b, 2: c}}\n"
        "- {criterion: length, definition: Short, levels: {1: a, 2: b, 3: c, 4: d}}\n",
    )
    with pytest.raises(
        ValueError, match="rubric 'tone' has 3 levels and cannot be shown on 4"
    ):
        rb.plan(items, rb.balanced(4))
    parts = []
    for criterion, n in (("tone", 3), ("length", 4)):
        own = items[items.criterion == criterion]
        parts.append(rb.simulate(rb.plan(own, rb.balanced(n)), own, "unbiased"))
    judgments = pd.concat(parts, ignore_index=True)
    assert judgments.groupby("criterion").score.min().ge([1, 0]).all()
    assert rb.agreement(judgments, items).n_options.tolist() == [3, 4]
    with pytest.raises(ValueError, match="scales of different scores or labels"):
        rb.plan(items, rb.balanced(2), n_options=3, template="criteria")
