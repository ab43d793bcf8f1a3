import re
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rubricnb.sets.catalogue import datasets, load

DOWNLOADED = ["mt-bench", "vicuna", "hanna", "summeval"]


def test_own_texts_are_joined_to_a_set_of_ours(tmp_path):
    texts, rubric = tmp_path / "own.csv", tmp_path / "rubric.yml"
    texts.write_text("item_id,instruction,response\na,do it,one\nb,do it,two\n")
    rubric.write_text(
        "- rubric_id: q\n  criterion: wit\n  definition: How witty?\n"
        "  levels: {1: dull, 2: witty}\n"
    )
    items = load("csv+minibench", n_items=20, path=texts, rubric=rubric)
    assert items["dataset"].value_counts().to_dict() == {"minibench": 20, "own": 2}
    assert set(items["rubric_id"]) <= set(items.rubrics["rubric_id"])


@pytest.mark.in_turn
def test_the_sizes_and_ratings_listed_are_those_loaded(mirror):
    listed = datasets().set_index("name")
    for name in listed.index[listed.n_items > 0].drop("summeval-all"):
        items = load(name)
        assert len(items) == listed.n_items[name], name
        for column in ("human", "gold", "reference"):
            found = any(c.startswith(column) for c in items)
            assert found == (listed[column][name] != "none"), (name, column)


@pytest.mark.in_turn
def test_ids_are_unique_over_all_datasets(mirror):
    import pandas as pd

    everything = pd.concat([load(n) for n in ["minibench", "minibench-7", *DOWNLOADED]])
    assert len(everything) == 240 + 2816
    assert everything.item_id.is_unique
    for column in ("text_id", "cluster_id", "group_id"):
        spread = everything.groupby(column).dataset.unique().map(set)
        assert all(len(s) == 1 or s == {"minibench", "minibench-7"} for s in spread)
    key = ["rubric_id", "variant", "score"]
    assert not everything.rubrics.duplicated(key).any()
    assert set(everything.rubric_id) <= set(everything.rubrics.rubric_id)


def test_unknown_name_says_the_nearest():
    with pytest.raises(
        ValueError, match="unknown dataset 'sumeval'; did you mean 'summeval'"
    ):
        load("sumeval")
    with pytest.raises(ValueError, match="There are: minibench"):
        load("qqqq")
    with pytest.raises(
        ValueError, match=r"'mine\.csv' is not a dataset: .* path=.*--rubric"
    ):
        load("mine.csv")


EVERYTHING = load("minibench")


@pytest.mark.in_turn
@settings(max_examples=30, deadline=None)
@given(st.integers(1, 200), st.integers(0, 2**31))
def test_a_draw_takes_whole_clusters_and_cuts_the_last_only(n_items, seed):
    drawn = load("minibench", n_items=n_items, seed=seed)
    assert len(drawn) == min(n_items, 180)
    sizes = drawn.groupby("cluster_id").size()
    assert (sizes < 15).sum() <= 1
    assert drawn.item_id.tolist() == [
        i for i in EVERYTHING.item_id if i in set(drawn.item_id)
    ]
    assert set(drawn.rubrics.rubric_id) == set(drawn.rubric_id)


@pytest.mark.in_turn
def test_a_larger_draw_contains_a_smaller_one_and_seeds_differ():
    draws = [set(load("minibench", n_items=n, seed=3).item_id) for n in (7, 20, 100)]
    assert draws[0] < draws[1] < draws[2]
    first = {
        tuple(load("minibench", n_items=15, seed=s).cluster_id.unique())
        for s in range(20)
    }
    assert len(first) > 4


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"name": "minibench", "n_items": 0}, "n_items is 0"),
        ({"name": "minibench", "n_items": "four"}, "n_items is 'four'"),
        ({"name": "csv"}, "is read from your own files"),
        (
            {"name": "minibench", "path": "a.csv"},
            "path= does not apply to 'minibench', which takes no file",
        ),
        ({"name": "vicuna", "rubric": "a.yml"}, "rubric= does not apply to 'vicuna'"),
        (
            {"name": "minibench+minibench-7", "path": "a.csv"},
            "path= does not apply to 'minibench', .* 'csv' does",
        ),
        ({"name": "minibench+csv"}, r"own files: load\('csv', path='…', rubric='…'\)"),
        ({"name": ["minibench"]}, "did you mean 'minibench'"),
    ],
)
def test_arguments_out_of_place(arguments, message):
    with pytest.raises(ValueError, match=message):
        load(**arguments)


@pytest.mark.in_turn
def test_loading_bundled_data_needs_no_network():
    code = (
        "import sys; import rubricnb as rb; rb.load('minibench');"
        "assert 'requests' not in sys.modules and 'matplotlib' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_the_readme_names_the_loaders_not_tested_on_the_real_files():
    readme = (Path(__file__).parents[2] / "README.md").read_text("utf-8")
    (named,) = re.findall(
        r"have not been tested on the real files yet: (.*?)\.\s", readme
    )
    spoken = [
        name.strip().lower().replace(" ", "-") for name in re.split(", | and ", named)
    ]
    listed = datasets().set_index("name")
    assert sorted(spoken) == sorted(listed.index[~listed.met_real_data.astype(bool)])
