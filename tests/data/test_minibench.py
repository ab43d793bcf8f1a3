from itertools import product

import pytest

from rubricnb.data import load


def test_180_items_and_60_more_on_request():
    five, seven = load("minibench"), load("minibench-7")
    assert (len(five), len(seven)) == (180, 60)
    assert set(five.groupby(["text_id"]).size()) == {3}
    assert five.cluster_id.nunique() == 12
    assert set(five.groupby("group_id").size()) == {5}
    assert set(five.text_id) == set(seven.text_id)
    assert set(five.item_id).isdisjoint(seven.item_id)


@pytest.mark.parametrize(("name", "n"), [("minibench", 5), ("minibench-7", 7)])
def test_quality_is_on_the_scale_of_the_rubric(name, n):
    items = load(name)
    assert set(items.rubrics.groupby("rubric_id", observed=True).score.max()) == {n}
    assert set(items.human) == {1 + k * (n - 1) / 4 for k in range(5)}


@pytest.mark.parametrize("name", ["minibench", "minibench-7"])
def test_each_text_is_the_reference_of_its_level(name):
    items = load(name)
    # Under reference="auto" the best text would be shown as its own reference.
    assert "reference" not in items
    levels = [k for k in range(1, 8) if f"reference_{k}" in items]
    assert levels == ([1, 2, 3, 4, 5] if name == "minibench" else [1, 4, 7])
    for item, k in product(items.to_dict("records"), levels):
        assert (item["response"] == item[f"reference_{k}"]) == (item["human"] == k)
