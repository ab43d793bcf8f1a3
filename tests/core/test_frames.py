import pandas as pd
import pytest

from rubricnb.core.frames import FRAMES, STATUSES, Items, Requests, conform


def rubrics(**changes):
    row = {
        "rubric_id": "r",
        "variant": "standard",
        "score": 1,
        "criterion": "c",
        "definition": "?",
        "description": "d",
        "label": "one",
        "weight": 2,
    }
    return pd.DataFrame([row | changes])


def test_conform_casts_to_the_contract_and_keeps_more_columns():
    out = conform(rubrics().assign(note="mine"), "rubrics")
    wanted = {c.name: c.dtype for c in FRAMES["rubrics"]}
    assert {c: str(t) for c, t in out.dtypes.items() if c in wanted} == wanted
    assert out["note"].tolist() == ["mine"]


def test_conform_names_the_row_and_the_column_of_a_value_that_does_not_fit():
    frame = pd.concat([rubrics(), rubrics(score="two")], ignore_index=True)
    with pytest.raises(
        ValueError, match=r"rubrics: row 1, column 'score': 'two' is not int8"
    ):
        conform(frame, "rubrics")


@pytest.mark.parametrize("score", [0.5, 1000])
def test_scores_that_a_small_integer_cannot_hold_are_kept_as_floats(score):
    out = conform(pd.concat([rubrics(), rubrics(score=score)]), "rubrics")
    assert out["score"].tolist() == [1.0, score]
    assert out["score"].dtype == "float64"


@pytest.mark.parametrize("column", [c.name for c in FRAMES["rubrics"] if c.required])
def test_conform_names_a_missing_column(column):
    with pytest.raises(ValueError, match=f"lack the column '{column}'"):
        conform(rubrics().drop(columns=column), "rubrics")


def test_the_table_names_every_status():
    (status,) = (c for c in FRAMES["judgments"] if c.name == "status")
    assert tuple(status.meaning.split(", ")) == STATUSES


def items(name, rubric):
    frame = Items({"item_id": [f"{name}1", f"{name}2"]})
    frame.rubrics = pd.DataFrame(
        {"rubric_id": [rubric], "variant": ["s"], "score": [1]}
    )
    return frame


def test_items_carry_their_rubrics_through_filtering_and_concatenation():
    a, b = items("a", "ra"), items("b", "rb")
    assert a[a.item_id == "a2"].rubrics is a.rubrics
    assert a.sort_values("item_id").head(1).rubrics is a.rubrics
    both = pd.concat([a, b])
    assert isinstance(both, Items)
    assert both.rubrics.rubric_id.tolist() == ["ra", "rb"]
    assert pd.concat([a, a.head(1)]).rubrics is a.rubrics


def test_requests_carry_the_union_of_their_items():
    plans = []
    for name in "ab":
        plan = Requests({"request_id": [1]})
        plan.source = items(name, "r")
        plans.append(plan)
    assert pd.concat(plans).source.item_id.tolist() == ["a1", "a2", "b1", "b2"]


def test_what_is_not_attached_is_not_attached_to_a_filtered_frame_either():
    plain = Items({"item_id": ["a", "b"]})
    assert not hasattr(plain[plain.item_id == "a"], "rubrics")
    assert not hasattr(plain.set_axis([5, 6]), "rubrics")
    plain.rubrics = pd.DataFrame({"rubric_id": ["r"]})
    assert len(plain[plain.item_id == "a"].rubrics) == 1
