"""The two readouts of one judge: tables recompute,
and a planted difference is found.
"""

import numpy as np
import pandas as pd
import pytest

from studies import readouts


def test_only_reads_with_a_score_in_both_readouts_are_compared():
    frame = readouts.reads("minibench")
    paired = readouts.both(frame)
    written = frame[(frame.design == "balanced") & (frame.readout == "feedback")]
    assert len(paired) == written.score.notna().sum()
    row = paired.iloc[0]
    same = frame[
        (frame.item_id == row.item_id) & (frame.ordering_index == row.ordering_index)
    ]
    same = same[same.design == "balanced"].set_index("readout").score
    assert (same["feedback"], same["logprobs"]) == (row.written, row.score)


def test_a_judge_that_writes_what_is_most_probable_has_no_difference(monkeypatch):
    frame = readouts.reads("minibench")
    probable = frame[frame.readout == "logprobs"]
    copied = probable.assign(readout="feedback")
    monkeypatch.setattr(readouts, "BOTH", ("minibench",))
    monkeypatch.setattr(
        readouts, "reads", lambda dataset: pd.concat([probable, copied])
    )
    found = readouts.pairs().set_index("measure").estimate
    assert found["same_score"] == 1
    assert found["absolute_difference"] == 0


def test_lost_answers_of_one_order_are_found(monkeypatch):
    """The judge answers everything,
    except the texts of one prompt in ascending order.
    """
    frame = readouts.reads("minibench").query("design == 'balanced'")
    prompt = frame.cluster_id.iloc[0]
    lost = (frame.ordering == readouts.ASCENDING) & (frame.cluster_id == prompt)
    copied = frame[frame.readout == "logprobs"].assign(readout="feedback")
    copied.loc[lost, "score"] = pd.NA
    monkeypatch.setattr(readouts, "BOTH", ("minibench",))
    monkeypatch.setattr(readouts, "reads", lambda dataset: copied)
    found = readouts.missing().set_index("level").scored
    assert found[readouts.ASCENDING] == pytest.approx(11 / 12)
    assert found["5-4-3-2-1"] == 1
    assert found["ascending minus the rest"] == pytest.approx(-1 / 12)
    assert found["lowest minus highest rating"] == pytest.approx(0)


def test_cochran_q_of_two_orders_is_mcnemar():
    answers = np.repeat([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]], [7, 2, 5], axis=0)
    assert readouts.cochran_q(answers) == pytest.approx((7 - 2) ** 2 / (7 + 2))
