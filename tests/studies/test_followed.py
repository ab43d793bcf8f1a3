"""What following the advice changed: tables recompute, and what is planted is found."""

from itertools import combinations

import numpy as np
import pytest

import rubricnb as rb
from studies import followed


@pytest.fixture(scope="module")
def planted():
    """A judge that likes low scores when they stand first,
    and wavers; five articles of ten.
    """
    items = rb.load("minibench", n_items=60, seed=1)
    asked = rb.plan(items, rb.balanced(5), readout="logprobs", seed=2)
    return rb.simulate(asked, items, "first-biased"), items


def test_halves_share_no_article_and_lose_none(planted):
    ((first, other),) = followed.halves(*planted, splits=1)
    clusters = [set(half.items["cluster_id"]) for half in (first, other)]
    assert not clusters[0] & clusters[1]
    assert set.union(*clusters) == set(planted[1]["cluster_id"])


def test_what_the_other_half_finds_is_what_its_frames_say(planted):
    ((_, half),) = followed.halves(*planted, splits=1)
    found = {step: of(half, half.article >= 0) for step, of in followed.FOUND.items()}
    r = rb.agreement(half.judged, half.items, by=[]).r.iloc[0]
    each = half.judged.groupby("ordering").apply(
        lambda part: rb.agreement(part, half.items, by=[]).r.iloc[0]
    )
    assert found["orders"] == pytest.approx(r / each.mean())
    effect = rb.order_effect(half.judged, by=[]).iloc[0]
    assert found["direction"] == pytest.approx(effect["ascending_minus_descending"])
    ways = followed.ways(half).set_index("way")
    assert ways.loc["ten orders, score", "r"] == pytest.approx(r)
    ascending = ways.loc["one ascending read, its score", "r"]
    assert ascending == pytest.approx(each["1-2-3-4-5"])
    more = ways.loc["ten orders, score"]
    assert more["more"] == pytest.approx(r - ascending)
    assert more["more_low"] < more["more"] < more["more_high"]


def test_two_systems_differ_by_their_means(planted):
    judged, items = planted
    whole = followed.Half(judged, items, items["cluster_id"].unique())
    table = followed.systems(whole)
    names = sorted(set(items["candidate"].astype(str)))
    assert list(zip(table["a"], table["b"], strict=True)) == list(
        combinations(names, 2)
    )
    mean = items.groupby(items["candidate"].astype(str))["human"].mean()
    np.testing.assert_allclose(
        table["experts"], mean[table["b"]].to_numpy() - mean[table["a"]].to_numpy()
    )
    of = dict(
        zip(items["item_id"].astype(str), items["candidate"].astype(str), strict=True)
    )
    read = judged.groupby(judged["item_id"].astype(str).map(of))[
        "expected_score"
    ].mean()
    np.testing.assert_allclose(
        table["judge"],
        read[table["b"]].to_numpy() - read[table["a"]].to_numpy(),
        rtol=1e-5,
    )
    assert (table["judge_low"] < table["judge"]).all()
    assert (table["experts"] < table["experts_high"]).all()
