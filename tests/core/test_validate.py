import numpy as np
import pandas as pd
import pytest

from rubricnb.core.validate import check_items
from rubricnb.sets.catalogue import load


@pytest.fixture
def good():
    return load("minibench", n_items=6)


def changed(items, column, row, value):
    frame = pd.DataFrame(items)
    frame[column] = [value if r == row else v for r, v in frame[column].items()]
    return frame


def test_good_items_come_back_unchanged_with_their_rubrics(good):
    again = check_items(good, load("minibench").rubrics)
    assert again.equals(good)
    assert set(again.rubrics.rubric_id) == set(good.rubric_id)


@pytest.mark.parametrize(
    ("column", "row", "value", "message"),
    [
        ("item_id", 4, "FIRST", "rows 0, 4, column 'item_id': .* appears twice"),
        ("response", 2, " \n", "row 2, column 'response': .* is empty"),
        ("instruction", 3, None, "row 3, column 'instruction': .* is empty"),
        ("human", 1, np.nan, r"row 1, column 'human': nan is missing \(NaN\)"),
        ("human", 5, 5.5, r"row 5, column 'human': 5.5 is outside 1..5"),
        ("human", 5, 0.0, r"row 5, column 'human': 0.0 is outside 1..5"),
        ("human", 2, "good", "row 2, column 'human': 'good' is not float64"),
        (
            "rubric_id",
            2,
            "minibench-acuracy",
            "'minibench-acuracy' has no rubric; did you",
        ),
    ],
)
def test_bad_items_are_named_by_row_and_column(good, column, row, value, message):
    value = good.item_id[0] if value == "FIRST" else value
    with pytest.raises(ValueError, match=message):
        check_items(changed(good, column, row, value), good.rubrics)


def test_single_ratings_are_checked_too(good):
    ratings = [(1, 2, 3)] * 5 + [(1, 9, 3)]
    with pytest.raises(
        ValueError, match=r"row 5, column 'human_ratings': \(1, 9, 3\) is outside"
    ):
        check_items(good.assign(human=2.0, human_ratings=ratings), good.rubrics)


def test_a_dataset_without_ratings_may_stand_beside_one_with(good):
    other = pd.DataFrame(good).assign(
        dataset="other", human=np.nan, item_id="other/" + good.item_id
    )
    both = pd.concat([pd.DataFrame(good), other], ignore_index=True)
    assert check_items(both, good.rubrics).human.isna().sum() == 6


def test_unrated_items_only_where_allowed(good):
    gap = changed(good, "human", 1, np.nan)
    assert check_items(gap, good.rubrics, allow_unrated=True).human.isna().sum() == 1
