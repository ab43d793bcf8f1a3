"""Do you need ten reads: the recorded tables, and the rules they are about."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import rubricnb as rb
from studies import need_ten
from studies.one_read import Cell
from studies.recording import read_table as recorded


@pytest.mark.parametrize(
    ("p", "yes", "reads", "five"),
    [(0.7, 0.840, 3.37, 0.837), (0.8, 0.940, 2.92, 0.942), (0.9, 0.988, 2.44, 0.991)],
)
def test_the_chances_of_a_lead_of_two_and_of_all(p, yes, reads, five):
    found = need_ten.chances(p, 2, 9)
    assert found == (pytest.approx(yes, abs=6e-4), 0, pytest.approx(reads, abs=6e-3))
    assert need_ten.chances(p, 5, 5)[0] == pytest.approx(five, abs=6e-4)
    for k in (1, 3, 5, 7, 9):  # a lead of all is the majority of all
        assert need_ten.chances(p, k, k)[0] == pytest.approx(
            stats.binom.sf(k // 2, k, p)
        )


def test_votes_gone_through_have_the_exact_chances():
    rng = np.random.default_rng(1)
    votes = np.where(rng.random((40_000, 9)) < 0.7, 1, -1)
    for lead, most in need_ten.RULES:
        outcome, calls = need_ten.by_votes(votes, lead, most)
        yes, tie, reads = need_ten.chances(0.7, lead, most)
        assert (outcome == 1).mean() == pytest.approx(yes, abs=0.01)
        assert (outcome == 0).mean() == pytest.approx(tie, abs=0.01)
        assert calls.mean() == pytest.approx(reads, abs=0.05)


def test_the_systematic_error_is_that_of_many_simulated_reads():
    """The integral against a crowd of simulated texts, whose own noise averages out."""
    judge = need_ten.replace(need_ten.strengthened(need_ten.FIRST, 4.0), direction=1.0)
    plain = need_ten.replace(judge, position_preference=(0.0,), direction=0.0)
    sure = {
        "text_error": 0.9,
        "item_error": 0.0,
        "cluster_order_noise": 0.0,
        "human_weight": 0.0,
    }
    orders = rb.Design("first", 5, 2).orderings()
    human = np.full(20_000, 3.0)
    means = [
        need_ten.expected(
            need_ten.ask(need_ten.replace(j, **sure), human, orders, 3), orders
        )
        for j in (judge, plain)
    ]
    _, wanted = need_ten.systematic(orders[:1], judge, "expected score")
    assert (means[0] - means[1])[:, 0].mean() == pytest.approx(wanted, abs=0.02)


def test_the_direction_effects_are_those_found_before():
    """All twelve small cells: .007 to .101 points, by the expected score."""
    found = recorded("need_ten_directions")
    twelve = found[(found.judge != "Qwen 1.5B") & (found.readout == "expected score")]
    assert len(twelve) == 12
    assert twelve.effect.abs().min() == pytest.approx(0.007, abs=1e-3)
    assert twelve.effect.abs().max() == pytest.approx(0.101, abs=1e-3)


def test_stopping_at_a_small_standard_error_stops_where_it_should():
    value = np.array([[3.0, 3, 1, 1], [1, 5, 1, 5], [2, 3, 2, 3]])
    mean, calls = need_ten.stopped(value, 0.5)
    assert calls.tolist() == [2, 4, 2]
    assert mean.tolist() == [3, 3, 2.5]
    with pytest.raises(ValueError, match="no shape 'round'"):
        need_ten.qualities("round", 5, np.random.default_rng(0))


def test_a_lead_of_two_errs_like_five_reads_however_ratings_are_skewed():
    found = recorded("need_ten_decisions").set_index(
        ["shape", "noise", "cut", "lead", "most"]
    )
    wrong = found.wrong.unstack(["lead", "most"])
    assert len(wrong) == 5 * 2 * 2
    assert (wrong[(2, 9)] - wrong[(5, 5)]).abs().max() < 0.01
    assert (wrong[(2, 9)] < wrong[(1, 1)]).all()
    assert found.reads.unstack(["lead", "most"])[(2, 9)].between(2, 3).all()


def test_the_rule_hardly_ever_says_the_opposite():
    found = recorded("need_ten_pilots")
    plain = found[found.clusters == "none"]
    no_gain, much = plain[plain.gain < 1.02], plain[plain.gain > 1.10]
    assert len(no_gain) > 5
    assert len(much) > 5
    assert much.stop.mean() < 0.02
    assert no_gain.go.mean() < 0.10


def test_pairs_of_orders_are_what_their_names_say():
    orders = rb.balanced(5).orderings()
    pairs = need_ten.pair_kinds(orders)
    assert [len(found) for found in pairs.values()] == [10, 45, 5, 10, 10, 1, 2]
    for i, j in pairs["opposite"]:
        assert orders[i][::-1].tolist() == orders[j].tolist()
    for by, name in ((1, "rotations"), (2, "rotations, two apart")):
        for i, j in pairs[name]:
            assert np.roll(orders[i], -by).tolist() == orders[j].tolist()
    assert orders[list(pairs["ascending, descending"][0])].tolist() == [
        [1, 2, 3, 4, 5],
        [5, 4, 3, 2, 1],
    ]


def test_opposite_orders_cancel_what_turns_round_with_the_list():
    """Planted: each order adds to all scores what its mirror image takes away."""
    orders = rb.balanced(5).orderings()
    rng = np.random.default_rng(7)
    odd = rng.normal(0, 0.2, 10)
    mirror = [
        np.flatnonzero((orders == row[::-1]).all(axis=1)).item() for row in orders
    ]
    odd = (odd - odd[mirror]) / 2
    p = rng.dirichlet([50, 100, 200, 100, 50], 40)[:, None, :].repeat(10, axis=1)
    shown = np.argsort(orders, axis=1)  # the place of each score
    by_place = np.empty((40, 10, 5))
    for order in range(10):
        moved = p[:, order].copy()
        moved[:, 4] += odd[order] / 4  # adds odd points to the expected score
        moved[:, 0] -= odd[order] / 4
        by_place[:, order, shown[order]] = moved
    items = pd.DataFrame({"cluster_id": range(40)})
    cell = Cell("planted", "none", by_place, orders, np.zeros(40), items)
    found = need_ten.pairs([cell]).set_index(["reads", "than"])
    assert found.rmse["opposite"].to_numpy() == pytest.approx(0, abs=1e-9)
    assert found.rmse["one", "any two"] > 0.05
    assert (found.less["opposite"] > 0).all()
    two = need_ten.expected(by_place, orders)
    for name, than in need_ten.THAN.items():
        off = {
            kind: np.mean(
                [
                    (two[:, pair].mean(axis=1) - np.delete(two, pair, 1).mean(axis=1))
                    ** 2
                    for pair in map(list, need_ten.pair_kinds(orders)[kind])
                ]
            )
            for kind in (name, than)
        }
        assert found.less[name, than] == pytest.approx(off[than] - off[name])


def test_a_decision_where_ten_reads_are_split_evenly_is_half_wrong():
    split = np.array([[5] * 5 + [1] * 5, [5] * 10])
    p = np.zeros((2, 10, 5))
    orders = rb.balanced(5).orderings()
    place = np.argsort(orders, axis=1)
    for text in range(2):
        p[text, range(10), place[range(10), split[text] - 1]] = 1
    cell = Cell(
        "j", "s", p, orders, np.zeros(2), pd.DataFrame({"cluster_id": range(2)})
    )
    found = need_ten.recorded_decisions([cell])
    assert found.wrong.to_numpy() == pytest.approx(0.25)  # half of one of two
    assert (found.ties == 0.5).all()


def test_what_the_chapter_says_in_words():
    few_prompts = recorded("need_ten_recorded").query("pilot == 'whole clusters'")
    assert len(few_prompts) > 20
    assert (few_prompts.unsure == 1).all()  # "below ten prompts there is no verdict"
    first = (
        recorded("need_ten_first")
        .query("bias == 'direction'")
        .set_index(["readout", "orders"])
        .rmse
    )
    for readout in need_ten.READOUTS:
        assert first[readout, "first 10"] < first[readout, "balanced 10"] / 2
    gain = recorded("need_ten_skewed").query("bias == 2").set_index("shape")["gain"]
    assert gain[["ceiling", "floor"]].min() >= gain["normal"]
    assert gain["U"] < gain["normal"]
    pull = recorded("need_ten_skewed").query("bias == 8").set_index("shape")
    assert pull["pull"]["ceiling"] == pytest.approx(-0.2, abs=0.01)
    assert (pull["r_highest"] - pull["r_lowest"]).min() > 0.3
