import pandas as pd
import pytest

from rubricnb.core.rubrics import resample
from rubricnb.files.rubrics import read_rubrics
from rubricnb.sets.catalogue import load


@pytest.fixture
def write(tmp_path):
    def write(text):
        file = tmp_path / "mine.yml"
        file.write_bytes(text if isinstance(text, bytes) else text.encode())
        return file

    return write


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("levels: [1, 2", "mine.yml is not YAML"),
        (
            bytes(range(128, 160)) * 9,
            "mine.yml is not in UTF-8, and its encoding cannot be",
        ),
        ("", "mine.yml holds nothing. A rubric file is a list of"),
        ("just text", "mine.yml holds a str"),
        ("[a, b]", "mine.yml: rubric 1 is a str"),
        ("{criterion: tone, definition: x}", "rubric 'tone' .standard. lacks 'levels'"),
        ("{criterion: tone, levels: {1: a, 2: b}}", "rubric 'tone' lacks 'definition'"),
        ("{definition: x, levels: {1: a, 2: b}}", "rubric 1 lacks 'criterion'"),
        (
            "{criterion: tone, definition: x, levels: {1: 3, 2: b}}",
            "level 1 is a int, not text: 3; q",
        ),
        (
            "{criterion: tone, definition: x, levels: {poor: a, good: b}}",
            "no score is known for the levels poor, good: add a line such as values: "
            "{poor: …, goo",
        ),
        (
            "{criterion: tone, definition: x, levels: {one: a, 2: b}}",
            "for the levels one: add",
        ),
        (
            "{criterion: tone, definition: x, levels: {a: x, A: y}, values: {a: 1, A: "
            "2}}",
            "two levels have the label 'A'",
        ),
        (
            "{criterion: tone, definition: x, levels: {'[1]': a, 2: b}}",
            "for the levels .1.: add",
        ),
        (
            "{criterion: tone, definition: x, levels: {yes: a, no: b}, values: {yes: "
            "2, no: 2}}",
            "rubric 'tone' has the levels 2, 2: give at least two levels, each once",
        ),
        (
            "{criterion: tone, definition: x, levels: {1: a, .inf: b}}",
            "with a finite score",
        ),
        (
            "{criterion: tone, definition: x, levels: {1: a, 2: b}, weight: .inf}",
            "its weight is not a number above 0, and finite; of a criterion that takes",
        ),
        (
            "{criterion: tone, definition: x, levels: {1: a, 2: b}, weight: 0}",
            "its weight is not a number above 0",
        ),
        (
            "{criterion: tone, definition: x, levels: {1: a, 1: b}}",
            "the key 1 appears twice",
        ),
        (
            "{criterion: tone, definition: x, level: {1: a}}",
            "unknown key 'level'; did you mean",
        ),
        (
            "{criterion: tone, definition: '', levels: {1: a, 2: b}}",
            "'definition' is empty",
        ),
        (
            "{criterion: tone, definition: x, levels: {1: a, 2: b}, paraphrased: "
            "{levels: {1: c}}}",
            "rubric 'tone' has the levels 1: give at least two levels",
        ),
        (
            "{criterion: tone, definition: x, levels: {2: a, 1: b}, "
            "paraphrased: {levels: {1: c, 2: d, 3: e}}}",
            "rubric 'tone' has other levels in one of its variants",
        ),
    ],
)
def test_what_is_not_a_rubric_is_refused(write, text, message):
    with pytest.raises(ValueError, match=message):
        read_rubrics(write(text))


def test_several_rubrics_unicode_crlf_and_bom(write):
    text = (
        "- {criterion: tone, definition: 'Nett? 😀', levels: {1: 'nein — «nie»', 2: "
        "'ja'}}\r\n- {criterion: b, rubric_id: b1, definition: B, levels: {'1': 'א', "
        "'2': 'ב', '3': 'ג'}}"
    )
    rubrics = read_rubrics(write(b"\xef\xbb\xbf" + text.encode()))
    assert rubrics.rubric_id.tolist() == ["tone"] * 2 + ["b1"] * 3
    assert rubrics.description.tolist() == ["nein — «nie»", "ja", "א", "ב", "ג"]


@pytest.mark.parametrize(
    ("n", "kept"), [(2, [1, 5]), (3, [1, 3, 5]), (4, [1, 2, 4, 5])]
)
def test_a_five_level_rubric_keeps_its_evenly_spaced_levels(n, kept):
    rubrics = load("minibench").rubrics
    scaled = resample(rubrics, n)
    for key, scale in scaled.groupby(["rubric_id", "variant"], observed=True):
        original = rubrics[(rubrics.rubric_id == key[0]) & (rubrics.variant == key[1])]
        assert scale.score.tolist() == list(range(1, n + 1))
        by_score = original.set_index("score")
        assert scale.description.tolist() == by_score.description[kept].tolist()
        assert set(scale.definition) == set(original.definition)
    assert set(scaled.rubric_id) == set(rubrics.rubric_id)


@pytest.mark.parametrize(
    ("n", "described"),
    [(7, [1, 3, 4, 5, 7]), (9, [1, 3, 5, 7, 9]), (10, [1, 3, 5, 8, 10])],
)
def test_a_longer_scale_keeps_the_five_levels_and_says_what_lies_between(n, described):
    rubrics = load("minibench").rubrics
    for key, scale in resample(rubrics, n).groupby(
        ["rubric_id", "variant"], observed=True
    ):
        original = rubrics[(rubrics.rubric_id == key[0]) & (rubrics.variant == key[1])]
        assert scale.score.tolist() == list(range(1, n + 1))
        kept = scale[scale.score.isin(described)]
        assert kept.description.tolist() == original.description.tolist()
        for row in scale[~scale.score.isin(described)].itertuples():
            assert (
                f"Between score {row.score - 1} and score {row.score + 1}:"
                in row.description
            )


def test_a_native_scale_stays_and_others_are_refused():
    seven = load("minibench-7").rubrics
    pd.testing.assert_frame_equal(resample(seven, 7), seven, check_dtype=False)
    with pytest.raises(
        ValueError, match=r"has 7 levels and cannot be shown on 5; .* 7$"
    ):
        resample(seven, 5)
    with pytest.raises(
        ValueError, match=r"has 5 levels and cannot be shown on 11; .*2 to 10"
    ):
        resample(load("minibench").rubrics, 11)
