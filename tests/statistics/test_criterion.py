import numpy as np
import pandas as pd
import pytest
from planted import freedom, make_criterion_judgments, plausible
from scipy import stats

from rubricnb.statistics.criterion import counting_along, criterion_order

FOUR = ("plot", "style", "wit", "depth")


def blocks(judgments, criterion):
    own = judgments[judgments["criterion"] == criterion]
    cells = own.groupby(["item_id", "criterion_position"], observed=True)[
        "score"
    ].mean()
    return cells.unstack()


@pytest.mark.parametrize("names", [("plot", "style", "wit"), FOUR])
def test_friedman_and_w_are_scipys(names):
    judgments = make_criterion_judgments(
        names=names, effect=np.linspace(0, 0.5, len(names))
    )
    result = criterion_order(judgments).set_index("criterion")
    for name in names:
        cells = blocks(judgments, name)
        expected = stats.friedmanchisquare(*cells.to_numpy().T)
        row = result.loc[name]
        assert row.friedman == pytest.approx(expected.statistic)
        assert row.p == pytest.approx(expected.pvalue)
        assert row.kendall_w == pytest.approx(
            expected.statistic / (30 * (len(names) - 1))
        )
        assert row.delta_pos == pytest.approx(np.ptp(cells.mean().to_numpy()))
        assert row.mean_2 == pytest.approx(cells[2].mean())
        assert (row.n_blocks, row.n_dropped, row.n_clusters) == (30, 0, 30)
        assert row.n_reads == 60 * len(names)


def test_the_sensitivity_averages_the_texts_of_a_cluster():
    judgments = make_criterion_judgments(20, 4, effect=(0, 0.1, 0.3))
    row = criterion_order(judgments).iloc[0]
    cells = blocks(judgments, row["criterion"])
    cluster = judgments.groupby("item_id", observed=True)["cluster_id"].first()
    means = cells.groupby(cluster.astype(str)).mean()
    expected = stats.friedmanchisquare(*means.round(9).to_numpy().T)
    assert row.friedman_cluster == pytest.approx(expected.statistic)
    assert row.p_cluster == pytest.approx(expected.pvalue)
    assert (row.n_blocks, row.n_clusters) == (80, 20)


def test_the_closed_form_equals_permutation():
    judgments = make_criterion_judgments(12, 3, effect=(0, 0.2, 0.1), text_noise=0.3)
    row = criterion_order(judgments).iloc[0]
    cells = blocks(judgments, row["criterion"])
    cluster = judgments.groupby("item_id", observed=True)["cluster_id"].first()
    sums = cells.groupby(cluster.astype(str)).sum().to_numpy()
    rng = np.random.default_rng(5)
    totals = np.array([rng.permuted(sums, axis=1).sum(axis=0) for _ in range(4000)])
    rest = totals - totals.mean(axis=1, keepdims=True)
    observed = sums.sum(axis=0) - sums.sum() / 3
    inverse = np.linalg.pinv(np.cov(rest.T))
    q = np.einsum("bi,ij,bj->b", rest, inverse, rest)
    assert row.q == pytest.approx(observed @ inverse @ observed, rel=0.1)
    assert row.p_within == pytest.approx((q >= row.q).mean(), abs=0.03)
    assert row.delta_pos_null == pytest.approx(
        (np.ptp(totals, axis=1) / 36).mean(), rel=0.05
    )


@pytest.mark.slow
def test_size_where_texts_share_a_reaction_and_friedmans_fails():
    ours = friedmans = 0
    for seed in range(130):
        judgments = make_criterion_judgments(25, 4, text_noise=0.6, seed=seed)
        result = criterion_order(judgments)
        ours += (result["p_within"] < 0.05).sum()
        friedmans += (result["p"] < 0.05).sum()
    assert plausible(ours, 390, 0.05)
    assert not plausible(friedmans, 390, 0.05)


def test_a_planted_gap_is_recovered_above_its_null():
    judgments = make_criterion_judgments(200, effect=(0.0, 0.3, 0.5))
    result = criterion_order(judgments)
    assert result["delta_pos"].to_numpy() == pytest.approx(np.full(3, 0.5), abs=0.15)
    assert (result["delta_pos_null"] < 0.15).all()
    assert (result["delta_pos_null"] > 0).all()
    assert (result["delta_pos_p"] < 0.01).all()
    assert (result["p_equivalent"] > 0.9).all()


def test_the_family_is_the_returned_rows():
    a = make_criterion_judgments(effect=(0, 0.1, 0.2))
    b = make_criterion_judgments(seed=1).assign(judge="other")
    result = criterion_order(pd.concat([a, b]))
    assert len(result) == 6
    for name in ("p", "p_within"):
        expected = stats.false_discovery_control(result[name])
        assert result[f"{name}_adjusted"].to_numpy() == pytest.approx(expected)


def test_incomplete_blocks_are_dropped_and_counted():
    judgments = make_criterion_judgments()
    gone = (judgments["item_id"] == "t003") & (judgments["criterion_position"] == 2)
    judgments.loc[gone, "score"] = np.nan
    row = criterion_order(judgments).iloc[0]
    assert (row.n_blocks, row.n_dropped) == (29, 1)
    one_read_left = judgments[~(gone & (judgments["ordering_index"] > 3))]
    assert criterion_order(one_read_left).iloc[0].n_dropped == 1


# --- counting along
# ------------------------------------------------------------------------------


def test_chance_is_the_mean_of_permuted_places():
    judgments = make_criterion_judgments(12, 2, effect=[-1.0, 0.0, 1.0]).assign(
        n_options=2
    )
    judgments["score"] = judgments["score"].clip(1, 2)
    row = counting_along(judgments).iloc[0]
    kept = judgments[judgments["criterion_position"] <= 2]
    assert row.share == pytest.approx(
        (kept["score"] == kept["criterion_position"]).mean()
    )
    rng = np.random.default_rng(0)
    draws = []
    for _ in range(300):
        # The scores of each text and criterion are dealt to its places anew.
        mixed = judgments.iloc[rng.permutation(len(judgments))]
        dealt = mixed.sort_values(["item_id", "criterion"], kind="stable")[
            "score"
        ].to_numpy()
        ordered = judgments.sort_values(["item_id", "criterion"], kind="stable")
        kept = ordered.assign(score=dealt).query("criterion_position <= 2")
        draws.append((kept["score"] == kept["criterion_position"]).mean())
    assert row.chance == pytest.approx(
        np.mean(draws), abs=4 * np.std(draws) / np.sqrt(300)
    )
    assert row.excess == pytest.approx(row.share - row.chance)
    # Texts of one cluster are one observation.
    own = judgments.query("criterion_position <= n_options")
    equal = (own["score"] == own["criterion_position"]).astype(float)
    means = equal.groupby(own["cluster_id"], observed=True).mean()
    t, share = stats.t.isf(0.025, freedom(means)), means.mean()
    for end in (row.share_low, row.share_high):  # Wilson's
        at_end = stats.sem(means) * np.sqrt(end * (1 - end) / (share * (1 - share)))
        assert abs(end - share) == pytest.approx(t * at_end)
