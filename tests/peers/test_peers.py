"""Other packages' statistics beside ours: the recorded tables, computed again.

This runs in an environment of its own: ``make test-peers``.
"""

import warnings
from importlib.metadata import version
from importlib.util import find_spec

import numpy as np
import pandas as pd
import pytest

if find_spec("evalaudit") is None:
    pytest.skip("needs requirements-peers.txt", allow_module_level=True)

from studies import peers
from studies.recording import read_table

KEYS = {
    "position": ["package", "condition"],
    "rates": ["package", "condition", "n_labels"],
    "agreement": ["package", "what"],
}


@pytest.mark.parametrize("name", KEYS)
def test_a_recorded_table_is_what_the_packages_compute(name):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = peers.TABLES[name]().set_index(KEYS[name]).sort_index()
    kept = read_table(f"peers_{name}").set_index(KEYS[name]).sort_index()
    if "judge-kappa" not in set(found.index.get_level_values("package")):
        kept = kept.drop("judge-kappa", errors="ignore")  # it needs Python 3.12
    assert list(found.index) == list(kept.index)
    for column in kept.columns.drop("version"):
        np.testing.assert_allclose(
            found[column].astype(float), kept[column], atol=1e-5, err_msg=column
        )


@pytest.mark.parametrize("name", KEYS)
def test_a_recorded_version_is_the_installed_one(name):
    kept = read_table(f"peers_{name}")[["package", "version"]].dropna()
    for row in kept.drop_duplicates().itertuples():
        if row.package != "judge-kappa" or find_spec("judge_kappa"):
            assert version(row.package) == row.version


@pytest.mark.parametrize("test", peers.POSITION)
def test_a_strong_preference_is_found_by_all(test):
    if not peers.is_installed(test):
        pytest.skip(f"{test} is not installed")
    first = peers.picks(np.random.default_rng(1), 0, 2)
    assert peers.POSITION[test](first)
    fair = np.zeros_like(first)
    fair[..., 0] = 1  # always the same option: first in one order, last in the other
    fair[::2] = 1 - fair[::2]
    assert not peers.POSITION[test](fair)


def test_kappa_is_scikit_learns_where_all_is_rated():
    score = pytest.importorskip("sklearn.metrics").cohen_kappa_score
    human, judge = peers.unread(np.random.default_rng(3))
    judge = np.where(np.isnan(judge), human, judge)
    assert peers.nominal_kappa(human, judge) == pytest.approx(
        score(human.astype(int), judge.astype(int))
    )


def test_reads_have_the_planted_reliability():
    draws = [peers.reads(np.random.default_rng(seed)) for seed in range(200)]
    single = [np.corrcoef(x[:, 0, 0], x[:, 1, 1])[0, 1] for x in draws]
    assert np.mean(single) == pytest.approx(0.5, abs=0.03)
    frame = peers.read_frame(draws[0])
    assert not frame.duplicated(["item_id", "ordering", "replicate"]).any()
    assert isinstance(frame, pd.DataFrame)
    assert len(frame) == 1600
