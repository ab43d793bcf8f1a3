"""Descriptions: counts, dependence and histograms against pandas
and pingouin, and no text.
"""

import numpy as np
import pandas as pd
import pytest

import rubricnb as rb
from rubricnb.sets.describe import describe, described
from studies.descriptions import RECORDED, record_descriptions


@pytest.fixture(scope="module")
def items():
    return rb.load("minibench")


def of(frame, quantity, criterion=""):
    rows = frame[(frame["quantity"] == quantity) & (frame["criterion"] == criterion)]
    return rows["value"].item()


def rated(value, cluster):
    """Items with these ratings; everything else made up."""
    n = len(value)
    names = [f"i{k}" for k in range(n)]
    return pd.DataFrame(
        {
            "item_id": names,
            "text_id": names,
            "cluster_id": cluster,
            "dataset": "d",
            "instruction": "one two",
            "response": "three",
            "criterion": "c",
            "human": value,
        }
    )


def test_histogram_counts_every_rating_once(items):
    frame = describe(items)
    for criterion, part in items.groupby("criterion", observed=True):
        counts = [of(frame, f"human_{k}", criterion) for k in range(1, 6)]
        assert counts == [(part["human"] == k).sum() for k in range(1, 6)]
        assert of(frame, "human_mean", criterion) == pytest.approx(part["human"].mean())


def test_share_of_the_clusters_is_the_intraclass_correlation():
    pingouin = pytest.importorskip("pingouin", reason="pingouin is the oracle here")
    rng = np.random.default_rng(0)
    cluster = np.repeat(np.arange(40), 6)
    value = rng.normal(size=40)[cluster] + rng.normal(size=240)
    table = pd.DataFrame(
        {"value": value, "cluster": cluster, "rater": np.tile(np.arange(6), 40)}
    )
    oracle = pingouin.intraclass_corr(
        table, targets="cluster", raters="rater", ratings="value"
    )
    found = of(describe(rated(value, cluster.astype(str))), "cluster_share")
    assert found == pytest.approx(oracle["ICC"].iloc[0])


@pytest.mark.parametrize(("within", "expected"), [(0.0, 1.0), (1.0, 0.0)])
def test_share_of_the_clusters_at_its_ends(within, expected):
    cluster = np.repeat(np.arange(50), 4)
    value = np.where(within, np.tile([1.0, 2, 4, 5], 50), (cluster % 5) + 1.0)
    share = of(describe(rated(value, cluster.astype(str))), "cluster_share")
    assert share == pytest.approx(expected)


def test_raters_are_counted_or_inferred_from_means():
    thirds = rated([1 + k / 3 for k in range(9)], list("abcabcabc"))
    assert of(describe(thirds), "raters") == 3
    apart = thirds.assign(human_ratings=[(1, 2, 3, 4)] * 9)
    assert of(describe(apart), "raters") == 4
    assert of(describe(thirds.drop(columns="human")), "raters") == 0


def test_recorded_descriptions_carry_numbers_only():
    quantities = set(describe(rb.load("minibench"))["quantity"])
    frame = described()
    assert set(frame["dataset"]) == set(RECORDED)
    assert pd.api.types.is_float_dtype(frame["value"])
    stems = {q.rstrip("0123456789").replace("gold", "human") for q in frame["quantity"]}
    assert stems <= {q.rstrip("0123456789") for q in quantities}


def test_recorded_description_of_minibench_is_up_to_date(items):
    pd.testing.assert_frame_equal(described("minibench"), describe(items).round(4))


@pytest.mark.in_turn
def test_recorded_descriptions_are_those_of_the_real_data(
    mirror, monkeypatch, tmp_path
):
    recorded = {name: described(name) for name in RECORDED}
    monkeypatch.setenv("RUBRICNB_RESULTS", str(tmp_path))
    record_descriptions()
    for name, frame in recorded.items():
        pd.testing.assert_frame_equal(described(name), frame)


def test_unknown_description_names_those_there_are():
    with pytest.raises(FileNotFoundError, match="there are: hanna"):
        described("hannah")
