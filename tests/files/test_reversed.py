"""Grades whose labels run against their values: 1 is the best.
Labels come first everywhere.

Whatever names a level (scores, ratings, references, orderings, examples) names it by
its label, so a perfect judge is perfect, and what is shown to a judge as grade 1 is
what the file calls grade 1.
"""

import numpy as np
import pandas as pd
import pytest

import rubricnb as rb
from rubricnb.core.rendering import rendered

VALUES = {1: 4, 2: 3, 3: 2, 4: 1}
RUBRIC = {
    "criterion": "tone",
    "definition": "Is it kind?",
    "levels": {1: "Very kind.", 2: "Kind.", 3: "Curt.", 4: "Rude."},
    "values": VALUES,
}
N = 24
GRADE = np.arange(N) % 4 + 1
VALUE = np.array([VALUES[grade] for grade in GRADE])


def table(**columns):
    texts = {
        "instruction": [f"Ask {k // 2}." for k in range(N)],
        "response": [f"Answer {k}." for k in range(N)],
        "item_id": [f"t{k}" for k in range(N)],
    }
    return pd.DataFrame(texts | columns)


def load(**columns):
    return rb.load("csv", path=table(**columns), rubric=RUBRIC)


def log(**columns):
    return pd.DataFrame(
        {"item_id": [f"t{k}/tone" for k in range(N)], "score": GRADE} | columns
    )


@pytest.mark.parametrize("column", ["human", "human_tone", "gold"])
def test_ratings_are_grades(column):
    items = load(**{column: GRADE})
    assert items[column.removesuffix("_tone")].tolist() == VALUE.tolist()


@pytest.mark.parametrize(
    "ratings",
    [
        [f"{g} {g}" for g in GRADE],
        [[g, g] for g in GRADE.tolist()],
        [{"ann": g, "bob": g} for g in GRADE.tolist()],
    ],
)
def test_single_ratings_are_grades(ratings):
    items = load(human_ratings=ratings)
    assert items.human_ratings.tolist() == [(float(v), float(v)) for v in VALUE]


def test_one_column_a_rater_is_grades():
    items = load(human_1=GRADE, human_2=GRADE)
    assert items.human.tolist() == VALUE.tolist()


def test_references_are_named_by_the_grade_that_they_are_worth(capsys):
    texts = {
        f"reference_{grade}": [f"A text of grade {grade}."] * N for grade in VALUES
    }
    items = load(human=GRADE, **texts)
    for grade, value in VALUES.items():
        assert (items[f"reference_{value}"] == f"A text of grade {grade}.").all()
    assert "reference_1 = reference_4" in capsys.readouterr().out
    judge = rb.open_judge(lambda messages: "[RESULT] 1")
    asked = rb.plan(items[:1], rb.fixed(4, 1), reference=[1, 4])
    for request in rendered(asked, judge):
        prompt = request.messages[-1].content
        [grade] = [g for g in VALUES if f"A text of grade {g}." in prompt]
        assert f"Reference Answer (Score {grade})" in prompt.replace(
            "answer", "Answer"
        ), prompt


def test_references_named_by_words():
    rubric = RUBRIC | {
        "levels": {"good": "Kind.", "poor": "Rude."},
        "values": {"good": 2, "poor": 1},
    }
    items = rb.load(
        "csv", path=table(reference_good="Yes.", reference_poor="No."), rubric=rubric
    )
    assert (items.reference_2 == "Yes.").all()
    assert (items.reference_1 == "No.").all()
    with pytest.raises(ValueError, match="both hold the reference of score 2"):
        rb.load(
            "csv", path=table(reference_good="Yes.", reference_2="Si."), rubric=rubric
        )


def test_references_of_each_criterion_follow_its_own_labels():
    """One rubric runs from 1, the best; the other one to 4, the best."""
    plain = RUBRIC | {"criterion": "form", "values": {k: k for k in VALUES}}
    table_ = table(reference_1="One.", reference_4="Four.").assign(
        criterion=["tone", "form"] * (N // 2)
    )
    items = rb.load("csv", path=table_, rubric=[RUBRIC, plain])
    tone, form = (items[items.criterion == c] for c in ("tone", "form"))
    assert (tone.reference_4 == "One.").all()
    assert (tone.reference_1 == "Four.").all()
    assert (form.reference_1 == "One.").all()
    assert (form.reference_4 == "Four.").all()


def test_a_log_names_levels_by_grades():
    mine = rb.judgments(
        log(
            ordering="1-2-4-3",
            reference_score="1",
            exemplar="2",
            expected_score=GRADE + 0.0,
        ),
        load(human=GRADE),
        columns={c: c for c in ("reference_score", "exemplar")},
    )
    assert mine.score.tolist() == VALUE.tolist()
    assert mine.expected_score.tolist() == VALUE.tolist()
    assert set(mine.ordering) == {"4-3-1-2"}
    place = {1: 1, 2: 2, 4: 3, 3: 4}
    assert mine.position.tolist() == [place[grade] for grade in GRADE]
    assert set(mine.reference_score) == {"4"}
    assert set(mine.exemplar) == {"3"}
    assert rb.agreement(mine, mine.rated).r.iloc[0] == pytest.approx(1)


def test_conditions_that_name_no_level_stay():
    mine = rb.judgments(
        log(reference_score="none", exemplar="unknown"),
        load(human=GRADE),
        columns={c: c for c in ("reference_score", "exemplar")},
    )
    assert set(mine.reference_score) == {"none"}
    assert set(mine.exemplar) == {"unknown"}


def test_what_this_package_wrote_is_read_by_value(tmp_path):
    items = load(human=GRADE)
    judge = rb.open_judge(lambda messages: "[RESULT] 1")
    made = rb.run(rb.plan(items, rb.balanced(4)), judge, store=":memory:")
    assert set(made.score) == {4}
    made.to_csv(tmp_path / "own.csv", index=False)
    again = rb.judgments(tmp_path / "own.csv", items)
    assert again.score.tolist() == made.score.tolist()
    assert again.ordering.astype(str).tolist() == made.ordering.astype(str).tolist()
    assert again.position.tolist() == made.position.tolist()
