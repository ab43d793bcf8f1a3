import json

import pytest

from rubricnb.data import load
from rubricnb.data.sets import sets


@pytest.fixture
def items(mirror):
    return load("summeval")


def test_100_articles_by_four_systems_under_four_criteria(items):
    assert len(items) == 1600
    assert items.cluster_id.nunique() == 100
    assert set(items.candidate) == {"M11", "M20", "M13", "M22"}
    assert set(items.groupby("cluster_id").size()) == {16}
    assert set(items.groupby("group_id").size()) == {4}
    assert items.group_id.nunique() == 400


def test_what_shares_a_cluster_shares_the_article(items):
    assert set(items.groupby("cluster_id").instruction.nunique()) == {1}
    assert items.instruction.nunique() == 100


def test_ratings_are_the_three_experts(items, mirror):
    lines = (mirror / sets()["summeval"]["files"][2]).read_text(encoding="utf-8")
    rows = {row["id"]: row for row in map(json.loads, lines.strip().split("\n"))}
    mine = items[items.candidate == "M13"]
    assert len(mine) == 400
    for item in mine.itertuples():
        row = rows[item.cluster_id.removeprefix("summeval/")]
        assert item.response == row["decoded"]
        assert row["text"] in item.instruction
        expected = tuple(expert[item.criterion] for expert in row["expert_annotations"])
        assert item.human_ratings == expected
        assert item.human == pytest.approx(sum(expected) / 3)


def test_the_four_systems_go_from_weak_to_strong(items):
    means = items.groupby("candidate", observed=True).human.mean()
    assert means["M11"] < means["M20"] < means["M13"] < means["M22"]


def test_all_twelve_on_request(mirror, items):
    everything = load("summeval-all")
    assert len(everything) == 4800
    assert everything.candidate.nunique() == 12
    assert set(items.item_id) < set(everything.item_id)
    assert everything.item_id.is_unique
