import pytest

import rubricnb as rb

HEADER = "id\tprompt\tessay\tcontent\torganization\tlanguage\ttotal\n"


def test_three_traits_in_half_points(tmp_path):
    file = tmp_path / "DREsS_New.tsv"
    file.write_text(HEADER + "1\tIs it?\tIt is.\t3.5\t3\t4\t10.5\n2\tIs it?\tNo.\t1\t1.5\t2\t4.5\n")
    items = rb.load("dress", path=file)
    assert items.human.tolist() == [3.5, 3, 4, 1, 1.5, 2]
    assert items.cluster_id.nunique() == 2
    assert set(items.criterion) == {"content", "organization", "language"}
    assert items.groupby("text_id").human.sum().tolist() == [10.5, 4.5]


def test_a_score_off_the_scale_is_named(tmp_path):
    file = tmp_path / "DREsS_New.tsv"
    file.write_text(HEADER + "1\tIs it?\tIt is.\t5.5\t3\t4\t12.5\n")
    with pytest.raises(ValueError, match=r"5.5 is outside 1\.\.5"):
        rb.load("dress", path=file)
