"""Profiles fitted to the papers come within the tolerances,
at the papers' own item counts.
"""

from importlib.resources import files

import numpy as np
import pytest
import yaml

import rubricnb as rb
from rubricnb.engines.fitting import STAND_INS, stand_in
from rubricnb.engines.profiles import profiles
from rubricnb.engines.simulated import simulate
from studies.fitting import (
    CHI2_TOLERANCE,
    ROW_TOLERANCE,
    SHARE_TOLERANCE,
    fit_profiles,
    position_figures,
    target_shares,
)

V2 = [name for name in profiles() if name.startswith("v2/")]
V1 = [name for name in profiles() if name.startswith("v1/")]


@pytest.fixture(params=["stand-in", "dataset"])
def load(request):
    """How items are loaded: as stand-ins,
    or the datasets themselves where they are at hand.
    """
    if request.param == "stand-in":
        return stand_in
    request.getfixturevalue("mirror")
    return rb.load


def judged(items, name):
    return simulate(rb.plan(items, rb.balanced(5)), items, name)


def published_cell(name):
    _, judge, dataset = name.split("/")
    table = rb.published("position_bias")
    own = (table.judge.str.lower() == judge) & (table.dataset == STAND_INS[dataset])
    return table[own].iloc[0]


@pytest.mark.slow
def test_the_position_figures_of_v2_are_met(load):
    loaded = {name: load(name) for name in STAND_INS}
    for name in V2:
        cell, items = published_cell(name), loaded[name.split("/")[2]]
        got = judged(items, name)
        shares = np.bincount(got.position, minlength=6)[1:] / len(got)
        chi2 = 5 * len(got) * ((shares - 0.2) ** 2).sum()
        assert abs(shares[0] - cell.pos1_pct / 100) <= SHARE_TOLERANCE, name
        assert abs(shares[4] - cell.pos5_pct / 100) <= SHARE_TOLERANCE, name
        assert abs(chi2 / cell.chi2 - 1) <= CHI2_TOLERANCE, name


@pytest.mark.slow
def test_the_score_position_rows_of_v1_are_met(load):
    loaded = [load(name) for name in STAND_INS]
    table = rb.published("score_position")
    for name in V1:
        own = table[table.judge.str.lower() == name.removeprefix("v1/")]
        printed = (
            own.pivot(index="score", columns="position", values="selected_pct") / 100
        )
        counts = np.zeros((5, 5))
        for items in loaded:
            got = judged(items, name)
            np.add.at(
                counts, (got.score.to_numpy(int) - 1, got.position.to_numpy(int) - 1), 1
            )
        rows = counts / counts.sum(axis=1, keepdims=True)
        assert (abs(rows - printed.to_numpy()) <= ROW_TOLERANCE).all(), name


@pytest.mark.in_turn
def test_the_stored_figures_are_those_the_profiles_give():
    path = files("rubricnb.engines").joinpath("profiles.yml")
    stored = yaml.safe_load(path.read_text(encoding="utf-8"))
    for name in V2:
        got = judged(stand_in(name.split("/")[2]), name)
        shares = np.bincount(got.position, minlength=6)[1:] / len(got)
        assert (
            position_figures(shares, len(got)) == stored[name]["achieved"]["stand_in"]
        )


@pytest.mark.in_turn
def test_fitting_again_gives_the_stored_profiles(load):
    if load is stand_in:
        fitted = fit_profiles(load, only="v2/qwen3.5-9b/mt-bench")
        figures = fitted["v2/qwen3.5-9b/mt-bench"]["achieved"]["stand_in"]
        assert abs(figures["chi2"] / 5.6 - 1) <= CHI2_TOLERANCE
        return
    path = files("rubricnb.engines").joinpath("profiles.yml")
    stored = yaml.safe_load(path.read_text(encoding="utf-8"))
    fitted = fit_profiles(load, only="v2/gemma-3-27b/")
    assert fitted == {name: stored[name] for name in fitted}


@pytest.mark.in_turn
def test_criteria_move_as_far_as_v2_prints(load):
    table = rb.published("criterion_order")
    for dataset, n in (("hanna", 6), ("summeval", 4)):
        items = load(dataset)
        for row in table[table.dataset == STAND_INS[dataset]].itertuples():
            name = f"v2/{row.judge.lower()}/{dataset}"
            got = simulate(
                rb.plan(items, rb.balanced(n), template="criteria"), items, name
            )
            cells = got.groupby(["criterion", "criterion_position"], observed=True)[
                "score"
            ].mean()
            gap = (
                cells.groupby(level=0, observed=True)
                .agg(lambda m: m.max() - m.min())
                .mean()
            )
            assert abs(gap - row.mean_delta_pos) < 0.06, name


@pytest.mark.parametrize("dataset", STAND_INS)
def test_stand_ins_have_the_papers_counts(dataset):
    table = rb.published("datasets_2602").set_index("dataset")["total"]
    printed = {"MT-Bench": "MT-Bench", "Vicuna": "Vicuna-Bench"}.get(STAND_INS[dataset])
    items = stand_in(dataset)
    assert len(items) == table[printed or STAND_INS[dataset]]
    assert items.item_id.is_unique
    assert items.cluster_id.nunique() == {"hanna": 96, "summeval": 100}.get(dataset, 80)


def test_the_middle_has_the_largest_entropy_that_chi2_leaves():
    n_reads, pos1, pos5, chi2 = 5760, 0.213, 0.249, 243.2
    best = target_shares(pos1, pos5, chi2, n_reads)
    assert np.isclose(best.sum(), 1)
    assert np.isclose(5 * n_reads * ((best - 0.2) ** 2).sum(), chi2)
    middle = (1 - pos1 - pos5) / 3
    radius = np.sqrt(((best[1:4] - middle) ** 2).sum())
    across, along = np.array([1, -1, 0]) / np.sqrt(2), np.array([1, 1, -2]) / np.sqrt(6)
    angles = np.linspace(0, 2 * np.pi, 721)
    circle = middle + radius * (
        np.outer(np.cos(angles), across) + np.outer(np.sin(angles), along)
    )
    entropy = -(circle * np.log(circle)).sum(axis=1)
    assert -(best[1:4] * np.log(best[1:4])).sum() >= entropy.max() - 1e-9


def test_a_chi2_below_what_its_ends_need_leaves_the_middle_equal():
    assert target_shares(0.25, 0.25, 0.1, 1000)[1:4].tolist() == pytest.approx(
        [1 / 6] * 3
    )


def test_an_unknown_stand_in_is_refused():
    with pytest.raises(ValueError, match="hanna"):
        stand_in("asap")
