"""What a log shows of the order of its options, and what is said of lost answers."""

import numpy as np
import pandas as pd
import pytest

import rubricnb as rb
from rubricnb.auditing.verdicts import with_verdicts
from rubricnb.core.estimates.losses import open_sign
from rubricnb.core.estimates.reasons import Reason

ASCENDING = [1, 2, 3, 4, 5]
ROTATIONS = [[*np.roll(ASCENDING, -k)] for k in range(5)]


def log(orders, answer, n=120, **columns):
    """A log of 120 texts of 40 prompts, each scored in every order."""
    rng = np.random.default_rng(0)
    rows = []
    for text in range(n):
        true = int(rng.integers(1, 6))
        rows += [
            {
                "cluster_id": f"p{text // 3}",
                "item_id": f"t{text}",
                "ordering": "-".join(map(str, order)),
                "score": answer(true, order, rng),
                **{name: of(order) for name, of in columns.items()},
            }
            for order in orders
        ]
    return pd.DataFrame(rows)


def lower_when_turned(true, order, rng):
    return int(np.clip(true - (order[0] > order[-1]) + rng.integers(-1, 2), 1, 5))


def often_the_first(true, order, rng):
    return order[0] if rng.random() < 0.3 else true


def audited(*args, **columns):
    frame = log(*args, **columns)
    return frame, rb.audit(judgments=frame, scale=(1, 5))


@pytest.mark.parametrize(
    "orders",
    [
        [ASCENDING, ASCENDING[::-1]],
        [ASCENDING, ASCENDING[::-1], [3, 1, 2, 5, 4]],
        [[2, 1, 3, 4, 5], [5, 4, 3, 1, 2]],
    ],
)
@pytest.mark.parametrize("named", [False, True])
def test_an_order_and_its_mirror_show_what_turning_it_does(orders, named):
    design = {"design": lambda order: f"o{order[0]}"} if named else {}
    frame, found = audited(orders, lower_when_turned, **design)
    [row] = found.rows[found.rows.measure == "order"].to_dict("records")
    by = frame.pivot_table("score", "item_id", "ordering")
    codes = ["-".join(map(str, order)) for order in orders]
    assert row["effect"] == pytest.approx((by[codes[1]] - by[codes[0]]).mean())
    assert row["verdict"] == "found"
    said = "descending order" if orders[0] == ASCENDING else f"({codes[1]}, not"
    assert said in row["sentence"]
    assert "reworded" not in found.sentence
    assert "when the options are reordered" in found.sentence
    assert "position" in found.unseen


@pytest.mark.parametrize("named", [False, True])
def test_orders_that_hold_every_score_everywhere_show_a_preferred_position(named):
    design = {"design": lambda order: f"o{order[0]}"} if named else {}
    frame, found = audited(ROTATIONS, often_the_first, **design)
    [row] = found.rows[found.rows.measure == "position"].to_dict("records")
    first = frame["score"] == frame["ordering"].str[0].astype(int)
    assert row["effect"] == pytest.approx(100 * (first.mean() - 0.2))
    assert (row["verdict"], row["question"]) == ("found", "position 1")
    assert "order" in found.unseen


def test_reads_lost_by_place_are_no_preference_and_are_named():
    def loses_the_first(true, order, rng):
        score = int(np.clip(true + rng.integers(-1, 2), 1, 5))
        lost = order[0] == score and rng.random() < 0.5
        return None if lost else score

    frame, found = audited(ROTATIONS, loses_the_first)
    [row] = found.rows[found.rows.measure == "position"].to_dict("records")
    assert row["p_adjusted"] < 0.05
    assert row["verdict"] == "inconclusive"
    [lost] = [code for code in row["codes"] if code == "lost_by_order"]
    assert lost.numbers["lost"] == frame["score"].isna().sum() > 0
    assert "open_share" in row["codes"]
    assert "as the lost scores could turn it" in row["sentence"]
    assert row["advice"].startswith("Get a score from the answers that were lost")


def test_labels_are_compared_whatever_the_only_design_is_called():
    frame = log([ASCENDING[::-1]], lambda true, *_: true)
    letters = frame.assign(labels="letter", score=(frame["score"] - 1).clip(1))
    both = pd.concat([frame.assign(labels="numeric"), letters])
    found = rb.audit(judgments=both, scale=(1, 5))
    [row] = found.rows[found.rows.measure == "labels"].to_dict("records")
    assert row["effect"] == pytest.approx(letters["score"].mean() - frame.score.mean())
    assert "when the scores are called by other names" in found.sentence


def test_no_bounds_are_given_where_nothing_is_lost():
    same, nan = np.array([1.0, 2.0, 3.0]), float("nan")
    assert open_sign(same, same, (1, 5), (nan, nan), "x") == ()
    [why] = open_sign(same, np.array([1.0, 2.0, nan]), (1, 5), (nan, nan), "x")
    assert why.numbers["low"] < 0 < why.numbers["high"]


def row_of(measure, *codes, **numbers):
    row = {"measure": measure, "question": "x", "n_clusters": 40, "effect": 0.0}
    return with_verdicts([{**row, "codes": codes, **numbers}], 40, 4.0).iloc[0]


def test_the_doubt_that_decided_is_printed():
    lost = Reason(
        "lost",
        lost=9,
        asked=100,
        what="items",
        name="a",
        lacking="b",
        lost_mean=1.0,
        kept_mean=3.0,
    )
    shown = {"low": -0.02, "high": 0.02, "se": 0.01, "df": 39.0, "p": 1.0}
    row = row_of("order", lost, **shown)
    assert row.verdict == "inconclusive"
    assert "too few clusters" not in row.sentence
    assert "more than 5 % have no score on a side" in row.sentence
    assert "more texts do not help" in row.advice
    row = row_of("order", **shown, p_steady=0.2)
    assert "too few clusters" in row.sentence
    assert row.advice.startswith("Judge more texts")
    praised = {"effect": 0.9, "low": 0.8, "high": 0.95, "varied": "edits"}
    assert row_of("discrimination", **praised).verdict == "strong"
    row = row_of("discrimination", lost, **praised)
    assert row.verdict == "inconclusive"
    assert "more than 5 % have no score on a side" in row.sentence
