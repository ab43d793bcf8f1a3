import csv

import pytest

import rubricnb as rb
from rubricnb.data.sets import sets


def rows_of(mirror, name):
    with open(mirror / sets()[name]["files"][0], encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file, delimiter="\t"))


def test_set_2_is_rated_as_a_whole_and_resolved_to_rater_1(mirror):
    items = rb.load("asap-2")
    assert len(items) == items.text_id.nunique() == 1800
    assert items.human.between(1, 6).all()
    assert (items.human == items.human_ratings.str[0]).all()
    counts = items.human.value_counts()
    assert counts[1] == 24
    assert counts[6] == 7


def test_ratings_belong_to_their_essays(mirror):
    items = rb.load("asap-2").set_index("text_id")
    for row in rows_of(mirror, "asap-2")[::100]:
        item = items.loc[f"asap-2/{row['essay_id']}"]
        assert item.human_ratings == (int(row["rater1_domain1"]), int(row["rater2_domain1"]))
        assert item.response == row["essay"].strip()


def test_people_agree_with_one_another_on_set_2(mirror):
    """The ceiling: two raters of the same essays."""
    ratings = rb.load("asap-2").human_ratings
    ceiling = rb.quadratic_weighted_kappa(ratings.str[0], ratings.str[1], range(1, 7))
    assert 0.75 < ceiling < 0.87


@pytest.mark.parametrize("name", ["asap-7", "asap-8"])
def test_sets_7_and_8_are_rated_by_traits(mirror, name):
    items = rb.load(name, n_items=60)
    traits = list(sets()[name]["criteria"])
    assert items.groupby("text_id").criterion.apply(list).map(lambda c: c == traits).all()
    means = [sum(r) / 2 for r in items.human_ratings]
    assert items.human.tolist() == means
    row = next(r for r in rows_of(mirror, name) if f"{name}/{r['essay_id']}" == items.text_id[0])
    assert items.human_ratings[0][0] == int(row["rater1_trait1"]) + (name == "asap-7")


def test_asap_2_0_in_its_documented_schema(tmp_path):
    file = tmp_path / "ASAP2.csv"
    file.write_text(
        'essay_id,score,full_text,assignment\nA1,4,"Cars, I say, must go.",Are cars good?\n'
        "007,1,NA,\n"
    )
    items = rb.load("asap-2.0", path=file)
    assert items.text_id.tolist() == ["asap-2.0/A1", "asap-2.0/007"]
    assert items.response.tolist() == ["Cars, I say, must go.", "NA"]
    assert items.instruction[0] == "Are cars good?"
    assert "argumentative essay" in items.instruction[1]
    assert items.human.tolist() == [4, 1]
    assert items.rubrics.score.max() == 6


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("essay_id,full_text\nA,Text.\n", "lacks 'score'"),
        ("essay_id,full_text,score\nA,Text.,four\n", "row 1, column 'score': 'four' is not a num"),
        ("essay_id,full_text,score\nA,Text.,7\n", r"7.0 is outside 1\.\.6"),
        ("essay_id,full_text,score\nA, ,3\n", "row 1, column 'full_text' is empty"),
    ],
)
def test_a_bad_file_is_named_with_row_and_column(tmp_path, text, message):
    file = tmp_path / "bad.csv"
    file.write_text(text)
    with pytest.raises(ValueError, match=message):
        rb.load("asap-2.0", path=file)


@pytest.mark.parametrize("name", ["asap-2.0", "summhf", "dress"])
def test_what_is_not_public_says_where_to_get_it(name):
    with pytest.raises(ValueError, match=r"is read from a file of yours.*get it from https"):
        rb.load(name)
    listed = rb.datasets().set_index("name")
    assert not listed.met_real_data[name]
