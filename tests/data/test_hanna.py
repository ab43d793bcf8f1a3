import ast
import csv

import pytest

from rubricnb.data import load
from rubricnb.data.sets import sets


@pytest.fixture
def items(mirror):
    return load("hanna")


def test_96_stories_under_six_criteria(items):
    assert len(items) == 576
    assert items.cluster_id.nunique() == items.text_id.nunique() == 96
    assert set(items.groupby("text_id").criterion.nunique()) == {6}
    assert items.group_id.isna().all()
    assert "hanna/017/coherence" in set(items.item_id)


def test_ratings_are_means_of_three_raters(items):
    assert items.human.between(1, 5).all()
    assert ((items.human * 3 - (items.human * 3).round()).abs() < 1e-9).all()


def test_ratings_belong_to_their_stories(items, mirror):
    first, second = sets()["hanna"]["files"]
    with open(mirror / first, encoding="utf-8", newline="") as file:
        stories = list(dict.fromkeys(row["Human"] for row in csv.DictReader(file)))
    with open(mirror / second, encoding="utf-8", newline="") as file:
        scores = next(row for row in csv.DictReader(file) if row["Model"] == "Human")
    for name in sets()["hanna"]["criteria"]:
        rated = items[items.criterion == name].set_index("response").human
        means = ast.literal_eval(scores[name.capitalize()])
        assert rated.to_dict() == dict(zip(stories, means, strict=True))


def test_own_rubrics_replace_ours(mirror, tmp_path):
    file = tmp_path / "mine.yml"
    file.write_text(
        "{criterion: surprise, definition: New, levels: {1: a, 2: b, 3: c, 4: d, 5: e}}"
    )
    items = load("hanna", rubric=file)
    assert len(items) == 96
    assert set(items.criterion) == {"surprise"}
    assert items.rubrics.description.tolist() == list("abcde")


def test_a_rubric_for_what_nobody_rated_is_refused(mirror, tmp_path):
    file = tmp_path / "mine.yml"
    file.write_text("{criterion: wit, definition: Funny, levels: {1: a, 2: b}}")
    with pytest.raises(ValueError, match="hanna has no ratings for the criterion 'wit'"):
        load("hanna", rubric=file)
