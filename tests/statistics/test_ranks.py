"""Spearman's ρ without each cluster, against scipy on the items that are left."""

import numpy as np
import pytest
from scipy import stats

from rubricnb.statistics import ranks


def left_out(x, y, cluster):
    out = []
    for c in np.unique(cluster):
        a, b = x[cluster != c], y[cluster != c]
        constant = len(np.unique(a)) < 2 or len(np.unique(b)) < 2
        out.append(np.nan if constant else stats.spearmanr(a, b).statistic)
    return out


@pytest.mark.parametrize(
    "search", [0, 64, 10**9], ids=["counted", "either way", "multiplied"]
)
@pytest.mark.parametrize(
    "levels", [(2, 5), (5, 300), (300, 300), (300, 1), (10**6, 10**6)]
)
def test_it_is_scipys_whatever_is_tied_and_however_large_clusters_are(
    monkeypatch, search, levels
):
    monkeypatch.setattr(ranks, "_SEARCH", search)
    monkeypatch.setattr(ranks, "_BLOCK", 50)  # in several blocks
    rng = np.random.default_rng(0)
    for n_clusters in (2, 7, 60):
        n = 60
        x, y = (rng.integers(0, k, n) / 4 for k in levels)
        cluster = rng.permutation(np.arange(n) % n_clusters) * 3
        found = ranks.leave_out_spearman(x, y, cluster)
        np.testing.assert_allclose(found, left_out(x, y, cluster), atol=1e-12)


def test_one_large_cluster_among_single_texts():
    rng = np.random.default_rng(1)
    x = rng.normal(size=400)
    y = np.round(x + rng.normal(size=400))
    cluster = np.r_[np.zeros(200, int), np.arange(1, 201)]
    found = ranks.leave_out_spearman(x, y, cluster)
    np.testing.assert_allclose(found, left_out(x, y, cluster), atol=1e-12)


def test_a_side_that_is_constant_without_a_cluster_has_no_correlation():
    x, cluster = np.array([1.0, 1, 1, 2]), np.array([0, 1, 2, 3])
    found = ranks.leave_out_spearman(x, np.array([1.0, 2, 3, 4]), cluster)
    assert np.isnan(found[3])
    assert np.isfinite(found[:3]).all()
